"""Warnings about motions that may not be what was meant."""

from __future__ import annotations

import numpy as np

from phipsi.model import Robot
from phipsi.simulation.controller import RESIDUAL
from phipsi.simulation.trajectory import Trajectory
from phipsi.typing import Array, Configuration

BEYOND = 1e-9
"""The distance [rad or m] from which on a joint is beyond its limits."""
LARGE_RESIDUAL = 1e-3
"""The residual of closures [rad/s² or m/s²] above which they contradict each other."""


class SimulationWarning(UserWarning):
    """A motion may not be what was meant: it passes limits of joints where there are no stops, its
    closures contradict each other, or, with verify=True, it breaks a law that it has to keep."""


def first_beyond(robot: Robot, t: Array, q: Configuration) -> str | None:
    """A sentence about the first sample of q (…, N, nq) beyond the limits of a joint, by more than
    rounding; None if there is none."""
    lower, upper = robot.joint_data("lower"), robot.joint_data("upper")
    over = np.maximum(q - upper, lower - q) > BEYOND * np.maximum(1.0, np.abs(q))
    if not over.any():
        return None
    *_, samples, coordinates = np.nonzero(over)
    first = samples.argmin()
    j, time = coordinates[first], t[samples[first]]
    hinge = next(h for h in robot.hinges if h.q.start <= j < h.q.stop)
    return (
        f"hinge {hinge.name!r} is beyond its limits [{lower[j]:g}, {upper[j]:g}] at t = {time:g} s "
        "and there are no stops; pass limits=True for stops, or limits=False if that is meant"
    )


def contradiction(found: Trajectory) -> str | None:
    """A sentence about the largest residual of closures; None if it is small."""
    if RESIDUAL not in found.signals:
        return None
    residual = found.signals[RESIDUAL]
    worst = np.nan_to_num(residual).max(axis=tuple(range(residual.ndim - 1)))
    if not worst.max() > LARGE_RESIDUAL:
        return None
    return (
        f"the closures contradict each other at t = {found.t[worst.argmax()]:g} s: no forces keep "
        f"all of them closed (residual {worst.max():.1e} rad/s² or m/s²), so that the motion opens "
        "some; leave more free, or start in another position"
    )
