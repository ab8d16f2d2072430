"""Small machines and steps that the tests of simulations share."""

from typing import Any

import numpy as np

import phipsi as pp


def stick(**hinge: Any) -> pp.Robot:
    """A rod of 1 kg·m² on one axis, no gravity."""
    builder = pp.Builder("stick", gravity=(0.0, 0.0, 0.0))
    builder.body("rod", mass=1.0, inertia=(1.0, 1.0, 1.0))
    builder.hinge("pivot", "revolute", "world", "rod", axis=(0.0, 1.0, 0.0), **hinge)
    return builder.build()


def balls(*masses: float) -> pp.Robot:
    """Balls on rails along x, no gravity."""
    builder = pp.Builder("balls", gravity=(0.0, 0.0, 0.0))
    for i, mass in enumerate(masses):
        builder.body(f"b{i}", mass=mass, inertia=(1.0, 1.0, 1.0))
        builder.hinge(f"h{i}", "prismatic", "world", f"b{i}", axis=(1.0, 0.0, 0.0))
    return builder.build()


@pp.program(shapes={"gain": ()})
def brake(robot: pp.Robot, v: Any, gain: Any) -> Any:
    """τ = −gain v"""
    return -gain * v


ALONG = np.eye(6)[:, [3]]
"""The force along x: what a closure that couples balls on their rails transmits."""
STEP: dict[str, Any] = {"duration": 0.1, "dt": 0.01}
