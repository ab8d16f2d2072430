"""The packaged robots: plausible, documented, and the PUMA 560 as published."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from phipsi.model import KINDS, ModelError, Robot, robots
from phipsi.model.robots import ROBOTS, shapes
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot

every_robot = pytest.mark.parametrize("name", ROBOTS)

FUNCTIONS = [getattr(robots, name) for name in robots.__all__ if name != "ROBOTS"]

VARIANTS: list[Callable[[], Robot]] = [
    *ROBOTS.values(),
    lambda: robots.space_arm(wheels=True, panels=True, slosh=True),
    lambda: robots.dual_space_arm(wheels=True, panels=True, slosh=True),
    lambda: robots.snake(5, passive=(), base="planar"),
    lambda: robots.flexible_link_arm(segments=1),
    *(
        lambda kind=kind, base=base: robots.chain(3, kind, base)
        for kind in KINDS
        if kind != "weld"
        for base in ("fixed", "free")
    ),
]


def test_only_the_robots_are_seen() -> None:
    assert sorted(dir(robots)) == sorted(f.__name__ for f in FUNCTIONS)


def body_poses(robot: Robot, q: np.ndarray) -> list[Transform]:
    """The pose of every body in the world."""
    poses: list[Transform] = []
    for h, parent in zip(robot.hinges, robot.parents, strict=True):
        pose = h.placement @ h.kind.pose(h, rot.scalars(q[h.q]))
        poses.append(poses[parent] @ pose if parent >= 0 else pose)
    return poses


def center_of_mass(robot: Robot, q: np.ndarray) -> np.ndarray:
    moved = [
        T.congruence(b.inertia) for T, b in zip(body_poses(robot, q), robot.bodies, strict=True)
    ]
    return np.asarray(sum(m.moment for m in moved) / sum(m.mass for m in moved), float)


def position(robot: Robot, q: np.ndarray, name: str) -> np.ndarray:
    frame = robot.frame(name)
    return np.asarray(
        body_poses(robot, q)[robot.body_index(frame.body)].point(frame.placement.position), float
    )


# ---- all of them -------------------------------------------------------------------------------


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_documented_in_a_line_that_starts_with_what_it_is(function: Any) -> None:
    doc = inspect.getdoc(function)
    assert doc
    assert doc.splitlines()[0].endswith(".")
    for option in inspect.signature(function).parameters:
        assert f"\n{option}\n    " in doc or f"\n{option} : optional\n    " in doc


def test_the_registry_holds_every_function_under_its_name() -> None:
    assert set(ROBOTS) == {f.__name__ for f in FUNCTIONS}
    for name, make in ROBOTS.items():
        assert make().name == name


@pytest.mark.parametrize("make", VARIANTS)
def test_physically_plausible_without_a_warning(make: Callable[[], Robot]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = make()
    robot.edit().build(strict=True)
    for body in robot.bodies:
        assert body.mass > 0 or (robot.name, body.name) == ("puma560", "link1")
        assert np.linalg.eigvalsh(np.asarray(body.inertia.J, float))[0] > 0
        if body.mass > 0:
            assert np.linalg.norm(np.asarray(body.inertia.moment, float)) / body.mass < 2.0
    for h in robot.hinges:
        assert (np.asarray(h.effort) >= 0).all()
        assert (np.asarray(h.lower) < np.asarray(h.upper)).all()
        at_neutral = np.asarray(h.kind.neutral)
        assert (h.lower <= at_neutral).all()
        assert (at_neutral <= h.upper).all()


@every_robot
def test_built_twice_is_the_same_robot(name: str) -> None:
    assert ROBOTS[name]() == ROBOTS[name]()


@every_robot
def test_has_the_frames_a_user_looks_for(name: str) -> None:
    expected = {
        "dual_space_arm": {"left/tool", "right/tool", "mount"},
        "quadruped": {"front_left/foot", "front_right/foot", "hind_left/foot", "hind_right/foot"},
        "humanoid": {"left/hand", "right/hand", "left/foot", "right/foot", "head"},
        "snake": {"head", "tail"},
        "four_bar": {"coupler_tip", "rocker_tip"},
    }
    assert expected.get(name, {"tool"}) <= set(ROBOTS[name]().frames)


@pytest.mark.parametrize("name", ["puma560", "seven_axis_arm", "flexible_link_arm"])
@pytest.mark.parametrize("seed", range(10))
def test_motors_can_hold_the_arm_up(name: str, seed: int) -> None:
    robot = ROBOTS[name]()
    q, _ = robot.random_state(seed)
    for h, torque in zip(robot.hinges, holding_torques(robot, q), strict=True):
        assert abs(torque) < h.effort[0] or h.effort[0] == 0


def holding_torques(robot: Robot, q: np.ndarray) -> list[float]:
    """About the first axis of each hinge of a serial robot, what carries all that is outboard."""
    torques = []
    poses = body_poses(robot, q)
    moved = [T.congruence(b.inertia) for T, b in zip(poses, robot.bodies, strict=True)]
    for i, (pose, h) in enumerate(zip(poses, robot.hinges, strict=True)):
        mass = sum(m.mass for m in moved[i:])
        moment = sum(m.moment for m in moved[i:]) - mass * pose.position
        torque = np.cross(np.asarray(moment, float), [0.0, 0.0, 9.81])
        torques.append(float(torque @ np.asarray(pose.rotation @ h.axes[0], float)))
    return torques


# ---- options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "pieces"),
    [
        (lambda: robots.planar_chain(0), ["planar_chain", "n ≥ 1", "0"]),
        (lambda: robots.planar_chain(2.5), ["planar_chain", "2.5"]),  # type: ignore[arg-type]
        (lambda: robots.chain(True), ["chain", "True"]),
        (lambda: robots.chain(3, "weld"), ["chain", "'weld'", "revolute", "free"]),
        (lambda: robots.chain(3, "ball"), ["chain", "'ball'", "spherical"]),  # type: ignore[arg-type]
        (lambda: robots.chain(3, base="loose"), ["chain", "base 'loose'", "fixed, free"]),  # type: ignore[arg-type]
        (lambda: robots.snake(1), ["snake", "n ≥ 2"]),
        (lambda: robots.snake(4, passive=(4,)), ["snake", "joints 1 to 3", "[4]"]),
        (lambda: robots.snake(4, base="fixed"), ["snake", "base 'fixed'", "planar"]),  # type: ignore[arg-type]
        (lambda: robots.flexible_link_arm(0), ["flexible_link_arm", "segments ≥ 1"]),
    ],
)
def test_bad_options_are_refused(make: Callable[[], Robot], pieces: list[str]) -> None:
    with pytest.raises(ModelError) as caught:
        make()
    for piece in pieces:
        assert piece in str(caught.value)


def test_chains_have_the_size_and_kind_asked_for() -> None:
    assert (robots.planar_chain(7).nb, robots.planar_chain(7).nv) == (7, 7)
    for kind, row in KINDS.items():
        if kind != "weld":
            assert robots.chain(4, kind).nv == 4 * row.nv
            assert robots.chain(4, kind, base="free").nv == 6 + 4 * row.nv
    axes = [np.asarray(h.axes[0], float).tolist() for h in robots.chain(4).hinges]
    assert axes == [[1, 0, 0], [0, 1, 0]] * 2


def test_chains_hang_straight_down() -> None:
    robot = robots.chain(5)
    assert_allclose(position(robot, robot.neutral(), "tool"), [0, 0, -1.5])


@pytest.mark.parametrize("make", [robots.space_arm, robots.dual_space_arm])
def test_spacecraft_options(make: Callable[..., Robot]) -> None:
    bare, full = make(), make(wheels=True, panels=True, slosh=True)
    assert bare.gravity.tolist() == full.gravity.tolist() == [0, 0, 0]
    assert bare.hinges[0].kind.name == "free"
    added = {h.name for h in full.hinges} - {h.name for h in bare.hinges}
    assert added == {"wheel_x", "wheel_y", "wheel_z", "left_panel", "right_panel", "slosh"}
    assert full.mass == pytest.approx(bare.mass + 3 * 5 + 2 * 12 + 40)
    for i, letter in enumerate("xyz"):
        wheel = full.hinge(f"wheel_{letter}")
        assert wheel.kind.name == "continuous"
        assert np.asarray(wheel.axes[0], float).tolist() == np.eye(3)[i].tolist()
    for name in ("left_panel", "right_panel", "slosh"):
        assert_passive_spring(full, name)


def assert_passive_spring(robot: Robot, name: str) -> None:
    h = robot.hinge(name)
    assert (h.effort == 0).all()
    assert (h.stiffness > 0).all()
    assert (h.damping > 0).all()


def test_two_arms_are_mirrored() -> None:
    robot = robots.dual_space_arm()
    left, right = (position(robot, robot.neutral(), f"{side}/tool") for side in ("left", "right"))
    assert_allclose(left, right * [1, -1, 1])
    assert left[1] == pytest.approx(0.4)


def test_passive_snake_joints_are_springs_and_the_others_motors() -> None:
    robot = robots.snake(8)
    passive = {h.name for h in robot.hinges[1:] if (h.effort == 0).all()}
    assert passive == {"joint3", "joint6"}
    for name in passive:
        assert_passive_spring(robot, name)
    assert all((h.stiffness == 0).all() for h in robot.hinges[1:] if h.name not in passive)
    chosen = robots.snake(4, passive=[1, 2])
    assert [bool((h.effort == 0).all()) for h in chosen.hinges[1:]] == [True, True, False]
    assert robots.snake(base="planar").hinges[0].kind.name == "planar"


@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_legged_robots_stand_over_their_feet(name: str) -> None:
    robot = ROBOTS[name]()
    q = robot.neutral()
    feet = np.array([position(robot, q, f) for f in robot.frames if f.endswith("foot")])
    assert_allclose(center_of_mass(robot, q)[1], 0, atol=1e-12)
    assert_allclose(feet[:, 2], feet[0, 2])
    low, high = feet[:, :2].min(axis=0), feet[:, :2].max(axis=0)
    assert (low <= center_of_mass(robot, q)[:2]).all()
    assert (center_of_mass(robot, q)[:2] <= high).all()


def test_humanoid_is_as_large_as_it_says() -> None:
    robot = robots.humanoid()
    q = robot.neutral()
    assert robot.nb == 29
    assert robot.mass == pytest.approx(60)
    height = position(robot, q, "head")[2] + 0.09 - position(robot, q, "left/foot")[2]
    assert height == pytest.approx(1.8, abs=0.05)


def test_flexible_joint_arm_pairs_a_motor_with_a_spring() -> None:
    robot = robots.flexible_joint_arm()
    assert [h.name for h in robot.hinges] == [
        "motor1", "spring1", "motor2", "spring2", "motor3", "spring3"]  # fmt: skip
    for i in (1, 2, 3):
        motor, spring = robot.hinge(f"motor{i}"), robot.hinge(f"spring{i}")
        assert spring.parent == motor.child
        assert (np.asarray(spring.axes[0]) == np.asarray(motor.axes[0])).all()
        assert motor.effort[0] > 0
        assert motor.armature[0] == pytest.approx(1.0)
        assert_passive_spring(robot, spring.name)


@pytest.mark.parametrize("segments", [1, 2, 5, 20])
def test_flexible_link_bends_as_the_beam(segments: int) -> None:
    """The first rod's tip under a unit side force, hinge by hinge, against L³ / 3EI."""
    robot = robots.flexible_link_arm(segments)
    poses = body_poses(robot, robot.neutral())
    tip = float(poses[robot.body_index("link2_0")].position[2])
    assert tip == pytest.approx(1.0)
    deflection = 0.0
    for i, h in enumerate(robot.hinges):
        if h.name.startswith("bend1"):
            assert_passive_spring(robot, h.name)
            deflection += (tip - float(poses[i].position[2])) ** 2 / h.stiffness[0]
    beam = 1 / (3 * 70e9 * np.pi * 0.01**4 / 4)
    assert deflection / beam == pytest.approx(1 - 1 / (4 * segments**2))
    assert robot.mass == pytest.approx(2 * 2700 * np.pi * 0.01**2)


def test_four_bar_is_a_crank_rocker_closed_when_neutral() -> None:
    robot = robots.four_bar()
    one, other = (position(robot, robot.neutral(), f"{b}_tip") for b in ("coupler", "rocker"))
    assert_allclose(one, other, atol=1e-15)
    assert [h.effort[0] > 0 for h in robot.hinges] == [True, False, False]
    ground = np.asarray(robot.hinge("rocker").placement.position, float)
    rods = [np.asarray(robot.frame(f"{b.name}_tip").placement.position, float)
            for b in robot.bodies]  # fmt: skip
    lengths = [float(np.linalg.norm(rod)) for rod in (ground, *rods)]
    assert min(lengths) == lengths[1]  # Grashof: the crank is the shortest, and turns all the way
    assert 2 * (min(lengths) + max(lengths)) < sum(lengths)


# ---- shapes ------------------------------------------------------------------------------------


def cloud_inertia(points: np.ndarray, mass: float) -> tuple[np.ndarray, np.ndarray]:
    com = points.mean(axis=0)
    r = points - com
    second = mass * r.T @ r / len(r)
    return com, np.trace(second) * np.eye(3) - second


def test_shapes_have_the_inertia_of_their_points() -> None:
    rng = np.random.default_rng(0)
    n = 400_000
    cube = rng.uniform(-0.5, 0.5, (n, 3))
    disc = rng.uniform(-1, 1, (4 * n, 3))
    disc = disc[np.linalg.norm(disc[:, :2], axis=1) < 1][:n]
    ball = rng.uniform(-1, 1, (4 * n, 3))
    ball = ball[np.linalg.norm(ball, axis=1) < 1]
    start, end = np.array([0.1, 0.2, 0.3]), np.array([1.0, -0.5, 0.8])
    axis = (end - start) / np.linalg.norm(end - start)
    side = np.cross(axis, [1, 0, 0]) / np.linalg.norm(np.cross(axis, [1, 0, 0]))
    basis = np.array([0.2 * side, 0.2 * np.cross(axis, side), (end - start) / 2])
    cases = [
        (shapes.box(3.0, (1, 2, 0.5), (0.1, 0, 0)), cube * [1, 2, 0.5] + [0.1, 0, 0]),
        (shapes.sphere(3.0, 0.5, (0, 1, 0)), 0.5 * ball + [0, 1, 0]),
        (shapes.cylinder(3.0, 0.2, end, start), (start + end) / 2 + disc @ basis),
    ]
    for solid, points in cases:
        com, inertia = cloud_inertia(points, 3.0)
        tensor = np.asarray(solid["inertia"])
        assert solid["mass"] == 3.0
        assert_allclose(solid["com"], com, atol=5e-3)
        assert_allclose(np.diag(tensor) if tensor.ndim == 1 else tensor, inertia, atol=1e-2)


# ---- PUMA 560 ----------------------------------------------------------------------------------

# Standard Denavit-Hartenberg d, a, alpha; mass, centre of mass and central inertia in the DH frame;
# motor inertia and gear ratio: the `p560` model of Corke's Robotics Toolbox, number by number.
PUMA = [
    (0.672, 0, np.pi / 2, 0, (0, 0, 0), (0, 0.35, 0), 200e-6, -62.6111),
    (0, 0.4318, 0, 17.4, (-0.3638, 0.006, 0.2275), (0.13, 0.524, 0.539), 200e-6, 107.815),
    (0.15005, 0.0203, -np.pi / 2, 4.8, (-0.0203, -0.0141, 0.070), (0.066, 0.086, 0.0125),
     200e-6, -53.7063),
    (0.4318, 0, np.pi / 2, 0.82, (0, 0.019, 0), (1.8e-3, 1.3e-3, 1.8e-3), 33e-6, 76.0364),
    (0, 0, -np.pi / 2, 0.34, (0, 0, 0), (0.3e-3, 0.4e-3, 0.3e-3), 33e-6, 71.923),
    (0, 0, 0, 0.09, (0, 0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3), 33e-6, 76.686),
]  # fmt: skip


def dh_frames(q: np.ndarray) -> list[np.ndarray]:
    """The world and the six Denavit-Hartenberg frames."""
    frames = [np.eye(4)]
    for theta, (d, a, alpha, *_) in zip(q, PUMA, strict=True):
        c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
        step = [
            [c, -s * ca, s * sa, a * c],
            [s, c * ca, -c * sa, a * s],
            [0, sa, ca, d],
            [0, 0, 0, 1],
        ]
        frames.append(frames[-1] @ np.array(step))
    return frames


def published_mass_and_gravity(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mass matrix and the torque that holds the arm, link by link from the published table."""
    frames = dh_frames(q)
    mass, gravity = np.zeros((6, 6)), np.zeros(6)
    for i, (_, _, _, m, com, inertia, motor, gear) in enumerate(PUMA):
        T = frames[i + 1]
        center = T[:3, :3] @ com + T[:3, 3]
        Jv, Jw = np.zeros((3, 6)), np.zeros((3, 6))
        for j in range(i + 1):
            axis, origin = frames[j][:3, 2], frames[j][:3, 3]
            Jw[:, j], Jv[:, j] = axis, np.cross(axis, center - origin)
        mass += m * Jv.T @ Jv + Jw.T @ T[:3, :3] @ np.diag(inertia) @ T[:3, :3].T @ Jw
        mass[i, i] += motor * gear**2
        gravity += Jv.T @ [0, 0, m * 9.81]
    return mass, gravity


def robot_mass_and_gravity(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same of the packaged robot, from its bodies' spatial inertias about the world origin."""
    poses = body_poses(robot, q)
    columns = []
    for pose, h in zip(poses, robot.hinges, strict=True):
        axis = np.asarray(pose.rotation @ h.axes[0], float)
        columns.append([*axis, *np.cross(np.asarray(pose.position, float), axis)])
    mass, gravity = np.diag([float(h.armature[0]) for h in robot.hinges]), np.zeros(6)
    for i, (pose, body) in enumerate(zip(poses, robot.bodies, strict=True)):
        moved = pose.congruence(body.inertia)
        J = np.array(columns).T * (np.arange(6) <= i)
        mass += J.T @ np.asarray(moved.articulated.matrix, float) @ J
        moment, weight = np.asarray(moved.moment, float), float(moved.mass) * 9.81
        gravity += J.T @ [*np.cross(moment, [0, 0, 9.81]), 0, 0, weight]
    return mass, gravity


@pytest.mark.parametrize("seed", range(10))
def test_puma_geometry_is_the_denavit_hartenberg_table(seed: int) -> None:
    robot = robots.puma560()
    q, _ = robot.random_state(seed)
    pose = body_poses(robot, q)[-1] @ robot.frame("tool").placement
    assert_allclose(np.asarray(pose.matrix, float), dh_frames(q)[-1], atol=1e-14)


def test_puma_reaches_the_published_positions() -> None:
    """The tool at Corke's nominal configurations: L-shaped, ready, stretched."""
    robot = robots.puma560()
    known = {
        (0, 0, 0, 0, 0, 0): (0.4521, -0.15005, 0.672 + 0.4318),
        (0, np.pi / 2, -np.pi / 2, 0, 0, 0): (0.0203, -0.15005, 0.672 + 0.8636),
        (0, 0, -np.pi / 2, 0, 0, 0): (0.8636, -0.15005, 0.672 - 0.0203),
    }
    for q, expected in known.items():
        assert_allclose(position(robot, np.array(q, float), "tool"), expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_puma_dynamics_are_those_of_the_published_table(seed: int) -> None:
    """The regrouped inertias of links 1 to 3 make no difference to any motion."""
    robot = robots.puma560()
    q, _ = robot.random_state(seed)
    for mine, theirs in zip(
        robot_mass_and_gravity(robot, q), published_mass_and_gravity(q), strict=True
    ):
        assert_allclose(mine, theirs, atol=1e-13)


def test_puma_dynamics_match_the_numbers_printed_by_the_toolbox() -> None:
    """`p560.inertia` and `p560.gravload` as recorded in the Robotics Toolbox's own unit tests."""
    q = np.array([0, np.pi / 4, -np.pi, 1, np.pi / 4, 0])
    mass, gravity = robot_mass_and_gravity(robots.puma560(), q)
    printed = [
        [3.6591, -0.4042, 0.1013, -0.0021, -0.0015, 0.0000],
        [-0.4042, 4.4128, 0.3504, -0.0008, 0.0017, 0.0000],
        [0.1013, 0.3504, 0.9377, -0.0008, 0.0008, 0.0000],
        [-0.0021, -0.0008, -0.0008, 0.1925, 0.0000, 0.0000],
        [-0.0015, 0.0017, 0.0008, 0.0000, 0.1713, 0.0000],
        [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.1941],
    ]
    assert_allclose(mass, printed, atol=1e-4)
    assert_allclose(gravity, [0, 31.6334, 6.0286, -0.0119, 0.0218, 0], atol=1e-4)


def test_puma_drives() -> None:
    robot = robots.puma560()
    armature = [motor * gear**2 for *_, motor, gear in PUMA]
    assert_allclose([h.armature[0] for h in robot.hinges], armature)
    assert [h.effort[0] for h in robot.hinges] == [97.6, 186.4, 89.4, 24.2, 20.1, 21.3]
    assert robot.hinge("joint1").damping[0] == pytest.approx(1.48e-3 * 62.6111**2)
    assert robot.hinge("joint1").friction[0] == pytest.approx((0.395 + 0.435) / 2 * 62.6111)
    assert robot.hinge("joint6").upper[0] == pytest.approx(np.radians(266))
