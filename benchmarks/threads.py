"""Two threads against one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

import phipsi as pp
from benchmarks.measure import Contestant, Effort, race
from benchmarks.robots import load
from benchmarks.tables import Aim, Column, Section

BATCH, AIM = 65_536, 1.7


@dataclass(frozen=True)
class Threads:
    """Nanoseconds per evaluation."""

    robot: Annotated[str, Column("robot")]
    one: Annotated[float, Column("1 thread [ns]", "{:.1f}")]
    two: Annotated[float, Column("2 threads [ns]", "{:.1f}")]
    ratio: Annotated[float, Column("ratio", "{:.2f}×")]
    aim: Annotated[Aim, Column("aim")]


def threads(effort: Effort) -> Section:
    """Forward dynamics of a small and a large robot."""
    found = []
    for name in ("UR5", "G1*"):
        effort.say(name)
        case = load(name, BATCH)
        runners = {}
        for count in (1, 2):
            kernel = pp.forward_dynamics.compile(case.robot, backend="llvm", threads=count)
            out, state = np.empty_like(case.v), (case.q, case.v, case.tau)
            runners[str(count)] = Contestant(lambda k=kernel, x=state, y=out: k(*x, out=y), BATCH)
        times = race(runners, effort)
        ratio = times["1"] / times["2"]
        found.append(Threads(name, times["1"], times["2"], ratio, Aim(ratio, AIM)))
    text = (
        f"`pp.forward_dynamics`, batch {BATCH:,}, compiled with `threads=1` and `threads=2`; the "
        f"ratio of the two."
    )
    return Section("Threads", text, found)
