"""Grasps against dense KKT systems and the laws of contact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phipsi as pp
from phipsi.model import CONTACTS
from phipsi.model.constraints import ContactName
from phipsi.spatial import Transform
from tests.algorithms.closures import Dense, bases, carry, closing, rows
from tests.sweeps.test_looped import flat
from tests.zoo import State, close

pytestmark = pytest.mark.usefixtures("interpreted")

law = settings(max_examples=settings().max_examples // 16)


def box(builder: pp.Builder, *, joints: bool = False) -> pp.Builder:
    """A free object, rigid or with a slide and a hinge in it (a plunger, a pair of shears)."""
    builder.body("box", mass=3.0, com=(0.01, 0.02, -0.01), inertia=(0.05, 0.06, 0.04))
    builder.hinge("box", "free", "world", "box")
    if joints:
        builder.body("plunger", mass=0.5, com=(0, 0, 0.05), inertia=(0.01, 0.01, 0.005))
        builder.hinge("plunger", "prismatic", "box", "plunger", axis=(0, 0.6, 0.8))
        builder.body("blade", mass=0.7, com=(0.1, 0, 0), inertia=(0.01, 0.02, 0.02))
        builder.hinge("blade", "revolute", "plunger", "blade", axis=(0, 1, 0), armature=0.02)
    return builder


def held(
    seed: int, contacts: list[ContactName], *, shared: bool, joints: bool = False
) -> tuple[pp.Robot, list[pp.Grasp], State]:
    """Seven-axis arms, on one free base or each on the world, that touch an object; a state in
    which every contact holds."""
    rng = np.random.default_rng(seed)
    builder = box(pp.Builder("holding", gravity=rng.normal(0, 5, 3)), joints=joints)
    if shared:
        builder.body("base", mass=40.0, inertia=(5, 6, 7)).hinge("base", "free", "world", "base")
    arm = pp.robots.seven_axis_arm()
    for i, _ in enumerate(contacts):
        mount = Transform.of(position=rng.normal(0, 0.5, 3))
        builder.add(arm, prefix=f"{i}/", at="base" if shared else "world", placement=mount)
    robot = builder.build()
    s = State(robot, seed=seed)
    parts = ["box", "plunger", "blade"] if joints else ["box"]
    grasps = []
    builder = robot.edit()
    for i, contact in enumerate(contacts):
        part, tip = parts[i % len(parts)], pp.frame_pose(robot, s.q, f"{i}/tool")
        X = np.linalg.inv(pp.frame_pose(robot, s.q, part)) @ tip
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        turn *= np.linalg.det(turn)
        R = X[:3, :3] if contact != "rolling" else turn  # the face under the ball lies anyhow
        radius = 0.05 if contact == "rolling" else 0.0
        at = Transform.of(R, X[:3, 3] - radius * R[:, 2])
        builder.frame(f"{i}/face", part, placement=at)
        grasps.append(pp.Grasp(f"{i}/tool", f"{i}/face", contact, radius=radius))
    robot = builder.build()
    closing(robot, grasps, s)
    return robot, grasps, s


@law
@given(
    st.integers(0, 10**6),
    st.lists(st.sampled_from(tuple(CONTACTS)), min_size=1, max_size=3),
    st.booleans(),
    st.booleans(),
)
def test_a_grasp_is_the_dense_kkt_solution(
    seed: int, contacts: list[ContactName], shared: bool, joints: bool
) -> None:
    robot, grasps, s = held(seed, contacts, shared=shared, joints=joints)
    dense = Dense(robot, grasps, s)
    found = pp.grasp_dynamics(robot, grasps, s.q, s.v, s.tau, external=s.external)
    close(found.qdd, dense.qdd, 1e-10 if dense.exact else 1e-7)
    assert found.well_posed
    whole = pp.grasp_dynamics(robot, grasps, s.q, s.v, s.tau, external=s.external, together=True)
    close(whole.qdd, found.qdd, 1e-9)
    close(whole.forces, found.forces, 1e-9)
    if dense.exact:
        close(found.forces, [-f for f in dense.forces])


def test_internal_forces_squeeze_and_do_not_move() -> None:
    robot, grasps, s = held(5, ["rigid", "soft_finger", "rigid"], shared=False)
    found = pp.grasp_dynamics(robot, grasps, s.q, s.v, s.tau)
    own = robot.hinge("box").v

    def on_the_box(forces: Any) -> Any:
        J = (pp.jacobian(robot, s.q, g.b)[:, own] for g in grasps)
        X = (np.linalg.inv(pp.frame_pose(robot, s.q, g.b)) @ pp.frame_pose(robot, s.q, g.a)
             for g in grasps)  # fmt: skip
        return sum(j.T @ carry(x) @ f for j, x, f in zip(J, X, forces, strict=True))

    close(on_the_box(found.internal), np.zeros(6))
    M, C = pp.mass_matrix(robot, s.q), pp.bias_force(robot, s.q, s.v)
    moves = (M @ found.qdd + C - s.tau)[own]
    close(on_the_box(found.forces - found.internal), moves, 1e-9)
    assert np.abs(found.internal).max() > 0.1
    apart = (found.internal * (found.forces - found.internal)).sum()
    assert abs(apart) < 1e-9 * np.abs(found.forces).max() ** 2  # least of its kind


def test_effective_inertia_of_a_held_object_is_its_own_and_that_of_every_arm() -> None:
    robot, grasps, s = held(8, ["rigid", "point", "line"], shared=False)
    found = pp.effective_inertia(robot, grasps, s.q, "box")
    expected = np.zeros((6, 6))
    own = robot.hinge("box").v
    expected += pp.mass_matrix(robot, s.q)[own, own]
    inverse = np.linalg.inv(pp.mass_matrix(robot, s.q))
    for g, Q in zip(grasps, bases(robot, grasps, s.q), strict=True):
        J = pp.jacobian(robot, s.q, g.a)
        own_arm = Q @ np.linalg.inv(Q.T @ J @ inverse @ J.T @ Q) @ Q.T
        X = np.linalg.inv(pp.frame_pose(robot, s.q, "box")) @ pp.frame_pose(robot, s.q, g.a)
        expected += carry(X) @ own_arm @ carry(X).T
    close(found, expected, 1e-9)


def test_machine_code_gives_what_the_interpreter_gives() -> None:
    robot, grasps, s = held(8, ["rigid", "rolling"], shared=True, joints=True)
    calls: list[tuple[Any, dict[str, Any], list[Any]]] = [
        (pp.grasp_dynamics, {"grasps": grasps}, [s.q, s.v, s.tau]),
        (pp.effective_inertia, {"closures": grasps, "frames": "box"}, [s.q]),
    ]
    for program, options, values in calls:
        found, expected = (
            flat(program.compile(robot, backend=backend, **options)(*values))
            for backend in ("llvm", "numpy")
        )
        for x, y in zip(found, expected, strict=True):
            close(x, y, 1e-9)


def test_normal_force_friction_cone_and_separation() -> None:
    builder = box(pp.Builder("table", gravity=(0, 0, -10)))
    builder.body("finger", mass=1.0, inertia=(1, 1, 1))
    builder.hinge("finger", "free", "world", "finger")
    builder.frame("tip", "finger").frame("under", "box", position=(0.01, 0.02, -0.01))
    robot = builder.build()
    q, v, tau = robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv)
    q[robot.hinge("finger").q.start : robot.hinge("finger").q.start + 3] = (0.01, 0.02, -0.01)
    grasp = [pp.Grasp("tip", "under", "point", friction=0.5)]
    push = robot.hinge("finger").v.start + 3
    for force, normal, slips, parts in (
        ((0, 0, 100), 75.0, False, False),  # 3/4 of the push moves the box: masses 3 and 1
        ((30, 0, 100), 75.0, False, False),
        ((60, 0, 100), 75.0, True, False),
        ((0, 0, -100), -75.0, True, True),
    ):
        tau[push : push + 3] = force
        found = pp.grasp_dynamics(robot, grasp, q, v, tau)
        close(found.normal, [normal], 1e-12)
        assert (bool(found.slipping[0]), bool(found.separating[0])) == (slips, parts)
        close(found.forces[0, 3:], 0.75 * np.array(force), 1e-12)


def test_an_arm_that_is_singular_alone_is_solved_with_the_others() -> None:
    builder = box(pp.Builder("stretched", gravity=(0, 0, 0)))
    for side, y in (("left", 0.5), ("right", -0.5)):
        mount = Transform.of(position=(0, y, 0))
        builder.add(pp.robots.planar_chain(3), prefix=f"{side}/", placement=mount)
    robot = builder.build()
    q, v = robot.neutral(), np.zeros(robot.nv)
    tau = np.random.default_rng(0).normal(size=robot.nv)
    for i in (0, 1):  # the left arm hangs straight down, the right one is bent
        start = robot.hinge("right/joint1").q.start + i
        q[start] = 0.5
    builder = robot.edit()
    for side in ("left", "right"):
        X = pp.frame_pose(robot, q, f"{side}/tool")
        builder.frame(f"{side}/grip", "box", placement=Transform.of(X[:3, :3], X[:3, 3]))
    robot = builder.build()
    grasps = [pp.Grasp(f"{s}/tool", f"{s}/grip", "point") for s in ("left", "right")]
    s = State(robot)
    s.q, s.v, s.tau, s.external = q, v, tau, np.zeros((robot.nb, 6))
    dense = Dense(robot, grasps, s)
    found = pp.grasp_dynamics(robot, grasps, q, v, tau)
    close(found.qdd, dense.qdd, 1e-9)
    assert found.well_posed
    batch = pp.grasp_dynamics(robot, grasps, np.stack([q, q + 0.01 * (np.arange(robot.nq) > 6)]),
                              v, tau)  # fmt: skip
    close(batch.qdd[0], dense.qdd, 1e-9)
    assert batch.well_posed.all()


def test_adding_an_arm_costs_what_an_arm_costs() -> None:
    counts = []
    for n in (2, 3, 4):
        robot, grasps, _ = held(1, ["rigid"] * n, shared=False)
        counts.append(pp.grasp_dynamics.graph(robot, grasps=grasps).operations)
    assert counts[2] - counts[1] == pytest.approx(counts[1] - counts[0], rel=0.02)


def test_the_object_may_be_held_by_one_arm_alone_and_feel_its_inertia() -> None:
    robot, grasps, s = held(3, ["rigid"], shared=True)
    A = rows(robot, grasps, s.q, bases(robot, grasps, s.q))
    assert np.abs(A @ s.v).max() < 1e-10
    found = pp.grasp_dynamics(robot, grasps, s.q, s.v, s.tau)
    assert found.internal.shape == (1, 6) and np.abs(found.internal).max() < 1e-9


@pytest.mark.parametrize(
    ("grasps", "sentence"),
    [
        ([], "at least one Grasp"),
        ([pp.Loop("tip", "box")], "needs a list of Grasps, got Loop"),
        ([pp.Grasp("tip", "nowhere")], "no frame 'nowhere'"),
        ([pp.Grasp("tip", "world")], "'world' is fixed to the world"),
        ([pp.Grasp("box", "box")], "both fixed to 'box'"),
        ([pp.Grasp("box", "tip"), pp.Grasp("tip", "box")], "are not of one object"),
    ],
)
def test_a_wrong_grasp_is_refused_in_one_sentence(grasps: Any, sentence: str) -> None:
    builder = box(pp.Builder("table"))
    builder.body("finger", mass=1.0, inertia=(1, 1, 1))
    builder.hinge("finger", "free", "world", "finger").frame("tip", "finger")
    robot = builder.build()
    q, v = robot.random_state(0)
    with pytest.raises((TypeError, ValueError), match=sentence):
        pp.grasp_dynamics(robot, grasps, q, v, v)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"contact": "glue"}, "no contact 'glue'; known are rigid, point"),
        ({"contact": ["point"]}, "no contact \\['point'\\]"),
        ({"contact": "point", "friction": -1}, "friction is -1.0, needs a number ≥ 0"),
        ({"contact": "point", "torsion": 0.1}, "'point' has no torsion to bound"),
        ({"contact": "sliding_plane", "friction": 0.1}, "has no friction to bound"),
        ({"contact": "point", "radius": 0.1}, "radius is that of a ball that rolls"),
        ({"contact": "rigid", "friction": 0.5}, "a firm grip has no friction cone"),
    ],
)
def test_a_wrong_contact_is_refused_in_one_sentence(options: Any, sentence: str) -> None:
    with pytest.raises(pp.ModelError, match=sentence):
        pp.Grasp("tip", "box", **options)
