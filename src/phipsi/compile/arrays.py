"""Traced arrays: NumPy object arrays of nodes on which plain NumPy code runs unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phipsi.compile.functions import UFUNCS
from phipsi.compile.node import Node, TraceError, current

_LOOPS = {np.add, np.subtract, np.multiply, np.matmul, np.negative, np.positive}
"""Object loops of NumPy that call the operators of the elements: right as they are, and quick."""


class Traced(np.ndarray):
    """An object array of nodes (and numbers), made while a program is traced."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [_plain(x) for x in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(_plain(x) for x in kwargs["out"])
        if ufunc in _LOOPS:
            result = getattr(ufunc, method)(*plain, **kwargs)
        elif ufunc in UFUNCS:
            kwargs.pop("dtype", None)
            elementwise = np.frompyfunc(UFUNCS[ufunc], ufunc.nin, 1)
            result = getattr(elementwise, method)(*plain, **kwargs)
        else:
            raise TraceError(f"np.{ufunc.__name__} cannot be traced; see phipsi.linalg")
        return _traced(result)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_function(func, args, kwargs)

    def __repr__(self) -> str:
        return f"<traced array, shape {self.shape}>"


def lift(x: Any) -> Traced:
    """x as a traced array of the trace in progress, every element a node."""
    tracer = current()
    if tracer is None:
        raise TraceError("traced arrays exist only inside a program")
    source = np.asarray(_boxed(x) if isinstance(x, Node) else _plain(x))
    out = np.empty(source.shape, object)
    flat, values = out.reshape(-1), source.reshape(-1)
    for i in range(flat.size):
        flat[i] = tracer.lift(values[i])
    return out.view(Traced)


def is_traced(x: Any) -> bool:
    """Does x hold nodes?"""
    return isinstance(x, (Node, Traced)) or (
        isinstance(x, np.ndarray) and x.dtype == object and any(isinstance(e, Node) for e in x.flat)
    )


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b, element by element; both are computed.

    Inside programs this is how to choose (an `if` cannot see traced values); outside it is
    `numpy.where`.

    >>> float(where(2.0 > 1.0, 5.0, 6.0))
    5.0
    """
    if not any(map(is_traced, (condition, a, b))):
        return np.where(condition, a, b)
    result = np.frompyfunc(_where, 3, 1)(*map(_plain, map(_boxed, (condition, a, b))))
    return _traced(result)


def _where(condition: Any, a: Any, b: Any) -> Any:
    tracers = [x.tracer for x in (condition, a, b) if isinstance(x, Node)]
    if not tracers:
        return a if condition else b
    tracer = tracers[0] if len(set(map(id, tracers))) == 1 else current() or tracers[0]
    return tracer.apply("where", condition, a, b)


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord not in (None, 2, "fro"):
        raise TraceError(f"np.linalg.norm with ord={ord!r} cannot be traced")
    return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))


def _clip(x: Any, low: Any = None, high: Any = None, **_: Any) -> Any:
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _reduced(ufunc: np.ufunc) -> Callable[..., Any]:
    def call(x: Any, axis: int | None = None, **more: Any) -> Any:
        if more or not (axis is None or isinstance(axis, int)):
            raise TraceError(f"np.{ufunc.__name__} over an array takes one axis inside a program")
        x = np.asanyarray(_boxed(x))
        return ufunc.reduce(x.reshape(-1) if axis is None else x, axis=axis or 0)

    return call


_OVERRIDES: dict[Any, Callable[..., Any]] = {
    np.max: _reduced(np.maximum),
    np.min: _reduced(np.minimum),
    np.any: _reduced(np.logical_or),
    np.all: _reduced(np.logical_and),
    np.where: where,
    np.linalg.norm: _norm,
    np.clip: _clip,
}


def call_ufunc(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """A ufunc of NumPy on nodes, some of them perhaps in arrays."""
    if method == "__call__" and not any(isinstance(x, np.ndarray) and x.ndim for x in inputs):
        function = UFUNCS.get(ufunc)
        if function is None:
            raise TraceError(f"np.{ufunc.__name__} cannot be traced")
        return function(*(x.item() if isinstance(x, np.ndarray) else x for x in inputs))
    return getattr(ufunc, method)(*map(_boxed, inputs), **kwargs)


def call_function(func: Any, args: Any, kwargs: Any) -> Any:
    """A NumPy function on traced arrays: ours, or NumPy's own over object arrays."""
    override = _OVERRIDES.get(func)
    if override is not None:
        return override(*args, **kwargs)
    if (func.__module__ or "").startswith("numpy.linalg"):
        raise TraceError(f"np.linalg.{func.__name__} cannot be traced; see phipsi.linalg")
    result = func(*_walk(args), **{k: _walk(v) for k, v in kwargs.items()})
    return _traced(result)


def _walk(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(_walk(e) for e in x)
    return _plain(x)


def _plain(x: Any) -> Any:
    if isinstance(x, Traced):
        return x.view(np.ndarray)
    return _boxed(x)


def _boxed(x: Any) -> Any:
    if not isinstance(x, Node):
        return x
    box = np.empty((), object)
    box[()] = x
    return box


def _traced(result: Any) -> Any:
    if isinstance(result, np.ndarray) and result.dtype == object:
        return result.view(Traced) if result.ndim else result[()]
    if isinstance(result, (list, tuple)):
        return type(result)(_traced(x) for x in result)
    return result
