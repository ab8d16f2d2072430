"""Hinge kinds as data: one row each.

A row holds how many numbers a hinge has (nq, nv), how many axes describe it, and its functions of
the hinge's own axes, pitch and coordinates, over any scalar: the pose of the child in the hinge
frame and back, the columns of H*, the term Ḣ* w, the forces that the hinge transmits, and how
coordinates move along a velocity and back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from phipsi.model.reversal import HingeGeometry, Reversal
from phipsi.spatial import Force, HingeMap, Motion, MotionBasis, Rotation, Transform
from phipsi.spatial import rotation as rot
from phipsi.spatial.rotation import Scalars, Vector
from phipsi.typing import Real

HingeName = Literal[
    "weld", "revolute", "continuous", "prismatic", "helical", "cylindrical", "universal", "planar",
    "spherical", "free",
]  # fmt: skip
"""The names of hinge kinds: the keys of KINDS."""
ReversedName = Literal["reversed_planar", "reversed_spherical", "reversed_free"]
"""The names of hinge kinds that are described from their other side: the keys of REVERSED."""


@dataclass(frozen=True)
class HingeKind:
    """One row of the table. `q` and `v` are sequences of nq and nv scalars, `h` is anything with
    `.axes` (unit vectors, hinge frame) and `.pitch` [m/rad]."""

    name: HingeName | ReversedName
    nq: int
    nv: int
    axes: int
    pose: Callable[[HingeGeometry, Scalars], Transform]
    coordinates: Callable[[HingeGeometry, Transform], Scalars]
    """The q of a relative pose; of one off the hinge's motions that of a near one."""
    columns: Callable[[HingeGeometry, Scalars], tuple[Motion, ...]]
    forces: Callable[[HingeGeometry, Scalars], tuple[Force, ...]]
    """6 − nv forces, child frame, that span what the hinge transmits: H f = 0."""
    reversal: Reversal
    """How it is described from the other side."""
    neutral: tuple[float, ...]
    advance: Callable[[HingeGeometry, Scalars, Scalars], Scalars]
    difference: Callable[[HingeGeometry, Scalars, Scalars], Scalars]
    rate: Callable[[HingeGeometry, Scalars, Scalars, Scalars], Motion] = (
        lambda h, q, v, w: Motion.zero()
    )  # fmt: skip
    """Ḣ* w where the hinge moves with v."""
    bend: Callable[[HingeGeometry, Scalars, Scalars, Scalars, Scalars], Motion] = (
        lambda h, q, u, v, w: Motion.zero()
    )
    """How Ḣ* w changes where the hinge is displaced by u."""
    rates: tuple[int, ...] = ()
    """For each freedom the number of q that it is the rate of, −1 where there is none."""
    angles: tuple[bool, ...] = ()
    """For each number of q: is it an angle [rad] (else a length [m]); empty where a quaternion."""
    quaternion: int | None = None
    """Where in q the quaternion begins, if there is one."""

    flow: Callable[[HingeGeometry, Scalars, Scalars], Scalars] = lambda h, q, v: v
    """The rate of q where the hinge moves with v."""
    group: bool = False
    """Does q move along a group, that of H*, which is constant then, or of `forward` (else by
    addition)?"""
    forward: HingeKind | None = None
    """The kind that this one is from its other side, with the same q and v; None: no other."""
    projection: Callable[[HingeGeometry, Transform], Transform] | None = None
    """The pose of the hinge nearest to a relative pose, where it takes no coordinates."""

    def __reduce__(self) -> tuple[Callable[[str], HingeKind], tuple[str]]:
        return _named, (self.name,)

    def near(self, h: HingeGeometry, pose: Transform) -> Transform:
        """The pose of the hinge nearest to a relative pose: that of its coordinates."""
        if self.projection is not None:
            return self.projection(h, pose)
        return self.pose(h, self.coordinates(h, pose))

    def map(self, h: HingeGeometry, q: Scalars) -> HingeMap:
        """H at q."""
        return HingeMap(MotionBasis(self.columns(h, q)))

    def __repr__(self) -> str:
        return f"<hinge kind {self.name}>"

    def __str__(self) -> str:
        return self.name


def _turn(u: Vector, angle: Real) -> Transform:
    return Transform(Rotation.about(u, angle), rot.zero())


def _nearest_turn(h: HingeGeometry, pose: Transform) -> Transform:
    s, c = rot.turn_about(h.axes[0], pose.rotation)
    return Transform(Rotation.along(h.axes[0], s, c), rot.zero())


def _slide(u: Vector, length: Real) -> Transform:
    return Transform(rot.identity(), u * length)


def _angular(u: Vector) -> Motion:
    return Motion(u, rot.zero())


def _linear(u: Vector) -> Motion:
    return Motion(rot.zero(), u)


def _moments(*directions: Vector) -> tuple[Force, ...]:
    return tuple(Force(u, rot.zero()) for u in directions)


def _pushes(*directions: Vector) -> tuple[Force, ...]:
    return tuple(Force(rot.zero(), u) for u in directions)


_UNIT = tuple(rot.scalars(np.eye(3)))


def _add(h: HingeGeometry, q: Scalars, dv: Scalars) -> Scalars:
    return [a + b for a, b in zip(q, dv, strict=True)]


def _subtract(h: HingeGeometry, q0: Scalars, q1: Scalars) -> Scalars:
    return [b - a for a, b in zip(q0, q1, strict=True)]


def _universal_pose(h: HingeGeometry, q: Scalars) -> Transform:
    first, second = (Rotation.about(u, angle) for u, angle in zip(h.axes, q, strict=True))
    return Transform(first.followed(second), rot.zero())


def _universal_columns(h: HingeGeometry, q: Scalars) -> tuple[Motion, ...]:
    return _angular(Rotation.about(h.axes[1], q[1]).T @ h.axes[0]), _angular(h.axes[1])


def _universal_rate(h: HingeGeometry, q: Scalars, v: Scalars, w: Scalars) -> Motion:
    first = _universal_columns(h, q)[0].angular
    return _angular(rot.cross(first, h.axes[1]) * (v[1] * w[0]))


def _universal_bend(h: HingeGeometry, q: Scalars, u: Scalars, v: Scalars, w: Scalars) -> Motion:
    first = _universal_columns(h, q)[0].angular
    return _angular(rot.cross(rot.cross(first, h.axes[1]), h.axes[1]) * (u[1] * v[1] * w[0]))


def _universal_coordinates(h: HingeGeometry, pose: Transform) -> Scalars:
    (first, second), R = h.axes, pose.rotation
    return [
        rot.angle_between(first, second, R @ second),
        rot.angle_between(second, R.T @ first, first),
    ]


def _universal_forces(h: HingeGeometry, q: Scalars) -> tuple[Force, ...]:
    first = _universal_columns(h, q)[0].angular
    return *_moments(rot.cross(first, h.axes[1])), *_pushes(*_UNIT)


def _helical_coordinates(h: HingeGeometry, pose: Transform) -> Scalars:
    """The angle of the rotation, with the whole turns that the translation tells."""
    u, angle = h.axes[0], rot.angle_about(h.axes[0], pose.rotation)
    flat = h.pitch == 0.0
    turns = (u @ pose.position / np.where(flat, 1.0, h.pitch) - angle) / (2.0 * np.pi)
    return [angle + np.where(flat, 0.0, 2.0 * np.pi * np.floor(turns + 0.5))]


def _helical_forces(h: HingeGeometry, q: Scalars) -> tuple[Force, ...]:
    u, (a, b) = h.axes[0], rot.perpendicular(h.axes[0])
    return *_moments(a, b), *_pushes(a, b), Force(u * -h.pitch, u)


def _planar_coordinates(h: HingeGeometry, pose: Transform) -> Scalars:
    normal, first, second = h.axes
    angle = rot.angle_about(normal, pose.rotation)
    return [first @ pose.position, second @ pose.position, angle]


def _planar_pose(h: HingeGeometry, q: Scalars) -> Transform:
    normal, first, second = h.axes
    return Transform(Rotation.about(normal, q[2]), np.dot(np.stack([first, second], 1), q[:2]))


def _planar_back(q: Scalars) -> Scalars:
    """q of the inverse pose, axes (−normal, first, −second)."""
    s, c = np.sin(q[2]), np.cos(q[2])
    return [-(c * q[0] + s * q[1]), c * q[1] - s * q[0], q[2]]


def _free_back(q: Scalars) -> Scalars:
    position = rot.from_quaternion(q[3:]).T @ q[:3]
    return [*(-position), *rot.conjugate(rot.normalize(q[3:]))]


def _planar_advance(h: HingeGeometry, q: Scalars, dv: Scalars) -> Scalars:
    w, zero = dv[0], 0.0 * dv[0]
    dx, dy, _ = rot.exp_translation(rot.vector(zero, zero, w), rot.vector(dv[1], dv[2], zero))
    s, c = np.sin(q[2]), np.cos(q[2])
    return [q[0] + c * dx - s * dy, q[1] + s * dx + c * dy, q[2] + w]


def _planar_difference(h: HingeGeometry, q0: Scalars, q1: Scalars) -> Scalars:
    s, c, w = np.sin(q0[2]), np.cos(q0[2]), q1[2] - q0[2]
    dx, dy, zero = q1[0] - q0[0], q1[1] - q0[1], 0.0 * w
    turn = rot.log(rot.exp(rot.vector(zero, zero, w)))  # the translation needs the angle within ±π
    local = rot.vector(c * dx + s * dy, c * dy - s * dx, zero)
    vx, vy, _ = rot.log_translation(turn, local)
    return [turn[2], vx, vy]


def _planar_flow(h: HingeGeometry, q: Scalars, v: Scalars) -> Scalars:
    s, c = np.sin(q[2]), np.cos(q[2])
    return [c * v[1] - s * v[2], s * v[1] + c * v[2], v[0]]


def _ball_flow(h: HingeGeometry, q: Scalars, v: Scalars) -> Scalars:
    return [0.5 * x for x in rot.multiply(q, [0.0, *v])]


def _free_flow(h: HingeGeometry, q: Scalars, v: Scalars) -> Scalars:
    return [*(rot.from_quaternion(q[3:]) @ v[3:]), *_ball_flow(h, q[3:], v[:3])]


def _ball_advance(h: HingeGeometry, q: Scalars, dv: Scalars) -> Scalars:
    return rot.normalize(rot.multiply(q, rot.exp(dv)))


def _ball_difference(h: HingeGeometry, q0: Scalars, q1: Scalars) -> Vector:
    return rot.log(rot.multiply(rot.conjugate(rot.normalize(q0)), rot.normalize(q1)))


def _free_advance(h: HingeGeometry, q: Scalars, dv: Scalars) -> Scalars:
    step = rot.exp_translation(dv[:3], dv[3:])
    return [*(q[:3] + rot.from_quaternion(q[3:]) @ step), *_ball_advance(h, q[3:], dv[:3])]


def _free_difference(h: HingeGeometry, q0: Scalars, q1: Scalars) -> Scalars:
    turn = _ball_difference(h, q0[3:], q1[3:])
    step = rot.from_quaternion(q0[3:]).T @ (q1[:3] - q0[:3])
    return [*turn, *rot.log_translation(turn, step)]


def _turning(name: HingeName) -> HingeKind:
    """A hinge that turns about its axis."""
    return HingeKind(
        name, 1, 1, 1,
        pose=lambda h, q: _turn(h.axes[0], q[0]),
        coordinates=lambda h, pose: [rot.angle_about(h.axes[0], pose.rotation)],
        columns=lambda h, q: (_angular(h.axes[0]),),
        forces=lambda h, q: (*_moments(*rot.perpendicular(h.axes[0])), *_pushes(*_UNIT)),
        reversal=Reversal((0,), (0,)),
        neutral=(0.0,), advance=_add, difference=_subtract, angles=(True,), rates=(0,),
        projection=_nearest_turn,
    )  # fmt: skip


KINDS: dict[HingeName, HingeKind] = {
    cast("HingeName", row.name): row
    for row in (
        HingeKind(
            "weld", 0, 0, 0,
            pose=lambda h, q: Transform.identity(), coordinates=lambda h, pose: [],
            columns=lambda h, q: (), forces=lambda h, q: (*_moments(*_UNIT), *_pushes(*_UNIT)),
            reversal=Reversal((), ()), neutral=(), advance=_add, difference=_subtract,
        ),
        _turning("revolute"),
        _turning("continuous"),
        HingeKind(
            "prismatic", 1, 1, 1,
            pose=lambda h, q: _slide(h.axes[0], q[0]),
            coordinates=lambda h, pose: [h.axes[0] @ pose.position],
            columns=lambda h, q: (_linear(h.axes[0]),),
            forces=lambda h, q: (*_moments(*_UNIT), *_pushes(*rot.perpendicular(h.axes[0]))),
            reversal=Reversal((0,), (0,)),
            neutral=(0.0,), advance=_add, difference=_subtract, angles=(False,), rates=(0,),
        ),
        HingeKind(
            "helical", 1, 1, 1,
            pose=lambda h, q: Transform(
                Rotation.about(h.axes[0], q[0]), h.axes[0] * (h.pitch * q[0])
            ),
            coordinates=_helical_coordinates, forces=_helical_forces,
            columns=lambda h, q: (Motion(h.axes[0], h.axes[0] * h.pitch),),
            reversal=Reversal((0,), (0,)),
            neutral=(0.0,), advance=_add, difference=_subtract, angles=(True,), rates=(0,),
        ),
        HingeKind(
            "cylindrical", 2, 2, 1,
            pose=lambda h, q: Transform(Rotation.about(h.axes[0], q[0]), h.axes[0] * q[1]),
            coordinates=lambda h, pose: [
                rot.angle_about(h.axes[0], pose.rotation), h.axes[0] @ pose.position
            ],
            columns=lambda h, q: (_angular(h.axes[0]), _linear(h.axes[0])),
            forces=lambda h, q: (
                *_moments(*rot.perpendicular(h.axes[0])), *_pushes(*rot.perpendicular(h.axes[0]))
            ),
            reversal=Reversal((0, 1), (0, 1)),
            neutral=(0.0, 0.0), advance=_add, difference=_subtract, angles=(True, False),
            rates=(0, 1),
        ),
        HingeKind(
            "universal", 2, 2, 2,
            pose=_universal_pose, coordinates=_universal_coordinates,
            columns=_universal_columns, forces=_universal_forces, rate=_universal_rate,
            bend=_universal_bend,
            reversal=Reversal((1, 0), (1, 0)),
            neutral=(0.0, 0.0), advance=_add, difference=_subtract, angles=(True, True),
            rates=(0, 1),
        ),
        HingeKind(
            "planar", 3, 3, 1,
            pose=_planar_pose, coordinates=_planar_coordinates,
            columns=lambda h, q: (_angular(h.axes[0]), _linear(h.axes[1]), _linear(h.axes[2])),
            forces=lambda h, q: (*_moments(h.axes[1], h.axes[2]), *_pushes(h.axes[0])),
            reversal=Reversal(
                (None, None, 2), (0, None, None), mixed=_planar_back,
                axes=lambda axes: (-axes[0], axes[1], -axes[2]),
            ),
            neutral=(0.0, 0.0, 0.0), advance=_planar_advance, difference=_planar_difference,
            angles=(False, False, True), rates=(2, -1, -1), flow=_planar_flow, group=True,
        ),
        HingeKind(
            "spherical", 4, 3, 0,
            pose=lambda h, q: Transform(rot.from_quaternion(q), rot.zero()),
            coordinates=lambda h, pose: rot.quaternion_of(pose.rotation),
            columns=lambda h, q: tuple(_angular(u) for u in _UNIT),
            forces=lambda h, q: _pushes(*_UNIT),
            reversal=Reversal(
                (None,) * 4, (None,) * 3, alike=(0, 1, 2),
                mixed=lambda q: rot.conjugate(rot.normalize(q)),
            ),
            neutral=(1.0, 0.0, 0.0, 0.0), advance=_ball_advance, difference=_ball_difference,
            projection=lambda h, pose: Transform(pose.R, rot.zero()), rates=(-1,) * 3,
            quaternion=0, flow=_ball_flow, group=True,
        ),
        HingeKind(
            "free", 7, 6, 0,
            pose=lambda h, q: Transform(rot.from_quaternion(q[3:]), q[:3]),
            coordinates=lambda h, pose: [*pose.position, *rot.quaternion_of(pose.rotation)],
            columns=lambda h, q: (*map(_angular, _UNIT), *map(_linear, _UNIT)),
            forces=lambda h, q: (),
            reversal=Reversal((None,) * 7, (None,) * 6, alike=(0, 1, 2), mixed=_free_back),
            neutral=(0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
            advance=_free_advance, difference=_free_difference, quaternion=3,
            projection=lambda h, pose: pose, rates=(-1,) * 6, flow=_free_flow, group=True,
        ),
    )
}  # fmt: skip
"""Every hinge kind by name."""


def _from_the_other_side(name: ReversedName, forward: HingeKind) -> HingeKind:
    """The kind with the pose T(q)⁻¹ and the same q and v, for a kind whose q moves along a group:
    H* becomes −φ⁻*H*, the motion of the parent relative to the child, in the parent's frame."""

    def seen(h: HingeGeometry, q: Scalars, motion: Motion) -> Motion:
        return -(forward.pose(h, q).inv.T @ motion)

    def motion(h: HingeGeometry, q: Scalars, v: Scalars) -> Motion:
        return forward.map(h, q).T @ v

    return HingeKind(
        name, forward.nq, forward.nv, forward.axes,
        pose=lambda h, q: forward.pose(h, q).inv,
        coordinates=lambda h, pose: forward.coordinates(h, pose.inv),
        columns=lambda h, q: tuple(seen(h, q, c) for c in forward.columns(h, q)),
        forces=lambda h, q: tuple(forward.pose(h, q) @ f for f in forward.forces(h, q)),
        reversal=Reversal(
            tuple(range(forward.nq)), tuple(range(forward.nv)), axes=lambda axes: axes
        ),
        neutral=forward.neutral, advance=forward.advance, difference=forward.difference,
        rate=lambda h, q, v, w: seen(h, q, motion(h, q, v).cross(motion(h, q, w))),
        bend=lambda h, q, u, v, w: seen(
            h, q, motion(h, q, u).cross(motion(h, q, v).cross(motion(h, q, w)))
        ),
        rates=forward.rates, angles=forward.angles, quaternion=forward.quaternion,
        flow=forward.flow, group=True, forward=forward,
        projection=forward.projection
        and (lambda h, pose: forward.near(h, pose.inv).inv),
    )  # fmt: skip


REVERSED: dict[str, HingeKind] = {
    row.name: row
    for row in (
        _from_the_other_side("reversed_planar", KINDS["planar"]),
        _from_the_other_side("reversed_spherical", KINDS["spherical"]),
        _from_the_other_side("reversed_free", KINDS["free"]),
    )
}
"""The kinds, by name, of hinges that `rebase` reversed and whose numbers belong to their own q and
v, such as unequal armatures."""


def _named(name: str) -> HingeKind:
    """The row of a table; pickles call this."""
    return {**KINDS, **REVERSED}[name]
