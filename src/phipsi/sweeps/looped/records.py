"""Records in looped sweeps: of a body inside a step, and of one body after the sweeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from phipsi.compile import Node, tracing
from phipsi.sweeps.forest import Fields, Record
from phipsi.sweeps.looped.scalars import map_scalars, scalars_of
from phipsi.sweeps.looped.traces import Column, LoopedSweep, Rows, Shared, SweepTracer, plain


@dataclass(eq=False)
class LoopedFields:
    """The fields of the bodies so far: indices of joint vectors, and values for each kind."""

    shared: Shared
    rows: Rows
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

    def settle(self) -> None:
        """Have these fields traced in a sweep over the robot, if they were not yet."""
        if len(self.shared.base) < len(self.shared.kinds):
            sweep = LoopedSweep(self.shared, self.shared.rows)
            self.traced(sweep, lambda k, _: {"phi": k.phi})
            sweep.close()

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
            number = self._x.vectors[name]
            own = shared.widths.get(number)
            size = shared.kinds[self._kind].hinge.kind.nv if own is None else own[self._kind]
            value: Any = shared.part(tracer, number, size)
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
    """The record of one row, which is a body, after sweeps, as values of the enclosing trace."""

    def __init__(self, x: LoopedFields, i: int, new: Mapping[str, Any]) -> None:
        super().__init__(dict(new))
        self._x, self._i = x, i

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        x, i = self._x, self._i
        shared, body = x.shared, int(x.rows.bodies[i])
        kind = int(shared.kind_of[body])
        if name == "hinge":
            return shared.robot.hinges[body]
        if name == "name":
            return shared.robot.bodies[body].name
        if name in x.vectors:
            _, scalars, offsets, rows = shared.vectors[x.vectors[name]]
            start, v = int(offsets[self._in(rows)]), shared.robot.hinges[body].v
            return np.array(scalars[start : start + v.stop - v.start], object)
        if name in x.fields:
            value = x.fields[name][kind]
        else:
            x.settle()
            value = shared.base[kind].get(name)
        if value is None:
            return super().__getattr__(name)
        value = map_scalars(value, self._outside)
        self.__dict__[name] = value
        return value

    def _in(self, rows: Rows) -> int:
        """This row where a memory has these rows."""
        return int(self._x.rows.within(rows, np.array(self._i)))

    def _outside(self, x: Any) -> Any:
        """A scalar of a sweep's trace for this body, as a scalar of the enclosing trace."""
        if not isinstance(x, Node) or not isinstance(x.tracer, SweepTracer):
            return x
        shared = self._x.shared
        if x.op == "const":
            return x.value
        if x.op != "input":
            sweep = x.tracer.sweep
            return shared.pick(sweep, self._in(sweep.rows), x.tracer.kept(x))
        match x.tracer.key(x):
            case ("vector", number, j):
                _, scalars, offsets, rows = shared.vectors[number]
                return scalars[offsets[self._in(rows)] + j]
            case ("table", j):
                body = self._in(shared.rows)
                return shared.kinds[int(shared.kind_of[body])].columns[j][shared.rank[body]]
            case ("own", sweep, column):
                return shared.pick(sweep, self._in(sweep.rows), column)
            case ("parent", sweep, column):
                return shared.pick(sweep, int(sweep.sources[self._in(sweep.rows)]), column)
            case ("fixed", node):
                return node

    def extended(self, fields: dict[str, Any]) -> BodyRecord:
        """A new record with more fields."""
        return BodyRecord(self._x, self._i, {**self._known(), **fields})
