"""The sum of the articulated inertias on both sides of a hinge, at the body that it moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phipsi.spatial.factor import Pivot
from phipsi.spatial.hinge_map import Gain, HingeMap
from phipsi.spatial.inertia import ArticulatedInertia
from phipsi.spatial.vectors import Force, Motion
from phipsi.typing import Array


@dataclass(frozen=True, slots=True)
class Joined:
    """Λ = P + S of a body.

    P is the articulated inertia outboard of the hinge with map H and gain G, P⁺ is P transmitted
    through the hinge, and S is the articulated inertia inboard of the hinge.
    """

    P: ArticulatedInertia
    S: ArticulatedInertia
    H: HingeMap
    G: Gain
    P_plus: ArticulatedInertia

    def motion(self, z: Force, z_plus: Force, rest: Force, eps: Array) -> Motion:
        """Λ⁻¹ (z + r), with z the force outboard of the hinge and r the force inboard (`rest`).

        z⁺ = z + Gε is z transmitted through the hinge; without armature H (z⁺ + r) = 0 and
        S H* = 0. If in addition the freedoms are coordinate axes, only the other coordinates x are
        solved for, (P⁺ + S) x = z⁺ + r (five equations for a hinge with one freedom, none for
        six), and the motion is x − H* (D⁻¹ε + G* x).
        """
        if not self.G.eliminates:
            return (self.P + self.S).inv @ (z + rest)
        left = [i for i in range(6) if i not in self.G.free]
        Lambda = (self.P_plus + self.S).matrix[np.ix_(left, left)]
        x = np.full(6, 0.0, object)
        x[left] = Pivot(Lambda).solve((z_plus + rest).array[left])
        others = Motion(x[:3], x[3:])
        return others - self.H.T @ (self.G.D.solve(eps) + self.G.T @ others)
