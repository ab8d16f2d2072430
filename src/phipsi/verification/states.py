"""The robot that is verified, at random states, with what several checks need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phipsi.algorithms import (
    bias_force,
    forward_dynamics,
    mass_matrix_product,
    mass_matrix_solve,
)
from phipsi.cached import cached_property
from phipsi.model import Robot
from phipsi.operators import C, mass
from phipsi.operators.dense import System, matrix, system
from phipsi.typing import Array, Configuration, JointVector

EPS = float(np.finfo(float).eps)
SPEEDS = (0.0, 0.1, 1.0, 10.0)
"""Scales of the velocities, a state for each."""
DENSE = 64
"""Bodies up to which matrices of all bodies, (6 nb)², are made."""
WORST = 1e-3
"""The largest tolerance: a robot so badly conditioned that rounding explains more is not sound."""
SAFETY = 64.0
"""Roundings that add up for each body on the way, or for each unit of the condition number."""
FAR = 10.0
"""The largest coordinate [rad or m] that is tried, if limits allow more."""
USUAL = 2
"""The number of the state where one is enough."""
POWERS = 12
"""Iterations that find the extreme eigenvalues of a mass matrix that is not made."""


class States:
    """A robot at random states within its limits, from rest to fast."""

    def __init__(self, robot: Robot, seed: int) -> None:
        self.robot, self.seed = robot, seed
        rng = np.random.default_rng(seed)
        count = len(SPEEDS)
        q, v = robot.random_state(rng, (count,))
        self.q: Configuration = _near(robot, q, rng)
        self.v: JointVector = v * np.array(SPEEDS)[:, None]
        """Joint velocities."""
        self.w: JointVector = rng.standard_normal((count, robot.nv))
        """Any direction of the joint space."""
        self.push: JointVector = rng.standard_normal((count, robot.nv))

    @property
    def nv(self) -> int:
        """The number of freedoms."""
        return self.robot.nv

    @property
    def few(self) -> bool:
        """Whether matrices of all bodies can be made, and each state be tried by slow ways."""
        return self.robot.nb <= DENSE

    # ---- dense matrices: numbers of the model and their definitions, no recursion ---------------

    @cached_property
    def systems(self) -> list[System]:
        """The dense system of each state, all joints active but the last."""
        active = np.arange(self.nv) < self.nv - 1
        pairs = zip(self.q, self.v, strict=True)
        return [system(self.robot, q, v, active=active) for q, v in pairs]

    @cached_property
    def mass(self) -> Array:
        """𝓜 = H φ M φ* H* + A by dense matrices."""
        return np.array([matrix(mass, s) for s in self.systems])

    @cached_property
    def bias(self) -> JointVector:
        """C by dense matrices; of many bodies by the recursion."""
        if self.few:
            return np.array([matrix(C, s) for s in self.systems])
        return np.asarray(bias_force(self.robot, self.q, self.v))

    def times_mass(self, x: JointVector) -> JointVector:
        """𝓜 x by the dense matrix; of many bodies by the recursion."""
        if self.few:
            return np.einsum("...ij,...j->...i", self.mass, x)
        return np.asarray(mass_matrix_product(self.robot, self.q, x))

    # ---- scales and tolerances -------------------------------------------------------------------

    @cached_property
    def scale(self) -> Array:
        """√𝓜ᵢᵢ, by which rates of different units are compared; 1 where 𝓜 is not made."""
        return np.sqrt(np.einsum("...ii->...i", self.mass)) if self.few else np.ones_like(self.v)

    @cached_property
    def condition(self) -> float:
        """The condition number of the scaled mass matrix at the worst state."""
        if not self.nv:
            return 1.0
        if self.few:
            scaled = self.mass / self.scale[..., :, None] / self.scale[..., None, :]
            return float(np.linalg.cond(scaled).max())
        largest = self._growth(lambda x: mass_matrix_product(self.robot, self.q, x))
        return float((largest * self._growth(self._solved)).max())

    def _solved(self, x: JointVector) -> Array:
        return np.asarray(mass_matrix_solve(self.robot, self.q, x))

    def _growth(self, times: Callable[[Array], Array]) -> Array:
        """The largest eigenvalue at each state, from below."""
        x, size = self.w, np.ones((len(self.w), 1))
        for _ in range(POWERS):
            x = x / np.linalg.norm(x, axis=-1, keepdims=True)
            x = np.asarray(times(x))
            size = np.linalg.norm(x, axis=-1, keepdims=True)
        return size[:, 0]

    @property
    def sums(self) -> float:
        """The relative error that rounding of sums and products explains."""
        return SAFETY * max(1, self.robot.nb) * EPS

    @property
    def solving(self) -> float:
        """That of what is solved for, in proportion to the condition number."""
        return min(WORST, max(self.sums, SAFETY * EPS * self.condition))

    # ---- the motion ------------------------------------------------------------------------------

    @cached_property
    def tau(self) -> JointVector:
        """Random forces, as large as those that motion and gravity take."""
        size = np.abs(self.bias).max(-1, initial=0.0, keepdims=True)
        return self.push * (1.0 + size)

    @cached_property
    def a(self) -> JointVector:
        """β̇ under these forces, by forward dynamics."""
        return np.asarray(forward_dynamics(self.robot, self.q, self.v, self.tau))

    def moved(self, t: Array) -> Configuration:
        """q exp(t w), (steps, states, nq)."""
        return self.robot.integrate(self.q, t[:, None, None] * self.w)


def _near(robot: Robot, q: Configuration, rng: np.random.Generator) -> Configuration:
    """The configurations with coordinates near the middle of what is `FAR` at most where limits are
    so wide that they say nothing: numbers of 1e16 have no digits for an angle."""
    lower, upper = robot.joint_data("lower"), robot.joint_data("upper")
    middle = np.clip(0.0, lower, upper)
    near = np.clip(middle + rng.uniform(-FAR, FAR, q.shape), lower, upper)
    return np.where(np.isfinite(upper - lower) & (upper - lower > 2.0 * FAR), near, q)


def relative(x: Array, y: Array, scale: Array | float = 1.0, terms: Array | float = 0.0) -> float:
    """The largest difference of a state over its largest number, or over the largest of the `terms`
    of which these are sums, each times its `scale`."""
    x, y, terms = np.asarray(x) * scale, np.asarray(y) * scale, np.abs(terms * np.ones_like(x))
    if not x.size:
        return 0.0
    axes = tuple(range(1, x.ndim))
    size = np.maximum.reduce([np.abs(x), np.abs(y), terms * scale]).max(axes)
    gap = np.abs(x - y).max(axes)
    if not np.isfinite(gap).all():
        return float("inf")
    return float(np.where(gap > 0, gap / np.where(size > 0, size, 1.0), 0.0).max())
