"""Loops inside programs: one `LoopNode` instead of `count` copies of the body."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from phipsi.compile.arrays import Traced, is_traced, lift
from phipsi.compile.graph import MemoryPlace
from phipsi.compile.loops import CaseTracer, LoopBuilder, array_of, pick
from phipsi.compile.node import current, tracing


def repeat(
    count: int, step: Callable[..., Any], carry: Any, rows: Any = None, every: int = 1
) -> tuple[Any, Any]:
    """`count` rounds of `carry, y = step(carry, row)`; returns the last carry and all y.

    `carry` is an array or a tuple of arrays and keeps its shape; `rows` (count, …) gives each round
    its row (None: the round's number); `y` is an array or a tuple of arrays, each stacked to
    (count, …), or with `every` those of rounds 0, every, 2·every, … up to the last. Inside a
    program this is one loop however large `count` is; outside, an ordinary loop.

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
    if every < 1 or (every > 1 and (count - 1) % every):
        raise ValueError(f"repeat: count is {count}, needs one more than a multiple of {every}")
    if current() is None:
        return _at_once(step, carry, rows, every)
    single = not isinstance(carry, tuple)
    state = [lift(x) for x in ((carry,) if single else carry)]
    start = [e for x in state for e in x.flat]
    loop = LoopBuilder(count)
    rounds = np.arange(count)
    kept, once = loop.memory(len(start)), loop.index(0 * rounds)
    for j, value in enumerate(start):
        loop.put(kept + j, value)

    case = loop.case()
    with tracing(case):
        now = [case.read(MemoryPlace(0, once, kept + j)) for j in range(len(start))]
        after, y = step(_unpacked(now, state, single), _row(loop, case, rows))
        after = [lift(x) for x in ((after,) if single else after)]
        if [x.shape for x in after] != [x.shape for x in state]:
            raise ValueError(
                f"repeat: the carry has shapes {[x.shape for x in state]}, "
                f"the step returned {[x.shape for x in after]}"
            )
        for j, value in enumerate(e for x in after for e in x.flat):
            case.write(MemoryPlace(0, once, kept + j), value)
        results = [lift(x) for x in (y if isinstance(y, tuple) else (y,))]
        slots = -(-rounds // every)  # a later round takes the place of an earlier one in its slot
        size = slots[-1] + 1 if count else 0
        collected = []
        for result in results:
            collected.append(loop.memory(int(size) * result.size))
            each = loop.index(result.size * slots)
            for j, value in enumerate(result.flat):
                case.write(MemoryPlace(0, each, collected[-1] + j), value)
    memory = loop.node()
    last = [pick(memory, kept + j) for j in range(len(start))]
    parts = [
        _shaped([pick(memory, at + j) for j in range(size * x.size)], (size, *x.shape))
        for at, x in zip(collected, results, strict=True)
    ]
    return _unpacked(last, state, single), tuple(parts) if isinstance(y, tuple) else parts[0]


def _at_once(step: Callable[..., Any], carry: Any, rows: Any, every: int) -> tuple[Any, Any]:
    """The same as an ordinary loop."""
    results = []
    for row in rows:
        carry, y = step(carry, row)
        results.append(y)
    kept = results[::every]
    if kept and isinstance(kept[0], tuple):
        return carry, tuple(np.array(part) for part in zip(*kept, strict=True))
    return carry, np.array(kept)


def _row(loop: LoopBuilder, case: CaseTracer, rows: Any) -> Any:
    """The row of a round, read from a table of numbers or from an array of scalars."""
    shape = np.shape(rows)[1:]
    width = prod(shape)
    index = loop.index(width * np.arange(loop.count))
    if is_traced(rows):
        with tracing(loop.outer):
            array, at = loop.array(array_of(list(lift(rows).flat))), 0
    else:
        array, at = -1, loop.table(np.asarray(rows, float))
    return _shaped([case.read(MemoryPlace(array, index, at + j)) for j in range(width)], shape)


def _unpacked(values: list[Any], state: list[Any], single: bool) -> Any:
    parts, start = [], 0
    for part in state:
        parts.append(_shaped(values[start : start + part.size], part.shape))
        start += part.size
    return parts[0] if single else tuple(parts)


def _shaped(values: list[Any], shape: tuple[int, ...]) -> Any:
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape).view(Traced) if shape else values[0]
