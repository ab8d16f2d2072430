"""The scalars in the structured values of a record: taken out, and put back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from phipsi.compile import Node
from phipsi.model import Hinge

T = TypeVar("T")


def map_scalars(value: Any, f: Callable[[Any], Any]) -> Any:
    """The same structure with f applied to every scalar; integers, names and hinge kinds stay."""
    kind: type[Any] = value.__class__
    if issubclass(kind, (Node, float, np.floating)):
        return f(value)
    if issubclass(kind, np.ndarray):
        out = np.empty(value.shape, object)
        flat, source = out.reshape(-1), value.reshape(-1)
        for i in range(flat.size):
            flat[i] = f(source[i])
        return out
    if issubclass(kind, (tuple, list)):
        return value.__class__(map_scalars(x, f) for x in value)
    if issubclass(kind, Mapping):
        return {key: map_scalars(x, f) for key, x in value.items()}
    if issubclass(kind, partial):
        return partial(value.func, *(map_scalars(x, f) for x in value.args))
    names = _parts(kind)
    if names is None:
        return value
    copy = object.__new__(kind)
    for name in names:
        object.__setattr__(copy, name, map_scalars(getattr(value, name), f))
    return copy


def _parts(kind: type[Any]) -> tuple[str, ...] | None:
    """The names of the parts of a structured type; None for a type without scalars."""
    if kind is not Hinge and not kind.__module__.startswith("phipsi.spatial"):
        return None
    if is_dataclass(kind):
        return tuple(f.name for f in fields(kind))
    return tuple(name for base in kind.__mro__ for name in getattr(base, "__slots__", ()))


def scalars_of(value: object) -> list[Any]:
    """The scalars in a value (numbers or nodes), in order."""
    found: list[Any] = []
    map_scalars(value, found.append)
    return found


def with_scalars(like: T, scalars: Iterable[Any]) -> T:
    """The structure of `like` with other scalars, in order."""
    left = iter(scalars)
    return map_scalars(like, lambda _: next(left))
