"""Expressions in writing: as the papers print them, as Python writes them, as LaTeX sets them.

Every form is read back by `parse` to the same expression.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from phipsi.operators.expressions import (
    ANY,
    Adjoint,
    Expression,
    Identity,
    Inverse,
    Leaf,
    LogDet,
    Sum,
    Unit,
)


@dataclass(frozen=True)
class Writing:
    """A way to write expressions: what stands between factors, around sums, after operators."""

    times: str
    scaled: str
    minus: str
    adjoint: str
    inverse: str
    inverse_adjoint: str
    logdet: str
    brackets: tuple[str, str]

    @lru_cache(maxsize=1024)  # noqa: B019 (sums order their terms by text: else exponential)
    def text(self, x: Expression) -> str:
        """The expression in this writing."""
        if not isinstance(x, Sum):
            return self.times.join(self.factor(part) for part in x.factors)
        out = ""
        for c, term in x.terms:
            sign = self.minus if c < 0 else "+" if out else ""
            out += f" {sign} " if out else sign
            out += self.number(abs(c)) + self._term(term, alone=len(x.terms) == 1)
        return out

    def number(self, c: Fraction) -> str:
        """A factor in front of a term; nothing if it is one."""
        if c == 1:
            return ""
        whole = c.denominator == 1
        decimal = not whole and c < 2**53 and Fraction(repr(float(c))) == c
        written = str(c) if whole else repr(float(c)) if decimal else f"({c})"
        return f"{written}{self.scaled}"

    def factor(self, x: Expression) -> str:
        """A part of a product."""
        if isinstance(x, Leaf):
            return self.leaf(x)
        if isinstance(x, Adjoint):
            return self._raised(self.leaf(x.leaf), self.adjoint)
        if isinstance(x, Inverse):
            if isinstance(x.inner, Adjoint):
                return self._raised(self.leaf(x.inner.leaf), self.inverse_adjoint)
            if _starred(x.inner):
                return self._bracketed(x.inner.T) + self.inverse_adjoint
            return self._raised(self.factor(x.inner), self.inverse)
        if isinstance(x, LogDet):
            return self.logdet.format((self.factor if self is ASCII else self.text)(x.inner))
        if isinstance(x, Unit):
            return self._unit(x)
        if _starred(x):
            return self._bracketed(x.T) + self.adjoint
        return self._bracketed(x)

    def leaf(self, x: Leaf) -> str:
        """A symbol, with its frames."""
        frames = f"({', '.join(map(repr, x.frames))})" if x.frames else ""
        return (x.symbol.name if self is ASCII else x.symbol.unicode) + frames

    def _term(self, x: Expression, alone: bool) -> str:
        return "I" if isinstance(x, Identity) and not alone else self.text(x)

    def _unit(self, x: Expression) -> str:
        name = "I" if isinstance(x, Identity) else "zero" if self is ASCII else "0"
        if ANY in (x.domain, x.codomain):
            return name
        same = isinstance(x, Identity)
        return f"{name}[{x.domain if same else f'{x.codomain}, {x.domain}'}]"

    def _raised(self, base: str, power: str) -> str:
        return base + power

    def _bracketed(self, x: Expression) -> str:
        return self.text(x).join(self.brackets)


class _Latex(Writing):
    def leaf(self, x: Leaf) -> str:
        """A symbol, with its frames below it."""
        if not x.frames:
            return x.symbol.latex
        return f"{x.symbol.latex}_{{{','.join(map(_roman, x.frames))}}}"

    def _unit(self, x: Expression) -> str:
        head, _, space = super()._unit(x).partition("[")
        return f"{head}_{{{_roman(space[:-1])}}}" if space else head

    def _raised(self, base: str, power: str) -> str:
        raised = ("^" in base or "'" in base) and base[-1] != ")"
        return f"{{{base}}}{power}" if raised else base + power


ESCAPES = {c: f"\\{c}" for c in " _{}%#$&"} | {
    "\\": "\\backslash ", "^": "\\wedge ", "~": "\\sim ",
}  # fmt: skip
"""What LaTeX has for the characters that it keeps for itself."""


def _roman(text: str) -> str:
    return "\\mathrm{" + text.translate(str.maketrans(ESCAPES)) + "}"


def _starred(x: Expression) -> bool:
    """Has its adjoint fewer stars?"""
    return x.stars > x.T.stars


UNICODE = Writing("", "", "−", "*", "⁻¹", "⁻*", "log det({})", ("(", ")"))
ASCII = Writing(" @ ", " * ", "-", ".T", ".inv", ".inv.T", "{}.logdet", ("(", ")"))
LATEX = _Latex(
    " ", " ", "-", "^{*}", "^{-1}", "^{-*}", "\\log\\det\\left({}\\right)",
    ("\\left(", "\\right)"),
)  # fmt: skip
