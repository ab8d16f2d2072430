"""The spatial operators as dense matrices: slow, and the oracle of everything fast.

Block (p, i) of E_φ is the φ of body i towards its parent p; φ = (I − E_φ)⁻¹ by dense algebra, with
no recursion in it ([SOA] section 3).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from phipsi.model import Robot
from phipsi.spatial import Force
from phipsi.sweeps import forest


class Dense(NamedTuple):
    """H (nv × 6nb), E_phi and phi (6nb × 6nb), M (6nb × 6nb), A (nv × nv, diagonal)."""

    H: np.ndarray
    E_phi: np.ndarray
    phi: np.ndarray
    M: np.ndarray
    A: np.ndarray

    @property
    def mass(self) -> np.ndarray:
        """𝓜 = H φ M φ* H* + A."""
        return self.H @ self.phi @ self.M @ self.phi.T @ self.H.T + self.A


def dense(robot: Robot, q: Any) -> Dense:
    """The dense operators of a robot at one configuration q (nq,)."""
    x = forest(robot, np.array(q, dtype=object))
    n, unit = robot.nb, [Force.of(e) for e in np.eye(6)]
    H, E, M = np.zeros((robot.nv, 6 * n)), np.zeros((6 * n, 6 * n)), np.zeros((6 * n, 6 * n))
    for i, (k, p) in enumerate(zip(x.records, robot.parents, strict=True)):
        own = slice(6 * i, 6 * i + 6)
        for row, column in enumerate(k.H.T.columns, start=k.hinge.v.start):
            H[row, own] = column.array
        M[own, own] = k.M.articulated.matrix
        if p >= 0:
            E[6 * p : 6 * p + 6, own] = np.stack([(k.phi @ f).array for f in unit], axis=1)
    A = np.diag(robot.joint_data("armature"))
    return Dense(H, E, np.linalg.inv(np.eye(6 * n) - E), M, A)
