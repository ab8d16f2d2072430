"""Gains of controllers: the rule that each must satisfy, and where the rules are checked.

`@controller` makes a `Program` whose gains have rules (`Gain`, `Definite`). The rules are checked
when the controller is called with numbers, when it is traced with constants, and by `check_gains`
before a simulation.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np

from phipsi.arguments import a_class
from phipsi.compile import Node
from phipsi.model import Robot
from phipsi.programs import Parameter, Program, parameters_of
from phipsi.typing import Array

P = ParamSpec("P")
R = TypeVar("R")

Size = int | Literal["nv", "any"] | None
"""Length of a gain that is a vector; "nv": one per freedom, None: the gain is one number only."""

SIZES_IN_WORDS: dict[Size, str] = {
    None: "",
    "nv": "one per freedom",
    "any": "several",
    6: "one for each of 6 rows",
}
SYMMETRIC = 1e-9
"""Largest difference between a matrix that counts as symmetric and its transpose, relative to its
largest entry."""


@dataclass(frozen=True)
class Gain:
    """A gain that is one number, or a vector of `size` numbers, each within the same bounds."""

    size: Size = None
    zero: bool = False
    """Whether zero is allowed; if not, the numbers must be positive."""
    most: float = np.inf
    """The largest number allowed."""

    @property
    def needs(self) -> str:
        """What the gain must be, in words."""
        kind = "a number ≥ 0" if self.zero else "a positive number"
        kind += f" ≤ {self.most:g}" if self.most < np.inf else ""
        each = SIZES_IN_WORDS.get(self.size, f"one for each of {self.size}")
        return f"{kind} or {each}" if each else kind

    def allows(self, x: Array) -> bool:
        """Whether all numbers are finite and within the bounds."""
        low = x >= 0.0 if self.zero else x > 0.0
        return bool((low & (x <= self.most) & np.isfinite(x)).all())

    def fits(self, robot: Robot, shape: tuple[int, ...]) -> bool:
        """Whether the shape is that of one number, or of `size` numbers."""
        size = robot.nv if self.size == "nv" else self.size
        return shape in ((), (1,)) or shape == (size,) or (size == "any" and len(shape) == 1)


@dataclass(frozen=True)
class Definite(Gain):
    """A gain that is a symmetric positive definite matrix."""

    @property
    def needs(self) -> str:
        """What the gain must be, in words."""
        return "a symmetric positive definite matrix"

    def allows(self, x: Array) -> bool:
        """Whether the matrix, or each matrix of a batch, is symmetric positive definite."""
        if x.ndim < 2 or x.shape[-1] != x.shape[-2] or not np.isfinite(x).all():
            return False
        skew = np.abs(x - x.swapaxes(-1, -2)).max(initial=0.0)
        even = skew <= SYMMETRIC * np.abs(x).max(initial=0.0)
        return bool(even and (np.linalg.eigvalsh(x) > 0.0).all())

    def fits(self, robot: Robot, shape: tuple[int, ...]) -> bool:
        """True: the controller declares the shape of a matrix, and the program checks it."""
        return True


POSITIVE, NONNEGATIVE = Gain("nv"), Gain("nv", zero=True)
"""Gains of joints: one number, or one per freedom."""


def _check_traced(program: str, gains: Mapping[str, Gain], bound: inspect.BoundArguments) -> None:
    """Refuse gains of wrong size in a trace, and wrong values of gains that are constants."""
    robot: Robot = bound.args[0]
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


def _constant(value: Node | Array | float | None) -> float | list[Any] | None:
    """The numbers of a traced array all of whose elements are constants; else None."""
    if isinstance(value, Node):
        return float(value) if value.op == "const" else None
    array = np.asanyarray(value)
    if not all(isinstance(x, Node) and x.op == "const" for x in array.flat):
        return None
    return np.reshape([float(x) for x in array.flat], array.shape).tolist()


def controller(
    *, gains: Mapping[str, Gain], static: Sequence[str] = ()
) -> Callable[[Callable[P, R]], Program[P, R]]:
    """Decorator like `program` that also gives parameters the rules in `gains`, by name."""

    def make(function: Callable[P, R]) -> Program[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            _check_traced(function.__name__, gains, signature.bind(*args, **kwargs))
            return function(*args, **kwargs)

        parameters = parameters_of(function, static=static)
        return Program(checked, [replace(p, rule=gains.get(p.name)) for p in parameters])

    return make


def check_gains(program: Program[..., Any], parameters: Mapping[str, Any]) -> None:
    """Refuse wrong gains among parameters by name, before they are used in a simulation.

    Parameters
    ----------
    program
        A controller.
    parameters
        Values of its parameters by name. Those without a rule are not looked at, nor are rules of
        parameters that are missing.

    Raises
    ------
    ValueError
        If a gain breaks its rule.

    Examples
    --------
    >>> from phipsi.control import check_gains, pd_gravity
    >>> check_gains(pd_gravity, {"stiffness": -3.0})
    Traceback (most recent call last):
        ...
    ValueError: pd_gravity: stiffness is -3.0, needs a positive number or one per freedom
    """
    if not isinstance(program, Program):
        raise TypeError(f"check_gains needs a controller first, got {type(program).__name__}")
    if not isinstance(parameters, Mapping):
        raise TypeError(f"check_gains: parameters is {a_class(parameters)}, needs a mapping")
    program.check_rules(parameters)
