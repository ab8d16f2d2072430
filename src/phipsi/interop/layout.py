"""Where each hinge has its numbers in another library's vectors, and moving them there and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from phipsi.model import Hinge, ModelError, Robot
from phipsi.model.hinges import HingeKind


class JointLayout(NamedTuple):
    """A hinge and its slices of the other library's q and v."""

    hinge: Hinge
    q: slice
    v: slice


class Move(NamedTuple):
    """Numbers of one vector, what is done to them, and where they go in another."""

    source: slice
    target: slice
    change: Callable[[np.ndarray], np.ndarray]


def in_order(
    robot: Robot, names: Sequence[str] | None, nq: Callable[[HingeKind], int]
) -> list[JointLayout]:
    """The layout where hinges follow each other in the order of `names` (default the robot's)."""
    hinges = {h.name: h for h in robot.hinges}
    order = list(hinges) if names is None else list(names)
    check_names(robot, order)
    layout, q, v = [], 0, 0
    for name in order:
        h = hinges[name]
        size = nq(h.kind)
        layout.append(JointLayout(h, slice(q, q + size), slice(v, v + h.kind.nv)))
        q, v = q + size, v + h.kind.nv
    return layout


def check_names(robot: Robot, names: Sequence[str]) -> None:
    """Every hinge of the robot is named, once, and nothing else."""
    mine = {h.name for h in robot.hinges}
    for what, wrong in (
        ("unknown", [n for n in names if n not in mine]),
        ("missing", sorted(mine - set(names))),
        ("repeated", [n for i, n in enumerate(names) if n in names[:i]]),
    ):
        if wrong:
            raise ModelError(
                f"joints= has {what} {wrong[0]!r}; it must name each hinge of robot "
                f"{robot.name!r} once"
            )


def vector(name: str, x: Any, size: int) -> np.ndarray:
    """x as an array of floating-point numbers, (…, size)."""
    x = np.asarray(x)
    if x.ndim == 0 or x.shape[-1] != size:
        raise ValueError(f"{name} has shape {x.shape}, but needs (..., {size})")
    return x.astype(np.promote_types(x.dtype, np.float32), copy=False)


def moved(name: str, x: Any, sizes: tuple[int, int], moves: Iterable[Move]) -> np.ndarray:
    """The vector (…, sizes[1]) that the moves make of the vector x, (…, sizes[0])."""
    x = vector(name, x, sizes[0])
    parts = [(move.target, move.change(x[..., move.source])) for move in moves]
    lead = np.broadcast_shapes(x.shape[:-1], *(part.shape[:-1] for _, part in parts))
    out = np.empty((*lead, sizes[1]), np.result_type(x, *(part for _, part in parts)))
    for target, part in parts:
        out[..., target] = part
    return out


def moved_rates(v: Any, a: Any, tau: Any, nv: int, moves: list[Move]) -> list[np.ndarray | None]:
    """v, a and tau, those that are given, moved alike."""
    named = (("v", v), ("a", a), ("tau", tau))
    return [x if x is None else moved(name, x, (nv, nv), moves) for name, x in named]


def unit(quaternion: np.ndarray) -> np.ndarray:
    """The quaternion at length one."""
    return quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)


def results(given: Sequence[np.ndarray | None]) -> Any:
    """The vectors that are there: alone, or as a tuple."""
    there = tuple(x for x in given if x is not None)
    return there[0] if len(there) == 1 else there
