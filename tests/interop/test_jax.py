"""JAX: check_grads, jit, vmap and derivatives of both modes take our programs as its own."""

from __future__ import annotations

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

jax = pytest.importorskip("jax")
ours = pytest.importorskip("phipsi.interop.jax")
jnp = jax.numpy

IDS = [case[0] for case in CASES]


@pytest.fixture(autouse=True)
def double() -> Any:
    """JAX has float64 here, and what it had elsewhere."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def named(case: Any) -> Any:
    """The function of a case, by position."""
    return by_position(ours.function(case[1], case[2]), case)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_gradients_pass_check_grads(case: Any) -> None:
    from jax.test_util import check_grads

    given = arguments(case)
    given["q"] = given["q"][:1]  # spread over the batch
    inputs = [jnp.asarray(x) for x in given.values()]
    want = parts(case[1](case[2], **given))
    for way in (named(case), jax.jit(named(case))):
        for got, expected in zip(way(*inputs), want, strict=True):
            np.testing.assert_array_equal(got, expected)
    order = 1 if case[0] == "rollout" else 2
    check_grads(jax.jit(named(case)), inputs, order, modes=("fwd", "rev"), rtol=1e-5, atol=1e-5)


def test_transforms_agree() -> None:
    f = ours.function(pp.forward_dynamics, FREE)
    q, v, tau = (jnp.asarray(x) for x in arguments(CASES[0], 3).values())
    assert jnp.array_equal(jax.vmap(f)(q, v, tau), f(q, v, tau))
    assert jnp.array_equal(jax.vmap(f, (0, 1, None))(q, v.T, tau[0]), f(q, v, tau[0]))
    pairs = jax.vmap(jax.vmap(f, (None, 0, None)), (0, None, 0))(q, v, tau)
    assert jnp.array_equal(pairs[1, 2], f(q[1], v[2], tau[1]))
    mixed = jax.vmap(f, (0, None, None))(q, v, tau[0])  # a batch inside one argument only
    assert jnp.array_equal(mixed[2, 1], f(q[2], v[1], tau[0]))
    ways = (jax.jit(jax.vmap(way(f))) for way in (jax.jacrev, jax.jacfwd))
    reverse, forward = (way(q, v, tau) for way in ways)
    np.testing.assert_allclose(reverse, forward, rtol=1e-11, atol=1e-11)
    want = pp.forward_dynamics.derivative(wrt="v")(FREE, *map(np.asarray, (q, v, tau)))
    by_v = jax.vmap(jax.jacrev(f, argnums=1))(q, v, tau)
    np.testing.assert_allclose(by_v, want, rtol=1e-11, atol=1e-11)
    second = jax.hessian(ours.function(pp.kinetic_energy, FREE), argnums=1)(q[0], v[0])
    np.testing.assert_allclose(
        second, pp.mass_matrix(FREE, np.asarray(q[0])), rtol=1e-12, atol=1e-14
    )


def test_results_are_packed_and_named_as_the_programs() -> None:
    f = ours.function(swung, PENDULUM, inputs=("gravity",), gain=2.0)
    q, gravity = jnp.zeros((3, 2)), jnp.array([0.0, 0.0, -1.62])
    end = jax.jit(f)(q, q, target=q[0] + 1, gravity=gravity)
    assert type(end) is Swung and end.q.shape == (3, 2) and end.energy.shape == (3,)
    moon = PENDULUM.with_parameters({"gravity": np.asarray(gravity)})
    want = swung(moon, np.zeros((3, 2)), np.zeros((3, 2)), 2.0, np.ones(2))
    np.testing.assert_allclose(end.q, want.q, rtol=1e-14)
    by_gravity = jax.grad(lambda g: f(q, q, q[0] + 1, gravity=g).energy.sum())(gravity)
    assert by_gravity.shape == (3,) and jnp.isfinite(by_gravity).all()


def test_scan_and_loops_take_it() -> None:
    """A step in JAX's own loop is the loop of a program."""
    f = ours.function(pp.forward_dynamics, PENDULUM)

    def step(state: Any, _: Any) -> Any:
        q, v = state
        v = v + 0.02 * f(q, v, 3.0 * (1.0 - q))
        return (q + 0.02 * v, v), None

    def end(q: Any) -> Any:
        return jax.lax.scan(step, (q, 0 * q), length=5)[0][0]

    whole = ours.function(swung, PENDULUM, gain=3.0)
    q = jnp.array([-0.4, 0.3])
    ours_, theirs = (
        jax.jit(jax.jacrev(g))(q) for g in (end, lambda q: whole(q, 0 * q, q * 0 + 1).q)
    )
    np.testing.assert_allclose(ours_, theirs, rtol=1e-12, atol=1e-13)


def test_number_types_follow_the_arrays() -> None:
    f = ours.function(pp.forward_dynamics, PENDULUM)
    q, v, tau = jnp.asarray(np.random.default_rng(0).normal(size=(3, 5, 2)), "float32")
    single = jax.jit(f)(q, v, tau)
    assert single.dtype == "float32" and f(q, v, [0.0, 0.0]).dtype == "float32"
    mixed = f(q, v.astype(float), tau)
    assert mixed.dtype == "float64"
    np.testing.assert_allclose(mixed, single, rtol=1e-3, atol=1e-3)
    jax.config.update("jax_enable_x64", False)
    assert f(np.zeros(2), np.zeros(2), [1, 0]).dtype == "float32"


def test_rows_do_not_touch_each_other() -> None:
    f = jax.jit(ours.function(pp.forward_dynamics, PENDULUM))
    q, v, tau = jnp.asarray(np.random.default_rng(0).normal(size=(3, 6, 2)))
    want = f(q, v, tau)
    broken = f(q.at[2, 1].set(jnp.nan), v, tau)
    there = np.arange(6) != 2
    assert jnp.array_equal(broken[there], want[there]) and jnp.isnan(broken[2]).any()
    assert f(q[:0], v[:0], tau[0]).shape == (0, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda q: (q.astype("float16"), q, q), r"q is float16, needs float32 or float64"),
        (lambda q: (q.astype(complex), q, q), r"q is complex128, needs float32 or float64"),
        (lambda q: (q, q), r"forward_dynamics misses 'tau'; it takes q, v, tau"),
        (lambda q: (q[..., :1], q, q), r"q has shape \(3, 1\), needs \(\.\.\., 2\)"),
        (
            lambda q: (q, q, q[:2]),
            r"batch shapes do not go together: q \(3,\), v \(3,\), tau \(2,\)",
        ),
    ],
)
def test_mistakes_are_said_in_a_sentence(given: Any, message: str) -> None:
    f = ours.function(pp.forward_dynamics, PENDULUM)
    with pytest.raises((TypeError, ValueError), match=message):
        jax.jit(f)(*given(jnp.zeros((3, 2))))


def test_without_jit_and_with_plain_numbers() -> None:
    f = ours.function(pp.kinetic_energy, PENDULUM)
    q = jnp.ones((3, 2), "float32")
    with jax.disable_jit():
        plain = f(q, q)
    np.testing.assert_allclose(plain, f(q, q))

    @pp.program(shapes={"k": ()})
    def scaled(robot: Any, q: Any, k: Any) -> Any:
        return k * q

    g = ours.function(scaled, PENDULUM)
    assert g(q, 2.0).dtype == jax.jit(g)(q, 2.0).dtype == jnp.float32
