"""Pinocchio's layout: quaternions (x, y, z, w), spatial vectors [linear; angular], continuous
joints as (cos, sin). Its joints are ordered by name among siblings, ours as in the file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

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

_NQ = {"continuous": 2, "planar": 4}
_V = {"free": [3, 4, 5, 0, 1, 2], "planar": [1, 2, 0]}


def to_pinocchio(
    robot: Robot, q: Any, v: Any = None, a: Any = None, tau: Any = None, *, joints: Any = None
) -> Any:
    """q, or the tuple of q and those of v, a and tau that are given, as Pinocchio lays them out.

    Arrays have any leading batch shape. `joints` says in which order Pinocchio has the joints: its
    `Model`, or a sequence of names; default as in `robot`. Pinocchio takes no notice of the axis of
    a URDF's planar joint (it is z there), phipsi does.
    """
    layout = _layout(robot, joints)
    q_moves = [Move(j.hinge.q, j.q, partial(_q_to, j)) for j in layout]
    v_moves = [Move(j.hinge.v, j.v, partial(_reordered, v_order(j.hinge.kind))) for j in layout]
    converted = moved("q", q, (robot.nq, _nq(layout)), q_moves)
    return results([converted, *moved_rates(v, a, tau, robot.nv, v_moves)])


def from_pinocchio(
    robot: Robot, q: Any, v: Any = None, a: Any = None, tau: Any = None, *, joints: Any = None
) -> Any:
    """The inverse of `to_pinocchio`."""
    layout = _layout(robot, joints)
    q_moves = [Move(j.q, j.hinge.q, partial(_q_from, j)) for j in layout]
    v_moves = [
        Move(j.v, j.hinge.v, partial(_reordered, np.argsort(v_order(j.hinge.kind)))) for j in layout
    ]
    converted = moved("q", q, (_nq(layout), robot.nq), q_moves)
    return results([converted, *moved_rates(v, a, tau, robot.nv, v_moves)])


def _layout(robot: Robot, joints: Any) -> list[JointLayout]:
    if joints is None or not hasattr(joints, "joints"):
        names: Sequence[str] | None = joints
        names = names and [name for name in names if name != "universe"]
        return in_order(robot, names, lambda kind: _NQ.get(kind.name, kind.nq))
    names = list(joints.names)[1:]
    check_names(robot, names)
    layout = []
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
    if kind.name in ("revolute", "continuous"):
        return (1, 2)
    return (_NQ.get(kind.name, kind.nq),)


def _nq(layout: list[JointLayout]) -> int:
    return max((j.q.stop for j in layout), default=0)


def v_order(kind: HingeKind) -> list[int]:
    """Where the numbers of Pinocchio's v are in ours, for one hinge."""
    return _V.get(kind.name, list(range(kind.nv)))


def _reordered(order: Any, x: np.ndarray) -> np.ndarray:
    return x[..., order]


def _q_to(joint: JointLayout, x: np.ndarray) -> np.ndarray:
    kind = joint.hinge.kind
    if kind.quaternion is not None:
        quaternion = unit(x[..., kind.quaternion :])[..., [1, 2, 3, 0]]
        return np.concatenate((x[..., : kind.quaternion], quaternion), axis=-1)
    if joint.q.stop - joint.q.start > kind.nq:
        angle = x[..., -1:]
        return np.concatenate((x[..., :-1], np.cos(angle), np.sin(angle)), axis=-1)
    return x


def _q_from(joint: JointLayout, x: np.ndarray) -> np.ndarray:
    kind = joint.hinge.kind
    if kind.quaternion is not None:
        quaternion = unit(x[..., kind.quaternion :])[..., [3, 0, 1, 2]]
        return np.concatenate((x[..., : kind.quaternion], quaternion), axis=-1)
    if joint.q.stop - joint.q.start > kind.nq:
        angle = np.arctan2(x[..., -1:], x[..., -2:-1])
        return np.concatenate((x[..., :-2], angle), axis=-1)
    return x
