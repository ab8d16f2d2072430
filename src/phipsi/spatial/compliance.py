"""Compliance: the inverse of an inertia, which maps forces to motions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from phipsi.spatial.factor import Inverse, Pivot
from phipsi.spatial.hinge_map import ForceBasis, Gain, HingeMap, MotionBasis
from phipsi.spatial.inertia import ArticulatedInertia
from phipsi.spatial.rotation import Matrix, symmetric
from phipsi.spatial.vectors import Force, Motion

if TYPE_CHECKING:
    from phipsi.spatial.transform import Transform


@dataclass(frozen=True, slots=True)
class Compliance:
    """Υ = [[angular, mixed], [mixed*, linear]] with both diagonal blocks symmetric by construction:
    the acceleration of a body by a force on it, positive semidefinite."""

    angular: Matrix
    mixed: Matrix
    linear: Matrix

    @classmethod
    def zero(cls) -> Compliance:
        """The compliance of what cannot move, such as the world."""
        nothing = symmetric(*[0.0] * 6)
        return cls(nothing, nothing, nothing)

    def carried(self, phi: Transform) -> Compliance:
        """φ* Υ φ: the parent's compliance at the child's origin, in the child's axes.

        With the halves of motions swapped φ* is φ of the inverse transform, and so this is the
        congruence of an articulated inertia: a shift, then a rotation.
        """
        swapped = ArticulatedInertia(self.linear, self.mixed.T, self.angular)
        moved = swapped.shifted(-phi.position).rotated(phi.R.T)
        return Compliance(moved.M, moved.C.T, moved.J)

    def yielding(self, H: HingeMap) -> Compliance:
        """Υ + H*H: a unit compliance more along every freedom of a hinge."""
        Y = self.matrix
        for a in (h.array for h in H.T.columns):
            for row in range(6):
                for j in range(row + 1):
                    Y[row, j] = Y[j, row] = Y[row, j] + a[row] * a[j]
        return Compliance(Y[:3, :3], Y[:3, 3:], Y[3:, 3:])

    def through(self, G: Gain, H: HingeMap) -> Compliance:
        """Υ = τ̄*Υ⁺τ̄ + H*D⁻¹H, τ̄ = I − GH: beyond a hinge, this being Υ⁺ ([SOA] Application 2).

        Υ⁺ − Σ (h y* + y h*) over the freedoms, y the columns of Υ⁺G − H*N with N + N* = G*Υ⁺G + D⁻¹
        and N lower triangular: symmetric, and cheap where freedoms are coordinates. Where all six
        are, without armature, τ̄ = 0.
        """
        plus = Compliance.zero() if len(G.free) == 6 else self
        Y = plus.matrix
        for i, (h, unit) in enumerate(zip(H.T.columns, np.eye(len(H.T.columns)), strict=True)):
            w = plus @ (G @ unit)
            N = G.T @ w + G.D.solve(unit)
            N[i], N[:i] = 0.5 * N[i], 0.0
            a, b = h.array, (w - H.T @ N).array
            for row in range(6):
                for j in range(row + 1):
                    Y[row, j] = Y[j, row] = Y[row, j] - (a[row] * b[j] + b[row] * a[j])
        return Compliance(Y[:3, :3], Y[:3, 3:], Y[3:, 3:])

    @property
    def matrix(self) -> Any:
        """The dense 6 × 6 matrix."""
        return np.block([[self.angular, self.mixed], [self.mixed.T, self.linear]])

    @property
    def inv(self) -> Inverse[Motion, Force]:
        """Υ⁻¹ where there is one, as on a free base: the operational-space inertia."""
        return Inverse(Pivot(self.matrix), Force)

    @overload
    def __matmul__(self, other: Force) -> Motion: ...
    @overload
    def __matmul__(self, other: ForceBasis) -> MotionBasis: ...
    def __matmul__(self, other: Force | ForceBasis) -> Motion | MotionBasis:
        """Υ f, column by column for a basis."""
        if isinstance(other, ForceBasis):
            return MotionBasis(tuple(self @ force for force in other.columns))
        m, f = other.angular, other.linear
        return Motion(self.angular @ m + self.mixed @ f, self.mixed.T @ m + self.linear @ f)

    def __add__(self, other: Compliance) -> Compliance:
        return Compliance(
            self.angular + other.angular, self.mixed + other.mixed, self.linear + other.linear
        )
