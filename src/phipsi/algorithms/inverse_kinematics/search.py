"""Inverse kinematics of a batch: Newton iterations, restarted from other configurations if they
fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from phipsi.algorithms.inverse_kinematics.newton import Descent, descend, sum_outboard
from phipsi.algorithms.inverse_kinematics.problem import (
    Problem,
    RowsLike,
    Target,
    checked_problem,
    common_batch,
    positive,
)
from phipsi.algorithms.inverse_kinematics.solution import InverseKinematicsSolution
from phipsi.arguments import as_count
from phipsi.compile import current
from phipsi.model import Robot
from phipsi.sweeps import forest
from phipsi.typing import (
    Array,
    ArrayLike,
    Configuration,
    ConfigurationLike,
    JointVector,
    Scalar,
)

CHUNK = 6
"""Iterations after which rows that have arrived, or make no progress, leave the batch."""
PROGRESS = 0.3
"""A start is abandoned if a chunk leaves more than this fraction of the energy."""
LANES = 16
"""Rows that take hardly longer than one: if fewer are left, several starts of each are tried at
once, up to this number of rows."""
FEW = 4
"""How many of the closest ends of a row that never arrived are refined."""
DAMPINGS = np.array([0.03, 0.3, 3.0, 30.0])
"""Factors of the damping that are tried at once in the refinement."""
LEVEL, STIFF, APPROACH = 1e-6, 1e6, 5
"""The refinement of a row ends if a chunk reduces its energy by less than the fraction LEVEL, if
its damping reaches STIFF, or after APPROACH times the iterations of a start."""
STRIDES = (1e3, 0.3)
"""The longest steps toward a posture [rad, m], tried one after the other: long steps may find a
closer branch of solutions, short steps stay on the branch where the row is."""
LOOSE = 0.3
"""Fraction of a random displacement that a start applies to freedoms which are not the rates of
coordinates, such as those of spherical and free hinges."""


def inverse_kinematics(
    robot: Robot,
    q0: ConfigurationLike,
    targets: Mapping[str, Target],
    *,
    rows: Mapping[str, RowsLike] | None = None,
    weights: Mapping[str, ArrayLike] | None = None,
    posture: ConfigurationLike | None = None,
    limits: bool = True,
    tolerance: float = 1e-8,
    damping: float = 0.1,
    iterations: int = 60,
    restarts: int = 20,
    seed: int = 0,
) -> InverseKinematicsSolution:
    """Configurations q that bring frames to their targets: X_f(q) = X'_f, from q0 on ([SOA] 2).

    Each start makes at most `iterations` damped Newton steps (`descend`), until every frame is
    within `tolerance` of its target. Rows of the batch that fail start again from random
    configurations of the joints that move a frame with a target. If all starts of a row fail, the
    few closest ends are refined for up to five times the iterations of a start, and q is the
    closest configuration found. Trees of the robot are solved one after the other. A posture takes
    up to four times the iterations of a start in addition. Joints that mimic others move
    independently. Inside a program there is only one start. Cost O(N) a step.

    Parameters
    ----------
    robot
        The robot.
    q0 : (…, nq)
        Configuration of the first start.
    targets : {frame: target}
        Pose of each frame or body in the world: (…, 4, 4) homogeneous [m], a `Transform`, (…, 7)
        [position; quaternion w, x, y, z], or (…, 3), a position only.
    rows : {frame: name or (6,)}, optional
        Which rows of the error count: "pose" (all), "position", "orientation", "pointing"
        (position and z-axis; the rotation about z is free), "direction" (z-axis only), or six truth
        values [angular; linear] in the frame's own axes. Default: "pose", or "position" if the
        target is a position.
    weights : {frame: number or (…, 6)}, optional
        Positive weights of the rows, which matter where targets cannot all be reached. Default: 1.
    posture : (…, nq), optional
        Configuration that is approached, once the targets are reached, as far as they allow.
    limits
        Whether joints stay within their limits.
    tolerance
        Largest error of a frame that is at its target [m, rad].
    damping
        μ² of the steps over the squared error.
    iterations
        Most steps of a start.
    restarts
        Most random starts after the first one.
    seed
        Seed of the random starts, which are the same for every row.

    Returns
    -------
    InverseKinematicsSolution
        `q` (…, nq), `reached` (…), `position_error` and `rotation_error` (…, nf), `iterations` (…),
        and, outside programs, `report()`.

    Raises
    ------
    ValueError
        If an argument has a wrong shape or value, or a target is no rigid pose.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> arm = pp.robots.seven_axis_arm()
    >>> q, _ = arm.random_state(1, (100,))
    >>> found = pp.inverse_kinematics(arm, arm.neutral(), {"tool": pp.frame_pose(arm, q, "tool")})
    >>> bool(found.reached.all()), found.q.shape
    (True, (100, 7))
    >>> print(pp.inverse_kinematics(arm, arm.neutral(), {"tool": [0.0, 0.0, 9.0]}).report())
    'tool' misses its target by 6.6 m: it is out of reach, 9 m from the base of the arm, from where
    the frame can reach at most 2.4 m.
    """
    problem = checked_problem(robot, targets, rows, weights, limits, tolerance)
    positive("damping", damping)
    iterations = as_count("inverse_kinematics: iterations", iterations, 1)
    restarts = as_count("inverse_kinematics: restarts", restarts)
    seed = as_count("inverse_kinematics: seed", seed)
    if current() is not None:
        return traced_solution(problem, q0, posture, damping, iterations)
    search = Search.of(problem, q0, posture, damping, iterations)
    best = search.solve(restarts, seed)
    for stride in STRIDES if posture is not None else ():
        search.relax(best, stride)
    return search.solution(best)


def traced_solution(
    problem: Problem,
    q0: ConfigurationLike,
    posture: ConfigurationLike | None,
    damping: float,
    most: int,
) -> InverseKinematicsSolution:
    """The solution inside a program: one start; then toward the posture and back to the targets,
    which is kept in the rows where it arrives there."""

    def end(q: ConfigurationLike, posture: ConfigurationLike | None = None) -> Descent:
        """Where at most `most` iterations from q lead."""
        settings = np.array([problem.tolerance, damping, most, STRIDES[-1]])
        return descend(
            problem.robot, q, problem.targets, settings, problem.tasks, most, problem.limits,
            weights=problem.weights, posture=posture,
        )  # fmt: skip

    best = end(q0)
    if posture is not None:
        near = end(best.q, posture)
        back = end(near.q)
        n = best.iterations + near.iterations + back.iterations
        back_at_targets = back.arrived > 0.0
        best = Descent(*(np.where(back_at_targets, x, y) for x, y in zip(back, best, strict=True)))
        best = best._replace(iterations=n)
    return InverseKinematicsSolution(
        best.q, best.arrived, best.position, best.rotation, best.iterations
    )


@lru_cache(maxsize=64)
def random_starts(
    robot: Robot, frames: tuple[str, ...], count: int, seed: int
) -> tuple[Configuration, JointVector]:
    """Random configurations (count, nq); and (nv,) for each freedom the fraction of the way to them
    that a start goes, zero for freedoms that move none of the frames."""
    q, _ = robot.random_state(seed, (count,))
    x = forest(robot, robot.neutral(), x=np.zeros(robot.nv))
    moves = sum_outboard(x, dict.fromkeys(frames, 1.0)).astype(float) > 0.0
    return q, np.where(robot.rates < 0, LOOSE, 1.0) * moves


@dataclass(frozen=True)
class Search:
    """The search for the solutions of a problem, for all rows of a batch."""

    problem: Problem
    batch: tuple[int, ...]
    given: Mapping[str, Array]
    """"q0", "targets" and, if given, "weights" and "posture": each (rows, n), without the shape of
    the batch."""
    damping: float
    iterations: int

    @classmethod
    def of(
        cls,
        problem: Problem,
        q0: ConfigurationLike,
        posture: ConfigurationLike | None,
        damping: float,
        iterations: int,
    ) -> Search:
        """The search from q0, with all arguments broadcast to one batch."""
        given = {"q0": problem.configuration("q0", q0), "targets": problem.targets}
        if problem.weights is not None:
            given["weights"] = problem.weights
        if posture is not None:
            given["posture"] = problem.configuration("posture", posture)
        batch = common_batch({name: x.shape[:-1] for name, x in given.items()})
        whole = {name: np.broadcast_to(x, (*batch, x.shape[-1])) for name, x in given.items()}
        flat = {name: x.reshape(prod(batch), x.shape[-1]) for name, x in whole.items()}
        return cls(problem, batch, flat, damping, iterations)

    @property
    def start(self) -> Configuration:
        """The configurations of the first start, (rows, nq)."""
        return self.given["q0"]

    def part(self, own: Sequence[int], q: Configuration) -> Search:
        """The search from q with the tasks of the numbers `own` only."""

        def chosen(x: Array) -> Array:
            """The columns of these tasks."""
            each = np.split(x, len(self.problem.tasks), axis=1)
            return np.concatenate([each[i] for i in own], 1)

        each = {name: self.given[name] for name in ("targets", "weights") if name in self.given}
        given = {"q0": q} | {name: chosen(x) for name, x in each.items()}
        problem = replace(self.problem, tasks=tuple(self.problem.tasks[i] for i in own))
        return replace(self, problem=problem, given=given)

    def run(
        self,
        q: Configuration,
        row: Array,
        damping: float | Scalar,
        most: int,
        stride: float = 0.0,
    ) -> Descent:
        """A chunk of iterations from q for the rows of the numbers `row`, at most `most`; with a
        `stride` toward the posture."""
        names = ("weights", "posture") if stride else ("weights",)
        own = {name: self.given[name][row] for name in names if name in self.given}
        settings, problem = np.empty((len(row), 4)), self.problem
        settings[:, 0], settings[:, 1] = problem.tolerance, damping
        settings[:, 2], settings[:, 3] = most, stride
        targets = self.given["targets"][row]
        return descend(
            problem.robot, q, targets, settings, problem.tasks, CHUNK, problem.limits, **own
        )

    def solve(self, restarts: int, seed: int) -> Descent:
        """The closest configurations found. Trees of the robot share no joint, and so they are
        solved one after the other."""
        robot, trees = self.problem.robot, dict[str, list[int]]()
        for i, (name, _) in enumerate(self.problem.tasks):
            trees.setdefault(robot.root(robot.frame(name).body), []).append(i)
        if len(trees) == 1:
            return self.solve_tree(restarts, seed)
        q, ends = self.start, list[Descent]()
        for own in trees.values():
            ends.append(self.part(own, q).solve_tree(restarts, seed))
            q = ends[-1].q
        order = np.argsort(np.concatenate([*trees.values()]))
        return ends[-1]._replace(
            iterations=np.sum([x.iterations for x in ends], axis=0),
            arrived=np.min([x.arrived for x in ends], axis=0),
            position=np.concatenate([x.position for x in ends], 1)[:, order],
            rotation=np.concatenate([x.rotation for x in ends], 1)[:, order],
        )

    def solve_tree(self, restarts: int, seed: int) -> Descent:
        """The closest configurations found, if all tasks are in one tree."""
        best = self.iterate(self.start, np.arange(len(self.start)))
        if not best.arrived.all():
            self.approach(best, self.restart(best, restarts, seed))
        return best

    def iterate(self, q: Configuration, row: Array) -> Descent:
        """Chunks of iterations from q until each row has arrived or makes no more progress."""
        best = self.run(q, row, self.damping, self.iterations)
        going, before = np.arange(len(row)), np.full(len(row), np.inf)
        for left in range(self.iterations - CHUNK, 0, -CHUNK):
            now = best.rows(going)
            progress = (now.arrived == 0.0) & (now.energy <= PROGRESS * before[going])
            before[going] = now.energy
            going = going[progress]
            if not going.size:
                break
            best.put(going, self.run(best.q[going], row[going], self.damping, left))
        return best

    def restart(self, best: Descent, restarts: int, seed: int) -> list[tuple[Array, Descent]]:
        """Start the rows that have not arrived again, with several starts at once if they are few.

        A row keeps its first start that arrives, or else the closest one, so that its result does
        not depend on the other rows of the batch. Returns the ends of all starts, each with the
        numbers of its rows.
        """
        left = np.flatnonzero(best.arrived == 0.0)
        tried = [(left, best.rows(left))]
        robot, frames = self.problem.robot, tuple(name for name, _ in self.problem.tasks)
        fresh, fraction = random_starts(robot, frames, restarts, seed)
        while left.size and len(fresh):
            now, fresh = np.split(fresh, [max(1, LANES // left.size)])
            row, chosen = np.tile(left, len(now)), np.repeat(now, left.size, axis=0)
            away = fraction * robot.difference(self.start[row], chosen)
            ends = self.iterate(robot.integrate(self.start[row], away), row)
            for at in np.split(np.arange(len(row)), len(now)):
                still = best.arrived[left] == 0.0
                if still.any():
                    best.keep(left[still], ends.rows(at[still]))
            left = left[best.arrived[left] == 0.0]
            tried.append((row, ends))
        return tried

    def approach(self, best: Descent, tried: Sequence[tuple[Array, Descent]]) -> None:
        """Refine the `FEW` closest ends of each row that never arrived, and keep the best."""
        row = np.concatenate([row for row, _ in tried])
        never = np.flatnonzero(best.arrived[row] == 0.0)
        if not never.size:
            return
        ends = Descent(*map(np.concatenate, zip(*(end for _, end in tried), strict=True)))
        order = never[np.lexsort((ends.energy[never], row[never]))]
        row = row[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        few = rank < FEW
        row, rank, ends = row[few], rank[few], self.refine(ends.rows(order[few]), row[few])
        for i in range(FEW):
            best.keep(row[rank == i], ends.rows(rank == i))

    def refine(self, best: Descent, row: Array) -> Descent:
        """Continue from given ends. Each chunk tries several dampings at once; the one that gets
        closest is kept, and the next chunk tries multiples of it (Marquardt)."""
        going, damping = np.arange(len(row)), np.full(len(row), self.damping)
        best = best._replace(iterations=0 * best.iterations)
        for _ in range(0, APPROACH * self.iterations, CHUNK):
            if not going.size:
                break
            before, tried = best.energy[going], damping[going] * DAMPINGS[:, None]
            each = np.tile(going, len(DAMPINGS))
            ends = self.run(best.q[each], row[each], tried.reshape(-1), CHUNK)
            first = ends.energy.reshape(tried.shape).argmin(0)
            best.keep(going, ends.rows(first * len(going) + np.arange(len(going))))
            closer = best.energy[going] < before
            damping[going] = np.where(closer, tried[first, np.arange(len(going))], 2 * tried[-1])
            level = closer & (best.energy[going] > (1.0 - LEVEL) * before)
            going = going[(best.arrived[going] == 0.0) & ~level & (damping[going] < STIFF)]
        return best

    def relax(self, best: Descent, stride: float) -> None:
        """Move the rows that have arrived toward the posture, and back to the targets. A row whose
        way back fails, or ends farther from the posture, stays where it was."""
        row = np.flatnonzero(best.arrived > 0.0)
        near, going = best.rows(row), np.arange(len(row))
        for left in range(self.iterations, 0, -CHUNK):
            if going.size:
                new = self.run(near.q[going], row[going], self.damping, left, stride)
                near.put(going, new)
                going = going[new.settled == 0.0]
        near.put(np.arange(len(row)), self.iterate(near.q, row))
        robot, rest = self.problem.robot, self.given["posture"][row]
        both = (robot.difference(q, rest) for q in (best.q[row], near.q))
        was, now = (np.linalg.norm(away, axis=-1) for away in both)
        closer = (near.arrived > 0.0) & (now <= was)
        for x, y in zip(best, near, strict=True):
            x[row[closer]] = y[closer]
        best.iterations[row] = near.iterations

    def solution(self, best: Descent) -> InverseKinematicsSolution:
        """The solution, in the shape of the batch."""

        def shaped(x: Array) -> Array:
            """The rows in the shape of the batch; a number if there is none."""
            return x.reshape((*self.batch, *x.shape[1:]))[()]

        found = InverseKinematicsSolution(
            shaped(best.q), shaped(best.arrived > 0.0), shaped(best.position),
            shaped(best.rotation), shaped(best.iterations.astype(int)),
        )  # fmt: skip
        found.problem = self.problem
        return found
