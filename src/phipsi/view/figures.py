"""Figures of motions with matplotlib, without pyplot: nothing global changes.

Each function takes trajectories by label and returns a `matplotlib.figure.Figure`; the same motions
give the same bytes when saved with `save_figure`.
"""

# pyright: reportUnknownMemberType=false
# (matplotlib declares its **kwargs without types.)
from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from phipsi.model.files import write
from phipsi.typing import Array, ArrayLike
from phipsi.view.geometry import turned_by
from phipsi.view.palette import TRACKS, track_color
from phipsi.view.recorded_motion import RecordedMotion, checked

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GRID, PAPER = "#1d2126", "#dcdfe3", "#ffffff"
STYLES = ("-", "--", "-.", ":")

_STYLE = {
    "svg.hashsalt": "phipsi", "svg.fonttype": "none", "font.family": "sans-serif",
    "font.size": 10.0, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.grid": True, "grid.color": GRID,
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.titlesize": 10.0, "axes.titlelocation": "left", "axes.titleweight": "bold",
    "lines.linewidth": 1.8, "legend.frameon": False, "figure.facecolor": PAPER,
    "axes.facecolor": "none", "axes.formatter.use_mathtext": False,
}  # fmt: skip


class Conserving(RecordedMotion, Protocol):
    """A motion with its momentum (N, 6), [angular; linear], and its energy (N,) [J].

    Both are arrays; pyright would not take the cached properties of a `Trajectory` for that.
    """

    @property
    def momentum(self) -> Any:
        """About the world origin [N·m·s, N·s], (N, 6)."""
        ...

    @property
    def energy(self) -> Any:
        """Kinetic and potential [J], (N,)."""
        ...


class Line(NamedTuple):
    """A line over time: its label, times [s] and values."""

    label: str
    t: Array
    y: Array


@contextmanager
def style() -> Generator[None, None, None]:
    """Set matplotlib's defaults and ours, whatever the user's settings are, within a `with`."""
    try:
        import matplotlib
    except ImportError:
        raise ImportError('figures need matplotlib: pip install "phipsi[plot]"') from None
    kept = ("backend", "backend_fallback", "interactive", "toolbar", "timezone")
    plain = {k: v for k, v in matplotlib.rcParamsDefault.items() if k not in kept}
    settings: Any = {**plain, **_STYLE}
    with matplotlib.rc_context(settings):
        yield


def base_motion(motions: Mapping[str, RecordedMotion], base: str | None = None) -> Figure:
    """How far a free base turns [°] and moves [mm or m] from where it started, over time.

    Parameters
    ----------
    motions
        Trajectories by label.
    base
        Name of a body or frame; by default the first body on a free hinge.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.view import base_motion
    >>> robot = pp.robots.chain(1, base="free")
    >>> t, q, v = np.arange(3.0), np.tile(robot.neutral(), (3, 1)), np.zeros((3, robot.nv))
    >>> figure = base_motion({"at rest": pp.Trajectory(robot, t, q, v, tau=v)})
    >>> [ax.get_title("left") for ax in figure.axes]
    ['base attitude, from the start [°]', 'base position, from the start [mm]']
    """
    with style():
        figure, (turn, shift) = _axes(2)
        largest = 0.0
        angles: list[Line] = []
        shifts: list[Line] = []
        for label, motion in motions.items():
            t, _ = checked(motion, label)
            X = np.asarray(motion.frame(base or _free_body(motion)), float)
            relative = np.swapaxes(X[:1, :3, :3], 1, 2) @ X[:, :3, :3]
            moved = np.linalg.norm(X[:, :3, 3] - X[0, :3, 3], axis=1)
            largest = max(largest, float(np.nanmax(moved)))
            angles.append(Line(label, t, np.degrees(turned_by(relative))))
            shifts.append(Line(label, t, moved))
        scale, unit = _length_unit(largest)
        _lines(turn, angles)
        _lines(shift, [line._replace(y=scale * line.y) for line in shifts])
        _titled(turn, "base attitude, from the start", "[°]")
        _titled(shift, "base position, from the start", f"[{unit}]")
        return _finished(figure, [turn, shift], list(motions))


def tip_error(motions: Mapping[str, RecordedMotion], frame: str, target: ArrayLike) -> Figure:
    """The distance of a frame to its target [m], and its angle [°] if the target is a pose.

    Both are drawn on a log scale over time.

    Parameters
    ----------
    motions
        Trajectories by label.
    frame
        Name of the frame.
    target : (3,), (4, 4), (N, 3) or (N, 4, 4)
        Position or pose in the world [m], one for all times or one for each.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.view import tip_error
    >>> robot = pp.robots.double_pendulum()
    >>> t, q = np.arange(3.0), np.zeros((3, 2))
    >>> motion = pp.Trajectory(robot, t, q, q, tau=q)
    >>> figure = tip_error({"at rest": motion}, "tool", target=[0.0, 0.0, -1.0])
    >>> [ax.get_title("left") for ax in figure.axes]
    ['distance of tool to its target [m]']
    """
    with style():
        wanted: Array = np.asarray(target, float)
        posed = wanted.shape[-2:] == (4, 4)
        if not posed and wanted.shape[-1:] != (3,):
            raise ValueError(f"target has shape {wanted.shape}; it must be (…, 3) or (…, 4, 4)")
        aim = wanted[..., :3, 3] if posed else wanted
        figure, axes = _axes(2 if posed else 1)
        far: list[Line] = []
        turned: list[Line] = []
        for label, motion in motions.items():
            t, _ = checked(motion, label)
            X = np.asarray(motion.frame(frame), float)
            far.append(Line(label, t, np.linalg.norm(X[:, :3, 3] - aim, axis=1)))
            if posed:
                R = np.swapaxes(wanted[..., :3, :3], -1, -2) @ X[:, :3, :3]
                turned.append(Line(label, t, np.degrees(turned_by(R))))
        _lines(axes[0], far, log=True, to_end=True)
        _titled(axes[0], f"distance of {frame} to its target", "[m]")
        if posed:
            _lines(axes[1], turned, log=True, to_end=True)
            _titled(axes[1], f"angle of {frame} to its target", "[°]")
        return _finished(figure, axes, list(motions))


def conservation(motions: Mapping[str, Conserving], *, relative: bool = False) -> Figure:
    """How far momentum and energy drift from their first values, on a log scale over time.

    Parameters
    ----------
    motions
        Trajectories by label.
    relative
        Whether each drift is divided by the largest value of that quantity in any of the motions.

    Returns
    -------
    matplotlib.figure.Figure
        The figure: angular momentum, linear momentum, energy.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.view import conservation
    >>> robot = pp.robots.double_pendulum()
    >>> t, q = np.arange(3.0), np.zeros((3, 2))
    >>> figure = conservation({"at rest": pp.Trajectory(robot, t, q, q, tau=q)})
    >>> [ax.get_title("left") for ax in figure.axes][2]
    'drift of energy [J]'
    """
    with style():
        figure, axes = _axes(3)
        parts: Sequence[tuple[str, str, Callable[[Conserving], Array]]] = (
            ("drift of angular momentum", "N·m·s", lambda m: np.asarray(m.momentum)[:, :3]),
            ("drift of linear momentum", "N·s", lambda m: np.asarray(m.momentum)[:, 3:]),
            ("drift of energy", "J", lambda m: np.asarray(m.energy)[:, None]),
        )
        for ax, (title, unit, part) in zip(axes, parts, strict=True):
            values = {label: part(motion) for label, motion in motions.items()}
            sizes = [float(np.nanmax(np.linalg.norm(x, axis=1))) for x in values.values()]
            scale = max(sizes) if relative and max(sizes) > 0 else 1.0
            drift = [
                Line(
                    label,
                    checked(motions[label], label).t,
                    np.linalg.norm(x - x[0], axis=1) / scale,
                )
                for label, x in values.items()
            ]
            _lines(ax, drift, log=True)
            _titled(ax, title, "[relative]" if relative else f"[{unit}]")
        return _finished(figure, axes, list(motions))


def save_figure(figure: Figure, path: str | os.PathLike[str], *, dpi: int = 160) -> Path:
    """Write a figure as .png or .svg, by its name: whole or not at all.

    The same figure gives the same bytes every time (no dates, no random names).

    Parameters
    ----------
    figure
        A matplotlib figure.
    path
        Name of the file, which ends in .png or .svg.
    dpi
        Dots per inch of a PNG.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ValueError
        If the name ends in something else.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from phipsi.view import save_figure
    >>> save_figure(Figure(), "picture.jpg")
    Traceback (most recent call last):
        ...
    ValueError: cannot save a figure as 'picture.jpg'; its name must end in .png or .svg
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".svg":
        return write(path, figure_svg(figure).encode())
    if suffix == ".png":
        return write(path, figure_png(figure, dpi=dpi))
    raise ValueError(f"cannot save a figure as {str(path)!r}; its name must end in .png or .svg")


def figure_png(figure: Figure, *, dpi: int = 160) -> bytes:
    """The figure as the bytes of a PNG.

    Parameters
    ----------
    figure
        A matplotlib figure.
    dpi
        Dots per inch.

    Returns
    -------
    bytes
        The file.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from phipsi.view import figure_png
    >>> figure_png(Figure(figsize=(1.0, 1.0)), dpi=10)[1:4]
    b'PNG'
    """
    with style():
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None}, facecolor=PAPER)
        return buffer.getvalue()


def figure_svg(figure: Figure, *, inline: bool = False) -> str:
    """The figure as the text of an SVG; with `inline` for a page, in the colours of the page."""
    with style():
        buffer = io.StringIO()
        nothing: Any = {"Date": None, "Creator": None, "Format": None, "Type": None}
        paper = "none" if inline else PAPER
        with warnings.catch_warnings():  # the reader's fonts may have the glyphs that ours lack
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            figure.savefig(buffer, format="svg", metadata=nothing, facecolor=paper)
    text = buffer.getvalue()
    if not inline:
        return text
    text = text[text.index("<svg") :]
    text = re.sub(r' id="[A-Za-z.0-9]+_\d+"', "", text)  # an id must be unique in a page
    text = re.sub(r' (width|height)="[0-9.]+pt"', "", text, count=2)  # as wide as the page
    return text.replace(INK, "currentColor").replace(GRID, "var(--line)")


def plain_text(text: str) -> str:
    """A name escaped so that matplotlib shows it literally: no formulas, no hidden labels."""
    text = text.replace("$", r"\$")
    return " " + text if text.startswith("_") else text


def legend(figure: Figure, handles: Sequence[Artist], labels: list[str]) -> None:
    """Put a legend above all axes, if there is more than one label."""
    if len(labels) > 1:
        figure.legend(
            handles, [plain_text(x) for x in labels], loc="outside upper left", ncols=len(labels)
        )


# ---- pieces ------------------------------------------------------------------------------------


def _axes(count: int) -> tuple[Figure, list[Axes]]:
    """A figure and its axes, one below the other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 0.9 + 2.2 * count), layout="constrained")
    axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    return figure, list(axes)


def _lines(ax: Axes, lines: list[Line], *, log: bool = False, to_end: bool = False) -> None:
    """Draw lines over time. The lower end of a log scale ignores a few values near 0, but with
    `to_end` the last value of each line is shown."""
    floors: list[float] = []
    for k, (_, t, y) in enumerate(lines):
        kept = np.where(np.isfinite(y) & ((y > 0) | (not log)), y, np.nan)
        ax.plot(t, kept, color=track_color(k), linestyle=STYLES[k // len(TRACKS) % 4])
        if log and np.isfinite(kept).any():
            low = float(np.nanpercentile(kept, 3))
            floors.append(min(low, kept[np.isfinite(kept)][-1]) / 2 if to_end else low / 3)
    if floors:
        ax.set_yscale("log")
        ax.set_ylim(bottom=min(floors))


def _titled(ax: Axes, title: str, unit: str) -> None:
    """Give axes a title with its unit."""
    ax.set_title(f"{plain_text(title)} {unit}")


def _finished(figure: Figure, axes: list[Axes], labels: list[str]) -> Figure:
    """The figure with the label of its time axis and a legend."""
    axes[-1].set_xlabel("time [s]")
    legend(figure, list(axes[0].lines), labels)
    return figure


def _free_body(motion: RecordedMotion) -> str:
    """The first body on a free hinge."""
    for hinge in motion.robot.hinges:
        if hinge.kind.name == "free":
            return hinge.child
    raise ValueError(
        f"robot {motion.robot.name!r} has no body on a free hinge; name the base to be drawn"
    )


def _length_unit(largest: float) -> tuple[float, str]:
    """Factor and name of the unit in which lengths up to `largest` [m] are drawn."""
    return (1e3, "mm") if largest < 0.5 else (1.0, "m")
