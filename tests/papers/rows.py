"""Rows of docs/papers.md: what a paper says, what of phipsi is it, and how far it is off."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from inspect import getdoc
from math import inf
from typing import Any

import numpy as np

import phipsi
from phipsi.operators import SpaceError

WRONG = 1e-3
"""What is off by more is not rounding."""
Check = Callable[[], Iterable[float]]
Comparison = Callable[[], tuple[float, float]]


@dataclass(frozen=True)
class Row:
    """What rows of all tables have: where it is said, and the function that measures it."""

    paper: str
    item: str
    check: Callable[[], Any]
    tolerance: float

    @property
    def id(self) -> str:
        """As pytest names it."""
        return f"{self.paper} {self.item}"

    @property
    def test(self) -> tuple[str, str]:
        """The check: its file and name."""
        return f"{self.check.__module__.rpartition('.')[2]}.py", self.check.__name__

    @property
    def oracle(self) -> str:
        """What is compared with: the check's docstring."""
        return " ".join((getdoc(self.check) or "").rstrip(".").split())


@dataclass(frozen=True)
class Item(Row):
    """A numbered result of a paper."""

    what: str
    functions: tuple[str, ...]
    """Attributes of `phipsi`, dotted."""
    also: tuple[str, ...] = ()
    """Test files below `tests` that go further."""

    @property
    def missing(self) -> list[str]:
        """Functions that phipsi does not have."""
        return [name for name in self.functions if not _exists(name)]

    def measured(self) -> float:
        """The largest relative error."""
        errors = [float(x) for x in self.check()]
        if not errors:
            raise ValueError(f"{self.id} compares nothing")
        return float(np.max(errors))  # not a number if one is not

    def holds(self, measured: float) -> bool:
        """Is the item right?"""
        return measured <= self.tolerance


@dataclass(frozen=True)
class Misprint(Row):
    """A misprint of a paper, and what is right."""

    printed: str
    correct: str

    @property
    def id(self) -> str:
        """As pytest names it."""
        return f"{super().id} as printed"

    def measured(self) -> tuple[float, float]:
        """How far the printed form is off (infinitely if it means nothing), how far the corrected
        one."""
        wrong, right = self.check()
        return float(wrong), float(right)

    def holds(self, measured: tuple[float, float]) -> bool:
        """Is it a misprint, and the correction right?"""
        return measured[0] > WRONG and measured[1] <= self.tolerance


@dataclass
class Paper:
    """The items of one paper; `item` adds one by its check."""

    tag: str
    title: str
    items: list[Item] = field(default_factory=list)

    def item(
        self, item: str, what: str, functions: str, *, also: str = "", tolerance: float = 1e-10
    ) -> Callable[[Check], Check]:
        """What the decorated check measures: it yields relative errors. Names are separated by
        blanks."""

        def add(check: Check) -> Check:
            names = tuple(functions.split()), tuple(also.split())
            self.items.append(Item(self.tag, item, check, tolerance, what, *names))
            return check

        return add


MISPRINTS: list[Misprint] = []


def misprint(
    paper: str, item: str, printed: str, correct: str, tolerance: float = 1e-10
) -> Callable[[Comparison], Comparison]:
    """What the decorated check measures: the error as printed, and as corrected."""

    def add(check: Comparison) -> Comparison:
        MISPRINTS.append(Misprint(paper, item, check, tolerance, printed, correct))
        return check

    return add


# ---- errors -------------------------------------------------------------------------------------


def error(found: Any, expected: Any) -> float:
    """Largest difference over largest value, at least one."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    if found.shape != expected.shape:
        raise ValueError(f"shapes {found.shape} and {expected.shape}")
    if not expected.size:
        return 0.0
    return float(np.abs(found - expected).max() / max(1.0, np.abs(expected).max()))


def impossible(form: Callable[[], Any]) -> float:
    """Infinite if the form cannot be evaluated, for its sizes or spaces do not fit; else zero."""
    try:
        form()
    except (SpaceError, ValueError):
        return inf
    return 0.0


def _exists(name: str) -> bool:
    try:
        reduce(getattr, name.split("."), phipsi)
    except AttributeError:
        return False
    return True
