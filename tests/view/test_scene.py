"""Scenes: every robot becomes a few solids of sensible size."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phipsi as pp
from phipsi.model.robots import ROBOTS
from phipsi.view.geometry import corners, quaternions, rotation, turned_by
from phipsi.view.scene import MAX_FRAMES, scene_of
from tests.zoo import forests

pytestmark = pytest.mark.usefixtures("interpreted")


def scaled(robot: pp.Robot, k: float) -> pp.Robot:
    """The same robot of the same stuff, k times as large."""
    for body in robot.bodies:
        name = f"inertia:{body.name}"
        size = np.array([k**3, *[k**4] * 3, *[k**5] * 6])
        robot = robot.with_parameters({name: robot.parameter(name) * size})
    names = [f"placement:{h.name}" for h in robot.hinges] + [f"frame:{f}" for f in robot.frames]
    size = np.array([k, k, k, 1, 1, 1, 1])
    return robot.with_parameters({name: robot.parameter(name) * size for name in names})


@pytest.mark.parametrize("name", ROBOTS)
def test_packaged_robots_are_drawn(name: str) -> None:
    robot = ROBOTS[name]()
    drawn = scene_of(robot)
    assert {s["body"] for s in drawn["solids"]} >= set(range(robot.nb))
    assert json.loads(json.dumps(drawn, allow_nan=False)) == drawn
    biggest = max(max(s["size"]) for s in drawn["solids"])
    assert drawn["radius"] < biggest <= 1.01 * drawn["extent"]


@given(forests())
@settings(max_examples=25)
def test_every_solid_of_any_forest_is_finite_and_not_flat(robot: pp.Robot) -> None:
    drawn = scene_of(robot)
    for solid in drawn["solids"]:
        assert -1 <= solid["body"] < robot.nb
        assert np.isfinite(solid["pose"]).all() and min(solid["size"]) > 0
        assert np.linalg.norm(solid["pose"][3:]) == pytest.approx(1)
    assert "tool" in {t["name"] for t in drawn["triads"]} or "tool" in robot.frames


@pytest.mark.parametrize("k", [0.01, 10.0])
def test_small_and_large_robots_look_alike(k: float) -> None:
    robot = pp.robots.space_arm(wheels=True, panels=True, slosh=True)
    one, other = scene_of(robot), scene_of(scaled(robot, k))
    assert other["extent"] == pytest.approx(k * one["extent"])
    for a, b in zip(one["solids"], other["solids"], strict=True):
        assert (a["shape"], a["body"]) == (b["shape"], b["body"])
        assert np.allclose(np.multiply(k, a["size"]), b["size"])


def test_shapes_are_those_of_the_inertia() -> None:
    drawn = scene_of(pp.robots.space_arm(wheels=True, panels=True, slosh=True))

    def bulk(name: str) -> tuple[str, list[float]]:
        i = drawn["bodies"].index(name)
        (solid,) = [s for s in drawn["solids"] if s["body"] == i and s["role"] == "bulk"]
        return solid["shape"], [round(x, 6) for x in solid["size"]]

    assert bulk("base") == ("box", [1.2, 1.2, 1.2])
    assert bulk("wheel_x") == ("cylinder", [0.15, 0.04])
    assert bulk("fuel") == ("ellipsoid", [0.1, 0.1, 0.1])
    assert bulk("left_panel")[1][:2] == [3.0, 1.0]


def test_absurd_inertias_do_not_hide_the_robot() -> None:
    builder = pp.Builder("careless").body("arm", mass=0.01, inertia=[1.0, 1.0, 1.0])
    builder.hinge("joint", "revolute", "world", "arm", axis=(0.0, 0.0, 1.0))
    drawn = scene_of(builder.frame("tip", "arm", position=(0.3, 0.0, 0.0)).build())
    assert max(max(s["size"]) for s in drawn["solids"]) <= 3 * 0.3 * 1.01


def test_many_frames_make_few_rods() -> None:
    builder = pp.Builder("hedgehog").body("b", mass=1.0, inertia=[1e-4, 1e-4, 1e-4])
    builder.hinge("h", "revolute", "world", "b", axis=(0.0, 0.0, 1.0))
    for i in range(50):
        builder.frame(f"f{i}", "b", position=(np.cos(i), np.sin(i), 0.1 * i))
    drawn = scene_of(builder.build())
    assert sum(s["role"] == "link" for s in drawn["solids"]) <= MAX_FRAMES
    assert len(drawn["triads"]) <= MAX_FRAMES


def test_a_robot_without_length_is_drawn() -> None:
    builder = pp.Builder("point").body("b", mass=1.0)
    builder.hinge("h", "prismatic", "world", "b", axis=(1.0, 0.0, 0.0))
    assert scene_of(builder.build())["extent"] > 0


@given(st.integers(0, 10**6))
def test_quaternions_give_their_rotations_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q = rng.normal(size=4)
    R = rotation(q / np.linalg.norm(q))
    back = quaternions(R)
    assert np.allclose(rotation(back), R)
    angle = 2 * np.arctan2(np.linalg.norm(back[1:]), abs(back[0]))
    assert turned_by(R) == pytest.approx(angle)


def test_corners_move_with_the_bodies() -> None:
    robot = pp.robots.double_pendulum()
    drawn, X = scene_of(robot), np.asarray(pp.poses(robot, robot.neutral()))
    moved = X.copy()
    moved[:, :3, 3] += [0.0, 0.0, 5.0]
    on_bodies = [s["body"] >= 0 for s in drawn["solids"]]
    shift = (corners(drawn, moved) - corners(drawn, X))[on_bodies]
    assert np.allclose(shift, [0.0, 0.0, 5.0])
