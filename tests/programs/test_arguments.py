"""Arguments and `out=` of programs and kernels: what is not right is refused in a sentence, what is
accepted gives the numbers of a plain call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import phipsi as pp
from phipsi.compile import BackendName, linalg
from phipsi.typing import MAX_AXES

ROBOT = pp.robots.double_pendulum()
Q = np.random.default_rng(0).normal(size=(5, 2))
BACKENDS: tuple[BackendName, ...] = ("llvm", "numpy")


def masked(*values: float) -> Any:
    return np.ma.array(values, mask=[True] + [False] * (len(values) - 1))


WRONG: tuple[tuple[Any, type[Exception], str], ...] = (
    ({"q": 1.0}, TypeError, "q (is a mapping|has dtype object)"),
    ({}, TypeError, "q (is a mapping|has dtype object)"),
    (10**400, ValueError, "q has a number larger than 1.8e308"),
    ([10**400, 0], ValueError, "q has a number larger than 1.8e308"),
    (np.zeros((1,) * 63 + (2,)), ValueError, "q has 64 axes, needs at most 32"),
    (np.zeros((1,) * MAX_AXES + (2,)), ValueError, "q has 33 axes"),
    (masked(1.0, 2.0), ValueError, "q has masked elements, needs numbers"),
    ([masked(1.0, 2.0), masked(3.0, 4.0)], ValueError, "q has masked elements"),
    (np.array([1, 2], "M8[s]"), TypeError, "q has dtype datetime64"),
    ([[1.0], [1.0, 2.0]], ValueError, "q is a ragged sequence"),
)


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_arguments_that_are_no_numbers_are_refused(case: int) -> None:
    value, kind, message = WRONG[case]
    kernel = pp.mass_matrix.compile(ROBOT)
    for q in (Q, Q[0]):  # both native entries exist
        kernel(q)
    for call in (lambda: pp.mass_matrix(ROBOT, value), lambda: kernel(value)):
        with pytest.raises(kind, match=message) as caught:
            call()
        assert type(caught.value) is kind


def test_a_masked_array_of_which_nothing_is_masked_is_its_data() -> None:
    q = np.ma.array(Q, mask=np.zeros(Q.shape, bool))
    np.testing.assert_array_equal(pp.mass_matrix(ROBOT, q), pp.mass_matrix(ROBOT, Q))


def test_as_many_axes_as_are_allowed_are_computed() -> None:
    q = np.zeros((1,) * (MAX_AXES - 1) + (2,))
    assert pp.mass_matrix(ROBOT, q).shape == (1,) * (MAX_AXES - 1) + (2, 2)


def test_masked_arrays_are_refused_by_every_call_that_takes_arrays() -> None:
    from phipsi.control import joint_path, pose_error, quintic
    from phipsi.operators import mass

    q, far = np.zeros(2), masked(1.0, 2.0)
    poses = np.ma.array(np.eye(4), mask=np.eye(4) > 0)
    trajectory = pp.simulate(ROBOT, q, duration=0.01)
    calls: tuple[Any, ...] = (
        lambda: pp.simulate(ROBOT, far, duration=0.01),
        lambda: pp.simulate(ROBOT, q, far, duration=0.01),
        lambda: pp.rollout(ROBOT, far, duration=0.01),
        lambda: pp.Trajectory(ROBOT, np.ma.array([0.0], mask=[True]), Q[:1], Q[:1], Q[:1]),
        lambda: trajectory.at(masked(0.0, 0.01)),
        lambda: quintic(0.5, 1.0, far, q),
        lambda: joint_path(ROBOT, 0.5, 1.0, far, q),
        lambda: pose_error(poses, np.eye(4)),
        lambda: mass.on(ROBOT, far),
        lambda: mass.on(ROBOT, q) @ far,
        lambda: mass.on(ROBOT, q).matmat(np.ma.array(np.eye(2), mask=np.eye(2) > 0)),
        lambda: linalg.solve(np.eye(2), far),
        lambda: linalg.quaternion_log(masked(1.0, 0.0, 0.0, 0.0)),
        lambda: ROBOT.integrate(far, q),
        lambda: ROBOT.difference(q, far),
        lambda: pp.rebase(pp.robots.space_arm(), "base") and pp.inverse_dynamics(ROBOT, q, far, q),
        lambda: pp.manipulability(ROBOT, far, "tool", [True, True]),
    )
    for number, call in enumerate(calls):
        with pytest.raises(ValueError, match="masked"):
            print(number, call())


def test_the_robot_is_checked_by_name_too() -> None:
    with pytest.raises(TypeError, match="mass_matrix needs a Robot first, got str"):
        pp.mass_matrix(robot="x", q=Q)  # pyright: ignore[reportArgumentType] - refused


def test_a_kernel_needs_all_its_arrays() -> None:
    with pytest.raises(TypeError, match="got 1 arrays, needs those for q, v, tau"):
        pp.forward_dynamics.compile(ROBOT).run([Q])


# ---- out= ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_that_share_memory_are_refused(backend: BackendName) -> None:
    kernel = pp.forward_dynamics_derivatives.compile(ROBOT, backend=backend)
    big, same = np.zeros((5, 2, 6)), np.zeros((5, 2, 2))
    for out in (
        [same, same, same],
        [same, same[::-1], np.zeros((5, 2, 2))],
        [big[..., 0:2], big[..., 1:3], big[..., 4:6]],
        (big[..., 0:2], big[..., 3:5], big[..., 4:6]),
    ):
        with pytest.raises(ValueError, match="shares memory with itself or another"):
            kernel(Q, Q, Q, out=out)
    assert not same.any() and not big.any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_side_by_side_in_one_array_are_right(backend: BackendName) -> None:
    kernel = pp.forward_dynamics_derivatives.compile(ROBOT, backend=backend)
    expected, big = kernel(Q, Q, Q), np.zeros((5, 2, 6))
    for out in (
        [big[..., 0:2], big[..., 2:4], big[..., 4:6]],
        [big[..., 0::3], big[..., 1::3], big[..., 2::3]],
        [big[..., 5:3:-1], big[::-1, :, 2:4], big[..., 0:2]],
    ):
        big[:] = np.nan
        assert kernel(Q, Q, Q, out=out) is out
        for found, x in zip(out, expected, strict=True):
            np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("rows", [1, 5])
def test_out_of_any_layout_is_right_or_refused(backend: BackendName, rows: int) -> None:
    kernel = pp.mass_matrix.compile(ROBOT, backend=backend)
    q = Q[:rows]
    expected, shape = kernel(q), (rows, 2, 2)
    flat = np.zeros(40)
    right = {
        "Fortran": np.zeros(shape, order="F"),
        "reversed": np.zeros(shape)[::-1, ::-1, ::-1],
        "unaligned": np.zeros(8 * rows * 4 + 1, np.uint8)[1:].view(float).reshape(shape),
        "strided": np.zeros((rows, 4, 4))[:, ::2, 1::2],
        "woven": as_strided(flat, shape, (8, 40, 80)),
        "subclass": np.zeros(shape).view(np.recarray),
    }
    for name, out in right.items():
        assert kernel(q, out=out) is out, name
        np.testing.assert_array_equal(out, expected, err_msg=name)
    wrong = {
        "zero strides": as_strided(flat, shape, (32, 0, 8)),
        "short strides": as_strided(flat, shape, (32, 8, 8)),
        "half strides": as_strided(flat, shape, (40, 4, 16)),
        "byte order": np.zeros(shape, ">f8"),
        "float32": np.zeros(shape, np.float32),
        "read-only": np.broadcast_to(0.0, shape),
        "masked": np.ma.zeros(shape),
        "objects": np.zeros(shape, object),
        "shape": np.zeros((rows, 2, 3)),
    }
    for name, out in wrong.items():
        with pytest.raises(ValueError, match="out= for mass_matrix"):
            print(name, kernel(q, out=out))


@pytest.mark.parametrize("backend", BACKENDS)
def test_out_over_an_argument_is_right(backend: BackendName) -> None:
    kernel = pp.mass_matrix.compile(ROBOT, backend=backend)
    expected = kernel(Q)
    for start in range(0, 11):
        memory = np.zeros(40)
        q, out = memory[:10].reshape(5, 2), memory[start : start + 20].reshape(5, 2, 2)
        q[:] = Q
        np.testing.assert_array_equal(kernel(q, out=out), expected)
    memory = np.zeros((5, 6))
    memory[:, :2] = Q
    out = as_strided(memory[:, 1:], (5, 2, 2), (48, 16, 8))
    np.testing.assert_array_equal(kernel(memory[:, :2], out=out), expected)
