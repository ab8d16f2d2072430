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
    """The factored block D (r × r, SPD): L unit lower triangular, `inverse` = 1/d, S = L diag(d).

    Cost r³/6 multiplications and r divisions to factor, r² to solve.
    """

    __slots__ = ("L", "S", "d", "inverse", "matrix")

    def reciprocal(self, i: int) -> Any:
        """1/d of the i-th pivot."""
        return 1.0 / self.d[i]

    def __init__(self, matrix: Any) -> None:
        r = len(matrix)
        self.matrix = matrix
        self.L = L = np.zeros((r, r), object) + np.eye(r).astype(object)
        self.d = d = np.empty(r, object)
        self.inverse = np.empty(r, object)
        self.S = S = np.zeros((r, r), object)
        for i in range(r):
            for j in range(i):
                S[i, j] = matrix[i, j]
                for k in range(j):
                    S[i, j] = S[i, j] - S[i, k] * L[j, k]
            d[i] = matrix[i, i]
            for j in range(i):
                L[i, j] = S[i, j] * self.inverse[j]
                d[i] = d[i] - L[i, j] * S[i, j]
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

    @property
    def _scales(self) -> list[Any]:
        """d^−½."""
        return [np.sqrt(s) for s in self.inverse]

    def root(self, x: Any) -> Any:
        """ℒ x with the lower Cholesky factor D = ℒ ℒ*."""
        y = self._rooted(x)
        return column([
            sum((self.L[i, j] * y[j] for j in range(i)), y[i]) for i in range(len(y))
        ])  # fmt: skip

    def root_transpose(self, x: Any) -> Any:
        """ℒ* x."""
        r = len(self.d)
        return column(self._rooted([
            sum((self.L[j, i] * x[j] for j in range(i + 1, r)), x[i]) for i in range(r)
        ]))  # fmt: skip

    def _rooted(self, x: Any) -> list[Any]:
        return [np.sqrt(d) * y for d, y in zip(self.d, x, strict=True)]

    def root_solve(self, x: Any) -> Any:
        """ℒ⁻¹ x."""
        return column([y * s for y, s in zip(self._forward(x), self._scales, strict=True)])

    def root_transpose_solve(self, x: Any) -> Any:
        """ℒ⁻* x."""
        return self._backward([y * s for y, s in zip(x, self._scales, strict=True)])

    def root_rate(self, rate: Any, x: Any) -> Any:
        """ℒ̇ x where D changes at a rate Ḋ: the factors, differentiated."""
        r, L, S = len(self.d), self.L, self.S
        L_dot, S_dot = np.zeros((r, r), object), np.zeros((r, r), object)
        d_dot = np.empty(r, object)
        for i in range(r):
            d_dot[i] = rate[i, i]
            for j in range(i):
                S_dot[i, j] = rate[i, j]
                for k in range(j):
                    S_dot[i, j] = S_dot[i, j] - (S_dot[i, k] * L[j, k] + S[i, k] * L_dot[j, k])
                L_dot[i, j] = (S_dot[i, j] - L[i, j] * d_dot[j]) * self.inverse[j]
                d_dot[i] = d_dot[i] - (L_dot[i, j] * S[i, j] + L[i, j] * S_dot[i, j])
        y = [d * s * e for d, s, e in zip(self.d, self._scales, x, strict=True)]
        scaled = [0.5 * d * s * e for d, s, e in zip(d_dot, self.inverse, y, strict=True)]
        rows = (zip(L[i], L_dot[i], scaled, y, strict=True) for i in range(r))
        return column([
            sum((a * u + b * w for a, b, u, w in list(row)[:i]), scaled[i])
            for i, row in enumerate(rows)
        ])  # fmt: skip

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


class PartPivot(Pivot):
    """The factored block of D in the rows with p = 1: `solve` gives D_p⁻¹ x there, else 0.

    p are r numbers, 1 or 0; the other rows are left out whatever their pivots are.
    """

    __slots__ = ("p",)

    def __init__(self, matrix: Any, p: Any) -> None:
        self.p = p
        super().__init__(matrix)

    def reciprocal(self, i: int) -> Any:
        """1/d, or 0 in a row that is left out."""
        p = self.p[i]
        return p / np.where(p, self.d[i], 1.0)

    def others(self, x: Any) -> Any:
        """D x in the rows that are left out, of an x that is zero there."""
        rows = range(len(x))
        terms = ((self.matrix[i, j] * x[j] for j in rows if j != i) for i in rows)
        return column([sum(row, 0.0) for row in terms])

    @property
    def logdet(self) -> Any:
        """log det D_p."""
        return sum((np.log(np.where(p, d, 1.0)) for p, d in zip(self.p, self.d, strict=True)), 0.0)


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
        """A⁻¹ x, A the factored matrix."""
        return self.kind.of(self.pivot.solve(vector.array))
