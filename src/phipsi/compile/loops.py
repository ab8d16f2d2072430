"""Building a `LoopNode`: a memory that rounds share, and a trace for each kind of round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phipsi.compile.graph import Case, LoopNode, MemoryPlace
from phipsi.compile.node import Builder, Node, TraceError, current
from phipsi.compile.trace import Tracer


class CaseTracer(Tracer):
    """The trace of one kind of round; what it reads are its inputs."""

    def __init__(self, builder: LoopBuilder) -> None:
        super().__init__(builder.outer)
        self.builder = builder
        self.places: dict[MemoryPlace, Node] = {}
        self.written: list[tuple[MemoryPlace, Node]] = []

    def read(self, place: MemoryPlace) -> Node:
        """The scalar at a place, as it is when the round begins."""
        node = self.places.get(place)
        if node is None:
            node = self.places[place] = self.make("input", (), (0, len(self.places)))
        return node

    def write(self, place: MemoryPlace, value: Any) -> None:
        """Leave a scalar at a place when the round ends."""
        self.written.append((place, self.lift(value)))

    def capture(self, x: Node) -> Node:
        """A scalar of the enclosing trace: the same in every round."""
        return self.lift(x.value) if x.op == "const" else self.read(self.builder.fixed(x))

    def frozen(self) -> Case:
        """The finished case, with the places that are really read."""
        self.inputs = [("read", len(self.places))]
        body = self.graph([("written", [value for _, value in self.written])])
        used = sorted({n.value[1] for n in body.nodes if n.op == "input"})
        number = {old: new for new, old in enumerate(used)}
        places = list(self.places)
        body = body.with_inputs((("read", len(used)),), number)
        return Case(body, tuple(places[j] for j in used), tuple(place for place, _ in self.written))


class LoopBuilder:
    """Collects what a loop needs; `node` makes it a node of the trace in progress."""

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
        self._tables: list[np.ndarray] = []

    def memory(self, size: int) -> int:
        """Room for `size` scalars; where it begins."""
        self.size += size
        return self.size - size

    def put(self, at: int, value: Any) -> None:
        """A scalar that stands in the memory before the first round."""
        self._start[at] = self.outer.lift(value)

    def fixed(self, x: Node) -> MemoryPlace:
        """The place of a scalar of the enclosing trace."""
        x = self.outer.lift(x)
        if x.index not in self._fixed:
            at = self.memory(1)
            self.put(at, x)
            self._fixed[x.index] = MemoryPlace(0, self.index(np.zeros(self.count, np.int64)), at)
        return self._fixed[x.index]

    def index(self, values: Any) -> int:
        """The number of an index table, one whole number a round."""
        row = np.ascontiguousarray(values, np.int64)
        return self._indices.setdefault(row.tobytes(), len(self._indices))

    def row(self, number: int) -> np.ndarray:
        """The index table of that number."""
        return np.frombuffer(list(self._indices)[number], np.int64)

    def array(self, node: Node) -> int:
        """The number of an array of the enclosing trace, as places name it."""
        if not any(node is a for a in self._arrays):
            self._arrays.append(node)
        return 1 + next(i for i, a in enumerate(self._arrays) if a is node)

    def table(self, numbers: np.ndarray) -> int:
        """Numbers to be read by the rounds; where they begin in the loop's table."""
        at = sum(t.size for t in self._tables)
        self._tables.append(np.asarray(numbers, float).reshape(-1))
        return at

    def like(
        self, loop: LoopNode, arrays: Sequence[Node], indices: np.ndarray
    ) -> Callable[[MemoryPlace], MemoryPlace]:
        """Places of another loop as places of this one, which reads the same arrays and numbers,
        with these index tables."""
        rows = [self.index(row) for row in indices]
        table = self.table(loop.table)
        numbers = {k: self.array(array) for k, array in enumerate(arrays, 1)}

        def moved(place: MemoryPlace) -> MemoryPlace:
            column = place.column + (table if place.array < 0 else 0)
            return MemoryPlace(
                numbers.get(place.array, place.array), rows[place.rows], column, place.add
            )

        return moved

    def case(self) -> CaseTracer:
        """A new kind of round; `choice` says which rounds are of it."""
        self.cases.append(CaseTracer(self))
        return self.cases[-1]

    def finished(self, cases: Sequence[Case]) -> tuple[tuple[Node, ...], LoopNode]:
        """The args and the value of the loop node."""
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
        """The loop as a node of the trace: the array of its memory after the last round."""
        args, loop = self.finished([case.frozen() for case in self.cases])
        return self.outer.make("loop", args, loop)


def array_of(scalars: Sequence[Any]) -> Node:
    """The array node of the given scalars: a whole input where they are one, else packed."""
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
    """One element of an array."""
    if array.op == "pack":
        return array.args[at]
    if array.op == "array":
        return array.tracer.make("input", (), (array.value, int(at)))
    return array.tracer.make("pick", (array,), int(at))


def length(array: Node) -> int:
    """How many scalars an array has."""
    if array.op == "array":
        return array.tracer.inputs[array.value][1]
    return array.value.size if array.op == "loop" else len(array.args)
