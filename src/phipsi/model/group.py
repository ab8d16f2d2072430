"""Brackets, coadjoint actions and momenta of hinges that are groups; trivial where q moves by
addition. The columns of H* are constant, orthonormal and closed under the bracket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phipsi.spatial import Force, Motion


def bracket(h: Any, u: Any, x: Any) -> Sequence[Any]:
    """[u, x] with H*[u, x] = ad(H*u) H*x."""
    if not h.kind.group:
        return [0.0] * h.kind.nv
    return _components(h, _motion(h, u).cross(_motion(h, x)).array)


def coadjoint(h: Any, u: Any, p: Any) -> Sequence[Any]:
    """ad*_u p with (ad*_u p)·x = p·[u, x]: the rate of a momentum p that rests in the world."""
    if not h.kind.group:
        return [0.0] * h.kind.nv
    return _components(h, -_motion(h, u).cross_force(_force(h, p)).array)


def inboard(h: Any, q: Any, p: Any) -> Sequence[Any]:
    """A momentum p of the hinge, as it stands in the frame that the hinge turns in."""
    if not h.kind.group:
        return p
    return _components(h, (h.kind.pose(h, q) @ _force(h, p)).array)


def outboard(h: Any, q: Any, p: Any) -> Sequence[Any]:
    """The inverse of `inboard`."""
    if not h.kind.group:
        return p
    return _components(h, (h.kind.pose(h, q).inv @ _force(h, p)).array)


def _motion(h: Any, v: Any) -> Motion:
    return Motion.of(_span(h, v))


def _force(h: Any, p: Any) -> Force:
    return Force.of(_span(h, p))


def _columns(h: Any) -> Any:
    return np.array([c.array for c in h.kind.columns(h, h.kind.neutral)], float)


def _span(h: Any, v: Any) -> Any:
    """H*v; its scalars may be arrays of a batch."""
    return np.dot(_columns(h).T.astype(object), v)


def _components(h: Any, array: Any) -> Sequence[Any]:
    return np.dot(_columns(h).astype(object), array)
