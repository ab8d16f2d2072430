"""Paths that start and end at rest; before the start and after the end the target stands still.

Plain functions: of numbers, of arrays of times, and of traced scalars inside programs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from phipsi.compile import Traced, as_operand, is_traced, on_device
from phipsi.model import Robot
from phipsi.model.robot import needs_robot
from phipsi.spatial import rotation as rot
from phipsi.typing import (
    Array,
    ArrayLike,
    ConfigurationLike,
    Pose,
    PoseLike,
    Scalar,
    ScalarLike,
    SpatialVector,
)


class PathPoint(NamedTuple):
    """A point of a path: positions or configuration, velocities, accelerations."""

    q: Array
    """(…, n) positions, or (…, nq) configuration."""
    v: Array
    """(…, n) or (…, nv) velocities."""
    a: Array
    """(…, n) or (…, nv) accelerations."""


class PosePathPoint(NamedTuple):
    """A point of the path of a frame: pose, velocity and acceleration, in world axes."""

    pose: Pose
    """(…, 4, 4) homogeneous [m]."""
    velocity: SpatialVector
    """(…, 6) [ω; v of the frame's origin] [rad/s, m/s]."""
    acceleration: SpatialVector
    """(…, 6) [ω̇; v̇ of the frame's origin], classical [rad/s², m/s²]."""


class Progress(NamedTuple):
    """How much of a path has been covered: s between 0 and 1, and its derivatives by time."""

    s: Scalar
    rate: Scalar
    """ṡ [1/s]."""
    acceleration: Scalar
    """s̈ [1/s²]."""


def profile(t: ScalarLike, duration: ScalarLike) -> Progress:
    """s = u³(10 − 15u + 6u²), u = t/T within [0, 1]: from 0 to 1 in `duration` T [s].

    Velocity and acceleration are zero at both ends.
    """
    t, duration = _numbers("t", t), _numbers("duration", duration)
    if not is_traced(duration) and not np.all(duration > 0.0):
        raise ValueError(f"path: duration is {duration}, needs a positive number [s]")
    u = np.minimum(np.maximum(t / duration, 0.0), 1.0)
    w = u * (1.0 - u)
    return Progress(
        u * u * u * (10.0 - u * (15.0 - 6.0 * u)),
        30.0 * w * w / duration,
        60.0 * w * (1.0 - 2.0 * u) / (duration * duration),
    )


def quintic(t: ScalarLike, duration: ScalarLike, start: ArrayLike, goal: ArrayLike) -> PathPoint:
    """The polynomial of fifth degree from rest to rest: start + s(t)(goal − start).

    Parameters
    ----------
    t : (…)
        Time [s], one or many.
    duration : (…)
        Duration T of the path [s], positive.
    start : () or (n,)
        Positions at t ≤ 0.
    goal : () or (n,)
        Positions at t ≥ T.

    Returns
    -------
    PathPoint
        Positions, velocities and accelerations, (…, n) each, or (…) if `start` and `goal` are
        numbers; units of `start`, per s, per s².

    Examples
    --------
    >>> from phipsi.control import quintic
    >>> q, v, a = quintic(1.0, 2.0, 0.0, 4.0)
    >>> float(q), float(v), float(a)
    (2.0, 3.75, 0.0)
    """
    now, start = profile(t, duration), _numbers("start", start)
    way = _numbers("goal", goal) - start
    return PathPoint(
        start + _times(now.s, way), _times(now.rate, way), _times(now.acceleration, way)
    )


def joint_path(
    robot: Robot,
    t: ScalarLike,
    duration: ScalarLike,
    start: ConfigurationLike,
    goal: ConfigurationLike,
) -> PathPoint:
    """A path from configuration to configuration, hinge by hinge along the hinge's own group.

    Quaternions turn the shortest way, and a free body follows a screw.

    Parameters
    ----------
    robot
        The robot.
    t : (…)
        Time [s], one or many.
    duration : (…)
        Duration T of the path [s], positive.
    start : (nq,)
        Configuration at t ≤ 0.
    goal : (nq,)
        Configuration at t ≥ T.

    Returns
    -------
    PathPoint
        Configuration q (…, nq), velocities v (…, nv) [rad/s or m/s] and accelerations a (…, nv)
        [rad/s² or m/s²].

    Examples
    --------
    >>> import phipsi as pp
    >>> from phipsi.control import joint_path
    >>> robot = pp.robots.double_pendulum()
    >>> joint_path(robot, t=[0.0, 1.0, 2.0], duration=2.0, start=[0.0, 0.0], goal=[1.0, -2.0]).q
    array([[ 0. ,  0. ],
           [ 0.5, -1. ],
           [ 1. , -2. ]])
    """
    needs_robot("joint_path", robot)
    now, way = profile(t, duration), robot.difference(start, goal)
    q = robot.integrate(start, _times(now.s, way))
    return PathPoint(q, _times(now.rate, way), _times(now.acceleration, way))


def pose_path(
    t: ScalarLike, duration: ScalarLike, start: PoseLike, goal: PoseLike
) -> PosePathPoint:
    """A path from pose to pose: a straight line of the origin, a turn about one fixed axis.

    The attitude is R = exp(sθ)R₀ with θ = log(R₁R₀*).

    Parameters
    ----------
    t : (…)
        Time [s], one or many.
    duration : (…)
        Duration T of the path [s], positive.
    start : (4, 4)
        Pose at t ≤ 0, homogeneous, in the world.
    goal : (4, 4)
        Pose at t ≥ T.

    Returns
    -------
    PosePathPoint
        Pose (…, 4, 4), velocity (…, 6) [rad/s, m/s] and classical acceleration (…, 6)
        [rad/s², m/s²], [angular; linear] in world axes at the frame's origin.

    Examples
    --------
    >>> import numpy as np
    >>> from phipsi.control import pose_path
    >>> start, goal = np.eye(4), np.eye(4)
    >>> goal[:3, 3] = (4.0, 0.0, 0.0)
    >>> point = pose_path(1.0, 2.0, start, goal)
    >>> point.pose[:3, 3], point.velocity[3:]
    (array([2., 0., 0.]), array([3.75, 0.  , 0.  ]))
    """
    start, goal = _pose("start", start), _pose("goal", goal)
    progress: list[Any] = list(profile(t, duration))  # scalars of `rot` may be batches, too
    s, rates = progress[0], progress[1:]
    R, way = start[:3, :3], goal[:3, 3] - start[:3, 3]
    turn = rot.log(rot.quaternion_of(goal[:3, :3] @ R.T))
    pose = rot.scalars(np.eye(4))
    pose[:3, :3] = rot.from_quaternion(rot.exp(rot.scaled(s, turn))) @ R
    pose[:3, 3] = start[:3, 3] + rot.scaled(s, way)
    velocity, acceleration = (
        np.concatenate([rot.scaled(x, turn), rot.scaled(x, way)]) for x in rates
    )
    return PosePathPoint(_joined(pose), _joined(velocity), _joined(acceleration))


def _pose(name: str, x: PoseLike) -> Pose:
    """A homogeneous transform as an object array of scalars."""
    pose = np.array(as_operand(f"pose_path: {name}", x), dtype=object).view(np.ndarray)
    if pose.shape != (4, 4):
        raise ValueError(f"pose_path: {name} has shape {pose.shape}, needs (4, 4)")
    return pose


def _numbers(name: str, x: ArrayLike) -> Array:
    """x as an array of floats; traced numbers and arrays on a device stay as they are."""
    given = as_operand(f"path: {name}", x)
    return given if is_traced(given) or on_device(given) else given.astype(float)


def _times(s: Scalar, x: Array) -> Array:
    """s x for every time s and every element of x."""
    return s[..., None] * x if np.ndim(s) and np.ndim(x) else s * x


def _joined(x: Array) -> Array:
    """One array, its batch in front, from an object array whose elements are traced scalars,
    numbers, or batches of numbers."""
    if is_traced(x):
        return x.view(Traced)
    shape = np.broadcast_shapes(*(np.shape(e) for e in x.flat))
    rows = [np.broadcast_to(np.asarray(e, float), shape) for e in x.flat]
    return np.stack(rows, axis=-1).reshape(*shape, *x.shape)
