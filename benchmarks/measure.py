"""The clock: contestants run in turn, round by round, and the best round of each counts."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds, the least time [s] of a contestant in a round, and processes
    where each measurement needs a new one. `say` is told what is being measured."""

    rounds: int = 30
    span: float = 1e-2
    processes: int = 3
    say: Callable[[str], None] = lambda text: None


class Contestant(NamedTuple):
    """A call and how many evaluations it makes."""

    call: Callable[[], object]
    evaluations: int = 1


def race(contestants: Mapping[str, Contestant], effort: Effort) -> dict[str, float]:
    """Nanoseconds per evaluation of each contestant, the best of the interleaved rounds.

    In a round everybody runs for about the same time, that of the slowest call: a disturbance of
    the machine meets all of them alike.
    """
    once = {name: min(_seconds(c, 1) for _ in range(2)) for name, c in contestants.items()}
    span = max(effort.span, *once.values())
    calls = {name: max(1, round(span / t)) for name, t in once.items()}
    best = dict.fromkeys(contestants, float("inf"))
    with _undisturbed():
        for _ in range(effort.rounds):
            for name, contestant in contestants.items():
                best[name] = min(best[name], _seconds(contestant, calls[name]))
    return {name: 1e9 * best[name] / c.evaluations for name, c in contestants.items()}


def _seconds(contestant: Contestant, calls: int) -> float:
    call = contestant.call
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


@contextmanager
def _undisturbed() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and the seconds it took."""
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def difference(ours: Any, theirs: Any) -> float:
    """The largest difference over the largest value of its row, over all rows of a batch."""
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    axes = tuple(range(1, theirs.ndim))
    return float((np.abs(ours - theirs).max(axes) / np.abs(theirs).max(axes)).max())
