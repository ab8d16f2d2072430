"""Rigid transforms and the operator φ they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, overload

import numpy as np

from phipsi.spatial.givens import Rotation
from phipsi.spatial.hinge_map import ForceBasis
from phipsi.spatial.inertia import ArticulatedInertia, SpatialInertia
from phipsi.spatial.rigid_motion import RigidMotion
from phipsi.spatial.rotation import Matrix, Vector, cross, identity, scalars, zero
from phipsi.spatial.vectors import Force, Motion
from phipsi.typing import ArrayLike, Pose


@dataclass(frozen=True, slots=True, init=False)
class Transform:
    """The pose (R, l) of a child frame in its parent's frame: φ = [[R, l~R], [0, R]].

    Parameters
    ----------
    R : (3, 3) or Rotation
        The rotation from child to parent axes, an array of scalars or factored.
    position : (3,)
        The origin l of the child frame in the parent frame [m], an array of scalars.
    """

    R: Rotation
    position: Vector

    def __init__(self, R: Rotation | Matrix, position: Vector) -> None:
        object.__setattr__(self, "R", R if isinstance(R, Rotation) else Rotation.of(R))
        object.__setattr__(self, "position", position)

    @classmethod
    def identity(cls) -> Transform:
        """The pose of a frame that coincides with its parent.

        Returns
        -------
        Transform
            R = I, l = 0.
        """
        return cls(identity(), zero())

    @classmethod
    def of(
        cls,
        rotation: Annotated[ArrayLike, "3 3"] | None = None,
        position: Annotated[ArrayLike, "3"] = (0.0, 0.0, 0.0),
    ) -> Transform:
        """The pose with a given rotation and position.

        Parameters
        ----------
        rotation : (3, 3), optional
            The rotation matrix from child to parent axes; by default the identity.
        position : (3,), optional
            The origin of the child frame in the parent frame [m].

        Returns
        -------
        Transform
            The pose.
        """
        return cls(identity() if rotation is None else scalars(rotation), scalars(position))

    @property
    def rotation(self) -> Matrix:
        """The 3 × 3 matrix of R."""
        return self.R.matrix

    @property
    def matrix(self) -> Pose:
        """The homogeneous 4 × 4 matrix."""
        out = scalars(np.eye(4))
        out[:3, :3], out[:3, 3] = self.rotation, self.position
        return out

    @property
    def inv(self) -> Transform:
        """The pose of the parent frame in the child frame: φ⁻¹."""
        return Transform(self.R.T, -(self.R.T @ self.position))

    def relative(self, other: Transform) -> Transform:
        """The pose in this frame of another frame with the same parent: φ⁻¹φ'.

        Parameters
        ----------
        other
            The pose φ' of the other frame in the common parent.

        Returns
        -------
        Transform
            The relative pose.
        """
        back = self.R.T
        return Transform(back @ other.R, back @ (other.position - self.position))

    def followed(self, other: Transform) -> Transform:
        """The composition φφ', like `@` but with its rotation kept as factors if possible.

        Parameters
        ----------
        other
            The pose φ' of a frame in this frame.

        Returns
        -------
        Transform
            The pose of that frame in the parent of this one.
        """
        return Transform(self.R.followed(other.R), self.point(other.position))

    @property
    def turned(self) -> Transform:
        """The same pose; a rotation of numbers becomes Givens rotations about z, x and z."""
        return Transform(self.R.euler_zxz, self.position)

    @property
    def T(self) -> TransposedTransform:
        """φ*, which maps motions from parent to child."""
        return TransposedTransform(self)

    @overload
    def __matmul__(self, other: Force) -> Force: ...
    @overload
    def __matmul__(self, other: ForceBasis) -> ForceBasis: ...
    @overload
    def __matmul__(self, other: Transform) -> Transform: ...
    def __matmul__(self, other: Force | ForceBasis | Transform) -> Force | ForceBasis | Transform:
        """φ f: a force on the child as seen at the parent; or the composition of two transforms."""
        if isinstance(other, ForceBasis):
            return ForceBasis(tuple(self @ force for force in other.columns))
        if isinstance(other, Transform):
            return Transform(self.R @ other.R, self.point(other.position))
        force = self.R @ other.linear
        return Force(self.R @ other.angular + cross(self.position, force), force)

    def point(self, p: Vector) -> Vector:
        """A point given in the child frame, in the parent frame: l + R p.

        Parameters
        ----------
        p : (3,)
            The point in the child frame [m].

        Returns
        -------
        (3,)
            The point in the parent frame [m].
        """
        return self.position + self.R @ p

    @overload
    def congruence(self, inertia: SpatialInertia) -> SpatialInertia: ...
    @overload
    def congruence(self, inertia: ArticulatedInertia) -> ArticulatedInertia: ...
    def congruence(
        self, inertia: SpatialInertia | ArticulatedInertia
    ) -> SpatialInertia | ArticulatedInertia:
        """An inertia in the child frame, as seen from the parent frame: φ P φ*.

        Parameters
        ----------
        inertia
            The inertia P, about the child's origin and in the child's axes.

        Returns
        -------
        SpatialInertia or ArticulatedInertia
            The inertia about the parent's origin, in the parent's axes.
        """
        return inertia.rotated(self.R).shifted(self.position)

    def solve(self, force: Force) -> Force:
        """A force in the parent frame, as seen from the child frame: φ⁻¹ f.

        The force is shifted first and then rotated, because the position of the child on its parent
        has more zeros than that of the parent on its child.

        Parameters
        ----------
        force
            The force about the parent's origin, in the parent's axes.

        Returns
        -------
        Force
            The force about the child's origin, in the child's axes.
        """
        R, f = self.R.T, force.linear
        return Force(R @ (force.angular - cross(self.position, f)), R @ f)

    def solve_congruence(self, inertia: ArticulatedInertia) -> ArticulatedInertia:
        """An inertia in the parent frame, as seen from the child frame: φ⁻¹ P φ⁻*.

        Parameters
        ----------
        inertia
            The inertia P, about the parent's origin and in the parent's axes.

        Returns
        -------
        ArticulatedInertia
            The inertia about the child's origin, in the child's axes.
        """
        return inertia.shifted(-self.position).rotated(self.R.T)

    @property
    def aligned(self) -> Transform:
        """The same rotation, with the origins coinciding."""
        return Transform(self.R, zero())


@dataclass(frozen=True, slots=True)
class TransposedTransform:
    """φ* of a transform."""

    phi: Transform

    @overload
    def __matmul__(self, motion: Motion) -> Motion: ...
    @overload
    def __matmul__(self, motion: RigidMotion) -> RigidMotion: ...
    def __matmul__(self, motion: Motion | RigidMotion) -> Motion | RigidMotion:
        """φ* V: the parent's motion at the child's origin, in the child's axes."""
        R, l = self.phi.R.T, self.phi.position
        if isinstance(motion, RigidMotion):
            return motion.at(l).turned(R)
        return Motion(R @ motion.angular, R @ (motion.linear - cross(l, motion.angular)))
