"""Results of sweeps, put together from the records of the bodies."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from phipsi.model import Hinge
from phipsi.spatial import (
    ArticulatedInertia,
    Compliance,
    Force,
    Motion,
    SpatialInertia,
    Transform,
)
from phipsi.sweeps.forest import Blocks, Forest, Summand
from phipsi.typing import Array, Configuration, Jacobian, JointMatrix, JointVector


def gather(x: Forest, field: str) -> JointVector:
    """The joint-space vector (nv,) of a field that has one number per freedom."""
    out = np.full(x.robot.nv, 0.0, object)
    for k in x.records:
        out[k.hinge.v] = getattr(k, field)
    return out


def coordinates(x: Forest, field: str) -> Configuration:
    """The configuration (nq,) of a field that has a hinge's own coordinates."""
    out = np.full(x.robot.nq, 0.0, object)
    for k in x.records:
        out[k.hinge.q] = list(getattr(k, field))
    return out


def columns(x: Forest, field: str) -> Jacobian:
    """The 6 × nv matrix of a field with a 6 × r `matrix` per hinge; zero where a body has none."""
    out = np.full((6, x.robot.nv), 0.0, object)
    for k in x.records:
        part = getattr(k, field, None)
        if part is not None:
            out[:, k.hinge.v] = _array(part)
    return out


def diagonal(x: Forest, field: str) -> JointMatrix:
    """The block-diagonal joint-space matrix (nv, nv) of a field with an r × r `matrix`."""
    out = np.full((x.robot.nv, x.robot.nv), 0.0, object)
    for k in x.records:
        out[k.hinge.v, k.hinge.v] = _array(getattr(k, field))
    return out


def blocks(x: Forest, field: str) -> list[tuple[Hinge, Hinge, Any]]:
    """The blocks of a block-diagonal matrix: a field of each body, at its own hinge."""
    return [(k.hinge, k.hinge, getattr(k, field)) for k in x.records]


def matrix(x: Forest, parts: Blocks) -> JointMatrix:
    """The joint-space matrix (nv, nv) of the given blocks, zero elsewhere."""
    out = np.full((x.robot.nv, x.robot.nv), 0.0, object)
    for row, column, block in parts:
        out[row.v, column.v] = block
    return out


HIGH, WIDE = 2, 8
"""Rows and columns of a tile of a product. The tile is summed as a whole before it is written, so
that one factor stays in the cache and the other is read once for each `WIDE` columns."""


def product(A: JointMatrix, B: JointMatrix, start: JointMatrix) -> JointMatrix:
    """start + A*B of joint-space matrices (nv, nv); structural zeros take no arithmetic."""
    out = np.array(start, object)
    left, right = (np.vectorize(_is_nonzero, otypes=[bool])(x) for x in (A, B))
    for j in range(0, len(A), WIDE):
        columns = slice(j, j + WIDE)
        for i in range(0, len(A), HIGH):
            rows = range(len(A))[i : i + HIGH]
            for k in np.flatnonzero(left[:, rows].any(axis=1) & right[:, columns].any(axis=1)):
                for row in rows:
                    if left[k, row]:
                        out[row, columns] = out[row, columns] + A[k, row] * B[k, columns]
    return out


def _is_nonzero(x: object) -> bool:
    """Whether an entry is traced, or a number other than zero."""
    return not (isinstance(x, float) and x == 0.0)


def symmetric(x: Forest, upper: Blocks) -> JointMatrix:
    """The symmetric joint-space matrix (nv, nv) with the given blocks on and above its diagonal."""
    out = np.full((x.robot.nv, x.robot.nv), 0.0, object)
    for row, column, block in upper:
        out[row.v, column.v] = block
    return np.where(np.triu(np.ones(out.shape, bool)), out, out.T)


def by_body(x: Forest, parts: Blocks, width: int) -> Annotated[Array, "nv columns"]:
    """The matrix (nv, width · nb) of blocks with `width` columns for each body."""
    place = {k.hinge.name: slice(width * i, width * i + width) for i, k in enumerate(x.records)}
    out = np.full((x.robot.nv, width * x.robot.nb), 0.0, object)
    for row, body, block in parts:
        out[row.v, place[body.name]] = block
    return out


def stack(x: Forest, field: str, shape: tuple[int, ...] = (6,)) -> Array:
    """The per-body array (nb, *shape) of a field, in the frames that users see (`Body.origin`): a
    Motion or Force (6,), or anything with a `matrix` of that shape."""
    out = np.full((x.robot.nb, *shape), 0.0, object)
    for row, k, body in zip(out, x.records, x.robot.bodies, strict=True):
        row[...] = _array(_in_frame(body.origin, getattr(k, field)))
    return out


def _array(value: Any) -> Array:
    """The numbers of a motion, a force, anything with a `matrix`, or an array."""
    if isinstance(value, (Motion, Force)):
        return value.array
    return getattr(value, "matrix", value)


def _in_frame(
    frame: Transform,
    value: Motion | Force | Compliance | Transform | SpatialInertia | ArticulatedInertia,
) -> Any:
    """A quantity of a body (a vector, an inertia, a compliance or a pose), expressed in another
    frame on the same body."""
    match value:
        case Motion():
            return frame.T @ value
        case Force():
            return frame.inv @ value
        case Compliance():
            return value.carried(frame)
        case Transform():
            return value @ frame
        case _:
            return frame.inv.congruence(value)


def total(x: Forest, field: str, zero: Summand) -> Summand:
    """The sum of a field over all bodies."""
    return x.total(field, zero)
