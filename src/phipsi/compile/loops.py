"""Building a `LoopNode`: its memory, shared by all rounds, and a trace of each kind of round."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from phipsi.compile.graph import Case, LoopNode, MemoryPlace
from phipsi.compile.node import Builder, Node, TraceError, current
from phipsi.compile.trace import Tracer
from phipsi.typing import Array, ArrayLike, Real


class CaseTracer(Tracer):
    """The trace of one kind of round; the scalars it reads from memory are its inputs."""

    def __init__(self, builder: LoopBuilder) -> None:
        super().__init__(builder.outer)
        self.builder = builder
        self.places: dict[MemoryPlace, Node] = {}
        self.written: list[tuple[MemoryPlace, Node]] = []

    def read(self, place: MemoryPlace) -> Node:
        """The scalar that is at a place when the round begins."""
        node = self.places.get(place)
        if node is None:
            node = self.places[place] = self.make("input", (), (0, len(self.places)))
        return node

    def write(self, place: MemoryPlace, value: Real) -> None:
        """Write a scalar to a place at the end of the round."""
        self.written.append((place, self.lift(value)))

    def capture(self, x: Node) -> Node:
        """A scalar of the enclosing trace, which is the same in every round."""
        return self.lift(x.value) if x.op == "const" else self.read(self.builder.fixed(x))

    def frozen(self) -> Case:
        """The finished case; places whose value the body does not use are not read."""
        self.inputs = [("read", len(self.places))]
        body = self.graph([("written", [value for _, value in self.written])])
        elements: set[int] = {n.value[1] for n in body.nodes if n.op == "input"}
        used = sorted(elements)
        number = {old: new for new, old in enumerate(used)}
        places = list(self.places)
        body = body.with_inputs((("read", len(used)),), number)
        return Case(body, tuple(places[j] for j in used), tuple(place for place, _ in self.written))


class LoopBuilder:
    """Collects the parts of a loop; `node` makes the loop a node of the enclosing trace."""

    def __init__(self, count: int, outer: Builder | None = None) -> None:
        outer = outer or current()
        if outer is None:
            raise TraceError("a loop can only be made inside a program")
        self.outer, self.count = outer, count
        self.size = 0
        self.cleared: tuple[int, int] = (0, 0)
        self.choice = np.zeros(count, np.int64)
        self.cases: list[CaseTracer] = []
        self._arrays: list[Node] = []
        self._start: dict[int, Node] = {}
        self._fixed: dict[int, MemoryPlace] = {}
        self._indices: dict[bytes, int] = {}
        self._tables: list[Array] = []

    def memory(self, size: int) -> int:
        """Allocate `size` scalars of the memory; returns the address of the first."""
        self.size += size
        return self.size - size

    def put(self, at: int, value: Real) -> None:
        """Set the scalar at an address of the memory before the first round."""
        self._start[at] = self.outer.lift(value)

    def fixed(self, x: Node) -> MemoryPlace:
        """The place in the memory that holds a scalar of the enclosing trace in all rounds."""
        x = self.outer.lift(x)
        if x.index not in self._fixed:
            at = self.memory(1)
            self.put(at, x)
            self._fixed[x.index] = MemoryPlace(0, self.index(np.zeros(self.count, np.int64)), at)
        return self._fixed[x.index]

    def index(self, values: ArrayLike) -> int:
        """The number of an index table, which has one integer for each round."""
        row = np.ascontiguousarray(values, np.int64)
        return self._indices.setdefault(row.tobytes(), len(self._indices))

    def row(self, number: int) -> Array:
        """The index table with this number."""
        return np.frombuffer(list(self._indices)[number], np.int64)

    def array(self, node: Node) -> int:
        """The number by which a `MemoryPlace` refers to an array of the enclosing trace."""
        if not any(node is a for a in self._arrays):
            self._arrays.append(node)
        return 1 + next(i for i, a in enumerate(self._arrays) if a is node)

    def table(self, numbers: Array) -> int:
        """Add constants to the loop's table; returns the position of the first."""
        at = sum(t.size for t in self._tables)
        self._tables.append(np.asarray(numbers, float).reshape(-1))
        return at

    def like(
        self, loop: LoopNode, arrays: Sequence[Node], indices: Array
    ) -> Callable[[MemoryPlace], MemoryPlace]:
        """A function that translates places of another loop into places of this one.

        This loop gets the arrays and the table of the other, and `indices` as its index tables.
        """
        rows = [self.index(row) for row in indices]
        table = self.table(loop.table)
        numbers = {k: self.array(array) for k, array in enumerate(arrays, 1)}

        def translate(place: MemoryPlace) -> MemoryPlace:
            column = place.column + (table if place.array < 0 else 0)
            return MemoryPlace(
                numbers.get(place.array, place.array), rows[place.rows], column, place.add
            )

        return translate

    def case(self) -> CaseTracer:
        """The trace of a new kind of round; `choice` says which rounds are of this kind."""
        self.cases.append(CaseTracer(self))
        return self.cases[-1]

    def finished(self, cases: Sequence[Case]) -> tuple[tuple[Node, ...], LoopNode]:
        """The operands and the value of the loop node."""
        rows = [self.row(k) for k in range(len(self._indices))]
        loop = LoopNode(
            self.count,
            tuple(cases),
            self.choice,
            np.array(rows, np.int64).reshape(len(rows), self.count),
            np.concatenate([np.zeros(0), *self._tables]),
            self.size,
            tuple(self._start),
            self.cleared,
        )
        return (*self._arrays, *self._start.values()), loop

    def node(self) -> Node:
        """The loop as a node of the enclosing trace: the array of its memory after all rounds."""
        args, loop = self.finished([case.frozen() for case in self.cases])
        return self.outer.make("loop", args, loop)


def array_of(scalars: Sequence[Real]) -> Node:
    """The array node of the given scalars: `array` if they are exactly one input, else `pack`."""
    tracer = current()
    if tracer is None:
        raise TraceError("arrays of scalars exist only inside a program")
    nodes = [tracer.lift(x) for x in scalars]
    first = nodes[0] if nodes else None
    if tracer.inputs and first is not None and first.op == "input" and first.value[1] == 0:
        k = first.value[0]
        if len(nodes) == tracer.inputs[k][1] and all(
            n.op == "input" and n.value == (k, i) for i, n in enumerate(nodes)
        ):
            return tracer.make("array", (), k)
    return tracer.make("pack", tuple(nodes))


def pick(array: Node, at: int) -> Node:
    """The node of one element of an array."""
    if array.op == "pack":
        return array.args[at]
    if array.op == "array":
        return array.tracer.make("input", (), (array.value, int(at)))
    return array.tracer.make("pick", (array,), int(at))


def length(array: Node) -> int:
    """The number of scalars of an array."""
    if array.op == "array":
        number: int = array.value
        return array.tracer.inputs[number][1]
    if array.op == "loop":
        loop: LoopNode = array.value
        return loop.size
    return len(array.args)
