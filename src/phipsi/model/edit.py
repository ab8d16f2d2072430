"""Changed copies of robots: joints locked, another robot attached."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model import validate
from phipsi.model.builder import RobotBuilder
from phipsi.model.description import R, RobotDescription
from phipsi.model.errors import ModelError
from phipsi.model.hinge_checks import PER_Q, PER_V
from phipsi.model.hinges import KINDS
from phipsi.model.untrusted import quoted
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot
from phipsi.typing import ConfigurationLike


def locked(robot: R, joints: str | Iterable[str], q: ConfigurationLike | None = None) -> R:
    """The robot with the named joints locked at their coordinates in q (default: neutral)."""
    at = robot.neutral() if q is None else validate.numbers("q", q, (robot.nq,))
    builder = _builder(robot)
    if not isinstance(joints, Iterable):
        raise ModelError(f"joints is {quoted(joints)}, needs the names of hinges")
    for name in [joints] if isinstance(joints, str) else joints:
        h = robot.hinge(name)
        with np.errstate(all="ignore"):
            pose = h.placement @ h.kind.pose(h, rot.scalars(at[h.q]))
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
    """`robot` with `other` mounted on the frame `at`.

    The world of `other` is at the pose `placement` in that frame. Free hinges between `other` and
    its world, such as that of a payload, become welds.
    """
    validate.of_class("attach: the robot to be mounted", other, RobotDescription)
    validate.of_class("attach: prefix", prefix, str)
    frame = robot.frame(at)
    mount = Transform.identity() if placement is None else placement
    validate.placements(lambda i: "attach", [mount])
    with np.errstate(all="ignore"):
        mount = frame.placement @ mount
    names = {b.name for b in robot.bodies} | {h.name for h in robot.hinges} | set(robot.frames)
    parts = [*other.bodies, *other.hinges, *other.frames.values()]
    for part in parts:
        if prefix + part.name in names:
            raise ModelError(
                f"both robots have a part named {quoted(prefix + part.name)}; pass another prefix="
            )
    builder = _builder(robot).add(other, prefix=prefix, at=frame.body, placement=mount)
    for h in other.hinges:
        if h.kind.name == "free" and h.parent == WORLD:
            builder.replace_hinge(prefix + h.name, **_weld(mount @ h.placement))
    return builder.build()


def _builder(robot: R) -> RobotBuilder[R]:
    return RobotBuilder(type(robot), robot.name, robot.gravity).add(robot)


def _weld(pose: Transform) -> dict[str, Any]:
    """The fields of `Hinge` that turn a hinge into a weld at this pose."""
    empty = {name: np.zeros(0) for name in (*PER_V, *PER_Q)}
    return {"kind": KINDS["weld"], "placement": pose, "axes": (), **empty}
