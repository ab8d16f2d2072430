"""The state a simulation begins with, and its events in order of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

import numpy as np

from phipsi.arguments import as_list, as_mapping
from phipsi.compile import as_numbers
from phipsi.model import Robot
from phipsi.model.untrusted import quoted
from phipsi.simulation.events import Event, Phase
from phipsi.simulation.plant import Plant
from phipsi.typing import Array, ArrayLike


def start_phase(
    robot: Robot,
    q0: ArrayLike,
    v0: ArrayLike | None,
    plant: Plant,
    parameters: Mapping[str, Any] | None,
) -> Phase:
    """The phase that begins in the state (q0, v0), which is checked; no v0 is rest."""
    q = _state("q0", q0, robot.nq, robot)
    v = np.zeros(robot.nv) if v0 is None else _state("v0", v0, robot.nv, robot)
    q = robot.integrate(q, np.zeros(robot.nv))
    try:
        batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    except ValueError:
        shapes = f"{q.shape[:-1]} and {v.shape[:-1]}"
        raise ValueError(f"the batches of q0 and v0 do not go together: {shapes}") from None
    q, v = np.broadcast_to(q, (*batch, robot.nq)), np.broadcast_to(v, (*batch, robot.nv))
    given = as_mapping("parameters", parameters)
    return Phase(q, v, plant, given, robot.driven, np.zeros(robot.nv, bool))


def _state(name: str, value: ArrayLike, size: int, robot: Robot) -> Array:
    """The argument `name` as an array (…, size) of finite numbers."""
    array = as_numbers(name, value).astype(float)
    if array.ndim == 0 or array.shape[-1] != size:
        raise ValueError(
            f"{name} has shape {array.shape}, robot {robot.name!r} needs (..., {size})"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has entries that are not finite")
    return array


def events_in_order(robot: Robot, events: Event | Iterable[Event]) -> list[Event]:
    """The events, checked, in order of time; those with a condition last."""
    given = [events] if isinstance(events, Event) else [*as_list("events", events)]
    for event in given:
        if not isinstance(event, Event):
            raise TypeError(
                f"events has {quoted(event)}, needs Failure, Capture, Release or Change"
            )
        event.check(robot)
    return sorted(given, key=lambda event: inf if callable(event.at) else event.at)
