"""A graph as LLVM text: straight-line vector code whose lanes are rows of the batch.

The graph is emitted in trace order, in basic blocks of some hundred operations. Values that live
across blocks are kept in an explicit workspace: LLVM's code generator then stays quick and does not
spill. Additions and multiplications are fused here and not by LLVM, so that a result is the same,
to the bit, for every number of lanes and every row of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from phipsi.compile import llvm_driver, llvm_math
from phipsi.compile.graph import Case, Graph, LoopNode, MemoryPlace
from phipsi.compile.llvm_text import LlvmText, Machine
from phipsi.compile.ops import OPS
from phipsi.compile.schedule import Item, Room, Schedule, scheduled
from phipsi.typing import Array

HEADER = 64
"""Bytes of the workspace before the first value. They hold the addresses of the tables of loops:
first that of scalar code, then that of vector code, so that both can share a workspace; and
then a word that ends long loops."""

STOP = 16
"""The position of that word. A loop ends before its next round if the word is not 0."""

LONG = 1_000_000
"""The number of operations from which a loop reads that word."""


@dataclass(frozen=True)
class Module:
    """The LLVM text of `void run(ptr arrays, i64 start, i64 stop, ptr workspace)`, the bytes of
    workspace it needs, and the tables of its loops, whose address goes into the header."""

    text: str
    workspace: int
    tables: bytes


def emit(graph: Graph, machine: Machine) -> Module:
    """The module of a graph."""
    room, data = Room(), bytearray()
    text = LlvmText(machine)
    text.begin("entry")
    text.line(f"%data = load ptr, ptr {text.at('%work', tables_at(machine))}, align 8")
    sizes = [*(size for _, size in graph.inputs), *(len(nodes) for _, nodes in graph.outputs)]
    for k in range(len(sizes)):
        text.line(f"%base{k} = load ptr, ptr {text.at('%frame', 16 * k)}, align 8")
        text.line(f"%stride{k} = load i64, ptr {text.at('%frame', 16 * k + 8)}, align 8")
    Rows(graph, text, room, data).emit()
    text.line("ret void")
    values = HEADER + room.size * machine.width
    body = "\n".join(text.lines)
    functions = sorted({OPS[op].math for op in _operations(graph) if op in OPS} - {""})
    parts = (
        llvm_math.definitions(functions, machine.lanes, machine.dtype, machine.fma),
        llvm_driver.transposers(machine),
        f"define internal void @block(ptr noalias %frame, ptr noalias %work) {{\n{body}\n}}",
        llvm_driver.driver(machine, sizes, len(graph.inputs), values),
    )
    scratch = sum(sizes) * machine.width + 64 * machine.lanes * len(sizes)
    return Module("\n\n".join(parts), values + scratch, bytes(data))


def tables_at(machine: Machine) -> int:
    """The position, in the header of the workspace, of the address of the tables."""
    return 0 if machine.lanes == 1 else 8


def _operations(graph: Graph) -> Iterator[str]:
    """The operations of all nodes, also of those in loops."""
    for node in graph.nodes:
        yield node.op
        if node.op == "loop":
            loop: LoopNode = node.value
            for case in loop.cases:
                yield from _operations(case.body)


@dataclass
class Scope:
    """The code of one graph: the whole kernel, or the body of a loop.

    `room` allocates slots of the workspace, and `data` collects the tables of the module. `local`
    has the names of the values loaded or computed in the current segment, `slots` the slots of the
    values kept in the workspace, both by node.
    """

    graph: Graph
    text: LlvmText
    room: Room
    data: bytearray
    local: dict[int, str] = field(default_factory=dict[int, str])
    slots: dict[int, int] = field(default_factory=dict[int, int])
    segment: int = 0

    def emit(self) -> None:
        """Emit the code, segment by segment."""
        for segment, items in enumerate(self.plan.segments):
            self.segment = segment
            self.local.clear()
            if self.segment:
                self.text.jump(self.text.label())
            for item in items:
                getattr(self, item.kind)(item)
            for node in self.plan.ending[self.segment]:
                if node in self.slots:
                    self.room.release(self.slots.pop(node), self.plan.length(node))

    @property
    def plan(self) -> Schedule:
        """The order of the code, and the live ranges of values."""
        raise NotImplementedError

    def entered(self, node: int) -> None:
        """Load an input of the graph, and those loaded together with it, into `local`."""
        raise NotImplementedError

    # ---- values --------------------------------------------------------------------------------

    def value(self, node: int) -> str:
        """The name of a node's value in this segment."""
        op, args, constant = self.graph.nodes[node]
        if op == "const":
            return self.text.machine.constant(constant)
        if node not in self.local:
            if op == "pick":
                self.local[node] = self.text.load(
                    "%work", self._address(self.slots[args[0]] + constant)
                )
            elif node in self.slots:
                self.local[node] = self.text.load("%work", self._address(self.slots[node]))
            else:
                self.entered(node)
        return self.local[node]

    def define(self, node: int, name: str) -> None:
        """Set the name of a node's value; store it in the workspace if a later segment reads it."""
        self.local[node] = name
        if self.plan.last[node] > self.segment:
            self.text.store(name, "%work", self._address(self._allocated(node)))

    def _allocated(self, node: int) -> int:
        """The first of new slots for a node."""
        at = self.slots[node] = self.room.allocate(self.plan.length(node))
        return at

    def _address(self, slot: int) -> int:
        """The offset of a slot in the workspace [bytes]."""
        return HEADER + slot * self.text.machine.width

    # ---- items, by kind ------------------------------------------------------------------------

    def op(self, item: Item) -> None:
        """One arithmetic operation."""
        node = item.nodes[0]
        m = self.text.machine
        name = self.text.name()
        operands = [self.value(a) for a in item.operands]
        text = OPS[self.graph.nodes[node].op].llvm.format(
            *operands, r=name, T=m.T, m=m.vector("i1"), s=m.suffix, one=m.constant(1.0)
        )
        for line in text.split(";"):
            self.text.line(line)
        self.define(node, name)

    def fma(self, item: Item) -> None:
        """±a b ± c with one rounding; `item.signs` has the signs of the product and of c."""
        m = self.text.machine
        a, b, c = (self.value(x) for x in item.operands)
        if item.signs[0] < 0:
            a = self.text.make(f"fneg {m.T} {a}")
        if item.signs[1] < 0:
            c = self.text.make(f"fneg {m.T} {c}")
        call = f"call {m.T} @llvm.fma.{m.suffix}({m.T} {a}, {m.T} {b}, {m.T} {c})"
        self.define(item.nodes[0], self.text.make(call))

    def sincos(self, item: Item) -> None:
        """Sine and cosine of one angle."""
        m = self.text.machine
        pair = f"{{ {m.T}, {m.T} }}"
        both = self.text.make(f"call {pair} @phipsi.sincos({m.T} {self.value(item.operands[0])})")
        for node in item.nodes:
            which = 0 if self.graph.nodes[node].op == "sin" else 1
            self.define(node, self.text.make(f"extractvalue {pair} {both}, {which}"))

    def pack(self, item: Item) -> None:
        """An array of scalars: stored in adjacent slots of the workspace."""
        at = self._allocated(item.nodes[0])
        for i, x in enumerate(item.operands):
            self.text.store(self.value(x), "%work", self._address(at + i))

    def loop(self, item: Item) -> None:
        """All rounds of a loop."""
        node, text = item.nodes[0], self.text
        loop: LoopNode = self.graph.nodes[node].value
        args = self.graph.nodes[node].args
        arrays = args[: len(args) - len(loop.start)]
        own = self._allocated(node)
        first, end = loop.cleared
        if end > first:
            width = text.machine.width
            address = f"ptr align {width} {text.at('%work', self._address(own + first))}"
            size = (end - first) * width
            text.line(f"call void @llvm.memset.p0.i64({address}, i8 0, i64 {size}, i1 false)")
        for at, x in zip(loop.start, args[len(arrays) :], strict=True):
            text.store(self.value(x), "%work", self._address(own + at))
        if not loop.count:
            return
        before, head, latch, after = (text.label() for _ in range(4))
        text.jump(before)
        text.jump(head)
        i, following = text.name(), text.name()
        text.line(f"{i} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]")
        cases = [text.label() for _ in loop.cases]
        choice = self._number(self._data(loop.choice), i) if len(cases) > 1 else "0"
        others = " ".join(f"i64 {k}, label %{c}" for k, c in enumerate(cases[1:], 1))
        text.line(f"switch i64 {choice}, label %{cases[0]} [ {others} ]")
        indices = [self._data(row) for row in loop.indices]
        with np.errstate(over="ignore"):
            numbers = loop.table.astype(text.machine.dtype)
        table = self._data(numbers)
        bases = {-1: table, 0: own, **{k: self.slots[a] for k, a in enumerate(arrays, 1)}}
        for label, case in zip(cases, loop.cases, strict=True):
            text.begin(label)
            body = Round(case.body, text, self.room, self.data)
            body.enter(case, bases, lambda k: self._number(indices[k], i))
            body.emit()
            text.line(f"br label %{latch}")
        text.begin(latch)
        text.line(f"{following} = add i64 {i}, 1")
        done = text.make(f"icmp eq i64 {following}, {loop.count}")
        if loop.operations >= LONG:
            word = text.make(f"load volatile i64, ptr {text.at('%work', STOP)}, align 8")
            stop = text.make(f"icmp ne i64 {word}, 0")
            done = text.make(f"or i1 {done}, {stop}")
        text.line(f"br i1 {done}, label %{after}, label %{head}")
        text.begin(after)

    def _data(self, table: Array) -> int:
        """Add a table to those of the module; returns its position there [bytes]."""
        at = len(self.data)
        content = np.ascontiguousarray(table).tobytes()
        self.data += content + bytes(-len(content) % 64)
        return at

    def _number(self, at: int, i: str) -> str:
        """Load element i of a table of integers."""
        address = self.text.make(f"getelementptr i64, ptr {self.text.at('%data', at)}, i64 {i}")
        return self.text.make(f"load i64, ptr {address}, align 8")


class Rows(Scope):
    """The whole kernel: inputs are read from rows of arrays, outputs written to them."""

    @property
    def plan(self) -> Schedule:
        """As many adjacent elements as there are lanes are loaded and stored together, for as many
        rows: they are transposed in registers."""
        if "_plan" not in self.__dict__:
            m = self.text.machine
            self._plan = scheduled(self.graph, m.fma, chunk=m.lanes)
        return self._plan

    def entered(self, node: int) -> None:
        """Load the chunk of an input."""
        k: int
        element: int
        k, element = self.graph.nodes[node].value
        m = self.text.machine
        first = element - element % m.lanes
        count = min(m.lanes, self.graph.inputs[k][1] - first)
        values = self.text.load_rows(f"%base{k}", f"%stride{k}", first * m.size, count)
        for other in self.plan.chunks[k, first]:
            element = self.graph.nodes[other].value[1]
            self.define(other, values[element - first])

    def store(self, item: Item) -> None:
        """Store a chunk of an output."""
        k, first = item.place
        k += len(self.graph.inputs)
        values = [self.value(x) for x in item.operands]
        offset = first * self.text.machine.size
        self.text.store_rows(values, f"%base{k}", f"%stride{k}", offset)

    def array(self, item: Item) -> None:
        """Copy a whole input into the workspace."""
        k: int = self.graph.nodes[item.nodes[0]].value
        at = self._allocated(item.nodes[0])
        self._copy("in", at, k, self.graph.inputs[k][1])

    def spread(self, item: Item) -> None:
        """Store a whole output, whose elements are elements of arrays in the workspace and
        constants; if they are not in adjacent slots, they are copied to such first."""
        (k,), nodes = item.place, self.graph.outputs[item.place[0]][1]
        constants: dict[float, int] = {}
        slots: list[int] = []
        for op, args, value in (self.graph.nodes[n] for n in nodes):
            if op == "const" and value not in constants:
                constants[value] = self.room.allocate(1)
                self.text.store(
                    self.text.machine.constant(value), "%work", self._address(constants[value])
                )
            slots.append(constants[value] if op == "const" else self.slots[args[0]] + value)
        at, gaps = slots[0], np.diff(slots) != 1
        if gaps.any():
            at = self.room.allocate(len(slots))
            table = self.text.at("%data", self._data(np.array(slots, np.int64)))
            first, target = (self.text.at("%work", self._address(x)) for x in (0, at))
            call = f"ptr {target}, ptr {first}, ptr {table}, i64 {len(slots)}"
            self.text.line(f"call void @phipsi.arranged({call})")
            self.room.release(at, len(slots))
        self._copy("out", at, k + len(self.graph.inputs), len(slots))
        for slot in constants.values():
            self.room.release(slot, 1)

    def _copy(self, way: str, at: int, k: int, size: int) -> None:
        """Copy array k to (`way` "in") or from ("out") slots of the workspace, from slot `at`."""
        address = self.text.at("%work", self._address(at))
        self.text.line(
            f"call void @phipsi.rows.{way}(ptr {address}, ptr %base{k}, i64 %stride{k}, i64 {size})"
        )


class Round(Scope):
    """The body of a loop: inputs are loaded from memory by index, outputs stored likewise."""

    def enter(self, case: Case, bases: Mapping[int, int], index: Callable[[int], str]) -> None:
        """Set the places that the round reads and writes, the positions of the arrays that they
        name, and the function that loads an element of index table k."""
        reads, writes = case.reads, case.writes
        self.reads, self.writes, self.bases = reads, writes, bases
        columns = {j: p.column for j, p in enumerate(reads) if p.array == 0}
        self._plan = scheduled(self.graph, self.text.machine.fma, writes=writes, columns=columns)
        used = sorted({p.rows for p in (*reads, *writes)})
        self.indices = {k: index(k) for k in used}

    @property
    def plan(self) -> Schedule:
        """A value is written as soon as every input in the same column of the memory is read."""
        return self._plan

    def _at(self, place: MemoryPlace) -> str:
        """The address of a place."""
        m, text, index = self.text.machine, self.text, self.indices[place.rows]
        at = self.bases[place.array]
        if place.array < 0:
            base = text.at("%data", at + place.column * m.size)
            return text.make(f"getelementptr {m.scalar}, ptr {base}, i64 {index}")
        base = text.at("%work", self._address(at + place.column))
        return text.make(f"getelementptr {m.T}, ptr {base}, i64 {index}")

    def entered(self, node: int) -> None:
        """Load a scalar from its place."""
        m, text = self.text.machine, self.text
        number: int = self.graph.nodes[node].value[1]
        place = self.reads[number]
        address = self._at(place)
        if place.array >= 0:
            value = text.load(address)
        else:
            value = text.make(f"load {m.scalar}, ptr {address}, align {m.size}")
            if m.lanes > 1:
                first = text.make(f"insertelement {m.T} poison, {m.scalar} {value}, i32 0")
                value = text.make(
                    f"shufflevector {m.T} {first}, {m.T} poison, <{m.lanes} x i32> zeroinitializer"
                )
        self.define(node, value)

    def read(self, item: Item) -> None:
        """Load a scalar before its place is overwritten."""
        self.value(item.operands[0])

    def write(self, item: Item) -> None:
        """Store a scalar to its place, or add it there."""
        place = self.writes[item.place[0]]
        value, address = self.value(item.operands[0]), self._at(place)
        if place.add:
            there = self.text.load(address)
            value = self.text.make(f"fadd {self.text.machine.T} {there}, {value}")
        self.text.store(value, address)
