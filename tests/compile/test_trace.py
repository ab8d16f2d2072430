"""Traced NumPy code means what the same code means on numbers."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phipsi as pp
from phipsi.compile import Gathered, Graph, TraceError, Tracer, lift, tracing
from phipsi.programs import request
from tests.compile.both import both


def traced(function: Callable[..., Any], *sizes: int) -> tuple[Graph, tuple[int, ...]]:
    tracer = Tracer()
    with tracing(tracer):
        inputs = [lift(tracer.input(f"x{i}", n)) for i, n in enumerate(sizes)]
        result = np.asarray(lift(function(*inputs)))
        return tracer.graph([("y", list(result.reshape(-1)))]), result.shape


def check(function: Callable[..., Any], *arrays: Any, tolerance: float = 1e-14) -> Graph:
    arrays = tuple(np.asarray(a, float) for a in arrays)
    graph, shape = traced(function, *(a.size for a in arrays))
    (result,) = both(graph, *(a.reshape(1, -1) for a in arrays), tolerance=tolerance)
    expected = np.asarray(function(*arrays), float)
    assert shape == expected.shape
    np.testing.assert_allclose(result.reshape(shape), expected, rtol=tolerance, atol=tolerance)
    return graph


X = np.array([0.3, -1.2, 2.5])
Y = np.array([-0.7, 0.4, 1.1])

PLAIN_NUMPY: list[Callable[..., Any]] = [
    lambda x, y: x + 2 * y - x / (1 + y * y),
    lambda x, y: np.cross(x, y) @ x + x @ y,
    lambda x, y: np.outer(x, y) @ np.eye(3),
    lambda x, y: np.sin(np.concatenate([np.zeros(2), x])),
    lambda x, y: np.tan(x) + np.arctan(y) + np.arctan2(x, y),
    lambda x, y: np.arcsin(np.tanh(x)) + np.arccos(np.tanh(y)),
    lambda x, y: np.sinh(x) + np.cosh(y) + np.exp(x) + np.log(np.abs(y)),
    lambda x, y: np.sqrt(x**2 + y**2) + np.hypot(x, y) + x**3 + np.abs(x) ** 0.5 + 2.0**y,
    lambda x, y: np.maximum(x, y) + np.minimum(x, 0.0) + np.clip(y, -0.5, 0.5),
    lambda x, y: np.where(x > y, x, y) + np.where((x < 1) & (y > 0), 1.0, x),
    lambda x, y: np.where(x >= 0.3, 1.0, 0.0) + (x != y) + (x == x) + ~(x <= y),
    lambda x, y: np.sign(x) + np.floor(y) + np.ceil(x) + np.square(y) + np.reciprocal(x),
    lambda x, y: x.sum() + y.mean() + np.linalg.norm(x) + x.max() + np.prod(y),
    lambda x, y: np.stack([x, y]).T.reshape(2, 3)[:, ::-1],
    lambda x, y: np.dot(x, y) * np.einsum("i,i->", x, y),
    lambda x, y: np.linalg.norm(np.stack([x, y]), axis=1),
    lambda x, y: 1.0 * np.logical_and(x, y) + 2.0 * np.logical_or(0 * x, y) + np.logical_not(3 * x),
    lambda x, y: np.where(~((x > 0) & (y > 0)) | (x > 2), x, y),
    lambda x, y: (x - 5) ** 65 * 1e-40 + x**-3 + (y * y) ** 2.5,
    lambda x, y: np.sinh(1e-10 * x) * 1e10,
    lambda x, y: np.interp(x, [-1.0, 0.5, 2.0], [3.0, -1.0, 4.0]) + np.interp(y[0], np.sort(X), x),
    lambda x, y: np.deg2rad(x) + np.rad2deg(y),
    lambda x, y: x[0] * np.float64(2.0) + np.float32(0.5) * y[1] - np.sin(x[2]),
    lambda x, y: sum(np.where(a < b, a, b) for a, b in zip(x, y, strict=True)),
]


@pytest.mark.parametrize("function", PLAIN_NUMPY)
def test_plain_numpy_traces_unchanged(function: Callable[..., Any]) -> None:
    check(function, X, Y)


BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / (b * b + 1.0),
    "min": np.minimum,
    "max": np.maximum,
    "where": lambda a, b: np.where(a < b, a, -b),
}
UNARY = {
    "neg": lambda a: -a,
    "sin": np.sin,
    "tanh": np.tanh,
    "abs": np.abs,
    "sqrt": lambda a: np.sqrt(np.abs(a)),
    "twice": lambda a: a * 2.0,
    "nothing": lambda a: a * 0.0 + 1.0 * a - 0.0,
}


def _tree(x: list[Any], plan: list[tuple[str, int, int]]) -> Any:
    values = [*x, 0.0, 1.0, -1.0, 0.5]
    for name, i, j in plan:
        a, b = values[i % len(values)], values[j % len(values)]
        values.append(UNARY[name](a) if name in UNARY else BINARY[name](a, b))
    return np.array(values[-4:], dtype=object if any(map(_is_node, values)) else float)


def _is_node(x: Any) -> bool:
    return type(x).__name__ == "Node"


@given(
    st.lists(
        st.tuples(st.sampled_from([*BINARY, *UNARY]), st.integers(0, 40), st.integers(0, 40)),
        min_size=1,
        max_size=25,
    ),
    st.lists(st.floats(-3, 3), min_size=4, max_size=4),
)
def test_folding_keeps_the_meaning(plan: list[tuple[str, int, int]], values: list[float]) -> None:
    tracer = Tracer()
    with tracing(tracer):
        nodes = list(tracer.input("x", 4))
        result = _tree(nodes, plan)
        graph = tracer.graph([("y", list(result))])
    (found,) = both(graph, np.array([values]))
    expected = np.asarray(_tree(list(map(np.float64, values)), plan), float)
    np.testing.assert_allclose(found[0], expected, rtol=1e-9, atol=1e-9)


def test_equal_work_is_one_node_and_dead_work_none() -> None:
    graph, _ = traced(lambda x: [np.sin(x[0]) * x[1] + x[1] * np.sin(x[0]), 0 * np.cos(x[0])][0], 2)
    assert graph.count() == {"sin": 1, "mul": 1, "add": 1}


def test_structural_zeros_and_ones_cost_nothing() -> None:
    R = np.eye(3)
    graph, _ = traced(lambda x: R @ x + np.zeros(3) - (-0.0) * x, 3)
    assert graph.operations == 0


def test_branching_on_a_traced_value_is_refused_with_a_hint() -> None:
    with pytest.raises(TraceError, match=r"phipsi\.where"):
        traced(lambda x: x if x[0] > 0 else -x, 2)
    with pytest.raises(TraceError, match="not a number yet"):
        traced(lambda x: float(x[0]), 1)
    with pytest.raises(TraceError, match=r"phipsi\.linalg"):
        traced(lambda x: np.linalg.inv(x.reshape(2, 2)), 4)
    with pytest.raises(TraceError, match="cannot be traced"):
        traced(lambda x: np.gcd(x, x), 2)
    with pytest.raises(TraceError, match="takes no left, right or period"):
        traced(lambda x: np.interp(x, [0.0, 1.0], [1.0, 2.0], left=0.0), 1)
    with pytest.raises(TraceError, match=r"300 points are too many.*sequences"):
        traced(lambda x: np.interp(x, np.arange(300.0), np.zeros(300)), 1)
    with pytest.raises(TraceError, match="cannot be traced"):
        traced(lambda x: np.fmin(x, x), 2)  # it would have to ignore NaN


def test_traced_values_are_assigned_into_zeros() -> None:
    """By index, slice and mask and in place, as in an array of numbers."""

    def assigned(zeros: Callable[[int], Any], x: Any) -> Any:
        out = zeros(5)
        out[0] = np.sin(x[0])
        out[1:3] = x[:2] * 2.0
        out[3:] += x[1]
        out[[0, 4]] -= x[2]
        out *= 3.0
        out[out > 1.0] = 7.0
        out[out < x[2] / 2.0] = x[0]
        return out

    x = np.array([0.3, -0.4, -3.0])
    expected = assigned(np.zeros, x)
    assert (expected == 7.0).any() and (expected == 0.3).any()
    check(lambda x: assigned(pp.zeros, x), x)
    assert type(pp.zeros(2)) is np.ndarray
    for how in (lambda x: assigned(np.zeros, x), lambda x: np.add(x, x, out=np.zeros(3))):
        with pytest.raises(TraceError, match=r"phipsi\.zeros"):
            traced(how, 3)
    for place in (0, slice(2), [0, 1]):
        with pytest.raises(ValueError, match=r"an array of shape \(3,\) cannot be assigned to"):
            traced(lambda x, place=place: pp.zeros(4).__setitem__(place, x) or x, 3)
    for index in (lambda x: x[x[0]], lambda x: pp.zeros((2, 2))[0, x[0]]):
        with pytest.raises(TraceError, match=r"phipsi\.where.*sequences"):
            traced(index, 3)
    with pytest.raises(IndexError, match="out of bounds"):
        traced(lambda x: x[7], 3)


def test_sign_keeps_nan() -> None:
    graph, _ = traced(np.sign, 1)
    (found,) = both(graph, np.array([[np.nan], [-2.0], [0.0], [3.0]]))
    np.testing.assert_array_equal(found[:, 0], [np.nan, -1.0, 0.0, 1.0])


def test_a_value_of_another_trace_is_refused() -> None:
    kept: list[Any] = []
    traced(lambda x: kept.append(x[0]) or x, 1)
    with pytest.raises(TraceError, match="another trace"):
        traced(lambda x: x + kept[0], 1)


@given(st.integers(1, 6), st.lists(st.floats(-2, 2), min_size=3, max_size=3))
def test_repeat_is_the_loop_it_stands_for(count: int, values: list[float]) -> None:
    rows = np.arange(2.0 * count).reshape(count, 2)

    def function(x: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            p, s = carry
            s = np.tanh(s + p * row[0] + x[2])
            return (p + row[1], s), np.array([s, p * x[0]], dtype=object)

        (p, s), ys = pp.repeat(count, step, (x[0], x[1]), rows)
        return np.concatenate([np.array([p, s], dtype=object), np.asarray(ys).reshape(-1)])

    check(function, values)


def test_repeat_is_one_node_whatever_the_count() -> None:
    def rolled(count: int) -> Graph:
        return traced(lambda x: pp.repeat(count, lambda c, k: (np.sin(c) + x, c), x)[0], 1)[0]

    assert len(rolled(5).nodes) == len(rolled(500).nodes)
    assert rolled(500).count() == {"sin": 500, "add": 500}
    assert str(rolled(5)) != str(rolled(6))
    assert rolled(5).digest != rolled(6).digest


def test_the_digest_sees_the_tables_of_nested_loops() -> None:
    def digest(c: float) -> str:
        def outer(s: Any, k: Any) -> Any:
            return pp.repeat(2, lambda u, row: (u * row, u), s, np.array([1.0, c]))[0], s

        return traced(lambda x: pp.repeat(2, outer, x)[0], 1)[0].digest

    assert digest(2.0) == digest(2.0) != digest(3.0)


def test_nested_repeat_and_traced_rows() -> None:
    def function(x: Any) -> Any:
        def outer(c: Any, row: Any) -> Any:
            inner, _ = pp.repeat(3, lambda d, k: (d * row + x[1] + k, d), c)
            return inner, c

        last, all_ = pp.repeat(3, outer, x[:1], x.reshape(3, 1))
        return np.concatenate([last, np.asarray(all_).reshape(-1)])

    check(function, X)


def test_rows_gathered_from_several_arrays() -> None:
    """One row, two at a time, and numbers by round, as the same loop on numbers has them."""
    index = np.array([[0, 1], [1, 2], [1, 0], [2, 2]])

    def function(x: Any, y: Any) -> Any:
        x = x.reshape(3, 2)
        rows = Gathered(((x, index), (y, np.array([2, 0, 0, 1])), (np.arange(4.0), np.arange(4))))

        def step(carry: Any, row: Any) -> Any:
            pair, one, number = row
            carry = carry * one + pair[0] - number * pair[1]
            return carry, carry

        last, all_of_them = pp.repeat(4, step, np.ones(2), rows)
        return np.concatenate([last, all_of_them.reshape(-1)])

    check(function, np.arange(6.0) / 3, Y)


def test_rows_from_the_memory_of_a_loop_and_of_numbers() -> None:
    """A round reads them where they are: nothing is packed but what was computed in between."""

    def function(x: Any) -> Any:
        _, squares = pp.repeat(4, lambda c, k: (c + x, c * c), x)
        rows = np.concatenate([squares, squares[::-1], np.arange(8.0).reshape(4, 2)], axis=1)
        rows[1, 0] = 0.5
        rows[:, 1] = 3.0 * np.asarray(rows[:, 1])
        last, sums = pp.repeat(4, lambda c, row: (c * row[0] + row[4], row @ row[::-1]), x[0], rows)
        return np.concatenate([np.reshape(last, 1), np.asarray(sums).reshape(-1)])

    check(function, X[:2])
    graph, _ = traced(function, 2)
    (packed,) = (node.args for node in graph.nodes if node.op == "pack")
    assert len(packed) == 8  # the first two columns: with a number, and multiplied


def test_rows_from_the_memories_of_several_loops() -> None:
    def function(x: Any) -> Any:
        _, one = pp.repeat(2, lambda c, k: (c + x[0], c), x[0])
        _, two = pp.repeat(2, lambda c, k: (c * x[1], c), x[1])
        return pp.repeat(2, lambda c, row: (c + row[0], row), x[2], np.stack([one, two]))[1]

    check(function, X)


def test_repeat_refuses_a_carry_that_changes_shape() -> None:
    with pytest.raises(ValueError, match="carry has shapes"):
        traced(lambda x: pp.repeat(2, lambda c, k: (np.zeros(3), c), x)[0], 2)
    with pytest.raises(ValueError, match="needs 3"):
        pp.repeat(3, lambda c, k: (c, c), 1.0, np.zeros(2))


def test_the_text_of_a_graph_is_readable() -> None:
    graph, _ = traced(lambda x: np.sin(x) * 2.0, 1)
    assert str(graph) == "%0 = x0[0]\n%1 = sin %0\n%2 = 2.0\n%3 = %2 * %1\ny = [%3]"


def test_a_trace_leaves_no_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """The nodes of a trace, hundreds of thousands, are freed without the garbage collector."""
    tracers: list[weakref.ref[Tracer]] = []

    def noted(**how: Any) -> Tracer:
        tracer = Tracer(**how)
        tracers.append(weakref.ref(tracer))
        return tracer

    robot = pp.robots.puma560()
    pp.forward_dynamics.graph(robot)  # the first time modules are imported, and frames kept
    monkeypatch.setattr(request, "Tracer", noted)
    gc.disable()
    try:
        pp.forward_dynamics.graph(robot)
        assert [tracer() for tracer in tracers] == [None]
    finally:
        gc.enable()


def test_collections_are_paused_only_while_tracing() -> None:
    seen: list[bool] = []

    @pp.program
    def looks(robot: pp.Robot, q: Any) -> Any:
        seen.append(gc.isenabled())
        if len(seen) == 2:
            raise ValueError("stop")
        return q

    robot = pp.robots.double_pendulum()
    looks.graph(robot, q=np.zeros(2))
    assert gc.isenabled()
    with pytest.raises(ValueError, match="stop"):
        looks.graph(robot, q=np.zeros(2))
    assert gc.isenabled()
    gc.disable()
    try:
        looks.graph(robot, q=np.zeros(2))
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert seen == [False, False, False]
