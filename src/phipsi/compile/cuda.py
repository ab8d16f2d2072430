"""Kernels on CUDA devices, by CuPy: arrays on a device are not copied."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from phipsi.compile.backend import Argument, Executable, Out
from phipsi.compile.cuda_code import DeviceCode, cupy_module
from phipsi.compile.device import as_device_array, is_host_array, is_sequence, on_device
from phipsi.compile.graph import Graph, Recalled
from phipsi.compile.signature import ArraySpec, Signature
from phipsi.typing import Array

HOST = 256 << 20
"""Most bytes of host arrays that are copied to the device at once."""

_lock = threading.RLock()
"""Held while a kernel is compiled: one thread compiles it, others wait."""


class Call(NamedTuple):
    """The part of a call that depends on the shapes of the inputs alone: the arguments of the
    launch with zeros for the addresses (None if the shapes are not those of `quick`), and the
    shapes of the results."""

    shapes: list[tuple[int, ...]]
    given: list[int] | None = None
    results: Sequence[tuple[int, ...]] = ()


class OnDevice(Executable):
    """A kernel on CUDA devices; its code is compiled for each device when first needed there."""

    def __init__(self, signature: Signature, graph: Graph | Recalled, dtype: str) -> None:
        cupy = cupy_module()
        self.name, self.graph, self.inputs = signature.name, graph, signature.inputs
        self.outputs, self._pack = signature.results.leaves, signature.results.pack
        self.dtype = np.dtype(dtype)
        self._codes: dict[int, DeviceCode] = {}
        self._array = cupy.ndarray
        self._current_device = cupy.cuda.runtime.getDevice
        self._stream = cupy.cuda.get_current_stream
        self._last = Call([])

    @property
    def codes(self) -> list[DeviceCode]:
        """The code compiled so far, one for each device."""
        return list(self._codes.values())

    def prepare(self) -> None:
        """Compile the code for the current device now."""
        self._code(self._current_device())

    def _code(self, device: int) -> DeviceCode:
        """The code for a device, compiled at the first request."""
        if device not in self._codes:
            with _lock:
                if device not in self._codes:
                    self._codes[device] = DeviceCode(self.graph, self.dtype.name, device)
        return self._codes[device]

    # ---- arrays on the device ------------------------------------------------------------------

    def quick(self, values: Sequence[Any], out: Any = None) -> list[Any] | None:
        """The results of a call in the common case, else None: all arrays are CuPy's, of the right
        type, contiguous, on the current device, and those with batch axes have the same ones."""
        device, array, dtype = self._current_device(), self._array, self.dtype
        shapes: list[tuple[int, ...]] = []
        places: list[int] = []
        for a in values:
            if type(a) is not array or a.dtype is not dtype or not a._c_contiguous:
                return None
            data = a.data
            if data.device_id != device:
                return None
            shapes.append(a.shape)
            places.append(data.ptr)
        call = self._last
        if shapes != call.shapes:
            call = self._last = self._call(shapes)
        code = self._codes.get(device)
        if code is None or call.given is None:
            return None
        if out is None:
            results = [self._new(shape) for shape in call.results]
        else:
            results = [out] if type(out) is array else [*out]
            if not self._fits(results, call, places, device):
                return None
        for y in results:
            places.append(y.data.ptr)
        given = call.given[:]
        given[1:-1:2] = places
        if given[0]:
            self._launch(code, given)
        return results

    def _call(self, shapes: list[tuple[int, ...]]) -> Call:
        """The part of a call that depends on these shapes of the inputs alone."""
        batch: tuple[int, ...] = ()
        distances: list[int] = []
        if len(shapes) != len(self.inputs):
            return Call(shapes)
        for shape, leaf in zip(shapes, self.inputs, strict=True):
            split = len(shape) - len(leaf.shape)
            if split < 0 or shape[split:] != leaf.shape:
                return Call(shapes)
            if split and batch and shape[:split] != batch:
                return Call(shapes)
            batch = shape[:split] or batch
            distances.append(prod(leaf.shape) if split else 0)
        distances += [prod(leaf.shape) for leaf in self.outputs]
        given = [prod(batch), *(x for d in distances for x in (0, d)), 0]
        return Call(shapes, given, [batch + leaf.shape for leaf in self.outputs])

    def _fits(self, targets: list[Any], call: Call, places: list[int], device: int) -> bool:
        """Whether these arrays can receive the results: as `quick` wants arrays, of the right
        shapes, and without memory that is also an input's."""
        if len(targets) != len(call.results):
            return False
        sizes = (prod(shape) * self.dtype.itemsize for shape in call.shapes)
        inputs = [(at, at + size) for at, size in zip(places, sizes, strict=True)]
        for y, shape in zip(targets, call.results, strict=True):
            if type(y) is not self._array or y.dtype is not self.dtype or not y._c_contiguous:
                return False
            if y.shape != shape or y.data.device_id != device:
                return False
            first, end = y.data.ptr, y.data.ptr + y.nbytes
            if any(a < end and first < b for a, b in inputs):
                return False
        return True

    def run_at(
        self, rows: int, places: Sequence[tuple[int, int]], device: int, stream: int
    ) -> None:
        """Run on arrays given by their addresses on a device: see `Kernel.at`."""
        if rows:
            given = [rows, *(x for place in places for x in place), 0]
            with cupy_module().cuda.Device(device):
                code = self._code(device)
                if not code.work:
                    self._launch(code, given, stream)
                    return
                with cupy_module().cuda.ExternalStream(stream, device):  # the workspace is its own
                    self._launch(code, given)

    def entry(self, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """A function that answers calls by `quick`, and passes all others to `fallback`."""

        def call(*values: Argument, out: Any = None, **named: object) -> Any:
            results = None if named else self.quick(values, out)
            if results is not None:
                return self._pack(results) if out is None else out
            more = named if out is None else {**named, "out": out}
            return fallback(*values, **more)

        return call

    def run_on_device(self, values: Sequence[Argument], out: Out | None) -> list[Any] | None:
        """The results, or the arrays of `out` with the results, for arrays on one device with any
        strides; arrays without batch axes may be on the host. None if no array is on a device."""
        given_out = out if is_sequence(out) else (out,)
        if not any(map(on_device, (*values, *given_out))):
            return None
        cupy = cupy_module()
        arrays = [self._as_array(leaf, x) for leaf, x in zip(self.inputs, values, strict=True)]
        targets = None if out is None else self._listed(out)
        device = self._one_device(arrays, targets or ())
        with cupy.cuda.Device(device):
            arrays = [as_device_array(a).astype(self.dtype, copy=False) for a in arrays]
            ranks = [len(leaf.shape) for leaf in self.inputs]
            leads = [a.shape[: a.ndim - r] for a, r in zip(arrays, ranks, strict=True)]
            batch = self._batch(leads)
            rows = prod(batch)
            given: list[int] = [rows]
            keep: list[Any] = []
            for a, lead, leaf in zip(arrays, leads, self.inputs, strict=True):
                a, stride = _in_rows(a, lead, batch, leaf.shape)
                given += [a.data.ptr, stride]
                keep.append(a)
            if targets is None:
                results = [self._new((*batch, *leaf.shape)) for leaf in self.outputs]
                ready = results
            else:
                results = self._checked(targets, batch)
                ready = [self._ready(y, keep) for y in results]
            for y, leaf in zip(ready, self.outputs, strict=True):
                given += [y.data.ptr, prod(leaf.shape)]
            given.append(0)
            if rows:
                self._launch(self._code(device), given)
            for y, made in zip(results, ready, strict=True):
                if made is not y:
                    y[...] = made
        return results

    def _launch(self, code: DeviceCode, given: list[int], stream: int | None = None) -> None:
        """Launch code on a stream (default: CuPy's current one)."""
        try:
            code.launch(given, self._stream().ptr if stream is None else stream)
        except MemoryError:
            raise self._too_large("its workspace does") from None

    def _as_array(self, leaf: ArraySpec, value: Argument) -> Any:
        """An argument as an array of CuPy or, if it is on the host, of NumPy; its shape is
        checked."""
        x: Any = as_device_array(value) if on_device(value) else np.asarray(value)
        if x.dtype.kind not in "fiub":
            raise TypeError(f"{self.name}: {leaf.name} has dtype {x.dtype}, needs real numbers")
        rank = len(leaf.shape)
        if x.ndim < rank or x.shape[x.ndim - rank :] != leaf.shape:
            wanted = ", ".join(("...", *map(str, leaf.shape)))
            raise ValueError(f"{self.name}: {leaf.name} has shape {x.shape}, needs ({wanted})")
        if is_host_array(x) and x.ndim > rank:
            raise ValueError(
                f"{self.name}: {leaf.name} is a batch on the host among arrays on the device; copy "
                "it there once, by cupy.asarray"
            )
        return x

    def _one_device(self, arrays: Sequence[Any], targets: Sequence[Any]) -> int:
        """The device that all arrays are on."""
        names = [leaf.name for leaf in (*self.inputs, *self.outputs)]
        placed = {
            x.data.device_id: name
            for name, x in zip(names, (*arrays, *targets), strict=False)
            if not is_host_array(x)
        }
        if len(placed) > 1:
            where = ", ".join(f"{name} on device {d}" for d, name in placed.items())
            raise ValueError(f"{self.name}: arrays are on several devices ({where}), needs one")
        return next(iter(placed), 0)

    def _batch(self, leads: list[tuple[int, ...]]) -> tuple[int, ...]:
        """The batch axes of a call, from those of the inputs."""
        try:
            return np.broadcast_shapes(*leads)
        except ValueError:
            names = (leaf.name for leaf in self.inputs)
            shapes = ", ".join(f"{n} {s}" for n, s in zip(names, leads, strict=True))
            raise ValueError(f"{self.name}: batch shapes do not go together: {shapes}") from None

    def _listed(self, out: Any) -> list[Any]:
        """The arrays of `out=`, which must be on a device."""
        targets = [out] if hasattr(out, "shape") else list(out)
        if len(targets) != len(self.outputs):
            raise ValueError(
                f"{self.name} has {len(self.outputs)} results, out= has {len(targets)}"
            )
        for leaf, y in zip(self.outputs, targets, strict=True):
            if not on_device(y):
                raise ValueError(f"{self.name}: out= for {leaf.name} is not on the device")
        return [as_device_array(y) for y in targets]

    def _checked(self, targets: list[Any], batch: tuple[int, ...]) -> list[Any]:
        """The arrays of `out=`, their shapes and types checked."""
        for leaf, y in zip(self.outputs, targets, strict=True):
            shape = (*batch, *leaf.shape)
            if y.shape != shape or y.dtype != self.dtype:
                is_, needs = f"{y.shape} {y.dtype}", f"{shape} {self.dtype}"
                raise ValueError(f"{self.name}: out= for {leaf.name} is {is_}, needs {needs}")
        return targets

    def _ready(self, y: Any, inputs: list[Any]) -> Any:
        """The array that the kernel writes for a result y: y itself, or a new one if y is not
        contiguous or shares memory with an input."""
        own = _reach(y)
        shared = any(a[0] < own[1] and own[0] < a[1] for a in map(_reach, inputs))
        return self._new(y.shape) if shared or not y.flags.c_contiguous else y

    def _new(self, shape: tuple[int, ...]) -> Any:
        """A new array on the current device."""
        try:
            return self._array(shape, self.dtype)
        except MemoryError:
            size = prod(shape) * self.dtype.itemsize
            raise self._too_large(f"a result of {size / 2**30:.3g} GiB, {shape}, does") from None

    def _too_large(self, what: str) -> MemoryError:
        free, total = cupy_module().cuda.Device().mem_info
        return MemoryError(
            f"{self.name}: {what} not fit on the device, which has {free / 2**30:.3g} of "
            f"{total / 2**30:.3g} GiB left; pass fewer rows, or arrays on the host"
        )

    # ---- arrays on the host --------------------------------------------------------------------

    def run(self, inputs: list[Array], outputs: list[Array]) -> None:
        """Evaluate arrays (rows, size) on the host, as many rows at a time as fit."""
        cupy = cupy_module()
        rows = outputs[0].shape[0]
        # One row that is used for the whole batch is copied to the device once.
        fixed: list[Any] = [a if a.strides[0] or rows < 2 else cupy.asarray(a[:1]) for a in inputs]
        moving = [a for a in (*fixed, *outputs) if is_host_array(a)]
        each = max(1, sum(a.shape[1] for a in moving) * self.dtype.itemsize)
        free = cupy.cuda.Device().mem_info[0] + cupy.get_default_memory_pool().free_bytes()
        some = max(1, min(HOST, free // 2) // each)
        code = self._code(self._current_device())
        for first in range(0, rows, some):
            part = slice(first, min(first + some, rows))
            arrays = [cupy.asarray(a[part]) if is_host_array(a) else a for a in fixed]
            results = [self._new((part.stop - first, y.shape[1])) for y in outputs]
            given = [part.stop - first]
            for a, source in zip(arrays, fixed, strict=True):
                given += [a.data.ptr, a.shape[1] if is_host_array(source) else 0]
            for y in results:
                given += [y.data.ptr, y.shape[1]]
            given.append(0)
            self._launch(code, given)
            for target, y in zip(outputs, results, strict=True):
                target[part] = y.get()


def _in_rows(
    a: Any, lead: tuple[int, ...], batch: tuple[int, ...], core: tuple[int, ...]
) -> tuple[Any, int]:
    """An array of contiguous rows at equal distances, and their distance (0: one row for the whole
    batch). It is a copy only if the strides of `a`, with batch axes `lead`, are not like that."""
    size = prod(core)
    if prod(lead) == 1:
        return cupy_module().ascontiguousarray(a), 0
    if lead != batch:
        a = cupy_module().broadcast_to(a, (*batch, *core))
    if a.flags.c_contiguous:
        return a, size
    own = a.strides[a.ndim - len(core) :]
    plain = tuple(prod(core[i + 1 :]) * a.itemsize for i in range(len(core)))
    if len(batch) == 1 and (own == plain or size < 2):
        return a, a.strides[0] // a.itemsize
    return cupy_module().ascontiguousarray(a), size


def _reach(a: Any) -> tuple[int, int]:
    """The range of addresses that an array occupies."""
    low = high = a.data.ptr
    for n, stride in zip(a.shape, a.strides, strict=True):
        low, high = low + min(0, (n - 1) * stride), high + max(0, (n - 1) * stride)
    return low, high + a.itemsize
