"""LLVM as a compiler for this machine: text to object code, object code into memory."""

from __future__ import annotations

import ctypes
import threading
import weakref
from _thread import start_new_thread
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import cache as once
from types import MappingProxyType
from typing import Any, NamedTuple

import llvmlite
import numpy as np
from llvmlite import binding

from phipsi.forks import held_at_forks
from phipsi.typing import Array

llvm: Any = binding  # which has no types
lock = held_at_forks(threading.RLock())
"""Held during all calls of LLVM, but not while code of the user runs, other than finalizers."""


def held() -> bool:
    """Whether this thread holds the lock."""
    owned: Any = lock
    return owned._is_owned()


@once
def target() -> tuple[str, str, str]:
    """Triple, processor and features of this machine.

    Scheduling after register allocation, which LLVM does for some processors (Zen), is switched
    off: on code with many loads and stores it takes most of the compile time and gains nothing.
    """
    with lock:
        llvm.set_option("phipsi", "-disable-post-ra")
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        features = llvm.get_host_cpu_features()
        features["prefer-256-bit"] = False
        return llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten()


def versions() -> str:
    """The versions that object code depends on besides its text: a part of its cache key."""
    return repr((llvmlite.__version__, llvm.llvm_version_info, target()))


def compiled(text: str) -> bytes:
    """The object code of LLVM text. Of LLVM's passes only inlining is run: the others double the
    time and gain nothing on code whose constants are folded already."""
    with lock:  # also while LLVM's objects are freed
        return _compiled(text, *target())


def _compiled(text: str, triple: str, processor: str, features: str) -> bytes:
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=processor, features=features, opt=2, reloc="pic", codemodel="small", jit=True
    )
    module = llvm.parse_assembly(text, llvm.create_context())
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    options = llvm.create_pipeline_tuning_options()
    passes.run(module, llvm.create_pass_builder(machine, options))
    return machine.emit_object(module)


MANY = 256
"""From so many pieces of unused code on, a thread is started that frees them."""


class Loaded(NamedTuple):
    """Code in memory: a weak reference to the array that stands for it, and LLVM's objects."""

    reference: weakref.ref[Array]
    library: Any
    linker: Any


_loaded: dict[int, Loaded] = {}
"""All code in memory by address. What is there when the process ends stays to the last: functions
run at exit, finalizers and threads may call it until then."""
_unused: deque[int] = deque()
"""Addresses of code that nothing refers to."""


def load(code: bytes, function: str, symbols: Mapping[str, int] = MappingProxyType({})) -> Array:
    """Object code of one function in memory, which may use symbols given by their addresses.

    The returned array begins at the function, and the code is freed some time after the array. An
    array is not tracked by the collector of cyclic garbage: it is there as long as anything can
    reach it, also the finalizer of an object in a cycle, before which an object with a finalizer
    of its own might be finalized. Since the array can be dropped at any moment in any thread, this
    waits for no lock: it notes that the code is unused, and whoever loads code next frees it.

    JITLink allocates code and constants in one block. LLVM's older linker, MCJIT, may place them in
    gaps of the address space more than 2 GiB apart: out of reach for code of the small code model,
    at which LLVM aborts the process.
    """
    free()
    with lock:
        linker = llvm.create_lljit_compiler(use_jit_link=True)
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name, address in symbols.items():
            builder.import_symbol(name, address)
        library = builder.export_symbol(function).link(linker, function)
    address = library[function]
    view = np.frombuffer(memoryview((ctypes.c_uint8 * 1).from_address(address)), np.uint8)

    def drop(_: object, unused: deque[int] = _unused) -> None:
        unused.append(address)
        if not len(unused) % MANY:
            with suppress(RuntimeError):  # no more threads, or the process is ending
                start_new_thread(free, ())

    _loaded[address] = Loaded(weakref.ref(view, drop), library, linker)
    return view


def free() -> None:
    """Free the code that is not used any more."""
    while _unused:
        with lock, suppress(IndexError):  # another thread may have been quicker
            _, library, linker = _loaded.pop(_unused.popleft())
            library.close()
            linker.close()
