"""A log of the sweeps that a program makes, for `Program.show`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any


class SweepLog:
    """The direction, the name and the formulas of each sweep, in order."""

    def __init__(self) -> None:
        self.sweeps: list[str] = []

    def lines(self) -> Iterator[str]:
        """A line for each sweep; a repeated group of up to four sweeps is shown once."""
        left = self.sweeps
        while left:
            runs = {n: _run(left, n) for n in range(1, 5)}
            size = max(runs, key=lambda n: (runs[n] > 1) * n * runs[n])
            yield from left[:size]
            if runs[size] > 1:
                yield f"         … {runs[size]} times"
            left = left[size * runs[size] :]


_log: ContextVar[SweepLog | None] = ContextVar("phipsi_sweep_log", default=None)


@contextmanager
def logged_sweeps() -> Generator[SweepLog]:
    """A context that logs the sweeps made inside."""
    log = SweepLog()
    token = _log.set(log)
    try:
        yield log
    finally:
        _log.reset(token)


def note(direction: str, step: Callable[..., Any]) -> None:
    """Add a sweep to the log, if one is active.

    The text is the first line of the step's docstring, or what its attribute `formulas` returns.
    """
    log = _log.get()
    if log is not None:
        formulas: Callable[[], list[str]] = getattr(step, "formulas", lambda: [])
        lines = formulas() or [(step.__doc__ or "").strip().split("\n")[0]]
        heads = [f"{direction:8} {step.__name__:16}", *[" " * 25] * (len(lines) - 1)]
        log.sweeps.append("\n".join(f"{h} {x}".rstrip() for h, x in zip(heads, lines, strict=True)))


def _run(lines: list[str], size: int) -> int:
    """How many times the first `size` lines stand in a row."""
    count = 1
    while lines[count * size : (count + 1) * size] == lines[:size]:
        count += 1
    return count
