"""Springs of hinges and springs between points in motion: conservation, stiff steps, gradients."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.model.hinges import KINDS, HingeName
from tests.algorithms.test_passive_forces import dlog, hinged

MOVING = [name for name, kind in KINDS.items() if kind.nv]


# ---- springs of hinges --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MOVING)
def test_springs_conserve_energy(kind: HingeName):
    """10 s at 1 ms, each freedom with a stiffness of its own, in states within half a turn."""
    nv = KINDS[kind].nv
    rest = {} if KINDS[kind].quaternion is not None else {"rest": 0.1}
    robot = hinged(kind, stiffness=np.linspace(5.0, 9.0, nv), **rest).with_gravity([0, 0, 0])
    q = robot.integrate(robot.joint_data("rest"), np.linspace(0.7, -0.4, nv))
    motion = pp.simulate(robot, q, np.linspace(-0.5, 0.6, nv), duration=10.0, dt=1e-3, every=10)
    travel = robot.difference(robot.joint_data("rest"), motion.q)
    assert np.abs(travel).max() < np.pi
    assert np.ptp(motion.kinetic_energy) > 0.3 * motion.energy[0]
    assert np.abs(motion.energy / motion.energy[0] - 1.0).max() < 1e-8


def test_a_planar_spring_without_stiffness_of_rotation_conserves_energy():
    robot = hinged("planar", stiffness=(0.0, 5.0, 5.0)).with_gravity([0, 0, 0])
    motion = pp.simulate(robot, [0.5, 0.4, 0.3], [0.2, 0.6, -0.3], duration=10.0, every=10)
    assert np.abs(motion.energy / motion.energy[0] - 1.0).max() < 1e-8


def test_a_linearly_implicit_step_has_the_stiffness_of_each_hinge_as_a_block():
    """(𝓜 + A + hB + h²S)β̇ = −C − Bβ − (dlog_u)*Ku − hSβ with S = (dlog_u)*K dlog_u."""
    h = 1e-2
    for kind in ("spherical", "planar", "free"):
        nv = KINDS[kind].nv
        K, B = np.diag(np.geomspace(1e6, 1.0, nv)), np.diag(np.linspace(1.0, 2.0, nv))
        robot = hinged(kind, stiffness=np.diag(K), damping=np.diag(B))
        u, v = np.linspace(0.9, -0.6, nv), np.linspace(-1.0, 2.0, nv)
        q = robot.integrate(robot.neutral(), u)
        D = dlog(robot, u)
        S = D.T @ K @ D
        mass = pp.mass_matrix(robot, q) + h * B + h * h * S
        force = -pp.bias_force(robot, q, v) - B @ v - D.T @ K @ u - h * S @ v
        motion = pp.simulate(robot, q, v, duration=h, dt=h, method="implicit")
        np.testing.assert_allclose(motion.v[1], v + h * np.linalg.solve(mass, force), rtol=1e-9)


def test_a_stiff_axis_leaves_the_soft_ones_free():
    """A ball hinge of 1e6 N·m/rad about one axis and none about another, a radian from rest."""
    robot = hinged("spherical", stiffness=(0.0, 1e6, 2.0)).with_gravity([0, 0, 0])
    q = robot.integrate(robot.neutral(), [0.8, 0.0, 0.5])
    with pytest.raises(pp.Diverged):
        pp.simulate(robot, q, [0.0, 0.0, 1.0], duration=2.0, dt=0.01, method="euler")
    ends = [
        pp.simulate(robot, q, [0.0, 0.0, 1.0], duration=0.5, dt=dt, method="implicit")
        for dt in (1e-2, 5e-3, 2.5e-3)
    ]
    turns = [robot.difference(robot.neutral(), end.q) for end in ends]
    assert all(np.abs(turn[:, 1]).max() < 1e-3 for turn in turns)
    coarse, fine = (np.abs(a[-1] - b[-1]).max() for a, b in pairwise(turns))
    assert fine < 0.7 * coarse and coarse < 0.05


def test_a_hinge_that_is_locked_leaves_the_stiffness_of_the_others_a_block():
    builder = pp.Builder("two").body("a", mass=1.0, com=(0, 0, -0.3), inertia=(0.1, 0.2, 0.3))
    builder.body("b", mass=1.0, com=(0, 0, -0.3), inertia=(0.1, 0.2, 0.3))
    builder.hinge("ball", "spherical", "world", "a", stiffness=(10.0, 500.0, 20.0))
    builder.hinge("knee", "revolute", "a", "b", axis=(1, 0, 0), position=(0, 0, -0.5))
    robot = builder.build()
    how: dict[str, Any] = {"duration": 0.2, "events": [pp.Failure(0.1, "knee", "locked")]}
    q, v = robot.integrate(robot.neutral(), [0.5, 0.3, 0.2, 0.4]), [0.1, 0.2, 0.3, 0.5]
    exact = pp.simulate(robot, q, v, dt=1e-3, **how).q[-1]
    errors = [
        np.abs(pp.simulate(robot, q, v, dt=dt, method="implicit", **how).q[-1] - exact).max()
        for dt in (1e-3, 5e-4)
    ]
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.3) and errors[1] < 1e-2


# ---- springs between points ---------------------------------------------------------------------


def governor() -> pp.Robot:
    """A shaft that spins, on it an arm that swings and a sleeve that slides."""
    builder = pp.Builder("governor")
    builder.body("shaft", mass=1.0, inertia=(0.1, 0.1, 0.1))
    builder.hinge("spin", "revolute", "world", "shaft", axis=(0, 0, 1))
    builder.body("arm", mass=5.0, com=(0.5, 0, 0), inertia=(0.1, 0.5, 0.5))
    builder.hinge("swing", "revolute", "shaft", "arm", axis=(0, 1, 0))
    builder.body("sleeve", mass=2.0, inertia=(0.1, 0.1, 0.1))
    builder.hinge("slide", "prismatic", "shaft", "sleeve", axis=(0, 0, 1))
    builder.frame("middle", "arm", position=(0.5, 0, 0))
    builder.frame("eye", "sleeve", position=(0.1, 0, -0.5))
    return builder.build()


def test_stiff_springs_between_points_need_linearly_implicit_steps():
    """8e5 N/m and 4e4 N·s/m, as in a flyball governor, beside Radau's method: order one."""
    robot, springs = governor(), [pp.Spring("middle", "eye", 8e5, 4e4, 0.5)]
    how: dict[str, Any] = {"duration": 0.2, "springs": springs}
    start = [0.0, 0.3, 0.2], [10.0, 0.0, 0.0]
    with pytest.raises(pp.Diverged):
        pp.simulate(robot, *start, dt=1e-3, method="euler", **how)
    exact = pp.simulate(robot, *start, dt=1e-2, method="radau", **how).q[-1]
    errors = [
        np.abs(pp.simulate(robot, *start, dt=dt, method="implicit", **how).q[-1] - exact).max()
        for dt in (2e-3, 1e-3, 5e-4)
    ]
    assert errors[0] < 5e-3
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 2.0, atol=0.2)


@pytest.mark.parametrize("rest_length", [0.0, 0.4])
def test_a_linearly_implicit_step_has_the_stiffness_along_and_across_a_spring(rest_length: float):
    """One point of mass m: (m + h²K + hcnn*) v⁺ = mv − h(force + …), by hand."""
    builder = pp.Builder("point", gravity=(0.0, 0.0, 0.0))
    builder.body("point", mass=2.0, inertia=(1.0, 1.0, 1.0))
    robot = builder.hinge("point", "free", "world", "point").build()
    d, rate = np.array([0.3, 0.4, 1.2]), np.array([1.0, -2.0, 0.5])
    h, k, c, m = 0.01, 1e5, 50.0, 2.0
    n = d / 1.3
    across = k * (1.0 - rest_length / 1.3)
    K = across * np.eye(3) + (k - across) * np.outer(n, n)
    after = (d + h * rate) / np.linalg.norm(d + h * rate)
    pull = k * (1.3 - rest_length) + c * (n @ after) * (after @ rate)
    left = m * np.eye(3) + h * h * K + h * c * np.outer(n, n)
    a = np.linalg.solve(left, -pull * n - h * K @ rate)
    motion = pp.simulate(
        robot, [*d, 1, 0, 0, 0], [0, 0, 0, *rate], duration=h, dt=h, method="implicit",
        springs=[pp.Spring("point", "world", k, c, rest_length)],
    )  # fmt: skip
    np.testing.assert_allclose(motion.v[1, 3:], rate + h * a, rtol=1e-9)


def test_a_stiff_spring_without_length_does_not_swing_up():
    """It is as stiff across its line as along it."""
    builder = pp.Builder("point", gravity=(0.0, 0.0, -9.81))
    builder.body("point", mass=1.0, inertia=(1.0, 1.0, 1.0))
    robot = builder.hinge("point", "free", "world", "point").build()
    springs = [pp.Spring("point", "world", stiffness=1e6)]
    motion = pp.simulate(
        robot, robot.neutral(), [0, 0, 0, 1.0, 0.5, 0], duration=1.0, dt=0.01, springs=springs,
        method="implicit",
    )  # fmt: skip
    assert np.abs(motion.q[1:, :3]).max() < 0.02
    np.testing.assert_allclose(motion.q[-1, :3], [0, 0, -9.81e-6], atol=1e-9)


def test_a_free_flyer_on_a_tether_conserves_energy_and_momentum():
    """A satellite with a swinging panel and a station, both free, with a spring between them."""
    builder = pp.Builder("pair", gravity=(0.0, 0.0, 0.0))
    builder.body("station", mass=50.0, inertia=(20.0, 30.0, 25.0))
    builder.body("satellite", mass=5.0, inertia=(1.0, 2.0, 1.5))
    builder.body("panel", mass=1.0, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1))
    builder.hinge("station", "free", "world", "station")
    builder.hinge("satellite", "free", "world", "satellite")
    builder.hinge("panel", "revolute", "satellite", "panel", axis=(0, 0, 1), stiffness=2.0)
    builder.frame("dock", "station", position=(1.0, 0.2, 0.0))
    builder.frame("hook", "panel", position=(0.6, 0, 0.1))
    robot = builder.build()
    springs = [pp.Spring("hook", "dock", stiffness=30.0, rest_length=1.5)]
    q = robot.neutral()
    q[robot.hinge("satellite").q][:3] = 3.0, 0.5, 0.2
    v = np.array([0.05, 0, 0.1, 0, 0, 0, 0.3, -0.2, 0.1, 0, 0.5, 0, 0.4])
    for method in ("rk4", "preserving4"):
        motion = pp.simulate(
            robot, q, v, duration=10.0, dt=1e-3, every=50, springs=springs, method=method
        )
        assert np.ptp(motion.kinetic_energy) > 1.0
        assert np.abs(motion.energy / motion.energy[0] - 1.0).max() < 1e-8
        assert np.abs(motion.momentum - motion.momentum[0]).max() < 1e-8


def test_springs_act_in_closed_chains():
    """A four-bar linkage with a spring: the energy of the open integration, and implicit steps."""
    robot = pp.robots.four_bar()
    loops = [pp.Loop("coupler_tip", "rocker_tip", free=np.eye(6)[:, [3, 5]])]
    q, v, _ = pp.close_loops(robot, loops, *robot.random_state(rng=0))
    how: dict[str, Any] = {
        "duration": 0.5, "closures": loops,
        "springs": [pp.Spring("coupler_tip", "world", stiffness=50.0, rest_length=0.3)],
    }  # fmt: skip
    exact = pp.simulate(robot, q, v, dt=1e-3, **how)
    assert np.abs(exact.energy - exact.energy[0]).max() < 1e-8
    assert np.ptp(exact.kinetic_energy) > 0.05
    errors = [
        np.abs(pp.simulate(robot, q, v, dt=dt, method="implicit", **how).q[-1] - exact.q[-1]).max()
        for dt in (2e-3, 1e-3)
    ]
    assert errors[1] < 5e-3 and errors[0] / errors[1] == pytest.approx(2.0, abs=0.2)
    how["springs"] = [pp.Spring("coupler_tip", "world", 5e6, 5e3, _distance(robot, q))]
    held = pp.simulate(robot, q, v, dt=1e-3, method="implicit", **how)
    assert abs(_distance(robot, held.q[-1]) - _distance(robot, q)) < 1e-4


def _distance(robot: pp.Robot, q: Any) -> float:
    return float(np.linalg.norm(pp.frame_pose(robot, q, "coupler_tip")[:3, 3]))


@pytest.mark.parametrize("method", ["rk4", "implicit"])
def test_stiffness_can_be_a_batch_and_differentiated(method: str):
    robot, q, v = pp.robots.double_pendulum(), np.array([0.5, 0.3]), np.zeros(2)

    @pp.program(shapes={"k": ()})
    def end(robot: pp.Robot, q: Any, v: Any, k: Any) -> Any:
        springs = [pp.Spring("tool", "world", stiffness=k, damping=1.0, rest_length=0.3)]
        swing = pp.motion(duration=0.2, dt=2e-3, springs=springs, method=method)  # pyright: ignore
        return swing(robot, q, v).q[-1]

    k, h = np.array([10.0, 50.0, 100.0]), 1e-3
    found = end(robot, q, v, k)
    alone = pp.rollout(
        robot, q, v, duration=0.2, dt=2e-3, method=method,  # pyright: ignore
        springs=[pp.Spring("tool", "world", stiffness=50.0, damping=1.0, rest_length=0.3)],
    )  # fmt: skip
    np.testing.assert_allclose(found[1], alone.q[-1], rtol=1e-12)
    slope = (end(robot, q, v, k + h) - end(robot, q, v, k - h)) / (2 * h)
    np.testing.assert_allclose(end.derivative(wrt="k")(robot, q, v, k), slope, atol=1e-8)


def test_springs_are_kept_in_files(tmp_path: Any):
    robot = pp.robots.double_pendulum()
    springs = (pp.Spring("tool", "world", stiffness=10.0, rest_length=0.2),)
    motion = pp.simulate(robot, [0.3, 0.2], duration=0.1, dt=0.01, springs=springs)
    motion.save(tmp_path / "motion.npz")
    again = pp.simulation.Trajectory.load(tmp_path / "motion.npz")
    assert again.springs == springs and np.array_equal(again.energy, motion.energy)


def test_springs_that_cannot_be_simulated_are_refused():
    robot, one = pp.robots.double_pendulum(), pp.Spring("tool", "world")
    wrong: Any = one
    with pytest.raises(TypeError, match="one spring, needs a list"):
        pp.simulate(robot, [0.3, 0.2], duration=0.1, springs=wrong)
    with pytest.raises(pp.ModelError, match="both fixed to"):
        pp.simulate(robot, [0.3, 0.2], duration=0.1, springs=[pp.Spring("tool", "tool")])
    failure = pp.Failure(at=0.05, hinge=robot.hinges[1].name, how="locked")
    with pytest.raises(ValueError, match="takes no springs where a hinge becomes locked"):
        pp.simulate(
            robot, [0.3, 0.2], duration=0.1, springs=[one], method="implicit", events=[failure]
        )
    motion = pp.simulate(robot, [0.3, 0.2], duration=0.1, springs=[one], events=[failure])
    assert np.isfinite(motion.q).all()
