"""Robots, starts and paths that several tests of controllers share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import phipsi as pp
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot


class Case(NamedTuple):
    """A start at rest and a path of a frame that keep clear of singularities in reaction mode."""

    robot: pp.Robot
    q: np.ndarray
    frame: str
    duration: float
    shift: tuple[float, float, float]
    """Of the frame's origin, world axes [m]."""
    turn: tuple[float, float, float]
    """Rotation vector of its attitude, world axes [rad]."""

    @property
    def path(self) -> dict[str, Any]:
        """The parameters of a controller on this path."""
        start = pp.frame_pose(self.robot, self.q, self.frame)
        goal = start.copy()
        goal[:3, 3] += self.shift
        goal[:3, :3] = pp.linalg.rotation_matrix(pp.linalg.quaternion_exp(self.turn)) @ goal[:3, :3]
        return {"start": start, "goal": goal, "duration": self.duration, "frame": self.frame}


def single(**options: bool) -> Case:
    """One arm: tip position, 0.51 m in 6 s, and base attitude."""
    robot = pp.robots.space_arm(**options)
    q = robot.neutral()
    q[-7:] = (-0.6, 1.0, 1.2, 1.4, -0.4, -0.7, 0.0)
    return Case(robot, q, "tool", 6.0, (-0.4, 0.1, -0.3), (0.0, 0.0, 0.0))


def dual() -> Case:
    """Two arms: pose of the left tip, 0.33 m and 20° in 8 s, and pose of the base."""
    robot = pp.robots.dual_space_arm()
    q = robot.neutral()
    q[7:14] = (-0.2, 0.9, -1.6, -0.9, -0.2, 0.6, 0.0)
    q[14:] = (-0.1, 0.1, -1.4, -0.3, 1.0, 0.2, 0.0)
    return Case(robot, q, "left/tool", 8.0, (-0.1, -0.3, 0.1), (-0.35, 0.0, 0.0))


TURNS = {"left": rot.from_rpy(np.pi / 2, 0, 0), "right": rot.from_rpy(-np.pi / 2, 0, 0)}
"""Tips that point at each other across the object."""
SIDE = 0.2
"""Half the width of the object [m]."""


class Holding(NamedTuple):
    """Two arms that hold an object."""

    robot: pp.Robot
    q: np.ndarray
    grasps: list[pp.Grasp]


def holding(*, floating: bool = False, shears: bool = False) -> Holding:
    """Two seven-axis arms, on the world or on a base that floats, hold a box or a pair of shears
    between their tips."""
    builder = pp.Builder("holding", gravity=(0, 0, 0) if floating else (0, 0, -9.81))
    if floating:
        builder.body("base", mass=300.0, inertia=(80, 80, 80)).hinge(
            "base", "free", "world", "base"
        )
    for side, y in (("left", 0.7), ("right", -0.7)):
        builder.add(
            pp.robots.seven_axis_arm(), prefix=f"{side}/", at="base" if floating else "world",
            placement=Transform.of(position=(0, y, 0)),
        )  # fmt: skip
    builder.body("object", mass=5.0, inertia=(0.05, 0.06, 0.04))
    builder.hinge("object", "free", "world", "object")
    parts = {"left": "object", "right": "object"}
    if shears:
        builder.body("blade", mass=2.0, com=(0.05, -0.1, 0), inertia=(0.02, 0.02, 0.02))
        builder.hinge("pivot", "revolute", "object", "blade", axis=(0, 0, 1), effort=0.0)
        parts["right"] = "blade"
    for side, y in (("left", SIDE), ("right", -SIDE)):
        builder.frame(f"{side}/face", parts[side], placement=Transform.of(TURNS[side], (0, y, 0)))
    robot = builder.build()
    q = robot.neutral()
    at = robot.hinge("object").q.start
    q[at : at + 3] = (0.9, 0.0, 0.9)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        start = robot.hinge(f"{side}/shoulder_roll").q.start
        q[start : start + 6] = np.array((0.0, 0.3 * sign, 0.3, 1.2, 0.3, 0.5 * sign))
    targets = {f"{s}/tool": pp.frame_pose(robot, q, f"{s}/face") for s in parts}
    fixed = ("base", "object", "pivot")
    for side in parts:  # one arm at a time, all else held
        other = "right" if side == "left" else "left"
        names = [h.name for h in robot.hinges if h.name in fixed or h.name.startswith(other)]
        alone = robot.locked(names, q)
        own = [h.q.start for h in robot.hinges if h.name not in names]
        q[own] = pp.inverse_kinematics(alone, q[own], {f"{side}/tool": targets[f"{side}/tool"]}).q
    grasps = [pp.Grasp(f"{s}/tool", f"{s}/face", "rigid") for s in parts]
    return Holding(robot, q, grasps)
