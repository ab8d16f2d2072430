"""C text under construction: statements, names, literals and tables, for plain C and CUDA."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf

import numpy as np

from phipsi.typing import Array

TYPES = {"float64": ("double", ""), "float32": ("float", "f")}
"""The number type in C, and the suffix of its functions and literals."""

WIDTH = 100
"""Most columns of a line of text."""


@dataclass
class Text:
    """C text under construction: its lines, its names, and the tables that come before it.

    `table` begins the declaration of a table, `wide` is the type of integers beyond 16 bits, and
    `before` a line before every loop.
    """

    dtype: str
    table: str = "static const"
    wide: str = "long"
    before: str = ""
    lines: list[str] = field(default_factory=list[str])
    depth: int = 1
    used: set[str] = field(default_factory=set[str])
    """Operations in the text; `fma` if there are fused products, `sincos` if there is a pair."""

    def __post_init__(self) -> None:
        self.T, self.f = TYPES[self.dtype]
        self._number = np.dtype(self.dtype).type
        self._names = 0
        self._tables: dict[tuple[str, bytes], str] = {}
        self.tables: list[str] = []

    def line(self, text: str) -> None:
        """Append one statement."""
        self.lines.append("  " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Generator[None, None, None]:
        """Put the statements of a `with` block in braces."""
        self.line(f"{head} {{" if head else "{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    @contextmanager
    def rounds(self, count: int) -> Generator[str, None, None]:
        """Put the statements of a `with` block in a loop; gives its variable."""
        if self.before:
            self.lines.append(self.before)
        i = self.name("i")
        with self.block(f"for ({self.whole(count)} {i} = 0; {i} < {count}; ++{i})"):
            yield i

    def name(self, letter: str = "x") -> str:
        """A new name."""
        self._names += 1
        return f"{letter}{self._names - 1}"

    def let(self, expression: str) -> str:
        """The name of a new constant with this value."""
        name = self.name()
        self.line(f"const {self.T} {name} = {expression};")
        return name

    def literal(self, value: float) -> str:
        """The literal of a number, exact to the bit."""
        with np.errstate(over="ignore"):
            number = self._number(value)
        if number != number:
            return "NAN"
        if abs(number) == inf:
            return "INFINITY" if number > 0 else "(-INFINITY)"
        text = f"{number!s}{self.f}"
        return f"({text})" if text.startswith("-") else text

    def constant(self, value: float) -> str:
        """The expression of a number in a statement."""
        return self.literal(value)

    def fused(self, a: str, b: str, c: str) -> str:
        """The expression a·b + c with one rounding."""
        self.used.add("fma")
        return f"fma{self.f}({a}, {b}, {c})"

    def turned(self, x: str, wanted: Sequence[str]) -> list[str]:
        """The names of the wanted ones, `sin` and `cos`, of an angle."""
        return [self.let(f"{function}{self.f}({x})") for function in wanted]

    def memory(self, at: str) -> str:
        """The expression of element `at` of the memory of loops."""
        return f"w[{at}]"

    def whole(self, most: int) -> str:
        """An integer type for numbers up to `most`."""
        return "int" if most < 1 << 15 else self.wide

    def numbers(self, values: Array) -> str:
        """The name of a table of numbers."""
        with np.errstate(over="ignore"):
            numbers = values.astype(self.dtype)
        return self._tabled(self.T, numbers, self.literal)

    def indices(self, values: Array) -> str:
        """The name of a table of integers."""
        small = abs(values).max(initial=0) < 1 << 15
        return self._tabled("short" if small else self.wide, values, str)

    def _tabled(self, kind: str, values: Array, shown: Callable[..., str]) -> str:
        """The name of a table, which is written once for equal contents."""
        key = kind, values.tobytes()
        name = self._tables.get(key)
        if name is None:
            name = self._tables[key] = f"t{len(self._tables)}"
            self.tables.append(f"{self.table} {kind} {name}[{values.size}] = {{")
            self.tables.extend(_wrapped(shown(x) for x in values.tolist()))
            self.tables.append("};")
        return name

    def by_round(self, row: Array, i: str, rounds: Array) -> tuple[int, str]:
        """Element i of a row of integers, as a constant and an expression to be added to it. Only
        the marked rounds matter. If the row is linear in i, no table is stored."""
        known = np.flatnonzero(rounds)
        values = row[known]
        step = 0
        if len(known) > 1:
            step = int(values[1] - values[0]) // int(known[1] - known[0])
        first = int(values[0]) - step * int(known[0])
        if not (values == first + step * known).all():
            return 0, f"{self.indices(np.where(rounds, row, 0))}[{i}]"
        return first, "" if not step else i if step == 1 else f"{step} * {i}"


def _wrapped(words: Iterator[str]) -> Iterator[str]:
    """Lines of words with commas."""
    line = "  "
    for word in words:
        if len(line) + len(word) > WIDTH - 2:
            yield line.rstrip()
            line = "  "
        line += f"{word}, "
    yield line.rstrip()


def sum_of(number: int, text: str) -> str:
    """The expression of the sum of a number and an expression."""
    if not text or not number:
        return text or str(number)
    return f"{text} {'+' if number > 0 else '-'} {abs(number)}"
