"""Legged robots on a free base: a quadruped and a humanoid."""

from __future__ import annotations

from math import pi

from phipsi.model.robot import Builder, Robot
from phipsi.model.robots.shapes import Link, X, Y, Z, box, limb, sphere
from phipsi.spatial import Transform


def quadruped() -> Robot:
    """A quadruped of 20 kg: a free trunk and four legs of hip roll, hip pitch and knee.

    Legs "front_left/…", "front_right/…", "hind_left/…" and "hind_right/…", stretched down when
    neutral, each with a frame "…/foot"; frame "camera" on the trunk.

    Returns
    -------
    Robot
        The robot.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.robots.quadruped()
    <Robot 'quadruped': 13 bodies, nq=19, nv=18>
    """
    builder = Builder("quadruped").body("trunk", **box(11.0, (0.5, 0.25, 0.12)))
    builder.hinge("base", "free", "world", "trunk")
    robot = builder.frame("camera", "trunk", position=(0.26, 0.0, 0.03)).build()
    for end, x in (("front", 0.22), ("hind", -0.22)):
        for side, sign in (("left", 1.0), ("right", -1.0)):
            leg = limb("leg", [
                Link("hip_roll", X, 0.9, 0.045, (0, sign * 0.08, 0), (-0.8, 0.8), 35, 20, 0.02),
                Link("hip_pitch", Y, 1.1, 0.03, (0, 0, -0.22), (-2.0, 3.0), 35, 20, 0.02),
                Link("knee", Y, 0.25, 0.015, (0, 0, -0.22), (-2.6, 0.0), 45, 15, 0.03),
            ], tip="foot")  # fmt: skip
            placement = Transform.of(position=(x, sign * 0.06, 0.0))
            robot = robot.attach(leg, at="trunk", prefix=f"{end}_{side}/", placement=placement)
    return robot


def humanoid() -> Robot:
    """A humanoid of 60 kg and 1.8 m: a free pelvis and 28 joints, upright when neutral.

    Waist and neck of two joints, arms "left/…" and "right/…" and legs of six; frames "left/hand",
    "right/hand", "left/foot", "right/foot" and "head".

    Returns
    -------
    Robot
        The robot.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.robots.humanoid()
    <Robot 'humanoid': 29 bodies, nq=35, nv=34>
    """
    builder = Builder("humanoid").body("pelvis", **box(8.0, (0.16, 0.26, 0.14)))
    robot = builder.hinge("base", "free", "world", "pelvis").build()
    trunk = limb("trunk", [
        Link("waist_yaw", Z, 2.0, 0.07, (0, 0, 0.08), (-1.2, 1.2), 120, 6, 0.1),
        Link("waist_pitch", Y, 14.0, 0.13, (0, 0, 0.40), (-0.4, 1.2), 160, 6, 0.1),
        Link("neck_yaw", Z, 0.6, 0.04, (0, 0, 0.08), (-1.5, 1.5), 10, 8, 0.005),
        Link("neck_pitch", Y, 0.4, 0.04, (0, 0, 0.05), (-0.8, 0.8), 10, 8, 0.005),
    ], tip="neck")  # fmt: skip
    robot = robot.attach(trunk, at="pelvis", placement=Transform.of(position=(0.0, 0.0, 0.07)))
    head = robot.edit().body("head", **sphere(3.0, 0.09))
    robot = head.hinge("head", "weld", "neck_pitch_link", "head", position=(0, 0, 0.14)).build()
    for side, sign in (("left", 1.0), ("right", -1.0)):
        hip = Transform.of(position=(0.0, sign * 0.10, -0.07))
        shoulder = Transform.of(position=(0.0, sign * 0.18, 0.36))
        robot = robot.attach(_leg(sign), at="pelvis", prefix=f"{side}/", placement=hip)
        robot = robot.attach(_arm(sign), at="waist_pitch_link", prefix=f"{side}/",
                             placement=shoulder)  # fmt: skip
    return robot


def _leg(sign: float) -> Robot:
    """The left leg (sign 1) or right leg (−1) of a humanoid."""
    roll = (-0.4, 0.8) if sign > 0 else (-0.8, 0.4)
    return limb("leg", [
        Link("hip_yaw", Z, 1.0, 0.05, (0, 0, -0.06), (-1.0, 1.0), 90, 10, 0.05),
        Link("hip_roll", X, 1.0, 0.05, (0, 0, -0.04), roll, 120, 10, 0.05),
        Link("hip_pitch", Y, 5.5, 0.07, (0, 0, -0.36), (-2.2, 0.8), 150, 10, 0.1),
        Link("knee", Y, 3.0, 0.05, (0, 0, -0.36), (0.0, 2.5), 200, 10, 0.1),
        Link("ankle_pitch", Y, 0.2, 0.03, (0, 0, -0.02), (-0.9, 0.6), 60, 10, 0.05),
        Link("ankle_roll", X, 1.0, 0.05, (0, 0, -0.06), (-0.4, 0.4), 60, 10, 0.05),
    ], tip="foot")  # fmt: skip


def _arm(sign: float) -> Robot:
    """The left arm (sign 1) or right arm (−1) of a humanoid."""
    roll = (-0.3, 2.8) if sign > 0 else (-2.8, 0.3)
    return limb("arm", [
        Link("shoulder_pitch", Y, 0.9, 0.04, (0, sign * 0.06, 0), (-pi, 1.2), 50, 10, 0.03),
        Link("shoulder_roll", X, 0.6, 0.04, (0, 0, -0.06), roll, 50, 10, 0.03),
        Link("shoulder_yaw", Z, 1.2, 0.04, (0, 0, -0.20), (-2.0, 2.0), 30, 10, 0.02),
        Link("elbow", Y, 0.8, 0.03, (0, 0, -0.14), (-2.4, 0.0), 30, 10, 0.02),
        Link("wrist_yaw", Z, 0.4, 0.03, (0, 0, -0.10), (-2.0, 2.0), 10, 10, 0.005),
        Link("wrist_pitch", Y, 0.4, 0.03, (0, 0, -0.10), (-1.0, 1.0), 10, 10, 0.005),
    ], tip="hand")  # fmt: skip
