"""How sweeps over a robot are traced: unrolled for few bodies, as loops for many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from phipsi.compile import current
from phipsi.model import Robot
from phipsi.sweeps.forest import Forest, Record, external_forces, recorded

UNROLLED = 64
"""Bodies up to which sweeps are unrolled unless said otherwise."""

_unroll: ContextVar[bool | None] = ContextVar("phipsi_unroll", default=None)


@contextmanager
def unrolling(unroll: bool | None) -> Iterator[None]:
    """Say how sweeps are traced: unrolled, looped, or (None) as the number of bodies suggests."""
    token = _unroll.set(unroll)
    try:
        yield
    finally:
        _unroll.reset(token)


def may_loop() -> bool:
    """May what is traced have loops in it?"""
    return current() is not None and _unroll.get() is not True


def looped(robot: Robot) -> bool:
    """Are sweeps over this robot traced as loops?"""
    unroll = _unroll.get()
    many = robot.nb > UNROLLED if unroll is None else not unroll and robot.nb > 0
    return many and current() is not None


def simplest(robot: Robot) -> Robot:
    """The robot with the same joint-space dynamics that is traced with the fewest operations: the
    equivalent one, but for loops over bodies that are alike, which it would make different."""
    from phipsi.sweeps.looped import uniform

    return robot if looped(robot) and uniform(robot) else robot.equivalent


def forest(robot: Robot, q: Any, *, external: Any = None, **vectors: Any) -> Forest:
    """The records every algorithm starts from.

    Each body k gets `name`, `M` (spatial inertia), `A` (armature), `hinge`, `phi` and `H` at q,
    `f_ext` (external force on it), its part of every joint vector given by name (`v`, `tau`, …),
    and with `v` also `H_rate` (the map w → Ḣ* w).
    """
    if looped(robot):
        from phipsi.sweeps.looped import LoopedForest

        x: Forest = LoopedForest.of(robot, q, vectors)
    else:
        records = []
        for body, h in zip(robot.bodies, robot.hinges, strict=True):
            parts = {name: np.asarray(x)[h.v] for name, x in vectors.items()}
            records.append(Record(recorded(body, h, np.asarray(q)[h.q], parts)))
        x = Forest(robot, tuple(records), robot.parents)
    return x if external is None else x.carrying(f_ext=external_forces(robot, external))
