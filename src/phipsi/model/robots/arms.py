"""Arms on a fixed base: PUMA 560, a seven-axis arm, arms with flexible joints and links."""

from __future__ import annotations

from math import pi, radians
from typing import NamedTuple

import numpy as np

from phipsi.model.robot import Builder, Robot
from phipsi.model.robots.options import at_least
from phipsi.model.robots.shapes import Link, X, Y, Z, cylinder, limb
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot


class _Puma(NamedTuple):
    """A link of the PUMA 560: standard Denavit-Hartenberg d, a [m] and alpha [rad]; mass, centre of
    mass and central inertia in the DH frame at its outboard end; motor inertia, gear ratio, motor
    damping and Coulomb friction; limits [deg]; maximum torque."""

    d: float
    a: float
    alpha: float
    mass: float
    com: tuple[float, float, float]
    inertia: tuple[float, float, float]
    motor: float
    gear: float
    damping: float
    friction: float
    limits: tuple[float, float]
    effort: float


# The numbers of the sources, with two changes that have no effect on the motion: link 1 has the
# same inertia about all axes (only the one about its joint is known), and 0.004 kg·m² about the two
# axes normal to joint 3 are moved from link 2 to link 3, so that real bodies can have the inertias.
_PUMA560 = (
    _Puma(0.672, 0.0, pi / 2, 0.0, (0.0, 0.0, 0.0), (0.35, 0.35, 0.35),
          200e-6, 62.6111, 1.48e-3, 0.415, (-160, 160), 97.6),
    _Puma(0.0, 0.4318, 0.0, 17.4, (-0.3638, 0.006, 0.2275), (0.126, 0.520, 0.539),
          200e-6, 107.815, 0.817e-3, 0.0985, (-45, 225), 186.4),
    _Puma(0.15005, 0.0203, -pi / 2, 4.8, (-0.0203, -0.0141, 0.070), (0.070, 0.086, 0.0165),
          200e-6, 53.7063, 1.38e-3, 0.1185, (-225, 45), 89.4),
    _Puma(0.4318, 0.0, pi / 2, 0.82, (0.0, 0.019, 0.0), (1.8e-3, 1.3e-3, 1.8e-3),
          33e-6, 76.0364, 71.2e-6, 14.05e-3, (-110, 170), 24.2),
    _Puma(0.0, 0.0, -pi / 2, 0.34, (0.0, 0.0, 0.0), (0.3e-3, 0.4e-3, 0.3e-3),
          33e-6, 71.923, 82.6e-6, 11.88e-3, (-100, 100), 20.1),
    _Puma(0.0, 0.0, 0.0, 0.09, (0.0, 0.0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3),
          33e-6, 76.686, 36.7e-6, 7.23e-3, (-266, 266), 21.3),
)  # fmt: skip


def puma560() -> Robot:
    """The Unimation PUMA 560, six axes, with its published inertias, motors and friction.

    Sources: Armstrong, Khatib & Burdick (ICRA 1986), as gathered by Corke & Armstrong-Hélouvry
    (ICRA 1994) and tabulated as `p560` of Corke's Robotics Toolbox; torque limits from the first,
    table 7. Joint angles are those of the standard Denavit-Hartenberg table, the frame "tool" is
    its last frame, the world its mounting surface, 0.672 m below the shoulder. The armature is the
    motor's inertia times the gear ratio squared, friction the mean of both directions. The sources
    give no mass for link 1 (it has no effect on a fixed vertical axis); it is 0.

    Returns
    -------
    Robot
        The robot.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.robots.puma560()
    <Robot 'puma560': 6 bodies, nq=6, nv=6>
    """
    builder = Builder("puma560")
    parent, outboard = "world", Transform.identity()
    for i, link in enumerate(_PUMA560, start=1):
        placement = outboard
        turn = rot.about_axis(rot.scalars(X), link.alpha)
        outboard = Transform(turn, rot.scalars((link.a, 0.0, link.d)))
        builder.body(
            f"link{i}", link.mass, com=outboard.point(rot.scalars(link.com)),
            inertia=turn @ np.diag(link.inertia) @ turn.T,
        )  # fmt: skip
        builder.hinge(
            f"joint{i}", "revolute", parent, f"link{i}", placement=placement, axis=Z,
            lower=radians(link.limits[0]), upper=radians(link.limits[1]), effort=link.effort,
            armature=link.motor * link.gear**2, damping=link.damping * link.gear**2,
            friction=link.friction * link.gear,
        )  # fmt: skip
        parent = f"link{i}"
    return builder.frame("tool", parent, placement=outboard).build()


def seven_axis_arm() -> Robot:
    """A seven-axis arm like those of spacecraft, 2.4 m long, stretched along z when neutral.

    Shoulder roll, yaw, pitch; elbow pitch; wrist pitch, yaw, roll; frame "tool" at the tip.

    Returns
    -------
    Robot
        The robot.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.robots.seven_axis_arm()
    <Robot 'seven_axis_arm': 7 bodies, nq=7, nv=7>
    """
    return limb("seven_axis_arm", [
        Link("shoulder_roll", Z, 6.0, 0.08, (0, 0, 0.20), (-pi, pi), 500, 1.0, 2.0),
        Link("shoulder_yaw", X, 5.0, 0.08, (0, 0, 0.15), (-2.4, 2.4), 500, 1.0, 2.0),
        Link("shoulder_pitch", Y, 10.0, 0.06, (0, 0, 0.80), (-2.4, 2.4), 500, 1.0, 2.0),
        Link("elbow_pitch", Y, 8.0, 0.05, (0, 0, 0.80), (-2.8, 2.8), 250, 1.5, 1.0),
        Link("wrist_pitch", Y, 3.0, 0.05, (0, 0, 0.15), (-2.4, 2.4), 80, 2.0, 0.3),
        Link("wrist_yaw", X, 3.0, 0.05, (0, 0, 0.15), (-2.4, 2.4), 80, 2.0, 0.3),
        Link("wrist_roll", Z, 2.0, 0.05, (0, 0, 0.15), (-pi, pi), 80, 2.0, 0.3),
    ], tip="tool")  # fmt: skip


def flexible_joint_arm() -> Robot:
    """A three-axis arm with springs in its gears; frame "tool" at the tip.

    Each axis has two hinges: "motorN", driven, turns the rotor (its armature is the motor's inertia
    times the gear ratio squared); "springN", passive (effort 0), turns the link relative to the
    rotor.

    Returns
    -------
    Robot
        The robot.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.robots.flexible_joint_arm()
    <Robot 'flexible_joint_arm': 6 bodies, nq=6, nv=6>
    """
    rows = (  # axis, link mass, link end, gear stiffness, motor effort, limit
        (Z, 8.0, (0.0, 0.0, 0.3), 8e3, 120.0, pi),
        (Y, 6.0, (0.0, 0.0, 0.5), 6e3, 120.0, 2.2),
        (Y, 3.0, (0.0, 0.0, 0.4), 3e3, 60.0, 2.5),
    )
    builder, parent, position = Builder("flexible_joint_arm"), "world", (0.0, 0.0, 0.0)
    for i, (axis, mass, end, stiffness, effort, limit) in enumerate(rows, start=1):
        rotor, link = f"rotor{i}", f"link{i}"
        half = 0.02 * np.asarray(axis)
        builder.body(rotor, **cylinder(0.3, 0.03, half, start=-half))
        builder.hinge(
            f"motor{i}", "revolute", parent, rotor, position=position, axis=axis, lower=-limit,
            upper=limit, effort=effort, armature=1e-4 * 100**2, damping=1.0,
        )  # fmt: skip
        builder.body(link, **cylinder(mass, 0.05, end))
        builder.hinge(
            f"spring{i}", "revolute", rotor, link, axis=axis, lower=-0.2, upper=0.2, effort=0.0,
            stiffness=stiffness, damping=stiffness * 1e-3,
        )  # fmt: skip
        parent, position = link, end
    return builder.frame("tool", parent, position=position).build()


def flexible_link_arm(segments: int = 4) -> Robot:
    """A two-axis arm of flexible aluminium rods, each lumped into springs; frame "tool" at the tip.

    Each rod (1 m long, 20 mm thick) is divided into equal segments and bends at passive universal
    hinges (effort 0) in their middles, whose stiffness is E·I / segment length. The static
    deflection of the tip is that of the beam up to 1 / (4·segments²).

    Parameters
    ----------
    segments : optional
        The number of segments of each rod.

    Returns
    -------
    Robot
        The robot.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.robots.flexible_link_arm(2)
    <Robot 'flexible_link_arm': 6 bodies, nq=10, nv=10>
    """
    at_least("flexible_link_arm", "segments", segments, 1)
    length, radius, density, modulus = 1.0, 0.01, 2700.0, 70e9
    piece = length / segments
    stiffness = modulus * pi * radius**4 / 4 / piece
    builder, parent, position = Builder("flexible_link_arm"), "world", (0.0, 0.0, 0.0)
    for i in (1, 2):
        for k in range(segments + 1):
            child = f"link{i}_{k}"
            end = (0.0, 0.0, piece if 0 < k < segments else piece / 2)
            mass = density * pi * radius**2 * end[2]
            builder.body(child, **cylinder(mass, radius, end))
            if k == 0:
                builder.hinge(
                    f"joint{i}", "revolute", parent, child, position=position, axis=Y, lower=-2.5,
                    upper=2.5, effort=40.0, armature=0.05,
                )  # fmt: skip
            else:
                builder.hinge(
                    f"bend{i}_{k}", "universal", parent, child, position=position, axis=(X, Y),
                    lower=-0.5, upper=0.5, effort=0.0, stiffness=stiffness,
                    damping=1e-3 * stiffness,
                )  # fmt: skip
            parent, position = child, end
    return builder.frame("tool", parent, position=position).build()
