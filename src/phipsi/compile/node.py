"""A traced scalar: it records what is done to it.

`Node` follows NumPy's protocols, so that plain NumPy code runs on it alone, in object arrays, and
in `Traced` arrays (arrays.py). A condition on a Node cannot be asked in Python: use `where`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np


class TraceError(TypeError):
    """Something was asked of a traced value that only a number can answer."""


class Node:
    """A traced scalar: one node of the graph under construction."""

    __slots__ = ("args", "index", "op", "tracer", "value")
    __array_priority__ = 1000

    def __init__(self, tracer: Builder, index: int, op: str, args: tuple[Node, ...], value: Any):
        self.tracer, self.index, self.op, self.args, self.value = tracer, index, op, args, value

    # arithmetic; each returns NotImplemented for arrays, which then go element by element
    def __add__(self, other: Any) -> Any:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _binary("add", self, other)

    def __sub__(self, other: Any) -> Any:
        return _binary("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _binary("rsub", self, other)

    def __mul__(self, other: Any) -> Any:
        return _binary("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _binary("mul", self, other)

    def __truediv__(self, other: Any) -> Any:
        return _binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _binary("rdiv", self, other)

    def __neg__(self) -> Node:
        return self.tracer.fold("neg", self)

    def __pos__(self) -> Node:
        return self

    def __abs__(self) -> Node:
        return self.tracer.apply("abs", self)

    def __pow__(self, exponent: Any) -> Any:
        return _binary("power", self, exponent)

    def __rpow__(self, base: Any) -> Any:
        return self.tracer.fold("power", self.tracer.lift(base), self)

    # comparisons give 0 or 1
    def __lt__(self, other: Any) -> Any:
        return _compare("less", self, other)

    def __gt__(self, other: Any) -> Any:
        return _compare("less", other, self)

    def __le__(self, other: Any) -> Any:
        return _compare("less_equal", self, other)

    def __ge__(self, other: Any) -> Any:
        return _compare("less_equal", other, self)

    def __eq__(self, other: object) -> Any:
        return _compare("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return 1.0 - _compare("equal", self, other)

    def __and__(self, other: Any) -> Any:
        return _binary("both", self, other)

    def __or__(self, other: Any) -> Any:
        return _binary("either", self, other)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Any:
        return self.tracer.fold("negation", self)

    def __hash__(self) -> int:
        return id(self)

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
            "a traced value is not a number yet; keep to NumPy arithmetic and phipsi functions"
        )

    def __repr__(self) -> str:
        return f"{self.value!r}" if self.op == "const" else f"%{self.index}"

    # what NumPy asks of the elements of object arrays
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

    def arctan2(self, other: Any) -> Node:
        """The angle of the point (other, x)."""
        return self.tracer.apply("atan2", self, other)

    def conjugate(self) -> Node:
        """x, which is real."""
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return self.tracer.call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self.tracer.call_function(func, args, kwargs)


class Builder(ABC):
    """What makes nodes: the interface of `Tracer` (trace.py), which builds the graph."""

    inputs: list[tuple[str, int]]
    """Name and size of each input of the graph."""
    unfinished: list[Callable[[], None]]
    """What must be called before the graph is whole."""

    @abstractmethod
    def make(self, op: str, args: tuple[Node, ...] = (), value: Any = None) -> Node:
        """The one node with this content."""

    @abstractmethod
    def lift(self, x: Any) -> Node:
        """A number, or a node of an outer graph, as a node of this graph."""

    @abstractmethod
    def apply(self, op: str, *operands: Any) -> Node:
        """The node of an operation of `OPS`."""

    @abstractmethod
    def fold(self, rule: str, *operands: Node) -> Node:
        """The node of an operator of Python, by its algebraic rule in fold.py."""

    @abstractmethod
    def call_ufunc(self, ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
        """A ufunc of NumPy on nodes."""

    @abstractmethod
    def call_function(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Another function of NumPy on nodes."""


T = TypeVar("T", bound=Builder)


_current: ContextVar[Builder | None] = ContextVar("phipsi_tracer", default=None)


def current() -> Builder | None:
    """The trace in progress, if any."""
    return _current.get()


@contextmanager
def tracing(tracer: T) -> Iterator[T]:
    """Make a tracer the current one."""
    token = _current.set(tracer)
    try:
        yield tracer
    finally:
        _current.reset(token)


def _binary(rule: str, a: Node, other: Any) -> Any:
    if type(other) is Node:
        if a.tracer is not other.tracer:
            a, other = _same(a, other)
        return a.tracer.fold(rule, a, other)
    if isinstance(other, (float, int, np.floating, np.integer, np.bool_)):
        return a.tracer.fold(rule, a, a.tracer.lift(other))
    return NotImplemented


def _same(a: Node, b: Node) -> tuple[Node, Node]:
    """Both nodes in the innermost of their graphs."""
    inner = current() or a.tracer
    return inner.lift(a), inner.lift(b)


def _compare(op: str, a: Any, b: Any) -> Any:
    for x in (a, b):
        if not isinstance(x, (Node, float, int, np.generic)):
            return NotImplemented
    tracer = next(x for x in (a, b) if isinstance(x, Node)).tracer
    if isinstance(a, Node) and isinstance(b, Node) and a.tracer is not b.tracer:
        tracer = current() or tracer
    return tracer.apply(op, a, b)
