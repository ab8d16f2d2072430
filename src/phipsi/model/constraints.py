"""Loops and grasps as data: what closes on what, and which forces the closure transmits.

A closure joins frame `a` to frame `b` as a hinge would whose parent is `b` and whose child is `a`.
With X the pose of `a` in `b`, V the velocity of `a` and Δ that of `a` against `b`, all in the axes
of `a`, it says over any scalar which forces Q it transmits, which acceleration `a` against `b` its
freedoms take (ad(V)Δ + Ḣ*β), and how far it is open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from phipsi.model import validate
from phipsi.model.errors import ModelError
from phipsi.model.hinges import KINDS, HingeKind
from phipsi.model.parts import INF
from phipsi.spatial import Force, Motion, Transform
from phipsi.spatial import rotation as rot

AXES = {0: None, 1: (0.0, 0.0, 1.0), 2: ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))}
"""The axes of a loop's hinge unless they are given."""
NORMAL = rot.vector(0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Closure:
    """Frame `a` held to frame `b`; base of Loop and Grasp."""

    a: str
    b: str

    def forces(self, X: Transform) -> tuple[Force, ...]:
        """Q: the unit forces on `a` that it transmits, axes of `a`."""
        raise NotImplementedError

    def coriolis(self, X: Transform, V: Motion, Delta: Motion) -> Motion:
        """The acceleration of `a` against `b` at constant rates of what is free."""
        return V.cross(Delta)

    def error(self, X: Transform) -> Motion:
        """How far it is open: [rotation vector; position] of `a` against `b`, axes of `a`."""
        return Motion(rot.log(rot.quaternion_of(X.rotation)), X.R.T @ X.position)

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True)
class Loop(Closure):
    """A loop closed by the cut joint between frames `a` and `b`.

    `free` is what the joint leaves free: a hinge kind (about `axis`, default z, in the axes of `b`
    where the frames coincide; `pitch` if helical). Or it is a matrix (6, m) whose columns are the
    [moment; force] that the joint transmits, constant in the axes of `a`; such rows hold rates,
    and a pose only if they do so together (both forces in the plane of a planar mechanism do, one
    of them alone is a knife edge): else they drift, and stabilisation would be wrong.

    >>> Loop("left_tip", "right_tip", free="revolute", axis=(0, 1, 0)).rows
    5
    """

    free: Any = "weld"
    axis: Any = None
    pitch: float = 0.0

    def __post_init__(self) -> None:
        where = f"loop {self.a!r} to {self.b!r}"
        kind = self.free if isinstance(self.free, str) else None
        if kind is None:
            object.__setattr__(self, "free", _basis(where, self.free))
        elif kind not in KINDS or kind == "free":
            known = ", ".join(name for name in KINDS if name != "free")
            raise ModelError(f"{where}: free={kind!r} is no joint that can close it; {known}")
        if self.axis is not None:
            if kind is None or not KINDS[kind].axes:
                raise ModelError(f"{where}: free={self.free!r} has no axis; leave axis out")
            given = validate.array(f"{where}: axis", self.axis)
            validate.axes(where, KINDS[kind], given)
            object.__setattr__(self, "axis", _tupled(given))
        object.__setattr__(self, "pitch", validate.number(f"{where}: pitch", self.pitch))

    @property
    def rows(self) -> int:
        """How many forces it transmits."""
        return len(self.free[0]) if self._kind is None else 6 - self._kind.nv

    @property
    def _kind(self) -> HingeKind | None:
        return KINDS[self.free] if isinstance(self.free, str) else None

    @cached_property
    def axes(self) -> tuple[Any, ...]:
        """The axes of the cut joint."""
        row = KINDS[self.free]
        return validate.axes(str(self), row, AXES[row.axes] if self.axis is None else self.axis)

    def forces(self, X: Transform) -> tuple[Force, ...]:
        """Q: the unit forces on `a` that it transmits, axes of `a`."""
        if self._kind is None:
            return tuple(Force.of(column) for column in zip(*self.free, strict=True))
        return self._kind.forces(self, self._kind.coordinates(self, X))

    def coriolis(self, X: Transform, V: Motion, Delta: Motion) -> Motion:
        """ad(V)Δ + Ḣ*β, β the rates of the cut joint nearest to Δ."""
        if self._kind is None:
            return V.cross(Delta)
        q = self._kind.coordinates(self, X)
        beta = self._kind.map(self, q).fit(Delta)
        return V.cross(Delta) + self._kind.rate(self, q, beta, beta)

    def error(self, X: Transform) -> Motion:
        """How far it is open: X without the motion of the cut joint nearest to it."""
        if self._kind is None:
            return super().error(X)
        return super().error(self._kind.near(self, X).relative(X))


@dataclass(frozen=True)
class Contact:
    """A row of the table of contacts: which of [moment; force] it transmits, in the axes of the
    tip, whose z is the normal towards the object."""

    transmits: tuple[int, ...]
    meaning: str
    pulls: bool = False
    """Can the tip pull, too?"""
    steady: bool = True
    """Do the moments hold an attitude (else a rate alone)?"""
    rolls: bool = False


CONTACTS: Mapping[str, Contact] = MappingProxyType(
    {
        "rigid": Contact((0, 1, 2, 3, 4, 5), "a firm grip", pulls=True),
        "point": Contact((3, 4, 5), "a point with friction"),
        "soft_finger": Contact(
            (2, 3, 4, 5), "a point with friction that turns with the tip", steady=False
        ),
        "line": Contact((1, 2, 3, 4, 5), "an edge along x with friction: hinges about it"),
        "sliding_plane": Contact((0, 1, 5), "two faces that slide on each other"),
        "rolling": Contact((3, 4, 5), "a ball that rolls on a face", rolls=True),
    }
)
"""Every kind of contact by name."""


@dataclass(frozen=True)
class Grasp(Closure):
    """The contact of a tip (frame `a`, its z towards the object) with an object (frame `b`).

    The dynamics hold the tip where it is on the object, whatever frame of the object `b` is; to
    `b` itself it is brought by `close_loops` and by stabilisation.
    `contact` is a name of CONTACTS. `friction` bounds the tangential force by the normal one,
    `torsion` [m] the moment about the normal. Rolling: a ball of `radius` [m] about the origin of
    the tip on the plane z = 0 of frame `b`, whose z points to the tip.
    """

    contact: str = "rigid"
    friction: float = INF
    torsion: float = INF
    radius: float = 0.0

    def __post_init__(self) -> None:
        where = f"grasp of {self.b!r} by {self.a!r}"
        if not isinstance(self.contact, str) or self.contact not in CONTACTS:
            known = ", ".join(CONTACTS)
            raise ModelError(f"{where}: no contact {self.contact!r}; known are {known}")
        for name in ("friction", "torsion", "radius"):
            value = validate.array(f"{where}: {name}", getattr(self, name))
            if value.ndim or not value >= 0:
                raise ModelError(f"{where}: {name} is {value}, needs a number ≥ 0")
            object.__setattr__(self, name, float(value))
        if self.kind.pulls and min(self.friction, self.torsion) < INF:
            raise ModelError(f"{where}: a firm grip has no friction cone; leave friction out")
        for name, row in (("friction", 3), ("torsion", 2)):
            if getattr(self, name) < INF and row not in self.kind.transmits:
                raise ModelError(f"{where}: {self.contact!r} has no {name} to bound; leave it out")
        if self.radius == INF or (self.radius and not self.kind.rolls):
            raise ModelError(f"{where}: radius is that of a ball that rolls, contact='rolling'")

    @property
    def kind(self) -> Contact:
        """Its row of the table."""
        return CONTACTS[self.contact]

    @property
    def rows(self) -> int:
        """How many forces it transmits."""
        return len(self.kind.transmits)

    def forces(self, X: Transform) -> tuple[Force, ...]:
        """Q: the unit forces on the tip that it transmits, axes of the tip.

        Rolling: those at the point of contact, in the axes of the object.
        """
        units = (Force.of(np.eye(6)[i].tolist()) for i in self.kind.transmits)
        if not self.kind.rolls:
            return tuple(units)
        touching = Transform(X.R.T, (X.R.T @ NORMAL) * -self.radius)
        return tuple(touching @ unit for unit in units)

    def normal(self, X: Transform) -> Any:
        """The unit vector towards the object, axes of the tip."""
        return -(X.R.T @ NORMAL) if self.kind.rolls else NORMAL

    def coriolis(self, X: Transform, V: Motion, Delta: Motion) -> Motion:
        """ad(V)Δ; less ω × v of Δ where Q is constant in the axes of the object: rolling."""
        if not self.kind.rolls:
            return V.cross(Delta)
        return V.cross(Delta) - Motion(rot.zero(), rot.cross(Delta.angular, Delta.linear))

    def error(self, X: Transform) -> Motion:
        """How far it is open, of what is held; rolling: the gap under the ball alone."""
        if not self.kind.rolls:
            e = super().error(X)
            return e if self.kind.steady else Motion(rot.zero(), e.linear)
        return Motion(rot.zero(), (X.R.T @ NORMAL) * (X.position[2] - self.radius))


def _basis(where: str, given: Any) -> tuple[Any, ...]:
    """The (6, m) rows of a basis of forces, independent of each other."""
    matrix = validate.array(f"{where}: free", given)
    if matrix.ndim != 2 or matrix.shape[0] != 6 or not 1 <= matrix.shape[1] <= 6:
        raise ModelError(
            f"{where}: free has shape {matrix.shape}, needs the name of a hinge kind or (6, m) "
            "columns of forces"
        )
    validate.numbers(f"{where}: free", matrix, matrix.shape)
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        raise ModelError(f"{where}: the columns of free depend on each other; leave some out")
    return _tupled(matrix)


def _tupled(array: np.ndarray) -> tuple[Any, ...]:
    """Nested tuples of plain numbers, −0 as 0."""
    return tuple(_tupled(x) if x.ndim else float(x) + 0.0 for x in array)
