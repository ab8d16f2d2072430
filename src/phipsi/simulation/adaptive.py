"""Adaptive steps: SciPy's integrators on the compiled right-hand side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from phipsi.model import Robot
from phipsi.simulation.closed_loop import ClosedLoop, derivative

AdaptiveMethod = Literal["dop853", "rk45", "radau", "lsoda"]
ADAPTIVE = MappingProxyType(
    {"dop853": "DOP853", "rk45": "RK45", "radau": "Radau", "lsoda": "LSODA"}
)
"""Names of the adaptive methods, and SciPy's names of them."""
RTOL, ATOL = 1e-10, 1e-12

Steps = Callable[[int, int, int], Iterator[tuple[int, np.ndarray, np.ndarray]]]


def solve(
    robot: Robot, loop: ClosedLoop, method: str, clock: Any, phase: Any, memory: Any, values: Any,
    masks: tuple[Any, Any],
) -> Steps:  # fmt: skip
    """The samples (now, until] of one motion, chunk by chunk: the first one's number, q and v."""
    try:
        from scipy.integrate import solve_ivp
    except ImportError:
        raise ImportError(
            f"method {method!r} needs SciPy: pip install 'phipsi[sim]', or use method='rk4'"
        ) from None
    if phase.q.ndim > 1:
        raise ValueError(f"method {method!r} takes one state, not a batch; use method='rk4'")
    if memory is not None:
        raise ValueError(f"method {method!r} takes no controller with a memory; use method='rk4'")
    nq = robot.nq

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        found = derivative(robot, y[:nq], y[nq:], t, clock.dt, None, *masks, values, loop=loop)
        if not np.isfinite(found).all():  # some integrators would try ever shorter steps
            raise FloatingPointError(f"the motion is no longer finite at t = {t:g} s")
        return np.asarray(found)

    def steps(now: int, until: int, chunk: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        y = np.concatenate([phase.q, phase.v])
        for first in range(now, until, chunk):
            at = clock.time(np.arange(first, min(first + chunk, until) + 1))
            found = solve_ivp(rate, (at[0], at[-1]), y, ADAPTIVE[method], at, rtol=RTOL, atol=ATOL)
            if not found.success:
                raise FloatingPointError(f"{method} gave up after t = {at[0]:g} s: {found.message}")
            q, v = np.split(found.y.T, [nq], axis=-1)
            q = robot.integrate(q, np.zeros(robot.nv))
            y = np.concatenate([q[-1], v[-1]])
            yield first + 1, q[1:], v[1:]

    return steps
