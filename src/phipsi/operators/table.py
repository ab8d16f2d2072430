"""The table of symbols: what a row of it holds, and how one is added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from phipsi.operators.expressions import Expression, Leaf
from phipsi.operators.spaces import Space, frame_forces


@dataclass(frozen=True, eq=False)
class Symbol:
    """A row of the table."""

    name: str
    """As Python and the parser write it."""
    unicode: str
    latex: str
    codomain: Space
    domain: Space
    meaning: str
    unit: str = ""
    estimation: str = ""
    symmetric: bool = False
    diagonal: bool = False
    """Block diagonal: each body by itself."""
    framed: bool = False
    """Needs frames, as B("tool")."""

    def spaces(self, frames: tuple[str, ...]) -> tuple[Space, Space]:
        """Codomain and domain at frames."""
        at = frame_forces(*frames)
        spaces = {"forces": at, "motions": at.dual}
        return spaces.get(self.codomain.name, self.codomain), spaces.get(
            self.domain.name, self.domain
        )

    def defined(self, frames: tuple[str, ...]) -> Expression:
        """Its definition, at frames."""
        if self.name not in DEFINITIONS:
            raise AttributeError(f"{self.unicode} is a given, {self.meaning}: it has no definition")
        return DEFINITIONS[self.name](*frames)


SYMBOLS: dict[str, Symbol] = {}
DEFINITIONS: dict[str, Callable[..., Expression]] = {}


def symbol(name: str, *row: object, **more: object) -> Leaf:
    """A new row of the table."""
    new = SYMBOLS[name] = Symbol(name, *row, **more)  # type: ignore[arg-type]
    return Leaf.of(new)


def framed(name: str, *row: object, **more: object) -> Callable[..., Leaf]:
    """A new row of the table that needs frames."""
    new = SYMBOLS[name] = Symbol(name, *row, framed=True, **more)  # type: ignore[arg-type]

    def at(*frames: str) -> Leaf:
        if not frames or not all(isinstance(frame, str) for frame in frames):
            raise TypeError(f"{name} needs the names of frames, {name}('tool')")
        if len(set(frames)) < len(frames):
            raise ValueError(f"{name}{frames}: a frame is named twice")
        return Leaf.of(new, frames)

    at.__name__ = at.__qualname__ = name
    at.__doc__ = f"{new.unicode}: {new.meaning}."
    return at
