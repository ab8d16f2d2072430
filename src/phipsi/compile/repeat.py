"""Loops inside programs: one `LoopNode` instead of `count` copies of the body."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeGuard, TypeVar

import numpy as np

from phipsi.arguments import a_class
from phipsi.compile.arrays import Traced, is_traced, lift
from phipsi.compile.graph import MemoryPlace
from phipsi.compile.loops import CaseTracer, LoopBuilder, array_of, pick
from phipsi.compile.node import Node, current, tracing
from phipsi.typing import Array

Carry = TypeVar("Carry", bound=Node | float | Array | tuple[Any, ...])
Y = TypeVar("Y", bound=Node | float | Array | tuple[Any, ...])


@dataclass(frozen=True)
class Gathered:
    """The rows of several arrays: the row of round r is the tuple of all array[index[r]]."""

    parts: tuple[tuple[Array, Array], ...]
    """Arrays, each with its index: whole numbers (count,), or (count, n) for n rows at a time."""

    def __len__(self) -> int:
        return len(self.parts[0][1])

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for r in range(len(self)):
            yield tuple(array[index[r]] for array, index in self.parts)


def repeat(
    count: int,
    step: Callable[[Carry, Any], tuple[Any, Y]],
    carry: Carry,
    rows: Array | Sequence[Any] | Gathered | None = None,
    every: int = 1,
) -> tuple[Carry, Y]:
    """The last carry and all y of `count` rounds of `carry, y = step(carry, row)`.

    Inside a program this is one loop, and the size of the code does not grow with `count`; outside
    it is an ordinary Python loop.

    Parameters
    ----------
    count
        Number of rounds.
    step
        The function of one round: from the carry and the row to the next carry, of the same
        shapes, and y: a number, an array, or a tuple of these.
    carry
        The carry of the first round: a number, an array, or a tuple of these.
    rows : (count, …), optional
        The row of each round, or rows `Gathered` from several arrays; default: the numbers of the
        rounds, 0.0, 1.0, …
    every
        Keep only the y of rounds 0, `every`, 2·`every`, …; `count` must be one more than a
        multiple of it.

    Returns
    -------
    carry
        The carry after the last round.
    y : (count, …), or ((count − 1)/every + 1, …)
        The y of the rounds, stacked along the first axis; a tuple if y is one.

    Raises
    ------
    ValueError
        `rows` has not `count` rows, `every` does not fit, or the step changes the carry's shape.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> pp.repeat(4, lambda x, k: (x + k, x), np.zeros(1))
    (array([6.]), array([[0.],
           [0.],
           [1.],
           [3.]]))
    """
    for name, number in (("count", count), ("every", every)):
        if not isinstance(number, (int, np.integer)) or not -1 << 60 < number < 1 << 60:
            raise TypeError(f"repeat: {name} is {type(number).__name__}, needs a whole number")
    if not callable(step):
        raise TypeError(f"repeat: step is {a_class(step)}, needs a function of (carry, row)")
    rows = np.arange(float(count)) if rows is None else rows
    if len(rows) != count:
        raise ValueError(f"repeat: rows has {len(rows)} rows, needs {count}")
    if every < 1 or (every > 1 and (count - 1) % every):
        raise ValueError(f"repeat: count is {count}, needs one more than a multiple of {every}")
    if current() is None:
        return _eager(step, carry, rows, every)
    single = not isinstance(carry, tuple)
    state = [lift(x) for x in _members(carry)]
    start: list[Node] = [e for x in state for e in x.flat]
    loop = LoopBuilder(count)
    rounds = np.arange(count)
    kept, once = loop.memory(len(start)), loop.index(0 * rounds)
    for j, value in enumerate(start):
        loop.put(kept + j, value)

    case = loop.case()
    with tracing(case):
        now = [case.read(MemoryPlace(0, once, kept + j)) for j in range(len(start))]
        given: Any = _unpacked(now, state, single)
        returned: tuple[Any, Y] = step(given, _round(loop, case, rows))
        new_carry, y = returned
        after = [lift(x) for x in ((new_carry,) if single else new_carry)]
        if [x.shape for x in after] != [x.shape for x in state]:
            raise ValueError(
                f"repeat: the carry has shapes {[x.shape for x in state]}, "
                f"the step returned {[x.shape for x in after]}"
            )
        for j, value in enumerate(e for x in after for e in x.flat):
            case.write(MemoryPlace(0, once, kept + j), value)
        results = [lift(x) for x in _members(y)]
        slots = -(-rounds // every)  # of the rounds that share a slot, the last one's y stays there
        size = int(slots[-1]) + 1 if count else 0
        collected: list[int] = []
        for result in results:
            collected.append(loop.memory(size * result.size))
            each = loop.index(result.size * slots)
            for j, value in enumerate(result.flat):
                case.write(MemoryPlace(0, each, collected[-1] + j), value)
    memory = loop.node()
    last = [pick(memory, kept + j) for j in range(len(start))]
    parts: list[Any] = [
        _shaped([pick(memory, at + j) for j in range(size * x.size)], (size, *x.shape))
        for at, x in zip(collected, results, strict=True)
    ]
    final: Any = _unpacked(last, state, single)
    stacked: Any = tuple(parts) if isinstance(y, tuple) else parts[0]
    return final, stacked


def _members(x: object) -> tuple[Any, ...]:
    """The members of a tuple, or the one value."""
    return x if _is_tuple(x) else (x,)


def _is_tuple(x: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(x, tuple)


def _eager(
    step: Callable[[Carry, Any], tuple[Any, Y]],
    carry: Carry,
    rows: Array | Sequence[Any] | Gathered,
    every: int,
) -> tuple[Carry, Any]:
    """`repeat` as an ordinary Python loop."""
    results: list[Any] = []
    for row in rows:
        carry, y = step(carry, row)
        results.append(y)
    kept = results[::every]
    if kept and isinstance(kept[0], tuple):
        return carry, tuple(np.array(part) for part in zip(*kept, strict=True))
    return carry, np.array(kept)


def _round(
    loop: LoopBuilder, case: CaseTracer, rows: Array | Sequence[Any] | Gathered
) -> Node | Traced | tuple[Node | Traced, ...]:
    """The row of a round."""
    if isinstance(rows, Gathered):
        return tuple(_row(loop, case, array, index) for array, index in rows.parts)
    return _row(loop, case, rows, np.arange(loop.count))


def _row(
    loop: LoopBuilder, case: CaseTracer, rows: Array | Sequence[Any], index: Array
) -> Node | Traced:
    """The rows with the numbers index[round]."""
    own = np.shape(rows)[1:]
    columns = index.reshape(loop.count, prod(index.shape[1:])).T
    places = _traced_columns(loop, rows) if is_traced(rows) else _numbers(loop, rows)
    read = [
        case.read(MemoryPlace(array, loop.index(steps[column]), at))
        for column in columns
        for array, steps, at in places
    ]
    return _shaped(read, (*index.shape[1:], *own))


Column = tuple[int, Array, int]
"""Where a column of rows is: the number of its array, the address of each row relative to the
first, and the address of the first."""


def _numbers(loop: LoopBuilder, rows: Array | Sequence[Any]) -> list[Column]:
    """The columns of rows of numbers, in the loop's table."""
    width = prod(np.shape(rows)[1:])
    at, steps = loop.table(np.asarray(rows, float)), width * np.arange(len(rows))
    return [(-1, steps, at + j) for j in range(width)]


def _traced_columns(loop: LoopBuilder, rows: Array | Sequence[Any]) -> list[Column]:
    """The columns of traced rows: numbers are in the loop's table, elements of the memory of
    another loop there, and other scalars in an array of the enclosing trace."""
    width = prod(np.shape(rows)[1:])
    nodes = np.empty(len(rows) * width, object)
    nodes[:] = [loop.outer.lift(x) for x in np.asarray(rows, object).flat]
    nodes = nodes.reshape(len(rows), width)
    found: dict[int, Column] = {}
    for j, column in enumerate(nodes.T if len(rows) else ()):
        first: Node = column[0]
        if all(x.op == "const" for x in column):
            at = loop.table(np.array([x.value for x in column]))
            found[j] = -1, np.arange(len(rows)), at
        elif all(
            x.op == "pick" and x.args[0] is first.args[0] and is_address(x.value) for x in column
        ):
            steps = np.array([x.value - first.value for x in column])
            found[j] = loop.array(first.args[0]), steps, first.value
    left = [j for j in range(width) if j not in found]
    if left:
        with tracing(loop.outer):
            array = loop.array(array_of(list(nodes[:, left].flat)))
        steps = len(left) * np.arange(len(rows))
        found |= {j: (array, steps, n) for n, j in enumerate(left)}
    return [found[j] for j in range(width)]


def is_address(value: object) -> TypeGuard[int]:
    """Whether the element of an array is known; those of sweeps are, once all sweeps are traced."""
    return isinstance(value, int)


def _unpacked(
    values: list[Node], state: list[Traced], single: bool
) -> Node | Traced | tuple[Node | Traced, ...]:
    """The values in the shapes of the carry: one array, or a tuple of them."""
    parts: list[Node | Traced] = []
    start = 0
    for part in state:
        parts.append(_shaped(values[start : start + part.size], part.shape))
        start += part.size
    return parts[0] if single else tuple(parts)


def _shaped(values: list[Node], shape: tuple[int, ...]) -> Node | Traced:
    """The values as an array; as the one node if the shape has no axes."""
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape).view(Traced) if shape else values[0]
