"""Glossary: what the names in an explanation stand for, as dynamics and as estimation.

Symbols have their meaning in `symbols`; here are those of the names that a recursion introduces, of
the factors of a mass matrix, and of the notation. The readings as estimation are those of [SOA] 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from operator import matmul

from phipsi.operators.algebra.expression import Expression, Leaf
from phipsi.operators.algebra.formula import (
    IDENTITY,
    Equality,
    Formula,
    Name,
    Operator,
    Power,
    Sum,
)
from phipsi.operators.algebra.polynomial import MEANING, F, F_p, W, W_p
from phipsi.operators.algebra.spaces import SCALARS, Space
from phipsi.operators.algebra.symbols import *
from phipsi.operators.lowering.dataflow import Value
from phipsi.operators.lowering.recursions import D_s, P_plus_dot, U_dot, ad, crf, f_ext, g
from phipsi.operators.writing.document import Sentence
from phipsi.operators.writing.pseudocode import (
    BIAS,
    LOAD,
    MATRIX,
    NUMERALS,
    RESULT,
    UNIT,
    Pseudocode,
    X,
    letters,
)

# ---- words with formulas -------------------------------------------------------------------------

NAMES = {
    str(name): name
    for name in (
        *map(Name.of, SYMBOLS.values()),
        IDENTITY, D_s, Name("c", "c"), Name("U", "U"), Name("ν̇", r"\dot{\nu}"),
        Name("ξ̇", r"\dot{\xi}"),
    )
}  # fmt: skip
"""The names that are written in texts."""
SIGNS = {"+": Fraction(1), "−": Fraction(-1)}
POWERS = {"⁻¹": (True, False), "⁻*": (True, True), "*": (False, True)}


def prose(text: str) -> Sentence:
    """A text whose formulas stand between braces: "the joint force is {H f}".

    In a formula blanks stand between names, which may have *, ⁻¹ or ⁻*, and signs.
    """
    parts = text.replace("}", "{").split("{")
    found = (_formula(part) if i % 2 else part for i, part in enumerate(parts))
    return tuple(part for part in found if part)


def _formula(text: str) -> Formula:
    left, equals, right = text.partition(" = ")
    if equals:
        return Equality(_formula(left), _formula(right))
    signs, products = [Fraction(1)], list[list[Formula]]([[]])
    for word in text.replace("−", "− ").split():
        if word not in SIGNS:
            products[-1].append(_factor(word))
        elif products[-1]:
            signs.append(SIGNS[word])
            products.append([])
        else:
            signs[-1] = SIGNS[word]
    terms = [reduce(matmul, factors) for factors in products]
    return terms[0] if signs == [1] else Sum(tuple(zip(signs, terms, strict=True)))


def _factor(word: str) -> Formula:
    for mark, power in POWERS.items():
        if word.endswith(mark):
            return Power(NAMES[word.removesuffix(mark)], *power)
    return NAMES[word]


# ---- meanings ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Meaning:
    """What a name stands for, its unit, and its reading as an estimation problem."""

    meaning: Sentence
    unit: str = ""
    estimation: str = ""


def meaning(text: str, unit: str = "", estimation: str = "") -> Meaning:
    """A meaning whose formulas stand between braces."""
    return Meaning(prose(text), unit, estimation)


PHI = Name.of(phi.symbol)
GLOSSARY: Mapping[Formula, Meaning] = {
    **{Name.of(x): meaning(x.description, x.unit, x.estimation) for x in SYMBOLS.values()},
    # ---- names of the recursions ----------------------------------------------------------------
    PHI["k"]: meaning(
        "in the recursion: the block of {φ} from body k to its parent, {φ} that of the body at "
        "hand", "1 and m", "transition from one station to the next"),
    g: meaning("gravity, carried from the world into the axes of the body", "m/s²"),
    f_ext: meaning("external forces on the body", "N·m, N"),
    BIAS: meaning("spatial accelerations at zero joint acceleration", "rad/s², m/s²"),
    D_s: meaning("{S⁺} seen along the hinge, with armature", "kg·m² or kg"),
    U_dot: meaning("rate of {U = P H*}", "kg·m/s, kg·m²/s"),
    P_plus_dot: meaning("rate of {P⁺}", "kg/s, kg·m/s, kg·m²/s"),
    IDENTITY: meaning("identity"),
    ad: meaning("cross product of motions"),
    crf: meaning("cross product of a motion with a force"),
    # ---- the factors of a mass matrix -----------------------------------------------------------
    Operator(MEANING[W]): meaning(
        "joint forces less what outboard ones deliver through free hinges", "1",
        "whitening filter: measurements → innovations"),
    Operator(MEANING[F]): Meaning(("the inverse of ", Operator(MEANING[W])), "1",
        "colouring filter: innovations → measurements"),
    Operator(MEANING[W_p]): meaning("passive joint forces less what outboard ones deliver", "1",
        "whitening filter: measurements → innovations"),
    Operator(MEANING[F_p]): Meaning(("the inverse of ", Operator(MEANING[W_p])), "1",
        "colouring filter: innovations → measurements"),
}  # fmt: skip
"""What has the same meaning in every explanation; symbols have theirs from their row."""

GIVEN_BY_RESOLVENT: Mapping[Expression, Meaning] = {
    x: meaning(text, "", estimation)
    for row in SYMBOLS.values()
    if row.resolvent
    for x, (text, estimation) in (
        (Leaf.of(row), row.resolvent.gives),
        (Leaf.of(row).T, row.resolvent.adjoint_gives),
    )
}
"""What φ, ψ and their adjoints give."""

UNITS = {
    "joint forces": "N·m or N", "joint rates": "rad/s² or m/s²",
    "forces": "N·m, N", "motions": "rad/s², m/s²", "normalised rates": "",
}  # fmt: skip
READINGS = {
    "joint forces": "measurements", "joint rates": "weights of the smoother",
    "forces": "state", "motions": "adjoint variable", "normalised rates": "normalised innovations",
}  # fmt: skip
"""By the end of the name of a space."""

RESULTS: Mapping[Expression, Leaf] = {
    mass.inv @ (T - C): beta_dot,
    mass @ beta_dot + C: T,
    **{Leaf.of(row): Leaf.of(row) for row in SYMBOLS.values() if row.domain == SCALARS},
    **{row.defined(()): Leaf.of(row) for row in SYMBOLS.values()
       if row.domain == SCALARS and row.definition},
}  # fmt: skip
"""Expressions that have a letter."""

# ---- the names of a recursion --------------------------------------------------------------------


def _of_space(table: Mapping[str, str], space: Space) -> str:
    return next((text for end, text in table.items() if space.name.endswith(end)), "")


def meanings(code: Pseudocode) -> dict[Formula, Meaning]:
    """What the names stand for that a recursion introduces."""
    plan = code.plan
    velocity = "beta" in plan.inputs and not plan.moving
    mixed = any(v.op == "times" or _is_rate(v) for v in plan.values)
    found: dict[Formula, Meaning] = {}
    for v, name in code.name.items():
        if _is_known(code, v, name):
            continue
        unit = (
            ""
            if mixed or name.letter in (MATRIX.letter, UNIT.letter)
            else _of_space(UNITS, v.space)
        )
        if velocity:  # what accelerations are to forces, velocities are to momenta
            unit = unit.replace("/s²", "/s").replace("N", "N·s").replace("N·s·m", "N·m·s")
        found[name[""]] = replace(_meaning(code, v, name), unit=unit)
    if code.copied:
        found[RESULT] = _result(plan.result)
    return found


def _is_rate(v: Value) -> bool:
    """Is it made with a rate of change?"""
    return any("/s" in x.symbol.unit for x in letters(v))


def _is_known(code: Pseudocode, v: Value, name: Name) -> bool:
    """Is the name a symbol of the algebra, or a number?"""
    if v.op == "input" or v is code.plan.result:
        return name not in (X, RESULT)
    return v.op in ("state", *NUMERALS) or name == LOAD


def _result(v: Value) -> Meaning:
    kind = "a number" if v.space == SCALARS else str(v.space)
    return Meaning((f"the result: {kind}",), "", _of_space(READINGS, v.space))


def _meaning(code: Pseudocode, v: Value, name: Name) -> Meaning:
    """What the value of a name is: given, the result, sent to a neighbour, or of its space."""
    space, reading = str(v.space), _of_space(READINGS, v.space)
    if v.op == "input":
        given = "input" if v.space.size in ("body", "frame") else reading
        return Meaning((f"what it is applied to: {space}",), "", given)
    if v.op == "unit":
        return Meaning((f"unit vectors of {space}",), "", reading)
    if v is code.plan.result:
        own = _result(v)
        return replace(own, estimation="innovations") if _is_innovation(code, v) else own
    if v.op == "load":
        return meaning("forces that the motion takes", "", "known input")
    if name.letter == MATRIX.letter:
        columns = "matrix with the columns ", name["i"], f": {space} that ", UNIT, " causes"
        return Meaning(columns, "", "covariance")
    if name.plus:
        return _crossing(v, replace(name, plus=False))
    if v.op == "recur":
        return GIVEN_BY_RESOLVENT[v.data]
    if _is_innovation(code, v):
        less = v.op == "add" and any(c < 0 for c in v.data)
        outboard = " less what comes from outboard" if less else ""
        return meaning(f"joint forces{outboard}", "", "innovations")
    if v.op == "apply" and letters(v) & {D, D_p}:
        return meaning("joint rates while the inboard body rests", "", "weighted innovations")
    return Meaning((space,), "", reading)


def _crossing(v: Value, own: Name) -> Meaning:
    """What crosses a hinge of the values with a name: outward from the parent, inward to it."""
    if v.op == "scatter":
        back = "adjoint variable, carried to the station before"
        return Meaning((own, " of the parent, carried to the body"), "", back)
    return Meaning(("what of ", own, " goes on to the parent"), "", "filtered mean")


def _is_innovation(code: Pseudocode, v: Value) -> bool:
    """Are these the joint forces that D or G is applied to?"""
    used = {leaf for user in code.users[v] for leaf in letters(user)}
    return v.space.name.endswith("joint forces") and bool(used & {D, G, D_p, G_p, D_half})
