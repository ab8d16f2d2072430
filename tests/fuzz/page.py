"""The text of docs/fuzzing.md: a row for each target, as its last whole campaign left it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tests.fuzz.campaign import Tally
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import MEMORY, ROOT

PAGE = ROOT / "docs" / "fuzzing.md"
NOT_YET = "not yet run"
TEXT = Path(__file__).with_name("page.md")


def report(rows: Mapping[str, str]) -> str:
    """The whole page: of targets without a row it says that they have not been run."""
    every = [rows.get(t.name) or f"{_start(t)} {'– | ' * 7}{NOT_YET} |" for t in TARGETS.values()]
    text = TEXT.read_text(encoding="utf-8")
    return text.format(rows="\n".join(every), memory=MEMORY >> 30)


def read(text: str) -> dict[str, str]:
    """The rows of a page by the names of their targets."""
    found = (re.match(r"\| (\w+) \|", x) for x in text.splitlines() if NOT_YET not in x)
    return {m[1]: m.string for m in found if m and m[1] in TARGETS}


def row(tally: Tally, run: str) -> str:
    """A row of the table; `run` says when, where, with which seed and for how long."""
    target, worst, inputs = tally.target, tally.worst, tally.inputs * tally.target.batch
    failures = [f"{f.count} × {name} (case {f.case})" for name, f in tally.failures.items()]
    cells = (
        f"{inputs:,}".replace(",", " "),
        f"{100 * tally.accepted / tally.inputs:.0f} %",
        str(tally.refusals),
        f"{inputs / max(tally.seconds, 1e-9):.0f}",
        f"{worst.seconds if worst else 0:.2f} s",
        f"{tally.peak >> 20} MB",
        "; ".join(failures) or "0",
        run,
    )
    return f"{_start(target)} {' | '.join(cells)} |"


def _start(target: Target) -> str:
    return f"| {target.name} | {target.what} |"
