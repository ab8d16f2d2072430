"""The order in which a graph is emitted where registers are few: one limb after the other.

A trace goes sweep by sweep: outward over all bodies, inward over all, outward over all again. What
the first sweep leaves for the second is then alive for all bodies at once. Here the trace is cut
into runs, nearly the steps of its sweeps, and the runs are put in an order in which each limb is
finished before the next is begun.
"""

from __future__ import annotations

from collections.abc import Iterator

from phipsi.compile.graph import Graph, Instruction

LEAST = 4
"""Nodes in a run, at least: with fewer, single operations would be moved about."""

FAR = 100
"""Nodes between a product and its sum above which they are worth two instructions, if that frees a
register in between."""

GIVEN = ("const", "input", "array")
"""What takes no register until it is read."""


def ordered(graph: Graph) -> Graph:
    """The same graph, nodes in an order with fewer values alive at once; itself, if there is none.

    Runs that leave no more values alive than they use up come as soon as they can, in trace order;
    when there is none, the last one ready comes: it is the next step of the limb in progress.
    """
    runs = list(_runs(graph))
    number = {node: r for r, run in enumerate(runs) for node in run}
    needs: list[set[int]] = [set() for _ in runs]
    for r, run in enumerate(runs):
        for node in run:
            needs[r].update(a for a in graph.nodes[node].args if number.get(a, r) != r)
    readers: dict[int, int] = {}
    after: list[set[int]] = [set() for _ in runs]
    for r, values in enumerate(needs):
        for a in values:
            readers[a] = readers.get(a, 0) + 1
            after[number[a]].add(r)
    leaves = [sum(node in readers for node in run) for run in runs]
    waiting = [len({number[a] for a in values}) for values in needs]
    ready = [r for r, n in enumerate(waiting) if not n]
    order = [i for i, node in enumerate(graph.nodes) if node.op in GIVEN]
    while ready:
        shrinking = [
            r for r in ready if leaves[r] <= sum(readers[a] == 1 for a in needs[r])
        ]
        run = min(shrinking) if shrinking else max(ready)
        ready.remove(run)
        order += runs[run]
        for a in needs[run]:
            readers[a] -= 1
        for r in after[run]:
            waiting[r] -= 1
            if not waiting[r]:
                ready.append(r)
    other = _permuted(graph, order)
    return other if most_alive(other) < most_alive(graph) else graph


def most_alive(graph: Graph) -> int:
    """How many values, at most, have been computed and are still to be used."""
    most = alive = 0
    ending = [0] * (len(graph.nodes) + 1)
    for i, last in enumerate(graph.used_last):
        if graph.nodes[i].op not in GIVEN:
            ending[last] += 1
    for i, node in enumerate(graph.nodes):
        alive -= ending[i]
        if node.op not in GIVEN and last_uses[i] > i:
            alive += 1
        most = max(most, alive)
    return most


def _runs(graph: Graph) -> Iterator[list[int]]:
    """The nodes, in trace order, cut where one reads an input, a sine or a cosine that its run has
    not read yet."""
    run: list[int] = []
    seen: set[int] = set()
    for i, node in enumerate(graph.nodes):
        if node.op in GIVEN:
            continue
        read = {a for a in node.args if graph.nodes[a].op in ("input", "sin", "cos")}
        if len(run) >= LEAST and not read <= seen:
            yield run
            run, seen = [], set()
        run.append(i)
        seen |= read
    if run:
        yield run


def _permuted(graph: Graph, order: list[int]) -> Graph:
    number = {old: new for new, old in enumerate(order)}
    nodes = (graph.nodes[i] for i in order)
    return Graph(
        graph.inputs,
        tuple(Instruction(op, tuple(number[a] for a in args), x) for op, args, x in nodes),
        tuple((name, tuple(number[i] for i in outputs)) for name, outputs in graph.outputs),
    )
