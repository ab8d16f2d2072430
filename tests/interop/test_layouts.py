"""States go to Pinocchio and MuJoCo and come back; dynamics agree on the way."""

import warnings
from typing import Literal

import numpy as np
import pytest

import phipsi as pp
from phipsi.interop import from_mujoco, from_pinocchio, to_mujoco, to_pinocchio
from phipsi.model import KINDS
from phipsi.model.hinges import HingeName
from tests.model.urdf_files import SOUND

pytestmark = pytest.mark.usefixtures("interpreted")

pin = pytest.importorskip("pinocchio")

FREE_TREE = """
<mujoco><worldbody>
  <body name="trunk"><freejoint name="root"/><geom size=".2 .1 .3" type="box" pos=".1 0 .05"/>
    <body name="arm" pos=".1 .2 .3"><joint name="elbow" axis="0 1 1"/>
      <geom size=".05 .3" type="capsule" pos="0 0 .2"/></body>
    <body name="tail" pos="-.3 0 0"><joint name="ball" type="ball"/>
      <geom size=".05 .2" type="capsule" pos="0 .1 .2"/></body></body>
  <body name="other"><freejoint name="other_root"/><geom size=".2" pos="1 0 0"/></body>
</worldbody></mujoco>
"""


def every_kind() -> pp.Robot:
    """A chain with one hinge of each kind."""
    builder, parent = pp.Builder("every"), "world"
    for i, (name, kind) in enumerate(KINDS.items()):
        builder.body(f"b{i}", 1.0, (0.1, 0.2, 0.3), (0.1, 0.12, 0.15))
        axis = ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0))[: kind.axes] if kind.axes else None
        builder.hinge(name, name, parent, f"b{i}", axis=axis, position=(0.1, 0.0, 0.2))
        parent = f"b{i}"
    return builder.build()


def state(robot: pp.Robot, batch: tuple[int, ...] = ()) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    q, v = robot.random_state(rng, batch)
    return [q, v, rng.standard_normal(v.shape), rng.standard_normal(v.shape)]


@pytest.mark.parametrize("batch", [(), (7,), (2, 3)])
def test_pinocchio_round_trip(batch: tuple[int, ...]):
    robot = every_kind()
    there = to_pinocchio(robot, *state(robot, batch))
    assert there[0].shape == (*batch, robot.nq + 2)
    for mine, again in zip(state(robot, batch), from_pinocchio(robot, *there), strict=True):
        np.testing.assert_allclose(again, mine, atol=1e-14)


@pytest.mark.parametrize("batch", [(), (7,), (2, 3)])
def test_mujoco_round_trip(batch: tuple[int, ...]):
    pytest.importorskip("mujoco")
    robot = pp.load(FREE_TREE)
    there = to_mujoco(robot, *state(robot, batch))
    for mine, again in zip(state(robot, batch), from_mujoco(robot, *there), strict=True):
        np.testing.assert_allclose(again, mine, atol=1e-14)


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize(
    "name", ["ur5_robot", "panda", "double_pendulum_continuous", "kinova", "solo12", "tiago"]
)
def test_dynamics_agree_with_pinocchio(name: str, base: Literal["fixed", "free"]):
    root = (pin.JointModelFreeFlyer(),) if base == "free" else ()
    model = pin.buildModelFromUrdf(str(SOUND[name]), *root)
    data = model.createData()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pp.ModelWarning)
        robot = pp.load(SOUND[name], base=base)
    q, v, _, tau = state(robot)
    a = pp.forward_dynamics(robot, q, v, tau)
    theirs = to_pinocchio(robot, q, v, a, tau, joints=model)
    expected = pin.aba(model, data, theirs[0], theirs[1], theirs[3])
    scale = np.abs(expected).max()
    np.testing.assert_allclose(theirs[2], expected, rtol=0, atol=1e-10 * scale)
    by_name = to_pinocchio(robot, q, v, a, tau, joints=list(model.names))
    for x, y in zip(theirs, by_name, strict=True):
        np.testing.assert_array_equal(x, y)
    back = from_pinocchio(robot, *theirs, joints=model)
    for x, y in zip((q, v, a, tau), back, strict=True):
        np.testing.assert_allclose(y, x, atol=1e-12 * max(1.0, scale))


@pytest.mark.parametrize("kind", ["planar", "spherical", "free", "universal", "helical"])
def test_pinocchio_joint_by_joint(kind: HingeName):
    """The pose and the velocity of a body on one joint are the same in both."""
    models = {
        "planar": pin.JointModelPlanar(),
        "spherical": pin.JointModelSpherical(),
        "free": pin.JointModelFreeFlyer(),
        "universal": pin.JointModelUniversal(np.array([0.0, 0, 1]), np.array([1.0, 0, 0])),
        "helical": pin.JointModelHZ(0.3),
    }
    model = pin.Model()
    model.addJoint(0, models[kind], pin.SE3.Identity(), "j")
    axis = ((0, 0, 1), (1, 0, 0))[: KINDS[kind].axes] if KINDS[kind].axes else None
    robot = (
        pp.Builder()
        .body("b", 1.0, inertia=(1, 1, 1))
        .hinge("j", kind, "world", "b", axis=axis, pitch=0.3)
        .build()
    )
    q, v, _, tau = state(robot)
    theirs = to_pinocchio(robot, q, v, tau=tau, joints=model)
    data = model.createData()
    pin.forwardKinematics(model, data, theirs[0], theirs[1])
    np.testing.assert_allclose(pp.frame_pose(robot, q, "b"), data.oMi[1].homogeneous, atol=1e-14)
    V = np.asarray(pp.velocities(robot, q, v))[0]
    np.testing.assert_allclose(V, np.r_[data.v[1].angular, data.v[1].linear], atol=1e-14)
    assert v @ tau == pytest.approx(theirs[1] @ theirs[2])


def test_mujoco_power_and_rates():
    pytest.importorskip("mujoco")
    robot = pp.load(FREE_TREE)
    q, v, a, tau = state(robot)
    _, qvel, qacc, force = to_mujoco(robot, q, v, a, tau)
    assert v @ tau == pytest.approx(qvel @ force)
    h = 1e-6
    later = to_mujoco(robot, robot.integrate(q, h * v + 0.5 * h * h * a), v + h * a)
    earlier = to_mujoco(robot, robot.integrate(q, -h * v + 0.5 * h * h * a), v - h * a)
    np.testing.assert_allclose((later[1] - earlier[1]) / (2 * h), qacc, atol=1e-7)
    free = robot.hinge("root")
    np.testing.assert_allclose(
        (later[0] - earlier[0])[free.q][:3] / (2 * h), qvel[free.v][:3], atol=1e-7
    )


def test_joint_order_of_a_mujoco_model():
    mujoco = pytest.importorskip("mujoco")
    robot = pp.load(FREE_TREE)
    other = robot.edit()
    other.bodies.reverse()
    turned = other.build()
    assert [h.name for h in turned.hinges] != [h.name for h in robot.hinges]
    model = mujoco.MjModel.from_xml_string(FREE_TREE)
    mine = state(turned)
    there = to_mujoco(turned, *mine, joints=model)
    names = [model.joint(i).name for i in range(model.njnt)]
    for x, y in zip(there, to_mujoco(turned, *mine, joints=names), strict=True):
        np.testing.assert_array_equal(x, y)
    for x, y in zip(mine, from_mujoco(turned, *there, joints=model), strict=True):
        np.testing.assert_allclose(y, x, atol=1e-14)
    h = turned.hinge("elbow")
    assert there[0][model.joint("elbow").qposadr[0]] == mine[0][h.q][0]


def test_quaternions_are_normalised_and_dtype_is_kept():
    robot = every_kind()
    q = robot.neutral().astype(np.float32)
    q[robot.hinge("spherical").q] *= 3
    there = to_pinocchio(robot, q)
    assert there.dtype == np.float32
    np.testing.assert_allclose(from_pinocchio(robot, there), robot.neutral(), atol=1e-7)


def test_one_state_and_a_batch_of_velocities():
    pytest.importorskip("mujoco")
    robot = pp.load(FREE_TREE)
    q, v = robot.random_state(0)
    _, many = to_mujoco(robot, q, np.stack([v, 2 * v]))
    _, one = to_mujoco(robot, q, v)
    np.testing.assert_allclose(many, [one, 2 * one], atol=1e-14)


def test_what_cannot_be_converted_is_said():
    robot = every_kind()
    q, *_ = state(robot)
    with pytest.raises(pp.ModelError, match="'helical' is helical, which MuJoCo does not have"):
        to_mujoco(robot, q)
    free = pp.Builder().body("b", 1.0, inertia=(1, 1, 1)).hinge("f", "free", "world", "b").build()
    with pytest.raises(ValueError, match="without v"):
        to_mujoco(free, free.neutral(), a=np.zeros(6))
    with pytest.raises(ValueError, match=r"q has shape \(3,\), but needs"):
        to_pinocchio(robot, np.zeros(3))
    for names, message in (
        (["revolute"], "missing"),
        ([*(h.name for h in robot.hinges), "x"], "unknown 'x'"),
        ([*(h.name for h in robot.hinges), "free"], "repeated 'free'"),
    ):
        with pytest.raises(pp.ModelError, match=message):
            to_pinocchio(robot, q, joints=names)
    model = pin.Model()
    model.addJoint(0, pin.JointModelSphericalZYX(), pin.SE3.Identity(), "j")
    ball = pp.Builder().body("b", 1.0, inertia=(1, 1, 1)).hinge("j", "spherical", "world", "b")
    with pytest.raises(pp.ModelError, match="Pinocchio's joint of that name has nq=3"):
        to_pinocchio(ball.build(), np.array([1.0, 0, 0, 0]), joints=model)
