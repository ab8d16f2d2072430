"""Code for CUDA devices: emitted, compiled by NVRTC or taken from the disk cache, and launched."""

from __future__ import annotations

import ctypes
import hashlib
import struct
from collections.abc import Callable, Sequence
from functools import cache as once
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from phipsi import sources
from phipsi.compile import cache, to_cuda
from phipsi.compile.device import needed
from phipsi.compile.graph import Graph, Recalled

OPTIONS = {
    "float64": ("-fmad=false",),
    "float32": ("-fmad=false", "-prec-div=false", "-prec-sqrt=false"),
}
"""Options of NVRTC. It fuses no products into sums: the emitter has done so, as on the CPU.
Quotients and roots in single precision are right to 2 and 1 units in the last place."""

WORK = 1 << 30
"""Most bytes of workspace of one launch; it bounds the number of threads."""


class ArgumentBlock(NamedTuple):
    """Memory for the arguments of a launch: the function that writes them into it, and the address
    of a pointer to it, as the CUDA driver wants it. `keep` holds memory and pointer alive."""

    pack_into: Callable[..., None]
    memory: ctypes.Array[ctypes.c_char]
    address: int
    keep: object


@once
def cupy_module() -> Any:
    """The module CuPy; an error if there is no CUDA device."""
    needed()
    cupy = import_module("cupy")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(f"the cuda backend found no CUDA device: {error}") from None
    if not count:
        raise RuntimeError("the cuda backend found no CUDA device")
    return cupy


class DeviceCode:
    """The code of a graph on one device. `threads` is the size of a block, `work` the bytes of
    workspace of a thread."""

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
        self._free: list[ArgumentBlock] = []
        """Blocks of arguments that no launch is using."""

    def _blocks_of(self, cupy: Any) -> int:
        """The number of thread blocks that a multiprocessor can hold."""
        occupancy = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor
        return occupancy(self.function.ptr, self.threads, 0)

    def launch(self, given: list[int], stream: int) -> None:
        """Launch the kernel. `given` are its arguments: the number of rows; for each array its
        address and the distance of its rows; and a place for the address of the workspace."""
        rows, threads = given[0], self.threads
        if rows < threads * self._processors:
            threads = 32  # spread a small batch over all multiprocessors
        blocks = -(-rows // threads)
        if self.work:
            most = min(self._resident, WORK // self.work)
            blocks = min(blocks, max(1, most // threads))
            work = self._alloc(blocks * threads * self.work)
            given[-1] = work.ptr
        try:
            block = self._free.pop()
        except IndexError:
            block = _argument_block(len(given))
        block.pack_into(block.memory, 0, *given)
        self._launch(self._address, blocks, 1, 1, threads, 1, 1, 0, stream, block.address, 0)
        self._free.append(block)


def _argument_block(count: int) -> ArgumentBlock:
    """Memory for `count` arguments of 8 bytes."""
    memory = ctypes.create_string_buffer(8 * count)
    pointer = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    pack_into = struct.Struct(f"<{count}q").pack_into
    return ArgumentBlock(pack_into, memory, ctypes.addressof(pointer), pointer)


def _sealed(graph: Graph | Recalled, dtype: str, capability: str) -> bytes:
    """The entry of the disk cache, compiled if it is not there: threads of a block, numbers of
    workspace of a thread, and code."""
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
    key = hashlib.sha256(sources.digest("compile") + repr(what).encode()).hexdigest()
    found = cache.load(key)
    if found is None:
        module = to_cuda.emit(graph.whole, dtype)
        found = struct.pack("<QQ", module.threads, module.work) + compiled(module.text, options)
        cache.store(key, found)
    return found


def compiled(text: str, options: Sequence[str]) -> bytes:
    """The code of CUDA text: machine code if the options name a real architecture (`sm_`), PTX if
    a virtual one (`compute_`)."""
    nvrtc = import_module("cupy.cuda").nvrtc
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
