"""Welded bodies keep their names, and their inertias are parameters of the robot."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import phipsi as pp
from phipsi.model.robot import from_json
from tests.agreement.test_hinges import pin
from tests.zoo import State, close, random_builder, random_inertia

pytestmark = pytest.mark.usefixtures("interpreted")

PLACE = pp.Transform.of(pp.spatial.rotation.from_rpy(0.4, -0.7, 1.1), (0.1, -0.2, 0.3))


def parameters(inertia: dict[str, object]) -> np.ndarray:
    """The ten parameters of a body that a builder describes."""
    robot = pp.Builder("one").body("b", **inertia).hinge("h", "free", "world", "b").build()
    return robot.parameter("inertia:b")


def loaded(inertia: dict[str, object] | None, seed: int = 3) -> pp.Robot:
    """A random tree with an adapter on its last body and a payload on that; None: no payload."""
    rng = np.random.default_rng(seed)
    kinds = ("revolute", "prismatic", "spherical")
    builder = random_builder(rng, 4, kinds=kinds, roots=("free",), massless=False)
    builder.body("adapter", **random_inertia(rng))
    builder.hinge("bolts", "weld", "body3", "adapter", position=(0.3, 0.1, 0.2), rpy=(1, 2, 3))
    if inertia is not None:
        builder.body("payload", **inertia)
        builder.hinge("grip", "weld", "adapter", "payload", placement=PLACE)
    return builder.build()


def carrier(robot: pp.Robot) -> pp.Body:
    """The moving body with the payload."""
    return robot.bodies[robot.body_index("body3")]


RNG = np.random.default_rng(5)
HEAVY, LIGHT = random_inertia(RNG), random_inertia(RNG)


def pinocchio_accelerations(inertia: dict[str, object], s: State) -> np.ndarray:
    """Pinocchio's, with the payload appended to the robot without one."""
    bare = loaded(None)
    model = pp.interop.to_pinocchio_model(bare)
    adapter = bare.frame("adapter")
    pose = pin.SE3(np.asarray((adapter.placement @ PLACE).matrix, float))
    body = pin.Inertia(inertia["mass"], np.asarray(inertia["com"]), np.asarray(inertia["inertia"]))
    model.appendBodyToJoint(1 + bare.body_index(adapter.body), body, pose)
    q, v, tau = pp.interop.to_pinocchio(bare, s.q, s.v, tau=s.tau, joints=model)
    a = pin.aba(model, model.createData(), q, v, tau)
    return pp.interop.from_pinocchio(bare, q, v, a, joints=model)[2]


def test_the_inertia_of_a_payload_is_an_input() -> None:
    robot, s = loaded(LIGHT), State(loaded(LIGHT))
    given = parameters(HEAVY)
    expected = pp.forward_dynamics(loaded(HEAVY), s.q, s.v, s.tau)
    close(robot.parameter("inertia:payload"), parameters(LIGHT))
    kernel = pp.forward_dynamics.compile(robot, inputs=("inertia:payload",))
    close(kernel(s.q, s.v, s.tau, given), expected)
    close(kernel(s.q, s.v, s.tau, given), pinocchio_accelerations(HEAVY, s))
    changed = robot.with_parameters({"inertia:payload": given})
    close(pp.forward_dynamics(changed, s.q, s.v, s.tau), expected)
    close(pp.poses(changed, s.q), pp.poses(robot, s.q))
    assert changed.mass == pytest.approx(loaded(HEAVY).mass)
    rows = np.stack([given, parameters(LIGHT), np.zeros(10)])
    alone = pp.forward_dynamics(loaded(None), s.q, s.v, s.tau)
    each = kernel(s.q, s.v, s.tau, rows)
    close(each, np.stack([expected, pp.forward_dynamics(robot, s.q, s.v, s.tau), alone]))


@pytest.mark.parametrize("unroll", [True, False])
def test_derivatives_by_the_inertia_of_a_payload(unroll: bool) -> None:
    """Inverse dynamics are linear in it: the derivative times the payload is what it adds, by
    Pinocchio's accelerations."""
    robot, s = loaded(LIGHT), State(loaded(LIGHT))
    by = pp.inverse_dynamics.derivative("inertia:payload")
    for inertia in (LIGHT, HEAVY):
        a = pinocchio_accelerations(inertia, s)
        bare = pp.inverse_dynamics(loaded(None), s.q, s.v, a)
        slope = by.compile(robot, unroll=unroll)(s.q, s.v, a)
        close(bare + slope @ parameters(inertia), s.tau, 1e-9)
    gradient = pp.kinetic_energy.derivative("inertia:payload", mode="reverse")(robot, s.q, s.v)
    added = pp.kinetic_energy(loaded(HEAVY), s.q, s.v) - pp.kinetic_energy(loaded(None), s.q, s.v)
    close(np.reshape(gradient, 10) @ parameters(HEAVY), added)


def test_a_body_and_what_is_welded_to_it_in_any_order() -> None:
    """The inertia of the moving body is that of the whole; a payload takes the old one's place."""
    robot, s = loaded(LIGHT), State(loaded(LIGHT))
    whole = 1.5 * robot.parameter("inertia:body3")
    names = ("inertia:payload", "inertia:body3")
    carried = carrier(robot).welded[1]
    assert carried.name == "payload"
    heavy = pp.spatial.SpatialInertia.of_parameters(parameters(HEAVY))
    sum_ = whole - carried.carried.parameters + carried.placement.congruence(heavy).parameters
    expected = pp.mass_matrix(robot.with_parameters({"inertia:body3": sum_}), s.q)
    values = {"inertia:payload": parameters(HEAVY), "inertia:body3": whole}
    for order in (names, names[::-1]):
        new = robot.with_parameters({name: values[name] for name in order})
        close(pp.mass_matrix(new, s.q), expected)
        kernel = pp.mass_matrix.compile(robot, inputs=order)
        close(kernel(s.q, *(values[name] for name in order)), expected)


def test_names_outlive_every_change() -> None:
    robot, given, s = loaded(LIGHT), parameters(HEAVY), State(loaded(LIGHT))
    heavy = loaded(HEAVY)
    text = pp.model.json.to_json(robot)
    for same in (from_json(text), pickle.loads(pickle.dumps(robot)), robot.edit().build()):
        assert same == robot
        close(same.parameter("inertia:payload"), parameters(LIGHT))
    h = robot.hinge("hinge3")
    last, q = robot.locked(h.name, s.q), np.delete(s.q, np.r_[h.q])
    assert [w.name for b in last.bodies for w in b.welded] == ["body3", "adapter", "payload"]
    put = last.with_parameters({"inertia:payload": given})
    close(pp.mass_matrix(put, q), pp.mass_matrix(heavy.locked(h.name, s.q), q))
    close(last.parameter("inertia:body3"), carrier(robot).bare.parameters.astype(float))
    two = pp.combine({"l": robot, "r": robot}).with_parameters({"inertia:r/payload": given})
    both = pp.combine({"l": robot, "r": heavy})
    q2 = np.tile(s.q, 2)
    close(pp.mass_matrix(two, q2), pp.mass_matrix(both, q2))
    close(pp.mass_matrix(robot.equivalent.with_parameters({"inertia:payload": given}), s.q),
          pp.mass_matrix(heavy, s.q))  # fmt: skip


def test_payloads_of_another_base() -> None:
    robot, s = pp.robots.space_arm(), State(pp.robots.space_arm())
    at = robot.frame("tool")
    held = robot.edit().body("payload")
    held.hinge("grip", "weld", at.body, "payload", placement=at.placement @ PLACE)
    arm = held.build()
    given = parameters(HEAVY)
    other = pp.rebase(arm, at.body)
    q, v = other.state(s.q, s.v)
    found = pp.kinetic_energy(other.robot.with_parameters({"inertia:payload": given}), q, v)
    heavy = pp.Builder("box").body("payload", **HEAVY).hinge("grip", "free", "world", "payload")
    expected = pp.kinetic_energy(robot.attach(heavy.build(), at="tool", placement=PLACE), s.q, s.v)
    close(found, expected)
    assert abs(expected - pp.kinetic_energy(robot, s.q, s.v)) > 0.1


def test_what_has_no_inertia_that_moves() -> None:
    robot = (
        pp.Builder("arm")
        .body("plinth", mass=3)
        .body("link", mass=1, inertia=(1, 1, 1))
        .hinge("bolts", "weld", "world", "plinth")
        .hinge("pivot", "revolute", "plinth", "link", axis=(0, 0, 1))
        .frame("tip", "link")
        .build()
    )
    for name, words in {
        "plinth": "'plinth' is fixed to the world and has no inertia that moves; name a body",
        "tip": "'tip' is a frame of body 'link' and has no inertia that moves; name a body",
        "world": "'world' is fixed to the world",
        "lnik": "no body 'lnik'; did you mean 'link'",
    }.items():
        with pytest.raises(pp.ModelError, match=words):
            robot.parameter(f"inertia:{name}")


def test_welded_bodies_in_the_tree_and_as_data() -> None:
    robot = loaded(LIGHT)
    body = carrier(robot)
    assert f"adapter ({body.welded[0].inertia.mass:.6g} kg), payload (" in str(robot)
    total = sum((w.carried for w in body.welded), body.bare)
    close(total.parameters.astype(float), body.inertia.parameters.astype(float))
    with pytest.raises(pp.ModelError, match="two bodies are named 'payload'"):
        robot.edit().body("payload").hinge("x", "weld", "world", "payload").build()
