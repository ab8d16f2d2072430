"""Joint space: every driven freedom has its own target.

Errors are displacements on the configuration manifold, `robot.difference(q, target)`, (nv,).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.algorithms import (
    coriolis_product,
    gravity_force,
    hybrid_dynamics,
    mass_matrix_product,
)
from phipsi.control.gains import NONNEGATIVE, POSITIVE, controller
from phipsi.control.tasks import known_forces, split
from phipsi.model import Robot

SPRING = {"stiffness": POSITIVE, "damping": NONNEGATIVE}
COURSE = {"target": ("nq",), "rate": ("nv",), "acceleration": ("nv",)}
MASKS = {"active": ("nv",), "locked": ("nv",)}


@controller(gains=SPRING, shapes=COURSE)
def pd_gravity(
    robot: Robot, q: Any, v: Any, target: Any, *, stiffness: Any = 100.0, damping: Any = 20.0
) -> Any:
    """T = K e − B v + g(q): springs and dampers to a fixed target, gravity carried (Takegaki &
    Arimoto 1981).

    `stiffness` [N·m/rad or N/m] and `damping` are numbers, or one per freedom. Returns tau
    (…, nv) [N·m or N]. Cost O(N).
    """
    return stiffness * robot.difference(q, target) - damping * v + gravity_force(robot, q)


@controller(gains=SPRING, shapes={**COURSE, **MASKS}, masks=tuple(MASKS))
def computed_torque(
    robot: Robot,
    q: Any,
    v: Any,
    target: Any,
    rate: Any = None,
    acceleration: Any = None,
    *,
    active: Any = None,
    locked: Any = None,
    tau: Any = None,
    stiffness: Any = 100.0,
    damping: Any = 20.0,
    passive: bool = True,
) -> Any:
    """T = 𝓜(q)(β̇_d + B(β_d − β) + K e) + C(q, β): the error obeys ë + Bė + Ke = 0 (for freedoms
    that are rates of coordinates exactly).

    `target` (nq,), `rate` and `acceleration` (nv,) or None for zero; `stiffness` [1/s²] and
    `damping` [1/s] are numbers, or one per freedom. With `active` (nv,) the driven freedoms alone
    follow their targets while the others yield, T_a = S_aaβ̇_a + … by hybrid dynamics ([UA] (5.4)):
    joints of a free-flyer, or of a snake with springs in it; `locked` and `tau` as in
    `resolved_acceleration`. Springs, dampers and friction of the robot are cancelled if `passive`.
    Returns tau (…, nv) [N·m or N]. Cost O(N).
    """
    ahead = stiffness * robot.difference(q, target)
    ahead = ahead - damping * (v if rate is None else v - rate)
    ahead = ahead if acceleration is None else ahead + acceleration
    known = known_forces(robot, q, v, tau, passive)
    driven, held = split(robot, np.ones(robot.nv) if active is None else active, locked)
    return driven * (hybrid_dynamics(robot, q, v, known, driven * ahead, held).tau - known)


@controller(gains={"stiffness": POSITIVE, "damping": POSITIVE}, shapes=COURSE)
def passivity_based(
    robot: Robot,
    q: Any,
    v: Any,
    target: Any,
    rate: Any = None,
    acceleration: Any = None,
    *,
    stiffness: Any = 5.0,
    damping: Any = 20.0,
    passive: bool = True,
) -> Any:
    """T = 𝓜β̇_r + C(q, β)β_r + g − K s, β_r = β_d + Λe, s = β − β_r (Slotine & Li 1987; the bilinear
    Coriolis product of [SOA] 6).

    𝓜̇ − 2C is skew, so ½s*𝓜s falls at the rate s*Ks: nothing is cancelled but gravity. `stiffness`
    Λ [1/s] is a number, or one per freedom, `damping` K likewise [N·m·s/rad or N·s/m]; others as in
    `computed_torque`. Returns tau (…, nv) [N·m or N]. Cost O(N).
    """
    zero = np.zeros(robot.nv)
    rate = zero if rate is None else rate
    ahead = stiffness * (rate - v)
    ahead = ahead if acceleration is None else ahead + acceleration
    reference = rate + stiffness * robot.difference(q, target)
    tau = mass_matrix_product(robot, q, ahead) + coriolis_product(robot, q, v, reference)
    tau = tau + gravity_force(robot, q) - damping * (v - reference)
    return tau - known_forces(robot, q, v, None, passive)
