"""Controllers made of controllers: on a path, and with help for the base."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from phipsi.control.gains import Gain
from phipsi.control.paths import joint_path, pose_path
from phipsi.model import Robot
from phipsi.programs import ROBOT, Parameter, Program

POSE: tuple[str, ...] = ("pose", "velocity", "acceleration")
JOINTS: tuple[str, ...] = ("target", "rate", "acceleration")


@lru_cache(maxsize=64)
def on_path(controller: Program[..., Any]) -> Program[..., Any]:
    """The controller, its target moving from `start` to `goal` within `duration` [s] and staying
    there: along `pose_path` if it controls a pose, along `joint_path` if a configuration.

    Its parameters `start`, `goal` and `duration` take the place of the target's.

    >>> from phipsi.control import on_path, resolved_acceleration
    >>> on_path(resolved_acceleration).name
    'resolved_acceleration_on_path'
    """
    if not isinstance(controller, Program):
        raise TypeError(f"on_path: {controller!r} is no program; decorate it with @pp.program")
    names = next((n for n in (POSE, JOINTS) if n[0] in controller.parameters), None)
    if names is None:
        raise TypeError(f"on_path: {controller.name} has no target that could move")
    taken = [n for n in names if n in controller.parameters]

    def law(robot: Robot, t: Any, start: Any, goal: Any, duration: Any, **others: Any) -> Any:
        path = (
            pose_path(t, duration, start, goal)
            if names is POSE
            else joint_path(robot, t, duration, start, goal)
        )
        target = dict(zip(names, path, strict=True))
        if "t" in controller.parameters:
            others["t"] = t
        return controller(robot, **{n: target[n] for n in taken}, **others)

    ends = (4, 4) if names is POSE else ("nq",)
    path = (
        Parameter("t", ()),
        Parameter("start", ends),
        Parameter("goal", ends),
        Parameter("duration", (), rule=Gain()),
    )
    parameters = {p.name: p for p in path}
    for name, p in controller.parameters.items():
        if name not in names:
            parameters[name] = replace(parameters.get(name, p), default=p.default)
    return _made(law, f"{controller.name}_on_path", [controller], parameters)


@lru_cache(maxsize=64)
def assisted(controller: Program[..., Any], by: Program[..., Any]) -> Program[..., Any]:
    """The controller of an arm together with one of its base, `by` thrusters or wheels: what those
    do is known to the arm, and the freedoms that they drive are not the arm's. What is assisted can
    be assisted again.

    >>> from phipsi.control import assisted, reaction_mode, thrusters
    >>> assisted(reaction_mode, thrusters).name
    'reaction_mode_with_thrusters'
    """
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

    def law(robot: Robot, **given: Any) -> Any:
        aid = by(robot, **{n: given[n] for n in by.parameters})
        known = aid["tau"] if given["tau"] is None else aid["tau"] + given["tau"]
        own = {n: given[n] for n in controller.parameters}
        out = controller(robot, **{**own, "active": aid["active"], "tau": known})
        told = {n: x for n, x in aid.items() if n != "active"}
        return {**told, **out, "tau": out["tau"] + aid["tau"]}

    return _made(law, f"{controller.name}_with_{by.name}", [by, controller], both)


def _made(
    law: Callable[..., Any],
    name: str,
    parts: list[Program[..., Any]],
    parameters: Mapping[str, Parameter],
) -> Program[..., Any]:
    """A program of that name and those parameters, with the documentation of its parts."""
    own = [replace(p, keyword_only=True, positional_only=False) for p in parameters.values()]
    doc = "\n\n".join(f"{p.name}: {inspect.getdoc(p)}" for p in parts)
    return Program(law, [ROBOT, *own], name=name, doc=doc)
