"""float32 against float64: twice the lanes, half the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

import phipsi as pp
from benchmarks.measure import Contestant, Effort, difference, race
from benchmarks.robots import BATCH, five
from benchmarks.tables import Aim, Column, Section

AIM = 1.9


@dataclass(frozen=True)
class Precision:
    """Nanoseconds per evaluation."""

    robot: Annotated[str, Column("robot")]
    double: Annotated[float, Column("float64 [ns]", "{:.1f}")]
    single: Annotated[float, Column("float32 [ns]", "{:.1f}")]
    ratio: Annotated[float, Column("ratio", "{:.2f}×")]
    aim: Annotated[Aim, Column("aim")]
    difference: Annotated[float, Column("difference", "{:.0e}")]


def precision(effort: Effort) -> Section:
    """Forward dynamics of all five robots."""
    found = []
    for case in five():
        effort.say(case.name)
        runners, results = {}, {}
        for dtype in ("float64", "float32"):
            kernel = pp.forward_dynamics.compile(case.robot, backend="llvm", dtype=dtype, threads=1)
            state = [x.astype(dtype) for x in (case.q, case.v, case.tau)]
            out = results[dtype] = np.empty(case.v.shape, dtype)
            runners[dtype] = Contestant(lambda k=kernel, x=state, y=out: k(*x, out=y), BATCH)
        times = race(runners, effort)
        ratio = times["float64"] / times["float32"]
        gap = difference(results["float32"], results["float64"])
        found.append(
            Precision(case.name, times["float64"], times["float32"], ratio, Aim(ratio, AIM), gap)
        )
    text = (
        f"`pp.forward_dynamics`, batch {BATCH:,}, inputs and outputs in the number type named. The "
        f"ratio and the difference are those of float64 and float32."
    )
    return Section("float32", text, found)
