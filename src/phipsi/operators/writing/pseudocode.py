"""Plans as pseudo-code: the recursion of a lowered expression, as the papers print algorithms.

A value gets a name and a line of its own if it is the result, is read by a neighbour or a later
sweep, is used twice, or has a long formula; the formulas of other values are written where they are
used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from phipsi.operators.algebra.expression import Leaf
from phipsi.operators.algebra.formula import (
    Equality,
    Formula,
    Name,
    Operator,
    Sigma,
    Sum,
    renamed,
    walk,
)
from phipsi.operators.algebra.symbols import PASSIVE, SYMBOLS, B
from phipsi.operators.lowering.dataflow import INWARDS, Op, Value
from phipsi.operators.lowering.plan import Plan, Sweep
from phipsi.operators.lowering.recursions import (
    GYROSCOPIC,
    LOCAL,
    MOTION,
    H,
    M,
    Recursion,
    a,
    b,
    phi,
)

SOURCE_OF_LOADS = "[BI] Alg 2.3; run with classical accelerations, [BI-c] (2.2)"


@dataclass(frozen=True)
class Line:
    """A line of pseudo-code: formulas, with remarks."""

    formulas: tuple[Equality, ...]
    where: str = ""
    """The frames at which they hold, if any."""
    note: str = ""
    """A remark, its formulas in braces."""
    source: str = ""
    recursion: Recursion | None = None
    """The recursion behind symbols that the line describes, if any."""
    values: tuple[Value, ...] = ()
    """The value that it defines, and those whose formulas are written in it."""

    @property
    def defined(self) -> Name:
        """The name that it defines; the last one if it has several formulas."""
        return next(self.formulas[-1].names)


@dataclass(frozen=True)
class Pass:
    """The lines of pseudo-code of a sweep."""

    sweep: Sweep
    lines: tuple[Line, ...]
    zero: tuple[Name, ...] = ()
    """The names that are 0 at the world."""


DEEPEST = 50
"""The most formulas that are written one inside the other."""
GIVEN: tuple[Op, ...] = ("input", "state", "unit", "one", "zero")
"""The operations of values that need no line."""
X, RESULT = Name("x", "x"), Name("y", "y")
NUMERALS: dict[Op, Name] = {"zero": Name("0", "0"), "one": Name("1", "1")}
UNIT = Name("e", "e", index="i")
MATRIX = Name("Y", "Y")
LOG_DET = Name("log det", r"\log\det")
Z, ETA, NUMBER = Name("z", "z"), Name("η", r"\eta"), Name("s", "s")
BIAS = Name("ᾱ", r"\bar{\alpha}")
"""Accelerations at zero joint acceleration."""
ALPHA, FORCE, LOAD, EPS, KAPPA, NU, XI, LAMBDA = (
    Name.of(SYMBOLS[name]) for name in ("alpha", "f", "u", "eps", "kappa", "nu", "xi", "lam")
)
LETTERS: Mapping[str, tuple[Name, ...]] = {
    "joint forces": (EPS, KAPPA),
    "joint rates": (NU, XI),
    "normalised rates": (ETA,),
    "numbers": (NUMBER,),
}
"""Letters for a value of a space: the first that the expression does not contain is taken."""


class Pseudocode:
    """The pseudo-code of a plan: its `passes`, and the `name` of each value that has one."""

    def __init__(self, plan: Plan, result: Name = RESULT, reserved: Iterable[Name] = ()) -> None:
        self.plan = plan
        self.like = _copies(plan)
        """For each value the one that is written in its place."""
        self.values = [v for v in plan.values if self.like[v] is v]
        self.sweep_of = {v: i for i, sweep in enumerate(plan.sweeps) for v in sweep.values}
        self.users: dict[Value, list[Value]] = {v: [] for v in self.values}
        for v in self.values:
            for y in self.sources(v):
                self.users[y].append(v)
        self._starts()
        passive = any(leaf in PASSIVE.values() for v in plan.values for leaf in letters(v))
        self.parent = "j" if passive else "p"
        """The letter of the parent: j where p is the index of passive arms, else p."""
        self.taken = {*reserved}
        self.name: dict[Value, Name] = {}
        self._name_all(result)
        self.passes = tuple(self._passes())

    @property
    def copied(self) -> bool:
        """Whether the result is a numeral, or the argument itself."""
        return self.name[self.plan.result] in (X, *NUMERALS.values())

    def sources(self, v: Value) -> list[Value]:
        """The values in the formula of a value; of the columns of a matrix only the first."""
        own = v.sources[:2] if v.op == "solve" else v.sources
        return [self.like[y] for y in own]

    def _starts(self) -> None:
        """Find what each value is computed from; arguments have smaller numbers."""
        apart = ("gather", "scatter", "recur", "load")
        self.from_given: dict[Value, bool] = {}
        """Whether a value depends on given vectors alone."""
        self.units: dict[Value, tuple[str, ...]] = {}
        """The frames whose unit vectors a value is computed for, one by one."""
        reached, waiting = set[Value](), [*self.plan.values]
        while waiting:
            v = waiting.pop()
            waiting += () if v in reached else v.args
            reached.add(v)
        for v in sorted(reached, key=lambda v: v.number):
            self.from_given[v] = v.op not in apart and all(self.from_given[y] for y in v.args)
            args = () if v.op == "solve" else v.args
            frames = (v.space.frames if v.op == "unit" else (), *(self.units[y] for y in args))
            self.units[v] = next(filter(None, frames), ())

    # ---- names ---------------------------------------------------------------------------------

    def _name_all(self, result: Name) -> None:
        """Name all values that need a name."""
        for v in self.values:
            if v.op in GIVEN:
                own = UNIT if v.op == "unit" else NUMERALS.get(v.op)
                self.name[v] = own or (X if v.data == "x" else Name.of(SYMBOLS[v.data]))
        if self.plan.result not in self.name:
            self.name[self.plan.result] = result
            self.taken.add(result)
        for v in self.values:
            if v.op == "recur":
                self._call(v, Z if v.data in INWARDS else LAMBDA)
        for v in self.values:
            self._name_crossing(v)
        depth: dict[Value, int] = {}
        for v in (v for sweep in self.plan.sweeps for v in sweep.values if v in self.users):
            inner = (depth.get(y, 0) for y in self.sources(v) if y not in self.name)
            depth[v] = 1 + max(inner, default=0)
            if self._has_name(v) or depth[v] > DEEPEST:
                self._call(v, self._letter(v))

    def _name_crossing(self, v: Value) -> None:
        """Name the values at a hinge: z⁺ is sent inward by a recursion z, λ⁺ arrives outward from a
        recursion λ."""
        if v.op == "recur" and v.data in INWARDS:
            for y in self.sources(v):
                if y.op == "gather":
                    self._call(self.like[y.args[0]], self.name[v].plussed)
        sent = self.like[v.args[0]] if v.op == "scatter" else v
        if sent is not v and sent.op == "recur" and self._has_name(v):
            self._call(v, self.name[sent].plussed)

    def _has_name(self, v: Value) -> bool:
        """Whether a value gets a name and a line of its own."""
        users = self.users[v]
        if v is self.plan.result or v.op in ("load", "solve") or len(users) > 1:
            return True
        if any(u.op in ("gather", "scatter", "solve") for u in users):
            return True
        at_hand = v.op == "apply" and self.like[v.args[0]].op == "input"
        return not at_hand and any(self.sweep_of[u] != self.sweep_of[v] for u in users)

    def _letter(self, v: Value) -> Name:
        """The letter for a value, by its use and its space."""
        if any(u.op == "solve" and self.sources(u)[-1] is v for u in self.users[v]):
            return MATRIX
        if v.op == "load" and not v.args:
            return LOAD
        kind = v.space.name.replace("active ", "").replace("passive ", "")
        if kind not in LETTERS:
            return replace(FORCE if v.space.is_force else ALPHA, number=1)
        return next((x for x in LETTERS[kind] if x not in self.taken), LETTERS[kind][0])

    def _call(self, v: Value, name: Name) -> None:
        """Give a name to a value that has none, with the next free number if it is taken."""
        if v in self.name:
            return
        while name in self.taken:
            name = replace(name, number=max(name.number, 1) + 1)
        self.taken.add(name)
        self.name[v] = name

    # ---- formulas ------------------------------------------------------------------------------

    def term(self, v: Value) -> Formula:
        """A value inside a formula: its name, or its formula if it has none."""
        v = self.like[v]
        return self.name[v] if v in self.name else self.formula(v)

    def formula(self, v: Value) -> Formula:
        """The formula of a value."""
        match v.op:
            case "add":
                return self._sum(zip(v.data, v.args, strict=True))
            case "recur":
                return self._sum((Fraction(1), y) for y in v.recursion)
            case "apply":
                return Operator(v.data) @ self.term(v.args[0])
            case "gather":
                carried = phi["c"] if v.space.is_force else phi["c"].inv.T
                return Sigma("c", carried @ self._sent(v)["c"])
            case "scatter":
                carried = phi.inv if v.space.is_force else phi.T
                return carried @ self._sent(v)[self.parent]
            case "place":
                return Operator(B(*v.data)) @ self.term(v.args[0])
            case "pick":
                return Operator(B(*v.data).T) @ self.term(v.args[0])
            case "times":
                return reduce(Formula.__matmul__, map(self.term, v.args))
            case "dot":
                left, right = map(self.term, v.args)
                return left.T @ right if v.args[0].whole else Sigma("k", left.T @ right)
            case "logdet":
                return Sigma("k", LOG_DET @ Operator(v.data))
            case "solve":
                return self.term(v.args[1]).inv @ self.term(v.args[0])
            case "load":
                return M @ self.motion(v) + b
            case _:
                raise AssertionError(v.op)

    def _sent(self, v: Value) -> Name:
        """The name of the value that is read from neighbours."""
        return self.name[self.like[v.args[0]]]

    def motion(self, v: Value) -> Name:
        """The name of the accelerations of a load."""
        if not v.args:
            return BIAS
        before = [x for x in self.values if x.op == "load" and x.args].index(v)
        return replace(ALPHA, number=before + 1) if before else ALPHA

    def _sum(self, terms: Iterable[tuple[Fraction, Value]]) -> Formula:
        """A sum: values of the parent first, then named values, others, those of children; negative
        terms last."""
        rank = {"scatter": 0, "gather": 3}
        flat = sorted(
            self._flat(terms),
            key=lambda x: (x[0] < 0, rank.get(x[1].op, 1 if x[1] in self.name else 2)),
        )
        if not flat:
            return NUMERALS["zero"]
        found = tuple((c, self.term(v)) for c, v in flat)
        return found[0][1] if len(found) == 1 and found[0][0] == 1 else Sum(found)

    def _flat(self, terms: Iterable[tuple[Fraction, Value]]) -> Iterator[tuple[Fraction, Value]]:
        for c, v in terms:
            v = self.like[v]
            if v.op == "add" and v not in self.name:
                yield from self._flat((c * d, y) for d, y in zip(v.data, v.args, strict=True))
            elif v.op != "zero":
                yield c, v

    # ---- lines ---------------------------------------------------------------------------------

    def _passes(self) -> Iterator[Pass]:
        """The sweeps that compute something; adjacent ones are joined where they can be."""
        printed: set[Recursion] = set()
        found: list[Pass] = []
        for own in (self._pass(sweep, printed) for sweep in self.plan.sweeps):
            last = found[-1] if found else own
            apart = any(v.whole for line in last.lines for v in line.values)
            if found and last.sweep.direction == own.sweep.direction and not apart:
                both = replace(
                    own.sweep,
                    recursions=last.sweep.recursions + own.sweep.recursions,
                    values=last.sweep.values + own.sweep.values,
                )
                own = Pass(both, last.lines + own.lines, last.zero + own.zero)
                found.pop()
            found += [own] if own.lines else []
        yield from found
        if self.copied:
            copy = Equality(RESULT, self.name[self.plan.result])
            line = Line((copy,), values=(self.plan.result,))
            yield Pass(replace(self.plan.sweeps[-1], direction=LOCAL), (line,))

    def _pass(self, sweep: Sweep, printed: set[Recursion]) -> Pass:
        """The lines of one sweep, without recursions that were printed before."""
        own = [v for v in sweep.values if v in self.users]
        loads = [v for v in own if v.op == "load"]
        behind = [*sweep.recursions, *([MOTION, GYROSCOPIC] if loads else [])]
        behind = [own for own in dict.fromkeys(behind) if own not in printed]
        printed.update(behind)
        zero = [own.zero_at_world for own in behind] + [self.motion(v) for v in loads]
        zero += [self._sent(v) for v in own if v.op == "scatter"]
        named = [v for v in own if v in self.name and v.op not in GIVEN]
        named.sort(key=lambda v: (v.whole, not self.from_given[v]))
        lines = [*map(self._behind, behind), *map(self._line, named)]
        return Pass(sweep, tuple(lines), tuple(dict.fromkeys(filter(None, zero))))

    def _behind(self, own: Recursion) -> Line:
        """The line of a recursion behind symbols."""
        formulas = tuple(
            Equality(x, renamed(y, lambda z: z[self.parent] if z.index == "p" else z))
            for x, y in own.formulas.items()
        )
        return Line(formulas, "", own.note, own.source, own)

    def _line(self, v: Value) -> Line:
        """The line of a value."""
        name, source = self.name[v], ""
        left = name["i"] if name.letter == MATRIX.letter else name
        formulas = (Equality(left, self.formula(v)),)
        if v.op == "load":
            own, source = self.motion(v), SOURCE_OF_LOADS
            terms = phi.T @ own[self.parent], *(H.T @ self.term(y) for y in v.args), a
            formulas = (Equality(own, reduce(Formula.__add__, terms)), *formulas)
        at = " and ".join(map(repr, v.space.frames))
        units = 6 * len(self.units[v])
        note = f"for i = 1 … {units}" if units else ""
        if any(isinstance(x, Sigma) and x.index == "k" for x in walk(formulas[0])):
            note = note or "over all bodies"
        where = f"at {at}" if at else ""
        return Line(formulas, where, note, source, None, (*self._written(v),))

    def _written(self, v: Value) -> Iterator[Value]:
        """The values that a line computes."""
        yield v
        for y in self.sources(v) if v.op not in ("gather", "scatter") else ():
            if y not in self.name:
                yield from self._written(y)


def letters(v: Value) -> frozenset[Leaf]:
    """The symbols in the operator of a value."""
    return v.data.leaves if v.op in ("apply", "recur", "logdet") else frozenset()


def _copies(plan: Plan) -> dict[Value, Value]:
    """For each value the one that is written in its place: of values that differ only in the unit
    vector that they start from, the first."""
    first: dict[object, Value] = {}
    like: dict[Value, Value] = {}

    def found(v: Value) -> Value:
        if v not in like:
            data = v.data[0] if v.op == "unit" else v.data
            like[v] = first.setdefault((v.op, v.space, data, *map(found, v.args)), v)
        return like[v]

    for v in sorted(plan.values, key=lambda v: v.number):
        found(v)
    return like
