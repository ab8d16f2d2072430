"""LLVM as a compiler for this machine: text to object code, object code into memory."""

from __future__ import annotations

import os
import threading
from functools import cache as once
from typing import Any

import llvmlite
import llvmlite.binding as llvm

lock = threading.RLock()
"""Held while LLVM is at work: one compilation at a time."""
if hasattr(os, "register_at_fork"):  # a child would wait for ever for a thread that it has not
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
    )


@once
def target() -> tuple[str, str, str]:
    """Triple, processor and features of this machine.

    Scheduling after registers are allocated, which LLVM does for some processors (Zen), takes most
    of the time of code with many loads and stores and gains nothing: it is left out.
    """
    llvm.set_option("phipsi", "-disable-post-ra")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    features["prefer-256-bit"] = False
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten()


def versions() -> str:
    """What object code depends on besides its text."""
    return repr((llvmlite.__version__, llvm.llvm_version_info, target()))


def _machine(model: str) -> Any:
    triple, processor, features = target()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=processor, features=features, opt=2, reloc="pic", codemodel=model, jit=True
    )


def compiled(text: str, model: str = "small") -> bytes:
    """The object code of LLVM text. The small code model cannot reach data outside; the large one
    can. Of LLVM's passes only inlining is run: the others double the time and gain nothing on code
    that is folded already."""
    machine = _machine(model)
    module = llvm.parse_assembly(text, llvm.create_context())
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    options = llvm.create_pipeline_tuning_options()
    passes.run(module, llvm.create_pass_builder(machine, options))
    return machine.emit_object(module)


def loaded(code: bytes, model: str = "small") -> Any:
    """An engine that owns object code in memory; close it to free it."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(model))
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def closed(engine: Any) -> None:
    """Free an engine."""
    with lock:
        engine.close()
