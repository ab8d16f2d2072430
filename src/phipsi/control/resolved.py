"""Resolved motion with the generalized Jacobian: arms on bases that yield, whatever still drives
them ([UA] 6.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.algorithms import (
    frame_pose,
    frame_velocity,
    generalized_jacobian,
    passive_rates,
)
from phipsi.control.gains import Gain, controller
from phipsi.control.tasks import (
    SHAPES,
    TRACKING,
    clearance,
    damped,
    pose_error,
    report,
    resolve,
    rows_of,
    split,
    task,
)
from phipsi.model import Robot


@controller(gains=TRACKING, shapes=SHAPES, masks=("active", "locked"))
def resolved_acceleration(
    robot: Robot,
    q: Any,
    v: Any,
    active: Any,
    pose: Any,
    velocity: Any = None,
    acceleration: Any = None,
    *,
    locked: Any = None,
    tau: Any = None,
    frame: str = "tool",
    rows: str = "pose",
    stiffness: Any = 16.0,
    damping: Any = 8.0,
    null_damping: Any = 1.0,
    singular: Any = 0.05,
    passive: bool = True,
) -> dict[str, Any]:
    """β̇_a = J_G⁺(α_d − drift), T_a by hybrid dynamics: the frame follows its target while passive
    freedoms (the base, a joint without its motor) yield ([UA] 6.2).

    α_d = a_d + K_d(V_d − V) + K_p e, e = [log(R_dR*); p_d − p]: the error decays as a spring of
    `stiffness` [1/s²] and `damping` [1/s] (a number, or one per row [angular; linear]). `pose`
    (4, 4), `velocity` and `acceleration` (6,) are the target's, world axes, classical. `active` and
    `locked` (nv,) say what is driven and what its brake holds; they may change at any time: this is
    the switch to another active set after a fault. `rows`: "pose", "linear" (or "position"),
    "angular". Motion of driven joints that the rows leave free is slowed at `null_damping` [1/s] (a
    joint that swings keeps its momentum: no motor can take it). Below a
    `singular` value of J_G the least squares are damped; above it tracking is exact. `tau` (nv,)
    are known forces of freedoms that are not driven (thrusters, wheels with another controller);
    springs, dampers and friction count as known if `passive`.

    Returns tau (nv,) [N·m or N]; attitude_error [rad], position_error [m], and `clearance`, between
    σ_min/√m and σ_min of the m rows of J_G. Cost O(N).
    """
    chosen = rows_of("resolved_acceleration", rows)
    now = task(robot, q, v, frame, chosen, pose, velocity, acceleration, stiffness, damping)
    found = resolve(
        robot, q, v, split(robot, active, locked), tau, [now], null_damping, singular, passive
    )
    return report(found.tau, now.error, clearance=found.clearance)


@controller(
    gains={"stiffness": Gain(6), "singular": Gain()},
    shapes={**SHAPES, "momentum": ("nv",)},
    masks=("active", "locked"),
)
def resolved_rate(
    robot: Robot,
    q: Any,
    active: Any,
    pose: Any,
    velocity: Any = None,
    *,
    locked: Any = None,
    momentum: Any = None,
    frame: str = "tool",
    rows: str = "pose",
    stiffness: Any = 4.0,
    singular: Any = 0.05,
) -> Any:
    """β_a = J_G⁺(V_d + K e − V_p): joint rates that bring a frame to its target while passive
    freedoms yield at given momenta ([UA] 6.2, (7.3)).

    `momentum` (nv,) is read where passive, None is zero (a free-flyer that began at rest); V_p is
    the frame's velocity by it alone. The error decays at `stiffness` [1/s]; `velocity` (6,) is the
    target's; others as in `resolved_acceleration`. Returns all joint rates, passive ones as they
    follow, (…, nv) [rad/s or m/s]. Cost O(N).
    """
    chosen = rows_of("resolved_rate", rows)
    driven, held = split(robot, active, locked)
    wanted = stiffness * pose_error(frame_pose(robot, q, frame), pose)
    wanted = wanted if velocity is None else wanted + velocity
    if momentum is not None:
        adrift = passive_rates(robot, q, np.zeros(robot.nv), held, momentum)
        wanted = wanted - frame_velocity(robot, q, adrift, frame, reference="aligned")
    J = (generalized_jacobian(robot, q, frame, held, reference="aligned") * driven)[chosen]
    gram, rho = clearance(J, singular)
    rates = J.T @ damped(gram, rho, singular, wanted[chosen])
    return passive_rates(robot, q, rates, held, momentum)
