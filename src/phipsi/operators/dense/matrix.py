"""Any expression as a dense matrix: slow, and the oracle of everything fast."""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.operators.algebra.expression import Expression
from phipsi.operators.algebra.spaces import SCALARS
from phipsi.operators.algebra.system import System


def matrix(expression: Expression, system: System, /, **values: Any) -> np.ndarray:
    """The matrix of an expression on a system; a vector is flat, a number has no axes.

    Vectors that the system does not know are given by name (`T=tau`; those of bodies flat or
    (nb, 6)), as may be any symbol (`G=gain`). `ValueError` says what else the system lacks.
    """
    dense = (system.giving(**values) if values else system).value(expression)
    spaces = zip(dense.shape, (expression.codomain, expression.domain), strict=True)
    return dense.reshape([size for size, space in spaces if space != SCALARS]).copy()
