"""Traced functions that are compiled and run when they are called."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, ParamSpec, TypeVar

from phipsi.compile import Kernel, as_device_array, as_host_array, current, on_device
from phipsi.model import Robot
from phipsi.programs.arguments import common_dtype, flatten
from phipsi.programs.parameters import Parameter
from phipsi.programs.request import robot_inputs
from phipsi.programs.shortcut import ArgumentPositions, Shortcuts
from phipsi.programs.traced import TracedFunction

P = ParamSpec("P")
R = TypeVar("R")
Verify = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]

CACHED = 256
"""Kernels a program keeps, least recently used dropped first."""


class CompiledFunction(TracedFunction, Generic[P, R]):
    """A traced function that runs as kernels, made at first use for a robot, options and shapes."""

    def __init__(
        self,
        function: Callable[P, R],
        parameters: Iterable[Parameter],
        *,
        name: str | None = None,
        doc: str | None = None,
        joint_space: bool = False,
        content_key: str | None = None,
        verify: Verify | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        super().__init__(
            function, parameters,
            name=name, doc=doc, joint_space=joint_space, content_key=content_key,
        )  # fmt: skip
        self.verify = verify
        self._has_rules = any(p.rule is not None for p in self.parameters.values())
        self.verified = self._has_rules or verify is not None
        """Are calls judged, by `verify` or by rules of the parameters?"""
        self._kernels: OrderedDict[Any, Kernel] = OrderedDict()
        positions = ArgumentPositions.of([self.robot_parameter, *self.parameters.values()])
        self._shortcuts = Shortcuts(self._general, positions)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run on arrays; see the function's own documentation for its arguments."""
        if current() is not None:
            return self._general(args, kwargs)
        result = self._shortcuts.call(args, kwargs)
        return self._verified(result, args, kwargs) if self.verified else result

    def _general(self, args: Any, kwargs: Any) -> Any:
        """Run on arguments of any kind."""
        robot, arguments = self.bind(args, kwargs)
        if current() is not None:
            return self.inlined(robot, arguments)
        static, leaves, values = self.sort(robot, arguments)
        dtype = common_dtype(_leaves(arguments))
        if self.verified and dtype == "float32":
            dtype = "float64"
        backend = "cuda" if any(map(on_device, values)) else None
        key = (robot.key, dtype, backend, static, tuple(type(x) for _, x in static), leaves)
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = self.request(robot, static, leaves).kernel(dtype, backend)
            self._kernels[key] = kernel
            if len(self._kernels) > CACHED:
                self._kernels.popitem(last=False)
        else:
            with suppress(KeyError):  # another thread may have dropped it
                self._kernels.move_to_end(key)
        result = kernel.run(values)
        self._shortcuts.learn(kernel, args, kwargs)
        return result

    def _verified(self, result: Any, args: Any, kwargs: Any) -> Any:
        """The result as `_judged` leaves it, which sees arrays here."""
        if not any(on_device(x) for y in (*args, *kwargs.values()) for x in _members(y)):
            return self._judged(result, args, kwargs)
        leaves, pack = flatten(result, self.name)
        seen = pack([as_host_array(x) for _, x in leaves])
        named = {name: _brought(x) for name, x in kwargs.items()}
        final = self._judged(seen, tuple(map(_brought, args)), named)
        if final is seen:
            return result
        leaves, pack = flatten(final, self.name)
        return pack([as_device_array(x) for _, x in leaves])

    def _judged(self, result: Any, args: Any, kwargs: Any) -> Any:
        """The result as `verify` leaves it, if the arguments keep the rules of the parameters."""
        if self._has_rules:
            self.check_rules(self.__signature__.bind(*args, **kwargs).arguments)
        return result if self.verify is None else self.verify(result, args, kwargs)

    def compile(
        self,
        robot: Robot,
        *,
        backend: str | None = None,
        dtype: str = "float64",
        threads: int | None = None,
        unroll: bool | None = None,
        inputs: str | Sequence[str] = (),
        **arguments: Any,
    ) -> Kernel:
        """The kernel for one robot.

        `backend` is "llvm" (machine code; the default where llvmlite is installed), "numpy", or
        "cuda" (one thread of a CUDA device per row; see `Kernel`).
        Large batches are divided among `threads` (default: PHIPSI_NUM_THREADS, else every core).
        Sweeps over up to 64 bodies are unrolled, over more they become loops; `unroll` decides.
        Further keywords are the program's own arguments: options are taken as they are; of an
        array only the shape counts (needed only where the program cannot know it); what has a
        default and is not named here is a constant. `inputs` names constants of the robot that
        become arguments of the kernel, after the others, one value per
        batch row: see `Robot.parameter`.
        """
        static, leaves = self.example(robot, arguments)
        extra = robot_inputs(robot, inputs)
        request = self.request(robot, static, leaves, extra=extra, unroll=unroll)
        kernel = request.kernel(dtype, backend, threads)
        kernel.prepare()
        return kernel


def _leaves(arguments: dict[str, Any]) -> Iterator[Any]:
    for value in arguments.values():
        yield from _members(value)


def _members(value: Any) -> Iterable[Any]:
    """The values of a mapping, or the one value."""
    return value.values() if isinstance(value, Mapping) else (value,)


def _brought(value: Any) -> Any:
    """An argument with arrays on a device brought here."""
    if isinstance(value, Mapping):
        return {name: _brought(x) for name, x in value.items()}
    return as_host_array(value) if on_device(value) else value
