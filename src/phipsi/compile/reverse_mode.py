"""Reverse-mode derivatives of graphs: from the outputs back to the inputs.

A loop becomes two. The first runs forward and saves, on a tape, each value that a round reads from
memory which any round overwrites. The second runs the rounds in reverse order, and computes each
round again from the values it read before it propagates the adjoints. So rounds are checkpoints:
values within a round are not saved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from phipsi.compile.forward_mode import made, replayed, selection, terms, tracer_in_progress
from phipsi.compile.graph import Case, Graph, LoopNode, MemoryPlace
from phipsi.compile.loops import LoopBuilder, array_of, length, pick
from phipsi.compile.node import Node, TraceError, tracing
from phipsi.compile.trace import Tracer
from phipsi.typing import Array

Adjoint = Node | None
"""The derivative of the differentiated quantity by a scalar; None where that is zero."""

FEW = 32
"""Adjoints of single elements of a loop's memory that become operands of the reverse loop; more
than that are copied into its memory by additional rounds."""

Slice = tuple[Node, int]
"""A part of an array: the array, and the position of the first element."""


class _ArrayAdjoint:
    """The adjoint of an array, as a sum: the adjoints of single elements, by position, and adjoints
    of the whole array, each of which is a slice of another array (of the memory of a reverse
    loop)."""

    def __init__(self) -> None:
        self.single: dict[int, Node] = {}
        self.whole: list[Slice] = []

    def add(self, at: int, value: Node) -> None:
        """Add to the adjoint of one element."""
        self.single[at] = self.single[at] + value if at in self.single else value

    def elements(self, size: int) -> Iterator[tuple[int, Node]]:
        """The position and the adjoint of each element that has one."""
        for i in range(size) if self.whole else sorted(self.single):
            parts = [pick(node, start + i) for node, start in self.whole]
            parts += [self.single[i]] if i in self.single else []
            yield i, sum(parts[1:], parts[0])


def reverse(
    graph: Graph,
    inputs: Sequence[Sequence[Node]],
    cotangents: Sequence[Sequence[Adjoint]],
    varied: Sequence[Sequence[bool]],
) -> list[list[Adjoint]]:
    """The adjoint of every input that `varied` marks, given those of the outputs."""
    varies = _varying(graph, varied)
    recorded: dict[int, _RecordedLoop] = {}

    def loop(i: int, value: LoopNode, arrays: list[Node], start: list[Node]) -> Node:
        if not varies[i]:
            return tracer_in_progress().make("loop", (*arrays, *start), value)
        args = graph.nodes[i].args
        flags = [varies[a] for a in args]
        recorded[i] = _RecordedLoop(value, arrays, start, flags)
        return recorded[i].node

    values = replayed(graph, inputs, loop)
    result: list[list[Adjoint]] = [[None] * len(part) for part in inputs]
    adjoints: list[Adjoint] = [None] * len(graph.nodes)
    gathered: dict[int, _ArrayAdjoint] = defaultdict(_ArrayAdjoint)

    def add(i: int, value: Node) -> None:
        if varies[i]:
            known = adjoints[i]
            adjoints[i] = value if known is None else known + value

    for (_, nodes), given in zip(graph.outputs, cotangents, strict=True):
        for i, value in zip(nodes, given, strict=True):
            if value is not None:
                add(i, value)
    number: int
    element: int
    for i in reversed(range(len(graph.nodes))):
        op, args, value = graph.nodes[i]
        own = adjoints[i]
        if op == "array" and i in gathered:
            number = value
            for at, x in gathered[i].elements(len(inputs[number])):
                known = result[number][at]
                result[number][at] = x if known is None else known + x
        elif op == "pack" and i in gathered:
            for at, x in gathered[i].elements(len(args)):
                add(args[at], x)
        elif op == "loop" and i in gathered:
            arrays, start = recorded[i].reversed(gathered[i])
            for k, adjoint in arrays:
                gathered[args[k]].whole.append(adjoint)
            for k, x in start:
                add(args[k], x)
        elif own is None:
            continue
        elif op == "input":
            number, element = value
            known = result[number][element]
            result[number][element] = own if known is None else known + own
        elif op == "pick":
            gathered[args[0]].add(value, own)
        elif selected := selection(op, [values[a] for a in args]):
            condition, first, second = selected
            zero = own.tracer.lift(0.0)
            add(args[first], made("where", (condition, own, zero)))
            add(args[second], made("where", (condition, zero, own)))
        else:
            for k, partial in terms(op, [values[a] for a in args], values[i]):
                add(args[k], own * partial)
    return result


def pullback(graph: Graph, wrt: Sequence[int]) -> Graph:
    """The graph of the gradients of a scalar by the inputs with the numbers `wrt`. Further inputs
    `cotangent:NAME` give the derivative of the scalar by each output."""
    tracer = Tracer()
    inputs = [list(tracer.input(name, size)) for name, size in graph.inputs]
    given = [list(tracer.input(f"cotangent:{name}", len(nodes))) for name, nodes in graph.outputs]
    varied = [[k in wrt] * size for k, (_, size) in enumerate(graph.inputs)]
    with tracing(tracer):
        adjoints = reverse(graph, inputs, given, varied)
    gradients = [(graph.inputs[k][0], [0.0 if x is None else x for x in adjoints[k]]) for k in wrt]
    return tracer.graph(gradients)


def _varying(graph: Graph, varied: Sequence[Sequence[bool]]) -> list[bool]:
    """Whether each node depends on an input element that `varied` marks."""
    varies: list[bool] = []
    number: int
    element: int
    for op, args, value in graph.nodes:
        if op == "input":
            number, element = value
            varies.append(varied[number][element])
        elif op == "array":
            number = value
            varies.append(any(varied[number]))
        else:
            varies.append(any(varies[a] for a in args))
    return varies


class _RecordedLoop:
    """A loop that saves a tape as it runs forward, and the loop that runs it in reverse.

    `kept` lists for each case the places whose values go on the tape; `width` is the length of the
    tape of one round. `varied` says of each operand whether it depends on a varied input.
    """

    def __init__(
        self, loop: LoopNode, arrays: list[Node], start: list[Node], varied: list[bool]
    ) -> None:
        self.loop, self.arrays, self.start, self.varied = loop, arrays, start, varied
        written = np.zeros(loop.size, bool)
        for c, case in enumerate(loop.cases):
            for place in case.writes:
                written[self._addresses(c, place)] = True
        self.written = written
        self.kept = [
            [p for p in dict.fromkeys(case.reads) if p.array == 0 and self._overwritten(c, p)]
            for c, case in enumerate(loop.cases)
        ]
        self.width = max(map(len, self.kept), default=0)
        self.node = self._recorded()

    def _addresses(self, case: int, place: MemoryPlace) -> Array:
        """The address of a place in each round of a case."""
        return self.loop.indices[place.rows, self.loop.choice == case] + place.column

    def _overwritten(self, case: int, place: MemoryPlace) -> bool:
        """Whether any round writes to an address that this place has in rounds of this case."""
        return bool(self.written[self._addresses(case, place)].any())

    def _recorded(self) -> Node:
        """The forward loop, with the tape behind its memory."""
        loop = self.loop
        builder = LoopBuilder(loop.count, tracer_in_progress())
        builder.choice, builder.cleared = loop.choice, loop.cleared
        builder.memory(loop.size)
        self.tape = builder.memory(self.width * loop.count)
        for at, node in zip(loop.start, self.start, strict=True):
            builder.put(at, node)
        translate = builder.like(loop, self.arrays, loop.indices)
        row = builder.index(self.width * np.arange(loop.count))
        for case, kept in zip(loop.cases, self.kept, strict=True):
            trace = builder.case()
            with tracing(trace):
                reads = [trace.read(translate(p)) for p in case.reads]
                values = replayed(case.body, [reads])
                for place, i in zip(case.writes, case.body.outputs[0][1], strict=True):
                    trace.write(translate(place), values[i])
                for j, place in enumerate(kept):
                    read = reads[case.reads.index(place)]
                    trace.write(MemoryPlace(0, row, self.tape + j), read)
        return builder.node()

    def reversed(
        self, seeds: _ArrayAdjoint
    ) -> tuple[list[tuple[int, Slice]], list[tuple[int, Node]]]:
        """The adjoints of the loop's operands, given the adjoint `seeds` of its memory: for arrays
        and then for scalars, the number of the operand and its adjoint.

        The memory of the reverse loop holds the adjoint of the loop's memory, and then those of its
        arrays. Its first rounds add the seeds that are not operands, one element a round.
        """
        loop, few = self.loop, len(seeds.single) <= FEW
        copies = list(_copies(loop.size, seeds.whole, {} if few else seeds.single))
        before = sum(len(to) for _, _, to in copies)
        builder = LoopBuilder(before + loop.count, tracer_in_progress())
        builder.memory(loop.size)
        regions = {
            k: builder.memory(length(array))
            for k, array in enumerate(self.arrays, 1)
            if self.varied[k - 1]
        }
        builder.cleared = 0, builder.size
        for at, x in seeds.single.items() if few else ():
            builder.put(at, x)
        done = 0
        for number, (array, source, target) in enumerate(copies):
            rounds = slice(done, done + len(target))
            builder.choice[rounds] = number
            trace = builder.case()
            places = [np.zeros(builder.count, np.int64) for _ in range(2)]
            places[0][rounds], places[1][rounds] = source, target
            done = rounds.stop
            with tracing(trace):
                x = trace.read(MemoryPlace(builder.array(array), builder.index(places[0]), 0))
                trace.write(MemoryPlace(0, builder.index(places[1]), 0, True), x)
        builder.choice[before:] = len(copies) + loop.choice[::-1]
        ahead = np.zeros((1, before), np.int64)
        back = np.concatenate([np.repeat(ahead, len(loop.indices), 0), loop.indices[:, ::-1]], 1)
        translate = builder.like(loop, self.arrays, back)
        tape = self.width * np.arange(loop.count)[::-1]
        row = builder.index(np.concatenate([ahead[0], tape]))
        for c, case in enumerate(loop.cases):
            self._backward(builder, c, case, translate, row, regions)
        node = builder.node()
        arrays = [(k - 1, (node, start)) for k, start in regions.items()]
        n = len(self.arrays)
        start = [(n + k, pick(node, at)) for k, at in enumerate(loop.start) if self.varied[n + k]]
        return arrays, start

    def _backward(
        self,
        builder: LoopBuilder,
        c: int,
        case: Case,
        translate: Callable[[MemoryPlace], MemoryPlace],
        row: int,
        regions: dict[int, int],
    ) -> None:
        """Add the reverse of one case to the reverse loop: from the adjoints of the scalars that
        the round wrote to those of the scalars it read.

        `row` is the index table of the tape, and `regions` are the positions of the adjoints of
        arrays in the memory of the reverse loop.
        """
        trace, kept = builder.case(), self.kept[c]
        memory = builder.array(self.node)
        with tracing(trace):
            reads: list[Node] = []
            varied: list[bool] = []
            for place in case.reads:
                at = translate(place)
                if place in kept:
                    at = MemoryPlace(memory, row, self.tape + kept.index(place))
                elif place.array == 0:
                    at = MemoryPlace(memory, at.rows, at.column)
                reads.append(trace.read(at))
                varied.append(self._varies(c, place))
            given: list[Adjoint] = []
            overwritten: dict[MemoryPlace, Node | float] = {}
            for place in reversed(case.writes):
                at = translate(place)._replace(add=False)
                given.append(None if at in overwritten else trace.read(at))
                if not place.add:
                    overwritten.setdefault(at, 0.0)
            (adjoints,) = reverse(case.body, [reads], [given[::-1]], [varied])
            added: dict[MemoryPlace, Node] = {}
            for place, x in zip(case.reads, adjoints, strict=True):
                if x is not None:
                    shift = regions[place.array] if place.array else 0
                    at = MemoryPlace(0, translate(place).rows, place.column + shift)
                    if at in overwritten:
                        overwritten[at] = x + overwritten[at]
                    else:
                        added[at] = added[at] + x if at in added else x
            own_rounds = builder.choice == len(builder.cases) - 1
            _check_apart(builder, own_rounds, [*overwritten], [*added])
            for at, x in overwritten.items():
                trace.write(at, x)
            for at, x in added.items():
                trace.write(at._replace(add=True), x)

    def _varies(self, c: int, place: MemoryPlace) -> bool:
        """Whether the scalar at a place may depend on a varied input, in some round of a case."""
        if place.array:
            return place.array > 0 and self.varied[place.array - 1]
        start = self.varied[len(self.arrays) :]
        fixed = {at for at, varies in zip(self.loop.start, start, strict=True) if varies}
        addresses = self._addresses(c, place).tolist()
        return self._overwritten(c, place) or not fixed.isdisjoint(addresses)


def _copies(
    size: int, whole: list[Slice], single: dict[int, Node]
) -> Iterator[tuple[Node, Array, Array]]:
    """Copies that add these adjoints into a memory of this size: the source array, the elements to
    copy, and their addresses in the memory."""
    for array, start in whole:
        yield array, start + np.arange(size), np.arange(size)
    inputs: dict[int, list[tuple[int, int]]] = defaultdict(list)
    others: list[tuple[int, Node]] = []
    tracer = tracer_in_progress()
    for at, x in sorted(single.items()):
        if tracer.inputs and x.op == "input":
            inputs[x.value[0]].append((x.value[1], at))
        else:
            others.append((at, x))
    for k, pairs in inputs.items():
        source, target = np.array(pairs, np.int64).T
        yield tracer.make("array", (), k), source, target
    if others:
        yield (
            array_of([x for _, x in others]),
            np.arange(len(others)),
            np.array([at for at, _ in others], np.int64),
        )


def _check_apart(
    builder: LoopBuilder,
    rounds: Array,
    overwritten: list[MemoryPlace],
    added: list[MemoryPlace],
) -> None:
    """Raise a TraceError if in one of the rounds an overwritten place and another place are the
    same element of the memory: the result would depend on the order of the writes. Only places with
    the same column can be."""
    rows = {p.rows: builder.row(p.rows)[rounds] for p in (*overwritten, *added)}
    for a in overwritten:
        for b in (*overwritten, *added):
            if a.column == b.column and a.rows != b.rows and (rows[a.rows] == rows[b.rows]).any():
                raise TraceError("a loop that reads and writes one element twice has no reverse")
