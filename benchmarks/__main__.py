"""`python -m benchmarks`: measure, show, and write BENCHMARKS.md."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console

from benchmarks import report
from benchmarks.batches import batches
from benchmarks.chains import chains
from benchmarks.compilation import compilation, imports
from benchmarks.constraints import constraints
from benchmarks.derivatives import derivatives
from benchmarks.dynamics import forward, inverse
from benchmarks.inverse_kinematics import inverse_kinematics
from benchmarks.large import large
from benchmarks.matrices import bandwidth, mass
from benchmarks.measure import Effort
from benchmarks.narrow import narrow
from benchmarks.operational import base_invariant, operational
from benchmarks.operators import operators
from benchmarks.precision import precision
from benchmarks.rollouts import rollouts
from benchmarks.single import single
from benchmarks.split import prices, split
from benchmarks.tables import Section, terminal
from benchmarks.threads import threads

SUBJECTS: dict[str, Callable[[Effort], Section]] = {
    f.__name__: f
    for f in (forward, inverse, operators, narrow, mass, bandwidth, precision, single, batches,
              threads, chains, large, operational, base_invariant, constraints, inverse_kinematics,
              split, prices, rollouts, derivatives, compilation, imports)
}  # fmt: skip


def main(
    subjects: Annotated[
        list[str] | None, typer.Argument(help=f"Only these, of: {', '.join(SUBJECTS)}.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Few rounds: a minute, and rough.")] = False,
) -> None:
    """Time phipsi beside Pinocchio and MuJoCo.

    All of it, in full, is written to BENCHMARKS.md; --quick or named subjects are printed only.
    """
    unknown = set(subjects or ()) - set(SUBJECTS)
    if unknown:
        raise typer.BadParameter(f"{min(unknown)!r} is not one of {', '.join(SUBJECTS)}")
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200  # a file has no edge
    facts, sections = report.facts(), []
    console.print(*facts, sep="\n", soft_wrap=True)
    with tempfile.TemporaryDirectory() as cache, console.status("") as status:
        os.environ["PHIPSI_CACHE_DIR"] = cache  # every compile time is that of a first time
        for name in subjects or SUBJECTS:

            def say(text: str, name: str = name) -> None:
                status.update(f"{name}: {text}")

            effort = Effort(4, 4e-3, 1, say) if quick else Effort(say=say)
            sections.append(SUBJECTS[name](effort))
            console.print(terminal(sections[-1]))
    console.print(report.verdict(sections), soft_wrap=True)
    if not quick and not subjects:
        report.write(report.document(sections, facts, Effort().rounds))
        console.print(f"written to {report.PATH}", soft_wrap=True)


if __name__ == "__main__":
    typer.run(main)
