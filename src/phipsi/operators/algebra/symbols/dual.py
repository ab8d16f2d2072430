"""Symbols of free-flyers: the dual articulated inertias, and operators with another base ([BI])."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from phipsi.operators.algebra.local_action import LocalAction
from phipsi.operators.algebra.spaces import BODY_FORCES, BODY_MOTIONS, JOINT_FORCES, JOINT_RATES
from phipsi.operators.algebra.symbol import Resolvent
from phipsi.operators.algebra.symbols.bodies import *
from phipsi.operators.algebra.symbols.define import framed, symbol
from phipsi.typing import Array

if TYPE_CHECKING:
    from phipsi.operators.algebra.system import System

__all__ = [
    "C_s",
    "E_phi_s",
    "G_s",
    "Lambda",
    "Omega_at",
    "P_at",
    "S",
    "S_plus",
    "Upsilon_plus",
    "mass_at",
    "psi_s",
    "rebase",
    "tau_bar_s",
]

# fmt: off
# ---- the rest of the system, as seen from a body -------------------------------------------------

S = symbol("S", "S", "S", BODY_FORCES, BODY_MOTIONS,
    "dual articulated inertia: the rest of a free-flying system, felt at a body across its hinge",
    "kg, kg·m, kg·m²", "information of the backward filter", symmetric=True, diagonal=True,
    action=LocalAction(lambda k, y: k.S @ y), inertia=True, free_base=True,
    dense=lambda s: _released(s, s.value(S_plus)))
S_plus = symbol("S_plus", "S⁺", "S^{+}", BODY_FORCES, BODY_MOTIONS,
    "the rest of a free-flying system, felt inboard of the hinge", "kg, kg·m, kg·m²",
    "predicted information of the backward filter", symmetric=True, diagonal=True,
    action=LocalAction(lambda k, y: (k.S_plus @ y) * k.inside), free_base=True,
    dense=lambda s: _dual_riccati(s))
G_s = symbol("G_s", "G_s", "G_{s}", BODY_FORCES, JOINT_FORCES,
    "gain of the dual recursion, {−S⁺}{H*}{D_s⁻¹} ({−I} at a free root)", "1 or 1/m",
    "gain of the backward filter", diagonal=True,
    action=LocalAction(lambda k, y: -(k.minus_G_s @ y), lambda k, y: -(k.minus_G_s.T @ y)),
    free_base=True, dense=lambda s: _dual_gain(s, s.value(S_plus)))
tau_bar_s = symbol("tau_bar_s", "τ̄_s", r"\bar{\tau}_{s}", BODY_FORCES, BODY_FORCES,
    "{I + G_s H}: the part of a force that passes the hinge outward", "1",
    "what a backward measurement leaves", diagonal=True,
    definition=lambda: I + G_s @ H, free_base=True)
E_phi_s = symbol("E_phi_s", "E_φs", r"E_{\phi_{s}}", BODY_FORCES, BODY_FORCES,
    "rigid transport of forces from each parent to its children, {φ⁻¹} block by block", "1 and m",
    "transition back",
    transfer="scatter",
    dense=lambda s: s.blocks(s.inner, s.inner_parents, np.linalg.inv(s.phi[s.inner])))
psi_s = symbol("psi_s", "ψ_s", r"\psi_{s}", BODY_FORCES, BODY_FORCES,
    "transport of forces through free hinges from every body to all its descendants", "1 and m",
    "propagation of the backward filter",
    definition=lambda: (I - tau_bar_s @ E_phi_s).inv,
    resolvent=Resolvent(E_phi_s, I + G_s @ H,
        ("force at a body, come through the free hinges inboard of it",
         "predicted mean of the backward filter"),
        ("motion at a body, gathered through the free hinges outboard of it",
         "adjoint variable of the backward filter")),
    free_base=True)
C_s = symbol("C_s", "C_s", "C_{s}", JOINT_RATES, JOINT_FORCES,
    "inverse of {D_s = H S⁺ H* + A}, {S⁺} seen along the hinge (zero at a free root)",
    "1/(kg·m²) or 1/kg", symmetric=True, diagonal=True,
    free_base=True, dense=lambda s: _dual_D_inverse(s, s.value(S_plus)))
Upsilon_plus = symbol("Upsilon_plus", "Υ⁺", r"\Upsilon^{+}", BODY_MOTIONS, BODY_FORCES,
    "acceleration of the parent, seen at the hinge, per unit force on it there",
    "1/kg, 1/(kg·m), 1/(kg·m²)", symmetric=True, diagonal=True,
    action=LocalAction(lambda k, y: k.Upsilon_plus @ y),
    dense=lambda s: s.on_diagonal(s.value(E_phi.T @ Upsilon @ E_phi)))
Lambda = symbol("Lambda", "Λ", r"\Lambda", BODY_FORCES, BODY_MOTIONS,
    "operational inertia: {P + S}, the inertia of the whole system felt at a body",
    "kg, kg·m, kg·m²", "information of the two-filter smoother", symmetric=True, diagonal=True,
    definition=lambda: P + S,
    action=LocalAction(lambda k, y: k.Lambda @ y, inverse=lambda k, y: k.Lambda.inv @ y),
    free_base=True)

# ---- another base --------------------------------------------------------------------------------

rebase = framed("rebase", "R", r"\mathrm{R}", JOINT_RATES, JOINT_RATES,
    "joint rates with another body as the base, from those with the root", "1 and m",
    dense=lambda s, body: _rebase(s, body))
mass_at = framed("mass_at", "𝓜′", r"\mathcal{M}'", JOINT_FORCES, JOINT_RATES,
    "mass matrix with another body as the base", "kg·m² or kg", symmetric=True,
    dense=lambda s, body: s.rerooted(body).value(mass))
Omega_at = framed("Omega_at", "Ω′", r"\Omega'", BODY_MOTIONS, BODY_FORCES,
    "{Ω} with another body as the base", "1/kg, 1/(kg·m), 1/(kg·m²)", symmetric=True,
    dense=lambda s, body: s.rerooted(body).value(Omega))
P_at = framed("P_at", "P′", "P'", BODY_FORCES, BODY_MOTIONS,
    "articulated inertias with another body as the base", "kg, kg·m, kg·m²",
    symmetric=True, diagonal=True,
    dense=lambda s, body: s.rerooted(body).value(P))
# fmt: on

# ---- dense matrices ------------------------------------------------------------------------------


def _dual_riccati(s: System) -> Array:
    """S⁺_i = φ_i⁻¹(M_p + S_p + Σ φ_c P⁺_c φ_c*)φ_i⁻*, over siblings c ≠ i; 0 at roots ([BI] Alg
    3.1). The iteration starts with all hinges locked, like that of P."""
    s.check_free(s.roots)
    E, E_s, inertias, carried, released = s.values(E_phi, E_phi_s, M, phi, P_plus)
    siblings = E_s @ E - s.on_diagonal(E_s @ E)
    root = np.repeat(np.isin(np.arange(len(s.parents)), s.roots), 6)
    reach = np.linalg.inv(np.eye(len(E)) - E_s)
    whole = s.on_diagonal(carried @ inertias @ carried.T) * root
    found = s.on_diagonal(reach @ whole @ reach.T)
    for _ in s.parents:
        rest = inertias + _released(s, found)
        found = s.on_diagonal(E_s @ rest @ E_s.T + siblings @ released @ siblings.T)
    return found


def _released(s: System, S_plus: Array) -> Array:
    """S = S⁺ + G_s H S⁺."""
    found = S_plus + _dual_gain(s, S_plus) @ s.value(H) @ S_plus
    return (found + found.T) / 2


def _dual_D_inverse(s: System, S_plus: Array) -> Array:
    hinge_map, armature = s.values(H, A)
    inner = np.flatnonzero(~np.isin(s.moves, s.roots))
    own, found = np.ix_(inner, inner), np.zeros_like(armature)
    found[own] = np.linalg.inv((hinge_map @ S_plus @ hinge_map.T + armature)[own])
    return found


def _dual_gain(s: System, S_plus: Array) -> Array:
    hinge_map = s.value(H)
    root = hinge_map * np.isin(s.moves, s.roots)[:, None]
    return -S_plus @ hinge_map.T @ _dual_D_inverse(s, S_plus) - np.linalg.pinv(root)


def _rebase(s: System, body: str) -> Array:
    """β' = (V_k, β of hinges): the rows of the free root in I become those of φ*H* at body k."""
    there, k, out = s.rerooted(body), s.bodies.index(body), np.eye(len(s.H))
    out[there.moves == k] = s.value(phi.T @ H.T)[6 * k : 6 * k + 6]
    return out
