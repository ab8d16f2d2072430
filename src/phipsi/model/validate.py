"""Checks of the values and names that descriptions of robots consist of.

Each raises a `ModelError` whose message is one sentence that names the part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phipsi.conventions import WORLD
from phipsi.model.errors import ModelError
from phipsi.model.hinges import HingeKind
from phipsi.model.parts import Body, Frame, Hinge
from phipsi.model.untrusted import name as checked_name
from phipsi.model.untrusted import quoted
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot
from phipsi.spatial.rotation import Vector
from phipsi.typing import Array

Floats = NDArray[np.float64]

_NO_NUMBERS = (
    str, bytes, bool, np.bool_, complex, np.complexfloating, np.datetime64, np.timedelta64,
    type(None),
)  # fmt: skip
"""What Python or NumPy would convert to floats, and is no real number."""
_FLOATS = {float, int}


def array(where: str, value: Any) -> Floats:
    """The value as an array of numbers."""
    try:
        kept = issubclass(type(value), np.ndarray)
        given: Any = value if kept else np.array(value, object)
        exact = given.dtype == object and _FLOATS.issuperset(map(type, given.flat))
        if given.dtype != float and not exact:
            given = _converted(given)
        if hasattr(given, "mask") and given.mask.any():
            raise TypeError
        return np.array(given, float)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise ModelError(f"{where} is {quoted(value)}, needs numbers") from None


def _converted(given: Any) -> Array:
    """An array of any class as one of floats; what is no real number is a TypeError."""
    if given.dtype.kind not in "iufO":
        raise TypeError
    if any(isinstance(x, _NO_NUMBERS) or hasattr(x, "mask") for x in given.flat):
        raise TypeError
    with np.errstate(all="ignore"):
        return given.astype(float)


def numbers(where: str, value: object, shape: tuple[int, ...]) -> Floats:
    """The value as an array of finite numbers of this shape."""
    given = array(where, value)
    if given.shape != shape:
        raise ModelError(f"{where} has shape {given.shape}, needs {shape}")
    if not np.isfinite(given).all():
        raise ModelError(f"{where} is {quoted(given.tolist())}, but every number must be finite")
    return given


def number(where: str, value: object) -> float:
    """The value as one finite number."""
    if type(value) is float and math.isfinite(value):
        return value
    return float(numbers(where, value, ()))


def stacked(
    where: Callable[[int], str], values: Sequence[object], shape: tuple[int, ...]
) -> Floats:
    """The values as one array (n, *shape); each must consist of finite numbers of this shape.

    `where(i)` says in messages which value is wrong.
    """
    try:
        given = array("", np.array(values, dtype=object))
    except ValueError:
        given = np.zeros(0)
    if given.shape == (len(values), *shape) and np.isfinite(given).all():
        return given
    rows = [numbers(where(i), value, shape) for i, value in enumerate(values)]
    return np.array(rows, float).reshape(-1, *shape)


def of_class(where: str, value: object, *classes: type) -> None:
    """Check that the value is an instance of one of the classes."""
    if not isinstance(value, classes):
        known = " or ".join(c.__name__ for c in classes)
        raise ModelError(f"{where} is {quoted(value)}, needs a {known}")


def pose(where: str, position: object, angles: object) -> Transform:
    """The pose with an origin and the roll, pitch and yaw of its axes."""
    origin = rot.scalars(numbers(f"{where}: position", position, (3,)))
    rpy = numbers(f"{where}: rpy", angles, (3,)).tolist()
    return Transform(rot.from_rpy(*rpy) if any(rpy) else rot.identity(), origin)


def symmetric(where: str, tensor: Floats) -> None:
    """Check that the 3 × 3 tensor is symmetric to rounding."""
    if np.abs(tensor / 2 - tensor.T / 2).max() > 5e-10 * np.abs(tensor).max():
        raise ModelError(f"{where} is not symmetric: {quoted(tensor.tolist(), 200)}")


def axes(where: str, kind: HingeKind, axis: object) -> tuple[Vector, ...]:
    """The unit axes of a hinge of this kind, from the axis or axes in the description."""
    if kind.axes == 0:
        return ()
    if axis is None:
        raise ModelError(f"{where} is {kind.name} and needs an axis")
    given = np.atleast_2d(array(f"{where}: axis", axis))
    numbers(f"{where}: axis", given, (kind.axes, 3))
    unit = [_unit(row) for row in given.tolist()]
    if None in unit:
        raise ModelError(f"{where} has a zero axis {quoted(axis)}")
    u = np.array(unit, float)
    if kind.name == "planar":
        second = np.cross(u[0], np.eye(3)[np.argmin(np.abs(u[0]))])
        second /= np.linalg.norm(second)
        u = np.stack((u[0], np.cross(second, u[0]), second))
    elif kind.axes == 2 and np.linalg.norm(np.cross(*u)) < 1e-9:
        raise ModelError(f"{where} is {kind.name}, but its two axes are parallel")
    return tuple(rot.scalars(x) for x in u)


def _unit(axis: list[float]) -> list[float] | None:
    """The vector of length one, None for a length below 1e-9; scaled by a power of two before it is
    squared, which must not overflow."""
    scale = math.ldexp(1.0, max(math.frexp(max(map(abs, axis)))[1] - 1, -1000))
    x, y, z = (a / scale for a in axis)
    length = math.sqrt(x * x + y * y + z * z)
    return None if length * scale < 1e-9 else [x / length, y / length, z / length]


def names(
    robot: str, bodies: Sequence[Body], hinges: Sequence[Hinge], frames: Sequence[Frame]
) -> None:
    """Check that every part has a name, and that names are unique."""
    checked_name("the robot", robot)
    welded = [w for body in bodies for w in body.welded]
    for what, plural, items in (
        ("body", "bodies", [*bodies, *welded]),
        ("hinge", "hinges", hinges),
        ("frame", "frames", frames),
    ):
        where = f"a {what} of robot {quoted(robot)}"
        seen: set[str] = set()
        for item in items:
            name = checked_name(where, item.name)
            if name == WORLD and what != "hinge":
                raise ModelError(f"a {what} is named {WORLD!r}, which is the root; rename it")
            if name in seen:
                raise ModelError(
                    f"two {plural} are named {quoted(name)}; names must differ (use a prefix)"
                )
            seen.add(name)


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
                raise ModelError(f"hinge {quoted(h.name)} has unknown {role} {quoted(name)}")
        if h.child in inboard:
            raise ModelError(
                f"body {quoted(h.child)} has two inboard hinges, {quoted(inboard[h.child].name)} "
                f"and {quoted(h.name)}; keep one, and close the loop with phipsi.Loop"
            )
        inboard[h.child] = h
    for f in frames:
        if not isinstance(f.body, str) or (f.body not in known and f.body != WORLD):
            raise ModelError(f"frame {quoted(f.name)} is on unknown body {quoted(f.body)}")
    for body in bodies:
        if body.name not in inboard:
            raise ModelError(
                f"body {quoted(body.name)} is not connected to the world; give it a hinge "
                "(kind 'free' to let it float)"
            )
    refuse_cycle("bodies form a cycle", {b.name: inboard[b.name].parent for b in bodies})
    return inboard


def mimics(hinges: Sequence[Hinge]) -> None:
    """Check that every mimic relation follows another hinge of the robot, and none goes round."""
    known = {h.name for h in hinges}
    followed: dict[str, str] = {}
    for h in hinges:
        if h.mimic is None:
            continue
        for key, value in (("multiplier", h.mimic.multiplier), ("offset", h.mimic.offset)):
            number(f"the mimic {key} of {quoted(h.name)}", value)
        followed[h.name] = leader = checked_name(f"the mimic of {quoted(h.name)}", h.mimic.joint)
        if leader not in known:
            raise ModelError(
                f"hinge {quoted(h.name)} mimics {quoted(leader)}, but no hinge has that name"
            )
    refuse_cycle("mimic relations form a cycle", followed)


def refuse_cycle(what: str, after: Mapping[str, str]) -> None:
    """Raise an error if following the names, each to the one after it, leads back to a name."""
    ended: set[str] = set()
    for name in after:
        path: dict[str, None] = {}
        while name in after and name not in ended:
            if name in path:
                raise ModelError(f"{what}: {_round(list(path), name)}")
            path[name] = None
            name = after[name]
        ended.update(path)


def _round(path: list[str], start: str) -> str:
    """The cycle at the end of a path, its first names and their number."""
    cycle = path[path.index(start) :]
    shown = [quoted(name) for name in cycle[:4]]
    if len(cycle) > 4:
        shown.append(f"{len(cycle) - 4:,} more")
    return " → ".join([*shown, quoted(start)])


def placements(where: Callable[[int], str], poses: Sequence[Transform]) -> None:
    """Check that each pose consists of a finite position and a rotation."""
    for i, pose in enumerate(poses):
        if not isinstance(pose, Transform):
            of_class(f"{where(i)}: placement", pose, Transform)
        if type(pose.position) is not np.ndarray or type(pose.rotation) is not np.ndarray:
            raise ModelError(f"{where(i)} has a placement without arrays; use Transform.of")
    stacked(lambda i: f"{where(i)}: position", [pose.position for pose in poses], (3,))
    R = stacked(lambda i: f"{where(i)}: rotation", [pose.rotation for pose in poses], (3, 3))
    error = np.abs(R @ R.swapaxes(1, 2) - np.eye(3)).max(axis=(1, 2))
    wrong = ~(error <= 1e-9) | (np.linalg.det(R) < 0)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ModelError(f"{where(i)} has a placement whose 3 × 3 matrix is no rotation")
