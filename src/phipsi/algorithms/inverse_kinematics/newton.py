"""The iteration of inverse kinematics: damped Newton steps, each a Gram solve in O(N)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms.inverse_kinematics.problem import Tasks
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
from phipsi.sweeps import Children, Forest, external_forces, forest, gather, inward, local, outward

HELD = 1e12
"""Armature of a joint that is held at its limit."""
LEAST = 1e-10
"""The least damping μ²: what no target asks to move then moves by rounding alone."""
STILL = 1e-6
"""Length of a step [rad, m] below which a posture has settled."""


# ---- one frame and its target -------------------------------------------------------------------


class Residual(NamedTuple):
    """The error e of a frame, the motion to its target: the weight W and the force f = We, both in
    the axes of the frame; the energy ½ e*We, |e| in position [m] and rotation [rad]."""

    W: ArticulatedInertia
    f: Force
    energy: Any
    position: Any
    rotation: Any


def residual(X: Transform, target: Transform, rows: Sequence[bool], w: Any) -> Residual:
    """The residual of a frame at X in the rows [angular; linear] that count, with their weights w.

    The linear part is e = R*(p' − p), and moves with the turning frame: ė = −(v + ω × e) is that of
    the frame's point at the target. If all its rows count alike that is the same as in axes at
    rest, where ė = −v.
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


def _turn(R: Any, rows: Sequence[bool]) -> tuple[Any, Any]:
    """The rotation vector e still to make, R the target's axes in the frame's, and B, ė = −Bω.

    Of three rows e = log R, of one its component. Two rows point the axis of the third to the
    target's: e is the shortest turn there, any one if it is half a turn.
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


def _norm(x: Any) -> Any:
    return np.sqrt(x @ x)


def chain_length(k: Any, parent: Any) -> dict[str, Any]:
    """Length of the links from the world to the body"""
    return {"length": parent.length + _norm(k.hinge.placement.position)}


def frame_load(k: Any) -> dict[str, Any]:
    """The force on a body from its targets"""
    return {"load": k.f_ext}


def accumulate(k: Any, children: Children) -> dict[str, Any]:
    """E = own + Σ E, repeated for each freedom"""
    total = children.sum(lambda c: c.total, k.own)
    return {"total": total, "each": total * np.ones(len(k.x))}


def sum_outboard(x: Forest, values: Mapping[str, Any]) -> Any:
    """For each freedom the sum of the values of the frames that it moves, (nv,)."""
    own: list[Any] = [0.0] * x.robot.nb
    for name, value in values.items():
        i = x.robot.body_index(x.robot.frame(name).body)
        own[i] = own[i] + value
    return gather(inward(accumulate, x.holding(own=own)), "each")


def velocity(k: Any, parent: Any) -> dict[str, Any]:
    """V = φ*V_p + H*v"""
    return {"V": k.phi.T @ parent.V + k.H.T @ k.v}


# ---- the iteration ------------------------------------------------------------------------------


class Descent(NamedTuple):
    """Where iterations have led: q (…, nq), how many it took, whether it is within the tolerance,
    whether it stays there, E = Σ ½ e*We, and |e| in position and rotation of each frame (…, nf)."""

    q: Any
    iterations: Any
    arrived: Any
    settled: Any
    energy: Any
    position: Any
    rotation: Any

    def rows(self, at: Any) -> Descent:
        """Some rows of it."""
        return Descent(*(x[at] for x in self))

    def put(self, at: Any, other: Descent) -> None:
        """Go on at some rows with what is given for them; iterations add up."""
        total = self.iterations[at] + other.iterations
        for x, y in zip(self, other._replace(iterations=total), strict=True):
            x[at] = y

    def keep(self, at: Any, other: Descent) -> None:
        """`put` it where it arrives or is closer; count its iterations elsewhere."""
        better = (other.arrived > 0.0) | (other.energy < self.energy[at])
        self.put(at[better], other.rows(better))
        self.iterations[at[~better]] += other.iterations[~better]


@program(shapes={"posture": ("nq",), "settings": (4,)}, static=("tasks",), joint_space=True)
def descend(
    robot: Robot, q: Any, targets: Any, settings: Any, tasks: Tasks, count: int, limits: bool, *,
    weights: Any = None, posture: Any = None,
) -> Descent:  # fmt: skip
    """`count` steps δ = (Σ J*WJ + μ²)⁻¹ Σ J*We, of which at most `most`, from q within the limits.

    μ² = damping · E + ε for each freedom, E = Σ ½ e*We of the frames that it moves (Sugihara 2011):
    far from the targets a step along the gradient, near them one of Newton ([SOA] 2). A posture is
    sought by δ₀ = q_rest − q, no longer than `stride`: δ = δ₀ + (Σ J*WJ + μ²)⁻¹ Σ J*W(e − Jδ₀).
    Rows that have arrived stay. Targets are (…, 12 nf), rotation by rows and position of each;
    settings (…, 4) are tolerance, damping, `most` and `stride`; weights (…, 6 nf). Metres count as
    parts of the robot's length. Cost O(N) a step.
    """
    tolerance, damping, most, stride = settings
    goals = [Transform(x[:9].reshape(3, 3), x[9:]) for x in targets.reshape(-1, 12)]
    w = np.ones(6 * len(tasks)) if weights is None else weights
    w = w.reshape(-1, 6) * np.append(np.ones(3), np.full(3, 1.0 / _length(robot, q, tasks) ** 2))
    low, high = (robot.joint_data(x) if limits else None for x in ("lower", "upper"))

    def allowed(q: Any) -> Any:
        """q with unit quaternions, within the limits"""
        return np.clip(robot.integrate(q, np.zeros(robot.nv)), low, high)

    rest = None if posture is None else allowed(posture)

    def residuals_at(x: Forest) -> list[Residual]:
        rows = zip(tasks, goals, w, strict=True)
        return [residual(frame_of(x, name), goal, on, own) for (name, on), goal, own in rows]

    def step(carry: Any, _: Any) -> Any:
        q, n, _ = carry
        x = posed(forest(robot, q, x=np.zeros(robot.nv)))
        residuals = residuals_at(x)
        wish = None if rest is None else _bounded(robot.difference(q, rest), stride)
        delta = _step(x, q, dict(zip(tasks, residuals, strict=True)), wish, damping, limits)
        settled = _arrived(residuals, tolerance)
        if posture is not None:
            settled = np.logical_and(settled, delta @ delta <= STILL * STILL)
        stays = np.logical_or(settled, n >= most)
        new = np.clip(robot.integrate(q, delta), low, high)
        return (np.where(stays, q, new), n + np.where(stays, 0.0, 1.0), 1.0 * settled), np.zeros(0)

    (q, n, settled), _ = repeat(count, step, (allowed(q), np.zeros(()), np.zeros(())))
    residuals = residuals_at(posed(forest(robot, q)))
    arrived = 1.0 * _arrived(residuals, tolerance)
    return Descent(
        q, n, arrived, arrived if posture is None else arrived * settled,
        sum(m.energy for m in residuals),
        np.array([m.position for m in residuals], object),
        np.array([m.rotation for m in residuals], object),
    )  # fmt: skip


def _step(x: Forest, q: Any, tasks: Any, wish: Any, damping: Any, limits: bool) -> Any:
    """δ from the residuals of the tasks; joints at a limit that are pulled outward, or that go
    there on the way to a posture, are held there."""
    robot, pulls = x.robot, {name: m.f.array for (name, _), m in tasks.items()}
    A = damping * sum_outboard(x, {name: m.energy for (name, _), m in tasks.items()}) + LEAST
    if wish is not None:
        free = _toward(x, tasks, wish, A)
        if not limits:
            return free
        held = _held(robot, q, free)
        return _toward(x, tasks, wish * (1.0 - held), A + HELD * held)
    x = x.carrying(f_ext=external_forces(robot, pulls))
    if limits:
        A = A + HELD * _held(robot, q, gather(inward(collect, local(frame_load, x)), "T"))
    return _solved(x, tasks, A)


def _toward(x: Forest, tasks: Any, wish: Any, A: Any) -> Any:
    """δ₀ + (Σ J*WJ + A)⁻¹ Σ J*W(e − Jδ₀)"""
    x = outward(velocity, x.given(v=wish), V=Motion.zero())
    pulls = {name: (m.f - m.W @ motion_of(x, name)).array for (name, _), m in tasks.items()}
    return wish + _solved(x.carrying(f_ext=external_forces(x.robot, pulls)), tasks, A)


def _solved(x: Forest, tasks: Any, A: Any) -> Any:
    """(Σ J*WJ + A)⁻¹ Σ J*f"""
    weights = weights_on_bodies(x.robot, {name: m.W for (name, _), m in tasks.items()})
    return weighted_solve(x.given(A=A).holding(M=weights))


def _bounded(wish: Any, stride: Any) -> Any:
    """A step toward the posture, no longer than that."""
    return wish * (stride / np.maximum(stride, _norm(wish)))


def _held(robot: Robot, q: Any, g: Any) -> Any:
    """One for every freedom that stands at a limit and is led outward by g, zero for others."""
    low, high = robot.joint_data("lower"), robot.joint_data("upper")
    out = np.full(robot.nv, 0.0, object)
    for i, j in enumerate(robot.rates):
        if j >= 0 and (isfinite(low[j]) or isfinite(high[j])):
            down = np.logical_and(q[j] <= low[j], g[i] < 0.0)
            up = np.logical_and(q[j] >= high[j], g[i] > 0.0)
            out[i] = 1.0 * np.logical_or(down, up)
    return out


def _length(robot: Robot, q: Any, tasks: Tasks) -> Any:
    """The longest way along links from the world to one of the frames [m]; 1 m if it has none."""
    x, longest = outward(chain_length, forest(robot, q), length=0.0), 0.0
    for name, _ in tasks:
        frame = robot.frame(name)
        longest = np.maximum(longest, x.body(frame.body).length + _norm(frame.placement.position))
    return np.where(longest > 1e-9, longest, 1.0)


def _arrived(residuals: Sequence[Residual], tolerance: Any) -> Any:
    """Is every error within the tolerance?"""
    worst = 0.0
    for m in residuals:
        worst = np.maximum(worst, np.maximum(m.position, m.rotation))
    return worst <= tolerance
