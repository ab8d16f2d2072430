"""Motions as an animation for the report: the data that `assets/scene.src.js` plays, and words for
those who cannot see it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms import poses
from phipsi.view.geometry import corners, quaternions, up_axis
from phipsi.view.palette import TARGET, track_color
from phipsi.view.recorded_motion import RecordedMotion, Sampled, packed, sampled
from phipsi.view.scene import Scene, scene_of

SPEEDS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


class Animation(NamedTuple):
    """`data` for the player (JSON), labels, colours and ghosts of the motions, the names of panes
    side by side, and the motions in words."""

    data: dict[str, Any]
    labels: list[str]
    colors: list[str]
    ghosts: list[bool]
    panes: list[str]
    words: list[str]
    speed: float


def animation(
    motions: Mapping[str, RecordedMotion],
    *,
    frames: Collection[str] = (),
    targets: Mapping[str, Any] | None = None,
    ghosts: Collection[str] | None = None,
    side_by_side: bool = False,
) -> Animation:
    """Motions together (all but the first as ghosts, if `ghosts` does not say which) or side by
    side, with the paths of `frames` and markers at `targets`, (3,) or (4, 4) [m]."""
    if not motions:
        raise ValueError("an animation needs a motion; give a mapping of labels to trajectories")
    labels = list(motions)
    for name in frames:
        if not any(_known(motion, [name]) for motion in motions.values()):
            motions[labels[0]].robot.frame(name)  # raises the error that says which there are
    faint = set(() if side_by_side else labels[1:]) if ghosts is None else set(ghosts)
    if faint - set(labels):
        raise ValueError(f"ghosts names {sorted(faint - set(labels))[0]!r}, which is no motion")
    marks = {label: _pose(label, value) for label, value in (targets or {}).items()}
    robots = {m.robot.key: scene_of(m.robot, _known(m, frames)) for m in motions.values()}
    keys = list(robots)
    samples = {label: sampled(motion, label) for label, motion in motions.items()}
    tracks = [
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
            {"label": label, "pose": _seven(X), "color": TARGET, "turned": turned}
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
    points: Sequence[np.ndarray],
) -> dict[str, Any]:
    """What the camera has to see, and a floor below all of it."""
    up = up_axis(next(iter(motions.values())).robot)
    clouds = list(points)
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
    flat = np.round(below / square) * square
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
    marks: Mapping[str, tuple[np.ndarray, bool]],
) -> list[str]:
    """The motion in sentences: what moves, for how long, from where to where, how near to what."""
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
    """The frames that this robot has; one robot of several at least must have each."""
    robot = motion.robot
    names = {*robot.frames, *(body.name for body in robot.bodies)}
    return [name for name in frames if name in names]


def _positions(motion: RecordedMotion, name: str, s: Sampled) -> np.ndarray:
    return np.asarray(motion.frame(name), float)[s.kept, :3, 3]


def _pose(label: str, value: Any) -> tuple[np.ndarray, bool]:
    """A target as a pose, and whether its attitude was given."""
    value = np.asarray(value, float)
    if value.shape not in ((3,), (4, 4)) or not np.isfinite(value).all():
        raise ValueError(
            f"target {label!r} must be a position (3,) or a pose (4, 4) of finite numbers, "
            f"not of shape {value.shape}"
        )
    X = np.eye(4)
    if value.shape == (3,):
        X[:3, 3] = value
    return (value, True) if value.shape == (4, 4) else (X, False)


def _seven(X: np.ndarray) -> list[float]:
    return [*X[:3, 3].tolist(), *quaternions(X[:3, :3]).tolist()]


def _point(x: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:.3f}" for value in x) + ") m"


def _digits(step: float) -> int:
    return int(np.clip(np.ceil(-np.log10(step)), 0, 6)) if step > 0 else 2


def _speed(duration: float) -> float:
    """Real time, unless that is over in a blink or lasts longer than anyone watches."""
    if 2 <= duration <= 30:
        return 1.0
    return min(SPEEDS, key=lambda speed: abs(np.log(max(duration, 1e-9) / speed / 10)))
