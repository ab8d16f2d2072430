"""What a program is given: options told from arrays, and the shapes of these without the batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from phipsi.compile import ArraySpec
from phipsi.model import Robot
from phipsi.sweeps.arguments import are_names, as_array, as_truths, frozen, is_dynamic

Shape = tuple[int | str, ...]
STANDARD: dict[str, Shape] = {
    "q": ("nq",),
    "v": ("nv",),
    "a": ("nv",),
    "tau": ("nv",),
    "external": ("nb", 6),
}
"""Shapes, without the batch, of the arguments every algorithm shares."""

OPTIONS: dict[Any, type] = {"str": str, "bool": bool, "int": int, str: str, bool: bool, int: int}
"""Parameters with these annotations are options of the trace, never inputs."""


class Inputs:
    """The parameters of a function f(robot, *arrays, **options)."""

    def __init__(
        self,
        function: Callable[..., Any],
        shapes: Mapping[str, Shape] | None,
        static: Sequence[str],
        named: Sequence[str],
    ) -> None:
        self.function = function
        self.name = function.__name__
        self.signature = inspect.signature(function)
        parameters = list(self.signature.parameters.values())
        if not parameters:
            raise TypeError(f"program {self.name} needs the robot as its first parameter")
        for p in parameters:
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                raise TypeError(f"program {self.name}: {p} is no parameter that can be traced")
        self.parameters = {p.name: p for p in parameters[1:]}
        self.named = frozenset(named)
        self.shapes = {**STANDARD, **(shapes or {})}
        self.options = {
            p.name: OPTIONS[p.annotation] for p in parameters if p.annotation in OPTIONS
        }
        self.options.update(dict.fromkeys(static, object))

    @property
    def usage(self) -> str:
        """How it is called."""
        bare = inspect.Parameter.empty
        plain = [p.replace(annotation=bare) for p in self.signature.parameters.values()]
        return f"{self.name}{inspect.Signature(plain)}"

    def bind(self, args: Any, kwargs: Any) -> tuple[Robot, dict[str, Any]]:
        """The robot, and the arguments by name."""
        if args and not isinstance(args[0], Robot):
            raise TypeError(f"{self.name} needs a Robot first, got {type(args[0]).__name__}")
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}; use {self.usage}") from None
        bound.apply_defaults()
        robot, *values = bound.arguments.values()
        return robot, {
            name: frozen(x) if name in self.options else x
            for name, x in zip(self.parameters, values, strict=True)
        }

    def is_option(self, name: str, value: Any) -> bool:
        """Is the argument an option of the trace (else an input)?"""
        if name in self.options:
            if not isinstance(value, self.options[name]):
                kind = self.options[name].__name__
                raise TypeError(f"{self.name}: {name} is {value!r}, needs a {kind}")
            return True
        if name in self.named and are_names(value):
            return True
        if name in self.shapes and value is not self.parameters[name].default:
            return False
        return not is_dynamic(value)

    def sort(self, robot: Robot, arguments: dict[str, Any]) -> tuple[Any, Any, list[Any]]:
        """Split arguments into static options, leaves (shapes) and their values."""
        static: list[tuple[str, Any]] = []
        leaves: list[tuple[str, ArraySpec | tuple[ArraySpec, ...]]] = []
        values: list[Any] = []
        for name, value in arguments.items():
            if self.is_option(name, value):
                value = frozen(value)
                if not isinstance(value, Hashable):
                    kind = type(value).__name__
                    raise TypeError(f"{self.name}: the option {name} is a {kind}, needs a constant")
                static.append((name, value))
            elif isinstance(value, Mapping) and name not in self.named:
                arrays = {k: as_array(f"{self.name}: {name}[{k!r}]", v) for k, v in value.items()}
                leaves.append((name, tuple(ArraySpec(k, a.shape[-1:]) for k, a in arrays.items())))
                values.extend(arrays.values())
            else:
                numbers = as_truths if name in self.named else as_array
                array = numbers(f"{self.name}: {name}", value)
                leaves.append((name, ArraySpec(name, self.core(robot, name, array.shape[-1:]))))
                values.append(array)
        return tuple(static), tuple(leaves), values

    def example(self, robot: Robot, arguments: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """Options, and the leaves of all other parameters, of which only the shapes count."""
        unknown = set(arguments) - set(self.parameters)
        if unknown:
            known = ", ".join(self.parameters)
            raise TypeError(f"{self.name} has no argument {min(unknown)!r}; it has {known}")
        static: dict[str, Any] = {}
        leaves: list[tuple[str, ArraySpec | tuple[ArraySpec, ...]]] = []
        for name, parameter in self.parameters.items():
            value = arguments.get(name, parameter.default)
            if value is parameter.empty:
                if name in self.options:
                    raise TypeError(f"{self.name}.compile needs the option {name}=...")
                if name not in self.shapes:
                    raise TypeError(
                        f"{self.name}.compile cannot know the shape of {name!r}; "
                        f"pass an example, {name}=np.zeros(...)"
                    )
                leaves.append((name, ArraySpec(name, self.core(robot, name, ()))))
            elif name not in arguments or self.is_option(name, value):
                static[name] = frozen(value)
            elif isinstance(value, Mapping):
                leaves.append((name, tuple(ArraySpec(k, np.shape(v)) for k, v in value.items())))
            else:
                if name in self.named:
                    value = as_truths(f"{self.name}: {name}", value)
                shape = np.shape(value)
                leaves.append((name, ArraySpec(name, self.checked(robot, name, shape))))
        return static, tuple(leaves)

    def core(self, robot: Robot, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an input without its batch; `default` where the program does not say."""
        if name not in self.shapes:
            return default
        sizes = (getattr(robot, d) if isinstance(d, str) else d for d in self.shapes[name])
        return tuple(sizes)

    def checked(self, robot: Robot, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an argument, if it is right."""
        expected = self.core(robot, name, shape)
        if shape != expected:
            raise ValueError(f"{self.name}: {name} has shape {shape}, needs {expected}")
        return shape
