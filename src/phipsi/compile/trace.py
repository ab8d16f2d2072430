"""Tracing: building a hash-consed graph, simplified on the way, from operations on its nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, compress
from typing import Any, ClassVar

import numpy as np

from phipsi.compile import arrays, fold
from phipsi.compile.graph import Graph, Instruction
from phipsi.compile.node import Builder, Function, Node, Rule, TraceError, TraceTooLarge
from phipsi.compile.ops import OPS
from phipsi.compile.verify import verified
from phipsi.typing import Array, Real


class Tracer(Builder):
    """Builds one graph. Equal nodes are one node, and arithmetic on constants is folded."""

    rules: ClassVar[Mapping[str, Rule]] = {
        rule.__name__: rule
        for rule in (
            fold.add, fold.sub, fold.rsub, fold.mul, fold.div, fold.rdiv, fold.neg, fold.power,
            fold.both, fold.either, fold.negation,
        )
    }  # fmt: skip

    def __init__(self, outer: Builder | None = None, most: int | None = None) -> None:
        self.outer = outer
        self.most = outer.most if outer is not None and most is None else most
        self.inputs = []
        self.unfinished = []
        self.constants: dict[float, Node] = {}
        self.table: dict[tuple[str, tuple[Node, ...], Any], Node] = {}

    def make(self, op: str, args: tuple[Node, ...] = (), value: Any = None) -> Node:
        """The one node of this graph with this operation, operands and value."""
        key = (op, args, value)  # nodes are hashed by identity
        node = self.table.get(key)
        if node is None:
            if self.most is not None and len(self.table) >= self.most:
                raise TraceTooLarge
            node = self.table[key] = Node(self, len(self.table), op, args, value)
        return node

    def lift(self, x: Real) -> Node:
        """x as a node of this graph: a number becomes a constant, a node of an outer graph is
        captured."""
        if isinstance(x, Node):
            return x if x.tracer is self else self.capture(x)
        number: Any = x  # `Node` is the only TracedReal
        value = float(number) + 0.0
        node = self.constants.get(value)
        if node is None:
            node = self.constants[value] = self.make("const", (), value)
        return node

    def capture(self, x: Node) -> Node:
        """A node of another trace as a node of this one."""
        raise TraceError("a traced value was kept and used in another trace")

    def input(self, name: str, size: int) -> Array:
        """The `size` nodes of a new input."""
        self.inputs.append((name, size))
        k = len(self.inputs) - 1
        out = np.empty(size, object)
        for i in range(size):
            out[i] = self.make("input", (), (k, i))
        return out

    def apply(self, op: str, *operands: Real) -> Node:
        """The node of an operation, by no other rule than to fold constants."""
        args = [self.lift(x) for x in operands]
        if all(a.op == "const" for a in args):
            return self.lift(_evaluate(op, args))
        if OPS[op].commutative:
            args.sort(key=lambda a: a.index)
        if op == "where" and (args[0].op == "const" or args[1] is args[2]):
            return args[1] if args[0].op != "const" or args[0].value else args[2]
        return self.make(op, tuple(args))

    def call_ufunc(
        self, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Real | Array:
        """The result of a NumPy ufunc on nodes."""
        return arrays.call_ufunc(ufunc, method, inputs, kwargs)

    def call_function(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a NumPy function that is not a ufunc, on nodes."""
        return arrays.call_function(func, args, kwargs)

    def graph(self, outputs: Sequence[tuple[str, Sequence[Real]]]) -> Graph:
        """The frozen graph of these outputs, without the nodes that none of them needs."""
        for finish in self.unfinished:
            finish()
        chosen = [(name, [self.lift(x) for x in values]) for name, values in outputs]
        nodes = list(self.table.values())
        needed = bytearray(len(nodes))
        for _, values in chosen:
            for node in values:
                needed[node.index] = 1
        for node in reversed(nodes):
            if needed[node.index]:
                for operand in node.args:
                    needed[operand.index] = 1
        number = list(accumulate(needed, initial=0))
        kept = [
            Instruction(node.op, tuple([number[a.index] for a in node.args]), node.value)
            for node in compress(nodes, needed)
        ]
        ends = [(name, tuple([number[x.index] for x in values])) for name, values in chosen]
        return verified(Graph(tuple(self.inputs), tuple(kept), tuple(ends)), "tracing")

    def release(self) -> None:
        """Drop the nodes. They refer to their tracer; without this cycle they are freed at once."""
        self.table.clear()
        self.constants.clear()


def _evaluate(op: str, args: list[Node]) -> float:
    with np.errstate(all="ignore"):
        return float(OPS[op].evaluate(*(np.float64(a.value) for a in args)))
