"""Closed chains and grasps beside Pinocchio and MuJoCo, at many placements, and where they end."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import phipsi as pp
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot
from tests.agreement.peers import (
    ConstrainedMujoco,
    ConstrainedPinocchio,
    mujoco_accelerations,
)
from tests.algorithms.closures import Dense
from tests.zoo import State, close, random_forest

pytestmark = pytest.mark.usefixtures("interpreted")

pin: Any = pytest.importorskip("pinocchio")
pytest.importorskip("mujoco")

IN_PLANE = np.eye(6)[:, [3, 5]]
TIPS = ("coupler_tip", "rocker_tip")
PLANAR = [pp.Loop(*TIPS, free=IN_PLANE)]
PIN = [pp.Loop(*TIPS, free="revolute", axis=(0, 1, 0))]
SIDES = ("left", "right")


class Scene(NamedTuple):
    """A robot with frames held together in pairs, and a state in which they are."""

    robot: pp.Robot
    pairs: list[tuple[str, str]]
    q: np.ndarray

    def state(self, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q nearby, v and tau, closed."""
        rng = np.random.default_rng(seed)
        v, tau, dq = rng.normal(size=(3, self.robot.nv))
        q = self.robot.integrate(self.q, 0.2 * dq)
        q, v, error = pp.close_loops(self.robot, self.loops, q, v)
        assert error < 1e-12
        return q, v, 5 * tau

    @property
    def loops(self) -> list[pp.Loop]:
        """The pairs, welded."""
        return [pp.Loop(*pair) for pair in self.pairs]

    @property
    def grasps(self) -> list[pp.Grasp]:
        """The pairs, held firmly."""
        return [pp.Grasp(*pair) for pair in self.pairs]


def poses(numbers: np.ndarray) -> np.ndarray:
    """(n, 4, 4) of (n, 7), [position; quaternion]."""
    out = np.tile(np.eye(4), (len(numbers), 1, 1))
    for X, x in zip(out, numbers, strict=True):
        X[:3, :3], X[:3, 3] = rot.from_quaternion(rot.scalars(x[3:])), x[:3]
    return out


def numbers(X: np.ndarray) -> np.ndarray:
    """The inverse of `poses`."""
    return np.array([[*x[:3, 3], *map(float, rot.to_quaternion(x[:3, :3]))] for x in X])


def box() -> pp.Robot:
    """A free box with a grip on either side."""
    builder = pp.Builder("box")
    builder.body("box", mass=20.0, com=(0.02, 0.01, -0.03), inertia=(2.0, 3.0, 4.0))
    builder.hinge("box", "free", "world", "box")
    builder.frame("left/grip", "box", position=(0.2, 0.1, 0.0), rpy=(0.1, 0.7, -0.4))
    builder.frame("right/grip", "box", position=(-0.25, 0.0, 0.05), rpy=(1.0, -2.0, 0.4))
    return builder.build()


def held(seed: int = 3) -> Scene:
    """Two arms on one spacecraft that hold a box."""
    robot = pp.combine([pp.robots.dual_space_arm(), box()])
    pairs = [(f"{side}/tool", f"{side}/grip") for side in SIDES]
    q, _ = robot.random_state(seed)
    back = np.linalg.inv(pp.frame_pose(robot, q, "box"))
    tools = numbers(np.stack([back @ pp.frame_pose(robot, q, tool) for tool, _ in pairs]))
    grips = {f"frame:{grip}": X for (_, grip), X in zip(pairs, tools, strict=True)}
    return Scene(robot.with_parameters(grips), pairs, q)


def joined() -> Scene:
    """Two arms on the ground, tip to tip."""
    arm = pp.robots.seven_axis_arm()
    arms = pp.combine({side: arm for side in SIDES})
    q, _ = arms.random_state(1)
    left, right = (pp.frame_pose(arms, q, f"{side}/tool") for side in SIDES)
    X = left @ np.linalg.inv(right)
    builder = pp.Builder("joined").add(arm, prefix="left/")
    builder.add(arm, prefix="right/", placement=Transform.of(X[:3, :3], X[:3, 3]))
    return Scene(builder.build(), [("left/tool", "right/tool")], q)


# ---- the same robots elsewhere -----------------------------------------------------------------

KINDS = ("revolute", "continuous", "prismatic", "spherical")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("root", ["free", "revolute"])
def test_our_robots_move_alike_in_pinocchio_and_mujoco(root: str, seed: int) -> None:
    robot = random_forest(seed, 6, kinds=KINDS, roots=(root,), massless=False, armature=False)
    for i, h in enumerate(robot.hinges):
        free = h.kind.name == "free"
        value = {f"placement:{h.name}": np.eye(7)[3]} if free else {
            f"armature:{h.name}": np.full(h.kind.nv, 0.1 * i)}  # fmt: skip
        robot = robot.with_parameters(value)
    model, theirs = pp.interop.to_pinocchio_model(robot), pp.interop.to_mujoco_model(robot)
    for k in range(3):
        s = State(robot, seed=k)
        a = pp.forward_dynamics(robot, s.q, s.v, s.tau)
        q, v, tau = pp.interop.to_pinocchio(robot, s.q, s.v, tau=s.tau, joints=model)
        b = pin.aba(model, model.createData(), q, v, tau)
        close(a, pp.interop.from_pinocchio(robot, q, a=b, joints=model)[1])
        close(a, mujoco_accelerations(robot, theirs, s.q, s.v, s.tau))


# ---- closed chains and grasps ------------------------------------------------------------------


@pytest.fixture(scope="module")
def linkage() -> tuple[pp.Robot, ConstrainedPinocchio, ConstrainedMujoco]:
    robot = pp.robots.four_bar()
    return (
        robot,
        ConstrainedPinocchio(robot, [TIPS], "3D"),
        ConstrainedMujoco(robot, [TIPS], "connect"),
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_four_bar_moves_as_in_pinocchio_and_mujoco(linkage: Any, seed: int) -> None:
    robot, theirs, soft = linkage
    q, v, error = pp.close_loops(robot, PLANAR, *robot.random_state(seed))
    assert error < 1e-12 and np.abs(v).max() > 1e-2
    tau = 5 * np.random.default_rng(seed).normal(size=3)
    found = pp.closed_chain_dynamics(robot, PLANAR, q, v, tau)
    a, forces = theirs(q, v, tau)
    close(found.qdd, a)
    close(found.forces, forces)
    close(found.qdd, soft(q, v, tau), 1e-5)


@pytest.mark.parametrize("make", [held, joined])
def test_two_arms_move_as_in_pinocchio_and_mujoco(make: Any) -> None:
    scene = make()
    robot = scene.robot
    theirs = ConstrainedPinocchio(robot, scene.pairs, "6D")
    soft = ConstrainedMujoco(robot, scene.pairs, "weld")
    for seed in range(4):
        q, v, tau = scene.state(seed)
        found = pp.closed_chain_dynamics(robot, scene.loops, q, v, tau)
        a, forces = theirs(q, v, tau)
        close(found.qdd, a)
        close(found.forces, forces)
        close(found.qdd, soft(q, v, tau), 1e-3)
        if make is held:
            grasp = pp.grasp_dynamics(robot, scene.grasps, q, v, tau)
            close(grasp.qdd, a)
            close(grasp.forces, -forces)


# ---- many placements ---------------------------------------------------------------------------


def kkt(robot: pp.Robot, pairs: Any, q: Any, v: Any, tau: Any) -> np.ndarray:
    """The accelerations by one dense solve with Pinocchio's matrices: 𝓜a − A*λ = tau − C and
    Aa = −Ȧv, A the difference of the frames' Jacobians in the world's axes at its origin."""
    model = pp.interop.to_pinocchio_model(robot)
    data = model.createData()
    q, v, tau = pp.interop.to_pinocchio(robot, q, v, tau=tau, joints=model)
    pin.computeAllTerms(model, data, q, v)
    pin.forwardKinematics(model, data, q, v, 0 * v)
    bodies = [[robot.body_index(robot.frame(name).body) + 1 for name in pair] for pair in pairs]
    J = [[pin.getJointJacobian(model, data, i, pin.WORLD) for i in pair] for pair in bodies]
    drift = [[data.oMi[i].act(data.a[i]).vector for i in pair] for pair in bodies]
    A, rate = (np.concatenate([a - b for a, b in x]) for x in (J, drift))
    M, n, m = np.triu(data.M) + np.triu(data.M, 1).T, robot.nv, len(A)
    whole = np.block([[M, -A.T], [A, np.zeros((m, m))]])
    a = np.linalg.solve(whole, np.concatenate((tau - data.nle, -rate)))[:n]
    return pp.interop.from_pinocchio(robot, q, a=a, joints=model)[1]


def test_a_thousand_placements_of_two_arms_with_a_box_are_well_posed() -> None:
    arm = pp.robots.seven_axis_arm()
    robot = pp.combine([pp.combine({side: arm for side in SIDES}), box()])
    pairs = [(f"{side}/tool", f"{side}/grip") for side in SIDES]
    grasps = [pp.Grasp(*pair) for pair in pairs]
    names = [f"placement:{side}/shoulder_roll" for side in SIDES]
    s = State(robot, (1000,))
    at = poses(s.q[:, robot.hinge("box").q])
    bases = []
    for side in SIDES:  # box and joints lie anyhow, so that the base does, too
        first = robot.hinge(f"{side}/shoulder_roll").q.start
        tool = pp.frame_pose(arm, s.q[:, first : first + arm.nq], "tool")
        grip = np.asarray(robot.frame(f"{side}/grip").placement.matrix, float)
        bases.append(numbers(at @ grip @ np.linalg.inv(tool)))
    v = pp.capture.compile(robot, inputs=names, closures=grasps)(s.q, s.v, *bases).v
    found = pp.grasp_dynamics.compile(robot, inputs=names, grasps=grasps)(s.q, v, s.tau, *bases)
    assert np.all(found.well_posed)
    assert 1e-6 < found.rcond.min() < found.rcond.max() <= 1
    for i in range(20):
        one = robot.with_parameters(dict(zip(names, (base[i] for base in bases), strict=True)))
        close(found.qdd[i], kkt(one, pairs, s.q[i], v[i], s.tau[i]), 1e-9)


# ---- where loops end ---------------------------------------------------------------------------


def parallelogram() -> tuple[pp.Robot, np.ndarray, np.ndarray]:
    """A four-bar with equal opposite sides; a dead point with all links in a line, and another."""
    builder = pp.Builder("parallelogram")
    for body, parent, at, length in (
        ("crank", "world", 0.0, 0.2), ("coupler", "crank", 0.2, 0.4), ("rocker", "world", 0.4, 0.2),
    ):  # fmt: skip
        builder.body(body, mass=1.0, com=(length / 2, 0, 0), inertia=(0.001, 0.01, 0.01))
        builder.hinge(body, "revolute", parent, body, position=(at, 0, 0), axis=(0, 1, 0))
        builder.frame(f"{body}_tip", body, position=(length, 0, 0))
    return builder.build(), np.zeros(3), np.array([0.7, -0.7, 0.7])


def test_at_a_dead_point_the_row_says_so_and_a_single_state_is_refused() -> None:
    robot, dead, alive = parallelogram()
    q, v, tau = np.stack([dead, alive]), np.zeros(3), np.array([1.0, 0.0, 0.0])
    found = pp.closed_chain_dynamics(robot, PLANAR, q, v, tau)
    assert found.well_posed.tolist() == [False, True]
    assert found.rcond[0] < 1e-12 < 1e-3 < found.rcond[1]
    with pytest.raises(pp.SingularError, match="redundant or singular at this state"):
        pp.closed_chain_dynamics(robot, PLANAR, dead, v, tau)
    moving = pp.closed_chain_dynamics(robot, PLANAR, dead, np.ones(3), tau, strict=False)
    for part in moving:
        assert np.isfinite(part).all()
    assert not moving.well_posed
    close(pp.closed_chain_dynamics(robot, PLANAR, alive, v, tau).qdd, found.qdd[1], 1e-12)


@pytest.mark.parametrize("loops", [PLANAR, PIN], ids=["two rows", "five rows"])
def test_near_a_dead_point_accelerations_and_forces_are_those_of_dense_algebra(loops: Any) -> None:
    robot, _, _ = parallelogram()
    s = State(robot)
    s.external, s.v = 0 * s.external, np.array([1.0, -1.0, 1.0])
    for away in 10.0 ** -np.arange(6.0):
        s.q = away * s.v
        found = pp.closed_chain_dynamics(robot, loops, s.q, s.v, s.tau, strict=False)
        dense = Dense(robot, loops, s)
        close(found.qdd, dense.qdd, 1e-16 / away**2 + 1e-12)
        close(found.forces[0, [3, 5]], dense.forces[0][[3, 5]], 1e-16 / away**2 + 1e-10)
        assert np.abs(found.residual).max() < 1e-12
        assert found.well_posed == (loops is PLANAR)


def test_closures_in_single_precision() -> None:
    robot = pp.robots.four_bar()
    q, v, _ = pp.close_loops(robot, PLANAR, *robot.random_state(0, (20,)))
    tau = np.random.default_rng(0).normal(size=(20, 3))
    single = [x.astype(np.float32) for x in (q, v, tau)]
    for loops in (PLANAR, PIN):
        exact = pp.closed_chain_dynamics(robot, loops, q, v, tau)
        found = pp.closed_chain_dynamics.compile(robot, loops=loops, dtype="float32")(*single)
        close(found.qdd, exact.qdd, 1e-6)
        assert ((found.well_posed > 0) == exact.well_posed).all()


def test_arms_near_singularities_of_their_own_lose_no_digits() -> None:
    builder = pp.Builder("two pumas").body("box", mass=3.0, inertia=(0.05, 0.06, 0.04))
    builder.hinge("box", "free", "world", "box")
    for i in "01":
        place = Transform.of(position=(float(i), 0.3 * float(i), 0.0))
        builder.add(pp.robots.puma560(), prefix=f"{i}/", placement=place)
    robot = builder.build()
    q, tau = State(robot, seed=4).q, State(robot, seed=4).tau
    wrist = next(h for h in robot.hinges if h.child == robot.frame("0/tool").body).parent
    bent = next(h for h in robot.hinges if h.child == wrist)
    for angle in (1e-1, 1e-3, 1e-5, 1e-7):
        q[bent.q] = angle
        edited = robot.edit()
        for i in "01":
            X = np.linalg.inv(pp.frame_pose(robot, q, "box")) @ pp.frame_pose(robot, q, f"{i}/tool")
            edited.frame(f"face{i}", "box", placement=Transform.of(X[:3, :3], X[:3, 3]))
        holding = edited.build()
        s = State(holding)
        s.q, s.v, s.tau, s.external = q, 0 * tau, tau, 0 * s.external
        grasps = [pp.Grasp(f"{i}/tool", f"face{i}") for i in "01"]
        found = pp.grasp_dynamics(holding, grasps, s.q, s.v, s.tau)
        close(found.qdd, Dense(holding, grasps, s).qdd, 1e-11)
        alone = pp.grasp_dynamics.compile(holding, grasps=grasps)(s.q, s.v, s.tau)
        assert bool(alone.well_posed) == (angle > 1e-2)


def tilted(robot: pp.Robot, rpy: tuple[float, float, float]) -> pp.Robot:
    """The robot on a slope."""
    slope = Transform.of(np.asarray(rot.from_rpy(*rpy), float), (0.1, 0.2, 0.3))
    return pp.Builder("tilted").add(robot, placement=slope).build()


@pytest.mark.parametrize("rpy", [(0.0, 0.0, 0.0), (0.3, -0.5, 0.7), (1.0, 2.0, 3.0)])
def test_a_redundant_loop_has_the_accelerations_of_its_independent_rows(rpy: Any) -> None:
    robot = tilted(pp.robots.four_bar(), rpy)
    for seed in range(3):
        q, v, _ = pp.close_loops(robot, PLANAR, *robot.random_state(seed))
        tau = np.random.default_rng(seed).normal(size=3)
        found = pp.closed_chain_dynamics(robot, PIN, q, v, tau, strict=False)
        assert not found.well_posed
        close(found.residual, np.zeros(5))
        plain = pp.closed_chain_dynamics(robot, PLANAR, q, v, tau)
        close(found.qdd, plain.qdd, 1e-9)
        close(found.forces[0, [3, 5]], plain.forces[0, [3, 5]], 1e-9)
        with pytest.raises(pp.SingularError, match="strict=False"):
            pp.closed_chain_dynamics(robot, PIN, q, v, tau)


@pytest.mark.parametrize(
    ("free", "sentence"),
    [
        ("glue", "free='glue' is no joint that can close it; weld, revolute"),
        ("free", "free='free' is no joint that can close it"),
        (np.ones((6, 2)), "columns of free depend on each other; leave some out"),
        (np.eye(3), r"free has shape \(3, 3\), needs the name of a hinge kind or \(6, m\)"),
        (np.zeros((6, 0)), r"free has shape \(6, 0\)"),
        (None, r"needs the name of a hinge kind"),
        (np.full((6, 1), np.nan), "every number must be finite"),
        (["revolute"], "needs numbers"),
    ],
)
def test_a_wrong_loop_is_refused_in_one_sentence(free: Any, sentence: str) -> None:
    with pytest.raises(pp.ModelError, match=f"loop 'coupler_tip' to 'rocker_tip': .*{sentence}"):
        pp.Loop(*TIPS, free=free)


@pytest.mark.parametrize(
    ("loops", "sentence"),
    [
        ([], "needs a list of at least one Loop"),
        (None, "needs a list of at least one Loop"),
        (pp.Loop(*TIPS), "needs a list of at least one Loop"),
        ([TIPS], "needs a list of Loops, got tuple"),
        (["coupler_tip"], "needs a list of Loops, got str"),
        ([pp.Grasp(*TIPS)], "needs a list of Loops, got Grasp"),
        ([pp.Loop("coupler_tpi", "rocker_tip")], "no frame 'coupler_tpi'; did you mean"),
        ([pp.Loop("coupler", "coupler_tip")], "both fixed to 'coupler', so nothing can close"),
    ],
)
def test_what_are_no_loops_is_refused_in_one_sentence(loops: Any, sentence: str) -> None:
    robot = pp.robots.four_bar()
    with pytest.raises((TypeError, pp.ModelError), match=sentence):
        pp.closed_chain_dynamics(robot, loops, robot.neutral(), np.zeros(3), np.zeros(3))
