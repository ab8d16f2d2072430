"""`pp.simulate` and `pp.rollout`: controllers, batches, interruption, and wrong arguments."""

import functools
import signal
import threading
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.simulation import MethodName
from tests.simulation.machines import STEP, balls, brake, stick

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


def test_methods_of_objects_are_traced_anew():
    class Spring:
        k = 1.0

        def law(self, robot: pp.Robot, q: Any) -> Any:
            return -self.k * q

    spring = Spring()
    taus = []
    for spring.k in (1.0, 5.0):
        taus.append(pp.simulate(balls(1.0), [1.0], None, spring.law, **STEP).tau[0, 0])
    assert taus == [-1.0, -5.0]


def test_one_state_with_many_parameters_is_a_batch():
    @pp.program(shapes={"push": ()})
    def law(robot: pp.Robot, push: Any, memory: Any) -> Any:
        return {"tau": push * np.ones(1), "memory": memory + 1.0, "count": memory[0]}

    many = {"push": np.array([1.0, 2.0, 3.0])}
    motion = pp.simulate(balls(1.0), [0.0], None, law, **STEP, parameters=many, memory=[0.0])
    assert motion.q.shape == (3, 11, 1) and np.allclose(motion.v[:, -1, 0], [0.1, 0.2, 0.3])
    assert (motion.signals["count"][:, -1] == 10.0).all()
    with pytest.raises(ValueError, match="do not fit"):
        pp.simulate(balls(1.0), np.zeros((2, 1)), None, law, **STEP, parameters=many, memory=[0.0])
    with pytest.raises(pp.EventError, match=r"change to a batch \(3,\)"):
        pp.simulate(
            balls(1.0), [0.0], None, law, **STEP, parameters={"push": 1.0}, memory=[0.0],
            events=[pp.Change(0.05, many)],
        )  # fmt: skip


@pytest.mark.parametrize("method", ["rk4", "dop853", "rk45", "radau", "lsoda"])
def test_a_controller_that_is_not_finite_ends_the_simulation(method: MethodName):
    def broken(robot: pp.Robot, t: Any) -> Any:
        return np.sqrt(0.055 - t) * np.ones(robot.nv)

    ended = r"(no longer finite at|lsoda cannot go on from) t = 0\.0[56]"
    with pytest.raises(pp.Diverged, match=ended) as caught:
        pp.simulate(balls(1.0), [0.0], [1.0], broken, method=method, **STEP)
    assert np.isfinite(caught.value.trajectory.q).all()


def test_an_interrupt_at_the_very_end_keeps_the_motion(monkeypatch: pytest.MonkeyPatch):
    from phipsi.simulation.simulator import Simulator

    whole, calls = Simulator._trajectory, []

    def once(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return whole(*args, **options)

    monkeypatch.setattr(Simulator, "_trajectory", once)
    with pytest.raises(pp.Interrupted) as caught:
        pp.simulate(balls(1.0), [0.0], [1.0], **STEP)
    assert len(caught.value.trajectory) == 11


def test_an_interrupt_before_the_first_step_is_a_plain_one(monkeypatch: pytest.MonkeyPatch):
    from phipsi.simulation.steps import FixedSteps

    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(FixedSteps, "_advanced", stop)
    with pytest.raises(KeyboardInterrupt) as caught:
        pp.simulate(balls(1.0), [0.0], [1.0], **STEP)
    assert not isinstance(caught.value, pp.Interrupted)


def test_a_robot_without_freedoms_stays():
    builder = pp.Builder("rock")
    builder.body("rock", mass=1.0, inertia=(1.0, 1.0, 1.0)).hinge("weld", "weld", "world", "rock")
    assert pp.simulate(builder.build(), np.zeros(0), **STEP).q.shape == (11, 0)


def test_the_last_sample_is_at_the_end():
    motion = pp.simulate(balls(1.0), [0.0], [1.0], duration=3.3, dt=0.003)
    assert motion.t[-1] == 3.3
    assert motion.at(3.3).q == pytest.approx(3.3)


def test_numbers_of_numpy_are_numbers():
    numpy: dict[str, Any] = {
        "duration": np.float32(0.5), "dt": np.float64(0.25), "every": np.int64(1),
        "events": pp.Failure(float(np.float32(0.25)), "h0", "locked"),
    }  # fmt: skip
    motion = pp.simulate(balls(1.0), [0.0], [1.0], **numpy)
    assert motion.v[:, 0].tolist() == [1.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="duration is True"):
        pp.simulate(balls(1.0), [0.0], duration=True)


# ---- wrong arguments ----------------------------------------------------------------------------

Q = [0.0, 0.0]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"q0": [0.0]}, ValueError, r"q0 has shape \(1,\), .*needs \(\.\.\., 2\)"),
        ({"q0": ["a", "b"]}, TypeError, "q0 has dtype <U1, needs real numbers"),
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
        ({"stabilisation": 10**400}, ValueError, "stabilisation has a number larger than"),
        ({"closures": 5}, TypeError, "closures is an int, needs a sequence"),
        ({"springs": None}, TypeError, "springs is a NoneType, needs a sequence"),
        ({"sequences": [3]}, TypeError, "sequences has an int, needs names"),
        ({"sequences": {"gain": {}}}, ValueError, "sequences: 'gain' is {}, needs 'hold' or"),
        ({"method": {}}, ValueError, "no method {}; known are"),
        ({"coordinates": ["minimal"]}, ValueError, "no coordinates .'minimal'.; use"),
        ({"every": 10**400}, ValueError, "every is 1000.*, needs a whole number of at most"),
    ],
)  # fmt: skip
def test_errors_are_one_sentence(arguments: dict[str, Any], error: Any, message: str):
    given = {"q0": Q, "duration": 1.0, **arguments}
    with pytest.raises(error, match=message) as caught:
        pp.simulate(pp.robots.double_pendulum(), **given)
    assert "\n" not in str(caught.value)


def test_rollouts_have_steps_of_one_length():
    robot = pp.robots.double_pendulum()
    with pytest.raises(ValueError, match="chooses its own steps"):
        pp.rollout(robot, Q, duration=1.0, method="dop853")
    with pytest.raises(ValueError, match="not a batch"):
        pp.simulate(robot, [Q, Q], duration=1.0, method="dop853")


def test_steps_longer_than_the_duration_are_refused():
    with pytest.raises(ValueError, match=r"samples are 0\.2 s apart .*more than the duration"):
        pp.simulate(balls(1.0), [0.0], duration=0.1, dt=0.02, every=10)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda robot: 1.0, r"tau that has shape \(\); it needs \(2,\)"),
        (lambda robot: np.ones(1), r"tau that has shape \(1,\)"),
        (lambda robot: {"torque": np.ones(2)}, "tau that is missing"),
        (lambda robot, memory: {"tau": np.ones(2)}, "given a memory of shape"),
        (lambda robot: {"tau": np.ones(2), "external": np.ones(6)}, "frame: wrench"),
        (lambda robot: {"tau": np.ones(2), "map": np.eye(3)}, "signal 'map' has shape"),
        (lambda robot: {"tau": np.ones(2), "contact_forces": np.ones(3)}, "no name of"),
        (functools.partial(lambda robot: np.ones(2)), "the controller is a partial"),
    ],
)
def test_what_a_controller_returns_is_checked(returned: Any, message: str):
    memory = [0.0] if "memory" in message else None
    with pytest.raises(TypeError, match=message):
        pp.simulate(balls(1.0, 1.0), [0.0, 0.0], None, returned, **STEP, memory=memory)
