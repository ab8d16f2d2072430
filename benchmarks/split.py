"""Under-actuated and diagonalized dynamics ([UA], [DL])."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

import phipsi as pp
from benchmarks.functions import SIZE, Entry, measured, space
from benchmarks.measure import Contestant, Effort, race
from benchmarks.robots import Case, load
from benchmarks.tables import Aim, Column, Section, at_most

TOOL = {"UR5": "tool0", "space_arm*": "tool", "G1*": "left_wrist_yaw_link"}
TWICE = 2.0


@dataclass(frozen=True)
class Price:
    """What a function costs beside those it takes the place of."""

    robot: Annotated[str, Column("robot")]
    function: Annotated[str, Column("function")]
    phipsi: Annotated[float, Column("time [ns]", "{:.1f}")]
    beside: Annotated[str, Column("beside")]
    plain: Annotated[float, Column("time [ns]", "{:.1f}")]
    ratio: Annotated[float, Column("ratio", "{:.2f}×")]
    aim: Annotated[Aim | None, Column("aim")]
    work: Annotated[float, Column("operations", "{:.2f}×")]
    error: Annotated[float, Column("error", "{:.0e}")]


def split(effort: Effort) -> Section:
    """A fixed arm, a free-flyer and a humanoid; which joints are active changes from row to row."""
    found = []
    for one in (load("UR5", SIZE), space(), load("G1*", SIZE)):
        found += measured(one, _linear(one), effort)
        if one.robot.nv < 20:
            found += measured(one, _quadratic(one), effort, None)
    text = (
        "In batches, one evaluation of each function against one of `pin.abaInParallel` for the "
        "same robot on one thread. The aim is for what costs O(N); the matrices below cost more by "
        "nature. Each row of a batch has its own active joints."
    )
    return Section("Under-actuated and diagonalized dynamics", text, found)


def prices(effort: Effort) -> Section:
    """Hybrid dynamics beside forward and inverse, diagonalized dynamics beside ordinary."""
    found = []
    for one in (load("UR5", SIZE), space(), load("G1*", SIZE)):
        effort.say(one.name)
        found += _priced(one, effort)
    text = (
        "`pp.hybrid_dynamics` with other active joints in every row beside `pp.forward_dynamics` "
        "and `pp.inverse_dynamics` together; `pp.diagonal_forward_dynamics` beside "
        "`pp.forward_dynamics`. The errors are those of inverse dynamics of the result, and of ν̇ "
        "beside a difference of `pp.total_rates` along the ordinary motion."
    )
    return Section("What under-actuated and diagonalized dynamics cost", text, found)


def _priced(one: Case, effort: Effort) -> Iterator[Price]:
    robot, mask = one.robot, _mask(one)
    programs = (pp.forward_dynamics, pp.inverse_dynamics, pp.hybrid_dynamics,
                pp.diagonal_forward_dynamics)  # fmt: skip
    forward, inverse, hybrid, diagonal = (
        p.compile(robot, backend="llvm", threads=1) for p in programs
    )
    state, nu = (one.q, one.v, one.tau), pp.total_rates(robot, one.q, one.v)
    out, mixed = np.empty_like(one.v), (*state, one.a, mask)
    times = race({
        "forward": Contestant(lambda: forward(*state, out=out), SIZE),
        "inverse": Contestant(lambda: inverse(one.q, one.v, one.a, out=out), SIZE),
        "hybrid": Contestant(lambda: hybrid(*mixed), SIZE),
        "diagonal": Contestant(lambda: diagonal(one.q, nu, one.tau, out=out), SIZE),
    }, effort)  # fmt: skip
    both = times["forward"] + times["inverse"]
    tau, qdd = hybrid(*mixed)
    found = pp.inverse_dynamics(robot, one.q, one.v, qdd)
    work = hybrid.graph.operations / (forward.graph.operations + inverse.graph.operations)
    ratio = times["hybrid"] / both
    yield Price(
        one.name, "hybrid_dynamics", times["hybrid"], "forward + inverse", both, ratio,
        at_most(ratio, 1.0, "×"), work, _worst(tau, found),
    )  # fmt: skip
    ratio = times["diagonal"] / times["forward"]
    work = diagonal.graph.operations / forward.graph.operations
    yield Price(
        one.name, "diagonal_forward_dynamics", times["diagonal"], "forward", times["forward"],
        ratio, at_most(ratio, TWICE, "×"), work, _worst(diagonal(one.q, nu, one.tau), _rate(one)),
    )  # fmt: skip


def _rate(one: Case) -> np.ndarray:
    """ν̇ along the ordinary motion, by differences of fourth order."""
    robot, a = one.robot, pp.forward_dynamics(one.robot, one.q, one.v, one.tau)
    h = 1e-3 / np.abs(a).max(1, keepdims=True)

    def rates(t: np.ndarray) -> np.ndarray:
        q = robot.integrate(one.q, t * one.v + 0.5 * t * t * a)
        return np.asarray(pp.total_rates(robot, q, one.v + t * a))

    return (8.0 * (rates(h) - rates(-h)) - (rates(2 * h) - rates(-2 * h))) / (12.0 * h)


def _worst(found: Any, expected: Any) -> float:
    return float((np.abs(found - expected).max(1) / np.abs(expected).max(1)).max())


def _mask(one: Case) -> np.ndarray:
    """Other active joints for every state."""
    return (np.random.default_rng(2).random(one.v.shape) < 0.5).astype(float)


def _linear(one: Case) -> Iterator[Entry]:
    """Functions that cost O(N)."""
    q, v, a, tau, tool = one.q, one.v, one.a, one.tau, {"frame": TOOL[one.name]}
    mask, nu = _mask(one), pp.mass_matrix_sqrt_product(one.robot, q, v, factor="m*")
    yield "hybrid_dynamics", pp.hybrid_dynamics, (q, v, tau, a, mask), {}
    yield "drift_accelerations, tool", pp.drift_accelerations, (q, v, tau, mask), tool
    yield "passive_rates", pp.passive_rates, (q, v, mask), {}
    yield "generalized_jacobian, tool", pp.generalized_jacobian, (q, mask), tool
    yield "generalized_jacobian_product", pp.generalized_jacobian_product, (q, v, mask), tool
    yield "disturbance_jacobian_product", pp.disturbance_jacobian_product, (q, v, mask), {}
    yield "total_rates", pp.total_rates, (q, v), {}
    yield "joint_rates", pp.joint_rates, (q, nu), {}
    yield "working_moments", pp.working_moments, (q, tau), {}
    yield "applied_moments", pp.applied_moments, (q, tau), {}
    yield "diagonal_coriolis", pp.diagonal_coriolis, (q, nu), {}
    yield "diagonal_coriolis, its parts", pp.diagonal_coriolis, (q, nu), {"parts": True}
    yield "diagonal_forward_dynamics", pp.diagonal_forward_dynamics, (q, nu, tau), {}
    yield "articulated_inertia_rates", pp.articulated_inertia_rates, (q, v), {}


def _quadratic(one: Case) -> Iterator[Entry]:
    """Matrices, and arrays with more axes."""
    q, mask = one.q, _mask(one)
    yield "active_mass_matrix", pp.active_mass_matrix, (q, mask), {}
    yield "coupling", pp.coupling, (q, mask), {}
    yield "disturbance_jacobian", pp.disturbance_jacobian, (q, mask), {}
    yield "mass_matrix_derivative", pp.mass_matrix_derivative, (q,), {}
    if (one.robot.rates >= 0).all():
        yield "christoffel", pp.christoffel, (q,), {}
        yield "curvature", pp.curvature, (q,), {}
