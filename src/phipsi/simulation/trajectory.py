"""What a simulation returns: the motion of a robot, sample by sample, with names and units."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from phipsi.algorithms import frame_pose
from phipsi.model import Robot
from phipsi.simulation import columns, figure, files
from phipsi.simulation.trajectory_data import TrajectoryData, TrajectoryError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


class Sample(NamedTuple):
    """One instant of a trajectory; arrays as there, without the axis of time."""

    t: float
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    frames: Mapping[str, np.ndarray]
    signals: Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(TrajectoryData):
    """A motion at N instants; … is the batch. SI units, layouts as in `phipsi.conventions`.

    Everything is float64 and read-only. Energies and momentum are computed when first asked for.
    `len(x)` is N, `x[i]` a `Sample`, `x[i:j]` a part in time, `x.at(t)` what is between samples,
    `x.row(k)` one motion of a batch.

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
    def __getitem__(self, index: slice | Sequence[int] | np.ndarray) -> Trajectory: ...
    def __getitem__(self, index: Any) -> Sample | Trajectory:
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
        """The motion number `index` of the batch, without its axes."""
        if len(index) != len(self.batch):
            raise IndexError(f"{self!r} has {len(self.batch)} axes of a batch, not {len(index)}")
        try:
            return self._mapped(lambda x: x[index])
        except IndexError:
            raise IndexError(f"{self!r} has no row {index}; its shape is {self.batch}") from None

    @overload
    def at(self, t: float) -> Sample: ...
    @overload
    def at(self, t: Sequence[float] | np.ndarray) -> Trajectory: ...
    def at(self, t: Any) -> Sample | Trajectory:
        """The motion at an instant, or at several (M,), each between the first sample and the last.

        Between samples q moves along the hinges' own groups, by `integrate(q₀, s·difference(q₀,
        q₁))`; v, tau and signals are linear. At a sample it is that sample, bit for bit: of two at
        one instant the later.
        """
        t = np.asarray(t, float)
        if t.ndim > 1 or not len(self) or not ((self.t[0] <= t) & (t <= self.t[-1])).all():
            raise TrajectoryError(f"t needs one time or (M,), all within the times of {self!r}")
        i = np.searchsorted(self.t, t, side="right") - 1
        j = np.minimum(i + 1, len(self) - 1)
        step = self.t[j] - self.t[i]
        s = np.where(step > 0, (t - self.t[i]) / np.where(step > 0, step, 1.0), 0.0)

        def between(x: np.ndarray) -> np.ndarray:
            share = s.reshape(s.shape + (1,) * (x.ndim - len(self.batch) - 1))
            start, end = x[(*self._all, i)], x[(*self._all, j)]
            if x is self.q:
                moved = self.robot.integrate(start, share * self.robot.difference(start, end))
            else:
                moved = start + share * (end - start)
            return np.where(share == 0.0, start, moved)

        if t.ndim == 0:
            found = self._sample(float(t), between)
            return found._replace(frames=self._poses(found.q, s, i))
        part = self._part(t, between)
        return replace(part, frames=self._poses(part.q, s, i))

    def _poses(self, q: np.ndarray, s: np.ndarray, i: np.ndarray) -> dict[str, np.ndarray]:
        """The poses of the frames where s = 0 those of sample i, else at q."""
        return {
            name: np.where(
                s[..., None, None] == 0.0, x[(*self._all, i)], frame_pose(self.robot, q, name)
            )
            for name, x in self.frames.items()
        }

    @property
    def _all(self) -> tuple[slice, ...]:
        return (slice(None),) * len(self.batch)

    def _sample(self, t: float, take: Any) -> Sample:
        frames, signals = ({k: take(x) for k, x in d.items()} for d in (self.frames, self.signals))
        return Sample(t, take(self.q), take(self.v), take(self.tau), frames, signals)

    def _part(self, t: np.ndarray, take: Any) -> Trajectory:
        """The same motion at other instants."""
        first, last = (t[0], t[-1]) if len(t) else (np.inf, -np.inf)
        events = tuple(event for event in self.events if first <= event[0] <= last)
        return replace(self._mapped(take, t), events=events)

    def _mapped(self, take: Any, t: np.ndarray | None = None) -> Trajectory:
        _, q, v, tau, frames, signals = self._sample(0.0, take)
        t = self.t if t is None else t
        return replace(self, t=t, q=q, v=v, tau=tau, frames=frames, signals=signals)

    def __reduce__(self) -> Any:
        values = (getattr(self, f.name) for f in fields(self))
        return Trajectory, tuple(dict(x) if isinstance(x, Mapping) else x for x in values)

    # ---- files, tables, figures ----------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that appears complete or not at all: `.npz` (everything, the robot too) or
        `.csv` (the numbers, for other programs: no events, method and step)."""
        files.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], robot: Robot | None = None) -> Trajectory:
        """Read what `save` wrote, bit for bit; a `.csv` needs the robot."""
        return files.load(path, robot, cls)

    def to_dataframe(self) -> DataFrame:
        """A pandas table with a row per sample and named columns, as "q.elbow"; the index is t, of
        a batch its rows and t. The units are in `.attrs["units"]`."""
        return columns.dataframe(self)

    def plot(
        self, what: str | Sequence[str] = ("q", "v", "tau", "energy"), axes: Any = None
    ) -> Figure:
        """A matplotlib figure over time, a panel for each quantity and unit.

        `what`: "q", "v", "tau", "energy", "momentum", "center_of_mass", and the names of frames
        (their positions) and signals. `axes`: as many of yours as there are panels.
        """
        return figure.figure(self, [what] if isinstance(what, str) else list(what), axes)

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


def _largest(x: np.ndarray) -> float:
    """The number of largest size."""
    return float(x.flat[np.abs(x).argmax()])
