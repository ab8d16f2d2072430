"""The oracle itself: dense matrices against algorithms, Pinocchio, physics and each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phipsi as pp
from phipsi.algorithms.mass_matrix import Factor
from phipsi.operators.algebra.expression import IdentityOperator, Leaf
from phipsi.operators.algebra.spaces import JOINT_RATES, SCALARS
from phipsi.operators.algebra.symbols import (
    SYMBOLS,
    A,
    B,
    C,
    C_nu,
    C_s,
    C_xi,
    D,
    D_dot,
    D_half,
    Delta_cross,
    E_phi,
    E_phi_dot,
    E_psi,
    G,
    G_s,
    H,
    H_cross,
    I,
    J,
    K,
    Lambda,
    M,
    Omega,
    Omega_at,
    P,
    P_at,
    P_dot,
    P_p,
    P_plus,
    S,
    S_plus,
    T,
    Upsilon,
    Upsilon_plus,
    V,
    V_cross,
    a,
    alpha,
    b,
    beta,
    beta_dot,
    f,
    gamma,
    l,
    lam,
    m,
    m_dot,
    mass,
    mass_aa,
    mass_ap,
    mass_at,
    mass_by,
    mass_dot,
    mass_pp,
    nu,
    phi,
    phi_dot,
    psi,
    psi_s,
    psi_tilde,
    rebase,
    tau_bar,
    tau_bar_s,
    xi,
)
from phipsi.operators.dense import System, matrix, system
from tests.operators.systems import random_system, systems, vectors
from tests.zoo import MOVING, ONE_DOF, State, close, forests, random_forest

pytestmark = pytest.mark.usefixtures("interpreted")

some = settings(max_examples=settings().max_examples // 12)  # each traces several programs
FREE = random_forest(4, 6, roots=("free",), armature=False, massless=False, kinds=MOVING)


def moving(robot: pp.Robot, **options: Any) -> System:
    s = State(robot)
    return system(robot, s.q, s.v, **options)


def free_forests(**options: Any) -> st.SearchStrategy[pp.Robot]:
    return forests(roots=("free",), armature=False, **options)


def part(bodies: Any) -> Any:
    """The indices of bodies' blocks."""
    rows = (6 * np.array(bodies, int).reshape(-1, 1) + np.arange(6)).ravel()
    return np.ix_(rows, rows)


# ---- against the algorithms ----------------------------------------------------------------------


@some
@given(forests())
def test_the_mass_matrix_and_its_factors(robot: pp.Robot) -> None:
    x = moving(robot)
    q, unit = State(robot).q, np.eye(robot.nv)
    dense = matrix(mass, x)
    scale = 1e-14 * np.linalg.cond(dense) + 1e-12
    close(dense, pp.mass_matrix(robot, q), 1e-13)
    close(matrix(mass.inv, x), pp.mass_matrix_inverse(robot, q), scale)
    close(matrix(mass.logdet, x), pp.mass_matrix_logdet(robot, q), 1e-12)
    factors: dict[Factor, Any] = {"m": m, "m*": m.T, "l": l, "l*": l.T}
    for factor, expression in factors.items():
        ours = pp.mass_matrix_sqrt_product(robot, q, unit, factor=factor).T
        close(matrix(expression, x), ours, scale)


@some
@given(forests())
def test_articulated_inertias_and_gains(robot: pp.Robot) -> None:
    x, ab = moving(robot), pp.articulated_inertias(robot, State(robot).q)
    P_, G_ = matrix(P, x), matrix(G, x)
    close(matrix(D, x), ab.D, 1e-11)
    for i, h in enumerate(robot.hinges):
        own = slice(6 * i, 6 * i + 6)
        close(P_[own, own], ab.P[i], 1e-11)
        close(G_[own, h.v], ab.G[:, h.v], 1e-9)
    assert (P_ == P_.T).all()


@some
@given(forests())
def test_kinematics(robot: pp.Robot) -> None:
    s, x = State(robot), moving(robot)
    names = (robot.bodies[0].name, "tool")
    close(matrix(J("tool"), x), pp.jacobian(robot, s.q, "tool"), 1e-13)
    both = [pp.jacobian(robot, s.q, name) for name in names]
    close(matrix(J(*names), x), np.concatenate(both), 1e-13)
    close(matrix(J("world"), x), np.zeros((6, robot.nv)))
    close(matrix(V, x), pp.velocities(robot, s.q, s.v).ravel(), 1e-13)
    found = matrix(alpha, x, beta_dot=s.a)
    close(found, pp.accelerations(robot, s.q, s.v, s.a).ravel(), 1e-13)


@some
@given(forests())
def test_dynamics_with_gravity_and_external_forces(robot: pp.Robot) -> None:
    s = State(robot)
    x = moving(robot, external=s.external)
    close(matrix(C, x), pp.bias_force(robot, s.q, s.v, external=s.external), 1e-12)
    tau = pp.inverse_dynamics(robot, s.q, s.v, s.a, external=s.external)
    close(matrix(H @ f + A @ beta_dot, x, beta_dot=s.a), tau, 1e-12)
    close(matrix(mass @ beta_dot + C, x, beta_dot=s.a), tau, 1e-12)
    qdd = pp.forward_dynamics(robot, s.q, s.v, s.tau, external=s.external)
    scale = 1e-14 * np.linalg.cond(matrix(mass, x)) + 1e-11
    close(matrix(mass.inv @ (T - C), x, T=s.tau), qdd, scale)
    # [BI] (11), whose last term has no H*
    I_HpsiK = I - H @ psi @ K
    direct = I_HpsiK.T @ D.inv @ (T - H @ psi @ (K @ T + P @ a + b)) - K.T @ psi.T @ a
    close(matrix(direct, x, T=s.tau), qdd, scale)
    frame = robot.bodies[-1].name if robot.frame("tool").body == "world" else "tool"
    by_frame = {frame: s.external[0]}
    pushed = pp.bias_force(robot, s.q, s.v, external=by_frame)
    close(matrix(C, moving(robot, external=by_frame)), pushed, 1e-12)


@some
@given(forests())
def test_body_frames_are_those_that_people_see(robot: pp.Robot) -> None:
    s = State(robot)
    x = moving(robot, external=s.external)
    other = system(robot.equivalent, s.q, s.v, external=s.external)
    for expression in (E_phi, H, V, a, J("tool"), B("body0", "tool"), mass, C):
        close(matrix(expression, other), matrix(expression, x), 1e-11)


@pytest.mark.parametrize("kinds", [*((kind,) for kind in MOVING), MOVING], ids="+".join)
def test_pinocchio(kinds: tuple[str, ...]) -> None:
    pin: Any = pytest.importorskip("pinocchio")
    from tests.agreement.peers import with_normal_z

    robot = with_normal_z(random_forest(2, 5, kinds=kinds, massless=False))
    model = pp.interop.to_pinocchio_model(robot)
    data, s, x = model.createData(), State(robot), moving(robot)
    q, v = pp.interop.to_pinocchio(robot, s.q, s.v, joints=model)
    order = pp.interop.to_pinocchio(robot, s.q, np.arange(robot.nv), joints=model)[1].astype(int)
    ours, swap = np.argsort(order), [3, 4, 5, 0, 1, 2]
    theirs = pin.crba(model, data, q)
    theirs = np.triu(theirs) + np.triu(theirs, 1).T
    close(matrix(mass, x), theirs[np.ix_(ours, ours)], 1e-12)
    close(matrix(C, x), pin.nonLinearEffects(model, data, q, v)[ours], 1e-12)
    inverse = pin.computeMinverse(model, data, q)
    inverse = np.triu(inverse) + np.triu(inverse, 1).T
    pin.computeJointJacobians(model, data, q)
    for i, body in enumerate(robot.bodies):
        local = pin.getJointJacobian(model, data, i + 1, pin.LOCAL)[swap]
        close(matrix(J(body.name), x), local[:, ours], 1e-12)
        close(matrix(Upsilon, x)[part(i)], local @ inverse @ local.T, 1e-11)
    coriolis = pin.computeCoriolisMatrix(model, data, q, v)
    if set(kinds) <= set(ONE_DOF):
        rate = coriolis + coriolis.T
        close(matrix(mass_dot, x), rate[np.ix_(ours, ours)], 1e-11)


# ---- partitions ----------------------------------------------------------------------------------


@some
@given(forests(), st.integers(0, 100))
def test_active_and_passive_blocks(robot: pp.Robot, seed: int) -> None:
    active = np.random.default_rng(seed).random(robot.nv) < 0.5
    x = moving(robot, active=active)
    whole = matrix(mass, x)
    close(matrix(mass_aa, x), whole[np.ix_(active, active)])
    close(matrix(mass_ap, x), whole[np.ix_(active, ~active)])
    close(matrix(mass_pp, x), whole[np.ix_(~active, ~active)])
    locked, released = (moving(robot, active=np.full(robot.nv, x)) for x in (True, False))
    close(matrix(P_p, released), matrix(P, x))
    composite = matrix(phi @ M @ phi.T, x)
    for i in range(robot.nb):
        close(matrix(P_p, locked)[part(i)], composite[part(i)])


def test_active_joints_have_names_or_a_mask() -> None:
    robot = pp.robots.puma560()
    names = [robot.hinges[i].name for i in (0, 3)]
    by_name = system(robot, robot.neutral(), active=names)
    by_mask = system(robot, robot.neutral(), active=np.arange(robot.nv) % 3 == 0)
    assert by_name.passive is not None and (by_name.passive == by_mask.passive).all()
    with pytest.raises(ValueError, match="no hinge 'elbow'"):
        system(robot, robot.neutral(), active=["elbow"])
    with pytest.raises(ValueError, match="active has 2 values, needs 6 truth values"):
        system(robot, robot.neutral(), active=[True, False])


# ---- the dual, and other bases -------------------------------------------------------------------


def check_dual(x: System, tolerance: float) -> None:
    """[BI] Lemma 4.1, its recursion for Υ backwards, and what follows from the definitions."""
    inner = [i for i, p in enumerate(x.parents) if p >= 0]
    close(matrix((P + S) @ Upsilon, x), np.eye(6 * len(x.parents)), tolerance)
    seen = matrix((P_plus + S_plus) @ Upsilon_plus, x)
    close(seen[part(inner)], np.eye(6 * len(inner)), tolerance)
    back = matrix(tau_bar_s.T @ Upsilon @ tau_bar_s + H.T @ C_s @ H, x)
    close(back, matrix(Upsilon_plus, x), tolerance)
    close(matrix(tau_bar_s @ S_plus, x), matrix(S, x), tolerance)
    joseph = tau_bar_s @ S_plus @ tau_bar_s.T + G_s @ A @ G_s.T
    close(matrix(joseph, x), matrix(S, x), tolerance)
    roots = part(x.roots)
    close(matrix(S, x)[roots], np.zeros((6 * len(x.roots),) * 2))
    close(matrix(S_plus, x)[roots], np.zeros((6 * len(x.roots),) * 2))


def check_bases(x: System, tolerance: float) -> None:
    """[BI] Appendix A on every body."""
    for k, body in enumerate(x.bodies):
        T_ = rebase(body)
        close(matrix(T_.T @ mass_at(body) @ T_, x), matrix(mass, x), tolerance)
        close(matrix(Omega_at(body), x), matrix(Omega, x), tolerance)
        P_new, path = matrix(P_at(body), x), [k]
        close(P_new[part(k)], matrix(Lambda, x)[part(k)], tolerance)
        while (p := x.parents[c := path[-1]]) >= 0:
            seen = x.phi[c] @ matrix(S_plus, x)[part(c)] @ x.phi[c].T
            close(P_new[part(p)], seen, tolerance)
            path.append(p)
        others = part([i for i in range(len(x.parents)) if i not in path])
        close(P_new[others], matrix(P, x)[others], tolerance)


@some
@given(free_forests())
def test_duals_of_free_flyers(robot: pp.Robot) -> None:
    check_dual(moving(robot), 1e-9)


@some
@given(systems(free=True))
def test_duals_of_any_system(x: System) -> None:
    check_dual(x, 1e-10)


@some
@given(free_forests())
def test_bases_of_free_flyers(robot: pp.Robot) -> None:
    check_bases(moving(robot), 1e-9)


@some
@given(systems(free=True))
def test_bases_of_any_system(x: System) -> None:
    check_bases(x, 1e-10)


def test_joint_rates_at_another_base() -> None:
    x = moving(FREE)
    V_, beta_ = matrix(V, x).reshape(-1, 6), matrix(beta, x)
    for k, body in enumerate(x.bodies):
        root = k
        while x.parents[root] >= 0:
            root = x.parents[root]
        expected = beta_.copy()
        expected[x.moves == root] = V_[k]
        close(matrix(rebase(body) @ beta, x), expected, 1e-13)
        close(matrix(phi.T @ H.T, x.rerooted(body)) @ expected, V_.ravel(), 1e-12)


@some
@given(systems(free=True, serial=True))
def test_propagation_outward_is_that_of_the_dual(x: System) -> None:
    """Ω = Υ + ψ̃*Υ + Υψ̃ on chains ([BI] (33)), and the same with the dual's ψ_s."""
    close(matrix(Upsilon + psi_tilde.T @ Upsilon + Upsilon @ psi_tilde, x), matrix(Omega, x))
    outward = psi_s - I
    close(matrix(Upsilon + outward.T @ Upsilon + Upsilon @ outward, x), matrix(Omega, x))


# ---- rates ---------------------------------------------------------------------------------------


@some
@given(forests())
def test_rates_of_the_mass_matrix_and_of_transport(robot: pp.Robot) -> None:
    s, x = State(robot), moving(robot)
    C_ = pp.coriolis_matrix(robot, s.q, s.v)
    close(matrix(mass_dot, x), C_ + C_.T, 1e-10)
    close(matrix(m_dot @ m.T + m @ m_dot.T, x), C_ + C_.T, 1e-10)
    close(matrix(E_phi_dot, x), matrix(E_phi @ Delta_cross, x), 1e-10)
    close(matrix(phi_dot, x), matrix(phi @ E_phi_dot @ phi, x), 1e-10)


@some
@given(forests())
def test_coriolis_accelerations_are_what_velocities_change_by(robot: pp.Robot) -> None:
    """d/dt φ*H* β at constant β is φ*a."""
    s, h = State(robot), 1e-4
    ahead, behind = (matrix(V, system(robot, robot.integrate(s.q, t * s.v), s.v)) for t in (h, -h))
    close(matrix(phi.T @ a, moving(robot)), (ahead - behind) / (2 * h), 1e-6)


@some
@given(forests(kinds=ONE_DOF, armature=False))
def test_rates_of_articulated_inertias(robot: pp.Robot) -> None:
    """[DL] Alg 6.1 and Table 4, hinges of one freedom."""
    x = moving(robot)
    close(matrix(P_dot, x), matrix(E_psi @ lam @ E_psi.T, x), 1e-9)
    close(matrix(D_dot, x), matrix(H @ P_dot @ H.T, x), 1e-9)
    for name in ("G_dot", "tau_bar_dot", "E_psi_dot", "phi_dot"):
        rate, own = Leaf.of(SYMBOLS[name]), Leaf.of(SYMBOLS[name.removesuffix("_dot")])
        assert matrix(rate, x).shape == matrix(own, x).shape
    dG = tau_bar @ P_dot @ H.T @ D.inv
    close(matrix(Leaf.of(SYMBOLS["G_dot"]), x), matrix(dG, x), 1e-8)


@some
@given(forests(kinds=ONE_DOF))
def test_derivatives_by_coordinates(robot: pp.Robot) -> None:
    x = moving(robot)
    total, rates = np.zeros((robot.nv, robot.nv)), []
    for h, rate in zip(robot.hinges, matrix(beta, x), strict=True):
        Z = H @ phi @ H_cross(h.name) @ phi @ M @ phi.T @ H.T
        by = matrix(mass_by(h.name), x)
        close(matrix(Z + Z.T, x), by, 1e-10)
        total += rate * by
        rates.append(matrix(beta, x) @ by @ matrix(beta, x))
    close(total, matrix(mass_dot, x), 1e-10)
    close(matrix(gamma, x), np.array(rates), 1e-10)
    close(matrix(gamma, x), matrix(2 * H @ V_cross.T @ phi @ M @ V, x), 1e-10)
    still = system(robot.with_gravity((0, 0, 0)), State(robot).q, State(robot).v)
    close(matrix(mass_dot @ beta - gamma / 2, still), matrix(C, still), 1e-10)


@some
@given(forests())
def test_diagonal_equations(robot: pp.Robot) -> None:
    """The Coriolis term does no work, and the equations are those of motion ([DL] 7)."""
    s = State(robot)
    still = system(robot.with_gravity((0, 0, 0)), s.q, s.v)
    size = float(np.linalg.norm(matrix(nu, still)) * np.linalg.norm(matrix(C_nu, still))) + 1
    assert abs(matrix(nu.T @ C_nu, still)) <= 1e-10 * size
    assert abs(matrix(xi.T @ C_xi - xi.T @ D_dot @ xi / 2, still)) <= 1e-9 * size
    x = moving(robot, external=s.external)
    qdd, h = pp.forward_dynamics(robot, s.q, s.v, s.tau, external=s.external), 1e-4
    ahead, behind = (
        matrix(nu, system(robot, robot.integrate(s.q, t * s.v), s.v + t * qdd)) for t in (h, -h)
    )
    expected = matrix(l @ T - C_nu, x, T=s.tau)
    assert np.abs((ahead - behind) / (2 * h) - expected).max() <= 1e-5 * np.abs(expected).max()


# ---- systems that no robot has -------------------------------------------------------------------


@some
@given(systems())
def test_riccati_identities_hold_on_any_system(x: System) -> None:
    close(matrix(P - E_psi @ P @ E_phi.T, x), matrix(M, x), 1e-11)
    close(matrix((I + H @ phi @ K) @ D @ (I + H @ phi @ K).T, x), matrix(mass, x), 1e-11)
    close(matrix((I + H @ phi @ K) @ (I - H @ psi @ K), x), np.eye(len(x.H)), 1e-11)
    close(matrix(Omega, x), matrix(phi.T @ H.T @ mass.inv @ H @ phi, x), 1e-10)
    close(matrix(psi.inv - phi.inv, x), matrix(K @ H, x), 1e-11)


@some
@given(systems(gain=True))
def test_other_identities_hold_for_any_gain(x: System) -> None:
    close(matrix(psi @ K @ H @ phi, x), matrix(phi - psi, x), 1e-9)
    close(matrix((I - H @ psi @ K) @ H @ phi, x), matrix(H @ psi, x), 1e-9)
    assert (matrix(G, x) == x.given["G"]).all()
    assert np.abs(matrix(P - E_psi @ P @ E_phi.T - M, x)).max() > 1e-2


@some
@given(systems(serial=True))
def test_vectors_are_flat_and_may_be_given_by_body(x: System) -> None:
    given_ = vectors(x, "T", "a", "b", "beta", "beta_dot")
    flat = {name: value.ravel() for name, value in given_.items()}
    assert (matrix(C, x, **given_) == matrix(C, x.giving(**flat))).all()
    assert matrix(C, x, **given_).shape == (len(x.H),)
    assert matrix(beta.T @ T, x, **given_).shape == ()
    close(matrix(beta.T @ T, x, **given_), flat["beta"] @ flat["T"])
    close(matrix(beta.T, x, **given_), flat["beta"])
    close(matrix(C, x, C=flat["T"]), flat["T"])


# ---- every symbol --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SYMBOLS)
def test_every_symbol_has_a_matrix_of_its_kind(name: str) -> None:
    symbol = SYMBOLS[name]
    hinge = next(h.name for h in FREE.hinges if h.kind.nv == 1)
    where = {"B": "tool", "J": "tool", "mass_by": hinge, "H_cross": hinge}.get(name, "body1")
    s = State(FREE)
    x = moving(FREE, active=[hinge]).giving(T=s.tau, beta_dot=s.a)
    leaf = Leaf.of(symbol, (where,) if symbol.framed else ())
    spaces = leaf.codomain, leaf.domain
    dense = matrix(leaf, x)
    assert dense.shape == tuple(x.size(space) for space in spaces if space != SCALARS)
    assert np.isfinite(dense).all()
    assert symbol.dense or symbol.rate_of is not None or symbol.definition or symbol.given
    if symbol.symmetric:
        close(dense, dense.T, 1e-9)
    if symbol.diagonal:
        close(np.where(_blocks(x, *spaces), dense, 0.0), dense, 1e-13)


def _blocks(x: System, *spaces: Any) -> np.ndarray:
    assert x.passive is not None
    owner = {
        "body": np.repeat(np.arange(len(x.parents)), 6),
        "joint": x.moves,
        "active": x.moves[~x.passive],
        "passive": x.moves[x.passive],
    }
    row, column = (owner[space.size] for space in spaces)
    return row[:, None] == column


# ---- what a system lacks -------------------------------------------------------------------------

ROBOT = pp.robots.puma560()
AT_REST = system(ROBOT, ROBOT.neutral())
ABSTRACT = random_system(1).giving(**vectors(random_system(1), "beta"))


@pytest.mark.parametrize(
    ("expression", "on", "sentence"),
    [
        (V, AT_REST, r"^β \(joint rates\) is not known of this system: give it, beta=…$"),
        (C, AT_REST, r"^β \(joint rates\) is not known"),
        (mass_dot, AT_REST, r"^β \(joint rates\) is not known"),
        (mass @ beta_dot, AT_REST, r"^β̇ \(joint accelerations\) .*: give it, beta_dot=…$"),
        (T, AT_REST, r"^T \(joint forces\) .*: give it, T=…$"),
        (S, AT_REST, "^body 'link1' is no free base: one has six freedoms, no armature$"),
        (mass_at("link2"), AT_REST, "^body 'link1' is no free base"),
        (rebase("link9"), AT_REST, "^there is no body 'link9'; there are 'link1', "),
        (mass_at("link9"), AT_REST, "^there is no body 'link9'; there are 'link1', "),
        (mass_aa, AT_REST, r"^active and passive joints are not told apart: system\(robot, q, "),
        (Leaf.of(SYMBOLS["D_p"]), AT_REST, "^active and passive joints are not told apart"),
        (J("hand"), AT_REST, "^there is no frame 'hand'; there are 'world', 'link1', "),
        (mass_by("elbow"), AT_REST, "^there is no hinge 'elbow'; there are "),
        (mass_by("hinge0"), moving(FREE), "^hinge 'hinge0' has not one freedom, but 6$"),
        (P_at("link1", "link2"), AT_REST, r"^P′\('link1', 'link2'\): P_at takes one name$"),
        (E_phi_dot, ABSTRACT, "^the rate of E_φ is not known: this system does not move$"),
        (a, ABSTRACT, "^a .* is not known of this system: give it, a=…$"),
        (b, ABSTRACT, "^b .* is not known of this system: give it, b=…$"),
        (E_phi.inv, AT_REST, "^E_φ has no inverse on this system: singular matrix$"),
        (E_phi.logdet, AT_REST, r"^log det\(E_φ\): the determinant is not positive$"),
        (
            D_half,
            ABSTRACT.giving(D=-np.eye(len(ABSTRACT.H))),
            "^D½ cannot be computed on this system: matrix is not positive definite$",
        ),
        (I, AT_REST, "^I or 0 alone has no size"),
    ],
)
def test_one_sentence_says_what_is_missing(expression: Any, on: System, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        matrix(expression, on)


def test_values_must_fit() -> None:
    with pytest.raises(ValueError, match=r"^T has shape \(5,\), and needs \(6, 1\)$"):
        matrix(T, AT_REST, T=np.ones(5))
    with pytest.raises(ValueError, match=r"^tau_x=… gives nothing a value"):
        matrix(T, AT_REST, tau_x=np.ones(6))
    with pytest.raises(ValueError, match=r"^q has shape \(2, 6\), and needs \(6,\)$"):
        system(ROBOT, np.zeros((2, 6)))
    with pytest.raises(ValueError, match="fixed to the world"):
        system(ROBOT, ROBOT.neutral(), external={"world": np.ones(6)})


def test_a_result_is_the_callers_own() -> None:
    matrix(H, AT_REST)[:] = 7.0
    close(matrix(H, AT_REST), matrix(H @ I, AT_REST))
    assert matrix(IdentityOperator.of(JOINT_RATES), AT_REST).shape == (6, 6)
    assert np.abs(matrix(H, AT_REST)).max() <= 1.0


def test_a_robot_without_bodies() -> None:
    x = system(pp.Builder("nothing").build(), np.zeros(0), np.zeros(0), active=[])
    assert matrix(mass.inv, x).shape == matrix(mass_pp, x).shape == (0, 0)
    assert matrix(C, x).shape == (0,)
    assert matrix(mass.logdet, x) == 0.0
