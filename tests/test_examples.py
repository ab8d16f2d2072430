"""Every example runs as it stands, keeps its promises, and leaves nothing behind."""

import ast
import re
import runpy
import sys
import tempfile
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
LONGEST = 60
"""Lines of an example."""
EXTRAS = ("torch", "jax")
"""What an example may need and a machine may lack."""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, another one for temporary files, and no arguments."""
    folders = tmp_path / "work", tmp_path / "temporary"
    for folder in folders:
        folder.mkdir()
    monkeypatch.chdir(folders[0])
    monkeypatch.setattr(tempfile, "tempdir", str(folders[1]))
    monkeypatch.setattr(sys, "argv", ["example"])
    return tmp_path


def left(work: Path) -> list[str]:
    return sorted(str(path.relative_to(work)) for path in work.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for module in re.findall(r"^import (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
        if module in EXTRAS:
            pytest.importorskip(module)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()
    assert left(work) == []


def test_files_go_where_they_are_sent(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["example", str(work / "results")])
    runpy.run_path(str(FOLDER / "04_simulate.py"), run_name="__main__")
    assert left(work) == ["results/swing.csv", "results/swing.npz", "results/swing.png"]


def test_the_table_lists_the_examples() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[([^]]+)\]\(([^)]+)\) \|", text, re.MULTILINE)
    assert rows == [(path.name, path.name) for path in EXAMPLES]
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (FOLDER / link).exists(), link


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_short_and_say_what_to_expect(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    said = ast.get_docstring(tree)
    assert said and len(said.splitlines()) >= 4
    assert len(text.splitlines()) <= LONGEST
    assert any(isinstance(node, ast.Assert) for node in ast.walk(tree))


def test_examples_are_numbered_without_gaps() -> None:
    assert [int(path.name[:2]) for path in EXAMPLES] == [*range(1, len(EXAMPLES) + 1)]
