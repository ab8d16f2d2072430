r"""Formulas as trees, written in Unicode with blanks between factors, and in LaTeX.

The classes are a closed set: `Name`, `Operator` (an expression of the algebra), `Product`, `Sum`,
`Sigma` (a sum over bodies), `Applied` (a function of a formula), `Power` (adjoint and inverse),
`Equality`. Formulas are built by `@`, `+`, `−`, `.T`, `.inv`; `z[c]` is z of body c. A formula
holds for one body: it has no domain and codomain, and nothing in it is simplified.

>>> z, phi, c = Name("z", "z"), Name("φ", r"\phi"), "c"
>>> x = Equality(z, Name("u", "u") + Sigma(c, phi[c] @ z.plussed[c]))
>>> print(x, "   ", x.latex)
z = u + Σ_c φ_c z⁺_c     z = u + \sum_{c} \phi_{c} z_{c}^{+}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from phipsi.operators.algebra.expression import (
    Adjoint,
    Expression,
    IdentityOperator,
    Inverse,
    Leaf,
    LogDet,
    Unit,
    written,
)
from phipsi.operators.algebra.notation import LATEX, UNICODE, Notation
from phipsi.operators.algebra.symbol import Symbol

Terms = tuple[tuple[Fraction, "Formula"], ...]
"""A sum as pairs (number, term)."""


class Formula:
    """A formula: `str` writes it in Unicode, `latex` in LaTeX."""

    def __matmul__(self, other: Formula) -> Formula:
        return Product((*_factors(self), *_factors(other)))

    def __add__(self, other: Formula) -> Formula:
        return Sum((*_terms(self), *_terms(other)))

    def __sub__(self, other: Formula) -> Formula:
        return Sum((*_terms(self), (Fraction(-1), other)))

    def __neg__(self) -> Formula:
        return Sum(((Fraction(-1), self),))

    @property
    def T(self) -> Formula:
        """The adjoint."""
        return Power(self, adjoint=True)

    @property
    def inv(self) -> Formula:
        """The inverse."""
        return Power(self, inverse=True)

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The formulas that it is directly made of, in the order in which they are written."""
        return ()

    @property
    def names(self) -> Iterator[Name]:
        """The names in it, in the order in which they are written, without indices."""
        for part in self.parts:
            yield from part.names

    @property
    def latex(self) -> str:
        """The text in LaTeX."""
        return _LATEX.text(self)

    def __str__(self) -> str:
        return _UNICODE.text(self)


@dataclass(frozen=True)
class Name(Formula):
    """A name (or a numeral), with an optional number, plus sign and body."""

    letter: str
    tex: str
    """The letter in LaTeX."""
    number: int = 0
    """A number that tells names with the same letter apart, from 1; 0 for none."""
    plus: bool = False
    index: str = ""
    """The body that the name belongs to: c, p, …"""

    @classmethod
    def of(cls, row: Symbol[Expression, Any]) -> Name:
        """The name of a symbol, without frames."""
        plus = row.unicode.endswith("⁺")
        return cls(row.unicode.removesuffix("⁺"), row.latex.removesuffix("^{+}"), plus=plus)

    def __getitem__(self, index: str) -> Name:
        return replace(self, index=index)

    def __call__(self, argument: Formula) -> Formula:
        """The function with this name, applied."""
        return Applied(self, argument)

    @property
    def plussed(self) -> Name:
        """The name with a plus sign."""
        return replace(self, plus=True)

    @property
    def names(self) -> Iterator[Name]:
        """The name."""
        yield self[""]


@dataclass(frozen=True)
class Operator(Formula):
    """An expression of the algebra."""

    expression: Expression

    @property
    def names(self) -> Iterator[Name]:
        """The names of its symbols."""
        return _symbols(self.expression)


IDENTITY = Name("I", "I")


def _symbols(x: Expression) -> Iterator[Name]:
    """The names of the symbols in an expression, in the order in which a notation writes them."""
    for part in (part for _, term in x.terms for part in term.factors):
        if isinstance(part, Leaf):
            yield Name.of(part.symbol)
        elif isinstance(part, IdentityOperator):
            yield IDENTITY
        elif isinstance(part, LogDet):
            yield from _symbols(part.inner)
        elif not isinstance(part, Unit):
            inner = part.parts[0] if isinstance(part, Adjoint | Inverse) else part
            yield from _symbols(inner.T if inner.has_more_stars else inner)


@dataclass(frozen=True)
class Product(Formula):
    """Factors side by side."""

    factors: tuple[Formula, ...]

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The factors."""
        return self.factors


@dataclass(frozen=True)
class Sum(Formula):
    """(number, term) pairs."""

    terms: Terms

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The terms without their numbers."""
        return tuple(x for _, x in self.terms)


@dataclass(frozen=True)
class Sigma(Formula):
    """A sum over bodies: the children of a body (index c), or all (index k)."""

    index: str
    term: Formula

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The term."""
        return (self.term,)


@dataclass(frozen=True)
class Applied(Formula):
    """A function applied to a formula: ad(V)."""

    function: Name
    argument: Formula

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The function and its argument."""
        return self.function, self.argument


@dataclass(frozen=True)
class Power(Formula):
    """The adjoint, the inverse, or both."""

    base: Formula
    inverse: bool = False
    adjoint: bool = False

    @property
    def T(self) -> Formula:
        """The adjoint."""
        return replace(self, adjoint=not self.adjoint)

    @property
    def inv(self) -> Formula:
        """The inverse."""
        return replace(self, inverse=not self.inverse)

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The base."""
        return (self.base,)


@dataclass(frozen=True)
class Equality(Formula):
    """left = right."""

    left: Formula
    right: Formula

    @property
    def parts(self) -> tuple[Formula, ...]:
        """Its two sides."""
        return self.left, self.right


def _factors(x: Formula) -> tuple[Formula, ...]:
    return x.factors if isinstance(x, Product) else (x,)


def _terms(x: Formula) -> Terms:
    return x.terms if isinstance(x, Sum) else ((Fraction(1), x),)


def renamed(x: Formula, new: Callable[[Name], Name]) -> Formula:
    """A formula with other names; functions and operators keep theirs."""
    match x:
        case Name():
            return new(x)
        case Product(factors):
            return Product(tuple(renamed(y, new) for y in factors))
        case Sum(terms):
            return Sum(tuple((c, renamed(y, new)) for c, y in terms))
        case Sigma(index, term):
            return Sigma(index, renamed(term, new))
        case Applied(function, argument):
            return Applied(function, renamed(argument, new))
        case Power(base):
            return replace(x, base=renamed(base, new))
        case Equality(left, right):
            return Equality(renamed(left, new), renamed(right, new))
        case _:
            return x


def walk(x: Formula) -> Iterator[Formula]:
    """A formula and all parts of it, directly or indirectly."""
    yield x
    for part in x.parts:
        yield from walk(part)


# ---- printers ------------------------------------------------------------------------------------

DIGITS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True)
class _Printer:
    """Writes formulas in Unicode."""

    notation: Notation
    """How operators, signs and powers are written."""

    def text(self, x: Formula) -> str:
        """The text of a formula."""
        match x:
            case Name():
                return self.name(x)
            case Operator(expression):
                return written(expression, self.notation)
            case Product(factors):
                return " ".join(map(self.factor, factors))
            case Sum(terms):
                return self.sum(terms)
            case Sigma(index, term):
                return f"{self.sigma(index)} {self.factor(term)}"
            case Applied(function, argument):
                return f"{self.name(function)}({self.text(argument)})"
            case Power(base, inverse, adjoint):
                return self.power(base, inverse, adjoint)
            case Equality(left, right):
                return f"{self.text(left)} = {self.text(right)}"
            case _:
                raise AssertionError(x)

    def factor(self, x: Formula) -> str:
        """The text of a factor of a product."""
        if isinstance(x, Operator):
            return x.expression.as_factor(self.notation)
        return self.text(x).join(self.notation.brackets) if isinstance(x, Sum) else self.text(x)

    def sum(self, terms: Terms) -> str:
        """The text of terms with their signs and numbers."""
        out = ""
        for c, x in terms:
            sign = self.notation.minus if c < 0 else "+" if out else ""
            number = self.notation.number(abs(c)).strip()
            out += (f" {sign} " if out else sign) + (f"{number} " if number else "")
            out += self.factor(x)
        return out

    def power(self, base: Formula, inverse: bool, adjoint: bool) -> str:
        """The text of a power; a base with parts is put in brackets."""
        how = self.notation
        marks = ("", how.adjoint), (how.inverse, how.inverse_adjoint)
        own = self.text(base)
        if not isinstance(base, Name | Applied):
            own = own.join(how.brackets)
        return self.raised(own, marks[inverse][adjoint])

    def raised(self, base: str, mark: str) -> str:
        """A base with a mark above it."""
        return base + mark

    def name(self, x: Name) -> str:
        """A name."""
        number = str(x.number).translate(DIGITS) if x.number else ""
        return f"{x.letter}{number}{'⁺' * x.plus}{'_' * bool(x.index)}{x.index}"

    def sigma(self, index: str) -> str:
        """The sign of a sum over bodies."""
        return f"Σ_{index}"


class _Latex(_Printer):
    """Writes formulas in LaTeX; a base that has an index or exponent is put in braces before it
    gets another one."""

    def raised(self, base: str, mark: str) -> str:
        """A base with a mark above it."""
        return f"{{{base}}}{mark}" if "^" in base and base[-1] != ")" else base + mark

    def name(self, x: Name) -> str:
        """A name."""
        out = x.tex
        below = ",".join(filter(None, (str(x.number or ""), x.index)))
        if below:
            out = f"{{{out}}}_{{{below}}}" if "_" in out else f"{out}_{{{below}}}"
        return self.raised(out, "^{+}") if x.plus else out

    def sigma(self, index: str) -> str:
        """The sign of a sum over bodies."""
        return rf"\sum_{{{index}}}"


_UNICODE, _LATEX = _Printer(UNICODE), _Latex(LATEX)
