"""What identifies the constants of a trace from one process to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Protocol, runtime_checkable

from phipsi.model import Robot
from phipsi.programs.arguments import is_sequence


@runtime_checkable
class Identified(Protocol):
    """A program, with a text that identifies what it computes; None if there is no such text."""

    @property
    def content_key(self) -> str | None:
        """The text."""
        ...


def identity(x: object) -> str | None:
    """A text that identifies a constant of a trace: with equal texts the graphs are equal.

    None for what is not made of numbers, texts, robots, programs of phipsi and its data classes. A
    function of a user is not identified by its name: it may depend on anything.
    """
    if isinstance(x, (str, int, float, type(None))):
        return repr(x)
    if isinstance(x, Robot):
        return x.key
    if isinstance(x, Identified):
        return x.content_key
    kind, parts = type(x), None
    if is_sequence(x) and kind is tuple:
        parts = x
    elif is_dataclass(x) and kind.__module__.startswith("phipsi."):
        parts = [getattr(x, field.name) for field in fields(x)]
    return None if parts is None else _joined(f"{kind.__module__}.{kind.__qualname__}", parts)


def _joined(kind: str, parts: Sequence[object]) -> str | None:
    texts = [text for text in map(identity, parts) if text is not None]
    return f"{kind}({', '.join(texts)})" if len(texts) == len(parts) else None
