"""The text of docs/fuzzing.md: a row for each target, as its last whole campaign left it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.campaign import Tally
from tests.fuzz.worker import MEMORY, ROOT

PAGE = ROOT / "docs" / "fuzzing.md"
NOT_YET = "not yet run"
TEXT = Path(__file__).with_name("page.md")


def report(tallies: Sequence[Tally], run: str = NOT_YET) -> str:
    """The whole page; `run` says when, where, with which seed and for how long."""
    rows = "\n".join(map(row, tallies))
    found = "\n".join(
        f"- {t.target.name}: {f.count} × {name} (case {f.case})"
        for t in tallies
        for name, f in t.failures.items()
    )
    text = TEXT.read_text(encoding="utf-8")
    return text.format(rows=rows, failures=found or "None.", run=run, memory=MEMORY >> 30)


def row(tally: Tally) -> str:
    """A row of the table."""
    target, worst, inputs = tally.target, tally.worst, tally.inputs * tally.target.batch
    cells = [target.name, target.what]
    if worst is None:
        return f"| {' | '.join([*cells, *'–––––––'])} |"
    cells += [
        f"{inputs:,}".replace(",", " "),
        f"{100 * tally.accepted / tally.inputs:.0f} %",
        str(tally.refusals),
        f"{inputs / max(tally.seconds, 1e-9):.0f}",
        f"{worst.seconds:.2f} s",
        f"{tally.peak >> 20} MB",
        str(sum(f.count for f in tally.failures.values())),
    ]
    return f"| {' | '.join(cells)} |"
