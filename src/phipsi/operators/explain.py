"""Expressions explained: their derivation, their recursion, the meaning of each symbol, the cost.

The recursion is told in one of two languages: "dynamics", or "estimation", where the bodies are the
stations of a Kalman filter and its smoother ([SOA] 4; [DL] Table 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple
from unicodedata import normalize

from phipsi.model import Robot
from phipsi.operators.expressions import Expression, Leaf, walk
from phipsi.operators.identities import CONDITIONS
from phipsi.operators.lower import Plan, lower
from phipsi.operators.on import as_mask, as_program, check_conditions, check_frames
from phipsi.operators.pages import Latex, Markdown, Page, math, names
from phipsi.operators.pseudocode import Line, Pass, Pseudocode, letters
from phipsi.operators.simplify import Derivation, derive
from phipsi.operators.spaces import SCALARS, Space
from phipsi.operators.symbols import *
from phipsi.operators.values import INWARD, OUTWARD, LoweringError, Value
from phipsi.operators.words import MEANING, F, F_p, W, W_p

# ---- words ---------------------------------------------------------------------------------------


class Meaning(NamedTuple):
    """What a name stands for, its unit, and its reading as an estimation problem."""

    meaning: str
    unit: str = ""
    estimation: str = ""


DYNAMICS = {
    INWARD: "tip → base, for each body k (gather over its children c)",
    OUTWARD: "base → tip, for each body k with parent {p}",
    "local": "for each body",
}
ESTIMATION = {
    INWARD: "filter (tip → base), at each body k (fuse what its children c send)",
    OUTWARD: "smoother (base → tip), at each body k with parent {p}",
    "local": "at each body",
}
STATIONS = (
    "Read as estimation ([SOA] 4): the bodies from tip to base are the stations, the force between "
    "bodies is the state, the joint forces are the measurements."
)
LANGUAGES: Mapping[str, Mapping[str, str]] = {"dynamics": DYNAMICS, "estimation": ESTIMATION}
"""What stands over a sweep, by direction."""

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
    "Ḣ": Meaning("rate of the hinge map, zero where the axes are fixed in the body", "1/s or m/s"),
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


def _meanings(code: Pseudocode) -> dict[str, Meaning]:
    """What the names of a recursion stand for."""
    plan = code.plan
    velocity = "beta" in plan.inputs and not plan.moving
    mixed = any(v.op == "times" for v in plan.values)
    found: dict[str, Meaning] = {}
    for v, name in code.name.items():
        if _is_symbol(code, v, name):
            continue
        unit = "" if mixed or name[0] in "Ye" else _of_space(UNITS, v.space)
        if velocity:  # what accelerations are to forces, velocities are to momenta
            unit = unit.replace("/s²", "/s").replace("N", "N·s").replace("N·s·m", "N·m·s")
        found[names(name)[0]] = _meaning(code, v, name)._replace(unit=unit)
    return found


def _is_symbol(code: Pseudocode, v: Value, name: str) -> bool:
    """Is the name a symbol of the algebra (or a number)?"""
    if v.op == "input" or v is code.plan.result:
        return name not in "xy"
    return v.op in ("state", "zero", "one") or name == "u"


def _meaning(code: Pseudocode, v: Value, name: str) -> Meaning:
    space, reading = str(v.space), _of_space(READINGS, v.space)
    used = {leaf for u in code.users[v] for leaf in letters(u)}
    innovations = v.space.name.endswith("joint forces") and used & {D, G, D_p, G_p, D_half}
    if v.op == "input":
        joints = reading if v.space.name.endswith("joint forces") else "input"
        return Meaning(f"what it is applied to: {space}", "", joints)
    if v is code.plan.result:
        kind = "a number" if v.space == SCALARS else space
        return Meaning(f"the result: {kind}", "", "innovations" if innovations else reading)
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
        return Meaning(f"what of {name[:-1]} the hinge lets pass", "", "filtered mean")
    if v.op == "recur":
        return RECURRING[v.data]
    if innovations:
        less = v.op == "add" and any(c < 0 for c in v.data)
        return Meaning(f"joint forces{' less what comes from outboard' * less}", "", "innovations")
    if v.op == "apply" and letters(v) & {D, D_p}:
        return Meaning("joint rates while the inboard body rests", "", "weighted innovations")
    return Meaning(space, "", reading)


# ---- explanations --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Explanation:
    """An expression, explained: as `text` (also `str`), `markdown` or `latex` (needs amsmath)."""

    expression: Expression
    derivation: Derivation
    plan: Plan | None
    """The sweeps that run; None if there are none."""
    refusal: str = ""
    """Why there are none."""
    language: str = "dynamics"
    robot: Robot | None = None
    operations: int | None = None
    """Scalar operations of the program on the robot."""

    @property
    def text(self) -> str:
        """As plain text."""
        return self._written(Page())

    @property
    def markdown(self) -> str:
        """As Markdown, formulas between dollars."""
        return self._written(Markdown())

    @property
    def latex(self) -> str:
        """As a fragment of LaTeX."""
        return self._written(Latex())

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        return self.markdown

    # ---- contents ------------------------------------------------------------------------------

    @cached_property
    def code(self) -> Pseudocode | None:
        """The recursion in writing."""
        if self.plan is None:
            return None
        reserved = {leaf.symbol.unicode for x in self.derivation.forms for leaf in x.leaves}
        return Pseudocode(self.plan, self.letter, reserved)

    @property
    def letter(self) -> str:
        """The letter of what is computed."""
        known = RESULTS.get(self.expression)
        return known.symbol.unicode if known else "y"

    @cached_property
    def symbols(self) -> dict[str, Meaning]:
        """The meaning of each symbol, in the order in which they occur."""
        found: dict[str, Meaning] = {}
        code = self.code
        own = _meanings(code) if code else {}
        for formula, meanings in (*_of_derivation(self.derivation), *_of_recursion(code, own)):
            for name in names(formula):
                row = BY_NAME.get(name)
                known = meanings.get(name) or NOTATION.get(name) or (
                    row and Meaning(row.meaning, row.unit, row.estimation)
                )  # fmt: skip
                if known:
                    found.setdefault(name, known)
            if formula in meanings:
                found.setdefault(formula, meanings[formula])
        return found

    def _written(self, page: Page) -> str:
        page.title(str(self.expression))
        page.paragraph(self._introduction)
        if self.language == "estimation":
            page.paragraph(STATIONS)
        page.heading("Derivation")
        self._derive(page)
        page.heading("Recursion")
        code = self.code
        if code is None:
            page.paragraph(f"No recursion computes it: {self.refusal}".replace("...", "…"))
        else:
            first = 1
            for one in code.passes:
                page.numbered(self._heading(one, code), first, [*self._rows(one, code)])
                first += len(one.lines)
        page.heading("Symbols")
        page.table([(math(name), self._told(x)) for name, x in self.symbols.items()])
        if code is not None:
            page.heading("Cost")
            for sentence in self._costs(code):
                page.paragraph(sentence)
        return str(page)

    @property
    def _introduction(self) -> str:
        x, inputs = self.expression, self.plan.inputs if self.plan else {}
        known = RESULTS.get(x)
        gives = "a number" if x.codomain == SCALARS else known.meaning if known else str(x.codomain)
        taken = [SYMBOLS[name] for name in inputs if name not in ("x", "beta")]
        takes = [f"{math(row.unicode)} ({row.meaning})" for row in taken]
        if x.domain != SCALARS:
            takes.append(f"{math('x')} ({x.domain})")
        moving = "beta" in inputs or (self.plan is not None and self.plan.moving)
        where = f"at a configuration q and joint rates {math('β')}" if moving else (
            "at a configuration q"
        )  # fmt: skip
        said = f"It takes {' and '.join(takes)} and gives" if takes else "It gives"
        return f"{said} {math(self.letter)} ({gives}), {where}."

    def _derive(self, page: Page) -> None:
        runs = "the cheapest form: this one runs"
        steps = list[tuple[str, str, str]]()
        start = self.derivation.expression
        for form, why in [(start, ""), *((s.expression, _why(s)) for s in self.derivation.steps)]:
            marked = self.plan is not None and form is self.plan.expression and runs
            steps.append((str(form), runs if marked else "", why))
            runs = "" if marked else runs
        page.equations(steps)
        if len(steps) == 1:
            page.paragraph("No identity makes it simpler.")
        if self.derivation.needs:
            needs = " and ".join(CONDITIONS[c] for c in self.derivation.needs)
            page.paragraph(f"It holds if {needs}.")

    def _heading(self, one: Pass, code: Pseudocode) -> str:
        text = LANGUAGES[self.language][one.sweep.direction].format(p=code.parent)
        zero = ", ".join(math(name) for name in one.zero)
        return f"{text}; at the world {zero} = 0" if zero else text

    def _rows(self, one: Pass, code: Pseudocode) -> Iterator[tuple[str, str]]:
        own = _meanings(code)
        for line in one.lines:
            told = [line.note]
            if self.language == "estimation":
                told.append(BEHIND.get(line.recursion) or _reading(line, own))
            where = f"{line.where}: " if line.where else ""
            yield where + ",  ".join(map(math, line.formulas)), "  ".join(
                filter(None, [*told, line.source])
            )

    def _told(self, x: Meaning) -> str:
        reading = x.estimation if self.language == "estimation" else ""
        return (reading or x.meaning) + (f" [{x.unit}]" if x.unit else "")

    def _costs(self, code: Pseudocode) -> Iterator[str]:
        each = list[str]()
        for one in code.passes:
            cost = replace(code.plan, sweeps=(one.sweep,), values=one.sweep.values).cost
            heading = LANGUAGES[self.language][one.sweep.direction].split(" (")[0].split(",")[0]
            each.append(f"{heading} {cost}")
        yield (
            f"Roughly {code.plan.cost} operations for each body whose hinge has one freedom "
            f"({', '.join(each)}): O(N)."
        )
        if self.robot is not None and self.operations is not None:
            bodies = self.robot.nb
            yield (
                f"Exactly {self.operations} scalar operations on {self.robot.name} "
                f"({bodies} {'body' if bodies == 1 else 'bodies'}, nv = {self.robot.nv}), "
                f"{self.operations / bodies:.0f} for each body."
            )


def explain(
    expression: Expression,
    robot: Robot | None = None,
    *,
    language: str = "dynamics",
    active: Any = None,
) -> Explanation:
    """An expression explained, on a robot with its exact cost.

    `language` is "dynamics" or "estimation"; `active` says which joints of the robot are, for
    operators of passive arms (as in `LinearOperator`).
    """
    if language not in LANGUAGES:
        raise ValueError(f"language {language!r} is not known; there are {' and '.join(LANGUAGES)}")
    if robot is None and active is not None:
        raise ValueError(f"{expression}: active= says which joints of a robot are; give the robot")
    mask = None
    if robot is not None:
        if not isinstance(robot, Robot):
            raise TypeError(f"{expression} needs a Robot, got {type(robot).__name__}")
        check_frames(expression, robot)
        mask = as_mask(expression, robot, active)
    try:
        lowered = lower(expression)
    except LoweringError as error:
        return Explanation(expression, derive(expression), None, str(error), language, robot)
    operations = None
    if robot is not None:
        check_conditions(expression, lowered, robot)
        operations = as_program(expression, (), mask).graph(robot).operations
    return Explanation(
        expression, lowered.derivation, lowered.plan, "", language, robot, operations
    )


def _why(step: Any) -> str:
    """The reason of a step: name, identity, source."""
    identity = f": {math(step.identity)}" if step.identity else ""
    return f"{step.name}{identity}{'  ' if step.source else ''}{step.source}"


def _reading(line: Line, own: Mapping[str, Meaning]) -> str:
    """What the name that a line defines is in estimation."""
    name = names(line.formulas[-1])[0]
    row = BY_NAME.get(name)
    return own[name].estimation if name in own else row.estimation if row else ""


Formulas = Iterator[tuple[str, Mapping[str, Meaning]]]
"""Formulas, with the meaning of names of their own."""


def _of_derivation(derivation: Derivation) -> Formulas:
    texts = [(derivation.expression, ""), *((s.expression, s.identity) for s in derivation.steps)]
    for x, identity in texts:
        parts = {*walk(x)}
        for factor, meaning in FACTORS.items():
            if factor in parts or factor.T in parts:
                yield str(factor), {str(factor): meaning}
        yield identity, {}
        yield str(x), {}


def _of_recursion(code: Pseudocode | None, own: Mapping[str, Meaning]) -> Formulas:
    lines = [line for one in code.passes for line in one.lines] if code else []
    formulas = [formula for line in lines for formula in line.formulas]
    if any("φ" in names(formula) for formula in formulas):
        yield "φ_k", {"φ_k": NOTATION["φ_k"]}
    for formula in formulas:
        yield formula, own
