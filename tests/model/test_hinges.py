"""Each hinge kind: H* β and Ḣ* w against differences of the pose along `advance`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
from numpy.testing import assert_allclose

import phipsi as pp
from phipsi.model import CONTACTS, KINDS, HingeKind
from phipsi.model.builder import PER_HINGE, HingeNumbers
from phipsi.model.constraints import ContactName
from phipsi.model.hinges import REVERSED, HingeName
from phipsi.model.validate import axes as checked_axes
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot
from tests.each import each

kinds = each("kind", [*KINDS.values(), *REVERSED.values()])
seeds = each("seed", range(4))


def random_hinge(kind: HingeKind, rng: np.random.Generator) -> Any:
    given = rng.standard_normal((kind.axes, 3))
    axes = checked_axes("test", kind.forward or kind, given[0] if kind.axes == 1 else given)
    return SimpleNamespace(axes=axes, pitch=rng.uniform(-0.5, 0.5))


def random_q(kind: HingeKind, rng: np.random.Generator) -> Any:
    q = rng.uniform(-2, 2, kind.nq)
    if kind.quaternion is not None:
        q[kind.quaternion :] /= np.linalg.norm(q[kind.quaternion :])
    return rot.scalars(q)


def pose_matrix(kind: HingeKind, h: Any, q: Any) -> np.ndarray:
    return np.asarray(kind.pose(h, q).matrix, float)


def body_velocity(kind: HingeKind, h: Any, q: Any, v: np.ndarray) -> np.ndarray:
    """[ω; v] of T⁻¹ dT/dt along `advance`, by a fourth-order difference."""

    def at(t: float) -> np.ndarray:
        return pose_matrix(kind, h, rot.scalars(kind.advance(h, q, rot.scalars(v * t))))

    step = 1e-3
    slope = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step)
    twist = np.linalg.inv(pose_matrix(kind, h, q)) @ slope
    return np.array([twist[2, 1], twist[0, 2], twist[1, 0], *twist[:3, 3]])


def relative_velocity(kind: HingeKind, h: Any, q: Any, v: np.ndarray) -> np.ndarray:
    return np.asarray((kind.map(h, q).T @ v).array, float)


@kinds
@seeds
def test_hinge_map_is_the_velocity_of_the_pose(kind: HingeKind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    h, q, v = random_hinge(kind, rng), random_q(kind, rng), rng.standard_normal(kind.nv)
    assert_allclose(relative_velocity(kind, h, q, v), body_velocity(kind, h, q, v), atol=1e-9)


@kinds
@seeds
def test_rate_is_the_derivative_of_the_hinge_map(kind: HingeKind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    h, q, (v, w) = random_hinge(kind, rng), random_q(kind, rng), rng.standard_normal((2, kind.nv))
    step = 1e-5
    ahead, behind = (
        relative_velocity(kind, h, rot.scalars(kind.advance(h, q, rot.scalars(v * t))), w)
        for t in (step, -step)
    )
    rate = np.asarray(kind.rate(h, q, rot.scalars(v), rot.scalars(w)).array, float)
    assert_allclose(rate, (ahead - behind) / (2 * step), atol=1e-8)


@kinds
@seeds
def test_difference_inverts_advance(kind: HingeKind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    h, q, dv = random_hinge(kind, rng), random_q(kind, rng), rng.uniform(-1.5, 1.5, kind.nv)
    ahead = rot.scalars(kind.advance(h, q, rot.scalars(dv)))
    back = np.asarray(kind.difference(h, q, ahead), float)
    assert_allclose(back, dv, atol=1e-13)


@kinds
@seeds
def test_advance_follows_the_one_parameter_group(kind: HingeKind, seed: int) -> None:
    """Two half steps are one whole step: the motion along a constant velocity is a flow."""
    rng = np.random.default_rng(seed)
    h, q, dv = random_hinge(kind, rng), random_q(kind, rng), rng.uniform(-1, 1, kind.nv)
    half = rot.scalars(dv / 2)
    twice = kind.advance(h, rot.scalars(kind.advance(h, q, half)), half)
    once = kind.advance(h, q, rot.scalars(dv))
    assert_allclose(np.asarray(twice, float), np.asarray(once, float), atol=1e-14)


@kinds
@seeds
def test_coordinates_invert_the_pose(kind: HingeKind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    h, q = random_hinge(kind, rng), random_q(kind, rng)
    found = np.asarray(kind.coordinates(h, kind.pose(h, q)), float)
    if kind.quaternion is not None:  # q and −q are one rotation
        found[kind.quaternion :] *= np.sign(found[kind.quaternion] * q[kind.quaternion])
    assert_allclose(found, np.asarray(q, float), atol=1e-14)


@kinds
@seeds
def test_coordinates_of_a_pose_that_drifted_are_near(kind: HingeKind, seed: int) -> None:
    """Moved a little by what the hinge forbids, they stay; by what it allows, they follow."""
    rng = np.random.default_rng(seed)
    h, q = random_hinge(kind, rng), random_q(kind, rng)
    pose = kind.pose(h, q)
    drift = 1e-6 * rng.standard_normal(6)
    off = Transform(rot.from_quaternion(rot.exp(rot.scalars(drift[:3]))), rot.scalars(drift[3:]))
    again = kind.pose(h, rot.scalars(kind.coordinates(h, pose @ off)))
    assert np.abs(np.asarray((again.inv @ pose).matrix, float) - np.eye(4)).max() < 1e-5
    near = kind.near(h, pose @ off)
    assert_allclose(np.asarray(near.matrix, float), np.asarray(again.matrix, float), atol=1e-14)


@kinds
@seeds
def test_forces_are_what_the_hinge_transmits(kind: HingeKind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    h, q = random_hinge(kind, rng), random_q(kind, rng)
    F = np.array([np.asarray(f.array, float) for f in kind.forces(h, q)]).reshape(-1, 6)
    H = np.asarray(kind.map(h, q).T.matrix, float).T
    assert len(F) == 6 - kind.nv
    assert_allclose(H @ F.T, 0, atol=1e-15)
    assert np.linalg.matrix_rank(np.vstack((F, H)), tol=1e-3) == 6


@pytest.mark.parametrize("axis", [*np.eye(3), *-np.eye(3)], ids=str)
def test_forces_about_a_coordinate_axis_are_coordinate_vectors(axis: np.ndarray) -> None:
    for name in ("revolute", "prismatic", "cylindrical"):
        h: Any = SimpleNamespace(axes=(rot.scalars(axis.tolist()),), pitch=0.0)
        for f in KINDS[name].forces(h, rot.scalars([0.3] * KINDS[name].nq)):
            assert sorted(map(abs, f.array)) == [0.0] * 5 + [1.0]


def test_a_screw_knows_its_whole_turns() -> None:
    kind = KINDS["helical"]
    h: Any = SimpleNamespace(axes=(rot.scalars([0.6, 0.0, 0.8]),), pitch=-0.02)
    for angle in (-20.0, -3.2, 0.1, 3.2, 50.0):
        assert_allclose(float(kind.coordinates(h, kind.pose(h, [angle]))[0]), angle, atol=1e-12)
    h.pitch = 0.0
    assert_allclose(float(kind.coordinates(h, kind.pose(h, [2.0]))[0]), 2.0, atol=1e-15)


@kinds
def test_neutral_is_the_identity_pose(kind: HingeKind) -> None:
    h = random_hinge(kind, np.random.default_rng(0))
    assert_allclose(pose_matrix(kind, h, rot.scalars(kind.neutral)), np.eye(4), atol=1e-16)


@kinds
def test_table_rows_are_consistent(kind: HingeKind) -> None:
    h = random_hinge(kind, np.random.default_rng(0))
    q = rot.scalars(kind.neutral)
    assert {**KINDS, **REVERSED}[kind.name] is kind
    assert len(kind.neutral) == kind.nq
    assert len(kind.columns(h, q)) == kind.nv
    assert kind.nq == kind.nv + (kind.quaternion is not None)
    assert len(kind.angles) == (kind.nq if kind.quaternion is None else 0)
    assert kind.name in repr(kind)


def test_a_non_unit_quaternion_is_the_rotation_of_its_direction() -> None:
    rng = np.random.default_rng(0)
    for name in ("spherical", "free"):
        kind = KINDS[name]
        h, q = random_hinge(kind, rng), random_q(kind, rng)
        longer = q.copy()
        longer[kind.quaternion :] *= 3.0
        assert_allclose(pose_matrix(kind, h, longer), pose_matrix(kind, h, q), atol=1e-15)
        step = rot.scalars(rng.standard_normal(kind.nv))
        assert_allclose(
            np.asarray(kind.advance(h, longer, step), float),
            np.asarray(kind.advance(h, q, step), float),
            atol=1e-15,
        )


def test_planar_difference_takes_the_short_way_round() -> None:
    kind = KINDS["planar"]
    h = random_hinge(kind, np.random.default_rng(0))
    q0, q1 = rot.scalars([0.0, 0.0, 0.1]), rot.scalars([1.0, 2.0, 0.1 + 2 * np.pi])
    dv = np.asarray(kind.difference(h, q0, q1), float)
    assert abs(dv[0]) < 1e-14
    reached = rot.scalars(kind.advance(h, q0, rot.scalars(dv)))
    assert_allclose(pose_matrix(kind, h, reached), pose_matrix(kind, h, q1), atol=1e-14)


@kinds
def test_coordinates_and_forces_of_traced_scalars(kind: HingeKind) -> None:
    """The same rows on traced axes, pitch and coordinates, in a batch."""
    rng = np.random.default_rng(5)
    h = random_hinge(kind, rng)
    q = np.array([random_q(kind, rng).astype(float) for _ in range(5)]).reshape(5, kind.nq)
    numbers = np.array([*np.concatenate((*h.axes, [])), h.pitch], float)

    @pp.program
    def traced(robot: pp.Robot, x: Any, numbers: Any) -> Any:
        axes = tuple(numbers[3 * i : 3 * i + 3] for i in range(len(h.axes)))
        own: Any = SimpleNamespace(axes=axes, pitch=numbers[-1])
        forces = [s for f in kind.forces(own, x) for s in f.array]
        return np.array([*kind.coordinates(own, kind.pose(own, x)), *forces, 0.0], object)

    robot = pp.robots.double_pendulum()
    found = traced.compile(robot, x=q[0], numbers=numbers, backend="numpy")(q, numbers)
    for row, one in zip(found, q, strict=True):
        scalars = rot.scalars(one)
        forces = [x for f in kind.forces(h, scalars) for x in f.array]
        expected = [*kind.coordinates(h, kind.pose(h, scalars)), *forces, 0.0]
        assert_allclose(row, np.asarray(expected, float), atol=1e-14)


@kinds
@seeds
def test_rates_are_those_of_coordinates(kind: HingeKind, seed: int) -> None:
    """A step along such a freedom moves its coordinate as far, and no other freedom moves that."""
    rng = np.random.default_rng(seed)
    h, q = random_hinge(kind, rng), random_q(kind, rng)
    assert len(kind.rates) == kind.nv
    for i, j in enumerate(kind.rates):
        steps = [
            np.asarray(kind.advance(h, q, rot.scalars(0.5 * unit)), float) - np.asarray(q, float)
            for unit in np.eye(kind.nv)
        ]
        if j >= 0:
            assert_allclose([step[j] for step in steps], 0.5 * np.eye(kind.nv)[i], atol=1e-14)


def test_types_list_all_names() -> None:
    assert list(get_args(HingeName)) == list(KINDS)
    assert list(get_args(ContactName)) == list(CONTACTS)
    assert set(HingeNumbers.__annotations__) == set(PER_HINGE)
