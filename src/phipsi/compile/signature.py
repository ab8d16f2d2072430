"""The arrays that a kernel takes and returns, without the batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar, cast

R = TypeVar("R")
Pack = Callable[[Sequence[Any]], Any]
"""Builds a result from its arrays, given in order."""


class ArraySpec(NamedTuple):
    """One array argument or result: its name and its shape without the batch."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Structure(Generic[R]):
    """How results are returned: `pack` makes the result of one array for each spec in `leaves`."""

    leaves: tuple[ArraySpec, ...]
    pack: Callable[[list[Any]], R]

    def __reduce__(self) -> tuple[Callable[..., Structure[Any]], tuple[object, ...]]:
        return _structure, (self.leaves, self.pack([*range(len(self.leaves))]))


def _structure(leaves: tuple[ArraySpec, ...], result: object) -> Structure[Any]:
    """The structure of results such as this one, which has numbers in the place of its arrays."""
    return Structure(leaves, flatten(result, "")[1])


@dataclass(frozen=True)
class Signature:
    """The name of a kernel, its input arrays in order, and its results."""

    name: str
    inputs: tuple[ArraySpec, ...]
    results: Structure[Any]


def first(parts: Sequence[Any]) -> Any:
    """The `Pack` of a result that is one array."""
    return parts[0]


def flatten(result: Any, name: str) -> tuple[list[tuple[str, Any]], Pack]:
    """The named arrays in a result, and the function that packs such arrays again. A result is an
    array, or a tuple, named tuple or dict of results."""
    if result is None:
        raise TypeError(f"program {name} returned nothing; return an array")
    if isinstance(result, Mapping):
        named = cast("Mapping[str, Any]", result)
        keys, parts = list(named), list(named.values())
        names = [str(key) for key in keys]

        def build(xs: Sequence[Any]) -> Any:
            return dict(zip(keys, xs, strict=True))

    elif isinstance(result, tuple):
        given = cast("tuple[Any, ...]", result)
        kind: Callable[..., Any] = type(given)
        parts, fields = list(given), getattr(given, "_fields", None)
        names = list(fields or [f"{name}[{i}]" for i in range(len(parts))])

        def build(xs: Sequence[Any]) -> Any:
            return kind(*xs) if fields else tuple(xs)

    else:
        return [(name, result)], first
    flat = [flatten(part, part_name) for part, part_name in zip(parts, names, strict=True)]
    if all(inner is first for _, inner in flat):
        return [array for (array,), _ in flat], build

    def pack(xs: Sequence[Any]) -> Any:
        remaining = iter(xs)
        return build([inner([next(remaining) for _ in arrays]) for arrays, inner in flat])

    return [array for arrays, _ in flat for array in arrays], pack
