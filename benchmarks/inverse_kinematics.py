"""Inverse kinematics: the share of reachable targets that are found, and the time for one."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

import phipsi as pp
from benchmarks.files import FILES
from benchmarks.measure import Effort, timed
from benchmarks.robots import Case, load, pin
from benchmarks.tables import Aim, Column, Section, at_least

TARGETS, QUICK = 1_000, 100
EPS, DT, DAMP, MOST = 1e-4, 1e-1, 1e-12, 1_000
"""Pinocchio's example: tolerance of |log6|, step, damping, most iterations."""
TIMEOUT = 5e-3
"""TRAC-IK's own default [s]."""
PASSES, ENOUGH = 5, 1.0
"""A contestant runs so many times, the best counts; once only if that takes so many seconds."""
AIM = 10.0
FEET, HAND = ("leg_left_6_joint", "leg_right_6_joint"), "arm_right_7_joint"

Solver = Callable[[], np.ndarray]
"""Configurations (targets, nq), in phipsi's layout."""


@dataclass(frozen=True)
class Row:
    """Of all targets, and microseconds for each."""

    robot: Annotated[str, Column("robot")]
    solver: Annotated[str, Column("solver")]
    targets: Annotated[int, Column("targets", "{:,}")]
    found: Annotated[float, Column("found", "{:.1f} %")]
    inside: Annotated[float, Column("found within limits", "{:.1f} %")]
    time: Annotated[float, Column("time [µs]", "{:.1f}")]
    ratio: Annotated[float | None, Column("over phipsi", "{:.0f}×")]
    aim: Annotated[Aim | None, Column("aim")]


class Task(NamedTuple):
    """A robot, where all start, and the bodies that shall reach poses (targets, 4, 4)."""

    case: Case
    q0: np.ndarray
    poses: Mapping[str, np.ndarray]

    @property
    def joints(self) -> dict[int, np.ndarray]:
        """The poses by the number of the joint in Pinocchio."""
        hinges = {h.child: h.name for h in self.case.robot.hinges}
        return {self.case.model.getJointId(hinges[name]): X for name, X in self.poses.items()}

    def theirs(self, q: np.ndarray) -> np.ndarray:
        """Configurations in Pinocchio's layout."""
        v = np.zeros((len(q), self.case.robot.nv))
        return pp.interop.to_pinocchio(self.case.robot, q, v, joints=self.case.model)[0]


def inverse_kinematics(effort: Effort) -> Section:
    """Panda, and Talos on both feet."""
    count = TARGETS if effort.rounds == Effort().rounds else QUICK
    rows: list[Row] = []
    missing = ""
    with _one_thread():
        for task in (_panda(count), _talos(count)):
            solvers = {
                "phipsi": _ours(task),
                "phipsi, limits left out": _ours(task, limits=False),
                "phipsi, one by one": _ours_singly(task),
                "Pinocchio's example": _clik(task),
            }
            if len(task.poses) == 1:
                peer = _trac_ik(task)
                solvers |= {"TRAC-IK": peer} if peer else {}
                missing = "" if peer else " It is not installed here (`pip install pytracik`)."
            rows += _raced(task, solvers, effort)
    text = (
        f"{TARGETS:,} poses that the robot has at random configurations within its limits; all "
        f"solvers get the same poses, the same starts and the same tolerance, |log6| ≤ {EPS:g}, "
        "which Pinocchio checks for each of them afterwards. Panda: its last link, from random "
        "starts. Talos*: both feet held where they are in the neutral posture and the right hand "
        "where random torso and arm angles bring it, from that posture. phipsi solves all targets "
        "in one call (`pp.inverse_kinematics` with its defaults; up to 20 new starts for those "
        "that fail) or one by one. Pinocchio's is the loop of its documentation, one target after "
        f"the other in Python (log6, damping {DAMP:g}, steps of {DT}, at most {MOST:,} "
        "iterations, no limits, no new starts), for Talos with the three errors stacked. TRAC-IK "
        f"(pytracik) runs with its own defaults, two threads and {1e3 * TIMEOUT:.0f} ms at most, "
        f"within limits; it takes one chain from a fixed base, so no Talos.{missing}"
    )
    return Section("Inverse kinematics", text, rows)


def _raced(task: Task, solvers: Mapping[str, Solver], effort: Effort) -> Iterator[Row]:
    mine = None
    for name, solver in solvers.items():
        effort.say(f"{task.case.name}, {name}")
        solver()
        passes = [timed(solver)]
        while len(passes) < PASSES and sum(seconds for _, seconds in passes) < ENOUGH:
            passes.append(timed(solver))
        q, seconds = min(passes, key=lambda x: x[1])
        found, inside = _judged(task, q)
        time = 1e6 * seconds / len(task.q0)
        mine = mine or time
        ratio = None if name.startswith("phipsi") else time / mine
        aim = None if ratio is None else at_least(ratio, AIM)
        yield Row(
            task.case.name, name, len(task.q0), 100.0 * found.mean(),
            100.0 * (found & inside).mean(), time, ratio, aim,
        )  # fmt: skip


def _judged(task: Task, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows reach all poses, as Pinocchio has it, and which are within the limits."""
    low, high = (task.case.robot.joint_data(side) for side in ("lower", "upper"))
    model, data = task.case.model, task.case.model.createData()
    found = np.zeros(len(task.q0), bool)
    for i, own in enumerate(task.theirs(q)):
        pin.forwardKinematics(model, data, own)
        misses = (
            np.linalg.norm(pin.log6(data.oMi[j].actInv(pin.SE3(X[i]))).vector)
            for j, X in task.joints.items()
        )
        found[i] = max(misses) <= EPS
    return found, np.all((q >= low - 1e-9) & (q <= high + 1e-9), axis=-1)


# ---- tasks --------------------------------------------------------------------------------------


def _panda(count: int) -> Task:
    case, rng = load("Panda"), np.random.default_rng(1)
    q, _ = case.robot.random_state(rng, (count,))
    q0, _ = case.robot.random_state(rng, (count,))
    return Task(case, q0, {"panda_link7": pp.frame_pose(case.robot, q, "panda_link7")})


def _talos(count: int) -> Task:
    case, rng = load("Talos*"), np.random.default_rng(1)
    robot = case.robot
    neutral = np.clip(robot.neutral(), robot.joint_data("lower"), robot.joint_data("upper"))
    q0 = np.tile(neutral, (count, 1))
    q, (other, _) = q0.copy(), robot.random_state(rng, (count,))
    for h in robot.hinges:
        if h.name.startswith(("torso", "arm_right")):
            q[:, h.q] = other[:, h.q]
    bodies = [robot.hinge(name).child for name in (*FEET, HAND)]
    return Task(case, q0, {name: pp.frame_pose(robot, q, name) for name in bodies})


# ---- solvers ------------------------------------------------------------------------------------


def _ours(task: Task, limits: bool = True) -> Solver:
    def solve() -> np.ndarray:
        return pp.inverse_kinematics(
            task.case.robot, task.q0, task.poses, tolerance=EPS / 2, limits=limits
        ).q

    return solve


def _ours_singly(task: Task) -> Solver:
    robot = task.case.robot

    def solve() -> np.ndarray:
        found = []
        for i, q0 in enumerate(task.q0):
            own = {name: X[i] for name, X in task.poses.items()}
            found.append(pp.inverse_kinematics(robot, q0, own, tolerance=EPS / 2).q)
        return np.array(found)

    return solve


def _clik(task: Task) -> Solver:
    """The loop of "Inverse kinematics (CLIK)" in Pinocchio's documentation."""
    model, data = task.case.model, task.case.model.createData()
    goals = [(j, [pin.SE3(X) for X in poses]) for j, poses in task.joints.items()]
    starts = task.theirs(task.q0)
    damping = DAMP * np.eye(6 * len(goals))

    def one(i: int) -> np.ndarray:
        q = starts[i]
        for _ in range(MOST):
            pin.forwardKinematics(model, data, q)
            ahead = [(j, data.oMi[j].actInv(X[i])) for j, X in goals]
            errors = [pin.log6(M).vector for _, M in ahead]
            if max(map(np.linalg.norm, errors)) < EPS:
                break
            blocks = [
                -pin.Jlog6(M.inverse()) @ pin.computeJointJacobian(model, data, q, j)
                for j, M in ahead
            ]
            J, error = np.concatenate(blocks), np.concatenate(errors)
            v = -J.T @ np.linalg.solve(J @ J.T + damping, error)
            q = pin.integrate(model, q, v * DT)
        return q

    def solve() -> np.ndarray:
        return _back(task, [one(i) for i in range(len(task.q0))])

    return solve


def _back(task: Task, q: Sequence[np.ndarray]) -> np.ndarray:
    zero = np.zeros((len(q), task.case.model.nv))
    return pp.interop.from_pinocchio(task.case.robot, np.array(q), zero, joints=task.case.model)[0]


def _trac_ik(task: Task) -> Solver | None:
    """TRAC-IK on the chain to the one body; None where it is not installed."""
    try:
        trac: Any = importlib.import_module("pytracik")
    except ImportError:
        return None
    robot = task.case.robot
    ((body, poses),) = task.poses.items()
    text = FILES[task.case.name].path.read_text()
    solver = trac.TRAC_IK("panda_link0", body, text, TIMEOUT, EPS / 3, trac.SolveType.Speed)
    n = trac.get_num_joints(solver)
    trac.set_joint_limits(solver, robot.joint_data("lower")[:n], robot.joint_data("upper")[:n])
    goals = [(*X[:3, 3], *pin.Quaternion(X[:3, :3]).coeffs()) for X in poses]

    def solve() -> np.ndarray:
        out = task.q0.copy()
        for q, goal in zip(out, goals, strict=True):
            status, *found = trac.ik(solver, q[:n], *goal)
            if status >= 0:
                q[:n] = found
        return out

    return solve


@contextmanager
def _one_thread() -> Iterator[None]:
    name = "PHIPSI_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
