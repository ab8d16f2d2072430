"""Fixed steps: a motion from sample to sample, by calls of one kernel of bounded time each.

Between calls Ctrl-C is answered and progress is shown. How many steps a call makes depends on their
cost alone and not on a clock, so that the same motion is the same sequence of calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms import mass_matrix_product
from phipsi.model import Robot
from phipsi.simulation.clock import Clock
from phipsi.simulation.closed_loop import ClosedLoop, LoopInputs, advance
from phipsi.simulation.events import Phase
from phipsi.simulation.methods import METHODS
from phipsi.simulation.sequences import Sequences
from phipsi.typing import Array

WORK = 1 << 27
"""Operations of one call for a row, or for as many rows as are computed at once: 0.05 to 0.7 s, for
a core makes 2e8 to 2e9 per second. A call makes at least one step of each row; the rows of a step
are for the kernel to divide."""
LANES = 8
"""Rows that vector code computes at once."""
CHUNK = 1 << 14
"""Numbers recorded for one row by one call."""


class States(NamedTuple):
    """Consecutive states of a motion, (…, n, ·) each."""

    q: Array
    v: Array
    p: Array | None
    """The momentum 𝓜β that some methods integrate, each in the frame its hinge turns in."""
    memory: Array | None

    @property
    def first(self) -> States:
        """The first of the states, (…, ·)."""
        return self.each_array(lambda x: x[..., 0, :])

    def part(self, which: slice) -> States:
        """Some of the states."""
        return self.each_array(lambda x: x[..., which, :])

    def room(self, count: int) -> States:
        """Arrays for so many states of the same kind."""
        return self.each_array(lambda x: np.empty((*x.shape[:-2], count, x.shape[-1])))

    def put(self, first: int, states: States) -> None:
        """Write states, in the place of those from number `first` on."""
        for x, new in zip(self, states, strict=True):
            if x is not None and new is not None:
                x[..., first : first + new.shape[-2], :] = new

    def each_array(self, change: Callable[[Array], Array]) -> States:
        """The states with each array changed."""
        p, memory = (None if x is None else change(x) for x in (self.p, self.memory))
        return States(change(self.q), change(self.v), p, memory)


@dataclass(frozen=True)
class FixedSteps:
    """The steps of one phase of a motion."""

    robot: Robot
    loop: ClosedLoop
    clock: Clock
    phase: Phase
    inputs: LoopInputs
    sequences: Sequences | None
    offset: Array | float = 0.0
    """Steps before the first round; one number, or one for each row of the phase."""

    def finer(self, times: int) -> FixedSteps:
        """The same with so many steps in the place of one."""
        clock, sequences = self.clock, self.sequences
        if sequences is not None:
            sequences = replace(sequences, steps=sequences.steps * times)
        inputs = self.inputs._replace(dt=self.inputs.dt / times)
        clock = replace(clock, every=clock.every * times)
        return replace(self, clock=clock, inputs=inputs, sequences=sequences)

    def run(self, rounds: int, each: int) -> States:
        """The states at the beginning and after each of so many rounds of `each` steps."""
        return self._advanced(self._start(), 0, rounds, each)

    def samples(self, now: int, until: int, most: int) -> Iterator[tuple[int, States]]:
        """The samples from `now`, where the phase begins, to `until`, call by call: the number of
        the first, which is the last one before, and the states. A call makes `most` samples at
        most, and more than `until` if it is a power of two; what is too much is dropped."""
        rounds, each = self._bounded(most)
        stride = self.clock.every // each
        at, end = now * stride, until * stride
        state = self._start()
        known = state
        while at < end:
            states = self._advanced(state, at, rounds, each)
            count = min(rounds, end - at)
            state = states.part(slice(count, count + 1))
            if stride == 1:
                yield at, states.part(slice(0, count + 1))
            else:
                passed = states.part(slice(stride - at % stride, count + 1, stride))
                found = passed.q.shape[-2]
                if found:
                    both = passed.room(found + 1)
                    both.put(0, known)
                    both.put(1, passed)
                    yield at // stride, both
                    known = passed.part(slice(-1, None))
            at += count

    def _start(self) -> States:
        """The state at the beginning of the phase."""
        q, v = self.phase.q, self.phase.v
        p = None
        if METHODS[self.loop.method].carries_momentum:
            p = self.robot.inboard(q, np.asarray(mass_matrix_product(self.robot, q, v)))
        return States(q, v, p, self.inputs.memory).each_array(lambda x: x[..., None, :])

    def _bounded(self, most: int) -> tuple[int, int]:
        """The rounds of a call and the steps of each. A round is a sample, or a part of one where
        the steps from sample to sample take too long; there it is short, as no sequence jumps
        within."""
        every, rows = self.clock.every, -(-prod(self.phase.q.shape[:-1]) // LANES)
        arrays, options = self._arguments(self._start(), 0, most, every)
        operations = advance.operations(*arrays, **options)
        allowed = WORK * most * every // max(1, operations * rows)  # steps
        if most * every <= allowed:
            return most, every
        if every <= allowed:
            return _halved(allowed // every), every
        each = 1 if self.sequences is None else self.sequences.steps
        return min(_halved(allowed // each), chunk(self.robot)), each

    def _advanced(self, state: States, at: int, count: int, each: int) -> States:
        """The state and those after each of `count` times `each` steps, the first of which are
        those of the round `at`."""
        arrays, options = self._arguments(state, at, count, each)
        q, v, *rest = map(np.asarray, advance(*arrays, **options))
        p = None if state.p is None else rest.pop(0)
        return States(q, v, p, None if state.memory is None else rest.pop(0))

    def _arguments(
        self, state: States, at: int, count: int, each: int
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of `advance` for `count` times `each` steps from the round `at` on."""
        inputs, (q, v, p, memory) = self.inputs, state.first
        over_time: tuple[Array | None, Array | None] = None, None
        if self.sequences is not None:
            intervals = each // self.sequences.steps
            over_time = self.sequences.chosen(at * intervals, count * intervals).vectors
        first = self.offset + float(at * each)
        arrays = (
            self.robot, q, v, first, inputs.dt, p, memory, inputs.active, inputs.locked,
            inputs.parameters, *over_time,
        )  # fmt: skip
        return arrays, {"loop": self.loop, "count": count, "every": each}


def chunk(robot: Robot) -> int:
    """The samples of a robot that one call records, a power of two."""
    return doubled(CHUNK // max(1, robot.nq + robot.nv))


def doubled(count: int) -> int:
    """The next power of two, so that simulations of many lengths share a kernel."""
    return 1 << max(0, count - 1).bit_length()


def _halved(count: int) -> int:
    """The power of two before, at least one."""
    return 1 << max(0, count.bit_length() - 1)
