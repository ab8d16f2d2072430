"""Shared by controllers of frames: errors, desired accelerations, and joint forces for these.

Errors, velocities and accelerations of frames are [angular; linear] in world axes at the frame's
origin (reference "aligned"), accelerations classical.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypedDict

import numpy as np

from phipsi.algorithms import (
    drift_accelerations,
    frame_pose,
    frame_velocity,
    generalized_jacobian,
    hybrid_dynamics,
    passive_forces,
)
from phipsi.algorithms.under_actuated import as_mask
from phipsi.compile import as_operand, where
from phipsi.control.gains import Gain
from phipsi.model import Robot
from phipsi.spatial import Pivot
from phipsi.spatial import rotation as rot
from phipsi.typing import (
    Array,
    ArrayLike,
    ConfigurationLike,
    JointVector,
    JointVectorLike,
    MaskLike,
    PoseLike,
    Scalar,
    ScalarLike,
    SpatialMatrix,
    SpatialVector,
    SpatialVectorLike,
)

Rows = Literal["pose", "angular", "linear", "position", "all"]
"""Names of rows of [angular; linear]."""
ROWS: dict[Rows, slice] = {
    "pose": slice(0, 6),
    "angular": slice(0, 3),
    "linear": slice(3, 6),
    "position": slice(3, 6),
    "all": slice(0, 6),
}
TRACKING = {
    "stiffness": Gain(6),
    "damping": Gain(6),
    "null_damping": Gain(zero=True),
    "singular": Gain(),
}
"""The gains of controllers that choose the acceleration of a frame."""


def arrays(*values: ArrayLike) -> tuple[Array, ...]:
    """The values as arrays; traced arrays stay as they are."""
    return tuple(np.asanyarray(as_operand("a controller: an argument", x)) for x in values)


def rows_of(what: str, rows: Rows) -> slice:
    """The rows of a name; `what` is the controller in the error."""
    if rows not in ROWS:
        raise ValueError(f"{what}: rows {rows!r} is not one of {', '.join(ROWS)}")
    return ROWS[rows]


def pose_error(pose: PoseLike, goal: PoseLike) -> SpatialVector:
    """The displacement from a pose to its goal, e = [log(R_d R*); p_d − p].

    Parameters
    ----------
    pose : (4, 4)
        Pose of the frame, homogeneous, in the world.
    goal : (4, 4)
        Its desired pose.

    Returns
    -------
    (6,)
        Rotation vector [rad] and displacement of the origin [m], both in world axes.

    Examples
    --------
    >>> import numpy as np
    >>> from phipsi.control import pose_error
    >>> goal = np.eye(4)
    >>> goal[:3, 3] = (0.1, 0.2, 0.3)
    >>> pose_error(np.eye(4), goal).astype(float) + 0.0
    array([0. , 0. , 0. , 0.1, 0.2, 0.3])
    """
    pose, goal = (_pose(name, x) for name, x in (("pose", pose), ("goal", goal)))
    turn = rot.log(rot.quaternion_of(goal[:3, :3] @ pose[:3, :3].T))
    return np.concatenate([turn, goal[:3, 3] - pose[:3, 3]])


def _pose(name: str, x: PoseLike) -> Array:
    """A homogeneous transform as an array."""
    pose = np.asanyarray(as_operand(f"pose_error: {name}", x))
    if pose.shape != (4, 4):
        raise ValueError(f"pose_error: {name} has shape {pose.shape}, needs (4, 4)")
    return pose


def turning(R: Array) -> SpatialMatrix:
    """diag(R, R), which rotates [angular; linear]."""
    out = rot.scalars(np.zeros((6, 6)))
    out[:3, :3] = out[3:, 3:] = R
    return out


class Task(NamedTuple):
    """The desired acceleration of a frame, and the error that it corrects."""

    frame: str
    rows: slice
    """The rows of [angular; linear] that are controlled."""
    error: SpatialVector
    """(6,) [rad, m]."""
    acceleration: SpatialVector
    """(6,), classical [rad/s², m/s²]."""
    weight: ScalarLike = 1.0
    """Weight of its rows in the least squares where the rows of all tasks cannot be had."""


def task(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    frame: str,
    rows: slice,
    pose: PoseLike,
    velocity: SpatialVectorLike | None,
    acceleration: SpatialVectorLike | None,
    stiffness: ArrayLike,
    damping: ArrayLike,
) -> Task:
    """The task whose acceleration is a_d + K_d(V_d − V) + K_p e: the error decays as a spring."""
    error = pose_error(frame_pose(robot, q, frame), pose)
    V = frame_velocity(robot, q, v, frame, reference="aligned")
    wanted = stiffness * error - damping * (V if velocity is None else V - velocity)
    return Task(frame, rows, error, wanted if acceleration is None else wanted + acceleration)


class Split(NamedTuple):
    """Which freedoms are driven and which are held, as numbers 1 or 0."""

    driven: JointVector
    """1 where a motor moves the freedom."""
    held: JointVector
    """1 where the acceleration is prescribed: driven, or locked (at zero)."""


def split(robot: Robot, active: MaskLike, locked: MaskLike | None) -> Split:
    """The freedoms sorted: a locked one is held but not driven, whatever `active` says."""
    driven = where(as_mask(robot, active), 1.0, 0.0)
    if locked is None:
        return Split(driven, driven)
    free = where(as_mask(robot, locked), 0.0, 1.0)
    return Split(driven * free, 1.0 - (1.0 - driven) * free)


def known_forces(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    tau: JointVectorLike | None,
    passive: bool,
) -> JointVector:
    """Given joint forces, and if `passive` those of the robot's springs, dampers and friction."""
    given = np.zeros(robot.nv) if tau is None else np.asanyarray(tau)
    return given + passive_forces(robot, q, v) if passive else given


class Clearance(NamedTuple):
    """The Gram matrix of a Jacobian, and how far the Jacobian is from losing rank."""

    gram: Array
    """JJ* (m, m)."""
    rho: Scalar
    """ρ = (tr (JJ*)⁻¹)^−½, between σ_min/√m and σ_min of the m rows."""


def clearance(J: Array, singular: ScalarLike) -> Clearance:
    """JJ* and ρ of a Jacobian; ρ has a small positive floor where J has lost rank."""
    gram = J @ J.T
    floor = (1e-3 * np.asanyarray(singular)) ** 2 * np.eye(len(J))
    inverse = Pivot(gram + floor).congruence(np.eye(len(J)).astype(object))
    return Clearance(gram, 1.0 / np.sqrt(np.trace(inverse)))


def damped(gram: Array, rho: Scalar, singular: ScalarLike, x: Array) -> Array:
    """(JJ* + μ²)⁻¹x, where μ is zero for ρ > `singular` and grows to `singular` as ρ falls to zero
    (Nakamura & Hanafusa 1986)."""
    short = np.maximum(0.0, 1.0 - (rho / singular) ** 2)
    return Pivot(gram + (singular * short) ** 2 * np.eye(len(gram))).solve(x)


class Resolved(NamedTuple):
    """Joint forces that give tasks their accelerations, and how well that can be done."""

    tau: JointVector
    qdd: JointVector
    clearance: Scalar


def resolve(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    freedoms: Split,
    tau: JointVectorLike | None,
    tasks: list[Task],
    null_damping: ScalarLike,
    singular: ScalarLike,
    passive: bool,
) -> Resolved:
    """β̇_a = y + J_G*(J_GJ_G* + μ²)⁻¹(α − drift − J_G y), T_a by hybrid dynamics ([UA] 6.2).

    y = −kβ_a slows the motion that the tasks leave free.
    """
    driven, held = freedoms
    known = known_forces(robot, q, v, tau, passive)
    jacobians: list[Array] = []
    accelerations: list[Array] = []
    for frame, rows, _, wanted, weight in tasks:
        J_G = generalized_jacobian(robot, q, frame, held, reference="aligned") * driven
        drift = drift_accelerations(
            robot, q, v, known, frame, held, reference="aligned", classical=True
        )
        jacobians.append(weight * J_G[rows])
        accelerations.append(weight * (wanted - drift.frame)[rows])
    J, x = np.concatenate(jacobians), np.concatenate(accelerations)
    y = -np.asanyarray(null_damping) * driven * v
    gram, rho = clearance(J, singular)
    qdd = y + J.T @ damped(gram, rho, singular, x - J @ y)
    all_tau = hybrid_dynamics(robot, q, v, known, qdd, held).tau
    return Resolved(driven * (all_tau - known), qdd, rho)


class FrameControl(TypedDict):
    """Joint forces that move a frame, and signals of how well it follows."""

    tau: JointVector
    """(…, nv) [N·m or N]."""
    attitude_error: Scalar
    """Length of the rotation vector of the error [rad]."""
    position_error: Scalar
    """[m]."""
    clearance: Scalar
    """Distance of the Jacobian from losing rank."""


def report(tau: JointVector, error: SpatialVector, clearance: Scalar) -> FrameControl:
    """Joint forces with the signals that a simulation records."""
    return {
        "tau": tau,
        "attitude_error": length(error[:3]),
        "position_error": length(error[3:]),
        "clearance": clearance,
    }


def length(x: Array) -> Scalar:
    """The Euclidean length of a vector."""
    return np.linalg.norm(x, axis=-1)
