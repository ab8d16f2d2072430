"""Robots as models of MuJoCo, whose objects are `Any` here: the package has no types."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from phipsi.conventions import WORLD
from phipsi.interop.inertia import central
from phipsi.interop.mujoco import check_kinds
from phipsi.model import Body, Hinge, ModelError, Robot, untrusted
from phipsi.spatial import rotation as rot
from phipsi.typing import Array, ArrayLike

_TYPES = {
    "revolute": "HINGE",
    "continuous": "HINGE",
    "prismatic": "SLIDE",
    "spherical": "BALL",
    "free": "FREE",
}
ROUNDING = 1e-12
"""How far the largest principal moment of a flat body may exceed the sum of the other two by
rounding (relative); MuJoCo allows no excess, so that it is cut off."""


def to_mujoco_model(robot: Robot) -> Any:
    """The robot as a `mujoco.MjModel` with the same dynamics: `to_mujoco_spec`, compiled.

    Parameters
    ----------
    robot
        The robot.

    Returns
    -------
    mujoco.MjModel
        The model.

    Raises
    ------
    ModelError
        If MuJoCo has no such joint, or refuses the robot.

    Examples
    --------
    >>> import mujoco, numpy as np, phipsi as pp
    >>> robot = pp.robots.quadruped()
    >>> model = pp.interop.to_mujoco_model(robot)
    >>> data = mujoco.MjData(model)
    >>> q, v = robot.random_state(0)
    >>> data.qpos, data.qvel = pp.interop.to_mujoco(robot, q, v, joints=model)
    >>> mujoco.mj_forward(model, data)
    >>> a = pp.interop.from_mujoco(robot, data.qpos, data.qvel, data.qacc, joints=model)[2]
    >>> bool(np.allclose(a, pp.forward_dynamics(robot, q, v, np.zeros(robot.nv))))
    True
    """
    try:
        return to_mujoco_spec(robot).compile()
    except ModelError:
        raise
    except ValueError as error:
        said = untrusted.quoted(" ".join(str(error).split()), 300)
        raise ModelError(f"MuJoCo refuses robot {robot.name!r}: {said}") from None


def to_mujoco_spec(robot: Robot) -> Any:
    """The robot as a `mujoco.MjSpec`, to be changed before it is compiled.

    Every hinge becomes a joint and every body a body of its name, every frame a site. Inertias,
    armature and gravity are taken over. Limits are in `jnt_range`, and do not act unless
    `jnt_limited` of the joint is set. Springs, dampers, friction and backlash are not taken over,
    for MuJoCo adds them to the joint forces, where phipsi has them in `passive_forces`; nor are
    velocity and effort limits, mimic relations and shapes. Sites can be held together, as `pp.Loop`
    and `pp.Grasp` hold frames. MuJoCo's joints are in depth-first order, which
    `to_mujoco(…, joints=model)` takes into account.

    Parameters
    ----------
    robot
        The robot.

    Returns
    -------
    mujoco.MjSpec
        The specification.

    Raises
    ------
    ModelError
        If MuJoCo has no such joint, or no such body.

    Examples
    --------
    >>> import mujoco, phipsi as pp
    >>> spec = pp.interop.to_mujoco_spec(pp.robots.four_bar())
    >>> pin = spec.add_equality(type=mujoco.mjtEq.mjEQ_CONNECT, objtype=mujoco.mjtObj.mjOBJ_SITE)
    >>> pin.name1, pin.name2 = "coupler_tip", "rocker_tip"
    >>> spec.compile().neq
    1
    """
    mj = _mujoco()
    check_kinds(robot)
    spec = mj.MjSpec()
    spec.modelname = robot.name
    spec.compiler.degree = False
    spec.option.gravity = _numbers(robot.gravity)
    nodes = {WORLD: spec.worldbody}
    for body, h in zip(robot.bodies, robot.hinges, strict=True):
        nodes[body.name] = _add_body(nodes[h.parent], body, h)
        _add_joint(mj, nodes[body.name], h)
    for frame in robot.frames.values():
        pose = frame.placement
        nodes[frame.body].add_site(
            name=frame.name, pos=_numbers(pose.position), quat=_quaternion(pose.rotation)
        )
    return spec


def _mujoco() -> Any:
    """The module, if it is installed."""
    try:
        return importlib.import_module("mujoco")
    except ImportError:
        raise ImportError("to_mujoco_model needs mujoco: pip install 'phipsi[mjcf]'") from None


def _add_body(parent: Any, body: Body, h: Hinge) -> Any:
    """A body of the specification, with its inertia and its place in the parent."""
    m, com, J = central(body)
    (first, second, third), axes = np.linalg.eigh(J)
    if not (m > 0 and first > 0):
        raise ModelError(
            f"body {body.name!r} has no mass, or no inertia about an axis; MuJoCo needs both of a "
            "body that moves"
        )
    if first + second < third < (first + second) * (1 + ROUNDING):
        third = first + second
    axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
    return parent.add_body(
        name=body.name, mass=m, ipos=com, iquat=_quaternion(axes), inertia=[first, second, third],
        explicitinertial=True, pos=_numbers(h.placement.position),
        quat=_quaternion(h.placement.rotation),
    )  # fmt: skip


def _add_joint(mj: Any, body: Any, h: Hinge) -> None:
    """A joint of the specification."""
    armature = {float(x) for x in h.armature}
    if h.kind.name == "free" and h.parent != WORLD:
        raise ModelError(f"hinge {h.name!r} is free on {h.parent!r}; in MuJoCo only the world can")
    if h.kind.name == "free" and armature != {0.0}:
        raise ModelError(
            f"hinge {h.name!r} is free with armature; MuJoCo's is of velocities in world axes"
        )
    if len(armature) > 1:
        raise ModelError(
            f"hinge {h.name!r} has more than one armature; MuJoCo has one for all of a joint"
        )
    joint = body.add_joint(name=h.name, type=getattr(mj.mjtJoint, f"mjJNT_{_TYPES[h.kind.name]}"))
    joint.armature = armature.pop()
    if h.axes:
        joint.axis = _numbers(h.axes[0])
        joint.limited = int(mj.mjtLimited.mjLIMITED_FALSE)
        limits = np.array([h.lower[0], h.upper[0]], float)
        if np.isfinite(limits).all():
            joint.range = limits


def _quaternion(rotation: Array) -> Array:
    return _numbers(rot.to_quaternion(rotation))


def _numbers(x: ArrayLike) -> Array:
    return np.asarray(x, float)
