"""Traces that are stored on disk: which ones, and that they are the same when they are loaded."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pytest

import phipsi as pp
from phipsi.compile import BACKENDS, BackendName, Graph
from phipsi.compile.stored_graph import from_values, to_values
from phipsi.control import assisted, on_path, pd_gravity, resolved_acceleration, thrusters
from phipsi.programs import identity, request
from phipsi.programs.request import Request
from tests.zoo import random_forest

ROBOT = pp.robots.double_pendulum()


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the programs that are traced; the cache is empty at first."""
    monkeypatch.setenv("PHIPSI_CACHE_DIR", str(tmp_path / "cache"))
    for known in ("_graphs", "_structures"):
        monkeypatch.setattr(request, known, WeakValueDictionary())
    names: list[str] = []
    traced = Request.traced

    def noted(self: Request) -> Any:
        names.append(self.name)
        return traced(self)

    monkeypatch.setattr(Request, "traced", noted)
    return names


def stored(graph: Graph) -> Graph:
    return from_values(json.loads(json.dumps(to_values(graph))))


@pytest.mark.parametrize("unroll", [True, False])
def test_a_stored_graph_is_the_same(unroll: bool) -> None:
    """Loops, tables of constants, constants that have many digits, results of several arrays."""
    for seed in range(3):
        robot = random_forest(seed, 4)
        for program in (pp.forward_dynamics, pp.forward_dynamics_derivatives, pp.poses):
            graph = program.graph(robot, unroll=unroll)
            again = stored(graph)
            assert again.digest == graph.digest
            assert again.inputs == graph.inputs
            assert again.outputs == graph.outputs
            assert unroll is False or again.nodes == graph.nodes


def test_numbers_that_are_not_finite_are_stored() -> None:
    @pp.program
    def ends(robot: pp.Robot, q: Any) -> Any:
        return np.array([np.inf * q[0], -np.inf + q[1], np.nan * q[0], 5e-324 * q[0], -0.0 * q[1]])

    graph = ends.graph(ROBOT, q=np.zeros(2))
    assert str(stored(graph)) == str(graph)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_a_trace_is_loaded_with_the_structure_of_its_result(
    traces: list[str], backend: BackendName
) -> None:
    if backend not in BACKENDS:
        pytest.skip("no llvmlite")
    q, v = ROBOT.random_state(0, (9,))

    def computed() -> list[Any]:
        one = pp.forward_dynamics.compile(ROBOT, backend=backend)
        named = pp.hybrid_dynamics.compile(ROBOT, backend=backend, active="joint1")
        pair = pp.forward_dynamics.compile(ROBOT, backend=backend, unroll=False)
        return [one(q, v, v), named(q, v, v, v), pair(q, v, v)]

    expected = computed()
    assert traces == ["forward_dynamics", "hybrid_dynamics", "forward_dynamics"]
    traces.clear()
    found = computed()
    assert not traces
    assert isinstance(found[1], pp.HybridSolution)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_kernels_of_other_number_types_share_a_trace_while_they_live(traces: list[str]) -> None:
    kernels = [
        pp.forward_dynamics.compile(ROBOT),
        pp.forward_dynamics.compile(ROBOT, dtype="float32"),
        pp.forward_dynamics.compile(ROBOT, dtype="longdouble", backend="numpy"),
    ]
    assert len({id(kernel.graph) for kernel in kernels}) == 1
    assert traces == ["forward_dynamics"]
    del kernels
    gc.collect()
    assert not request._graphs


def simulated(controller: Any, **parameters: Any) -> pp.Trajectory:
    from phipsi.simulation import closed_loop

    for program in (closed_loop.advance, closed_loop.observe):
        program._kernels.clear()
        program._shortcuts._known.clear()
    return pp.simulate(
        ROBOT, [0.3, 0.2], controller=controller, duration=0.02, dt=1e-3, parameters=parameters
    )


def test_simulations_with_controllers_of_phipsi_are_not_traced_again(traces: list[str]) -> None:
    gains = {"target": [0.1, 0.0], "stiffness": 9.0, "damping": 1.0}
    for controller, parameters in ((None, {}), (pd_gravity, gains)):
        traces.clear()
        first = simulated(controller, **parameters)
        assert "advance" in traces
        traces.clear()
        again = simulated(controller, **parameters)
        assert not traces
        np.testing.assert_array_equal(again.q, first.q)
        np.testing.assert_array_equal(again.tau, first.tau)
        assert list(again.signals) == list(first.signals)


def test_simulations_with_controllers_of_users_are(traces: list[str]) -> None:
    """What such a function computes may depend on anything."""
    gain = [1.0]

    def control(robot: pp.Robot, q: Any, v: Any) -> Any:
        return -gain[0] * q

    def other(robot: pp.Robot, q: Any, v: Any) -> Any:
        return -2.0 * gain[0] * q

    assert identity(pp.program(control)) is None
    first, second = simulated(control), simulated(other)
    assert traces.count("advance") == 2
    assert np.abs(first.v[-1] - second.v[-1]).max() > 1e-3


def test_constants_are_identified_by_what_they_are_made_of() -> None:
    loop, grasp = pp.Loop("a", "b"), pp.Grasp("a", "b")
    known = [
        None, 1, 1.0, "1", (1,), (1, 2), loop, grasp, pp.Loop("a", "c"), (loop,), ROBOT,
        pp.forward_dynamics, on_path(resolved_acceleration),
        assisted(pp.control.reaction_mode, thrusters), pp.Limits(), pp.Limits(stiffness=7.0),
    ]  # fmt: skip
    texts = [identity(x) for x in known]
    assert None not in texts
    assert len({*texts}) == len(known)
    assert identity(pp.robots.double_pendulum()) == identity(ROBOT)

    @pp.program
    def own(robot: pp.Robot, q: Any) -> Any:
        return q

    for unknown in (own, np.zeros(3), [1], object(), lambda: 0, (1, own), {"a": 1}):
        assert identity(unknown) is None
