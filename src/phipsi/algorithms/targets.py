"""What inverse kinematics is asked for, checked, and what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import index
from typing import Any, NamedTuple

import numpy as np

from phipsi.compile import as_numbers, is_traced
from phipsi.conventions import WORLD
from phipsi.model import Robot
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot
from phipsi.sweeps import forest, local, total

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
SHOWN = 5
"""Rows of a batch that a report tells of."""


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


# ---- the answer ---------------------------------------------------------------------------------


class Found(NamedTuple):
    """Configurations q (…, nq); whether all targets are reached, (…); what is missed of each in
    position [m] and in rotation [rad], (…, nf); the iterations that it took, (…)."""

    q: Any
    reached: Any
    position_error: Any
    rotation_error: Any
    iterations: Any


class Solution(Found):
    """What `inverse_kinematics` found: `q` (…, nq), `reached` (…), `position_error` (…, nf) [m],
    `rotation_error` (…, nf) [rad], `iterations` (…) of all starts together."""

    problem: Problem | None = None

    def report(self) -> str:
        """What was reached and what was not, a sentence for each frame that misses its target."""
        if self.problem is None:
            raise ValueError(
                "report: only a Solution that inverse_kinematics returned outside a program has one"
            )
        batch = np.shape(self.reached)
        failed = [i for i in np.ndindex(*batch) if not self.reached[i]]
        if not failed:
            far, turn = (float(np.max(x, initial=0.0)) for x in self[2:4])
            return f"All targets are reached: errors are at most {far:.1e} m and {turn:.1e} rad."
        lines = [f"{len(failed)} of {np.size(self.reached)} rows miss a target."] if batch else []
        for i in failed[:SHOWN]:
            where = f"Row {i[0] if len(i) == 1 else i}: " if batch else ""
            lines += [where + text for text in self._misses(i, self.problem)]
        if len(failed) > SHOWN:
            lines.append(f"And {len(failed) - SHOWN} rows more.")
        return "\n".join(lines)

    def _misses(self, i: tuple[int, ...], asked: Problem) -> Iterator[str]:
        goals = np.broadcast_to(asked.targets, (*np.shape(self.reached), asked.targets.shape[-1]))
        for n, (name, rows) in enumerate(asked.tasks):
            far, turn = float(self.position_error[i][n]), float(self.rotation_error[i][n])
            if max(far, turn) > asked.tolerance:
                parts = [f"{far:.3g} m"] * any(rows[3:]) + [f"{turn:.3g} rad"] * any(rows[:3])
                text = f"{name!r} misses its target by {' and '.join(parts)}"
                at = goals[i][12 * n + 9 : 12 * n + 12]
                yield text + _why(asked, name, rows, at, self.q[i]) + "."


def _why(asked: Problem, name: str, rows: Rows, at: Any, q: Any) -> str:
    own = asked.robot.frame(name).body
    base, length = reach(asked.robot, name, asked.limits)
    distance = float(np.linalg.norm(at - base))
    if all(rows[3:]) and distance > length:
        return (
            f": it is out of reach, {distance:.3g} m from the base of the arm, from where the "
            f"frame can reach at most {length:.3g} m"
        )
    stuck = _at_limits(asked.robot, name, q) if asked.limits else []
    if stuck:
        return f"; at a limit: {', '.join(stuck)}"
    root = asked.robot.root
    near = [n for n, _ in asked.tasks if root(asked.robot.frame(n).body) == root(own)]
    hint = "other targets may contend with it" if len(near) > 1 else "try other q0 or restarts="
    return f"; no joint on the way to it stands at a limit; {hint}"


def _at_limits(robot: Robot, frame: str, q: Any) -> list[str]:
    """The hinges on the way to a frame that stand at a limit."""
    x = forest(robot, q).chain(robot.body_index(robot.frame(frame).body))
    near = 1e-9

    def stands(k: Any) -> dict[str, Any]:
        """q at its lower or upper limit"""
        own = np.asarray(k.q, float)
        at = (own <= np.asarray(k.hinge.lower) + near) | (own >= np.asarray(k.hinge.upper) - near)
        return {"at": [k.hinge.name] if at.any() else []}

    return total(local(stands, x), "at", [])


def reach(robot: Robot, frame: str, limits: bool) -> tuple[np.ndarray, float]:
    """Where the base of the arm to a frame is on the world, and how far from there the frame can
    be at most [m]: the sum of all links, of slides and of the frame's own offset."""
    fixed = robot.frame(frame)
    x = forest(robot, robot.neutral()).chain(robot.body_index(fixed.body))
    base = np.array(x.roots[0].hinge.placement.position, float)

    def link(k: Any) -> dict[str, Any]:
        """|l| + travel"""
        return {"length": _norm(k.hinge.placement.position) + _travel(k.hinge, limits)}

    offset = _norm(fixed.placement.position) - _norm(base)
    return base, total(local(link, x), "length", 0.0) + offset


def _norm(x: Any) -> float:
    return float(np.linalg.norm(np.asarray(x, float)))


def _travel(h: Any, limits: bool) -> float:
    """How far a hinge can move the origin of its child [m]."""
    if h.kind.name == "free":
        return np.inf
    pitch = abs(h.pitch) if h.kind.name == "helical" else 0.0
    per = np.array([pitch if angle else 1.0 for angle in h.kind.angles])
    most = np.maximum(np.abs(h.lower), np.abs(h.upper)) if limits else np.full(h.kind.nq, np.inf)
    return float(sum(a * b for a, b in zip(per, most, strict=False) if a))
