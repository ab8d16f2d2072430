"""The iteration of inverse kinematics: damped Newton steps, each a Gram solve in O(N)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Annotated, Any, NamedTuple

import numpy as np

from phipsi.algorithms.inverse_kinematics.problem import Rows, Task, Tasks
from phipsi.algorithms.kinematics import (
    frame_of,
    motion_of,
    posed,
    weighted_solve,
    weights_on_bodies,
)
from phipsi.algorithms.newton_euler import collect
from phipsi.compile import repeat
from phipsi.model import Robot
from phipsi.programs import program
from phipsi.spatial import ArticulatedInertia, Force, Motion, Transform
from phipsi.spatial import rotation as rot
from phipsi.sweeps import (
    Children,
    Forest,
    Record,
    external_forces,
    forest,
    gather,
    inward,
    local,
    outward,
)
from phipsi.typing import Array, Configuration, ConfigurationLike, JointVector, Scalar, Vector3

HELD = 1e12
"""Armature that keeps a joint at its limit."""
LEAST = 1e-10
"""The least damping μ². With it, joints that move no target stay where they are, up to rounding."""
STILL = 1e-6
"""Length of a step [rad, m] below which a configuration has settled at its posture."""


# ---- one frame and its target -------------------------------------------------------------------


class Residual(NamedTuple):
    """The error e of a frame, which is the motion from the frame to its target."""

    W: ArticulatedInertia
    """The weight, in the axes of the frame."""
    f: Force
    """The force We, in the axes of the frame."""
    energy: Scalar
    """½ e*We."""
    position: Scalar
    """|e| of the linear rows that count [m]."""
    rotation: Scalar
    """|e| of the angular rows that count [rad]."""


def residual(X: Transform, target: Transform, rows: Rows, w: Annotated[Array, "6"]) -> Residual:
    """The residual of a frame at X in the rows [angular; linear] that count, with their weights w.

    The linear part e = R*(p' − p) has the axes of the frame and turns with them:
    ė = −(v + ω × e), the velocity of the frame's point at the target. If all three linear rows
    count with equal weights, the step is the same as in axes at rest, where ė = −v.
    """
    ahead, on = X.relative(target), np.array(rows, float)
    turn, B = _turn(ahead.rotation, rows[:3]) if any(rows[:3]) else (rot.zero(), rot.identity())
    step = on[3:] * ahead.position
    A, L = (rot.scalars(np.diag(np.ones(3))) * (on[i] * w[i]) for i in (np.s_[:3], np.s_[3:]))
    pull = L @ step
    zero = rot.scalars(np.zeros((3, 3)))
    there = rot.zero() if all(rows[3:]) else ahead.position
    W = ArticulatedInertia(zero, zero, L).shifted(there)
    W = W + ArticulatedInertia(rot.symmetric_product(B.T @ A, B), zero, zero)
    f = Force(B.T @ (A @ turn) + rot.cross(there, pull), pull)
    return Residual(W, f, 0.5 * (turn @ (A @ turn) + step @ pull), _norm(step), _norm(turn))


def _turn(R: Annotated[Array, "3 3"], rows: Rows) -> tuple[Vector3, Annotated[Array, "3 3"]]:
    """The rotation vector e to the target, and the matrix B with ė = −Bω, where R has the axes of
    the target in those of the frame.

    If three rows count, e = log R; if one, e is its component of that. If two rows count, the axis
    of the third is brought to that of the target: e is the shortest rotation that does it, or, if
    this is half a turn, one of the shortest.
    """
    unit = rot.identity()
    if sum(rows) == 3:
        return rot.log(rot.quaternion_of(R)), unit
    if sum(rows) == 1:
        e = rot.log(rot.quaternion_of(R))
        return np.array(rows, float) * e, np.stack([rot.log_translation(e, u) for u in unit], 1)
    i, j = rows.index(False), rows.index(True)
    along, across = R[i, i], rot.cross(unit[i], R[:, i])
    s2 = across @ across
    small = s2 < 1e-24
    s = np.sqrt(np.where(small, 1.0, s2))
    e = across * np.where(small, 1.0, np.arctan2(s, along) / s)
    return e + unit[j] * np.where(np.logical_and(small, along < 0.0), np.pi, 0.0), unit


def _norm(x: Array) -> Scalar:
    """The Euclidean length of a vector."""
    return np.sqrt(x @ x)


def chain_length(k: Record, parent: Record) -> dict[str, Any]:
    """Length of the links from the world to the body"""
    return {"length": parent.length + _norm(k.hinge.placement.position)}


def frame_load(k: Record) -> dict[str, Any]:
    """The force on a body from its targets"""
    return {"load": k.f_ext}


def accumulate(k: Record, children: Children) -> dict[str, Any]:
    """E = own + Σ E, repeated for each freedom"""
    total = children.sum(lambda c: c.total, k.own)
    return {"total": total, "each": total * np.ones(len(k.x))}


def sum_outboard(x: Forest, values: Mapping[str, Scalar | float]) -> JointVector:
    """For each freedom the sum of the values of the frames that it moves, (nv,)."""
    own: list[Scalar | float] = [0.0] * x.robot.nb
    for name, value in values.items():
        i = x.robot.body_index(x.robot.frame(name).body)
        own[i] = own[i] + value
    return gather(inward(accumulate, x.holding(own=own)), "each")


def velocity(k: Record, parent: Record) -> dict[str, Any]:
    """V = φ*V_p + H*v"""
    return {"V": k.phi.T @ parent.V + k.H.T @ k.v}


# ---- the iteration ------------------------------------------------------------------------------


class Descent(NamedTuple):
    """The configurations that iterations have led to, one for each row of a batch."""

    q: Configuration
    """(…, nq): configurations."""
    iterations: Scalar
    """(…): how many steps were taken."""
    arrived: Scalar
    """(…): 1 if all errors are within the tolerance, else 0."""
    settled: Scalar
    """(…): 1 if it has arrived and further steps would not move it, else 0."""
    energy: Scalar
    """(…): E = Σ ½ e*We of all frames."""
    position: Annotated[Array, "nf"]
    """(…, nf): |e| in position of each frame [m]."""
    rotation: Annotated[Array, "nf"]
    """(…, nf): |e| in rotation of each frame [rad]."""

    def rows(self, at: Array) -> Descent:
        """The rows of the batch with the numbers `at`, or where the mask `at` is true."""
        return Descent(*(x[at] for x in self))

    def put(self, at: Array, other: Descent) -> None:
        """Replace the rows `at` by those of `other`, which continue them: iterations add up."""
        total = self.iterations[at] + other.iterations
        for x, y in zip(self, other._replace(iterations=total), strict=True):
            x[at] = y

    def keep(self, at: Array, other: Descent) -> None:
        """`put` the rows of `other` that have arrived or have less energy than the rows `at`; of
        the others only the iterations are added."""
        better = (other.arrived > 0.0) | (other.energy < self.energy[at])
        self.put(at[better], other.rows(better))
        self.iterations[at[~better]] += other.iterations[~better]


Carry = tuple[Configuration, Scalar, Scalar]
"""What one iteration hands to the next: q, the number of steps, whether it has settled."""
Residuals = Mapping[Task, Residual]


@program(static=("tasks",), joint_space=True)
def descend(
    robot: Robot,
    q: ConfigurationLike,
    targets: Annotated[Array, "12nf"],
    settings: Annotated[Array, "4"],
    tasks: Tasks,
    count: int,
    limits: bool,
    *,
    weights: Annotated[Array, "6nf"] | None = None,
    posture: ConfigurationLike | None = None,
) -> Descent:
    """Damped Newton steps δ = (Σ J*WJ + μ²)⁻¹ Σ J*We from q, within the limits.

    μ² = damping · E + ε for each freedom, with E = Σ ½ e*We of the frames that it moves (Sugihara
    2011): far from the targets the step is along the gradient, near them it is a Newton step
    ([SOA] 2). A posture q_rest is approached by δ₀ = q_rest − q, shortened to `stride`, as far as
    the targets allow: δ = δ₀ + (Σ J*WJ + μ²)⁻¹ Σ J*W(e − Jδ₀). Lengths are measured in units of
    the robot's own length. Cost O(N) a step.

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration to start from.
    targets : (…, 12 nf)
        Of each frame one after the other the rotation row by row and the position.
    settings : (…, 4)
        Tolerance, damping, `most` (the steps after which a row stops) and `stride` (the longest
        step toward the posture).
    tasks
        The frames and their rows that count.
    count
        Steps of the loop; rows that have arrived, or have made `most` steps, stay where they are.
    limits
        Whether joints stay within their limits.
    weights : (…, 6 nf), optional
        Weights of the rows of each frame. Default: one.
    posture : (…, nq), optional
        Configuration that is approached where the targets leave freedom.

    Returns
    -------
    Descent
        The configurations at the end, with their errors.
    """
    tolerance, damping, most, stride = settings
    goals = [Transform(x[:9].reshape(3, 3), x[9:]) for x in targets.reshape(-1, 12)]
    w = np.ones(6 * len(tasks)) if weights is None else weights
    w = w.reshape(-1, 6) * np.append(np.ones(3), np.full(3, 1.0 / _length(robot, q, tasks) ** 2))
    low, high = (robot.joint_data(x) if limits else None for x in ("lower", "upper"))

    def allowed(q: ConfigurationLike) -> Configuration:
        """q with unit quaternions, within the limits"""
        return np.clip(robot.integrate(q, np.zeros(robot.nv)), low, high)

    rest = None if posture is None else allowed(posture)

    def residuals_at(x: Forest) -> list[Residual]:
        """The residual of each task, from the poses of the bodies."""
        rows = zip(tasks, goals, w, strict=True)
        return [residual(frame_of(x, name), goal, on, own) for (name, on), goal, own in rows]

    def step(carry: Carry, _: Scalar) -> tuple[Carry, Array]:
        """One iteration: the new configuration, the number of steps, whether it has settled."""
        q, n, _ = carry
        x = posed(forest(robot, q, x=np.zeros(robot.nv)))
        residuals = residuals_at(x)
        toward = None if rest is None else _shortened(robot.difference(q, rest), stride)
        delta = _step(x, q, dict(zip(tasks, residuals, strict=True)), toward, damping, limits)
        settled = _arrived(residuals, tolerance)
        if posture is not None:
            settled = np.logical_and(settled, delta @ delta <= STILL * STILL)
        stays = np.logical_or(settled, n >= most)
        new = np.clip(robot.integrate(q, delta), low, high)
        return (np.where(stays, q, new), n + np.where(stays, 0.0, 1.0), 1.0 * settled), np.zeros(0)

    (end, n, settled), _ = repeat(count, step, (allowed(q), np.zeros(()), np.zeros(())))
    residuals = residuals_at(posed(forest(robot, end)))
    arrived = 1.0 * _arrived(residuals, tolerance)
    return Descent(
        end, n, arrived, arrived if posture is None else arrived * settled,
        sum((m.energy for m in residuals), np.zeros(())),
        np.array([m.position for m in residuals], object),
        np.array([m.rotation for m in residuals], object),
    )  # fmt: skip


def _step(
    x: Forest,
    q: Configuration,
    residuals: Residuals,
    toward: JointVector | None,
    damping: Scalar,
    limits: bool,
) -> JointVector:
    """The step δ that reduces the residuals, or goes `toward` a posture besides.

    With limits, a joint at its limit is held there if its residual force points beyond it, or, with
    a posture, if the step without limits would lead beyond it.
    """
    robot, pulls = x.robot, {name: m.f.array for (name, _), m in residuals.items()}
    A = damping * sum_outboard(x, {name: m.energy for (name, _), m in residuals.items()}) + LEAST
    if toward is not None:
        free = _step_toward(x, residuals, toward, A)
        if not limits:
            return free
        held = _at_limits(robot, q, free)
        return _step_toward(x, residuals, toward * (1.0 - held), A + HELD * held)
    x = x.carrying(f_ext=external_forces(robot, pulls))
    if limits:
        A = A + HELD * _at_limits(robot, q, gather(inward(collect, local(frame_load, x)), "T"))
    return _solve(x, residuals, A)


def _step_toward(
    x: Forest, residuals: Residuals, toward: JointVector, A: JointVector
) -> JointVector:
    """δ₀ + (Σ J*WJ + A)⁻¹ Σ J*W(e − Jδ₀), δ₀ the step `toward` a posture."""
    x = outward(velocity, x.given(v=toward), V=Motion.zero())
    pulls = {name: (m.f - m.W @ motion_of(x, name)).array for (name, _), m in residuals.items()}
    return toward + _solve(x.carrying(f_ext=external_forces(x.robot, pulls)), residuals, A)


def _solve(x: Forest, residuals: Residuals, A: JointVector) -> JointVector:
    """(Σ J*WJ + A)⁻¹ Σ J*f, where the bodies have f_ext = f."""
    weights = weights_on_bodies(x.robot, {name: m.W for (name, _), m in residuals.items()})
    return weighted_solve(x.given(A=A).holding(M=weights))


def _shortened(step: JointVector, stride: Scalar) -> JointVector:
    """The step, shortened to the length `stride` if it is longer."""
    return step * (stride / np.maximum(stride, _norm(step)))


def _at_limits(robot: Robot, q: Configuration, direction: JointVector) -> JointVector:
    """One for each freedom at a limit whose direction points beyond it, zero for the others."""
    low, high = robot.joint_data("lower"), robot.joint_data("upper")
    out = np.full(robot.nv, 0.0, object)
    for i, j in enumerate(robot.rates):
        if j >= 0 and (isfinite(low[j]) or isfinite(high[j])):
            down = np.logical_and(q[j] <= low[j], direction[i] < 0.0)
            up = np.logical_and(q[j] >= high[j], direction[i] > 0.0)
            out[i] = 1.0 * np.logical_or(down, up)
    return out


def _length(robot: Robot, q: ConfigurationLike, tasks: Tasks) -> Scalar:
    """The longest of the paths along links from the world to the frames [m]; 1 m if that is 0."""
    x, longest = outward(chain_length, forest(robot, q), length=0.0), 0.0
    for name, _ in tasks:
        frame = robot.frame(name)
        longest = np.maximum(longest, x.body(frame.body).length + _norm(frame.placement.position))
    return np.where(longest > 1e-9, longest, 1.0)


def _arrived(residuals: Sequence[Residual], tolerance: Scalar) -> Scalar:
    """Whether every error is within the tolerance."""
    worst = 0.0
    for m in residuals:
        worst = np.maximum(worst, np.maximum(m.position, m.rotation))
    return worst <= tolerance
