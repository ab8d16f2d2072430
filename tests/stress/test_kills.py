"""A short run of the campaign; `python -m tests.stress.kills` is the whole of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from phipsi.compile import cache
from tests.stress import kills

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
QUICK = ("trim", "clear", "robot", "npz", "csv", "report")


def test_what_killed_processes_leave_is_whole() -> None:
    """In a process of its own, which has no threads."""
    command = [sys.executable, "-m", "tests.stress.kills", "--count", "12", "--jobs", *QUICK]
    root = Path(__file__).parents[2]
    found = subprocess.run(command, cwd=root, text=True, capture_output=True)
    assert found.returncode == 0, found.stderr
    assert "nothing half-written" in found.stdout


def test_an_entry_that_is_written_in_place_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The campaign finds what it looks for."""
    monkeypatch.setattr(cache, "_write", lambda path, entry: path.write_bytes(entry))
    monkeypatch.setattr(kills, "WAYS", ("byte",))
    monkeypatch.setenv("PHIPSI_CACHE_DIR", "off")
    with pytest.raises(AssertionError, match=r"trim, .*damaged"):
        kills.campaign(tmp_path, ["trim"], 40)
