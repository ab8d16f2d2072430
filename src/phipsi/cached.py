"""Properties that are computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """A property that is computed at the first access and kept in the instance's `__dict__`.

    `functools.cached_property` of Python 3.11 holds a lock of the class while it computes: threads
    that compute properties of two objects can wait for each other, and a child forked meanwhile
    waits for ever. Here threads that come at the same time may each compute the value, and all of
    them get the first that is stored.

    Parameters
    ----------
    compute
        The function of the instance that computes the value.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Self | T:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self._compute(instance))
