"""Meanings: what the names in an explanation stand for, as dynamics and as estimation.

Symbols have theirs in `symbols`; here are those of the names that a recursion introduces, of the
factors of a mass matrix, and of the notation. The readings as estimation are those of [SOA] 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from unicodedata import normalize

from phipsi.operators.algebra.expression import Expression, Leaf
from phipsi.operators.algebra.polynomial import MEANING, F, F_p, W, W_p
from phipsi.operators.algebra.spaces import SCALARS, Space
from phipsi.operators.algebra.symbols import *
from phipsi.operators.lowering.dataflow import Value
from phipsi.operators.pages import names
from phipsi.operators.pseudocode import Pseudocode, letters


class Meaning(NamedTuple):
    """What a name stands for, its unit, and its reading as an estimation problem."""

    meaning: str
    unit: str = ""
    estimation: str = ""


FACTORS: Mapping[Expression, Meaning] = {
    MEANING[W]: Meaning("joint forces less what outboard ones deliver through free hinges", "1",
                        "whitening filter: measurements → innovations"),
    MEANING[F]: Meaning("the inverse of I − HψK", "1",
                        "colouring filter: innovations → measurements"),
    MEANING[W_p]: Meaning("passive joint forces less what outboard ones deliver", "1",
                          "whitening filter: measurements → innovations"),
    MEANING[F_p]: Meaning("the inverse of I − H_pψ_pK_p", "1",
                          "colouring filter: innovations → measurements"),
}  # fmt: skip
"""The two factors of a mass matrix."""

NOTATION: Mapping[str, Meaning] = {
    "I": Meaning("identity"),
    "φ_k": Meaning("in the recursion: the block of φ from body k to its parent, φ that of the body "
                   "at hand", "1 and m", "transition from one station to the next"),
    "g": Meaning("gravity, carried from the world into the axes of the body", "m/s²"),
    "f_ext": Meaning("external forces on the body", "N·m, N"),
    "ad": Meaning("cross product of motions"),
    "crf": Meaning("cross product of a motion with a force"),
    "U̇": Meaning("rate of U = P H*", "kg·m/s, kg·m²/s"),
    "Ṗ⁺": Meaning("rate of P⁺", "kg/s, kg·m/s, kg·m²/s"),
    "D_s": Meaning("S⁺ seen along the hinge, with armature", "kg·m² or kg"),
    "ᾱ": Meaning("spatial accelerations at zero joint acceleration", "rad/s², m/s²"),
}  # fmt: skip
"""Names of the recursions that are no symbols of the algebra."""

RECURRING: Mapping[Expression, Meaning] = {
    phi: Meaning("force of a body with all that is outboard of it", "",
                 "state, propagated without measurements"),
    phi.T: Meaning("motion of a body: its parent's and what its hinge adds", "",
                   "adjoint state, propagated back"),
    psi: Meaning("force at a body, gathered through the free hinges outboard of it", "",
                 "predicted mean"),
    psi.T: Meaning("motion of a body with all hinges free", "",
                   "adjoint variable (Bryson–Frazier)"),
    psi_p: Meaning("force at a body, gathered through the hinges outboard of it, free if passive",
                   "", "predicted mean"),
    psi_p.T: Meaning("motion of a body with the passive hinges free", "",
                     "adjoint variable (Bryson–Frazier)"),
    psi_s: Meaning("force at a body, come through the free hinges inboard of it", "",
                   "predicted mean of the backward filter"),
    psi_s.T: Meaning("motion at a body, gathered through the free hinges outboard of it", "",
                     "adjoint variable of the backward filter"),
}  # fmt: skip
"""What φ, ψ and their adjoints give."""

BEHIND: Mapping[str, str] = {
    "riccati": "predicted covariance, innovation covariance, Kalman gain, filtered covariance",
    "passive": "predicted covariance, innovation covariance, Kalman gain, filtered covariance",
    "upsilon": "covariance of the adjoint variable",
    "dual": "backward information filter",
    "gyroscopic": "known input",
    "rates": "rates of these covariances and of the gain",
}
"""The recursions behind symbols, as estimation."""

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
       if row.domain == SCALARS and row.name in DEFINITIONS},
}  # fmt: skip
"""Expressions that have a letter."""

BY_NAME = {normalize("NFC", row.unicode): row for row in SYMBOLS.values()}


def _of_space(table: Mapping[str, str], space: Space) -> str:
    return next((text for end, text in table.items() if space.name.endswith(end)), "")


def meanings(code: Pseudocode) -> dict[str, Meaning]:
    """What the names of a recursion stand for."""
    plan = code.plan
    velocity = "beta" in plan.inputs and not plan.moving
    mixed = any(v.op == "times" or _is_rate(v) for v in plan.values)
    found: dict[str, Meaning] = {}
    for v, name in code.name.items():
        if _is_symbol(code, v, name):
            continue
        unit = "" if mixed or name[0] in "Ye" else _of_space(UNITS, v.space)
        if velocity:  # what accelerations are to forces, velocities are to momenta
            unit = unit.replace("/s²", "/s").replace("N", "N·s").replace("N·s·m", "N·m·s")
        found[names(name)[0]] = _meaning(code, v, name)._replace(unit=unit)
    if code.copied:
        found["y"] = _result(plan.result)
    return found


def _is_rate(v: Value) -> bool:
    """Is it made with a rate of change?"""
    return any("/s" in x.symbol.unit for x in letters(v))


def _is_symbol(code: Pseudocode, v: Value, name: str) -> bool:
    """Is the name a symbol of the algebra (or a number)?"""
    if v.op == "input" or v is code.plan.result:
        return name not in "xy"
    return v.op in ("state", "zero", "one") or name == "u"


def _result(v: Value) -> Meaning:
    kind = "a number" if v.space == SCALARS else str(v.space)
    return Meaning(f"the result: {kind}", "", _of_space(READINGS, v.space))


def _meaning(code: Pseudocode, v: Value, name: str) -> Meaning:
    space, reading = str(v.space), _of_space(READINGS, v.space)
    used = {leaf for u in code.users[v] for leaf in letters(u)}
    innovations = v.space.name.endswith("joint forces") and used & {D, G, D_p, G_p, D_half}
    if v.op == "input":
        given = "input" if v.space.size in ("body", "frame") else reading
        return Meaning(f"what it is applied to: {space}", "", given)
    if v is code.plan.result:
        result = _result(v)
        return result._replace(estimation="innovations") if innovations else result
    if v.op == "unit":
        return Meaning(f"unit vectors of {space}", "", reading)
    if v.op == "load":
        return Meaning("forces that the motion takes", "", "known input")
    if name[0] == "Y":
        return Meaning(f"matrix with the columns Y_i: {space} that e_i causes", "", "covariance")
    if name.endswith("⁺"):
        if v.op == "scatter":
            return Meaning(f"{name[:-1]} of the parent, carried to the body", "",
                           "adjoint variable, carried to the station before")  # fmt: skip
        return Meaning(f"what of {name[:-1]} goes on to the parent", "", "filtered mean")
    if v.op == "recur":
        return RECURRING[v.data]
    if innovations:
        less = v.op == "add" and any(c < 0 for c in v.data)
        return Meaning(f"joint forces{' less what comes from outboard' * less}", "", "innovations")
    if v.op == "apply" and letters(v) & {D, D_p}:
        return Meaning("joint rates while the inboard body rests", "", "weighted innovations")
    return Meaning(space, "", reading)
