"""Reaction mode: redundant joints keep the base of a free-flyer still while its tip moves
([UA] 7)."""

from __future__ import annotations

import numpy as np

from phipsi.control.gains import Gain, controller
from phipsi.control.tasks import (
    TRACKING,
    FrameControl,
    Rows,
    length,
    report,
    resolve,
    rows_of,
    split,
    task,
)
from phipsi.conventions import WORLD
from phipsi.model import ModelError, Robot
from phipsi.typing import (
    ArrayLike,
    ConfigurationLike,
    JointVectorLike,
    MaskLike,
    PoseLike,
    Scalar,
    ScalarLike,
    SpatialVectorLike,
)

GAINS = {**TRACKING, "base_stiffness": Gain(6), "base_damping": Gain(6), "base_weight": Gain()}


def base_of(what: str, robot: Robot, frame: str) -> str:
    """The free-floating body that carries a frame; `what` is the controller in the error."""
    root = robot.root(robot.frame(frame).body)
    if root == WORLD or robot.hinges[robot.body_index(root)].kind.name != "free":
        raise ModelError(
            f"{what}: frame {frame!r} of robot {robot.name!r} has no base that floats; "
            "the first hinge below it must be free"
        )
    return root


class ReactionControl(FrameControl):
    """Result of `reaction_mode`."""

    base_attitude_error: Scalar
    """[rad]."""
    base_position_error: Scalar
    """[m]."""


@controller(gains=GAINS)
def reaction_mode(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    active: MaskLike,
    pose: PoseLike,
    velocity: SpatialVectorLike | None = None,
    acceleration: SpatialVectorLike | None = None,
    *,
    locked: MaskLike | None = None,
    tau: JointVectorLike | None = None,
    base_pose: PoseLike | None = None,
    frame: str = "tool",
    rows: Rows = "pose",
    base_rows: Rows = "angular",
    stiffness: ArrayLike = 16.0,
    damping: ArrayLike = 8.0,
    base_stiffness: ArrayLike = 16.0,
    base_damping: ArrayLike = 8.0,
    base_weight: ScalarLike = 10.0,
    null_damping: ScalarLike = 1.0,
    singular: ScalarLike = 0.01,
    passive: bool = True,
) -> ReactionControl:
    """The tip follows its target and the base stays where it is, thrusters off ([UA] 7).

    [J_G; J_D] β̇_a = [α_d − drift; β̇_p,d − drift] ([UA] (7.1), corrected). The rows of the base in
    J_D are those of the generalized Jacobian of its own frame, in world axes like those of the
    tip. The error of the base is fed back, so that it does not accumulate. As many driven joints
    are needed as there are rows; where there are fewer, or where they are singular, the rows are
    met approximately, by weighted least squares. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    active : (…, nv) bool or names of hinges
        The driven freedoms.
    pose : (…, 4, 4)
        Desired pose of the frame in the world.
    velocity : (…, 6), optional
        Desired velocity [angular; linear] of the frame, world axes [rad/s, m/s]; zero by default.
    acceleration : (…, 6), optional
        Desired classical acceleration, world axes [rad/s², m/s²]; zero by default.
    locked : (…, nv) bool or names of hinges, optional
        Freedoms held by their brakes; none by default.
    tau : (…, nv), optional
        Known forces of freedoms that are not driven [N·m or N]; zero by default.
    base_pose : (…, 4, 4), optional
        Desired pose of the base; by default the axes and origin of the world.
    frame
        Name of the frame.
    rows : {"pose", "angular", "linear", "position", "all"}
        Rows of the frame's motion that are controlled; "position" is "linear", "all" is "pose".
    base_rows : {"pose", "angular", "linear", "position", "all"}
        "angular" holds the attitude of the base, "linear" its position, "all" both.
    stiffness : number or (6,)
        K_p of the frame, positive [1/s²], one number or one per row [angular; linear].
    damping : number or (6,)
        K_d of the frame, positive [1/s].
    base_stiffness : number or (6,)
        The same for the base [1/s²].
    base_damping : number or (6,)
        The same for the base [1/s].
    base_weight : ()
        Weight of the rows of the base in the least squares, positive. A heavy base moves little,
        so that its rows of J_D are small.
    null_damping : ()
        Rate ≥ 0 at which motion that the rows leave free is slowed [1/s].
    singular : ()
        Clearance below which the least squares are damped, positive.
    passive
        Whether springs, dampers and friction of the robot count as known forces.

    Returns
    -------
    ReactionControl
        Dictionary of `tau` (…, nv) [N·m or N], `attitude_error` [rad], `position_error` [m],
        `clearance` as of `resolved_acceleration`, `base_attitude_error` [rad] and
        `base_position_error` [m], (…) each.

    Raises
    ------
    ModelError
        If the first hinge below the frame is not free.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.control import reaction_mode
    >>> robot = pp.robots.chain(2, base="free").with_gravity([0.0, 0.0, 0.0])
    >>> q, v = robot.neutral(), np.zeros(robot.nv)
    >>> goal = pp.frame_pose(robot, q, "tool")
    >>> goal[0, 3] += 0.1
    >>> out = reaction_mode(robot, q, v, robot.driven, goal, rows="linear")
    >>> out["tau"][:6] + 0.0  # only joints are driven
    array([0., 0., 0., 0., 0., 0.])
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
    attitude_error, position_error = length(hold.error[:3]), length(hold.error[3:])
    return {
        **report(found.tau, tip.error, found.clearance),
        "base_attitude_error": attitude_error,
        "base_position_error": position_error,
    }
