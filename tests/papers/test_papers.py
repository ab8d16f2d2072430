"""Every item of the papers holds, every misprint is one, and docs/papers.md lists them all."""

from __future__ import annotations

import ast
import functools
import re
import types
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import phipsi
from phipsi.model import KINDS
from phipsi.operators import Expression
from phipsi.operators.algebra.identities import TABLE, Identity
from phipsi.programs.compiled import CompiledFunction
from tests.papers import cases
from tests.papers.page import BEYOND, ITEMS, PAGE, masked, report
from tests.papers.rows import MISPRINTS, Item, Misprint

TESTS = Path(__file__).parents[1]
CELLS = re.compile(r"(?<!\\)\|")


pytestmark = pytest.mark.usefixtures("interpreted", "share")


@pytest.fixture(scope="module")
def share() -> Iterator[None]:
    """The rows are measured on a share of the robots; on all of them by `make validation`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "SHARE", True)
        yield


class Used:
    """What is called while it is watched: public functions by name, symbols in expressions that
    are lowered."""

    def __init__(self, patch: pytest.MonkeyPatch, functions: Iterable[str]) -> None:
        self.programs: set[int] = set()
        self.names: set[str] = set()
        self._wrap(patch, CompiledFunction, "__call__", lambda x: self.programs.add(id(x)))
        for method in ("on", "evaluate"):
            self._wrap(patch, Expression, method, self._expression)
        self._wrap(patch, cases, "_of_identity", self._identity)
        for name in functions:
            holder = reduce(getattr, name.split(".")[:-1], phipsi)
            own = getattr(holder, name.split(".")[-1])
            if isinstance(own, types.FunctionType):
                self._wrap(patch, holder, own.__name__, lambda *x, name=name: self.names.add(name))

    def _wrap(self, patch: pytest.MonkeyPatch, holder: Any, name: str, note: Any) -> None:
        own = getattr(holder, name)

        @functools.wraps(own)
        def noted(*args: Any, **kwargs: Any) -> Any:
            note(*args[:1])
            return own(*args, **kwargs)

        patch.setattr(holder, name, noted)

    def _expression(self, x: Expression) -> None:
        self.names |= {f"operators.{leaf.symbol.name}" for leaf in x.leaves}

    def _identity(self, row: Identity) -> None:
        for one in (row, *([row.passive] if row.passive else [])):
            self._expression(one.left)
            self._expression(one.right)

    def __contains__(self, name: str) -> bool:
        own = reduce(getattr, name.split("."), phipsi)
        return id(own) in self.programs or name.removesuffix(".inv") in self.names


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.id)
def test_item(item: Item, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds, and is measured on what it names."""
    assert not item.missing
    used = Used(monkeypatch, item.functions)
    found = item.measured()
    assert item.holds(found), found
    assert [name for name in item.functions if name not in used] == []


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


def test_robots_of_the_rows() -> None:
    """They are what the page says."""
    every = (*cases.solids(), *cases.ghosts(), *cases.free((10, 6), (44, 7)), *cases.free((21, 6)))
    kinds = {h.kind.name for c in every for h in c.robot.hinges}
    assert kinds == KINDS.keys() - {"weld"}
    for c in every:
        parents = [p for p in c.robot.parents if p >= 0]
        assert 5 <= c.robot.nb <= 9 and max(Counter(parents).values()) > 1
        inside = c.robot.body_index(c.robot.frame("elbow").body)
        assert inside in parents and c.robot.body_index(c.robot.frame("tool").body) not in parents
    assert all(c.robot.parents.count(-1) > 1 for c in (*cases.solids(), *cases.ghosts()))
    assert any(body.mass == 0 for body in cases.ghosts()[0].robot.bodies)
    assert cases.ghosts()[0].robot.nb < 9  # of nine, some are welded to others


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
