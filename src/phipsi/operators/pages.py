"""Pages in writing: plain text, Markdown and LaTeX from the same blocks.

Formulas are written once, in Unicode; `tex` sets them. In a sentence they stand between `math`'s
marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from unicodedata import combining, normalize

from phipsi.operators.algebra.symbols import SYMBOLS
from phipsi.operators.writing.parser import parse

NAMES = {
    **{normalize("NFC", row.unicode): row.latex for row in SYMBOLS.values()},
    **{name: name for name in "xyzsgYIe"},
    "η": r"\eta", "ᾱ": r"\bar{\alpha}", "U̇": r"\dot{U}", "Σ": r"\sum", "D_s": "D_{s}",
    "f_ext": r"f_{\mathrm{ext}}", "log det": r"\log\det", "ad": r"\operatorname{ad}",
    "crf": r"\operatorname{crf}", "ν̇": r"\dot{\nu}", "ξ̇": r"\dot{\xi}",
}  # fmt: skip
"""LaTeX by name."""
SIGNS = {"−": "-", "→": r"\to ", "…": r"\ldots ", "·": r"\cdot ", "½": r"\frac{1}{2}", "²": "^{2}"}
POWERS = {"*": "^{*}", "⁻¹": "^{-1}", "⁻*": "^{-*}"}

_STRING = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_POWER = r"⁻¹|⁻\*|\*"
TOKEN = re.compile(
    rf"(?P<name>{'|'.join(map(re.escape, sorted(NAMES, key=len, reverse=True)))})"
    rf"(?P<frames>\({_STRING}(?:, {_STRING})*\)|\[(?:[^]'\"]|{_STRING})*\])?"
    rf"(?P<digits>[₀-₉]*)(?P<plus>⁺?)(?P<below>(?:_[a-z])?)(?P<power>{_POWER})?"
    rf"|0\[(?P<zero>(?:[^]'\"]|{_STRING})*)\]|(?P<alone>{_POWER})|(?P<other>[\s\S])"
)
"""A name with what is written above and below it, a power after a bracket, or one character."""


def tex(text: str) -> str:
    r"""A formula in LaTeX: `Σ_c φ_c z⁺_c` as `\sum_{c} \phi_{c} z_{c}^{+}`."""
    out, beside = "", False
    for token in TOKEN.finditer(normalize("NFC", text)):
        out += " " * bool(beside and token["name"]) + _set(token)
        beside = bool(token["name"] or token["alone"])
    return out


def names(text: str) -> list[str]:
    """The names in a formula, in order, with their numbers and plus signs, without indices."""
    found = TOKEN.finditer(normalize("NFC", text))
    return [f"{x['name']}{x['digits']}{x['plus']}" for x in found if x["name"]]


def _set(token: re.Match[str]) -> str:
    if token["zero"] is not None:
        return parse(token[0]).latex
    if token["alone"]:
        return POWERS[token["alone"]]
    if not token["name"]:
        return SIGNS.get(token["other"], token["other"])
    out = NAMES[token["name"]]
    if token["frames"]:
        out = parse(token["name"] + token["frames"]).latex
    below = [token["digits"].translate(_DIGITS), token["below"].strip("_")]
    index = ",".join(filter(None, below))
    if index and "_{" in out:
        out = re.sub(r"_\{(.*?)\}(?!\})", lambda found: f"_{{{found[1]},{index}}}", out, count=1)
    elif index:
        out += f"_{{{index}}}"
    out += "^{+}" if token["plus"] else ""
    if token["power"]:
        out = (f"{{{out}}}" if "^" in out or "'" in out else out) + POWERS[token["power"]]
    return out


_DIGITS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")

# ---- sentences -----------------------------------------------------------------------------------

_MATH = re.compile("\x02([^\x03]*)\x03")


def math(formula: object) -> str:
    """A formula in a sentence."""
    return f"\x02{formula}\x03"


def width(text: str) -> int:
    """How many columns a text takes."""
    return sum(not combining(c) for c in text)


class Page:
    """A page of plain text in the making."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __str__(self) -> str:
        return "\n".join(self.lines).strip() + "\n"

    def sentence(self, text: str) -> str:
        """A sentence with formulas."""
        return _MATH.sub(r"\1", text)

    def title(self, formula: str) -> None:
        """The formula that the page is about."""
        self.lines += [formula, ""]

    def heading(self, text: str) -> None:
        """A heading."""
        self.lines += ["", text]

    def paragraph(self, text: str) -> None:
        """A paragraph."""
        self.lines += [f"  {self.sentence(text)}"]

    def equations(self, steps: Iterable[tuple[str, str, str]]) -> None:
        """Equal formulas: each with a remark and the reason."""
        for i, (formula, remark, why) in enumerate(steps):
            self.lines += [f"  {'=' if i else ' '} {formula}{'    ← ' if remark else ''}{remark}"]
            self.lines += [f"        {self.sentence(why)}"] if why else []

    def numbered(self, heading: str, first: int, rows: Sequence[tuple[str, str]]) -> None:
        """Numbered lines under a heading: formulas and a remark."""
        self.lines += [f"  {self.sentence(heading)}"]
        for i, (formulas, remark) in enumerate(rows, first):
            remark = f"    {self.sentence(remark)}" if remark else ""
            self.lines += [f"  {i:3}  {self.sentence(formulas)}{remark}"]

    def table(self, rows: Sequence[tuple[str, str]]) -> None:
        """Names and what they are."""
        left = [self.sentence(name) for name, _ in rows]
        wide = max(map(width, left), default=0)
        for name, (_, text) in zip(left, rows, strict=True):
            self.lines += [f"  {name}{' ' * (wide - width(name))}  {self.sentence(text)}"]


class Markdown(Page):
    """A page of Markdown, formulas in LaTeX between dollars."""

    def sentence(self, text: str) -> str:
        """A sentence, its own marks escaped."""
        parts = _MATH.split(text)
        parts[::2] = [re.sub(r"([*_$`<\\])", r"\\\1", part) for part in parts[::2]]
        parts[1::2] = [f"${tex(part)}$" for part in parts[1::2]]
        return "".join(parts)

    def title(self, formula: str) -> None:
        """The formula, displayed."""
        self.lines += [f"$${tex(formula)}$$", ""]

    def heading(self, text: str) -> None:
        """A heading."""
        self.lines += ["", f"### {text}", ""]

    def paragraph(self, text: str) -> None:
        """A paragraph."""
        self.lines += [self.sentence(text), ""]

    def equations(self, steps: Iterable[tuple[str, str, str]]) -> None:
        """A list with the reasons below."""
        for i, (formula, remark, why) in enumerate(steps):
            mark = f" ← **{remark}**" if remark else ""
            self.lines += [f"- ${'= ' if i else ''}{tex(formula)}${mark}{'  ' if why else ''}"]
            self.lines += [f"  {self.sentence(why)}"] if why else []

    def numbered(self, heading: str, first: int, rows: Sequence[tuple[str, str]]) -> None:
        """A numbered list."""
        self.lines += ["", f"**{self.sentence(heading)}**", ""]
        for i, (formulas, remark) in enumerate(rows, first):
            remark = f" — {self.sentence(remark)}" if remark else ""
            self.lines += [f"{i}. {self.sentence(formulas)}{remark}"]

    def table(self, rows: Sequence[tuple[str, str]]) -> None:
        """A list."""
        self.lines += [f"- {self.sentence(name)}: {self.sentence(text)}" for name, text in rows]


class Latex(Page):
    """A fragment of LaTeX; amsmath is all it needs."""

    def sentence(self, text: str) -> str:
        """A sentence; words that are formulas are set as such."""
        parts = _MATH.split(text)
        parts[::2] = ["".join(map(_word, re.split(r"(\s+)", part))) for part in parts[::2]]
        parts[1::2] = [f"${tex(part)}$" for part in parts[1::2]]
        return "".join(parts)

    def title(self, formula: str) -> None:
        """The formula, displayed."""
        self.lines += [rf"\[ {tex(formula)} \]"]

    def heading(self, text: str) -> None:
        """A heading."""
        self.lines += ["", rf"\subsection*{{{text}}}"]

    def paragraph(self, text: str) -> None:
        """A paragraph."""
        self.lines += ["", self.sentence(text)]

    def equations(self, steps: Iterable[tuple[str, str, str]]) -> None:
        """A list, labelled by equality signs."""
        items = list[tuple[str, str]]()
        for i, (formula, remark, why) in enumerate(steps):
            mark = rf"\quad$\leftarrow$ \emph{{{remark}}}" if remark else ""
            reason = rf"\par{{\small {self.sentence(why)}}}" if why else ""
            items += [("$=$" if i else "", f"${tex(formula)}${mark}{reason}")]
        self._items(items)

    def numbered(self, heading: str, first: int, rows: Sequence[tuple[str, str]]) -> None:
        """A numbered list under a heading."""
        self.lines += ["", rf"\noindent {self.sentence(heading)}"]
        remarks = [
            rf"\quad{{\small {self.sentence(remark)}}}" if remark else "" for _, remark in rows
        ]
        self._items(
            (str(i), self.sentence(formulas) + remark)
            for i, ((formulas, _), remark) in enumerate(zip(rows, remarks, strict=True), first)
        )

    def table(self, rows: Sequence[tuple[str, str]]) -> None:
        """A list."""
        self._items(
            ("", rf"{self.sentence(name)}\quad {self.sentence(text)}") for name, text in rows
        )

    def _items(self, items: Iterable[tuple[str, str]]) -> None:
        self.lines += [r"\begin{itemize}"]
        self.lines += [rf"\item[{{{label}}}] {text}" for label, text in items]
        self.lines += [r"\end{itemize}"]


_PLAIN = {c: f"\\{c}" for c in "%&#_{}$"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--",
    "·": r"$\cdot$", "²": r"\textsuperscript{2}", "½": "1/2",
    "\x04": r"\textsuperscript{1/2}",
    "…": r"\ldots{}", "→": r"$\to$", "′": "'", "‘": "`", "’": "'",
}  # fmt: skip
_GREEK = {c for c in "".join([*NAMES, *SIGNS, *POWERS, "₀₁₂₃₄₅₆₇₈₉"]) if not c.isascii()}
_GREEK -= _PLAIN.keys()
_LETTER = re.compile(r"[B-Z](_[a-z]+)?\*?|[a-z]\*|A\*|A_[a-z]\*?")


def _word(text: str) -> str:
    """A word of a sentence: a formula if it is a capital letter, starred or not in ASCII."""
    core = text.strip("(,.;:)")
    before, after = text.split(core, 1) if core else (text, "")
    named = not core.isascii() and core.rstrip("*") in NAMES
    if named or _LETTER.fullmatch(core) or set(core) & _GREEK:
        return f"{before}${tex(core)}${after}"
    core = core.replace("^½", "\x04")
    return before + "".join(_PLAIN.get(c, c) for c in core) + after
