"""Parameters of programs: one description of each, from which signatures and kernels are made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, Protocol, Union, get_args, get_origin

from phipsi.arguments import a_class, as_mapping, as_names
from phipsi.compile import as_numbers
from phipsi.model.names import meant
from phipsi.model.untrusted import quoted
from phipsi.typing import Array, Shape, axes, metadata

Kind = Literal["array", "mask", "option"]

ROBOT_SIZES = ("nq", "nv", "nb")
"""Lengths of axes that are attributes of the robot."""

STANDARD: dict[str, Shape] = {
    "q": ("nq",),
    "v": ("nv",),
    "a": ("nv",),
    "tau": ("nv",),
    "external": ("nb", 6),
}
"""Shapes, without the batch, of the arguments every algorithm shares."""

OPTIONS = (str, bool, int)
"""Parameters annotated with these, or with literals, are options of the trace, never inputs."""

EMPTY: Any = inspect.Parameter.empty
"""No default, no annotation."""


class ValueRule(Protocol):
    """A condition on the numbers of a parameter, such as "positive"."""

    @property
    def needs(self) -> str:
        """The condition in words, for error messages: "a number > 0"."""
        ...

    def allows(self, x: Array, /) -> bool:
        """Whether the numbers meet the condition."""
        ...


@dataclass(frozen=True)
class Parameter:
    """A parameter of a program.

    An "array" is an input of the kernel: numbers, or a mapping of names to numbers. A "mask" is an
    array of truth values, or names of hinges, which are then a constant of the trace. An "option"
    is a constant of the trace.
    """

    name: str
    shape: Shape | None = None
    """The shape of an array without its batch: numbers, sizes of the robot, and other names for
    axes of any length; None: its last axis, of any length."""
    kind: Kind = "array"
    default: Any = EMPTY
    value_type: type = object
    """The class of an option's values."""
    rule: ValueRule | None = None
    keyword_only: bool = False
    positional_only: bool = False
    annotation: Any = EMPTY
    mapping: bool = True
    """Whether an array may be given as a mapping of names to numbers."""

    @property
    def required(self) -> bool:
        """Whether the parameter has no default."""
        return self.default is EMPTY

    @property
    def free_axes(self) -> bool:
        """Whether the shape has axes of any length."""
        return any(isinstance(d, str) and d not in ROBOT_SIZES for d in self.shape or ())

    @property
    def for_inspect(self) -> inspect.Parameter:
        """The parameter as the standard library describes it."""
        kinds = inspect.Parameter
        kind = kinds.KEYWORD_ONLY if self.keyword_only else kinds.POSITIONAL_OR_KEYWORD
        kind = kinds.POSITIONAL_ONLY if self.positional_only else kind
        return kinds(self.name, kind, default=self.default, annotation=self.annotation)

    def check(self, program: str, value: object) -> None:
        """Raise ValueError if the numbers break the rule."""
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
    if not callable(function) or not hasattr(function, "__name__"):
        raise TypeError(f"program needs a function of a robot, got {a_class(function)}")
    name, hints = function.__name__, type_hints(function)
    found = list(inspect.signature(function).parameters.values())
    if not found:
        raise TypeError(f"program {name} needs the robot as its first parameter")
    for p in found:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise TypeError(f"program {name}: {p} is no parameter that can be traced")
    shapes = as_mapping(f"program {name}: shapes", shapes)
    static = as_names(f"program {name}: static", static)
    masks = as_names(f"program {name}: masks", masks)
    names = [p.name for p in found]
    for option, given in (("shapes", shapes), ("static", static), ("masks", masks)):
        for x in given:
            if x not in names:
                raise TypeError(
                    f"program {name}: {option} names {quoted(x)}, {meant(x, names)}"
                    f"its parameters are {', '.join(names)}"
                )

    def described(p: inspect.Parameter) -> Parameter:
        hint = hints.get(p.name)
        option = object if p.name in static else _option_type(hint)
        mask = p.name in masks or any("mask" in more for _, *more in metadata(hint))
        known = {**STANDARD, **_declared(name, p.name, hint), **shapes}
        return Parameter(
            p.name,
            known.get(p.name),
            "option" if option is not None else "mask" if mask else "array",
            p.default,
            option or object,
            keyword_only=p.kind is p.KEYWORD_ONLY,
            positional_only=p.kind is p.POSITIONAL_ONLY,
            annotation=p.annotation,
            mapping=_takes_mapping(p.name, known.get(p.name), hint),
        )

    return [described(p) for p in found]


def type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of the parameters and of the result ("return"), without those that cannot be
    evaluated, such as names that are imported for type checkers alone."""
    hints: dict[str, Any] = {}
    for name, hint in getattr(function, "__annotations__", {}).items():
        with suppress(Exception):
            names = getattr(function, "__globals__", {})
            hints[name] = eval(hint, names) if isinstance(hint, str) else hint
    return hints


def _option_type(hint: Any) -> type[Any] | None:
    """The class of the values of an option of that type; None if the type is not that of an
    option."""
    if get_origin(hint) is Literal:
        value: object = get_args(hint)[0]
        return type(value)
    return hint if hint in OPTIONS else None


def _declared(program: str, name: str, hint: Any) -> dict[str, Shape]:
    """{parameter: shape} if the type declares a shape. One axis of unknown length is no more than
    an undeclared shape says; an unknown length among several axes is refused."""
    shape = axes(hint) or ()
    unknown = [x for x in shape if isinstance(x, str) and x not in ROBOT_SIZES]
    if unknown and len(shape) > 1:
        raise TypeError(
            f"program {program}: the type of {name} has an axis {unknown[0]!r}, needs a number or "
            f"one of {', '.join(ROBOT_SIZES)}"
        )
    return {} if unknown or axes(hint) is None else {name: shape}


def _takes_mapping(name: str, shape: Shape | None, hint: Any) -> bool:
    """Whether a parameter may be a mapping: forces on bodies, a type that says so, or no shape."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    told = any(get_origin(x) in (Mapping, dict) or x in (Mapping, dict) for x in members)
    return shape is None or told or name == "external"


def _allowed(rule: ValueRule, value: Any) -> bool:
    try:
        return rule.allows(as_numbers("", value).astype(float))
    except (TypeError, ValueError):
        return False


def _told(value: Any) -> str:
    try:
        array = as_numbers("", value)
    except (TypeError, ValueError):
        return f"is {quoted(value)}"
    return f"of shape {array.shape} is none" if array.ndim > 1 else f"is {array.tolist()}"
