"""Brackets, coadjoint actions, derivatives of log and momenta of hinges on Lie groups.

The columns of H* of such a hinge are constant, orthonormal and closed under the bracket. For hinges
whose coordinates add, all functions are trivial.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np

from phipsi.model.hinges import HingeKind
from phipsi.model.parts import Hinge
from phipsi.spatial import Force, Motion
from phipsi.spatial import rotation as rot
from phipsi.spatial.rotation import Scalars
from phipsi.typing import Array


def bracket(h: Hinge, u: Scalars, x: Scalars) -> Scalars:
    """[u, x] with H*[u, x] = ad(H*u) H*x."""
    if not h.kind.group:
        return [0.0] * h.kind.nv
    return _components(h, _motion(h, u).cross(_motion(h, x)).array)


def coadjoint(h: Hinge, u: Scalars, p: Scalars) -> Scalars:
    """ad*_u p with (ad*_u p)·x = p·[u, x]: the rate of a momentum p that is constant in the world,
    in a frame that moves with u."""
    if not h.kind.group:
        return [0.0] * h.kind.nv
    return _components(h, -_motion(h, u).cross_force(_force(h, p)).array)


def difference_rate(h: Hinge, u: Scalars, x: Scalars) -> Scalars:
    """The rate of the displacement u = log(q0⁻¹q) where the hinge moves with x: dlog_u x."""
    return _dlog(h, u, x, bracket)


def difference_force(h: Hinge, u: Scalars, p: Scalars) -> Scalars:
    """(dlog_u)* p: the joint force of a force p on the displacement u, p·u̇ = ((dlog_u)* p)·v."""
    return _dlog(h, u, p, coadjoint)


def _dlog(
    h: Hinge, u: Scalars, x: Scalars, ad: Callable[[Hinge, Scalars, Scalars], Scalars]
) -> Scalars:
    """x + ad_u x/2 + a ad_u² x + b ad_u⁴ x: dlog of `ad`, or its adjoint."""
    if not h.kind.group:
        return x
    turn = _motion(h, u).angular
    a, b = rot.log_rate_factors(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2])
    once = ad(h, u, x)
    twice = ad(h, u, once)
    fourth = ad(h, u, ad(h, u, twice))
    terms = zip(x, once, twice, fourth, strict=True)
    return [i + 0.5 * j + a * k + b * m for i, j, k, m in terms]


def inboard(h: Hinge, q: Scalars, p: Scalars) -> Scalars:
    """A momentum p of the hinge (child frame), expressed in the hinge frame on the parent."""
    if not h.kind.group:
        return p
    return _components(h, (_kind(h).pose(h, q) @ _force(h, p)).array)


def outboard(h: Hinge, q: Scalars, p: Scalars) -> Scalars:
    """The inverse of `inboard`."""
    if not h.kind.group:
        return p
    return _components(h, (_kind(h).pose(h, q).inv @ _force(h, p)).array)


def _kind(h: Hinge) -> HingeKind:
    """The kind whose H* is constant."""
    return h.kind.forward or h.kind


def _motion(h: Hinge, v: Scalars) -> Motion:
    return Motion.of(_span(h, v))


def _force(h: Hinge, p: Scalars) -> Force:
    return Force.of(_span(h, p))


def _columns(h: Hinge) -> Annotated[Array, "nv 6"]:
    """The columns of H*, one in each row."""
    return np.array([c.array for c in _kind(h).columns(h, h.kind.neutral)], float)


def _span(h: Hinge, v: Scalars) -> Annotated[Array, "6"]:
    """H* v; its scalars may be arrays over a batch."""
    return np.dot(_columns(h).T.astype(object), np.asarray(v))


def _components(h: Hinge, array: Annotated[Array, "6"]) -> Scalars:
    """The coefficients of a spatial vector in the columns of H*."""
    return np.dot(_columns(h).astype(object), array)
