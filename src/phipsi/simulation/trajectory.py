"""Trajectories: motions of a robot as samples with names and units, which simulations return."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from phipsi.algorithms import frame_pose
from phipsi.arguments import as_names
from phipsi.compile import as_numbers
from phipsi.model import Robot
from phipsi.simulation import columns, figure, files
from phipsi.simulation.trajectory_data import TrajectoryData, TrajectoryError
from phipsi.typing import Array, Configuration, JointVector, Pose

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from phipsi.simulation.figure import AxesLike


class Sample(NamedTuple):
    """One instant of a trajectory; arrays as in `Trajectory`, without the axis of time."""

    t: float
    q: Configuration
    v: JointVector
    tau: JointVector
    frames: Mapping[str, Pose]
    signals: Mapping[str, Array]


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(TrajectoryData):
    """A motion at N instants; … is the batch. SI units, layouts as in `phipsi.conventions`.

    Everything is float64 and read-only. Energies and momentum are computed when first asked for.
    `len(x)` is N, `x[i]` a `Sample`, `x[i:j]` a part in time, `x.at(t)` the motion at any time,
    `x.row(k)` one motion of a batch.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> t, q, v = np.arange(3.0), np.array([[0, 0], [1, 2], [2, 4]]), np.ones((3, 2))
    >>> motion = Trajectory(robot, t, q, v, tau=0 * v)
    >>> motion
    <Trajectory of 'double_pendulum': 3 samples from 0 to 2 s>
    >>> motion.at(1.5).q, motion[1:].momentum.shape
    (array([1.5, 3. ]), (2, 6))
    """

    # ---- parts ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Sample]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | Array) -> Trajectory: ...
    def __getitem__(self, index: int | slice | Sequence[int] | Array) -> Sample | Trajectory:
        try:
            t = self.t[index]
        except IndexError:
            raise IndexError(f"{self!r} has no sample {index!r}; it is indexed by time") from None
        if t.ndim == 0:
            return self._sample(float(t), lambda x: x[(*self._all, index)])
        if t.ndim > 1:
            raise IndexError(f"a trajectory is indexed by time alone, not by {index!r}")
        return self._part(t, lambda x: x[(*self._all, index)])

    def row(self, *index: int) -> Trajectory:
        """One motion of the batch.

        Parameters
        ----------
        *index
            Its place, a number for each axis of the batch.

        Returns
        -------
        Trajectory
            The motion, without the axes of the batch.
        """
        if len(index) != len(self.batch):
            raise IndexError(f"{self!r} has {len(self.batch)} axes of a batch, not {len(index)}")
        try:
            return self._mapped(lambda x: x[index])
        except IndexError:
            raise IndexError(f"{self!r} has no row {index}; its shape is {self.batch}") from None

    @overload
    def at(self, t: float) -> Sample: ...
    @overload
    def at(self, t: Sequence[float] | Array) -> Trajectory: ...
    def at(self, t: float | Sequence[float] | Array) -> Sample | Trajectory:
        """The motion at one time, or at several.

        Between samples q moves along the groups of the hinges, by `integrate(q₀, s·difference(q₀,
        q₁))`; v, tau and signals are linear. At the time of a sample the result is that sample, bit
        for bit; of two samples at one time the later.

        Parameters
        ----------
        t : number or (M,)
            Times [s], each between the first sample and the last.

        Returns
        -------
        Sample or Trajectory
            A sample for one time, a trajectory of M samples for several.
        """
        times = as_numbers("t", t)
        if (
            times.ndim > 1
            or not len(self)
            or not ((self.t[0] <= times) & (times <= self.t[-1])).all()
        ):
            raise TrajectoryError(f"t needs one time or (M,), all within the times of {self!r}")
        i = np.searchsorted(self.t, times, side="right") - 1
        j = np.minimum(i + 1, len(self) - 1)
        step = self.t[j] - self.t[i]
        s = np.where(step > 0, (times - self.t[i]) / np.where(step > 0, step, 1.0), 0.0)

        def between(x: Array) -> Array:
            share = s.reshape(s.shape + (1,) * (x.ndim - len(self.batch) - 1))
            start, end = x[(*self._all, i)], x[(*self._all, j)]
            if x is self.q:
                moved = self.robot.integrate(start, share * self.robot.difference(start, end))
            else:
                moved = start + share * (end - start)
            return np.where(share == 0.0, start, moved)

        if times.ndim == 0:
            found = self._sample(float(times), between)
            return found._replace(frames=self._poses(found.q, s, i))
        part = self._part(times, between)
        return replace(part, frames=self._poses(part.q, s, i))

    def _poses(self, q: Array, s: Array, i: Array) -> dict[str, Array]:
        """The poses of the frames: those recorded with sample i where s = 0, elsewhere at q."""
        return {
            name: np.where(
                s[..., None, None] == 0.0, x[(*self._all, i)], frame_pose(self.robot, q, name)
            )
            for name, x in self.frames.items()
        }

    @property
    def _all(self) -> tuple[slice, ...]:
        """The index of all rows of the batch."""
        return (slice(None),) * len(self.batch)

    def _sample(self, t: float, take: Callable[[Array], Array]) -> Sample:
        """The sample at t whose arrays `take` makes of those of the trajectory."""
        frames, signals = ({k: take(x) for k, x in d.items()} for d in (self.frames, self.signals))
        return Sample(t, take(self.q), take(self.v), take(self.tau), frames, signals)

    def _part(self, t: Array, take: Callable[[Array], Array]) -> Trajectory:
        """The motion at the times t, whose arrays `take` makes of those of the trajectory."""
        first, last = (t[0], t[-1]) if len(t) else (np.inf, -np.inf)
        events = tuple(event for event in self.events if first <= event[0] <= last)
        return replace(self._mapped(take, t), events=events)

    def _mapped(self, take: Callable[[Array], Array], t: Array | None = None) -> Trajectory:
        _, q, v, tau, frames, signals = self._sample(0.0, take)
        t = self.t if t is None else t
        return replace(self, t=t, q=q, v=v, tau=tau, frames=frames, signals=signals)

    def __reduce__(self) -> tuple[type[Trajectory], tuple[Any, ...]]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {name: dict(values[name]) for name in ("frames", "signals", "units")}
        return Trajectory, tuple((values | plain).values())

    # ---- files, tables, figures ----------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, which appears complete or not at all.

        Parameters
        ----------
        path
            A path that ends with `.npz` (everything, the robot too) or `.csv` (the numbers, for
            other programs: no events, method and step).
        """
        files.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], robot: Robot | None = None) -> Trajectory:
        """Read what `save` wrote, bit for bit.

        Parameters
        ----------
        path
            A file `.npz` or `.csv`.
        robot : optional
            The robot; a `.csv` needs it, in place of the robot in an `.npz`.

        Returns
        -------
        Trajectory
            The trajectory.
        """
        return files.load(path, robot, cls)

    def to_dataframe(self) -> DataFrame:
        """A pandas table with a row per sample and named columns, such as "q.elbow".

        Returns
        -------
        pandas.DataFrame
            The index is t, of a batch its rows and t. The units are in `.attrs["units"]`.
        """
        return columns.dataframe(self)

    def plot(
        self, what: str | Sequence[str] = ("q", "v", "tau", "energy"), axes: AxesLike | None = None
    ) -> Figure:
        """A matplotlib figure over time, with a panel for each quantity and unit.

        Parameters
        ----------
        what
            Any of "q", "v", "tau", "energy", "momentum", "center_of_mass", and of the names of
            frames (their positions) and signals.
        axes : optional
            Axes of your own, as many as there are panels.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; that of `axes` if they are given.
        """
        return figure.figure(self, as_names("what", what), axes)

    def __repr__(self) -> str:
        times = f" from {self.t[0]:g} to {self.t[-1]:g} s" if len(self) else ""
        batch = f"batch {self.batch}, " if self.batch else ""
        method = f", {self.method}" if self.method else ""
        step = f", dt = {self.dt:g} s" if np.isfinite(self.dt) else ""
        samples = "1 sample" if len(self) == 1 else f"{len(self)} samples"
        return f"<Trajectory of {self.robot.name!r}: {batch}{samples}{times}{method}{step}>"

    def __str__(self) -> str:
        lines = [repr(self)[1:-1]]
        if self.q.size:
            ends = self[[0, -1]].energy
            first, gain = _largest(ends[..., 0]), ends[..., 1] - ends[..., 0]
            lines.append(f"energy {first:.6g} J, from first to last {_largest(gain):+.3g} J")
        for what, names in (("frames", self.frames), ("signals", self.signals)):
            if names:
                lines.append(f"{what}: {', '.join(names)}")
        lines.extend(f"{time:g} s: {text}" for time, text in self.events)
        return "\n  ".join(lines)


def _largest(x: Array) -> float:
    """The number of largest absolute value."""
    return float(x.flat[np.abs(x).argmax()])
