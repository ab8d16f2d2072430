"""The text of a CUDA kernel under construction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phipsi.compile.c_text import Text

CONSTANT = 32 << 10
"""Most bytes of tables, and of numbers, in constant memory."""


class CudaText(Text):
    """The text of a CUDA kernel, in C++, under construction."""

    def __init__(self, dtype: str) -> None:
        super().__init__(dtype, "PHIPSI_TABLE", "int", "#pragma unroll 1")
        self.size = 8 if dtype == "float64" else 4
        self.constants: dict[str, int] = {}

    @property
    def bytes(self) -> int:
        """An upper bound on the size of the tables."""
        return 8 * sum(line.count(",") for line in self.tables)

    def constant(self, value: float) -> str:
        """A number: a literal, or an element of constant memory if the literal would take two
        instructions."""
        text = self.literal(value)
        short = self.size == 4 or np.float64(value).view(np.uint64) % (1 << 32) == 0
        if short or (text not in self.constants and 8 * len(self.constants) >= CONSTANT):
            return text
        return f"fixed[{self.constants.setdefault(text, len(self.constants))}]"

    def turned(self, x: str, wanted: Sequence[str]) -> list[str]:
        """The names of the sine and the cosine of an angle, which are computed together."""
        self.used.add("sincos")
        sine, cosine = self.name(), self.name()
        self.line(f"{self.T} {sine}, {cosine};")
        self.line(f"phipsi_sincos({x}, &{sine}, &{cosine});")
        return [sine if name == "sin" else cosine for name in wanted]

    def memory(self, at: str) -> str:
        """The expression of element `at` of the memory of loops."""
        return f"PHIPSI_W({at})"

    @property
    def where(self) -> str:
        """The qualifier of tables: constant memory, or device memory if they are too large."""
        return "__constant__" if self.bytes <= CONSTANT else "__device__"

    def fixed(self) -> str:
        """The definition of the numbers in constant memory."""
        values = ", ".join(self.constants)
        return f"__constant__ {self.T} fixed[{len(self.constants)}] = {{{values}}};"
