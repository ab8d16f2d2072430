"""Configurations and velocities of a robot, hinge by hinge: random states, motion along the groups
of the hinges, brackets and momenta. `Robot` has these as methods, where they are described."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phipsi.model import group
from phipsi.model.description import RobotDescription
from phipsi.model.parts import Hinge

OfHinge = Callable[[Hinge], Callable[[Any, Any, Any], Sequence[Any]]]


def random_state(
    robot: RobotDescription, rng: np.random.Generator | int | None, batch: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """(q, v), (*batch, nq) and (*batch, nv)."""
    rng = np.random.default_rng(rng)
    q = np.empty((*batch, robot.nq))
    for h in robot.hinges:
        part = q[..., h.q]
        angles = h.kind.angles or (False,) * h.kind.nq
        free = np.where(angles, np.pi, 1.0)
        low = np.where(h.upper > -free, -free, h.upper - 2 * free)
        low = np.where(np.isfinite(h.lower), h.lower, low)
        high = np.where(np.isfinite(h.upper), h.upper, np.where(low < free, free, low + 2 * free))
        part[...] = rng.uniform(low, high, part.shape)
        if h.kind.quaternion is not None:
            x = rng.standard_normal((*batch, 4))
            part[..., h.kind.quaternion :] = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return q, rng.standard_normal((*batch, robot.nv))


def integrate(robot: RobotDescription, q: Any, dv: Any) -> Any:
    """q exp(dv), (…, nq)."""
    return _each(robot, lambda h: h.kind.advance, "q", ("q", q, "q"), ("dv", dv, "v"))


def difference(robot: RobotDescription, q0: Any, q1: Any) -> Any:
    """log(q0⁻¹q1), (…, nv)."""
    return _each(robot, lambda h: h.kind.difference, "v", ("q0", q0, "q"), ("q1", q1, "q"))


def flow(robot: RobotDescription, q: Any, v: Any) -> Any:
    """q̇, (…, nq)."""
    return _each(robot, lambda h: h.kind.flow, "q", ("q", q, "q"), ("v", v, "v"))


def bracket(robot: RobotDescription, u: Any, x: Any) -> Any:
    """[u, x], (…, nv)."""
    return _each(robot, lambda h: group.bracket, "v", ("u", u, "v"), ("x", x, "v"))


def coadjoint(robot: RobotDescription, u: Any, p: Any) -> Any:
    """ad*_u p, (…, nv)."""
    return _each(robot, lambda h: group.coadjoint, "v", ("u", u, "v"), ("p", p, "v"))


def inboard(robot: RobotDescription, q: Any, p: Any) -> Any:
    """Joint momenta in the frames that the hinges turn in, (…, nv)."""
    return _each(robot, lambda h: group.inboard, "v", ("q", q, "q"), ("p", p, "v"))


def outboard(robot: RobotDescription, q: Any, p: Any) -> Any:
    """The inverse of `inboard`."""
    return _each(robot, lambda h: group.outboard, "v", ("q", q, "q"), ("p", p, "v"))


def _each(
    robot: RobotDescription, function: OfHinge, space: str, *arguments: tuple[str, Any, str]
) -> Any:
    """function(hinge)(hinge, part, part) of every hinge's parts of two arrays over "q" or "v", as
    an array over `space`."""
    sizes = {"q": robot.nq, "v": robot.nv}
    first, second = (_coordinates(robot, name, x, sizes[of]) for name, x, of in arguments)
    shape = np.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    out = np.empty((*shape, sizes[space]), np.result_type(first, second))
    for h in robot.hinges:
        x, y = first[..., getattr(h, arguments[0][2])], second[..., getattr(h, arguments[1][2])]
        where = getattr(h, space)
        result = function(h)(h, _split(x), _split(y))
        for k, value in zip(range(where.start, where.stop), result, strict=True):
            out[..., k] = value
    return out.view(type(second) if type(first) is np.ndarray else type(first))


def _coordinates(robot: RobotDescription, name: str, values: Any, size: int) -> Any:
    array = np.asanyarray(values)
    if array.dtype != object:
        array = array.astype(np.promote_types(array.dtype, np.float32), copy=False)
    if array.ndim == 0 or array.shape[-1] != size:
        raise ValueError(
            f"{name} has shape {array.shape}, but robot {robot.name!r} needs (..., {size})"
        )
    return array


def _split(x: Any) -> Any:
    """The last axis of x as an object array of scalars (each a batch array, a number or traced)."""
    if x.dtype == object and x.ndim == 1:
        return x.view(np.ndarray)
    out = np.empty(x.shape[-1], object)
    for k in range(x.shape[-1]):
        out[k] = x[..., k]
    return out
