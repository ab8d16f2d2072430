"""The table of checks, each a function of a robot at random states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from phipsi.verification.states import States


class Outcome(NamedTuple):
    """What a check found."""

    error: float
    tolerance: float
    note: str = ""


Unfit: TypeAlias = Callable[[States], str]
"""Why a check cannot be made of a robot; empty if it can."""
Run: TypeAlias = Callable[[States], Outcome]


class LeftOut(Exception):
    """A check cannot be made; the message says why."""


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    name: str
    what: str
    """What is compared."""
    function: Run
    unfit: Unfit

    def run(self, x: States) -> Outcome:
        """Make the check; `LeftOut` is raised if the robot does not fit it."""
        why = self.unfit(x)
        if why:
            raise LeftOut(why)
        return self.function(x)


TABLE: list[Row] = []
"""The checks in the order in which they are made."""


def check(name: str, what: str, unfit: Unfit) -> Callable[[Run], Run]:
    """Add a function to the table."""

    def added(function: Run) -> Run:
        TABLE.append(Row(name, what, function, unfit))
        return function

    return added


def moves(x: States) -> str:
    """Unfit: a robot without freedoms."""
    return "" if x.nv else "no freedoms"


def moves_dense(x: States) -> str:
    """Unfit: also one of many bodies, of which no dense matrices are made."""
    return moves(x) or ("" if x.few else f"{x.robot.nb} bodies")
