"""Ctrl-C within long motions: it is answered between kernel calls of bounded time, and the motion
until then is that of a simulation that nobody interrupts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import phipsi as pp

DT = 2.0**-10
"""A step that any duration in whole seconds is a multiple of, exactly."""
FOREVER = 2.0**19
"""A duration [s] that takes many minutes: 5e8 steps."""
robot = pp.robots.double_pendulum()
start = np.array([1.0, 0.3])


def driven(robot: pp.Robot, t: Any, q: Any, v: Any, memory: Any) -> dict[str, Any]:
    """A law that depends on the time and on what it keeps."""
    tau = np.sin(3.0 * t) - 0.2 * q - 0.1 * v + memory
    return {"tau": tau, "memory": 0.99 * memory + 1e-3 * q}


def fed(robot: pp.Robot, v: Any, u: Any) -> Any:
    """Forces over time."""
    return u - 0.1 * v


def wave(duration: float) -> np.ndarray:
    """Forces, a row for each 2¹³ steps."""
    return np.sin(np.arange(2 * int(duration / 8.0))).reshape(-1, 2)


def late(t: float, q: Any, v: Any) -> bool:
    """A condition that is never met."""
    return False


def many(rows: int) -> np.ndarray:
    return start + np.linspace(0.0, 0.5, rows)[:, None]


CASES: dict[str, Callable[[float], pp.Trajectory]] = {
    "samples of 2^15 steps": lambda T: pp.simulate(
        robot, start, None, driven, duration=T, dt=DT, every=1 << 15, memory=np.zeros(2)
    ),
    "a rollout of many": lambda T: pp.rollout(
        robot, many(16), None, driven, duration=T, dt=DT, every=1 << 12, memory=np.zeros(2)
    ),
    "a condition at samples": lambda T: pp.simulate(
        robot, start, duration=T, dt=DT, every=1 << 15, events=[pp.Failure(late, "joint1")]
    ),
    "SciPy's method": lambda T: pp.simulate(
        robot, start, duration=T, dt=1.0, method="rk45", rtol=1e-6, atol=1e-6
    ),
    "forces over time": lambda T: pp.simulate(
        robot, start, None, fed, duration=T, dt=DT, every=1 << 15, sequences="u",
        parameters={"u": wave(T)},
    ),
}  # fmt: skip


def interrupted(case: Callable[[float], pp.Trajectory]) -> pp.Trajectory:
    """The motion until a SIGINT comes, which waits longer until the first steps have been made."""
    for delay in 0.2 * 2.0 ** np.arange(8):
        timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            case(FOREVER)
        except pp.Interrupted as stop:
            return stop.trajectory
        except KeyboardInterrupt:
            continue
    raise AssertionError("it ended, or never began")


def in_child() -> None:
    """All cases, in a process of their own: how far each came, and whether the motion is that which
    nobody interrupts."""
    warnings.simplefilter("ignore")
    for name, case in CASES.items():
        found = interrupted(case)
        whole = case(found.duration + found.t[1])[: len(found)]
        same = np.array_equal(found.q, whole.q) and np.array_equal(found.v, whole.v)
        print(json.dumps([name, found.duration, same]), flush=True)


def test_a_motion_is_cut_short_and_kept(interruptible: None):
    command = [sys.executable, "-m", "tests.simulation.test_interrupt"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert [name for name, _, _ in rows] == list(CASES)
    assert all(0.0 < end < FOREVER for _, end, _ in rows), rows
    assert all(same for *_, same in rows), rows


if __name__ == "__main__":
    in_child()
