"""How long it takes until a kernel can run, and until phipsi is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Annotated

import phipsi as pp
import phipsi.compile.native  # that its import is not timed
from benchmarks.files import FILES, robot
from benchmarks.measure import Effort
from benchmarks.tables import Aim, Column, Section, at_most
from phipsi.cli.doctor import import_time

COLD = {"UR5": 0.3, "G1*": 1.5, "Talos*": 2.5}
CACHED = 30.0


@dataclass(frozen=True)
class Compilation:
    """Seconds without, milliseconds with the disk cache."""

    robot: Annotated[str, Column("robot")]
    trace: Annotated[float, Column("trace [s]", "{:.3f}")]
    cold: Annotated[float, Column("compile [s]", "{:.3f}")]
    aim: Annotated[Aim | None, Column("aim")]
    single: Annotated[float, Column("first single call [s]", "{:.3f}")]
    cached: Annotated[float, Column("cached: compile [ms]", "{:.1f}")]
    cached_aim: Annotated[Aim | None, Column("aim, cached")]


@dataclass(frozen=True)
class Import:
    """Milliseconds in a fresh interpreter."""

    what: Annotated[str, Column("what")]
    time: Annotated[float, Column("best of 5 [ms]", "{:.0f}")]


def compilation(effort: Effort) -> Section:
    """All five robots, each time in a fresh process."""
    found = []
    for name in FILES:
        cold, cached = [], []
        for run in range(effort.processes):
            effort.say(f"{name}, process {run + 1}")
            with tempfile.TemporaryDirectory() as cache:
                cold.append(_in_new_process(name, cache))
                cached.append(_in_new_process(name, cache))
        whole, single, trace = (min(column) for column in zip(*cold, strict=True))
        again = 1e3 * min(whole for whole, _, _ in cached)
        found.append(Compilation(
            name, trace, whole, at_most(whole, COLD.get(name), " s"), single, again,
            at_most(again, CACHED, " ms"),
        ))  # fmt: skip
    text = (
        f"`pp.forward_dynamics.compile(robot)`, the first kernel of a new process where "
        f"everything is imported, best of {effort.processes} processes: first with an empty cache "
        f"directory, tracing included (and by itself, after), then, in another process, with trace "
        f"and machine code on disk. Code for single calls is made at the first one, and counted by "
        f"itself."
    )
    return Section("Compilation", text, found)


def imports(effort: Effort) -> Section:
    """What `import phipsi` costs."""
    used = "; phipsi.forward_dynamics"
    uses = {
        "import phipsi": "",
        "the same, and every algorithm (and NumPy)": used,
        "the same, and the compiler (and llvmlite)": f"{used}; import phipsi.compile.native",
    }
    found = []
    for what, use in uses.items():
        effort.say(what)
        found.append(Import(what, 1e3 * import_time(use)))
    return Section("Import", "In a fresh interpreter, files in the page cache.", found)


def _in_new_process(name: str, cache: str) -> tuple[float, float, float]:
    command = [sys.executable, "-m", "benchmarks.compilation", name]
    environment = os.environ | {"PHIPSI_CACHE_DIR": cache}
    return tuple(json.loads(subprocess.check_output(command, env=environment, text=True)))


def measure(name: str) -> tuple[float, float, float]:
    """Seconds for the whole, for the first single call, and for the trace alone."""
    one, program = robot(name), pp.forward_dynamics
    q, v = one.random_state(0)
    start = time.perf_counter()
    kernel = program.compile(one, backend="llvm", threads=1)
    compiled = time.perf_counter()
    kernel(q, v, v)
    called = time.perf_counter()
    program.graph(one)
    return compiled - start, called - compiled, time.perf_counter() - called


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
