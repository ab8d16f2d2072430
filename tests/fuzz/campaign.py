"""Runs targets in worker processes, counts outcomes, and makes failing inputs small."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path
from threading import Event, Lock

from tests.fuzz.target import Target
from tests.fuzz.worker import Result, Worker

PATIENCE = 20.0
"""The most seconds in which an input is made smaller."""
Tell = Callable[[str], None]


@dataclass
class Failure:
    """A kind of failure: its first case, how often it was met, and a small input that shows it."""

    case: int
    result: Result
    count: int = 1
    content: bytes = b""


@dataclass
class Tally:
    """What came of the inputs of a target."""

    target: Target
    inputs: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    """Of all inputs together, on one core."""
    worst: Result | None = None
    """The input that took longest."""
    peak: int = 0
    """The most bytes in memory of a process."""
    failures: dict[str, Failure] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        """Count a result."""
        self.inputs += 1
        self.kinds[result.outcome.failure or result.outcome.kind] += 1
        self.seconds += result.seconds
        self.peak = max(self.peak, result.peak)
        if self.worst is None or result.seconds > self.worst.seconds:
            self.worst = result
        if name := result.outcome.failure:
            known = self.failures.get(name)
            if known is None or result.case < known.case:
                self.failures[name] = Failure(result.case, result, known.count + 1 if known else 1)
            else:
                known.count += 1

    @property
    def accepted(self) -> int:
        """Inputs that were not refused."""
        return self.kinds["accepted"]

    @property
    def refusals(self) -> int:
        """How many different refusals there were, names and numbers left out."""
        return len(self.kinds.keys() - {"accepted"} - self.failures.keys())


def fuzz(target: Target, seed: int, cases: range, jobs: int = 1, minutes: float = 0.0) -> Tally:
    """Run cases of a target in so many processes, for no longer than the minutes if any are given.

    A case is the same whatever runs beside it.
    """
    tally, lock, stop = Tally(target), Lock(), Event()
    until = time.monotonic() + 60 * minutes if minutes else float("inf")

    def run(job: int) -> None:
        with Worker() as worker:
            for result in worker.run(target, seed, cases[job::jobs]):
                with lock:
                    tally.add(result)
                if stop.is_set() or time.monotonic() > until:
                    return

    with ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(run, job) for job in range(jobs)]
        try:
            for job in running:
                job.result()
        finally:
            stop.set()
    for failure in tally.failures.values():
        failure.content = target.content(seed, failure.case)
    return tally


def minimised(target: Target, failure: Failure, worker: Worker) -> bytes:
    """An input as small as is found within `PATIENCE` that fails in the same way, by dropping what
    can be dropped; the input itself where it does not fail again."""
    content, wanted = failure.content, failure.result.outcome.failure
    until, first = time.monotonic() + PATIENCE, 0
    if worker.use(target, content).outcome.failure != wanted:
        return content
    while time.monotonic() < until:
        candidates = islice(enumerate(target.smaller(content)), first, None)
        for k, smaller in _until(until, candidates):
            if worker.use(target, smaller).outcome.failure == wanted:
                content, first = smaller, k  # what could not be dropped before k is tried at last
                break
        else:
            if not first:
                break
            first = 0
    return content


def _until(until: float, candidates: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    return takewhile(lambda _: time.monotonic() < until, candidates)


def kept(tally: Tally, folder: Path, tell: Tell) -> None:
    """Write a small input for each failure of a target to a folder, and say how to run it."""
    with Worker() as worker:
        for k, (name, failure) in enumerate(tally.failures.items()):
            small = minimised(tally.target, failure, worker)
            file = folder / f"{tally.target.name}-{k}{tally.target.suffix}"
            folder.mkdir(parents=True, exist_ok=True)
            file.write_bytes(small)
            file.with_name(f"{file.name}.failure").write_text(
                f"{name}\ncase {failure.case}, {failure.count} times\n"
                f"{failure.result.outcome.details}\n"
            )
            tell(f"  {failure.count} × {name}")
            tell(f"    python -m tests.fuzz --only {tally.target.name} --input {file}")
