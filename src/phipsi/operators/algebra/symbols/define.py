"""How a row is added to the table of symbols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ParamSpec

from phipsi.operators.algebra.expression import SYMBOLS, Expression, Leaf
from phipsi.operators.algebra.symbol import Symbol

Row = ParamSpec("Row")


def _add(new: Symbol[Expression]) -> None:
    """Add a row that no other can be taken for in any notation."""
    names = {new.name, new.unicode, new.latex}
    for row in SYMBOLS.values():
        for taken in names & {row.name, row.unicode, row.latex}:
            raise ValueError(f"symbol {new.name!r}: {taken!r} is {row.name!r} already")
    SYMBOLS[new.name] = new


def _without_frames(row: Callable[Row, Symbol[Expression]]) -> Callable[Row, Leaf]:
    def symbol(*args: Row.args, **kwargs: Row.kwargs) -> Leaf:
        new = row(*args, **kwargs)
        _add(new)
        return Leaf.of(new)

    return symbol


def _with_frames(row: Callable[Row, Symbol[Expression]]) -> Callable[Row, Callable[..., Leaf]]:
    def framed(*args: Row.args, **kwargs: Row.kwargs) -> Callable[..., Leaf]:
        new = replace(row(*args, **kwargs), framed=True)
        _add(new)

        def at(*frames: str) -> Leaf:
            if not frames or not all(isinstance(frame, str) for frame in frames):
                raise TypeError(f"{new.name} needs the names of frames, {new.name}('tool')")
            if len(set(frames)) < len(frames):
                raise ValueError(f"{new.name}{frames}: a frame is named twice")
            return Leaf.of(new, frames)

        at.__name__ = at.__qualname__ = new.name
        at.__doc__ = f"{new.unicode}: {new.meaning}."
        return at

    return framed


symbol = _without_frames(Symbol[Expression])
"""Add a row, with the arguments of `Symbol`: the symbol as an expression."""
framed = _with_frames(Symbol[Expression])
"""Add a row that needs frames: a function of their names that gives the symbol at them."""
