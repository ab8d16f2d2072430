"""The NumPy interpreter: the living definition of what a graph means.

Runs a graph over a batch, one NumPy operation per node, in blocks of rows small enough to stay in
cache. Works in float64, float32 and, where digits matter, long double.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.compile.graph import Graph, Loop
from phipsi.compile.ops import OPS

ROWS = 1024
"""Rows of the batch evaluated together."""


def run(graph: Graph, inputs: list[np.ndarray], dtype: Any) -> list[np.ndarray]:
    """Evaluate over a batch: inputs (rows, size) → outputs (rows, size)."""
    rows = inputs[0].shape[0] if inputs else 1
    outputs = [np.empty((rows, len(indices)), dtype) for _, indices in graph.outputs]
    with np.errstate(all="ignore"):
        for start in range(0, rows, ROWS):
            block = slice(start, min(start + ROWS, rows))
            columns = [[a[block, i] for i in range(a.shape[1])] for a in inputs]
            results = evaluate(graph, columns, dtype)
            for output, values in zip(outputs, results, strict=True):
                for i, value in enumerate(values):
                    output[block, i] = value
    return outputs


def evaluate(graph: Graph, inputs: list[list[Any]], dtype: Any) -> list[list[Any]]:
    """Evaluate one block: each input a list of (rows,) columns; likewise each output."""
    values: list[Any] = [None] * len(graph.nodes)
    last = graph.last_use
    scalar = np.dtype(dtype).type
    for i, (op, args, value) in enumerate(graph.nodes):
        if op == "const":
            values[i] = scalar(value)
        elif op == "input":
            values[i] = inputs[value[0]][value[1]]
        elif op == "pick":
            values[i] = values[args[0]][value]
        elif op == "loop":
            values[i] = _loop(value, [values[a] for a in args], dtype)
        else:
            values[i] = OPS[op].evaluate(*[values[a] for a in args])
        for a in args:
            if last[a] == i:
                values[a] = None
    return [[values[i] for i in indices] for _, indices in graph.outputs]


def _loop(loop: Loop, args: list[Any], dtype: Any) -> list[Any]:
    carry_size, _, row_size, _ = (size for _, size in loop.body.inputs)
    carry, rest = args[:carry_size], args[carry_size:]
    fixed = rest[loop.count * row_size :]
    results: list[Any] = []
    for k, constants in enumerate(loop.tables.astype(dtype)):
        row = rest[k * row_size : (k + 1) * row_size]
        carry, out = evaluate(loop.body, [carry, list(constants), row, fixed], dtype)
        results.extend(out)
    return [*carry, *results]
