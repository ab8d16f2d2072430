"""The mass matrix 𝓜 = HφMφ*H* + A, its inverse, its square root and products with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.model import Robot
from phipsi.operators import l, m, mass
from phipsi.operators.lowering.compute import compute
from phipsi.operators.lowering.steps import riccati
from phipsi.programs import program
from phipsi.spatial import ForceBasis, Motion
from phipsi.sweeps import (
    Children,
    Forest,
    blocks_to_root,
    forest,
    inward,
    local,
    outward,
    reciprocal,
    symmetric,
)


def composite(k: Any, children: Children) -> dict[str, Any]:
    """R = M + Σ φRφ*   composite bodies, [UA] 5 with every hinge active"""
    return {"R": children.sum(lambda c: c.phi.congruence(c.R), k.M)}


@program(joint_space=True)
def mass_matrix(robot: Robot, q: Any) -> Any:
    """The joint-space mass matrix 𝓜 = HφMφ*H* + A by composite bodies ([SOA] (3.6), [UA] (5.4)).

    Returns (…, nv, nv), symmetric. Cost O(N · depth).
    """

    def held(k: Any) -> ForceBasis:
        """RH*: the force of a unit acceleration of the hinge with the outboard bodies locked"""
        return k.R @ k.H.T

    x = inward(composite, forest(robot, q))
    return symmetric(x, blocks_to_root(held, x)) + np.diag(robot.joint_data("armature"))


@program(shapes={"x": ("nv",)}, joint_space=True, equation=mass)
def mass_matrix_product(robot: Robot, q: Any, x: Any) -> Any:
    """𝓜x = Hφ M φ*H* x + Ax without forming 𝓜 ([SOA] (3.6)). Returns (…, nv). Cost O(N)."""
    return compute(mass, robot, q, x=x)


@program(shapes={"x": ("nv",)}, joint_space=True, equation=mass.inv)
def mass_matrix_solve(robot: Robot, q: Any, x: Any) -> Any:
    """𝓜⁻¹x = (I − HψK)* D⁻¹ (I − HψK) x ([SOA] Lemma 4.3). Returns (…, nv). Cost O(N)."""
    return compute(mass.inv, robot, q, x=x)


def whiten(k: Any, children: Children) -> dict[str, Any]:
    """κ = (I − HψK)(x + Hφf):  z = Σ φz⁺ − f,  κ = x − Hz,  z⁺ = z + Gκ   [SOA] 4, (5.3)"""
    z = children.sum(lambda c: c.phi @ c.z_plus, -k.f_ext)
    kappa = k.x - k.H @ z
    return {"z": z, "kappa": kappa, "z_plus": z + k.G @ kappa}


def whiten_adjoint(k: Any, parent: Any) -> dict[str, Any]:
    """y = (I − HψK)*x:  V⁺ = φ*V_p,  y = x − G*V⁺,  V = V⁺ + H*y   [DL] Table 2"""
    V_plus = k.phi.T @ parent.V
    y = k.x - k.G.T @ V_plus
    return {"y": y, "V": V_plus + k.H.T @ y}


def scale(k: Any) -> dict[str, Any]:
    """x = D⁻¹κ"""
    return {"x": k.D.solve(k.kappa)}


def _solved(bodies: Forest) -> Forest:
    """y = (I − HψK)* D⁻¹ (I − HψK) x after the Riccati sweep."""
    bodies = inward(whiten, bodies)
    bodies = local(scale, bodies)
    return outward(whiten_adjoint, bodies, V=Motion.zero())


def common_ancestor_block(a: Any, b: Any) -> Any:
    """−z(i)*V(j): the power of the force that hinge i sends to a body on the motion j gives it"""
    return -b.V.dot(a.z)


@program(joint_space=True)
def mass_matrix_inverse(robot: Robot, q: Any) -> Any:
    """𝓜⁻¹ = (I − HψK)* D⁻¹ (I − HψK) ([SOA] Lemma 4.3), symmetric.

    A unit force at a hinge is whitened along the path to the root alone; hinges on two branches
    meet at a body c, (𝓜⁻¹)_ij = K_i* ψ(c,i)* Υ_c ψ(c,j) K_j ([BI] (34)). Returns (…, nv, nv).
    Cost O(N²).
    """
    return reciprocal(_solved, common_ancestor_block, inward(riccati, forest(robot, q)))


FACTORS = {"m": m, "m*": m.T, "l": l, "l*": l.T}


@program(shapes={"x": ("nv",)}, joint_space=True, equation=m)
def mass_matrix_sqrt_product(robot: Robot, q: Any, x: Any, *, factor: str = "m") -> Any:
    """Products with the root of 𝓜 = m m*, m = (I + HφK)D½, ℓ = m⁻¹, D = D½D½* ([DL] (5.1)-(5.4)).

    `factor` is "m", "m*", "l" or "l*". Returns (…, nv). Cost O(N).
    """
    if factor not in FACTORS:
        raise ValueError(f"factor {factor!r} is not one of {', '.join(FACTORS)}")
    return compute(FACTORS[factor], robot, q, x=x)


@program(joint_space=True, equation=mass.logdet)
def mass_matrix_logdet(robot: Robot, q: Any) -> Any:
    """log det 𝓜 = Σ log det D ([SOA] Lemma 4.1). Returns (…). Cost O(N)."""
    return compute(mass.logdet, robot, q)
