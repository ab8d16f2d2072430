"""Shortcuts: calls of a program with plain arrays that go straight to the native entry."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from phipsi.compile import Kernel
from phipsi.model import Robot
from phipsi.sweeps.arguments import are_names, frozen, is_dynamic

KEPT = 256
"""Shortcuts a program keeps, oldest dropped first."""


class Shortcut(NamedTuple):
    """The robot (kept, for its identity is the key), how much machine code there was, the entry."""

    robot: Robot
    codes: int
    call: Callable[..., Any]


class Shortcuts:
    """The shortcuts of a program, by what calls of one kernel have in common; all that a native
    entry does not take goes to `general`, the program's own way."""

    def __init__(
        self,
        general: Callable[[Any, Any], Any],
        order: Sequence[str] = (),
        options: Sequence[int] = (),
        truths: Sequence[int] = (),
    ) -> None:
        self._general = general
        self._order = order
        """The names of the positional arguments, the robot first."""
        self._options = frozenset(options)
        """Which positional arguments are options of the trace."""
        self._truths = truths
        """Which of them are truth values."""
        self._known: dict[Hashable, Shortcut] = {}

    def call(self, args: Any, kwargs: Any) -> Any:
        """Call the program."""
        if kwargs:
            args, kwargs = self._in_order(args, kwargs)
        for i in self._truths:
            if i < len(args):
                args = _as_numbers(args, i)
        constants = self._constants(args) if self._options or self._truths else {}
        try:
            known = self._known.get(_likeness(args, constants, kwargs))
        except (TypeError, IndexError):  # an array among the keywords, or no robot
            known = None
        if known is None:
            return self._general(args, kwargs)
        if not constants:
            return known.call(*args[1:])
        return known.call(*(x for i, x in enumerate(args) if i and i not in constants))

    def learn(self, kernel: Kernel, args: Any, kwargs: Any) -> None:
        """Let further calls like this one, which the kernel has answered, be short."""
        if not kernel.codes or not args or any(is_dynamic(x) for x in kwargs.values()):
            return
        robot, constants, count = args[0], self._constants(args), len(args)
        key = _likeness(args, constants, kwargs)
        if key in self._known and self._known[key].codes == kernel.codes:
            return

        def fallback(*arrays: Any) -> Any:
            left = iter(arrays)
            given = (constants[i] if i in constants else next(left) for i in range(1, count))
            return self._general((robot, *given), kwargs)

        self._known[key] = Shortcut(robot, *kernel.entry(fallback))
        if len(self._known) > KEPT:
            self._known.pop(next(iter(self._known)), None)

    def _in_order(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Keywords that are next in the order of positional arguments as such."""
        named = dict(kwargs)
        while len(args) < len(self._order) and self._order[len(args)] in named:
            args = (*args, named.pop(self._order[len(args)]))
        return args, named

    def _constants(self, args: Any) -> dict[int, Any]:
        """The positional arguments that are options, or names in the place of truth values."""
        found = {i: args[i] for i in self._options if i < len(args)}
        names = (i for i in self._truths if i < len(args) and are_names(args[i]))
        return found | {i: args[i] for i in names}


def _likeness(args: Any, constants: Mapping[int, Any], kwargs: Any) -> Hashable:
    """Robot, number of arguments, options."""
    if not constants and not kwargs:
        return id(args[0]), len(args)
    options = ((i, frozen(x)) for i, x in constants.items())
    named = ((name, frozen(x)) for name, x in kwargs.items())
    return (id(args[0]), len(args), *options, *named)


def _as_numbers(args: Any, i: int) -> Any:
    """The arguments with truth values as numbers of the type that the first array has."""
    x, like = args[i], args[1]
    if not (isinstance(x, np.ndarray) and x.dtype == bool and isinstance(like, np.ndarray)):
        return args
    return (*args[:i], x.astype(like.dtype), *args[i + 1 :])
