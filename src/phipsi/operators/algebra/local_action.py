"""Block-diagonal operators, applied to the part of a vector that belongs to one body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from phipsi.spatial import Force, Motion, MotionBasis
from phipsi.spatial import rotation as rot
from phipsi.sweeps import Record
from phipsi.typing import Array, Real

Action = Callable[[Record, Any], Any]
"""A function of the record k of a body and of its part y of a vector: a `Force`, a `Motion`, or an
array with a number for each freedom of the hinge, depending on the space."""


@dataclass(frozen=True)
class LocalAction:
    """How the block of one body is applied; symmetric operators leave out the adjoint."""

    apply: Action
    adjoint: Action | None = None
    inverse: Action | None = None
    inverse_adjoint: Action | None = None
    logdet: Callable[[Record], Real] | None = None
    """log det of the block."""


def spinning(k: Record) -> Motion:
    """The rotation of a body about the origin of the frame that users see."""
    w = k.V.angular
    return Motion(w, rot.cross(k.origin.linear, w))


def hinge_map_rate(k: Record, rates: Array) -> MotionBasis:
    """Ḣ* of the hinge of a body that moves with the rates β."""
    units = np.eye(len(k.A))
    return MotionBasis(tuple(k.hinge.kind.rate(k.hinge, k.q, rates, unit) for unit in units))


def gain_rate(k: Record, y: Array) -> Force:
    """Ġ y = (U̇ − GḊ)D⁻¹ y."""
    x = k.D.solve(y)
    return k.U_dot @ x - k.G @ (k.D_dot @ x)


def root_rate_transpose(k: Record, y: Array) -> Array:
    """d(D½*)/dt y, column by column of d(D½)/dt."""
    columns = (k.D.root_rate(k.D_dot, unit) for unit in np.eye(len(y)))
    return np.array([column @ y for column in columns], object)


def gain_rate_transpose(k: Record, y: Motion) -> Array:
    """Ġ* y."""
    return k.D.solve(k.U_dot.transpose_dot(y) - k.D_dot @ (k.G.T @ y))
