"""The frozen robot: configurations, look-ups, variants, identity."""

from __future__ import annotations

import copy
import pickle
import warnings
from dataclasses import FrozenInstanceError
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import phipsi as pp
from phipsi.model import KINDS, Builder, Mimic, ModelError, Robot, robots
from phipsi.model.hinges import HingeName
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot

MOVING: list[HingeName] = [name for name in KINDS if name != "weld"]
AXES = {0: None, 1: (1, 2, 3), 2: ((1, 0, 0), (0.3, 1, 0))}


@cache
def zoo() -> Robot:
    """A tree with a hinge of every kind, placements in general position, named by their kinds."""
    builder, rng = Builder("zoo"), np.random.default_rng(0)
    for i, kind in enumerate(MOVING):
        parent = "world" if i == 0 else MOVING[(i - 1) // 2]
        builder.body(kind, 1.0 + i, rng.standard_normal(3), (0.3, 0.4, 0.5))
        builder.hinge(
            kind, kind, parent, kind, position=rng.standard_normal(3), rpy=rng.standard_normal(3),
            axis=AXES[KINDS[kind].axes], pitch=0.2, armature=0.1 * i,
        )  # fmt: skip
        builder.frame(f"{kind}_tip", kind, position=rng.standard_normal(3))
    return builder.frame("corner", position=(1, 2, 3)).build()


def frame_pose(robot: Robot, q: Any, name: str) -> np.ndarray:
    """The 4 × 4 pose of a frame in the world, by walking from it to the root."""
    frame = robot.frame(name)
    pose, i = frame.placement, robot.body_index(frame.body)
    while i >= 0:
        h = robot.hinges[i]
        pose = h.placement @ h.kind.pose(h, rot.scalars(np.asarray(q, float)[h.q])) @ pose
        i = robot.parents[i]
    return np.asarray(pose.matrix, float)


def total_inertia(robot: Robot, q: Any) -> np.ndarray:
    """The ten inertia parameters of the whole robot about the world's origin."""
    total = np.zeros(10)
    for body in robot.bodies:
        T = frame_pose(robot, q, body.name)
        pose = Transform.of(T[:3, :3], T[:3, 3])
        total += np.asarray(pose.congruence(body.inertia).parameters, float)
    return total


# ---- configurations ----------------------------------------------------------------------------


def test_neutral_is_every_hinge_at_zero() -> None:
    robot = zoo()
    q = robot.neutral()
    assert q.shape == (robot.nq,)
    for h in robot.hinges:
        assert tuple(q[h.q]) == h.kind.neutral


def test_random_state_has_the_shapes_asked_for_and_repeats() -> None:
    robot = zoo()
    q, v = robot.random_state(3, batch=(4, 2))
    assert q.shape == (4, 2, robot.nq)
    assert v.shape == (4, 2, robot.nv)
    again, _ = robot.random_state(np.random.default_rng(3), batch=(4, 2))
    assert (q == again).all()
    assert robot.random_state()[0].shape == (robot.nq,)


def test_random_state_keeps_limits() -> None:
    builder = Builder().body("a", 1.0, inertia=(1, 1, 1)).body("b", 1.0, inertia=(1, 1, 1))
    builder.hinge("i", "revolute", "world", "a", axis=(0, 0, 1), lower=0.2, upper=0.3)
    builder.hinge("j", "cylindrical", "a", "b", axis=(0, 0, 1), lower=(-np.inf, 2), upper=(0, 4))
    q, _ = builder.build().random_state(0, batch=(1000,))
    low, high = q.min(axis=0), q.max(axis=0)
    assert (low >= [0.2, -np.pi, 2]).all()
    assert (high <= [0.3, 0, 4]).all()
    assert_allclose(low, [0.2, -np.pi, 2], atol=0.02)
    assert_allclose(high, [0.3, 0, 4], atol=0.02)


def test_random_quaternions_are_unit_and_uniform() -> None:
    robot = robots.chain(1, kind="spherical")
    q, _ = robot.random_state(0, batch=(20_000,))
    assert_allclose(np.linalg.norm(q, axis=-1), 1, atol=1e-14)
    assert_allclose(q.T @ q / len(q), np.eye(4) / 4, atol=0.01)


def states(robot: Robot, size: float) -> st.SearchStrategy[tuple[np.ndarray, np.ndarray]]:
    """A batch of configurations and of displacements, up to `size` in each number."""

    def make(seed: int, batch: tuple[int, ...], scale: float) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        q, _ = robot.random_state(rng, batch)
        return q, scale * rng.uniform(-1, 1, (*batch, robot.nv))

    batches = st.sampled_from([(), (1,), (3,), (6,), (7,), (2, 3)])
    scales = st.sampled_from([0.0, 1e-12, 1e-6, 1e-3, 0.02, size])
    return st.builds(make, st.integers(0, 2**32 - 1), batches, scales)


@given(states(zoo(), size=1.7))
def test_difference_inverts_integrate(state: tuple[np.ndarray, np.ndarray]) -> None:
    robot, (q, dv) = zoo(), state
    ahead = robot.integrate(q, dv)
    assert ahead.shape == q.shape
    assert_allclose(robot.difference(q, ahead), dv, rtol=1e-12, atol=1e-13)


@given(states(zoo(), size=1.7))
def test_integrate_reaches_what_difference_says(state: tuple[np.ndarray, np.ndarray]) -> None:
    robot, (q, _) = zoo(), state
    target, _ = robot.random_state(1, q.shape[:-1])
    reached = robot.integrate(q, robot.difference(q, target))
    for i in np.ndindex(q.shape[:-1]):
        for name in robot.frames:
            assert_allclose(
                frame_pose(robot, reached[i], name), frame_pose(robot, target[i], name), atol=1e-11
            )


@given(states(zoo(), size=30.0))
def test_a_batch_is_its_rows(state: tuple[np.ndarray, np.ndarray]) -> None:
    robot, (q, dv) = zoo(), state
    ahead = robot.integrate(q, dv)
    for i in np.ndindex(q.shape[:-1]):
        assert_allclose(ahead[i], robot.integrate(q[i], dv[i]), rtol=1e-14, atol=1e-14)


def test_batch_shapes_broadcast() -> None:
    robot = zoo()
    q, _ = robot.random_state(0)
    dv = np.random.default_rng(0).standard_normal((5, 1, robot.nv))
    assert robot.integrate(q, dv).shape == (5, 1, robot.nq)
    assert robot.difference(np.stack([q] * 3), robot.integrate(q, dv)).shape == (5, 3, robot.nv)


def test_quaternions_stay_unit_over_many_steps() -> None:
    robot = robots.chain(2, kind="spherical", base="free")
    q, v = robot.random_state(0)
    for _ in range(2000):
        q = robot.integrate(q, 0.1 * v)
    for h in robot.hinges:
        quaternion = q[h.q][h.kind.quaternion :]
        assert np.linalg.norm(quaternion) == pytest.approx(1, abs=1e-15)


def test_a_free_body_follows_its_screw() -> None:
    """A quarter turn about z while going forward: a quarter of a circle."""
    robot = robots.chain(1, kind="free")
    turn, radius = np.pi / 2, 2.0
    q = robot.integrate(robot.neutral(), [0, 0, turn, radius * turn, 0, 0])
    assert_allclose(q[:3], [radius, radius, 0], atol=1e-14)
    assert_allclose(q[3:], [np.sqrt(0.5), 0, 0, np.sqrt(0.5)], atol=1e-15)


def test_a_quaternion_that_is_not_unit_is_normalised() -> None:
    robot = robots.chain(1, kind="free")
    q, dv = robot.random_state(0)
    longer = np.concatenate((q[:3], 5 * q[3:]))
    assert_allclose(robot.integrate(longer, dv), robot.integrate(q, dv), atol=1e-14)
    assert_allclose(robot.difference(longer, q), 0, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_configurations_keep_their_precision(dtype: Any) -> None:
    robot = zoo()
    q, dv = (x.astype(dtype) for x in robot.random_state(0))
    assert robot.integrate(q, dv).dtype == dtype
    assert robot.difference(q, q).dtype == dtype


def test_whole_numbers_and_lists_are_numbers() -> None:
    robot = robots.double_pendulum()
    assert robot.integrate([0, 1], [1, 2]).tolist() == [1.0, 3.0]


def test_a_wrong_length_says_what_is_needed() -> None:
    robot = robots.chain(1, kind="free")
    with pytest.raises(ValueError, match=r"q has shape \(6,\), but robot 'chain' needs \(..., 7\)"):
        robot.integrate(np.zeros(6), np.zeros(6))
    with pytest.raises(ValueError, match=r"dv has shape \(7,\).*\(..., 6\)"):
        robot.integrate(robot.neutral(), np.zeros(7))
    with pytest.raises(ValueError, match=r"q1 has shape \(\)"):
        robot.difference(robot.neutral(), 0.0)


# ---- look-ups ----------------------------------------------------------------------------------


def test_parts_are_found_by_name() -> None:
    robot = zoo()
    assert robot.bodies[robot.body_index("spherical")].name == "spherical"
    assert robot.body_index("world") == -1
    assert robot.hinge("free").kind is KINDS["free"]
    assert robot.frame("free_tip").body == "free"
    assert robot.frame("free").body == "free"
    assert robot.frame("world").body == "world"
    assert robot.mass == sum(1.0 + i for i in range(len(MOVING)))


@pytest.mark.parametrize("what", ["body_index", "hinge", "frame"])
def test_an_unknown_name_lists_the_known_ones(what: str) -> None:
    with pytest.raises(ModelError, match=r"'zoo' has no .* 'ghost'; .*'spherical.*'"):
        getattr(zoo(), what)("ghost")


def test_a_long_list_of_known_names_is_cut() -> None:
    with pytest.raises(ModelError, match="and 88 more"):
        robots.chain(100).hinge("ghost")


# ---- variants ----------------------------------------------------------------------------------


def test_locked_joints_are_welded_where_they_were() -> None:
    robot = zoo()
    q, _ = robot.random_state(0)
    held = ["universal", "spherical", "revolute"]
    reduced = robot.locked(held, q)
    assert [h.name for h in reduced.hinges] == [h.name for h in robot.hinges if h.name not in held]
    rest = np.concatenate([q[h.q] for h in robot.hinges if h.name not in held])
    assert reduced.nq == len(rest)
    for name in [*robot.frames, *(b.name for b in robot.bodies)]:
        assert_allclose(
            frame_pose(reduced, rest, name), frame_pose(robot, q, name), atol=1e-12, err_msg=name
        )
    moving = robot.locked(["spherical"], q)  # none of its mass is welded to the world
    rest = np.concatenate([q[h.q] for h in robot.hinges if h.name != "spherical"])
    assert moving.mass == pytest.approx(robot.mass)
    assert_allclose(total_inertia(moving, rest), total_inertia(robot, q), rtol=1e-12, atol=1e-11)


def test_locked_takes_one_name_and_the_neutral_configuration() -> None:
    robot = robots.seven_axis_arm()
    reduced = robot.locked("shoulder_yaw")
    assert reduced.nv == 6
    assert_allclose(
        frame_pose(reduced, reduced.neutral(), "tool"), frame_pose(robot, robot.neutral(), "tool")
    )


def test_locked_refuses_what_does_not_fit() -> None:
    robot = robots.double_pendulum()
    with pytest.raises(ModelError, match="no hinge 'ghost'"):
        robot.locked(["ghost"])
    with pytest.raises(ValueError, match=r"q has shape \(3,\).*\(2,\)"):
        robot.locked(["joint1"], np.zeros(3))


def test_attach_mounts_a_robot_on_a_frame() -> None:
    robot, tool = zoo(), robots.double_pendulum()
    placement = Transform.of(rot.from_rpy(0.1, 0.2, 0.3), (0, 0, 0.5))
    whole = robot.attach(tool, at="spherical_tip", prefix="tool/", placement=placement)
    assert whole.nb == robot.nb + 2
    assert whole.mass == robot.mass + tool.mass
    assert whole.hinge("tool/joint1").parent == "spherical"
    q, _ = whole.random_state(0)
    mine = np.concatenate([q[whole.hinge(h.name).q] for h in robot.hinges])
    its = np.concatenate([q[whole.hinge(f"tool/{h.name}").q] for h in tool.hinges])
    expected = frame_pose(robot, mine, "spherical_tip") @ np.asarray(placement.matrix, float)
    expected = expected @ frame_pose(tool, its, "tool")
    assert_allclose(frame_pose(whole, q, "tool/tool"), expected, atol=1e-12)
    assert_allclose(frame_pose(whole, q, "free_tip"), frame_pose(robot, mine, "free_tip"))


def test_attach_welds_what_floats() -> None:
    arm = robots.seven_axis_arm()
    load = Builder().body("box", 4.0, inertia=(0.1, 0.1, 0.1)).hinge("box", "free", "world", "box")
    loaded = arm.attach(load.frame("lid", "box", position=(0, 0, 0.1)).build(), at="tool")
    assert (loaded.nv, loaded.nb) == (7, 7)
    assert loaded.mass == arm.mass + 4.0
    assert loaded.frame("box").body == loaded.frame("lid").body == "wrist_roll_link"
    q, _ = arm.random_state(0)
    assert_allclose(frame_pose(loaded, q, "box"), frame_pose(arm, q, "tool"), atol=1e-14)


def test_attach_keeps_the_first_robots_name_and_gravity_and_refuses_clashes() -> None:
    craft, arm = robots.space_arm(), robots.double_pendulum()
    whole = craft.attach(arm, at="world", prefix="p/")
    assert whole.name == "space_arm"
    assert whole.gravity.tolist() == [0, 0, 0]
    assert whole.hinge("p/joint1").parent == "world"
    with pytest.raises(ModelError, match=r"part named 'tool'; pass another prefix="):
        craft.attach(arm, at="tool")
    with pytest.raises(ModelError, match="no frame 'ghost'"):
        craft.attach(arm, at="ghost", prefix="p/")


def test_mimic_relations_follow_the_prefix() -> None:
    builder = Builder("hand")
    for name, mimic in (("thumb", None), ("finger", Mimic("thumb", 2.0, 0.1))):
        builder.body(name, 0.1, inertia=(1e-4, 1e-4, 1e-4))
        builder.hinge(name, "revolute", "world", name, axis=(1, 0, 0), mimic=mimic)
    whole = robots.double_pendulum().attach(builder.build(), at="tool", prefix="hand/")
    assert whole.hinge("hand/finger").mimic == Mimic("hand/thumb", 2.0, 0.1)


def test_with_gravity_changes_gravity_alone() -> None:
    robot = robots.puma560()
    moon = robot.with_gravity((0, 0, -1.62))
    assert moon.gravity.tolist() == [0, 0, -1.62]
    assert robot.gravity.tolist() == [0, 0, -9.81]
    assert moon != robot
    assert moon.with_gravity(robot.gravity) == robot


def test_edit_rebuilds_the_same_robot() -> None:
    robot = zoo()
    assert robot.edit().build() == robot
    assert robot.edit(name="park").build().name == "park"


PARAMETERS = {
    "gravity": 3, "inertia:free": 10, "armature:free": 6, "damping:universal": 2,
    "stiffness:universal": 2, "friction:universal": 2, "placement:planar": 7, "frame:free_tip": 7,
    "frame:corner": 7,
}  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_read_and_write(name: str) -> None:
    robot = zoo()
    value = robot.parameter(name)
    assert value.shape == (PARAMETERS[name],)
    assert_allclose(robot.with_parameters({name: value}).parameter(name), value, atol=1e-15)
    new = value + 0.125
    if name.startswith(("placement", "frame")):
        new[3:] /= np.linalg.norm(new[3:])
    changed = robot.with_parameters({name: new})
    assert_allclose(changed.parameter(name), new, atol=1e-15)
    assert changed != robot
    for other in PARAMETERS:
        if other != name:
            assert (changed.parameter(other) == robot.parameter(other)).all()


def test_parameters_mean_what_conventions_say() -> None:
    robot = zoo()
    mass, *first = robot.parameter("inertia:free")[:4]
    assert mass == robot.bodies[robot.body_index("free")].mass
    assert_allclose(first, np.asarray(robot.bodies[robot.body_index("free")].inertia.moment, float))
    pose = robot.parameter("placement:planar")
    placement = robot.hinge("planar").placement
    assert_allclose(pose[:3], np.asarray(placement.position, float))
    matrix = np.asarray(rot.from_quaternion(pose[3:]), float)
    assert_allclose(matrix, np.asarray(placement.rotation, float), atol=1e-14)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mass:free": 1.0}, r"no parameter 'mass:free': use 'gravity', 'inertia:BODY'"),
        ({"gravity:moon": 1.0}, "no parameter 'gravity:moon'"),
        ({"damping": 1.0}, "no parameter 'damping': use .* 'damping:HINGE'"),
        ({"inertia:": 1.0}, "no parameter 'inertia:'"),
        ({"inertia:ghost": 1.0}, "no body 'ghost'"),
        ({"armature:ghost": 1.0}, "no hinge 'ghost'"),
        ({"frame:ghost": 1.0}, "no frame 'ghost'"),
        ({"gravity": (0.0, 1.0)}, r"'gravity' has shape \(2,\), needs \(3,\)"),
    ],
)
def test_wrong_parameters_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        zoo().with_parameters(values)


# ---- identity ----------------------------------------------------------------------------------


def test_a_robot_cannot_be_changed() -> None:
    robot = robots.puma560()
    h, body, frame = robot.hinges[1], robot.bodies[1], robot.frames["tool"]
    for part, field in ((robot, "gravity"), (h, "effort"), (body, "inertia"), (frame, "body")):
        with pytest.raises(FrozenInstanceError):
            setattr(part, field, None)
    arrays = [robot.gravity, h.effort, h.lower, h.axes[0], h.placement.rotation,
              h.placement.position, frame.placement.position, body.inertia.J,
              body.inertia.moment]  # fmt: skip
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_equal_content_is_an_equal_robot() -> None:
    one, two = robots.puma560(), robots.puma560()
    assert one == two
    assert one.key == two.key
    assert len({one, two}) == 1
    assert one != "puma560"


def test_any_number_or_name_makes_another_robot() -> None:
    robot = zoo()
    variants = [
        robot,
        robot.edit(name="park").build(),
        robot.with_gravity((0, 0, -9.8)),
        robot.with_parameters({"inertia:free": robot.parameter("inertia:free") * (1 + 1e-15)}),
        robot.with_parameters({"damping:free": np.ones(6)}),
        robot.edit().replace_hinge("revolute", upper=np.array([1.0])).build(),
        robot.edit().frame("another", "free").build(),
        robots.double_pendulum(),
    ]
    assert len({variant.key for variant in variants}) == len(variants)
    assert len(set(variants)) == len(variants)


def test_robots_can_be_sent_and_copied() -> None:
    robot = zoo()
    sent = pickle.loads(pickle.dumps(robot))
    assert sent == robot
    assert sent.hinge("free").kind is KINDS["free"]
    assert copy.deepcopy(robot) == robot


def test_text_forms() -> None:
    robot = robots.double_pendulum()
    assert repr(robot) == "<Robot 'double_pendulum': 2 bodies, nq=2, nv=2>"
    assert str(robot).startswith("double_pendulum: 2 bodies")
    assert robot._repr_html_().startswith("<details")
    assert repr(robot.bodies[0]) == "Body('link1', mass=1.0 kg)"
    assert repr(robot.hinges[1]) == "Hinge('joint2', revolute, 'link1' → 'link2')"
    assert repr(robot.frames["tool"]) == "Frame('tool' on 'link2')"


def test_a_frame_named_as_its_body_survives_the_weld() -> None:
    robot = (
        pp.Builder("offset")
        .body("arm", 1.0, (0, 0, 1), (1, 1, 1))
        .hinge("joint", "revolute", "world", "arm", axis=(0, 1, 0), position=(1, 0, 0))
        .frame("arm", "arm", position=(0, 0, 2))
        .body("hand", 1.0, (0, 0, 1), (1, 1, 1))
        .hinge("wrist", "revolute", "arm", "hand", axis=(0, 1, 0))
        .build()
    )
    held = robot.locked(["joint"], [0.5, 0.0])
    before = pp.frame_pose(robot, [0.5, 0.0], "arm")
    np.testing.assert_allclose(pp.frame_pose(held, [0.0], "arm"), before, atol=1e-15)


def test_a_doubt_is_said_once_and_not_again_by_variants() -> None:
    builder = pp.Builder("doubtful").body("disc", 1.0, inertia=(1.0, 1.0, 3.0))
    builder.body("link", 1.0, inertia=(1.0, 1.0, 1.0))
    builder.hinge("a", "revolute", "world", "disc", axis=(0, 0, 1))
    builder.hinge("b", "revolute", "disc", "link", axis=(0, 1, 0))
    with pytest.warns(pp.ModelWarning, match="triangle inequality"):
        robot = builder.build()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot.with_gravity((0, 0, 0))
        robot.locked(["b"])
        pp.combine({"one": robot, "two": robot})
    with pytest.raises(pp.ModelError, match="triangle inequality"):
        robot.edit().build(strict=True)
