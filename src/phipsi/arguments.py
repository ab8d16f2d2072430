"""Arguments that are lists, names, mappings or counts: what is not is refused in a sentence."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, SupportsIndex, cast

MOST = 2**63 - 1
"""The largest count."""


def a_class(value: object) -> str:
    """The class of a value with its article, such as "an int", for the sentence of an error."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' or name == 'ndarray' else 'a'} {name}"


def as_list(where: str, value: object, needs: str = "a sequence") -> list[Any]:
    """The items of any iterable; `where` begins the sentence of an error, `needs` ends it."""
    if not isinstance(value, Iterable) or getattr(cast(Any, value), "ndim", 1) == 0:
        raise TypeError(f"{where} is {a_class(cast(Any, value))}, needs {needs}")
    return [*cast("Iterable[Any]", value)]


def as_names(where: str, value: object) -> list[str]:
    """The names in any iterable; a text is one name."""
    found = [value] if isinstance(value, str) else as_list(where, value)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"{where} has {a_class(name)}, needs names")
    return found


def as_mapping(where: str, value: object) -> dict[str, Any]:
    """A mapping of names to values; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{where} is {a_class(value)}, needs a mapping of names to values")
    found = dict(cast("Mapping[Any, Any]", value))
    for key in found:
        if not isinstance(key, str):
            raise TypeError(f"{where} has the key {key!r}, needs names")
    return found


def as_count(where: str, value: SupportsIndex, least: int = 0) -> int:
    """A whole number from `least` to `MOST`."""
    try:
        whole = least - 1 if type(value) is bool else index(value)
    except TypeError:
        whole = least - 1
    if not least <= whole <= MOST:
        bound = f"least {least}" if whole < least else f"most {MOST}"
        raise ValueError(f"{where} is {reprlib.repr(value)}, needs a whole number of at {bound}")
    return whole
