"""Expressions as parts of programs.

What lowers and runs them is imported at the first call: a kernel that is found in the disk cache
needs none of it.
"""

from __future__ import annotations

from typing import Any

from phipsi.model import Robot
from phipsi.operators.algebra.expression import Expression


def compute(
    expression: Expression,
    robot: Robot,
    q: Any,
    v: Any = None,
    /,
    *,
    active: Any = None,
    external: Any = None,
    **vectors: Any,
) -> Any:
    """The value of an expression as a part of a traced program: the sweeps of its cheapest form.

    An operator is applied to the vector `x=`; other vectors are given by the names of their
    symbols, `T=tau`.
    """
    from phipsi.operators.lowering.program import traced

    return traced(expression, robot, q, v, active, external, vectors)
