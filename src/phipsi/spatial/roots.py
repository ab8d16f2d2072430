"""The symmetric square root of small positive definite matrices of any scalars."""

from __future__ import annotations

from itertools import combinations
from typing import Annotated, Literal, get_args

import numpy as np

from phipsi.spatial.factor import Pivot
from phipsi.spatial.rotation import Scalars, select
from phipsi.typing import Array, Real

SWEEPS = {0: 0, 1: 0, 2: 1, 3: 5, 4: 6, 5: 7, 6: 8}
"""For each number of rows, the number of Jacobi sweeps that diagonalize a matrix to rounding."""


class SymmetricRoot:
    """D½ = Q s Q* of D = Q s² Q* (r × r, positive definite), with the methods of a `Pivot`.

    The eigenvectors Q are found by a fixed number of Jacobi rotations, which can be traced.
    """

    __slots__ = ("Q", "s")

    def __init__(self, D: Pivot) -> None:
        r = len(D.d)
        A, self.Q = D.matrix + 0.0, np.eye(r).astype(object)
        for _ in range(SWEEPS[r]):
            for i, j in combinations(range(r), 2):
                _rotate(A, self.Q, i, j)
        self.s = [np.sqrt(A[i, i]) for i in range(r)]

    def _spectral(self, factors: list[Real], x: Scalars) -> Annotated[Array, "r"]:
        """Q diag(factors) Q* x."""
        y = self.Q.T @ np.asarray(x)
        return self.Q @ np.array([f * e for f, e in zip(factors, y, strict=True)], object)

    def root(self, x: Scalars) -> Annotated[Array, "r"]:
        """D½ x."""
        return self._spectral(self.s, x)

    def root_solve(self, x: Scalars) -> Annotated[Array, "r"]:
        """D⁻½ x."""
        return self._spectral([1.0 / s for s in self.s], x)

    root_transpose, root_transpose_solve = root, root_solve

    def root_rate(self, rate: Annotated[Array, "r r"], x: Scalars) -> Annotated[Array, "r"]:
        """Ṡ x for D = S² that changes at the rate Ḋ: SṠ + ṠS = Ḋ, solved in the eigenbasis."""
        r = range(len(self.s))
        spectral = self.Q.T @ rate @ self.Q
        for i in r:
            for j in r:
                spectral[i, j] = spectral[i, j] / (self.s[i] + self.s[j])
        return self.Q @ (spectral @ (self.Q.T @ np.asarray(x)))


def _rotate(A: Annotated[Array, "r r"], Q: Annotated[Array, "r r"], i: int, j: int) -> None:
    """Apply to A and Q in place the Jacobi rotation of axes i and j that makes A[i, j] zero."""
    d, a = A[j, j] - A[i, i], 2.0 * A[i, j]
    size = np.abs(d) + np.sqrt(d * d + a * a)
    t = select(d < 0.0, -a, a) / select(size == 0.0, 1.0, size)
    c = 1.0 / np.sqrt(1.0 + t * t)
    s = t * c
    for M in (A.T, A, Q):
        M[:, i], M[:, j] = c * M[:, i] - s * M[:, j], s * M[:, i] + c * M[:, j]
    A[i, j] = A[j, i] = 0.0


class NoRoot:
    """The identity, with the methods of a root."""

    def root(self, x: Array) -> Array:
        """Return x itself."""
        return x

    root_transpose = root_solve = root_transpose_solve = root


RootKind = Literal["cholesky", "symmetric"]
"""Which square root of a matrix."""
ROOTS: tuple[RootKind, ...] = get_args(RootKind)


def check_root(kind: str) -> None:
    """Raise a ValueError if `kind` is not the name of a root."""
    if kind not in ROOTS:
        raise ValueError(f"root {kind!r} is not one of {', '.join(ROOTS)}")


def root_of(D: Pivot, kind: RootKind) -> Pivot | SymmetricRoot:
    """The square root of D: "cholesky" (lower triangular, from the pivots of D) or "symmetric"."""
    return D if kind == "cholesky" else SymmetricRoot(D)
