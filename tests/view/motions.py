"""Motions to draw: joints that swing, at given times."""

from __future__ import annotations

import numpy as np

import phipsi as pp
from phipsi.simulation.trajectory import Trajectory

HOSTILE = '</script><script>window.pwned = 1</script><img src=x onerror="window.pwned = 1">$x_{$'


def swing(robot: pp.Robot, size: float = 1.0, *, duration: float = 2.0, n: int = 101) -> Trajectory:
    """Every freedom goes there and back, `size` rad (or m) far."""
    t = np.linspace(0.0, duration, n)
    s = np.sin(np.pi * t / duration)[:, None]
    rate = np.pi / duration * np.cos(np.pi * t / duration)[:, None]
    q = robot.integrate(robot.neutral(), size * s * np.ones(robot.nv))
    v = size * rate * np.ones(robot.nv)
    return Trajectory(robot, t, q, v, tau=np.zeros_like(v))


def hostile() -> pp.Robot:
    """A robot whose names would like to be markup."""
    builder = pp.Builder(HOSTILE).body(HOSTILE, mass=1.0, inertia=[0.1, 0.1, 0.1])
    builder.hinge(HOSTILE, "revolute", "world", HOSTILE, axis=(0.0, 1.0, 0.0))
    return builder.frame("_tool" + HOSTILE, HOSTILE, position=(1.0, 0.0, 0.0)).build()
