"""Rigid transforms and the operator φ they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from phipsi.spatial.givens import Rotation
from phipsi.spatial.hinge_map import ForceBasis
from phipsi.spatial.inertia import ArticulatedInertia, SpatialInertia
from phipsi.spatial.rigid_motion import RigidMotion
from phipsi.spatial.rotation import Matrix, Vector, cross, identity, scalars, zero
from phipsi.spatial.vectors import Force, Motion


@dataclass(frozen=True, slots=True)
class Transform:
    """The pose (R, l) of a child frame in its parent's: φ = [[R, l~R], [0, R]].

    R may be given as a 3 × 3 matrix or as a factored `Rotation`.
    """

    R: Rotation | Matrix
    position: Vector

    def __post_init__(self) -> None:
        if not isinstance(self.R, Rotation):
            object.__setattr__(self, "R", Rotation.of(self.R))

    @classmethod
    def identity(cls) -> Transform:
        """The two frames coincide."""
        return cls(identity(), zero())

    @classmethod
    def of(cls, rotation: Any = None, position: Any = (0.0, 0.0, 0.0)) -> Transform:
        """From a 3 × 3 rotation (default identity) and a position."""
        return cls(identity() if rotation is None else scalars(rotation), scalars(position))

    @property
    def rotation(self) -> Matrix:
        """The 3 × 3 matrix of R."""
        return self.R.matrix

    @property
    def matrix(self) -> Any:
        """The homogeneous 4 × 4 matrix."""
        out = scalars(np.eye(4))
        out[:3, :3], out[:3, 3] = self.rotation, self.position
        return out

    @property
    def inv(self) -> Transform:
        """The pose of the parent frame in the child's, φ⁻¹."""
        return Transform(self.R.T, -(self.R.T @ self.position))

    def relative(self, other: Transform) -> Transform:
        """The pose in this frame of another that has the same parent, φ⁻¹φ'."""
        back = self.R.T
        return Transform(back @ other.R, back @ (other.position - self.position))

    def followed(self, other: Transform) -> Transform:
        """The composition with another transform, its rotation not multiplied out."""
        return Transform(self.R.followed(other.R), self.point(other.position))

    @property
    def turned(self) -> Transform:
        """The same pose, its rotation of numbers as Givens rotations about z, x and z."""
        return Transform(self.R.euler_zxz, self.position)

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
            return Transform(self.R @ other.R, self.point(other.position))
        force = self.R @ other.linear
        return Force(self.R @ other.angular + cross(self.position, force), force)

    def point(self, p: Vector) -> Vector:
        """The point p of the child frame, in the parent's."""
        return self.position + self.R @ p

    @overload
    def congruence(self, inertia: SpatialInertia) -> SpatialInertia: ...
    @overload
    def congruence(self, inertia: ArticulatedInertia) -> ArticulatedInertia: ...
    def congruence(self, inertia: SpatialInertia | ArticulatedInertia) -> Any:
        """φ P φ*: the child's inertia seen from the parent."""
        return inertia.rotated(self.R).shifted(self.position)

    def solve(self, force: Force) -> Force:
        """φ⁻¹ f: the parent's force at the child's origin, in the child's axes; moved, then turned,
        for a position on the parent has more zeros than one on the child."""
        R, f = self.R.T, force.linear
        return Force(R @ (force.angular - cross(self.position, f)), R @ f)

    def solve_congruence(self, inertia: ArticulatedInertia) -> ArticulatedInertia:
        """φ⁻¹ P φ⁻*: the parent's inertia seen from the child."""
        return inertia.shifted(-self.position).rotated(self.R.T)

    @property
    def aligned(self) -> Transform:
        """The same rotation about a common origin."""
        return Transform(self.R, zero())


@dataclass(frozen=True, slots=True)
class TransposedTransform:
    """φ* of a transform."""

    phi: Transform

    @overload
    def __matmul__(self, motion: Motion) -> Motion: ...
    @overload
    def __matmul__(self, motion: RigidMotion) -> RigidMotion: ...
    def __matmul__(self, motion: Motion | RigidMotion) -> Any:
        """φ* V: the parent's motion at the child's origin, in the child's axes."""
        R, l = self.phi.R.T, self.phi.position
        if isinstance(motion, RigidMotion):
            return motion.at(l).turned(R)
        return Motion(R @ motion.angular, R @ (motion.linear - cross(l, motion.angular)))
