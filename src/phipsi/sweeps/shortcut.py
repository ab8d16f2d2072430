"""Shortcuts: calls of a program with plain arrays that go straight to the native entry."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from phipsi.compile import Kernel
from phipsi.model import Robot
from phipsi.sweeps.arguments import frozen, is_dynamic

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

    def __init__(self, general: Callable[[Any, Any], Any], options: Sequence[int] = ()) -> None:
        self._general = general
        self._options = frozenset(options)
        """Which positional arguments are options of the trace."""
        self._known: dict[Hashable, Shortcut] = {}

    def call(self, args: Any, kwargs: Any) -> Any:
        """Call the program."""
        try:
            known = self._known.get(self._likeness(args, kwargs))
        except (TypeError, IndexError):  # an array among the keywords, or no robot
            known = None
        if known is None:
            return self._general(args, kwargs)
        return known.call(*(self._arrays(args) if self._options else args[1:]))

    def learn(self, kernel: Kernel, args: Any, kwargs: Any) -> None:
        """Let further calls like this one, which the kernel has answered, be short."""
        if not kernel.codes or not args or any(is_dynamic(x) for x in kwargs.values()):
            return
        key = self._likeness(args, kwargs)
        if key in self._known and self._known[key].codes == kernel.codes:
            return
        robot, options = args[0], {i: x for i, x in enumerate(args) if i in self._options}
        count = len(args)

        def fallback(*arrays: Any) -> Any:
            left = iter(arrays)
            given = (options[i] if i in options else next(left) for i in range(1, count))
            return self._general((robot, *given), kwargs)

        self._known[key] = Shortcut(robot, *kernel.entry(fallback))
        if len(self._known) > KEPT:
            self._known.pop(next(iter(self._known)), None)

    def _arrays(self, args: Any) -> list[Any]:
        return [x for i, x in enumerate(args) if i and i not in self._options]

    def _likeness(self, args: Any, kwargs: Any) -> Hashable:
        """Robot, number of arguments, options."""
        options = [frozen(args[i]) for i in self._options if i < len(args)]
        named = ((name, frozen(x)) for name, x in kwargs.items())
        return (id(args[0]), len(args), *options, *named)
