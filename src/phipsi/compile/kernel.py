"""Kernels: a graph made callable on arrays of any leading batch shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from phipsi.compile import interpret
from phipsi.compile.graph import Graph

DTYPES = ("float64", "float32", "longdouble")
"""Number types a kernel can be compiled for (long double: the numpy backend only)."""

BACKENDS: dict[str, Callable[[Graph, list[np.ndarray], Any], list[np.ndarray]]] = {
    "numpy": interpret.run,
}
"""How a graph is run: (graph, inputs (rows, n), dtype) → outputs (rows, m)."""


class Leaf(NamedTuple):
    """One array argument or result: its name and its shape without the batch."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Structure:
    """How results are packed: `pack` takes one array per leaf."""

    leaves: tuple[Leaf, ...]
    pack: Callable[[list[Any]], Any]


@dataclass(frozen=True)
class Kernel:
    """A compiled program: call it with arrays (..., n) of any one leading shape.

    Arguments come in the order of `parameters`, or by name; a parameter that was given as a mapping
    takes a mapping. `out=` receives the results in place (an array, or a sequence for several).
    """

    name: str
    graph: Graph
    parameters: tuple[tuple[str, Leaf | Mapping[str, Leaf]], ...]
    results: Structure
    dtype: str = "float64"
    backend: str = "numpy"

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype {self.dtype!r} is not one of {', '.join(DTYPES)}")
        if self.backend not in BACKENDS:
            known = ", ".join(BACKENDS)
            raise ValueError(f"backend {self.backend!r} is not in this version; there is {known}")

    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Any:
        """Run the kernel."""
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
            if isinstance(leaf, Leaf):
                values.append(value)
            elif isinstance(value, Mapping) and set(value) == set(leaf):
                values.extend(value[key] for key in leaf)
            else:
                raise TypeError(f"{self.name}: {name!r} must be a mapping with keys {list(leaf)}")
        return self.run(values, out=out)

    def run(self, values: Sequence[Any], *, out: Any = None) -> Any:
        """Run on one value per leaf, in order."""
        arrays = [self._array(leaf, x) for leaf, x in zip(self._leaves, values, strict=True)]
        both = list(zip(arrays, self._leaves, strict=True))
        leading = [a.shape[: a.ndim - len(f.shape)] for a, f in both]
        try:
            batch = np.broadcast_shapes(*leading)
        except ValueError:
            shapes = ", ".join(f"{f.name} {s}" for (_, f), s in zip(both, leading, strict=True))
            raise ValueError(f"{self.name}: batch shapes do not go together: {shapes}") from None
        rows = prod(batch)
        flat = [
            np.broadcast_to(a, (*batch, *f.shape)).reshape(rows, prod(f.shape)) for a, f in both
        ]
        dtype = np.dtype(self.dtype)
        outputs = BACKENDS[self.backend](self.graph, flat, dtype)
        shaped = [
            y.reshape((*batch, *f.shape)) for y, f in zip(outputs, self.results.leaves, strict=True)
        ]
        if out is None:
            return self.results.pack([y[()] for y in shaped])
        self._store(shaped, out)
        return out

    def _store(self, results: list[np.ndarray], out: Any) -> None:
        targets = [out] if isinstance(out, np.ndarray) else list(out)
        if len(targets) != len(results):
            raise ValueError(f"{self.name} has {len(results)} results, out= has {len(targets)}")
        for leaf, y, target in zip(self.results.leaves, results, targets, strict=True):
            if not isinstance(target, np.ndarray) or target.shape != y.shape:
                shape = getattr(target, "shape", type(target).__name__)
                raise ValueError(f"{self.name}: out= for {leaf.name} is {shape}, needs {y.shape}")
            if target.dtype != y.dtype or not target.flags.writeable:
                state = target.dtype if target.flags.writeable else "read-only"
                raise ValueError(f"{self.name}: out= for {leaf.name} is {state}, needs {y.dtype}")
        for y, target in zip(results, targets, strict=True):
            target[...] = y

    def _array(self, leaf: Leaf, value: Any) -> np.ndarray:
        array = as_numbers(f"{self.name}: {leaf.name}", value)
        n = len(leaf.shape)
        if array.ndim < n or array.shape[array.ndim - n :] != leaf.shape:
            wanted = ", ".join(("...", *map(str, leaf.shape)))
            raise ValueError(f"{self.name}: {leaf.name} has shape {array.shape}, needs ({wanted})")
        return array.astype(self.dtype, copy=False)

    @cached_property
    def _leaves(self) -> list[Leaf]:
        leaves: list[Leaf] = []
        for _, leaf in self.parameters:
            leaves.extend([leaf] if isinstance(leaf, Leaf) else leaf.values())
        return leaves

    @property
    def _names(self) -> str:
        return ", ".join(name for name, _ in self.parameters)

    def __repr__(self) -> str:
        ops = self.graph.operations
        return (
            f"<Kernel {self.name}({self._names}), {ops} operations, {self.dtype}, {self.backend}>"
        )


def as_numbers(where: str, value: Any) -> np.ndarray:
    """The value as an array of real numbers, or one clear sentence."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{where} is a ragged sequence, needs an array of numbers") from None
    if array.dtype == object and all(isinstance(x, (int, float)) for x in array.flat):
        array = array.astype(float)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{where} has dtype {array.dtype}, needs real numbers")
    return array
