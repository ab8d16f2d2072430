"""What NumPy cannot trace: small dense linear algebra and quaternions, inside programs and out.

Every function takes one problem (no batch axis): a program is batched as a whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.compile.arrays import Traced, is_traced
from phipsi.spatial import Pivot
from phipsi.spatial import rotation as rot


def solve(A: Any, b: Any) -> Any:
    """x with A x = b for A symmetric positive definite, b (n,) or (n, m).

    >>> solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0])
    array([1. , 0.5])
    """
    A, b = _square("solve", A), _objects(b)
    if len(b) != len(A):
        raise ValueError(f"linalg.solve: A is {A.shape} but b has {len(b)} rows")
    pivot = Pivot(A)
    if b.ndim == 1:
        return _result(pivot.solve(b))
    return _result(np.stack([pivot.solve(column) for column in b.T], axis=1))


def cholesky(A: Any) -> Any:
    """The lower triangular L with A = L L* for A symmetric positive definite."""
    A = _square("cholesky", A)
    pivot, L = Pivot(A), np.zeros(A.shape, object)
    for i, unit in enumerate(np.eye(len(A)).astype(object)):
        L[:, i] = pivot.root(unit)
    return _result(L)


def least_squares(J: Any, x: Any, damping: Any = 0.0) -> Any:
    """y that minimises |J y − x|² + damping² |y|², by the smaller of the two normal equations.

    >>> least_squares([[1.0, 1.0]], [2.0])
    array([1., 1.])
    """
    J, x = _objects(J), _objects(x)
    m, n = J.shape
    damp = damping * damping * np.eye(min(m, n)).astype(object)
    if m <= n:
        return _result(J.T @ Pivot(J @ J.T + damp).solve(x))
    return _result(Pivot(J.T @ J + damp).solve(J.T @ x))


def quaternion_exp(w: Any) -> Any:
    """The unit quaternion (w, x, y, z) of a rotation vector [rad]."""
    return _result(_objects(rot.exp(_objects(w))))


def quaternion_log(q: Any) -> Any:
    """The rotation vector [rad], at most π long, of a quaternion (normalised on entry)."""
    return _result(rot.log(rot.normalize(_objects(q))))


def quaternion_product(p: Any, q: Any) -> Any:
    """The quaternion p ⊗ q."""
    return _result(_objects(rot.multiply(_objects(p), _objects(q))))


def rotation_matrix(q: Any) -> Any:
    """The 3 × 3 rotation of a quaternion (normalised on entry)."""
    return _result(rot.from_quaternion(_objects(q)))


def clip(x: Any, low: Any, high: Any) -> Any:
    """x limited to [low, high]."""
    return np.minimum(np.maximum(x, low), high)


minimum, maximum = np.minimum, np.maximum


def _objects(x: Any) -> Any:
    return np.array(x, dtype=object).view(np.ndarray)


def _square(name: str, A: Any) -> Any:
    A = _objects(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"linalg.{name} needs a square matrix, got shape {A.shape}")
    return A


def _result(x: Any) -> Any:
    return x.view(Traced) if is_traced(x) else x.astype(float)
