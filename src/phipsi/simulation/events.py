"""Events of a simulation: motors fail, frames catch each other and let go, parameters change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from sys import float_info
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from phipsi.algorithms import capture, loop_opening, mass_matrix_product, passive_rates
from phipsi.algorithms.cut import check_closures
from phipsi.arguments import a_class, as_list, as_mapping
from phipsi.compile import as_number
from phipsi.model import Closure, Robot
from phipsi.simulation.plant import Plant
from phipsi.simulation.trajectory import Trajectory
from phipsi.typing import Array, Configuration, JointVector

Condition: TypeAlias = Callable[[float, Array, Array], bool | np.bool_ | Array]
"""A function of (t, q, v) that tells whether an event happens; of a batch, for each row."""
MOST = float_info.max
REACH = 1e-2
"""The largest gap [rad, m] over which frames catch each other."""


class EventError(ValueError):
    """An event cannot happen; `trajectory` is the motion until then."""

    trajectory: Trajectory | None = None


@dataclass(frozen=True)
class Phase:
    """The time between two events: the state when it begins, and what is constant in it."""

    q: Configuration
    v: JointVector
    plant: Plant
    parameters: Mapping[str, Any]
    """The parameters of the controller."""
    active: JointVector
    """Which freedoms have a motor that works."""
    locked: JointVector
    """Which freedoms a brake holds."""


@dataclass(frozen=True)
class Event:
    """Something that happens at a time or under a condition."""

    at: float | Condition
    """The time [s], of which the nearest sample counts, or a condition, a function of (t, q, v):
    the event happens at the first sample where it is true."""

    def __post_init__(self) -> None:
        if not callable(self.at) and not (isinstance(self.at, Real) and 0 <= self.at <= MOST):
            raise ValueError(
                f"{type(self).__name__}: at is {self.at!r}, needs a time ≥ 0 [s] or a condition, "
                "a function of (t, q, v)"
            )

    def check(self, robot: Robot) -> None:
        """Refuse names that the robot does not have.

        Parameters
        ----------
        robot
            The robot.
        """

    def happen(self, robot: Robot, phase: Phase) -> tuple[Phase, str]:
        """What follows the event.

        Parameters
        ----------
        robot
            The robot.
        phase
            The phase that ends.

        Returns
        -------
        Phase, str
            The phase that follows, and one sentence that says what happened.
        """
        raise NotImplementedError


FailureMode = Literal["free", "locked"]


@dataclass(frozen=True)
class Failure(Event):
    """The motor of a hinge fails."""

    hinge: str
    how: FailureMode = "free"
    """"free": the hinge swings without force; "locked": its brake stops it at once and holds it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.how not in get_args(FailureMode):
            raise ValueError(f"Failure: how is {self.how!r}, needs 'free' or 'locked'")

    def check(self, robot: Robot) -> None:
        """Refuse a hinge that does not exist or has no motor.

        Parameters
        ----------
        robot
            The robot.
        """
        if robot.hinge(self.hinge).kind.name == "free":
            raise ValueError(
                f"Failure: hinge {self.hinge!r} is free and has no motor that could fail"
            )

    def happen(self, robot: Robot, phase: Phase) -> tuple[Phase, str]:
        """The motor gives no force; a brake stops β where locked and keeps (𝓜β)_p elsewhere.

        The impulse of a brake is internal.

        Parameters
        ----------
        robot
            The robot.
        phase
            The phase that ends.

        Returns
        -------
        Phase, str
            The phase that follows, and one sentence that says what happened.
        """
        mask = robot.mask(self.hinge)
        phase = replace(phase, active=phase.active & ~mask, locked=phase.locked & ~mask)
        if self.how == "free":
            return phase, f"the motor of {self.hinge!r} fails and it swings freely"
        locked = phase.locked | mask
        momentum = mass_matrix_product(robot, phase.q, phase.v)
        still = np.where(locked, 0.0, phase.v)
        v = np.asarray(passive_rates(robot, phase.q, still, locked, momentum))
        sentence = f"the motor of {self.hinge!r} fails and its brake locks it"
        return replace(phase, locked=locked, v=v), sentence


def _closures(event: str, given: object) -> tuple[Closure, ...]:
    """The closures of an event."""
    closures = tuple(as_list(f"{event}: closures", given))
    for one in closures:
        if not isinstance(one, Closure):
            raise TypeError(
                f"{event}: closures has {a_class(one)}, needs pp.Loop(…) or pp.Grasp(…)"
            )
    return closures


@dataclass(frozen=True)
class Capture(Event):
    """Frames catch each other: an impact ends their relative motion, and a closure holds them."""

    closures: Sequence[Closure]
    restitution: float | None = None
    """From 0 to 1. If it is not zero, the frames only hit each other and no closure follows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "closures", _closures("Capture", self.closures))
        if self.restitution is None:
            return
        restitution = as_number("Capture: restitution", self.restitution)
        if not 0 <= restitution <= 1:
            raise ValueError(f"Capture: restitution is {restitution}, needs 0 to 1")

    def check(self, robot: Robot) -> None:
        """Refuse frames that do not exist or are on one body.

        Parameters
        ----------
        robot
            The robot.
        """
        check_closures(robot, self.closures, Closure)

    def happen(self, robot: Robot, phase: Phase) -> tuple[Phase, str]:
        """The impact β⁺ = β − (1 + c)𝓜⁻¹J*N L⁻¹Q*Δ, also on all that is closed already.

        Parameters
        ----------
        robot
            The robot.
        phase
            The phase that ends.

        Returns
        -------
        Phase, str
            The phase that follows, and one sentence that says what happened.
        """
        closures = (*phase.plant.closures, *self.closures)
        caught = capture(
            robot, closures, phase.q, phase.v, restitution=self.restitution, strict=False
        )
        names = ", ".join(f"{c.a!r} and {c.b!r}" for c in self.closures)
        phase = replace(phase, v=np.asarray(caught.v))
        if self.restitution:
            return phase, f"{names} hit each other"
        gap = float(np.abs(loop_opening(robot, self.closures, phase.q, phase.v).error).max())
        if phase.plant.stabilisation and gap > REACH:
            raise EventError(
                f"{names} cannot catch each other {gap:.2g} rad or m apart; bring them together "
                "first, or pass stabilisation=0 to hold them as they are"
            )
        return replace(phase, plant=replace(phase.plant, closures=closures)), (
            f"{names} catch each other"
        )


@dataclass(frozen=True)
class Release(Event):
    """Closures open again."""

    closures: Sequence[Closure]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "closures", _closures("Release", self.closures))

    def happen(self, robot: Robot, phase: Phase) -> tuple[Phase, str]:
        """The closures no longer hold.

        Parameters
        ----------
        robot
            The robot.
        phase
            The phase that ends.

        Returns
        -------
        Phase, str
            The phase that follows, and one sentence that says what happened.
        """
        for c in self.closures:
            if c not in phase.plant.closures:
                raise EventError(f"{c.a!r} and {c.b!r} cannot let go: they are not closed then")
        left = tuple(c for c in phase.plant.closures if c not in self.closures)
        names = ", ".join(f"{c.a!r} and {c.b!r}" for c in self.closures)
        return replace(phase, plant=replace(phase.plant, closures=left)), f"{names} let go"


@dataclass(frozen=True)
class Change(Event):
    """Parameters of the controller change: a new goal, other gains."""

    parameters: Mapping[str, Any]
    """New values by name; parameters that are not named stay as they are."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "parameters", as_mapping("Change: parameters", self.parameters))

    def happen(self, robot: Robot, phase: Phase) -> tuple[Phase, str]:
        """The parameters have their new values.

        Parameters
        ----------
        robot
            The robot.
        phase
            The phase that ends.

        Returns
        -------
        Phase, str
            The phase that follows, and one sentence that says what happened.
        """
        names = ", ".join(map(repr, self.parameters))
        parameters = {**phase.parameters, **self.parameters}
        return replace(phase, parameters=parameters), f"{names} of the controller change"
