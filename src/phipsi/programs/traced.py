"""Functions of a robot and arrays that are traced."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from phipsi.compile import Graph, is_traced, lift
from phipsi.model import Robot
from phipsi.programs.arguments import as_truths, flatten
from phipsi.programs.inputs import Inputs
from phipsi.programs.parameters import EMPTY, Parameter
from phipsi.programs.request import Request
from phipsi.sweeps.lowering import simplest


class TracedFunction(Inputs):
    """A function f(robot, *arrays, **options) with a description of its parameters: what can be
    traced, by itself or as a part of another trace.

    It is called with every argument, those that are not keyword-only by position. `name` and `doc`
    are the function's own unless they are given. `content_key` is a text that says what the
    function computes, so that its traces may be remembered on disk.
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
        """The text that says what it computes: the one given, or where it stands in phipsi; None
        for functions of others, of which nothing is remembered on disk."""
        if self._content_key is not None:
            return self._content_key
        home, name = self.function.__module__ or "", self.function.__qualname__
        known = home.startswith("phipsi.") and getattr(sys.modules.get(home), name, None) is self
        return f"{home}.{name}" if known else None

    def apply(self, robot: Robot, arguments: dict[str, Any]) -> Any:
        """The function itself, on arguments by name."""
        positional, keywords = [], {}
        for name, parameter in self.parameters.items():
            if parameter.keyword_only:
                keywords[name] = arguments[name]
            else:
                positional.append(arguments[name])
        return self.function(
            simplest(robot) if self.joint_space else robot, *positional, **keywords
        )

    def inlined(self, robot: Robot, arguments: dict[str, Any]) -> Any:
        """The result as a part of the trace in progress."""
        traced: dict[str, Any] = {}
        for name, value in arguments.items():
            if self.is_option(name, value):
                traced[name] = value
            elif isinstance(value, Mapping):
                traced[name] = {k: lift(v) for k, v in value.items()}
            else:
                if self.is_mask(name) and not is_traced(value):
                    value = as_truths(f"{self.name}: {name}", value)
                traced[name] = lift(value)
                self.checked(robot, name, traced[name].shape)
        result = self.apply(robot, traced)
        leaves, pack = flatten(result, self.name)
        return pack([lift(x) if np.ndim(x) else lift(x)[()] for _, x in leaves])

    def request(self, robot: Robot, static: Any, leaves: Any, **more: Any) -> Request:
        """The request to trace it for a robot: options, inputs, and more as `Request` has it."""
        return Request(
            self.name, self.apply, robot, dict(static), tuple(leaves),
            joint_space=self.joint_space, content_key=self.content_key, **more,
        )  # fmt: skip

    def graph(self, robot: Robot, *, unroll: bool | None = None, **arguments: Any) -> Graph:
        """The traced scalar graph for one robot; arguments as in `compile`."""
        static, leaves = self.example(robot, arguments)
        return self.request(robot, static, leaves, unroll=unroll).traced()[0]
