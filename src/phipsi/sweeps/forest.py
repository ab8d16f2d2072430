"""The forest: what is known of each body, as sweeps pass over it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model import ModelError, Robot
from phipsi.spatial import Force


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

    @property
    def roots(self) -> list[Record]:
        """The records of the bodies that hang on the world."""
        return [k for k, p in zip(self.records, self.robot.parents, strict=True) if p < 0]


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
