"""The text of docs/validation.md: a line for each check, as its last run left it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.validation.checks import CHECKS, ROOT, Check, Result

PAGE = ROOT / "docs" / "validation.md"
LIBRARIES = (
    "numpy", "scipy", "llvmlite", "pin", "mujoco", "example-robot-data", "hypothesis", "pytest",
)  # fmt: skip
NOT_YET = "not yet run"
HEAD = """# Validation

Written by `python -m tests.validation` (`make validation`); not edited by hand. These checks take
too long for `make test`, which has a share of each. A row is what its last run found: the number of
cases and of those that were wrong, the largest relative error where errors are measured (the linked
page has every one), how long it took, and when and where it was run. [Fuzzing](fuzzing.md) has a
page of its own.

| check | what | cases | wrong | worst error | note | time | run |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""
FOOT = """
A check is a row of [`checks.py`](../tests/validation/checks.py); `python -m tests.validation --only
NAME` runs one of them and leaves the other lines of this page as they are.
"""


def line(check: Check, result: Result, seconds: float) -> str:
    """A row of the table."""
    worst = "–" if result.worst is None else f"{result.worst:.0e}"
    cells = (
        str(result.cases), str(len(result.wrong)), worst, result.note or "–", _time(seconds), here()
    )  # fmt: skip
    return f"{_start(check)} {' | '.join(cells)} |"


def report(lines: Mapping[str, str]) -> str:
    """The whole page: of checks without a line it says that they have not been run."""
    rows = [lines.get(c.name) or f"{_start(c)} – | – | – | – | – | {NOT_YET} |" for c in CHECKS]
    return HEAD + "\n".join(rows) + "\n" + FOOT


def read(text: str) -> dict[str, str]:
    """The lines of a page by the names of their checks."""
    found = (re.match(r"\| (?:\[(\w+)\]\([^)]*\)|(\w+)) \|", x) for x in text.splitlines())
    lines = {m[1] or m[2]: m.string for m in found if m}
    return {
        c.name: lines[c.name] for c in CHECKS if c.name in lines and NOT_YET not in lines[c.name]
    }


def here() -> str:
    """When, of which commit, on which machine and with which libraries."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    libraries = ", ".join(f"{name} {x}" for name in LIBRARIES if (x := _version(name)))
    day = datetime.now(UTC).date().isoformat()
    return (
        f"{day}, commit {commit or 'unknown'}, {_processor()} ({os.cpu_count()} cores), "
        f"{platform.system()}, Python {platform.python_version()}, {libraries}"
    )


def _start(check: Check) -> str:
    name = f"[{check.name}]({check.page})" if check.page else check.name
    return f"| {name} | {check.what} |"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    """The processor's own name, where the system tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()
