"""The inertia of a body as other libraries describe it."""

from __future__ import annotations

import numpy as np

from phipsi.model import Body


def central(body: Body) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass, and the inertia about it in the body's axes."""
    m = float(body.mass)
    moment = np.asarray(body.inertia.moment, float)
    com = moment / m if m else moment
    about = m * (com @ com * np.eye(3) - np.outer(com, com))
    return m, com, np.asarray(body.inertia.J, float) - about
