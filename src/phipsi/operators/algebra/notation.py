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
    """What stands between factors, around sums and after operators."""

    symbol: Literal["name", "unicode", "latex"]
    """The column of the table of symbols that has the names."""
    times: str
    scaled: str
    minus: str
    zero: str
    adjoint: str
    inverse: str
    inverse_adjoint: str
    brackets: tuple[str, str]

    def at_frames(self, name: str, frames: tuple[str, ...]) -> str:
        """A symbol at frames."""
        return name + (f"({', '.join(map(repr, frames))})" if frames else "")

    def of_spaces(self, name: str, spaces: str) -> str:
        """The identity or zero of named spaces."""
        return f"{name}[{spaces}]"

    def raised(self, base: str, power: str) -> str:
        """An operator with a star or an exponent."""
        return base + power

    def bracketed(self, text: str) -> str:
        """An expression in brackets."""
        return text.join(self.brackets)

    def logdet(self, whole: str, factor: str) -> str:
        """The log-determinant of an operator, written by itself and as a factor."""
        return f"log det({whole})"

    def number(self, c: Fraction) -> str:
        """A positive number in front of a term; nothing if it is one."""
        if c == 1:
            return ""
        whole = c.denominator == 1
        decimal = not whole and c < 2**53 and Fraction(repr(float(c))) == c
        written = str(c) if whole else repr(float(c)) if decimal else f"({c})"
        return f"{written}{self.scaled}"

    def sum(self, terms: Iterable[tuple[Fraction, str]]) -> str:
        """Terms with their numbers, added."""
        out = ""
        for c, term in terms:
            sign = self.minus if c < 0 else "+" if out else ""
            out += (f" {sign} " if out else sign) + self.number(abs(c)) + term
        return out


class _Ascii(Notation):
    def logdet(self, whole: str, factor: str) -> str:
        """As an attribute."""
        return f"{factor}.logdet"


class _Latex(Notation):
    def at_frames(self, name: str, frames: tuple[str, ...]) -> str:
        """A symbol, its frames as an index."""
        return f"{name}_{{{','.join(map(_roman, frames))}}}" if frames else name

    def of_spaces(self, name: str, spaces: str) -> str:
        """The spaces as an index."""
        return f"{name}_{{{_roman(spaces)}}}"

    def raised(self, base: str, power: str) -> str:
        """LaTeX refuses two exponents: a base that has one is grouped."""
        grouped = ("^" in base or "'" in base) and base[-1] != ")"
        return f"{{{base}}}{power}" if grouped else base + power

    def logdet(self, whole: str, factor: str) -> str:
        """As a function."""
        return f"\\log\\det\\left({whole}\\right)"


ESCAPES = {c: f"\\{c}" for c in " _{}%#$&"} | {
    "\\": "\\backslash ", "^": "\\wedge ", "~": "\\sim ",
}  # fmt: skip
"""What LaTeX writes for its special characters."""


def _roman(text: str) -> str:
    return "\\mathrm{" + text.translate(str.maketrans(ESCAPES)) + "}"


UNICODE = Notation("unicode", "", "", "−", "0", "*", "⁻¹", "⁻*", ("(", ")"))
ASCII = _Ascii("name", " @ ", " * ", "-", "zero", ".T", ".inv", ".inv.T", ("(", ")"))
LATEX = _Latex(
    "latex", " ", " ", "-", "0", "^{*}", "^{-1}", "^{-*}", ("\\left(", "\\right)")
)  # fmt: skip
