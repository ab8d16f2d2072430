"""Springs, stops, motors, closures, events, and what a controller is given."""

import signal
import threading
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.spatial import Transform

PAYLOAD = np.array([0.3, -0.2, 0.1])


def stick(**hinge: Any) -> pp.Robot:
    """A rod of 1 kg·m² on one axis, no gravity."""
    builder = pp.Builder("stick", gravity=(0.0, 0.0, 0.0))
    builder.body("rod", mass=1.0, inertia=(1.0, 1.0, 1.0))
    builder.hinge("pivot", "revolute", "world", "rod", axis=(0.0, 1.0, 0.0), **hinge)
    return builder.build()


@pp.program(shapes={"gain": ()})
def brake(robot: pp.Robot, v: Any, gain: Any) -> Any:
    """τ = −gain v"""
    return -gain * v


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


# ---- closures -----------------------------------------------------------------------------------

FOUR_BAR = [pp.Loop("coupler_tip", "rocker_tip", free=np.eye(6)[:, [3, 5]])]


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
    whole = np.concatenate([q, kind.coordinates(both.hinge("payload"), X)]).astype(float)
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


# ---- controllers, batches, interruption ---------------------------------------------------------


def test_memory_is_kept_from_step_to_step():
    def count(robot: pp.Robot, t: Any, dt: Any, memory: Any) -> dict[str, Any]:
        return {"tau": np.zeros(robot.nv), "memory": memory + np.array([1.0, dt]), "seen": memory}

    motion = pp.simulate(
        stick(), [0.0], None, count, duration=1.0, dt=0.1, every=2, memory=[0.0, 0.0]
    )
    assert np.allclose(motion.signals["seen"], np.outer(np.arange(6), [2.0, 0.2]))


def test_a_rollout_is_every_simulation_at_once():
    robot, rng = pp.robots.double_pendulum(), np.random.default_rng(0)
    q, v = robot.random_state(rng, (5,))
    gain = rng.uniform(0.1, 1.0, 5)
    arguments: dict[str, Any] = {"duration": 0.2, "dt": 0.01, "every": 4}
    many = pp.rollout(robot, q, v, brake, parameters={"gain": gain}, signals=True, **arguments)
    assert many.q.shape == (5, 6, 2)
    for i in range(5):
        one = pp.simulate(robot, q[i], v[i], brake, parameters={"gain": gain[i]}, **arguments)
        assert np.allclose(many.q[i], one.q, atol=1e-12)
        assert np.allclose(many.tau[i], one.tau, atol=1e-12)
    batch = pp.simulate(robot, q, v, brake, parameters={"gain": gain}, **arguments)
    assert np.allclose(batch.q, many.q, atol=1e-12)


def test_long_chains_are_simulated_too():
    robot = pp.robots.chain(80)
    motion = pp.simulate(robot, robot.neutral() + 0.1, duration=0.02, dt=2e-3)
    assert np.abs(motion.energy - motion.energy[0]).max() < 1e-4


def test_external_forces_come_from_the_caller_and_from_the_controller():
    robot = pp.robots.space_arm()
    push = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])

    def wall(robot: pp.Robot) -> dict[str, Any]:
        return {"tau": np.zeros(robot.nv), "external": {"base": -push}}

    motion = pp.simulate(
        robot, robot.neutral(), None, wall, duration=0.5, dt=0.01, external={"base": push}
    )
    assert np.allclose(motion.q, motion.q[0])


def test_interruption_keeps_what_was_computed():
    robot = pp.robots.double_pendulum()
    pp.simulate(robot, [1.0, 0.0], duration=0.1)

    def stop(done: float) -> None:
        if done > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(pp.Interrupted) as caught:
        pp.simulate(robot, [1.0, 0.0], duration=100.0, progress=stop)
    motion = caught.value.trajectory
    assert 30.0 < motion.t[-1] < 60.0 and np.isfinite(motion.q).all()


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals need it"
)
def test_control_c_in_the_middle_of_it(interruptible: None):
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    started: list[float] = []

    def started_now(done: float) -> None:
        if not started:  # again after 3 s, should a destructor swallow the first
            signal.setitimer(signal.ITIMER_REAL, 0.1, 3.0)
        started.append(done)

    try:
        with pytest.raises(pp.Interrupted):
            robot = pp.robots.double_pendulum()
            pp.simulate(robot, [1.0, 0.0], duration=1e5, dt=1e-3, progress=started_now)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    assert started and started[-1] < 1.0


def test_progress_runs_to_one():
    seen: list[float] = []
    pp.simulate(pp.robots.double_pendulum(), [1.0, 0.0], duration=20.0, progress=seen.append)
    assert seen == sorted(seen) and seen[-1] == 1.0 and len(seen) > 3


Q = [0.0, 0.0]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"q0": [0.0]}, ValueError, r"q0 has shape \(1,\), .*needs \(\.\.\., 2\)"),
        ({"q0": ["a", "b"]}, TypeError, "q0 is .*array of numbers"),
        ({"q0": [np.nan, 0.0]}, ValueError, "q0 has entries that are not finite"),
        ({"v0": [0.0, 0.0, 1.0]}, ValueError, r"v0 has shape \(3,\)"),
        ({"duration": -1.0}, ValueError, "duration is -1.0, needs a positive number"),
        ({"duration": float("inf")}, ValueError, "duration is inf"),
        ({"dt": 0.0}, ValueError, "dt is 0.0"),
        ({"dt": 1e-12}, ValueError, "1e.12 steps|more than 1e10"),
        ({"every": 0}, ValueError, "every is 0"),
        ({"method": "rk5"}, ValueError, "no method 'rk5'; did you mean 'rk45'"),
        ({"coordinates": "polar"}, ValueError, "no coordinates 'polar'"),
        ({"coordinates": "diagonal", "method": "euler"}, ValueError, "need a method of"),
        ({"controller": 3}, TypeError, "the controller is 3"),
        ({"parameters": {"gain": 1.0}}, TypeError, "there is none"),
        ({"controller": brake}, TypeError, "needs 'gain': pass parameters"),
        ({"controller": brake, "parameters": {"gian": 1.0}}, TypeError, "did you mean 'gain'"),
        ({"memory": [0.0]}, TypeError, "no input 'memory'"),
        ({"events": [3]}, TypeError, "events has 3"),
        ({"events": [pp.Failure(0.1, "elbow")]}, pp.ModelError, "no hinge 'elbow'"),
        ({"frames": ["tol"]}, pp.ModelError, "no frame 'tol'"),
        ({"external": {"tol": np.zeros(6)}}, pp.ModelError, "no frame 'tol'"),
        ({"external": {"link1": np.zeros(5)}}, (ValueError, pp.ModelError), "shape|no frame"),
        ({"stabilisation": -1.0}, ValueError, "stabilisation is -1.0"),
    ],
)  # fmt: skip
def test_errors_are_one_sentence(arguments: dict[str, Any], error: Any, message: str):
    given = {"q0": Q, "duration": 1.0, **arguments}
    with pytest.raises(error, match=message) as caught:
        pp.simulate(pp.robots.double_pendulum(), **given)
    assert "\n" not in str(caught.value)


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


def test_rollouts_have_steps_of_one_length():
    robot = pp.robots.double_pendulum()
    with pytest.raises(ValueError, match="chooses its own steps"):
        pp.rollout(robot, Q, duration=1.0, method="dop853")
    with pytest.raises(ValueError, match="pass every="):
        pp.rollout(robot, Q, duration=1e5, dt=1e-3)
    with pytest.raises(ValueError, match="not a batch"):
        pp.simulate(robot, [Q, Q], duration=1.0, method="dop853")
