"""Controllers in a simulation: how their arguments are supplied and their results checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from phipsi.arguments import a_class
from phipsi.compile import as_numbers
from phipsi.model import Robot
from phipsi.model.names import meant
from phipsi.programs import Program, program
from phipsi.simulation.clock import Clock
from phipsi.simulation.sequences import Interpolation, Sequences, joined
from phipsi.typing import Array, ArrayLike

SUPPLIED = ("t", "dt", "q", "v", "memory", "active", "locked")
"""The parameters of a controller to which the simulation supplies values."""

Controller: TypeAlias = Program[..., Any] | Callable[..., Any]
"""A program, or a function that can be traced, of the robot and of what it asks for by name."""
Size: TypeAlias = tuple[int, ...]
"""The shape of a parameter without its batch."""


@dataclass(frozen=True)
class BoundController:
    """A controller with its options bound; hashable, a constant of the trace."""

    program: Program[..., Any] | None = None
    options: tuple[tuple[str, Any], ...] = ()
    layout: tuple[tuple[str, Size], ...] = ()
    """Names and shapes of its parameters, in the order in which they are packed into one vector."""
    held: tuple[tuple[str, Size], ...] = ()
    """Those of its sequences over time that are held, likewise."""
    linear: tuple[tuple[str, Size], ...] = ()
    """Those of its sequences that are linear between their rows."""

    def __call__(
        self, robot: Robot, parameters: Array | None, sequences: Array | None = None,
        **supplied: Array | float | None,
    ) -> dict[str, Any]:  # fmt: skip
        """What it commands: "tau", "external", and whatever else it returns.

        `parameters` and `sequences` are packed vectors; `supplied` are values of all names in
        `SUPPLIED`.
        """
        given, external = _unpacked(parameters, self.layout), {}
        given |= _unpacked(sequences, self.held + self.linear)
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

    def _checked(
        self, robot: Robot, result: Array | Mapping[str, Any], memory: Array | float | None
    ) -> dict[str, Any]:
        """What the program returned, by name."""
        out: dict[str, Any] = dict(result) if isinstance(result, Mapping) else {"tau": result}
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
            if np.ndim(out[key]) > 1 or key in (*FORCES, RESIDUAL):
                raise TypeError(
                    f"the controller {name}: the signal {key!r} has shape {np.shape(out[key])}; it "
                    f"needs a number or a vector, and no name of {', '.join((*FORCES, RESIDUAL))}"
                )
        return out

    def over_time(self, held: Array | None, knots: Array | None, steps: int) -> Sequences | None:
        """The sequences of a motion of `steps` steps, each group packed into one vector."""
        m, n = (sum(prod(shape) for _, shape in group) for group in (self.held, self.linear))
        if held is not None:
            count = len(held) // m
        elif knots is not None:
            count = len(knots) // n - 1
        else:
            return None
        held, knots = (np.zeros(0) if x is None else x for x in (held, knots))
        return Sequences(held.reshape(count, m), knots.reshape(count + 1, n), steps // count)


def _unpacked(packed: Array | None, layout: tuple[tuple[str, Size], ...]) -> dict[str, Any]:
    """The arrays of a layout by name, from the vector that they are packed into."""
    out: dict[str, Any] = {}
    start = 0
    if packed is None:
        return out
    for name, shape in layout:
        part = packed[start : start + prod(shape)]
        out[name] = part.reshape(shape) if shape else part[0]
        start += prod(shape)
    return out


FORCES = ("closure_forces", "contact_forces", "internal_forces")
"""Signals that the simulation itself records of each closure."""
RESIDUAL = "closure_residual"
"""The signal of all closures together that the simulation records."""
PUSH = "external:"
"""The prefix of parameters that are constant external forces; the name of a frame follows."""


@lru_cache(maxsize=64)
def _kept(function: Callable[..., Any]) -> Program[..., Any]:
    return program(function)


def _traced(controller: Callable[..., Any]) -> Program[..., Any]:
    """A function as a program, always the same one, so that its kernels are found again; a method
    as a new program, for its object may have changed."""
    if not hasattr(controller, "__name__"):
        kind = a_class(controller)
        raise TypeError(f"the controller is {kind}, needs to be a program or a function")
    return program(controller) if inspect.ismethod(controller) else _kept(controller)


def _is_program(controller: Controller) -> TypeGuard[Program[..., Any]]:
    return isinstance(controller, Program)


def program_of(controller: Controller | None) -> Program[..., Any] | None:
    """The controller as a program; None if there is none."""
    if controller is None:
        return None
    if _is_program(controller):
        return controller
    if not callable(controller):
        raise TypeError(f"the controller is {controller!r}, needs a program or a function")
    return _traced(controller)


def bind(
    robot: Robot,
    controller: Controller | None,
    parameters: Mapping[str, Any],
    external: Mapping[str, ArrayLike],
    over_time: Mapping[str, Interpolation],
    clock: Clock,
) -> tuple[BoundController, Array | None, Sequences | None]:
    """A controller with its options bound, its other parameters packed, (…, k), and its sequences.

    The forces `external` {frame: (…, 6)} are packed with the parameters.
    """
    values: list[tuple[str, ArrayLike, Size]] = [
        (PUSH + frame, wrench, (6,)) for frame, wrench in external.items()
    ]
    for frame in external:
        robot.frame(frame)
    options: list[tuple[str, Any]] = []
    sequences: dict[str, tuple[Array, Size]] = {}
    program = program_of(controller)
    check_sequences(program, over_time)
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
            elif name in over_time:
                array = as_numbers(f"{program.name}: {name}", parameters[name])
                core = program.core(robot, name, array.shape)
                sequences[name] = flat_rows(name, array, core), core
            else:
                array = as_numbers(f"{program.name}: {name}", parameters[name])
                values.append((name, array, program.core(robot, name, array.shape)))
    elif parameters:
        raise TypeError("parameters are those of a controller, and there is none")
    layout = tuple((name, shape) for name, _, shape in values)
    shapes = {name: core for name, (_, core) in sequences.items()}
    bound = BoundController(program, tuple(options), layout, *grouped(shapes, over_time))
    if not sequences:
        return bound, _packed(values), None
    rows = {name: x for name, (x, _) in sequences.items()}
    steps = clock.samples * clock.every
    return bound, _packed(values), joined(rows, over_time, steps, clock.every, nested=True)


def check_sequences(program: Program[..., Any] | None, over_time: Mapping[str, object]) -> None:
    """Refuse sequences of parameters that the controller does not have."""
    own = [] if program is None else [n for n in program.parameters if n not in SUPPLIED]
    for name in over_time:
        if name not in own:
            what = "there is no controller" if program is None else f"{program.name} has {own}"
            raise TypeError(f"sequences: {name!r} is no parameter of the controller; {what}")


def flat_rows(name: str, x: Array, core: Size) -> Array:
    """A sequence (…, K, *core) as rows of numbers, (…, K, size)."""
    lead = x.ndim - len(core)
    if lead < 1 or x.shape[lead:] != core:
        raise ValueError(
            f"{name} is a sequence over time of shape {x.shape}, needs (..., rows"
            f"{''.join(f', {n}' for n in core)})"
        )
    return x.reshape(*x.shape[:lead], prod(core))


def grouped(
    shapes: Mapping[str, Size], how: Mapping[str, Interpolation]
) -> tuple[tuple[tuple[str, Size], ...], tuple[tuple[str, Size], ...]]:
    """Names and shapes of the sequences that are held, and of those that are linear."""
    held = tuple((name, shape) for name, shape in shapes.items() if how[name] == "hold")
    return held, tuple((name, shape) for name, shape in shapes.items() if how[name] == "linear")


def _constant(controller: Program[..., Any], name: str, value: Hashable | list[Any]) -> Hashable:
    """An option that can be a constant of the trace; a list as a tuple."""
    value = tuple(value) if isinstance(value, list) else value
    try:
        hash(value)
    except TypeError:
        what = f"{controller.name}: the option {name} is {a_class(value)}"
        raise TypeError(f"{what}, needs a constant") from None
    return value


def _refuse_parameter(controller: Program[..., Any], name: str, known: list[str]) -> None:
    what = f"it has {', '.join(map(repr, known))}" if known else "it has none"
    raise TypeError(
        f"the controller {controller.name} has no parameter {name!r}; {meant(name, known)}{what}"
    )


def _packed(values: list[tuple[str, ArrayLike, Size]]) -> Array | None:
    """Parameters, given by name with their shapes, side by side in one vector, (…, k)."""
    if not values:
        return None
    parts: list[Array] = []
    for name, value, shape in values:
        array = as_numbers(name, value).astype(float)
        if array.shape[array.ndim - len(shape) :] != shape or array.ndim < len(shape):
            raise ValueError(f"{name} has shape {array.shape}, needs (..., {_listed(shape)})")
        parts.append(array.reshape(*array.shape[: array.ndim - len(shape)], prod(shape)))
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in parts))
    return np.concatenate([np.broadcast_to(x, (*batch, x.shape[-1])) for x in parts], axis=-1)


def _listed(shape: Size) -> str:
    return ", ".join(map(str, shape))
