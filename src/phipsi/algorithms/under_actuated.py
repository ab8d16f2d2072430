"""Under-actuated robots: accelerations of active joints and forces of passive joints are given
([UA]).

    [ T_a ]   [  S_aa  S_ap ] [ β̇_a ]
    [ β̇_p ] = [ −S_ap* S_pp ] [ T_p ] + bias

The parameter `active` selects the active freedoms. It is an array of truth values, (nv,) or
(…, nv), so that every row of a batch may have its own split (numbers other than zero are true), or
the names of the active hinges, which become constants of the compiled program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from phipsi.algorithms.cut import innovate
from phipsi.algorithms.kinematics import frame_acceleration, frame_of, frame_velocity, posed, view
from phipsi.compile import where
from phipsi.conventions import Reference
from phipsi.model import Robot
from phipsi.operators.lowering.steps import passive_riccati
from phipsi.programs import program
from phipsi.programs.arguments import are_names
from phipsi.spatial import Force, Motion, MotionBasis, RigidMotion, armature_block
from phipsi.spatial import rotation as rot
from phipsi.sweeps import (
    Children,
    Entry,
    Forest,
    Record,
    columns,
    force_bases,
    forest,
    gather,
    inward,
    local,
    outward,
    reciprocal,
)
from phipsi.typing import (
    Array,
    ArrayLike,
    ConfigurationLike,
    ExternalForces,
    Jacobian,
    JointMatrix,
    JointVector,
    JointVectorLike,
    MaskLike,
    Real,
    SpatialVector,
)


def as_mask(robot: Robot, active: MaskLike) -> Array:
    """The mask (nv,) of the active freedoms, nonzero where active; names of hinges become 1 and 0.

    A mask that is given as numbers is returned as it is.
    """
    if not are_names(active):
        return np.asanyarray(active)
    names = cast("str | Sequence[str]", active)
    return robot.mask(*((names,) if isinstance(names, str) else names)) * 1.0


# ---- hybrid dynamics ----------------------------------------------------------------------------


def passive(k: Record) -> dict[str, Any]:
    """p = 1 where passive, else 0"""
    return {"passive": where(k.active, 0.0, 1.0)}


def read(k: Record) -> dict[str, Any]:
    """T_p and β̇_a, zero elsewhere"""
    return {"tau": where(k.passive, k.T, 0.0), "qdd": where(k.passive, 0.0, k.rate)}


def prescribed(k: Record, parent: Record) -> dict[str, Any]:
    """u = Mᾱ + b of the motion with the accelerations β̇_a alone, in the classical form"""
    rate = k.H.T @ k.qdd + k.H_rate(k.v)
    X = (k.phi.T @ parent.X).through(k.H.T @ k.v, rate)
    return {"X": X, "u": k.M.inertial(X) - k.f_ext}


def absorb(k: Record, children: Children) -> dict[str, Any]:
    """P_p, D_p, G_p and  z = u + Σ φz⁺,  e = Hz,  z⁺ = z + G_p(T_p − e)   [UA] (5.4)"""
    new = passive_riccati(k, children)
    z = children.sum(lambda c: c.phi @ c.z_plus, k.u)
    e = k.H @ z
    return {**new, "e": e, "z_plus": z + new["G_p"] @ (k.tau - e)}


def deliver(k: Record, parent: Record) -> dict[str, Any]:
    """w = e + HPφ*λ,  β̇_p = D_p⁻¹(T_p − w),  T_a = w + Dβ̇_p + Aβ̇_a,  λ = φ*λ + H*β̇_p   [UA] (5.4)

    λ = α − ᾱ is the part of the acceleration that the passive joints add.
    """
    plus = k.phi.T @ parent.lam
    w = k.e + k.G_p.U.transpose_dot(plus)
    yielded = k.D_p.solve(k.tau - w)
    held = w + k.D_p.others(yielded) + armature_block(k.A) @ k.qdd
    return {"held": held, "yielded": yielded, "lam": plus + k.H.T @ yielded}


def complete(k: Record) -> dict[str, Any]:
    """T and β̇ of all freedoms: the given values, and those found"""
    return {"all_tau": where(k.passive, k.T, k.held), "all_qdd": k.qdd + k.yielded}


class HybridSolution(NamedTuple):
    """The forces and accelerations of all joints: given ones unchanged, the others computed."""

    tau: JointVector
    """(…, nv) [N·m or N]: joint forces, as given where passive."""
    qdd: JointVector
    """(…, nv) [rad/s² or m/s²]: joint accelerations, as given where active."""


def exchange(
    robot: Robot,
    q: ConfigurationLike,
    v: ArrayLike,
    tau: ArrayLike,
    qdd: ArrayLike,
    active: MaskLike,
    *,
    gravity: Array | None = None,
    external: ExternalForces | None = None,
) -> Forest:
    """The bodies with T_a and β̇_p computed from β̇_a and T_p; no gravity unless it is given."""
    g = np.zeros(3) if gravity is None else gravity
    mask = as_mask(robot, active)
    x = forest(robot, q, v=v, T=tau, rate=qdd, active=mask, external=external)
    x = local(read, local(passive, x))
    x = inward(absorb, outward(prescribed, x, X=RigidMotion.accelerated(-rot.scalars(g))))
    return local(complete, outward(deliver, x, lam=Motion.zero()))


@program(joint_space=True)
def hybrid_dynamics(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    tau: JointVectorLike,
    qdd: JointVectorLike,
    active: MaskLike,
    *,
    external: ExternalForces | None = None,
) -> HybridSolution:
    """Forces of active joints and accelerations of passive joints ([UA] Lemma 5.2).

        T_a = S_aa β̇_a + S_ap T_p + C_a − S_ap C_p,    β̇_p = −S_ap* β̇_a + S_pp (T_p − C_p)

    With all joints passive this is `forward_dynamics`, with all active `inverse_dynamics`. Gravity,
    armature and external forces are included. Cost O(N), less than that of both together for
    hinges of one freedom.

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    tau : (…, nv)
        Joint forces T_p [N·m or N]; read where passive.
    qdd : (…, nv)
        Joint accelerations β̇_a [rad/s² or m/s²]; read where active.
    active : (…, nv), or names of hinges
        Which freedoms are active: truth values, possibly different within one hinge, or names.
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.

    Returns
    -------
    HybridSolution
        The forces `tau` and the accelerations `qdd` of all joints, (…, nv) each.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.space_arm()
    >>> q, v = robot.random_state(0)
    >>> tau, qdd = np.zeros(robot.nv), np.ones(robot.nv)
    >>> tau, qdd = pp.hybrid_dynamics(robot, q, v, tau, qdd, active=~robot.mask("base"))
    >>> np.allclose(pp.inverse_dynamics(robot, q, v, qdd), tau)
    True
    """
    x = exchange(robot, q, v, tau, qdd, active, gravity=robot.gravity, external=external)
    return HybridSolution(gather(x, "all_tau"), gather(x, "all_qdd"))


class DriftAccelerations(NamedTuple):
    """The accelerations that remain when the active joints do not accelerate, β̇_a = 0."""

    frame: SpatialVector
    """(…, 6) [rad/s², m/s²]: the acceleration of the frame, as seen from the reference."""
    joints: JointVector
    """(…, nv) [rad/s² or m/s²]: the accelerations of the passive joints, zero where active."""


@program(joint_space=True)
def drift_accelerations(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    tau: JointVectorLike,
    frame: str,
    active: MaskLike,
    *,
    external: ExternalForces | None = None,
    reference: Reference = "local",
    classical: bool = False,
) -> DriftAccelerations:
    """The drift in α = J_G β̇_a + drift and β̇_p = J_D β̇_a + drift ([UA] (6.11), (7.1)).

    It is caused by velocities, gravity, external forces and the forces of passive joints. Cost
    O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    tau : (…, nv)
        Joint forces T_p [N·m or N]; read where passive.
    frame
        The name of the frame.
    active : (…, nv), or names of hinges
        Which freedoms are active: truth values or names.
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.
    reference : "local", "world" or "aligned"
        The axes and origin of the frame's acceleration.
    classical
        Add [0; ω × v] to the spatial acceleration of the frame.

    Returns
    -------
    DriftAccelerations
        The accelerations of the frame, (…, 6) [rad/s², m/s²], true (gravity not subtracted), and
        of the passive joints, (…, nv).

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v, tau = [0.3, -0.5], [1.0, 2.0], [0.0, 0.0]
    >>> drift = pp.drift_accelerations(robot, q, v, tau, "tool", active=[False, False])
    >>> np.allclose(drift.joints, pp.forward_dynamics(robot, q, v, tau))  # no joint is active
    True
    """
    still = np.zeros(robot.nv)
    qdd = hybrid_dynamics(robot, q, v, tau, still, active, external=external).qdd
    alpha = frame_acceleration(robot, q, v, qdd, frame, reference=reference, classical=classical)
    return DriftAccelerations(alpha, qdd)


# ---- at the level of rates ----------------------------------------------------------------------


@program(joint_space=True)
def passive_rates(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    active: MaskLike,
    momentum: JointVectorLike | None = None,
) -> JointVector:
    """The joint rates β_p = J_D β_a + 𝓜_pp⁻¹p for passive momenta p = (𝓜β)_p ([UA] (7.3)).

    A free-flyer that began at rest has zero momentum: with its base passive, J_D and J_G then act
    on rates. If the base alone is passive, its part of `momentum` is the momentum of the whole
    system about the base, `momentum(robot, q, v, about="base")`. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities β_a [rad/s or m/s]; read where active.
    active : (…, nv), or names of hinges
        Which freedoms are active: truth values or names.
    momentum : (…, nv), optional
        Joint momenta p [N·m·s or N·s]; read where passive. Default zero.

    Returns
    -------
    (…, nv)
        The velocities of all joints [rad/s or m/s], as given where active.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.space_arm()
    >>> q, v = robot.random_state(0)
    >>> v = pp.passive_rates(robot, q, v, active=~robot.mask("base"))
    >>> np.allclose(pp.momentum(robot, q, v), 0.0)  # the base moves so that it stays zero
    True
    """
    still = np.zeros(robot.nv)
    x = exchange(robot, q, still, still if momentum is None else momentum, v, active)
    return gather(x, "all_qdd")


@program(joint_space=True)
def generalized_jacobian_product(
    robot: Robot,
    q: ConfigurationLike,
    x: JointVectorLike,
    frame: str,
    active: MaskLike,
    *,
    reference: Reference = "local",
) -> SpatialVector:
    """The product J_G x, without forming J_G ([UA] Lemma 6.3).

    Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    x : (…, nv)
        Rates or accelerations of the active joints; read where active.
    frame
        The name of the frame.
    active : (…, nv), or names of hinges
        Which freedoms are active: truth values or names.
    reference : "local", "world" or "aligned"
        The axes and origin of the result.

    Returns
    -------
    (…, 6)
        The motion of the frame, [angular; linear].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, x, active = [0.3, -0.5], np.array([1.0, 2.0]), [True, False]
    >>> J = pp.generalized_jacobian(robot, q, "tool", active)
    >>> np.allclose(pp.generalized_jacobian_product(robot, q, x, "tool", active), J @ x)
    True
    """
    return frame_velocity(robot, q, passive_rates(robot, q, x, active), frame, reference=reference)


@program(joint_space=True)
def disturbance_jacobian_product(
    robot: Robot, q: ConfigurationLike, x: JointVectorLike, active: MaskLike
) -> JointVector:
    """The product J_D x, without forming J_D ([UA] Lemma 6.4).

    Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    x : (…, nv)
        Rates or accelerations of the active joints; read where active.
    active : (…, nv), or names of hinges
        Which freedoms are active: truth values or names.

    Returns
    -------
    (…, nv)
        Rates or accelerations of the passive joints, zero where active.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, x, active = [0.3, -0.5], np.array([1.0, 2.0]), [True, False]
    >>> J = pp.disturbance_jacobian(robot, q, active)
    >>> np.allclose(pp.disturbance_jacobian_product(robot, q, x, active), J @ x)
    True
    """
    still = np.zeros(robot.nv)
    return gather(exchange(robot, q, still, still, x, active), "yielded")


# ---- Jacobians and matrices ---------------------------------------------------------------------


def hold(k: Record, parent: Record) -> dict[str, Any]:
    """w = e + HPφ*Λ,  B = −D_p⁻¹w,  J_G* = w + DB,  Λ = φ*Λ + H*B   [UA] Lemma 6.3

    H_a(ψ_p − PΩ_p)F: the forces with which active joints resist unit forces F while passive joints
    move freely.
    """
    plus = [k.phi.T @ column for column in parent.lam.columns]
    w = k.e + np.stack([k.G_p.U.transpose_dot(motion) for motion in plus], axis=1)
    rates = [-k.D_p.solve(column) for column in w.T]
    held = [where(k.passive, 0.0, e + k.D_p.others(y)) for e, y in zip(w.T, rates, strict=True)]
    lam = MotionBasis(tuple(m + k.H.T @ rate for m, rate in zip(plus, rates, strict=True)))
    return {"J": np.stack(held), "lam": lam}


@program(joint_space=True)
def generalized_jacobian(
    robot: Robot,
    q: ConfigurationLike,
    frame: str,
    active: MaskLike,
    *,
    reference: Reference = "local",
) -> Jacobian:
    """The generalized Jacobian J_G = B*(ψ_p* − Ω_pP_p)H_a* = J_a + J_pJ_D ([UA] Lemma 6.3).

    The acceleration of a frame is J_G β̇_a + drift; where the passive momenta are zero its velocity
    is J_G β_a. The rows are computed as the forces with which the active joints resist unit forces
    at the frame. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    frame
        The name of the frame.
    active : (…, nv), or names of hinges
        Which freedoms are active: truth values or names.
    reference : "local", "world" or "aligned"
        The axes and origin of the rows.

    Returns
    -------
    (…, 6, nv)
        The matrix, rows [angular; linear]; the columns of passive freedoms are zero.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q = [0.3, -0.5]
    >>> J = pp.generalized_jacobian(robot, q, "tool", active=[True, True])
    >>> np.allclose(J, pp.jacobian(robot, q, "tool"))  # no joint is passive
    True
    """
    x = forest(robot, q, active=as_mask(robot, active))
    at = view(frame_of(posed(x), frame), reference)
    N = np.stack([(at.phi @ Force.of(unit)).array for unit in np.eye(6).astype(object)], axis=1)

    def yielding(k: Record) -> dict[str, Any]:
        """G = G_p: only passive hinges yield to forces"""
        return {"G": k.G_p}

    x = local(yielding, inward(passive_riccati, local(passive, x)))
    x = inward(innovate, x.holding(F=force_bases(robot, (frame,), N)))
    still = MotionBasis((Motion.zero(),) * 6)
    return columns(outward(hold, x, lam=still), "J")


def share(k: Record) -> dict[str, Any]:
    """x is β̇_a where active, T_p elsewhere"""
    return {"qdd": k.x * (1.0 - k.passive), "tau": k.x * k.passive}


def charge(k: Record, children: Children) -> dict[str, Any]:
    """z = PH*β̇_a + Σ φz⁺,  e = Hz,  z⁺ = z + G_p(T_p − e)   [UA] (5.4)"""
    z = children.sum(lambda c: c.phi @ c.z_plus, k.G_p.U @ k.qdd)
    e = k.H @ z
    return {"z": z, "e": e, "z_plus": z + k.G_p @ (k.tau - e)}


def answer(k: Record, parent: Record) -> dict[str, Any]:
    """y = T where active, −β̇ elsewhere;  λ with the active accelerations too"""
    new = deliver(k, parent)
    y = new["held"] * (1.0 - k.passive) - new["yielded"]
    return {"y": y, "lam": new["lam"] + k.H.T @ k.qdd}


def common_ancestor_block(a: Record, b: Record) -> Real:
    """z(i)*λ(j): the power of the force that x_i sends to a body on the motion that x_j gives it"""
    return b.lam.dot(a.z)


def _answered(x: Forest) -> Forest:
    """The column `y` of the split mass matrix for the unit vector `x`."""
    return outward(answer, inward(charge, local(share, x)), lam=Motion.zero())


def split_mass_matrix(
    robot: Robot, q: ConfigurationLike, active: MaskLike, entry: Entry
) -> JointMatrix:
    """entry(p_i, p_j, S_ij) of S = [[S_aa, S_ap], [S_ap*, −S_pp]] in the order of the freedoms,
    symmetric; p is 1 where passive, else 0."""
    mask = as_mask(robot, active)
    x = inward(passive_riccati, local(passive, forest(robot, q, active=mask)))
    return reciprocal(_answered, common_ancestor_block, x, where(mask, 0.0, 1.0), entry)


@program(joint_space=True)
def active_mass_matrix(robot: Robot, q: ConfigurationLike, active: MaskLike) -> JointMatrix:
    """The mass matrix S_aa = 𝓜_aa − 𝓜_ap𝓜_pp⁻¹𝓜_pa of the active joints ([UA] Lemma 5.1).

    It is the inertia that the active joints feel while the passive joints are free. Cost O(N²).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    active : (…, nv), or names of hinges
        Which freedoms are active: truth values or names.

    Returns
    -------
    (…, nv, nv)
        The matrix [kg, kg·m, kg·m²], symmetric, zero outside active rows and columns.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> S = pp.active_mass_matrix(robot, [0.3, -0.5], active=[True, False])
    >>> np.allclose(S[0, 0], 1.0 / pp.mass_matrix_inverse(robot, [0.3, -0.5])[0, 0])
    True
    """

    def entry(row: Array, column: Array, S: Array) -> Array:
        return where((1.0 - row) * (1.0 - column), S, 0.0)

    return split_mass_matrix(robot, q, active, entry)


@program(joint_space=True)
def coupling(robot: Robot, q: ConfigurationLike, active: MaskLike) -> JointMatrix:
    """The coupling S_ap = 𝓜_ap𝓜_pp⁻¹ of passive forces to active forces ([UA] Lemma 5.1).

    Passive forces T_p make the active joints feel the forces S_ap T_p. Cost O(N²).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    active : (…, nv), or names of hinges
        Which freedoms are active: truth values or names.

    Returns
    -------
    (…, nv, nv)
        The matrix, zero outside active rows and passive columns.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> S = pp.coupling(robot, [0.3, -0.5], active=[True, False])
    >>> M = pp.mass_matrix(robot, [0.3, -0.5])
    >>> np.allclose(S[0, 1], M[0, 1] / M[1, 1])
    True
    """

    def entry(row: Array, column: Array, S: Array) -> Array:
        return where((1.0 - row) * column, S, 0.0)

    return split_mass_matrix(robot, q, active, entry)


@program(joint_space=True)
def passive_mass_inverse(robot: Robot, q: ConfigurationLike, active: MaskLike) -> JointMatrix:
    """The inverse S_pp = 𝓜_pp⁻¹ of the mass matrix of the passive joints ([UA] Lemma 4.3).

    It maps passive forces to passive accelerations while the active joints are locked. Cost O(N²).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    active : (…, nv), or names of hinges
        Which freedoms are active: truth values or names.

    Returns
    -------
    (…, nv, nv)
        The matrix, symmetric, zero outside passive rows and columns.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> S = pp.passive_mass_inverse(robot, [0.3, -0.5], active=[True, False])
    >>> np.allclose(S[1, 1], 1.0 / pp.mass_matrix(robot, [0.3, -0.5])[1, 1])
    True
    """

    def entry(row: Array, column: Array, S: Array) -> Array:
        return where(row * column, -S, 0.0)

    return split_mass_matrix(robot, q, active, entry)


@program(joint_space=True)
def disturbance_jacobian(robot: Robot, q: ConfigurationLike, active: MaskLike) -> JointMatrix:
    """The disturbance Jacobian J_D = −S_ap* = −𝓜_pp⁻¹𝓜_pa ([UA] Lemma 6.4).

    The passive accelerations are J_D β̇_a + drift; where the passive momenta are zero the passive
    rates are J_D β_a. Cost O(N²).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    active : (…, nv), or names of hinges
        Which freedoms are active: truth values or names.

    Returns
    -------
    (…, nv, nv)
        The matrix, zero outside passive rows and active columns.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> J = pp.disturbance_jacobian(robot, [0.3, -0.5], active=[True, False])
    >>> M = pp.mass_matrix(robot, [0.3, -0.5])
    >>> np.allclose(J[1, 0], -M[1, 0] / M[1, 1])
    True
    """

    def entry(row: Array, column: Array, S: Array) -> Array:
        return where(row * (1.0 - column), -S, 0.0)

    return split_mass_matrix(robot, q, active, entry)
