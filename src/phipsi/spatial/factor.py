"""Small symmetric positive definite matrices of any scalars: D = L diag(d) L*, unrolled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any, Generic, TypeVar

import numpy as np

from phipsi.spatial.vectors import Force, Motion

X = TypeVar("X", Force, Motion)
Y = TypeVar("Y", Force, Motion)


def column(values: list[Any]) -> Any:
    """The 1-D object array of the given scalars (possibly none)."""
    out = np.empty(len(values), object)
    for i, value in enumerate(values):
        out[i] = value
    return out


class Pivot:
    """The factored block D (r × r, SPD): L unit lower triangular, `inverse` = 1/d.

    Cost r³/6 multiplications and r divisions to factor, r² to solve.
    """

    __slots__ = ("L", "d", "inverse", "matrix")

    def reciprocal(self, i: int) -> Any:
        """1/d of the i-th pivot."""
        return 1.0 / self.d[i]

    def __init__(self, matrix: Any) -> None:
        r = len(matrix)
        self.matrix = matrix
        self.L = L = np.zeros((r, r), object) + np.eye(r).astype(object)
        self.d = d = np.empty(r, object)
        self.inverse = np.empty(r, object)
        for i in range(r):
            scaled = [matrix[i, j] for j in range(i)]
            for j in range(i):
                for k in range(j):
                    scaled[j] = scaled[j] - scaled[k] * L[j, k]
            d[i] = matrix[i, i]
            for j in range(i):
                L[i, j] = scaled[j] * self.inverse[j]
                d[i] = d[i] - L[i, j] * scaled[j]
            self.inverse[i] = self.reciprocal(i)

    def solve(self, x: Any) -> Any:
        """D⁻¹ x."""
        return self._backward([y * s for y, s in zip(self._forward(x), self.inverse, strict=True)])

    def congruence(self, E: Any) -> Any:
        """E* D⁻¹ E (m, m) of E (r, m), symmetric by construction."""
        Y = [self._forward(e) for e in E.T]
        out = np.zeros((len(Y), len(Y)), object)
        for i, y in enumerate(Y):
            scaled = [a * s for a, s in zip(y, self.inverse, strict=True)]
            for j in range(i + 1):
                out[i, j] = out[j, i] = sum(map(mul, scaled, Y[j]), 0.0)
        return out

    def root(self, x: Any) -> Any:
        """ℒ x with the lower Cholesky factor D = ℒ ℒ*."""
        r = len(self.d)
        y = [np.sqrt(self.d[i]) * x[i] for i in range(r)]
        return column([sum((self.L[i, j] * y[j] for j in range(i)), y[i]) for i in range(r)])

    def root_transpose(self, x: Any) -> Any:
        """ℒ* x."""
        r = len(self.d)
        return column(
            [
                np.sqrt(self.d[i]) * sum((self.L[j, i] * x[j] for j in range(i + 1, r)), x[i])
                for i in range(r)
            ]
        )

    def root_solve(self, x: Any) -> Any:
        """ℒ⁻¹ x."""
        return column([y / np.sqrt(s) for y, s in zip(self._forward(x), self.d, strict=True)])

    def root_transpose_solve(self, x: Any) -> Any:
        """ℒ⁻* x."""
        return self._backward([y / np.sqrt(s) for y, s in zip(x, self.d, strict=True)])

    @property
    def logdet(self) -> Any:
        """log det D."""
        return sum((np.log(s) for s in self.d), 0.0)

    def _forward(self, x: Any) -> list[Any]:
        y = list(x)
        for i in range(len(y)):
            for j in range(i):
                y[i] = y[i] - self.L[i, j] * y[j]
        return y

    def _backward(self, y: list[Any]) -> Any:
        for i in reversed(range(len(y))):
            for j in range(i + 1, len(y)):
                y[i] = y[i] - self.L[j, i] * y[j]
        return column(y)


EPSILON, ROUNDINGS, NOISE = 2.0**-52, 100.0, 1e-20
"""A pivot counts as zero below so many times the rounding that may have gone into it; an entry of
the diagonal below the last fraction of the largest is rounding alone."""


class SemiPivot(Pivot):
    """The factored matrix A (n × n, positive semidefinite): pivots that vanish are left out, so
    that `solve` gives one solution of A x = b if there is any.

    The rounding in a pivot is bounded beside it, δ_i = ε A_ii + Σ L_ij² δ_j: small pivots make
    those after them uncertain. Double precision is assumed.
    """

    __slots__ = ("delta", "floor", "regular_rows")

    def __init__(self, matrix: Any) -> None:
        self.floor = NOISE * reduce(np.maximum, np.diag(matrix), 0.0)
        self.delta: list[Any] = []
        self.regular_rows: list[Any] = []
        """Row by row: is it independent of those before it?"""
        super().__init__(matrix)

    def reciprocal(self, i: int) -> Any:
        """1/d, or 0 where d vanishes."""
        terms = (self.L[i, j] * self.L[i, j] * self.delta[j] for j in range(i))
        self.delta.append(sum(terms, EPSILON * self.matrix[i, i]))
        d = self.d[i]
        regular = np.logical_and(d > ROUNDINGS * self.delta[i], d > self.floor)
        self.regular_rows.append(regular)
        return np.where(regular, 1.0 / np.where(regular, d, 1.0), 0.0)

    @property
    def smallest(self) -> Any:
        """The smallest pivot over its diagonal entry, in [0, 1] and free of units; 0 where rows
        depend on each other."""
        out = 1.0
        for d, entry, regular in zip(self.d, np.diag(self.matrix), self.regular_rows, strict=True):
            out = np.minimum(out, np.where(regular, d / np.where(regular, entry, 1.0), 0.0))
        return out

    @property
    def regular(self) -> Any:
        """Are all rows independent of each other?"""
        return reduce(np.logical_and, self.regular_rows, 1.0)


class SingularError(ArithmeticError):
    """What was asked for does not exist at this state; the message says what, and what to do."""


@dataclass(frozen=True, slots=True)
class Inverse(Generic[X, Y]):
    """The inverse of a symmetric positive definite 6 × 6 matrix, kept as the factors of that."""

    pivot: Pivot
    kind: type[Y]

    def __matmul__(self, vector: X) -> Y:
        """What the matrix makes this vector of."""
        return self.kind.of(self.pivot.solve(vector.array))
