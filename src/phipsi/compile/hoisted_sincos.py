"""Sines and cosines hoisted to the start of a kernel. They are computed in a loop, which is little
code, and kept in shared memory, where they take no registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from phipsi.compile.graph import Graph
from phipsi.compile.register_pressure import floating
from phipsi.compile.schedule import Item


@dataclass
class HoistedSincos:
    """The sines and cosines that are hoisted. Those in `own` are of elements of input `array` that
    nothing else reads: there the sine overwrites the angle. `rest` are the others.

    The columns in shared memory are: the cosines of `own`; the angles of `rest`, which their sines
    overwrite; and the cosines of `rest`.
    """

    array: int = -1
    own: list[Item] = field(default_factory=list[Item])
    rest: list[Item] = field(default_factory=list[Item])

    @property
    def columns(self) -> int:
        """The number of columns, made odd so that 32 rows are in different memory banks."""
        count = len(self.own) + 2 * len(self.rest)
        return count + (count % 2 == 0) if count else 0

    @classmethod
    def among(cls, graph: Graph, items: Sequence[Item]) -> tuple[HoistedSincos, list[Item]]:
        """The sines and cosines of `floating` angles among the items; and the items, with one item
        `rolled` in their place, which comes after the items that compute the angles."""
        anywhere = floating(graph)
        early = [x for x in items if anywhere.issuperset(x.nodes)]
        found = [x for x in early if x.kind == "sincos"]
        if not found:
            return cls(), list(items)
        private = [
            x
            for x in found
            if graph.nodes[x.operands[0]].op == "input"
            and set(graph.users[x.operands[0]]) <= set(x.nodes)
        ]
        arrays: Counter[int] = Counter(graph.nodes[x.operands[0]].value[0] for x in private)
        array = arrays.most_common(1)[0][0] if arrays else -1
        own = [x for x in private if graph.nodes[x.operands[0]].value[0] == array]
        rest = [x for x in found if x not in own]
        nodes = tuple(node for x in (*own, *rest) for node in x.nodes)
        angles = tuple(x.operands[0] for x in (*own, *rest))
        others = [x for x in items if not anywhere.issuperset(x.nodes)]
        before = [x for x in early if x.kind != "sincos"]
        return cls(array, own, rest), [*before, Item("rolled", nodes, angles), *others]
