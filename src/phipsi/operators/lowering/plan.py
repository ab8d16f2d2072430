"""Lowering: an expression applied to a vector becomes sweeps over the bodies.

All values that run in the same direction share one sweep. Values, recursions and their order do not
depend on a robot: a `Plan` is made once for an expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from phipsi.operators.algebra.derivation import Derivation
from phipsi.operators.algebra.expression import Expression
from phipsi.operators.algebra.simplify import derive
from phipsi.operators.algebra.spaces import SCALARS, Space
from phipsi.operators.lowering.dataflow import Dataflow, LoweringError, Op, Value
from phipsi.operators.lowering.recursions import (
    INWARD,
    LOCAL,
    OUTWARD,
    RECURSION_OF,
    RECURSIONS,
    Direction,
    Recursion,
)

DIRECTIONS: dict[Op, Direction] = {"gather": INWARD, "scatter": OUTWARD, "load": OUTWARD}
"""The direction of the sweep in which a value that depends on neighbours is computed."""

COSTS: dict[Op, int] = {"load": 70, "gather": 24, "scatter": 24, "add": 6, "place": 1, "dot": 6}
"""The approximate number of operations for a hinge with one freedom, by which the cheapest of equal
expressions is chosen."""


@dataclass(frozen=True)
class Sweep:
    """One pass over the bodies: recursions behind symbols, then values, in order."""

    direction: Direction
    recursions: tuple[Recursion, ...]
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Plan:
    """The sweeps that compute an expression."""

    expression: Expression
    result: Value
    sweeps: tuple[Sweep, ...]
    values: tuple[Value, ...]
    """All values, in the order in which they can be computed."""

    @property
    def cost(self) -> int:
        """The approximate number of operations for each body."""
        behind = sum(recursion.cost for sweep in self.sweeps for recursion in sweep.recursions)
        return behind + sum(_cost(x) for x in self.values)

    @property
    def inputs(self) -> dict[str, Space]:
        """The vectors that are given, by name."""
        return {x.data: x.space for x in self.values if x.op == "input"}

    @property
    def moving(self) -> bool:
        """Whether it depends on the joint rates."""
        return any(x.moving for sweep in self.sweeps for x in sweep.recursions) or any(
            x.op == "load" or (x.op == "apply" and any(y.symbol.moving for y in x.data.leaves))
            for x in self.values
        )


def _cost(x: Value) -> int:
    if x.op == "apply":
        return max(leaf.symbol.cost for leaf in x.data.leaves)
    return COSTS.get(x.op, 0)


def needed(x: Value) -> tuple[Recursion, ...]:
    """The recursions behind the symbols of a value."""
    match x.op:
        case "state":
            names = {x.data}
        case "logdet" | "apply":
            names = {leaf.symbol.name for leaf in x.data.leaves}
        case _:
            return ()
    own = {RECURSION_OF[name] for name in names if name in RECURSION_OF}
    return tuple(recursion for recursion in RECURSIONS if recursion in own)


def planned(x: Expression, given: Iterable[str] = ()) -> Plan:
    """The plan of one form of an expression, or a `LoweringError`."""
    dataflow = Dataflow(given)
    if x.domain == SCALARS:
        result = dataflow.vector(x)
    else:
        result = dataflow.apply(x, dataflow.make("input", x.domain, (), "x"))
    values = tuple(_ordered(result))
    plans = [_swept_from(first, x, result, values) for first in (INWARD, OUTWARD)]
    return min(plans, key=lambda plan: len(plan.sweeps))


def _ordered(result: Value) -> Iterator[Value]:
    """The values that a result is computed from, each after its inputs at the same body."""
    done: set[Value] = set()
    waiting = [(result, False)]
    while waiting:
        x, ready = waiting.pop()
        if ready:
            yield x
        elif x not in done:
            done.add(x)
            waiting.append((x, True))
            waiting.extend((y, False) for y in x.inputs)
            if not x.inputs:  # the values of neighbours need no order: they come last
                waiting[:0] = [(y, False) for y in x.args]


Levels = dict[Value | Recursion, int]
"""The number of the sweep in which a value or recursion is computed."""


def _swept_from(first: Direction, x: Expression, result: Value, values: tuple[Value, ...]) -> Plan:
    """The plan whose first sweep has a given direction; sweeps alternate."""
    level: Levels = dict.fromkeys(values, 0)
    behind = (own for value in values for own in _closure(needed(value)))
    level.update(dict.fromkeys(behind, 0))

    def at(number: int, direction: Direction | None) -> int:
        turned = (number % 2 == 0) == (direction == first)
        return number if direction is None or turned else number + 1

    changed = True
    while changed:
        changed = False
        for item in level:
            if isinstance(item, Recursion):
                direction = item.direction
                least = max((level[other] for other in item.needs), default=0)
            else:
                direction = DIRECTIONS.get(item.op)
                least = max(
                    [level[y] + (_after(y) and not item.whole) for y in item.sources]
                    + [level[other] for other in needed(item)],
                    default=0,
                )
            new = at(least, direction)
            if new > level[item]:
                level[item], changed = new, True
    _late(level, values)
    return Plan(x, result, tuple(_swept(level, values, first)), values)


def _late(level: Levels, values: tuple[Value, ...]) -> None:
    """Move values that depend on given vectors alone to the sweep that first uses them."""
    given: set[Value] = set()
    for x in values:
        if x.op not in ("gather", "scatter", "load", "recur", "state") and not needed(x):
            given |= {x} if set(x.sources) <= given else set()
    users: dict[Value, list[Value]] = {x: [] for x in values}
    for x in values:
        for y in x.sources:
            users[y].append(x)
    for x in reversed(values):
        if x in given and users[x] and not _after(x):
            level[x] = min(level[y] for y in users[x])


def _after(x: Value) -> bool:
    """Whether a value is known only after the sweep in which it is computed."""
    return x.whole and x.op not in ("input", "unit", "one", "zero")


def _closure(recursions: Iterable[Recursion]) -> Iterator[Recursion]:
    """Recursions, and before each those that it needs, directly or indirectly."""
    for recursion in recursions:
        yield from _closure(recursion.needs)
        yield recursion


def _swept(level: Levels, values: tuple[Value, ...], first: Direction) -> Iterator[Sweep]:
    """The sweeps, from the number of the sweep of each value and recursion."""
    second = OUTWARD if first == INWARD else INWARD
    carried: list[Value] = []
    last = max(level.values(), default=0)
    for number in range(last + 1):
        own = [x for x in values if level[x] == number]
        behind = [recursion for recursion in RECURSIONS if level.get(recursion) == number]
        swept = behind or any(x.op in ("gather", "scatter", "load") for x in own)
        carried += own
        whole = any(x.whole for x in own)
        if swept or number == last or whole:
            direction = (first if number % 2 == 0 else second) if swept else LOCAL
            yield Sweep(direction, tuple(behind), tuple(carried))
            carried = []


@dataclass(frozen=True)
class Lowered:
    """The derivation of an expression, and the plan of its cheapest form."""

    derivation: Derivation[Expression]
    plan: Plan


def lower(x: Expression, given: tuple[str, ...] = ()) -> Lowered:
    """The cheapest plan among the forms of an expression that its derivation passes through.

    `given` names vectors that are given although they have a definition.
    """
    return _lowered(x, given)


@lru_cache(maxsize=512)
def _lowered(x: Expression, given: tuple[str, ...]) -> Lowered:
    derivation = derive(x, keep=given)
    plans: list[Plan] = []
    reasons: list[LoweringError] = []
    for form in derivation.forms:
        try:
            plans.append(planned(form, given))
        except LoweringError as error:
            reasons.append(error)
    if not plans:
        raise reasons[-1]
    return Lowered(derivation, min(plans, key=lambda plan: plan.cost))
