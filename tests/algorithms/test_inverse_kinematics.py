"""Inverse kinematics: targets reached (by Pinocchio's own poses), limits kept, freedom left."""

from __future__ import annotations

import warnings
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import phipsi as pp
from phipsi.algorithms.inverse_kinematics.newton import descend
from phipsi.algorithms.inverse_kinematics.problem import ROWS, RowsName
from phipsi.model.hinges import HingeName
from tests.model.urdf_files import URDFS
from tests.zoo import MOVING, close, forests, random_forest

TOLERANCE = 1e-8
law = settings(max_examples=settings().max_examples // 16)


def load(name: str, base: Any = "fixed") -> pp.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pp.ModelWarning)
        return pp.load(URDFS[name], base=base)


def bounds(robot: pp.Robot) -> tuple[np.ndarray, np.ndarray]:
    return robot.joint_data("lower"), robot.joint_data("upper")


def within_limits(robot: pp.Robot, q: np.ndarray) -> bool:
    low, high = bounds(robot)
    return bool(((q >= low) & (q <= high)).all())


def angle(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The angle [rad] between rotations."""
    return Rotation.from_matrix(np.swapaxes(A, -1, -2) @ B).magnitude()


def reachable(robot: pp.Robot, frame: str, count: int, seed: int = 1) -> tuple[Any, Any]:
    """Random starts, and poses of the frame at other random configurations."""
    rng = np.random.default_rng(seed)
    q, _ = robot.random_state(rng, (count,))
    start, _ = robot.random_state(rng, (count,))
    return start, pp.frame_pose(robot, q, frame)


# ---- targets are reached ------------------------------------------------------------------------


def test_panda_reaches_what_it_can_as_pinocchio_sees_it_within_its_limits() -> None:
    pin = pytest.importorskip("pinocchio")
    robot, frame = load("panda"), "panda_hand_tcp"
    q0, X = reachable(robot, frame, 200)
    found = pp.inverse_kinematics(robot, q0, {frame: X})
    assert found.reached.all() and within_limits(robot, found.q)
    model = pin.buildModelFromUrdf(str(URDFS["panda"]))
    data, number = model.createData(), model.getFrameId(frame)
    zero = np.zeros((200, robot.nv))
    states, *_ = pp.interop.to_pinocchio(robot, found.q, zero, zero, zero, joints=model)
    for q, goal in zip(states, X, strict=True):
        pin.framesForwardKinematics(model, data, q)
        close(data.oMf[number].homogeneous, goal, 10 * TOLERANCE)


@law
@given(forests())
def test_every_kind_of_hinge_reaches_where_it_has_been(robot: pp.Robot) -> None:
    q, _ = robot.random_state(3)
    X = pp.frame_pose(robot, q, "tool")
    if robot.frame("tool").body == "world":
        return
    start = robot.integrate(q, 0.3 * np.random.default_rng(0).normal(size=robot.nv))
    found = pp.inverse_kinematics(robot, start, {"tool": X})
    assert found.reached, found.report()
    close(pp.frame_pose(robot, found.q, "tool"), X, 1e-7)


@pytest.mark.parametrize("kind", MOVING)
def test_chains_of_every_kind(kind: HingeName) -> None:
    robot = pp.robots.chain(7, kind)
    q0, X = reachable(robot, "tool", 10)
    found = pp.inverse_kinematics(robot, q0, {"tool": X})
    assert found.reached.all(), found.report()
    close(pp.frame_pose(robot, found.q, "tool"), X, 1e-7)


def test_one_body_turns_to_its_target() -> None:
    builder = pp.Builder("one").body("arm", mass=1.0, com=(0.5, 0.0, 0.0))
    builder.hinge("pin", "revolute", "world", "arm", axis=(0.0, 0.0, 1.0))
    arm = builder.frame("tip", "arm", position=(1.0, 0.0, 0.0)).build()
    found = pp.inverse_kinematics(arm, [0.1], {"tip": [0.0, 1.0, 0.0]})
    assert found.reached
    close(np.exp(1j * found.q), [1j], 1e-7)
    missed = pp.inverse_kinematics(arm, [0.1], {"tip": [0.0, 3.0, 0.0]})
    assert not missed.reached
    close(np.exp(1j * missed.q), [1j], 1e-3)
    close(missed.position_error, [2.0], 1e-5)


def test_a_humanoid_stands_on_both_feet_and_reaches_with_a_hand() -> None:
    robot = load("talos_full_v2", "free")
    feet, hand = ("left_sole_link", "right_sole_link"), "gripper_right_base_link"
    start = np.clip(robot.neutral(), *bounds(robot))
    rng = np.random.default_rng(2)
    other, _ = robot.random_state(rng, (20,))
    q = np.tile(start, (20, 1))
    for h in robot.hinges:
        if h.name.startswith(("arm_right", "torso")):
            q[:, h.q] = other[:, h.q]
    targets = {foot: pp.frame_pose(robot, start, foot) for foot in feet}
    targets[hand] = pp.frame_pose(robot, q, hand)
    found = pp.inverse_kinematics(robot, start, targets)
    assert found.reached.all() and within_limits(robot, found.q)
    assert found.position_error.shape == (20, 3)
    for frame, X in targets.items():
        close(pp.frame_pose(robot, found.q, frame), np.broadcast_to(X, (20, 4, 4)), 1e-7)


def test_a_hundred_joints() -> None:
    robot = pp.robots.chain(100)
    q0, X = reachable(robot, "tool", 8)
    found = pp.inverse_kinematics(robot, q0, {"tool": X})
    assert found.reached.all()
    close(pp.frame_pose(robot, found.q, "tool"), X, 1e-7)


def test_a_stretched_arm_leaves_its_singularity() -> None:
    robot = pp.robots.planar_chain(3)
    X = pp.frame_pose(robot, [0.4, 0.7, -0.9], "tool")
    found = pp.inverse_kinematics(robot, np.zeros(3), {"tool": X[:3, 3]}, restarts=0)
    assert found.reached
    close(pp.frame_pose(robot, found.q, "tool")[:3, 3], X[:3, 3], 1e-7)


# ---- what counts of a target --------------------------------------------------------------------


def test_the_forms_of_a_target_agree() -> None:
    robot = pp.robots.seven_axis_arm()
    q0, X = reachable(robot, "tool", 5)
    turn = Rotation.from_matrix(X[:, :3, :3]).as_quat(scalar_first=True)
    seven = np.concatenate([X[:, :3, 3], turn], -1)
    one = pp.inverse_kinematics(robot, q0, {"tool": X})
    close(pp.inverse_kinematics(robot, q0, {"tool": 1.0 * seven}).q, one.q, 1e-6)
    pose = pp.Transform.of(X[0, :3, :3], X[0, :3, 3])
    close(pp.inverse_kinematics(robot, q0[0], {"tool": pose}).q, one.q[0], 1e-6)


def test_rows_that_do_not_count_are_free() -> None:
    robot = pp.robots.seven_axis_arm()
    q0, X = reachable(robot, "tool", 30)

    def solved(rows: Any) -> np.ndarray:
        found = pp.inverse_kinematics(robot, q0, {"tool": X}, rows={"tool": rows})
        assert found.reached.all(), found.report()
        return pp.frame_pose(robot, found.q, "tool")

    Y = solved("position")
    close(Y[:, :3, 3], X[:, :3, 3], 1e-7)
    assert np.median(angle(Y[:, :3, :3], X[:, :3, :3])) > 0.1
    Y = solved("orientation")
    close(Y[:, :3, :3], X[:, :3, :3], 1e-7)
    assert np.median(np.abs(Y - X)[:, :3, 3]) > 0.01
    Y = solved("pointing")
    close(Y[:, :3, 2:], X[:, :3, 2:], 1e-7)
    assert np.median(angle(Y[:, :3, :3], X[:, :3, :3])) > 0.1
    Y = solved("direction")
    close(Y[:, :3, 2], X[:, :3, 2], 1e-7)
    assert np.median(np.abs(Y - X)[:, :3, 3]) > 0.01
    Y = solved([False, True, True, True, True, True])  # its x-axis points
    close(Y[:, :3, 0], X[:, :3, 0], 1e-7)
    Y = solved([False, False, False, True, True, False])  # the target is on its z-axis
    ahead = np.einsum("nji,nj->ni", Y[:, :3, :3], X[:, :3, 3] - Y[:, :3, 3])
    close(ahead[:, :2], 0 * ahead[:, :2], 1e-7)
    assert np.median(np.abs(ahead[:, 2])) > 0.01
    Y = solved([False, False, True, False, False, False])
    left = Rotation.from_matrix(np.swapaxes(Y[:, :3, :3], 1, 2) @ X[:, :3, :3]).as_rotvec()
    close(left[:, 2], 0 * left[:, 2], 1e-7)


def test_half_a_turn_to_point() -> None:
    robot = pp.robots.chain(1, "spherical")
    down = np.diag([1.0, -1.0, -1.0, 1.0])
    found = pp.inverse_kinematics(
        robot, robot.neutral(), {"tool": down}, rows={"tool": "direction"}
    )
    assert found.reached
    close(pp.frame_pose(robot, found.q, "tool")[:3, 2], [0.0, 0.0, -1.0], 1e-7)


def test_where_targets_contend_weights_decide() -> None:
    robot = pp.robots.planar_chain(3)
    apart = {"tool": [0.5, 0.0, -0.3], robot.bodies[1].name: [-0.5, 0.0, -0.3]}
    options: dict[str, Any] = {"restarts": 0}
    first = pp.inverse_kinematics(robot, [0.1, 0.2, 0.3], apart, weights={"tool": 100.0}, **options)
    second = pp.inverse_kinematics(robot, [0.1, 0.2, 0.3], apart, weights={"tool": 0.01}, **options)
    assert not first.reached and not second.reached
    assert first.position_error[0] < 0.1 * second.position_error[0]
    assert first.position_error[1] > 1.2 * second.position_error[1]


def test_a_posture_is_approached_without_moving_the_frame() -> None:
    robot = pp.robots.seven_axis_arm()
    q0, X = reachable(robot, "tool", 20)
    rest = np.clip(robot.neutral(), *bounds(robot))
    plain = pp.inverse_kinematics(robot, q0, {"tool": X})
    found = pp.inverse_kinematics(robot, plain.q, {"tool": X}, posture=rest, iterations=300)
    assert found.reached.all() and within_limits(robot, found.q)
    close(pp.frame_pose(robot, found.q, "tool"), X, 1e-7)
    before, after = (np.linalg.norm(q - rest, axis=-1) for q in (plain.q, found.q))
    assert (after <= before + 1e-9).all() and after.mean() < 0.9 * before.mean()
    inside = (found.q > bounds(robot)[0]) & (found.q < bounds(robot)[1])
    for q in found.q[inside.all(-1)]:  # what is left is no motion that the frame does not feel
        J = pp.jacobian(robot, q, "tool")
        null = np.eye(7) - np.linalg.pinv(J) @ J
        assert np.linalg.norm(null @ (rest - q)) < 1e-4


@pytest.mark.parametrize("seed", [10, 11, 12])
def test_a_posture_costs_no_target(seed: int) -> None:
    robot = pp.robots.seven_axis_arm()
    _, X = reachable(robot, "tool", 200, 3)
    rest, _ = robot.random_state(seed)
    plain = pp.inverse_kinematics(robot, robot.neutral(), {"tool": X})
    found = pp.inverse_kinematics(robot, robot.neutral(), {"tool": X}, posture=rest)
    assert plain.reached.all() and found.reached.all()
    before, after = (np.linalg.norm(q - rest, axis=-1) for q in (plain.q, found.q))
    assert (after <= before + 1e-9).all() and after.mean() < 0.95 * before.mean()


# ---- targets that have nothing in common --------------------------------------------------------


def pair() -> tuple[pp.Robot, pp.Robot]:
    """An arm, and two of them."""
    arm = pp.robots.seven_axis_arm()
    return arm, pp.combine({"l": arm, "r": arm})


def test_a_target_out_of_reach_spoils_no_other() -> None:
    arm, two = pair()
    _, X = reachable(arm, "tool", 30)
    found = pp.inverse_kinematics(
        two, two.neutral(), {"r/tool": [9.0, 0.0, 0.0], "l/tool": X}, weights={"l/tool": 2.0}
    )
    assert not found.reached.any() and (found.position_error[:, 0] > 1.0).all()
    assert (found.position_error[:, 1] <= TOLERANCE).all()
    close(pp.frame_pose(two, found.q, "l/tool"), X, 1e-7)
    text = found.report()
    assert "'r/tool' misses" in text and "'l/tool'" not in text


def test_damping_is_of_the_frames_that_a_joint_moves() -> None:
    @pp.program
    def both(robot: pp.Robot, q: Any, near: Any) -> Any:
        found = pp.inverse_kinematics(robot, q, {"l/tool": near, "r/tool": [9.0, 0.0, 0.0]})
        return found.position_error

    arm, two = pair()
    q, _ = arm.random_state(4)
    start = np.tile(q, 2) + 0.1
    near = pp.frame_pose(arm, q, "tool")[:3, 3]
    missed = both(two, start, near)
    assert missed[0] <= TOLERANCE and missed[1] > 1.0


def test_restarts_leave_joints_that_no_target_concerns() -> None:
    arm, two = pair()
    q0, X = reachable(arm, "tool", 30)
    start = np.concatenate([q0, q0], -1)
    found = pp.inverse_kinematics(two, start, {"l/tool": X})
    once = pp.inverse_kinematics(two, start, {"l/tool": X}, restarts=0)
    assert found.reached.all() and not once.reached.all()
    close(found.q[:, 7:], start[:, 7:], 1e-12)
    body = arm.bodies[3].name
    one = pp.inverse_kinematics(arm, q0, {body: pp.frame_pose(arm, q0[::-1], body)})
    close(one.q[:, 4:], q0[:, 4:], 1e-12)


# ---- limits and what is out of reach ------------------------------------------------------------


def test_limits_hold_and_can_be_left_out() -> None:
    robot = load("panda")
    q0, X = reachable(robot, "panda_hand_tcp", 50)
    X[:, :3, 3] *= 1.3
    low, high = bounds(robot)
    found = pp.inverse_kinematics(robot, 10.0 * q0, {"panda_hand_tcp": X}, restarts=3)
    assert within_limits(robot, found.q) and not found.reached.all()
    free = pp.inverse_kinematics(robot, q0, {"panda_hand_tcp": X}, limits=False, restarts=3)
    assert free.reached.sum() > found.reached.sum()
    assert ((free.q < low) | (free.q > high)).any()


@pytest.mark.parametrize("target", [[0.9, 0.4, 0.6], [1.5, 1.5, 1.5], [0.1, 0.0, 0.1]])
def test_the_closest_point_is_as_close_as_scipy_finds(target: list[float]) -> None:
    robot, frame = load("panda"), "panda_hand_tcp"
    q0, _ = robot.random_state(3)

    def error(q: np.ndarray) -> tuple[float, np.ndarray]:
        e = pp.frame_pose(robot, q, frame)[:3, 3] - target
        return float(e @ e), 2.0 * e @ pp.jacobian(robot, q, frame, reference="aligned")[3:]

    starts, _ = robot.random_state(0, (6,))
    box = list(zip(*bounds(robot), strict=True))
    ends = (minimize(error, q, jac=True, bounds=box, method="L-BFGS-B") for q in starts)
    best = np.sqrt(min(end.fun for end in ends))
    found = pp.inverse_kinematics(robot, q0, {frame: target})
    assert within_limits(robot, found.q)
    assert found.position_error[0] <= 1.02 * best + TOLERANCE
    assert bool(found.reached) == (best < 1e-4)


def test_the_report_says_what_is_missed_and_why() -> None:
    robot = pp.robots.seven_axis_arm()
    q0, X = reachable(robot, "tool", 3)
    assert "All targets are reached" in pp.inverse_kinematics(robot, q0, {"tool": X}).report()
    X[1, :3, 3] = (5.0, 0.0, 0.0)
    found = pp.inverse_kinematics(robot, q0, {"tool": X})
    assert found.reached.tolist() == [True, False, True]
    text = found.report()
    assert "1 of 3 rows miss a target." in text
    assert "Row 1: 'tool' misses its target by" in text and "out of reach" in text
    panda = load("panda")
    near = pp.inverse_kinematics(panda, panda.neutral(), {"panda_hand_tcp": [0.9, 0.4, 0.6]})
    assert not near.reached and "at a limit: panda_joint" in near.report()
    with pytest.raises(ValueError, match="outside a program"):
        pp.InverseKinematicsSolution(*found).report()


def test_the_report_tells_of_joints_on_the_way_and_of_slides() -> None:
    builder = pp.Builder("lift").body("car", mass=1.0)
    builder.body("arm", mass=1.0, com=(0.2, 0.0, 0.0)).body("other", mass=1.0, com=(0.2, 0.0, 0.0))
    slide: Any = {"axis": (1.0, 0.0, 0.0), "lower": -2.0, "upper": 2.0}
    builder.hinge("slide", "prismatic", "world", "car", **slide)
    builder.hinge("pin", "revolute", "car", "arm", axis=(0.0, 0.0, 1.0), lower=0.0, upper=1.0)
    builder.hinge("idle", "revolute", "car", "other", axis=(0.0, 0.0, 1.0), lower=0.0, upper=1.0)
    robot = builder.frame("tip", "arm", position=(0.5, 0.0, 0.0)).build()
    far = pp.inverse_kinematics(robot, robot.neutral(), {"tip": [9.0, 0.0, 0.0]}).report()
    assert "can reach at most 2.5 m" in far and "links" not in far
    near = pp.inverse_kinematics(robot, robot.neutral(), {"tip": [0.0, -0.3, 0.0]}).report()
    assert near.endswith("at a limit: pin.")


def test_the_report_says_that_targets_may_contend() -> None:
    robot = pp.robots.planar_chain(3)
    apart = {"tool": [0.5, 0.0, -0.3], robot.bodies[1].name: [-0.5, 0.0, -0.3]}
    text = pp.inverse_kinematics(robot, [0.1, 0.2, 0.3], apart).report()
    assert "contend" in text and "restarts" not in text


def test_out_of_reach_many_starts_are_no_worse_than_one() -> None:
    robot = pp.robots.seven_axis_arm()
    q0, _ = robot.random_state(7, (50,))
    for far in ([9.0, 0.0, 0.0], [5.0, 5.0, 5.0], [0.0, 0.0, -6.0]):
        best = pp.inverse_kinematics(robot, robot.neutral(), {"tool": far})
        ones = pp.inverse_kinematics(robot, q0, {"tool": far}, restarts=0)
        assert best.position_error[0] <= np.median(ones.position_error) + 1e-4


def test_reach_is_a_true_bound() -> None:
    from phipsi.algorithms.inverse_kinematics.solution import reach

    for seed in range(8):
        robot = random_forest(seed, 5, kinds=("revolute", "spherical", "universal", "continuous"))
        base, length = reach(robot, "tool", True)
        q, _ = robot.random_state(seed, (200,))
        far = np.linalg.norm(pp.frame_pose(robot, q, "tool")[:, :3, 3] - base, axis=-1)
        assert far.max() <= length + 1e-12
    assert reach(pp.robots.chain(3, "prismatic"), "tool", True)[1] == np.inf
    close(reach(pp.robots.planar_chain(4), "tool", True)[1], 4 * 0.3)


# ---- batches and programs -----------------------------------------------------------------------


def test_a_batch_is_a_loop_of_singles() -> None:
    robot = load("panda")
    q0, X = reachable(robot, "panda_hand_tcp", 12)
    X[5, :3, 3] = (3.0, 0.0, 0.0)
    whole = pp.inverse_kinematics(
        robot, q0.reshape(4, 3, -1), {"panda_hand_tcp": X.reshape(4, 3, 4, 4)}, restarts=6
    )
    assert whole.q.shape == (4, 3, robot.nq) and whole.iterations.shape == (4, 3)
    assert whole.position_error.shape == (4, 3, 1)
    for i in range(12):
        one = pp.inverse_kinematics(robot, q0[i], {"panda_hand_tcp": X[i]}, restarts=6)
        assert whole.reached[divmod(i, 3)] == one.reached
        close(whole.q[divmod(i, 3)], one.q, 1e-6)


def test_seeds_and_restarts() -> None:
    robot = load("panda")
    q0, X = reachable(robot, "panda_hand_tcp", 100)
    target = {"panda_hand_tcp": X}
    none, some = (pp.inverse_kinematics(robot, q0, target, restarts=n) for n in (0, 20))
    assert none.reached.sum() < some.reached.sum() == 100
    again = pp.inverse_kinematics(robot, q0, target)
    assert (again.q == some.q).all()
    other = pp.inverse_kinematics(robot, q0, target, seed=1)
    assert other.reached.all() and (other.q != some.q).any()
    at_once = (none.q == some.q).all(-1)
    assert at_once.any() and (other.q == some.q)[at_once].all()


def test_no_rows_and_targets_of_their_own_batch() -> None:
    robot = pp.robots.seven_axis_arm()
    q0, X = reachable(robot, "tool", 4)
    assert pp.inverse_kinematics(robot, q0[:0], {"tool": X[:0]}).q.shape == (0, 7)
    found = pp.inverse_kinematics(robot, q0[:3, None], {"tool": X})
    assert found.q.shape == (3, 4, 7) and found.reached.all()


def test_it_is_a_part_of_programs() -> None:
    @pp.program
    def follow(robot: pp.Robot, q: Any, point: Any) -> Any:
        found = pp.inverse_kinematics(robot, q, {"tool": point}, iterations=25)
        return {"q": found.q, "reached": found.reached, "missed": found.position_error}

    robot = pp.robots.seven_axis_arm()
    q0, X = reachable(robot, "tool", 20)
    answer = follow(robot, q0, X[:, :3, 3])
    assert answer["reached"].mean() > 0.8
    missed = np.linalg.norm(pp.frame_pose(robot, answer["q"], "tool") - X, axis=-2)[:, 3]
    close(answer["missed"][:, 0], missed, 1e-7)
    assert ((missed < TOLERANCE) == (answer["reached"] > 0.0)).all()


def test_inside_programs_limits_hold_and_quaternions_are_unit() -> None:
    @pp.program
    def follow(robot: pp.Robot, q: Any, point: Any) -> Any:
        found = pp.inverse_kinematics(robot, q, {"tool": point}, iterations=1, tolerance=10.0)
        with pytest.raises(ValueError, match="outside a program"):
            found.report()
        return found.q

    arm, ball = pp.robots.seven_axis_arm(), pp.robots.chain(2, "spherical")
    assert within_limits(arm, follow(arm, np.full((5, 7), 4.0), np.zeros(3)))
    q = follow(ball, 3.0 * ball.neutral(), np.zeros(3))
    close(np.linalg.norm(q.reshape(2, 4), axis=-1), np.ones(2))


def test_a_posture_is_approached_inside_programs() -> None:
    @pp.program(shapes={"X": (4, 4)})
    def follow(robot: pp.Robot, q: Any, X: Any, rest: Any) -> Any:
        found = pp.inverse_kinematics(robot, q, {"tool": X}, posture=rest)
        return {"q": found.q, "reached": found.reached}

    robot = pp.robots.seven_axis_arm()
    rng = np.random.default_rng(5)
    q, _ = robot.random_state(rng, (20,))
    X, rest = pp.frame_pose(robot, q, "tool"), robot.random_state(rng)[0]
    answer = follow(robot, q, X, rest)
    assert (answer["reached"] > 0.0).all()
    close(pp.frame_pose(robot, answer["q"], "tool"), X, 1e-7)
    before, after = (np.linalg.norm(x - rest, axis=-1).mean() for x in (q, answer["q"]))
    assert after < 0.95 * before


def test_iterations_bound_each_start() -> None:
    robot = pp.robots.seven_axis_arm()
    q0, X = reachable(robot, "tool", 10)
    found = pp.inverse_kinematics(robot, q0, {"tool": X}, iterations=2, restarts=0)
    assert (found.iterations <= 2 + 12).all()  # and those of the approach
    graph = descend.graph(
        robot, targets=np.zeros(12), tasks=(("tool", (True,) * 6),), count=40, limits=True
    )
    short = descend.graph(
        robot, targets=np.zeros(12), tasks=(("tool", (True,) * 6),), count=4, limits=True
    )
    assert sum(n.op == "loop" for n in graph.nodes) == sum(n.op == "loop" for n in short.nodes) == 1


# ---- what is wrong is said ----------------------------------------------------------------------

POSE = np.eye(4)


@pytest.mark.parametrize(
    ("targets", "options", "words"),
    [
        ({}, {}, "targets is empty"),
        ([1.0, 2.0, 3.0], {}, "needs {frame: pose}"),
        ({"tol": POSE}, {}, "did you mean 'tool'"),
        ({"world": POSE}, {}, "fixed to the world"),
        ({"tool": np.eye(3)[:2, :2]}, {}, r"needs \(..., 4, 4\)"),
        ({"tool": 2.0 * POSE}, {}, "its 3 × 3 part is no rotation"),
        ({"tool": np.diag([1.0, 1.0, -1.0, 1.0])}, {}, "det R = −1"),
        ({"tool": POSE + np.eye(4)[3][:, None]}, {}, "last row"),
        ({"tool": [np.nan, 0.0, 0.0]}, {}, "not finite"),
        ({"tool": np.zeros(7)}, {}, "quaternion of zero length"),
        ({"tool": POSE}, {"rows": {"hand": "pose"}}, "that frame has no target"),
        ({"tool": POSE}, {"rows": {"tool": "everything"}}, "not one of pose, position"),
        ({"tool": POSE}, {"rows": {"tool": [True]}}, "six truth values"),
        ({"tool": POSE}, {"rows": {"tool": [False] * 6}}, "some true"),
        ({"tool": np.zeros(3)}, {"rows": {"tool": "pose"}}, "a position alone"),
        ({"tool": POSE}, {"weights": {"hand": 1.0}}, "that frame has no target"),
        ({"tool": POSE}, {"weights": {"tool": [1.0, 2.0]}}, r"a number or \(..., 6\)"),
        ({"tool": POSE}, {"weights": {"tool": -1.0}}, "not positive"),
        ({"tool": POSE}, {"weights": {"tool": [1.0, 0, 1, 1, 1, 1]}}, "rows= leaves out"),
        ({"tool": POSE}, {"weights": 2.0}, "weights is 2.0, needs a mapping"),
        ({"tool": POSE}, {"rows": "position"}, "rows is 'position', needs a mapping"),
        ({"tool": POSE}, {"rows": {"tool": 5}}, "six truth values"),
        ({"tool": POSE}, {"rows": {"tool": [0, 1, 2, 3, 4, 5]}}, "six truth values"),
        ({"tool": POSE}, {"tolerance": None}, "tolerance is None, needs a positive number"),
        ({"tool": POSE}, {"tolerance": "a"}, "tolerance is 'a', needs a positive number"),
        ({"tool": POSE}, {"iterations": True}, "iterations is True, needs a whole number"),
        ({"tool": POSE}, {"limits": None}, "limits is None, needs True or False"),
        ({"tool": POSE}, {"posture": np.zeros(3)}, r"posture has shape \(3,\)"),
        ({"tool": POSE}, {"tolerance": 0.0}, "needs a positive number"),
        ({"tool": POSE}, {"iterations": 0}, "at least 1"),
        ({"tool": POSE}, {"restarts": 1.5}, "whole number"),
        ({"tool": POSE}, {"seed": None}, "seed is None"),
        ({"tool": np.tile(POSE, (3, 1, 1))}, {"posture": np.zeros((2, 7))}, "do not go together"),
    ],
)
def test_bad_input_is_one_clear_sentence(targets: Any, options: Any, words: str) -> None:
    robot = pp.robots.seven_axis_arm()
    with pytest.raises(ValueError, match=words):
        pp.inverse_kinematics(robot, robot.neutral(), targets, **options)


def test_what_is_no_robot_is_said_and_whole_numbers_are_taken() -> None:
    none: Any = "arm"
    with pytest.raises(TypeError, match="robot is a str, needs a Robot"):
        pp.inverse_kinematics(none, np.zeros(7), {"tool": POSE})
    robot = pp.robots.seven_axis_arm()
    few: Any = {"iterations": np.int64(30)}
    X = pp.frame_pose(robot, robot.random_state(3)[0], "tool")
    assert pp.inverse_kinematics(robot, robot.neutral(), {"tool": X}, **few).reached


def test_the_module_is_not_hidden_by_the_function() -> None:
    from phipsi.algorithms.inverse_kinematics import search

    assert search.inverse_kinematics is pp.inverse_kinematics


def test_every_choice_of_rows_has_a_name_that_type_checkers_know() -> None:
    assert tuple(ROWS) == get_args(RowsName)


@pytest.mark.parametrize(("q0", "words"), [(np.zeros(6), "q0 has shape"), ([np.nan] * 7, "finite")])
def test_bad_starts_are_said(q0: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pp.inverse_kinematics(pp.robots.seven_axis_arm(), q0, {"tool": POSE})
