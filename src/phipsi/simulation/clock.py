"""The steps and sampling times of a motion."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, nan
from numbers import Real
from typing import Annotated, Any, SupportsIndex, TypeAlias, overload

import numpy as np

from phipsi.arguments import as_count
from phipsi.model.untrusted import quoted
from phipsi.typing import Array

MOST_STEPS = 1e10
"""The most steps of a motion."""
Number: TypeAlias = float | np.floating[Any]
"""A real number of Python or of NumPy."""
Seconds: TypeAlias = Annotated[Array | float, ""]
"""A time or a step [s]: one number, or one for each row of the batch."""


@dataclass(frozen=True)
class Clock:
    """The times of a motion: `samples` samples after the start, `every` steps of dt apart."""

    duration: float
    every: int
    samples: int

    @property
    def dt(self) -> float:
        """The step [s]."""
        return self.duration / (self.samples * self.every)

    @overload
    def time(self, sample: int) -> float: ...
    @overload
    def time(self, sample: Array) -> Array: ...
    def time(self, sample: int | Array) -> float | Array:
        """The time [s] of a sample, or of several."""
        return self.duration * sample / self.samples

    def sample(self, at: float) -> int:
        """The sample nearest to a time [s]."""
        return round(at / self.duration * self.samples)


def clock_of(duration: Number, dt: Number, every: SupportsIndex) -> Clock:
    """The clock of a motion; dt is shortened if need be, so that samples divide the duration."""
    duration, dt = _seconds("duration", duration), _seconds("dt", dt)
    every = as_count("every", every, 1)
    if dt * every > duration * (1.0 + 1e-9):
        raise ValueError(
            f"samples are {dt * every:g} s apart (dt times every), more than the duration of "
            f"{duration:g} s"
        )
    steps = duration / dt if dt * MOST_STEPS > duration else inf
    if steps > MOST_STEPS:
        raise ValueError(
            f"a duration of {duration:g} s in steps of {dt:g} s are more than 1e10 "
            "steps; take a larger dt"
        )
    samples = max(1, ceil(steps / every - 1e-9))
    return Clock(duration, every, samples)


def _seconds(name: str, value: Number) -> float:
    """A positive time [s]; `name` is the argument in the error."""
    try:
        number = isinstance(value, Real) and not isinstance(value, bool)
        seconds = float(value) if number else nan
    except OverflowError:
        seconds = inf
    if not 0.0 < seconds < inf:
        raise ValueError(f"{name} is {quoted(value)}, needs a positive number [s]")
    return seconds
