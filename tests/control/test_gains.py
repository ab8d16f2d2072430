"""Wrong gains, frames, shapes and masks are refused in one sentence."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

import phipsi as pp
from phipsi import control as c
from phipsi.control.tasks import ROWS, Rows
from tests.simulation.machines import STEP

PUMA, SPACE = pp.robots.puma560(), pp.robots.space_arm()
Q, V = PUMA.random_state(0)
S, U = SPACE.random_state(0)
X, ON = np.eye(4), SPACE.driven


@pytest.mark.parametrize(
    ("law", "args", "options", "sentence"),
    [
        (c.computed_torque, (PUMA, Q, V, Q), {"stiffness": -3.0},
         "computed_torque: stiffness is -3.0, needs a positive number or one per freedom"),
        (c.computed_torque, (PUMA, Q, V, Q), {"stiffness": np.ones(5)},
         "computed_torque: stiffness has 5 numbers, needs a positive number or one per freedom"),
        (c.pd_gravity, (PUMA, Q, V, Q), {"damping": [1, 1, 1, 1, 1, -2.0]},
         r"pd_gravity: damping is \[1.0, 1.0, 1.0, 1.0, 1.0, -2.0\], needs a number ≥ 0 or one"),
        (c.pd_gravity, (PUMA, Q, V, Q), {"stiffness": np.nan}, "stiffness is nan, needs a"),
        (c.pd_gravity, (PUMA, Q, V, Q), {"stiffness": "stiff"}, "stiffness is 'stiff', needs a"),
        (c.pd_gravity, (PUMA, Q, V, Q), {"stiffness": None}, "stiffness is None, needs a positive"),
        (c.rate_feedback, (PUMA, Q, V), {"damping_matrix": np.diag([1, 1, 1, 1, 1, -1.0])},
         "damping_matrix of shape .* is none, needs a symmetric positive definite matrix"),
        (c.pose_feedback, (PUMA, Q, V, X), {"attitude": "euler"},
         "pose_feedback: attitude 'euler' is not one of axes, geodesic"),
        (c.pose_feedback, (PUMA, Q, V, X), {"attitude": "geodesic", "attitude_gain": [1.0, 2, 3]},
         "takes one number attitude_gain and no weight"),
        (c.pose_feedback, (PUMA, Q, V, X), {"frame": "tol"}, "no frame 'tol'; did you mean 'tool'"),
        (c.pose_feedback, (PUMA, Q, V, np.eye(3)), {}, r"pose has shape \(3, 3\), needs"),
        (c.operational_space, (PUMA, Q, V, X), {"rows": "linaer"},
         "operational_space: rows 'linaer' is not one of pose, angular, linear"),
        (c.resolved_acceleration, (SPACE, S, U, ON, X), {"singular": 0.0},
         "resolved_acceleration: singular is 0.0, needs a positive number"),
        (c.resolved_acceleration, (SPACE, S, U, ON, X), {"damping": [1.0, 2.0]},
         "damping has 2 numbers, needs a positive number or one for each of 6 rows"),
        (c.resolved_acceleration, (SPACE, S, U, ON[:3], X), {}, r"active has shape \(3,\), needs"),
        (c.resolved_acceleration, (SPACE, S, U, "elbow", X), {}, "no hinge 'elbow'"),
        (c.resolved_acceleration, (SPACE, S, U, ON, X), {"locked": [7]}, "got positions"),
        (c.reaction_mode, (PUMA, Q, V, PUMA.driven, X), {}, "'tool' of robot .* has no base"),
        (c.thrusters, (PUMA, 0.1, Q, V, PUMA.driven, np.zeros(8)), {"base": "joint1"},
         "thrusters: hinge 'joint1' of robot 'puma560' is not free to float"),
        (c.wheel_attitude_hold, (SPACE, S, U, ON), {}, "no hinge 'wheel_x'"),
        (c.wheel_attitude_hold, (SPACE, S, U, ON), {"wheels": ["shoulder_roll"]},
         "the axes of 1 wheels of robot 'space_arm' do not span all directions"),
        (c.wheel_attitude_hold, (SPACE, S, U, ON), {"wheels": ["elbow_pitch"]},
         "hinge 'elbow_pitch' of robot 'space_arm' is no wheel that turns in 'base'"),
        (c.object_control, (SPACE, S, U, S), {"grasps": []}, "at least one Grasp"),
        (c.object_control, (SPACE, S, U, S), {"grasps": [pp.Grasp("tool", "world")]},
         "object_control: frames 'world' of robot 'space_arm' are not of one object that moves"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_sentence(
    law: Any, args: Any, options: Any, sentence: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence) as caught:
        law(*args, **options)
    assert "\n" not in str(caught.value)


def test_constants_are_checked_inside_programs_too() -> None:
    @pp.program
    def held(robot: pp.Robot, q: Any, v: Any) -> Any:
        return c.pd_gravity(robot, q, v, np.zeros(6), stiffness=-1.0)

    with pytest.raises(ValueError, match=r"pd_gravity: stiffness is -1.0, needs a positive"):
        held(PUMA, Q, V)


def test_gains_are_checked_by_name_before_a_simulation() -> None:
    law = c.on_path(c.assisted(c.reaction_mode, c.thrusters))
    c.check_gains(law, {"stiffness": 3.0, "release": 0.5, "rows": "linear", "duration": 2.0})
    for name, value in (("release", 1.5), ("base_stiffness", -1.0), ("duration", 0.0)):
        with pytest.raises(ValueError, match=f"reaction_mode_with_thrusters_on_path: {name} is"):
            c.check_gains(law, {name: value})


def test_what_has_no_target_or_takes_no_help_is_refused() -> None:
    with pytest.raises(TypeError, match="on_path: rate_feedback has no target that could move"):
        c.on_path(c.rate_feedback)
    with pytest.raises(TypeError, match="assisted: pose_feedback takes no 'active'"):
        c.assisted(c.pose_feedback, c.thrusters)


def test_gains_are_checked_before_anything_is_simulated():
    robot = pp.robots.double_pendulum()
    with pytest.raises(ValueError, match=r"stiffness is -3\.0, needs a positive"):
        pp.simulate(
            robot, [0.0, 0.0], None, c.pd_gravity, **STEP,
            parameters={"target": np.zeros(2), "stiffness": -3.0},
        )  # fmt: skip


def test_every_name_of_rows_is_in_the_table() -> None:
    assert get_args(Rows) == tuple(ROWS)
