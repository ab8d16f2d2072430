"""The NumPy interpreter: the living definition of what a graph means.

Runs a graph over a batch, one NumPy operation per node, in blocks of rows small enough to stay in
cache. Works in float64, float32 and, where digits matter, long double.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from phipsi.compile.graph import Graph, LoopNode
from phipsi.compile.ops import OPS
from phipsi.typing import Array

ROWS = 1024
"""Rows of the batch evaluated together."""


def run(graph: Graph, inputs: list[Array], outputs: list[Array]) -> None:
    """Evaluate over a batch: inputs (rows, size) → outputs (rows, size), written in place."""
    rows = outputs[0].shape[0]
    with np.errstate(all="ignore"):
        for start in range(0, rows, ROWS):
            block = slice(start, min(start + ROWS, rows))
            alone = rows == 1  # numbers are faster than arrays of one number
            columns = [[*a[0]] if alone else [*a[block].T] for a in inputs]
            results = evaluate(graph, columns, outputs[0].dtype)
            for output, values in zip(outputs, results, strict=True):
                for i, value in enumerate(values):
                    output[block, i] = value


def evaluate(graph: Graph, inputs: list[list[Any]], dtype: DTypeLike) -> list[list[Any]]:
    """The outputs for one block of rows: each input and output is a list of columns (rows,)."""
    values: list[Any] = [None] * len(graph.nodes)
    last = graph.last_use
    scalar = np.dtype(dtype).type
    for i, (op, args, value) in enumerate(graph.nodes):
        operation = OPS.get(op)
        if operation is not None:
            values[i] = operation.evaluate(*[values[a] for a in args])
        elif op == "const":
            values[i] = scalar(value)
        elif op == "input":
            values[i] = inputs[value[0]][value[1]]
        elif op == "array":
            values[i] = inputs[value]
        elif op == "pack":
            values[i] = [values[a] for a in args]
        elif op == "pick":
            values[i] = values[args[0]][value]
        else:
            values[i] = _loop(value, [values[a] for a in args], scalar)
        for a in args:
            if last[a] == i:
                values[a] = None
    return [[values[i] for i in indices] for _, indices in graph.outputs]


def _loop(loop: LoopNode, args: list[Any], scalar: type[np.generic]) -> list[Any]:
    memory = [scalar(0.0)] * loop.size
    arrays = len(args) - len(loop.start)
    for at, value in zip(loop.start, args[arrays:], strict=True):
        memory[at] = value
    which: int
    sources: list[Any] = [
        memory,
        *args[:arrays],
        loop.table.astype(scalar),
    ]  # the table is number −1
    for which, at in zip(loop.choice, loop.indices.T, strict=True):
        case = loop.cases[which]
        read = [sources[p.array][at[p.rows] + p.column] for p in case.reads]
        (written,) = evaluate(case.body, [read], scalar)
        for p, value in zip(case.writes, written, strict=True):
            target = at[p.rows] + p.column
            memory[target] = memory[target] + value if p.add else value
    return memory
