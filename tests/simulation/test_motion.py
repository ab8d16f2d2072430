"""`pp.motion`: rollouts as programs, and gradients through them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.simulation import METHODS
from tests.problems.bricard import start as bricard


@pp.program
def servo(robot: Any, q: Any, v: Any, kp: Any, kd: Any) -> Any:
    return -kp * robot.difference(robot.neutral(), q) - kd * v


def counting(robot: Any, q: Any, v: Any, memory: Any) -> Any:
    return {"tau": -memory * np.ones(2), "memory": memory + q[0]}


START = np.array([[0.5, -0.3], [0.2, 0.1]]), np.zeros((2, 2))
GAINS = {"kp": np.full(2, 3.0), "kd": np.full(2, 0.5)}


@pytest.mark.parametrize("method", [m for m in METHODS if m != "preserving4"])
@pytest.mark.parametrize("every", [1, 5])
def test_it_is_the_rollout(method: str, every: int) -> None:
    robot = pp.robots.double_pendulum()
    how: dict[str, Any] = {"duration": 0.2, "dt": 0.01, "every": every, "method": method}
    expected = pp.rollout(robot, *START, servo, parameters=GAINS, **how)
    found = pp.motion(servo, **how)(robot, *START, **GAINS)
    np.testing.assert_allclose(found.q, expected.q, atol=1e-13)
    np.testing.assert_allclose(found.v, expected.v, atol=1e-12)


@pytest.mark.parametrize("every", [1, 7])
def test_gradients_through_time(every: int) -> None:
    """Of a free-flyer, in reverse with checkpoints, against differences."""
    robot = pp.robots.space_arm()
    rng = np.random.default_rng(0)
    q, v = robot.random_state(rng)
    path = pp.motion(servo, duration=0.21, dt=0.01, every=every, method="euler")

    @pp.program
    def cost(robot: Any, q: Any, v: Any, kp: Any, kd: Any) -> Any:
        x = path(robot, q, 0.1 * v, kp=kp, kd=kd)
        return np.sum(x.q[-1] ** 2) + np.sum(x.v**2)

    kp, kd = rng.uniform(1.0, 2.0, (2, robot.nv))
    slope = cost.derivative(("q", "kp"), mode="reverse")
    by_q, by_kp = slope(robot, q, v, kp, kd)
    h, along = 1e-6, rng.normal(size=robot.nv)
    ends = [cost(robot, robot.integrate(q, s * along), v, kp, kd) for s in (h, -h)]
    assert by_q @ along == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)
    ends = [cost(robot, q, v, kp + s * along, kd) for s in (h, -h)]
    assert by_kp @ along == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5)


def test_memory_may_be_a_number() -> None:
    robot = pp.robots.double_pendulum()
    how: dict[str, Any] = {"duration": 0.1, "dt": 0.01}
    found = pp.motion(counting, **how)(robot, START[0][0], START[1][0], memory=0.0)
    expected = pp.rollout(robot, START[0][0], START[1][0], counting, memory=0.0, **how)
    np.testing.assert_allclose(found.q, expected.q, atol=1e-14)


def test_wrong_arguments_are_one_sentence() -> None:
    robot = pp.robots.double_pendulum()
    q, v = START[0][0], START[1][0]
    with pytest.raises(ValueError, match=r"stiffness is -3\.0, needs a positive number"):
        pp.motion(pp.control.pd_gravity, duration=0.02)(robot, q, v, target=q, stiffness=-3.0)
    with pytest.raises(TypeError, match="kp is None, needs numbers"):
        pp.motion(servo, duration=0.02)(robot, q, v, kp=None, kd=q)
    with pytest.raises(ValueError, match="'dop853' chooses its own steps"):
        pp.motion(servo, duration=0.02, method="dop853")
    with pytest.raises(ValueError, match="no method 'rk5'"):
        pp.motion(servo, duration=0.02, method="rk5")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="needs a program or a function"):
        pp.motion(3, duration=0.02)  # type: ignore[arg-type]


def test_gradients_pass_through_redundant_closures():
    """Bricard's mechanism, one of whose five rows always depends on the others."""
    case = bricard(4)
    robot, options = case.robot, case.options
    swing = pp.motion(lambda robot, u: u, duration=0.02, dt=2e-3, **options)

    @pp.program(shapes={"u": (5,)})
    def cost(robot: pp.Robot, q: Any, v: Any, u: Any) -> Any:
        return np.sum(swing(robot, q, v, u=u).v[-1] ** 2)

    start = pp.simulate(robot, case.q, duration=0.3, dt=1e-3, every=300, **options)
    state, u, step = (start.q[-1], start.v[-1]), np.array([0.3, -0.2, 0.5, 0.1, 0.4]), 1e-3
    found = cost.derivative(wrt="u")(robot, *state, u)
    ahead, behind = (
        [float(cost(robot, *state, u + k * step * unit)) for unit in np.eye(5)] for k in (1, -1)
    )
    expected = (np.array(ahead) - behind) / (2 * step)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-10)
