"""Base-invariant dynamics of forests in which some trees, or all, have a base that is not free."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.operators.algebra.symbols import mass
from phipsi.operators.dense import matrix, system
from tests.agreement.peers import with_normal_z
from tests.agreement.test_hinges import pin
from tests.algorithms.test_base_invariant import flyer, seeds, ways
from tests.zoo import State, close, random_forest

pytestmark = pytest.mark.usefixtures("interpreted")


def mixed(seed: int, n: int = 8, **options: Any) -> pp.Robot:
    """A forest in which some trees float, without armature at their bases, and others do not."""
    free, bound = flyer(seed, 4, **options), random_forest(seed + 100, n, **options)
    return pp.combine({"bound": bound, "free": free, "more": random_forest(seed, 3, **options)})


def lambda_of(robot: pp.Robot, q: Any, frame: str) -> np.ndarray:
    """(J𝓜⁻¹J*)⁻¹ by dense algebra; NaN if J has not rank 6."""
    J = pp.jacobian(robot, q, frame)
    Upsilon = J @ np.linalg.solve(matrix(mass, system(robot, q)), J.T)
    return np.linalg.inv(Upsilon) if np.linalg.matrix_rank(J) == 6 else np.full((6, 6), np.nan)


def between(robot: pp.Robot) -> list[tuple[str, str]]:
    """(child, parent) of each hinge between bodies."""
    return [(h.child, h.parent) for h in robot.hinges if h.parent != "world"]


@seeds
def test_forests_with_trees_that_are_not_free(seed: int) -> None:
    """𝓜β̇ + C = T with the dense 𝓜 and α = Jβ̇ + J̇β of every body, massless bodies among them."""
    robot = mixed(seed)
    s = State(robot)
    bias = pp.bias_force(robot, s.q, s.v, external=s.external)
    expected = np.linalg.solve(matrix(mass, system(robot, s.q)), s.tau - bias)
    bif = pp.base_invariant_forward_dynamics
    for found in ways(bif, robot, s.q, s.v, s.tau, external=s.external):
        close(found, expected, 1e-9)
    alpha = pp.accelerations(robot, s.q, s.v, expected)
    for found in ways(pp.link_accelerations, robot, s.q, s.v, s.tau, external=s.external):
        close(found, alpha, 1e-9)
    order = [*between(robot)[::-1], *((p, c) for c, p in between(robot))]
    found = pp.link_accelerations(robot, s.q, s.v, s.tau, external=s.external, order=order)
    close(found, alpha, 1e-9)
    X, V = pp.poses(robot, s.q), pp.velocities(robot, s.q, s.v)
    found = pp.decoupled_forward_dynamics(robot, X, V, s.tau, external=s.external)
    close(found, alpha, 1e-8)


@seeds
def test_accelerations_of_fixed_trees_are_pinocchios(seed: int) -> None:
    robot = with_normal_z(mixed(seed, kinds=("revolute", "prismatic", "spherical"), massless=False))
    model = pp.interop.to_pinocchio_model(robot)
    data, s = model.createData(), State(robot)
    q, v, tau = pp.interop.to_pinocchio(robot, s.q, s.v, tau=s.tau, joints=model)
    pin.forwardKinematics(model, data, q, v, pin.aba(model, data, q, v, tau))
    alpha = np.array([[*data.a[i + 1].angular, *data.a[i + 1].linear] for i in range(robot.nb)])
    close(pp.link_accelerations(robot, s.q, s.v, s.tau), alpha, 1e-9)


@seeds
def test_operational_inertias_exist_body_by_body(seed: int) -> None:
    """Λ = (J𝓜⁻¹J*)⁻¹ of each body by dense algebra, where it exists; NaN for the others alone."""
    robot = pp.combine({"zoo": mixed(seed), "arm": pp.robots.seven_axis_arm()})
    s = State(robot)
    found = ways(pp.operational_inertia, robot, s.q)
    some = 0
    for i, body in enumerate(robot.bodies):
        expected = lambda_of(robot, s.q, body.name)
        exists = np.isfinite(expected).all()
        some += exists
        for own in (x[i] for x in found):
            assert np.isfinite(own).all() == exists, body.name
            if exists:
                close(own @ np.linalg.inv(expected), np.eye(6), 1e-7)
    assert 5 <= some < robot.nb


@pytest.mark.parametrize("kinds", [("revolute",), ("revolute", "prismatic"), ("spherical",)])
def test_no_operational_inertia_with_too_few_freedoms(kinds: tuple[str, ...]) -> None:
    """The rank of J decides at every depth."""
    robot = random_forest(2, 12, kinds=kinds, branching=False, massless=False)
    q, _ = robot.random_state(1, (20,))
    found = np.isfinite(pp.operational_inertia(robot, q)).all(axis=(2, 3))
    for row, exist in zip(q, found, strict=True):
        J = (pp.jacobian(robot, row, b.name) for b in robot.bodies)
        assert exist.tolist() == [np.linalg.matrix_rank(j) == 6 for j in J]


def test_a_planar_chain_never_has_an_operational_inertia() -> None:
    tilted = pp.Transform.of(pp.spatial.rotation.from_rpy(0.3, 0.9, -0.4), (0.1, 0.2, 0.3))
    robot = pp.Builder("planar").add(pp.robots.planar_chain(25), placement=tilted).build()
    q, _ = robot.random_state(2, (20,))
    assert np.isnan(pp.operational_inertia(robot, q)).all()


def test_dual_inertias_of_an_arm_on_the_ground() -> None:
    """S is Λ with a massless last body, S⁺ is Λ at its place without it: both by dense algebra."""
    arm = pp.robots.seven_axis_arm()
    arm = arm.with_parameters({f"armature:{h.name}": [0.3] for h in arm.hinges})
    flying = flyer(1, 3)
    robot = pp.combine({"free": flying, "arm": arm})
    s = State(robot)
    *_, wrist, hand = (b.name for b in robot.bodies)
    found = pp.dual_articulated_inertias(robot, s.q)
    hollow = robot.with_parameters({f"inertia:{hand}": np.zeros(10)})
    close(found.S[-1], lambda_of(hollow, s.q, hand), 1e-9)
    assert np.linalg.matrix_rank(pp.jacobian(robot, s.q, wrist)) == 6
    assert np.isfinite(found.S[-2]).all() and np.isnan(found.S[flying.nb : -2]).all()
    place = np.linalg.inv(pp.frame_pose(robot, s.q, wrist)) @ pp.frame_pose(robot, s.q, hand)
    builder = pp.Builder("rest")
    builder.bodies, builder.hinges = list(robot.bodies[:-1]), list(robot.hinges[:-1])
    placement = pp.Transform.of(place[:3, :3], place[:3, 3])
    rest = builder.frame("place", wrist, placement=placement).build()
    S_plus, h = lambda_of(rest, s.q[:-1], "place"), np.zeros(6)
    h[:3] = robot.hinges[-1].axes[0]
    D_s = h @ S_plus @ h + 0.3
    close(found.D_s[-1, -1], D_s, 1e-9)
    close(found.G_s[:, -1], -S_plus @ h / D_s, 1e-9)
    own, n = pp.dual_articulated_inertias(flying, s.q[:-7]), flying.nv
    assert np.isnan(np.diag(found.D_s)[n:-1]).all() and np.isnan(found.G_s[:, n:-1]).all()
    close(found.S[: flying.nb], own.S)
    close(found.D_s[:n, :n], own.D_s)
    close(found.G_s[:, :n], own.G_s)


def test_a_free_root_with_armature() -> None:
    """It is bound to the world by its armature: Λ by dense algebra."""
    robot = pp.robots.space_arm()
    heavy = robot.edit().replace_hinge(robot.hinges[0].name, armature=np.ones(6)).build()
    s = State(heavy)
    for body, found in zip(heavy.bodies, pp.operational_inertia(heavy, s.q), strict=True):
        expected = lambda_of(heavy, s.q, body.name)
        close(found @ np.linalg.inv(expected), np.eye(6), 1e-9)
    a = np.linalg.solve(matrix(mass, system(heavy, s.q)), s.tau - pp.bias_force(heavy, s.q, s.v))
    close(pp.base_invariant_forward_dynamics(heavy, s.q, s.v, s.tau), a, 1e-9)
