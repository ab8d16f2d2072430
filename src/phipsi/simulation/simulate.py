"""`simulate` and `rollout`: closed loops run over time."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite
from typing import Any

import numpy as np

from phipsi.algorithms import frame_pose, loop_opening, mass_matrix_product
from phipsi.model import Closure, Robot
from phipsi.simulation.adaptive import ADAPTIVE, solve
from phipsi.simulation.coordinates import COORDINATES
from phipsi.simulation.events import Event, Phase
from phipsi.simulation.loop import Law, Loop, advance, bind, observe
from phipsi.simulation.methods import METHODS
from phipsi.simulation.plant import Limits, Plant
from phipsi.simulation.trajectory import Trajectory

Progress = Callable[[float], Any]
CHUNK = 1 << 14
"""Numbers recorded for one robot by one call of the kernel; progress is shown between calls."""
MOST = 1 << 24
"""The same of a rollout, whose kernel keeps them all."""
OPEN = 1e-6
"""How far [rad, m] closures may be open at the start."""


class Interrupted(KeyboardInterrupt):
    """A simulation was stopped by Ctrl-C; `trajectory` is what was computed."""

    def __init__(self, trajectory: Trajectory) -> None:
        super().__init__(f"stopped at t = {trajectory.t[-1]:g} s")
        self.trajectory = trajectory


class Diverged(ArithmeticError):
    """A simulation left the finite numbers; `trajectory` is what was computed until then."""

    def __init__(self, trajectory: Trajectory, time: float) -> None:
        super().__init__(
            f"the motion is no longer finite at t = {time:g} s; take a smaller dt, a method for "
            "stiff springs (method='implicit'), or softer gains"
        )
        self.trajectory = trajectory


@dataclass(frozen=True)
class Clock:
    """The steps: `samples` after the start, one every `every` steps of dt."""

    dt: float
    every: int
    samples: int

    def time(self, sample: Any) -> Any:
        """The time of a sample [s]."""
        return self.dt * self.every * sample

    def sample(self, at: float) -> int:
        """The sample nearest to a time."""
        return min(self.samples, round(at / (self.dt * self.every)))


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
    It is asked at every stage of a step; its memory changes once a step.

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
    clock = _clock(duration, dt, every)
    plant = _plant(passive, limits, actuators, closures, stabilisation)
    phase = _start(robot, q0, v0, plant, parameters)
    run = _Run(robot, controller, clock, method, coordinates, dict(external or {}), memory)
    pending = _sorted(robot, events)
    run.check(phase, pending)
    return run.through(phase, pending, tuple(frames), progress)


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
    clock = _clock(duration, dt, every)
    plant = _plant(passive, limits, actuators, closures, stabilisation)
    phase = _start(robot, q0, v0, plant, parameters)
    run = _Run(robot, controller, clock, method, coordinates, dict(external or {}), memory)
    run.check(phase, [])
    if method not in METHODS:
        raise ValueError(f"rollout: {method!r} chooses its own steps; use one of {_names(METHODS)}")
    size = clock.samples * (robot.nq + robot.nv)
    if size > MOST:
        raise ValueError(
            f"rollout: {clock.samples} samples of {robot.nq + robot.nv} numbers are too many for "
            f"one kernel; pass every={ceil(size / MOST) * every}, or use simulate"
        )
    return run.at_once(phase, signals)


# ---- what is asked ------------------------------------------------------------------------------


def _clock(duration: float, dt: float, every: int) -> Clock:
    for name, value in (("duration", duration), ("dt", dt)):
        if not isinstance(value, (int, float)) or not isfinite(value) or value <= 0:
            raise ValueError(f"{name} is {value!r}, needs a positive number [s]")
    if not isinstance(every, int) or every < 1:
        raise ValueError(f"every is {every!r}, needs a whole number of steps ≥ 1")
    samples = max(1, ceil(duration / (dt * every) - 1e-9))
    if samples * every > 1e10:
        raise ValueError(
            f"a duration of {duration:g} s in steps of {dt:g} s are {samples * every:.0e} steps, "
            "more than 1e10; take a larger dt"
        )
    return Clock(duration / (samples * every), every, samples)


def _plant(
    passive: bool,
    limits: bool | Limits,
    actuators: bool,
    closures: Sequence[Closure],
    stabilisation: float,
) -> Plant:
    stops = Limits() if limits is True else (limits or None)
    return Plant(passive, stops, actuators, tuple(closures), float(stabilisation))


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
        raise ValueError(f"{name} has shape {array.shape}, robot {robot.name!r} needs (..., {size})")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has entries that are not finite")
    return array


def _sorted(robot: Robot, events: Iterable[Event]) -> list[Event]:
    """Events in order of time; conditions last."""
    events = list(events)
    for event in events:
        if not isinstance(event, Event):
            raise TypeError(f"events has {event!r}, needs Failure, Capture, Release or Change")
        event.check(robot)
    return sorted(events, key=lambda event: inf if callable(event.at) else event.at)


def _names(table: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, table))


# ---- running ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """The samples of one phase: of `first`, `first + 1`, … the q, v and memory."""

    phase: Phase
    law: Law
    values: np.ndarray | None
    first: int
    q: np.ndarray
    v: np.ndarray
    memory: np.ndarray | None


class _Run:
    """One simulation."""

    def __init__(
        self, robot: Robot, controller: Any, clock: Clock, method: str, coordinates: str,
        external: dict[str, Any], memory: Any,
    ) -> None:  # fmt: skip
        self.robot, self.controller, self.clock = robot, controller, clock
        self.method, self.coordinates, self.external = method, coordinates, external
        self.memory = None if memory is None else np.atleast_1d(np.asarray(memory, float))
        self.failing = False

    def check(self, phase: Phase, events: Sequence[Event]) -> None:
        """Refuse what does not go together before anything is computed."""
        if self.method not in METHODS and self.method not in ADAPTIVE:
            known = [*METHODS, *ADAPTIVE]
            near = difflib.get_close_matches(str(self.method), known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"no method {self.method!r}; {hint}known are {', '.join(known)}")
        if self.coordinates not in COORDINATES:
            raise ValueError(f"no coordinates {self.coordinates!r}; use {_names(COORDINATES)}")
        plain = self.coordinates == "minimal"
        if not plain and not (self.method in METHODS and METHODS[self.method].any_coordinates):
            able = [name for name, row in METHODS.items() if row.any_coordinates]
            raise ValueError(f"{self.coordinates} coordinates need a method of {', '.join(able)}")
        locking = any(getattr(event, "how", "") == "locked" for event in events)
        closed = phase.plant.closures or any(hasattr(event, "closures") for event in events)
        self.failing = any(hasattr(event, "how") for event in events)
        phase.plant.check(self.robot, bool(locking and closed))
        if closed and self.method in METHODS and METHODS[self.method].carries_momentum:
            raise ValueError(f"method {self.method!r} takes no closures; use 'rk4'")
        if (closed or locking) and not plain:
            raise ValueError(f"{self.coordinates} coordinates take no closures and no locked hinges")
        self._check_law(phase)
        if phase.plant.closures and phase.plant.stabilisation:
            opening = loop_opening(self.robot, phase.plant.closures, phase.q, phase.v)
            gap = float(np.abs(opening.error).max())
            if gap > OPEN:
                raise ValueError(
                    f"the closures are open by {gap:.2g} rad or m at the start; close them with "
                    "pp.close_loops first, or pass stabilisation=0 to hold them as they are"
                )

    def _check_law(self, phase: Phase) -> None:
        law, _ = bind(self.robot, self.controller, phase.parameters, self.external)
        wanted = law.program is not None and "memory" in law.program.parameters
        if wanted and self.memory is None:
            raise TypeError("the controller has a memory: pass memory=, its value at the start")
        if not wanted and self.memory is not None:
            raise TypeError("memory is given, but the controller has no input 'memory'")

    def through(
        self, phase: Phase, events: list[Event], frames: tuple[str, ...], progress: Progress | None
    ) -> Trajectory:
        """The whole motion, phase by phase."""
        for name in frames:
            self.robot.frame(name)
        pieces: list[Piece] = []
        log: list[tuple[float, str]] = []
        memory = self._memory(phase)
        try:
            for piece in self._pieces(phase, events, memory, log, progress):
                pieces.append(piece)
        except KeyboardInterrupt:
            if not pieces:
                raise
            raise Interrupted(self._trajectory(pieces, log, frames)) from None
        whole = self._trajectory(pieces, log, frames)
        good = np.isfinite(whole.v).all(axis=(*range(whole.v.ndim - 2), -1))
        if not good.all():
            bad = int(np.argmin(good))
            raise Diverged(whole[: max(bad, 1)], float(whole.t[bad]))
        return whole

    def _memory(self, phase: Phase) -> np.ndarray | None:
        if self.memory is None:
            return None
        return np.broadcast_to(self.memory, (*phase.q.shape[:-1], self.memory.shape[-1]))

    def _pieces(
        self, phase: Phase, events: list[Event], memory: Any, log: list[Any], progress: Any
    ) -> Iterator[Piece]:
        """Samples in order, as they are computed; events take place in between."""
        now, last, events = 0, self.clock.samples, list(events)
        while True:
            t = self.clock.time(now)
            for event in [e for e in events if self._due(e, now, phase)]:
                events.remove(event)
                phase, sentence = event.happen(self.robot, phase)
                log.append((t, sentence))
            law, values = bind(self.robot, self.controller, phase.parameters, self.external)
            if now == 0 or log and log[-1][0] == t:
                yield self._one(phase, law, values, now, memory)
            if now >= last:
                return
            until = min([self.clock.sample(e.at) for e in events if not callable(e.at)] + [last])
            asked = any(callable(e.at) for e in events)
            for piece in self._phase(phase, law, values, memory, now, until, asked):
                yield piece
                now = piece.first + piece.q.shape[-2] - 1
                q, v = piece.q[..., -1, :], piece.v[..., -1, :]
                phase = replace(phase, q=q, v=v)
                memory = None if piece.memory is None else piece.memory[..., -1, :]
                if progress is not None:
                    progress(now / last)
                if not np.isfinite(v).all() or any(self._due(e, now, phase) for e in events):
                    break
            if not np.isfinite(phase.v).all():
                return

    def _due(self, event: Event, now: int, phase: Phase) -> bool:
        if callable(event.at):
            return bool(np.all(event.at(self.clock.time(now), phase.q, phase.v)))
        return self.clock.sample(event.at) <= now

    def _one(self, phase: Phase, law: Law, values: Any, now: int, memory: Any) -> Piece:
        kept = None if memory is None else memory[..., None, :]
        return Piece(phase, law, values, now, phase.q[..., None, :], phase.v[..., None, :], kept)

    def _phase(
        self, phase: Phase, law: Law, values: Any, memory: Any, now: int, until: int, asked: bool
    ) -> Iterator[Piece]:
        """The samples of (now, until], chunk by chunk."""
        size = self.robot.nq + self.robot.nv
        chunk = 1 if asked else max(1, min(until - now, CHUNK // size))
        if self.method in ADAPTIVE:
            loop = Loop(law, phase.plant)
            masks = self._masks(phase)
            steps = solve(self.robot, loop, self.method, self.clock, phase, memory, values, masks)
            for first, q, v in steps(now, until, chunk):
                yield Piece(phase, law, values, first, q, v, _same(memory, q))
            return
        p = self._momentum(phase)
        for first in range(now, until, chunk):
            records = self._advance(phase, law, values, memory, p, first, chunk)
            records = records[..., : min(chunk, until - first), :]
            q, v, p, memory = self._split(records, p is not None)
            yield Piece(phase, law, values, first + 1, q, v, memory)
            phase = replace(phase, q=q[..., -1, :], v=v[..., -1, :])
            p, memory = (None if x is None else x[..., -1, :] for x in (p, memory))

    def _momentum(self, phase: Phase) -> np.ndarray | None:
        if not METHODS[self.method].carries_momentum:
            return None
        p = mass_matrix_product(self.robot, phase.q, phase.v)
        return self.robot.inboard(phase.q, np.asarray(p))

    def _masks(self, phase: Phase) -> tuple[Any, Any]:
        """active and locked, None where they never change."""
        locked = phase.locked * 1.0 if phase.locked.any() else None
        return (phase.active * 1.0 if self.failing else None), locked

    def _advance(
        self, phase: Phase, law: Law, values: Any, memory: Any, p: Any, first: int, count: int
    ) -> np.ndarray:
        loop = Loop(law, phase.plant, self.method, self.coordinates)
        dt, every = self.clock.dt, self.clock.every
        masks = self._masks(phase)
        result = advance(
            self.robot, phase.q, phase.v, self.clock.time(first), dt, p, memory, *masks, values,
            loop=loop, count=count * every, every=every,
        )  # fmt: skip
        return np.asarray(result.records)

    def _split(self, records: np.ndarray, has_p: bool) -> tuple[Any, Any, Any, Any]:
        nq, nv = self.robot.nq, self.robot.nv
        ends = np.cumsum([nq, nv, nv if has_p else 0])
        q, v, p, memory = np.split(records, ends, axis=-1)
        return q, v, p if has_p else None, memory if self.memory is not None else None

    def at_once(self, phase: Phase, signals: bool) -> Trajectory:
        """All samples by one call."""
        law, values = bind(self.robot, self.controller, phase.parameters, self.external)
        if values is not None:
            batch = np.broadcast_shapes(phase.q.shape[:-1], values.shape[:-1])
            q, v = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (phase.q, phase.v))
            phase = replace(phase, q=q, v=v)
        memory, p = self._memory(phase), self._momentum(phase)
        records = self._advance(phase, law, values, memory, p, 0, self.clock.samples)
        q, v, _, kept = self._split(records, p is not None)
        q, v = (
            np.concatenate([start[..., None, :], rest], axis=-2)
            for start, rest in ((phase.q, q), (phase.v, v))
        )
        if memory is not None:
            kept = np.concatenate([memory[..., None, :], kept], axis=-2)
        piece = Piece(phase, law, values, 0, q, v, kept)
        t = self.clock.time(np.arange(self.clock.samples + 1))
        told = self._observed(piece) if signals else {}
        tau = told.pop("tau", np.broadcast_to(np.nan, v.shape))
        return Trajectory(
            self.robot, t, q, v, tau, signals=told, method=self.method, dt=self.clock.dt,
            passive=phase.plant.passive,
        )  # fmt: skip

    # ---- results -------------------------------------------------------------------------------

    def _observed(self, piece: Piece) -> dict[str, np.ndarray]:
        """The motors' forces and the signals of a piece."""
        phase, count = piece.phase, piece.q.shape[-2]
        t = self.clock.time(piece.first + np.arange(count))
        loop = Loop(piece.law, phase.plant)
        values = None if piece.values is None else piece.values[..., None, :]
        out = observe(
            self.robot, piece.q, piece.v, t, self.clock.dt, piece.memory, *self._masks(phase),
            values, loop=loop,
        )  # fmt: skip
        return dict(_named(out, phase.plant.closures))

    def _trajectory(
        self, pieces: list[Piece], log: list[tuple[float, str]], frames: tuple[str, ...]
    ) -> Trajectory:
        """All pieces together; of two samples at one time the later, after the event, counts."""
        merged = _merged(pieces)
        told = [self._observed(piece) for piece in merged]
        names = dict.fromkeys(name for part in told for name in part)
        signals = {name: _joined(name, told, merged) for name in names}
        t = self.clock.time(
            np.concatenate([piece.first + np.arange(piece.q.shape[-2]) for piece in merged])
        )
        q = np.concatenate([piece.q for piece in merged], axis=-2)
        v = np.concatenate([piece.v for piece in merged], axis=-2)
        poses = {name: np.asarray(frame_pose(self.robot, q, name)) for name in frames}
        return Trajectory(
            self.robot, t, q, v, signals.pop("tau"), poses, signals, events=tuple(log),
            method=self.method, dt=self.clock.dt, passive=merged[0].phase.plant.passive,
        )  # fmt: skip


def _same(memory: Any, q: np.ndarray) -> Any:
    return None if memory is None else np.broadcast_to(memory, (*q.shape[:-1], memory.shape[-1]))


def _merged(pieces: list[Piece]) -> list[Piece]:
    """Neighbours of one phase joined, and samples dropped that an event at their time replaces."""
    groups: list[list[Piece]] = []
    for piece in pieces:
        if groups and groups[-1][-1].first + groups[-1][-1].q.shape[-2] - 1 >= piece.first:
            _shorten(groups, piece.first)
        same = groups and _alike(groups[-1][0], piece)
        groups[-1].append(piece) if same else groups.append([piece])
    return [_join(group) for group in groups if group]


def _shorten(groups: list[list[Piece]], first: int) -> None:
    """Drop the samples from `first` on."""
    last = groups[-1].pop()
    left = first - last.first
    if left > 0:
        memory = None if last.memory is None else last.memory[..., :left, :]
        groups[-1].append(
            replace(last, q=last.q[..., :left, :], v=last.v[..., :left, :], memory=memory)
        )
    if not groups[-1]:
        groups.pop()


def _alike(one: Piece, other: Piece) -> bool:
    """Are both subject to the same controller, forces and constraints?"""
    a, b = one.phase, other.phase
    same_masks = np.array_equal(a.active, b.active) and np.array_equal(a.locked, b.locked)
    return (
        (one.law, a.plant) == (other.law, b.plant)
        and same_masks
        and (one.values is other.values or np.array_equal(one.values, other.values))
    )


def _join(group: list[Piece]) -> Piece:
    def together(name: str) -> Any:
        parts = [getattr(piece, name) for piece in group]
        return None if parts[0] is None else np.concatenate(parts, axis=-2)

    return replace(group[0], q=together("q"), v=together("v"), memory=together("memory"))


def _named(out: Mapping[str, Any], closures: Sequence[Closure]) -> Iterator[tuple[str, np.ndarray]]:
    """Signals by name; the forces of closures one by one."""
    for name, value in out.items():
        array = np.asarray(value)
        if name.endswith("_forces") and closures:
            for i, c in enumerate(closures):
                yield f"{name.removesuffix('s')}:{c.a}", array[..., i, :]
        else:
            yield name, array


def _joined(name: str, told: list[dict[str, np.ndarray]], pieces: list[Piece]) -> np.ndarray:
    """A signal of all pieces, NaN where there was none."""
    example = next(part[name] for part in told if name in part)
    lead = pieces[0].q.ndim - 1
    parts = []
    for part, piece in zip(told, pieces, strict=True):
        shape = (*piece.q.shape[:-1], *example.shape[lead:])
        parts.append(np.broadcast_to(part.get(name, np.nan), shape))
    return np.concatenate(parts, axis=lead - 1)
