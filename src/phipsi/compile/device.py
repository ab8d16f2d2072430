"""Arrays that live on a CUDA device: telling them apart, and bringing them here and there.

CuPy is imported when there is one to deal with.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

_CUDA = (2, 13)
"""How DLPack calls CUDA memory, plain and managed."""

_HERE = (np.ndarray, np.generic, int, float, list, tuple, str, dict, type(None))


def on_device(x: Any) -> bool:
    """Does an array live on a CUDA device?

    >>> on_device([1.0]), on_device(np.zeros(3))
    (False, False)
    """
    if isinstance(x, _HERE):
        return False
    place = getattr(x, "__dlpack_device__", None)
    if place is not None:
        return place()[0] in _CUDA
    return hasattr(x, "__cuda_array_interface__")


def needed() -> None:
    """Refuse to go on without CuPy."""
    if not find_spec("cupy"):
        raise ImportError('the cuda backend needs CuPy: pip install "phipsi[cuda]"')


def as_device_array(x: Any) -> Any:
    """An array on a device as CuPy's, without a copy; of numbers here a copy."""
    needed()
    import cupy

    if isinstance(x, cupy.ndarray):
        return x
    if on_device(x) and hasattr(x, "__dlpack__"):
        return cupy.from_dlpack(x)
    return cupy.asarray(x)


def as_host_array(x: Any) -> np.ndarray:
    """A copy of an array on a device."""
    return as_device_array(x).get()
