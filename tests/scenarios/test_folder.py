"""Folders of results are replaced as a whole, or stay as they were."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from phipsi.scenarios.folder import filled, inside
from phipsi.scenarios.toml_reader import At, ScenarioError


def content(folder: Path) -> dict[str, str]:
    return {f.name: f.read_text() for f in folder.iterdir() if f.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "results"
    path.mkdir()
    for name in "abz":
        (path / name).write_text("old")
    return path


def fill(folder: Path) -> None:
    with filled(folder, force=True) as draft:
        for name in "abc":
            (draft / name).write_text("new")


def test_files_of_the_same_name_are_replaced_and_others_stay(folder: Path):
    fill(folder)
    assert content(folder) == {"a": "new", "b": "new", "c": "new", "z": "old"}


def test_a_folder_in_the_way_leaves_everything(folder: Path):
    (folder / "c").mkdir()
    with pytest.raises(OSError, match=r"nothing was written to .*'c' is a folder there"):
        fill(folder)
    assert content(folder) == dict.fromkeys("abz", "old")


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_halfway_brings_the_old_files_back(
    folder: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch
):
    replace, calls = os.replace, []

    def failing(source: object, target: object) -> None:
        calls.append(target)
        if len(calls) == 4:  # a is new, b is put aside
            raise error
        replace(source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(type(error)):
        fill(folder)
    assert content(folder) == dict.fromkeys("abz", "old")
    assert sorted(p.name for p in folder.iterdir()) == ["a", "b", "z"]


def killed(folder: Path, access: int) -> bool:
    """Fill the folder in a process that is killed before one of its accesses to the disk; whether
    it was."""
    process = os.fork()
    if not process:
        left = access

        def count(event: str, args: tuple[object, ...]) -> None:
            nonlocal left
            if (event == "open" or event.startswith("os.")) and str(folder) in str(args[:1]):
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        try:
            fill(folder)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_folder_is_whole_or_says_that_it_is_not(folder: Path):
    found: set[tuple[str, bool]] = set()
    access, ended = 0, True
    while ended:
        access += 1
        for name in "abz":
            (folder / name).write_text("old")
        (folder / "c").unlink(missing_ok=True)
        ended = killed(folder, access)
        held = content(folder)
        note = held.pop("INCOMPLETE", "")
        old, new = dict.fromkeys("abz", "old"), dict.fromkeys("abc", "new") | {"z": "old"}
        state = "old" if held == old else "new" if held == new else "mixed"
        assert "--force" in note or (state != "mixed" and not note), access
        found.add((state, bool(note)))
        for draft in folder.glob(".results.*.tmp"):
            os.utime(draft, (0, 0))  # of long ago
        assert ended or (state, note) == ("new", "")
    assert {("old", False), ("old", True), ("mixed", True), ("new", True)} < found
    assert {*folder.iterdir()} == {folder / name for name in "abcz"}


def test_the_folder_of_a_scenario_lies_below_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    os.symlink(tmp_path, "link")
    assert inside("results/one", At("x.toml")) == Path("results/one")
    for wrong in ("/elsewhere", "../x", "a/../../b", "link/x", ".", "a\x1b[31m", "a\nb"):
        with pytest.raises(ScenarioError, match="needs a folder below"):
            inside(wrong, At("x.toml"))
