"""Files appear whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from phipsi.model.files import write


def failing(number: int):
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(
    ("call", "number"), [("fsync", errno.ENOSPC), ("replace", errno.EACCES), ("fsync", errno.EIO)]
)
def test_nothing_is_left_of_a_failure(
    call: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.html"
    target.write_bytes(b"old")
    monkeypatch.setattr(os, call, failing(number))
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        write(target, b"new")
    assert str(caught.value).count("\n") == 0 and "nothing was written" in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert target.read_bytes() == b"old"


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "x", b"new")
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"absent.report\.html' cannot be written: No such file"):
        write(tmp_path / "absent" / "report.html", b"")


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(OSError, match="is a directory"):
        write(tmp_path / "report.html", b"")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_the_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    write(tmp_path / "ours", b"x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode
