"""A still picture of a robot's motion: some of its poses, the last one opaque, and its tip's path.

The picture is ray traced: for each point one of a set of parallel rays is intersected with each
solid of the scene in closed form, and the nearest solid is shown. Each pose is a layer; the layers
are blended from first to last.
"""

# pyright: reportUnknownMemberType=false
# (matplotlib declares its **kwargs without types.)
from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from phipsi import algorithms
from phipsi.typing import Array, ArrayLike, Vector3
from phipsi.view.figures import PAPER, legend, plain_text, style
from phipsi.view.geometry import corners, rotation, sides, up_axis
from phipsi.view.palette import TARGET, track_color
from phipsi.view.recorded_motion import RecordedMotion, checked
from phipsi.view.scene import Scene, Solid, scene_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_PAINT = {"link": "#ccd2da", "bulk": "#b4bdc8", "ground": "#79838f"}
_LIGHT = np.array([0.38, 0.50, 0.78])  # right, towards the reader, up
PIXELS = 900
"""Pixels along the picture's longer side."""


def picture(
    motions: Mapping[str, RecordedMotion],
    *,
    frames: Collection[str] = (),
    targets: Mapping[str, ArrayLike] | None = None,
    count: int = 5,
    azimuth: float = -50.0,
    elevation: float = 20.0,
    width: float = 8.0,
) -> Figure:
    """Motions as a still picture: some poses of each, from faint (start) to opaque (end).

    The first motion is on top.

    Parameters
    ----------
    motions
        Trajectories by label.
    frames
        Names of frames whose paths are drawn.
    targets : {label: (3,) or (4, 4)}, optional
        Positions or poses in the world [m] that are marked.
    count
        How many poses of each motion are drawn.
    azimuth
        Direction from which the motions are seen, about the vertical [°].
    elevation
        Direction from which the motions are seen, above the horizontal [°].
    width
        Width of the figure [inch].

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> from phipsi.view import picture
    >>> robot = pp.robots.double_pendulum()
    >>> t, q = np.arange(3.0), np.array([[0.0, 0.0], [0.2, 0.4], [0.4, 0.8]])
    >>> motion = pp.Trajectory(robot, t, q, 0 * q, tau=0 * q)
    >>> float(picture({"swing": motion}, count=1, width=2.0).get_figwidth())
    2.0
    """
    if not motions:
        raise ValueError("a picture needs a motion; give a mapping of labels to trajectories")
    with style():
        from matplotlib.figure import Figure

        eye = _eye(up_axis(next(iter(motions.values())).robot), azimuth, elevation)
        scenes = {label: scene_of(motion.robot) for label, motion in motions.items()}
        poses = {label: _chosen(label, motion, count) for label, motion in motions.items()}
        paths = {label: _paths(motion, frames, eye) for label, motion in motions.items()}
        marks = {name: eye @ _position(value) for name, value in (targets or {}).items()}
        seen = [corners(scenes[k], X).reshape(-1, 3) @ eye.T for k, X in poses.items()]
        seen += [path for own in paths.values() for path in own] + [x[None] for x in marks.values()]
        flat = np.concatenate(seen)[:, [0, 2]]
        margin = 0.03 * np.ptp(flat, 0).max()
        low, high = flat.min(0) - margin, flat.max(0) + margin
        image = _layers(motions, scenes, poses, eye, low, high)
        height = width * float(np.clip((high - low)[1] / (high - low)[0], 0.3, 0.8))
        figure = Figure(figsize=(width, height), layout="constrained")
        ax = figure.add_subplot(aspect="equal", xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        ax.set_axis_off()
        ax.imshow(image, extent=(low[0], high[0], low[1], high[1]), interpolation="antialiased")
        lines: list[Line2D] = []
        for k, own in enumerate(paths.values()):
            for path in own:
                lines += ax.plot(path[:, 0], path[:, 2], color=track_color(k), lw=2.2)
        for name, (x, _, z) in marks.items():
            ax.plot(x, z, "o", ms=9, mfc=TARGET, mec=PAPER, mew=1.2)
            ax.annotate(plain_text(name), (x, z), xytext=(10, 5), textcoords="offset points")
        if frames and len(lines) == len(motions) * len(frames):
            legend(figure, lines[:: len(frames)], list(motions))
        return figure


def _chosen(label: str, motion: RecordedMotion, count: int) -> Array:
    """The poses of all bodies at `count` instants spread over a motion, (count, nb, 4, 4)."""
    t, q = checked(motion, label)
    good = np.flatnonzero(np.isfinite(q).all(1) & np.isfinite(t))
    if not len(good):
        raise ValueError(f"motion {label!r} has no finite configuration to draw")
    t, q = t[good], q[good]
    when: Array = np.linspace(float(t[0]), float(t[-1]), count) if count > 1 else t[-1:]
    return np.asarray(
        algorithms.poses(motion.robot, q[np.searchsorted(t, when).clip(0, len(t) - 1)])
    )


def _paths(motion: RecordedMotion, frames: Collection[str], eye: Array) -> list[Array]:
    """The positions (n, 3) of each frame in the axes of the eye, 400 at most."""
    out: list[Array] = []
    for name in frames:
        path = np.asarray(motion.frame(name), float)[:, :3, 3] @ eye.T
        path = path[np.isfinite(path).all(1)]
        out.append(path[np.unique(np.linspace(0, len(path) - 1, 400).astype(int))])
    return out


def _position(target: ArrayLike) -> Vector3:
    """The position of a target that is a position or a pose."""
    value = np.asarray(target, float)
    return value[:3, 3] if value.shape == (4, 4) else value


def _eye(up: Vector3, azimuth: float, elevation: float) -> Array:
    """The axes of the eye as rows: right, towards the viewer, up."""
    a, e = np.radians((azimuth, elevation))
    first = np.eye(3)[0 if abs(up[0]) < 0.9 else 1]
    first = first - (first @ up) * up
    first /= np.linalg.norm(first)
    towards = np.cos(e) * (np.cos(a) * first + np.sin(a) * np.cross(up, first)) + np.sin(e) * up
    right = np.cross(up, towards)
    right /= np.linalg.norm(right)
    return np.stack((right, towards, np.cross(towards, right)))


# ---- layers ------------------------------------------------------------------------------------


def _layers(
    motions: Mapping[str, RecordedMotion],
    scenes: Mapping[str, Scene],
    poses: Mapping[str, Array],
    eye: Array,
    low: Array,
    high: Array,
) -> Array:
    """The layers of all poses blended into one image, (height, width, 4), top row first."""
    size = (high - low) / (high - low).max() * PIXELS
    x = low[0] + (np.arange(int(size[0])) + 0.5) / int(size[0]) * (high - low)[0]
    z = high[1] - (np.arange(int(size[1])) + 0.5) / int(size[1]) * (high - low)[1]
    image = np.zeros((4, len(z), len(x)), np.float32)
    last = len(next(iter(poses.values()))) - 1
    for i in range(last + 1):
        for k, label in reversed(list(enumerate(motions))):
            strength = (1.0 if k == 0 else 0.75) if i == last else 0.12 + 0.25 * i / last
            color, tint = _rgb(track_color(k)), 0.0 if k == 0 else 0.45
            layer = _layer(scenes[label], poses[label][i], eye, x, z, color, tint)
            over = layer[3] * strength
            image[:3] = image[:3] * (1 - over) + layer[:3] * over
            image[3] = image[3] * (1 - over) + over
    image[:3] /= np.maximum(image[3], 1e-6)
    return np.clip(np.moveaxis(image, 0, -1), 0, 1)


def _layer(
    drawn: Scene,
    X: Array,
    eye: Array,
    x: Array,
    z: Array,
    color: Array,
    tint: float,
) -> Array:
    """The layer of one pose: colours and opacity, (4, height, width), of 2 × 2 rays per pixel."""
    part = (x[1] - x[0]) / 4
    fine_x = (x[:, None] + [-part, part]).ravel()
    fine_z = (z[:, None] + [part, -part]).ravel()
    depth = np.full((len(fine_z), len(fine_x)), -np.inf, np.float32)
    paint = np.zeros((4, *depth.shape), np.float32)
    for solid in drawn["solids"]:
        A = np.eye(4) if solid["body"] < 0 else X[solid["body"]]
        R = eye @ A[:3, :3] @ rotation(np.array(solid["pose"][3:]))
        center = eye @ (A[:3, :3] @ solid["pose"][:3] + A[:3, 3])
        reach = np.abs(R) @ sides(solid) / 2
        rows = np.flatnonzero(np.abs(fine_z - center[2]) <= reach[2])
        columns = np.flatnonzero(np.abs(fine_x - center[0]) <= reach[0])
        if not len(rows) or not len(columns):
            continue
        window = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        across, up = fine_x[columns] - center[0], fine_z[rows] - center[2]
        grid = np.broadcast_arrays(across, up[:, None])
        O = np.tensordot(R[[0, 2]].T, np.array(grid, np.float32), 1).astype(np.float32)
        D = R[1].astype(np.float32)
        s = _met(solid, O, D)
        near = s + center[1] > depth[window]
        depth[window][near] = s[near] + center[1]
        normal = R @ _normal(solid, O[:, near] + s[near] * D[:, None])
        base = _rgb(_PAINT[solid["role"]]) if solid["role"] in _PAINT else color
        bright = 0.62 + 0.34 * np.clip(_LIGHT @ normal, 0, 1) + 0.12 * normal[1]
        shade = np.multiply.outer((1 - tint) * base + tint * color, bright)
        paint[:, *window][:3, near] = np.clip(shade, 0, 1)
        paint[3, *window][near] = 1.0
    mean = paint.reshape(4, len(z), 2, len(x), 2).mean((2, 4))
    mean[:3] /= np.maximum(mean[3], 0.25)
    return mean


# ---- rays --------------------------------------------------------------------------------------


def _met(solid: Solid, O: Array, D: Array) -> Array:
    """The largest s for which the point O + s D of each line is in the solid; −∞ if there is none.
    O (3, …) and D (3,) are in the solid's frame."""
    shape, size = solid["shape"], np.array(solid["size"], np.float32)
    if shape == "ellipsoid":
        return _ball(O / size[:, None, None], D / size)[1]
    if shape == "box":
        low, high = _slabs(O, D, size / 2)
        return np.where(low <= high, high, -np.inf)
    radius, half = size[0], size[1] / 2
    tube = _ball(O[:2] / radius, D[:2] / radius)
    slab = _slabs(O[2:], D[2:], half[None])
    low, high = np.maximum(tube[0], slab[0]), np.minimum(tube[1], slab[1])
    s = np.where(low <= high, high, -np.inf)
    if shape == "capsule":
        for end in (-half, half):
            O_end = np.stack((O[0], O[1], O[2] - end)) / radius
            s = np.maximum(s, _ball(O_end, D / radius)[1])
    return s


def _normal(solid: Solid, P: Array) -> Array:
    """The unit normals at points of the surface, (3, n)."""
    shape, size = solid["shape"], np.array(solid["size"])[:, None]
    if shape == "ellipsoid":
        return _unit(P / size**2)
    if shape == "box":
        return np.sign(P) * (np.abs(P / size).argmax(0) == np.arange(3)[:, None])
    x, y, z = P
    half = float(size[1, 0]) / 2
    if shape == "cylinder":
        end = np.abs(z) > half * (1 - 1e-5)
        return np.where(end, [0 * z, 0 * z, np.sign(z)], _unit(np.stack((x, y, 0 * z))))
    return _unit(np.stack((x, y, z - z.clip(-half, half))))


def _ball(O: Array, D: Array) -> tuple[Array, Array]:
    """The interval of s in which |O + s D| ≤ 1, as (first, last); (∞, −∞) if it is empty.

    For D = 0, a line along the axis of a tube, it is everything or empty.
    """
    a, b, c = D @ D, np.tensordot(D, O, 1), (O * O).sum(0) - 1
    if a < 1e-9:
        return np.where(c <= 0, -np.inf, np.inf), np.where(c <= 0, np.inf, -np.inf)
    root = b * b - a * c
    hit, wide = root >= 0, np.sqrt(np.clip(root, 0, None))
    return np.where(hit, (-b - wide) / a, np.inf), np.where(hit, (wide - b) / a, -np.inf)


def _slabs(O: Array, D: Array, half: Array) -> tuple[Array, Array]:
    """The interval of s in which |O + s D| ≤ half along every axis, as (first, last).

    It is empty if last < first.
    """
    D, half = np.where(np.abs(D) < 1e-6, 1e-6, D)[:, None, None], half[:, None, None]
    first, second = (-half - O) / D, (half - O) / D
    return np.minimum(first, second).max(0), np.maximum(first, second).min(0)


def _unit(x: Array) -> Array:
    """Vectors (3, n) at length one."""
    return x / np.maximum(np.linalg.norm(x, axis=0), 1e-30)


def _rgb(color: str) -> Vector3:
    """Red, green and blue between 0 and 1 of "#rrggbb"."""
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
