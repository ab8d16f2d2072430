"""Expressions as parts of programs.

The code that lowers and runs expressions is imported at the first call: a kernel that is found in
the disk cache needs none of it.
"""

from __future__ import annotations

from phipsi.model import Robot
from phipsi.operators.algebra.expression import Expression
from phipsi.typing import (
    Array,
    ArrayLike,
    ConfigurationLike,
    ExternalForces,
    JointVectorLike,
    MaskLike,
)


def compute(
    expression: Expression,
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike | None = None,
    /,
    *,
    active: MaskLike | None = None,
    external: ExternalForces | None = None,
    **vectors: ArrayLike,
) -> Array:
    """The value of an expression as a part of a traced program: the sweeps of its cheapest form.

    An operator is applied to the vector `x=`; other vectors are given by the names of their
    symbols, `T=tau`.
    """
    from phipsi.operators.lowering.program import traced

    return traced(expression, robot, q, v, active, external, vectors)
