"""The order in which a graph is emitted where registers are few: one limb after the other.

A trace goes sweep by sweep: outward over all bodies, inward over all, outward over all again. What
one sweep leaves for the next is then alive for all bodies at once. Here the trace is cut into runs,
nearly the steps of its sweeps, which are put in an order that finishes a limb before it begins the
next. Nothing is computed otherwise: results are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

from phipsi.compile.graph import Graph, Instruction
from phipsi.compile.schedule import SHALLOW
from phipsi.compile.verify import verified

LEAST = 4
"""Nodes in a run, at least: where single operations are moved about, more values are alive."""

FAR = 100
"""Nodes between a product and its sum above which one instruction for both is not worth a value
more that is alive in between."""

GIVEN = ("const", "input", "array")
"""What takes no register until it is read."""

SINCOS = ("sin", "cos")


def ordered(graph: Graph) -> Graph:
    """The same graph, in an order that keeps fewer values alive; itself, if this one does not.

    Runs that leave no more values alive than they use up come as soon as they can, in trace order;
    when there is none, the last one ready comes: the next step of the limb in progress.
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
    """How many values have been computed, and are still to be read, after each node."""
    end = len(graph.nodes)
    change = [0] * end
    for i, users in enumerate(graph.users):
        if graph.nodes[i].op not in GIVEN:
            change[i] += 1
            change[max((user for user in users if user < end), default=i)] -= 1
    counts, now = [], 0
    for x in change:
        now += x
        counts.append(now)
    return counts


def nearby(graph: Graph, fused: Mapping[int, int]) -> dict[int, int]:
    """Of the products that are to be multiplied within a sum, {sum: product}, those for which no
    value more is alive: not a far product of two values that nothing else reads so late."""
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
    """Sines and cosines of inputs, or nearly, with their angles: they can be anywhere."""
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
    """The nodes that do not float, in trace order, cut where one reads an input, a sine or a cosine
    that its run has not read."""
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
    """The nodes in another order, what floats right before its first reader."""
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
