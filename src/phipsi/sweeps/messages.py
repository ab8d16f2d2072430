"""Messages between neighbours, in any order ([BI] 3.5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate
from typing import Any

from phipsi.arguments import a_class
from phipsi.model import Robot
from phipsi.sweeps.forest import (
    Children,
    Fields,
    Forest,
    InwardStep,
    LocalStep,
    OutwardStep,
    Record,
    added,
)
from phipsi.sweeps.log import note
from phipsi.sweeps.sweep import inward, outward, over_siblings

Edge = tuple[str, str]
"""A message from one body to its neighbour, by name: (sender, receiver)."""


def messages(
    x: Forest,
    up: InwardStep,
    sibling_message: LocalStep,
    down: OutwardStep,
    order: Sequence[Edge] | None = None,
    *,
    nothing: Mapping[str, Any],
    world: Mapping[str, Any],
) -> Forest:
    """The forest after both messages of every hinge: up(k, children) from body k to its parent, and
    down(k, parent) from the parent to body k.

    The message up is computed from the records of the children; the message down from the record of
    the parent and the sums of sibling_message(c) over the siblings c of k. `nothing` holds the sums
    for a body without siblings, and for a root. Without `order` this is `inward`, `over_siblings`
    and `outward`. With an `order` the 2 (nb − roots) messages are computed one by one: always the
    first in the order whose inputs are known. Such sweeps are always unrolled. O(N) operations.
    """
    if order is None:
        return outward(down, over_siblings(sibling_message, inward(up, x), **nothing), **world)
    for step in (up, sibling_message, down):
        note("messages", step)
    passing = MessagePassing(x, up, sibling_message, down, dict(nothing), Record(dict(world)))
    return passing.delivered(order)


@dataclass
class MessagePassing:
    """Messages delivered one by one, and what each body has received so far."""

    x: Forest
    up: InwardStep
    sibling_message: LocalStep
    down: OutwardStep
    nothing: Fields
    world: Record

    def __post_init__(self) -> None:
        self.records = list(self.x.records)
        self.arrived: list[dict[int, Record]] = [{} for _ in self.records]
        """For each body the records of the children that have sent their message, in the order of
        arrival."""
        self.sibling_sums: dict[int, Fields] = {}
        """For each body the sums over its siblings, known once its parent has received all of their
        messages."""

    def delivered(self, order: Sequence[Edge]) -> Forest:
        """The forest after all messages."""
        number = self.x.robot.body_index
        roots = [i for i, p in enumerate(self.x.parents) if p < 0]
        for i in roots:
            self._from_parent(i, self.world)
        named = checked(self.x.robot, order)
        for sender, receiver in scheduled([(number(a), number(b)) for a, b in named]):
            if self.x.parents[sender] == receiver:
                self.arrived[receiver][sender] = self._from_children(sender)
            else:
                self._from_parent(receiver, self.records[sender])
        for i in roots:
            self._from_children(i)
        return Forest(self.x.robot, tuple(self.records), self.x.parents)

    def _from_children(self, i: int) -> Record:
        """The record of a body after the messages of its children."""
        new = self.up(self.records[i], Children(tuple(self.arrived[i].values())))
        self.records[i] = self.records[i].extended(new)
        return self.records[i]

    def _from_parent(self, i: int, parent: Record) -> None:
        """Deliver the message of the parent to a body, with the sums over its siblings."""
        known = self.records[i].extended(self._sibling_sums(i))
        self.records[i] = known.extended(self.down(known, parent))

    def _sibling_sums(self, i: int) -> Fields:
        """The sums over the siblings of a body: prefix sums over those that arrived before it and
        after it, so that all children of one parent together take O(children)."""
        p = self.x.parents[i]
        if p < 0 or i in self.sibling_sums:
            return self.sibling_sums.get(i, self.nothing)
        parts = [self.sibling_message(record) for record in self.arrived[p].values()]
        before, after = (
            [*accumulate(run, added, initial=self.nothing)] for run in (parts, parts[::-1])
        )
        if i not in self.arrived[p]:
            return before[-1]
        sums = map(added, before, after[-2::-1])
        self.sibling_sums.update(zip(self.arrived[p], sums, strict=True))
        return self.sibling_sums[i]


def scheduled(order: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """All messages, at each step the first in the order that is ready: its sender has received the
    messages of all neighbours but the receiver. O(N log N)."""
    place = {edge: n for n, edge in enumerate(order)}
    neighbours: dict[int, set[int]] = defaultdict(set)
    for sender, receiver in order:
        neighbours[receiver].add(sender)
    unheard = {i: set(found) for i, found in neighbours.items()}
    ready = [n for n, (sender, _) in enumerate(order) if len(unheard[sender]) == 1]
    while ready:
        sender, at = order[heappop(ready)]
        yield sender, at
        unheard[at].remove(sender)
        # with one message missing, the one to its sender is ready; with none, those to all others
        free = neighbours[at] - {sender} if not unheard[at] else unheard[at]
        for receiver in free if len(unheard[at]) <= 1 else ():
            heappush(ready, place[at, receiver])


def as_edges(order: Sequence[Sequence[str]]) -> tuple[Edge, ...]:
    """An order of messages as tuples, or a `TypeError` that says what is wrong with it."""
    if not isinstance(order, (list, tuple)):
        kind = a_class(order)
        raise TypeError(f"order is {kind}, needs a list of pairs of names, (sender, receiver)")
    for edge in order:
        pair = isinstance(edge, (list, tuple)) and len(edge) == 2
        if not pair or not all(isinstance(name, str) for name in edge):
            raise TypeError(f"order: {edge!r} is no pair (sender, receiver) of body names")
    return tuple((str(sender), str(receiver)) for sender, receiver in order)


def checked(robot: Robot, order: Sequence[Sequence[str]]) -> tuple[Edge, ...]:
    """The order, or a `ValueError` if it has not every message between neighbours exactly once."""
    hinges = [
        (h.child, h.parent) for h, p in zip(robot.hinges, robot.parents, strict=True) if p >= 0
    ]
    wanted = {edge for child, parent in hinges for edge in ((child, parent), (parent, child))}
    given, missing = as_edges(order), set(wanted)
    for a, b in given:
        if (a, b) not in wanted:
            raise ValueError(f"order: no hinge connects {a!r} and {b!r}")
        if (a, b) not in missing:
            raise ValueError(f"order: the message {a!r} → {b!r} is there twice")
        missing.remove((a, b))
    if missing:
        a, b = min(missing)
        raise ValueError(
            f"order: the message {a!r} → {b!r} is missing; each hinge between bodies has two, "
            f"(child, parent) and (parent, child), {len(wanted)} in all"
        )
    return given
