"""Derivatives of programs by their arguments and by constants of the robot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from phipsi.compile import Builder, Node, Tracer, flatten, lift, repeat, tracing
from phipsi.compile.forward_mode import Tangent, forward, has_loops, tracer_in_progress
from phipsi.compile.reverse_mode import reverse
from phipsi.compile.signature import Pack, first
from phipsi.model import Robot
from phipsi.programs.arguments import is_mapping
from phipsi.programs.compiled import CompiledFunction
from phipsi.programs.traced import TracedFunction
from phipsi.typing import Array, ArrayLike

T = TypeVar("T")
Mode = Literal["forward", "reverse"]
"""How a derivative is computed: direction by direction, or result by result."""
MODES: tuple[Mode, ...] = get_args(Mode)

UNROLLED = 100_000
"""Up to this product of operations and directions (or results), each direction has code of its own.
Beyond it the code loops over them: it stays small, but computes common subexpressions each time."""


def derived(
    program: CompiledFunction[..., Any],
    wrt: str | Sequence[str],
    of: str | None,
    mode: Mode | None,
    make: Callable[..., T],
) -> T:
    """The program that computes the derivatives of another; arguments as in `Program.derivative`,
    and the class of the new program."""
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
        parts = tuple(_TracedProgram(program, robot, arguments, names, of).jacobians(mode))
        return parts[0] if isinstance(wrt, str) else parts

    def verify(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Raise what the program itself raises for these arguments."""
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


class _InnerTracer(Tracer):
    """The tracer of the program to be differentiated. Nodes of the enclosing trace that the program
    uses become inputs, "captured"."""

    def __init__(self, outer: Builder) -> None:
        super().__init__(outer)
        self.captured: list[Node] = []
        self.input("captured", 0)

    def capture(self, x: Node) -> Node:
        """The input that stands for a node of the enclosing trace."""
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
    """An array with respect to which a program is differentiated."""

    input: int
    """The number of the input of the graph."""
    value: Array
    coordinates: bool
    """Whether its last axis is a configuration q, whose tangent space has nv dimensions."""

    def shape(self, robot: Robot) -> tuple[int, ...]:
        """The shape of a tangent of the array."""
        shape = self.value.shape
        return (*shape[:-1], robot.nv) if self.coordinates else shape

    def change(self, robot: Robot, tangent: Array) -> Array:
        """The rate of the array along a flattened tangent: q̇ for a configuration."""
        if not self.coordinates:
            return tangent
        rows = self.value.reshape(-1, robot.nq), np.reshape(tangent, (-1, robot.nv))
        flows = [robot.flow(q, v) for q, v in zip(*rows, strict=True)]
        return np.concatenate(flows) if flows else tangent


class _TracedProgram:
    """The graph of a program, traced separately within the trace of its derivative."""

    def __init__(
        self,
        program: TracedFunction,
        robot: Robot,
        arguments: dict[str, Any],
        names: tuple[str, ...],
        of: str | None,
    ) -> None:
        inner = _InnerTracer(tracer_in_progress())
        self.robot = robot
        self.inputs: list[list[Node]] = [inner.captured]
        self.arguments: dict[str, _Argument] = {}

        def entered(name: str, x: ArrayLike) -> Array:
            value = lift(x)
            axes = program.shape(name) or ()
            self.arguments[name] = _Argument(len(self.inputs), value, axes[-1:] == ("nq",))
            self.inputs.append(list(value.flat))
            with tracing(inner):
                return lift(inner.input(name, value.size).reshape(value.shape))

        given: dict[str, Any] = {}
        for name, value in arguments.items():
            if program.is_option(name, value):
                given[name] = value
            elif is_mapping(value):
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

    def jacobians(self, mode: Mode | None) -> list[Any]:
        """For each argument, the results with every array replaced by its derivative."""
        shapes = [argument.shape(self.robot) for argument in self.wrt]
        count, size = sum(map(prod, shapes)), len(self.graph.outputs[0][1])
        mode = mode or ("reverse" if 2 * size < count else "forward")
        matrix = (self._forward if mode == "forward" else self._reverse)(size, count)
        out: list[Any] = []
        start = 0
        for shape in shapes:
            columns, row = matrix[:, start : start + prod(shape)], 0
            parts: list[Array] = []
            for own in self.shapes:
                parts.append(columns[row : row + prod(own)].reshape((*own, *shape)))
                row += prod(own)
            out.append(self.pack(parts))
            start += prod(shape)
        return out

    def _seeds(self, tangent: Array) -> list[list[Any]]:
        """The rates of all inputs along a flattened tangent of the arguments."""
        seeds: list[list[Any]] = [[0.0] * len(part) for part in self.inputs]
        start = 0
        for argument in self.wrt:
            n = prod(argument.shape(self.robot))
            seeds[argument.input] = list(argument.change(self.robot, tangent[start : start + n]))
            start += n
        return seeds

    def _forward(self, size: int, count: int) -> Array:
        """The Jacobian (size, count) in forward mode, one direction at a time."""
        if self._looped(count):
            return self._rounds(count, lambda unit: self._along([self._seeds(unit)])).T
        return self._along([self._seeds(unit) for unit in np.eye(count)])

    def _along(self, directions: list[list[list[Any]]]) -> Array:
        """The derivatives (size, directions) of the results along directions, each given as the
        rates of all inputs."""
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

    def _reverse(self, size: int, count: int) -> Array:
        """The Jacobian (size, count) in reverse mode, one result at a time."""
        if self._looped(size):
            return self._rounds(size, self._back)
        return lift([self._back(unit) for unit in np.eye(size)])

    def _back(self, weights: Array) -> Array:
        """The gradient (count,) of the weighted sum of the results."""
        scalar = tracer_in_progress().lift
        inputs = [[scalar(x) for x in part] for part in self.inputs]
        given = [None if not isinstance(w, Node) and w == 0.0 else scalar(w) for w in weights]
        wanted = {argument.input for argument in self.wrt}
        varied = [[k in wanted] * len(part) for k, part in enumerate(inputs)]
        adjoints = reverse(self.graph, inputs, [given], varied)
        out: list[Array] = []
        for argument in self.wrt:
            gradient: Array = lift([0.0 if x is None else x for x in adjoints[argument.input]])
            n = prod(argument.shape(self.robot))
            if argument.coordinates:
                basis = [argument.change(self.robot, unit) for unit in np.eye(n)]
                gradient = lift([gradient @ np.asarray(change) for change in basis])
            out.append(gradient)
        return np.concatenate(out)

    def _looped(self, count: int) -> bool:
        """Whether the code loops over directions or results; never over one alone."""
        long = has_loops(self.graph) or count * self.graph.operations > UNROLLED
        return long and count > 1

    def _rounds(self, count: int, row_of: Callable[[Array], Array]) -> Array:
        """row_of(unit) for every unit vector, computed by a loop."""

        def step(carry: tuple[()], unit: Array) -> tuple[tuple[()], Array]:
            return carry, row_of(unit).reshape(-1)

        return repeat(count, step, (), np.eye(count))[1]
