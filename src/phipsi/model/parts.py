"""The parts of a robot: bodies, hinges, frames."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from phipsi.model.hinges import HingeKind
from phipsi.spatial import SpatialInertia, Transform
from phipsi.spatial.rotation import Vector
from phipsi.typing import Array, Real

INF = float("inf")

PerFreedom = Literal[
    "velocity", "effort", "armature", "damping", "stiffness", "friction", "backlash"
]  # fmt: skip
"""The arrays of a hinge with nv numbers."""
PerCoordinate = Literal["lower", "upper", "rest"]
"""The arrays of a hinge with nq numbers."""


def _empty() -> Array:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class WeldedBody:
    """A body that is welded to a moving body, and part of it.

    Parameters
    ----------
    name
        Its name.
    inertia
        Its inertia in its own frame.
    placement
        The pose of its frame in the frame of the moving body.
    """

    name: str
    inertia: SpatialInertia
    placement: Transform

    @property
    def carried(self) -> SpatialInertia:
        """Its inertia in the frame of the moving body."""
        return self.placement.congruence(self.inertia)

    def __repr__(self) -> str:
        return f"WeldedBody({self.name!r}, mass={self.inertia.mass} kg)"


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body.

    Parameters
    ----------
    name
        Its name.
    inertia
        Its inertia, welded bodies included, in the body frame, which is at the inboard hinge.
    origin : optional
        The pose, in the body frame, of the frame of the body's description, which inputs and
        results refer to. It is not the identity only in `Robot.equivalent`.
    welded : optional
        The bodies that are welded to it.
    """

    name: str
    inertia: SpatialInertia
    origin: Transform = field(default_factory=Transform.identity)
    welded: tuple[WeldedBody, ...] = ()

    @property
    def mass(self) -> Real:
        """Mass [kg]."""
        return self.inertia.mass

    @property
    def bare(self) -> SpatialInertia:
        """Its inertia without the welded bodies."""
        return self.without(*self.welded)

    def without(self, *welded: WeldedBody) -> SpatialInertia:
        """Its inertia without some of the welded bodies.

        Parameters
        ----------
        *welded
            Some of `welded`.

        Returns
        -------
        SpatialInertia
            The inertia in the body frame.
        """
        carried = (w.carried.parameters for w in welded)
        return SpatialInertia.of_parameters(sum((-p for p in carried), self.inertia.parameters))

    def seen_from(self, pose: Transform) -> Body:
        """The same body, described in another body frame.

        Parameters
        ----------
        pose
            The pose of its frame in the new one.

        Returns
        -------
        Body
            The body, with its inertia and its welded bodies in the new frame.
        """
        welded = tuple(replace(w, placement=pose @ w.placement) for w in self.welded)
        return replace(self, inertia=pose.congruence(self.inertia), welded=welded)

    def __repr__(self) -> str:
        return f"Body({self.name!r}, mass={self.mass} kg)"


@dataclass(frozen=True)
class Mimic:
    """A mimic relation of a URDF, q = multiplier · q(joint) + offset: data that no program uses.

    The joint must be one of the robot's hinges; if it is welded, the relation is dropped with it.

    Parameters
    ----------
    joint
        The name of the hinge that is followed.
    multiplier, offset : optional
        The numbers of the relation; the offset in [rad or m].
    """

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Hinge:
    """The hinge that moves the body `child` relative to `parent`.

    `lower`, `upper` and `rest` have nq numbers (of this hinge), the other arrays nv. Units are
    [rad] or [m], and the corresponding forces [N·m] or [N]. `Builder.hinge` makes hinges.

    Parameters
    ----------
    name
        Its name.
    kind
        The row of the table `phipsi.model.KINDS`; after `rebase` perhaps one of
        `phipsi.model.hinges.REVERSED`.
    parent
        The name of a body, or "world".
    child
        The name of the body that it moves.
    placement
        The pose of the hinge frame in the frame of the parent.
    axes : optional
        Unit vectors in the hinge frame; of a planar hinge its normal and two vectors of the plane.
    pitch : optional
        The advance of a helical hinge [m/rad].
    lower, upper : (nq,), optional
        Limits of the coordinates; infinite if there are none.
    velocity, effort : (nv,), optional
        Limits of velocities and of motor forces; infinite if there are none. A hinge with effort 0
        is passive.
    armature : (nv,), optional
        Inertia of the rotor, seen at the hinge [kg·m² or kg].
    damping, stiffness : (nv,), optional
        Coefficients of the damper and of the spring.
    rest : (nq,), optional
        The coordinates at which the spring is relaxed.
    friction : (nv,), optional
        Coulomb friction.
    friction_speed : optional
        The speed at which smooth Coulomb friction has reached 76 % [rad/s or m/s].
    backlash : (nv,), optional
        The width of the dead band of the spring.
    mimic : optional
        The mimic relation of a URDF.
    q, v : optional
        The slices of the robot's q and v that belong to this hinge.
    """

    name: str
    kind: HingeKind
    parent: str
    child: str
    placement: Transform
    axes: tuple[Vector, ...] = ()
    pitch: float = 0.0
    lower: Array = field(default_factory=_empty)
    upper: Array = field(default_factory=_empty)
    velocity: Array = field(default_factory=_empty)
    effort: Array = field(default_factory=_empty)
    armature: Array = field(default_factory=_empty)
    damping: Array = field(default_factory=_empty)
    stiffness: Array = field(default_factory=_empty)
    rest: Array = field(default_factory=_empty)
    friction: Array = field(default_factory=_empty)
    friction_speed: float = 0.01
    backlash: Array = field(default_factory=_empty)
    mimic: Mimic | None = None
    q: slice = field(default_factory=lambda: slice(0, 0))
    v: slice = field(default_factory=lambda: slice(0, 0))

    def __repr__(self) -> str:
        return f"Hinge({self.name!r}, {self.kind.name}, {self.parent!r} → {self.child!r})"


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame fixed to a body or to the world.

    Parameters
    ----------
    name
        Its name.
    body
        The name of the body, or "world".
    placement : optional
        The pose of the frame in the frame of the body.
    """

    name: str
    body: str
    placement: Transform = field(default_factory=Transform.identity)

    def __repr__(self) -> str:
        return f"Frame({self.name!r} on {self.body!r})"
