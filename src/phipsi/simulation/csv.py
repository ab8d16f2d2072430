"""Trajectories as CSV (RFC 4180, UTF-8): a header of names with units, then a row per sample.

The columns are the index in the batch (row, or row0, row1, …), t, q, v, tau, poses of frames,
signals, and quantities computed from the states (energies, momentum, centre of mass), which are not
read back. Every number is written such that it is read back bit for bit.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Iterable
from dataclasses import replace
from math import prod
from typing import Annotated, BinaryIO, NamedTuple

import numpy as np

from phipsi.model import Robot
from phipsi.model.untrusted import quoted
from phipsi.simulation import columns as c
from phipsi.simulation.trajectory_data import T, TrajectoryData, TrajectoryError
from phipsi.typing import Array, Pose

TIME = c.Label("t", "s")
_SIGNAL = re.compile(r"signal\.(?P<name>.+?)(?:\.(?P<part>[0-9]{1,6}))?(?: \[(?P<unit>[^][]*)\])?")


def write(x: TrajectoryData, file: BinaryIO) -> None:
    """Write a trajectory. Names are quoted and begin with words of ours, so that no spreadsheet
    takes one for a formula."""
    columns = [*c.states(x), *c.reported(x), *c.derived(x)]
    rows = c.levels(x.batch) if x.batch else []
    header = [*rows, str(TIME), *(str(column.label) for column in columns)]
    if x.batch and 0 in (*x.batch, len(x)):
        raise TrajectoryError("a batch without rows cannot be CSV; save it as .npz")
    layout = Layout.read(header, x.robot)
    signals = {name: (x.signals[name].shape[len(x.batch) + 1 :]) for name in x.signals}
    if (layout.frames, layout.signals, layout.units) != (list(x.frames), signals, dict(x.units)):
        raise TrajectoryError(
            "the signals have names that CSV cannot tell apart, or no numbers; save it as .npz"
        )
    names = io.StringIO()
    csv.writer(names, quoting=csv.QUOTE_ALL).writerow(header)
    file.write(names.getvalue().encode())
    for index in np.ndindex(x.batch):
        lead = "".join(f"{k}," for k in index)
        table = np.stack([x.t, *(column.values[index] for column in columns)], axis=1)
        for row in table:
            file.write(f"{lead}{','.join(map(repr, row.tolist()))}\r\n".encode())


class Layout(NamedTuple):
    """The columns of a file besides t, q, v and tau."""

    axes: int
    """The number of columns in front that are the index in the batch."""
    frames: list[str]
    """The frames whose poses follow tau, 12 columns each."""
    signals: dict[str, tuple[int, ...]]
    """The signals after those, with the shape of one sample: () or (columns,)."""
    units: dict[str, str]
    """The units of signals that have one."""

    @classmethod
    def read(cls, header: list[str], robot: Robot) -> Layout:
        """The layout that the header of a file describes."""
        axes = header.index(str(TIME)) if str(TIME) in header else 0
        own = [TIME, *c.coordinates(robot), *c.freedoms(robot), *c.forces(robot)]
        wanted = [*(c.levels((1,) * axes) if axes else []), *map(str, own)]
        for k, name in enumerate(wanted):
            if k >= len(header) or header[k] != name:
                found = quoted(header[k]) if k < len(header) else "missing"
                raise TrajectoryError(
                    f"column {k + 1} is {found}, but a trajectory of robot {robot.name!r} has "
                    f"{quoted(name)} there"
                )
        derived = [*map(str, (*c.ENERGIES, *c.MOMENTUM, *c.CENTER))]
        rest = header[len(wanted) :]
        if rest[-len(derived) :] == derived:
            rest = rest[: -len(derived)]
        layout = cls(axes, [], {}, {})
        while rest and rest[0].startswith("frame."):
            layout.frames.append(_frame(rest))
            rest = rest[len(c.POSE) :]
        for name in rest:
            layout.add(name)
        return layout

    def add(self, header: str) -> None:
        """Add the column of a signal."""
        match = _SIGNAL.fullmatch(header)
        if match is None:
            raise TrajectoryError(f"the column {quoted(header)} is unknown; remove it")
        name, part, unit = match["name"], match["part"], match["unit"]
        if part is None and name not in self.signals:
            self.signals[name] = ()
        elif part is not None and self.signals.get(name, (0,)) == (int(part),):
            self.signals[name] = (int(part) + 1,)
        else:
            raise TrajectoryError(f"the column {quoted(header)} is twice, or out of order")
        if unit is not None:
            self.units[name] = unit


def _frame(header: list[str]) -> str:
    """The name of the frame whose pose the header begins with."""
    part, unit, _ = c.POSE[0]
    name = header[0].removeprefix("frame.").removesuffix(f".{part} [{unit}]")
    wanted = [str(c.Label(f"frame.{name}.{part}", unit)) for part, unit, _ in c.POSE]
    if header[: len(wanted)] != wanted:
        raise TrajectoryError(f"after the column {quoted(header[0])} the rest of a pose is missing")
    return name


def read(file: BinaryIO, robot: Robot, make: type[T]) -> T:
    """Read a trajectory of a robot, as an object of the class `make`."""
    try:
        with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
            lines = csv.reader(text, strict=True)
            header = next(lines, list[str]())
            layout = Layout.read(header, robot)
            table = _numbers(lines, len(header))
    except (csv.Error, UnicodeDecodeError) as error:
        raise TrajectoryError(f"it is no CSV text: {quoted(str(error))}") from None
    batch, t = _batch(table, layout.axes)
    table = table.reshape(*batch, len(t), len(header))[..., layout.axes + 1 :]
    start = 0

    def take(count: int) -> Array:
        """The next `count` columns."""
        nonlocal start
        start += count
        return table[..., start - count : start]

    q, v, tau = take(robot.nq), take(robot.nv), take(robot.nv)
    frames = {name: _pose(take(len(c.POSE))) for name in layout.frames}
    signals = {
        name: take(shape[0]) if shape else take(1)[..., 0] for name, shape in layout.signals.items()
    }
    motion = make(robot, t, q, v, tau, frames, signals, layout.units)
    stored = header.index("potential_energy [J]") if "potential_energy [J]" in header else None
    if stored is None or not q.size:
        return motion
    energy = table[..., stored - layout.axes - 1]  # tells whether springs acted
    without = replace(motion, passive=False)
    with np.errstate(all="ignore"):
        differences = [np.abs(x.potential_energy - energy) for x in (motion, without)]
    gaps = [np.fmax.reduce(d, axis=None, initial=0.0) for d in differences]  # of what is a number
    return motion if gaps[0] <= gaps[1] else without


def _numbers(lines: Iterable[list[str]], width: int) -> Array:
    """The rows of numbers, (rows, width)."""
    values = array("d")
    for number, row in enumerate(lines, start=2):
        if len(row) != width:
            raise TrajectoryError(
                f"row {number} has {len(row)} cells, needs {width}; is it cut off?"
            )
        try:
            values.extend(map(float, row))
        except ValueError as error:
            raise TrajectoryError(f"row {number}: {quoted(str(error))}") from None
    return np.frombuffer(values, float).reshape(-1, width) if values else np.empty((0, width))


def _batch(table: Array, axes: int) -> tuple[tuple[int, ...], Array]:
    """The shape of the batch, and the times that all its rows share."""
    rows, t = table[:, :axes], table[:, axes]
    if not axes:
        return (), t
    last = rows[-1] if len(rows) and np.isfinite(rows[-1]).all() else np.full(axes, -1.0)
    batch = tuple(int(x) + 1 for x in last)
    count = prod(batch)
    if min(batch) < 1 or len(t) % count:
        raise TrajectoryError("the rows of the batch are incomplete")
    t = t.reshape(count, -1)
    each = np.array(list(np.ndindex(batch)), float).repeat(t.shape[1], axis=0)
    if not np.array_equal(rows, each) or (t != t[0]).any():
        raise TrajectoryError("the rows of the batch are incomplete, or differ in their times")
    return batch, t[0]


def _pose(x: Annotated[Array, "12"]) -> Pose:
    pose = np.zeros((*x.shape[:-1], 4, 4))
    pose[..., 3, 3] = 1.0
    for k, (_, _, place) in enumerate(c.POSE):
        pose[(..., *place)] = x[..., k]
    return pose
