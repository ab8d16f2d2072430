"""Figures of motions with matplotlib, without pyplot: nothing global changes.

Each function takes trajectories by label and returns a `matplotlib.figure.Figure`; the same motions
give the same bytes when saved with `save_figure`.
"""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from phipsi.model.files import write
from phipsi.view.geometry import turned_by
from phipsi.view.palette import TRACKS, track_color
from phipsi.view.recorded_motion import RecordedMotion, checked

if TYPE_CHECKING:
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
    """A motion that knows its momentum (N, 6), [angular; linear], and its energy (N,) [J]."""

    @property
    def momentum(self) -> Any:
        """About the world origin [N·m·s, N·s], (N, 6)."""
        ...

    @property
    def energy(self) -> Any:
        """Kinetic and potential [J], (N,)."""
        ...


@contextmanager
def style() -> Iterator[None]:
    """matplotlib's own defaults and ours, whatever the user's settings are, for a while."""
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

    `base` names a body or frame; by default it is the first body on a free hinge.
    """
    with style():
        figure, (turn, shift) = _axes(2)
        largest = 0.0
        lines = []
        for label, motion in motions.items():
            t, _ = checked(motion, label)
            X = np.asarray(motion.frame(base or _free_body(motion)), float)
            relative = np.swapaxes(X[:1, :3, :3], 1, 2) @ X[:, :3, :3]
            moved = np.linalg.norm(X[:, :3, 3] - X[0, :3, 3], axis=1)
            largest = max(largest, float(np.nanmax(moved)))
            lines.append((label, t, np.degrees(turned_by(relative)), moved))
        scale, unit = _length_unit(largest)
        _lines(turn, [(label, t, angle) for label, t, angle, _ in lines])
        _lines(shift, [(label, t, scale * moved) for label, t, _, moved in lines])
        _titled(turn, "base attitude, from the start", "[°]")
        _titled(shift, "base position, from the start", f"[{unit}]")
        return _finished(figure, [turn, shift], list(motions))


def tip_error(motions: Mapping[str, RecordedMotion], frame: str, target: Any) -> Figure:
    """The distance of a frame to its target [m], and its angle [°] if the target is a pose, on a
    log scale over time. `target`: (3,) or (4, 4), or one per time, (N, 3) or (N, 4, 4)."""
    with style():
        target = np.asarray(target, float)
        posed = target.shape[-2:] == (4, 4)
        if not posed and target.shape[-1:] != (3,):
            raise ValueError(f"target has shape {target.shape}; it must be (…, 3) or (…, 4, 4)")
        aim = target[..., :3, 3] if posed else target
        figure, axes = _axes(2 if posed else 1)
        far, turned = [], []
        for label, motion in motions.items():
            t, _ = checked(motion, label)
            X = np.asarray(motion.frame(frame), float)
            far.append((label, t, np.linalg.norm(X[:, :3, 3] - aim, axis=1)))
            if posed:
                R = np.swapaxes(target[..., :3, :3], -1, -2) @ X[:, :3, :3]
                turned.append((label, t, np.degrees(turned_by(R))))
        _lines(axes[0], far, log=True, to_end=True)
        _titled(axes[0], f"distance of {frame} to its target", "[m]")
        if posed:
            _lines(axes[1], turned, log=True, to_end=True)
            _titled(axes[1], f"angle of {frame} to its target", "[°]")
        return _finished(figure, axes, list(motions))


def conservation(motions: Mapping[str, Conserving], *, relative: bool = False) -> Figure:
    """How far momentum and energy leave their first values, on a log scale over time; `relative`
    divides each by the largest value that it has had in any of the motions."""
    with style():
        figure, axes = _axes(3)
        parts = (
            ("drift of angular momentum", "N·m·s", lambda m: np.asarray(m.momentum)[:, :3]),
            ("drift of linear momentum", "N·s", lambda m: np.asarray(m.momentum)[:, 3:]),
            ("drift of energy", "J", lambda m: np.asarray(m.energy)[:, None]),
        )
        for ax, (title, unit, part) in zip(axes, parts, strict=True):
            values = {label: part(motion) for label, motion in motions.items()}
            sizes = [float(np.nanmax(np.linalg.norm(x, axis=1))) for x in values.values()]
            scale = max(sizes) if relative and max(sizes) > 0 else 1.0
            drift = [
                (label, checked(motions[label], label)[0], np.linalg.norm(x - x[0], axis=1) / scale)
                for label, x in values.items()
            ]
            _lines(ax, drift, log=True)
            _titled(ax, title, "[relative]" if relative else f"[{unit}]")
        return _finished(figure, axes, list(motions))


def save_figure(figure: Figure, path: str | os.PathLike[str], *, dpi: int = 160) -> Path:
    """Write a figure as .png or .svg, by its name: whole or not at all, and the same bytes every
    time (no dates, no random names)."""
    suffix = Path(path).suffix.lower()
    if suffix == ".svg":
        return write(path, figure_svg(figure).encode())
    if suffix == ".png":
        return write(path, figure_png(figure, dpi=dpi))
    raise ValueError(f"cannot save a figure as {str(path)!r}; its name must end in .png or .svg")


def figure_png(figure: Figure, *, dpi: int = 160) -> bytes:
    """The figure as the bytes of a PNG."""
    with style():
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None}, facecolor=PAPER)
        return buffer.getvalue()


def figure_svg(figure: Figure, *, inline: bool = False) -> str:
    """The figure as the text of an SVG; `inline` for a page, whose colours it then takes."""
    with style():
        buffer = io.StringIO()
        nothing: Any = {"Date": None, "Creator": None, "Format": None, "Type": None}
        paper = "none" if inline else PAPER
        with warnings.catch_warnings():  # the reader's fonts may well have what ours lack
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            figure.savefig(buffer, format="svg", metadata=nothing, facecolor=paper)
    text = buffer.getvalue()
    if not inline:
        return text
    text = text[text.index("<svg") :]
    text = re.sub(r' id="[A-Za-z.0-9]+_\d+"', "", text)  # a page may have each name once
    text = re.sub(r' (width|height)="[0-9.]+pt"', "", text, count=2)  # as wide as the page
    return text.replace(INK, "currentColor").replace(GRID, "var(--line)")


def plain_text(text: str) -> str:
    """A name as matplotlib shows it literally: no formulas, no hidden labels."""
    text = text.replace("$", r"\$")
    return " " + text if text.startswith("_") else text


def legend(figure: Figure, handles: list[Any], labels: list[str]) -> None:
    """A legend above everything."""
    if len(labels) > 1:
        figure.legend(
            handles, [plain_text(x) for x in labels], loc="outside upper left", ncols=len(labels)
        )


# ---- pieces ------------------------------------------------------------------------------------


def _axes(count: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 0.9 + 2.2 * count), layout="constrained")
    axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    return figure, list(axes)


def _lines(
    ax: Axes, lines: list[tuple[str, Any, Any]], *, log: bool = False, to_end: bool = False
) -> None:
    """Lines over time. A log scale is not stretched by a few values near 0, but `to_end` shows
    where each line ends."""
    floors = []
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
    ax.set_title(f"{plain_text(title)} {unit}")


def _finished(figure: Figure, axes: list[Axes], labels: list[str]) -> Figure:
    axes[-1].set_xlabel("time [s]")
    legend(figure, list(axes[0].lines), labels)
    return figure


def _free_body(motion: RecordedMotion) -> str:
    for hinge in motion.robot.hinges:
        if hinge.kind.name == "free":
            return hinge.child
    raise ValueError(
        f"robot {motion.robot.name!r} has no body on a free hinge; name the base to be drawn"
    )


def _length_unit(largest: float) -> tuple[float, str]:
    return (1e3, "mm") if largest < 0.5 else (1.0, "m")
