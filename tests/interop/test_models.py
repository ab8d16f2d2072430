"""Exported robots move in Pinocchio and MuJoCo as here, and their frames are where ours are."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

import phipsi as pp
from phipsi.interop import (
    from_mujoco,
    from_pinocchio,
    to_mujoco,
    to_mujoco_model,
    to_mujoco_spec,
    to_pinocchio,
    to_pinocchio_model,
)
from phipsi.model import KINDS
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot
from tests.model.urdf_files import SOUND
from tests.zoo import MOVING, State, close, random_forest

pytestmark = pytest.mark.usefixtures("interpreted")

pin: Any = pytest.importorskip("pinocchio")
mujoco: Any = pytest.importorskip("mujoco")

SHARED = ("revolute", "continuous", "prismatic", "spherical")
"""Kinds of hinge that MuJoCo has anywhere in a tree."""


def same_in_pinocchio(robot: pp.Robot, tolerance: float = 1e-10, count: int = 2) -> None:
    """Mass matrix, forward and inverse dynamics, and poses of bodies and frames."""
    model = to_pinocchio_model(robot)
    data, bodies = model.createData(), {body.name for body in robot.bodies}
    order = to_pinocchio(robot, robot.neutral(), np.arange(robot.nv))[1].astype(int)
    for seed in range(count):
        s = State(robot, seed=seed)
        q, v, a, tau = to_pinocchio(robot, s.q, s.v, s.a, s.tau)
        for x, y in zip((q, v), to_pinocchio(robot, s.q, s.v, joints=model), strict=True):
            np.testing.assert_array_equal(x, y)
        M = np.triu(pin.crba(model, data, q))
        close(pp.mass_matrix(robot, s.q)[np.ix_(order, order)], M + np.triu(M, 1).T, tolerance)
        found = pin.aba(model, data, q, v, tau)
        close(from_pinocchio(robot, q, a=found)[1], forward(robot, s), tolerance)
        found = pin.rnea(model, data, q, v, a)
        close(from_pinocchio(robot, q, tau=found)[1], inverse(robot, s), tolerance)
        pin.framesForwardKinematics(model, data, q)
        for name, X in poses(robot, s.q):
            kind = pin.FrameType.BODY if name in bodies else pin.FrameType.OP_FRAME
            i = model.getFrameId(name, kind)
            close(data.oMf[i].homogeneous, X)


def same_in_mujoco(robot: pp.Robot, tolerance: float = 1e-9, count: int = 2) -> None:
    """The same, with mj_fullM, mj_forward, mj_inverse, xpos and site_xpos."""
    model = to_mujoco_model(robot)
    data, M = mujoco.MjData(model), np.empty((robot.nv, robot.nv))
    for seed in range(count):
        s = State(robot, seed=seed)
        data.qpos, data.qvel, data.qfrc_applied = to_mujoco(
            robot, s.q, s.v, tau=s.tau, joints=model
        )
        mujoco.mj_forward(model, data)
        _, v, a = from_mujoco(robot, data.qpos, data.qvel, data.qacc, joints=model)
        close(v, s.v)
        close(a, forward(robot, s), tolerance)
        mujoco.mj_fullM(model, data, M)
        _, qvel = to_mujoco(robot, s.q, s.v, joints=model)
        close(qvel @ M @ qvel, s.v @ pp.mass_matrix(robot, s.q) @ s.v)
        _, _, data.qacc = to_mujoco(robot, s.q, s.v, s.a, joints=model)
        mujoco.mj_inverse(model, data)
        tau = from_mujoco(robot, data.qpos, tau=data.qfrc_inverse, joints=model)[1]
        close(tau, inverse(robot, s), tolerance)
        for name, X in poses(robot, s.q):
            there = data.site(name) if name in robot.frames else data.body(name)
            position, R = (there.xpos, there.xmat)
            close(position, X[:3, 3])
            close(R.reshape(3, 3), X[:3, :3])


def forward(robot: pp.Robot, s: State) -> np.ndarray:
    return pp.forward_dynamics(robot, s.q, s.v, s.tau)


def inverse(robot: pp.Robot, s: State) -> np.ndarray:
    return pp.inverse_dynamics(robot, s.q, s.v, s.a)


def poses(robot: pp.Robot, q: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Of every body and every frame, by name."""
    for body, X in zip(robot.bodies, pp.poses(robot, q), strict=True):
        if body.name not in robot.frames:
            yield body.name, X
    for name in (*robot.frames, robot.bodies[-1].name):
        yield name, pp.frame_pose(robot, q, name)


def mujoco_forest(seed: int, n: int = 6, root: str = "free") -> pp.Robot:
    """A forest that MuJoCo can have: one armature for each inner hinge, none for free ones."""
    robot = random_forest(seed, n, kinds=SHARED, roots=(root,), massless=False, armature=False)
    inner = [h for h in robot.hinges if h.kind.name != "free"]
    return robot.with_parameters(
        {f"armature:{h.name}": np.full(h.kind.nv, 0.1 * i) for i, h in enumerate(inner)}
    )


# ---- the zoo, packaged robots and files ---------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kinds", [*((kind,) for kind in MOVING), MOVING], ids="+".join)
def test_every_kind_of_hinge_in_pinocchio(kinds: tuple[str, ...], seed: int) -> None:
    same_in_pinocchio(random_forest(seed, 5, kinds=kinds, massless=False))


@pytest.mark.parametrize("seed", range(4))
def test_massless_and_welded_bodies_in_pinocchio(seed: int) -> None:
    same_in_pinocchio(random_forest(seed, 7), 1e-8)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("root", ["free", *SHARED])
def test_forests_in_mujoco(root: str, seed: int) -> None:
    same_in_mujoco(mujoco_forest(seed, root=root))


@pytest.mark.parametrize("name", pp.robots.ROBOTS)
def test_packaged_robots(name: str) -> None:
    robot = pp.robots.ROBOTS[name]()
    same_in_pinocchio(robot)
    if name not in ("puma560", "flexible_link_arm"):
        same_in_mujoco(robot)


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("name", ["panda", "ur5_robot", "kinova", "double_pendulum_continuous"])
def test_files_beside_pinocchios_own_reader(name: str, base: Literal["fixed", "free"]) -> None:
    root = (pin.JointModelFreeFlyer(),) if base == "free" else ()
    read = pin.buildModelFromUrdf(str(SOUND[name]), *root)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pp.ModelWarning)
        robot = pp.load(SOUND[name], base=base)
    model = to_pinocchio_model(robot)
    assert sorted(model.names) == sorted(read.names) and model.nq == read.nq
    s = State(robot)
    for theirs in (model, read):
        q, v, tau = to_pinocchio(robot, s.q, s.v, tau=s.tau, joints=theirs)
        a = pin.aba(theirs, theirs.createData(), q, v, tau)
        close(from_pinocchio(robot, q, a=a, joints=theirs)[1], forward(robot, s))
    data, other = model.createData(), read.createData()
    pin.framesForwardKinematics(model, data, to_pinocchio(robot, s.q, joints=model))
    pin.framesForwardKinematics(read, other, to_pinocchio(robot, s.q, joints=read))
    links = {f.name for f in read.frames if f.type == pin.FrameType.BODY} - {"universe", "world"}
    for name in links:
        i, j = model.getFrameId(name), read.getFrameId(name, pin.FrameType.BODY)
        close(data.oMf[i].homogeneous, other.oMf[j].homogeneous)
    fields = ["lowerPositionLimit", "upperPositionLimit", "effortLimit", "velocityLimit", "damping"]
    for h in robot.hinges:
        mine, own = (m.joints[m.getJointId(h.name)] for m in (model, read))
        assert mine.shortname() == own.shortname()
        for field in fields:
            part = (slice(j.idx_q, j.idx_q + j.nq) if "Position" in field else
                    slice(j.idx_v, j.idx_v + j.nv) for j in (mine, own))  # fmt: skip
            x, y = (getattr(m, field)[i] for m, i in zip((model, read), part, strict=True))
            np.testing.assert_array_equal(x, y, err_msg=f"{field} of {h.name}")


# ---- as people combine it -----------------------------------------------------------------------


def test_a_rebased_robot() -> None:
    robot = pp.rebase(pp.robots.space_arm(), "wrist_roll_link").robot
    same_in_pinocchio(robot)
    same_in_mujoco(robot)


def test_an_arm_with_a_payload() -> None:
    load = pp.Builder("load").body("load", 3.0, (0.1, 0.0, 0.2), (0.1, 0.2, 0.25))
    load.hinge("load", "free", "world", "load").frame("grip", "load", position=(0, 0, 0.1))
    robot = pp.robots.seven_axis_arm().attach(load.build(), at="tool")
    assert "grip" in robot.frames
    same_in_pinocchio(robot)
    same_in_mujoco(robot)


def two_arms_and_an_object() -> pp.Robot:
    """A forest of three trees, one of them free and placed somewhere."""
    arm, slope = pp.robots.seven_axis_arm(), np.asarray(rot.from_rpy(0.3, -0.5, 2.0), float)
    thing = pp.Builder("thing").body("thing", 2.0, (0.1, 0.2, 0.0), (0.1, 0.2, 0.25))
    thing.hinge("thing", "free", "world", "thing")
    builder = pp.Builder("three").add(arm, prefix="left/")
    builder.add(arm, prefix="right/", placement=Transform.of(slope, (0.0, 1.0, 0.2)))
    return builder.add(thing.build(), placement=Transform.of(slope, (1.0, 2.0, 3.0))).build()


def test_two_arms_and_an_object() -> None:
    robot = two_arms_and_an_object()
    assert not np.allclose(np.asarray(robot.hinge("thing").placement.matrix, float), np.eye(4))
    same_in_pinocchio(robot)
    same_in_mujoco(robot)


def test_states_of_a_free_body_that_is_placed_go_to_mujoco_and_back() -> None:
    robot = two_arms_and_an_object()
    for batch in ((), (5,)):
        s = State(robot, batch)
        there = to_mujoco(robot, s.q, s.v, s.a, s.tau)
        for mine, again in zip((s.q, s.v, s.a, s.tau), from_mujoco(robot, *there), strict=True):
            np.testing.assert_allclose(again, mine, atol=1e-13)
        np.testing.assert_allclose(np.sum(there[1] * there[3], -1), np.sum(s.v * s.tau, -1))


def test_a_long_chain() -> None:
    robot = pp.robots.chain(80)
    s = State(robot)
    s.v, s.tau = 0.1 * s.v, 0.1 * s.tau
    model = to_pinocchio_model(robot)
    a = pin.aba(model, model.createData(), s.q, s.v, s.tau)
    close(forward(robot, s), a, 1e-9)
    model = to_mujoco_model(robot)
    data = mujoco.MjData(model)
    data.qpos, data.qvel, data.qfrc_applied = s.q, s.v, s.tau
    mujoco.mj_forward(model, data)
    close(forward(robot, s), data.qacc, 1e-6)


def test_a_base_with_a_frame_of_its_own_name() -> None:
    root = pp.robots.space_arm().bodies[0].name
    robot = pp.robots.space_arm().edit().frame(root, root, position=(0.1, 0.2, 0.3)).build()
    same_in_pinocchio(robot)
    same_in_mujoco(robot)


def test_joints_locked_in_pinocchio() -> None:
    robot = pp.robots.seven_axis_arm()
    model = to_pinocchio_model(robot)
    lock = [model.getJointId(name) for name in ("elbow_pitch", "wrist_roll")]
    reduced = pin.buildReducedModel(model, lock, robot.neutral())
    ours = robot.locked(["elbow_pitch", "wrist_roll"])
    s = State(ours)
    close(pin.aba(reduced, reduced.createData(), s.q, s.v, s.tau), forward(ours, s))


def test_limits_of_mujoco_are_there_and_off() -> None:
    builder = pp.Builder().body("a", 1.0, inertia=(1, 1, 1)).body("b", 1.0, inertia=(1, 1, 1))
    builder.hinge("turn", "revolute", "world", "a", axis=(0, 0, 1), lower=-0.5, upper=0.25)
    builder.hinge("slide", "prismatic", "a", "b", axis=(0, 1, 0), damping=3.0, friction=1.0)
    robot = builder.build()
    model = to_mujoco_model(robot)
    np.testing.assert_array_equal(model.jnt_range[0], (-0.5, 0.25))
    data = mujoco.MjData(model)
    data.qpos[0] = 1.0
    mujoco.mj_forward(model, data)
    zero = np.zeros(2)
    close(data.qacc, pp.forward_dynamics(robot, data.qpos, zero, zero))
    model.jnt_limited[:] = model.jnt_range[:, 0] < model.jnt_range[:, 1]
    mujoco.mj_forward(model, data)
    assert data.qacc[0] < -1.0


# ---- what there is no model for -----------------------------------------------------------------


def one(kind: Any, **options: Any) -> pp.Robot:
    axis = options.pop("axis", None)
    builder = pp.Builder("one").body("a", 1.0, inertia=(1, 1, 1)).body("b", 1.0, inertia=(1, 1, 1))
    builder.hinge("root", "revolute", "world", "a", axis=(0, 0, 1))
    return builder.hinge("h", kind, "a", "b", axis=axis, **options).build()


@pytest.mark.parametrize(
    ("robot", "sentence"),
    [
        (lambda: one("universal", axis=((1, 0, 0), (0, 1, 0))), "'h' is universal, which MuJoCo"),
        (lambda: one("free"), "'h' is free on 'a'"),
        (lambda: one("spherical", armature=(1.0, 2.0, 3.0)), "'h' has more than one armature"),
        (pp.robots.puma560, "body 'link1' has no mass, or no inertia about an axis"),
        (
            lambda: pp.robots.space_arm().with_parameters({"armature:base": np.ones(6)}),
            "hinge 'base' is free with armature",
        ),
    ],
)
def test_what_mujoco_cannot_have_is_said(robot: Any, sentence: str) -> None:
    for export in (to_mujoco_model, to_mujoco_spec):
        with pytest.raises(pp.ModelError, match=sentence) as raised:
            export(robot())
        assert "\n" not in str(raised.value)


def test_a_kind_of_hinge_that_pinocchio_lacks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    new = replace(KINDS["cylindrical"], name="telescopic")
    table: Any = KINDS
    monkeypatch.setitem(table, "telescopic", new)
    robot = one("telescopic", axis=(0, 0, 1))
    assert np.isfinite(pp.forward_dynamics(robot, *robot.random_state(0), np.ones(3))).all()
    with pytest.raises(pp.ModelError, match="hinge 'h' is telescopic, for which Pinocchio has no"):
        to_pinocchio_model(robot)


@pytest.mark.parametrize("seed", range(20))
def test_thin_plates_in_mujoco(seed: int) -> None:
    """I_zz = I_xx + I_yy but for rounding, about axes anyhow."""
    rng = np.random.default_rng(seed)
    R = np.asarray(rot.from_rpy(*rng.uniform(-3, 3, 3)), float)
    x, y = rng.uniform(0.01, 1.0, 2)
    inertia = R @ np.diag([x, y, x + y]) @ R.T
    builder = pp.Builder("plate").body("plate", 1.0, rng.normal(size=3), inertia)
    same_in_mujoco(builder.hinge("h", "free", "world", "plate").build())


@pytest.mark.parametrize(
    ("module", "export", "sentence"),
    [
        ("pinocchio", to_pinocchio_model, r"^to_pinocchio_model needs Pinocchio: pip install pin$"),
        (
            "mujoco",
            to_mujoco_model,
            r"^to_mujoco_model needs mujoco: pip install 'phipsi\[mjcf\]'$",
        ),
    ],
)
def test_what_is_not_installed(
    module: str, export: Any, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=sentence):
        export(pp.robots.double_pendulum())
