"""Closed chains against dense KKT systems, laws of physics, and other libraries."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phipsi as pp
from phipsi.model import KINDS
from phipsi.model.constraints import ContactName
from phipsi.model.hinges import HingeName
from phipsi.spatial import rotation as rot
from tests.algorithms.closures import Dense, across, closing, with_frame
from tests.sweeps.test_looped import flat
from tests.zoo import MOVING, State, close, random_forest

pytestmark = pytest.mark.usefixtures("interpreted")

law = settings(max_examples=settings().max_examples // 12)
CLOSING = tuple(name for name in KINDS if name != "free")


def looped(seed: int, kind: HingeName, n: int = 5) -> tuple[pp.Robot, pp.Loop, State]:
    """A random forest, one closed loop in it, a state that keeps it closed."""
    rng = np.random.default_rng(seed)
    robot = random_forest(seed, n, massless=False, kinds=MOVING)
    s = State(robot)
    first = robot.bodies[-1].name
    others = [b.name for b in robot.bodies if b.name != first] or ["world"]
    row = KINDS[kind]
    axis = rng.normal(size=(row.axes, 3)) if row.axes else None
    loop = pp.Loop("a", "b", free=kind, axis=axis, pitch=0.3)
    robot = (
        robot.edit()
        .frame("a", first, position=rng.normal(size=3), rpy=rng.uniform(-2, 2, 3))
        .build()
    )
    coordinates = rot.scalars(rng.uniform(-1, 1, row.nq))
    back = np.asarray(row.pose(loop, coordinates).inv.matrix, float)
    pose = pp.frame_pose(robot, s.q, "a") @ back
    robot = with_frame(robot, s.q, "b", str(rng.choice(others)), pose)
    closing(robot, [loop], s)
    return robot, loop, s


@law
@given(st.integers(0, 10**6), st.sampled_from(CLOSING))
def test_one_loop_is_the_dense_kkt_solution(seed: int, kind: HingeName) -> None:
    robot, loop, s = looped(seed, kind)
    found = pp.closed_chain_dynamics(
        robot, [loop], s.q, s.v, s.tau, external=s.external, strict=False
    )
    dense = Dense(robot, [loop], s)
    if dense.residual < 1e-9:
        close(
            found.qdd,
            dense.qdd,
            1e-10 / min(1.0, max(dense.smallest, 1e-3)) if dense.exact else 1e-7,
        )
        close(found.residual, 0 * found.residual, 1e-8)
    if dense.smallest > 1e-6:
        assert found.well_posed
        if dense.forces:
            close(found.forces[0], dense.forces[0], 1e-7)


def chain_with_loops() -> tuple[pp.Robot, list[pp.Loop]]:
    """A free base with three arms; two loops that share a body."""
    builder = pp.Builder("three", gravity=(0.3, -1.0, -9.0))
    builder.body("base", mass=5, inertia=(1, 2, 1.5)).hinge("base", "free", "world", "base")
    for arm, angle in (("a", 0.0), ("b", 2.0), ("c", 4.0)):
        parent = "base"
        for i in range(5):
            builder.body(
                f"{arm}{i}", mass=1 + 0.1 * i, com=(0.1, 0, 0.05), inertia=(0.02, 0.03, 0.01)
            )
            builder.hinge(
                f"{arm}{i}",
                "revolute",
                parent,
                f"{arm}{i}",
                position=(0.3, 0.05 * i, 0),
                rpy=(0.4 * i, 0.2, angle),
                axis=((0, 0, 1), (0, 1, 0), (1, 0, 0))[i % 3],
                armature=0.1,
            )
            parent = f"{arm}{i}"
        builder.frame(f"{arm}_tip", parent, position=(0.2, 0, 0))
    return builder.build(), [
        pp.Loop("a_tip", "b_tip", free="spherical"),
        pp.Loop("b_tip", "c_tip", free="spherical"),
    ]


def test_two_loops_that_share_a_body_are_the_dense_kkt_solution_closed_or_open() -> None:
    robot, loops = chain_with_loops()
    s = State(robot)
    found = pp.closed_chain_dynamics(robot, loops, s.q, s.v, s.tau, external=s.external)
    dense = Dense(robot, loops, s)
    close(found.qdd, dense.qdd)
    close(found.forces, dense.forces)
    assert found.well_posed and 0 < found.rcond <= 1
    q, v, error = pp.close_loops(robot, loops, s.q, s.v)
    assert error < 1e-12
    for loop in loops:
        assert np.abs(across(robot, loop, q)[:3, 3]).max() < 1e-12
    opening = pp.loop_opening(robot, loops, q, v)
    close(opening.error, 0 * opening.error, 1e-12)
    close(opening.rate, 0 * opening.rate, 1e-12)
    s.q, s.v = q, v
    found = pp.closed_chain_dynamics(robot, loops, q, v, s.tau, external=s.external)
    close(found.qdd, Dense(robot, loops, s).qdd)


def test_a_batch_is_a_loop_of_singles_and_the_loops_are_options() -> None:
    robot, loops = chain_with_loops()
    s = State(robot, (3, 2))
    found = pp.closed_chain_dynamics(robot, loops, s.q, s.v, s.tau)
    assert found.well_posed.dtype == bool and found.forces.shape == (3, 2, 2, 6)
    one = pp.closed_chain_dynamics(robot, tuple(loops), s.q[2, 1], s.v[2, 1], s.tau[2, 1])
    close(found.qdd[2, 1], one.qdd, 1e-12)
    other = pp.closed_chain_dynamics(robot, loops[:1], s.q[2, 1], s.v[2, 1], s.tau[2, 1])
    assert other.forces.shape == (1, 6) and np.abs(other.qdd - one.qdd).max() > 1e-3


def test_loop_forces_do_no_work_and_momentum_is_kept() -> None:
    robot, loops = chain_with_loops()
    robot = robot.with_gravity((0, 0, 0))
    s = State(robot)
    s.tau[:6] = 0.0
    s.q, s.v, _ = pp.close_loops(robot, loops, s.q, s.v)
    s.a = pp.closed_chain_dynamics(robot, loops, s.q, s.v, s.tau).qdd
    step = 1e-5

    def along(f: Any) -> Any:
        forth = f(robot.integrate(s.q, step * s.v), s.v + step * s.a)
        back = f(robot.integrate(s.q, -step * s.v), s.v - step * s.a)
        return (forth - back) / (2 * step)

    power = along(lambda q, v: pp.kinetic_energy(robot, q, v))
    close(power, s.tau @ s.v, 1e-6)
    close(along(lambda q, v: pp.momentum(robot, q, v)), np.zeros(6), 1e-6)


def test_stabilisation_brings_an_open_loop_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHIPSI_BACKEND", "llvm")  # of hundreds of steps
    robot, loops = chain_with_loops()
    s = State(robot)
    s.q, s.v, _ = pp.close_loops(robot, loops, s.q, s.v)
    q, v, dt = robot.integrate(s.q, 0.01 * s.w), 0.1 * s.v, 2e-3
    start = np.abs(pp.loop_opening(robot, loops, q, v).error).max()
    for _ in range(500):
        a = pp.closed_chain_dynamics(robot, loops, q, v, -2.0 * v, stabilisation=10.0).qdd
        v = v + dt * a
        q = robot.integrate(q, dt * v)
    assert np.abs(pp.loop_opening(robot, loops, q, v).error).max() < 0.01 * start


def test_looped_and_unrolled_give_the_same_and_so_does_machine_code() -> None:
    robot, loops = chain_with_loops()
    s = State(robot, (3,))
    ways: list[dict[str, Any]] = [
        {"unroll": False, "backend": "numpy"}, {"unroll": True, "backend": "llvm"},
        {"unroll": False, "backend": "llvm"},
    ]  # fmt: skip
    calls: list[tuple[Any, dict[str, Any], list[Any]]] = [
        (pp.closed_chain_dynamics, {"loops": loops}, [s.q, s.v, s.tau]),
        (pp.loop_opening, {"loops": loops}, [s.q, s.v]),
        (pp.capture, {"closures": loops}, [s.q, s.v]),
        (pp.operational_inertia, {"frames": ("a_tip",)}, [s.q]),
        (pp.operational_bias, {"frames": ("a_tip",)}, [s.q, s.v]),
    ]
    for program, options, values in calls:
        expected = program.compile(robot, unroll=True, backend="numpy", **options)(*values)
        for how in ways:
            found = program.compile(robot, **how, **options)(*values)
            for x, y in zip(flat(found), flat(expected), strict=True):
                close(x, y, 1e-10)


def test_cost_is_linear_in_the_length_of_the_loop() -> None:
    counts = []
    for n in (10, 20, 30):
        robot = pp.robots.chain(n)
        counts.append(
            pp.closed_chain_dynamics.graph(robot, loops=[pp.Loop("tool", "world")]).operations
        )
    assert counts[2] - counts[1] == pytest.approx(counts[1] - counts[0], rel=0.02)


def test_loops_are_plain_data() -> None:
    loops = [
        pp.Loop("a", "b"),
        pp.Loop("a", "b", free="planar", axis=(0, 0, 2)),
        pp.Loop("a", "b", free="universal", axis=((1, 0, 0), (1, 2, 0))),
        pp.Loop("a", "b", free=np.triu(np.ones((6, 6)))),
        pp.Grasp("a", "b", "rolling", radius=0.1),
    ]
    for loop in loops:
        loop.forces(pp.Transform.identity())
        again = pickle.loads(pickle.dumps(loop))
        assert again == loop and hash(again) == hash(loop)
        assert replace(loop, a="x").b == "b"
        names = {"Loop": pp.Loop, "Grasp": pp.Grasp, "inf": np.inf}
        assert eval(repr(loop), names) == loop
    assert len(set(loops)) == 5
    flipped = pp.Loop("a", "b", free=-np.eye(6)[:, :2])
    assert hash(flipped) == hash(pp.Loop("a", "b", free=0.0 - np.eye(6)[:, :2]))


@pytest.mark.parametrize("contact", ["point", "soft_finger", "rolling"])
def test_errors_are_of_what_is_held_and_rates_are_their_derivatives(contact: ContactName) -> None:
    builder = pp.Builder("two")
    for name in "ab":
        builder.body(name, mass=1.0, inertia=(1, 1, 1)).hinge(name, "free", "world", name)
    robot = builder.build()
    s = State(robot)
    radius = 0.1 if contact == "rolling" else 0.0
    grasp = [pp.Grasp("a", "b", contact, radius=radius)]
    q, v, error = pp.close_loops(robot, grasp, s.q, s.v)
    assert error < 1e-12
    step = 1e-5
    ahead, behind = (
        pp.loop_opening(robot, grasp, robot.integrate(q, k * step * v), v).error for k in (1, -1)
    )
    close((ahead - behind) / (2 * step), np.zeros(ahead.shape), 1e-6)


def test_wrist_singularities_are_told_however_small_the_pivots_before_are() -> None:
    robot = pp.robots.puma560()
    q, v = robot.random_state(0, (2000,))
    q[:, 4] = 0.0
    assert np.isnan(pp.operational_inertia(robot, q, "tool")).any(axis=(1, 2)).all()
    single = pp.operational_inertia(robot, q.astype(np.float32), "tool")
    assert np.isnan(single).any(axis=(1, 2)).mean() > 0.99  # rounding of q moves it off
    found = pp.closed_chain_dynamics(robot, [pp.Loop("tool", "world")], q, 0 * v, v)
    assert not found.well_posed.any() and (found.rcond == 0.0).all()
    q[:, 4] = 1e-3
    assert not np.isnan(pp.operational_inertia(robot, q, "tool")).any()


def test_a_frame_that_is_locked_has_no_effective_inertia() -> None:
    robot = pp.robots.seven_axis_arm()
    q, _ = robot.random_state(1, (1000,))
    loop = [pp.Loop("tool", "world", free="spherical")]
    assert np.isnan(pp.effective_inertia(robot, loop, q, "tool")).all()
    with pytest.raises(pp.SingularError, match="with the closures the frames cannot"):
        pp.effective_inertia(robot, loop, q[0], "tool")


def test_empty_batches_and_lists_of_loops_in_programs_of_ones_own() -> None:
    robot, loops = chain_with_loops()
    s = State(robot, (0,))
    assert pp.closed_chain_dynamics(robot, loops, s.q, s.v, s.tau).forces.shape == (0, 2, 6)

    @pp.program
    def mine(robot: pp.Robot, q: Any, v: Any, tau: Any, loops: Any) -> Any:
        return pp.closed_chain_dynamics(robot, loops, q, v, tau).qdd

    s = State(robot, (2,))
    expected = pp.closed_chain_dynamics(robot, loops, s.q, s.v, s.tau).qdd
    for _ in range(2):
        close(mine(robot, s.q, s.v, s.tau, loops), expected, 1e-12)
    first = pp.closed_chain_dynamics(robot, loops[:1], s.q, s.v, s.tau).qdd
    close(mine(robot, s.q, s.v, s.tau, loops[:1]), first, 1e-12)
