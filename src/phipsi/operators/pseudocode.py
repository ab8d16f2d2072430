"""Plans in writing: the recursion of a lowered expression, as the papers print algorithms.

A value gets a name, and a line of its own, if it is the result, crosses to a neighbour or to a
later sweep, or is used twice; the others are written where they are used. Formulas are Unicode
with blanks between factors: `z = u + Σ_c φ_c z⁺_c`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from phipsi.operators.algebra.expression import Leaf
from phipsi.operators.algebra.notation import UNICODE
from phipsi.operators.algebra.symbols import *
from phipsi.operators.lowering.dataflow import INWARDS, Value
from phipsi.operators.lowering.plan import Plan, Sweep


class Recursion(NamedTuple):
    """A recursion behind symbols: its formulas ({p}: the parent), and what is 0 at the world."""

    formulas: tuple[str, ...]
    source: str
    zero: str = ""
    note: str = ""


RECURSIONS: Mapping[str, Recursion] = {
    "riccati": Recursion(
        ("P = M + Σ_c φ_c P⁺_c φ_c*", "D = H P H* + A", "G = P H* D⁻¹", "P⁺ = P − G H P"),
        "[BI] Alg 2.2, [SOA] (4.1)",
    ),
    "passive": Recursion(
        ("P_p = M + Σ_c φ_c P_p⁺_c φ_c*", "D_p = H_p P_p H_p* + A_p", "G_p = P_p H_p* D_p⁻¹",
         "P_p⁺ = P_p − G_p H_p P_p"),
        "[UA] (4.6)-(4.9)",
    ),
    "motion": Recursion(
        ("V = φ* V_{p} + H* β", "a = ad(V) H* β + Ḣ* β"), "[BI] Alg 2.1", "V"
    ),
    "gyroscopic": Recursion(("g = φ* g_{p}", "b = crf(V) M V − M g − f_ext"), "[BI] Alg 2.1"),
    "upsilon": Recursion(
        ("τ̄ = I − G H", "Υ⁺ = φ* Υ_{p} φ", "Υ = τ̄* Υ⁺ τ̄ + H* D⁻¹ H"),
        "[SOA] Application 2, [BI] (34)",
        "Υ",
    ),
    "dual": Recursion(
        ("S⁺ = φ⁻¹ (M_{p} + S_{p} + Σ_c φ_c P⁺_c φ_c*) φ⁻*", "D_s = H S⁺ H* + A",
         "G_s = −S⁺ H* D_s⁻¹", "S = S⁺ + G_s H S⁺", "Λ = P + S"),
        "[BI] Alg 3.1",
        note="c the other children of the parent; at a free root S⁺ = S = 0, G_s = −I, Λ = P",
    ),
    "rates": Recursion(
        ("Ṗ = Σ_c φ_c (Ṗ⁺_c + Δ̃_c P⁺_c + P⁺_c Δ̃_c*) φ_c*", "U̇ = Ṗ H* + P Ḣ*",
         "Ḋ = H U̇ + Ḣ P H*", "Ġ = (U̇ − G Ḋ) D⁻¹", "Ṗ⁺ = Ṗ − U̇ G* − G U̇* + G Ḋ G*"),
        "[DL] Alg 6.1, Table 4, for any hinge",
    ),
}  # fmt: skip
"""The recursions of `lower.RECURSIONS`, in writing."""

MOTION = "[BI] Alg 2.3; run with classical accelerations, [BI-c] (2.2)"
"""The source of loads."""


@dataclass(frozen=True)
class Line:
    """A line of pseudo-code: formulas, and where they hold."""

    formulas: tuple[str, ...]
    where: str = ""
    note: str = ""
    source: str = ""
    recursion: str = ""
    """The name of the recursion that it is."""
    values: tuple[Value, ...] = ()
    """The value that it defines, and those that are written in it."""


@dataclass(frozen=True)
class Pass:
    """A sweep in writing."""

    sweep: Sweep
    lines: tuple[Line, ...]
    zero: tuple[str, ...] = ()
    """What is 0 at the world."""


GIVEN = ("input", "state", "unit", "one", "zero")
"""Values that need no line."""
DIGITS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
LETTERS = {"joint forces": "εκ", "joint rates": "νξ", "normalised rates": "η", "numbers": "s"}
"""The letter of a value by its space, and the one to take if the expression has that letter."""


class Pseudocode:
    """A plan in writing: `passes`, and the `name` of each value that has one."""

    def __init__(self, plan: Plan, result: str = "y", reserved: Iterable[str] = ()) -> None:
        self.plan = plan
        self.like = _copies(plan)
        self.values = [v for v in plan.values if self.like[v] is v]
        self.sweep_of = {v: i for i, sweep in enumerate(plan.sweeps) for v in sweep.values}
        self.users: dict[Value, list[Value]] = {v: [] for v in self.values}
        for v in self.values:
            for y in self.sources(v):
                self.users[y].append(v)
        passive = any(leaf in PASSIVE.values() for v in plan.values for leaf in letters(v))
        self.parent = "j" if passive else "p"
        """The letter of the parent; p says "passive" where there are passive arms."""
        self.taken = {*reserved}
        self.name: dict[Value, str] = {}
        self._name_all(result)
        self.passes = tuple(self._passes())

    @property
    def copied(self) -> bool:
        """Is the result a number, or what it is applied to?"""
        result = self.plan.result
        return result.op in GIVEN and self.name[result] in ("0", "1", "x")

    def sources(self, v: Value) -> list[Value]:
        """The values it is written with; of the columns of a matrix only the first."""
        own = v.sources[:2] if v.op == "solve" else v.sources
        return [self.like[y] for y in own]

    # ---- names ---------------------------------------------------------------------------------

    def _name_all(self, result: str) -> None:
        for v in self.values:
            if v.op in GIVEN:
                self.name[v] = {"unit": "e_i", "zero": "0", "one": "1"}.get(v.op) or (
                    "x" if v.data == "x" else SYMBOLS[v.data].unicode
                )
        if self.plan.result not in self.name:
            self.name[self.plan.result] = result
            self.taken.add(result)
        for v in self.values:
            if v.op == "recur":
                self._call(v, "z" if v.data in INWARDS else "λ")
        for v in self.values:
            self._name_crossing(v)
        for v in (v for sweep in self.plan.sweeps for v in sweep.values):
            if v in self.users and self._has_name(v):
                self._call(v, self._letter(v))

    def _name_crossing(self, v: Value) -> None:
        """z⁺ is what a recursion z sends inward, λ⁺ what arrives of λ outward."""
        if v.op == "recur" and v.data in INWARDS:
            for y in self.sources(v):
                if y.op == "gather":
                    self._call(self.like[y.args[0]], self.name[v] + "⁺")
        sent = self.like[v.args[0]] if v.op == "scatter" else v
        if sent is not v and sent.op == "recur" and self._has_name(v):
            self._call(v, self.name[sent] + "⁺")

    def _has_name(self, v: Value) -> bool:
        users = self.users[v]
        if v is self.plan.result or v.op in ("load", "solve") or len(users) > 1:
            return True
        if any(u.op in ("gather", "scatter", "solve") for u in users):
            return True
        at_hand = v.op == "apply" and self.like[v.args[0]].op == "input"
        return not at_hand and any(self.sweep_of[u] != self.sweep_of[v] for u in users)

    def _letter(self, v: Value) -> str:
        if any(u.op == "solve" and self.sources(u)[-1] is v for u in self.users[v]):
            return "Y"
        if v.op == "load" and not v.args:
            return "u"
        kind = v.space.name.replace("active ", "").replace("passive ", "")
        if kind not in LETTERS:
            return "f₁" if v.space.is_force else "α₁"
        return next((c for c in LETTERS[kind] if c not in self.taken), LETTERS[kind][0])

    def _call(self, v: Value, name: str) -> None:
        """Give a name to a value without one, with the next number if it is taken."""
        if v in self.name:
            return
        base, plus = name.rstrip("₁⁺"), "⁺" * name.endswith("⁺")
        number, own = 1, name
        while own in self.taken:
            number += 1
            own = base + str(number).translate(DIGITS) + plus
        self.taken.add(own)
        self.name[v] = own

    # ---- formulas ------------------------------------------------------------------------------

    def term(self, v: Value) -> str:
        """A value where it is used."""
        v = self.like[v]
        return self.name[v] if v in self.name else self.formula(v)

    def formula(self, v: Value) -> str:
        """What a value is equal to."""
        match v.op:
            case "add":
                return self._sum(zip(v.data, v.args, strict=True))
            case "recur":
                return self._sum((Fraction(1), y) for y in v.recursion)
            case "apply":
                return f"{UNICODE.factor(v.data)} {self._factor(v.args[0])}"
            case "gather":
                return f"Σ_c {'φ_c' if v.space.is_force else 'φ_c⁻*'} {self.term(v.args[0])}_c"
            case "scatter":
                back = "φ⁻¹" if v.space.is_force else "φ*"
                return f"{back} {self.term(v.args[0])}_{self.parent}"
            case "place":
                return f"{B(*v.data)} {self._factor(v.args[0])}"
            case "pick":
                return f"{B(*v.data).T} {self._factor(v.args[0])}"
            case "times":
                return " ".join(map(self._factor, v.args))
            case "dot":
                left, right = map(self._factor, v.args)
                bodies = "" if v.args[0].whole else "Σ_k "
                return f"{bodies}{f'({left})' if ' ' in left.strip('()') else left}* {right}"
            case "logdet":
                return f"Σ_k log det {v.data}"
            case "solve":
                return f"{self.term(v.args[1])}⁻¹ {self._factor(v.args[0])}"
            case "load":
                return f"M {self.motion(v)} + b"
        raise AssertionError(v.op)

    def motion(self, v: Value) -> str:
        """The name of the accelerations behind a load."""
        others = [x for x in self.values if x.op == "load" and x.args]
        number = others.index(v) + 1 if v.args else 0
        return ("α" if number else "ᾱ") + (str(number).translate(DIGITS) if number > 1 else "")

    def _factor(self, v: Value) -> str:
        v = self.like[v]
        text = self.term(v)
        return f"({text})" if v not in self.name and v.op == "add" else text

    def _sum(self, terms: Iterable[tuple[Fraction, Value]]) -> str:
        """What comes from the parent first, then names, what children send, minuses last."""
        rank = {"scatter": 0, "gather": 3}
        flat = sorted(
            self._flat(terms),
            key=lambda x: (x[0] < 0, rank.get(x[1].op, 1 if x[1] in self.name else 2)),
        )
        out = ""
        for c, v in flat:
            sign = "−" if c < 0 else "+" if out else ""
            number = UNICODE.number(abs(c))
            out += (f" {sign} " if out else sign) + (f"{number} " if number else "")
            out += self._factor(v)
        return out or "0"

    def _flat(self, terms: Iterable[tuple[Fraction, Value]]) -> Iterator[tuple[Fraction, Value]]:
        for c, v in terms:
            v = self.like[v]
            if v.op == "add" and v not in self.name:
                yield from self._flat((c * d, y) for d, y in zip(v.data, v.args, strict=True))
            elif v.op != "zero":
                yield c, v

    # ---- lines ---------------------------------------------------------------------------------

    def _passes(self) -> Iterator[Pass]:
        """The sweeps that compute something; what could be one is written as one."""
        printed: set[str] = set()
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
            line = Line((f"y = {self.name[self.plan.result]}",), values=(self.plan.result,))
            yield Pass(replace(self.plan.sweeps[-1], direction="local"), (line,))

    def _pass(self, sweep: Sweep, printed: set[str]) -> Pass:
        own = [v for v in sweep.values if v in self.users]
        loads = [v for v in own if v.op == "load"]
        behind = [*sweep.recursions, *(["motion", "gyroscopic"] if loads else [])]
        behind = [name for name in dict.fromkeys(behind) if name not in printed]
        printed.update(behind)
        zero = [RECURSIONS[name].zero for name in behind] + [self.motion(v) for v in loads]
        zero += [self.term(v.args[0]) for v in own if v.op == "scatter"]
        named = [v for v in own if v in self.name and v.op not in GIVEN]
        named.sort(key=lambda v: (v.whole, not self._from_given(v)))
        lines = [*map(self._behind, behind), *map(self._line, named)]
        return Pass(sweep, tuple(lines), tuple(dict.fromkeys(filter(None, zero))))

    def _from_given(self, v: Value) -> bool:
        """Does it need nothing but what is given?"""
        apart = ("gather", "scatter", "recur", "load")
        return v.op not in apart and all(map(self._from_given, v.args))

    def _behind(self, name: str) -> Line:
        own = RECURSIONS[name]
        formulas = tuple(text.format(p=self.parent) for text in own.formulas)
        return Line(formulas, note=own.note, source=own.source, recursion=name)

    def _line(self, v: Value) -> Line:
        name = self.name[v] + "_i" * (self.name[v][0] == "Y")
        formulas, source = (f"{name} = {self.formula(v)}",), ""
        if v.op == "load":
            X, source = self.motion(v), MOTION
            hinge = "".join(f" + H* {self._factor(y)}" for y in v.args)
            formulas = (f"{X} = φ* {X}_{self.parent}{hinge} + a", *formulas)
        at = str(v.space).partition(" at ")[2]
        units = 6 * len(self._units(v))
        note = f"for i = 1 … {units}" if units else ""
        note = note or "over all bodies" * ("Σ_k" in formulas[0])
        return Line(formulas, f"at {at}" if at else "", note, source, "", (*self._written(v),))

    def _units(self, v: Value) -> tuple[str, ...]:
        """The frames at whose unit vectors it is computed, one by one."""
        if v.op == "unit":
            return v.space.frames
        return () if v.op == "solve" else next(filter(None, map(self._units, v.args)), ())

    def _written(self, v: Value) -> Iterator[Value]:
        """The values that a line computes."""
        yield v
        for y in self.sources(v) if v.op not in ("gather", "scatter") else ():
            if y not in self.name:
                yield from self._written(y)


def letters(v: Value) -> set[Leaf]:
    """The symbols that a value is made with."""
    return v.data.leaves if v.op in ("apply", "recur", "logdet") else set()


def _copies(plan: Plan) -> dict[Value, Value]:
    """For each value the one that is written for it: of those that differ only in the unit vector
    that they start from, the first."""
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
