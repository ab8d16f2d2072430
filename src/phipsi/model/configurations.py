"""Configurations and velocities of a robot, computed hinge by hinge.

Random states, integration and differences on the Lie groups of the hinges, brackets and momenta.
The methods of `Robot` of the same names call these functions and describe them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from phipsi.arguments import as_list
from phipsi.model import group
from phipsi.model.description import RobotDescription
from phipsi.model.parts import Hinge
from phipsi.model.untrusted import quoted
from phipsi.spatial.rotation import Scalars
from phipsi.typing import (
    MAX_AXES,
    Array,
    ArrayLike,
    Configuration,
    ConfigurationLike,
    JointVector,
    JointVectorLike,
    is_masked,
)

HingeFunction = Callable[[Hinge, Scalars, Scalars], Scalars]
"""A function of a hinge and of its parts of two arrays."""
Space = Literal["q", "v"]
"""What the last axis of an array runs over: coordinates or freedoms."""


def random_state(
    robot: RobotDescription, rng: np.random.Generator | int | None, batch: tuple[int, ...]
) -> tuple[Configuration, JointVector]:
    """(q, v), (*batch, nq) and (*batch, nv)."""
    try:
        rng = np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise TypeError(f"rng is {quoted(rng)}, needs a seed ≥ 0 or a Generator of NumPy") from None
    try:
        q = np.empty((*as_list("batch", batch), robot.nq))
    except (TypeError, ValueError):
        raise TypeError(f"batch is {quoted(batch)}, needs a shape such as (100,)") from None
    lower, upper = robot.joint_data("lower"), robot.joint_data("upper")
    angles = [angle for h in robot.hinges for angle in h.kind.angles or (False,) * h.kind.nq]
    free = np.where(np.array(angles, bool), np.pi, 1.0)
    low = np.where(upper > -free, -free, upper - 2 * free)
    low = np.where(np.isfinite(lower), lower, low)
    high = np.where(np.isfinite(upper), upper, np.where(low < free, free, low + 2 * free))
    for h in robot.hinges:
        part = q[..., h.q]
        part[...] = rng.uniform(low[h.q], high[h.q], part.shape)
        if h.kind.quaternion is not None:
            x = rng.standard_normal((*batch, 4))
            part[..., h.kind.quaternion :] = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return q, rng.standard_normal((*batch, robot.nv))


def integrate(robot: RobotDescription, q: ConfigurationLike, dv: JointVectorLike) -> Configuration:
    """q exp(dv), (…, nq)."""
    return _each(robot, lambda h: h.kind.advance, "q", ("q", q, "q"), ("dv", dv, "v"))


def difference(
    robot: RobotDescription, q0: ConfigurationLike, q1: ConfigurationLike
) -> JointVector:
    """log(q0⁻¹q1), (…, nv)."""
    return _each(robot, lambda h: h.kind.difference, "v", ("q0", q0, "q"), ("q1", q1, "q"))


def difference_rate(robot: RobotDescription, u: JointVectorLike, v: JointVectorLike) -> JointVector:
    """dlog_u v, (…, nv)."""
    return _each(robot, lambda h: group.difference_rate, "v", ("u", u, "v"), ("v", v, "v"))


def difference_force(
    robot: RobotDescription, u: JointVectorLike, p: JointVectorLike
) -> JointVector:
    """(dlog_u)* p, (…, nv)."""
    return _each(robot, lambda h: group.difference_force, "v", ("u", u, "v"), ("p", p, "v"))


def flow(robot: RobotDescription, q: ConfigurationLike, v: JointVectorLike) -> Configuration:
    """q̇, (…, nq)."""
    return _each(robot, lambda h: h.kind.flow, "q", ("q", q, "q"), ("v", v, "v"))


def bracket(robot: RobotDescription, u: JointVectorLike, x: JointVectorLike) -> JointVector:
    """[u, x], (…, nv)."""
    return _each(robot, lambda h: group.bracket, "v", ("u", u, "v"), ("x", x, "v"))


def coadjoint(robot: RobotDescription, u: JointVectorLike, p: JointVectorLike) -> JointVector:
    """ad*_u p, (…, nv)."""
    return _each(robot, lambda h: group.coadjoint, "v", ("u", u, "v"), ("p", p, "v"))


def inboard(robot: RobotDescription, q: ConfigurationLike, p: JointVectorLike) -> JointVector:
    """Joint momenta in the frames of the hinges on the parents, (…, nv)."""
    return _each(robot, lambda h: group.inboard, "v", ("q", q, "q"), ("p", p, "v"))


def outboard(robot: RobotDescription, q: ConfigurationLike, p: JointVectorLike) -> JointVector:
    """The inverse of `inboard`."""
    return _each(robot, lambda h: group.outboard, "v", ("q", q, "q"), ("p", p, "v"))


def _each(
    robot: RobotDescription,
    function: Callable[[Hinge], HingeFunction],
    space: Space,
    *arguments: tuple[str, ArrayLike, Space],
) -> Array:
    """The results of function(hinge)(hinge, x, y) for all hinges, as one array over `space`.

    The two arguments are given as (name, array, space); x and y are the parts of the arrays that
    belong to the hinge.
    """
    sizes = {"q": robot.nq, "v": robot.nv}
    first, second = (_coordinates(robot, name, x, sizes[of]) for name, x, of in arguments)
    try:
        shape = np.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    except ValueError:
        (a, x, _), (b, y, _) = arguments
        shapes = f"{np.shape(x)[:-1]} and {np.shape(y)[:-1]}"
        raise ValueError(f"the batches of {a} and {b} do not go together: {shapes}") from None
    out = np.empty((*shape, sizes[space]), np.result_type(first, second))
    for h in robot.hinges:
        x, y = first[..., getattr(h, arguments[0][2])], second[..., getattr(h, arguments[1][2])]
        where = getattr(h, space)
        result = function(h)(h, _split(x), _split(y))
        for k, value in zip(range(where.start, where.stop), result, strict=True):
            out[..., k] = value
    kind: Any = type(second) if type(first) is np.ndarray else type(first)
    return out.view(kind)


def _coordinates(robot: RobotDescription, name: str, values: ArrayLike, size: int) -> Array:
    """The values as an array of floats or traced numbers, whose last axis has this size."""
    try:
        array = np.asanyarray(values)
    except ValueError:
        raise ValueError(f"{name} is a ragged sequence, needs an array of numbers") from None
    if array.ndim > MAX_AXES:
        raise ValueError(f"{name} has {array.ndim} axes, needs at most {MAX_AXES}")
    objects = array.dtype == object
    if objects and all(isinstance(x, (int, float)) for x in array.flat):
        try:
            array, objects = array.astype(float), False
        except OverflowError:
            raise ValueError(f"{name} has a number larger than 1.8e308") from None
    if is_masked(values):
        raise ValueError(f"{name} has masked elements, needs numbers: fill them by .filled(…)")
    if array.dtype.kind not in "fiubO" or (objects and not all(map(_is_real, array.flat))):
        raise TypeError(f"{name} has dtype {array.dtype}, needs real numbers")
    if not objects:
        array = array.astype(np.promote_types(array.dtype, np.float32), copy=False)
    if array.ndim == 0 or array.shape[-1] != size:
        raise ValueError(
            f"{name} has shape {array.shape}, but robot {robot.name!r} needs (..., {size})"
        )
    return array


def _is_real(x: object) -> bool:
    """Whether an element of an object array can be a number, traced ones included."""
    return hasattr(x, "__float__") and not isinstance(x, np.ndarray)


def _split(x: Array) -> Array:
    """The last axis of x as an object array of scalars: numbers, traced numbers or batch arrays."""
    if x.dtype == object and x.ndim == 1:
        return x.view(np.ndarray)
    out = np.empty(x.shape[-1], object)
    for k in range(x.shape[-1]):
        out[k] = x[..., k]
    return out
