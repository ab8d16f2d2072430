"""Documents: plain text, Markdown and LaTeX from the same blocks.

A block consists of sentences, and a sentence of texts and formulas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from unicodedata import combining, name, normalize

from phipsi.operators.algebra.formula import Formula

Sentence = tuple[str | Formula, ...]


@dataclass(frozen=True)
class Title:
    """The formula that a document explains."""

    formula: Formula


@dataclass(frozen=True)
class Heading:
    """A heading."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    sentence: Sentence


@dataclass(frozen=True)
class EqualForm:
    """A formula equal to the one before, with a remark and the reason."""

    formula: Formula
    remark: str = ""
    why: Sentence = ()


@dataclass(frozen=True)
class Equations:
    """Formulas that are equal."""

    steps: tuple[EqualForm, ...]


@dataclass(frozen=True)
class Numbered:
    """Lines under a heading, numbered from `first`; a line is (formulas, remark)."""

    heading: Sentence
    first: int
    lines: tuple[tuple[Sentence, Sentence], ...]


@dataclass(frozen=True)
class Table:
    """Formulas and their meanings."""

    rows: tuple[tuple[Formula, Sentence], ...]


Block = Title | Heading | Paragraph | Equations | Numbered | Table


class Text:
    """Writes documents as plain text."""

    def document(self, blocks: Iterable[Block]) -> str:
        """The text of all blocks."""
        lines = (line for block in blocks for line in self.lines(block))
        return "\n".join(lines).strip() + "\n"

    def sentence(self, sentence: Sentence) -> str:
        """The text of a sentence; adjacent formulas are written as one."""
        runs = [list(run) for _, run in groupby(sentence, lambda part: isinstance(part, Formula))]
        return "".join(map(self._run, runs))

    def _run(self, parts: list[str | Formula]) -> str:
        """The text of adjacent formulas, or of adjacent words."""
        formulas = [part for part in parts if isinstance(part, Formula)]
        words = [part for part in parts if isinstance(part, str)]
        return self.math(*formulas) if formulas else self.words("".join(words))

    def math(self, *formulas: Formula) -> str:
        """The text of adjacent formulas."""
        return "".join(map(str, formulas))

    def words(self, text: str) -> str:
        """Words."""
        return text

    def lines(self, block: Block) -> Iterator[str]:
        """The lines of a block."""
        match block:
            case Title(formula):
                yield from (str(formula), "")
            case Heading(text):
                yield from ("", text)
            case Paragraph(sentence):
                yield f"  {self.sentence(sentence)}"
            case Equations(steps):
                for i, step in enumerate(steps):
                    mark = f"    ← {step.remark}" if step.remark else ""
                    yield f"  {'=' if i else ' '} {step.formula}{mark}"
                    if step.why:
                        yield f"        {self.sentence(step.why)}"
            case Numbered(heading, first, lines):
                yield f"  {self.sentence(heading)}"
                for i, (formulas, remark) in enumerate(lines, first):
                    mark = f"    {self.sentence(remark)}" if remark else ""
                    yield f"  {i:3}  {self.sentence(formulas)}{mark}"
            case Table(rows):
                wide = max((width(str(x)) for x, _ in rows), default=0)
                for x, told in rows:
                    yield f"  {x}{' ' * (wide - width(str(x)))}  {self.sentence(told)}"


def width(text: str) -> int:
    """The number of columns that a text takes."""
    return sum(not combining(c) for c in text)


class Markdown(Text):
    """Writes documents as Markdown, formulas in LaTeX between dollars."""

    ESCAPES = str.maketrans({c: f"\\{c}" for c in "*_$`<\\"})

    def math(self, *formulas: Formula) -> str:
        """The text of adjacent formulas."""
        return f"${' '.join(x.latex for x in formulas)}$"

    def words(self, text: str) -> str:
        """Words, with the special characters of Markdown escaped."""
        return text.translate(self.ESCAPES)

    def lines(self, block: Block) -> Iterator[str]:
        """The lines of a block."""
        match block:
            case Title(formula):
                yield from (f"$${formula.latex}$$", "")
            case Heading(text):
                yield from ("", f"### {text}", "")
            case Paragraph(sentence):
                yield from (self.sentence(sentence), "")
            case Equations(steps):
                for i, step in enumerate(steps):
                    mark = f" ← **{step.remark}**" if step.remark else ""
                    mark += "  " if step.why else ""
                    yield f"- ${'= ' if i else ''}{step.formula.latex}${mark}"
                    if step.why:
                        yield f"  {self.sentence(step.why)}"
            case Numbered(heading, first, lines):
                yield from ("", f"**{self.sentence(heading)}**", "")
                for i, (formulas, remark) in enumerate(lines, first):
                    mark = f" — {self.sentence(remark)}" if remark else ""
                    yield f"{i}. {self.sentence(formulas)}{mark}"
            case Table(rows):
                for x, told in rows:
                    yield f"- {self.math(x)}: {self.sentence(told)}"


GREEK = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"


def _greek(letter: str) -> str:
    """A Greek letter in LaTeX."""
    own = name(letter).split()[-1].lower()
    return rf"$\{own if letter.islower() else own.title()}$"


class Latex(Markdown):
    """Writes documents as a fragment of LaTeX, which needs only amsmath."""

    ESCAPES = str.maketrans(
        {c: f"\\{c}" for c in "%&#_{}$"}
        | {c: _greek(c) for c in GREEK}
        | {
            "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
            "–": "--", "−": "$-$", "·": r"$\cdot$", "…": r"\ldots{}", "→": r"$\to$", "′": "'",
            "‘": "`", "’": "'", "½": r"\textsuperscript{1/2}", "¹": r"\textsuperscript{1}",
            "²": r"\textsuperscript{2}", "⁺": r"\textsuperscript{+}", "⁻": r"\textsuperscript{-}",
            "ℓ": r"$\ell$", "∂": r"$\partial$", "𝓜": r"$\mathcal{M}$", "𝒯": r"$\mathcal{T}$",
            "\u0303": r"\~{}", "\u0304": r"\={}", "\u0307": r"\.{}", "˙": r"\.{}",
        }
    )  # fmt: skip

    def words(self, text: str) -> str:
        """Words in ASCII; kg^½ becomes a power."""
        return normalize("NFD", text.replace("^½", "½")).translate(self.ESCAPES)

    def lines(self, block: Block) -> Iterator[str]:
        """The lines of a block."""
        match block:
            case Title(formula):
                yield rf"\[ {formula.latex} \]"
            case Heading(text):
                yield from ("", rf"\subsection*{{{text}}}")
            case Paragraph(sentence):
                yield from ("", self.sentence(sentence))
            case Equations(steps):
                yield from self._items((("$=$" if i else "", x) for i, x in self._equal(steps)))
            case Numbered(heading, first, lines):
                yield from ("", rf"\noindent {self.sentence(heading)}")
                yield from self._items(
                    (str(i), self.sentence(formulas) + self._small(r"\quad", remark))
                    for i, (formulas, remark) in enumerate(lines, first)
                )
            case Table(rows):
                yield from self._items(
                    ("", rf"{self.math(x)}\quad {self.sentence(told)}") for x, told in rows
                )

    def _equal(self, steps: Iterable[EqualForm]) -> Iterator[tuple[int, str]]:
        """The number and text of each step."""
        for i, step in enumerate(steps):
            mark = rf"\quad$\leftarrow$ \emph{{{step.remark}}}" if step.remark else ""
            yield i, self.math(step.formula) + mark + self._small(r"\par", step.why)

    def _small(self, before: str, sentence: Sentence) -> str:
        """A sentence in small print; empty if there is none."""
        return rf"{before}{{\small {self.sentence(sentence)}}}" if sentence else ""

    def _items(self, items: Iterable[tuple[str, str]]) -> Iterator[str]:
        """The lines of a list of items (label, text)."""
        yield r"\begin{itemize}"
        yield from (rf"\item[{{{label}}}] {text}" for label, text in items)
        yield r"\end{itemize}"
