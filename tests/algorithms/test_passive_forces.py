"""Springs, dampers, friction and backlash against their formulas, written out for one hinge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm, logm

import phipsi as pp
from phipsi.model.hinges import KINDS, HingeName

rng = np.random.default_rng(0)


AXES: dict[int, Any] = {0: None, 1: (0, 0, 1), 2: ((1, 0, 0), (0, 1, 0))}


def hinged(kind: HingeName, **numbers: Any) -> pp.Robot:
    pitch = {"pitch": 0.3} if kind == "helical" else {}
    axis = AXES[KINDS[kind].axes]
    return (
        pp.Builder("one")
        .body("body", 1.0, (0.1, 0.2, 0.3), (1.0, 1.2, 0.9))
        .hinge("hinge", kind, "world", "body", axis=axis, **pitch, **numbers)
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


def dlog(robot: pp.Robot, u: np.ndarray) -> np.ndarray:
    """The matrix of the rate of u = log g for g⁻¹ġ = v: the inverse of ∫ exp(−s ad_u) ds, s ≤ 1."""
    n = robot.nv
    ad = np.array([robot.bracket(u, unit) for unit in np.eye(n)]).T
    power = expm(np.block([[-ad, np.eye(n)], [np.zeros((n, 2 * n))]]))
    return np.linalg.inv(power[:n, n:])


@pytest.mark.parametrize("kind", ["planar", "spherical", "free"])
@pytest.mark.parametrize("turn", [0.0, 1e-3, 0.03, 0.04, 1.0, 3.0, np.pi - 1e-9])
def test_the_derivative_of_log_and_its_adjoint(kind: HingeName, turn: float) -> None:
    robot = hinged(kind)
    u, v = rng.normal(size=(2, robot.nv))
    angles = slice(0, 1 if kind == "planar" else 3)
    u[angles] *= turn / np.linalg.norm(u[angles])
    D = dlog(robot, u)
    np.testing.assert_allclose(robot.difference_rate(u, v), D @ v, atol=1e-11)
    np.testing.assert_allclose(robot.difference_force(u, v), D.T @ v, atol=1e-11)


def displacement(robot: pp.Robot, q: np.ndarray) -> np.ndarray:
    """log(rest⁻¹q) in velocity coordinates, by the logarithm of 4 × 4 matrices."""
    h, rest = robot.hinges[0], robot.joint_data("rest")
    if not h.kind.group:
        return q - rest
    first, second = (np.asarray(pp.frame_pose(robot, x, "body")) for x in (rest, q))
    twist = logm(np.linalg.solve(first, second)).real
    motion = np.array([twist[2, 1], twist[0, 2], twist[1, 0], *twist[:3, 3]])
    return np.array([c.array @ motion for c in h.kind.columns(h, q)], float)


@pytest.mark.parametrize("backlash", [0.0, 0.4])
@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.nv])
def test_springs_are_the_gradient_of_their_energy(kind: HingeName, backlash: float) -> None:
    nv = KINDS[kind].nv
    K = rng.uniform(1.0, 5.0, nv)
    some = hinged(kind)
    rest = some.integrate(some.neutral(), rng.normal(size=nv))
    robot = hinged(kind, stiffness=K, rest=rest, backlash=backlash)

    def energy(q: np.ndarray) -> float:
        u = displacement(robot, q)
        beyond = np.maximum(np.abs(u) - backlash / 2, 0.0)
        return 0.5 * float(K @ beyond**2)

    for _ in range(5):
        q = robot.integrate(rest, rng.uniform(-1.0, 1.0, nv))
        v, h = rng.normal(size=nv), 1e-5
        assert pp.passive_energy(robot, q) == pytest.approx(energy(q), abs=1e-10)
        ahead, back = (energy(robot.integrate(q, s * h * v)) for s in (1.0, -1.0))
        power = pp.passive_forces(robot, q, np.zeros(nv)) @ v
        assert power == pytest.approx((back - ahead) / (2 * h), abs=1e-7)


@pytest.mark.parametrize("kind", ["planar", "spherical", "free"])
def test_derivatives_of_springs_are_finite_at_rest_and_at_half_a_turn(kind: HingeName) -> None:
    K = rng.uniform(1.0, 5.0, KINDS[kind].nv)
    robot = hinged(kind, stiffness=K)
    slope = pp.passive_forces.derivative(wrt="q")
    still = np.zeros(robot.nv)
    np.testing.assert_allclose(slope(robot, robot.neutral(), still), -np.diag(K), atol=1e-14)
    half = robot.integrate(robot.neutral(), np.pi * np.eye(robot.nv)[0])
    assert np.isfinite(slope(robot, half, still)).all()


@pytest.mark.parametrize("kind", ["planar", "spherical"])
def test_the_energy_of_springs_is_continuous_at_half_a_turn(kind: HingeName) -> None:
    robot = hinged(kind, stiffness=(2.0, 3.0, 5.0))
    u = np.array([np.pi, 0.4, -0.3]) if kind == "planar" else np.pi * np.array([0.6, 0.0, 0.8])
    at = robot.integrate(robot.neutral(), u)
    turn = np.eye(3)[0] if kind == "planar" else u / np.pi
    before, after = (robot.integrate(at, s * 1e-9 * turn) for s in (-1.0, 1.0))
    assert pp.passive_energy(robot, after) == pytest.approx(pp.passive_energy(robot, before))
    push, pull = (pp.passive_forces(robot, q, np.zeros(3)) @ turn for q in (before, after))
    assert push < 0 < pull  # the shorter way back
