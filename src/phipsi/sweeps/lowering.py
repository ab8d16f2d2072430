"""How sweeps over a robot are traced: unrolled, or as loops over the bodies."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from phipsi.compile import current
from phipsi.model import Robot
from phipsi.sweeps.forest import Forest, Record, external_forces, recorded
from phipsi.typing import ConfigurationLike, ExternalForces, JointVectorLike

_unroll: ContextVar[bool | None] = ContextVar("phipsi_unroll", default=None)


@contextmanager
def unrolling(unroll: bool | None) -> Generator[None]:
    """A context in which sweeps are traced unrolled and nothing as a loop (True), or as loops
    (False); None changes nothing. Without such a context sweeps are unrolled, and algorithms may
    have loops of their own."""
    token = _unroll.set(_unroll.get() if unroll is None else unroll)
    try:
        yield
    finally:
        _unroll.reset(token)


def may_loop() -> bool:
    """Whether loops are allowed in the current trace."""
    return current() is not None and _unroll.get() is not True


def looped(robot: Robot) -> bool:
    """Whether sweeps over this robot are traced as loops."""
    return _unroll.get() is False and robot.nb > 0 and current() is not None


def simplest(robot: Robot) -> Robot:
    """A robot with the same joint-space dynamics that is traced with the fewest operations.

    This is `Robot.equivalent`, except for loops over bodies that are alike: the bodies of the
    equivalent robot would differ from each other."""
    from phipsi.sweeps.looped import uniform

    return robot if looped(robot) and uniform(robot) else robot.equivalent


def forest(
    robot: Robot,
    q: ConfigurationLike,
    *,
    external: ExternalForces | None = None,
    **vectors: JointVectorLike,
) -> Forest:
    """The records every algorithm starts from.

    Each body k gets `name`, `M` (spatial inertia), `A` (armature), `hinge`, `phi` and `H` at q,
    `f_ext` (external force on it), its part of every joint vector given by name (`v`, `tau`, …),
    and with `v` also `H_rate` (the map w → Ḣ* w).
    """
    if looped(robot):
        from phipsi.sweeps.looped import LoopedForest

        x: Forest = LoopedForest.of(robot, q, vectors)
    else:
        records: list[Record] = []
        for body, h in zip(robot.bodies, robot.hinges, strict=True):
            parts = {name: np.asarray(x)[h.v] for name, x in vectors.items()}
            records.append(Record(recorded(body, h, np.asarray(q)[h.q], parts)))
        x = Forest(robot, tuple(records), robot.parents)
    return x if external is None else x.carrying(f_ext=external_forces(robot, external))
