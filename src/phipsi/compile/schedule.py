"""The order in which a graph is emitted: items, segments, and what outlives a segment."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from phipsi.compile.graph import Graph, MemoryPlace
from phipsi.compile.verify import InvalidGraph, switched_on

SEGMENT = 600
"""Operations in a basic block: fewer cost loads and stores, more cost compile time and spills."""

SHALLOW = ("add", "sub", "mul", "neg")
"""What may stand between the inputs and an angle whose sine is computed ahead of everything."""


class Item(NamedTuple):
    """One thing to emit: `kind` names a method of the emitter, `nodes` what it defines."""

    kind: str
    nodes: tuple[int, ...]
    operands: tuple[int, ...]
    place: tuple[int, ...] = ()
    signs: tuple[int, int] = (1, 1)


@dataclass
class Schedule:
    """Items by segment; for each node the last segment that needs it; chunks of inputs."""

    graph: Graph
    segments: list[list[Item]]
    last: list[int]
    ending: list[list[int]]
    chunks: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def length(self, node: int) -> int:
        """How many scalars a node is."""
        op, args, value = self.graph.nodes[node]
        match op:
            case "pack":
                return len(args)
            case "loop":
                return value.size
            case "array":
                return self.graph.inputs[value][1]
        return 1


def scheduled(
    graph: Graph,
    fma: bool,
    chunk: int = 1,
    writes: Sequence[MemoryPlace] | None = None,
    columns: Mapping[int, int] | None = None,
) -> Schedule:
    """The schedule of a kernel (`chunk` elements are stored at once), or of the body of a loop with
    its `writes` and the `columns` of the loop's own memory that its inputs read."""
    items = _angles_first(graph, list(itemized(graph, fused_products(graph) if fma else {})))
    if writes is None:
        ends = list(stores(graph, chunk))
    else:
        ends = list(written(graph, writes, columns or {}))
        items = [*moved(graph, columns or {}), *items]
    items = inserted(graph, items, ends)
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
    """Which factor of each sum is multiplied within it: {sum: product}.

    A product is fused where that makes it disappear: all its uses are sums, each with no other
    product to fuse.
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
    """What there is to emit, in the order of the nodes, given the products that sums take in."""
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
    """Sines and cosines of the inputs, or nearly, come first: calls would empty the registers."""
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
    """Stores of outputs; one made of elements of arrays alone, and more than `long` (default: four
    chunks), is written by a loop."""
    long = 4 * chunk if long is None else long
    for k, (_, nodes) in enumerate(graph.outputs):
        if len(nodes) > long and all(graph.nodes[n].op in ("pick", "const") for n in nodes):
            arrays = (graph.nodes[n].args[0] for n in nodes if graph.nodes[n].op == "pick")
            yield Item("spread", (), tuple(dict.fromkeys(arrays)), (k,))
            continue
        for first in range(0, len(nodes), chunk):
            yield Item("store", (), nodes[first : first + chunk], (k, first))


def written(
    graph: Graph, writes: Sequence[MemoryPlace], columns: Mapping[int, int]
) -> Iterator[Item]:
    """Writes, each also waiting for the inputs that stand in its column."""
    ((_, nodes),) = graph.outputs
    waiting: dict[int, list[int]] = {}
    for i, node in enumerate(graph.nodes):
        if node.op == "input" and node.value[1] in columns:
            waiting.setdefault(columns[node.value[1]], []).append(i)
    for j, (place, node) in enumerate(zip(writes, nodes, strict=True)):
        yield Item("write", (), (node,), (j, *waiting.get(place.column, ())))


def moved(graph: Graph, columns: Mapping[int, int]) -> Iterator[Item]:
    """Reads of what is written elsewhere as it is: before anything is written in its place."""
    for node in dict.fromkeys(graph.outputs[0][1]):
        if graph.nodes[node].op == "input" and graph.nodes[node].value[1] in columns:
            yield Item("read", (), (node,))


def inserted(graph: Graph, items: list[Item], ends: list[Item]) -> list[Item]:
    """Items with each end right after what it needs; inputs count as read at their first use."""
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
    """Check that items define a node once, and read only what an earlier item has defined."""
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
    """Positions of the workspace, given out and taken back."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []

    def allocate(self, length: int) -> int:
        """The first free run of that length."""
        for k, (start, end) in enumerate(self._free):
            if end - start >= length:
                self._free[k] = (start + length, end)
                if start + length == end:
                    del self._free[k]
                return start
        self.size += length
        return self.size - length

    def release(self, start: int, length: int) -> None:
        """Give back a run."""
        if length:
            insort(self._free, (start, start + length))
            merged: list[tuple[int, int]] = []
            for a, b in self._free:
                if merged and merged[-1][1] == a:
                    merged[-1] = (merged[-1][0], b)
                else:
                    merged.append((a, b))
            self._free = merged
