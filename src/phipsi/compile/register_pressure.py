"""Reordering a graph for few registers: one limb of the robot after the other.

A trace goes sweep by sweep: outward over all bodies, inward over all, outward over all again. The
values that one sweep computes for the next are then live for all bodies at once. Here the trace is
cut into runs, roughly the steps of its sweeps at one body each, and the runs are put in an order
that finishes one limb before it begins the next. The operations stay the same, and so do the
results, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

from phipsi.compile.graph import Graph, Instruction
from phipsi.compile.schedule import SHALLOW
from phipsi.compile.verify import verified

LEAST = 4
"""The least number of nodes in a run: reordering single operations keeps more values live."""

FAR = 100
"""Nodes between a product and its sum above which a fused multiply-add is not worth it: the two
factors would be live all the while instead of the one product."""

GIVEN = ("const", "input", "array")
"""Operations whose values take no register until they are read."""

SINCOS = ("sin", "cos")


def ordered(graph: Graph) -> Graph:
    """The same graph in an order that keeps fewer values live, or itself if none is found.

    A run that ends as many live ranges as it begins, or more, is scheduled as soon as its operands
    are ready, in trace order. When there is none, the last of the ready runs is scheduled, which is
    the next step of the limb in progress.
    """
    runs = list(_runs(graph))
    number = {node: r for r, run in enumerate(runs) for node in run}
    needs = [
        {a for i in run for a in graph.nodes[i].args if number.get(a, r) != r}
        for r, run in enumerate(runs)
    ]
    readers: dict[int, set[int]] = {}
    for r, values in enumerate(needs):
        for a in values:
            readers.setdefault(a, set()).add(r)
    leaves = [sum(i in readers for i in run) for run in runs]
    uses_up = [sum(len(readers[a]) == 1 for a in values) for values in needs]
    before = [{number[a] for a in values} for values in needs]
    after: list[list[int]] = [[] for _ in runs]
    for r, others in enumerate(before):
        for other in others:
            after[other].append(r)
    shrinking: list[int] = []
    growing: list[int] = []
    done = [False] * len(runs)

    def offer(r: int) -> None:
        if before[r]:
            return
        if leaves[r] <= uses_up[r]:
            heappush(shrinking, r)
        else:
            heappush(growing, -r)

    for r in range(len(runs)):
        offer(r)
    order: list[int] = []
    while shrinking or growing:
        run = heappop(shrinking) if shrinking else -heappop(growing)
        if done[run]:
            continue
        done[run] = True
        order += runs[run]
        for a in needs[run]:
            readers[a].discard(run)
            if len(readers[a]) == 1:
                (last,) = readers[a]
                uses_up[last] += 1
                offer(last)
        for r in after[run]:
            before[r].discard(run)
            offer(r)
    other = verified(_permuted(graph, order), "ordering")
    return other if sum(alive(other)) < sum(alive(graph)) else graph


def alive(graph: Graph) -> list[int]:
    """The number of live values after each node: computed, and still to be read."""
    end = len(graph.nodes)
    change = [0] * end
    for i, users in enumerate(graph.users):
        if graph.nodes[i].op not in GIVEN:
            change[i] += 1
            change[max((user for user in users if user < end), default=i)] -= 1
    counts: list[int] = []
    now = 0
    for x in change:
        now += x
        counts.append(now)
    return counts


def nearby(graph: Graph, fused: Mapping[int, int]) -> dict[int, int]:
    """The fused products {sum: product} without those that would keep more values live: products
    far from their sum whose factors nothing else reads as late as that."""
    sums: dict[int, list[int]] = {}
    for i, product in fused.items():
        sums.setdefault(product, []).append(i)

    def readers(a: int) -> Iterator[int]:
        for i in graph.users[a]:
            if i < len(graph.nodes):
                yield from sums.get(i, (i,))

    kept = dict(fused)
    for product, ends in sums.items():
        late = max(ends) - FAR
        values = {a for a in graph.nodes[product].args if graph.nodes[a].op not in GIVEN + SINCOS}
        alone = [a for a in values if all(i < late or i in ends for i in readers(a))]
        if len(alone) == 2 and product < late:
            for i in ends:
                del kept[i]
    return kept


def floating(graph: Graph) -> set[int]:
    """The sines and cosines of inputs, or of angles computed from inputs by cheap operations, and
    these operations: they have no other operands, so they can be computed anywhere."""
    shallow: list[bool] = []
    found: set[int] = set()
    for node in graph.nodes:
        known = all(shallow[a] for a in node.args)
        if known and node.op in SINCOS:
            found.add(len(shallow))
        shallow.append(node.op in GIVEN or (known and node.op in SHALLOW))
    for i in range(len(graph.nodes) - 1, -1, -1):
        if i in found:
            found.update(a for a in graph.nodes[i].args if graph.nodes[a].op not in GIVEN)
    return found


def _runs(graph: Graph) -> Iterator[list[int]]:
    """The other nodes than those of `floating`, in trace order, cut into runs: a new run begins at
    a node that reads an input, sine or cosine which the current run has not read."""
    anywhere = floating(graph)
    run: list[int] = []
    seen: set[int] = set()
    for i, node in enumerate(graph.nodes):
        if node.op in GIVEN or i in anywhere:
            continue
        read = {a for a in node.args if graph.nodes[a].op in ("input", *SINCOS)}
        if len(run) >= LEAST and not read <= seen:
            yield run
            run, seen = [], set()
        run.append(i)
        seen |= read
    if run:
        yield run


def _permuted(graph: Graph, order: list[int]) -> Graph:
    """The graph with its nodes in this order; each node of `floating` comes right before its first
    user."""
    number: dict[int, int] = {}

    def place(i: int) -> None:
        for a in graph.nodes[i].args:
            if a not in number:
                place(a)
        number.setdefault(i, len(number))

    for i, node in enumerate(graph.nodes):
        if node.op in GIVEN:
            place(i)
    for i in order:
        place(i)
    for _, outputs in graph.outputs:
        for i in outputs:
            place(i)
    nodes = (graph.nodes[i] for i in number)
    return Graph(
        graph.inputs,
        tuple(Instruction(op, tuple(number[a] for a in args), x) for op, args, x in nodes),
        tuple((name, tuple(number[i] for i in outputs)) for name, outputs in graph.outputs),
    )
