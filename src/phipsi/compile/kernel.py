"""Kernels: a graph made callable on arrays of any leading batch shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np

from phipsi.compile.backend import Executable
from phipsi.compile.backends import DTYPES, backend_named
from phipsi.compile.device import on_device
from phipsi.compile.graph import Graph, Recalled
from phipsi.compile.signature import ArraySpec, Signature, Structure

R = TypeVar("R")


class Callee(Generic[R]):
    """An object whose calls go to a function that it keeps, and that it may exchange. Python looks
    up `__call__` on the class, where this slot gives the function of the object."""

    __slots__ = ("__call__",)
    __call__: Callable[..., R]


@dataclass(frozen=True)
class Kernel(Callee[R]):
    """A compiled program: call it with arrays (..., n) of any one leading shape.

    Arguments come in the order of `parameters`, or by name; a parameter that was given as a mapping
    takes a mapping. `out=` receives the results in place (an array, or a sequence for several).

    The cuda backend takes arrays on a device, CuPy's or any with `__dlpack__` or
    `__cuda_array_interface__`, and returns CuPy's, without waiting, on CuPy's current stream;
    NumPy's arrays go to the device and back in parts that fit.
    """

    name: str
    code: Graph | Recalled
    parameters: tuple[tuple[str, ArraySpec | Mapping[str, ArraySpec]], ...]
    results: Structure[R]
    dtype: str = "float64"
    backend: str = "numpy"
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype {self.dtype!r} is not one of {', '.join(DTYPES)}")
        backend_named(self.backend).check(self.dtype, self.threads)
        if self.threads is not None and (not isinstance(self.threads, int) or self.threads < 1):
            raise ValueError(f"threads is {self.threads!r}, needs a whole number of at least 1")
        object.__setattr__(self, "__call__", self._call)

    @property
    def graph(self) -> Graph:
        """The scalar program."""
        return self.code.whole

    def pullback(self, wrt: str | Sequence[str] | None = None) -> Kernel:
        """The kernel of gradients by the named arguments (default: all), as a tuple: its arguments
        are those of this one, then for each result how a number varies with it
        (`cotangent:NAME`)."""
        from phipsi.compile.reverse_mode import pullback

        numbers = self._numbers(wrt)
        given = [ArraySpec(f"cotangent:{leaf.name}", leaf.shape) for leaf in self.results.leaves]
        results = Structure(tuple(self._leaves[k] for k in numbers), tuple)
        return self._derived("gradient", pullback(self.graph, numbers), given, results)

    def pushforward(self, wrt: str | Sequence[str] | None = None) -> Kernel:
        """The kernel of the rates of the results where the named arguments (default: all) change:
        its arguments are those of this one, then the rate of each of these (`tangent:NAME`)."""
        from phipsi.compile.forward_mode import pushforward

        numbers = self._numbers(wrt)
        given = [
            ArraySpec(f"tangent:{leaf.name}", leaf.shape)
            for leaf in map(self._leaves.__getitem__, numbers)
        ]
        return self._derived("rate", pushforward(self.graph, numbers), given, self.results)

    def _derived(
        self, what: str, graph: Graph, given: list[ArraySpec], results: Structure[R]
    ) -> Kernel:
        names = {leaf.name for leaf in self._leaves} | {name for name, _ in self.parameters}
        more = []
        for name, shape in given:
            while name in names:  # a derivative's own, derived again
                name += "'"
            names.add(name)
            more.append((name, ArraySpec(name, shape)))
        return replace(
            self, name=f"{what} of {self.name}", code=graph, results=results,
            parameters=(*self.parameters, *more),
        )  # fmt: skip

    def _numbers(self, wrt: str | Sequence[str] | None) -> list[int]:
        """The numbers of the named inputs, in their order."""
        names = [leaf.name for leaf in self._leaves]
        wanted = names if wrt is None else [wrt] if isinstance(wrt, str) else list(wrt)
        for name in wanted:
            if name not in names:
                raise ValueError(f"{self.name} has no input {name!r}; it has {', '.join(names)}")
            if wanted.count(name) > 1:
                raise ValueError(f"{self.name}: {name!r} is asked for twice")
        return [names.index(name) for name in wanted] if wrt is not None else [*range(len(names))]

    def prepare(self) -> None:
        """Make the machine code for batches now; that for single calls is made at the first one."""
        self._executable.prepare()
        self._shorten()

    def entry(self, fallback: Callable[..., Any]) -> tuple[int, Callable[..., Any]]:
        """How much machine code there is by now, and a function that calls it with plain arrays at
        the least cost; `fallback` takes whatever else it is called with."""
        codes = self.codes
        plain = all(isinstance(leaf, ArraySpec) for _, leaf in self.parameters)
        return codes, self._executable.entry(fallback) if plain else fallback

    @property
    def codes(self) -> int:
        """How many pieces of machine code have been made so far."""
        return len(self._executable.codes)

    def _shorten(self) -> None:
        """Let calls go straight to the machine code there is by now."""
        codes, call = self.entry(self._call)
        object.__setattr__(self, "_shortened", codes)
        object.__setattr__(self, "__call__", call)

    @cached_property
    def _executable(self) -> Executable:
        signature = Signature(self.name, tuple(self._leaves), self.results)
        return backend_named(self.backend).load(signature, self.code, self.dtype, self.threads)

    def _call(self, *args: Any, out: Any = None, **named: Any) -> Any:
        """Run the kernel on whatever it is called with."""
        if len(args) > len(self.parameters):
            raise TypeError(f"{self.name} takes {len(self.parameters)} arrays, got {len(args)}")
        given = dict(zip((name for name, _ in self.parameters), args, strict=False))
        for name, value in named.items():
            if name in given or name not in dict(self.parameters):
                what = "was given twice" if name in given else "is not an argument"
                raise TypeError(f"{self.name}: {name!r} {what}; arguments are {self._names}")
            given[name] = value
        values: list[Any] = []
        for name, leaf in self.parameters:
            if name not in given:
                raise TypeError(f"{self.name} misses {name!r}; arguments are {self._names}")
            value = given[name]
            if isinstance(leaf, ArraySpec):
                values.append(value)
            elif isinstance(value, Mapping) and set(value) == set(leaf):
                values.extend(value[key] for key in leaf)
            else:
                raise TypeError(f"{self.name}: {name!r} must be a mapping with keys {list(leaf)}")
        result = self.run(values, out=out)
        if self.codes != self.__dict__.get("_shortened", 0):
            self._shorten()
        return result

    def at(self, rows: int, places: Sequence[tuple[int, int]], device: int, stream: int) -> None:
        """Run on a CUDA device and stream, on addresses: for every input, then every result where
        it is and how many numbers its rows are apart (0: one row for all)."""
        self._executable.run_at(rows, places, device, stream)

    def run(self, values: Sequence[Any], *, out: Any = None) -> Any:
        """Run on one value per leaf, in order."""
        there = self._executable.run_on_device(values, out)
        if there is not None:
            return self.results.pack(there) if out is None else out
        arrays = [self._array(leaf, x) for leaf, x in zip(self._leaves, values, strict=True)]
        both = list(zip(arrays, self._leaves, strict=True))
        leading = [a.shape[: a.ndim - len(f.shape)] for a, f in both]
        try:
            batch = np.broadcast_shapes(*leading)
        except ValueError:
            shapes = ", ".join(f"{f.name} {s}" for (_, f), s in zip(both, leading, strict=True))
            raise ValueError(f"{self.name}: batch shapes do not go together: {shapes}") from None
        rows = prod(batch)
        inputs = [_rows(a, batch, rows, f) for a, f in both]
        shapes = [(*batch, *f.shape) for f in self.results.leaves]
        results = [np.empty(shape, self.dtype) for shape in shapes] if out is None else None
        targets = self._targets(shapes, out) if results is None else results
        outputs = [_flat(y, rows, inputs) for y in targets]
        self._executable.run(inputs, [y for y, _ in outputs])
        if results is not None:
            return self.results.pack([y[()] for y in results])
        for target, (y, there) in zip(targets, outputs, strict=True):
            if not there:
                target[...] = y.reshape(target.shape)
        return out

    def _targets(self, shapes: list[tuple[int, ...]], out: Any) -> list[np.ndarray]:
        """The arrays of out=, checked."""
        if not isinstance(out, (np.ndarray, Sequence)):
            kind = type(out).__name__
            raise TypeError(f"{self.name}: out= is a {kind}, needs an array, or a list of arrays")
        targets = [out] if isinstance(out, np.ndarray) else list(out)
        if len(targets) != len(shapes):
            raise ValueError(f"{self.name} has {len(shapes)} results, out= has {len(targets)}")
        for leaf, shape, target in zip(self.results.leaves, shapes, targets, strict=True):
            if not isinstance(target, np.ndarray) or target.shape != shape:
                given = getattr(target, "shape", type(target).__name__)
                raise ValueError(f"{self.name}: out= for {leaf.name} is {given}, needs {shape}")
            if target.dtype != self.dtype or not target.flags.writeable:
                state = target.dtype if target.flags.writeable else "read-only"
                raise ValueError(
                    f"{self.name}: out= for {leaf.name} is {state}, needs {self.dtype}"
                )
        return targets

    def _array(self, leaf: ArraySpec, value: Any) -> np.ndarray:
        array = as_numbers(f"{self.name}: {leaf.name}", value)
        n = len(leaf.shape)
        if array.ndim < n or array.shape[array.ndim - n :] != leaf.shape:
            wanted = ", ".join(("...", *map(str, leaf.shape)))
            raise ValueError(f"{self.name}: {leaf.name} has shape {array.shape}, needs ({wanted})")
        return np.require(array, self.dtype, ["ALIGNED"])

    @cached_property
    def _leaves(self) -> list[ArraySpec]:
        leaves: list[ArraySpec] = []
        for _, leaf in self.parameters:
            leaves.extend([leaf] if isinstance(leaf, ArraySpec) else leaf.values())
        return leaves

    @property
    def _names(self) -> str:
        return ", ".join(name for name, _ in self.parameters)

    def __repr__(self) -> str:
        ops = self.code.operations
        return (
            f"<Kernel {self.name}({self._names}), {ops} operations, {self.dtype}, {self.backend}>"
        )


def _rows(array: np.ndarray, batch: tuple[int, ...], rows: int, leaf: ArraySpec) -> np.ndarray:
    """An argument as (rows, size), in place where its strides allow it."""
    size = prod(leaf.shape)
    if array.ndim == len(batch) + len(leaf.shape) and array.shape[: len(batch)] == batch:
        return array.reshape(rows, size)
    if array.size == size:
        return np.broadcast_to(array.reshape(size), (rows, size))
    return np.broadcast_to(array, (*batch, *leaf.shape)).reshape(rows, size)


def _flat(target: np.ndarray, rows: int, inputs: list[np.ndarray]) -> tuple[np.ndarray, bool]:
    """Where a result of that shape is written, as (rows, size), and whether that is the target: not
    where its strides or its alignment forbid it or where an input lies in the same memory."""
    flat = target.reshape(rows, target.size // max(rows, 1))
    fits = flat.flags.aligned and np.may_share_memory(flat, target)
    if fits and not any(np.may_share_memory(flat, a) for a in inputs):
        return flat, True
    return np.empty(flat.shape, flat.dtype), False


def as_numbers(where: str, value: Any) -> np.ndarray:
    """The value as an array of real numbers, or one clear sentence."""
    if on_device(value):
        raise TypeError(f"{where} is on a CUDA device, needs to be here, or backend='cuda'")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{where} is a ragged sequence, needs an array of numbers") from None
    if array.dtype == object and all(isinstance(x, (int, float)) for x in array.flat):
        array = array.astype(float)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{where} has dtype {array.dtype}, needs real numbers")
    return array
