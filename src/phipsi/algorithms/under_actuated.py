"""Under-actuated robots: active joints with prescribed accelerations, passive ones with given
forces ([UA]).

    [ T_a ]   [  S_aa  S_ap ] [ β̇_a ]
    [ β̇_p ] = [ −S_ap* S_pp ] [ T_p ] + bias

`active` says which freedoms are active: truth values (nv,) or (…, nv), another split for every row
if need be (of other numbers all but zero are true), or the names of hinges, which are folded into
the code as constants.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms.cut import innovate
from phipsi.algorithms.kinematics import frame_acceleration, frame_of, frame_velocity, posed, view
from phipsi.compile import where
from phipsi.model import Robot
from phipsi.operators.lowering.steps import passive_riccati
from phipsi.programs import program
from phipsi.programs.arguments import are_names
from phipsi.spatial import Force, Motion, MotionBasis, RigidMotion
from phipsi.spatial import rotation as rot
from phipsi.sweeps import (
    Children,
    Forest,
    columns,
    force_bases,
    forest,
    gather,
    inward,
    local,
    outward,
    reciprocal,
)


def as_mask(robot: Robot, active: Any) -> Any:
    """For each freedom what is not zero where it is active, (nv,)."""
    if not are_names(active):
        return active
    names = (active,) if isinstance(active, str) else active
    return robot.mask(*names) * 1.0


# ---- hybrid dynamics ----------------------------------------------------------------------------


def passive(k: Any) -> dict[str, Any]:
    """p = 1 where passive, else 0"""
    return {"passive": where(k.active, 0.0, 1.0)}


def read(k: Any) -> dict[str, Any]:
    """T_p and β̇_a, zero elsewhere"""
    return {"tau": where(k.passive, k.T, 0.0), "qdd": where(k.passive, 0.0, k.rate)}


def prescribed(k: Any, parent: Any) -> dict[str, Any]:
    """u = Mᾱ + b of the motion with the accelerations β̇_a alone, in the classical form"""
    rate = k.H.T @ k.qdd + k.H_rate(k.v)
    X = (k.phi.T @ parent.X).through(k.H.T @ k.v, rate)
    return {"X": X, "u": k.M.inertial(X) - k.f_ext}


def absorb(k: Any, children: Children) -> dict[str, Any]:
    """P_p, D_p, G_p and  z = u + Σ φz⁺,  e = Hz,  z⁺ = z + G_p(T_p − e)   [UA] (5.4)"""
    new = passive_riccati(k, children)
    z = children.sum(lambda c: c.phi @ c.z_plus, k.u)
    e = k.H @ z
    return {**new, "e": e, "z_plus": z + new["G_p"] @ (k.tau - e)}


def deliver(k: Any, parent: Any) -> dict[str, Any]:
    """w = e + HPφ*λ,  β̇_p = D_p⁻¹(T_p − w),  T_a = w + Dβ̇_p + Aβ̇_a,  λ = φ*λ + H*β̇_p   [UA] (5.4)

    λ = α − ᾱ is what the passive accelerations add.
    """
    plus = k.phi.T @ parent.lam
    w = k.e + k.G_p.U.transpose_dot(plus)
    yielded = k.D_p.solve(k.tau - w)
    held = w + k.D_p.others(yielded) + k.A * k.qdd
    return {"held": held, "yielded": yielded, "lam": plus + k.H.T @ yielded}


def complete(k: Any) -> dict[str, Any]:
    """T and β̇, given ones as they are"""
    return {"all_tau": where(k.passive, k.T, k.held), "all_qdd": k.qdd + k.yielded}


class Hybrid(NamedTuple):
    """All joint forces and accelerations, (…, nv) each: given ones as they are, others found."""

    tau: Any
    qdd: Any


def exchange(robot: Robot, q: Any, v: Any, tau: Any, qdd: Any, active: Any, **more: Any) -> Forest:
    """T_a and β̇_p from β̇_a and T_p, with `gravity` and `external` forces if any."""
    g = more.pop("gravity", np.zeros(3))
    x = forest(robot, q, v=v, T=tau, rate=qdd, active=as_mask(robot, active), **more)
    x = local(read, local(passive, x))
    x = inward(absorb, outward(prescribed, x, X=RigidMotion.accelerated(-rot.scalars(g))))
    return local(complete, outward(deliver, x, lam=Motion.zero()))


@program(shapes={"qdd": ("nv",), "active": ("nv",)}, masks=("active",), joint_space=True)
def hybrid_dynamics(
    robot: Robot, q: Any, v: Any, tau: Any, qdd: Any, active: Any, *, external: Any = None
) -> Hybrid:
    """Joint forces where accelerations are prescribed, accelerations where forces are known:
    T_a = S_aaβ̇_a + S_apT_p + C_a − S_apC_p,  β̇_p = −S_ap*β̇_a + S_pp(T_p − C_p) ([UA] Lemma 5.2).

    `tau` is read where passive and `qdd` where active; `active` is truth values (nv,) or (…, nv),
    mixed within a hinge too, or names of hinges. All passive it is `forward_dynamics`, all active
    `inverse_dynamics`. Gravity, armature and external forces included. Returns `tau` and `qdd`,
    both complete (…, nv). Cost O(N), below both together for hinges of one freedom.

    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.space_arm()
    >>> q, v = robot.random_state(0)
    >>> tau, qdd = np.zeros(robot.nv), np.ones(robot.nv)
    >>> tau, qdd = pp.hybrid_dynamics(robot, q, v, tau, qdd, active=~robot.mask("base"))
    >>> bool(np.allclose(pp.inverse_dynamics(robot, q, v, qdd), tau))
    True
    """
    x = exchange(robot, q, v, tau, qdd, active, gravity=robot.gravity, external=external)
    return Hybrid(gather(x, "all_tau"), gather(x, "all_qdd"))


class Drift(NamedTuple):
    """The accelerations at β̇_a = 0: of a frame (…, 6), and of the passive joints (…, nv), zero
    where active."""

    frame: Any
    joints: Any


@program(shapes={"active": ("nv",)}, masks=("active",), joint_space=True)
def drift_accelerations(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    frame: str,
    active: Any,
    *,
    external: Any = None,
    reference: str = "local",
    classical: bool = False,
) -> Drift:
    """What is left of α = J_Gβ̇_a + drift and β̇_p = J_Dβ̇_a + drift without β̇_a ([UA] (6.11), (7.1)).

    Velocities, gravity, external forces and passive forces `tau` (read where passive) drive it.
    Returns (…, 6) [rad/s², m/s²], true, spatial unless `classical`, and (…, nv). Cost O(N).
    """
    still = np.zeros(robot.nv)
    qdd = hybrid_dynamics(robot, q, v, tau, still, active, external=external).qdd
    seen = frame_acceleration(robot, q, v, qdd, frame, reference=reference, classical=classical)
    return Drift(seen, qdd)


# ---- at the level of rates ----------------------------------------------------------------------


@program(shapes={"momentum": ("nv",), "active": ("nv",)}, masks=("active",), joint_space=True)
def passive_rates(robot: Robot, q: Any, v: Any, active: Any, momentum: Any = None) -> Any:
    """The joint rates β with given active ones and given passive momenta p = (𝓜β)_p:
    β_p = J_Dβ_a + 𝓜_pp⁻¹p ([UA] (7.3)).

    `v` is read where active, `momentum` (nv,) where passive; None is zero, as of a free-flyer that
    began at rest, base passive: J_D and J_G then act on rates. With the base alone passive its part
    of `momentum` is that of the whole system about the base, `momentum(robot, q, v, about="base")`.
    Returns (…, nv), active ones as given [rad/s or m/s]. Cost O(N).
    """
    still = np.zeros(robot.nv)
    x = exchange(robot, q, still, still if momentum is None else momentum, v, active)
    return gather(x, "all_qdd")


@program(shapes={"x": ("nv",), "active": ("nv",)}, masks=("active",), joint_space=True)
def generalized_jacobian_product(
    robot: Robot, q: Any, x: Any, frame: str, active: Any, *, reference: str = "local"
) -> Any:
    """J_G x without forming J_G, x (nv,) read where active ([UA] Lemma 6.3).

    Returns (…, 6), [angular; linear]. Cost O(N).
    """
    return frame_velocity(robot, q, passive_rates(robot, q, x, active), frame, reference=reference)


@program(shapes={"x": ("nv",), "active": ("nv",)}, masks=("active",), joint_space=True)
def disturbance_jacobian_product(robot: Robot, q: Any, x: Any, active: Any) -> Any:
    """J_D x without forming J_D, x (nv,) read where active ([UA] Lemma 6.4).

    Returns (…, nv), zero where active. Cost O(N).
    """
    still = np.zeros(robot.nv)
    return gather(exchange(robot, q, still, still, x, active), "yielded")


# ---- Jacobians and matrices ---------------------------------------------------------------------


def hold(k: Any, parent: Any) -> dict[str, Any]:
    """w = e + HPφ*Λ,  B = −D_p⁻¹w,  J_G* = w + DB,  Λ = φ*Λ + H*B   [UA] Lemma 6.3

    What active joints hold against unit forces while passive ones yield: H_a(ψ_p − PΩ_p)F.
    """
    plus = [k.phi.T @ column for column in parent.lam.columns]
    w = k.e + np.stack([k.G_p.U.transpose_dot(motion) for motion in plus], axis=1)
    rates = [-k.D_p.solve(column) for column in w.T]
    held = [where(k.passive, 0.0, e + k.D_p.others(y)) for e, y in zip(w.T, rates, strict=True)]
    lam = MotionBasis(tuple(m + k.H.T @ rate for m, rate in zip(plus, rates, strict=True)))
    return {"J": np.stack(held), "lam": lam}


@program(shapes={"active": ("nv",)}, masks=("active",), joint_space=True)
def generalized_jacobian(
    robot: Robot, q: Any, frame: str, active: Any, *, reference: str = "local"
) -> Any:
    """J_G: the acceleration of a frame is J_Gβ̇_a + drift, its velocity J_Gβ_a where the passive
    momenta are zero: J_G = B*(ψ_p* − Ω_pP_p)H_a* = J_a + J_pJ_D ([UA] Lemma 6.3).

    By rows, as what the active joints hold against unit forces at the frame. Returns (…, 6, nv),
    [angular; linear], passive columns zero; reference "local", "world" or "aligned". Cost O(N).
    """
    x = forest(robot, q, active=as_mask(robot, active))
    at = view(frame_of(posed(x), frame), reference)
    N = np.stack([(at.phi @ Force.of(unit)).array for unit in np.eye(6).astype(object)], axis=1)

    def yielding(k: Any) -> dict[str, Any]:
        """Only passive hinges yield: G_p for G"""
        return {"G": k.G_p}

    x = local(yielding, inward(passive_riccati, local(passive, x)))
    x = inward(innovate, x.holding(F=force_bases(robot, (frame,), N)))
    still = MotionBasis((Motion.zero(),) * 6)
    return columns(outward(hold, x, lam=still), "J")


def share(k: Any) -> dict[str, Any]:
    """x is β̇_a where active, T_p elsewhere"""
    return {"qdd": k.x * (1.0 - k.passive), "tau": k.x * k.passive}


def charge(k: Any, children: Children) -> dict[str, Any]:
    """z = PH*β̇_a + Σ φz⁺,  e = Hz,  z⁺ = z + G_p(T_p − e)   [UA] (5.4)"""
    z = children.sum(lambda c: c.phi @ c.z_plus, k.G_p.U @ k.qdd)
    e = k.H @ z
    return {"z": z, "e": e, "z_plus": z + k.G_p @ (k.tau - e)}


def answer(k: Any, parent: Any) -> dict[str, Any]:
    """y = T where active, −β̇ elsewhere;  λ with the active accelerations too"""
    new = deliver(k, parent)
    y = new["held"] * (1.0 - k.passive) - new["yielded"]
    return {"y": y, "lam": new["lam"] + k.H.T @ k.qdd}


def common_ancestor_block(a: Any, b: Any) -> Any:
    """z(i)*λ(j): the force that x_i sends to a body, against the motion that x_j gives it"""
    return b.lam.dot(a.z)


def _answered(x: Forest) -> Forest:
    return outward(answer, inward(charge, local(share, x)), lam=Motion.zero())


def split_mass_matrix(robot: Robot, q: Any, active: Any) -> tuple[Any, Any]:
    """[[S_aa, S_ap], [S_ap*, −S_pp]] in the order of the freedoms, symmetric, (nv, nv); and p."""
    mask = as_mask(robot, active)
    x = inward(passive_riccati, local(passive, forest(robot, q, active=mask)))
    return reciprocal(_answered, common_ancestor_block, x), where(mask, 0.0, 1.0)


@program(shapes={"active": ("nv",)}, masks=("active",), joint_space=True)
def active_mass_matrix(robot: Robot, q: Any, active: Any) -> Any:
    """S_aa = 𝓜_aa − 𝓜_ap𝓜_pp⁻¹𝓜_pa: the inertia that active joints feel, passive ones free
    ([UA] Lemma 5.1).

    Returns (…, nv, nv), symmetric, zero but for active rows and columns. Cost O(N²).
    """
    S, p = split_mass_matrix(robot, q, active)
    return where(np.outer(1.0 - p, 1.0 - p), S, 0.0)


@program(shapes={"active": ("nv",)}, masks=("active",), joint_space=True)
def coupling(robot: Robot, q: Any, active: Any) -> Any:
    """S_ap = 𝓜_ap𝓜_pp⁻¹: the active forces by which passive ones are felt ([UA] Lemma 5.1).

    Returns (…, nv, nv), zero but for active rows and passive columns. Cost O(N²).
    """
    S, p = split_mass_matrix(robot, q, active)
    return where(np.outer(1.0 - p, p), S, 0.0)


@program(shapes={"active": ("nv",)}, masks=("active",), joint_space=True)
def passive_mass_inverse(robot: Robot, q: Any, active: Any) -> Any:
    """S_pp = 𝓜_pp⁻¹: the passive accelerations by passive forces, active joints locked
    ([UA] Lemma 4.3).

    Returns (…, nv, nv), symmetric, zero but for passive rows and columns. Cost O(N²).
    """
    S, p = split_mass_matrix(robot, q, active)
    return where(np.outer(p, p), -S, 0.0)


@program(shapes={"active": ("nv",)}, masks=("active",), joint_space=True)
def disturbance_jacobian(robot: Robot, q: Any, active: Any) -> Any:
    """J_D = −S_ap* = −𝓜_pp⁻¹𝓜_pa: the passive accelerations are J_Dβ̇_a + drift, the passive rates
    J_Dβ_a where their momenta are zero ([UA] Lemma 6.4).

    Returns (…, nv, nv), zero but for passive rows and active columns. Cost O(N²).
    """
    S, p = split_mass_matrix(robot, q, active)
    return where(np.outer(p, 1.0 - p), -S, 0.0)
