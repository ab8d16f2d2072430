"""Shortcuts: calls of a program with plain arrays that go straight to the native entry."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from phipsi.compile import Kernel
from phipsi.model import Robot
from phipsi.sweeps.arguments import is_dynamic

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

    def __init__(self, general: Callable[[Any, Any], Any]) -> None:
        self._general = general
        self._known: dict[Hashable, Shortcut] = {}

    def call(self, args: Any, kwargs: Any) -> Any:
        """Call the program."""
        try:
            known = self._known.get(_likeness(args, kwargs))
        except (TypeError, IndexError):  # an array among the keywords, or no robot
            known = None
        if known is None:
            return self._general(args, kwargs)
        return known.call(*[x for x in args[1:] if x.__class__ is not str])

    def learn(self, kernel: Kernel, args: Any, kwargs: Any) -> None:
        """Let further calls like this one, which the kernel has answered, be short."""
        if not args or any(is_dynamic(x) for x in kwargs.values()):
            return
        key = _likeness(args, kwargs)
        if key in self._known and self._known[key].codes == kernel.codes:
            return
        robot, rest = args[0], [x if x.__class__ is str else None for x in args[1:]]

        def fallback(*arrays: Any) -> Any:
            left = iter(arrays)
            given = (next(left) if x is None else x for x in rest)
            return self._general((robot, *given), kwargs)

        self._known[key] = Shortcut(robot, *kernel.entry(fallback))
        if len(self._known) > KEPT:
            self._known.pop(next(iter(self._known)), None)


def _likeness(args: Any, kwargs: Any) -> Hashable:
    """Robot, number of arguments, options."""
    options = [x for x in args if x.__class__ is str]
    return (id(args[0]), len(args), *options, *kwargs.items())
