"""Controllers made of controllers: on a path, and with help for the base."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from phipsi.control.gains import Gain, Gains
from phipsi.control.paths import joint_path, pose_path
from phipsi.model import Robot
from phipsi.sweeps import Program

Parameters = dict[str, inspect.Parameter]
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

    own = {n: p for n, p in controller.parameters.items() if n not in names}
    ends = {n: (4, 4) if names is POSE else ("nq",) for n in ("start", "goal")}
    return _made(
        law,
        f"{controller.name}_on_path",
        [controller],
        {**_required("t", "start", "goal", "duration"), **own},
        {"t": (), "duration": (), **ends},
        {"duration": Gain()},
    )


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

    return _made(law, f"{controller.name}_with_{by.name}", [by, controller], both, {}, {})


def _required(*names: str) -> Parameters:
    return {n: inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in names}


def _made(
    law: Callable[..., Any],
    name: str,
    parts: list[Program[..., Any]],
    parameters: Parameters,
    shapes: Mapping[str, Any],
    gains: Mapping[str, Gain],
) -> Program[..., Any]:
    """A program of that name and those parameters, with all that is known of its parts."""
    robot = inspect.Parameter("robot", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    own = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters.values()]
    law.__name__ = law.__qualname__ = name
    law.__doc__ = "\n\n".join(f"{p.name}: {inspect.getdoc(p)}" for p in parts)
    vars(law)["__signature__"] = inspect.Signature([robot, *own])
    rules = {n: g for p in parts if isinstance(p.verify, Gains) for n, g in p.verify.rules.items()}
    known = {n: s for p in parts for n, s in p.shapes.items()} | dict(shapes)
    fixed = {n for p in parts for n, kind in p.options.items() if kind is object}
    return Program(
        law,
        {n: s for n, s in known.items() if n in parameters},
        [n for n in parameters if n in fixed],
        verify=Gains(law, {n: g for n, g in {**rules, **gains}.items() if n in parameters}),
        named=[n for n in parameters if any(n in p.named for p in parts)],
    )
