"""Adaptive steps: integrators of SciPy, given the compiled right-hand side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from phipsi.model import Robot
from phipsi.simulation.clock import Clock
from phipsi.simulation.closed_loop import ClosedLoop, LoopInputs, derivative
from phipsi.simulation.events import Phase
from phipsi.typing import Array

AdaptiveMethod = Literal["dop853", "rk45", "radau", "lsoda"]
ADAPTIVE = MappingProxyType(
    {"dop853": "DOP853", "rk45": "RK45", "radau": "Radau", "lsoda": "LSODA"}
)
"""The adaptive methods by name, with the names that SciPy has for them."""
RTOL, ATOL = 1e-10, 1e-12

Steps: TypeAlias = Callable[[int, int, int], Iterator[tuple[int, Array, Array]]]
"""(now, until, chunk) → the samples (now, until], `chunk` at a time: the number of the first one,
their q (chunk, nq) and v (chunk, nv)."""


def solve(
    robot: Robot, loop: ClosedLoop, method: str, clock: Clock, phase: Phase, inputs: LoopInputs
) -> Steps:
    """The function that integrates one motion from the state of `phase` on."""
    try:
        solve_ivp = import_module("scipy.integrate").solve_ivp  # SciPy has no types
    except ImportError:
        raise ImportError(
            f"method {method!r} needs SciPy: pip install 'phipsi[sim]', or use method='rk4'"
        ) from None
    if phase.q.ndim > 1:
        raise ValueError(f"method {method!r} takes one state, not a batch; use method='rk4'")
    if inputs.memory is not None:
        raise ValueError(f"method {method!r} takes no controller with a memory; use method='rk4'")
    nq = robot.nq

    def rate(t: float, y: Array) -> Array:
        found = derivative(robot, y[:nq], y[nq:], t, *inputs, loop=loop)
        if not np.isfinite(found).all():  # some integrators would try ever shorter steps
            raise FloatingPointError(f"the motion is no longer finite at t = {t:g} s")
        return np.asarray(found)

    def steps(now: int, until: int, chunk: int) -> Iterator[tuple[int, Array, Array]]:
        y = np.concatenate([phase.q, phase.v])
        for first in range(now, until, chunk):
            at = clock.time(np.arange(first, min(first + chunk, until) + 1))
            span = at[0], at[-1]
            found = solve_ivp(rate, span, y, ADAPTIVE[method], at, rtol=RTOL, atol=ATOL)
            if not found.success:
                raise FloatingPointError(f"{method} gave up after t = {at[0]:g} s: {found.message}")
            states: Array = found.y.T
            q, v = np.split(states, [nq], axis=-1)
            q = robot.integrate(q, np.zeros(robot.nv))
            y = np.concatenate([q[-1], v[-1]])
            yield first + 1, q[1:], v[1:]

    return steps
