"""Systems: the numbers of a robot, or any others, from which dense matrices of operators are made.

A system is a forest of bodies with a 6 × 6 block φ and an inertia M for each body, and rows of H
for each hinge. These need not come from a robot: the identities hold for any.

No recursion over bodies is used here. φ is the inverse of I − E_φ; equations that the papers solve
body by body (P, S⁺) are iterated on the whole matrices, which converges after as many steps as the
forest is deep; rates are differences along the motion; everything else follows its definition.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce

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
from phipsi.typing import Array, ArrayLike

STEP = 1e-2
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
"""The weights w of the central difference f' = Σ wₖ (f(k h) − f(−k h)) / h, of order h⁸."""


@dataclass(frozen=True, eq=False)
class System:
    """nb bodies in a forest, moved by nv freedoms.

    A body may have any number of freedoms, and any body may be the parent of any other. Symbols
    that need a field that is left out have no value.
    """

    parents: tuple[int, ...]
    """For each body the number of its parent, −1 for the world."""
    phi: Array
    """φ of each body towards its parent, (nb, 6, 6)."""
    M: Array
    """The inertia of each body, (nb, 6, 6)."""
    moves: Array
    """For each freedom the number of the body that it moves, (nv,)."""
    H: Array
    """For each freedom its row of H at that body, (nv, 6)."""
    A: Array
    """Armature, (nv, nv), zero between hinges."""
    passive: Array | None = None
    """For each freedom whether it is passive, (nv,)."""
    bodies: tuple[str, ...] = ()
    hinges: Mapping[str, slice] = field(default_factory=dict[str, slice])
    """The freedoms of each hinge."""
    frames: Mapping[str, tuple[int, Array]] = field(default_factory=dict[str, tuple[int, Array]])
    """Frames by name: the body (−1 for the world) and the 6 × 6 block that carries forces to it."""
    load: Array | None = None
    """External forces and weight, (nb, 6)."""
    hinge_rate: Callable[[Array], Array] | None = None
    """Ḣ*β, (nb, 6), from joint rates β."""
    displaced: Callable[[Array], System] | None = None
    """The system after a joint displacement (nv,)."""
    given: Mapping[str, Array] = field(default_factory=dict[str, Array])
    """Matrices by the names of symbols, used instead of computed ones; see `giving`."""
    known: dict[Leaf, Array] = field(default_factory=dict[Leaf, Array], init=False, repr=False)
    """The matrices of symbols that were computed already."""

    def giving(self, **values: ArrayLike) -> System:
        """The same system with given values, by the names of symbols: of vectors (T, beta, …; those
        of bodies flat or (nb, 6)) or of operators (a gain G that solves no Riccati equation)."""
        return replace(self, given={**self.given, **{k: self._fit(k, values[k]) for k in values}})

    # ---- expressions ---------------------------------------------------------------------------

    def value(self, x: Expression) -> Array:
        """The matrix of an expression; the space of one number has an axis of length one."""
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
            case _:
                return np.zeros((self.size(x.codomain), self.size(x.domain)))

    def values(self, *xs: Expression) -> list[Array]:
        """The matrices of several expressions."""
        return [self.value(x) for x in xs]

    def _leaf(self, x: Leaf) -> Array:
        """The matrix of a symbol: given, by its function, as a rate, or of its definition."""
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
        """The error for a symbol that the system has no value of."""
        name = x.symbol.name
        return ValueError(f"{x} ({x.meaning}) is not known of this system: give it, {name}=…")

    def rate(self, x: Expression, along: Array | None = None) -> Array:
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

    def _fit(self, name: str, value: ArrayLike) -> Array:
        """A given value in the shape of the matrix of a symbol."""
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
            case "any":
                raise ValueError(
                    "I or 0 alone has no size: name its space, IdentityOperator.of(JOINT_RATES)"
                )

    @property
    def released(self) -> Array:
        """Which freedoms are passive."""
        if self.passive is None:
            raise ValueError(
                "active and passive joints are not told apart: system(robot, q, active=…) does"
            )
        return self.passive

    # ---- blocks --------------------------------------------------------------------------------

    def blocks(
        self, rows: Sequence[int] | Array, columns: Sequence[int] | Array, blocks: Array
    ) -> Array:
        """The matrix (6 nb, 6 nb) with blocks (n, 6, 6) at given rows and columns of blocks."""
        n = len(self.parents)
        out = np.zeros((n, 6, n, 6))
        out[rows, :, columns, :] = blocks
        return out.reshape(6 * n, 6 * n)

    def diagonal(self, blocks: Array) -> Array:
        """The block-diagonal matrix (6 nb, 6 nb) of blocks (nb, 6, 6)."""
        every = np.arange(len(self.parents))
        return self.blocks(every, every, blocks)

    def on_diagonal(self, X: Array) -> Array:
        """X with zeros off its diagonal blocks."""
        return X * np.kron(np.eye(len(self.parents)), np.ones((6, 6)))

    def motion_cross(self, motions: Array) -> Array:
        """ad of a motion of each body, block diagonal."""
        return self.diagonal(ad(motions.reshape(-1, 6)))

    def force_cross(self, motions: Array) -> Array:
        """crf = −ad* of a motion of each body, block diagonal."""
        return -self.motion_cross(motions).T

    def carried(self, *frames: str) -> Array:
        """The matrix that carries forces at frames to the bodies, (6 nb, 6 · frames)."""
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
    def inner(self) -> Array:
        """The numbers of the bodies whose parent is a body."""
        return np.flatnonzero(np.array(self.parents, int) >= 0)

    @property
    def inner_parents(self) -> Array:
        """The parents of `inner`."""
        return np.array(self.parents, int)[self.inner]

    @property
    def roots(self) -> Array:
        """The numbers of the bodies whose parent is the world."""
        return np.flatnonzero(np.array(self.parents, int) < 0)

    def freedom(self, hinge: str) -> int:
        """The number of the only freedom of a hinge."""
        if hinge not in self.hinges:
            raise ValueError(f"there is no hinge {hinge!r}; there are {_list(self.hinges)}")
        place = self.hinges[hinge]
        if place.stop - place.start != 1:
            raise ValueError(f"hinge {hinge!r} has not one freedom, but {place.stop - place.start}")
        return place.start

    def axis(self, hinge: str) -> Array:
        """The axis of a hinge with one freedom as a motion of its body, zero at others, (nb, 6)."""
        i, out = self.freedom(hinge), np.zeros((len(self.parents), 6))
        out[self.moves[i]] = self.H[i]
        return out

    def check_free(self, roots: Iterable[int]) -> None:
        """Raise a `ValueError` unless these roots are free: six freedoms without armature."""
        for i in roots:
            own = self.moves == i
            if own.sum() != 6 or np.linalg.matrix_rank(self.H[own]) < 6 or self.A[own].any():
                name = repr(self.bodies[i]) if self.bodies else i
                raise ValueError(f"body {name} is no free base: one has six freedoms, no armature")

    def rerooted(self, body: str) -> System:
        """The system with another body as the base ([BI] Appendix A).

        The frames and the order of the freedoms stay, but the six freedoms of the free root become
        the spatial velocity of the new base. Along the path to the new base child c becomes the
        parent of its parent p: φ'_p = φ_c⁻¹ and H'_p* = −φ_c⁻* H_c*.
        """
        if body not in self.bodies:
            raise ValueError(f"there is no body {body!r}; there are {_list(self.bodies)}")
        base = c = self.bodies.index(body)
        parents, phi = list(self.parents), self.phi.copy()
        moves, H = self.moves.copy(), self.H.copy()
        while (p := self.parents[c]) >= 0:
            own = self.moves == c
            block: Array = self.phi[c]
            back = np.linalg.inv(block)
            parents[p], phi[p] = c, back
            moves[own], H[own] = p, -self.H[own] @ back
            c = p
        self.check_free([c])
        parents[base], phi[base] = -1, np.eye(6)
        own = self.moves == c
        moves[own], H[own] = base, np.eye(6)
        return System(tuple(parents), phi, self.M, moves, H, self.A, bodies=self.bodies)


@contextmanager
def _explained(what: str) -> Generator[None]:
    """A context in which a `LinAlgError` becomes a `ValueError` that says what failed."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise ValueError(f"{what}: {str(error).lower()}") from None


def ad(X: Array) -> Array:
    """ad(X) = [[a~, 0], [b~, a~]] of X = [a; b], for each row."""
    out = np.zeros((len(X), 6, 6))
    out[:, :3, :3] = out[:, 3:, 3:] = skew(X[:, :3])
    out[:, 3:, :3] = skew(X[:, 3:])
    return out


def skew(x: Array) -> Array:
    """x~ with x~ y = x × y, (…, 3, 3) of (…, 3)."""
    return np.cross(np.eye(3), x[..., None, :])


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
