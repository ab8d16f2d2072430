"""Forward dynamics of the UR5 beside Pinocchio's, in one process, on one thread.

Same random states for both, rounds interleaved, the best round of each; Pinocchio is the wheel of
PyPI. Machines differ: only ratios taken in one run count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
from rich.console import Console
from rich.table import Table

import phipsi as pp
from phipsi.cli.doctor import import_time
from tests.model.urdf_files import URDFS

BATCHES = (1, 16, 256, 4096)
ROUNDS, PER_ROUND = 20, 64  # PER_ROUND: evaluations at least, so that small batches are warm too


def best(contestants: list[Callable[[], Any]], repeats: int) -> list[float]:
    """The least time [s] of one call of each contestant, rounds of `repeats` calls interleaved."""
    times = [float("inf")] * len(contestants)
    for _ in range(ROUNDS):
        for k, contestant in enumerate(contestants):
            start = time.perf_counter()
            for _ in range(repeats):
                contestant()
            times[k] = min(times[k], (time.perf_counter() - start) / repeats)
    return times


def main() -> None:
    """Print the table."""
    path = str(URDFS["ur5_robot"])
    start = time.perf_counter()
    robot = pp.load(path)
    loaded = time.perf_counter()
    kernel = pp.forward_dynamics.compile(robot)
    traced = time.perf_counter()
    model = pin.buildModelFromUrdf(path)
    data, pool = model.createData(), pin.ModelPool(model, 1)

    console = Console(highlight=False)
    used = import_time("; phipsi.forward_dynamics")
    console.print(
        f"import phipsi {1e3 * import_time():.0f} ms, with the algorithms {1e3 * used:.0f} ms"
    )
    console.print(f"load UR5 (first import of the loader included) {1e3 * (loaded - start):.0f} ms")
    console.print(f"trace forward dynamics {1e3 * (traced - loaded):.0f} ms: {kernel}")

    pinocchio = f"Pinocchio {pin.__version__}"
    table = Table(title="UR5 forward dynamics, µs per evaluation, float64, one thread")
    for column in ("batch", "phipsi", "phipsi kernel", f"{pinocchio} aba", f"{pinocchio} batch",
                   "kernel / fastest Pinocchio", "largest difference"):  # fmt: skip
        table.add_column(column, justify="right")
    rng = np.random.default_rng(0)
    for n in BATCHES:
        q, v, tau = rng.uniform(-1, 1, (3, n, robot.nv))
        columns = [np.asfortranarray(x.T) for x in (q, v, tau)]
        rows = list(zip(q, v, tau, strict=True))
        contestants = [
            lambda q=q, v=v, tau=tau: pp.forward_dynamics(robot, q, v, tau),
            lambda q=q, v=v, tau=tau: kernel(q, v, tau),
            lambda rows=rows: [pin.aba(model, data, *row) for row in rows],
            lambda columns=columns: pin.abaInParallel(1, pool, *columns),
        ]
        times = best(contestants, max(1, PER_ROUND // n))
        expected = np.array([pin.aba(model, data, *row) for row in rows])
        error = np.abs(kernel(q, v, tau) - expected).max() / np.abs(expected).max()
        shown = [f"{1e6 * t / n:.2f}" for t in times]
        ratio = times[1] / min(times[2:])
        table.add_row(str(n), *shown, f"{ratio:.2f}", f"{error:.0e}")
    console.print(table)


if __name__ == "__main__":
    main()
