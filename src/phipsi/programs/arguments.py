"""What a program is called with and returns: arrays told from options, results taken apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from phipsi.compile import as_device_array, as_numbers, is_traced, on_device


def is_dynamic(value: Any) -> bool:
    """Numbers, arrays, lists and tuples of them, mappings of them."""
    if value is None or isinstance(value, (str, bool)):
        return False
    if isinstance(value, (int, float, np.ndarray, np.generic)) or is_traced(value):
        return True
    if isinstance(value, list):
        return not value or any(map(is_dynamic, value))
    if isinstance(value, tuple):
        return bool(value) and all(is_dynamic(x) for x in value)
    if isinstance(value, Mapping):
        return any(is_dynamic(x) for x in value.values())
    return hasattr(value, "__array__") or on_device(value)


def as_array(where: str, value: Any) -> Any:
    """Numbers as an array: where they are, if that is a CUDA device."""
    return as_device_array(value) if on_device(value) else as_numbers(where, value)


def frozen(option: Any) -> Any:
    """An option as a constant: lists as tuples."""
    return tuple(map(frozen, option)) if isinstance(option, (list, tuple)) else option


def are_names(value: Any) -> bool:
    """A name, or a sequence of names, possibly none."""
    if isinstance(value, (list, tuple)):
        return all(isinstance(x, str) for x in value)
    return isinstance(value, str)


def as_truths(where: str, value: Any) -> Any:
    """Truth values as an array; of other numbers all but zero are true, but whole numbers that are
    neither 0 nor 1 are refused: they would be positions. On a CUDA device they are as they are."""
    if on_device(value):
        return as_device_array(value)
    try:
        array = as_numbers(where, value)
    except (TypeError, ValueError):
        raise TypeError(f"{where} needs truth values or names of hinges, got {value!r}") from None
    if array.dtype.kind in "iu" and not np.isin(array, (0, 1)).all():
        raise ValueError(f"{where} needs truth values or names of hinges, got positions {value!r}")
    return array


def common_dtype(values: Iterable[Any]) -> str:
    """The number type of a kernel for these arguments: that of its arrays; plain Python numbers and
    lists follow."""
    values = [as_device_array(x) if on_device(x) else x for x in values]
    arrays = (x.dtype for x in values if isinstance(x, (np.ndarray, np.generic)) or on_device(x))
    kinds = {dtype for dtype in arrays if dtype.kind == "f"}
    if kinds and all(d == np.float32 for d in kinds):
        return "float32"
    return "longdouble" if np.dtype(np.longdouble) in kinds - {np.dtype(float)} else "float64"


Pack = Callable[[Sequence[Any]], Any]


def first(parts: Sequence[Any]) -> Any:
    """How a result that is one array is packed."""
    return parts[0]


def flatten(result: Any, name: str) -> tuple[list[tuple[str, Any]], Pack]:
    """The named arrays in a result (an array, or tuples, named tuples and dicts of results) and how
    to pack them again."""
    if result is None:
        raise TypeError(f"program {name} returned nothing; return an array")
    if isinstance(result, Mapping):
        keys, parts = list(result), list(result.values())
        names = [str(key) for key in keys]

        def build(xs: Sequence[Any]) -> Any:
            return dict(zip(keys, xs, strict=True))

    elif isinstance(result, tuple):
        parts, fields = list(result), getattr(result, "_fields", None)
        names = list(fields or [f"{name}[{i}]" for i in range(len(parts))])

        def build(xs: Sequence[Any]) -> Any:
            return type(result)(*xs) if fields else tuple(xs)

    else:
        return [(name, result)], first
    flat = [flatten(part, part_name) for part, part_name in zip(parts, names, strict=True)]

    def pack(xs: Sequence[Any]) -> Any:
        left = iter(xs)
        return build([inner([next(left) for _ in leaves]) for leaves, inner in flat])

    return [leaf for leaves, _ in flat for leaf in leaves], pack
