"""Every item of the papers holds, every misprint is one, and docs/papers.md lists them all."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from phipsi.operators.algebra.identities import TABLE
from tests.papers.page import BEYOND, ITEMS, PAGE, masked, report
from tests.papers.rows import MISPRINTS, Item, Misprint

TESTS = Path(__file__).parents[1]
CELLS = re.compile(r"(?<!\\)\|")


pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.id)
def test_item(item: Item) -> None:
    assert not item.missing
    found = item.measured()
    assert item.holds(found), found


@pytest.mark.parametrize("row", MISPRINTS, ids=lambda row: row.id)
def test_misprint(row: Misprint) -> None:
    found = row.measured()
    assert row.holds(found), found


def test_rows_are_complete() -> None:
    rows = (*ITEMS, *MISPRINTS)
    assert max(Counter(row.id for row in rows).values()) == 1
    assert max(Counter(row.check for row in rows).values()) == 1
    for item in ITEMS:
        assert item.what and item.functions and item.oracle
        for path in item.also:
            assert (TESTS / path).is_file(), path


def test_every_identity_is_in_a_row() -> None:
    """The table of identities has the sources that the checks name."""
    files = (path.read_text(encoding="utf-8") for path in (TESTS / "papers").glob("*.py"))
    named = {getattr(node, "value", None) for file in files for node in ast.walk(ast.parse(file))}
    assert {row.source for row in TABLE if row.source} <= named


def test_the_page_has_every_row_and_no_empty_cell() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert masked(text) == masked(report({})), (
        "python -m tests.validation --only papers writes it anew"
    )
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == len(ITEMS) + len(MISPRINTS) + len(BEYOND) + 2 * 6
    for row in rows:
        assert all(cell.strip() for cell in CELLS.split(row)[1:-1]), row
