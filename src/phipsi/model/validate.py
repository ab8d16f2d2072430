"""Checks of a robot when it is built.

Each raises a `ModelError` whose message is one sentence that names the body or hinge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from phipsi.conventions import WORLD
from phipsi.model import untrusted
from phipsi.model.configurations import random_state
from phipsi.model.description import RobotDescription
from phipsi.model.errors import ModelError
from phipsi.model.hinges import HingeKind
from phipsi.model.parts import INF, Body, Frame, Hinge, PerCoordinate, PerFreedom
from phipsi.spatial import Gain, Pivot, Transform
from phipsi.spatial import rotation as rot
from phipsi.spatial.rotation import Vector

Floats = NDArray[np.float64]

SINGULAR = 1e-12
"""A hinge is singular if its articulated inertia is below this fraction of the inertia that it has
with the next outboard hinges locked."""

PER_V: tuple[PerFreedom, ...] = get_args(PerFreedom)
"""The arrays of a hinge with nv numbers."""
PER_Q: tuple[PerCoordinate, ...] = get_args(PerCoordinate)
"""The arrays of a hinge with nq numbers."""
NO_LIMIT = {"lower": -INF, "upper": INF, "velocity": INF, "effort": INF}
"""For each limit the value that means no limit; all other numbers of a hinge are finite."""


def array(where: str, value: object) -> Floats:
    """The value as an array of numbers."""
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError):
        raise ModelError(f"{where} is {untrusted.quoted(value)}, needs numbers") from None


def numbers(where: str, value: object, shape: tuple[int, ...]) -> Floats:
    """The value as an array of finite numbers of this shape."""
    given = array(where, value)
    if given.shape != shape:
        raise ModelError(f"{where} has shape {given.shape}, needs {shape}")
    if not np.isfinite(given).all():
        raise ModelError(f"{where} is {given.tolist()}, but every number must be finite")
    return given


def number(where: str, value: object) -> float:
    """The value as one finite number."""
    return float(numbers(where, value, ()))


def symmetric(where: str, tensor: Floats) -> None:
    """Check that the 3 × 3 tensor is symmetric to rounding."""
    if np.abs(tensor - tensor.T).max() > 1e-9 * np.abs(tensor).max():
        raise ModelError(f"{where} is not symmetric: {tensor.tolist()}")


def axes(where: str, kind: HingeKind, axis: object) -> tuple[Vector, ...]:
    """The unit axes of a hinge of this kind, from the axis or axes in the description."""
    if kind.axes == 0:
        return ()
    if axis is None:
        raise ModelError(f"{where} is {kind.name} and needs an axis")
    given = np.atleast_2d(array(f"{where}: axis", axis))
    numbers(f"{where}: axis", given, (kind.axes, 3))
    length = np.linalg.norm(given, axis=1)
    if (length < 1e-9).any():
        raise ModelError(f"{where} has a zero axis {np.asarray(axis).tolist()}")
    unit = given / length[:, None]
    if kind.name == "planar":
        second = np.cross(unit[0], np.eye(3)[np.argmin(np.abs(unit[0]))])
        second /= np.linalg.norm(second)
        unit = np.stack((unit[0], np.cross(second, unit[0]), second))
    elif kind.axes == 2 and np.linalg.norm(np.cross(*unit)) < 1e-9:
        raise ModelError(f"{where} is {kind.name}, but its two axes are parallel")
    return tuple(rot.scalars(u) for u in unit)


def names(
    robot: str, bodies: Sequence[Body], hinges: Sequence[Hinge], frames: Sequence[Frame]
) -> None:
    """Check that every part has a name, and that names are unique."""
    untrusted.name("the robot", robot)
    for what, plural, items in (
        ("body", "bodies", [*bodies, *(w for body in bodies for w in body.welded)]),
        ("hinge", "hinges", hinges),
        ("frame", "frames", frames),
    ):
        seen: set[str] = set()
        for item in items:
            untrusted.name(f"a {what} of robot {robot!r}", item.name)
            if item.name == WORLD and what != "hinge":
                raise ModelError(f"a {what} is named {WORLD!r}, which is the root; rename it")
            if item.name in seen:
                raise ModelError(
                    f"two {plural} are named {item.name!r}; names must differ (use a prefix)"
                )
            seen.add(item.name)


def tree(
    bodies: Sequence[Body], hinges: Sequence[Hinge], frames: Sequence[Frame]
) -> dict[str, Hinge]:
    """Check that each body has one inboard hinge and is connected to the world.

    Returns the inboard hinge of each body by the body's name.
    """
    known = {b.name for b in bodies}
    inboard: dict[str, Hinge] = {}
    for h in hinges:
        for role, name in (("parent", h.parent), ("child", h.child)):
            if name not in known and not (role == "parent" and name == WORLD):
                raise ModelError(f"hinge {h.name!r} has unknown {role} {name!r}")
        if h.child in inboard:
            raise ModelError(
                f"body {h.child!r} has two inboard hinges, {inboard[h.child].name!r} and "
                f"{h.name!r}; keep one, and close the loop with phipsi.Loop"
            )
        inboard[h.child] = h
    for f in frames:
        if f.body not in known and f.body != WORLD:
            raise ModelError(f"frame {f.name!r} is on unknown body {f.body!r}")
    connected = {WORLD}
    for body in bodies:
        path: dict[str, None] = {}
        name = body.name
        while name not in connected:
            if name in path:
                raise ModelError(f"bodies form a cycle: {' → '.join([*path, name])}")
            path[name] = None
            if name not in inboard:
                raise ModelError(
                    f"body {name!r} is not connected to the world; give it a hinge "
                    "(kind 'free' to let it float)"
                )
            name = inboard[name].parent
        connected.update(path)
    return inboard


def hinge(h: Hinge) -> None:
    """Check the numbers of a hinge: lengths, signs, and that all but the limits are finite."""
    where = f"hinge {h.name!r}"
    placement(where, h.placement)
    directions(where, h)
    for keys, size in ((PER_V, h.kind.nv), (PER_Q, h.kind.nq)):
        for key in keys:
            sized(f"{where}: {key}", getattr(h, key), size, NO_LIMIT.get(key, 0.0))
    for key in ("armature", "friction", "backlash"):
        if (np.asarray(getattr(h, key)) < 0).any():
            raise ModelError(f"{where} has a negative {key}; give zero or more")
    if (np.asarray(h.lower) > np.asarray(h.upper)).any():
        raise ModelError(f"{where} has a lower limit above the upper one; exchange them")
    numbers(f"{where}: pitch", h.pitch, ())
    numbers(f"{where}: friction_speed", h.friction_speed, ())
    if h.friction_speed <= 0:
        raise ModelError(f"{where} has friction_speed {h.friction_speed:g}, needs more than zero")


def sized(where: str, values: object, size: int, no_limit: float) -> None:
    """Check that there are `size` numbers, each of them finite or `no_limit`."""
    array = np.asarray(values, float)
    if array.shape != (size,):
        raise ModelError(f"{where} has shape {array.shape}, needs ({size},)")
    if not (np.isfinite(array) | (array == no_limit)).all():
        raise ModelError(f"{where} is {array.tolist()}, but every number must be finite")


def directions(where: str, h: Hinge) -> None:
    """Check that the stored axes of a hinge are unit vectors, as many as its kind has.

    The axes of a planar hinge are a right-handed triple.
    """
    count = 3 if h.kind.name in ("planar", "reversed_planar") else h.kind.axes
    given = np.array([np.asarray(axis, float) for axis in h.axes])
    if len(given) != count:
        raise ModelError(f"{where} has {len(given)} axes, but a {h.kind.name} hinge stores {count}")
    if count and np.abs(np.linalg.norm(given, axis=1) - 1.0).max() > 1e-9:
        raise ModelError(f"{where} has an axis that is no unit vector; divide it by its length")
    if count == 2 and np.linalg.norm(np.cross(*given)) < 1e-9:
        raise ModelError(f"{where} is {h.kind.name}, but its two axes are parallel")
    if count == 3 and np.abs(np.cross(given[1], given[2]) - given[0]).max() > 1e-9:
        raise ModelError(f"{where} is planar, but its axes are no right-handed triple")


def placement(where: str, pose: Transform) -> None:
    """Check that a pose consists of a finite position and a rotation."""
    numbers(f"{where}: position", pose.position, (3,))
    numbers(f"{where}: rotation", pose.rotation, (3, 3))
    R = np.asarray(pose.rotation, float)
    if np.abs(R @ R.T - np.eye(3)).max() > 1e-9 or np.linalg.det(R) < 0:
        raise ModelError(f"{where} has a placement whose 3 × 3 matrix is no rotation")


def inertia(body: Body) -> Iterator[str]:
    """Check that mass and inertia are finite and the mass is not negative.

    Yields one sentence for each property that no real body has, such as a negative moment.
    """
    where = f"body {body.name!r}"
    if not np.isfinite(np.asarray(body.inertia.parameters, float)).all():
        raise ModelError(f"{where} has an inertia that is not finite")
    if body.mass < 0:
        raise ModelError(f"{where} has negative mass {body.mass:g} kg")
    moments, scale = _principal(body)
    slack = 1e-9 * scale
    if moments[0] < -slack:
        yield (
            f"{where} has an inertia that is not positive semidefinite "
            f"(principal moments {_shown(moments)} kg·m²)"
        )
    elif moments[0] + moments[1] < moments[2] - max(slack, 1e-6 * moments[2]):
        yield (
            f"{where} has an inertia that violates the triangle inequality "
            f"(principal moments {_shown(moments)} kg·m²)"
        )


def regular(robot: RobotDescription) -> None:
    """Check that every hinge moves some inertia: D > 0 at a generic state.

    If the inertias of all bodies are positive definite, no hinge can be singular. Otherwise the
    articulated-body recursion ([BI] Alg 2.2) runs on numbers. D is compared with the value that it
    has with the next outboard hinges locked: releasing them may cancel all but rounding errors.
    """
    if all(_full(body) for body in robot.bodies):
        return
    q, _ = random_state(robot, 0, ())
    free = [b.inertia.articulated for b in robot.bodies]
    locked = list(free)
    for i in reversed(range(robot.nb)):
        h, P = robot.hinges[i], free[i]
        x = rot.scalars(q[h.q])
        H = h.kind.map(h, x)
        U, armature = P @ H.T, np.diag(h.armature).astype(object)
        D = H.inner(U) + armature
        scale = np.abs(np.asarray(H.inner(locked[i] @ H.T) + armature, float)).max()
        if np.linalg.eigvalsh(np.asarray(D, float))[0] <= SINGULAR * scale:
            raise ModelError(
                f"hinge {h.name!r} moves body {h.child!r}, which has no inertia along it: give the "
                "body a mass and an inertia, weld it, or give the hinge an armature (for a URDF: "
                f"load(..., armature={{{h.name!r}: 1e-4}}))"
            )
        parent = robot.parents[i]
        if parent >= 0:
            phi = h.placement @ h.kind.pose(h, x)
            free[parent] = free[parent] + phi.congruence(P.released(Gain(U, Pivot(D))))
            locked[parent] = locked[parent] + phi.congruence(P)


def _principal(body: Body) -> tuple[Floats, float]:
    """The principal moments about the centre of mass, and the scale of their rounding errors."""
    mass = float(body.mass)
    com = np.asarray(body.inertia.moment, float) / mass if mass > 0 else np.zeros(3)
    central = body.inertia.shifted(rot.scalars(-com))
    moments = np.linalg.eigvalsh(np.asarray(central.J, float))
    return moments, max(np.abs(moments).max(), mass * (com @ com))


def _full(body: Body) -> bool:
    """Whether the spatial inertia is clearly positive definite."""
    moments, scale = _principal(body)
    return bool(body.mass > 0 and moments[0] > 1e-6 * scale)


def _shown(moments: Floats) -> str:
    return ", ".join(f"{m:.3g}" for m in moments)
