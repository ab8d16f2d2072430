"""The process in which inputs are used: it may hang, run out of memory, or crash.

`python -m tests.fuzz.worker MODULE` has the targets of a module. It takes requests, a line of JSON
each, from its standard input, and answers each case with a line. `Worker` is its other end.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.fuzz.target import Outcome, Target, outcome

ROOT = Path(__file__).parents[2]
MEMORY = 1 << 30
"""The most bytes that an input may need, beyond those of the process before."""
STARTING = 60.0
"""The most seconds in which a worker starts, and in which it makes the seeds of a target."""
LATE = "took too long"


@dataclass(frozen=True)
class Result:
    """What came of an input, and what it took."""

    case: int
    outcome: Outcome
    seconds: float
    peak: int = 0
    """The most bytes in memory, of the worker or a process that it started."""


# ---- the other end -------------------------------------------------------------------------------


class Worker:
    """A worker, started anew after a crash or a hang."""

    def __init__(self, module: str = "tests.fuzz.targets") -> None:
        self.module = module
        self.folder = tempfile.TemporaryDirectory(prefix="phipsi-fuzz-")
        self.process: subprocess.Popen[bytes] | None = None
        self.read = b""
        """What the process has written that is no whole line yet, or has not been asked for."""

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.folder.cleanup()

    def stop(self) -> int | None:
        """End the process with all that it started; its exit status if it had ended by itself."""
        process, self.process, self.read = self.process, None, b""
        if process is None:
            return None
        status = process.poll()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for end in (process.stdin, process.stdout):
            if end:
                end.close()
        return status

    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
            environment |= {"PHIPSI_CACHE_DIR": "off", "PHIPSI_VERIFY": "1", "OMP_NUM_THREADS": "1"}
            environment["TMPDIR"] = self.folder.name  # nothing is left by a worker that is killed
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.worker", self.module], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=self.folder.name,
                env=environment, start_new_session=True,
            )  # fmt: skip
            self._line(STARTING)  # it has imported phipsi
        return self.process

    def _line(self, seconds: float) -> bytes | None:
        """The next line of the worker: empty if it has ended, None if nothing comes in time."""
        assert self.process is not None and self.process.stdout is not None
        answers = self.process.stdout.fileno()
        while b"\n" not in self.read:
            if not select.select([answers], [], [], seconds)[0]:
                return None
            more = os.read(answers, 1 << 16)
            if not more:
                return b""
            self.read += more
        line, _, self.read = self.read.partition(b"\n")
        return line

    def run(
        self, target: Target, seed: int, cases: range, content: bytes | None = None
    ) -> Iterator[Result]:
        """The results of cases in turn, or of this input in place of each; those that end the
        worker are failures. A case that takes too long is tried again: the machine may be busy."""
        late = -1
        while cases:
            ended = ""
            for answer in self._answers(target, seed, cases, content):
                if isinstance(answer, Result):
                    cases = cases[1:]
                    yield answer
                else:
                    ended = answer
            if ended == LATE and late != cases.start:
                late = cases.start
            elif ended:
                seconds = target.seconds * (ended == LATE)
                yield Result(cases.start, Outcome(ended, ended), seconds)
                cases = cases[1:]

    def use(self, target: Target, content: bytes) -> Result:
        """The result of an input, used after it was read as well."""
        (result,) = self.run(target, 0, range(1), content)
        return result

    def _answers(
        self, target: Target, seed: int, cases: range, content: bytes | None
    ) -> Iterator[Result | str]:
        """Results, and at last how the worker ended, if it did."""
        process = self._started()
        assert process.stdin is not None
        given = None if content is None else b64encode(content).decode()
        ask = [target.name, seed, [cases.start, cases.stop, cases.step], given]
        process.stdin.write(json.dumps(ask).encode() + b"\n")
        process.stdin.flush()
        line = self._line(STARTING)  # the seeds are made
        try:
            while line and json.loads(line) != "done":
                line = self._line(target.seconds)
                if line and isinstance(answer := json.loads(line), dict):
                    yield Result(**{**answer, "outcome": Outcome(**answer["outcome"])})
        except GeneratorExit:  # the other answers are for nobody
            self.stop()
            raise
        if line is None:
            self.stop()
            yield LATE
        elif not line:
            process.wait()
            status = self.stop() or 0
            yield f"ended by {signal.Signals(-status).name if status < 0 else f'status {status}'}"


# ---- this end ------------------------------------------------------------------------------------


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)  # what MuJoCo prints is no answer
    targets: dict[str, Target] = importlib.import_module(sys.argv[1]).TARGETS

    def tell(answer: object) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    tell("ready")
    for line in sys.stdin:
        name, seed, cases, given = json.loads(line)
        target = targets[name]
        _ = target.seeds
        _limit()
        tell("begun")
        for case in range(*cases):
            content = target.content(seed, case) if given is None else b64decode(given)
            tell(_used(target, case, content, given is not None or case % target.deep == 0))
        tell("done")


def _limit() -> None:
    """Bound the memory of this process, and of those that it starts."""
    pages = int(Path("/proc/self/statm").read_text().split()[5])  # of data, not of what is shared
    size = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_DATA, (size, resource.RLIM_INFINITY))


def _used(target: Target, case: int, content: bytes, deep: bool) -> dict[str, object]:
    start = time.monotonic()
    found = outcome(target, content, deep)
    peak = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return asdict(Result(case, found, time.monotonic() - start, peak << 10))


if __name__ == "__main__":
    main()
