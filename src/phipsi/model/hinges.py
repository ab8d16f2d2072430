"""Hinge kinds as data: one row each.

A row holds how many numbers a hinge has (nq, nv), how many axes describe it, and its functions of
the hinge's own axes, pitch and coordinates, over any scalar: the pose of the child in the hinge
frame, the columns of H*, the term Ḣ* w, and how coordinates move along a velocity and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phipsi.spatial import HingeMap, Motion, MotionBasis, Rotation, Transform
from phipsi.spatial import rotation as rot


@dataclass(frozen=True)
class HingeKind:
    """One row of the table. `q` and `v` are sequences of nq and nv scalars, `h` is anything with
    `.axes` (unit vectors, hinge frame) and `.pitch` [m/rad]."""

    name: str
    nq: int
    nv: int
    axes: int
    pose: Callable[[Any, Any], Transform]
    columns: Callable[[Any, Any], tuple[Motion, ...]]
    neutral: tuple[float, ...]
    advance: Callable[[Any, Any, Any], Sequence[Any]]
    difference: Callable[[Any, Any, Any], Sequence[Any]]
    rate: Callable[[Any, Any, Any, Any], Motion] = lambda h, q, v, w: Motion.zero()
    """Ḣ* w where the hinge moves with v."""
    angles: tuple[bool, ...] = ()
    """For each number of q: is it an angle [rad] (else a length [m]); empty where a quaternion."""
    quaternion: int | None = None
    """Where in q the quaternion begins, if there is one."""

    def map(self, h: Any, q: Any) -> HingeMap:
        """H at q."""
        return HingeMap(MotionBasis(self.columns(h, q)))

    def __repr__(self) -> str:
        return f"<hinge kind {self.name}>"

    def __str__(self) -> str:
        return self.name


def _turn(u: Any, angle: Any) -> Transform:
    return Transform(Rotation.about(u, angle), rot.zero())


def _slide(u: Any, length: Any) -> Transform:
    return Transform(rot.identity(), u * length)


def _angular(u: Any) -> Motion:
    return Motion(u, rot.zero())


def _linear(u: Any) -> Motion:
    return Motion(rot.zero(), u)


_UNIT = tuple(rot.scalars(np.eye(3)))


def _add(h: Any, q: Any, dv: Any) -> Sequence[Any]:
    return [a + b for a, b in zip(q, dv, strict=True)]


def _subtract(h: Any, q0: Any, q1: Any) -> Sequence[Any]:
    return [b - a for a, b in zip(q0, q1, strict=True)]


def _universal_pose(h: Any, q: Any) -> Transform:
    first, second = (Rotation.about(u, angle) for u, angle in zip(h.axes, q, strict=True))
    return Transform(first.followed(second), rot.zero())


def _universal_columns(h: Any, q: Any) -> tuple[Motion, ...]:
    return _angular(Rotation.about(h.axes[1], q[1]).T @ h.axes[0]), _angular(h.axes[1])


def _universal_rate(h: Any, q: Any, v: Any, w: Any) -> Motion:
    first = _universal_columns(h, q)[0].angular
    return _angular(rot.cross(first, h.axes[1]) * (v[1] * w[0]))


def _planar_pose(h: Any, q: Any) -> Transform:
    normal, first, second = h.axes
    return Transform(Rotation.about(normal, q[2]), first * q[0] + second * q[1])


def _planar_advance(h: Any, q: Any, dv: Any) -> Sequence[Any]:
    w, zero = dv[0], 0.0 * dv[0]
    dx, dy, _ = rot.exp_translation(rot.vector(zero, zero, w), rot.vector(dv[1], dv[2], zero))
    s, c = np.sin(q[2]), np.cos(q[2])
    return [q[0] + c * dx - s * dy, q[1] + s * dx + c * dy, q[2] + w]


def _planar_difference(h: Any, q0: Any, q1: Any) -> Sequence[Any]:
    s, c, w = np.sin(q0[2]), np.cos(q0[2]), q1[2] - q0[2]
    dx, dy, zero = q1[0] - q0[0], q1[1] - q0[1], 0.0 * w
    turn = rot.log(rot.exp(rot.vector(zero, zero, w)))  # the translation needs the angle within ±π
    local = rot.vector(c * dx + s * dy, c * dy - s * dx, zero)
    vx, vy, _ = rot.log_translation(turn, local)
    return [turn[2], vx, vy]


def _ball_advance(h: Any, q: Any, dv: Any) -> Sequence[Any]:
    return rot.normalize(rot.multiply(q, rot.exp(dv)))


def _ball_difference(h: Any, q0: Any, q1: Any) -> Sequence[Any]:
    return rot.log(rot.multiply(rot.conjugate(rot.normalize(q0)), rot.normalize(q1)))


def _free_advance(h: Any, q: Any, dv: Any) -> Sequence[Any]:
    step = rot.exp_translation(dv[:3], dv[3:])
    return [*(q[:3] + rot.from_quaternion(q[3:]) @ step), *_ball_advance(h, q[3:], dv[:3])]


def _free_difference(h: Any, q0: Any, q1: Any) -> Sequence[Any]:
    turn = _ball_difference(h, q0[3:], q1[3:])
    step = rot.from_quaternion(q0[3:]).T @ (q1[:3] - q0[:3])
    return [*turn, *rot.log_translation(turn, step)]


def _one(name: str, pose: Any, column: Any, angle: bool) -> HingeKind:
    """A hinge of one number about or along one axis."""
    return HingeKind(
        name, 1, 1, 1,
        pose=lambda h, q: pose(h, q[0]),
        columns=lambda h, q: (column(h),),
        neutral=(0.0,), advance=_add, difference=_subtract, angles=(angle,),
    )  # fmt: skip


KINDS: dict[str, HingeKind] = {
    row.name: row
    for row in (
        HingeKind(
            "weld", 0, 0, 0,
            pose=lambda h, q: Transform.identity(), columns=lambda h, q: (),
            neutral=(), advance=_add, difference=_subtract,
        ),
        _one("revolute", lambda h, q: _turn(h.axes[0], q), lambda h: _angular(h.axes[0]), True),
        _one("continuous", lambda h, q: _turn(h.axes[0], q), lambda h: _angular(h.axes[0]), True),
        _one("prismatic", lambda h, q: _slide(h.axes[0], q), lambda h: _linear(h.axes[0]), False),
        _one(
            "helical",
            lambda h, q: Transform(Rotation.about(h.axes[0], q), h.axes[0] * (h.pitch * q)),
            lambda h: Motion(h.axes[0], h.axes[0] * h.pitch),
            True,
        ),
        HingeKind(
            "cylindrical", 2, 2, 1,
            pose=lambda h, q: Transform(Rotation.about(h.axes[0], q[0]), h.axes[0] * q[1]),
            columns=lambda h, q: (_angular(h.axes[0]), _linear(h.axes[0])),
            neutral=(0.0, 0.0), advance=_add, difference=_subtract, angles=(True, False),
        ),
        HingeKind(
            "universal", 2, 2, 2,
            pose=_universal_pose, columns=_universal_columns, rate=_universal_rate,
            neutral=(0.0, 0.0), advance=_add, difference=_subtract, angles=(True, True),
        ),
        HingeKind(
            "planar", 3, 3, 1,
            pose=_planar_pose,
            columns=lambda h, q: (_angular(h.axes[0]), _linear(h.axes[1]), _linear(h.axes[2])),
            neutral=(0.0, 0.0, 0.0), advance=_planar_advance, difference=_planar_difference,
            angles=(False, False, True),
        ),
        HingeKind(
            "spherical", 4, 3, 0,
            pose=lambda h, q: Transform(rot.from_quaternion(q), rot.zero()),
            columns=lambda h, q: tuple(_angular(u) for u in _UNIT),
            neutral=(1.0, 0.0, 0.0, 0.0), advance=_ball_advance, difference=_ball_difference,
            quaternion=0,
        ),
        HingeKind(
            "free", 7, 6, 0,
            pose=lambda h, q: Transform(rot.from_quaternion(q[3:]), q[:3]),
            columns=lambda h, q: (*map(_angular, _UNIT), *map(_linear, _UNIT)),
            neutral=(0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
            advance=_free_advance, difference=_free_difference, quaternion=3,
        ),
    )
}  # fmt: skip
"""Every hinge kind by name."""
