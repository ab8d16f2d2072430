"""A simulation from event to event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from phipsi.algorithms import frame_pose, loop_opening
from phipsi.arguments import a_class, as_list, as_mapping
from phipsi.caller import warn
from phipsi.compile import as_numbers
from phipsi.model import Robot
from phipsi.model.robot import needs_robot
from phipsi.simulation.adaptive import ADAPTIVE, solve
from phipsi.simulation.balance import ADAPTIVE_STEPS, UNITS, balance
from phipsi.simulation.closed_loop import ClosedLoop, LoopInputs, observe
from phipsi.simulation.controller import BoundController, Controller, bind
from phipsi.simulation.diverged import Diverged, advice
from phipsi.simulation.doubts import SimulationWarning, contradiction, first_beyond
from phipsi.simulation.events import Capture, Event, EventError, Failure, Phase
from phipsi.simulation.methods import METHODS
from phipsi.simulation.options import SimulationOptions
from phipsi.simulation.segments import Segment, joined, merged, named
from phipsi.simulation.sequences import Sequences
from phipsi.simulation.start import events_in_order, start_phase
from phipsi.simulation.steps import FixedSteps, States, chunk, doubled
from phipsi.simulation.trajectory import Trajectory
from phipsi.typing import Array, ArrayLike

Progress: TypeAlias = Callable[[float], object]
"""Called with the fraction that is done."""
Bound: TypeAlias = tuple[BoundController, Array | None, Sequences | None]
"""A controller, its parameters and its sequences over time, packed."""
OPEN = 1e-6
"""The largest gap [rad, m] of closures at the start."""
LARGE = 1e30
"""Coordinates and rates beyond this are those of a motion that diverges already."""


class Interrupted(KeyboardInterrupt):
    """A simulation was stopped by Ctrl-C; `trajectory` is the motion until then."""

    def __init__(self, trajectory: Trajectory) -> None:
        super().__init__(f"stopped at t = {trajectory.t[-1]:g} s")
        self.trajectory = trajectory

    def __reduce__(self) -> tuple[type, tuple[Trajectory]]:
        return type(self), (self.trajectory,)


class Simulator:
    """Computes motions of a robot under a controller, segment by segment between events."""

    def __init__(
        self, robot: Robot, controller: Controller | None, options: SimulationOptions,
        *, memory: ArrayLike | None = None, external: Mapping[str, ArrayLike] | None = None,
    ) -> None:  # fmt: skip
        self.robot, self.controller, self.options = robot, controller, options
        needs_robot("a simulation", robot)
        self.clock, self.external = options.clock, as_mapping("external", external)
        if memory is not None:
            memory = np.atleast_1d(as_numbers("memory", memory).astype(float))
        self.memory = memory
        self.failing = False
        """Whether motors fail on the way, so that `active` is an input of the kernel."""
        self.doubts: list[str] = []
        """What a motion whose balance is watched broke."""

    def simulate(
        self, q0: ArrayLike, v0: ArrayLike | None, parameters: Mapping[str, Any] | None,
        events: Event | Iterable[Event], frames: str | Sequence[str], progress: Progress | None,
    ) -> Trajectory:  # fmt: skip
        """The motion from (q0, v0) with events; see `phipsi.simulate`."""
        phase = start_phase(self.robot, q0, v0, self.options.plant, parameters)
        pending = events_in_order(self.robot, events)
        self._check(phase, pending)
        names = (frames,) if isinstance(frames, str) else tuple(as_list("frames", frames))
        for name in names:
            self.robot.frame(name)
        if progress is not None and not callable(progress):
            raise TypeError(f"progress is {a_class(progress)}, needs a function")
        return self._reviewed(self._through(phase, pending, names, progress))

    def rollout(
        self, q0: ArrayLike, v0: ArrayLike | None, parameters: Mapping[str, Any] | None,
        signals: bool,
    ) -> Trajectory:  # fmt: skip
        """The motions from (q0, v0) by one call of a kernel; see `phipsi.rollout`."""
        phase = start_phase(self.robot, q0, v0, self.options.plant, parameters)
        self._check(phase, [])
        self.options.check_fixed_steps("rollout")
        return self._reviewed(self._at_once(phase, signals))

    def _reviewed(self, found: Trajectory) -> Trajectory:
        """The motion, with warnings if its closures contradict each other, or if it passes limits
        of joints and nothing was said of them."""
        unsaid = self.options.limits is None
        beyond = first_beyond(self.robot, found.t, found.q) if unsaid else None
        for doubt in filter(None, (contradiction(found), beyond, *self.doubts)):
            warn(doubt, SimulationWarning)
        return found

    def _check(self, phase: Phase, events: Sequence[Event]) -> None:
        """Refuse options, state and events that exclude each other, before anything is computed."""
        failures = [event for event in events if isinstance(event, Failure)]
        locking, self.failing = any(f.how == "locked" for f in failures), bool(failures)
        closed = phase.plant.closures or any(isinstance(event, Capture) for event in events)
        phase.plant.check(self.robot, bool(locking and closed))
        self.options.check_method(bool(closed), locking)
        self._check_memory(phase)
        if phase.plant.closures and phase.plant.stabilisation:
            opening = loop_opening(self.robot, phase.plant.closures, phase.q, phase.v)
            gap, rate = (float(np.abs(x).max()) for x in opening)
            if max(gap, rate) > OPEN:
                raise ValueError(
                    f"the closures are open by {gap:.2g} rad or m at the start and open at "
                    f"{rate:.2g} per second; close them with pp.close_loops first, or pass "
                    "stabilisation=0 to hold them as they are"
                )

    def _check_memory(self, phase: Phase) -> None:
        controller, _, _ = self._bound(phase)
        wanted = controller.program is not None and "memory" in controller.program.parameters
        if wanted and self.memory is None:
            raise TypeError("the controller has a memory: pass memory=, its value at the start")
        if not wanted and self.memory is not None:
            raise TypeError("memory is given, but the controller has no input 'memory'")

    def _through(
        self, phase: Phase, events: list[Event], frames: tuple[str, ...], progress: Progress | None
    ) -> Trajectory:
        """The whole motion; an error that ends it has the trajectory until then."""
        for name in frames:
            self.robot.frame(name)
        segments: list[Segment] = []
        log: list[tuple[float, str]] = []
        phase, memory = self._spread(phase)
        try:
            for segment in self._segments(phase, events, memory, log, progress):
                segments.append(segment)
            whole = self._trajectory(segments, log, frames, complete=True)
        except KeyboardInterrupt:
            if not any(segment.first for segment in segments):
                raise
            raise Interrupted(self._trajectory(segments, log, frames)) from None
        except FloatingPointError as error:
            before = self._trajectory(segments, log, frames)
            raise self._diverged(segments, before, str(error)) from None
        except EventError as error:
            error.trajectory = self._trajectory(segments, log, frames) if segments else None
            raise
        good = np.isfinite(whole.v).all(axis=(*range(whole.v.ndim - 2), -1))
        if not good.all():
            bad = int(np.argmin(good))
            what = f"the motion is no longer finite at t = {whole.t[bad]:g} s"
            raise self._diverged(segments, whole[: max(bad, 1)], what)
        return whole

    def _diverged(self, segments: list[Segment], before: Trajectory, what: str) -> Diverged:
        """The error of a motion that was finite in the samples `before`."""
        now = min(len(before), self.clock.samples)
        segment = next(s for s in reversed(segments) if s.first <= max(now - 1, 0))
        state = replace(
            segment, first=now, q=before.q[..., -1:, :], v=before.v[..., -1:, :],
            memory=None if segment.memory is None else segment.memory[..., :1, :],
        )  # fmt: skip
        plant, controlled = segment.phase.plant, self.controller is not None
        small = np.abs(np.concatenate([state.q, state.v], axis=-1)).max() < LARGE
        broken = controlled and small and not np.isfinite(self._observed(state)["tau"]).all()
        help = advice(before, self.options, plant, controlled=controlled, broken=bool(broken))
        return Diverged(before, f"{what}; {help}")

    def _bound(self, phase: Phase) -> Bound:
        """The controller of a phase, its parameters and its sequences."""
        over_time = self.options.over_time
        return bind(
            self.robot, self.controller, phase.parameters, self.external, over_time, self.clock
        )

    def _spread(self, phase: Phase) -> tuple[Phase, Array | None]:
        """The phase and the memory, broadcast to the batch of state, memory and parameters."""
        _, values, sequences = self._bound(phase)
        given = [x.shape[:-1] for x in (phase.q, values, self.memory) if x is not None]
        given += [] if sequences is None else [sequences.batch]
        try:
            batch = np.broadcast_shapes(*given)
        except ValueError:
            shapes = " and ".join(map(str, given))
            raise ValueError(
                f"states, parameters and memory have batches {shapes}, which do not fit"
            ) from None
        q, v = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (phase.q, phase.v))
        memory = self.memory
        if memory is not None:
            memory = np.broadcast_to(memory, (*batch, memory.shape[-1]))
        return replace(phase, q=q, v=v), memory

    def _segments(
        self, phase: Phase, events: list[Event], memory: Array | None,
        log: list[tuple[float, str]], progress: Progress | None,
    ) -> Iterator[Segment]:  # fmt: skip
        """The samples in order, as they are computed. Events take place in between; `log` gets the
        time of each and what happened."""
        now, last, events = 0, self.clock.samples, list(events)
        while True:
            t = self.clock.time(now)
            for event in [e for e in events if self._due(e, now, phase)]:
                events.remove(event)
                phase, sentence = event.happen(self.robot, phase)
                log.append((t, sentence))
            bound = self._bound(phase)
            _check_batch(phase, *bound[1:])
            if now == 0 or (log and log[-1][0] == t):
                yield self._one(phase, bound, now, memory)
            if now >= last:
                return
            until = min([self.clock.sample(e.at) for e in events if not callable(e.at)] + [last])
            asked = any(callable(e.at) for e in events)
            for segment in self._phase(phase, bound, memory, now, until, asked):
                yield segment
                now = segment.first + segment.q.shape[-2] - 1
                q, v = segment.q[..., -1, :], segment.v[..., -1, :]
                phase = replace(phase, q=q, v=v)
                memory = None if segment.memory is None else segment.memory[..., -1, :]
                if progress is not None:
                    progress(now / last)
                if not np.isfinite(v).all() or any(self._due(e, now, phase) for e in events):
                    break
            if not np.isfinite(phase.v).all():
                return

    def _due(self, event: Event, now: int, phase: Phase) -> bool:
        """Whether an event takes place at the sample `now`."""
        if callable(event.at):
            return bool(np.all(event.at(self.clock.time(now), phase.q, phase.v)))
        return self.clock.sample(event.at) <= now

    def _one(self, phase: Phase, bound: Bound, now: int, memory: Array | None) -> Segment:
        """The segment of the sample `now` alone, which is the state of the phase."""
        q, v = phase.q[..., None, :], phase.v[..., None, :]
        kept = None if memory is None else memory[..., None, :]
        return Segment(phase, *bound, now, q, v, kept)

    def _phase(
        self, phase: Phase, bound: Bound, memory: Array | None, now: int, until: int, asked: bool
    ) -> Iterator[Segment]:
        """The samples (now, until], chunk by chunk; one by one if conditions of events are `asked`
        at each of them."""
        most = 1 if asked else min(doubled(until - now), chunk(self.robot))
        if self.options.method in ADAPTIVE:
            controller, values, sequences = bound
            how = self.options
            loop = ClosedLoop(controller, phase.plant, unroll=how.unroll)
            inputs = self._inputs(phase, memory, values)
            steps = solve(
                self.robot, loop, how.method, self.clock, phase, inputs, sequences, how.tolerances
            )
            for first, q, v in steps(now, until, most):
                yield Segment(phase, *bound, first, q, v, _repeated(memory, q))
            return
        for first, states in self._steps(phase, bound, memory).samples(now, until, most):
            new = states.part(slice(1, None))
            yield Segment(phase, *bound, first + 1, new.q, new.v, new.memory)

    def _steps(self, phase: Phase, bound: Bound, memory: Array | None) -> FixedSteps:
        """The steps of a method that has fixed ones."""
        how, (controller, values, sequences) = self.options, bound
        method = METHODS[how.method].name if how.method in METHODS else "rk4"
        loop = ClosedLoop(controller, phase.plant, method, how.coordinates, how.unroll)
        inputs = self._inputs(phase, memory, values)
        return FixedSteps(self.robot, loop, self.clock, phase, inputs, sequences)

    def _inputs(self, phase: Phase, memory: Array | None, values: Array | None) -> LoopInputs:
        """The numbers of the closed loop; active and locked None where they do not change."""
        active = phase.active * 1.0 if self.failing else None
        locked = phase.locked * 1.0 if phase.locked.any() else None
        return LoopInputs(self.clock.dt, memory, active, locked, values)

    def _at_once(self, phase: Phase, signals: bool) -> Trajectory:
        """All samples, by one call of the kernel where that takes a bounded time."""
        bound = self._bound(phase)
        phase, memory = self._spread(phase)
        samples = self.clock.samples
        most = min(samples, chunk(self.robot))
        steps = self._steps(phase, bound, memory)
        whole: States | None = None
        done = 0
        try:
            for first, states in steps.samples(0, samples, most):
                count = states.q.shape[-2]
                if whole is None:
                    whole = states if count > samples else states.room(samples + 1)
                if whole is not states:
                    whole.put(first, states)
                done = first + count
            assert whole is not None
            return self._rolled(phase, bound, whole, signals, complete=True)
        except KeyboardInterrupt:
            if whole is None or not done:
                raise
            found = whole.part(slice(0, done))
            raise Interrupted(self._rolled(phase, bound, found, signals)) from None

    def _rolled(
        self, phase: Phase, bound: Bound, found: States, signals: bool, *, complete: bool = False
    ) -> Trajectory:
        """The trajectory of a rollout whose first states are `found`."""
        segment = Segment(phase, *bound, 0, found.q, found.v, found.memory)
        observed = self._observed(segment) if signals else {}
        if complete:
            observed |= self._balanced(segment)
        tau = observed.pop("tau", np.broadcast_to(np.nan, found.v.shape))
        return Trajectory(
            self.robot, self.clock.time(segment.numbers), found.q, found.v, tau, signals=observed,
            units={name: unit for name, unit in UNITS.items() if name in observed},
            method=self.options.method, dt=self.clock.dt, passive=phase.plant.passive,
            springs=phase.plant.springs,
        )  # fmt: skip

    # ---- results -------------------------------------------------------------------------------

    def _observed(self, segment: Segment) -> dict[str, Array]:
        """The forces of the motors, "tau", and the signals of a segment, by name."""
        phase = segment.phase
        t = self.clock.time(segment.numbers)
        loop = ClosedLoop(segment.controller, phase.plant, unroll=self.options.unroll)
        values = None if segment.values is None else segment.values[..., None, :]
        inputs = self._inputs(phase, segment.memory, values)
        if segment.sequences is not None:
            steps = segment.numbers * self.clock.every
            inputs = inputs._replace(sequences=segment.sequences.at(steps))
        out = observe(self.robot, segment.q, segment.v, t, *inputs, loop=loop)
        return dict(named(out, phase.plant.closures))

    def _balanced(self, segment: Segment) -> dict[str, Array]:
        """The balance of a segment as signals, if it is wanted; doubts are kept."""
        if not self.options.verify or segment.q.shape[-2] < 2:
            return {}
        steps = self._steps(segment.phase, segment.bound, None)
        if self.options.method in ADAPTIVE:
            steps = steps.finer(ADAPTIVE_STEPS // 2)
        found = balance(steps, segment, self.clock.time(segment.numbers))
        self.doubts += found.doubts()
        return found.signals

    def _trajectory(
        self, segments: list[Segment], log: list[tuple[float, str]], frames: tuple[str, ...],
        *, complete: bool = False,
    ) -> Trajectory:  # fmt: skip
        """The trajectory of all segments; of two samples at one time the later, after the event.
        The balance is that of a `complete` motion alone."""
        parts = merged(segments)
        observed = [self._observed(segment) for segment in parts]
        if complete:
            observed = [
                own | self._balanced(segment) for own, segment in zip(observed, parts, strict=True)
            ]
        names = dict.fromkeys(name for own in observed for name in own)
        signals = {name: joined(name, observed, parts) for name in names}
        t = self.clock.time(np.concatenate([segment.numbers for segment in parts]))
        q = np.concatenate([segment.q for segment in parts], axis=-2)
        v = np.concatenate([segment.v for segment in parts], axis=-2)
        poses = {name: np.asarray(frame_pose(self.robot, q, name)) for name in frames}
        return Trajectory(
            self.robot, t, q, v, signals.pop("tau"), poses, signals, events=tuple(log),
            units={name: unit for name, unit in UNITS.items() if name in signals},
            method=self.options.method, dt=self.clock.dt, passive=parts[0].phase.plant.passive,
            springs=parts[0].phase.plant.springs,
        )  # fmt: skip


def _check_batch(phase: Phase, values: Array | None, sequences: Sequences | None) -> None:
    """Refuse parameters whose batch does not broadcast to that of the states."""
    batch, own = phase.q.shape[:-1], () if values is None else values.shape[:-1]
    over_time = () if sequences is None else sequences.batch
    try:
        fits = np.broadcast_shapes(batch, own, over_time) == batch
    except ValueError:
        fits = False
    if not fits:
        raise EventError(f"parameters change to a batch {own}, but the states have {batch}")


def _repeated(memory: Array | None, q: Array) -> Array | None:
    """The memory at each sample of q, where it does not change."""
    return None if memory is None else np.broadcast_to(memory, (*q.shape[:-1], memory.shape[-1]))
