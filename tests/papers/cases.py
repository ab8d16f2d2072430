"""Robots at a state: everything about them by dense matrices, by differences and by Pinocchio."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from itertools import count, islice
from typing import Any

import numpy as np

import phipsi as pp
from phipsi import operators as o
from phipsi.operators import Expression
from phipsi.operators.algebra.identities import TABLE, Identity
from phipsi.operators.algebra.spaces import SCALARS
from phipsi.operators.dense import System, matrix, system
from phipsi.operators.lowering.dataflow import LoweringError
from phipsi.operators.lowering.plan import lower
from tests.agreement.peers import with_normal_z
from tests.model.test_rebase import flyer
from tests.operators import test_identities as table
from tests.papers.rows import error
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

    def lowered(self, x: Expression, **given: Any) -> np.ndarray:
        """The same by its recursion, compiled: what users get. It is flat, as dense vectors are."""
        robot = self.robot if self.loaded else self.robot.with_gravity((0.0, 0.0, 0.0))
        if x.domain != SCALARS:
            return x.on(robot, self.q, self.v, active=self.active).matrix()
        plan = lower(x, ()).plan
        vectors = {"T": self.tau, "beta_dot": self.a, **given}
        vectors = {name: vectors[name] for name in plan.inputs if name in vectors}
        external = self.external if self.loaded and plan.moving else None
        at = robot, self.q, self.v
        found = x.evaluate(*at, active=self.active, external=external, **vectors)
        return np.ravel(found) if x.codomain != SCALARS else found

    def blocks(self, x: Expression) -> np.ndarray:
        """The diagonal blocks of an operator on bodies, (nb, 6, 6); a vector of bodies, (nb, 6)."""
        return self.diagonal(self(x))

    def lowered_blocks(self, x: Expression) -> np.ndarray:
        """The same of the compiled recursion."""
        return self.diagonal(self.lowered(x))

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        """The diagonal blocks (nb, 6, 6) of a matrix, or a vector of bodies as (nb, 6)."""
        n = self.robot.nb
        return X.reshape(n, 6) if X.ndim == 1 else X.reshape(n, 6, n, 6)[range(n), :, range(n)]

    def undisturbed(self) -> Case:
        """The case without external forces, of which controllers know nothing."""
        return self.but(external=0 * self.external)

    def by_hinges(self) -> Case:
        """The case with whole hinges active or passive, as in the paper."""
        active = self.active.copy()
        for i, h in enumerate(self.robot.hinges):
            active[h.v] = i % 2 == 0
        return self.but(active=active)

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


def seen(robot: pp.Robot, seed: int = 0) -> pp.Robot:
    """The robot with a frame "elbow" on a body that carries others, besides "tool" on the last."""
    rng = np.random.default_rng(seed)
    inside = [i for i in range(robot.nb) if i in robot.parents]
    middle = robot.bodies[inside[len(inside) // 2]].name
    position, rpy = rng.normal(size=3), rng.uniform(-3, 3, 3)
    return robot.edit().frame("elbow", middle, position=position, rpy=rpy).build()


SHARE = False
"""Whether rows are measured on a share of the robots, the first of each group: `make test`."""


def share(cases: tuple[Case, ...]) -> tuple[Case, ...]:
    """The cases, or a share of them."""
    return cases[:1] if SHARE else cases


FRAMES = ("tool", "elbow")
"""Frames of every case: on the last body, and on one inside the tree."""


@cache
def solids() -> tuple[Case, ...]:
    """Forests of seven bodies with branches, several roots, armature and, together, every hinge
    kind that moves."""
    robots = (random_forest(seed, 7, massless=False) for seed in (3, 111))
    return tuple(Case(seen(with_normal_z(robot))) for robot in robots)


@cache
def ghosts() -> tuple[Case, ...]:
    """A forest of eight bodies, some massless, to one of which a ninth is welded."""
    return (Case(seen(random_forest(52, 9))),)


@cache
def free(*made: tuple[int, int]) -> tuple[Case, ...]:
    """Trees with free roots, branches and armature at inner hinges, from seeds and sizes."""
    robots = (flyer(seed, n, massless=False) for seed, n in made)
    return tuple(Case(seen(with_normal_z(robot))) for robot in robots)


def forests() -> tuple[Case, ...]:
    """`solids`, and one with massless and welded bodies."""
    return share((*solids(), *ghosts()))


def flyers() -> tuple[Case, ...]:
    """Trees of six and seven bodies with a free root."""
    return share(free((10, 6), (44, 7)))


def fleets() -> tuple[Case, ...]:
    """The same, and two free trees in one robot."""
    return *flyers(), *free((21, 6))


def bare(seeds: tuple[int, ...] = (3, 332), n: int = 6, **options: Any) -> tuple[Case, ...]:
    """Forests of six bodies without armature, gravity and external forces."""
    return share(_bare(seeds, n, **options))


@cache
def _bare(seeds: tuple[int, ...], n: int, **options: Any) -> tuple[Case, ...]:
    robots = (random_forest(s, n, armature=False, massless=False, **options) for s in seeds)
    still = (seen(robot).with_gravity((0.0, 0.0, 0.0)) for robot in robots)
    return tuple(Case(robot, loaded=False) for robot in still)


def arms() -> tuple[Case, ...]:
    """Seven bodies likewise, with hinges of one freedom: those of [DL]."""
    return bare((3, 17), 7, kinds=ONE_DOF)


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


def peers() -> tuple[Peer, ...]:
    """`solids` and `flyers` in Pinocchio."""
    return tuple(map(_peer, (*share(solids()), *flyers())))


_peer = cache(Peer)


# ---- identities ---------------------------------------------------------------------------------


def identities(*sources: str, passive: bool = False) -> Iterator[float]:
    """How far the rows with these sources of the table of identities are off: both sides and their
    adjoints, lowered and compiled, against the dense matrix of the left side; or those of their
    counterparts for passive arms."""
    chosen = [row for row in TABLE if row.source in sources]
    missing = set(sources) - {row.source for row in chosen}
    if missing:
        raise ValueError(f"no identity is from {missing}")
    for row in chosen:
        yield from _of_identity(row, passive, share(fitting(row)))


@cache
def _of_identity(row: Identity, passive: bool, cases: tuple[Case, ...]) -> tuple[float, ...]:
    errors = list[float]()
    for c in cases:
        for name in _names(row, c):
            own = table.at(row, name)
            one = own.passive if passive else own
            errors += [] if one is None else _sides(one, c)
    return tuple(errors)


def _sides(row: Identity, c: Case) -> list[float]:
    """The errors of both sides, as operators and as adjoints. Symbols without a recursion are
    compared as dense matrices; one side at least has one."""
    expected, errors, lowered = c(row.left), list[float](), 0
    both = [(row.left, expected), (row.right - 0 * row.left, expected)]
    both += [(x.T, y.T) for x, y in both if x.domain != SCALARS]
    for x, dense in both:
        try:
            found = c.lowered(x)
            lowered += 1
        except LoweringError:
            found = c(x)
        errors.append(error(found, dense))
    if not lowered:
        raise ValueError(f"{row.text}: no side has a recursion")
    return errors


def fitting(row: Identity) -> tuple[Case, ...]:
    """Robots that meet what a row needs: of seven bodies, with branches and several roots unless
    it is about fewer; the last of them has whole hinges active, the others single freedoms."""
    return _fitting(row.needs, table.free(row), bool(table.symbols(row) & table.REBASED))


@cache
def _fitting(needs: tuple[str, ...], free: bool, one_root: bool) -> tuple[Case, ...]:
    serial, loads = "serial" in needs, "no loads" not in needs
    options: dict[str, Any] = {"branching": not serial, "massless": not free}
    options |= {"kinds": ONE_DOF} if "one freedom" in needs else {}

    def made(seed: int) -> pp.Robot:
        if free and "no armature" not in needs:  # there is none at a free root
            return flyer(seed, 6, **options)
        roots = {"roots": ("free",)} if free else {}
        armature = "no armature" not in needs
        return random_forest(seed, 7 - free, armature=armature, **roots, **options)

    def wanted(robot: pp.Robot) -> bool:
        roots = robot.parents.count(-1)
        branched = len({*robot.parents}) <= robot.nb - roots
        enough = roots == 1 if one_root or serial else roots > 1 or free
        return robot.nb >= 5 and enough and (branched or serial)

    robots = islice(filter(wanted, map(made, count())), 2)
    still = (robot if loads else robot.with_gravity((0.0, 0.0, 0.0)) for robot in robots)
    first, second = (Case(seen(robot), loaded=loads) for robot in still)
    return first, second.by_hinges()


def _names(row: Identity, c: Case) -> tuple[str, ...]:
    """Names of frames, bodies or hinges at which a row is tried."""
    own = table.symbols(row)
    if own & {"mass_by", "H_cross"}:
        single = [h.name for h in c.robot.hinges if h.kind.nv == 1]
        return single[0], single[-1]
    if own & table.REBASED:
        return c.robot.bodies[-1].name, c.robot.bodies[c.robot.nb // 2].name
    return FRAMES if any(leaf.frames for leaf in row.left.leaves) else FRAMES[:1]
