"""Poses, velocities, accelerations and Jacobians: V = φ*H*β, α = φ*(H*β̇ + a), J = B*φ*H*."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from phipsi.algorithms.mass_matrix import scale, whiten, whiten_adjoint
from phipsi.conventions import REFERENCES, WORLD
from phipsi.model import ModelError, Robot
from phipsi.operators.lowering.steps import riccati, velocity
from phipsi.programs import program
from phipsi.spatial import (
    ArticulatedInertia,
    Compliance,
    Motion,
    MotionBasis,
    SpatialInertia,
    Transform,
    TransposedTransform,
)
from phipsi.spatial import rotation as rot
from phipsi.sweeps import (
    Children,
    Forest,
    along_root_path,
    columns,
    forest,
    gather,
    inward,
    local,
    outward,
    stack,
    total,
)

# ---- steps, used by every other group -----------------------------------------------------------


def pose(k: Any, parent: Any) -> dict[str, Any]:
    """X = X_p φ"""
    return {"pose": parent.pose @ k.phi}


def acceleration(k: Any, parent: Any) -> dict[str, Any]:
    """α = φ*α_p + H*β̇ + a   [BI] Alg 2.1"""
    return {"alpha": k.phi.T @ parent.alpha + k.H.T @ k.qdd + k.a}


def posed(x: Forest) -> Forest:
    """Every body's `pose` in the world."""
    return outward(pose, x, pose=Transform.identity())


def moving(x: Forest) -> Forest:
    """Every body's velocity `V` and Coriolis acceleration `a`."""
    return outward(velocity, x, V=Motion.zero())


def first_moment(robot: Robot, q: Any) -> Any:
    """Σ m c of all bodies about the world origin [kg·m]."""

    def moment(k: Any) -> dict[str, Any]:
        """m c = R h + m p"""
        return {"moment": k.pose.R @ k.M.moment + k.pose.position * k.M.mass}

    return total(local(moment, posed(forest(robot, q))), "moment", rot.zero())


# ---- programs -----------------------------------------------------------------------------------


@program
def poses(robot: Robot, q: Any) -> Any:
    """The pose of every body in the world: X = X_p T_placement T_hinge(q).

    Returns (…, nb, 4, 4) homogeneous matrices [m]. Cost O(N).
    """
    return stack(posed(forest(robot, q)), "pose", (4, 4))


@program
def frame_pose(robot: Robot, q: Any, frame: str) -> Any:
    """The pose of a named frame or body in the world, (…, 4, 4) homogeneous [m]. Cost O(depth)."""
    return frame_of(posed(forest(robot, q)), frame).matrix


@program
def velocities(robot: Robot, q: Any, v: Any, *, reference: str = "local") -> Any:
    """The spatial velocity of every body: V = φ*H*β ([SOA] (3.1), [BI] Alg 2.1).

    Returns (…, nb, 6), [ω; v] in [rad/s, m/s]; reference "local", "world" or "aligned". Cost O(N).
    """

    def seen(k: Any) -> dict[str, Any]:
        """V in the reference"""
        return {"seen": view(k.pose, reference) @ k.V}

    return stack(local(seen, posed(moving(forest(robot, q, v=v)))), "seen")


@program
def frame_velocity(robot: Robot, q: Any, v: Any, frame: str, *, reference: str = "local") -> Any:
    """The spatial velocity of a frame: V₀ = φ(i,0)*V_i, (…, 6) [rad/s, m/s]. Cost O(depth)."""
    x = posed(moving(forest(robot, q, v=v)))
    return (view(frame_of(x, frame), reference) @ motion_of(x, frame)).array


@program
def accelerations(
    robot: Robot, q: Any, v: Any, a: Any, *, reference: str = "local", classical: bool = False
) -> Any:
    """The true acceleration of every body at joint accelerations a: α = φ*(H*β̇ + a) ([SOA] (3.2)).

    Returns (…, nb, 6) [rad/s², m/s²], spatial; `classical=True` adds [0; ω × v]. Cost O(N).
    """

    def seen(k: Any) -> dict[str, Any]:
        """α in the reference"""
        to = view(k.pose, reference)
        return {"seen": _seen(to @ k.V, to @ k.alpha, classical)}

    x = outward(acceleration, moving(forest(robot, q, v=v, qdd=a)), alpha=Motion.zero())
    return stack(local(seen, posed(x)), "seen")


@program
def frame_acceleration(
    robot: Robot,
    q: Any,
    v: Any,
    a: Any,
    frame: str,
    *,
    reference: str = "local",
    classical: bool = False,
) -> Any:
    """The true acceleration of a frame at joint accelerations a: α₀ = φ(i,0)*α_i, (…, 6).

    [rad/s², m/s²], spatial; `classical=True` adds [0; ω × v]. Cost O(depth).
    """
    x = outward(acceleration, moving(forest(robot, q, v=v, qdd=a)), alpha=Motion.zero())
    x, fixed = posed(x), robot.frame(frame)
    alpha = Motion.zero() if fixed.body == WORLD else x.body(fixed.body).alpha
    to = view(frame_of(x, frame), reference)
    return _seen(to @ motion_of(x, frame), to @ (fixed.placement.T @ alpha), classical).array


@program
def jacobian(robot: Robot, q: Any, frame: str, *, reference: str = "local") -> Any:
    """The Jacobian of a named frame: V₀ = J β, J = B*φ*H* ([SOA] (2.1)).

    Returns (…, 6, nv), [angular; linear]; reference "local" (the frame's own axes and origin),
    "world" or "aligned" (the world's axes, the frame's origin). Cost O(depth).
    """
    x = posed(forest(robot, q))
    to, fixed = view(frame_of(x, frame), reference), robot.frame(frame)

    def column(k: Any, reach: Transform) -> dict[str, Any]:
        """J = φ(k,0)*H*"""
        return {"J": MotionBasis(tuple(to @ (reach.T @ c) for c in k.H.T.columns))}

    return columns(along_root_path(column, x, fixed.body, fixed.placement), "J")


@program
def jacobian_derivative(
    robot: Robot, q: Any, v: Any, frame: str, *, reference: str = "local"
) -> Any:
    """The time derivative of `jacobian` along v, so that V̇₀ = J β̇ + J̇ β.

    The column of hinge k is φ(k,0)*(ad(V_k)H_k* + Ḣ_k*) − ad(V_r)J_k, V_r the velocity of the
    reference: V₀ for "local", [0; v₀] for "aligned", 0 for "world". Returns (…, 6, nv).
    Cost O(depth).
    """
    x = posed(moving(forest(robot, q, v=v)))
    to, fixed = view(frame_of(x, frame), reference), robot.frame(frame)
    V = motion_of(x, frame)
    V_r = {"local": V, "aligned": Motion(rot.zero(), V.linear)}.get(reference, Motion.zero())

    def column(k: Any, reach: Transform) -> dict[str, Any]:
        """J̇ = φ(k,0)*(ad(V)H* + Ḣ*) − ad(V_r)J"""
        units = zip(k.H.T.columns, np.eye(len(k.v)), strict=True)
        rates = ((k.V.cross(c) + k.H_rate(e), c) for c, e in units)
        moved = (reach.T @ rate - V_r.cross(reach.T @ c) for rate, c in rates)
        return {"J_rate": MotionBasis(tuple(to @ m for m in moved))}

    return columns(along_root_path(column, x, fixed.body, fixed.placement), "J_rate")


@program
def center_of_mass(robot: Robot, q: Any) -> Any:
    """The centre of mass of all bodies in the world: Σ X_i h_i / Σ m_i, (…, 3) [m]. Cost O(N)."""
    if isinstance(robot.mass, float) and robot.mass == 0.0:
        raise ModelError(f"robot {robot.name!r} has no moving mass, so no centre of mass")
    return first_moment(robot, q) / robot.mass


# ---- Gram matrices ------------------------------------------------------------------------------


@program
def jacobian_gram(robot: Robot, q: Any) -> Any:
    """J J* at every body, J = B*φ*H* its Jacobian: Y = φ*Y_pφ + H*H ([SOA] 2).

    Its inverse is the operational inertia of a robot with unit mass matrix; its eigenvalues are the
    squared axes of the manipulability ellipsoid. Returns (…, nb, 6, 6), symmetric, in the body's
    frame [1, m, m²]. Cost O(N).
    """
    return stack(outward(gram, forest(robot, q), Y=Compliance.zero()), "Y", (6, 6))


def gram(k: Any, parent: Any) -> dict[str, Any]:
    """Y = φ*Y_pφ + H*H   [SOA] 2"""
    return {"Y": parent.Y.carried(k.phi).yielding(k.H)}


def weighted(robot: Robot, weights: Mapping[str, ArticulatedInertia]) -> list[ArticulatedInertia]:
    """The weight W of frames by name as inertias of the bodies, zero for those without."""
    bodies = [SpatialInertia.zero().articulated] * robot.nb
    for name, W in weights.items():
        frame = robot.frame(name)
        if frame.body != WORLD:
            i = robot.body_index(frame.body)
            bodies[i] = bodies[i] + frame.placement.congruence(W)
    return bodies


def resolve(k: Any, children: Children) -> dict[str, Any]:
    """P, D, G of Alg 2.2 with M the weights, A = μ²;  κ = (I − HψK)(x + Hφf),  x = D⁻¹κ"""
    new = riccati(k, children)
    new |= whiten(k.extended(new), children)
    return new | scale(k.extended(new))


def resolved(x: Forest) -> Any:
    """(Σ J*WJ + A)⁻¹(x + J*f) of bodies with the weights for inertias M, (nv,)."""
    return gather(outward(whiten_adjoint, inward(resolve, x), V=Motion.zero()), "y")


@program(shapes={"x": ("nv",)}, static=("frames",), joint_space=True)
def gram_inverse_product(
    robot: Robot, q: Any, x: Any, damping: Any, frames: Sequence[str], weights: Any = None
) -> Any:
    """`gram_solve` with the weights of all frames in one row, (…, 36 nf) or (…, 6 nf), or None."""
    rows = np.ones((len(frames), 6)) if weights is None else weights.reshape(len(frames), -1)
    W = [ArticulatedInertia.of(w.reshape(6, 6) if len(w) == 36 else np.diag(w)) for w in rows]
    bodies = weighted(robot, dict(zip(frames, W, strict=True)))
    armature = np.broadcast_to(np.asarray(damping) * damping, (robot.nv,))
    return resolved(forest(robot, q, x=x, A=armature).holding(M=bodies))


gram_inverse_product.name = "gram_solve"  # what its errors say


def gram_solve(
    robot: Robot,
    q: Any,
    x: Any,
    *,
    frames: str | Sequence[str],
    weights: Any = None,
    damping: Any = 0.0,
) -> Any:
    """(Σ J*WJ + μ²I)⁻¹ x, the sum over the named frames: a damped least-squares step ([SOA] 2).

    That is a mass matrix, of bodies with the inertias W and hinges with the armature μ²; so it is
    inverted by the Riccati recursion, (I − HψK)* D⁻¹ (I − HψK), whatever the number of frames.
    `weights` W is (…, nf, 6, 6), symmetric positive semidefinite, or (…, nf, 6), its diagonal, in
    the frames' own axes, [angular; linear]; None is the identity. `damping` μ is a number, one for
    each row (…, 1) or one for each freedom (…, nv); it may be zero where the sum is regular by
    itself. A frame on the world adds nothing. Returns (…, nv). Cost O(N).

    >>> import numpy as np, phipsi as pp
    >>> arm = pp.robots.puma560()
    >>> q, x = arm.random_state(0)
    >>> J = pp.jacobian(arm, q, "tool")
    >>> step = pp.gram_solve(arm, q, x, frames="tool", damping=0.1)
    >>> bool(np.allclose((J.T @ J + 0.01 * np.eye(6)) @ step, x))
    True
    """
    if not isinstance(robot, Robot):
        raise TypeError(f"gram_solve: robot is a {type(robot).__name__}, needs a Robot")
    single = isinstance(frames, str) or not isinstance(frames, Iterable)
    names: tuple[Any, ...] = (frames,) if single else tuple(frames)
    if not all(isinstance(x, str) for x in names) or not 0 < len(names) == len(set(names)):
        raise ValueError(f"gram_solve: frames is {frames!r}, needs names of different frames")
    shape = None if damping is None else np.shape(damping)
    if shape is None or shape[-1:] not in ((), (1,), (robot.nv,)):
        given = f"has shape {shape}" if shape else f"is {damping!r}"
        raise ValueError(
            f"gram_solve: damping {given}, needs a number, (..., 1) or (..., {robot.nv})"
        )
    if weights is None:
        return gram_inverse_product(robot, q, x, damping, names)
    weights, n = np.asanyarray(weights), len(names)
    own = next((s for s in ((n, 6, 6), (n, 6)) if weights.shape[-len(s) :] == s), None)
    if own is None:
        raise ValueError(
            f"gram_solve: weights has shape {weights.shape}, "
            f"needs (..., {n}, 6, 6) or (..., {n}, 6) for {n} frames"
        )
    weights = weights.reshape((*weights.shape[: -len(own)], prod(own)))
    return gram_inverse_product(robot, q, x, damping, names, weights)


# ---- frames -------------------------------------------------------------------------------------


def view(at: Transform, reference: str) -> TransposedTransform:
    """What turns a motion in the axes of a frame at `at` into one seen from the reference."""
    match reference:
        case "local":
            return Transform.identity().T
        case "world":
            return at.inv.T
        case "aligned":
            return at.aligned.inv.T
    raise ValueError(f"reference {reference!r} is not one of {', '.join(REFERENCES)}")


def frame_of(x: Forest, name: str) -> Transform:
    """The pose of a named frame in the world, the bodies being `posed`."""
    frame = x.robot.frame(name)
    return frame.placement if frame.body == WORLD else x.body(frame.body).pose @ frame.placement


def motion_of(x: Forest, name: str) -> Motion:
    """The velocity V of a named frame in its own axes, the bodies having theirs."""
    frame = x.robot.frame(name)
    return Motion.zero() if frame.body == WORLD else frame.placement.T @ x.body(frame.body).V


def _seen(V: Motion, alpha: Motion, classical: bool) -> Motion:
    """The acceleration α of what moves with V, or its classical one, α + [0; ω × v]."""
    return alpha + Motion(rot.zero(), rot.cross(V.angular, V.linear)) if classical else alpha
