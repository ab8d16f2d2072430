"""A share of every published problem holds, and docs/problems.md has them all."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.problems.page import PAGE, PROBLEMS, RUNS, masked, report
from tests.problems.rows import Run


@pytest.mark.parametrize("run", [run for run in RUNS if run.tested], ids=lambda run: run.id)
def test_run(run: Run) -> None:
    errors = run.errors(run.tested)
    assert run.holds(errors), errors


def test_rows_are_complete() -> None:
    assert max(Counter(run.id for run in RUNS).values()) == 1
    for problem in PROBLEMS:
        assert any(run.tested for run in problem.runs), problem.name


def test_the_page_has_every_run() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert masked(text) == masked(report({})), (
        "python -m tests.validation --only problems writes it anew"
    )
