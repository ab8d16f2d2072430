"""Resolved motion with the generalized Jacobian: arms on bases that yield, whichever joints are
still driven ([UA] 6.2)."""

from __future__ import annotations

import numpy as np

from phipsi.algorithms import (
    frame_pose,
    frame_velocity,
    generalized_jacobian,
    passive_rates,
)
from phipsi.control.gains import Gain, controller
from phipsi.control.tasks import (
    TRACKING,
    FrameControl,
    Rows,
    clearance,
    damped,
    pose_error,
    report,
    resolve,
    rows_of,
    split,
    task,
)
from phipsi.model import Robot
from phipsi.typing import (
    ArrayLike,
    ConfigurationLike,
    JointVector,
    JointVectorLike,
    MaskLike,
    PoseLike,
    ScalarLike,
    SpatialVectorLike,
)


@controller(gains=TRACKING)
def resolved_acceleration(
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
    frame: str = "tool",
    rows: Rows = "pose",
    stiffness: ArrayLike = 16.0,
    damping: ArrayLike = 8.0,
    null_damping: ScalarLike = 1.0,
    singular: ScalarLike = 0.05,
    passive: bool = True,
) -> FrameControl:
    """A frame follows its target while passive freedoms yield: β̇_a = J_G⁺(α_d − drift) ([UA] 6.2).

    T_a follows by hybrid dynamics. Passive freedoms are the base, or a joint without its motor.
    α_d = a_d + K_d(V_d − V) + K_p e with e = [log(R_dR*); p_d − p]: the error decays as a damped
    spring. `active` and `locked` may change at any time, which switches to another set of driven
    joints after a fault. Cost O(N).

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
        Desired velocity V_d [angular; linear], world axes [rad/s, m/s]; zero by default.
    acceleration : (…, 6), optional
        Desired classical acceleration a_d, world axes [rad/s², m/s²]; zero by default.
    locked : (…, nv) bool or names of hinges, optional
        Freedoms held by their brakes; none by default.
    tau : (…, nv), optional
        Known forces of freedoms that are not driven (thrusters, wheels with another controller)
        [N·m or N]; zero by default.
    frame
        Name of the frame.
    rows : {"pose", "angular", "linear", "position", "all"}
        Rows of the frame's motion that are controlled; "position" is "linear", "all" is "pose".
    stiffness : number or (6,)
        K_p, positive [1/s²], one number or one per row [angular; linear].
    damping : number or (6,)
        K_d, positive [1/s].
    null_damping : ()
        Rate ≥ 0 at which motion of driven joints that the rows leave free is slowed [1/s]. (A
        joint that swings keeps its momentum: no motor can take it.)
    singular : ()
        Clearance of J_G below which the least squares are damped, positive; above it the tracking
        is exact.
    passive
        Whether springs, dampers and friction of the robot count as known forces.

    Returns
    -------
    FrameControl
        Dictionary of `tau` (…, nv) [N·m or N], `attitude_error` [rad], `position_error` [m], and
        `clearance`, between σ_min/√m and σ_min of the m rows of J_G, (…) each.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.control import resolved_acceleration
    >>> robot = pp.robots.double_pendulum()
    >>> q, v = [0.3, -0.5], [0.0, 0.0]
    >>> goal = pp.frame_pose(robot, q, "tool")
    >>> out = resolved_acceleration(robot, q, v, robot.driven, goal)
    >>> np.allclose(out["tau"], pp.gravity_force(robot, q))  # at the target it stands still
    True
    """
    chosen = rows_of("resolved_acceleration", rows)
    now = task(robot, q, v, frame, chosen, pose, velocity, acceleration, stiffness, damping)
    found = resolve(
        robot, q, v, split(robot, active, locked), tau, [now], null_damping, singular, passive
    )
    return report(found.tau, now.error, found.clearance)


@controller(gains={"stiffness": Gain(6), "singular": Gain()})
def resolved_rate(
    robot: Robot,
    q: ConfigurationLike,
    active: MaskLike,
    pose: PoseLike,
    velocity: SpatialVectorLike | None = None,
    *,
    locked: MaskLike | None = None,
    momentum: JointVectorLike | None = None,
    frame: str = "tool",
    rows: Rows = "pose",
    stiffness: ArrayLike = 4.0,
    singular: ScalarLike = 0.05,
) -> JointVector:
    """Joint rates that bring a frame to its target: β_a = J_G⁺(V_d + K e − V_p) ([UA] 6.2, (7.3)).

    Passive freedoms yield at given momenta; V_p is the frame's velocity by these momenta alone.
    The error decays at the rate `stiffness`. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    active : (…, nv) bool or names of hinges
        The driven freedoms.
    pose : (…, 4, 4)
        Desired pose of the frame in the world.
    velocity : (…, 6), optional
        Desired velocity V_d [angular; linear], world axes [rad/s, m/s]; zero by default.
    locked : (…, nv) bool or names of hinges, optional
        Freedoms held by their brakes; none by default.
    momentum : (…, nv), optional
        Joint momenta, read where passive; by default zero (a free-flyer that began at rest).
    frame
        Name of the frame.
    rows : {"pose", "angular", "linear", "position", "all"}
        Rows of the frame's motion that are controlled; "position" is "linear", "all" is "pose".
    stiffness : number or (6,)
        K, positive [1/s], one number or one per row [angular; linear].
    singular : ()
        Clearance of J_G below which the least squares are damped, positive.

    Returns
    -------
    (…, nv)
        All joint rates [rad/s or m/s]; those of passive freedoms follow from the driven ones.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.control import resolved_rate
    >>> robot = pp.robots.double_pendulum()
    >>> q = [0.3, -0.5]
    >>> goal = pp.frame_pose(robot, q, "tool")
    >>> resolved_rate(robot, q, robot.driven, goal).round(9) + 0.0  # at the target
    array([0., 0.])
    """
    chosen = rows_of("resolved_rate", rows)
    driven, held = split(robot, active, locked)
    wanted = np.asanyarray(stiffness) * pose_error(frame_pose(robot, q, frame), pose)
    wanted = wanted if velocity is None else wanted + velocity
    if momentum is not None:
        adrift = passive_rates(robot, q, np.zeros(robot.nv), held, momentum)
        wanted = wanted - frame_velocity(robot, q, adrift, frame, reference="aligned")
    J = (generalized_jacobian(robot, q, frame, held, reference="aligned") * driven)[chosen]
    gram, rho = clearance(J, singular)
    rates = J.T @ damped(gram, rho, singular, wanted[chosen])
    return passive_rates(robot, q, rates, held, momentum)
