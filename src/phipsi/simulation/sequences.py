"""Parameters of a controller that are sequences over time: held for some steps, or linear between.

A row of a sequence belongs to whole steps, so that a held value is constant at all stages of a step
of any method, and the row of each round of the loop over steps is known when it is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np

from phipsi.arguments import as_mapping, as_names
from phipsi.compile import Gathered
from phipsi.model.untrusted import quoted
from phipsi.simulation.clock import Seconds
from phipsi.typing import Array

Interpolation = Literal["hold", "linear"]
"""How a sequence is read between its rows."""
SequenceNames: TypeAlias = str | Iterable[str] | Mapping[str, Interpolation]
"""A name, several names, or {name: interpolation}; "hold" where none is said."""


def interpolations(names: SequenceNames) -> dict[str, Interpolation]:
    """The interpolation of each named sequence."""
    given: dict[str, Any]
    if isinstance(names, Mapping):
        given = as_mapping("sequences", cast("object", names))
    else:
        given = dict.fromkeys(as_names("sequences", names), "hold")
    for name, how in given.items():
        if not isinstance(how, str) or how not in get_args(Interpolation):
            raise ValueError(f"sequences: {name!r} is {quoted(how)}, needs 'hold' or 'linear'")
    return given


@dataclass(frozen=True)
class Sequences:
    """Sequences over the steps of a motion, side by side; numbers, or traced without a batch."""

    held: Array
    """(…, R, m): values held for `steps` steps each."""
    knots: Array
    """(…, R + 1, n): values at the ends of these intervals, linear in between."""
    steps: int

    @property
    def count(self) -> int:
        """The number of intervals."""
        return self.held.shape[-2]

    @property
    def vectors(self) -> tuple[Array | None, Array | None]:
        """Both in one vector each, (…, R m) and (…, (R + 1) n); None where there is none."""
        held, knots = (x.reshape(*x.shape[:-2], -1) for x in (self.held, self.knots))
        return held if held.shape[-1] else None, knots if knots.shape[-1] else None

    @property
    def batch(self) -> tuple[int, ...]:
        """The axes before those of rows and columns."""
        return self.held.shape[:-2]

    def chosen(self, first: int, count: int) -> Sequences:
        """Those of `count` intervals from the interval `first` on; past the end the last values."""
        rows = first + np.arange(count + 1)
        held = self.held[..., np.minimum(rows[:-1], self.count - 1), :]
        return Sequences(held, self.knots[..., np.minimum(rows, self.count), :], self.steps)

    def at(self, steps: Array) -> Array:
        """The values at the beginning of steps, (…, steps, m + n); at the end the last ones.

        `steps` are multiples of the length of the intervals.
        """
        rows = steps // self.steps
        held = self.held[..., np.minimum(rows, self.count - 1), :]
        return np.concatenate([held, self.knots[..., rows, :]], axis=-1)

    def within(self, row: int, part: float) -> Array:
        """The values in an interval, of which the fraction `part` has passed."""
        a, b = self.knots[..., row, :], self.knots[..., row + 1, :]
        return np.concatenate([self.held[..., row, :], a + part * (b - a)], axis=-1)

    # ---- in loops over samples, and over the steps between them ---------------------------------

    def by_sample(self, count: int, every: int) -> list[tuple[Array, Array]]:
        """What a round of a loop over `count` samples reads: arrays, and their rows by round."""
        first = np.arange(count) * every // self.steps
        window = first[:, None] + np.arange(max(1, every // self.steps) + 1)
        passed = (np.arange(count) * every % self.steps).astype(float)
        return [
            (self.held, window[:, :-1]),
            (self.knots, window),
            (passed, np.arange(count)),
        ]

    def window(self, held: Array, knots: Array, passed: Seconds) -> Window:
        """The rows of the steps up to the next sample, from what the round of a sample reads."""
        return Window(held, knots, passed, self.steps)


@dataclass(frozen=True)
class Window:
    """The rows of sequences that the steps between two samples need, inside a trace."""

    held: Array
    knots: Array
    passed: Seconds
    """The steps of the first interval that have passed before."""
    steps: int
    """Steps of an interval."""

    def by_step(self, every: int) -> list[tuple[Array, Array]]:
        """What a round of a loop over `every` steps reads."""
        step = np.arange(every)
        row = step // self.steps if every > self.steps else 0 * step
        passed = (step - row * self.steps).astype(float)
        return [(passed, step), (self.held, row), (self.knots, row), (self.knots, row + 1)]

    def first(self) -> StepValues:
        """The values of the one step, where there are no others."""
        return StepValues(self.passed, self.held[0], self.knots[0], self.knots[1], self.steps)

    def at_step(self, passed: Seconds, held: Array, before: Array, after: Array) -> StepValues:
        """The values of a step, from what its round reads."""
        return StepValues(self.passed + passed, held, before, after, self.steps)


@dataclass(frozen=True)
class StepValues:
    """The values of sequences during one step, inside a trace."""

    passed: Seconds
    """Steps of the interval that have passed."""
    held: Array
    before: Array
    """Of linear ones the values at the beginning of the interval, and at its end."""
    after: Array
    steps: int

    def at(self, part: Seconds) -> Array:
        """The values (m + n,) after a part of the step has passed, 0 to 1."""
        way = (self.passed + part) / float(self.steps)
        return np.concatenate([self.held, self.before + way * (self.after - self.before)])


def joined(
    given: Mapping[str, Array], how: Mapping[str, Interpolation], steps: int, every: int,
    *, nested: bool = False,
) -> Sequences:  # fmt: skip
    """Sequences of a motion of `steps` steps side by side, each given as (…, K, size).

    The intervals are the longest common ones that are a part or a multiple of `every` steps; a part
    if they are to be `nested` between the samples.
    """
    lengths: dict[str, int] = {}
    for name, x in given.items():
        rows = x.shape[-2]
        intervals = rows - (how[name] == "linear")
        if intervals < 1 or steps % intervals:
            needs = "one more than a divisor" if how[name] == "linear" else "a divisor"
            raise ValueError(
                f"{name} is a sequence of {rows} rows for {steps} steps; it needs {needs} of "
                "these as its number of rows"
            )
        lengths[name] = steps // intervals
    common = gcd(*lengths.values())
    if every % common and (nested or common % every):
        common = gcd(common, every)
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in given.values()))
    held, knots = (
        [np.zeros((*batch, steps // common, 0))],
        [np.zeros((*batch, steps // common + 1, 0))],
    )
    for name, x in given.items():
        times = lengths[name] // common
        wide = np.broadcast_to(x, (*batch, *x.shape[-2:])) if batch != x.shape[:-2] else x
        if how[name] == "hold":
            held.append(wide if times == 1 else np.repeat(wide, times, axis=-2))
        else:
            knots.append(wide if times == 1 else _refined(wide, times))
    return Sequences(_beside(held), _beside(knots), common)


def _beside(parts: list[Array]) -> Array:
    """The arrays along the last axis, of which the first has no columns."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts[1:], axis=-1)


def _refined(x: Array, times: int) -> Array:
    """Knots with `times` − 1 more between each two."""
    a, b = x[..., :-1, None, :], x[..., 1:, None, :]
    inner = a + (np.arange(times) / times)[:, None] * (b - a)
    return np.concatenate([inner.reshape(*x.shape[:-2], -1, x.shape[-1]), x[..., -1:, :]], axis=-2)


def rounds(count: int, more: list[tuple[Array, Array]]) -> Gathered:
    """The rows of a loop of `count` rounds: the number of the round, and more."""
    numbers = np.arange(count)
    return Gathered(((numbers.astype(float), numbers), *more))
