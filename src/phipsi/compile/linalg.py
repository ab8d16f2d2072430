"""Linear algebra that NumPy cannot trace: small dense systems and quaternions.

The functions work inside programs and outside. Each takes one problem, without batch axes: a
program is batched as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np

from phipsi.compile.arrays import Traced, is_traced
from phipsi.compile.node import Node
from phipsi.compile.numbers import as_number, as_operand
from phipsi.spatial import Pivot
from phipsi.spatial import rotation as rot
from phipsi.typing import Array, ArrayLike, Real, Vector3

Vector = Annotated[Array, "n"]
Matrix = Annotated[Array, "n n"]
Quaternion = Annotated[Array, "4"]
VectorLike = Annotated[ArrayLike, "n"]
MatrixLike = Annotated[ArrayLike, "n n"]
QuaternionLike = Annotated[ArrayLike, "4"]
Vector3Like = Annotated[ArrayLike, "3"]


def solve(A: MatrixLike, b: ArrayLike) -> Array:
    """The solution x of A x = b for a symmetric positive definite matrix A.

    Only the lower triangle of A is read. Cost O(n³).

    Parameters
    ----------
    A : (n, n)
        The matrix.
    b : (n,) or (n, m)
        The right-hand side, or one in each column.

    Returns
    -------
    (n,) or (n, m)
        The solution, of the shape of b.

    Raises
    ------
    ValueError
        A is not square, or b has not as many rows.

    Examples
    --------
    >>> from phipsi import linalg
    >>> linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0])
    array([1. , 0.5])
    """
    matrix, right = _square("solve", A), _objects("solve: b", b, (None,), (None, None))
    if len(right) != len(matrix):
        raise ValueError(f"linalg.solve: A is {matrix.shape} but b has {len(right)} rows")
    pivot = Pivot(matrix)
    if right.ndim == 1:
        return _result(pivot.solve(right))
    return _result(np.stack([pivot.solve(column) for column in right.T], axis=1))


def cholesky(A: MatrixLike) -> Matrix:
    """The lower triangular matrix L with A = L L* for a symmetric positive definite matrix A.

    Parameters
    ----------
    A : (n, n)
        The matrix.

    Returns
    -------
    (n, n)
        The factor L.

    Raises
    ------
    ValueError
        A is not square.

    Examples
    --------
    >>> from phipsi import linalg
    >>> linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
    array([[2., 0.],
           [1., 2.]])
    """
    matrix = _square("cholesky", A)
    pivot, L = Pivot(matrix), np.zeros(matrix.shape, object)
    for i, unit in enumerate(np.eye(len(matrix)).astype(object)):
        L[:, i] = pivot.root(unit)
    return _result(L)


def least_squares(
    J: Annotated[ArrayLike, "m n"], x: Annotated[ArrayLike, "m"], damping: Node | float = 0.0
) -> Vector:
    """The vector y that minimises |J y − x|² + damping² |y|².

    It is found by the smaller of the two normal equations, of size min(m, n). Without damping J
    must have full rank; if J has fewer rows than columns, y is then the shortest solution.

    Parameters
    ----------
    J : (m, n)
        The matrix.
    x : (m,)
        The vector that J y approximates.
    damping
        Weight of |y|.

    Returns
    -------
    (n,)
        The vector y.

    Examples
    --------
    >>> from phipsi import linalg
    >>> linalg.least_squares([[1.0, 1.0]], [2.0])
    array([1., 1.])
    """
    matrix = _objects("least_squares: J", J, (None, None))
    right = _objects("least_squares: x", x, (len(matrix),))
    if not isinstance(damping, Node):
        damping = as_number("linalg.least_squares: damping", damping)
    m, n = matrix.shape
    damp = damping * damping * np.eye(min(m, n)).astype(object)
    if m <= n:
        return _result(matrix.T @ Pivot(matrix @ matrix.T + damp).solve(right))
    return _result(Pivot(matrix.T @ matrix + damp).solve(matrix.T @ right))


def quaternion_exp(w: Vector3Like) -> Quaternion:
    """The unit quaternion of a rotation vector.

    Parameters
    ----------
    w : (3,)
        Axis of the rotation times its angle [rad].

    Returns
    -------
    (4,)
        The quaternion (w, x, y, z).

    Examples
    --------
    >>> from phipsi import linalg
    >>> linalg.quaternion_exp([0.0, 0.0, 0.0])
    array([1., 0., 0., 0.])
    """
    return _result(_stacked(rot.exp(_objects("quaternion_exp: w", w, (3,)))))


def quaternion_log(q: QuaternionLike) -> Vector3:
    """The rotation vector of a quaternion, at most π long.

    Parameters
    ----------
    q : (4,)
        The quaternion (w, x, y, z), which is normalised first.

    Returns
    -------
    (3,)
        Axis of the rotation times its angle [rad].

    Examples
    --------
    >>> from phipsi import linalg
    >>> linalg.quaternion_log(linalg.quaternion_exp([0.1, 0.2, 0.3])).round(9)
    array([0.1, 0.2, 0.3])
    """
    return _result(rot.log(rot.normalize(_objects("quaternion_log: q", q, (4,)))))


def quaternion_product(p: QuaternionLike, q: QuaternionLike) -> Quaternion:
    """The product p ⊗ q of two quaternions: the rotation q followed by the rotation p.

    Parameters
    ----------
    p : (4,)
        A quaternion (w, x, y, z).
    q : (4,)
        A quaternion (w, x, y, z).

    Returns
    -------
    (4,)
        The product.

    Examples
    --------
    >>> from phipsi import linalg
    >>> linalg.quaternion_product([0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0])  # i j = k
    array([0., 0., 0., 1.])
    """
    left, right = (_objects(f"quaternion_product: {n}", x, (4,)) for n, x in (("p", p), ("q", q)))
    return _result(_stacked(rot.multiply(left, right)))


def rotation_matrix(q: QuaternionLike) -> Annotated[Array, "3 3"]:
    """The rotation matrix of a quaternion.

    Parameters
    ----------
    q : (4,)
        The quaternion (w, x, y, z), which is normalised first.

    Returns
    -------
    (3, 3)
        The matrix R: it maps vectors as q · q* does.

    Examples
    --------
    >>> from phipsi import linalg
    >>> linalg.rotation_matrix([0.0, 0.0, 0.0, 1.0])  # half a turn about z
    array([[-1.,  0.,  0.],
           [ 0., -1.,  0.],
           [ 0.,  0.,  1.]])
    """
    return _result(rot.from_quaternion(_objects("rotation_matrix: q", q, (4,))))


def clip(x: Real | ArrayLike, low: Real | ArrayLike, high: Real | ArrayLike) -> Array:
    """The elements of x limited to the range from `low` to `high`.

    Parameters
    ----------
    x : (…)
        Values.
    low : (…)
        Lower limits.
    high : (…)
        Upper limits.

    Returns
    -------
    (…)
        The limited values, of the broadcast shape of the arguments.

    Examples
    --------
    >>> from phipsi import linalg
    >>> linalg.clip([-3.0, 0.5, 3.0], -1.0, 1.0)
    array([-1. ,  0.5,  1. ])
    """
    x, low, high = (as_operand("linalg.clip", value) for value in (x, low, high))
    return _MINIMUM(_MAXIMUM(x, low), high)


minimum, maximum = np.minimum, np.maximum
_MINIMUM: Callable[..., Array] = np.minimum
_MAXIMUM: Callable[..., Array] = np.maximum


def _objects(what: str, x: ArrayLike, *shapes: tuple[int | None, ...]) -> Array:
    """A copy as an object array of numbers or nodes, of one of these shapes; None is any length.
    `what` begins the sentence of an error."""
    given = np.array(as_operand(f"linalg.{what}", x), dtype=object).view(np.ndarray)
    for shape in shapes:
        if len(shape) == given.ndim and all(
            n in (None, m) for n, m in zip(shape, given.shape, strict=True)
        ):
            return given
    needs = " or ".join(f"({', '.join(str(n or 'n') for n in shape)})" for shape in shapes)
    raise ValueError(f"linalg.{what} has shape {given.shape}, needs {needs}")


def _stacked(x: ArrayLike) -> Array:
    """Numbers or nodes as an object array."""
    return np.array(x, dtype=object)


def _square(name: str, A: ArrayLike) -> Array:
    """A copy as an object array, which must be a square matrix."""
    matrix = _objects(f"{name}: A", A, (None, None))
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"linalg.{name} needs a square matrix, got shape {matrix.shape}")
    return matrix


def _result(x: Array) -> Array:
    """An object array as the caller gets it: traced, or of floats."""
    return x.view(Traced) if is_traced(x) else x.astype(float)
