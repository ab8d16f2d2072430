"""Poses and coordinates of hinges in scenario files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np

from phipsi.scenarios.toml_reader import At, Table, TomlValue, named, number, numbers, table, text
from phipsi.spatial import rotation as rot
from phipsi.typing import Pose

VECTOR = numbers(3)


@dataclass(frozen=True, kw_only=True)
class PoseSpec(Table):
    """A pose: absolute by `position` [m] and a rotation (`rpy`, `rpy_deg` about the fixed axes x,
    y, z in turn, or `quaternion` w, x, y, z), or relative to the pose at the start by `shift` [m]
    and by the rotation vector `turn` or `turn_deg`, both in the axes of the world."""

    position: Annotated[tuple[float, ...] | None, VECTOR] = None
    rpy: Annotated[tuple[float, ...] | None, VECTOR] = None
    rpy_deg: Annotated[tuple[float, ...] | None, VECTOR] = None
    quaternion: Annotated[tuple[float, ...] | None, numbers(4)] = None
    shift: Annotated[tuple[float, ...] | None, VECTOR] = None
    turn: Annotated[tuple[float, ...] | None, VECTOR] = None
    turn_deg: Annotated[tuple[float, ...] | None, VECTOR] = None

    def pose(self, start: Pose) -> Pose:
        """The pose; position or rotation are those of `start` if they are not given."""
        out = np.array(start, float)
        for keys in (("position", "shift"), ("rpy", "rpy_deg", "quaternion", "turn", "turn_deg")):
            given = [name for name in keys if getattr(self, name) is not None]
            if len(given) > 1:
                raise (self.where / given[1]).wrong(f"and {given[0]} exclude each other; drop one")
        if self.quaternion is not None and not np.linalg.norm(self.quaternion) > 1e-6:
            raise (self.where / "quaternion").wrong("is zero, which is no rotation")
        turn = self.turn if self.turn_deg is None else np.radians(self.turn_deg)
        rpy = self.rpy if self.rpy_deg is None else np.radians(self.rpy_deg)
        if self.quaternion is not None:
            out[:3, :3] = rot.from_quaternion(rot.scalars(self.quaternion))
        elif rpy is not None:
            out[:3, :3] = rot.from_rpy(*rpy)
        elif turn is not None:
            out[:3, :3] = rot.from_quaternion(rot.exp(rot.scalars(turn))) @ out[:3, :3]
        out[:3, 3] = out[:3, 3] if self.position is None else self.position
        out[:3, 3] += (0.0, 0.0, 0.0) if self.shift is None else self.shift
        return out


@dataclass(frozen=True, kw_only=True)
class RelativePoseSpec(PoseSpec):
    """A pose that may be relative to the pose of `frame` at the start."""

    frame: Annotated[str | None, text] = None


POSE = table(PoseSpec)
Coordinates: TypeAlias = float | tuple[float, ...] | PoseSpec
"""The coordinates of a hinge as they are written."""


def coordinates(value: TomlValue, at: At) -> Coordinates:
    """The coordinates of a hinge: a number, a list of numbers, or the pose of a free one."""
    if isinstance(value, dict):
        return POSE(value, at)
    return numbers(*range(1, 8))(value, at) if isinstance(value, list) else number()(value, at)


HINGES = named(coordinates)
