"""The mass matrix 𝓜 = HφMφ*H* + A, its inverse, its square root and products with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.algorithms.articulated_body import riccati
from phipsi.algorithms.newton_euler import collect
from phipsi.model import Robot
from phipsi.spatial import Force, ForceBasis, Motion
from phipsi.sweeps import (
    Children,
    Forest,
    climb,
    forest,
    gather,
    inward,
    local,
    outward,
    program,
    reciprocal,
    symmetric,
    total,
)

FACTORS = ("m", "m*", "l", "l*")


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
    return symmetric(x, climb(held, x)) + np.diag(robot.joint_data("armature"))


def rigid_motion(k: Any, parent: Any) -> dict[str, Any]:
    """V = φ*V_p + H*x"""
    return {"V": k.phi.T @ parent.V + k.H.T @ k.x}


def momentum(k: Any) -> dict[str, Any]:
    """MV"""
    return {"load": k.M @ k.V}


@program(shapes={"x": ("nv",)}, joint_space=True)
def mass_matrix_product(robot: Robot, q: Any, x: Any) -> Any:
    """𝓜x = Hφ M φ*H* x + Ax without forming 𝓜 ([SOA] (3.6)). Returns (…, nv). Cost O(N)."""
    bodies = outward(rigid_motion, forest(robot, q, x=x), V=Motion.zero())
    bodies = inward(collect, local(momentum, bodies))
    return gather(bodies, "T") + robot.joint_data("armature") * np.asarray(x)


def whiten(k: Any, children: Children) -> dict[str, Any]:
    """κ = (I − HψK)x:  z = Σ φz⁺,  κ = x − Hz,  z⁺ = z + Gκ   [SOA] 4"""
    z = children.sum(lambda c: c.phi @ c.z_plus, Force.zero())
    kappa = k.x - k.H @ z
    return {"z": z, "kappa": kappa, "z_plus": z + k.G @ kappa}


def colour(k: Any, children: Children) -> dict[str, Any]:
    """y = (I + HφK)x:  z = Σ φz⁺,  y = x + Hz,  z⁺ = z + Gx   [SOA] 4"""
    z = children.sum(lambda c: c.phi @ c.z_plus, Force.zero())
    return {"y": k.x + k.H @ z, "z_plus": z + k.G @ k.x}


def colour_adjoint(k: Any, parent: Any) -> dict[str, Any]:
    """y = (I + HφK)*x:  V⁺ = φ*V_p,  y = x + G*V⁺,  V = V⁺ + H*x   [DL] Table 2"""
    V_plus = k.phi.T @ parent.V
    return {"y": k.x + k.G.T @ V_plus, "V": V_plus + k.H.T @ k.x}


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


@program(shapes={"x": ("nv",)}, joint_space=True)
def mass_matrix_solve(robot: Robot, q: Any, x: Any) -> Any:
    """𝓜⁻¹x = (I − HψK)* D⁻¹ (I − HψK) x ([SOA] Lemma 4.3). Returns (…, nv). Cost O(N)."""
    return gather(_solved(inward(riccati, forest(robot, q, x=x))), "y")


def meeting(a: Any, b: Any) -> Any:
    """−z(i)*V(j): the power of the force that hinge i sends to a body on the motion j gives it"""
    return -b.V.dot(a.z)


@program(joint_space=True)
def mass_matrix_inverse(robot: Robot, q: Any) -> Any:
    """𝓜⁻¹ = (I − HψK)* D⁻¹ (I − HψK) ([SOA] Lemma 4.3), symmetric.

    A unit force at a hinge is whitened along the path to the root alone; hinges on two branches
    meet at a body c, (𝓜⁻¹)_ij = K_i* ψ(c,i)* Υ_c ψ(c,j) K_j ([BI] (34)). Returns (…, nv, nv).
    Cost O(N²).
    """
    return reciprocal(_solved, meeting, inward(riccati, forest(robot, q)))


@program(shapes={"x": ("nv",)}, joint_space=True)
def mass_matrix_sqrt_product(robot: Robot, q: Any, x: Any, *, factor: str = "m") -> Any:
    """Products with the root of 𝓜 = m m*, m = (I + HφK)ℒ, ℓ = m⁻¹, D = ℒℒ* ([DL] (5.1)-(5.4)).

    `factor` is "m", "m*", "l" or "l*". Returns (…, nv). Cost O(N).
    """

    def root(k: Any) -> dict[str, Any]:
        """x = ℒx"""
        return {"x": k.D.root(k.x)}

    def root_adjoint(k: Any) -> dict[str, Any]:
        """y = ℒ*y"""
        return {"y": k.D.root_transpose(k.y)}

    def unroot(k: Any) -> dict[str, Any]:
        """y = ℒ⁻¹κ"""
        return {"y": k.D.root_solve(k.kappa)}

    def unroot_adjoint(k: Any) -> dict[str, Any]:
        """x = ℒ⁻*x"""
        return {"x": k.D.root_transpose_solve(k.x)}

    bodies = inward(riccati, forest(robot, q, x=x))
    match factor:
        case "m":
            bodies = inward(colour, local(root, bodies))
        case "m*":
            bodies = local(root_adjoint, outward(colour_adjoint, bodies, V=Motion.zero()))
        case "l":
            bodies = local(unroot, inward(whiten, bodies))
        case "l*":
            bodies = outward(whiten_adjoint, local(unroot_adjoint, bodies), V=Motion.zero())
        case _:
            raise ValueError(f"factor {factor!r} is not one of {', '.join(FACTORS)}")
    return gather(bodies, "y")


@program(joint_space=True)
def mass_matrix_logdet(robot: Robot, q: Any) -> Any:
    """log det 𝓜 = Σ log det D ([SOA] Lemma 4.1). Returns (…). Cost O(N)."""

    def logdet(k: Any) -> dict[str, Any]:
        """log det D"""
        return {"logdet": k.D.logdet}

    return total(local(logdet, inward(riccati, forest(robot, q))), "logdet", 0.0)
