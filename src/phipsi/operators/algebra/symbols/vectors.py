"""Vectors: forces and motions of joints and bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phipsi.operators.algebra.spaces import (
    BODY_FORCES,
    BODY_MOTIONS,
    JOINT_FORCES,
    JOINT_RATES,
    NORMAL,
    SCALARS,
)
from phipsi.operators.algebra.symbols.bodies import *
from phipsi.operators.algebra.symbols.define import symbol
from phipsi.typing import Array

if TYPE_CHECKING:
    from phipsi.operators.algebra.system import System

__all__ = [
    "C",
    "T",
    "V",
    "a",
    "alpha",
    "b",
    "beta",
    "beta_dot",
    "eps",
    "f",
    "kappa",
    "nu",
    "u",
    "xi",
]

# fmt: off
T = symbol("T", "T", "T", JOINT_FORCES, SCALARS, "joint forces", "N·m or N", "measurements",
    given=True, joint_space=True)
beta = symbol("beta", "β", r"\beta", JOINT_RATES, SCALARS, "joint rates", "rad/s or m/s",
    given=True, joint_space=True)
beta_dot = symbol("beta_dot", "β̇", r"\dot{\beta}", JOINT_RATES, SCALARS,
    "joint accelerations", "rad/s² or m/s²", "weights of the smoother",
    given=True, joint_space=True)
C = symbol("C", "C", "C", JOINT_FORCES, SCALARS,
    "bias force: joint forces at zero joint acceleration", "N·m or N", "mean of the measurements",
    definition=lambda: H @ phi @ (M @ phi.T @ a + b), joint_space=True)
V = symbol("V", "V", "V", BODY_MOTIONS, SCALARS, "spatial velocities", "rad/s, m/s",
    definition=lambda: phi.T @ H.T @ beta)
alpha = symbol("alpha", "α", r"\alpha", BODY_MOTIONS, SCALARS,
    "spatial accelerations", "rad/s², m/s²", "adjoint variable",
    definition=lambda: phi.T @ (H.T @ beta_dot + a))
a = symbol("a", "a", "a", BODY_MOTIONS, SCALARS, "Coriolis accelerations", "rad/s², m/s²",
    "known input of the adjoint",
    dense=lambda s: _coriolis(s))
b = symbol("b", "b", "b", BODY_FORCES, SCALARS,
    "gyroscopic forces, less gravity and external forces", "N·m, N", "known input",
    dense=lambda s: _gyroscopic(s))
f = symbol("f", "f", "f", BODY_FORCES, SCALARS, "forces between bodies, at the inboard hinge",
    "N·m, N", "state",
    definition=lambda: phi @ (M @ alpha + b))
u = symbol("u", "u", "u", BODY_FORCES, SCALARS,
    "bias load: forces that the bodies take at zero joint acceleration", "N·m, N", "known input",
    definition=lambda: M @ phi.T @ a + b)
xi = symbol("xi", "ξ", r"\xi", JOINT_RATES, SCALARS,
    "total rates: joint rates with what the motion of the inboard body adds", "rad/s or m/s",
    definition=lambda: (I + H @ phi @ K).T @ beta)
nu = symbol("nu", "ν", r"\nu", NORMAL, SCALARS, "normalised total rates", "kg^½·m/s",
    definition=lambda: m.T @ beta)
kappa = symbol("kappa", "κ", r"\kappa", JOINT_FORCES, SCALARS,
    "working moments: joint forces less what outboard ones deliver", "N·m or N", "innovations",
    definition=lambda: (I - H @ psi @ K) @ T)
eps = symbol("eps", "ε", r"\varepsilon", NORMAL, SCALARS, "normalised working moments",
    "N·m or N per root of an inertia", "normalised innovations",
    definition=lambda: l @ T)
# fmt: on

# ---- dense matrices ------------------------------------------------------------------------------


def _coriolis(s: System) -> Array:
    """ad(V)H*β + Ḣ*β."""
    velocities, own, rates = s.values(V, H.T @ beta, beta)
    if s.hinge_rate is None:
        raise s.unknown(a)
    return s.motion_cross(velocities) @ own + s.hinge_rate(rates[:, 0]).reshape(-1, 1)


def _gyroscopic(s: System) -> Array:
    """crf(V)MV less external forces and weight."""
    if s.load is None:
        raise s.unknown(b)
    velocities, momenta = s.values(V, M @ V)
    return -s.motion_cross(velocities).T @ momenta - s.load.reshape(-1, 1)
