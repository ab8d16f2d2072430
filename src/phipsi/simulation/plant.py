"""What moves a simulated robot: its controller, its motors' limits, springs, stops and closures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from numbers import Real
from typing import Any

import numpy as np

from phipsi.algorithms import forward_dynamics, hybrid_dynamics, passive_forces
from phipsi.algorithms.constraints import solved
from phipsi.algorithms.cut import check_closures, cut
from phipsi.compile import lift, linalg, where
from phipsi.model import Closure, Robot
from phipsi.programs import program
from phipsi.simulation.clock import Number


@dataclass(frozen=True)
class Limits:
    """Joint limits as smooth springs: beyond a limit a joint is pushed back by
    `stiffness` [N·m/rad or N/m] and `damping` [N·m·s/rad or N·s/m], which grow from zero within
    `width` [rad or m]."""

    stiffness: float = 1e4
    damping: float = 1e2
    width: float = 1e-2

    def __post_init__(self) -> None:
        for name in ("stiffness", "damping", "width"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and 0 <= value < inf):
                raise ValueError(f"Limits: {name} is {value!r}, needs a finite number ≥ 0")
        if self.width == 0:
            raise ValueError("Limits: width is 0, needs a positive number")

    def forces(self, robot: Robot, q: Any, v: Any) -> Any:
        """(∂q̇/∂v)*(−k s(depth) − b s'(depth) q̇), s rising from 0 to the depth within the width,
        (nv,)."""
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
def limit_forces(robot: Robot, q: Any, v: Any, limits: Any = None) -> Any:
    """The joint forces of stops at the limits of joints (`pp.Limits`): zero within them.

    Returns (…, nv) [N·m or N]. Cost O(N).
    """
    return (limits or Limits()).forces(robot, q, v)


@dataclass(frozen=True)
class Plant:
    """Which forces and constraints act besides the controller's; a constant of the trace."""

    passive: bool = True
    limits: Limits | None = None
    actuators: bool = True
    closures: tuple[Closure, ...] = ()
    stabilisation: float = 0.0

    def check(self, robot: Robot, locking: bool) -> None:
        """Refuse what cannot be simulated."""
        if not isfinite(self.stabilisation) or self.stabilisation < 0:
            raise ValueError(f"stabilisation is {self.stabilisation}, needs a number ≥ 0 [1/s]")
        if self.closures:
            check_closures(robot, self.closures, Closure)
            if locking:
                raise ValueError(
                    "a locked hinge and closures at the same time cannot be simulated; lock it in "
                    "the model instead, robot.locked([name], q)"
                )

    def motors(self, robot: Robot, tau: Any, active: Any) -> Any:
        """The joint forces that motors and thrusters give when told to give tau."""
        if self.actuators:
            effort = robot.joint_data("effort")
            tau = np.where(np.isfinite(effort), linalg.clip(tau, -effort, effort), tau)
        floating = robot.mask(*(h.name for h in robot.hinges if h.kind.name == "free"))
        return np.where(floating, lift(tau), where(active, tau, 0.0))

    def loads(self, robot: Robot, q: Any, v: Any) -> Any:
        """The joint forces of springs, dampers, friction and stops."""
        own = passive_forces(robot, q, v) if self.passive else np.zeros(robot.nv)
        return own if self.limits is None else own + self.limits.forces(robot, q, v)

    def accelerate(self, robot: Robot, q: Any, v: Any, tau: Any, external: Any, locked: Any) -> Any:
        """β̇ by all joint forces tau and external ones; zero where locked."""
        if self.closures:
            x = cut(robot, self.closures, q, v)
            return solved(robot, x, q, v, tau, external, self.stabilisation)[0]
        if locked is not None:
            still = np.zeros(robot.nv)
            return hybrid_dynamics(robot, q, v, tau, still, locked, external=external).qdd
        return forward_dynamics(robot, q, v, tau, external=external)


@dataclass(frozen=True)
class ControlledRobot:
    """A robot with its plant and its controller, inside a trace: its forces and accelerations."""

    robot: Robot
    plant: Plant
    command: Callable[[Any, Any, Any], tuple[Any, Mapping[str, Any] | None]]
    """(t, q, v) → the motors' forces and the external ones."""
    locked: Any = None

    def forces(self, t: Any, q: Any, v: Any) -> tuple[Any, Any]:
        """All joint forces, and the external ones."""
        tau, external = self.command(t, q, v)
        return tau + self.plant.loads(self.robot, q, v), external

    def accelerate(self, t: Any, q: Any, v: Any) -> Any:
        """β̇."""
        return self.plant.accelerate(self.robot, q, v, *self.forces(t, q, v), self.locked)

    def softened(self, dt: Any, q: Any, v: Any) -> ControlledRobot:
        """The robot with springs and dampers taken at the end of a step, to first order:
        armature A + hB + h²K, force −B v − K(δ + h v) (theory of linearly implicit steps)."""
        if not self.plant.passive:
            return self
        robot = self.robot
        play = 0.5 * robot.joint_data("backlash")
        travel = robot.difference(robot.joint_data("rest"), q)
        K = where(np.abs(travel) >= play, robot.joint_data("stiffness"), 0.0)
        speed = robot.joint_data("friction_speed")
        rub = robot.joint_data("friction") / speed * (1.0 - np.tanh(v / speed) ** 2)
        B = robot.joint_data("damping") + rub
        armature = robot.joint_data("armature") + dt * B + dt * dt * K
        stiff = robot.with_parameters({f"armature:{h.name}": armature[h.v] for h in robot.hinges})

        def command(t: Any, q: Any, v: Any) -> tuple[Any, Any]:
            tau, external = self.command(t, q, v)
            return tau - dt * K * v, external

        return replace(self, robot=stiff, command=command)


def plant_of(
    passive: bool,
    limits: bool | Limits,
    actuators: bool,
    closures: Sequence[Closure],
    stabilisation: Number,
) -> Plant:
    """What acts besides the controller, checked."""
    if not isinstance(limits, (bool, Limits)):
        raise TypeError(f"limits is {limits!r}, needs True, False or pp.Limits(...)")
    if isinstance(closures, Closure):
        raise TypeError("closures is one closure, needs a list of them")
    if not isinstance(stabilisation, Real):
        raise TypeError(f"stabilisation is {stabilisation!r}, needs a number ≥ 0 [1/s]")
    stops = Limits() if limits is True else (limits or None)
    return Plant(passive, stops, actuators, tuple(closures), float(stabilisation))
