"""A short run of every target: the whole corpus, and the first cases; and the fuzzer itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.each import each
from tests.fuzz import __main__ as command
from tests.fuzz import page, programs, trees
from tests.fuzz.campaign import Failure, Tally, minimised
from tests.fuzz.documents import JSON, TOML, XML
from tests.fuzz.faulty import FAULTY
from tests.fuzz.target import CORPUS, Outcome, outcome
from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import LATE, Result, Worker

CASES = {"mjcf": 20, "expressions": 30, "toml": 50, "graphs": 0, "derivatives": 0, "programs": 8}
"""Cases of targets, 100 of the others; those of the compiler have tests of their own."""
FUZZED = [name for name in TARGETS if name not in ("graphs", "derivatives", "programs")]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as started:
        yield started


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_and_the_first_cases(name: str, worker: Worker) -> None:
    target = TARGETS[name]
    failed = {
        file: found.outcome.failure
        for file, content in target.corpus.items()
        if (found := worker.use(target, content)).outcome.failure
    }
    assert not failed
    for result in worker.run(target, 0, range(CASES.get(name, 100))):
        assert not result.outcome.failure, (result.case, result.outcome)


def test_every_file_of_the_corpus_is_used() -> None:
    files = {x for x in CORPUS.rglob("*") if x.is_file()}
    used = {CORPUS / t.name / f"{file}{t.suffix}" for t in TARGETS.values() for file in t.corpus}
    assert files == used
    assert sum(x.stat().st_size for x in files) < 400_000, "inputs of the corpus are small"


# ---- the fuzzer ----------------------------------------------------------------------------------


@each("word, failure", {
    "crash": "ended by SIGSEGV", "exit": "ended by status 3", "hang": LATE,
    "memory": "MemoryError in faulty.py:use", "foreign": "KeyError in faulty.py:use",
    "line": "not printable in a line: ValueError: two", "bidi": "not printable in a line",
    "long": "1,001 characters in ValueError", "empty": "ValueError without a message",
    "warning": "RuntimeWarning in faulty.py", "wrong": "Wrong: it is not as it was",
    "refused": "", "good": "",
}.items())  # fmt: skip
def test_what_is_a_failure(faulty: Worker, word: str, failure: str) -> None:
    found = faulty.use(FAULTY, word.encode()).outcome
    assert found.failure.startswith(failure) and bool(found.failure) == bool(failure)


@pytest.fixture(scope="module")
def faulty() -> Iterator[Worker]:
    with Worker("tests.fuzz.faulty") as started:
        yield started


def test_every_case_has_a_result_whatever_the_others_do(faulty: Worker) -> None:
    found = list(faulty.run(FAULTY, 0, range(2, 24, 3)))
    assert [x.case for x in found] == list(range(2, 24, 3))
    words = [FAULTY.content(0, x.case).decode().split()[0] for x in found]
    assert words[1:4] == ["foreign", "crash", "good"]
    for word, x in zip(words, found, strict=True):
        assert bool(x.outcome.failure) == (word not in ("good", "refused")), word


def test_a_failing_input_is_made_small(faulty: Worker, tmp_path: Path) -> None:
    content = b"some text, and foreign, and more of it" * 3
    failure = Failure(0, faulty.use(FAULTY, content), content=content)
    assert minimised(FAULTY, failure, faulty) == b"foreign"


FORMATS = {"urdf": XML, "mjcf": XML, "json": JSON, "toml": TOML}


@each("name", FORMATS)
def test_documents_are_trees_and_back(name: str) -> None:
    form = FORMATS[name]
    for content in TARGETS[name].references()[:3]:
        tree = form.read(content)
        again = form.write(tree).encode()
        assert sorted(map(str, form.read(again))) == sorted(map(str, tree))
        found = [outcome(TARGETS[name], x, False) for x in (content, again)]
        assert found[0] == found[1]
        assert all(len(form.write(x)) < len(again) for x in trees.smaller(tree))


def test_a_case_depends_on_its_number_alone() -> None:
    for name in FUZZED:
        target = TARGETS[name]
        found = [target.content(0, case) for case in (7, 8, 7)]
        assert found[0] == found[2] != found[1] and target.content(1, 7) != found[0]


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--only", "csv", "--count", "20", "--jobs", "1"]) == 0
    assert "csv: 20 inputs" in capfd.readouterr().out
    file = tmp_path / "x.csv"
    file.write_text("t [s],no column")
    assert command.main(["--only", "csv", "--input", str(file)]) == 0
    assert "TrajectoryError: '…': column 0 is" in capfd.readouterr().out


def test_the_page() -> None:
    tally = Tally(TARGETS["csv"])
    tally.add(Result(4, Outcome("accepted"), 0.5, 3 << 20))
    tally.add(Result(2, Outcome("KeyError", "KeyError in x.py:f"), 0.1))
    rows = {"csv": page.row(tally, "here, seed 7")}
    text = page.report(rows)
    assert (
        "| csv | trajectories as .csv | 2 | 50 % | 0 | 3 | 0.50 s | 3 MB "
        "| 1 × KeyError in x.py:f (case 2) | here, seed 7 |"
    ) in text
    assert page.read(text) == rows and "| toml | scenarios | – |" in text
    committed = page.PAGE.read_text(encoding="utf-8")
    assert committed == page.report(page.read(committed)), "python -m tests.fuzz --whole writes it"


def test_a_whole_campaign_of_a_target_writes_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "fuzzing.md")
    page.PAGE.write_text(page.report({"toml": "| toml | as it was |"}), "utf-8")
    few = replace(TARGETS["csv"], count=20)
    (tally,) = command.campaign([few], print, jobs=1, folder=tmp_path)
    assert tally.inputs == 20 and "csv: 20 inputs" in capfd.readouterr().out
    rows = page.read(page.PAGE.read_text("utf-8"))
    assert rows["csv"].startswith("| csv | trajectories as .csv | 20 |")
    assert rows["toml"] == "| toml | as it was |"


def test_a_slightly_wrong_operation_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"seed": 3, "n": 30, "loops": 1}
    with np.errstate(all="ignore"):
        assert programs.check(spec) > 0.5
    for name, function in {"add": lambda a, b: a + b + 1e-12, "sin": lambda a: a.cos()}.items():
        with monkeypatch.context() as patch:
            patch.setitem(programs.TRACED, name, (programs.TRACED[name][0], function))
            with np.errstate(all="ignore"), pytest.raises(AssertionError):
                programs.check(spec)
