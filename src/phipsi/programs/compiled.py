"""Traced functions that are compiled and run when they are called."""

from __future__ import annotations

import functools
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pickle import PicklingError, UnpicklingError
from typing import Any, Generic, ParamSpec, TypeVar

from phipsi.compile import (
    BackendName,
    Dtype,
    Kernel,
    as_device_array,
    as_host_array,
    current,
    flatten,
    on_device,
)
from phipsi.model import Robot
from phipsi.programs.arguments import common_dtype, is_mapping
from phipsi.programs.parameters import Parameter
from phipsi.programs.request import robot_inputs
from phipsi.programs.shortcut import ArgumentPositions, Shortcuts
from phipsi.programs.traced import TracedFunction

P = ParamSpec("P")
R = TypeVar("R")
Verify = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
"""verify(result, args, kwargs) -> result: checks or amends the result of a call, or raises."""

CACHED = 256
"""Kernels that a program keeps; the least recently used is dropped first."""


class CompiledFunction(TracedFunction, Generic[P, R]):
    """A traced function that runs as kernels: one for each robot, options and shapes, compiled at
    the first call with them."""

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
        made_by: tuple[Callable[..., Any], tuple[Any, ...]] | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        super().__init__(
            function, parameters,
            name=name, doc=doc, joint_space=joint_space, content_key=content_key,
        )  # fmt: skip
        self.verify = verify
        self._made_by = made_by
        self._has_rules = any(p.rule is not None for p in self.parameters.values())
        self.verified = self._has_rules or verify is not None
        """Whether calls are checked, by `verify` or by rules of the parameters."""
        self._kernels: OrderedDict[Any, Kernel[Any]] = OrderedDict()
        positions = ArgumentPositions.of([self.robot_parameter, *self.parameters.values()])
        self._shortcuts = Shortcuts(self._general, positions)

    def __reduce__(self) -> str | tuple[Callable[..., Any], tuple[Any, ...]]:
        """How it was made, or its name in its module: pickles hold no code."""
        if self._made_by is not None:
            return self._made_by
        for name in (getattr(self, "__qualname__", ""), self.__name__):
            if _place(self.__module__, name) is self:
                return (_of_script, (name,)) if self.__module__ == "__main__" else name
        raise PicklingError(
            f"the program {self.name} cannot be pickled, for the module {self.__module__} has none "
            "of that name: define it there, not within a function"
        )

    def __copy__(self) -> CompiledFunction[P, R]:
        return self

    def __deepcopy__(self, memo: object) -> CompiledFunction[P, R]:
        return self

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the program on arrays; the function's own docstring describes the arguments."""
        if current() is not None:
            return self._general(args, kwargs)
        result = self._shortcuts.call(args, kwargs)
        return self._verified(result, args, kwargs) if self.verified else result

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run on arguments of any kind: bind them, find or compile the kernel, call it."""
        robot, arguments = self.bind(args, kwargs)
        if current() is not None:
            return self.inlined(robot, arguments)
        kernel, values = self._found(robot, arguments)
        result = kernel.run(values)
        self._shortcuts.learn(kernel, args, kwargs)
        return result

    def operations(self, *args: P.args, **kwargs: P.kwargs) -> int:
        """How many scalar operations the call with these arguments takes for one row."""
        robot, arguments = self.bind(args, kwargs)
        return self._found(robot, arguments)[0].code.operations

    def _found(self, robot: Robot, arguments: dict[str, Any]) -> tuple[Kernel[Any], list[Any]]:
        """The kernel for a robot and arguments, made if there is none yet, and its inputs."""
        options, specs, values = self.sort(robot, arguments)
        dtype = common_dtype(x for value in arguments.values() for x in _members(value))
        if self.verified and dtype == "float32":
            dtype = "float64"
        backend = "cuda" if any(map(on_device, values)) else None
        key = (robot.key, dtype, backend, options, tuple(type(x) for _, x in options), specs)
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = self.request(robot, options, specs).kernel(dtype, backend)
            self._kernels[key] = kernel
            if len(self._kernels) > CACHED:
                self._kernels.popitem(last=False)
        else:
            with suppress(KeyError):  # another thread may have dropped it
                self._kernels.move_to_end(key)
        return kernel, values

    def _verified(self, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The checked result. Arrays on a CUDA device are copied to the host for the check."""
        if not any(on_device(x) for y in (*args, *kwargs.values()) for x in _members(y)):
            return self._checked(result, args, kwargs)
        arrays, pack = flatten(result, self.name)
        seen = pack([as_host_array(x) for _, x in arrays])
        named = {name: _on_host(x) for name, x in kwargs.items()}
        final = self._checked(seen, tuple(map(_on_host, args)), named)
        if final is seen:
            return result
        arrays, pack = flatten(final, self.name)
        return pack([as_device_array(x) for _, x in arrays])

    def _checked(self, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result as `verify` returns it; raises if an argument breaks a rule."""
        if self._has_rules:
            self.check_rules(self.__signature__.bind(*args, **kwargs).arguments)
        return result if self.verify is None else self.verify(result, args, kwargs)

    def compile(
        self,
        robot: Robot,
        *,
        backend: BackendName | None = None,
        dtype: Dtype = "float64",
        threads: int | None = None,
        unroll: bool | None = None,
        inputs: str | Sequence[str] = (),
        **arguments: Any,
    ) -> Kernel[R]:
        """The compiled kernel for one robot.

        Parameters
        ----------
        robot
            The robot.
        backend
            "llvm" (machine code; the default where llvmlite is installed), "numpy" (the
            interpreter), or "cuda" (one thread of a CUDA device per row; see `Kernel`).
        dtype
            The number type of the kernel.
        threads
            Threads among which large batches are divided (default: PHIPSI_NUM_THREADS, else every
            core).
        unroll
            Whether sweeps over bodies are unrolled, or loops (False); default: whichever costs less
            to compile and run, which is unrolled for robots of up to 64 bodies.
        inputs
            Names of constants of the robot (`Robot.parameter`) that become arguments of the kernel,
            after the others, with one value per row of the batch.
        **arguments
            Arguments of the program. Options are constants of the kernel. Of an array only the
            shape counts; it is needed only where the program does not declare one. An argument with
            a default that is not named is a constant.

        Returns
        -------
        Kernel
            A function of the program's arrays.
        """
        options, specs = self.example(robot, arguments)
        extra = robot_inputs(robot, inputs)
        request = self.request(robot, options, specs, extra=extra, unroll=unroll)
        kernel = request.kernel(dtype, backend, threads)
        kernel.prepare()
        return kernel


def _place(module: str, name: str) -> Any:
    """What a module has under a name with dots; None if it has nothing."""
    place: Any = sys.modules.get(module)
    for part in name.split("."):
        place = getattr(place, part, None)
    return place


def _of_script(name: str) -> Any:
    """The program of that name in the script or notebook that this process runs, for pickles."""
    found = _place("__main__", name)
    if found is None:
        raise UnpicklingError(
            f"the program {name} was defined in a script or notebook, which this process does not "
            f"run: define it in a module, or send the kernel {name}.compile(robot)"
        )
    return found


def _members(value: object) -> Iterable[Any]:
    """The values of a mapping, or the one value."""
    return value.values() if is_mapping(value) else (value,)


def _on_host(value: Any) -> Any:
    """An argument with its arrays copied from the CUDA device to the host."""
    if is_mapping(value):
        return {name: _on_host(x) for name, x in value.items()}
    return as_host_array(value) if on_device(value) else value
