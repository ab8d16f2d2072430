"""Paths from rest to rest, held before they begin and after they end.

Plain functions of numbers, of batches of times, and of traced scalars inside programs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from phipsi.compile import Traced, is_traced
from phipsi.model import Robot
from phipsi.spatial import rotation as rot


class PathPoint(NamedTuple):
    """A point of a path: positions or configuration, velocities, accelerations."""

    q: Any
    v: Any
    a: Any


class PosePathPoint(NamedTuple):
    """A point of the path of a frame: pose, velocity and acceleration, in world axes."""

    pose: Any
    """(…, 4, 4) homogeneous [m]."""
    velocity: Any
    """(…, 6) [ω; v of the frame's origin] [rad/s, m/s]."""
    acceleration: Any
    """(…, 6) [ω̇; v̇ of the frame's origin], classical [rad/s², m/s²]."""


def profile(t: Any, duration: Any) -> PathPoint:
    """s = u³(10 − 15u + 6u²), u = t/T within [0, 1]: from 0 to 1 in `duration` T with velocity and
    acceleration zero at both ends; s, ṡ [1/s] and s̈ [1/s²]."""
    if not is_traced(duration) and not np.all(np.asarray(duration) > 0.0):
        raise ValueError(f"path: duration is {duration}, needs a positive number [s]")
    u = np.minimum(np.maximum(t / duration, 0.0), 1.0)
    w = u * (1.0 - u)
    return PathPoint(
        u * u * u * (10.0 - u * (15.0 - 6.0 * u)),
        30.0 * w * w / duration,
        60.0 * w * (1.0 - 2.0 * u) / (duration * duration),
    )


def quintic(t: Any, duration: Any, start: Any, goal: Any) -> PathPoint:
    """start + s(t)(goal − start): the polynomial of fifth degree from rest to rest.

    `start` and `goal` are numbers or (n,); t one time or many. Returns position, velocity and
    acceleration, each (…, n).

    >>> q, v, a = quintic(1.0, 2.0, 0.0, 4.0)
    >>> float(q), float(v), float(a)
    (2.0, 3.75, 0.0)
    """
    s, start = profile(t, duration), _array(start)
    way = _array(goal) - start
    return PathPoint(start + _times(s[0], way), _times(s[1], way), _times(s[2], way))


def joint_path(robot: Robot, t: Any, duration: Any, start: Any, goal: Any) -> PathPoint:
    """From configuration to configuration, hinge by hinge along the hinge's own group, so that
    quaternions turn the shortest way and a free body follows a screw.

    `start` and `goal` are (nq,); t one time or many. Returns q (…, nq), v and a (…, nv).
    """
    s, way = profile(t, duration), robot.difference(start, goal)
    q = robot.integrate(start, _times(s[0], way))
    return PathPoint(q, _times(s[1], way), _times(s[2], way))


def pose_path(t: Any, duration: Any, start: Any, goal: Any) -> PosePathPoint:
    """From pose to pose: the origin on a straight line, the attitude about one fixed axis,
    R = exp(sθ)R₀ with θ = log(R₁R₀*).

    `start` and `goal` are (4, 4) homogeneous; t one time or many. Returns pose (…, 4, 4), velocity
    and acceleration (…, 6).
    """
    start, goal = _pose("start", start), _pose("goal", goal)
    s = profile(t, duration)
    R, way = start[:3, :3], goal[:3, 3] - start[:3, 3]
    turn = rot.log(rot.quaternion_of(goal[:3, :3] @ R.T))
    now = rot.from_quaternion(rot.exp(rot.scaled(s[0], turn))) @ R
    pose = rot.scalars(np.eye(4))
    pose[:3, :3], pose[:3, 3] = now, start[:3, 3] + rot.scaled(s[0], way)
    moved = [np.concatenate([rot.scaled(x, turn), rot.scaled(x, way)]) for x in s[1:]]
    return PosePathPoint(_joined(pose), *map(_joined, moved))


def _pose(name: str, x: Any) -> Any:
    if np.shape(x) != (4, 4):
        raise ValueError(f"pose_path: {name} has shape {np.shape(x)}, needs (4, 4)")
    return rot.scalars(x).view(np.ndarray)


def _array(x: Any) -> Any:
    return x if is_traced(x) else np.asarray(x, float)


def _times(s: Any, x: Any) -> Any:
    """s x of every time s and every element of x."""
    return s[..., None] * x if np.ndim(s) and np.ndim(x) else s * x


def _joined(x: Any) -> Any:
    """An object array of scalars, each traced, a number or a batch, as one array."""
    if is_traced(x):
        return x.view(Traced)
    shape = np.broadcast_shapes(*(np.shape(e) for e in x.flat))
    rows = [np.broadcast_to(np.asarray(e, float), shape) for e in x.flat]
    return np.stack(rows, axis=-1).reshape(*shape, *x.shape)
