"""The recursions as a person writes them: what lowered expressions are measured against.

They were the library's own text before expressions took their place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import phipsi as pp
from phipsi.model import Robot
from phipsi.operators.lowering.steps import riccati, velocity
from phipsi.spatial import Force, Motion, RigidMotion
from phipsi.spatial import rotation as rot
from phipsi.sweeps import Children, Forest, forest, gather, inward, local, outward, total


def loaded(k: Any, parent: Any) -> dict[str, Any]:
    """X = (ω, α, a): φ*X_p through the hinge with Δ = H*β,  load = Mα + b of X"""
    X = (k.phi.T @ parent.X).through(k.H.T @ k.v, k.H.T @ k.qdd + k.H_rate(k.v))
    return {"X": X, "load": k.M.inertial(X) - k.f_ext}


def collect(k: Any, children: Children) -> dict[str, Any]:
    """f = Mα + b + Σ φf,  T = Hf"""
    f = children.sum(lambda c: c.phi @ c.f, k.load)
    return {"f": f, "T": k.H @ f}


def under_gravity(robot: Robot, x: Forest) -> Forest:
    return outward(loaded, x, X=RigidMotion.accelerated(-rot.scalars(robot.gravity)))


def residual(k: Any, children: Children) -> dict[str, Any]:
    """The Riccati step and  z = u + Σ φz⁺,  ε = T − Hz,  ν = D⁻¹ε,  z⁺ = z + Gε"""
    articulated = riccati(k, children)
    z = children.sum(lambda c: c.phi @ c.z_plus, k.load)
    eps = k.tau - k.H @ z
    nu = articulated["D"].solve(eps)
    return {**articulated, "nu": nu, "z_plus": z + articulated["G"] @ eps}


def accelerate(k: Any, parent: Any) -> dict[str, Any]:
    """λ⁺ = φ*λ_p,  β̇ = ν − G*λ⁺,  λ = λ⁺ + H*β̇"""
    lam_plus = k.phi.T @ parent.lam
    qdd = k.nu - k.G.T @ lam_plus
    return {"qdd": qdd, "lam": lam_plus + k.H.T @ qdd}


@pp.program(joint_space=True)
def forward_dynamics(robot: Robot, q: Any, v: Any, tau: Any, *, external: Any = None) -> Any:
    still = np.zeros(robot.nv)
    x = under_gravity(robot, forest(robot, q, v=v, qdd=still, tau=tau, external=external))
    x = outward(accelerate, inward(residual, x), lam=Motion.zero())
    return gather(x, "qdd")


@pp.program(joint_space=True)
def inverse_dynamics(robot: Robot, q: Any, v: Any, a: Any, *, external: Any = None) -> Any:
    x = under_gravity(robot, forest(robot, q, v=v, qdd=a, external=external))
    return gather(inward(collect, x), "T") + robot.joint_data("armature") * np.asarray(a)


@pp.program(joint_space=True)
def bias_force(robot: Robot, q: Any, v: Any, *, external: Any = None) -> Any:
    return inverse_dynamics(robot, q, v, np.zeros(robot.nv), external=external)


def rigid_motion(k: Any, parent: Any) -> dict[str, Any]:
    return {"V": k.phi.T @ parent.V + k.H.T @ k.x}


def momentum(k: Any) -> dict[str, Any]:
    return {"load": k.M @ k.V}


@pp.program(shapes={"x": ("nv",)}, joint_space=True)
def mass_matrix_product(robot: Robot, q: Any, x: Any) -> Any:
    bodies = outward(rigid_motion, forest(robot, q, x=x), V=Motion.zero())
    bodies = inward(collect, local(momentum, bodies))
    return gather(bodies, "T") + robot.joint_data("armature") * np.asarray(x)


def whiten(k: Any, children: Children) -> dict[str, Any]:
    """κ = (I − HψK)x:  z = Σ φz⁺,  κ = x − Hz,  z⁺ = z + Gκ"""
    z = children.sum(lambda c: c.phi @ c.z_plus, Force.zero())
    kappa = k.x - k.H @ z
    return {"kappa": kappa, "z_plus": z + k.G @ kappa}


def colour(k: Any, children: Children) -> dict[str, Any]:
    """y = (I + HφK)x:  z = Σ φz⁺,  y = x + Hz,  z⁺ = z + Gx"""
    z = children.sum(lambda c: c.phi @ c.z_plus, Force.zero())
    return {"y": k.x + k.H @ z, "z_plus": z + k.G @ k.x}


def colour_adjoint(k: Any, parent: Any) -> dict[str, Any]:
    V_plus = k.phi.T @ parent.V
    return {"y": k.x + k.G.T @ V_plus, "V": V_plus + k.H.T @ k.x}


def whiten_adjoint(k: Any, parent: Any) -> dict[str, Any]:
    V_plus = k.phi.T @ parent.V
    y = k.x - k.G.T @ V_plus
    return {"y": y, "V": V_plus + k.H.T @ y}


@pp.program(shapes={"x": ("nv",)}, joint_space=True)
def mass_matrix_solve(robot: Robot, q: Any, x: Any) -> Any:
    bodies = inward(whiten, inward(riccati, forest(robot, q, x=x)))
    bodies = local(lambda k: {"x": k.D.solve(k.kappa)}, bodies)
    return gather(outward(whiten_adjoint, bodies, V=Motion.zero()), "y")


@pp.program(shapes={"x": ("nv",)}, joint_space=True)
def mass_matrix_sqrt_product(robot: Robot, q: Any, x: Any, *, factor: str = "m") -> Any:
    bodies = inward(riccati, forest(robot, q, x=x))
    match factor:
        case "m":
            bodies = inward(colour, local(lambda k: {"x": k.D.root(k.x)}, bodies))
        case "m*":
            bodies = outward(colour_adjoint, bodies, V=Motion.zero())
            bodies = local(lambda k: {"y": k.D.root_transpose(k.y)}, bodies)
        case "l":
            bodies = local(lambda k: {"y": k.D.root_solve(k.kappa)}, inward(whiten, bodies))
        case "l*":
            bodies = local(lambda k: {"x": k.D.root_transpose_solve(k.x)}, bodies)
            bodies = outward(whiten_adjoint, bodies, V=Motion.zero())
    return gather(bodies, "y")


@pp.program(joint_space=True)
def mass_matrix_logdet(robot: Robot, q: Any) -> Any:
    x = local(lambda k: {"logdet": k.D.logdet}, inward(riccati, forest(robot, q)))
    return total(x, "logdet", 0.0)


@pp.program(joint_space=True)
def kinetic_energy(robot: Robot, q: Any, v: Any) -> Any:
    def energy(k: Any) -> dict[str, Any]:
        return {"energy": 0.5 * (k.V.dot(k.M @ k.V) + (k.A * k.v) @ k.v)}

    x = outward(velocity, forest(robot, q, v=v), V=Motion.zero())
    return total(local(energy, x), "energy", 0.0)
