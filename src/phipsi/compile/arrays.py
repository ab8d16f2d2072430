"""Traced arrays: NumPy object arrays of nodes on which plain NumPy code runs unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from phipsi.compile.device import is_host_array, is_sequence
from phipsi.compile.functions import UFUNCS
from phipsi.compile.node import Function, Node, TraceError, current
from phipsi.typing import Array, ArrayLike, NestedSequence, Real

_LOOPS = {np.add, np.subtract, np.multiply, np.matmul, np.negative, np.positive}
"""Ufuncs whose object loops in NumPy call the Python operators of the elements: quick, and right on
nodes."""

INTERPOLATED = 256
"""Points that np.interp takes inside a program, where it computes every interval."""

_NUMPY_WHERE: Callable[..., Array] = np.where


class Traced(np.ndarray):
    """An object array of nodes (and numbers), made while a program is traced."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [_plain(x) for x in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(_plain(x) for x in kwargs["out"])
            if any(x.dtype != object for x in kwargs["out"]):
                raise TraceError(
                    f"np.{ufunc.__name__} of traced values cannot be written into an array of "
                    "numbers; make that array by phipsi.zeros instead of numpy.zeros"
                )
        if ufunc in _LOOPS:
            result = getattr(ufunc, method)(*plain, **kwargs)
        elif ufunc in UFUNCS:
            kwargs.pop("dtype", None)
            elementwise = np.frompyfunc(UFUNCS[ufunc], ufunc.nin, 1)
            result = getattr(elementwise, method)(*plain, **kwargs)
        else:
            raise TraceError(f"np.{ufunc.__name__} cannot be traced; see phipsi.linalg")
        return _traced(result)

    def __array_function__(
        self, func: Function, types: object, args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        return call_function(func, tuple(args), dict(kwargs))

    def __getitem__(self, index: Any) -> Any:
        try:
            return super().__getitem__(index)
        except IndexError:
            _refuse_traced(index)
            raise

    def __setitem__(self, index: Any, value: Any) -> None:
        """Assign; a traced mask of the shape of the array chooses the elements that change."""
        if isinstance(index, Traced) and index.shape == self.shape:
            index, value = ..., where(index, value, self)
        given, place = np.shape(value), np.shape(self[index])
        ends = zip(given[::-1], place[::-1], strict=False)
        if len(given) > len(place) or any(n not in (1, m) for n, m in ends):
            raise ValueError(
                f"an array of shape {given} cannot be assigned to elements of shape {place}"
            )
        super().__setitem__(index, _boxed(value))

    def __repr__(self) -> str:
        return f"<traced array, shape {self.shape}>"


def _refuse_traced(index: Any) -> None:
    """Raise a TraceError if an index has traced values."""
    if any(map(is_traced, index if is_sequence(index) else (index,))):
        raise TraceError(
            "an array cannot be indexed by a traced value; choose by phipsi.where, or let "
            "`sequences` of simulate, rollout and motion choose the row for each time"
        ) from None


def lift(x: Real | ArrayLike | NestedSequence[Real]) -> Traced:
    """x as an array of the trace in progress, every element a node."""
    tracer = current()
    if tracer is None:
        raise TraceError("traced arrays exist only inside a program")
    source = np.asarray(_boxed(x) if isinstance(x, Node) else _plain(x))
    out = np.empty(source.shape, object)
    flat, values = out.reshape(-1), source.reshape(-1)
    for i in range(flat.size):
        flat[i] = tracer.lift(values[i])
    return out.view(Traced)


def is_traced(x: object) -> bool:
    """Whether x is a node or an array of nodes."""
    return isinstance(x, (Node, Traced)) or (
        is_host_array(x) and x.dtype == object and any(isinstance(e, Node) for e in x.flat)
    )


def zeros(shape: int | tuple[int, ...]) -> Array:
    """An array of zeros that traced values can be assigned into.

    Inside a program `numpy.zeros` makes an array of numbers, which cannot hold traced values; this
    one takes them, by index, slice or mask and by `+=`. Outside it is `numpy.zeros`.

    Parameters
    ----------
    shape
        Its shape, or the length of its one axis.

    Returns
    -------
    (…)
        The array; inside a program a traced one.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> @pp.program
    ... def elbow_alone(robot, q):
    ...     tau = pp.zeros(robot.nv)
    ...     tau[1:] = np.sin(q[1:])
    ...     return tau
    >>> elbow_alone(pp.robots.double_pendulum(), [1.0, 0.0])
    array([0., 0.])
    """
    numbers = np.zeros(shape)
    return numbers if current() is None else lift(numbers)


def where(condition: Real | ArrayLike, a: Real | ArrayLike, b: Real | ArrayLike) -> Array:
    """The elements of a where the condition holds, else those of b; both are computed.

    Inside a program this takes the place of `if`, which cannot branch on traced values; outside it
    is `numpy.where`.

    Parameters
    ----------
    condition : (…)
        Truth values, or numbers: 0 is false.
    a : (…)
        Values where the condition holds.
    b : (…)
        Values where it does not.

    Returns
    -------
    (…)
        An array of the broadcast shape of the arguments; inside a program a traced one, or a
        traced number where no argument is an array.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.where([True, False], [1.0, 2.0], 0.0)
    array([1., 0.])
    """
    if not any(map(is_traced, (condition, a, b))):
        return _NUMPY_WHERE(condition, a, b)
    result = np.frompyfunc(_where, 3, 1)(*map(_plain, (condition, a, b)))
    return _traced(result)


def _where(condition: Real, a: Real, b: Real) -> Real:
    """`where` of scalars."""
    tracers = [x.tracer for x in (condition, a, b) if isinstance(x, Node)]
    if not tracers:
        return a if condition else b
    tracer = tracers[0] if len(set(map(id, tracers))) == 1 else current() or tracers[0]
    return tracer.apply("where", condition, a, b)


def _norm(
    x: Array,
    ord: float | str | None = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
) -> Any:
    if ord not in (None, 2, "fro"):
        raise TraceError(f"np.linalg.norm with ord={ord!r} cannot be traced")
    return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))


def _clip(x: Any, low: Any = None, high: Any = None, **_: object) -> Any:
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _interp(x: Any, points: Any, values: Any, **more: object) -> Any:
    """np.interp as a sum over all intervals, each of which adds its rise as far as x has come."""
    count = len(points)
    if any(given is not None for given in more.values()):
        raise TraceError("np.interp takes no left, right or period inside a program")
    if count > INTERPOLATED:
        raise TraceError(
            f"np.interp: {count} points are too many inside a program, which takes {INTERPOLATED} "
            "at most; pass values over time by `sequences` of simulate, rollout or motion"
        )
    points, values, out = np.asanyarray(points), np.asanyarray(values), values[0]
    for k in range(count - 1):
        part = (x - points[k]) / (points[k + 1] - points[k])
        out = out + np.clip(part, 0.0, 1.0) * (values[k + 1] - values[k])
    return out


def _reduction(ufunc: np.ufunc) -> Callable[..., Any]:
    """The reduction of an array by a ufunc, over all elements or one axis."""

    def call(x: Real | ArrayLike, axis: int | None = None, **more: object) -> Any:
        if more or not (axis is None or isinstance(axis, int)):
            raise TraceError(f"np.{ufunc.__name__} over an array takes one axis inside a program")
        array = np.asanyarray(_boxed(x))
        return ufunc.reduce(array.reshape(-1) if axis is None else array, axis=axis or 0)

    return call


_OVERRIDES: dict[Function, Callable[..., Any]] = {
    np.max: _reduction(np.maximum),
    np.min: _reduction(np.minimum),
    np.any: _reduction(np.logical_or),
    np.all: _reduction(np.logical_and),
    np.where: where,
    np.linalg.norm: _norm,
    np.clip: _clip,
    np.interp: _interp,
}
"""Functions of NumPy that are computed otherwise on traced arrays."""


def call_ufunc(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The result of a NumPy ufunc on nodes and perhaps arrays."""
    if method == "__call__" and not any(isinstance(x, np.ndarray) and x.ndim for x in inputs):
        function = UFUNCS.get(ufunc)
        if function is None:
            raise TraceError(f"np.{ufunc.__name__} cannot be traced")
        return function(*(x.item() if isinstance(x, np.ndarray) else x for x in inputs))
    return getattr(ufunc, method)(*map(_boxed, inputs), **kwargs)


def call_function(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a NumPy function on traced arrays: by the function of `_OVERRIDES`, or by NumPy
    itself on the arrays as object arrays."""
    override = _OVERRIDES.get(func)
    if override is not None:
        return override(*args, **kwargs)
    if (func.__module__ or "").startswith("numpy.linalg"):
        raise TraceError(f"np.linalg.{func.__name__} cannot be traced; see phipsi.linalg")
    result = func(*_plain_members(args), **{k: _plain_members(v) for k, v in kwargs.items()})
    return _traced(result)


def _plain_members(x: Any) -> Any:
    """`_plain` of everything in nested lists and tuples."""
    if is_sequence(x):
        return type(x)(map(_plain_members, x))
    return _plain(x)


def _plain(x: object) -> Any:
    """A traced array as a plain object array, which does not call `__array_ufunc__` again; a node
    as `_boxed` makes it."""
    if isinstance(x, Traced):
        return x.view(np.ndarray)
    return _boxed(x)


def _boxed(x: object) -> Any:
    """A node as an object array of no axes, so that NumPy does not call the node's methods."""
    if not isinstance(x, Node):
        return x
    box = np.empty((), object)
    box[()] = x
    return box


def _traced(result: Any) -> Any:
    """Object arrays, also within lists and tuples, as traced arrays; those of no axes as nodes."""
    if is_host_array(result) and result.dtype == object:
        return result.view(Traced) if result.ndim else result[()]
    if is_sequence(result):
        return type(result)(map(_traced, result))
    return result
