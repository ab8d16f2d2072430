"""Controllers as the simulation takes them: what they are given, and what they return."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from phipsi.compile import as_numbers
from phipsi.model import Robot
from phipsi.model.names import meant
from phipsi.programs import Program, program

SUPPLIED = ("t", "dt", "q", "v", "memory", "active", "locked")
"""What a controller is given by the simulation if it asks for it."""

Shape = tuple[int, ...]
Pairs = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class BoundController:
    """A controller with its options, and where its parameters stand in one vector."""

    program: Program[..., Any] | None = None
    options: Pairs = ()
    layout: tuple[tuple[str, Shape], ...] = ()

    def __call__(self, robot: Robot, parameters: Any, **supplied: Any) -> dict[str, Any]:
        """What it commands: "tau", and whatever else it returns."""
        given, external = self._unpacked(parameters), {}
        for name in [name for name in given if name.startswith(PUSH)]:
            external[name.removeprefix(PUSH)] = given.pop(name)
        out: dict[str, Any] = {"tau": np.zeros(robot.nv)}
        if self.program is not None:
            own = {k: x for k, x in supplied.items() if k in self.program.parameters}
            result = self.program(robot, **own, **given, **dict(self.options))
            out = self._checked(robot, result, supplied.get("memory"))
        for frame, wrench in out.get("external", {}).items():
            external[frame] = external[frame] + wrench if frame in external else wrench
        return {**out, "external": external or None}

    def _checked(self, robot: Robot, result: Any, memory: Any) -> dict[str, Any]:
        """What it returned, by name."""
        out = dict(result) if isinstance(result, Mapping) else {"tau": result}
        name = "" if self.program is None else self.program.name
        if "tau" not in out or np.shape(out["tau"]) != (robot.nv,):
            found = f"has shape {np.shape(out['tau'])}" if "tau" in out else "is missing"
            raise TypeError(
                f"the controller {name} returns a tau that {found}; it needs ({robot.nv},), or a "
                'dict with such a "tau"'
            )
        kept: Any = out.get("memory")
        if memory is not None and np.shape(kept) != np.shape(memory):
            raise TypeError(
                f"the controller {name} is given a memory of shape {np.shape(memory)}, and returns "
                f'a "memory" of shape {np.shape(kept)}'
            )
        if not isinstance(out.get("external", {}), Mapping):
            raise TypeError(f'the controller {name}: "external" needs to be {{frame: wrench}}')
        for key in set(out) - {"tau", "memory", "external"}:
            if np.ndim(out[key]) > 1 or key in FORCES:
                raise TypeError(
                    f"the controller {name}: the signal {key!r} has shape {np.shape(out[key])}; it "
                    f"needs a number or a vector, and no name of {', '.join(FORCES)}"
                )
        return out

    def _unpacked(self, parameters: Any) -> dict[str, Any]:
        out, start = {}, 0
        for name, shape in self.layout:
            part = parameters[start : start + prod(shape)]
            out[name] = part.reshape(shape) if shape else part[0]
            start += prod(shape)
        return out


FORCES = ("closure_forces", "contact_forces", "internal_forces")
"""Signals of closures."""
PUSH = "external:"
"""Before the name of a frame: a constant external force on it, among the parameters."""


_kept = lru_cache(maxsize=64)(program)


def _traced(controller: Callable[..., Any]) -> Program[..., Any]:
    """A function as a program, the same one each time; a method anew, for its object may change."""
    if not hasattr(controller, "__name__"):
        kind = type(controller).__name__
        raise TypeError(f"the controller is a {kind}, needs to be a program or a function")
    return program(controller) if inspect.ismethod(controller) else _kept(controller)


def program_of(controller: Any) -> Program[..., Any] | None:
    """A controller, which may be a plain function, as a program."""
    if controller is None or isinstance(controller, Program):
        return controller
    if not callable(controller):
        raise TypeError(f"the controller is {controller!r}, needs a program or a function")
    return _traced(controller)


def bind(
    robot: Robot, controller: Any, parameters: Mapping[str, Any], external: Mapping[str, Any]
) -> tuple[BoundController, np.ndarray | None]:
    """A controller with its options bound, and the values of its parameters, (…, k)."""
    values: list[tuple[str, Any, Shape]] = [
        (PUSH + frame, wrench, (6,)) for frame, wrench in external.items()
    ]
    for frame in external:
        robot.frame(frame)
    options: list[tuple[str, Any]] = []
    program = program_of(controller)
    if program is not None:
        own = {n: p for n, p in program.parameters.items() if n not in SUPPLIED}
        program.check_rules(parameters)
        for name in parameters:
            if name not in own:
                _refuse_parameter(program, name, list(own))
        for name, parameter in own.items():
            if name not in parameters:
                if parameter.required:
                    raise TypeError(
                        f"the controller {program.name} needs {name!r}: pass "
                        f"parameters={{{name!r}: ...}}"
                    )
            elif program.is_option(name, parameters[name]):
                options.append((name, _constant(program, name, parameters[name])))
            else:
                array = as_numbers(f"{program.name}: {name}", parameters[name])
                values.append((name, array, program.core(robot, name, array.shape[-1:])))
    elif parameters:
        raise TypeError("parameters are those of a controller, and there is none")
    layout = tuple((name, shape) for name, _, shape in values)
    return BoundController(program, tuple(options), layout), _packed(values)


def _constant(controller: Program[..., Any], name: str, value: Any) -> Any:
    value = tuple(value) if isinstance(value, list) else value
    try:
        hash(value)
    except TypeError:
        what = f"{controller.name}: the option {name} is a {type(value).__name__}"
        raise TypeError(f"{what}, needs a constant") from None
    return value


def _refuse_parameter(controller: Program[..., Any], name: str, known: list[str]) -> None:
    what = f"it has {', '.join(map(repr, known))}" if known else "it has none"
    raise TypeError(
        f"the controller {controller.name} has no parameter {name!r}; {meant(name, known)}{what}"
    )


def _packed(values: list[tuple[str, Any, Shape]]) -> np.ndarray | None:
    if not values:
        return None
    parts = []
    for name, value, shape in values:
        array = np.asarray(value, float)
        if array.shape[array.ndim - len(shape) :] != shape or array.ndim < len(shape):
            raise ValueError(f"{name} has shape {array.shape}, needs (..., {_listed(shape)})")
        parts.append(array.reshape(*array.shape[: array.ndim - len(shape)], prod(shape)))
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in parts))
    return np.concatenate([np.broadcast_to(x, (*batch, x.shape[-1])) for x in parts], axis=-1)


def _listed(shape: Shape) -> str:
    return ", ".join(map(str, shape))
