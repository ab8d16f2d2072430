"""The closed table of scalar operations: everything a graph can compute.

Truth values are the numbers 0 and 1, so that every operation maps numbers to a number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Op:
    """One scalar operation: its NumPy meaning, its cost in multiplications, its symbol in print."""

    name: str
    arity: int
    evaluate: Callable[..., Any]
    cost: float = 1.0
    commutative: bool = False
    infix: str = ""


def _truth(compare: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: compare(a, b).astype(np.result_type(a, b))


OPS: dict[str, Op] = {
    op.name: op
    for op in (
        Op("add", 2, np.add, commutative=True, infix="+"),
        Op("sub", 2, np.subtract, infix="-"),
        Op("mul", 2, np.multiply, commutative=True, infix="*"),
        Op("div", 2, np.divide, cost=4, infix="/"),
        Op("neg", 1, np.negative),
        Op("sqrt", 1, np.sqrt, cost=5),
        Op("sin", 1, np.sin, cost=16),
        Op("cos", 1, np.cos, cost=16),
        Op("atan2", 2, np.arctan2, cost=30),
        Op("exp", 1, np.exp, cost=16),
        Op("log", 1, np.log, cost=16),
        Op("tanh", 1, np.tanh, cost=20),
        Op("abs", 1, np.abs),
        Op("floor", 1, np.floor),
        Op("min", 2, np.minimum, commutative=True),
        Op("max", 2, np.maximum, commutative=True),
        Op("less", 2, _truth(np.less), infix="<"),
        Op("less_equal", 2, _truth(np.less_equal), infix="<="),
        Op("equal", 2, _truth(np.equal), commutative=True, infix="=="),
        Op("where", 3, lambda c, a, b: np.where(c != 0, a, b)),
    )
}
"""Every operation by name. `const`, `input`, `loop` and `pick` are structure, not arithmetic."""
