"""The order in which a graph is emitted: items, cut into segments, and the live ranges of values
across segments."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from phipsi.compile.graph import Graph, LoopNode, MemoryPlace
from phipsi.compile.verify import InvalidGraph, switched_on

SEGMENT = 600
"""Operations in a basic block: smaller blocks cost loads and stores, larger ones compile time and
spills."""

SHALLOW = ("add", "sub", "mul", "neg")
"""Operations that may compute an angle from inputs if its sine is to be computed first of all."""


class Item(NamedTuple):
    """One unit of code: `kind` names the method of the emitter, `nodes` are the nodes it defines,
    `operands` those it reads, `place` says where a store or a write goes, and `signs` are those of
    the product and of the summand of an fma."""

    kind: str
    nodes: tuple[int, ...]
    operands: tuple[int, ...]
    place: tuple[int, ...] = ()
    signs: tuple[int, int] = (1, 1)


@dataclass
class Schedule:
    """The items of each segment, with the live ranges of nodes.

    `last` is the last segment that reads each node (−1: none), `ending` the nodes whose live range
    ends with each segment. `chunks` are the input nodes that are loaded together, by input and
    first element.
    """

    graph: Graph
    segments: list[list[Item]]
    last: list[int]
    ending: list[list[int]]
    chunks: dict[tuple[int, int], list[int]]

    def length(self, node: int) -> int:
        """The number of scalars of a node: 1 unless it is an array."""
        op, args, value = self.graph.nodes[node]
        match op:
            case "pack":
                return len(args)
            case "loop":
                loop: LoopNode = value
                return loop.size
            case "array":
                number: int = value
                return self.graph.inputs[number][1]
            case _:
                return 1


def scheduled(
    graph: Graph,
    fma: bool,
    chunk: int = 1,
    writes: Sequence[MemoryPlace] | None = None,
    columns: Mapping[int, int] | None = None,
) -> Schedule:
    """The schedule of a kernel, or of the body of a loop if `writes` are given.

    A kernel stores `chunk` elements at once. A loop body writes to `writes`; `columns` gives the
    column of the loop's memory that each of its inputs reads, for those that read it.
    """
    items = _angles_first(graph, list(itemized(graph, fused_products(graph) if fma else {})))
    if writes is None:
        ends = list(stores(graph, chunk))
    else:
        ends = list(ordered_writes(graph, writes, columns or {}))
        items = [*early_reads(graph, columns or {}), *items]
    items = with_stores(graph, items, ends)
    if switched_on():
        verify_order(graph, items)
    segments = _segments(items)

    last = [-1] * len(graph.nodes)
    first: dict[int, int] = {}
    for s, segment in enumerate(segments):
        for item in segment:
            for x in item.operands:
                source = graph.nodes[x].args[0] if graph.nodes[x].op == "pick" else x
                last[source] = s
                first.setdefault(source, s)
    chunks: dict[tuple[int, int], list[int]] = {}
    if writes is None:
        for node in first:
            if graph.nodes[node].op == "input":
                k, element = graph.nodes[node].value
                chunks.setdefault((k, element - element % chunk), []).append(node)
    ending: list[list[int]] = [[] for _ in segments]
    for node, s in enumerate(last):
        if s >= 0:
            ending[s].append(node)
    return Schedule(graph, segments, last, ending, chunks)


def fused_products(graph: Graph) -> dict[int, int]:
    """The product that each sum computes itself, by a fused multiply-add: {sum: product}.

    A product is fused if no instruction of its own is left for it: all its users are sums that have
    no other product to fuse.
    """
    users, end = graph.users, len(graph.nodes)
    chosen: dict[int, int] = {}
    products = [i for i, n in enumerate(graph.nodes) if n.op == "mul" and end not in users[i]]
    for product in sorted(products, key=lambda i: (len(users[i]), i)):
        sums = users[product]
        if all(
            graph.nodes[s].op in ("add", "sub")
            and s not in chosen
            and graph.nodes[s].args.count(product) == 1
            for s in sums
        ):
            chosen.update(dict.fromkeys(sums, product))
    return chosen


def itemized(graph: Graph, fused: dict[int, int]) -> Iterator[Item]:
    """The items of a graph in the order of its nodes, given the fused products {sum: product}."""
    gone = set(fused.values())
    angles: dict[int, list[int]] = {}
    for i, node in enumerate(graph.nodes):
        if node.op in ("sin", "cos"):
            angles.setdefault(node.args[0], []).append(i)
    for i, (op, args, _) in enumerate(graph.nodes):
        if op in ("const", "input", "pick") or i in gone:
            continue
        if op in ("sin", "cos"):
            if angles[args[0]][0] == i:
                yield Item("sincos", tuple(angles[args[0]]), args)
        elif i in fused:
            a, b = graph.nodes[fused[i]].args
            (rest,) = (x for x in args if x != fused[i])
            signs = (1, 1) if op == "add" else (1, -1) if args[1] == rest else (-1, 1)
            yield Item("fma", (i,), (a, b, rest), signs=signs)
        elif op in ("loop", "pack", "array"):
            yield Item(op, (i,), args)
        else:
            yield Item("op", (i,), args)


def _angles_first(graph: Graph, items: list[Item]) -> list[Item]:
    """The items with those first that compute sines and cosines of inputs, or of angles computed
    from inputs by a few cheap operations: later, their calls would spill the registers."""
    maker = {node: item for item in items for node in item.nodes}
    early: dict[int, Item] = {}

    def shallow(node: int, depth: int) -> bool:
        op, args, _ = graph.nodes[node]
        if op in ("const", "input"):
            return True
        return depth > 0 and op in SHALLOW and all(shallow(a, depth - 1) for a in args)

    def take(node: int) -> None:
        item = maker.get(node)
        if item is not None and id(item) not in early:
            for a in item.operands:
                take(a)
            early[id(item)] = item

    for item in items:
        if item.kind == "sincos" and shallow(item.operands[0], 3):
            take(item.nodes[0])
    return [*early.values(), *(item for item in items if id(item) not in early)]


def stores(graph: Graph, chunk: int, long: int | None = None) -> Iterator[Item]:
    """The stores of all outputs, chunk by chunk. An output of more than `long` elements (default:
    four chunks) that are all array elements or constants is stored by a loop, `spread`."""
    long = 4 * chunk if long is None else long
    for k, (_, nodes) in enumerate(graph.outputs):
        if len(nodes) > long and all(graph.nodes[n].op in ("pick", "const") for n in nodes):
            arrays = (graph.nodes[n].args[0] for n in nodes if graph.nodes[n].op == "pick")
            yield Item("spread", (), tuple(dict.fromkeys(arrays)), (k,))
            continue
        for first in range(0, len(nodes), chunk):
            yield Item("store", (), nodes[first : first + chunk], (k, first))


def ordered_writes(
    graph: Graph, writes: Sequence[MemoryPlace], columns: Mapping[int, int]
) -> Iterator[Item]:
    """The writes of a loop body. Each lists in its `place` the inputs that read the same column of
    the memory: they must be read before, for they may be the element that is overwritten."""
    ((_, nodes),) = graph.outputs
    waiting: dict[int, list[int]] = {}
    for i, node in enumerate(graph.nodes):
        if node.op == "input" and node.value[1] in columns:
            waiting.setdefault(columns[node.value[1]], []).append(i)
    for j, (place, node) in enumerate(zip(writes, nodes, strict=True)):
        yield Item("write", (), (node,), (j, *waiting.get(place.column, ())))


def early_reads(graph: Graph, columns: Mapping[int, int]) -> Iterator[Item]:
    """Reads, at the start of a loop body, of the memory elements that the body writes unchanged to
    another place: by the time of that write they may be overwritten."""
    for node in dict.fromkeys(graph.outputs[0][1]):
        if graph.nodes[node].op == "input" and graph.nodes[node].value[1] in columns:
            yield Item("read", (), (node,))


def with_stores(graph: Graph, items: list[Item], ends: list[Item]) -> list[Item]:
    """The items, with each store or write in `ends` inserted right after the last item it depends
    on; an input is taken to be read at its first use."""
    at: dict[int, int] = {}
    for position, item in enumerate(items):
        for node in item.nodes:
            at[node] = position
        for x in item.operands:
            if graph.nodes[x].op == "input":
                at.setdefault(x, position)
    late = len(items)
    after: dict[int, list[Item]] = {}
    for end in ends:
        needed = [*end.operands, *(end.place[1:] if end.kind == "write" else ())]
        sources = (graph.nodes[x].args[0] if graph.nodes[x].op == "pick" else x for x in needed)
        constant = (x for x in sources if graph.nodes[x].op != "const")
        after.setdefault(max((at.get(x, late) for x in constant), default=late), []).append(end)
    out: list[Item] = []
    for position, item in enumerate(items):
        out.append(item)
        out.extend(after.get(position, ()))
    return [*out, *after.get(late, ())]


def verify_order(graph: Graph, items: Sequence[Item]) -> None:
    """Raise InvalidGraph if a node is defined twice, or read before an item defines it."""
    done: set[int] = set()
    for position, item in enumerate(items):
        for x in item.operands:
            source = graph.nodes[x].args[0] if graph.nodes[x].op == "pick" else x
            if graph.nodes[source].op not in ("const", "input") and source not in done:
                raise InvalidGraph(
                    f"scheduling: item {position} ({item.kind}): node {source}, which it reads, "
                    "must be defined by an earlier item"
                )
        for node in item.nodes:
            if node in done:
                raise InvalidGraph(
                    f"scheduling: item {position} ({item.kind}): node {node} must be defined once"
                )
            done.add(node)


def _segments(items: list[Item]) -> list[list[Item]]:
    """The items cut into basic blocks. Loops and copies of whole arrays are blocks of their own,
    and a block ends after the leading sines and cosines."""
    segments: list[list[Item]] = [[]]
    size = 0
    for i, item in enumerate(items):
        alone = item.kind in ("loop", "array", "spread")
        turn = i > 0 and (item.kind == "sincos") < (items[i - 1].kind == "sincos")
        if segments[-1] and (alone or size >= SEGMENT or turn):
            segments.append([])
            size = 0
        segments[-1].append(item)
        size += SEGMENT if alone else max(1, 3 * len(item.operands) * (item.kind == "store"))
    return segments


class Room:
    """An allocator of slots in the workspace, first fit."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []

    def allocate(self, length: int) -> int:
        """Allocate that many adjacent slots; returns the first."""
        for k, (start, end) in enumerate(self._free):
            if end - start >= length:
                self._free[k] = (start + length, end)
                if start + length == end:
                    del self._free[k]
                return start
        self.size += length
        return self.size - length

    def release(self, start: int, length: int) -> None:
        """Free adjacent slots."""
        if length:
            insort(self._free, (start, start + length))
            merged: list[tuple[int, int]] = []
            for a, b in self._free:
                if merged and merged[-1][1] == a:
                    merged[-1] = (merged[-1][0], b)
                else:
                    merged.append((a, b))
            self._free = merged
