"""Parameters of controllers that are sequences over time.

Masses on rails without other forces: with values held, or linear in between, their motion is exact
by hand, and every Runge-Kutta method of second order or more has no error either.
"""

from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi.simulation.options import MethodName
from tests.each import each
from tests.simulation.machines import balls

MASSES = np.array([1.0, 2.0])
T = 2.0


def push(robot: pp.Robot, u: Any) -> Any:
    """τ = u"""
    return u


def held(u: Any) -> Any:
    """Positions and velocities at the end, from rest, under values each held for T/K."""
    h, q, v = T / u.shape[-2], 0.0, 0.0
    for now in np.moveaxis(u, -2, 0) / MASSES:
        q, v = q + h * v + h * h / 2 * now, v + h * now
    return q, v


def linear(u: Any) -> Any:
    """The same under values that are linear between K equidistant rows."""
    h, q, v = T / (len(u) - 1), 0.0, 0.0
    for a, b in zip(u[:-1] / MASSES, u[1:] / MASSES, strict=True):
        q, v = q + h * v + h * h * (a / 3 + b / 6), v + h * (a + b) / 2
    return q, v


METHODS: tuple[MethodName, ...] = ("rk4", "rk4-mk", "midpoint", "dop853", "radau")
GRIDS = [(20, 1), (20, 5), (20, 20), (20, 4), (8, 10), (200, 5), (1, 200)]
"""Rows for 200 steps, and steps of a sample: shorter, longer, and neither a part of the other."""


@each("rows, every", GRIDS)
def test_held_values_are_held(rows: int, every: int):
    u = np.random.default_rng(rows).standard_normal((rows, 2))
    exact = held(u)
    for method in METHODS if rows == 20 else METHODS[:1]:
        motion = pp.simulate(
            balls(*MASSES), [0.0, 0.0], None, push, duration=T, dt=0.01, every=every,
            method=method, sequences="u", parameters={"u": u},
        )  # fmt: skip
        assert np.allclose(motion.q[-1], exact[0], atol=1e-13)
        assert np.allclose(motion.v[-1], exact[1], atol=1e-13)
        row = np.minimum(np.floor(motion.t / T * rows + 1e-9), rows - 1).astype(int)
        assert np.array_equal(motion.tau, u[row])


@each("rows, every", [(11, 1), (11, 5), (11, 20), (11, 8), (201, 10), (2, 200)])
def test_linear_values_are_interpolated(rows: int, every: int):
    u = np.random.default_rng(rows).standard_normal((rows, 2))
    exact, times = linear(u), np.linspace(0.0, T, rows)
    for method in ("rk4", "dop853"):
        motion = pp.simulate(
            balls(*MASSES), [0.0, 0.0], None, push, duration=T, dt=0.01, every=every,
            method=method, sequences={"u": "linear"}, parameters={"u": u},
        )  # fmt: skip
        assert np.allclose(motion.q[-1], exact[0], atol=1e-13)
        assert np.allclose(motion.v[-1], exact[1], atol=1e-13)
        expected = np.stack([np.interp(motion.t, times, x) for x in u.T], axis=-1)
        assert np.allclose(motion.tau, expected, atol=1e-13)


def test_sequences_of_different_lengths_go_together():
    """Held forces, an offset that is linear, and a constant gain."""

    @pp.program(shapes={"offset": (), "gain": ()})
    def law(robot: pp.Robot, u: Any, offset: Any, gain: Any) -> Any:
        return gain * u + offset * np.ones(2)

    rng = np.random.default_rng(0)
    u, offset = rng.standard_normal((8, 2)), rng.standard_normal(26)
    how: dict[str, Any] = {"duration": T, "dt": 0.01, "every": 10}
    names = {"offset": "linear", "u": "hold"}
    given = {"u": u, "offset": offset, "gain": 3.0}
    for run in (pp.simulate, pp.rollout):
        motion = run(
            balls(*MASSES), [0.0, 0.0], None, law, parameters=given, sequences=names, **how
        )
        end = 3.0 * held(u)[0] + linear(offset[:, None] * np.ones(2))[0]
        assert np.allclose(motion.q[-1], end, atol=1e-13)
    program = pp.motion(law, sequences=names, **how)
    assert np.allclose(program(balls(*MASSES), np.zeros(2), np.zeros(2), **given).q[-1], end)


def test_every_row_of_a_batch_has_its_own_sequence():
    u = np.random.default_rng(1).standard_normal((3, 40, 2))
    how: dict[str, Any] = {"duration": T, "dt": 0.01, "every": 4, "sequences": ["u"]}
    robot, exact = balls(*MASSES), held(u)[0]
    many = pp.rollout(robot, [0.0, 0.0], None, push, parameters={"u": u}, signals=True, **how)
    assert many.q.shape == (3, 51, 2) and np.allclose(many.q[:, -1], exact, atol=1e-13)
    assert np.array_equal(many.tau[:, 0], u[:, 0]) and np.array_equal(many.tau[:, -1], u[:, -1])
    alone = pp.simulate(robot, [0.0, 0.0], None, push, parameters={"u": u}, **how)
    assert np.allclose(alone.q, many.q, atol=1e-14)
    states = pp.motion(push, **how)(robot, np.zeros(2), np.zeros(2), u=u)
    assert np.allclose(states.q, many.q, atol=1e-14)


@pytest.mark.parametrize("interpolation", ["hold", "linear"])
def test_gradients_by_a_sequence(interpolation: Any):
    """∂q(T)/∂u by hand: the motion is linear in u."""
    rows = 20 + (interpolation == "linear")
    by_hand = held if interpolation == "hold" else linear
    units = np.eye(rows)[:, :, None] * np.ones(2)
    exact = np.array([by_hand(unit)[0] for unit in units])
    for every in (1, 5, 20, 4):
        end = pp.motion(push, duration=T, dt=0.01, every=every, sequences={"u": interpolation})

        @pp.program(shapes={"u": (rows, 2)})
        def last(robot: pp.Robot, q: Any, v: Any, u: Any, end: Any = end) -> Any:
            return end(robot, q, v, u=u).q[-1].sum()

        start = balls(*MASSES), np.zeros(2), np.zeros(2), np.zeros((rows, 2))
        for mode in ("reverse", "forward"):
            found = last.derivative(wrt="u", mode=mode)(*start)
            assert np.allclose(found, exact, atol=1e-13)


def test_ten_thousand_rows_with_their_gradient():
    """The code of a gradient does not grow with the number of rows."""
    robot, count = pp.robots.double_pendulum(), 10_000

    def damped(robot: pp.Robot, v: Any, u: Any) -> Any:
        return u - v

    end = pp.motion(damped, duration=10.0, dt=1e-3, every=100, sequences="u", limits=False)

    @pp.program(shapes={"u": (count, 2)})
    def cost(robot: pp.Robot, q: Any, v: Any, u: Any) -> Any:
        last = end(robot, q, v, u=u)
        return last.q[-1] @ last.q[-1]

    u, along = np.random.default_rng(0).standard_normal((2, count, 2))
    q, v, e = np.array([0.3, -0.2]), np.zeros(2), 1e-4
    gradient = cost.derivative(wrt="u")
    found = (gradient(robot, q, v, u) * along).sum()
    ahead, behind = (cost(robot, q, v, u + sign * e * along) for sign in (1.0, -1.0))
    assert found == pytest.approx((ahead - behind) / (2 * e), rel=1e-5)
    text = gradient.show(robot, stage="graph", u=u)
    assert "loop of" in str(text)


def test_a_change_gives_another_sequence():
    u, other = np.ones((4, 2)), np.full((4, 2), -1.0)
    motion = pp.simulate(
        balls(*MASSES), [0.0, 0.0], None, push, duration=T, dt=0.01, sequences="u",
        parameters={"u": u}, events=[pp.Change(1.0, {"u": other})],
    )  # fmt: skip
    assert (motion.tau[motion.t < 0.99] == 1.0).all() and (motion.tau[motion.t > 1.01] == -1).all()
    assert np.allclose(motion.v[-1], 0.0, atol=1e-13)


def test_sequences_that_cannot_be():
    robot = balls(*MASSES)
    how: dict[str, Any] = {"duration": T, "dt": 0.01}

    def refused(error: type[Exception], sentence: str, u: Any, sequences: Any) -> None:
        with pytest.raises(error, match=sentence):
            pp.simulate(
                robot, [0.0, 0.0], None, push, sequences=sequences, parameters={"u": u}, **how
            )

    u = np.zeros((20, 2))
    refused(ValueError, "u is a sequence of 19 rows for 200 steps; it needs a divisor", u[1:], "u")
    refused(ValueError, "20 rows.*one more than a divisor", u, {"u": "linear"})
    refused(ValueError, r"u is a sequence over time of shape \(2,\)", u[0], "u")
    refused(ValueError, "'cubic', needs 'hold' or 'linear'", u, {"u": "cubic"})
    refused(TypeError, "'w' is no parameter of the controller; push has", u, ("u", "w"))
    with pytest.raises(TypeError, match="'w' is no parameter"):
        pp.motion(push, sequences="w", **how)
    with pytest.raises(ValueError, match=r"u has shape \(2,\), needs \(\.\.\., rows, length\)"):
        pp.motion(push, sequences="u", **how)(robot, np.zeros(2), np.zeros(2), u=np.zeros(2))
