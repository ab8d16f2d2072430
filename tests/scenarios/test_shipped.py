"""The seven shipped scenarios reach what they are for."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.control import joint_path, pose_lyapunov
from phipsi.scenarios import LAWS, SCENARIOS, Scenario, load
from phipsi.scenarios.scenario import FILES


@lru_cache
def ran(name: str) -> tuple[Scenario, pp.Trajectory]:
    scenario = load(name)
    motion = scenario.run()
    assert motion.duration == pytest.approx(scenario.simulation.duration)
    within_limits(motion)
    return scenario, motion


def within_limits(motion: pp.Trajectory) -> None:
    """No joint leaves its limits, and no motor is asked for more than it has."""
    lower, upper, effort = (motion.robot.joint_data(x) for x in ("lower", "upper", "effort"))
    assert ((lower <= motion.q) & (motion.q <= upper)).all()
    assert (np.abs(motion.tau) < np.where(effort == 0.0, 1e-300, effort))[
        :, motion.robot.driven
    ].all()


def missed(scenario: Scenario, motion: pp.Trajectory) -> float:
    ((frame, goal),) = scenario.goals.items()
    return float(np.linalg.norm((motion.frame(frame)[-1] - goal.pose)[:3, 3]))


def turned(motion: pp.Trajectory, body: str = "base") -> np.ndarray:
    """How far a body has turned [rad]."""
    R = motion.frame(body)[:, :3, :3]
    cosine = (np.einsum("tij,ij->t", R, R[0]) - 1.0) / 2.0
    return np.arccos(np.clip(cosine, -1.0, 1.0))


def test_reaction_mode_reaches_with_the_base_still():
    scenario, motion = ran("reaction_mode")
    assert missed(scenario, motion) < 1e-6
    assert turned(motion).max() < 1e-6
    assert np.abs(motion.momentum).max() < 1e-6
    _, plain = ran("actuator_failure")  # the same way by the generalized Jacobian alone
    assert turned(plain)[plain.t < 3.0].max() > 0.01


def test_thrusters_stop_the_drift_and_wheels_the_rotation():
    scenario, motion = ran("reaction_thrusters_wheels")
    assert missed(scenario, motion) < 1e-4
    assert motion.signals["arm.position_error"].max() < 2e-3
    assert turned(motion).max() < 3e-3 and turned(motion)[-1] < 1e-4
    assert np.linalg.norm(motion.frame("base")[:, :3, 3], axis=1).max() < 0.05
    force = motion.signals["thrusters.impulse"][-1]
    assert force[0] == 0.0 and 4.0 < force[1] < 10.0
    fired = np.abs(motion.signals["thrusters.firing"]).sum(1)
    assert 0.0 < (fired > 0).mean() < 0.3
    assert np.abs(motion.momentum[-1, 3:]).max() < 0.5 * np.abs(motion.momentum[0, 3:]).max()
    wheels = motion.robot.mask("wheel_x", "wheel_y", "wheel_z")
    assert np.abs(motion.v[-1, wheels]).max() > 1.0


def test_the_others_reach_after_the_elbow_has_failed():
    scenario, motion = ran("actuator_failure")
    assert missed(scenario, motion) < 1e-6
    elbow = motion.robot.hinge("elbow_pitch")
    after = motion.t >= 3.0
    assert np.ptp(motion.q[after, elbow.q]) < 1e-9 < np.ptp(motion.q[~after, elbow.q])
    assert not motion.tau[after, elbow.v].any()
    ((time, what),) = motion.events
    assert time == 3.0 and "elbow_pitch" in what


@pytest.mark.parametrize(
    ("name", "hinges", "squeeze"),
    [("two_arms_box", ["box"], 40.0), ("two_arms_shears", ["first_blade", "second_blade"], None)],
)
def test_two_arms_move_an_object_along_its_path(
    name: str, hinges: list[str], squeeze: float | None
):
    scenario, motion = ran(name)
    given = scenario.controllers[0].parameters(scenario.start[0])
    begin, duration = given["path_times"]
    path = joint_path(
        motion.robot, motion.t - begin, duration, *(given[f"path_{x}"] for x in ("start", "goal"))
    )
    own = np.concatenate([np.r_[motion.robot.hinge(h).q] for h in hinges])
    assert np.abs(motion.q - path.q)[:, own].max() < 1e-4
    assert np.abs(given["path_goal"] - given["path_start"])[own].max() > 0.1
    opening: Any = pp.loop_opening(motion.robot, scenario.closures, motion.q, motion.v)
    assert np.abs(opening.error).max() < 1e-5
    for side in ("left", "right"):
        pressure = motion.signals[f"internal_force:{side}/tool"][:, 5]
        if squeeze is None:  # the blades turn: what squeezes them and does not is no longer along z
            assert (pressure > 15.0).all()
        else:
            assert np.abs(pressure / squeeze - 1.0).max() < 0.01


def test_the_tail_of_a_snake_moves_by_joints_some_of_which_are_passive():
    scenario, motion = ran("snake_passive")
    assert missed(scenario, motion) < 1e-6
    assert motion.signals["position_error"].max() < 1e-3
    passive = motion.robot.mask("joint3", "joint6")
    assert not motion.tau[:, passive].any()
    assert np.ptp(motion.q[:, motion.robot.hinge("joint3").q]) > 0.2  # it swings
    assert np.abs(motion.momentum).max() < 1e-6


def test_a_puma_comes_to_rest_at_its_pose_and_its_lyapunov_function_never_grows():
    scenario, motion = ran("puma_diagonal")
    assert missed(scenario, motion) < 1e-3
    goal = scenario.goals["tool"].pose
    assert np.abs(motion.frame("tool")[-1] - goal).max() < 1e-3
    U = pose_lyapunov(
        motion.robot, motion.q, motion.v, goal, attitude="geodesic", position_gain=600.0,
        attitude_gain=60.0,
    )  # fmt: skip
    assert np.diff(U).max() < 1e-6 and U[-1] < 1e-4 * U[0]


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_is_explained_and_writes_into_its_own_folder(name: str):
    scenario, text = load(name), (FILES / f"{name}.toml").read_text()
    assert scenario.name == name and len(scenario.document.about) > 200
    assert text.count("#") >= 1 and scenario.output.report
    assert scenario.output.folder == name
    assert max(map(len, text.splitlines())) <= 101


def test_the_files_that_ship_are_those_that_are_named():
    assert {path.name for path in FILES.iterdir()} == {f"{name}.toml" for name in SCENARIOS}


def test_every_law_of_the_library_can_be_named():
    from phipsi import control

    known = {n: getattr(control, n) for n in control.__all__}
    programs = {n: x for n, x in known.items() if isinstance(x, pp.Program)}
    laws = {n for n, x in programs.items() if any(p.rule for p in x.parameters.values())}
    assert set(LAWS) == laws - {"resolved_rate"}  # which returns rates, not forces
