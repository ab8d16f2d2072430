"""Graphs as SymPy expressions: for reading, for algebra by hand, for code of other kinds.

A graph is walked once, loops unrolled; what is used more than once is named, so that the work and
the memory grow with the number of operations and not with the length of the formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache as once
from typing import Any, Protocol

from phipsi.compile.graph import Graph, LoopNode

CLOSE = 1e-12
"""Relative distance within which a constant is rounding of a short one."""


def sympy() -> Any:
    """The module, or one sentence."""
    try:
        import sympy
    except ImportError:
        raise ImportError('formulas need SymPy: pip install "phipsi[symbolic]"') from None
    return sympy


class Algebra(Protocol):
    """What a walk computes with; constants reach it as floats."""

    def apply(self, op: str, args: list[Any]) -> Any:
        """The value of an operation of `OPS`."""
        ...

    def shared(self, value: Any) -> Any:
        """A value that is used more than once."""
        ...


def walk(graph: Graph, inputs: Sequence[Sequence[Any]], algebra: Algebra) -> list[list[Any]]:
    """Every output of the graph, in the values of an algebra."""
    values: list[Any] = []
    for i, (op, args, value) in enumerate(graph.nodes):
        given = [values[a] for a in args]
        match op:
            case "const":
                result = value
            case "input":
                result = inputs[value[0]][value[1]]
            case "array":
                result = inputs[value]
            case "pack":
                result = given
            case "pick":
                result = given[0][value]
            case "loop":
                result = _unrolled(value, given, algebra)
            case _:
                result = algebra.apply(op, given)
                if len(graph.users[i]) > 1:
                    result = algebra.shared(result)
        values.append(result)
    return [[values[i] for i in indices] for _, indices in graph.outputs]


def _unrolled(loop: LoopNode, args: list[Any], algebra: Algebra) -> list[Any]:
    memory: list[Any] = [0.0] * loop.size
    arrays = len(args) - len(loop.start)
    for at, value in zip(loop.start, args[arrays:], strict=True):
        memory[at] = value
    sources = [memory, *args[:arrays], loop.table.tolist()]  # the table is number −1
    for which, at in zip(loop.choice, loop.indices.T, strict=True):
        case = loop.cases[which]
        read = [sources[p.array][at[p.rows] + p.column] for p in case.reads]
        (written,) = walk(case.body, [read], algebra)
        for p, value in zip(case.writes, written, strict=True):
            target = at[p.rows] + p.column
            if p.add:
                value = algebra.apply("add", [memory[target], value])
            memory[target] = algebra.shared(value)
    return memory


def is_truth(x: Any) -> bool:
    """Is it a truth value (else a number)?"""
    s = sympy()
    return isinstance(x, s.logic.boolalg.Boolean) and not isinstance(x, s.Expr)


@once
def meanings() -> dict[str, Callable[..., Any]]:
    """What each operation of `OPS` is in SymPy. Comparisons give SymPy's truth values."""
    s = sympy()

    def truths(*args: Any) -> bool:
        return all(map(is_truth, args))

    def where(condition: Any, a: Any, b: Any) -> Any:
        holds = condition if truths(condition) else s.Ne(condition, 0)
        return s.Piecewise((number(a), holds), (number(b), True))

    def sub(a: Any, b: Any) -> Any:
        return s.Not(b) if a == 1 and truths(b) else number(a) - number(b)

    def number(x: Any) -> Any:
        return s.Piecewise((1, x), (0, True)) if truths(x) else x

    def numbers(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: function(*map(number, args))

    return {
        "add": numbers(lambda a, b: a + b),
        "sub": sub,
        "mul": numbers(lambda a, b: a * b),
        "div": numbers(lambda a, b: a / b),
        "neg": numbers(lambda a: -a),
        "sqrt": numbers(s.sqrt),
        "sin": numbers(s.sin),
        "cos": numbers(s.cos),
        "atan2": numbers(s.atan2),
        "exp": numbers(s.exp),
        "log": numbers(s.log),
        "tanh": numbers(s.tanh),
        "abs": numbers(s.Abs),
        "floor": numbers(s.floor),
        "min": lambda a, b: s.And(a, b) if truths(a, b) else s.Min(number(a), number(b)),
        "max": lambda a, b: s.Or(a, b) if truths(a, b) else s.Max(number(a), number(b)),
        "less": numbers(s.Lt),
        "less_equal": numbers(s.Le),
        "equal": numbers(s.Eq),
        "where": where,
        "number": number,
    }


@once
def tidy(x: float) -> Any:
    """A constant as it was meant: a short fraction, perhaps of √2, √3 or π, if it is within
    rounding of one; else the decimal number."""
    s = sympy()
    if not math.isfinite(x):
        return s.sympify(x)
    if len(repr(abs(x)).partition("e")[0].replace(".", "").strip("0")) <= 12:
        return s.Rational(repr(x))
    for unit, largest in ((s.Integer(1), 10**5), (s.sqrt(2), 999), (s.sqrt(3), 999), (s.pi, 999)):
        ratio = x / float(unit)
        near = Fraction(ratio).limit_denominator(largest)
        close = 0 < abs(near.numerator) <= largest
        if close and abs(float(near) - ratio) < CLOSE * abs(ratio):
            return s.Rational(near.numerator, near.denominator) * unit
    return s.Float(x)


def entered(args: Sequence[Any]) -> list[Any]:
    """The args of an operation with its constants as SymPy's numbers."""
    return [tidy(a) if isinstance(a, float) else a for a in args]


class Shared:
    """Expressions in which whatever is used more than once has a name, as `sympy.cse` does it, and
    none of those that are taken."""

    def __init__(self, taken: Iterable[str]) -> None:
        s, known = sympy(), set(taken)
        numbered = s.numbered_symbols("x", real=True)
        self.free = (symbol for symbol in numbered if symbol.name not in known)
        self.names: dict[Any, Any] = {}

    def apply(self, op: str, args: list[Any]) -> Any:
        """The expression of an operation."""
        return meanings()[op](*entered(args))

    def shared(self, value: Any) -> Any:
        """The name of a value, or the value where it is as short."""
        s = sympy()
        if isinstance(value, float) or not isinstance(value, s.Expr) or _short(value):
            return value
        if value not in self.names:
            self.names[value] = next(self.free)
        return self.names[value]

    @property
    def definitions(self) -> list[tuple[Any, Any]]:
        """Every name and what it stands for, in order."""
        return [(name, value) for value, name in self.names.items()]


def _short(value: Any) -> bool:
    return value.is_Atom or (value.is_Mul and len(value.args) == 2 and value.args[0] == -1)
