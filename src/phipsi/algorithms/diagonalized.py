"""Diagonalized Lagrangian dynamics: rates and moments in which the mass matrix is one ([DL]).

    𝓜 = m m*,  m = (I + HφK)D½        ν = m*β   total rates         ε = ℓT   working moments
    ν̇ + C_ν = ε,   ν*C_ν = 0          ξ = D⁻½*ν, κ = D½ε            the same without D½

D½ is the lower triangular root of each hinge's D, or (root="symmetric") the symmetric one.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms.kinematics import moving
from phipsi.algorithms.mass_matrix import whiten
from phipsi.model import Robot
from phipsi.operators import l, m
from phipsi.operators.algebra.local_action import hinge_map_rate
from phipsi.operators.lowering.steps import articulating, gyroscopic, riccati
from phipsi.programs import program
from phipsi.spatial import Force, HingeMap, Motion, NoRoot, check_root, root_of
from phipsi.spatial import rotation as rot
from phipsi.sweeps import (
    Children,
    Forest,
    columns,
    diagonal,
    forest,
    gather,
    inward,
    local,
    outward,
    stack,
)
from phipsi.sweeps.lowering import simplest

# ---- rates and moments --------------------------------------------------------------------------


def scaling(normalized: bool, root: str) -> Any:
    """What gives the root of a hinge's D, or what leaves all as it is."""
    check_root(root)
    return partial(root_of, kind=root) if normalized else lambda D: NoRoot()


def total(k: Any, parent: Any) -> dict[str, Any]:
    """V⁺ = φ*V_p,  ξ = β + G*V⁺,  V = V⁺ + H*β   [DL] Table 2"""
    V_plus = k.phi.T @ parent.V
    return {"V": V_plus + k.H.T @ k.v, "xi": k.v + k.G.T @ V_plus}


@program(joint_space=True, equation=m.T)
def total_rates(
    robot: Robot, q: Any, v: Any, *, normalized: bool = True, root: str = "cholesky"
) -> Any:
    """ν = m*β, or without normalization ξ = (I + HφK)*β: a hinge's rate and what it would show of
    the motion inboard of it ([DL] (5.1)-(5.4), Table 2). The kinetic energy is ½ν*ν = ½ξ*Dξ.

    Returns (…, nv) [kg^½·m/s; ξ in rad/s or m/s]. Cost O(N).
    """

    def normal(k: Any) -> dict[str, Any]:
        """ν = D½*ξ"""
        return {"nu": root_at(k.D).root_transpose(k.xi)}

    root_at = scaling(normalized, root)
    x = outward(total, inward(riccati, forest(robot, q, v=v)), V=Motion.zero())
    return gather(local(normal, x), "nu")


def parted(normalized: bool, root: str) -> Any:
    """The step from total rates to joint rates."""
    root_at = scaling(normalized, root)

    def step(k: Any, parent: Any) -> dict[str, Any]:
        """ξ = D⁻½*ν,  V⁺ = φ*V_p,  β = ξ − G*V⁺,  Δ = H*β,  V = V⁺ + Δ   [DL] Table 2"""
        xi = root_at(k.D).root_transpose_solve(k.nu)
        V_plus = k.phi.T @ parent.V
        beta = xi - k.G.T @ V_plus
        Delta = k.H.T @ beta
        return {"xi": xi, "V_plus": V_plus, "beta": beta, "Delta": Delta, "V": V_plus + Delta}

    return step


@program(shapes={"nu": ("nv",)}, joint_space=True, equation=l.T)
def joint_rates(
    robot: Robot, q: Any, nu: Any, *, normalized: bool = True, root: str = "cholesky"
) -> Any:
    """β = ℓ*ν, or of rates that are not normalized β = (I − HψK)*ξ ([DL] Table 2).

    Returns (…, nv) [rad/s or m/s]. Cost O(N).
    """
    x = inward(riccati, forest(robot, q, nu=nu))
    return gather(outward(parted(normalized, root), x, V=Motion.zero()), "beta")


@program(joint_space=True, equation=l)
def working_moments(
    robot: Robot, q: Any, tau: Any, *, normalized: bool = True, root: str = "cholesky"
) -> Any:
    """ε = ℓT, or without normalization κ = (I − HψK)T: a hinge's force less what the forces
    outboard of it deliver there already ([DL] Table 3). The power is ν*ε = ξ*κ.

    Returns (…, nv) [kg^½·m/s²; κ in N·m or N]. Cost O(N).
    """

    def normal(k: Any) -> dict[str, Any]:
        """ε = D⁻½κ"""
        return {"eps": root_at(k.D).root_solve(k.kappa)}

    root_at = scaling(normalized, root)
    x = inward(whiten, inward(riccati, forest(robot, q, x=tau)))
    return gather(local(normal, x), "eps")


@program(shapes={"eps": ("nv",)}, joint_space=True, equation=m)
def applied_moments(
    robot: Robot, q: Any, eps: Any, *, normalized: bool = True, root: str = "cholesky"
) -> Any:
    """T = mε, or of moments that are not normalized T = (I + HφK)κ ([DL] Table 3, corrected).

    Returns (…, nv) [N·m or N]. Cost O(N).
    """

    def colour(k: Any, children: Children) -> dict[str, Any]:
        """κ = D½ε,  z = Σ φz⁺,  T = κ + Hz,  z⁺ = z + Gκ   [DL] Table 3"""
        kappa = root_at(k.D).root(k.eps)
        z = children.sum(lambda c: c.phi @ c.z_plus, Force.zero())
        return {"T": kappa + k.H @ z, "z_plus": z + k.G @ kappa}

    root_at = scaling(normalized, root)
    return gather(inward(colour, inward(riccati, forest(robot, q, eps=eps))), "T")


# ---- Coriolis terms and the equations of motion -------------------------------------------------


def unwound(
    robot: Robot, q: Any, nu: Any, normalized: bool, root: str, gravity: Any, **more: Any
) -> Forest:
    """The bodies in motion by total rates ν or ξ: with P, D, G, V, b, Ḣ and f⁺."""
    rates = parted(normalized, root)

    def step(k: Any, parent: Any) -> dict[str, Any]:
        """β, Δ, V;  b = crf(V)MV − Mg − f_ext;  Ḣ*;  f⁺ = P⁺V⁺"""
        new = rates(k, parent)
        new |= gyroscopic(k.extended(new), parent)
        new["H_dot"] = hinge_map_rate(k, new["beta"])
        return {**new, "f_plus": k.P_plus @ new["V_plus"]}

    x = inward(riccati, forest(robot, q, nu=nu, **more))
    return outward(step, x, V=Motion.zero(), gravity=Motion(rot.zero(), rot.scalars(gravity)))


def sifted(past: float = 1.0, present: float = 1.0, future: float = 1.0) -> Any:
    """The step that gathers the terms of the equations of motion, each counted or not (1 or 0)."""

    def step(k: Any, children: Children) -> dict[str, Any]:
        """x = b + Σ φx⁺,  e = T − Hx + ḢPV,  ε = e − Ḋξ,  x⁺ = x + U̇ξ + Gε − crf(Δ)f⁺

        [DL] Lemma 7.3, for any hinge; PV = f⁺ + Uξ.
        """
        x = children.sum(lambda c: c.phi @ c.x_plus, k.b * present)
        xi, f_plus = k.xi * past, k.f_plus * future
        e = k.tau - k.H @ x + HingeMap(k.H_dot) @ (f_plus + k.G.U @ xi)
        eps = e - k.D_dot @ xi
        sent = x + k.U_dot @ xi + k.G @ eps - k.Delta.cross_force(f_plus)
        return {"e": e, "eps": eps, "x_plus": sent}

    return step


def accelerating(x: Forest, normalized: bool, root: str, past: float = 1.0) -> Any:
    """ν̇, or ξ̇, of the gathered terms, (nv,)."""

    def normal(k: Any) -> dict[str, Any]:
        """ν̇ = D⁻½(e − Ḋ½ν),  ξ̇ = D⁻¹ε"""
        if not normalized:
            return {"rate": k.D.solve(k.eps)}
        own = root_at(k.D)
        return {"rate": own.root_solve(k.e - own.root_rate(k.D_dot, k.nu) * past)}

    root_at = scaling(normalized, root)
    return gather(local(normal, x), "rate")


class Coriolis(NamedTuple):
    """The three parts of C_ν or C_ξ, (…, nv) each ([DL] 7)."""

    past: Any
    """Of bodies outboard that articulate: U̇ξ, U = PH*, and the change of D½."""
    present: Any
    """Of the bodies themselves: crf(V)MV."""
    future: Any
    """Of the motion inboard, through hinges that turn: P⁺V⁺."""


@program(shapes={"nu": ("nv",)})
def diagonal_coriolis(
    robot: Robot,
    q: Any,
    nu: Any,
    *,
    parts: bool = False,
    normalized: bool = True,
    root: str = "cholesky",
) -> Any:
    """C_ν of ν̇ + C_ν = ε, which does no work: ν*C_ν = 0 ([DL] Alg 7.1, Lemma 7.1). Without
    normalization C_ξ of Dξ̇ + C_ξ = κ, with ξ for `nu`, and ξ*C_ξ = ½ξ*Ḋξ ([DL] Lemma 7.3).

    For any hinge, armature included: C_ξ = Hx − ḢPV + Ḋξ and C_ν = D⁻½(Hx − ḢPV + Ḋ½ν) with
    x = crf(V)MV + Σ φ(x + U̇ξ − GC_ξ − crf(Δ)P⁺V⁺), U = PH*. `parts=True` gives `past`, `present`
    and `future`, whose sum it is. Gravity and external forces belong to ε. Returns (…, nv), in the
    units of ε or κ. Cost O(N).
    """

    def term(*counted: float) -> Any:
        y = inward(sifted(*counted), x)
        return -(accelerating(y, True, root, counted[0]) if normalized else gather(y, "eps"))

    whole = robot if parts else simplest(robot)
    x = unwound(whole, q, nu, normalized, root, np.zeros(3), tau=np.zeros(robot.nv))
    x = inward(articulating, x)
    if not parts:
        return term(1.0, 1.0, 1.0)
    return Coriolis(*(term(*row) for row in np.eye(3).tolist()))


@program(shapes={"nu": ("nv",)}, joint_space=True)
def diagonal_forward_dynamics(
    robot: Robot,
    q: Any,
    nu: Any,
    tau: Any,
    *,
    external: Any = None,
    normalized: bool = True,
    root: str = "cholesky",
) -> Any:
    """ν̇ = ℓ(T − C_g) − C_ν from total rates and joint forces; or ξ̇ = D⁻¹(κ − C_ξ), without
    normalization and with ξ for `nu` ([DL] Alg 8.1, (8.1) corrected).

    Gravity and external forces included; `joint_rates` gives the β to move q with. Returns
    (…, nv) [kg^½·m/s²; ξ̇ in rad/s² or m/s²]. Cost O(N), about twice that of `forward_dynamics`
    (more with the symmetric root of hinges with many freedoms).
    """

    def step(k: Any, children: Children) -> dict[str, Any]:
        """Ṗ, U̇, Ḋ, and with them ε"""
        new = articulating(k, children)
        return new | sift(k.extended(new), children)

    sift = sifted()
    x = unwound(robot, q, nu, normalized, root, robot.gravity, tau=tau, external=external)
    return accelerating(inward(step, x), normalized, root)


# ---- rates of change ----------------------------------------------------------------------------


class Articulating(NamedTuple):
    """Rates of change of articulated inertias in the bodies' axes: Ṗ of every body (…, nb, 6, 6); Ḋ
    (…, nv, nv), block diagonal; Ġ (…, 6, nv)."""

    P_dot: Any
    D_dot: Any
    G_dot: Any


@program
def articulated_inertia_rates(robot: Robot, q: Any, v: Any) -> Articulating:
    """How `articulated_inertias` change along a motion: Ṗ = Σ φ(Ṗ⁺ + crf(Δ)P⁺ − P⁺ad(Δ))φ*,
    Ḋ = HU̇ + ḢPH*, Ġ = (U̇ − GḊ)D⁻¹ with U̇ = ṖH* + PḢ* ([DL] Alg 6.1, Table 4).

    In the axes of the bodies (the paper's local derivatives). Returns Ṗ (…, nb, 6, 6),
    Ḋ (…, nv, nv), Ġ (…, 6, nv). Cost O(N).
    """

    def hinge(k: Any) -> dict[str, Any]:
        """Ḣ*"""
        return {"H_dot": hinge_map_rate(k, k.v)}

    def gain(k: Any) -> dict[str, Any]:
        """Ġ = (U̇ − GḊ)D⁻¹"""
        rows = k.U_dot.matrix - k.G.matrix @ k.D_dot
        return {"G_dot": np.stack([k.D.solve(row) for row in rows])}

    x = local(hinge, moving(forest(robot, q, v=v)))
    x = local(gain, inward(articulating, inward(riccati, x)))
    return Articulating(stack(x, "P_dot", (6, 6)), diagonal(x, "D_dot"), columns(x, "G_dot"))
