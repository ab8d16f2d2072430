"""The native entry: how a compiled kernel is called with NumPy arrays in some tens of nanoseconds.

One function in LLVM IR, made once per process, serves every kernel: it is the C function of a
builtin (METH_FASTCALL | METH_KEYWORDS) whose `self` describes the kernel. Plain arrays go straight
to the compiled code; all else goes to `fallback`, the checked path in Python, with its arguments as
they came. The entry must never be wrong and never crash, so it takes only what it knows, and where
the interpreter or NumPy is laid out otherwise it is not used at all.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import struct
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache as once
from importlib import import_module
from math import prod
from typing import Any, NamedTuple

import numpy as np

from phipsi import sources
from phipsi.compile import cache, jit
from phipsi.compile.entry_text import ENTRY
from phipsi.typing import Array

C_FUNCTIONS = (
    "PyObject_Vectorcall", "PyList_New", "PyList_SetItem", "Py_IncRef", "Py_DecRef",
    "PyEval_SaveThread", "PyEval_RestoreThread", "PyMem_RawMalloc", "PyMem_RawFree",
)  # fmt: skip
"""The functions of Python's C API that the entry calls."""
MAX_ARRAYS, MAX_CORE, MAX_LEADING = 64, 6, 24
"""Most arrays, core axes and batch axes taken natively (32 axes is what any NumPy can have)."""

_ITEMS = tuple.__basicsize__  # where the items of a tuple begin, and the bytes of a bytes object
_BYTES = bytes.__basicsize__ - 1
_KIND = 24  # in a dtype: kind, type, byte order, flags and number, 8 bytes (the same in NumPy 1, 2)
_OUT = sys.intern("out")


class _Held(NamedTuple):
    """The `self` of a builtin: the objects that it uses and keeps alive."""

    descriptor: bytes
    fallback: Callable[..., Any]
    pack: Callable[[list[Any]], Any] | None
    name: bytes
    dtype: np.dtype[Any]
    code: Array
    keep: object


def entry(
    *,
    name: str,
    inputs: Sequence[tuple[int, ...]],
    outputs: Sequence[tuple[int, ...]],
    dtype: np.dtype[Any],
    single: int,
    batch: int,
    workspace: int,
    limit: int,
    held: int,
    size: int,
    fallback: Callable[..., Any],
    pack: Callable[[list[Any]], Any] | None = None,
    keep: object = None,
) -> Callable[..., Any]:
    """A builtin that calls compiled code on plain arrays (…, *core), and `fallback` on all else.

    `single` (one row) and `batch` (more rows) are addresses of
    `void run(ptr arrays, i64 start, i64 stop, ptr workspace)`, or 0 to leave those to `fallback`.
    `arrays` has for each input, then each output: the address, the bytes from row to row, and the
    bytes from element to element. Up to `held` rows the code runs with the GIL held, so that one
    `workspace` (an address) is enough, as long as `fallback` uses another; beyond, without the GIL
    and in a workspace of its own, of `size` bytes, with the same first 64; more than `limit` rows
    go to `fallback`.

    It is called as `f(*arrays, out=None)`. One output is returned as it is; with `pack`, which
    several need, a list of them goes through it, and `out=` to `fallback`. `keep` is kept alive as
    long as the builtin (the owner of the code, say). Where the process is not laid out as the entry
    knows it (PyPy, no GIL, 32 bits), `fallback` itself is returned: slower, and as right.
    """
    if pack is None and len(outputs) != 1:
        raise ValueError(f"{name} has {len(outputs)} outputs: give pack, which makes one of them")
    arrays = (*inputs, *outputs)
    fits = 0 < len(inputs) < len(arrays) <= MAX_ARRAYS and max(map(len, arrays)) <= MAX_CORE
    if not fits or not _familiar():
        return fallback
    dtype = np.dtype(dtype.type)
    code = _compiled()
    named = name.encode()
    method = struct.pack("@PPiP", id(named) + _BYTES, code.ctypes.data, 0x0080 | 0x0002, 0)
    words = [len(inputs), len(outputs), id(dtype), _word(id(dtype) + _KIND), dtype.itemsize]
    words += [single, batch, workspace, max(0, limit), max(1, held), size]
    for core in arrays:
        padding = [0] * (MAX_CORE - len(core))
        words += [prod(core) * dtype.itemsize, len(core), *core, *padding]
    descriptor = method + np.array(words, np.uint64).tobytes()
    kept = _Held(descriptor, fallback, pack, named, dtype, code, keep)
    new = _python("PyCFunction_NewEx", ctypes.py_object, ctypes.c_void_p, *[ctypes.py_object] * 2)
    return new(id(descriptor) + _BYTES, kept, __name__)


@once
def _python(name: str, result: Any, *arguments: Any) -> Any:
    """A function of Python's C API."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


@once
def _familiar() -> bool:
    """Whether this interpreter and this NumPy lay out their objects as the entry reads them."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if struct.calcsize("P") != 8 or object.__basicsize__ != 16:
        return False
    items, text = ("first", "second"), b"some bytes"
    right = _word(id(items) + 16) == 2 and _word(id(items) + _ITEMS + 8) == id(items[1])
    right &= ctypes.string_at(id(text) + _BYTES, len(text)) == text
    right &= _table()[2] == id(np.ndarray)
    read_only = np.arange(4.0)
    read_only.flags.writeable = False
    samples = [np.zeros((2, 3)), np.zeros((5, 4), np.float32).T[1:, ::2], read_only, np.array(1.0)]
    for x in samples:
        fields = struct.unpack("@qPPiPPPPi", ctypes.string_at(id(x), 68))
        known = (id(type(x)), x.ctypes.data, x.ndim, id(x.dtype), x.flags.num)
        right &= tuple(fields[k] for k in (1, 2, 3, 7, 8)) == known
        right &= all(_word(fields[4] + 8 * k) == length for k, length in enumerate(x.shape))
        kind = struct.unpack("@cccxi", ctypes.string_at(id(x.dtype) + _KIND, 8))
        right &= kind == (b"f", x.dtype.char.encode(), b"=", x.dtype.num)
    return right


def _table() -> Any:
    """NumPy's C functions and types, at places that are ABI."""
    capsule = vars(import_module("numpy._core.multiarray"))["_ARRAY_API"]
    pointer = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    return (ctypes.c_void_p * 95).from_address(pointer(capsule, None))


@once
def _compiled() -> Array:
    """The native function in memory."""
    symbols = {"_Py_NoneStruct": id(None), "phipsi_out": id(_OUT), "PyArray_Type": id(np.ndarray)}
    symbols |= {"PyArray_Return": _table()[76], "PyArray_NewFromDescr": _table()[94]}
    for name in C_FUNCTIONS:
        symbols[name] = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    text = ENTRY.substitute(
        max_core=MAX_CORE,
        max_arrays=MAX_ARRAYS,
        max_leading=MAX_LEADING,
        items=_ITEMS,
        fallback=_ITEMS + 8,
        pack=_ITEMS + 16,
        bytes=_BYTES,
        kind=_KIND,
        readable=0x0101,  # C-contiguous, aligned
        writeable=0x0501,
        mask=0x80000501,  # and does not warn on writing
    )
    what = sources.digest("compile") + (text + jit.versions()).encode()
    key = hashlib.sha256(what).hexdigest()
    code = cache.load(key)
    if code is None:
        code = jit.compiled(_spelt_out(text))
        cache.store(key, code)
    return jit.load(code, "phipsi_entry", symbols)


def _spelt_out(text: str) -> str:
    """LLVM IR without the abbreviations."""
    where = r"\1.at = getelementptr {}, ptr \3, i64 \4\n  \1 = load \2, ptr \1.at"
    at = r"(%[\w.]+) = at (\w+), (%[\w.]+)"
    text = re.sub(at + r" \+ (\d+)", where.format("i8"), text)
    text = re.sub(at + r"\[(%[\w.]+)\]", where.format(r"\2"), text)
    return re.sub(
        r"if (\w+ \w+ \S+, [^,]+), (\S+), (\S+)",
        lambda m: (
            f"%if.{m.start()} = icmp {m[1]}\n  br i1 %if.{m.start()}, label {m[2]}, label {m[3]}"
        ),
        text,
    )
