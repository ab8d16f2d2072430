"""Forward-mode derivatives of graphs, along directions; for reverse mode see reverse_mode.py.

Both modes take a graph, with nodes of the trace in progress for its inputs, and add the nodes of
its derivatives to that trace, so that derivatives can be differentiated again. The partial
derivatives of operations are in ops.py. The derivative of a loop is a loop whose memory has a
further part for each direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from phipsi.compile import fold
from phipsi.compile.graph import Graph, LoopNode, MemoryPlace
from phipsi.compile.loops import LoopBuilder, array_of, pick
from phipsi.compile.node import Builder, Node, TraceError, current, tracing
from phipsi.compile.ops import OPS, Derivatives, Selection
from phipsi.compile.trace import Tracer
from phipsi.typing import Real

Tangent = dict[int, Node]
"""The derivative of a scalar along each direction, by number; 0 along the missing ones."""

_RULES = {**fold.RULES, "div": fold.div}


LoopMaker = Callable[[int, LoopNode, list[Node], list[Node]], Node]
"""Makes the node of a loop: from the number of its node in the graph, the loop, and its operands,
arrays and scalars."""


def made(op: str, args: Sequence[Node]) -> Node:
    """The node of an operation, simplified by its algebraic rule if it has one."""
    return _RULES[op](*args) if op in _RULES else args[0].tracer.apply(op, *args)


def replayed(
    graph: Graph, inputs: Sequence[Sequence[Node]], loop: LoopMaker | None = None
) -> list[Node]:
    """A copy of every node of a graph in the trace in progress; `loop` makes the loops."""
    tracer = tracer_in_progress()
    values: list[Node] = []
    number: int
    element: int
    for i, (op, args, value) in enumerate(graph.nodes):
        operands = [values[a] for a in args]
        match op:
            case "const":
                node = tracer.lift(value)
            case "input":
                number, element = value
                node = inputs[number][element]
            case "array":
                number = value
                node = array_of(inputs[number])
            case "pack":
                node = array_of(operands)
            case "pick":
                node = pick(operands[0], value)
            case "loop" if loop is not None:
                own: LoopNode = value
                split = len(args) - len(own.start)
                node = loop(i, own, operands[:split], operands[split:])
            case "loop":
                node = tracer.make("loop", tuple(operands), value)
            case _:
                node = made(op, operands)
        values.append(node)
    return values


def has_loops(graph: Graph) -> bool:
    """Whether a graph has a loop."""
    return any(node.op == "loop" for node in graph.nodes)


def tracer_in_progress() -> Builder:
    """The trace to which nodes of derivatives are added."""
    tracer = current()
    if tracer is None:
        raise TraceError("derivatives exist only inside a program")
    return tracer


def terms(op: str, args: Sequence[Node], result: Node) -> Iterator[tuple[int, Real]]:
    """The derivative of an operation by each operand, for those with a derivative: (operand,
    derivative)."""
    partials = cast("Callable[..., Derivatives]", OPS[op].partials)
    for k, partial in enumerate(partials(*args, result)):
        if partial is not None:
            yield k, partial


def selection(op: str, args: Sequence[Node]) -> Selection | None:
    """Which operand is the result, of an operation that selects one."""
    selects = cast("Callable[..., Selection] | None", OPS[op].selects)
    return selects(*args) if selects else None


def pushforward(graph: Graph, wrt: Sequence[int]) -> Graph:
    """The graph of the rates of the outputs. The inputs with the numbers `wrt` change, each at the
    rate that a further input `tangent:NAME` gives."""
    tracer = Tracer()
    inputs = [list(tracer.input(name, size)) for name, size in graph.inputs]
    seeds: list[list[Tangent]] = [[{} for _ in part] for part in inputs]
    for k in wrt:
        name, size = graph.inputs[k]
        seeds[k] = [{0: x} for x in tracer.input(f"tangent:{name}", size)]
    with tracing(tracer):
        _, tangents = forward(graph, inputs, seeds)
    names = (name for name, _ in graph.outputs)
    rates = ([t.get(0, 0.0) for t in part] for part in tangents)
    return tracer.graph(list(zip(names, rates, strict=True)))


@dataclass
class _Array:
    """An array with its derivatives. `tangents` gives for each direction, if the array varies along
    it, the array that contains the derivative, and the position of its first element there."""

    node: Node
    tangents: dict[int, tuple[Node, int]]

    def tangent(self, i: int) -> Tangent:
        """The derivative of one element."""
        return {d: pick(node, start + i) for d, (node, start) in self.tangents.items()}


def forward(
    graph: Graph, inputs: Sequence[Sequence[Node]], seeds: Sequence[Sequence[Tangent]]
) -> tuple[list[list[Node]], list[list[Tangent]]]:
    """The outputs of a graph and their tangents, given the tangents `seeds` of the inputs."""
    tracer = tracer_in_progress()
    values: list[Any] = []  # nodes of scalars, and _Array for arrays
    tangents: list[Tangent] = []
    number: int
    element: int
    for op, args, value in graph.nodes:
        tangent: Tangent = {}
        match op:
            case "const":
                node: Any = tracer.lift(value)
            case "input":
                number, element = value
                node, tangent = inputs[number][element], seeds[number][element]
            case "array":
                number = value
                node = _packed(inputs[number], seeds[number])
            case "pack":
                node = _packed([values[a] for a in args], [tangents[a] for a in args])
            case "pick":
                node, tangent = pick(values[args[0]].node, value), values[args[0]].tangent(value)
            case "loop":
                loop: LoopNode = value
                split = len(args) - len(loop.start)
                node = _forward_loop(
                    loop,
                    [values[a] for a in args[:split]],
                    [values[a] for a in args[split:]],
                    [tangents[a] for a in args[split:]],
                )
            case _:
                operands = [values[a] for a in args]
                node = made(op, operands)
                tangent = _chained(op, operands, node, [tangents[a] for a in args])
        values.append(node)
        tangents.append({d: x for d, x in tangent.items() if x.op != "const" or x.value != 0.0})
    return (
        [[values[i] for i in nodes] for _, nodes in graph.outputs],
        [[tangents[i] for i in nodes] for _, nodes in graph.outputs],
    )


def _chained(op: str, args: list[Node], result: Node, tangents: list[Tangent]) -> Tangent:
    """The tangent of the result of an operation, by the chain rule."""
    directions = {d: None for tangent in tangents for d in tangent}
    if not directions:
        return {}
    if selected := selection(op, args):
        zero = result.tracer.lift(0.0)
        condition, first, second = selected
        a, b = tangents[first], tangents[second]
        return {d: made("where", (condition, a.get(d, zero), b.get(d, zero))) for d in directions}
    out: Tangent = {}
    for k, partial in terms(op, args, result):
        for d, x in tangents[k].items():
            out[d] = out[d] + x * partial if d in out else x * partial
    return out


def _packed(nodes: Sequence[Node], tangents: Sequence[Tangent]) -> _Array:
    """The array of these scalars, with its derivatives."""
    zero = tracer_in_progress().lift(0.0)
    directions = {d: None for tangent in tangents for d in tangent}
    parts = {d: (array_of([t.get(d, zero) for t in tangents]), 0) for d in directions}
    return _Array(array_of(nodes), parts)


def _forward_loop(
    loop: LoopNode, arrays: list[_Array], start: list[Node], tangents: list[Tangent]
) -> _Array:
    """The loop that also computes derivatives. All of its memory is taken to vary along all
    directions: the derivative along direction k is `k * loop.size` behind the value."""
    sources = [*tangents, *(array.tangents for array in arrays)]
    directions = {d: k for k, d in enumerate(dict.fromkeys(d for s in sources for d in s), 1)}
    builder = LoopBuilder(loop.count, tracer_in_progress())
    builder.choice = loop.choice
    builder.memory(loop.size * (1 + len(directions)))
    first, end = loop.cleared
    if end > first:
        builder.cleared = first, end + loop.size * len(directions)
    translate = builder.like(loop, [array.node for array in arrays], loop.indices)
    zero = builder.outer.lift(0.0)
    for at, node, tangent in zip(loop.start, start, tangents, strict=True):
        builder.put(at, node)
        for d, k in directions.items():
            builder.put(at + k * loop.size, tangent.get(d, zero))

    def tangent_places(place: MemoryPlace) -> dict[int, MemoryPlace]:
        """The place of the derivative of the scalar at a place, by direction."""
        at = translate(place)
        if place.array < 0:
            return {}
        if place.array == 0:
            return {d: at._replace(column=at.column + k * loop.size) for d, k in directions.items()}
        return {
            d: at._replace(array=builder.array(node), column=at.column + begin)
            for d, (node, begin) in arrays[place.array - 1].tangents.items()
        }

    for case in loop.cases:
        trace = builder.case()
        with tracing(trace):
            reads = [trace.read(translate(p)) for p in case.reads]
            places = [tangent_places(p) for p in case.reads]
            seeds = [{d: trace.read(at) for d, at in each.items()} for each in places]
            (written,), (derived,) = forward(case.body, [reads], [seeds])
            for place, node, tangent in zip(case.writes, written, derived, strict=True):
                trace.write(translate(place), node)
                for d, at in tangent_places(place).items():
                    if d in tangent or not at.add:
                        trace.write(at, tangent.get(d, 0.0))
    node = builder.node()
    return _Array(node, {d: (node, k * loop.size) for d, k in directions.items()})
