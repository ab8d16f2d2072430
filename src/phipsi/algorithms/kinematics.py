"""Poses, velocities, accelerations and Jacobians: V = φ*H*β, α = φ*(H*β̇ + a), J = B*φ*H*."""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.conventions import REFERENCES, WORLD
from phipsi.model import ModelError, Robot
from phipsi.operators.recursions import velocity
from phipsi.spatial import Motion, MotionBasis, Transform, TransposedTransform
from phipsi.spatial import rotation as rot
from phipsi.sweeps import (
    Forest,
    columns,
    forest,
    local,
    outward,
    path,
    program,
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
    return _frame(posed(forest(robot, q)), frame).matrix


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
    return (view(_frame(x, frame), reference) @ _frame_velocity(x, frame)).array


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
        V, alpha = to @ k.V, to @ k.alpha
        spin = rot.cross(V.angular, V.linear) if classical else rot.zero()
        return {"seen": alpha + Motion(rot.zero(), spin)}

    x = outward(acceleration, moving(forest(robot, q, v=v, qdd=a)), alpha=Motion.zero())
    return stack(local(seen, posed(x)), "seen")


@program
def jacobian(robot: Robot, q: Any, frame: str, *, reference: str = "local") -> Any:
    """The Jacobian of a named frame: V₀ = J β, J = B*φ*H* ([SOA] (2.1)).

    Returns (…, 6, nv), [angular; linear]; reference "local" (the frame's own axes and origin),
    "world" or "aligned" (the world's axes, the frame's origin). Cost O(depth).
    """
    x = posed(forest(robot, q))
    to, fixed = view(_frame(x, frame), reference), robot.frame(frame)

    def column(k: Any, reach: Transform) -> dict[str, Any]:
        """J = φ(k,0)*H*"""
        return {"J": MotionBasis(tuple(to @ (reach.T @ c) for c in k.H.T.columns))}

    return columns(path(column, x, fixed.body, fixed.placement), "J")


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
    to, fixed = view(_frame(x, frame), reference), robot.frame(frame)
    V = _frame_velocity(x, frame)
    V_r = {"local": V, "aligned": Motion(rot.zero(), V.linear)}.get(reference, Motion.zero())

    def column(k: Any, reach: Transform) -> dict[str, Any]:
        """J̇ = φ(k,0)*(ad(V)H* + Ḣ*) − ad(V_r)J"""
        units = zip(k.H.T.columns, np.eye(len(k.v)), strict=True)
        rates = ((k.V.cross(c) + k.H_rate(e), c) for c, e in units)
        moved = (reach.T @ rate - V_r.cross(reach.T @ c) for rate, c in rates)
        return {"J_rate": MotionBasis(tuple(to @ m for m in moved))}

    return columns(path(column, x, fixed.body, fixed.placement), "J_rate")


@program
def center_of_mass(robot: Robot, q: Any) -> Any:
    """The centre of mass of all bodies in the world: Σ X_i h_i / Σ m_i, (…, 3) [m]. Cost O(N)."""
    if isinstance(robot.mass, float) and robot.mass == 0.0:
        raise ModelError(f"robot {robot.name!r} has no moving mass, so no centre of mass")
    return first_moment(robot, q) / robot.mass


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


def _frame(x: Forest, name: str) -> Transform:
    frame = x.robot.frame(name)
    return frame.placement if frame.body == WORLD else x.body(frame.body).pose @ frame.placement


def _frame_velocity(x: Forest, name: str) -> Motion:
    frame = x.robot.frame(name)
    return Motion.zero() if frame.body == WORLD else frame.placement.T @ x.body(frame.body).V
