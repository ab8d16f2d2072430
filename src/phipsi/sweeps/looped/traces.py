"""The parts of a looped sweep: kinds of bodies, a trace of the step for each kind, a memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from phipsi.compile import Node, Tracer, array_of, current
from phipsi.compile.fold import RULES
from phipsi.model import Body, Hinge, Robot
from phipsi.spatial import SpatialInertia, Transform
from phipsi.sweeps.forest import Fields
from phipsi.sweeps.looped.scalars import scalars_of, with_scalars
from phipsi.typing import Array, Real

AGAIN = 3
"""The most operations for which a value is computed again instead of stored."""

KINDS = 8
"""The most kinds of bodies that are distinguished by more than their hinge kind."""


def plain(x: Any) -> Any:
    """The number of a constant node; other scalars as they are."""
    return x.value if isinstance(x, Node) and x.op == "const" else x


class Column(NamedTuple):
    """A column of a sweep's memory.

    Of a "field": scalar `number` of the field `name`. Of a "sum": scalar `number` of the sum over
    children with index `name`. Of a "node": node `number` of the trace for the kind `name`.
    """

    what: Literal["field", "sum", "node"]
    name: str | int
    number: int


Key: TypeAlias = (
    tuple[Literal["own", "parent"], "LoopedSweep", Column]
    | tuple[Literal["vector"], int, int]
    | tuple[Literal["table"], int]
    | tuple[Literal["fixed"], Node]
)
"""Where a round of a loop reads a scalar: in a column of its own row or of its parent's row, at an
offset in its part of a vector, in a column of the table of its kind, or in the enclosing trace."""

Numbers: TypeAlias = tuple[SpatialInertia, Transform, tuple[Array, ...], float, Array]
"""Inertia of a body; placement, axes, pitch and armature of its hinge."""


class Rows:
    """The rows of the memories of sweeps: one for each body of the robot, or one for each body of
    copies of parts of it; a row more is the world's."""

    def __init__(self, bodies: Array, parents: Array) -> None:
        self.bodies, self.parents = bodies, parents
        """For each row its body, and the row of its parent."""
        self.size = len(bodies)

    def within(self, other: Rows, rows: Array) -> Array:
        """The rows, where memories with the rows `other` have the same bodies: themselves, or for
        copies those of the robot."""
        return rows if other is self else self.bodies[rows]


class Kind:
    """The bodies that share one trace, with their numbers."""

    def __init__(self, shared: Shared, members: list[int]) -> None:
        bodies = [(shared.robot.bodies[i], shared.robot.hinges[i]) for i in members]
        self.body, self.hinge = bodies[0]
        self.members = np.array(members)
        self.columns = list(zip(*(scalars_of(_numbers(*pair)) for pair in bodies), strict=True))
        self.scalars = [self._scalar(shared, j, c) for j, c in enumerate(self.columns)]

    def _scalar(self, shared: Shared, j: int, column: tuple[Any, ...]) -> float | Key:
        """A scalar of these bodies: the number if all have the same, else the key to read it."""
        if any(isinstance(x, Node) for x in column):
            offsets = np.zeros(shared.robot.nb, np.int64)
            offsets[self.members] = np.arange(len(column))
            return ("vector", shared.vector(column, offsets), 0)
        return column[0] if min(column) == max(column) else ("table", j)

    def body_and_hinge(self, read: Callable[[Key], Node]) -> tuple[Body, Hinge]:
        """A body of this kind and its hinge; scalars that differ within the kind are read."""
        scalars = (read(x) if isinstance(x, tuple) else x for x in self.scalars)
        inertia, placement, axes, pitch, armature = with_scalars(
            _numbers(self.body, self.hinge), scalars
        )
        hinge = replace(self.hinge, placement=placement, axes=axes, pitch=pitch, armature=armature)
        return replace(self.body, inertia=inertia), hinge


def _numbers(body: Body, hinge: Hinge) -> Numbers:
    armature = np.array(hinge.armature, object)
    return body.inertia, hinge.placement.turned, hinge.axes, float(hinge.pitch), armature


class SweepTracer(Tracer):
    """The trace of one sweep's step for one kind of body."""

    def __init__(self, sweep: LoopedSweep, kind: int) -> None:
        super().__init__()
        self.sweep, self.kind = sweep, kind
        self.keys: dict[Key, Node] = {}
        """The inputs of the trace, in order."""
        self.columns: dict[int, Column] = {}
        """For each node that is written its column."""
        self.remembered: set[int] = set()
        """The nodes that later sweeps read from memory."""
        self._recalled: dict[int, Node] = {}
        """Nodes of other traces, by id, as nodes of this one."""

    def read(self, key: Key) -> Node:
        """The scalar at a key, as it is when the round begins."""
        node = self.keys.get(key)
        if node is None:
            node = self.keys[key] = self.make("input", (), (0, len(self.keys)))
        return node

    def key(self, x: Node) -> Key:
        """The key from which an input was read."""
        number: int = x.value[1]
        return list(self.keys)[number]

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
        """The number of operations to compute a value again from inputs and stored values; infinite
        if there are more than `most`, which bounds the search."""
        if x.op in ("const", "input") or x.index in self.remembered:
            return 0.0
        if x.op not in RULES or most < 1.0:
            return np.inf
        done = 1.0
        for a in x.args:
            done += self.work(a, most - done)
        return done

    def kept(self, x: Node) -> Column:
        """The column in which a value of this trace is stored."""
        self.remembered.add(x.index)
        if x.index not in self.columns:
            self.sweep.write(Column("node", self.kind, x.index), self.kind, x)
        return self.columns[x.index]


class LoopedSweep:
    """One loop over bodies in an order: the traces of its step, and what these write to its memory,
    in the rows of the bodies (`values`) or added to the rows `targets` (`sums`). The fields that a
    step sees of a parent are read from the rows `sources`."""

    def __init__(
        self, shared: Shared, rows: Rows, order: Sequence[int] | Array | None = None
    ) -> None:
        self.shared, self.rows = shared, rows
        self.order = np.arange(rows.size) if order is None else np.array(order, np.int64)
        self.sources = self.targets = rows.parents
        self.tracers = [SweepTracer(self, c) for c in range(len(shared.kinds))]
        self.base: dict[int, Fields] = dict(shared.base)
        self.values: dict[Column, dict[int, Any]] = {}
        self.sums: dict[Column, dict[int, Any]] = {}
        self.world: dict[Column, Any] = {}
        self.node: Node

    def write(self, column: Column, kind: int, x: Real) -> None:
        """Let the bodies of a kind write x to a column of their row."""
        self.values.setdefault(column, {})[kind] = x
        if isinstance(x, Node) and x.tracer is self.tracers[kind]:
            self.tracers[kind].columns.setdefault(x.index, column)

    def close(self) -> None:
        """Make the loop a node of the enclosing trace, once its step has been traced."""
        shared = self.shared
        shared.base = self.base
        self.world = {column: shared.outer.lift(x) for column, x in self.world.items()}
        self.node = shared.outer.make("loop", (), self)
        shared.sweeps.append(self)


class Shared:
    """The state that the forests of one trace share: robot, kinds of bodies, vectors, sweeps."""

    def __init__(self, robot: Robot) -> None:
        outer = current()
        assert outer is not None
        self.outer, self.robot = outer, robot
        parents = np.array([p if p >= 0 else robot.nb for p in robot.parents], np.int64)
        self.rows = Rows(np.arange(robot.nb), parents)
        self.vectors: list[tuple[Node, list[Any], Array, Rows]] = []
        """(array, its scalars, the offset of each row's part, the rows)."""
        self.widths: dict[int, Sequence[int]] = {}
        """How many numbers a body of each kind reads of a vector, if not one for each freedom."""
        self.kinds = [Kind(self, members) for members in _kinds(robot)]
        self.kind_of, self.rank = np.empty((2, robot.nb), np.int64)
        for c, kind in enumerate(self.kinds):
            self.kind_of[kind.members] = c
            self.rank[kind.members] = np.arange(len(kind.members))
        self.start: Callable[[SweepTracer, Body, Hinge], Fields]
        """Gives the fields that every record has from the start."""
        self.base: dict[int, Fields] = {}
        """These fields, for each kind."""
        self.sweeps: list[LoopedSweep] = []
        self.picks: list[tuple[Node, LoopedSweep, int, Column]] = []

    def vector(
        self, scalars: Iterable[Any], offsets: Sequence[int] | Array, rows: Rows | None = None
    ) -> int:
        """Add a vector of which each row reads a part, from its offset on; the vector's number."""
        values = [plain(x) for x in scalars]
        places = np.asarray(offsets, np.int64)
        self.vectors.append((array_of(values), values, places, rows or self.rows))
        return len(self.vectors) - 1

    def part(self, tracer: SweepTracer, number: int, size: int) -> Array:
        """A body's part of a vector, as its round reads it; a constant if all scalars are equal."""
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
    """The bodies grouped by kind, as finely as `KINDS` allows: by equal numbers, else by equal
    axes, else by the kind of hinge."""
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
    """Whether the bodies have at most `KINDS` different sets of numbers, so that within each kind
    all numbers are constants."""
    different: set[Any] = set()
    for body, h in zip(robot.bodies, robot.hinges, strict=True):
        different.add((h.kind.name, *scalars_of(_numbers(body, h))))
        if len(different) > KINDS:
            return False
    return True
