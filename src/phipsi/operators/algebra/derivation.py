"""Derivations: equal forms of an expression, each with the reason why it equals the one before.

Generic in the type of expressions, so that this file does not import them.
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
"""The conditions under which identities hold, in words."""

ENDED = (
    "The search for a shorter form was ended after its limit of work; every form here is equal to "
    "the first."
)
"""What is said of a derivation that its limit ended."""

X = TypeVar("X")
X_co = TypeVar("X_co", covariant=True)


class Equal(Protocol[X_co]):
    """An identity: two sides that are equal."""

    @property
    def left(self) -> X_co:
        """The left side."""
        ...

    @property
    def right(self) -> X_co:
        """The right side."""
        ...


@dataclass(frozen=True)
class Step(Generic[X]):
    """An expression equal to the one before, and the reason."""

    expression: X
    name: str
    """The name of the identity or operation."""
    source: str = ""
    """Where the identity was printed."""
    identity: Equal[X] | None = None

    def __str__(self) -> str:
        row = self.identity
        parts = (self.name, f"{row.left} = {row.right}" if row else "", self.source)
        return f"= {self.expression}    {'  '.join(filter(None, parts))}"


@dataclass(frozen=True)
class Derivation(Generic[X]):
    """An expression, the steps that simplify it, and the conditions that they need."""

    expression: X
    steps: tuple[Step[X], ...]
    needs: tuple[Condition, ...] = ()
    work: int = 0
    """The number of letters in all forms that the search went through."""
    ended: bool = False
    """Whether the search was ended by its limit; a shorter form may exist."""

    @property
    def result(self) -> X:
        """The expression after the last step."""
        return self.steps[-1].expression if self.steps else self.expression

    @property
    def forms(self) -> tuple[X, ...]:
        """The expression and its form after each step, without repetitions: all are equal."""
        return tuple(dict.fromkeys([self.expression, *(s.expression for s in self.steps)]))

    def _repr_markdown_(self) -> str:
        return f"```text\n{self}\n```"

    def __str__(self) -> str:
        lines = [str(self.expression), *(f"  {step}" for step in self.steps)]
        if self.needs:
            lines.append(f"  if {' and '.join(CONDITIONS[c] for c in self.needs)}")
        if self.ended:
            lines.append(f"  {ENDED}")
        return "\n".join(lines)
