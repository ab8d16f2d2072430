"""Programs and states on which PyTorch and JAX are tried."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import phipsi as pp

PENDULUM = pp.robots.double_pendulum()
FREE = pp.robots.chain(1, "spherical", base="free")


class Swung(NamedTuple):
    """Two results, one of them a number."""

    q: Any
    energy: Any


@pp.program(shapes={"gain": ()})
def swung(robot, q, v, gain, target):
    """A loop in a program, a choice, an argument of no axis and one whose shape is not declared."""

    def step(state, _):
        q, v = state
        tau = pp.where(q < 1.0, gain * (target - q), -v)
        v = v + 0.02 * pp.forward_dynamics(robot, q, v, tau)
        return (q + 0.02 * v, v), v

    (q, v), _ = pp.repeat(5, step, (q, v))
    return Swung(q, pp.kinetic_energy(robot, q, v))


@pp.program
def policy(robot, q, v, K, target):
    """tau = K (target − x), K as a row of numbers."""
    x = np.concatenate([q - target, v])
    return -K.reshape(robot.nv, 2 * robot.nv) @ x


CASES: list[tuple[str, Any, pp.Robot, dict[str, tuple[int, ...]]]] = [
    ("dynamics", pp.forward_dynamics, FREE, {}),
    ("mass", pp.mass_matrix, PENDULUM, {}),
    ("loop", swung, PENDULUM, {"gain": (), "target": (2,)}),
    ("rollout", pp.motion(policy, duration=0.1, dt=0.01), PENDULUM, {"K": (8,), "target": (2,)}),
]


def arguments(case: Any, rows: int | None = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Numbers for every argument, with a batch or without."""
    _, program, robot, shapes = case
    rng = np.random.default_rng(seed)
    lead = () if rows is None else (rows,)
    q, v = robot.random_state(seed, lead)
    known = {"q": q, "v": v}
    names = [name for name in program.parameters if name in (*known, "tau", *shapes)]
    sizes = {"tau": (robot.nv,), **shapes}
    return {n: known[n] if n in known else 0.3 * rng.normal(size=(*lead, *sizes[n])) for n in names}


def parts(x: Any) -> tuple[Any, ...]:
    """One result or several, as several."""
    return x if isinstance(x, tuple) else (x,)


def by_position(function: Any, case: Any) -> Any:
    """A function of a case's arguments by position, its results as a tuple."""
    names = list(arguments(case))
    return lambda *xs: parts(function(**dict(zip(names, xs, strict=True))))
