"""The parser: what it reads, what it says of what it does not read, and that nothing breaks it."""

from __future__ import annotations

import inspect
import sys
from fractions import Fraction
from unicodedata import normalize

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phipsi.operators.algebra import symbols
from phipsi.operators.algebra.expression import Expression, IdentityOperator, ZeroOperator
from phipsi.operators.algebra.spaces import BODY_MOTIONS, JOINT_FORCES, JOINT_RATES, SpaceError
from phipsi.operators.algebra.spaces import frame_forces as at
from phipsi.operators.algebra.symbols import (
    D,
    E_phi_s,
    G_s,
    H,
    H_a,
    H_cross,
    I,
    J,
    K,
    M,
    P_plus,
    T,
    V,
    b,
    mass,
    mass_aa,
    mass_at,
    mass_by,
    phi,
    phi_tilde,
    psi,
    rebase,
    tau_bar,
    tau_bar_dot,
    tau_bar_p,
    zero,
)
from phipsi.operators.writing.parser import DEEPEST, LONGEST, ParseError, parse
from tests.operators.expressions import expressions, leaves_of

whiten = (I - H @ psi @ K).T @ D.inv

READ = [
    # ASCII, as Python
    ("(I - H @ psi @ K).T @ D.inv", whiten),
    ("0.5 * V.T @ M @ V", 0.5 * V.T @ M @ V),
    ("0.5*V.T@M@V", 0.5 * V.T @ M @ V),
    ("J('tool') @ mass.inv @ J(\"tool\").T", J("tool") @ mass.inv @ J("tool").T),
    ("J('a', 'b')", J("a", "b")),
    (r"J ( 'it\'s', '\x41\u00e9\\' )", J("it's", "Aé\\")),
    ("D ** 0.5", D**0.5),
    ("D**-0.5", D**-0.5),
    ("D ** (1/2)", D**0.5),
    ("phi ** 2", phi @ phi),
    ("phi.T ** 3 @ H.T", phi.T @ phi.T @ phi.T @ H.T),
    ("psi ** -2", psi.inv @ psi.inv),
    ("phi ** 1", phi),
    ("mass.logdet", mass.logdet),
    ("2 * mass.logdet - D.logdet", 2 * mass.logdet - D.logdet),
    ("H @ -K", -H @ K),
    ("2 * -H", -2 * H),
    ("- -H", H),
    ("H - -H", 2 * H),
    ("2 * 3 / 4 * H", 1.5 * H),
    ("2 ** 3 * H", 8 * H),
    ("(2 * I) @ H", 2 * H),
    ("H @ (phi + I)", H @ (phi + I)),
    ("\n H\t@\n phi ", H @ phi),
    # Unicode, side by side
    ("(I − HψK)*D⁻¹(I − HψK)", whiten @ (I - H @ psi @ K)),
    ("[I − HψK]* D⁻¹", whiten),
    ("ψ⁻*", psi.inv.T),
    ("ψ*⁻¹", psi.inv.T),
    ("log det(𝓜)", mass.logdet),
    ("logdet(𝓜)⁻¹", mass.logdet.inv),
    ("Tlog det(𝓜)", T @ mass.logdet),
    ("D½⁻*", (D**-0.5).T),
    ("2Hφ", 2 * H @ phi),
    ("(1/3)HφMφ*H*", Fraction(1, 3) * H @ phi @ M @ phi.T @ H.T),
    ("2*H*", 2 * H.T),
    ("H*@𝓜⁻¹", H.T @ mass.inv),
    ("H_ab", H_a @ b),
    ("G_sHE_φs", G_s @ H @ E_phi_s),
    ("𝓜_aa⁻¹H_ab", mass_aa.inv @ H_a @ b),
    ("τ̄τ̄_pτ̄˙", tau_bar @ tau_bar_p @ tau_bar_dot),
    ("𝓜′('a') + ∂𝓜('b')", mass_at("a") + mass_by("b")),
    ("1e-05H", 1e-5 * H),
    # LaTeX
    (r"\left(I - H \psi K\right)^{*} D^{-1}", whiten),
    (r"\left [I - H\psi K\right ]^*\, D^{-1}", whiten),
    ("{P^{+}}^{-1}", P_plus.inv),
    ("{H}{φ}", H @ phi),
    (r"J_{\mathrm{left\_tool},\mathrm{b}}", J("left_tool", "b")),
    (r"J_{\text{left_tool}, \mathrm{R}}^{*}", J("left_tool", "R").T),
    (r"\mathrm{R}_{\mathrm{R}}", rebase("R")),
    (r"\log\det\left(\mathcal{M}\right)", mass.logdet),
    (r"\log \det(\mathcal{M}_{aa})", mass_aa.logdet),
    (r"\tilde{\phi}\tilde{H}_{\mathrm{x}}", phi_tilde @ H_cross("x")),
    # units and numbers
    ("I", I),
    ("zero", zero),
    ("0", zero),
    ("2I", 2 * I),
    ("2", 2 * I),
    ("phi + 1", phi + I),
    ("I[joint forces]", IdentityOperator.of(JOINT_FORCES)),
    ("zero[body motions, joint rates]", ZeroOperator.of(BODY_MOTIONS, JOINT_RATES)),
    ("0[body motions,joint rates]", ZeroOperator.of(BODY_MOTIONS, JOINT_RATES)),
    (r"I_{\text{joint forces}}", IdentityOperator.of(JOINT_FORCES)),
    (r"0_{\mathrm{body\ motions, joint rates}}", ZeroOperator.of(BODY_MOTIONS, JOINT_RATES)),
    ("I[forces at 'tool' and 'x']", IdentityOperator.of(at("tool", "x"))),
    ("""zero[motions at ", ]", joint rates]""", ZeroOperator.of(at(", ]").dual, JOINT_RATES)),
    (r"I_{\text{motions at 'it\'s\_'}}", IdentityOperator.of(at("it's_").dual)),
    ("0 * H", H - H),
    ("H + 0", H),
    ("1e-3 * H", 1e-3 * H),
    (".5 H", 0.5 * H),
    ("0.1 * H", 0.1 * H),
    ("1/10 * H", Fraction(1, 10) * H),
    ("(-1/3) * H", Fraction(-1, 3) * H),
    ("(−(1 + 1/2)) H", -1.5 * H),
]


@pytest.mark.parametrize(("text", "x"), READ, ids=[text for text, _ in READ])
def test_reads(text: str, x: Expression):
    assert parse(text) is x


WRONG = [
    ("", "should stand here, not the end", 1),
    ("   ", "should stand here, not the end", 4),
    ("H @", "should stand here, not the end", 4),
    ("@ H", "should stand here, not @", 1),
    ("H + + K", "should stand here, not [+]", 5),
    ("()", r"should stand here, not \)", 2),
    ("H*2", "write the number first", 3),
    ("H * 2", "write the number first", 3),
    ("H * K", "@ between operators", 3),
    ("H @ 2", "write the number first", 5),
    ("H 2", "write the number first", 3),
    ("2 3 H", "write the number first", 3),
    ("H / 2", "write the number first", 3),
    ("phi ** 2 * H", "write the number first", 10),
    ("1/0 * H", "only numbers divide, and not zero", 3),
    ("2/H", "only numbers divide.*x.inv", 3),
    ("J", r"J needs frames, in quotes: J\('tool'\)", 1),
    ("2 * J.T", r"J needs frames, in quotes: J\('tool'\)", 5),
    ("J(tool)", r"J needs frames, in quotes: J\('tool'\)", 1),
    ("J('tool)", r"J needs frames, in quotes: J\('tool'\)", 1),
    (r"J('\q')", r"J needs frames, in quotes: J\('tool'\)", 1),
    (r"J('\U99999999')", "illegal Unicode character", 2),
    ("mass_by()", r"mass_by needs frames, in quotes: mass_by\('tool'\)", 1),
    ("J('a', 'a')", r"J names a frame twice: write J\('a'\)", 1),
    ("H @ phi('tool')", "phi has no frames: write phi", 5),
    ("H @ psy @ K", "no symbol is called 'psy': did you mean psi?", 5),
    ("Mass.inv", "no symbol is called 'Mass': did you mean mass?", 1),
    ("OMEGA", "no symbol is called 'OMEGA': did you mean Omega?", 1),
    ("psi_tild", "no symbol is called 'psi_tild': did you mean psi_tilde?", 1),
    ("HψK + HϕK", "no symbol is called 'ϕ': did you mean φ?", 8),
    (r"H \phiM", r"no symbol is called '\\\\phiM': did you mean \\phi?", 3),
    ("mass.logdt", r"no symbol is called '.logdt': did you mean .logdet", 5),
    ("Hxyzzy", "no symbol is called 'Hxyzzy': write @ between names", 1),
    ("T = mass @ beta_dot", "no symbol is called '='", 3),
    ("'tool'", "quotes around frames", 1),
    ("(H @ phi", r"\) should stand here, for the bracket opened in column 1", 9),
    ("2 * (H]", r"\) should stand here, for the bracket opened in column 5", 7),
    ("H)", r"\) has no place here", 2),
    ("phi ** 2 ** 2", r"\*\* has no place here", 10),
    ("phi ** 2.T", ".T has no place here", 9),
    ("phi ** H", "the power after .* is a number", 5),
    ("phi ** 0.5", "whole powers", 5),
    ("phi ** 101", "more than 100 parts", 5),
    ("phi ** (-1000000)", "more than 100 parts", 5),
    ("((phi + psi)**30)**30", "more than 100 parts", 18),
    ("phi" + ".T" * 31, "more than 30 brackets are open, or marks", 64),
    ("log det 𝓜", "log det needs brackets", 9),
    ("H @ zero.inv", "zero has no inverse", 9),
    ("I[joint force]", "no space is called 'joint force': write joint forces", 1),
    ("I[forces]", "no space is called 'forces': write", 1),
    ("I[body forces at 'x']", "no space is called 'body forces' at 'x': write forces at 'x'", 1),
    ("I[joint forces, joint rates]", "I has one space, zero two", 1),
    ("zero[joint forces]", "I has one space, zero two", 1),
    ("1e999 * H", "the number is too large", 1),
    ("9" * 1001, "the number is too large", 1),
    ("2 * " + "9" * 400, "a number in an expression is at most 1.8e308", 5),
    ("(" * 31, "more than 30 brackets are open", 31),
    ("φ(" + "1e300*" * 20 + "φ + φφ)φ + φ", "1.8e308", 3),
]


@pytest.mark.parametrize(("text", "message", "column"), WRONG, ids=[row[0][:25] for row in WRONG])
def test_says_what_is_wrong(text: str, message: str, column: int):
    with pytest.raises(ParseError, match=message) as caught:
        parse(text)
    assert f"(column {column})\n" in str(caught.value)


MISFITS = [
    ("H @ phi @ H", "φ takes body forces, H gives joint forces", 11),
    ("HφI H", "φ takes body forces, H gives joint forces", 5),
    ("H + I @ phi", "φ takes body forces and gives body forces", 5),
    ("2 * H - 3 * M", "M takes body motions", 9),
    ("φ (H + HH)", "H takes body forces, H gives joint forces", 9),
    ("H + I", "the identity gives what it takes", 1),
    ("phi @ H.inv", "H has no inverse", 8),
    ("J('tool').logdet", "has no determinant", 10),
    ("I[joint forces] @ I[joint rates]", "takes joint forces", 19),
    ("H ** 2", "H takes body forces", 3),
]


@pytest.mark.parametrize(("text", "message", "column"), MISFITS, ids=[row[0] for row in MISFITS])
def test_says_what_does_not_fit(text: str, message: str, column: int):
    with pytest.raises(SpaceError, match=message) as caught:
        parse(text)
    assert f"(column {column})\n" in str(caught.value)


def test_points_at_the_place():
    with pytest.raises(ParseError) as caught:
        parse("τ̄φ̃ @ psy")
    assert str(caught.value).endswith("\n  τ̄φ̃ @ psy\n       ^")
    with pytest.raises(ParseError) as caught:
        parse("φ" * 200 + "\n\n?" + "φ" * 200)
    _, shown, caret = str(caught.value).split("\n")
    assert len(shown) < 100
    assert shown[caret.index("^")] == "?"


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_accents_may_be_composed_or_not(form: str):
    for x in leaves_of(frames=[("tool",)]):
        assert parse(normalize(form, str(x))) is x  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_accents_of_frames_are_kept(form: str):
    frame = normalize(form, "é")  # type: ignore[arg-type]
    assert parse(f"J('{frame}')") is J(frame)
    assert parse(f"J_{{\\mathrm{{{frame}}}}}") is J(frame)


def test_text_has_a_limit():
    assert parse("φ" * LONGEST).factors == (phi,) * LONGEST
    with pytest.raises(ParseError, match="10001 characters"):
        parse("φ" * (LONGEST + 1))


def test_deep_stacks_get_the_same_error():
    def deeper(by: int) -> Expression:
        return deeper(by - 1) if by else parse("(φ + ψ" * 25 + ")⁻¹" * 25)

    assert parse("(φ + φ" * 25 + "ψ" + ")⁻¹" * 25)
    with pytest.raises(ParseError, match="nested too deep"):
        deeper(sys.getrecursionlimit() - len(inspect.stack()) - 80)


HOSTILE = [
    "(φψ+φM" * DEEPEST + "ψ*Ω" + ")*Ω" * DEEPEST,
    "(φ+φM" * DEEPEST + "ψ*Ω" + ")⁻*Ω" * DEEPEST,
    "(φ+ψ" * DEEPEST + "ψ" + ")⁻¹" * DEEPEST,
    "log det(" * DEEPEST + "M" + ")" * DEEPEST,
    "+".join(f"φ**{k}" for k in range(2, 99)),
    "φ+ψψ-" * 1999 + "φ",
    "-" * 9999 + "H",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_long_and_deep_texts_are_read(text: str):
    x = parse(text)
    if len(x.ascii) <= LONGEST:
        assert parse(x.ascii) is x


# ---- nothing breaks it ---------------------------------------------------------------------------

PIECES = sorted(
    {w for row in symbols.SYMBOLS.values() for w in (row.name, row.unicode, row.latex)}
    | {*"+-−*/@()[]{}^_,.'\" \\0129½", "**", "⁻¹", "⁻*", ".T", ".inv", ".logdet", "^{-1}", "^{*}"}
    | {"log det", "\\log\\det", "\\left(", "\\right)", "I", "zero", "0.5", "1e-3", "1e400", "(1/3)"}
    | {"('tool')", "_{\\mathrm{tool}}", "[joint forces]", "[forces at 'x', numbers]", "\\text{"}
)


def read(text: str) -> None:
    try:
        x = parse(text)
    except (ParseError, SpaceError) as error:
        assert str(error)
        return
    assert parse(x.ascii) is x


@given(st.text())
@example("\ud800'\ud800'")
@example("J('\ud800')")
@example("J('\0')")
@example("I[forces at '\\U99999999']")
def test_random_text_breaks_nothing(text: str):
    read(text)


@settings(max_examples=500)
@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_random_pieces_break_nothing(text: str):
    read(text)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A text of an expression in which something was cut, doubled, put in or turned round."""
    x = draw(expressions(6))
    text = draw(st.sampled_from([x.ascii, str(x), x.latex]))
    for _ in range(draw(st.integers(1, 3))):
        start, stop = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        cut = text[start:stop]
        put = draw(st.sampled_from(["", cut + cut, cut[::-1]]) | st.sampled_from(PIECES))
        text = text[:start] + put + text[stop:]
    return text


@settings(max_examples=500)
@given(mutated())
def test_mutations_break_nothing(text: str):
    read(text)
