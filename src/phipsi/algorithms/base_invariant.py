"""Base-invariant dynamics of free-flyers: every body from its neighbours' messages alone ([BI] 3).

P and z say what a hinge feels of all that it moves; S and z_s say what the body beyond it feels of
all the rest. Where both meet, at any body, f = Pλ + z and −f = Sλ + z_s: no body is the base.

λ = α − ᾱ is what the joint rates' change adds to the bias acceleration ᾱ = φ*ᾱ_p + a, which is in
the loads u = Mᾱ + b: [BI] with a = 0 and u for b.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms.articulated_body import ACCELERATION
from phipsi.algorithms.kinematics import moving, posed, view
from phipsi.model import Robot
from phipsi.operators.checks import check_free
from phipsi.operators.lowering.steps import (
    MASSLESS,
    WORLD_DUAL,
    dual,
    dual_riccati,
    gyroscopic,
    riccati,
    sibling_message,
)
from phipsi.programs import program
from phipsi.spatial import (
    Force,
    Joined,
    Motion,
    RigidMotion,
    Transform,
)
from phipsi.spatial import rotation as rot
from phipsi.sweeps import (
    Children,
    Forest,
    columns,
    coordinates,
    diagonal,
    forest,
    gather,
    inward,
    local,
    messages,
    outward,
    over_siblings,
    stack,
)
from phipsi.sweeps.messages import Edge

# ---- inertias -----------------------------------------------------------------------------------


def operational(robot: Robot, q: Any, what: str = "Λ = P + S") -> Forest:
    """The bodies with P, S and Λ = P + S, the inertia of all of them seen from each ([BI] 4).

    `what` a robot that is not free is told to lack.
    """
    check_free(what, robot)
    x = over_siblings(sibling_message, inward(riccati, forest(robot, q)), siblings=MASSLESS)
    return outward(dual, x, **WORLD_DUAL)


class DualInertias(NamedTuple):
    """Dual articulated inertias, as `Articulated` has P, D and G: S of every body (…, nb, 6, 6),
    D_s (…, nv, nv), block diagonal, and G_s (…, 6, nv); in the frames of the bodies that the hinges
    move."""

    S: Any
    D_s: Any
    G_s: Any


@program
def dual_articulated_inertias(robot: Robot, q: Any) -> DualInertias:
    """S, D_s and G_s of the dual Riccati recursion, which runs outward ([BI] Alg 3.1).

    S⁺ = φ⁻¹(M_p + S_p + Σ φP⁺φ* of siblings)φ⁻*, D_s = HS⁺H* + A, G_s = −S⁺H*D_s⁻¹,
    S = S⁺ + G_sHS⁺: what a body feels of all that lies beyond its inboard hinge, every other hinge
    free [kg, kg·m, kg·m²]. At a root S = 0; D_s, infinite there, is given as zero. Needs a free
    base. Cost O(N).
    """

    def given(k: Any) -> dict[str, Any]:
        """D_s, zero where it is infinite, and G_s"""
        return {"D_s": k.minus_G_s.D.matrix * k.inside, "G_s": -k.minus_G_s.matrix}

    x = local(given, operational(robot, q, "dual_articulated_inertias"))
    return DualInertias(stack(x, "S", (6, 6)), diagonal(x, "D_s"), columns(x, "G_s"))


# ---- messages and where they meet ---------------------------------------------------------------


def outboard(k: Any, children: Children) -> dict[str, Any]:
    """P, G, P⁺ and  z = u + Σ φz⁺,  ε = T − Hz,  z⁺ = z + Gε   [BI] Alg 2.3"""
    new = riccati(k, children)
    z = children.sum(lambda c: c.phi @ c.z_plus, k.u)
    eps = k.tau - k.H @ z
    return {**new, "z": z, "eps": eps, "z_plus": z + new["G"] @ eps}


def told(c: Any) -> dict[str, Any]:
    """φP⁺φ* and φz⁺, what the siblings of a body feel of it"""
    return {**sibling_message(c), "siblings_z": c.phi @ c.z_plus}


def inboard(k: Any, parent: Any) -> dict[str, Any]:
    """S and  z_s⁺ = φ⁻¹(u_p + z_s,p + Σ φz⁺ of siblings),  ε_s = T + Hz_s⁺,  z_s = z_s⁺ + G_sε_s

    [BI] Alg 3.2, corrected. At a free root z_s = −T.
    """
    new = dual_riccati(k, parent)
    z_plus = k.phi.solve(parent.load + k.siblings_z) * parent.inner
    eps = k.tau + k.H @ z_plus
    z = z_plus - new["minus_G_s"] @ eps
    return {**new, "eps_s": eps, "z_s": z, "load": k.u + z}


def combine_messages(k: Any) -> dict[str, Any]:
    """λ = −(P + S)⁻¹(z + z_s)   [BI] Lemma 3.2"""
    both = Joined(k.P, k.S, k.H, k.G, k.P_plus)
    return {"lam": -both.motion(k.z, k.z_plus, k.z_s, k.eps)}


def rate(k: Any, parent: Any) -> dict[str, Any]:
    """β̇ = ν_s − G_s*λ = ν − G*λ⁺,  ν_s = D_s⁻¹ε_s; at a free root β̇ = λ   [BI] Lemma 3.2

    The first at even depths, the second at odd ones: of the two bodies of a hinge one suffices.
    """
    inner = k.minus_G_s.D.solve(k.eps_s) * k.inside + k.minus_G_s.T @ k.lam
    outer = k.D.solve(k.eps) - k.G.T @ (k.phi.T @ parent.lam)
    even = 1.0 - parent.even
    return {"qdd": inner * even + outer * parent.even, "lam": k.lam, "even": even}


def met(x: Forest, order: Sequence[Edge] | None = None) -> Forest:
    """Each body's λ by itself, from the messages of its neighbours, of bodies with u and tau."""
    nothing = {"siblings": MASSLESS, "siblings_z": Force.zero()}
    world = {**WORLD_DUAL, "load": Force.zero()}
    return local(
        combine_messages, messages(x, outboard, told, inboard, order, nothing=nothing, world=world)
    )


def accelerated(x: Forest, reference: str = "local", order: Sequence[Edge] | None = None) -> Any:
    """α = ᾱ + λ of each body by itself, (nb, 6), of bodies with a pose, a, b and tau."""

    def seen(k: Any) -> dict[str, Any]:
        """α in the reference"""
        return {"seen": view(k.pose, reference) @ (k.lam + k.bias)}

    return stack(local(seen, met(outward(biased, x, bias=Motion.zero()), order)), "seen")


# ---- dynamics -----------------------------------------------------------------------------------


def laden(k: Any, parent: Any) -> dict[str, Any]:
    """u = Mᾱ + crf(V)MV − f_ext in the classical form, gravity in ᾱ   [BI-c] (2.2)"""
    X = (k.phi.T @ parent.X).through(k.H.T @ k.v, k.H_rate(k.v))
    return {"X": X, "u": k.M.inertial(X) - k.f_ext}


def biased(k: Any, parent: Any) -> dict[str, Any]:
    """ᾱ = φ*ᾱ_p + a,  u = Mᾱ + b"""
    bias = k.phi.T @ parent.bias + k.a
    return {"bias": bias, "u": k.M @ bias + k.b}


@program(joint_space=True, equation=ACCELERATION)
def base_invariant_forward_dynamics(
    robot: Robot, q: Any, v: Any, tau: Any, *, external: Any = None
) -> Any:
    """Joint accelerations without a base: β̇ = ν_s − G_s*λ, λ of each body by itself ([BI] Alg 3.3).

    `tau` has the force on each root in its part. Needs a free base. Returns (…, nv) [rad/s² or
    m/s²], as `forward_dynamics` does. Cost O(N), about twice that of `forward_dynamics`.
    """
    check_free("base_invariant_forward_dynamics", robot)
    x = forest(robot, q, external=external, v=v, tau=tau)
    still = RigidMotion.accelerated(-rot.scalars(robot.gravity))
    x = met(outward(laden, x, X=still))
    return gather(outward(rate, x, lam=Motion.zero(), even=0.0), "qdd")


@program(static=("order",))
def link_accelerations(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    *,
    external: Any = None,
    reference: str = "local",
    order: Any = None,
) -> Any:
    """The true acceleration of every body, each by itself: α = ᾱ − (P + S)⁻¹(z + z_s) ([BI] 3.2).

    `order` is a list of all messages (sender, receiver) between neighbours, by body name, in which
    they are sent as soon as they can be; any gives the same accelerations ([BI] 3.5), and each is
    unrolled, whatever the number of bodies. Needs a free base. Returns (…, nb, 6) [rad/s², m/s²],
    spatial; reference "local", "world" or "aligned". Cost O(N).
    """
    check_free("link_accelerations", robot)
    x = moving(forest(robot, q, external=external, v=v, tau=tau))
    x = outward(gyroscopic, x, gravity=Motion(rot.zero(), rot.scalars(robot.gravity)))
    return accelerated(posed(x), reference, order)


# ---- bodies apart -------------------------------------------------------------------------------


def state_of(robot: Robot, poses: Any, velocities: Any, **more: Any) -> Forest:
    """The bodies with a `pose` X in the world and a velocity V each, whatever their hinges say."""
    placed = [Transform.of(X[:3, :3], X[:3, 3]) for X in np.asarray(poses)]
    x = forest(robot, robot.neutral(), **more)
    return x.holding(pose=placed).placed(Motion, V=velocities)


@program(shapes={"poses": ("nb", 4, 4), "velocities": ("nb", 6)})
def decoupled_forward_dynamics(
    robot: Robot, poses: Any, velocities: Any, tau: Any, *, external: Any = None
) -> Any:
    """The true acceleration of every body from its own pose and velocity ([BI] Alg 3.4).

    `poses` (…, nb, 4, 4) as `poses` gives them, `velocities` (…, nb, 6) in the bodies' frames: 6 nb
    coordinates that need not agree with the hinges. φ is the relative pose, turned as the hinge
    allows, Δ = V − φ*V_p, a = ad(V)Δ + Ḣ*β with β the nearest to Δ; then `link_accelerations`.
    Integrated, Ẋ = X V^ and V̇ = α, they drift apart; `minimal_state` brings them together. Needs a
    free base. Returns (…, nb, 6) [rad/s², m/s²], spatial, in the bodies' frames. Cost O(N).
    """
    check_free("decoupled_forward_dynamics", robot)
    gravity = rot.scalars(robot.gravity)

    def apart(k: Any, parent: Any) -> dict[str, Any]:
        """φ of X_p⁻¹X,  Δ = V − φ*V_p,  a = ad(V)Δ + Ḣ*β,  b = crf(V)MV − Mg − f_ext"""
        h, across = k.hinge, parent.pose.relative(k.pose)
        seen = h.placement.relative(across)
        phi = Transform(h.placement.followed(h.kind.near(h, seen)).R, across.position)
        q = h.kind.coordinates(h, seen)
        H, Delta = h.kind.map(h, q), k.V - phi.T @ parent.V
        beta = H.fit(Delta)
        weight = k.M @ Motion(rot.zero(), k.pose.R.T @ gravity)
        return {
            "pose": k.pose, "V": k.V, "phi": phi, "H": H,
            "a": k.V.cross(Delta) + h.kind.rate(h, q, beta, beta),
            "b": k.V.cross_force(k.M @ k.V) - weight - k.f_ext,
        }  # fmt: skip

    x = state_of(robot, poses, velocities, external=external, tau=tau)
    return accelerated(outward(apart, x, pose=Transform.identity(), V=Motion.zero()))


@program(shapes={"poses": ("nb", 4, 4), "velocities": ("nb", 6)})
def minimal_state(robot: Robot, poses: Any, velocities: Any) -> tuple[Any, Any]:
    """The joint state (q, v) nearest to bodies that drifted apart, hinge by hinge from the root.

    Against the parent as put right already: q of the relative pose, v the nearest to Δ = V − φ*V_p
    ([BI] 3.6). Angles are within ±π, but for those of helical hinges, whose translation tells the
    whole turns. Returns (…, nq) and (…, nv). Cost O(N).
    """

    def together(k: Any, parent: Any) -> dict[str, Any]:
        """q of X_p⁻¹X,  X = X_pφ(q),  β nearest to V − φ*V_p,  V = φ*V_p + H*β"""
        h = k.hinge
        q = h.kind.coordinates(h, h.placement.relative(parent.pose.relative(k.pose)))
        phi, H = h.placement @ h.kind.pose(h, q), h.kind.map(h, q)
        V_plus = phi.T @ parent.V
        beta = H.fit(k.V - V_plus)
        return {"pose": parent.pose @ phi, "V": V_plus + H.T @ beta, "at": list(q), "beta": beta}

    x = state_of(robot, poses, velocities)
    x = outward(together, x, pose=Transform.identity(), V=Motion.zero())
    return coordinates(x, "at"), gather(x, "beta")
