"""The NumPy functions that can be traced."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from phipsi.compile import fold
from phipsi.compile.node import Node, current
from phipsi.typing import Real

Formula = Callable[[Node], Node] | Callable[[Node, Node], Node]
"""A function of NumPy on nodes."""


def _on_scalars(function: Callable[..., Node], ufunc: np.ufunc) -> Callable[..., Real]:
    """The function on nodes and numbers; the ufunc itself where every argument is a number."""

    def call(*xs: Any) -> Real:
        tracers = [x.tracer for x in xs if isinstance(x, Node)]
        if not tracers:
            return ufunc(*(np.float64(x) for x in xs))
        tracer = tracers[0] if len(set(map(id, tracers))) == 1 else current() or tracers[0]
        return function(*(tracer.lift(x) for x in xs))

    return call


def _op(name: str) -> Callable[..., Node]:
    """The function that makes the node of an operation of `OPS`."""

    def node(x: Node, *more: Real) -> Node:
        return x.tracer.apply(name, x, *more)

    return node


_FORMULAS: tuple[tuple[np.ufunc, Formula], ...] = (
    (np.add, fold.add),
    (np.subtract, fold.sub),
    (np.multiply, fold.mul),
    (np.divide, fold.div),
    (np.negative, fold.neg),
    (np.positive, lambda x: x),
    (np.conjugate, lambda x: x),
    (np.power, fold.power),
    (np.float_power, fold.power),
    (np.square, lambda x: x * x),
    (np.reciprocal, lambda x: 1.0 / x),
    (np.absolute, _op("abs")),
    (np.fabs, _op("abs")),
    (np.sign, lambda x: _op("where")(x > 0.0, 1.0, _op("where")(x < 0.0, -1.0, x))),
    (np.sqrt, _op("sqrt")),
    (np.sin, _op("sin")),
    (np.cos, _op("cos")),
    (np.tan, lambda x: x.sin() / x.cos()),
    (np.arcsin, lambda x: x.arctan2(((1.0 - x) * (1.0 + x)).sqrt())),
    (np.arccos, lambda x: ((1.0 - x) * (1.0 + x)).sqrt().arctan2(x)),
    (np.arctan, lambda x: x.arctan2(1.0)),
    (np.arctan2, _op("atan2")),
    (np.hypot, lambda x, y: (x * x + y * y).sqrt()),
    (np.exp, _op("exp")),
    (np.log, _op("log")),
    (np.tanh, _op("tanh")),
    (np.sinh, lambda x: 0.5 * x.tanh() * (x.exp() + (-x).exp())),
    (np.cosh, lambda x: 0.5 * (x.exp() + (-x).exp())),
    (np.floor, _op("floor")),
    (np.ceil, lambda x: -_op("floor")(-x)),
    (np.minimum, _op("min")),
    (np.maximum, _op("max")),
    (np.less, _op("less")),
    (np.greater, lambda a, b: _op("less")(b, a)),
    (np.less_equal, _op("less_equal")),
    (np.greater_equal, lambda a, b: _op("less_equal")(b, a)),
    (np.equal, _op("equal")),
    (np.not_equal, lambda a, b: 1.0 - _op("equal")(a, b)),
    (np.logical_and, fold.both),
    (np.bitwise_and, fold.both),
    (np.logical_or, fold.either),
    (np.bitwise_or, fold.either),
    (np.logical_not, fold.negation),
    (np.invert, fold.negation),
    (np.isnan, lambda a: 1.0 - _op("equal")(a, a)),
    (np.deg2rad, lambda x: x * (math.pi / 180)),
    (np.radians, lambda x: x * (math.pi / 180)),
    (np.rad2deg, lambda x: x * (180 / math.pi)),
    (np.degrees, lambda x: x * (180 / math.pi)),
)
"""Every ufunc that can be traced, on nodes."""

UFUNCS: dict[np.ufunc, Callable[..., Real]] = {
    ufunc: _on_scalars(function, ufunc) for ufunc, function in _FORMULAS
}
"""The NumPy functions that can be traced, on scalars: nodes, numbers or both."""
