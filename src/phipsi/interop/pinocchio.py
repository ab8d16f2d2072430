"""Pinocchio's layout: quaternions (x, y, z, w), spatial vectors [linear; angular], continuous
joints as (cos, sin). Its joints are ordered by name among siblings, ours as in the file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Protocol, overload, runtime_checkable

import numpy as np

from phipsi.interop.layout import (
    JointLayout,
    Move,
    check_names,
    in_order,
    moved,
    moved_rates,
    results,
    unit,
)
from phipsi.model import ModelError, Robot
from phipsi.model.hinges import HingeKind
from phipsi.typing import Array, ArrayLike, ConfigurationLike, JointVectorLike

_NQ = {"continuous": 2, "planar": 4}
"""Lengths of Pinocchio's q by kind of hinge, where they are not ours."""
_V = {"free": [3, 4, 5, 0, 1, 2], "planar": [1, 2, 0]}
"""Indices in our v of the numbers of Pinocchio's v, by kind of hinge, where the order differs."""


class PinocchioJoint(Protocol):
    """The part of a joint of Pinocchio that says where it is in q and v."""

    @property
    def nq(self) -> int:
        """How many numbers it has in q."""
        ...

    @property
    def nv(self) -> int:
        """How many numbers it has in v."""
        ...

    @property
    def idx_q(self) -> int:
        """Where it begins in q."""
        ...

    @property
    def idx_v(self) -> int:
        """Where it begins in v."""
        ...


@runtime_checkable
class PinocchioModel(Protocol):
    """The part of `pinocchio.Model` that says where its joints are in q and v."""

    @property
    def names(self) -> Iterable[str]:
        """The names of its joints, "universe" first."""
        ...

    @property
    def joints(self) -> Iterable[PinocchioJoint]:
        """Its joints in the same order."""
        ...


@overload  # of variables that may all be None the result is taken for a tuple
def to_pinocchio(  # pyright: ignore[reportOverlappingOverload]
    robot: Robot,
    q: ConfigurationLike,
    v: None = None,
    a: None = None,
    tau: None = None,
    *,
    joints: PinocchioModel | Iterable[str] | None = None,
) -> Array: ...
@overload
def to_pinocchio(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike | None = None,
    a: JointVectorLike | None = None,
    tau: JointVectorLike | None = None,
    *,
    joints: PinocchioModel | Iterable[str] | None = None,
) -> tuple[Array, ...]: ...
def to_pinocchio(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike | None = None,
    a: JointVectorLike | None = None,
    tau: JointVectorLike | None = None,
    *,
    joints: PinocchioModel | Iterable[str] | None = None,
) -> Array | tuple[Array, ...]:
    """q, or a tuple of q and those of v, a and tau that are given, in the layout of Pinocchio.

    Quaternions are (x, y, z, w), spatial vectors [linear; angular], continuous joints (cos, sin).
    Pinocchio ignores the axis of a URDF's planar joint (it is z there), phipsi does not.

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv), optional
        Joint velocities [rad/s or m/s].
    a : (…, nv), optional
        Joint accelerations [rad/s² or m/s²].
    tau : (…, nv), optional
        Joint forces [N·m or N].
    joints
        The order of the joints in Pinocchio: its `Model`, or a sequence of names; by default the
        order of the robot.

    Returns
    -------
    array or tuple of arrays
        q, or (q, …) with (…, nv) for each of v, a and tau that is given, in Pinocchio's layout.

    Raises
    ------
    ModelError
        If `joints` does not name each hinge once, or if Pinocchio has no such joint.

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.chain(1, "continuous")
    >>> pp.interop.to_pinocchio(robot, [0.0])  # cosine and sine of the angle
    array([1., 0.])
    """
    layout = _layout(robot, joints)
    q_moves = [Move(j.hinge.q, j.q, partial(_q_to, j)) for j in layout]
    v_moves = [Move(j.hinge.v, j.v, partial(_reordered, v_order(j.hinge.kind))) for j in layout]
    converted = moved("q", q, (robot.nq, _nq(layout)), q_moves)
    return results(converted, moved_rates(v, a, tau, robot.nv, v_moves))


@overload  # of variables that may all be None the result is taken for a tuple
def from_pinocchio(  # pyright: ignore[reportOverlappingOverload]
    robot: Robot,
    q: ArrayLike,
    v: None = None,
    a: None = None,
    tau: None = None,
    *,
    joints: PinocchioModel | Iterable[str] | None = None,
) -> Array: ...
@overload
def from_pinocchio(
    robot: Robot,
    q: ArrayLike,
    v: JointVectorLike | None = None,
    a: JointVectorLike | None = None,
    tau: JointVectorLike | None = None,
    *,
    joints: PinocchioModel | Iterable[str] | None = None,
) -> tuple[Array, ...]: ...
def from_pinocchio(
    robot: Robot,
    q: ArrayLike,
    v: JointVectorLike | None = None,
    a: JointVectorLike | None = None,
    tau: JointVectorLike | None = None,
    *,
    joints: PinocchioModel | Iterable[str] | None = None,
) -> Array | tuple[Array, ...]:
    """The inverse of `to_pinocchio`: q, or a tuple of q and those of v, a and tau that are given.

    Parameters
    ----------
    robot
        The robot.
    q : (…, n)
        Configuration in the layout of Pinocchio.
    v : (…, nv), optional
        Joint velocities.
    a : (…, nv), optional
        Joint accelerations.
    tau : (…, nv), optional
        Joint forces.
    joints
        The order of the joints in Pinocchio: its `Model`, or a sequence of names; by default the
        order of the robot.

    Returns
    -------
    array or tuple of arrays
        q (…, nq), or (q, …) with (…, nv) for each of v, a and tau that is given, as phipsi lays
        them out.

    Raises
    ------
    ModelError
        If `joints` does not name each hinge once, or if Pinocchio has no such joint.

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.chain(1, "continuous")
    >>> pp.interop.from_pinocchio(robot, [0.0, 1.0])  # cosine and sine of the angle
    array([1.57079633])
    """
    layout = _layout(robot, joints)
    q_moves = [Move(j.q, j.hinge.q, partial(_q_from, j)) for j in layout]
    v_moves = [
        Move(j.v, j.hinge.v, partial(_reordered, np.argsort(v_order(j.hinge.kind)))) for j in layout
    ]
    converted = moved("q", q, (_nq(layout), robot.nq), q_moves)
    return results(converted, moved_rates(v, a, tau, robot.nv, v_moves))


def _layout(robot: Robot, joints: PinocchioModel | Iterable[str] | None) -> list[JointLayout]:
    """The slices of each hinge in Pinocchio's q and v."""
    for h in robot.hinges:
        if h.kind.forward is not None:
            raise ModelError(f"hinge {h.name!r} is {h.kind.name}, for which Pinocchio has no joint")
    if not isinstance(joints, PinocchioModel):
        names = joints and [name for name in joints if name != "universe"]
        return in_order(robot, names, lambda kind: _NQ.get(kind.name, kind.nq))
    names = list(joints.names)[1:]
    check_names(robot, names)
    layout: list[JointLayout] = []
    for name, joint in zip(names, list(joints.joints)[1:], strict=True):
        h = robot.hinge(name)
        if joint.nv != h.kind.nv or joint.nq not in _known_sizes(h.kind):
            raise ModelError(
                f"hinge {name!r} is {h.kind.name}, but Pinocchio's joint of that name has "
                f"nq={joint.nq}, nv={joint.nv}"
            )
        q, v = (
            slice(joint.idx_q, joint.idx_q + joint.nq),
            slice(joint.idx_v, joint.idx_v + joint.nv),
        )
        layout.append(JointLayout(h, q, v))
    return layout


def _known_sizes(kind: HingeKind) -> tuple[int, ...]:
    """The lengths that Pinocchio's q of such a hinge may have."""
    if kind.name in ("revolute", "continuous"):
        return (1, 2)
    return (_NQ.get(kind.name, kind.nq),)


def _nq(layout: list[JointLayout]) -> int:
    """The length of Pinocchio's q."""
    return max((j.q.stop for j in layout), default=0)


def v_order(kind: HingeKind) -> list[int]:
    """The indices in our v of the numbers of Pinocchio's v, for one hinge."""
    return _V.get(kind.name, list(range(kind.nv)))


def _reordered(order: Sequence[int] | Array, x: Array) -> Array:
    return x[..., order]


def _q_to(joint: JointLayout, x: Array) -> Array:
    kind = joint.hinge.kind
    if kind.quaternion is not None:
        quaternion = unit(x[..., kind.quaternion :])[..., [1, 2, 3, 0]]
        return np.concatenate((x[..., : kind.quaternion], quaternion), axis=-1)
    if joint.q.stop - joint.q.start > kind.nq:
        angle = x[..., -1:]
        return np.concatenate((x[..., :-1], np.cos(angle), np.sin(angle)), axis=-1)
    return x


def _q_from(joint: JointLayout, x: Array) -> Array:
    kind = joint.hinge.kind
    if kind.quaternion is not None:
        quaternion = unit(x[..., kind.quaternion :])[..., [3, 0, 1, 2]]
        return np.concatenate((x[..., : kind.quaternion], quaternion), axis=-1)
    if joint.q.stop - joint.q.start > kind.nq:
        angle = np.arctan2(x[..., -1:], x[..., -2:-1])
        return np.concatenate((x[..., :-2], angle), axis=-1)
    return x
