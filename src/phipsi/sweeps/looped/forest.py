"""The forest of looped sweeps: each sweep traces its step once for each kind of body."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from phipsi.compile import Node
from phipsi.model import Body, Hinge, Robot
from phipsi.spatial import Force, ForceBasis
from phipsi.sweeps.forest import (
    Blocks,
    Children,
    Entry,
    Fields,
    Forest,
    InwardStep,
    LocalStep,
    OutwardStep,
    Record,
    Summand,
    added,
    recorded,
)
from phipsi.sweeps.looped.memory import lay_out
from phipsi.sweeps.looped.records import BodyRecord, LoopedFields, LoopedRecord
from phipsi.sweeps.looped.scalars import map_scalars, scalars_of, with_scalars
from phipsi.sweeps.looped.traces import Column, LoopedSweep, Rows, Shared, SweepTracer, plain
from phipsi.typing import (
    Array,
    ConfigurationLike,
    JointMatrix,
    JointVector,
    JointVectorLike,
    Real,
)

T = TypeVar("T")


Likes = list[tuple[Any, list[bool]]]
"""For each message of a step an example of it, and which of its scalars are not always zero."""


class LoopedChildren(Children):
    """The children of a body in a loop: their sums are read from the row of the body.

    `likes` describes the messages of the previous trace of the step (none at first): their
    structure, and which of their scalars are not always zero. The messages that the step asks for
    are collected in `messages`.
    """

    def __init__(self, tracer: SweepTracer, likes: Likes) -> None:
        self._tracer, self._likes = tracer, likes
        self.messages: list[Callable[[Record], Any]] = []

    def sum(self, message: Callable[[Record], Summand], start: Summand) -> Summand:
        """start + Σ message(c) over the children c."""
        n = len(self.messages)
        self.messages.append(message)
        if n >= len(self._likes):
            # without children a massless body divides by zero, which NumPy's floats allow
            return map_scalars(start, lambda x: x if isinstance(x, Node) else np.float64(x))
        like, varies = self._likes[n]
        sweep = self._tracer.sweep
        scalars = (
            self._tracer.read(("own", sweep, Column("sum", n, j))) if varied else 0.0
            for j, varied in enumerate(varies)
        )
        return start + with_scalars(like, scalars)


class LoopedForest(LoopedFields, Forest):
    """The bodies of a robot in looped sweeps, with fields for each kind of body."""

    def __init__(
        self,
        shared: Shared,
        rows: Rows,
        vectors: Mapping[str, int],
        fields: Mapping[str, list[Any]],
    ) -> None:
        LoopedFields.__init__(self, shared, rows, vectors, fields)
        self.robot = shared.robot
        self.parents = tuple(np.where(rows.parents < rows.size, rows.parents, -1).tolist())

    @classmethod
    def of(
        cls, robot: Robot, q: ConfigurationLike, vectors: Mapping[str, JointVectorLike]
    ) -> LoopedForest:
        """The forest that every algorithm starts from."""
        shared = Shared(robot)
        shared.outer.unfinished.append(partial(lay_out, shared))
        at_q = shared.vector(np.asarray(q).reshape(-1), [h.q.start for h in robot.hinges])
        x = cls(shared, shared.rows, {}, {}).given(**vectors)

        def start(tracer: SweepTracer, body: Body, hinge: Hinge) -> Fields:
            def part(vector: int, size: int) -> Array:
                return shared.part(tracer, vector, size)

            parts = {name: part(number, hinge.kind.nv) for name, number in x.vectors.items()}
            return recorded(body, hinge, part(at_q, hinge.kind.nq), parts)

        shared.start = start
        return x

    @property
    def records(self) -> tuple[Record, ...]:  # pyright: ignore[reportIncompatibleVariableOverride] # a field there, computed here
        """The record of each body, as values of the enclosing trace."""
        return tuple(BodyRecord(self, i, {}) for i in range(self.rows.size))

    def body(self, name: str) -> Record:
        """The record of one body."""
        return BodyRecord(self, self.robot.body_index(name), {})

    def given(self, **vectors: JointVectorLike) -> LoopedForest:
        """The same forest with each body's part of further joint vectors (nv,)."""
        starts = [h.v.start for h in self.robot.hinges]
        new = {n: self.shared.vector(np.asarray(x).reshape(-1), starts) for n, x in vectors.items()}
        fields = {name: value for name, value in self.fields.items() if name not in new}
        return LoopedForest(self.shared, self.rows, {**self.vectors, **new}, fields)

    def holding(self, **values: Sequence[Any]) -> LoopedForest:
        """The same forest with a value of each body; values that bodies share are stored once."""
        numbers = {name: (x[0], *self._stored(x)) for name, x in values.items()}

        def read(k: Record, tracer: SweepTracer) -> Fields:
            def scalar(number: int, x: T, j: int | None) -> T | Node:
                return x if j is None else tracer.read(("vector", number, j))

            return {
                name: with_scalars(like, (scalar(number, *one) for one in scalars))
                for name, (like, number, scalars) in numbers.items()
            }

        sweep = LoopedSweep(self.shared, self.rows)
        return self._closed(sweep, self.traced(sweep, read))

    def _stored(self, values: Sequence[Any]) -> tuple[int, list[tuple[Any, int | None]]]:
        """The number of a vector with the scalars that differ between the values of bodies; and for
        each scalar of a value (the scalar of the first body, its place in a body's part of the
        vector, or None if all bodies have the same)."""
        different = {id(x): x for x in values}
        which = {key: i for i, key in enumerate(different)}
        columns = [*zip(*map(scalars_of, different.values()), strict=True)]
        keys = [tuple(id(x) if isinstance(x, Node) else x for x in column) for column in columns]
        place: dict[Any, int] = {}
        for key, column in zip(keys, columns, strict=True):
            if len(set(key)) > 1 or isinstance(column[0], Node):
                place.setdefault(key, len(place))
        parts = [columns[keys.index(key)] for key in place]
        offsets = len(place) * np.array([which[id(x)] for x in values])
        scalars = [x for part in zip(*parts, strict=True) for x in part]
        number = self.shared.vector(scalars, offsets, self.rows)
        return number, [(c[0], place.get(key)) for c, key in zip(columns, keys, strict=True)]

    # ---- sweeps --------------------------------------------------------------------------------

    def outward(self, step: OutwardStep, world: Fields) -> Forest:
        """Base to tip: step(k, parent); a root sees the world's fields."""
        return self._along(lambda: LoopedSweep(self.shared, self.rows), step, world)

    def along_root_path(self, step: Callable[[Record, T], Fields], body: str, value: T) -> Forest:
        """From a body to the root: step(k, φ(k, body) value)."""
        way = [self.robot.body_index(body)]
        while way[-1] >= 0:
            way.append(self.robot.parents[way[-1]])
        way.pop()

        sources = np.full(self.robot.nb, self.robot.nb)
        sources[way[1:]] = way[:-1]

        def carry(k: Record, outboard: Record) -> Fields:
            return {**step(k, outboard.carried), "carried": k.phi @ outboard.carried}

        swept = self._from(np.array(way), sources, carry, {"carried": value}) if way else self
        on = set(way)
        records = (BodyRecord(swept if i in on else self, i, {}) for i in range(self.robot.nb))
        return Forest(self.robot, tuple(records), self.parents)

    # ---- copies of parts of the forest ---------------------------------------------------------

    def _copied(
        self, name: str, widths: Sequence[int], parts: Sequence[Sequence[int]], units: Sequence[int]
    ) -> LoopedForest:
        """Copies of parts of the forest, one after the other, each the numbers of bodies and of all
        their ancestors in ascending order. The vector `name`, which has widths[kind] numbers, is
        zero except for the last body of a copy, where it is the unit vector of a number."""
        self.settle()
        bodies: list[int] = []
        parents: list[int] = []
        size = sum(map(len, parts))
        offsets = np.zeros(size, np.int64)
        longest = max(widths, default=0)
        for part, unit in zip(parts, units, strict=True):
            row = {-1: size} | {body: row for row, body in enumerate(part, len(bodies))}
            parents += (row[self.robot.parents[body]] for body in part)
            bodies += part
            offsets[len(bodies) - 1] = longest - unit
        rows = Rows(np.array(bodies, np.int64), np.array(parents, np.int64))
        numbers = np.zeros(2 * longest + 1)
        numbers[longest] = 1.0
        number = self.shared.vector(numbers.tolist(), offsets, rows)
        self.shared.widths[number] = widths
        return LoopedForest(self.shared, rows, {**self.vectors, name: number}, self.fields)

    def blocks_to_root(self, begin: Callable[[Record], ForceBasis]) -> Blocks:
        """The blocks of H φ X for X(k) = begin(k): a copy of the path to the root for each column
        of each X."""
        start = self.local(lambda k: {"X": begin(k)})
        widths = [len(X.columns) for X in start.fields["X"]]
        width: list[int] = [widths[int(kind)] for kind in self.shared.kind_of]
        paths: list[list[int]] = []
        for i, p in enumerate(self.parents):
            paths.append([*(paths[p] if p >= 0 else ()), i])
        parts = [path for path, n in zip(paths, width, strict=True) for _ in range(n)]
        copies = start._copied("unit", widths, parts, [j for n in width for j in range(n)])
        rows = np.arange(copies.rows.size)
        outboard = np.full(rows.size, rows.size)
        inner = copies.rows.parents < rows.size
        outboard[copies.rows.parents[inner]] = rows[inner]

        def carry(k: Record, outboard: Record) -> Fields:
            z = outboard.carried + k.X @ k.unit
            return {"carried": k.phi @ z, "block": k.H @ z}

        swept = copies._from(rows[::-1], outboard, carry, {"carried": Force.zero()})
        found = iter(swept.records)
        hinges = self.robot.hinges
        blocks: Blocks = []
        for i, path in enumerate(paths):
            columns = [[next(found).block for _ in path] for _ in range(width[i])]
            for k, own in zip(path, zip(*columns, strict=True), strict=True):
                blocks.append((hinges[k], hinges[i], np.stack(own, axis=1)))
        return blocks

    def reciprocal(
        self,
        solve: Callable[[Forest], Forest],
        common: Callable[[Record, Record], Real],
        p: JointVector,
        entry: Entry,
    ) -> JointMatrix:
        """The matrix whose column j has the field `y` of a copy of the bodies up to hinge j in its
        tree, whose vector `x` is the unit vector of the column. Entries of two branches are in the
        copy of the later hinge, so that `common` is not needed."""
        root: list[int] = []
        for i, parent in enumerate(self.parents):
            root.append(root[parent] if parent >= 0 else i)
        hinges, nv = self.robot.hinges, self.robot.nv
        widths = [kind.hinge.kind.nv for kind in self.shared.kinds]
        before = [[k for k in range(i + 1) if root[k] == root[i]] for i in range(len(root))]
        parts = [part for part, h in zip(before, hinges, strict=True) for _ in range(h.kind.nv)]
        units = [j for h in hinges for j in range(h.kind.nv)]
        copies = solve(self.given(p=p)._copied("x", widths, parts, units))
        assert isinstance(copies, LoopedForest)
        rows = np.arange(copies.rows.size)
        lengths = np.array([len(part) for part in parts], np.int64)
        last = np.repeat(np.cumsum(lengths) - 1, lengths)

        def of_column(k: Record, last: Record) -> Fields:
            """p of the column, which is that of the last body along its unit vector"""
            return {"column": last.column + k.p @ k.x}

        def both(k: Record) -> Fields:
            """The entries (i, j) and (j, i)"""
            return {"upper": entry(k.p, k.column, k.y), "lower": entry(k.column, k.p, k.y)}

        sources = np.where(rows == last, rows.size, last)
        copies = copies._from(rows[::-1], sources, of_column, {"column": 0.0}).local(both)
        found = iter(copies.records)
        out = np.full((nv, nv), 0.0, object)
        for column, part in enumerate(parts):
            for k, own in zip(part, found, strict=False):
                out[hinges[k].v, column], out[column, hinges[k].v] = own.upper, own.lower
        return out

    def _from(self, order: Array, sources: Array, step: OutwardStep, world: Fields) -> LoopedForest:
        """The forest after a sweep in an order whose step sees the fields of the rows `sources`."""

        def sweep() -> LoopedSweep:
            loop = LoopedSweep(self.shared, self.rows, order)
            loop.sources = sources
            return loop

        return self._along(sweep, step, world)

    def over_siblings(self, message: LocalStep, zero: Fields) -> Forest:
        """The sums of message(c) over the siblings c of each body: those before it and after it."""
        nb, last = self.robot.nb, dict[int, int]()
        if len(set(self.parents)) == nb:  # a chain: no body has siblings
            return self._with({name: [x] * len(self.shared.kinds) for name, x in zero.items()})
        previous, following = np.full((2, nb + 1), nb)
        for i, p in enumerate(self.parents):
            previous[i] = last.get(p, nb)
            following[previous[i]] = last[p] = i
        messages = self.local(message)

        def before(order: Array, sources: Array) -> list[Any]:
            def add(k: Record, sibling: Record) -> Fields:
                own = {name: getattr(k, name) for name in zero}
                return {"before": sibling.sums, "sums": added(sibling.sums, own)}

            return messages._from(order, sources, add, {"sums": zero}).fields["before"]

        bodies = np.arange(nb)
        sides = {"left": before(bodies, previous), "right": before(bodies[::-1], following)}
        both = self._with(sides).local(lambda k: added(k.left, k.right))
        return self._with({name: both.fields[name] for name in zero})

    def _along(
        self,
        new: Callable[[], LoopedSweep],
        step: OutwardStep,
        world: Fields,
    ) -> LoopedForest:
        """The forest after a sweep whose step sees the fields of the previous body, or of the world
        at first; a scalar that has the world's constant for every body stays a constant."""
        scalars = {
            Column("field", name, j): x for name, value in world.items()
            for j, x in enumerate(scalars_of(value))
        }  # fmt: skip
        varies = {column: isinstance(x, Node) for column, x in scalars.items()}
        while True:
            sweep = new()

            def seen(tracer: SweepTracer, name: str, sweep: LoopedSweep = sweep) -> Any:
                own = (c for c in scalars if c.name == name)
                parts = (
                    tracer.read(("parent", sweep, c)) if varies[c] else scalars[c] for c in own
                )
                return with_scalars(world[name], parts)

            fields = self.traced(
                sweep, lambda k, t: step(k, Record({name: seen(t, name) for name in world}))
            )
            found = [c for c in scalars if not varies[c] and _differs(sweep, c, scalars[c])]
            if not found:
                sweep.world = {c: x for c, x in scalars.items() if varies[c]}
                return self._closed(sweep, fields)
            varies.update(dict.fromkeys(found, True))

    def inward(self, step: InwardStep) -> Forest:
        """Tip to base; children add their messages to the row of their parent."""
        likes: Likes = []
        while True:
            sweep = LoopedSweep(self.shared, self.rows, range(self.rows.size)[::-1])
            sent: list[list[Any]] = []

            def add(
                k: LoopedRecord, t: SweepTracer, sent: list[Any] = sent, likes: Likes = likes
            ) -> Fields:
                children = LoopedChildren(t, likes)
                new = step(k, children)
                whole = k.extended(new)
                sent.append([message(whole) for message in children.messages])
                return new

            with np.errstate(all="ignore"):
                fields = self.traced(sweep, add)
            now = [_together(messages) for messages in zip(*sent, strict=True)]
            for kind, messages in enumerate(sent):
                for n, message in enumerate(messages):
                    for j, x in enumerate(scalars_of(message)):
                        sweep.sums.setdefault(Column("sum", n, j), {})[kind] = x
            if [varies for _, varies in now] == [varies for _, varies in likes]:
                return self._closed(sweep, fields)
            likes = now

    def _closed(self, sweep: LoopedSweep, fields: list[dict[str, Any]]) -> LoopedForest:
        """The forest with the new fields of a sweep, given for each kind."""
        sweep.close()
        names = {name for new in fields for name in new}
        return self._with({name: [new.get(name) for new in fields] for name in names})

    def _with(self, values: Mapping[str, list[Any]]) -> LoopedForest:
        """The forest with further fields, given for each kind."""
        vectors = {name: number for name, number in self.vectors.items() if name not in values}
        return LoopedForest(self.shared, self.rows, vectors, {**self.fields, **values})

    def local(self, step: LocalStep) -> LoopedForest:
        """Each body by itself."""
        sweep = LoopedSweep(self.shared, self.rows)
        return self._closed(sweep, self.traced(sweep, lambda k, t: step(k)))

    def total(self, field: str, zero: Summand) -> Summand:
        """The sum of a field over all bodies."""
        sweep = LoopedSweep(self.shared, self.rows)
        sweep.targets = np.full(self.rows.size, self.rows.size)
        values = self.traced(sweep, lambda k, t: {"part": zero + getattr(k, field)})
        for kind, new in enumerate(values):
            for j, x in enumerate(scalars_of(new["part"])):
                sweep.sums.setdefault(Column("sum", 0, j), {})[kind] = x
        sweep.close()
        like, row = values[0]["part"], self.rows.size
        columns = (Column("sum", 0, j) for j in range(len(scalars_of(like))))
        return with_scalars(like, (self.shared.pick(sweep, row, column) for column in columns))


def _differs(sweep: LoopedSweep, column: Column, number: object) -> bool:
    """Whether bodies of some kind write another value than this number to a column."""
    values = [plain(x) for x in sweep.values.get(column, {}).values()]
    return len(values) < len(sweep.tracers) or any(
        isinstance(x, Node) or x != number for x in values
    )


def _together(messages: Iterable[T]) -> tuple[T, list[bool]]:
    """Of a message of each kind of body: the first, and which scalars are not zero in all."""
    parts = [[plain(x) for x in scalars_of(m)] for m in messages]
    varies = [
        any(isinstance(x, Node) or x != 0.0 for x in column) for column in zip(*parts, strict=True)
    ]
    return next(iter(messages)), varies
