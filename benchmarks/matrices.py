"""The mass matrix and its inverse: against Pinocchio, and against the memory's own speed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

import phipsi as pp
from benchmarks.measure import Contestant, Effort, difference, race
from benchmarks.robots import BATCH, LOOPED, Case, five, load, pin
from benchmarks.tables import Aim, Column, Section, at_least

AIM = {"UR5": 15.0}
STORED = {"G1*": 60.0}
FUNCTIONS: dict[str, tuple[pp.Program[..., Any], Callable[..., Any]]] = {
    "mass_matrix / crba": (pp.mass_matrix, pin.crba),
    "mass_matrix_inverse / computeMinverse": (pp.mass_matrix_inverse, pin.computeMinverse),
}


@dataclass(frozen=True)
class Matrix:
    """Nanoseconds per evaluation."""

    robot: Annotated[str, Column("robot")]
    function: Annotated[str, Column("function")]
    phipsi: Annotated[float, Column("phipsi [ns]", "{:.1f}")]
    pinocchio: Annotated[float, Column("Pinocchio [ns]", "{:.0f}")]
    ratio: Annotated[float, Column("ratio", "{:.1f}×")]
    aim: Annotated[Aim | None, Column("aim")]
    difference: Annotated[float, Column("difference", "{:.0e}")]
    operations: Annotated[int, Column("operations")]


@dataclass(frozen=True)
class Stores:
    """Bytes of output per second."""

    robot: Annotated[str, Column("robot")]
    function: Annotated[str, Column("function")]
    size: Annotated[float, Column("output [MB]", "{:.1f}")]
    phipsi: Annotated[float, Column("phipsi [GB/s]", "{:.1f}")]
    memory: Annotated[float, Column("store bandwidth [GB/s]", "{:.1f}")]
    how: Annotated[str, Column("measured by")]
    fraction: Annotated[float, Column("fraction", "{:.0f} %")]
    aim: Annotated[Aim | None, Column("aim")]


def mass(effort: Effort) -> Section:
    """All five robots."""
    found = []
    for case in five():
        for name, (program, function) in FUNCTIONS.items():
            effort.say(f"{case.name}, {program.name}")
            kernel = program.compile(case.robot, backend="llvm", threads=1)
            out = np.empty((BATCH, case.robot.nv, case.robot.nv))
            runners = {
                "phipsi": Contestant(lambda k=kernel, c=case, y=out: k(c.q, out=y), BATCH),
                "pinocchio": _one_by_one(case, function),
            }
            times = race(runners, effort)
            ratio = times["pinocchio"] / times["phipsi"]
            found.append(Matrix(
                case.name, name, times["phipsi"], times["pinocchio"], ratio,
                at_least(ratio, AIM.get(case.name)), _compared(case, function, out),
                kernel.graph.operations,
            ))  # fmt: skip
    text = (
        f"Batch {BATCH:,} for phipsi; Pinocchio has no batch form of these, so its functions are "
        f"called state by state, the Python call included. phipsi writes the whole matrix, "
        f"Pinocchio the upper triangle."
    )
    return Section("Mass matrix and its inverse", text, found)


def bandwidth(effort: Effort) -> Section:
    """The two largest robots, whose matrices do not fit into the cache."""
    found = []
    for case in (load("G1*"), load("Talos*")):
        shape = (BATCH, case.robot.nv, case.robot.nv)
        for name, (program, _) in FUNCTIONS.items():
            effort.say(f"{case.name}, {program.name}")
            kernel = program.compile(case.robot, backend="llvm", threads=1)
            out, filled, copied = (np.empty(shape) for _ in range(3))
            source = np.broadcast_to(np.arange(shape[-1], dtype=float), shape)
            times = race({
                "phipsi": Contestant(lambda k=kernel, c=case, y=out: k(c.q, out=y)),
                "ndarray.fill": Contestant(lambda y=filled: y.fill(1.0)),
                "np.copyto": Contestant(lambda y=copied, x=source: np.copyto(y, x)),
            }, effort)  # fmt: skip
            ours = times.pop("phipsi")
            how, theirs = min(times.items(), key=lambda item: item[1])
            percent = 100.0 * theirs / ours
            found.append(Stores(
                case.name, name.partition(" ")[0], out.nbytes / 1e6, out.nbytes / ours,
                out.nbytes / theirs, how, percent,
                at_least(percent, STORED.get(case.name), " %"),
            ))  # fmt: skip
    text = (
        f"Large matrices are bound by memory: bytes of output per second at batch {BATCH:,}, "
        f"as a fraction of the fastest way found in this run to fill an array of the same size "
        f"(the better of `ndarray.fill` and `np.copyto` of a broadcast row)."
    )
    return Section("Mass matrix: store bandwidth", text, found)


def _one_by_one(case: Case, function: Callable[..., Any]) -> Contestant:
    model, data = case.model, case.model.createData()
    states = list(case.theirs(LOOPED)[0])

    def run() -> None:
        for q in states:
            function(model, data, q)

    return Contestant(run, LOOPED)


def _compared(case: Case, function: Callable[..., Any], ours: np.ndarray) -> float:
    """The largest difference of our matrices from theirs."""
    data, n = case.model.createData(), case.robot.nv
    order = case.ours(np.arange(n, dtype=float)[None])[0].astype(int)
    expected = []
    for q in case.theirs(LOOPED)[0]:
        upper = np.triu(function(case.model, data, q))
        expected.append((upper + np.triu(upper, 1).T)[np.ix_(order, order)])
    return difference(ours[:LOOPED], expected)
