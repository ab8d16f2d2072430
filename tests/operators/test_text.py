"""Expressions in their three writings, and the laws of the algebra that they rest on."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from phipsi.operators.algebra import symbols
from phipsi.operators.algebra.expression import (
    Expression,
    IdentityOperator,
    Leaf,
    LogDet,
    ZeroOperator,
)
from phipsi.operators.algebra.spaces import JOINT_FORCES, JOINT_RATES, frame_forces
from phipsi.operators.algebra.symbol import Symbol
from phipsi.operators.algebra.symbols import (
    A,
    D,
    H,
    I,
    J,
    K,
    M,
    Omega,
    P_plus,
    T,
    V,
    beta,
    mass,
    mass_at,
    phi,
    psi,
    zero,
)
from phipsi.operators.writing.parser import parse
from tests.operators.expressions import expressions, factors, leaves_of

NAMES = st.text(max_size=6).filter(str.isprintable)
frames = st.lists(NAMES, min_size=1, max_size=3, unique=True).map(tuple)


def assert_read_back(x: Expression) -> None:
    for text in (x.ascii, str(x), x.latex):
        assert parse(text) is x, text


# ---- laws ----------------------------------------------------------------------------------------


@given(expressions(12))
def test_every_writing_is_read_back(x: Expression):
    assert_read_back(x)


@given(expressions(12))
def test_pickles_are_the_same_object(x: Expression):
    assert pickle.loads(pickle.dumps(x)) is x


@given(expressions(12))
def test_the_adjoint_of_the_adjoint_is_itself(x: Expression):
    assert x.T.T is x
    assert (x.T.domain, x.T.codomain) == (x.codomain.dual, x.domain.dual)


@given(factors())
def test_the_adjoint_of_a_product_turns_it_round(pair: tuple[Expression, Expression]):
    x, y = pair
    assert (x @ y).T is y.T @ x.T


@given(expressions(), st.data())
def test_sums_do_not_depend_on_order(x: Expression, data: st.DataObject):
    y, z = (data.draw(expressions(domain=x.domain, codomain=x.codomain)) for _ in range(2))
    assert (x + y) + z is x + (z + y)
    assert (x + y).T is y.T + x.T
    assert x - x is ZeroOperator.of(x.codomain, x.domain)
    assert x + x is 2 * x
    assert 3 * (x + y) is 3 * y + 3 * x


def is_scaled(x: Expression) -> bool:
    return len(x.terms) == 1 and x.terms[0][0] != 1


@given(factors(5), st.data())
def test_products_are_associative(pair: tuple[Expression, Expression], data: st.DataObject):
    x, y = pair
    z = data.draw(expressions(5, codomain=y.domain))
    assume(not any(map(is_scaled, (x, y, z))))  # (2 * I) @ (a + b) is 2 * a + 2 * b
    assert (x @ y) @ z is x @ (y @ z)


@given(expressions(logdet=False, domain=JOINT_FORCES, codomain=JOINT_RATES))
def test_the_inverse_of_the_inverse_is_itself(x: Expression):
    assume(not is_scaled(x) and not isinstance(x, ZeroOperator))
    assert x.inv.inv is x
    assert x.T.inv is x.inv.T
    assert x.inv @ x is not I  # what cancels is for `simplify` to say


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


# ---- symbols, frames, numbers --------------------------------------------------------------------


@pytest.mark.parametrize("x", leaves_of(), ids=str)
def test_every_symbol_is_read_back(x: Leaf):
    for y in (x, x.T, x.T @ x.T.inv if x.T.domain.size == x.T.codomain.size else x):
        assert_read_back(y)


@pytest.mark.parametrize("name", ["name", "unicode", "latex"])
def test_no_two_symbols_are_written_alike(name: str):
    written = [getattr(row, name) for row in symbols.SYMBOLS.values()]
    assert len(set(written)) == len(written)


@given(st.sampled_from([row for row in symbols.SYMBOLS.values() if row.framed]), frames)
def test_frames_may_have_any_name(row: Symbol[Expression, Any], names: tuple[str, ...]):
    leaf = Leaf.of(row, names)
    for x in (
        leaf,
        leaf.T,
        IdentityOperator.of(leaf.domain),
        ZeroOperator.of(leaf.domain, leaf.codomain),
    ):
        assert_read_back(x)


@given(frames)
def test_spaces_may_have_frames_of_any_name(names: tuple[str, ...]):
    at = frame_forces(*names)
    for x in (
        IdentityOperator.of(at),
        2 * IdentityOperator.of(at.dual),
        ZeroOperator.of(at.dual, at),
    ):
        assert_read_back(x)


@given(st.fractions() | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_back_exactly(c: Fraction | float):
    for x in (c * H, c * I, phi - c * psi, c * T.T @ beta.T.T):
        assert_read_back(x)


def test_numbers_that_no_float_holds():
    assert_read_back(Fraction(1, 3**600) * H)
    assert_read_back(Fraction(10**300 + 1, 3 * 10**300) * H - H @ phi)
    with pytest.raises(ValueError, match="at most 1\\.8e308"):
        _ = 10**400 * H


# ---- how it looks --------------------------------------------------------------------------------

LOOKS = [
    (H @ phi, "H @ phi", "Hφ", r"H \phi"),
    (0.5 * V.T @ M @ V, "0.5 * V.T @ M @ V", "0.5V*MV", "0.5 V^{*} M V"),
    (H.T / 3, "(1/3) * H.T", "(1/3)H*", "(1/3) H^{*}"),
    (Fraction(1, 3) * H, "(1/3) * H", "(1/3)H", "(1/3) H"),
    (Fraction(1, 10) * H, "0.1 * H", "0.1H", "0.1 H"),
    (0.1 * H, "0.1 * H", "0.1H", "0.1 H"),
    (1e-5 * H, "1e-05 * H", "1e-05H", "1e-05 H"),
    (-H - 2 * H @ phi, "-H - 2 * H @ phi", "−H − 2Hφ", r"-H - 2 H \phi"),
    (I - H @ psi @ K, "I - H @ psi @ K", "I − HψK", r"I - H \psi K"),
    (
        (I - H @ psi @ K).T @ D.inv @ (I - H @ psi @ K),
        "(I - H @ psi @ K).T @ D.inv @ (I - H @ psi @ K)",
        "(I − HψK)*D⁻¹(I − HψK)",
        r"\left(I - H \psi K\right)^{*} D^{-1} \left(I - H \psi K\right)",
    ),
    (psi.inv.T, "psi.inv.T", "ψ⁻*", r"\psi^{-*}"),
    ((H @ phi @ K).inv, "(H @ phi @ K).inv", "(HφK)⁻¹", r"\left(H \phi K\right)^{-1}"),
    ((H @ phi @ K).T.inv, "(H @ phi @ K).inv.T", "(HφK)⁻*", r"\left(H \phi K\right)^{-*}"),
    (P_plus.inv, "P_plus.inv", "P⁺⁻¹", "{P^{+}}^{-1}"),
    (D**0.5, "D_half", "D½", r"D^{\frac{1}{2}}"),
    ((D**-0.5).T, "D_half.inv.T", "D½⁻*", r"{D^{\frac{1}{2}}}^{-*}"),
    (mass.logdet, "mass.logdet", "log det(𝓜)", r"\log\det\left(\mathcal{M}\right)"),
    ((2 * mass).logdet, "(2 * mass).logdet", "log det(2𝓜)", r"\log\det\left(2 \mathcal{M}\right)"),
    (mass.logdet.inv, "mass.logdet.inv", "log det(𝓜)⁻¹", r"\log\det\left(\mathcal{M}\right)^{-1}"),
    (J("tool").T, "J('tool').T", "J('tool')*", r"J_{\mathrm{tool}}^{*}"),
    (
        J("left_tool", "b c"),
        "J('left_tool', 'b c')",
        "J('left_tool', 'b c')",
        r"J_{\mathrm{left\_tool},\mathrm{b\ c}}",
    ),
    (
        mass_at("a\\b^c").inv,
        r"mass_at('a\\b^c').inv",
        r"𝓜′('a\\b^c')⁻¹",
        r"{\mathcal{M}'_{\mathrm{a\backslash b\wedge c}}}^{-1}",
    ),
    (I, "I", "I", "I"),
    (zero, "zero", "0", "0"),
    (
        IdentityOperator.of(JOINT_RATES),
        "I[joint rates]",
        "I[joint rates]",
        r"I_{\mathrm{joint\ rates}}",
    ),
    (
        H.T - H.T,
        "zero[body motions, joint rates]",
        "0[body motions, joint rates]",
        r"0_{\mathrm{body\ motions,\ joint\ rates}}",
    ),
    (
        IdentityOperator.of(frame_forces("tool", "it's")),
        """I[forces at 'tool' and "it's"]""",
        """I[forces at 'tool' and "it's"]""",
        r"""I_{\mathrm{forces\ at\ 'tool'\ and\ "it's"}}""",
    ),
]


@pytest.mark.parametrize(("x", "ascii", "unicode", "latex"), LOOKS, ids=lambda x: str(x)[:30])
def test_how_it_looks(x: Expression, ascii: str, unicode: str, latex: str):
    assert (x.ascii, str(x), x.latex) == (ascii, unicode, latex)
    assert_read_back(x)
    if "[" not in ascii and "/" not in ascii:  # spaces and exact fractions are not Python
        assert eval(ascii, dict(vars(symbols))) is x


def test_deep_expressions_are_written_in_no_time():
    x, y = psi, mass.logdet
    for _ in range(20):
        x, y = phi @ M @ x.T @ Omega + phi @ phi @ psi, LogDet.of(y)
    assert_read_back(x)
    assert_read_back(y)
