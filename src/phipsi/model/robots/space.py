"""Free-flying spacecraft with one or two arms, reaction wheels, solar panels and fuel slosh."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from phipsi.model.builder import HingeNumbers
from phipsi.model.robot import Builder, Robot
from phipsi.model.robots.arms import seven_axis_arm
from phipsi.model.robots.shapes import X, Y, Z, box, cylinder, sphere
from phipsi.spatial import Transform


def space_arm(*, wheels: bool = False, panels: bool = False, slosh: bool = False) -> Robot:
    """A spacecraft of 300 kg on a free hinge with one seven-axis arm; no gravity; frame "tool".

    Passive hinges have effort 0.

    Parameters
    ----------
    wheels : optional
        Whether it has three reaction wheels (continuous hinges "wheel_x", "wheel_y", "wheel_z").
    panels : optional
        Whether it has two solar panels on passive damped springs ("left_panel", "right_panel").
    slosh : optional
        Whether it has sloshing fuel: a passive damped pendulum ("slosh", a universal hinge with a
        spring, which acts also without gravity).

    Returns
    -------
    Robot
        The robot.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.robots.space_arm(wheels=True)
    <Robot 'space_arm': 11 bodies, nq=17, nv=16>
    """
    craft = _spacecraft("space_arm", wheels=wheels, panels=panels, slosh=slosh)
    return craft.attach(seven_axis_arm(), at="mount")


def dual_space_arm(*, wheels: bool = False, panels: bool = False, slosh: bool = False) -> Robot:
    """A spacecraft of 300 kg with two seven-axis arms, "left/…" and "right/…"; no gravity.

    Frames "left/tool" and "right/tool". Passive hinges have effort 0.

    Parameters
    ----------
    wheels : optional
        Whether it has three reaction wheels (continuous hinges "wheel_x", "wheel_y", "wheel_z").
    panels : optional
        Whether it has two solar panels on passive damped springs ("left_panel", "right_panel").
    slosh : optional
        Whether it has sloshing fuel: a passive damped pendulum ("slosh", a universal hinge with a
        spring, which acts also without gravity).

    Returns
    -------
    Robot
        The robot.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.robots.dual_space_arm()
    <Robot 'dual_space_arm': 15 bodies, nq=21, nv=20>
    """
    craft = _spacecraft("dual_space_arm", wheels=wheels, panels=panels, slosh=slosh)
    for side, y in (("left", 0.4), ("right", -0.4)):
        offset = Transform.of(position=(0.0, y, 0.0))
        craft = craft.attach(seven_axis_arm(), at="mount", prefix=f"{side}/", placement=offset)
    return craft


def _spacecraft(name: str, *, wheels: bool, panels: bool, slosh: bool) -> Robot:
    """A spacecraft without arms, with the frame "mount" for them."""
    builder = Builder(name, gravity=(0.0, 0.0, 0.0))
    builder.body("base", **box(300.0, (1.2, 1.2, 1.2))).hinge("base", "free", "world", "base")
    builder.frame("mount", "base", position=(0.0, 0.0, 0.6))
    if wheels:
        for letter, axis in zip("xyz", (X, Y, Z), strict=True):
            half = 0.02 * np.asarray(axis)
            builder.body(f"wheel_{letter}", **cylinder(5.0, 0.15, half, start=-half))
            builder.hinge(
                f"wheel_{letter}", "continuous", "base", f"wheel_{letter}", axis=axis,
                position=-0.3 * np.asarray(axis), velocity=600.0, effort=0.2,
            )  # fmt: skip
    if panels:
        span, mass = 3.0, 12.0
        spring = _spring(mass * span**2 / 3, frequency=0.3, ratio=0.01, limit=0.5)
        for side, sign in (("left", 1.0), ("right", -1.0)):
            solid = box(mass, (1.0, span, 0.02), center=(0.0, sign * span / 2, 0.0))
            builder.body(f"{side}_panel", **solid)
            builder.hinge(
                f"{side}_panel", "revolute", "base", f"{side}_panel", axis=X,
                position=(0.0, sign * 0.6, 0.0), **spring,
            )  # fmt: skip
    if slosh:
        fuel, length = 40.0, 0.25
        spring = _spring(fuel * length**2, frequency=0.5, ratio=0.05, limit=pi / 3)
        builder.body("fuel", **sphere(fuel, 0.1, center=(0.0, 0.0, -length)))
        builder.hinge(
            "slosh", "universal", "base", "fuel", axis=(X, Y), **spring,
        )  # fmt: skip
    return builder.build()


def _spring(inertia: float, *, frequency: float, ratio: float, limit: float) -> HingeNumbers:
    """The passive damped spring with which an inertia [kg·m²] has this frequency [Hz] and damping
    ratio; `limit` bounds the angle [rad]."""
    stiffness = inertia * (2 * pi * frequency) ** 2
    damping = 2 * ratio * sqrt(stiffness * inertia)
    return HingeNumbers(lower=-limit, upper=limit, effort=0.0, stiffness=stiffness, damping=damping)
