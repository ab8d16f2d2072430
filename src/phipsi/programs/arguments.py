"""Arguments and results of programs: arrays distinguished from options, results flattened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from phipsi.compile import Dtype, as_device_array, as_numbers, is_traced, on_device
from phipsi.typing import Array


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether an argument is a mapping of names to values."""
    return isinstance(value, Mapping)


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether an argument is a list or a tuple."""
    return isinstance(value, (list, tuple))


def is_dynamic(value: object) -> bool:
    """Whether an argument holds numbers: an array, a number, a list or tuple of numbers, or a
    mapping to any of these."""
    if value is None or isinstance(value, (str, bool)):
        return False
    if isinstance(value, (int, float, np.ndarray, np.generic)) or is_traced(value):
        return True
    if is_sequence(value):
        if isinstance(value, list):
            return not value or any(map(is_dynamic, value))
        return bool(value) and all(map(is_dynamic, value))
    if is_mapping(value):
        return any(map(is_dynamic, value.values()))
    return hasattr(value, "__array__") or on_device(value)


def as_array(where: str, value: Any) -> Array:
    """Numbers as an array, on the CUDA device if they are on one; `where` begins error messages."""
    return as_device_array(value) if on_device(value) else as_numbers(where, value)


def frozen(option: Any) -> Any:
    """An option as a hashable constant: lists become tuples."""
    return tuple(map(frozen, option)) if is_sequence(option) else option


def are_names(value: object) -> bool:
    """Whether an argument is a name or a sequence of names, which may be empty."""
    if is_sequence(value):
        return all(isinstance(x, str) for x in value)
    return isinstance(value, str)


def as_truths(where: str, value: Any) -> Array:
    """A mask as an array of truth values. Numbers other than zero are true; integers other than 0
    and 1 are refused, because they look like positions. Arrays on a CUDA device are not checked."""
    if on_device(value):
        return as_device_array(value)
    try:
        array = as_numbers(where, value)
    except (TypeError, ValueError):
        raise TypeError(f"{where} needs truth values or names of hinges, got {value!r}") from None
    if array.dtype.kind in "iu" and not np.isin(array, (0, 1)).all():
        raise ValueError(f"{where} needs truth values or names of hinges, got positions {value!r}")
    return array


def common_dtype(values: Iterable[Any]) -> Dtype:
    """The number type of the kernel for these arguments. Only arrays count; Python numbers and
    lists are converted to it."""
    arrays: list[Any] = [as_device_array(x) if on_device(x) else x for x in values]
    arrays = [x for x in arrays if isinstance(x, (np.ndarray, np.generic)) or on_device(x)]
    floats = {x.dtype for x in arrays if x.dtype.kind == "f"}
    if floats and all(dtype == np.float32 for dtype in floats):
        return "float32"
    return "longdouble" if np.dtype(np.longdouble) in floats - {np.dtype(float)} else "float64"
