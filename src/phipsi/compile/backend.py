"""The interface of backends: they check options, load graphs, and show the source of their code.

`Kernel` uses backends through these two classes alone. A new backend is a file with an
`Executable`, and a row of the table in backends.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

from phipsi.compile.device import DeviceArray
from phipsi.compile.graph import Graph, Recalled
from phipsi.compile.signature import Signature
from phipsi.typing import Array, ArrayLike

Argument: TypeAlias = ArrayLike | DeviceArray
"""One array argument of a kernel, on the host or on a device."""

Out: TypeAlias = Array | DeviceArray | Sequence[Array | DeviceArray]
"""Arrays that receive the results of a kernel: one, or one for each result."""


class Executable(ABC):
    """A graph that can be run on arrays, by machine code that is compiled when first needed."""

    @property
    def codes(self) -> Collection[object]:
        """The machine code compiled so far."""
        return ()

    @abstractmethod
    def prepare(self) -> None:
        """Compile the machine code for batches now; code for single rows waits for a first call."""

    @abstractmethod
    def run(self, inputs: list[Array], outputs: list[Array]) -> None:
        """Evaluate arrays (rows, size) on the host; `outputs` are written in place."""

    def run_on_device(self, values: Sequence[Argument], out: Out | None) -> list[Any] | None:
        """The results, on the device, for arrays on a device; None if no array is on a device."""
        return None

    def run_at(
        self, rows: int, places: Sequence[tuple[int, int]], device: int, stream: int
    ) -> None:
        """Run on arrays given by their addresses on a device: see `Kernel.at`."""
        raise TypeError("only the cuda backend runs on addresses of a device")

    def entry(self, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """A function that calls the machine code compiled so far at the least cost. It handles
        plain arrays, and passes all other arguments to `fallback`."""
        return fallback


class Backend(ABC):
    """A way to run graphs."""

    name: str
    compiled: bool = True
    """Whether it makes machine code, which is kept in the disk cache."""

    @abstractmethod
    def check(self, dtype: str, threads: int | None) -> None:
        """Raise an error for a number type or a count of threads that the backend does not have,
        or if a package it needs is not installed."""

    @abstractmethod
    def load(
        self, signature: Signature, code: Graph | Recalled, dtype: str, threads: int | None
    ) -> Executable:
        """The graph as an executable."""

    @abstractmethod
    def source(self, graph: Graph, dtype: str = "float64") -> str:
        """The source text of the code that is run."""
