"""Robots as models of Pinocchio, whose objects are `Any` here: the package has no types."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from phipsi.conventions import WORLD
from phipsi.interop.inertia import central
from phipsi.interop.pinocchio import to_pinocchio, v_order
from phipsi.model import Hinge, ModelError, Robot
from phipsi.spatial import Transform
from phipsi.typing import Array

_ONE_FREEDOM = {"revolute": "R", "prismatic": "P", "helical": "H"}
_MOST = np.finfo(float).max
"""Pinocchio's limit of what has no limit."""
_UNIT = 1.01
"""The limit of a cosine and a sine, as Pinocchio's parser of URDFs sets it."""


def to_pinocchio_model(robot: Robot) -> Any:
    """The robot as a `pinocchio.Model` with the same dynamics.

    Every hinge becomes a joint of its name, with (cos, sin) for q where it is continuous; hinges,
    bodies and frames become frames of their names, of the types JOINT, BODY and OP_FRAME. Inertias,
    armature and gravity are taken over; limits and damping too, which Pinocchio's algorithms do not
    use. Stiffness, friction, backlash and mimic relations are not. `to_pinocchio` converts states.

    The frame of a joint is that of its body, but for planar hinges whose axes are not z, x and y:
    Pinocchio's have these, so that the joint is turned, and frames and inertia of the body with it.

    Parameters
    ----------
    robot
        The robot.

    Returns
    -------
    pinocchio.Model
        The model.

    Raises
    ------
    ModelError
        If Pinocchio has no such joint.

    Examples
    --------
    >>> import numpy as np, phipsi as pp, pinocchio
    >>> robot = pp.robots.space_arm()
    >>> model = pp.interop.to_pinocchio_model(robot)
    >>> q, v = robot.random_state(0)
    >>> tau = np.ones(robot.nv)
    >>> there = pp.interop.to_pinocchio(robot, q, v, tau=tau)
    >>> a = pinocchio.aba(model, model.createData(), *there)
    >>> _, a = pp.interop.from_pinocchio(robot, there[0], a=a)
    >>> bool(np.allclose(a, pp.forward_dynamics(robot, q, v, tau)))
    True
    """
    pin = _pinocchio()
    model = pin.Model()
    model.name = robot.name
    model.gravity.linear = np.asarray(robot.gravity, float)
    own = {WORLD: pin.SE3.Identity()}
    """The frame of each body in that of its joint."""
    for body, h, parent in zip(robot.bodies, robot.hinges, robot.parents, strict=True):
        joint, turn = _joint(pin, h)
        own[body.name] = pin.SE3(turn.T, np.zeros(3))
        placement = own[h.parent] * _se3(pin, h.placement) * own[body.name].inverse()
        i = model.addJoint(parent + 1, joint, placement, h.name, *_limits(h, joint.nq))
        model.addJointFrame(i)
        model.appendBodyToJoint(i, pin.Inertia(*central(body)), own[body.name])
    for name in dict.fromkeys((*(body.name for body in robot.bodies), *robot.frames)):
        frame = robot.frame(name)
        kind = pin.FrameType.BODY if name in own else pin.FrameType.OP_FRAME
        pose = own[frame.body] * _se3(pin, frame.placement)
        model.addFrame(pin.Frame(name, robot.body_index(frame.body) + 1, pose, kind))
    for field in ("armature", "damping"):
        ours = robot.joint_data(field)
        setattr(model, field, to_pinocchio(robot, robot.neutral(), ours, joints=model)[1])
    return model


def _pinocchio() -> Any:
    """The module, if it is installed."""
    try:
        return importlib.import_module("pinocchio")
    except ImportError:
        raise ImportError("to_pinocchio_model needs Pinocchio: pip install pin") from None


def _se3(pin: Any, pose: Transform) -> Any:
    """A pose as `pinocchio.SE3`."""
    return pin.SE3(np.asarray(pose.rotation, float), np.asarray(pose.position, float))


def _joint(pin: Any, h: Hinge) -> tuple[Any, Array]:
    """Pinocchio's joint for a hinge, and the axes of the joint in the hinge's frame, as columns."""
    axes, straight = [np.asarray(u, float) for u in h.axes], np.eye(3)
    match h.kind.name:
        case "revolute" | "prismatic" | "helical":
            pitch = (float(h.pitch),) if h.kind.name == "helical" else ()
            letter = _letter(axes[0])
            if letter:
                family = _ONE_FREEDOM[h.kind.name]
                return getattr(pin, f"JointModel{family}{letter}")(*pitch), straight
            family = h.kind.name.capitalize()
            return getattr(pin, f"JointModel{family}Unaligned")(axes[0], *pitch), straight
        case "continuous":
            letter = _letter(axes[0])
            if letter:
                return getattr(pin, f"JointModelRUB{letter}")(), straight
            return pin.buildModelFromXML(_continuous(axes[0])).joints[1], straight
        case "cylindrical":
            both = pin.JointModelComposite(pin.JointModelRevoluteUnaligned(axes[0]))
            both.addJoint(pin.JointModelPrismaticUnaligned(axes[0]), pin.SE3.Identity())
            return both, straight
        case "universal":
            return pin.JointModelUniversal(*axes), straight
        case "planar":
            normal, first, second = axes
            return pin.JointModelPlanar(), np.stack([first, second, normal], axis=1)
        case "spherical":
            return pin.JointModelSpherical(), straight
        case "free":
            return pin.JointModelFreeFlyer(), straight
        case _:
            raise ModelError(f"hinge {h.name!r} is {h.kind.name}, for which Pinocchio has no joint")


def _continuous(axis: Array) -> str:
    """A URDF of one continuous joint: the only way in Python to give Pinocchio's joint an axis."""
    return (
        '<robot name=""><link name="a"/><link name="b"/><joint name="" type="continuous">'
        f'<parent link="a"/><child link="b"/><axis xyz="{" ".join(map(repr, axis.tolist()))}"/>'
        "</joint></robot>"
    )


def _letter(axis: Array) -> str:
    """X, Y or Z if the axis is one of these, else ""."""
    return "".join(np.array(["X", "Y", "Z"])[(axis == np.eye(3)).all(axis=1)])


def _limits(h: Hinge, nq: int) -> list[Array]:
    """Effort, velocity, lower and upper limits in Pinocchio's layout, nq numbers of q."""
    rates = [np.asarray(x, float)[v_order(h.kind)] for x in (h.effort, h.velocity)]
    lower, upper = (np.asarray(x, float) for x in (h.lower, h.upper))
    if nq > h.kind.nq:  # the last is an angle
        lower, upper = np.r_[lower[:-1], -_UNIT, -_UNIT], np.r_[upper[:-1], _UNIT, _UNIT]
    return [np.clip(x, -_MOST, _MOST) for x in (*rates, lower, upper)]
