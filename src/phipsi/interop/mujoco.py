"""MuJoCo's layout: as ours, but a free joint has v = [linear, world axes; angular, body axes], its
acceleration is the derivative of those numbers, and its force is what they do work with."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from phipsi.interop.layout import (
    Move,
    Place,
    check_names,
    in_order,
    moved,
    moved_rates,
    results,
    unit,
    vector,
)
from phipsi.model import ModelError, Robot
from phipsi.model.mjcf import joint_names

_KINDS = ("revolute", "continuous", "prismatic", "spherical", "free")


def to_mujoco(
    robot: Robot, q: Any, v: Any = None, a: Any = None, tau: Any = None, *, joints: Any = None
) -> Any:
    """q, or the tuple of q and those of v, a and tau that are given, as MuJoCo lays them out:
    qpos, qvel, qacc and a joint force such as qfrc_applied.

    Arrays have any leading batch shape. `joints` says in which order MuJoCo has the joints: its
    `MjModel`, or a sequence of names; default as in `robot`. The a of a free joint needs v.
    """
    places = _places(robot, joints)
    if a is not None:
        a = _with_classical(robot, a, v, 1.0)
    moves = [Move(p.hinge.q, p.q, partial(_normalized, p)) for p in places]
    qpos = moved("q", q, (robot.nq, robot.nq), moves)
    moves = [Move(p.hinge.v, p.v, partial(_to_world, p, qpos)) for p in places]
    return results([qpos, *moved_rates(v, a, tau, robot.nv, moves)])


def from_mujoco(
    robot: Robot, q: Any, v: Any = None, a: Any = None, tau: Any = None, *, joints: Any = None
) -> Any:
    """The inverse of `to_mujoco`."""
    places = _places(robot, joints)
    moves = [Move(p.q, p.hinge.q, partial(_normalized, p)) for p in places]
    ours = moved("q", q, (robot.nq, robot.nq), moves)
    moves = [Move(p.v, p.hinge.v, partial(_to_body, p, ours)) for p in places]
    v, a, tau = moved_rates(v, a, tau, robot.nv, moves)
    if a is not None:
        a = _with_classical(robot, a, v, -1.0)
    return results([ours, v, a, tau])


def _places(robot: Robot, joints: Any) -> list[Place]:
    for h in robot.hinges:
        if h.kind.name not in _KINDS:
            raise ModelError(f"hinge {h.name!r} is {h.kind.name}, which MuJoCo does not have")
    if joints is None or not hasattr(joints, "jnt_qposadr"):
        return in_order(robot, joints, lambda kind: kind.nq)
    names = joint_names(joints)
    check_names(robot, names)
    places = []
    for name, q, v in zip(names, joints.jnt_qposadr, joints.jnt_dofadr, strict=True):
        h = robot.hinge(name)
        places.append(Place(h, slice(q, q + h.kind.nq), slice(v, v + h.kind.nv)))
    return places


def _normalized(place: Place, x: np.ndarray) -> np.ndarray:
    start = place.hinge.kind.quaternion
    if start is None:
        return x
    return np.concatenate((x[..., :start], unit(x[..., start:])), axis=-1)


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


def _to_world(place: Place, qpos: np.ndarray, x: np.ndarray) -> np.ndarray:
    """[angular; linear] of the body to MuJoCo's [linear, world; angular, body]."""
    if place.hinge.kind.name != "free":
        return x
    w, u = _quaternion(qpos[..., place.q])
    return _concatenated(_turned(w, u, x[..., 3:]), x[..., :3])


def _to_body(place: Place, q: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The inverse of `_to_world`, with q as ours."""
    if place.hinge.kind.name != "free":
        return x
    w, u = _quaternion(q[..., place.hinge.q])
    return _concatenated(x[..., 3:], _turned(w, -u, x[..., :3]))


def _quaternion(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return q[..., 3:4], q[..., 4:]


def _turned(w: np.ndarray, u: np.ndarray, x: np.ndarray) -> np.ndarray:
    """x rotated by the unit quaternion (w, u)."""
    t = 2.0 * np.cross(u, x)
    return x + w * t + np.cross(u, t)


def _concatenated(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    lead = np.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    parts = (np.broadcast_to(x, (*lead, 3)) for x in (first, second))
    return np.concatenate(tuple(parts), axis=-1)
