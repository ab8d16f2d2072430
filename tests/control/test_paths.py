"""Paths: ends, smoothness, and that velocities are the derivatives of positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.control import (
    assisted,
    joint_path,
    on_path,
    pose_path,
    quintic,
    reaction_mode,
    thrusters,
)
from tests.simulation.machines import balls
from tests.zoo import close, random_forest

T = 2.0
STEP = 1e-4


def pose(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    out = np.eye(4)
    out[:3, :3] = pp.linalg.rotation_matrix(rng.normal(size=4))
    out[:3, 3] = rng.normal(size=3)
    return out


def test_a_quintic_goes_from_rest_to_rest_and_is_held() -> None:
    t = np.array([-1.0, 0.0, 0.5, 1.0, T, 9.0])
    q, v, a = quintic(t, T, [1.0, 2.0], [3.0, -2.0])
    close(q[[0, 1, 3, 4, 5]], [[1, 2], [1, 2], [2, 0], [3, -2], [3, -2]])
    close(v[[0, 1, 4, 5]], np.zeros((4, 2)))
    close(a[[0, 1, 4, 5]], np.zeros((4, 2)))
    u = t[2] / T
    coefficients = np.polynomial.Polynomial([0, 0, 0, 10, -15, 6])
    close(q[2], np.array([1, 2]) + coefficients(u) * np.array([2, -4]))
    close(v[2], coefficients.deriv()(u) / T * np.array([2, -4]))
    close(a[2], coefficients.deriv(2)(u) / T**2 * np.array([2, -4]))


@pytest.mark.parametrize("seed", range(3))
def test_joint_paths_move_at_their_rates_on_the_manifold(seed: int) -> None:
    robot = random_forest(seed, 5)
    (q0, q1), _ = robot.random_state(seed, (2,))
    close(joint_path(robot, 0.0, T, q0, q1).q, robot.integrate(q0, np.zeros(robot.nv)))
    close(robot.difference(joint_path(robot, 3.0, T, q0, q1).q, q1), np.zeros(robot.nv), 1e-7)
    t = 0.7
    before, now, after = (joint_path(robot, t + s, T, q0, q1) for s in (-STEP, 0.0, STEP))
    close(robot.difference(before.q, after.q) / (2 * STEP), now.v, 1e-6)
    close((after.v - before.v) / (2 * STEP), now.a, 1e-6)


def test_pose_paths_move_at_their_rates() -> None:
    start, goal = pose(0), pose(1)
    t = np.array([-1.0, 0.6, 1.1, T, 5.0])
    path = pose_path(t, T, start, goal)
    close(path.pose[[0, 3, 4]], np.stack([start, goal, goal]))
    before, after = (pose_path(t + s, T, start, goal) for s in (-STEP, STEP))
    turn = (after.pose - before.pose)[:, :3, :3] / (2 * STEP) @ path.pose[:, :3, :3].mT
    omega = np.stack([turn[:, 2, 1], turn[:, 0, 2], turn[:, 1, 0]], axis=1)
    close(path.velocity[:, :3], omega, 1e-6)
    close(path.velocity[:, 3:], (after.pose - before.pose)[:, :3, 3] / (2 * STEP), 1e-6)
    rate = (after.velocity - before.velocity) / (2 * STEP)
    close(path.acceleration[:3], rate[:3], 1e-6)  # at the end it bends
    assert path.velocity.shape == (5, 6)


def test_paths_are_the_same_inside_programs() -> None:
    robot, start, goal = pp.robots.space_arm(), pose(0), pose(1)
    (q0, q1), _ = robot.random_state(0, (2,))

    @pp.program(shapes={"t": ()})
    def both(robot: pp.Robot, t: Any, q0: Any, q1: Any) -> Any:
        return joint_path(robot, t, T, q0, q1), pose_path(t, T, start, goal)

    t = np.linspace(-1, 3, 7)
    inside = both(robot, t, q0, q1)
    for got, wanted in zip(inside[0], joint_path(robot, t, T, q0, q1), strict=True):
        close(got, wanted)
    for got, wanted in zip(inside[1], pose_path(t, T, start, goal), strict=True):
        close(got, wanted)


def test_wrong_paths_are_refused_in_one_sentence() -> None:
    with pytest.raises(ValueError, match=r"path: duration is 0.0, needs a positive number \[s\]"):
        quintic(0.0, 0.0, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"pose_path: goal has shape \(3, 3\), needs \(4, 4\)"):
        pose_path(0.0, 1.0, np.eye(4), np.eye(3))


def test_paths_and_help_say_what_they_cannot_take():
    with pytest.raises(TypeError, match="is no program"):
        on_path(lambda robot, q, pose: q)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="have a memory"):
        assisted(assisted(reaction_mode, thrusters), thrusters)

    @pp.program
    def timed(robot: pp.Robot, t: Any, target: Any) -> Any:
        return {"tau": np.zeros(robot.nv), "at": t, "aim": target}

    way = {"start": [0.0], "goal": [1.0], "duration": 0.1}
    motion = pp.simulate(
        balls(1.0), [0.0], None, on_path(timed), duration=0.1, dt=0.01, parameters=way
    )
    assert np.allclose(motion.signals["at"], motion.t) and motion.signals["aim"][-1] == 1.0
