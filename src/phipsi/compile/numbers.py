"""Arguments as arrays of real numbers: what is not is refused in a sentence."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from phipsi.compile.arrays import is_traced
from phipsi.compile.device import on_device
from phipsi.typing import MAX_AXES, Array, is_masked


def as_numbers(where: str, value: object) -> Array:
    """The value as an array of real numbers; `where` begins the sentence of an error."""
    if on_device(value):
        raise TypeError(f"{where} is on a CUDA device, needs to be here, or backend='cuda'")
    try:
        array: Array = np.asarray(value)
    except (ValueError, RecursionError):
        raise ValueError(f"{where} is a ragged sequence, needs an array of numbers") from None
    if array.ndim > MAX_AXES:
        raise ValueError(f"{where} has {array.ndim} axes, needs at most {MAX_AXES}")
    if array.dtype == object and all(isinstance(x, (int, float)) for x in array.flat):
        try:
            array = array.astype(float)
        except OverflowError:
            raise ValueError(f"{where} has a number larger than 1.8e308") from None
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{where} has dtype {array.dtype}, needs real numbers")
    if is_masked(value):
        raise ValueError(f"{where} has masked elements, needs numbers: fill them by .filled(…)")
    return array


def as_operand(where: str, value: Any) -> Array:
    """The value as an array of real numbers; what is traced or on a CUDA device stays as it is."""
    if on_device(value) or is_traced(value):
        return value
    with suppress(ValueError):
        given = np.asanyarray(value)
        if is_traced(given):
            return given
    return as_numbers(where, value)


def as_number(where: str, value: object) -> float:
    """The value as a float; `where` begins the sentence of an error."""
    array = as_numbers(where, value)
    if array.ndim or array.dtype == bool:
        what = "a truth value" if array.dtype == bool else f"an array of shape {array.shape}"
        raise TypeError(f"{where} is {what}, needs one number")
    return float(array)
