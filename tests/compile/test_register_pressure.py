"""The order in which graphs are emitted for the GPU: the same to the bit, fewer values alive; and
sines and cosines in loops."""

from __future__ import annotations

import numpy as np
import pytest

import phipsi as pp
from phipsi.compile import Graph, Tracer, interpret, to_cuda
from phipsi.compile.register_pressure import alive, floating, nearby, ordered
from phipsi.compile.schedule import fused_products
from tests.compile import emulated
from tests.compile.test_cuda import emulator
from tests.compile.test_fuzz import random_graph, random_inputs

WALKER = pp.robots.humanoid()


def results(graph: Graph, inputs: list[np.ndarray]) -> list[np.ndarray]:
    outputs = [np.empty((len(inputs[0]), len(nodes))) for _, nodes in graph.outputs]
    interpret.run(graph, inputs, outputs)
    return outputs


def same_bits(graph: Graph, inputs: list[np.ndarray]) -> None:
    other = ordered(graph)
    assert len(other.nodes) == len(graph.nodes) and other.count() == graph.count()
    for a, b in zip(results(graph, inputs), results(other, inputs), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs(seed: int) -> None:
    graph, rng = random_graph(seed, 60, seed % 4)
    same_bits(graph, random_inputs(graph, rng, "float64", special=True))


def test_a_robot_with_limbs() -> None:
    """One limb after the other: only of those that are done something waits for the body."""
    graph = pp.forward_dynamics.graph(WALKER)
    rng = np.random.default_rng(0)
    same_bits(graph, [rng.normal(size=(10, size)) for _, size in graph.inputs])
    before, after = alive(graph), alive(ordered(graph))
    assert max(after) < max(before) and sum(after) < 0.9 * sum(before)


def test_what_is_alive() -> None:
    """Counted by hand: x₀x₁ and x₀+x₁ at once, then their quotient alone."""
    tracer = Tracer()
    x = tracer.input("x", 2)
    product, total = x[0] * x[1], x[0] + x[1]
    graph = tracer.graph([("y", [product / total])])
    by_op = dict(zip((node.op for node in graph.nodes), alive(graph), strict=True))
    assert (by_op["mul"], by_op["add"], by_op["div"]) == (1, 2, 0)


def test_far_products() -> None:
    """A product whose factors are read by nothing later is computed where they are."""
    tracer = Tracer()
    x = tracer.input("x", 3)
    a, b = x[0] / x[1], x[1] / x[2]
    product, y = a * b, x[2]
    for _ in range(120):
        y = y / x[0] + x[1] * x[2]
    graph = tracer.graph([("y", [y + product])])
    fused = fused_products(graph)
    kept = nearby(graph, fused)
    gone = set(fused.values()) - set(kept.values())
    assert [graph.nodes[i].args for i in gone] == [
        tuple(i for i, node in enumerate(graph.nodes) if node.op == "div")[:2]
    ]


def test_what_floats() -> None:
    tracer = Tracer()
    x = tracer.input("x", 2)
    graph = tracer.graph([("y", [np.sin(x[0] + x[1]) * np.cos(np.sqrt(x[0]))])])
    assert sorted(graph.nodes[i].op for i in floating(graph)) == ["add", "sin"]


@emulator
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("make", [pp.robots.puma560, pp.robots.space_arm])
def test_sines_and_cosines_in_loops(
    make: object, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Angles in place, and sums of angles, in loops, as if registers were short."""
    monkeypatch.setattr(to_cuda, "ALIVE", 0)
    monkeypatch.setattr(to_cuda, "AGAIN", 20)
    graph = pp.forward_dynamics.graph(make())  # type: ignore[operator]
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(40, size)).astype(dtype) for _, size in graph.inputs]
    module = to_cuda.emit(graph, dtype)
    assert "turns[" in module.text and "asm volatile" in module.text
    (expected,) = results(graph, [x.astype(float) for x in inputs])
    (found,) = emulated.run(graph, inputs, module)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert error < {"float64": 1e-14, "float32": 1e-5}[dtype]
