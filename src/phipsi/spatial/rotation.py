"""Rotations: 3 × 3 matrices and scalar-first quaternions, over any scalar.

A scalar is a number, a traced number (`phipsi.compile.Node`), or an array of numbers over a batch.
Functions that would divide by a vanishing angle use a power series at small angles, selected with
`np.where`, so that values and derivatives are finite and correct at zero rotation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Protocol, TypeAlias, overload

import numpy as np

from phipsi.typing import Array, ArrayLike, Real, Vector3


class Scalars(Protocol):
    """A sequence of scalars: an array with one axis, a list or a tuple."""

    def __len__(self, /) -> int: ...
    def __iter__(self, /) -> Iterator[Any]: ...
    @overload
    def __getitem__(self, index: int, /) -> Any: ...
    @overload
    def __getitem__(self, index: slice, /) -> Any: ...


Vector: TypeAlias = Vector3
"""An array of 3 scalars (object dtype unless all are floats)."""
Matrix: TypeAlias = Annotated[Array, "3 3"]
"""An array of 3 × 3 scalars."""
Quaternion: TypeAlias = Scalars
"""Four scalars (w, x, y, z)."""

SMALL = 1e-3  # squared angle below which the series of four terms is exact to rounding


def vector(x: Real, y: Real, z: Real) -> Vector:
    """The array [x, y, z] of any scalars."""
    out = np.empty(3, object)
    out[0], out[1], out[2] = x, y, z
    return out


def scalars(values: ArrayLike | Scalars) -> Array:
    """The given numbers as an array of scalars (object dtype; floats become Python floats)."""
    return np.array(values, dtype=object)


def select(condition: Real, x: Real, y: Real) -> Real:
    """`np.where` of scalars: x where the condition holds, else y."""
    where: Any = np.where  # NumPy's stubs do not accept traced numbers
    return where(condition, x, y)


def atan2(y: Real, x: Real) -> Real:
    """The angle [rad], within ±π, of the direction (x, y)."""
    arctan2: Any = np.arctan2  # NumPy's stubs do not accept traced numbers
    return arctan2(y, x)


def zero() -> Vector:
    """The zero vector."""
    return vector(0.0, 0.0, 0.0)


def cross(a: Vector, b: Vector) -> Vector:
    """a × b."""
    return vector(
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


def dot(a: Vector, b: Vector) -> Real:
    """a · b."""
    product: Any = a @ b
    return product


def scaled(s: Real, a: Vector) -> Vector:
    """s a. Unlike `*`, correct for scalars that are arrays, which `*` would broadcast along a."""
    return vector(s * a[0], s * a[1], s * a[2])


def skew(a: Vector) -> Matrix:
    """The matrix a~ with a~ b = a × b."""
    return matrix(((0.0, -a[2], a[1]), (a[2], 0.0, -a[0]), (-a[1], a[0], 0.0)))


def matrix(rows: Iterable[Scalars]) -> Matrix:
    """The 3 × 3 array of the given rows of scalars."""
    out = np.empty((3, 3), object)
    for i, row in enumerate(rows):
        out[i, 0], out[i, 1], out[i, 2] = row
    return out


def symmetric(xx: Real, yx: Real, yy: Real, zx: Real, zy: Real, zz: Real) -> Matrix:
    """The symmetric 3 × 3 array with the given lower triangle."""
    return matrix(((xx, yx, zx), (yx, yy, zy), (zx, zy, zz)))


def symmetric_product(a: Matrix, b: Matrix) -> Matrix:
    """a b of 3 × 3 arrays whose product is known to be symmetric: six of its nine entries."""
    entry = [
        a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j]
        for i in range(3)
        for j in range(i + 1)
    ]
    return symmetric(*entry)


def symmetric_sum(a: Matrix) -> Matrix:
    """a + a* of a 3 × 3 array, symmetric by construction."""
    return symmetric(*(a[i, j] + a[j, i] for i in range(3) for j in range(i + 1)))


def identity() -> Matrix:
    """The identity rotation."""
    return scalars(np.eye(3))


def about_axis(u: Vector, angle: Real) -> Matrix:
    """The rotation by `angle` [rad] about the unit vector u."""
    return turned(u, np.sin(angle), np.cos(angle))


def turned(u: Vector, s: Real, c: Real) -> Matrix:
    """The rotation about the unit vector u by the angle of sine s and cosine c."""
    d = 1.0 - c
    x, y, z = u
    return matrix(
        (
            (c + d * (x * x), d * (x * y) - s * z, d * (x * z) + s * y),
            (d * (x * y) + s * z, c + d * (y * y), d * (y * z) - s * x),
            (d * (x * z) - s * y, d * (y * z) + s * x, c + d * (z * z)),
        )
    )


def from_quaternion(q: Quaternion) -> Matrix:
    """The rotation matrix of a quaternion, which need not be a unit quaternion but not zero."""
    w, x, y, z = q
    n = 2.0 / (w * w + x * x + y * y + z * z)
    return matrix(
        (
            (1.0 - n * (y * y + z * z), n * (x * y - w * z), n * (x * z + w * y)),
            (n * (x * y + w * z), 1.0 - n * (x * x + z * z), n * (y * z - w * x)),
            (n * (x * z - w * y), n * (y * z + w * x), 1.0 - n * (x * x + y * y)),
        )
    )


def from_rpy(roll: Real, pitch: Real, yaw: Real) -> Matrix:
    """The rotation R_z(yaw) R_y(pitch) R_x(roll) of fixed-axis angles [rad]."""
    x, y, z = scalars(np.eye(3))
    return about_axis(z, yaw) @ about_axis(y, pitch) @ about_axis(x, roll)


def to_quaternion(rotation: Matrix) -> Annotated[Array, "4"]:
    """The unit quaternion of a rotation matrix of numbers, w ≥ 0."""
    r = np.asarray(rotation, float)
    m = np.array(  # symmetric; the eigenvector of its largest eigenvalue is q (Bar-Itzhack)
        [
            [np.trace(r), r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]],
            [0, r[0, 0] - r[1, 1] - r[2, 2], r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]],
            [0, 0, r[1, 1] - r[0, 0] - r[2, 2], r[1, 2] + r[2, 1]],
            [0, 0, 0, r[2, 2] - r[0, 0] - r[1, 1]],
        ]
    )
    q = np.linalg.eigh(m, UPLO="U")[1][:, -1]
    return q if q[0] >= 0 else -q


def quaternion_of(R: Matrix) -> tuple[Any, ...]:
    """The unit quaternion of a rotation matrix of any scalars, w ≥ 0 (Shepperd).

    It is the row of 4 q q* with the largest diagonal entry, normalised: exact to rounding for every
    rotation, half turns included. For a matrix that is not quite a rotation, the result is the
    quaternion of a nearby rotation.
    """
    a, b, c = R[0, 0], R[1, 1], R[2, 2]
    x, y, z = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    xy, zx, yz = R[1, 0] + R[0, 1], R[0, 2] + R[2, 0], R[2, 1] + R[1, 2]
    rows = (
        (1.0 + a + b + c, x, y, z), (x, 1.0 + a - b - c, xy, zx),
        (y, xy, 1.0 - a + b - c, yz), (z, zx, yz, 1.0 - a - b + c),
    )  # fmt: skip
    best: Scalars = rows[0]
    size: Real = rows[0][0]
    for row, own in zip(rows[1:], (rows[i][i] for i in (1, 2, 3)), strict=True):
        larger = own > size
        best = tuple(select(larger, new, old) for new, old in zip(row, best, strict=True))
        size = select(larger, own, size)
    flip = select(best[0] < 0.0, -1.0, 1.0)
    return normalize([flip * x for x in best])


def angle_about(u: Vector, R: Matrix) -> Real:
    """The angle [rad], within ±π, of the rotation about the unit vector u that is nearest to R."""
    return atan2(*_about(u, R))


def turn_about(u: Vector, R: Matrix) -> tuple[Real, Real]:
    """Sine and cosine of `angle_about`."""
    y, x = _about(u, R)
    n = 1.0 / np.sqrt(x * x + y * y)
    return y * n, x * n


def _about(u: Vector, R: Matrix) -> tuple[Real, Real]:
    """Numbers proportional to the sine and the cosine of `angle_about`."""
    turn = vector(R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1])
    return dot(u, turn), R[0, 0] + R[1, 1] + R[2, 2] - u @ (R @ u)


def angle_between(u: Vector, a: Vector, b: Vector) -> Real:
    """The angle [rad], within ±π, of the rotation about the unit vector u from a towards b."""
    return atan2(dot(u, cross(a, b)), dot(a, b) - dot(u, a) * dot(u, b))


def perpendicular(u: Vector) -> tuple[Vector, Vector]:
    """Two unit vectors that complete u to a right-handed triple, without a branch (Duff et al.).

    They are coordinate axes if u is one.
    """
    x, y, z = u
    s = 1.0 * select(z < 0.0, -1.0, 1.0)
    a = -1.0 / (s + z)
    b = x * y * a
    return vector(1.0 + s * x * x * a, s * b, -s * x), vector(b, s + y * y * a, -y)


def multiply(p: Quaternion, q: Quaternion) -> tuple[Any, ...]:
    """The quaternion product p ⊗ q."""
    a, b, c, d = p
    w, x, y, z = q
    return (
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    )


def conjugate(q: Quaternion) -> tuple[Any, ...]:
    """The inverse of a unit quaternion."""
    w, x, y, z = q
    return (w, -x, -y, -z)


def normalize(q: Quaternion) -> tuple[Any, ...]:
    """q / |q|."""
    n = 1.0 / np.sqrt(sum(x * x for x in q))
    return tuple(x * n for x in q)


def exp(w: Scalars) -> tuple[Any, ...]:
    """The unit quaternion of the rotation vector w [rad]."""
    t2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    small = t2 < SMALL
    t = np.sqrt(select(small, 1.0, t2))
    series = 0.5 - t2 * (1 / 48 - t2 * (1 / 3840 - t2 / 645120))
    s = select(small, series, np.sin(0.5 * t) / t)
    c = select(small, 1.0 - t2 * (1 / 8 - t2 * (1 / 384 - t2 / 46080)), np.cos(0.5 * t))
    return (c, s * w[0], s * w[1], s * w[2])


def log(q: Quaternion) -> Vector:
    """The rotation vector [rad], of length ≤ π, of a unit quaternion."""
    flip = select(q[0] < 0.0, -1.0, 1.0)
    w, x, y, z = (flip * a for a in q)
    s2 = x * x + y * y + z * z
    small = s2 < SMALL
    s = np.sqrt(select(small, 1.0, s2))
    near = select(small, w, 1.0)
    r2 = s2 / (near * near)
    series = 2.0 / near * (1.0 - r2 * (1 / 3 - r2 * (1 / 5 - r2 * (1 / 7 - r2 / 9))))
    k = select(small, series, 2.0 * np.arctan2(s, w) / s)
    return vector(k * x, k * y, k * z)


def exp_translation(w: Vector, v: Vector) -> Vector:
    """The translation of the rigid displacement exp([w; v]): (I + a w~ + b w~²) v,
    a = (1 − cos t)/t², b = (t − sin t)/t³, t = |w|."""
    t2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    small = t2 < SMALL
    t = np.sqrt(select(small, 1.0, t2))
    half = np.sin(0.5 * t) / t
    a = select(small, 0.5 - t2 * (1 / 24 - t2 * (1 / 720 - t2 / 40320)), 2.0 * half * half)
    b = select(
        small, 1 / 6 - t2 * (1 / 120 - t2 * (1 / 5040 - t2 / 362880)), (t - np.sin(t)) / (t * t * t)
    )
    wv = cross(w, v)
    return v + scaled(a, wv) + scaled(b, cross(w, wv))


def log_translation(w: Vector, p: Vector) -> Vector:
    """The inverse of `exp_translation`: (I − w~/2 + c w~²) p, c = (1 − (t/2) cot(t/2))/t²."""
    t2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    small = t2 < SMALL
    t = np.sqrt(select(small, 1.0, t2))
    exact = (1.0 - 0.5 * t * np.cos(0.5 * t) / np.sin(0.5 * t)) / (t * t)
    c = select(small, 1 / 12 + t2 * (1 / 720 + t2 * (1 / 30240 + t2 / 1209600)), exact)
    wp = cross(w, p)
    return p - 0.5 * wp + scaled(c, cross(w, wp))


def log_rate_factors(t2: Real) -> tuple[Real, Real]:
    """The numbers a and b with which u̇ = x + [u, x]/2 + a [u, [u, x]] + b [u, [u, [u, [u, x]]]] is
    the rate of u = log g where g⁻¹ġ = x, for rigid displacements g that turn by t = √t2 ≤ π.

    a = (2(1 − α) + (α − β)/2)/t², b = ((1 − α) + (α − β)/2)/t⁴, α = (t/2) cot(t/2),
    β = (t/2)²/sin²(t/2) (Bullo & Murray 1995, Proportional derivative (PD) control on
    the Euclidean group).
    """
    small = t2 < SMALL
    t2_far = select(small, 1.0, t2)
    half = 0.5 * np.sqrt(t2_far)
    s = np.sin(half)
    alpha, beta = half * np.cos(half) / s, (half / s) * (half / s)
    c, e = (1.0 - alpha) / t2_far, 0.5 * (alpha - beta) / t2_far
    a = 1 / 12 - t2 * t2 * (1 / 30240 + t2 * (1 / 604800 + t2 / 15966720))
    b = -1 / 720 - t2 * (1 / 15120 + t2 * (1 / 403200 + t2 / 11975040))
    return select(small, a, 2.0 * c + e), select(small, b, (c + e) / t2_far)
