"""BENCHMARKS.md: what was measured, where, and how to do it again."""

from __future__ import annotations

import datetime
import os
import platform
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import llvmlite.binding as llvm

from benchmarks.tables import Section, markdown

PATH = Path(__file__).parents[1] / "BENCHMARKS.md"
PACKAGES = ("phipsi", "numpy", "llvmlite", "pin", "mujoco", "example-robot-data")
SHOWN = ("avx512f", "avx512vl", "avx2", "fma", "neon", "sve")

INTRODUCTION = """\
# Benchmarks

Written by `make bench` (`python -m benchmarks`), which measures everything below anew in a few
minutes. Machines differ: only ratios taken in one run count. It needs a quiet machine.

- phipsi and its peers run in one process, on the same random states (positions within limits,
  velocities, accelerations and forces standard normal; never zeros), warm, interleaved round by
  round; in a round each runs for about the same time, and its best of {rounds} rounds counts.
- One thread and float64 unless said. Arrays are ordinary (batch, n) for phipsi; Pinocchio gets its
  own layout, one state per column in Fortran order. Converting between the two is not timed, and
  both write their batches into arrays given to them.
- Pinocchio is the wheel of PyPI (a generic x86-64 build): what `pip install pin` gives. One built
  for this machine may be faster.
- Robots are the URDFs of example-robot-data; * marks a free base.
- Ratios are Pinocchio's time over phipsi's, unless said. The difference is the largest one of any
  element from Pinocchio's, over the largest element of its state.
- An aim is a number this version set out to reach; "not met" says that it was not, in this run."""


def facts() -> list[str]:
    """The machine, the versions, the day."""
    features = llvm.get_host_cpu_features()
    there = ", ".join(name for name in SHOWN if features.get(name)) or "no vector extensions"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    return [
        f"{_processor()} ({llvm.get_host_cpu_name()}: {there}), {cores} cores",
        f"{platform.platform()}, Python {platform.python_version()}{load} at the start",
        versions,
        f"{datetime.date.today():%Y-%m-%d}",
    ]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def verdict(sections: Sequence[Section]) -> str:
    """How many aims were met, and which were not, as Markdown."""
    aims = [aim for section in sections for aim in section.aims]
    missed = [(where, aim) for where, aim in aims if not aim.met]
    lines = [f"{len(aims) - len(missed)} of {len(aims)} aims met{'; not met:' if missed else '.'}"]
    for where, aim in missed:
        lines.append(f"- {where}: {aim.value:.4g}{aim.unit}, aim {aim.bounds}")
    return "\n".join(lines) if aims else "There are no aims."


def document(sections: Sequence[Section], lines: Sequence[str], rounds: int) -> str:
    """The whole report."""
    head = INTRODUCTION.format(rounds=rounds)
    machine = "\n".join(f"- {line}" for line in lines)
    body = "\n\n".join(markdown(section) for section in sections)
    return f"{head}\n\nMeasured on\n\n{machine}\n\n{verdict(sections)}\n\n{body}\n"


def write(text: str, path: Path = PATH) -> None:
    """Put the report in its place, whole or not at all."""
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
    try:
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)
    except OSError:
        os.unlink(file.name)
        raise
