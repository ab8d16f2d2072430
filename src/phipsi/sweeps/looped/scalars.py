"""The scalars in a structured value: what a record holds, taken apart and put together again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from phipsi.compile import Node
from phipsi.model import Hinge


def map_scalars(value: Any, f: Callable[[Any], Any]) -> Any:
    """The same structure with f of every scalar; whole numbers, names and kinds stay."""
    if isinstance(value, (Node, float, np.floating)):
        return f(value)
    if isinstance(value, np.ndarray):
        out = np.empty(value.shape, object)
        flat, source = out.reshape(-1), value.reshape(-1)
        for i in range(flat.size):
            flat[i] = f(source[i])
        return out
    if isinstance(value, (tuple, list)):
        return type(value)(map_scalars(x, f) for x in value)
    if isinstance(value, Mapping):
        return {key: map_scalars(x, f) for key, x in value.items()}
    if isinstance(value, partial):
        return partial(value.func, *(map_scalars(x, f) for x in value.args))
    names = _parts(type(value))
    if names is None:
        return value
    copy = object.__new__(type(value))
    for name in names:
        object.__setattr__(copy, name, map_scalars(getattr(value, name), f))
    return copy


def _parts(kind: type) -> tuple[str, ...] | None:
    """The names of the parts of a structured type, None for what has no scalars in it."""
    if kind is not Hinge and not kind.__module__.startswith("phipsi.spatial"):
        return None
    if is_dataclass(kind):
        return tuple(f.name for f in fields(kind))
    return tuple(name for base in kind.__mro__ for name in getattr(base, "__slots__", ()))


def scalars_of(value: Any) -> list[Any]:
    """The scalars in a value, in order."""
    found: list[Any] = []
    map_scalars(value, found.append)
    return found


def with_scalars(like: Any, scalars: Any) -> Any:
    """The structure of `like` with other scalars, in order."""
    left = iter(scalars)
    return map_scalars(like, lambda _: next(left))
