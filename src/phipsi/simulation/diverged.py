"""The error of motions that are no longer finite, with advice that fits the case."""

from __future__ import annotations

import numpy as np

from phipsi.algorithms import loop_opening
from phipsi.model import Robot
from phipsi.simulation.adaptive import ADAPTIVE, STIFF
from phipsi.simulation.options import SimulationOptions
from phipsi.simulation.plant import Plant
from phipsi.simulation.trajectory import Trajectory

SINGULAR = 1e-3
"""The ratio of singular values of the closures' Jacobian below which they are called singular."""
LOOKED_AT = 1000
"""Samples before the end among which a singular position is looked for."""


class Diverged(ArithmeticError):
    """A motion is no longer finite; `trajectory` is the motion before."""

    def __init__(self, trajectory: Trajectory, message: str) -> None:
        super().__init__(message)
        self.trajectory = trajectory

    def __reduce__(self) -> tuple[type, tuple[Trajectory, str]]:
        return type(self), (self.trajectory, str(self))


def advice(
    before: Trajectory, options: SimulationOptions, plant: Plant, *, controlled: bool, broken: bool
) -> str:
    """What may help, after a motion that was finite until the end of `before`.

    `controlled`: there is a controller; `broken`: its forces are not finite although the state is.
    """
    if broken:
        return "the controller returns forces that are not finite, although the state is finite"
    singular = singular_time(before, plant)
    if singular is not None:
        return (
            f"the closures are singular near t = {singular:g} s, where they do not determine their "
            "forces, and shorter steps do not help: start such that the motion stays away from "
            "there, leave more free, or pass a larger stabilisation"
        )
    if options.method in STIFF:
        return "the forces may jump or have no bound there; if not, take a larger rtol and atol"
    if options.method in ADAPTIVE:
        return "for stiff springs, dampers or gains use method='radau'"
    help = ["take a smaller dt"]
    if controlled:
        help.append("softer gains")
    if plant.limits is not None:
        help.append("softer stops, limits=pp.Limits(...)")
    if plant.passive and is_sprung(before.robot) and options.method != "implicit":
        help.append("for stiff springs method='implicit'")
    elif before.q.ndim == 2:
        help.append("for stiff forces method='radau'")
    return ", ".join(help[:-1]) + " or " * (len(help) > 1) + help[-1]


def is_sprung(robot: Robot) -> bool:
    """Whether hinges have springs, dampers or friction."""
    return any(robot.joint_data(what).any() for what in ("stiffness", "damping", "friction"))


def singular_time(before: Trajectory, plant: Plant) -> float | None:
    """The time at the end of a motion at which its closures came closest to a singular position;
    None if that was not close.

    It is close where the Jacobian of the closures, ∂(Q*Δ)/∂β, loses rank: its singular value that
    is the last one not zero elsewhere falls below `SINGULAR` of the first.
    """
    if not plant.closures:
        return None
    last = slice(-LOOKED_AT, None)
    rates = loop_opening.derivative(wrt="v", of="rate")
    J = np.asarray(
        rates(before.robot, plant.closures, before.q[..., last, :], before.v[..., last, :])
    )
    values = np.linalg.svd(J, compute_uv=False)
    relative = values / values[..., :1]
    rank = int((relative > SINGULAR).sum(axis=-1).max())
    left = relative[..., rank - 1]
    worst = left.min(axis=tuple(range(left.ndim - 1)))
    at = int(worst.argmin())
    return float(before.t[last][at]) if worst[at] < SINGULAR else None
