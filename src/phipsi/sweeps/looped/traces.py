"""What a looped sweep is made of: kinds of bodies, a trace of the step for each, a memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from phipsi.compile import Node, Tracer, array_of, current
from phipsi.compile.fold import RULES
from phipsi.model import Body, Hinge, Robot
from phipsi.sweeps.looped.scalars import scalars_of, with_scalars

AGAIN = 3
"""Operations up to which a value is computed again rather than kept."""

KINDS = 8
"""Most kinds of bodies told apart by more than their hinge kind."""


def plain(x: Any) -> Any:
    """A constant as a number, for structure to see."""
    return x.value if isinstance(x, Node) and x.op == "const" else x


class Column(NamedTuple):
    """A column of a sweep's memory: scalar `number` of a field or of a sum over children, or node
    `number` of the trace for the kind `name`."""

    what: str
    name: Any
    number: int


class Kind:
    """Bodies that one trace serves, with their numbers."""

    def __init__(self, shared: Shared, members: list[int]) -> None:
        bodies = [(shared.robot.bodies[i], shared.robot.hinges[i]) for i in members]
        self.body, self.hinge = bodies[0]
        self.members = np.array(members)
        self.columns = list(zip(*(scalars_of(_numbers(*pair)) for pair in bodies), strict=True))
        self.scalars = [self._scalar(shared, j, c) for j, c in enumerate(self.columns)]

    def _scalar(self, shared: Shared, j: int, column: tuple[Any, ...]) -> Any:
        """A number of these bodies: the number itself, or the key under which rounds read it."""
        if any(isinstance(x, Node) for x in column):
            offsets = np.zeros(shared.robot.nb, np.int64)
            offsets[self.members] = np.arange(len(column))
            return ("vector", shared.vector(column, offsets), 0)
        return column[0] if min(column) == max(column) else ("table", j)

    def body_and_hinge(self, read: Callable[[Any], Node]) -> tuple[Body, Hinge]:
        """A body of this kind and its hinge."""
        scalars = (x if isinstance(x, float) else read(x) for x in self.scalars)
        inertia, placement, axes, pitch, armature = with_scalars(
            _numbers(self.body, self.hinge), scalars
        )
        hinge = replace(self.hinge, placement=placement, axes=axes, pitch=pitch, armature=armature)
        return replace(self.body, inertia=inertia), hinge


def _numbers(body: Body, hinge: Hinge) -> tuple[Any, ...]:
    armature = np.array(hinge.armature, object)
    return body.inertia, hinge.placement.turned, hinge.axes, float(hinge.pitch), armature


class SweepTracer(Tracer):
    """The trace of one sweep's step for one kind of body."""

    def __init__(self, sweep: LoopedSweep, kind: int) -> None:
        super().__init__()
        self.sweep, self.kind = sweep, kind
        self.keys: dict[Any, Node] = {}
        self.columns: dict[int, Column] = {}
        self.remembered: set[int] = set()
        self._recalled: dict[int, Node] = {}

    def read(self, key: Any) -> Node:
        """What stands under a key when the round begins."""
        node = self.keys.get(key)
        if node is None:
            node = self.keys[key] = self.make("input", (), (0, len(self.keys)))
        return node

    def key(self, x: Node) -> Any:
        """The key under which an input was read."""
        return list(self.keys)[x.value[1]]

    def capture(self, x: Node) -> Node:
        """A value of the enclosing trace, or of the same body in an earlier sweep."""
        if not isinstance(x.tracer, SweepTracer):
            return self.lift(x.value) if x.op == "const" else self.read(("fixed", x))
        if id(x) not in self._recalled:
            self._recalled[id(x)] = self._recall(x, x.tracer)
        return self._recalled[id(x)]

    def _recall(self, x: Node, then: SweepTracer) -> Node:
        if x.op == "const":
            return self.lift(x.value)
        if x.op == "input":
            return self.read(then.key(x))
        if x.index not in then.remembered and then.work(x) < np.inf:
            return RULES[x.op](*(self.lift(a) for a in x.args))
        return self.read(("own", then.sweep, then.kept(x)))

    def work(self, x: Node, most: float = AGAIN) -> float:
        """Operations to compute a value again from what is read or kept; infinite if more than
        `most`, which bounds the search."""
        if x.op in ("const", "input") or x.index in self.remembered:
            return 0.0
        if x.op not in RULES or most < 1.0:
            return np.inf
        done = 1.0
        for a in x.args:
            done += self.work(a, most - done)
        return done

    def kept(self, x: Node) -> Column:
        """The column in which a value of this trace is kept."""
        self.remembered.add(x.index)
        if x.index not in self.columns:
            self.sweep.write(Column("node", self.kind, x.index), self.kind, x)
        return self.columns[x.index]


class LoopedSweep:
    """One loop over bodies in an order: the traces of its step, and what they leave in its memory,
    in rows of the bodies (`values`) or added to the rows `targets` (`sums`). What a step sees of a
    parent is read from the rows `sources`."""

    def __init__(self, shared: Shared, order: Any = None) -> None:
        self.shared = shared
        self.order = np.arange(shared.robot.nb) if order is None else np.array(order, np.int64)
        self.sources = self.targets = shared.parents
        self.tracers = [SweepTracer(self, c) for c in range(len(shared.kinds))]
        self.base: dict[int, dict[str, Any]] = dict(shared.base)
        self.values: dict[Column, dict[int, Any]] = {}
        self.sums: dict[Column, dict[int, Any]] = {}
        self.world: dict[Column, Any] = {}
        self.node: Node

    def write(self, column: Column, kind: int, x: Any) -> None:
        """Bodies of a kind leave x in a column of their row."""
        self.values.setdefault(column, {})[kind] = x
        if isinstance(x, Node) and x.tracer is self.tracers[kind]:
            self.tracers[kind].columns.setdefault(x.index, column)

    def close(self) -> None:
        """The step has been traced: take a place in the enclosing trace."""
        shared = self.shared
        shared.base = self.base
        self.world = {column: shared.outer.lift(x) for column, x in self.world.items()}
        self.node = shared.outer.make("loop", (), self)
        shared.sweeps.append(self)


class Shared:
    """What the forests of one trace share: robot, kinds of bodies, vectors, sweeps so far."""

    def __init__(self, robot: Robot) -> None:
        outer = current()
        assert outer is not None
        self.outer, self.robot = outer, robot
        self.parents = np.array([p if p >= 0 else robot.nb for p in robot.parents], np.int64)
        self.vectors: list[tuple[Node, list[Any], np.ndarray]] = []
        self.kinds = [Kind(self, members) for members in _kinds(robot)]
        self.kind_of, self.rank = np.empty((2, robot.nb), np.int64)
        for c, kind in enumerate(self.kinds):
            self.kind_of[kind.members] = c
            self.rank[kind.members] = np.arange(len(kind.members))
        self.start: Callable[[SweepTracer, Body, Hinge], dict[str, Any]]
        self.base: dict[int, dict[str, Any]] = {}
        self.sweeps: list[LoopedSweep] = []
        self.picks: list[tuple[Node, LoopedSweep, int, Column]] = []

    def vector(self, scalars: Iterable[Any], offsets: Any) -> int:
        """The number of a vector of which each body reads its part, from its offset on."""
        values = [plain(x) for x in scalars]
        self.vectors.append((array_of(values), values, np.asarray(offsets, np.int64)))
        return len(self.vectors) - 1

    def part(self, tracer: SweepTracer, number: int, size: int) -> Any:
        """A body's part of a vector, as its round reads it; numbers where all are the same."""
        scalars = self.vectors[number][1]
        if (
            scalars
            and isinstance(scalars[0], float)
            and all(isinstance(x, float) and x == scalars[0] for x in scalars)
        ):
            return np.full(size, scalars[0], object)
        return np.array([tracer.read(("vector", number, j)) for j in range(size)], object)

    def pick(self, sweep: LoopedSweep, row: int, column: Column) -> Node:
        """A scalar of a sweep's memory, in the enclosing trace."""
        node = self.outer.make("pick", (sweep.node,), (row, column))
        self.picks.append((node, sweep, row, column))
        return node


def _kinds(robot: Robot) -> list[list[int]]:
    """The bodies by kind: as fine as the number of kinds allows. Finest are bodies with the same
    numbers, then those with the same axes, coarsest those with the same kind of hinge."""
    same: dict[Any, list[int]] = {}
    fine: dict[Any, list[int]] = {}
    coarse: dict[Any, list[int]] = {}
    for i, (body, h) in enumerate(zip(robot.bodies, robot.hinges, strict=True)):
        structure = h.kind.name, h.placement.turned.R.product is None
        axes = tuple(x if isinstance(x, float) else None for u in h.axes for x in u)
        free = all(isinstance(a, float) and a == 0.0 for a in h.armature)
        if len(same) <= KINDS:
            same.setdefault((*structure, *scalars_of(_numbers(body, h))), []).append(i)
        fine.setdefault((*structure, axes, free), []).append(i)
        coarse.setdefault(structure, []).append(i)
    return list(next((g for g in (same, fine) if len(g) <= KINDS), coarse).values())


def uniform(robot: Robot) -> bool:
    """Are the bodies so much alike that each kind of them is one of constants?"""
    different: set[Any] = set()
    for body, h in zip(robot.bodies, robot.hinges, strict=True):
        different.add((h.kind.name, *scalars_of(_numbers(body, h))))
        if len(different) > KINDS:
            return False
    return True
