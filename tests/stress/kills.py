"""Processes that are killed while they compile, store, simulate and write reports: what they leave
on the disk is whole, and the next run is right.

    python -m tests.stress.kills --count 1000

A process is killed before the n-th of its accesses to the folder, or at the n-th byte that it
writes to a file, or after a time; n and the time are drawn at random. It is a fork of one that has
imported everything and computed nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import phipsi as pp
from phipsi.cli.app import app
from phipsi.compile import cache
from phipsi.scenarios.folder import INCOMPLETE
from phipsi.view import Report

WAYS = ("access", "byte", "time")
"""How a process is killed."""
KILLED, ENDED = "killed", "ended before"
LARGEST = 200_000
"""Bytes of a file up to which a process may be killed by what it writes."""
ROBOTS = [pp.robots.double_pendulum().with_gravity((0.0, 0.0, -g)) for g in (1.0, 2.0)]


class Job(NamedTuple):
    """What a process does in a folder, in the first or second version, and a check of the folder,
    which raises unless it holds one of them. After a run that was not killed it must be `wanted`,
    None: any."""

    run: Callable[[Path, int], None]
    check: Callable[[Path, int | None], None]


# ---- the disk cache -----------------------------------------------------------------------------


def key(i: object) -> str:
    return hashlib.sha256(str(i).encode()).hexdigest()


def compile_kernels(folder: Path, version: int) -> None:
    robot, q = ROBOTS[version], np.full((2, 2), 0.5)
    kernel = pp.gravity_force.compile(robot)
    expected = pp.gravity_force.compile(robot, backend="numpy")(q)
    assert np.abs(kernel(q) - expected).max() < 1e-12
    assert np.abs(kernel(q[0]) - expected[0]).max() < 1e-12


def trim(folder: Path, version: int) -> None:
    os.environ["PHIPSI_CACHE_SIZE"] = "60000"
    for i in range(12):
        cache.store(key((version, i)), bytes([i]) * 9000)


def clear(folder: Path, version: int) -> None:
    for i in range(4):
        cache.store(key((version, i)), bytes([i]) * 9000)
    pp.clear_cache()


def sealed(folder: Path, wanted: int | None) -> None:
    """Every entry is what it says it is, and no larger file hides behind its name."""
    for path in folder.glob("cache/*.bin"):
        assert cache.load(path.stem) is not None, f"{path.name} is damaged"
    for version in range(2):
        for i in range(12):
            assert cache.load(key((version, i))) in (None, bytes([i]) * 9000)


# ---- files --------------------------------------------------------------------------------------

TIMES = np.linspace(0.0, 1.0, 301)
MOTIONS = [
    pp.Trajectory(robot, TIMES, TIMES[:, None] + [0.0, g], np.ones((301, 2)), np.ones((301, 2)))
    for g, robot in enumerate(ROBOTS)
]


def one_of_two(name: str, read: Callable[[Path], object], versions: list[object]) -> Callable[
    [Path, int | None], None
]:  # fmt: skip
    """A check that a file, if it is there, is one of two versions."""

    def check(folder: Path, wanted: int | None) -> None:
        path = folder / name
        found = read(path) if path.exists() else None
        assert found in ([None, *versions] if wanted is None else [versions[wanted]]), name

    return check


def save_robot(folder: Path, version: int) -> None:
    pp.save(ROBOTS[version], folder / "robot.json")


def save_npz(folder: Path, version: int) -> None:
    MOTIONS[version].save(folder / "motion.npz")


def save_csv(folder: Path, version: int) -> None:
    MOTIONS[version].save(folder / "motion.csv")


def report(folder: Path, version: int) -> None:
    page = Report("A pendulum", f"version {version}")
    page.table(["t", "q"], [[float(t), float(t + version)] for t in TIMES])
    page.save(folder / "report.html")


def read_motion(name: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        robot = None if name == "npz" else ROBOTS[0]
        return pp.Trajectory.load(path, robot).q.tobytes()

    return read


def read_report(path: Path) -> object:
    text = path.read_text(encoding="utf-8")
    assert text.rstrip().endswith("</html>")
    return next(v for v in range(2) if f"version {v}" in text)


# ---- the command line ---------------------------------------------------------------------------

DURATIONS = (0.05, 0.1)


def simulate(folder: Path, version: int) -> None:
    words = ["simulate", "puma_diagonal", "--duration", str(DURATIONS[version]), "--force"]
    sys.argv = ["phipsi", *words, "--quiet", "--output", str(folder / "results")]
    try:
        app()
    except SystemExit as end:
        assert not end.code, end.code


def written(folder: Path, wanted: int | None) -> None:
    """All files of the folder are of the same run, or one of them says that they are not."""
    results = folder / "results"
    names = {path.name for path in results.iterdir()} if results.exists() else set[str]()
    visible = {name for name in names if not name.startswith(".")}
    if wanted is None and (not visible or INCOMPLETE in visible):
        return
    duration = pp.Trajectory.load(results / "trajectory.npz").duration
    summary = (results / "summary.json").read_text(encoding="utf-8")
    version = next(v for v in range(2) if f'"duration": {DURATIONS[v]}' in summary)
    assert abs(duration - DURATIONS[version]) < 1e-9, "files of two runs"
    assert INCOMPLETE not in visible
    assert wanted in (None, version)


JOBS: dict[str, Job] = {
    "compile": Job(compile_kernels, sealed),
    "trim": Job(trim, sealed),
    "clear": Job(clear, sealed),
    "robot": Job(save_robot, one_of_two("robot.json", pp.load, list(ROBOTS))),
    "npz": Job(
        save_npz, one_of_two("motion.npz", read_motion("npz"), [x.q.tobytes() for x in MOTIONS])
    ),
    "csv": Job(
        save_csv, one_of_two("motion.csv", read_motion("csv"), [x.q.tobytes() for x in MOTIONS])
    ),
    "report": Job(report, one_of_two("report.html", read_report, [0, 1])),
    "simulate": Job(simulate, written),
}


# ---- processes ----------------------------------------------------------------------------------


def fork(job: Job, folder: Path, version: int, before: Callable[[], None]) -> int:
    """The number of a process that does the job; `before` is called in it first."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        os.environ["PHIPSI_CACHE_DIR"] = str(folder / "cache")
        before()
        job.run(folder, version)
        code = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def on_access(folder: Path, act: Callable[[], None]) -> None:
    """Call a function before each access to a file in a folder."""

    def audit(event: str, args: tuple[object, ...]) -> None:
        if event == "open" or event.startswith("os."):
            if any(str(folder) in str(x) for x in args):
                act()

    sys.addaudithook(audit)


def whole(job: Job, folder: Path, version: int) -> tuple[int, float]:
    """A run that is not killed: the number of its accesses, and the time that it takes."""
    counter, target = os.pipe()
    begin = time.perf_counter()
    process = fork(job, folder, version, lambda: on_access(folder, lambda: _noted(target)))
    os.close(target)
    accesses = 0
    while data := os.read(counter, 4096):
        accesses += len(data)
    os.close(counter)
    _, status = os.waitpid(process, 0)
    assert status == 0, f"status {status} of a run that was not killed"
    return accesses, time.perf_counter() - begin


def _noted(target: int) -> None:
    os.write(target, b".")


def killed(
    job: Job, folder: Path, version: int, way: str, part: float, size: tuple[int, float]
) -> bool:
    """A run that is killed after a part of its accesses, bytes or time; whether it was."""
    accesses, seconds = size
    left = 1 + int(part * accesses)

    def count() -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    def before() -> None:
        if way == "access":
            on_access(folder, count)
        elif way == "byte":
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            most = int(LARGEST**part)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    process = fork(job, folder, version, before)
    if way == "time":
        time.sleep(part * seconds)
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    return os.WIFSIGNALED(status)


def campaign(folder: Path, names: list[str], count: int, seed: int = 0) -> Counter[str]:
    """Start processes, in turn over the jobs, until `count` of them were killed; the numbers of
    these and of those that ended before. An AssertionError says which left something wrong behind.
    """
    draw, found = random.Random(seed), Counter[str]()
    places = {name: folder / name for name in names}
    sizes: dict[str, tuple[int, float]] = {}
    os.environ["PHIPSI_CACHE_DIR"] = str(folder / "none")
    for name, place in places.items():
        place.mkdir()
        sizes[name] = whole(JOBS[name], place, 0)
    while found[KILLED] < count:
        k = found.total()
        name, way = names[k % len(names)], draw.choice(WAYS)
        job, place, version = JOBS[name], places[name], draw.randrange(2)
        if name == "compile" and draw.random() < 0.5:
            shutil.rmtree(place / "cache", ignore_errors=True)
        part = draw.random()
        os.environ["PHIPSI_CACHE_DIR"] = str(place / "cache")
        told = f"{name}, version {version}, killed by {way} after {part:.6f} (number {k})"
        try:
            end = killed(job, place, version, way, part, sizes[name])
            found[KILLED if end else ENDED] += 1
            job.check(place, None)
            sizes[name] = whole(job, place, version)
            job.check(place, version)
        except Exception as error:
            raise AssertionError(f"{told}: {error}") from error
        if sys.stderr.isatty():
            print(f"\r{found[KILLED]} of {count}", end="", file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", nargs="*", default=list(JOBS), choices=list(JOBS))
    given = parser.parse_args()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = campaign(Path(folder), given.jobs, given.count, given.seed)
    told = ", ".join(f"{n} {what}" for what, n in sorted(found.items()))
    spent = time.perf_counter() - begin
    print(
        f"{found.total()} processes, {told}; nothing half-written, next runs right; {spent:.0f} s"
    )


if __name__ == "__main__":
    main()
