"""Adaptive steps: integrators of SciPy, given the compiled right-hand side and its Jacobian."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from phipsi.model import Robot
from phipsi.simulation.clock import Clock
from phipsi.simulation.closed_loop import ClosedLoop, LoopInputs, derivative, jacobian
from phipsi.simulation.events import Phase
from phipsi.simulation.sequences import Sequences
from phipsi.typing import Array

AdaptiveMethod = Literal["dop853", "rk45", "radau", "lsoda"]
ADAPTIVE = MappingProxyType(
    {"dop853": "DOP853", "rk45": "RK45", "radau": "Radau", "lsoda": "LSODA"}
)
"""The adaptive methods by name, with the names that SciPy has for them."""
STIFF = frozenset({"radau", "lsoda"})
"""Those for stiff motions, which take a Jacobian."""
SMALLEST = 100 * float(np.finfo(float).eps)
"""The smallest relative tolerance that SciPy takes."""
STUCK = 1000
"""Evaluations in a row at one and the same time, after which an integrator does not go on."""

Steps: TypeAlias = Callable[[int, int, int], Iterator[tuple[int, Array, Array]]]
"""(now, until, chunk) → the samples (now, until], `chunk` at a time: the number of the first one,
their q (chunk, nq) and v (chunk, nv)."""


@dataclass(frozen=True)
class Tolerances:
    """The bound of the error of a step, relative · |y| + absolute, for each number of the state."""

    relative: float = 1e-10
    absolute: float = 1e-12

    def __post_init__(self) -> None:
        if not SMALLEST <= self.relative < 1.0:
            raise ValueError(
                f"rtol is {self.relative!r}, needs a number from {SMALLEST:.1e} up to 1"
            )
        if not 0.0 < self.absolute < np.inf:
            raise ValueError(f"atol is {self.absolute!r}, needs a finite number > 0")


def solve(
    robot: Robot, loop: ClosedLoop, method: str, clock: Clock, phase: Phase, inputs: LoopInputs,
    sequences: Sequences | None, tolerances: Tolerances,
) -> Steps:  # fmt: skip
    """The function that integrates one motion from the state of `phase` on."""
    try:
        integrator = getattr(import_module("scipy.integrate"), ADAPTIVE[method])  # has no types
    except ImportError:
        raise ImportError(
            f"method {method!r} needs SciPy: pip install 'phipsi[sim]', or use method='rk4'"
        ) from None
    if phase.q.ndim > 1:
        raise ValueError(f"method {method!r} takes one state, not a batch; use method='rk4'")
    if inputs.memory is not None:
        raise ValueError(f"method {method!r} takes no controller with a memory; use method='rk4'")
    nq = robot.nq
    lost = np.inf  # the time of the latest evaluation, where that was not finite
    latest, repeated = np.inf, 0
    row = 0  # of the sequences: the interval that is integrated

    def now(t: float) -> LoopInputs:
        """The inputs at a time."""
        if sequences is None:
            return inputs
        part = t / (sequences.steps * clock.dt) - row
        return inputs._replace(sequences=sequences.within(row, part))

    def rate(t: float, y: Array) -> Array:
        """ẏ. What is not finite becomes ∞: all four integrators then try a shorter step, while
        LSODA would accept NaN. LSODA has no shortest step."""
        nonlocal lost, latest, repeated
        latest, repeated = t, repeated + 1 if t == latest else 0
        if repeated > STUCK:
            raise FloatingPointError(f"{method} cannot go on from t = {t:g} s")
        found = np.asarray(derivative(robot, y, t, *now(t), loop=loop))
        finite = np.isfinite(found)
        lost = np.inf if finite.all() else t
        return np.where(finite, found, np.inf)

    def slope(t: float, y: Array) -> Array:
        """∂ẏ/∂y. Differences would not do: SciPy lengthens their steps by ten, time and again, for
        a coordinate that the rates do not depend on, such as the angle of a spinning shaft."""
        found = np.asarray(jacobian(robot, y, t, *now(t), loop=loop))
        if not np.isfinite(found).all():
            raise FloatingPointError(f"the Jacobian of the motion is not finite at t = {t:g} s")
        return found

    more: dict[str, Any] = {"jac": slope} if method in STIFF else {}
    more |= {"rtol": tolerances.relative, "atol": tolerances.absolute}

    def states(y: Array, at: Array) -> Iterator[Array]:
        """The states at the times at[1:], (n, nq + nv) for each step that passes some of them."""
        if not np.isfinite(rate(at[0], y)).all():  # no integrator can start there
            raise FloatingPointError(f"the motion is no longer finite at t = {at[0]:g} s")
        solver = integrator(rate, at[0], y, at[-1], **more)
        while solver.status == "running":
            message = solver.step()
            if solver.status == "failed" and np.isfinite(lost):
                raise FloatingPointError(f"the motion is no longer finite at t = {lost:g} s")
            if solver.status == "failed":
                raise FloatingPointError(
                    f"{method} cannot go on from t = {solver.t:g} s: {message}"
                )
            passed = at[(at > solver.t_old) & (at <= solver.t)]
            if len(passed):
                yield solver.dense_output()(passed).T

    def pieces(y: Array, first: int) -> Iterator[Array]:
        """The state at the sample after `first`, integrated from interval to interval of the
        sequences: their values jump, or bend, in between."""
        nonlocal row
        each = 1 if sequences is None else clock.every // sequences.steps
        for row in range(first * each, (first + 1) * each):
            (*_, ends) = states(y, clock.time(np.array([row, row + 1])) / each)
            y = ends[-1]
        yield y[None]

    def steps(now: int, until: int, chunk: int) -> Iterator[tuple[int, Array, Array]]:
        y = np.concatenate([phase.q, phase.v])
        chunk = chunk if sequences is None else 1
        for first in range(now, until, chunk):
            at = clock.time(np.arange(first, min(first + chunk, until) + 1))
            found, ended = [np.zeros((0, len(y)))], None
            with np.errstate(all="ignore"):
                try:
                    for part in states(y, at) if sequences is None else pieces(y, first):
                        found.append(part)
                except (FloatingPointError, KeyboardInterrupt) as error:
                    ended = error  # what was found before is handed over first
            q, v = np.split(np.concatenate(found), [nq], axis=-1)
            q = robot.integrate(q, np.zeros(robot.nv))
            if len(q):
                yield first + 1, q, v
                y = np.concatenate([q[-1], v[-1]])
            if ended is not None:
                raise ended

    return steps
