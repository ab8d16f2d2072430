"""Loops and grasps as data: which frames are held together, and by which forces.

A closure acts like a hinge with parent frame `b` and child frame `a`. Its methods are functions,
over any scalar, of the pose X of `a` in `b`, the velocity V of `a` and the velocity Δ of `a`
relative to `b`, both in the axes of `a`. They give the forces Q that the closure transmits, the
acceleration of `a` relative to `b` at constant rates β of its freedoms (ad(V)Δ + Ḣ*β), and the
closure error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias, cast

import numpy as np

from phipsi.cached import cached_property
from phipsi.model import validate
from phipsi.model.errors import ModelError
from phipsi.model.hinges import KINDS, HingeKind, HingeName
from phipsi.model.parts import INF
from phipsi.model.untrusted import quoted
from phipsi.spatial import Force, Motion, Transform
from phipsi.spatial import rotation as rot
from phipsi.spatial.rotation import Vector
from phipsi.typing import Array, ArrayLike, Vector3

AXES = {0: None, 1: (0.0, 0.0, 1.0), 2: ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))}
"""The default axes of the hinge of a loop, by their number."""
NORMAL = rot.vector(0.0, 0.0, 1.0)
TINY = 1e-12
"""The size of a moment or force that counts as zero."""


@dataclass(frozen=True)
class Closure:
    """Frame `a` held to frame `b`; base class of Loop and Grasp.

    Parameters
    ----------
    a, b
        Names of the frames.
    """

    a: str
    b: str

    def forces(self, X: Transform) -> tuple[Force, ...]:
        """The unit forces Q on `a` that the closure transmits.

        Parameters
        ----------
        X
            The pose of `a` in `b`.

        Returns
        -------
        tuple of Force
            The forces, in the axes of `a`.
        """
        raise NotImplementedError

    def coriolis(self, X: Transform, V: Motion, Delta: Motion) -> Motion:
        """The acceleration of `a` relative to `b` at constant rates of the freedoms.

        Parameters
        ----------
        X
            The pose of `a` in `b`.
        V
            The velocity of `a`, in its axes.
        Delta
            The velocity of `a` relative to `b`, in the axes of `a`.

        Returns
        -------
        Motion
            The acceleration, in the axes of `a`.
        """
        return V.cross(Delta)

    def error(self, X: Transform) -> Motion:
        """The closure error: the displacement of `a` relative to `b`.

        Parameters
        ----------
        X
            The pose of `a` in `b`.

        Returns
        -------
        Motion
            [rotation vector; position] [rad, m], in the axes of `a`.
        """
        return Motion(rot.log(rot.quaternion_of(X.rotation)), X.R.T @ X.position)

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True)
class Loop(Closure):
    """A kinematic loop that is closed by a cut joint between the frames `a` and `b`.

    Parameters
    ----------
    a, b
        Names of the frames.
    free : name of a hinge kind or (6, m), optional
        The motions that the joint leaves free, as a hinge kind other than "free". Or a matrix whose
        columns are the [moment; force] that the joint transmits, constant in the axes of `a`. Such
        columns constrain rates. They constrain a pose only if together they are integrable, as both
        forces in the plane of a planar mechanism are; one of them alone is a knife edge, whose pose
        may drift and must not be stabilised.
    axis : (3,) or (2, 3), optional
        The axis or axes of the hinge, in the axes of `b` when the frames coincide; by default z (of
        a universal hinge x and y).
    pitch : optional
        The advance of a helical hinge [m/rad].

    Examples
    --------
    >>> Loop("left_tip", "right_tip", free="revolute", axis=(0, 1, 0)).rows
    5
    """

    free: HingeName | Annotated[ArrayLike, "6 m"] = "weld"
    axis: ArrayLike | None = None
    pitch: float = 0.0

    def __post_init__(self) -> None:
        where = f"loop {quoted(self.a)} to {quoted(self.b)}"
        kind = self.free if isinstance(self.free, str) else None
        if kind is None:
            object.__setattr__(self, "free", _force_rows(where, self.free))
        elif kind not in KINDS or kind == "free":
            known = ", ".join(name for name in KINDS if name != "free")
            raise ModelError(f"{where}: free={quoted(kind)} is no joint that can close it; {known}")
        if self.axis is not None:
            if kind is None or not KINDS[kind].axes:
                raise ModelError(f"{where}: free={quoted(self.free)} has no axis; leave axis out")
            given = validate.array(f"{where}: axis", self.axis)
            validate.axes(where, KINDS[kind], given)
            object.__setattr__(self, "axis", _tupled(given))
        object.__setattr__(self, "pitch", validate.number(f"{where}: pitch", self.pitch))

    @property
    def rows(self) -> int:
        """The number of forces that it transmits."""
        return len(self._transmitted[0]) if self._kind is None else 6 - self._kind.nv

    @property
    def _kind(self) -> HingeKind | None:
        return KINDS[self.free] if isinstance(self.free, str) else None

    @property
    def _transmitted(self) -> _Rows:
        """The matrix `free`, if it is one."""
        return cast("_Rows", self.free)

    @property
    def axes(self) -> tuple[Vector, ...]:
        """The unit axes of the cut joint."""
        return self._axes

    @cached_property
    def _axes(self) -> tuple[Vector, ...]:
        row = KINDS[cast("HingeName", self.free)]
        return validate.axes(str(self), row, AXES[row.axes] if self.axis is None else self.axis)

    def forces(self, X: Transform) -> tuple[Force, ...]:
        """The unit forces Q on `a` that the cut joint transmits.

        Parameters
        ----------
        X
            The pose of `a` in `b`.

        Returns
        -------
        tuple of Force
            The forces, in the axes of `a`.
        """
        if self._kind is None:
            return tuple(Force.of(column) for column in zip(*self._transmitted, strict=True))
        return self._kind.forces(self, self._kind.coordinates(self, X))

    def coriolis(self, X: Transform, V: Motion, Delta: Motion) -> Motion:
        """The acceleration of `a` relative to `b` at constant rates of the freedoms: ad(V)Δ + Ḣ*β.

        β are the rates of the cut joint for which H*β is nearest to Δ.

        Parameters
        ----------
        X
            The pose of `a` in `b`.
        V
            The velocity of `a`, in its axes.
        Delta
            The velocity of `a` relative to `b`, in the axes of `a`.

        Returns
        -------
        Motion
            The acceleration, in the axes of `a`.
        """
        if self._kind is None:
            return V.cross(Delta)
        q = self._kind.coordinates(self, X)
        beta = self._kind.map(self, q).fit(Delta)
        return V.cross(Delta) + self._kind.rate(self, q, beta, beta)

    def error(self, X: Transform) -> Motion:
        """The closure error: X relative to the nearest pose that the cut joint allows.

        Parameters
        ----------
        X
            The pose of `a` in `b`.

        Returns
        -------
        Motion
            [rotation vector; position] [rad, m], in the axes of `a`.
        """
        near = self._nearest(X) if self._kind is None else self._kind.near(self, X)
        return super().error(near.relative(X))

    def _nearest(self, X: Transform) -> Transform:
        """Of a matrix `free`: the pose nearest to X in which the closure is closed.

        Three directions of moments hold the attitude; two leave a turn about the direction n normal
        to both; one, n, holds the turn about n. The position is free across the forces.
        """
        moments, forces = _directions(self._transmitted[:3]), _directions(self._transmitted[3:])
        R = X.rotation if len(moments) < 2 else rot.identity()
        if len(moments) in (1, 2):
            n = moments[0] if len(moments) == 1 else rot.cross(*moments)
            turn = rot.turned(n, *rot.turn_about(n, X.rotation))
            R = turn if len(moments) == 2 else R @ turn.T
        across = rot.identity() - sum((np.outer(f, f) for f in forces), np.zeros((3, 3)))
        return Transform(R, R @ (across @ (R.T @ X.position)))


@dataclass(frozen=True)
class Contact:
    """A kind of contact: a row of the table CONTACTS."""

    transmits: tuple[int, ...]
    """The components of [moment; force] that it transmits, in the axes of the tip, whose z is the
    normal towards the object."""
    meaning: str
    """A description."""
    free: HingeName = "spherical"
    """The hinge with the poses of the tip on the object that the contact allows. A soft finger
    constrains the rate of the turn about the normal, but no pose."""
    axis: tuple[float, float, float] | None = None
    """The axis of that hinge."""
    pulls: bool = False
    """Whether the tip can also pull."""
    rolls: bool = False
    """Whether the tip is a ball that rolls on the object."""


ContactName = Literal["rigid", "point", "soft_finger", "line", "sliding_plane", "rolling"]
"""The names of contacts: the keys of CONTACTS."""

CONTACTS: Mapping[ContactName, Contact] = MappingProxyType(
    {
        "rigid": Contact((0, 1, 2, 3, 4, 5), "a firm grip", "weld", pulls=True),
        "point": Contact((3, 4, 5), "a point with friction"),
        "soft_finger": Contact((2, 3, 4, 5), "a point with friction that turns with the tip"),
        "line": Contact(
            (1, 2, 3, 4, 5), "an edge along x with friction: hinges about it", "revolute", (1, 0, 0)
        ),
        "sliding_plane": Contact(
            (0, 1, 5), "two faces that slide on each other", "planar", (0, 0, 1)
        ),
        "rolling": Contact((3, 4, 5), "a ball that rolls on a face", rolls=True),
    }
)
"""Every kind of contact by name."""


@dataclass(frozen=True)
class Grasp(Closure):
    """The contact of a tip (frame `a`) with an object (frame `b`).

    The dynamics hold the tip where it is on the object, whether or not that is at frame `b`; only
    `close_loops` and stabilisation bring the tip to `b`.

    Parameters
    ----------
    a
        The name of the frame of the tip, whose z points to the object.
    b
        The name of a frame of the object.
    contact : optional
        "rigid", "point", "soft_finger", "line", "sliding_plane" or "rolling"
        (`phipsi.model.CONTACTS`).
    friction : optional
        The bound of the tangential force, as a multiple of the normal force.
    torsion : optional
        The bound of the moment about the normal, as a multiple of the normal force [m].
    radius : optional
        Of contact "rolling" the radius [m] of the ball about the origin of the tip, which rolls on
        the plane z = 0 of frame `b`, whose z points to the tip.
    """

    contact: ContactName = "rigid"
    friction: float = INF
    torsion: float = INF
    radius: float = 0.0

    def __post_init__(self) -> None:
        where = f"grasp of {quoted(self.b)} by {quoted(self.a)}"
        if not isinstance(self.contact, str) or self.contact not in CONTACTS:
            known = ", ".join(CONTACTS)
            raise ModelError(f"{where}: no contact {quoted(self.contact)}; known are {known}")
        for name in ("friction", "torsion", "radius"):
            value = validate.array(f"{where}: {name}", getattr(self, name))
            if value.ndim or not value >= 0:
                shown = quoted(value.tolist())
                raise ModelError(f"{where}: {name} is {shown}, needs a number ≥ 0")
            object.__setattr__(self, name, float(value))
        if self.kind.pulls and min(self.friction, self.torsion) < INF:
            raise ModelError(f"{where}: a firm grip has no friction cone; leave friction out")
        for name, row in (("friction", 3), ("torsion", 2)):
            if getattr(self, name) < INF and row not in self.kind.transmits:
                raise ModelError(
                    f"{where}: {quoted(self.contact)} has no {name} to bound; leave it out"
                )
        if self.radius == INF or (self.radius and not self.kind.rolls):
            raise ModelError(f"{where}: radius is that of a ball that rolls, contact='rolling'")

    @property
    def kind(self) -> Contact:
        """The row of CONTACTS."""
        return CONTACTS[self.contact]

    @property
    def rows(self) -> int:
        """The number of forces that it transmits."""
        return len(self.kind.transmits)

    @cached_property
    def _joint(self) -> Loop:
        """The loop that allows the same poses."""
        return Loop(self.a, self.b, self.kind.free, self.kind.axis)

    def forces(self, X: Transform) -> tuple[Force, ...]:
        """The unit forces Q on the tip that the contact transmits.

        For a rolling contact they act at the point of contact along the axes of the object.

        Parameters
        ----------
        X
            The pose of `a` in `b`.

        Returns
        -------
        tuple of Force
            The forces, in the axes of the tip.
        """
        units = (Force.of(np.eye(6)[i].tolist()) for i in self.kind.transmits)
        if not self.kind.rolls:
            return tuple(units)
        touching = Transform(X.R.T, (X.R.T @ NORMAL) * -self.radius)
        return tuple(touching @ unit for unit in units)

    def normal(self, X: Transform) -> Vector3:
        """The unit vector towards the object.

        Parameters
        ----------
        X
            The pose of `a` in `b`.

        Returns
        -------
        (3,)
            The vector, in the axes of the tip.
        """
        return -(X.R.T @ NORMAL) if self.kind.rolls else NORMAL

    def coriolis(self, X: Transform, V: Motion, Delta: Motion) -> Motion:
        """The acceleration of `a` relative to `b` at constant rates of the freedoms: ad(V)Δ.

        For a rolling contact, whose Q is constant in the axes of the object, ω × v of Δ is
        subtracted.

        Parameters
        ----------
        X
            The pose of `a` in `b`.
        V
            The velocity of `a`, in its axes.
        Delta
            The velocity of `a` relative to `b`, in the axes of `a`.

        Returns
        -------
        Motion
            The acceleration, in the axes of `a`.
        """
        if not self.kind.rolls:
            return V.cross(Delta)
        return V.cross(Delta) - Motion(rot.zero(), rot.cross(Delta.angular, Delta.linear))

    def error(self, X: Transform) -> Motion:
        """The closure error: X relative to the nearest pose that the contact allows.

        For a rolling contact it is the gap between the ball and the plane.

        Parameters
        ----------
        X
            The pose of `a` in `b`.

        Returns
        -------
        Motion
            [rotation vector; position] [rad, m], in the axes of `a`.
        """
        if not self.kind.rolls:
            return self._joint.error(X)
        return Motion(rot.zero(), (X.R.T @ NORMAL) * (X.position[2] - self.radius))


_Rows: TypeAlias = tuple[tuple[float, ...], ...]


def _force_rows(where: str, given: object) -> _Rows:
    """The 6 rows of a (6, m) matrix whose columns are linearly independent forces."""
    matrix = validate.array(f"{where}: free", () if given is None else given)
    if matrix.ndim != 2 or matrix.shape[0] != 6 or not 1 <= matrix.shape[1] <= 6:
        raise ModelError(
            f"{where}: free has shape {matrix.shape}, needs the name of a hinge kind or (6, m) "
            "columns of forces"
        )
    validate.numbers(f"{where}: free", matrix, matrix.shape)
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        raise ModelError(f"{where}: the columns of free depend on each other; leave some out")
    return _tupled(matrix)


def _directions(rows: _Rows) -> list[Vector]:
    """An orthonormal basis of the columns of three rows."""
    basis, sizes, _ = np.linalg.svd(np.array(rows))
    return [rot.scalars(u) for u, size in zip(basis.T, sizes, strict=False) if size > TINY]


def _tupled(array: Array) -> tuple[Any, ...]:
    """The array as nested tuples of floats, with −0 as 0."""
    return tuple(_tupled(x) if x.ndim else float(x) + 0.0 for x in array)
