"""Derivations: equal forms of an expression, each with the reason that makes it equal to the last.

Generic in what is derived, so that this file lies below the expressions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

Condition = Literal["no armature", "serial", "free base", "one freedom", "no loads"]

CONDITIONS: Mapping[Condition, str] = {
    "no armature": "no joint has armature",
    "serial": "no body has two children and the world has one",
    "free base": "every root has the free hinge",
    "one freedom": "every hinge has one freedom, about or along an axis fixed in its child",
    "no loads": "no gravity and no external forces act, which C, C_ν and C_ξ contain",
}
"""What an identity may need, in words."""

X = TypeVar("X")
X_co = TypeVar("X_co", covariant=True)


class Equal(Protocol[X_co]):
    """An identity: two sides that are equal."""

    @property
    def left(self) -> X_co:
        """One side."""
        ...

    @property
    def right(self) -> X_co:
        """The other."""
        ...


@dataclass(frozen=True)
class Step(Generic[X]):
    """An expression equal to the one before, and why."""

    expression: X
    name: str
    source: str = ""
    identity: Equal[X] | None = None

    def __str__(self) -> str:
        row = self.identity
        parts = (self.name, f"{row.left} = {row.right}" if row else "", self.source)
        return f"= {self.expression}    {'  '.join(filter(None, parts))}"


@dataclass(frozen=True)
class Derivation(Generic[X]):
    """An expression, the steps that simplify it, and what they take for granted."""

    expression: X
    steps: tuple[Step[X], ...]
    needs: tuple[Condition, ...] = ()

    @property
    def result(self) -> X:
        """The last step."""
        return self.steps[-1].expression if self.steps else self.expression

    @property
    def forms(self) -> tuple[X, ...]:
        """All expressions on the way: they are equal."""
        return tuple(dict.fromkeys([self.expression, *(s.expression for s in self.steps)]))

    def _repr_markdown_(self) -> str:
        return f"```text\n{self}\n```"

    def __str__(self) -> str:
        lines = [str(self.expression), *(f"  {step}" for step in self.steps)]
        if self.needs:
            lines.append(f"  if {' and '.join(CONDITIONS[c] for c in self.needs)}")
        return "\n".join(lines)
