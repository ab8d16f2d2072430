"""The closed table of scalar operations: everything a graph can compute.

Truth values are the numbers 0 and 1, so that every operation maps numbers to a number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from phipsi.compile.node import Node
from phipsi.typing import Array, Real

Derivatives = tuple[Real | None, ...]
Partials = Callable[[Node, Node], Derivatives] | Callable[[Node, Node, Node], Derivatives]
"""The derivatives of an operation by its operands, from these and the result."""

Selection = tuple[Node, int, int]
Selects = Callable[[Node, Node], Selection] | Callable[[Node, Node, Node], Selection]
"""A condition, and the numbers of the operands that are the result where it holds and where not."""


def _none(*_: Node) -> Derivatives:
    """The derivatives of an operation that is constant wherever it has any."""
    return None, None


@dataclass(frozen=True)
class Op:
    """One scalar operation: its NumPy meaning, its LLVM text, its symbol in print, its C text.

    `llvm` holds instructions separated by ";": {r} is the result's name, {0}, {1}, {2} the operands
    and {T} their type, {m} the type of a comparison of theirs, {s} the suffix of intrinsics, {one}
    the number 1. `math` names the function of llvm_math.py that a call goes to. `c` is an
    expression of C, {f} the suffix of functions of that type; without it, infix. `partials` takes
    the operands and the result, all traced, and gives the derivative by each operand, None where
    there is none. Of an operation whose result is one of two operands, `selects` takes the operands
    and gives the condition, and the numbers of the operand where it holds and of the other: the
    derivative of what is not selected is not used, not even multiplied by zero.
    """

    name: str
    evaluate: Callable[..., Any]
    llvm: str = ""
    math: str = ""
    commutative: bool = False
    infix: str = ""
    c: str = ""
    partials: Partials = _none
    selects: Selects | None = None


def _truth(compare: np.ufunc) -> Callable[[Array, Array], Array]:
    return lambda a, b: compare(a, b).astype(np.result_type(a, b))


def _where(c: Array, a: Array, b: Array) -> Array:
    return np.where(c != 0, a, b)


def _compared(how: str) -> str:
    return (
        f"{{r}}.c = fcmp {how} {{T}} {{0}}, {{1}};"
        "{r} = select {m} {r}.c, {T} {one}, {T} zeroinitializer"
    )


def _called(name: str, arity: int = 1) -> str:
    operands = ", ".join(f"{{T}} {{{i}}}" for i in range(arity))
    return f"{{r}} = call {{T}} @{name}({operands})"


def _over(x: Real, y: Node) -> Node:
    """x / y, but 0 where y is 0: derivatives, and those of derivatives, stay finite at corners."""
    corner: Node = y == 0.0
    choose = corner.tracer.apply
    return choose("where", corner, 0.0, x / choose("where", corner, 1.0, y))


def _sign(x: Node, _: Node) -> Derivatives:
    return ((x > 0.0) - (x < 0.0),)


def _angle(y: Node, x: Node, _: Node) -> Derivatives:
    n = x * x + y * y
    return _over(x, n), -_over(y, n)


OPS: dict[str, Op] = {
    op.name: op
    for op in (
        Op(
            "add",
            operator.add,
            "{r} = fadd {T} {0}, {1}",
            commutative=True,
            infix="+",
            partials=lambda a, b, r: (1.0, 1.0),
        ),
        Op(
            "sub",
            operator.sub,
            "{r} = fsub {T} {0}, {1}",
            infix="-",
            partials=lambda a, b, r: (1.0, -1.0),
        ),
        Op(
            "mul",
            operator.mul,
            "{r} = fmul {T} {0}, {1}",
            commutative=True,
            infix="*",
            partials=lambda a, b, r: (b, a),
        ),
        Op(
            "div",
            np.divide,
            "{r} = fdiv {T} {0}, {1}",
            infix="/",
            partials=lambda a, b, r: (1.0 / b, -r / b),
        ),
        Op("neg", operator.neg, "{r} = fneg {T} {0}", c="-{0}", partials=lambda a, r: (-1.0,)),
        Op(
            "sqrt",
            np.sqrt,
            _called("llvm.sqrt.{s}"),
            partials=lambda a, r: (_over(0.5, r),),
            c="sqrt{f}({0})",
        ),
        Op("sin", np.sin, math="sincos", partials=lambda a, r: (a.cos(),), c="sin{f}({0})"),
        Op("cos", np.cos, math="sincos", partials=lambda a, r: (-a.sin(),), c="cos{f}({0})"),
        Op(
            "atan2",
            np.arctan2,
            _called("phipsi.atan2", 2),
            "atan2",
            partials=_angle,
            c="atan2{f}({0}, {1})",
        ),
        Op(
            "exp", np.exp, _called("phipsi.exp"), "exp", partials=lambda a, r: (r,), c="exp{f}({0})"
        ),
        Op(
            "log",
            np.log,
            _called("phipsi.log"),
            "log",
            partials=lambda a, r: (1.0 / a,),
            c="log{f}({0})",
        ),
        Op(
            "tanh",
            np.tanh,
            _called("phipsi.tanh"),
            "tanh",
            partials=lambda a, r: (1.0 - r * r,),
            c="tanh{f}({0})",
        ),
        Op("abs", np.abs, _called("llvm.fabs.{s}"), partials=_sign, c="fabs{f}({0})"),
        Op("floor", np.floor, _called("llvm.floor.{s}"), c="floor{f}({0})"),
        Op(
            "min",
            np.minimum,
            _called("llvm.minimum.{s}", 2),
            commutative=True,
            selects=lambda a, b: (a <= b, 0, 1),
            c="phipsi_min({0}, {1})",
        ),
        Op(
            "max",
            np.maximum,
            _called("llvm.maximum.{s}", 2),
            commutative=True,
            selects=lambda a, b: (b <= a, 0, 1),
            c="phipsi_max({0}, {1})",
        ),
        Op("less", _truth(np.less), _compared("olt"), infix="<"),
        Op("less_equal", _truth(np.less_equal), _compared("ole"), infix="<="),
        Op("equal", _truth(np.equal), _compared("oeq"), commutative=True, infix="=="),
        Op(
            "where",
            _where,
            "{r}.c = fcmp une {T} {0}, zeroinitializer;{r} = select {m} {r}.c, {T} {1}, {T} {2}",
            selects=lambda c, a, b: (c, 1, 2),
            c="{0} != 0 ? {1} : {2}",
        ),
    )
}
"""Every operation by name. `const`, `input` and what deals with arrays are structure, not
arithmetic."""
