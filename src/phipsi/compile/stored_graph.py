"""Graphs as values that JSON can store, and graphs made from such values again."""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.compile.graph import Case, Graph, Instruction, LoopNode, MemoryPlace


def to_values(graph: Graph) -> list[Any]:
    """The graph as nested lists of numbers and texts: inputs, outputs, the operations, the operands
    and the values of all nodes, and the loops by the numbers of their nodes."""
    ops, args, values = zip(*graph.nodes, strict=True) if graph.nodes else ((), (), ())
    loops = {i: _loop_values(x) for i, x in enumerate(values) if isinstance(x, LoopNode)}
    plain = [None if i in loops else x for i, x in enumerate(values)] if loops else values
    return [graph.inputs, graph.outputs, ops, args, plain, list(loops.items())]


def from_values(values: list[Any]) -> Graph:
    """The graph of the lists that `to_values` made, as JSON returns them."""
    inputs, outputs, ops, args, plain, loops = values
    for i, loop in loops:
        plain[i] = _loop(loop)
    nodes = [
        Instruction(op, tuple(operands), tuple(x) if op == "input" else x)
        for op, operands, x in zip(ops, args, plain, strict=True)
    ]
    ends = tuple((name, tuple(indices)) for name, indices in outputs)
    return Graph(tuple((name, size) for name, size in inputs), tuple(nodes), ends)


def _loop_values(loop: LoopNode) -> list[Any]:
    cases = [(to_values(case.body), case.reads, case.writes) for case in loop.cases]
    tables = (loop.choice.tolist(), loop.indices.tolist(), loop.table.tolist())
    return [loop.count, cases, *tables, loop.size, loop.start, loop.cleared]


def _loop(values: list[Any]) -> LoopNode:
    count, cases, choice, indices, table, size, start, cleared = values
    return LoopNode(
        count,
        tuple(Case(from_values(body), _places(r), _places(w)) for body, r, w in cases),
        np.array(choice, np.int64),
        np.array(indices, np.int64).reshape(len(indices), count),
        np.array(table, float),
        size,
        tuple(start),
        (cleared[0], cleared[1]),
    )


def _places(values: list[Any]) -> tuple[MemoryPlace, ...]:
    return tuple(MemoryPlace(*place) for place in values)
