"""What is asked of a trace, and traces remembered on disk.

A program of phipsi itself on a robot, with given options and shapes, always gives the same graph:
its digest, which names the machine code in the disk cache, is remembered there too, so that a
kernel made once is loaded in a few milliseconds without tracing it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache as once
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from phipsi.compile import (
    ArraySpec,
    Graph,
    Kernel,
    Recalled,
    Structure,
    Tracer,
    backend_named,
    cache,
    default_backend,
    lift,
    tracing,
)
from phipsi.model import Grasp, Loop, Robot
from phipsi.programs.arguments import first, flatten
from phipsi.sweeps.lowering import unrolling

Leaves = tuple[tuple[str, ArraySpec | tuple[ArraySpec, ...]], ...]


@dataclass(frozen=True)
class Request:
    """A program's function to be traced: on which robot, with which options (`static`), inputs
    (`leaves`) and numbers of the robot that become inputs (`extra`)."""

    name: str
    apply: Callable[[Robot, dict[str, Any]], Any]
    robot: Robot
    static: dict[str, Any]
    leaves: Leaves
    extra: tuple[ArraySpec, ...] = ()
    unroll: bool | None = None
    joint_space: bool = False
    content_key: str | None = None
    """What says which function it is; without it traces are not remembered."""

    @property
    def parameters(self) -> tuple[tuple[str, ArraySpec | dict[str, ArraySpec]], ...]:
        """The parameters of the kernel."""
        own = (
            (name, leaf if isinstance(leaf, ArraySpec) else {one.name: one for one in leaf})
            for name, leaf in self.leaves
        )
        return (*own, *((leaf.name, leaf) for leaf in self.extra))

    def traced(self) -> tuple[Graph, Structure]:
        """The graph and the structure of its results."""
        tracer = Tracer()

        def entered(leaf: ArraySpec) -> Any:
            return lift(tracer.input(leaf.name, prod(leaf.shape)).reshape(leaf.shape))

        with tracing(tracer), unrolling(self.unroll):
            arguments = dict(self.static)
            for name, leaf in self.leaves:
                single = isinstance(leaf, ArraySpec)
                arguments[name] = (
                    entered(leaf) if single else {one.name: entered(one) for one in leaf}
                )
            robot = self.robot.with_parameters({leaf.name: entered(leaf) for leaf in self.extra})
            outputs, pack = flatten(self.apply(robot, arguments), self.name)
            arrays = [(name, np.asarray(lift(x))) for name, x in outputs]
            graph = tracer.graph([(name, list(x.reshape(-1))) for name, x in arrays])
        return graph, Structure(tuple(ArraySpec(name, x.shape) for name, x in arrays), pack)

    def recalled(self) -> tuple[Graph | Recalled, Structure]:
        """The same, from the disk cache if it is remembered there."""
        key = self._key()
        known = None if key is None else cache.load(key)
        if known is not None:
            digest, operations, shape = json.loads(known)
            graph = Recalled(digest, operations, lambda: self.traced()[0])
            return graph, Structure((ArraySpec(self.name, tuple(shape)),), first)
        graph, structure = self.traced()
        if key is not None and structure.pack is first:
            note = (graph.digest, graph.operations, structure.leaves[0].shape)
            cache.store(key, json.dumps(note).encode())
        return graph, structure

    def kernel(self, dtype: str, backend: str | None = None, threads: int | None = None) -> Kernel:
        """The kernel of the graph."""
        backend = backend or default_backend(dtype)
        graph, results = self.recalled() if backend_named(backend).compiled else self.traced()
        return Kernel(self.name, graph, self.parameters, results, dtype, backend, threads)

    def _key(self) -> str | None:
        """What the graph depends on; None where that cannot be known: without a key of the
        function, and for options that are no plain constants."""
        if self.content_key is None or not all(map(_plain, self.static.values())):
            return None
        how = (self.static, self.leaves, self.extra, self.unroll, self.joint_space)
        what = (self.content_key, self.robot.key, how)
        return hashlib.sha256(_sources() + repr(what).encode()).hexdigest()


def robot_inputs(robot: Robot, names: str | Sequence[str]) -> tuple[ArraySpec, ...]:
    """Numbers of the robot that become inputs."""
    given = (names,) if isinstance(names, str) else names
    return tuple(ArraySpec(name, robot.parameter(name).shape) for name in given)


def _plain(x: Any) -> bool:
    """Is it told by its repr alone?"""
    if isinstance(x, tuple):
        return all(map(_plain, x))
    return isinstance(x, (str, int, float, type(None))) or type(x) in (Grasp, Loop)


@once
def _sources() -> bytes:
    """A digest of the source of phipsi."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()
