"""Operational space: a frame moves, or presses, as if it were a mass of its own (Khatib 1987;
[SOA] 5.2, 6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.algorithms import (
    bias_force,
    frame_acceleration,
    frame_pose,
    jacobian,
    mass_matrix_product,
    mass_matrix_solve,
    operational_inertia_inverse,
)
from phipsi.control.gains import NONNEGATIVE, Gain, controller
from phipsi.control.tasks import (
    SHAPES,
    TRACKING,
    clearance,
    known_forces,
    report,
    rows_of,
    task,
    turning,
)
from phipsi.model import Robot
from phipsi.spatial import Pivot

POSTURE = {"posture_stiffness": NONNEGATIVE, "null_damping": NONNEGATIVE}


class TaskFrame:
    """A frame as a mass of its own: Λ = (J𝓜⁻¹J*)⁻¹ of chosen rows, damped near singularities."""

    def __init__(
        self, robot: Robot, q: Any, v: Any, frame: str, rows: slice, singular: Any
    ) -> None:
        self.robot, self.q = robot, q
        turn = turning(frame_pose(robot, q, frame)[:3, :3])
        self.J = jacobian(robot, q, frame, reference="aligned")[rows]
        Upsilon = (turn @ operational_inertia_inverse(robot, q, frame) @ turn.T)[rows, rows]
        _, self.clearance = clearance(self.J, singular)
        short = np.maximum(0.0, 1.0 - (self.clearance / singular) ** 2)
        size = short * short * np.trace(Upsilon) / len(Upsilon)
        self._inverse = Pivot(Upsilon + size * np.eye(len(Upsilon)))
        still = np.zeros(robot.nv)
        self.drift = frame_acceleration(
            robot, q, v, still, frame, reference="aligned", classical=True
        )[rows]

    def force(self, acceleration: Any) -> Any:
        """Λ a: the force that gives the rows an acceleration."""
        return self._inverse.solve(acceleration)

    def null_space(self, tau: Any) -> Any:
        """N*T = T − J*ΛJ𝓜⁻¹T: the part of joint forces that does not move the frame."""
        moved = self.J @ mass_matrix_solve(self.robot, self.q, tau)
        return tau - self.J.T @ self.force(moved)


def _posture(robot: Robot, q: Any, v: Any, posture: Any, stiffness: Any, damping: Any) -> Any:
    """𝓜(K(q_0 − q) − Bβ): joint forces towards a posture."""
    pull = -damping * v
    if posture is not None:
        pull = pull + stiffness * robot.difference(q, posture)
    return mass_matrix_product(robot, q, pull)


@controller(gains={**TRACKING, **POSTURE}, shapes={**SHAPES, "posture": ("nq",)})
def operational_space(
    robot: Robot,
    q: Any,
    v: Any,
    pose: Any,
    velocity: Any = None,
    acceleration: Any = None,
    *,
    posture: Any = None,
    frame: str = "tool",
    rows: str = "pose",
    stiffness: Any = 100.0,
    damping: Any = 20.0,
    posture_stiffness: Any = 10.0,
    null_damping: Any = 5.0,
    singular: Any = 0.05,
    passive: bool = True,
) -> dict[str, Any]:
    """T = J*Λ(a_d + K_d(V_d − V) + K_p e − J̇β) + C + N*T₀, N* = I − J*ΛJ𝓜⁻¹ (Khatib 1987).

    The frame's error decays as a spring of `stiffness` [1/s²] and `damping` [1/s]; T₀ draws the
    joints to a `posture` (nq,) where that does not accelerate the frame (`posture_stiffness`
    [1/s²], `null_damping` [1/s]). Every freedom is driven. Others as in `resolved_acceleration`.
    Returns tau (nv,) [N·m or N], attitude_error [rad], position_error [m], clearance. Cost O(N).
    """
    chosen = rows_of("operational_space", rows)
    now = task(robot, q, v, frame, chosen, pose, velocity, acceleration, stiffness, damping)
    tip = TaskFrame(robot, q, v, frame, chosen, singular)
    tau = tip.J.T @ tip.force(now.acceleration[chosen] - tip.drift)
    rest = _posture(robot, q, v, posture, posture_stiffness, null_damping)
    tau = tau + bias_force(robot, q, v) + tip.null_space(rest)
    tau = tau - known_forces(robot, q, v, None, passive)
    return report(tau, now.error, clearance=tip.clearance)


PRESSING = {**TRACKING, "null_damping": NONNEGATIVE, "force_damping": Gain(zero=True)}
FORCES = {"force": (6,), "axes": (6,), "task_axes": (3, 3), "measured": (6,)}


@controller(gains={**PRESSING, "force_gain": Gain(zero=True)}, shapes={**SHAPES, **FORCES})
def hybrid_force_position(
    robot: Robot,
    q: Any,
    v: Any,
    pose: Any,
    force: Any,
    axes: Any,
    velocity: Any = None,
    acceleration: Any = None,
    *,
    task_axes: Any = None,
    measured: Any = None,
    frame: str = "tool",
    stiffness: Any = 100.0,
    damping: Any = 20.0,
    force_damping: Any = 20.0,
    force_gain: Any = 0.0,
    null_damping: Any = 5.0,
    singular: Any = 0.05,
    passive: bool = True,
) -> dict[str, Any]:
    """T = J*(Λ(S̄α_d − SB V − J̇β) + f) + C + N*T₀: force along chosen axes, motion along the others
    (Raibert & Craig 1981, Khatib 1987).

    `axes` (6,) are truth values of [moment; force] in the axes `task_axes` (3, 3; None: the
    world's): true where `force` (6,), in the same axes, shall be exerted on the surroundings, false
    where the frame follows its target. Along the first motion is slowed at `force_damping` [1/s];
    against a rigid surface the force is exact, and with `measured` (6,) its error is fed back
    with `force_gain`. Others as in `operational_space`. Cost O(N).
    """
    turn = turning(np.eye(3) if task_axes is None else task_axes)
    S = turn @ np.diag(np.where(axes, 1.0, 0.0)) @ turn.T
    whole = rows_of("hybrid_force_position", "pose")
    now = task(robot, q, v, frame, whole, pose, velocity, acceleration, stiffness, damping)
    tip = TaskFrame(robot, q, v, frame, whole, singular)
    V = tip.J @ v
    wanted = now.acceleration - S @ now.acceleration - force_damping * (S @ V)
    push = force if measured is None else force + force_gain * (force - measured)
    exerted = tip.force(wanted - tip.drift) + S @ (turn @ push)
    rest = _posture(robot, q, v, None, 0.0, null_damping)
    tau = tip.J.T @ exerted + bias_force(robot, q, v) + tip.null_space(rest)
    tau = tau - known_forces(robot, q, v, None, passive)
    return report(tau, now.error - S @ now.error, clearance=tip.clearance)
