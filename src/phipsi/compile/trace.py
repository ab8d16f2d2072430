"""Tracing: scalars that record what is done to them in a hash-consed, folded graph.

`Node` is one scalar. It follows NumPy's protocols, so that plain NumPy code runs on it alone, in
object arrays, and in `Traced` arrays (arrays.py). A condition on a Node cannot be asked in Python:
use `where`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from phipsi.compile import fold
from phipsi.compile.graph import Graph, Instruction
from phipsi.compile.ops import OPS


class TraceError(TypeError):
    """Something was asked of a traced value that only a number can answer."""


class Node:
    """A traced scalar: one node of the graph under construction."""

    __slots__ = ("args", "index", "op", "tracer", "value")
    __array_priority__ = 1000

    def __init__(self, tracer: Tracer, index: int, op: str, args: tuple[Node, ...], value: Any):
        self.tracer, self.index, self.op, self.args, self.value = tracer, index, op, args, value

    # arithmetic; each returns NotImplemented for arrays, which then go element by element
    def __add__(self, other: Any) -> Any:
        return _binary(fold.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _binary(fold.add, self, other)

    def __sub__(self, other: Any) -> Any:
        return _binary(fold.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _binary(fold.rsub, self, other)

    def __mul__(self, other: Any) -> Any:
        return _binary(fold.mul, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _binary(fold.mul, self, other)

    def __truediv__(self, other: Any) -> Any:
        return _binary(fold.div, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _binary(fold.rdiv, self, other)

    def __neg__(self) -> Node:
        return fold.neg(self)

    def __pos__(self) -> Node:
        return self

    def __abs__(self) -> Node:
        return self.tracer.apply("abs", self)

    def __pow__(self, exponent: Any) -> Any:
        return _binary(fold.power, self, exponent)

    def __rpow__(self, base: Any) -> Any:
        return fold.power(self.tracer.lift(base), self)

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
        return _binary(fold.both, self, other)

    def __or__(self, other: Any) -> Any:
        return _binary(fold.either, self, other)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Any:
        return fold.negation(self)

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
        if method == "__call__" and not any(isinstance(x, np.ndarray) and x.ndim for x in inputs):
            from phipsi.compile.functions import UFUNCS

            function = UFUNCS.get(ufunc)
            if function is None:
                raise TraceError(f"np.{ufunc.__name__} cannot be traced")
            return function(*(x.item() if isinstance(x, np.ndarray) else x for x in inputs))
        boxed = [_boxed(x) if isinstance(x, Node) else x for x in inputs]
        return getattr(ufunc, method)(*boxed, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from phipsi.compile.arrays import call_function

        return call_function(func, args, kwargs)


class Tracer:
    """Builds one graph. Equal nodes are one node; arithmetic on constants is done at once."""

    def __init__(self, outer: Tracer | None = None) -> None:
        self.outer = outer
        self.inputs: list[tuple[str, int]] = []
        self.nodes: list[Node] = []
        self.table: dict[Any, Node] = {}
        self.unfinished: list[Callable[[], None]] = []
        """What must be called before the graph is whole."""

    def make(self, op: str, args: tuple[Node, ...] = (), value: Any = None) -> Node:
        """The one node with this content."""
        if op in ("const", "input"):
            key: Any = (op, value)
        elif op == "loop":
            key = (op, *(a.index for a in args), id(value))
        else:
            key = (op, *(a.index for a in args), value)
        node = self.table.get(key)
        if node is None:
            node = self.table[key] = Node(self, len(self.nodes), op, args, value)
            self.nodes.append(node)
        return node

    def lift(self, x: Any) -> Node:
        """x as a node of this graph: a number becomes a constant, a node of an outer graph is
        captured."""
        if isinstance(x, Node):
            return x if x.tracer is self else self.capture(x)
        return self.make("const", (), float(x) + 0.0)

    def capture(self, x: Node) -> Node:
        """A node of another trace, seen from this one."""
        raise TraceError("a traced value was kept and used in another trace")

    def input(self, name: str, size: int) -> np.ndarray:
        """A new input of `size` scalars."""
        self.inputs.append((name, size))
        k = len(self.inputs) - 1
        out = np.empty(size, object)
        for i in range(size):
            out[i] = self.make("input", (), (k, i))
        return out

    def apply(self, op: str, *operands: Any) -> Node:
        """The node of an operation without an algebraic rule of its own; folds constants."""
        args = [self.lift(x) for x in operands]
        if all(a.op == "const" for a in args):
            return self.lift(_evaluate(op, args))
        if OPS[op].commutative:
            args.sort(key=lambda a: a.index)
        if op == "where" and (args[0].op == "const" or args[1] is args[2]):
            return args[1] if args[0].op != "const" or args[0].value else args[2]
        return self.make(op, tuple(args))

    def graph(self, outputs: Sequence[tuple[str, Sequence[Any]]]) -> Graph:
        """Freeze: keep what the outputs need."""
        for finish in self.unfinished:
            finish()
        chosen = [(name, tuple(self.lift(x).index for x in values)) for name, values in outputs]
        nodes = [Instruction(n.op, tuple(a.index for a in n.args), n.value) for n in self.nodes]
        return Graph.pruned(self.inputs, nodes, chosen)


_current: ContextVar[Tracer | None] = ContextVar("phipsi_tracer", default=None)


def current() -> Tracer | None:
    """The trace in progress, if any."""
    return _current.get()


@contextmanager
def tracing(tracer: Tracer) -> Iterator[Tracer]:
    """Make a tracer the current one."""
    token = _current.set(tracer)
    try:
        yield tracer
    finally:
        _current.reset(token)


def _binary(rule: Callable[[Node, Node], Node], a: Node, other: Any) -> Any:
    if type(other) is Node:
        if a.tracer is not other.tracer:
            a, other = _same(a, other)
        return rule(a, other)
    if isinstance(other, (float, int, np.floating, np.integer, np.bool_)):
        return rule(a, a.tracer.lift(other))
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


def _evaluate(op: str, args: list[Node]) -> float:
    with np.errstate(all="ignore"):
        return float(OPS[op].evaluate(*(np.float64(a.value) for a in args)))


def _boxed(x: Node) -> np.ndarray:
    box = np.empty((), object)
    box[()] = x
    return box
