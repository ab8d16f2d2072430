"""Sensitivities and curvature of the mass matrix against differences, and coordinates that make it
one against motions that are straight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import phipsi as pp
from tests.algorithms.test_base_invariant import runge_kutta
from tests.algorithms.test_under_actuated import along, polar, robots, still
from tests.papers.oracles import Field, christoffel, gradient, riemann
from tests.zoo import MOVING, ONE_DOF, State, close, forests, random_forest

law = settings(max_examples=settings().max_examples // 12)
COORDINATES = (*ONE_DOF, "universal", "cylindrical")
"""Hinges whose rates are those of coordinates."""


pytestmark = pytest.mark.usefixtures("interpreted")


# ---- oracles ------------------------------------------------------------------------------------


def metric(robot: pp.Robot) -> Field:
    return lambda q: pp.mass_matrix(robot, q)


def planar(offset: float, **more: Any) -> pp.Robot:
    """Two parallel revolute joints, the centre of the second link off its axis."""
    builder = pp.Builder("planar", gravity=(0, 0, 0)).body("inner", mass=2, com=(0.3, 0, 0))
    builder.hinge("inner", "revolute", "world", "inner", axis=(0, 0, 1), **more)
    builder.body("outer", mass=1, com=(offset, 0, 0), inertia=(0.1, 0.1, 0.2))
    builder.hinge("outer", "revolute", "inner", "outer", axis=(0, 0, 1), position=(0.7, 0, 0))
    return builder.build()


def pendulum(mass: float, length: float) -> pp.Robot:
    """A point mass on a universal joint: it moves on a sphere."""
    builder = pp.Builder("sphere", gravity=(0, 0, 0)).body("bob", mass=mass, com=(0, 0, length))
    axes = ((1, 0, 0), (0, 1, 0))
    return builder.hinge("joint", "universal", "world", "bob", axis=axes).build()


def telescope() -> pp.Robot:
    """A point mass on a slide that a universal joint turns: space in spherical coordinates."""
    builder = pp.Builder("telescope", gravity=(0, 0, 0)).body("tube", mass=0)
    builder.hinge("joint", "universal", "world", "tube", axis=((1, 0, 0), (0, 1, 0)))
    builder.body("bob", mass=3).hinge("slide", "prismatic", "tube", "bob", axis=(0, 0, 1))
    return builder.build()


FLAT = {
    "sliders": random_forest(4, 3, kinds=("prismatic",), branching=False, massless=False),
    "polar": polar(),
    "balanced": planar(0.0),
    "balanced with armature": planar(0.0, armature=0.3),
    "telescope": telescope(),
    "one joint": random_forest(0, 1, kinds=("helical",)),
}
CURVED = {
    "unbalanced": planar(0.3),
    "arm": random_forest(1, 3, kinds=("revolute",), branching=False, massless=False),
    "sphere": pendulum(1.5, 0.8),
    "pendulum": pp.robots.double_pendulum(),
}


# ---- sensitivities ------------------------------------------------------------------------------


@robots
def test_derivatives_of_the_mass_matrix_are_differences(robot: pp.Robot) -> None:
    """Along every freedom, of every hinge kind."""
    s = State(robot)
    found = pp.mass_matrix_derivative(robot, s.q)
    assert (found == np.swapaxes(found, 0, 1)).all()
    for i, unit in enumerate(np.eye(robot.nv)):
        rate = along(robot, s.q, unit, 0 * unit, lambda q, v: pp.mass_matrix(robot, q))
        close(found[..., i], rate, 1e-8)


@law
@given(forests(max_bodies=4))
def test_the_mass_matrix_changes_by_its_derivatives(robot: pp.Robot) -> None:
    """Σ ∂𝓜 β = 𝓜̇ = C + C*, the Coriolis matrix and its transpose."""
    s = State(robot, (2,))
    found = pp.mass_matrix_derivative(robot, s.q)
    C = pp.coriolis_matrix(robot, s.q, s.v)
    close(np.einsum("bijk,bk->bij", found, s.v), C + np.swapaxes(C, 1, 2))


@law
@given(forests(max_bodies=4, kinds=COORDINATES))
def test_christoffel_symbols(robot: pp.Robot) -> None:
    """They make the velocity part of the bias force; 𝓜 times the second kind is the first."""
    s = State(robot)
    first = pp.christoffel(robot, s.q)
    close(np.einsum("ijl,i,j->l", first, s.v, s.v), pp.bias_force(still(robot), s.q, s.v))
    assert (first == np.swapaxes(first, 0, 1)).all()
    close(first, christoffel(metric(robot), s.q), 1e-8)
    second = pp.christoffel(robot, s.q, kind="second")
    mass = pp.mass_matrix(robot, s.q)
    close(second @ mass, first, 1e-11 + 1e-14 * np.linalg.cond(mass))


# ---- curvature ----------------------------------------------------------------------------------


@law
@given(forests(max_bodies=3, kinds=COORDINATES))
def test_curvature_by_its_definition(robot: pp.Robot) -> None:
    """Massless bodies, armature, branches; its symmetries and Bianchi's first identity."""
    q, _ = robot.random_state(5)
    R = pp.curvature(robot, q)
    close(R, riemann(metric(robot), q), 1e-7)
    for other in ("ihjk", "hikj"):
        close(R, -np.einsum(f"{other}->hijk", R), 1e-12)
    close(R, np.einsum("jkhi->hijk", R), 1e-12)
    close(R + np.einsum("hjki->hijk", R) + np.einsum("hkij->hijk", R), 0 * R, 1e-12)


@pytest.mark.parametrize("robot", FLAT.values(), ids=FLAT)
def test_flat_robots(robot: pp.Robot) -> None:
    """At several configurations at once."""
    q, _ = robot.random_state(1, (2, 3))
    R = pp.curvature(robot, q)
    assert R.shape == (2, 3, *[robot.nv] * 4)
    close(R, 0 * R, 1e-12)
    verdict = pp.globally_diagonalizable(robot)
    assert verdict.flat is True and verdict.curvature <= 1e-12 and verdict.q.shape == (robot.nq,)


@pytest.mark.parametrize("robot", CURVED.values(), ids=CURVED)
def test_curved_robots(robot: pp.Robot) -> None:
    q = np.full(robot.nq, 0.6)
    R = pp.curvature(robot, q)
    assert np.abs(R).max() > 1e-2
    close(R, riemann(metric(robot), q), 1e-8)
    verdict = pp.globally_diagonalizable(robot, samples=4, rng=1)
    assert verdict.flat is False and 1e-6 < verdict.curvature < 2.0
    assert np.abs(pp.curvature(robot, verdict.q)).max() > 0.0


@pytest.mark.parametrize(("mass", "length"), [(1.0, 1.0), (1.5, 0.8), (1e-3, 10.0)])
def test_a_point_mass_on_a_sphere_has_its_curvature(mass: float, length: float) -> None:
    """K = R_0101 / det 𝓜 = 1/(mr²) wherever it is."""
    robot = pendulum(mass, length)
    q = np.random.default_rng(0).uniform(-1, 1, (5, 2))
    K = pp.curvature(robot, q)[:, 0, 1, 0, 1] / np.linalg.det(pp.mass_matrix(robot, q))
    assert pytest.approx(1.0 / (mass * length**2), rel=1e-10) == K


def test_flatness_is_relative_to_the_robot() -> None:
    """Not to its units: tiny and huge robots are as flat and as curved."""
    for scale in (1e-9, 1e9):
        for offset, flat in ((0.0, True), (0.3, False)):
            robot = planar(offset)
            for body in robot.bodies:
                name = f"inertia:{body.name}"
                robot = robot.with_parameters({name: scale * robot.parameter(name)})
            assert pp.globally_diagonalizable(robot, samples=4).flat is flat


# ---- coordinates --------------------------------------------------------------------------------


def coordinates(
    robot: pp.Robot, q: Any, start: Any, steps: int = 64
) -> pp.DiagonalizingCoordinates:
    return pp.diagonalizing_coordinates(robot, q, start, steps=steps)


@pytest.mark.parametrize("robot", FLAT.values(), ids=FLAT)
def test_coordinates_make_the_mass_matrix_one(robot: pp.Robot) -> None:
    """W*W = 𝓜, W is their gradient, and they begin at zero."""
    rng = np.random.default_rng(2)
    start, ends = np.full(robot.nq, 0.5), rng.uniform(0.4, 1.2, (3, robot.nq))
    found = coordinates(robot, ends, start)
    close(np.swapaxes(found.W, 1, 2) @ found.W, pp.mass_matrix(robot, ends), 1e-8)
    slope = gradient(lambda q: coordinates(robot, q, start).coordinates)(ends)
    close(found.W, slope, 1e-7)
    assert (coordinates(robot, start, start).coordinates == 0.0).all()


@pytest.mark.parametrize("robot", [polar(), telescope()], ids=lambda robot: robot.name)
def test_distances_between_coordinates_are_those_in_space(robot: pp.Robot) -> None:
    rng = np.random.default_rng(0)
    q = rng.uniform(-1.2, 1.2, (6, robot.nq))
    q[:, -1] = rng.uniform(0.5, 2.0, 6)
    start = np.full(robot.nq, 0.1)
    start[-1] = 1.0
    found = coordinates(robot, q, start, 512).coordinates
    place = np.sqrt(robot.mass) * pp.poses(robot, q)[:, -1, :3, 3]

    def distances(x: np.ndarray) -> np.ndarray:
        return np.linalg.norm(x[:, None] - x, axis=-1)

    close(distances(found), distances(place), 1e-7)


@pytest.mark.parametrize("name", ["polar", "telescope", "balanced with armature"])
def test_the_motion_is_newtons(name: str) -> None:
    """ϑ̈ = W⁻*T by differences along the motion; left alone, ϑ goes straight on."""
    robot = FLAT[name]
    n = robot.nv
    start, q, v, tau = (np.array(x[:n]) for x in (
        (0.2, 0.6, 0.8), (0.5, 0.9, 1.0), (0.8, 0.3, -0.4), (0.4, -0.7, 0.5)
    ))  # fmt: skip

    def momentum(q: Any, v: Any) -> Any:
        return np.einsum("...ij,...j->...i", coordinates(robot, q, start).W, v)

    W = coordinates(robot, q, start).W
    qdd = pp.forward_dynamics(robot, q, v, tau)
    close(along(robot, q, v, qdd, momentum), np.linalg.solve(W.T, tau), 1e-8)
    kernel, none = pp.forward_dynamics.compile(robot), np.zeros(n)

    def rate(x: np.ndarray) -> np.ndarray:
        return np.concatenate((x[n:], kernel(x[:n], x[n:], none)))

    end = runge_kutta(rate, np.concatenate((q, v)), 100)[:n]
    if name != "balanced with armature":  # bent in its own coordinates
        assert np.abs(end - q - v).max() > 1e-2
    both = coordinates(robot, np.stack([q, end]), start).coordinates
    close(both[1] - both[0], W @ v, 1e-8)


def test_coordinates_are_of_fourth_order() -> None:
    robot, q, start = polar(), np.array([1.8, 1.5]), np.array([0.1, 0.5])
    exact = coordinates(robot, q, start, 1024)
    for part in range(2):
        error = [np.abs(coordinates(robot, q, start, n)[part] - exact[part]).max()
                 for n in (32, 64, 128)]  # fmt: skip
        assert 13 < error[0] / error[1] < 19 and 13 < error[1] / error[2] < 19


# ---- errors -------------------------------------------------------------------------------------


def test_curved_robots_have_no_such_coordinates() -> None:
    robot = pp.robots.double_pendulum()
    with pytest.raises(pp.ModelError) as caught:
        pp.diagonalizing_coordinates(robot, np.ones(2), np.zeros(2))
    words = str(caught.value)
    assert words.startswith("robot 'double_pendulum' has a curved mass matrix (")
    assert "no coordinates make it one everywhere; use total_rates" in words


QUASI = [kind for kind in MOVING if kind not in COORDINATES]
"""Hinges whose velocities are no rates of coordinates."""


@pytest.mark.parametrize("kind", QUASI)
def test_straight_lines_need_coordinates(kind: str) -> None:
    robot = random_forest(1, 2, kinds=(kind,), massless=False)
    q = robot.neutral()
    words = f"needs rates of coordinates, but those of joint 'hinge0' \\({kind}\\) are not"
    with pytest.raises(pp.ModelError, match=words):
        pp.diagonalizing_coordinates(robot, q, q)


def test_curvature_refuses_armature_that_no_points_carry() -> None:
    robot = random_forest(1, 1, kinds=("spherical",), massless=False)
    robot = robot.with_parameters({"armature:hinge0": np.array([0.1, 0.0, 0.0])})
    with pytest.raises(pp.ModelError, match=r"joint 'hinge0' \(spherical\) has armature"):
        pp.curvature(robot, robot.neutral())


def test_robots_that_are_too_large_are_refused() -> None:
    long = pp.robots.chain(65)
    words = r" of robot 'chain' has 65\^3 numbers, .* at most 64 freedoms"
    for f in (pp.mass_matrix_derivative, pp.christoffel):
        with pytest.raises(ValueError, match=words):
            f(long, np.zeros(65))
    words = r"curvature of robot 'chain' has 21\^4 numbers, .* at most 20 freedoms"
    robot, q = pp.robots.chain(21), np.zeros(21)
    for call in (
        lambda: pp.curvature(robot, q),
        lambda: pp.globally_diagonalizable(robot),
        lambda: pp.diagonalizing_coordinates(robot, q, q),
    ):
        with pytest.raises(ValueError, match=words):
            call()


# ---- quasi-velocities and many freedoms ---------------------------------------------------------


def brackets(robot: pp.Robot) -> np.ndarray:
    """c_ij^s of the freedoms, from commutators of the 4 × 4 matrices of rigid motions."""

    def twist(x: np.ndarray) -> np.ndarray:
        (a, b, c), v = x[:3], x[3:]
        return np.block([[np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]]), v[:, None]],
                         [np.zeros((1, 4))]])  # fmt: skip

    out = np.zeros((robot.nv,) * 3)
    for h in robot.hinges:
        kind = h.kind.forward or h.kind
        if kind.name in QUASI:
            columns = kind.map(h, np.zeros(kind.nq)).T.columns
            H = np.array([x.array for x in columns], float)
            A = [twist(x) for x in H]
            basis = np.stack([a.reshape(-1) for a in A], axis=1)
            for i, j in np.ndindex(len(A), len(A)):
                commutator = (A[i] @ A[j] - A[j] @ A[i]).reshape(-1)
                out[h.v, h.v, h.v][i, j] = np.linalg.lstsq(basis, commutator, rcond=None)[0]
    return out


@law
@given(forests(max_bodies=3))
def test_the_connection_along_quasi_velocities(robot: pp.Robot) -> None:
    """It is the only one that is compatible with the metric and has no torsion."""
    s = State(robot)
    first, mass = pp.christoffel(robot, s.q), pp.mass_matrix(robot, s.q)
    dM = pp.mass_matrix_derivative(robot, s.q)
    close((first + first.swapaxes(1, 2)).transpose(1, 2, 0), dM, 1e-12)
    close(first - first.swapaxes(0, 1), brackets(robot) @ mass, 1e-12)
    if not any(any(h.armature) for h in robot.hinges if h.kind.group):
        close(np.einsum("ijl,i,j->l", first, s.v, s.v), pp.bias_force(still(robot), s.q, s.v))


def ball(kind: str) -> pp.Robot:
    """A body with unequal moments of inertia on a spherical joint, or on three revolute ones."""
    builder = pp.Builder(kind, gravity=(0, 0, 0))
    solid: dict[str, Any] = {"mass": 1.3, "com": (0.2, -0.1, 0.4), "inertia": (0.3, 0.4, 0.5)}
    if kind == "spherical":
        return builder.body("body", **solid).hinge("ball", "spherical", "world", "body").build()
    parent = "world"
    for name, axis in (("z", (0, 0, 1)), ("y", (0, 1, 0)), ("x", (1, 0, 0))):
        builder.body(name, **(solid if name == "x" else {"mass": 0.0}))
        builder.hinge(name, "revolute", parent, name, axis=axis)
        parent = name
    return builder.build()


def test_curvature_is_a_tensor() -> None:
    """Along quasi-velocities it is that along coordinates, with β = A q̇ in every axis."""
    angles, quasi = ball("angles"), ball("spherical")
    q = np.array([0.4, -0.7, 0.9])
    J = pp.jacobian(angles, q, "x")[:3]  # angular velocity in the frame of the body
    R = pp.frame_pose(angles, q, "x")[:3, :3]
    w = np.sqrt(1.0 + np.trace(R)) / 2.0
    turn = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4.0 * w)
    found = pp.curvature(quasi, np.concatenate([[w], turn]))
    close(np.einsum("abcd,ah,bi,cj,dk->hijk", found, J, J, J, J), pp.curvature(angles, q), 1e-12)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_more_freedoms_than_are_unrolled(backend: Any) -> None:
    """Loops in the graph; along a direction 𝓜 changes by C + C*."""
    options: Any = {"kinds": ("spherical", "revolute", "planar"), "massless": False}
    robot = random_forest(7, 9, **options)
    zero = {f"armature:{h.name}": np.zeros(h.kind.nv) for h in robot.hinges}
    robot = robot.with_parameters(zero)
    assert 20 < robot.nv < 40
    s = State(robot, (2,))
    dM = pp.mass_matrix_derivative.compile(robot, backend=backend)
    C = pp.coriolis_matrix(robot, s.q, s.v)
    close(np.einsum("bijk,bk->bij", dM(s.q), s.v), C + np.swapaxes(C, 1, 2), 1e-10)
    assert dM.graph.size < 2 * robot.nv**3
    first = pp.christoffel.compile(robot, backend=backend)(s.q)
    close((first + first.swapaxes(2, 3)).transpose(0, 2, 3, 1), dM(s.q), 1e-10)
    close(
        np.einsum("bijl,bi,bj->bl", first, s.v, s.v), pp.bias_force(still(robot), s.q, s.v), 1e-10
    )
    second = pp.christoffel.compile(robot, kind="second", backend=backend)(s.q)
    mass = pp.mass_matrix(robot, s.q)
    close(second @ mass[:, None], first, 1e-13 * np.linalg.cond(mass).max())


def test_curvature_of_more_freedoms_than_are_unrolled() -> None:
    robot = pp.robots.chain(9)
    q, _ = robot.random_state(3, (2,))
    kernel = pp.curvature.compile(robot)
    R = kernel(q)
    assert kernel.graph.size < 4 * 9**4
    close(R[0], riemann(metric(robot), q[0]), 1e-6)
    close(R[1], riemann(metric(robot), q[1]), 1e-6)
    assert not pp.globally_diagonalizable(robot, 4).flat


def test_kinds_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^kind 'third' is not one of first, second$"):
        pp.christoffel(pp.robots.double_pendulum(), np.zeros(2), kind="third")  # type: ignore[arg-type]


# ---- what is easily overlooked ------------------------------------------------------------------


@pytest.mark.parametrize("mass", [1.0, 1e6, 1e12])
def test_heavy_neighbours_hide_no_curvature(mass: float) -> None:
    """A pendulum stands beside another that is heavy: they have nothing to do with each other."""
    heavy = pp.Builder("heavy").body("bob", mass=mass, com=(0, 0, -1))
    heavy = heavy.hinge("swing", "revolute", "world", "bob", axis=(0, 1, 0)).build()
    found = pp.globally_diagonalizable(pp.combine([heavy, pp.robots.double_pendulum()]), 8)
    assert not found.flat
    assert found.curvature > 0.1


def test_light_links_hide_no_curvature() -> None:
    for mass in (1.0, 1e-6, 1e-10):
        builder = pp.Builder("light").body("inner", mass=1, com=(0.5, 0, 0))
        builder.hinge("inner", "revolute", "world", "inner", axis=(0, 0, 1))
        builder.body("outer", mass=mass, com=(0.5, 0, 0))
        builder.hinge("outer", "revolute", "inner", "outer", axis=(0, 0, 1), position=(1, 0, 0))
        assert not pp.globally_diagonalizable(builder.build(), 8).flat


@pytest.mark.parametrize("unroll", [True, False])
def test_loops_over_bodies_give_the_same(unroll: bool) -> None:
    robot = random_forest(3, 3, kinds=COORDINATES)
    q = State(robot).q
    for program in (pp.christoffel, pp.curvature):
        close(program.compile(robot, unroll=unroll)(q), program(robot, q), 1e-12)


def test_nothing_that_moves() -> None:
    robot = pp.robots.double_pendulum()
    still = robot.locked([h.name for h in robot.hinges])
    q = still.neutral()
    assert pp.mass_matrix_derivative(still, q).shape == (0, 0, 0)
    assert pp.christoffel(still, q, kind="second").shape == (0, 0, 0)
    assert pp.curvature(still, q).shape == (0, 0, 0, 0)
    assert pp.globally_diagonalizable(still).flat


@pytest.mark.parametrize("steps", [0, -3, 1.5, True])
def test_steps_are_whole_numbers(steps: Any) -> None:
    with pytest.raises(ValueError, match="diagonalizing_coordinates: steps is"):
        pp.diagonalizing_coordinates(polar(), np.ones(2), np.ones(2), steps=steps)
    with pytest.raises(ValueError, match="samples is 0, needs at least one"):
        pp.globally_diagonalizable(polar(), 0)


def test_ways_through_singular_configurations_are_told() -> None:
    """A polar arm that reaches through its own axis."""
    ends = np.array([[2.5, -1.0], [0.9, 1.3], [2.5, 0.0]])
    start = np.array([0.1, 1.1])
    with pytest.raises(pp.SingularError, match="passes near a configuration where"):
        pp.diagonalizing_coordinates(polar(), ends[0], start)
    found = pp.diagonalizing_coordinates(polar(), ends, start)
    assert np.isnan(found.coordinates[[0, 2]]).all()
    close(found.coordinates[1], pp.diagonalizing_coordinates(polar(), ends[1], start).coordinates)
    still = pp.robots.double_pendulum()
    still = still.locked([h.name for h in still.hinges])
    assert pp.diagonalizing_coordinates(still, still.neutral(), still.neutral()).W.shape == (0, 0)
