"""What `pp.verify` found: checks with their errors and tolerances, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One comparison: its largest error at the states that were tried, and what rounding allows."""

    name: str
    what: str
    """What is compared."""
    error: float
    """The largest relative difference."""
    tolerance: float
    """The error that rounding, or the method of comparison, explains."""
    seconds: float
    note: str = ""
    """A remark, such as where the error is largest."""

    @property
    def ok(self) -> bool:
        """Whether the error is within the tolerance; one that is not finite is not."""
        return self.error <= self.tolerance


@dataclass(frozen=True)
class Verification:
    """The checks of one robot; printed, it is a table with a row for each."""

    robot: str
    """The name of the robot."""
    condition: float
    """The condition number of the mass matrix at the worst state, each freedom scaled by its own
    inertia: tolerances of what is solved for are in proportion to it."""
    checks: tuple[Check, ...]
    left_out: Mapping[str, str]
    """The checks that were not made, by name, and why."""

    @property
    def sound(self) -> bool:
        """Whether all checks are within their tolerances."""
        return all(check.ok for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that are not."""
        return tuple(check for check in self.checks if not check.ok)

    @property
    def seconds(self) -> float:
        """What all checks took [s]."""
        return sum(check.seconds for check in self.checks)

    def __getitem__(self, name: str) -> Check:
        """The check of that name."""
        for check in self.checks:
            if check.name == name:
                return check
        known = ", ".join(check.name for check in self.checks)
        raise KeyError(f"no check {name!r} was made; there are {known}")

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        count, wrong = len(self.checks), len(self.failed)
        state = f"{wrong} of {count} checks FAILED" if wrong else f"{count} checks passed"
        yield f"{self.robot}: {state} in {self.seconds:.1f} s, condition {self.condition:.1e}"
        width = max((len(check.name) for check in self.checks), default=0)
        for check in self.checks:
            word = "ok    " if check.ok else "FAILED"
            numbers = f"{check.error:8.1e} of {check.tolerance:7.1e} {check.seconds:5.1f} s"
            note = f" ({check.note})" if check.note else ""
            yield f"  {word} {check.name:{width}} {numbers}  {check.what}{note}"
        for name, why in self.left_out.items():
            yield f"  left out: {name} ({why})"
