"""Every body in turn as the base: the mechanics stay, and states and forces go over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast, get_args

import numpy as np
import pytest

import phipsi as pp
from phipsi.model import KINDS
from phipsi.model.hinges import REVERSED, HingeName
from phipsi.model.parts import PerCoordinate, PerFreedom
from tests.agreement.test_hinges import pin
from tests.zoo import MOVING, State, close, random_forest

seeds = pytest.mark.parametrize("seed", range(6))


pytestmark = pytest.mark.usefixtures("interpreted")


def sayable(h: pp.Hinge) -> dict[str, Any]:
    """Numbers of a hinge that another base can have, as many as there are."""
    R, new = h.kind.reversal, {}
    for name in ("armature", "damping", "stiffness", "friction", "backlash"):
        old = np.array(getattr(h, name), float)
        mixed = [i for i, source in enumerate(R.v) if source is None]
        old[mixed] = 0.0
        if name in ("armature", "damping", "stiffness"):
            old[list(R.alike)] = 0.3
        new[name] = old * (h.parent != "world")
    return new


def flyer(seed: int, n: int = 5, *, alike: bool = False, **options: Any) -> pp.Robot:
    """A forest of free trees; `alike`: each hinge with data that can be said from both sides by a
    hinge of the same kind, else any data."""
    robot = random_forest(seed, n, roots=("free",), **options)
    builder = robot.edit()
    for h in robot.hinges:
        if alike or h.parent == "world":
            builder.replace_hinge(h.name, **sayable(h))
    return builder.build()


any_data = pytest.mark.parametrize("alike", [True, False], ids=["alike", "any"])


@any_data
@seeds
def test_dynamics_do_not_depend_on_the_base(seed: int, alike: bool) -> None:
    robot = flyer(seed, alike=alike)
    s = State(robot, seed=seed)
    wrenches = {b.name: f for b, f in zip(robot.bodies, s.external, strict=True)}
    a = pp.forward_dynamics(robot, s.q, s.v, s.tau, external=wrenches)
    energy = pp.kinetic_energy(robot, s.q, s.v)
    springs = pp.passive_forces(robot, s.q, s.v)
    for body in robot.bodies:
        other = pp.rebase(robot, body.name)
        q, v = other.state(s.q, s.v)
        tau = other.force(s.q, s.tau)
        found = pp.forward_dynamics(other.robot, q, v, tau, external=wrenches)
        close(found, other.acceleration(s.q, s.v, a), 1e-9)
        close(v @ tau, s.v @ s.tau)
        close(pp.kinetic_energy(other.robot, q, v), energy)
        close(pp.passive_forces(other.robot, q, v), other.force(s.q, springs))


def test_every_body_in_turn_accelerates_as_in_pinocchio() -> None:
    """The free hinge of the rebased robot is accelerated as that body of Pinocchio's model is."""
    robot = flyer(2, 6, kinds=("revolute", "prismatic", "spherical"), massless=False)
    model = pp.interop.to_pinocchio_model(robot)
    data, s = model.createData(), State(robot)
    q, v, tau = pp.interop.to_pinocchio(robot, s.q, s.v, tau=s.tau, joints=model)
    pin.forwardKinematics(model, data, q, v, pin.aba(model, data, q, v, tau))
    for i, body in enumerate(robot.bodies):
        other = pp.rebase(robot, body.name)
        q2, v2 = other.state(s.q, s.v)
        a2 = pp.forward_dynamics(other.robot, q2, v2, other.force(s.q, s.tau))
        free = next(h for h in other.robot.hinges if h.child == body.name)
        close(a2[free.v], [*data.a[i + 1].angular, *data.a[i + 1].linear])


@any_data
@seeds
def test_every_body_and_frame_stays_where_it_is(seed: int, alike: bool) -> None:
    robot = flyer(seed, alike=alike)
    s = State(robot, seed=seed)
    names = [*(b.name for b in robot.bodies), *robot.frames]
    for body in robot.bodies:
        other = pp.rebase(robot, body.name)
        q, v = other.state(s.q, s.v)
        assert {h.name for h in other.robot.hinges} == {h.name for h in robot.hinges}
        root = next(h for h in other.robot.hinges if h.child == body.name)
        assert root.kind is KINDS["free"] and root.parent == "world"
        for name in names:
            close(pp.frame_pose(other.robot, q, name), pp.frame_pose(robot, s.q, name))
            close(
                pp.frame_velocity(other.robot, q, v, name),
                pp.frame_velocity(robot, s.q, s.v, name),
            )


@any_data
@seeds
def test_mass_matrix_and_forces_by_the_map_of_velocities(seed: int, alike: bool) -> None:
    """𝓜' = T⁻*𝓜T⁻¹ and tau' = T⁻*tau with T column by column, P'(base) = P + S = Λ."""
    robot = flyer(seed, alike=alike)
    s = State(robot, seed=seed)
    mass, unit = pp.mass_matrix(robot, s.q), np.eye(robot.nv)
    P, S = pp.articulated_inertias(robot, s.q).P, pp.dual_articulated_inertias(robot, s.q).S
    for i, body in enumerate(robot.bodies):
        other = pp.rebase(robot, body.name)
        q, columns = other.state(np.tile(s.q, (robot.nv, 1)), unit)
        inverse = np.linalg.inv(columns.T)
        close(pp.mass_matrix(other.robot, q[0]), inverse.T @ mass @ inverse, 1e-9)
        close(other.force(s.q, s.tau), inverse.T @ s.tau)
        k = other.robot.body_index(body.name)
        close(pp.articulated_inertias(other.robot, q[0]).P[k], P[i] + S[i], 1e-9)


@any_data
@seeds
def test_there_and_back(seed: int, alike: bool) -> None:
    robot = flyer(seed, alike=alike)
    s = State(robot, batch=(2,), seed=seed)
    for body in robot.bodies:
        other = pp.rebase(robot, body.name)
        q2, v2 = other.state(s.q, s.v)
        q, v = other.inverse.state(q2, v2)
        close(v, s.v)
        close(pp.poses(robot, q), pp.poses(robot, s.q))
        assert np.abs(robot.difference(q, s.q)).max() < 1e-7  # q and −q are one rotation
        close(other.inverse.force(q2, other.force(s.q, s.tau)), s.tau)
        a2 = other.acceleration(s.q, s.v, s.a)
        close(other.inverse.acceleration(q2, v2, a2), s.a)
        again = pp.rebase(other.robot, next(h.child for h in robot.hinges if h.parent == "world"))
        if len([p for p in robot.parents if p < 0]) == 1:
            q3, v3 = again.state(q2, v2)
            assert {h.name: h.child for h in again.robot.hinges} == {
                h.name: h.child for h in robot.hinges
            }
            assert dict(again.robot.frames).keys() == dict(robot.frames).keys()
            close(pp.kinetic_energy(again.robot, q3, v3), pp.kinetic_energy(robot, s.q, s.v))


@any_data
@seeds
def test_accelerations_are_the_rates_of_velocities(seed: int, alike: bool) -> None:
    robot = flyer(seed, 4, alike=alike)
    s = State(robot, seed=seed)
    step = 1e-5
    for body in robot.bodies:
        other = pp.rebase(robot, body.name)
        ahead, behind = (
            other.state(robot.integrate(s.q, t * s.v), s.v + t * s.a)[1] for t in (step, -step)
        )
        rate = (ahead - behind) / (2 * step)
        close(other.acceleration(s.q, s.v, s.a), rate, 1e-6)
        _, v = other.state(s.q, s.v)
        q_ahead = other.state(robot.integrate(s.q, step * s.v), s.v)[0]
        q_behind = other.state(robot.integrate(s.q, -step * s.v), s.v)[0]
        close(other.robot.difference(q_behind, q_ahead) / (2 * step), v, 1e-6)


@any_data
@pytest.mark.parametrize("kind", MOVING)
def test_each_kind_turned_round(kind: HingeName, alike: bool) -> None:
    """Pose and velocity of a hinge from the other side, on a robot of two bodies."""
    robot = flyer(3, 2, alike=alike, kinds=(kind,), branching=False, massless=False)
    s = State(robot, batch=(3,))
    other = pp.rebase(robot, "body1")
    q, v = other.state(s.q, s.v)
    h, back = robot.hinge("hinge1"), other.robot.hinge("hinge1")
    assert (back.parent, back.child) == ("body1", "body0")
    assert back.kind is h.kind or (back.kind.forward is h.kind and not alike)
    if h.kind.nv == 1:
        assert (q[:, back.q] == s.q[:, h.q]).all() and (v[:, back.v] == s.v[:, h.v]).all()
    close(pp.kinetic_energy(other.robot, q, v), pp.kinetic_energy(robot, s.q, s.v))
    for name in ("body0", "body1", "tool"):
        close(pp.frame_pose(other.robot, q, name), pp.frame_pose(robot, s.q, name))


def test_the_base_itself_is_the_same_robot() -> None:
    robot = pp.robots.space_arm()
    other = pp.rebase(robot, robot.bodies[0].name)
    assert other.robot == robot
    s = State(robot)
    for found, given in zip(other.state(s.q, s.v), (s.q, s.v), strict=True):
        assert (found == given).all()
    assert (other.force(s.q, s.tau) == s.tau).all()
    assert (other.acceleration(s.q, s.v, s.a) == s.a).all()


def test_data_of_hinges_go_over() -> None:
    robot = (
        pp.Builder("pair")
        .body("a", mass=1, inertia=(1, 1, 1))
        .body("b", mass=2, inertia=(1, 2, 2))
        .body("c", mass=2, inertia=(1, 2, 2))
        .hinge("float", "free", "world", "a")
        .hinge("u", "universal", "a", "b", axis=[(1, 0, 0), (0, 1, 0)], lower=(-1, -2),
               upper=(1, 2), armature=(0.1, 0.2), effort=(3, 4), rest=(0.5, 0.6))
        .hinge("r", "revolute", "b", "c", axis=(0, 0, 1), lower=-0.5, upper=2.5, velocity=7,
               friction=0.1, backlash=0.01, mimic=pp.Mimic("u", 2.0))
        .build()
    )  # fmt: skip
    other = pp.rebase(robot, "c").robot
    u, r = other.hinge("u"), other.hinge("r")
    found = [list(getattr(u, name)) for name in ("lower", "upper", "armature", "effort", "rest")]
    assert found == [[-2, -1], [2, 1], [0.2, 0.1], [4, 3], [0.6, 0.5]]
    assert [list(axis) for axis in u.axes] == [[0, -1, 0], [-1, 0, 0]]
    assert (r.lower, r.upper, r.velocity, r.friction, r.backlash) == (-0.5, 2.5, 7, 0.1, 0.01)
    assert r.mimic == pp.Mimic("u", 2.0)


def ball(kind: HingeName, **numbers: Any) -> pp.Robot:
    return (
        pp.Builder("ball")
        .body("a", mass=1, inertia=(1, 1, 1))
        .body("b", mass=2, inertia=(1, 2, 2))
        .hinge("float", "free", "world", "a")
        .hinge("joint", kind, "a", "b", axis=(0, 0, 1) if kind == "planar" else None, **numbers)
        .build()
    )


LOST = {
    "armature": ("spherical", {"armature": (1, 1, 2)}),
    "friction": ("spherical", {"friction": 1, "backlash": 0.1}),
    "springs": ("planar", {"stiffness": (1, 1, 0), "rest": (1, 2, 3)}),
    "dampers": ("free", {"damping": (1, 1, 1, 0, 0, 1)}),
    "limits": ("planar", {"lower": (-1, -1, -2), "upper": (1, 1, 2), "effort": (1, 2, 3)}),
}


@pytest.mark.parametrize("what", LOST)
def test_what_cannot_be_said_in_other_coordinates_keeps_its_own(
    what: str, recwarn: pytest.WarningsRecorder
) -> None:
    """Nothing is lost, in any order, in JSON, and back again the robot is the same."""
    kind, numbers = LOST[what]
    robot = ball(cast("HingeName", kind), **numbers)
    other = pp.rebase(robot, "b").robot
    assert not recwarn.list
    h, back = robot.hinge("joint"), other.hinge("joint")
    assert back.kind is REVERSED[f"reversed_{kind}"]
    for name in (*get_args(PerFreedom), *get_args(PerCoordinate)):
        assert (getattr(back, name) == getattr(h, name)).all()
    assert pp.load(pp.model.json.to_json(other)) == other
    again = pp.rebase(other, "a").robot
    assert again.hinge("joint").kind is h.kind
    s = State(robot)
    close(pp.mass_matrix(again, s.q), pp.mass_matrix(robot, s.q))
    close(pp.passive_forces(again, s.q, s.v), pp.passive_forces(robot, s.q, s.v))


def test_limits_of_the_free_hinge_are_dropped_with_a_warning_at_the_call() -> None:
    robot = pp.robots.space_arm()
    free = robot.hinges[0].name
    held = robot.edit().replace_hinge(free, effort=np.ones(6)).build()
    with pytest.warns(pp.ModelWarning, match=rf"{free!r} is free: its limits \(effort\)") as found:
        pp.rebase(held, robot.bodies[-1].name)
    assert [w.filename for w in found] == [__file__]


def test_bases_that_cannot_be() -> None:
    with pytest.raises(pp.ModelError, match=r"root joint .* is not free"):
        pp.rebase(pp.robots.puma560(), pp.robots.puma560().bodies[2].name)
    robot = pp.robots.space_arm()
    with pytest.raises(pp.ModelError, match="no body 'hat'"):
        pp.rebase(robot, "hat")
    with pytest.raises(pp.ModelError, match="'world' is no body"):
        pp.rebase(robot, "world")
    on = robot.frame("tool").body
    with pytest.raises(pp.ModelError, match=f"'tool' is a frame of body {on!r}; rebase to that"):
        pp.rebase(robot, "tool")
    corner = robot.edit().frame("corner", "world").build()
    with pytest.raises(pp.ModelError, match="'corner' is a frame of the world; name a body"):
        pp.rebase(corner, "corner")
    h = robot.hinges[0]
    damped = robot.edit().replace_hinge(h.name, damping=np.ones(6)).build()
    with pytest.raises(pp.ModelError, match=f"{h.name!r} is free with damping"):
        pp.rebase(damped, robot.bodies[3].name)
    heavy = robot.edit().replace_hinge(h.name, armature=np.ones(6)).build()
    with pytest.raises(pp.ModelError, match=f"{h.name!r} is free with armature"):
        pp.rebase(heavy, robot.bodies[3].name)


@pytest.mark.parametrize("given", [("x", "tool"), (None, "tool"), (pp.robots.space_arm(), ["b"])])
def test_no_robot_or_no_name(given: Any) -> None:
    with pytest.raises(TypeError, match=r"^rebase needs a Robot and the name of a body, got "):
        pp.rebase(*given)


def test_two_trees_with_new_bases() -> None:
    """One map over both, there and back: as one after the other."""
    left, right = (flyer(seed, 4, kinds=MOVING, branching=False, massless=False) for seed in (1, 2))
    robot = pp.combine({"l": left, "r": right})
    s = State(robot)
    first = pp.rebase(robot, "l/body3")
    second = pp.rebase(first.robot, "r/body2")
    both = pp.RebasedRobot(robot, second.robot)
    q1, v1 = first.state(s.q, s.v)
    q, v = both.state(s.q, s.v)
    for found, expected in zip((q, v), second.state(q1, v1), strict=True):
        close(found, expected)
    close(both.force(s.q, s.tau), second.force(q1, first.force(s.q, s.tau)))
    a = pp.forward_dynamics(robot, s.q, s.v, s.tau)
    found = pp.forward_dynamics(both.robot, q, v, both.force(s.q, s.tau))
    close(found, both.acceleration(s.q, s.v, a), 1e-9)
    close(both.inverse.state(q, v)[1], s.v)
    close(both.inverse.force(q, both.force(s.q, s.tau)), s.tau)
    close(both.inverse.acceleration(q, v, both.acceleration(s.q, s.v, s.a)), s.a)


def test_a_base_with_a_frame_of_its_own_name() -> None:
    """The free hinge moves the body's frame, not the one that people call by its name."""
    plain = pp.robots.space_arm()
    root, tip = plain.bodies[0].name, plain.bodies[-1].name
    robot = plain.edit().frame(root, root, position=(0.1, 0.2, 0.3), rpy=(0.4, 0.5, 0.6)).build()
    s = State(robot)
    other = pp.rebase(robot, tip)
    q, v = other.state(s.q, s.v)
    a = pp.forward_dynamics(robot, s.q, s.v, s.tau)
    found = pp.forward_dynamics(other.robot, q, v, other.force(s.q, s.tau))
    close(found, other.acceleration(s.q, s.v, a), 1e-9)
    close(other.inverse.state(q, v)[1], s.v)
    close(other.inverse.force(q, other.force(s.q, s.tau)), s.tau)
    assert replace(other, robot=robot).robot is robot
