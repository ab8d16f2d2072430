"""Parameters of a program and the arguments of a call: options, arrays, and shapes without the
batch."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from phipsi.arguments import a_class
from phipsi.compile import ArraySpec
from phipsi.model import Robot
from phipsi.model.robot import needs_robot
from phipsi.programs.arguments import (
    are_names,
    as_array,
    as_truths,
    frozen,
    is_dynamic,
    is_mapping,
)
from phipsi.programs.parameters import EMPTY, ROBOT_SIZES, Parameter
from phipsi.typing import Array, Shape

InputSpecs = tuple[tuple[str, ArraySpec | tuple[ArraySpec, ...]], ...]
"""The parameters of a kernel by name: an array, or the arrays of a mapping."""
Options = tuple[tuple[str, Hashable], ...]
"""The options of a trace by name."""


class Inputs:
    """The parameters of a program, which sort the arguments of its calls."""

    def __init__(self, name: str, parameters: Iterable[Parameter], returns: Any = EMPTY) -> None:
        self.name = name
        self.robot_parameter, *own = parameters
        """The first parameter, the robot."""
        self.parameters = {p.name: p for p in own}
        """The parameters after the robot, by name."""
        self.__signature__ = inspect.Signature(
            [p.for_inspect for p in (self.robot_parameter, *own)], return_annotation=returns
        )

    @property
    def options(self) -> dict[str, Parameter]:
        """The parameters that are options of the trace."""
        return {name: p for name, p in self.parameters.items() if p.kind == "option"}

    @property
    def usage(self) -> str:
        """The call signature as text, without types."""
        plain = [p.replace(annotation=EMPTY) for p in self.__signature__.parameters.values()]
        return f"{self.name}{inspect.Signature(plain)}"

    def bind(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Robot, dict[str, Any]]:
        """The robot and the other arguments of a call by name, defaults included."""
        first = args[0] if args else kwargs.get(self.robot_parameter.name, EMPTY)
        if first is not EMPTY:
            needs_robot(self.name, first)
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}; use {self.usage}") from None
        bound.apply_defaults()
        robot, *values = bound.arguments.values()
        return robot, {
            p.name: frozen(x) if p.kind == "option" else x
            for p, x in zip(self.parameters.values(), values, strict=True)
        }

    def is_option(self, name: str, value: object) -> bool:
        """Whether an argument is an option of the trace; otherwise it is an input of the kernel."""
        parameter = self.parameters[name]
        if parameter.kind == "option":
            if not isinstance(value, parameter.value_type):
                kind = parameter.value_type.__name__
                raise TypeError(f"{self.name}: {name} is {value!r}, needs a {kind}")
            return True
        if parameter.kind == "mask" and are_names(value):
            return True
        if parameter.shape is not None and value is not parameter.default:
            return False
        return not is_dynamic(value)

    def check_mapping(self, name: str, value: Mapping[Any, Any]) -> None:
        """Raise TypeError if a parameter takes no mapping, or the keys are no names."""
        if not self.parameters[name].mapping:
            raise TypeError(f"{self.name}: {name} is a mapping, needs an array of numbers")
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{self.name}: {name} has the key {key!r}, needs names")

    def is_mask(self, name: str) -> bool:
        """Whether a parameter is a mask of truth values."""
        return self.parameters[name].kind == "mask"

    def check_rules(self, values: Mapping[str, Any]) -> None:
        """Raise ValueError for the first value that breaks the rule of its parameter."""
        for name, parameter in self.parameters.items():
            parameter.check(self.name, values.get(name))

    def sort(
        self, robot: Robot, arguments: dict[str, Any]
    ) -> tuple[Options, InputSpecs, list[Array]]:
        """Split the arguments of a call into options, array specifications and arrays."""
        options: list[tuple[str, Hashable]] = []
        specs: list[tuple[str, ArraySpec | tuple[ArraySpec, ...]]] = []
        values: list[Array] = []
        for name, value in arguments.items():
            if self.is_option(name, value):
                value = frozen(value)
                try:
                    hash(value)
                except TypeError:
                    kind = a_class(value)
                    raise TypeError(
                        f"{self.name}: the option {name} is {kind}, needs a constant"
                    ) from None
                options.append((name, value))
            elif is_mapping(value) and not self.is_mask(name):
                self.check_mapping(name, value)
                arrays = {k: as_array(f"{self.name}: {name}[{k!r}]", v) for k, v in value.items()}
                specs.append((name, tuple(ArraySpec(k, a.shape[-1:]) for k, a in arrays.items())))
                values.extend(arrays.values())
            else:
                numbers = as_truths if self.is_mask(name) else as_array
                array = numbers(f"{self.name}: {name}", value)
                specs.append((name, ArraySpec(name, self.core(robot, name, array.shape))))
                values.append(array)
        return tuple(options), tuple(specs), values

    def example(self, robot: Robot, arguments: dict[str, Any]) -> tuple[dict[str, Any], InputSpecs]:
        """The options and the array specifications for arguments of which only the shapes count.
        Parameters with a default that are not named are options with that value."""
        needs_robot(self.name, robot)
        unknown = set(arguments) - set(self.parameters)
        if unknown:
            known = ", ".join(self.parameters)
            raise TypeError(f"{self.name} has no argument {min(unknown)!r}; it has {known}")
        options: dict[str, Any] = {}
        specs: list[tuple[str, ArraySpec | tuple[ArraySpec, ...]]] = []
        for name, parameter in self.parameters.items():
            value = arguments.get(name, parameter.default)
            if value is EMPTY:
                if parameter.kind == "option":
                    raise TypeError(f"{self.name}.compile needs the option {name}=...")
                if parameter.shape is None or parameter.free_axes:
                    raise TypeError(
                        f"{self.name}.compile cannot know the shape of {name!r}; "
                        f"pass an example, {name}=np.zeros(...)"
                    )
                specs.append((name, ArraySpec(name, self.core(robot, name, ()))))
            elif name not in arguments or self.is_option(name, value):
                options[name] = frozen(value)
            elif is_mapping(value):
                self.check_mapping(name, value)
                specs.append((name, tuple(ArraySpec(k, np.shape(v)) for k, v in value.items())))
            else:
                if parameter.kind == "mask":
                    value = as_truths(f"{self.name}: {name}", value)
                shape = np.shape(value)
                specs.append((name, ArraySpec(name, self.checked(robot, name, shape))))
        return options, tuple(specs)

    def core(self, robot: Robot, name: str, given: tuple[int, ...]) -> tuple[int, ...]:
        """The shape, without its batch and in numbers, of an argument of the shape `given`; that of
        its last axis if none is declared."""
        shape = self.shape(name)
        if shape is None:
            return given[-1:]
        own = given[max(0, len(given) - len(shape)) :]
        if self.parameters[name].free_axes and len(own) < len(shape):
            needs = ", ".join(map(str, shape))
            raise ValueError(f"{self.name}: {name} has shape {given}, needs (..., {needs})")
        return tuple(
            d if isinstance(d, int) else getattr(robot, d) if d in ROBOT_SIZES else own[i]
            for i, d in enumerate(shape)
        )

    def shape(self, name: str) -> Shape | None:
        """The declared axes of an input without its batch; None if none are declared."""
        parameter = self.parameters.get(name)
        return None if parameter is None else parameter.shape

    def checked(self, robot: Robot, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an argument; ValueError if it is not the declared one."""
        if self.shape(name) is None:
            return shape
        expected = self.core(robot, name, shape)
        if shape != expected:
            raise ValueError(f"{self.name}: {name} has shape {shape}, needs {expected}")
        return shape
