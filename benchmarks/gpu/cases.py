"""The robots that are timed, what they should reach, and random states of them on the device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import phipsi as pp

ROBOTS = ("UR5", "Panda", "chain of 30", "G1*", "Talos*")
"""In order of size; a star says that the base is free. Panda is a 7-axis arm with two fingers."""

AIMS = dict(zip(ROBOTS, (15.0, 12.0, 2.5, 1.0, 0.5), strict=True))
"""10⁹ evaluations/s in float32 on one H200; in float64 `SHARE` of it."""

SHARE = 0.4
PEERS = {"MJX 3.17": 0.072, "MuJoCo Warp 4.0": 0.070}
"""10⁹ evaluations/s on UR5, float32, 524 288 robots, constraints disabled, on one H200."""

RATIO = 150.0
"""How often as many as the peers."""

OVERHEAD = 15.0
"""Microseconds of a call from Python, at most."""


class Case(NamedTuple):
    """A robot by its name here."""

    name: str
    robot: pp.Robot


def file_name(name: str) -> str:
    """The file that `saved` gives a robot."""
    return f"{name.replace(' ', '_').rstrip('*')}.json"


def cases(folder: Path | None) -> Iterator[Case]:
    """The robots: from the JSON files in a folder, else from example-robot-data."""
    for name in ROBOTS:
        if name == "chain of 30":
            yield Case(name, pp.robots.chain(30))
        elif folder is not None:
            yield Case(name, pp.load(folder / file_name(name)))
        else:
            from benchmarks.files import robot

            yield Case(name, robot(name))


def saved(folder: Path) -> None:
    """Write the robots as JSON, for machines without example-robot-data."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, robot in cases(None):
        if name != "chain of 30":
            pp.save(robot, folder / file_name(name))


def states(cp: Any, robot: pp.Robot, batch: int, dtype: str) -> list[Any]:
    """q (within limits, or ±π), v and tau (standard normal), on the device, never twice the same
    row."""
    rng = np.random.default_rng(0)
    few, _ = robot.random_state(rng, (4096,))
    device = cp.random.default_rng(1)
    low, high = (cp.asarray(f(few, axis=0)) for f in (np.min, np.max))
    q = low + (high - low) * device.random((batch, robot.nq), dtype=cp.float64)
    for hinge in robot.hinges:
        if hinge.q.stop - hinge.q.start > hinge.v.stop - hinge.v.start:  # ends in a quaternion
            turn = slice(hinge.q.stop - 4, hinge.q.stop)
            q[:, turn] = device.standard_normal((batch, 4), dtype=cp.float64)
            q[:, turn] /= cp.linalg.norm(q[:, turn], axis=1, keepdims=True)
    v, tau = (device.standard_normal((batch, robot.nv), dtype=cp.float64) for _ in range(2))
    return [x.astype(dtype) for x in (q, v, tau)]
