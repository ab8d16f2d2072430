"""Explanations: what they say is what runs, every symbol has a meaning, every count is exact."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phipsi as pp
from phipsi.operators.algebra.derivation import CONDITIONS, Condition
from phipsi.operators.algebra.expression import Expression
from phipsi.operators.algebra.formula import Equality, Name, Operator
from phipsi.operators.algebra.services import Language
from phipsi.operators.algebra.spaces import SCALARS
from phipsi.operators.algebra.symbols import *
from phipsi.operators.algebra.symbols import rates as symbols_of_rates
from phipsi.operators.dense import System, matrix, system
from phipsi.operators.lowering.program import as_program
from phipsi.operators.lowering.recursions import RECURSIONS
from phipsi.operators.writing.document import Latex, Text
from phipsi.operators.writing.explain import LANGUAGES, Explanation, explain
from phipsi.operators.writing.glossary import prose
from phipsi.operators.writing.parser import parse
from phipsi.operators.writing.pseudocode import GIVEN, Pseudocode
from tests.each import each
from tests.operators.expressions import expressions, leaves_of
from tests.operators.reader import Reader
from tests.operators.systems import random_system
from tests.zoo import close, random_forest

OPERATORS = (
    "mass.inv", "mass", "0.5 * mass", "m", "m.T", "l", "l.T", "I - H @ psi @ K", "I + H @ phi @ K",
    "(I - H @ psi @ K).T", "phi", "phi.T", "psi", "psi.T", "phi_tilde", "psi_tilde", "psi_tilde.T",
    "K", "K.T", "E_psi", "E_psi.T", "Omega", "Upsilon", "Upsilon.inv", "P.inv", "D", "A",
    "phi @ M @ phi.T", "(phi @ M @ phi.T).inv", "psi @ M @ psi.T", "tau_bar", "H @ phi @ G",
    "J('tool')", "J('tool').T", "mass.inv @ J('tool').T", "J('tool') @ mass.inv @ J('tool').T",
    "J('tool', 'camera') @ mass.inv @ J('tool', 'camera').T",
    "(J('tool') @ mass.inv @ J('tool').T).inv",
    "mass.inv @ J('tool').T @ (J('tool') @ mass.inv @ J('tool').T).inv",
    "mass_pp.inv", "mass_aa", "mass_ap", "-mass_pp.inv @ mass_ap.T", "psi_p_tilde.T",
    "mass_aa - mass_ap @ mass_pp.inv @ mass_ap.T", "Omega_p @ M", "I[joint forces]", "0 * H",
    "S_aa", "S_ap", "S_ap.T", "S_pp", "J_D", "J_G('tool')", "proj_p", "proj_a.T",
)  # fmt: skip
DUAL = ("S", "Lambda", "Lambda.inv", "psi_s", "psi_s.T", "(P + S).inv", "G_s", "Upsilon_plus")
VECTORS = (
    "C", "u", "b", "a", "V", "f", "alpha", "mass @ beta_dot + C", "mass.inv @ (T - C)", "xi", "nu",
    "kappa", "eps", "mass.inv @ T", "J('tool') @ mass.inv @ (T - C)", "beta.T @ mass @ beta",
    "B('tool').T @ phi.T @ (H.T @ mass.inv @ (T - C) + a)", "f.T @ V", "T @ T.T @ beta",
    "D.inv @ (T - C)", "mass.logdet", "2 * alpha + 1/3 * phi.T @ H.T @ beta_dot", "nu.T @ nu", "T",
)  # fmt: skip
RATES = (
    "Delta_cross", "V_cross", "V_cross.T", "spin", "spin.T", "H_dot", "H_dot.T", "P_dot", "lam",
    "D_dot", "D_half_dot", "D_half_dot.T", "G_dot", "G_dot.T", "K_dot", "tau_bar_dot", "phi_dot",
    "E_psi_dot.T", "psi_dot", "m_dot", "m_dot.T", "mass_dot", "mass_by('hinge5')",
    "H_cross('hinge5').T", "phi_dot + spin @ phi - phi @ spin", "C_nu", "C_xi", "D_dot @ xi",
)  # fmt: skip
REFUSED = {
    "gamma": "γ (β* ∂𝓜 β for each coordinate: twice the gradient of the kinetic energy) has no",
    "mass_at('tool')": "𝓜′('tool') (mass matrix with another body as the base) has no recursion",
    "(mass + D).inv @ T": "no identity removes the inverse of",
    "(mass + D).logdet": "no identity takes the determinant of",
}
TWO = "(J('tool', 'camera') @ mass.inv @ J('tool', 'camera').T).inv"
ALL = (*OPERATORS, *DUAL, *VECTORS, *RATES, TWO)


def told(x: str, **how: Any) -> Explanation:
    return explain(parse(x), **how)


def section(text: str, name: str) -> list[str]:
    return [line[2:] for line in text.split(f"\n{name}\n")[1].split("\n\n")[0].splitlines()]


def recursion(x: str, **how: Any) -> list[str]:
    """The lines of the recursion, without remarks."""
    return [x.strip().split("    ")[0] for x in section(told(x, **how).text, "Recursion")]


# ---- the recursion -------------------------------------------------------------------------------

RICCATI = "P = M + Σ_c φ_c P⁺_c φ_c*,  D = H P H* + A,  G = P H* D⁻¹,  P⁺ = P − G H P"
INWARD = "tip → base, for each body k (gather over its children c)"
OUTWARD = "base → tip, for each body k with parent p; at the world λ = 0"


def test_the_types_of_names_list_the_names_in_the_tables():
    assert get_args(Language) == tuple(LANGUAGES)
    assert get_args(Condition) == tuple(CONDITIONS)


def test_the_inverse_of_the_mass_matrix_is_the_papers_algorithm():
    assert recursion("mass.inv") == [
        INWARD,
        f"1  {RICCATI}",
        "2  z = Σ_c φ_c z⁺_c",
        "3  ε = x − H z",
        "4  ν = D⁻¹ ε",
        "5  z⁺ = z + G ε",
        OUTWARD,
        "6  λ⁺ = φ* λ_p",
        "7  y = ν − G* λ⁺",
        "8  λ = λ⁺ + H* y",
    ]


def test_forward_dynamics_is_the_papers_algorithm():
    assert recursion("mass.inv @ (T - C)") == [
        "base → tip, for each body k with parent p; at the world V, ᾱ = 0",
        "1  V = φ* V_p + H* β,  a = ad(V) H* β + Ḣ* β",
        "2  g = φ* g_p,  b = crf(V) M V − M g − f_ext",
        "3  ᾱ = φ* ᾱ_p + a,  u = M ᾱ + b",
        INWARD,
        f"4  {RICCATI}",
        "5  z = u + Σ_c φ_c z⁺_c",
        "6  ε = T − H z",
        "7  ν = D⁻¹ ε",
        "8  z⁺ = z + G ε",
        OUTWARD,
        "9  λ⁺ = φ* λ_p",
        "10  β̇ = ν − G* λ⁺",
        "11  λ = λ⁺ + H* β̇",
    ]


def test_inverse_dynamics_is_newton_euler():
    assert recursion("mass @ beta_dot + C")[1:] == [
        "1  V = φ* V_p + H* β,  a = ad(V) H* β + Ḣ* β",
        "2  g = φ* g_p,  b = crf(V) M V − M g − f_ext",
        "3  α = φ* α_p + H* β̇ + a,  f₁ = M α + b",
        INWARD,
        "4  z = f₁ + Σ_c φ_c z_c",
        "5  T = H z + A β̇",
    ]


def test_whitening_and_the_root_of_the_mass_matrix_take_one_sweep():
    sent = ["2  z = Σ_c φ_c z⁺_c", "3  y = x − H z", "4  z⁺ = z + G y"]
    assert recursion("I - H @ psi @ K") == [INWARD, f"1  {RICCATI}", *sent]
    assert recursion("m")[2:] == [
        "2  ε = D½ x", "3  z = Σ_c φ_c z⁺_c", "4  y = ε + H z", "5  z⁺ = z + G ε",
    ]  # fmt: skip


def test_tip_forces_are_placed_and_motions_picked():
    assert recursion("J('tool') @ mass.inv @ J('tool').T") == [
        INWARD,
        f"1  {RICCATI}",
        "2  z = B('tool') x + Σ_c φ_c z⁺_c",
        "3  ε = H z",
        "4  ν = D⁻¹ ε",
        "5  z⁺ = z − G ε",
        OUTWARD,
        "6  λ⁺ = φ* λ_p",
        "7  λ = λ⁺ + H* (ν − G* λ⁺)",
        "8  at 'tool': y = B('tool')* λ",
    ]


def test_the_operational_inertia_is_the_inverse_of_upsilon():
    assert recursion("(J('tool') @ mass.inv @ J('tool').T).inv")[2:] == [
        "base → tip, for each body k with parent p; at the world Υ = 0",
        "2  τ̄ = I − G H,  Υ⁺ = φ* Υ_p φ,  Υ = τ̄* Υ⁺ τ̄ + H* D⁻¹ H",
        "3  at 'tool': Y_i = B('tool')* Υ B('tool') e_i",
        "4  at 'tool': y = Y⁻¹ x",
    ]


def test_the_determinant_is_a_sum_over_bodies():
    assert recursion("mass.logdet") == [INWARD, f"1  {RICCATI}", "2  y = Σ_k log det D"]


def test_passive_arms_have_the_same_recursion_with_the_passive_hinges():
    text = recursion("mass_pp.inv")
    assert "P_p = M + Σ_c φ_c P_p⁺_c φ_c*,  D_p = H_p P_p H_p* + A_p" in text[1]
    assert text[3:6] == ["3  ε = x − H_p z", "4  ν = D_p⁻¹ ε", "5  z⁺ = z + G_p ε"]
    assert text[-3:] == ["6  λ⁺ = φ* λ_j", "7  y = ν − G_p* λ⁺", "8  λ = λ⁺ + H_p* y"]
    assert "with parent j" in text[-4]  # p is taken


def test_the_recursions_behind_symbols_are_all_written():
    for recursion in RECURSIONS:
        assert {Name.of(x.symbol) for x in recursion.gives} & recursion.formulas.keys()
        assert recursion.source


def code_of(x: str) -> Pseudocode:
    code = told(x).code
    assert code is not None
    return code


@each("x", ALL)
def test_each_value_is_defined_or_written_out_once(x: str):
    code = code_of(x)
    lines = [line for one in code.passes for line in one.lines]
    written = Counter(v for line in lines for v in line.values if v.op not in GIVEN)
    computed = [v for v in code.plan.values if v.op not in GIVEN]
    assert {*written} == {code.like[v] for v in computed}
    assert set(written.values()) <= {1}
    names = [name for v, name in code.name.items() if v.op not in GIVEN]
    assert len(set(names)) == len(names)


@each("x", OPERATORS)
@each("seed", range(3))
def test_the_pseudocode_computes_operators(x: str, seed: int):
    check(x, random_system(seed, free=".inv" in x), seed)  # Υ has an inverse if all can fly


def test_the_pseudocode_computes_with_unit_vectors():
    check(TWO, random_system(2, free=True), 2)  # the frames are on two bodies


@each("x", DUAL)
def test_the_pseudocode_computes_the_dual(x: str):
    check(x, random_system(3, free=True), 3)


@each("x", (*VECTORS, *RATES))
def test_the_pseudocode_computes_vectors_and_rates(x: str):
    rng = np.random.default_rng(5)
    robot = random_forest(176, 6)  # a universal root, branches, every kind of freedom
    q, v = robot.random_state(rng)
    check(x, system(robot, q, v, external=rng.normal(size=(robot.nb, 6))), 5)


def running() -> st.SearchStrategy[Expression]:
    """Expressions of symbols that have pseudo-code and need no motion."""
    moving = {a, b, C, u, V, alpha, f, xi, nu, beta}
    leaves = [
        x for x in leaves_of(frames=(("tool",), ("tool", "camera")))
        if x not in moving and x.symbol.name not in symbols_of_rates.__all__ and explain(x).code
    ]  # fmt: skip
    return expressions(6, leaves=leaves, inverses=False, logdet=False)


@settings(deadline=None)
@given(st.deferred(running))
def test_the_pseudocode_computes_any_expression(x: Expression):
    code = explain(x).code
    if code is not None and code.passes:
        check(x, random_system(3, free=True), 3)


def check(text: str | Expression, s: System, seed: int) -> None:
    """Read the pseudo-code with random vectors, and compare with the dense matrices."""
    x = parse(text) if isinstance(text, str) else text
    rng, explanation = np.random.default_rng(seed), explain(x)
    code = explanation.code
    assert code is not None
    reader = Reader(s, code)
    vectors = {name: rng.normal(size=s.size(space)) for name, space in code.plan.inputs.items()}
    if "beta" in s.given:
        vectors["beta"] = s.given["beta"].ravel()
        reader.move(vectors["beta"])
    for unit in (v for v in code.plan.values if v.op == "unit"):
        reader.give("e_i", np.eye(s.size(unit.space)), unit.space)
    for name, space in code.plan.inputs.items():
        reader.give("x" if name == "x" else SYMBOLS[name].unicode, vectors[name], space)
    reader.run()
    found = reader.result("y" if code.copied else str(explanation.letter), x.codomain)
    argument = vectors.pop("x", np.zeros(s.size(x.domain)))
    dense = matrix(x, s, **vectors)
    close(found, dense if x.domain == SCALARS else dense @ argument, 1e-8)


# ---- the derivation ------------------------------------------------------------------------------


def test_the_derivation_names_identities_and_sources_and_marks_the_form_that_runs():
    text = section(told("mass.inv").text, "Derivation")
    assert text[:3] == [
        "  𝓜⁻¹",
        "= (HφMφ*H* + A)⁻¹",
        "      definition of 𝓜: 𝓜 = HφMφ*H* + A  [SOA] (3.1)-(3.6)",
    ]
    assert text[-2] == "= (I − HψK)*D⁻¹(I − HψK)    ← the cheapest form: this one runs"
    assert sum("←" in line for line in text) == 1
    direct = section(told("mass").text, "Derivation")
    assert direct[0] == "  𝓜    ← the cheapest form: this one runs"


@each("x", ALL)
def test_each_step_of_the_derivation_is_told(x: str):
    explanation = told(x)
    text, steps = section(explanation.text, "Derivation"), explanation.derivation.steps
    assert [line.partition("    ←")[0] for line in text if line.startswith("= ")] == [
        f"= {step.expression}" for step in steps
    ]
    for step in steps:
        assert any(step.name in line and step.source in line for line in text)


def test_conditions_are_said():
    text = told("(H @ phi @ M @ phi.T @ H.T).inv").text
    assert "It holds if no joint has armature." in text


@each("x", REFUSED)
def test_refusals_say_why(x: str):
    explanation = told(x)
    (line,) = section(explanation.text, "Recursion")
    assert line.startswith(f"No recursion computes it: {REFUSED[x]}")
    assert explanation.plan is None and "\nCost\n" not in explanation.text
    assert "\nSymbols\n" in explanation.text and "←" not in explanation.text


def test_what_it_takes_and_gives():
    def first(x: str) -> str:
        return told(x).text.splitlines()[2].strip()

    assert first("mass.inv") == (
        "It takes x (joint forces) and gives y (joint rates), at a configuration q."
    )
    assert first("mass.inv @ (T - C)") == (
        "It takes T (joint forces) and gives β̇ (joint accelerations), "
        "at a configuration q and joint rates β."
    )
    assert first("mass.logdet") == "It gives y (a number), at a configuration q."
    assert "x (forces at 'tool') and gives y (motions at 'tool')" in first(
        "J('tool') @ mass.inv @ J('tool').T"
    )


# ---- symbols -------------------------------------------------------------------------------------

LETTER = re.compile(r"[^\W\d_ₐ-ₜ][\u0300-\u036f˙′½]*(?:_(?:ext|[a-z]{1,2}|φs?|ψp?))?[₀-₉]*⁺?")
"""A symbol in a line, with indices; those of neighbours are cut off below."""


def letters_of(line: str) -> set[str]:
    """The symbols of a line of pseudo-code."""
    line = re.sub(r"^\d+  (at .*?: )?|B\(.*?\)|(?<=H̃)\(.*?\)", "", line.replace("log det", ""))
    found = {x.strip("()*⁻¹,−") for x in re.split(r"[\s=]+|(?<=[a-z])\(", line)}
    found = {re.sub(r"(?<=[^_])_[cpjki]$", "", x) if x not in OWN else x for x in found}
    return {x for x in found if x and not re.fullmatch(r"[-+−./\d]*|Σ|Σ_.", x)}


OWN = {row.unicode for row in SYMBOLS.values()} | {"e_i"}


@each("language", ["dynamics", "estimation"])
@each("x", ALL)
def test_each_symbol_of_the_recursion_has_a_meaning(x: str, language: str):
    explanation = told(x, language=language)
    lines = [x for x in recursion(x, language=language) if x[0].isdigit()]
    named = [*map(str, explanation.symbols)]
    known = {*named} | {"e_i"} & {f"{x}_i" for x in named}
    missing = {letter for line in lines for letter in letters_of(line)} - known
    assert not missing, missing
    assert all(row.meaning for row in explanation.symbols.values())
    rows = section(explanation.text, "Symbols")
    assert [row.split("  ")[0] for row in rows] == named


def test_meanings_have_units_and_come_in_order():
    rows = section(told("mass.inv").text, "Symbols")
    assert rows[0].split("  ", 1)[0] == "𝓜" and "joint-space mass matrix [kg·m²" in rows[0]
    assert [row.split()[0] for row in rows[:4]] == ["𝓜", "H", "φ", "M"]
    assert any(row.startswith("ε ") and row.endswith("[N·m or N]") for row in rows)


def test_names_of_the_expression_are_not_used_for_anything_else():
    text = recursion("eps")
    assert "3  κ = T − H z" in text and "4  ε = D½⁻¹ κ" in text


# ---- estimation ----------------------------------------------------------------------------------


def test_the_same_recursion_is_a_filter_and_a_smoother():
    both = [recursion("mass.inv", language=name) for name in ("dynamics", "estimation")]
    numbered = [[line for line in lines if line[0].isdigit()] for lines in both]
    assert numbered[0] == numbered[1]
    text = told("mass.inv", language="estimation").text
    for words in (
        "filter (tip → base)", "smoother (base → tip)", "ε = x − H z    innovations",
        "predicted covariance, innovation covariance, Kalman gain, filtered covariance",
        "adjoint variable (Bryson–Frazier)", "whitening filter", "colouring filter",
        "covariance of all measurements", "[SOA] 4",
    ):  # fmt: skip
        assert words in text
    assert "Kalman" not in told("mass.inv").text


def test_an_unknown_language_is_refused():
    with pytest.raises(ValueError, match="language 'french' is not known; there are dynamics and"):
        told("mass", language="french")


# ---- cost ----------------------------------------------------------------------------------------


@each("x", ["mass.inv", "J('tool') @ mass.inv @ J('tool').T", "mass.logdet"])
def test_the_count_is_exact(x: str):
    robot = pp.robots.space_arm()
    operations = as_program(parse(x)).graph(robot).operations
    explanation = told(x, robot=robot)
    assert explanation.operations == operations
    sentence = section(explanation.text, "Cost")[-1]
    assert sentence.startswith(f"Exactly {operations} scalar operations on space_arm (8 bodies")
    assert sentence.endswith(f", {operations / 8:.0f} for each body.")


@each("x", ["mass.inv @ (T - C)", "J('tool') @ mass.inv @ J('tool').T", "m"])
def test_the_cost_grows_linearly_with_the_chain(x: str):
    counts = [told(x, robot=chain(n)).operations or 0 for n in (10, 20, 40)]
    slopes = [(counts[1] - counts[0]) / 10, (counts[2] - counts[1]) / 20]
    assert slopes[0] > 0 and slopes[1] == pytest.approx(slopes[0], rel=0.01)  # the ends differ


def chain(n: int) -> pp.Robot:
    """n equal links, every hinge about another axis than the last."""
    builder = pp.Builder("chain")
    for i in range(n):
        builder.body(f"link{i}", mass=1.0, com=(0.1, 0.2, 0.3), inertia=np.diag([1.0, 1.1, 1.2]))
        parent = f"link{i - 1}" if i else "world"
        axis = (1.0, 0.0, 0.0) if i % 2 else (0.0, 1.0, 0.0)
        builder.hinge(f"hinge{i}", "revolute", parent, f"link{i}", position=(0, 0, 1), axis=axis)
    builder.frame("tool", f"link{n - 1}", position=(0.0, 0.1, 0.5))
    return builder.build()


@each("x", ALL)
def test_the_estimate_is_that_of_the_sweeps(x: str):
    code = code_of(x)
    first = section(told(x).text, "Cost")[0]
    each = re.findall(r"(?:tip|base|body) (\d+)(?:,|\))", first)
    assert f"Roughly {code.plan.cost} operations" in first and "O(N)" in first
    assert sum(map(int, each)) == code.plan.cost


# ---- robots --------------------------------------------------------------------------------------


def test_frames_and_conditions_are_checked_with_a_robot():
    robot = pp.robots.space_arm()
    with pytest.raises(pp.ModelError, match="no frame 'tol'; did you mean 'tool'"):
        told("J('tol')", robot=robot)
    with pytest.raises(ValueError, match="needs to know which joints are active"):
        told("mass_pp.inv", robot=robot)
    with pytest.raises(pp.ModelError, match="only if no joint has armature, but joint 'hinge"):
        told("(H @ phi @ M @ phi.T @ H.T).inv", robot=geared())
    with pytest.raises(ValueError, match="give the robot"):
        told("mass_pp.inv", active=["base"])
    with pytest.raises(TypeError, match="needs a Robot first, got str"):
        told("mass", robot="space_arm")
    with pytest.raises(ValueError, match="no hinge 'nope'"):
        told("mass_pp.inv", robot=robot, active=["nope"])


def geared() -> pp.Robot:
    builder = pp.Builder("geared").body("link", mass=1.0, inertia=np.eye(3))
    builder.hinge("hinge", "revolute", "world", "link", axis=(0, 0, 1), armature=0.1)
    return builder.build()


def test_active_joints_are_named_or_marked():
    robot = pp.robots.space_arm()
    named = told("mass_pp.inv", robot=robot, active=["elbow_pitch", "wrist_roll"])
    mask = np.zeros(robot.nv, bool)
    mask[[robot.hinge(name).v.start for name in ("elbow_pitch", "wrist_roll")]] = True
    assert named.operations == told("mass_pp.inv", robot=robot, active=mask).operations
    assert named.operations


# ---- pages ---------------------------------------------------------------------------------------

ODD = ("J('left_hand %&#', 'it is $1 {2}')", "B('~^')")


@each("language", ["dynamics", "estimation"])
@each("x", [*ALL, *REFUSED, *ODD])
def test_markdown_and_latex_are_balanced(x: str, language: str):
    explanation = told(x, language=language)
    for page in (explanation.markdown, explanation.latex):
        bare = re.sub(r"\\[{}$\\]", "", page)
        assert bare.count("{") == bare.count("}")
        assert bare.count("$") % 2 == 0
        for formula in re.findall(r"\$+([^$]+)\$+", bare):
            assert formula.isascii() and formula.count("{") == formula.count("}"), formula
            assert not re.search(r"\^\{[^{}]*\}\^|_\{[^{}]*\}_|'\^", formula), formula
    latex = explanation.latex
    assert latex.isascii()
    assert latex.count(r"\begin{itemize}") == latex.count(r"\end{itemize}") > 0
    assert explanation._repr_markdown_() == explanation.markdown
    assert str(explanation) == explanation.text


@each("x", [*ALL, *REFUSED, *ODD, *(row.unicode for row in SYMBOLS.values() if not row.framed)])
def test_formulas_are_set_as_they_are_meant(x: str):
    assert parse(parse(x).latex) is parse(x)


def test_lines_are_set():
    (line,) = (x for one in code_of("mass_pp.inv").passes for x in one.lines if x.recursion)
    assert line.formulas[0].latex == (r"P_{p} = M + \sum_{c} \phi_{c} {P_{p}}_{c}^{+} \phi_{c}^{*}")
    z = Name("λ", r"\lambda", number=2)
    x = Equality(z.plussed, Operator(phi.T) @ z["p"] - (z + z).T @ z.inv.T)
    assert str(x) == "λ₂⁺ = φ* λ₂_p − (λ₂ + λ₂)* λ₂⁻*"
    assert x.latex == (
        r"\lambda_{2}^{+} = \phi^{*} \lambda_{2,p}"
        r" - \left(\lambda_{2} + \lambda_{2}\right)^{*} \lambda_{2}^{-*}"
    )


@each("x", ALL)
def test_lines_have_the_same_names_in_unicode_and_in_latex(x: str):
    for line in (line for one in code_of(x).passes for line in one.lines):
        for formula in line.formulas:
            names = [*formula.names]
            assert _in_order(str(formula), [name.letter for name in names]), formula
            assert _in_order(formula.latex, [name.tex for name in names]), formula
            assert letters_of(str(formula)) - {"e_i"} <= {*map(str, names)}, formula


def _in_order(text: str, words: list[str]) -> bool:
    """Do the words stand in the text one after another?"""
    for word in words:
        _, found, text = text.partition(word)
        if not found:
            return False
    return True


def test_formulas_in_prose_stand_between_braces():
    said = prose("root of {D}: {D = D½ D½*}, not {−S⁺}{H*}{D_s⁻¹} − 1")
    assert Text().sentence(said) == "root of D: D = D½ D½*, not −S⁺H*D_s⁻¹ − 1"
    assert Latex().sentence(said) == (
        r"root of $D$: $D = D^{\frac{1}{2}} {D^{\frac{1}{2}}}^{*}$, "
        r"not $-S^{+} H^{*} D_{s}^{-1}$ $-$ 1"
    )
    assert prose("nothing in it") == ("nothing in it",)
    with pytest.raises(KeyError):
        prose("{H f what}")


def test_explain_is_a_method_and_a_function():
    assert explain(mass.inv).text == mass.inv.explain().text
    assert repr(mass.explain()) == str(mass.explain())
