"""The numbers of a robot that can become inputs of a kernel, and their names.

gravity             (3,)   [m/s²], world frame
inertia:BODY        (10,)  as in conventions.py
armature:HINGE      (nv of the hinge,); likewise damping, stiffness, friction
placement:HINGE     (7,)   [position; quaternion] of the hinge frame in the parent's
frame:FRAME         (7,)   likewise of a named frame in its body's
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model.description import R, RobotDescription
from phipsi.model.errors import ModelError
from phipsi.model.parts import Body
from phipsi.spatial import SpatialInertia, Transform
from phipsi.spatial import rotation as rot
from phipsi.typing import Array

_OF_HINGE = ("armature", "damping", "stiffness", "friction")


def get(robot: RobotDescription, name: str) -> Annotated[Array, "n"]:
    """The value of a parameter."""
    value: Array
    what, _, target = name.partition(":")
    if name == "gravity":
        value = robot.gravity
    elif what == "inertia":
        value = _body(robot, target).inertia.parameters
    elif what in _OF_HINGE:
        value = getattr(robot.hinge(target), what)
    elif what == "placement":
        value = _numbers(robot.hinge(target).placement)
    elif what == "frame":
        value = _numbers(robot.frame(target).placement)
    else:
        known = ", ".join(f"'{x}:HINGE'" for x in (*_OF_HINGE, "placement"))
        raise ModelError(
            f"no parameter {name!r}: use 'gravity', 'inertia:BODY', {known} or 'frame:FRAME'"
        )
    array = np.array(value, object)
    return array.astype(float) if all(isinstance(x, (int, float)) for x in array) else array


def put(robot: R, name: str, value: Annotated[Array, "n"]) -> R:
    """The robot with another value of a parameter: traced numbers, or checked numbers."""
    expected = get(robot, name).shape
    if value.shape != expected:
        raise ModelError(f"parameter {name!r} has shape {value.shape}, needs {expected}")
    if all(isinstance(x, (int, float)) for x in value):
        value = value.astype(float)
        value.flags.writeable = False
        _check(name, value)
    what, _, target = name.partition(":")
    if what == "gravity":
        return replace(robot, gravity=value)
    if what == "inertia":
        old = _body(robot, target)
        new = replace(old, inertia=SpatialInertia.of_parameters(value.tolist()))
        return replace(robot, bodies=tuple(new if b is old else b for b in robot.bodies))
    if what == "frame":
        frame = replace(robot.frame(target), placement=_pose(value))
        return replace(robot, frames={**robot.frames, target: frame})
    chosen = robot.hinge(target)
    changed = replace(chosen, **{what: _pose(value) if what == "placement" else value})
    return replace(robot, hinges=tuple(changed if h is chosen else h for h in robot.hinges))


def _body(robot: RobotDescription, name: str) -> Body:
    if name == WORLD:
        raise ModelError("the world has no inertia; name a body")
    return robot.bodies[robot.body_index(name)]


def _check(name: str, value: Array) -> None:
    if not np.isfinite(value).all():
        raise ModelError(f"parameter {name!r} is {value.tolist()}, every number must be finite")
    if name.startswith("inertia:") and value[0] < 0:
        raise ModelError(f"parameter {name!r} has negative mass {value[0]:g} kg")
    if name.startswith(("placement:", "frame:")) and not np.any(value[3:]):
        raise ModelError(f"parameter {name!r} has a zero quaternion")


def _numbers(placement: Transform) -> Annotated[Array, "7"]:
    """[position; quaternion] of a pose."""
    return np.concatenate((placement.position, rot.to_quaternion(placement.rotation)))


def _pose(value: Annotated[Array, "7"]) -> Transform:
    """The pose of [position; quaternion]."""
    x, y, z, *quaternion = value.tolist()
    return Transform(rot.from_quaternion(quaternion), rot.vector(x, y, z))
