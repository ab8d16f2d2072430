"""Base-invariant dynamics: each body from its neighbours' messages alone ([BI] 3).

P and z are the inertia and the force at a body's inboard hinge of the body and all that is outboard
of it; S and z_s are those of all other bodies. At every body f = Pλ + z and −f = Sλ + z_s, so that
λ = −(P + S)⁻¹(z + z_s): no body is the base.

This holds in trees with a free base. In others the world is a body of infinite inertia, and S is
infinite along what the hinges between a body and the world transmit. There the message from inboard
is the motion of the parent, λ = φ*λ_p + H*β̇ from λ = 0 of the world, and Λ = P + S is Υ⁻¹, which
exists for bodies that can accelerate in every direction.

The acceleration of a body is α = ᾱ + λ. The bias ᾱ = φ*ᾱ_p + a is its value at zero joint
acceleration, and λ is what the joint accelerations add. ᾱ is part of the loads u = Mᾱ + b, so the
recursions are those of [BI] with a = 0 and with u in place of b.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from phipsi.algorithms.articulated_body import ACCELERATION
from phipsi.algorithms.kinematics import moving, posed, view
from phipsi.conventions import Reference
from phipsi.model import Robot
from phipsi.operators.checks import in_free_trees
from phipsi.operators.lowering.steps import (
    MASSLESS,
    WORLD_DUAL,
    dual,
    dual_riccati,
    gyroscopic,
    riccati,
    sibling_message,
    upsilon,
)
from phipsi.programs import program
from phipsi.spatial import (
    Compliance,
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
    Record,
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
from phipsi.sweeps.messages import Edge, as_edges
from phipsi.typing import (
    Array,
    Configuration,
    ConfigurationLike,
    ExternalForces,
    JointMatrix,
    JointVector,
    JointVectorLike,
    PosesLike,
    SpatialMatrices,
    SpatialVectors,
    SpatialVectorsLike,
)

# ---- inertias -----------------------------------------------------------------------------------


class InTrees(NamedTuple):
    """A forest for trees with a free base, and one for the other trees."""

    free: Forest
    bound: Forest

    def rows(self, result: Callable[[Forest], Array], per: Literal["nb", "nv"] = "nb") -> Array:
        """A result of both forests with one row for each body or freedom, each row from the forest
        of its tree."""
        free = in_free_trees(self.free.robot, per)
        if free.all():
            return result(self.free)
        out = np.array(result(self.bound), object)
        out[free] = np.asarray(result(self.free), object)[free]
        return out


def operational(robot: Robot, q: ConfigurationLike) -> InTrees:
    """P, S and Λ = P + S of each body, the inertia of the whole robot as seen from that body ([BI]
    4)."""
    x = inward(riccati, forest(robot, q))
    free = outward(dual, over_siblings(sibling_message, x, siblings=MASSLESS), **WORLD_DUAL)
    if in_free_trees(robot).all():
        return InTrees(free, free)
    x = outward(upsilon, x, Upsilon=Compliance.zero())
    return InTrees(free, outward(bound_dual, x, Lambda=WORLD_DUAL["rest"], finite=0.0))


def bound_dual(k: Record, parent: Record) -> dict[str, Any]:
    """Λ = Υ⁻¹,  S = Λ − P,  S⁺ = φ⁻¹Λ_pφ⁻* − P⁺,  G_s = −S⁺H*D_s⁻¹; NaN where they are infinite

    [BI] (34). `finite` and `finite_plus`: whether Λ and S⁺ are finite.
    """
    Lambda, finite = k.Upsilon.inertia
    S_plus = k.phi.solve_congruence(parent.Lambda) - k.P_plus
    return {
        "Lambda": Lambda, "finite": finite, "S": Lambda - k.P, "finite_plus": parent.finite,
        "minus_G_s": S_plus.gain(k.H, k.A),
    }  # fmt: skip


class DualInertias(NamedTuple):
    """Dual articulated inertias S, pivots D_s and gains G_s; `ArticulatedInertias` has P, D, G."""

    S: SpatialMatrices
    """(…, nb, 6, 6): the dual inertia of each body [kg, kg·m, kg·m²], in its own frame."""
    D_s: JointMatrix
    """(…, nv, nv): HS⁺H* + A, block diagonal [kg·m² or kg]; zero at a root, where it is
    infinite."""
    G_s: Annotated[Array, "6 nv"]
    """(…, 6, nv): −S⁺H*D_s⁻¹, the columns of a hinge in the frame of the body that it moves."""


@program
def dual_articulated_inertias(robot: Robot, q: ConfigurationLike) -> DualInertias:
    """S, D_s and G_s of the dual Riccati recursion, which runs outward ([BI] Alg 3.1).

    S⁺ = φ⁻¹(M_p + S_p + Σ φP⁺φ* of siblings)φ⁻*, D_s = HS⁺H* + A, G_s = −S⁺H*D_s⁻¹,
    S = S⁺ + G_sHS⁺. S of a body is the inertia that it feels of all bodies beyond its inboard
    hinge, while every other hinge is free to move. At a free root S = 0, and D_s, which is infinite
    there, is given as zero. In a tree whose base is not free S and S⁺ are infinite unless the body,
    or its parent, can accelerate in every direction: S = Υ⁻¹ − P, else NaN. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.

    Returns
    -------
    DualInertias
        `S` (…, nb, 6, 6) [kg, kg·m, kg·m²], `D_s` (…, nv, nv) and `G_s` (…, 6, nv).

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.space_arm()
    >>> q = robot.neutral()
    >>> S, P = pp.dual_articulated_inertias(robot, q).S, pp.articulated_inertias(robot, q).P
    >>> np.allclose(P + S, pp.operational_inertia(robot, q))  # Λ
    True
    """

    def finite_gains(k: Record) -> dict[str, Any]:
        """D_s, zero where it is infinite, and G_s"""
        return {"D_s": k.minus_G_s.D.matrix * k.inside, "G_s": -k.minus_G_s.matrix}

    def bound_gains(k: Record) -> dict[str, Any]:
        """D_s and G_s, NaN where S⁺ is infinite"""

        def finite(matrix: Array) -> Array:
            rows = [[rot.select(k.finite_plus, x, np.nan) for x in row] for row in matrix]
            return np.array(rows, object)

        return {"D_s": finite(k.minus_G_s.D.matrix), "G_s": finite(-k.minus_G_s.matrix)}

    free, bound = operational(robot, q)
    x = InTrees(local(finite_gains, free), bound if bound is free else local(bound_gains, bound))
    return DualInertias(
        x.rows(lambda x: stack(x, "S", (6, 6))),
        x.rows(lambda x: diagonal(x, "D_s"), per="nv"),
        x.rows(lambda x: columns(x, "G_s").T, per="nv").T,
    )


# ---- messages and where they meet ---------------------------------------------------------------


def outboard_message(k: Record, children: Children) -> dict[str, Any]:
    """P, G, P⁺ and  z = u + Σ φz⁺,  ε = T − Hz,  z⁺ = z + Gε   [BI] Alg 2.3"""
    new = riccati(k, children)
    z = children.sum(lambda c: c.phi @ c.z_plus, k.u)
    eps = k.tau - k.H @ z
    return {**new, "z": z, "eps": eps, "z_plus": z + new["G"] @ eps}


def to_siblings(c: Record) -> dict[str, Any]:
    """φP⁺φ* and φz⁺, what the siblings of a body feel of it"""
    return {**sibling_message(c), "siblings_z": c.phi @ c.z_plus}


def inboard_message(k: Record, parent: Record) -> dict[str, Any]:
    """S and  z_s⁺ = φ⁻¹(u_p + z_s,p + Σ φz⁺ of siblings),  ε_s = T + Hz_s⁺,  z_s = z_s⁺ + G_sε_s

    [BI] Alg 3.2, corrected. At a free root z_s = −T.
    """
    new = dual_riccati(k, parent)
    z_plus = k.phi.solve(parent.load + k.siblings_z) * parent.inner
    eps = k.tau + k.H @ z_plus
    z = z_plus - new["minus_G_s"] @ eps
    return {**new, "eps_s": eps, "z_s": z, "load": k.u + z}


def combine_messages(k: Record) -> dict[str, Any]:
    """λ = −(P + S)⁻¹(z + z_s)   [BI] Lemma 3.2"""
    both = Joined(k.P, k.S, k.H, k.G, k.P_plus)
    return {"lam": -both.motion(k.z, k.z_plus, k.z_s, k.eps)}


def rate(k: Record, parent: Record) -> dict[str, Any]:
    """β̇ = ν_s − G_s*λ = ν − G*λ⁺,  ν_s = D_s⁻¹ε_s; at a free root β̇ = λ   [BI] Lemma 3.2

    The first formula is used at even depths, the second at odd depths: of the two bodies of a hinge
    one suffices.
    """
    inner = k.minus_G_s.D.solve(k.eps_s) * k.inside + k.minus_G_s.T @ k.lam
    outer = k.D.solve(k.eps) - k.G.T @ (k.phi.T @ parent.lam)
    even = 1.0 - parent.even
    return {"qdd": inner * even + outer * parent.even, "lam": k.lam, "even": even}


def follow(k: Record, parent: Record) -> dict[str, Any]:
    """β̇ = ν − G*λ⁺,  λ = λ⁺ + H*β̇,  λ⁺ = φ*λ_p: the base of the tree is the world   [BI] Alg 2.3"""
    plus = k.phi.T @ parent.lam
    qdd = k.D.solve(k.eps) - k.G.T @ plus
    return {"qdd": qdd, "lam": plus + k.H.T @ qdd}


def pass_messages(x: Forest, order: Sequence[Edge] | None = None) -> InTrees:
    """The forests with λ of each body, from the messages of its neighbours; bodies have u and tau.

    `order` as in `link_accelerations`.
    """
    nothing = {"siblings": MASSLESS, "siblings_z": Force.zero()}
    world = {**WORLD_DUAL, "load": Force.zero()}
    x = messages(
        x, outboard_message, to_siblings, inboard_message, order, nothing=nothing, world=world
    )
    free = local(combine_messages, x)
    every = in_free_trees(x.robot).all()
    return InTrees(free, free if every else outward(follow, x, lam=Motion.zero()))


def body_accelerations(
    x: Forest, reference: Reference = "local", order: Sequence[Edge] | None = None
) -> SpatialVectors:
    """α = ᾱ + λ of each body in the reference, (nb, 6); bodies have a pose, a, b and tau."""

    def express(k: Record) -> dict[str, Any]:
        """α in the reference"""
        return {"expressed": view(k.pose, reference) @ (k.lam + k.bias)}

    trees = pass_messages(outward(bias_load, x, bias=Motion.zero()), order)
    return trees.rows(lambda x: stack(local(express, x), "expressed"))


# ---- dynamics -----------------------------------------------------------------------------------


def classical_load(k: Record, parent: Record) -> dict[str, Any]:
    """u = Mᾱ + crf(V)MV − f_ext in the classical form, gravity in ᾱ   [BI-c] (2.2)"""
    X = (k.phi.T @ parent.X).through(k.H.T @ k.v, k.H_rate(k.v))
    return {"X": X, "u": k.M.inertial(X) - k.f_ext}


def bias_load(k: Record, parent: Record) -> dict[str, Any]:
    """ᾱ = φ*ᾱ_p + a,  u = Mᾱ + b"""
    bias = k.phi.T @ parent.bias + k.a
    return {"bias": bias, "u": k.M @ bias + k.b}


@program(joint_space=True, equation=ACCELERATION)
def base_invariant_forward_dynamics(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    tau: JointVectorLike,
    *,
    external: ExternalForces | None = None,
) -> JointVector:
    """Joint accelerations without a base: β̇ = ν_s − G_s*λ, λ of each body by itself ([BI] Alg 3.3).

    The result is that of `forward_dynamics`, which is also the algorithm in trees whose base is not
    free. Cost O(N), about twice that of `forward_dynamics`.

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities β [rad/s or m/s].
    tau : (…, nv)
        Total joint forces [N·m or N]; the part of a free hinge is the force on its root body.
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.

    Returns
    -------
    (…, nv)
        Joint accelerations β̇ [rad/s² or m/s²].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.space_arm()
    >>> q, v, tau = robot.neutral(), np.full(robot.nv, 0.1), np.ones(robot.nv)
    >>> a = pp.base_invariant_forward_dynamics(robot, q, v, tau)
    >>> np.allclose(a, pp.forward_dynamics(robot, q, v, tau))
    True
    """
    x = forest(robot, q, external=external, v=v, tau=tau)
    still = RigidMotion.accelerated(-rot.scalars(robot.gravity))
    free, bound = pass_messages(outward(classical_load, x, X=still))
    free = outward(rate, free, lam=Motion.zero(), even=0.0)
    return InTrees(free, bound).rows(lambda x: gather(x, "qdd"), per="nv")


@program(static=("order",))
def link_accelerations(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    tau: JointVectorLike,
    *,
    external: ExternalForces | None = None,
    reference: Reference = "local",
    order: Sequence[Sequence[str]] | None = None,
) -> SpatialVectors:
    """The true acceleration of every body, each by itself: α = ᾱ − (P + S)⁻¹(z + z_s) ([BI] 3.2).

    True means that gravity is not subtracted. In a tree whose base is not free λ = α − ᾱ follows
    from that of the parent, λ = φ*λ_p + H*β̇. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    tau : (…, nv)
        Total joint forces [N·m or N]; the part of a free hinge is the force on its root body.
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.
    reference
        The frame of the result: "local" (the body's own axes and origin), "world" (the world's axes
        and origin) or "aligned" (the world's axes, the body's origin).
    order
        A list of all messages (sender, receiver) between neighbours, by body name; the first one
        that is ready is always sent next. Any order gives the same accelerations ([BI] 3.5).
        With an order the sweeps are unrolled, whatever the number of bodies.

    Returns
    -------
    (…, nb, 6)
        Spatial accelerations [rad/s², m/s²], in the reference frame.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.space_arm()
    >>> q, v, tau = robot.neutral(), np.full(robot.nv, 0.1), np.ones(robot.nv)
    >>> a = pp.forward_dynamics(robot, q, v, tau)
    >>> alpha = pp.link_accelerations(robot, q, v, tau)
    >>> np.allclose(alpha, pp.accelerations(robot, q, v, a))
    True
    """
    x = moving(forest(robot, q, external=external, v=v, tau=tau))
    x = outward(gyroscopic, x, gravity=Motion(rot.zero(), rot.scalars(robot.gravity)))
    edges = None if order is None else as_edges(order)
    return body_accelerations(posed(x), reference, edges)


# ---- bodies with a pose and a velocity each -----------------------------------------------------


def bodies_at(
    robot: Robot,
    poses: PosesLike,
    velocities: SpatialVectorsLike,
    *,
    external: ExternalForces | None = None,
    **vectors: JointVectorLike,
) -> Forest:
    """The forest with a `pose` in the world and a velocity `V` of each body, which need not satisfy
    the hinges; external forces and joint vectors as in `forest`."""
    placed = [Transform.of(X[:3, :3], X[:3, 3]) for X in np.asarray(poses)]
    x = forest(robot, robot.neutral(), external=external, **vectors)
    return x.holding(pose=placed).placed(Motion, V=velocities)


@program
def decoupled_forward_dynamics(
    robot: Robot,
    poses: PosesLike,
    velocities: SpatialVectorsLike,
    tau: JointVectorLike,
    *,
    external: ExternalForces | None = None,
) -> SpatialVectors:
    """The true acceleration of every body from its own pose and velocity ([BI] Alg 3.4).

    The state has 6 nb coordinates, which need not satisfy the hinges: φ is the relative pose with
    the nearest rotation that the hinge allows, Δ = V − φ*V_p, and a = ad(V)Δ + Ḣ*β with the β
    nearest to Δ. From there on it is `link_accelerations`. Where the state is integrated,
    Ẋ = X V^ and V̇ = α, the bodies drift apart; `minimal_state` returns them to the hinges. Cost
    O(N).

    Parameters
    ----------
    robot
        The robot.
    poses : (…, nb, 4, 4)
        Poses of the bodies in the world, as `poses` returns them [m].
    velocities : (…, nb, 6)
        Spatial velocities of the bodies [rad/s, m/s], in their own frames.
    tau : (…, nv)
        Total joint forces [N·m or N]; the part of a free hinge is the force on its root body.
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.

    Returns
    -------
    (…, nb, 6)
        Spatial accelerations [rad/s², m/s²], in the bodies' own frames.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.space_arm()
    >>> q, v, tau = robot.neutral(), np.full(robot.nv, 0.1), np.ones(robot.nv)
    >>> X, V = pp.poses(robot, q), pp.velocities(robot, q, v)
    >>> alpha = pp.decoupled_forward_dynamics(robot, X, V, tau)
    >>> np.allclose(alpha, pp.link_accelerations(robot, q, v, tau))
    True
    """
    gravity = rot.scalars(robot.gravity)

    def relative_motion(k: Record, parent: Record) -> dict[str, Any]:
        """φ of X_p⁻¹X,  Δ = V − φ*V_p,  a = ad(V)Δ + Ḣ*β,  b = crf(V)MV − Mg − f_ext"""
        h, across = k.hinge, parent.pose.relative(k.pose)
        hinge_pose = h.placement.relative(across)
        phi = Transform(h.placement.followed(h.kind.near(h, hinge_pose)).R, across.position)
        q = h.kind.coordinates(h, hinge_pose)
        H, Delta = h.kind.map(h, q), k.V - phi.T @ parent.V
        beta = H.fit(Delta)
        weight = k.M @ Motion(rot.zero(), k.pose.R.T @ gravity)
        return {
            "pose": k.pose, "V": k.V, "phi": phi, "H": H,
            "a": k.V.cross(Delta) + h.kind.rate(h, q, beta, beta),
            "b": k.V.cross_force(k.M @ k.V) - weight - k.f_ext,
        }  # fmt: skip

    x = bodies_at(robot, poses, velocities, external=external, tau=tau)
    x = outward(relative_motion, x, pose=Transform.identity(), V=Motion.zero())
    return body_accelerations(x)


@program
def minimal_state(
    robot: Robot, poses: PosesLike, velocities: SpatialVectorsLike
) -> tuple[Configuration, JointVector]:
    """The joint state (q, v) nearest to bodies that drifted apart, hinge by hinge from the root.

    At each hinge, relative to the parent as already corrected: q is that of the relative pose, and
    v the nearest to Δ = V − φ*V_p ([BI] 3.6). Angles are within ±π, except those of helical hinges,
    whose translation tells the whole turns. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    poses : (…, nb, 4, 4)
        Poses of the bodies in the world [m].
    velocities : (…, nb, 6)
        Spatial velocities of the bodies [rad/s, m/s], in their own frames.

    Returns
    -------
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v = [0.3, -0.5], [1.0, 2.0]
    >>> found = pp.minimal_state(robot, pp.poses(robot, q), pp.velocities(robot, q, v))
    >>> np.allclose(found, (q, v))
    True
    """

    def nearest_state(k: Record, parent: Record) -> dict[str, Any]:
        """q of X_p⁻¹X,  X = X_pφ(q),  β nearest to V − φ*V_p,  V = φ*V_p + H*β"""
        h = k.hinge
        q = h.kind.coordinates(h, h.placement.relative(parent.pose.relative(k.pose)))
        phi, H = h.placement @ h.kind.pose(h, q), h.kind.map(h, q)
        V_plus = phi.T @ parent.V
        beta = H.fit(k.V - V_plus)
        return {"pose": parent.pose @ phi, "V": V_plus + H.T @ beta, "at": list(q), "beta": beta}

    x = bodies_at(robot, poses, velocities)
    x = outward(nearest_state, x, pose=Transform.identity(), V=Motion.zero())
    return coordinates(x, "at"), gather(x, "beta")
