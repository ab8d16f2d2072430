"""What a backend is: it checks what is asked of it, loads graphs, and shows their source.

`Kernel` knows backends by these two classes alone. A new backend is a file with an `Executable`,
and a row of the table in backends.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from phipsi.compile.graph import Graph, Recalled
from phipsi.compile.signature import Signature


class Executable(ABC):
    """A graph that can be run on arrays, by machine code that is made when first needed."""

    @property
    def codes(self) -> Collection[Any]:
        """The machine code made so far."""
        return ()

    @abstractmethod
    def prepare(self) -> None:
        """Make the machine code for batches now; that for single calls is made at the first one."""

    @abstractmethod
    def run(self, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
        """Evaluate rows (rows, size) of arrays on the host, outputs written in place."""

    def run_on_device(self, values: Sequence[Any], out: Any) -> list[Any] | None:
        """The results for arrays on a device, where they stay; None if there is none among them."""
        return None

    def run_at(
        self, rows: int, places: Sequence[tuple[int, int]], device: int, stream: int
    ) -> None:
        """Run on addresses of a device: see `Kernel.at`."""
        raise TypeError("only the cuda backend runs on addresses of a device")

    def entry(self, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """A function that calls the machine code there is by now with plain arrays at the least
        cost; `fallback` takes whatever else it is called with."""
        return fallback


class Backend(ABC):
    """A way to run graphs."""

    name: str
    compiled: bool = True
    """It makes machine code, which is kept on disk."""

    @abstractmethod
    def check(self, dtype: str, threads: int | None) -> None:
        """Refuse numbers and threads that the backend does not have, or to run without what it
        needs."""

    @abstractmethod
    def load(
        self, signature: Signature, code: Graph | Recalled, dtype: str, threads: int | None
    ) -> Executable:
        """The graph, ready to be run."""

    @abstractmethod
    def source(self, graph: Graph, dtype: str = "float64") -> str:
        """The text of the program that is run."""
