"""PyTorch: gradcheck, torch.func and torch.compile take our programs as they take its own."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import phipsi as pp
from tests.interop.array_cases import (
    CASES,
    FREE,
    PENDULUM,
    Swung,
    arguments,
    by_position,
    parts,
    swung,
)

torch = pytest.importorskip("torch")
ours = pytest.importorskip("phipsi.interop.torch")

IDS = [case[0] for case in CASES]


def tensors(given: dict[str, np.ndarray], grad: bool = False, **how: Any) -> list[Any]:
    return [torch.tensor(x, requires_grad=grad, **how) for x in given.values()]


def named(case: Any) -> Any:
    """The function of a case, by position."""
    return by_position(ours.function(case[1], case[2]), case)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_gradients_pass_gradcheck(case: Any) -> None:
    given = arguments(case)
    given["q"] = given["q"][:1]  # spread over the batch
    inputs = tensors(given, grad=True)
    want = parts(case[1](case[2], **given))
    for got, expected in zip(named(case)(*inputs), want, strict=True):
        np.testing.assert_array_equal(got.detach().numpy(), expected)
    assert torch.autograd.gradcheck(named(case), inputs, check_forward_ad=True)


@pytest.mark.parametrize("case", CASES[:3], ids=IDS[:3])
def test_second_derivatives_pass_gradgradcheck(case: Any) -> None:
    inputs = tensors(arguments(case, None), grad=True)
    assert torch.autograd.gradgradcheck(
        named(case), inputs, check_fwd_over_rev=True, fast_mode=True
    )


def test_functional_transforms_agree() -> None:
    f = ours.function(pp.forward_dynamics, FREE)
    q, v, tau = tensors(arguments(CASES[0], 3))
    vmap, func = torch.func.vmap, torch.func
    assert torch.equal(vmap(f)(q, v, tau), f(q, v, tau))
    assert torch.equal(vmap(f, in_dims=(0, 1, None))(q, v.T, tau[0]), f(q, v, tau[0]))
    assert torch.equal(vmap(vmap(f), in_dims=1)(q[None], v[None], tau[None])[:, 0], f(q, v, tau))
    reverse, forward = (vmap(way(f))(q, v, tau) for way in (func.jacrev, func.jacfwd))
    torch.testing.assert_close(reverse, forward, rtol=1e-11, atol=1e-11)
    want = pp.forward_dynamics.derivative(wrt="v")(FREE, q.numpy(), v.numpy(), tau.numpy())
    by_v = vmap(func.jacrev(f, argnums=1))(q, v, tau)
    np.testing.assert_allclose(by_v.numpy(), want, rtol=1e-11, atol=1e-11)

    def energy(q: Any, v: Any) -> Any:
        return ours.function(pp.kinetic_energy, FREE)(q, v)

    second = func.hessian(energy, argnums=1)(q[0], v[0])  # the mass matrix
    torch.testing.assert_close(second, torch.tensor(pp.mass_matrix(FREE, q[0].numpy())))
    by_rows = vmap(func.grad(energy), in_dims=(0, None))(q, v[0])
    torch.testing.assert_close(by_rows[2], func.grad(energy)(q[2], v[0]))


def test_compiled_code_is_the_same() -> None:
    f = ours.function(swung, PENDULUM, gain=3.0)

    def loss(q: Any, v: Any, target: Any) -> Any:
        end = f(2.0 * q, v, target=target)
        return end.energy.sum() + end.q.sin().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for rows in (2, 3, 4):  # the second time PyTorch compiles for batches of any size
        found = []
        for way in (loss, compiled):
            q = torch.linspace(-1, 1, 2 * rows, dtype=torch.float64).reshape(rows, 2)
            q.requires_grad_()
            value = way(q, 0.5 * q.detach(), torch.ones(2, dtype=torch.float64))
            value.backward()
            found.append((value.detach(), q.grad))
        torch.testing.assert_close(*found, rtol=1e-13, atol=1e-13)


def test_compiled_transforms_are_right() -> None:
    """Those leave the compiled code, and are computed as without it."""
    f = ours.function(pp.forward_dynamics, PENDULUM)
    q, v, tau = torch.randn(3, 4, 2, dtype=torch.float64)
    for way in (torch.func.jacfwd, torch.func.jacrev):
        jacobian = torch.func.vmap(way(f))
        got = torch.compile(jacobian, backend="eager")(q, v, tau)
        torch.testing.assert_close(got, jacobian(q, v, tau), rtol=1e-12, atol=1e-12)


def test_results_are_packed_and_named_as_the_programs() -> None:
    f = ours.function(swung, PENDULUM, inputs=("gravity",))
    gravity = torch.tensor([0.0, 0.0, -1.62], requires_grad=True, dtype=torch.float64)
    q = torch.zeros(3, 2, dtype=torch.float64)
    end = f(q, v=q, target=q[0] + 1, gain=2.0, gravity=gravity)
    assert type(end) is Swung and end.q.shape == (3, 2) and end.energy.shape == (3,)
    end.energy.sum().backward()
    moon = PENDULUM.with_parameters({"gravity": gravity.detach().numpy()})
    want = swung(moon, np.zeros((3, 2)), np.zeros((3, 2)), 2.0, np.ones(2))
    np.testing.assert_allclose(end.q.detach(), want.q, rtol=1e-14)
    assert gravity.grad is not None and gravity.grad.shape == (3,)
    pose = ours.function(pp.frame_pose, PENDULUM, frame="tool")
    assert pose(q).shape == (3, 4, 4)


def test_number_types_follow_the_tensors() -> None:
    f = ours.function(pp.forward_dynamics, PENDULUM)
    q, v, tau = torch.randn(3, 5, 2)
    single = f(q, v, tau)
    assert single.dtype == torch.float32
    mixed = f(q, v.double(), tau)
    assert mixed.dtype == torch.float64 and f(q, v, [0, 0]).dtype == torch.float32
    torch.testing.assert_close(mixed.float(), single, rtol=1e-3, atol=1e-3)
    v = v.double().requires_grad_()
    q.requires_grad_()
    f(q, v, tau).sum().backward()
    assert q.grad is not None and v.grad is not None
    assert (q.grad.dtype, v.grad.dtype) == (torch.float32, torch.float64)


def test_rows_do_not_touch_each_other() -> None:
    f = ours.function(pp.forward_dynamics, PENDULUM)
    q, v, tau = torch.randn(3, 6, 4, 2, dtype=torch.float64)
    want = f(q, v, tau)
    wide = torch.stack([q, q], dim=-1)[..., 0]  # every other number
    turned = q.permute(1, 0, 2).contiguous().permute(1, 0, 2)
    assert not wide.is_contiguous() and not turned.is_contiguous()
    assert torch.equal(f(wide, v, tau), want) and torch.equal(f(turned, v, tau), want)
    q[2, 1] = torch.nan
    q.requires_grad_()
    broken = f(q, v, tau)
    broken.sum().backward()
    there = torch.ones(6, 4, dtype=torch.bool)
    there[2, 1] = False
    assert torch.equal(broken[there], want[there]) and broken[2, 1].isnan().any()
    assert q.grad is not None and q.grad[there].isfinite().all() and q.grad[2, 1].isnan().any()
    empty = torch.zeros(0, 2, dtype=torch.float64, requires_grad=True)
    f(empty, empty, tau[0, 0]).sum().backward()
    assert empty.grad is not None and empty.grad.shape == (0, 2)


def test_gradients_outlive_their_function() -> None:
    q = torch.randn(2, dtype=torch.float64, requires_grad=True)
    height = ours.function(pp.potential_energy, PENDULUM)(q)
    gc.collect()
    height.backward()
    np.testing.assert_allclose(q.grad, pp.gravity_force(PENDULUM, q.detach().numpy()), rtol=1e-12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda q: (q.half(), q, q), r"q is torch.float16, needs torch.float32 or torch.float64"),
        (
            lambda q: (q, q.to("meta"), q),
            r"several devices \(.*on cpu, v on meta\); move them to one",
        ),
        (lambda q: (q.to("meta"),) * 3, r"tensors are on meta, needs the CPU or a CUDA device"),
        (lambda q: (q, q, [q[0, 0], q[0, 1]]), r"tau is a list of tensors; use torch.stack"),
        (lambda q: (q, q), r"forward_dynamics misses 'tau'; it takes q, v, tau"),
        (lambda q: (q, q, q, q, q, q), r"forward_dynamics takes .* got 6"),
        (lambda q: (q[..., :1], q, q), r"q has shape \(1,\), needs \(\.\.\., 2\)"),
        (
            lambda q: (q, q, q[:2]),
            r"batch shapes do not go together: q \(3,\), v \(3,\), tau \(2,\)",
        ),
    ],
)
def test_mistakes_are_said_in_a_sentence(given: Any, message: str) -> None:
    f = ours.function(pp.forward_dynamics, PENDULUM)
    with pytest.raises((TypeError, ValueError), match=message):
        f(*given(torch.zeros(3, 2)))


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(TypeError, match="function needs a program, got function"):
        ours.function(lambda robot, q: q, PENDULUM)
    with pytest.raises(TypeError, match="mass_matrix has no argument 'v'; it has q"):
        ours.function(pp.mass_matrix, PENDULUM, v=1.0)
    with pytest.raises(TypeError, match="mass_matrix has no argument 'w'"):
        ours.function(pp.mass_matrix, PENDULUM)(torch.zeros(2), w=1.0)
    with pytest.raises(TypeError, match="mass_matrix: 'q' was given twice"):
        ours.function(pp.mass_matrix, PENDULUM)(torch.zeros(2), q=1.0)


def test_kernels_are_found_again_by_their_keys() -> None:
    """Code that PyTorch keeps on disk knows derivatives by key alone, in any process."""
    from phipsi.interop.arrays import Flat

    f = ours.function(pp.forward_dynamics, PENDULUM)
    q, v, tau = torch.randn(3, 4, 2, dtype=torch.float64)
    f(q, v, tau)
    again = ours.function(pp.forward_dynamics, PENDULUM)
    again(q, v, tau)
    key = ours._planned(*_asked(f, q, v, tau))
    assert key == ours._planned(*_asked(again, q, v, tau))
    flat = Flat.of(key)
    second = Flat.of(f"{key}/r0,2/f1")
    assert second is flat.pullback((0, 2)).pushforward((1,))
    with pytest.raises(KeyError, match="no kernel"):
        Flat.of("forward_dynamics 0/r0")


def _asked(function: Any, *tensors: Any) -> Any:
    bound = function.args[0]
    names = tuple((name, "") for name in ("q", "v", "tau"))
    return bound.key, ((), names, tuple(tuple(x.shape[-1:]) for x in tensors), "float64"), False


def test_threads_share_a_function() -> None:
    from concurrent.futures import ThreadPoolExecutor

    f = ours.function(pp.inverse_dynamics, PENDULUM)
    q = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)

    def gradient(_: int) -> Any:
        return torch.autograd.grad(f(q, q, q).sum(), q)[0]

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(gradient, range(6)))
    assert all(torch.equal(x, found[0]) for x in found)


def test_what_records_operations_records_ours() -> None:
    f = ours.function(pp.forward_dynamics, PENDULUM)
    q, v, w = torch.randn(3, 2, dtype=torch.float64)
    _, linear = torch.func.linearize(lambda v: f(q, v, v), v)
    _, expected = torch.func.jvp(lambda v: f(q, v, v), (v,), (w,))
    torch.testing.assert_close(linear(w), expected)


def test_arrays_that_are_no_tensors_are_copied() -> None:
    f = ours.function(pp.forward_dynamics, PENDULUM)
    q = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    v = np.ones(2)
    before = torch.autograd.grad(f(q, v, q).sum(), q)[0]
    result = f(q, v, q).sum()
    v += 1.0
    torch.testing.assert_close(torch.autograd.grad(result, q)[0], before)


def test_options_of_equal_value_are_told_apart() -> None:
    @pp.program(static=("k",))
    def told(robot: Any, q: Any, k: Any) -> Any:
        return q * (2.0 if k is True else 3.0)

    f = ours.function(told, PENDULUM)
    q = torch.ones(2, dtype=torch.float64)
    assert f(q, k=1)[0] == 3.0 and f(q, k=True)[0] == 2.0


def test_programs_that_look_at_their_results_are_in_double_precision() -> None:
    f = ours.function(pp.operational_inertia, pp.robots.puma560(), frames="tool")
    assert f(torch.zeros(2, 6)).dtype == torch.float64
