"""Symbols of robots with active and passive joints ([UA]).

Active joints have prescribed accelerations, passive ones known forces. The passive-arm set has the
relations of `bodies` with only the passive hinges released; `PASSIVE` maps one set to the other.
"""

from __future__ import annotations

import numpy as np

from phipsi.operators.algebra.expression import SYMBOLS, Expression, Leaf
from phipsi.operators.algebra.local_action import LocalAction
from phipsi.operators.algebra.spaces import (
    ACTIVE_FORCES,
    ACTIVE_RATES,
    BODY_FORCES,
    BODY_MOTIONS,
    PASSIVE_FORCES,
    PASSIVE_RATES,
    frame_forces,
)
from phipsi.operators.algebra.symbol import Resolvent
from phipsi.operators.algebra.symbols.bodies import *
from phipsi.operators.algebra.symbols.bodies import riccati
from phipsi.operators.algebra.symbols.define import framed, symbol

__all__ = [
    "J_D",
    "J_G",
    "PASSIVE",
    "A_a",
    "A_p",
    "D_p",
    "E_psi_p",
    "G_p",
    "H_a",
    "H_p",
    "K_p",
    "Omega_p",
    "P_p",
    "P_p_plus",
    "S_aa",
    "S_ap",
    "S_pp",
    "mass_aa",
    "mass_ap",
    "mass_pp",
    "proj_a",
    "proj_p",
    "psi_p",
    "psi_p_tilde",
    "tau_bar_p",
]


def _of_passive(own: Leaf) -> Expression:
    """The definition of the passive counterpart of a symbol: its own, with the passive hinges."""
    return own.definition.replaced({**PASSIVE, tau: G_p @ H_p})


# fmt: off
H_a = symbol("H_a", "H_a", "H_{a}", ACTIVE_FORCES, BODY_FORCES,
    "rows of the hinge map that are active: their acceleration is prescribed", "1 or m",
    "states that are not measured", diagonal=True,
    action=LocalAction(lambda k, y: k.H.masked(1.0 - k.passive) @ y,
        lambda k, y: k.H.masked(1.0 - k.passive).T @ y),
    dense=lambda s: s.value(H)[~s.released], split=True)
H_p = symbol("H_p", "H_p", "H_{p}", PASSIVE_FORCES, BODY_FORCES,
    "rows of the hinge map that are passive: their force is known", "1 or m",
    "measurement operator", diagonal=True,
    passive_of=H, split=True, action=LocalAction(lambda k, y: k.H_p @ y, lambda k, y: k.H_p.T @ y),
    dense=lambda s: s.value(H)[s.released])
A_a = symbol("A_a", "A_a", "A_{a}", ACTIVE_FORCES, ACTIVE_RATES,
    "armature of the active joints", "kg·m² or kg", symmetric=True, diagonal=True,
    action=LocalAction(lambda k, y: k.A * (1.0 - k.passive) * y), constant=True, written_last=True,
    dense=lambda s: s.A[np.ix_(~s.released, ~s.released)], split=True)
A_p = symbol("A_p", "A_p", "A_{p}", PASSIVE_FORCES, PASSIVE_RATES,
    "armature of the passive joints", "kg·m² or kg", "covariance of the measurement noise",
    symmetric=True, diagonal=True,
    passive_of=A, split=True, action=LocalAction(lambda k, y: k.A * k.passive * y), constant=True,
    written_last=True, dense=lambda s: s.A[np.ix_(s.released, s.released)])
mass_aa = symbol("mass_aa", "𝓜_aa", r"\mathcal{M}_{aa}", ACTIVE_FORCES, ACTIVE_RATES,
    "active block of the mass matrix", "kg·m² or kg", symmetric=True,
    definition=lambda: H_a @ phi @ M @ phi.T @ H_a.T + A_a, inverted_by_definition=True,
    split=True)
mass_ap = symbol("mass_ap", "𝓜_ap", r"\mathcal{M}_{ap}", ACTIVE_FORCES, PASSIVE_RATES,
    "block of the mass matrix that couples active and passive joints", "kg·m² or kg",
    definition=lambda: H_a @ phi @ M @ phi.T @ H_p.T, split=True)
mass_pp = symbol("mass_pp", "𝓜_pp", r"\mathcal{M}_{pp}", PASSIVE_FORCES, PASSIVE_RATES,
    "passive block of the mass matrix", "kg·m² or kg", symmetric=True,
    passive_of=mass, split=True, definition=lambda: _of_passive(mass), inverted_by_definition=True)
P_p = symbol("P_p", "P_p", "P_{p}", BODY_FORCES, BODY_MOTIONS,
    "articulated inertia with only the passive hinges free", "kg, kg·m, kg·m²",
    "predicted covariance", symmetric=True, diagonal=True,
    passive_of=P, split=True, definition=lambda: _of_passive(P),
    action=LocalAction(lambda k, y: k.P_p @ y, inverse=lambda k, y: k.P_p.inv @ y), inertia=True,
    cost=33, dense=lambda s: riccati(s, H_p, A_p))
P_p_plus = symbol("P_p_plus", "P_p⁺", "P_{p}^{+}", BODY_FORCES, BODY_MOTIONS,
    "{P_p} felt across the hinge", "kg, kg·m, kg·m²", "filtered covariance",
    symmetric=True, diagonal=True,
    passive_of=P_plus, split=True, definition=lambda: _of_passive(P_plus),
    action=LocalAction(lambda k, y: k.P_p_plus @ y), inertia=True, cost=33)
D_p = symbol("D_p", "D_p", "D_{p}", PASSIVE_FORCES, PASSIVE_RATES,
    "{P_p} seen along the passive hinges, with armature", "kg·m² or kg",
    "covariance of the innovations", symmetric=True, diagonal=True,
    passive_of=D, split=True, definition=lambda: _of_passive(D),
    action=LocalAction(lambda k, y: (k.D_p.matrix @ y) * k.passive, inverse=lambda k, y:
        k.D_p.solve(y), logdet=lambda k: k.D_p.logdet))
G_p = symbol("G_p", "G_p", "G_{p}", BODY_FORCES, PASSIVE_FORCES,
    "gain of the passive hinges", "1 or 1/m", "Kalman gain", diagonal=True,
    passive_of=G, split=True, definition=lambda: _of_passive(G),
    action=LocalAction(lambda k, y: k.G_p @ y, lambda k, y: k.G_p.T @ y), cost=6)
K_p = symbol("K_p", "K_p", "K_{p}", BODY_FORCES, PASSIVE_FORCES,
    "gain of the passive hinges, carried to the parent", "1 or 1/m",
    "gain, propagated to the next station",
    passive_of=K, split=True, definition=lambda: _of_passive(K))
tau_bar_p = symbol("tau_bar_p", "τ̄_p", r"\bar{\tau}_{p}", BODY_FORCES, BODY_FORCES,
    "the part of a force that passes the hinge, free if passive", "1",
    "what a measurement leaves", diagonal=True,
    passive_of=tau_bar, split=True, definition=lambda: _of_passive(tau_bar))
E_psi_p = symbol("E_psi_p", "E_ψp", r"E_{\psi_{p}}", BODY_FORCES, BODY_FORCES,
    "transport of forces to the parent, through the hinge if passive", "1 and m",
    "transition of the filter",
    passive_of=E_psi, split=True, definition=lambda: _of_passive(E_psi))
psi_p = symbol("psi_p", "ψ_p", r"\psi_{p}", BODY_FORCES, BODY_FORCES,
    "transport of forces to all ancestors, passive hinges free, active ones locked", "1 and m",
    "propagation of the filter",
    passive_of=psi, split=True, definition=lambda: _of_passive(psi),
    resolvent=Resolvent(E_phi, I - G_p @ H_p,
        ("force at a body, gathered through the hinges outboard of it, free if passive",
         "predicted mean"),
        ("motion of a body with the passive hinges free", "adjoint variable (Bryson–Frazier)")),
    weight=10)
psi_p_tilde = symbol("psi_p_tilde", "ψ̃_p", r"\tilde{\psi}_{p}", BODY_FORCES, BODY_FORCES,
    "{ψ_p − I}", "1 and m", "propagation of the filter to later stations",
    passive_of=psi_tilde, split=True, definition=lambda: _of_passive(psi_tilde), weight=10)
Omega_p = symbol("Omega_p", "Ω_p", r"\Omega_{p}", BODY_MOTIONS, BODY_FORCES,
    "accelerations of bodies per unit forces, active hinges locked", "1/kg, 1/(kg·m), 1/(kg·m²)",
    "covariance of the smoother's adjoint variable", symmetric=True,
    passive_of=Omega, split=True, definition=lambda: _of_passive(Omega), weight=21)
S_aa = symbol("S_aa", "S_aa", "S_{aa}", ACTIVE_FORCES, ACTIVE_RATES,
    "inertia that the active joints feel, the passive ones free", "kg·m² or kg",
    "covariance of the active forces, the passive ones known", symmetric=True,
    definition=lambda: mass_aa - mass_ap @ mass_pp.inv @ mass_ap.T, inverted_by_definition=True,
    split=True)
S_ap = symbol("S_ap", "S_ap", "S_{ap}", ACTIVE_FORCES, PASSIVE_FORCES,
    "coupling: active joint forces by which passive ones are felt", "1, m or 1/m",
    "gain from the passive forces to the best estimate of the active ones",
    definition=lambda: mass_ap @ mass_pp.inv, split=True)
S_pp = symbol("S_pp", "S_pp", "S_{pp}", PASSIVE_RATES, PASSIVE_FORCES,
    "accelerations of the passive joints by their forces, the active ones locked",
    "1/(kg·m²) or 1/kg", "information of the passive forces", symmetric=True,
    definition=lambda: mass_pp.inv, inverted_by_definition=True, split=True)
J_D = symbol("J_D", "J_D", "J_{D}", PASSIVE_RATES, ACTIVE_RATES,
    "disturbance Jacobian: accelerations of the passive joints by those of the active ones",
    "1, m or 1/m",
    definition=lambda: -mass_pp.inv @ mass_ap.T, split=True)
J_G = framed("J_G", "J_G", "J^{G}", frame_forces().dual, ACTIVE_RATES,
    "generalized Jacobian: accelerations of frames by the active joints, the passive ones free",
    "1 or m",
    framed=True,
    definition=lambda *frames: B(*frames).T @ phi.T @ (H_a.T - H_p.T @ mass_pp.inv @ mass_ap.T),
    split=True)
proj_p = symbol("proj_p", "𝒯_p", r"\mathcal{T}_{p}", BODY_MOTIONS, BODY_MOTIONS,
    "what passive hinges take from the accelerations of bodies as they give way, a projection "
    "without armature", "1 and m",
    definition=lambda: Omega_p @ M, split=True)
proj_a = symbol("proj_a", "𝒯̄", r"\bar{\mathcal{T}}", BODY_MOTIONS, BODY_MOTIONS,
    "accelerations of bodies with the passive hinges free, from those with the hinges held, a "
    "projection without armature", "1 and m",
    definition=lambda: I - Omega_p @ M, split=True)
# fmt: on

PASSIVE: dict[Expression, Expression] = {
    row.passive_of: Leaf.of(row) for row in SYMBOLS.values() if row.passive_of is not None
}
"""Operators that depend on which hinges are free, and their counterparts with only the passive ones
free."""
