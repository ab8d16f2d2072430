"""Small linear algebra against NumPy's, on numbers and traced."""

from __future__ import annotations

import numpy as np
import pytest

import phipsi as pp
from tests.compile.test_trace import check

rng = np.random.default_rng(0)
F = rng.normal(size=(4, 4))
A = F @ F.T + np.eye(4)
B = rng.normal(size=(4, 2))
J = rng.normal(size=(3, 5))


def test_solve_and_cholesky() -> None:
    np.testing.assert_allclose(pp.linalg.solve(A, B), np.linalg.solve(A, B), rtol=1e-12)
    np.testing.assert_allclose(pp.linalg.solve(A, B[:, 0]), np.linalg.solve(A, B[:, 0]), rtol=1e-12)
    np.testing.assert_allclose(pp.linalg.cholesky(A), np.linalg.cholesky(A), rtol=1e-12, atol=1e-14)
    check(lambda a, b: pp.linalg.solve(a.reshape(4, 4), b), A.reshape(-1), B[:, 0], tolerance=1e-12)
    check(lambda a: pp.linalg.cholesky(a.reshape(4, 4)), A.reshape(-1), tolerance=1e-12)


def test_least_squares_both_ways_and_damped() -> None:
    x, y = rng.normal(size=3), rng.normal(size=5)
    np.testing.assert_allclose(pp.linalg.least_squares(J, x), np.linalg.pinv(J) @ x, rtol=1e-10)
    np.testing.assert_allclose(pp.linalg.least_squares(J.T, y), np.linalg.pinv(J.T) @ y, rtol=1e-10)
    damped = np.linalg.solve(J.T @ J + 0.01 * np.eye(5), J.T @ x)
    np.testing.assert_allclose(pp.linalg.least_squares(J, x, 0.1), damped, rtol=1e-10)
    check(lambda x: pp.linalg.least_squares(J, x, 0.1), x, tolerance=1e-10)


def test_quaternions() -> None:
    w = np.array([0.3, -0.2, 0.5])
    q = pp.linalg.quaternion_exp(w)
    np.testing.assert_allclose(pp.linalg.quaternion_log(q), w, rtol=1e-14)
    np.testing.assert_allclose(pp.linalg.quaternion_log(-3 * q), w, rtol=1e-14)
    R = pp.linalg.rotation_matrix(q)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-15)
    twice = pp.linalg.quaternion_product(q, q)
    np.testing.assert_allclose(pp.linalg.rotation_matrix(twice), R @ R, atol=1e-15)
    check(pp.linalg.quaternion_exp, w)
    check(pp.linalg.quaternion_exp, 1e-9 * w)
    check(lambda x: pp.linalg.quaternion_log(pp.linalg.quaternion_exp(x)), w)


def test_clip_and_errors() -> None:
    check(lambda x: pp.linalg.clip(x, -0.1, 0.1), [1.0, -1.0, 0.05])
    with pytest.raises(ValueError, match="square"):
        pp.linalg.solve(B, B)
    with pytest.raises(ValueError, match="rows"):
        pp.linalg.solve(A, np.zeros(3))
