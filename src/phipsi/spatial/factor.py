"""Small symmetric positive definite matrices of any scalars: D = L diag(d) L*, unrolled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from math import comb
from operator import mul
from typing import Annotated, Any, Generic, TypeVar

import numpy as np

from phipsi.spatial.rotation import Scalars, select
from phipsi.spatial.vectors import Force, Motion
from phipsi.typing import Array, Real

X = TypeVar("X", Force, Motion)
Y = TypeVar("Y", Force, Motion)


def column(values: Scalars) -> Annotated[Array, "r"]:
    """The given scalars, of which there may be none, as an object array with one axis."""
    out = np.empty(len(values), object)
    for i, value in enumerate(values):
        out[i] = value
    return out


class Pivot:
    """The factors of a symmetric positive definite D (r × r): D = L diag(d) L*.

    L is unit lower triangular, `inverse` = 1/d, S = L diag(d). Cost: r³/6 multiplications and r
    divisions to factor, r² multiplications to solve.
    """

    __slots__ = ("L", "S", "d", "inverse", "matrix")

    def reciprocal(self, i: int) -> Real:
        """1/d of the i-th pivot."""
        return 1.0 / self.d[i]

    def __init__(self, matrix: Annotated[Array, "r r"]) -> None:
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

    def solve(self, x: Scalars) -> Annotated[Array, "r"]:
        """D⁻¹ x."""
        return self._backward([y * s for y, s in zip(self._forward(x), self.inverse, strict=True)])

    def congruence(self, E: Annotated[Array, "r m"]) -> Annotated[Array, "m m"]:
        """E* D⁻¹ E, symmetric by construction."""
        Y = [self._forward(e) for e in E.T]
        out = np.zeros((len(Y), len(Y)), object)
        for i, y in enumerate(Y):
            scaled = [a * s for a, s in zip(y, self.inverse, strict=True)]
            for j in range(i + 1):
                out[i, j] = out[j, i] = sum(map(mul, scaled, Y[j]), 0.0)
        return out

    @property
    def _scales(self) -> list[Real]:
        """The numbers d^−½."""
        return [np.sqrt(s) for s in self.inverse]

    def root(self, x: Scalars) -> Annotated[Array, "r"]:
        """ℒ x with the lower Cholesky factor D = ℒ ℒ*."""
        y = self._rooted(x)
        return column([
            sum((self.L[i, j] * y[j] for j in range(i)), y[i]) for i in range(len(y))
        ])  # fmt: skip

    def root_transpose(self, x: Scalars) -> Annotated[Array, "r"]:
        """ℒ* x."""
        r = len(self.d)
        return column(self._rooted([
            sum((self.L[j, i] * x[j] for j in range(i + 1, r)), x[i]) for i in range(r)
        ]))  # fmt: skip

    def _rooted(self, x: Scalars) -> list[Any]:
        """diag(d^½) x."""
        return [np.sqrt(d) * y for d, y in zip(self.d, x, strict=True)]

    def root_solve(self, x: Scalars) -> Annotated[Array, "r"]:
        """ℒ⁻¹ x."""
        return column([y * s for y, s in zip(self._forward(x), self._scales, strict=True)])

    def root_transpose_solve(self, x: Scalars) -> Annotated[Array, "r"]:
        """ℒ⁻* x."""
        return self._backward([y * s for y, s in zip(x, self._scales, strict=True)])

    def root_rate(self, rate: Annotated[Array, "r r"], x: Scalars) -> Annotated[Array, "r"]:
        """ℒ̇ x for D that changes at the rate Ḋ, by differentiation of the factorization."""
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
    def logdet(self) -> Real:
        """log det D."""
        return sum((np.log(s) for s in self.d), 0.0)

    def _forward(self, x: Scalars) -> list[Any]:
        """L⁻¹ x."""
        y = list(x)
        for i in range(len(y)):
            for j in range(i):
                y[i] = y[i] - self.L[i, j] * y[j]
        return y

    def _backward(self, y: list[Any]) -> Annotated[Array, "r"]:
        """L⁻* y; the list is overwritten."""
        for i in reversed(range(len(y))):
            for j in range(i + 1, len(y)):
                y[i] = y[i] - self.L[j, i] * y[j]
        return column(y)


class PartPivot(Pivot):
    """The factors of D_p, the block of D in the rows and columns with p = 1 (p is 0 elsewhere).

    `solve` gives D_p⁻¹ x in these rows and 0 in the others, whose pivots are not used.
    """

    __slots__ = ("p",)

    def __init__(self, matrix: Annotated[Array, "r r"], p: Scalars) -> None:
        self.p = p
        super().__init__(matrix)

    def reciprocal(self, i: int) -> Real:
        """1/d, or 0 in a row with p = 0."""
        p = self.p[i]
        return p / select(p, self.d[i], 1.0)

    def others(self, x: Scalars) -> Annotated[Array, "r"]:
        """D x in the rows with p = 0, for an x that is zero in these rows."""
        rows = range(len(x))
        terms = ((self.matrix[i, j] * x[j] for j in rows if j != i) for i in rows)
        return column([sum(row, 0.0) for row in terms])

    @property
    def logdet(self) -> Real:
        """log det D_p."""
        return sum((np.log(select(p, d, 1.0)) for p, d in zip(self.p, self.d, strict=True)), 0.0)


ROUNDS = 3
"""Rounds of inverse iteration for a reciprocal condition number."""
EPSILON, ROUNDINGS, NOISE = 2.0**-52, 100.0, 1e-20
"""A pivot counts as zero if it is below ROUNDINGS times the bound of its rounding error, which is
relative to EPSILON, or below NOISE times the largest diagonal entry."""


class SemiPivot(Pivot):
    """The factors of a positive semidefinite A (n × n), without the rows of zero pivots.

    So `solve` gives one of the solutions of A x = b, if there are any. The rounding error of each
    pivot is bounded by δ_i = ε A_ii + Σ L_ij² δ_j, because small pivots amplify the errors of the
    pivots after them. Double precision is assumed.
    """

    __slots__ = ("delta", "floor", "regular_rows")

    def __init__(self, matrix: Annotated[Array, "n n"]) -> None:
        self.floor = NOISE * reduce(_larger, _diagonal(matrix), 0.0)
        self.delta: list[Any] = []
        self.regular_rows: list[Any] = []
        """For each row whether it is linearly independent of the rows before it."""
        super().__init__(matrix)

    def reciprocal(self, i: int) -> Real:
        """1/d, or 0 if d counts as zero."""
        terms = (self.L[i, j] * self.L[i, j] * self.delta[j] for j in range(i))
        self.delta.append(sum(terms, EPSILON * self.matrix[i, i]))
        d = self.d[i]
        regular = np.logical_and(d > ROUNDINGS * self.delta[i], d > self.floor)
        self.regular_rows.append(regular)
        return select(regular, 1.0 / select(regular, d, 1.0), 0.0)

    @property
    def rcond(self) -> Real:
        """The reciprocal condition number of A with rows scaled to a unit diagonal, estimated: a
        number in [0, 1], 0 if rows are linearly dependent."""
        scale = column([select(x > self.floor, x, 1.0) for x in _diagonal(self.matrix)])
        found = _smallest_eigenvalue(self.matrix, scale, self.solve)
        return select(self.regular, _smaller(found, 1.0), 0.0)

    @property
    def regular(self) -> Real:
        """Whether all rows are linearly independent of each other."""
        return reduce(np.logical_and, self.regular_rows, 1.0)


SHIFT, FLOOR, ORDER = 1e-11, 1e-2, 4
"""Of `PseudoInverse`: the eigenvalue at which its filter changes from inverting to suppressing, the
smallest scale of a row relative to the largest, and the order of the filter."""
SERIES = tuple(float(comb(ORDER - 1 + j, j)) for j in range(ORDER))
"""The coefficients 1, 4, 10, 20 of the maximally flat filter of order 4."""
DEPENDENT = 100.0 * SHIFT
"""The reciprocal condition number below which rows count as dependent."""


class PseudoInverse:
    """A⁺ of a positive semidefinite A (m × m), smooth where its rank changes, without pivoting.

    With S = diag(s), s_i the larger of A_ii and FLOOR times the largest diagonal entry, and
    R = SHIFT (A + SHIFT S)⁻¹S, a proximal point iteration is summed up to a maximally flat filter:

        A⁺ ≈ (I + 4R + 10R² + 20R³)(I − R)³(A + SHIFT S)⁻¹

    An eigenvalue σ of S^−½AS^−½ is inverted with the relative error 35 (SHIFT/σ)⁴ where it is
    larger than SHIFT, and counts for 35 (σ/SHIFT)⁴ where it is smaller: a row that depends on
    others to within rounding, or to within the drift of a simulation, exerts nothing, whatever the
    order of the rows. Structural zeros of A stay zeros of its factors. Of several solutions
    of A x = b, `solve` gives the one with the least x*Sx. Double precision is assumed. Cost that of
    factoring and of seven solves with the factors.

    The iteration: Carpentier, Budhiraja & Mansard, Proximal and sparse resolution of constrained
    dynamic equations, RSS 2021; the filter: Herrmann, IEEE Trans. Circuit Theory 18 (1971) 411.
    """

    __slots__ = ("matrix", "scale", "shifted")

    def __init__(
        self, matrix: Annotated[Array, "m m"], scale: Annotated[Array, "m"] | None = None
    ) -> None:
        given = _diagonal(matrix) if scale is None else scale
        largest = reduce(_larger, given, 0.0)
        floor = select(largest > 0.0, FLOOR * largest, 1.0)
        self.matrix = matrix
        self.scale = column([_larger(x, floor) for x in given])
        self.shifted = Pivot(matrix + np.diag(SHIFT * self.scale))

    def solve(self, x: Scalars) -> Annotated[Array, "m"]:
        """A⁺ x."""
        y = self.shifted.solve(x)
        for _ in range(ORDER - 1):
            y = y - self._damped(y)
        total = SERIES[-1] * y
        for coefficient in SERIES[-2::-1]:
            total = coefficient * y + self._damped(total)
        return total

    def _damped(self, x: Annotated[Array, "m"]) -> Annotated[Array, "m"]:
        """R x: nearly x along null vectors of A, nearly zero along the others."""
        return self.shifted.solve(SHIFT * self.scale * x)

    @property
    def rcond(self) -> Real:
        """An estimate of the smallest eigenvalue of S^−½AS^−½, a number in [0, 1] without units:
        the reciprocal condition number of A with scaled rows; 0 if rows are dependent."""
        found = _smallest_eigenvalue(self.matrix, self.scale, self.shifted.solve)
        return select(found > DEPENDENT, _smaller(found, 1.0), 0.0)

    @property
    def regular(self) -> Real:
        """Whether all rows are linearly independent of each other."""
        return self.rcond > 0.0


def _smallest_eigenvalue(
    matrix: Annotated[Array, "n n"],
    scale: Annotated[Array, "n"],
    solve: Callable[[Annotated[Array, "n"]], Annotated[Array, "n"]],
) -> Real:
    """The smallest eigenvalue of S^−½AS^−½, S = diag(scale), by inverse iteration from an
    arbitrary fixed vector; `solve` is A⁻¹ to within a shift."""
    x = column([np.cos(1.0 + 7.0 * i * i) for i in range(len(scale))])
    for _ in range(ROUNDS):
        x = solve(scale * x)
    size = sum(x * scale * x, 0.0)
    return sum(x * (matrix @ x), 0.0) / select(size > 0.0, size, 1.0)


def _diagonal(matrix: Annotated[Array, "n n"]) -> Annotated[Array, "n"]:
    return np.diag(matrix)


def _smaller(a: Real, b: Real) -> Real:
    minimum: Any = np.minimum  # NumPy's stubs do not accept traced numbers
    return minimum(a, b)


def _larger(a: Real, b: Real) -> Real:
    maximum: Any = np.maximum
    return maximum(a, b)


class SingularError(ArithmeticError):
    """The requested result does not exist at this state; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Inverse(Generic[X, Y]):
    """The inverse of a symmetric positive definite 6 × 6 matrix, stored as factors of the matrix.

    It maps an X to a Y (a force to a motion, or a motion to a force).
    """

    pivot: Pivot
    kind: type[Y]

    def __matmul__(self, vector: X) -> Y:
        """A⁻¹ x for the factored matrix A."""
        return self.kind.of(self.pivot.solve(vector.array))
