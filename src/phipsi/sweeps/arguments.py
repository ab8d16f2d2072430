"""What a program is called with and returns: arrays told from options, results taken apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from phipsi.compile import is_traced
from phipsi.model import ModelError


def is_dynamic(value: Any) -> bool:
    """Numbers, arrays, lists and tuples of them, mappings of them."""
    if value is None or isinstance(value, (str, bool)):
        return False
    if isinstance(value, (int, float, np.ndarray, np.generic, list)) or is_traced(value):
        return True
    if isinstance(value, tuple):
        return bool(value) and all(is_dynamic(x) for x in value)
    if isinstance(value, Mapping):
        return any(is_dynamic(x) for x in value.values())
    return hasattr(value, "__array__")


def common_dtype(values: list[Any]) -> str:
    """The number type of a kernel for these arrays."""
    kinds = {a.dtype for a in values if a.dtype.kind == "f"}
    if kinds and all(d == np.float32 for d in kinds):
        return "float32"
    return "longdouble" if np.dtype(np.longdouble) in kinds - {np.dtype(float)} else "float64"


def flatten(result: Any, name: str) -> tuple[list[tuple[str, Any]], Callable[[list[Any]], Any]]:
    """The named arrays in a result (array, tuple, named tuple or dict) and how to pack them."""
    if isinstance(result, tuple):
        fields = getattr(result, "_fields", None)
        names = fields or [f"{name}[{i}]" for i in range(len(result))]
        pack = (lambda xs: type(result)(*xs)) if fields else tuple
        return list(zip(names, result, strict=True)), pack
    if isinstance(result, Mapping):
        keys = [str(k) for k in result]
        return list(zip(keys, result.values(), strict=True)), lambda xs: dict(
            zip(keys, xs, strict=True)
        )
    if result is None:
        raise ModelError(f"program {name} returned nothing; return an array")
    return [(name, result)], lambda xs: xs[0]
