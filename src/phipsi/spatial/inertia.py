"""Spatial inertia of a rigid body and articulated inertia, both stored by symmetric blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from phipsi.spatial.hinge_map import ForceBasis, Gain, MotionBasis
from phipsi.spatial.rotation import (
    Matrix,
    Vector,
    cross,
    scalars,
    skew,
    symmetric,
    symmetric_product,
    zero,
)
from phipsi.spatial.vectors import Force, Motion

_LOWER = np.tril_indices(3)


class Inertia:
    """What every inertia can do: make forces of motions."""

    __slots__ = ()

    def force(self, motion: Motion) -> Force:
        """The force of an acceleration, or the momentum of a velocity."""
        raise NotImplementedError

    @overload
    def __matmul__(self, other: Motion) -> Force: ...
    @overload
    def __matmul__(self, other: MotionBasis) -> ForceBasis: ...
    def __matmul__(self, other: Motion | MotionBasis) -> Force | ForceBasis:
        """M V, column by column for a basis."""
        if isinstance(other, MotionBasis):
            return ForceBasis(tuple(self.force(column) for column in other.columns))
        return self.force(other)


@dataclass(frozen=True, slots=True)
class SpatialInertia(Inertia):
    """M = [[J, h~], [−h~, m I]]: mass m [kg], first moment h = m·com [kg·m], J [kg·m²] about the
    origin. Ten numbers, linear in the dynamics."""

    mass: Any
    moment: Vector
    J: Matrix

    @classmethod
    def zero(cls) -> SpatialInertia:
        """A massless body."""
        return cls(0.0, zero(), symmetric(*[0.0] * 6))

    @classmethod
    def of(cls, mass: Any, com: Any = (0.0, 0.0, 0.0), inertia: Any = None) -> SpatialInertia:
        """From mass, centre of mass and the 3 × 3 inertia about the centre of mass."""
        com = scalars(com)
        central = scalars(np.zeros((3, 3)) if inertia is None else inertia)
        at_com = cls(mass, zero(), symmetric_product(central, scalars(np.eye(3))))
        return at_com.shifted(com)

    @classmethod
    def of_parameters(cls, values: Any) -> SpatialInertia:
        """From [m, h, J_xx, J_xy, J_xz, J_yy, J_yz, J_zz] (conventions.py)."""
        m, hx, hy, hz, xx, xy, xz, yy, yz, zz = values
        return cls(m, scalars((hx, hy, hz)), symmetric(xx, xy, yy, xz, yz, zz))

    @property
    def parameters(self) -> Any:
        """The ten parameters [m, h, J_xx, J_xy, J_xz, J_yy, J_yz, J_zz]."""
        J = self.J
        return scalars(
            [self.mass, *self.moment, J[0, 0], J[1, 0], J[2, 0], J[1, 1], J[2, 1], J[2, 2]]
        )

    def rotated(self, R: Matrix) -> SpatialInertia:
        """The same body in turned axes."""
        return SpatialInertia(self.mass, R @ self.moment, symmetric_product(R @ self.J, R.T))

    def shifted(self, l: Vector) -> SpatialInertia:
        """The same body about an origin at −l: J − l~h~ − h~l~ − m l~l~."""
        moment = self.moment + self.mass * l
        lower = [
            -(l[i] * self.moment[j] + moment[i] * l[j]) for i in range(3) for j in range(i + 1)
        ]
        trace = (l @ self.moment) + (l @ moment)
        for diagonal in (0, 2, 5):
            lower[diagonal] = lower[diagonal] + trace
        return SpatialInertia(self.mass, moment, self.J + symmetric(*lower))

    @property
    def articulated(self) -> ArticulatedInertia:
        """The same inertia as the start of an articulated one."""
        m = self.mass
        return ArticulatedInertia(self.J, skew(self.moment), symmetric(m, 0.0, m, 0.0, 0.0, m))

    def force(self, motion: Motion) -> Force:
        """M V = [J ω + h × v; m v − h × ω]."""
        w, v, h = motion.angular, motion.linear, self.moment
        return Force(self.J @ w + cross(h, v), self.mass * v - cross(h, w))

    def __add__(self, other: SpatialInertia) -> SpatialInertia:
        return SpatialInertia(self.mass + other.mass, self.moment + other.moment, self.J + other.J)


@dataclass(frozen=True, slots=True)
class ArticulatedInertia(Inertia):
    """P = [[J, C], [C*, M]] with J and M symmetric by construction."""

    J: Matrix
    C: Matrix
    M: Matrix

    def rotated(self, R: Matrix) -> ArticulatedInertia:
        """The same inertia in turned axes."""
        return ArticulatedInertia(
            symmetric_product(R @ self.J, R.T),
            R @ self.C @ R.T,
            symmetric_product(R @ self.M, R.T),
        )

    def shifted(self, l: Vector) -> ArticulatedInertia:
        """The same inertia about an origin at −l: C' = C + l~M, J' = J + l~C* − C'l~."""
        lx = skew(l)
        C = self.C + lx @ self.M
        lower = (lx @ self.C.T - C @ lx)[_LOWER]
        return ArticulatedInertia(self.J + symmetric(*lower), C, self.M)

    def released(self, G: Gain) -> ArticulatedInertia:
        """P⁺ = P − G H P = P − U D⁻¹ U*, one rank at a time and so symmetric."""
        J, C, M = self.J, self.C, self.M
        for u, inverse in G.ranks():
            a, b = u.angular, u.linear
            sa, sb = a * inverse, b * inverse
            J = J - symmetric(*np.outer(sa, a)[_LOWER])
            C = C - np.outer(sa, b)
            M = M - symmetric(*np.outer(sb, b)[_LOWER])
        return ArticulatedInertia(J, C, M)

    @property
    def matrix(self) -> Any:
        """The dense 6 × 6 matrix."""
        return np.block([[self.J, self.C], [self.C.T, self.M]])

    def force(self, motion: Motion) -> Force:
        """P V = [J ω + C v; C* ω + M v]."""
        w, v = motion.angular, motion.linear
        return Force(self.J @ w + self.C @ v, self.C.T @ w + self.M @ v)

    def __add__(self, other: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.J + other.J, self.C + other.C, self.M + other.M)
