"""Joint space: every driven freedom has its own target.

Errors are displacements on the configuration manifold, e = `robot.difference(q, target)`, (nv,).
"""

from __future__ import annotations

import numpy as np

from phipsi.algorithms import (
    coriolis_product,
    gravity_force,
    hybrid_dynamics,
    mass_matrix_product,
)
from phipsi.control.gains import NONNEGATIVE, POSITIVE, controller
from phipsi.control.tasks import arrays, known_forces, split
from phipsi.model import Robot
from phipsi.typing import ArrayLike, ConfigurationLike, JointVector, JointVectorLike, MaskLike

SPRING = {"stiffness": POSITIVE, "damping": NONNEGATIVE}


@controller(gains=SPRING)
def pd_gravity(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    target: ConfigurationLike,
    *,
    stiffness: ArrayLike = 100.0,
    damping: ArrayLike = 20.0,
) -> JointVector:
    """Springs and dampers to a fixed target, with gravity compensated: T = K e − B v + g(q).

    Takegaki & Arimoto 1981. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    target : (…, nq)
        Desired configuration.
    stiffness : number or (nv,)
        K, positive [N·m/rad or N/m].
    damping : number or (nv,)
        B ≥ 0 [N·m·s/rad or N·s/m].

    Returns
    -------
    (…, nv)
        Joint forces [N·m or N].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.control import pd_gravity
    >>> robot = pp.robots.double_pendulum()
    >>> q = [0.3, -0.5]
    >>> tau = pd_gravity(robot, q, [0.0, 0.0], target=[0.4, -0.5], stiffness=100.0)
    >>> (tau - pp.gravity_force(robot, q)).round(9) + 0.0
    array([10.,  0.])
    """
    v, stiffness, damping = arrays(v, stiffness, damping)
    return stiffness * robot.difference(q, target) - damping * v + gravity_force(robot, q)


@controller(gains=SPRING)
def computed_torque(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    target: ConfigurationLike,
    rate: JointVectorLike | None = None,
    acceleration: JointVectorLike | None = None,
    *,
    active: MaskLike | None = None,
    locked: MaskLike | None = None,
    tau: JointVectorLike | None = None,
    stiffness: ArrayLike = 100.0,
    damping: ArrayLike = 20.0,
    passive: bool = True,
) -> JointVector:
    """Feedback linearization of the joints: T = 𝓜(q)(β̇_d + B(β_d − β) + K e) + C(q, β).

    The error obeys ë + Bė + Ke = 0 (exactly for freedoms whose velocities are rates of
    coordinates). With `active` the driven freedoms alone follow their targets while the others
    yield, T_a = S_aaβ̇_a + … by hybrid dynamics ([UA] (5.4)): joints of a free-flyer, or of a snake
    with springs in it. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities β [rad/s or m/s].
    target : (…, nq)
        Desired configuration.
    rate : (…, nv), optional
        Desired velocities β_d [rad/s or m/s]; zero by default.
    acceleration : (…, nv), optional
        Desired accelerations β̇_d [rad/s² or m/s²]; zero by default.
    active : (…, nv) bool or names of hinges, optional
        The driven freedoms; all by default.
    locked : (…, nv) bool or names of hinges, optional
        Freedoms held by their brakes; none by default.
    tau : (…, nv), optional
        Known forces of freedoms that are not driven [N·m or N]; zero by default.
    stiffness : number or (nv,)
        K, positive [1/s²].
    damping : number or (nv,)
        B ≥ 0 [1/s].
    passive
        Whether springs, dampers and friction of the robot are cancelled.

    Returns
    -------
    (…, nv)
        Joint forces of the driven freedoms [N·m or N], zero elsewhere.

    Examples
    --------
    >>> import phipsi as pp
    >>> from phipsi.control import computed_torque
    >>> robot = pp.robots.double_pendulum()
    >>> q, v = [0.3, -0.5], [1.0, 2.0]
    >>> tau = computed_torque(robot, q, v, target=q, rate=v, acceleration=[3.0, 4.0])
    >>> pp.forward_dynamics(robot, q, v, tau).round(9)
    array([3., 4.])
    """
    v, stiffness, damping = arrays(v, stiffness, damping)
    ahead = stiffness * robot.difference(q, target)
    ahead = ahead - damping * (v if rate is None else v - rate)
    ahead = ahead if acceleration is None else ahead + acceleration
    known = known_forces(robot, q, v, tau, passive)
    driven, held = split(robot, np.ones(robot.nv) if active is None else active, locked)
    return driven * (hybrid_dynamics(robot, q, v, known, driven * ahead, held).tau - known)


@controller(gains={"stiffness": POSITIVE, "damping": POSITIVE})
def passivity_based(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    target: ConfigurationLike,
    rate: JointVectorLike | None = None,
    acceleration: JointVectorLike | None = None,
    *,
    stiffness: ArrayLike = 5.0,
    damping: ArrayLike = 20.0,
    passive: bool = True,
) -> JointVector:
    """Tracking that cancels gravity alone: T = 𝓜β̇_r + C(q, β)β_r + g − K s.

    β_r = β_d + Λe and s = β − β_r (Slotine & Li 1987, with the bilinear Coriolis product of
    [SOA] 6). 𝓜̇ − 2C is skew, so that ½s*𝓜s falls at the rate s*Ks. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities β [rad/s or m/s].
    target : (…, nq)
        Desired configuration.
    rate : (…, nv), optional
        Desired velocities β_d [rad/s or m/s]; zero by default.
    acceleration : (…, nv), optional
        Desired accelerations β̇_d [rad/s² or m/s²]; zero by default.
    stiffness : number or (nv,)
        Λ, positive [1/s].
    damping : number or (nv,)
        K, positive [N·m·s/rad or N·s/m].
    passive
        Whether springs, dampers and friction of the robot are cancelled.

    Returns
    -------
    (…, nv)
        Joint forces [N·m or N].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.control import passivity_based
    >>> robot = pp.robots.double_pendulum()
    >>> q, v, a = [0.3, -0.5], [1.0, 2.0], [3.0, 4.0]
    >>> tau = passivity_based(robot, q, v, target=q, rate=v, acceleration=a)  # no error
    >>> np.allclose(tau, pp.inverse_dynamics(robot, q, v, a))
    True
    """
    v, stiffness, damping = arrays(v, stiffness, damping)
    (rate,) = arrays(np.zeros(robot.nv) if rate is None else rate)
    ahead = stiffness * (rate - v)
    ahead = ahead if acceleration is None else ahead + acceleration
    reference = rate + stiffness * robot.difference(q, target)
    tau = mass_matrix_product(robot, q, ahead) + coriolis_product(robot, q, v, reference)
    tau = tau + gravity_force(robot, q) - damping * (v - reference)
    return tau - known_forces(robot, q, v, None, passive)
