"""`phipsi doctor`: installed packages, working backends, and a self-test."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from dataclasses import asdict
from importlib import metadata
from typing import Any, NamedTuple, get_args

import numpy as np

import phipsi as pp
from phipsi.cli.choices import Base
from phipsi.cli.lookup import find_robot
from phipsi.compile import BACKENDS, BackendName


class Check(NamedTuple):
    """The outcome of the self-test of a backend."""

    backend: BackendName
    available: bool
    sound: bool
    """Whether its numbers are right, or it is absent and optional."""
    error: float | None = None
    """The largest error of forward against inverse dynamics."""
    seconds: float | None = None
    said: str = ""
    """A remark, or why it is not available."""


def run(as_json: bool) -> int:
    """Print the findings; return 0 when the self-test passes, else 1."""
    start, use = import_time(), import_time("; phipsi.forward_dynamics")
    checks = [check(name) for name in get_args(BackendName)]
    sound = all(one.sound for one in checks)
    if as_json:
        cache = pp.cache_info()
        found = {
            "phipsi": pp.__version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "packages": {extra: dict(packages) for extra, packages in requirements().items()},
            "import_seconds": {"phipsi": start, "algorithms": use},
            "cache": cache._asdict() | {"directory": cache.directory and str(cache.directory)},
            "backends": [one._asdict() for one in checks],
            "sound": sound,
        }
        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _show(start, use, checks)
    return 0 if sound else 1


def verified(name: str, base: Base | None, as_json: bool) -> int:
    """Print what `pp.verify` finds of a robot; return 0 if it is sound, else 1."""
    found = pp.verify(find_robot(name, base))
    print(json.dumps(_plain(found), indent=2, ensure_ascii=False) if as_json else found)
    return 0 if found.sound else 1


def _plain(found: pp.Verification) -> dict[str, Any]:
    """The report as JSON: an error that is not finite is null."""
    checks = [asdict(one) | {"error": _finite(one.error), "ok": one.ok} for one in found.checks]
    return {
        "robot": found.robot,
        "sound": found.sound,
        "condition": _finite(found.condition),
        "checks": checks,
        "left_out": dict(found.left_out),
    }


def _finite(x: float) -> float | None:
    """A number for JSON."""
    return float(x) if np.isfinite(x) else None


def _show(start: float, use: float, checks: list[Check]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    python = f"Python {platform.python_version()}"
    console.print(f"phipsi {pp.__version__}, {python}, {platform.platform()}", soft_wrap=True)
    table = Table(show_header=False, box=None)
    for title, packages in requirements().items():
        found = ", ".join(f"{name} {version}" for name, version in packages if version)
        missing = [name for name, version in packages if not version]
        fix = f"[dim]{', '.join(missing)} not installed: pip install 'phipsi\\[{title}]'[/]"
        table.add_row(title, "; ".join(filter(None, (found, fix if missing else ""))))
    console.print(table)
    console.print(f"import phipsi: {start:.3f} s; with NumPy and all algorithms {use:.3f} s")
    console.print(f"compiled code: {pp.cache_info()}", soft_wrap=True)
    for one in checks:
        if not one.available:
            state = f"[dim]not available ({escape(one.said)})[/]"
        else:
            word = "[green]works[/]" if one.sound else "[bold red]wrong[/]"
            test = f"self-test: error {one.error:.0e}, {one.seconds:.1f} s"
            state = f"{word} ({', '.join(filter(None, (one.said, test)))})"
        console.print(f"backend {one.backend}: {state}", soft_wrap=True)


def requirements() -> dict[str, list[tuple[str, str | None]]]:
    """The packages that the core and each extra need, with the installed versions."""
    needs: dict[str, list[tuple[str, str | None]]] = {"core": []}
    for line in metadata.requires("phipsi") or []:
        requirement, _, marker = line.partition(";")
        extra = marker.partition("extra ==")[2].strip(" '\"") or "core"
        if extra in ("all", "dev"):
            continue
        name = requirement.strip()
        for stop in "<>=!~[ (":
            name = name.partition(stop)[0]
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            version = None
        needs.setdefault(extra, []).append((name, version))
    return needs


def import_time(use: str = "", runs: int = 5) -> float:
    """Seconds that `import phipsi` and `use` take in a fresh interpreter, the least of several
    runs."""
    code = (
        f"import time; t = time.perf_counter(); import phipsi{use}; print(time.perf_counter() - t)"
    )
    command = [sys.executable, "-c", code]
    return min(float(subprocess.check_output(command, text=True)) for _ in range(runs))


def _lanes() -> int:
    """How many float64 a vector register of this machine holds."""
    from phipsi.compile.native import host

    return host("float64").lanes


def check(backend: BackendName) -> Check:
    """Whether a backend is available and its forward dynamics agree with inverse dynamics."""
    robot = pp.robots.space_arm()
    q, v = robot.random_state(0, (8,))
    tau = np.random.default_rng(1).standard_normal((8, robot.nv))
    start = time.perf_counter()
    try:
        kernel = pp.forward_dynamics.compile(robot, backend=backend)
    except (ValueError, ImportError, RuntimeError) as error:
        return Check(backend, False, BACKENDS[backend].compiled, said=str(error))
    a = kernel(q, v, tau)
    error = float(np.abs(pp.inverse_dynamics(robot, q, v, a) - tau).max())
    seconds = time.perf_counter() - start
    said = f"{_lanes()} numbers at once" if backend == "llvm" else ""
    return Check(backend, True, error < 1e-9, error, seconds, said)
