"""The plant: limits of motors, springs, stops and closures of a simulated robot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from types import NoneType
from typing import TypeAlias

import numpy as np

from phipsi.algorithms import (
    forward_dynamics,
    hybrid_dynamics,
    passive_forces,
    spring_forces,
)
from phipsi.algorithms.constraints import solved
from phipsi.algorithms.cut import check_closures, cut
from phipsi.algorithms.newton_euler import stretched
from phipsi.algorithms.springs import SoftRows, check_springs, softened_springs
from phipsi.arguments import as_list
from phipsi.compile import as_number, lift, linalg, where
from phipsi.model import Closure, Hinge, Robot, Spring
from phipsi.programs import program
from phipsi.simulation.clock import Number, Seconds
from phipsi.typing import (
    Configuration,
    ConfigurationLike,
    ExternalForces,
    JointVector,
    JointVectorLike,
)


@dataclass(frozen=True)
class Limits:
    """Stops at joint limits as smooth springs and dampers, which push a joint back from beyond."""

    stiffness: float = 1e4
    """[N·m/rad or N/m]."""
    damping: float = 1e2
    """[N·m·s/rad or N·s/m]."""
    width: float = 1e-2
    """How far beyond the limit [rad or m] stiffness and damping have grown from zero to these."""

    def __post_init__(self) -> None:
        for name in ("stiffness", "damping", "width"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and 0 <= value < inf):
                raise ValueError(f"Limits: {name} is {value!r}, needs a finite number ≥ 0")
        if self.width == 0:
            raise ValueError("Limits: width is 0, needs a positive number")

    def forces(self, robot: Robot, q: Configuration, v: JointVector) -> JointVector:
        """Joint forces of the stops: (∂q̇/∂v)*(−k s(d) − b s'(d) q̇), d the depth beyond the limit.

        s(d) is zero within the limits and its slope rises to one over the width.

        Parameters
        ----------
        robot
            The robot.
        q : (nq,)
            Configuration.
        v : (nv,)
            Joint velocities [rad/s or m/s].

        Returns
        -------
        (nv,)
            Joint forces [N·m or N].
        """
        lower, upper = robot.joint_data("lower"), robot.joint_data("upper")
        over = np.where(np.isfinite(upper), lift(q) - upper, 0.0)
        under = np.where(np.isfinite(lower), lower - lift(q), 0.0)
        rate, push = robot.flow(q, v), np.zeros(robot.nq)
        for depth, sign in ((over, -1.0), (under, 1.0)):
            slope = linalg.clip(depth / self.width, 0.0, 1.0)
            travel = depth - 0.5 * self.width * slope
            push = push + slope * (sign * self.stiffness * travel - self.damping * rate)
        return np.array([push @ robot.flow(q, unit) for unit in np.eye(robot.nv)])


@program(static=("limits",))
def limit_forces(
    robot: Robot, q: ConfigurationLike, v: JointVectorLike, limits: Limits | None = None
) -> JointVector:
    """Joint forces of stops at the limits of joints: zero within the limits.

    Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    limits : optional
        Stiffness and damping of the stops; default `pp.Limits()`.

    Returns
    -------
    (…, nv)
        Joint forces [N·m or N].

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.puma560()
    >>> q = robot.neutral()
    >>> bool(pp.limit_forces(robot, q, 0 * q).any())
    False
    """
    if not isinstance(limits, (Limits, NoneType)):
        raise TypeError(f"limit_forces: limits is {limits!r}, needs pp.Limits(...)")
    return (limits or Limits()).forces(robot, np.asanyarray(q), np.asanyarray(v))


@dataclass(frozen=True)
class Plant:
    """The forces and constraints that act besides the controller's; a constant of the trace."""

    passive: bool = True
    limits: Limits | None = None
    actuators: bool = True
    closures: tuple[Closure, ...] = ()
    stabilisation: float = 0.0
    """The rate at which errors of the closures decay [1/s]."""
    springs: tuple[Spring, ...] = ()

    def check(self, robot: Robot, locking: bool) -> None:
        """Refuse closures that the robot cannot have; `locking`: some hinge becomes locked."""
        if not isfinite(self.stabilisation) or self.stabilisation < 0:
            raise ValueError(f"stabilisation is {self.stabilisation}, needs a number ≥ 0 [1/s]")
        check_springs(robot, self.springs)
        if self.closures:
            check_closures(robot, self.closures, Closure)
            if locking:
                raise ValueError(
                    "a locked hinge and closures at the same time cannot be simulated; lock it in "
                    "the model instead, robot.locked([name], q)"
                )

    def motors(self, robot: Robot, tau: JointVector, active: JointVector) -> JointVector:
        """The joint forces of motors and thrusters that are commanded tau: bounded by their
        efforts, and zero where not active."""
        if self.actuators:
            effort = robot.joint_data("effort")
            tau = np.where(np.isfinite(effort), linalg.clip(tau, -effort, effort), tau)
        floating = robot.mask(*(h.name for h in robot.hinges if h.kind.name == "free"))
        return np.where(floating, lift(tau), where(active, tau, 0.0))

    def loads(self, robot: Robot, q: Configuration, v: JointVector) -> JointVector:
        """The joint forces of springs, dampers, friction and stops."""
        own = passive_forces(robot, q, v) if self.passive else np.zeros(robot.nv)
        if self.springs:
            own = own + spring_forces(robot, self.springs, q, v)
        return own if self.limits is None else own + self.limits.forces(robot, q, v)

    def accelerate(
        self, robot: Robot, q: Configuration, v: JointVector, tau: JointVector,
        external: ExternalForces | None, locked: JointVector | None, soft: SoftRows | None = None,
    ) -> JointVector:  # fmt: skip
        """β̇ under joint forces tau and external forces; zero where locked. The inertia of `soft` is
        added to the mass matrix."""
        x = cut(robot, self.closures, q, v) if self.closures else None
        compliance = None
        if soft is not None:
            x, compliance = soft.beside(x)
        if x is not None:
            return solved(robot, x, q, v, tau, external, self.stabilisation, compliance)[0]
        if locked is not None:
            still = np.zeros(robot.nv)
            return hybrid_dynamics(robot, q, v, tau, still, locked, external=external).qdd
        return forward_dynamics(robot, q, v, tau, external=external)


Command: TypeAlias = Callable[
    [Seconds, Configuration, JointVector], tuple[JointVector, ExternalForces | None]
]
"""(t, q, v) → the forces of the motors, and external forces by frame."""


@dataclass(frozen=True)
class ControlledRobot:
    """A robot with its plant and its controller inside a trace, as integrators see it."""

    robot: Robot
    plant: Plant
    command: Command
    locked: JointVector | None = None
    soft: SoftRows | None = None
    """Springs between points that a linearly implicit step sees."""

    def forces(
        self, t: Seconds, q: Configuration, v: JointVector
    ) -> tuple[JointVector, ExternalForces | None]:
        """All joint forces, and the external forces."""
        tau, external = self.command(t, q, v)
        return tau + self.plant.loads(self.robot, q, v), external

    def accelerate(self, t: Seconds, q: Configuration, v: JointVector) -> JointVector:
        """β̇ in the state (q, v)."""
        tau, external = self.forces(t, q, v)
        return self.plant.accelerate(self.robot, q, v, tau, external, self.locked, self.soft)

    def softened(self, dt: Seconds, q: Configuration, v: JointVector) -> ControlledRobot:
        """The robot for a linearly implicit step, whose springs, dampers and friction act as they
        will at its end, to first order."""
        system = self._soft_hinges(dt, q, v) if self.plant.passive else self
        if not self.plant.springs:
            return system
        more, soft = softened_springs(self.robot, self.plant.springs, q, v, dt)
        return replace(system._pushed(more), soft=soft)

    def _soft_hinges(self, dt: Seconds, q: Configuration, v: JointVector) -> ControlledRobot:
        """Armature A + hB + h²S, force −B v − (dlog_u)*Kδ − hS v with the stiffness
        S = (dlog_u)*K dlog_u, a block for each hinge."""
        robot = self.robot
        u, _ = stretched(robot, q)
        play = 0.5 * robot.joint_data("backlash")
        K = where(np.abs(u) >= play, robot.joint_data("stiffness"), 0.0)
        speed = robot.joint_data("friction_speed")
        rub = robot.joint_data("friction") / speed * (1.0 - np.tanh(v / speed) ** 2)
        diagonal = robot.joint_data("armature") + dt * (robot.joint_data("damping") + rub)

        def stiffness(x: JointVector) -> JointVector:
            """S x"""
            return robot.difference_force(u, K * robot.difference_rate(u, x))

        place = [i for h in robot.hinges for i in range(h.kind.nv)]
        columns = [stiffness(np.equal(place, i) * 1.0) for i in range(max(place, default=-1) + 1)]

        def stiffened(h: Hinge) -> Hinge:
            S = [dt * dt * column[h.v] for column in columns[: h.kind.nv]]
            if h.kind.group:
                return replace(h, armature=np.diag(diagonal[h.v]) + np.stack(S, axis=1))
            return replace(h, armature=diagonal[h.v] + [column[i] for i, column in enumerate(S)])

        stiff = replace(robot, hinges=tuple(map(stiffened, robot.hinges)))
        return replace(self._pushed(-dt * stiffness(v)), robot=stiff)

    def _pushed(self, more: JointVector) -> ControlledRobot:
        """The robot with further joint forces."""

        def command(
            t: Seconds, q: Configuration, v: JointVector
        ) -> tuple[JointVector, ExternalForces | None]:
            tau, external = self.command(t, q, v)
            return tau + more, external

        return replace(self, command=command)


def plant_of(
    passive: bool,
    limits: bool | Limits | None,
    actuators: bool,
    closures: Sequence[Closure],
    stabilisation: Number,
    springs: Sequence[Spring],
) -> Plant:
    """The plant of these options, which are checked."""
    if not isinstance(limits, (bool, Limits, NoneType)):
        raise TypeError(f"limits is {limits!r}, needs True, False or pp.Limits(...)")
    if isinstance(closures, Closure):
        raise TypeError("closures is one closure, needs a list of them")
    if isinstance(springs, Spring):
        raise TypeError("springs is one spring, needs a list of them")
    stops = Limits() if limits is True else (limits or None)
    loops, coils = as_list("closures", closures), as_list("springs", springs)
    rate = as_number("stabilisation", stabilisation)
    return Plant(passive, stops, actuators, tuple(loops), rate, tuple(coils))
