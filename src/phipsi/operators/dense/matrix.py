"""Any expression as a dense matrix: slow, and the oracle of the recursions."""

from __future__ import annotations

from phipsi.operators.algebra.expression import Expression
from phipsi.operators.algebra.spaces import SCALARS
from phipsi.operators.algebra.system import System
from phipsi.typing import Array, ArrayLike


def matrix(expression: Expression, system: System, /, **values: ArrayLike) -> Array:
    """The dense matrix of an expression on a system.

    Parameters
    ----------
    expression
        The expression.
    system
        The system, as `system(robot, q)` makes it.
    **values
        Values of symbols by name: of vectors that the system does not know (`T=tau`; those of
        bodies flat or (nb, 6)), or of any other symbol without frames (`G=gain`).

    Returns
    -------
    (m, n), of a vector (m,), of a number ()
        The matrix.

    Raises
    ------
    ValueError
        If the system lacks a value, or an inverse does not exist.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.operators import mass
    >>> from phipsi.operators.dense import matrix, system
    >>> robot = pp.robots.double_pendulum()
    >>> q = [0.3, -0.5]
    >>> np.allclose(matrix(mass, system(robot, q)), pp.mass_matrix(robot, q))
    True
    """
    dense = (system.giving(**values) if values else system).value(expression)
    spaces = zip(dense.shape, (expression.codomain, expression.domain), strict=True)
    return dense.reshape([size for size, space in spaces if space != SCALARS]).copy()
