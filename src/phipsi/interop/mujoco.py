"""MuJoCo's layout: as ours, but the q of a free joint is the pose in the world, its v is [linear,
world axes; angular, body axes], its acceleration is the derivative of those numbers, and its force
is what they do work with."""

from __future__ import annotations

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
    vector,
)
from phipsi.model import Hinge, ModelError, Robot
from phipsi.model.mjcf import joint_names
from phipsi.spatial import rotation as rot

_KINDS = ("revolute", "continuous", "prismatic", "spherical", "free")


def to_mujoco(
    robot: Robot, q: Any, v: Any = None, a: Any = None, tau: Any = None, *, joints: Any = None
) -> Any:
    """q, or the tuple of q and those of v, a and tau that are given, as MuJoCo lays them out:
    qpos, qvel, qacc and a joint force such as qfrc_applied.

    Arrays have any leading batch shape. `joints` says in which order MuJoCo has the joints: its
    `MjModel`, or a sequence of names; default as in `robot`. The a of a free joint needs v.
    """
    layout = _layout(robot, joints)
    if a is not None:
        a = _with_classical(robot, a, v, 1.0)
    moves = [Move(j.hinge.q, j.q, partial(_to_qpos, j.hinge)) for j in layout]
    qpos = moved("q", q, (robot.nq, robot.nq), moves)
    moves = [Move(j.hinge.v, j.v, partial(_to_world, j, qpos)) for j in layout]
    return results([qpos, *moved_rates(v, a, tau, robot.nv, moves)])


def from_mujoco(
    robot: Robot, q: Any, v: Any = None, a: Any = None, tau: Any = None, *, joints: Any = None
) -> Any:
    """The inverse of `to_mujoco`."""
    layout = _layout(robot, joints)
    qpos = vector("q", q, robot.nq)
    moves = [Move(j.q, j.hinge.q, partial(_from_qpos, j.hinge)) for j in layout]
    ours = moved("q", qpos, (robot.nq, robot.nq), moves)
    moves = [Move(j.v, j.hinge.v, partial(_to_body, j, qpos)) for j in layout]
    v, a, tau = moved_rates(v, a, tau, robot.nv, moves)
    if a is not None:
        a = _with_classical(robot, a, v, -1.0)
    return results([ours, v, a, tau])


def check_kinds(robot: Robot) -> None:
    """MuJoCo has a joint for each hinge."""
    for h in robot.hinges:
        if h.kind.name not in _KINDS:
            raise ModelError(f"hinge {h.name!r} is {h.kind.name}, which MuJoCo does not have")


def _layout(robot: Robot, joints: Any) -> list[JointLayout]:
    check_kinds(robot)
    if joints is None or not hasattr(joints, "jnt_qposadr"):
        return in_order(robot, joints, lambda kind: kind.nq)
    names = joint_names(joints)
    check_names(robot, names)
    layout = []
    for name, q, v in zip(names, joints.jnt_qposadr, joints.jnt_dofadr, strict=True):
        h = robot.hinge(name)
        layout.append(JointLayout(h, slice(q, q + h.kind.nq), slice(v, v + h.kind.nv)))
    return layout


def _to_qpos(h: Hinge, x: np.ndarray) -> np.ndarray:
    """q of a hinge with its quaternion at length one; of a free one the pose in the world."""
    start = h.kind.quaternion
    if start is None:
        return x
    position, quaternion = x[..., :start], unit(x[..., start:])
    if _placed(h):
        R, turn = _placement(h)
        position = position @ R.T + np.asarray(h.placement.position, float)
        quaternion = _product(turn, quaternion)
    return np.concatenate((position, quaternion), axis=-1)


def _from_qpos(h: Hinge, x: np.ndarray) -> np.ndarray:
    """The inverse of `_to_qpos`."""
    start = h.kind.quaternion
    if start is None:
        return x
    position, quaternion = x[..., :start], unit(x[..., start:])
    if _placed(h):
        R, turn = _placement(h)
        position = (position - np.asarray(h.placement.position, float)) @ R
        quaternion = _product(rot.conjugate(turn), quaternion)
    return np.concatenate((position, quaternion), axis=-1)


def _placed(h: Hinge) -> bool:
    """Is this a free hinge that does not start at the origin of its parent?"""
    return h.kind.name == "free" and not np.array_equal(h.placement.matrix, np.eye(4))


def _placement(h: Hinge) -> tuple[np.ndarray, tuple[float, ...]]:
    R = np.asarray(h.placement.rotation, float)
    return R, tuple(map(float, rot.to_quaternion(R)))


def _product(p: tuple[float, ...], quaternion: np.ndarray) -> np.ndarray:
    """p ⊗ quaternion, for many."""
    return np.stack(rot.multiply(p, np.moveaxis(quaternion, -1, 0)), axis=-1)


def _with_classical(robot: Robot, a: Any, v: Any, sign: float) -> np.ndarray:
    """a (ours) with ± ω × v added to the linear part of every free hinge."""
    a = vector("a", a, robot.nv)
    free = [h for h in robot.hinges if h.kind.name == "free"]
    if not free:
        return a
    if v is None:
        raise ValueError("the acceleration of a free joint cannot be converted without v")
    v = vector("v", v, robot.nv)
    a = np.array(np.broadcast_to(a, np.broadcast_shapes(a.shape, v.shape)))
    for h in free:
        a[..., h.v][..., 3:] += sign * np.cross(v[..., h.v][..., :3], v[..., h.v][..., 3:])
    return a


def _to_world(joint: JointLayout, qpos: np.ndarray, x: np.ndarray) -> np.ndarray:
    """[angular; linear] of the body to MuJoCo's [linear, world; angular, body]."""
    if joint.hinge.kind.name != "free":
        return x
    w, u = _quaternion(qpos[..., joint.q])
    return _concatenated(_turned(w, u, x[..., 3:]), x[..., :3])


def _to_body(joint: JointLayout, qpos: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The inverse of `_to_world`."""
    if joint.hinge.kind.name != "free":
        return x
    w, u = _quaternion(qpos[..., joint.q])
    return _concatenated(x[..., 3:], _turned(w, -u, x[..., :3]))


def _quaternion(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    quaternion = unit(q[..., 3:])
    return quaternion[..., :1], quaternion[..., 1:]


def _turned(w: np.ndarray, u: np.ndarray, x: np.ndarray) -> np.ndarray:
    """x rotated by the unit quaternion (w, u)."""
    t = 2.0 * np.cross(u, x)
    return x + w * t + np.cross(u, t)


def _concatenated(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    lead = np.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    parts = (np.broadcast_to(x, (*lead, 3)) for x in (first, second))
    return np.concatenate(tuple(parts), axis=-1)
