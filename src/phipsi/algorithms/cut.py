"""Closures as cut joints, and whitened forces at frames, for the dynamics of closed chains."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms.kinematics import frame_of, posed
from phipsi.model import Closure, ModelError, Robot
from phipsi.operators import B, D, H, I, J, K, a, beta, phi, psi
from phipsi.operators.lowering.compute import compute
from phipsi.operators.lowering.steps import riccati
from phipsi.spatial import Force, ForceBasis, Motion, Transform
from phipsi.sweeps import Children, force_bases, forest, gather, inward, local, total

W = I - H @ psi @ K
"""What whitens joint forces: κ = W T, 𝓜⁻¹ = W*D⁻¹W."""


class Cut(NamedTuple):
    """Closures, cut open: row by row what they transmit, and how they move."""

    frames: tuple[str, ...]
    first: tuple[str, ...]
    """Closure by closure its frame a."""
    across: list[Transform]
    """Closure by closure the pose of its frame a in its frame b."""
    Q: list[ForceBasis]
    """Closure by closure the unit forces on its frame a."""
    N: Any
    """(6 frames, m): the unit forces of the closures at the frames, N*V = Q*Δ."""
    rate: Any
    """Q*Δ: the velocity across, zero while closed."""
    bias: Any
    """Q*(ad(V)Δ + Ḣ*β) less what the frames do at β̇ = 0: the bias of N*Jβ̇."""
    error: Any
    """Q*e: how far they are open."""

    def wanted(self, g: Any) -> Any:
        """The acceleration N*Jβ̇ that keeps them closed; Baumgarte's rate g brings them there."""
        return self.bias if g is None else self.bias - 2.0 * g * self.rate - g * g * self.error

    @property
    def parts(self) -> list[slice]:
        """Closure by closure its rows."""
        ends = np.cumsum([0, *(len(Q.columns) for Q in self.Q)]).tolist()
        return [slice(i, j) for i, j in pairwise(ends)]

    def forces(self, lam: Any) -> list[Force]:
        """Qλ, the force on frame a of each closure."""
        return [Q @ lam[rows] for Q, rows in zip(self.Q, self.parts, strict=True)]


def cut(robot: Robot, closures: Sequence[Closure], q: Any, v: Any) -> Cut:
    """The closures at a state, cut open."""
    frames = tuple(dict.fromkeys(name for c in closures for name in (c.a, c.b)))
    x = posed(forest(robot, q))
    X = {name: frame_of(x, name) for name in frames}
    V = _motions(frames, compute(J(*frames) @ beta, robot, q, v))
    drift = _motions(frames, compute(B(*frames).T @ phi.T @ a, robot, q, v))
    Q, columns, rate, bias, error = [], [], [], [], []
    between = [X[c.b].relative(X[c.a]) for c in closures]
    for c, across in zip(closures, between, strict=True):
        Delta = V[c.a] - across.T @ V[c.b]
        wanted = c.coriolis(across, V[c.a], Delta) - (drift[c.a] - across.T @ drift[c.b])
        Q.append(ForceBasis(c.forces(across)))
        for f in Q[-1].columns:
            column = np.full((len(frames), 6), 0.0, object)
            column[frames.index(c.a)] += f.array
            column[frames.index(c.b)] -= (across @ f).array
            columns.append(column.reshape(-1))
            rate.append(Delta.dot(f))
            bias.append(wanted.dot(f))
            error.append(c.error(across).dot(f))
    first = tuple(c.a for c in closures)
    return Cut(
        frames, first, between, Q, np.stack(columns, axis=1), *map(np.array, (rate, bias, error))
    )


def _motions(frames: tuple[str, ...], rows: Any) -> dict[str, Motion]:
    return {f: Motion.of(row) for f, row in zip(frames, rows.reshape(-1, 6), strict=True)}


def wrenches(forces: Sequence[Force]) -> Any:
    """(closures, 6): forces as rows."""
    return np.stack([f.array for f in forces])


def innovate(k: Any, children: Children) -> dict[str, Any]:
    """z = F + Σ φz⁺,  e = Hz,  z⁺ = z − Ge:  e = HψF = WHφF   [SOA] Lemma 5.1"""
    z = children.sum(lambda c: c.phi @ c.z_plus, k.F)
    e = k.H @ z
    return {"e": e, "z_plus": z - ForceBasis(tuple(k.G @ column for column in e.T))}


class Whitened:
    """Unit forces N (6 frames, m) at frames as the joints see them, whitened: e = WJ*N."""

    def __init__(self, robot: Robot, q: Any, frames: tuple[str, ...], N: Any) -> None:
        self.size = N.shape[1]
        x = inward(riccati, forest(robot, q)).holding(F=force_bases(robot, frames, N))
        self.x = inward(innovate, x)

    @property
    def gram(self) -> Any:
        """L = e*D⁻¹e = N*J𝓜⁻¹J*N (m, m), symmetric by construction."""

        def share(k: Any) -> dict[str, Any]:
            """e*D⁻¹e"""
            return {"L": k.D.congruence(k.e)}

        return total(local(share, self.x), "L", np.zeros((self.size, self.size), object))

    def against(self, epsilon: Any) -> Any:
        """e*D⁻¹ε (m,): what the frames do along N by the innovations ε of other joint forces."""

        def share(k: Any) -> dict[str, Any]:
            """e*D⁻¹ε"""
            return {"w": k.e.T @ k.D.solve(k.epsilon)}

        return total(local(share, self.x.given(epsilon=epsilon)), "w", np.zeros(self.size, object))

    def innovations(self, lam: Any) -> Any:
        """eλ (nv,)."""

        def summed(k: Any) -> dict[str, Any]:
            """eλ"""
            return {"sum": k.e @ lam}

        return gather(local(summed, self.x), "sum")


def response(robot: Robot, q: Any, epsilon: Any) -> Any:
    """W*D⁻¹ε: the joint accelerations, or jumps, by forces with the innovations ε."""
    return compute(W.T @ D.inv, robot, q, x=epsilon)


def check_closures(robot: Robot, closures: Sequence[Closure], kind: type[Closure]) -> None:
    """Refuse what are no closures of that kind, or none that can close."""
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
