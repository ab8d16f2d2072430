"""Laws of fixed arms in closed loop: what their theory promises happens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import cumulative_simpson

import phipsi as pp
from phipsi import control as c
from phipsi.control.diagonal import Attitude
from tests.zoo import close

HOME = np.array((0.2, 0.6, -0.8, 0.3, 0.9, -0.2))
"""A configuration of the PUMA far from singularities."""
FREE: dict[str, Any] = {"actuators": False, "passive": False}


def critical(e: Any, v: Any, rate: float, t: Any) -> Any:
    """The error of ë + 2rė + r²e = 0 from e and ė = v."""
    return (e + (v + rate * e) * t[:, None]) * np.exp(-rate * t)[:, None]


def test_rate_feedback_lets_the_energy_fall_as_an_exponential() -> None:
    robot, rate = pp.robots.puma560(), 0.7
    v = np.random.default_rng(0).normal(size=6)
    motion = pp.simulate(
        robot, HOME, v, c.rate_feedback, duration=2.0, dt=0.005, every=20,
        parameters={"damping": rate, "passive": False}, **FREE,
    )  # fmt: skip
    E = motion.kinetic_energy
    close(E / (E[0] * np.exp(-2 * rate * motion.t)), np.ones(len(E)), 1e-6)


def test_pose_feedback_reaches_from_fifty_starts_and_its_lyapunov_function_never_grows() -> None:
    robot = pp.robots.puma560()
    rng = np.random.default_rng(1)
    q0 = HOME + rng.uniform(-0.5, 0.5, (80, 6))
    v0 = rng.normal(0, 0.3, (80, 6))
    goal = pp.frame_pose(robot, HOME, "tool")
    gains: dict[str, Any] = {"position_gain": 400.0, "attitude_gain": 60.0}
    motion = pp.rollout(
        robot, q0, v0, c.pose_feedback, duration=20.0, dt=0.01, every=5,
        parameters={"pose": goal, "damping": 3.0, "passive": False, **gains}, **FREE,
    )  # fmt: skip
    U = c.pose_lyapunov(robot, motion.q, motion.v, goal, **gains)
    assert np.diff(U, axis=1).max() < 1e-9
    low = np.linalg.svd(pp.jacobian(robot, motion.q, "tool"), compute_uv=False)[..., -1].min(1)
    clear = np.flatnonzero(low > 0.05)
    assert len(clear) >= 50
    end = pp.frame_pose(robot, motion.q[clear, -1], "tool")
    assert np.abs(end - goal).max() < 1e-4


@pytest.mark.parametrize("attitude", ["axes", "geodesic"])
def test_half_a_turn_away_the_papers_law_rests_and_the_geodesic_one_does_not(
    attitude: Attitude,
) -> None:
    robot = pp.robots.puma560()
    goal = pp.frame_pose(robot, HOME, "tool")
    goal[:3, :2] *= -1.0  # about its own z
    tau = c.pose_feedback(robot, HOME, np.zeros(6), goal, attitude=attitude)
    pull = np.abs(tau - pp.gravity_force(robot, HOME)).max()
    assert pull < 1e-12 if attitude == "axes" else pull > 10.0
    if attitude == "geodesic":
        motion = pp.simulate(
            robot, HOME, None, c.pose_feedback, duration=20.0, dt=0.01, every=10,
            parameters={"pose": goal, "attitude": attitude, "passive": False}, **FREE,
        )  # fmt: skip
        U = c.pose_lyapunov(robot, motion.q, motion.v, goal, attitude=attitude)
        assert np.diff(U).max() < 1e-9 and U[0] == pytest.approx(30 * np.pi**2)
        assert np.abs(pp.frame_pose(robot, motion.q[-1], "tool") - goal).max() < 1e-3


def test_the_error_of_computed_torque_obeys_a_linear_equation() -> None:
    robot, rng = pp.robots.puma560(), np.random.default_rng(2)
    start, goal = HOME, HOME + rng.uniform(-1, 1, 6)
    e, v = rng.normal(0, 0.2, (2, 6))
    motion = pp.simulate(
        robot, start - e, v, c.on_path(c.computed_torque), duration=1.5, dt=0.005, every=30,
        parameters={"start": start, "goal": goal, "duration": 1.0, "stiffness": 25.0,
                    "damping": 10.0, "passive": False}, **FREE,
    )  # fmt: skip
    found = c.joint_path(robot, motion.t, 1.0, start, goal).q - motion.q
    close(found, critical(e, -v, 5.0, motion.t), 1e-6)


def test_slotine_and_li_spend_their_energy_as_they_say() -> None:
    robot, rng = pp.robots.puma560(), np.random.default_rng(3)
    start, goal = HOME, HOME + rng.uniform(-1, 1, 6)
    L, K = 4.0, np.array((60, 60, 30, 5, 5, 5.0))
    motion = pp.simulate(
        robot, start + rng.normal(0, 0.2, 6), None, c.on_path(c.passivity_based), duration=4.0,
        dt=0.005, parameters={"start": start, "goal": goal, "duration": 2.0, "stiffness": L,
                              "damping": K, "passive": False}, **FREE,
    )  # fmt: skip
    q, v, _ = c.joint_path(robot, motion.t, 2.0, start, goal)
    s = motion.v - v - L * (q - motion.q)
    V = 0.5 * np.einsum("ti,tij,tj->t", s, pp.mass_matrix(robot, motion.q), s)
    spent = cumulative_simpson((K * s**2).sum(1), x=motion.t, initial=0.0)
    close((V + spent) / V[0], np.ones(len(V)), 1e-4)
    assert np.abs(q - motion.q)[-1].max() < 1e-5


def test_operational_space_makes_the_error_of_a_frame_linear() -> None:
    robot = pp.robots.seven_axis_arm()
    q = np.array((0.3, 0.4, 0.6, 1.2, 0.3, 0.5, 0.0))
    start = pp.frame_pose(robot, q, "tool")
    start[:3, 3] += (0.05, -0.04, 0.03)
    goal = start.copy()
    goal[:3, 3] += (0.2, 0.3, -0.2)
    motion = pp.simulate(
        robot, q, None, c.on_path(c.operational_space), duration=2.0, dt=0.01, every=10,
        parameters={"start": start, "goal": goal, "duration": 1.5, "rows": "linear",
                    "stiffness": 36.0, "damping": 12.0, "posture": q}, **FREE,
    )  # fmt: skip
    path = c.pose_path(motion.t, 1.5, start, goal).pose[:, :3, 3]
    found = path - pp.frame_pose(robot, motion.q, "tool")[:, :3, 3]
    close(found, critical(np.array((0.05, -0.04, 0.03)), 0.0, 6.0, motion.t), 1e-6)


def test_hybrid_control_presses_on_a_stiff_wall_while_it_moves_along_it() -> None:
    robot = pp.robots.seven_axis_arm()
    q = np.array((0.3, 0.4, 0.6, 1.2, 0.3, 0.5, 0.0))
    start = pp.frame_pose(robot, q, "tool")
    stiffness, press = 2e4, 40.0
    goal, wall = start.copy(), start[2, 3] + press / stiffness  # pressed already
    goal[:3, 3] += (-0.2, 0.2, 0.1)  # its z counts for nothing

    @pp.program(shapes={"t": ()})
    def law(robot: pp.Robot, t: Any, q: Any, v: Any) -> Any:
        path = c.pose_path(t, 1.5, start, goal)
        pressing, axes = [0.0, 0, 0, 0, 0, -press], [0.0, 0, 0, 0, 0, 1]
        out = c.hybrid_force_position(robot, q, v, path[0], pressing, axes, *path[1:])
        pose = pp.frame_pose(robot, q, "tool")
        push = stiffness * np.maximum(wall - pose[2, 3], 0.0)
        wrench = np.concatenate([np.zeros(3), push * pose[2, :3]])
        return {**out, "external": {"tool": wrench}, "push": push}

    motion = pp.simulate(robot, q, None, law, duration=3.0, dt=0.002, every=10, **FREE)
    assert np.abs(motion.signals["push"] / press - 1.0).max() < 1e-3
    assert motion.signals["position_error"].max() < 1e-6
    close(pp.frame_pose(robot, motion.q[-1], "tool")[:2], goal[:2], 1e-6)
