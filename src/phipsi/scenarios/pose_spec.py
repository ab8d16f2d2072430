"""Poses and coordinates of hinges as scenarios write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from phipsi.scenarios.toml_reader import At, Table, named, number, numbers, table, text
from phipsi.spatial import rotation as rot

VECTOR = numbers(3)


@dataclass(frozen=True, kw_only=True)
class PoseSpec(Table):
    """A pose: absolute by `position` [m] and a rotation (`rpy`, `rpy_deg` about the fixed axes x,
    y, z in turn, or `quaternion` w, x, y, z), or moved from where it is at the start by
    `shift` [m] and by the rotation vector `turn` or `turn_deg`, both in the axes of the world."""

    position: Annotated[Any, VECTOR] = None
    rpy: Annotated[Any, VECTOR] = None
    rpy_deg: Annotated[Any, VECTOR] = None
    quaternion: Annotated[Any, numbers(4)] = None
    shift: Annotated[Any, VECTOR] = None
    turn: Annotated[Any, VECTOR] = None
    turn_deg: Annotated[Any, VECTOR] = None

    def pose(self, start: np.ndarray) -> np.ndarray:
        """(4, 4); what is not said is as at the start (4, 4)."""
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
    """The same, moved from where `frame` is at the start."""

    frame: Annotated[str | None, text] = None


POSE = table(PoseSpec)


def coordinates(value: Any, at: At) -> Any:
    """The coordinates of a hinge: a number, a list of numbers, or the pose of a free one."""
    if isinstance(value, dict):
        return POSE(value, at)
    return numbers(*range(1, 8))(value, at) if isinstance(value, list) else number()(value, at)


HINGES = named(coordinates)
