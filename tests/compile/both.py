"""Every backend on one graph: they must agree."""

from __future__ import annotations

import numpy as np

from phipsi.compile import Graph, interpret
from phipsi.compile.native import MachineCode, host


def both(graph: Graph, *inputs: np.ndarray, tolerance: float = 1e-14) -> list[np.ndarray]:
    """The interpreter's outputs (rows, size), after comparing machine code with them: scalar and
    vector, which are equal to the bit."""
    rows, dtype = inputs[0].shape[0], inputs[0].dtype
    results = [[np.empty((rows, len(n)), dtype) for _, n in graph.outputs] for _ in range(3)]
    interpret.run(graph, list(inputs), results[0])
    for single, outputs in zip((True, False), results[1:], strict=True):
        MachineCode(graph, host(dtype.name, single)).run(list(inputs), outputs, 1)
    for expected, scalar, vector in zip(*results, strict=True):
        np.testing.assert_array_equal(scalar, vector)
        scale = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0)))
        np.testing.assert_allclose(vector, expected, rtol=tolerance, atol=tolerance * scale)
    return results[0]
