"""Sweeps: the only loops over bodies in the project.

A step sees a body and its neighbours' records, never an index and never the question whether there
is a parent: the world has a record too. It returns the new fields of the body's record.

    outward(step, x, **world)   step(k, parent)     base → tip, values scattered to children
    inward(step, x)             step(k, children)   tip → base, values gathered from children
    local(step, x)              step(k)             each body by itself
    walk(x, body, value)        from one body to the root, φ at each step
    climb(x, begin)             the blocks of H φ X for X block diagonal
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model import Hinge, ModelError, Robot
from phipsi.spatial import Force, Motion
from phipsi.sweeps.log import note


class Record:
    """What is known of one body so far, by name."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)

    def extended(self, fields: dict[str, Any]) -> Record:
        """A new record with more fields."""
        return Record({**self.__dict__, **fields})

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"no sweep has given body {self.__dict__.get('name', WORLD)!r} a field {name!r}; "
            f"known are {', '.join(self.__dict__)}"
        )


@dataclass(frozen=True)
class Forest:
    """The records of all bodies, base to tip, and who hangs on whom."""

    robot: Robot
    records: tuple[Record, ...]

    def extended(self, fields: Iterable[dict[str, Any]]) -> Forest:
        """The same forest with more fields in every record."""
        both = zip(self.records, fields, strict=True)
        return Forest(self.robot, tuple(record.extended(new) for record, new in both))

    def given(self, **vectors: Any) -> Forest:
        """The same forest with each body's part of further joint vectors (nv,)."""
        parts = (
            {name: np.asarray(x)[k.hinge.v] for name, x in vectors.items()} for k in self.records
        )
        return self.extended(parts)

    def body(self, name: str) -> Record:
        """The record of one body."""
        return self.records[self.robot.body_index(name)]


def forest(robot: Robot, q: Any, *, external: Any = None, **vectors: Any) -> Forest:
    """The records every algorithm starts from.

    Each body k gets `name`, `M` (spatial inertia), `A` (armature), `hinge`, `phi` and `H` at q,
    `f_ext` (external force on it), its part of every joint vector given by name (`v`, `tau`, …),
    and with `v` also `H_rate` (the map w → Ḣ* w).
    """
    forces = external_forces(robot, external)
    records = []
    for body, h, force in zip(robot.bodies, robot.hinges, forces, strict=True):
        own = np.asarray(q)[h.q]
        fields: dict[str, Any] = {
            "name": body.name, "hinge": h, "q": own, "M": body.inertia, "f_ext": force,
            "A": np.array(h.armature, dtype=object),
            "phi": h.placement @ h.kind.pose(h, own), "H": h.kind.map(h, own),
        }  # fmt: skip
        for name, vector in vectors.items():
            fields[name] = np.asarray(vector)[h.v]
        if "v" in vectors:
            fields["H_rate"] = partial(h.kind.rate, h, own, fields["v"])
        records.append(Record(fields))
    return Forest(robot, tuple(records))


def external_forces(robot: Robot, external: Any) -> list[Force]:
    """The external force on each body, in its own frame, from {frame: wrench} or (nb, 6)."""
    if external is None:
        return [Force.zero()] * robot.nb
    if not isinstance(external, Mapping):
        return [Force.of(row) for row in np.asarray(external)]
    forces = [Force.zero()] * robot.nb
    for name, wrench in external.items():
        frame = robot.frame(name)
        if frame.body == WORLD:
            raise ModelError(f"external force on {name!r}: that frame is fixed to the world")
        if len(wrench) != 6:
            raise ValueError(f"external force on {name!r} needs 6 numbers [moment; force]")
        i = robot.body_index(frame.body)
        forces[i] = forces[i] + frame.placement @ Force.of(wrench)
    return forces


def outward(step: Callable[[Any, Any], dict[str, Any]], x: Forest, **world: Any) -> Forest:
    """Base to tip: step(k, parent) sees the parent's new fields; a root sees the world's."""
    note("outward", step)
    root = Record(world)
    done: list[Record] = []
    fields: list[dict[str, Any]] = []
    for k, p in zip(x.records, x.robot.parents, strict=True):
        new = step(k, done[p] if p >= 0 else root)
        done.append(k.extended(new))
        fields.append(new)
    return x.extended(fields)


def inward(step: Callable[[Any, list[Any]], dict[str, Any]], x: Forest) -> Forest:
    """Tip to base: step(k, children) sees the children's new fields."""
    note("inward", step)
    waiting: list[list[Record]] = [[] for _ in x.records]
    fields: list[dict[str, Any]] = [{}] * len(x.records)
    for i in reversed(range(len(x.records))):
        fields[i] = step(x.records[i], waiting[i][::-1])
        if x.robot.parents[i] >= 0:
            waiting[x.robot.parents[i]].append(x.records[i].extended(fields[i]))
    return x.extended(fields)


def local(step: Callable[[Any], dict[str, Any]], x: Forest) -> Forest:
    """Each body by itself: step(k)."""
    note("local", step)
    return x.extended([step(k) for k in x.records])


Blocks = list[tuple[Hinge, Hinge, Any]]


def walk(x: Forest, body: str, value: Any) -> Iterator[tuple[Any, Any]]:
    """From a body to the root: (k, φ(k, body) value) for every body k on the way.

    The value is whatever φ can multiply: forces, a basis of forces, a transform.
    """
    i = x.robot.body_index(body)
    while i >= 0:
        k = x.records[i]
        yield k, value
        value, i = k.phi @ value, x.robot.parents[i]


def climb(x: Forest, begin: Callable[[Any], Any]) -> Blocks:
    """The blocks of H φ X for X block diagonal, X(k) = begin(k): (row hinge, column hinge, block).

    Each X(k) is carried from body k to the root by φ and read by H at every hinge: O(N · depth).
    """
    note("climb", begin)
    return [
        (k.hinge, start.hinge, k.H @ value)
        for start in x.records
        for k, value in walk(x, start.name, begin(start))
    ]


def symmetric(x: Forest, blocks: Blocks) -> Any:
    """The symmetric joint-space matrix (nv, nv) with the given blocks on and above its diagonal."""
    out = np.full((x.robot.nv, x.robot.nv), 0.0, object)
    for row, column, block in blocks:
        out[row.v, column.v] = block
    upper = np.triu(np.ones(out.shape, bool))
    return np.where(upper, out, out.T)


def gather(x: Forest, field: str) -> Any:
    """The joint-space vector (nv,) of a field that has one number per freedom."""
    out = np.full(x.robot.nv, 0.0, object)
    for k in x.records:
        out[k.hinge.v] = getattr(k, field)
    return out


def stack(x: Forest, field: str, shape: tuple[int, ...] = (6,)) -> Any:
    """The per-body array (nb, *shape) of a field: a Motion or Force (6,), or anything with a
    `matrix` of that shape."""
    out = np.full((x.robot.nb, *shape), 0.0, object)
    for row, k in zip(out, x.records, strict=True):
        value = getattr(k, field)
        row[...] = value.array if isinstance(value, (Motion, Force)) else value.matrix
    return out


def total(x: Forest, field: str, zero: Any) -> Any:
    """The sum of a field over all bodies."""
    return sum((getattr(k, field) for k in x.records), zero)
