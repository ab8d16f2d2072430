"""Forward and inverse dynamics with the vectors of AVX2 on a machine that has AVX-512."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any
from unittest.mock import patch

import phipsi as pp
from benchmarks.dynamics import FORWARD, INVERSE, contestants
from benchmarks.measure import Effort, difference, race
from benchmarks.robots import BATCH, five, pin
from benchmarks.tables import Aim, Column, Section, at_least
from phipsi.compile import jit, native


@dataclass(frozen=True)
class Narrow:
    """Nanoseconds per evaluation."""

    robot: Annotated[str, Column("robot")]
    what: Annotated[str, Column("function")]
    phipsi: Annotated[float, Column("phipsi [ns]", "{:.1f}")]
    batch: Annotated[float, Column("Pinocchio [ns]", "{:.0f}")]
    ratio: Annotated[float, Column("ratio", "{:.1f}×")]
    aim: Annotated[Aim | None, Column("aim")]
    difference: Annotated[float, Column("difference", "{:.0e}")]


@contextmanager
def avx2() -> Iterator[None]:
    """Compile for a Haswell."""
    triple, _, features = jit.target()
    kept = (f for f in features.split(",") if not f[1:].startswith(("avx512", "avx10")))
    less = ",".join((*kept, "-avx512f"))
    native._version.cache_clear()
    with patch.object(jit, "target", lambda: (triple, "haswell", less)):
        yield
    native._version.cache_clear()


def narrow(effort: Effort) -> Section:
    """All five robots; the aims are half of those with AVX-512."""
    found = []
    functions: list[tuple[pp.Program[..., Any], Any, Any, dict[str, float]]] = [
        (pp.forward_dynamics, pin.aba, pin.abaInParallel, FORWARD),
        (pp.inverse_dynamics, pin.rnea, pin.rneaInParallel, INVERSE),
    ]
    for case in five():
        effort.say(case.name)
        q, v, a, tau = case.theirs()
        for program, single, batch, aims in functions:
            forward = program is pp.forward_dynamics
            with avx2():
                kernel = program.compile(case.robot, backend="llvm", threads=1)
            ours = (case.q, case.v, case.tau if forward else case.a)
            theirs = (q, v, tau if forward else a)
            runners, expected = contestants(case, kernel, ours, theirs, single, batch)
            del runners["single"]
            times = race(runners, effort)
            ratio, aim = times["batch"] / times["phipsi"], aims.get(case.name)
            found.append(Narrow(
                case.name, program.name, times["phipsi"], times["batch"], ratio,
                at_least(ratio, aim and 0.5 * aim), difference(kernel(*ours), expected),
            ))  # fmt: skip
    text = (
        f"Forward and inverse dynamics again, batch {BATCH:,}, compiled for a Haswell: four "
        f"float64 at once instead of eight. The aims are half of those above."
    )
    return Section("AVX2", text, found)
