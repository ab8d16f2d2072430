"""Closures as cut joints, and whitened forces at frames, for the dynamics of closed chains."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import numpy as np

from phipsi.algorithms.kinematics import frame_of, posed
from phipsi.model import Closure, ModelError, Robot
from phipsi.operators import B, D, H, I, J, K, a, beta, phi, psi
from phipsi.operators.lowering.compute import compute
from phipsi.operators.lowering.steps import riccati
from phipsi.spatial import Force, ForceBasis, Motion, Transform
from phipsi.sweeps import Children, Record, force_bases, forest, gather, inward, local, total
from phipsi.typing import (
    Array,
    ConfigurationLike,
    JointVector,
    JointVectorLike,
    Real,
    ScalarLike,
)

W = I - H @ psi @ K
"""The whitening operator: κ = W T are the innovations of joint forces T, and 𝓜⁻¹ = W*D⁻¹W."""

Rows = Annotated[Array, "m"]
"""A number for each row: each unit force that a closure transmits, closure after closure."""


class Cut(NamedTuple):
    """Closures cut open at a state: the unit forces that they transmit, and the motion across.

    The closures have m rows in all, one for each unit force that one of them transmits.
    """

    frames: tuple[str, ...]
    """The names of all frames of the closures, each once."""
    first: tuple[str, ...]
    """For each closure the name of its frame a."""
    across: list[Transform]
    """For each closure the pose of its frame a in its frame b."""
    Q: list[ForceBasis]
    """For each closure the unit forces on its frame a, in the axes of a."""
    N: Annotated[Array, "n m"]
    """(6 frames, m): the unit forces of the closures at the frames, N*V = Q*Δ."""
    rate: Rows
    """(m,) [rad/s, m/s]: Q*Δ, the relative velocity across each closure, zero while closed."""
    bias: Rows
    """(m,) [rad/s², m/s²]: Q*(ad(V)Δ + Ḣ*β) less the acceleration of the frames at β̇ = 0; this is
    the value of N*Jβ̇ that keeps the rates zero."""
    error: Rows
    """(m,) [rad, m]: Q*e, the displacement across each closure, zero while closed."""

    def wanted(self, g: ScalarLike | None) -> Rows:
        """The N*Jβ̇ that keeps the closures closed; Baumgarte's rate g [1/s] corrects errors."""
        if g is None:
            return self.bias
        g = np.asanyarray(g)
        return self.bias - 2.0 * g * self.rate - g * g * self.error

    @property
    def parts(self) -> list[slice]:
        """For each closure the slice of its rows."""
        ends = np.cumsum([0, *(len(Q.columns) for Q in self.Q)]).tolist()
        return [slice(i, j) for i, j in pairwise(ends)]

    def forces(self, lam: Rows) -> list[Force]:
        """Qλ, the force on frame a of each closure, in the axes of a."""
        return [Q @ lam[rows] for Q, rows in zip(self.Q, self.parts, strict=True)]


def cut(robot: Robot, closures: Sequence[Closure], q: ConfigurationLike, v: JointVectorLike) -> Cut:
    """The closures at a state (q, v), cut open."""
    frames = tuple(dict.fromkeys(name for c in closures for name in (c.a, c.b)))
    x = posed(forest(robot, q))
    X = {name: frame_of(x, name) for name in frames}
    V = _motions(frames, compute(J(*frames) @ beta, robot, q, v))
    drift = _motions(frames, compute(B(*frames).T @ phi.T @ a, robot, q, v))
    Q: list[ForceBasis] = []
    columns: list[Array] = []
    rate: list[Real] = []
    bias: list[Real] = []
    error: list[Real] = []
    across = [X[c.b].relative(X[c.a]) for c in closures]
    for c, pose in zip(closures, across, strict=True):
        Delta = V[c.a] - pose.T @ V[c.b]
        wanted = c.coriolis(pose, V[c.a], Delta) - (drift[c.a] - pose.T @ drift[c.b])
        Q.append(ForceBasis(c.forces(pose)))
        for f in Q[-1].columns:
            column = np.full((len(frames), 6), 0.0, object)
            column[frames.index(c.a)] += f.array
            column[frames.index(c.b)] -= (pose @ f).array
            columns.append(column.reshape(-1))
            rate.append(Delta.dot(f))
            bias.append(wanted.dot(f))
            error.append(c.error(pose).dot(f))
    first = tuple(c.a for c in closures)
    return Cut(
        frames, first, across, Q, np.stack(columns, axis=1), *map(np.array, (rate, bias, error))
    )


def _motions(frames: tuple[str, ...], rows: Array) -> dict[str, Motion]:
    """The motion of each frame by name, from rows (6 frames,)."""
    return {f: Motion.of(row) for f, row in zip(frames, rows.reshape(-1, 6), strict=True)}


def wrenches(forces: Sequence[Force]) -> Annotated[Array, "closures 6"]:
    """The forces as rows of an array."""
    return np.stack([f.array for f in forces])


def innovate(k: Record, children: Children) -> dict[str, Any]:
    """z = F + Σ φz⁺,  e = Hz,  z⁺ = z − Ge:  e = HψF = WHφF   [SOA] Lemma 5.1"""
    z = children.sum(lambda c: c.phi @ c.z_plus, k.F)
    e = k.H @ z
    return {"e": e, "z_plus": z - ForceBasis(tuple(k.G @ column for column in e.T))}


class Whitened:
    """The innovations e = WJ*N (nv, m) of unit forces N (6 frames, m) at frames."""

    def __init__(
        self,
        robot: Robot,
        q: ConfigurationLike,
        frames: tuple[str, ...],
        N: Annotated[Array, "n m"],
    ) -> None:
        self.size = N.shape[1]
        x = inward(riccati, forest(robot, q)).holding(F=force_bases(robot, frames, N))
        self.x = inward(innovate, x)

    @property
    def gram(self) -> Annotated[Array, "m m"]:
        """L = e*D⁻¹e = N*J𝓜⁻¹J*N, symmetric by construction."""

        def share(k: Record) -> dict[str, Any]:
            """e*D⁻¹e"""
            return {"L": k.D.congruence(k.e)}

        return total(local(share, self.x), "L", np.zeros((self.size, self.size), object))

    def against(self, epsilon: JointVector) -> Rows:
        """e*D⁻¹ε: the acceleration of the frames along N by joint forces with the innovations ε."""

        def share(k: Record) -> dict[str, Any]:
            """e*D⁻¹ε"""
            return {"w": k.e.T @ k.D.solve(k.epsilon)}

        return total(local(share, self.x.given(epsilon=epsilon)), "w", np.zeros(self.size, object))

    def innovations(self, lam: Rows) -> JointVector:
        """eλ: the innovations of the forces Nλ."""

        def summed(k: Record) -> dict[str, Any]:
            """eλ"""
            return {"sum": k.e @ lam}

        return gather(local(summed, self.x), "sum")


def response(robot: Robot, q: ConfigurationLike, epsilon: JointVector) -> JointVector:
    """W*D⁻¹ε: the joint accelerations by forces with the innovations ε, or the jumps of the joint
    velocities by such impulses."""
    return compute(W.T @ D.inv, robot, q, x=epsilon)


def check_closures(robot: Robot, closures: Sequence[Closure], kind: type[Closure]) -> None:
    """Raise unless `closures` is a list of at least one closure of that kind, each of which joins
    two bodies."""
    what = kind.__name__
    if not isinstance(closures, (list, tuple)) or not closures:
        raise TypeError(f"needs a list of at least one {what}, [pp.{what}(…)], got {closures!r}")
    for c in closures:
        if not isinstance(c, kind):
            raise TypeError(f"needs a list of {what}s, got {type(c).__name__} in it")
        bodies = {robot.frame(name).body for name in (c.a, c.b)}
        if len(bodies) == 1:
            raise ModelError(
                f"robot {robot.name!r}: frames {c.a!r} and {c.b!r} are both fixed to "
                f"{bodies.pop()!r}, so nothing can close between them"
            )
