"""The scalar program: a frozen list of instructions in trace order, with one structured node,
`LoopNode`.

A graph knows nothing of robots, batches, dtypes or machines. It is made by a `Tracer` and read by
the backends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from phipsi.cached import cached_property
from phipsi.compile.ops import OPS
from phipsi.typing import Array


class Instruction(NamedTuple):
    """One node; `args` are numbers of earlier nodes. `op` is a row of `OPS`, or `const` (value),
    `input` ((input, element)), or one of those that deal with arrays of scalars: `array` (a whole
    input), `pack` (its args), `loop` (the memory of a `LoopNode`), `pick` (one element)."""

    op: str
    args: tuple[int, ...] = ()
    value: Any = None


class MemoryPlace(NamedTuple):
    """Where a round of a loop reads or writes: element indices[rows, round] + column of an array.

    `array` 0 is the loop's own memory, 1, 2, … its array args, −1 its table of numbers. `add`: the
    value written is added to what is there.
    """

    array: int
    rows: int
    column: int
    add: bool = False


@dataclass(frozen=True, eq=False)
class Case:
    """One kind of round: a body from the scalars read to the scalars written."""

    body: Graph
    reads: tuple[MemoryPlace, ...]
    writes: tuple[MemoryPlace, ...]


@dataclass(frozen=True, eq=False)
class LoopNode:
    """`count` rounds over an indexed memory of `size` scalars; round r runs cases[choice[r]].

    Before the first round the range `cleared` of the memory is zero and the scalar args (the last
    len(start)) stand at `start`; the args before them are arrays. A round reads all its places,
    then writes. Places with different columns never meet.
    """

    count: int
    cases: tuple[Case, ...]
    choice: Array
    indices: Array
    table: Array
    size: int
    start: tuple[int, ...] = ()
    cleared: tuple[int, int] = (0, 0)

    def rounds(self) -> Iterator[tuple[Case, int]]:
        """Every case with the number of its rounds."""
        return zip(self.cases, np.bincount(self.choice, minlength=len(self.cases)), strict=True)

    @property
    def operations(self) -> int:
        """Number of arithmetic operations of all rounds."""
        return sum(case.body.operations * int(rounds) for case, rounds in self.rounds())


@dataclass(frozen=True)
class Graph:
    """Instructions, the (name, size) of each input and the (name, nodes) of each output."""

    inputs: tuple[tuple[str, int], ...]
    nodes: tuple[Instruction, ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]

    def __reduce__(self) -> tuple[Callable[..., Graph], tuple[object, ...]]:
        ops, args, values = zip(*self.nodes, strict=True) if self.nodes else ((), (), ())
        return _of_columns, (self.inputs, ops, args, values, self.outputs)

    def with_inputs(self, inputs: tuple[tuple[str, int], ...], number: dict[int, int]) -> Graph:
        """The same graph with its one input renumbered."""
        nodes = (
            Instruction("input", (), (0, number[n.value[1]])) if n.op == "input" else n
            for n in self.nodes
        )
        return Graph(inputs, tuple(nodes), self.outputs)

    @cached_property
    def users(self) -> list[list[int]]:
        """For each node the instructions that read it, in order and once for each operand; an
        output is read past the end."""
        users: list[list[int]] = [[] for _ in self.nodes]
        for i, node in enumerate(self.nodes):
            for a in node.args:
                users[a].append(i)
        for _, indices in self.outputs:
            for i in indices:
                users[i].append(len(self.nodes))
        return users

    @cached_property
    def last_use(self) -> list[int]:
        """For each node the last instruction that reads it, past the end for an output."""
        last = [*range(len(self.nodes))]
        for i, node in enumerate(self.nodes):
            for a in node.args:
                last[a] = i
        for _, indices in self.outputs:
            for i in indices:
                last[i] = len(self.nodes)
        return last

    def count(self) -> dict[str, int]:
        """How many of each arithmetic operation one evaluation takes (loops counted in full)."""
        total: dict[str, int] = {}
        for node in self.nodes:
            if node.op in OPS:
                total[node.op] = total.get(node.op, 0) + 1
            elif node.op == "loop":
                for case, rounds in node.value.rounds():
                    for op, n in case.body.count().items():
                        total[op] = total.get(op, 0) + n * int(rounds)
        return total

    @property
    def operations(self) -> int:
        """Number of arithmetic operations of one evaluation."""
        return sum(self.count().values())

    @property
    def size(self) -> int:
        """Number of nodes, with those in the bodies of loops: the size of the code."""
        loops: list[LoopNode] = [node.value for node in self.nodes if node.op == "loop"]
        return len(self.nodes) + sum(case.body.size for loop in loops for case in loop.cases)

    def lines(self) -> Iterator[str]:
        """The program as text, one instruction a line."""
        for i, node in enumerate(self.nodes):
            yield f"%{i} = {self._text(node)}"
            if node.op == "loop":
                for case, rounds in node.value.rounds():
                    yield f"    {rounds} ×"
                    yield from (f"    | {line}" for line in _case_lines(case))
        for name, indices in self.outputs:
            yield f"{name} = [{', '.join(f'%{i}' for i in indices)}]"

    def _text(self, node: Instruction) -> str:
        op, args, value = node
        names = [f"%{a}" for a in args]
        match op:
            case "const":
                return f"{value!r}"
            case "input":
                return f"{self.inputs[value[0]][0]}[{value[1]}]"
            case "array":
                return f"{self.inputs[value][0]}[:]"
            case "pack":
                return f"[{', '.join(names)}]"
            case "loop":
                arrays = len(args) - len(value.start)
                put = (f"[{at}] = {x}" for at, x in zip(value.start, names[arrays:], strict=True))
                return f"loop of {value.size} over {' '.join(names[:arrays])}; {', '.join(put)}"
            case "pick":
                return f"{names[0]}[{value}]"
            case _ if OPS[op].infix:
                return f"{names[0]} {OPS[op].infix} {names[1]}"
            case _:
                return f"{op} {' '.join(names)}"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    @property
    def whole(self) -> Graph:
        """The graph itself."""
        return self

    @cached_property
    def digest(self) -> str:
        """A digest of the whole program: equal programs have equal digests."""
        text = hashlib.sha256("\n".join(self.lines()).encode())
        entered = [n.value for n in self.nodes if n.op in ("input", "array")]
        text.update(repr((self.inputs, entered)).encode())  # names need not be unique
        for node in self.nodes:
            if node.op == "loop":
                loop = node.value
                text.update(repr((loop.count, loop.size, loop.start, loop.cleared)).encode())
                for table in (loop.choice, loop.indices, loop.table):
                    text.update(repr(table.shape).encode() + table.tobytes())
                for case in loop.cases:
                    text.update(case.body.digest.encode())
        return text.hexdigest()


def _of_columns(
    inputs: tuple[tuple[str, int], ...],
    ops: tuple[str, ...],
    args: tuple[tuple[int, ...], ...],
    values: tuple[Any, ...],
    outputs: tuple[tuple[str, tuple[int, ...]], ...],
) -> Graph:
    """The graph with these operations, operands and values of its nodes; pickles call this."""
    return Graph(inputs, tuple(map(Instruction, ops, args, values)), outputs)


@dataclass(frozen=True)
class Recalled:
    """A graph known by its digest and size, and traced only when its instructions are needed."""

    digest: str
    operations: int
    trace: Callable[[], Graph]

    @cached_property
    def whole(self) -> Graph:
        """The graph."""
        return self.trace()


def _case_lines(case: Case) -> Iterator[str]:
    def shown(place: MemoryPlace) -> str:
        array = {-1: "table", 0: "memory"}.get(place.array, f"arg{place.array}")
        return f"{array}[i{place.rows} + {place.column}]"

    for j, place in enumerate(case.reads):
        yield f"read[{j}] = {shown(place)}"
    yield from case.body.lines()
    for j, place in enumerate(case.writes):
        yield f"{shown(place)} {'+=' if place.add else '='} written[{j}]"
