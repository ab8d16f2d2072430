"""Rows of docs/problems.md: a published problem, its runs, and how far each is off."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import phipsi as pp
from phipsi.simulation.adaptive import ADAPTIVE
from phipsi.typing import Array

Errors = dict[str, float]
"""Errors by the names of their columns."""
Compare = Callable[[pp.Trajectory], tuple[float, ...]]
"""The errors of a motion, in the order of the columns."""


@dataclass(frozen=True)
class Start:
    """A model and its state at t = 0, with the options of `simulate` that belong to it."""

    robot: pp.Robot
    q: Array
    v: Array | None = None
    controller: Any = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Measured:
    """What a run gave: errors by name, and processor times [s]."""

    errors: Errors
    compiling: float
    running: float


@dataclass(frozen=True)
class Run:
    """One simulation of a problem: how it is integrated, and the errors that it may have."""

    problem: str
    name: str
    start: Callable[[], Start]
    compare: Compare
    limits: Mapping[str, float]
    how: Mapping[str, Any]
    """Options of `simulate`: duration, dt and method among them."""
    tested: float
    """How many seconds of it the tests run, too."""

    @property
    def id(self) -> str:
        """As pytest names it."""
        return f"{self.problem} {self.name}, {self.how['method']}, {self.how['dt']:g} s"

    def errors(self, duration: float) -> Errors:
        """How far the motion is off within `duration` [s], by the names of `limits`."""
        return self._errors(self._motion(self.start(), duration))

    def measured(self) -> Measured:
        """Errors and times of the whole run. The time for tracing and compiling is what the first
        of two equal simulations takes longer; adaptive methods need no more than two samples for
        that, others compile all steps."""
        start, whole = self.start(), self.how["duration"]
        first = 2 * self.how["dt"] if self.how["method"] in ADAPTIVE else whole
        seconds = [_timed(lambda: self._motion(start, first))[0] for _ in range(2)]
        running, motion = _timed(lambda: self._motion(start, whole))
        return Measured(self._errors(motion), max(0.0, seconds[0] - seconds[1]), running)

    def holds(self, errors: Errors) -> bool:
        """Are the errors within their limits?"""
        return all(errors[name] <= limit for name, limit in self.limits.items())

    def _errors(self, motion: pp.Trajectory) -> Errors:
        return dict(zip(self.limits, self.compare(motion), strict=True))

    def _motion(self, start: Start, duration: float) -> pp.Trajectory:
        how = {**start.options, **self.how, "duration": duration}
        return pp.simulate(start.robot, start.q, start.v, start.controller, **how)


@dataclass
class Problem:
    """A published problem; `run` adds a simulation of it."""

    name: str
    title: str
    file: str
    text: str
    """What it is, its source, the model and the reference, as it stands on the page."""
    columns: tuple[str, ...]
    """The errors that its runs have, each with its unit."""
    runs: list[Run] = field(default_factory=list[Run])

    def run(
        self,
        name: str,
        start: Callable[[], Start],
        compare: Compare,
        limits: tuple[float, ...],
        *,
        tested: float = 0.0,
        **how: Any,
    ) -> None:
        """Add a simulation: `limits` are those of the columns, `how` the options of `simulate`."""
        bounds = dict(zip(self.columns, limits, strict=True))
        self.runs.append(Run(self.name, name, start, compare, bounds, how, tested))


def largest(difference: Array) -> float:
    """The largest absolute value."""
    return float(np.abs(difference).max())


def drift(motion: pp.Trajectory) -> float:
    """The largest change of the energy [J] since the start."""
    return largest(motion.energy - motion.energy[0])


def rod(mass: float, end: Array, width: float) -> dict[str, Any]:
    """Mass, centre and inertia of a square bar from the origin to `end`, along an axis."""
    along = np.abs(end) / np.linalg.norm(end)
    across = mass * (end @ end + width**2) / 12
    return {
        "mass": mass,
        "com": end / 2,
        "inertia": across + (mass * width**2 / 6 - across) * along,
    }


def _timed(function: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = function()
    return time.process_time() - started, result
