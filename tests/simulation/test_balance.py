"""`simulate(..., verify=True)`: no alarm where the method explains a drift, and one elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.control import pd_gravity
from phipsi.model.hinges import HingeName
from phipsi.simulation import balance
from tests.each import each
from tests.simulation.machines import balls, brake, stick

ROBOT = pp.robots.double_pendulum()
START = [1.0, 0.3]
RNG = np.random.default_rng(0)


def floater() -> pp.Robot:
    """Two bodies that float freely, with a motor between them."""
    builder = pp.Builder("floater", gravity=(0.0, 0.0, 0.0))
    parts: list[tuple[str, HingeName, str]] = [
        ("base", "free", "world"), ("arm", "revolute", "base"),
    ]  # fmt: skip
    for name, kind, parent in parts:
        builder.body(name, mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.4, 0.5, 0.6))
        axis = (0.0, 1.0, 0.0) if kind == "revolute" else None
        builder.hinge(name, kind, parent, name, position=(0.5, 0.1, 0.0), axis=axis)
    return builder.build()


def watched(*args: Any, run: Callable[..., pp.Trajectory] = pp.simulate, **options: Any) -> Any:
    """The motion and what was said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        motion = run(*args, verify=True, **options)
    return motion, [str(one.message) for one in said]


def silent(*args: Any, **options: Any) -> pp.Trajectory:
    motion, said = watched(*args, **options)
    assert not said
    error, explained = (motion.signals[x] for x in (balance.ENERGY, balance.EXPLAINED))
    assert (np.abs(error) <= explained).all() and motion.units[balance.ENERGY] == "J"
    return motion


# ---- no alarm -----------------------------------------------------------------------------------


@each("method", ["euler", "implicit", "midpoint", "rk4", "preserving"])
def test_every_method_explains_its_own_error(method: Any):
    motion = silent(ROBOT, START, duration=1.0, dt=2e-3, method=method)
    spread = np.ptp(motion.energy)
    assert abs(np.abs(motion.signals["energy_error"]).max() - spread) <= 1e-9 + 0.6 * spread


@each("method", ["dop853", "rk45"])
def test_so_do_adaptive_ones(method: Any):
    silent(ROBOT, START, duration=1.0, dt=0.05, method=method, rtol=1e-7, atol=1e-9)


def test_coarse_steps_may_be_off_a_little():
    motion = silent(ROBOT, START, duration=2.0, dt=0.04)
    assert np.ptp(motion.energy) > 1e-4


def test_stiff_and_rough_forces():
    silent(
        stick(stiffness=1e5, damping=1e4, rest=(0.3,)), [1.0], duration=0.2, dt=1e-3,
        method="implicit",
    )  # fmt: skip
    silent(stick(friction=0.5, damping=0.1), [1.0], [2.0], duration=5.0, dt=1e-2)
    stops = stick(lower=-1.0, upper=1.0)
    silent(stops, [0.0], [2.0], duration=2.0, dt=1e-3, limits=True)


def test_work_of_controllers_and_of_what_is_outside():
    def clocked(robot: pp.Robot, t: Any, q: Any, v: Any, memory: Any, dt: Any) -> dict[str, Any]:
        """Output held for 50 ms."""
        new = pp.where(t - np.floor(t / 0.05) * 0.05 < 0.5 * dt, -2.0 * q - 0.1 * v, memory)
        return {"tau": new, "memory": new}

    def fed(robot: pp.Robot, v: Any, u: Any) -> Any:
        return u - 0.1 * v

    how: dict[str, Any] = {"duration": 1.0, "dt": 5e-3, "every": 5}
    silent(ROBOT, START, None, clocked, memory=np.zeros(2), **how)
    u = {"u": RNG.normal(size=(2, 40, 2))}
    motion = silent(
        ROBOT, START, None, fed, run=pp.rollout, sequences="u", parameters=u, signals=True, **how
    )
    assert motion.signals["energy_error"].shape == (2, 41)
    push = {"tool": [0.1, 0.2, 0.3, 1.0, 2.0, 3.0]}
    motion = silent(ROBOT, START, external=push, duration=1.0, dt=5e-3)
    assert np.ptp(motion.energy) > 1.0 and np.abs(motion.signals["energy_error"]).max() < 1e-6


def test_events_begin_a_new_balance():
    gains = {"target": np.zeros(2), "stiffness": 10.0, "damping": 1.0}
    events = [pp.Change(0.3, {"target": np.ones(2)}), pp.Failure(0.6, "joint2", "locked")]
    motion = silent(
        ROBOT, START, None, pd_gravity, parameters=gains, duration=1.0, dt=5e-3, events=events
    )
    assert (motion.signals["energy_error"][[0, 60, 120]] == 0.0).all()


def test_momentum_of_what_floats():
    robot = floater()
    q, v = robot.random_state(1)
    motion = silent(robot, q, 0.3 * v, duration=0.5, dt=0.01, limits=False)
    moved = np.abs(motion.momentum - motion.momentum[0]).max(-1)
    np.testing.assert_allclose(motion.signals["momentum_error"], moved, atol=1e-14)
    pushed = {"base": [0.0, 0, 0, 1, 0, 0]}
    motion = silent(robot, q, 0.3 * v, duration=0.1, dt=0.01, limits=False, external=pushed)
    assert "momentum_error" not in motion.signals


def test_closures_that_hold():
    bar = pp.robots.four_bar()
    loops = [pp.Loop("coupler_tip", "rocker_tip", free=np.eye(6)[:, [3, 5]])]
    closed = pp.close_loops(bar, loops, np.array([0.4, 0.2, -0.1]), np.array([1.0, 0.0, 0.0]))
    silent(bar, closed.q, closed.v, duration=0.5, dt=2e-3, closures=loops)


# ---- alarms -------------------------------------------------------------------------------------


def test_a_spring_whose_force_is_not_the_gradient_of_its_energy(monkeypatch: pytest.MonkeyPatch):
    robot = stick(stiffness=10.0)
    silent(robot, [1.0], duration=1.0, dt=0.01)
    right = pp.passive_energy
    monkeypatch.setattr(balance, "passive_energy", lambda *args: 1.0001 * right(*args))
    _, said = watched(robot, [1.0], duration=1.0, dt=0.01)
    assert len(said) == 1 and "is not the gradient of its energy" in said[0]
    assert "J at t = 0.01 s, which neither work nor the steps explain" in said[0]


@each("part", [0, 1])
def test_work_that_is_counted_wrong(part: int):
    """The power of the brake, and the energy of motion."""
    names = ("supplied", "kinetic_energy")
    right = getattr(balance, names[part])

    def wrong(*args: Any, **options: Any) -> Any:
        found = right(*args, **options)
        return (1.001 * found[0], found[1]) if part == 0 else 1.001 * found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(balance, names[part], wrong)
        how: dict[str, Any] = {"parameters": {"gain": 0.5}, "duration": 1.0, "dt": 0.01}
        _, said = watched(balls(1.0), [0.0], [1.0], brake, **how)
    assert len(said) == 1 and "neither work nor the steps explain" in said[0]


def test_steps_that_are_too_coarse():
    _, said = watched(ROBOT, START, duration=1.0, dt=0.05, method="euler")
    assert len(said) == 1 and said[0].startswith("the steps are too coarse: the energy is off by")
    assert "J in play; take a smaller dt" in said[0]


def test_closures_that_open():
    bar = pp.robots.four_bar()
    loops = [pp.Loop("coupler_tip", "rocker_tip", free=np.eye(6)[:, [3, 5]])]
    closed = pp.close_loops(bar, loops, np.array([0.4, 0.2, -0.1]), np.array([1.0, 0.0, 0.0]))
    how: dict[str, Any] = {"duration": 2.0, "dt": 2e-2, "closures": loops, "stabilisation": 0.0}
    _, said = watched(bar, closed.q, closed.v, method="euler", **how)
    assert any("the closures have opened by" in one and "stabilisation" in one for one in said)


def test_momentum_and_norms_that_drift(monkeypatch: pytest.MonkeyPatch):
    robot = floater()
    q, v = robot.random_state(1)
    right = pp.momentum
    monkeypatch.setattr(
        balance, "momentum", lambda robot, q, v: right(robot, q, v) * (1 + 1e-6 * q[..., :1])
    )
    monkeypatch.setattr(balance, "NORM", -1.0)
    _, said = watched(robot, q, 0.3 * v, duration=0.5, dt=0.01, limits=False)
    assert len(said) == 2 and "nothing acts from outside" in said[0] and "unit norm" in said[1]


def test_what_it_is_for():
    with pytest.raises(TypeError, match="verify is 1, needs True or False"):
        pp.simulate(ROBOT, START, duration=1.0, verify=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="motion: verify is for simulate and rollout"):
        pp.motion(duration=1.0, verify=True)
    plain = pp.simulate(ROBOT, START, duration=0.1, dt=0.01)
    assert balance.ENERGY not in plain.signals
