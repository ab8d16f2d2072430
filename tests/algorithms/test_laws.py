"""Physical laws on random forests: every hinge kind, branching, massless bodies, armature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phipsi as pp
from phipsi.conventions import Reference
from phipsi.operators.algebra.symbols import D, E_phi, H, I, K, M, P, P_plus, mass, phi, psi
from phipsi.operators.dense import matrix, system
from tests.zoo import MOVING, State, close, forests, random_builder, random_forest

pytestmark = pytest.mark.usefixtures("interpreted")

STEP = 1e-5
law = settings(max_examples=settings().max_examples // 12)  # each traces several programs


def along(robot: pp.Robot, s: State, function: Any) -> Any:
    """The derivative of function(q, v) along (v, a), by central difference."""
    after = function(robot.integrate(s.q, STEP * s.v), s.v + STEP * s.a)
    before = function(robot.integrate(s.q, -STEP * s.v), s.v - STEP * s.a)
    return (after - before) / (2 * STEP)


@law
@given(forests())
def test_forward_dynamics_inverts_inverse_dynamics(robot: pp.Robot) -> None:
    s = State(robot)
    tau = pp.inverse_dynamics(robot, s.q, s.v, s.a, external=s.external)
    close(pp.forward_dynamics(robot, s.q, s.v, tau, external=s.external), s.a, 1e-9)
    a = pp.forward_dynamics(robot, s.q, s.v, s.tau, external=s.external)
    close(pp.inverse_dynamics(robot, s.q, s.v, a, external=s.external), s.tau, 1e-9)


@law
@given(forests())
def test_mass_matrix_is_the_jacobian_of_inverse_dynamics_and_the_dense_product(
    robot: pp.Robot,
) -> None:
    s = State(robot)
    found = pp.mass_matrix(robot, s.q)
    bias = pp.bias_force(robot, s.q, s.v)
    columns = pp.inverse_dynamics(robot, s.q, s.v, np.eye(robot.nv)) - bias
    close(columns.T, found)
    close(matrix(mass, system(robot, s.q)), found)
    assert (found == found.T).all()


@law
@given(forests())
def test_products_and_inverse_belong_to_the_mass_matrix(robot: pp.Robot) -> None:
    s = State(robot)
    whole = matrix(mass, system(robot, s.q))
    scale = 1e-14 * np.linalg.cond(whole) + 1e-11
    inverse = np.linalg.inv(whole)
    close(pp.mass_matrix_product(robot, s.q, s.w), whole @ s.w)
    close(pp.mass_matrix_solve(robot, s.q, s.w), inverse @ s.w, scale)
    close(pp.mass_matrix_inverse(robot, s.q), inverse, scale)
    close(pp.mass_matrix_logdet(robot, s.q), np.linalg.slogdet(whole)[1])
    m = pp.mass_matrix_sqrt_product(robot, s.q, np.eye(robot.nv), factor="m").T
    m_star = pp.mass_matrix_sqrt_product(robot, s.q, np.eye(robot.nv), factor="m*").T
    l = pp.mass_matrix_sqrt_product(robot, s.q, np.eye(robot.nv), factor="l").T
    l_star = pp.mass_matrix_sqrt_product(robot, s.q, np.eye(robot.nv), factor="l*").T
    close(m @ m.T, whole)
    close(m_star, m.T)
    close(l @ m, np.eye(robot.nv), scale)
    close(l_star, l.T, scale)


@law
@given(forests())
def test_mass_matrix_rate_is_coriolis_plus_its_transpose(robot: pp.Robot) -> None:
    s = State(robot)
    C = pp.coriolis_matrix(robot, s.q, s.v)
    rate = along(robot, s, lambda q, v: pp.mass_matrix(robot, q))
    close(C + C.T, rate, 1e-6)
    close(C @ s.w, pp.coriolis_product(robot, s.q, s.v, s.w))
    close(C @ s.v + pp.gravity_force(robot, s.q), pp.bias_force(robot, s.q, s.v))


@law
@given(forests())
def test_energy_rate_is_power(robot: pp.Robot) -> None:
    s = State(robot)
    s.a = pp.forward_dynamics(robot, s.q, s.v, s.tau, external=s.external)

    def energy(q: Any, v: Any) -> Any:
        return pp.kinetic_energy(robot, q, v) + pp.potential_energy(robot, q)

    power = s.tau @ s.v + (pp.velocities(robot, s.q, s.v) * s.external).sum()
    close(along(robot, s, energy), power, 1e-6)
    mass = pp.mass_matrix(robot, s.q)
    close(pp.kinetic_energy(robot, s.q, s.v), 0.5 * s.v @ mass @ s.v)


@law
@given(forests(roots=("free",), armature=False))
def test_momentum_changes_by_external_forces_and_gravity_alone(robot: pp.Robot) -> None:
    s = State(robot)
    for h, p in zip(robot.hinges, robot.parents, strict=True):
        if p < 0:
            s.tau[h.v] = 0.0
    s.a = pp.forward_dynamics(robot, s.q, s.v, s.tau, external=s.external)
    wrench = np.zeros(6)
    for pose, force in zip(pp.poses(robot, s.q), s.external, strict=True):
        moment, linear = pose[:3, :3] @ force[:3], pose[:3, :3] @ force[3:]
        wrench += np.concatenate((moment + np.cross(pose[:3, 3], linear), linear))
    weight = robot.mass * np.asarray(robot.gravity, float)
    com = pp.center_of_mass(robot, s.q)
    wrench += np.concatenate((np.cross(com, weight), weight))
    close(along(robot, s, lambda q, v: pp.momentum(robot, q, v)), wrench, 1e-6)


@law
@given(forests())
def test_momentum_matrix_and_its_origins(robot: pp.Robot) -> None:
    s = State(robot)
    for about in ("world", "com"):
        h = pp.momentum(robot, s.q, s.v, about=about)
        close(pp.momentum_matrix(robot, s.q, about=about) @ s.v, h)
    world, com = pp.momentum(robot, s.q, s.v), pp.momentum(robot, s.q, s.v, about="com")
    shift = np.cross(pp.center_of_mass(robot, s.q), world[3:])
    close(com, np.concatenate((world[:3] - shift, world[3:])))
    rate = along(robot, s, lambda q, v: pp.center_of_mass(robot, q))
    close(world[3:], robot.mass * rate, 1e-6)


@law
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_renumbering_bodies_changes_nothing(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    builder = random_builder(rng, n, massless=False, kinds=MOVING)
    robot = builder.build()
    rng.shuffle(builder.bodies)
    rng.shuffle(builder.hinges)
    other = builder.build()
    s = State(robot)

    def renumbered(values: Any, part: str) -> np.ndarray:
        out = np.empty_like(values)
        for h in other.hinges:
            out[getattr(h, part)] = values[getattr(robot.hinge(h.name), part)]
        return out

    q, v, tau = renumbered(s.q, "q"), renumbered(s.v, "v"), renumbered(s.tau, "v")
    a = pp.forward_dynamics(robot, s.q, s.v, s.tau)
    close(pp.forward_dynamics(other, q, v, tau), renumbered(a, "v"), 1e-9)
    close(pp.jacobian(other, q, "tool") @ v, pp.jacobian(robot, s.q, "tool") @ s.v)


@law
@given(forests(max_bodies=4), st.sampled_from([(), (1,), (3,), (2, 3), (0,), (2, 0, 3)]))
def test_a_batch_is_a_loop_of_singles(robot: pp.Robot, batch: tuple[int, ...]) -> None:
    s = State(robot, batch)
    a = pp.forward_dynamics(robot, s.q, s.v, s.tau, external=s.external)
    assert a.shape == (*batch, robot.nv)
    for i in np.ndindex(*batch):
        one = pp.forward_dynamics(robot, s.q[i], s.v[i], s.tau[i], external=s.external[i])
        close(a[i], one, 1e-13)


@law
@given(forests())
def test_jacobians_map_and_their_derivatives_differentiate(robot: pp.Robot) -> None:
    s = State(robot)
    for reference in ("local", "world", "aligned"):
        J = pp.jacobian(robot, s.q, "tool", reference=reference)
        rate = pp.jacobian_derivative(robot, s.q, s.v, "tool", reference=reference)
        close(J @ s.v, pp.frame_velocity(robot, s.q, s.v, "tool", reference=reference))

        def jacobian(q: Any, v: Any, reference: Reference = reference) -> Any:
            return pp.jacobian(robot, q, "tool", reference=reference)

        close(rate, along(robot, s, jacobian), 1e-6)


@law
@given(forests())
def test_velocities_and_accelerations_are_derivatives_of_poses(robot: pp.Robot) -> None:
    s = State(robot)
    pose, rate = pp.poses(robot, s.q), along(robot, s, lambda q, v: pp.poses(robot, q))
    for X, Xd, V in zip(pose, rate, pp.velocities(robot, s.q, s.v), strict=True):
        twist = np.linalg.inv(X) @ Xd
        close(V, [twist[2, 1], twist[0, 2], twist[1, 0], *twist[:3, 3]], 1e-6)
    for reference in ("local", "world"):

        def velocities(q: Any, v: Any, reference: Reference = reference) -> Any:
            return pp.velocities(robot, q, v, reference=reference)

        found = pp.accelerations(robot, s.q, s.v, s.a, reference=reference)
        close(found, along(robot, s, velocities), 1e-6)
    classical = pp.accelerations(robot, s.q, s.v, s.a, reference="aligned", classical=True)
    numeric = along(robot, s, lambda q, v: pp.velocities(robot, q, v, reference="aligned"))
    close(classical, numeric, 1e-6)


@law
@given(forests())
def test_regressor_is_linear_in_the_inertia_parameters(robot: pp.Robot) -> None:
    s = State(robot)
    parameters = np.concatenate([robot.parameter(f"inertia:{b.name}") for b in robot.bodies])
    armature = robot.joint_data("armature")
    tau = pp.regressor(robot, s.q, s.v, s.a) @ parameters + armature * s.a
    close(tau, pp.inverse_dynamics(robot, s.q, s.v, s.a))


@law
@given(forests())
def test_articulated_inertias_factor_the_mass_matrix(robot: pp.Robot) -> None:
    s = State(robot)
    ab = pp.articulated_inertias(robot, s.q)
    n = robot.nb
    own, gain = np.zeros((6 * n, 6 * n)), np.zeros((6 * n, robot.nv))
    for i, h in enumerate(robot.hinges):
        own[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = ab.P[i]
        gain[6 * i : 6 * i + 6, h.v] = ab.G[:, h.v]
    assert (ab.P == np.swapaxes(ab.P, -1, -2)).all()
    x = system(robot, s.q).giving(P=own, G=gain)
    close(matrix(D, x), ab.D)
    close(matrix(P - E_phi @ P_plus @ E_phi.T, x), matrix(M, x), 1e-9)
    factor = I + H @ phi @ K
    close(matrix(factor @ D @ factor.T, x), matrix(mass, x), 1e-9)  # [SOA] Lemma 4.1
    close(matrix(factor.inv, x), matrix(I - H @ psi @ K, x), 1e-9)  # [SOA] Lemma 4.2


@law
@given(forests())
def test_passive_forces_take_energy_out(robot: pp.Robot) -> None:
    s = State(robot)
    at_rest = pp.passive_forces(robot, robot.neutral(), s.v)
    assert (at_rest * s.v).sum() < 0
    still = pp.passive_forces(robot, s.q, 0 * s.v)
    assert still @ robot.difference(robot.neutral(), s.q) <= 1e-12


def test_external_force_by_name_is_the_force_on_the_body() -> None:
    robot = random_forest(3, 4, kinds=MOVING, massless=False)
    s = State(robot)
    wrench = np.arange(6.0)
    by_name = pp.forward_dynamics(robot, s.q, s.v, s.tau, external={"tool": wrench})
    J = pp.jacobian(robot, s.q, "tool")
    close(by_name, pp.forward_dynamics(robot, s.q, s.v, s.tau + J.T @ wrench), 1e-9)


def test_a_thousand_spherical_links_are_right_to_rounding() -> None:
    robot = pp.robots.chain(1000, kind="spherical")
    q, v = robot.random_state(0)
    v *= 0.1
    tau = np.random.default_rng(1).normal(size=robot.nv)
    a = pp.forward_dynamics(robot, q, v, tau)
    exact = pp.forward_dynamics(robot, *(x.astype(np.longdouble) for x in (q, v, tau)))
    assert np.abs(a - exact).max() <= 1e-13 * np.abs(exact).max()
    still = pp.bias_force(robot, q, v)  # what cancels when inverse dynamics comes back to tau
    assert np.abs(pp.inverse_dynamics(robot, q, v, a) - tau).max() <= 1e-11 * np.abs(still).max()


@pytest.mark.parametrize("n", [10, 20])
def test_cost_is_linear(n: int) -> None:
    def operations(program: pp.Program, length: int) -> int:
        return program.graph(pp.robots.chain(length)).operations

    for program in (pp.forward_dynamics, pp.inverse_dynamics, pp.mass_matrix_logdet):
        per_body = operations(program, 5 + n) - operations(program, 5)
        assert per_body == pytest.approx(
            n * (operations(program, 45) - operations(program, 5)) / 40, rel=0.02
        )
