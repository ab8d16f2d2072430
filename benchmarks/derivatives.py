"""Derivatives of dynamics, against Pinocchio and against the memory's own speed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

import phipsi as pp
from benchmarks.measure import Contestant, Effort, difference, race, timed
from benchmarks.robots import BATCH, LOOPED, Case, five, pin, rows
from benchmarks.tables import Aim, Column, Section, at_least

FORWARD = {"UR5": 25.0, "G1*": 15.0}
FUNCTIONS: dict[str, tuple[pp.Program[..., Any], Callable[..., Any]]] = {
    "forward / computeABADerivatives": (
        pp.forward_dynamics_derivatives, pin.computeABADerivatives),
    "inverse / computeRNEADerivatives": (
        pp.inverse_dynamics_derivatives, pin.computeRNEADerivatives),
}  # fmt: skip


@dataclass(frozen=True)
class Derivative:
    """Nanoseconds per evaluation, and bytes of output per second."""

    robot: Annotated[str, Column("robot")]
    function: Annotated[str, Column("function")]
    phipsi: Annotated[float, Column("phipsi [ns]", "{:.0f}")]
    pinocchio: Annotated[float, Column("Pinocchio [ns]", "{:.0f}")]
    ratio: Annotated[float, Column("ratio", "{:.1f}×")]
    aim: Annotated[Aim | None, Column("aim")]
    difference: Annotated[float, Column("difference", "{:.0e}")]
    operations: Annotated[int, Column("operations")]
    compiled: Annotated[float, Column("compile [s]", "{:.1f}")]
    size: Annotated[float, Column("output [kB]", "{:.1f}")]
    rate: Annotated[float, Column("output [GB/s]", "{:.1f}")]
    fill: Annotated[float, Column("fill [GB/s]", "{:.1f}")]


def derivatives(effort: Effort) -> Section:
    """All five robots, forward and inverse dynamics."""
    found = []
    for case in five():
        for name, (program, function) in FUNCTIONS.items():
            effort.say(f"{case.name}, {name}")
            aim = FORWARD.get(case.name) if program is pp.forward_dynamics_derivatives else None
            found.append(_measured(case, name, program, function, aim, effort))
    text = (
        f"`pp.forward_dynamics_derivatives` and `pp.inverse_dynamics_derivatives`, batch {BATCH:,}:"
        f" three matrices nv × nv for every state. Pinocchio has no batch form, so its functions "
        f"are called state by state, the Python call included (some 0.5 µs of a UR5's, the "
        f"difference between `aba` and `abaInParallel` above). Output is what phipsi writes for a "
        f"state, per second; fill is how fast `ndarray.fill` writes arrays of that size in the "
        f"same rounds."
    )
    return Section("Derivatives of dynamics", text, found)


def _measured(
    case: Case,
    name: str,
    program: pp.Program[..., Any],
    function: Callable[..., Any],
    aim: float | None,
    effort: Effort,
) -> Derivative:
    kernel, compiled = timed(lambda: program.compile(case.robot, backend="llvm", threads=1))
    forward = program is pp.forward_dynamics_derivatives
    shape = (BATCH, case.robot.nv, case.robot.nv)
    out, filled = ([np.empty(shape) for _ in range(3)] for _ in range(2))
    state = case.q, case.v, case.tau if forward else case.a
    q, v, a, tau = case.theirs(LOOPED)
    theirs, model, data = rows((q, v, tau if forward else a)), case.model, case.model.createData()

    def one_by_one() -> None:
        for x, y, z in theirs:
            function(model, data, x, y, z)

    times = race({
        "phipsi": Contestant(lambda: kernel(*state, out=out), BATCH),
        "pinocchio": Contestant(one_by_one, LOOPED),
        "fill": Contestant(lambda: [y.fill(1.0) for y in filled], BATCH),
    }, effort)  # fmt: skip
    size, ratio = 8 * 3 * case.robot.nv**2, times["pinocchio"] / times["phipsi"]
    return Derivative(
        case.name, name, times["phipsi"], times["pinocchio"], ratio, at_least(ratio, aim),
        _compared(case, function, theirs, out), kernel.graph.operations, compiled,
        1e-3 * size, size / times["phipsi"], size / times["fill"],
    )  # fmt: skip


def _compared(case: Case, function: Callable[..., Any], states: Any, ours: Any) -> float:
    """The largest difference of our matrices from theirs."""
    order = case.ours(np.arange(case.robot.nv, dtype=float)[None])[0].astype(int)
    data, expected = case.model.createData(), []
    for state in states:
        dq, dv, last = (np.array(x) for x in function(case.model, data, *state))
        last = np.triu(last) + np.triu(last, 1).T
        expected.append([x[np.ix_(order, order)] for x in (dq, dv, last)])
    pairs = zip(ours, zip(*expected, strict=True), strict=True)
    return max(difference(x[: len(states)], np.array(y)) for x, y in pairs)
