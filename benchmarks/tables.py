"""Rows and columns: a row is a dataclass whose fields are annotated with a `Column`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from textwrap import fill
from typing import Any, NamedTuple, get_args, get_type_hints

from rich.markup import escape
from rich.table import Table


class Column(NamedTuple):
    """The annotation of a row's field: the head of its column, and how a value is written."""

    title: str
    form: str = "{}"


@dataclass(frozen=True)
class Aim:
    """A measured value beside what it should be: at least `bound`, or at most."""

    value: float
    bound: float
    unit: str = "×"
    most: bool = False

    @property
    def met(self) -> bool:
        """Is it so?"""
        return self.value <= self.bound if self.most else self.value >= self.bound

    @property
    def bounds(self) -> str:
        """What it should be."""
        return f"{'≤' if self.most else '≥'} {self.bound:g}{self.unit}"

    def __str__(self) -> str:
        return f"{self.bounds} {'met' if self.met else 'not met'}"


def at_least(value: float, bound: float | None, unit: str = "×") -> Aim | None:
    """The aim of at least `bound`, where there is one."""
    return None if bound is None else Aim(value, bound, unit)


def at_most(value: float, bound: float | None, unit: str) -> Aim | None:
    """The aim of at most `bound`, where there is one."""
    return None if bound is None else Aim(value, bound, unit, most=True)


@dataclass(frozen=True)
class Section:
    """What one subject found: rows of one kind, and what has to be said of them."""

    title: str
    text: str
    rows: Sequence[Any]

    @property
    def columns(self) -> dict[str, Column]:
        """The columns by the name of their field."""
        hints = get_type_hints(type(self.rows[0]), include_extras=True)
        return {name: get_args(hint)[1] for name, hint in hints.items()}

    @property
    def words(self) -> list[bool]:
        """For each column: is it of words, and not of numbers?"""
        return [isinstance(getattr(self.rows[0], name), str) for name in self.columns]

    @property
    def cells(self) -> list[list[str]]:
        """The rows, written; None is a dash."""
        columns = self.columns.items()
        return [[_cell(getattr(row, name), c) for name, c in columns] for row in self.rows]

    @property
    def aims(self) -> list[tuple[str, Aim]]:
        """Every aim of the section, and what it is about."""
        values = [(row, getattr(row, name)) for row in self.rows for name in self.columns]
        return [(f"{self.title}, {_names(row)}", x) for row, x in values if isinstance(x, Aim)]


def _cell(value: Any, column: Column) -> str:
    return "–" if value is None else column.form.format(value)


def _names(row: Any) -> str:
    values = (getattr(row, f.name) for f in fields(row))
    return ", ".join(x for x in values if isinstance(x, str))


def terminal(section: Section) -> Table:
    """The section as a table for the terminal."""
    table = Table(title=section.title, title_justify="left")
    for column, words in zip(section.columns.values(), section.words, strict=True):
        table.add_column(escape(column.title), justify="left" if words else "right")
    for row in section.cells:
        table.add_row(*map(escape, row))
    return table


def markdown(section: Section) -> str:
    """The section as Markdown, the columns aligned."""
    lines = [[column.title for column in section.columns.values()], *section.cells]
    widths = [max(map(len, entries)) for entries in zip(*lines, strict=True)]
    lines.insert(1, [_rule(*shape) for shape in zip(widths, section.words, strict=True)])
    table = "\n".join(_line(line, widths, section.words) for line in lines)
    return "\n\n".join((f"## {section.title}", fill(section.text, 100), table))


def _rule(width: int, words: bool) -> str:
    return "-" * width if words else "-" * (width - 1) + ":"


def _line(cells: list[str], widths: list[int], words: list[bool]) -> str:
    columns = zip(cells, widths, words, strict=True)
    padded = (cell.ljust(w) if left else cell.rjust(w) for cell, w, left in columns)
    return f"| {' | '.join(padded)} |"
