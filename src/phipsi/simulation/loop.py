"""The closed loop: controller, plant and method, step after step in one kernel."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms import grasp_dynamics
from phipsi.algorithms.constraints import solved
from phipsi.algorithms.cut import cut, wrenches
from phipsi.compile import as_numbers, repeat
from phipsi.model import Grasp, Robot
from phipsi.simulation.coordinates import COORDINATES
from phipsi.simulation.methods import METHODS
from phipsi.simulation.plant import Plant, System
from phipsi.sweeps import Program, program

SUPPLIED = ("t", "dt", "q", "v", "memory", "active", "locked")
"""What a controller is given by the simulation if it asks for it."""

Shape = tuple[int, ...]
Pairs = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Law:
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
            out |= result if isinstance(result, Mapping) else {"tau": result}
        for frame, wrench in out.get("external", {}).items():
            external[frame] = external[frame] + wrench if frame in external else wrench
        return {**out, "external": external or None}

    def _unpacked(self, parameters: Any) -> dict[str, Any]:
        out, start = {}, 0
        for name, shape in self.layout:
            part = parameters[start : start + prod(shape)]
            out[name] = part.reshape(shape) if shape else part[0]
            start += prod(shape)
        return out


PUSH = "external:"
"""Before the name of a frame: a constant external force on it, among the parameters."""


@lru_cache(maxsize=64)
def _traced(controller: Callable[..., Any]) -> Program[..., Any]:
    return program(controller)


def bind(
    robot: Robot, controller: Any, parameters: Mapping[str, Any], external: Mapping[str, Any]
) -> tuple[Law, np.ndarray | None]:
    """A controller with its parameters: the law, and their values as vectors, (…, k)."""
    values: list[tuple[str, Any, Shape]] = [
        (PUSH + frame, wrench, (6,)) for frame, wrench in external.items()
    ]
    for frame in external:
        robot.frame(frame)
    options: list[tuple[str, Any]] = []
    law = None
    if controller is not None:
        if not callable(controller):
            raise TypeError(f"the controller is {controller!r}, needs a program or a function")
        law = controller if isinstance(controller, Program) else _traced(controller)
        own = {n: p for n, p in law.parameters.items() if n not in SUPPLIED}
        check = getattr(law.verify, "check", None)  # gains, known now and only numbers later
        if check is not None:
            check(parameters)
        for name in parameters:
            if name not in own:
                _refuse_parameter(law, name, list(own))
        for name, parameter in own.items():
            if name not in parameters:
                if parameter.default is parameter.empty:
                    raise TypeError(
                        f"the controller {law.name} needs {name!r}: pass "
                        f"parameters={{{name!r}: ...}}"
                    )
            elif law.is_option(name, parameters[name]):
                options.append((name, _constant(law, name, parameters[name])))
            else:
                array = as_numbers(f"{law.name}: {name}", parameters[name])
                values.append((name, array, law.core(robot, name, array.shape[-1:])))
    elif parameters:
        raise TypeError("parameters are those of a controller, and there is none")
    layout = tuple((name, shape) for name, _, shape in values)
    return Law(law, tuple(options), layout), _packed(values)


def _constant(law: Program[..., Any], name: str, value: Any) -> Any:
    value = tuple(value) if isinstance(value, list) else value
    try:
        hash(value)
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{law.name}: the option {name} is a {kind}, needs a constant") from None
    return value


def _refuse_parameter(law: Program[..., Any], name: str, known: list[str]) -> None:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    what = f"it has {', '.join(map(repr, known))}" if known else "it has none"
    raise TypeError(f"the controller {law.name} has no parameter {name!r}; {hint}{what}")


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


# ---- kernels ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loop:
    """All that is constant in the kernel of a simulation."""

    law: Law
    plant: Plant
    method: str = "rk4"
    coordinates: str = "minimal"


class Run(NamedTuple):
    """The state after the last step, and the record of every so many steps."""

    state: Any
    records: Any


def system_of(
    robot: Robot, loop: Loop, dt: Any, memory: Any, active: Any, locked: Any, parameters: Any
) -> System:
    """The closed loop of one step, during which memory stays as it is."""

    def command(t: Any, q: Any, v: Any) -> tuple[Any, Any]:
        out = commanded(robot, loop, t, dt, q, v, memory, active, locked, parameters)
        return out["tau"], out["external"]

    return System(robot, loop.plant, command, locked)


def commanded(
    robot: Robot, loop: Loop, t: Any, dt: Any, q: Any, v: Any,
    memory: Any, active: Any, locked: Any, parameters: Any,
) -> dict[str, Any]:  # fmt: skip
    """What the controller says, its forces as the motors give them."""
    active = robot.driven * 1.0 if active is None else active
    braked = np.zeros(robot.nv) if locked is None else locked
    out = loop.law(
        robot, parameters, t=t, dt=dt, q=q, v=v, memory=memory, active=active, locked=braked
    )
    return {**out, "tau": loop.plant.motors(robot, out["tau"], active)}


SHAPES = {"t": (), "dt": (), "active": ("nv",), "locked": ("nv",), "p": ("nv",)}


@program(shapes=SHAPES, static=("loop",))
def advance(
    robot: Robot, q: Any, v: Any, t: Any, dt: Any, p: Any = None, memory: Any = None,
    active: Any = None, locked: Any = None, parameters: Any = None,
    *, loop: Any, count: int, every: int,
) -> Run:  # fmt: skip
    """`count` steps of a closed loop from the time t; the state (q, v, momentum, memory) after
    each `every`-th. Cost `count` times that of a step."""
    method, coordinates = METHODS[loop.method], COORDINATES[loop.coordinates]
    sizes = [len(x) for x in (q, v, p, memory) if x is not None]
    has_p, has_memory = p is not None, memory is not None

    def step(state: Any, k: Any) -> tuple[Any, Any]:
        q, v, *rest = state
        own = rest.pop(0) if has_p else None
        kept = rest.pop(0) if has_memory else None
        now = t + k * dt
        system = system_of(robot, loop, dt, kept, active, locked, parameters)
        moved = method.step(system, coordinates, now, dt, q, v, *([own] if has_p else []))
        if has_memory:
            told = commanded(robot, loop, now, dt, q, v, kept, active, locked, parameters)
            moved = (*moved, told["memory"])
        return moved, np.concatenate(moved)

    start = tuple(x for x in (q, v, p, memory) if x is not None)
    state, records = repeat(count, step, start, every=every)
    assert records.shape[1] == sum(sizes)
    return Run(np.concatenate(state), records)


@program(shapes=SHAPES, static=("loop",))
def observe(
    robot: Robot, q: Any, v: Any, t: Any, dt: Any, memory: Any = None,
    active: Any = None, locked: Any = None, parameters: Any = None, *, loop: Any,
) -> dict[str, Any]:  # fmt: skip
    """The motors' forces and the signals of a state: what the controller returns, forces of
    closures (n, 6) on their first frames, of grasps the internal ones too."""
    out = commanded(robot, loop, t, dt, q, v, memory, active, locked, parameters)
    external = out.pop("external")
    out.pop("memory", None)
    closures = loop.plant.closures
    if closures:
        tau = out["tau"] + loop.plant.loads(robot, q, v)
        rate = loop.plant.stabilisation
        if all(isinstance(c, Grasp) for c in closures):
            held = grasp_dynamics(
                robot, closures, q, v, tau, external=external, stabilisation=rate, strict=False
            )
            out |= {"contact_forces": held.forces, "internal_forces": held.internal}
        else:
            x = cut(robot, closures, q, v)
            lam = solved(robot, x, q, v, tau, external, rate)[1]
            out["closure_forces"] = wrenches(x.forces(lam))
    return out


@program(shapes=SHAPES, static=("loop",))
def derivative(
    robot: Robot, q: Any, v: Any, t: Any, dt: Any, memory: Any = None,
    active: Any = None, locked: Any = None, parameters: Any = None, *, loop: Any,
) -> Any:  # fmt: skip
    """[q̇; v̇] of a closed loop, for integrators from elsewhere."""
    system = system_of(robot, loop, dt, memory, active, locked, parameters)
    return np.concatenate([robot.flow(q, v), system.accelerate(t, q, v)])
