"""Symbols of rates of change along a motion, in the axes of the bodies ([DL] Table 4).

The definitions hold for every hinge, with armature, on forests; the closed forms of the paper, for
hinges of one freedom, are among the identities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from phipsi.operators.algebra.expression import SYMBOLS, Expression, Leaf
from phipsi.operators.algebra.local_action import (
    LocalAction,
    gain_rate,
    gain_rate_transpose,
    hinge_map_rate,
    root_rate_transpose,
    spinning,
)
from phipsi.operators.algebra.spaces import (
    BODY_FORCES,
    BODY_MOTIONS,
    JOINT_FORCES,
    JOINT_RATES,
    NORMAL,
    SCALARS,
)
from phipsi.operators.algebra.symbols.bodies import *
from phipsi.operators.algebra.symbols.define import framed, symbol
from phipsi.operators.algebra.symbols.vectors import *
from phipsi.spatial import HingeMap
from phipsi.typing import Array

if TYPE_CHECKING:
    from phipsi.operators.algebra.system import System

__all__ = [
    "DOTTED",
    "C_nu",
    "C_xi",
    "D_dot",
    "D_half_dot",
    "Delta_cross",
    "E_phi_dot",
    "E_psi_dot",
    "G_dot",
    "H_cross",
    "H_dot",
    "K_dot",
    "P_dot",
    "V_cross",
    "gamma",
    "lam",
    "m_dot",
    "mass_by",
    "mass_dot",
    "phi_dot",
    "psi_dot",
    "spin",
    "tau_bar_dot",
]


def _product_rule() -> Expression:
    """d/dt of HφK."""
    return H_dot @ phi @ K + H @ phi_dot @ K + H @ phi @ K_dot


def _half_of_mass_dot() -> Expression:
    return (H_dot @ phi + H @ phi_dot) @ M @ phi.T @ H.T


def _half_of_mass_by(*hinge: str) -> Expression:
    return H @ phi @ H_cross(*hinge) @ phi @ M @ phi.T @ H.T


def _seen() -> Expression:
    """Half of the rate of P⁺ in the axes of the parent, without the term τ̄Ṗτ̄*."""
    return (Delta_cross - G @ H_dot) @ P_plus


# fmt: off
Delta_cross = symbol("Delta_cross", "Δ̃", r"\tilde{\Delta}", BODY_FORCES, BODY_FORCES,
    "force cross product with the relative velocity {H* β} of each hinge", "rad/s, m/s",
    diagonal=True,
    action=LocalAction(lambda k, y: k.Delta.cross_force(y), lambda k, y: -k.Delta.cross(y)),
    cost=6, dense=lambda s: s.force_cross(s.value(H.T @ beta)))
V_cross = symbol("V_cross", "Ṽ", r"\tilde{V}", BODY_MOTIONS, BODY_MOTIONS,
    "motion cross product with the velocity of each body", "rad/s, m/s", diagonal=True,
    action=LocalAction(lambda k, y: k.V.cross(y), lambda k, y: -k.V.cross_force(y)), cost=27,
    dense=lambda s: s.motion_cross(s.value(V)))
spin = symbol("spin", "ω̃", r"\tilde{\omega}", BODY_FORCES, BODY_FORCES,
    "cross product with the angular velocity of each body, of moments and of forces", "rad/s",
    diagonal=True,
    action=LocalAction(lambda k, y: spinning(k).cross_force(y), lambda k, y: -spinning(k).cross(y)),
    reads_origin=True, cost=18,
    dense=lambda s: s.motion_cross(s.value(V).reshape(-1, 6) * (1, 1, 1, 0, 0, 0)))
H_dot = symbol("H_dot", "Ḣ", r"\dot{H}", JOINT_FORCES, BODY_FORCES,
    "rate of the hinge map, zero where the axes are fixed in the body", "1/s or m/s",
    diagonal=True,
    rate_of=H,
    action=LocalAction(lambda k, y: HingeMap(hinge_map_rate(k, k.v)) @ y, lambda k, y: k.H_rate(y)),
    moving=True)
E_phi_dot = symbol("E_phi_dot", "Ė_φ", r"\dot{E}_{\phi}", BODY_FORCES, BODY_FORCES,
    "rate of {E_φ}", "1/s and m/s",
    rate_of=E_phi, definition=lambda: E_phi @ Delta_cross)
phi_dot = symbol("phi_dot", "φ̇", r"\dot{\phi}", BODY_FORCES, BODY_FORCES, "rate of {φ}",
    "1/s and m/s",
    rate_of=phi, definition=lambda: phi @ E_phi_dot @ phi)
P_dot = symbol("P_dot", "Ṗ", r"\dot{P}", BODY_FORCES, BODY_MOTIONS,
    "rate of the articulated inertia", "kg/s, kg·m/s, kg·m²/s", symmetric=True, diagonal=True,
    rate_of=P,
    definition=lambda: E_phi @ (tau_bar @ P_dot @ tau_bar.T + _seen() + _seen().T) @ E_phi.T,
    action=LocalAction(lambda k, y: k.P_dot @ y), cost=33)
lam = symbol("lam", "λ", r"\lambda", BODY_FORCES, BODY_MOTIONS,
    "rate of the articulated inertia and its turning with the hinge", "kg/s, kg·m/s, kg·m²/s",
    symmetric=True, diagonal=True,
    definition=lambda: P_dot + Delta_cross @ P + P @ Delta_cross.T)
D_dot = symbol("D_dot", "Ḋ", r"\dot{D}", JOINT_FORCES, JOINT_RATES, "rate of {D}",
    "kg·m²/s or kg/s", symmetric=True, diagonal=True,
    rate_of=D, definition=lambda: H @ P_dot @ H.T + H_dot @ P @ H.T + H @ P @ H_dot.T,
    action=LocalAction(lambda k, y: k.D_dot @ y), joint_space=True)
D_half_dot = symbol("D_half_dot", "Ḋ½", r"\dot{D}^{\frac{1}{2}}", JOINT_FORCES, NORMAL,
    "rate of {D½}: {D½} times the lower half of {D½⁻¹ Ḋ D½⁻*}, half its diagonal included",
    "kg^½·m/s or kg^½/s", diagonal=True,
    rate_of=D_half,
    action=LocalAction(lambda k, y: k.D.root_rate(k.D_dot, y), root_rate_transpose),
    joint_space=True)
G_dot = symbol("G_dot", "Ġ", r"\dot{G}", BODY_FORCES, JOINT_FORCES, "rate of the gain",
    "1/s or 1/(m·s)", diagonal=True,
    rate_of=G, definition=lambda: (P_dot @ H.T + P @ H_dot.T - G @ D_dot) @ D.inv,
    action=LocalAction(gain_rate, gain_rate_transpose), cost=12)
K_dot = symbol("K_dot", "K̇", r"\dot{K}", BODY_FORCES, JOINT_FORCES, "rate of {K}",
    "1/s or 1/(m·s)",
    rate_of=K, definition=lambda: E_phi_dot @ G + E_phi @ G_dot)
tau_bar_dot = symbol("tau_bar_dot", "τ̄˙", r"\dot{\bar{\tau}}", BODY_FORCES, BODY_FORCES,
    "rate of {τ̄}", "1/s", diagonal=True,
    rate_of=tau_bar, definition=lambda: -G_dot @ H - G @ H_dot)
E_psi_dot = symbol("E_psi_dot", "Ė_ψ", r"\dot{E}_{\psi}", BODY_FORCES, BODY_FORCES,
    "rate of {E_ψ}", "1/s and m/s",
    rate_of=E_psi, definition=lambda: E_phi_dot @ tau_bar + E_phi @ tau_bar_dot)
psi_dot = symbol("psi_dot", "ψ̇", r"\dot{\psi}", BODY_FORCES, BODY_FORCES, "rate of {ψ}",
    "1/s and m/s",
    rate_of=psi, definition=lambda: psi @ E_psi_dot @ psi)
m_dot = symbol("m_dot", "ṁ", r"\dot{m}", JOINT_FORCES, NORMAL, "rate of the root of {𝓜}",
    "kg^½·m/s or kg^½/s",
    rate_of=m, definition=lambda: _product_rule() @ D_half + (I + H @ phi @ K) @ D_half_dot,
    joint_space=True)
mass_dot = symbol("mass_dot", "𝓜̇", r"\dot{\mathcal{M}}", JOINT_FORCES, JOINT_RATES,
    "rate of the mass matrix", "kg·m²/s or kg/s", symmetric=True,
    rate_of=mass, definition=lambda: _half_of_mass_dot() + _half_of_mass_dot().T, joint_space=True)
mass_by = framed("mass_by", "∂𝓜", r"\partial\mathcal{M}", JOINT_FORCES, JOINT_RATES,
    "derivative of the mass matrix by the coordinate of a hinge", "kg·m² or kg", symmetric=True,
    of_hinge=True,
    definition=lambda *hinge: _half_of_mass_by(*hinge) + _half_of_mass_by(*hinge).T,
    dense=lambda s, hinge: s.rate(mass, np.eye(len(s.H))[s.freedom(hinge)]))
H_cross = framed("H_cross", "H̃", r"\tilde{H}", BODY_FORCES, BODY_FORCES,
    "force cross product with the axis of one hinge, zero at other bodies", "1 or m",
    diagonal=True,
    of_hinge=True,
    action=LocalAction(lambda k, y: k.axis.cross_force(y), lambda k, y: -k.axis.cross(y)), cost=6,
    dense=lambda s, hinge: s.force_cross(s.axis(hinge)))
C_xi = symbol("C_xi", "C_ξ", r"C_{\xi}", JOINT_FORCES, SCALARS,
    "bias of the diagonal equations {D ξ̇ + C_ξ = κ}: Coriolis terms, gravity and external forces",
    "N·m or N",
    definition=lambda: (I - H @ psi @ K) @ C - D @ _product_rule().T @ beta, joint_space=True)
C_nu = symbol("C_nu", "C_ν", r"C_{\nu}", NORMAL, SCALARS,
    "bias of the normalised diagonal equations {ν̇ + C_ν = ε}, gravity and external forces in it",
    "kg^½·m/s²",
    definition=lambda: l @ C - m_dot.T @ beta, joint_space=True)
gamma = symbol("gamma", "γ", r"\gamma", JOINT_FORCES, SCALARS,
    "{β* ∂𝓜 β} for each coordinate: twice the gradient of the kinetic energy", "N·m or N",
    dense=lambda s: _kinetic_gradient(s))
# fmt: on

DOTTED: dict[Expression, Leaf] = {
    row.rate_of: Leaf.of(row) for row in SYMBOLS.values() if row.rate_of is not None
}
"""Symbols whose rate is a symbol, and that symbol."""


def _kinetic_gradient(s: System) -> Array:
    """β* ∂𝓜 β by each freedom, dense."""
    rates = s.value(beta)
    return np.array([(rates.T @ s.rate(mass, e) @ rates)[0] for e in np.eye(len(rates))])
