"""Operational space: a frame moves, or presses, as if it were a mass of its own (Khatib 1987;
[SOA] 5.2, 6)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from phipsi.algorithms import (
    bias_force,
    frame_acceleration,
    frame_pose,
    jacobian,
    mass_matrix_product,
    mass_matrix_solve,
    operational_inertia_inverse,
)
from phipsi.control.gains import NONNEGATIVE, Gain, controller
from phipsi.control.tasks import (
    TRACKING,
    FrameControl,
    Rows,
    arrays,
    clearance,
    known_forces,
    report,
    rows_of,
    task,
    turning,
)
from phipsi.model import Robot
from phipsi.spatial import Pivot
from phipsi.typing import (
    Array,
    ArrayLike,
    ConfigurationLike,
    JointVector,
    JointVectorLike,
    PoseLike,
    ScalarLike,
    SpatialVectorLike,
)

POSTURE = {"posture_stiffness": NONNEGATIVE, "null_damping": NONNEGATIVE}
PRESSING = {
    **TRACKING,
    "null_damping": NONNEGATIVE,
    "force_damping": Gain(zero=True),
    "force_gain": Gain(zero=True),
}


class TaskFrame:
    """A frame as a mass of its own: Λ = (J𝓜⁻¹J*)⁻¹ of chosen rows, damped near singularities."""

    def __init__(
        self,
        robot: Robot,
        q: ConfigurationLike,
        v: JointVectorLike,
        frame: str,
        rows: slice,
        singular: ScalarLike,
    ) -> None:
        self.robot, self.q = robot, q
        turn = turning(frame_pose(robot, q, frame)[:3, :3])
        self.J = jacobian(robot, q, frame, reference="aligned")[rows]
        Upsilon = (turn @ operational_inertia_inverse(robot, q, frame) @ turn.T)[rows, rows]
        _, self.clearance = clearance(self.J, singular)
        short = np.maximum(0.0, 1.0 - (self.clearance / singular) ** 2)
        size = short * short * np.trace(Upsilon) / len(Upsilon)
        self._inverse = Pivot(Upsilon + size * np.eye(len(Upsilon)))
        still = np.zeros(robot.nv)
        self.drift = frame_acceleration(
            robot, q, v, still, frame, reference="aligned", classical=True
        )[rows]

    def force(self, acceleration: Array) -> Array:
        """Λ a: the force that gives the rows an acceleration."""
        return self._inverse.solve(acceleration)

    def null_space(self, tau: JointVector) -> JointVector:
        """N*T = T − J*ΛJ𝓜⁻¹T: the part of joint forces that does not move the frame."""
        moved = self.J @ mass_matrix_solve(self.robot, self.q, tau)
        return tau - self.J.T @ self.force(moved)


def _posture(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    posture: ConfigurationLike | None,
    stiffness: ArrayLike,
    damping: ArrayLike,
) -> JointVector:
    """𝓜(K(q_0 − q) − Bβ): joint forces towards a posture q_0; without one K is taken as zero."""
    v, stiffness, damping = arrays(v, stiffness, damping)
    pull = -damping * v
    if posture is not None:
        pull = pull + stiffness * robot.difference(q, posture)
    return mass_matrix_product(robot, q, pull)


@controller(gains={**TRACKING, **POSTURE})
def operational_space(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    pose: PoseLike,
    velocity: SpatialVectorLike | None = None,
    acceleration: SpatialVectorLike | None = None,
    *,
    posture: ConfigurationLike | None = None,
    frame: str = "tool",
    rows: Rows = "pose",
    stiffness: ArrayLike = 100.0,
    damping: ArrayLike = 20.0,
    posture_stiffness: ArrayLike = 10.0,
    null_damping: ArrayLike = 5.0,
    singular: ScalarLike = 0.05,
    passive: bool = True,
) -> FrameControl:
    """Operational-space control: T = J*Λ(a_d + K_d(V_d − V) + K_p e − J̇β) + C + N*T₀.

    N* = I − J*ΛJ𝓜⁻¹ (Khatib 1987). The frame's error decays as a damped spring; T₀ draws the joints
    to a posture as far as that does not accelerate the frame. Every freedom is driven. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities β [rad/s or m/s].
    pose : (…, 4, 4)
        Desired pose of the frame in the world.
    velocity : (…, 6), optional
        Desired velocity V_d [angular; linear], world axes [rad/s, m/s]; zero by default.
    acceleration : (…, 6), optional
        Desired classical acceleration a_d, world axes [rad/s², m/s²]; zero by default.
    posture : (…, nq), optional
        Configuration to which T₀ draws the joints; by default T₀ only damps.
    frame
        Name of the frame.
    rows : {"pose", "angular", "linear", "position", "all"}
        Rows of the frame's motion that are controlled; "position" is "linear", "all" is "pose".
    stiffness : number or (6,)
        K_p, positive [1/s²], one number or one per row [angular; linear].
    damping : number or (6,)
        K_d, positive [1/s].
    posture_stiffness : number or (nv,)
        Stiffness ≥ 0 of T₀ [1/s²].
    null_damping : number or (nv,)
        Damping ≥ 0 of T₀ [1/s].
    singular : ()
        Clearance of J below which Λ is damped, positive; above it the tracking is exact.
    passive
        Whether springs, dampers and friction of the robot are cancelled.

    Returns
    -------
    FrameControl
        Dictionary of `tau` (…, nv) [N·m or N], `attitude_error` [rad], `position_error` [m], and
        `clearance`, between σ_min/√m and σ_min of the m rows of J, (…) each.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.control import operational_space
    >>> robot = pp.robots.double_pendulum()
    >>> q, v = [0.3, -0.5], [0.0, 0.0]
    >>> out = operational_space(robot, q, v, pp.frame_pose(robot, q, "tool"), rows="linear")
    >>> np.allclose(out["tau"], pp.gravity_force(robot, q))  # at the target it stands still
    True
    """
    chosen = rows_of("operational_space", rows)
    now = task(robot, q, v, frame, chosen, pose, velocity, acceleration, stiffness, damping)
    tip = TaskFrame(robot, q, v, frame, chosen, singular)
    tau = tip.J.T @ tip.force(now.acceleration[chosen] - tip.drift)
    rest = _posture(robot, q, v, posture, posture_stiffness, null_damping)
    tau = tau + bias_force(robot, q, v) + tip.null_space(rest)
    tau = tau - known_forces(robot, q, v, None, passive)
    return report(tau, now.error, tip.clearance)


@controller(gains=PRESSING)
def hybrid_force_position(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    pose: PoseLike,
    force: SpatialVectorLike,
    axes: SpatialVectorLike,
    velocity: SpatialVectorLike | None = None,
    acceleration: SpatialVectorLike | None = None,
    *,
    task_axes: Annotated[ArrayLike, "3 3"] | None = None,
    measured: SpatialVectorLike | None = None,
    frame: str = "tool",
    stiffness: ArrayLike = 100.0,
    damping: ArrayLike = 20.0,
    force_damping: ScalarLike = 20.0,
    force_gain: ScalarLike = 0.0,
    null_damping: ArrayLike = 5.0,
    singular: ScalarLike = 0.05,
    passive: bool = True,
) -> FrameControl:
    """Force along chosen axes, motion along the others: T = J*(Λ(S̄α_d − SB V − J̇β) + f) + C + N*T₀.

    Raibert & Craig 1981, Khatib 1987. S projects on the chosen axes and S̄ on the others. Against a
    rigid surface the force is exact. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities β [rad/s or m/s].
    pose : (…, 4, 4)
        Desired pose of the frame in the world.
    force : (…, 6)
        Force [moment; force] to be exerted on the surroundings [N·m, N], in the task axes.
    axes : (…, 6)
        Truth values of [moment; force] in the task axes: true where `force` is exerted, false where
        the frame follows its target.
    velocity : (…, 6), optional
        Desired velocity [angular; linear], world axes [rad/s, m/s]; zero by default.
    acceleration : (…, 6), optional
        Desired classical acceleration, world axes [rad/s², m/s²]; zero by default.
    task_axes : (…, 3, 3), optional
        Rotation whose columns are the task axes in the world; by default the world's axes.
    measured : (…, 6), optional
        Measured force, in the task axes [N·m, N]; by default there is no feedback of forces.
    frame
        Name of the frame.
    stiffness : number or (6,)
        K_p of the motion, positive [1/s²], one number or one per row [angular; linear].
    damping : number or (6,)
        K_d of the motion, positive [1/s].
    force_damping : ()
        Rate B ≥ 0 at which motion along the axes of forces is slowed [1/s].
    force_gain : ()
        Gain ≥ 0 of the error `force` − `measured`.
    null_damping : number or (nv,)
        Damping ≥ 0 of motion that does not accelerate the frame [1/s].
    singular : ()
        Clearance of J below which Λ is damped, positive.
    passive
        Whether springs, dampers and friction of the robot are cancelled.

    Returns
    -------
    FrameControl
        Dictionary of `tau` (…, nv) [N·m or N], `attitude_error` [rad] and `position_error` [m] of
        the axes that follow the target, and `clearance` as of `operational_space`, (…) each.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.control import hybrid_force_position
    >>> robot = pp.robots.double_pendulum()
    >>> q, v = [0.3, -0.5], [0.0, 0.0]
    >>> goal, axes = pp.frame_pose(robot, q, "tool"), [False, False, False, False, False, True]
    >>> f = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -2.0])
    >>> tau = hybrid_force_position(robot, q, v, goal, f, axes)["tau"]
    >>> tau_0 = hybrid_force_position(robot, q, v, goal, np.zeros(6), axes)["tau"]
    >>> np.allclose(tau - tau_0, pp.jacobian(robot, q, "tool", reference="aligned").T @ f)
    True
    """
    force, axes, task_rotation = arrays(force, axes, np.eye(3) if task_axes is None else task_axes)
    turn = turning(task_rotation)
    S = turn @ np.diag(np.where(axes, 1.0, 0.0)) @ turn.T
    whole = rows_of("hybrid_force_position", "pose")
    now = task(robot, q, v, frame, whole, pose, velocity, acceleration, stiffness, damping)
    tip = TaskFrame(robot, q, v, frame, whole, singular)
    V = tip.J @ v
    wanted = now.acceleration - S @ now.acceleration - force_damping * (S @ V)
    push = force if measured is None else force + np.asanyarray(force_gain) * (force - measured)
    exerted = tip.force(wanted - tip.drift) + S @ (turn @ push)
    rest = _posture(robot, q, v, None, 0.0, null_damping)
    tau = tip.J.T @ exerted + bias_force(robot, q, v) + tip.null_space(rest)
    tau = tau - known_forces(robot, q, v, None, passive)
    return report(tau, now.error - S @ now.error, tip.clearance)
