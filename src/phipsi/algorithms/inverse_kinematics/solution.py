"""The solution of inverse kinematics, and the report of why targets are missed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms.inverse_kinematics.problem import Problem, Rows
from phipsi.model import Robot
from phipsi.sweeps import forest, local, total

SHOWN = 5
"""Rows of a batch that a report tells of."""


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
