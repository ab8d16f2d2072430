"""The parts of a robot: bodies, hinges, frames."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from phipsi.model.hinges import HingeKind
from phipsi.spatial import SpatialInertia, Transform

INF = float("inf")


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body: its name and its inertia in its frame (at the inboard hinge). `origin` is the
    pose of the frame that people see; the two differ in equivalent robots alone."""

    name: str
    inertia: SpatialInertia
    origin: Transform = field(default_factory=Transform.identity)

    @property
    def mass(self) -> Any:
        """Mass [kg]."""
        return self.inertia.mass

    def __repr__(self) -> str:
        return f"Body({self.name!r}, mass={self.mass} kg)"


@dataclass(frozen=True)
class Mimic:
    """A URDF mimic relation, kept as data: q = multiplier · q(joint) + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Hinge:
    """The hinge between `parent` (a body or the world) and `child`.

    `lower`, `upper` and `rest` have nq numbers, the other arrays nv. Units: [rad] or [m] and their
    forces [N·m] or [N].
    """

    name: str
    kind: HingeKind
    parent: str
    child: str
    placement: Transform
    axes: tuple[Any, ...] = ()
    pitch: float = 0.0
    lower: Any = ()
    upper: Any = ()
    velocity: Any = ()
    effort: Any = ()
    armature: Any = ()
    damping: Any = ()
    stiffness: Any = ()
    rest: Any = ()
    friction: Any = ()
    friction_speed: float = 0.01
    backlash: Any = ()
    mimic: Mimic | None = None
    q: slice = field(default_factory=lambda: slice(0, 0))
    v: slice = field(default_factory=lambda: slice(0, 0))

    def __repr__(self) -> str:
        return f"Hinge({self.name!r}, {self.kind.name}, {self.parent!r} → {self.child!r})"


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame fixed to a body or to the world."""

    name: str
    body: str
    placement: Transform = field(default_factory=Transform.identity)

    def __repr__(self) -> str:
        return f"Frame({self.name!r} on {self.body!r})"
