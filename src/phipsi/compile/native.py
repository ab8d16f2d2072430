"""Graphs as machine code of this processor: emitted and compiled, or loaded from the disk cache,
and run on arrays."""

from __future__ import annotations

import ctypes
import hashlib
import os
import struct
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache as once
from typing import Any

import numpy as np

from phipsi import sources
from phipsi.compile import cache, jit
from phipsi.compile.backend import Executable
from phipsi.compile.entry import entry
from phipsi.compile.graph import Graph, Recalled
from phipsi.compile.llvm_text import Machine
from phipsi.compile.signature import Signature
from phipsi.compile.to_llvm import emit, tables_at
from phipsi.typing import Array

WORK = 4_000_000
"""The least number of operations that is worth waking another thread."""

SHARES = 6
"""Parts of the batch for each thread: a thread that starts late, or is held up, takes fewer."""

HELD = 500_000
"""Most operations that are computed with the GIL held."""

OWN = 1 << 20
"""Most bytes of a workspace that is allocated for a single long call."""


def host(dtype: str, single: bool = False) -> Machine:
    """This machine as a target, with its widest vectors, or with one lane for single rows."""
    triple, _, text = jit.target()
    features = {f[1:] for f in text.split(",") if f.startswith("+")}
    bits, fused, masked = 128, "neon" in features or triple.startswith(("aarch64", "arm64")), False
    if "avx2" in features:
        bits, fused, masked = 256, "fma" in features, True
    if "avx512f" in features and "avx512vl" in features:
        bits = 512
    size = np.dtype(dtype).itemsize
    return Machine(dtype, 1 if single else bits // (8 * size), fused, masked)


@once
def _version() -> bytes:
    """The sources of the compiler and the versions of LLVM: a part of the cache key of machine
    code."""
    return sources.digest("compile") + jit.versions().encode()


class Native(Executable):
    """A graph compiled for this machine: vector code for batches and scalar code for single rows,
    which give the same numbers to the bit. Each is compiled when first needed."""

    def __init__(
        self, signature: Signature, graph: Graph | Recalled, dtype: str, threads: int | None
    ) -> None:
        self.signature, self.graph, self.dtype, self.threads = signature, graph, dtype, threads
        self.operations = max(1, graph.operations)
        self._codes: dict[bool, MachineCode] = {}

    @property
    def batch(self) -> MachineCode:
        """Code for many rows."""
        return self._code(single=False)

    @property
    def single(self) -> MachineCode:
        """Code for one row."""
        return self._code(single=True)

    def _code(self, single: bool) -> MachineCode:
        if single not in self._codes:
            with jit.lock:  # one thread compiles it, others wait
                if single not in self._codes:
                    self._codes[single] = MachineCode(self.graph, host(self.dtype, single))
        return self._codes[single]

    @property
    def codes(self) -> list[MachineCode]:
        """The code compiled so far."""
        return list(self._codes.values())

    def prepare(self) -> None:
        """Compile the code for batches now."""
        _ = self.batch

    def entry(self, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """A builtin that calls the code compiled so far at the least cost, and `fallback` for
        arguments that are not plain arrays of the right shapes."""
        codes = self.codes
        name, inputs, results = self.signature.name, self.signature.inputs, self.signature.results
        address = {code.machine.lanes == 1: code.address for code in codes}
        room = workspace(codes)
        return entry(
            name=name,
            inputs=[leaf.shape for leaf in inputs],
            outputs=[leaf.shape for leaf in results.leaves],
            dtype=np.dtype(self.dtype),
            single=address.get(True, 0),
            batch=address.get(False, 0),
            workspace=room.ctypes.data,
            limit=self._alone(max(code.size for code in codes)),
            held=HELD // self.operations,
            size=room.size,
            fallback=fallback,
            pack=results.pack if len(results.leaves) > 1 else None,
            keep=(codes, room),
        )

    def _alone(self, size: int) -> int:
        """Most rows that are computed on the caller's thread alone: above, more threads would be
        quicker, or the workspace is too large to be allocated for a single call."""
        if size > OWN:
            return HELD // self.operations
        most = self.threads or default_threads()
        return 1 << 60 if most == 1 else 2 * WORK // self.operations

    def run(self, inputs: list[Array], outputs: list[Array]) -> None:
        """Evaluate arrays (rows, size) of any strides; `outputs` are written in place."""
        rows = outputs[0].shape[0]
        if rows == 1:
            self.single.run(inputs, outputs, 1)
        elif rows:
            most = self.threads or default_threads()
            wanted = rows * self.operations // WORK
            self.batch.run(inputs, outputs, max(1, min(most, wanted)))


def default_threads() -> int:
    """PHIPSI_NUM_THREADS, else the number of cores this process may use."""
    given = os.environ.get("PHIPSI_NUM_THREADS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    if given:
        raise ValueError(f"PHIPSI_NUM_THREADS is {given!r}, needs a whole number of at least 1")
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class MachineCode:
    """The machine code of one graph for one machine, with its tables and workspaces."""

    def __init__(self, graph: Graph | Recalled, machine: Machine) -> None:
        self.machine = machine
        digest = hashlib.sha256(_version())
        digest.update(f"{graph.digest} {machine}".encode())
        with jit.lock:
            sealed = _sealed(digest.hexdigest(), graph, machine)
            self.size, tables = struct.unpack_from("<QQ", sealed)
            self.tables = np.frombuffer(sealed, np.uint8, tables, 16)
            engine = jit.Engine(sealed[16 + tables :], "run")
            self.address = engine.address
        weakref.finalize(self, jit.closed, engine)
        self._call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, ctypes.c_int64] * 2)(self.address)
        self._free: list[Array] = []

    def run(self, inputs: list[Array], outputs: list[Array], threads: int) -> None:
        """Evaluate arrays (rows, size) of any strides; the rows are divided among threads."""
        arrays = np.array([(a.ctypes.data, *a.strides) for a in (*inputs, *outputs)], np.int64)
        rows, lanes = outputs[0].shape[0], self.machine.lanes
        each = -(-rows // (1 if threads == 1 else SHARES * threads))
        each += -each % lanes
        parts = deque((start, min(start + each, rows)) for start in range(0, rows, each))
        jobs = [
            _pool(os.getpid()).submit(self._work, arrays, parts, (inputs, outputs))
            for _ in range(min(threads, len(parts)) - 1)
        ]
        self._work(arrays, parts)
        for job in jobs:
            job.result()

    def _work(self, arrays: Array, parts: deque[tuple[int, int]], keep: object = None) -> None:
        """Evaluate parts as long as there are any. `keep` holds the memory that `arrays` points to
        alive, even if the caller is interrupted."""
        try:
            room = self._free.pop()
        except IndexError:
            room = workspace([self])
        places = arrays.ctypes.data, room.ctypes.data
        with suppress(IndexError):
            while True:
                self._call(places[0], *parts.popleft(), places[1])
        self._free.append(room)


def workspace(codes: Sequence[MachineCode]) -> Array:
    """An aligned workspace for any of the codes, one evaluation at a time. Its header has the
    addresses of their tables."""
    size = max(code.size for code in codes)
    room = np.empty(size + 64, np.uint8)
    room = room[-room.ctypes.data % 64 :][:size]
    for code in codes:
        at = tables_at(code.machine)
        room[at : at + 8].view(np.int64)[0] = code.tables.ctypes.data
    return room


def _sealed(key: str, graph: Graph | Recalled, machine: Machine) -> bytes:
    """The entry of the disk cache, compiled if it is not there: size of the workspace, size of the
    tables, tables, and object code."""
    found = cache.load(key)
    if found is None:
        module = emit(graph.whole, machine)
        head = struct.pack("<QQ", module.workspace, len(module.tables))
        found = head + module.tables + jit.compiled(module.text)
        cache.store(key, found)
    return found


@once
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of this process (a forked child needs its own)."""
    return ThreadPoolExecutor(max(1, (os.cpu_count() or 2)), thread_name_prefix="phipsi")
