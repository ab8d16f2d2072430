"""Equivalent robots: another description with the same joint-space dynamics, cheaper to trace.

Body i gets a new frame whose pose in the old one is C_i = (A_i, A_i t_i). C_i commutes with the
motion of the hinge, T(q) C_i = C_i T'(q), where T' is a motion about the z-axis. The placement L_i
of the hinge on its parent p becomes C_p⁻¹ L_i C_i; the remaining freedom in C is used to make this
placement sparse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from phipsi.model.description import R, RobotDescription
from phipsi.model.parts import Body, Frame, Hinge
from phipsi.spatial import SpatialInertia, Transform
from phipsi.spatial import rotation as rot
from phipsi.spatial.rotation import Vector
from phipsi.typing import Array

Flags: TypeAlias = Annotated[NDArray[np.bool_], "n"]
Vectors: TypeAlias = Annotated[Array, "n 3"]
Matrices: TypeAlias = Annotated[Array, "n 3 3"]
PseudoInertias: TypeAlias = Annotated[Array, "n 4 4"]

FLAT = 2e-15
"""A sine below this counts as zero: an entry of a rotation, or the angle between two axes."""
ROUNDING = 1e-15
"""A length counts as zero if it is below this [m], or below this fraction of its terms."""
REACH = 2.0
"""The maximum displacement of an origin, in link lengths: nearly parallel axes meet far away."""
MOVES = 16
"""The maximum number of hinges over which inertia is moved inwards: each move adds terms that the
recursions must cancel."""

AXIAL = ("revolute", "continuous", "prismatic", "helical", "cylindrical")
"""Hinge kinds whose child frame may be rotated about the hinge axis."""
TURNED = (*AXIAL, "planar")
"""Hinge kinds whose axis becomes z, and whose child frame may be shifted along it."""
_SPANS = {"revolute": "zm", "continuous": "zm", "prismatic": "xyz", "helical": "z",
          "cylindrical": "z", "planar": "z", "universal": "m", "spherical": "m"}  # fmt: skip
UNFELT = {
    kind: np.array([[a in span and b in span for a in "xyzm"] for b in "xyzm"])
    for kind, span in _SPANS.items()
}
"""For each hinge kind (with axis z), the entries X of the pseudo-inertia Π = [[Σ, h], [h*, m]],
Σ = ½ tr(J) I − J, that have no effect on its joint force: X H* = 0, and φXφ* does not depend on q.
They can be moved to the parent."""

_NUMBERS = {float, int, np.float64, np.float32}
_UNDECIDED = np.zeros(3)
_X, _Y, _Z = _UNIT = [rot.vector(*row) for row in np.eye(3).tolist()]
for _axis in _UNIT:
    _axis.flags.writeable = False


@np.errstate(over="ignore", invalid="ignore")
def equivalent(robot: R) -> R:
    """A robot with the same joint-space dynamics and more zeros: fewer operations when traced.

    q, v and tau, 𝓜, bias, gravity and external forces, and named frames are the same. The body
    frames and the inertias are different:

    - Body frames are rotated (Denavit, Hartenberg): z is the axis of the hinge, x the common normal
      with the axis of the main child, whose placement is then R_x(b) R_z(c). If v is expressed in
      the frame (free, spherical, universal, planar), it keeps its directions.
    - Origins are shifted along the axis, mostly to the foot of the common normal.
    - Inertia that has no effect on the force of a hinge is moved to the parent (base parameters).
    - Each body keeps the pose of its old frame as `origin`: `body.origin @ force` is an external
      force on the body, expressed in its new frame.

    Bodies with a traced inertia, placement, axis or frame keep theirs. Cost O(N).
    """
    if not robot.bodies:
        return robot
    x = _Numbers.of(robot)
    A = _new_axes(x)
    x.R, x.l = _snapped(_T(A[x.parents]) @ x.R @ A[:-1]), _map(_T(A[x.parents]), x.l)
    t = _new_origins(x)
    size = np.abs(x.l).sum(1) + np.abs(t[:-1]).sum(1) + np.abs(t[x.parents]).sum(1)
    x.l = x.l + _map(x.R, t[:-1]) - t[x.parents]
    x.l[np.abs(x.l) <= ROUNDING * np.maximum(size, 1.0)[:, None]] = 0.0
    back = _poses(_T(A), 0.0 - t)
    x.Pi = _regrouped(x, back[:-1] @ x.Pi @ _T(back[:-1]))
    return _described(robot, x, back)


@dataclass
class _Numbers:
    """A robot as arrays over its bodies."""

    kinds: list[str]
    parents: list[int]
    main: Annotated[NDArray[np.int_], "n"]
    """For each body the index of its child with the largest subtree, −1 if it has none."""
    kept: Flags
    """For each body and the world (last, index −1) whether it keeps its frame, because it is the
    world or a traced number depends on the frame."""
    R: Matrices
    """Rotations of the placements of the hinges."""
    l: Vectors
    """Positions of the placements of the hinges."""
    axes: Annotated[Array, "n 2 3"]
    """For each body the axes z and x of its new frame in its old one; x is zero if undecided."""
    Pi: PseudoInertias
    traced: Flags
    """For each body whether its inertia is traced; its Pi is zero then."""

    @classmethod
    def of(cls, robot: RobotDescription) -> _Numbers:
        """The arrays of a robot."""
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


def _frame_axes(h: Hinge) -> tuple[Vector, Vector]:
    """The axes z and x of the new frame of the child in the old one; x is zero if undecided."""
    if h.kind.name in AXIAL:
        return h.axes[0], _UNDECIDED
    return (h.axes[0], h.axes[1]) if h.kind.name == "planar" else (_Z, _X)


def _main(parents: list[int]) -> Annotated[NDArray[np.int_], "n"]:
    """For each body the index of its child with the largest subtree, −1 if it has none."""
    size, main = [1] * len(parents), [-1] * len(parents)
    for i in reversed(range(len(parents))):
        p = parents[i]
        if p >= 0:
            size[p] += size[i]
            if main[p] < 0 or size[i] >= size[main[p]]:
                main[p] = i
    return np.array(main)


def _new_axes(x: _Numbers) -> Matrices:
    """A: the new axes of every body, and of the world, in its old axes.

    The x-axis is the common normal with the axis of the main child, or points towards that axis if
    it is parallel. Without a main child it is the common normal with the axis of the parent, or the
    x-axis of the parent.
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


def _new_origins(x: _Numbers) -> Vectors:
    """t: the displacement of the origin of every body, and of the world, in its new axes.

    The origin of a prismatic child is moved to that of its parent. Others are shifted along z to
    the point whose position on the parent has most zeros.
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
    """The number of entries of l + z s that are not zero."""
    least = ROUNDING * max(1.0, abs(s))
    (a, b, c), (x, y, w) = l, z
    return (abs(a + x * s) > least) + (abs(b + y * s) > least) + (abs(c + w * s) > least)


def _regrouped(x: _Numbers, Pi: PseudoInertias) -> PseudoInertias:
    """The pseudo-inertias with the entries UNFELT of each hinge moved to the parent, tips first."""
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


def _described(robot: R, x: _Numbers, back: Annotated[Array, "n 4 4"]) -> R:
    """The robot with these numbers; `back` are the poses of the old frames in the new ones."""
    bodies: list[Body] = []
    hinges: list[Hinge] = []
    poses = [Transform.of(T[:3, :3], T[:3, 3]) for T in back]
    for i, (b, h, p) in enumerate(zip(robot.bodies, robot.hinges, x.parents, strict=True)):
        M = SpatialInertia.of_parameters(_parameters(x.Pi[i]))
        inertia = b.inertia + M if x.traced[i] else M
        welded = b.seen_from(poses[i]).welded
        bodies.append(Body(b.name, inertia, poses[i] @ b.origin, welded))
        if not (x.kept[i] and x.kept[p]):
            turned = not x.kept[i] and h.kind.name in TURNED
            axes = (_Z, _X, _Y)[: len(h.axes)] if turned else h.axes
            h = replace(h, placement=Transform.of(x.R[i], x.l[i]), axes=axes)
        hinges.append(h)
    frames: dict[str, Frame] = {}
    for f in robot.frames.values():
        i = robot.body_index(f.body)
        frames[f.name] = f if x.kept[i] else Frame(f.name, f.body, poses[i] @ f.placement)
    return replace(robot, bodies=tuple(bodies), hinges=tuple(hinges), frames=frames)


# ---- arrays of rotations, poses and inertias ----------------------------------------------------


def _traced(values: Array) -> bool:
    """Whether an entry is not a number."""
    return not set(map(type, np.asarray(values).flat)) <= _NUMBERS


def _floats(items: Iterable[Array | tuple[Array, ...]]) -> tuple[Array, Flags]:
    """The items as one array, with zeros for traced items; and which items are traced."""
    rows = np.array([np.asarray(x) for x in items], dtype=object)
    traced = np.zeros(len(rows), bool)
    if _traced(rows):
        traced[:] = [_traced(row) for row in rows]
        rows[traced] = 0.0
    return rows.astype(float), traced


def _T(x: Array) -> Array:
    """The transposes of matrices."""
    return x.swapaxes(-1, -2)


def _map(matrices: Matrices, vectors: Vectors) -> Vectors:
    """The products of matrices and vectors."""
    return (matrices @ vectors[..., None])[..., 0]


def _across(v: Vectors, u: Vectors) -> Vectors:
    """The components of vectors v perpendicular to unit vectors u."""
    return v - u * (u * v).sum(1, keepdims=True)


def _snapped(rotations: Matrices) -> Matrices:
    """The rotations with exact zeros and ones; those of the form R_x(b) R_z(c) are recomputed from
    the sines and cosines of b and c."""
    R = rotations.copy()
    R[np.abs(R) < FLAT] = 0.0
    for axis in (1, 2):
        lone = (R != 0.0) & ((R != 0.0).sum(axis, keepdims=True) == 1)
        R[lone] = np.sign(R[lone])
    two = R[:, 0, 2] == 0.0
    pairs: tuple[Array, Array] = (R[two][:, (2, 1), 2], R[two][:, 0, :2])
    (cb, sb), (cc, sc) = ((x / np.hypot(*x.T)[:, None] * (1.0, -1.0)).T for x in pairs)
    rows = [[cc, -sc, 0.0 * cc], [cb * sc, cb * cc, -sb], [sb * sc, sb * cc, cb]]
    R[two] = np.array(rows).transpose(2, 0, 1)
    return R + 0.0


def _poses(R: Matrices, l: Vectors) -> Annotated[Array, "n 4 4"]:
    """The homogeneous matrices of rotations and positions."""
    out = np.zeros((len(R), 4, 4))
    out[:, :3, :3], out[:, :3, 3], out[:, 3, 3] = R, l, 1.0
    return out


def _pseudo(p: Annotated[Array, "n 10"]) -> PseudoInertias:
    """Π of inertia parameters (conventions.py), in long double because the entries of Σ of a thin
    body are small differences of large numbers."""
    m, hx, hy, hz, xx, xy, xz, yy, yz, zz = p.T.astype(np.longdouble)
    half = 0.5 * (xx + yy + zz)
    rows = [[half - xx, -xy, -xz, hx], [-xy, half - yy, -yz, hy], [-xz, -yz, half - zz, hz],
            [hx, hy, hz, m]]  # fmt: skip
    return np.array(rows).transpose(2, 0, 1)


def _parameters(Pi: Annotated[Array, "4 4"]) -> list[float]:
    """The inertia parameters of Π."""
    (xx, xy, xz, hx), (_, yy, yz, hy), (_, _, zz, hz), (_, _, _, m) = (
        Pi.astype(float) + 0.0
    ).tolist()
    return [m, hx, hy, hz, yy + zz, 0.0 - xy, 0.0 - xz, xx + zz, 0.0 - yz, xx + yy]
