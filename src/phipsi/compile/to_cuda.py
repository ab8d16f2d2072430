"""A graph as a CUDA kernel: one thread for each row of the batch.

Arrays stay as the user has them, (rows, n): a warp brings its 32 rows into shared memory together,
so that neighbouring threads read neighbouring numbers, and each thread takes its own from there
when it needs them; results go the same way. Inputs too wide for that are read where they are, and
results too wide are written in chunks of columns.
The memory of loops is a thread's own if it is small; else it is a workspace in which neighbouring
threads are neighbours, and threads take one row after the other. What is measured of all this, and
why code should be short, is in docs/gpu.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from phipsi.compile import cuda_prelude
from phipsi.compile.c_text import sum_of
from phipsi.compile.cuda_text import CudaText
from phipsi.compile.graph import Graph
from phipsi.compile.hoisted_sincos import HoistedSincos
from phipsi.compile.loop_layout import filled, layouts
from phipsi.compile.register_pressure import alive, nearby, ordered
from phipsi.compile.schedule import Item, Room, fused_products, itemized, with_stores
from phipsi.compile.to_c import Scope

WARPS = 2
"""Warps in a block, or one where their shared memory would be too large: as many blocks as there
are registers for."""

BLOCKS = 0
"""Blocks that a multiprocessor must be able to hold, which bounds the registers; 0: as it comes."""

TILE = 40 << 10
"""Bytes of shared memory for the rows of a warp."""

SHARED = 48 << 10
"""Bytes of shared memory that a block can have."""

CHUNK = 8
"""Columns written together of results that are too wide."""

LOCAL = 256
"""Numbers in the memory of loops up to which a thread keeps them as its own."""

ALIVE = 1200
"""Bytes of values alive at once from which on registers are short: sines and cosines are kept in
shared memory, and what is there is read again and again."""

AGAIN = 300
"""Operations after which it is read again."""

NAME = "phipsi_kernel"
"""The kernel's name."""


@dataclass(frozen=True)
class Module:
    """CUDA text of a kernel `NAME(Given)`, how many threads its blocks have at most (a multiple of
    32), and the numbers of workspace each thread needs (0: as many threads as rows, no workspace).

    `Given` is the number of rows; for each input, then each output the address and the distance of
    its rows (0: one row for all); the address of the workspace.
    """

    text: str
    threads: int
    work: int


def emit(graph: Graph, dtype: str) -> Module:
    """The module of a graph."""
    text = CudaText(dtype)
    kernel = Threads(ordered(graph), text)
    kernel.emit()
    tile = kernel.columns * 32 * text.size
    warps = max(1, min(WARPS, SHARED // max(tile, 1)))
    work = kernel.room.size if kernel.room.size > LOCAL else 0
    body = _kernel(kernel, warps, work)
    parts = [_head(graph, dtype), *cuda_prelude.definitions(text, body), _given(graph, text.T)]
    if text.tables:
        parts += [f"#define PHIPSI_TABLE {text.where} const", "\n".join(text.tables)]
    if text.constants:
        parts.append(text.fixed())
    return Module("\n\n".join([*parts, body]) + "\n", 32 * warps, work)


class Threads(Scope):
    """The whole graph, for one row by each thread."""

    def __init__(self, graph: Graph, text: CudaText) -> None:
        super().__init__(graph, text, Room())
        self.most = TILE // (32 * text.size)
        self.layouts = layouts(graph)
        self.direct = filled(self.layouts)
        """Outputs that loops write themselves, and which of their elements."""
        self.rows = {n.value for n in graph.nodes if n.op == "array"}
        """Inputs that are read where they are."""
        self.items = list(itemized(graph, nearby(graph, fused_products(graph))))
        self.hoisted = HoistedSincos()
        if max(alive(graph), default=0) * text.size > ALIVE:
            hoisted, items = HoistedSincos.among(graph, self.items)
            angles = pitch(graph.inputs[hoisted.array][1]) if hoisted.array >= 0 else 0
            if hoisted.columns + angles + pitch(CHUNK) <= self.most:
                self.hoisted, self.items = hoisted, items
        self.kept: dict[int, str] = {}
        """Where sines and cosines are found in shared memory."""
        self.places: dict[int, int] = {}
        """Where in a row of shared memory an array of ours stands, if it is there as a whole."""
        self.columns, self.scratch = self.hoisted.columns, -1
        used = {node.value[0] for node in graph.nodes if node.op == "input"}
        for k in sorted(used, key=lambda k: (k != self.hoisted.array, k)):
            self._placed(k, graph.inputs[k][1])
        self.rows |= used - set(self.places)
        for k, (_, nodes) in enumerate(graph.outputs):
            if nodes and k not in self.direct:
                self._placed(len(graph.inputs) + k, len(nodes), self._free(nodes))
                if len(graph.inputs) + k not in self.places:
                    self.scratch = self.columns
        if self.scratch >= 0:
            self.scratch = self.columns
            self.columns += pitch(CHUNK)

    def _free(self, nodes: Sequence[int]) -> int:
        """An input in shared memory of the size of an output, all read before the first of it is
        computed; −1 if there is none."""
        at = {node: i for i, item in enumerate(self.items) for node in item.nodes}
        if any(node not in at for node in nodes):
            return -1
        first = min(at[node] for node in nodes)
        read = [x for item in self.items[first:] for x in item.operands]
        read += [x for _, stored in self.graph.outputs for x in stored]
        late = {self.graph.nodes[x].value[0] for x in read if self.graph.nodes[x].op == "input"}
        taken = {self.places[k] for k in self.places if k >= len(self.graph.inputs)}
        for k, (_, size) in enumerate(self.graph.inputs):
            usable = k in self.places and self.places[k] not in taken and k not in late
            if usable and size == len(nodes) and k != self.hoisted.array:
                return k
        return -1

    def _placed(self, k: int, size: int, over: int = -1) -> None:
        """Find room for an array in shared memory, if there is, or put it over another."""
        if over >= 0:
            self.places[k] = self.places[over]
        elif self.columns + pitch(size) + pitch(CHUNK) <= self.most:
            self.places[k] = self.columns
            self.columns += pitch(size)

    def ordered(self) -> list[Item]:
        """Every result is stored as soon as it, or its chunk, is there."""
        items = with_stores(self.graph, self.items, list(self._stores()))
        if not self.hoisted.columns:
            return items
        for i in range(len(items) - len(items) % AGAIN, 0, -AGAIN):
            items.insert(i, Item("again", (), ()))
        return items

    def _stores(self) -> Iterator[Item]:
        for k, (_, nodes) in enumerate(self.graph.outputs):
            if k in self.direct:
                for i, n in enumerate(nodes):
                    if i not in self.direct[k]:
                        yield Item("store", (), (n,), (k, i))
                continue
            chunk = 1 if len(self.graph.inputs) + k in self.places else CHUNK
            if chunk > 1 and nodes and all(self.graph.nodes[n].op == "pick" for n in nodes):
                sources = (self.graph.nodes[n].args[0] for n in nodes)
                yield Item("spread", (), tuple(dict.fromkeys(sources)), (k,))
                continue
            for first in range(0, len(nodes), chunk):
                yield Item("store", (), nodes[first : first + chunk], (k, first))

    def rolled(self, item: Item) -> None:
        """Sines and cosines in loops; from now on they are in shared memory."""
        text, k, n = self.text, self.hoisted.array, len(self.hoisted.rest)
        own = np.array([self.graph.nodes[x.operands[0]].value[1] for x in self.hoisted.own])
        m = len(own)
        for j, x in enumerate(self.hoisted.rest):
            text.line(f"turns[{m + j}] = {self.value(x.operands[0])};")
        places = [(f"a{k}[{element}]", f"turns[{j}]") for j, element in enumerate(own)]
        places += [(f"turns[{m + j}]", f"turns[{m + n + j}]") for j in range(n)]
        for x, place in zip((*self.hoisted.own, *self.hoisted.rest), places, strict=True):
            for node in x.nodes:
                self.kept[node] = place[self.graph.nodes[node].op == "cos"]
        text.used.add("sincos")
        if m:
            with text.rounds(m) as i:
                angle = f"a{k}[{sum_of(*text.by_round(own, i, own >= 0))}]"
                text.line(f"phipsi_sincos({angle}, &{angle}, &turns[{i}]);")
        if n:
            with text.rounds(n) as i:
                angle, cosine = f"turns[{i} + {m}]", f"turns[{i} + {m + n}]"
                text.line(f"phipsi_sincos({angle}, &{angle}, &{cosine});")
        self.again(item)

    def again(self, item: Item) -> None:
        """Let go of what is in shared memory: it is read again where it is needed."""
        for node in list(self.local):
            op, _, value = self.graph.nodes[node]
            if node in self.kept or (op == "input" and value[0] in self.places):
                del self.local[node]
        self.text.line('asm volatile("" ::: "memory");')

    def entered(self, node: int) -> str:
        """Read an element of an input, a sine or a cosine."""
        if node in self.kept:
            return self.text.let(self.kept[node])
        k, element = self.graph.nodes[node].value
        return self.text.let(f"{'a' if k in self.places else 'row'}{k}[{element}]")

    def element(self, k: int, at: str) -> str:
        """Element `at` of the whole input k."""
        return f"row{k}[{at}]"

    def result(self, k: int, at: str) -> str:
        """Element `at` of output k."""
        return f"row{len(self.graph.inputs) + k}[{at}]"

    def store(self, item: Item) -> None:
        """Write a result into shared memory, a chunk from there to where it belongs."""
        k, first = item.place
        if k in self.direct:
            self.text.line(f"{self.result(k, str(first))} = {self.value(item.operands[0])};")
            return
        k += len(self.graph.inputs)
        text, values = self.text, [self.value(x) for x in item.operands]
        if k in self.places:
            text.line(f"a{k}[{first}] = {values[0]};")
            return
        size = len(values)
        for i, x in enumerate(values):
            text.line(f"scratch[{pitch(size)} * lane + {i}] = {x};")
        text.line("__syncwarp();")
        text.line(self._moved("store", k, size, first))
        text.line("__syncwarp();")

    def spread(self, item: Item) -> None:
        """Write an output that is made of elements of memory, chunk by chunk."""
        (k,), nodes = item.place, self.graph.outputs[item.place[0]][1]
        k += len(self.graph.inputs)
        text, whole = self.text, len(nodes) - len(nodes) % CHUNK
        picks = [self.graph.nodes[n] for n in nodes]
        slots = [self.slots[n.args[0]] + self._kept(n.args[0], n.value) for n in picks]
        if not whole:
            self.store(Item("store", (), nodes, (item.place[0], 0)))
            return
        with text.rounds(whole // CHUNK) as i:
            for c in range(CHUNK):
                row = np.array(slots[c:whole:CHUNK])
                at = sum_of(*text.by_round(row, i, row >= 0))
                text.line(f"scratch[{pitch(CHUNK)} * lane + {c}] = {text.memory(at)};")
            text.line("__syncwarp();")
            text.line(self._moved("store", k, CHUNK, f"{CHUNK} * {i}"))
            text.line("__syncwarp();")
        if whole < len(nodes):
            self.store(Item("store", (), nodes[whole:], (item.place[0], whole)))

    def _moved(
        self, how: str, k: int, size: int, first: int | str = 0, tile: str = "scratch"
    ) -> str:
        """The statement that moves columns of an array between device and shared memory."""
        address = f"given.a{k} + {first}" if first else f"given.a{k}"
        more = f"{tile}, {address}, given.s{k}, first, given.rows, lane"
        part = "_part" if tile == "scratch" else ""
        return f"phipsi_{how}{part}<{size}, {pitch(size)}>({more});"

    def staged(self) -> tuple[list[str], list[str]]:
        """Statements before and after all others: rows come in, and results go out."""
        T, n = self.text.T, len(self.graph.inputs)
        before: list[str] = []
        loads, after = [], []
        for k, at in self.places.items():
            name, size = self._array(k)
            tile = f"tile + {32 * at}"
            before.append(f"{T} *const a{k} = {tile} + {pitch(size)} * lane;  // {_plain(name)}")
            (loads if k < n else after).append(
                self._moved("load" if k < n else "store", k, size, tile=tile)
            )
        if self.hoisted.columns:
            before.append(f"{T} *const turns = tile + {self.hoisted.columns} * lane;")
        if self.scratch >= 0:
            before.append(f"{T} *const scratch = tile + {32 * self.scratch};")
        for k in sorted(self.rows | {n + k for k in self.direct}):
            const = "const " if k < n else ""
            before.append(f"{const}{T} *const row{k} = given.a{k} + row * given.s{k};")
        if loads:
            before += [*loads, "phipsi_arrived();"]
        return before, ["__syncwarp();", *after] if after else []

    def _array(self, k: int) -> tuple[str, int]:
        n = len(self.graph.inputs)
        if k < n:
            return self.graph.inputs[k]
        name, nodes = self.graph.outputs[k - n]
        return name, len(nodes)


def pitch(columns: int) -> int:
    """How far apart rows stand in shared memory: as in the array, unless more than four of 32 rows
    would be in one bank."""
    return columns if gcd(columns, 32) <= 4 else columns + 1


def _kernel(kernel: Threads, warps: int, work: int) -> str:
    text, size = kernel.text, kernel.room.size
    bounds = f"{32 * warps}, {BLOCKS}" if BLOCKS else f"{32 * warps}"
    out = [f'extern "C" __global__ void __launch_bounds__({bounds}) {NAME}(const Given given) {{']
    out.append("  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;")
    if kernel.columns:
        out.append(f"  __shared__ __align__(16) {text.T} tiles[{warps}][{32 * kernel.columns}];")
        out.append(f"  {text.T} *const tile = tiles[warp];")
    start = "(long long)blockIdx.x * blockDim.x + 32 * warp"
    if work:
        out.append("  const long long lanes = (long long)gridDim.x * blockDim.x;")
        out.append(
            f"  {text.T} *const w = given.w + (long long)blockIdx.x * blockDim.x + threadIdx.x;"
        )
        out.append(f"  for (long long first = {start}; first < given.rows; first += lanes) {{")
    else:
        out.append(f"  const long long first = {start};")
        out.append("  if (first >= given.rows) return;")
        out.append("  {")
        if size:
            out.append(f"  {text.T} w[{size}];")
    before, after = kernel.staged()
    row = "  const long long row = first + lane < given.rows ? first + lane : given.rows - 1;"
    out += [row] * any("+ row *" in line for line in before)
    out += [f"  {line}" for line in before] + text.lines + [f"  {line}" for line in after]
    out += ["  __syncwarp();", "  }"] if work else ["  }"]
    at = "w[(at) * lanes]" if work else "w[at]"
    memory = f"#define PHIPSI_W(at) {at}\n\n" if size else ""
    return memory + "\n".join([*out, "}"])


def _head(graph: Graph, dtype: str) -> str:
    names = ", ".join(f"{name} ({size})" for name, size in graph.inputs)
    return f"// {graph.operations} operations, {dtype}; of {_plain(names)}"


def _plain(names: str) -> str:
    """Text that a comment can hold."""
    return "".join(c if c.isprintable() and c != "\\" else "?" for c in names)


def _given(graph: Graph, T: str) -> str:
    n = len(graph.inputs)
    lines = ["struct Given {", "  long long rows;"]
    for k in range(n + len(graph.outputs)):
        lines.append(f"  {'const ' if k < n else ''}{T} *__restrict__ a{k};")
        lines.append(f"  long long s{k};")
    return "\n".join([*lines, f"  {T} *__restrict__ w;", "};"])
