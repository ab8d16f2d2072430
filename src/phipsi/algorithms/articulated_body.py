"""The articulated body algorithm: 𝓜⁻¹ = (I − HψK)* D⁻¹ (I − HψK) as three sweeps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms.kinematics import moving
from phipsi.model import Robot
from phipsi.spatial import Gain, Motion, Pivot
from phipsi.spatial import rotation as rot
from phipsi.sweeps import columns, diagonal, forest, gather, inward, outward, program, stack


def riccati(k: Any, children: list[Any]) -> dict[str, Any]:
    """P = M + Σ φP⁺φ*,  D = HPH* + A,  G = PH*D⁻¹,  P⁺ = P − GHP   [BI] Alg 2.2, [SOA] (4.1)"""
    P: Any = sum((c.phi.congruence(c.P_plus) for c in children), k.M.articulated)
    U = P @ k.H.T
    D = Pivot(k.H.inner(U) + np.diag(k.A))
    G = Gain(U, D)
    return {"P": P, "D": D, "G": G, "P_plus": P.released(G)}


def residual(k: Any, children: list[Any]) -> dict[str, Any]:
    """z = b + Pa + Σ φz⁺,  ε = T − Hz,  ν = D⁻¹ε,  z⁺ = z + Gε   [BI] Alg 2.3"""
    b = k.V.cross_force(k.M @ k.V) - k.f_ext
    z = sum((c.phi @ c.z_plus for c in children), b + k.P @ k.a)
    eps = k.tau - k.H @ z
    return {"nu": k.D.solve(eps), "z_plus": z + k.G @ eps}


def accelerate(k: Any, parent: Any) -> dict[str, Any]:
    """α⁺ = φ*α_p,  β̇ = ν − G*α⁺,  α = α⁺ + H*β̇ + a   [BI] Alg 2.3"""
    alpha_plus = k.phi.T @ parent.alpha
    qdd = k.nu - k.G.T @ alpha_plus
    return {"qdd": qdd, "alpha": alpha_plus + k.H.T @ qdd + k.a}


@program
def forward_dynamics(robot: Robot, q: Any, v: Any, tau: Any, *, external: Any = None) -> Any:
    """Joint accelerations from joint forces: β̇ = (I−HψK)*D⁻¹[T − Hψ(KT + Pa + b)] − K*ψ*a.

    [BI] (11), Alg 2.3; [SOA] Alg FD. Gravity, armature and external forces included; `tau` is the
    total joint force (add `passive_forces` if wanted). Returns (…, nv) [rad/s² or m/s²]. Cost O(N).
    """
    x = moving(forest(robot, q, v=v, tau=tau, external=external))
    x = inward(riccati, x)
    x = inward(residual, x)
    x = outward(accelerate, x, alpha=against_gravity(robot))
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


def against_gravity(robot: Robot) -> Motion:
    """The pseudo-acceleration [0; −g] of the world, which makes gravity act on every body."""
    return Motion(rot.zero(), -rot.scalars(robot.gravity))
