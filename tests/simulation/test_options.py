"""The options that `simulate`, `rollout`, `motion` and scenarios share are said once."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import phipsi as pp
from phipsi.scenarios.schema import Simulation
from phipsi.simulation import ADAPTIVE, COORDINATES, METHODS, simulator, steps
from phipsi.simulation.adaptive import AdaptiveMethod
from phipsi.simulation.coordinates import CoordinatesName
from phipsi.simulation.methods import FixedStepMethod
from phipsi.simulation.options import MethodName, SimulationKeywords, SimulationOptions

SHARED = {f.name: f for f in fields(SimulationOptions)}
FUNCTIONS = (pp.simulate, pp.rollout, pp.motion)
OWN = {
    "simulate": ["parameters", "memory", "external", "events", "frames", "progress"],
    "rollout": ["parameters", "memory", "external", "signals"],
    "motion": [],
}


def test_keywords_are_the_options_with_a_default():
    keywords, options = get_type_hints(SimulationKeywords), get_type_hints(SimulationOptions)
    assert keywords == {name: hint for name, hint in options.items() if name != "duration"}
    assert list(keywords) == [name for name in SHARED if name != "duration"]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_signatures_show_every_option_with_type_and_default(function: Callable[..., Any]):
    parameters = inspect.signature(function).parameters
    named = [name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    assert named == [*SHARED, *OWN[function.__name__]]
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    hints = get_type_hints(function)
    for name, hint in get_type_hints(SimulationOptions).items():
        assert hints[name] == hint
        if name != "duration":
            assert parameters[name].default == SHARED[name].default


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_unknown_keywords_are_those_of_the_function(function: Callable[..., Any]):
    robot = pp.robots.double_pendulum()
    start = () if function is pp.motion else (robot, [0.0, 0.0])
    name = function.__name__
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'dtt'$"):
        function(*start, duration=1.0, dtt=0.1)
    with pytest.raises(TypeError, match=rf"^{name}\(\) missing 1 required .*'duration'$"):
        function(*start, dt=0.1)


def test_scenarios_have_the_same_options_and_defaults():
    rows = {f.name: f for f in fields(Simulation)}
    assert set(rows) - {"where", "external"} == set(SHARED) - {"closures", "sequences", "unroll"}
    for name in set(rows) & set(SHARED):
        assert rows[name].default == SHARED[name].default
    loops = (pp.Loop("a", "b"),)
    options = Simulation(None, duration=2.0, every=3).options(loops)  # type: ignore[arg-type]
    assert options == SimulationOptions(duration=2.0, every=3, closures=loops)


def test_names_are_those_of_the_tables():
    assert get_args(FixedStepMethod) == tuple(METHODS)
    assert get_args(AdaptiveMethod) == tuple(ADAPTIVE)
    assert get_args(MethodName) == (*METHODS, *ADAPTIVE)
    assert get_args(CoordinatesName) == tuple(COORDINATES)


def test_they_work_without_docstrings():
    script = "import phipsi as pp; print(pp.simulate.__doc__, 'dt' in pp.motion.__annotations__)"
    ran = subprocess.run([sys.executable, "-OO", "-c", script], capture_output=True, text=True)
    assert ran.stdout == "None True\n", ran.stderr


@pytest.mark.parametrize("unroll", [True, False])
def test_unroll_says_how_the_kernels_of_a_motion_are_traced(
    unroll: bool, monkeypatch: pytest.MonkeyPatch
):
    robot = pp.robots.chain(4)
    graph = pp.motion(duration=0.2, dt=0.1, unroll=unroll).graph(robot)
    (whole,) = (node.value for node in graph.nodes if node.op == "loop")
    inner = [node.value for case in whole.cases for node in case.body.nodes if node.op == "loop"]
    assert {loop.count for loop in inner} == (set() if unroll else {4})

    asked: list[bool | None] = []
    for module, name in ((steps, "advance"), (simulator, "observe"), (simulator, "solve")):
        function = getattr(module, name)

        def noted(*args: Any, function: Any = function, **kwargs: Any) -> Any:
            loop = kwargs.get("loop") or args[1]
            asked.append(loop.unroll)
            return function(*args, **kwargs)

        noted.operations = getattr(function, "operations", None)  # type: ignore[attr-defined]
        monkeypatch.setattr(module, name, noted)
    q0 = [0.1, 0.2, 0.3, 0.4]
    how: dict[str, Any] = {"duration": 0.1, "dt": 0.01, "unroll": unroll}
    expected = pp.simulate(robot, q0, duration=0.1, dt=0.01).q
    asked.clear()
    moved = pp.simulate(robot, q0, **how), pp.rollout(robot, q0, **how)
    for motion in (*moved, pp.simulate(robot, q0, method="dop853", **how)):
        np.testing.assert_allclose(motion.q, expected, atol=1e-6)
    np.testing.assert_allclose(moved[0].q, moved[1].q, atol=1e-12)
    assert len(asked) == 5 and set(asked) == {unroll}


def test_unroll_is_a_truth_value():
    with pytest.raises(TypeError, match="unroll is 'yes', needs True, False or None"):
        pp.simulate(pp.robots.double_pendulum(), [0.0, 0.0], duration=1.0, unroll="yes")  # type: ignore[arg-type]
