"""LLVM text for vectors of lanes: types, constants, memory, transposition."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Machine:
    """The target of code: number type, lanes of a vector, whether it has a fused multiply-add, and
    whether it can load and store vectors under a mask."""

    dtype: str
    lanes: int
    fma: bool = True
    masked: bool = True

    @property
    def size(self) -> int:
        """Size of a number [bytes]."""
        return 8 if self.dtype == "float64" else 4

    @property
    def width(self) -> int:
        """Size of a vector [bytes]."""
        return self.size * self.lanes

    @property
    def scalar(self) -> str:
        """The type of a number."""
        return "double" if self.dtype == "float64" else "float"

    def vector(self, scalar: str, lanes: int = 0) -> str:
        """The type of a vector of `lanes` scalars (0: as many as the machine has)."""
        lanes = lanes or self.lanes
        return scalar if lanes == 1 else f"<{lanes} x {scalar}>"

    @property
    def T(self) -> str:
        """The type of a value: one number in each lane."""
        return self.vector(self.scalar)

    @property
    def suffix(self) -> str:
        """The suffix of intrinsics on values."""
        return ("" if self.lanes == 1 else f"v{self.lanes}") + f"f{8 * self.size}"

    def number(self, value: float) -> str:
        """A constant of the scalar type, exact."""
        with np.errstate(over="ignore"):
            x = float(np.float32(value)) if self.size == 4 else float(value)
        return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"

    def constant(self, value: float) -> str:
        """The same number in every lane."""
        if value == 0.0 and self.number(value) == self.number(0.0):
            return "zeroinitializer"
        number = self.number(value)
        return number if self.lanes == 1 else f"splat ({self.scalar} {number})"


class LlvmText:
    """The lines of an LLVM function under construction."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.lines: list[str] = []
        self._names = 0

    def name(self) -> str:
        """A new local name."""
        self._names += 1
        return f"%t{self._names}"

    def label(self) -> str:
        """A new label."""
        self._names += 1
        return f"b{self._names}"

    def line(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}")

    def make(self, text: str) -> str:
        """Append an instruction; returns the name of its result."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def begin(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")

    def jump(self, label: str) -> None:
        """End the basic block with a branch to a new one, and begin that."""
        self.line(f"br label %{label}")
        self.begin(label)

    def at(self, base: str, offset: int | str) -> str:
        """The address `offset` bytes after `base`."""
        return base if offset == 0 else self.make(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load(self, base: str, offset: int | str = 0) -> str:
        """Load a value (all lanes) from the workspace."""
        m = self.machine
        return self.make(f"load {m.T}, ptr {self.at(base, offset)}, align {m.width}")

    def store(self, value: str, base: str, offset: int | str = 0) -> None:
        """Store a value (all lanes) to the workspace."""
        m = self.machine
        self.line(f"store {m.T} {value}, ptr {self.at(base, offset)}, align {m.width}")

    def load_rows(self, base: str, stride: str, offset: int, count: int) -> list[str]:
        """Load `count` adjacent elements of as many rows as there are lanes; returns a value for
        each element.

        Parts of several rows share a vector while it is transposed: row i with rows i + h, i + 2h,
        …, where h is the least power of two ≥ count.
        """
        rows, h = self._rows(base, stride, offset), _room(count)
        parts = [self._load_part(row, count, h) for row in rows]
        return self._transposed([self._joined(parts[i::h]) for i in range(h)])[:count]

    def store_rows(self, values: list[str], base: str, stride: str, offset: int) -> None:
        """Store values to adjacent elements of as many rows as there are lanes."""
        rows, h = self._rows(base, stride, offset), _room(len(values))
        full = [*values, *["poison"] * (h - len(values))]
        for i, vector in enumerate(self._transposed(full)):
            for k, row in enumerate(rows[i::h]):
                self._store_part(vector, row, k * h, len(values), h)

    def _rows(self, base: str, stride: str, offset: int) -> list[str]:
        """The addresses of the rows."""
        first = self.at(base, offset)
        steps = (self.make(f"mul i64 {stride}, {r}") for r in range(1, self.machine.lanes))
        return [first, *(self.at(first, step) for step in steps)]

    def _load_part(self, address: str, count: int, room: int) -> str:
        """Load `count` elements into a vector of `room` elements."""
        m = self.machine
        part, whole = m.vector(m.scalar, count), m.vector(m.scalar, room)
        if count < room and m.masked:
            name = f"@llvm.masked.load.v{room}f{8 * m.size}.p0"
            operands = f"ptr {address}, i32 {m.size}, {self._mask(count, room)}, {whole} poison"
            return self.make(f"call {whole} {name}({operands})")
        loaded = self.make(f"load {part}, ptr {address}, align {m.size}")
        if count == room:
            return loaded
        return self._shuffle(loaded, "poison", [*range(count), *[0] * (room - count)], part)

    def _store_part(self, vector: str, address: str, first: int, count: int, room: int) -> None:
        """Store `count` elements of a vector from element `first`, where `room` elements belong to
        the row."""
        m = self.machine
        part, whole = m.vector(m.scalar, count), m.vector(m.scalar, room)
        masked = count < room and m.masked
        wanted = room if masked else count
        if wanted == 1 < m.lanes:
            vector = self.make(f"extractelement {m.T} {vector}, i32 {first}")
        elif wanted < m.lanes:
            vector = self._shuffle(vector, "poison", [*range(first, first + wanted)], m.T)
        if masked:
            name = f"@llvm.masked.store.v{room}f{8 * m.size}.p0"
            mask = self._mask(count, room)
            self.line(f"call void {name}({whole} {vector}, ptr {address}, i32 {m.size}, {mask})")
        else:
            self.line(f"store {part} {vector}, ptr {address}, align {m.size}")

    def _joined(self, parts: list[str]) -> str:
        """One vector of the concatenated parts."""
        m = self.machine
        size = m.lanes // len(parts)
        if size == 1 < m.lanes:
            whole = "poison"
            for i, part in enumerate(parts):
                whole = self.make(f"insertelement {m.T} {whole}, {m.scalar} {part}, i32 {i}")
            return whole
        while len(parts) > 1:
            type, lanes = m.vector(m.scalar, size), [*range(2 * size)]
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self._shuffle(a, b, lanes, type) for a, b in pairs]
            size *= 2
        return parts[0]

    def _mask(self, count: int, room: int) -> str:
        bits = ", ".join(f"i1 {'true' if i < count else 'false'}" for i in range(room))
        return f"<{room} x i1> <{bits}>"

    def _shuffle(self, a: str, b: str, lanes: list[int], type: str) -> str:
        mask = ", ".join(f"i32 {i}" for i in lanes)
        return self.make(f"shufflevector {type} {a}, {type} {b}, <{len(lanes)} x i32> <{mask}>")

    def _transposed(self, rows: list[str]) -> list[str]:
        """The transposed square blocks of these vectors: with n vectors, each block of n adjacent
        lanes is a square. Every step exchanges the off-diagonal quarters of squares twice as
        large."""
        n, T = self.machine.lanes, self.machine.T
        step = 1
        while step < len(rows):
            low = [j if not j & step else n + j - step for j in range(n)]
            high = [j + step if not j & step else n + j for j in range(n)]
            for i in range(len(rows)):
                if not i & step:
                    a, b = rows[i], rows[i + step]
                    rows[i] = self._shuffle(a, b, low, T)
                    rows[i + step] = self._shuffle(a, b, high, T)
            step *= 2
        return rows


def _room(count: int) -> int:
    """The least power of two that is not less than `count`."""
    return 1 << (count - 1).bit_length()
