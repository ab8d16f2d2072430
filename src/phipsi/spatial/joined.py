"""The inertias on both sides of a hinge, added at the body that it moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from phipsi.spatial.factor import Pivot
from phipsi.spatial.hinge_map import Gain, HingeMap
from phipsi.spatial.inertia import ArticulatedInertia
from phipsi.spatial.vectors import Force, Motion


@dataclass(frozen=True, slots=True)
class Joined:
    """Λ = P + S of a body: P is the inertia outboard of the hinge H, whose gain is G, and P⁺ what
    remains of it when the hinge is free; S is the inertia inboard of the hinge."""

    P: ArticulatedInertia
    S: ArticulatedInertia
    H: HingeMap
    G: Gain
    P_plus: ArticulatedInertia

    def motion(self, z: Force, z_plus: Force, rest: Force, eps: Any) -> Motion:
        """Λ⁻¹ (z + r), z a force beyond the hinge and z⁺ = z + Gε what it leaves of that, r the
        force of the rest, with H (z⁺ + r) = 0 where there is no armature.

        S H* = 0 there. If the freedoms are coordinates besides, they are known from the others,
        x − H* (D⁻¹ε + G* x), and these solve (P⁺ + S) x = z⁺ + r: five equations for one freedom,
        none for six.
        """
        if not self.G.eliminates:
            return (self.P + self.S).inv @ (z + rest)
        left = [i for i in range(6) if i not in self.G.free]
        Lambda = (self.P_plus + self.S).matrix[np.ix_(left, left)]
        x = np.full(6, 0.0, object)
        x[left] = Pivot(Lambda).solve((z_plus + rest).array[left])
        others = Motion(x[:3], x[3:])
        return others - self.H.T @ (self.G.D.solve(eps) + self.G.T @ others)
