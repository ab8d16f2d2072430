"""Newton-Euler: T = 𝓜β̇ + C by one sweep out and one in; the same for its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.algorithms.kinematics import acceleration, moving
from phipsi.model import Robot
from phipsi.operators import C, beta_dot, mass
from phipsi.operators.lowering.compute import compute
from phipsi.programs import program
from phipsi.spatial import ForceBasis, Motion, SpatialInertia
from phipsi.spatial import rotation as rot
from phipsi.sweeps import (
    Children,
    Forest,
    blocks_to_root,
    by_body,
    forest,
    gather,
    inward,
    local,
    outward,
)


def against_gravity(robot: Robot) -> Any:
    """The pseudo-acceleration −g of the world, which makes gravity act on every body."""
    return -rot.scalars(robot.gravity)


def collect(k: Any, children: Children) -> dict[str, Any]:
    """f = Mα + b + Σ φf,  T = Hf   [BI] Alg 2.1, [SOA] (3.3)"""
    f = children.sum(lambda c: c.phi @ c.f, k.load)
    return {"f": f, "T": k.H @ f}


FORCE = mass @ beta_dot + C


@program(joint_space=True, equation=FORCE)
def inverse_dynamics(robot: Robot, q: Any, v: Any, a: Any, *, external: Any = None) -> Any:
    """Joint forces for joint accelerations a: T = 𝓜β̇ + C ([BI] Alg 2.1, [SOA] (3.1)-(3.6)).

    Gravity, armature and external forces included. Returns (…, nv) [N·m or N]. Cost O(N).
    """
    return compute(FORCE, robot, q, v, beta_dot=a, external=external)


@program(joint_space=True, equation=C)
def bias_force(robot: Robot, q: Any, v: Any, *, external: Any = None) -> Any:
    """The joint force at zero joint acceleration: C = Hφ(Mφ*a + b) ([UA] (3.4), [DL] (4.2)).

    Coriolis, gyroscopic, gravity and external terms. Returns (…, nv) [N·m or N]. Cost O(N).
    """
    return compute(C, robot, q, v, external=external)


@program
def gravity_force(robot: Robot, q: Any) -> Any:
    """The joint force that holds the robot at rest against gravity: the bias force at β = 0.

    Returns (…, nv) [N·m or N]. Cost O(N).
    """
    return bias_force(robot, q, np.zeros(robot.nv))


@program
def passive_forces(robot: Robot, q: Any, v: Any) -> Any:
    """The joint forces of springs, dampers, friction and backlash: −K δ(q) − B v − F tanh(v/v_s).

    δ is the displacement from rest in velocity coordinates, less the dead band of the backlash.
    Add it to `tau`: no algorithm does so by itself. Returns (…, nv) [N·m or N]. Cost O(N).
    """
    travel = robot.difference(robot.joint_data("rest"), q)
    play = 0.5 * robot.joint_data("backlash")
    travel = travel - np.clip(travel, -play, play)
    spring = robot.joint_data("stiffness") * travel
    damper = robot.joint_data("damping") * v
    friction = robot.joint_data("friction") * np.tanh(v / robot.joint_data("friction_speed"))
    return -(spring + damper + friction)


def coriolis_motion(k: Any, parent: Any) -> dict[str, Any]:
    """W⁺ = φ*W_p,  W = W⁺ + H*w,  α = φ*α_p − ad(Δ)W⁺ + Ḣ*w   [SOA] 6"""
    W_plus = k.phi.T @ parent.W
    alpha = k.phi.T @ parent.alpha - k.Delta.cross(W_plus) + k.H_rate(k.w)
    return {"W": W_plus + k.H.T @ k.w, "alpha": alpha}


def coriolis_load(k: Any) -> dict[str, Any]:
    """Mα + crf(W)MV"""
    return {"load": k.M @ k.alpha + k.W.cross_force(k.M @ k.V)}


def _coriolis(x: Forest) -> Any:
    """C(q, v) w of moving bodies with w given."""
    x = outward(coriolis_motion, x, W=Motion.zero(), alpha=Motion.zero())
    return gather(inward(collect, local(coriolis_load, x)), "T")


@program(shapes={"w": ("nv",)})
def coriolis_product(robot: Robot, q: Any, v: Any, w: Any) -> Any:
    """C(q, v) w with the Coriolis matrix for which 𝓜̇ = C + C*, so 𝓜̇ − 2C is skew ([SOA] 6).

    C(q, v) v is the velocity part of the bias force. Returns (…, nv) [N·m or N]. Cost O(N).
    """
    return _coriolis(moving(forest(robot, q, v=v, w=w)))


@program
def coriolis_matrix(robot: Robot, q: Any, v: Any) -> Any:
    """The Coriolis matrix C(q, v) of `coriolis_product`, column by column ([SOA] 6).

    Returns (…, nv, nv). Cost O(N²).
    """
    x = moving(forest(robot, q, v=v))
    C = np.full((robot.nv, robot.nv), 0.0, object)
    for i, unit in enumerate(np.eye(robot.nv)):
        C[:, i] = _coriolis(x.given(w=unit))
    return C


@program
def regressor(robot: Robot, q: Any, v: Any, a: Any) -> Any:
    """Y with T = Y π + A β̇, linear in the ten inertia parameters π of every body (conventions.py).

    Returns (…, nv, 10 nb), columns in the order of the bodies. Cost O(N · depth).
    """

    def unit_forces(k: Any) -> ForceBasis:
        """Mα + crf(V)MV for each unit parameter"""
        units = (SpatialInertia.of_parameters(e) for e in np.eye(10).astype(object))
        return ForceBasis(tuple(M @ k.alpha + k.V.cross_force(M @ k.V) for M in units))

    world = Motion(rot.zero(), against_gravity(robot))
    x = outward(acceleration, moving(forest(robot, q, v=v, qdd=a)), alpha=world)
    return by_body(x, blocks_to_root(unit_forces, x), 10)
