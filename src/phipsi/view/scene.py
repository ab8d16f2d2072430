"""A robot as simple solids to draw, derived from its own numbers: robots carry no meshes.

A body is drawn as rods from its hinge to the hinges and frames that it carries. A body that carries
nothing, moves freely, or is the thick trunk of several limbs is drawn as a solid with its inertia.
All sizes follow from the robot's extent, so that robots of 2 cm and of 20 m look alike. The result
is plain data for JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Literal, NamedTuple, TypedDict

import numpy as np

from phipsi.algorithms import poses
from phipsi.conventions import WORLD
from phipsi.model import Body, Hinge, Robot
from phipsi.spatial.rotation import to_quaternion
from phipsi.typing import Array, ArrayLike, Pose, Vector3

Shape = Literal["capsule", "cylinder", "box", "ellipsoid"]
Role = Literal["link", "bulk", "hinge", "ground"]

MAX_FRAMES = 6
"""The most rods, and the most triads, drawn for the frames of one body."""
LIGHT, CORK = 25.0, 200.0
"""Densities [kg/m³]: a body lighter than the first is drawn as if it had the second."""

_ROOTS = ("free", "planar")
"""Kinds of hinges whose bodies move about in the world."""


class Solid(TypedDict):
    """A solid fixed to a body (−1: the world). `pose` is [position; quaternion (w, x, y, z)] of its
    centre in the body's frame [m]; `size` is (radius, length along z between the ends' centres) of
    a capsule, (radius, length along z) of a cylinder, the sides of a box, the semi-axes of an
    ellipsoid [m]."""

    body: int
    shape: Shape
    role: Role
    size: list[float]
    pose: list[float]


class Triad(TypedDict):
    """A named frame to be drawn as three axes; `pose` in its body's frame as in `Solid`."""

    name: str
    body: int
    pose: list[float]


class Scene(TypedDict):
    """The solids and triads of a robot; `extent` is its size, `radius` that of a usual rod [m]."""

    robot: str
    bodies: list[str]
    extent: float
    radius: float
    solids: list[Solid]
    triads: list[Triad]


class _Bulk(NamedTuple):
    """The uniform box with a body's inertia: centre, axes as columns, sides (largest first) [m]."""

    center: Array
    axes: Array
    sides: Array

    def holds(self, point: Array) -> bool:
        """Whether the point is in the box, or just outside its surface."""
        return bool(np.all(np.abs(self.axes.T @ (point - self.center)) <= 0.55 * self.sides))


def scene_of(robot: Robot, frames: Collection[str] = ()) -> Scene:
    """The solids of a robot, and triads of its tool frames (those on the last bodies).

    Parameters
    ----------
    robot
        The robot.
    frames
        Names of further frames that get triads.

    Returns
    -------
    Scene
        Dictionary of plain data, which JSON can hold.

    Examples
    --------
    >>> import phipsi as pp
    >>> from phipsi.view import scene_of
    >>> drawn = scene_of(pp.robots.double_pendulum())
    >>> [(s["shape"], s["role"]) for s in drawn["solids"]][:3]
    [('cylinder', 'ground'), ('capsule', 'link'), ('cylinder', 'hinge')]
    """
    ends = [_ends(robot, body) for body in robot.bodies]
    placed = poses(robot, robot.neutral())
    points = [[np.zeros(3), *body] for body in ends]
    reach = _diagonal([_moved(X, p) for X, own in zip(placed, points, strict=True) for p in own])
    bulks = [_bulk(body, limit=3 * reach) for body in robot.bodies]
    extent = max(reach, *(float(np.linalg.norm(b.sides)) for b in bulks if b), 0.0) or 1.0
    lengths = [x for body in ends for p in body if (x := float(np.linalg.norm(p))) > 1e-3 * extent]
    radius = min(0.018 * extent, 0.3 * float(np.median(lengths)) if lengths else extent)
    solids = [s for h in robot.hinges for s in _ground(h, radius)]
    for i, hinge in enumerate(robot.hinges):
        solids += _body(i, hinge, robot.parents.count(i), ends[i], bulks[i], radius)
        solids += _hinge(i, hinge, robot.parents[i], radius, extent)
    return Scene(
        robot=robot.name, bodies=[body.name for body in robot.bodies], extent=extent,
        radius=radius, solids=solids, triads=_triads(robot, frames),
    )  # fmt: skip


# ---- bodies ------------------------------------------------------------------------------------


def _ends(robot: Robot, body: Body) -> list[Array]:
    """Where the rods of a body end: at the hinges that it carries, and at its first frames."""
    hinges = [_numbers(h.placement.position) for h in robot.hinges if h.parent == body.name]
    frames = [_numbers(f.placement.position) for f in robot.frames.values() if f.body == body.name]
    ends: list[Array] = []
    for end in [*hinges, *frames[:MAX_FRAMES]]:
        if end.any() and not any(np.allclose(end, other) for other in ends):
            ends.append(end)
    return ends


def _body(
    i: int, hinge: Hinge, carried: int, ends: list[Array], bulk: _Bulk | None, radius: float
) -> Iterator[Solid]:
    """The solids of body i, which carries so many bodies, with rods to the `ends`."""
    long = [end for end in ends if np.linalg.norm(end) > radius]
    sides = np.zeros(3) if bulk is None else bulk.sides
    last, trunk = carried == 0 and not long, carried > 1 and sides[1] > 6 * radius
    if bulk is not None and (last or trunk or hinge.kind.name in _ROOTS):
        yield _thick(i, bulk, hinge, radius)
        for end in long:
            if not bulk.holds(end):
                yield from _rod(i, bulk.center, end, 0.7 * radius)
    else:
        own = float(np.sqrt(sides[1] * sides[2] / 3)) if sides[2] else radius
        for end in long:
            yield from _rod(i, np.zeros(3), end, float(np.clip(own, 0.6 * radius, 1.4 * radius)))


def _bulk(body: Body, limit: float) -> _Bulk | None:
    """The uniform box with the inertia of a body: side² = 12 · (second moment) / mass.

    Inertias in careless files give boxes far too large: a box of density below `LIGHT` is made as
    dense as `CORK`, and no side is longer than `limit` (0: no limit).
    """
    mass = float(body.mass)
    if mass <= 0:
        return None
    center = _numbers(body.inertia.moment) / mass
    second = _numbers(body.inertia.pseudo) / mass - np.outer(center, center)
    if np.abs(second - np.diag(np.diag(second))).max() <= 1e-6 * np.abs(second).max():
        values, axes = np.diag(second), np.eye(3)  # a cube keeps the axes of its frame
    else:
        values, axes = np.linalg.eigh(second)
    order = np.argsort(-values, kind="stable")
    axes = axes[:, order]
    axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
    sides = np.sqrt(12 * np.clip(values[order], 0.0, None))
    density = mass / max(float(np.prod(sides)), 1e-300)
    if density < LIGHT:
        sides = sides * (density / CORK) ** (1 / 3)
    return _Bulk(center, axes, np.minimum(sides, limit) if limit else sides)


def _thick(i: int, bulk: _Bulk, hinge: Hinge, radius: float) -> Solid:
    """A body as one solid: a ball if its inertia is equal in all directions (a cube if it is free),
    a cylinder if it is symmetric about its hinge's axis (a wheel), else a box."""
    a, b, c = sides = np.maximum(bulk.sides, 0.4 * radius)
    if a < 1.02 * c and hinge.kind.name not in _ROOTS:
        return _solid(i, "ellipsoid", "bulk", np.full(3, a * np.sqrt(5 / 12)), bulk.center)
    disc, stick = a < 1.02 * b, b < 1.02 * c
    if (disc or stick) and hinge.axes:
        axis = _numbers(hinge.axes[0])
        if abs(axis @ bulk.axes[:, 2 if disc else 0]) > 0.999:
            size = (a / np.sqrt(3), c) if disc else (b / np.sqrt(3), a)
            return _solid(i, "cylinder", "bulk", size, bulk.center, _along(axis))
    return _solid(i, "box", "bulk", sides, bulk.center, bulk.axes)


# ---- hinges, the ground, frames -----------------------------------------------------------------


def _hinge(i: int, h: Hinge, parent: int, radius: float, extent: float) -> Iterator[Solid]:
    """A hinge: a cylinder along its axis if it turns about one, a ball if it turns about more, a
    rail on the parent and a slide on the child if it slides."""
    axes = [_numbers(axis) for axis in h.axes[: h.kind.axes]]
    name = (h.kind.forward or h.kind).name
    origin = np.zeros(3)
    if name in ("revolute", "continuous", "helical", "cylindrical"):
        size = (1.5 * radius, 3.4 * radius)
        yield _solid(i, "cylinder", "hinge", size, origin, _along(axes[0]))
    elif name in ("spherical", "universal"):
        yield _solid(i, "ellipsoid", "hinge", np.full(3, 1.7 * radius), origin)
    elif name == "prismatic":
        size = (2.2 * radius, 2.2 * radius, 3.2 * radius)
        yield _solid(i, "box", "hinge", size, origin, _along(axes[0]))
        low, high = float(h.lower[0]), float(h.upper[0])
        if np.isfinite(low) and np.isfinite(high) and high - low < 2 * extent:
            place, axis = h.placement, _numbers(h.placement.rotation) @ axes[0]
            start = _numbers(place.position)
            yield from _rod(parent, start + low * axis, start + high * axis, 0.5 * radius)


def _ground(h: Hinge, radius: float) -> Iterator[Solid]:
    """A plate under a hinge that holds a body to the world."""
    if h.parent == WORLD and h.kind.name not in _ROOTS:
        size = (3.2 * radius, 0.8 * radius)
        yield _solid(-1, "cylinder", "ground", size, _numbers(h.placement.position))


def _triads(robot: Robot, frames: Collection[str]) -> list[Triad]:
    """Triads of `frames`, and of frames on bodies that carry no others."""
    carriers = {h.parent for h in robot.hinges} | {WORLD}
    tools: dict[str, list[str]] = {}
    for frame in robot.frames.values():
        if frame.body not in carriers:
            tools.setdefault(frame.body, []).append(frame.name)
    names = [*frames, *(name for own in tools.values() for name in own[:MAX_FRAMES])]
    out: list[Triad] = []
    for frame in map(robot.frame, dict.fromkeys(names)):
        X = frame.placement
        pose = [*_numbers(X.position).tolist(), *to_quaternion(X.rotation).tolist()]
        out.append(Triad(name=frame.name, body=robot.body_index(frame.body), pose=pose))
    return out


# ---- pieces ------------------------------------------------------------------------------------


def _rod(i: int, start: Vector3, end: Vector3, radius: float) -> Iterator[Solid]:
    """A rod of body i between two points, none if they coincide."""
    length = float(np.linalg.norm(end - start))
    if length > 0:
        axes = _along((end - start) / length)
        yield _solid(i, "capsule", "link", (radius, length), (start + end) / 2, axes)


def _solid(
    i: int,
    shape: Shape,
    role: Role,
    size: Iterable[float],
    center: Vector3,
    axes: Array | None = None,
) -> Solid:
    """A solid of body i, its axes the columns of a rotation (default: those of the body)."""
    quaternion = to_quaternion(np.eye(3) if axes is None else axes)
    pose = [*center.tolist(), *quaternion.tolist()]
    return Solid(body=i, shape=shape, role=role, size=[float(x) for x in size], pose=pose)


def _along(axis: Array) -> Array:
    """A rotation that takes z to a unit axis."""
    other = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = np.cross(other, axis)
    first /= np.linalg.norm(first)
    return np.stack((first, np.cross(axis, first), axis), 1)


def _numbers(values: ArrayLike) -> Array:
    return np.asarray(values, float)


def _moved(X: Pose, point: Vector3) -> Vector3:
    return X[:3, :3] @ point + X[:3, 3]


def _diagonal(points: list[Array]) -> float:
    """The diagonal of the box around some points [m]."""
    return float(np.linalg.norm(np.ptp(points, axis=0))) if points else 0.0
