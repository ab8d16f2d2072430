"""A trajectory as a matplotlib figure, made without pyplot: nothing global changes."""

# pyright: reportUnknownMemberType=false
# (matplotlib gives no types to its **kwargs.)

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from phipsi.arguments import a_class
from phipsi.simulation import columns as c
from phipsi.simulation.trajectory_data import TrajectoryData, TrajectoryError
from phipsi.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    AxesLike: TypeAlias = Axes | Sequence[Axes | Sequence[Axes]] | Array
    """Axes, or rows of them, as `subplots` gives."""

COLORS, STYLES = 10, ("-", "--", ":", "-.")
"""The number of colours, and the line styles used when the colours of a panel are used up."""
CUT = 60
"""Characters shown of the sentence of an event."""


class Panel(NamedTuple):
    """The columns of one quantity with one unit, which are drawn into the same axes."""

    what: str
    unit: str
    columns: list[c.Column]


def figure(trajectory: TrajectoryData, what: list[str], axes: AxesLike | None) -> Figure:
    """The figure of `Trajectory.plot`."""
    if trajectory.batch:
        raise TrajectoryError("a batch has no plot; take one row of it, .row(0).plot()")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install 'phipsi[plot]'") from None
    panels = [panel for name in what for panel in _panels(trajectory, name)]
    if not panels:
        raise TrajectoryError("there is nothing to plot; name at least one quantity")
    if axes is None:
        drawn = Figure(figsize=(9.0, 1.0 + 2.4 * len(panels)), layout="constrained")
        given = list(drawn.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0])
        drawn.suptitle(_plain(trajectory.robot.name))
    else:
        given = _flat(axes)
        if len(given) != len(panels):
            names = ", ".join(f"{p.what} [{p.unit}]" for p in panels)
            raise TrajectoryError(f"axes has {len(given)}, but {len(panels)} are drawn: {names}")
        drawn = cast("Figure", given[0].figure)  # or a part of one, a SubFigure
    for ax, panel in zip(given, panels, strict=True):
        _draw(ax, trajectory, panel)
    given[-1].set_xlabel("t [s]")
    _mark(given, trajectory)
    drawn.align_ylabels(given)
    return drawn


def _flat(axes: AxesLike) -> list[Axes]:
    """Axes, which may be in rows, as one list."""
    rows: Any = axes
    if hasattr(rows, "plot"):
        return [rows]
    if isinstance(rows, str) or not hasattr(rows, "__iter__"):
        kind = a_class(rows)
        raise TrajectoryError(f"axes has {kind}, needs axes of matplotlib")
    return [ax for row in rows for ax in _flat(row)]


def _draw(ax: Axes, trajectory: TrajectoryData, panel: Panel) -> None:
    for k, (label, values) in enumerate(panel.columns):
        style = STYLES[k // COLORS % len(STYLES)]
        name = _plain(label.name)
        ax.plot(trajectory.t, values, style, color=f"C{k % COLORS}", label=name, linewidth=1.2)
    ax.set_ylabel(_plain(f"{panel.what} [{panel.unit}]" if panel.unit else panel.what))
    ax.grid(alpha=0.3)
    ax.margins(x=0.0)
    many = len(panel.columns)
    size = "small" if many <= 7 else "x-small" if many <= 14 else "xx-small"
    ax.legend(
        loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=size, frameon=False,
        ncols=1 + (many - 1) // 14, labelspacing=0.2,
    )  # fmt: skip


def _mark(axes: list[Axes], trajectory: TrajectoryData) -> None:
    """Draw a line at every event, and write their sentences above the first panel."""
    for time, _ in trajectory.events:
        for ax in axes:
            ax.axvline(time, color="0.4", linewidth=0.8, linestyle=(0, (4, 3)))
    said = [f"{time:g} s: {text}"[:CUT] for time, text in trajectory.events[:4]]
    if len(trajectory.events) > 4:
        said.append(f"and {len(trajectory.events) - 4} events more")
    if said:
        axes[0].set_title(_plain("\n".join(said)), loc="left", fontsize="x-small", color="0.3")


def _panels(trajectory: TrajectoryData, what: str) -> list[Panel]:
    """The panels of a quantity: one for each unit, in the order of its columns."""
    columns = _columns(trajectory, what)
    units = list(dict.fromkeys(column.label.unit for column in columns))
    columns = sorted(columns, key=lambda column: units.index(column.label.unit))
    grouped = groupby(columns, key=lambda column: column.label.unit)
    return [Panel(what, unit, list(group)) for unit, group in grouped]


def _columns(trajectory: TrajectoryData, what: str) -> list[c.Column]:
    """The columns of a quantity, a signal or the position of a frame."""
    x, robot = trajectory, trajectory.robot
    if what in x.signals:
        return c.signal(x, what)
    match what:
        case "q":
            return list(c.columns_of(c.coordinates(robot), x.q))
        case "v":
            return list(c.columns_of(c.freedoms(robot), x.v))
        case "tau":
            return list(c.columns_of(c.forces(robot), x.tau))
        case "energy":
            return [c.Column(label, getattr(x, label.name)) for label in c.ENERGIES]
        case "momentum":
            return list(c.columns_of(c.MOMENTUM, x.momentum))
        case "center_of_mass":
            return list(c.columns_of(c.CENTER, x.center_of_mass))
        case _:
            pass
    known = ["q", "v", "tau", "energy", "momentum", "center_of_mass", *x.signals]
    frames = [*x.frames, *robot.frames, *(body.name for body in robot.bodies)]
    if what in frames:
        labels = [c.Label(f"frame.{what}.{k}", "m") for k in "xyz"]
        return list(c.columns_of(labels, x.frame(what)[..., :3, 3]))
    near = get_close_matches(str(what), [*known, *frames], n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise TrajectoryError(
        f"there is no {what!r} to plot; {hint}there are {', '.join(known)} and frames"
    )


def _plain(text: str) -> str:
    """The text with $ escaped, which matplotlib would take for formulas."""
    return text.replace("$", r"\$")
