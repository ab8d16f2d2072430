"""Functions of a robot and arrays that are traced."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from phipsi.compile import ArraySpec, Graph, flatten, is_traced, lift
from phipsi.model import Robot
from phipsi.programs.arguments import as_truths, is_mapping
from phipsi.programs.inputs import Inputs, InputSpecs, Options
from phipsi.programs.parameters import EMPTY, Parameter, type_hints
from phipsi.programs.request import Request
from phipsi.sweeps.lowering import simplest


class TracedFunction(Inputs):
    """A function f(robot, *arrays, **options) with descriptions of its parameters, which can be
    traced by itself or within another trace.

    The function is called with all arguments, by position unless they are keyword-only. `name` and
    `doc` default to the function's own. `content_key` is a text that identifies what the function
    computes: its traces are stored in the disk cache under it.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        parameters: Iterable[Parameter],
        *,
        name: str | None = None,
        doc: str | None = None,
        joint_space: bool = False,
        content_key: str | None = None,
    ) -> None:
        self.__name__ = name or function.__name__
        self.__doc__ = doc or function.__doc__
        returns = getattr(function, "__annotations__", {}).get("return", EMPTY)
        super().__init__(self.__name__, parameters, returns)
        self.function = function
        self.joint_space = joint_space
        self._content_key = content_key

    @property
    def content_key(self) -> str | None:
        """The text that identifies what the function computes: the given one, or its qualified
        name if it is a program of phipsi. None for other functions, whose traces are not stored on
        disk."""
        if self._content_key is not None:
            return self._content_key
        home, name = self.function.__module__ or "", self.function.__qualname__
        known = home.startswith("phipsi.") and getattr(sys.modules.get(home), name, None) is self
        return f"{home}.{name}" if known else None

    def apply(self, robot: Robot, arguments: dict[str, Any]) -> Any:
        """Call the function with arguments given by name."""
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if parameter.keyword_only:
                keywords[name] = arguments[name]
            else:
                positional.append(arguments[name])
        return self.function(
            simplest(robot) if self.joint_space else robot, *positional, **keywords
        )

    def inlined(self, robot: Robot, arguments: dict[str, Any]) -> Any:
        """Call the function within the trace in progress."""
        traced: dict[str, Any] = {}
        for name, value in arguments.items():
            if self.is_option(name, value):
                traced[name] = value
            elif is_mapping(value):
                traced[name] = {k: lift(v) for k, v in value.items()}
            else:
                if self.is_mask(name) and not is_traced(value):
                    value = as_truths(f"{self.name}: {name}", value)
                traced[name] = lift(value)
                self.checked(robot, name, traced[name].shape)
        result = self.apply(robot, traced)
        arrays, pack = flatten(result, self.name)
        return pack([lift(x) if np.ndim(x) else lift(x)[()] for _, x in arrays])

    def request(
        self,
        robot: Robot,
        options: Options | Mapping[str, Any],
        specs: InputSpecs,
        *,
        extra: tuple[ArraySpec, ...] = (),
        unroll: bool | None = None,
    ) -> Request:
        """The request to trace the function for a robot; arguments as in `Request`."""
        return Request(
            self.name, self.apply, robot, dict(options), specs, extra, unroll,
            joint_space=self.joint_space, content_key=self.content_key,
            result_type=type_hints(self.function).get("return"),
        )  # fmt: skip

    def graph(self, robot: Robot, *, unroll: bool | None = None, **arguments: Any) -> Graph:
        """The traced graph of scalar operations for one robot.

        Parameters
        ----------
        robot
            The robot.
        unroll
            Whether sweeps over bodies are unrolled, as in `compile`.
        **arguments
            Arguments of the program, as in `compile`.

        Returns
        -------
        Graph
            The graph, which can be printed.
        """
        options, specs = self.example(robot, arguments)
        return self.request(robot, options, specs, unroll=unroll).traced()[0]
