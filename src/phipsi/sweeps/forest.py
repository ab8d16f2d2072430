"""The forest: a record of fields for each body, to which sweeps add."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model import Body, Hinge, ModelError, Robot
from phipsi.spatial import Force, ForceBasis, Motion, Transform
from phipsi.typing import (
    Array,
    ExternalForces,
    JointMatrix,
    JointVector,
    JointVectorLike,
    Real,
    SpatialVectorsLike,
)


class Addable(Protocol):
    """A number, an array or a spatial quantity: anything that can be added to its like."""

    def __add__(self, other: Any, /) -> Any: ...


T = TypeVar("T")
Summand = TypeVar("Summand", bound=Addable)
Vector = TypeVar("Vector", bound=Force | Motion)


class Record:
    """The fields of one body that sweeps have computed so far, as attributes."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)

    def extended(self, fields: dict[str, Any]) -> Record:
        """A new record with more fields."""
        return Record({**self.__dict__, **fields})

    def _known(self) -> dict[str, Any]:
        return {name: x for name, x in self.__dict__.items() if not name.startswith("_")}

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"no sweep has given body {self.__dict__.get('name', WORLD)!r} a field {name!r}; "
            f"known are {', '.join(self.__dict__)}"
        )


class Children:
    """The children of a body, as an inward step sees them: something to sum over."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records

    def sum(self, message: Callable[[Record], Summand], start: Summand) -> Summand:
        """start + Σ message(c) over the children c."""
        for c in self._records:
            start = start + message(c)
        return start


Fields = dict[str, Any]
"""New fields of a record, by name."""
OutwardStep = Callable[[Record, Record], Fields]
"""step(k, parent) of a body k."""
InwardStep = Callable[[Record, Children], Fields]
"""step(k, children) of a body k."""
LocalStep = Callable[[Record], Fields]
"""step(k) of a body k."""
Blocks = list[tuple[Hinge, Hinge, Array]]
"""Blocks of a matrix: (hinge of the rows, hinge of the columns, block)."""
Entry = Callable[[Array, Array, Array], Array]
"""entry(p_i, p_j, S_ij): entries of a matrix, from joint vectors p of the rows and columns and the
entries of a symmetric one."""


@dataclass(eq=False)
class Forest:
    """The records of all bodies, base to tip, and the parent of each."""

    robot: Robot
    records: tuple[Record, ...]
    parents: tuple[int, ...]
    """For each record the number of its parent's, −1 for the world."""

    def extended(self, fields: Iterable[dict[str, Any]]) -> Forest:
        """The same forest with more fields in every record."""
        both = zip(self.records, fields, strict=True)
        records = tuple(record.extended(new) for record, new in both)
        return Forest(self.robot, records, self.parents)

    def given(self, **vectors: JointVectorLike) -> Forest:
        """The same forest with each body's part of further joint vectors (nv,)."""
        parts = (
            {name: np.asarray(x)[k.hinge.v] for name, x in vectors.items()} for k in self.records
        )
        return self.extended(parts)

    def placed(self, kind: type[Vector], **rows: SpatialVectorsLike) -> Forest:
        """The same forest with a force or motion of each body, from rows (nb, 6) in the frames that
        users see (`Body.origin`)."""
        return self.carrying(**{name: located(self.robot, kind, x) for name, x in rows.items()})

    def carrying(self, **vectors: Sequence[Force | Motion]) -> Forest:
        """The same forest with a force or motion of each body, in its own frame."""
        return self.holding(**vectors)

    def holding(self, **values: Sequence[Any]) -> Forest:
        """The same forest with a value of each body, such as an inertia: of one type for all, and
        taken to be mostly the same numbers."""
        numbers = (self.robot.body_index(k.name) for k in self.records)
        return self.extended({name: x[i] for name, x in values.items()} for i in numbers)

    def chain(self, i: int) -> Forest:
        """The forest of the bodies between the world and the i-th, which is the last."""
        way: list[Record] = []
        while i >= 0:
            way.append(self.records[i])
            i = self.parents[i]
        return Forest(self.robot, tuple(reversed(way)), tuple(range(-1, len(way) - 1)))

    def outward(self, step: OutwardStep, world: Fields) -> Forest:
        """Base to tip: step(k, parent); a root sees the world's fields."""
        root = Record(world)
        done: list[Record] = []
        fields: list[dict[str, Any]] = []
        for k, p in zip(self.records, self.parents, strict=True):
            new = step(k, done[p] if p >= 0 else root)
            done.append(k.extended(new))
            fields.append(new)
        return self.extended(fields)

    def inward(self, step: InwardStep) -> Forest:
        """Tip to base: step(k, children)."""
        waiting: list[list[Record]] = [[] for _ in self.records]
        fields: list[dict[str, Any]] = [{}] * len(self.records)
        for i in reversed(range(len(self.records))):
            fields[i] = step(self.records[i], Children(waiting[i][::-1]))
            if self.parents[i] >= 0:
                waiting[self.parents[i]].append(self.records[i].extended(fields[i]))
        return self.extended(fields)

    def local(self, step: LocalStep) -> Forest:
        """Each body by itself: step(k)."""
        return self.extended([step(k) for k in self.records])

    def over_siblings(self, message: LocalStep, zero: Fields) -> Forest:
        """The sums of message(c) over the siblings c of each body: those before it and after it."""
        messages = [message(k) for k in self.records]

        def before(order: Sequence[int]) -> list[dict[str, Any]]:
            sums: dict[int, dict[str, Any]] = defaultdict(lambda: zero)
            seen = [zero] * len(messages)
            for i in order:
                p = self.parents[i]
                seen[i], sums[p] = sums[p], added(sums[p], messages[i])
            return seen

        bodies = range(len(messages))
        return self.extended(map(added, before(bodies), before(bodies[::-1])))

    def along_root_path(self, step: Callable[[Record, T], Fields], body: str, value: T) -> Forest:
        """From a body to the root: step(k, φ(k, body) value)."""
        fields: list[dict[str, Any]] = [{}] * len(self.records)
        i = self.robot.body_index(body)
        while i >= 0:
            k = self.records[i]
            fields[i] = step(k, value)
            value, i = k.phi @ value, self.parents[i]
        return self.extended(fields)

    def blocks_to_root(self, begin: Callable[[Record], ForceBasis]) -> Blocks:
        """The blocks of H φ X for X block diagonal, X(k) = begin(k)."""
        blocks: Blocks = []
        for i, start in enumerate(self.records):
            value = begin(start)
            while i >= 0:
                k = self.records[i]
                blocks.append((k.hinge, start.hinge, k.H @ value))
                value, i = k.phi @ value, self.parents[i]
        return blocks

    def reciprocal(
        self,
        solve: Callable[[Forest], Forest],
        common: Callable[[Record, Record], Real],
        p: JointVector,
        entry: Entry,
    ) -> JointMatrix:
        """The matrix of entry(p_i, p_j, S_ij), S symmetric: column j of S is the field `y` of the
        chain to hinge j; its entry for hinges on two branches is common(a, b) at the last body that
        both chains share."""
        out = np.full((self.robot.nv, self.robot.nv), 0.0, object)
        solved: list[tuple[int, Forest]] = []
        for i, k in enumerate(self.records):
            for j in range(k.hinge.v.start, k.hinge.v.stop):
                own = solve(self.chain(i).given(x=np.arange(self.robot.nv) == j))
                for a in own.records:
                    out[a.hinge.v, j] = out[j, a.hinge.v] = a.y
                for other, known in solved:
                    shared = sum(
                        a.name == b.name for a, b in zip(known.records, own.records, strict=False)
                    )
                    if 0 < shared < len(known.records):
                        a, b = known.records[shared - 1], own.records[shared - 1]
                        out[other, j] = out[j, other] = common(a, b)
                solved.append((j, own))
        return entry(p[:, None], p[None, :], out)

    def total(self, field: str, zero: Summand) -> Summand:
        """The sum of a field over all bodies."""
        return sum((getattr(k, field) for k in self.records), zero)

    def body(self, name: str) -> Record:
        """The record of one body."""
        return self.records[self.robot.body_index(name)]

    @property
    def roots(self) -> list[Record]:
        """The records of the bodies that hang on the world."""
        return [k for k, p in zip(self.records, self.parents, strict=True) if p < 0]


def shared_paths(robot: Robot) -> tuple[int, int]:
    """How many pairs of freedoms are on one path to the root, and how many triples with one of them
    on the paths of both others: the work of joint-space matrices and of their products."""
    outboard = np.array([h.kind.nv for h in robot.hinges], int)
    for i, p in reversed(list(enumerate(robot.parents))):
        if p >= 0:
            outboard[p] += outboard[i]
    own = np.array([h.kind.nv for h in robot.hinges], int)
    return int(own @ outboard), int(own @ outboard**2)


def recorded(body: Body, h: Hinge, q: Array, parts: Mapping[str, Array]) -> Fields:
    """The first fields of a body's record, from its coordinates q and parts of joint vectors."""
    fields: dict[str, Any] = {
        "name": body.name, "hinge": h, "q": q, "M": body.inertia, "f_ext": Force.zero(),
        "A": np.array(h.armature, dtype=object),
        "phi": h.placement.followed(h.kind.pose(h, q)), "H": h.kind.map(h, q), **parts,
    }  # fmt: skip
    if "v" in parts:
        fields["H_rate"] = partial(h.kind.rate, h, q, parts["v"])
    return fields


def added(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """The sums of the values of two mappings with the same names, in the order of the first."""
    return {name: x + b[name] for name, x in a.items()}


def located(robot: Robot, kind: type[Vector], rows: SpatialVectorsLike) -> list[Vector]:
    """The force or motion of each body, in its own frame, from rows (nb, 6) in the frames that
    users see (`Body.origin`)."""
    both = zip(robot.bodies, np.asarray(rows), strict=True)
    return [_at_body(body.origin, kind.of(row)) for body, row in both]


def _at_body(placement: Transform, vector: Force | Motion) -> Any:
    """A vector of a frame on a body, in the frame of the body: φ f or φ⁻* V."""
    return placement @ vector if isinstance(vector, Force) else placement.inv.T @ vector


def external_forces(robot: Robot, external: ExternalForces, *, fixed: bool = False) -> list[Force]:
    """The external force on each body, in its own frame, from {frame: wrench} or (nb, 6).

    A force on a frame of the world is ignored if `fixed`, and refused otherwise."""
    if not isinstance(external, Mapping):
        return located(robot, Force, external)
    forces = [Force.zero()] * robot.nb
    for name, wrench in external.items():
        frame = robot.frame(name)
        if frame.body == WORLD and fixed:
            continue
        if frame.body == WORLD:
            raise ModelError(f"external force on {name!r}: that frame is fixed to the world")
        numbers = np.asanyarray(wrench)
        if len(numbers) != 6:
            raise ValueError(f"external force on {name!r} needs 6 numbers [moment; force]")
        i = robot.body_index(frame.body)
        forces[i] = forces[i] + _at_body(frame.placement, Force.of(numbers))
    return forces


def force_bases(robot: Robot, frames: Sequence[str], N: Array) -> list[ForceBasis]:
    """For each body, in its own frame, its part of the columns of forces N (6 frames, m) at named
    frames; forces on frames of the world are left out."""
    nothing = ForceBasis((Force.zero(),) * N.shape[1])
    bases = [nothing] * robot.nb
    for frame, rows in zip(map(robot.frame, frames), np.split(N, len(frames)), strict=True):
        if frame.body != WORLD:
            i = robot.body_index(frame.body)
            own = ForceBasis(tuple(Force.of(column) for column in rows.T))
            bases[i] = bases[i] + frame.placement @ own
    return bases
