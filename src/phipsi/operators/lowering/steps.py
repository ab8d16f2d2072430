"""Steps of the recursions behind symbols: what a sweep computes at one body.

They compute operators that are the solution of an equation between neighbours (P, Υ, S, the state
of motion); operators that are products and resolvents need none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.operators.algebra.local_action import hinge_map_rate
from phipsi.spatial import SpatialInertia
from phipsi.sweeps import Children, Record

MASSLESS = SpatialInertia.zero().articulated


def riccati(k: Record, children: Children) -> dict[str, Any]:
    """P = M + Σ φP⁺φ*,  D = HPH* + A,  G = PH*D⁻¹,  P⁺ = P − GHP   [BI] Alg 2.2, [SOA] (4.1)"""
    P = children.sum(lambda c: c.phi.congruence(c.P_plus), k.M.articulated)
    G = P.gain(k.H, k.A)
    return {"P": P, "D": G.D, "G": G, "P_plus": P.released(G)}


def passive_riccati(k: Record, children: Children) -> dict[str, Any]:
    """P_p = M + Σ φP_p⁺φ*,  D_p = H_pP_pH_p* + A_p,  G_p = P_pH_p*D_p⁻¹   [UA] (4.6)-(4.9)"""
    P = children.sum(lambda c: c.phi.congruence(c.P_p_plus), k.M.articulated)
    G = P.gain(k.H, k.A, k.passive)
    H_p = k.H.masked(k.passive)
    return {"H_p": H_p, "P_p": P, "D_p": G.D, "G_p": G, "P_p_plus": P.released(G)}


def upsilon(k: Record, parent: Record) -> dict[str, Any]:
    """Υ⁺ = φ*Υ_pφ,  Υ = τ̄*Υ⁺τ̄ + H*D⁻¹H   [SOA] Application 2, [BI] (34)"""
    plus = parent.Upsilon.carried(k.phi)
    return {"Upsilon_plus": plus, "Upsilon": plus.through(k.G, k.H)}


def velocity(k: Record, parent: Record) -> dict[str, Any]:
    """V = φ*V_p + Δ,  Δ = H*β,  a = ad(V)Δ + Ḣ*β   [BI] Alg 2.1"""
    Delta = k.H.T @ k.v
    V = k.phi.T @ parent.V + Delta
    return {"V": V, "Delta": Delta, "a": V.cross(Delta) + k.H_rate(k.v)}


def gyroscopic(k: Record, parent: Record) -> dict[str, Any]:
    """g = φ*g_p,  b = crf(V)MV − Mg − f_ext   [BI] Alg 2.1"""
    gravity = k.phi.T @ parent.gravity
    b = k.V.cross_force(k.M @ k.V) - k.M @ gravity - k.f_ext
    return {"gravity": gravity, "b": b}


def articulating(k: Record, children: Children) -> dict[str, Any]:
    """Ṗ = Σ φ(Ṗ⁺ + crf(Δ)P⁺ − P⁺ad(Δ))φ*,  U̇ = ṖH* + PḢ*,  Ḋ = HU̇ + ḢPH*,
    Ṗ⁺ = Ṗ − U̇G* − GU̇* + GḊG*   [DL] Alg 6.1, for any hinge
    """
    P_dot = children.sum(lambda c: c.phi.congruence(c.P_seen), MASSLESS)
    own = k.P @ k.H_dot
    U_dot = P_dot @ k.H.T + own
    X = k.H @ own
    D_dot = k.H.inner(P_dot @ k.H.T) + (X + X.T)
    seen = P_dot.released_rate(k.G, U_dot, D_dot) + k.P_plus.turning(k.Delta)
    return {"P_dot": P_dot, "U_dot": U_dot, "D_dot": D_dot, "P_seen": seen}


def rates(k: Record, children: Children) -> dict[str, Any]:
    """Ṗ, U̇, Ḋ of `articulating` for a body that moves with the rates v"""
    return articulating(k.extended({"H_dot": hinge_map_rate(k, k.v)}), children)


def sibling_message(k: Record) -> dict[str, Any]:
    """φP⁺φ*, what the siblings of a body feel of it"""
    return {"siblings": k.phi.congruence(k.P_plus)}


def dual_riccati(k: Record, parent: Record) -> dict[str, Any]:
    """S⁺ = φ⁻¹(M_p + S_p + Σ φP⁺φ* of siblings)φ⁻*,  G_s = −S⁺H*D_s⁻¹,  S = S⁺ + G_sHS⁺   [BI] 3

    Whatever the world's `rest`, S = 0 at a free root; S⁺, infinite there, is given as zero.
    """
    S_plus = k.phi.solve_congruence(parent.rest + k.siblings)
    G = S_plus.gain(k.H, k.A)
    S = S_plus.released(G)
    return {
        "S_plus": S_plus, "minus_G_s": G, "S": S, "rest": k.M.articulated + S,
        "inside": parent.inner, "inner": 1.0,
    }  # fmt: skip


def dual(k: Record, parent: Record) -> dict[str, Any]:
    """Λ = P + S, the inertia of the whole as seen from a body   [BI] Lemma 4.1"""
    new = dual_riccati(k, parent)
    return {**new, "Lambda": k.P + new["S"]}


WORLD_DUAL = {"rest": SpatialInertia.of(1.0, inertia=np.eye(3)).articulated, "inner": 0.0}
"""The fields of the world, which a root reads in the dual recursion."""
