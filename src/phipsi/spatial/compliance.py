"""Compliance: the inverse of an inertia, which maps forces to motions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np

from phipsi.spatial.factor import Inverse, Pivot, SemiPivot
from phipsi.spatial.hinge_map import ForceBasis, Gain, HingeMap, MotionBasis
from phipsi.spatial.inertia import ArticulatedInertia
from phipsi.spatial.rotation import Matrix, select, symmetric
from phipsi.spatial.vectors import Force, Motion
from phipsi.typing import Real, SpatialMatrix

if TYPE_CHECKING:
    from phipsi.spatial.transform import Transform


@dataclass(frozen=True, slots=True)
class Compliance:
    """Υ = [[angular, mixed], [mixed*, linear]], which maps a force on a body to its acceleration.

    It is positive semidefinite; both diagonal blocks are symmetric by construction.
    """

    angular: Matrix
    mixed: Matrix
    linear: Matrix

    @classmethod
    def zero(cls) -> Compliance:
        """The compliance of a fixed body, such as the world."""
        nothing = symmetric(*[0.0] * 6)
        return cls(nothing, nothing, nothing)

    def carried(self, phi: Transform) -> Compliance:
        """φ* Υ φ: the parent's compliance at the child's origin, in the child's axes.

        If the angular and linear halves of motions are swapped, φ* becomes φ of the inverse
        transform. So this is the congruence of an articulated inertia: a shift, then a rotation.
        """
        swapped = ArticulatedInertia(self.linear, self.mixed.T, self.angular)
        moved = swapped.shifted(-phi.position).rotated(phi.R.T)
        return Compliance(moved.M, moved.C.T, moved.J)

    def yielding(self, H: HingeMap) -> Compliance:
        """Υ + H*H: adds a unit compliance along every freedom of a hinge."""
        Y = self.matrix
        for a in (h.array for h in H.T.columns):
            for row in range(6):
                for j in range(row + 1):
                    Y[row, j] = Y[j, row] = Y[row, j] + a[row] * a[j]
        return Compliance(Y[:3, :3], Y[:3, 3:], Y[3:, 3:])

    def through(self, G: Gain, H: HingeMap) -> Compliance:
        """The compliance outboard of a hinge; `self` is Υ⁺, inboard of it ([SOA] Application 2).

        Υ = τ̄*Υ⁺τ̄ + H*D⁻¹H with τ̄ = I − GH. Computed as Υ⁺ − Σ (h y* + y h*) over the freedoms:
        h are the columns of H* and y those of Υ⁺G − H*N, with N lower triangular and
        N + N* = G*Υ⁺G + D⁻¹. This is symmetric, and cheap if the freedoms are coordinate axes. If
        all six coordinate axes are freedoms without armature, τ̄ = 0.
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
    def matrix(self) -> SpatialMatrix:
        """The dense 6 × 6 matrix."""
        return np.block([[self.angular, self.mixed], [self.mixed.T, self.linear]])

    @property
    def inv(self) -> Inverse[Motion, Force]:
        """Υ⁻¹, the operational-space inertia, if Υ is regular (as on a free base)."""
        return Inverse(Pivot(self.matrix), Force)

    @property
    def inertia(self) -> tuple[ArticulatedInertia, Real]:
        """Υ⁻¹, NaN if Υ is singular; and whether it is regular."""
        pivot = SemiPivot(self.matrix)
        X = np.full((6, 6), 0.0, object)
        for j, unit in enumerate(np.eye(6)):
            for i, x in enumerate(pivot.solve(unit)[j:], j):
                X[i, j] = X[j, i] = select(pivot.regular, x, np.nan)
        return ArticulatedInertia(X[:3, :3], X[:3, 3:], X[3:, 3:]), pivot.regular

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
