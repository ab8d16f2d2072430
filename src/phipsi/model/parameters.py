"""The numbers of a robot that can become inputs of a kernel, and their names.

gravity             (3,)   [m/s²], world frame
inertia:BODY        (10,)  as in conventions.py: of a moving body with all that is welded to it,
                           or of a welded body alone, in its own frame
armature:HINGE      (nv of the hinge,); likewise damping, stiffness, friction
placement:HINGE     (7,)   [position; quaternion] of the hinge frame in the parent's
frame:FRAME         (7,)   likewise of a named frame in its body's
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model.description import R, RobotDescription
from phipsi.model.errors import ModelError
from phipsi.model.parts import Body, WeldedBody
from phipsi.spatial import SpatialInertia, Transform
from phipsi.spatial import rotation as rot
from phipsi.typing import Array

_OF_HINGE = ("armature", "damping", "stiffness", "friction")


def get(robot: RobotDescription, name: str) -> Annotated[Array, "n"]:
    """The value of a parameter."""
    value: Array
    if not isinstance(name, str):
        raise ModelError(f"robot {robot.name!r} has no parameter {name!r}: it is no name")
    what, _, target = name.partition(":")
    if name == "gravity":
        value = robot.gravity
    elif what == "inertia":
        body, welded = _body(robot, target)
        value = (welded or body).inertia.parameters
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
        old, welded = _body(robot, target)
        given = SpatialInertia.of_parameters(value.tolist())
        new = replace(old, inertia=given) if welded is None else _loaded(old, welded, given)
        return replace(robot, bodies=tuple(new if b is old else b for b in robot.bodies))
    if what == "frame":
        frame = replace(robot.frame(target), placement=_pose(value))
        return replace(robot, frames={**robot.frames, target: frame})
    chosen = robot.hinge(target)
    changed = replace(chosen, **{what: _pose(value) if what == "placement" else value})
    return replace(robot, hinges=tuple(changed if h is chosen else h for h in robot.hinges))


def put_all(robot: R, values: Mapping[str, Annotated[Array, "n"]]) -> R:
    """The robot with other values of some parameters. The inertia of a moving body includes those
    welded to it, so that these are put after it."""
    for welded in (False, True):
        for name, value in values.items():
            if welded == _is_welded(robot, name):
                robot = put(robot, name, value)
    return robot


def _is_welded(robot: RobotDescription, parameter: str) -> bool:
    """Whether a parameter is the inertia of a welded body."""
    what, _, target = parameter.partition(":")
    return what == "inertia" and _body(robot, target)[1] is not None


def _body(robot: RobotDescription, name: str) -> tuple[Body, WeldedBody | None]:
    """The moving body of this name, or the one with a welded body of this name, and the latter."""
    moving = [b.name for b in robot.bodies]
    welded = {w.name: (b, w) for b in robot.bodies for w in b.welded}
    if name in welded:
        return welded[name]
    if name == WORLD or (name not in moving and name in robot.frames):
        on = robot.frame(name).body
        what = "is fixed to the world" if on == WORLD else f"is a frame of body {on!r}"
        raise ModelError(f"{name!r} {what} and has no inertia that moves; name a body")
    if name not in moving:
        raise robot.unknown("body", name, [*moving, *welded])
    return robot.bodies[moving.index(name)], None


def _loaded(body: Body, old: WeldedBody, inertia: SpatialInertia) -> Body:
    """The body with another inertia of a body that is welded to it."""
    new = replace(old, inertia=inertia)
    welded = tuple(new if w is old else w for w in body.welded)
    return replace(body, inertia=body.without(old) + new.carried, welded=welded)


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
