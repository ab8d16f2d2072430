"""The mutations of the papers' table: their texts are in the source, and two are tried."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.papers.mutations import MUTATIONS, PACKAGE, Mutation, main, run
from tests.papers.page import ITEMS


def test_every_mutation_is_of_a_text_that_the_source_has_once(tmp_path: Path) -> None:
    for m in MUTATIONS:
        copy = tmp_path / m.file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / m.file, copy)
        m.applied(tmp_path)
        assert copy.read_text() != (PACKAGE / m.file).read_text(), m.what


def test_a_text_that_is_gone_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    for text in ("", "x = 1\nx = 1\n"):
        file.write_text(text)
        with pytest.raises(ValueError, match=r"wrong: a.py has [02] times 'x = 1', needs one"):
            Mutation("wrong", "a.py", "x = 1", "x = 2", ()).applied(tmp_path)
        assert file.read_text() == text


def test_rows_of_mutations_exist_in_all_four_papers() -> None:
    assert len(MUTATIONS) >= 20 and len({m.what for m in MUTATIONS}) == len(MUTATIONS)
    assert all(m.rows for m in MUTATIONS)
    named = {row for m in MUTATIONS for row in m.rows}
    assert named <= {item.id for item in ITEMS}
    assert {row.split()[0] for row in named} == {item.paper for item in ITEMS}


def test_two_are_noticed_and_a_change_of_nothing_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    by_what = {m.what.partition(":")[0]: m for m in MUTATIONS}
    squeeze = by_what["a reversed squeeze of internal forces"]
    cross = by_what["a cross product of motions on forces"]
    cross = replace(cross, rows=("[DL] (5.5)",))
    harmless = replace(squeeze, what="nothing", new=squeeze.old)
    silent = f"{harmless.rows[0]} does not notice: nothing"
    assert run([squeeze, cross, harmless], print) == [silent]
    assert "[SOA] 6: control of grasped objects 2e+00" in capsys.readouterr().out


def test_rows_are_measured_here_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--measure", "[DL] (5.5)", "no row"]) == 0
    found = capsys.readouterr().out
    assert '"[DL] (5.5)": ""' in found and "KeyError" in found
