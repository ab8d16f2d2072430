"""Forward and inverse dynamics of a batch, against Pinocchio's batch and single functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

import phipsi as pp
from benchmarks.measure import Contestant, Effort, difference, race, timed
from benchmarks.mujoco import mj_forward
from benchmarks.robots import BATCH, LOOPED, Case, columns, five, pin, rows
from benchmarks.tables import Aim, Column, Section, at_least

FORWARD = {"UR5": 75.0, "Panda": 50.0, "Solo12*": 45.0, "G1*": 35.0, "Talos*": 35.0}
INVERSE = {"UR5": 60.0, "G1*": 35.0}


@dataclass(frozen=True)
class Forward:
    """Nanoseconds per evaluation."""

    robot: Annotated[str, Column("robot")]
    phipsi: Annotated[float, Column("phipsi [ns]", "{:.1f}")]
    batch: Annotated[float, Column("abaInParallel [ns]", "{:.0f}")]
    single: Annotated[float, Column("aba [ns]", "{:.0f}")]
    mujoco: Annotated[float | None, Column("mj_forward [ns]", "{:.0f}")]
    ratio: Annotated[float, Column("ratio", "{:.1f}×")]
    aim: Annotated[Aim | None, Column("aim")]
    difference: Annotated[float, Column("difference", "{:.0e}")]
    operations: Annotated[int, Column("operations")]
    compiled: Annotated[float, Column("compile [s]", "{:.2f}")]


@dataclass(frozen=True)
class Inverse:
    """Nanoseconds per evaluation."""

    robot: Annotated[str, Column("robot")]
    phipsi: Annotated[float, Column("phipsi [ns]", "{:.1f}")]
    batch: Annotated[float, Column("rneaInParallel [ns]", "{:.0f}")]
    single: Annotated[float, Column("rnea [ns]", "{:.0f}")]
    ratio: Annotated[float, Column("ratio", "{:.1f}×")]
    aim: Annotated[Aim | None, Column("aim")]
    difference: Annotated[float, Column("difference", "{:.0e}")]
    operations: Annotated[int, Column("operations")]
    compiled: Annotated[float, Column("compile [s]", "{:.2f}")]


def forward(effort: Effort) -> Section:
    """All five robots."""
    found = []
    for case in five():
        effort.say(case.name)
        q, v, _, tau = case.theirs()
        kernel, compiled = _compiled(pp.forward_dynamics, case)
        ours = (case.q, case.v, case.tau)
        runners, expected = contestants(case, kernel, ours, (q, v, tau), pin.aba, pin.abaInParallel)
        mujoco = mj_forward(case, expected)
        times = race(runners | ({"mujoco": mujoco} if mujoco else {}), effort)
        ratio = times["batch"] / times["phipsi"]
        found.append(Forward(
            case.name, times["phipsi"], times["batch"], times["single"], times.get("mujoco"), ratio,
            at_least(ratio, FORWARD.get(case.name)), difference(kernel(*ours), expected),
            kernel.graph.operations, compiled,
        ))  # fmt: skip
    text = (
        f"`pp.forward_dynamics`, batch {BATCH:,}, against `pin.abaInParallel` on one thread, "
        f"`pin.aba` state by state, and MuJoCo's `mj_forward` with constraints and contacts off, "
        f"the time of setting its state left out. A dash: MuJoCo cannot have the robot, or moves "
        f"it otherwise."
    )
    return Section("Forward dynamics", text, found)


def inverse(effort: Effort) -> Section:
    """All five robots."""
    found = []
    for case in five():
        effort.say(case.name)
        q, v, a, _ = case.theirs()
        kernel, compiled = _compiled(pp.inverse_dynamics, case)
        ours = (case.q, case.v, case.a)
        runners, expected = contestants(case, kernel, ours, (q, v, a), pin.rnea, pin.rneaInParallel)
        times = race(runners, effort)
        ratio = times["batch"] / times["phipsi"]
        found.append(Inverse(
            case.name, times["phipsi"], times["batch"], times["single"], ratio,
            at_least(ratio, INVERSE.get(case.name)), difference(kernel(*ours), expected),
            kernel.graph.operations, compiled,
        ))  # fmt: skip
    text = (
        f"`pp.inverse_dynamics`, batch {BATCH:,}, against `pin.rneaInParallel` on one thread and "
        f"`pin.rnea` state by state."
    )
    return Section("Inverse dynamics", text, found)


def _compiled(program: pp.Program[..., Any], case: Case) -> tuple[pp.Kernel, float]:
    return timed(lambda: program.compile(case.robot, backend="llvm", dtype="float64", threads=1))


def contestants(
    case: Case,
    kernel: pp.Kernel,
    ours: tuple[np.ndarray, ...],
    theirs: tuple[np.ndarray, ...],
    single: Callable[..., Any],
    batch: Callable[..., Any],
) -> tuple[dict[str, Contestant], np.ndarray]:
    """A kernel, Pinocchio's batch function and its single one; and the batch's result, ours."""
    model, data, pool = case.model, case.model.createData(), pin.ModelPool(case.model, 1)
    count = len(ours[0])
    wide, loop = columns(theirs), rows(x[:LOOPED] for x in theirs)
    out, result = np.empty((count, case.robot.nv)), np.empty((case.robot.nv, count), order="F")

    def one_by_one() -> None:
        for x, y, z in loop:
            single(model, data, x, y, z)

    runners = {
        "phipsi": Contestant(lambda: kernel(*ours, out=out), count),
        "batch": Contestant(lambda: batch(1, pool, *wide, result), count),
        "single": Contestant(one_by_one, len(loop)),
    }
    runners["batch"].call()
    return runners, case.ours(np.ascontiguousarray(result.T))
