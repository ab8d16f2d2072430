"""Motions as an animation for the report: the data that `assets/scene.src.js` plays, and the same
motions in words for readers who cannot see it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np

from phipsi.algorithms import poses
from phipsi.typing import Array, ArrayLike, Pose
from phipsi.view.geometry import corners, quaternions, up_axis
from phipsi.view.palette import TARGET, track_color
from phipsi.view.recorded_motion import RecordedMotion, Sampled, packed, sampled
from phipsi.view.scene import Scene, scene_of

SPEEDS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


class Track(TypedDict):
    """A motion as the player reads it; numbers are packed."""

    robot: int
    """Index of its robot."""
    color: str
    ghost: bool
    """Whether it is drawn translucent."""
    pane: int
    times: str
    poses: str
    paths: list[str]
    """Positions of frames."""


class Target(NamedTuple):
    """A target as a pose, and whether its attitude was given."""

    pose: Pose
    turned: bool


class Animation(NamedTuple):
    """An animation of motions."""

    data: dict[str, Any]
    """What the player reads (JSON)."""
    labels: list[str]
    colors: list[str]
    ghosts: list[bool]
    """Whether each motion is drawn translucent."""
    panes: list[str]
    """Titles of the panes, if motions are side by side."""
    words: list[str]
    """The motions in sentences."""
    speed: float
    """The speed at which it plays at first."""


def animation(
    motions: Mapping[str, RecordedMotion],
    *,
    frames: Collection[str] = (),
    targets: Mapping[str, ArrayLike] | None = None,
    ghosts: Collection[str] | None = None,
    side_by_side: bool = False,
) -> Animation:
    """Motions together or side by side, with the paths of `frames` and markers at `targets`.

    Targets are (3,) or (4, 4) [m]. `ghosts` names the motions that are drawn translucent; by
    default, if they are drawn together, all but the first.
    """
    if not motions:
        raise ValueError("an animation needs a motion; give a mapping of labels to trajectories")
    labels = list(motions)
    for name in frames:
        if not any(_known(motion, [name]) for motion in motions.values()):
            motions[labels[0]].robot.frame(name)  # raises an error that lists the frames
    faint = set(() if side_by_side else labels[1:]) if ghosts is None else set(ghosts)
    if faint - set(labels):
        raise ValueError(f"ghosts names {sorted(faint - set(labels))[0]!r}, which is no motion")
    marks = {label: _target(label, value) for label, value in (targets or {}).items()}
    robots = {m.robot.key: scene_of(m.robot, _known(m, frames)) for m in motions.values()}
    keys = list(robots)
    samples = {label: sampled(motion, label) for label, motion in motions.items()}
    tracks: list[Track] = [
        {
            "robot": keys.index(motions[label].robot.key),
            "color": track_color(k),
            "ghost": label in faint,
            "pane": k if side_by_side else 0,
            "times": packed(samples[label].t),
            "poses": packed(samples[label].poses),
            "paths": [
                packed(_positions(motions[label], name, samples[label]))
                for name in _known(motions[label], frames)
            ],
        }
        for k, label in enumerate(labels)
    ]
    duration = max(float(s.t[-1]) for s in samples.values())
    step = duration / max(1, max(len(s.t) for s in samples.values()) - 1)
    data = {
        "robots": list(robots.values()),
        "tracks": tracks,
        "panes": labels if side_by_side else [""],
        "targets": [
            {"label": label, "pose": _position_and_quaternion(X), "color": TARGET, "turned": turned}
            for label, (X, turned) in marks.items()
        ],
        "duration": duration,
        "start": float(np.asarray(motions[labels[0]].t, float)[0]),
        "step": step,
        "digits": _digits(step),
        "rod": max(s["radius"] for s in robots.values()),
        **_space(motions, robots, samples, [X[:3, 3] for X, _ in marks.values()]),
    }
    words = [
        line
        for label, motion in motions.items()
        for line in _words(label, motion, samples[label], frames, marks)
    ]
    return Animation(
        data, labels, [t["color"] for t in tracks], [t["ghost"] for t in tracks],
        labels if side_by_side else [], words, _speed(duration),
    )  # fmt: skip


def _space(
    motions: Mapping[str, RecordedMotion],
    robots: Mapping[str, Scene],
    samples: Mapping[str, Sampled],
    points: Sequence[Array],
) -> dict[str, Any]:
    """The sphere that the camera has to show, and a floor below everything."""
    up = up_axis(next(iter(motions.values())).robot)
    clouds: list[Array] = list(points)
    for label, motion in motions.items():
        kept = samples[label].kept
        few = kept[np.unique(np.linspace(0, len(kept) - 1, 60).astype(int))]
        X = np.asarray(poses(motion.robot, np.asarray(motion.q, float)[few]))
        clouds.append(corners(robots[motion.robot.key], X).reshape(-1, 3))
    cloud = np.vstack(clouds)
    low, high = cloud.min(0), cloud.max(0)
    center = (low + high) / 2
    radius = float(np.linalg.norm(cloud - center, axis=1).max()) or 1.0
    height = float((cloud @ up).min())
    # a round number of metres, about eight squares across
    square = 10.0 ** np.floor(np.log10(radius))
    square *= 0.5 if radius < 2.5 * square else 1.0
    divisions = 2 * int(np.ceil(2 * radius / square))
    below = center + (height - center @ up) * up
    flat = (below / square).round() * square
    floor = flat + (height - flat @ up) * up
    return {
        "up": up.tolist(), "center": center.tolist(), "radius": radius,
        "floor": {
            "center": floor.tolist(), "size": float(divisions * square), "divisions": divisions,
        },
    }  # fmt: skip


def _words(
    label: str,
    motion: RecordedMotion,
    s: Sampled,
    frames: Collection[str],
    marks: Mapping[str, Target],
) -> list[str]:
    """The motion in sentences: the robot, the duration, and start, end and miss of each frame."""
    robot = motion.robot
    bodies = "1 body" if robot.nb == 1 else f"{robot.nb} bodies"
    lines = [f"{label}: robot {robot.name} ({bodies}) moves for {s.t[-1]:.4g} s."]
    if s.broken is not None:
        lines.append(f"{label}: at {s.broken:.4g} s the motion stops being finite and ends here.")
    for name in _known(motion, frames):
        path = _positions(motion, name, s)
        line = f"{label}: {name} goes from {_point(path[0])} to {_point(path[-1])}"
        near = [
            f"{1e3 * float(np.linalg.norm(path[-1] - X[:3, 3])):.3g} mm from {mark}"
            for mark, (X, _) in marks.items()
        ]
        lines.append(line + (f" and ends {', '.join(near)}." if near else "."))
    return lines


def _known(motion: RecordedMotion, frames: Collection[str]) -> list[str]:
    """Those of the frames that the robot of this motion has."""
    robot = motion.robot
    names = {*robot.frames, *(body.name for body in robot.bodies)}
    return [name for name in frames if name in names]


def _positions(motion: RecordedMotion, name: str, s: Sampled) -> Array:
    """The positions (n, 3) of a frame at the sampled instants [m]."""
    return np.asarray(motion.frame(name), float)[s.kept, :3, 3]


def _target(label: str, value: ArrayLike) -> Target:
    """A position or pose as a target."""
    given: Array = np.asarray(value, float)
    if given.shape not in ((3,), (4, 4)) or not np.isfinite(given).all():
        raise ValueError(
            f"target {label!r} must be a position (3,) or a pose (4, 4) of finite numbers, "
            f"not of shape {given.shape}"
        )
    if given.shape == (4, 4):
        return Target(given, True)
    X = np.eye(4)
    X[:3, 3] = given
    return Target(X, False)


def _position_and_quaternion(X: Pose) -> list[float]:
    return [*X[:3, 3].tolist(), *quaternions(X[:3, :3]).tolist()]


def _point(x: Array) -> str:
    """A point in words."""
    return "(" + ", ".join(f"{value:.3f}" for value in x) + ") m"


def _digits(step: float) -> int:
    """How many decimals of a time [s] the clock shows."""
    return int(np.clip(np.ceil(-np.log10(step)), 0, 6)) if step > 0 else 2


def _speed(duration: float) -> float:
    """Real time if that takes 2 to 30 s, else the speed at which it takes about 10 s."""
    if 2 <= duration <= 30:
        return 1.0
    return min(SPEEDS, key=lambda speed: abs(np.log(max(duration, 1e-9) / speed / 10)))
