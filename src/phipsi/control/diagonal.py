"""Decoupled control in diagonal coordinates ([DL] 8), each controller with its Lyapunov function.

ν = m*β and ε = ℓT (`total_rates`, `applied_moments`): kinetic energy ½ν*ν, power ν*ε. Gravity is
compensated first, so that it does no work.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple, get_args

import numpy as np

from phipsi.algorithms import (
    applied_moments,
    frame_pose,
    gravity_force,
    jacobian,
    kinetic_energy,
    total_rates,
)
from phipsi.control.gains import POSITIVE, Definite, Gain, controller
from phipsi.control.tasks import arrays, known_forces, pose_error
from phipsi.model import Robot
from phipsi.programs import program
from phipsi.typing import (
    ArrayLike,
    ConfigurationLike,
    JointVector,
    JointVectorLike,
    PoseLike,
    Scalar,
    SpatialVector,
)

Attitude = Literal["axes", "geodesic"]
"""How `pose_feedback` measures the error of an attitude."""
ATTITUDES = get_args(Attitude)

FALL = {"damping": POSITIVE, "damping_matrix": Definite("nv")}
REACH = {**FALL, "position_gain": Gain(3), "attitude_gain": Gain(3), "weight": Definite(12)}


def _slowed(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    damping: ArrayLike,
    matrix: ArrayLike | None,
) -> JointVector:
    """T = −m c m*β, where c is the matrix if there is one, else diag(`damping`)."""
    nu = total_rates(robot, q, v)
    return -applied_moments(robot, q, damping * nu if matrix is None else matrix @ nu)


@controller(gains=FALL)
def rate_feedback(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    *,
    damping: ArrayLike = 1.0,
    damping_matrix: Annotated[ArrayLike, "nv nv"] | None = None,
    passive: bool = True,
) -> JointVector:
    """Damping of every total rate by itself, ε = −cν, so that dE/dt = −ν*cν ([DL] Control 8.1).

    For one number c the kinetic energy is exactly E₀ exp(−2ct). The Lyapunov function is
    `kinetic_energy`. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities β [rad/s or m/s].
    damping : number or (nv,)
        c, positive [1/s].
    damping_matrix : (…, nv, nv), optional
        c as a symmetric positive definite matrix [1/s], in place of `damping`.
    passive
        Whether springs, dampers and friction of the robot are cancelled.

    Returns
    -------
    (…, nv)
        Joint forces [N·m or N].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.control import rate_feedback
    >>> robot = pp.robots.double_pendulum()
    >>> q, v = np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> tau = rate_feedback(robot, q, v, damping=3.0) - pp.gravity_force(robot, q)
    >>> np.allclose(v @ tau, -2 * 3.0 * pp.kinetic_energy(robot, q, v))
    True
    """
    slow = _slowed(robot, q, v, damping, damping_matrix)
    return slow + gravity_force(robot, q) - known_forces(robot, q, v, None, passive)


@controller(gains=REACH)
def pose_feedback(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    pose: PoseLike,
    *,
    frame: str = "tool",
    damping: ArrayLike = 3.0,
    position_gain: ArrayLike = 60.0,
    attitude_gain: ArrayLike = 60.0,
    attitude: Attitude = "axes",
    damping_matrix: Annotated[ArrayLike, "nv nv"] | None = None,
    weight: Annotated[ArrayLike, "12 12"] | None = None,
    passive: bool = True,
) -> JointVector:
    """A potential that draws a frame to a fixed pose, with damped total rates: ε = −cν + ℓJ*Lt*We.

    That is T = −mcm*β + J*f ([DL] Control 8.2, (8.6) corrected). `pose_lyapunov` never grows,
    dU/dt = −ν*cν. The motion ends at the target, at a singularity or (attitude="axes") half a turn
    away; it is slow near singularities. Cost O(N).

    attitude="axes" is the paper's error: e = Ŷ − Y of the origin and of the three axes of the
    frame, f = [Σ y_i × (We)_i; (We)_0]. Half a turn away from the target this moment is zero. With
    attitude="geodesic" the error is the rotation vector θ = log(R_dR*) and the moment is
    `attitude_gain` θ, which is not zero there.

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
    frame
        Name of the frame.
    damping : number or (nv,)
        c, positive [1/s].
    position_gain : number or (3,)
        Weights in W of the origin, positive [N/m], one number or one per world axis.
    attitude_gain : number or (3,)
        Weights in W of the axes, positive [N·m], one number or one per axis of the frame;
        "geodesic": one number.
    attitude : {"axes", "geodesic"}
        How the error of the attitude is measured.
    damping_matrix : (…, nv, nv), optional
        c as a symmetric positive definite matrix [1/s], in place of `damping`.
    weight : (…, 12, 12), optional
        W as a symmetric positive definite matrix, in place of both gains; attitude="axes" only.
    passive
        Whether springs, dampers and friction of the robot are cancelled.

    Returns
    -------
    (…, nv)
        Joint forces [N·m or N].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.control import pose_feedback
    >>> robot = pp.robots.double_pendulum()
    >>> q = [0.3, -0.5]
    >>> tau = pose_feedback(robot, q, [0.0, 0.0], pp.frame_pose(robot, q, "tool"))
    >>> np.allclose(tau, pp.gravity_force(robot, q))  # at the target nothing pulls
    True
    """
    force, _ = _drawn(robot, q, pose, frame, position_gain, attitude_gain, attitude, weight)
    slow = _slowed(robot, q, v, damping, damping_matrix)
    tau = slow + jacobian(robot, q, frame, reference="aligned").T @ force
    return tau + gravity_force(robot, q) - known_forces(robot, q, v, None, passive)


@program
def pose_lyapunov(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    pose: PoseLike,
    *,
    frame: str = "tool",
    position_gain: ArrayLike = 60.0,
    attitude_gain: ArrayLike = 60.0,
    attitude: Attitude = "axes",
    weight: Annotated[ArrayLike, "12 12"] | None = None,
) -> Scalar:
    """The Lyapunov function of `pose_feedback`: U = ½ν*ν + ½e*We ([DL] Control 8.2).

    With attitude="geodesic" it is ½ν*ν + ½k_p|p_d − p|² + ½k_a|θ|². Cost O(N).

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
    frame
        Name of the frame.
    position_gain : number or (3,)
        Weights of the origin [N/m], as in `pose_feedback`.
    attitude_gain : number or (3,)
        Weights of the axes [N·m], as in `pose_feedback`.
    attitude : {"axes", "geodesic"}
        How the error of the attitude is measured.
    weight : (…, 12, 12), optional
        W as a matrix, as in `pose_feedback`.

    Returns
    -------
    (…)
        Energy U [J].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.control import pose_lyapunov
    >>> robot = pp.robots.double_pendulum()
    >>> q, v = [0.3, -0.5], [1.0, 2.0]
    >>> U = pose_lyapunov(robot, q, v, pp.frame_pose(robot, q, "tool"))  # no potential left
    >>> np.allclose(U, pp.kinetic_energy(robot, q, v))
    True
    """
    _, potential = _drawn(robot, q, pose, frame, position_gain, attitude_gain, attitude, weight)
    return kinetic_energy(robot, q, v) + potential


class Pull(NamedTuple):
    """The force of a potential on a frame, and the potential."""

    force: SpatialVector
    """(6,) [moment; force] in world axes at the frame's origin."""
    potential: Scalar
    """[J]."""


def _drawn(
    robot: Robot,
    q: ConfigurationLike,
    pose: PoseLike,
    frame: str,
    position: ArrayLike,
    turn: ArrayLike,
    kind: Attitude,
    weight: ArrayLike | None,
) -> Pull:
    """What draws the frame to the pose, with the gains of its `position` and of its `turn`."""
    pose, position, turn = arrays(pose, position, turn)
    now = frame_pose(robot, q, frame)
    if kind == "geodesic":
        if weight is not None or np.ndim(turn):
            raise ValueError(
                'pose_feedback: attitude="geodesic" takes one number attitude_gain and no weight'
            )
        e = pose_error(now, pose)
        f = np.concatenate([turn * e[:3], position * e[3:]])
        return Pull(f, 0.5 * (e @ f))
    if kind != "axes":
        raise ValueError(f"pose_feedback: attitude {kind!r} is not one of {', '.join(ATTITUDES)}")
    e = np.concatenate([pose[:3, i] - now[:3, i] for i in (3, 0, 1, 2)])
    if weight is None:
        spread = np.concatenate([position * np.ones(3), np.repeat(turn * np.ones(3), 3)])
        pull = spread * e
    else:
        pull = weight @ e
    moments = (np.cross(now[:3, i], pull[3 * i + 3 : 3 * i + 6]) for i in range(3))
    return Pull(np.concatenate([sum(moments), pull[:3]]), 0.5 * (e @ pull))
