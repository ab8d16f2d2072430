"""`phipsi doctor`: what is installed, which backends work, and a self-test."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from importlib import metadata

import numpy as np

import phipsi as pp

BACKENDS = ("llvm", "numpy", "cuda")


def run() -> int:
    """Print the findings; 0 when the self-test passes, else 1."""
    from rich.console import Console
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
    used = import_time("; phipsi.forward_dynamics")
    console.print(
        f"import phipsi: {import_time():.3f} s; with NumPy and all algorithms {used:.3f} s"
    )
    console.print(f"compiled code: {pp.cache_info()}", soft_wrap=True)
    failed = False
    for name in BACKENDS:
        state, sound = check(name)
        failed |= not sound
        console.print(f"backend {name}: {state}", soft_wrap=True)
    return 1 if failed else 0


def requirements() -> dict[str, list[tuple[str, str | None]]]:
    """For the core and each extra of users the packages it needs, and the versions installed."""
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
    """Seconds that `import phipsi` and `use` take in a fresh interpreter, the best of several."""
    code = (
        f"import time; t = time.perf_counter(); import phipsi{use}; print(time.perf_counter() - t)"
    )
    command = [sys.executable, "-c", code]
    return min(float(subprocess.check_output(command, text=True)) for _ in range(runs))


def _lanes() -> int:
    """How many float64 the vectors of this machine hold."""
    from phipsi.compile.native import host

    return host("float64").lanes


def check(backend: str) -> tuple[str, bool]:
    """What a backend can do, and whether that is right: forward against inverse dynamics."""
    robot = pp.robots.space_arm()
    q, v = robot.random_state(0, (8,))
    tau = np.random.default_rng(1).standard_normal((8, robot.nv))
    start = time.perf_counter()
    try:
        kernel = pp.forward_dynamics.compile(robot, backend=backend)
    except (ValueError, ImportError) as error:
        return f"[dim]not available ({error})[/]", backend != "numpy"
    a = kernel(q, v, tau)
    error = float(np.abs(pp.inverse_dynamics(robot, q, v, a) - tau).max())
    seconds = time.perf_counter() - start
    if error < 1e-9:
        vectors = f"{_lanes()} numbers at once, " if backend == "llvm" else ""
        test = f"{vectors}self-test: error {error:.0e}, {seconds:.1f} s"
        return f"[green]works[/] ({test})", True
    return f"[bold red]wrong[/] (self-test: error {error:.0e})", False
