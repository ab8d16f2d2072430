"""The five robots, in phipsi and in Pinocchio, and the random states both are given."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import phipsi as pp
from benchmarks.files import FILES, robot

pin: Any = importlib.import_module("pinocchio")

BATCH = 4096
LOOPED = 256
"""States that functions without a batch form take one by one."""


@dataclass(frozen=True)
class Case:
    """A robot in both libraries with random states: q within limits, v, a and tau standard normal,
    (batch, n) in phipsi's layout."""

    name: str
    robot: pp.Robot
    model: Any
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray

    def theirs(self, count: int | None = None) -> tuple[np.ndarray, ...]:
        """q, v, a and tau of the first states in Pinocchio's layout, (count, n)."""
        states = (x[:count] for x in (self.q, self.v, self.a, self.tau))
        return pp.interop.to_pinocchio(self.robot, *states, joints=self.model)

    def ours(self, x: np.ndarray) -> np.ndarray:
        """Pinocchio's joint vectors (batch, nv) in our layout."""
        q = np.tile(pin.neutral(self.model), (len(x), 1))
        return pp.interop.from_pinocchio(self.robot, q, tau=x, joints=self.model)[1]


def columns(arrays: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Batches (batch, n) as Pinocchio wants them: one state per column, in Fortran order."""
    return [np.asfortranarray(x.T) for x in arrays]


def rows(arrays: Iterable[np.ndarray]) -> list[tuple[np.ndarray, ...]]:
    """Batches (batch, n) as one tuple of vectors per state."""
    return list(zip(*map(list, arrays), strict=True))


def case(name: str, robot: pp.Robot, model: Any, batch: int = BATCH) -> Case:
    """A robot of both libraries with random states."""
    rng = np.random.default_rng(0)
    q, v = robot.random_state(rng, (batch,))
    a, tau = rng.standard_normal((2, batch, robot.nv))
    return Case(name, robot, model, q, v, a, tau)


@cache
def load(name: str, batch: int = BATCH) -> Case:
    """One of the five."""
    free = (pin.JointModelFreeFlyer(),) if FILES[name].base == "free" else ()
    model = pin.buildModelFromUrdf(str(FILES[name].path), *free)
    return case(name, robot(name), model, batch)


def five() -> list[Case]:
    """All of them, in order of size."""
    return [load(name) for name in FILES]


def chain(links: int, batch: int, *, peer: bool = True) -> Case:
    """A revolute chain in both libraries (in phipsi only: `peer=False`)."""
    robot = pp.robots.chain(links)
    model = pp.interop.to_pinocchio_model(robot) if peer else None
    return case(f"chain of {links}", robot, model, batch)
