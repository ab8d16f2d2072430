"""What controllers of frames share: errors, wanted accelerations, and joint forces for them.

Errors, velocities and accelerations of frames are [angular; linear] in world axes at the frame's
origin (reference "aligned"), accelerations classical.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms import (
    drift_accelerations,
    frame_pose,
    frame_velocity,
    generalized_jacobian,
    hybrid_dynamics,
    passive_forces,
)
from phipsi.algorithms.under_actuated import as_mask
from phipsi.compile import where
from phipsi.control.gains import Gain
from phipsi.model import Robot
from phipsi.spatial import Pivot
from phipsi.spatial import rotation as rot

ROWS = {
    "pose": slice(0, 6),
    "angular": slice(0, 3),
    "linear": slice(3, 6),
    "position": slice(3, 6),
    "all": slice(0, 6),
}
"""Choices of rows of [angular; linear] by name."""
TRACKING = {
    "stiffness": Gain(6),
    "damping": Gain(6),
    "null_damping": Gain(zero=True),
    "singular": Gain(),
}
"""The gains of controllers of frames by accelerations."""
SHAPES = {
    "t": (),
    "active": ("nv",),
    "locked": ("nv",),
    "pose": (4, 4),
    "velocity": (6,),
    "acceleration": (6,),
}
"""What the simulation and the targets of frames give them."""


def rows_of(what: str, rows: str) -> slice:
    """The rows of that name."""
    if rows not in ROWS:
        raise ValueError(f"{what}: rows {rows!r} is not one of {', '.join(ROWS)}")
    return ROWS[rows]


def pose_error(pose: Any, goal: Any) -> Any:
    """[log(R_d R*); p_d − p]: the turn and the way from a pose to its goal, (6,) [rad, m]."""
    turn = rot.log(rot.quaternion_of(goal[:3, :3] @ pose[:3, :3].T))
    return np.concatenate([turn, goal[:3, 3] - pose[:3, 3]])


def turning(R: Any) -> Any:
    """diag(R, R): turns [angular; linear], (6, 6)."""
    out = rot.scalars(np.zeros((6, 6)))
    out[:3, :3] = out[3:, 3:] = R
    return out


class Task(NamedTuple):
    """What a frame shall do now."""

    frame: str
    rows: slice
    error: Any
    """(6,) [rad, m]."""
    acceleration: Any
    """(6,), classical [rad/s², m/s²]."""
    weight: Any = 1.0
    """How much its rows count where not all can be had."""


def task(
    robot: Robot,
    q: Any,
    v: Any,
    frame: str,
    rows: slice,
    pose: Any,
    velocity: Any,
    acceleration: Any,
    stiffness: Any,
    damping: Any,
) -> Task:
    """a_d + K_d(V_d − V) + K_p e: the error decays as a damped spring."""
    error = pose_error(frame_pose(robot, q, frame), pose)
    V = frame_velocity(robot, q, v, frame, reference="aligned")
    wanted = stiffness * error - damping * (V if velocity is None else V - velocity)
    return Task(frame, rows, error, wanted if acceleration is None else wanted + acceleration)


class Split(NamedTuple):
    """Freedoms as numbers, 1 or 0, (nv,) each."""

    driven: Any
    """A motor moves it."""
    held: Any
    """Its acceleration is prescribed: driven, or locked (at zero)."""


def split(robot: Robot, active: Any, locked: Any) -> Split:
    """A locked freedom is prescribed but not driven, whatever `active` says."""
    active = where(as_mask(robot, active), 1.0, 0.0)
    if locked is None:
        return Split(active, active)
    free = where(as_mask(robot, locked), 0.0, 1.0)
    return Split(active * free, 1.0 - (1.0 - active) * free)


def known_forces(robot: Robot, q: Any, v: Any, tau: Any, passive: bool) -> Any:
    """Given forces and, if they count as known, the robot's springs, dampers and friction (nv,)."""
    given = np.zeros(robot.nv) if tau is None else tau
    return given + passive_forces(robot, q, v) if passive else given


def clearance(J: Any, singular: Any) -> tuple[Any, Any]:
    """JJ*, and how far J is from losing rank: ρ = (tr (JJ*)⁻¹)^−½, between σ_min/√m and σ_min, with
    a floor that keeps it finite where J has lost it."""
    gram = J @ J.T
    floor = (1e-3 * singular) ** 2 * np.eye(len(J))
    inverse = Pivot(gram + floor).congruence(np.eye(len(J)).astype(object))
    return gram, 1.0 / np.sqrt(np.trace(inverse))


def damped(gram: Any, rho: Any, singular: Any, x: Any) -> Any:
    """(JJ* + μ²)⁻¹x: μ is zero where ρ > `singular` and grows to it as ρ falls (Nakamura &
    Hanafusa 1986)."""
    short = np.maximum(0.0, 1.0 - (rho / singular) ** 2)
    return Pivot(gram + (singular * short) ** 2 * np.eye(len(gram))).solve(x)


class Resolved(NamedTuple):
    """Joint forces that give tasks their accelerations, and how well that can be done."""

    tau: Any
    qdd: Any
    clearance: Any


def resolve(
    robot: Robot,
    q: Any,
    v: Any,
    freedoms: Split,
    tau: Any,
    tasks: list[Task],
    null_damping: Any,
    singular: Any,
    passive: bool,
) -> Resolved:
    """β̇_a = y + J_G*(J_GJ_G* + μ²)⁻¹(α − drift − J_G y), T_a by hybrid dynamics ([UA] 6.2).

    y = −kβ_a slows what the tasks leave free.
    """
    driven, held = freedoms
    known = known_forces(robot, q, v, tau, passive)
    J, x = [], []
    for frame, rows, _, wanted, weight in tasks:
        J_G = generalized_jacobian(robot, q, frame, held, reference="aligned") * driven
        drift = drift_accelerations(
            robot, q, v, known, frame, held, reference="aligned", classical=True
        )
        J.append(weight * J_G[rows])
        x.append(weight * (wanted - drift.frame)[rows])
    J, x = np.concatenate(J), np.concatenate(x)
    y = -null_damping * driven * v
    gram, rho = clearance(J, singular)
    qdd = y + J.T @ damped(gram, rho, singular, x - J @ y)
    all_tau = hybrid_dynamics(robot, q, v, known, qdd, held).tau
    return Resolved(driven * (all_tau - known), qdd, rho)


def report(tau: Any, error: Any, **more: Any) -> dict[str, Any]:
    """Joint forces, and signals for the record."""
    return {
        "tau": tau,
        "attitude_error": np.linalg.norm(error[:3]),
        "position_error": np.linalg.norm(error[3:]),
        **more,
    }
