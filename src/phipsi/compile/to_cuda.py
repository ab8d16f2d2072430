"""A graph as a CUDA kernel: one thread for each row of the batch.

Arrays stay as the user has them, (rows, n): a warp brings its 32 rows into shared memory together,
so that neighbouring threads read neighbouring numbers, and each thread takes its own from there
when it needs them; results go the same way. What is too wide for that goes in chunks of columns.
The memory of loops is a thread's own if it is small; else it is a workspace in which neighbouring
threads are neighbours, and threads take one row after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from phipsi.compile import cuda_prelude
from phipsi.compile.c_text import Text, sum_of
from phipsi.compile.graph import Graph
from phipsi.compile.schedule import Item, Room, fused_products, inserted, itemized
from phipsi.compile.streams import filled, layouts
from phipsi.compile.to_c import Scope

WARPS = 4
"""Warps in a block, fewer where their shared memory would be too large."""

BLOCKS = 0
"""Blocks that a multiprocessor must be able to hold, which bounds the registers; 0: as it comes."""

TILE = 24 << 10
"""Bytes of shared memory for the rows of a warp."""

SHARED = 48 << 10
"""Bytes of shared memory that a block can have."""

CHUNK = 8
"""Columns brought in, or written, together of arrays that are too wide."""

LOCAL = 256
"""Numbers in the memory of loops up to which a thread keeps them as its own."""

CONSTANT = 32 << 10
"""Bytes of tables up to which they are in constant memory."""

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
    kernel = Threads(graph, text)
    kernel.emit()
    tile = kernel.columns * 32 * text.size
    warps = max(1, min(WARPS, SHARED // max(tile, 1)))
    work = kernel.room.size if kernel.room.size > LOCAL else 0
    body = _kernel(kernel, warps, work)
    parts = [_head(graph, dtype), *cuda_prelude.definitions(text, body), _given(graph, text.T)]
    if text.tables:
        where = "__constant__" if text.bytes <= CONSTANT else "__device__"
        parts += [f"#define PHIPSI_TABLE {where} const", "\n".join(text.tables)]
    return Module("\n\n".join([*parts, body]) + "\n", 32 * warps, work)


class CudaText(Text):
    """CUDA's C++."""

    def __init__(self, dtype: str) -> None:
        super().__init__(dtype, "PHIPSI_TABLE", "int", "#pragma unroll 1")
        self.size = 8 if dtype == "float64" else 4

    @property
    def bytes(self) -> int:
        """An upper bound on the size of the tables."""
        return 8 * sum(line.count(",") for line in self.tables)

    def turned(self, x: str, wanted: Sequence[str]) -> list[str]:
        """Both at once."""
        self.used.add("sincos")
        sine, cosine = self.name(), self.name()
        self.line(f"{self.T} {sine}, {cosine};")
        self.line(f"phipsi_sincos({x}, &{sine}, &{cosine});")
        return [sine if name == "sin" else cosine for name in wanted]

    def memory(self, at: str) -> str:
        """Element `at` of the memory of loops."""
        return f"PHIPSI_W({at})"


class Threads(Scope):
    """The whole graph, for one row by each thread."""

    def __init__(self, graph: Graph, text: CudaText) -> None:
        super().__init__(graph, text, Room())
        self.layouts = layouts(graph)
        self.direct = filled(self.layouts)
        """Outputs that loops write themselves, and which of their elements."""
        self.rows = {n.value for n in graph.nodes if n.op == "array"}
        """Inputs that loops read themselves."""
        used = {n.value[0] for n in graph.nodes if n.op == "input"}
        sizes = [(k, size) for k, (_, size) in enumerate(graph.inputs) if k in used]
        n = len(graph.inputs)
        sizes += [
            (n + k, len(nodes))
            for k, (_, nodes) in enumerate(graph.outputs)
            if nodes and k not in self.direct
        ]
        self.places: dict[int, int] = {}
        """Where in a row of shared memory an array of ours stands, if it is there as a whole."""
        self.columns, self.scratch = 0, -1
        most = TILE // (32 * text.size) - CHUNK - 1
        for k, size in sizes:
            if self.columns + pitch(size) <= most:
                self.places[k] = self.columns
                self.columns += pitch(size)
            else:
                self.scratch = 0
        if self.scratch == 0:
            self.scratch = self.columns
            self.columns += pitch(CHUNK)
        self.chunks: dict[tuple[int, int], list[int]] = {}
        for i, node in enumerate(graph.nodes):
            if node.op == "input" and node.value[0] not in self.places:
                k, element = node.value
                self.chunks.setdefault((k, element - element % CHUNK), []).append(i)

    def ordered(self) -> list[Item]:
        """In trace order, every result stored as soon as it, or its chunk, is there."""
        items = list(itemized(self.graph, fused_products(self.graph)))
        return inserted(self.graph, items, list(self._stores()))

    def _stores(self) -> Iterator[Item]:
        for k, (_, nodes) in enumerate(self.graph.outputs):
            if k in self.direct:
                for i, n in enumerate(nodes):
                    if i not in self.direct[k]:
                        yield Item("store", (), (n,), (k, i))
                continue
            chunk = 1 if len(self.graph.inputs) + k in self.places else CHUNK
            if chunk > 1 and all(self.graph.nodes[n].op == "pick" for n in nodes):
                sources = (self.graph.nodes[n].args[0] for n in nodes)
                yield Item("spread", (), tuple(dict.fromkeys(sources)), (k,))
                continue
            for first in range(0, len(nodes), chunk):
                yield Item("store", (), nodes[first : first + chunk], (k, first))

    def entered(self, node: int) -> str:
        """Take an element of an input from shared memory."""
        k, element = self.graph.nodes[node].value
        if k in self.places:
            return self.text.let(f"a{k}[{element}]")
        text, first = self.text, element - element % CHUNK
        size = min(CHUNK, self.graph.inputs[k][1] - first)
        text.line(f"{self._moved('load', k, size, first)}")
        text.line("__syncwarp();")
        for other in self.chunks[k, first]:
            at = self.graph.nodes[other].value[1] - first
            self.local[other] = text.let(f"scratch[{pitch(size)} * lane + {at}]")
        text.line("__syncwarp();")
        return self.local[node]

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
        return f"phipsi_{how}<{size}, {pitch(size)}>({more});"

    def staged(self) -> tuple[list[str], list[str]]:
        """Statements before and after all others: rows come in, and results go out."""
        T, n = self.text.T, len(self.graph.inputs)
        before: list[str] = []
        loads, after = [], []
        for k, at in self.places.items():
            name, size = self._array(k)
            tile = f"tile + {32 * at}"
            before.append(f"{T} *const a{k} = {tile} + {pitch(size)} * lane;  // {name}")
            (loads if k < n else after).append(
                self._moved("load" if k < n else "store", k, size, tile=tile)
            )
        if self.scratch >= 0:
            before.append(f"{T} *const scratch = tile + {32 * self.scratch};")
        for k in sorted(self.rows | {n + k for k in self.direct}):
            const = "const " if k < n else ""
            before.append(f"{const}{T} *const row{k} = given.a{k} + row * given.s{k};")
        if loads:
            before += [*loads, "__syncwarp();"]
        return before, ["__syncwarp();", *after] if after else []

    def _array(self, k: int) -> tuple[str, int]:
        n = len(self.graph.inputs)
        if k < n:
            return self.graph.inputs[k]
        name, nodes = self.graph.outputs[k - n]
        return name, len(nodes)


def pitch(columns: int) -> int:
    """How far apart rows stand in shared memory, so that 32 of them are in few of its banks' way:
    a column costs at most two turns."""
    return columns if gcd(columns, 32) <= 2 else columns + 1


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
    plain = "".join(c if c.isprintable() and c != "\\" else "?" for c in names)
    return f"// {graph.operations} operations, {dtype}; of {plain}"


def _given(graph: Graph, T: str) -> str:
    n = len(graph.inputs)
    lines = ["struct Given {", "  long long rows;"]
    for k in range(n + len(graph.outputs)):
        lines.append(f"  {'const ' if k < n else ''}{T} *__restrict__ a{k};")
        lines.append(f"  long long s{k};")
    return "\n".join([*lines, f"  {T} *__restrict__ w;", "};"])
