"""The inertia of a body as other libraries describe it."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from phipsi.model import Body
from phipsi.typing import Array, Vector3


class CentralInertia(NamedTuple):
    """The inertia of a body about its centre of mass, in the body's axes."""

    mass: float
    com: Vector3
    J: Annotated[Array, "3 3"]


def central(body: Body) -> CentralInertia:
    """Mass, centre of mass, and inertia about it."""
    m = float(body.mass)
    moment = np.asarray(body.inertia.moment, float)
    com = moment / m if m else moment
    about = m * (com @ com * np.eye(3) - np.outer(com, com))
    return CentralInertia(m, com, np.asarray(body.inertia.J, float) - about)
