"""The command for long checks: what ends is kept, what fails is told; the page has every row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.validation import __main__ as command
from tests.validation import checks, page
from tests.validation.checks import CHECKS, Check, Result


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three checks, of which the second is wrong and the third is interrupted, and their page."""

    def interrupted(tell: checks.Tell) -> Result:
        raise KeyboardInterrupt

    rows = (
        Check("good", "all is well", lambda tell: Result(7, worst=2e-15), "papers.md"),
        Check("bad", "one is wrong", lambda tell: Result(2, ("x",), note="odd")),
        Check("long", "it does not end", interrupted),
    )
    for module in (command, page):
        monkeypatch.setattr(module, "CHECKS", rows)
    monkeypatch.setattr(command, "PAGE", tmp_path / "validation.md")
    return tmp_path / "validation.md"


def test_what_ended_is_on_the_page(three: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 130
    good, bad, long = three.read_text().splitlines()[-6:-3]
    assert good.startswith("| [good](papers.md) | all is well | 7 | 0 | 2e-15 | – | 0 s | 20")
    assert bad.startswith("| bad | one is wrong | 2 | 1 | – | odd | 0 s | 20")
    assert long == "| long | it does not end | – | – | – | – | – | not yet run |"
    shown = capsys.readouterr()
    assert "wrong: x" in shown.out and "[2/3] bad" in shown.out
    assert "interrupted during long; on the page: good, bad" in shown.err


def test_one_of_them_leaves_the_other_lines(three: Path) -> None:
    assert command.main(["--only", "bad"]) == 1
    before = three.read_text()
    assert command.main(["--only", "good"]) == 0
    after = three.read_text().splitlines()
    (bad,) = (x for x in before.splitlines() if x.startswith("| bad |"))
    assert bad in after
    with pytest.raises(SystemExit):
        command.main(["--only", "other"])


def test_a_check_that_raises_is_wrong(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(tell: checks.Tell) -> Result:
        raise ValueError("no file")

    monkeypatch.setattr(command, "CHECKS", (Check("broken", "it raises", broken),))
    monkeypatch.setattr(page, "CHECKS", command.CHECKS)
    assert command.main([]) == 1 and "| broken | it raises | 0 | 1 |" in three.read_text()


def test_results_of_pytest_are_read(tmp_path: Path) -> None:
    file = tmp_path / "tests.xml"
    file.write_text(
        '<testsuites><testsuite><testcase classname="a" name="b"/><testcase classname="a" name="c">'
        '<failure message="no"/></testcase><testcase classname="a" name="d"><skipped/></testcase>'
        "</testsuite></testsuites>"
    )
    assert checks._read(file, 1) == Result(2, ("a::c",), note="1 skipped")
    file.write_text('<testsuites><testsuite><testcase name="b"/></testsuite></testsuites>')
    assert checks._read(file, 0) == Result(1)
    assert checks._read(file, 3).wrong == ("pytest ended with 3",)


def test_the_committed_page_has_every_check_and_nothing_wrong() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    lines = page.read(text)
    assert text == page.report(lines), "python -m tests.validation writes it anew"
    for check in CHECKS:
        if check.name in lines:
            assert lines[check.name].split(" | ")[3] == "0", check.name
