"""Derivatives of programs, by their arguments and by numbers of the robot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeVar

import numpy as np

from phipsi.compile import Builder, Node, Tracer, lift, repeat, tracing
from phipsi.compile.forward_mode import Tangent, forward, has_loops, tracer_in_progress
from phipsi.compile.reverse_mode import reverse
from phipsi.model import Robot
from phipsi.programs.arguments import Pack, first, flatten
from phipsi.programs.compiled import CompiledFunction
from phipsi.programs.traced import TracedFunction

T = TypeVar("T")
MODES = ("forward", "reverse")

UNROLLED = 100_000
"""Operations times directions (or results) up to which each has code of its own; beyond, a loop
over them keeps the code small, and computes what they have in common each time."""


def derived(
    program: CompiledFunction[..., Any],
    wrt: str | Sequence[str],
    of: str | None,
    mode: str | None,
    make: Callable[..., T],
) -> T:
    """The program of the derivatives of another, made by `make`."""
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt) if isinstance(wrt, Iterable) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{program.name}.derivative: wrt is {wrt!r}, needs names of arguments")
    if len({*names}) < len(names):
        raise ValueError(f"{program.name}.derivative: wrt has a name twice, {names}")
    if mode not in (None, *MODES):
        raise ValueError(f"mode {mode!r} is not one of {', '.join(MODES)}")
    arrays = [p.name for p in program.parameters.values() if p.kind != "option"]
    for name in names:
        if name not in arrays and name != "gravity" and ":" not in name:
            raise ValueError(
                f"{program.name} has no argument {name!r} to be derived by; it has "
                f"{', '.join(arrays)}, and the numbers of the robot, such as 'gravity' or "
                "'inertia:BODY'"
            )

    def function(robot: Robot, *args: Any, **kwargs: Any) -> Any:
        arguments = {**dict(zip(program.parameters, args, strict=False)), **kwargs}
        parts = tuple(_Traced(program, robot, arguments, names, of).jacobians(mode))
        return parts[0] if isinstance(wrt, str) else parts

    def verify(result: Any, args: Any, kwargs: Any) -> Any:
        """Where the program refuses, so does its derivative."""
        program(*args, **kwargs)
        return result

    key, by = program.content_key, wrt if isinstance(wrt, str) else names
    own = (replace(p, rule=None) for p in program.parameters.values())
    return make(
        function,
        [program.robot_parameter, *own],
        name=f"derivative_of_{program.name}",
        doc=f"The derivative of {program.name} by {', '.join(names)}.",
        verify=verify if program.verified else None,
        content_key=None if key is None else f"{key}.derivative{by, of, mode}",
    )


class _Inner(Tracer):
    """The trace of the program to be derived; what it takes from around it are inputs too."""

    def __init__(self, outer: Builder) -> None:
        super().__init__(outer)
        self.captured: list[Node] = []
        self.input("captured", 0)

    def capture(self, x: Node) -> Node:
        """A scalar of the enclosing trace, as an input."""
        if x.op == "const":
            return self.lift(x.value)
        known = next((j for j, y in enumerate(self.captured) if y is x), None)
        if known is None:
            known = len(self.captured)
            self.captured.append(x)
            self.inputs[0] = ("captured", known + 1)
        return self.make("input", (), (0, known))


@dataclass
class _Argument:
    """An array to be derived by: which input it is, its value, and whether the last axis of it are
    coordinates, which vary as velocities do."""

    input: int
    value: Any
    coordinates: bool

    def shape(self, robot: Robot) -> tuple[int, ...]:
        """The shape of a change of it."""
        shape = self.value.shape
        return (*shape[:-1], robot.nv) if self.coordinates else shape

    def change(self, robot: Robot, along: Any) -> Any:
        """How it changes along a change of it, given flat."""
        if not self.coordinates:
            return along
        rows = self.value.reshape(-1, robot.nq), np.reshape(along, (-1, robot.nv))
        flows = [robot.flow(q, v) for q, v in zip(*rows, strict=True)]
        return np.concatenate(flows) if flows else along


class _Traced:
    """A program traced by itself, within the trace of its derivative."""

    def __init__(
        self,
        program: TracedFunction,
        robot: Robot,
        arguments: dict[str, Any],
        names: tuple[str, ...],
        of: str | None,
    ) -> None:
        inner = _Inner(tracer_in_progress())
        self.robot, self.inputs = robot, [inner.captured]
        self.arguments: dict[str, _Argument] = {}

        def entered(name: str, value: Any) -> Any:
            value = lift(value)
            axes = program.shape(name) or ()
            self.arguments[name] = _Argument(len(self.inputs), value, axes[-1:] == ("nq",))
            self.inputs.append(list(value.flat))
            with tracing(inner):
                return lift(inner.input(name, value.size).reshape(value.shape))

        given = {}
        for name, value in arguments.items():
            if program.is_option(name, value):
                given[name] = value
            elif isinstance(value, dict):
                given[name] = {k: entered(f"{name}[{k!r}]", x) for k, x in value.items()}
            else:
                given[name] = entered(name, value)
        numbers = {n: entered(n, robot.parameter(n)) for n in names if n not in given}
        with tracing(inner):
            result = program.apply(robot.with_parameters(numbers), given)
            outputs, self.pack = self._chosen(*flatten(result, program.name), of, program.name)
            arrays = [np.asarray(lift(x)) for _, x in outputs]
            self.shapes = [x.shape for x in arrays]
            self.graph = inner.graph([("result", [e for x in arrays for e in x.flat])])
        for name in names:
            if name not in self.arguments:
                absent = arguments.get(name) is None
                what = "was not given" if absent else "is no array"
                raise ValueError(f"{program.name}: {name} {what}: there is no derivative by it")
        self.wrt = [self.arguments[name] for name in names]

    @staticmethod
    def _chosen(
        outputs: list[tuple[str, Any]], pack: Pack, of: str | None, name: str
    ) -> tuple[list[tuple[str, Any]], Pack]:
        if of is None:
            return outputs, pack
        chosen = [(n, x) for n, x in outputs if n == of]
        if not chosen:
            known = ", ".join(n for n, _ in outputs)
            raise ValueError(f"{name} has no result {of!r}; it has {known}")
        return chosen[:1], first

    def jacobians(self, mode: str | None) -> list[Any]:
        """For each argument the results with their derivatives in their place."""
        shapes = [argument.shape(self.robot) for argument in self.wrt]
        count, size = sum(map(prod, shapes)), len(self.graph.outputs[0][1])
        mode = mode or ("reverse" if 2 * size < count else "forward")
        matrix = (self._forward if mode == "forward" else self._reverse)(size, count)
        out, start = [], 0
        for shape in shapes:
            columns, row, parts = matrix[:, start : start + prod(shape)], 0, []
            for own in self.shapes:
                parts.append(columns[row : row + prod(own)].reshape((*own, *shape)))
                row += prod(own)
            out.append(self.pack(parts))
            start += prod(shape)
        return out

    def _seeds(self, along: Any) -> list[list[Any]]:
        """How every input changes along a change of the arguments, given flat."""
        seeds: list[list[Any]] = [[0.0] * len(part) for part in self.inputs]
        start = 0
        for argument in self.wrt:
            n = prod(argument.shape(self.robot))
            seeds[argument.input] = list(argument.change(self.robot, along[start : start + n]))
            start += n
        return seeds

    def _forward(self, size: int, count: int) -> Any:
        """The matrix of all derivatives (size, count), direction by direction."""
        if self._looped(count):
            return self._rounds(count, lambda row: self._along([self._seeds(row)])).T
        return self._along([self._seeds(unit) for unit in np.eye(count)])

    def _along(self, directions: list[list[list[Any]]]) -> Any:
        """The derivatives of the results along some directions, (size, directions); (size,) along
        one."""
        scalar = tracer_in_progress().lift
        inputs = [[scalar(x) for x in part] for part in self.inputs]
        seeds: list[list[Tangent]] = [[{} for _ in part] for part in inputs]
        for d, direction in enumerate(directions):
            for part, changes in zip(seeds, direction, strict=True):
                for tangent, x in zip(part, changes, strict=True):
                    if isinstance(x, Node) or x != 0.0:
                        tangent[d] = scalar(x)
        _, (tangents,) = forward(self.graph, inputs, seeds)
        return lift([[t.get(d, 0.0) for d in range(len(directions))] for t in tangents])

    def _reverse(self, size: int, count: int) -> Any:
        """The matrix of all derivatives (size, count), result by result."""
        if self._looped(size):
            return self._rounds(size, self._back)
        return lift([self._back(unit) for unit in np.eye(size)])

    def _back(self, weights: Any) -> Any:
        """The gradient (count,) of the results, each by its weight."""
        scalar = tracer_in_progress().lift
        inputs = [[scalar(x) for x in part] for part in self.inputs]
        given = [None if not isinstance(w, Node) and w == 0.0 else scalar(w) for w in weights]
        wanted = {argument.input for argument in self.wrt}
        varied = [[k in wanted] * len(part) for k, part in enumerate(inputs)]
        adjoints = reverse(self.graph, inputs, [given], varied)
        out = []
        for argument in self.wrt:
            gradient = lift([0.0 if x is None else x for x in adjoints[argument.input]])
            n = prod(argument.shape(self.robot))
            if argument.coordinates:
                basis = [argument.change(self.robot, unit) for unit in np.eye(n)]
                gradient = lift([gradient @ np.asarray(change) for change in basis])
            out.append(gradient)
        return np.concatenate(out)

    def _looped(self, count: int) -> bool:
        return has_loops(self.graph) or count * self.graph.operations > UNROLLED

    def _rounds(self, count: int, row_of: Any) -> Any:
        """row_of of every unit vector, by a loop."""
        rows = repeat(
            count, lambda carry, unit: (carry, row_of(unit).reshape(-1)), (), np.eye(count)
        )
        return rows[1]
