"""The table of backends. The modules of a backend are imported when it is first used."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any, Literal, get_args

from phipsi.compile import interpret
from phipsi.compile.backend import Backend, Executable
from phipsi.compile.device import needed
from phipsi.compile.graph import Graph, Recalled
from phipsi.compile.signature import Signature
from phipsi.typing import Array

Dtype = Literal["float64", "float32", "longdouble"]
"""Number types a kernel can be compiled for (long double: the numpy backend only)."""
DTYPES: tuple[Dtype, ...] = get_args(Dtype)

BackendName = Literal["llvm", "numpy", "cuda"]
"""The backends of `BACKENDS`."""


class Llvm(Backend):
    """Machine code for this processor, by LLVM."""

    name = "llvm"

    def check(self, dtype: str, threads: int | None) -> None:
        """llvmlite must be installed."""
        if not find_spec("llvmlite"):
            raise ImportError("the llvm backend needs llvmlite: pip install llvmlite")
        _refuse_long_double(self.name, dtype)

    def load(
        self, signature: Signature, code: Graph | Recalled, dtype: str, threads: int | None
    ) -> Executable:
        """Vector code for batches, scalar code for single rows."""
        from phipsi.compile.native import Native

        return Native(signature, code, dtype, threads)

    def source(self, graph: Graph, dtype: str = "float64") -> str:
        """The LLVM text of the vector code for this machine."""
        from phipsi.compile.native import host
        from phipsi.compile.to_llvm import emit

        return emit(graph, host(dtype)).text


class Numpy(Backend):
    """The interpreter, one NumPy operation per node."""

    name = "numpy"
    compiled = False

    def check(self, dtype: str, threads: int | None) -> None:
        """Every number type is there, and one thread."""
        if threads not in (None, 1):
            raise ValueError("the numpy backend runs on one thread; leave threads= out")

    def load(
        self, signature: Signature, code: Graph | Recalled, dtype: str, threads: int | None
    ) -> Executable:
        """The graph itself, to be interpreted."""
        return Interpreted(code)

    def source(self, graph: Graph, dtype: str = "float64") -> str:
        """The instructions of the graph."""
        return str(graph)


class Interpreted(Executable):
    """A graph run by the interpreter."""

    def __init__(self, code: Graph | Recalled) -> None:
        self._code = code

    def prepare(self) -> None:
        """There is no machine code."""

    def run(self, inputs: list[Array], outputs: list[Array]) -> None:
        """Evaluate rows in blocks."""
        interpret.run(self._code.whole, inputs, outputs)


class Cuda(Backend):
    """Code for CUDA devices, by CuPy."""

    name = "cuda"

    def check(self, dtype: str, threads: int | None) -> None:
        """CuPy must be installed."""
        needed()
        _refuse_long_double(self.name, dtype)
        if threads is not None:
            raise ValueError("the cuda backend has a thread for each row; leave threads= out")

    def load(
        self, signature: Signature, code: Graph | Recalled, dtype: str, threads: int | None
    ) -> Executable:
        """Code for each device on which the kernel is called."""
        from phipsi.compile.cuda import OnDevice

        return OnDevice(signature, code, dtype)

    def source(self, graph: Graph, dtype: str = "float64") -> str:
        """The CUDA text of the kernel."""
        from phipsi.compile.to_cuda import emit

        return emit(graph, dtype).text


BACKENDS: dict[str, Backend] = {row.name: row for row in (Llvm(), Numpy(), Cuda())}
"""Every backend by name."""


def backend_named(name: str) -> Backend:
    """The backend with this name."""
    if not isinstance(name, str) or name not in BACKENDS:
        known = ", ".join(BACKENDS)
        raise ValueError(f"backend {name!r} is not in this version; there is {known}")
    return BACKENDS[name]


def default_backend(dtype: str) -> BackendName:
    """The backend used if none is asked for: "numpy" for long double; else the one that
    PHIPSI_BACKEND names; else "llvm" where llvmlite is installed."""
    if dtype == "longdouble":
        return "numpy"
    setting: Any = os.environ.get("PHIPSI_BACKEND")  # `backend_named` checks it
    return setting or ("llvm" if find_spec("llvmlite") else "numpy")


def _refuse_long_double(name: str, dtype: str) -> None:
    if dtype == "longdouble":
        raise ValueError(f"the {name} backend has no long double; use backend='numpy'")
