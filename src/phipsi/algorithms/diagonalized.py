"""Diagonalized Lagrangian dynamics: rates and moments in which the mass matrix is the identity
([DL]).

    𝓜 = m m*,  m = (I + HφK)D½        ν = m*β   total rates         ε = ℓT   working moments
    ν̇ + C_ν = ε,   ν*C_ν = 0          ξ = D⁻½*ν, κ = D½ε            the same without D½

D½ is the lower triangular root of each hinge's D, or (root="symmetric") the symmetric one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from phipsi.algorithms.kinematics import moving
from phipsi.algorithms.mass_matrix import whiten
from phipsi.model import Robot
from phipsi.operators import l, m
from phipsi.operators.algebra.local_action import hinge_map_rate
from phipsi.operators.lowering.steps import articulating, gyroscopic, riccati
from phipsi.programs import program
from phipsi.spatial import Force, HingeMap, Motion, NoRoot, Pivot, check_root, root_of
from phipsi.spatial import rotation as rot
from phipsi.spatial.roots import SymmetricRoot
from phipsi.sweeps import (
    Children,
    Forest,
    Record,
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
from phipsi.typing import (
    Array,
    ConfigurationLike,
    ExternalForces,
    JointMatrix,
    JointVector,
    JointVectorLike,
    SpatialMatrices,
    Vector3,
)

RootKind = Literal["cholesky", "symmetric"]
"""The roots D½ of `phipsi.spatial.roots.ROOTS`."""
Outward = Callable[[Record, Record], dict[str, Any]]
"""A step of an outward sweep: the new fields of a body, from its record and its parent's."""
Inward = Callable[[Record, Children], dict[str, Any]]
"""A step of an inward sweep: the new fields of a body, from its record and its children's."""

# ---- rates and moments --------------------------------------------------------------------------


def root_function(
    normalized: bool, root: RootKind
) -> Callable[[Pivot], Pivot | SymmetricRoot | NoRoot]:
    """The function that gives the root D½ of a hinge's D, or the identity if not normalized."""
    check_root(root)

    def identity(D: Pivot) -> NoRoot:
        return NoRoot()

    return partial(root_of, kind=root) if normalized else identity


def total(k: Record, parent: Record) -> dict[str, Any]:
    """V⁺ = φ*V_p,  ξ = β + G*V⁺,  V = V⁺ + H*β   [DL] Table 2"""
    V_plus = k.phi.T @ parent.V
    return {"V": V_plus + k.H.T @ k.v, "xi": k.v + k.G.T @ V_plus}


@program(joint_space=True, equation=m.T)
def total_rates(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    *,
    normalized: bool = True,
    root: RootKind = "cholesky",
) -> JointVector:
    """Total joint rates ν = m*β, or without normalization ξ = (I + HφK)*β ([DL] (5.1)-(5.4)).

    ξ = β + G*V⁺ adds to the rate of each hinge its share of the motion V⁺ of the inboard body
    ([DL] Table 2). The kinetic energy is ½ν*ν = ½ξ*Dξ. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities β [rad/s or m/s].
    normalized
        Scale with D½; if false, the result is ξ.
    root
        Which root D½ of each hinge's D: "cholesky", lower triangular, or "symmetric".

    Returns
    -------
    (…, nv)
        The rates ν [kg^½·m/s], or ξ [rad/s or m/s].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> nu = pp.total_rates(robot, [0.3, -0.5], [1.0, 2.0])
    >>> np.allclose(0.5 * nu @ nu, pp.kinetic_energy(robot, [0.3, -0.5], [1.0, 2.0]))
    True
    """

    def normal(k: Record) -> dict[str, Any]:
        """ν = D½*ξ"""
        return {"nu": root_at(k.D).root_transpose(k.xi)}

    root_at = root_function(normalized, root)
    x = outward(total, inward(riccati, forest(robot, q, v=v)), V=Motion.zero())
    return gather(local(normal, x), "nu")


def joint_rate_step(normalized: bool, root: RootKind) -> Outward:
    """The outward step from total rates to joint rates and velocities."""
    root_at = root_function(normalized, root)

    def step(k: Record, parent: Record) -> dict[str, Any]:
        """ξ = D⁻½*ν,  V⁺ = φ*V_p,  β = ξ − G*V⁺,  Δ = H*β,  V = V⁺ + Δ   [DL] Table 2"""
        xi = root_at(k.D).root_transpose_solve(k.nu)
        V_plus = k.phi.T @ parent.V
        beta = xi - k.G.T @ V_plus
        Delta = k.H.T @ beta
        return {"xi": xi, "V_plus": V_plus, "beta": beta, "Delta": Delta, "V": V_plus + Delta}

    return step


@program(joint_space=True, equation=l.T)
def joint_rates(
    robot: Robot,
    q: ConfigurationLike,
    nu: JointVectorLike,
    *,
    normalized: bool = True,
    root: RootKind = "cholesky",
) -> JointVector:
    """Joint velocities β = ℓ*ν, or without normalization β = (I − HψK)*ξ ([DL] Table 2).

    The inverse of `total_rates`. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    nu : (…, nv)
        Total rates ν [kg^½·m/s], or ξ [rad/s or m/s] if not normalized.
    normalized
        Scale with D½; if false, `nu` are the rates ξ.
    root
        Which root D½ of each hinge's D: "cholesky", lower triangular, or "symmetric".

    Returns
    -------
    (…, nv)
        Joint velocities [rad/s or m/s].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> nu = pp.total_rates(robot, [0.3, -0.5], [1.0, 2.0])
    >>> np.allclose(pp.joint_rates(robot, [0.3, -0.5], nu), [1.0, 2.0])
    True
    """
    x = inward(riccati, forest(robot, q, nu=nu))
    return gather(outward(joint_rate_step(normalized, root), x, V=Motion.zero()), "beta")


@program(joint_space=True, equation=l)
def working_moments(
    robot: Robot,
    q: ConfigurationLike,
    tau: JointVectorLike,
    *,
    normalized: bool = True,
    root: RootKind = "cholesky",
) -> JointVector:
    """Working moments ε = ℓT, or without normalization κ = (I − HψK)T ([DL] Table 3).

    κ is the force of each hinge less the part that the forces of outboard hinges exert there. The
    power is ν*ε = ξ*κ. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    tau : (…, nv)
        Joint forces T [N·m or N].
    normalized
        Scale with D½; if false, the result is κ.
    root
        Which root D½ of each hinge's D: "cholesky", lower triangular, or "symmetric".

    Returns
    -------
    (…, nv)
        The moments ε [kg^½·m/s²], or κ [N·m or N].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v, tau = [0.3, -0.5], [1.0, 2.0], [3.0, 4.0]
    >>> power = pp.total_rates(robot, q, v) @ pp.working_moments(robot, q, tau)
    >>> np.allclose(power, np.dot(v, tau))
    True
    """

    def normal(k: Record) -> dict[str, Any]:
        """ε = D⁻½κ"""
        return {"eps": root_at(k.D).root_solve(k.kappa)}

    root_at = root_function(normalized, root)
    x = inward(whiten, inward(riccati, forest(robot, q, x=tau)))
    return gather(local(normal, x), "eps")


@program(joint_space=True, equation=m)
def applied_moments(
    robot: Robot,
    q: ConfigurationLike,
    eps: JointVectorLike,
    *,
    normalized: bool = True,
    root: RootKind = "cholesky",
) -> JointVector:
    """Joint forces T = mε, or without normalization T = (I + HφK)κ ([DL] Table 3, corrected).

    The inverse of `working_moments`. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    eps : (…, nv)
        Working moments ε [kg^½·m/s²], or κ [N·m or N] if not normalized.
    normalized
        Scale with D½; if false, `eps` are the moments κ.
    root
        Which root D½ of each hinge's D: "cholesky", lower triangular, or "symmetric".

    Returns
    -------
    (…, nv)
        Joint forces [N·m or N].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> eps = pp.working_moments(robot, [0.3, -0.5], [3.0, 4.0])
    >>> np.allclose(pp.applied_moments(robot, [0.3, -0.5], eps), [3.0, 4.0])
    True
    """

    def colour(k: Record, children: Children) -> dict[str, Any]:
        """κ = D½ε,  z = Σ φz⁺,  T = κ + Hz,  z⁺ = z + Gκ   [DL] Table 3"""
        kappa = root_at(k.D).root(k.eps)
        z = children.sum(lambda c: c.phi @ c.z_plus, Force.zero())
        return {"T": kappa + k.H @ z, "z_plus": z + k.G @ kappa}

    root_at = root_function(normalized, root)
    return gather(inward(colour, inward(riccati, forest(robot, q, eps=eps))), "T")


# ---- Coriolis terms and the equations of motion -------------------------------------------------


def moving_by_total_rates(
    robot: Robot,
    q: ConfigurationLike,
    nu: JointVectorLike,
    normalized: bool,
    root: RootKind,
    gravity: Vector3,
    *,
    tau: JointVectorLike,
    external: ExternalForces | None = None,
) -> Forest:
    """The bodies that move with the total rates ν or ξ: with P, D, G, V, b, Ḣ and f⁺."""
    rates = joint_rate_step(normalized, root)

    def step(k: Record, parent: Record) -> dict[str, Any]:
        """β, Δ, V;  b = crf(V)MV − Mg − f_ext;  Ḣ*;  f⁺ = P⁺V⁺"""
        new = rates(k, parent)
        new |= gyroscopic(k.extended(new), parent)
        new["H_dot"] = hinge_map_rate(k, new["beta"])
        return {**new, "f_plus": k.P_plus @ new["V_plus"]}

    x = inward(riccati, forest(robot, q, nu=nu, tau=tau, external=external))
    return outward(step, x, V=Motion.zero(), gravity=Motion(rot.zero(), rot.scalars(gravity)))


def equation_step(past: float = 1.0, present: float = 1.0, future: float = 1.0) -> Inward:
    """The inward step that collects the terms of the equations of motion; `past`, `present` and
    `future` are 1 or 0, to include each part of the Coriolis terms or not."""

    def step(k: Record, children: Children) -> dict[str, Any]:
        """x = b + Σ φx⁺,  e = T − Hx + ḢPV,  ε = e − Ḋξ,  x⁺ = x + U̇ξ + Gε − crf(Δ)f⁺

        [DL] Lemma 7.3, for any hinge; PV = f⁺ + Uξ.
        """
        x = children.sum(lambda c: c.phi @ c.x_plus, k.b * present)
        xi, f_plus = k.xi * past, k.f_plus * future
        e = k.tau - k.H @ x + HingeMap(k.H_dot) @ (f_plus + k.G.U @ xi)
        eps = e - k.D_dot @ xi
        x_plus = x + k.U_dot @ xi + k.G @ eps - k.Delta.cross_force(f_plus)
        return {"e": e, "eps": eps, "x_plus": x_plus}

    return step


def rate_derivatives(x: Forest, normalized: bool, root: RootKind, past: float = 1.0) -> JointVector:
    """ν̇, or ξ̇ if not normalized, from the terms that `equation_step` has collected."""

    def normal(k: Record) -> dict[str, Any]:
        """ν̇ = D⁻½(e − Ḋ½ν),  ξ̇ = D⁻¹ε"""
        if not normalized:
            return {"rate": k.D.solve(k.eps)}
        own = root_of(k.D, root)
        return {"rate": own.root_solve(k.e - own.root_rate(k.D_dot, k.nu) * past)}

    return gather(local(normal, x), "rate")


class CoriolisParts(NamedTuple):
    """The three parts of C_ν or C_ξ ([DL] 7), in the units of ε or κ."""

    past: JointVector
    """(…, nv): U̇ξ with U = PH*, and the derivative of D½, as the articulated inertias of outboard
    bodies change."""
    present: JointVector
    """(…, nv): crf(V)MV of the bodies themselves."""
    future: JointVector
    """(…, nv): P⁺V⁺ of the motion inboard, as hinges turn."""


@program
def diagonal_coriolis(
    robot: Robot,
    q: ConfigurationLike,
    nu: JointVectorLike,
    *,
    parts: bool = False,
    normalized: bool = True,
    root: RootKind = "cholesky",
) -> JointVector | CoriolisParts:
    """The Coriolis term C_ν of ν̇ + C_ν = ε, which does no work: ν*C_ν = 0 ([DL] Alg 7.1).

    This is [DL] Lemma 7.1. Without normalization it is C_ξ of Dξ̇ + C_ξ = κ, for which
    ξ*C_ξ = ½ξ*Ḋξ ([DL] Lemma 7.3). For any hinge, armature included:

        C_ξ = Hx − ḢPV + Ḋξ,    C_ν = D⁻½(Hx − ḢPV + Ḋ½ν)
        x = crf(V)MV + Σ φ(x + U̇ξ − GC_ξ − crf(Δ)P⁺V⁺),    U = PH*

    Gravity and external forces belong to ε. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    nu : (…, nv)
        Total rates ν [kg^½·m/s], or ξ [rad/s or m/s] if not normalized.
    parts
        Return the parts `past`, `present` and `future` instead of their sum.
    normalized
        Scale with D½; if false, `nu` are the rates ξ, and the result is C_ξ.
    root
        Which root D½ of each hinge's D: "cholesky", lower triangular, or "symmetric".

    Returns
    -------
    (…, nv) or Coriolis
        The term C_ν [kg^½·m/s²] or C_ξ [N·m or N], or its three parts, (…, nv) each.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> nu = np.array([1.0, 2.0])
    >>> C = pp.diagonal_coriolis(robot, [0.3, -0.5], nu)
    >>> np.allclose(nu @ C, 0.0)
    True
    """

    def term(*counted: float) -> JointVector:
        y = inward(equation_step(*counted), x)
        return -(rate_derivatives(y, True, root, counted[0]) if normalized else gather(y, "eps"))

    simple = robot if parts else simplest(robot)
    still = np.zeros(robot.nv)
    x = moving_by_total_rates(simple, q, nu, normalized, root, np.zeros(3), tau=still)
    x = inward(articulating, x)
    if not parts:
        return term(1.0, 1.0, 1.0)
    return CoriolisParts(*(term(*row) for row in np.eye(3).tolist()))


@program(joint_space=True)
def diagonal_forward_dynamics(
    robot: Robot,
    q: ConfigurationLike,
    nu: JointVectorLike,
    tau: JointVectorLike,
    *,
    external: ExternalForces | None = None,
    normalized: bool = True,
    root: RootKind = "cholesky",
) -> JointVector:
    """The derivatives of total rates ν̇ = ℓ(T − C_g) − C_ν, or ξ̇ = D⁻¹(κ − C_ξ) ([DL] Alg 8.1).

    ([DL] (8.1) is corrected.) Gravity and external forces are included. To move q, take β of
    `joint_rates`. Cost O(N), about twice that of `forward_dynamics`, and more with the symmetric
    root of hinges that have many freedoms.

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    nu : (…, nv)
        Total rates ν [kg^½·m/s], or ξ [rad/s or m/s] if not normalized.
    tau : (…, nv)
        Joint forces T [N·m or N].
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.
    normalized
        Scale with D½; if false, `nu` are the rates ξ, and the result is ξ̇.
    root
        Which root D½ of each hinge's D: "cholesky", lower triangular, or "symmetric".

    Returns
    -------
    (…, nv)
        The derivatives ν̇ [kg^½·m/s²], or ξ̇ [rad/s² or m/s²].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, still, tau = [0.3, -0.5], [0.0, 0.0], [3.0, 4.0]
    >>> rates = pp.diagonal_forward_dynamics(robot, q, still, tau)
    >>> a = pp.forward_dynamics(robot, q, still, tau)
    >>> np.allclose(rates, pp.total_rates(robot, q, a))  # at rest ν̇ = m*β̇
    True
    """

    def step(k: Record, children: Children) -> dict[str, Any]:
        """Ṗ, U̇, Ḋ, and with them ε"""
        new = articulating(k, children)
        return new | collect(k.extended(new), children)

    collect = equation_step()
    x = moving_by_total_rates(
        robot, q, nu, normalized, root, robot.gravity, tau=tau, external=external
    )
    return rate_derivatives(inward(step, x), normalized, root)


# ---- rates of change ----------------------------------------------------------------------------


class ArticulatedInertiaRates(NamedTuple):
    """The time derivatives of articulated inertias, in the axes of the bodies."""

    P_dot: SpatialMatrices
    """(…, nb, 6, 6) [kg/s, kg·m/s, kg·m²/s]: Ṗ of every body in its own frame."""
    D_dot: JointMatrix
    """(…, nv, nv) [kg/s, kg·m/s, kg·m²/s]: Ḋ, block diagonal."""
    G_dot: Annotated[Array, "6 nv"]
    """(…, 6, nv): Ġ, the columns of each hinge in the frame of its outboard body."""


@program
def articulated_inertia_rates(
    robot: Robot, q: ConfigurationLike, v: JointVectorLike
) -> ArticulatedInertiaRates:
    """The time derivatives of `articulated_inertias` along a motion ([DL] Alg 6.1, Table 4).

        Ṗ = Σ φ(Ṗ⁺ + crf(Δ)P⁺ − P⁺ad(Δ))φ*,    U̇ = ṖH* + PḢ*
        Ḋ = HU̇ + ḢPH*,    Ġ = (U̇ − GḊ)D⁻¹

    They are derivatives of components in the axes of the bodies (the paper's local derivatives).
    Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].

    Returns
    -------
    ArticulatedInertiaRates
        Ṗ (…, nb, 6, 6), Ḋ (…, nv, nv) and Ġ (…, 6, nv).

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v = np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> rates = pp.articulated_inertia_rates(robot, q, v)
    >>> ends = [pp.articulated_inertias(robot, q + h * v).P for h in (1e-6, -1e-6)]
    >>> np.allclose(rates.P_dot, (ends[0] - ends[1]) / 2e-6)
    True
    """

    def hinge(k: Record) -> dict[str, Any]:
        """Ḣ*"""
        return {"H_dot": hinge_map_rate(k, k.v)}

    def gain(k: Record) -> dict[str, Any]:
        """Ġ = (U̇ − GḊ)D⁻¹"""
        rows = k.U_dot.matrix - k.G.matrix @ k.D_dot
        return {"G_dot": np.stack([k.D.solve(row) for row in rows])}

    x = local(hinge, moving(forest(robot, q, v=v)))
    x = local(gain, inward(articulating, inward(riccati, x)))
    return ArticulatedInertiaRates(
        stack(x, "P_dot", (6, 6)), diagonal(x, "D_dot"), columns(x, "G_dot")
    )
