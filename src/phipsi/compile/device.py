"""Arrays on CUDA devices: recognising them, and copying them to and from the host.

CuPy is imported when the first such array is met.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np

from phipsi.typing import Array, ArrayLike


@runtime_checkable
class SupportsDLPack(Protocol):
    """An array of any library that follows DLPack: CuPy, PyTorch, JAX."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """The kind of the device and its number."""
        ...


@runtime_checkable
class SupportsCudaArray(Protocol):
    """An array of any library that follows the CUDA array interface: Numba, CuPy."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Address, shape, strides and type."""
        ...


DeviceArray: TypeAlias = SupportsDLPack | SupportsCudaArray
"""An array that may be on a CUDA device."""

_CUDA = (2, 13)
"""The numbers of CUDA memory in DLPack, plain and managed."""

_HOST_TYPES = (np.ndarray, np.generic, int, float, list, tuple, str, dict, type(None))
"""Types that are never on a device: most arguments need no further question."""


def on_device(x: object) -> bool:
    """Whether x is an array on a CUDA device.

    >>> on_device([1.0]), on_device(np.zeros(3))
    (False, False)
    """
    if isinstance(x, _HOST_TYPES):
        return False
    place = getattr(x, "__dlpack_device__", None)
    if place is not None:
        return place()[0] in _CUDA
    return hasattr(x, "__cuda_array_interface__")


def needed() -> None:
    """Raise an ImportError if CuPy is not installed."""
    if not find_spec("cupy"):
        raise ImportError('the cuda backend needs CuPy: pip install "phipsi[cuda]"')


def is_host_array(x: object) -> TypeGuard[Array]:
    """Whether x is an array of NumPy."""
    return isinstance(x, np.ndarray)


def is_sequence(x: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Whether x is a list or a tuple."""
    return isinstance(x, (list, tuple))


def as_device_array(x: ArrayLike | DeviceArray) -> Any:
    """An array as one of CuPy: an array on a device is not copied, one on the host is."""
    needed()
    cupy = import_module("cupy")
    if isinstance(x, cupy.ndarray):
        return x
    if on_device(x) and hasattr(x, "__dlpack__"):
        return cupy.from_dlpack(x)
    return cupy.asarray(x)


def as_host_array(x: ArrayLike | DeviceArray) -> Array:
    """A copy on the host of an array on a device."""
    return as_device_array(x).get()
