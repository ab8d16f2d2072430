"""Systems: what dense matrices of operators are made from, a robot's numbers or any others.

The algebra asks little of a system: a forest, a 6 × 6 block φ and an inertia M for each body, rows
of H for each hinge. They need not be those of a robot; identities hold for any.

Nothing is a recursion over bodies here. φ is the inverse of I − E_φ; equations that papers solve
body by body (P, S⁺) are iterated as wholes, which ends after as many steps as the forest is deep;
rates are differences along the motion; all else is what definitions say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from phipsi.operators.algebra.expression import (
    SYMBOLS,
    Adjoint,
    Expression,
    IdentityOperator,
    Inverse,
    Leaf,
    LogDet,
    Product,
    Sum,
)
from phipsi.operators.algebra.spaces import Space

STEP = 1e-2
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
"""Of a central difference: f' = Σ wₖ (f(k h) − f(−k h)) / h, of order h⁸."""


@dataclass(frozen=True, eq=False)
class System:
    """nb bodies in a forest, moved by nv freedoms; what is left out gives symbols less.

    A body may have any number of freedoms, and any body be the parent of any other.
    """

    parents: tuple[int, ...]
    """For each body the number of its parent, −1 for the world."""
    phi: np.ndarray
    """φ of each body towards its parent, (nb, 6, 6)."""
    M: np.ndarray
    """The inertia of each body, (nb, 6, 6)."""
    moves: np.ndarray
    """For each freedom the number of the body that it moves, (nv,)."""
    H: np.ndarray
    """For each freedom its row of H at that body, (nv, 6)."""
    A: np.ndarray
    """Armature, (nv, nv), zero between hinges."""
    passive: np.ndarray | None = None
    """For each freedom: is it passive? (nv,)"""
    bodies: tuple[str, ...] = ()
    hinges: Mapping[str, slice] = field(default_factory=dict)
    """The freedoms of each hinge."""
    frames: Mapping[str, tuple[int, np.ndarray]] = field(default_factory=dict)
    """Frames by name: the body (−1 for the world) and the 6 × 6 block that carries forces to it."""
    load: np.ndarray | None = None
    """External forces and weight, (nb, 6)."""
    hinge_rate: Callable[[np.ndarray], np.ndarray] | None = None
    """Ḣ*β, (nb, 6), from joint rates β."""
    displaced: Callable[[np.ndarray], System] | None = None
    """The system after a joint displacement (nv,)."""
    given: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Whole matrices by symbol, used instead of those that would be computed; see `giving`."""
    known: dict[Leaf, np.ndarray] = field(default_factory=dict, init=False, repr=False)
    """What was computed of it already."""

    def giving(self, **values: Any) -> System:
        """The same system with vectors (T, beta, …; those of bodies flat or (nb, 6)) or operators
        (a gain G that solves no Riccati equation) that have these values."""
        return replace(self, given={**self.given, **{k: self._fit(k, values[k]) for k in values}})

    # ---- expressions ---------------------------------------------------------------------------

    def value(self, x: Expression) -> np.ndarray:
        """The matrix of an expression, with an axis of one where it has numbers."""
        match x:
            case Leaf():
                if x not in self.known:
                    self.known[x] = self._leaf(x)
                return self.known[x]
            case Adjoint():
                return self.value(x.leaf).T
            case Inverse():
                inner = self.value(x.inner)
                with _explained(f"{x.inner} has no inverse on this system"):
                    return np.linalg.inv(inner)
            case LogDet():
                sign, size = np.linalg.slogdet(self.value(x.inner))
                if sign <= 0:
                    raise ValueError(f"{x}: the determinant is not positive")
                return np.array([[size]])
            case Product():
                return reduce(lambda right, left: left @ right, self.values(*reversed(x.factors)))
            case Sum():
                return np.sum([float(c) * self.value(term) for c, term in x.terms], axis=0)
            case IdentityOperator():
                return np.eye(self.size(x.domain))
        return np.zeros((self.size(x.codomain), self.size(x.domain)))

    def values(self, *xs: Expression) -> list[np.ndarray]:
        """The matrices of several expressions."""
        return [self.value(x) for x in xs]

    def _leaf(self, x: Leaf) -> np.ndarray:
        row = x.symbol
        if row.name in self.given and not x.frames:
            return self.given[row.name]
        if row.dense is not None:
            if len(x.frames) > 1 and row.name != "B":
                raise ValueError(f"{x}: {row.name} takes one name")
            with _explained(f"{x} cannot be computed on this system"):
                return row.dense(self, *x.frames)
        if row.rate_of is not None:
            return self.rate(row.rate_of)
        if row.definition is not None:
            return self.value(x.definition)
        raise self.unknown(x)

    def unknown(self, x: Leaf) -> ValueError:
        """What to say of a symbol that the system has no value for."""
        name = x.symbol.name
        return ValueError(f"{x} ({x.meaning}) is not known of this system: give it, {name}=…")

    def rate(self, x: Expression, along: np.ndarray | None = None) -> np.ndarray:
        """dx/dt in the axes of the bodies, along β or other joint rates, by differences."""
        if along is None:
            along = self.value(Leaf.of(SYMBOLS["beta"]))[:, 0]
        if self.displaced is None:
            raise ValueError(f"the rate of {x} is not known: this system does not move")
        h = STEP / max(1.0, float(np.linalg.norm(along)))
        out = np.zeros_like(self.value(x))
        for k, w in enumerate(WEIGHTS, 1):
            ahead, behind = (self.displaced(sign * k * h * along) for sign in (1, -1))
            out += w / h * (ahead.value(x) - behind.value(x))
        return out

    def _fit(self, name: str, value: Any) -> np.ndarray:
        if name not in SYMBOLS or SYMBOLS[name].framed:
            raise ValueError(f"{name}=… gives nothing a value: no symbol of that name has one")
        spaces = SYMBOLS[name].codomain, SYMBOLS[name].domain
        shape, array = tuple(map(self.size, spaces)), np.array(value, float)
        if array.size != shape[0] * shape[1]:
            raise ValueError(f"{name} has shape {array.shape}, and needs {shape}")
        return array.reshape(shape)

    def size(self, space: Space) -> int:
        """How many numbers a vector of the space has."""
        match space.size:
            case "joint":
                return len(self.H)
            case "body":
                return 6 * len(self.parents)
            case "active":
                return int((~self.released).sum())
            case "passive":
                return int(self.released.sum())
            case "frame":
                return 6 * len(space.frames)
            case "one":
                return 1
        raise ValueError(
            "I or 0 alone has no size: name its space, IdentityOperator.of(JOINT_RATES)"
        )

    @property
    def released(self) -> np.ndarray:
        """Which freedoms are passive."""
        if self.passive is None:
            raise ValueError(
                "active and passive joints are not told apart: system(robot, q, active=…) does"
            )
        return self.passive

    # ---- blocks --------------------------------------------------------------------------------

    def blocks(self, rows: Any, columns: Any, blocks: np.ndarray) -> np.ndarray:
        """The matrix (6 nb, 6 nb) with given blocks."""
        n = len(self.parents)
        out = np.zeros((n, 6, n, 6))
        out[rows, :, columns, :] = blocks
        return out.reshape(6 * n, 6 * n)

    def diagonal(self, blocks: np.ndarray) -> np.ndarray:
        """The block diagonal matrix of (nb, 6, 6)."""
        every = np.arange(len(self.parents))
        return self.blocks(every, every, blocks)

    def on_diagonal(self, X: np.ndarray) -> np.ndarray:
        """The diagonal blocks of X."""
        return X * np.kron(np.eye(len(self.parents)), np.ones((6, 6)))

    def motion_cross(self, motions: np.ndarray) -> np.ndarray:
        """ad of a motion of each body, block diagonal."""
        return self.diagonal(ad(motions.reshape(-1, 6)))

    def force_cross(self, motions: np.ndarray) -> np.ndarray:
        """crf = −ad* of a motion of each body, block diagonal."""
        return -self.motion_cross(motions).T

    def carried(self, *frames: str) -> np.ndarray:
        """What carries forces at frames to the bodies, (6 nb, 6 · frames)."""
        out = np.zeros((len(self.parents), 6, len(frames), 6))
        for k, name in enumerate(frames):
            if name not in self.frames:
                known = ", ".join(map(repr, self.frames))
                raise ValueError(f"there is no frame {name!r}; there are {known or 'none'}")
            body, block = self.frames[name]
            if body >= 0:
                out[body, :, k] = block
        return out.reshape(6 * len(self.parents), 6 * len(frames))

    # ---- the forest ----------------------------------------------------------------------------

    @property
    def inner(self) -> np.ndarray:
        """The bodies that hang on others."""
        return np.flatnonzero(np.array(self.parents, int) >= 0)

    @property
    def inner_parents(self) -> np.ndarray:
        """The parents of `inner`."""
        return np.array(self.parents, int)[self.inner]

    @property
    def roots(self) -> np.ndarray:
        """The bodies that hang on the world."""
        return np.flatnonzero(np.array(self.parents, int) < 0)

    def freedom(self, hinge: str) -> int:
        """The only freedom of a hinge."""
        if hinge not in self.hinges:
            raise ValueError(f"there is no hinge {hinge!r}; there are {_list(self.hinges)}")
        place = self.hinges[hinge]
        if place.stop - place.start != 1:
            raise ValueError(f"hinge {hinge!r} has not one freedom, but {place.stop - place.start}")
        return place.start

    def axis(self, hinge: str) -> np.ndarray:
        """The axis of a hinge with one freedom as a motion of its body, zero at others, (nb, 6)."""
        i, out = self.freedom(hinge), np.zeros((len(self.parents), 6))
        out[self.moves[i]] = self.H[i]
        return out

    def check_free(self, roots: Iterable[int]) -> None:
        """Do root bodies fly freely: with six freedoms, and no armature that ties them down?"""
        for i in roots:
            own = self.moves == i
            if own.sum() != 6 or np.linalg.matrix_rank(self.H[own]) < 6 or self.A[own].any():
                name = repr(self.bodies[i]) if self.bodies else i
                raise ValueError(f"body {name} is no free base: one has six freedoms, no armature")

    def rerooted(self, body: str) -> System:
        """The system with another body as the base ([BI] Appendix A): same frames and order of the
        freedoms, but the six of the free root become the spatial velocity of the new base.

        A hinge c on the way from the root hangs parent p on child c: φ'_p = φ_c⁻¹ and
        H'_p* = −φ_c⁻* H_c*.
        """
        if body not in self.bodies:
            raise ValueError(f"there is no body {body!r}; there are {_list(self.bodies)}")
        base = c = self.bodies.index(body)
        parents, phi = list(self.parents), self.phi.copy()
        moves, H = self.moves.copy(), self.H.copy()
        while (p := self.parents[c]) >= 0:
            own = self.moves == c
            back = np.linalg.inv(self.phi[c])
            parents[p], phi[p] = c, back
            moves[own], H[own] = p, -self.H[own] @ back
            c = p
        self.check_free([c])
        parents[base], phi[base] = -1, np.eye(6)
        own = self.moves == c
        moves[own], H[own] = base, np.eye(6)
        return System(tuple(parents), phi, self.M, moves, H, self.A, bodies=self.bodies)


@contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise ValueError(f"{what}: {str(error).lower()}") from None


def ad(X: np.ndarray) -> np.ndarray:
    """ad(X) = [[a~, 0], [b~, a~]] of X = [a; b], for each row."""
    out = np.zeros((len(X), 6, 6))
    out[:, :3, :3] = out[:, 3:, 3:] = skew(X[:, :3])
    out[:, 3:, :3] = skew(X[:, 3:])
    return out


def skew(x: np.ndarray) -> np.ndarray:
    """x~ with x~ y = x × y, (…, 3, 3) of (…, 3)."""
    return np.cross(np.eye(3), x[..., None, :])


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
