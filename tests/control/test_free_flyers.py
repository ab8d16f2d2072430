"""Free-flyers: reaction mode, failures, thrusters and wheels in closed loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi import control as c
from tests.control.cases import Case, dual, single

HOW: dict[str, Any] = {"dt": 0.005, "method": "euler"}


INERTIA = 5.0 * 0.15**2 / 2
"""Of a wheel about its axis [kg·m²]."""


def turned(q: Any) -> np.ndarray:
    """How far the base has turned [rad]."""
    w = np.clip(np.abs(q[..., 3]), 0.0, 1.0)
    return 2 * np.arctan2(np.linalg.norm(q[..., 4:7], axis=-1), w)


def run(case: Case, law: Any, parameters: dict[str, Any], **how: Any) -> pp.Trajectory:
    return pp.simulate(
        case.robot, case.q, None, c.on_path(law), duration=case.duration + 2.0,
        parameters={**case.path, **parameters}, **{**HOW, **how},
    )  # fmt: skip


def within_limits(robot: pp.Robot, q: Any) -> bool:
    lower, upper = (robot.joint_data(x)[7:] for x in ("lower", "upper"))
    return bool(((lower < q[..., 7:]) & (q[..., 7:] < upper)).all())


def test_one_arm_reaches_a_position_with_the_attitude_of_the_base_held() -> None:
    case = single()
    motion = run(case, c.reaction_mode, {"rows": "linear"})
    assert motion.signals["position_error"][-1] < 1e-5
    plain = run(case, c.resolved_acceleration, {"rows": "linear"})
    assert plain.signals["position_error"][-1] < 1e-5
    assert 10.0 * turned(motion.q).max() < turned(plain.q).max() > 0.03
    assert motion.signals["clearance"].min() > 0.08
    assert within_limits(case.robot, motion.q)


def test_two_arms_reach_a_pose_with_the_base_held_altogether() -> None:
    case = dual()
    free = {"frame": case.frame, "stiffness": 30.0, "damping": 11.0}
    held = {**free, "base_pose": np.eye(4), "base_rows": "all", "base_stiffness": 30.0,
            "base_damping": 11.0, "null_damping": 2.0, "singular": 0.005}  # fmt: skip
    motion = run(case, c.reaction_mode, held)
    plain = run(case, c.resolved_acceleration, free)
    for each in (motion, plain):
        assert each.signals["position_error"][-1] < 1e-4
        assert each.signals["attitude_error"][-1] < 1e-4
    assert 10.0 * turned(motion.q).max() < turned(plain.q).max() > 0.03
    shifts = [np.linalg.norm(each.q[:, :3], axis=1).max() for each in (motion, plain)]
    assert 10.0 * shifts[0] < shifts[1] > 0.001
    assert motion.signals["clearance"].min() > 0.02
    assert within_limits(case.robot, motion.q)


def test_after_a_failure_the_other_joints_reach_the_target() -> None:
    """Each joint of the arm swings free, or is locked, halfway."""
    case, missed = single(), {}
    for hinge in [h.name for h in case.robot.hinges[1:]]:
        for how in ("free", "locked"):
            failure = pp.Failure(3.0, hinge, how)
            motion = run(case, c.resolved_acceleration, {"rows": "linear"}, events=[failure])
            if not motion.signals["position_error"][-1] < 1e-3:
                left = case.robot.driven & ~case.robot.mask(hinge)
                q = motion.q[motion.t > 3.0]
                J = pp.generalized_jacobian(case.robot, q, "tool", left)[:, 3:]
                missed[hinge, how] = np.linalg.svd(J, compute_uv=False)[:, -1].min()
    assert list(missed) == [("elbow_pitch", "free")]
    assert missed["elbow_pitch", "free"] < 0.02  # it comes to a singularity


def test_thrusters_fire_when_the_base_leaves_its_bounds_and_tell_what_they_spent() -> None:
    case = single()
    band = {"attitude_band": 0.01, "position_band": 1.0, "lead": 3.0, "memory": np.zeros(8)}
    memory = band.pop("memory")
    helped = c.assisted(c.resolved_acceleration, c.thrusters)
    motion = run(case, helped, {"rows": "linear", **band}, memory=memory)
    assert turned(motion.q).max() < 0.02
    assert motion.signals["position_error"][-1] < 1e-4  # the arm knows of them
    firing, impulse = motion.signals["firing"], motion.signals["impulse"]
    assert set(np.unique(firing)) <= {-1.0, 0.0, 1.0} and firing[:, :3].any()
    spent = motion.dt * np.abs(motion.tau[:-1, :3]).sum()
    assert impulse[-1] == pytest.approx([spent, 0.0]) and spent > 1.0


def test_wheels_hold_the_base_while_the_arm_moves() -> None:
    case = single(wheels=True)
    gains = {"wheel_stiffness": 100.0, "wheel_damping": 200.0}
    helped = c.assisted(c.resolved_acceleration, c.wheel_attitude_hold)
    motion = run(case, helped, {"rows": "linear", **gains}, actuators=False)
    spinning = case.robot.mask("wheel_x", "wheel_y", "wheel_z")
    arm = case.robot.driven & ~spinning
    assert turned(motion.q).max() < 0.01
    assert motion.signals["position_error"][-1] < 1e-4
    assert np.abs(motion.v[-1] * arm).max() < 1e-2
    total = np.abs(motion.momentum[:, :3]).max()  # what the base does not have the wheels have
    assert total < 2e-3 < 0.1 < np.abs(motion.v[:, spinning]).max() * INERTIA


def test_the_moment_of_wheels_is_shared_by_their_axes() -> None:
    robot = pp.robots.space_arm(wheels=True)
    q, v = robot.random_state(0)
    law = c.wheel_attitude_hold(robot, q, v, robot.driven, wheel_stiffness=3.0, wheel_damping=2.0)
    R = pp.frame_pose(robot, q, "base")[:3, :3]
    wanted = 3.0 * R.T @ c.pose_error(pp.frame_pose(robot, q, "base"), np.eye(4))[:3] - 2.0 * v[:3]
    spinning = robot.mask("wheel_x", "wheel_y", "wheel_z")
    np.testing.assert_allclose(law["tau"][spinning], -wanted.astype(float))
    assert not law["tau"][~spinning].any()
    np.testing.assert_array_equal(law["active"] > 0, robot.driven & ~spinning)
