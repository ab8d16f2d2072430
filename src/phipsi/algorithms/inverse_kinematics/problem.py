"""The problem that inverse kinematics solves: arguments are checked, and brought to arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import numpy as np

from phipsi.arguments import a_class
from phipsi.compile import as_numbers, is_traced
from phipsi.conventions import WORLD
from phipsi.model import Robot
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot
from phipsi.typing import Array, ArrayLike, Configuration, ConfigurationLike

Rows = tuple[bool, ...]
"""Which of the six rows [angular; linear] of an error count."""
Task = tuple[str, Rows]
"""The name of a frame, and its rows that count."""
Tasks = tuple[Task, ...]

Target = ArrayLike | Transform
"""A target: (…, 4, 4) homogeneous, a `Transform`, (…, 7) [position; quaternion], or (…, 3)
position."""
RowsName = Literal["pose", "position", "orientation", "pointing", "direction"]
RowsLike = RowsName | Annotated[ArrayLike, "6"]
"""The name of a choice of rows, or six truth values."""

T = TypeVar("T")

ROWS: dict[RowsName, Rows] = {
    "pose": (True,) * 6,
    "position": (False,) * 3 + (True,) * 3,
    "orientation": (True,) * 3 + (False,) * 3,
    "pointing": (True, True, False, True, True, True),
    "direction": (True, True, False, False, False, False),
}
"""The rows of each name. "pointing" brings the frame's z-axis and origin to those of the target and
leaves the rotation about z free, "direction" brings the z-axis only."""

ORTHOGONAL = 1e-6
"""Largest deviation of RR* from the identity, and of the last row of a pose from 0, 0, 0, 1."""


@dataclass(frozen=True)
class Problem:
    """What `inverse_kinematics` is asked to solve, after all checks."""

    robot: Robot
    tasks: Tasks
    targets: Annotated[Array, "12nf"]
    """Of each frame one after the other the rotation row by row and the position, (…, 12 nf)."""
    weights: Annotated[Array, "6nf"] | None
    """Of each frame one after the other the weights of the six rows, (…, 6 nf)."""
    limits: bool
    tolerance: float
    """Inside a program it may be traced."""

    def configuration(self, name: str, q: ConfigurationLike) -> Configuration:
        """The argument `name` as an array of configurations (…, nq), or one sentence."""
        robot, array = self.robot, as_numbers(f"inverse_kinematics: {name}", q).astype(float)
        if array.shape[-1:] != (robot.nq,):
            raise ValueError(
                f"inverse_kinematics: {name} has shape {array.shape}, needs (..., {robot.nq})"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"inverse_kinematics: {name} has numbers that are not finite")
        return array


def checked_problem(
    robot: Robot,
    targets: Mapping[str, Target],
    rows: Mapping[str, RowsLike] | None,
    weights: Mapping[str, ArrayLike] | None,
    limits: bool,
    tolerance: float,
) -> Problem:
    """The problem that the arguments of `inverse_kinematics` describe, or one sentence."""
    if not isinstance(robot, Robot):
        raise TypeError(f"inverse_kinematics: robot is {a_class(robot)}, needs a Robot")
    if not isinstance(targets, Mapping) or not targets:
        raise ValueError("inverse_kinematics: targets is empty or no mapping, needs {frame: pose}")
    if type(limits) not in (bool, np.bool_):
        raise ValueError(f"inverse_kinematics: limits is {limits!r}, needs True or False")
    own_rows, own_weights = _by_frame("rows", rows, targets), _by_frame("weights", weights, targets)
    positive("tolerance", tolerance)
    tasks = list[Task]()
    flat_targets, flat_weights = dict[str, Array](), dict[str, Array]()
    for name, pose in targets.items():
        if robot.frame(name).body == WORLD:
            raise ValueError(f"targets[{name!r}]: that frame is fixed to the world")
        flat_targets[name], has_rotation = _flat_target(name, pose)
        tasks.append((name, _rows(name, own_rows.get(name), has_rotation)))
        flat_weights[name] = _weight(name, own_weights.get(name, 1.0))
    w = _joined(flat_weights) if own_weights else None
    return Problem(robot, tuple(tasks), _joined(flat_targets), w, bool(limits), tolerance)


def _by_frame(
    option: str, given: Mapping[str, T] | None, targets: Mapping[str, Target]
) -> Mapping[str, T]:
    """The values of an option for each frame, if all of these frames have a target."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(
            f"inverse_kinematics: {option} is {given!r}, needs a mapping {{frame: {option}}}"
        )
    for name in given:
        if name not in targets:
            known = ", ".join(targets)
            raise ValueError(f"{option}[{name!r}]: that frame has no target; targets: {known}")
    return given


def positive(name: str, x: float) -> None:
    """Refuse an argument `name` that is no positive number; a traced one is not known yet."""
    if is_traced(x):
        return
    given: Any = x
    number = np.ndim(given) == 0 and np.asarray(given).dtype.kind in "fiu"
    if not number or not 0.0 < x < np.inf:
        raise ValueError(f"inverse_kinematics: {name} is {x!r}, needs a positive number")


def common_batch(shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The batch shape that all of these broadcast to, or one sentence."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        text = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"inverse_kinematics: batch shapes do not go together: {text}") from None


def _joined(parts: Mapping[str, Array]) -> Array:
    """The arrays (…, n) of all frames, joined along the last axis."""
    if any(map(is_traced, parts.values())):
        return np.concatenate(list(parts.values()))
    batch = common_batch({name: x.shape[:-1] for name, x in parts.items()})
    whole = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in parts.values()]
    return np.concatenate(whole, -1)


def _rows(name: str, rows: RowsLike | None, has_rotation: bool) -> Rows:
    """The rows of a frame that count: by default all, or the linear ones if the target is a
    position."""
    if rows is None:
        return ROWS["pose" if has_rotation else "position"]
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
    if any(chosen[:3]) and not has_rotation:
        raise ValueError(f"targets[{name!r}] is a position alone, but its rows ask for a rotation")
    return chosen


def _weight(name: str, weight: ArrayLike) -> Annotated[Array, "6"]:
    """The weights of the six rows of a frame, which are given as one number or as six."""
    if is_traced(weight):
        traced: Any = weight
        return traced * np.ones(6)
    array = as_numbers(f"weights[{name!r}]", weight).astype(float)
    if array.ndim and array.shape[-1] != 6:
        raise ValueError(f"weights[{name!r}] has shape {array.shape}, needs a number or (..., 6)")
    if not (np.isfinite(array) & (array > 0.0)).all():
        raise ValueError(
            f"weights[{name!r}] has numbers that are not positive and finite; "
            "rows= leaves out what does not count"
        )
    return array * np.ones(6)


def _flat_target(name: str, target: Target) -> tuple[Annotated[Array, "12"], bool]:
    """A target as its rotation row by row and its position; and whether it has a rotation."""
    pose = target.matrix if isinstance(target, Transform) else target
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


def _check_rigid(name: str, X: Array) -> None:
    """Refuse homogeneous matrices (…, 4, 4) that are no rigid poses."""
    R = X[..., :3, :3]
    off = np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max(initial=0.0)
    if off > ORTHOGONAL or (np.linalg.det(R) < 0.0).any():
        raise ValueError(
            f"targets[{name!r}] is no rigid pose: its 3 × 3 part is no rotation (RR* is off the "
            f"identity by {off:.1e}{'' if off > ORTHOGONAL else ', but det R = −1'})"
        )
    if np.abs(X[..., 3, :] - (0.0, 0.0, 0.0, 1.0)).max(initial=0.0) > ORTHOGONAL:
        raise ValueError(f"targets[{name!r}] is no rigid pose: its last row is not 0, 0, 0, 1")
