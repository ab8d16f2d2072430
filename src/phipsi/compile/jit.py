"""LLVM as a compiler for this machine: text to object code, object code into memory."""

from __future__ import annotations

import os
import threading
from functools import cache as once
from typing import Any, Protocol

import llvmlite
from llvmlite import binding

llvm: Any = binding  # which has no types
lock = threading.RLock()
"""Held while LLVM compiles: one compilation at a time."""
if hasattr(os, "register_at_fork"):  # else a forked child could wait for a thread it does not have
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
    )


class Engine(Protocol):
    """Object code in memory."""

    def get_function_address(self, name: str) -> int:
        """The address of a compiled function."""
        ...

    def close(self) -> None:
        """Free the code."""
        ...


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


def _machine(model: str) -> Any:
    triple, processor, features = target()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=processor, features=features, opt=2, reloc="pic", codemodel=model, jit=True
    )


def compiled(text: str, model: str = "small") -> bytes:
    """The object code of LLVM text. Code of the small code model cannot address data of the
    process, that of the large model can. Of LLVM's passes only inlining is run: the others double
    the time and gain nothing on code whose constants are folded already."""
    machine = _machine(model)
    module = llvm.parse_assembly(text, llvm.create_context())
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    options = llvm.create_pipeline_tuning_options()
    passes.run(module, llvm.create_pass_builder(machine, options))
    return machine.emit_object(module)


class _Linked:
    """Object code linked by JITLink, which allocates code and constants in one block. MCJIT may
    place them in gaps of the address space more than 2 GiB apart: out of reach for code of the
    small code model, at which LLVM aborts the process."""

    def __init__(self, code: bytes, function: str) -> None:
        self._jit = llvm.create_lljit_compiler(use_jit_link=True)
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        self._library = library.export_symbol(function).link(self._jit, "kernel")

    def get_function_address(self, name: str) -> int:
        return self._library[name]

    def close(self) -> None:
        self._library.close()
        self._jit.close()


def loaded(code: bytes, function: str) -> Engine:
    """The engine that owns the object code of a function; `closed` frees it."""
    return _Linked(code, function)


def loaded_large(code: bytes) -> Engine:
    """The engine that owns object code of the large code model, which may use symbols that were
    given to `llvm.add_symbol`."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine("large"))
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def closed(engine: Engine) -> None:
    """Free an engine."""
    with lock:
        engine.close()
