"""Code for CUDA devices: emitted, compiled by NVRTC or taken from the disk cache, and launched."""

from __future__ import annotations

import ctypes
import hashlib
import inspect
import struct
import sys
from collections.abc import Sequence
from functools import cache as once
from typing import Any

import numpy as np

from phipsi.compile import (
    c_text,
    cache,
    coefficients,
    cuda_prelude,
    cuda_text,
    hoisted_sincos,
    loop_layout,
    ops,
    register_pressure,
    schedule,
    to_c,
    to_cuda,
)
from phipsi.compile.device import needed
from phipsi.compile.graph import Graph, Recalled

OPTIONS = {
    "float64": ("-fmad=false",),
    "float32": ("-fmad=false", "-prec-div=false", "-prec-sqrt=false"),
}
"""Options of the compiler. Sums take in products where the graph says so, as on the CPU. Quotients
and roots in single precision are right to 2 and 1 units in the last place."""

WORK = 1 << 30
"""Bytes of workspace up to which more threads run at once."""


Block = tuple[Any, Any, Any, int]


@once
def cupy_module() -> Any:
    """CuPy, where it finds a device."""
    needed()
    import cupy

    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(f"the cuda backend found no CUDA device: {error}") from None
    if not count:
        raise RuntimeError("the cuda backend found no CUDA device")
    return cupy


class DeviceCode:
    """The code of a graph on one device."""

    def __init__(self, graph: Graph | Recalled, dtype: str, device: int) -> None:
        cupy = cupy_module()
        self._alloc, self._launch = cupy.cuda.alloc, cupy.cuda.driver.launchKernel
        with cupy.cuda.Device(device) as place:
            sealed = _sealed(graph, dtype, place.compute_capability)
            self.threads, self.work = struct.unpack_from("<QQ", sealed)
            self._module = cupy.cuda.function.Module()
            self._module.load(sealed[16:])
            self.function = self._module.get_function(to_cuda.NAME)
            self._processors: int = place.attributes["MultiProcessorCount"]
            self._resident = self._processors * max(1, self._blocks_of(cupy) * self.threads)
            self._address: int = self.function.ptr
        self.work *= np.dtype(dtype).itemsize
        self._blocks: list[Block] = []
        """Room for arguments that no launch is using."""

    def _blocks_of(self, cupy: Any) -> int:
        """Blocks that a multiprocessor holds."""
        occupancy = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor
        return occupancy(self.function.ptr, self.threads, 0)

    def launch(self, given: list[int], stream: int) -> None:
        """Run on rows: how many, for each array its address and the distance of its rows, and a
        place for the address of the workspace."""
        rows, threads = given[0], self.threads
        if rows < threads * self._processors:
            threads = 32  # small batches on as many processors as there are
        blocks = -(-rows // threads)
        if self.work:
            most = min(self._resident, WORK // self.work)
            blocks = min(blocks, max(1, most // threads))
            work = self._alloc(blocks * threads * self.work)
            given[-1] = work.ptr
        try:
            block = self._blocks.pop()
        except IndexError:
            block = _block(len(given))
        block[0](block[1], 0, *given)
        self._launch(self._address, blocks, 1, 1, threads, 1, 1, 0, stream, block[3], 0)
        self._blocks.append(block)


def _block(count: int) -> Block:
    """How so many arguments are packed, the room for them, what points to it, and its address."""
    room = ctypes.create_string_buffer(8 * count)
    pointer = (ctypes.c_void_p * 1)(ctypes.addressof(room))
    return struct.Struct(f"<{count}q").pack_into, room, pointer, ctypes.addressof(pointer)


@once
def _version() -> bytes:
    """What of the software the code depends on."""
    here = sys.modules[__name__]
    passes = (loop_layout, schedule, register_pressure, hoisted_sincos)
    emitters = (to_cuda, to_c, c_text, cuda_text, cuda_prelude, *passes)
    modules = (here, *emitters, coefficients, ops)
    return "".join(inspect.getsource(module) for module in modules).encode()


def _sealed(graph: Graph | Recalled, dtype: str, capability: str) -> bytes:
    """Threads of a block, numbers of workspace of a thread, and code, from the disk cache or
    compiled."""
    nvrtc = cupy_module().cuda.nvrtc
    known = [int(a) for a in nvrtc.getSupportedArchs()]
    own = int(capability)
    if own < min(known):
        raise RuntimeError(
            f"the cuda backend needs a device of compute capability {min(known) / 10} or more, "
            f"this one has {own / 10}"
        )
    target = f"sm_{own}" if own in known else f"compute_{max(a for a in known if a <= own)}"
    options = (f"-arch={target}", *OPTIONS[dtype])
    what = (graph.digest, dtype, options, nvrtc.getVersion())
    key = hashlib.sha256(_version() + repr(what).encode()).hexdigest()
    found = cache.load(key)
    if found is None:
        module = to_cuda.emit(graph.whole, dtype)
        found = struct.pack("<QQ", module.threads, module.work) + compiled(module.text, options)
        cache.store(key, found)
    return found


def compiled(text: str, options: Sequence[str]) -> bytes:
    """The code of CUDA text, for the architecture among the options; PTX for one in general."""
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(text, "phipsi.cu", (), ())
    try:
        nvrtc.compileProgram(program, tuple(options))
        if any("-arch=compute_" in option for option in options):
            return nvrtc.getPTX(program)
        return nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise RuntimeError(f"NVRTC cannot compile the kernel: {error}: {log}") from None
    finally:
        nvrtc.destroyProgram(program)
