"""Shortcuts: calls of a program with plain arrays that go straight to the native entry."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from phipsi.compile import Kernel
from phipsi.model import Robot
from phipsi.programs.arguments import are_names, frozen, is_dynamic
from phipsi.programs.parameters import Parameter

KEPT = 256
"""Shortcuts a program keeps, oldest dropped first."""


class Shortcut(NamedTuple):
    """The robot (kept, for its identity is the key), the kernel, how much machine code there was,
    the entry."""

    robot: Robot
    kernel: Kernel
    codes: int
    call: Callable[..., Any]


class ArgumentPositions(NamedTuple):
    """Which positional arguments, the robot being the first, are what."""

    names: Sequence[str]
    positional_only: int
    """So many of them cannot be given by keyword."""
    options: Sequence[int]
    """Options of the trace."""
    masks: Sequence[int]
    """Truth values, or names."""
    optional: Sequence[int]
    """Arrays that may be None."""
    unknown: frozenset[str]
    """Names of arrays without a declared shape."""

    @classmethod
    def of(cls, parameters: Sequence[Parameter]) -> ArgumentPositions:
        """Of the parameters of a program."""
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
    """The shortcuts of a program, by what calls of one kernel have in common; all that a native
    entry does not take goes to `general`, the program's own way."""

    def __init__(self, general: Callable[[Any, Any], Any], positions: ArgumentPositions) -> None:
        self._general = general
        self._positions = positions
        counts = range(len(positions.names) + 1)
        self._options = [tuple(i for i in positions.options if i < n) for n in counts]
        """Where the options are among so many arguments."""
        self._known: dict[Hashable, Shortcut] = {}

    def call(self, args: Any, kwargs: Any) -> Any:
        """Call the program."""
        if kwargs:
            args, kwargs = self._in_order(args, kwargs)
        for i in self._positions.masks:
            if i < len(args):
                args = _as_numbers(args, i)
        constants = self._constants(args)
        try:
            known = self._known.get(_likeness(args, constants, kwargs))
        except (TypeError, IndexError):  # an array among the keywords, or no robot
            known = None
        if known is None:
            return self._general(args, kwargs)
        if constants:
            return known.call(*[x for i, x in enumerate(args) if i and i not in constants])
        return known.call(*args[1:])

    def learn(self, kernel: Kernel, args: Any, kwargs: Any) -> None:
        """Let further calls like this one, which the kernel has answered, be short."""
        if not kernel.codes or not args or any(is_dynamic(x) for x in kwargs.values()):
            return
        robot, constants, count = args[0], self._constants(args), len(args)
        if not self._plain(kernel, [i for i in range(1, count) if i not in constants]):
            return
        key = _likeness(args, constants, kwargs)
        try:
            known = self._known.get(key)
        except TypeError:  # an empty mapping among the keywords
            return
        if known is not None and known.kernel is kernel and known.codes == kernel.codes:
            return
        fixed = {i: args[i] for i in constants}

        def fallback(*arrays: Any) -> Any:
            left = iter(arrays)
            given = (fixed[i] if i in fixed else next(left) for i in range(1, count))
            return self._general((robot, *given), kwargs)

        self._known[key] = Shortcut(robot, kernel, *kernel.entry(fallback))
        if len(self._known) > KEPT:
            self._known.pop(next(iter(self._known)), None)

    def _plain(self, kernel: Kernel, arrays: list[int]) -> bool:
        """Are the arguments of the kernel these, in order, and batches told from vectors?"""
        names = [self._positions.names[i] for i in arrays]
        single = (n for n, leaf in kernel.parameters if not getattr(leaf, "shape", True))
        return [n for n, _ in kernel.parameters] == names and not self._positions.unknown & {
            *single
        }

    def _in_order(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Keywords that are next in the order of positional arguments as such."""
        named, positions = dict(kwargs), self._positions
        for name in positions.names[max(len(args), positions.positional_only) :]:
            if len(args) < positions.positional_only or named.get(name) is None:
                break
            args = (*args, named.pop(name))
        return args, named

    def _constants(self, args: Any) -> tuple[int, ...]:
        """The positional arguments that are constants of the trace: options, names in the place of
        truth values, and arrays that are not there."""
        n, positions = len(args), self._positions
        found = self._options[min(n, len(positions.names))]
        for i in positions.masks:
            if i < n and are_names(args[i]):
                found += (i,)
        for i in positions.optional:
            if i < n and args[i] is None:
                found += (i,)
        return found


def _likeness(args: Any, constants: tuple[int, ...], kwargs: Any) -> Hashable:
    """Robot, number of arguments, constants, options by keyword."""
    key: tuple[Any, ...] = (id(args[0]), len(args))
    if constants:
        key += (constants, *[(type(args[i]), frozen(args[i])) for i in constants])
    if kwargs:
        key += tuple([(name, type(x), frozen(x)) for name, x in kwargs.items()])
    return key


def _as_numbers(args: Any, i: int) -> Any:
    """The arguments with truth values as numbers of the type that the first array has."""
    x, like = args[i], args[1]
    if not (isinstance(x, np.ndarray) and x.dtype == bool and isinstance(like, np.ndarray)):
        return args
    return (*args[:i], x.astype(like.dtype), *args[i + 1 :])
