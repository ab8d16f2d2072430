"""New robots from old ones: joints locked, another robot attached."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model.builder import RobotBuilder
from phipsi.model.description import R, RobotDescription
from phipsi.model.errors import ModelError
from phipsi.model.hinges import KINDS
from phipsi.model.validate import PER_Q, PER_V
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot


def locked(robot: R, joints: Iterable[str], q: Any = None) -> R:
    """The reduced robot with the named joints held at their part of q (default neutral)."""
    q = robot.neutral() if q is None else np.asarray(q, float)
    if q.shape != (robot.nq,):
        raise ValueError(f"q has shape {q.shape}, but robot {robot.name!r} needs ({robot.nq},)")
    builder = _builder(robot)
    for name in [joints] if isinstance(joints, str) else joints:
        h = robot.hinge(name)
        pose = h.placement @ h.kind.pose(h, rot.scalars(q[h.q]))
        builder.replace_hinge(name, **_weld(pose))
    return builder.build()


def attach(
    robot: R,
    other: RobotDescription,
    *,
    at: str,
    prefix: str = "",
    placement: Transform | None = None,
) -> R:
    """`robot` with `other` mounted on the frame `at`, which becomes the other's world (moved by
    `placement`). What floats freely in `other` (a payload on a free hinge) is welded on."""
    frame = robot.frame(at)
    names = {b.name for b in robot.bodies} | {h.name for h in robot.hinges} | set(robot.frames)
    parts = [*other.bodies, *other.hinges, *other.frames.values()]
    for part in parts:
        if prefix + part.name in names:
            raise ModelError(
                f"both robots have a part named {prefix + part.name!r}; pass another prefix="
            )
    mount = frame.placement @ (placement or Transform.identity())
    builder = _builder(robot).add(other, prefix=prefix, at=frame.body, placement=mount)
    for h in other.hinges:
        if h.kind.name == "free" and h.parent == WORLD:
            builder.replace_hinge(prefix + h.name, **_weld(mount @ h.placement))
    return builder.build()


def _builder(robot: R) -> RobotBuilder[R]:
    return RobotBuilder(type(robot), robot.name, robot.gravity).add(robot)


def _weld(pose: Transform) -> dict[str, Any]:
    empty = {name: np.zeros(0) for name in (*PER_V, *PER_Q)}
    return {"kind": KINDS["weld"], "placement": pose, "axes": (), **empty}
