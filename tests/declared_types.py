"""Types checked while the tests run: every call of a public function, program or method that
returns has been given what its signature declares, and returns what it declares.

Types are checked by beartype, shapes (`phipsi.typing`) here. Calls that raise are not judged, for
many tests pass what is wrong on purpose; nor are those within a trace, where numbers are nodes.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Union, get_args, get_origin
from weakref import WeakKeyDictionary

import numpy as np
from beartype import BeartypeConf
from beartype.door import is_bearable

from phipsi.compile import as_host_array, current, on_device
from phipsi.model import Robot
from phipsi.programs.compiled import CompiledFunction
from phipsi.programs.parameters import ROBOT_SIZES, type_hints
from phipsi.typing import Shape, axes

PACKAGES = ("phipsi", *(f"phipsi.{p}" for p in ("control", "interop", "scenarios", "simulation")))
EXTRAS = ("jax", "torch")
WARNING = ("Builder.build", "rebase")
"""Functions that warn at the line that calls them: a wrapper would be that line."""
TOWER = BeartypeConf(is_pep484_tower=True)
"""An int is a float, as for type checkers."""


class Declared:
    """The types of a function's signature, to be compared with its calls."""

    def __init__(self, name: str, function: Callable[..., Any], *, batched: bool) -> None:
        self.name, self.batched = name, batched
        self.signature = inspect.signature(function)
        self.hints = type_hints(getattr(function, "function", function))
        self.seen: set[Any] = set()

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Fail if the call does not agree with the declared types and shapes. Calls with arguments
        and results of types and shapes that were seen before are not compared again."""
        key = tuple(map(_kind, (result, *args, *kwargs, *kwargs.values())))
        if key not in self.seen:
            self._compare(args, kwargs, result)
            self.seen.add(key)

    def _compare(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        given = self.signature.bind(*args, **kwargs).arguments
        sizes = {
            n: getattr(x, n) for x in given.values() if isinstance(x, Robot) for n in ROBOT_SIZES
        }
        batches: list[tuple[int, ...]] = []
        for name, value in given.items():
            parameter, hint = self.signature.parameters[name], self.hints.get(name)
            if value is parameter.default or hint is None:
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                values = {f"{name}[{i}]": x for i, x in enumerate(value)}
            elif parameter.kind is parameter.VAR_KEYWORD:
                values = value
            else:
                values = {name: value}
            for each, x in values.items():
                batches += self._checked(f"argument {each}", x, hint, sizes)
        found = self._checked("result", result, self.hints.get("return"), sizes)
        if self.batched and found:
            expected = np.broadcast_shapes(*batches)
            assert set(found) == {expected}, f"{self.name}: batches {found}, not {expected}"

    def _checked(
        self, what: str, value: Any, hint: Any, sizes: dict[str, int]
    ) -> list[tuple[int, ...]]:
        """The batches of the arrays in a value that is of the declared type."""
        value = as_host_array(value) if on_device(value) else value
        value = value.item() if isinstance(value, np.generic) and axes(hint) is None else value
        scalar = axes(hint) == () and isinstance(value, np.generic)
        fits = scalar or is_bearable(value, hint, conf=TOWER)
        assert hint is None or fits, f"{self.name}: {what} is {value!r}, declared {hint}"
        return [
            self._batch(where, x, declared, sizes)
            for where, x, declared in _arrays(what, value, hint)
        ]

    def _batch(self, what: str, value: Any, declared: Shape, sizes: dict[str, int]) -> Any:
        """The shape of an array without the declared axes."""
        shape = np.shape(value)
        start = len(shape) - len(declared)
        lengths = [
            sizes.setdefault(axis, n) if isinstance(axis, str) else axis
            for axis, n in zip(declared, shape[max(start, 0) :], strict=False)
        ]
        assert start >= 0 and list(shape[start:]) == lengths, (
            f"{self.name}: {what} has shape {shape}, declared (…, {declared}) where {sizes}"
        )
        return shape[:start]


def _arrays(what: str, value: Any, hint: Any) -> Iterator[tuple[str, Any, Shape]]:
    """The arrays in a value with the axes that their types declare."""
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    for member in members:
        shape, inner = axes(member), getattr(member, "__origin__", object)
        if get_origin(member) is Annotated and shape is not None:
            if is_bearable(value, inner, conf=TOWER) and not _are_names(value):
                yield what, value, shape
                return
        elif get_origin(member) is not None and isinstance(value, Mapping):
            for key, x in value.items():
                yield from _arrays(f"{what}[{key!r}]", x, get_args(member)[-1])
        elif hasattr(member, "_fields") and type(value) is member:
            for field, declared in _fields(member).items():
                yield from _arrays(f"{what}.{field}", getattr(value, field), declared)


@functools.cache
def _fields(owner: type) -> dict[str, Any]:
    """The types of the fields of a named tuple."""
    names, hints = vars(sys.modules[owner.__module__]), inspect.get_annotations(owner)
    return {n: eval(h, names) if isinstance(h, str) else h for n, h in hints.items()}


def _kind(x: Any) -> Any:
    """What is the same of values that are checked in the same way."""
    if isinstance(x, str):
        return x
    if isinstance(x, Robot):
        return Robot, *(getattr(x, size) for size in ROBOT_SIZES)
    if isinstance(x, (list, tuple)):
        return (type(x), *map(_kind, x))
    if isinstance(x, Mapping):
        return (type(x), *((key, _kind(value)) for key, value in x.items()))
    return type(x), getattr(x, "shape", None)


def _are_names(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, (list, tuple)) and all(isinstance(x, str) for x in value)
    )


def checked(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, its calls compared with its signature."""
    declared = Declared(name, function, batched=False)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if current() is None:
            declared.check(args, kwargs, result)
        return result

    return call


def install() -> None:
    """Check every call from now on."""
    _programs()
    for name, function in _public_functions():
        if name in WARNING:
            continue
        new = checked(name, function)
        for module in [m for n, m in sys.modules.items() if n.partition(".")[0] == "phipsi"]:
            for attribute, value in list(vars(module).items()):
                if value is function:
                    setattr(module, attribute, new)


def _programs() -> None:
    run = CompiledFunction.__call__
    known: WeakKeyDictionary[CompiledFunction[..., Any], Declared] = WeakKeyDictionary()

    @functools.wraps(run)
    def call(self: CompiledFunction[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = run(self, *args, **kwargs)
        if current() is None and self.function.__module__.startswith("phipsi."):
            declared = known.get(self)
            if declared is None:
                declared = known[self] = Declared(self.name, self, batched=self.verify is None)
            declared.check(args, kwargs, result)
        return result

    CompiledFunction.__call__ = call


def _public_functions() -> Iterator[tuple[str, types.FunctionType]]:
    seen: set[Any] = set()
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            value = None if name in EXTRAS else getattr(package, name)
            if isinstance(value, types.FunctionType) and value not in seen:
                seen.add(value)
                yield name, value
            elif isinstance(value, type) and value not in seen:
                seen.add(value)
                for attribute, method in list(vars(value).items()):
                    own, qualified = not attribute.startswith("_"), f"{name}.{attribute}"
                    if isinstance(method, types.FunctionType) and own and qualified not in WARNING:
                        setattr(value, attribute, checked(qualified, method))
