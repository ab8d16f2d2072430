"""Inverse kinematics of a batch: Newton iterations, where they fail from other starts again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from phipsi.algorithms.inverse_kinematics.newton import Descent, descend, sum_outboard
from phipsi.algorithms.inverse_kinematics.problem import (
    Problem,
    common_batch,
    count,
    positive,
    problem,
)
from phipsi.algorithms.inverse_kinematics.solution import Solution
from phipsi.compile import current
from phipsi.model import Robot
from phipsi.sweeps import forest

CHUNK = 6
"""Iterations after which rows that have arrived, or get nowhere, leave the batch."""
PROGRESS = 0.3
"""A start is given up where a chunk leaves more than this part of the error."""
LANES = 16
"""Rows that cost hardly more than one: up to so many starts of few rows are tried together."""
FEW = 4
"""The closest ends of starts that the approach to what is out of reach goes on from."""
DAMPINGS = np.array([0.03, 0.3, 3.0, 30.0])
"""Factors of the damping that are tried together on the approach to what is out of reach."""
LEVEL, STIFF, APPROACH = 1e-6, 1e6, 5
"""That approach ends where a chunk changes less than this part of the error, where so large a
damping is reached, or after so many times the iterations of a start."""
STRIDES = (1e3, 0.3)
"""The longest steps toward a posture [rad, m] that are tried: far ones may find a nearer branch of
solutions, short ones keep to the one where the row is."""
LOOSE = 0.3
"""Part of a random displacement that freedoms which are no rates of coordinates get at a start."""


def inverse_kinematics(
    robot: Robot,
    q0: Any,
    targets: Mapping[str, Any],
    *,
    rows: Mapping[str, str | Sequence[bool]] | None = None,
    weights: Mapping[str, Any] | None = None,
    posture: Any = None,
    limits: bool = True,
    tolerance: float = 1e-8,
    damping: float = 0.1,
    iterations: int = 60,
    restarts: int = 20,
    seed: int = 0,
) -> Solution:
    """Configurations q that bring frames to their targets: X_f(q) = X'_f, from q0 on ([SOA] 2).

    `targets` gives each frame by name a pose: (…, 4, 4) homogeneous, a `Transform`, (…, 7)
    [position; quaternion], or (…, 3), a position alone. `rows` says what counts of it: "pose",
    "position", "orientation", "pointing" (position and z-axis; the rotation about z is free),
    "direction" (z-axis alone), or six truth values [angular; linear] in the frame's own axes.
    `weights`, a positive number or six for each frame, matter where targets contend. `posture`
    (…, nq) is approached, once the targets are reached, as far as they leave freedom. With `limits`
    joints stay within theirs.

    Each start takes at most `iterations` damped Newton steps (`descend`; `damping` is μ² over the
    squared error), until every frame is within `tolerance` of its target [m, rad]. Rows that fail
    start again, up to `restarts` times, from random configurations, the same for every row
    (`seed`), of the joints that move a frame with a target. Where all fail, the few closest ends go
    on, for up to five times the iterations, and q is the closest found. Trees of the robot are
    solved one by one, and a posture takes up to four times the iterations of a start more. Inside a
    program there is one start alone. Joints that mimic others move by themselves. Returns a
    `Solution`: q (…, nq), `reached` (…), the errors (…, nf), `iterations` (…), and, outside
    programs, `report()`. Cost O(N) a step.

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
    asked = problem(robot, targets, rows, weights, limits, tolerance)
    positive("damping", damping)
    iterations, restarts = count("iterations", iterations, 1), count("restarts", restarts)
    seed = count("seed", seed)
    if current() is not None:
        return traced(asked, q0, posture, damping, iterations)
    search = Search.of(asked, q0, posture, damping, iterations)
    best = search.found(restarts, seed)
    for stride in STRIDES if posture is not None else ():
        search.relax(best, stride)
    return search.solution(best)


def traced(asked: Problem, q0: Any, posture: Any, damping: Any, most: int) -> Solution:
    """The solution inside a program: one start; then to the posture and back to the targets, which
    is kept where it arrives."""

    def end(q: Any, posture: Any = None) -> Descent:
        settings = np.array([asked.tolerance, damping, most, STRIDES[-1]])
        return descend(
            asked.robot, q, asked.targets, settings, asked.tasks, most, asked.limits,
            weights=asked.weights, posture=posture,
        )  # fmt: skip

    best = end(q0)
    if posture is not None:
        near = end(best.q, posture)
        back = end(near.q)
        n = best.iterations + near.iterations + back.iterations
        well = back.arrived > 0.0
        best = Descent(*(np.where(well, x, y) for x, y in zip(back, best, strict=True)))
        best = best._replace(iterations=n)
    return Solution(best.q, best.arrived, best.position, best.rotation, best.iterations)


@lru_cache(maxsize=64)
def starts(
    robot: Robot, frames: tuple[str, ...], count: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Random configurations (count, nq), and the part of the way there that freedoms go (nv,): none
    where they move none of the frames."""
    q, _ = robot.random_state(seed, (count,))
    x = forest(robot, robot.neutral(), x=np.zeros(robot.nv))
    moves = sum_outboard(x, dict.fromkeys(frames, 1.0)).astype(float) > 0.0
    return q, np.where(robot.rates < 0, LOOSE, 1.0) * moves


@dataclass(frozen=True)
class Search:
    """The rows of a batch: `given` has the start, the targets and what else there is of each."""

    asked: Problem
    batch: tuple[int, ...]
    given: Mapping[str, np.ndarray]
    damping: float
    iterations: int

    @classmethod
    def of(cls, asked: Problem, q0: Any, posture: Any, *numbers: Any) -> Search:
        """The search for the solutions of a problem."""
        given = {"q0": asked.configuration("q0", q0), "targets": asked.targets}
        if asked.weights is not None:
            given["weights"] = asked.weights
        if posture is not None:
            given["posture"] = asked.configuration("posture", posture)
        batch = common_batch({name: x.shape[:-1] for name, x in given.items()})
        whole = {name: np.broadcast_to(x, (*batch, x.shape[-1])) for name, x in given.items()}
        flat = {name: x.reshape(prod(batch), x.shape[-1]) for name, x in whole.items()}
        return cls(asked, batch, flat, *numbers)

    @property
    def start(self) -> np.ndarray:
        """The configurations to start from, (rows, nq)."""
        return self.given["q0"]

    def part(self, own: Sequence[int], q: np.ndarray) -> Search:
        """The search for some of the targets, by number, from q."""

        def chosen(x: np.ndarray) -> np.ndarray:
            each = np.split(x, len(self.asked.tasks), axis=1)
            return np.concatenate([each[i] for i in own], 1)

        each = {name: self.given[name] for name in ("targets", "weights") if name in self.given}
        given = {"q0": q} | {name: chosen(x) for name, x in each.items()}
        asked = replace(self.asked, tasks=tuple(self.asked.tasks[i] for i in own))
        return replace(self, asked=asked, given=given)

    def run(self, q: Any, row: Any, damping: Any, most: int, stride: float = 0.0) -> Descent:
        """A chunk of iterations from q for the given rows, toward the posture if by a stride."""
        names = ("weights", "posture") if stride else ("weights",)
        own = {name: self.given[name][row] for name in names if name in self.given}
        settings, asked = np.empty((len(row), 4)), self.asked
        settings[:, 0], settings[:, 1] = asked.tolerance, damping
        settings[:, 2], settings[:, 3] = most, stride
        targets = self.given["targets"][row]
        return descend(asked.robot, q, targets, settings, asked.tasks, CHUNK, asked.limits, **own)

    def found(self, restarts: int, seed: int) -> Descent:
        """The closest configurations; trees of the robot, having nothing in common, one by one."""
        robot, trees = self.asked.robot, dict[str, list[int]]()
        for i, (name, _) in enumerate(self.asked.tasks):
            trees.setdefault(robot.root(robot.frame(name).body), []).append(i)
        if len(trees) == 1:
            return self.alone(restarts, seed)
        q, ends = self.start, list[Descent]()
        for own in trees.values():
            ends.append(self.part(own, q).alone(restarts, seed))
            q = ends[-1].q
        order = np.argsort(np.concatenate([*trees.values()]))
        return ends[-1]._replace(
            iterations=np.sum([x.iterations for x in ends], axis=0),
            arrived=np.min([x.arrived for x in ends], axis=0),
            position=np.concatenate([x.position for x in ends], 1)[:, order],
            rotation=np.concatenate([x.rotation for x in ends], 1)[:, order],
        )

    def alone(self, restarts: int, seed: int) -> Descent:
        """The closest configurations of one tree."""
        best = self.descended(self.start, np.arange(len(self.start)))
        if not best.arrived.all():
            self.approach(best, self.restart(best, restarts, seed))
        return best

    def descended(self, q: Any, row: Any) -> Descent:
        """Iterations from q until a row has arrived or gets nowhere."""
        best = self.run(q, row, self.damping, self.iterations)
        going, before = np.arange(len(row)), np.full(len(row), np.inf)
        for left in range(self.iterations - CHUNK, 0, -CHUNK):
            now = best.rows(going)
            well = (now.arrived == 0.0) & (now.energy <= PROGRESS * before[going])
            before[going] = now.energy
            going = going[well]
            if not going.size:
                break
            best.put(going, self.run(best.q[going], row[going], self.damping, left))
        return best

    def restart(self, best: Descent, restarts: int, seed: int) -> list[tuple[Any, Descent]]:
        """Rows that have not arrived start again, several times at once where they are few.

        A row keeps the first of its starts that arrives, or else the closest: what it finds does
        not depend on the others of the batch. Returns the ends of all starts, and whose they are.
        """
        left = np.flatnonzero(best.arrived == 0.0)
        tried = [(left, best.rows(left))]
        robot, frames = self.asked.robot, tuple(name for name, _ in self.asked.tasks)
        fresh, loose = starts(robot, frames, restarts, seed)
        while left.size and len(fresh):
            now, fresh = np.split(fresh, [max(1, LANES // left.size)])
            row, chosen = np.tile(left, len(now)), np.repeat(now, left.size, axis=0)
            away = loose * robot.difference(self.start[row], chosen)
            ends = self.descended(robot.integrate(self.start[row], away), row)
            for at in np.split(np.arange(len(row)), len(now)):
                still = best.arrived[left] == 0.0
                if still.any():
                    best.keep(left[still], ends.rows(at[still]))
            left = left[best.arrived[left] == 0.0]
            tried.append((row, ends))
        return tried

    def approach(self, best: Descent, tried: Sequence[tuple[Any, Descent]]) -> None:
        """Rows that never arrived go on from their `FEW` closest ends, and keep the best."""
        row = np.concatenate([row for row, _ in tried])
        never = np.flatnonzero(best.arrived[row] == 0.0)
        if not never.size:
            return
        ends = Descent(*map(np.concatenate, zip(*(end for _, end in tried), strict=True)))
        order = never[np.lexsort((ends.energy[never], row[never]))]
        row = row[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        few = rank < FEW
        row, rank, ends = row[few], rank[few], self.closer(ends.rows(order[few]), row[few])
        for i in range(FEW):
            best.keep(row[rank == i], ends.rows(rank == i))

    def closer(self, best: Descent, row: Any) -> Descent:
        """On from where rows are; at once with several dampings, of which the one that gets
        closest is kept and sought around next (Marquardt)."""
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
        """Rows that have arrived go to the posture, and back to the targets; they stay where they
        were if that fails, or leads no nearer to the posture."""
        row = np.flatnonzero(best.arrived > 0.0)
        near, going = best.rows(row), np.arange(len(row))
        for left in range(self.iterations, 0, -CHUNK):
            if going.size:
                new = self.run(near.q[going], row[going], self.damping, left, stride)
                near.put(going, new)
                going = going[new.settled == 0.0]
        near.put(np.arange(len(row)), self.descended(near.q, row))
        robot, rest = self.asked.robot, self.given["posture"][row]
        both = (robot.difference(q, rest) for q in (best.q[row], near.q))
        was, now = (np.linalg.norm(away, axis=-1) for away in both)
        well = (near.arrived > 0.0) & (now <= was)
        for x, y in zip(best, near, strict=True):
            x[row[well]] = y[well]
        best.iterations[row] = near.iterations

    def solution(self, best: Descent) -> Solution:
        """The answer, in the shape of the batch."""

        def shaped(x: Any) -> Any:
            return x.reshape((*self.batch, *x.shape[1:]))[()]

        found = Solution(
            shaped(best.q), shaped(best.arrived > 0.0), shaped(best.position),
            shaped(best.rotation), shaped(best.iterations.astype(int)),
        )  # fmt: skip
        found.problem = self.asked
        return found
