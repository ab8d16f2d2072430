"""Small symmetric positive definite matrices of any scalars: D = L diag(d) L*, unrolled."""

from __future__ import annotations

from dataclasses import dataclass
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
            self.inverse[i] = 1.0 / d[i]

    def solve(self, x: Any) -> Any:
        """D⁻¹ x."""
        return self._backward([y * s for y, s in zip(self._forward(x), self.inverse, strict=True)])

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


@dataclass(frozen=True, slots=True)
class Inverse(Generic[X, Y]):
    """The inverse of a symmetric positive definite 6 × 6 matrix, kept as the factors of that."""

    pivot: Pivot
    kind: type[Y]

    def __matmul__(self, vector: X) -> Y:
        """What the matrix makes this vector of."""
        return self.kind.of(self.pivot.solve(vector.array))
