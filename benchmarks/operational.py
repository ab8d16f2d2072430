"""Operational space, Coriolis matrices, the regressor and base-invariant dynamics."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

import phipsi as pp
from benchmarks.files import FILES
from benchmarks.functions import SIZE, Entry, measured, space
from benchmarks.measure import Contestant, Effort, race
from benchmarks.robots import Case, case, load, pin
from benchmarks.tables import Aim, Column, Section, at_most

TWICE = 2.2
TOOL = {"UR5": "tool0", "UR5*": "tool0", "space_arm*": "tool"}


@dataclass(frozen=True)
class Invariant:
    """Forward dynamics with a base and without."""

    robot: Annotated[str, Column("robot")]
    forward: Annotated[float, Column("forward_dynamics [ns]", "{:.1f}")]
    phipsi: Annotated[float, Column("base_invariant [ns]", "{:.1f}")]
    ratio: Annotated[float, Column("time", "{:.2f}×")]
    aim: Annotated[Aim | None, Column("aim")]
    operations: Annotated[int, Column("operations")]
    work: Annotated[float, Column("work", "{:.2f}×")]
    bound: Annotated[Aim | None, Column("aim")]
    difference: Annotated[float, Column("difference", "{:.0e}")]


def operational(effort: Effort) -> Section:
    """UR5 on a fixed base and a free one, and a free-flyer with a seven-axis arm."""
    found = []
    for one in (load("UR5", SIZE), _free(), space()):
        found += measured(one, _functions(one), effort)
    text = (
        "In batches, one evaluation of each function against one of `pin.abaInParallel` for "
        "the same robot on one thread. `fill` is the time that `ndarray.fill` takes to write as "
        "many numbers as the function returns: where it comes near, memory is the limit, and more "
        "states than the caches hold take longer (the regressor twice as long at 4 096). Results "
        "are written to arrays that begin with a cache line; where NumPy puts them, the regressor "
        "takes a quarter longer; several results at once go where NumPy puts them. A call costs "
        "some 30 µs where forces are a mapping."
    )
    return Section("Operational space, Coriolis, regressor, base-invariant dynamics", text, found)


def base_invariant(effort: Effort) -> Section:
    """Free-flyers, small and large."""
    found = []
    for one in (_free(), space(), load("Solo12*", SIZE), load("G1*", SIZE)):
        effort.say(one.name)
        plain, other = (
            program.compile(one.robot, backend="llvm", threads=1)
            for program in (pp.forward_dynamics, pp.base_invariant_forward_dynamics)
        )
        state, out = (one.q, one.v, one.tau), np.empty_like(one.v)
        times = race({
            "plain": Contestant(lambda k=plain, x=state, y=out: k(*x, out=y), SIZE),
            "other": Contestant(lambda k=other, x=state, y=out: k(*x, out=y), SIZE),
        }, effort)  # fmt: skip
        time = times["other"] / times["plain"]
        work = other.graph.operations / plain.graph.operations
        a, b = plain(*state), other(*state)
        found.append(Invariant(
            one.name, times["plain"], times["other"], time, at_most(time, TWICE, "×"),
            other.graph.operations, work, at_most(work, TWICE, "×"),
            float((np.abs(a - b).max(1) / np.abs(a).max(1)).max()),
        ))  # fmt: skip
    text = (
        f"`pp.base_invariant_forward_dynamics` over `pp.forward_dynamics`, batch {SIZE:,}; the "
        f"difference is between the two."
    )
    return Section("Base-invariant forward dynamics", text, found)


def _functions(one: Case) -> Iterator[Entry]:
    """Name, program, arguments and options of every function that the robot has."""
    q, v, a, tau, tool = one.q, one.v, one.a, one.tau, TOOL[one.name]
    forces = {tool: np.random.default_rng(1).standard_normal((SIZE, 6))}
    named = {tool: np.zeros(6)}
    yield "tip_force_accelerations", pp.tip_force_accelerations, (q, forces), {"forces": named}
    yield "impact", pp.impact, (q, forces), {"impulses": named}
    inverse = pp.operational_inertia_inverse
    yield "operational_inertia_inverse, every body", inverse, (q,), {}
    yield "operational_inertia_inverse, tool", inverse, (q,), {"frames": tool}
    yield "operational_inertia, tool", pp.operational_inertia, (q,), {"frames": tool}
    yield "operational_bias, tool", pp.operational_bias, (q, v), {"frames": tool}
    yield "coriolis_product", pp.coriolis_product, (q, v, a), {}
    yield "coriolis_matrix", pp.coriolis_matrix, (q, v), {}
    yield "regressor", pp.regressor, (q, v, a), {}
    if one.robot.hinges[0].kind.name != "free":
        return
    yield "operational_inertia, every body", pp.operational_inertia, (q,), {}
    yield "dual_articulated_inertias", pp.dual_articulated_inertias, (q,), {}
    invariant = pp.base_invariant_forward_dynamics
    yield "base_invariant_forward_dynamics", invariant, (q, v, tau), {}
    yield "link_accelerations", pp.link_accelerations, (q, v, tau), {}
    X, V = pp.poses(one.robot, q), pp.velocities(one.robot, q, v)
    yield "decoupled_forward_dynamics", pp.decoupled_forward_dynamics, (X, V, tau), {}


def _free() -> Case:
    """UR5 on a free base."""
    path = str(FILES["UR5"].path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pp.ModelWarning)
        robot = pp.load(path, base="free")
    return case("UR5*", robot, pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer()), SIZE)
