"""The problem of inverse kinematics: targets, rows and weights of frames, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from phipsi.compile import as_numbers, is_traced
from phipsi.conventions import WORLD
from phipsi.model import Robot
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot

Rows = tuple[bool, ...]
Tasks = tuple[tuple[str, Rows], ...]
"""Frames by name, and which of the six rows [angular; linear] of each count."""

ROWS: dict[str, Rows] = {
    "pose": (True,) * 6,
    "position": (False,) * 3 + (True,) * 3,
    "orientation": (True,) * 3 + (False,) * 3,
    "pointing": (True, True, False, True, True, True),
    "direction": (True, True, False, False, False, False),
}
"""Choices of rows by name: "pointing" brings the frame's z-axis and origin to the target's and
leaves the rotation about z free, "direction" brings the z-axis alone."""

ORTHOGONAL = 1e-6
"""Largest deviation of a rotation matrix from one."""


@dataclass(frozen=True)
class Problem:
    """Frames and their rows, targets (…, 12 nf) (rotation by rows, position), weights (…, 6 nf)."""

    robot: Robot
    tasks: Tasks
    targets: Any
    weights: Any
    limits: bool
    tolerance: Any

    def configuration(self, name: str, q: Any) -> np.ndarray:
        """Configurations (…, nq) that are given, checked."""
        robot, array = self.robot, as_numbers(f"inverse_kinematics: {name}", q).astype(float)
        if array.shape[-1:] != (robot.nq,):
            raise ValueError(
                f"inverse_kinematics: {name} has shape {array.shape}, needs (..., {robot.nq})"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"inverse_kinematics: {name} has numbers that are not finite")
        return array


def problem(
    robot: Robot, targets: Any, rows: Any, weights: Any, limits: Any, tolerance: Any
) -> Problem:
    """The problem that arguments of `inverse_kinematics` state."""
    if not isinstance(robot, Robot):
        raise TypeError(f"inverse_kinematics: robot is a {type(robot).__name__}, needs a Robot")
    if not isinstance(targets, Mapping) or not targets:
        raise ValueError("inverse_kinematics: targets is empty or no mapping, needs {frame: pose}")
    if not isinstance(limits, (bool, np.bool_)):
        raise ValueError(f"inverse_kinematics: limits is {limits!r}, needs True or False")
    rows, weights = _named("rows", rows, targets), _named("weights", weights, targets)
    positive("tolerance", tolerance)
    tasks, places, weighed = [], dict[str, Any](), dict[str, Any]()
    for name, pose in targets.items():
        if robot.frame(name).body == WORLD:
            raise ValueError(f"targets[{name!r}]: that frame is fixed to the world")
        places[name], turned = _placed(name, pose)
        tasks.append((name, _rows(name, rows.get(name), turned)))
        weighed[name] = _weight(name, weights.get(name, 1.0))
    own = _joined(weighed) if weights else None
    return Problem(robot, tuple(tasks), _joined(places), own, bool(limits), tolerance)


def _named(what: str, given: Any, targets: Mapping[str, Any]) -> Mapping[str, Any]:
    """An option by frame: nothing, or a mapping of frames that have a target."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(
            f"inverse_kinematics: {what} is {given!r}, needs a mapping {{frame: {what}}}"
        )
    for name in given:
        if name not in targets:
            known = ", ".join(targets)
            raise ValueError(f"{what}[{name!r}]: that frame has no target; targets: {known}")
    return given


def count(name: str, x: Any, least: int = 0) -> int:
    """A whole number that a search is told."""
    try:
        whole = least - 1 if isinstance(x, (bool, np.bool_)) else index(x)
    except TypeError:
        whole = least - 1
    if whole < least:
        raise ValueError(
            f"inverse_kinematics: {name} is {x!r}, needs a whole number of at least {least}"
        )
    return whole


def positive(name: str, x: Any) -> None:
    """Check a positive number that a search is told."""
    if is_traced(x):
        return
    number = np.ndim(x) == 0 and np.asarray(x).dtype.kind in "fiu"
    if not number or not 0.0 < x < np.inf:
        raise ValueError(f"inverse_kinematics: {name} is {x!r}, needs a positive number")


def common_batch(shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The batch shape that all of these go together to."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        text = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"inverse_kinematics: batch shapes do not go together: {text}") from None


def _joined(parts: Mapping[str, Any]) -> Any:
    """One row (…, n) of the rows of all frames."""
    if any(map(is_traced, parts.values())):
        return np.concatenate(list(parts.values()))
    batch = common_batch({name: x.shape[:-1] for name, x in parts.items()})
    whole = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in parts.values())
    return np.concatenate([*whole], -1)


def _rows(name: str, rows: Any, whole: bool) -> Rows:
    """The rows that count; of a position alone the linear ones."""
    if rows is None:
        return ROWS["pose" if whole else "position"]
    if isinstance(rows, str):
        if rows not in ROWS:
            raise ValueError(f"rows[{name!r}] is {rows!r}, not one of {', '.join(ROWS)}")
        chosen = ROWS[rows]
    else:
        given = np.asarray(rows)
        if given.shape != (6,) or not (np.isin(given, (0, 1)).all() and given.any()):
            raise ValueError(
                f"rows[{name!r}] is {rows!r}, needs six truth values [angular; linear], some true"
            )
        chosen = tuple(bool(x) for x in given)
    if any(chosen[:3]) and not whole:
        raise ValueError(f"targets[{name!r}] is a position alone, but its rows ask for a rotation")
    return chosen


def _weight(name: str, weight: Any) -> Any:
    """Six weights (…, 6) of a frame, from a number or six."""
    if is_traced(weight):
        return weight * np.ones(6)
    array = as_numbers(f"weights[{name!r}]", weight).astype(float)
    if array.ndim and array.shape[-1] != 6:
        raise ValueError(f"weights[{name!r}] has shape {array.shape}, needs a number or (..., 6)")
    if not (np.isfinite(array) & (array > 0.0)).all():
        raise ValueError(
            f"weights[{name!r}] has numbers that are not positive and finite; "
            "rows= leaves out what does not count"
        )
    return array * np.ones(6)


def _placed(name: str, pose: Any) -> tuple[Any, bool]:
    """A target as (…, 12), and whether it has a rotation."""
    if isinstance(pose, Transform):
        pose = pose.matrix
    traced = is_traced(pose)
    x = np.asanyarray(pose) if traced else as_numbers(f"targets[{name!r}]", pose).astype(float)
    if not traced and not np.isfinite(x).all():
        raise ValueError(f"targets[{name!r}] has numbers that are not finite")
    if x.shape[-2:] == (4, 4):
        R, p = x[..., :3, :3], x[..., :3, 3]
        if not traced:
            _check_rigid(name, x)
    elif x.shape[-1:] == (7,):
        p, quaternion = x[..., :3], np.moveaxis(x[..., 3:], -1, 0)
        if not traced and (np.abs(quaternion).max(0) == 0.0).any():
            raise ValueError(f"targets[{name!r}] has a quaternion of zero length")
        nine = [e * np.ones(x.shape[:-1]) for e in rot.from_quaternion(list(quaternion)).flat]
        R = np.stack(nine, -1).reshape((*x.shape[:-1], 3, 3))
    elif x.shape[-1:] == (3,):
        p, R = x, np.broadcast_to(np.eye(3), (*x.shape[:-1], 3, 3))
    else:
        raise ValueError(
            f"targets[{name!r}] has shape {x.shape}, needs (..., 4, 4) homogeneous, (..., 7) "
            "[position; quaternion w, x, y, z] or (..., 3) position"
        )
    flat = np.concatenate([R.reshape((*p.shape[:-1], 9)), p], -1)
    return flat, x.shape[-1] != 3


def _check_rigid(name: str, X: np.ndarray) -> None:
    R = X[..., :3, :3]
    off = np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max(initial=0.0)
    if off > ORTHOGONAL or (np.linalg.det(R) < 0.0).any():
        raise ValueError(
            f"targets[{name!r}] is no rigid pose: its 3 × 3 part is no rotation (RR* is off the "
            f"identity by {off:.1e}{'' if off > ORTHOGONAL else ', but det R = −1'})"
        )
    if np.abs(X[..., 3, :] - (0.0, 0.0, 0.0, 1.0)).max(initial=0.0) > ORTHOGONAL:
        raise ValueError(f"targets[{name!r}] is no rigid pose: its last row is not 0, 0, 0, 1")
