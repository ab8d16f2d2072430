"""Expressions on robots: lowered to sweeps, they give what dense algebra gives, in O(N)."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import phipsi as pp
from phipsi.algorithms.mass_matrix import Factor
from phipsi.operators import *
from phipsi.operators import Equation, Expression, SpaceError, parse
from phipsi.operators.algebra.expression import Inverse, walk
from phipsi.operators.dense import matrix, system
from phipsi.operators.lowering.compute import compute
from phipsi.operators.lowering.dataflow import LoweringError
from phipsi.operators.lowering.execute import Execution
from phipsi.operators.lowering.plan import Plan, lower, planned
from phipsi.operators.lowering.program import as_program
from tests.operators import by_hand
from tests.operators.expressions import expressions
from tests.zoo import MOVING, State, close, random_forest

pytestmark = pytest.mark.usefixtures("interpreted")


ARM = pp.robots.puma560()
S_ = State(ARM)
J_t, B_t = J("tool"), B("tool")
OPERATORS = [
    H, M, A, P, P_plus, D, D_half, G, tau, tau_bar, E_phi, phi, phi_tilde, K, E_psi, psi, psi_tilde,
    Omega, Upsilon, Upsilon_plus, mass, mass.inv, m, l, D.inv, D_half.inv, B_t, J_t, psi.inv @ phi,
    J_t @ mass.inv @ J_t.T, J("tool", "body0"), I - H @ psi @ K, mass.inv @ J_t.T,
    H_a, H_p, A_a, A_p, P_p, P_p_plus, D_p, G_p, K_p, tau_bar_p, E_psi_p, psi_p, psi_p_tilde,
    Omega_p, mass_pp, mass_ap, mass_aa, mass_pp.inv, mass_aa - S_ap @ mass_ap.T, D_p.inv,
    Omega @ M @ Omega, 2 * phi - 3 * psi @ tau_bar, H_a.T - H_p.T @ S_ap.T,
    S_aa, S_ap, S_pp, S_pp.inv, J_D, J_G("tool"), J_G("tool", "body0"), proj_p, proj_a,
    proj_a @ phi.T @ H_a.T, D_p.inv @ D_p,
]  # fmt: skip
DUAL = [S, S_plus, G_s, tau_bar_s, psi_s, E_phi_s, Lambda, Lambda.inv, (P + S).inv, Upsilon.inv]


def agrees(x: Expression, robot: pp.Robot, q: Any, active: Any = None) -> None:
    for one in (x, x.T):
        expected = matrix(one, system(robot, q, active=active))
        close(one.on(robot, q, active=active).matrix(), expected, 1e-9)


@pytest.mark.parametrize("x", OPERATORS, ids=str)
def test_every_operator(x: Expression) -> None:
    """And its adjoint, on forests with every hinge kind, against dense algebra."""
    for seed in (0, 4):
        robot = random_forest(seed, 5)
        q, _ = robot.random_state(seed)
        active = np.arange(robot.nv) % 3 == 1
        agrees(x, robot, q, active)


@pytest.mark.parametrize("x", DUAL, ids=str)
def test_the_dual_set(x: Expression) -> None:
    for seed in (1, 3):
        robot = random_forest(seed, 5, roots=("free",), armature=False)
        agrees(x, robot, robot.random_state(seed)[0])


def test_small_inverses_in_the_space_of_frames() -> None:
    robot = pp.robots.space_arm()
    q, _ = robot.random_state(0)
    frames = ("tool", robot.bodies[0].name)
    x = (J(*frames) @ mass.inv @ J(*frames).T).inv
    close(x.on(robot, q).matrix(), matrix(x, system(robot, q)), 1e-9)


def test_looped() -> None:
    """The same plans as loops over the bodies."""
    robot = random_forest(5, 6)
    q, _ = robot.random_state(5)
    for x in (mass.inv, phi, psi.T, Omega, J_t @ mass.inv @ J_t.T, K, Upsilon, phi_tilde.T):
        program = as_program(x)
        n = matrix(x, system(robot, q)).shape[1]
        core = {"joint": (robot.nv,), "body": (robot.nb, 6), "frame": (6,)}[x.domain.size]
        units = np.eye(n).reshape(n, *core)
        kernel = program.compile(robot, unroll=False)
        found = kernel(q, units).reshape(n, -1).T
        close(found, matrix(x, system(robot, q)), 1e-9)


@pytest.mark.parametrize("share", [0, 1, 2, 3])
def test_passive_arms(share: int) -> None:
    """With no joint active, some, most or all: hinges of which some freedoms are, and loops."""
    robot = random_forest(4, 6)
    q, _ = robot.random_state(4)
    active = np.arange(robot.nv) % 3 < share
    s = system(robot, q, active=active)
    for x in (D_p, D_p.inv, mass_pp.inv, S_aa, J_D, J_G("tool"), proj_p):
        close(x.on(robot, q, active=active).matrix(), matrix(x, s), 1e-9)
    for x in (D_p.logdet, mass_pp.logdet):
        close(x.evaluate(robot, q, active=active), matrix(D_p.logdet, s), 1e-11)
    looped = as_program(S_aa, active=tuple(active.tolist())).compile(robot, unroll=False)
    close(looped(q, np.eye(active.sum())).T, matrix(S_aa, s), 1e-9)


def test_projections() -> None:
    """[UA] Lemma 6.1, its rank corrected; with armature they are none."""
    for armature in (False, True):
        robot = random_forest(12, 5, kinds=MOVING, massless=False, armature=armature)
        q, _ = robot.random_state(3)
        active = np.arange(robot.nv) % 2 == 1
        own, other = (x.on(robot, q, active=active).matrix() for x in (proj_p, proj_a))
        close(own + other, np.eye(6 * robot.nb), 1e-12)
        idempotent = np.abs(own @ own - own).max() < 1e-10
        assert idempotent != armature
        assert np.linalg.matrix_rank(own, 1e-8) == (~active).sum()
        if not armature:
            assert np.linalg.matrix_rank(other, 1e-8) == 6 * robot.nb - (~active).sum()


LEAVES = [
    H, E_phi, phi, phi_tilde, M, A, P, P_plus, D, D_half, G, K, tau, tau_bar, E_psi, psi, psi_tilde,
    Omega, Upsilon, mass, m, l, B_t, J_t, H_p, K_p, psi_p, D_p, S_ap, J_D, proj_a,
]  # fmt: skip


@settings(max_examples=80)
@given(expressions(5, leaves=LEAVES, logdet=False), st.integers(0, 3))
def test_random_expressions(x: Expression, seed: int) -> None:
    """Whatever fits together runs, or says why it does not."""
    robot = random_forest(seed, 4, massless=False)
    q, _ = robot.random_state(seed)
    active = np.arange(robot.nv) % 2 == 1
    try:
        lowered = lower(x)
    except LoweringError as error:
        assert "no identity removes" in str(error)
        assert "dense=True" in str(error)
        return
    s = system(robot, q, active=active)
    try:
        expected = matrix(x, s)
        inner = [matrix(y.inner, s) for y in walk(x) if isinstance(y, Inverse)]
    except ValueError:
        assume(False)
        raise
    assume(not lowered.derivation.needs)
    rounding = 1e-13 * float(np.prod([np.linalg.cond(y) for y in inner if y.size]))
    assume(rounding < 1e-4)
    close(x.on(robot, q, active=active).matrix(), expected, max(1e-8, rounding))


def test_given_vectors_are_not_defined_away() -> None:
    written_out = H @ phi @ (M @ phi.T @ a + b)
    bias = pp.bias_force(ARM, S_.q, S_.v)
    close((C - written_out).evaluate(ARM, S_.q, S_.v, C=np.ones(6)), 1 - bias, 1e-10)
    close((H @ phi @ u - C).evaluate(ARM, S_.q, S_.v, u=np.zeros((6, 6))), -bias, 1e-10)


def test_outer_products_and_numbers() -> None:
    rows: list[tuple[Expression, Any]] = [
        (T @ T.T @ beta, S_.tau * (S_.tau @ S_.v)),
        (T @ (beta.T @ T), S_.tau * (S_.tau @ S_.v)),
        (T @ mass.logdet, S_.tau * pp.mass_matrix_logdet(ARM, S_.q)),
    ]
    for x, expected in rows:
        v = S_.v if beta in x.leaves else None
        close(x.evaluate(ARM, S_.q, v, T=S_.tau), expected, 1e-10)
    op = (beta @ beta.T).on(ARM, S_.q, S_.v)
    close(op.matrix(), np.outer(S_.v, S_.v), 1e-12)


def test_what_is_shared_is_walked_once() -> None:
    y = phi
    for _ in range(16):
        y = (y.inv + phi @ y).inv
    assert len(y.leaves) == 1
    assert y.size > 2**16
    with pytest.raises(LoweringError, match="more than 2000 values"):
        z = phi
        for _ in range(8):
            z = (z + phi) @ (z + psi)
        z.on(ARM, S_.q)


# ---- the library's own algorithms ---------------------------------------------------------------

ALGORITHMS = {
    "forward_dynamics": (mass.inv @ (T - C), ("q", "v", "tau")),
    "inverse_dynamics": (mass @ beta_dot + C, ("q", "v", "a")),
    "bias_force": (C, ("q", "v")),
    "mass_matrix_product": (mass, ("q", "w")),
    "mass_matrix_solve": (mass.inv, ("q", "w")),
    "mass_matrix_logdet": (mass.logdet, ("q",)),
    "kinetic_energy": (0.5 * (V.T @ M @ V + beta.T @ A @ beta), ("q", "v")),
    "mass_matrix_sqrt_product": (m, ("q", "w")),
}


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("robot", [pp.robots.puma560(), pp.robots.quadruped(), random_forest(4, 6)],
                         ids=lambda robot: robot.name)  # fmt: skip
def test_algorithms_are_their_expressions(name: str, robot: pp.Robot) -> None:
    """The lowered expression is what a person writes: the same numbers, no more operations."""
    x, arguments = ALGORITHMS[name]
    program, written = getattr(pp, name), getattr(by_hand, name)
    assert program.equation is x
    s = State(robot, (3,))
    values = [getattr(s, argument) for argument in arguments]
    close(program(robot, *values), written(robot, *values), 1e-12)
    own, other = program.graph(robot).operations, written.graph(robot).operations
    assert own <= other


@pytest.mark.parametrize("factor", ["m", "m*", "l", "l*"])
def test_roots_are_their_expressions(factor: Factor) -> None:
    robot = random_forest(8, 6)
    s = State(robot, (3,))
    program, written = pp.mass_matrix_sqrt_product, by_hand.mass_matrix_sqrt_product
    close(program(robot, s.q, s.w, factor=factor), written(robot, s.q, s.w, factor=factor), 1e-12)
    counts = [f.graph(robot, factor=factor).operations for f in (program, written)]
    assert counts[0] == counts[1]


def test_external_forces_and_motion() -> None:
    robot = random_forest(2, 6)
    s = State(robot)
    found = (mass.inv @ (T - C)).evaluate(robot, s.q, s.v, T=s.tau, external=s.external)
    close(found, by_hand.forward_dynamics(robot, s.q, s.v, s.tau, external=s.external), 1e-12)
    motion = (phi.T @ (H.T @ beta_dot + a)).evaluate(robot, s.q, s.v, beta_dot=s.a)
    close(motion, pp.accelerations(robot, s.q, s.v, s.a), 1e-11)
    close(alpha.evaluate(robot, s.q, s.v, beta_dot=s.a), motion, 1e-12)
    close(V.evaluate(robot, s.q, s.v), pp.velocities(robot, s.q, s.v), 1e-12)
    force = (H @ f + A @ beta_dot).evaluate(robot, s.q, s.v, beta_dot=s.a)
    close(force, pp.inverse_dynamics(robot, s.q, s.v, s.a), 1e-11)


def running(plan: Plan) -> pp.Program:
    """A program that runs this very plan."""

    @pp.program
    def run(robot: pp.Robot, q: Any, v: Any, tau: Any) -> Any:
        return Execution(plan, robot, q, {"T": tau}, v=v).result()

    return run


def test_the_three_forms_give_the_same_and_the_cheapest_ships() -> None:
    robot = random_forest(2, 6)
    s = State(robot)
    expected = by_hand.forward_dynamics(robot, s.q, s.v, s.tau)
    derivation = (mass.inv @ (T - C)).simplify(trace=True)
    costs = {}
    for form in derivation.forms:
        try:
            plan = planned(form)
        except LoweringError:
            continue
        found = running(plan)(robot, s.q, s.v, s.tau)
        close(found, expected, 1e-10)
        costs[form] = plan.cost
    assert len(costs) >= 3
    assert lower(mass.inv @ (T - C)).plan.expression is min(costs, key=lambda x: costs[x])


# ---- cost ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x", [mass, mass.inv, m, Omega, J("tool") @ mass.inv @ J("tool").T, mass.inv @ (T - C)], ids=str
)
def test_cost_is_linear(x: Expression) -> None:
    counts = {}
    for n in (10, 100, 1000):
        robot = pp.robots.chain(n)
        at_tip = x.replaced({J("tool"): J(robot.bodies[-1].name)})
        counts[n] = as_program(at_tip).graph(robot, unroll=False).operations
    per_body = {n: count / n for n, count in counts.items()}
    assert max(per_body.values()) <= 1.2 * min(per_body.values())


# ---- a linear operator --------------------------------------------------------------------------


def test_a_linear_operator() -> None:
    robot = pp.robots.space_arm()
    q, _ = robot.random_state(0)
    tau = np.random.default_rng(0).normal(size=(4, robot.nv))
    op = mass.inv.on(robot, q)
    assert op.shape == (robot.nv, robot.nv)
    np.testing.assert_allclose(op @ tau, pp.mass_matrix_solve(robot, q, tau), atol=1e-12)
    np.testing.assert_allclose(op.inv @ (op @ tau), tau, atol=1e-9)
    np.testing.assert_allclose(op.matrix(), np.linalg.inv(pp.mass_matrix(robot, q)), atol=1e-9)
    kernel = op.compile()
    np.testing.assert_allclose(kernel(q, tau), op @ tau, atol=1e-12)
    jacobian = J("tool").on(robot, q)
    np.testing.assert_allclose(jacobian.matrix(), pp.jacobian(robot, q, "tool"), atol=1e-12)
    np.testing.assert_allclose(jacobian.T.matrix(), jacobian.matrix().T, atol=1e-12)
    assert repr(jacobian) == f"<6×{robot.nv} operator J('tool') of 'space_arm'>"


def test_batches_of_configurations() -> None:
    robot = pp.robots.puma560()
    q, v = robot.random_state(0, (3, 2))
    op = mass.on(robot, q)
    assert op.matrix().shape == (3, 2, 6, 6)
    np.testing.assert_allclose(op.matrix(), pp.mass_matrix(robot, q), atol=1e-12)
    np.testing.assert_allclose(op @ v, pp.mass_matrix_product(robot, q, v), atol=1e-12)
    with pytest.raises(ValueError, match="solvers take one at a time"):
        op.matvec(v[0, 0])


def test_solvers_of_scipy() -> None:
    from scipy.sparse.linalg import aslinearoperator, cg, svds

    robot = pp.robots.quadruped()
    q, _ = robot.random_state(0)
    tau = np.random.default_rng(1).normal(size=robot.nv)
    found, info = cg(aslinearoperator(mass.on(robot, q)), tau, rtol=1e-12, maxiter=500)
    assert info == 0
    np.testing.assert_allclose(found, pp.mass_matrix_solve(robot, q, tau), rtol=1e-6, atol=1e-8)
    jacobian = J(robot.bodies[-1].name).on(robot, q)
    largest: Any = svds(aslinearoperator(jacobian), k=1, return_singular_vectors=False)
    np.testing.assert_allclose(largest[0], np.linalg.norm(jacobian.matrix(), 2), rtol=1e-9)
    transport = phi.on(robot, q)
    np.testing.assert_allclose(
        transport.matmat(np.eye(6 * robot.nb)), matrix(phi, system(robot, q)), atol=1e-12
    )


def test_batches_of_motions() -> None:
    q, v = ARM.random_state(0, (36,))
    op = (V @ V.T).on(ARM, q, v)
    rates = pp.velocities(ARM, q, v).reshape(36, 36)
    close(op.matrix(), rates[:, :, None] * rates[:, None, :], 1e-10)
    dense = mass_dot.on(ARM, q[:2], v[:2], dense=True).matrix()
    assert dense.shape == (2, 6, 6)


def test_operators_keep_their_own_numbers() -> None:
    q = S_.q.copy()
    op = mass.on(ARM, q, dense=True)
    kept = op.matrix().copy()
    q += 1.0
    op.matrix()[:] = 0.0
    close(op.matrix(), kept, 0.0)


def test_pickles_and_copies() -> None:
    deep = mass
    for _ in range(40):
        deep = (deep.inv + D.inv).inv
    for x in (mass.inv, deep, J("it's") @ mass.inv, 0.1 * m, Equation(T, C).right, I + K @ H @ phi):
        assert pickle.loads(pickle.dumps(x)) is x
        assert copy.deepcopy(x) is x
    op = mass.inv.on(ARM, S_.q)
    expected = op @ S_.tau
    close(pickle.loads(pickle.dumps(op)) @ S_.tau, expected, 0.0)


# ---- errors: one sentence each ------------------------------------------------------------------


def test_errors() -> None:
    robot = pp.robots.puma560()
    q = robot.neutral()
    with pytest.raises(SpaceError, match="M takes body motions, φ gives body forces"):
        _ = H @ phi @ M @ phi @ H.T  # as printed in [DL] (4.4)
    with pytest.raises(pp.ModelError, match="no frame 'toool'"):
        J("toool").on(robot, q)
    with pytest.raises(ValueError, match=r"depends on the motion: pass the joint rates v"):
        C.evaluate(robot, q)
    with pytest.raises(ValueError, match=r"needs T \(joint forces\): pass T="):
        (mass.inv @ T).evaluate(robot, q)
    with pytest.raises(TypeError, match="is a vector or a number, not an operator"):
        T.on(robot, q)
    with pytest.raises(TypeError, match="is an operator, not a vector"):
        mass.evaluate(robot, q)
    with pytest.raises(ValueError, match=r"takes joint forces of shape \(…, 6\), got \(3,\)"):
        _ = mass.inv.on(robot, q) @ np.ones(3)
    with pytest.raises(ValueError, match="q has shape"):
        mass.on(robot, np.zeros(3))
    with pytest.raises(ValueError, match="needs to know which joints are active"):
        mass_pp.inv.on(robot, q)
    with pytest.raises(pp.ModelError, match="S is known only on a free base, but root joint"):
        S.on(robot, q)
    with pytest.raises(LoweringError, match="no identity removes the inverse of"):
        (mass + D).inv.on(robot, q)
    with pytest.raises(TypeError, match=r"expression\.on\(robot, q\) @ array"):
        _ = mass @ np.ones(6)  # pyright: ignore[reportOperatorIssue] # refused
    with pytest.raises(LoweringError, match="has no recursion in this version"):
        mass_at("link2").on(robot, q)
    with pytest.raises(ValueError, match="Ṗ depends on the motion: pass the joint rates v"):
        P_dot.on(robot, q)


def test_dense_on_request() -> None:
    robot = pp.robots.puma560()
    q, _ = robot.random_state(0, (2,))
    x = (mass + D).inv
    op = x.on(robot, q, dense=True)
    expected = np.stack([matrix(x, system(robot, one)) for one in q])
    np.testing.assert_allclose(op.matrix(), expected)
    np.testing.assert_allclose(op @ np.ones(6), expected.sum(-1), atol=1e-12)


def test_armature_is_not_forgotten() -> None:
    """HφMφ*H* without the armature is not what ψ and K, which have it, invert."""
    armed = pp.robots.puma560()
    bare = random_forest(0, 4, kinds=("revolute",), armature=False)
    x = (H @ phi @ M @ phi.T @ H.T).inv
    q, _ = bare.random_state(0)
    np.testing.assert_allclose(
        x.on(bare, q).matrix(), np.linalg.inv(pp.mass_matrix(bare, q)), atol=1e-8
    )
    with pytest.raises(
        pp.ModelError, match="only if no joint has armature, but joint 'joint1' has some"
    ):
        x.on(armed, armed.neutral())


def test_a_hinge_with_no_inertia() -> None:
    """A point mass that slides onto the axis of the first hinge."""
    builder = pp.Builder("lasso")
    builder.body("mast", mass=0.0)
    builder.hinge("turn", "revolute", "world", "mast", axis=(0.0, 0.0, 1.0))
    builder.body("bead", mass=1.0, com=(1.0, 0.0, 0.0))
    builder.hinge("slide", "prismatic", "mast", "bead", axis=(1.0, 0.0, 0.0))
    robot = builder.build()
    np.testing.assert_allclose(mass.inv.on(robot, np.zeros(2)).matrix(), np.eye(2), atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match="D of hinge 'turn' is zero"):
        _ = mass.inv.on(robot, np.array([0.3, -1.0])) @ np.ones(2)


def test_programs_check_their_robot() -> None:
    x = np.ones(6)
    for expression in ((mass + A).inv, (H @ phi @ M @ phi.T @ H.T).inv):
        with pytest.raises(pp.ModelError, match="only if no joint has armature"):
            expression.program()(ARM, S_.q, x)
        with pytest.raises(pp.ModelError, match="only if no joint has armature"):
            expression.program().compile(ARM)
    with pytest.raises(pp.ModelError, match="only on a free base"):
        Lambda.program()(ARM, S_.q, np.ones((6, 6)))


def test_what_is_wrong_is_said_in_one_sentence() -> None:
    q, x = S_.q, np.ones(6)
    names: dict[str, Any] = {"active": (name for name in ["joint1", "joint2"])}
    assert mass_ap.on(ARM, q, **names).shape == (2, 4)
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: psi_p_tilde.on(ARM, q), ValueError, "needs to know which joints are active"),
        (lambda: P_p_plus.explain(ARM), ValueError, "needs to know which joints are active"),
        (lambda: mass_pp.program(), ValueError, "needs to know which joints are active"),
        (lambda: mass_pp.program(active=["joint1"]), ValueError, "needs truth values"),  # type: ignore[arg-type]
        (lambda: mass_pp.program(active=[True])(ARM, q, []), ValueError, "1 truth values, needs 6"),
        (lambda: mass_pp.on(ARM, q, active=5), TypeError, "needs 6 truth values or names"),
        (lambda: mass_pp.on(ARM, q, active=[0, 1]), ValueError, "needs 6 truth values"),
        (lambda: (beta.T @ mass).on(ARM, q), ValueError, "depends on the motion"),
        (lambda: (mass + T @ T.T).on(ARM, q), TypeError, "has the vector T in it"),
        (lambda: I.on(ARM, q), TypeError, "alone fits any space"),
        (lambda: T.evaluate(ARM, q, T=x, C=x), TypeError, "does not use C=; it takes T"),
        (lambda: T.evaluate(ARM, q, T=x, beta=x), TypeError, "the joint rates β are v"),
        (lambda: T.evaluate(ARM, q, T=x, external={}), TypeError, "not on external forces"),
        (lambda: compute(mass, ARM, q), ValueError, "needs x: pass x="),
        (lambda: compute(C, ARM, q), ValueError, "depends on the motion"),
        (lambda: compute(S @ V, ARM, q, x), pp.ModelError, "only on a free base"),
        (lambda: mass.on(ARM, q).matvec(np.ones(5)), ValueError, "takes a vector of 6"),
        (lambda: np.nan * mass, TypeError, "a finite number, not by nan"),
        (lambda: mass / 0, ZeroDivisionError, "𝓜 / 0"),
        (lambda: D ** "x", TypeError, "whole powers"),  # type: ignore[operator]
        (lambda: H @ "phi", TypeError, "text is read by"),  # type: ignore[operator]
        (lambda: 1 - H, TypeError, "a number is 2 \\* I"),  # type: ignore[operator]
        (lambda: Equation("T", "mass"), TypeError, "read text by Equation.parse"),  # type: ignore[arg-type]
        (lambda: parse(5), TypeError, "needs a text"),  # type: ignore[arg-type]
        (lambda: (J("world") @ mass.inv @ J("world").T).inv.on(ARM, q) @ x,
         np.linalg.LinAlgError, "is singular there"),
        (lambda: mass_by("elbow").on(ARM, q, S_.v, dense=True), pp.ModelError, "no hinge 'elbow'"),
    ]  # fmt: skip
    for wrong, kind, match in cases:
        with pytest.raises(kind, match=match):
            wrong()
    assert sum([M, P]) is M + P
    assert phi ** np.int64(2) is phi @ phi
    assert np.isnan(mass.on(ARM, q * np.nan).matrix()).any()
    expected = matrix(mass_by("joint2"), system(ARM, q))
    close(mass_by("joint2").on(ARM, q, dense=True).matrix(), expected, 1e-12)
