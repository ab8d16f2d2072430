"""Poses, velocities, accelerations and Jacobians: V = φ*H*β, α = φ*(H*β̇ + a), J = B*φ*H*."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Annotated, Any

import numpy as np

from phipsi.algorithms.mass_matrix import scale, whiten, whiten_adjoint
from phipsi.arguments import a_class
from phipsi.conventions import REFERENCES, WORLD, Reference
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
    Record,
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
from phipsi.typing import (
    Array,
    ArrayLike,
    ConfigurationLike,
    Jacobian,
    JointVector,
    JointVectorLike,
    Pose,
    Poses,
    SpatialMatrices,
    SpatialVector,
    SpatialVectors,
    Vector3,
)

# ---- steps, used by every other group -----------------------------------------------------------


def pose(k: Record, parent: Record) -> dict[str, Any]:
    """X = X_p φ"""
    return {"pose": parent.pose @ k.phi}


def acceleration(k: Record, parent: Record) -> dict[str, Any]:
    """α = φ*α_p + H*β̇ + a   [BI] Alg 2.1"""
    return {"alpha": k.phi.T @ parent.alpha + k.H.T @ k.qdd + k.a}


def posed(x: Forest) -> Forest:
    """The forest with each body's `pose` in the world."""
    return outward(pose, x, pose=Transform.identity())


def moving(x: Forest) -> Forest:
    """The forest with each body's velocity `V`, its part `Delta` from the inboard hinge, and its
    Coriolis acceleration `a`."""
    return outward(velocity, x, V=Motion.zero())


def first_moment(robot: Robot, q: ConfigurationLike) -> Vector3:
    """Σ m c of all bodies about the world origin [kg·m]."""

    def moment(k: Record) -> dict[str, Any]:
        """m c = R h + m p"""
        return {"moment": k.pose.R @ k.M.moment + k.pose.position * k.M.mass}

    return total(local(moment, posed(forest(robot, q))), "moment", rot.zero())


# ---- programs -----------------------------------------------------------------------------------


@program
def poses(robot: Robot, q: ConfigurationLike) -> Poses:
    """The pose of every body in the world: X = X_p T_placement T_hinge(q).

    Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.

    Returns
    -------
    (…, nb, 4, 4)
        Homogeneous matrices [m], in the order of the bodies.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> X = pp.poses(robot, [0.3, -0.5])
    >>> np.allclose(X[1], pp.frame_pose(robot, [0.3, -0.5], robot.bodies[1].name))
    True
    """
    return stack(posed(forest(robot, q)), "pose", (4, 4))


@program
def frame_pose(robot: Robot, q: ConfigurationLike, frame: str) -> Pose:
    """The pose of a frame in the world: X₀ = X_i T_placement, i the body that it is fixed to.

    Cost O(depth).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    frame
        Name of a frame or body.

    Returns
    -------
    (…, 4, 4)
        Homogeneous matrix [m].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> pp.frame_pose(robot, [np.pi / 2, 0.0], "tool")[:3, 3].round(9) + 0.0  # horizontal
    array([-0.6,  0. ,  0. ])
    """
    return frame_of(posed(forest(robot, q)), frame).matrix


@program
def velocities(
    robot: Robot, q: ConfigurationLike, v: JointVectorLike, *, reference: Reference = "local"
) -> SpatialVectors:
    """The spatial velocity of every body: V = φ*H*β ([SOA] (3.1), [BI] Alg 2.1).

    Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    reference
        The frame of the result: "local" (the body's own axes and origin), "world" (the world's axes
        and origin) or "aligned" (the world's axes, the body's origin).

    Returns
    -------
    (…, nb, 6)
        [ω; v] of each body [rad/s, m/s], in the reference frame.

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> pp.velocities(robot, [0.0, 0.0], [1.0, 2.0])[:, 1]  # angular, about the axes y
    array([1., 3.])
    """

    def express(k: Record) -> dict[str, Any]:
        """V in the reference"""
        return {"expressed": view(k.pose, reference) @ k.V}

    return stack(local(express, posed(moving(forest(robot, q, v=v)))), "expressed")


@program
def frame_velocity(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    frame: str,
    *,
    reference: Reference = "local",
) -> SpatialVector:
    """The spatial velocity of a frame: V₀ = φ(i,0)*V_i, i the body that it is fixed to.

    Cost O(depth).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    frame
        Name of a frame or body.
    reference
        The frame of the result: "local" (the frame's own axes and origin), "world" (the world's
        axes and origin) or "aligned" (the world's axes, the frame's origin).

    Returns
    -------
    (…, 6)
        [ω; v] [rad/s, m/s], in the reference frame.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v = [0.3, -0.5], [1.0, 2.0]
    >>> np.allclose(pp.frame_velocity(robot, q, v, "tool"), pp.jacobian(robot, q, "tool") @ v)
    True
    """
    x = posed(moving(forest(robot, q, v=v)))
    return (view(frame_of(x, frame), reference) @ motion_of(x, frame)).array


@program
def accelerations(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    a: JointVectorLike,
    *,
    reference: Reference = "local",
    classical: bool = False,
) -> SpatialVectors:
    """The true acceleration of every body at joint accelerations a: α = φ*(H*β̇ + a) ([SOA] (3.2)).

    True means that gravity is not subtracted: a body at rest has α = 0. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    a : (…, nv)
        Joint accelerations [rad/s² or m/s²].
    reference
        The frame of the result: "local" (the body's own axes and origin), "world" (the world's axes
        and origin) or "aligned" (the world's axes, the body's origin).
    classical
        False: spatial accelerations. True: classical ones, α + [0; ω × v].

    Returns
    -------
    (…, nb, 6)
        [angular; linear] of each body [rad/s², m/s²], in the reference frame.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v, a = [0.3, -0.5], [1.0, 2.0], [3.0, 4.0]
    >>> alpha = pp.accelerations(robot, q, v, a)
    >>> np.allclose(alpha[1], pp.frame_acceleration(robot, q, v, a, robot.bodies[1].name))
    True
    """

    def express(k: Record) -> dict[str, Any]:
        """α in the reference"""
        to = view(k.pose, reference)
        return {"expressed": _spatial_or_classical(to @ k.V, to @ k.alpha, classical)}

    x = outward(acceleration, moving(forest(robot, q, v=v, qdd=a)), alpha=Motion.zero())
    return stack(local(express, posed(x)), "expressed")


@program
def frame_acceleration(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    a: JointVectorLike,
    frame: str,
    *,
    reference: Reference = "local",
    classical: bool = False,
) -> SpatialVector:
    """The true acceleration of a frame at joint accelerations a: α₀ = φ(i,0)*α_i.

    True means that gravity is not subtracted; i is the body that the frame is fixed to.
    Cost O(depth).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    a : (…, nv)
        Joint accelerations [rad/s² or m/s²].
    frame
        Name of a frame or body.
    reference
        The frame of the result: "local" (the frame's own axes and origin), "world" (the world's
        axes and origin) or "aligned" (the world's axes, the frame's origin).
    classical
        False: the spatial acceleration. True: the classical one, α₀ + [0; ω × v].

    Returns
    -------
    (…, 6)
        [angular; linear] [rad/s², m/s²], in the reference frame.

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.double_pendulum()  # hanging straight down, 0.6 m long
    >>> spin = dict(q=[0.0, 0.0], v=[1.0, 0.0], a=[0.0, 0.0], frame="tool")
    >>> float(pp.frame_acceleration(robot, **spin, classical=True)[5])  # centripetal, upward
    0.6
    """
    x = outward(acceleration, moving(forest(robot, q, v=v, qdd=a)), alpha=Motion.zero())
    x, fixed = posed(x), robot.frame(frame)
    alpha = Motion.zero() if fixed.body == WORLD else x.body(fixed.body).alpha
    to = view(frame_of(x, frame), reference)
    V, alpha = to @ motion_of(x, frame), to @ (fixed.placement.T @ alpha)
    return _spatial_or_classical(V, alpha, classical).array


@program
def jacobian(
    robot: Robot, q: ConfigurationLike, frame: str, *, reference: Reference = "local"
) -> Jacobian:
    """The Jacobian of a named frame: V₀ = J β, J = B*φ*H* ([SOA] (2.1)).

    Cost O(depth).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    frame
        Name of a frame or body.
    reference
        The frame that V₀ is expressed in: "local" (the frame's own axes and origin), "world" (the
        world's axes and origin) or "aligned" (the world's axes, the frame's origin).

    Returns
    -------
    (…, 6, nv)
        J, rows [angular; linear].

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> pp.jacobian(robot, [0.0, 0.0], "tool")[3] + 0.0  # speed along x by each joint
    array([-0.6, -0.3])
    """
    x = posed(forest(robot, q))
    to, fixed = view(frame_of(x, frame), reference), robot.frame(frame)

    def column(k: Record, reach: Transform) -> dict[str, Any]:
        """J = φ(k,0)*H*"""
        return {"J": MotionBasis(tuple(to @ (reach.T @ c) for c in k.H.T.columns))}

    return columns(along_root_path(column, x, fixed.body, fixed.placement), "J")


@program
def jacobian_derivative(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    frame: str,
    *,
    reference: Reference = "local",
) -> Jacobian:
    """The time derivative of `jacobian` along v, so that V̇₀ = J β̇ + J̇ β.

    The column of hinge k is φ(k,0)*(ad(V_k)H_k* + Ḣ_k*) − ad(V_r)J_k, where V_r is the velocity of
    the reference frame: V₀ for "local", [0; v₀] for "aligned", 0 for "world". Cost O(depth).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    frame
        Name of a frame or body.
    reference
        The frame of the Jacobian: "local" (the frame's own axes and origin), "world" (the world's
        axes and origin) or "aligned" (the world's axes, the frame's origin).

    Returns
    -------
    (…, 6, nv)
        J̇, rows [angular; linear].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v, a = [0.3, -0.5], [1.0, 2.0], [3.0, 4.0]
    >>> J, J_dot = pp.jacobian(robot, q, "tool"), pp.jacobian_derivative(robot, q, v, "tool")
    >>> np.allclose(J @ a + J_dot @ v, pp.frame_acceleration(robot, q, v, a, "tool"))
    True
    """
    x = posed(moving(forest(robot, q, v=v)))
    to, fixed = view(frame_of(x, frame), reference), robot.frame(frame)
    V = motion_of(x, frame)
    V_r = {"local": V, "aligned": Motion(rot.zero(), V.linear)}.get(reference, Motion.zero())

    def column(k: Record, reach: Transform) -> dict[str, Any]:
        """J̇ = φ(k,0)*(ad(V)H* + Ḣ*) − ad(V_r)J"""
        units = zip(k.H.T.columns, np.eye(len(k.v)), strict=True)
        rates = ((k.V.cross(c) + k.H_rate(e), c) for c, e in units)
        moved = (reach.T @ rate - V_r.cross(reach.T @ c) for rate, c in rates)
        return {"J_rate": MotionBasis(tuple(to @ m for m in moved))}

    return columns(along_root_path(column, x, fixed.body, fixed.placement), "J_rate")


@program
def center_of_mass(robot: Robot, q: ConfigurationLike) -> Vector3:
    """The centre of mass of all bodies in the world: Σ X_i h_i / Σ m_i.

    Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.

    Returns
    -------
    (…, 3)
        Position in the world frame [m].

    Raises
    ------
    ModelError
        If no body has mass.

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> pp.center_of_mass(robot, [0.0, 0.0]) + 0.0
    array([ 0. ,  0. , -0.3])
    """
    if isinstance(robot.mass, float) and robot.mass == 0.0:
        raise ModelError(f"robot {robot.name!r} has no moving mass, so no centre of mass")
    return first_moment(robot, q) / robot.mass


# ---- Gram matrices ------------------------------------------------------------------------------


@program
def jacobian_gram(robot: Robot, q: ConfigurationLike) -> SpatialMatrices:
    """The Gram matrix J J* of every body's Jacobian J = B*φ*H*: Y = φ*Y_pφ + H*H ([SOA] 2).

    Its inverse is the operational inertia of a robot with unit mass matrix; its eigenvalues are the
    squared axes of the manipulability ellipsoid. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.

    Returns
    -------
    (…, nb, 6, 6)
        J J* of each body, symmetric, in the body's own frame [1, m, m²].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> J = pp.jacobian(robot, [0.3, -0.5], robot.bodies[1].name)
    >>> np.allclose(pp.jacobian_gram(robot, [0.3, -0.5])[1], J @ J.T)
    True
    """
    return stack(outward(gram, forest(robot, q), Y=Compliance.zero()), "Y", (6, 6))


def gram(k: Record, parent: Record) -> dict[str, Any]:
    """Y = φ*Y_pφ + H*H   [SOA] 2"""
    return {"Y": parent.Y.carried(k.phi).yielding(k.H)}


def weights_on_bodies(
    robot: Robot, weights: Mapping[str, ArticulatedInertia]
) -> list[ArticulatedInertia]:
    """For each body the sum of the weights W of its frames, as an inertia in the body's frame; zero
    for a body without weighted frames. Weights of frames fixed to the world are dropped."""
    bodies = [SpatialInertia.zero().articulated] * robot.nb
    for name, W in weights.items():
        frame = robot.frame(name)
        if frame.body != WORLD:
            i = robot.body_index(frame.body)
            bodies[i] = bodies[i] + frame.placement.congruence(W)
    return bodies


def factor_and_whiten(k: Record, children: Children) -> dict[str, Any]:
    """P, D, G of Alg 2.2 with M the weights, A = μ²;  κ = (I − HψK)(x + Hφf),  x = D⁻¹κ"""
    new = riccati(k, children)
    new |= whiten(k.extended(new), children)
    return new | scale(k.extended(new))


def weighted_solve(x: Forest) -> JointVector:
    """(Σ J*WJ + A)⁻¹(x + J*f), where each body has the sum of its weights W in place of its inertia
    M, and the fields x, A and f_ext = f."""
    return gather(outward(whiten_adjoint, inward(factor_and_whiten, x), V=Motion.zero()), "y")


@program(static=("frames",), joint_space=True)
def gram_inverse_product(
    robot: Robot,
    q: ConfigurationLike,
    x: JointVectorLike,
    damping: ArrayLike,
    frames: Sequence[str],
    weights: Annotated[Array, "rows"] | None = None,
) -> JointVector:
    """`gram_solve` with the weights of all frames in one row, (…, 36 nf) or (…, 6 nf), or None."""
    rows = np.ones((len(frames), 6)) if weights is None else weights.reshape(len(frames), -1)
    W = [ArticulatedInertia.of(w.reshape(6, 6) if len(w) == 36 else np.diag(w)) for w in rows]
    bodies = weights_on_bodies(robot, dict(zip(frames, W, strict=True)))
    mu = np.asarray(damping)
    armature = np.broadcast_to(mu * mu, (robot.nv,))
    return weighted_solve(forest(robot, q, x=x, A=armature).holding(M=bodies))


gram_inverse_product.name = "gram_solve"  # the name that error messages begin with


def gram_solve(
    robot: Robot,
    q: ConfigurationLike,
    x: JointVectorLike,
    *,
    frames: str | Sequence[str],
    weights: ArrayLike | None = None,
    damping: ArrayLike = 0.0,
) -> JointVector:
    """A damped least-squares step, (Σ J*WJ + μ²I)⁻¹ x with the sum over named frames ([SOA] 2).

    The matrix in parentheses is the mass matrix of bodies with the inertias W and hinges with the
    armature μ². So it is inverted by the Riccati recursion, (I − HψK)* D⁻¹ (I − HψK), at a cost of
    O(N) whatever the number of frames.

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    x : (…, nv)
        The vector that is multiplied: J*We for a step that reduces the errors e of the frames.
    frames
        Name of a frame or body, or a list of different names; a frame fixed to the world adds
        nothing to the sum.
    weights : (…, nf, 6, 6) or (…, nf, 6), optional
        W of each frame, symmetric positive semidefinite, or its diagonal, in the frame's own axes,
        [angular; linear]. Default: the identity.
    damping : number, (…, 1) or (…, nv), optional
        μ: one number, one for each row of the batch, or one for each joint velocity. It may be zero
        where the sum over the frames is regular by itself.

    Returns
    -------
    (…, nv)
        The step.

    Raises
    ------
    ValueError
        If the names are not those of different frames, or `weights` or `damping` has another shape.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> arm = pp.robots.puma560()
    >>> q, x = arm.random_state(0)
    >>> J = pp.jacobian(arm, q, "tool")
    >>> step = pp.gram_solve(arm, q, x, frames="tool", damping=0.1)
    >>> bool(np.allclose((J.T @ J + 0.01 * np.eye(6)) @ step, x))
    True
    """
    if not isinstance(robot, Robot):
        raise TypeError(f"gram_solve: robot is {a_class(robot)}, needs a Robot")
    if isinstance(frames, str) or not isinstance(frames, Iterable):
        names = (frames,)
    else:
        names = tuple(frames)
    if not all(isinstance(x, str) for x in names) or not 0 < len(names) == len(set(names)):
        raise ValueError(f"gram_solve: frames is {frames!r}, needs names of different frames")
    mu: Any = damping  # NumPy's types do not know arrays of other libraries
    shape = None if mu is None else np.shape(mu)
    if shape is None or shape[-1:] not in ((), (1,), (robot.nv,)):
        given = f"has shape {shape}" if shape else f"is {damping!r}"
        raise ValueError(
            f"gram_solve: damping {given}, needs a number, (..., 1) or (..., {robot.nv})"
        )
    if weights is None:
        return gram_inverse_product(robot, q, x, damping, names)
    W, n = np.asanyarray(weights), len(names)
    own = next((s for s in ((n, 6, 6), (n, 6)) if W.shape[-len(s) :] == s), None)
    if own is None:
        raise ValueError(
            f"gram_solve: weights has shape {W.shape}, "
            f"needs (..., {n}, 6, 6) or (..., {n}, 6) for {n} frames"
        )
    rows = W.reshape((*W.shape[: -len(own)], prod(own)))
    return gram_inverse_product(robot, q, x, damping, names, rows)


# ---- frames -------------------------------------------------------------------------------------


def view(at: Transform, reference: Reference) -> TransposedTransform:
    """The operator that expresses a motion in a reference; the motion is given in the axes of a
    frame whose pose in the world is `at`."""
    match reference:
        case "local":
            return Transform.identity().T
        case "world":
            return at.inv.T
        case "aligned":
            return at.aligned.inv.T
    raise ValueError(f"reference {reference!r} is not one of {', '.join(REFERENCES)}")


def frame_of(x: Forest, name: str) -> Transform:
    """The pose of a named frame in the world, from the field `pose` of the bodies (see `posed`)."""
    frame = x.robot.frame(name)
    return frame.placement if frame.body == WORLD else x.body(frame.body).pose @ frame.placement


def motion_of(x: Forest, name: str) -> Motion:
    """The velocity of a named frame in its own axes, from the field `V` of the bodies."""
    frame = x.robot.frame(name)
    return Motion.zero() if frame.body == WORLD else frame.placement.T @ x.body(frame.body).V


def _spatial_or_classical(V: Motion, alpha: Motion, classical: bool) -> Motion:
    """The spatial acceleration α of a frame that moves with V, or its classical acceleration
    α + [0; ω × v]."""
    return alpha + Motion(rot.zero(), rot.cross(V.angular, V.linear)) if classical else alpha
