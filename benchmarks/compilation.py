"""How long it takes until a kernel can run, and until phipsi is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
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
    code: Annotated[float, Column("machine code [s]", "{:.3f}")]
    cold: Annotated[float, Column("compile [s]", "{:.3f}")]
    aim: Annotated[Aim | None, Column("aim")]
    single: Annotated[float, Column("first single call [s]", "{:.3f}")]
    cached_trace: Annotated[float, Column("cached: trace [ms]", "{:.0f}")]
    cached_code: Annotated[float, Column("cached: load [ms]", "{:.1f}")]
    cached: Annotated[float, Column("cached: compile [ms]", "{:.0f}")]
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
        trace, code, single = min(cold, key=lambda t: t[0] + t[1])
        again, load, _ = min(cached, key=lambda t: t[0] + t[1])
        total = 1e3 * (again + load)
        found.append(Compilation(
            name, trace, code, trace + code, at_most(trace + code, COLD.get(name), " s"), single,
            1e3 * again, 1e3 * load, total, at_most(total, CACHED, " ms"),
        ))  # fmt: skip
    text = (
        f"`pp.forward_dynamics.compile(robot)`, the first kernel of a new process where "
        f"everything is imported, best of {effort.processes} processes: first with an empty cache "
        f"directory, then, in another process, with the machine code on disk. The graph is traced "
        f"anew in both. Code for single calls is made at the first one, and counted by itself."
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
    """Seconds for the trace, for the code of batches and for the first single call."""
    one = robot(name)
    q, v = one.random_state(0)
    program = pp.forward_dynamics
    start = time.perf_counter()
    traced = program.compile(one, backend="numpy")
    between = time.perf_counter()
    kernel = replace(traced, backend="llvm", threads=1)
    kernel.prepare()
    stop = time.perf_counter()
    kernel(q, v, v)
    return between - start, stop - between, time.perf_counter() - stop


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
