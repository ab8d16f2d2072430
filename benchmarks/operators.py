"""Forward dynamics as an expression that a person has typed, against Pinocchio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from benchmarks.dynamics import FORWARD, contestants
from benchmarks.measure import Effort, difference, race, timed
from benchmarks.robots import BATCH, five, pin
from benchmarks.tables import Aim, Column, Section, at_least
from phipsi.operators import A, H, M, T, a, b, phi
from phipsi.operators.lowering.plan import lower

TYPED = (H @ phi @ M @ phi.T @ H.T + A).inv @ (T - H @ phi @ (M @ phi.T @ a + b))


@dataclass(frozen=True)
class Expressed:
    """Nanoseconds per evaluation."""

    robot: Annotated[str, Column("robot")]
    phipsi: Annotated[float, Column("phipsi [ns]", "{:.1f}")]
    batch: Annotated[float, Column("abaInParallel [ns]", "{:.0f}")]
    ratio: Annotated[float, Column("ratio", "{:.1f}×")]
    aim: Annotated[Aim | None, Column("aim")]
    difference: Annotated[float, Column("difference", "{:.0e}")]
    operations: Annotated[int, Column("operations")]
    compiled: Annotated[float, Column("compile [s]", "{:.2f}")]


def operators(effort: Effort) -> Section:
    """All five robots."""
    found = []
    _, derived = timed(lambda: lower(TYPED))
    for case in five():
        effort.say(case.name)
        q, v, _, tau = case.theirs()
        program = TYPED.program()
        kernel, compiled = timed(lambda p=program, c=case: p.compile(c.robot, threads=1))
        ours = (case.q, case.v, case.tau)
        runners, expected = contestants(case, kernel, ours, (q, v, tau), pin.aba, pin.abaInParallel)
        del runners["single"]
        times = race(runners, effort)
        ratio = times["batch"] / times["phipsi"]
        found.append(Expressed(
            case.name, times["phipsi"], times["batch"], ratio,
            at_least(ratio, FORWARD.get(case.name)), difference(kernel(*ours), expected),
            kernel.graph.operations, compiled,
        ))  # fmt: skip
    text = (
        f"`{TYPED.ascii}` as it stands, simplified in {derived * 1e3:.0f} ms to "
        f"{lower(TYPED).plan.expression} and compiled: batch {BATCH:,}, against "
        f"`pin.abaInParallel` on one thread."
    )
    return Section("Forward dynamics, typed as an expression", text, found)
