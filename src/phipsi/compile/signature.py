"""The arrays that a kernel takes and returns, without the batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

R = TypeVar("R")


class ArraySpec(NamedTuple):
    """One array argument or result: its name and its shape without the batch."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Structure(Generic[R]):
    """How results are returned: `pack` makes the result of one array for each spec in `leaves`."""

    leaves: tuple[ArraySpec, ...]
    pack: Callable[[list[Any]], R]


@dataclass(frozen=True)
class Signature:
    """The name of a kernel, its input arrays in order, and its results."""

    name: str
    inputs: tuple[ArraySpec, ...]
    results: Structure[Any]
