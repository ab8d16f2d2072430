"""A symbol of the algebra: one row of data, with all that the packages need to know of it.

Generic in the expressions that it refers to, so that this file lies below them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np

from phipsi.operators.algebra.local_action import LocalAction
from phipsi.operators.algebra.spaces import Space, frame_forces

X = TypeVar("X")


class Resolvent(NamedTuple, Generic[X]):
    """What makes a symbol the recursion (I − E X)⁻¹ (E gathers) or (I − X E)⁻¹ (E scatters)."""

    transfer: X
    """E, from neighbour to neighbour."""
    through: X
    """X, what passes a hinge."""
    gives: tuple[str, str]
    """What it gives, in words, and read as estimation."""
    adjoint_gives: tuple[str, str]
    """The same of its adjoint."""


@dataclass(frozen=True, eq=False, repr=False)
class Symbol(Generic[X]):
    """A row of the table of symbols: all that is known of one."""

    name: str
    """As Python and the parser write it."""
    unicode: str
    latex: str
    codomain: Space
    domain: Space
    description: str
    """What it is, in words; formulas stand between braces."""
    unit: str = ""
    estimation: str = ""
    """What it is if the bodies are the stations of a Kalman filter ([SOA] 4)."""

    # ---- the algebra
    definition: Callable[..., X] | None = None
    """What it is in simpler symbols, a function of its frames."""
    symmetric: bool = False
    diagonal: bool = False
    """Block diagonal: each body by itself."""
    framed: bool = False
    """Needs frames, as B("tool")."""
    of_hinge: bool = False
    """Its frame is the name of a hinge with one freedom."""
    root_of: X | None = None
    """The operator that it is the square root of."""
    rate_of: X | None = None
    """The operator that it is the rate of change of."""
    passive_of: X | None = None
    """The operator that it is the counterpart of, with only the passive hinges free."""
    constant: bool = False
    """It does not change as the robot moves."""
    split: bool = False
    """It depends on which joints are active."""
    free_base: bool = False
    """Only free-flyers have it."""
    joint_space: bool = False
    """Robots with the same joint-space dynamics have it in common."""
    inverted_by_definition: bool = False
    """Its inverse is that of its definition, simplified."""
    weight: int = 1
    """How long it counts when forms are compared: sweeps count most."""
    written_last: bool = False
    """Sums have it in their last terms."""

    # ---- recursions
    action: LocalAction | None = None
    """What it does to the part of one body, if it acts on each body by itself."""
    transfer: Literal["gather", "scatter", "place", None] = None
    """It sums what the children have (gather), takes what the parent has (scatter), or carries
    what is at frames to their bodies (place)."""
    resolvent: Resolvent[X] | None = None
    inertia: bool = False
    """The record of a body has it, as an inertia that can be added to others."""
    given: bool = False
    """A vector that only the caller has."""
    moving: bool = False
    """Its action reads the joint rates."""
    reads_origin: bool = False
    """Its action reads the origin of the frame that users see."""
    cost: int = 1
    """Operations for a hinge with one freedom, roughly: to choose among equal expressions."""

    # ---- dense matrices
    dense: Callable[..., np.ndarray] | None = None
    """Its matrix on a `dense.System`, a function of the system and of frames; without it the
    definition, or differences along the motion for a rate."""

    @property
    def meaning(self) -> str:
        """What it is, in plain words."""
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
