"""Expressions explained: their derivation, their recursion, the meaning of each symbol, the cost.

The recursion is told in one of two languages: "dynamics", or "estimation", where the bodies are the
stations of a Kalman filter and its smoother ([SOA] 4; [DL] Table 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from phipsi.model import Robot
from phipsi.operators.algebra.expression import Expression, walk
from phipsi.operators.algebra.identities import CONDITIONS
from phipsi.operators.algebra.simplify import Derivation, Step, derive
from phipsi.operators.algebra.spaces import SCALARS
from phipsi.operators.algebra.symbols import SYMBOLS
from phipsi.operators.checks import as_mask, check_robot
from phipsi.operators.lowering.dataflow import INWARD, OUTWARD, LoweringError
from phipsi.operators.lowering.plan import Plan, lower
from phipsi.operators.lowering.program import as_program
from phipsi.operators.meanings import BEHIND, BY_NAME, FACTORS, NOTATION, RESULTS, Meaning, meanings
from phipsi.operators.pages import Latex, Markdown, Page, math, names
from phipsi.operators.pseudocode import Line, Pass, Pseudocode

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
        own = meanings(code) if code else {}
        for formula, special in (*_of_derivation(self.derivation), *_of_recursion(code, own)):
            for name in names(formula):
                known = special.get(name) or NOTATION.get(name)
                if known is None and name in BY_NAME:
                    row = BY_NAME[name]
                    known = Meaning(row.meaning, row.unit, row.estimation)
                if known is not None:
                    found.setdefault(name, known)
            if formula in special:
                found.setdefault(formula, special[formula])
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
            if not code.passes:
                page.paragraph("There is nothing to compute.")
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
        own = meanings(code)
        for line in one.lines:
            told = [line.note]
            if self.language == "estimation":
                told.append(BEHIND.get(line.recursion) or _reading(line, own))
            where = f"{line.where}: " if line.where else ""
            yield (
                where + ",  ".join(map(math, line.formulas)),
                "  ".join(filter(None, [*told, line.source])),
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
            f"Roughly {code.plan.cost} operations for each body whose hinge has one freedom"
            f"{' (' * bool(each)}{', '.join(each)}{')' * bool(each)}: O(N)."
        )
        if self.robot is not None and self.operations is not None:
            bodies = self.robot.nb
            yield (
                f"Exactly {self.operations} scalar operations on {self.robot.name} "
                f"({bodies} {'body' if bodies == 1 else 'bodies'}, nv = {self.robot.nv}), "
                f"{self.operations / max(bodies, 1):.0f} for each body."
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
        check_robot(expression, robot)
        mask = as_mask(expression, robot, active)
    try:
        lowered = lower(expression)
    except LoweringError as error:
        return Explanation(expression, derive(expression), None, str(error), language, robot)
    operations = None
    if robot is not None:
        check_robot(expression, robot, lowered)
        operations = as_program(expression, (), mask).graph(robot).operations
    return Explanation(
        expression, lowered.derivation, lowered.plan, "", language, robot, operations
    )


def _why(step: Step) -> str:
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
