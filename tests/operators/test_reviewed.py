"""What people who tried to break it have found."""

from __future__ import annotations

import copy
import pickle
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.operators import *
from phipsi.operators import Equation, Expression, parse
from phipsi.operators.algebra.simplify import ConditionWarning, derive
from phipsi.operators.dense import matrix, system
from phipsi.operators.lowering.compute import compute
from phipsi.operators.lowering.dataflow import LoweringError
from tests.operators.systems import random_system
from tests.zoo import State, close

ARM = pp.robots.puma560()
S_ = State(ARM)


@pytest.fixture(autouse=True, scope="module")
def interpreted() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PHIPSI_BACKEND", "numpy")
        yield


# ---- wrong results ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x",
    [
        psi_tilde + psi - I, tau_bar + G @ H - I, (psi + psi_tilde - I) @ psi @ K, l.T + m.inv.T,
        E_psi + E_phi - K @ H, phi_tilde.T + phi.T - I, D.logdet + mass.logdet, m.logdet,
        (mass_ap @ mass_pp.inv @ mass_pp), ((mass @ mass.inv) ** 4) @ D,
    ],
    ids=str,
)  # fmt: skip
def test_every_step_is_equal(x: Expression) -> None:
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


def test_programs_check_their_robot() -> None:
    x = np.ones(6)
    for expression in ((mass + A).inv, (H @ phi @ M @ phi.T @ H.T).inv):
        with pytest.raises(pp.ModelError, match="only if no joint has armature"):
            expression.program()(ARM, S_.q, x)
        with pytest.raises(pp.ModelError, match="only if no joint has armature"):
            expression.program().compile(ARM)
    with pytest.raises(pp.ModelError, match="only on a free base"):
        Lambda.program()(ARM, S_.q, np.ones((6, 6)))


def test_given_vectors_are_not_defined_away() -> None:
    written_out = H @ phi @ (M @ phi.T @ a + b)
    bias = pp.bias_force(ARM, S_.q, S_.v)
    close((C - written_out).evaluate(ARM, S_.q, S_.v, C=np.ones(6)), 1 - bias, 1e-10)
    close((H @ phi @ u - C).evaluate(ARM, S_.q, S_.v, u=np.zeros((6, 6))), -bias, 1e-10)


def test_equations_that_are_not_linear() -> None:
    for right in (
        mass @ beta_dot + C @ (beta_dot.T @ T),
        mass @ beta_dot + T @ (beta_dot.T @ mass @ beta_dot),
    ):
        with pytest.raises(ValueError, match="is not linear in β̇"):
            Equation(T, right).solved(beta_dot)
    hidden = Equation(T, H @ phi @ (M @ alpha + b) + A @ beta_dot).solved(beta_dot)
    assert Equation(hidden.right, mass.inv @ (T - C)).proved()


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


def test_batches_of_motions() -> None:
    q, v = ARM.random_state(0, (36,))
    op = (V @ V.T).on(ARM, q, v)
    rates = pp.velocities(ARM, q, v).reshape(36, 36)
    close(op.matrix(), rates[:, :, None] * rates[:, None, :], 1e-10)
    dense = mass_dot.on(ARM, q[:2], v[:2], dense=True).matrix()
    assert dense.shape == (2, 6, 6)


# ---- hangs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "(H @ phi @ K + H @ psi @ K).inv", "(H @ phi @ K - H @ psi @ K).logdet", "D.logdet.inv",
        "(I + H @ phi @ K + H @ psi @ K).inv", "(H @ M @ H.T + H @ phi @ K @ D).inv",
        "(I + K @ H @ phi) ** 10", "(phi + psi) ** 12", "(mass @ mass.inv) ** 8",
    ],
)  # fmt: skip
def test_ends(text: str) -> None:
    parse(text).simplify()


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


# ---- threads, pickles ---------------------------------------------------------------------------


def test_threads_make_the_same_expressions() -> None:
    def build(i: int) -> Expression:
        return (J("tool") @ (mass * (i + 2) + A * (i + 7)).inv @ J("tool").T).inv

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for i in range(100):
                made = list(pool.map(build, [i] * 8))
                assert len(set(map(id, made))) == 1
    finally:
        sys.setswitchinterval(interval)


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


def test_operators_keep_their_own_numbers() -> None:
    q = S_.q.copy()
    op = mass.on(ARM, q, dense=True)
    kept = op.matrix().copy()
    q += 1.0
    op.matrix()[:] = 0.0
    close(op.matrix(), kept, 0.0)


# ---- sentences ----------------------------------------------------------------------------------


def test_sentences() -> None:
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
