"""Derivatives by differences, with an estimate of their own error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phipsi.typing import Array

STEPS = 0.1 * 0.5 ** np.arange(9)
"""Half widths of the central differences."""


def slope(f: Callable[[Array], Array], terms: Array | float = 0.0) -> tuple[Array, Array]:
    """df/dt at 0 and its error, by Ridders' extrapolation of central differences.

    f takes the times (n,) and returns values (n, states, …), which are sums of `terms` of this size
    (states,). A state has one error for all its numbers: the least, over the columns of the
    extrapolation, of how far neighbours differ, and of what rounding of the terms makes of it.
    """
    count = len(STEPS)
    values = np.asarray(f(np.concatenate([STEPS, -STEPS])), float)
    column = (values[:count] - values[count:]) / (2.0 * _along(STEPS, values))
    size = np.abs(values).max(tuple(range(2, values.ndim)), initial=0.0).max(0)
    size = np.maximum(size, terms)
    best: Array = column[0]
    error = np.full(best.shape[:1], np.inf)
    for order in range(1, count):
        factor = 4.0**order
        finer = (factor * column[1:] - column[:-1]) / (factor - 1.0)
        gaps = np.maximum(_largest(finer - column[1:]), _largest(finer - column[:-1]))
        for k, gap in enumerate(gaps):
            gap = gap + np.finfo(float).eps * size / STEPS[k + order]
            better = gap < error
            error = np.where(better, gap, error)
            best = np.where(_along(better, best), finer[k], best)
        column = finer
    return best, error


def _along(x: Array, like: Array) -> Array:
    """x along the first axis of another array."""
    return x.reshape(-1, *[1] * (like.ndim - 1))


def _largest(x: Array) -> Array:
    """The largest number of each state, (n, states)."""
    return np.abs(x).max(tuple(range(2, x.ndim)), initial=0.0)
