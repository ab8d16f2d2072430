"""In which coordinates a motion is integrated; all give the same motion.

Each has the robot whose configuration x is, how a joint state becomes (x, w) and back, and the
tangent of x and the rate of w.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np

from phipsi.algorithms import (
    decoupled_forward_dynamics,
    diagonal_forward_dynamics,
    joint_rates,
    minimal_state,
    poses,
    total_rates,
    velocities,
)
from phipsi.conventions import WORLD
from phipsi.model import Builder, Robot
from phipsi.simulation.plant import ControlledRobot


class Minimal:
    """Joint coordinates q and rates β."""

    def space(self, robot: Robot) -> Robot:
        """The robot whose configuration x is."""
        return robot

    def enter(self, robot: Robot, q: Any, v: Any) -> tuple[Any, Any]:
        """(x, w) of a joint state."""
        return q, v

    def leave(self, robot: Robot, x: Any, w: Any, q: Any) -> tuple[Any, Any]:
        """The joint state of (x, w), near q."""
        return x, w

    def change(self, system: ControlledRobot, t: Any, x: Any, w: Any) -> tuple[Any, Any]:
        """The tangent of x, and ẇ."""
        return w, system.accelerate(t, x, w)


class Diagonal(Minimal):
    """Joint coordinates q and total rates ν = m*β, of which the mass matrix is one
    ([DL] Alg 8.1)."""

    def enter(self, robot: Robot, q: Any, v: Any) -> tuple[Any, Any]:
        """(q, m*β)"""
        return q, total_rates(robot, q, v)

    def leave(self, robot: Robot, x: Any, w: Any, q: Any) -> tuple[Any, Any]:
        """(q, ℓ*ν)"""
        return x, joint_rates(robot, x, w)

    def change(self, system: ControlledRobot, t: Any, x: Any, w: Any) -> tuple[Any, Any]:
        """β = ℓ*ν and ν̇ = ℓT − C_ν"""
        v = joint_rates(system.robot, x, w)
        tau, external = system.forces(t, x, v)
        return v, diagonal_forward_dynamics(system.robot, x, w, tau, external=external)


class NonMinimal(Minimal):
    """A pose and a velocity of every body, put back onto the hinges after each step
    ([BI] Alg 3.4)."""

    def space(self, robot: Robot) -> Robot:
        """The bodies, each on a free hinge of its own; what they weigh plays no part."""
        return _apart(tuple(body.name for body in robot.bodies))

    def enter(self, robot: Robot, q: Any, v: Any) -> tuple[Any, Any]:
        """X = φ(q) and V = φ*H*β of every body, as a state of free bodies"""
        return minimal_state(self.space(robot), poses(robot, q), velocities(robot, q, v))

    def leave(self, robot: Robot, x: Any, w: Any, q: Any) -> tuple[Any, Any]:
        """The nearest joint state, its angles without whole turns from q"""
        at, v = minimal_state(robot, poses(self.space(robot), x), w.reshape(robot.nb, 6))
        turns = np.floor((q - at) / (2.0 * np.pi) + 0.5) * (2.0 * np.pi)
        angles = [a for h in robot.hinges for a in h.kind.angles or (False,) * h.kind.nq]
        return np.where(angles, at + turns, at), v

    def change(self, system: ControlledRobot, t: Any, x: Any, w: Any) -> tuple[Any, Any]:
        """V and α of every body from its own state and its neighbours' messages"""
        robot, V = system.robot, w.reshape(system.robot.nb, 6)
        X = poses(self.space(robot), x)
        tau, external = system.forces(t, *minimal_state(robot, X, V))
        alpha = decoupled_forward_dynamics(robot, X, V, tau, external=external)
        return w, alpha.reshape(-1)


@lru_cache(maxsize=8)
def _apart(names: tuple[str, ...]) -> Robot:
    apart = Builder("apart")
    for name in names:
        apart.body(name, mass=1.0, inertia=(1.0, 1.0, 1.0)).hinge(name, "free", WORLD, name)
    return apart.build()


CoordinatesName = Literal["minimal", "diagonal", "non-minimal"]
COORDINATES = {"minimal": Minimal(), "diagonal": Diagonal(), "non-minimal": NonMinimal()}
