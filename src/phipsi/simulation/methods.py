"""Fixed steps as data: one row for each method, with its tableau or the weights of its substeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Literal, TypeAlias, TypeVar

import numpy as np

from phipsi.algorithms import bias_force, mass_matrix_product, mass_matrix_solve, passive_rates
from phipsi.compile import repeat
from phipsi.model import Robot
from phipsi.operators import beta, mass_dot
from phipsi.operators.lowering.compute import compute
from phipsi.simulation.clock import Seconds
from phipsi.simulation.coordinates import Minimal
from phipsi.simulation.plant import ControlledRobot
from phipsi.typing import Array, Configuration, JointVector


@dataclass(frozen=True)
class Tableau:
    """An explicit Runge-Kutta method: u_i = h Σ a_ij k_j, u = h Σ b_j k_j."""

    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.b)


MIDPOINT = Tableau(((), (1 / 2,)), (0.0, 1.0))
CLASSICAL = Tableau(((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6))
SUZUKI = 1.0 / (4.0 - 4.0 ** (1.0 / 3.0))

FixedStepMethod = Literal[
    "euler", "implicit", "midpoint", "rk4", "rk4-mk", "preserving", "preserving4"
]
State: TypeAlias = tuple[Array, ...]
"""(q, v), or with the momentum (q, v, p)."""
Step: TypeAlias = Callable[..., State]
Zero = TypeVar("Zero", Array, float)


@dataclass(frozen=True)
class Method:
    """A row of the table. `step(system, coordinates, t, h, q, v[, p])` gives the next q, v[, p]."""

    name: FixedStepMethod
    order: int
    meaning: str
    step: Step
    carries_momentum: bool = False
    """Is there a momentum p (nv,) besides q and v, each in the frame its hinge turns in?"""
    any_coordinates: bool = False


# ---- explicit Runge-Kutta -----------------------------------------------------------------------


class Embedded:
    """q as plain numbers: k = q̇, stages q + u, quaternions made unit at the end of the step."""

    def move(self, space: Robot, x: Array, u: Array) -> Array:
        """x + u"""
        return x + u

    def slope(self, space: Robot, x: Array, u: Array, tangent: Array) -> Array:
        """q̇ of a tangent"""
        return space.flow(x, tangent)

    def land(self, space: Robot, x: Array, u: Array) -> Array:
        """x + u, quaternions unit"""
        return space.integrate(x + u, np.zeros(space.nv))


class Group(Embedded):
    """q on the group of its hinges: q exp(u), k = dexp⁻¹(u) tangent (Munthe-Kaas)."""

    def move(self, space: Robot, x: Array, u: Array) -> Array:
        """x exp(u)"""
        return space.integrate(x, u)

    def slope(self, space: Robot, x: Array, u: Array, tangent: Array) -> Array:
        """u̇ = w + ½[u, w] + [u, [u, w]]/12, to fourth order"""
        once = space.bracket(u, tangent)
        return tangent + once / 2.0 + space.bracket(u, once) / 12.0

    land = move


def runge(tableau: Tableau, chart: Embedded) -> Step:
    """The step of a tableau."""

    def step(
        system: ControlledRobot, coordinates: Minimal, t: Seconds, h: Seconds,
        q: Configuration, v: JointVector,
    ) -> State:  # fmt: skip
        space = coordinates.space(system.robot)
        x, w = coordinates.enter(system.robot, q, v)
        still = np.zeros(len(x) if type(chart) is Embedded else space.nv)
        slopes: list[Array] = []
        rates: list[Array] = []
        for row in tableau.a:
            u, rise = _sum(h, row, slopes, still), _sum(h, row, rates, 0.0)
            stage = chart.move(space, x, u)
            tangent, rate = coordinates.change(system, t + sum(row) * h, stage, w + rise)
            slopes.append(chart.slope(space, stage, u, tangent))
            rates.append(rate)
        x = chart.land(space, x, _sum(h, tableau.b, slopes, still))
        return coordinates.leave(system.robot, x, w + _sum(h, tableau.b, rates, 0.0), q)

    return step


def _sum(h: Seconds, weights: Sequence[float], terms: Sequence[Array], zero: Zero) -> Array | Zero:
    return sum((h * b * k for b, k in zip(weights, terms, strict=False) if b), zero)


# ---- semi-implicit Euler ------------------------------------------------------------------------


def euler(
    system: ControlledRobot, coordinates: Minimal, t: Seconds, h: Seconds,
    q: Configuration, v: JointVector,
) -> State:  # fmt: skip
    """v⁺ = v + hβ̇, then q⁺ = q exp(hv⁺)"""
    v = v + h * system.accelerate(t, q, v)
    return system.robot.integrate(q, h * v), v


def implicit(
    system: ControlledRobot, coordinates: Minimal, t: Seconds, h: Seconds,
    q: Configuration, v: JointVector,
) -> State:  # fmt: skip
    """The same with springs and dampers taken at the end of the step, to first order"""
    return euler(system.softened(h, q, v), coordinates, t, h, q, v)


# ---- variational --------------------------------------------------------------------------------

ROUNDS = 12
"""Rounds of the fixed point of a variational step; each gains a factor of some h·|β|."""
TERMS = 10
"""Of the series of dexp."""


def preserving(weights: tuple[float, ...]) -> Step:
    """Substeps of the variational midpoint rule, of h times the weights.

    The discrete Lagrangian h T(q exp(u/2), u/h), u = hβ, gives in the momenta p = 𝓜β

        p_m = dexp*(u) p + h/2 dexp*(u/2) g,   𝓜(q_m)β = p_m,   p⁺ = Ad*(u) p + h Ad*(u/2) g

    with g = 𝓜̇β − ad*_β p − C + T, the force that changes momenta. Each p as it stands in the frame
    its hinge turns in only adds the impulse hg: that of a free base is the momentum of the whole
    about the origin of the world, which nothing changes but forces from outside.
    """

    def step(
        system: ControlledRobot, coordinates: Minimal, t: Seconds, h: Seconds,
        q: Configuration, v: JointVector, p: JointVector,
    ) -> State:  # fmt: skip
        def substep(
            state: tuple[Seconds, Array, Array, Array], part: Array
        ) -> tuple[tuple[Seconds, Array, Array, Array], Array]:
            t, q, v, p = state
            q, v, p = _variational(system, t, part * h, q, v, p)
            return (t + part * h, q, v, p), np.zeros(1)

        if len(weights) == 1:
            return _variational(system, t, h, q, v, p)
        (_, q, v, p), _ = repeat(len(weights), substep, (t, q, v, p), np.array(weights))
        return q, v, p

    return step


def _variational(
    system: ControlledRobot, t: Seconds, h: Seconds,
    q: Configuration, v: JointVector, p: JointVector,
) -> tuple[Configuration, JointVector, JointVector]:  # fmt: skip
    robot, here = system.robot, system.robot.outboard(q, p)

    def meet(rate: JointVector, _: Array) -> tuple[JointVector, Array]:
        middle, g = _impulse(system, t + h / 2, robot.integrate(q, h / 2 * rate), rate)
        there = _dexp(robot, h * rate, here) + h / 2 * _dexp(robot, h / 2 * rate, g)
        return rates_of(system, middle, there), np.zeros(1)

    rate, _ = repeat(ROUNDS, meet, v)
    middle, g = _impulse(system, t + h / 2, robot.integrate(q, h / 2 * rate), rate)
    q, p = robot.integrate(q, h * rate), p + h * robot.inboard(middle, g)
    return q, rates_of(system, q, robot.outboard(q, p)), p


def _impulse(
    system: ControlledRobot, t: Seconds, q: Configuration, v: JointVector
) -> tuple[Configuration, JointVector]:
    """q, and g = 𝓜̇β − ad*_β p − C + T; of a free base what comes from outside alone."""
    robot = system.robot
    tau, external = system.forces(t, q, v)
    swing = compute(mass_dot @ beta, robot, q, v)
    swing = swing - robot.coadjoint(v, mass_matrix_product(robot, q, v))
    inner = swing - bias_force(robot, q, v, external=external)
    outer = -bias_force(robot, q, np.zeros(robot.nv), external=external)
    return q, np.where(floating_roots(robot), outer, inner) + tau


def floating_roots(robot: Robot) -> JointVector:
    """Which freedoms are those of bases that float, (nv,). One with armature is no such base: its
    rotors stand still in the world."""
    roots = (h for h, parent in zip(robot.hinges, robot.parents, strict=True) if parent < 0)
    return robot.mask(*(h.name for h in roots if h.kind.name == "free" and not np.any(h.armature)))


def rates_of(system: ControlledRobot, q: Configuration, p: JointVector) -> JointVector:
    """β with 𝓜β = p; zero where locked, whatever p is there."""
    if system.locked is None:
        return mass_matrix_solve(system.robot, q, p)
    return passive_rates(system.robot, q, np.zeros(system.robot.nv), system.locked, p)


def _dexp(robot: Robot, u: JointVector, p: JointVector) -> JointVector:
    """dexp*(u) p = Σ (ad*_u)ᵏ p / (k+1)!"""
    out = term = p
    for k in range(1, TERMS):
        term = robot.coadjoint(u, term)
        out = out + term / float(factorial(k + 1))
    return out


METHODS: dict[str, Method] = {
    row.name: row
    for row in (
        Method("euler", 1, "semi-implicit Euler", euler),
        Method("implicit", 1, "the same, springs and dampers linearly implicit", implicit),
        Method(
            "midpoint", 2, "explicit midpoint, on the group of the hinges",
            runge(MIDPOINT, Group()), any_coordinates=True,
        ),
        Method(
            "rk4", 4, "the classical Runge-Kutta method, quaternions made unit after each step",
            runge(CLASSICAL, Embedded()), any_coordinates=True,
        ),
        Method(
            "rk4-mk", 4, "its Munthe-Kaas form, on the group of the hinges",
            runge(CLASSICAL, Group()), any_coordinates=True,
        ),
        Method(
            "preserving", 2, "variational: momentum exact, energy bounded",
            preserving((1.0,)), carries_momentum=True,
        ),
        Method(
            "preserving4", 4, "the same, five substeps of Suzuki's",
            preserving((SUZUKI, SUZUKI, 1.0 - 4.0 * SUZUKI, SUZUKI, SUZUKI)),
            carries_momentum=True,
        ),
    )
}  # fmt: skip
"""Every fixed-step method by name."""
