"""Shared by `pp.torch` and `pp.jax`: programs for array libraries that differentiate.

`Bound` finds the kernel for a call. `Flat` is a kernel from a list of arrays to a list of arrays;
the kernels of its derivatives are made when asked for and are `Flat`s again, so that derivatives of
any order need nothing more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import count
from typing import Any, NamedTuple, cast
from weakref import WeakValueDictionary

import numpy as np

from phipsi.compile import ArraySpec, Dtype, Kernel, Structure, default_backend
from phipsi.compile.signature import first
from phipsi.forks import held_at_forks
from phipsi.model import Robot
from phipsi.programs import Program
from phipsi.programs.arguments import frozen

Shape = tuple[int, ...]

Leaf = tuple[str, str, Any]
"""An array of a call: its argument, its key where that is a mapping (else ""), the array itself."""

CallKey = tuple[
    tuple[tuple[str, Any], ...], tuple[type, ...], tuple[tuple[str, str, Shape], ...], Dtype
]
"""Options, their types (for 1 == True), arrays with their shapes without the batch, number type."""

_numbers = count()
_lock = held_at_forks(threading.RLock())
"""Held while a kernel is looked up or added."""
_flats: WeakValueDictionary[str, Flat] = WeakValueDictionary()
bounds: WeakValueDictionary[str, Bound] = WeakValueDictionary()
"""The kernels and bound programs that exist, by the keys in traces of other libraries."""


class Origin(NamedTuple):
    """The kernel of which another is the derivative, by which inputs, forward or in reverse."""

    of: Flat
    wrt: tuple[int, ...]
    forward: bool


class Flat:
    """A kernel from arrays to arrays, both by position; a single result is no tuple.

    Its key is made of its content, or of the key of the kernel of which it is a derivative: code
    that other libraries compile and keep on disk finds it again in another process.
    """

    def __init__(self, kernel: Kernel[Any], origin: Origin | None = None) -> None:
        given, leaves = _leaves(kernel), kernel.results.leaves
        results = Structure(leaves, tuple if len(leaves) > 1 else first)
        parameters = tuple((leaf.name, leaf) for leaf in given)
        self.kernel = replace(kernel, parameters=parameters, results=results)
        self.origin = origin
        self.names = tuple(leaf.name for leaf in given)
        self.inputs = tuple(leaf.shape for leaf in given)
        self.outputs = tuple(leaf.shape for leaf in leaves)
        if origin is None:
            what = (self.inputs, self.outputs, kernel.dtype)
            digest = sha256(f"{kernel.graph.digest} {what}".encode()).hexdigest()
            self.key = f"{kernel.name} {digest}"
        else:
            way = "f" if origin.forward else "r"
            self.key = f"{origin.of.key}/{way}{','.join(map(str, origin.wrt))}"
        self._backends: dict[str, Kernel[Any]] = {}
        self._derived: dict[tuple[tuple[int, ...], bool], Flat] = {}

    @staticmethod
    def known(flat: Flat) -> Flat:
        """The kernel with the same key that exists already, else this one."""
        with _lock:
            return _flats.setdefault(flat.key, flat)

    @staticmethod
    def of(key: str) -> Flat:
        """The kernel with this key; a derivative is made if it does not exist."""
        found = _flats.get(key)
        if found is None:
            root, _, last = key.rpartition("/")
            if not root:
                raise KeyError(f"there is no kernel {key!r} in this process")
            wrt = tuple(int(i) for i in last[1:].split(",") if i)
            found = Flat.of(root)._derivative(wrt, last[0] == "f")
        return found

    def __repr__(self) -> str:
        return f"<{self.kernel.name}>"

    def on(self, backend: str | None = None) -> Kernel[Any]:
        """The kernel on a backend, by default that of NumPy arrays."""
        backend = backend or default_backend(self.kernel.dtype)
        if backend not in self._backends:
            self._backends[backend] = replace(self.kernel, backend=backend)
        return self._backends[backend]

    def lead(self, at: int, shape: Sequence[Any]) -> tuple[Any, ...]:
        """The axes of the batch in the shape of input number `at`."""
        return tuple(shape[: len(shape) - len(self.inputs[at])])

    def batch(self, shapes: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
        """The shape of the batch of a call, broadcast from the shapes of its inputs."""
        leads = [self.lead(i, shape) for i, shape in enumerate(shapes)]
        try:
            return np.broadcast_shapes(*leads)
        except ValueError:
            told = ", ".join(f"{n} {s}" for n, s in zip(self.names, leads, strict=True))
            raise ValueError(
                f"{self.kernel.name}: batch shapes do not go together: {told}"
            ) from None

    def pullback(self, wrt: Sequence[int]) -> Flat:
        """The kernel from inputs and cotangents of the outputs to cotangents of inputs `wrt`."""
        return self._derivative(tuple(wrt), forward=False)

    def pushforward(self, wrt: Sequence[int]) -> Flat:
        """The kernel from inputs and tangents of inputs `wrt` to tangents of the outputs."""
        return self._derivative(tuple(wrt), forward=True)

    def _derivative(self, wrt: tuple[int, ...], forward: bool) -> Flat:
        found = self._derived.get((wrt, forward))
        if found is None:
            make = self.kernel.pushforward if forward else self.kernel.pullback
            kernel = make([self.names[i] for i in wrt])
            found = Flat.known(Flat(kernel, Origin(self, wrt, forward)))
            self._derived[wrt, forward] = found
        return found

    def transposed(self, linear: Sequence[int]) -> tuple[Flat, list[int]]:
        """The transpose of the kernel, which is linear in the inputs `linear`; and the numbers of
        the inputs that the transpose takes before the cotangents of the outputs."""
        if self.origin is not None:
            of, wrt, forward = self.origin
            own = len(of.inputs)
            if min(linear) >= own and forward:
                return of.pullback([wrt[i - own] for i in linear]), list(range(own))
            if not forward and list(linear) == list(range(own, len(self.inputs))):
                return of.pushforward(wrt), list(range(own))
        return self.pullback(linear), list(range(len(self.inputs)))


class Bound:
    """A program with its robot and fixed arguments, which finds the kernel for a call."""

    def __init__(
        self, program: Program[..., Any], robot: Robot, inputs: Sequence[str], fixed: dict[str, Any]
    ) -> None:
        if not isinstance(program, Program):
            raise TypeError(
                f"function needs a program, got {type(program).__name__}; use pp.program"
            )
        self.program, self.robot, self.fixed = program, robot, fixed
        self.inputs = (inputs,) if isinstance(inputs, str) else tuple(inputs)
        self.shapes = {name: robot.parameter(name).shape for name in self.inputs}
        self._check(fixed)
        self.key = f"{program.name} #{next(_numbers)}"
        bounds[self.key] = self
        self.packs: dict[str, Callable[[list[Any]], Any]] = {}
        """The functions that pack the results of kernels, by the keys of these."""
        self._flats: dict[CallKey, Flat] = {}

    def __reduce__(self) -> tuple[type[Bound], tuple[object, ...]]:
        return Bound, (self.program, self.robot, self.inputs, self.fixed)

    def __copy__(self) -> Bound:
        return self

    def __deepcopy__(self, memo: object) -> Bound:
        return self

    def _check(self, names: Mapping[str, Any]) -> None:
        for name in names:
            if name not in self.program.parameters and name not in self.inputs:
                known = ", ".join((*self.program.parameters, *self.inputs))
                raise TypeError(f"{self.program.name} has no argument {name!r}; it has {known}")

    def arguments(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, in the order of the kernel."""
        own = self.program.parameters
        free = [name for name in own if name not in self.fixed]
        places = [n for n in free if not own[n].keyword_only]
        places += [n for n in self.inputs if n not in self.fixed]
        if len(args) > len(places):
            raise TypeError(
                f"{self.program.name} takes {len(places)} arrays ({', '.join(places)}), "
                f"got {len(args)}"
            )
        self._check(named)
        given = dict(zip(places, args, strict=False))
        twice = set(given) & set(named)
        if twice:
            raise TypeError(f"{self.program.name}: {min(twice)!r} was given twice")
        given = {**self.fixed, **given, **named}
        for name in (*own, *self.inputs):
            if name not in given and (name in self.inputs or own[name].required):
                raise TypeError(
                    f"{self.program.name} misses {name!r}; it takes {', '.join(places)}"
                )
        return {name: given[name] for name in (*own, *self.inputs) if name in given}

    def split(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[Leaf]]:
        """The options and the arrays among arguments."""
        options: dict[str, Any] = {}
        arrays: list[Leaf] = []
        for name, value in given.items():
            if name not in self.inputs and self.program.is_option(name, value):
                options[name] = frozen(value)
            elif isinstance(value, Mapping):
                named = cast("Mapping[str, Any]", value)
                arrays += [(name, key, x) for key, x in named.items()]
            else:
                arrays.append((name, "", value))
        return options, arrays

    def flat(
        self, options: dict[str, Any], arrays: Sequence[tuple[str, str, Shape]], dtype: Dtype
    ) -> Flat:
        """The kernel for arrays of these shapes and options."""
        cores = tuple((name, key, self._core(name, key, shape)) for name, key, shape in arrays)
        kinds: tuple[type, ...] = tuple(map(type, options.values()))
        how: CallKey = (tuple(options.items()), kinds, cores, dtype)
        return self._flats.get(how) or self._made(how, options, cores, dtype)

    def _made(
        self,
        how: CallKey,
        options: dict[str, Any],
        cores: tuple[tuple[str, str, Shape], ...],
        dtype: Dtype,
    ) -> Flat:
        examples: dict[str, Any] = {}
        for name, key, core in cores:
            if name in self.inputs:
                continue
            if key:
                examples.setdefault(name, {})[key] = np.zeros(core)
            else:
                examples[name] = np.zeros(core)
        kernel = self.program.compile(
            self.robot, backend="numpy", dtype=dtype, inputs=self.inputs, **options, **examples
        )  # on this backend no code is made
        flat = self._flats[how] = Flat.known(Flat(kernel))
        self.packs[flat.key] = kernel.results.pack
        return flat

    def rank(self, name: str, key: str = "") -> int:
        """How many axes of an array are not its batch."""
        if name in self.shapes:
            return len(self.shapes[name])
        shape = None if key else self.program.shape(name)
        return 1 if shape is None else len(shape)

    def _core(self, name: str, key: str, shape: Shape) -> Shape:
        """The shape of an array without its batch, checked."""
        core = self.shapes.get(name)
        if core is None:
            core = shape[-1:] if key else self.program.core(self.robot, name, tuple(shape))
        if tuple(shape[len(shape) - len(core) :]) != core or len(shape) < len(core):
            wanted = ", ".join(("...", *map(str, core)))
            raise ValueError(
                f"{self.program.name}: {key or name} has shape {tuple(shape)}, needs ({wanted})"
            )
        return tuple(core)


def _leaves(kernel: Kernel[Any]) -> list[ArraySpec]:
    """The arrays that a kernel takes, each under a unique name."""
    named: dict[str, ArraySpec] = {}
    for name, leaf in kernel.parameters:
        many = (
            {name: leaf}
            if isinstance(leaf, ArraySpec)
            else {f"{name}[{k}]": x for k, x in leaf.items()}
        )
        for own, one in many.items():
            while own in named:
                own += "'"
            named[own] = ArraySpec(own, one.shape)
    return list(named.values())
