"""Long chains: code that does not grow with the number of links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

import phipsi as pp
from benchmarks.dynamics import contestants
from benchmarks.measure import Contestant, Effort, difference, race, timed
from benchmarks.robots import Case, chain, pin
from benchmarks.tables import Column, Section

BATCH = 64
RUNS = ((100, True), (100, False), (1_000, False), (10_000, False))
"""Links, and whether the code is unrolled."""
PEER = 100
"""Links up to which Pinocchio runs too."""


@dataclass(frozen=True)
class Chain:
    """Nanoseconds per link of one evaluation."""

    links: Annotated[int, Column("links", "{:,}")]
    form: Annotated[str, Column("form")]
    compiled: Annotated[float, Column("compile [s]", "{:.2f}")]
    operations: Annotated[int, Column("operations")]
    phipsi: Annotated[float, Column("phipsi [ns per link]", "{:.1f}")]
    growth: Annotated[float | None, Column("to 100 links, looped", "{:.2f}×")]
    peer: Annotated[float | None, Column("abaInParallel [ns per link]", "{:.0f}")]
    ratio: Annotated[float | None, Column("ratio", "{:.1f}×")]
    difference: Annotated[float | None, Column("difference", "{:.0e}")]
    residual: Annotated[float, Column("residual", "{:.0e}")]


def chains(effort: Effort) -> Section:
    """Revolute chains, unrolled and looped."""
    found: list[Chain] = []
    looped: float | None = None
    for links, unroll in RUNS:
        effort.say(f"{links} links, {'unrolled' if unroll else 'looped'}")
        case = chain(links, BATCH, peer=links <= PEER)
        kernel, compiled = timed(
            lambda case=case, unroll=unroll: pp.forward_dynamics.compile(
                case.robot, backend="llvm", threads=1, unroll=unroll
            )
        )
        effort.say(f"{links} links")
        runners, gap = _contestants(case, kernel)
        times = {name: t / links for name, t in race(runners, effort).items()}
        mine, peer = times["phipsi"], times.get("batch")
        looped = looped or (None if unroll else mine)
        found.append(Chain(
            links, "unrolled" if unroll else "looped", compiled, kernel.graph.operations, mine,
            None if unroll else mine / (looped or mine), peer, peer and peer / mine,
            gap, _residual(case, kernel),
        ))  # fmt: skip
    text = (
        f"`pp.forward_dynamics` of `pp.robots.chain(n)`, n revolute links, batch {BATCH}: compiled "
        f"as straight-line code (`unroll=True`), or as loops over the bodies (`unroll=False`, the "
        f"default for long chains). Pinocchio runs with 100 links only: the memory of its `Data` "
        f"grows with the cube of their number, 2 GB at 400 links. The residual: inverse "
        f"dynamics of the result less the joint forces given, over the largest joint force that "
        f"the motion needs without acceleration."
    )
    return Section("Long chains", text, found)


def _contestants(case: Case, kernel: pp.Kernel) -> tuple[dict[str, Contestant], float | None]:
    ours = (case.q, case.v, case.tau)
    if case.model is None:
        out = np.empty_like(case.v)
        return {"phipsi": Contestant(lambda: kernel(*ours, out=out), BATCH)}, None
    q, v, _, tau = case.theirs()
    runners, expected = contestants(case, kernel, ours, (q, v, tau), pin.aba, pin.abaInParallel)
    del runners["single"]
    return runners, difference(kernel(*ours), expected)


def _residual(case: Case, kernel: pp.Kernel) -> float:
    inverse = pp.inverse_dynamics.compile(case.robot, backend="llvm", threads=1, unroll=False)
    state = case.q[:4], case.v[:4]
    error = inverse(*state, kernel(*state, case.tau[:4])) - case.tau[:4]
    scale = inverse(*state, 0 * case.v[:4])
    return float(np.abs(error).max() / np.abs(scale).max())
