"""Newton-Euler: T = 𝓜β̇ + C by one sweep out and one in; the same for its relatives."""

from __future__ import annotations

from typing import Annotated, Any

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
    Record,
    blocks_to_root,
    by_body,
    forest,
    gather,
    inward,
    local,
    outward,
)
from phipsi.typing import (
    Array,
    ConfigurationLike,
    ExternalForces,
    JointMatrix,
    JointVector,
    JointVectorLike,
    Vector3,
)


def against_gravity(robot: Robot) -> Vector3:
    """The pseudo-acceleration −g of the world, which makes gravity act on every body."""
    return -rot.scalars(robot.gravity)


def collect(k: Record, children: Children) -> dict[str, Any]:
    """f = Mα + b + Σ φf,  T = Hf   [BI] Alg 2.1, [SOA] (3.3)"""
    f = children.sum(lambda c: c.phi @ c.f, k.load)
    return {"f": f, "T": k.H @ f}


FORCE = mass @ beta_dot + C


@program(joint_space=True, equation=FORCE)
def inverse_dynamics(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    a: JointVectorLike,
    *,
    external: ExternalForces | None = None,
) -> JointVector:
    """Joint forces for given joint accelerations: T = 𝓜β̇ + C ([BI] Alg 2.1, [SOA] (3.1)-(3.6)).

    Gravity, armature and external forces are included. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities β [rad/s or m/s].
    a : (…, nv)
        Joint accelerations β̇ [rad/s² or m/s²].
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.

    Returns
    -------
    (…, nv)
        Joint forces [N·m or N].

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> tau = pp.inverse_dynamics(robot, q=[0.3, -0.5], v=[1.0, 2.0], a=[0.0, 0.0])
    >>> pp.forward_dynamics(robot, [0.3, -0.5], [1.0, 2.0], tau).round(9) + 0.0
    array([0., 0.])
    """
    return compute(FORCE, robot, q, v, beta_dot=a, external=external)


@program(joint_space=True, equation=C)
def bias_force(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    *,
    external: ExternalForces | None = None,
) -> JointVector:
    """Joint forces at zero joint acceleration: C = Hφ(Mφ*a + b) ([UA] (3.4), [DL] (4.2)).

    Coriolis, gyroscopic, gravity and external terms. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.

    Returns
    -------
    (…, nv)
        Joint forces [N·m or N].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> C = pp.bias_force(robot, q=[0.3, -0.5], v=[1.0, 2.0])
    >>> np.allclose(C, pp.inverse_dynamics(robot, [0.3, -0.5], [1.0, 2.0], [0.0, 0.0]))
    True
    """
    return compute(C, robot, q, v, external=external)


@program
def gravity_force(robot: Robot, q: ConfigurationLike) -> JointVector:
    """Joint forces that hold the robot at rest against gravity: the bias force at β = 0.

    Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.

    Returns
    -------
    (…, nv)
        Joint forces [N·m or N].

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> tau = pp.gravity_force(robot, [1.0, 2.0])
    >>> pp.forward_dynamics(robot, [1.0, 2.0], [0.0, 0.0], tau).round(9) + 0.0
    array([0., 0.])
    """
    return bias_force(robot, q, np.zeros(robot.nv))


def stretched(robot: Robot, q: ConfigurationLike) -> tuple[JointVector, JointVector]:
    """u = log(rest⁻¹q), and δ: u less the dead band of the backlash."""
    u = robot.difference(robot.joint_data("rest"), q)
    play = 0.5 * robot.joint_data("backlash")
    return u, u - np.clip(u, -play, play)


@program
def passive_forces(robot: Robot, q: ConfigurationLike, v: JointVectorLike) -> JointVector:
    """Joint forces of springs, dampers and friction: −(dlog_u)*K δ − B v − F tanh(v/v_s).

    u = log(rest⁻¹q) is the displacement from rest in velocity coordinates, and δ is u less the dead
    band of the backlash. The force of springs is the gradient of their energy ½ δ*Kδ
    (`passive_energy`); (dlog_u)* = I where the coordinates of a hinge add. Springs of planar,
    spherical and free hinges act on the shorter way back to rest: at half a turn their force jumps.
    No algorithm adds these forces by itself: add them to `tau`. Cost O(N).

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
    (…, nv)
        Joint forces [N·m or N].

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> pp.passive_forces(robot, [0.3, -0.5], [1.0, 2.0]) + 0.0  # no springs, no dampers
    array([0., 0.])
    """
    u, travel = stretched(robot, q)
    spring = robot.difference_force(u, robot.joint_data("stiffness") * travel)
    damper = robot.joint_data("damping") * v
    friction = robot.joint_data("friction") * np.tanh(v / robot.joint_data("friction_speed"))
    return -(spring + damper + friction)


def coriolis_motion(k: Record, parent: Record) -> dict[str, Any]:
    """W⁺ = φ*W_p,  W = W⁺ + H*w,  α = φ*α_p − ad(Δ)W⁺ + Ḣ*w   [SOA] 6"""
    W_plus = k.phi.T @ parent.W
    alpha = k.phi.T @ parent.alpha - k.Delta.cross(W_plus) + k.H_rate(k.w)
    return {"W": W_plus + k.H.T @ k.w, "alpha": alpha}


def coriolis_load(k: Record) -> dict[str, Any]:
    """Mα + crf(W)MV"""
    return {"load": k.M @ k.alpha + k.W.cross_force(k.M @ k.V)}


def _coriolis(x: Forest) -> Array:
    """C(q, v) w of moving bodies with w given."""
    x = outward(coriolis_motion, x, W=Motion.zero(), alpha=Motion.zero())
    return gather(inward(collect, local(coriolis_load, x)), "T")


@program
def coriolis_product(
    robot: Robot, q: ConfigurationLike, v: JointVectorLike, w: JointVectorLike
) -> JointVector:
    """The product C(q, v) w with the Coriolis matrix for which 𝓜̇ = C + C* ([SOA] 6).

    So 𝓜̇ − 2C is skew, and C(q, v) v is the velocity part of the bias force. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    w : (…, nv)
        The vector that is multiplied.

    Returns
    -------
    (…, nv)
        Joint forces [N·m or N], if w are velocities.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v = [0.3, -0.5], [1.0, 2.0]
    >>> C = pp.coriolis_product(robot, q, v, v)
    >>> np.allclose(C, pp.bias_force(robot, q, v) - pp.gravity_force(robot, q))
    True
    """
    return _coriolis(moving(forest(robot, q, v=v, w=w)))


@program
def coriolis_matrix(robot: Robot, q: ConfigurationLike, v: JointVectorLike) -> JointMatrix:
    """The Coriolis matrix C(q, v) of `coriolis_product`, column by column ([SOA] 6).

    Cost O(N²).

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
    (…, nv, nv)
        The matrix: C(q, v) w are joint forces for velocities w.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> C = pp.coriolis_matrix(robot, [0.3, -0.5], [1.0, 2.0])
    >>> np.allclose(C @ [3.0, 4.0], pp.coriolis_product(robot, [0.3, -0.5], [1.0, 2.0], [3.0, 4.0]))
    True
    """
    x = moving(forest(robot, q, v=v))
    C = np.full((robot.nv, robot.nv), 0.0, object)
    for i, unit in enumerate(np.eye(robot.nv)):
        C[:, i] = _coriolis(x.given(w=unit))
    return C


@program
def regressor(
    robot: Robot, q: ConfigurationLike, v: JointVectorLike, a: JointVectorLike
) -> Annotated[Array, "nv parameters"]:
    """The matrix Y with T = Y π + A β̇, where π are the inertia parameters of all bodies.

    π has ten numbers for each body (`phipsi.conventions`), in the order of the bodies; A is the
    armature. Cost O(N · depth).

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

    Returns
    -------
    (…, nv, 10 nb)
        The matrix Y.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v, a = [0.3, -0.5], [1.0, 2.0], [3.0, 4.0]
    >>> pi = np.concatenate([body.inertia.parameters for body in robot.bodies])
    >>> np.allclose(pp.regressor(robot, q, v, a) @ pi, pp.inverse_dynamics(robot, q, v, a))
    True
    """

    def unit_forces(k: Record) -> ForceBasis:
        """Mα + crf(V)MV for each unit parameter"""
        units = (SpatialInertia.of_parameters(e) for e in np.eye(10).astype(object))
        return ForceBasis(tuple(M @ k.alpha + k.V.cross_force(M @ k.V) for M in units))

    world = Motion(rot.zero(), against_gravity(robot))
    x = outward(acceleration, moving(forest(robot, q, v=v, qdd=a)), alpha=world)
    return by_body(x, blocks_to_root(unit_forces, x), 10)
