"""`Program.derivative` against differences, in the tangent space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import phipsi as pp
from phipsi.programs.derivative import Mode
from tests.zoo import MOVING, State, close, forests, random_forest

pytestmark = pytest.mark.usefixtures("interpreted")

few = settings(max_examples=max(1, settings().max_examples // 12), deadline=None)


def differences(kernel: Any, robot: pp.Robot, args: list[Any], k: int, h: float = 1e-5) -> Any:
    """The derivative of a kernel by its k-th argument, q in the tangent space, in long double."""
    coordinates = k == 0
    n = robot.nv if coordinates else args[k].shape[-1]
    columns = []
    for unit in np.eye(n, dtype=np.longdouble):
        ends = []
        for s in (h, -h):
            moved = robot.integrate(args[k], s * unit) if coordinates else args[k] + s * unit
            ends.append(kernel(*args[:k], moved, *args[k + 1 :]))
        columns.append((ends[0] - ends[1]) / (2 * h))
    return np.stack(columns, -1).astype(float)


@few
@given(forests(5, massless=False))
def test_every_kind_of_hinge(robot: pp.Robot) -> None:
    x = State(robot)
    args = [np.asarray(y, np.longdouble) for y in (x.q, x.v, x.tau)]
    plain = pp.forward_dynamics.compile(robot, backend="numpy", dtype="longdouble")
    for mode in ("forward", "reverse"):
        derivative = pp.forward_dynamics.derivative(("q", "v", "tau"), mode=mode)
        for unroll in (True, False):
            found = derivative.compile(robot, backend="numpy", unroll=unroll)(x.q, x.v, x.tau)
            for k, part in enumerate(found):
                close(part, differences(plain, robot, args, k), 1e-8)


def test_second_derivatives() -> None:
    """The Hessian of the potential energy of a chain: symmetric, and ∂/∂q of gravity's force."""
    robot = random_forest(5, 5, kinds=("revolute", "prismatic", "helical"), massless=False)
    q = State(robot, (3,)).q
    hessian = pp.potential_energy.derivative("q").derivative("q")(robot, q)
    close(hessian, np.swapaxes(hessian, -1, -2), 1e-12)
    close(hessian, pp.gravity_force.derivative("q")(robot, q), 1e-12)
    energy = pp.kinetic_energy.derivative("v").derivative("v")
    close(energy(robot, q, np.zeros(robot.nv)), pp.mass_matrix(robot, q), 1e-12)


def test_numbers_of_the_robot() -> None:
    """∂T/∂π is the regressor, also where the numbers are inputs of the kernel themselves."""
    robot = random_forest(11, 4, kinds=MOVING, massless=False)
    x, body = State(robot, (3,)), robot.bodies[-1].name
    name = f"inertia:{body}"
    derivative = pp.inverse_dynamics.derivative(name)
    expected = pp.regressor(robot, x.q, x.v, x.a)[..., -10:]
    close(derivative(robot, x.q, x.v, x.a), expected, 1e-12)
    kernel = derivative.compile(robot, inputs=(name,))
    close(kernel(x.q, x.v, x.a, 2.0 * robot.parameter(name)), expected, 1e-12)
    by_gravity = pp.inverse_dynamics.derivative("gravity")(robot, x.q, x.v, x.a)
    still = np.zeros((3, robot.nv))
    close(by_gravity @ robot.gravity, pp.gravity_force(robot, x.q), 1e-10)
    assert np.abs(pp.inverse_dynamics.derivative("gravity")(robot, x.q, still, still)).max() > 0.1


@pytest.mark.parametrize("name", pp.robots.ROBOTS)
def test_finite_at_rest_in_the_neutral_place(name: str) -> None:
    """Nothing vanishes under a root or a quotient, in neither mode."""
    robot = pp.robots.ROBOTS[name]()
    state = robot.neutral(), *np.zeros((2, robot.nv))
    for program in (pp.forward_dynamics, pp.inverse_dynamics):
        kernel = program.compile(robot, backend="numpy")
        rates = kernel.pushforward()(*state, np.ones(robot.nq), *np.ones((2, robot.nv)))
        gradients = kernel.pullback()(*state, np.ones(robot.nv))
        assert all(np.isfinite(part).all() for part in (rates, *gradients))


def test_results_are_packed_and_chosen() -> None:
    robot = pp.robots.double_pendulum()
    x = State(robot, (4,))
    whole = pp.articulated_inertias.derivative("q")(robot, x.q)
    assert whole.P.shape == (4, 2, 6, 6, 2)
    chosen = pp.articulated_inertias.derivative("q", of="D")(robot, x.q)
    close(chosen, whole.D, 1e-14)
    (one,) = pp.articulated_inertias.derivative(("q",), of="D")(robot, x.q)
    np.testing.assert_array_equal(one, chosen)
    pushed = pp.forward_dynamics.derivative("external")
    assert pushed(robot, x.q, x.v, x.tau, external=x.external).shape == (4, 2, 2, 6)
    inner = pp.program(lambda robot, q: pp.kinetic_energy.derivative("v")(robot, q, 2.0 * q))
    close(inner(robot, x.q), pp.mass_matrix_product(robot, x.q, 2.0 * x.q), 1e-12)


def test_wrong_names_are_one_sentence() -> None:
    robot = pp.robots.double_pendulum()
    with pytest.raises(ValueError, match="no argument 'p' to be derived by; it has q, v, tau"):
        pp.forward_dynamics.derivative("p")
    with pytest.raises(ValueError, match="mode 'backward' is not one of forward, reverse"):
        pp.forward_dynamics.derivative("q", mode="backward")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no result 'X'; it has P, D, G"):
        pp.articulated_inertias.derivative("q", of="X")(robot, np.zeros(2))
    with pytest.raises(ValueError, match="external was not given"):
        pp.forward_dynamics.derivative("external")(robot, *np.zeros((3, 2)))
    with pytest.raises(pp.ModelError, match="no body 'tail'"):
        pp.forward_dynamics.derivative("inertia:tail")(robot, *np.zeros((3, 2)))
    with pytest.raises(ValueError, match="no input 'w'; it has q, v, tau"):
        pp.forward_dynamics.compile(robot, backend="numpy").pullback(("w",))
    for wrong in ((), 3, (3,)):
        with pytest.raises(TypeError, match="needs names of arguments"):
            pp.forward_dynamics.derivative(wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="has a name twice"):
        pp.forward_dynamics.derivative(("q", "q"))
    with pytest.raises(ValueError, match="external is no array"):
        pushed = pp.forward_dynamics.derivative("external")
        pushed(robot, *np.zeros((3, 2)), external={"tool": np.zeros(6)})


def test_a_derivative_refuses_where_its_program_does() -> None:
    arm = pp.robots.seven_axis_arm()
    frame = list(arm.frames)[-1]
    with pytest.raises(pp.SingularError):
        pp.operational_inertia.derivative("q")(arm, arm.neutral(), [frame])


def test_kernels_keep_the_order_asked_for() -> None:
    robot = pp.robots.double_pendulum()
    kernel = pp.program(lambda robot, q, v: np.sum(2 * q + 3 * v)).compile(robot, backend="numpy")
    by_v, by_q = kernel.pullback(("v", "q"))(np.zeros(2), np.zeros(2), 1.0)
    assert by_v.tolist() == [3.0, 3.0] and by_q.tolist() == [2.0, 2.0]
    (alone,) = kernel.pullback("v")(np.zeros(2), np.zeros(2), 1.0)
    assert alone.tolist() == [3.0, 3.0]


def test_powers_of_nothing() -> None:
    robot, scalar = pp.robots.double_pendulum(), pp.program(shapes={"x": ()})
    assert scalar(lambda robot, x: x**1.5).derivative("x")(robot, 0.0) == 0.0
    assert scalar(lambda robot, x: x**-1.5)(robot, 4.0) == 0.125
    assert scalar(lambda robot, x: x**2.5).derivative("x")(robot, 4.0) == 20.0


def test_a_derivative_remembered_on_disk_is_of_one_program() -> None:
    """Another program of the same function, with other shapes, is not taken for it."""
    robot = pp.robots.space_arm()
    q = State(robot).q
    assert pp.potential_energy.derivative("q")(robot, q).shape == (robot.nv,)
    plain = pp.program(shapes={"q": (robot.nq,)})(pp.potential_energy.function)
    assert plain.derivative("q")(robot, q).shape == (robot.nq,)


def test_looped_sweeps_by_numbers_of_the_robot_in_reverse() -> None:
    """Rounds that read one place twice."""
    robot = pp.robots.chain(4)
    total = pp.program(lambda robot, q: np.sum(pp.mass_matrix(robot, q)))
    q = robot.neutral() + 0.1
    cases: list[tuple[Mode, bool]] = [("forward", True), ("reverse", False)]
    ways = [
        total.derivative("inertia:link3", mode=mode).compile(robot, backend="numpy", unroll=unroll)(
            q
        )
        for mode, unroll in cases
    ]
    close(ways[1], ways[0], 1e-12)
