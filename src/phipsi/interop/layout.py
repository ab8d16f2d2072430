"""Layouts of other libraries: the slices of each hinge in their q and v, and conversion of vectors
from one layout to another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from phipsi.compile import as_numbers
from phipsi.model import Hinge, ModelError, Robot
from phipsi.model.hinges import HingeKind
from phipsi.typing import Array, ArrayLike


class JointLayout(NamedTuple):
    """A hinge and its slices of the other library's q and v."""

    hinge: Hinge
    q: slice
    v: slice


class Move(NamedTuple):
    """A slice of a vector, the slice of another that it becomes, and how its numbers change."""

    source: slice
    target: slice
    change: Callable[[Array], Array]


def in_order(
    robot: Robot, names: Iterable[str] | None, nq: Callable[[HingeKind], int]
) -> list[JointLayout]:
    """The layout where hinges follow each other in the order of `names` (default the robot's)."""
    hinges = {h.name: h for h in robot.hinges}
    order = list(hinges) if names is None else list(names)
    check_names(robot, order)
    layout: list[JointLayout] = []
    q, v = 0, 0
    for name in order:
        h = hinges[name]
        size = nq(h.kind)
        layout.append(JointLayout(h, slice(q, q + size), slice(v, v + h.kind.nv)))
        q, v = q + size, v + h.kind.nv
    return layout


def check_names(robot: Robot, names: Sequence[str]) -> None:
    """Refuse names that are not those of all hinges of the robot, each once."""
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


def vector(name: str, x: ArrayLike, size: int) -> Array:
    """x as an array of floating-point numbers, (…, size); `name` is the argument in the error."""
    array = as_numbers(name, x)
    if array.ndim == 0 or array.shape[-1] != size:
        raise ValueError(f"{name} has shape {array.shape}, but needs (..., {size})")
    return array.astype(np.promote_types(array.dtype, np.float32), copy=False)


def moved(name: str, given: ArrayLike, sizes: tuple[int, int], moves: Iterable[Move]) -> Array:
    """The vector (…, sizes[1]) that the moves make of a given one, (…, sizes[0])."""
    x = vector(name, given, sizes[0])
    parts = [(move.target, move.change(x[..., move.source])) for move in moves]
    lead = np.broadcast_shapes(x.shape[:-1], *(part.shape[:-1] for _, part in parts))
    out = np.empty((*lead, sizes[1]), np.result_type(x, *(part for _, part in parts)))
    for target, part in parts:
        out[..., target] = part
    return out


def moved_rates(
    v: ArrayLike | None, a: ArrayLike | None, tau: ArrayLike | None, nv: int, moves: list[Move]
) -> list[Array | None]:
    """v, a and tau after the same moves; None stays None."""
    named = (("v", v), ("a", a), ("tau", tau))
    return [None if x is None else moved(name, x, (nv, nv), moves) for name, x in named]


def unit(quaternion: Array) -> Array:
    """The quaternion at length one."""
    return quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)


def results(q: Array, rates: Sequence[Array | None]) -> Array | tuple[Array, ...]:
    """q alone, or the tuple of q and of the rates that are not None."""
    there = (q, *(x for x in rates if x is not None))
    return q if len(there) == 1 else there
