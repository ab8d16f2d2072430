"""Rotations as products of Givens rotations, which are cheaper to apply than 3 × 3 matrices.

Additions and multiplications of a Givens rotation (in parentheses: of a rotation matrix): 6 (15) to
rotate a vector, 15 (75) for R S R* of a symmetric matrix, 23 (90) for R C R* of any matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import atan2, hypot
from typing import cast, overload

import numpy as np

from phipsi.spatial.rotation import (
    Matrix,
    Vector,
    about_axis,
    identity,
    matrix,
    symmetric_product,
    turned,
    vector,
)
from phipsi.typing import Real

PLANE = ((1, 2), (2, 0), (0, 1))
"""For each coordinate axis, the two axes that a rotation about it moves, in positive order."""
FLAT = 1e-15
"""A constant sine or cosine below this is rounding error and counts as zero."""


@dataclass(frozen=True, slots=True)
class Givens:
    """The rotation about a coordinate axis by the angle of cosine c and sine s."""

    axis: int
    c: Real
    s: Real
    angle: Real | None = None
    """The angle [rad], if it is known."""

    @property
    def T(self) -> Givens:
        """The inverse."""
        return Givens(self.axis, self.c, -self.s)

    @property
    def constant(self) -> bool:
        """Whether c and s are numbers rather than traced."""
        return isinstance(self.c, float) and isinstance(self.s, float)

    @property
    def quarter(self) -> bool:
        """Whether the angle is a multiple of 90°, so that applying it takes no arithmetic."""
        return self.constant and (self.c == 0.0 or self.s == 0.0)

    def vector(self, v: Vector) -> Vector:
        """R v."""
        out, (j, k) = [v[0], v[1], v[2]], PLANE[self.axis]
        out[j], out[k] = self.pair(v[j], v[k])
        return vector(*out)

    def pair(self, x: Real, y: Real) -> tuple[Real, Real]:
        """The components x, y of a vector in the plane of rotation, rotated."""
        return self.c * x - self.s * y, self.s * x + self.c * y

    def symmetric(self, S: Matrix) -> Matrix:
        """R S R* of a symmetric matrix."""
        i, (j, k) = self.axis, PLANE[self.axis]
        c, s, a, b, d = self.c, self.s, S[j, j], S[j, k], S[k, k]
        if self.quarter:
            block = (a, b, d) if s == 0.0 else (d, -b, a)
        else:
            x = s * (a - d) + (2.0 * c) * b
            sx = s * x
            block = a - sx, c * x - b, d + sx
        out = np.empty((3, 3), object)
        out[i, i] = S[i, i]
        out[j, j], out[j, k], out[k, k] = block
        out[k, j] = out[j, k]
        out[i, j], out[i, k] = out[j, i], out[k, i] = self.pair(S[i, j], S[i, k])
        return out

    def general(self, C: Matrix) -> Matrix:
        """R C R* of any matrix."""
        i, (j, k) = self.axis, PLANE[self.axis]
        c, s, a, b, e, d = self.c, self.s, C[j, j], C[j, k], C[k, j], C[k, k]
        if self.quarter:
            block = (a, b, e, d) if s == 0.0 else (d, -e, -b, a)
        else:
            x = s * (a - d) + c * (b + e)
            cx, sx = c * x, s * x
            block = a - sx, cx - e, cx - b, d + sx
        out = np.empty((3, 3), object)
        out[i, i] = C[i, i]
        out[j, j], out[j, k], out[k, j], out[k, k] = block
        out[i, j], out[i, k] = self.pair(C[i, j], C[i, k])
        out[j, i], out[k, i] = self.pair(C[j, i], C[k, i])
        return out

    def after(self, first: Givens) -> Givens:
        """The product `first` · `self`, where `first` is constant and about the same axis."""
        if self.angle is not None and not first.quarter:
            s, c = cast(float, first.s), cast(float, first.c)
            return givens(self.axis, self.angle + atan2(s, c))
        return Givens(self.axis, *first.pair(self.c, self.s))


def givens(axis: int, angle: Real) -> Givens:
    """The rotation about a coordinate axis by an angle [rad]."""
    return Givens(axis, np.cos(angle), np.sin(angle), angle)


@dataclass(frozen=True, slots=True)
class Rotation:
    """The rotation R from child to parent axes.

    Stored either as a 3 × 3 matrix (`dense`, of numbers or of traced scalars) or as a product of
    Givens rotations (`product`).
    """

    dense: Matrix | None
    product: tuple[Givens, ...] | None = None

    @classmethod
    def of(cls, R: Matrix) -> Rotation:
        """From a 3 × 3 matrix, which is factored when it is applied if its entries are numbers."""
        return cls(R)

    @classmethod
    def about(cls, u: Vector, angle: Real) -> Rotation:
        """The rotation by `angle` [rad] about the unit vector u.

        A matrix if the angle is a number or u is traced. Otherwise a product: one Givens rotation,
        between constant ones unless u is a coordinate axis.
        """
        if isinstance(angle, float) or not all(isinstance(x, float) for x in u):
            return cls.of(about_axis(u, angle))
        return cls._around(u, lambda i, sign: givens(i, angle if sign > 0 else -angle))

    @classmethod
    def along(cls, u: Vector, s: Real, c: Real) -> Rotation:
        """The rotation about the unit vector u by the angle of sine s and cosine c."""
        if not all(isinstance(x, float) for x in u):
            return cls.of(turned(u, s, c))
        return cls._around(u, lambda i, sign: Givens(i, c, s if sign > 0 else -s))

    @classmethod
    def _around(cls, u: Vector, middle: Callable[[int, float], Givens]) -> Rotation:
        """One Givens rotation, between constant ones unless u is a coordinate axis.

        `middle(i, sign)` makes the rotation about coordinate axis i; `sign` is that of u along it.
        """
        for i, x in enumerate(u):
            if abs(x) == 1.0 and list(u).count(0.0) == 2:
                return cls(None, (middle(i, x),))
        flat = hypot(u[0], u[1])
        carry = _kept(_known(2, u[0] / flat, u[1] / flat), _known(1, u[2], flat))
        back = tuple(t.T for t in reversed(carry))
        return cls(None, (*carry, middle(2, 1.0), *back))

    @property
    def constant(self) -> bool:
        """Whether it is a matrix of numbers."""
        R = self.dense
        return R is not None and all(isinstance(x, float) for x in R.reshape(9).tolist())

    @property
    def factors(self) -> tuple[Givens, ...] | None:
        """The Givens rotations whose product this is; None for a matrix of traced scalars."""
        R = self.dense
        return decomposed(_entries(R)) if R is not None and self.constant else self.product

    @property
    def matrix(self) -> Matrix:
        """The 3 × 3 matrix."""
        return _onto(self.product or (), identity()) if self.dense is None else self.dense

    @property
    def T(self) -> Rotation:
        """The inverse rotation."""
        dense = None if self.dense is None else self.dense.T
        factors = None if self.product is None else tuple(t.T for t in reversed(self.product))
        return Rotation(dense, factors)

    @overload
    def __matmul__(self, other: Rotation) -> Rotation: ...
    @overload
    def __matmul__(self, other: Vector) -> Vector: ...
    def __matmul__(self, other: Rotation | Vector) -> Rotation | Vector:
        """R v, or the product with another rotation."""
        if isinstance(other, Rotation):
            return self._after(other)
        factors = self.factors
        if factors is None:
            return self.matrix @ other
        for t in reversed(factors):
            other = t.vector(other)
        return other

    def followed(self, other: Rotation) -> Rotation:
        """The product with another rotation, kept as factors if both are products."""
        if self.product is None or other.product is None:
            return self @ other
        return Rotation(None, (*self.product, *other.product))

    @property
    def euler_zxz(self) -> Rotation:
        """A matrix of numbers as three Givens rotations about z, x and z, identities included.

        Other rotations are returned as they are.
        """
        R = self.dense
        if R is None or not self.constant:
            return self
        return Rotation(None, _euler(np.reshape(_entries(R), (3, 3)), 2, 0, keep=True))

    def symmetric(self, S: Matrix) -> Matrix:
        """R S R* of a symmetric matrix."""
        factors = self.factors
        if factors is None:
            R = self.matrix
            return symmetric_product(R @ S, R.T)
        for t in reversed(factors):
            S = t.symmetric(S)
        return S

    def general(self, C: Matrix) -> Matrix:
        """R C R* of any matrix."""
        factors = self.factors
        if factors is None:
            R = self.matrix
            return R @ C @ R.T
        for t in reversed(factors):
            C = t.general(C)
        return C

    def _after(self, other: Rotation) -> Rotation:
        """The product self · other: factors if `self` is constant and `other` a product, else a
        matrix."""
        if self.constant and other.product is not None:
            return _joined(self.matrix, other.product)
        if self.constant and other.constant:
            return Rotation.of(self.matrix @ other.matrix)
        if other.factors is not None:
            R = self.matrix.T
            for t in other.factors:
                R = _onto((t.T,), R)
            return Rotation(R.T)
        factors = self.factors
        return Rotation(
            self.matrix @ other.matrix if factors is None else _onto(factors, other.matrix)
        )


def _onto(factors: tuple[Givens, ...], R: Matrix) -> Matrix:
    """The product of Givens rotations and a matrix."""
    columns = list(R.T)
    for t in reversed(factors):
        columns = [t.vector(column) for column in columns]
    return matrix(columns).T


def _joined(R: Matrix, factors: tuple[Givens, ...]) -> Rotation:
    """R · factors, where R and the leading constant factors are multiplied into one constant."""
    for n, t in enumerate(factors):
        if not t.constant:
            first = decomposed(_entries(R), t.axis)
            if first and first[-1].axis == t.axis:
                return Rotation(None, (*first[:-1], t.after(first[-1]), *factors[n + 1 :]))
            return Rotation(None, (*first, *factors[n:]))
        R = _onto((t.T,), R.T).T
    return Rotation.of(R)


# ---- constant rotations as products -------------------------------------------------------------


def _entries(R: Matrix) -> tuple[float, ...]:
    return tuple(map(float, R.reshape(9).tolist()))


@lru_cache(maxsize=4096)
def decomposed(entries: tuple[float, ...], last: int | None = None) -> tuple[Givens, ...]:
    """A constant rotation as a product of Givens rotations, with as little arithmetic as possible.

    With `last`, the last factor may be a rotation about that axis, which costs little because it is
    merged with the factor that follows.
    """
    R = np.reshape(entries, (3, 3))
    outer = range(3) if last is None else (last,)
    angles = (_euler(R, i, j) for i in outer for j in PLANE[i])
    cost = {True: 0.0, False: 1.0}

    def total(factors: tuple[Givens, ...]) -> float:
        joins = last is not None and bool(factors) and factors[-1].axis == last
        work = [cost[t.quarter] + 0.01 for t in factors]
        return sum(work) - (0.9 * work[-1] if joins else 0.0)

    return min(angles, key=total)


def _euler(R: Matrix, i: int, j: int, keep: bool = False) -> tuple[Givens, ...]:
    """R = R_i(a) R_j(b) R_i(c), by zeroing entries: exact to rounding for every R.

    Factors that are the identity are left out unless `keep`.
    """
    (m, n), k = PLANE[i], 3 - i - j
    x, y = R[m, i], R[n, i]
    first = _known(i, *((y, -x) if j == m else (x, y)))
    if first.c < 0.0:
        first = Givens(i, -first.c, -first.s)
    R = _onto((first.T,), R)
    second = _known(j, R[i, i], R[k, i] if PLANE[j][0] == i else -R[k, i])
    R = _onto((second.T,), R)
    factors = first, second, _known(i, R[m, m], R[n, m])
    return factors if keep else _kept(*factors)


def _known(axis: int, c: float, s: float) -> Givens:
    """The constant rotation by the angle of the direction (c, s)."""
    r = hypot(c, s)
    if r <= FLAT or abs(s) <= FLAT * r:
        return Givens(axis, -1.0 if c < 0.0 and r > FLAT else 1.0, 0.0)
    if abs(c) <= FLAT * r:
        return Givens(axis, 0.0, 1.0 if s > 0.0 else -1.0)
    return Givens(axis, float(c / r), float(s / r))


def _kept(*factors: Givens) -> tuple[Givens, ...]:
    """The factors that are not the identity."""
    return tuple(t for t in factors if t.c != 1.0 or t.s != 0.0)
