"""Gains: what they must be, said once per controller and checked wherever numbers are known.

A controller is a `Program` that names its gains. They are checked when it is called with numbers,
when it is traced with constants, and by `check_gains` before a simulation.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeVar

import numpy as np

from phipsi.compile import Node
from phipsi.model import Robot
from phipsi.programs import Parameter, Program, parameters_of
from phipsi.typing import Shape

P = ParamSpec("P")
R = TypeVar("R")

EACH = {None: "", "nv": "one per freedom", "any": "several", 6: "one for each of 6 rows"}
SYMMETRIC = 1e-9
"""How far a symmetric matrix may be from one, of its largest entry."""


@dataclass(frozen=True)
class Gain:
    """A number, or `size` of them ("nv", "any"): positive, or at least zero, up to a limit."""

    size: int | str | None = None
    zero: bool = False
    """May it be zero?"""
    most: float = np.inf

    @property
    def needs(self) -> str:
        """What it must be, in words."""
        kind = "a number ≥ 0" if self.zero else "a positive number"
        kind += f" ≤ {self.most:g}" if self.most < np.inf else ""
        each = EACH.get(self.size, f"one for each of {self.size}")
        return f"{kind} or {each}" if each else kind

    def allows(self, x: np.ndarray) -> bool:
        """Are these numbers such?"""
        low = x >= 0.0 if self.zero else x > 0.0
        return bool((low & (x <= self.most) & np.isfinite(x)).all())

    def fits(self, robot: Robot, shape: tuple[int, ...]) -> bool:
        """Is it a number or as many as are needed?"""
        size = robot.nv if self.size == "nv" else self.size
        return shape in ((), (1,)) or shape == (size,) or (size == "any" and len(shape) == 1)


@dataclass(frozen=True)
class Definite(Gain):
    """A symmetric positive definite matrix."""

    @property
    def needs(self) -> str:
        """What it must be, in words."""
        return "a symmetric positive definite matrix"

    def allows(self, x: np.ndarray) -> bool:
        """Is it one?"""
        if x.ndim < 2 or x.shape[-1] != x.shape[-2] or not np.isfinite(x).all():
            return False
        skew = np.abs(x - x.swapaxes(-1, -2)).max(initial=0.0)
        even = skew <= SYMMETRIC * np.abs(x).max(initial=0.0)
        return bool(even and (np.linalg.eigvalsh(x) > 0.0).all())

    def fits(self, robot: Robot, shape: tuple[int, ...]) -> bool:
        """The program itself knows the shape."""
        return True


POSITIVE, NONNEGATIVE = Gain("nv"), Gain("nv", zero=True)
"""Of joints: a number, or one per freedom."""


def _check_traced(
    program: str, gains: Mapping[str, Gain], robot: Robot, bound: inspect.BoundArguments
) -> None:
    """Refuse wrong sizes, and of constants wrong values."""
    parameters = bound.signature.parameters
    for name, rule in gains.items():
        value = bound.arguments.get(name)
        optional = parameters[name].default is None
        if isinstance(value, (str, bool)) or (value is None and not optional):
            raise TypeError(f"{program}: {name} is {value!r}, needs {rule.needs}")
        if value is not None and not rule.fits(robot, np.shape(value)):
            raise ValueError(f"{program}: {name} has {len(value)} numbers, needs {rule.needs}")
    for name, rule in gains.items():
        if name in bound.arguments:
            Parameter(name, rule=rule).check(program, _constant(bound.arguments[name]))


def _constant(value: Any) -> Any:
    """The numbers of a traced array all of whose elements are constants, else None."""
    if isinstance(value, Node):
        return float(value) if value.op == "const" else None
    elements = list(np.ravel(value))
    if not all(isinstance(x, Node) and x.op == "const" for x in elements):
        return None
    return np.reshape([float(x) for x in elements], np.shape(value)).tolist()


def controller(
    *,
    gains: Mapping[str, Gain],
    shapes: Mapping[str, Shape] | None = None,
    static: Sequence[str] = (),
    masks: Sequence[str] = (),
    **how: Any,
) -> Callable[[Callable[P, R]], Program[P, R]]:
    """Make a function a `Program` with these gains; further keywords as of `program`."""
    scalars: dict[str, Shape] = {name: () for name, rule in gains.items() if rule.size is None}

    def make(function: Callable[P, R]) -> Program[P, R]:
        signature = inspect.signature(function)
        own = parameters_of(function, {**scalars, **(shapes or {})}, static, masks)

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            robot: Any = args[0]
            _check_traced(function.__name__, gains, robot, signature.bind(*args, **kwargs))
            return function(*args, **kwargs)

        return Program(checked, [replace(p, rule=gains.get(p.name)) for p in own], **how)

    return make


def check_gains(program: Program[..., Any], parameters: Mapping[str, Any]) -> None:
    """Refuse wrong gains among parameters by name, before they are used in a simulation.

    >>> from phipsi.control import pd_gravity
    >>> check_gains(pd_gravity, {"stiffness": -3.0})
    Traceback (most recent call last):
        ...
    ValueError: pd_gravity: stiffness is -3.0, needs a positive number or one per freedom
    """
    program.check_rules(parameters)
