"""Hinges described from their other side: the child becomes the parent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from phipsi.spatial import HingeMap, Motion, Transform
from phipsi.spatial.rotation import Scalars, Vector
from phipsi.typing import Array


class HingeGeometry(Protocol):
    """What the functions of a hinge kind read of a hinge."""

    @property
    def axes(self) -> tuple[Vector, ...]:
        """Unit vectors in the hinge frame."""
        ...

    @property
    def pitch(self) -> float:
        """Advance per turn [m/rad]."""
        ...


class _Kind(Protocol):
    """What is read of the kind of a hinge: `phipsi.model.hinges.HingeKind`."""

    @property
    def pose(self) -> Callable[[HingeGeometry, Scalars], Transform]: ...
    @property
    def rate(self) -> Callable[[HingeGeometry, Scalars, Scalars, Scalars], Motion]: ...
    def map(self, h: HingeGeometry, q: Scalars) -> HingeMap: ...


class _Hinge(HingeGeometry, Protocol):
    """A hinge of some kind: `phipsi.model.parts.Hinge`."""

    @property
    def kind(self) -> _Kind: ...


@dataclass(frozen=True)
class Reversal:
    """How a hinge kind is described from the other side: T'(q') = T(q)⁻¹, with the same kind (of
    the kinds in REVERSED: with the kind `forward`).

    Symbols with a prime belong to the reversed hinge. If `v` has no None, a' and tau' are the same
    permutation of a and tau.
    """

    q: tuple[int | None, ...]
    """For each number of q', the index of the equal number of q; None if it depends on several."""
    v: tuple[int | None, ...]
    """For each number of v', the index of the equal number of v; None if it depends on several."""
    alike: tuple[int, ...] = ()
    """The numbers of v' that are rotated into each other: hinge data that are equal for all of them
    are equal for the reversed hinge, too."""
    axes: Callable[[tuple[Vector, ...]], tuple[Vector, ...]] = lambda axes: tuple(
        -u for u in axes[::-1]
    )
    """The axes of the reversed hinge."""
    mixed: Callable[[Scalars], Scalars] | None = None
    """q' as a function of q, if it is not a permutation."""

    def coordinates(self, q: Scalars) -> Scalars:
        """The coordinates q' of the reversed hinge."""
        return self.mixed(q) if self.mixed else [q[i] for i in self.q if i is not None]

    @property
    def _permutation(self) -> list[int] | None:
        """The indices `v`, if v' is a permutation of v."""
        return None if None in self.v else [i for i in self.v if i is not None]

    def velocity(self, h: _Hinge, back: _Hinge, q: Array, v: Array) -> Array:
        """The velocity v' of the reversed hinge `back`: H'* v' = −φ⁻* H* v.

        It is the motion of the parent relative to the child, in the parent's frame.
        """
        if (order := self._permutation) is not None:
            return v[order]
        return self._fitted(h, back, q, h.kind.map(h, q).T @ v, Motion.zero())

    def acceleration(self, h: _Hinge, back: _Hinge, q: Array, v: Array, a: Array) -> Array:
        """The acceleration a' of the reversed hinge `back`.

        H'* a' + Ḣ'* v' = −φ⁻* (H* a + Ḣ* v).
        """
        if (order := self._permutation) is not None:
            return a[order]
        after, q_back = self.velocity(h, back, q, v), self.coordinates(q)
        rate = h.kind.map(h, q).T @ a + h.kind.rate(h, q, v, v)
        return self._fitted(h, back, q, rate, back.kind.rate(back, q_back, after, after))

    def force(self, h: _Hinge, back: _Hinge, q: Array, tau: Array) -> Array:
        """The joint force tau' of the reversed hinge `back`, which does the same power as tau."""
        if (order := self._permutation) is not None:
            return tau[order]
        phi, H = h.kind.pose(h, q), h.kind.map(h, q)
        units = back.kind.map(back, self.coordinates(q)).T.columns
        return np.array([H.fit(-(phi.T @ unit)) @ tau for unit in units], object)

    def _fitted(self, h: _Hinge, back: _Hinge, q: Array, rate: Motion, known: Motion) -> Array:
        """The x with H'* x + known = −φ⁻* rate."""
        H = back.kind.map(back, self.coordinates(q))
        return H.fit(-(h.kind.pose(h, q).inv.T @ rate) - known)
