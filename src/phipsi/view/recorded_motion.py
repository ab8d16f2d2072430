"""Motions thinned out for drawing: a limited number of poses, packed into few bytes."""

from __future__ import annotations

import base64
from typing import NamedTuple, Protocol

import numpy as np

from phipsi.algorithms import poses
from phipsi.model import Robot
from phipsi.typing import Array
from phipsi.view.geometry import quaternions

FRAMES_PER_SECOND = 50
MAX_FRAMES = 3000
MAX_NUMBERS = 3_000_000
"""Limits of the poses and of the numbers kept of one motion: 16 MB at most in a file."""


class RecordedMotion(Protocol):
    """The part of a `phipsi.Trajectory` that is drawn: t (N,) [s], q (N, nq), and poses of frames,
    (N, 4, 4)."""

    @property
    def robot(self) -> Robot:
        """The robot that moves."""
        ...

    @property
    def t(self) -> Array:
        """Times [s], (N,)."""
        ...

    @property
    def q(self) -> Array:
        """Configurations, (N, nq)."""
        ...

    def frame(self, name: str) -> Array:
        """The pose of a frame at each time.

        Parameters
        ----------
        name
            Name of a frame or body.

        Returns
        -------
        (N, 4, 4)
            Poses in the world [m].
        """
        ...


class Sampled(NamedTuple):
    """Some instants of a motion."""

    kept: Array
    """(n,) indices of the instants."""
    t: Array
    """(n,) times since the first [s]."""
    poses: Array
    """(n, nb, 7) [position; quaternion] of each body."""
    broken: float | None
    """The time when the motion stops being finite [s], up to which it is drawn; else None."""


class States(NamedTuple):
    """Times (N,) [s] and configurations (N, nq) of a motion."""

    t: Array
    q: Array


def sampled(motion: RecordedMotion, label: str) -> Sampled:
    """The motion at no more than 50 instants per second, the first and the last among them."""
    t, q = checked(motion, label)
    broken = None
    bad = ~(np.isfinite(t) & np.isfinite(q).all(-1))
    if bad.any():
        end = int(np.argmax(bad))
        if end == 0:
            raise ValueError(f"motion {label!r} begins with a number that is not finite")
        broken = float(t[end]) if np.isfinite(t[end]) else float(t[end - 1])
        t, q = t[:end], q[:end]
    index = thinned(t, min(MAX_FRAMES, max(2, MAX_NUMBERS // (7 * max(1, motion.robot.nb)))))
    X = np.asarray(poses(motion.robot, q[index]))
    both = np.concatenate((X[..., :3, 3], quaternions(X[..., :3, :3])), -1)
    return Sampled(index, t[index] - t[0], both, broken)


def checked(motion: RecordedMotion, label: str) -> States:
    """t and q of one motion, as arrays of the right shapes; `label` is its name in errors."""
    t, q = np.asarray(motion.t, float), np.asarray(motion.q, float)
    if q.ndim != 2:
        raise ValueError(
            f"motion {label!r} has q of shape {q.shape}; choose one row of the batch, .row(0)"
        )
    if t.shape != q.shape[:1] or not len(t):
        raise ValueError(
            f"motion {label!r} has t of shape {t.shape} and q of shape {q.shape}; it needs a time "
            "for each configuration, and one at least"
        )
    if np.any(np.diff(t) < 0):
        raise ValueError(f"motion {label!r} has times that go back; they must not decrease")
    return States(t, q)


def thinned(t: Array, limit: int) -> Array:
    """The indices of instants spread over the time, first and last among them."""
    span = float(t[-1] - t[0])
    count = min(limit, len(t), int(np.ceil(span * FRAMES_PER_SECOND)) + 1)
    if count >= len(t):
        return np.arange(len(t))
    grid = np.linspace(float(t[0]), float(t[-1]), max(count, 2))
    return np.unique([*np.searchsorted(t, grid[:-1]).tolist(), len(t) - 1])


def packed(numbers: Array) -> str:
    """Numbers as base64 of little-endian float32, clipped to ±1e30."""
    small = np.clip(numbers, -1e30, 1e30)
    return base64.b64encode(np.ascontiguousarray(small, "<f4").tobytes()).decode("ascii")
