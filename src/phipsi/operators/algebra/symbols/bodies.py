"""Symbols of the bodies and hinges of a robot, and of articulated bodies.

The meanings are those of [DL] Table 1 and theory section 3, the readings as an estimation problem
those of [SOA] 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from phipsi.operators.algebra.expression import IDENTITY, ZERO, Expression
from phipsi.operators.algebra.local_action import LocalAction
from phipsi.operators.algebra.spaces import (
    BODY_FORCES,
    BODY_MOTIONS,
    JOINT_FORCES,
    JOINT_RATES,
    NORMAL,
    frame_forces,
)
from phipsi.operators.algebra.symbol import Resolvent
from phipsi.operators.algebra.symbols.define import framed, symbol
from phipsi.typing import Array

if TYPE_CHECKING:
    from phipsi.operators.algebra.system import System

__all__ = [
    "A",
    "B",
    "D",
    "D_half",
    "E_phi",
    "E_psi",
    "G",
    "H",
    "I",
    "J",
    "K",
    "M",
    "Omega",
    "P",
    "P_plus",
    "Upsilon",
    "l",
    "m",
    "mass",
    "phi",
    "phi_tilde",
    "psi",
    "psi_tilde",
    "tau",
    "tau_bar",
    "zero",
]

I = IDENTITY
zero = ZERO
_AT = frame_forces()

# fmt: off
# ---- the robot -----------------------------------------------------------------------------------

H = symbol("H", "H", "H", JOINT_FORCES, BODY_FORCES,
    "hinge map: the joint force is {H f}, the relative velocity {H* β}", "1 or m",
    "measurement operator", diagonal=True,
    action=LocalAction(lambda k, y: k.H @ y, lambda k, y: k.H.T @ y),
    dense=lambda s: _hinge_map(s))
E_phi = symbol("E_phi", "E_φ", r"E_{\phi}", BODY_FORCES, BODY_FORCES,
    "rigid transport of forces from each body to its parent", "1 and m",
    "transition from one station to the next",
    transfer="gather", dense=lambda s: s.blocks(s.inner_parents, s.inner, s.phi[s.inner]))
phi = symbol("phi", "φ", r"\phi", BODY_FORCES, BODY_FORCES,
    "rigid transport of forces, hinges locked, from every body to all its ancestors", "1 and m",
    "propagation of the state without measurements",
    definition=lambda: (I - E_phi).inv,
    resolvent=Resolvent(E_phi, I,
        ("force of a body with all that is outboard of it",
         "state, propagated without measurements"),
        ("motion of a body: its parent's and what its hinge adds",
         "adjoint state, propagated back")), weight=10)
phi_tilde = symbol("phi_tilde", "φ̃", r"\tilde{\phi}", BODY_FORCES, BODY_FORCES,
    "{φ − I}: rigid transport to proper ancestors", "1 and m", "propagation to later stations",
    definition=lambda: phi - I, weight=10)
M = symbol("M", "M", "M", BODY_FORCES, BODY_MOTIONS,
    "spatial inertia of each body about its own origin", "kg, kg·m, kg·m²",
    "covariance of the process noise", symmetric=True, diagonal=True,
    action=LocalAction(lambda k, y: k.M @ y, inverse=lambda k, y: k.M.articulated.inv @ y),
    inertia=True, constant=True, cost=33, dense=lambda s: s.diagonal(s.M))
A = symbol("A", "A", "A", JOINT_FORCES, JOINT_RATES,
    "armature: inertia of the rotors, reflected at the joints", "kg·m² or kg",
    "covariance of the measurement noise", symmetric=True, diagonal=True,
    action=LocalAction(lambda k, y: k.A * y), constant=True, joint_space=True, written_last=True,
    dense=lambda s: s.A)
mass = symbol("mass", "𝓜", r"\mathcal{M}", JOINT_FORCES, JOINT_RATES,
    "joint-space mass matrix", "kg·m² (kg for sliding joints)",
    "covariance of all measurements", symmetric=True,
    definition=lambda: H @ phi @ M @ phi.T @ H.T + A, inverted_by_definition=True,
    joint_space=True, weight=22)
B = framed("B", "B", "B", BODY_FORCES, _AT,
    "carries a force at frames to the bodies they are fixed to", "1 and m", "input at stations",
    transfer="place", constant=True, dense=lambda s, *frames: s.carried(*frames))
J = framed("J", "J", "J", _AT.dual, JOINT_RATES,
    "Jacobian: the motion of frames is {J β}", "1 or m", "smoothing at stations",
    definition=lambda *frames: B(*frames).T @ phi.T @ H.T, joint_space=True,
    weight=11)

# ---- articulated bodies --------------------------------------------------------------------------

P = symbol("P", "P", "P", BODY_FORCES, BODY_MOTIONS,
    "articulated inertia: felt at a body with all hinges outboard of it free", "kg, kg·m, kg·m²",
    "predicted covariance", symmetric=True, diagonal=True,
    definition=lambda: M + E_phi @ P_plus @ E_phi.T,
    action=LocalAction(lambda k, y: k.P @ y, inverse=lambda k, y: k.P.inv @ y), inertia=True,
    cost=33, dense=lambda s: riccati(s, H, A))
P_plus = symbol("P_plus", "P⁺", "P^{+}", BODY_FORCES, BODY_MOTIONS,
    "articulated inertia felt across the free hinge", "kg, kg·m, kg·m²",
    "filtered covariance", symmetric=True, diagonal=True,
    definition=lambda: tau_bar @ P, action=LocalAction(lambda k, y: k.P_plus @ y), inertia=True,
    cost=33)
D = symbol("D", "D", "D", JOINT_FORCES, JOINT_RATES,
    "articulated inertia seen along the hinge, with armature", "kg·m² or kg",
    "covariance of the innovations", symmetric=True, diagonal=True,
    definition=lambda: H @ P @ H.T + A,
    action=LocalAction(lambda k, y: k.D.matrix @ y, inverse=lambda k, y: k.D.solve(y),
        logdet=lambda k: k.D.logdet), joint_space=True)
D_half = symbol("D_half", "D½", r"D^{\frac{1}{2}}", JOINT_FORCES, NORMAL,
    "root of {D}: {D = D½ D½*}, lower triangular per hinge", "kg^½·m or kg^½",
    "root of the covariance of the innovations", diagonal=True,
    root_of=D,
    action=LocalAction(lambda k, y: k.D.root(y), lambda k, y: k.D.root_transpose(y),
        lambda k, y: k.D.root_solve(y), lambda k, y: k.D.root_transpose_solve(y)),
    joint_space=True, dense=lambda s: np.linalg.cholesky(s.value(D)))
G = symbol("G", "G", "G", BODY_FORCES, JOINT_FORCES,
    "gain: the force a unit of joint force sends through the hinge", "1 or 1/m",
    "Kalman gain", diagonal=True,
    definition=lambda: P @ H.T @ D.inv,
    action=LocalAction(lambda k, y: k.G @ y, lambda k, y: k.G.T @ y), cost=6)
K = symbol("K", "K", "K", BODY_FORCES, JOINT_FORCES,
    "gain carried to the parent, {E_φ G}", "1 or 1/m", "gain, propagated to the next station",
    definition=lambda: E_phi @ G)
tau = symbol("tau", "τ", r"\tau", BODY_FORCES, BODY_FORCES,
    "{G H}: the part of a force that the hinge takes out", "1", "correction by a measurement",
    diagonal=True,
    definition=lambda: G @ H)
tau_bar = symbol("tau_bar", "τ̄", r"\bar{\tau}", BODY_FORCES, BODY_FORCES,
    "{I − τ}: the part of a force that passes the free hinge", "1", "what a measurement leaves",
    diagonal=True,
    definition=lambda: I - tau)
E_psi = symbol("E_psi", "E_ψ", r"E_{\psi}", BODY_FORCES, BODY_FORCES,
    "transport of forces through the free hinge to the parent", "1 and m",
    "transition of the filter",
    definition=lambda: E_phi @ tau_bar)
psi = symbol("psi", "ψ", r"\psi", BODY_FORCES, BODY_FORCES,
    "transport of forces through free hinges to all ancestors", "1 and m",
    "propagation of the filter",
    definition=lambda: (I - E_psi).inv,
    resolvent=Resolvent(E_phi, I - G @ H,
        ("force at a body, gathered through the free hinges outboard of it", "predicted mean"),
        ("motion of a body with all hinges free", "adjoint variable (Bryson–Frazier)")), weight=10)
psi_tilde = symbol("psi_tilde", "ψ̃", r"\tilde{\psi}", BODY_FORCES, BODY_FORCES,
    "{ψ − I}: transport through free hinges to proper ancestors", "1 and m",
    "propagation of the filter to later stations",
    definition=lambda: psi - I, weight=10)
Omega = symbol("Omega", "Ω", r"\Omega", BODY_MOTIONS, BODY_FORCES,
    "accelerations of all bodies per unit forces on them", "1/kg, 1/(kg·m), 1/(kg·m²)",
    "covariance of the smoother's adjoint variable", symmetric=True,
    definition=lambda: psi.T @ H.T @ D.inv @ H @ psi, weight=21)
Upsilon = symbol("Upsilon", "Υ", r"\Upsilon", BODY_MOTIONS, BODY_FORCES,
    "acceleration of a body per unit force on it, the diagonal blocks of {Ω}",
    "1/kg, 1/(kg·m), 1/(kg·m²)", "covariance of the adjoint variable at a station",
    symmetric=True, diagonal=True,
    action=LocalAction(lambda k, y: k.Upsilon @ y, inverse=lambda k, y: k.Upsilon.inv @ y),
    cost=33, dense=lambda s: s.on_diagonal(s.value(phi.T @ H.T @ mass.inv @ H @ phi)))
m = symbol("m", "m", "m", JOINT_FORCES, NORMAL,
    "root of the mass matrix, {𝓜 = m m*}", "kg^½·m or kg^½", "colouring filter, normalised",
    definition=lambda: (I + H @ phi @ K) @ D_half, joint_space=True, weight=12)
l = symbol("l", "ℓ", r"\ell", NORMAL, JOINT_FORCES,
    "inverse of {m}, {𝓜⁻¹ = ℓ*}{ℓ}", "1/(kg^½·m) or 1/kg^½", "whitening filter, normalised",
    definition=lambda: D_half.inv @ (I - H @ psi @ K), joint_space=True, weight=12)
# fmt: on

# ---- dense matrices ------------------------------------------------------------------------------


def _hinge_map(s: System) -> Array:
    out = np.zeros((len(s.H), len(s.parents), 6))
    out[np.arange(len(s.H)), s.moves] = s.H
    return out.reshape(len(s.H), 6 * len(s.parents))


def riccati(s: System, hinge_map: Expression, armature: Expression) -> Array:
    """The solution of P = M + E_φ (P − P H* D⁻¹ H P) E_φ*, by iteration.

    It starts with all hinges locked: P is then the composite inertia, which is not smaller than the
    solution, so that D has an inverse. Each step frees the hinges of one more level."""
    own, inertias, carried, H, A = s.values(E_phi, M, phi, hinge_map, armature)
    P = s.on_diagonal(carried @ inertias @ carried.T)
    for _ in s.parents:
        HP = H @ P
        P = inertias + own @ (P - HP.T @ np.linalg.solve(HP @ H.T + A, HP)) @ own.T
        P = (P + P.T) / 2
    return P
