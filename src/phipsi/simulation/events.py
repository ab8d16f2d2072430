"""What happens during a simulation: motors fail, payloads are caught and let go, goals change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from numbers import Real
from typing import Any, Literal

import numpy as np

from phipsi.algorithms import capture, loop_opening, mass_matrix_product, passive_rates
from phipsi.algorithms.cut import check_closures
from phipsi.model import Closure, Robot
from phipsi.simulation.plant import Plant

Condition = Callable[[float, Any, Any], Any]
REACH = 1e-2
"""How far apart [rad, m] frames may be to catch each other."""


class EventError(ValueError):
    """An event cannot happen; `trajectory` is the motion until then."""

    trajectory: Any = None


@dataclass(frozen=True)
class Phase:
    """What is the same between two events, and the state when it begins."""

    q: np.ndarray
    v: np.ndarray
    plant: Plant
    parameters: Mapping[str, Any]
    active: np.ndarray
    locked: np.ndarray


@dataclass(frozen=True)
class Event:
    """Something that happens at a time `at` [s], at the nearest sample, or at the first sample
    where a condition, a function of (t, q, v), is true."""

    at: float | Condition

    def __post_init__(self) -> None:
        if not callable(self.at) and not (
            isinstance(self.at, Real) and isfinite(self.at) and self.at >= 0
        ):
            raise ValueError(
                f"{type(self).__name__}: at is {self.at!r}, needs a time ≥ 0 [s] or a condition, "
                "a function of (t, q, v)"
            )

    def check(self, robot: Robot) -> None:
        """Refuse names that the robot does not have."""

    def happen(self, robot: Robot, phase: Phase) -> tuple[Phase, str]:
        """The phase that follows, and what happened in one sentence."""
        raise NotImplementedError


@dataclass(frozen=True)
class Failure(Event):
    """The motor of a hinge fails: "free", it swings without force, or "locked", its brake stops it
    at once and holds it."""

    hinge: str
    how: Literal["free", "locked"] = "free"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.how not in ("free", "locked"):
            raise ValueError(f"Failure: how is {self.how!r}, needs 'free' or 'locked'")

    def check(self, robot: Robot) -> None:
        """The hinge exists and has a motor."""
        if robot.hinge(self.hinge).kind.name == "free":
            raise ValueError(
                f"Failure: hinge {self.hinge!r} is free and has no motor that could fail"
            )

    def happen(self, robot: Robot, phase: Phase) -> tuple[Phase, str]:
        """β⁺ with (𝓜β)_p kept and zero where locked: the impulse of a brake is internal."""
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


@dataclass(frozen=True)
class Capture(Event):
    """Frames catch each other: an impact that ends their relative motion, and a closure after it
    (with restitution [0, 1] they only hit each other)."""

    closures: Sequence[Closure]
    restitution: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "closures", tuple(self.closures))
        if self.restitution is not None and not 0 <= self.restitution <= 1:
            raise ValueError(f"Capture: restitution is {self.restitution}, needs 0 to 1")

    def check(self, robot: Robot) -> None:
        """The frames exist, on different bodies."""
        check_closures(robot, self.closures, Closure)

    def happen(self, robot: Robot, phase: Phase) -> tuple[Phase, str]:
        """β⁺ = β − (1 + c)𝓜⁻¹J*N L⁻¹Q*Δ with all that is closed already"""
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
        object.__setattr__(self, "closures", tuple(self.closures))

    def happen(self, robot: Robot, phase: Phase) -> tuple[Phase, str]:
        """The plant without them."""
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

    def happen(self, robot: Robot, phase: Phase) -> tuple[Phase, str]:
        """The parameters with these in place of the old."""
        names = ", ".join(map(repr, self.parameters))
        parameters = {**phase.parameters, **self.parameters}
        return replace(phase, parameters=parameters), f"{names} of the controller change"
