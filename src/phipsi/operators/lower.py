"""Lowering: an expression applied to a vector becomes sweeps over the bodies.

All values that run in the same direction are one sweep. Values, recursions and their order know no
robot: a `Plan` is made once for an expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from phipsi.operators.expressions import Expression
from phipsi.operators.simplify import Derivation, derive
from phipsi.operators.spaces import SCALARS, Space
from phipsi.operators.symbols import H_dot
from phipsi.operators.values import INWARD, OUTWARD, STATE, Lowering, LoweringError, Value

RECURSIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "riccati": (INWARD, ()),
    "passive": (INWARD, ()),
    "motion": (OUTWARD, ()),
    "gyroscopic": (OUTWARD, ("motion",)),
    "upsilon": (OUTWARD, ("riccati",)),
    "dual": (OUTWARD, ("riccati",)),
    "rates": (INWARD, ("riccati", "motion")),
}
"""Recursions behind symbols: their direction, and those they follow."""

COSTS = {
    "riccati": 170, "passive": 170, "motion": 50, "gyroscopic": 60, "upsilon": 80, "dual": 250,
    "rates": 150,
    "load": 70, "gather": 24, "scatter": 24, "add": 6, "place": 1, "dot": 6,
    **dict.fromkeys(("M", "P", "P_p", "P_plus", "P_p_plus", "Upsilon", "P_dot"), 33),
    **dict.fromkeys(("G", "G_p", "Delta_cross", "H_cross"), 6), "G_dot": 12, "spin": 18,
    "V_cross": 27,
}  # fmt: skip
"""Operations for a hinge with one freedom, roughly: to choose among equal expressions."""


@dataclass(frozen=True)
class Sweep:
    """One pass over the bodies: recursions behind symbols, then values, in order."""

    direction: str
    recursions: tuple[str, ...]
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
        """Operations per body, roughly."""
        states = sum(COSTS[name] for sweep in self.sweeps for name in sweep.recursions)
        return states + sum(_cost(x) for x in self.values)

    @property
    def inputs(self) -> dict[str, Space]:
        """The vectors that are given, by name."""
        return {x.data: x.space for x in self.values if x.op == "input"}

    @property
    def moving(self) -> bool:
        """Does it depend on the velocity?"""
        states = {name for sweep in self.sweeps for name in sweep.recursions}
        return "motion" in states or any(
            x.op == "load" or (x.op == "apply" and H_dot in x.data.leaves) for x in self.values
        )


def _cost(x: Value) -> int:
    if x.op == "apply":
        return max(COSTS.get(leaf.symbol.name, 1) for leaf in x.data.leaves)
    return COSTS.get(x.op, 0)


def needed(x: Value) -> tuple[str, ...]:
    """The recursions behind the symbols of a value."""
    if x.op == "state":
        return ("gyroscopic",) if x.data == "b" else ("motion",)
    if x.op == "logdet":
        return (STATE[x.data.symbol.name],)
    if x.op != "apply":
        return ()
    own = (STATE.get(leaf.symbol.name) for leaf in x.data.leaves)
    return tuple(sorted({name for name in own if name in RECURSIONS}))


def planned(x: Expression, given: Iterable[str] = ()) -> Plan:
    """The plan of one form of an expression, or a `LoweringError`."""
    lowering = Lowering(given)
    if x.domain == SCALARS:
        result = lowering.vector(x)
    else:
        result = lowering.apply(x, lowering.make("input", x.domain, (), "x"))
    values = tuple(_ordered(result))
    plans = [_passes(x, result, values, first) for first in (INWARD, OUTWARD)]
    return min(plans, key=lambda plan: len(plan.sweeps))


def _ordered(result: Value) -> Iterator[Value]:
    """The values behind a result, each after those of the same body that it is made of."""
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
            if not x.inputs:  # what neighbours send comes in its own time
                waiting[:0] = [(y, False) for y in x.args]


def _passes(x: Expression, result: Value, values: tuple[Value, ...], first: str) -> Plan:
    """Values and recursions by the number of the sweep they are computed in; sweeps alternate."""
    level: dict[Any, int] = dict.fromkeys(values, 0)
    states = {name for value in values for name in _closure(needed(value))}
    level.update(dict.fromkeys(states, 0))

    def at(number: int, direction: str | None) -> int:
        turned = (number % 2 == 0) == (direction == first)
        return number if direction is None or turned else number + 1

    changed = True
    while changed:
        changed = False
        for item in level:
            if isinstance(item, str):
                direction, after = RECURSIONS[item]
                least = max((level[name] for name in after), default=0)
            else:
                direction = {"gather": INWARD, "scatter": OUTWARD, "load": OUTWARD}.get(item.op)
                least = max(
                    [level[y] + (_after(y) and not item.whole) for y in item.sources]
                    + [level[name] for name in needed(item)],
                    default=0,
                )
            new = at(least, direction)
            if new > level[item]:
                level[item], changed = new, True
    _late(level, values)
    return Plan(x, result, tuple(_swept(level, values, first)), values)


def _late(level: dict[Any, int], values: tuple[Value, ...]) -> None:
    """What is made of given vectors alone is computed where it is first used."""
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
    """Is it known only after the sweep that it is computed in?"""
    return x.whole and x.op not in ("input", "unit", "one", "zero")


def _closure(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from _closure(RECURSIONS[name][1])
        yield name


def _swept(level: dict[Any, int], values: tuple[Value, ...], first: str) -> Iterator[Sweep]:
    second = OUTWARD if first == INWARD else INWARD
    carried: list[Value] = []
    last = max(level.values(), default=0)
    for number in range(last + 1):
        own = [x for x in values if level[x] == number]
        states = [name for name in RECURSIONS if level.get(name) == number]
        swept = states or any(x.op in ("gather", "scatter", "load") for x in own)
        carried += own
        whole = any(x.whole for x in own)
        if swept or number == last or whole:
            direction = (first if number % 2 == 0 else second) if swept else "local"
            yield Sweep(direction, tuple(states), tuple(carried))
            carried = []


@dataclass(frozen=True)
class Lowered:
    """An expression, how it was simplified, and the plan of its cheapest form."""

    derivation: Derivation
    plan: Plan


def lower(x: Expression, given: tuple[str, ...] = ()) -> Lowered:
    """The cheapest plan among the forms of an expression that its derivation passes through.

    `given` names vectors that are given though they have a definition.
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
