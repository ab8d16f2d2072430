"""The file format of phipsi: a robot as JSON, canonical and lossless.

    {"phipsi": 1, "name": ..., "gravity": [3 numbers],
     "bodies": [{"name": ..., "inertia": [10 numbers, see conventions.py],
                 "welded": [{"name", "inertia", "placement"}]}],
     "hinges": [{"name", "kind", "parent", "child", "placement", "axes": [unit vectors], "pitch",
                 "lower", "upper", "velocity", "effort", "armature", "damping", "stiffness", "rest",
                 "friction", "backlash": [numbers], "friction_speed",
                 "mimic": {"joint", "multiplier", "offset"}}],
     "frames": [{"name", "body", "placement"}]}

with placement = {"rotation": [9 numbers, row by row], "position": [3 numbers]}. `null` means no
limit. The inertia of a body includes that of the bodies welded to it; "welded" is optional. All
keys of a hinge after "child" are optional, except "axes" for kinds with axes (planar: normal,
first, second). Equal robots have equal texts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, cast

import numpy as np

from phipsi.conventions import GRAVITY
from phipsi.model import untrusted
from phipsi.model.builder import RobotBuilder, defaults
from phipsi.model.description import R, RobotDescription
from phipsi.model.errors import ModelError
from phipsi.model.hinge_checks import NO_LIMIT, PER_V
from phipsi.model.hinges import KINDS, REVERSED, HingeKind
from phipsi.model.parts import Body, Frame, Hinge, Mimic, WeldedBody
from phipsi.spatial import SpatialInertia, Transform
from phipsi.spatial import rotation as rot
from phipsi.typing import Array

VERSION = 1
"""The version of the format that this library writes and reads."""
MAX_VALUES = 8_000_000
"""The maximum number of values in a text."""

_KINDS: dict[str, HingeKind] = {**KINDS, **REVERSED}
_IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


def to_json(robot: RobotDescription) -> str:
    """The robot as canonical JSON text: deterministic and without rounding."""
    head = {"phipsi": VERSION, "name": robot.name, "gravity": _row(robot.gravity)}
    parts = {
        "bodies": [_body_row(b) for b in robot.bodies],
        "hinges": [_hinge_row(h) for h in robot.hinges],
        "frames": [
            {"name": f.name, "body": f.body, "placement": _placement_row(f.placement)}
            for f in robot.frames.values()
        ],
    }
    lines = [f'"{key}": {json.dumps(value)}' for key, value in head.items()]
    for key, rows in parts.items():
        listed = ",\n  ".join(json.dumps(row, allow_nan=False) for row in rows)
        lines.append(f'"{key}": [\n  {listed}]' if rows else f'"{key}": []')
    return "{" + ",\n ".join(lines) + "}\n"


def read_json(text: str | bytes, make: type[R], *, strict: bool = False) -> R:
    """The robot, of class `make`, that a JSON text describes; `strict` as in `Builder.build`."""
    root = _Object("the robot", _parsed(text))
    version = root.take("phipsi", None)
    if version != VERSION or isinstance(version, bool):
        raise ModelError(
            f"the robot has format version {untrusted.quoted(version)} under the key 'phipsi', but "
            f"this library reads version {VERSION}"
        )
    builder = RobotBuilder(make, root.name(), root.numbers("gravity", 3, list(GRAVITY)))
    for row in root.rows("bodies"):
        builder.bodies.append(_body(row))
    for row in root.rows("hinges"):
        builder.hinges.append(_hinge(row))
    for row in root.rows("frames"):
        builder.frames.append(Frame(row.name(), row.name("body"), row.placement()))
        row.done()
    root.done()
    return builder.build(strict=strict)


def _row(values: Iterable[Any] | Array) -> list[float | None]:
    """The values as floats, with −0 as 0 and infinities as None."""
    return [x + 0.0 if math.isfinite(x) else None for x in map(float, values)]


def _placement_row(placement: Transform) -> dict[str, Any]:
    return {
        "rotation": _row(placement.rotation.reshape(9)),
        "position": _row(placement.position),
    }


def _body_row(b: Body) -> dict[str, Any]:
    """The JSON object of a body."""
    row: dict[str, Any] = {"name": b.name, "inertia": _row(b.inertia.parameters)}
    if b.welded:
        row["welded"] = [
            {
                "name": w.name,
                "inertia": _row(w.inertia.parameters),
                "placement": _placement_row(w.placement),
            }
            for w in b.welded
        ]
    return row


def _body(row: _Object) -> Body:
    """The body that a JSON object describes."""
    name, inertia = row.name(), row.inertia()
    welded: list[WeldedBody] = []
    for part in row.rows("welded", f"{row.where}."):
        welded.append(WeldedBody(part.name(), part.inertia(), part.placement()))
        part.done()
    row.done()
    return Body(name, inertia, welded=tuple(welded))


def _hinge_row(h: Hinge) -> dict[str, Any]:
    """The JSON object of a hinge."""
    row: dict[str, Any] = {
        "name": h.name,
        "kind": h.kind.name,
        "parent": h.parent,
        "child": h.child,
        "placement": _placement_row(h.placement),
        "axes": [_row(axis) for axis in h.axes],
        "pitch": float(h.pitch),
        "lower": _row(h.lower),
        "upper": _row(h.upper),
        "rest": _row(h.rest),
    }
    row |= {key: _row(getattr(h, key)) for key in PER_V}
    row["friction_speed"] = float(h.friction_speed)
    if h.mimic is not None:
        row["mimic"] = {
            "joint": h.mimic.joint,
            "multiplier": float(h.mimic.multiplier),
            "offset": float(h.mimic.offset),
        }
    return row


def _hinge(row: _Object) -> Hinge:
    """The hinge that a JSON object describes."""
    name, kind_name = row.name(), row.name("kind")
    kind = _KINDS.get(kind_name)
    if kind is None:
        raise ModelError(
            f"{row.where}.kind is {untrusted.quoted(kind_name)}; known are {', '.join(_KINDS)}"
        )
    parent, child = row.name("parent"), row.name("child")
    placement = row.placement()
    axes = tuple(
        rot.scalars(_numbers(f"{row.where}.axes[{i}]", axis, 3))
        for i, axis in enumerate(row.items("axes", []))
    )
    values = dict(defaults(kind))
    values |= {key: row.value(key, values[key]) for key in values.keys() & row.left.keys()}
    mimic = None
    if (given := row.take("mimic", None)) is not None:
        m = _Object(f"{row.where}.mimic", given)
        mimic = Mimic(m.name("joint"), m.number("multiplier", 1.0), m.number("offset", 0.0))
        m.done()
    row.done()
    return Hinge(name, kind, parent, child, placement, axes, mimic=mimic, **values)


class _Object:
    """A JSON object from which keys are taken one by one.

    Every error message says `where` in the text the object is.
    """

    def __init__(self, where: str, value: object) -> None:
        if not isinstance(value, dict):
            raise ModelError(f"{where} is {untrusted.quoted(value)}, needs a JSON object")
        self.where = where
        self.left = dict(cast("dict[str, object]", value))

    def take(self, key: str, default: object = ...) -> object:
        """Remove a key and return its value; without a default the key is required."""
        value = self.left.pop(key, default)
        if value is ...:
            raise ModelError(f"{self.where} lacks the key {key!r}")
        return value

    def done(self) -> None:
        """Raise an error if there are keys that were not taken."""
        if self.left:
            unknown = untrusted.quoted(next(iter(self.left)))
            raise ModelError(f"{self.where} has the unknown key {unknown}; remove it")

    def name(self, key: str = "name") -> str:
        """The name under a key."""
        return untrusted.name(f"{self.where}.{key}", self.take(key))

    def number(self, key: str, default: float) -> float:
        """The number under a key."""
        return _numbers(f"{self.where}.{key}", [self.take(key, default)], 1)[0]

    def value(self, key: str, default: Array | float) -> Array | float:
        """The number under a key, or the numbers as an array, as many as the default has.

        Of a limit, null means that there is none. An array that equals the default is the default
        itself, so that hinges share it.
        """
        if not isinstance(default, np.ndarray):
            return self.number(key, default)
        given = self.items(key)
        if key in NO_LIMIT:
            given = [NO_LIMIT[key] if x is None else x for x in given]
        array = np.array(_numbers(f"{self.where}.{key}", given, len(default)), float)
        array.flags.writeable = False
        return default if array.tobytes() == default.tobytes() else array

    def numbers(self, key: str, size: int, default: object = ...) -> list[float]:
        """The list of `size` numbers under a key."""
        return _numbers(f"{self.where}.{key}", self.take(key, default), size)

    def items(self, key: str, default: object = ...) -> list[object]:
        """The list under a key."""
        value = self.take(key, default)
        if not isinstance(value, list):
            raise ModelError(f"{self.where}.{key} is {untrusted.quoted(value)}, needs a list")
        return cast("list[object]", value)

    def rows(self, key: str, prefix: str = "") -> Iterator[_Object]:
        """The objects of the list under a key; `prefix` precedes it in error messages."""
        values = self.items(key, [])
        untrusted.bounded(f"{prefix}{key}", len(values))
        for i, value in enumerate(values):
            yield _Object(f"{prefix}{key}[{i}]", value)

    def inertia(self) -> SpatialInertia:
        """The inertia under the key "inertia"."""
        return SpatialInertia.of_parameters(rot.scalars(self.numbers("inertia", 10)))

    def placement(self) -> Transform:
        """The pose under the key "placement", by default the identity."""
        pose = _Object(f"{self.where}.placement", self.take("placement", {}))
        rotation = pose.numbers("rotation", 9, list(_IDENTITY))
        position = pose.numbers("position", 3, [0.0, 0.0, 0.0])
        pose.done()
        return Transform(rot.scalars(rotation).reshape(3, 3), rot.scalars(position))


def _numbers(where: str, value: object, size: int) -> list[float]:
    """The value, if it is a list of `size` numbers."""
    items = cast("list[object]", value)
    if not isinstance(items, list) or len(items) != size:
        raise ModelError(f"{where} is {untrusted.quoted(items)}, needs a list of {size} numbers")
    for x in items:
        if not isinstance(x, float):
            raise ModelError(f"{where} has {untrusted.quoted(x)}, which is not a number")
    return cast("list[float]", items)


def _parsed(text: str | bytes) -> object:
    """The value of a JSON text, in which all numbers are floats."""
    text = untrusted.decoded(text)
    if text.count(",") > MAX_VALUES:
        raise ModelError(f"the robot has more than {MAX_VALUES:,} values")

    def number(token: str) -> float:
        return untrusted.number("a number of the robot", token)

    try:
        return json.loads(
            text, parse_float=number, parse_int=number, parse_constant=number,
            object_pairs_hook=_unique,
        )  # fmt: skip
    except RecursionError:
        raise ModelError("the robot is nested too deeply to be one") from None
    except json.JSONDecodeError as error:
        raise ModelError(f"the robot is not JSON: {error}") from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The JSON object with these keys and values; a repeated key is an error."""
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise ModelError(f"the robot has the key {untrusted.quoted(key)} twice in one object")
        result[key] = value
    return result
