"""Loops inside programs: one `Loop` node instead of `count` copies of the body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phipsi.compile.arrays import Traced, is_traced, lift
from phipsi.compile.trace import current, loop


def repeat(count: int, step: Callable[..., Any], carry: Any, rows: Any = None) -> tuple[Any, Any]:
    """`count` rounds of `carry, y = step(carry, row)`; returns the last carry and all y.

    `carry` is an array or a tuple of arrays and keeps its shape; `rows` (count, …) gives each round
    its row (None: the round's number); `y` is an array, stacked to (count, …). Inside a program
    this is one loop however large `count` is; outside, an ordinary loop.

    >>> import numpy as np
    >>> repeat(4, lambda x, k: (x + k, x), np.zeros(1))
    (array([6.]), array([[0.],
           [0.],
           [1.],
           [3.]]))
    """
    rows = np.arange(float(count)) if rows is None else rows
    if len(rows) != count:
        raise ValueError(f"repeat: rows has {len(rows)} rows, needs {count}")
    if current() is None:
        results = []
        for row in rows:
            carry, y = step(carry, row)
            results.append(y)
        return carry, np.array(results)
    single = not isinstance(carry, tuple)
    state = [lift(x) for x in ((carry,) if single else carry)]
    result_shape: list[tuple[int, ...]] = []

    def unpack(values: list[Any]) -> Any:
        parts, start = [], 0
        for part in state:
            parts.append(_shaped(values[start : start + part.size], part.shape))
            start += part.size
        return parts[0] if single else tuple(parts)

    def scalar_step(values: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        after, y = step(unpack(values), _shaped(row, np.shape(rows)[1:]))
        after = [lift(x) for x in ((after,) if single else after)]
        if [x.shape for x in after] != [x.shape for x in state]:
            raise ValueError(
                f"repeat: the carry has shapes {[x.shape for x in state]}, "
                f"the step returned {[x.shape for x in after]}"
            )
        result = lift(y)
        result_shape.append(result.shape)
        return [e for x in after for e in x.flat], list(result.flat)

    table = (lift(rows) if is_traced(rows) else np.asarray(rows, float)).reshape(count, -1)
    none = np.empty((count, 0))
    tables, sequence = (
        (none, np.asarray(table)) if is_traced(rows) else (table, none.astype(object))
    )
    start = [e for x in state for e in x.flat]
    last, results = loop(count, scalar_step, start, tables, sequence)
    return unpack(last), results.reshape(count, *result_shape[0]).view(Traced)


def _shaped(values: list[Any], shape: tuple[int, ...]) -> Any:
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape).view(Traced) if shape else values[0]
