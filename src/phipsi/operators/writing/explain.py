"""Explanations of expressions: derivation, recursion, meaning of each symbol, cost.

The recursion is described in one of two languages: "dynamics", or "estimation", where the bodies
are the stations of a Kalman filter and its smoother ([SOA] 4; [DL] Table 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from phipsi.cached import cached_property
from phipsi.model import Robot
from phipsi.operators.algebra.derivation import CONDITIONS, ENDED, Derivation, Equal, Step
from phipsi.operators.algebra.expression import Expression, walk
from phipsi.operators.algebra.formula import IDENTITY, Equality, Formula, Name, Operator
from phipsi.operators.algebra.identities import TABLE
from phipsi.operators.algebra.polynomial import MEANING
from phipsi.operators.algebra.services import Language
from phipsi.operators.algebra.simplify import derive
from phipsi.operators.algebra.spaces import SCALARS
from phipsi.operators.algebra.symbols import PASSIVE, SYMBOLS, beta, m
from phipsi.operators.checks import as_mask, check_robot
from phipsi.operators.lowering.dataflow import LoweringError
from phipsi.operators.lowering.plan import Plan, lower
from phipsi.operators.lowering.program import as_program
from phipsi.operators.lowering.recursions import INWARD, LOCAL, OUTWARD, Direction
from phipsi.operators.writing.document import (
    Block,
    EqualForm,
    Equations,
    Heading,
    Latex,
    Markdown,
    Numbered,
    Paragraph,
    Sentence,
    Table,
    Text,
    Title,
)
from phipsi.operators.writing.glossary import (
    GLOSSARY,
    PHI,
    RESULTS,
    Meaning,
    meanings,
    prose,
)
from phipsi.operators.writing.pseudocode import RESULT, Line, Pass, Pseudocode, X
from phipsi.typing import MaskLike

DYNAMICS: Mapping[Direction, tuple[str, str]] = {
    INWARD: ("tip → base", ", for each body k (gather over its children c)"),
    OUTWARD: ("base → tip", ", for each body k with parent {p}"),
    LOCAL: ("for each body", ""),
}
ESTIMATION: Mapping[Direction, tuple[str, str]] = {
    INWARD: ("filter", " (tip → base), at each body k (fuse what its children c send)"),
    OUTWARD: ("smoother", " (base → tip), at each body k with parent {p}"),
    LOCAL: ("at each body", ""),
}
STATIONS = (
    "Read as estimation ([SOA] 4): the bodies from tip to base are the stations, the force between "
    "bodies is the state, the joint forces are the measurements."
)
RUNS = "the cheapest form: this one runs"
LANGUAGES: Mapping[Language, Mapping[Direction, tuple[str, str]]] = {
    "dynamics": DYNAMICS,
    "estimation": ESTIMATION,
}
"""The heading of a sweep in each language, by direction: (its name, the rest)."""


@dataclass(frozen=True)
class Explanation:
    """The explanation of an expression: as `text` (also `str`), `markdown` or `latex` (with
    amsmath)."""

    expression: Expression
    derivation: Derivation[Expression]
    plan: Plan | None
    """The sweeps that compute it; None if no recursion does."""
    refusal: Sentence = ()
    """Why no recursion computes it."""
    language: Language = "dynamics"
    robot: Robot | None = None
    operations: int | None = None
    """The number of scalar operations of the program on the robot."""

    @property
    def text(self) -> str:
        """The explanation as plain text."""
        return Text().document(self.blocks)

    @property
    def markdown(self) -> str:
        """The explanation as Markdown, formulas between dollars."""
        return Markdown().document(self.blocks)

    @property
    def latex(self) -> str:
        """The explanation as a fragment of LaTeX."""
        return Latex().document(self.blocks)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        return self.markdown

    # ---- contents ------------------------------------------------------------------------------

    @cached_property
    def code(self) -> Pseudocode | None:
        """The pseudo-code of the recursion."""
        if self.plan is None:
            return None
        reserved = {Name.of(leaf.symbol) for x in self.derivation.forms for leaf in x.leaves}
        return Pseudocode(self.plan, self.letter, reserved)

    @property
    def letter(self) -> Name:
        """The letter of the result."""
        known = RESULTS.get(self.expression)
        return Name.of(known.symbol) if known else RESULT

    @cached_property
    def symbols(self) -> dict[Formula, Meaning]:
        """The meaning of each symbol, in the order in which they occur."""
        found = _looked_up(_of_derivation(self.derivation), GLOSSARY)
        if self.code is None:
            return found
        own = _looked_up(_of_recursion(self.code), {**GLOSSARY, **meanings(self.code)})
        return found | own | found

    @property
    def blocks(self) -> Iterator[Block]:
        """The blocks of the document."""
        yield Title(Operator(self.expression))
        yield Paragraph(self._introduction)
        if self.language == "estimation":
            yield Paragraph((STATIONS,))
        yield Heading("Derivation")
        yield from self._derived()
        yield Heading("Recursion")
        code = self.code
        if code is None:
            yield Paragraph(("No recursion computes it: ", *self.refusal))
        else:
            yield from self._swept(code)
        yield Heading("Symbols")
        yield Table(tuple((name, self._told(x)) for name, x in self.symbols.items()))
        if code is not None:
            yield Heading("Cost")
            for sentence in self._costs(code):
                yield Paragraph((sentence,))

    @property
    def _introduction(self) -> Sentence:
        """A sentence that says what the expression takes and gives."""
        x, inputs = self.expression, self.plan.inputs if self.plan else {}
        rows = [SYMBOLS[name] for name in inputs if name not in ("x", "beta")]
        taken = [(Name.of(row), GLOSSARY[Name.of(row)].meaning) for row in rows]
        if x.domain != SCALARS:
            taken.append((X, (str(x.domain),)))
        takes = list[str | Formula]()
        for name, what in taken:
            takes += [" and " if takes else "It takes ", name, " (", *what, ")"]
        gives: Sentence = ("a number" if x.codomain == SCALARS else str(x.codomain),)
        if x in RESULTS and x.codomain != SCALARS:
            gives = GLOSSARY[self.letter].meaning
        moving = "beta" in inputs or (self.plan is not None and self.plan.moving)
        rates: Sentence = (" and joint rates ", Name.of(beta.symbol)) if moving else ()
        said = " and gives " if takes else "It gives "
        return *takes, said, self.letter, " (", *gives, "), at a configuration q", *rates, "."

    def _derived(self) -> Iterator[Block]:
        """The derivation, and the conditions that it needs."""
        steps = [(self.derivation.expression, ())]
        steps += [(step.expression, _why(step)) for step in self.derivation.steps]
        runs = [form for form, _ in steps].index(self.plan.expression) if self.plan else None
        yield Equations(
            tuple(
                EqualForm(Operator(form), RUNS if i == runs else "", why)
                for i, (form, why) in enumerate(steps)
            )
        )
        if not self.derivation.steps and not self.derivation.ended:
            yield Paragraph(("No identity makes it simpler.",))
        if self.derivation.needs:
            needs = " and ".join(CONDITIONS[c] for c in self.derivation.needs)
            yield Paragraph((f"It holds if {needs}.",))
        if self.derivation.ended:
            yield Paragraph((ENDED,))

    def _swept(self, code: Pseudocode) -> Iterator[Block]:
        """The lines of the recursion, sweep by sweep."""
        if not code.passes:
            yield Paragraph(("There is nothing to compute.",))
        own, first = meanings(code), 1
        for one in code.passes:
            lines = tuple((_formulas(line), self._remark(line, own)) for line in one.lines)
            yield Numbered(self._heading(one, code), first, lines)
            first += len(lines)

    def _heading(self, one: Pass, code: Pseudocode) -> Sentence:
        """The heading of a sweep."""
        text = "".join(LANGUAGES[self.language][one.sweep.direction]).format(p=code.parent)
        if not one.zero:
            return (text,)
        return f"{text}; at the world ", *_listed(one.zero, ", "), " = 0"

    def _remark(self, line: Line, own: Mapping[Formula, Meaning]) -> Sentence:
        """The remark on a line: its note, its reading as estimation, its source."""
        told = [prose(line.note)]
        if self.language == "estimation":
            known = own.get(line.defined) or GLOSSARY.get(line.defined)
            behind = line.recursion.estimation if line.recursion else ""
            told.append((behind or (known.estimation if known else ""),))
        told.append((line.source,))
        return _joined([x for x in told if any(x)], "  ")

    def _told(self, x: Meaning) -> Sentence:
        """A meaning in the language of the explanation, with its unit."""
        reading = (x.estimation,) if self.language == "estimation" and x.estimation else x.meaning
        return (*reading, f" [{x.unit}]") if x.unit else reading

    def _costs(self, code: Pseudocode) -> Iterator[str]:
        """Sentences about the number of operations."""
        each = list[str]()
        for one in code.passes:
            cost = replace(code.plan, sweeps=(one.sweep,), values=one.sweep.values).cost
            called, _ = LANGUAGES[self.language][one.sweep.direction]
            each.append(f"{called} {cost}")
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
    language: Language = "dynamics",
    active: MaskLike | None = None,
) -> Explanation:
    """The explanation of an expression; with a robot also the exact cost on it.

    Parameters
    ----------
    expression
        The expression.
    robot : optional
        A robot, for which the exact number of operations is added.
    language
        "dynamics", or "estimation", which reads the bodies as stations of a Kalman filter.
    active : (nv,) or names of hinges, optional
        Which joints of the robot are active, for operators of passive arms.

    Returns
    -------
    Explanation
        The explanation, as `text` (also `str`), `markdown` or `latex`.

    Raises
    ------
    ValueError
        If the language is not known, or `active` is given without a robot.

    Examples
    --------
    >>> from phipsi.operators import mass
    >>> from phipsi.operators.writing.explain import explain
    >>> print(explain(mass.inv).text.splitlines()[2])
      It takes x (joint forces) and gives y (joint rates), at a configuration q.
    """
    if not isinstance(language, str) or language not in LANGUAGES:
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
        refusal = tuple(Operator(x) if isinstance(x, Expression) else x for x in error.args)
        return Explanation(expression, derive(expression), None, refusal, language, robot)
    operations = None
    if robot is not None:
        check_robot(expression, robot, lowered.derivation.needs)
        operations = as_program(expression, (), mask).graph(robot).operations
    return Explanation(
        expression, lowered.derivation, lowered.plan, (), language, robot, operations
    )


STEPS: Mapping[str, Sentence] = {
    **{
        f"definition of {x}": ("definition of ", Operator(x))
        for row in TABLE
        for x in (*(row.left.leaves | row.right.leaves), *PASSIVE.values())
    },
    "root of D": prose("root of {D}"),
    "l = m⁻¹": (Equality(Name("l", r"\ell"), Name.of(m.symbol).inv),),
    "x⁻¹x = I": (X.inv, Equality(X, IDENTITY)),
}
"""The names of steps that contain formulas, as sentences."""


def _why(step: Step[Expression]) -> Sentence:
    """The reason for a step: name, identity, source."""
    why = STEPS.get(step.name, (step.name,))
    if step.identity:
        why = *why, ": ", _equality(step.identity)
    return (*why, f"  {step.source}") if step.source else why


def _equality(row: Equal[Expression]) -> Equality:
    return Equality(Operator(row.left), Operator(row.right))


def _formulas(line: Line) -> Sentence:
    where = (f"{line.where}: ",) if line.where else ()
    return *where, *_listed(line.formulas, ",  ")


def _listed(formulas: Iterable[Formula], between: str) -> Sentence:
    return _joined([(x,) for x in formulas], between)


def _joined(sentences: Iterable[Sentence], between: str) -> Sentence:
    parts = [part for sentence in sentences for part in (between, *sentence)]
    return tuple(parts[1:])


def _looked_up(
    formulas: Iterable[Formula], known: Mapping[Formula, Meaning]
) -> dict[Formula, Meaning]:
    """The meanings of the names in formulas, and of formulas that have a meaning themselves."""
    names = (name for x in formulas for name in (*x.names, x))
    return {name: known[name] for name in names if name in known}


def _of_derivation(derivation: Derivation[Expression]) -> Iterator[Formula]:
    """The formulas of a derivation; a factor of the mass matrix comes before those that contain
    it."""
    start = derivation.expression, None
    for x, identity in (start, *((s.expression, s.identity) for s in derivation.steps)):
        parts = {*walk(x)}
        yield from (Operator(y) for y in MEANING.values() if y in parts or y.T in parts)
        if identity:
            yield _equality(identity)
        yield Operator(x)


def _of_recursion(code: Pseudocode) -> Iterator[Formula]:
    """The formulas of a recursion; the block of φ comes before those that contain it."""
    formulas = [x for one in code.passes for line in one.lines for x in line.formulas]
    if any(PHI in x.names for x in formulas):
        yield PHI["k"]
    yield from formulas
