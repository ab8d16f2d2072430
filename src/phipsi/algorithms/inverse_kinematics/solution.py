"""The solution of inverse kinematics, and the report of why targets are missed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from phipsi.algorithms.inverse_kinematics.problem import Problem, Rows
from phipsi.model import Hinge, Robot
from phipsi.sweeps import Record, forest, local, total
from phipsi.typing import Array, Configuration, Scalar, Vector3

SHOWN = 5
"""The most rows of a batch that a report describes."""


class Found(NamedTuple):
    """The fields of a `InverseKinematicsSolution`."""

    q: Configuration
    """(…, nq): configurations."""
    reached: Scalar
    """(…): whether all targets are reached; inside a program 1 or 0."""
    position_error: Annotated[Array, "nf"]
    """(…, nf): distance of each frame from its target [m]."""
    rotation_error: Annotated[Array, "nf"]
    """(…, nf): angle between each frame and its target [rad]."""
    iterations: Scalar
    """(…): iterations of all starts together."""


class InverseKinematicsSolution(Found):
    """What `inverse_kinematics` found.

    `q` (…, nq) are configurations; `reached` (…) says whether all targets are reached;
    `position_error` (…, nf) [m] and `rotation_error` (…, nf) [rad] are the errors of each frame in
    the rows that count; `iterations` (…) are those of all starts together.
    """

    problem: Problem | None = None
    """What was solved; None inside a program."""

    def report(self) -> str:
        """What was reached: one sentence for each frame that misses its target, with the reason.

        Returns
        -------
        str
            Sentences, one a line.

        Raises
        ------
        ValueError
            If the solution was made inside a program.
        """
        if self.problem is None:
            raise ValueError(
                "report: only a solution that inverse_kinematics returned outside a program has one"
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

    def _misses(self, i: tuple[int, ...], problem: Problem) -> Iterator[str]:
        """A sentence for each frame that misses its target in row i."""
        goals = np.broadcast_to(
            problem.targets, (*np.shape(self.reached), problem.targets.shape[-1])
        )
        for n, (name, rows) in enumerate(problem.tasks):
            far, turn = float(self.position_error[i][n]), float(self.rotation_error[i][n])
            if max(far, turn) > problem.tolerance:
                parts = [f"{far:.3g} m"] * any(rows[3:]) + [f"{turn:.3g} rad"] * any(rows[:3])
                text = f"{name!r} misses its target by {' and '.join(parts)}"
                at = goals[i][12 * n + 9 : 12 * n + 12]
                yield text + _why(problem, name, rows, at, self.q[i]) + "."


def _why(problem: Problem, name: str, rows: Rows, at: Vector3, q: Configuration) -> str:
    """The rest of the sentence: why the frame `name` misses its target, whose position is `at`."""
    own = problem.robot.frame(name).body
    base, length = reach(problem.robot, name, problem.limits)
    distance = float(np.linalg.norm(at - base))
    if all(rows[3:]) and distance > length:
        return (
            f": it is out of reach, {distance:.3g} m from the base of the arm, from where the "
            f"frame can reach at most {length:.3g} m"
        )
    stuck = _at_limits(problem.robot, name, q) if problem.limits else []
    if stuck:
        return f"; at a limit: {', '.join(stuck)}"
    root = problem.robot.root
    near = [n for n, _ in problem.tasks if root(problem.robot.frame(n).body) == root(own)]
    hint = "other targets may contend with it" if len(near) > 1 else "try other q0 or restarts="
    return f"; no joint on the way to it stands at a limit; {hint}"


def _at_limits(robot: Robot, frame: str, q: Configuration) -> list[str]:
    """The names of the hinges between the world and a frame that are at a limit."""
    x = forest(robot, q).chain(robot.body_index(robot.frame(frame).body))
    near = 1e-9

    def name_if_at_limit(k: Record) -> dict[str, Any]:
        """q at its lower or upper limit"""
        own = np.asarray(k.q, float)
        at = (own <= np.asarray(k.hinge.lower) + near) | (own >= np.asarray(k.hinge.upper) - near)
        return {"at": [k.hinge.name] if at.any() else []}

    return total(local(name_if_at_limit, x), "at", [])


def reach(robot: Robot, frame: str, limits: bool) -> tuple[Vector3, float]:
    """The position of the base of the arm that carries a frame, in the world, and the largest
    distance of the frame from there [m]: the lengths of all links, the travel of slides and the
    frame's own offset, summed."""
    fixed = robot.frame(frame)
    x = forest(robot, robot.neutral()).chain(robot.body_index(fixed.body))
    base = np.array(x.roots[0].hinge.placement.position, float)

    def link(k: Record) -> dict[str, Any]:
        """|l| + travel"""
        return {"length": _norm(k.hinge.placement.position) + _travel(k.hinge, limits)}

    offset = _norm(fixed.placement.position) - _norm(base)
    return base, total(local(link, x), "length", 0.0) + offset


def _norm(x: Array) -> float:
    """The Euclidean length of a vector of numbers."""
    return float(np.linalg.norm(np.asarray(x, float)))


def _travel(h: Hinge, limits: bool) -> float:
    """The largest distance by which a hinge can move the origin of its child [m]."""
    if h.kind.name == "free":
        return np.inf
    pitch = abs(h.pitch) if h.kind.name == "helical" else 0.0
    per = np.array([pitch if angle else 1.0 for angle in h.kind.angles])
    most = np.maximum(np.abs(h.lower), np.abs(h.upper)) if limits else np.full(h.kind.nq, np.inf)
    return float(sum(a * b for a, b in zip(per, most, strict=False) if a))
