"""Reaction mode: redundant joints keep the base of a free-flyer still while its tip moves
([UA] 7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.control.gains import Gain, controller
from phipsi.control.tasks import SHAPES, TRACKING, report, resolve, rows_of, split, task
from phipsi.conventions import WORLD
from phipsi.model import ModelError, Robot

GAINS = {**TRACKING, "base_stiffness": Gain(6), "base_damping": Gain(6), "base_weight": Gain()}


def base_of(what: str, robot: Robot, frame: str) -> str:
    """The body that floats freely and carries a frame."""
    root = robot.root(robot.frame(frame).body)
    if root == WORLD or robot.hinges[robot.body_index(root)].kind.name != "free":
        raise ModelError(
            f"{what}: frame {frame!r} of robot {robot.name!r} has no base that floats; "
            "the first hinge below it must be free"
        )
    return root


@controller(gains=GAINS, shapes={**SHAPES, "base_pose": (4, 4)}, masks=("active", "locked"))
def reaction_mode(
    robot: Robot,
    q: Any,
    v: Any,
    active: Any,
    pose: Any,
    velocity: Any = None,
    acceleration: Any = None,
    *,
    locked: Any = None,
    tau: Any = None,
    base_pose: Any = None,
    frame: str = "tool",
    rows: str = "pose",
    base_rows: str = "angular",
    stiffness: Any = 16.0,
    damping: Any = 8.0,
    base_stiffness: Any = 16.0,
    base_damping: Any = 8.0,
    base_weight: Any = 10.0,
    null_damping: Any = 1.0,
    singular: Any = 0.01,
    passive: bool = True,
) -> dict[str, Any]:
    """[J_G; J_D] β̇_a = [α_d − drift; β̇_p,d − drift]: the tip follows its target and the base stays
    where it is, thrusters off ([UA] (7.1), corrected).

    The rows of the base in J_D are those of the generalized Jacobian of its own frame, taken in
    world axes like those of the tip. `base_rows`: "angular" holds the attitude, "linear" the
    position, "all" both; `base_pose` (4, 4) is where (None: the world's axes and origin), with
    feedback, so that nothing accumulates. It takes as many driven joints as there are rows;
    where they are too few, or singular, all rows yield a little, those of the base as
    `base_weight` says (a heavy base moves little: its rows of J_D are small). Others as in
    `resolved_acceleration`, base_attitude_error [rad] and base_position_error [m] besides.
    Cost O(N).
    """
    what = "reaction_mode"
    home = np.eye(4) if base_pose is None else base_pose
    base, chosen = base_of(what, robot, frame), rows_of(what, rows)
    tip = task(robot, q, v, frame, chosen, pose, velocity, acceleration, stiffness, damping)
    held = rows_of(what, base_rows)
    hold = task(robot, q, v, base, held, home, None, None, base_stiffness, base_damping)
    hold = hold._replace(weight=base_weight)
    found = resolve(
        robot, q, v, split(robot, active, locked), tau, [tip, hold], null_damping, singular, passive
    )
    return report(
        found.tau,
        tip.error,
        clearance=found.clearance,
        base_attitude_error=np.linalg.norm(hold.error[:3]),
        base_position_error=np.linalg.norm(hold.error[3:]),
    )
