"""MuJoCo's layout: as ours, but the q of a free joint is the pose in the world, its v is [linear,
world axes; angular, body axes], its acceleration is the derivative of those numbers, and its force
is what they do work with."""

from __future__ import annotations

from collections.abc import Iterable
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
    vector,
)
from phipsi.model import Hinge, ModelError, Robot
from phipsi.model.mjcf_names import joint_names
from phipsi.spatial import rotation as rot
from phipsi.typing import Array, ArrayLike, ConfigurationLike, JointVectorLike

_KINDS = ("revolute", "continuous", "prismatic", "spherical", "free")


@runtime_checkable
class MjModel(Protocol):
    """The part of `mujoco.MjModel` that says where its joints are in qpos and qvel."""

    @property
    def jnt_qposadr(self) -> Array:
        """Where each joint begins in qpos."""
        ...

    @property
    def jnt_dofadr(self) -> Array:
        """Where each joint begins in qvel."""
        ...


@overload  # of variables that may all be None the result is taken for a tuple
def to_mujoco(  # pyright: ignore[reportOverlappingOverload]
    robot: Robot,
    q: ConfigurationLike,
    v: None = None,
    a: None = None,
    tau: None = None,
    *,
    joints: MjModel | Iterable[str] | None = None,
) -> Array: ...
@overload
def to_mujoco(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike | None = None,
    a: JointVectorLike | None = None,
    tau: JointVectorLike | None = None,
    *,
    joints: MjModel | Iterable[str] | None = None,
) -> tuple[Array, ...]: ...
def to_mujoco(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike | None = None,
    a: JointVectorLike | None = None,
    tau: JointVectorLike | None = None,
    *,
    joints: MjModel | Iterable[str] | None = None,
) -> Array | tuple[Array, ...]:
    """q, or a tuple of q and those of v, a and tau that are given, in the layout of MuJoCo.

    These are qpos, qvel, qacc and a joint force such as qfrc_applied.

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv), optional
        Joint velocities [rad/s or m/s].
    a : (…, nv), optional
        Joint accelerations [rad/s² or m/s²]. Those of a free joint need v too.
    tau : (…, nv), optional
        Joint forces [N·m or N].
    joints
        The order of the joints in MuJoCo: its `MjModel`, or a sequence of names; by default the
        order of the robot.

    Returns
    -------
    array or tuple of arrays
        qpos (…, nq), or (qpos, …) with (…, nv) for each of v, a and tau that is given.

    Raises
    ------
    ModelError
        If `joints` does not name each hinge once, or if MuJoCo has no such joint.
    ValueError
        If a is given without v, and the robot has a free joint.

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.quadruped()
    >>> qpos, qvel = pp.interop.to_mujoco(robot, *robot.random_state(0))
    >>> qpos.shape, qvel.shape
    ((19,), (18,))
    """
    layout = _layout(robot, joints)
    if a is not None:
        a = _with_classical(robot, a, v, 1.0)
    moves = [Move(j.hinge.q, j.q, partial(_to_qpos, j.hinge)) for j in layout]
    qpos = moved("q", q, (robot.nq, robot.nq), moves)
    moves = [Move(j.hinge.v, j.v, partial(_to_world, j, qpos)) for j in layout]
    return results(qpos, moved_rates(v, a, tau, robot.nv, moves))


@overload  # of variables that may all be None the result is taken for a tuple
def from_mujoco(  # pyright: ignore[reportOverlappingOverload]
    robot: Robot,
    q: ConfigurationLike,
    v: None = None,
    a: None = None,
    tau: None = None,
    *,
    joints: MjModel | Iterable[str] | None = None,
) -> Array: ...
@overload
def from_mujoco(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike | None = None,
    a: JointVectorLike | None = None,
    tau: JointVectorLike | None = None,
    *,
    joints: MjModel | Iterable[str] | None = None,
) -> tuple[Array, ...]: ...
def from_mujoco(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike | None = None,
    a: JointVectorLike | None = None,
    tau: JointVectorLike | None = None,
    *,
    joints: MjModel | Iterable[str] | None = None,
) -> Array | tuple[Array, ...]:
    """The inverse of `to_mujoco`: q, or a tuple of q and those of v, a and tau that are given.

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration in the layout of MuJoCo, qpos.
    v : (…, nv), optional
        Joint velocities, qvel.
    a : (…, nv), optional
        Joint accelerations, qacc. Those of a free joint need v too.
    tau : (…, nv), optional
        Joint forces, such as qfrc_applied.
    joints
        The order of the joints in MuJoCo: its `MjModel`, or a sequence of names; by default the
        order of the robot.

    Returns
    -------
    array or tuple of arrays
        q (…, nq), or (q, …) with (…, nv) for each of v, a and tau that is given, as phipsi lays
        them out.

    Raises
    ------
    ModelError
        If `joints` does not name each hinge once, or if MuJoCo has no such joint.
    ValueError
        If a is given without v, and the robot has a free joint.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.quadruped()
    >>> q, v = robot.random_state(0)
    >>> qpos, qvel = pp.interop.to_mujoco(robot, q, v)
    >>> np.allclose(pp.interop.from_mujoco(robot, qpos, qvel)[1], v)
    True
    """
    layout = _layout(robot, joints)
    qpos = vector("q", q, robot.nq)
    moves = [Move(j.q, j.hinge.q, partial(_from_qpos, j.hinge)) for j in layout]
    ours = moved("q", qpos, (robot.nq, robot.nq), moves)
    moves = [Move(j.v, j.hinge.v, partial(_to_body, j, qpos)) for j in layout]
    v, a, tau = moved_rates(v, a, tau, robot.nv, moves)
    if a is not None:
        a = _with_classical(robot, a, v, -1.0)
    return results(ours, [v, a, tau])


def check_kinds(robot: Robot) -> None:
    """Refuse a robot with a hinge for which MuJoCo has no joint."""
    for h in robot.hinges:
        if h.kind.name not in _KINDS:
            raise ModelError(f"hinge {h.name!r} is {h.kind.name}, which MuJoCo does not have")


def _layout(robot: Robot, joints: MjModel | Iterable[str] | None) -> list[JointLayout]:
    """The slices of each hinge in MuJoCo's qpos and qvel."""
    check_kinds(robot)
    if not isinstance(joints, MjModel):
        return in_order(robot, joints, lambda kind: kind.nq)
    names = joint_names(joints)
    check_names(robot, names)
    layout: list[JointLayout] = []
    for name, q, v in zip(names, joints.jnt_qposadr, joints.jnt_dofadr, strict=True):
        h = robot.hinge(name)
        layout.append(JointLayout(h, slice(q, q + h.kind.nq), slice(v, v + h.kind.nv)))
    return layout


def _to_qpos(h: Hinge, x: Array) -> Array:
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


def _from_qpos(h: Hinge, x: Array) -> Array:
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
    """Whether this is a free hinge whose placement in its parent is not the identity."""
    return h.kind.name == "free" and not np.array_equal(h.placement.matrix, np.eye(4))


def _placement(h: Hinge) -> tuple[Array, tuple[float, ...]]:
    """The rotation of a hinge's placement, as a matrix and as a quaternion."""
    R = np.asarray(h.placement.rotation, float)
    return R, tuple(map(float, rot.to_quaternion(R)))


def _product(p: tuple[float, ...], quaternion: Array) -> Array:
    """p ⊗ quaternion, for quaternions (…, 4)."""
    return np.stack(rot.multiply(p, np.moveaxis(quaternion, -1, 0)), axis=-1)


def _with_classical(robot: Robot, a: ArrayLike, v: ArrayLike | None, sign: float) -> Array:
    """a in our layout, with ± ω × v added to the linear part of every free hinge."""
    rates = vector("a", a, robot.nv)
    free = [h for h in robot.hinges if h.kind.name == "free"]
    if not free:
        return rates
    if v is None:
        raise ValueError("the acceleration of a free joint cannot be converted without v")
    V = vector("v", v, robot.nv)
    out = np.array(np.broadcast_to(rates, np.broadcast_shapes(rates.shape, V.shape)))
    for h in free:
        out[..., h.v][..., 3:] += sign * np.cross(V[..., h.v][..., :3], V[..., h.v][..., 3:])
    return out


def _to_world(joint: JointLayout, qpos: Array, x: Array) -> Array:
    """[angular; linear] of the body to MuJoCo's [linear, world; angular, body]."""
    if joint.hinge.kind.name != "free":
        return x
    w, u = _quaternion(qpos[..., joint.q])
    return _concatenated(_turned(w, u, x[..., 3:]), x[..., :3])


def _to_body(joint: JointLayout, qpos: Array, x: Array) -> Array:
    """The inverse of `_to_world`."""
    if joint.hinge.kind.name != "free":
        return x
    w, u = _quaternion(qpos[..., joint.q])
    return _concatenated(x[..., 3:], _turned(w, -u, x[..., :3]))


def _quaternion(q: Array) -> tuple[Array, Array]:
    """Scalar (…, 1) and vector (…, 3) of the quaternion in the q of a free joint."""
    quaternion = unit(q[..., 3:])
    return quaternion[..., :1], quaternion[..., 1:]


def _turned(w: Array, u: Array, x: Array) -> Array:
    """x rotated by the unit quaternion (w, u)."""
    t = 2.0 * np.cross(u, x)
    return x + w * t + np.cross(u, t)


def _concatenated(first: Array, second: Array) -> Array:
    """[first; second] of vectors (…, 3) whose batches broadcast."""
    lead = np.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    parts = (np.broadcast_to(x, (*lead, 3)) for x in (first, second))
    return np.concatenate(tuple(parts), axis=-1)
