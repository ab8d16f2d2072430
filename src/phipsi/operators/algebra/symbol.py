"""A symbol of the algebra: one row of data, with everything that the packages use of it.

Generic in the type of expressions and of systems that a row refers to, so that this file does not
import them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

from phipsi.operators.algebra.local_action import LocalAction
from phipsi.operators.algebra.spaces import Space, frame_forces
from phipsi.typing import Array

X = TypeVar("X")
"""The type of expressions."""
S = TypeVar("S")
"""The type of systems, of which dense matrices are made."""


class Resolvent(NamedTuple, Generic[X]):
    """A symbol as a recursion: (I − E X)⁻¹ where E gathers, (I − X E)⁻¹ where E scatters."""

    transfer: X
    """E: transfers values from neighbour to neighbour."""
    through: X
    """X: the part of a value that passes the hinge."""
    gives: tuple[str, str]
    """The result in words, as dynamics and as estimation."""
    adjoint_gives: tuple[str, str]
    """The result of the adjoint in words, as dynamics and as estimation."""


@dataclass(frozen=True, eq=False, repr=False)
class Symbol(Generic[X, S]):
    """A row of the table of symbols: everything that the library knows of one symbol."""

    name: str
    """The name in Python and in the parser."""
    unicode: str
    latex: str
    codomain: Space
    domain: Space
    description: str
    """The meaning in words; formulas stand between braces."""
    unit: str = ""
    estimation: str = ""
    """The meaning if the bodies are the stations of a Kalman filter ([SOA] 4)."""

    # ---- the algebra
    definition: Callable[[], X] | Callable[[*tuple[str, ...]], X] | None = None
    """The definition in simpler symbols, as a function of the frames."""
    symmetric: bool = False
    diagonal: bool = False
    """Whether it is block diagonal, so that it acts on each body by itself."""
    framed: bool = False
    """Whether it needs frames, as B("tool")."""
    of_hinge: bool = False
    """Whether its frame is the name of a hinge with one freedom."""
    root_of: X | None = None
    """The operator whose square root it is."""
    rate_of: X | None = None
    """The operator whose rate of change it is."""
    passive_of: X | None = None
    """The operator of which it is the counterpart with only the passive hinges free."""
    constant: bool = False
    """Whether it stays the same as the robot moves."""
    split: bool = False
    """Whether it depends on which joints are active."""
    free_base: bool = False
    """Whether only robots with a free base have it."""
    joint_space: bool = False
    """Whether robots with the same joint-space dynamics have the same value of it."""
    inverted_by_definition: bool = False
    """Whether its inverse is found by inverting and simplifying its definition."""
    weight: int = 1
    """Its length when the lengths of expressions are compared; symbols that take a sweep are the
    longest."""
    written_last: bool = False
    """Whether the terms of a sum that contain it are written last."""

    # ---- recursions
    action: LocalAction | None = None
    """How it is applied to the part of one body, if it acts on each body by itself."""
    transfer: Literal["gather", "scatter", "place"] | None = None
    """It sums the values of the children (gather), takes the value of the parent (scatter), or
    carries a value at frames to the bodies of these (place)."""
    resolvent: Resolvent[X] | None = None
    inertia: bool = False
    """Whether the record of a body holds it, as an inertia that can be added to others."""
    given: bool = False
    """Whether it is a vector that the caller must pass."""
    moving: bool = False
    """Whether its action reads the joint rates."""
    reads_origin: bool = False
    """Whether its action reads the origin of the frame that users see (`Body.origin`)."""
    cost: int = 1
    """The approximate number of operations for a hinge with one freedom, by which the cheapest of
    equal expressions is chosen."""

    # ---- dense matrices
    dense: (
        Callable[[S], Array] | Callable[[S, str], Array] | Callable[[S, *tuple[str, ...]], Array]
    ) | None = None
    """Its matrix as a function of a `System` and of the frames. Without it the matrix is that of
    the definition; of a rate, a difference along the motion."""

    @property
    def meaning(self) -> str:
        """The meaning in plain words."""
        return self.description.replace("{", "").replace("}", "")

    def spaces(self, frames: tuple[str, ...]) -> tuple[Space, Space]:
        """Codomain and domain at frames."""
        at = frame_forces(*frames)
        spaces = {"forces": at, "motions": at.dual}
        return spaces.get(self.codomain.name, self.codomain), spaces.get(
            self.domain.name, self.domain
        )

    def defined(self, frames: tuple[str, ...]) -> X:
        """Its definition, at frames."""
        if self.definition is None:
            raise AttributeError(f"{self.unicode} is a given, {self.meaning}: it has no definition")
        return self.definition(*frames)
