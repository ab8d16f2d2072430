"""The hinge map H, its transpose, and 6 × r bases of motions and forces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phipsi.spatial.factor import Pivot, column
from phipsi.spatial.vectors import Force, Motion


def _dense(columns: Sequence[Motion] | Sequence[Force]) -> Any:
    out = np.empty((6, len(columns)), object)
    for i, c in enumerate(columns):
        out[:, i] = c.array
    return out


@dataclass(frozen=True, slots=True)
class MotionBasis:
    """A 6 × r matrix of motions, such as H*."""

    columns: tuple[Motion, ...]

    @property
    def matrix(self) -> Any:
        """The dense 6 × r matrix."""
        return _dense(self.columns)

    def __matmul__(self, x: Any) -> Motion:
        """The motion Σ column · x."""
        return sum((c * s for c, s in zip(self.columns, x, strict=True)), Motion.zero())


@dataclass(frozen=True, slots=True)
class HingeMap:
    """H, r × 6: joint force is H f, relative velocity is H* β."""

    T: MotionBasis

    def __matmul__(self, other: Force | ForceBasis) -> Any:
        """H f (r scalars), or the block H U."""
        if isinstance(other, Force):
            return column([c.dot(other) for c in self.T.columns])
        rows = [[c.dot(f) for f in other.columns] for c in self.T.columns]
        return np.array(rows, dtype=object)

    def inner(self, U: ForceBasis) -> Any:
        """H U of U = P H*: r × r, symmetric by construction."""
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
    def matrix(self) -> Any:
        """The dense 6 × r matrix."""
        return _dense(self.columns)

    def __matmul__(self, x: Any) -> Force:
        """The force Σ column · x."""
        return sum((c * s for c, s in zip(self.columns, x, strict=True)), Force.zero())

    def transpose_dot(self, motion: Motion) -> Any:
        """U* V, r scalars."""
        return column([motion.dot(c) for c in self.columns])


@dataclass(frozen=True, slots=True)
class Gain:
    """G = U D⁻¹ with U = P H*, kept as its two factors: cheaper to apply than to form."""

    U: ForceBasis
    D: Pivot

    def __matmul__(self, x: Any) -> Force:
        """G x."""
        return self.U @ self.D.solve(x)

    @property
    def T(self) -> TransposedGain:
        """G*."""
        return TransposedGain(self)

    def ranks(self) -> Iterator[tuple[Force, Any]]:
        """Forces u and numbers s with U D⁻¹ U* = Σ s u u*."""
        done: list[Force] = []
        for i, u in enumerate(self.U.columns):
            w = sum((done[j] * -self.D.L[i, j] for j in range(i)), u)
            done.append(w)
            yield w, self.D.inverse[i]

    @property
    def matrix(self) -> Any:
        """The dense 6 × r matrix."""
        return np.stack([self.D.solve(row) for row in self.U.matrix])


@dataclass(frozen=True, slots=True)
class TransposedGain:
    """G* of a gain."""

    gain: Gain

    def __matmul__(self, motion: Motion) -> Any:
        """G* α = D⁻¹ U* α, r scalars."""
        return self.gain.D.solve(self.gain.U.transpose_dot(motion))
