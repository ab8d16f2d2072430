"""`simulate` and `rollout`: closed loops run over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, inf
from typing import Any

import numpy as np

from phipsi.model import Closure, Robot
from phipsi.simulation.clock import clock_of
from phipsi.simulation.events import Event, Phase
from phipsi.simulation.methods import METHODS
from phipsi.simulation.plant import Limits, Plant, plant_of
from phipsi.simulation.simulator import Progress, Simulator
from phipsi.simulation.trajectory import Trajectory

MOST = 1 << 24
"""Numbers that a rollout records for one robot: its kernel keeps them all."""


def simulate(
    robot: Robot,
    q0: Any,
    v0: Any = None,
    controller: Any = None,
    *,
    duration: float,
    dt: float = 1e-3,
    method: str = "rk4",
    parameters: Mapping[str, Any] | None = None,
    memory: Any = None,
    every: int = 1,
    coordinates: str = "minimal",
    passive: bool = True,
    limits: bool | Limits = False,
    actuators: bool = True,
    closures: Sequence[Closure] = (),
    stabilisation: float = 10.0,
    external: Mapping[str, Any] | None = None,
    events: Iterable[Event] = (),
    frames: Sequence[str] = (),
    progress: Progress | None = None,
) -> Trajectory:
    """The motion from (q0, v0) under a controller, sampled every `every` steps of `dt` [s].

    `q0` (…, nq) and `v0` (…, nv, default at rest) may be a batch. `controller` is a program (or a
    function that can be traced) of the robot and of any of t, q, v, dt, active, locked, memory,
    which it is given, and of its own `parameters`; it returns tau, or a dict with "tau", and if it
    likes "memory" (kept from step to step), "external" ({frame: wrench}) and signals to record.
    It is asked at every stage of a step; its memory changes once a step. It is traced when it is
    first used: numbers that change from call to call belong into its parameters.

    `method` is a name of `pp.simulation.METHODS`, or "dop853", "rk45", "radau" or "lsoda", which
    choose their own steps (SciPy). `coordinates` are "minimal", "diagonal" ([DL] Alg 8.1) or
    "non-minimal" ([BI] Alg 3.4, free bases). Springs, dampers and friction act if `passive`, stops
    at joint limits if `limits` (True, or `pp.Limits(…)`), efforts are bounded if `actuators`.
    `closures` are `pp.Loop`s and `pp.Grasp`s, which `stabilisation` [1/s] keeps closed. `events`
    are `pp.Failure`, `pp.Capture`, `pp.Release` and `pp.Change`. dt is shortened if need be, so
    that samples divide the duration. `progress` is called with the fraction that is done.

    >>> import phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> motion = pp.simulate(robot, [1.0, 0.0], duration=1.0, dt=0.01)
    >>> motion
    <Trajectory of 'double_pendulum': 101 samples from 0 to 1 s, rk4, dt = 0.01 s>
    >>> bool(abs(motion.energy - motion.energy[0]).max() < 1e-5)
    True
    """
    clock = clock_of(duration, dt, every)
    plant = plant_of(passive, limits, actuators, closures, stabilisation)
    phase = _start(robot, q0, v0, plant, parameters)
    loads = dict(external or {})
    simulator = Simulator(robot, controller, clock, method, coordinates, loads, memory)
    pending = _sorted(robot, events)
    simulator.check(phase, pending)
    names = (frames,) if isinstance(frames, str) else tuple(frames)
    return simulator.through(phase, pending, names, progress)


def rollout(
    robot: Robot,
    q0: Any,
    v0: Any = None,
    controller: Any = None,
    *,
    duration: float,
    dt: float = 1e-3,
    method: str = "rk4",
    parameters: Mapping[str, Any] | None = None,
    memory: Any = None,
    every: int = 1,
    coordinates: str = "minimal",
    passive: bool = True,
    limits: bool | Limits = False,
    actuators: bool = True,
    closures: Sequence[Closure] = (),
    stabilisation: float = 10.0,
    external: Mapping[str, Any] | None = None,
    signals: bool = False,
) -> Trajectory:
    """Many motions at once: controller, dynamics and integrator, all steps, in one kernel over the
    batch of q0 (…, nq), v0 and the parameters, any of which may have one value per row.

    Arguments as in `simulate`. The result is one `Trajectory` with arrays (…, N, n); tau is NaN and
    there are no signals unless `signals`. A motion that diverges is NaN from there on.

    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q0 = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    >>> pp.rollout(robot, q0, duration=1.0, dt=0.01).q.shape
    (100, 101, 2)
    """
    clock = clock_of(duration, dt, every)
    plant = plant_of(passive, limits, actuators, closures, stabilisation)
    phase = _start(robot, q0, v0, plant, parameters)
    loads = dict(external or {})
    simulator = Simulator(robot, controller, clock, method, coordinates, loads, memory)
    simulator.check(phase, [])
    if method not in METHODS:
        raise ValueError(f"rollout: {method!r} chooses its own steps; use one of {_names(METHODS)}")
    size = clock.samples * (robot.nq + robot.nv)
    if size > MOST:
        raise ValueError(
            f"rollout: {clock.samples} samples of {robot.nq + robot.nv} numbers are too many for "
            f"one kernel; pass every={ceil(size / MOST) * every}, or use simulate"
        )
    return simulator.at_once(phase, signals)


# ---- what is asked ------------------------------------------------------------------------------


def _start(
    robot: Robot, q0: Any, v0: Any, plant: Plant, parameters: Mapping[str, Any] | None
) -> Phase:
    q = _state("q0", q0, robot.nq, robot)
    v = np.zeros(robot.nv) if v0 is None else _state("v0", v0, robot.nv, robot)
    q = robot.integrate(q, np.zeros(robot.nv))
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    q, v = np.broadcast_to(q, (*batch, robot.nq)), np.broadcast_to(v, (*batch, robot.nv))
    return Phase(q, v, plant, dict(parameters or {}), robot.driven, np.zeros(robot.nv, bool))


def _state(name: str, value: Any, size: int, robot: Robot) -> np.ndarray:
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}, needs an array of numbers") from None
    if array.ndim == 0 or array.shape[-1] != size:
        raise ValueError(
            f"{name} has shape {array.shape}, robot {robot.name!r} needs (..., {size})"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has entries that are not finite")
    return array


def _sorted(robot: Robot, events: Iterable[Event]) -> list[Event]:
    """Events in order of time; conditions last."""
    events = [events] if isinstance(events, Event) else list(events)
    for event in events:
        if not isinstance(event, Event):
            raise TypeError(f"events has {event!r}, needs Failure, Capture, Release or Change")
        event.check(robot)
    return sorted(events, key=lambda event: inf if callable(event.at) else event.at)


def _names(table: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, table))
