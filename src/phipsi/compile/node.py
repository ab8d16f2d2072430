"""Traced scalars: nodes that record the operations applied to them.

`Node` follows NumPy's protocols, so that plain NumPy code runs on single nodes, on object arrays of
nodes, and on `Traced` arrays (arrays.py). Python cannot branch on a node: use `where`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, TypeVar

import numpy as np

from phipsi.typing import Array, Real


class TraceError(TypeError):
    """An operation that cannot be traced, such as a Python `if` on a traced value.

    While a program is traced its arrays have no numbers yet. They take the arithmetic and the
    functions of NumPy listed in `phipsi.compile.functions`, and `phipsi.linalg`; instead of
    branching on a value a program calls `phipsi.where`.

    Examples
    --------
    >>> from phipsi.compile import TraceError, Tracer
    >>> (x,) = Tracer().input("x", 1)
    >>> try:
    ...     bool(x > 0.0)
    ... except TraceError:
    ...     print("the sign of x is not known while tracing")
    the sign of x is not known while tracing
    """


class TraceTooLarge(Exception):
    """A trace has more nodes than its tracer was allowed."""


Function = Callable[..., Any]
"""A function of NumPy that is not a ufunc."""


class Node:
    """A traced scalar: one node of the graph under construction."""

    __slots__ = ("args", "index", "op", "tracer", "value")
    __array_priority__ = 1000

    def __init__(self, tracer: Builder, index: int, op: str, args: tuple[Node, ...], value: Any):
        self.tracer, self.index, self.op, self.args, self.value = tracer, index, op, args, value

    # Arithmetic. For an array these return NotImplemented: NumPy then goes element by element.
    def __add__(self, other: Real) -> Node:
        return _binary("add", self, other)

    def __radd__(self, other: Real) -> Node:
        return _binary("add", self, other)

    def __sub__(self, other: Real) -> Node:
        return _binary("sub", self, other)

    def __rsub__(self, other: Real) -> Node:
        return _binary("rsub", self, other)

    def __mul__(self, other: Real) -> Node:
        return _binary("mul", self, other)

    def __rmul__(self, other: Real) -> Node:
        return _binary("mul", self, other)

    def __truediv__(self, other: Real) -> Node:
        return _binary("div", self, other)

    def __rtruediv__(self, other: Real) -> Node:
        return _binary("rdiv", self, other)

    def __neg__(self) -> Node:
        return self.tracer.rules["neg"](self)

    def __pos__(self) -> Node:
        return self

    def __abs__(self) -> Node:
        return self.tracer.apply("abs", self)

    def __pow__(self, exponent: Real) -> Node:
        return _binary("power", self, exponent)

    def __rpow__(self, base: Real) -> Node:
        return self.tracer.rules["power"](self.tracer.lift(base), self)

    # Comparisons give 0 or 1.
    def __lt__(self, other: Real) -> Node:
        return _compare("less", self, other)

    def __gt__(self, other: Real) -> Node:
        return _compare("less", other, self)

    def __le__(self, other: Real) -> Node:
        return _compare("less_equal", self, other)

    def __ge__(self, other: Real) -> Node:
        return _compare("less_equal", other, self)

    def __eq__(self, other: object) -> Any:
        return _compare("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return 1.0 - _compare("equal", self, other)

    def __and__(self, other: Real) -> Node:
        return _binary("both", self, other)

    def __or__(self, other: Real) -> Node:
        return _binary("either", self, other)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Node:
        return self.tracer.rules["negation"](self)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        if self.op == "const":
            return bool(self.value)
        raise TraceError(
            "a program may not branch on a traced value (if, and, while); "
            "use phipsi.where(condition, a, b)"
        )

    def __float__(self) -> float:
        if self.op == "const":
            return self.value
        raise TraceError(
            "a traced value is not a number yet, which float(), math and arrays of numbers need; "
            "assign into an array of phipsi.zeros instead of numpy.zeros, or join the parts with "
            "numpy.concatenate, and call functions of numpy or phipsi"
        )

    def __repr__(self) -> str:
        return f"{self.value!r}" if self.op == "const" else f"%{self.index}"

    # Methods that NumPy's functions call on the elements of object arrays.
    def sqrt(self) -> Node:
        """√x."""
        return self.tracer.apply("sqrt", self)

    def sin(self) -> Node:
        """sin x."""
        return self.tracer.apply("sin", self)

    def cos(self) -> Node:
        """cos x."""
        return self.tracer.apply("cos", self)

    def exp(self) -> Node:
        """eˣ."""
        return self.tracer.apply("exp", self)

    def log(self) -> Node:
        """The natural logarithm."""
        return self.tracer.apply("log", self)

    def tanh(self) -> Node:
        """tanh x."""
        return self.tracer.apply("tanh", self)

    def floor(self) -> Node:
        """The largest integer not above x."""
        return self.tracer.apply("floor", self)

    def arctan2(self, other: Real) -> Node:
        """The angle of the point (other, x)."""
        return self.tracer.apply("atan2", self, other)

    def conjugate(self) -> Node:
        """x, which is real."""
        return self

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return self.tracer.call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, func: Function, types: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return self.tracer.call_function(func, args, kwargs)


Rule = Callable[..., Node]
"""Makes the node of a Python operator from the nodes of its operands."""


class Builder(ABC):
    """Makes nodes: the interface of `Tracer` (trace.py), which builds the graph."""

    rules: ClassVar[Mapping[str, Rule]]
    """The algebraic rules of Python's operators (fold.py), which make simplified nodes."""
    inputs: list[tuple[str, int]]
    """Name and size of each input of the graph."""
    unfinished: list[Callable[[], None]]
    """Functions to call before the graph is frozen."""
    most: int | None
    """The largest number of nodes, if there is one; the traces of loops have the same."""

    @abstractmethod
    def make(self, op: str, args: tuple[Node, ...] = (), value: Any = None) -> Node:
        """The one node of this graph with this operation, operands and value."""

    @abstractmethod
    def lift(self, x: Real) -> Node:
        """A number, or a node of an outer graph, as a node of this graph."""

    @abstractmethod
    def apply(self, op: str, *operands: Real) -> Node:
        """The node of an operation of `OPS`."""

    @abstractmethod
    def call_ufunc(
        self, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Real | Array:
        """The result of a NumPy ufunc on nodes."""

    @abstractmethod
    def call_function(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a NumPy function that is not a ufunc, on nodes."""


T = TypeVar("T", bound=Builder)


_current: ContextVar[Builder | None] = ContextVar("phipsi_tracer", default=None)


def current() -> Builder | None:
    """The trace in progress, if any."""
    return _current.get()


@contextmanager
def tracing(tracer: T) -> Generator[T, None, None]:
    """Make a tracer the trace in progress within a `with` block."""
    token = _current.set(tracer)
    try:
        yield tracer
    finally:
        _current.reset(token)


def _binary(rule: str, a: Node, other: Real) -> Node:
    if type(other) is Node:
        if a.tracer is not other.tracer:
            a, other = _in_one_graph(a, other)
        return a.tracer.rules[rule](a, other)
    if isinstance(other, (float, int, np.floating, np.integer, np.bool_)):
        return a.tracer.rules[rule](a, a.tracer.lift(other))
    return NotImplemented


def _in_one_graph(a: Node, b: Node) -> tuple[Node, Node]:
    """Both nodes as nodes of the trace in progress, the innermost of their graphs."""
    inner = current() or a.tracer
    return inner.lift(a), inner.lift(b)


def _compare(op: str, a: Any, b: Any) -> Node:
    for x in (a, b):
        if not isinstance(x, (Node, float, int, np.generic)):
            return NotImplemented
    tracer = next(x for x in (a, b) if isinstance(x, Node)).tracer
    if isinstance(a, Node) and isinstance(b, Node) and a.tracer is not b.tracer:
        tracer = current() or tracer
    return tracer.apply(op, a, b)
