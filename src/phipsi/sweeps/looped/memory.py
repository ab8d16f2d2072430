"""The memory of looped sweeps: which columns are stored, and where."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from phipsi.compile import Case, Graph, LoopBuilder, LoopNode, MemoryPlace, Node
from phipsi.sweeps.looped.traces import Column, Key, LoopedSweep, Shared


def lay_out(shared: Shared) -> None:
    """Make every sweep a loop whose memory holds only the columns that are read: a row for each
    body and one for the world, then rows of sums, which start at zero."""
    wanted: dict[LoopedSweep, set[Column]] = defaultdict(set)
    for _, sweep, _, column in shared.picks:
        wanted[sweep].add(column)
    memories = {s: SweepMemory(s, wanted) for s in reversed(shared.sweeps)}
    for sweep in shared.sweeps:
        args, loop = memories[sweep].loop(memories)
        sweep.node.args, sweep.node.value = args, loop
    for node, sweep, row, column in shared.picks:
        node.value = memories[sweep].position(row, column)


class SweepMemory:
    """The memory of one sweep: the columns that are read later, their positions, and the step of
    each kind of body without the operations that no such column needs."""

    def __init__(self, sweep: LoopedSweep, wanted: dict[LoopedSweep, set[Column]]) -> None:
        self.sweep = sweep
        columns = wanted[sweep]
        while True:
            self.cases = [self._pruned(kind, columns) for kind in range(len(sweep.tracers))]
            read = [
                key for _, keys, _ in self.cases for key in keys
                if key[0] == "own" or key[0] == "parent"
            ]  # fmt: skip
            here = {column for _, owner, column in read if owner is sweep}
            if here <= columns:
                break
            columns |= here
        for _, owner, column in read:
            wanted[owner].add(column)
        common = sorted(c for c in columns if c.what == "field")
        own = [sorted(c for c in columns if c.what == "node" and c.name == kind)
               for kind in range(len(sweep.tracers))]  # fmt: skip
        sums = sorted(c for c in columns if c.what == "sum")
        self.rows, self.width = sweep.rows.size + 1, len(common) + max(map(len, own))
        self.at = {c: j for j, c in enumerate(common)}
        for mine in own:
            self.at.update({c: len(common) + j for j, c in enumerate(mine)})
        self.at.update({c: self.rows * self.width + j for j, c in enumerate(sums)})
        self.summed = len(sums)

    def _pruned(self, kind: int, columns: set[Column]) -> tuple[Graph, list[Key], list[Column]]:
        """The graph, the keys it reads and the columns it writes, for bodies of a kind."""
        tracer = self.sweep.tracers[kind]
        left = {**self.sweep.values, **self.sweep.sums}
        written = sorted(c for c in columns if kind in left.get(c, ()))
        tracer.inputs = [("read", len(tracer.keys))]
        graph = tracer.graph([("written", [left[c][kind] for c in written])])
        used = sorted({n.value[1] for n in graph.nodes if n.op == "input"})
        keys = list(tracer.keys)
        graph = graph.with_inputs((("read", len(used)),), {j: i for i, j in enumerate(used)})
        return graph, [keys[j] for j in used], written

    def stride(self, column: Column) -> int:
        """The distance from one body's row to the next."""
        return self.summed if column.what == "sum" else self.width

    def position(self, row: int, column: Column) -> int:
        """The position of a scalar in the memory."""
        return row * self.stride(column) + self.at[column]

    def loop(self, memories: dict[LoopedSweep, SweepMemory]) -> tuple[tuple[Node, ...], LoopNode]:
        """Arguments and value of the loop node."""
        sweep, shared = self.sweep, self.sweep.shared
        order, rows = sweep.order, sweep.rows
        bodies = rows.bodies[order]
        builder = LoopBuilder(len(order), shared.outer)
        first = builder.memory(self.rows * self.width)
        sums = builder.memory(self.rows * self.summed)
        builder.cleared = (sums, sums + self.rows * self.summed)
        builder.choice = shared.kind_of[bodies]
        for column, value in sweep.world.items():
            if column in self.at:
                builder.put(first + self.position(rows.size, column), value)

        def place(kind: int, key: Key, tables: dict[Key, int], width: int) -> MemoryPlace:
            match key:
                case ("own" | "parent" as whose, owner, column):
                    there = rows.within(owner.rows, order)
                    there = there if whose == "own" else owner.sources[there]
                    memory = memories[owner]
                    array = 0 if owner is sweep else builder.array(owner.node)
                    return MemoryPlace(
                        array, builder.index(there * memory.stride(column)), memory.at[column]
                    )
                case ("vector", number, j):
                    node, _, offsets, its = shared.vectors[number]
                    places = builder.index(offsets[rows.within(its, order)])
                    return MemoryPlace(builder.array(node), places, j)
                case ("fixed", node):
                    return builder.fixed(node)
                case ("table", _):
                    mine = np.where(shared.kind_of == kind, shared.rank, 0)[bodies]
                    return MemoryPlace(-1, builder.index(width * mine), tables[key])

        def left(column: Column) -> MemoryPlace:
            added = column.what == "sum"
            target = sweep.targets[order] if added else order
            return MemoryPlace(
                0, builder.index(target * self.stride(column)), self.at[column], added
            )

        cases: list[Case] = []
        for kind, (graph, keys, written) in enumerate(self.cases):
            numbers = [key for key in keys if key[0] == "table"]
            columns = [shared.kinds[kind].columns[j] for _, j in numbers]
            start = builder.table(np.array(columns, float).T) if columns else 0
            tables: dict[Key, int] = {key: start + j for j, key in enumerate(numbers)}
            reads = tuple(place(kind, key, tables, len(numbers)) for key in keys)
            cases.append(Case(graph, reads, tuple(left(column) for column in written)))
        return builder.finished(cases)
