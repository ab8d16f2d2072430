"""Derivations: the results of the papers, found unaided, each step equal to the one before."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from phipsi.operators import *
from phipsi.operators import Equation, Expression, parse
from phipsi.operators.algebra.derivation import Condition
from phipsi.operators.algebra.expression import Inverse, ZeroOperator, walk
from phipsi.operators.algebra.simplify import ConditionWarning, derive, stuck
from phipsi.operators.dense import matrix
from tests.operators.expressions import expressions
from tests.operators.systems import random_system
from tests.zoo import close

WHITEN, COLOUR = I - H @ psi @ K, I + H @ phi @ K
WHITEN_P = I - H_p @ psi_p @ K_p
S_ap = mass_ap @ mass_pp.inv
J_t, B_t = J("tool"), B("tool")
BARE = ("no armature",)
zero_forces = ZeroOperator.of(H_p.T.codomain, H_p.T.domain)

RESULTS: dict[str, tuple[Expression, Expression, tuple[Condition, ...]]] = {
    "innovations factorization": (mass, COLOUR @ D @ COLOUR.T, ()),
    "as people write it": (H @ phi @ M @ phi.T @ H.T, COLOUR @ D @ COLOUR.T, BARE),
    "inverse of I + HφK": (COLOUR.inv, WHITEN, ()),
    "inverse of I − HψK": (WHITEN.inv, COLOUR, ()),
    "inverse of the mass matrix": (mass.inv, WHITEN.T @ D.inv @ WHITEN, ()),
    "inverse of φ": (phi.inv, I - E_phi, ()),
    "inverse of ψ": (psi.inv, I - E_psi, ()),
    "ψ⁻¹φ": (psi.inv @ phi, I + K @ H @ phi, ()),
    "φ⁻¹ψ": (phi.inv @ psi, I - K @ H @ psi, ()),
    "φψ⁻¹": (phi @ psi.inv, I + phi @ K @ H, ()),
    "I6": (WHITEN @ H @ phi, H @ psi, ()),
    "I6 adjoint": (phi.T @ H.T @ WHITEN.T, psi.T @ H.T, ()),
    "I7": (phi @ K @ WHITEN, psi @ K, ()),
    "I7 adjoint": (WHITEN.T @ K.T @ phi.T, K.T @ psi.T, ()),
    "tip force": (-mass.inv @ J_t.T, -(WHITEN.T @ D.inv @ H @ psi @ B_t), ()),
    "operational": (J_t @ mass.inv @ J_t.T, B_t.T @ Upsilon @ B_t, ()),
    "two frames": (J("a") @ mass.inv @ J("b").T, B("a").T @ Omega @ B("b"), ()),
    "forward dynamics": (
        mass.inv @ (T - C),
        WHITEN.T @ D.inv @ (T - H @ psi @ (K @ T + P @ a + b)) - K.T @ psi.T @ a, (),
    ),
    "S_pp": (mass_pp.inv, WHITEN_P.T @ D_p.inv @ WHITEN_P, ()),
    "S_ap": (S_ap, H_a @ (psi_p @ K_p + P_p @ psi_p.T @ H_p.T @ D_p.inv @ WHITEN_P), ()),
    "log det": (mass.logdet, D.logdet, ()),
    "HψMψ*H*": (H @ psi @ M @ psi.T @ H.T, D, BARE),
    "ΩMΩ": (Omega @ M @ Omega, Omega, BARE),
    "projection": (Omega @ M @ Omega @ M, Omega @ M, BARE),
    "other projection": ((I - Omega_p @ M) @ phi.T @ H_p.T, zero_forces, BARE),
    "root": (m.inv, l, ()),
    "root of the inverse": (l.T @ l, WHITEN.T @ D.inv @ WHITEN, ()),
    "inverse of I + KHφ": ((I + K @ H @ phi).inv, I - K @ H @ psi, ()),
    "operational, serial": (
        J("a") @ mass.inv @ J("b").T,
        B("a").T @ (psi.T @ Upsilon + Upsilon @ psi_tilde) @ B("b"), ("serial",),
    ),
}  # fmt: skip

EQUAL: dict[str, tuple[Expression, Expression]] = {
    "S_aa": (
        mass_aa - S_ap @ mass_ap.T,
        H_a @ ((psi_p - P_p @ Omega_p) @ P_p + P_p @ psi_p_tilde.T) @ H_a.T + A_a,
    ),
    "disturbance Jacobian": (
        -S_ap.T,
        -(WHITEN_P.T @ D_p.inv @ H_p @ psi_p @ P_p + K_p.T @ psi_p.T) @ H_a.T,
    ),
    "generalized Jacobian": (
        B_t.T @ phi.T @ (H_a.T - H_p.T @ S_ap.T),
        B_t.T @ (psi_p.T - Omega_p @ P_p) @ H_a.T,
    ),
}
"""Results that are not unique: inverse-free, and equal to the papers'."""


@pytest.mark.parametrize("name", RESULTS)
def test_the_results_of_the_papers(name: str) -> None:
    given_, expected, assume = RESULTS[name]
    found = given_.simplify(assume=assume)
    assert found is expected or Equation(found, expected).proved(assume), (found, expected)
    if name not in ("operational, serial", "root of the inverse", "as people write it"):
        assert found is expected


@pytest.mark.parametrize("name", EQUAL)
def test_the_under_actuated_results(name: str) -> None:
    given_, expected = EQUAL[name]
    derivation = given_.simplify(trace=True)
    assert not stuck(derivation.result)
    assert Equation(derivation.result, expected).proved()
    assert not {mass_pp, mass_ap, mass_aa, M, phi} & derivation.result.leaves


def test_the_three_forms_of_forward_dynamics() -> None:
    """FD-bias, FD-acc and FD-direct are steps of one derivation."""
    forms = (mass.inv @ (T - C)).simplify(trace=True).forms
    bias = WHITEN.T @ D.inv @ WHITEN @ (T - C)
    direct = WHITEN.T @ D.inv @ (T - H @ psi @ (K @ T + P @ a + b)) - K.T @ psi.T @ a
    acc = WHITEN.T @ D.inv @ (T - H @ psi @ (K @ T + M @ phi.T @ a + b))
    assert [x for x in forms if x in (bias, acc, direct)] == [bias, acc, direct]


def test_a_derivation_says_why() -> None:
    derivation = mass.inv.simplify(trace=True)
    names = [step.name for step in derivation.steps]
    assert names[0] == "definition of 𝓜"
    assert "I1" in names
    assert names[-2:] == ["matrix inversion lemma", "I4"]
    sources = [step.source for step in derivation.steps]
    assert any("[SOA]" in source for source in sources)
    text = str(derivation)
    assert text.splitlines()[0] == "𝓜⁻¹"
    assert "(I − HψK)*D⁻¹(I − HψK)" in text.splitlines()[-1]


def test_conditions_are_used_only_when_needed() -> None:
    bare = H @ phi @ M @ phi.T @ H.T
    assert bare.simplify(trace=True).needs == ()
    derivation = bare.inv.simplify(trace=True)
    assert derivation.needs == BARE
    assert derivation.result is WHITEN.T @ D.inv @ WHITEN
    assert "if no joint has armature" in str(derivation)
    assert mass.inv.simplify(trace=True).needs == ()


def test_what_stays_is_said() -> None:
    left = (M @ phi.T).T
    stays = (H @ left @ H.T + 2 * A).inv
    assert stuck(stays.simplify())
    with pytest.raises(ValueError, match="'no friction' is not known; known are no armature"):
        mass.simplify(assume=["no friction"])  # pyright: ignore[reportArgumentType] # refused


def values(x: Expression, seed: int, **how: Any) -> np.ndarray:
    s = random_system(seed, 4, **how)
    rng = np.random.default_rng(seed)
    nv, nb = len(s.H), len(s.parents)
    given_ = {name: rng.normal(size=nv) for name in ("T", "beta", "beta_dot")}
    given_.update({name: rng.normal(size=(nb, 6)) for name in ("a", "b")})
    return matrix(x, s, **given_)


@pytest.mark.parametrize("name", RESULTS)
def test_every_step_is_equal(name: str) -> None:
    expression, _, assume = RESULTS[name]
    serial, bare = "serial" in assume, "no armature" in assume
    expression = expression.replaced({J("a"): J("tool"), J("b"): J("camera")})
    derivation = derive(expression, assume)
    bare = bare or "no armature" in derivation.needs
    expected = values(expression, 3, serial=serial, armature=not bare)
    for step in derivation.steps:
        found = values(step.expression, 3, serial=serial, armature=not bare)
        np.testing.assert_allclose(found, expected, atol=1e-9 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize(
    "x",
    [
        psi_tilde + psi - I, tau_bar + G @ H - I, (psi + psi_tilde - I) @ psi @ K, l.T + m.inv.T,
        E_psi + E_phi - K @ H, phi_tilde.T + phi.T - I, D.logdet + mass.logdet, m.logdet,
        (mass_ap @ mass_pp.inv @ mass_pp), ((mass @ mass.inv) ** 4) @ D,
    ],
    ids=str,
)  # fmt: skip
def test_every_step_of_other_expressions_is_equal(x: Expression) -> None:
    s = random_system(2, 4)
    expected = matrix(x, s)
    for form in derive(x).forms:
        close(matrix(form, s), expected, 1e-9)


def test_conditions_prove_nothing() -> None:
    for x, y in (
        ((mass + A).inv, mass.inv),
        ((mass + A).inv @ mass, I),
        ((H @ phi @ M @ phi.T @ H.T).inv, mass.inv),
        ((mass_pp + A_p).inv, mass_pp.inv),
        ((H @ psi @ M @ psi.T @ H.T).inv, D.inv),
    ):
        assert not Equation(x, y).proved()
        assert Equation(x, y).proved("no armature")


def test_conditions_are_warned_of() -> None:
    with pytest.warns(ConditionWarning, match="only if no joint has armature"):
        (H @ phi @ M @ phi.T @ H.T).inv.simplify()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (H @ phi @ M @ phi.T @ H.T).inv.simplify(assume="no armature")


@pytest.mark.parametrize(
    "text",
    [
        "(H @ phi @ K + H @ psi @ K).inv", "(H @ phi @ K - H @ psi @ K).logdet", "D.logdet.inv",
        "(I + H @ phi @ K + H @ psi @ K).inv", "(H @ M @ H.T + H @ phi @ K @ D).inv",
        "(I + K @ H @ phi) ** 10", "(phi + psi) ** 12", "(mass @ mass.inv) ** 8",
    ],
)  # fmt: skip
def test_simplifying_ends(text: str) -> None:
    parse(text).simplify()


LEAVES = [
    H, E_phi, phi, phi_tilde, M, A, P, P_plus, D, D_half, G, K, tau, tau_bar, E_psi, psi, psi_tilde,
    Omega, Upsilon, mass, m, l, H_a, H_p, mass_pp, mass_ap, P_p, D_p, G_p, K_p, psi_p, Omega_p,
    B("tool"), J("tool"), B("camera"), J("camera"), T, beta, a, b, C, V,
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(expressions(6, leaves=LEAVES, logdet=False), st.integers(0, 3))
def test_simplified_is_dense(x: Expression, seed: int) -> None:
    """200 random expressions: simplified = as written, on random numbers."""
    s = random_system(seed, 4)
    rng = np.random.default_rng(seed)
    vectors = {name: rng.normal(size=len(s.H)) for name in ("T", "beta")}
    vectors |= {name: rng.normal(size=(len(s.parents), 6)) for name in ("a", "b")}
    try:
        expected = matrix(x, s, **vectors)
        condition = sensitivity(x, s, vectors)
    except ValueError:
        assume(False)  # singular there
        raise
    simple = x.simplify(trace=True)
    assume(not simple.needs and condition < 1e-4)
    found = matrix(simple.result, s, **vectors)
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    assert np.abs(found - expected).max(initial=0.0) <= max(1e-8, condition) * scale


def sensitivity(x: Expression, s: Any, vectors: Any) -> float:
    """How much rounding the inverses in an expression make of 1e-14."""
    inner = [matrix(part.inner, s, **vectors) for part in walk(x) if isinstance(part, Inverse)]
    return 1e-14 * float(np.prod([np.linalg.cond(y) for y in inner if y.size]))
