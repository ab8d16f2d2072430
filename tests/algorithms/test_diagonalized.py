"""Diagonalized dynamics against dense factors, differences, closed forms and trajectories."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings

import phipsi as pp
from phipsi.algorithms.diagonalized import RootKind
from phipsi.algorithms.mass_matrix import Factor
from phipsi.operators.algebra import symbols as o
from phipsi.operators.dense import matrix, system
from phipsi.spatial import Pivot
from phipsi.spatial import rotation as rot
from phipsi.spatial.roots import root_of
from tests.algorithms.test_base_invariant import runge_kutta
from tests.algorithms.test_under_actuated import (
    ROBOTS,
    along,
    coordinate_rates,
    polar,
    robots,
    still,
)
from tests.zoo import MOVING, ONE_DOF, State, close, forests, random_forest

law = settings(max_examples=settings().max_examples // 16)
FORMS: dict[str, dict[str, Any]] = {
    "cholesky": {}, "symmetric": {"root": "symmetric"}, "unnormalized": {"normalized": False},
}  # fmt: skip
forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
some = pytest.mark.parametrize(
    ("robot", "form"), [*zip(ROBOTS.values(), FORMS.values(), strict=True)], ids=FORMS
)
ROOTS: tuple[RootKind, ...] = get_args(RootKind)
roots = pytest.mark.parametrize("root", ROOTS)


pytestmark = pytest.mark.usefixtures("interpreted")


def outboard(robot: pp.Robot) -> np.ndarray:
    """For each pair of freedoms: does the second move with the first, or belong to its hinge?"""
    below = np.eye(robot.nb, dtype=bool)
    for i, p in enumerate(robot.parents):
        if p >= 0:
            below[:, i] |= below[:, p]
    owner = np.concatenate([np.full(h.kind.nv, i) for i, h in enumerate(robot.hinges)])
    return below[np.ix_(owner, owner)]


def workless(nu: np.ndarray, C: Any) -> None:
    """ν*C = 0, to rounding of ν and C; of ν where C itself is rounding."""
    size = float(np.linalg.norm(nu))
    assert abs(nu @ C) <= 1e-12 * size * max(1e-2 * size, float(np.linalg.norm(C)))


# ---- rates and moments --------------------------------------------------------------------------


@law
@given(forests())
def test_factors_of_the_mass_matrix(robot: pp.Robot) -> None:
    """𝓜 = mm*, block triangular, with the roots of D on its diagonal; m* and ℓ, ℓ* belong to it."""
    s = State(robot)
    at, units = (robot, s.q), np.eye(robot.nv)
    mass = matrix(o.mass, system(robot, s.q))
    D = pp.articulated_inertias(robot, s.q).D
    scale = 1e-11 + 1e-14 * np.linalg.cond(mass)
    for name, form in FORMS.items():
        m = pp.applied_moments(*at, units, **form).T
        assert not m[~outboard(robot)].any()
        for h in robot.hinges:
            L, expected = m[h.v, h.v], np.eye(h.kind.nv)
            if name == "unnormalized":
                assert (L == expected).all()
                continue
            if name == "cholesky":
                expected = np.linalg.cholesky(D[h.v, h.v])
                assert (np.triu(L, 1) == 0.0).all()
            else:
                close(L, L.T, 1e-13)
                assert (np.linalg.eigvalsh(L) > 0.0).all()
            close(L @ L.T, D[h.v, h.v], 1e-12)
        middle = D if name == "unnormalized" else units
        close(m @ middle @ m.T, mass)
        close(pp.total_rates(*at, units, **form), m, 1e-12)  # rows are columns of m*
        inverse = np.linalg.inv(m)
        close(pp.working_moments(*at, units, **form).T, inverse, scale)
        close(pp.joint_rates(*at, units, **form), inverse, scale)


@some
def test_round_trips_energy_and_power(robot: pp.Robot, form: dict[str, Any]) -> None:
    s = State(robot, (2,))
    at = robot, s.q
    nu, eps = pp.total_rates(*at, s.v, **form), pp.working_moments(*at, s.tau, **form)
    close(pp.joint_rates(*at, nu, **form), s.v)
    close(pp.applied_moments(*at, eps, **form), s.tau)
    close(pp.total_rates(*at, pp.joint_rates(*at, s.w, **form), **form), s.w)
    close(pp.working_moments(*at, pp.applied_moments(*at, s.w, **form), **form), s.w)
    D = pp.articulated_inertias(*at).D if "normalized" in form else np.eye(robot.nv)
    double = np.einsum("bi,bij,bj->b", s.v, pp.mass_matrix(*at), s.v)
    close(np.einsum("bi,...ij,bj->b" if D.ndim == 2 else "bi,bij,bj->b", nu, D, nu), double)
    close((nu * eps).sum(-1), (s.v * s.tau).sum(-1))


def test_the_lower_root_is_that_of_the_square_root_product() -> None:
    robot = random_forest(5, 5)
    s = State(robot)
    programs: dict[Factor, Any] = {
        "m": pp.applied_moments, "m*": pp.total_rates,
        "l": pp.working_moments, "l*": pp.joint_rates,
    }  # fmt: skip
    for factor, program in programs.items():
        expected = pp.mass_matrix_sqrt_product(robot, s.q, s.w, factor=factor)
        close(program(robot, s.q, s.w), expected, 1e-12)


# ---- Coriolis terms -----------------------------------------------------------------------------


@law
@given(forests())
def test_coriolis_terms_do_no_work(robot: pp.Robot) -> None:
    """ν*C_ν = 0 for both roots, ξ*C_ξ = ½ξ*Ḋξ; gravity is no part of them."""
    s = State(robot)
    for root in ROOTS:
        nu = pp.total_rates(robot, s.q, s.v, root=root)
        C = pp.diagonal_coriolis(robot, s.q, nu, root=root)
        workless(nu, C)
    xi = pp.total_rates(robot, s.q, s.v, normalized=False)
    C = pp.diagonal_coriolis(robot, s.q, xi, normalized=False)
    D_dot = pp.articulated_inertia_rates(robot, s.q, s.v).D_dot
    assert abs(xi @ C - 0.5 * xi @ D_dot @ xi) <= 1e-11 * max(1.0, float(np.abs(xi * C).sum()))


@robots
@roots
def test_coriolis_terms_by_their_definition(robot: pp.Robot, root: RootKind) -> None:
    """C_ν = ℓC − ṁ*β, ṁ by differences: valid for every hinge and every root."""
    s = State(robot)
    nu = pp.total_rates(robot, s.q, s.v, root=root)
    bias = pp.bias_force(still(robot), s.q, s.v)
    rate = along(robot, s.q, s.v, 0 * s.v, lambda q, v: pp.total_rates(robot, q, v, root=root))
    expected = pp.working_moments(robot, s.q, bias, root=root) - rate
    assert np.abs(expected).max() > 0.1
    close(pp.diagonal_coriolis(robot, s.q, nu, root=root), expected, 1e-8)


@robots
def test_coriolis_terms_without_normalization_by_their_definition(robot: pp.Robot) -> None:
    """C_ξ = (I − HψK)C − D d(I + HφK)*/dt β, and C_ξ = D½(C_ν + Ḋ½*ξ)."""
    s = State(robot)
    xi = pp.total_rates(robot, s.q, s.v, normalized=False)
    bias = pp.bias_force(still(robot), s.q, s.v)
    rate = along(
        robot, s.q, s.v, 0 * s.v, lambda q, v: pp.total_rates(robot, q, v, normalized=False)
    )
    D = pp.articulated_inertias(robot, s.q).D
    expected = pp.working_moments(robot, s.q, bias, normalized=False) - D @ rate
    found = pp.diagonal_coriolis(robot, s.q, xi, normalized=False)
    close(found, expected, 1e-8)
    half = along(
        robot, s.q, s.v, 0 * s.v,
        lambda q, v: np.linalg.cholesky(pp.articulated_inertias(robot, q).D),
    )  # fmt: skip
    nu = pp.total_rates(robot, s.q, s.v)
    C = pp.diagonal_coriolis(robot, s.q, nu)
    close(found, np.linalg.cholesky(D) @ (C + half.T @ xi), 1e-8)


@some
def test_parts_are_all_of_it(robot: pp.Robot, form: dict[str, Any]) -> None:
    """And quadratic in the rates, each."""
    s = State(robot)
    nu = pp.total_rates(robot, s.q, s.v, **form)
    parts = pp.diagonal_coriolis(robot, s.q, nu, parts=True, **form)
    assert isinstance(parts, pp.CoriolisParts)
    close(sum(parts), pp.diagonal_coriolis(robot, s.q, nu, **form), 1e-12)
    for one, two in zip(
        parts, pp.diagonal_coriolis(robot, s.q, -2.0 * nu, parts=True, **form), strict=True
    ):
        close(4.0 * one, two, 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_parts_are_the_papers_closed_forms(seed: int) -> None:
    """[DL] Lemma 7.3 with dense matrices and Ṗ by differences: hinges of one freedom, A = 0."""
    robot = still(random_forest(seed, 4, kinds=ONE_DOF, armature=False))
    s = State(robot)
    dense = system(robot, s.q, s.v)
    V_plus = o.E_phi.T @ o.V
    closed = (
        o.H @ o.psi @ o.P_dot @ o.H.T @ o.xi,
        -o.H @ o.psi @ o.V_cross.T @ o.M @ o.V,
        -o.H @ o.psi @ o.Delta_cross @ o.P_plus @ V_plus,
    )
    past, present, future = (matrix(x, dense) for x in closed)
    xi = matrix(o.xi, dense)
    found = pp.diagonal_coriolis(robot, s.q, xi, parts=True, normalized=False)
    assert isinstance(found, pp.CoriolisParts)
    close(found.past, past, 1e-8)
    close(found.present, present)
    close(found.future, future)
    D, D_dot = (np.diag(matrix(x, dense)) for x in (o.D, o.D_dot))
    half = pp.diagonal_coriolis(robot, s.q, np.sqrt(D) * xi, parts=True)
    assert isinstance(half, pp.CoriolisParts)
    close(half.past, (past - 0.5 * D_dot * xi) / np.sqrt(D), 1e-8)
    close(half.present, present / np.sqrt(D))
    close(half.future, future / np.sqrt(D))


def test_parts_of_robots_that_lack_them() -> None:
    """Nothing outboard: no past. A base at rest: no future. Sliders: none at all."""
    one = still(random_forest(3, 1, kinds=("spherical",), armature=False))
    s = State(one)
    parts = pp.diagonal_coriolis(one, s.q, s.v, parts=True)
    assert isinstance(parts, pp.CoriolisParts)
    close(parts.past, np.zeros(3), 1e-13)
    close(parts.future, np.zeros(3), 1e-13)
    assert np.abs(parts.present).max() > 1e-3
    sliders = still(random_forest(4, 4, kinds=("prismatic",), massless=False))
    s = State(sliders)
    close(pp.diagonal_coriolis(sliders, s.q, s.v), np.zeros(sliders.nv), 1e-13)


@pytest.mark.parametrize("r", [1.0, 1e-4, 1e-8])
def test_small_inertia_is_still_right(r: float) -> None:
    """A point mass near the axis of a turning slide, D = mr²: ν = √m (rθ̇, ṙ) and
    C_ν = √m (ṙθ̇, −rθ̇²)."""
    robot, q, v = polar(), np.array([0.4, r]), np.array([3.0, 0.5])
    nu, C = np.sqrt(2.0) * np.array([[3.0 * r, 0.5], [1.5, -9.0 * r]])
    assert pp.total_rates(robot, q, v) == pytest.approx(nu, rel=1e-12)
    assert pp.joint_rates(robot, q, nu) == pytest.approx(v, rel=1e-12)
    assert pp.diagonal_coriolis(robot, q, nu) == pytest.approx(C, rel=1e-9)


# ---- equations of motion ------------------------------------------------------------------------


@robots
@forms
def test_total_rates_change_as_forward_dynamics_say(robot: pp.Robot, form: dict[str, Any]) -> None:
    """ν̇ by differences along the ordinary motion, with gravity and external forces; and
    ν̇ + C_ν = ℓ(T − C_g), or Dξ̇ + C_ξ = κ."""
    s = State(robot)
    nu = pp.total_rates(robot, s.q, s.v, **form)
    found = pp.diagonal_forward_dynamics(robot, s.q, nu, s.tau, external=s.external, **form)
    qdd = pp.forward_dynamics(robot, s.q, s.v, s.tau, external=s.external)
    rate = along(robot, s.q, s.v, qdd, lambda q, v: pp.total_rates(robot, q, v, **form))
    close(found, rate, 1e-8)
    held = pp.bias_force(robot, s.q, 0 * s.v, external=s.external)
    eps = pp.working_moments(robot, s.q, s.tau - held, **form)
    D = pp.articulated_inertias(robot, s.q).D if "normalized" in form else np.eye(robot.nv)
    close(D @ found + pp.diagonal_coriolis(robot, s.q, nu, **form), eps, 1e-9)


@pytest.mark.parametrize("kind", MOVING)
def test_every_hinge_kind(kind: str) -> None:
    """At the root, inside and at the tip; one body alone."""
    for n, armature in ((3, False), (2, True), (1, False)):
        robot = random_forest(7, n, kinds=(kind,), branching=False, armature=armature)
        s = State(robot)
        qdd = pp.forward_dynamics(robot, s.q, s.v, s.tau)
        for root in ROOTS[: robot.hinges[0].kind.nv]:
            nu = pp.total_rates(robot, s.q, s.v, root=root)
            found = pp.diagonal_forward_dynamics(robot, s.q, nu, s.tau, root=root)

            def rates(q: Any, v: Any, robot: pp.Robot = robot, root: RootKind = root) -> Any:
                return pp.total_rates(robot, q, v, root=root)

            close(found, along(robot, s.q, s.v, qdd, rates), 1e-8)
            C = pp.diagonal_coriolis(robot, s.q, nu, root=root)
            workless(nu, C)


def ordinary(robot: pp.Robot, tau: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The rate of (q, v) in one row, over 0.2 s."""
    kernel, nq = pp.forward_dynamics.compile(robot), robot.nq

    def rate(x: np.ndarray) -> np.ndarray:
        q, v = x[:nq], x[nq:]
        return 0.2 * np.concatenate((coordinate_rates(robot, q, v), kernel(q, v, tau)))

    return rate


def diagonal(
    robot: pp.Robot, tau: np.ndarray, form: dict[str, Any]
) -> Callable[[np.ndarray], np.ndarray]:
    """The rate of (q, ν) in one row, over 0.2 s."""
    kernel, nq = pp.diagonal_forward_dynamics.compile(robot, **form), robot.nq
    back = pp.joint_rates.compile(robot, **form)

    def rate(x: np.ndarray) -> np.ndarray:
        q, nu = x[:nq], x[nq:]
        v = back(q, nu)
        return 0.2 * np.concatenate((coordinate_rates(robot, q, v), kernel(q, nu, tau)))

    return rate


@forms
def test_both_equations_of_motion_have_the_same_trajectories(form: dict[str, Any]) -> None:
    kinds = ("universal", "spherical", "planar", "helical")
    robot = random_forest(18, 3, kinds=kinds, massless=False)
    s = State(robot)
    v = 0.5 * s.v
    end = runge_kutta(ordinary(robot, s.tau), np.concatenate((s.q, v)), 40)
    nu = pp.total_rates(robot, s.q, v, **form)
    other = runge_kutta(diagonal(robot, s.tau, form), np.concatenate((s.q, nu)), 40)
    q, nq = other[: robot.nq], robot.nq
    assert np.abs(q - s.q).max() > 0.02
    close(q, end[:nq], 1e-8)
    close(pp.joint_rates(robot, q, other[nq:], **form), end[nq:], 1e-7)


def test_a_batch_is_a_loop_of_singles() -> None:
    robot = random_forest(16, 4)
    s = State(robot, (3, 2))
    for form in FORMS.values():
        whole = pp.diagonal_forward_dynamics(robot, s.q, s.v, s.tau, external=s.external, **form)
        for i in np.ndindex(3, 2):
            one = pp.diagonal_forward_dynamics(
                robot, s.q[i], s.v[i], s.tau[i], external=s.external[i], **form
            )
            close(whole[i], one, 1e-12)


def test_single_precision() -> None:
    robot = pp.robots.space_arm()
    s = State(robot, (3,))
    small = [x.astype(np.float32) for x in (s.q, s.v, s.tau)]
    for form in FORMS.values():
        found = pp.diagonal_forward_dynamics(robot, *small, **form)
        assert found.dtype == np.float32
        close(found, pp.diagonal_forward_dynamics(robot, s.q, s.v, s.tau, **form), 1e-3)


def test_equal_eigenvalues_in_single_precision() -> None:
    """A ball with a slider through it: D of the free root has them, and nothing to turn."""
    builder = pp.Builder("ball", gravity=(0, 0, 0)).body("ball", mass=1, inertia=(1, 1, 1))
    builder.hinge("float", "free", "world", "ball").body("rod", mass=1, inertia=(1, 1, 1))
    robot = builder.hinge("slide", "prismatic", "ball", "rod", axis=(1, 0, 0)).build()
    q, v = robot.neutral(), np.ones(robot.nv)
    expected = pp.total_rates(robot, q, v, root="symmetric")
    single = q.astype(np.float32), v.astype(np.float32)
    close(pp.total_rates(robot, *single, root="symmetric"), expected, 1e-5)


# ---- rates of articulated inertias --------------------------------------------------------------


@law
@given(forests())
def test_articulated_inertia_rates_are_differences(robot: pp.Robot) -> None:
    s = State(robot)
    found = pp.articulated_inertia_rates(robot, s.q, s.v)
    for rate, name in zip(found, "PDG", strict=True):

        def value(q: Any, v: Any, name: str = name) -> Any:
            return getattr(pp.articulated_inertias(robot, q), name)

        close(rate, along(robot, s.q, s.v, 0 * s.v, value), 1e-7)
    assert (found.P_dot == np.swapaxes(found.P_dot, -1, -2)).all()
    assert (found.D_dot == found.D_dot.T).all()


# ---- roots of small matrices --------------------------------------------------------------------


def dense(x: Any) -> np.ndarray:
    return np.asarray(x, float)


def spd(rng: np.random.Generator, r: int, condition: float) -> np.ndarray:
    """Random axes, eigenvalues from 1 down to 1/condition."""
    Q = np.linalg.qr(rng.normal(size=(r, r)))[0]
    values = condition ** -np.linspace(0.0, 1.0, r) if r > 1 else np.ones(1)
    D = (Q * values) @ Q.T
    return 0.5 * (D + D.T)


def applied(function: Callable[[Any], Any], r: int) -> np.ndarray:
    return np.stack([dense(function(rot.scalars(e))) for e in np.eye(r)], axis=1)


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e6, 1e10])
@pytest.mark.parametrize("r", range(1, 7))
def test_roots_and_their_rates(r: int, condition: float) -> None:
    """S² = D and SṠ + ṠS = Ḋ; ℒℒ* = D and ℒ̇ℒ* + ℒℒ̇* = Ḋ."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        D, rate = spd(rng, r, condition), rng.normal(size=(r, r))
        rate = rate + rate.T
        for kind in ("symmetric", "cholesky"):
            root = root_of(Pivot(rot.scalars(D)), kind)
            S = applied(root.root, r)
            S_dot = applied(partial(root.root_rate, rot.scalars(rate)), r)
            if kind == "symmetric":
                assert np.abs(S - S.T).max() <= 1e-14
                assert np.linalg.eigvalsh(S)[0] > 0.0
                assert np.abs(S_dot - S_dot.T).max() <= 1e-12 * np.abs(S_dot).max()
            else:
                assert not np.triu(S, 1).any() and not np.triu(S_dot, 1).any()
            assert np.abs(S @ S.T - D).max() <= 1e-14
            size = np.abs(S).max() * np.abs(S_dot).max() + 1.0
            assert np.abs(S @ S_dot.T + S_dot @ S.T - rate).max() <= 1e-13 * size
            close(applied(root.root_transpose, r), S.T, 1e-14)
            for solve, matrix_ in ((root.root_solve, S), (root.root_transpose_solve, S.T)):
                product = applied(solve, r) @ matrix_
                assert np.abs(product - np.eye(r)).max() <= 1e-14 * np.sqrt(condition) * 10


SPECIAL = {
    "unit": np.eye(6), "diagonal": np.diag([1.0, 1.0, 2.0]), "repeated": np.eye(5) + np.ones(5),
    "graded": np.diag([3.0, 1.0, 1e-8, 2.0]), "two": np.array([[2.0, -2.0], [-2.0, 3.0]]),
    "small": 1e-12 * spd(np.random.default_rng(0), 6, 1e3),
    "large": 1e12 * spd(np.random.default_rng(1), 6, 1e3),
}  # fmt: skip


@pytest.mark.parametrize("D", SPECIAL.values(), ids=SPECIAL)
def test_symmetric_roots_of_special_matrices(D: np.ndarray) -> None:
    """Eigenvalues that are equal, none to turn, or of any size."""
    r = len(D)
    S = applied(root_of(Pivot(rot.scalars(D)), "symmetric").root, r)
    assert np.abs(S @ S - D).max() <= 1e-14 * np.abs(D).max()
    assert np.abs(S - S.T).max() <= 1e-14 * np.abs(S).max()


# ---- errors and costs ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program", [pp.total_rates, pp.joint_rates, pp.working_moments, pp.applied_moments,
                pp.diagonal_coriolis], ids=lambda x: x.name)  # fmt: skip
def test_unknown_roots_are_refused(program: Any) -> None:
    robot = pp.robots.double_pendulum()
    with pytest.raises(ValueError, match=r"^root 'qr' is not one of cholesky, symmetric$"):
        program(robot, np.zeros(2), np.ones(2), root="qr")
    with pytest.raises(TypeError, match="normalized is 'no', needs a bool"):
        program(robot, np.zeros(2), np.ones(2), normalized="no")
    with pytest.raises(ValueError, match=r"has shape \(3,\), needs \(\.\.\., 2\)"):
        program(robot, np.zeros(2), np.ones(3))


@pytest.mark.parametrize(
    ("program", "options"),
    [
        (pp.total_rates, {}),
        (pp.joint_rates, {}),
        (pp.working_moments, {}),
        (pp.applied_moments, {}),
        (pp.articulated_inertia_rates, {}),
        (pp.diagonal_coriolis, {}),
        (pp.diagonal_coriolis, {"parts": True}),
        (pp.diagonal_forward_dynamics, {}),
    ],
    ids=lambda x: "-".join(x) if isinstance(x, dict) else x.name,
)
def test_cost_is_linear(program: Any, options: dict[str, Any]) -> None:
    first, second, third = (
        program.graph(pp.robots.chain(n), **options).operations for n in (8, 16, 32)
    )
    assert third - second == pytest.approx(2 * (second - first), rel=0.03)


def test_roots_where_nothing_is_felt() -> None:
    """A massless arm without reach: D = 0 there, and m is known all the same."""
    builder = pp.Builder("arm").body("boom", mass=0)
    builder.hinge("turn", "revolute", "world", "boom", axis=(0, 0, 1))
    builder.body("load", mass=2).hinge("slide", "prismatic", "boom", "load", axis=(1, 0, 0))
    robot, q = builder.build(), np.zeros(2)
    for factor in ("m", "m*"):
        found = pp.mass_matrix_sqrt_product(robot, q, np.ones(2), factor=factor)
        np.testing.assert_array_equal(found, [0.0, np.sqrt(2.0)])


def test_roots_are_named_even_where_there_is_none() -> None:
    robot = pp.robots.double_pendulum()
    with pytest.raises(ValueError, match="root 'bogus' is not one of cholesky, symmetric"):
        pp.total_rates(robot, np.zeros(2), np.zeros(2), normalized=False, root="bogus")  # type: ignore[arg-type]
