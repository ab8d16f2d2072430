"""Programs of robots with many bodies, rows or freedoms: which form is taken, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

import phipsi as pp
from benchmarks.measure import Contestant, Effort, race, timed
from benchmarks.tables import Column, Section
from tests.sweeps.test_looped import four_bars

BATCH = 16


@dataclass(frozen=True)
class Large:
    """Microseconds per evaluation."""

    program: Annotated[str, Column("program")]
    robot: Annotated[str, Column("robot")]
    bodies: Annotated[int, Column("bodies")]
    freedoms: Annotated[int, Column("freedoms")]
    compiled: Annotated[float, Column("compile [s]", "{:.2f}")]
    size: Annotated[int, Column("nodes")]
    operations: Annotated[int, Column("operations")]
    time: Annotated[float, Column("phipsi [µs]", "{:.1f}")]


def _closed(bodies: int) -> tuple[str, Any, pp.Robot, dict[str, Any]]:
    robot, loops = four_bars(bodies // 2)
    return "four-bars", pp.closed_chain_dynamics, robot, {"loops": loops}


def _chain(program: Any, n: int, kind: Any = "revolute") -> tuple[str, Any, pp.Robot, Any]:
    return f"{kind} chain", program, pp.robots.chain(n, kind=kind), {}


RUNS: tuple[Callable[[], tuple[str, Any, pp.Robot, dict[str, Any]]], ...] = (
    lambda: _closed(63),
    lambda: _closed(65),
    lambda: _closed(81),
    lambda: _closed(101),
    lambda: _chain(pp.mass_matrix, 60),
    lambda: _chain(pp.mass_matrix, 159),
    lambda: _chain(pp.mass_matrix_inverse, 159),
    lambda: _chain(pp.disturbance_jacobian, 81),
    lambda: _chain(pp.mass_matrix_derivative, 40),
    lambda: _chain(pp.christoffel, 12, "spherical"),
    lambda: _chain(pp.curvature, 13),
)


def large(effort: Effort) -> Section:
    """Closed chains, matrices and tensors."""
    found = []
    for run in RUNS:
        name, program, robot, options = run()
        effort.say(f"{program.name}, {robot.nb} bodies")
        kernel, compiled = timed(
            lambda p=program, r=robot, o=options: p.compile(r, backend="llvm", threads=1, **o)
        )
        q, v = robot.random_state(0, (BATCH,))
        known = {"q": q, "v": v, "tau": v, "active": 1.0 * (v > 0.0)}
        given = [known[parameter] for parameter, _ in kernel.parameters]
        out = [np.empty((BATCH, *leaf.shape)) for leaf in kernel.results.leaves]
        target = out if len(out) > 1 else out[0]
        call = Contestant(lambda k=kernel, x=given, y=target: k(*x, out=y), BATCH)
        time = race({"phipsi": call}, effort)["phipsi"] / 1e3
        graph = kernel.graph
        found.append(Large(
            program.name, name, robot.nb, robot.nv, compiled, graph.size, graph.operations, time
        ))  # fmt: skip
    text = (
        f"Four-bars in a row (IFToMM A02: each has a loop of two rows) and chains, batch {BATCH}. "
        "Whether sweeps are unrolled or loops is chosen by what both forms cost; matrices and "
        "tensors of many freedoms are loops over their columns."
    )
    return Section("Large robots", text, found)
