"""Glossary: the meanings of the names in an explanation, as dynamics and as estimation.

The meanings of symbols are in `symbols`; here are those of the names that a recursion introduces,
of the factors of a mass matrix, and of the notation. The readings as estimation are from [SOA] 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

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
"""The names that may occur in the formulas of texts."""
SIGNS = {"+": Fraction(1), "−": Fraction(-1)}
POWERS = {"⁻¹": (True, False), "⁻*": (True, True), "*": (False, True)}


def prose(text: str) -> Sentence:
    """The sentence of a text whose formulas stand between braces: "the joint force is {H f}".

    The names (with *, ⁻¹ or ⁻*) and signs of a formula are separated by blanks.
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
    terms = [reduce(Formula.__matmul__, factors) for factors in products]
    return terms[0] if signs == [1] else Sum(tuple(zip(signs, terms, strict=True)))


def _factor(word: str) -> Formula:
    for mark, power in POWERS.items():
        if word.endswith(mark):
            return Power(NAMES[word.removesuffix(mark)], *power)
    return NAMES[word]


# ---- meanings ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Meaning:
    """The meaning of a name, its unit, and its reading as an estimation problem."""

    meaning: Sentence
    unit: str = ""
    estimation: str = ""


def meaning(text: str, unit: str = "", estimation: str = "") -> Meaning:
    """A meaning from a text whose formulas stand between braces."""
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
"""Names with the same meaning in every explanation; those of symbols are from the table."""

GIVEN_BY_RESOLVENT: Mapping[Expression, Meaning] = {
    x: meaning(text, "", estimation)
    for row in SYMBOLS.values()
    if row.resolvent
    for x, (text, estimation) in (
        (Leaf.of(row), row.resolvent.gives),
        (Leaf.of(row).T, row.resolvent.adjoint_gives),
    )
}
"""The meaning of what φ, ψ and their adjoints give."""

UNITS = {
    "joint forces": "N·m or N", "joint rates": "rad/s² or m/s²",
    "forces": "N·m, N", "motions": "rad/s², m/s²", "normalised rates": "",
}  # fmt: skip
READINGS = {
    "joint forces": "measurements", "joint rates": "weights of the smoother",
    "forces": "state", "motions": "adjoint variable", "normalised rates": "normalised innovations",
}  # fmt: skip
"""Units and readings of vectors, by the end of the name of their space."""

RESULTS: Mapping[Expression, Leaf] = {
    mass.inv @ (T - C): beta_dot,
    mass @ beta_dot + C: T,
    **{Leaf.of(row): Leaf.of(row) for row in SYMBOLS.values() if row.domain == SCALARS},
    **{row.defined(()): Leaf.of(row) for row in SYMBOLS.values()
       if row.domain == SCALARS and row.definition},
}  # fmt: skip
"""Expressions whose value has a symbol, and that symbol."""

# ---- the names of a recursion --------------------------------------------------------------------


def _of_space(table: Mapping[str, str], space: Space) -> str:
    """The entry of a table for a space."""
    return next((text for end, text in table.items() if space.name.endswith(end)), "")


def meanings(code: Pseudocode) -> dict[Formula, Meaning]:
    """The meanings of the names that a recursion introduces."""
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
        if velocity:  # then forces are momenta, and accelerations are velocities
            unit = unit.replace("/s²", "/s").replace("N", "N·s").replace("N·s·m", "N·m·s")
        found[name[""]] = replace(_meaning(code, v, name), unit=unit)
    if code.copied:
        found[RESULT] = _result(plan.result)
    return found


def _is_rate(v: Value) -> bool:
    """Whether the operator of a value is a rate of change."""
    return any("/s" in x.symbol.unit for x in letters(v))


def _is_known(code: Pseudocode, v: Value, name: Name) -> bool:
    """Whether the name of a value is a symbol of the algebra, or a numeral."""
    if v.op == "input" or v is code.plan.result:
        return name not in (X, RESULT)
    return v.op in ("state", *NUMERALS) or name == LOAD


def _result(v: Value) -> Meaning:
    """The meaning of the result."""
    kind = "a number" if v.space == SCALARS else str(v.space)
    return Meaning((f"the result: {kind}",), "", _of_space(READINGS, v.space))


def _meaning(code: Pseudocode, v: Value, name: Name) -> Meaning:
    """The meaning of the name of a value, by its operation and its use, else by its space."""
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
    """The meaning of the value that crosses a hinge, outward from the parent or inward to it; `own`
    is the name of the recursion that sends it."""
    if v.op == "scatter":
        back = "adjoint variable, carried to the station before"
        return Meaning((own, " of the parent, carried to the body"), "", back)
    return Meaning(("what of ", own, " goes on to the parent"), "", "filtered mean")


def _is_innovation(code: Pseudocode, v: Value) -> bool:
    """Whether a value is the joint forces to which D or G is applied."""
    used = {leaf for user in code.users[v] for leaf in letters(user)}
    return v.space.name.endswith("joint forces") and bool(used & {D, G, D_p, G_p, D_half})
