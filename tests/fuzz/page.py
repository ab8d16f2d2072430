"""The text of docs/fuzzing.md: a row for each target, as its last whole campaign left it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.campaign import Tally
from tests.fuzz.worker import MEMORY, ROOT

PAGE = ROOT / "docs" / "fuzzing.md"
TEXT = Path(__file__).with_name("page.md")


def report(tallies: Sequence[Tally], seed: int, here: str, minutes: float) -> str:
    """The whole page."""
    rows = "\n".join(map(row, tallies))
    found = "\n".join(
        f"- {t.target.name}: {f.count} × {name} (case {f.case})"
        for t in tallies
        for name, f in t.failures.items()
    )
    return TEXT.read_text(encoding="utf-8").format(
        rows=rows, failures=found or "None.", seed=seed, here=here, minutes=f"{minutes:.0f}",
        memory=MEMORY >> 30, cores=os.cpu_count(),
    )  # fmt: skip


def row(tally: Tally) -> str:
    """A row of the table."""
    target, worst = tally.target, tally.worst
    cells = (
        target.name,
        target.what,
        f"{tally.inputs * target.batch:,}".replace(",", " "),
        f"{100 * tally.accepted / max(tally.inputs, 1):.0f} %",
        str(tally.refusals),
        f"{tally.inputs * target.batch / max(tally.seconds, 1e-9):.0f}",
        f"{worst.seconds if worst else 0.0:.2f} s",
        f"{tally.peak >> 20} MB",
        str(sum(f.count for f in tally.failures.values())),
    )
    return f"| {' | '.join(cells)} |"
