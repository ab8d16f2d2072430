"""Requests to trace a program for a robot, with traces stored in the disk cache.

A program of phipsi on a given robot, with given options and shapes, always gives the same graph.
The digest of the graph, which names the machine code in the disk cache, is stored there too, for
the interpreter the graph itself: a kernel that was made once is loaded without tracing.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from phipsi import sources
from phipsi.arguments import as_names
from phipsi.compile import (
    ArraySpec,
    BackendName,
    Dtype,
    Graph,
    Kernel,
    Recalled,
    Structure,
    Tracer,
    backend_named,
    cache,
    default_backend,
    flatten,
    lift,
    tracing,
)
from phipsi.compile.node import TraceTooLarge
from phipsi.compile.stored_graph import from_values, to_values
from phipsi.model import Robot
from phipsi.programs.arguments import is_mapping, is_sequence
from phipsi.programs.identity import identity
from phipsi.programs.inputs import InputSpecs
from phipsi.sweeps.lowering import unrolling
from phipsi.typing import Array

FEW = 64
"""The largest number of bodies of a robot for which the unrolled form is traced first."""
LARGE, LARGEST = 50_000, 300_000
"""The size up to which the unrolled form of few bodies is taken without tracing the looped one, and
the number of nodes up to which either is traced. A node takes about 0.2 ms to compile."""
LONG, LEAST = 150_000, 200
"""For many bodies: the number of nodes up to which the unrolled form is traced, and those that a
body takes in forward dynamics, by which it is not tried for long robots."""
DEARER = 1.5
"""Loops are taken unless they need so many times the operations of the unrolled form, or for more
nodes than LARGE so many times more; loops do not know which entries are zero."""

TracedGraph = tuple[Graph, Structure[Any]]
"""A traced graph and the structure of its results."""


@dataclass(frozen=True)
class Request:
    """A function to be traced, the robot, the options and the inputs."""

    name: str
    apply: Callable[[Robot, dict[str, Any]], Any]
    robot: Robot
    options: dict[str, Any]
    specs: InputSpecs
    extra: tuple[ArraySpec, ...] = ()
    """Constants of the robot that become inputs."""
    unroll: bool | None = None
    joint_space: bool = False
    content_key: str | None = None
    """Text that identifies the function; without it the trace is not stored on disk."""
    result_type: Any = None
    """The declared type of the result."""

    @property
    def parameters(self) -> tuple[tuple[str, ArraySpec | dict[str, ArraySpec]], ...]:
        """The parameters of the kernel."""
        own = (
            (name, spec if isinstance(spec, ArraySpec) else {one.name: one for one in spec})
            for name, spec in self.specs
        )
        return (*own, *((spec.name, spec) for spec in self.extra))

    def traced(self) -> TracedGraph:
        """The traced graph and the structure of its results; unless `unroll` says how, in the form
        that costs less."""
        if self.unroll is not None:
            return self._traced(self.unroll)
        bodies = self.robot.nb
        few = bodies <= FEW
        unrolled = self._within(LARGEST, None) if few else None
        if unrolled is not None and unrolled[0].size <= LARGE:
            return unrolled
        looped = self._within(LARGEST, False)
        if not few and LEAST * bodies <= LONG:
            unrolled = self._within(LONG, None)
        if looped is None or unrolled is None:
            return unrolled or looped or self._traced(False)
        worth = DEARER * max(1.0, unrolled[0].size / LARGE) * unrolled[0].operations
        return unrolled if looped[0].operations > worth else looped

    def _within(self, most: int, unroll: bool | None) -> TracedGraph | None:
        """The trace in one form; None if it has more nodes than `most`."""
        try:
            return self._traced(unroll, most)
        except TraceTooLarge:
            return None

    def _traced(self, unroll: bool | None, most: int | None = None) -> TracedGraph:
        """The trace in one form, of at most so many nodes; see `unrolling`."""
        tracer = Tracer(most=most)

        def entered(spec: ArraySpec) -> Array:
            return lift(tracer.input(spec.name, prod(spec.shape)).reshape(spec.shape))

        try:
            with (
                without_collections(),
                np.errstate(all="ignore"),  # what overflows is infinite in the kernel, too
                tracing(tracer),
                unrolling(unroll),
            ):
                arguments = dict(self.options)
                for name, spec in self.specs:
                    single = isinstance(spec, ArraySpec)
                    arguments[name] = (
                        entered(spec) if single else {one.name: entered(one) for one in spec}
                    )
                robot = self.robot.with_parameters({s.name: entered(s) for s in self.extra})
                outputs, pack = flatten(self.apply(robot, arguments), self.name)
                arrays = [(name, np.asarray(lift(x))) for name, x in outputs]
                graph = tracer.graph([(name, list(x.reshape(-1))) for name, x in arrays])
        finally:
            tracer.release()
        return graph, Structure(tuple(ArraySpec(name, x.shape) for name, x in arrays), pack)

    def recalled(self, compiled: bool) -> tuple[Graph | Recalled, Structure[Any]]:
        """The same as `traced`, from the disk cache if the trace is stored there: for a `compiled`
        backend by its digest, which names the machine code, for others the graph itself."""
        trace = self._key()
        if trace is None:
            return self.traced()
        key = hashlib.sha256(f"{trace} {compiled}".encode()).hexdigest()
        known = cache.load(key)
        if known is not None:
            template, leaves, values = json.loads(known)
            specs = tuple(ArraySpec(name, tuple(shape)) for name, shape in leaves)
            _, pack = flatten(self._result(template), self.name)
            graph = self._recalled(trace, *values) if compiled else from_values(values)
            return graph, Structure(specs, pack)
        graph, structure = self._traced_once(trace)
        result = structure.pack([*range(len(structure.leaves))])
        template = json.loads(json.dumps(result, skipkeys=True))
        if repr(self._result(template)) == repr(result):
            values = (graph.digest, graph.operations) if compiled else to_values(graph)
            cache.store(key, json.dumps((template, structure.leaves, values)).encode())
        return graph, structure

    def _recalled(self, trace: str, digest: str, operations: int) -> Recalled:
        return Recalled(digest, operations, lambda: self._traced_once(trace)[0])

    def _traced_once(self, trace: str) -> TracedGraph:
        """The same as `traced`; of a trace whose kernel is still there, say in another number type,
        the graph of that kernel."""
        graph, structure = _graphs.get(trace), _structures.get(trace)
        if graph is None or structure is None:
            graph, structure = _graphs[trace], _structures[trace] = self.traced()
        return graph, structure

    def _result(self, template: Any) -> Any:
        """A result with numbers in the place of its arrays, made of what JSON stores of it."""
        result = _with_tuples(template)
        named = is_sequence(result) and hasattr(self.result_type, "_fields")
        return self.result_type(*result) if named else result

    def kernel(
        self, dtype: Dtype, backend: BackendName | None = None, threads: int | None = None
    ) -> Kernel[Any]:
        """The kernel that runs the graph."""
        backend = backend or default_backend(dtype)
        graph, results = self.recalled(backend_named(backend).compiled)
        return Kernel(self.name, graph, self.parameters, results, dtype, backend, threads)

    def _key(self) -> str | None:
        """A digest of all that the graph depends on; None if the function or an option is not
        identified by a text."""
        options = identity(tuple(self.options.items()))
        if self.content_key is None or options is None:
            return None
        how = (options, self.specs, self.extra, self.unroll, self.joint_space)
        what = (self.content_key, self.robot.key, how)
        return hashlib.sha256(sources.digest() + repr(what).encode()).hexdigest()


_graphs: WeakValueDictionary[str, Graph] = WeakValueDictionary()
_structures: WeakValueDictionary[str, Structure[Any]] = WeakValueDictionary()
"""The graphs of the kernels that are in use, and the structures of their results, by the key of
their traces."""


def robot_inputs(robot: Robot, names: str | Sequence[str]) -> tuple[ArraySpec, ...]:
    """The specifications of constants of the robot that become inputs, by name."""
    given = as_names("inputs", names)
    return tuple(ArraySpec(name, robot.parameter(name).shape) for name in given)


def _with_tuples(x: Any) -> Any:
    """Lists as tuples; JSON has no tuples, and results no lists."""
    if is_mapping(x):
        return {name: _with_tuples(part) for name, part in x.items()}
    return tuple(map(_with_tuples, x)) if is_sequence(x) else x


@contextmanager
def without_collections() -> Generator[None, None, None]:
    """No collections of cyclic garbage within a `with` block. A trace makes hundreds of thousands
    of objects, all of them in use, which the collector would look at again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
