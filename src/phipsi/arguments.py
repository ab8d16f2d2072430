"""Arguments that are lists, names or mappings: what is not is refused in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast


def listed(where: str, value: object) -> list[Any]:
    """The items of any iterable; `where` begins the sentence of an error."""
    if not isinstance(value, Iterable) or getattr(cast(Any, value), "ndim", 1) == 0:
        raise TypeError(f"{where} is a {type(cast(Any, value)).__name__}, needs a sequence")
    return [*cast("Iterable[Any]", value)]


def named(where: str, value: object) -> list[str]:
    """The names in any iterable; a text is one name."""
    found = [value] if isinstance(value, str) else listed(where, value)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"{where} has a {type(name).__name__}, needs names")
    return found


def mapped(where: str, value: object) -> dict[str, Any]:
    """A mapping of names to values; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{where} is a {type(value).__name__}, needs a mapping of names to values")
    found = dict(cast("Mapping[Any, Any]", value))
    for key in found:
        if not isinstance(key, str):
            raise TypeError(f"{where} has the key {key!r}, needs names")
    return found
