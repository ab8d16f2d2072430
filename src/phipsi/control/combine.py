"""Controllers made of others: with a target on a path, and with help for the base."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from phipsi.control.composition import TARGETS, Part, PathInputs, Turn, act_in_turn, path_kind
from phipsi.control.gains import Gain
from phipsi.model import Robot
from phipsi.programs import ROBOT, Parameter, Program, identity
from phipsi.typing import Array, Scalar


@lru_cache(maxsize=64)
def on_path(controller: Program[..., Any]) -> Program[..., Any]:
    """The controller with a target that moves along a path.

    The target moves from `start` to `goal` within `duration` [s] and stays there: along `pose_path`
    if the controller controls a pose, along `joint_path` if it controls a configuration. The
    parameters `start`, `goal` and `duration` take the place of the target and its derivatives.

    Parameters
    ----------
    controller
        A program with a parameter `pose` (4, 4) or `target` (nq,).

    Returns
    -------
    Program
        The controller with the parameters t, start, goal, duration, and its others.

    Raises
    ------
    TypeError
        The controller is no program, or has no target.

    Examples
    --------
    >>> from phipsi.control import on_path, resolved_acceleration
    >>> on_path(resolved_acceleration).name
    'resolved_acceleration_on_path'
    """
    if not isinstance(controller, Program):
        raise TypeError(f"on_path: {controller!r} is no program; decorate it with @pp.program")
    kind = path_kind(controller)
    if kind is None:
        raise TypeError(f"on_path: {controller.name} has no target that could move")
    part = Part(controller.name, controller, path=kind)

    def control(
        robot: Robot, t: Scalar, start: Array, goal: Array, duration: Scalar, **others: Any
    ) -> Any:
        given = {**others, "t": t} if part.takes("t") else others
        targets = part.targets(robot, PathInputs(t, duration, start, goal))
        return controller(robot, **targets, **given)

    ends = (4, 4) if kind == "pose" else ("nq",)
    path = (
        Parameter("t", ()),
        Parameter("start", ends),
        Parameter("goal", ends),
        Parameter("duration", (), rule=Gain()),
    )
    parameters = {p.name: p for p in path}
    for name, p in controller.parameters.items():
        if name not in TARGETS[kind]:
            parameters[name] = replace(parameters.get(name, p), default=p.default)
    made_by = (on_path, (controller,))
    return _made(control, f"{controller.name}_on_path", [controller], parameters, made_by)


@lru_cache(maxsize=64)
def assisted(controller: Program[..., Any], by: Program[..., Any]) -> Program[..., Any]:
    """The controller of an arm together with a controller of its base: thrusters or wheels.

    The controller of the arm knows the joint forces of the other, and does not use the freedoms
    that the other drives. The result can be assisted again.

    Parameters
    ----------
    controller
        The controller of the arm, with parameters `active` and `tau`.
    by
        The controller of the base, such as `thrusters` or `wheel_attitude_hold`.

    Returns
    -------
    Program
        A controller with the parameters of both; those of the same name are one.

    Raises
    ------
    TypeError
        The controller of the arm takes no `active` or `tau`, both have a memory, or parameters of
        the same name have different defaults.

    Examples
    --------
    >>> from phipsi.control import assisted, reaction_mode, thrusters
    >>> assisted(reaction_mode, thrusters).name
    'reaction_mode_with_thrusters'
    """
    for part in (controller, by):
        if not isinstance(part, Program):
            raise TypeError(f"assisted: {part!r} is no program; decorate it with @pp.program")
    for name in ("active", "tau"):
        if name not in controller.parameters:
            raise TypeError(f"assisted: {controller.name} takes no {name!r}, so it takes no help")
    if "memory" in by.parameters and "memory" in controller.parameters:
        raise TypeError(
            f"assisted: both {controller.name} and {by.name} have a memory of their own"
        )
    both = {**by.parameters, **controller.parameters}
    for name in set(by.parameters) & set(controller.parameters):
        if by.parameters[name].default != controller.parameters[name].default:
            raise TypeError(f"assisted: {controller.name} and {by.name} differ in {name!r}")

    parts = (Part(by.name, by), Part(controller.name, controller))

    def control(robot: Robot, **given: Any) -> dict[str, Any]:
        own = {n: x for n, x in given.items() if n not in ("active", "tau")}
        turns = (Turn(part, {n: x for n, x in own.items() if part.takes(n)}) for part in parts)
        tau, (aid, out) = act_in_turn(robot, turns, {"active": given["active"]}, given["tau"])
        aid.pop("active", None)
        return {"tau": tau, **aid, **out}

    made_by = (assisted, (controller, by))
    return _made(control, f"{controller.name}_with_{by.name}", [by, controller], both, made_by)


def _made(
    function: Callable[..., Any],
    name: str,
    parts: list[Program[..., Any]],
    parameters: Mapping[str, Parameter],
    made_by: tuple[Callable[..., Any], tuple[Any, ...]],
) -> Program[..., Any]:
    """A program of that name and those parameters, with the documentation of its parts."""
    own = [replace(p, keyword_only=True, positional_only=False) for p in parameters.values()]
    doc = "\n\n".join(f"{p.name}: {inspect.getdoc(p)}" for p in parts)
    return Program(
        function,
        [ROBOT, *own],
        name=name,
        doc=doc,
        content_key=identity((name, *parts)),
        made_by=made_by,
    )
