"""Gains: what they must be, said once per controller and checked wherever numbers are known.

A controller is a `Program` that names its gains. They are checked when it is called with numbers,
when it is traced with constants, and by `check_gains` before a simulation.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np

from phipsi.compile import Node
from phipsi.model import Robot
from phipsi.sweeps import Program

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


class Gains:
    """The gains of a program by name: what `verify` sees of every call with numbers."""

    def __init__(self, function: Callable[..., Any], gains: Mapping[str, Gain]) -> None:
        self.name = function.__name__
        self.signature = inspect.signature(function)
        self.rules = dict(gains)

    def __call__(self, result: Any, args: Any, kwargs: Any) -> Any:
        """Check a call; its result as it is."""
        self.check(self.signature.bind(*args, **kwargs).arguments)
        return result

    def check(self, values: Mapping[str, Any]) -> None:
        """Refuse the first wrong one among the values by name."""
        for name, rule in self.rules.items():
            value = values.get(name)
            if value is not None and not _allowed(rule, value):
                raise ValueError(f"{self.name}: {name} {_told(value)}, needs {rule.needs}")

    def traced(self, robot: Robot, values: Mapping[str, Any]) -> None:
        """Refuse wrong sizes, and of constants wrong values."""
        for name, rule in self.rules.items():
            value = values.get(name)
            optional = self.signature.parameters[name].default is None
            if isinstance(value, (str, bool)) or (value is None and not optional):
                raise TypeError(f"{self.name}: {name} is {value!r}, needs {rule.needs}")
            if value is not None and not rule.fits(robot, np.shape(value)):
                raise ValueError(
                    f"{self.name}: {name} has {len(value)} numbers, needs {rule.needs}"
                )
        self.check({name: _constant(values[name]) for name in self.rules if name in values})


def _allowed(rule: Gain, value: Any) -> bool:
    try:
        return rule.allows(np.asarray(value, float))
    except (TypeError, ValueError):
        return False


def _told(value: Any) -> str:
    if np.ndim(value) > 1:
        return f"of shape {np.shape(value)} is none"
    return f"is {value!r}" if isinstance(value, str) else f"is {np.asarray(value).tolist()}"


def _constant(value: Any) -> Any:
    """The numbers of a traced array all of whose elements are constants, else None."""
    if isinstance(value, Node):
        return float(value) if value.op == "const" else None
    elements = list(np.ravel(value))
    if not all(isinstance(x, Node) and x.op == "const" for x in elements):
        return None
    return np.reshape([float(x) for x in elements], np.shape(value)).tolist()


def controller(
    *, gains: Mapping[str, Gain], shapes: Mapping[str, Any] | None = None, **how: Any
) -> Callable[[Callable[P, R]], Program[P, R]]:
    """Make a function a `Program` with these gains; further keywords as of `program`."""
    scalars = {name: () for name, rule in gains.items() if rule.size is None}

    def make(function: Callable[P, R]) -> Program[P, R]:
        checks = Gains(function, gains)

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            bound = checks.signature.bind(*args, **kwargs).arguments
            robot: Any = args[0]
            checks.traced(robot, bound)
            return function(*args, **kwargs)

        return Program(checked, {**scalars, **(shapes or {})}, verify=checks, **how)

    return make


def check_gains(program: Program[..., Any], parameters: Mapping[str, Any]) -> None:
    """Refuse wrong gains among parameters by name, before they are used in a simulation.

    >>> from phipsi.control import pd_gravity
    >>> check_gains(pd_gravity, {"stiffness": -3.0})
    Traceback (most recent call last):
        ...
    ValueError: pd_gravity: stiffness is -3.0, needs a positive number or one per freedom
    """
    if isinstance(program.verify, Gains):
        program.verify.check(parameters)
