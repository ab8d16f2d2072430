"""The parser of expressions: the three notations of `algebra.notation`, which may be mixed.

    sum     = product {(+ | −) product}
    product = {−} factor {[@ | * | /] {−} factor}     numbers first, with * or / between them
    factor  = atom {.T | .inv | .logdet | * | ⁻¹ | ⁻* | ^{*} | …} [** number]
    atom    = number | symbol [frames] | unit [spaces] | log det (sum) | (sum) | {sum} | [sum]

A number n alone is n times the identity.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from fractions import Fraction
from itertools import pairwise
from math import isinf
from operator import attrgetter, mul, neg
from typing import NoReturn, ParamSpec, TypeVar
from unicodedata import combining, normalize

from phipsi.arguments import a_class
from phipsi.operators.algebra import expression as exp
from phipsi.operators.algebra.expression import (
    ANY,
    IDENTITY,
    ZERO,
    Expression,
    IdentityOperator,
    Leaf,
    ZeroOperator,
)
from phipsi.operators.algebra.notation import ASCII, ESCAPES, LATEX, UNICODE
from phipsi.operators.algebra.spaces import SPACES, Space, SpaceError, frame_forces
from phipsi.operators.algebra.symbols import SYMBOLS

P = ParamSpec("P")
R = TypeVar("R")

LONGEST = 10_000
"""The most characters of a text."""
DEEPEST = 30
"""The most brackets that are open at once, and the most marks such as .T after one operator."""
LONGEST_NUMBER = 1000
"""The most digits of a number."""
LARGEST = 100
"""The most parts of a power when it is multiplied out."""


class ParseError(ValueError):
    """A text that is no expression; the message says what is wrong, where, and what to write."""


def parse(text: str) -> Expression:
    """The expression that a text describes.

    Parameters
    ----------
    text
        The expression in ASCII as in Python, in Unicode as in the papers, or in LaTeX; the
        notations may be mixed.

    Returns
    -------
    Expression
        The expression, not simplified.

    Raises
    ------
    ParseError
        If the text is no expression; the message shows the column.
    SpaceError
        If operators do not fit together.

    Examples
    --------
    >>> from phipsi.operators import parse
    >>> parse("(I - H @ psi @ K).T @ D.inv") is parse("(I − HψK)*D⁻¹")
    True
    """
    if not isinstance(text, str):
        raise TypeError(f"parse needs a text, got {a_class(text)}")
    if len(text) > LONGEST:
        raise ParseError(f"the text has {len(text)} characters; {LONGEST} are read at most")
    try:
        reader = _Reader(text)
        whole = reader.sum()
    except RecursionError:
        raise ParseError("the expression is nested too deep for this stack") from None
    if reader.kind != "end":
        reader.fail(f"{reader.token} has no place here: the expression before it is complete")
    return whole


# ---- tokens --------------------------------------------------------------------------------------

_ESCAPE = r"""\\(?:[\\'"nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_STRING = rf"""(?:'(?:[^'\\\0-\x1f]|{_ESCAPE})*'|"(?:[^"\\\0-\x1f]|{_ESCAPE})*")"""
_ROMAN = r"\\(?:mathrm|text)\{(?:[^{}\\]|\\[\s\S])*\}"
_FRAMES = re.compile(
    rf"\s*\(\s*{_STRING}(?:\s*,\s*{_STRING})*\s*\)|_\{{{_ROMAN}(?:\s*,\s*{_ROMAN})*\}}"
)
_SPACES = re.compile(rf"""\[(?:[^]'"]|{_STRING})*\]|_\{{{_ROMAN}\}}""")
_SPACE = rf"\s*([a-z ]+?)((?: at {_STRING}(?: and {_STRING})*)?)\s*"
_ONE_OR_TWO = re.compile(f"{_SPACE}(?:,{_SPACE})?")
_PLAIN = {written: c for c, written in ESCAPES.items()}

_NAMES = {"I": "I", "zero": "zero"} | {
    normalize(form, written): name
    for name, row in SYMBOLS.items()
    for written in (name, row.unicode, row.latex)
    for form in ("NFC", "NFD")
}
_WORDS = {"zero"} | {name for name, row in SYMBOLS.items() if name != row.unicode}
_POSTFIX = {".logdet": "logdet", "^*": "T"}
for _way in (ASCII, UNICODE, LATEX):
    _POSTFIX |= {_way.adjoint: "T", _way.inverse: "inv", _way.inverse_adjoint: "inv.T"}


def _longest_of(names: Iterable[str]) -> str:
    return "|".join(map(_pattern, sorted(names, key=len, reverse=True)))


def _pattern(name: str) -> str:
    """The pattern of a name: ASCII names are whole words, others may be adjacent, as in HψK."""
    if name in _WORDS:
        return rf"(?<![A-Za-z_]){name}(?![A-Za-z_0-9])"
    command = re.search(r"(\\|^\.)[A-Za-z]+$", name)
    return re.escape(name) + ("(?![A-Za-z])" if command else "")


_TOKEN = re.compile(
    r"(?P<number>[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)"
    rf"|(?P<name>{_longest_of(_NAMES)})"
    r"|(?P<logdet>log\s*det|\\log\s*\\det)"
    rf"|(?P<postfix>{_longest_of({*_POSTFIX} - {'*'})})"
    r"|(?P<mark>\*\*|[-−+@*/{}]|(?:\\left\s*)?[(\[]|(?:\\right\s*)?[)\]])"
)
_BLANK = re.compile(r"(?:\s|\\[,;:! ])*")
_WORD = re.compile(r"(?:[\\.]?[A-Za-z_][A-Za-z_0-9]*|[\s\S])[\u0300-\u036f]*")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def _frames(text: str) -> list[str]:
    """The names of frames in brackets, or in an index of LaTeX."""
    if not text.startswith("_"):
        return [literal_eval(found) for found in re.findall(_STRING, text)]
    escapes = "|".join(map(re.escape, _PLAIN))
    names = (found.partition("{")[2][:-1] for found in re.findall(_ROMAN, text))
    return [re.sub(escapes, lambda found: _PLAIN[found[0]], name) for name in names]


# ---- grammar -------------------------------------------------------------------------------------

_Items = list[tuple[int, Expression]]


def _total(terms: Iterable[Expression]) -> Expression:
    return exp.add((Fraction(1), term) for term in terms)


def _number(x: Expression) -> Fraction | None:
    """The number n of an expression that is n times the identity of any space, else None."""
    if x.codomain != ANY:
        return None
    return Fraction(0) if isinstance(x, ZeroOperator) else x.terms[0][0]


class _Reader:
    """A recursive-descent parser: a text and the current token, with its kind and position."""

    def __init__(self, text: str) -> None:
        self.text, self.end, self.depth = text, 0, 0
        self.advance()

    def advance(self) -> None:
        blank = _BLANK.match(self.text, self.end)
        self.at = blank.end() if blank else self.end
        self.apart = self.at > self.end
        found = _TOKEN.match(self.text, self.at)
        if found:
            self.kind, self.token, self.end = str(found.lastgroup), found[0], found.end()
            if self.kind == "mark":
                self.token = {"−": "-", "**": "**"}.get(self.token, self.token[-1])
        elif self.at == len(self.text):
            self.kind, self.token = "end", ""
        else:
            self.fail_at_unknown()

    def sum(self) -> Expression:
        items: _Items = [(self.at, self.product())]
        while (sign := self.token) in ("+", "-"):
            self.advance()
            at, term = self.at, self.product()
            items.append((at, term if sign == "+" else self.made(at, neg, term)))
        return self.joined(_total, items)

    def product(self) -> Expression:
        start, number, items, mark = self.at, Fraction(1), _Items(), "*"
        while mark:
            number *= self.sign()
            at, digits, factor = self.at, self.kind == "number", self.factor()
            value = _number(factor)
            if digits and (items or mark == "beside"):
                self.fail("write the number first, with * or / after it: 2 * H", at)
            if mark == "/" and not value:
                self.fail("only numbers divide, and not zero: write x.inv or x⁻¹", at)
            if value is None:
                items.append((at, factor))
            else:
                number *= 1 / value if mark == "/" else value
            mark = self.mark(items)
        whole = self.joined(exp.product, items) if items else IDENTITY
        return whole if number == 1 else self.made(start, mul, whole, number)

    def sign(self) -> int:
        sign = 1
        while self.token == "-":
            sign = -sign
            self.advance()
        return sign

    def mark(self, items: _Items) -> str:
        """The mark before the next factor: @, *, /, or "beside" without a mark; "" at the end."""
        mark = self.token
        if mark in ("*", "/") and items:
            self.fail("write the number first, and @ between operators: 0.5 * H @ K")
        if mark in ("@", "*", "/"):
            self.advance()
            return mark
        comes = self.kind in ("number", "name", "logdet") or mark in _CLOSING
        return "beside" if comes else ""

    def factor(self) -> Expression:
        value, marks = self.atom(), 0
        while self.kind == "postfix" or (self.token == "*" and _number(value) is None):
            if self.token == "*" and self.apart:
                self.fail("write the number first, 2 * H, @ between operators, or H* if adjoint")
            marks += 1
            self.check(marks)
            value = self.made(self.at, attrgetter(_POSTFIX[self.token]), value)
            self.advance()
        return self.power(value) if self.token == "**" else value

    def power(self, base: Expression) -> Expression:
        at = self.at
        self.advance()
        sign, power = self.sign(), _number(self.atom())
        if power is None:
            self.fail("the power after ** is a number: phi ** 2, D ** 0.5, D ** -0.5", at)
        if abs(power) > 1 and abs(power) * sum(1 for _ in exp.walk(base)) > LARGEST:
            self.fail(f"multiplied out, the power has more than {LARGEST} parts", at)
        power = int(power) if power.denominator == 1 else power
        return self.made(at, pow, base, sign * power)

    def atom(self) -> Expression:
        at, kind, token = self.at, self.kind, self.token
        if token in _CLOSING:
            return self.bracket(_CLOSING[token])
        zero = token == "0" and _SPACES.match(self.text, self.end)
        if kind == "name" or zero:
            name = "zero" if zero else _NAMES[token]
            value = self.leaf(name) if name in SYMBOLS else self.unit(name)
        elif kind == "number":
            whole = token.isdigit()
            if len(token) > LONGEST_NUMBER or (not whole and isinf(float(token))):
                self.fail(f"the number is too large, or has more than {LONGEST_NUMBER} digits")
            number = Fraction(token if whole else repr(float(token)))
            value = self.made(at, mul, IDENTITY, number)
        elif kind == "logdet":
            self.advance()
            if self.token not in _CLOSING:
                self.fail("log det needs brackets: log det(𝓜)")
            return self.made(at, exp.LogDet.of, self.atom())
        else:
            self.fail(f"an operator, as H or psi, should stand here, not {token or 'the end'}")
        self.advance()
        return value

    def bracket(self, closing: str) -> Expression:
        at = self.at
        self.depth += 1
        self.check(self.depth)
        self.advance()
        value = self.sum()
        if self.token != closing:
            self.fail(f"{closing} should stand here, for the bracket opened in column {at + 1}")
        self.depth -= 1
        self.advance()
        return value

    def leaf(self, name: str) -> Expression:
        row, found = SYMBOLS[name], _FRAMES.match(self.text, self.end)
        if not found and row.framed:
            self.fail(f"{self.token} needs frames, in quotes: {self.token}('tool')")
        if not found:
            return Leaf.of(row)
        frames = self.made(self.end, _frames, found[0])
        if not all(map(str.isprintable, frames)):
            self.fail("the name of a frame has characters that cannot be printed")
        if not row.framed or len(set(frames)) < len(frames):
            what = "names a frame twice" if row.framed else "has no frames"
            self.fail(f"{self.token} {what}: write {self.token}{f'({frames[0]!r})' * row.framed}")
        self.end = found.end()
        return Leaf.of(row, tuple(frames))

    def unit(self, name: str) -> Expression:
        found = _SPACES.match(self.text, self.end)
        if not found:
            return IDENTITY if name == "I" else ZERO
        written = found[0][1:-1] if found[0][0] == "[" else _frames(found[0])[0]
        parts = _ONE_OR_TWO.fullmatch(written)
        if not parts or (name == "I") != (parts[3] is None):
            self.fail("I has one space, zero two: I[joint rates], zero[joint forces, joint rates]")
        self.end = found.end()
        space = self.space(parts[1], parts[2])
        return (
            ZeroOperator.of(space, self.space(parts[3], parts[4]))
            if parts[3]
            else IdentityOperator.of(space)
        )

    def space(self, name: str, at: str) -> Space:
        forces = frame_forces(*self.made(self.at, _frames, at))
        spaces = {"forces": forces, "motions": forces.dual} if at else SPACES
        if name not in spaces:
            near = (*get_close_matches(name[:30], spaces), *spaces)[0]
            self.fail(f"no space is called {name!r}{at}: write {near}{at}")
        return spaces[name]

    # ---- errors ----------------------------------------------------------------------------------

    def made(self, at: int, how: Callable[P, R], *of: P.args, **options: P.kwargs) -> R:
        """The result of a function; the messages of its errors get the column."""
        try:
            return how(*of, **options)
        except SpaceError as error:
            raise SpaceError(f"{error}{self.where(at)}") from None
        except (TypeError, ValueError, ArithmeticError, SyntaxError) as error:
            self.fail(str(error), at)

    def joined(self, how: Callable[[Iterable[Expression]], Expression], of: _Items) -> Expression:
        """The sum or product; the message of its error gets the column of the first part that does
        not fit."""
        try:
            return how(x for _, x in of)
        except (SpaceError, ValueError):
            for (_, left), (at, right) in pairwise(item for item in of if item[1].codomain != ANY):
                self.made(at, how, [left, right])
            return self.made(of[0][0], how, [x for _, x in of])

    def check(self, depth: int) -> None:
        if depth > DEEPEST:
            self.fail(f"more than {DEEPEST} brackets are open, or marks follow one operator")

    def where(self, at: int) -> str:
        start = max(0, at - 50)
        shown = "".join(c if c.isprintable() else " " for c in self.text[start : at + 30])
        before = sum(not combining(c) for c in self.text[start:at])
        return f" (column {at + 1})\n  {shown}\n  {' ' * before}^"

    def fail(self, what: str, at: int | None = None) -> NoReturn:
        raise ParseError(what + self.where(self.at if at is None else at))

    def fail_at_unknown(self) -> NoReturn:
        word = next(found for found in _WORD.finditer(self.text) if found.end() > self.at)
        name = normalize("NFKC", word[0][:30])
        known = [*_NAMES, *_POSTFIX] if name[-1].isalnum() else []
        near = get_close_matches(name, known) or get_close_matches(name.lower(), known)
        right = (
            f"did you mean {near[0]}?" if near else "write @ between names, quotes around frames"
        )
        self.fail(f"no symbol is called {word[0][:30]!r}: {right}", word.start())
