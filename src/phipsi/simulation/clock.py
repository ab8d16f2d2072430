"""The steps and sampling times of a motion."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite
from numbers import Integral, Real
from typing import Annotated, Any, SupportsIndex, TypeAlias, overload

import numpy as np

from phipsi.typing import Array

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
    for name, value in (("duration", duration), ("dt", dt)):
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number or not isfinite(value) or value <= 0:
            raise ValueError(f"{name} is {value!r}, needs a positive number [s]")
    if not isinstance(every, Integral) or every < 1:
        raise ValueError(f"every is {every!r}, needs a whole number of steps ≥ 1")
    duration, dt, every = float(duration), float(dt), int(every)
    if dt * every > duration * (1.0 + 1e-9):
        raise ValueError(
            f"samples are {dt * every:g} s apart (dt times every), more than the duration of "
            f"{duration:g} s"
        )
    samples = max(1, ceil(duration / (dt * every) - 1e-9))
    if samples * every > 1e10:
        raise ValueError(
            f"a duration of {duration:g} s in steps of {dt:g} s are {samples * every:.0e} steps, "
            "more than 1e10; take a larger dt"
        )
    return Clock(duration, every, samples)
