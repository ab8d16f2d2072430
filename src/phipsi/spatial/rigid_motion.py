"""The motion of a rigid body without its linear velocity, on which no inertial force depends."""

from __future__ import annotations

from dataclasses import dataclass

from phipsi.cached import cached_property
from phipsi.spatial.givens import Rotation
from phipsi.spatial.rotation import Matrix, Vector, cross, matrix, zero
from phipsi.spatial.vectors import Motion


@dataclass(frozen=True, eq=False)
class RigidMotion:
    """ω, ω̇ = α and the classical acceleration a of the origin, in body axes ([BI-c], [UA]).

    The point r of the body has the acceleration a + S r with the tensor S = α~ + ω~ω~.
    """

    omega: Vector
    alpha: Vector
    a: Vector

    @classmethod
    def accelerated(cls, a: Vector) -> RigidMotion:
        """A body that does not rotate, with the acceleration a."""
        return cls(zero(), zero(), a)

    @cached_property
    def S(self) -> Matrix:
        """The acceleration tensor α~ + ω~ω~ (15 operations, computed once and cached)."""
        (x, y, z), (u, v, w) = self.omega, self.alpha
        xx, yy, zz, xy, yz, zx = x * x, y * y, z * z, x * y, y * z, z * x
        return matrix(((-yy - zz, xy - w, zx + v), (xy + w, -zz - xx, yz - u),
                       (zx - v, yz + u, -xx - yy)))  # fmt: skip

    def at(self, r: Vector) -> RigidMotion:
        """The same motion seen at the point r: a + S r."""
        return RigidMotion(self.omega, self.alpha, self.a + self.S @ r)

    def turned(self, R: Rotation | Matrix) -> RigidMotion:
        """The same motion in rotated axes."""
        return RigidMotion(R @ self.omega, R @ self.alpha, R @ self.a)

    def through(self, Delta: Motion, rate: Motion) -> RigidMotion:
        """The motion of the child of a hinge; `self` (⁺) is the parent's motion at the hinge.

        Delta = [δω; δv] is the relative velocity and `rate` its rate, all in the child's axes:
        ω⁺ + δω, α⁺ + ω⁺ × δω + δω̇, a⁺ + (2ω⁺ + δω) × δv + δv̇ ([UA] (2.2), corrected).
        """
        omega = self.omega + Delta.angular
        return RigidMotion(
            omega,
            self.alpha + cross(self.omega, Delta.angular) + rate.angular,
            self.a + cross(self.omega + omega, Delta.linear) + rate.linear,
        )
