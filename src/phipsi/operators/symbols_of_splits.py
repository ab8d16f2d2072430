"""Symbols of robots with active and passive joints ([UA]).

Active joints have prescribed accelerations, passive ones known forces. The passive-arm set has the
relations of `symbols_of_bodies` with only the passive hinges released; `PASSIVE` maps one set to
the other.
"""

from __future__ import annotations

from phipsi.operators.expressions import Expression, Leaf
from phipsi.operators.spaces import (
    ACTIVE_FORCES,
    ACTIVE_RATES,
    BODY_FORCES,
    BODY_MOTIONS,
    PASSIVE_FORCES,
    PASSIVE_RATES,
    frame_forces,
)
from phipsi.operators.symbols_of_bodies import *
from phipsi.operators.table import DEFINITIONS, SYMBOLS, framed, symbol

__all__ = [
    "J_D",
    "J_G",
    "PASSIVE",
    "SPLIT",
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

# fmt: off
H_a = symbol("H_a", "H_a", "H_{a}", ACTIVE_FORCES, BODY_FORCES,
    "rows of the hinge map that are active: their acceleration is prescribed", "1 or m",
    "states that are not measured", diagonal=True)
H_p = symbol("H_p", "H_p", "H_{p}", PASSIVE_FORCES, BODY_FORCES,
    "rows of the hinge map that are passive: their force is known", "1 or m",
    "measurement operator", diagonal=True)
A_a = symbol("A_a", "A_a", "A_{a}", ACTIVE_FORCES, ACTIVE_RATES,
    "armature of the active joints", "kg·m² or kg", symmetric=True, diagonal=True)
A_p = symbol("A_p", "A_p", "A_{p}", PASSIVE_FORCES, PASSIVE_RATES,
    "armature of the passive joints", "kg·m² or kg", "covariance of the measurement noise",
    symmetric=True, diagonal=True)
mass_aa = symbol("mass_aa", "𝓜_aa", r"\mathcal{M}_{aa}", ACTIVE_FORCES, ACTIVE_RATES,
    "active block of the mass matrix", "kg·m² or kg", symmetric=True)
mass_ap = symbol("mass_ap", "𝓜_ap", r"\mathcal{M}_{ap}", ACTIVE_FORCES, PASSIVE_RATES,
    "block of the mass matrix that couples active and passive joints", "kg·m² or kg")
mass_pp = symbol("mass_pp", "𝓜_pp", r"\mathcal{M}_{pp}", PASSIVE_FORCES, PASSIVE_RATES,
    "passive block of the mass matrix", "kg·m² or kg", symmetric=True)
P_p = symbol("P_p", "P_p", "P_{p}", BODY_FORCES, BODY_MOTIONS,
    "articulated inertia with only the passive hinges free", "kg, kg·m, kg·m²",
    "predicted covariance", symmetric=True, diagonal=True)
P_p_plus = symbol("P_p_plus", "P_p⁺", "P_{p}^{+}", BODY_FORCES, BODY_MOTIONS,
    "P_p felt across the hinge", "kg, kg·m, kg·m²", "filtered covariance",
    symmetric=True, diagonal=True)
D_p = symbol("D_p", "D_p", "D_{p}", PASSIVE_FORCES, PASSIVE_RATES,
    "P_p seen along the passive hinges, with armature", "kg·m² or kg",
    "covariance of the innovations", symmetric=True, diagonal=True)
G_p = symbol("G_p", "G_p", "G_{p}", BODY_FORCES, PASSIVE_FORCES,
    "gain of the passive hinges", "1 or 1/m", "Kalman gain", diagonal=True)
K_p = symbol("K_p", "K_p", "K_{p}", BODY_FORCES, PASSIVE_FORCES,
    "gain of the passive hinges, carried to the parent", "1 or 1/m",
    "gain, propagated to the next station")
tau_bar_p = symbol("tau_bar_p", "τ̄_p", r"\bar{\tau}_{p}", BODY_FORCES, BODY_FORCES,
    "the part of a force that passes the hinge, free if passive", "1",
    "what a measurement leaves", diagonal=True)
E_psi_p = symbol("E_psi_p", "E_ψp", r"E_{\psi_{p}}", BODY_FORCES, BODY_FORCES,
    "transport of forces to the parent, through the hinge if passive", "1 and m",
    "transition of the filter")
psi_p = symbol("psi_p", "ψ_p", r"\psi_{p}", BODY_FORCES, BODY_FORCES,
    "transport of forces to all ancestors, passive hinges free, active ones locked", "1 and m",
    "propagation of the filter")
psi_p_tilde = symbol("psi_p_tilde", "ψ̃_p", r"\tilde{\psi}_{p}", BODY_FORCES, BODY_FORCES,
    "ψ_p − I", "1 and m", "propagation of the filter to later stations")
Omega_p = symbol("Omega_p", "Ω_p", r"\Omega_{p}", BODY_MOTIONS, BODY_FORCES,
    "accelerations of bodies per unit forces, active hinges locked", "1/kg, 1/(kg·m), 1/(kg·m²)",
    "covariance of the smoother's adjoint variable", symmetric=True)
S_aa = symbol("S_aa", "S_aa", "S_{aa}", ACTIVE_FORCES, ACTIVE_RATES,
    "inertia that the active joints feel, the passive ones free", "kg·m² or kg",
    "covariance of the active forces, the passive ones known", symmetric=True)
S_ap = symbol("S_ap", "S_ap", "S_{ap}", ACTIVE_FORCES, PASSIVE_FORCES,
    "coupling: active joint forces by which passive ones are felt", "1, m or 1/m",
    "gain from the passive forces to the best estimate of the active ones")
S_pp = symbol("S_pp", "S_pp", "S_{pp}", PASSIVE_RATES, PASSIVE_FORCES,
    "accelerations of the passive joints by their forces, the active ones locked",
    "1/(kg·m²) or 1/kg", "information of the passive forces", symmetric=True)
J_D = symbol("J_D", "J_D", "J_{D}", PASSIVE_RATES, ACTIVE_RATES,
    "disturbance Jacobian: accelerations of the passive joints by those of the active ones",
    "1, m or 1/m")
J_G = framed("J_G", "J_G", "J^{G}", frame_forces().dual, ACTIVE_RATES,
    "generalized Jacobian: accelerations of frames by the active joints, the passive ones free",
    "1 or m")
proj_p = symbol("proj_p", "𝒯_p", r"\mathcal{T}_{p}", BODY_MOTIONS, BODY_MOTIONS,
    "what passive hinges take from the accelerations of bodies as they give way, a projection "
    "without armature", "1 and m")
proj_a = symbol("proj_a", "𝒯̄", r"\bar{\mathcal{T}}", BODY_MOTIONS, BODY_MOTIONS,
    "accelerations of bodies with the passive hinges free, from those with the hinges held, a "
    "projection without armature", "1 and m")
# fmt: on

SPLIT = SYMBOLS.keys() & {*__all__}
"""The names of these symbols, which tell active joints from passive ones."""

DEFINITIONS.update(
    mass_aa=lambda: H_a @ phi @ M @ phi.T @ H_a.T + A_a,
    mass_ap=lambda: H_a @ phi @ M @ phi.T @ H_p.T,
    S_aa=lambda: mass_aa - mass_ap @ mass_pp.inv @ mass_ap.T,
    S_ap=lambda: mass_ap @ mass_pp.inv,
    S_pp=lambda: mass_pp.inv,
    J_D=lambda: -mass_pp.inv @ mass_ap.T,
    J_G=lambda *frames: B(*frames).T @ phi.T @ (H_a.T - H_p.T @ mass_pp.inv @ mass_ap.T),
    proj_p=lambda: Omega_p @ M,
    proj_a=lambda: I - Omega_p @ M,
)

PASSIVE: dict[Expression, Expression] = {
    H: H_p, A: A_p, mass: mass_pp, P: P_p, P_plus: P_p_plus, D: D_p, G: G_p, K: K_p,
    tau_bar: tau_bar_p, E_psi: E_psi_p, psi: psi_p, psi_tilde: psi_p_tilde, Omega: Omega_p,
}  # fmt: skip
"""The operators that depend on which hinges are free, and those with only the passive ones free."""


def _define_passive(own: Leaf, passive: Leaf) -> None:
    DEFINITIONS[passive.symbol.name] = lambda: own.definition.replaced({**PASSIVE, tau: G_p @ H_p})


for _own, _passive in PASSIVE.items():
    assert isinstance(_own, Leaf)
    assert isinstance(_passive, Leaf)
    if _own.symbol.name in DEFINITIONS:
        _define_passive(_own, _passive)
