"""PyTorch and JAX on a CUDA device: `python -m tests.interop.arrays_device [torch] [jax]`.

Every check prints a line; the last line says how many failed. Values are compared with the NumPy
interpreter, gradients with finite differences by the libraries' own checkers.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import phipsi as pp
from tests.interop.array_cases import (
    CASES,
    FREE,
    PENDULUM,
    arguments,
    by_position,
    parts,
    swung,
)

Check = Callable[[], Any]


def expected(case: Any, given: dict[str, np.ndarray]) -> tuple[Any, ...]:
    """What the interpreter makes of it."""
    shapes = {n: np.zeros(s) for n, s in case[3].items()}
    kernel = case[1].compile(case[2], backend="numpy", **shapes)
    return parts(kernel(**given))


def close(got: Any, want: Any, tolerance: float) -> None:
    got, want = np.asarray(got, float), np.asarray(want, float)
    scale = 1.0 + np.abs(want).max()
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)


# ---- PyTorch -----------------------------------------------------------------------------------


def torch_checks() -> dict[str, Check]:
    """Checks of PyTorch, by name."""
    import torch

    from phipsi.interop import torch as ours

    device = torch.device("cuda")

    def moved(given: dict[str, np.ndarray], dtype: Any, grad: bool = False) -> list[Any]:
        how: dict[str, Any] = {"dtype": dtype, "device": device, "requires_grad": grad}
        return [torch.tensor(x, **how) for x in given.values()]

    def values(case: Any, dtype: Any, tolerance: float) -> None:
        given = arguments(case, 300)
        given["q"] = given["q"][:1]  # spread over the batch
        got = by_position(ours.function(case[1], case[2]), case)(*moved(given, dtype))
        for y, want in zip(got, expected(case, given), strict=True):
            assert y.device.type == "cuda" and y.dtype == dtype
            close(y.cpu(), want, tolerance)

    def gradients(case: Any) -> None:
        f = by_position(ours.function(case[1], case[2]), case)
        inputs = moved(arguments(case), torch.float64, grad=True)
        assert torch.autograd.gradcheck(f, inputs, check_forward_ad=True)

    def second() -> None:
        f = by_position(ours.function(*CASES[0][1:3]), CASES[0])
        inputs = moved(arguments(CASES[0], None), torch.float64, grad=True)
        assert torch.autograd.gradgradcheck(f, inputs, check_fwd_over_rev=True, fast_mode=True)

    def transforms() -> None:
        f = ours.function(pp.forward_dynamics, FREE)
        q, v, tau = moved(arguments(CASES[0], 5), torch.float64)
        vmap, func = torch.func.vmap, torch.func
        assert torch.equal(vmap(f, in_dims=(0, 1, None))(q, v.T, tau[0]), f(q, v, tau[0]))
        reverse, forward = (vmap(way(f))(q, v, tau) for way in (func.jacrev, func.jacfwd))
        torch.testing.assert_close(reverse, forward, rtol=1e-10, atol=1e-10)
        energy = ours.function(pp.kinetic_energy, FREE)
        mass = vmap(func.hessian(energy, argnums=1))(q, v)
        close(mass.cpu(), pp.mass_matrix(FREE, q.cpu().numpy()), 1e-12)

    def compiled(backend: str) -> None:
        f = ours.function(swung, PENDULUM, gain=3.0)

        def loss(q: Any) -> Any:
            end = f(2.0 * q, 0.5 * q, target=torch.ones_like(q[0]))
            return end.energy.sum() + end.q.sin().sum()

        way = torch.compile(loss, fullgraph=True, backend=backend)
        for rows in (8, 9, 10):
            found = []
            for g in (loss, way):
                q = torch.linspace(-1, 1, 2 * rows, dtype=torch.float64, device=device)
                q.requires_grad_()
                value = g(q.reshape(rows, 2))
                value.backward()
                found.append((value.detach(), q.grad))
            torch.testing.assert_close(*found, rtol=1e-12, atol=1e-12)

    def streams() -> None:
        """Work on a stream of its own waits for what came before on it, and for nothing else."""
        f = ours.function(pp.forward_dynamics, FREE)
        q, v, tau = moved(arguments(CASES[0], 20_000), torch.float32)
        want = f(q, v, tau)
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(20):
                late = torch.full_like(v, torch.nan)
                torch.cuda._sleep(2_000_000)
                late.copy_(v)  # after the sleep; a kernel on another stream would see NaN
                assert torch.equal(f(q, late, tau), want)
        side.synchronize()

    def layouts() -> None:
        f = ours.function(pp.forward_dynamics, PENDULUM)
        q, v, tau = torch.randn(3, 6, 4, 2, dtype=torch.float64, device=device)
        want = f(q, v, tau)
        assert torch.equal(f(torch.stack([q, q], -1)[..., 0], v, tau), want)
        assert torch.equal(f(q.permute(1, 0, 2).contiguous().permute(1, 0, 2), v, tau), want)
        close(f(q.float(), v, tau).cpu(), want.cpu(), 1e-4)  # mixed: float64
        q[2, 1] = torch.nan
        there = torch.ones(6, 4, dtype=torch.bool)
        there[2, 1] = False
        assert torch.equal(f(q, v, tau)[there], want[there])
        assert f(q[:0], v[:0], tau[:0]).shape == (0, 4, 2)
        try:
            f(q, v.cpu(), tau)
        except ValueError as error:
            assert "move them to one" in str(error)
        else:
            raise AssertionError("tensors on two devices were taken")

    def memory() -> None:
        """Results are in PyTorch's memory, and go back to it."""
        f = ours.function(pp.forward_dynamics, PENDULUM)
        q = torch.zeros(1_000_000, 2, device=device)
        before = torch.cuda.memory_allocated()
        y = f(q, q, q)
        assert torch.cuda.memory_allocated() >= before + y.numel() * 4
        del y
        assert torch.cuda.memory_allocated() == before

    def speed() -> str:
        f = ours.function(pp.forward_dynamics, pp.robots.puma560())
        q, v, tau = torch.randn(3, 1 << 21, 6, device=device)
        small = [x[:1].clone() for x in (q, v, tau)]
        tau.requires_grad_()
        told = []
        for what, call, times in (
            ("2^21 rows", lambda: f(q, v, tau), 20),
            ("and the gradient", lambda: f(q, v, tau).sum().backward(), 20),
            ("one row", lambda: f(*small), 300),
        ):
            call()
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(times):
                call()
            torch.cuda.synchronize()
            told.append(f"{what} {1e6 * (time.perf_counter() - begin) / times:.0f} us")
        return "forward_dynamics puma560 float32: " + ", ".join(told)

    checks: dict[str, Check] = {}
    for case in CASES:
        for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 2e-3)):
            name = f"torch {case[0]} {str(dtype)[6:]}"
            checks[name] = lambda c=case, d=dtype, t=tolerance: values(c, d, t)
        checks[f"torch gradcheck {case[0]}"] = lambda c=case: gradients(c)
    checks |= {"torch gradgradcheck": second, "torch.func": transforms}
    for backend in ("aot_eager", "inductor"):
        checks[f"torch.compile {backend}"] = lambda b=backend: compiled(b)
    checks |= {"torch streams": streams, "torch layouts": layouts, "torch memory": memory}
    return {**checks, "torch speed": speed}


# ---- JAX ---------------------------------------------------------------------------------------


def jax_checks() -> dict[str, Check]:
    """Checks of JAX, by name."""
    import jax
    import jax.numpy as jnp
    from jax.test_util import check_grads

    from phipsi.interop import jax as ours

    jax.config.update("jax_enable_x64", True)
    assert jax.default_backend() == "gpu", "JAX sees no GPU"

    def moved(given: dict[str, np.ndarray], dtype: str = "float64") -> list[Any]:
        return [jnp.asarray(x, dtype) for x in given.values()]

    def values(case: Any, dtype: str, tolerance: float) -> None:
        given = arguments(case, 300)
        given["q"] = given["q"][:1]
        f = by_position(ours.function(case[1], case[2]), case)
        for way in (f, jax.jit(f)):
            got = way(*moved(given, dtype))
            for y, want in zip(got, expected(case, given), strict=True):
                assert y.dtype == dtype and next(iter(y.devices())).platform == "gpu"
                close(y, want, tolerance)

    def gradients(case: Any) -> None:
        f = jax.jit(by_position(ours.function(case[1], case[2]), case))
        order = 1 if case[0] == "rollout" else 2
        check_grads(f, moved(arguments(case)), order, modes=("fwd", "rev"), rtol=1e-5, atol=1e-5)

    def transforms() -> None:
        f = ours.function(pp.forward_dynamics, FREE)
        q, v, tau = moved(arguments(CASES[0], 5))
        assert jnp.array_equal(jax.vmap(f, (0, 1, None))(q, v.T, tau[0]), f(q, v, tau[0]))
        ways = (jax.jit(jax.vmap(way(f))) for way in (jax.jacrev, jax.jacfwd))
        reverse, forward = (way(q, v, tau) for way in ways)
        close(reverse, forward, 1e-10)
        energy = ours.function(pp.kinetic_energy, FREE)
        mass = jax.vmap(jax.hessian(energy, argnums=1))(q, v)
        close(mass, pp.mass_matrix(FREE, np.asarray(q)), 1e-12)

    def order() -> None:
        """Calls between operations of XLA's own, in a loop: one stream, in order."""
        f = ours.function(pp.forward_dynamics, PENDULUM)

        def step(state: Any, _: Any) -> Any:
            q, v = state
            v = v + 0.02 * f(q, v, 3.0 * (1.0 - q))
            return (q + 0.02 * v, v), None

        def end(q: Any) -> Any:
            return jax.lax.scan(step, (q, 0 * q), length=5)[0][0]

        whole = ours.function(swung, PENDULUM, gain=3.0)
        q = jnp.linspace(-0.9, 0.3, 40_000).reshape(-1, 2)
        close(jax.jit(end)(q), whole(q, 0 * q, q * 0 + 1).q, 1e-12)
        first, second = (
            jax.jit(jax.grad(lambda q, g=g: g(q).sum()))(q)
            for g in (end, lambda q: whole(q, 0 * q, q * 0 + 1).q)
        )
        close(first, second, 1e-10)

    def on_the_host() -> None:
        """Arrays put on the CPU are computed there."""
        f = ours.function(pp.mass_matrix, PENDULUM)
        q = jax.device_put(jnp.ones(2), jax.devices("cpu")[0])
        y = jax.jit(f)(q)
        assert next(iter(y.devices())).platform == "cpu"
        close(y, pp.mass_matrix(PENDULUM, np.ones(2)), 1e-14)

    def speed() -> str:
        f = ours.function(pp.forward_dynamics, pp.robots.puma560())
        run = jax.jit(f)
        gradient = jax.jit(jax.grad(lambda tau, q, v: f(q, v, tau).sum()))
        keys = jax.random.split(jax.random.key(0), 3)
        q, v, tau = (jax.random.normal(k, (1 << 21, 6), "float32") for k in keys)
        told = []
        for what, call, times in (
            ("2^21 rows", lambda: run(q, v, tau), 20),
            ("the gradient", lambda: gradient(tau, q, v), 20),
            ("one row", lambda: run(q[0], v[0], tau[0]), 300),
        ):
            y = call().block_until_ready()
            begin = time.perf_counter()
            for _ in range(times):
                y = call()
            y.block_until_ready()
            told.append(f"{what} {1e6 * (time.perf_counter() - begin) / times:.0f} us")
        return "forward_dynamics puma560 float32: " + ", ".join(told)

    checks: dict[str, Check] = {}
    for case in CASES:
        for dtype, tolerance in (("float64", 1e-10), ("float32", 2e-3)):
            checks[f"jax {case[0]} {dtype}"] = lambda c=case, d=dtype, t=tolerance: values(c, d, t)
        checks[f"jax check_grads {case[0]}"] = lambda c=case: gradients(c)
    checks |= {"jax transforms": transforms, "jax scan": order, "jax on the host": on_the_host}
    return {**checks, "jax speed": speed}


def main(asked: list[str]) -> int:
    """Run the checks; how many failed."""
    failed = 0
    for library, listed in (("torch", torch_checks), ("jax", jax_checks)):
        if asked and library not in asked:
            continue
        for name, check in listed().items():
            begin = time.perf_counter()
            try:
                told = check() or "ok"
            except Exception as error:
                failed += 1
                told = f"FAILED {type(error).__name__}: {error}"
                traceback.print_exc()
            print(f"{name:32} {time.perf_counter() - begin:6.1f} s  {told}", flush=True)
    print(f"{failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 99))
