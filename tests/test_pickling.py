"""Public objects go to other processes and are copied: by name and content, never as code."""

from __future__ import annotations

import concurrent.futures
import copy
import importlib
import inspect
import multiprocessing
import pickle
import pickletools
import sys
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.compile import BACKENDS, ArraySpec, Structure
from phipsi.control import assisted, on_path, pd_gravity, reaction_mode, thrusters
from phipsi.control.composition import Part, composed
from phipsi.operators.lowering.program import as_program
from tests.each import each

ROBOT, ARM = pp.robots.double_pendulum(), pp.robots.space_arm()
Q, V = ROBOT.random_state(0, (3,))
PACKAGES = ("phipsi", "phipsi.control", "phipsi.operators", "phipsi.simulation")
TABLES = {"ADAPTIVE", "COORDINATES", "METHODS", "SYMBOLS"}
"""Rows of functions by name, which stay where they are."""


def public() -> list[str]:
    return [
        f"{package}:{name}"
        for package in PACKAGES
        for name in importlib.import_module(package).__all__
        if name not in TABLES
    ]


def named(text: str) -> Any:
    package, name = text.split(":")
    return getattr(importlib.import_module(package), name)


def travelled(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


@each("name", public())
def test_what_is_public_is_pickled_by_its_name(name: str) -> None:
    x = named(name)
    if isinstance(x, ModuleType):
        return
    again = travelled(x)
    assert again is x or again == x
    if not inspect.isclass(x):
        assert copy.copy(x) is x or copy.copy(x) == x


@pp.program
def twice(robot: pp.Robot, q: Any) -> Any:
    return {"value": 2.0 * q, "parts": (pp.potential_energy(robot, q), q[0])}


REFERENCES = (
    pp.forward_dynamics,
    twice,
    pp.potential_energy.derivative("q"),
    twice.derivative(["q"], of="value", mode="reverse"),
    pp.potential_energy.derivative("q").derivative("q"),
    on_path(pd_gravity),
    assisted(reaction_mode, thrusters),
    composed((Part("hold", pd_gravity),), (("target", "stiffness", "damping"),)),
    as_program(pp.operators.mass.inv),
    pp.motion(duration=0.1, dt=0.01),
    pp.motion(pd_gravity, duration=0.1, dt=0.01, every=2),
)


@pytest.mark.parametrize("program", REFERENCES, ids=lambda p: p.name)
def test_programs(program: Any) -> None:
    """By name, or by how they were made."""
    again = travelled(program)
    assert again.usage == program.usage
    assert again.content_key == program.content_key
    assert copy.copy(program) is copy.deepcopy(program) is program
    if list(program.parameters) == ["q"]:
        for x, y in zip(leaves(again(ROBOT, Q)), leaves(program(ROBOT, Q)), strict=True):
            np.testing.assert_array_equal(x, y)


def leaves(x: Any) -> list[Any]:
    if isinstance(x, dict):
        return leaves(tuple(x.values()))
    return [y for part in x for y in leaves(part)] if isinstance(x, tuple) else [x]


def test_a_program_without_a_name_is_refused_in_one_sentence() -> None:
    @pp.program
    def local(robot: pp.Robot, q: Any) -> Any:
        return q

    for program in (local, local.derivative("q"), pp.program(lambda robot, q: q)):
        with pytest.raises(pickle.PicklingError, match="cannot be pickled, for the module"):
            pickle.dumps(program)
        assert copy.deepcopy([program])[0] is program


def test_a_program_of_a_script_is_found_where_the_script_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pools of joblib and Dask start other scripts, and pickle the functions of the user's by
    value, but objects by name."""

    @pp.program
    def thrice(robot: pp.Robot, q: Any) -> Any:
        return 3.0 * q

    thrice.__module__ = "__main__"
    monkeypatch.setattr(sys.modules["__main__"], "thrice", thrice, raising=False)
    sent = pickle.dumps((thrice, thrice.derivative("q")))
    assert pickle.loads(sent)[0] is thrice
    monkeypatch.undo()
    with pytest.raises(pickle.UnpicklingError, match=r"send the kernel thrice\.compile\(robot\)"):
        pickle.loads(sent)


KERNELS: dict[str, Any] = {
    "plain": lambda how: pp.forward_dynamics.compile(ROBOT, **how),
    "looped": lambda how: pp.forward_dynamics.compile(ROBOT, unroll=False, **how),
    "named tuple": lambda how: pp.hybrid_dynamics.compile(ROBOT, active="joint1", **how),
    "nested": lambda how: twice.compile(ROBOT, **how),
    "more inputs": lambda how: pp.mass_matrix.compile(ROBOT, inputs=("gravity",), **how),
    "gradient": lambda how: pp.potential_energy.compile(ROBOT, **how).pullback(),
    "of a local program": lambda how: pp.program(lambda robot, q: -q).compile(ROBOT, **how),
    "single": lambda how: pp.mass_matrix.compile(ROBOT, dtype="float32", threads=1, **how),
}


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str, backend: str) -> None:
    """By their graphs: the machine code is made anew."""
    if backend not in BACKENDS:
        pytest.skip("no llvmlite")
    kernel = KERNELS[name]({"backend": backend})
    arrays = [np.random.default_rng(i).standard_normal((3, *s.shape)) for i, (_, s) in
              enumerate(kernel.parameters)]  # fmt: skip
    expected = kernel(*arrays)
    again = travelled(kernel)
    assert (repr(again), again.parameters) == (repr(kernel), kernel.parameters)
    assert again.graph.digest == kernel.graph.digest
    found = again(*arrays)
    assert type(found) is type(expected)
    for x, y in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_array_equal(x, y)
    assert copy.copy(kernel) is copy.deepcopy(kernel) is kernel
    graph = travelled(kernel.graph)
    assert graph.digest == kernel.graph.digest
    assert set(vars(graph)) <= {"inputs", "nodes", "outputs", "digest"}


def test_a_pickled_kernel_names_no_function_but_those_that_make_it() -> None:
    kernel = pp.forward_dynamics.compile(ROBOT)
    kernel(Q, V, V)
    texts = [text for _, text, _ in pickletools.genops(pickle.dumps(kernel))]
    homes = {text for text in texts if isinstance(text, str) and text.startswith("phipsi.")}
    assert homes <= {f"phipsi.compile.{name}" for name in ("kernel", "graph", "signature")}
    assert not any(isinstance(text, bytes) and len(text) > 100 for text in texts)


@pytest.mark.parametrize("result", [0, (0,), (0, (1, {"a": 2})), {"b": 0}, ()])
def test_the_structure_of_results(result: Any) -> None:
    count = len(leaves(result))
    specs = tuple(ArraySpec(f"y{i}", (i,)) for i in range(count))
    first = travelled(Structure(specs, partial(_packed, result)))
    assert first.leaves == specs
    assert first.pack([*range(count)]) == travelled(first).pack([*range(count)]) == result


def _packed(result: Any, arrays: list[Any]) -> Any:
    return result


def instances() -> dict[str, Any]:
    motion = pp.simulate(ROBOT, [0.1, 0.2], duration=0.05, dt=0.01, controller=None)
    M = pp.operators.mass
    return {
        "robot": ARM, "body": ARM.bodies[0], "hinge": ARM.hinges[0], "trajectory": motion,
        "sample": motion[0], "loop": pp.Loop("a", "b"), "grasp": pp.Grasp("a", "b"),
        "limits": pp.Limits(), "operator": M.inv.on(ROBOT, Q), "expression": M.inv.simplify(),
        "derivation": M.inv.simplify(trace=True), "explanation": M.inv.explain(ROBOT),
        "rebased": pp.rebase(ARM, ARM.bodies[-1].name),
        "scenario": pp.scenarios.load("puma_diagonal"),
        "cache": pp.cache_info(), "verification": pp.verify(ROBOT),
        "result": pp.hybrid_dynamics(ROBOT, Q, V, V, V, active="joint1"),
    }  # fmt: skip


def test_instances() -> None:
    for name, x in instances().items():
        for again in (travelled(x), copy.copy(x), copy.deepcopy(x)):
            assert type(again) is type(x), name
            assert repr(again) == repr(x), name
    assert copy.deepcopy(ARM) is copy.copy(ARM) is ARM
    builder = pp.Builder("x").body("bob", mass=1.0, com=(0, 0, -1))
    builder.hinge("pivot", "revolute", "world", "bob", axis=(0, 1, 0))
    assert travelled(builder).build() == copy.deepcopy(builder).build() == builder.build()


def failing(q0: float) -> pp.Trajectory:
    return pp.simulate(ROBOT, [q0, 0.0], [1e8, 0.0], controller=None, duration=1.0, dt=0.1)


def test_errors_come_back_from_other_processes() -> None:
    """One that cannot be unpickled would break the pool."""
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        with pytest.raises(pp.Diverged, match="no longer finite") as caught:
            pool.submit(failing, 0.1).result()
        assert len(caught.value.trajectory) > 0
        assert pool.submit(abs, -1).result() == 1
    motion = caught.value.trajectory
    for error in (
        pp.Interrupted(motion), pp.EventError("no"), pp.ModelError("no"), pp.SingularError("no"),
        pp.scenarios.ScenarioError("no", ("a", 1), "wrong"), pp.operators.ParseError("no"),
    ):  # fmt: skip
        again = travelled(error)
        assert (type(again), str(again)) == (type(error), str(error))
        assert vars(again).keys() == vars(error).keys()


def energy_at(kernel: Any, program: Any, q: Any) -> tuple[float, float]:
    return float(kernel(q)), float(program(ROBOT, q)[0])


def test_a_fresh_process_computes_the_same() -> None:
    """`spawn` pickles what it is given, and imports everything anew."""
    kernel = pp.potential_energy.compile(ROBOT)
    gradient = pp.potential_energy.derivative("q")
    expected = [energy_at(kernel, gradient, q) for q in Q]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        found = pool.map(partial(energy_at, kernel, gradient), Q)
        assert list(found) == expected


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_functions_of_other_libraries(library: str) -> None:
    pytest.importorskip(library)
    interop: Any = importlib.import_module(f"phipsi.interop.{library}")
    function = interop.function(pp.forward_dynamics, ROBOT, inputs="gravity", v=V[0])
    given = Q[0], V[0], np.array(pp.conventions.GRAVITY)
    for again in (travelled(function), copy.copy(function), copy.deepcopy(function)):
        assert (again.__name__, again.__doc__) == (function.__name__, function.__doc__)
        np.testing.assert_array_equal(again(*given), function(*given))
