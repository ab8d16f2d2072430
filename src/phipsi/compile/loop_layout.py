"""The layout of the memory of loops: an element whose only use is as an element of an output is
written straight to the output, and takes no memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from phipsi.compile.graph import Graph, LoopNode, MemoryPlace
from phipsi.typing import Array


class Layout:
    """The memory of a loop, without the elements that are written straight to an output.

    For each address, `output` is the number of the output that it belongs to (−1: none), and
    `element` its element there.
    """

    def __init__(self, loop: LoopNode) -> None:
        self.loop = loop
        self.output = np.full(loop.size, -1)
        self.element = np.zeros(loop.size, np.int64)
        self._kept = np.arange(loop.size + 1)

    @property
    def size(self) -> int:
        """The number of scalars that stay in memory."""
        return int(self._kept[-1])

    @property
    def outputs(self) -> set[int]:
        """The outputs that the loop writes."""
        outputs: list[int] = self.output.tolist()
        return set(outputs) - {-1}

    def at(self, address: int) -> int:
        """The new address of an address that stays in memory."""
        return int(self._kept[address])

    def shift(self, addresses: Array) -> int:
        """The distance between new and old addresses of a place; it is the same for all rounds."""
        return int((self._kept[addresses] - addresses)[0])

    def fill(self, k: int, elements: Array, addresses: Array) -> None:
        """Let the loop write elements of output k, which are at these addresses of its memory:
        those that it writes without adding and never reads. Nothing is done if these are not more
        than half."""
        own = np.zeros(self.loop.size, bool)
        own[addresses] = True
        own[slice(*self.loop.cleared)] = False
        own[list(self.loop.start)] = False
        written = np.zeros(self.loop.size, bool)
        before = -1
        while own.sum() != before:  # all addresses of a place must belong to the output, or none
            before = own.sum()
            for place, rounds, reads in _places(self.loop):
                there = self.loop.indices[place.rows, rounds] + place.column
                if reads or place.add or not own[there].all():
                    own[there] = False
                written[there] |= not reads
            own &= written
        chosen = own[addresses]
        if 2 * chosen.sum() > len(addresses):
            self.output[addresses[chosen]] = k
            self.element[addresses[chosen]] = elements[chosen]

    def close(self) -> Layout:
        """Remove the addresses that are written straight to outputs; nothing is done if the
        addresses of some place would move by different distances."""
        kept = np.concatenate([[0], np.cumsum(self.output < 0)])
        moved = kept[:-1] - np.arange(self.loop.size)
        for place, rounds, _ in _places(self.loop):
            there = self.loop.indices[place.rows, rounds] + place.column
            if (self.output[there] < 0).any() and np.ptp(moved[there]):
                return self
        self._kept = kept
        return self


def filled(layouts: Mapping[int, Layout]) -> dict[int, set[int]]:
    """The elements that loops write straight to outputs, by output."""
    found: dict[int, set[int]] = {}
    for layout in layouts.values():
        for k in layout.outputs:
            found[k] = set(layout.element[layout.output == k].tolist())
    return found


def layouts(graph: Graph) -> dict[int, Layout]:
    """The layout of the memory of each loop of a graph, by its node."""
    picks: dict[tuple[int, int], int] = {}
    arrays: set[int] = set()
    for node in graph.nodes:
        if node.op == "pick":
            picks[node.args[0], node.value] = picks.get((node.args[0], node.value), 0) + 1
        elif node.op == "loop":
            arrays.update(node.args)
    found = {i: Layout(node.value) for i, node in enumerate(graph.nodes) if node.op == "loop"}
    for k, (_, nodes) in enumerate(graph.outputs):
        there: dict[int, list[tuple[int, int]]] = {}
        for element, n in enumerate(nodes):
            op, args, value = graph.nodes[n]
            if op == "pick" and len(graph.users[n]) == picks[args[0], value] == 1:
                there.setdefault(args[0], []).append((element, value))
        for source, pairs in there.items():
            if source in found and source not in arrays and 2 * len(pairs) > len(nodes):
                found[source].fill(k, *np.array(pairs).T)
    return {i: layout.close() for i, layout in found.items()}


def _places(loop: LoopNode) -> Iterator[tuple[MemoryPlace, Array, bool]]:
    """The places in the loop's own memory, each with a mask of its rounds and whether it is
    read."""
    for c, case in enumerate(loop.cases):
        rounds = loop.choice == c
        for places, reads in ((case.reads, True), (case.writes, False)):
            for place in places:
                if place.array == 0 and rounds.any():
                    yield place, rounds, reads
