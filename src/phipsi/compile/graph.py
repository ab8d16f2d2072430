"""The scalar program: a frozen list of instructions in trace order, and one structured node, Loop.

A graph knows nothing of robots, batches, dtypes or machines. It is made by a `Tracer` and read by
the backends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from phipsi.compile.ops import OPS


class Instruction(NamedTuple):
    """One node: `op` is a row of `OPS`, or `const` (value), `input` ((input, element)), `loop`
    (a `Loop`), `pick` (which result of a loop). `args` are numbers of earlier nodes."""

    op: str
    args: tuple[int, ...] = ()
    value: Any = None


@dataclass(frozen=True, eq=False)
class Loop:
    """`count` rounds of a body graph.

    The inputs of the body are, in order: `carry` (from the round before), `tables` (a constant row
    per round), `sequence` (a computed row per round) and `fixed` (the same in every round). Its two
    outputs are the next carry and a row of results. Args of the loop node: initial carry, then the
    sequence (count rows), then fixed. Results: final carry, then the rows of results.
    """

    count: int
    body: Graph
    tables: np.ndarray


@dataclass(frozen=True)
class Graph:
    """Instructions, the (name, size) of each input and the (name, nodes) of each output."""

    inputs: tuple[tuple[str, int], ...]
    nodes: tuple[Instruction, ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def pruned(
        cls,
        inputs: Iterable[tuple[str, int]],
        nodes: list[Instruction],
        outputs: list[tuple[str, tuple[int, ...]]],
    ) -> Graph:
        """The graph without the nodes that no output needs, order kept."""
        alive = bytearray(len(nodes))
        for _, indices in outputs:
            for i in indices:
                alive[i] = 1
        for i in range(len(nodes) - 1, -1, -1):
            if alive[i]:
                for a in nodes[i].args:
                    alive[a] = 1
        number: dict[int, int] = {}
        kept: list[Instruction] = []
        for i, node in enumerate(nodes):
            if alive[i]:
                number[i] = len(kept)
                args = tuple(number[a] for a in node.args)
                kept.append(Instruction(node.op, args, node.value))
        renumbered = tuple((name, tuple(number[i] for i in idx)) for name, idx in outputs)
        return cls(tuple(inputs), tuple(kept), renumbered)

    @cached_property
    def last_use(self) -> list[int]:
        """For each node the last instruction that reads it, past the end for an output."""
        last = list(range(len(self.nodes)))
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
                for op, n in node.value.body.count().items():
                    total[op] = total.get(op, 0) + n * node.value.count
        return total

    @property
    def operations(self) -> int:
        """Number of arithmetic operations of one evaluation."""
        return sum(self.count().values())

    def lines(self) -> Iterator[str]:
        """The program as text, one instruction a line."""
        for i, (op, args, value) in enumerate(self.nodes):
            names = [f"%{a}" for a in args]
            match op:
                case "const":
                    text = f"{value!r}"
                case "input":
                    text = f"{self.inputs[value[0]][0]}[{value[1]}]"
                case "loop":
                    text = (
                        f"loop {value.count} × {{{len(value.body.nodes)} nodes}} {' '.join(names)}"
                    )
                case "pick":
                    text = f"pick {names[0]} [{value}]"
                case _ if OPS[op].infix:
                    text = f"{names[0]} {OPS[op].infix} {names[1]}"
                case _:
                    text = f"{op} {' '.join(names)}"
            yield f"%{i} = {text}"
            if op == "loop":
                yield from (f"    | {line}" for line in value.body.lines())
        for name, indices in self.outputs:
            yield f"{name} = [{', '.join(f'%{i}' for i in indices)}]"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    @cached_property
    def digest(self) -> str:
        """A digest of the whole program: equal programs have equal digests."""
        text = hashlib.sha256()
        for line in self.lines():
            text.update(line.encode() + b"\n")
        for node in self.nodes:
            if node.op == "loop":
                text.update(node.value.body.digest.encode() + node.value.tables.tobytes())
        return text.hexdigest()
