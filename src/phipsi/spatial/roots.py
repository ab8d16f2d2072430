"""The symmetric square root of small positive definite matrices of any scalars."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from phipsi.spatial.factor import Pivot

SWEEPS = {0: 0, 1: 0, 2: 1, 3: 5, 4: 6, 5: 7, 6: 8}
"""Sweeps of Jacobi rotations after which a block of so many rows is diagonal to rounding."""


class SymmetricRoot:
    """D½ = Q s Q* of D = Q s² Q* (r × r, positive definite), with the methods that `Pivot` has for
    its lower triangular root.

    The eigenvectors by Jacobi rotations, a fixed number of them, so that it can be traced.
    """

    __slots__ = ("Q", "s")

    def __init__(self, D: Pivot) -> None:
        r = len(D.d)
        A, self.Q = D.matrix + 0.0, np.eye(r).astype(object)
        for _ in range(SWEEPS[r]):
            for i, j in combinations(range(r), 2):
                _rotate(A, self.Q, i, j)
        self.s = [np.sqrt(A[i, i]) for i in range(r)]

    def _spectral(self, factors: list[Any], x: Any) -> Any:
        y = self.Q.T @ np.asarray(x)
        return self.Q @ np.array([f * e for f, e in zip(factors, y, strict=True)], object)

    def root(self, x: Any) -> Any:
        """D½ x."""
        return self._spectral(self.s, x)

    def root_solve(self, x: Any) -> Any:
        """D⁻½ x."""
        return self._spectral([1.0 / s for s in self.s], x)

    root_transpose, root_transpose_solve = root, root_solve

    def root_rate(self, rate: Any, x: Any) -> Any:
        """Ṡ x where D = S² changes at a rate Ḋ: SṠ + ṠS = Ḋ, solved among the eigenvectors."""
        r = range(len(self.s))
        turned = self.Q.T @ rate @ self.Q
        for i in r:
            for j in r:
                turned[i, j] = turned[i, j] / (self.s[i] + self.s[j])
        return self.Q @ (turned @ (self.Q.T @ np.asarray(x)))


def _rotate(A: Any, Q: Any, i: int, j: int) -> None:
    """The Jacobi rotation of the axes i and j that makes A[i, j] zero, of A and of Q."""
    d, a = A[j, j] - A[i, i], 2.0 * A[i, j]
    size = np.abs(d) + np.sqrt(d * d + a * a)
    t = np.where(d < 0.0, -a, a) / np.where(size == 0.0, 1.0, size)
    c = 1.0 / np.sqrt(1.0 + t * t)
    s = t * c
    for M in (A.T, A, Q):
        M[:, i], M[:, j] = c * M[:, i] - s * M[:, j], s * M[:, i] + c * M[:, j]
    A[i, j] = A[j, i] = 0.0


class NoRoot:
    """The identity in place of a root."""

    def root(self, x: Any) -> Any:
        """x."""
        return x

    root_transpose = root_solve = root_transpose_solve = root


ROOTS = ("cholesky", "symmetric")


def check_root(kind: str) -> None:
    """Refuse what is no kind of root."""
    if kind not in ROOTS:
        raise ValueError(f"root {kind!r} is not one of {', '.join(ROOTS)}")


def root_of(D: Pivot, kind: str) -> Pivot | SymmetricRoot:
    """The root of D: lower triangular ("cholesky", which its pivots are) or "symmetric"."""
    return D if kind == "cholesky" else SymmetricRoot(D)
