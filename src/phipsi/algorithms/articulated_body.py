"""The articulated body algorithm: 𝓜⁻¹ = (I − HψK)* D⁻¹ (I − HψK) as three sweeps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms.newton_euler import under_gravity
from phipsi.model import Robot
from phipsi.spatial import Motion
from phipsi.sweeps import (
    Children,
    columns,
    diagonal,
    forest,
    gather,
    inward,
    outward,
    program,
    stack,
)


def riccati(k: Any, children: Children) -> dict[str, Any]:
    """P = M + Σ φP⁺φ*,  D = HPH* + A,  G = PH*D⁻¹,  P⁺ = P − GHP   [BI] Alg 2.2, [SOA] (4.1)"""
    P = children.sum(lambda c: c.phi.congruence(c.P_plus), k.M.articulated)
    G = P.gain(k.H, k.A)
    return {"P": P, "D": G.D, "G": G, "P_plus": P.released(G)}


def residual(k: Any, children: Children) -> dict[str, Any]:
    """The Riccati step and  z = u + Σ φz⁺,  ε = T − Hz,  ν = D⁻¹ε,  z⁺ = z + Gε   [BI] Alg 2.3"""
    articulated = riccati(k, children)
    D, G = articulated["D"], articulated["G"]
    z = children.sum(lambda c: c.phi @ c.z_plus, k.load)
    eps = k.tau - k.H @ z
    return {**articulated, "nu": D.solve(eps), "z_plus": z + G @ eps}


def accelerate(k: Any, parent: Any) -> dict[str, Any]:
    """λ⁺ = φ*λ_p,  β̇ = ν − G*λ⁺,  λ = λ⁺ + H*β̇   [BI] Alg 2.3, [SOA] (4.8)"""
    lam_plus = k.phi.T @ parent.lam
    qdd = k.nu - k.G.T @ lam_plus
    return {"qdd": qdd, "lam": lam_plus + k.H.T @ qdd}


@program(joint_space=True)
def forward_dynamics(robot: Robot, q: Any, v: Any, tau: Any, *, external: Any = None) -> Any:
    """Joint accelerations from joint forces: β̇ = (I−HψK)*D⁻¹(I−HψK)(T − Hφu), u = Mā + b.

    [SOA] Alg FD, [BI] Alg 2.3 with its bias accelerations ā (β̇ = 0, gravity included) in the loads
    u. Armature and external forces included; `tau` is the total joint force (add `passive_forces`
    if wanted). Returns (…, nv) [rad/s² or m/s²]. Cost O(N).
    """
    still = np.zeros(robot.nv)
    x = under_gravity(robot, forest(robot, q, v=v, qdd=still, tau=tau, external=external))
    x = inward(residual, x)
    x = outward(accelerate, x, lam=Motion.zero())
    return gather(x, "qdd")


class Articulated(NamedTuple):
    """Articulated inertias: P of every body (…, nb, 6, 6); D (…, nv, nv), block diagonal; G
    (…, 6, nv), the columns of a hinge in the frame of the body that it moves."""

    P: Any
    D: Any
    G: Any


@program
def articulated_inertias(robot: Robot, q: Any) -> Articulated:
    """P, D and G of the Riccati recursion, P = M + E_ψ P E_φ* ([BI] Alg 2.2, [SOA] (4.1)).

    P [kg, kg·m, kg·m²] is what the body's inboard hinge feels with all outboard hinges free.
    Returns P (…, nb, 6, 6), D (…, nv, nv), G (…, 6, nv). Cost O(N).
    """
    x = inward(riccati, forest(robot, q))
    return Articulated(stack(x, "P", (6, 6)), diagonal(x, "D"), columns(x, "G"))
