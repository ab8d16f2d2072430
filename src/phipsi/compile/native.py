"""Graphs as machine code of this processor: emitted and compiled, or loaded from the disk cache,
and run on arrays."""

from __future__ import annotations

import ctypes
import hashlib
import os
import struct
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache as once
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from phipsi import sources
from phipsi.compile import cache, jit
from phipsi.compile.backend import Executable
from phipsi.compile.entry import entry
from phipsi.compile.graph import Graph, Recalled
from phipsi.compile.llvm_text import Machine
from phipsi.compile.signature import Signature
from phipsi.compile.to_llvm import STOP, emit, tables_at
from phipsi.compile.workers import Job, submit
from phipsi.typing import Array

WORK = 4_000_000
"""The least number of operations that is worth waking another thread."""

SHARES = 6
"""Parts of the batch for each thread: a thread that starts late, or is held up, takes fewer."""

HELD = 500_000
"""Most operations that are computed with the GIL held."""

OWN = 1 << 20
"""Most bytes of a workspace that is allocated for a single long call."""

LONG = 20_000_000
"""Most operations between two moments at which Ctrl-C can end a call: 1 ms of vector arithmetic,
20 ms of rounds of a small loop."""

MOVED = 8
"""The operations that take as long as one number that is read from memory or written there."""


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
            machine = host(self.dtype, single)
            sealed = cache.load(_key(self.graph, machine))
            if sealed is None:
                _ = self.graph.whole  # traced by code of the user, perhaps: without the lock
            with jit.lock:  # one thread compiles it, others wait
                if single not in self._codes:
                    self._codes[single] = MachineCode(self.graph, machine, sealed)
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
            keep=(room, *((code.code, code.tables) for code in codes)),
        )

    def _alone(self, size: int) -> int:
        """Most rows that are computed in one piece on the caller's thread: above, more threads
        would be quicker, Ctrl-C would have to wait, or the workspace is too large to be allocated
        for a single call."""
        if size > OWN:
            return HELD // self.operations
        most = self.threads or default_threads()
        leaves = (*self.signature.inputs, *self.signature.results.leaves)
        numbers = sum(prod(leaf.shape) for leaf in leaves)
        bounded = LONG // (self.operations + MOVED * numbers)
        return bounded if most == 1 else min(bounded, 2 * WORK // self.operations)

    def run(self, inputs: list[Array], outputs: list[Array]) -> None:
        """Evaluate arrays (rows, size) of any strides; `outputs` are written in place."""
        rows = outputs[0].shape[0]
        if rows == 1:
            self.single.run(inputs, outputs, 1)
        elif rows:
            most = self.threads or default_threads()
            if jit.held():  # a finalizer: workers may run others, which want the lock
                most = 1
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
    """The machine code of one graph for one machine, with its tables and workspaces. `sealed` is
    its entry of the disk cache, if that is loaded already."""

    def __init__(
        self, graph: Graph | Recalled, machine: Machine, sealed: bytes | None = None
    ) -> None:
        self.machine, self.operations = machine, max(1, graph.operations)
        sealed = sealed or _sealed(graph, machine)
        self.size, tables = struct.unpack_from("<QQ", sealed)
        self.tables = np.frombuffer(sealed, np.uint8, tables, 16)
        self.code = jit.load(sealed[16 + tables :], "run")
        self.address: int = self.code.ctypes.data
        self._call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, ctypes.c_int64] * 2)(self.address)
        self._free: list[Array] = []

    def run(self, inputs: list[Array], outputs: list[Array], threads: int) -> None:
        """Evaluate arrays (rows, size) of any strides; the rows are divided among threads.

        Python answers signals between calls of machine code alone. So the rows come in parts of at
        most `LONG` operations; and where one row has more, other threads compute while the caller
        waits. An exception stops them, and is raised when they have stopped.
        """
        arrays = (*inputs, *outputs)
        rows, lanes = outputs[0].shape[0], self.machine.lanes
        share = -(-rows // (1 if threads == 1 else SHARES * threads))
        each = LONG // (self.operations + MOVED * sum(a.shape[1] for a in arrays))
        each = max(1, min(share, each))
        each += -each % lanes
        call = _Call(
            np.array([(_address(a), *a.strides) for a in arrays], np.int64),
            deque((start, min(start + each, rows)) for start in range(0, rows, each)),
            (inputs, outputs),
            [],
            [],
        )
        alone = self.operations <= LONG
        try:
            submit(min(threads, len(call.parts)) - alone, partial(self._work, call), call.jobs)
            if alone or not call.jobs:
                self._work(call)
            call.wait()
        except BaseException:
            call.stop()
            call.wait()
            raise
        for error in (job.error for job in call.jobs if job.error is not None):
            raise error
        self._free += call.rooms

    def _work(self, call: _Call) -> None:
        """Evaluate parts of a call as long as there are any."""
        if not call.parts:
            return
        try:
            room = self._free.pop()
        except IndexError:
            room = workspace([self])
        call.rooms.append(room)
        places = _address(call.arrays), _address(room)
        with suppress(IndexError):
            while True:
                self._call(places[0], *call.parts.popleft(), places[1])


class _Call(NamedTuple):
    """Arrays by address and strides, the parts of the rows that are to be computed, the owners of
    the arrays, which live until the last thread has ended, the workspaces in use, and the jobs of
    workers."""

    arrays: Array
    parts: deque[tuple[int, int]]
    owners: object
    rooms: list[Array]
    jobs: list[Job]

    def wait(self) -> None:
        """Wait until all parts are computed; a job that begins later finds none."""
        for job in self.jobs:
            if self.parts or job.begun:
                job.wait()

    def stop(self) -> None:
        """End the call as soon as the current round of long loops is over."""
        self.parts.clear()
        for room in self.rooms:
            room[STOP] = 1


def _address(array: Array) -> int:
    """The address of an array's memory. (`array.ctypes.data` imports a module, which finalizers
    cannot at the end of the process.)"""
    return array.__array_interface__["data"][0]


def workspace(codes: Sequence[MachineCode]) -> Array:
    """An aligned workspace for any of the codes, one evaluation at a time. Its header has the
    addresses of their tables."""
    size = max(code.size for code in codes)
    room = np.zeros(size + 64, np.uint8)
    room = room[-room.ctypes.data % 64 :][:size]
    for code in codes:
        at = tables_at(code.machine)
        room[at : at + 8].view(np.int64)[0] = code.tables.ctypes.data
    return room


def _key(graph: Graph | Recalled, machine: Machine) -> str:
    """The key in the disk cache."""
    digest = hashlib.sha256(_version())
    digest.update(f"{graph.digest} {machine}".encode())
    return digest.hexdigest()


def _sealed(graph: Graph | Recalled, machine: Machine) -> bytes:
    """The entry of the disk cache, compiled if it is not there: size of the workspace, size of the
    tables, tables, and object code."""
    key = _key(graph, machine)
    found = cache.load(key)
    if found is None:
        module = emit(graph.whole, machine)
        head = struct.pack("<QQ", module.workspace, len(module.tables))
        found = head + module.tables + jit.compiled(module.text)
        cache.store(key, found)
    return found
