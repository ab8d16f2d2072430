"""The interface behind those methods of an expression that packages above the algebra implement.

`phipsi.operators` connects the implementations, so that `expression.on(robot, q)` works although
the algebra does not import the code that runs it. Generic in the type of expressions, so that this
file does not import them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol, TypeVar

from phipsi.model import Robot
from phipsi.operators.algebra.derivation import Condition, Derivation
from phipsi.operators.algebra.linear_operator import LinearOperator
from phipsi.programs import Program
from phipsi.typing import (
    Array,
    ArrayLike,
    ConfigurationLike,
    ExternalForces,
    JointVectorLike,
    MaskLike,
)

X = TypeVar("X")

Language = Literal["dynamics", "estimation"]
"""How an explanation reads a recursion; `writing.explain.LANGUAGES` has the words."""


class Document(Protocol):
    """A text in three markup languages."""

    @property
    def text(self) -> str:
        """The document as plain text."""
        ...

    @property
    def markdown(self) -> str:
        """The document as Markdown, formulas between dollars."""
        ...

    @property
    def latex(self) -> str:
        """The document as a fragment of LaTeX."""
        ...


class Services(Protocol[X]):
    """The implementations of methods of `Expression`, with the same arguments."""

    def derive(self, x: X, assume: Condition | Iterable[Condition], *, warn: bool) -> Derivation[X]:
        """The derivation of the normal form; `warn` of conditions that were used, not assumed."""
        ...

    def explain(
        self, x: X, robot: Robot | None, *, language: Language, active: MaskLike | None
    ) -> Document:
        """The explanation."""
        ...

    def on(
        self,
        x: X,
        robot: Robot,
        q: ConfigurationLike,
        v: JointVectorLike | None,
        *,
        active: MaskLike | None,
        dense: bool,
    ) -> LinearOperator:
        """The operator of a robot at a configuration."""
        ...

    def program(
        self, x: X, *, given: Iterable[str], active: Iterable[bool] | None
    ) -> Program[..., Array]:
        """The program that computes it."""
        ...

    def evaluate(
        self,
        x: X,
        robot: Robot,
        q: ConfigurationLike,
        v: JointVectorLike | None,
        *,
        active: MaskLike | None,
        external: ExternalForces | None,
        **vectors: ArrayLike,
    ) -> Array:
        """The value of a vector or a number."""
        ...

    def formulas(self, plan: object, sweep: object) -> list[str]:
        """The lines of pseudo-code of one sweep of a `lowering.plan.Plan`."""
        ...
