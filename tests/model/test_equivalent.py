"""Equivalent robots: the same dynamics in joint space from other numbers."""

from __future__ import annotations

import warnings
from functools import cache, partial
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings

import phipsi as pp
from phipsi.model.equivalent import AXIAL, MOVES, TURNED, equivalent
from phipsi.operators.algebra.symbols import mass
from phipsi.operators.dense import matrix, system
from phipsi.spatial import Transform
from tests.model.urdf_files import URDFS
from tests.zoo import MOVING, State, close, forests, random_builder, random_forest, random_inertia

pytestmark = pytest.mark.usefixtures("interpreted")

some = settings(max_examples=settings().max_examples // 8)  # each traces a dozen programs
REAL: list[tuple[str, Literal["fixed", "free"]]] = [
    ("ur5_robot", "fixed"),
    ("panda", "fixed"),
    ("solo12", "free"),
    ("g1_29dof_rev_1_0", "free"),
    ("talos_full_v2", "fixed"),
    ("talos_full_v2", "free"),
]
real = pytest.mark.parametrize(("name", "base"), REAL)


@cache
def loaded(name: str, base: Any) -> pp.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pp.ModelWarning)
        return pp.load(URDFS[name], base=base)


def untouched(program: Any, robot: pp.Robot, external: Any) -> Any:
    """A function of arrays: the program traced on the robot as it is, by the interpreter."""
    parameters = [program.robot_parameter, *program.parameters.values()]
    plain = pp.Program(program.function, parameters, content_key=program.content_key)
    kernel = plain.compile(robot, backend="numpy", external=external)
    return kernel if external is None else partial(kernel, external=external)


def same_dynamics(robot: pp.Robot, other: pp.Robot, tolerance: float = 1e-11) -> None:
    s = State(robot)
    dense = matrix(mass, system(robot, s.q))
    close(matrix(mass, system(other, s.q)), dense, tolerance)
    rng = np.random.default_rng(3)
    names = [f.name for f in robot.frames.values() if f.body != "world"]
    names = [b.name for b in robot.bodies] + names
    by_frame = {name: rng.normal(size=6) for name in names[:: len(names) // 8 + 1]}
    for push in (None, by_frame, s.external):
        torques = [untouched(pp.inverse_dynamics, one, push) for one in (robot, other)]
        for a in (s.a, 0.0 * s.a):
            tau, found = (kernel(s.q, s.v, a) for kernel in torques)
            close(found, tau, tolerance)
        motions = [untouched(pp.forward_dynamics, one, push) for one in (robot, other)]
        scale = tolerance + 1e-15 * np.linalg.cond(dense)
        a, found = (kernel(s.q, s.v, s.tau) for kernel in motions)
        close(found, a, scale)


def same_frames(robot: pp.Robot, other: pp.Robot) -> None:
    q = State(robot).q
    for name in [*(b.name for b in robot.bodies), *robot.frames]:
        close(pp.frame_pose(other, q, name), pp.frame_pose(robot, q, name), 1e-12)


def exact(robot: pp.Robot) -> None:
    """Axes are z, rotations are rotations, and what cannot be felt is gone."""
    for body, h in zip(robot.bodies, robot.hinges, strict=True):
        R = np.asarray(h.placement.rotation, float)
        assert np.abs(R @ R.T - np.eye(3)).max() < 1e-14
        if h.kind.name in TURNED:
            assert [list(u) for u in h.axes] == [[0, 0, 1], [1, 0, 0], [0, 1, 0]][: len(h.axes)]
        m, _, _, hz, xx, _, _, yy, _, zz = body.inertia.parameters
        if h.kind.name in ("revolute", "continuous") and robot.nb <= MOVES:
            assert (m, hz, xx + yy - zz) == (0.0, 0.0, 0.0)
        if h.kind.name == "prismatic" and robot.nb <= MOVES:
            assert not np.asarray(body.inertia.J, float).any()


@some
@given(forests())
def test_random_forests_keep_their_dynamics_and_frames(robot: pp.Robot) -> None:
    other = equivalent(robot)
    same_dynamics(robot, other)
    same_frames(robot, other)
    exact(other)


@pytest.mark.parametrize("kind", MOVING)
def test_every_kind_of_hinge_inside_a_tree(kind: str) -> None:
    robot = random_forest(5, 4, kinds=(kind,), massless=False)
    same_dynamics(robot, equivalent(robot))


@real
def test_real_robots_keep_their_dynamics_and_need_fewer_operations(name: str, base: Any) -> None:
    robot = loaded(name, base)
    other = equivalent(robot)
    same_dynamics(robot, other)
    exact(other)
    for program in (pp.forward_dynamics, pp.inverse_dynamics, pp.mass_matrix):
        plain: Any = pp.program(program.function)  # type: ignore[arg-type]
        assert plain.graph(other).operations < plain.graph(robot).operations


def test_real_robots_keep_their_frames() -> None:
    robot = loaded("ur5_robot", "fixed")
    same_frames(robot, equivalent(robot))


def test_what_is_not_dynamics_stays() -> None:
    robot = random_forest(11, 6)
    other = equivalent(robot)
    assert (other.name, other.nq, other.nv) == (robot.name, robot.nq, robot.nv)
    assert [b.name for b in other.bodies] == [b.name for b in robot.bodies]
    for h, k in zip(robot.hinges, other.hinges, strict=True):
        assert (h.name, h.kind, h.parent, h.child, h.q, h.v) == (
            k.name, k.kind, k.parent, k.child, k.q, k.v,
        )  # fmt: skip
    for field in ("lower", "upper", "rest", "armature", "damping", "stiffness", "backlash"):
        assert (robot.joint_data(field) == other.joint_data(field)).all()
    assert (robot.gravity == other.gravity).all()


def test_placements_of_main_children_are_two_plane_rotations() -> None:
    robot = random_forest(3, 8, kinds=("revolute",), branching=False, massless=False)
    for h in equivalent(robot).hinges[1:]:
        assert h.placement.rotation[0, 2] == 0.0
        assert 0.0 in h.placement.position.tolist()


def test_a_denavit_hartenberg_chain_is_found_again() -> None:
    """Spoilt by turns and slides that do not matter, a chain gets its sparse form back."""
    rng = np.random.default_rng(2)
    builder, spoilt = pp.Builder("chain"), Transform.identity()
    for i in range(6):
        b, a, d = rng.choice([0.0, np.pi / 2, -np.pi / 2]), rng.uniform(0.1, 0.3), 0.2
        clean = Transform.of(_rotation(0, b), (a, -d * np.sin(b), d * np.cos(b)))
        turn = Transform.of(_rotation(2, rng.normal()), (0.0, 0.0, rng.uniform(-0.2, 0.2)))
        builder.body(f"b{i}", **random_inertia(rng))
        placement = spoilt.inv @ clean @ turn
        parent = f"b{i - 1}" if i else "world"
        builder.hinge(f"h{i}", "revolute", parent, f"b{i}", placement=placement, axis=(0, 0, 1))
        spoilt = turn
    robot = builder.build()
    other = equivalent(robot)
    same_dynamics(robot, other)
    for h in other.hinges[1:]:
        assert (np.asarray(h.placement.position, float) != 0.0).sum() <= 2
        assert (np.asarray(h.placement.rotation, float) == 0.0).sum() >= 4


def _rotation(axis: int, angle: float) -> Any:
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[i, i] = R[j, j] = np.cos(angle)
    R[j, i] = np.sin(angle)
    R[i, j] = -R[j, i]
    return R


@pytest.mark.parametrize("angle", [1e-15, 1e-13, 1e-9, 1e-5])
def test_nearly_parallel_axes_lose_no_digits(angle: float) -> None:
    rng = np.random.default_rng(4)
    builder = pp.Builder("chain")
    for i in range(8):
        builder.body(f"b{i}", **random_inertia(rng))
        builder.hinge(
            f"h{i}",
            "revolute",
            f"b{i - 1}" if i else "world",
            f"b{i}",
            position=rng.normal(0, 0.3, 3),
            axis=(angle * rng.normal(), angle * rng.normal(), 1.0),
        )
    robot = builder.build()
    other = equivalent(robot)
    same_dynamics(robot, other)
    assert max(np.abs(b.origin.position).max() for b in other.bodies) < 2.0


def test_it_settles() -> None:
    robot = random_forest(8, 8, massless=False)
    once = equivalent(robot)
    twice = equivalent(once)
    same_dynamics(robot, twice)
    assert set(twice.frames) == set(once.frames)
    count = pp.program(pp.forward_dynamics.function).graph
    assert count(twice).operations <= 1.02 * count(once).operations


@pytest.mark.parametrize(
    "parameter", ["inertia", "placement", "armature", "gravity", "frame", "damping"]
)
def test_traced_numbers_stay_inputs(parameter: str) -> None:
    builder = random_builder(np.random.default_rng(1), 6, kinds=(*AXIAL, "planar"), massless=False)
    robot = builder.build()
    target = {"inertia": "body3", "frame": "tool", "gravity": ""}.get(parameter, "hinge3")
    name = f"{parameter}:{target}".rstrip(":")

    @pp.program(shapes={"x": (len(robot.parameter(name)),)})
    def accelerated(robot: pp.Robot, q: Any, v: Any, tau: Any, push: Any, x: Any) -> Any:
        other = equivalent(robot.with_parameters({name: x}))
        return pp.forward_dynamics(other, q, v, tau, external={"tool": push})

    s, push = State(robot), np.arange(6.0)
    for value in (robot.parameter(name), 1.1 * robot.parameter(name)):
        changed = robot.with_parameters({name: value})
        expected = pp.forward_dynamics(changed, s.q, s.v, s.tau, external={"tool": push})
        close(accelerated(robot, s.q, s.v, s.tau, push, value), expected, 1e-11)


def test_parameters_of_an_equivalent_robot_can_be_inputs() -> None:
    robot = random_forest(6, 5, kinds=("revolute",), massless=False)
    other = equivalent(robot)
    kernel = pp.forward_dynamics.compile(other, inputs=("inertia:body2",))
    s, now = State(robot), other.parameter("inertia:body2")
    a = pp.forward_dynamics(robot, s.q, s.v, s.tau)
    close(kernel(s.q, s.v, s.tau, now), a, 1e-11)


def test_a_frame_that_has_a_body_s_name_stays_where_it_is() -> None:
    builder = random_builder(np.random.default_rng(9), 3, kinds=("revolute",), massless=False)
    robot = builder.frame("body1", "body1", position=(0.1, 0.2, 0.3), rpy=(1, 2, 3)).build()
    same_frames(robot, equivalent(robot))


def test_a_robot_without_bodies_is_left_alone() -> None:
    robot = pp.Builder("nothing").build()
    assert equivalent(robot) is robot


def test_a_chain_of_ten_thousand_links_is_rewritten() -> None:
    other = equivalent(pp.robots.chain(10_000))
    assert other.nb == 10_000
    exact(other)
