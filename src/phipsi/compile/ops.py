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
    """One scalar operation: its NumPy meaning, its LLVM text, its symbol in print.

    `llvm` holds instructions separated by ";": {r} is the result's name, {0}, {1}, {2} the operands
    and {T} their type, {m} the type of a comparison of theirs, {s} the suffix of intrinsics, {one}
    the number 1. `math` names the function of llvm_math.py that a call goes to.
    """

    name: str
    evaluate: Callable[..., Any]
    llvm: str = ""
    math: str = ""
    commutative: bool = False
    infix: str = ""


def _truth(compare: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: compare(a, b).astype(np.result_type(a, b))


def _compared(how: str) -> str:
    return (
        f"{{r}}.c = fcmp {how} {{T}} {{0}}, {{1}};"
        "{r} = select {m} {r}.c, {T} {one}, {T} zeroinitializer"
    )


def _called(name: str, arity: int = 1) -> str:
    operands = ", ".join(f"{{T}} {{{i}}}" for i in range(arity))
    return f"{{r}} = call {{T}} @{name}({operands})"


OPS: dict[str, Op] = {
    op.name: op
    for op in (
        Op("add", np.add, "{r} = fadd {T} {0}, {1}", commutative=True, infix="+"),
        Op("sub", np.subtract, "{r} = fsub {T} {0}, {1}", infix="-"),
        Op("mul", np.multiply, "{r} = fmul {T} {0}, {1}", commutative=True, infix="*"),
        Op("div", np.divide, "{r} = fdiv {T} {0}, {1}", infix="/"),
        Op("neg", np.negative, "{r} = fneg {T} {0}"),
        Op("sqrt", np.sqrt, _called("llvm.sqrt.{s}")),
        Op("sin", np.sin, math="sincos"),
        Op("cos", np.cos, math="sincos"),
        Op("atan2", np.arctan2, _called("phipsi.atan2", 2), "atan2"),
        Op("exp", np.exp, _called("phipsi.exp"), "exp"),
        Op("log", np.log, _called("phipsi.log"), "log"),
        Op("tanh", np.tanh, _called("phipsi.tanh"), "tanh"),
        Op("abs", np.abs, _called("llvm.fabs.{s}")),
        Op("floor", np.floor, _called("llvm.floor.{s}")),
        Op("min", np.minimum, _called("llvm.minimum.{s}", 2), commutative=True),
        Op("max", np.maximum, _called("llvm.maximum.{s}", 2), commutative=True),
        Op("less", _truth(np.less), _compared("olt"), infix="<"),
        Op("less_equal", _truth(np.less_equal), _compared("ole"), infix="<="),
        Op("equal", _truth(np.equal), _compared("oeq"), commutative=True, infix="=="),
        Op(
            "where",
            lambda c, a, b: np.where(c != 0, a, b),
            "{r}.c = fcmp une {T} {0}, zeroinitializer;{r} = select {m} {r}.c, {T} {1}, {T} {2}",
        ),
    )
}
"""Every operation by name. `const`, `input` and what deals with arrays are structure, not
arithmetic."""
