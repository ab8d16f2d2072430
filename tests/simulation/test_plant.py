"""Springs, stops, motors, closures and events."""

import warnings
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.spatial import Transform
from tests.simulation.machines import ALONG, STEP, balls, brake, stick

PAYLOAD = np.array([0.3, -0.2, 0.1])


# ---- passive forces, stops, motors --------------------------------------------------------------


def test_a_damped_spring_moves_as_the_textbook_says():
    robot = stick(stiffness=9.0, damping=0.6)
    motion = pp.simulate(robot, [1.0], duration=3.0, dt=0.01)
    c, w = 0.3, np.sqrt(9.0 - 0.09)
    exact = np.exp(-c * motion.t) * (np.cos(w * motion.t) + c / w * np.sin(w * motion.t))
    assert np.allclose(motion.q[:, 0], exact, atol=1e-7)
    still = pp.simulate(robot, [1.0], duration=3.0, dt=0.01, passive=False)
    assert np.array_equal(still.q, np.ones_like(still.q))


def test_stiff_springs_need_linearly_implicit_steps():
    robot = stick(stiffness=1e6, damping=1e3)
    with pytest.raises(pp.Diverged, match=r"smaller dt.*implicit") as caught:
        pp.simulate(robot, [1e-3], [1.0], duration=5.0, dt=0.01, method="euler")
    assert np.isfinite(caught.value.trajectory.q).all()
    motion = pp.simulate(robot, [1e-3], [1.0], duration=1.0, dt=0.01, method="implicit")
    assert abs(motion.q[-1, 0]) < 1e-6
    # one step, by hand: (A + hB + h²K) β̇ = −Bβ − K(δ + hβ)
    h, K, B = 0.01, 1e6, 1e3
    v = 1.0 + h * (-B - K * (1e-3 + h)) / (1.0 + h * B + h * h * K)
    assert motion.v[1, 0] == pytest.approx(v, rel=1e-9)
    assert motion.q[1, 0] == pytest.approx(1e-3 + h * v, rel=1e-9)


def test_stops_push_back_at_the_limits_alone():
    robot = stick(lower=-0.5, upper=0.5)
    hard = pp.Limits(stiffness=1e3, damping=0.0, width=1e-2)
    assert pp.limit_forces(robot, [0.49], [1.0], limits=hard) == 0.0
    force = [float(pp.limit_forces(robot, [x], [0.0], limits=hard)[0]) for x in (0.6, -0.6)]
    assert force == pytest.approx([-1e3 * 0.095, 1e3 * 0.095])
    e = 1e-7
    q = 0.5 + np.linspace(1e-4, 3e-2, 50)[:, None]
    slope = pp.limit_forces(robot, q + e, 0 * q, limits=hard)
    slope = (slope - pp.limit_forces(robot, q - e, 0 * q, limits=hard)) / (2 * e)
    assert (slope < 0).all() and (slope > -1e3 * 1.01).all()
    motion = pp.simulate(robot, [0.0], [1.0], duration=1.2, dt=1e-3, limits=hard)
    assert motion.q.max() < 0.6 and motion.v[-1, 0] == pytest.approx(-1.0, abs=1e-3)


def test_a_joint_that_passes_its_limits_without_stops_is_a_warning():
    """Once for a simulation, with the hinge, its limits and the time; not where it was said."""
    builder = pp.Builder("two", gravity=(0.0, 0.0, 0.0))
    for name, reach in (("short", 0.55), ("long", 2.0)):
        builder.body(name, mass=1.0, inertia=(1.0, 1.0, 1.0))
        builder.hinge(
            name, "prismatic", "world", name, axis=(1.0, 0.0, 0.0), lower=-reach, upper=reach
        )
    robot = builder.build()
    how: dict[str, Any] = {"duration": 1.0, "dt": 0.1}
    said = r"'short' is beyond its limits \[-0\.55, 0\.55\] at t = 0\.6 s.*limits=True"
    with pytest.warns(pp.SimulationWarning, match=said) as caught:
        pp.simulate(robot, [0.0, 0.0], [1.0, 1.0], **how)
    assert len(caught) == 1
    with pytest.warns(pp.SimulationWarning, match=said):
        pp.rollout(robot, [0.0, 0.0], [[0.1, 0.1], [-1.0, 1.0]], **how)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pp.simulate(robot, [0.55, 0.0], [0.0, 1.0], **how)
        for limits in (True, False):
            pp.simulate(robot, [0.0, 0.0], [1.0, 1.0], **how, limits=limits)


def test_motors_give_no_more_than_their_effort():
    robot = stick(effort=2.0)
    motion = pp.simulate(robot, [0.0], [10.0], brake, duration=1.0, parameters={"gain": 5.0})
    assert np.allclose(motion.tau, -2.0)
    assert motion.v[-1, 0] == pytest.approx(8.0)
    strong = pp.simulate(
        robot, [0.0], [10.0], brake, duration=1.0, parameters={"gain": 5.0}, actuators=False
    )
    assert strong.v[-1, 0] == pytest.approx(10.0 * np.exp(-5.0), rel=1e-6)


def test_passive_hinges_take_no_command():
    robot = pp.robots.snake()
    passive = ~robot.driven & ~robot.mask(robot.hinges[0].name)
    motion = pp.simulate(
        robot, robot.neutral(), None, lambda robot: np.ones(robot.nv), duration=0.1
    )
    assert passive.any() and (motion.tau[:, passive] == 0).all()
    assert (motion.tau[:, robot.driven] == 1).all()


def test_planar_hinges_have_stops():
    builder = pp.Builder("puck", gravity=(0.0, 0.0, 0.0))
    builder.body("puck", mass=1.0, inertia=(1.0, 1.0, 1.0))
    builder.hinge(
        "slide", "planar", "world", "puck", axis=(0.0, 0.0, 1.0),
        lower=[-1.0, -1.0, -np.inf], upper=[1.0, 1.0, np.inf],
    )  # fmt: skip
    robot = builder.build()
    motion = pp.simulate(robot, [0.0, 0.0, 0.7], [0.0, 1.0, 0.5], duration=5.0, limits=True)
    assert np.abs(motion.q[:, :2]).max() < 1.1
    q, v = np.array([1.3, -1.2, 0.7]), np.zeros(3)
    e, k = 1e-6, pp.Limits(damping=0.0)

    def stored(q: np.ndarray) -> float:  # far beyond the width: ½k(d − w/2)² and a constant
        return sum(0.5 * k.stiffness * (abs(x) - 1.0 - k.width / 2) ** 2 for x in q[:2])

    slope = [
        (stored(robot.integrate(q, e * u)) - stored(robot.integrate(q, -e * u))) / (2 * e)
        for u in np.eye(3)
    ]
    assert np.allclose(pp.limit_forces(robot, q, v, limits=k), -np.array(slope), rtol=1e-6)


# ---- closures -----------------------------------------------------------------------------------

FOUR_BAR = [pp.Loop("coupler_tip", "rocker_tip", free=np.eye(6)[:, [3, 5]])]


def test_closures_that_contradict_each_other_are_a_warning():
    """A crank that hangs straight down and moves cannot be pinned to a slider: its tip rises with
    ω²ℓ, and the slider does not."""
    builder = pp.Builder("crank").body("rod", mass=1.0, com=(0, 0, -0.5), inertia=(1, 1, 1))
    builder.hinge("pin", "revolute", "world", "rod", axis=(0, 1, 0)).body("slider", mass=1.0)
    builder.hinge("rail", "prismatic", "world", "slider", position=(0, 0, -1.0), axis=(1, 0, 0))
    robot = builder.frame("tip", "rod", position=(0, 0, -1.0)).build()
    pinned = [pp.Loop("tip", "slider", free=np.eye(6)[:, [3, 5]])]
    how: dict[str, Any] = {"dt": 1e-3, "closures": pinned}
    with pytest.warns(pp.SimulationWarning, match=r"contradict each other at t = 0 s.*4\.0e\+00"):
        motion = pp.simulate(robot, [0.0, 0.0], [2.0, -2.0], duration=1e-3, stabilisation=0, **how)
    assert np.allclose(motion.signals["closure_residual"][0], 4.0)
    with pytest.raises(pp.Diverged, match="the closures are singular near t = 0 s"):
        pp.simulate(robot, [0.0, 0.0], [2.0, -2.0], duration=0.01, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        still = pp.simulate(robot, [0.0, 0.0], duration=0.01, **how)
    assert still.signals["closure_residual"].max() < 1e-12


def test_a_four_bar_stays_closed_and_keeps_its_energy():
    robot = pp.robots.four_bar()
    closed = pp.close_loops(robot, FOUR_BAR, np.array([0.4, 0.2, -0.1]), np.array([1.0, 0.0, 0.0]))
    motion = pp.simulate(robot, closed.q, closed.v, duration=2.0, dt=2e-3, closures=FOUR_BAR)
    opening = pp.loop_opening(robot, FOUR_BAR, motion.q, motion.v)
    assert np.abs(opening.error).max() < 1e-7
    assert (
        np.abs(motion.energy - motion.energy[0]).max() < 1e-5 * np.abs(motion.kinetic_energy).max()
    )
    expected = pp.closed_chain_dynamics(
        robot, FOUR_BAR, motion.q, motion.v, motion.tau, stabilisation=10.0
    )
    assert np.allclose(motion.signals["closure_force:coupler_tip"], expected.forces[:, 0])


def test_open_closures_are_refused_at_the_start():
    with pytest.raises(ValueError, match=r"open by .*close_loops"):
        pp.simulate(pp.robots.four_bar(), [0.4, 0.2, 0.9], duration=1.0, closures=FOUR_BAR)


def test_closures_that_share_a_frame_are_told_apart():
    loops = [pp.Loop("b0", b, free=ALONG) for b in ("b1", "b2")]
    motion = pp.simulate(balls(1.0, 2.0, 3.0), [0.0] * 3, **STEP, closures=loops)
    assert {"closure_force:b0:b1", "closure_force:b0:b2"} <= set(motion.signals)


# ---- events -------------------------------------------------------------------------------------


def test_a_brake_stops_its_hinge_and_keeps_the_momentum():
    robot = pp.robots.space_arm()
    q, v = robot.random_state(1)
    for method in ("rk4", "preserving"):
        motion = pp.simulate(
            robot, q, 0.3 * v, duration=1.0, dt=0.01, method=method,
            events=[pp.Failure(0.5, "elbow_pitch", "locked")],
        )  # fmt: skip
        elbow = robot.hinge("elbow_pitch")
        assert (motion.v[50:, elbow.v] == 0).all() and (motion.v[:50, elbow.v] != 0).all()
        assert np.ptp(motion.q[50:, elbow.q]) < 1e-14
        assert np.allclose(motion.momentum, motion.momentum[0], rtol=1e-5, atol=1e-5)
        assert motion.energy[50] < motion.energy[49]
        ((time, sentence),) = motion.events
        assert time == 0.5 and "elbow_pitch" in sentence


def test_a_locked_hinge_moves_as_a_welded_one():
    robot = pp.robots.space_arm()
    q, v = robot.random_state(2)
    whole = pp.simulate(
        robot, q, 0.3 * v, duration=0.5, dt=0.01, events=[pp.Failure(0.0, "elbow_pitch", "locked")]
    )
    rigid = robot.locked(["elbow_pitch"], q)
    keep_q = np.delete(np.arange(robot.nq), robot.hinge("elbow_pitch").q)
    keep_v = np.delete(np.arange(robot.nv), robot.hinge("elbow_pitch").v)
    other = pp.simulate(rigid, q[keep_q], whole.v[0, keep_v], duration=0.5, dt=0.01)
    assert np.allclose(whole.q[:, keep_q], other.q, atol=1e-9)


def test_a_failed_motor_gives_nothing():
    robot = pp.robots.space_arm()
    q, v = robot.random_state(3)
    motion = pp.simulate(
        robot, q, 0.1 * v, brake, duration=0.4, dt=0.01, parameters={"gain": 2.0},
        events=[pp.Failure(0.2, "wrist_roll")],
    )  # fmt: skip
    wrist = robot.hinge("wrist_roll").v
    assert (motion.tau[:20, wrist] != 0).all() and (motion.tau[20:, wrist] == 0).all()


def test_what_comes_after_the_end_does_not_happen():
    late = [pp.Failure(5.0, "pivot"), pp.Failure(0.1, "pivot", "locked")]
    motion = pp.simulate(stick(), [0.0], [1.0], duration=0.1, dt=0.01, events=late)
    assert [time for time, _ in motion.events] == [0.1]
    assert motion.v[-2:, 0].tolist() == [1.0, 0.0]


def test_controllers_are_told_which_motors_work():
    robot = pp.robots.space_arm()

    def law(robot: pp.Robot, active: Any, locked: Any) -> dict[str, Any]:
        return {"tau": np.zeros(robot.nv), "active": active, "locked": locked}

    motion = pp.simulate(
        robot, robot.neutral(), None, law, duration=0.3, dt=0.1,
        events=[pp.Failure(0.1, "elbow_pitch"), pp.Failure(0.2, "wrist_roll", "locked")],
    )  # fmt: skip
    elbow, wrist = robot.hinge("elbow_pitch").v.start, robot.hinge("wrist_roll").v.start
    assert motion.signals["active"][:, elbow].tolist() == [1, 0, 0, 0]
    assert motion.signals["active"][:, wrist].tolist() == [1, 1, 0, 0]
    assert motion.signals["locked"][:, wrist].tolist() == [0, 0, 1, 1]


def caught() -> tuple[pp.Robot, np.ndarray, np.ndarray, list[pp.Loop]]:
    """A free-flyer whose tool is where a drifting payload is."""
    robot = pp.robots.space_arm()
    q, _ = robot.random_state(5)
    payload = pp.Builder("payload", gravity=(0.0, 0.0, 0.0))
    payload.body("payload", mass=20.0, inertia=(1.0, 2.0, 1.5)).hinge(
        "payload", "free", "world", "payload"
    )
    both = pp.combine([robot, payload.build()], name="catch")
    X = Transform.of(*(lambda T: (T[:3, :3], T[:3, 3]))(pp.frame_pose(robot, q, "tool")))
    kind = both.hinge("payload").kind
    whole = np.array([*q, *kind.coordinates(both.hinge("payload"), X)]).astype(float)
    v = np.where(both.mask("payload"), 0.2, 0.0)
    return both, whole, v, [pp.Loop("tool", "payload")]


def test_a_caught_payload_moves_with_the_tool_and_momentum_is_kept():
    robot, q, v, loops = caught()
    motion = pp.simulate(
        robot, q, v, duration=0.5, dt=2e-3,
        events=[pp.Capture(0.0, loops), pp.Release(0.3, loops)],
    )  # fmt: skip
    tool, payload = motion.frame("tool"), motion.frame("payload")
    assert np.abs(tool - payload)[:151].max() < 1e-6
    assert np.allclose(motion.momentum, motion.momentum[0], atol=1e-5)
    assert "catch" in motion.events[0][1] and "let go" in motion.events[1][1]
    forces = motion.signals["closure_force:tool"]
    assert np.isfinite(forces[:150]).all() and np.isnan(forces[150:]).all()


def test_an_elastic_hit_keeps_the_energy():
    robot, q, v, loops = caught()
    motion = pp.simulate(
        robot, q, v, duration=0.1, dt=0.05, events=[pp.Capture(0.05, loops, restitution=1.0)]
    )
    assert motion.energy[1] == pytest.approx(motion.energy[0], rel=1e-6)
    assert not np.allclose(motion.v[1], motion.v[0])


def test_events_may_wait_for_a_condition_and_change_parameters():
    robot = stick()
    motion = pp.simulate(
        robot, [0.0], [1.0], brake, duration=1.0, dt=0.01, parameters={"gain": 0.0},
        events=[pp.Change(lambda t, q, v: q[0] > 0.5, {"gain": 5.0})],
    )  # fmt: skip
    ((time, sentence),) = motion.events
    assert time == pytest.approx(0.5, abs=0.011) and "gain" in sentence
    late = motion.t > time
    exact = np.exp(-5.0 * (motion.t[late] - time))
    assert np.allclose(motion.v[late, 0], exact, rtol=1e-6)
    assert (motion.v[motion.t < time] == 1.0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pp.Failure(-1.0, "a"), "at is -1.0"),
        (lambda: pp.Failure(0.0, "a", "stuck"), "needs 'free' or 'locked'"),  # type: ignore[arg-type]
        (lambda: pp.Capture(0.0, FOUR_BAR, restitution=2.0), "restitution is 2.0"),
        (lambda: pp.Limits(stiffness=-1.0), "stiffness is -1.0"),
        (lambda: pp.Limits(width=0.0), "width is 0"),
    ],
)
def test_wrong_events_are_refused_when_made(make: Any, message: str):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_holds_already_takes_part_in_an_impact():
    first, second = (pp.Loop(a, b, free=ALONG) for a, b in (("b0", "b1"), ("b1", "b2")))
    motion = pp.simulate(
        balls(1.0, 2.0, 3.0), [0.0, 0.0, 0.05], [1.0, 1.0, 0.0], **STEP,
        closures=[first], events=[pp.Capture(0.05, [second])],
    )  # fmt: skip
    assert np.allclose(motion.v[-1], 0.5) and motion.energy[-1] == pytest.approx(0.75)


def test_nothing_is_caught_across_a_distance():
    loop = pp.Loop("b0", "b1", free=ALONG)
    with pytest.raises(pp.EventError, match="cannot catch each other 2 rad or m apart") as caught:
        pp.simulate(balls(1.0, 1.0), [0.0, 2.0], **STEP, events=[pp.Capture(0.05, [loop])])
    assert caught.value.trajectory is not None and caught.value.trajectory.t[-1] == 0.05
    with pytest.raises(pp.EventError, match="cannot let go"):
        pp.simulate(balls(1.0, 1.0), [0.0, 0.0], **STEP, events=[pp.Release(0.05, [loop])])
    with pytest.raises(ValueError, match=r"open at 0\.5 per second"):
        pp.simulate(balls(1.0, 1.0), [0.0, 0.0], [0.5, 0.0], **STEP, closures=[loop])


def test_free_hinges_have_no_motor_to_fail():
    with pytest.raises(ValueError, match="'base' is free and has no motor"):
        robot = pp.robots.space_arm()
        pp.simulate(robot, robot.neutral(), **STEP, events=[pp.Failure(0.0, "base")])
