"""The long checks: a row each, with the function that runs it.

To add one, write a function that takes `Tell` and returns a `Result`, and give it a row in CHECKS.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any
from unittest import mock
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
Tell = Callable[[str], None]
"""Shows a line of progress."""


@dataclass(frozen=True)
class Result:
    """What came of a check."""

    cases: int
    wrong: tuple[str, ...] = ()
    """Names of the cases that failed."""
    worst: float | None = None
    """The largest relative error; None of checks that measure none."""
    note: str = ""


@dataclass(frozen=True)
class Check:
    """A row: its name on the command line, what it shows, and the page that has the details."""

    name: str
    what: str
    run: Callable[[Tell], Result]
    page: str = ""


def papers(tell: Tell) -> Result:
    """Every item of the papers on machine code, and every misprint; writes docs/papers.md."""
    from tests.papers.page import ITEMS, MISPRINTS, PAGE, report

    measured: dict[str, Any] = {}
    wrong: list[str] = []
    rows = (*ITEMS, *MISPRINTS)
    with _pool() as pool:
        for row, found in zip(rows, pool.map(_measured_row, range(len(rows))), strict=True):
            measured[row.id] = found
            wrong += [] if row.holds(found) else [row.id]
            tell(f"{len(measured)}/{len(rows)} {row.id}: {found}")
    PAGE.write_text(report(measured), encoding="utf-8")
    errors = [x if isinstance(x, float) else x[1] for x in measured.values()]
    return Result(len(rows), tuple(wrong), max(errors), f"{len(MISPRINTS)} of them are misprints")


def _measured_row(number: int) -> Any:
    """How far an item or a misprint is off, on machine code."""
    from tests.papers.page import ITEMS, MISPRINTS

    with mock.patch.dict(os.environ, PHIPSI_BACKEND="llvm"):
        return (*ITEMS, *MISPRINTS)[number].measured()


@contextmanager
def _pool() -> Iterator[ProcessPoolExecutor]:
    """A process for each core; what has not begun when an error ends the check is dropped."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def mutations(tell: Tell) -> Result:
    """Places of phipsi broken, one at a time, and the rows of the papers that must fail then."""
    from tests.papers.mutations import MUTATIONS, run

    rows = len({row for m in MUTATIONS for row in m.rows})
    return Result(len(MUTATIONS), tuple(run(MUTATIONS, tell)), note=f"noticed by {rows} rows")


def agreement(tell: Tell) -> Result:
    """Every URDF of example-robot-data beside Pinocchio; writes docs/agreement.md."""
    from tests.agreement.page import PAGE, compared, jobs, report, row

    results, every = [], jobs()
    with _pool() as pool:
        for result in pool.map(compared, every):
            results.append(result)
            tell(f"{len(results)}/{len(every)} {row(result)}")
    PAGE.write_text(report(results), encoding="utf-8")
    wrong = tuple(f"{a.file} {a.base}" for a in results if not (a.agrees or a.refused))
    # where the two differ by more, long double has decided: the error is phipsi's own
    errors = [
        a.exact[name][0] if name in a.exact else error
        for a in results for name, error in a.errors.items()
    ]  # fmt: skip
    refused = sum(bool(a.refused) for a in results)
    return Result(len(results), wrong, max(filter(isfinite, errors)), f"{refused} not comparable")


def problems(tell: Tell) -> Result:
    """Every run of the published problems, each compiled anew; writes docs/problems.md."""
    from tests.problems.page import PAGE, RUNS, report
    from tests.problems.rows import Measured
    from tests.validation.page import here

    measured: dict[str, Measured] = {}
    wrong: list[str] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, PHIPSI_CACHE_DIR=folder),
    ):
        for run in RUNS:
            found = measured[run.id] = run.measured()
            wrong += [] if run.holds(found.errors) else [run.id]
            tell(f"{len(measured)}/{len(RUNS)} {run.id}: {found}")
    PAGE.write_text(report(measured, here()), encoding="utf-8")
    return Result(len(RUNS), tuple(wrong))


def threads(tell: Tell) -> Result:
    """8 processes of 8 threads that compile, run and fork for 10 minutes."""
    from tests.stress.threads import run

    with tempfile.TemporaryDirectory() as folder:
        counts = run(8, 8, 600.0, Path(folder), tell)
    return Result(counts.kernels, tuple(counts.wrong), note=str(counts))


def kills(tell: Tell) -> Result:
    """1 000 processes killed while they compile, store, simulate and write reports."""
    from tests.stress.kills import JOBS, campaign

    tell(", ".join(JOBS))
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = campaign(Path(folder), list(JOBS), 1000)
        except AssertionError as error:
            return Result(1000, (str(error),))
    return Result(1000, note=", ".join(f"{n} {what}" for what, n in sorted(found.items())))


def tests(**environment: str) -> Callable[[Tell], Result]:
    """The tests of the repository, run with these variables set."""

    def run(tell: Tell) -> Result:
        tell(" ".join(f"{name}={value}" for name, value in environment.items()) or "pytest")
        with tempfile.TemporaryDirectory() as folder:
            written = Path(folder) / "tests.xml"
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-n",
                "auto",
                "--dist",
                "worksteal",
                f"--junitxml={written}",
            ]
            done = subprocess.run(command, env={**os.environ, **environment}, cwd=ROOT)
            if not written.exists():
                return Result(0, (f"pytest ended with {done.returncode}",))
            return _read(written, done.returncode)

    return run


def _read(written: Path, code: int) -> Result:
    """What a JUnit file says."""
    cases = list(ElementTree.parse(written).iter("testcase"))
    failed = [x for x in cases if x.find("failure") is not None or x.find("error") is not None]
    wrong = tuple(f"{x.get('classname')}::{x.get('name')}" for x in failed)
    if code and not wrong:
        wrong = (f"pytest ended with {code}",)
    skipped = sum(x.find("skipped") is not None for x in cases)
    return Result(len(cases) - skipped, wrong, note=f"{skipped} skipped" if skipped else "")


CHECKS = (
    Check("papers", "every item of the four papers against an oracle that is not phipsi, and that "
          "every misprint is one", papers, "papers.md"),
    Check("mutations", "rows of the papers fail where phipsi is broken on purpose", mutations),
    Check("agreement", "every URDF of example-robot-data, fixed and free, against Pinocchio",
          agreement, "agreement.md"),
    Check("problems", "the problems A01 to A05 of the IFToMM library, against exact solutions, "
          "published values and equations written by hand", problems, "problems.md"),
    Check("threads", "8 processes of 8 threads compile, run and fork for 10 minutes: no deadlock, "
          "no crash, the same results", threads),
    Check("kills", "processes killed at any access to a file, byte or time leave nothing half-"
          "written, and the next run is right", kills),
    Check("tests", "the tests of the repository, as `make test`", tests()),
    Check("search", "the tests on the interpreter, with 1000 new random examples for each law",
          tests(PHIPSI_BACKEND="numpy", HYPOTHESIS_PROFILE="explore")),
)  # fmt: skip
