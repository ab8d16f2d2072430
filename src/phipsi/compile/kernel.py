"""Kernels: graphs that are called on arrays with any batch axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, TypeVar, overload

import numpy as np

from phipsi.arguments import a_class, as_names
from phipsi.cached import cached_property
from phipsi.compile.backend import Argument, Executable, Out
from phipsi.compile.backends import DTYPES, BackendName, Dtype, backend_named
from phipsi.compile.device import is_host_array
from phipsi.compile.graph import Graph, Recalled
from phipsi.compile.numbers import as_numbers
from phipsi.compile.signature import ArraySpec, Signature, Structure
from phipsi.typing import Array

R = TypeVar("R")
S = TypeVar("S")
Given = TypeVar("Given", bound=Out)


class Callee(Generic[R]):
    """An object whose calls go to a function that it stores and can replace. Python looks up
    `__call__` on the class, and the slot there returns the function stored in the object."""

    __slots__ = ("__call__",)
    __call__: Callable[..., R]


@dataclass(frozen=True)
class Kernel(Callee[R]):
    """A compiled program for one robot, called with arrays (…, n) whose batch axes broadcast.

    `program.compile(robot)` makes one. Arguments are passed in the order of `parameters`, or by
    name; a parameter that was given as a mapping takes a mapping. The results are returned as the
    program returns them, or written into `out=`: an array, or a sequence of arrays if there are
    several results; then `out` is returned.

    The cuda backend takes arrays on a device, of CuPy or any that have `__dlpack__` or
    `__cuda_array_interface__`, and returns arrays of CuPy. It works on CuPy's current stream and
    does not wait for the results. Arrays of NumPy it copies to the device and back, in parts that
    fit into the device's memory.

    Parameters
    ----------
    name
        The name of the program, for messages.
    code
        The graph of scalar operations.
    parameters
        Name and shape of each argument, without the batch; a mapping of shapes for an argument
        that is a mapping.
    results
        Shapes of the results, without the batch, and how they are returned.
    dtype
        Number type: "float64", "float32" or "longdouble".
    backend
        Backend: "llvm", "numpy" or "cuda".
    threads
        Most threads that share a batch; None: PHIPSI_NUM_THREADS, else every core.

    Examples
    --------
    >>> import phipsi as pp
    >>> kernel = pp.mass_matrix.compile(pp.robots.double_pendulum(), backend="numpy")
    >>> kernel([[0.0, 0.0], [0.1, 0.2], [0.3, 0.4]]).shape
    (3, 2, 2)
    """

    name: str
    code: Graph | Recalled
    parameters: tuple[tuple[str, ArraySpec | Mapping[str, ArraySpec]], ...]
    results: Structure[R]
    dtype: Dtype = "float64"
    backend: BackendName = "numpy"
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype {self.dtype!r} is not one of {', '.join(DTYPES)}")
        backend_named(self.backend).check(self.dtype, self.threads)
        if self.threads is not None and (not isinstance(self.threads, int) or self.threads < 1):
            raise ValueError(f"threads is {self.threads!r}, needs a whole number of at least 1")
        object.__setattr__(self, "__call__", self._call)

    def __reduce__(self) -> tuple[type[Kernel[Any]], tuple[object, ...]]:
        how = (self.dtype, self.backend, self.threads)
        return Kernel, (self.name, self.graph, self.parameters, self.results, *how)

    def __copy__(self) -> Kernel[R]:
        return self

    def __deepcopy__(self, memo: object) -> Kernel[R]:
        return self

    @property
    def graph(self) -> Graph:
        """The graph of scalar operations."""
        return self.code.whole

    def pullback(self, wrt: str | Sequence[str] | None = None) -> Kernel[tuple[Array, ...]]:
        """The kernel of gradients, by reverse-mode differentiation.

        It takes the arguments of this kernel and then, for each result, the derivative of a scalar
        by that result (`cotangent:NAME`), of the same shape.

        Parameters
        ----------
        wrt : optional
            Names of the arguments by which the scalar is differentiated; default: all.

        Returns
        -------
        Kernel
            A kernel that returns a tuple: the gradient of the scalar by each named argument, in
            the shape of the argument.

        Raises
        ------
        ValueError
            A name is not that of an argument, or is given twice.
        """
        from phipsi.compile.reverse_mode import pullback

        numbers = self._numbers(wrt)
        given = [ArraySpec(f"cotangent:{spec.name}", spec.shape) for spec in self.results.leaves]
        results: Structure[tuple[Array, ...]] = Structure(
            tuple(self._inputs[k] for k in numbers), tuple
        )
        return self._derived("gradient", pullback(self.graph, numbers), given, results)

    def pushforward(self, wrt: str | Sequence[str] | None = None) -> Kernel[R]:
        """The kernel of directional derivatives, by forward-mode differentiation.

        It takes the arguments of this kernel and then, for each named argument, its rate of change
        (`tangent:NAME`), of the same shape.

        Parameters
        ----------
        wrt : optional
            Names of the arguments that change; default: all.

        Returns
        -------
        Kernel
            A kernel that returns the rates of change of the results, in their shapes.

        Raises
        ------
        ValueError
            A name is not that of an argument, or is given twice.
        """
        from phipsi.compile.forward_mode import pushforward

        numbers = self._numbers(wrt)
        varied = [self._inputs[k] for k in numbers]
        given = [ArraySpec(f"tangent:{spec.name}", spec.shape) for spec in varied]
        return self._derived("rate", pushforward(self.graph, numbers), given, self.results)

    def _derived(
        self, what: str, graph: Graph, given: list[ArraySpec], results: Structure[S]
    ) -> Kernel[S]:
        """The kernel of a derivative, which takes the arrays `given` as further arguments."""
        names = {spec.name for spec in self._inputs} | {name for name, _ in self.parameters}
        more: list[tuple[str, ArraySpec]] = []
        for name, shape in given:
            while name in names:  # this kernel is itself a derivative
                name += "'"
            names.add(name)
            more.append((name, ArraySpec(name, shape)))
        return Kernel(
            f"{what} of {self.name}", graph, (*self.parameters, *more), results,
            self.dtype, self.backend, self.threads,
        )  # fmt: skip

    def _numbers(self, wrt: str | Sequence[str] | None) -> list[int]:
        """The numbers of the named inputs, in the order of the names."""
        names = [spec.name for spec in self._inputs]
        wanted = names if wrt is None else as_names("wrt", wrt)
        for name in wanted:
            if name not in names:
                raise ValueError(f"{self.name} has no input {name!r}; it has {', '.join(names)}")
            if wanted.count(name) > 1:
                raise ValueError(f"{self.name}: {name!r} is asked for twice")
        return [names.index(name) for name in wanted] if wrt is not None else [*range(len(names))]

    def prepare(self) -> None:
        """Compile the machine code for batches now; code for single rows waits for a first call."""
        self._executable.prepare()
        self._shorten()

    def entry(self, fallback: Callable[..., Any]) -> tuple[int, Callable[..., Any]]:
        """The fastest way to call the machine code compiled so far.

        Parameters
        ----------
        fallback
            The function that gets all arguments which are not plain arrays.

        Returns
        -------
        int
            How many pieces of machine code there are (`codes`); when there are more, ask again.
        Callable
            A function that is called like the kernel.
        """
        codes = self.codes
        plain = all(isinstance(spec, ArraySpec) for _, spec in self.parameters)
        return codes, self._executable.entry(fallback) if plain else fallback

    @property
    def codes(self) -> int:
        """How many pieces of machine code have been compiled so far."""
        return len(self._executable.codes)

    def _shorten(self) -> None:
        """Let calls go straight to the machine code compiled so far."""
        codes, call = self.entry(self._call)
        object.__setattr__(self, "_shortened", codes)
        object.__setattr__(self, "__call__", call)

    @cached_property
    def _executable(self) -> Executable:
        signature = Signature(self.name, tuple(self._inputs), self.results)
        return backend_named(self.backend).load(signature, self.code, self.dtype, self.threads)

    def _call(
        self,
        *args: Argument | Mapping[str, Argument],
        out: Out | None = None,
        **named: Argument | Mapping[str, Argument],
    ) -> R | Out:
        """Run the kernel on arguments of any kind."""
        if len(args) > len(self.parameters):
            raise TypeError(f"{self.name} takes {len(self.parameters)} arrays, got {len(args)}")
        given = dict(zip((name for name, _ in self.parameters), args, strict=False))
        for name, value in named.items():
            if name in given or name not in dict(self.parameters):
                what = "was given twice" if name in given else "is not an argument"
                raise TypeError(f"{self.name}: {name!r} {what}; arguments are {self._names}")
            given[name] = value
        values: list[Any] = []
        for name, spec in self.parameters:
            if name not in given:
                raise TypeError(f"{self.name} misses {name!r}; arguments are {self._names}")
            value = given[name]
            if isinstance(spec, ArraySpec):
                values.append(value)
            elif isinstance(value, Mapping) and set(value) == set(spec):
                values.extend(value[key] for key in spec)
            else:
                raise TypeError(f"{self.name}: {name!r} must be a mapping with keys {list(spec)}")
        result = self.run(values, out=out)
        if self.codes != self.__dict__.get("_shortened", 0):
            self._shorten()
        return result

    def at(self, rows: int, places: Sequence[tuple[int, int]], device: int, stream: int) -> None:
        """Run on a CUDA device, on arrays that are given by their addresses.

        Parameters
        ----------
        rows
            Number of rows of the batch.
        places
            For each input, then for each result: its address on the device, and the distance of
            its rows, counted in numbers (0: one row is used for the whole batch).
        device
            Number of the device.
        stream
            Address of the CUDA stream.

        Raises
        ------
        TypeError
            The backend is not "cuda".
        """
        self._executable.run_at(rows, places, device, stream)

    @overload
    def run(self, values: Sequence[Argument], *, out: None = None) -> R: ...
    @overload
    def run(self, values: Sequence[Argument], *, out: Given) -> Given: ...
    @overload
    def run(self, values: Sequence[Argument], *, out: Out | None) -> R | Out: ...
    def run(self, values: Sequence[Argument], *, out: Out | None = None) -> R | Out:
        """Run on one array for each input, in order.

        Parameters
        ----------
        values : (…, n) each
            The inputs; the members of a mapping are inputs of their own.
        out : optional
            Arrays that receive the results: one, or a sequence if there are several results.

        Returns
        -------
        R
            The results as the program returns them, or `out` if that is given.

        Raises
        ------
        ValueError
            A shape is wrong, or the batch axes do not broadcast.
        TypeError
            A value is no array of real numbers.
        """
        if len(values) != len(self._inputs):
            names = ", ".join(spec.name for spec in self._inputs)
            raise TypeError(f"{self.name}: got {len(values)} arrays, needs those for {names}")
        there = self._executable.run_on_device(values, out)
        if there is not None:
            return self.results.pack(there) if out is None else out
        arrays = [self._array(spec, x) for spec, x in zip(self._inputs, values, strict=True)]
        both = list(zip(arrays, self._inputs, strict=True))
        leading = [a.shape[: a.ndim - len(f.shape)] for a, f in both]
        try:
            batch = np.broadcast_shapes(*leading)
        except ValueError:
            shapes = ", ".join(f"{f.name} {s}" for (_, f), s in zip(both, leading, strict=True))
            raise ValueError(f"{self.name}: batch shapes do not go together: {shapes}") from None
        rows = prod(batch)
        inputs = [_rows(a, batch, rows, f) for a, f in both]
        shapes = [(*batch, *f.shape) for f in self.results.leaves]
        new = (np.empty(shape, self.dtype) for shape in shapes)
        targets: list[Array] = list(new) if out is None else self._targets(shapes, out)
        outputs = [_flat(y, rows, inputs) for y in targets]
        self._executable.run(inputs, [y for y, _ in outputs])
        if out is None:
            return self.results.pack([y[()] for y in targets])
        for target, (y, in_place) in zip(targets, outputs, strict=True):
            if not in_place:
                target[...] = y.reshape(target.shape)
        return out

    def _targets(self, shapes: list[tuple[int, ...]], out: Out) -> list[Array]:
        """The arrays of `out=`, checked."""
        given: list[Any]
        if is_host_array(out):
            given = [out]
        elif isinstance(out, Sequence):
            given = [*out]
        else:
            kind = a_class(out)
            raise TypeError(f"{self.name}: out= is {kind}, needs an array, or a list of arrays")
        if len(given) != len(shapes):
            raise ValueError(f"{self.name} has {len(shapes)} results, out= has {len(given)}")
        targets: list[Array] = []
        for spec, shape, target in zip(self.results.leaves, shapes, given, strict=True):
            if not is_host_array(target) or target.shape != shape:
                is_ = getattr(target, "shape", type(target).__name__)
                raise ValueError(f"{self.name}: out= for {spec.name} is {is_}, needs {shape}")
            if target.dtype != self.dtype or not target.flags.writeable:
                state = target.dtype if target.flags.writeable else "read-only"
                raise ValueError(
                    f"{self.name}: out= for {spec.name} is {state}, needs {self.dtype}"
                )
            shared = _repeats(target) or any(_overlap(target, other) for other in targets)
            if shared or hasattr(target, "mask"):
                fault = "shares memory with itself or another" if shared else "is a masked array"
                raise ValueError(
                    f"{self.name}: out= for {spec.name} {fault}, needs an array of its own"
                )
            targets.append(target)
        return targets

    def _array(self, spec: ArraySpec, value: Argument) -> Array:
        """An argument as an aligned array of the kernel's number type, its shape checked."""
        array = as_numbers(f"{self.name}: {spec.name}", value)
        n = len(spec.shape)
        if array.ndim < n or array.shape[array.ndim - n :] != spec.shape:
            wanted = ", ".join(("...", *map(str, spec.shape)))
            raise ValueError(f"{self.name}: {spec.name} has shape {array.shape}, needs ({wanted})")
        return np.require(array, self.dtype, ["ALIGNED"])

    @cached_property
    def _inputs(self) -> list[ArraySpec]:
        """The arrays of all parameters, the members of mappings one by one."""
        inputs: list[ArraySpec] = []
        for _, spec in self.parameters:
            inputs.extend([spec] if isinstance(spec, ArraySpec) else spec.values())
        return inputs

    @property
    def _names(self) -> str:
        return ", ".join(name for name, _ in self.parameters)

    def __repr__(self) -> str:
        ops = self.code.operations
        return (
            f"<Kernel {self.name}({self._names}), {ops} operations, {self.dtype}, {self.backend}>"
        )


def _rows(array: Array, batch: tuple[int, ...], rows: int, spec: ArraySpec) -> Array:
    """An argument as an array (rows, size), a view where its strides allow it."""
    size = prod(spec.shape)
    if array.ndim == len(batch) + len(spec.shape) and array.shape[: len(batch)] == batch:
        return array.reshape(rows, size)
    if array.size == size:
        return np.broadcast_to(array.reshape(size), (rows, size))
    return np.broadcast_to(array, (*batch, *spec.shape)).reshape(rows, size)


def _flat(target: Array, rows: int, inputs: list[Array]) -> tuple[Array, bool]:
    """The array (rows, size) that a result is written to, and whether that is the target itself. It
    is a new array where the strides or the alignment of the target forbid it, or where the target
    shares memory with an input."""
    flat = target.reshape(rows, target.size // max(rows, 1))
    fits = flat.flags.aligned and np.may_share_memory(flat, target)
    if fits and not any(np.may_share_memory(flat, a) for a in inputs):
        return flat, True
    return np.empty(flat.shape, flat.dtype), False


def _overlap(a: Array, b: Array) -> bool:
    """Whether two arrays share memory; also if that would take long to find out."""
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=10_000)  # pyright: ignore[reportArgumentType] - any number
    except np.exceptions.TooHardError:
        return True


def _repeats(a: Array) -> bool:
    """Whether two elements of an array are at the same place: strides of zero, or too short."""
    reach = a.itemsize
    for stride, length in sorted((abs(s), n) for s, n in zip(a.strides, a.shape, strict=True)):
        if length > 1 and stride < reach:
            steps = zip(a.strides, a.shape, strict=True)
            along: list[Array] = [step * np.arange(n, dtype=float) for step, n in steps]
            places = np.sort(sum(np.ix_(*along)), axis=None)
            return bool((np.diff(places) < a.itemsize).any())
        reach += stride * (length - 1)
    return False
