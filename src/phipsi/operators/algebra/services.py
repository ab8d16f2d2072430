"""What the packages above the algebra provide to the methods of an expression.

`phipsi.operators` connects them, so that `expression.on(robot, q)` works though the algebra imports
nothing of what runs it. Generic in the expressions, so that this file lies below them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

from phipsi.model import Robot
from phipsi.operators.algebra.derivation import Derivation
from phipsi.operators.algebra.linear_operator import LinearOperator
from phipsi.programs import Program

X = TypeVar("X")


class Document(Protocol):
    """A text in three markups."""

    @property
    def text(self) -> str:
        """As plain text."""
        ...

    @property
    def markdown(self) -> str:
        """As Markdown, formulas between dollars."""
        ...

    @property
    def latex(self) -> str:
        """As a fragment of LaTeX."""
        ...


class Services(Protocol[X]):
    """Arguments are those of the methods of `Expression`."""

    def derive(self, x: X, assume: Iterable[str], *, warn: bool) -> Derivation[X]:
        """The derivation of the normal form; it may warn of conditions that nobody assumed."""
        ...

    def explain(self, x: X, robot: Robot | None, *, language: str, active: Any) -> Document:
        """The explanation."""
        ...

    def on(self, x: X, robot: Robot, q: Any, v: Any, *, active: Any, dense: bool) -> LinearOperator:
        """The operator of a robot at a configuration."""
        ...

    def program(self, x: X, *, given: Iterable[str], active: Any) -> Program[Any, Any]:
        """The program that computes it."""
        ...

    def evaluate(
        self, x: X, robot: Robot, q: Any, v: Any, *, active: Any, external: Any, **vectors: Any
    ) -> Any:
        """The value of a vector or a number."""
        ...

    def formulas(self, plan: object, sweep: object) -> list[str]:
        """The lines of pseudo-code of one sweep of a `lowering.plan.Plan`."""
        ...
