"""Records in looped sweeps: of a body inside a step, and of one body after the sweeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from phipsi.compile import Node, tracing
from phipsi.sweeps.forest import Fields, Record
from phipsi.sweeps.looped.scalars import map_scalars, scalars_of
from phipsi.sweeps.looped.traces import Column, LoopedSweep, Shared, SweepTracer, plain


@dataclass(eq=False)
class LoopedFields:
    """The fields of the bodies so far: indices of joint vectors, and values for each kind."""

    shared: Shared
    vectors: Mapping[str, int]
    fields: Mapping[str, list[Any]]

    def base(self, sweep: LoopedSweep, kind: int) -> Fields:
        """The fields that every body has from the start: its own numbers, φ and H at q, …"""
        if kind not in sweep.base:
            tracer = sweep.tracers[kind]
            with tracing(tracer):
                body, hinge = self.shared.kinds[kind].body_and_hinge(tracer.read)
                sweep.base[kind] = self.shared.start(tracer, body, hinge)
        return sweep.base[kind]

    def traced(
        self, sweep: LoopedSweep, step: Callable[[LoopedRecord, SweepTracer], Fields]
    ) -> list[Fields]:
        """The new fields that step(k, tracer) gives, for each kind; they are written to columns of
        the sweep."""
        found: list[Fields] = []
        for kind, tracer in enumerate(sweep.tracers):
            with tracing(tracer):
                new = step(LoopedRecord(sweep, kind, self, {}), tracer)
                new = {name: map_scalars(value, plain) for name, value in new.items()}
            for name, value in new.items():
                for j, x in enumerate(scalars_of(value)):
                    sweep.write(Column("field", name, j), kind, x)
            found.append(new)
        return found


class LoopedRecord(Record):
    """The record of a body inside a step: values of this sweep's trace, read or computed again."""

    def __init__(
        self, sweep: LoopedSweep, kind: int, x: LoopedFields, new: Mapping[str, Any]
    ) -> None:
        super().__init__(dict(new))
        self._sweep, self._kind, self._x = sweep, kind, x

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        tracer, shared = self._sweep.tracers[self._kind], self._sweep.shared
        if name in self._x.vectors:
            size = shared.kinds[self._kind].hinge.kind.nv
            value: Any = shared.part(tracer, self._x.vectors[name], size)
        elif name in self._x.fields:
            value = self._x.fields[name][self._kind]
        else:
            value = self._x.base(self._sweep, self._kind).get(name)
        if value is None:
            return super().__getattr__(name)
        value = map_scalars(value, lambda x: plain(tracer.lift(x)) if isinstance(x, Node) else x)
        self.__dict__[name] = value
        return value

    def extended(self, fields: dict[str, Any]) -> LoopedRecord:
        """A new record with more fields."""
        return LoopedRecord(self._sweep, self._kind, self._x, {**self._known(), **fields})


class BodyRecord(Record):
    """The record of one body after sweeps, as values of the enclosing trace."""

    def __init__(self, x: LoopedFields, i: int, new: Mapping[str, Any]) -> None:
        super().__init__(dict(new))
        self._x, self._i = x, i

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        x, i = self._x, self._i
        shared, kind = x.shared, int(x.shared.kind_of[i])
        if name == "hinge":
            return shared.robot.hinges[i]
        if name == "name":
            return shared.robot.bodies[i].name
        if name in x.vectors:
            _, scalars, offsets = shared.vectors[x.vectors[name]]
            v = shared.robot.hinges[i].v
            return np.array(scalars[offsets[i] : offsets[i] + v.stop - v.start], object)
        if name in x.fields:
            value = x.fields[name][kind]
        else:
            if kind not in shared.base:
                sweep = LoopedSweep(shared)
                x.traced(sweep, lambda k, _: {"phi": k.phi})
                sweep.close()
            value = shared.base[kind].get(name)
        if value is None:
            return super().__getattr__(name)
        value = map_scalars(value, self._outside)
        self.__dict__[name] = value
        return value

    def _outside(self, x: Any) -> Any:
        """A scalar of a sweep's trace for this body, as a scalar of the enclosing trace."""
        if not isinstance(x, Node) or not isinstance(x.tracer, SweepTracer):
            return x
        shared, i = self._x.shared, self._i
        if x.op == "const":
            return x.value
        if x.op != "input":
            return shared.pick(x.tracer.sweep, i, x.tracer.kept(x))
        match x.tracer.key(x):
            case ("vector", number, j):
                _, scalars, offsets = shared.vectors[number]
                return scalars[offsets[i] + j]
            case ("table", j):
                return shared.kinds[int(shared.kind_of[i])].columns[j][shared.rank[i]]
            case ("own", sweep, column):
                return shared.pick(sweep, i, column)
            case ("parent", sweep, column):
                return shared.pick(sweep, int(sweep.sources[i]), column)
            case ("fixed", node):
                return node

    def extended(self, fields: dict[str, Any]) -> BodyRecord:
        """A new record with more fields."""
        return BodyRecord(self._x, self._i, {**self._known(), **fields})
