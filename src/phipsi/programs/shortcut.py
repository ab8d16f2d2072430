"""Shortcuts: repeated calls of a program with NumPy arrays that go straight to machine code."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from phipsi.compile import Kernel
from phipsi.model import Robot
from phipsi.programs.arguments import are_names, frozen, is_dynamic
from phipsi.programs.parameters import Parameter
from phipsi.typing import Array

KEPT = 256
"""Shortcuts that a program keeps; the oldest is dropped first."""


class Shortcut(NamedTuple):
    """A kernel and the function that calls it with positional arrays."""

    robot: Robot
    """Kept alive, because its identity is part of the key."""
    kernel: Kernel[Any]
    codes: int
    """The number of pieces of machine code that the kernel had when `call` was made."""
    call: Callable[..., Any]


class ArgumentPositions(NamedTuple):
    """The positions of a program's positional arguments by kind; the robot is at position 0."""

    names: Sequence[str]
    """The names of all positional arguments."""
    positional_only: int
    """The number of arguments that cannot be given by keyword."""
    options: Sequence[int]
    """Positions of options of the trace."""
    masks: Sequence[int]
    """Positions of masks: truth values, or names."""
    optional: Sequence[int]
    """Positions of arrays that may be None."""
    undeclared: frozenset[str]
    """Names of arrays without a declared shape."""

    @classmethod
    def of(cls, parameters: Sequence[Parameter]) -> ArgumentPositions:
        """The positions for the parameters of a program."""
        own = [p for p in parameters if not p.keyword_only]
        inputs = [p.kind != "option" for p in own]
        return cls(
            [p.name for p in own],
            sum(p.positional_only for p in own),
            [i for i, p in enumerate(own) if p.kind == "option"],
            [i for i, p in enumerate(own) if p.kind == "mask"],
            [i for i, p in enumerate(own) if p.default is None and inputs[i]],
            frozenset(p.name for i, p in enumerate(own) if p.shape is None and inputs[i]),
        )


class Shortcuts:
    """The shortcuts of a program. A call is looked up by its robot, the number of its arguments and
    its options; if there is no shortcut, or the arrays are not plain NumPy arrays, the call goes to
    `general`, which takes arguments of any kind."""

    def __init__(
        self,
        general: Callable[[tuple[Any, ...], dict[str, Any]], Any],
        positions: ArgumentPositions,
    ) -> None:
        self._general = general
        self._positions = positions
        counts = range(len(positions.names) + 1)
        self._options = [tuple(i for i in positions.options if i < n) for n in counts]
        """For each number of arguments, the positions of the options among them."""
        self._known: dict[Hashable, Shortcut] = {}

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the program, through a shortcut if there is one."""
        if kwargs:
            args, kwargs = self._in_order(args, kwargs)
        for i in self._positions.masks:
            if i < len(args):
                args = _as_numbers(args, i)
        constants = self._constants(args)
        try:
            known = self._known.get(_key(args, constants, kwargs))
        except (TypeError, IndexError):  # an array among the keywords, or no robot
            known = None
        if known is None:
            return self._general(args, kwargs)
        if constants:
            return known.call(*[x for i, x in enumerate(args) if i and i not in constants])
        return known.call(*args[1:])

    def learn(self, kernel: Kernel[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Add the shortcut for calls like this one, which the kernel has just answered."""
        if not kernel.codes or not args or any(is_dynamic(x) for x in kwargs.values()):
            return
        robot, constants, count = args[0], self._constants(args), len(args)
        if not self._plain(kernel, [i for i in range(1, count) if i not in constants]):
            return
        key = _key(args, constants, kwargs)
        try:
            known = self._known.get(key)
        except TypeError:  # an empty mapping among the keywords
            return
        if known is not None and known.kernel is kernel and known.codes == kernel.codes:
            return
        fixed = {i: args[i] for i in constants}

        def fallback(*arrays: Any) -> Any:
            remaining = iter(arrays)
            given = (fixed[i] if i in fixed else next(remaining) for i in range(1, count))
            return self._general((robot, *given), kwargs)

        self._known[key] = Shortcut(robot, kernel, *kernel.entry(fallback))
        if len(self._known) > KEPT:
            self._known.pop(next(iter(self._known)), None)

    def _plain(self, kernel: Kernel[Any], arrays: list[int]) -> bool:
        """Whether the arguments at these positions are the kernel's parameters in order, none of
        them a scalar of undeclared shape: an array for it would be taken for a batch of scalars."""
        names = [self._positions.names[i] for i in arrays]
        scalars = {name for name, spec in kernel.parameters if not getattr(spec, "shape", True)}
        ordered = [name for name, _ in kernel.parameters] == names
        return ordered and not self._positions.undeclared & scalars

    def _in_order(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call with keyword arguments made positional, as long as they are next in order."""
        named, positions = dict(kwargs), self._positions
        for name in positions.names[max(len(args), positions.positional_only) :]:
            if len(args) < positions.positional_only or named.get(name) is None:
                break
            args = (*args, named.pop(name))
        return args, named

    def _constants(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """The positions of arguments that are constants of the trace: options, masks given by
        names, and optional arrays that are None."""
        n, positions = len(args), self._positions
        found = self._options[min(n, len(positions.names))]
        for i in positions.masks:
            if i < n and are_names(args[i]):
                found += (i,)
        for i in positions.optional:
            if i < n and args[i] is None:
                found += (i,)
        return found


def _key(args: tuple[Any, ...], constants: tuple[int, ...], kwargs: dict[str, Any]) -> Hashable:
    """The key of a shortcut: robot, number of arguments, constants, options by keyword."""
    key: tuple[Any, ...] = (id(args[0]), len(args))
    if constants:
        key += (constants, *[(args[i].__class__, frozen(args[i])) for i in constants])
    if kwargs:
        key += tuple([(name, x.__class__, frozen(x)) for name, x in kwargs.items()])
    return key


def _as_numbers(args: tuple[Any, ...], i: int) -> tuple[Any, ...]:
    """The arguments, a boolean array at position i converted to the type of the first array."""
    mask, like = args[i], args[1]
    if not (_is_array(mask) and mask.dtype == bool and _is_array(like)):
        return args
    return (*args[:i], mask.astype(like.dtype), *args[i + 1 :])


def _is_array(x: object) -> TypeGuard[Array]:
    return isinstance(x, np.ndarray)
