"""The three notations of expressions: the papers' (Unicode), Python's (ASCII), and LaTeX.

`writing.parser` reads each of them back to the same expression.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal


@dataclass(frozen=True)
class Notation:
    """The marks between factors, around sums and after operators."""

    symbol: Literal["name", "unicode", "latex"]
    """The field of `Symbol` with the names of symbols."""
    times: str
    """Between factors."""
    scaled: str
    """Between a number and a term."""
    minus: str
    zero: str
    adjoint: str
    inverse: str
    inverse_adjoint: str
    brackets: tuple[str, str]

    def at_frames(self, name: str, frames: tuple[str, ...]) -> str:
        """The text of a symbol at frames."""
        return name + (f"({', '.join(map(repr, frames))})" if frames else "")

    def of_spaces(self, name: str, spaces: str) -> str:
        """The text of the identity or zero of named spaces."""
        return f"{name}[{spaces}]"

    def raised(self, base: str, power: str) -> str:
        """The text of an operator with a star or an exponent."""
        return base + power

    def bracketed(self, text: str) -> str:
        """A text in brackets."""
        return text.join(self.brackets)

    def logdet(self, whole: str, factor: str) -> str:
        """The text of a log-determinant; the operator is given by itself and as a factor."""
        return f"log det({whole})"

    def number(self, c: Fraction) -> str:
        """The text of a positive number before a term; empty for one."""
        if c == 1:
            return ""
        whole = c.denominator == 1
        decimal = not whole and c < 2**53 and Fraction(repr(float(c))) == c
        written = str(c) if whole else repr(float(c)) if decimal else f"({c})"
        return f"{written}{self.scaled}"

    def sum(self, terms: Iterable[tuple[Fraction, str]]) -> str:
        """The text of a sum of terms with their numbers."""
        out = ""
        for c, term in terms:
            sign = self.minus if c < 0 else "+" if out else ""
            out += (f" {sign} " if out else sign) + self.number(abs(c)) + term
        return out


class _Ascii(Notation):
    def logdet(self, whole: str, factor: str) -> str:
        """The attribute logdet."""
        return f"{factor}.logdet"


class _Latex(Notation):
    def at_frames(self, name: str, frames: tuple[str, ...]) -> str:
        """The symbol with its frames as an index."""
        return f"{name}_{{{','.join(map(_roman, frames))}}}" if frames else name

    def of_spaces(self, name: str, spaces: str) -> str:
        """The name with the spaces as an index."""
        return f"{name}_{{{_roman(spaces)}}}"

    def raised(self, base: str, power: str) -> str:
        """The base with an exponent; a base that has one is put in braces, as LaTeX demands."""
        grouped = ("^" in base or "'" in base) and base[-1] != ")"
        return f"{{{base}}}{power}" if grouped else base + power

    def logdet(self, whole: str, factor: str) -> str:
        """The function log det."""
        return f"\\log\\det\\left({whole}\\right)"


ESCAPES = {c: f"\\{c}" for c in " _{}%#$&"} | {
    "\\": "\\backslash ", "^": "\\wedge ", "~": "\\sim ",
}  # fmt: skip
"""Characters that are special in LaTeX, and what is written for them."""


def _roman(text: str) -> str:
    return "\\mathrm{" + text.translate(str.maketrans(ESCAPES)) + "}"


UNICODE = Notation("unicode", "", "", "−", "0", "*", "⁻¹", "⁻*", ("(", ")"))
ASCII = _Ascii("name", " @ ", " * ", "-", "zero", ".T", ".inv", ".inv.T", ("(", ")"))
LATEX = _Latex(
    "latex", " ", " ", "-", "0", "^{*}", "^{-1}", "^{-*}", ("\\left(", "\\right)")
)  # fmt: skip
