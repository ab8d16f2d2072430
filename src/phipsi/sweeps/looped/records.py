"""Records of looped sweeps: of a body inside a step, and of one body after sweeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from phipsi.compile import Node
from phipsi.sweeps.forest import Record
from phipsi.sweeps.looped.scalars import mapped
from phipsi.sweeps.looped.traces import Sweep, SweepTracer, plain

if TYPE_CHECKING:
    from phipsi.sweeps.looped.forest import LoopedForest


class LoopedRecord(Record):
    """What a step sees of a body: values of this sweep's trace, read or computed again."""

    def __init__(self, sweep: Sweep, kind: int, x: LoopedForest, new: Mapping[str, Any]) -> None:
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
        value = mapped(value, lambda x: plain(tracer.lift(x)) if isinstance(x, Node) else x)
        self.__dict__[name] = value
        return value

    def extended(self, fields: dict[str, Any]) -> LoopedRecord:
        """A new record with more fields."""
        return LoopedRecord(self._sweep, self._kind, self._x, {**self._known(), **fields})


class BodyRecord(Record):
    """What is known of one body after sweeps, as values of the enclosing trace."""

    def __init__(self, x: LoopedForest, i: int, new: Mapping[str, Any]) -> None:
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
                x.local(lambda k: {"phi": k.phi})
            value = shared.base[kind].get(name)
        if value is None:
            return super().__getattr__(name)
        value = mapped(value, self._outside)
        self.__dict__[name] = value
        return value

    def _outside(self, x: Any) -> Any:
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
                return shared.kinds[shared.kind_of[i]].columns[j][shared.rank[i]]
            case ("own", sweep, column):
                return shared.pick(sweep, i, column)
            case ("parent", sweep, column):
                return shared.pick(sweep, int(sweep.sources[i]), column)
            case ("fixed", node):
                return node
        raise AssertionError(x)

    def extended(self, fields: dict[str, Any]) -> BodyRecord:
        """A new record with more fields."""
        return BodyRecord(self._x, self._i, {**self._known(), **fields})
