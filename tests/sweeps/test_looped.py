"""Looped sweeps give the numbers of unrolled ones, in code that does not grow with the robot.

Both are compared in long double, by the interpreter: what differs in the first eleven digits is
then the programs, not how they round. Machine code is compared on a robot that is well conditioned.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phipsi as pp
from phipsi.compile import Dtype, Graph
from phipsi.compile.native import host
from phipsi.compile.to_llvm import emit
from phipsi.model.hinges import HingeName
from tests.zoo import State, close, forests, random_forest

ELSEWHERE = (
    "base_invariant_forward_dynamics", "decoupled_forward_dynamics", "dual_articulated_inertias",
    "link_accelerations", "minimal_state", "capture", "close_loops", "closed_chain_dynamics",
    "effective_inertia", "grasp_dynamics", "loop_opening", "operational_bias",
    "operational_inertia", "christoffel", "curvature",
)  # fmt: skip
"""Programs of free-flyers, of closures and of robots whose rates are those of coordinates, and Λ,
which need not exist: their own tests compare these (tests/algorithms)."""
PROGRAMS = {
    name: found for name in pp.__all__ if isinstance(found := getattr(pp, name), pp.Program)
    if name not in ELSEWHERE
}  # fmt: skip
SPRINGS = (pp.Spring("tool", "world", stiffness=10.0, damping=1.0, rest_length=0.2),)
OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "accelerations": {"reference": ("local", "world", "aligned"), "classical": (False, True)},
    "diagonal_coriolis": {"parts": (False, True), "normalized": (False, True)},
    "diagonal_forward_dynamics": {"normalized": (False, True), "root": ("cholesky", "symmetric")},
    "frame_acceleration": {"reference": ("local", "world", "aligned"), "classical": (False, True)},
    "frame_velocity": {"reference": ("local", "world", "aligned")},
    "generalized_jacobian": {"reference": ("local", "world", "aligned")},
    "jacobian": {"reference": ("local", "world", "aligned")},
    "jacobian_derivative": {"reference": ("local", "world", "aligned")},
    "mass_matrix_sqrt_product": {"factor": ("m", "m*", "l", "l*")},
    "momentum": {"about": ("world", "com", "base")},
    "momentum_matrix": {"about": ("world", "com", "base")},
    "velocities": {"reference": ("local", "world", "aligned")},
}
EXTERNAL = ("forward_dynamics", "inverse_dynamics", "bias_force")
WIDE = np.finfo(np.longdouble).eps < 1e-18


def cases() -> Iterator[Any]:
    """Every program with every combination of its options."""
    for name in PROGRAMS:
        options = OPTIONS.get(name, {})
        for values in product(*options.values()):
            chosen = dict(zip(options, values, strict=True))
            yield pytest.param(name, chosen, id="-".join([name, *map(str, values)]))


def arguments(program: pp.Program, s: State, options: dict[str, Any]) -> dict[str, Any]:
    """Sample arguments by name; options without a default are frames."""
    known = {"q": s.q, "v": s.v, "a": s.a, "tau": s.tau, "x": s.w, "w": s.w, "frame": "tool",
             "forces": s.external, "impulses": s.external, "qdd": s.a,
             "nu": s.v, "eps": s.tau, "active": s.active, "springs": SPRINGS}  # fmt: skip
    return {name: known[name] for name in program.parameters if name in known} | options


def flat(result: Any) -> list[np.ndarray]:
    if isinstance(result, dict):
        result = tuple(result.values())
    return [y for x in result for y in flat(x)] if isinstance(result, tuple) else [result]


def both(
    program: pp.Program, robot: pp.Robot, given: dict[str, Any], inputs: Any = (), **how: Any
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Looped and unrolled results; the arrays among `given` are called with, the rest compiled."""
    fixed = {k: v for k, v in given.items() if not isinstance(v, (np.ndarray, dict))}
    called = {k: v for k, v in given.items() if k not in fixed}
    shapes = {k: v for k, v in called.items() if k in ("external", "target")}
    values = {name: robot.parameter(name) for name in inputs}
    looped, unrolled = (
        program.compile(robot, inputs=inputs, unroll=unroll, **how, **fixed, **shapes)
        for unroll in (False, True)
    )
    assert not loops(unrolled.graph)
    return flat(looped(**called, **values)), flat(unrolled(**called, **values))


def loops(graph: Graph) -> int:
    return sum(node.op == "loop" for node in graph.nodes)


def equal(results: tuple[list[np.ndarray], list[np.ndarray]], tolerance: float = 1e-11) -> None:
    for x, y in zip(*results, strict=True):
        close(x, y, tolerance)


def precise(program: pp.Program, robot: pp.Robot, given: dict[str, Any], inputs: Any = ()) -> None:
    """Equal in long double."""
    how = {"backend": "numpy", "dtype": "longdouble"}
    equal(both(program, robot, given, inputs, **how), 1e-11 if WIDE else 1e-7)


# ---- the same numbers ---------------------------------------------------------------------------

few = settings(max_examples=max(1, settings().max_examples // 25))


@few
@given(forests(max_bodies=7))
@pytest.mark.parametrize(("name", "options"), list(cases()))
def test_looped_is_unrolled(name: str, options: dict[str, Any], robot: pp.Robot) -> None:
    if options.get("about") == "base" and robot.parents.count(-1) != 1:
        return
    precise(PROGRAMS[name], robot, arguments(PROGRAMS[name], State(robot), options))


@few
@given(forests(max_bodies=14, roots=("free", "revolute", "planar")))
def test_more_kinds_of_bodies_than_are_told_apart(robot: pp.Robot) -> None:
    s = State(robot)
    for name in ("forward_dynamics", "inverse_dynamics", "mass_matrix", "jacobian", "momentum"):
        precise(PROGRAMS[name], robot, arguments(PROGRAMS[name], s, {}))


@few
@given(forests(max_bodies=6), st.sampled_from(EXTERNAL))
def test_external_forces(robot: pp.Robot, name: str) -> None:
    s, program = State(robot), PROGRAMS[name]
    own = arguments(program, s, {})
    wrench = np.arange(6.0) - 2.0
    bodies = [b.name for b in robot.bodies]
    mappings = [{"tool": wrench}, {bodies[0]: wrench, bodies[-1]: -2.0 * wrench}]
    if robot.frame("tool").body == "world":
        mappings = mappings[1:]
    for external in (s.external, *mappings):
        precise(program, robot, own | {"external": external})


@few
@given(
    forests(max_bodies=6),
    st.sampled_from(["forward_dynamics", "inverse_dynamics", "kinetic_energy", "center_of_mass",
                     "gravity_force", "mass_matrix", "mass_matrix_logdet", "regressor", "poses",
                     "articulated_inertias", "potential_energy", "momentum_matrix"]),
)  # fmt: skip
def test_numbers_of_the_robot_as_inputs(robot: pp.Robot, name: str) -> None:
    s, program = State(robot), PROGRAMS[name]
    body = next((b for b in robot.bodies if b.mass), robot.bodies[0]).name
    hinge = next(h for h in robot.hinges if h.kind.nv)
    names = ("gravity", f"inertia:{body}", f"armature:{hinge.name}", f"placement:{hinge.name}")
    own = arguments(program, s, {})
    precise(program, robot, own, names)
    other = {n: robot.parameter(n) * 1.5 for n in names[:3]}
    for unroll in (False, True):  # other numbers are the numbers of another robot
        kernel = program.compile(robot, inputs=names[:3], unroll=unroll, backend="numpy")
        called = {k: v for k, v in own.items() if isinstance(v, np.ndarray)}
        expected = program.compile(robot.with_parameters(other), unroll=unroll, backend="numpy")
        for x, y in zip(flat(kernel(**called, **other)), flat(expected(**called)), strict=True):
            close(x, y, 1e-7)


LARGE = (
    "coriolis_matrix", "regressor", "mass_matrix_inverse", "active_mass_matrix", "coupling",
    "passive_mass_inverse", "disturbance_jacobian", "mass_matrix_derivative",
    "hybrid_dynamics_derivatives", "linearize",
)  # fmt: skip
"""Programs with a loop for every coordinate, which take seconds to compile."""


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in LARGE])
def test_machine_code_and_single_precision(name: str) -> None:
    """Looped machine code on a batch: its loops over bodies inside blocks of rows."""
    robot = random_forest(11, 6, massless=False)
    assert len({h.kind for h in robot.hinges}) > 3
    assert robot.parents.count(-1) > 1
    program, s = PROGRAMS[name], State(robot, (11,))
    own = arguments(program, s, {})
    fixed = {k: v for k, v in own.items() if not isinstance(v, np.ndarray)}
    called = {k: v for k, v in own.items() if k not in fixed}
    expected = flat(program.compile(robot, backend="numpy", unroll=True, **fixed)(**called))
    cases: list[tuple[Dtype, float]] = [("float64", 1e-11), ("float32", 2e-3)]
    for dtype, tolerance in cases:
        kernel = program.compile(robot, dtype=dtype, unroll=False, **fixed)
        for x, y in zip(flat(kernel(**called)), expected, strict=True):
            assert x.dtype == dtype
            close(x, y, tolerance)
        one = {k: v[3] for k, v in called.items()}
        for x, y in zip(flat(kernel(**one)), flat(kernel(**called)), strict=True):
            np.testing.assert_array_equal(x, y[3])


@pytest.mark.parametrize("name", PROGRAMS)
def test_unrolled_machine_code(name: str) -> None:
    """What laws show on the interpreter (tests/algorithms) is so in machine code."""
    robot = random_forest(11, 6, massless=False)
    program, s = PROGRAMS[name], State(robot, (3,))
    own = arguments(program, s, {})
    fixed = {k: v for k, v in own.items() if not isinstance(v, np.ndarray)}
    called = {k: v for k, v in own.items() if k not in fixed}
    found, expected = (
        flat(program.compile(robot, unroll=True, backend=backend, **fixed)(**called))
        for backend in ("llvm", "numpy")
    )
    for x, y in zip(found, expected, strict=True):
        close(x, y, 1e-11)


def test_a_robot_that_cannot_move() -> None:
    robot = pp.robots.double_pendulum()
    still = robot.locked([h.name for h in robot.hinges])
    q, v = still.random_state(0)
    for backend in ("numpy", "llvm"):
        fd = pp.forward_dynamics.compile(still, unroll=False, backend=backend)
        assert fd(q, v, v).shape == (0,)
        assert pp.poses.compile(still, unroll=False, backend=backend)(q).shape == (0, 4, 4)
        energy = pp.kinetic_energy.compile(still, unroll=False, backend=backend)
        assert energy(q, v) == 0.0


# ---- programs of users --------------------------------------------------------------------------


@pp.program
def controlled(robot: pp.Robot, q: Any, v: Any, target: Any) -> Any:
    tau = 8.0 * robot.difference(q, target) - 2.0 * v + pp.gravity_force(robot, q)
    tau = pp.where(np.abs(tau) > 3.0, 3.0 * np.sign(tau), tau) + pp.passive_forces(robot, q, v)
    J = pp.jacobian(robot, q, "tool")
    return {"a": pp.forward_dynamics(robot, q, v, tau - J.T @ (J @ v)), "tau": tau}


@pp.program
def simulated(robot: pp.Robot, q: Any, v: Any, target: Any) -> Any:
    """Loops over bodies inside a loop over time."""

    def step(state: Any, k: Any) -> Any:
        q, v = state
        a = controlled(robot, q, v, target)["a"]
        v = v + 0.01 * a
        return (robot.integrate(q, 0.01 * v), v), pp.kinetic_energy(robot, q, v) + 0.0 * k

    return pp.repeat(4, step, (q, v))


@few
@given(forests(max_bodies=4, massless=False), st.sampled_from([controlled, simulated]))
def test_programs_of_users(robot: pp.Robot, program: pp.Program) -> None:
    s = State(robot)
    target, _ = robot.random_state(5)
    given = {"q": s.q, "v": 0.1 * s.v, "target": target}
    shapes = {"backend": "numpy", "dtype": "longdouble", "target": target}
    looped, unrolled = (program.compile(robot, unroll=u, **shapes) for u in (False, True))
    for x, y in zip(flat(looped(**given)), flat(unrolled(**given)), strict=True):
        close(x, y, 1e-11 if WIDE else 1e-7)


def test_a_simulation_in_machine_code() -> None:
    robot = pp.robots.chain(5, kind="spherical", base="free")
    q, v = robot.random_state(0, (3,))
    target = robot.neutral()
    expected = simulated.compile(robot, backend="numpy", unroll=True, target=target)(q, v, target)
    found = simulated.compile(robot, unroll=False, target=target)(q, v, target)
    for x, y in zip(flat(found), flat(expected), strict=True):
        close(x, y, 1e-10)


# ---- size ---------------------------------------------------------------------------------------


def inside(graph: Graph) -> int:
    """Nodes in the bodies of loops."""
    cases = [c for node in graph.nodes if node.op == "loop" for c in node.value.cases]
    return sum(len(case.body.nodes) + inside(case.body) for case in cases)


@pytest.mark.parametrize("kind", ["revolute", "spherical"])
@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics"])
def test_code_does_not_grow_with_the_robot(name: str, kind: HingeName) -> None:
    graphs = [PROGRAMS[name].graph(pp.robots.chain(n, kind=kind)) for n in (100, 400)]
    assert inside(graphs[0]) == inside(graphs[1]) > 100
    texts = [emit(graph, host("float64")).text for graph in graphs]
    assert texts[0].count("\n") == texts[1].count("\n")
    assert len(texts[1]) < 1.01 * len(texts[0])  # some numbers have a digit more


def test_which_form_is_taken() -> None:
    small, large = pp.robots.chain(64), pp.robots.chain(65)
    assert not loops(pp.inverse_dynamics.graph(small))
    assert loops(pp.inverse_dynamics.graph(large))
    assert loops(pp.inverse_dynamics.graph(small, unroll=False))
    assert not loops(pp.inverse_dynamics.graph(large, unroll=True))
    assert loops(pp.inverse_dynamics.compile(large, backend="numpy").graph)
    assert not loops(pp.inverse_dynamics.compile(large, backend="numpy", unroll=True).graph)
    x = State(large)
    close(
        pp.inverse_dynamics(large, x.q, x.v, x.a),
        pp.inverse_dynamics.compile(large, backend="numpy", unroll=True)(x.q, x.v, x.a),
        1e-11,
    )


def four_bars(n: int) -> tuple[pp.Robot, list[pp.Loop]]:
    """n four-bars in a row, rods of 1 m and 1 kg (IFToMM A02): 2n + 1 bodies and n loops."""
    builder = pp.Builder("four_bars")
    loops: list[pp.Loop] = []
    for i in range(n + 1):
        builder.body(f"crank{i}", mass=1.0, com=(0, 0, 0.5), inertia=(1 / 12, 1 / 12, 0))
        builder.hinge(
            f"crank{i}", "revolute", "world", f"crank{i}", position=(i, 0, 0), axis=(0, 1, 0)
        )
        builder.frame(f"end{i}", f"crank{i}", position=(0, 0, 1))
    for i in range(n):
        builder.body(f"bar{i}", mass=1.0, com=(0.5, 0, 0), inertia=(0, 1 / 12, 1 / 12))
        builder.hinge(
            f"bar{i}", "revolute", f"crank{i}", f"bar{i}", position=(0, 0, 1), axis=(0, 1, 0)
        )
        builder.frame(f"tip{i}", f"bar{i}", position=(1, 0, 0))
        loops.append(pp.Loop(f"tip{i}", f"end{i + 1}", free=np.eye(6)[:, [3, 5]]))
    return builder.build(), loops


@pytest.mark.parametrize("bodies", [63, 65, 81])
def test_closures_of_many_bodies_cost_what_those_of_few_do(bodies: int) -> None:
    """L has few entries that are not zero, which loops do not know: they are not taken."""
    robot, loops = four_bars(bodies // 2)
    graph = pp.closed_chain_dynamics.graph(robot, loops=loops)
    assert robot.nb == bodies
    assert graph.size < 250 * bodies and graph.operations < 240 * bodies


def test_forty_four_bars_turn_as_one() -> None:
    """All cranks turn alike, and the couplers do not turn: at an angle a of the cranks
    ((n + 1)/3 + n) m l² ä = ((n + 1)/2 + n) m g l sin a."""
    n = 40
    robot, loops = four_bars(n)
    cranks = robot.mask(*(h.name for h in robot.hinges if h.name.startswith("crank")))
    q, v = np.where(cranks, 0.3, -0.3), np.where(cranks, 1.0, -1.0)
    turn = ((n + 1) / 2 + n) * 9.81 * np.sin(0.3) / ((n + 1) / 3 + n)
    for backend in ("numpy", "llvm"):
        kernel = pp.closed_chain_dynamics.compile(robot, loops=loops, backend=backend)
        close(kernel(q, v, 0.0 * v).qdd, np.where(cranks, turn, -turn), 1e-9)


MATRICES = ("mass_matrix", "mass_matrix_inverse", "active_mass_matrix", "coupling",
            "passive_mass_inverse", "disturbance_jacobian", "regressor")  # fmt: skip


@pytest.mark.parametrize("name", MATRICES)
def test_code_of_joint_space_matrices(name: str) -> None:
    """It does not grow with the robot, but for the places of the entries."""
    program = PROGRAMS[name]
    graphs = [program.graph(pp.robots.chain(n), unroll=False) for n in (20, 40)]
    assert inside(graphs[0]) == inside(graphs[1])
    entries = [len(nodes) for graph in graphs for _, nodes in graph.outputs]
    assert len(graphs[1].nodes) - len(graphs[0].nodes) < 1.1 * (entries[1] - entries[0])


def branched(n: int) -> pp.Robot:
    """Two chains of spherical and revolute hinges on a free base, and an arm beside them."""
    builder = pp.Builder("branched").body("base", mass=3.0, inertia=(1, 2, 2.5))
    builder.hinge("base", "free", "world", "base")
    for side in "ab":
        on = "base"
        for i in range(n):
            builder.body(f"{side}{i}", mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.1, 0.2, 0.25))
            kind, axis = ("spherical", None) if i % 3 == 0 else ("revolute", (0, 0.6, 0.8))
            builder.hinge(
                f"{side}{i}", kind, on, f"{side}{i}",
                position=(0.5, 0, 0.1), axis=axis, armature=0.01 * (i + 1),
            )  # fmt: skip
            on = f"{side}{i}"
    return builder.build()


def test_matrices_of_many_freedoms() -> None:
    """𝓜 by products with unit vectors, which are O(N); its inverse and its parts by NumPy."""
    robot = branched(36)
    n, active = robot.nv, np.arange(robot.nv) % 3 > 0
    assert robot.nb > 64 and n > 100
    q, _ = robot.random_state(1, (2,))
    graphs = [PROGRAMS[name].compile(robot, backend="llvm") for name in MATRICES[:6]]
    assert all(graph.graph.size < 6 * n * n for graph in graphs)
    mass = np.moveaxis(pp.mass_matrix_product(robot, q[:, None], np.eye(n)), 1, 2)
    found = [kernel(q) if i < 2 else kernel(q, active * 1.0) for i, kernel in enumerate(graphs)]
    close(found[0], mass, 1e-12)
    assert (found[0] == found[0].swapaxes(1, 2)).all()
    accuracy = 1e-13 * np.linalg.cond(mass).max()
    close(found[1], np.linalg.inv(mass), accuracy)
    a, p = np.flatnonzero(active), np.flatnonzero(~active)
    for M, inverse, S_aa, S_ap, S_pp, J in zip(mass, *found[1:], strict=True):
        assert (inverse == inverse.T).all() and (S_aa == S_aa.T).all()
        solved = np.linalg.solve(M[np.ix_(p, p)], M[np.ix_(p, a)])
        close(S_aa[np.ix_(a, a)], M[np.ix_(a, a)] - M[np.ix_(a, p)] @ solved, accuracy)
        close(S_ap[np.ix_(a, p)], solved.T, accuracy)
        close(S_pp[np.ix_(p, p)], np.linalg.inv(M[np.ix_(p, p)]), accuracy)
        close(J[np.ix_(p, a)], -solved, accuracy)
        for matrix, rows, columns in ((S_aa, a, a), (S_ap, a, p), (S_pp, p, p), (J, p, a)):
            matrix[np.ix_(rows, columns)] = 0.0
            assert not matrix.any()


def hanging(n: int) -> tuple[pp.Robot, np.ndarray, np.ndarray, np.ndarray]:
    """A chain that hangs almost straight and hardly moves, and forces."""
    rng, robot = np.random.default_rng(n), pp.robots.chain(n)
    q, v, tau = rng.normal(size=(3, n)) * np.array([[0.1], [0.01], [1.0]])
    return robot, q, v, tau


def test_a_thousand_links() -> None:
    robot, q, v, tau = hanging(1000)
    a = pp.forward_dynamics(robot, q, v, tau)
    weight = float(np.abs(pp.gravity_force(robot, q)).max())
    assert np.abs(pp.inverse_dynamics(robot, q, v, a) - tau).max() < 1e-12 * weight
    how: dict[str, Any] = {"backend": "numpy", "dtype": "longdouble"}
    exact = pp.forward_dynamics.compile(robot, **how)(q, v, tau)
    close(a, exact, 1e-9)
    part = pp.robots.chain(100)
    some = pp.forward_dynamics.compile(part, unroll=True, backend="numpy")
    close(pp.forward_dynamics(part, q[:100], v[:100], tau[:100]), some(q[:100], v[:100], tau[:100]))


def test_ten_thousand_links() -> None:
    robot, q, v, tau = hanging(10_000)
    a = pp.forward_dynamics(robot, q, v, tau)
    residual = np.abs(pp.inverse_dynamics(robot, q, v, a) - tau).max()
    assert residual < 1e-3  # of forces of 1: the weight of 10 000 kg, 100 m aside, cancels


def test_graphs_of_equal_robots_are_equal() -> None:
    """What a looped kernel is does not depend on the process: it names code in the disk cache."""
    command = (
        "import phipsi as pp; print(pp.forward_dynamics.graph(pp.robots.chain(70)).digest, end='')"
    )
    digests = [
        subprocess.check_output(
            [sys.executable, "-c", command], env={**os.environ, "PYTHONHASHSEED": seed}, text=True
        )
        for seed in ("1", "2")
    ]
    assert digests == [pp.forward_dynamics.graph(pp.robots.chain(70)).digest] * 2
