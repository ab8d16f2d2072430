"""Rigid transforms and the operator φ they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from phipsi.spatial.hinge_map import ForceBasis
from phipsi.spatial.inertia import ArticulatedInertia, SpatialInertia
from phipsi.spatial.rotation import Matrix, Vector, cross, identity, scalars, zero
from phipsi.spatial.vectors import Force, Motion


@dataclass(frozen=True, slots=True)
class Transform:
    """The pose (R, l) of a child frame in its parent's: φ = [[R, l~R], [0, R]]."""

    rotation: Matrix
    position: Vector

    @classmethod
    def identity(cls) -> Transform:
        """The two frames coincide."""
        return cls(identity(), zero())

    @classmethod
    def of(cls, rotation: Any = None, position: Any = (0.0, 0.0, 0.0)) -> Transform:
        """From a 3 × 3 rotation (default identity) and a position."""
        return cls(identity() if rotation is None else scalars(rotation), scalars(position))

    @property
    def matrix(self) -> Any:
        """The homogeneous 4 × 4 matrix."""
        out = scalars(np.eye(4))
        out[:3, :3], out[:3, 3] = self.rotation, self.position
        return out

    @property
    def inv(self) -> Transform:
        """The pose of the parent frame in the child's, φ⁻¹."""
        transpose = self.rotation.T
        return Transform(transpose, -(transpose @ self.position))

    @property
    def T(self) -> TransposedTransform:
        """φ*: carries motions from parent to child."""
        return TransposedTransform(self)

    @overload
    def __matmul__(self, other: Force) -> Force: ...
    @overload
    def __matmul__(self, other: ForceBasis) -> ForceBasis: ...
    @overload
    def __matmul__(self, other: Transform) -> Transform: ...
    def __matmul__(self, other: Force | ForceBasis | Transform) -> Any:
        """φ f: the child's forces at the parent's origin; or the composition of two transforms."""
        if isinstance(other, ForceBasis):
            return ForceBasis(tuple(self @ force for force in other.columns))
        if isinstance(other, Transform):
            return Transform(self.rotation @ other.rotation, self.point(other.position))
        force = self.rotation @ other.linear
        return Force(self.rotation @ other.angular + cross(self.position, force), force)

    def point(self, p: Vector) -> Vector:
        """The point p of the child frame, in the parent's."""
        return self.position + self.rotation @ p

    @overload
    def congruence(self, inertia: SpatialInertia) -> SpatialInertia: ...
    @overload
    def congruence(self, inertia: ArticulatedInertia) -> ArticulatedInertia: ...
    def congruence(self, inertia: SpatialInertia | ArticulatedInertia) -> Any:
        """φ P φ*: the child's inertia seen from the parent."""
        return inertia.rotated(self.rotation).shifted(self.position)

    @property
    def aligned(self) -> Transform:
        """The same rotation about a common origin."""
        return Transform(self.rotation, zero())


@dataclass(frozen=True, slots=True)
class TransposedTransform:
    """φ* of a transform."""

    phi: Transform

    def __matmul__(self, motion: Motion) -> Motion:
        """φ* V: the parent's motion at the child's origin, in the child's axes."""
        transpose = self.phi.rotation.T
        linear = motion.linear - cross(self.phi.position, motion.angular)
        return Motion(transpose @ motion.angular, transpose @ linear)
