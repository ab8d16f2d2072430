"""Decoupled control in diagonal coordinates ([DL] 8), each controller with its Lyapunov function.

ν = m*β and ε = ℓT (`total_rates`, `applied_moments`): kinetic energy ½ν*ν, power ν*ε. Gravity is
compensated first, so that it does no work.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.algorithms import (
    applied_moments,
    frame_pose,
    gravity_force,
    jacobian,
    kinetic_energy,
    total_rates,
)
from phipsi.control.gains import POSITIVE, Definite, Gain, controller
from phipsi.control.tasks import known_forces, pose_error
from phipsi.model import Robot
from phipsi.programs import program

FALL = {"damping": POSITIVE, "damping_matrix": Definite("nv")}
REACH = {**FALL, "position_gain": Gain(3), "attitude_gain": Gain(3), "weight": Definite(12)}
SHAPES = {"pose": (4, 4), "damping_matrix": ("nv", "nv"), "weight": (12, 12)}
ATTITUDES = ("axes", "geodesic")


def _slowed(robot: Robot, q: Any, v: Any, damping: Any, matrix: Any) -> Any:
    """T = −m c m*β, c the diagonal `damping` or the matrix."""
    nu = total_rates(robot, q, v)
    return -applied_moments(robot, q, damping * nu if matrix is None else matrix @ nu)


@controller(gains=FALL, shapes=SHAPES)
def rate_feedback(
    robot: Robot,
    q: Any,
    v: Any,
    *,
    damping: Any = 1.0,
    damping_matrix: Any = None,
    passive: bool = True,
) -> Any:
    """ε = −cν: every total rate is slowed by itself, dE/dt = −ν*cν ([DL] Control 8.1).

    For one number c the energy is E₀ exp(−2ct) exactly. `damping` c [1/s] is a number, or one per
    freedom; `damping_matrix` (nv, nv), symmetric positive definite, takes its place. Springs,
    dampers and friction of the robot are cancelled if `passive`. Returns tau (…, nv) [N·m or N].
    Cost O(N). Its Lyapunov function is `kinetic_energy`.
    """
    slow = _slowed(robot, q, v, damping, damping_matrix)
    return slow + gravity_force(robot, q) - known_forces(robot, q, v, None, passive)


@controller(gains=REACH, shapes=SHAPES)
def pose_feedback(
    robot: Robot,
    q: Any,
    v: Any,
    pose: Any,
    *,
    frame: str = "tool",
    damping: Any = 3.0,
    position_gain: Any = 60.0,
    attitude_gain: Any = 60.0,
    attitude: str = "axes",
    damping_matrix: Any = None,
    weight: Any = None,
    passive: bool = True,
) -> Any:
    """ε = −cν + ℓJ*Lt*We, that is T = −mcm*β + J*f: a frame is drawn to a fixed pose by a potential
    and slowed in total rates ([DL] Control 8.2, (8.6) corrected).

    attitude="axes" is the paper's: e = Ŷ − Y of the origin and the three axes of the frame,
    f = [Σ y_i × (We)_i; (We)_0], W with `position_gain` for the origin (a number, or one per world
    axis) and `attitude_gain` for the axes (a number, or one per axis of the frame), or `weight`
    (12, 12), symmetric positive definite. A half-turn away it pushes nowhere. "geodesic" has the
    rotation vector θ = log(R_dR*) and the moment `attitude_gain` θ (a number), which does. The
    function `pose_lyapunov` never grows, dU/dt = −ν*cν; it ends at the target, at a singularity or
    (axes) at a half-turn, slowly near singularities. `damping` as in `rate_feedback`. Returns tau
    (…, nv) [N·m or N]. Cost O(N).
    """
    force, _ = _drawn(robot, q, pose, frame, position_gain, attitude_gain, attitude, weight)
    slow = _slowed(robot, q, v, damping, damping_matrix)
    tau = slow + jacobian(robot, q, frame, reference="aligned").T @ force
    return tau + gravity_force(robot, q) - known_forces(robot, q, v, None, passive)


@program(shapes=SHAPES)
def pose_lyapunov(
    robot: Robot,
    q: Any,
    v: Any,
    pose: Any,
    *,
    frame: str = "tool",
    position_gain: Any = 60.0,
    attitude_gain: Any = 60.0,
    attitude: str = "axes",
    weight: Any = None,
) -> Any:
    """U = ½ν*ν + ½e*We, or ½ν*ν + ½k_p|p_d − p|² + ½k_a|θ|²: what `pose_feedback` lets fall
    ([DL] Control 8.2). Returns (…) [J]. Cost O(N)."""
    _, potential = _drawn(robot, q, pose, frame, position_gain, attitude_gain, attitude, weight)
    return kinetic_energy(robot, q, v) + potential


def _drawn(
    robot: Robot, q: Any, pose: Any, frame: str, position: Any, turn: Any, kind: str, weight: Any
) -> tuple[Any, Any]:
    """The force on the frame (6,), world axes at its origin, and the potential that it is of."""
    now = frame_pose(robot, q, frame)
    if kind == "geodesic":
        if weight is not None or np.ndim(turn):
            raise ValueError(
                'pose_feedback: attitude="geodesic" takes one number attitude_gain and no weight'
            )
        e = pose_error(now, pose)
        f = np.concatenate([turn * e[:3], position * e[3:]])
        return f, 0.5 * (e @ f)
    if kind != "axes":
        raise ValueError(f"pose_feedback: attitude {kind!r} is not one of {', '.join(ATTITUDES)}")
    e = np.concatenate([pose[:3, i] - now[:3, i] for i in (3, 0, 1, 2)])
    if weight is None:
        spread = np.concatenate([position * np.ones(3), np.repeat(turn * np.ones(3), 3)])
        pull = spread * e
    else:
        pull = weight @ e
    axes = (np.cross(now[:3, i], pull[3 * i + 3 : 3 * i + 6]) for i in range(3))
    return np.concatenate([sum(axes), pull[:3]]), 0.5 * (e @ pull)
