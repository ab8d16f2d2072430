"""LLVM as a compiler for this machine: text to object code, object code into memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import cache as once
from types import MappingProxyType
from typing import Any

import llvmlite
from llvmlite import binding

llvm: Any = binding  # which has no types
lock = threading.RLock()
"""Held while LLVM compiles: one compilation at a time."""
if hasattr(os, "register_at_fork"):  # else a forked child could wait for a thread it does not have
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
    )


@once
def target() -> tuple[str, str, str]:
    """Triple, processor and features of this machine.

    Scheduling after register allocation, which LLVM does for some processors (Zen), is switched
    off: on code with many loads and stores it takes most of the compile time and gains nothing.
    """
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
    triple, processor, features = target()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=processor, features=features, opt=2, reloc="pic", codemodel="small", jit=True
    )
    module = llvm.parse_assembly(text, llvm.create_context())
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    options = llvm.create_pipeline_tuning_options()
    passes.run(module, llvm.create_pass_builder(machine, options))
    return machine.emit_object(module)


class Engine:
    """Object code of one function in memory, which may use symbols given by their addresses;
    `closed` frees it.

    JITLink allocates code and constants in one block. LLVM's older linker, MCJIT, may place them in
    gaps of the address space more than 2 GiB apart: out of reach for code of the small code model,
    at which LLVM aborts the process.
    """

    def __init__(
        self, code: bytes, function: str, symbols: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        self._jit = llvm.create_lljit_compiler(use_jit_link=True)
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name, address in symbols.items():
            library.import_symbol(name, address)
        self._library = library.export_symbol(function).link(self._jit, function)
        self.address: int = self._library[function]

    def close(self) -> None:
        """Free the code."""
        self._library.close()
        self._jit.close()


def closed(engine: Engine) -> None:
    """Free an engine."""
    with lock:
        engine.close()
