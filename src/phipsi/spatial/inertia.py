"""Spatial inertia of a rigid body and articulated inertia, both stored by symmetric blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, overload

import numpy as np

from phipsi.spatial.factor import Inverse, Pivot
from phipsi.spatial.givens import Rotation
from phipsi.spatial.hinge_map import ForceBasis, Gain, HingeMap, MotionBasis
from phipsi.spatial.rigid_motion import RigidMotion
from phipsi.spatial.rotation import (
    Matrix,
    Scalars,
    Vector,
    cross,
    scalars,
    skew,
    symmetric,
    symmetric_sum,
    vector,
    zero,
)
from phipsi.spatial.vectors import Force, Motion
from phipsi.typing import Array, ArrayLike, Real, SpatialMatrix


class Inertia:
    """Base class of inertias, which map motions to forces."""

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
    origin. The equations of motion are linear in these ten numbers."""

    mass: Real
    moment: Vector
    J: Matrix

    @classmethod
    def zero(cls) -> SpatialInertia:
        """A massless body."""
        return cls(0.0, zero(), symmetric(*[0.0] * 6))

    @classmethod
    def of(
        cls,
        mass: Real,
        com: Annotated[ArrayLike, "3"] = (0.0, 0.0, 0.0),
        inertia: Annotated[ArrayLike, "3 3"] | None = None,
    ) -> SpatialInertia:
        """From mass, centre of mass and the 3 × 3 inertia about the centre of mass."""
        l = scalars(com)
        central = scalars(np.zeros((3, 3)) if inertia is None else inertia)
        lower = (central[i, j] + 0.0 for i in range(3) for j in range(i + 1))
        return cls(mass, zero(), symmetric(*lower)).shifted(l)

    @classmethod
    def of_parameters(cls, values: Scalars) -> SpatialInertia:
        """From [m, h, J_xx, J_xy, J_xz, J_yy, J_yz, J_zz] (conventions.py)."""
        m, hx, hy, hz, xx, xy, xz, yy, yz, zz = values
        return cls(m, scalars((hx, hy, hz)), symmetric(xx, xy, yy, xz, yz, zz))

    @property
    def parameters(self) -> Annotated[Array, "10"]:
        """The ten parameters [m, h, J_xx, J_xy, J_xz, J_yy, J_yz, J_zz]."""
        J = self.J
        return scalars(
            [self.mass, *self.moment, J[0, 0], J[1, 0], J[2, 0], J[1, 1], J[2, 1], J[2, 2]]
        )

    def rotated(self, R: Rotation) -> SpatialInertia:
        """The same body in rotated axes."""
        return SpatialInertia(self.mass, R @ self.moment, R.symmetric(self.J))

    def shifted(self, l: Vector) -> SpatialInertia:
        """The same body about an origin at −l: J − l~h~ − h~l~ − m l~l~."""
        h, moment, J = self.moment, self.moment + self.mass * l, self.J
        x, y, z = (l[i] * (h[i] + moment[i]) for i in range(3))
        yx, zx, zy = (l[i] * h[j] + moment[i] * l[j] for i, j in ((1, 0), (2, 0), (2, 1)))
        shifted = symmetric(
            J[0, 0] + y + z, J[1, 0] - yx, J[1, 1] + z + x,
            J[2, 0] - zx, J[2, 1] - zy, J[2, 2] + x + y,
        )  # fmt: skip
        return SpatialInertia(self.mass, moment, shifted)

    @property
    def articulated(self) -> ArticulatedInertia:
        """The same inertia as an articulated inertia, the start of the recursion."""
        m = self.mass
        return ArticulatedInertia(self.J, skew(self.moment), symmetric(m, 0.0, m, 0.0, 0.0, m))

    @property
    def pseudo(self) -> Matrix:
        """Σ = ½ tr(J) I − J, the second moment ∫ r r* dm."""
        J = self.J
        half = 0.5 * (J[0, 0] + J[1, 1] + J[2, 2])
        return symmetric(
            half - J[0, 0], -J[1, 0], half - J[1, 1], -J[2, 0], -J[2, 1], half - J[2, 2]
        )

    def inertial(self, X: RigidMotion) -> Force:
        """The inertial force [h × a + (SΣ)ᵛ; m a + S h] of the motion X, (B)ᵛ_x = B_zy − B_yz.

        It is M α + b in classical form ([BI-c], [UA]).
        """
        S, Sigma, h = X.S, self.pseudo, self.moment
        moment = [
            (S[k, k] - S[j, j]) * Sigma[j, k] + S[k, j] * Sigma[j, j] - S[j, k] * Sigma[k, k]
            + S[k, i] * Sigma[i, j] - S[j, i] * Sigma[i, k]
            for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
        ]  # fmt: skip
        return Force(vector(*moment) + cross(h, X.a), self.mass * X.a + S @ h)

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

    @classmethod
    def of(cls, matrix: Annotated[ArrayLike, "6 6"]) -> ArticulatedInertia:
        """From a symmetric 6 × 6 matrix, of which the lower triangle is read."""
        P = scalars(matrix) + 0.0
        J, M = (symmetric(*(B[i, j] for i in range(3) for j in range(i + 1)))
                for B in (P[:3, :3], P[3:, 3:]))  # fmt: skip
        return cls(J, P[3:, :3].T, M)

    @property
    def articulated(self) -> ArticulatedInertia:
        """The inertia itself, so that a recursion may start from either class of inertia."""
        return self

    def rotated(self, R: Rotation) -> ArticulatedInertia:
        """The same inertia in rotated axes."""
        return ArticulatedInertia(R.symmetric(self.J), R.general(self.C), R.symmetric(self.M))

    def shifted(self, l: Vector) -> ArticulatedInertia:
        """The same inertia about an origin at −l: C' = C + l~M, J' = J + l~C* − C'l~."""
        (x, y, z), J, C, M = l, self.J, self.C, self.M
        N = C + np.stack([y * M[2] - z * M[1], z * M[0] - x * M[2], x * M[1] - y * M[0]])
        shifted = symmetric(
            J[0, 0] + y * (C[0, 2] + N[0, 2]) - z * (C[0, 1] + N[0, 1]),
            J[1, 0] + z * (N[0, 0] - C[1, 1]) + y * C[1, 2] - x * N[0, 2],
            J[1, 1] + z * (C[1, 0] + N[1, 0]) - x * (C[1, 2] + N[1, 2]),
            J[2, 0] + y * (C[2, 2] - N[0, 0]) - z * C[2, 1] + x * N[0, 1],
            J[2, 1] + x * (N[1, 1] - C[2, 2]) + z * C[2, 0] - y * N[1, 0],
            J[2, 2] + x * (C[2, 1] + N[2, 1]) - y * (C[2, 0] + N[2, 0]),
        )
        return ArticulatedInertia(shifted, N, M)

    def gain(self, H: HingeMap, A: Scalars, p: Scalars | None = None) -> Gain:
        """G = P H* D⁻¹, D = H P H* + A for the armature A (r numbers, or r × r).

        With p (r numbers, 1 or 0) it is the gain of the freedoms with p = 1.
        """
        return Gain.of(self @ H.T, H, A, p)

    def released(self, G: Gain) -> ArticulatedInertia:
        """P⁺ = P − G H P = P − U D⁻¹ U*, by rank-one updates, which keep it symmetric.

        P⁺H* = G A is exactly zero along coordinate axes that are freedoms without armature.
        """
        known = G.along if len(G.U.columns) == 1 else G.free
        if len(G.free) == 6:
            return SpatialInertia.zero().articulated
        P = self.matrix
        left = [i for i in range(6) if i not in known]
        for u, inverse in G.ranks():
            w = u.array
            for n, i in enumerate(left):
                scaled = w[i] * inverse
                for j in left[: n + 1]:
                    P[i, j] = P[j, i] = P[i, j] - scaled * w[j]
        for i in known:
            sign, a, p = G.along[i]
            held = G.U.columns[0].array * (sign * (1.0 - p)) if i not in G.free else 0.0
            P[i, :] = P[:, i] = 0.0 if i in G.free else G.column.array * (sign * a) + held
        return ArticulatedInertia(P[:3, :3], P[:3, 3:], P[3:, 3:])

    def turning(self, Delta: Motion) -> ArticulatedInertia:
        """crf(Δ)P − P ad(Δ): the rate of an inertia that moves with the velocity Δ."""
        w, v = skew(Delta.angular), skew(Delta.linear)
        J, M, C = w @ self.J + v @ self.C.T, w @ self.M, w @ self.C + v @ self.M
        return ArticulatedInertia(symmetric_sum(J), C - self.C @ w, symmetric_sum(M))

    def released_rate(
        self, G: Gain, U: ForceBasis, D: Annotated[Array, "r r"]
    ) -> ArticulatedInertia:
        """Ṗ⁺ = Ṗ − U̇G* − GU̇* + GḊG*, where `self` is Ṗ, `U` is the rate of PH* and `D` that of D.

        Symmetric by construction, and exactly zero where P⁺ is zero in every configuration.
        """
        P, left = self.matrix, [i for i in range(6) if i not in G.free]
        for i in G.free:
            P[i, :] = P[:, i] = 0.0
        g, u = G.matrix, U.matrix
        y = u - 0.5 * (g @ D)
        for n, i in enumerate(left):
            for j in left[: n + 1]:
                P[i, j] = P[j, i] = P[i, j] - y[i] @ g[j] - g[i] @ y[j]
        return ArticulatedInertia(P[:3, :3], P[:3, 3:], P[3:, 3:])

    @property
    def matrix(self) -> SpatialMatrix:
        """The dense 6 × 6 matrix."""
        return np.block([[self.J, self.C], [self.C.T, self.M]])

    @property
    def inv(self) -> Inverse[Force, Motion]:
        """P⁻¹, if P is positive definite."""
        return Inverse(Pivot(self.matrix), Motion)

    def force(self, motion: Motion) -> Force:
        """P V = [J ω + C v; C* ω + M v]."""
        w, v = motion.angular, motion.linear
        return Force(self.J @ w + self.C @ v, self.C.T @ w + self.M @ v)

    def __add__(self, other: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.J + other.J, self.C + other.C, self.M + other.M)

    def __sub__(self, other: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.J - other.J, self.C - other.C, self.M - other.M)
