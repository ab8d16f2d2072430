"""Simplification: expressions brought to a normal form by the identities, step by step.

The expression is multiplied out. Then the first row of the table of identities that applies is
applied everywhere, which is one step of the derivation, until no row applies; each step is shown
with its common factors taken out. Of an inverse the inner expression is simplified first; the
inverse is then that of a product, a known one, or found by the matrix inversion lemma.
docs/operators.md explains why this is directed rewriting and not equality saturation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from phipsi.arguments import as_names
from phipsi.caller import warn
from phipsi.operators.algebra.derivation import CONDITIONS, Condition, Derivation, Equal, Step
from phipsi.operators.algebra.expression import (
    Expression,
    Inverse,
    Leaf,
    LogDet,
    NumberTooLong,
    Sum,
    ZeroOperator,
    add,
    brief,
    inverse,
    product,
    walk,
)
from phipsi.operators.algebra.identities import TABLE, Identity
from phipsi.operators.algebra.inverses import (
    UNIT,
    composite,
    determinant,
    known_inverse,
    of_product,
    opposite,
    square,
)
from phipsi.operators.algebra.polynomial import *
from phipsi.operators.algebra.symbols import *


def derive(
    x: Expression,
    assume: Condition | Iterable[Condition] = (),
    *,
    strict: bool = False,
    keep: Iterable[str] = (),
) -> Derivation[Expression]:
    """The derivation of an expression's normal form.

    A condition that is not assumed is used only to remove an inverse that would remain otherwise,
    and never if `strict`; it is then listed in `needs`. Symbols named in `keep` are not replaced by
    their definitions.
    """
    asked = _asked(assume)
    given = tuple(c for c in CONDITIONS if c in asked)
    unknown = asked - set(given)
    if unknown:
        known = ", ".join(CONDITIONS)
        raise ValueError(f"condition {min(unknown)!r} is not known; known are {known}")
    kept = tuple(sorted(keep))
    found = _derived(x, given, kept)
    optional: tuple[Condition, ...] = ("no armature", "free base")
    for more in optional:
        if stuck(found.result) and more not in given and not strict:
            with suppress(ZeroDivisionError):  # what is inverted may be zero then
                other = _derived(x, (*given, more), kept)
                found = min(found, other, key=lambda d: len(stuck(d.result)))
    return found


def _asked(assume: Condition | Iterable[Condition]) -> set[str]:
    """The assumed conditions; one may be given as a text."""
    return set(as_names("assume", assume))


class ConditionWarning(UserWarning):
    """A result holds only under a condition that was not assumed."""


def warn_of(derivation: Derivation[Expression], assume: Condition | Iterable[Condition]) -> None:
    """Warn of conditions that the derivation used and the caller did not assume."""
    extra = [CONDITIONS[c] for c in derivation.needs if c not in _asked(assume)]
    if extra:
        text = f"{derivation.expression} = {derivation.result} only if {' and '.join(extra)}"
        warn(text, ConditionWarning)


def stuck(x: Expression) -> list[Inverse]:
    """The inverses in an expression that no recursion computes: neither block diagonal nor of an
    operator between the small spaces of frames."""
    return [
        part
        for part in walk(x)
        if isinstance(part, Inverse)
        and part.domain.size != "frame"
        and not all(leaf.symbol.diagonal for leaf in part.leaves)
    ]


@lru_cache(maxsize=512)
def _derived(
    x: Expression, given: tuple[Condition, ...], keep: tuple[str, ...] = ()
) -> Derivation[Expression]:
    engine = _Engine(given, keep)
    try:
        p = Polynomial.of(x)
        if weight(p.factored) < weight(x):
            engine.steps.append(Step(p.factored, "common factors"))
        engine.run(p)
    except (TooLong, NumberTooLong):
        return _by_parts(x, given, keep, engine.work)
    steps, before = list[Step[Expression]](), x
    for step in engine.steps:
        if step.expression is not before:
            steps.append(step)
        before = step.expression
    needs = tuple(dict.fromkeys(engine.needed))
    return Derivation(x, tuple(steps), needs, engine.work, engine.ended)


def _by_parts(
    x: Expression, given: tuple[Condition, ...], keep: tuple[str, ...], work: int
) -> Derivation[Expression]:
    """The derivation of an expression that is too long to be multiplied out: each of its parts is
    simplified by itself, until the work reaches its limit."""
    parts: dict[Expression, Derivation[Expression]] = {}
    for part in dict.fromkeys(x.parts):
        parts[part] = _derived(part, given, keep) if work < MOST_WORK else Derivation(part, ())
        work += parts[part].work
    if isinstance(x, Sum):
        new = add([(c, parts[term].result) for c, term in x.terms])
    elif isinstance(x, Inverse):
        new = inverse(parts[x.inner].result)
    elif isinstance(x, LogDet):
        new = LogDet.of(parts[x.inner].result)
    else:
        new = product([parts[factor].result for factor in x.factors])
    needs: dict[Condition, None] = dict.fromkeys(c for y in parts.values() for c in y.needs)
    steps = (Step(new, "part by part"),) if new is not x else ()
    ended = work >= MOST_WORK or any(y.ended for y in parts.values())
    return Derivation(x, steps, tuple(needs), work, ended)


# ---- rules --------------------------------------------------------------------------------------

MOST_WORK = 10_000
"""The number of letters in all forms of a derivation at which the search ends."""
ONE = Fraction(1)
Frames = tuple[str, ...]


@dataclass(frozen=True)
class RewriteRule:
    """A row of the table of identities as letters and their replacement."""

    row: Identity
    letters: Word
    by: Polynomial
    beside: Word = ()
    """Letters that must occur too, with which the replacement cancels."""

    def applied(self, p: Polynomial) -> Polynomial | None:
        """The polynomial after the replacement; None if the letters do not occur."""
        if not p.has(self.letters) or (self.beside and not p.has(self.beside)):
            return None
        while p.has(self.letters):
            p = p.replaced(self.letters, self.by)
        return p


def rules(
    p: Polynomial, given: tuple[Condition, ...], frames: tuple[Frames, ...]
) -> Iterator[tuple[RewriteRule, ...]]:
    """The rows that may rewrite a polynomial under the given conditions, at the given frames.

    Each comes with its variants. First come the rows without `beside`, then the rules that
    recognise I − HψK and I + HφK, then the rows with `beside`, which need a term to cancel with."""
    letters = (MEANING.get(x, x) for y in p.letters for x in y.leaves)
    names = {leaf.symbol.name for x in letters for leaf in x.leaves}
    rows = [row for row in REWRITING if set(row.needs) <= set(given) and _may_apply(row, names)]
    yield from (_variants(row, frames) for row in rows if not row.beside)
    yield _recognition()
    yield from (_variants(row, frames) for row in rows if row.beside)


REWRITING = tuple(row for row in TABLE if row.rewrite)
"""The rows that are used to rewrite."""
_PASSIVE = {
    row.passive_of.symbol.name: row.name
    for row in SYMBOLS.values()
    if isinstance(row.passive_of, Leaf)
}


def _may_apply(row: Identity, names: set[str]) -> bool:
    """Whether these names include all symbols of the left side of a row, or all their passive
    counterparts."""
    own = {leaf.symbol.name for leaf in row.left.leaves}
    return own <= names or {_PASSIVE.get(name, name) for name in own} <= names


@lru_cache(maxsize=1)
def _recognition() -> tuple[RewriteRule, ...]:
    """The rules that replace HψK and HφK by the letters for I − HψK and I + HφK."""
    return tuple(
        RewriteRule(
            Identity("common factors", x, x),
            word,
            Polynomial({(x,): sign, (): -sign}, x.codomain, x.domain),
        )
        for own, (sign, inner) in OPEN.items()
        for x, word in ((own, inner), (own.T, tuple(z.T for z in reversed(inner))))
    )


@lru_cache(maxsize=1024)
def _variants(row: Identity, frames: tuple[Frames, ...]) -> tuple[RewriteRule, ...]:
    """A row at every frame, its passive counterpart, and the adjoints of all."""
    return tuple(_of_row(row, frames))


def _of_row(row: Identity, frames: tuple[Frames, ...]) -> Iterator[RewriteRule]:
    framed = any(x.frames for x in row.left.leaves)
    places = [row.at(*names) for names in frames if len(names) == 1 or row.several]
    for own in places if framed else [row]:
        for one in filter(None, (own, own.passive)):
            for x in (one, one.adjoint) if one.left.T is not one.left else (one,):
                beside = _word(x.beside) if x.beside else ()
                yield RewriteRule(x, _word(x.left), Polynomial.of(x.right), beside)


def _word(x: Expression) -> Word:
    (word,) = Polynomial.of(x).words
    return word


# ---- the engine ---------------------------------------------------------------------------------

ROOTED: dict[Expression, Expression] = {m: m.definition, l: l.definition}
"""The roots of the mass matrix, which are expanded inside an inverse or a determinant."""


class _Engine:
    """The state of one derivation: its steps, and the conditions that they need."""

    def __init__(self, given: tuple[Condition, ...], keep: tuple[str, ...]) -> None:
        self.given, self.keep = given, keep
        self.steps: list[Step[Expression]] = []
        self.needed: list[Condition] = []
        self.settled: set[Expression] = set()
        self.work = 0
        self.ended = False

    def run(self, p: Polynomial) -> None:
        """Apply rules until none applies, or the work reaches its limit."""
        current: Polynomial | None = p
        while current is not None and self.work < MOST_WORK:
            p = current
            current = self._cancelled(p) or self._taken_apart(p) or self._rewritten(p)
        self.ended |= current is not None

    def _note(
        self, p: Polynomial, name: str, source: str = "", identity: Equal[Expression] | None = None
    ) -> Polynomial:
        """Add a step with a result; the result."""
        self.steps.append(Step(p.factored, name, source, identity))
        self.work += 1 + sum(map(len, p.words))
        return p

    def _rewritten(self, p: Polynomial) -> Polynomial | None:
        """The polynomial after the first row that applies, applied everywhere, or None."""
        frames = {x.frames for y in p.letters for x in y.leaves if x.frames}
        for variants in rules(p, self.given, tuple(sorted(frames))):
            used = None
            for rule in variants:
                kept = any(x.leaves and _name(x) in self.keep for x in rule.letters)
                new = None if kept else rule.applied(p)
                if new is not None:
                    p, used = new, used or rule.row
            if used:
                self.needed += used.needs
                shown = used if used.left is not used.right else None
                return self._note(p, used.name, used.source, shown)
        return None

    def _cancelled(self, p: Polynomial) -> Polynomial | None:
        """The polynomial without products x⁻¹x; None if it has none."""
        both = ((x, y) for word in p.words for x, y in pairwise(word))
        pairs = dict.fromkeys((x, y) for x, y in both if opposite(x) is y)
        for x, y in pairs:
            p = p.replaced((x, y), Polynomial({(): ONE}, x.codomain, y.domain))
        return self._note(p, "x⁻¹x = I") if pairs else None

    def _taken_apart(self, p: Polynomial) -> Polynomial | None:
        """The polynomial with its first composite inverse or determinant in simpler ones."""
        for x in (y for y in p.letters if y not in self.settled):
            if isinstance(x, Inverse) and composite(x.inner):
                return self._inverted(p, x)
            if isinstance(x, LogDet):
                return self._determined(p, x)
        return None

    def _inside(self, p: Polynomial, x: Expression, outer: Callable[[Expression], Expression],
                inner: Expression) -> Expression:  # fmt: skip
        """The inner expression of x, simplified; each step is shown within the whole expression."""
        derivation = _derived(inner, self.given, self.keep)
        self.needed += derivation.needs
        self.work += derivation.work
        self.ended |= derivation.ended
        for step in derivation.steps:
            if self.work < MOST_WORK:
                whole = p.replaced((x,), Polynomial.of(outer(step.expression)))
                self._note(whole, step.name, step.source, step.identity)
        return derivation.result

    def _inverted(self, p: Polynomial, x: Inverse) -> Polynomial:
        """p with the inverse x, and its adjoint, in simpler terms."""
        inner = x.inner.replaced(MEANING)

        def inverted(y: Expression) -> Expression:
            if isinstance(y, ZeroOperator):
                raise ZeroDivisionError(f"{brief(inner)} is zero, and has no inverse")
            return inverse(y)

        found = known_inverse(Polynomial.of(inner), x)
        if not found:
            result = self._inside(p, x, inverted, inner)
            settled = letter(inverted(result))
            q = Polynomial.of(result.replaced(ROOTED))
            found = known_inverse(q, x) or of_product(q, x)
            if not found:
                self.settled |= {x, settled}
                return p if settled is x else p.replaced((x,), Polynomial.of(settled))
        both = {x: False, x.T: True}
        whole = p
        for by, name, source in found:
            whole = p
            for y, turned in both.items():
                whole = whole.replaced((letter(y),), by.adjoint if turned else by)
            self._note(whole, name, source)
        return whole

    def _determined(self, p: Polynomial, x: LogDet) -> Polynomial:
        """p with log det of a product as the sum of those of its factors."""
        self.settled.add(x)
        result = self._inside(p, x, LogDet.of, x.inner.replaced(MEANING))
        q = Polynomial.of(result.replaced(ROOTED))
        words: dict[Word, Fraction] = {(LogDet.of(result),): ONE}
        if len(q.words) == 1 and ONE in q.words.values() and all(map(square, next(iter(q.words)))):
            (word,) = q.words
            parts = [determinant(y) for y in word if y not in UNIT and opposite(y) not in UNIT]
            words = {}
            for part, sign in parts:
                words[part,] = words.get((part,), Fraction(0)) + sign
        self.settled |= {y for (y,) in words}
        by = Polynomial(words, x.codomain, x.domain)
        if by.words == {(x,): ONE}:
            return p
        return self._note(p.replaced((x,), by), "determinant of a product")


def _name(x: Expression) -> str:
    return next(iter(x.leaves)).symbol.name
