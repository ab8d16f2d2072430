"""Robots at a state: everything about them by dense matrices, by differences and by Pinocchio."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import numpy as np

import phipsi as pp
from phipsi import operators as o
from phipsi.operators import Expression
from phipsi.operators.algebra.expression import Leaf
from phipsi.operators.algebra.identities import TABLE, Identity
from phipsi.operators.dense import System, matrix, system
from tests.agreement.peers import with_normal_z
from tests.model.test_rebase import flyer
from tests.operators import test_identities as table
from tests.operators.systems import random_system
from tests.zoo import ONE_DOF, State, random_forest

WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
"""Of a central difference of order h⁸."""


class Case(State):
    """A robot at a random state, with joint and external forces; every other freedom is active."""

    def __init__(self, robot: pp.Robot, *, loaded: bool = True) -> None:
        super().__init__(robot)
        self.robot, self.loaded = robot, loaded
        self.active = np.arange(robot.nv) % 2 == 0

    def but(self, **changes: Any) -> Case:
        """The same with other values."""
        other = object.__new__(Case)
        derived = ("system", "qdd", "alpha")
        vars(other).update({k: x for k, x in vars(self).items() if k not in derived}, **changes)
        return other

    @cached_property
    def system(self) -> System:
        """Its dense system, with T = tau and β̇ = a; not `loaded`, without gravity and external
        forces."""
        robot = self.robot if self.loaded else self.robot.with_gravity((0.0, 0.0, 0.0))
        external = self.external if self.loaded else None
        s = system(robot, self.q, self.v, active=self.active, external=external)
        return s.giving(T=self.tau, beta_dot=self.a)

    def __call__(self, x: Expression, **given: Any) -> np.ndarray:
        """The dense matrix of an expression."""
        return matrix(x, self.system, **given)

    def blocks(self, x: Expression) -> np.ndarray:
        """The diagonal blocks of an operator on bodies, (nb, 6, 6); a vector of bodies, (nb, 6)."""
        X, n = self(x), self.robot.nb
        return X.reshape(n, 6) if X.ndim == 1 else X.reshape(n, 6, n, 6)[range(n), :, range(n)]

    @cached_property
    def qdd(self) -> np.ndarray:
        """Joint accelerations by tau, from the dense 𝓜."""
        return np.linalg.solve(self(o.mass), self.tau - self(o.C))

    @cached_property
    def alpha(self) -> np.ndarray:
        """Accelerations of the bodies by tau, (nb, 6)."""
        return self(o.alpha, beta_dot=self.qdd).reshape(-1, 6)

    def rate(self, f: Callable[[Any, Any], Any], qdd: Any = 0.0) -> np.ndarray:
        """d/dt of f(q, v) as q moves with v and v with qdd, by differences."""
        h, total = 5e-3 / max(1.0, float(np.linalg.norm(self.v))), np.array(0.0)
        for k, w in enumerate(WEIGHTS, 1):
            for dt in (k * h, -k * h):
                moved = self.robot.integrate(self.q, dt * self.v), self.v + dt * qdd
                total = total + np.copysign(w / h, dt * w) * np.asarray(f(*moved))
        return total


# ---- robots -------------------------------------------------------------------------------------


@cache
def solids() -> tuple[Case, ...]:
    """Forests with every hinge kind, branches, several roots, armature."""
    robots = (random_forest(seed, 4, massless=False) for seed in (8, 33))
    return tuple(Case(with_normal_z(robot)) for robot in robots)


@cache
def forests() -> tuple[Case, ...]:
    """The same, and one with massless bodies."""
    return *solids(), Case(random_forest(54, 4))


@cache
def flyers() -> tuple[Case, ...]:
    """Trees with a free root, branches, armature at inner hinges."""
    return tuple(Case(with_normal_z(flyer(seed, 4, massless=False))) for seed in (10, 12))


@cache
def bare(**options: Any) -> tuple[Case, ...]:
    """Forests without armature, gravity and external forces."""
    robots = (random_forest(s, 4, armature=False, massless=False, **options) for s in (8, 9))
    still = (robot.with_gravity((0.0, 0.0, 0.0)) for robot in robots)
    return tuple(Case(robot, loaded=False) for robot in still)


def arms() -> tuple[Case, ...]:
    """The same with hinges of one freedom: those of [DL]."""
    return bare(kinds=ONE_DOF)


# ---- Pinocchio ----------------------------------------------------------------------------------


class Peer:
    """A case in Pinocchio, its results in our layout."""

    def __init__(self, c: Case) -> None:
        self.pin: Any = importlib.import_module("pinocchio")
        self.c, self.model = c, pp.interop.to_pinocchio_model(c.robot)
        self.data = self.model.createData()
        state = pp.interop.to_pinocchio(c.robot, c.q, c.v, tau=c.tau, joints=self.model)
        self.q, self.v, self.tau = state
        forces = (self.pin.Force(f[3:], f[:3]) for f in c.external)
        self.external = self.pin.StdVec_Force([self.pin.Force.Zero(), *forces])

    def _ours(self, x: np.ndarray) -> np.ndarray:
        return pp.interop.from_pinocchio(self.c.robot, self.q, tau=x, joints=self.model)[1]

    def _both(self, X: np.ndarray) -> np.ndarray:
        """A symmetric matrix of which they give the upper half."""
        X = np.triu(X) + np.triu(X, 1).T
        return np.array([self._ours(row) for row in np.array([self._ours(x) for x in X]).T])

    def inverse_dynamics(self, qdd: Any = None) -> np.ndarray:
        """T of β̇ = qdd, or a."""
        own = self.c.a if qdd is None else qdd
        a = pp.interop.to_pinocchio(self.c.robot, self.c.q, a=own, joints=self.model)[1]
        at = self.model, self.data, self.q, self.v, a
        return self._ours(self.pin.rnea(*at, self.external))

    def forward_dynamics(self) -> np.ndarray:
        """β̇ of T = tau."""
        at = self.model, self.data, self.q, self.v, self.tau
        return self._ours(self.pin.aba(*at, self.external))

    def mass_matrix(self) -> np.ndarray:
        """𝓜."""
        return self._both(self.pin.crba(self.model, self.data, self.q))

    def mass_matrix_inverse(self) -> np.ndarray:
        """𝓜⁻¹."""
        return self._both(self.pin.computeMinverse(self.model, self.data, self.q))


@cache
def peers() -> tuple[Peer, ...]:
    """`solids` and `flyers` in Pinocchio."""
    return tuple(map(Peer, (*solids(), *flyers())))


# ---- identities ---------------------------------------------------------------------------------


def identities(*sources: str, passive: bool = False) -> Iterator[float]:
    """How far the rows with these sources of the table of identities are off, on numbers that no
    robot has and on robots; or their counterparts for passive arms."""
    chosen = [row for row in TABLE if row.source in sources]
    missing = set(sources) - {row.source for row in chosen}
    if missing:
        raise ValueError(f"no identity is from {missing}")
    for row in (row for row in chosen if not circular(row)):
        for s, name in _systems(row):
            own = table.at(row, name)
            one = own.passive if passive else own
            if one:
                left, right = table.sides(one, s)
                scale = max(1.0, *(np.abs(x).max(initial=0.0) for x in (left, right)))
                yield float(np.abs(left - right).max(initial=0.0) / scale)


def circular(row: Identity) -> bool:
    """Is the row a definition by which its dense matrix is made? Such rows are left out."""
    x = row.left
    if not isinstance(x, Leaf) or x.symbol.dense or x.symbol.rate_of is not None:
        return False
    return x.symbol.definition is not None and x.definition is row.right


def _systems(row: Identity) -> Iterator[tuple[System, str]]:
    """Systems on which a row holds, each with the name of a frame, body or hinge for it."""
    own = table.symbols(row)
    rebased = bool(own & table.REBASED)
    for seed in range(2):
        if not own & table.MOVING:
            serial, armature = "serial" in row.needs or rebased, "no armature" not in row.needs
            yield _numbers(seed, serial, table.free(row), armature), "body1" if rebased else "tool"
        robot = table.robot_for(row, seed)
        if not (rebased and robot.parents.count(-1) > 1):
            of_hinge = own & {"mass_by", "H_cross"}
            name = robot.hinges[-1].name if of_hinge else robot.bodies[-1].name
            yield table.moving(robot, seed), name if of_hinge or rebased else "tool"


@cache
def _numbers(seed: int, serial: bool, free: bool, armature: bool) -> System:
    s = random_system(seed, serial=serial, free=free, armature=armature)
    s = replace(s, frames={**s.frames, "body1": (1, np.eye(6))})
    a, b = np.random.default_rng(seed).normal(size=(2, len(s.parents), 6))
    return s.giving(**table.random_vectors(s), a=a, b=b)
