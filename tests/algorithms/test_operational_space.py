"""Operational space against dense linear algebra, and impacts against conserved quantities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import phipsi as pp
from tests.zoo import MOVING, State, close, forests, random_forest

pytestmark = pytest.mark.usefixtures("interpreted")

law = settings(max_examples=settings().max_examples // 12)


def inverse(robot: pp.Robot, q: np.ndarray) -> np.ndarray:
    return np.linalg.inv(pp.mass_matrix(robot, q))


def tolerance(robot: pp.Robot, q: np.ndarray) -> float:
    return 1e-10 + 1e-14 * np.linalg.cond(pp.mass_matrix(robot, q))


@law
@given(forests(massless=False))
def test_upsilon_is_j_mass_inverse_j_transposed_at_every_body_and_between_frames(
    robot: pp.Robot,
) -> None:
    s = State(robot)
    scale = tolerance(robot, s.q)
    found = pp.operational_inertia_inverse(robot, s.q)
    for body, own in zip(robot.bodies, found, strict=True):
        J = pp.jacobian(robot, s.q, body.name)
        close(own, J @ inverse(robot, s.q) @ J.T, scale)
    assert (found == np.swapaxes(found, -1, -2)).all()
    names = ("tool", robot.bodies[0].name)
    both = np.concatenate([pp.jacobian(robot, s.q, name) for name in names])
    between = pp.operational_inertia_inverse(robot, s.q, names)
    close(between, both @ inverse(robot, s.q) @ both.T, scale)
    one = pp.operational_inertia_inverse(robot, s.q, "tool")
    close(one, between[:6, :6], 1e-14)


@law
@given(forests(massless=False, roots=("free",)))
def test_operational_inertia_inverts_upsilon(robot: pp.Robot) -> None:
    robot = robot.edit().build()
    for h, p in zip(robot.hinges, robot.parents, strict=True):
        if p < 0:
            robot = robot.with_parameters({f"armature:{h.name}": np.zeros(6)})
    s = State(robot)
    found = pp.operational_inertia(robot, s.q, "tool")
    J = pp.jacobian(robot, s.q, "tool")
    Upsilon = J @ inverse(robot, s.q) @ J.T
    close(found @ Upsilon, np.eye(6), 1e-13 * np.linalg.cond(Upsilon) + 1e-10)
    Lambda = pp.operational_inertia(robot, s.q)
    for body, own in zip(robot.bodies, Lambda, strict=True):
        J = pp.jacobian(robot, s.q, body.name)
        Upsilon = J @ inverse(robot, s.q) @ J.T
        close(own @ Upsilon, np.eye(6), 1e-13 * np.linalg.cond(Upsilon) + 1e-10)


@law
@given(forests(massless=False))
def test_tip_forces_are_external_forces_reversed(robot: pp.Robot) -> None:
    s = State(robot)
    wrench = np.arange(1.0, 7.0)
    J = pp.jacobian(robot, s.q, "tool")
    expected = -inverse(robot, s.q) @ (J.T @ wrench)
    scale = tolerance(robot, s.q)
    close(pp.tip_force_accelerations(robot, s.q, {"tool": wrench}), expected, scale)
    close(pp.impact(robot, s.q, {"tool": wrench}), -expected, scale)
    J = [pp.jacobian(robot, s.q, body.name) for body in robot.bodies]
    total = sum(j.T @ f for j, f in zip(J, s.external, strict=True))
    close(pp.tip_force_accelerations(robot, s.q, s.external), -inverse(robot, s.q) @ total, scale)


@law
@given(forests(massless=False, roots=("free",)))
def test_operational_bias_is_the_force_without_acceleration(robot: pp.Robot) -> None:
    s = State(robot)
    mu = pp.operational_bias(robot, s.q, s.v, "tool", tau=s.tau, external=s.external)
    J = pp.jacobian(robot, s.q, "tool")
    Lambda = np.linalg.inv(J @ inverse(robot, s.q) @ J.T)
    a = np.linalg.solve(
        pp.mass_matrix(robot, s.q), s.tau - pp.bias_force(robot, s.q, s.v, external=s.external)
    )
    rate = pp.jacobian_derivative(robot, s.q, s.v, "tool")
    close(mu, -Lambda @ (J @ a + rate @ s.v), 1e-9)
    plain = pp.operational_bias(robot, s.q, s.v, "tool")
    F = np.linspace(-1, 1, 6)
    a = pp.forward_dynamics(robot, s.q, s.v, 0 * s.v, external={"tool": F})
    close(Lambda @ (J @ a + rate @ s.v) + plain, F, 1e-8)


def test_a_singular_frame_has_upsilon_and_a_damped_inertia_and_says_so() -> None:
    robot = pp.robots.planar_chain(3)
    q = np.stack([np.zeros(3), np.full(3, 0.4)])
    assert np.linalg.matrix_rank(pp.operational_inertia_inverse(robot, q[1], "tool")) == 3
    with pytest.raises(pp.SingularError, match="does not exist at this configuration"):
        pp.operational_inertia(robot, q[1], "tool")
    with pytest.raises(pp.SingularError, match="pass damping="):
        pp.operational_bias(robot, q[1], q[1], "tool")
    assert np.isnan(pp.operational_inertia(robot, q, "tool")).all()
    damped = pp.operational_inertia(robot, q[1], "tool", damping=0.1)
    Upsilon = pp.operational_inertia_inverse(robot, q[1], "tool")
    close(damped, np.linalg.inv(Upsilon + 0.01 * np.eye(6)))
    assert np.isnan(pp.operational_inertia(robot, q[1])).all()
    with pytest.raises(TypeError, match="needs frames="):
        pp.operational_inertia(pp.robots.space_arm(), pp.robots.space_arm().neutral(), damping=0.1)


def test_only_rows_at_a_singular_configuration_are_missing() -> None:
    robot = pp.robots.seven_axis_arm()
    q, _ = robot.random_state(0, (5,))
    q[3] = 0.0  # stretched out
    found = pp.operational_inertia(robot, q, "tool")
    assert np.isnan(found).any(axis=(1, 2)).tolist() == [False, False, False, True, False]


def test_only_the_singular_row_of_a_batch_has_no_bias_and_not_a_number_is_no_singularity() -> None:
    robot = pp.robots.puma560()
    q, v = robot.random_state(0, (3,))
    q[0] = [0, 0, np.pi / 2, 0, 0, 0]
    found = pp.operational_bias(robot, q, v, "tool")
    assert np.isnan(found).any(axis=1).tolist() == [True, False, False]
    assert pp.operational_bias(robot, q[:0], v[:0], "tool").shape == (0, 6)
    assert np.isnan(pp.operational_inertia(robot, np.full(6, np.nan), "tool")).all()
    with pytest.raises(TypeError, match="needs the name of a frame"):
        pp.operational_inertia(robot, q[1], 5)  # type: ignore[arg-type]
    assert (pp.impact(robot, q[1], {}) == 0.0).all()
    tiny = pp.operational_inertia(pp.robots.double_pendulum(), [0.3, 0.4], "tool", damping=1e-6)
    assert np.isfinite(tiny).all()


def test_a_one_body_robot() -> None:
    robot = pp.Builder("one").body("b", mass=2.0, inertia=(1, 2, 3)).hinge(
        "h", "free", "world", "b"
    ).build()  # fmt: skip
    q, _ = robot.random_state(0)
    M = pp.mass_matrix(robot, q)
    close(pp.operational_inertia(robot, q)[0], M)
    close(pp.operational_inertia(robot, q, "b"), M)
    close(pp.operational_inertia_inverse(robot, q)[0], np.linalg.inv(M))


def catching() -> tuple[pp.Robot, np.ndarray, np.ndarray]:
    """A spacecraft whose tool meets a tumbling satellite."""
    target = pp.Builder("satellite").body("satellite", mass=80.0, inertia=(9, 10, 12))
    target.hinge("satellite", "free", "world", "satellite")
    robot = pp.combine([pp.robots.space_arm(), target.frame("handle", "satellite").build()])
    q, v = robot.random_state(3)
    at = robot.hinge("satellite").q
    X = pp.frame_pose(robot, q, "tool")
    q[at] = [*X[:3, 3], 1, 0, 0, 0]
    return robot, q, v


def test_capture_keeps_momentum_joins_velocities_and_loses_energy() -> None:
    robot, q, v = catching()
    caught = pp.capture(robot, [pp.Loop("tool", "handle")], q, v)
    assert caught.well_posed
    one = pp.frame_velocity(robot, q, caught.v, "tool", reference="world")
    other = pp.frame_velocity(robot, q, caught.v, "handle", reference="world")
    close(one, other)
    close(pp.momentum(robot, q, caught.v), pp.momentum(robot, q, v))
    assert pp.kinetic_energy(robot, q, caught.v) < pp.kinetic_energy(robot, q, v)
    jump = pp.impact(robot, q, {"tool": caught.impulses[0]})
    own = np.setdiff1d(np.arange(robot.nv), robot.freedoms("satellite"))
    close(jump[own], (caught.v - v)[own])


def test_a_hit_without_loss_keeps_energy() -> None:
    robot, q, v = catching()
    hit = pp.capture(robot, [pp.Grasp("tool", "handle", "point")], q, v, restitution=1.0)
    close(pp.kinetic_energy(robot, q, hit.v), pp.kinetic_energy(robot, q, v))
    close(pp.momentum(robot, q, hit.v), pp.momentum(robot, q, v))


def test_cost_is_linear() -> None:
    def count(program: Any, n: int, **options: Any) -> int:
        return program.graph(pp.robots.chain(n, base="free"), **options).operations

    for program, options in (
        (pp.operational_inertia_inverse, {}),
        (pp.operational_inertia_inverse, {"frames": ("tool", "base")}),
        (pp.operational_inertia, {}),
        (pp.operational_bias, {"frames": "tool"}),
        (pp.tip_force_accelerations, {"forces": {"tool": np.zeros(6)}}),
    ):
        first, second, third = (count(program, n, **options) for n in (10, 20, 30))
        assert third - second == pytest.approx(second - first, rel=0.02)


@pytest.mark.parametrize("frames", [None, ("tool", "body0")])
def test_looped_and_unrolled_give_the_same(frames: Any) -> None:
    robot = random_forest(2, 6, kinds=MOVING, massless=False, roots=("free",), armature=False)
    s = State(robot)
    for program in (pp.operational_inertia_inverse, pp.operational_inertia):
        long, short = (
            program.compile(robot, unroll=unroll, frames=frames)(s.q) for unroll in (True, False)
        )
        close(long, short, 1e-11)
    long, short = (
        pp.operational_bias.compile(robot, unroll=unroll, frames="tool")(s.q, s.v)
        for unroll in (True, False)
    )
    close(long, short, 1e-10)
