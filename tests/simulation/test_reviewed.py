"""What reviewers found: each of these was wrong once."""

import functools
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.control import assisted, on_path, pd_gravity, reaction_mode, thrusters
from phipsi.simulation import MethodName

STEP: dict[str, Any] = {"duration": 0.1, "dt": 0.01}


def balls(*masses: float) -> pp.Robot:
    """Balls on rails along x, no gravity."""
    builder = pp.Builder("balls", gravity=(0.0, 0.0, 0.0))
    for i, mass in enumerate(masses):
        builder.body(f"b{i}", mass=mass, inertia=(1.0, 1.0, 1.0))
        builder.hinge(f"h{i}", "prismatic", "world", f"b{i}", axis=(1.0, 0.0, 0.0))
    return builder.build()


ALONG = np.eye(6)[:, [3]]


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


@pytest.mark.parametrize("method", ["rk4", "dop853", "radau"])
def test_a_controller_that_is_not_finite_ends_the_simulation(method: MethodName):
    def broken(robot: pp.Robot, t: Any) -> Any:
        return np.sqrt(0.055 - t) * np.ones(robot.nv)

    with pytest.raises(pp.Diverged, match=r"no longer finite at t = 0\.0[56]") as caught:
        pp.simulate(balls(1.0), [0.0], [1.0], broken, method=method, **STEP)
    assert np.isfinite(caught.value.trajectory.q).all()


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


def test_free_hinges_have_no_motor_to_fail():
    with pytest.raises(ValueError, match="'base' is free and has no motor"):
        robot = pp.robots.space_arm()
        pp.simulate(robot, robot.neutral(), **STEP, events=[pp.Failure(0.0, "base")])


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


def test_a_robot_without_freedoms_stays():
    builder = pp.Builder("rock")
    builder.body("rock", mass=1.0, inertia=(1.0, 1.0, 1.0)).hinge("weld", "weld", "world", "rock")
    assert pp.simulate(builder.build(), np.zeros(0), **STEP).q.shape == (11, 0)


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


def test_closures_that_share_a_frame_are_told_apart():
    loops = [pp.Loop("b0", b, free=ALONG) for b in ("b1", "b2")]
    motion = pp.simulate(balls(1.0, 2.0, 3.0), [0.0] * 3, **STEP, closures=loops)
    assert {"closure_force:b0:b1", "closure_force:b0:b2"} <= set(motion.signals)


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


def test_paths_and_help_say_what_they_cannot_take():
    with pytest.raises(TypeError, match="is no program"):
        on_path(lambda robot, q, pose: q)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="have a memory"):
        assisted(assisted(reaction_mode, thrusters), thrusters)

    @pp.program
    def timed(robot: pp.Robot, t: Any, target: Any) -> Any:
        return {"tau": np.zeros(robot.nv), "at": t, "aim": target}

    way = {"start": [0.0], "goal": [1.0], "duration": 0.1}
    motion = pp.simulate(balls(1.0), [0.0], None, on_path(timed), **STEP, parameters=way)
    assert np.allclose(motion.signals["at"], motion.t) and motion.signals["aim"][-1] == 1.0


POISON = """
import functools, numpy as np, phipsi as pp
robot = pp.robots.double_pendulum()
@pp.program
@functools.wraps(pp.gravity_force)
def heavier(robot, q):
    return pp.gravity_force(robot, q) + 5.0
print(heavier(robot, np.ones(2))[0], pp.gravity_force(robot, np.ones(2))[0])
"""


@pytest.mark.parametrize("order", ["theirs first", "ours first"])
def test_programs_made_of_ours_do_not_take_their_place_on_disk(order: str, tmp_path: Any):
    environment = {**os.environ, "PHIPSI_CACHE_DIR": str(tmp_path)}
    plain = "import numpy as np, phipsi as pp\nprint(pp.gravity_force(pp.robots.double_pendulum(), "
    plain += "np.ones(2))[0])"
    scripts = [POISON, plain] if order == "theirs first" else [plain, POISON]
    found = [
        subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True,
            check=True, timeout=120,
        ).stdout.split()
        for script in scripts
    ]  # fmt: skip
    (heavier, inside), (alone,) = found if order == "theirs first" else found[::-1]
    assert float(heavier) == pytest.approx(float(alone) + 5.0) and inside == alone


def test_gains_are_checked_before_anything_is_simulated():
    robot = pp.robots.double_pendulum()
    with pytest.raises(ValueError, match=r"stiffness is -3\.0, needs a positive"):
        pp.simulate(
            robot, [0.0, 0.0], None, pd_gravity, **STEP,
            parameters={"target": np.zeros(2), "stiffness": -3.0},
        )  # fmt: skip


def test_an_interrupt_at_the_very_end_keeps_the_motion(monkeypatch: pytest.MonkeyPatch):
    from phipsi.simulation.simulator import Simulator

    whole, calls = Simulator._trajectory, []

    def once(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return whole(*args)

    monkeypatch.setattr(Simulator, "_trajectory", once)
    with pytest.raises(pp.Interrupted) as caught:
        pp.simulate(balls(1.0), [0.0], [1.0], **STEP)
    assert len(caught.value.trajectory) == 11


def test_an_interrupt_before_the_first_step_is_a_plain_one(monkeypatch: pytest.MonkeyPatch):
    from phipsi.simulation.simulator import Simulator

    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Simulator, "_advance", stop)
    with pytest.raises(KeyboardInterrupt) as caught:
        pp.simulate(balls(1.0), [0.0], [1.0], **STEP)
    assert not isinstance(caught.value, pp.Interrupted)


def test_steps_longer_than_the_duration_are_refused():
    with pytest.raises(ValueError, match=r"samples are 0\.2 s apart .*more than the duration"):
        pp.simulate(balls(1.0), [0.0], duration=0.1, dt=0.02, every=10)


def test_csv_keeps_whether_springs_acted(tmp_path: Any):
    robot = pp.robots.flexible_joint_arm()
    q = np.full(robot.nq, 0.1)
    for passive in (True, False):
        motion = pp.simulate(robot, q, **STEP, passive=passive, method="implicit")
        motion.save(tmp_path / "motion.csv")
        again = pp.Trajectory.load(tmp_path / "motion.csv", robot)
        assert again.passive == passive and np.array_equal(again.energy, motion.energy)
