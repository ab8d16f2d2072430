"""From one state to many: where the time per evaluation settles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import phipsi as pp
from benchmarks.dynamics import contestants
from benchmarks.measure import Effort, race
from benchmarks.robots import load, pin
from benchmarks.tables import Column, Section

SIZES = tuple(4**k for k in range(9))


@dataclass(frozen=True)
class Batch:
    """Nanoseconds per evaluation."""

    size: Annotated[int, Column("batch", "{:,}")]
    phipsi: Annotated[float, Column("phipsi [ns]", "{:.1f}")]
    pinocchio: Annotated[float, Column("abaInParallel [ns]", "{:.0f}")]
    ratio: Annotated[float, Column("ratio", "{:.1f}×")]


def batches(effort: Effort) -> Section:
    """Forward dynamics of the UR5."""
    whole = load("UR5", SIZES[-1])
    kernel = pp.forward_dynamics.compile(whole.robot, backend="llvm", threads=1)
    found = []
    for size in SIZES:
        effort.say(f"batch {size}")
        ours = tuple(x[:size] for x in (whole.q, whole.v, whole.tau))
        q, v, _, tau = whole.theirs(size)
        runners, _ = contestants(whole, kernel, ours, (q, v, tau), pin.aba, pin.abaInParallel)
        del runners["single"]
        times = race(runners, effort)
        ratio = times["batch"] / times["phipsi"]
        found.append(Batch(size, times["phipsi"], times["batch"], ratio))
    text = "`pp.forward_dynamics` of the UR5 against `pin.abaInParallel` on one thread."
    return Section("Batch sizes", text, found)
