"""CUDA kernels on a CPU, and a CuPy of that kind: enough to run the cuda backend without a GPU.

Kernels are compiled by g++ with `cuda_shim.h`; "device" arrays are NumPy's, in a class that NumPy
cannot use by accident.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from phipsi.compile import Graph, cuda, cuda_code
from phipsi.compile.to_cuda import NAME, Module, emit
from tests.compile.toolchain import shared_library

EXTERN = 'extern "C" '
SHIM = Path(__file__).with_name("cuda_shim.h")


def launcher(name: str) -> str:
    """The text of a function of (arguments, blocks, threads) that launches the kernel above it."""
    return f"""extern "C" void {name}(const Given *given, int blocks, int threads) {{
  launch({NAME}, *given, blocks, threads);
}}
"""


def side_by_side(texts: Sequence[str]) -> str:
    """The text of several kernels, in a namespace each, with the functions run0, run1, …"""
    spaces = (
        f"namespace n{k} {{\n{text.replace(EXTERN, '')}\n{launcher(f'run{k}')}}}\n"
        "#undef PHIPSI_W\n#undef PHIPSI_TABLE\n"
        for k, text in enumerate(texts)
    )
    return "".join(spaces)


@cache
def built(text: str) -> bytes:
    """A kernel as a shared library."""
    return library(f"{text}\n{launcher('run')}")


def library(text: str) -> bytes:
    """A shared library of kernels and their launchers."""
    source = f"{SHIM.read_text()}\n{text}"
    flags = ["-O0", "-std=c++17", "-ffp-contract=off", "-Wno-unknown-pragmas", "-pthread"]
    return shared_library(source, ".cpp", "g++", *flags)


@contextmanager
def loaded(library: bytes) -> Iterator[Any]:
    """Its function of (arguments, blocks, threads)."""
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(library)
        file.flush()
        yield ctypes.CDLL(file.name).run


def run(graph: Graph, inputs: list[np.ndarray], module: Module | None = None) -> list[np.ndarray]:
    """The outputs (rows, size) of a graph's kernel."""
    module = module or emit(graph, inputs[0].dtype.name)
    with loaded(built(module.text)) as kernel:
        return launched(kernel, module, graph, inputs)


def launched(
    kernel: Any, module: Module, graph: Graph, inputs: list[np.ndarray]
) -> list[np.ndarray]:
    """The outputs of a kernel that is loaded. One with a workspace gets one block."""
    dtype, rows = inputs[0].dtype, inputs[0].shape[0]
    outputs = [np.full((rows + 1, len(nodes)), 777.0, dtype) for _, nodes in graph.outputs]
    blocks = 1 if module.work else -(-rows // module.threads)
    work = np.full(max(1, module.work * module.threads), np.nan, dtype)
    given = [rows]
    for a in (*inputs, *outputs):
        given += [a.ctypes.data, a.strides[0] // a.itemsize]
    given.append(work.ctypes.data)
    kernel((ctypes.c_int64 * len(given))(*given), blocks, module.threads)
    assert all((y[rows] == 777.0).all() for y in outputs)
    return [y[:rows] for y in outputs]


# ---- a CuPy of that kind -------------------------------------------------------------------------


class Array:
    """An array on a device."""

    def __init__(self, values: Any, device: Any = 0) -> None:
        if isinstance(values, tuple):  # shape and type
            values, device = _empty(values, device), 0
        self.values = values
        self._c_contiguous = values.flags.c_contiguous
        self.data = SimpleNamespace(ptr=values.ctypes.data, device_id=device)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("no implicit conversion")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.data.device_id

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "dtype", "strides", "ndim", "itemsize", "flags", "size", "nbytes"):
            return getattr(self.values, name)
        raise AttributeError(name)

    def __getitem__(self, key: Any) -> Array:
        return Array(self.values[key], self.data.device_id)

    def __setitem__(self, key: Any, value: Array) -> None:
        self.values[key] = value.values

    def astype(self, dtype: Any, copy: bool = True) -> Array:
        same = self.dtype == dtype and not copy
        return self if same else Array(self.values.astype(dtype), self.data.device_id)

    def transpose(self) -> Array:
        return Array(self.values.T, self.data.device_id)

    def get(self) -> np.ndarray:
        return self.values.copy()


MEMORY = 1 << 30
"""Bytes of the device."""


def _empty(shape: Any, dtype: Any) -> np.ndarray:
    if np.prod(shape, dtype=float) * np.dtype(dtype).itemsize > MEMORY:
        raise MemoryError
    return np.full(shape, 777, dtype)


def _asarray(x: Any, dtype: Any = None) -> Array:
    return x if isinstance(x, Array) else Array(np.array(x, dtype))


class _Device:
    compute_capability = "90"
    attributes: dict[str, int] = {"MultiProcessorCount": 1}  # noqa: RUF012
    mem_info = MEMORY, MEMORY

    def __init__(self, device: int = 0) -> None:
        self.id = device

    def __enter__(self) -> _Device:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class _Module:
    def load(self, code: bytes) -> None:
        self.code = code

    def get_function(self, name: str) -> Any:
        assert name == NAME
        self.ptr = len(_functions)
        _functions.append(self)
        return SimpleNamespace(ptr=self.ptr)


_functions: list[_Module] = []
launches: list[int] = []
"""Blocks of every launch."""


def _launch(f: int, blocks: int, *more: Any) -> None:
    _, _, threads, _, _, _, stream, arguments, _ = more
    assert stream == 7
    launches.append(blocks)
    (address,) = (ctypes.c_void_p * 1).from_address(arguments)
    with loaded(_functions[f].code) as kernel:
        kernel(ctypes.c_void_p(address), blocks, threads)


def _alloc(size: int) -> Any:
    room = np.full(size, 255, np.uint8)
    return SimpleNamespace(ptr=room.ctypes.data, room=room)


def cupy() -> Any:
    """The module."""
    runtime = SimpleNamespace(
        getDevice=lambda: 0, getDeviceCount=lambda: 1, CUDARuntimeError=OSError
    )
    texts: dict[int, str] = {}
    nvrtc = SimpleNamespace(
        createProgram=lambda text, *_: texts.setdefault(len(texts), text) and len(texts) - 1,
        compileProgram=lambda program, options: built(texts[program]),
        getCUBIN=lambda program: built(texts[program]),
        destroyProgram=lambda program: None,
        getSupportedArchs=lambda: (80, 90),
        getVersion=lambda: (0, 0),
        NVRTCError=subprocess.CalledProcessError,
    )
    driver = SimpleNamespace(
        launchKernel=_launch, occupancyMaxActiveBlocksPerMultiprocessor=lambda *_: 1
    )
    device = SimpleNamespace(
        runtime=runtime, nvrtc=nvrtc, driver=driver, Device=_Device, alloc=_alloc,
        get_current_stream=lambda: SimpleNamespace(ptr=7), function=SimpleNamespace(Module=_Module),
    )  # fmt: skip
    return SimpleNamespace(
        cuda=device, ndarray=Array, empty=Array, asarray=_asarray,
        ascontiguousarray=lambda a: Array(np.ascontiguousarray(a.values), a.data.device_id),
        broadcast_to=lambda a, shape: Array(np.broadcast_to(a.values, shape), a.data.device_id),
        get_default_memory_pool=lambda: SimpleNamespace(free_bytes=lambda: 0),
        __spec__=SimpleNamespace(name="cupy"),
    )  # fmt: skip


@contextmanager
def in_place_of_cupy(folder: Path) -> Iterator[Any]:
    """Let the cuda backend run here, with a disk cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        module = cupy()
        patch.setitem(sys.modules, "cupy", module)
        patch.setitem(sys.modules, "cupy.cuda", module.cuda)
        patch.setenv("PHIPSI_CACHE_DIR", str(folder))
        for here in (cuda, cuda_code):
            patch.setattr(here, "cupy_module", lambda: module)
        yield module
