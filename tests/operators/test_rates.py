"""Rates of change: recursions and the product rule against differences along the motion, seen from
the bodies and from axes at rest."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phipsi as pp
from phipsi.operators import *
from phipsi.operators import Expression, rate
from phipsi.operators.algebra.expression import ZeroOperator
from phipsi.operators.algebra.identities import Identity
from phipsi.operators.algebra.spaces import SCALARS, Space
from phipsi.operators.dense import System, matrix, system
from phipsi.operators.lowering.compute import compute
from phipsi.operators.lowering.program import as_program
from tests.operators import test_identities as table
from tests.operators.expressions import expressions
from tests.zoo import MOVING, State, close, random_forest

J_t, B_t = J("tool"), B("tool")
COLUMNS = [E_phi, phi, P, D, G, tau_bar, E_psi, psi, m]
"""The rows of [DL] Table 4."""
OTHERS = [
    H, M, A, K, D_half, mass, tau, P_plus, phi_tilde, psi_tilde, Omega, l, B_t, J_t, mass.inv,
    D.inv @ H @ psi, (I - H @ psi @ K) @ mass, 2 * phi.T - psi.inv.T,
]  # fmt: skip
ROBOTS = [random_forest(302, 5), random_forest(35, 5)]
"""A tree and a forest that together have every hinge kind, with armature."""


pytestmark = pytest.mark.usefixtures("interpreted")


@cache
def moving(robot: pp.Robot) -> System:
    s = State(robot)
    return system(robot, s.q, s.v)


def run(x: Expression, robot: pp.Robot, **vectors: Any) -> np.ndarray:
    """The matrix or the value of an expression, by its recursion."""
    s = State(robot)
    if x.domain == SCALARS:
        return x.evaluate(robot, s.q, s.v, **vectors).reshape(-1)
    return x.on(robot, s.q, s.v).matrix()


# ---- differences ---------------------------------------------------------------------------------


@cache
def after(robot: pp.Robot, t: float) -> tuple[System, np.ndarray]:
    """The system after a time, and its axes in the world, twice for each body."""
    s = State(robot)
    q = robot.integrate(s.q, t * s.v)
    axes = np.repeat(pp.poses(robot, q)[:, :3, :3], 2, axis=0)
    R = np.zeros((len(axes), 3, len(axes), 3))
    R[range(len(axes)), :, range(len(axes))] = axes
    return system(robot, q, s.v), R.reshape(6 * robot.nb, 6 * robot.nb)


def difference(x: Expression, robot: pp.Robot, inertial: bool) -> np.ndarray:
    """dX/dt along the motion; or d(R X R*)/dt, turned back."""
    h = 5e-3 / max(1.0, float(np.linalg.norm(State(robot).v)))

    def turned(X: np.ndarray, space: Space, R: np.ndarray) -> np.ndarray:
        return np.tensordot(R, X, 1) if inertial and space.size == "body" else X

    def at(t: float) -> np.ndarray:
        s, R = after(robot, t)
        X = turned(matrix(x, s), x.codomain, R)
        return X if x.domain == SCALARS else turned(X.T, x.domain, R).T

    def central(k: int) -> np.ndarray:
        return (at(k * h) - at(-k * h)) / (2 * k * h)

    found = (15 * central(1) - 6 * central(2) + central(3)) / 10  # of order h⁶
    back = after(robot, 0.0)[1].T
    found = turned(found, x.codomain, back)
    return found if x.domain == SCALARS else turned(found.T, x.domain, back).T


def test_the_robots_have_every_hinge_kind() -> None:
    assert {h.kind.name for robot in ROBOTS for h in robot.hinges} == {*MOVING}
    assert all(robot.joint_data("armature").any() for robot in ROBOTS)
    assert all(len(set(robot.parents)) < robot.nb for robot in ROBOTS)


@pytest.mark.parametrize("x", [*COLUMNS, *OTHERS], ids=str)
def test_recursions_are_differences(x: Expression) -> None:
    """[DL] Table 4, both columns, for every hinge."""
    for robot in ROBOTS:
        local, inertial = rate(x), rate(x, inertial=True)
        found = run(local, robot)
        close(found, difference(x, robot, False), 1e-8)
        close(
            found if inertial is local else run(inertial, robot), difference(x, robot, True), 1e-8
        )


@pytest.mark.parametrize("x", [y.T for y in DOTTED.values() if y.T is not y], ids=str)
def test_adjoints_of_recursions_are_dense(x: Expression) -> None:
    close(run(x, ROBOTS[0]), matrix(x, moving(ROBOTS[0])), 1e-10)


LEAVES = [H, E_phi, phi, M, A, P, D, D_half, G, K, tau_bar, E_psi, psi, m, mass, l, B_t, J_t, beta]


@settings(max_examples=settings().max_examples // 2)
@given(expressions(6, leaves=LEAVES, inverses=False, logdet=False), st.booleans())
def test_the_product_rule(x: Expression, inertial: bool) -> None:
    robot = ROBOTS[1]
    dense = rate(x, inertial=inertial) - 0 * x
    found = matrix(dense, moving(robot).giving(beta_dot=np.zeros(robot.nv)))
    expected = difference(x, robot, inertial) if x.leaves else np.zeros_like(found)
    close(found, expected, 1e-7)


# ---- without differences -------------------------------------------------------------------------


@cache
def exact(robot: pp.Robot) -> System:
    """The system with rates of articulated bodies that solve their equations: Ṗ from the tips to
    the base, one level at a time; Ḣ alone is a difference."""
    s = moving(robot)
    s = s.giving(H_dot=matrix(H_dot, s), P_dot=np.zeros((6 * robot.nb, 6 * robot.nb)))
    for _ in s.parents:
        s = s.giving(P_dot=matrix(P_dot.definition, s))
    for x in (D_dot, G_dot):
        s = s.giving(**{x.symbol.name: matrix(x.definition, s)})
    L = matrix(D_half, s)
    whole = np.linalg.solve(L, np.linalg.solve(L, matrix(D_dot, s)).T)
    return s.giving(D_half_dot=L @ (np.tril(whole, -1) + np.diag(np.diag(whole)) / 2))


@pytest.mark.parametrize("x", [*DOTTED.values(), lam, C_nu, C_xi], ids=str)
def test_recursions_are_the_product_rule_of_dense_matrices(x: Expression) -> None:
    for robot in ROBOTS:
        opened = x.simplify()
        known = {H_dot, P_dot, D_dot, G_dot, D_half_dot}
        assert not (opened.leaves & {*DOTTED.values()}) - known
        close(run(x, robot), matrix(opened, exact(robot)), 1e-10)


@pytest.mark.parametrize("row", table.rows(lambda row: table.symbols(row) & table.MOVING))
def test_closed_forms_run(row: Identity) -> None:
    """Both sides as recursions, on robots that the paper's forms hold for."""
    robot = table.robot_for(row, 0)
    one = table.at(row, robot.hinges[-1].name)
    left, right = (_computed(side, robot) for side in (one.left, one.right - 0 * one.left))
    close(left, right, 1e-10)


def _computed(x: Expression, robot: pp.Robot) -> np.ndarray:
    if gamma in x.leaves or isinstance(x, ZeroOperator):  # no recursion
        return matrix(x, moving(robot))
    return run(x, robot) if x.codomain != SCALARS else run(x, robot)[0]


def test_loops_give_the_same() -> None:
    """The same plans as loops over the bodies."""
    robot = ROBOTS[0]
    s, dense = State(robot), exact(robot)
    hinge = robot.hinges[0].name
    for x in (P_dot, G_dot.T, D_half_dot.T, psi_dot, m_dot, spin, H_dot, H_cross(hinge), C_xi):
        kernel = as_program(x).compile(robot, unroll=False)
        expected = matrix(x, dense)
        if x.domain == SCALARS:
            close(kernel(s.q, s.v), expected, 1e-9)
            continue
        n = expected.shape[1]
        units = np.eye(n).reshape(n, *((robot.nb, 6) if x.domain.size == "body" else (n,)))
        state = (s.q,) if x is H_cross(hinge) else (s.q, s.v)
        close(kernel(*state, units).reshape(n, -1).T, expected, 1e-9)


@pytest.mark.parametrize("x", [P_dot, mass_dot, C_nu], ids=str)
def test_cost_is_linear(x: Expression) -> None:
    counts = [as_program(x).graph(pp.robots.chain(n), unroll=False).operations for n in (10, 100)]
    assert counts[1] <= 11 * counts[0]


# ---- vectors, hinges, frames ---------------------------------------------------------------------


@pytest.mark.parametrize("robot", ROBOTS, ids=["tree", "forest"])
def test_velocities_change_by_accelerations(robot: pp.Robot) -> None:
    """In the axes of the bodies by the spatial ones, in axes at rest by the classical ones."""
    s = State(robot)
    for inertial in (False, True):
        expected = pp.accelerations(robot, s.q, s.v, s.a, classical=inertial)
        found = rate(V, inertial=inertial).evaluate(robot, s.q, s.v, beta_dot=s.a)
        close(found, expected, 1e-11)


def test_total_rates_obey_the_diagonal_equations() -> None:
    """ν̇ = ε − C_ν under the joint forces of the accelerations β̇ ([DL] (1.1)-(1.4))."""
    robot = ROBOTS[0]
    s = State(robot)
    tau = pp.inverse_dynamics(robot, s.q, s.v, s.a)
    found = rate(nu).evaluate(robot, s.q, s.v, beta_dot=s.a)
    close(found, (eps - C_nu).evaluate(robot, s.q, s.v, T=tau), 1e-11)


def test_loads_and_parts_of_programs() -> None:
    robot = ROBOTS[1]
    s = State(robot)

    @pp.program
    def both(robot: pp.Robot, q: Any, v: Any, w: Any) -> Any:
        return compute(C_nu, robot, q, v, external=s.external), compute(m_dot, robot, q, v, x=w)

    loaded = system(robot, s.q, s.v, external=s.external)
    coriolis, turned = both(robot, s.q, s.v, s.w)
    close(coriolis, matrix(C_nu, loaded), 1e-9)
    close(turned, matrix(m_dot, loaded) @ s.w, 1e-9)
    close(C_xi.evaluate(robot, s.q, s.v, external=s.external), matrix(C_xi, loaded), 1e-9)


@pytest.mark.parametrize("robot", ROBOTS, ids=["tree", "forest"])
def test_derivatives_by_a_hinge(robot: pp.Robot) -> None:
    """Of one freedom, among others of any."""
    hinge, other = (
        next(h.name for h in robot.hinges if (h.kind.nv == 1) == one) for one in (True, False)
    )
    for x in (mass_by(hinge), H_cross(hinge), H_cross(hinge).T):
        close(x.on(robot, State(robot).q).matrix(), matrix(x, moving(robot)), 1e-10)
    with pytest.raises(pp.ModelError, match=f"hinge {other!r} has not one freedom"):
        mass_by(other).on(robot, State(robot).q)
    with pytest.raises(ValueError, match="mass_by takes one name"):
        mass_by(hinge, other).on(robot, State(robot).q)


def test_axes_are_those_that_people_see() -> None:
    """A robot whose own frames are others than those of its description."""
    robot = ROBOTS[0].equivalent
    assert any(np.any(np.array(body.origin.position, float)) for body in robot.bodies)
    for x in (spin, spin.T, Delta_cross, V_cross, H_dot, E_phi_dot):
        close(run(x, robot), matrix(x, moving(robot)), 1e-10)


def test_joint_space_rates_are_traced_on_the_equivalent_robot() -> None:
    """Where they take fewer operations, and are the same."""
    robot = ROBOTS[0]
    for x in (D_dot, D_half_dot, m_dot, mass_dot):
        assert as_program(x).joint_space
        close(matrix(x, moving(robot.equivalent)), matrix(x, moving(robot)), 1e-9)
    assert not as_program(P_dot).joint_space


# ---- the function --------------------------------------------------------------------------------


def test_how_rates_look() -> None:
    looks: list[tuple[Expression, str]] = [
        (rate(M), "0[body forces, body motions]"),
        (rate(I - H @ psi @ K), "−HψK̇ − Hψ̇K − ḢψK"),
        (rate(D.inv), "−D⁻¹ḊD⁻¹"),
        (rate(J_t), "B('tool')*φ*Ḣ* + B('tool')*φ̇*H*"),
        (rate(P, inertial=True), "Ṗ + ω̃P + Pω̃*"),
        (rate(H, inertial=True), "Ḣ − Hω̃"),
        (rate(D, inertial=True), "Ḋ"),
        (rate(G, inertial=True), "Ġ + ω̃G"),
        (rate(phi.T, inertial=True), "φ̇* + φ*ω̃* − ω̃*φ*"),
        (rate(2 * mass @ beta), "2𝓜β̇ + 2𝓜̇β"),
        (phi_dot.simplify(), "φ̃Δ̃φ"),
    ]
    for x, text in looks:
        assert str(x) == text
    assert rate(phi) is phi_dot
    assert rate(phi.T) is phi_dot.T
    assert rate(I) is zero
    assert rate(mass + A) is mass_dot


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (mass.logdet, "^the rate of log det\\(𝓜\\) is the trace of X⁻¹Ẋ, which no expression of "),
        (T, r"^the rate of T \(joint forces\) is not known: no symbol stands for it$"),
        (C, r"^the rate of (a|b) \(.*\) is not known: no symbol stands for it$"),
        (phi_dot, r"^the rate of φ̇ \(rate of φ\) is not known: no symbol stands for it$"),
        (lam, r"^the rate of Ṗ \(rate of the articulated inertia\) is not known"),
        (Lambda, r"^the rate of S \(.*\) is not known: no symbol stands for it$"),
        (psi_p, r"^the rate of ψ_p \(.*\) is not known: rates are those of robots with all hinges"),
        (S_aa, r"^the rate of S_aa \(.*\) is not known: rates are those of robots with all"),
    ],
)
def test_one_sentence_says_what_has_no_rate(x: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        rate(x)


def test_rates_are_those_of_expressions() -> None:
    with pytest.raises(TypeError, match="rate needs an expression, got int"):
        rate(3)  # pyright: ignore[reportArgumentType]
