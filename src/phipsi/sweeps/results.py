"""Results of sweeps, put together from the records of the bodies."""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.spatial import Force, Motion
from phipsi.sweeps.forest import Forest
from phipsi.sweeps.sweep import Blocks


def gather(x: Forest, field: str) -> Any:
    """The joint-space vector (nv,) of a field that has one number per freedom."""
    out = np.full(x.robot.nv, 0.0, object)
    for k in x.records:
        out[k.hinge.v] = getattr(k, field)
    return out


def columns(x: Forest, field: str) -> Any:
    """The 6 × nv matrix of a field with a 6 × r `matrix` per hinge, zero where it is not given."""
    out = np.full((6, x.robot.nv), 0.0, object)
    for k in x.records:
        part = getattr(k, field, None)
        if part is not None:
            out[:, k.hinge.v] = part.matrix
    return out


def diagonal(x: Forest, field: str) -> Any:
    """The block-diagonal joint-space matrix (nv, nv) of a field with an r × r `matrix`."""
    out = np.full((x.robot.nv, x.robot.nv), 0.0, object)
    for k in x.records:
        out[k.hinge.v, k.hinge.v] = getattr(k, field).matrix
    return out


def symmetric(x: Forest, blocks: Blocks) -> Any:
    """The symmetric joint-space matrix (nv, nv) with the given blocks on and above its diagonal."""
    out = np.full((x.robot.nv, x.robot.nv), 0.0, object)
    for row, column, block in blocks:
        out[row.v, column.v] = block
    upper = np.triu(np.ones(out.shape, bool))
    return np.where(upper, out, out.T)


def by_body(x: Forest, blocks: Blocks, width: int) -> Any:
    """The matrix (nv, width · nb) of blocks with `width` columns for each body."""
    place = {k.hinge.name: slice(width * i, width * i + width) for i, k in enumerate(x.records)}
    out = np.full((x.robot.nv, width * x.robot.nb), 0.0, object)
    for row, body, block in blocks:
        out[row.v, place[body.name]] = block
    return out


def stack(x: Forest, field: str, shape: tuple[int, ...] = (6,)) -> Any:
    """The per-body array (nb, *shape) of a field: a Motion or Force (6,), or anything with a
    `matrix` of that shape."""
    out = np.full((x.robot.nb, *shape), 0.0, object)
    for row, k in zip(out, x.records, strict=True):
        value = getattr(k, field)
        row[...] = value.array if isinstance(value, (Motion, Force)) else value.matrix
    return out


def total(x: Forest, field: str, zero: Any) -> Any:
    """The sum of a field over all bodies."""
    return x.total(field, zero)
