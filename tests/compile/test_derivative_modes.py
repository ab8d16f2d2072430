"""Derivatives of graphs against differences, and forward against reverse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import phipsi as pp
from phipsi.compile import Graph, Tracer, interpret, tracing
from phipsi.compile.forward_mode import pushforward
from phipsi.compile.ops import OPS
from phipsi.compile.reverse_mode import pullback
from tests.compile.both import both
from tests.compile.test_fuzz import ARITY, random_graph

Columns = list[np.ndarray]
fewer = settings(max_examples=max(1, settings().max_examples // 2), deadline=None)


def run(graph: Graph, inputs: Columns) -> Columns:
    rows, dtype = inputs[0].shape[0], inputs[0].dtype
    outputs = [np.empty((rows, len(nodes)), dtype) for _, nodes in graph.outputs]
    interpret.run(graph, inputs, outputs)
    return outputs


def difference(graph: Graph, inputs: Columns, along: Columns, h: float) -> Columns:
    """Central differences, in whatever precision the inputs have."""
    ahead, behind = (
        run(graph, [x + s * d for x, d in zip(inputs, along, strict=True)]) for s in (h, -h)
    )
    with np.errstate(invalid="ignore"):
        return [(a - b) / (2 * h) for a, b in zip(ahead, behind, strict=True)]


def tame(graph: Graph) -> bool:
    """Has it no constants so large that differences are lost in them, or so small that squares of
    them, which are folded in double precision, are zero?"""
    loops = (case.body for node in graph.nodes if node.op == "loop" for case in node.value.cases)
    constants = (node.value for node in graph.nodes if node.op == "const")
    return all(x == 0.0 or 1e-150 < abs(x) < 1e6 for x in constants) and all(map(tame, loops))


def no_pole(graph: Graph, row: Columns) -> bool:
    """Whether no value on the way is infinite or not a number: derivatives there may be neither."""
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            interpret.evaluate(graph, [[*x] for x in row], row[0].dtype)
    except FloatingPointError:
        return False
    return True


def of_operation(op: str) -> Graph:
    tracer = Tracer()
    with tracing(tracer):
        x = tracer.input("x", ARITY.get(op, 1))
        return tracer.graph([("y", [tracer.apply(op, *x)])])


@pytest.mark.parametrize("op", OPS)
def test_partials_of_every_operation(op: str) -> None:
    graph, rng = of_operation(op), np.random.default_rng(3)
    positive = op in ("sqrt", "log")
    x = [(rng.uniform(0.2, 3.0, (40, ARITY.get(op, 1)))).astype(np.longdouble)]
    if not positive:
        x[0] *= rng.choice([-1.0, 1.0], x[0].shape)
    d = [rng.normal(size=x[0].shape).astype(np.longdouble)]
    (rate,) = run(pushforward(graph, [0]), [*x, *d])
    (expected,) = difference(graph, x, d, 1e-6)
    np.testing.assert_allclose(rate.astype(float), expected.astype(float), rtol=1e-9, atol=1e-10)


def norm(x: Any) -> Any:
    return np.linalg.norm(x)


def angle(x: Any) -> Any:
    return np.arctan2(x[0], x[1])


def corner(x: Any) -> Any:
    return np.abs(x[0]) + np.sqrt(x[1]) * np.maximum(x[0], x[1])


def turned(x: Any) -> Any:
    return pp.linalg.quaternion_exp(x)[1] + pp.linalg.quaternion_log([1.0, *x])[0]


@pytest.mark.parametrize("function", [norm, angle, corner, turned])
def test_derivatives_at_zero_are_finite_to_the_second_order(function: Any) -> None:
    tracer = Tracer()
    with tracing(tracer):
        x = tracer.input("x", 3)
        graph = tracer.graph([("y", [function(x)])])
    zero, ones = np.zeros((1, 3)), np.ones((1, 3))
    one = np.ones((1, 1))
    for first, seed in ((pushforward(graph, [0]), ones), (pullback(graph, [0]), one)):
        assert all(np.isfinite(y).all() for y in run(first, [zero, seed]))
        second = pushforward(first, [0])
        assert all(np.isfinite(y).all() for y in run(second, [zero, seed, ones]))


def test_what_is_not_selected_does_not_matter() -> None:
    """Its rate may be infinite or unknown: zero times that would not be zero."""
    tracer = Tracer()
    with tracing(tracer):
        (x,) = tracer.input("x", 1)
        pole, root = 1.0 / x, (x - 1.0).log()
        limited = [tracer.apply("min", pole, 3.0 + x), tracer.apply("max", 2.0 * x, -pole)]
        chosen = tracer.apply("where", x > 0.0, root, 5.0 * x)
        graph = tracer.graph([("y", [*limited, chosen])])
    x, one = np.zeros((1, 1)), np.ones((1, 1))
    (rates,) = run(pushforward(graph, [0]), [x, one])
    assert rates.tolist() == [[1.0, 2.0, 5.0]]


@fewer
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(0, 3))
def test_random_graphs(seed: int, n: int, loops: int) -> None:
    graph, rng = random_graph(seed, n, loops)
    assume(tame(graph))
    event(f"compared {min(check_modes(graph, rng), 100) // 20 * 20}")


WIDTHS = (1e-6, 0.6180339887e-6)
"""Half widths of differences, one no simple fraction of the other: of values that have lost their
last digits to large terms, both have multiples of one number, which could be the same."""


def check_modes(graph: Graph, rng: np.random.Generator) -> int:
    """Forward is the limit of differences where they have one, reverse is its transpose. The number
    of results that have one."""
    sizes = [size for _, size in graph.inputs]
    x, d = ([rng.normal(size=(8, size)).astype(np.longdouble) for size in sizes] for _ in range(2))
    wrt = list(range(len(sizes)))
    rates = run(pushforward(graph, wrt), [*x, *d])
    regular = np.array([no_pole(graph, [a[k] for a in x]) for k in range(8)])[:, None]
    near, nearer = (difference(graph, x, d, h) for h in WIDTHS)
    compared = 0
    for rate, a, b in zip(rates, near, nearer, strict=True):
        scale = np.maximum(1.0, np.abs(a))
        told = np.isfinite(a) & (np.abs(a - b) < 1e-8 * scale) & (scale < 1e6)
        told &= regular | np.isfinite(rate)
        np.testing.assert_array_less(np.abs(rate - a)[told], 1e-6 * scale[told])
        compared += int(told.sum())

    given_ = [rng.normal(size=y.shape).astype(np.longdouble) for y in rates]
    back = run(pullback(graph, wrt), [*x, *given_])
    left = sum(np.sum(w * y, axis=1) for w, y in zip(given_, rates, strict=True))
    right = sum(np.sum(w * y, axis=1) for w, y in zip(back, d, strict=True))
    terms = (np.sum(np.abs(w * y), axis=1) for w, y in zip(back, d, strict=True))
    size = sum(terms, start=np.zeros(8, np.longdouble))
    good = np.isfinite(left) & np.isfinite(right) & (size < 1e9)
    np.testing.assert_array_less(np.abs(left - right)[good], 1e-9 * (1.0 + size[good]))
    return compared


@fewer
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 2))
def test_derived_graphs_run_as_machine_code(seed: int, n: int, loops: int) -> None:
    """Loops of derivatives mean the same to the code generator."""
    graph, rng = random_graph(seed, n, loops)
    for derived in (pushforward(graph, [0]), pullback(graph, [0])):
        inputs = [rng.normal(size=(5, size)) for _, size in derived.inputs]
        results = run(derived, inputs)
        if all(np.isfinite(y).all() and np.abs(y).max(initial=0.0) < 1e3 for y in results):
            event("compared")
            both(derived, *inputs, tolerance=1e-6)


def test_loops_with_checkpoints() -> None:
    """A loop of loops, by its rows, its start and what it takes from outside."""

    @pp.program(shapes={"rows": (6, 2)})
    def folded(robot: Any, q: Any, v: Any, rows: Any) -> Any:
        def outer(c: Any, row: Any) -> Any:
            def inner(x: Any, k: Any) -> Any:
                return np.sin(x * row[0]) + 0.1 * k * v, x[0]

            last, seen = pp.repeat(4, inner, c)
            return last * row[1], seen.sum()

        last, sums = pp.repeat(6, outer, q, rows)
        return last, sums

    robot = pp.robots.double_pendulum()
    rng = np.random.default_rng(0)
    x = [rng.normal(size=(3, *shape)) for shape in ((2,), (2,), (6, 2))]
    plain = folded.compile(robot)
    for mode in ("forward", "reverse"):
        found = folded.derivative(("q", "v", "rows"), mode=mode)(robot, *x)
        for k, part in enumerate(found):
            along = rng.normal(size=x[k].shape)
            moved = [[*x[:k], x[k] + s * along, *x[k + 1 :]] for s in (1e-6, -1e-6)]
            for jacobian, a, b in zip(part, *(plain(*m) for m in moved), strict=True):
                flat = jacobian.reshape(*a.shape, -1)
                got = np.einsum("b...n,bn->b...", flat, along.reshape(3, -1))
                np.testing.assert_allclose(got, (a - b) / 2e-6, rtol=1e-7, atol=1e-8)


def test_a_loop_that_overwrites_what_it_shares_has_no_reverse() -> None:
    from phipsi.compile import LoopBuilder, MemoryPlace
    from phipsi.compile.loops import pick

    tracer = Tracer()
    with tracing(tracer):
        x = tracer.input("x", 2)
        loop = LoopBuilder(2)
        at = loop.memory(2)
        for j in range(2):
            loop.put(at + j, x[j])
        here, there = loop.index([0, 1]), loop.index([1, 1])
        case = loop.case()
        with tracing(case):
            a, b = case.read(MemoryPlace(0, here, at)), case.read(MemoryPlace(0, there, at))
            case.write(MemoryPlace(0, here, at), a * b)
        memory = loop.node()
        graph = tracer.graph([("y", [pick(memory, at)])])
    with pytest.raises(pp.TraceError, match="has no reverse"):
        pullback(graph, [0])
    forward = pushforward(graph, [0])
    (rate,) = run(forward, [np.array([[2.0, 3.0]]), np.array([[1.0, 1.0]])])
    assert rate.tolist() == [[5.0]]


def test_kernels_derived_again_have_a_name_for_every_argument() -> None:
    """A result and a gradient of one name: two weights, not one."""
    robot = pp.robots.double_pendulum()

    @pp.program
    def named(robot: Any, q: Any, v: Any) -> dict[str, Any]:
        return {"q": np.sin(q) * v, "v": q * q}

    kernel = named.compile(robot, backend="numpy").pullback(("q",)).pullback(("v", "cotangent:q"))
    assert len({name for name, _ in kernel.parameters}) == 5
    q, v, a, b, c = np.random.default_rng(0).normal(size=(5, 2))
    by_v, by_a = kernel(q, v, a, b, c)
    np.testing.assert_allclose(by_v, np.cos(q) * a * c, rtol=1e-14)
    np.testing.assert_allclose(by_a, np.cos(q) * v * c, rtol=1e-14)
