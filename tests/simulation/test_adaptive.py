"""Integrators of SciPy: their Jacobian, their tolerances, trial states that are not finite, and the
advice in `Diverged`."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import phipsi as pp
from phipsi.simulation.closed_loop import ClosedLoop, derivative, jacobian
from phipsi.simulation.controller import BoundController
from phipsi.simulation.diverged import advice, singular_time
from phipsi.simulation.options import MethodName, SimulationOptions
from phipsi.simulation.plant import Plant
from tests.simulation.machines import ALONG, STEP, balls, stick
from tests.zoo import random_forest

# ---- a governor whose shaft spins ---------------------------------------------------------------

ROD, BALL, SLIDER, SHAFT, LENGTH, G = 0.3, 5.0, 1.0, 0.05, 1.0, 9.81
K, C, COUPLER = 8e5, 4e4, 0.5
"""Stiffness [N/m], damping [N·s/m] and free length [m] of the couplers (IFToMM A05)."""


def governor() -> pp.Robot:
    """A shaft about the vertical, two thin arms with balls at their tips, and a sleeve on the
    shaft."""
    builder = pp.Builder("governor", gravity=(0.0, 0.0, -G))
    builder.body("shaft", mass=1.0, inertia=(0.1, 0.1, SHAFT))
    builder.hinge("spin", "revolute", "world", "shaft", axis=(0.0, 0.0, 1.0))
    com = (ROD * LENGTH / 2 + BALL * LENGTH) / (ROD + BALL)
    inertia = ROD * LENGTH**2 / 12 + ROD * (com - LENGTH / 2) ** 2 + BALL * (LENGTH - com) ** 2
    for arm, sign in (("left", -1.0), ("right", 1.0)):
        builder.body(arm, mass=ROD + BALL, com=(0.0, 0.0, -com), inertia=(inertia, inertia, 0.0))
        builder.hinge(arm, "revolute", "shaft", arm, axis=(0.0, sign, 0.0))
        builder.frame(f"{arm}_pin", arm, position=(0.0, 0.0, -LENGTH / 2))
    builder.body("sleeve", mass=SLIDER)
    builder.hinge("slide", "prismatic", "shaft", "sleeve", axis=(0.0, 0.0, 1.0))
    return builder.build()


def couplers(robot: pp.Robot, q: Any, v: Any) -> dict[str, Any]:
    """Springs and dampers from the middle of each arm to the sleeve, computed in the world."""
    sleeve, total = pp.frame_pose(robot, q, "sleeve"), np.zeros(3)
    speed = pp.frame_velocity(robot, q, v, "sleeve", reference="aligned")[3:]
    forces: dict[str, Any] = {}
    for pin in ("left_pin", "right_pin"):
        pose = pp.frame_pose(robot, q, pin)
        rate = pp.frame_velocity(robot, q, v, pin, reference="aligned")[3:] - speed
        way = pose[:3, 3] - sleeve[:3, 3]
        length = np.sqrt(way @ way)
        along = way / length
        force = (-K * (length - COUPLER) - C * (along @ rate)) * along
        forces[pin] = np.concatenate([np.zeros(3), pose[:3, :3].T @ force])
        total = total + sleeve[:3, :3].T @ force
    forces["sleeve"] = np.concatenate([np.zeros(3), -total])
    return {"tau": np.zeros(robot.nv), "external": forces}


def by_hand(t: float, y: Any) -> Any:
    """Lagrange's equations of the governor: spin φ, arms α, height s of the sleeve.

    T = ½(I + ΣJ sin²α)φ̇² + ½ΣJα̇² + ½ms², and l² = (½ sin α)² + (s + ½ cos α)² of a coupler.
    """
    alpha, s, spin, rates, climb = y[1:3], y[3], y[4], y[5:7], y[7]
    J, moment = (ROD / 3 + BALL) * LENGTH**2, (ROD / 2 + BALL) * LENGTH * G
    sin, cos, half = np.sin(alpha), np.cos(alpha), LENGTH / 2
    across, up = half * sin, s + half * cos
    length = np.hypot(across, up)
    by_alpha, by_s = (half * cos * across - half * sin * up) / length, up / length
    force = -K * (length - COUPLER) - C * (by_alpha * rates + by_s * climb)
    slowed = -2 * J * (sin * cos * rates).sum() * spin / (SHAFT + J * (sin**2).sum())
    swung = sin * cos * spin**2 + (force * by_alpha - moment * sin) / J
    return np.array([spin, *rates, climb, slowed, *swung, (force * by_s).sum() / SLIDER - G])


@pytest.mark.parametrize("method", ["radau", "lsoda"])
def test_a_governor_whose_spin_angle_grows(method: MethodName):
    """Differences of SciPy's own end at an infinite spin angle, on which no rate depends."""
    q = np.array([0.0, np.pi / 6, np.pi / 6, -np.cos(np.pi / 6)])
    v = np.array([2 * np.pi, 0.0, 0.0, 0.0])
    motion = pp.simulate(governor(), q, v, couplers, duration=2.0, dt=0.1, method=method)
    with np.errstate(over="ignore"):  # of its own differences, which end there too
        exact = solve_ivp(
            by_hand, (0.0, 2.0), [*q, *v], "Radau", motion.t, rtol=1e-11, atol=1e-13
        ).y.T
    assert np.abs(motion.q - exact[:, :4]).max() < 1e-7
    assert np.abs(motion.v - exact[:, 4:]).max() < 1e-6


def test_the_jacobian_is_that_of_the_rates():
    """By central differences, on every hinge kind, quaternions as four plain numbers."""
    robot = random_forest(3, 6)
    q, v = robot.random_state(2)
    y, loop = np.concatenate([q, v]), ClosedLoop(BoundController(), Plant())
    found = np.asarray(jacobian(robot, y, 0.0, 1e-3, loop=loop))
    e = 1e-6
    ahead, behind = (
        np.asarray(derivative(robot, y + sign * e * np.eye(len(y)), 0.0, 1e-3, loop=loop))
        for sign in (1.0, -1.0)
    )
    expected = (ahead - behind).T / (2 * e)
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


# ---- tolerances ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["dop853", "rk45", "radau", "lsoda"])
def test_errors_follow_the_tolerances(method: MethodName):
    robot = stick(stiffness=9.0)
    errors = []
    for rtol in (1e-3, 1e-6, 1e-9):
        how: dict[str, Any] = {"method": method, "rtol": rtol, "atol": 1e-2 * rtol}
        motion = pp.simulate(robot, [1.0], duration=4.0, dt=0.5, **how)
        errors.append(np.abs(motion.q[:, 0] - np.cos(3.0 * motion.t)).max())
    assert errors[0] > 10 * errors[1] > 100 * errors[2]
    assert errors[1] < 1e-3 and errors[2] < 1e-6


@pytest.mark.parametrize(
    "how, sentence",
    [
        ({"rtol": 1e-6}, r"rtol is for methods that choose their own steps \(dop853"),
        ({"atol": 1e-6, "method": "implicit"}, "atol is for methods.*'implicit' has the step dt"),
        ({"rtol": 1e-20, "method": "radau"}, "rtol is 1e-20, needs a number from 2.2e-14 up to 1"),
        ({"rtol": 1.0, "method": "radau"}, "rtol is 1.0, needs"),
        ({"atol": 0.0, "method": "radau"}, "atol is 0.0, needs a finite number > 0"),
    ],
)
def test_tolerances_that_cannot_be(how: dict[str, Any], sentence: str):
    with pytest.raises(ValueError, match=sentence):
        pp.simulate(balls(1.0), [0.0], **STEP, **how)
    with pytest.raises(TypeError, match="rtol is '1e-6', needs a number"):
        pp.simulate(balls(1.0), [0.0], **STEP, method="radau", rtol="1e-6")  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["dop853", "rk45", "radau"])
def test_a_trial_state_without_forces_is_followed_by_a_shorter_step(
    method: MethodName, monkeypatch: pytest.MonkeyPatch
):
    """ẍ = −ln x turns back just before x = 0; long steps try x < 0, where there is no force."""
    from phipsi.simulation import adaptive

    found: list[bool] = []

    def watched(*args: Any, **kwargs: Any) -> Any:
        rates = derivative(*args, **kwargs)
        found.append(bool(np.isfinite(rates).all()))
        return rates

    monkeypatch.setattr(adaptive, "derivative", watched)
    how: dict[str, Any] = {"method": method, "rtol": 1e-3, "atol": 1e-5}
    motion = pp.simulate(
        balls(1.0), [1.0], [-1.41], lambda robot, q: -np.log(q), duration=20.0, dt=1.0, **how
    )
    exact = solve_ivp(
        lambda t, y: [y[1], -np.log(y[0])], (0.0, 20.0), [1.0, -1.41], "DOP853", motion.t,
        rtol=1e-12, atol=1e-13,
    ).y[0]  # fmt: skip
    assert not all(found) and found[-1]
    assert np.abs(motion.q[:, 0] - exact).max() < 0.1


# ---- advice -------------------------------------------------------------------------------------


def diverged(robot: pp.Robot, *args: Any, **how: Any) -> str:
    with pytest.raises(pp.Diverged) as caught:
        pp.simulate(robot, *args, **how)
    assert np.isfinite(caught.value.trajectory.q).all()
    return str(caught.value).partition("; ")[2]


def test_advice_fits_the_method():
    stiff = stick(stiffness=1e6, damping=1e3)
    start: tuple[Any, ...] = ([1e-3], [1.0])
    long = {"duration": 5.0, "dt": 0.01}
    said = diverged(stiff, *start, **long, method="euler")
    assert said == "take a smaller dt or for stiff springs method='implicit'"

    def gain(robot: pp.Robot, q: Any) -> Any:
        return -1e8 * q

    said = diverged(stiff, *start, gain, **long, method="implicit")
    assert said == "take a smaller dt, softer gains or for stiff forces method='radau'"
    said = diverged(stick(), *start, gain, **long)
    assert "implicit" not in said and "radau" in said


def test_advice_names_a_controller_that_is_not_finite():
    def broken(robot: pp.Robot, t: Any) -> Any:
        return np.sqrt(0.055 - t) * np.ones(robot.nv)

    for method in ("rk4", "radau"):
        said = diverged(balls(1.0), [0.0], [1.0], broken, **STEP, method=method)
        assert said.startswith("the controller returns forces that are not finite")


@pytest.mark.parametrize("method", ["dop853", "rk45", "radau", "lsoda"])
def test_a_motion_that_ends_keeps_its_samples(method: MethodName):
    """ẍ = 6x², x = 1/(1 − t)², has no end: the samples before t = 1 stay, and are right."""
    with pytest.raises(pp.Diverged) as caught:
        pp.simulate(
            balls(1.0), [1.0], [2.0], lambda robot, q: 6.0 * q**2, duration=2.1, dt=0.3,
            method=method, rtol=1e-6, atol=1e-8,
        )  # fmt: skip
    before = caught.value.trajectory
    assert before.t[-1] == pytest.approx(0.9)
    assert np.allclose(before.q[:, 0], (1.0 - before.t) ** -2, rtol=1e-3)
    assert ("radau" in str(caught.value)) == (method in ("dop853", "rk45", "radau"))


def parallelogram() -> tuple[pp.Robot, list[pp.Loop]]:
    """Cranks of 1 m and a coupler of 2 m, no gravity: flat at the angles 0 and π."""
    builder = pp.Builder("parallelogram", gravity=(0.0, 0.0, 0.0))
    axis = (0.0, 1.0, 0.0)
    for name, parent, x, length in (
        ("crank", "world", 0.0, 1.0), ("coupler", "crank", 1.0, 2.0), ("rocker", "world", 2.0, 1.0)
    ):  # fmt: skip
        builder.body(name, mass=1.0, com=(length / 2, 0.0, 0.0), inertia=(0.0, 0.1, 0.1))
        builder.hinge(name, "revolute", parent, name, position=(x, 0.0, 0.0), axis=axis)
        builder.frame(f"{name}_tip", name, position=(length, 0.0, 0.0))
    return builder.build(), [pp.Loop("coupler_tip", "rocker_tip", free=np.eye(6)[:, [3, 5]])]


def test_advice_names_closures_that_are_singular():
    """The cranks turn at a constant rate and are flat at t = 1."""
    robot, loops = parallelogram()
    angle, rate = np.pi - 0.5, 0.5
    q, v = np.array([angle, -angle, angle]), np.array([rate, -rate, rate])
    how: dict[str, Any] = {"duration": 1.0, "dt": 0.01}
    motion = pp.simulate(robot, q, v, closures=loops, **how)
    assert motion.q[-1, 0] == pytest.approx(np.pi, abs=1e-4)
    plant = Plant(closures=tuple(loops))
    assert singular_time(motion, plant) == pytest.approx(1.0, abs=0.011)
    assert singular_time(motion[motion.t < 0.9], plant) is None
    options = SimulationOptions(closures=loops, **how)
    said = advice(motion, options, plant, controlled=True, broken=False)
    assert said.startswith("the closures are singular near t =") and "dt" not in said
    redundant = Plant(closures=(pp.Loop("b0", "b1", free=ALONG),) * 2)
    sliding = pp.simulate(balls(1.0, 2.0), [0.0, 0.0], [1.0, 1.0], **STEP)
    assert singular_time(sliding, redundant) is None
