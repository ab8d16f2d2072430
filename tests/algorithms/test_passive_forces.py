"""Springs, dampers, friction and backlash against their formulas, written out for one hinge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.model.hinges import HingeName

rng = np.random.default_rng(0)


def hinged(kind: HingeName, **numbers: Any) -> pp.Robot:
    return (
        pp.Builder("one")
        .body("body", 1.0, (0.1, 0.2, 0.3), (1.0, 1.0, 1.0))
        .hinge("hinge", kind, "world", "body", axis=(0, 0, 1), **numbers)
        .build()
    )


def test_each_force_of_a_revolute_hinge() -> None:
    q, v = rng.normal(size=(2, 50, 1))
    np.testing.assert_allclose(pp.passive_forces(hinged("revolute", damping=3.0), q, v), -3.0 * v)
    spring = hinged("revolute", stiffness=7.0, rest=0.4)
    np.testing.assert_allclose(pp.passive_forces(spring, q, v), -7.0 * (q - 0.4))
    friction = hinged("revolute", friction=2.0, friction_speed=0.05)
    np.testing.assert_allclose(pp.passive_forces(friction, q, v), -2.0 * np.tanh(v / 0.05))


def test_backlash_is_a_dead_band_of_its_width_about_rest() -> None:
    robot = hinged("prismatic", stiffness=10.0, rest=0.1, backlash=0.04)
    q = np.array([[0.081], [0.1], [0.119], [0.13], [0.05]])
    force = pp.passive_forces(robot, q, np.zeros((5, 1)))
    np.testing.assert_allclose(force[:, 0], [0.0, 0.0, 0.0, -0.1, 0.3], atol=1e-14)


def test_an_isotropic_spring_of_a_ball_is_conservative() -> None:
    robot = hinged("spherical", stiffness=5.0)
    for _ in range(10):
        q, v = robot.random_state(rng)
        h = 1e-5

        def energy(q: np.ndarray) -> float:
            turn = robot.difference(robot.neutral(), q)
            return float(2.5 * turn @ turn)

        change = (energy(robot.integrate(q, h * v)) - energy(robot.integrate(q, -h * v))) / (2 * h)
        power = pp.passive_forces(robot, q, np.zeros(3)) @ v
        assert power == pytest.approx(-change, abs=1e-6)
