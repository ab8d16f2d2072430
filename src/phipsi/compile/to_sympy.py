"""Graphs as SymPy expressions: for reading, for algebra by hand, for code generators.

The nodes of a graph are evaluated once each, with loops unrolled. A value that is used more than
once gets a name, so that time and memory grow with the number of operations and not with the length
of the formula.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache as once
from importlib import import_module
from typing import Any, Protocol, TypeVar

from phipsi.compile.graph import Graph, LoopNode

CLOSE = 1e-12
"""Relative error within which a constant is taken for a rounded short number."""


def sympy() -> Any:
    """The module SymPy, whose own types are too narrow."""
    try:
        return import_module("sympy")
    except ImportError:
        raise ImportError('formulas need SymPy: pip install "phipsi[symbolic]"') from None


V = TypeVar("V")


class Algebra(Protocol[V]):
    """The values with which a graph is evaluated; constants of the graph are floats."""

    def apply(self, op: str, args: list[V | float]) -> V:
        """The value of an operation of `OPS`."""
        ...

    def shared(self, value: V) -> V:
        """A value that is used more than once, as its users get it."""
        ...


def walk(
    graph: Graph, inputs: Sequence[Sequence[V | float]], algebra: Algebra[V]
) -> list[list[V | float]]:
    """Every output of the graph, as values of an algebra."""
    values: list[Any] = []
    number: int
    element: int
    result: Any
    for i, (op, args, value) in enumerate(graph.nodes):
        given = [values[a] for a in args]
        match op:
            case "const":
                result = value
            case "input":
                number, element = value
                result = inputs[number][element]
            case "array":
                number = value
                result = inputs[number]
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


def _unrolled(loop: LoopNode, args: list[Any], algebra: Algebra[Any]) -> list[Any]:
    """The memory of a loop after its last round."""
    which: int
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


def is_truth(x: object) -> bool:
    """Whether a value is a truth value of SymPy, and not a number."""
    s = sympy()
    return isinstance(x, s.logic.boolalg.Boolean) and not isinstance(x, s.Expr)


@once
def meanings() -> dict[str, Callable[..., Any]]:
    """Each operation of `OPS` as a function on SymPy expressions, and `number`, which makes a truth
    value a number. Comparisons give SymPy's truth values."""
    s = sympy()

    def truths(*args: object) -> bool:
        return all(map(is_truth, args))

    def where(condition: object, *choices: object) -> Any:
        a, b = map(number, choices)
        holds = condition if truths(condition) else s.Ne(condition, 0)
        return s.Piecewise((a, holds), (b, True))

    def sub(a: Any, b: Any) -> Any:
        return s.Not(b) if a == 1 and truths(b) else number(a) - number(b)

    def number(x: Any) -> Any:
        return s.Piecewise((1, x), (0, True)) if truths(x) else x

    def least(*args: object) -> Any:
        return s.And(*args) if truths(*args) else s.Min(*map(number, args))

    def greatest(*args: object) -> Any:
        return s.Or(*args) if truths(*args) else s.Max(*map(number, args))

    def numbers(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: function(*map(number, args))

    return {
        "add": numbers(operator.add),
        "sub": sub,
        "mul": numbers(operator.mul),
        "div": numbers(divided),
        "neg": numbers(operator.neg),
        "sqrt": numbers(s.sqrt),
        "sin": numbers(s.sin),
        "cos": numbers(s.cos),
        "atan2": numbers(s.atan2),
        "exp": numbers(s.exp),
        "log": numbers(s.log),
        "tanh": numbers(s.tanh),
        "abs": numbers(s.Abs),
        "floor": numbers(s.floor),
        "min": least,
        "max": greatest,
        "less": numbers(s.Lt),
        "less_equal": numbers(s.Le),
        "equal": numbers(s.Eq),
        "where": where,
        "number": number,
    }


def divided(a: Any, b: Any) -> Any:
    """a / b."""
    return a / b


@once
def tidy(x: float) -> Any:
    """A constant as its author wrote it: a short fraction, perhaps times √2, √3 or π, if it is
    within rounding of one; else the decimal number."""
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
    """The operands of an operation, with constants as numbers of SymPy."""
    return [tidy(a) if isinstance(a, float) else a for a in args]


class Shared:
    """The algebra of SymPy expressions in which each value that is used more than once has a name,
    as from `sympy.cse`. Names in `taken` are not used."""

    def __init__(self, taken: Iterable[str]) -> None:
        s, known = sympy(), set(taken)
        numbered = s.numbered_symbols("x", real=True)
        self.free = (symbol for symbol in numbered if symbol.name not in known)
        self.names: dict[Any, Any] = {}

    def apply(self, op: str, args: list[Any]) -> Any:
        """The expression of an operation."""
        return meanings()[op](*entered(args))

    def shared(self, value: Any) -> Any:
        """The name of a value, or the value itself if it is as short as a name."""
        s = sympy()
        if isinstance(value, float) or not isinstance(value, s.Expr) or _short(value):
            return value
        if value not in self.names:
            self.names[value] = next(self.free)
        return self.names[value]

    @property
    def definitions(self) -> list[tuple[Any, Any]]:
        """Every name with its value, in the order of computation."""
        return [(name, value) for value, name in self.names.items()]


def _short(value: Any) -> bool:
    """Whether an expression is a symbol or a number, perhaps with a minus."""
    return value.is_Atom or (value.is_Mul and len(value.args) == 2 and value.args[0] == -1)
