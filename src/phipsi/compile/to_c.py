"""A graph as statements of C, one scalar at a time: the common part of plain C and CUDA.

Every value is a constant of its own (`const double x12 = ...;`), in trace order. The memory of all
loops is one array. Additions and multiplications are fused here and not by the C compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from phipsi.compile.c_text import Text, sum_of
from phipsi.compile.graph import Case, Graph, LoopNode, MemoryPlace
from phipsi.compile.loop_layout import Layout
from phipsi.compile.ops import OPS
from phipsi.compile.schedule import (
    Item,
    Room,
    early_reads,
    fused_products,
    itemized,
    ordered_writes,
    verify_order,
    with_stores,
)
from phipsi.compile.verify import switched_on
from phipsi.typing import Array


class Scope:
    """The statements of one graph: the whole kernel, or the body of a loop.

    They are appended to `text`; `room` allocates slots in the memory of loops. `local` has the
    names of values, `slots` the slots of arrays, both by node.
    """

    def __init__(self, graph: Graph, text: Text, room: Room) -> None:
        self.graph, self.text, self.room = graph, text, room
        self.local: dict[int, str] = {}
        self.slots: dict[int, int] = {}
        self.layouts: dict[int, Layout] = {}

    # ---- overridden: they differ between kernel and loop body, C and CUDA ----------------------

    def ordered(self) -> list[Item]:
        """The items to emit, in order."""
        raise NotImplementedError

    def entered(self, node: int) -> str:
        """The value of an input of the graph."""
        raise NotImplementedError

    def element(self, k: int, at: str) -> str:
        """The expression of element `at` of input k."""
        raise NotImplementedError

    def result(self, k: int, at: str) -> str:
        """The expression of element `at` of output k, to be assigned to."""
        raise NotImplementedError

    # ---- values --------------------------------------------------------------------------------

    def emit(self) -> None:
        """Append all statements to the text."""
        items = self.ordered()
        if switched_on():
            verify_order(self.graph, items)
        ending: dict[int, int] = {}
        for position, item in enumerate(items):
            ending.update(dict.fromkeys(item.nodes, position))
            ending.update({self._source(x): position for x in item.operands})
        done: dict[int, list[int]] = {}
        for node, position in ending.items():
            done.setdefault(position, []).append(node)
        for position, item in enumerate(items):
            getattr(self, item.kind)(item)
            for node in done.get(position, ()):
                if node in self.slots:
                    self.room.release(self.slots.pop(node), self._length(node))

    def value(self, node: int) -> str:
        """The name of a node's value, or its literal."""
        op, args, value = self.graph.nodes[node]
        if op == "const":
            return self.text.constant(value)
        if node not in self.local:
            if op == "pick":
                self.local[node] = self.text.let(self._element_of(args[0], value, ""))
            else:
                self.local[node] = self.entered(node)
        return self.local[node]

    def _source(self, node: int) -> int:
        """The array that an element is picked from, or the node itself."""
        return self.graph.nodes[node].args[0] if self.graph.nodes[node].op == "pick" else node

    def _element_of(self, array: int, at: int, more: str) -> str:
        """The expression of element `at` + `more` of an array; `more` is an expression or empty."""
        if self.graph.nodes[array].op == "array":
            return self.element(self.graph.nodes[array].value, sum_of(at, more))
        at = at if more else self._kept(array, at)  # arrays that loops read are laid out in full
        return self.text.memory(sum_of(self.slots[array] + at, more))

    def _kept(self, array: int, at: int) -> int:
        """The position of element `at` in the memory of an array, by the layout of its loop."""
        return self.layouts[array].at(at) if array in self.layouts else at

    def _length(self, node: int) -> int:
        """The number of slots of a node."""
        op, args, _ = self.graph.nodes[node]
        if op == "loop":
            return self.layouts[node].size
        return len(args) if op == "pack" else 0

    # ---- items, by kind ------------------------------------------------------------------------

    def op(self, item: Item) -> None:
        """One operation."""
        op = OPS[self.graph.nodes[item.nodes[0]].op]
        self.text.used.add(op.name)
        expression = op.c or f"{{0}} {op.infix} {{1}}"
        operands = [self.value(a) for a in item.operands]
        self.local[item.nodes[0]] = self.text.let(expression.format(*operands, f=self.text.f))

    def fma(self, item: Item) -> None:
        """±a b ± c with one rounding."""
        signs = (item.signs[0], 1, item.signs[1])
        operands = zip(signs, map(self.value, item.operands), strict=True)
        a, b, c = (x if sign > 0 else f"-{x}" for sign, x in operands)
        self.local[item.nodes[0]] = self.text.let(self.text.fused(a, b, c))

    def sincos(self, item: Item) -> None:
        """Sine and cosine of one angle."""
        wanted = [self.graph.nodes[node].op for node in item.nodes]
        names = self.text.turned(self.value(item.operands[0]), wanted)
        self.local.update(zip(item.nodes, names, strict=True))

    def array(self, item: Item) -> None:
        """A whole input: no statement, for loops read it in place."""

    def pack(self, item: Item) -> None:
        """An array of scalars: stored in adjacent slots."""
        node = item.nodes[0]
        at = self.slots[node] = self.room.allocate(len(item.operands))
        for i, x in enumerate(item.operands):
            self.text.line(f"{self.text.memory(str(at + i))} = {self.value(x)};")

    def loop(self, item: Item) -> None:
        """All rounds of a loop."""
        node, text = item.nodes[0], self.text
        loop: LoopNode = self.graph.nodes[node].value
        args = self.graph.nodes[node].args
        arrays = args[: len(args) - len(loop.start)]
        layout = self.layouts.setdefault(node, Layout(loop))
        own = self.slots[node] = self.room.allocate(layout.size)
        first, end = (own + layout.at(x) for x in loop.cleared)
        if end > first:
            with text.rounds(end - first) as i:
                text.line(f"{text.memory(sum_of(first, i))} = 0;")
        for at, x in zip(loop.start, args[len(arrays) :], strict=True):
            text.line(f"{self.text.memory(str(own + layout.at(at)))} = {self.value(x)};")
        if not loop.count:
            return
        with text.rounds(loop.count) as i:
            if len(loop.cases) == 1:
                self._round(loop, loop.cases[0], node, arrays, i)
                return
            with text.block(f"switch ({sum_of(*text.by_round(loop.choice, i, loop.choice >= 0))})"):
                for k, case in enumerate(loop.cases):
                    last = k == len(loop.cases) - 1
                    with text.block("default:" if last else f"case {k}:"):
                        self._round(loop, case, node, arrays, i)
                        text.line("break;")

    def _round(self, loop: LoopNode, case: Case, node: int, arrays: Sequence[int], i: str) -> None:
        """The statements of one case of a loop, with round number i."""
        text, layout = self.text, self.layouts[node]
        rounds = loop.choice == loop.cases.index(case)
        if not rounds.any():
            return
        known: dict[bytes, tuple[int, str]] = {}

        def indexed(row: Array) -> tuple[int, str]:
            key = row.tobytes()
            if key not in known:
                number, index = text.by_round(row, i, rounds)
                if "[" in index:
                    name = text.name("j")
                    text.line(f"const {text.whole(1 << 16)} {name} = {index};")
                    index = name
                known[key] = number, index
            return known[key]

        def at(place: MemoryPlace) -> str:
            row = loop.indices[place.rows] + place.column
            addresses = row[rounds]
            if place.array < 0:
                values = loop.table[addresses]
                if (values == values[0]).all():
                    return text.literal(float(values[0]))
                if np.array_equal(values, np.arange(loop.count)):
                    return f"({text.T}){i}"
            elif place.array == 0 and layout.output[addresses[0]] >= 0:
                row = layout.element[np.where(rounds, row, addresses[0])]
                k = int(layout.output[addresses[0]])
                return self.result(k, sum_of(*indexed(row)))
            number, index = indexed(loop.indices[place.rows])
            number += place.column
            if place.array < 0:
                return f"{text.numbers(loop.table)}[{sum_of(number, index)}]"
            if place.array > 0:
                return self._element_of(arrays[place.array - 1], number, index)
            number += self.slots[node] + layout.shift(addresses)
            return text.memory(sum_of(number, index))

        Round(case, text, self.room, at).emit()


class Round(Scope):
    """The body of a loop: inputs are read from memory by index, outputs written likewise. A value
    is written as soon as every input in the same column of the memory is read."""

    def __init__(
        self, case: Case, text: Text, room: Room, at: Callable[[MemoryPlace], str]
    ) -> None:
        super().__init__(case.body, text, room)
        self.case, self.at = case, at

    def ordered(self) -> list[Item]:
        """The items in trace order, with writes as early as possible."""
        columns = {j: p.column for j, p in enumerate(self.case.reads) if p.array == 0}
        items = itemized(self.graph, fused_products(self.graph))
        ends = list(ordered_writes(self.graph, self.case.writes, columns))
        return with_stores(self.graph, [*early_reads(self.graph, columns), *items], ends)

    def entered(self, node: int) -> str:
        """Read a scalar from its place."""
        number: int = self.graph.nodes[node].value[1]
        return self.text.let(self.at(self.case.reads[number]))

    def read(self, item: Item) -> None:
        """Read a scalar before its place is overwritten."""
        self.value(item.operands[0])

    def write(self, item: Item) -> None:
        """Write a scalar to its place, or add it there."""
        place = self.case.writes[item.place[0]]
        sign = "+=" if place.add else "="
        self.text.line(f"{self.at(place)} {sign} {self.value(item.operands[0])};")
