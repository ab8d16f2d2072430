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
from typing import Annotated, Any, cast

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model import validate
from phipsi.model.description import R, RobotDescription
from phipsi.model.errors import ModelError
from phipsi.model.hinge_checks import NOT_NEGATIVE
from phipsi.model.parts import Body
from phipsi.model.untrusted import quoted
from phipsi.spatial import SpatialInertia, Transform
from phipsi.spatial import rotation as rot
from phipsi.typing import Array, ArrayLike

_OF_HINGE = ("armature", "damping", "stiffness", "friction")


def get(robot: RobotDescription, name: str) -> Annotated[Array, "n"]:
    """The value of a parameter."""
    value: Array
    validate.of_class("the name of a parameter", name, str)
    what, _, target = name.partition(":")
    what = what if target else ""
    if name == "gravity":
        value = robot.gravity
    elif what == "inertia":
        i, k = _place(robot, target)
        body = robot.bodies[i]
        value = (body if k is None else body.welded[k]).inertia.parameters
    elif what in _OF_HINGE:
        value = getattr(robot.hinge(target), what)
    elif what == "placement":
        value = _numbers(robot.hinge(target).placement)
    elif what == "frame":
        value = _numbers(robot.frame(target).placement)
    else:
        known = ", ".join(f"'{x}:HINGE'" for x in (*_OF_HINGE, "placement"))
        raise ModelError(
            f"no parameter {quoted(name)}: use 'gravity', 'inertia:BODY', {known} or 'frame:FRAME'"
        )
    array = np.array(value, object)
    return array.astype(float) if all(isinstance(x, (int, float)) for x in array) else array


def put_all(robot: R, values: Mapping[str, ArrayLike]) -> R:
    """The robot with other values of some parameters: traced numbers, or checked numbers. The
    inertia of a moving body includes those welded to it, so that these are put after it."""
    if not values:
        return robot
    bodies, hinges = list(robot.bodies), list(robot.hinges)
    frames, gravity = dict(robot.frames), robot.gravity
    for name in sorted(values, key=lambda name: _is_welded(robot, name)):
        value = _checked(robot, name, values[name])
        what, _, target = name.partition(":")
        if what == "gravity":
            gravity = value
        elif what == "inertia":
            i, k = _place(robot, target)
            given = SpatialInertia.of_parameters(value.tolist())
            bodies[i] = (
                replace(bodies[i], inertia=given) if k is None else _loaded(bodies[i], k, given)
            )
        elif what == "frame":
            frames[target] = replace(robot.frame(target), placement=_pose(value))
        else:
            i = robot.body_index(robot.hinge(target).child)
            new = _pose(value) if what == "placement" else value
            hinges[i] = replace(hinges[i], **{what: new})
    return replace(
        robot, bodies=tuple(bodies), hinges=tuple(hinges), frames=frames, gravity=gravity
    )


def _is_welded(robot: RobotDescription, parameter: str) -> bool:
    """Whether a parameter is the inertia of a welded body."""
    validate.of_class("the name of a parameter", parameter, str)
    what, _, target = parameter.partition(":")
    return what == "inertia" and bool(target) and _place(robot, target)[1] is not None


def _place(robot: RobotDescription, name: str) -> tuple[int, int | None]:
    """The number of the moving body of this name, or of the one with a welded body of this name
    and the number of the latter."""
    if name in robot.welded_places:
        return robot.welded_places[name]
    if name == WORLD or (name not in robot.moving and name in robot.frames):
        on = robot.frame(name).body
        what = "is fixed to the world" if on == WORLD else f"is a frame of body {quoted(on)}"
        raise ModelError(f"{quoted(name)} {what} and has no inertia that moves; name a body")
    if name not in robot.moving:
        raise robot.unknown("body", name, [*robot.moving, *robot.welded_places])
    return robot.moving[name], None


def _loaded(body: Body, k: int, inertia: SpatialInertia) -> Body:
    """The body with another inertia of the k-th body that is welded to it."""
    old = body.welded[k]
    new = replace(old, inertia=inertia)
    welded = (*body.welded[:k], new, *body.welded[k + 1 :])
    return replace(body, inertia=body.without(old) + new.carried, welded=welded)


def _checked(robot: RobotDescription, name: str, given: ArrayLike) -> Array:
    """The value, which has the shape of the parameter, and is possible if it is not traced."""
    where, expected = f"parameter {quoted(name)}", get(robot, name).shape
    if _traced(given):
        value = rot.scalars(given)
        if value.shape != expected:
            raise ModelError(f"{where} has shape {value.shape}, needs {expected}")
        return value
    value = validate.numbers(where, given, expected)
    value.flags.writeable = False
    what = name.partition(":")[0]
    if what == "inertia" and value[0] < 0:
        raise ModelError(f"{where} has negative mass {value[0]:g} kg")
    if what == "inertia" and value[0] == 0 and value[1:4].any():
        raise ModelError(f"{where} has a first moment of mass but no mass; give it a mass")
    if what in NOT_NEGATIVE and (value < 0).any():
        raise ModelError(f"{where} is negative; give zero or more")
    if what in ("placement", "frame") and not np.any(value[3:]):
        raise ModelError(f"{where} has a zero quaternion")
    return value


def _traced(given: ArrayLike) -> bool:
    """Whether one of the given numbers is traced."""
    row: Any = cast("Array", given).ravel() if isinstance(given, np.ndarray) else given
    return isinstance(given, np.ndarray | list | tuple) and any(hasattr(x, "sqrt") for x in row)


def _numbers(placement: Transform) -> Annotated[Array, "7"]:
    """[position; quaternion] of a pose."""
    return np.concatenate((placement.position, rot.to_quaternion(placement.rotation)))


def _pose(value: Annotated[Array, "7"]) -> Transform:
    """The pose of [position; quaternion]."""
    x, y, z, *quaternion = value.tolist()
    return Transform(rot.from_quaternion(quaternion), rot.vector(x, y, z))
