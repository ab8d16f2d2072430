"""A trajectory as named columns with units: for tables, figures and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from phipsi.model import Hinge, Robot
from phipsi.model.hinges import HingeKind
from phipsi.simulation.trajectory_data import TrajectoryData
from phipsi.typing import Array

if TYPE_CHECKING:
    from pandas import DataFrame


class Label(NamedTuple):
    """The name of a column, such as "q.elbow", and its unit, "" where there is none."""

    name: str
    unit: str

    def __str__(self) -> str:
        return f"{self.name} [{self.unit}]" if self.unit else self.name


class Column(NamedTuple):
    """A label and the numbers of all samples, (…, N)."""

    label: Label
    values: Annotated[Array, "samples"]


_Q = {
    "cylindrical": "angle length",
    "universal": "first second",
    "planar": "x y angle",
    "spherical": "qw qx qy qz",
    "free": "x y z qw qx qy qz",
}
_V = {
    "cylindrical": "angle length",
    "universal": "first second",
    "planar": "wn vx vy",
    "spherical": "wx wy wz",
    "free": "wx wy wz vx vy vz",
}
"""Names of the numbers of a hinge in q and in v, for the kinds that have several."""
_FORCE = str.maketrans("wv", "mf")
"""Names of v to those of tau: angular velocities become moments, linear ones forces."""
POSE = tuple(
    (name, unit, place)
    for names, unit, places in (
        ("x y z", "m", [(i, 3) for i in range(3)]),
        ("r11 r12 r13 r21 r22 r23 r31 r32 r33", "", list(np.ndindex(3, 3))),
    )
    for name, place in zip(names.split(), places, strict=True)
)
"""The columns of a pose: name, unit and index in its matrix."""
MOMENTUM = tuple(
    Label(f"momentum.{name}", "N·m·s" if name[0] == "l" else "N·s")
    for name in "lx ly lz px py pz".split()
)
CENTER = tuple(Label(f"center_of_mass.{x}", "m") for x in "xyz")
ENERGIES = tuple(Label(f"{x}energy", "J") for x in ("kinetic_", "potential_", ""))


def coordinates(robot: Robot) -> list[Label]:
    """Names and units of the numbers of q."""
    return [
        Label(f"q.{name}", unit)
        for h in robot.hinges
        for name, unit in zip(_names(h, _Q, h.kind.nq), _units(h.kind), strict=True)
    ]


def freedoms(robot: Robot) -> list[Label]:
    """Names and units of the numbers of v."""
    return [
        Label(f"v.{name}", "rad/s" if turning else "m/s")
        for h in robot.hinges
        for name, turning in zip(_names(h, _V, h.kind.nv), _turning(h), strict=True)
    ]


def forces(robot: Robot) -> list[Label]:
    """Names and units of the numbers of tau."""
    rows = {kind: names.translate(_FORCE) if "w" in names else names for kind, names in _V.items()}
    return [
        Label(f"tau.{name}", "N·m" if turning else "N")
        for h in robot.hinges
        for name, turning in zip(_names(h, rows, h.kind.nv), _turning(h), strict=True)
    ]


def _names(h: Hinge, table: dict[str, str], count: int) -> list[str]:
    """The names of the `count` numbers of a hinge, by the table of its kind."""
    if count == 1:
        return [h.name]
    numbers = " ".join(map(str, range(count)))
    kind = (h.kind.forward or h.kind).name
    return [f"{h.name}.{part}" for part in table.get(kind, numbers).split()]


def _units(kind: HingeKind) -> list[str]:
    """The units of the coordinates of a kind of hinge."""
    if kind.quaternion is not None:
        return ["m"] * kind.quaternion + [""] * (kind.nq - kind.quaternion)
    return ["rad" if angle else "m" for angle in kind.angles]


def _turning(h: Hinge) -> list[bool]:
    """For each freedom of a hinge, whether it is angular; else it is linear."""
    columns = h.kind.columns(h, h.kind.neutral)
    return [bool(np.any(np.asarray(column.angular, float))) for column in columns]


def states(trajectory: TrajectoryData) -> Iterator[Column]:
    """The columns of q, v and tau."""
    x, robot = trajectory, trajectory.robot
    yield from columns_of(coordinates(robot), x.q)
    yield from columns_of(freedoms(robot), x.v)
    yield from columns_of(forces(robot), x.tau)


def reported(trajectory: TrajectoryData) -> Iterator[Column]:
    """The columns of frames and signals."""
    for name, pose in trajectory.frames.items():
        for part, unit, place in POSE:
            yield Column(Label(f"frame.{name}.{part}", unit), pose[(..., *place)])
    for name in trajectory.signals:
        yield from signal(trajectory, name)


def signal(trajectory: TrajectoryData, name: str) -> list[Column]:
    """The columns of one signal."""
    x, unit = trajectory.signals[name], trajectory.units.get(name, "")
    if x.ndim == len(trajectory.batch) + 1:
        return [Column(Label(f"signal.{name}", unit), x)]
    labels = [Label(f"signal.{name}.{k}", unit) for k in range(x.shape[-1])]
    return list(columns_of(labels, x))


def derived(trajectory: TrajectoryData) -> Iterator[Column]:
    """The columns of energies, momentum and centre of mass."""
    for label in ENERGIES:
        yield Column(label, getattr(trajectory, label.name))
    yield from columns_of(MOMENTUM, trajectory.momentum)
    yield from columns_of(CENTER, trajectory.center_of_mass)


def columns_of(labels: Iterable[Label], x: Array) -> Iterator[Column]:
    """The columns of an array (…, N, k) with k labels."""
    for k, label in enumerate(labels):
        yield Column(label, x[..., k])


def levels(batch: tuple[int, ...]) -> list[str]:
    """The names of the axes of a batch."""
    return ["row"] if len(batch) == 1 else [f"row{k}" for k in range(len(batch))]


def dataframe(trajectory: TrajectoryData) -> DataFrame:
    """The table of `Trajectory.to_dataframe`."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("to_dataframe needs pandas: pip install 'phipsi[dataframe]'") from None
    columns = [*states(trajectory), *reported(trajectory), *derived(trajectory)]
    index = pd.Index(trajectory.t, name="t")
    if trajectory.batch:
        axes = [*map(range, trajectory.batch), trajectory.t]
        index = pd.MultiIndex.from_product(axes, names=[*levels(trajectory.batch), "t"])
    table = pd.concat([pd.Series(c.values.reshape(-1)) for c in columns], axis=1)
    table.columns = [c.label.name for c in columns]
    table.index = index
    table.attrs["units"] = {"t": "s"} | {c.label.name: c.label.unit for c in columns}
    return table
