"""The hinge map H, its transpose, and 6 × r bases of motions and forces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, overload

import numpy as np

from phipsi.spatial.factor import PartPivot, Pivot, column
from phipsi.spatial.rotation import Scalars, vector
from phipsi.spatial.vectors import Force, Motion
from phipsi.typing import Array, Real


def _dense(columns: Sequence[Motion] | Sequence[Force]) -> Annotated[Array, "6 r"]:
    """The dense 6 × r matrix of the columns."""
    out = np.empty((6, len(columns)), object)
    for i, c in enumerate(columns):
        out[:, i] = c.array
    return out


def _is(x: Real, number: float) -> bool:
    """Whether x is this number, and not traced."""
    return isinstance(x, float) and x == number


def _coordinate(entries: list[Any]) -> tuple[int, float] | None:
    """(i, ±1) if the six entries are plus or minus the i-th unit vector, else None."""
    if not all(isinstance(x, float) for x in entries) or entries.count(0.0) != 5:
        return None
    return next(((i, x) for i, x in enumerate(entries) if abs(x) == 1.0), None)


@dataclass(frozen=True, slots=True)
class MotionBasis:
    """A 6 × r matrix of motions, such as H*."""

    columns: tuple[Motion, ...]

    @property
    def matrix(self) -> Annotated[Array, "6 r"]:
        """The dense 6 × r matrix."""
        return _dense(self.columns)

    def __matmul__(self, x: Scalars) -> Motion:
        """The motion Σ column · x."""
        return sum((c * s for c, s in zip(self.columns, x, strict=True)), Motion.zero())


@dataclass(frozen=True, slots=True)
class HingeMap:
    """H, r × 6: joint force is H f, relative velocity is H* β."""

    T: MotionBasis

    @overload
    def __matmul__(self, other: Force) -> Annotated[Array, "r"]: ...
    @overload
    def __matmul__(self, other: ForceBasis) -> Annotated[Array, "r m"]: ...
    def __matmul__(self, other: Force | ForceBasis) -> Array:
        """H f (r scalars), or the block H U."""
        if isinstance(other, Force):
            return column([c.dot(other) for c in self.T.columns])
        rows = [[c.dot(f) for f in other.columns] for c in self.T.columns]
        return np.array(rows, dtype=object)

    def masked(self, p: Scalars) -> HingeMap:
        """H_p = diag(p) H: only the freedoms with p = 1, for r numbers p that are 1 or 0."""
        rows = zip(self.T.columns, p, strict=True)
        return HingeMap(MotionBasis(tuple(h * s for h, s in rows)))

    @property
    def axes(self) -> list[tuple[int, float] | None]:
        """For each freedom (i, ±1) if its column is plus or minus the i-th unit vector; or None."""
        return [_coordinate(c.array.tolist()) for c in self.T.columns]

    def fit(self, motion: Motion) -> Annotated[Array, "r"]:
        """The β for which H* β is nearest to the motion Δ: (H H*)⁻¹ H Δ."""
        columns = [c.array for c in self.T.columns]
        gram = np.empty((len(columns), len(columns)), object)
        for i, a in enumerate(columns):
            for j in range(i + 1):
                gram[i, j] = gram[j, i] = a @ columns[j]
        return Pivot(gram).solve([a @ motion.array for a in columns])

    def inner(self, U: ForceBasis) -> Annotated[Array, "r r"]:
        """H U for U = P H* with a symmetric P: symmetric by construction."""
        out = np.empty((len(self.T.columns), len(U.columns)), object)
        for i, motion in enumerate(self.T.columns):
            for j in range(i + 1):
                out[i, j] = out[j, i] = motion.dot(U.columns[j])
        return out


@dataclass(frozen=True, slots=True)
class ForceBasis:
    """A 6 × r matrix of forces, such as P H*."""

    columns: tuple[Force, ...]

    @property
    def matrix(self) -> Annotated[Array, "6 r"]:
        """The dense 6 × r matrix."""
        return _dense(self.columns)

    def __matmul__(self, x: Scalars) -> Force:
        """The force Σ column · x."""
        return sum((c * s for c, s in zip(self.columns, x, strict=True)), Force.zero())

    def __add__(self, other: ForceBasis) -> ForceBasis:
        both = zip(self.columns, other.columns, strict=True)
        return ForceBasis(tuple(f + g for f, g in both))

    def __sub__(self, other: ForceBasis) -> ForceBasis:
        both = zip(self.columns, other.columns, strict=True)
        return ForceBasis(tuple(f - g for f, g in both))

    def transpose_dot(self, motion: Motion) -> Annotated[Array, "r"]:
        """U* V."""
        return column([motion.dot(c) for c in self.columns])


def armature_block(A: Scalars) -> Annotated[Array, "r r"]:
    """The armature of a hinge as a symmetric r × r matrix. A is this matrix, or r numbers if it is
    diagonal."""
    given = np.asarray(A)
    return given if given.ndim == 2 else np.diag(given)


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain G = U D⁻¹ with U = P H*, stored as U and D: cheaper to apply than to form.

    `along` maps each coordinate axis (of six) that is a freedom of the hinge to its sign, its
    armature a and its p (1 if the freedom is released, else 0). Along these axes
    P⁺H* = GA + PH*(1 − p) takes little or no arithmetic.
    """

    U: ForceBasis
    D: Pivot
    along: Mapping[int, tuple[float, Real, Real]] = field(
        default_factory=dict[int, tuple[float, Real, Real]]
    )

    @classmethod
    def of(cls, U: ForceBasis, H: HingeMap, A: Scalars, p: Scalars | None = None) -> Gain:
        """The gain of U = P H* with D = H U + A, the armature A as in `armature_block`.

        With p (r numbers, 1 or 0) it is the gain of the freedoms with p = 1; the columns of the
        others are zero.
        """
        armature = armature_block(A)
        D = H.inner(U) + armature
        released = [1.0] * len(A) if p is None else list(p)
        rows = zip(H.axes, np.diag(armature), released, strict=True)
        along = {axis[0]: (axis[1], a, p) for axis, a, p in rows if axis}
        return cls(U, Pivot(D) if p is None else PartPivot(D, released), along)

    @property
    def free(self) -> list[int]:
        """The coordinate axes that are released freedoms without armature: P⁺ is zero there."""
        rows = self.along.items()
        return [i for i, (_, a, p) in rows if _is(a, 0.0) and _is(p, 1.0)]

    @property
    def column(self) -> Force:
        """The column of G, for a hinge with one freedom."""
        (u,), (inverse,) = self.U.columns, self.D.inverse
        entries = [x * inverse for x in u.array]
        for i, (sign, a, p) in self.along.items():
            if _is(a, 0.0):
                entries[i] = sign * p
        return Force(vector(*entries[:3]), vector(*entries[3:]))

    @property
    def eliminates(self) -> bool:
        """Whether all freedoms are coordinate axes without armature, where H G = I gives G."""
        return len(self.free) == len(self.U.columns)

    def __matmul__(self, x: Scalars) -> Force:
        """G x."""
        if len(x) == 1:
            return self.column * x[0]
        out = (self.U @ self.D.solve(x)).array
        if self.eliminates:
            for s, (i, (sign, *_)) in zip(x, self.along.items(), strict=True):
                out[i] = sign * s
        return Force(out[:3], out[3:])

    @property
    def T(self) -> TransposedGain:
        """G*."""
        return TransposedGain(self)

    def ranks(self) -> Iterator[tuple[Force, Real]]:
        """Pairs of a force u and a number s with U D⁻¹ U* = Σ s u u*."""
        done: list[Force] = []
        for i, u in enumerate(self.U.columns):
            w = sum((done[j] * -self.D.L[i, j] for j in range(i)), u)
            done.append(w)
            yield w, self.D.inverse[i]

    @property
    def matrix(self) -> Annotated[Array, "6 r"]:
        """The dense 6 × r matrix."""
        return _dense([self @ unit for unit in np.eye(len(self.U.columns))])


@dataclass(frozen=True, slots=True)
class TransposedGain:
    """G* of a gain."""

    gain: Gain

    def __matmul__(self, motion: Motion) -> Annotated[Array, "r"]:
        """G* α = D⁻¹ U* α."""
        G = self.gain
        if len(G.U.columns) == 1:
            return column([motion.dot(G.column)])
        if not G.eliminates:
            return G.D.solve(G.U.transpose_dot(motion))
        known = column([sign * motion.array[i] for i, (sign, *_) in G.along.items()])
        others = motion.array
        others[G.free] = 0.0
        return known + G.D.solve(G.U.transpose_dot(Motion(others[:3], others[3:])))
