"""Simplified formulas: every value is a fraction of polynomials in symbols and functions of them.

SymPy's polynomials keep fractions in lowest terms, and known powers are substituted at once
(sin² + cos² = 1, √x² = x), so that terms cancel before formulas grow.

Decimal numbers are rounded, so that coefficients which should cancel leave a small remainder. To
recognise these, every fraction has a twin, computed from the same decimals changed in their 13th
digit: a coefficient that differs from its twin by as much as its own size is a remainder of
rounding, and is dropped. No other coefficient is dropped, however small.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from importlib import import_module
from math import gcd, lcm
from random import Random
from typing import Any, Protocol

from phipsi.compile.graph import Graph
from phipsi.compile.to_sympy import divided, entered, is_truth, meanings, sympy, tidy, walk

TERMS, SYMBOLS = 4000, 60
"""Most terms of a fraction (numerator times denominator), and most symbols and functions in all,
with which simplifying goes on if nobody asked for it."""

SHORT = 60
"""Most terms of a sum that is tried in several forms."""

CHANGE = 1e-13
"""Relative difference of a decimal and its twin."""

ROOTS = 6
"""The highest root n√x for which (n√x)ⁿ = x is used."""

DIGITS = 9
"""Most digits, without zeros at the end, of integers that are shown as integers."""

ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": divided,
    "neg": operator.neg,
}


Powers = tuple[int, ...]
"""The exponents of all generators in a term of a polynomial."""


class Polynomial(Protocol):
    """A polynomial of SymPy, `PolyElement`: the part of it that is used here."""

    ring: Any
    LC: Any
    LM: Powers
    is_ground: bool

    coeffs: Callable[[], list[Any]]
    terms: Callable[[], list[tuple[Powers, Any]]]
    items: Callable[[], Iterable[tuple[Powers, Any]]]
    rem: Callable[[list[Polynomial]], Polynomial]
    mul_ground: Callable[[Any], Polynomial]

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Powers]: ...
    def __contains__(self, powers: Powers) -> bool: ...
    def __getitem__(self, powers: Powers) -> Any: ...
    def __rmul__(self, other: int) -> Polynomial: ...


class FieldElement(Protocol):
    """A fraction of polynomials of SymPy, `FracElement`: the part of it that is used here."""

    numer: Polynomial
    denom: Polynomial

    def __add__(self, other: FieldElement | int) -> FieldElement: ...
    def __sub__(self, other: FieldElement | int) -> FieldElement: ...
    def __truediv__(self, other: FieldElement | int) -> FieldElement: ...
    def __pow__(self, n: int) -> FieldElement: ...


class Unfit(Exception):
    """The formulas cannot be brought to this form, or grow too large for a default."""


@dataclass(frozen=True, slots=True)
class Twins:
    """A fraction x, and its twin y; the same object if no decimal is in it."""

    x: FieldElement
    y: FieldElement


def simplified(
    graph: Graph, inputs: Sequence[Sequence[Any]], leading: Sequence[Any], limited: bool
) -> list[list[Any]]:
    """Every output of the graph as a simplified expression."""
    algebra = Fractions(graph, inputs, leading, limited)
    given = [[algebra.enter(x) for x in values] for values in inputs]
    return [[algebra.shown(x) for x in values] for values in walk(graph, given, algebra)]


class Fractions:
    """The algebra of fractions: SymPy's `FracField` over rational numbers. Its generators are the
    symbols of the inputs, and spare ones for functions, which are assigned as functions are met."""

    def __init__(
        self, graph: Graph, inputs: Sequence[Sequence[Any]], leading: Sequence[Any], limited: bool
    ) -> None:
        s = self.s = sympy()
        self.limited = limited
        functions = sum(n for op, n in graph.count().items() if op not in ARITHMETIC)
        symbols = sorted({x for values in inputs for e in values for x in e.free_symbols}, key=str)
        self.free = [s.Dummy(f"f{i}") for i in range(2 * functions + 24)]
        if limited and functions + len(symbols) > SYMBOLS:
            raise Unfit
        self.field = s.polys.fields.field([*self.free, *symbols], s.QQ)[0]
        self.generators = dict(zip(self.field.symbols, self.field.gens, strict=True))
        self.leading = {self.field.symbols.index(x) for x in leading}
        self._shown = list(self.field.symbols)
        self.places: dict[Any, FieldElement] = {}
        """The generator of each function that has been met."""
        self.powers: list[Polynomial] = []
        """Polynomials that are known to be zero, such as sin² + cos² − 1."""
        self.circles: list[tuple[int, int]] = []
        """The numbers of the generators sin x and cos x, for each x."""

    # ---- computing -----------------------------------------------------------------------------

    def apply(self, op: str, args: list[Any]) -> Any:
        """The fraction, or truth value, of an operation."""
        if op in ARITHMETIC and not (op == "sub" and is_truth(args[1])):
            return self._both(ARITHMETIC[op], *map(self._fraction, args))
        shown = [a if isinstance(a, float) or is_truth(a) else self.shown(a) for a in args]
        result = meanings()[op](*entered(shown))
        return result if is_truth(result) else self.enter(result)

    def shared(self, value: Any) -> Any:
        """The value itself: names are not needed."""
        return value

    def _both(self, function: Callable[..., Any], *args: Twins) -> Twins:
        """A function of fractions, applied to them and to their twins, with known powers
        substituted."""
        try:
            x = self._reduced(function(*(a.x for a in args)))
            if all(a.x is a.y for a in args):
                return Twins(x, x)
            return self._settled(x, self._reduced(function(*(a.y for a in args))))
        except ZeroDivisionError:
            raise Unfit from None

    def _settled(self, x: FieldElement, y: FieldElement) -> Twins:
        """A fraction and its twin without the terms that are remainders of rounding."""
        parts, twins = (x.numer, x.denom), _to_scale(x, y)
        left = [_left(p, twin) for p, twin in zip(parts, twins, strict=True)]
        if any(left):
            (above, below), (over, under) = (map(_without, ps, left) for ps in (parts, twins))
            x, y = self.field(above) / self.field(below), self.field(over) / self.field(under)
        return Twins(x, y)

    def _reduced(self, x: FieldElement) -> FieldElement:
        """A fraction with known powers substituted."""
        if self.limited and len(x.numer) * len(x.denom) > TERMS:
            raise Unfit
        numerator, denominator = x.numer.rem(self.powers), x.denom.rem(self.powers)
        if not denominator:
            raise Unfit
        if numerator == x.numer and denominator == x.denom:
            return x
        return self.field(numerator) / self.field(denominator)

    def _fraction(self, x: Any) -> Twins:
        """A fraction, number or truth value as a fraction."""
        if isinstance(x, float):
            return self.enter(tidy(x))
        return self.enter(meanings()["number"](x)) if is_truth(x) else x

    # ---- from expressions ----------------------------------------------------------------------

    def enter(self, e: Any) -> Twins:
        """An expression as a fraction."""
        if e.is_Float:
            both = float(e), float(e) * (1 + CHANGE * _between(float(e)))
            return Twins(*(self.field(self.s.QQ(*c.as_integer_ratio())) for c in both))
        if e.is_Rational:
            return self._twins(self.field(self.s.QQ(int(e.p), int(e.q))))
        if e.is_Symbol:
            return self._twins(self.generators[e])
        if e.is_Add or e.is_Mul:
            parts = [self.enter(a) for a in e.args]
            return reduce(partial(self._both, operator.add if e.is_Add else operator.mul), parts)
        if e.is_Pow and e.exp.is_Rational and e.exp.q <= ROOTS:
            root = e if e.exp.q == 1 else e.func(e.base, self.s.Rational(1, e.exp.q))
            base = self.enter(e.base) if e.exp.q == 1 else self._place(root)
            return self._both(partial(_power, int(e.exp.p)), base)
        return self._place(e)

    def _place(self, e: Any) -> Twins:
        """The generator of a function. When the function is first met, its known powers are noted
        in `powers`."""
        if e in self.places:
            return self._twins(self.places[e])
        if not self.free:
            raise Unfit
        s, symbol = self.s, self.free.pop()  # in the order of generators before its arguments
        place = self.places[e] = self.generators[symbol]
        self._shown[self._number(place)] = e
        if isinstance(e, (s.sin, s.cos)):
            angle = e.args[0]
            sine, cosine = (self.places.get(f(angle)) for f in (s.sin, s.cos))
            if sine is not None and cosine is not None:
                self.circles.append((self._number(sine), self._number(cosine)))
                self.powers.append((sine**2 + cosine**2 - 1).numer)
        elif isinstance(e, s.Abs):
            self._known(place**2, e.args[0] ** 2)
        elif e.is_Pow and e.exp.is_Rational and e.exp.p == 1 and e.exp.q <= ROOTS:
            self._known(place**e.exp.q, e.base)
        return self._twins(place)

    def _known(self, power: FieldElement, e: Any) -> None:
        """Note that a power is an expression, if that is a polynomial."""
        value = self.enter(e).x
        if value.denom.is_ground:
            self.powers.append((power - value).numer)

    def _twins(self, x: FieldElement) -> Twins:
        """A fraction without decimals."""
        return Twins(x, x)

    def _number(self, generator: FieldElement) -> int:
        """The number of a generator."""
        return self.field.gens.index(generator)

    # ---- to expressions ------------------------------------------------------------------------

    def shown(self, x: Any) -> Any:
        """A fraction, number or truth value as an expression, in the shortest of a few forms."""
        if isinstance(x, float):
            return tidy(x)
        if is_truth(x):
            return meanings()["number"](x)
        numerator, denominator = self._meant(x)
        if denominator.is_ground:
            return self._sum(numerator, denominator.LC)
        scale = self._scale(numerator, denominator)
        return self._sum(numerator, scale) / self._sum(denominator, scale)

    def _meant(self, a: Twins) -> list[Polynomial]:
        """Numerator and denominator, without remainders of rounding and in few terms."""
        parts, twins = (a.x.numer, a.x.denom), _to_scale(a.x, a.y)
        return [self._fewest(p, twin) for p, twin in zip(parts, twins, strict=True)]

    def _fewest(self, p: Polynomial, twin: Polynomial) -> Polynomial:
        """The polynomial with sin² of an angle replaced by 1 − cos², or the reverse, where that
        leaves fewer terms."""
        for pair in self.circles:
            for way in (pair, pair[::-1]):
                other, changed = self._without_square(p, *way), self._without_square(twin, *way)
                other = _without(other, _left(other, changed))
                if len(other) < len(p):
                    p, twin = other, changed
        return p

    def _without_square(self, p: Polynomial, kept: int, dropped: int) -> Polynomial:
        """The polynomial with squares of generator `dropped` replaced by 1 − `kept`²."""
        ring = p.ring
        square = 1 - ring.gens[kept] ** 2
        total = ring.zero
        for powers, coefficient in p.terms():
            half, odd = divmod(powers[dropped], 2)
            left = (*powers[:dropped], odd, *powers[dropped + 1 :])
            total += ring.term_new(left, coefficient) * square**half
        return total

    def _scale(self, numerator: Polynomial, denominator: Polynomial) -> Any:
        """The number by which to divide both: their common factor if that leaves short integers,
        else the largest coefficient of the denominator."""
        numbers = [abs(c) for p in (numerator, denominator) for c in p.coeffs()]
        common = gcd(*(int(c.numerator) for c in numbers))
        shared = self.s.QQ(common, 1)
        sign = 1 if denominator.LC > 0 else -1
        if all(c.denominator == 1 and _digits(int(c / shared)) <= DIGITS for c in numbers):
            return sign * shared
        return sign * max(abs(c) for c in denominator.coeffs())

    def _sum(self, p: Polynomial, divisor: Any) -> Any:
        """A polynomial divided by a number, as an expression."""
        terms = {powers: _fraction(c / divisor) for powers, c in p.terms()}
        return min(self._added(terms), self._grouped(terms), key=_length)

    def _added(self, terms: dict[Powers, Fraction]) -> Any:
        """The sum of the terms, in the shortest of a few forms."""
        s = self.s
        plain = s.Add(*(short(c) * self._product(powers) for powers, c in terms.items()))
        if not 1 < len(terms) <= SHORT:
            return plain
        contract = import_module("sympy.simplify.fu").TR10i
        turned = contract(plain)  # sin x cos y + cos x sin y = sin(x + y)
        return min(plain, turned, s.factor_terms(plain), s.factor_terms(turned), key=_length)

    def _grouped(self, terms: dict[Powers, Fraction]) -> Any:
        """The terms as a sum of products of two sums: one in the leading symbols, one in the
        others."""
        factors: dict[Powers, dict[Powers, Fraction]] = {}
        for powers, c in terms.items():
            first = tuple(n if i in self.leading else 0 for i, n in enumerate(powers))
            rest = tuple(0 if i in self.leading else n for i, n in enumerate(powers))
            factors.setdefault(first, {})[rest] = c
        groups: dict[object, list[tuple[Powers, dict[Powers, Fraction]]]] = {}
        for first, rest in factors.items():
            unit = rest[max(rest)]
            key = frozenset((powers, c / unit) for powers, c in rest.items())
            groups.setdefault(key, []).append((first, rest))
        return self.s.Add(*map(self._product_of_sums, groups.values()))

    def _product_of_sums(self, group: list[tuple[Powers, dict[Powers, Fraction]]]) -> Any:
        """Σ first · rest as a product, where all the `rest` are multiples of each other."""
        shown: list[Any] = []
        rest = group[0][1]
        for unit in (1, _content(rest.values()), -_content(rest.values())):
            scaled = {powers: c / unit for powers, c in rest.items()}
            top = max(scaled)
            first = self._added({powers: other[top] / scaled[top] for powers, other in group})
            if len(group) > 1 and not first.has(self.s.Float):
                first = self.s.factor(first)
            shown.append(first * self._added(scaled))
        return min(shown, key=_length)

    def _product(self, powers: Powers) -> Any:
        """The product of powers of generators, as an expression."""
        parts = ((self._shown[i], n) for i, n in enumerate(powers) if n)
        return self.s.Mul(*(e**n for e, n in parts))


def short(c: Fraction) -> Any:
    """A number as an expression: a fraction if that is short, else as `tidy` shows it."""
    whole = c.denominator < 10**6 and abs(c.numerator) < 10**9
    if whole or not 1e-300 < abs(c) < 1e300:
        return sympy().Rational(c.numerator, c.denominator)
    return tidy(float(c))


def _to_scale(x: FieldElement, y: FieldElement) -> tuple[Polynomial, Polynomial]:
    """Numerator and denominator of the twin y, scaled like those of x; those of x itself if the two
    cannot be compared."""
    below, other = x.denom, y.denom
    top = max(below, key=lambda powers: abs(below[powers]))
    if x is y or top not in other or below.LM != other.LM:
        return x.numer, below
    scale = below[top] / other[top]
    return y.numer.mul_ground(scale), other.mul_ground(scale)


def _left(p: Polynomial, twin: Polynomial) -> set[Powers]:
    """The terms of a polynomial that are remainders of rounding."""
    if p is twin:
        return set()
    return {m for m, c in p.items() if m in twin and abs(c) <= abs(c - twin[m])}


def _without(p: Polynomial, left: set[Powers]) -> Polynomial:
    """A polynomial without some of its terms."""
    return p.ring.from_dict({m: c for m, c in p.items() if m not in left}) if left else p


def _between(x: float) -> float:
    """A pseudo-random number with magnitude from ½ to 1; the same for x and −x."""
    random = Random(abs(x))
    return random.choice((-1, 1)) * random.uniform(0.5, 1.0)


def _digits(n: int) -> int:
    """The number of digits without zeros at the end."""
    return len(str(n).rstrip("0"))


def _length(e: object) -> int:
    """The length of an expression in print."""
    return len(str(e))


def _power(n: int, x: FieldElement) -> FieldElement:
    return x**n


def _content(numbers: Iterable[Fraction]) -> Fraction:
    """The number that, as a divisor, makes the numbers integers without a common factor."""
    numbers = list(numbers)
    return Fraction(gcd(*(c.numerator for c in numbers)), lcm(*(c.denominator for c in numbers)))


def _fraction(x: Any) -> Fraction:
    return Fraction(int(x.numerator), int(x.denominator))
