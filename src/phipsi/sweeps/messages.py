"""Messages between neighbours, in any order ([BI] 3.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from phipsi.model import Robot
from phipsi.sweeps.forest import Children, Forest, Record, added
from phipsi.sweeps.log import note
from phipsi.sweeps.sweep import inward, others, outward

Edge = tuple[str, str]
"""A message from one body to its neighbour, by name: (sender, receiver)."""


def messages(
    x: Forest,
    up: Callable[[Any, Children], dict[str, Any]],
    sent: Callable[[Any], dict[str, Any]],
    down: Callable[[Any, Any], dict[str, Any]],
    order: Sequence[Edge] | None = None,
    *,
    nothing: Mapping[str, Any],
    world: Mapping[str, Any],
) -> Forest:
    """Both messages of every hinge: up(k, children) of a body to its parent, down(k, parent) to it.

    What a body tells its parent follows from its children's records; what it is told from the
    parent's record and the sums of sent(c) over its siblings c (`nothing` has the sums over none;
    the world's are those). That is `inward`, `others` and `outward`; or with an `order`, message by
    message: all 2 (nb − roots) of them, of which always the first goes that can. O(N).
    """
    if order is None:
        return outward(down, others(sent, inward(up, x), **nothing), **world)
    for step in (up, sent, down):
        note("messages", step)
    return Post(x, up, sent, down, nothing, world).delivered(order)


class Post:
    """Messages on their way: what has arrived at each body."""

    def __init__(
        self,
        x: Forest,
        up: Callable[[Any, Children], dict[str, Any]],
        sent: Callable[[Any], dict[str, Any]],
        down: Callable[[Any, Any], dict[str, Any]],
        nothing: Mapping[str, Any],
        world: Mapping[str, Any],
    ) -> None:
        self.x, self.up, self.sent, self.down, self.nothing = x, up, sent, down, nothing
        self.records = list(x.records)
        self.world = Record(dict(world))
        self.told = [False] * len(self.records)
        """Which bodies have the message of their parent."""
        self.arrived: list[dict[int, Record]] = [{} for _ in self.records]
        """For each body the children that have sent theirs, in the order in which they came."""
        self.degree = [x.parents.count(i) for i in range(len(self.records))]

    def delivered(self, order: Sequence[Edge]) -> Forest:
        """The forest after all messages."""
        number = self.x.robot.body_index
        waiting = [(number(a), number(b)) for a, b in checked(self.x.robot, order)]
        for i, p in enumerate(self.x.parents):
            if p < 0:
                self._tell(i, self.world)
        while waiting:
            edge = next(edge for edge in waiting if self._ready(*edge))
            waiting.remove(edge)
            self._send(*edge)
        for i, p in enumerate(self.x.parents):
            if p < 0:
                self._conclude(i)
        return Forest(self.x.robot, tuple(self.records), self.x.parents)

    def _ready(self, sender: int, receiver: int) -> bool:
        """Has the sender heard all its neighbours but the receiver?"""
        heard = len(self.arrived[sender]) - (receiver in self.arrived[sender])
        if self.x.parents[sender] == receiver:
            return heard == self.degree[sender]
        return self.told[sender] and heard == self.degree[sender] - 1

    def _send(self, sender: int, receiver: int) -> None:
        if self.x.parents[sender] == receiver:
            self.arrived[receiver][sender] = self._conclude(sender)
        else:
            self._tell(receiver, self.records[sender])

    def _conclude(self, i: int) -> Record:
        """What a body knows when its children have spoken."""
        new = self.up(self.records[i], Children(tuple(self.arrived[i].values())))
        self.records[i] = self.records[i].extended(new)
        return self.records[i]

    def _tell(self, i: int, parent: Record) -> None:
        """What a body knows when its parent has spoken, which knows the body's siblings."""
        p = self.x.parents[i]
        sums = dict(self.nothing)
        for c, record in self.arrived[p].items() if p >= 0 else ():
            sums = sums if c == i else added(sums, self.sent(record))
        known = self.records[i].extended(sums)
        self.records[i] = known.extended(self.down(known, parent))
        self.told[i] = True


def checked(robot: Robot, order: Sequence[Edge]) -> list[Edge]:
    """The order, if it has every message between neighbours once."""
    hinges = [
        (h.child, h.parent) for h, p in zip(robot.hinges, robot.parents, strict=True) if p >= 0
    ]
    wanted = {edge for child, parent in hinges for edge in ((child, parent), (parent, child))}
    given = [(str(a), str(b)) for a, b in order]
    for edge in given:
        if edge not in wanted:
            raise ValueError(f"order: no hinge connects {edge[0]!r} and {edge[1]!r}")
        if given.count(edge) > 1:
            raise ValueError(f"order: the message {edge[0]!r} → {edge[1]!r} is there twice")
    missing = wanted.difference(given)
    if missing:
        a, b = min(missing)
        raise ValueError(
            f"order: the message {a!r} → {b!r} is missing; each hinge between bodies has two, "
            f"(child, parent) and (parent, child), {len(wanted)} in all"
        )
    return given
