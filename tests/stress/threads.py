"""Threads and processes that compile and run kernels for a long time, with garbage collected all
the while: nothing may hang or crash, and results stay what they are.

python -m tests.stress.threads [--processes 8] [--threads 8] [--minutes 10]

Each process has threads that make kernels, call them, compare every result with the interpreter and
to the bit with the first result of the same kernel, and drop them, some in cycles with finalizers
that call them. Meanwhile its main thread forks children which do the same; half of the processes
share a disk cache, and half have none. Whoever makes no progress for `HANGS` seconds says where
every thread is, and is killed.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import phipsi as pp
from phipsi.compile import native

ROOT = Path(__file__).parents[2]
HANGS = 120.0
"""After so long without progress [s] a thread or a child is taken to hang."""


@dataclass
class Counts:
    """What was done, and what was wrong."""

    kernels: int = 0
    calls: int = 0
    forks: int = 0
    finalized: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        """Count what another process did, too."""
        self.kernels += other.kernels
        self.calls += other.calls
        self.forks += other.forks
        self.finalized += other.finalized
        self.wrong += other.wrong

    def __str__(self) -> str:
        return (
            f"kernels {self.kernels}, calls {self.calls}, in finalizers {self.finalized}, "
            f"forks {self.forks}, wrong {len(self.wrong)}"
        )


class Task(NamedTuple):
    """A kernel, by the number of links and the gravity of a chain, and the rows of its calls."""

    program: str
    links: int
    gravity: int
    unroll: bool
    rows: int

    @classmethod
    def some(cls, rng: random.Random) -> Task:
        """A task by lot."""
        program = rng.choice(("forward_dynamics", "inverse_dynamics", "mass_matrix", "derivative"))
        rows = rng.choice((1, 2, 7, 64, 700))
        return cls(program, rng.randint(1, 3), rng.randrange(6), rng.random() < 0.7, rows)

    def kernel(self, backend: Any) -> tuple[Callable[..., Any], list[Any]]:
        """The kernel and its arguments."""
        robot = pp.robots.chain(self.links).with_gravity((0.0, 0.1 * self.gravity, -9.81))
        q, v = robot.random_state(self.rows, (self.rows,))
        program: Any = getattr(pp, self.program, None)
        program = program or pp.inverse_dynamics.derivative(wrt="q")
        arguments = [q] if self.program == "mass_matrix" else [q, v, 0.1 * v]
        kernel = program.compile(robot, backend=backend, unroll=self.unroll)
        return kernel, arguments


class Finalized:
    """An object in a cycle whose finalizer calls a kernel."""

    def __init__(self, crew: Crew, task: Task, kernel: Any, arguments: list[Any]) -> None:
        self.crew, self.task, self.kernel, self.arguments = crew, task, kernel, arguments
        self.me = self

    def __del__(self) -> None:
        self.crew.compare(self.task, self.kernel(*self.arguments))
        self.crew.counts.finalized += 1


class Crew:
    """The threads of one process."""

    def __init__(self, seed: int, until: float) -> None:
        self.seed, self.until = seed, until
        self.counts = Counts()
        self.first: dict[Task, Any] = {}
        self.beats: dict[int, float] = {}

    def compare(self, task: Task, result: Any) -> None:
        """Compare a result with the first of the same task."""
        if result.tobytes() != self.first[task].tobytes():
            self.counts.wrong.append(f"{task} has changed")

    def once(self, rng: random.Random) -> None:
        """Make a kernel, call it, and drop it."""
        task = Task.some(rng)
        kernel, arguments = task.kernel("llvm")
        self.counts.kernels += 1
        result = kernel(*arguments)
        if task not in self.first:
            interpreted, _ = task.kernel("numpy")
            expected = interpreted(*arguments)
            scale = max(1.0, float(np.abs(expected).max()))
            if not np.allclose(result, expected, rtol=1e-9, atol=1e-9 * scale):
                self.counts.wrong.append(f"{task} is not what the interpreter says")
            self.first.setdefault(task, result)
        self.compare(task, result)
        for _ in range(rng.randrange(20)):
            self.compare(task, kernel(*arguments))
            self.counts.calls += 1
        if rng.random() < 0.3:
            Finalized(self, task, kernel, arguments)

    def work(self, number: int) -> None:
        """What a thread does."""
        rng = random.Random(f"{self.seed} {number}")
        while time.monotonic() < self.until:
            self.beats[number] = time.monotonic()
            try:
                self.once(rng)
            except Exception as error:
                self.counts.wrong.append(f"{type(error).__name__}: {error}")
        self.beats[number] = float("inf")

    def fork(self, rng: random.Random) -> None:
        """Fork a child that does some tasks."""
        self.counts.forks += 1
        child = os.fork()
        if not child:
            status = 1
            try:
                before = len(self.counts.wrong)
                for _ in range(3):
                    self.once(rng)
                status = 2 if self.counts.wrong[before:] else 0
            finally:
                os._exit(status)
        status = ended(child, HANGS)
        if status:
            self.counts.wrong.append(f"a child ended with {status}")

    def run(self, threads: int) -> Counts:
        """Run the threads, fork, and watch, until the time is over."""
        self.beats = dict.fromkeys(range(threads), time.monotonic())
        workers = [
            threading.Thread(target=self.work, args=(k,), daemon=True) for k in range(threads)
        ]
        for worker in workers:
            worker.start()
        rng = random.Random(self.seed)
        while any(worker.is_alive() for worker in workers):
            time.sleep(0.5 * rng.random())
            if time.monotonic() < self.until:
                self.fork(rng)
            if time.monotonic() - min(self.beats.values()) > HANGS:
                faulthandler.dump_traceback(all_threads=True)
                self.counts.wrong.append("a thread hangs")
                break
        return self.counts


def ended(child: int, seconds: float) -> int:
    """The status of a child process; one that takes longer says where it is, and is killed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGUSR1)
    time.sleep(1.0)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def process(seed: int, threads: int, seconds: float) -> None:
    """One process; prints its counts."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    gc.set_threshold(50, 3, 3)
    native.WORK = 10_000  # batches of some hundred rows are divided among threads
    counts = Crew(seed, time.monotonic() + seconds).run(threads)
    print(json.dumps(vars(counts)), flush=True)


def run(
    processes: int,
    threads: int,
    seconds: float,
    folder: Path,
    tell: Callable[[str], None] = lambda text: None,
) -> Counts:
    """Run the campaign, with a disk cache in this folder, and count."""
    command = [sys.executable, "-m", "tests.stress.threads", "--threads", str(threads)]
    children = [
        subprocess.Popen(
            [*command, "--seconds", str(seconds), "--seed", str(seed)],
            env={**os.environ, "PHIPSI_CACHE_DIR": "off" if seed % 2 else str(folder / "cache"),
                 "PHIPSI_NUM_THREADS": "3", "PHIPSI_BACKEND": "llvm"},
            stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )
        for seed in range(processes)
    ]  # fmt: skip
    total, end = Counts(), time.monotonic() + seconds + 3 * HANGS
    for seed, child in enumerate(children):
        try:
            out, _ = child.communicate(timeout=max(1.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGUSR1)
            time.sleep(1.0)
            child.kill()
            out, _ = child.communicate()
            total.wrong.append(f"process {seed} hangs")
        lines = out.splitlines()
        if lines:
            total.add(Counts(**json.loads(lines[-1])))
        if child.returncode:
            total.wrong.append(f"process {seed} ended with {child.returncode}")
        tell(f"{seed + 1}/{processes} {total}")
    return total


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.stress.threads", description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.seed is not None:
        process(given.seed, given.threads, given.seconds)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        counts = run(
            given.processes, given.threads, 60.0 * given.minutes, Path(folder),
            lambda text: print(text, flush=True),
        )  # fmt: skip
    for text, times in Counter(counts.wrong).most_common():
        print(f"wrong: {text} ({times} times)")
    print(f"processes {given.processes}, threads {given.threads}, {given.minutes:g} min: {counts}")
    return 1 if counts.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
