"""Functions that add a row to the table of symbols."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ParamSpec, Protocol

from phipsi.operators.algebra.expression import SYMBOLS, Leaf
from phipsi.operators.algebra.symbol import Symbol

if TYPE_CHECKING:
    from phipsi.operators.algebra.expression import Expression
    from phipsi.operators.algebra.system import System

Row = ParamSpec("Row")


class Framed(Protocol):
    """A symbol that needs frames: a function of their names."""

    def __call__(self, *frames: str) -> Leaf:
        """The symbol at the named frames."""
        ...


def _add(new: Symbol[Expression, System]) -> None:
    """Add a row, or raise a `ValueError` if another has the same name in one of the notations."""
    names = {new.name, new.unicode, new.latex}
    for row in SYMBOLS.values():
        for taken in names & {row.name, row.unicode, row.latex}:
            raise ValueError(f"symbol {new.name!r}: {taken!r} is {row.name!r} already")
    SYMBOLS[new.name] = new


DOC = """{row.unicode}: {row.meaning}.

Parameters
----------
*frames
    {names}.

Returns
-------
Leaf
    The symbol there, as an expression.

Raises
------
ValueError
    If a name is given twice.

Examples
--------
>>> print({row.name}("tool"))
{row.unicode}('tool')
"""
"""The docstring of a symbol that needs frames."""


def _without_frames(row: Callable[Row, Symbol[Expression, System]]) -> Callable[Row, Leaf]:
    def symbol(*args: Row.args, **kwargs: Row.kwargs) -> Leaf:
        new = row(*args, **kwargs)
        _add(new)
        return Leaf.of(new)

    return symbol


def _with_frames(row: Callable[Row, Symbol[Expression, System]]) -> Callable[Row, Framed]:
    def framed(*args: Row.args, **kwargs: Row.kwargs) -> Framed:
        new = replace(row(*args, **kwargs), framed=True)
        _add(new)

        def at(*frames: str) -> Leaf:
            if not frames or not all(isinstance(frame, str) for frame in frames):
                raise TypeError(f"{new.name} needs the names of frames, {new.name}('tool')")
            if len(set(frames)) < len(frames):
                raise ValueError(f"{new.name}{frames}: a frame is named twice")
            return Leaf.of(new, frames)

        at.__name__ = at.__qualname__ = new.name
        caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        at.__module__ = caller.f_globals["__name__"]  # where pickles find it
        names = "The name of a hinge with one freedom" if new.of_hinge else "Names of frames"
        at.__doc__ = DOC.format(row=new, names=names)
        return at

    return framed


symbol = _without_frames(Symbol["Expression", "System"])
"""Add a row and return the symbol as an expression; the arguments are the fields of `Symbol`."""
framed = _with_frames(Symbol["Expression", "System"])
"""Add a row that needs frames and return the function that gives the symbol at named frames."""
