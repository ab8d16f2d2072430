"""Single calls: what it costs to evaluate one state from Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

import phipsi as pp
from benchmarks.measure import Contestant, Effort, race
from benchmarks.robots import LOOPED, Case, five, pin, rows
from benchmarks.tables import Aim, Column, Section, at_least

FRESH, IN_PLACE = {"UR5": 3.5}, {"UR5": 6.0}


@dataclass(frozen=True)
class Single:
    """Microseconds per call."""

    robot: Annotated[str, Column("robot")]
    fresh: Annotated[float, Column("kernel [µs]", "{:.2f}")]
    in_place: Annotated[float, Column("kernel, out= [µs]", "{:.2f}")]
    program: Annotated[float, Column("program [µs]", "{:.2f}")]
    overhead: Annotated[float, Column("program − kernel [µs]", "{:.2f}")]
    pinocchio: Annotated[float, Column("pin.aba [µs]", "{:.2f}")]
    ratio: Annotated[float, Column("aba / kernel", "{:.1f}×")]
    aim: Annotated[Aim | None, Column("aim")]
    ratio_in_place: Annotated[float, Column("aba / kernel, out=", "{:.1f}×")]
    aim_in_place: Annotated[Aim | None, Column("aim, out=")]


def single(effort: Effort) -> Section:
    """All five robots."""
    found = []
    for case in five():
        effort.say(case.name)
        kernel = pp.forward_dynamics.compile(case.robot, backend="llvm", threads=1)
        fresh, in_place, called, theirs = (
            1e-3 * t for t in race(contestants(case, kernel), effort).values()
        )
        found.append(Single(
            case.name, fresh, in_place, called, called - fresh, theirs,
            theirs / fresh, at_least(theirs / fresh, FRESH.get(case.name)),
            theirs / in_place, at_least(theirs / in_place, IN_PLACE.get(case.name)),
        ))  # fmt: skip
    text = (
        "Forward dynamics of one state: the kernel of `pp.forward_dynamics.compile(robot)` with a "
        "new array for the result and with `out=`, the program `pp.forward_dynamics(robot, q, v, "
        "tau)`, which finds its kernel by itself, and `pin.aba`."
    )
    return Section("Single calls", text, found)


def contestants(case: Case, kernel: pp.Kernel) -> dict[str, Contestant]:
    """The four ways, each a bare loop over the same states."""
    robot, model, data = case.robot, case.model, case.model.createData()
    program, out, aba = pp.forward_dynamics, np.empty(robot.nv), pin.aba
    ours = rows(x[:LOOPED] for x in (case.q, case.v, case.tau))
    q, v, _, tau = case.theirs(LOOPED)
    theirs = rows((q, v, tau))

    def fresh() -> None:
        for q, v, tau in ours:
            kernel(q, v, tau)

    def in_place() -> None:
        for q, v, tau in ours:
            kernel(q, v, tau, out=out)

    def called() -> None:
        for q, v, tau in ours:
            program(robot, q, v, tau)

    def pinocchio() -> None:
        for q, v, tau in theirs:
            aba(model, data, q, v, tau)

    return {f.__name__: Contestant(f, LOOPED) for f in (fresh, in_place, called, pinocchio)}
