"""Equivalent robots: another description with the same joint-space dynamics, cheaper to trace.

Body i gets a new frame, C_i = (A_i, A_i t_i) its pose in the old one, such that the motion of its
hinge commutes with it: T(q) C_i = C_i T'(q), T' about the z-axis. The placement L_i of the hinge on
its parent p becomes C_p⁻¹ L_i C_i, and what is left free in C makes that sparse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from phipsi.model.description import R, RobotDescription
from phipsi.model.parts import Body, Frame, Hinge
from phipsi.spatial import SpatialInertia, Transform
from phipsi.spatial import rotation as rot

FLAT = 2e-15
"""Sines below this are zero: entries of rotations, angles of parallel axes."""
ROUNDING = 1e-15
"""Lengths below this [m], or this part of those they are made of, are zero."""
REACH = 2.0
"""An origin slides at most so many link lengths: nearly parallel axes meet far away."""
MOVES = 16
"""Inertia moves at most so many hinges inwards: each adds to what the recursions must cancel."""

AXIAL = ("revolute", "continuous", "prismatic", "helical", "cylindrical")
"""Kinds whose child frame may turn about its axis."""
TURNED = (*AXIAL, "planar")
"""Kinds that get the axis z, and whose child frame may slide along it."""
_SPANS = {"revolute": "zm", "continuous": "zm", "prismatic": "xyz", "helical": "z",
          "cylindrical": "z", "planar": "z", "universal": "m", "spherical": "m"}  # fmt: skip
UNFELT = {
    kind: np.array([[a in span and b in span for a in "xyzm"] for b in "xyzm"])
    for kind, span in _SPANS.items()
}
"""Which entries X of the pseudo-inertia Π = [[Σ, h], [h*, m]], Σ = ½ tr(J) I − J, a hinge with axis
z cannot feel: X H* = 0 and φXφ* does not depend on q. They may as well belong to the parent."""

_NUMBERS = {float, int, np.float64, np.float32}
_FREE = np.zeros(3)
_X, _Y, _Z = _UNIT = [rot.vector(*row) for row in np.eye(3).tolist()]
for _axis in _UNIT:
    _axis.flags.writeable = False


def equivalent(robot: R) -> R:
    """The same robot in joint space, described with more zeros: fewer operations when traced.

    Same q, v and tau, same 𝓜, bias, gravity and external forces, same frames by name. But the
    inertias are no longer those of the bodies, and the body frames are others.

    - Frames are turned (Denavit, Hartenberg): z is the axis of the hinge, x the common normal with
      the axis of the main child, which so hangs on R_x(b) R_z(c). Where the frame gives v its
      meaning (free, spherical, universal, planar) it keeps its directions.
    - Origins slide along their axis, mostly to the foot of the common normal.
    - The inertia that a hinge cannot feel moves to its parent (base parameters).
    - Every body keeps its old frame as its `origin`: `body.origin @ force` is an external force on
      the body, at its new frame.

    Bodies that touch a traced inertia, placement, axis or frame keep theirs. Cost O(N).
    """
    if not robot.bodies:
        return robot
    x = _Numbers.of(robot)
    A = _turned(x)
    x.R, x.l = _snapped(_T(A[x.parents]) @ x.R @ A[:-1]), _map(_T(A[x.parents]), x.l)
    t = _slid(x)
    size = np.abs(x.l).sum(1) + np.abs(t[:-1]).sum(1) + np.abs(t[x.parents]).sum(1)
    x.l = x.l + _map(x.R, t[:-1]) - t[x.parents]
    x.l[np.abs(x.l) <= ROUNDING * np.maximum(size, 1.0)[:, None]] = 0.0
    back = _poses(_T(A), 0.0 - t)
    x.Pi = _regrouped(x, back[:-1] @ x.Pi @ _T(back[:-1]))
    return _described(robot, x, back)


@dataclass
class _Numbers:
    """A robot as arrays; what is looked up by parent has a last row for the world."""

    kinds: list[str]
    parents: list[int]
    main: Any
    """For each body its child with the largest subtree, −1 where there is none."""
    kept: Any
    """Which bodies keep their frame, because a traced number depends on it."""
    R: Any
    l: Any
    axes: Any
    """For each body z and x of its new frame in its old one; x zero where it is free."""
    Pi: Any
    traced: Any
    """Which of them are not numbers (and zero here)."""

    @classmethod
    def of(cls, robot: RobotDescription) -> _Numbers:
        kinds, parents = [h.kind.name for h in robot.hinges], list(robot.parents)
        R, turning = _floats(h.placement.rotation for h in robot.hinges)
        l, moving = _floats(h.placement.position for h in robot.hinges)
        axes, tilting = _floats(_frame_axes(h) for h in robot.hinges)
        p, traced = _floats(b.inertia.parameters for b in robot.bodies)
        hinged = turning | moving | tilting
        R[hinged], l[hinged] = np.eye(3), 0.0
        kept = np.append(hinged | traced, True)
        kept[np.array(parents)[hinged]] = True
        for f in robot.frames.values():
            if _traced(f.placement.rotation) or _traced(f.placement.position):
                kept[robot.body_index(f.body)] = True
        axes[kept[:-1]] = np.eye(3)[[2, 0]]
        return cls(kinds, parents, _main(parents), kept, R, l, axes, _pseudo(p), traced)


def _frame_axes(h: Hinge) -> tuple[Any, Any]:
    if h.kind.name in AXIAL:
        return h.axes[0], _FREE
    return (h.axes[0], h.axes[1]) if h.kind.name == "planar" else (_Z, _X)


def _main(parents: list[int]) -> Any:
    size, main = [1] * len(parents), [-1] * len(parents)
    for i in reversed(range(len(parents))):
        p = parents[i]
        if p >= 0:
            size[p] += size[i]
            if main[p] < 0 or size[i] >= size[main[p]]:
                main[p] = i
    return np.array(main)


def _turned(x: _Numbers) -> Any:
    """A: the new axes of every body in its old ones.

    The x-axis is the common normal with the axis of the main child, or points to it if they are
    parallel; else it is the common normal with the parent's axis, or the parent's x-axis.
    """
    u, ex = np.append(x.axes, np.eye(3)[None, [2, 0]], axis=0).swapaxes(0, 1)
    w = _map(x.R, u[:-1])
    inner, l = (x.main >= 0)[:, None], x.l[x.main]
    for wanted, flat in (
        (inner * np.cross(u[:-1], w[x.main]), FLAT),
        (inner * l, 1e-12 * np.linalg.norm(l, axis=1)),
        (_map(_T(x.R), np.cross(u[x.parents], w)), FLAT),
    ):
        across = _across(wanted, u[:-1])
        found = ~ex[:-1].any(1) & (np.linalg.norm(across, axis=1) > flat)
        ex[:-1][found] = across[found]
    for i in np.flatnonzero(~ex.any(1)):
        ex[i] = x.R[i].T @ ex[x.parents[i]]
    for _ in range(2):
        ex = _across(ex, u)
        ex = ex / np.linalg.norm(ex, axis=1)[:, None]
    return _snapped(np.stack((ex, np.cross(u, ex), u), axis=2))


def _slid(x: _Numbers) -> Any:
    """t: the new origin of every body from its old one, in its new axes.

    A prismatic child's goes to that of its parent; others go along z to where their position on the
    parent has most zeros.
    """
    length = np.linalg.norm(x.l, axis=1)
    reach = (REACH * np.maximum(length, np.where(x.main < 0, 0.0, length[x.main]))).tolist()
    t = [(0.0, 0.0, 0.0)] * len(x.kept)
    for i, (p, l, z) in enumerate(zip(x.parents, x.l.tolist(), x.R[:, :, 2].tolist(), strict=True)):
        if x.kept[i] or x.kinds[i] not in TURNED:
            continue
        l = [a - b for a, b in zip(l, t[p], strict=True)]
        if x.kinds[i] == "prismatic" and math.hypot(*l) <= reach[i]:
            t[i] = tuple((-x.R[i].T @ l).tolist())
        else:
            feet = [-a / b for a, b in zip(l, z, strict=True) if abs(b) > FLAT]
            near = (s for s in (0.0, *feet) if abs(s) <= reach[i])
            t[i] = 0.0, 0.0, min((_nonzeros(l, z, s), abs(s), s) for s in near)[2]
    return np.array(t)


def _nonzeros(l: list[float], z: list[float], s: float) -> int:
    """How many entries of l + z s are not zero."""
    least = ROUNDING * max(1.0, abs(s))
    (a, b, c), (x, y, w) = l, z
    return (abs(a + x * s) > least) + (abs(b + y * s) > least) + (abs(c + w * s) > least)


def _regrouped(x: _Numbers, Pi: Any) -> Any:
    """The pseudo-inertias, all that a hinge does not feel moved to its parent, tips first."""
    X = _poses(x.R, x.l)
    moves = [0] * len(x.kept)
    for i in reversed(range(len(Pi))):
        kind, p = x.kinds[i], x.parents[i]
        if x.kept[i] or kind not in UNFELT or moves[i] == MOVES:
            continue
        unfelt = UNFELT[kind] * Pi[i]
        Pi[i] -= unfelt
        if p >= 0:
            Pi[p] += X[i] @ unfelt @ X[i].T
            moves[p] = max(moves[p], moves[i] + 1)
    return Pi


def _described(robot: R, x: _Numbers, back: Any) -> R:
    """The robot of those numbers; `back` are the poses of the old frames in the new."""
    bodies, hinges = [], []
    poses = [Transform.of(T[:3, :3], T[:3, 3]) for T in back]
    for i, (b, h, p) in enumerate(zip(robot.bodies, robot.hinges, x.parents, strict=True)):
        M = SpatialInertia.of_parameters(_parameters(x.Pi[i]))
        bodies.append(Body(b.name, b.inertia + M if x.traced[i] else M, poses[i] @ b.origin))
        if not (x.kept[i] and x.kept[p]):
            turned = not x.kept[i] and h.kind.name in TURNED
            axes = (_Z, _X, _Y)[: len(h.axes)] if turned else h.axes
            h = replace(h, placement=Transform.of(x.R[i], x.l[i]), axes=axes)
        hinges.append(h)
    frames = {}
    for f in robot.frames.values():
        i = robot.body_index(f.body)
        frames[f.name] = f if x.kept[i] else Frame(f.name, f.body, poses[i] @ f.placement)
    return replace(robot, bodies=tuple(bodies), hinges=tuple(hinges), frames=frames)


# ---- arrays of rotations, poses and inertias ----------------------------------------------------


def _traced(values: Any) -> bool:
    return not set(map(type, np.asarray(values).flat)) <= _NUMBERS


def _floats(items: Iterable[Any]) -> tuple[Any, Any]:
    """The items as one array, zero where traced; and which are."""
    rows = np.array([np.asarray(x) for x in items], dtype=object)
    traced = np.zeros(len(rows), bool)
    if _traced(rows):
        traced[:] = [_traced(row) for row in rows]
        rows[traced] = 0.0
    return rows.astype(float), traced


def _T(x: Any) -> Any:
    return x.swapaxes(-1, -2)


def _map(matrices: Any, vectors: Any) -> Any:
    return (matrices @ vectors[..., None])[..., 0]


def _across(v: Any, u: Any) -> Any:
    """The parts of vectors perpendicular to unit vectors."""
    return v - u * (u * v).sum(1, keepdims=True)


def _snapped(R: Any) -> Any:
    """Rotations with exact zeros and ones; R_x(b) R_z(c) made of two pairs of numbers."""
    R = np.where(np.abs(R) < FLAT, 0.0, R)
    for axis in (1, 2):
        lone = (R != 0.0).sum(axis, keepdims=True) == 1
        R = np.where(lone, np.sign(R), R)
    two = R[:, 0, 2] == 0.0
    pairs = (R[two][:, (2, 1), 2], R[two][:, 0, :2])
    (cb, sb), (cc, sc) = ((x / np.hypot(*x.T)[:, None] * (1.0, -1.0)).T for x in pairs)
    rows = [[cc, -sc, 0.0 * cc], [cb * sc, cb * cc, -sb], [sb * sc, sb * cc, cb]]
    R[two] = np.array(rows).transpose(2, 0, 1)
    return R + 0.0


def _poses(R: Any, l: Any) -> Any:
    out = np.zeros((len(R), 4, 4))
    out[:, :3, :3], out[:, :3, 3], out[:, 3, 3] = R, l, 1.0
    return out


def _pseudo(p: Any) -> Any:
    """Π of inertia parameters (conventions.py), in long double: Σ of a thin body has small entries
    that are differences of large ones."""
    m, hx, hy, hz, xx, xy, xz, yy, yz, zz = p.T.astype(np.longdouble)
    half = 0.5 * (xx + yy + zz)
    rows = [[half - xx, -xy, -xz, hx], [-xy, half - yy, -yz, hy], [-xz, -yz, half - zz, hz],
            [hx, hy, hz, m]]  # fmt: skip
    return np.array(rows).transpose(2, 0, 1)


def _parameters(Pi: Any) -> list[float]:
    """The inertia parameters of Π."""
    (xx, xy, xz, hx), (_, yy, yz, hy), (_, _, zz, hz), (_, _, _, m) = (
        Pi.astype(float) + 0.0
    ).tolist()
    return [m, hx, hy, hz, yy + zz, 0.0 - xy, 0.0 - xz, xx + zz, 0.0 - yz, xx + yy]
