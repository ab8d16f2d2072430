"""What must hold on a CUDA device, as plain functions: `python -m tests.compile.cuda_device`.

They need CuPy (or what stands in for it in `emulated.py`) and nothing else of the tests' tools; the
NumPy interpreter is the oracle.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import phipsi as pp
from phipsi.compile import ArraySpec, Dtype, Kernel, Structure, Tracer, cuda
from phipsi.compile.ops import OPS
from phipsi.model import KINDS


def every_hinge() -> pp.Robot:
    """A tree with every kind of hinge."""
    rng = np.random.default_rng(5)
    builder = pp.Builder("every hinge")
    parents = ["world"]
    for i, (name, kind) in enumerate(KINDS.items()):
        points = rng.normal(0, 0.3, (8, 3))
        d = points - points.mean(0)
        inertia = (d**2).sum() * np.eye(3) - d.T @ d
        builder.body(f"body{i}", mass=8.0, com=points.mean(0), inertia=inertia)
        parent = parents[-1] if i % 3 else parents[len(parents) // 2]
        builder.hinge(
            f"hinge{i}", name, parent, f"body{i}", position=rng.normal(0, 0.5, 3),
            rpy=rng.uniform(-3, 3, 3), axis=rng.normal(size=(kind.axes, 3)) if kind.axes else None,
            pitch=0.3, armature=np.full(kind.nv, 0.1),
        )  # fmt: skip
        parents.append(f"body{i}")
    return builder.build()


@pp.program
def everything(robot: Any, q: Any, v: Any, x: Any) -> Any:
    """Every operation."""
    y = np.sqrt(np.abs(x)) + np.exp(-x * x) * np.log(1.0 + x * x) - np.tanh(x) / (2.0 + np.cos(x))
    z = np.arctan2(x, y) + np.floor(3.0 * x) + np.minimum(x, y) * np.maximum(x, 0.5) - np.sin(x)
    both = pp.where(x < 0.0, y, pp.where(z <= y, z, -y)) + (x == 0.25)
    return {"values": both, "dynamics": pp.forward_dynamics(robot, q, v, both)}


@pp.program
def pushed(robot: Any, q: Any, v: Any, steps: Any) -> Any:
    """A loop over an input, with a loop in it, all rounds kept."""

    def step(carry: Any, force: Any) -> Any:
        q, v = carry
        v, _ = pp.repeat(
            2, lambda v, k: (v + 0.01 * pp.forward_dynamics(robot, q, v, force), 0.0), v
        )
        return (q + 0.01 * v, v), (q, v * v)

    return pp.repeat(6, step, (q, v), steps.reshape(6, robot.nv))


def state(robot: pp.Robot, batch: tuple[int, ...], seed: int = 0) -> list[np.ndarray]:
    """q, v and tau."""
    q, v = robot.random_state(np.random.default_rng(seed), batch)
    return [q, v, np.random.default_rng(seed + 1).normal(size=v.shape)]


def numbers(x: Any) -> list[np.ndarray]:
    """The arrays of a result, here."""
    if isinstance(x, dict):
        x = tuple(x.values())
    if isinstance(x, tuple):
        return [y for part in x for y in numbers(part)]
    return [np.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x.get()]


def close(found: Any, expected: Any, tolerance: float) -> None:
    """Largest difference over largest value."""
    found, expected = numbers(found), numbers(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape, (a.shape, b.shape)
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        error = np.nanmax(np.abs(a - b), initial=0.0)
        scale = max(1.0, np.nanmax(np.abs(b), initial=0.0))
        assert error <= tolerance * scale, f"{error / scale:.1e} > {tolerance:.0e}"


TOLERANCE = {"float64": 1e-12, "float32": 1e-4}


def same(cp: Any, program: Any, robot: pp.Robot, values: list[Any], **how: Any) -> None:
    """The backend agrees with the interpreter in both precisions."""
    exact = program.compile(robot, backend="numpy", **how)(*values)
    for dtype, tolerance in TOLERANCE.items():
        kernel = program.compile(robot, backend="cuda", dtype=dtype, **how)
        close(kernel(*(cp.asarray(x.astype(dtype)) for x in values)), exact, tolerance)


# ---- what must hold ------------------------------------------------------------------------------


def check_programs(cp: Any) -> None:
    """Every operation, every hinge, several results, inputs of the robot, wide results."""
    pendulum, all_ = pp.robots.double_pendulum(), every_hinge()
    x = np.random.default_rng(2).normal(size=(70, 2))
    x[0] = 0.25, 0.0
    same(cp, everything, pendulum, [*state(pendulum, (70,))[:2], x], x=x[0])
    same(cp, pp.forward_dynamics, all_, state(all_, (33,)))
    same(cp, pp.mass_matrix, all_, state(all_, (33,))[:1])
    g = np.random.default_rng(3).normal(size=(40, 3))
    same(cp, pp.inverse_dynamics, pendulum, [*state(pendulum, (40,)), g], inputs=("gravity",))


def check_loops(cp: Any) -> None:
    """Sweeps over many bodies as loops, loops in loops, rollouts with and without room."""
    chain, pendulum = pp.robots.chain(12, kind="spherical"), pp.robots.double_pendulum()
    same(cp, pp.forward_dynamics, chain, state(chain, (70,)), unroll=False)
    q, v, _ = state(pendulum, (40,))
    forces = np.random.default_rng(4).normal(size=(40, 12))
    same(cp, pushed, pendulum, [q, v, forces], steps=forces[0])
    same(cp, pp.motion(duration=0.2, dt=0.01), pendulum, [q, v])


def check_layouts(cp: Any) -> None:
    """Any layout, any batch, any number type; programs take the device by themselves."""
    robot, fd = pp.robots.double_pendulum(), pp.forward_dynamics
    exact = fd.compile(robot, backend="numpy")
    host = q, v, tau = state(robot, (3, 11))
    Q, V, TAU = map(cp.asarray, host)

    def right(device: Sequence[Any], here: Sequence[Any]) -> None:
        found = fd(robot, *device)
        assert isinstance(found, cp.ndarray)
        close(found, exact(*here), 1e-12)

    for _ in range(2):  # the second time the short way
        right((Q, V, TAU), host)
        right((Q[0], V[1], TAU[2]), (q[0], v[1], tau[2]))
        right((Q[0, 0], V[0, 0], TAU[0, 0]), (q[0, 0], v[0, 0], tau[0, 0]))
    right((Q[:, ::2], V[:, ::2], TAU[:, ::2]), (q[:, ::2], v[:, ::2], tau[:, ::2]))
    right((Q[0, ::-1], V[0, 5], TAU[0]), (q[0, ::-1], v[0, 5], tau[0]))
    right((Q[:, :1], V[0], tau[0, 0]), (q[:, :1], v[0], tau[0, 0]))
    wide = cp.asarray(np.concatenate([q[0], tau[0]], 1))
    right((wide[:, :2], V[0], wide[:, 2:]), (q[0], v[0], tau[0]))
    turned = cp.asarray(np.ascontiguousarray(q[0].T)).transpose()
    right((turned, V[0], TAU[0]), (q[0], v[0], tau[0]))
    for n in (0, 1, 2, 7):
        right((Q[0, :n], V[0, :n], TAU[0, :n]), (q[0, :n], v[0, :n], tau[0, :n]))
    one = [cp.asarray(x.reshape(33, 2)[:32]) for x in host]
    right(one, [x.reshape(33, 2)[:32] for x in host])
    half = [cp.asarray(x.astype(np.float32)) for x in host]
    assert fd(robot, half[0], V, TAU).dtype == np.float64
    single = fd(robot, half[0], half[1], [0.0, 0.0])
    assert single.dtype == np.float32
    close(single, exact(q, v, 0.0 * tau), 1e-5)
    whole = cp.asarray(np.round(10 * q).astype(np.int64))
    right((whole, V, TAU), (np.round(10 * q), v, tau))
    arm = pp.robots.space_arm()
    q, v, tau = state(arm, (5,))
    wrench = {"tool": np.arange(6.0)}
    expected = fd.compile(arm, backend="numpy", external=wrench)(q, v, tau, wrench)
    found = fd(arm, *map(cp.asarray, (q, v, tau)), external={"tool": cp.asarray(wrench["tool"])})
    close(found, expected, 1e-12)


def check_out(cp: Any) -> None:
    """`out=` in any layout, over an input, refused where it does not fit."""
    robot = pp.robots.double_pendulum()
    host = state(robot, (37,))
    exact = pp.forward_dynamics.compile(robot, backend="numpy")(*host)
    kernel = pp.forward_dynamics.compile(robot, backend="cuda")
    device = [cp.asarray(x) for x in host]
    out = cp.empty((37, 2), np.float64)
    assert kernel(*device, out=out) is out
    close(out, exact, 1e-12)
    big = cp.asarray(np.full((37, 5), 3.0))
    kernel(*device, out=big[:, 1:3])
    close(big[:, 1:3], exact, 1e-12)
    assert (numbers(big[:, 3:])[0] == 3.0).all()
    kernel(*device, out=device[2])
    close(device[2], exact, 1e-12)
    refused(ValueError, "needs (37, 2)", lambda: kernel(*device, out=big))
    refused(ValueError, "not on the device", lambda: kernel(*device, out=np.empty((37, 2))))


def check_errors(cp: Any) -> None:
    """One sentence each."""
    robot = pp.robots.double_pendulum()
    host = _, v, _ = state(robot, (4,))
    Q, V, TAU = map(cp.asarray, host)
    fd = pp.forward_dynamics
    refused(ValueError, "a batch on the host", lambda: fd(robot, Q, v, TAU))
    refused(ValueError, "batch shapes do not go together", lambda: fd(robot, Q, V[:3], TAU))
    refused(ValueError, "needs (..., 2)", lambda: fd(robot, Q[:, :1], V, TAU))
    kernel = fd.compile(robot, backend="numpy")
    refused(TypeError, "is on a CUDA device", lambda: kernel(Q, V, TAU))
    refused(ValueError, "leave threads= out", lambda: fd.compile(robot, backend="cuda", threads=2))
    refused(
        ValueError, "no long double", lambda: fd.compile(robot, backend="cuda", dtype="longdouble")
    )
    many = cp.broadcast_to(Q[:1], (1 << 36, 2))
    refused(MemoryError, "GiB left", lambda: pp.mass_matrix(robot, many))


def check_nan(cp: Any) -> None:
    """A NaN in one row stays in that row; huge angles are right."""
    robot = pp.robots.double_pendulum()
    q, v, tau = state(robot, (100,))
    for dtype in (np.float64, np.float32):
        clean = pp.forward_dynamics(robot, *(cp.asarray(x.astype(dtype)) for x in (q, v, tau)))
        dirty = q.copy()
        dirty[41, 1] = np.nan
        found = pp.forward_dynamics(robot, *(cp.asarray(x.astype(dtype)) for x in (dirty, v, tau)))
        clean, found = numbers(clean)[0], numbers(found)[0]
        assert np.isnan(found[41]).any()
        np.testing.assert_array_equal(np.delete(found, 41, 0), np.delete(clean, 41, 0))

    @pp.program
    def turned(robot: Any, x: Any) -> Any:
        return {"sin": np.sin(x), "cos": np.cos(x)}

    for dtype, ulp in ((np.float64, 2.0**-52), (np.float32, 2.0**-23)):
        top = 300 if dtype is np.float64 else 38
        sizes = 10.0 ** np.random.default_rng(6).uniform(-3, top, (64, 40))
        sizes[0, :4] = 0.0, np.inf, -np.inf, np.nan
        x = (sizes * np.random.default_rng(7).choice([-1, 1], sizes.shape)).astype(dtype)
        found = numbers(turned(robot, cp.asarray(x)))
        wide = x.astype(np.float64)
        with np.errstate(invalid="ignore"):
            close(tuple(found), (np.sin(wide), np.cos(wide)), 3 * ulp)


def check_special(cp: Any) -> None:
    """Every operation on zeros, infinities, NaN, huge and tiny numbers."""
    arity = {"atan2": 2, "where": 3, "min": 2, "max": 2} | {
        name: 2 for name, op in OPS.items() if op.infix
    }
    tracer = Tracer()
    x = tracer.input("x", 3)
    graph = tracer.graph([(op, [tracer.apply(op, *x[: arity.get(op, 1)])]) for op in OPS])
    results = Structure(tuple(ArraySpec(op, (1,)) for op in OPS), tuple)
    numbers_ = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e30, -1e-30, 1e6, -0.5, 1e-40)
    given = np.array(np.meshgrid(numbers_, numbers_, [0.3, np.nan])).reshape(3, -1).T
    rounding: dict[Dtype, float] = {"float64": 2.0**-52, "float32": 2.0**-23}
    for dtype, ulp in rounding.items():
        here, there = (
            Kernel("ops", graph, (("x", ArraySpec("x", (3,))),), results, dtype, backend)
            for backend in ("numpy", "cuda")
        )
        values = given.astype(dtype)
        pairs = zip(OPS, here(values), there(cp.asarray(values)), strict=True)
        for op, expected, found in pairs:
            found = numbers(found)[0]
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), op)
            infinite = np.isinf(expected)
            np.testing.assert_array_equal(found[infinite], expected[infinite], op)
            finite = np.isfinite(expected)
            allowed = 4 * ulp * np.abs(expected[finite]) + 8 * np.finfo(dtype).smallest_subnormal
            assert (np.abs(found[finite] - expected[finite]) <= allowed).all(), op


def check_host(cp: Any) -> None:
    """Arrays on the host go through in parts."""
    robot = pp.robots.double_pendulum()
    q, v, tau = state(robot, (1000,))
    kernel = pp.forward_dynamics.compile(robot, backend="cuda")
    exact = pp.forward_dynamics.compile(robot, backend="numpy")
    some, cuda.HOST = cuda.HOST, 300 * 6 * 8
    try:
        found = kernel(q, v, tau[0])
        assert isinstance(found, np.ndarray)
        close(found, exact(q, v, tau[0]), 1e-12)
        out = np.zeros((1000, 3))
        kernel(q[::-1], v, tau, out=out[:, :2])
        close(out[:, :2], exact(q[::-1], v, tau), 1e-12)
    finally:
        cuda.HOST = some
    close(kernel(q[0], v[0], tau[0]), exact(q[0], v[0], tau[0]), 1e-12)


def check_verified(cp: Any) -> None:
    """Programs that look at their results do so here."""
    robot = pp.robots.space_arm()
    q, _ = robot.random_state(0, (4,))
    found = pp.operational_inertia(robot, cp.asarray(q), "tool")
    close(found, pp.operational_inertia(robot, q, "tool"), 1e-10)


def check_gradient(cp: Any) -> None:
    """Derivatives are kernels of the same kind."""
    robot = pp.robots.double_pendulum()
    values = [*state(robot, (9,)), np.ones((9, 2))]
    device, here = (
        pp.forward_dynamics.compile(robot, backend=backend).pullback(["q"])
        for backend in ("cuda", "numpy")
    )
    close(device(*map(cp.asarray, values)), here(*values), 1e-11)
    chain = pp.robots.chain(3, kind="spherical")
    values = [*state(chain, (9,)), np.ones((9, 9))]
    device, here = (
        pp.forward_dynamics.compile(chain, backend=backend, unroll=False).pullback(["v"])
        for backend in ("cuda", "numpy")
    )
    close(device(*map(cp.asarray, values)), here(*values), 1e-11)


def refused(kind: type[Exception], words: str, call: Callable[[], Any]) -> None:
    """The call raises, with these words, in one sentence."""
    try:
        call()
    except kind as error:
        assert words in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")


CHECKS = (
    check_programs, check_special, check_loops, check_layouts, check_out, check_errors, check_nan,
    check_host, check_verified, check_gradient,
)  # fmt: skip
"""What holds where there is CuPy, or what stands in for it."""


# ---- what needs a device -------------------------------------------------------------------------


def check_streams(cp: Any) -> None:
    """Work is queued on the current stream: it comes after what is there, and nobody waits."""
    robot = pp.robots.puma560()
    values = [cp.asarray(x) for x in state(robot, (1 << 16,))]
    expected = pp.forward_dynamics(robot, *values)
    big = cp.full((4096, 4096), 1e-3)
    stream = cp.cuda.Stream(non_blocking=True)
    for waits in (True, False):  # the first time CuPy compiles
        with stream:
            late = [cp.zeros_like(x) for x in values]
            for _ in range(20):
                big = big @ big * 0.1
            for a, b in zip(late, values, strict=True):
                a += b
            found = pp.forward_dynamics(robot, *late)
            assert waits or not stream.done, "the call waited"
            stream.synchronize()
    close(found, expected, 0.0)


def check_torch(cp: Any) -> None:
    """PyTorch's tensors, as they are."""
    try:
        import torch
    except ImportError:
        print("  no PyTorch")
        return
    robot = pp.robots.puma560()
    host = state(robot, (50,))
    tensors = [torch.tensor(x, device="cuda") for x in host]
    found = pp.forward_dynamics(robot, *tensors)
    assert isinstance(found, cp.ndarray)
    close(found, pp.forward_dynamics.compile(robot, backend="numpy")(*host), 1e-10)
    strided = torch.stack(tensors[:1] * 3, 2)[..., 1]
    close(pp.forward_dynamics(robot, strided, *tensors[1:]), found, 0.0)


def check_jax(cp: Any) -> None:
    """JAX's arrays, as they are."""
    try:
        import jax
    except ImportError:
        print("  no JAX")
        return
    robot = pp.robots.double_pendulum()
    host = [x.astype(np.float32) for x in state(robot, (50,))]
    found = pp.forward_dynamics(robot, *(jax.device_put(x, jax.devices("gpu")[0]) for x in host))
    close(found, pp.forward_dynamics(robot, *map(cp.asarray, host)), 0.0)


def check_long_rollout(cp: Any) -> None:
    """Thousands of steps of many robots, in bounded memory."""
    robot = pp.robots.double_pendulum()
    q, v, _ = state(robot, (20_000,))
    rollout = pp.motion(duration=4.0, dt=0.002, every=500)
    start = time.perf_counter()
    found = rollout(robot, cp.asarray(q), cp.asarray(v))
    here = rollout.compile(robot, backend="numpy")(q[:2], v[:2])
    close(tuple(x[:2, :2] for x in found), tuple(x[:, :2] for x in here), 1e-9)
    print(f"  2000 steps of rk4 of 20 000 robots: {time.perf_counter() - start:.2f} s")


def check_overhead(cp: Any) -> None:
    """The time of a call from Python, which must not be asserted."""
    robot = pp.robots.puma560()
    values = [cp.asarray(x.astype(np.float32)) for x in state(robot, (64,))]
    kernel = pp.forward_dynamics.compile(robot, backend="cuda", dtype="float32")
    out = kernel(*values)
    many = [cp.tile(x, (1 << 15, 1)) for x in values]
    for _ in range(500):  # an idle device answers slowly
        kernel(*many)

    def program() -> None:
        pp.forward_dynamics(robot, *values)

    calls = {"kernel": lambda: kernel(*values), "program": program,
             "kernel, out=": lambda: kernel(*values, out=out)}  # fmt: skip
    for name, call in calls.items():
        for _ in range(200):
            call()
        cp.cuda.Device().synchronize()
        best = np.inf
        for _ in range(10):
            start = time.perf_counter()
            for _ in range(300):
                call()
            best = min(best, (time.perf_counter() - start) / 300)
            cp.cuda.Device().synchronize()
        print(f"  {name}: {1e6 * best:.1f} µs a call")


def check_accuracy(cp: Any) -> None:
    """Errors in single precision, beside those of the interpreter."""
    for robot in (pp.robots.puma560(), pp.robots.space_arm(), pp.robots.chain(30)):
        values = [x.astype(np.float32) for x in state(robot, (2000,))]
        here = pp.forward_dynamics.compile(robot, backend="numpy")
        exact = here(*(x.astype(np.float64) for x in values))
        numpy = pp.forward_dynamics.compile(robot, backend="numpy", dtype="float32")(*values)
        device: Any = pp.forward_dynamics(robot, *map(cp.asarray, values))
        found = device.get()
        scale = np.abs(exact).max(-1, keepdims=True)
        errors = [np.median(np.abs(x - exact) / scale) for x in (found, numpy)]
        print(f"  {robot.name}: median {errors[0]:.1e}, the interpreter's {errors[1]:.1e}")
        assert errors[0] < 2 * errors[1]


ON_DEVICE = (
    check_streams, check_torch, check_jax, check_long_rollout, check_overhead, check_accuracy,
)  # fmt: skip
"""What needs a real device."""


def main() -> int:
    """Run all; how many failed."""
    import traceback

    import cupy

    failed = 0
    for check in (*CHECKS, *ON_DEVICE):
        start = time.perf_counter()
        try:
            check(cupy)
            word = "ok"
        except Exception:
            failed += 1
            word = "FAILED"
            traceback.print_exc()
        print(f"{word} {check.__name__} {time.perf_counter() - start:.1f} s", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
