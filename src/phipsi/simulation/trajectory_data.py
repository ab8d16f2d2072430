"""The data of a trajectory: the samples, checked, and quantities computed from the states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import numpy as np

from phipsi.algorithms import (
    center_of_mass,
    frame_pose,
    kinetic_energy,
    momentum,
    passive_energy,
    potential_energy,
    spring_energy,
)
from phipsi.cached import cached_property
from phipsi.compile import as_numbers
from phipsi.model import Robot, Spring
from phipsi.model.robot import needs_robot
from phipsi.model.untrusted import MAX_NAME, quoted
from phipsi.typing import Array, ArrayLike


class TrajectoryError(ValueError):
    """A trajectory, or a file of one, is wrong; the message says what, where, and what to do."""


@dataclass(frozen=True, eq=False, repr=False)
class TrajectoryData:
    """The samples of a motion; `Trajectory` adds the methods for tables, figures and files."""

    robot: Robot
    t: Annotated[Array, "samples"]
    """The instants, (N,) [s]; two samples may share one, before and after an impact."""
    q: Annotated[Array, "samples nq"]
    """Configurations, (…, N, nq)."""
    v: Annotated[Array, "samples nv"]
    """Joint velocities, (…, N, nv) [rad/s or m/s]."""
    tau: Annotated[Array, "samples nv"]
    """Joint forces of the controller, after limits, (…, N, nv) [N·m or N]."""
    frames: Mapping[str, Annotated[Array, "samples 4 4"]] = field(default_factory=dict[str, Array])
    """Poses of the frames asked for, (…, N, 4, 4); `frame` gives that of any."""
    signals: Mapping[str, Array] = field(default_factory=dict[str, Array])
    """Signals of the controller and forces of closures, (…, N) or (…, N, k)."""
    units: Mapping[str, str] = field(default_factory=dict[str, str])
    """The units of signals, where known."""
    events: tuple[tuple[float, str], ...] = ()
    """The time [s] of each event, and one sentence that says what happened."""
    method: str = ""
    """The method of integration."""
    dt: float = float("nan")
    """Its step [s]."""
    passive: bool = True
    """Whether the springs of hinges acted: their energy is then potential energy."""
    springs: tuple[Spring, ...] = ()
    """The springs between points that acted: their energy is potential energy too."""

    def __post_init__(self) -> None:
        needs_robot("Trajectory", self.robot)
        for name in ("frames", "signals", "units"):
            if not isinstance(getattr(self, name), Mapping):
                raise TrajectoryError(f"{name} needs a mapping of names to values")
        t, q = _frozen("t", self.t), _frozen("q", self.q)
        if t.ndim != 1 or not np.isfinite(t).all() or (t[1:] < t[:-1]).any():
            raise TrajectoryError(
                f"t has shape {t.shape}; it needs (N,) finite times, none earlier than the last"
            )
        lead = (*q.shape[:-2], len(t))
        arrays: dict[str, Any] = {"t": t, "q": _shaped("q", q, lead, (self.robot.nq,))}
        for name in ("v", "tau"):
            given = _frozen(name, getattr(self, name))
            arrays[name] = _shaped(name, given, lead, (self.robot.nv,))
        frames = {
            self.robot.frame(name).name: _pose(name, x, lead) for name, x in self.frames.items()
        }
        signals = {name: _signal(name, x, lead) for name, x in self.signals.items()}
        units = {str(name): str(unit) for name, unit in self.units.items() if unit}
        for name in units:
            if name not in signals:
                raise TrajectoryError(f"units has {quoted(name)}, which is none of the signals")
        more = {"frames": frames, "signals": signals, "units": units}
        arrays |= {name: MappingProxyType(value) for name, value in more.items()}
        try:
            events = tuple((float(time), str(text)) for time, text in self.events)
            dt = float(self.dt)
        except (TypeError, ValueError, OverflowError):
            raise TrajectoryError("events needs pairs of a time and a text, dt a number") from None
        if not np.isfinite([time for time, _ in events]).all():
            raise TrajectoryError("events has a time that is not finite; give each the time [s]")
        for name, value in (*arrays.items(), ("events", events), ("dt", dt)):
            object.__setattr__(self, name, value)

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape of the batch."""
        return self.q.shape[:-2]

    @property
    def duration(self) -> float:
        """From the first instant to the last [s]."""
        return float(self.t[-1] - self.t[0]) if len(self) else 0.0

    def __len__(self) -> int:
        return len(self.t)

    @cached_property
    def kinetic_energy(self) -> Annotated[Array, "samples"]:
        """½ v*𝓜v, (…, N) [J]."""
        return np.asarray(kinetic_energy(self.robot, self.q, self.v))

    @cached_property
    def potential_energy(self) -> Annotated[Array, "samples"]:
        """The energy of gravity, zero at the origin of the world, of the springs of hinges and of
        those between points, (…, N) [J]."""
        energy = np.asarray(potential_energy(self.robot, self.q))
        if self.passive and self.robot.joint_data("stiffness").any():
            energy = energy + np.asarray(passive_energy(self.robot, self.q))
        if self.springs:
            energy = energy + np.asarray(spring_energy(self.robot, self.springs, self.q))
        return energy

    @cached_property
    def energy(self) -> Annotated[Array, "samples"]:
        """Kinetic and potential energy, (…, N) [J]."""
        return self.kinetic_energy + self.potential_energy

    @cached_property
    def momentum(self) -> Annotated[Array, "samples 6"]:
        """[angular; linear] about the origin of the world, (…, N, 6) [N·m·s, N·s]."""
        return np.asarray(momentum(self.robot, self.q, self.v))

    @cached_property
    def center_of_mass(self) -> Annotated[Array, "samples 3"]:
        """The centre of mass in the world, (…, N, 3) [m]."""
        return np.asarray(center_of_mass(self.robot, self.q))

    def frame(self, name: str) -> Annotated[Array, "samples 4 4"]:
        """The pose of a frame or body in the world, recorded or computed.

        Parameters
        ----------
        name
            A frame or a body of the robot.

        Returns
        -------
        (…, N, 4, 4)
            Homogeneous transforms.
        """
        if name in self.frames:
            return self.frames[name]
        return np.asarray(frame_pose(self.robot, self.q, self.robot.frame(name).name))


T = TypeVar("T", bound=TrajectoryData)
"""The class of trajectory that a reader makes."""


def _frozen(name: str, x: ArrayLike) -> Array:
    """x as a read-only array of float64."""
    try:
        view = as_numbers(name, x).astype(np.float64, copy=False).view()
    except (TypeError, ValueError) as error:
        raise TrajectoryError(str(error)) from None
    view.flags.writeable = False
    return view


def _shaped(name: str, x: Array, lead: tuple[int, ...], core: tuple[int, ...]) -> Array:
    if x.shape != (*lead, *core):
        raise TrajectoryError(f"{name} has shape {x.shape}, needs {(*lead, *core)}")
    return x


def _pose(name: str, x: ArrayLike, lead: tuple[int, ...]) -> Array:
    where = f"frame {quoted(name)}"
    return _shaped(where, _frozen(where, x), lead, (4, 4))


def _signal(name: str, x: ArrayLike, lead: tuple[int, ...]) -> Array:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise TrajectoryError(
            f"a signal is called {quoted(name)}; it needs a printable name of at most {MAX_NAME} "
            "characters"
        )
    where = f"signal {quoted(name)}"
    array = _frozen(where, x)
    return _shaped(where, array, lead, array.shape[len(lead) :][:1])
