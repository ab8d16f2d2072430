"""Parameters of programs: one description of each, from which signatures and kernels are made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

Shape = tuple[int | str, ...]
"""The axes of an array without its batch; a string is a size of the robot ("nq", "nv", "nb")."""

Kind = Literal["array", "mask", "option"]

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

EMPTY: Any = inspect.Parameter.empty
"""No default, no annotation."""


class ValueRule(Protocol):
    """What the numbers of a parameter must be."""

    @property
    def needs(self) -> str:
        """What they must be, in words."""
        ...

    def allows(self, x: np.ndarray, /) -> bool:
        """Are these numbers such?"""
        ...


@dataclass(frozen=True)
class Parameter:
    """A parameter of a program.

    An "array" is an input of the kernel: numbers, or a mapping of names to such. A "mask" is an
    array of truth values, or names in their place, which are a constant of the trace. An "option"
    is a constant of the trace.
    """

    name: str
    shape: Shape | None = None
    """Of an array, without its batch; None: its last axis, whatever the length."""
    kind: Kind = "array"
    default: Any = EMPTY
    value_type: type = object
    """What an option must be an instance of."""
    rule: ValueRule | None = None
    keyword_only: bool = False
    positional_only: bool = False
    annotation: Any = EMPTY

    @property
    def required(self) -> bool:
        """Has it no default?"""
        return self.default is EMPTY

    @property
    def for_inspect(self) -> inspect.Parameter:
        """The parameter as the standard library describes it."""
        kinds = inspect.Parameter
        kind = kinds.KEYWORD_ONLY if self.keyword_only else kinds.POSITIONAL_OR_KEYWORD
        kind = kinds.POSITIONAL_ONLY if self.positional_only else kind
        return kinds(self.name, kind, default=self.default, annotation=self.annotation)

    def check(self, program: str, value: Any) -> None:
        """Refuse numbers that break the rule."""
        if self.rule is not None and value is not None and not _allowed(self.rule, value):
            needs = self.rule.needs
            raise ValueError(f"{program}: {self.name} {_told(value)}, needs {needs}")


ROBOT = Parameter("robot")
"""The first parameter of every program."""


def parameters_of(
    function: Callable[..., Any],
    shapes: Mapping[str, Shape] | None = None,
    static: Sequence[str] = (),
    masks: Sequence[str] = (),
) -> list[Parameter]:
    """The parameters of a function f(robot, *arrays, **options), the robot among them; `shapes`,
    `static` and `masks` as in `program`."""
    name, known = function.__name__, {**STANDARD, **(shapes or {})}
    found = list(inspect.signature(function).parameters.values())
    if not found:
        raise TypeError(f"program {name} needs the robot as its first parameter")
    for p in found:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise TypeError(f"program {name}: {p} is no parameter that can be traced")

    def described(p: inspect.Parameter) -> Parameter:
        option = p.name in static or p.annotation in OPTIONS
        return Parameter(
            p.name,
            known.get(p.name),
            "option" if option else "mask" if p.name in masks else "array",
            p.default,
            object if p.name in static else OPTIONS.get(p.annotation, object),
            keyword_only=p.kind is p.KEYWORD_ONLY,
            positional_only=p.kind is p.POSITIONAL_ONLY,
            annotation=p.annotation,
        )

    return [described(p) for p in found]


def _allowed(rule: ValueRule, value: Any) -> bool:
    try:
        return rule.allows(np.asarray(value, float))
    except (TypeError, ValueError):
        return False


def _told(value: Any) -> str:
    if np.ndim(value) > 1:
        return f"of shape {np.shape(value)} is none"
    return f"is {value!r}" if isinstance(value, str) else f"is {np.asarray(value).tolist()}"
