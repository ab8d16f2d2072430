"""Motion and force vectors with their cross products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from phipsi.spatial.rotation import Scalars, Vector, cross, dot, scalars, zero
from phipsi.typing import Array, Real


@dataclass(frozen=True, slots=True)
class SpatialVector:
    """A pair [angular; linear]; base class of Motion and Force, which cannot be added."""

    angular: Vector
    linear: Vector

    @classmethod
    def zero(cls) -> Self:
        """The zero vector."""
        return cls(zero(), zero())

    @classmethod
    def of(cls, values: Scalars) -> Self:
        """From six scalars [angular; linear]."""
        array = scalars(values)
        return cls(array[:3], array[3:])

    @property
    def array(self) -> Annotated[Array, "6"]:
        """The six scalars [angular; linear]."""
        return np.concatenate((self.angular, self.linear))

    def __add__(self, other: Self) -> Self:
        return type(self)(self.angular + other.angular, self.linear + other.linear)

    def __sub__(self, other: Self) -> Self:
        return type(self)(self.angular - other.angular, self.linear - other.linear)

    def __neg__(self) -> Self:
        return type(self)(-self.angular, -self.linear)

    def __mul__(self, scalar: Real) -> Self:
        return type(self)(self.angular * scalar, self.linear * scalar)


class Force(SpatialVector):
    """f = [moment; force]."""


class Motion(SpatialVector):
    """V = [ω; v], a velocity or an acceleration."""

    def cross(self, other: Motion) -> Motion:
        """ad(self) other = [a×c; b×c + a×d] for self = [a; b], other = [c; d]."""
        a, b = self.angular, self.linear
        return Motion(cross(a, other.angular), cross(b, other.angular) + cross(a, other.linear))

    def cross_force(self, force: Force) -> Force:
        """crf(self) force = −ad(self)* force = [a×m + b×f; a×f]."""
        a, b = self.angular, self.linear
        return Force(cross(a, force.angular) + cross(b, force.linear), cross(a, force.linear))

    def dot(self, force: Force) -> Real:
        """The power of a force on this motion."""
        return dot(self.angular, force.angular) + dot(self.linear, force.linear)
