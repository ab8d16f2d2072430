"""The coordinates in which a motion is integrated; all give the same motion.

Each class has the robot whose configuration is x and whose velocities are w, the maps from a joint
state (q, v) to (x, w) and back, and the rate of change of (x, w).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

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
from phipsi.simulation.clock import Seconds
from phipsi.simulation.plant import ControlledRobot
from phipsi.typing import Array, Configuration, JointVector


class Minimal:
    """Joint coordinates q and rates β."""

    def space(self, robot: Robot) -> Robot:
        """The robot whose configuration is x."""
        return robot

    def enter(self, robot: Robot, q: Configuration, v: JointVector) -> tuple[Array, Array]:
        """(x, w) of a joint state."""
        return q, v

    def leave(
        self, robot: Robot, x: Array, w: Array, q: Configuration
    ) -> tuple[Configuration, JointVector]:
        """The joint state of (x, w), near q."""
        return x, w

    def change(
        self, system: ControlledRobot, t: Seconds, x: Array, w: Array
    ) -> tuple[Array, Array]:
        """The velocity of x in its tangent space, and ẇ."""
        return w, system.accelerate(t, x, w)


class Diagonal(Minimal):
    """Joint coordinates q and total rates ν = m*β, whose mass matrix is the identity
    ([DL] Alg 8.1)."""

    def enter(self, robot: Robot, q: Configuration, v: JointVector) -> tuple[Array, Array]:
        """(q, m*β)"""
        return q, total_rates(robot, q, v)

    def leave(
        self, robot: Robot, x: Array, w: Array, q: Configuration
    ) -> tuple[Configuration, JointVector]:
        """(q, ℓ*ν)"""
        return x, joint_rates(robot, x, w)

    def change(
        self, system: ControlledRobot, t: Seconds, x: Array, w: Array
    ) -> tuple[Array, Array]:
        """β = ℓ*ν and ν̇ = ℓT − C_ν"""
        v = joint_rates(system.robot, x, w)
        tau, external = system.forces(t, x, v)
        return v, diagonal_forward_dynamics(system.robot, x, w, tau, external=external)


class NonMinimal(Minimal):
    """A pose and a velocity of every body, projected onto the hinges after each step
    ([BI] Alg 3.4)."""

    def space(self, robot: Robot) -> Robot:
        """The bodies, each on a free hinge of its own; their masses play no part."""
        return _free_bodies(tuple(body.name for body in robot.bodies))

    def enter(self, robot: Robot, q: Configuration, v: JointVector) -> tuple[Array, Array]:
        """X = φ(q) and V = φ*H*β of every body, as a state of free bodies"""
        return minimal_state(self.space(robot), poses(robot, q), velocities(robot, q, v))

    def leave(
        self, robot: Robot, x: Array, w: Array, q: Configuration
    ) -> tuple[Configuration, JointVector]:
        """The nearest joint state, its angles within half a turn of those of q"""
        found = minimal_state(robot, poses(self.space(robot), x), w.reshape(robot.nb, 6))
        at: Configuration = found[0]
        turns = np.floor((q - at) / (2.0 * np.pi) + 0.5) * (2.0 * np.pi)
        angles = [a for h in robot.hinges for a in h.kind.angles or (False,) * h.kind.nq]
        return np.where(angles, at + turns, at), found[1]

    def change(
        self, system: ControlledRobot, t: Seconds, x: Array, w: Array
    ) -> tuple[Array, Array]:
        """V and α of every body from its own state and its neighbours' messages"""
        robot, V = system.robot, w.reshape(system.robot.nb, 6)
        X = poses(self.space(robot), x)
        tau, external = system.forces(t, *minimal_state(robot, X, V))
        alpha = decoupled_forward_dynamics(robot, X, V, tau, external=external)
        return w, alpha.reshape(-1)


@lru_cache(maxsize=8)
def _free_bodies(names: tuple[str, ...]) -> Robot:
    builder = Builder("apart")
    for name in names:
        builder.body(name, mass=1.0, inertia=(1.0, 1.0, 1.0)).hinge(name, "free", WORLD, name)
    return builder.build()


CoordinatesName = Literal["minimal", "diagonal", "non-minimal"]
COORDINATES: dict[str, Minimal] = {
    "minimal": Minimal(),
    "diagonal": Diagonal(),
    "non-minimal": NonMinimal(),
}
