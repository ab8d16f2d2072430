"""A graph as a CUDA kernel: one thread for each row of the batch.

Arrays keep the user's layout (rows, n). A warp copies its 32 rows into shared memory together, so
that neighbouring threads read neighbouring numbers, and each thread reads its own row from there;
results go the same way back. Inputs that are too wide for shared memory are read in place, and
outputs that are too wide are written in chunks of columns.
The memory of loops is local to a thread if it is small. Else it is a workspace in device memory,
interleaved so that neighbouring threads access neighbouring numbers, and each thread computes
several rows in turn. Measurements, and the reasons for short code, are in docs/gpu.md.
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
"""Warps in a block, or one if the shared memory of several would be too large. Small blocks let a
multiprocessor hold as many as it has registers for."""

BLOCKS = 0
"""Blocks that a multiprocessor must be able to hold, which bounds the registers; 0: no bound."""

TILE = 40 << 10
"""Most bytes of shared memory for the rows of a warp."""

SHARED = 48 << 10
"""Bytes of shared memory that a block can have."""

CHUNK = 8
"""Columns that are written together, of outputs that are too wide for shared memory."""

LOCAL = 256
"""Most numbers of loop memory that are local to a thread."""

ALIVE = 1200
"""Bytes of live values above which registers are short: then sines and cosines are kept in shared
memory, and values from there are loaded again instead of being kept in registers."""

AGAIN = 300
"""Operations after which values from shared memory are loaded again."""

NAME = "phipsi_kernel"
"""The kernel's name."""


@dataclass(frozen=True)
class Module:
    """The CUDA text of a kernel `NAME(Given)`, the most threads of a block (a multiple of 32), and
    the count of workspace numbers that each thread needs (0: no workspace, a thread for each row).

    `Given` holds the number of rows; for each input, then each output, its address and the distance
    of its rows (0: one row for the whole batch); and the address of the workspace.
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
    """The statements of the whole kernel: each thread computes one row."""

    def __init__(self, graph: Graph, text: CudaText) -> None:
        super().__init__(graph, text, Room())
        self.most = TILE // (32 * text.size)
        self.layouts = layouts(graph)
        self.direct = filled(self.layouts)
        """The elements of outputs that loops write straight to device memory, by output."""
        self.rows = {n.value for n in graph.nodes if n.op == "array"}
        """Inputs that are read in place, from device memory."""
        self.items = list(itemized(graph, nearby(graph, fused_products(graph))))
        self.hoisted = HoistedSincos()
        if max(alive(graph), default=0) * text.size > ALIVE:
            hoisted, items = HoistedSincos.among(graph, self.items)
            angles = pitch(graph.inputs[hoisted.array][1]) if hoisted.array >= 0 else 0
            if hoisted.columns + angles + pitch(CHUNK) <= self.most:
                self.hoisted, self.items = hoisted, items
        self.kept: dict[int, str] = {}
        """The expressions of hoisted sines and cosines in shared memory, by node."""
        self.places: dict[int, int] = {}
        """The first column, in shared memory, of each array that is there as a whole: inputs, then
        outputs."""
        self.columns, self.scratch = self.hoisted.columns, -1
        used: set[int] = {node.value[0] for node in graph.nodes if node.op == "input"}
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
        """An input in shared memory that an output can overwrite: of the same size, and read for
        the last time before the first element of the output is computed; −1 if there is none."""
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
        """Allocate columns of shared memory for an array, if there are enough, or let it share the
        columns of array `over`."""
        if over >= 0:
            self.places[k] = self.places[over]
        elif self.columns + pitch(size) + pitch(CHUNK) <= self.most:
            self.places[k] = self.columns
            self.columns += pitch(size)

    def ordered(self) -> list[Item]:
        """The items with stores: each output element, or chunk, as soon as it is computed."""
        items = with_stores(self.graph, self.items, list(self._stores()))
        if not self.hoisted.columns:
            return items
        for i in range(len(items) - len(items) % AGAIN, 0, -AGAIN):
            items.insert(i, Item("again", (), ()))
        return items

    def _stores(self) -> Iterator[Item]:
        """The stores of all outputs."""
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
        """Compute the hoisted sines and cosines in loops, into shared memory."""
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
        """Forget the values loaded from shared memory: the next use loads them again."""
        for node in list(self.local):
            op, _, value = self.graph.nodes[node]
            if node in self.kept or (op == "input" and value[0] in self.places):
                del self.local[node]
        self.text.line('asm volatile("" ::: "memory");')

    def entered(self, node: int) -> str:
        """Load an element of an input, or a hoisted sine or cosine."""
        if node in self.kept:
            return self.text.let(self.kept[node])
        k, element = self.graph.nodes[node].value
        return self.text.let(f"{'a' if k in self.places else 'row'}{k}[{element}]")

    def element(self, k: int, at: str) -> str:
        """The expression of element `at` of input k, in device memory."""
        return f"row{k}[{at}]"

    def result(self, k: int, at: str) -> str:
        """The expression of element `at` of output k, in device memory."""
        return f"row{len(self.graph.inputs) + k}[{at}]"

    def store(self, item: Item) -> None:
        """Store an output element to shared memory; of a wide output store a chunk through shared
        memory to device memory."""
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
        text.line(self._copy("store", k, size, first))
        text.line("__syncwarp();")

    def spread(self, item: Item) -> None:
        """Store an output whose elements are all elements of loop memory, by a loop over chunks."""
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
            text.line(self._copy("store", k, CHUNK, f"{CHUNK} * {i}"))
            text.line("__syncwarp();")
        if whole < len(nodes):
            self.store(Item("store", (), nodes[whole:], (item.place[0], whole)))

    def _copy(
        self, how: str, k: int, size: int, first: int | str = 0, tile: str = "scratch"
    ) -> str:
        """The statement that copies columns of an array between device and shared memory."""
        address = f"given.a{k} + {first}" if first else f"given.a{k}"
        more = f"{tile}, {address}, given.s{k}, first, given.rows, lane"
        part = "_part" if tile == "scratch" else ""
        return f"phipsi_{how}{part}<{size}, {pitch(size)}>({more});"

    def staged(self) -> tuple[list[str], list[str]]:
        """The statements before and after all others: they copy inputs to shared memory, and
        outputs back."""
        T, n = self.text.T, len(self.graph.inputs)
        before: list[str] = []
        loads: list[str] = []
        after: list[str] = []
        for k, at in self.places.items():
            name, size = self._array(k)
            tile = f"tile + {32 * at}"
            before.append(f"{T} *const a{k} = {tile} + {pitch(size)} * lane;  // {_plain(name)}")
            (loads if k < n else after).append(
                self._copy("load" if k < n else "store", k, size, tile=tile)
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
        """Name and size of an array: inputs, then outputs."""
        n = len(self.graph.inputs)
        if k < n:
            return self.graph.inputs[k]
        name, nodes = self.graph.outputs[k - n]
        return name, len(nodes)


def pitch(columns: int) -> int:
    """The distance of rows in shared memory: the number of columns, or one more if otherwise more
    than four of 32 rows were in the same memory bank."""
    return columns if gcd(columns, 32) <= 4 else columns + 1


def _kernel(kernel: Threads, warps: int, work: int) -> str:
    """The definition of the kernel."""
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
    """The first comment of the file."""
    names = ", ".join(f"{name} ({size})" for name, size in graph.inputs)
    return f"// {graph.operations} operations, {dtype}; of {_plain(names)}"


def _plain(names: str) -> str:
    """Text with only characters that are safe in a comment."""
    return "".join(c if c.isprintable() and c != "\\" else "?" for c in names)


def _given(graph: Graph, T: str) -> str:
    """The definition of the structure of arguments."""
    n = len(graph.inputs)
    lines = ["struct Given {", "  long long rows;"]
    for k in range(n + len(graph.outputs)):
        lines.append(f"  {'const ' if k < n else ''}{T} *__restrict__ a{k};")
        lines.append(f"  long long s{k};")
    return "\n".join([*lines, f"  {T} *__restrict__ w;", "};"])
