"""Inverse kinematics: a batch of descents, those that fail from other starts again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from phipsi.algorithms.descent import Descent, descend
from phipsi.algorithms.targets import (
    Problem,
    Solution,
    common_batch,
    coordinates,
    options,
    problem,
)
from phipsi.compile import current
from phipsi.model import Robot

CHUNK = 6
"""Iterations after which rows that have arrived, or get nowhere, leave the batch."""
PROGRESS = 0.3
"""A start is given up where a chunk leaves more than this part of the error."""
LANES = 16
"""Rows that cost hardly more than one: up to so many starts of few rows are tried together."""
DAMPINGS = np.array([0.03, 0.3, 3.0, 30.0])
"""Factors of the damping that are tried together on the approach to what is out of reach."""
LEVEL, STIFF, APPROACH = 1e-6, 1e6, 5
"""That approach ends where a chunk changes less than this part of the error, where even so large a
damping makes it no smaller, or after so many times the iterations of a start."""
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
    `weights`, a number or six for each frame, matter where targets contend. `posture` (…, nq) is
    approached as far as the targets leave freedom. With `limits` joints stay within theirs.

    Each start takes at most `iterations` damped Newton steps (`descend`; `damping` is μ² over the
    squared error), until every frame is within `tolerance` of its target [m, rad]. Rows that fail
    start again, up to `restarts` times, from random configurations, the same for every row
    (`seed`). Where all fail, q is the closest found. Inside a program there is one start alone.
    Joints that mimic others move by themselves. Returns a `Solution`: q (…, nq), `reached` (…),
    the errors (…, nf), `iterations` (…), and `report()`. Cost O(N) a step.

    >>> import numpy as np, phipsi as pp
    >>> arm = pp.robots.seven_axis_arm()
    >>> q, _ = arm.random_state(1, (100,))
    >>> found = pp.inverse_kinematics(arm, arm.neutral(), {"tool": pp.frame_pose(arm, q, "tool")})
    >>> bool(found.reached.all()), found.q.shape
    (True, (100, 7))
    >>> print(pp.inverse_kinematics(arm, arm.neutral(), {"tool": [0.0, 0.0, 9.0]}).report())
    'tool' misses its target by 6.6 m: it is out of reach, 9 m from the base of the arm, whose links
    are 2.4 m long together.
    """
    asked = problem(robot, targets, rows, weights, limits)
    options(tolerance, damping, iterations=iterations, restarts=restarts, seed=seed)
    if current() is not None:
        end = descend(
            robot, q0, asked.targets, np.array([tolerance, damping, iterations]), asked.tasks,
            iterations, limits, weights=asked.weights, posture=posture,
        )  # fmt: skip
        return Solution(end.q, end.arrived, end.position, end.rotation, end.iterations)
    search = Search.of(asked, q0, posture, tolerance, damping, iterations)
    best = search.descended(search.start, np.arange(len(search.start)))
    search.restart(best, restarts, seed)
    search.approach(best)
    return search.solution(best)


@lru_cache(maxsize=64)
def starts(robot: Robot, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random configurations (count, nq), and the part of the way there that freedoms go (nv,)."""
    q, _ = robot.random_state(seed, (count,))
    return q, np.where(coordinates(robot) < 0, LOOSE, 1.0)


@dataclass(frozen=True)
class Search:
    """The rows of a batch: `given` has the start, the targets and what else there is of each."""

    asked: Problem
    batch: tuple[int, ...]
    given: Mapping[str, np.ndarray]
    tolerance: float
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

    def run(self, q: Any, row: Any, damping: Any, most: int) -> Descent:
        """A chunk of iterations from q for the given rows."""
        own = {name: x[row] for name, x in self.given.items() if name not in ("q0", "targets")}
        settings = np.empty((len(row), 3))
        settings[:, 0], settings[:, 1], settings[:, 2] = self.tolerance, damping, most
        asked, targets = self.asked, self.given["targets"][row]
        return descend(asked.robot, q, targets, settings, asked.tasks, CHUNK, asked.limits, **own)

    def descended(self, q: Any, row: Any) -> Descent:
        """Iterations from q until a row has settled or gets nowhere."""
        best = self.run(q, row, self.damping, self.iterations)
        going, before = np.arange(len(row)), np.full(len(row), np.inf)
        for left in range(self.iterations - CHUNK, 0, -CHUNK):
            now = best.rows(going)
            well = (now.arrived > 0.0) | (now.energy <= PROGRESS * before[going])
            before[going] = now.energy
            going = going[well & (now.settled == 0.0)]
            if not going.size:
                break
            best.put(going, self.run(best.q[going], row[going], self.damping, left))
        return best

    def restart(self, best: Descent, restarts: int, seed: int) -> None:
        """Rows that have not arrived start again, several times at once where they are few.

        A row keeps the first of its starts that arrives, or else the closest: what it finds does
        not depend on the others of the batch.
        """
        left, robot = np.flatnonzero(best.arrived == 0.0), self.asked.robot
        if not left.size:
            return
        fresh, loose = starts(robot, restarts, seed)
        while left.size and len(fresh):
            now, fresh = np.split(fresh, [max(1, LANES // left.size)])
            row, chosen = np.tile(left, len(now)), np.repeat(now, left.size, axis=0)
            away = loose * robot.difference(self.start[row], chosen)
            ends = self.descended(self.asked.within(robot.integrate(self.start[row], away)), row)
            for at in np.split(np.arange(len(row)), len(now)):
                still = best.arrived[left] == 0.0
                if still.any():
                    best.keep(left[still], ends.rows(at[still]))
            left = left[best.arrived[left] == 0.0]

    def approach(self, best: Descent) -> None:
        """Rows that never arrived go on from the closest found; at once with several dampings, of
        which the one that gets closest is kept and sought around next (Marquardt)."""
        going = np.flatnonzero(best.arrived == 0.0)
        damping = np.full(len(best.q), self.damping)
        for _ in range(0, APPROACH * self.iterations, CHUNK):
            if not going.size:
                break
            before, tried = best.energy[going], damping[going] * DAMPINGS[:, None]
            row = np.tile(going, len(DAMPINGS))
            ends = self.run(best.q[row], row, tried.reshape(-1), CHUNK)
            first = ends.energy.reshape(tried.shape).argmin(0)
            best.keep(going, ends.rows(first * len(going) + np.arange(len(going))))
            closer = best.energy[going] < before
            damping[going] = np.where(closer, tried[first, np.arange(len(going))], 2 * tried[-1])
            level = closer & (best.energy[going] > (1.0 - LEVEL) * before)
            going = going[(best.arrived[going] == 0.0) & ~level & (damping[going] < STIFF)]

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
