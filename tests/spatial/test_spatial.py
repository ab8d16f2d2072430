"""The 6-D algebra against dense 6 × 6 matrices, and rotations against long arithmetic."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from phipsi.spatial import (
    ArticulatedInertia,
    Compliance,
    Force,
    ForceBasis,
    Gain,
    Givens,
    HingeMap,
    Joined,
    Motion,
    MotionBasis,
    Pivot,
    PseudoInverse,
    RigidMotion,
    Rotation,
    SemiPivot,
    SpatialInertia,
    Transform,
)
from phipsi.spatial import rotation as rot
from phipsi.spatial.givens import decomposed
from tests.each import each

TIGHT = 1e-13
seeds = each("seed", range(5))


def dense(x: Any) -> np.ndarray:
    return np.asarray(x, float)


def skew(a: Any) -> np.ndarray:
    x, y, z = dense(a)
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    Q, R = np.linalg.qr(rng.standard_normal((3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q * np.linalg.det(Q)


def random_transform(rng: np.random.Generator) -> Transform:
    return Transform.of(random_rotation(rng), rng.standard_normal(3))


def phi_matrix(T: Transform) -> np.ndarray:
    R = dense(T.rotation)
    return np.block([[R, skew(T.position) @ R], [np.zeros((3, 3)), R]])


def ad(V: Motion) -> np.ndarray:
    a, b = skew(V.angular), skew(V.linear)
    return np.block([[a, np.zeros((3, 3))], [b, a]])


def random_inertia(rng: np.random.Generator) -> tuple[SpatialInertia, np.ndarray]:
    mass, com = rng.uniform(0.5, 3), rng.standard_normal(3)
    points = rng.standard_normal((3, 3))
    central = np.trace(points @ points.T) * np.eye(3) - points @ points.T
    c = skew(com)
    matrix = np.block([[central - mass * c @ c, mass * c], [-mass * c, mass * np.eye(3)]])
    return SpatialInertia.of(mass, com, central), matrix


def random_articulated(rng: np.random.Generator) -> tuple[ArticulatedInertia, np.ndarray]:
    root = rng.standard_normal((6, 6))
    P = root @ root.T + np.eye(6)
    J, C, M = (rot.scalars(P[a, b]) for a, b in ((np.s_[:3], np.s_[:3]), (np.s_[:3], np.s_[3:]),
                                                  (np.s_[3:], np.s_[3:])))  # fmt: skip
    return ArticulatedInertia(J, C, M), P


def matrix_of(operator: Callable[[Motion], Force]) -> np.ndarray:
    """The 6 × 6 matrix of a linear map from motions to forces."""
    return np.stack([dense(operator(Motion.of(e)).array) for e in np.eye(6)], axis=1)


# ---- vectors -----------------------------------------------------------------------------------


@seeds
def test_cross_products_are_ad_and_its_negative_transpose(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, Y, f = (rng.standard_normal(6) for _ in range(3))
    V = Motion.of(X)
    assert_allclose(dense(V.cross(Motion.of(Y)).array), ad(V) @ Y, atol=TIGHT)
    assert_allclose(dense(V.cross_force(Force.of(f)).array), -ad(V).T @ f, atol=TIGHT)


@seeds
def test_cross_product_is_antisymmetric_and_obeys_jacobi(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, Y, Z = (Motion.of(rng.standard_normal(6)) for _ in range(3))
    assert_allclose(dense((X.cross(Y) + Y.cross(X)).array), 0, atol=TIGHT)
    cyclic = X.cross(Y.cross(Z)) + Y.cross(Z.cross(X)) + Z.cross(X.cross(Y))
    assert_allclose(dense(cyclic.array), 0, atol=TIGHT)


@seeds
@each("kind", [Motion, Force])
def test_vector_space_operations(seed: int, kind: Any) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, 6))
    X, Y = kind.of(x), kind.of(y)
    Z = X - Y * 2.5 + -X + kind.zero()
    assert type(Z) is kind
    assert_allclose(dense(Z.array), -2.5 * y, atol=TIGHT)
    assert dense(kind.zero().array).tolist() == [0.0] * 6
    assert Motion.of(x).dot(Force.of(y)) == pytest.approx(x @ y)


# ---- transforms --------------------------------------------------------------------------------


@seeds
def test_transform_is_phi_on_forces_and_phi_transpose_on_motions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    T, x = random_transform(rng), rng.standard_normal(6)
    assert_allclose(dense((T @ Force.of(x)).array), phi_matrix(T) @ x, atol=TIGHT)
    assert_allclose(dense((T.T @ Motion.of(x)).array), phi_matrix(T).T @ x, atol=TIGHT)


@seeds
def test_transforms_compose_and_invert_as_matrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, B, p = random_transform(rng), random_transform(rng), rng.standard_normal(3)
    assert_allclose(phi_matrix(A @ B), phi_matrix(A) @ phi_matrix(B), atol=TIGHT)
    assert_allclose(dense((A @ B).matrix), dense(A.matrix) @ dense(B.matrix), atol=TIGHT)
    assert_allclose(phi_matrix(A.inv), np.linalg.inv(phi_matrix(A)), atol=TIGHT)
    assert_allclose(dense(A.point(rot.scalars(p))), dense(A.matrix)[:3] @ [*p, 1], atol=TIGHT)
    assert_allclose(dense((A.inv @ A).matrix), np.eye(4), atol=TIGHT)
    assert_allclose(dense(A.aligned.rotation), dense(A.rotation))
    assert dense(A.aligned.position).tolist() == [0.0, 0.0, 0.0]


@seeds
def test_power_does_not_depend_on_the_frame(seed: int) -> None:
    rng = np.random.default_rng(seed)
    T, V, f = random_transform(rng), *rng.standard_normal((2, 6))
    here = (T.T @ Motion.of(V)).dot(Force.of(f))
    assert here == pytest.approx(Motion.of(V).dot(T @ Force.of(f)), abs=TIGHT)


@seeds
def test_transport_carries_cross_products_along(seed: int) -> None:
    rng = np.random.default_rng(seed)
    T, X, Y = random_transform(rng), *map(Motion.of, rng.standard_normal((2, 6)))
    both = (T.T @ X).cross(T.T @ Y) - T.T @ X.cross(Y)
    assert_allclose(dense(both.array), 0, atol=TIGHT)


# ---- inertias ----------------------------------------------------------------------------------


@seeds
def test_spatial_inertia_matches_its_matrix(seed: int) -> None:
    inertia, M = random_inertia(np.random.default_rng(seed))
    assert_allclose(matrix_of(lambda V: inertia @ V), M, atol=TIGHT)
    assert_allclose(dense(inertia.articulated.matrix), M, atol=TIGHT)


@seeds
def test_inertia_parameters_round_trip_and_are_linear(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (A, MA), (B, MB) = random_inertia(rng), random_inertia(rng)
    again = SpatialInertia.of_parameters(A.parameters)
    assert dense(again.parameters).tolist() == dense(A.parameters).tolist()
    assert_allclose(dense((A + B).parameters), dense(A.parameters) + dense(B.parameters))
    assert_allclose(dense((A + B).articulated.matrix), MA + MB, atol=TIGHT)
    names = [A.mass, *A.moment, A.J[0, 0], A.J[0, 1], A.J[0, 2], A.J[1, 1], A.J[1, 2], A.J[2, 2]]
    assert dense(A.parameters).tolist() == dense(names).tolist()


@seeds
def test_congruence_of_both_inertias(seed: int) -> None:
    rng = np.random.default_rng(seed)
    T = random_transform(rng)
    phi = phi_matrix(T)
    rigid, M = random_inertia(rng)
    articulated, P = random_articulated(rng)
    assert_allclose(dense(T.congruence(rigid).articulated.matrix), phi @ M @ phi.T, atol=1e-12)
    moved = T.congruence(articulated)
    assert_allclose(dense(moved.matrix), phi @ P @ phi.T, atol=1e-12)
    assert (moved.matrix == moved.matrix.T).all()


@seeds
def test_shift_moves_the_origin_only(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (rigid, _), l = random_inertia(rng), rot.scalars(rng.standard_normal(3))
    back = rigid.shifted(l).shifted(-l)
    assert_allclose(dense(back.parameters), dense(rigid.parameters), atol=1e-12)
    assert_allclose(
        dense(rigid.shifted(l).moment / rigid.mass), dense(rigid.moment / rigid.mass + l)
    )


@seeds
@each("r", [1, 2, 3, 6])
def test_released_is_the_symmetric_schur_complement(seed: int, r: int) -> None:
    rng = np.random.default_rng(seed)
    articulated, P = random_articulated(rng)
    Ht = rng.standard_normal((6, r))
    H = HingeMap(MotionBasis(tuple(Motion.of(c) for c in Ht.T)))
    U = articulated @ H.T
    D = H @ U
    assert_allclose(dense(D), Ht.T @ P @ Ht, atol=1e-12)
    gain = Gain(U, Pivot(D))
    plus = articulated.released(gain)
    G = P @ Ht @ np.linalg.inv(Ht.T @ P @ Ht)
    scale = np.abs(G).max() * np.abs(P).max()
    assert_allclose(dense(plus.matrix), P - G @ Ht.T @ P, atol=1e-12 * scale)
    assert (plus.matrix == plus.matrix.T).all()
    assert_allclose(dense(plus.matrix) @ Ht, 0, atol=1e-12 * scale)
    x, V = rng.standard_normal(r), rng.standard_normal(6)
    assert_allclose(dense((gain @ rot.scalars(x)).array), G @ x, atol=1e-12 * scale)
    assert_allclose(dense(gain.T @ Motion.of(V)), G.T @ V, atol=1e-12 * scale)


@seeds
def test_bases_multiply_as_matrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, x, f = rng.standard_normal((6, 3)), rng.standard_normal(3), rng.standard_normal(6)
    motions = MotionBasis(tuple(Motion.of(c) for c in A.T))
    forces = ForceBasis(tuple(Force.of(c) for c in A.T))
    assert_allclose(dense((motions @ x).array), A @ x, atol=TIGHT)
    assert_allclose(dense((forces @ x).array), A @ x, atol=TIGHT)
    assert_allclose(dense(HingeMap(motions) @ Force.of(f)), A.T @ f, atol=TIGHT)


@seeds
def test_solving_with_phi_is_the_inverse_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    T, f = random_transform(rng), rng.standard_normal(6)
    back = np.linalg.inv(phi_matrix(T))
    articulated, P = random_articulated(rng)
    assert_allclose(dense(T.solve(Force.of(f)).array), back @ f, atol=1e-12)
    assert_allclose(dense(T.solve_congruence(articulated).matrix), back @ P @ back.T, atol=1e-11)


@seeds
@each("r", [0, 1, 2, 3])
def test_fit_is_least_squares(seed: int, r: int) -> None:
    rng = np.random.default_rng(seed)
    Ht, V = rng.standard_normal((6, r)), rng.standard_normal(6)
    H = HingeMap(MotionBasis(tuple(Motion.of(c) for c in Ht.T)))
    expected = np.linalg.lstsq(Ht, V, rcond=None)[0]
    assert_allclose(dense(H.fit(Motion.of(V))), expected, atol=1e-11)


FREEDOMS = {
    "turn": np.eye(6)[[2]],
    "reversed": -np.eye(6)[[4]],
    "ball": np.eye(6)[:3],
    "free": np.eye(6),
    "oblique": np.array([[0.6, 0.8, 0.0, 0.0, 0.0, 0.0]]),
    "screw": np.array([[0.0, 0.0, 1.0, 0.0, 0.0, 0.2], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]),
}


@seeds
@each("rows", FREEDOMS.values())
@each("armature", [0.0, 0.7])
def test_joined_inertias_solve_as_their_sum(seed: int, rows: Any, armature: float) -> None:
    """(P + S)⁻¹(z + r), S released by the same hinge and H(z⁺ + r) = 0 without armature."""
    rng = np.random.default_rng(seed)
    H, A = hinge(rows), np.full(len(rows), armature, object)
    (P, dense_P), (S_plus, _) = random_articulated(rng), random_articulated(rng)
    G, G_s = P.gain(H, A), S_plus.gain(H, A)
    S, z, r_plus = S_plus.released(G_s), Force.of(rng.normal(size=6)), Force.of(rng.normal(size=6))
    tau = rot.scalars(rng.normal(size=len(rows)))
    eps = tau - H @ z
    rest = r_plus - G_s @ (tau + H @ r_plus)
    joined = Joined(P, S, H, G, P.released(G))
    found = joined.motion(z, z + G @ eps, rest, eps)
    expected = np.linalg.solve(dense_P + dense(S.matrix), dense((z + rest).array))
    assert_allclose(dense(found.array), expected, atol=1e-11)


@seeds
@each("rows", FREEDOMS.values())
def test_known_rows_of_a_gain_are_exact(seed: int, rows: Any) -> None:
    P, dense_P = random_articulated(np.random.default_rng(seed))
    H, x = hinge(rows), np.random.default_rng(seed).normal(size=6)
    G = P.gain(H, np.zeros(len(rows), object))
    expected = dense_P @ rows.T @ np.linalg.inv(rows @ dense_P @ rows.T)
    assert_allclose(dense(G.matrix), expected, atol=1e-11)
    assert_allclose(dense(G.T @ Motion.of(x)), expected.T @ x, atol=1e-11)
    if G.eliminates:
        assert (rows @ dense(G.matrix) == np.eye(len(rows))).all()


# ---- compliances -------------------------------------------------------------------------------


def random_compliance(rng: np.random.Generator, rank: int = 6) -> tuple[Compliance, np.ndarray]:
    root = rng.standard_normal((6, rank))
    Y = rot.scalars(root @ root.T)
    return Compliance(Y[:3, :3], Y[:3, 3:], Y[3:, 3:]), dense(Y)


def hinge(columns: Any) -> HingeMap:
    return HingeMap(MotionBasis(tuple(Motion.of(c.tolist()) for c in columns)))


HINGES: list[Any] = [
    *(np.eye(6)[list(axes)] for axes in ((), (2,), (4,), (0, 3), (0, 1, 2), (2, 3, 4), range(6))),
    -np.eye(6)[[5, 1]],
    *(np.random.default_rng(r).standard_normal((r, 6)) for r in (1, 2, 3, 6)),
    np.vstack((np.eye(6)[1], [0.6, 0.8, 0.0, 0.0, 0.0, 0.0])),
]
"""H of all kinds: coordinates, others, both."""
hinges = each("H", HINGES)


@seeds
def test_compliance_matches_its_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (Y, dense_Y), (Z, dense_Z) = random_compliance(rng), random_compliance(rng, 2)
    F = rng.standard_normal((6, 3))
    assert_allclose(dense(Y.matrix), dense_Y, atol=TIGHT)
    assert_allclose(dense((Y + Z).matrix), dense_Y + dense_Z, atol=TIGHT)
    assert_allclose(dense((Y @ Force.of(F[:, 0])).array), dense_Y @ F[:, 0], atol=TIGHT)
    basis = Y @ ForceBasis(tuple(Force.of(c) for c in F.T))
    assert isinstance(basis, MotionBasis)
    assert_allclose(dense(basis.matrix), dense_Y @ F, atol=TIGHT)
    assert not dense(Compliance.zero().matrix).any()


@seeds
def test_compliance_carried_to_the_child(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (Y, dense_Y), T = random_compliance(rng), random_transform(rng)
    moved, phi = Y.carried(T).matrix, phi_matrix(T)
    assert_allclose(dense(moved), phi.T @ dense_Y @ phi, atol=1e-12 * np.abs(dense_Y).max())
    assert (moved == moved.T).all()


@seeds
@hinges
@each("armature", [0.0, 0.3])
@each("rank", [0, 2, 6])
def test_compliance_through_a_hinge(seed: int, H: Any, armature: float, rank: int) -> None:
    rng = np.random.default_rng(seed)
    (P, dense_P), (Y, dense_Y) = random_articulated(rng), random_compliance(rng, rank)
    A = armature * np.arange(len(H))
    D = H @ dense_P @ H.T + np.diag(A)
    taubar = np.eye(6) - dense_P @ H.T @ np.linalg.solve(D, H)
    expected = taubar.T @ dense_Y @ taubar + H.T @ np.linalg.solve(D, H)
    found = Y.through(P.gain(hinge(H), rot.scalars(A)), hinge(H)).matrix
    scale = 1e-13 * np.linalg.cond(dense_P) * max(1.0, np.abs(dense_Y).max())
    assert_allclose(dense(found), expected, atol=scale)
    assert (found == found.T).all()


@seeds
def test_inverses_solve(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (P, dense_P), (Y, dense_Y) = random_articulated(rng), random_compliance(rng, 6)
    x = rng.standard_normal(6)
    motion, force = P.inv @ Force.of(x), Y.inv @ Motion.of(x)
    assert (type(motion), type(force)) == (Motion, Force)
    assert_allclose(dense_P @ dense(motion.array), x, atol=1e-11)
    assert_allclose(dense_Y @ dense(force.array), x, atol=1e-14 * np.linalg.cond(dense_Y))


# ---- passive and active freedoms ---------------------------------------------------------------


@seeds
@hinges
@each("armature", [0.0, 0.3])
def test_masked_gain_is_that_of_the_passive_rows(seed: int, H: Any, armature: float) -> None:
    rng = np.random.default_rng(seed)
    P, dense_P = random_articulated(rng)
    A = rot.scalars(armature * np.arange(len(H)))
    for bits in itertools.product((0.0, 1.0), repeat=len(H)):
        p = rot.scalars(bits)
        H_p, on = hinge(H).masked(p), np.array(bits, bool)
        whole = [axis if b else None for axis, b in zip(hinge(H).axes, bits, strict=True)]
        assert H_p.axes == whole
        G = P.gain(hinge(H), A, p)
        expected = np.zeros((6, len(H)))
        D = H[on] @ dense_P @ H[on].T + np.diag(dense(A)[on])
        expected[:, on] = dense_P @ H[on].T @ np.linalg.inv(D)
        tolerance = 1e-13 * np.linalg.cond(dense_P)
        assert_allclose(dense(G.matrix), expected, atol=tolerance)
        assert not dense(G.matrix)[:, ~on].any()
        plus = P.released(G).matrix
        scale = tolerance * np.abs(dense_P).max()
        assert_allclose(dense(plus), dense_P - expected @ H @ dense_P, atol=scale)
        assert (plus == plus.T).all()
        x = rng.standard_normal(len(H))
        assert_allclose(dense((G @ rot.scalars(x)).array), expected @ x, atol=10 * tolerance)


# ---- pivots ------------------------------------------------------------------------------------


@seeds
@each("r", range(7))
def test_pivot_against_dense_factorisation(seed: int, r: int) -> None:
    rng = np.random.default_rng(seed)
    root, x = rng.standard_normal((r, r)), rng.standard_normal(r)
    D = root @ root.T + 0.5 * np.eye(r)
    pivot, lower = Pivot(rot.scalars(D)), np.linalg.cholesky(D)
    assert_allclose(dense(pivot.L) @ np.diag(dense(pivot.d)) @ dense(pivot.L).T, D, atol=1e-12)
    assert_allclose(dense(pivot.solve(x)), np.linalg.solve(D, x), atol=1e-11)
    assert_allclose(dense(pivot.root(x)), lower @ x, atol=1e-12)
    assert_allclose(dense(pivot.root_transpose(x)), lower.T @ x, atol=1e-12)
    assert_allclose(dense(pivot.root_solve(x)), np.linalg.solve(lower, x), atol=1e-11)
    assert_allclose(dense(pivot.root_transpose_solve(x)), np.linalg.solve(lower.T, x), atol=1e-11)
    assert float(pivot.logdet) == pytest.approx(np.linalg.slogdet(D)[1], abs=1e-12)


# ---- rotations ---------------------------------------------------------------------------------

ANGLES = [0.0, 1e-300, 1e-160, 1e-9, 1e-4, 0.0316, 0.03163, 0.5, 2.0, 3.0, np.pi - 1e-3,
          np.pi - 1e-9, np.pi - 1e-15]  # fmt: skip
directions = st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda u: np.linalg.norm(u) > 1e-3)


def unit(u: Any) -> np.ndarray:
    return np.asarray(u) / np.linalg.norm(u)


def long_quaternion(w: np.ndarray) -> np.ndarray:
    """The unit quaternion of a rotation vector, by 50-digit arithmetic."""
    with mpmath.workdps(50):
        v: list[Any] = [mpmath.mpf(float(x)) for x in w]
        t: Any = mpmath.sqrt(sum(x * x for x in v))
        s = mpmath.sin(t / 2) / t if t else mpmath.mpf("0.5")
        cosine: Any = mpmath.cos(t / 2)
        return np.array([float(cosine), *(float(s * x) for x in v)])


@pytest.mark.parametrize("angle", [*ANGLES, np.pi, 4.0, 6.28, 7.0])
@given(u=directions)
def test_exp_is_exact_to_rounding(angle: float, u: Any) -> None:
    w = angle * unit(u)
    assert_allclose(dense(rot.exp(w)), long_quaternion(w), rtol=1e-15, atol=5e-16)


@pytest.mark.parametrize("angle", ANGLES)
@given(u=directions)
def test_log_inverts_exp(angle: float, u: Any) -> None:
    w = angle * unit(u)
    assert_allclose(dense(rot.log(rot.exp(w))), w, rtol=1e-14, atol=1e-15 * angle)


def test_log_takes_the_short_way_and_gives_pi_at_half_a_turn() -> None:
    assert_allclose(dense(rot.log((-np.cos(0.1), -np.sin(0.1), 0.0, 0.0))), [0.2, 0, 0])
    assert_allclose(dense(rot.log((0.0, 0.0, 1.0, 0.0))), [0, np.pi, 0])


@seeds
@each("angle", [0.0, 1e-10, 0.3, 2.5, np.pi])
def test_matrix_forms_of_a_rotation_agree(seed: int, angle: float) -> None:
    u = unit(np.random.default_rng(seed).standard_normal(3))
    K = skew(u)
    rodrigues = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
    R = dense(rot.about_axis(u, angle))
    assert_allclose(R, rodrigues, atol=1e-15)
    assert_allclose(dense(rot.from_quaternion(rot.exp(angle * u))), rodrigues, atol=1e-15)
    assert_allclose(R @ R.T, np.eye(3), atol=1e-15)


@seeds
@each("angle", [0.0, 1e-8, 1.0, np.pi - 1e-8, np.pi])
def test_quaternion_of_a_matrix(seed: int, angle: float) -> None:
    w = angle * unit(np.random.default_rng(seed).standard_normal(3))
    q = rot.to_quaternion(rot.from_quaternion(rot.exp(w)))
    assert q[0] >= 0
    assert np.linalg.norm(q) == pytest.approx(1, abs=1e-15)
    expected = dense(rot.exp(w))
    assert min(np.abs(q - expected).max(), np.abs(q + expected).max()) < 1e-14


@seeds
def test_quaternion_algebra_follows_matrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = (rot.normalize(rng.standard_normal(4)) for _ in range(2))
    product = dense(rot.from_quaternion(p)) @ dense(rot.from_quaternion(q))
    assert_allclose(dense(rot.from_quaternion(rot.multiply(p, q))), product, atol=TIGHT)
    inverse = dense(rot.from_quaternion(rot.conjugate(q)))
    assert_allclose(inverse, dense(rot.from_quaternion(q)).T, atol=TIGHT)
    assert np.linalg.norm(dense(p)) == pytest.approx(1, abs=1e-15)


@seeds
def test_a_quaternion_of_any_length_is_the_same_rotation(seed: int) -> None:
    q = np.random.default_rng(seed).standard_normal(4)
    expected = dense(rot.from_quaternion(rot.normalize(q)))
    assert_allclose(dense(rot.from_quaternion(7.5 * q)), expected, atol=TIGHT)


def test_roll_pitch_yaw_are_fixed_axis_angles() -> None:
    x, y, z = np.eye(3)
    expected = dense(rot.about_axis(z, 0.3)) @ dense(rot.about_axis(y, -0.7))
    expected = expected @ dense(rot.about_axis(x, 1.1))
    assert_allclose(dense(rot.from_rpy(1.1, -0.7, 0.3)), expected, atol=1e-15)


def long_exp_translation(w: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The translation of exp([w; v]) from its power series, by 60-digit arithmetic."""
    with mpmath.workdps(60):
        W, x = mpmath.matrix(skew(w).tolist()), mpmath.matrix(v.tolist())
        total, term = mpmath.matrix([0, 0, 0]), x
        for n in range(1, 120):
            total, term = total + term, W * term / (n + 1)
        return np.array([float(a) for a in total])


@each("angle", ANGLES)
@each("seed", range(3))
def test_translation_of_a_screw_and_its_inverse(angle: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    w, v = angle * unit(rng.standard_normal(3)), rng.standard_normal(3)
    p = rot.exp_translation(rot.scalars(w), rot.scalars(v))
    assert_allclose(dense(p), long_exp_translation(w, v), rtol=0, atol=4e-15)
    assert_allclose(dense(rot.log_translation(rot.scalars(w), p)), v, atol=1e-14)


@each("angle", [0.0, 1e-6, 0.03, 0.04, 1.0, 3.0])
def test_functions_take_arrays_as_scalars(angle: float) -> None:
    """A batch is a vector of arrays, and each row is what the row alone gives."""
    rng = np.random.default_rng(0)
    rows = angle * np.apply_along_axis(unit, 1, rng.standard_normal((4, 3)))
    v = rng.standard_normal((4, 3))
    q = rot.exp(rot.vector(*rows.T))
    for i, row in enumerate(rows):
        assert_allclose([float(x[i]) for x in q], dense(rot.exp(row)))
    w = rot.log(q)
    p = rot.exp_translation(rot.vector(*rows.T), rot.vector(*v.T))
    for i, row in enumerate(rows):
        assert_allclose([float(x[i]) for x in w], row, atol=1e-14)
        alone = rot.exp_translation(rot.scalars(row), rot.scalars(v[i]))
        assert_allclose([float(x[i]) for x in p], dense(alone))


# ---- factored rotations ------------------------------------------------------------------------

NEAR = [0.0, 1e-16, 1e-12, 4e-10, 3.67e-6, 0.5, 1.5708, np.pi / 2, np.pi / 2 + 4e-10, 3.14159,
        np.pi, -np.pi / 2, -2.0]  # fmt: skip


@each("last", [None, 0, 1, 2])
def test_constant_rotations_are_products_of_givens_rotations_to_rounding(last: int | None) -> None:
    for angles in itertools.product(NEAR, repeat=3):
        R = dense(rot.from_rpy(*angles))
        factors = decomposed(tuple(R.reshape(9).tolist()), last)
        product = np.eye(3)
        for t in factors:
            product = product @ dense(Rotation(None, (t,)).matrix)
        assert_allclose(product, R, atol=2e-15)
        assert len(factors) <= 3


@each("axis", range(3))
@each("angle", [0.7, np.pi / 2, -np.pi / 2, np.pi])
@seeds
def test_a_givens_rotation_acts_as_its_matrix(axis: int, angle: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    quarter = round(angle / (np.pi / 2)) * np.pi / 2 == angle
    c, s = (
        (round(np.cos(angle)), round(np.sin(angle))) if quarter else (np.cos(angle), np.sin(angle))
    )
    R = Rotation(None, (Givens(axis, float(c), float(s)),))
    matrix = dense(rot.about_axis(rot.scalars(np.eye(3)[axis]), angle))
    v, C = rot.scalars(rng.standard_normal(3)), rot.scalars(rng.standard_normal((3, 3)))
    assert_allclose(dense(R.matrix), matrix, atol=TIGHT)
    assert_allclose(dense(R @ v), matrix @ dense(v), atol=TIGHT)
    assert_allclose(dense(R.T @ v), matrix.T @ dense(v), atol=TIGHT)
    assert_allclose(dense(R.general(C)), matrix @ dense(C) @ matrix.T, atol=TIGHT)
    S = C + C.T
    assert_allclose(dense(R.symmetric(S)), matrix @ dense(S) @ matrix.T, atol=TIGHT)
    assert (R.symmetric(S) == R.symmetric(S).T).all()


@each("axis", [(0, 0, 1), (0, -1, 0), (1, 0, 0), (0.6, 0, 0.8), (0, 0.6, -0.8),
                                  (1e-9, 0, 1), (0.48, 0.6, 0.64)])  # fmt: skip
@seeds
def test_a_hinge_turn_stays_factored_behind_constants(axis: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    u, angle = rot.scalars(unit(axis)), float(rng.uniform(-3, 3))
    turn: Any = np.longdouble(angle)
    A, B = Rotation.of(rot.scalars(random_rotation(rng))), Rotation.about(u, turn)
    dense_A, dense_B = dense(A.matrix), dense(rot.about_axis(u, angle))
    assert_allclose(dense(B.matrix), dense_B, atol=TIGHT)
    both = A @ B
    assert both.dense is None
    assert_allclose(dense(both.matrix), dense_A @ dense_B, atol=TIGHT)
    assert_allclose(dense((both @ B).matrix), dense_A @ dense_B @ dense_B, atol=TIGHT)
    assert_allclose(dense((both @ A).matrix), dense_A @ dense_B @ dense_A, atol=TIGHT)
    v = rot.scalars(rng.standard_normal(3))
    assert_allclose(dense(both.T @ v), (dense_A @ dense_B).T @ dense(v), atol=TIGHT)


# ---- classical motion --------------------------------------------------------------------------


@seeds
def test_rigid_motion_and_its_force_against_the_spatial_form(seed: int) -> None:
    """Classical a is spatial a + ω × v: the same force, transport and crossing of a hinge."""
    rng = np.random.default_rng(seed)
    V, A = (Motion.of(rng.standard_normal(6)) for _ in range(2))
    Delta, rate = (Motion.of(rng.standard_normal(6)) for _ in range(2))
    inertia, _ = random_inertia(rng)
    T = random_transform(rng)

    def classical(V: Motion, A: Motion) -> RigidMotion:
        return RigidMotion(V.angular, A.angular, A.linear + rot.cross(V.angular, V.linear))

    def same(X: RigidMotion, Y: RigidMotion) -> None:
        for x, y in ((X.omega, Y.omega), (X.alpha, Y.alpha), (X.a, Y.a)):
            assert_allclose(dense(x), dense(y), atol=1e-12)

    X = classical(V, A)
    force = inertia @ A + V.cross_force(inertia @ V)
    assert_allclose(dense(inertia.inertial(X).array), dense(force.array), atol=1e-11)
    same(T.T @ X, classical(T.T @ V, T.T @ A))
    beyond = V + Delta
    same(X.through(Delta, rate), classical(beyond, A + beyond.cross(Delta) + rate))


# ---- structure of P⁺ ---------------------------------------------------------------------------


@seeds
@each(
    "axes, A", [([2], [0.0]), ([4], [0.0]), ([2], [0.3]), ([0, 1, 2], [0.0] * 3),
                ([2, 3, 4], [0.0, 0.2, 0.0]), ([0, 1, 2, 3, 4, 5], [0.0] * 6)])  # fmt: skip
@each("sign", [1.0, -1.0])
def test_unit_axes_leave_exact_zeros(
    seed: int, axes: list[int], A: list[float], sign: float
) -> None:
    articulated, P = random_articulated(np.random.default_rng(seed))
    Ht = sign * np.eye(6)[:, axes] + 0.0
    H = HingeMap(MotionBasis(tuple(Motion.of(c) for c in Ht.T)))
    gain = articulated.gain(H, A)
    D = Ht.T @ P @ Ht + np.diag(A)
    G = P @ Ht @ np.linalg.inv(D)
    plus = articulated.released(gain)
    assert_allclose(dense(plus.matrix), P - G @ Ht.T @ P, atol=1e-11)
    assert (plus.matrix == plus.matrix.T).all()
    free = [axis for axis, a in zip(axes, A, strict=True) if a == 0.0]
    assert (dense(plus.matrix)[free] == 0.0).all()
    x, V = rot.scalars(np.ones(len(axes))), Motion.of(np.arange(6.0))
    assert_allclose(dense((gain @ x).array), G @ np.ones(len(axes)), atol=1e-12)
    assert_allclose(dense(gain.T @ V), G.T @ np.arange(6.0), atol=1e-11)


def test_quaternion_of_a_matrix_everywhere() -> None:
    """Against the leading eigenvector of Bar-Itzhack's matrix: any turn, half turns too."""
    rng = np.random.default_rng(0)
    axes = [*rng.standard_normal((20, 3)), *np.eye(3), *-np.eye(3), [1, 1, 0], [1, 0, -1]]
    angles = (0.0, 1e-9, 1.0, 2.0, np.pi - 1e-9, np.pi, np.pi + 1e-9, -np.pi / 2)
    for axis, angle in itertools.product(axes, angles):
        R = rot.about_axis(rot.scalars(np.asarray(axis) / np.linalg.norm(axis)), angle)
        q = dense(rot.quaternion_of(R))
        assert q[0] >= 0.0
        assert np.linalg.norm(q) == pytest.approx(1.0, abs=1e-15)
        assert_allclose(abs(q @ dense(rot.to_quaternion(R))), 1.0, atol=1e-15)
        assert_allclose(dense(rot.from_quaternion(q)), dense(R), atol=1e-15)


def test_perpendicular_completes_a_triple() -> None:
    rng = np.random.default_rng(0)
    for u in (*rng.standard_normal((20, 3)), *np.eye(3), *-np.eye(3)):
        u = u / np.linalg.norm(u)
        a, b = map(dense, rot.perpendicular(rot.scalars(u)))
        frame = np.stack((a, b, u), axis=1)
        assert_allclose(frame.T @ frame, np.eye(3), atol=1e-15)
        assert np.linalg.det(frame) == pytest.approx(1.0)


@each("seed", range(5))
def test_semidefinite_systems_are_solved_where_they_can_be(seed: int) -> None:
    rng = np.random.default_rng(seed)
    E = rng.normal(size=(3, 5)) * 10.0 ** rng.uniform(-3, 3, 5)
    A, b = E.T @ E, E.T @ rng.normal(size=3)
    pivot = SemiPivot(A.astype(object))
    x = np.array(pivot.solve(b.astype(object)), float)
    assert np.abs(A @ x - b).max() <= 1e-9 * np.abs(b).max()
    assert not pivot.regular and pivot.rcond == 0.0
    full = SemiPivot((A[:3, :3]).astype(object))
    assert full.regular and full.rcond <= 1.0


def test_rows_that_are_rounding_alone_count_as_zero() -> None:
    E = np.array([[1.0, 1e-17], [0.0, 3e-17]])
    pivot = SemiPivot((E.T @ E).astype(object))
    assert not pivot.regular and pivot.inverse[1] == 0.0
    assert SemiPivot(np.zeros((2, 2), object)).rcond == 0.0


def smallest_solution(A: Any, b: Any) -> Any:
    """The x of least x*Sx among those with the least |A x − b|, S the diagonal of A."""
    scale = 1.0 / np.sqrt(np.diag(A))
    return scale * (np.linalg.pinv(scale[:, None] * A * scale, 1e-13, True) @ (scale * b))


@each("seed", range(20))
def test_pseudo_inverses_do_not_depend_on_the_order_of_rows_near_changes_of_rank(seed: int) -> None:
    rng = np.random.default_rng(seed)
    E = rng.normal(size=(4, 5))
    E[:, 1] = E[:, 0] + 10.0 ** rng.uniform(-5, 0) * rng.normal(size=4)  # rank 4, nearly 3
    A, b = E.T @ E, E.T @ rng.normal(size=4)
    expected = smallest_solution(A, b)
    for order in (rng.permutation(5) for _ in range(4)):
        inverse = PseudoInverse(A[np.ix_(order, order)].astype(object))
        x = np.array(inverse.solve(b[order].astype(object)), float)
        assert_allclose(E[:, order] @ x, E @ expected, atol=1e-4 * np.abs(E @ expected).max())
        assert np.abs(A[np.ix_(order, order)] @ x - b[order]).max() <= 1e-11 * np.abs(b).max()
        assert np.abs(x).max() <= 1.1 * np.abs(expected).max()
        assert not inverse.regular and inverse.rcond == 0.0
        lesser = PseudoInverse(A[np.ix_(order[:4], order[:4])].astype(object))
        scale = 1.0 / np.sqrt(np.diag(A)[order[:4]])
        true = np.linalg.eigvalsh(scale[:, None] * A[np.ix_(order[:4], order[:4])] * scale)[0]
        if true > 1e-8:
            assert 0.9 * true <= lesser.rcond <= 4.0 * true


def test_contradictions_leave_a_residual_and_no_huge_forces() -> None:
    E = np.random.default_rng(0).normal(size=(3, 5))
    A, null = E.T @ E, np.linalg.svd(E)[2][-1]
    inverse = PseudoInverse(A.astype(object))
    b = E.T @ np.ones(3)
    x = np.array(inverse.solve((b + null).astype(object)), float)
    expected = smallest_solution(A, b + null)
    assert np.abs(A @ expected - (b + null)).max() > 0.1
    assert_allclose(A @ x, A @ expected, atol=1e-3)
    assert np.abs(x).max() < 10.0 * np.abs(expected).max()


def test_rows_without_any_effect_have_no_forces() -> None:
    A = np.diag([1e3, 1e-3, 0.0, 1e-32]).astype(object)
    x = PseudoInverse(A).solve(np.ones(4, object))
    assert_allclose(np.array(x, float), [1e-3, 1e3, 0, 0], rtol=1e-12, atol=1e-6)
    assert_allclose(np.array(PseudoInverse(0.0 * A).solve(np.zeros(4, object)), float), 0.0)


def test_congruence_of_an_inverse() -> None:
    rng = np.random.default_rng(0)
    B, E = rng.normal(size=(4, 4)), rng.normal(size=(4, 3))
    D = B @ B.T
    found = Pivot(D.astype(object)).congruence(E.astype(object))
    assert np.abs(found.astype(float) - E.T @ np.linalg.solve(D, E)).max() < 1e-9
    assert (found == found.T).all()
