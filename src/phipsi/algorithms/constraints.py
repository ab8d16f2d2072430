"""Closed chains by cut joints: 𝓜β̇ = T − C + J*Nλ with N*(Jβ̇ + …) as the closures demand.

With the whitening operator W = I − HψK, 𝓜⁻¹ = W*D⁻¹W, everything follows from the innovations of
the open chain and of the unit forces of the closures ([SOA] 5.3):

    ε = W(T − C),  e = WJ*N,  Lλ = bias − e*D⁻¹ε,  L = e*D⁻¹e = N*JM⁻¹J*N,  β̇ = W*D⁻¹(ε + eλ)
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms.cut import Cut, W, Whitened, check_closures, cut, response, wrenches
from phipsi.algorithms.operational_space import as_names, exists, inverse_block
from phipsi.compile import lift, repeat, where
from phipsi.model import Closure, Loop, Robot
from phipsi.operators import C, T
from phipsi.operators.lowering.compute import compute
from phipsi.programs import program
from phipsi.spatial import SemiPivot, SingularError

SHAPES = {"stabilisation": ()}
LOCKED = (
    "the effective inertia does not exist at this configuration: with the closures the frames "
    "cannot accelerate in every direction"
)


# ---- closed chains ------------------------------------------------------------------------------


class ClosedChainSolution(NamedTuple):
    """What `closed_chain_dynamics` returns."""

    qdd: Any
    """(…, nv) [rad/s² or m/s²]."""
    forces: Any
    """(…, loops, 6) [N·m, N]: on frame a of each loop, in its axes; the opposite acts on b."""
    residual: Any
    """(…, rows): what is left of the closures' conditions, not zero only where they cannot hold."""
    well_posed: Any
    """(…) bool (1 or 0 inside programs and from kernels): are the forces unique?"""
    pivot: Any
    """(…): the smallest scaled pivot of L, 0 where rows depend on each other, at most 1."""


def answered(result: Any, args: Any, kwargs: Any) -> Any:
    """The flags as truth values; a single state whose closures are redundant is refused."""
    result = result._replace(well_posed=np.asarray(result.well_posed) > 0)
    if result.well_posed.ndim == 0 and not result.well_posed and kwargs.get("strict", True):
        raise SingularError(
            "the closures are redundant or singular at this state (smallest scaled pivot "
            f"{result.pivot:.1e}), so their forces are not unique; leave more free, or pass "
            "strict=False to have one of the solutions and its residual"
        )
    return result


@program(static=("loops",), shapes=SHAPES, joint_space=True, verify=answered)
def closed_chain_dynamics(
    robot: Robot,
    loops: Any,
    q: Any,
    v: Any,
    tau: Any,
    *,
    external: Any = None,
    stabilisation: Any = None,
    strict: bool = True,
) -> ClosedChainSolution:
    """Accelerations and loop forces of closed chains, each loop a cut joint ([SOA] 5.3, (5.11)).

    `loops` is a list of `pp.Loop`, which may share bodies, on fixed or moving bases. The open tree
    is robot; (e*D⁻¹e) λ = bias − e*D⁻¹ε, β̇ = W*D⁻¹(ε + eλ). Where rows depend on each other
    (`well_posed` false) one solution is given: accelerations are right if `residual` is zero,
    forces are one choice of many; a single state raises unless `strict=False` (kernels and calls
    inside programs only tell). `stabilisation` is
    Baumgarte's rate g [1/s]: bias − 2g Q*Δ − g² Q*e. Cost O(N) for each of the m rows, and O(m³).
    """
    check_closures(robot, loops, Loop)
    x = cut(robot, loops, q, v)
    qdd, lam, left, pivot = solved(robot, x, q, v, tau, external, stabilisation)
    return ClosedChainSolution(qdd, wrenches(x.forces(lam)), left, pivot.regular, pivot.smallest)


def solved(
    robot: Robot, x: Cut, q: Any, v: Any, tau: Any, external: Any, stabilisation: Any
) -> tuple[Any, Any, Any, SemiPivot]:
    """β̇, λ, the residual Lλ − rhs, and L factored."""
    epsilon = compute(W @ (T - C), robot, q, v, T=tau, external=external)
    e = Whitened(robot, q, x.frames, x.N)
    wanted = x.wanted(stabilisation) - e.against(epsilon)
    L = SemiPivot(e.gram)
    lam = L.solve(wanted)
    qdd = response(robot, q, epsilon + e.innovations(lam))
    return qdd, lam, L.matrix @ lam - wanted, L


# ---- closing loops ------------------------------------------------------------------------------


class LoopOpening(NamedTuple):
    """How far loops are open, row by row of what they transmit, loop after loop."""

    error: Any
    """(…, rows) [rad, m]: Q*e."""
    rate: Any
    """(…, rows) [rad/s, m/s]: Q*Δ."""


@program(static=("loops",), joint_space=True)
def loop_opening(robot: Robot, loops: Any, q: Any, v: Any) -> LoopOpening:
    """How far loops are open and how fast they open, all zero where they are closed. Cost O(N)."""
    check_closures(robot, loops, Closure)
    x = cut(robot, loops, q, v)
    return LoopOpening(x.error, x.rate)


class Assembled(NamedTuple):
    """What `close_loops` returns."""

    q: Any
    v: Any
    error: Any
    """(…) [rad, m]: the largest opening that is left."""


@program(static=("loops",), joint_space=True)
def close_loops(robot: Robot, loops: Any, q: Any, v: Any, *, iterations: int = 50) -> Assembled:
    """A state near by with all loops closed: Newton steps −𝓜⁻¹J*N L⁻¹ Q*e on the manifold, none
    longer than 1 rad or m, and the velocity less its part that opens them, both the least in the
    sense of kinetic energy: light bodies move most, an object that floats too (lock what shall
    stay, `Robot.locked`).

    Where loops cannot be closed from here `error` stays. Cost O(N m) and O(m³) per iteration.
    """
    check_closures(robot, loops, Closure)
    if iterations < 1:
        raise ValueError(f"close_loops: iterations is {iterations}, needs at least 1")
    still = np.zeros(robot.nv)

    def newton(q: Any, _: Any) -> tuple[Any, Any]:
        x = cut(robot, loops, q, still)
        e = Whitened(robot, q, x.frames, x.N)
        step = response(robot, q, e.innovations(SemiPivot(e.gram).solve(-x.error)))
        largest = np.max(np.abs(lift(step)))
        return robot.integrate(q, step / np.maximum(1.0, largest)), largest

    q, _ = repeat(iterations, newton, q)
    left = np.max(np.abs(lift(cut(robot, loops, q, still).error)))
    return Assembled(q, capture(robot, loops, q, v).v, left)


class Captured(NamedTuple):
    """What `capture` returns."""

    v: Any
    """(…, nv) [rad/s or m/s], after."""
    impulses: Any
    """(…, closures, 6) [N·m·s, N·s]: on frame a of each closure, in its axes."""
    well_posed: Any
    """(…) bool: are the impulses unique?"""
    pivot: Any
    """(…): the smallest scaled pivot of L."""


@program(static=("closures",), shapes={"restitution": ()}, joint_space=True, verify=answered)
def capture(
    robot: Robot,
    closures: Any,
    q: Any,
    v: Any,
    *,
    restitution: Any = None,
    strict: bool = True,
) -> Captured:
    """The velocities after frames catch or hit each other: β⁺ = β − (1 + c) 𝓜⁻¹J*N L⁻¹ Q*Δ.

    `closures` is a list of `pp.Loop` or `pp.Grasp`: a weld catches, a contact hits. The restitution
    c is 0 (default) where they stay together, 1 where no energy is lost. Momentum is kept, but for
    closures to the world. Cost O(N) for each of the m rows, and O(m³).
    """
    check_closures(robot, closures, Closure)
    x = cut(robot, closures, q, v)
    e = Whitened(robot, q, x.frames, x.N)
    L = SemiPivot(e.gram)
    lam = L.solve(-x.rate if restitution is None else -(1.0 + restitution) * x.rate)
    after = v + response(robot, q, e.innovations(lam))
    return Captured(after, wrenches(x.forces(lam)), L.regular, L.smallest)


@program(static=("closures", "frames"), joint_space=True, verify=exists(2, LOCKED))
def effective_inertia(robot: Robot, closures: Any, q: Any, frames: Any) -> Any:
    """The inertia felt at frames of a robot with loops, or of an object that is held ([SOA] 6):
    (Υ − Υ_c* L⁻¹ Υ_c)⁻¹ with Υ = J𝓜⁻¹J* of the frames and Υ_c = N*J𝓜⁻¹J* what they do to the
    closures; for arms apart, M_o + Σ φΛ_aφ*.

    Returns (…, 6n, 6n) [kg, kg·m, kg·m²], in the frames' axes; NaN where the closures leave the
    frames less than free (a single state raises). Cost O(N) for each row, and O(m³).
    """
    check_closures(robot, closures, Closure)
    names = as_names(frames)
    x = cut(robot, closures, q, np.zeros(robot.nv))
    m, n = x.N.shape[1], 6 * len(names)
    rows = np.zeros((6 * len(x.frames) + n, m + n), object)
    rows[:-n, :m], rows[-n:, m:] = x.N, np.eye(n)
    gram = Whitened(robot, q, (*x.frames, *names), rows).gram
    pivot = SemiPivot(gram)
    free = reduce(np.logical_and, pivot.regular_rows[m:])
    return where(free, inverse_block(pivot, n), np.nan)
