"""How well active joints move a frame, and where they cannot: the generalized Jacobian's singular
values ([UA] 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms.under_actuated import generalized_jacobian
from phipsi.compile import current
from phipsi.model import Robot
from phipsi.sweeps.arguments import are_names

ROWS = {"angular": (0, 1, 2), "linear": (3, 4, 5)}
STEP, LONGEST, ROUNDS = 1e-6, 0.3, 60
"""A difference of joint positions, the longest move towards a singularity, and how many of them."""
VANISHED = 1e-10
"""A singular value below so much of the largest is zero."""


class Manipulability(NamedTuple):
    """What m rows of J_G make of unit rates of the active joints."""

    measure: Any
    """The product of the singular values, √det J_G J_G*, (…)."""
    values: Any
    """Singular values, the largest first, (…, m)."""
    directions: Any
    """Columns: how the frame moves along each, (…, m, m); the last is lost at a singularity."""
    rates: Any
    """Rows: the joint rates that do it, of unit length, (…, m, nv)."""


def manipulability(
    robot: Robot,
    q: Any,
    frame: str,
    active: Any,
    *,
    rows: str | Sequence[int] | None = None,
    reference: str = "local",
) -> Manipulability:
    """How the active joints move a frame while passive ones yield: the singular values of J_G, the
    ordinary Jacobian where all joints are active ([UA] Lemma 6.3).

    Where one vanishes there is a dynamic singularity: it depends on masses, not on geometry alone.
    `rows` of [angular; linear] to look at: "angular", "linear" or numbers, such as (0, 1) of the
    local reference for pointing the frame's z axis; radians and metres mix otherwise.

    >>> import phipsi as pp
    >>> arm = pp.robots.space_arm()
    >>> q, _ = arm.random_state(0, (100,))
    >>> pp.manipulability(arm, q, "tool", ~arm.mask("base"), rows="linear").values.shape
    (100, 3)
    """
    if current() is not None:
        raise TypeError(
            "manipulability takes singular values, which no program can: call it with numbers, or "
            "use generalized_jacobian inside"
        )
    J = np.asarray(generalized_jacobian(robot, q, frame, active, reference=reference))
    J = J[..., _rows(rows), :]
    m, n = J.shape[-2:]
    wide = np.concatenate([J, np.zeros((*J.shape[:-1], max(0, m - n)))], axis=-1)
    directions, values, rates = np.linalg.svd(wide, full_matrices=False)
    return Manipulability(values.prod(-1), values, directions, rates[..., :n])


def _names(active: Any) -> Sequence[str]:
    return (active,) if isinstance(active, str) else active


def _rows(rows: str | Sequence[int] | None) -> list[int]:
    if isinstance(rows, str):
        if rows in ROWS:
            return list(ROWS[rows])
    else:
        chosen = list(range(6)) if rows is None else [int(i) for i in rows]
        if chosen and len(set(chosen)) == len(chosen) and set(chosen) <= set(range(6)):
            return chosen
    raise ValueError(
        f"rows is {rows!r}, needs 'angular', 'linear' or different numbers from 0 to 5"
    )


class Singular(NamedTuple):
    """Configurations towards a singularity."""

    q: Any
    """Where the search ended, (…, nq)."""
    value: Any
    """The smallest singular value of J_G there, (…)."""
    found: Any
    """Did it vanish? (…)"""


def dynamic_singularities(
    robot: Robot,
    q: Any,
    frame: str,
    active: Any,
    *,
    rows: str | Sequence[int] | None = None,
    reference: str = "local",
) -> Singular:
    """Configurations near q, moved along the active joints alone, where J_G loses rank ([UA] 6).

    Newton's steps along the gradient of the smallest singular value, σ = u*J_Gw with its own u and
    w, ∂σ = u*(∂J_G)w by differences. Where `found` is False, none was met on the way: start
    elsewhere. `rows` and `reference` as of `manipulability`. q is (…, nq).
    """
    q = np.asarray(q, float)
    batch, nv = q.shape[:-1], robot.nv
    mask = robot.mask(*_names(active)) if are_names(active) else np.asarray(active, bool)
    free = np.broadcast_to(mask, (*batch, nv))

    def smallest(at: Any, mask: Any) -> Manipulability:
        return manipulability(robot, at, frame, mask, rows=rows, reference=reference)

    shifts = STEP * np.concatenate([np.eye(nv), -np.eye(nv)])
    for _ in range(ROUNDS):
        now = smallest(q, free)
        u, w = now.directions[..., :, -1], now.rates[..., -1, :]
        around = robot.integrate(q[..., None, :], shifts)
        J = generalized_jacobian(robot, around, frame, free[..., None, :], reference=reference)
        moved = np.einsum("...m,...kmn,...n->...k", u, np.asarray(J)[..., _rows(rows), :], w)
        slope = np.where(free, (moved[..., :nv] - moved[..., nv:]) / (2.0 * STEP), 0.0)
        size = np.maximum((slope**2).sum(-1), np.finfo(float).tiny)
        step = -(now.values[..., -1] / size)[..., None] * slope
        length = np.linalg.norm(step, axis=-1, keepdims=True)
        step = step * np.minimum(1.0, LONGEST / np.maximum(length, np.finfo(float).tiny))
        vanished = now.values[..., -1] <= VANISHED * now.values[..., 0]
        if vanished.all():
            break
        q = robot.integrate(q, np.where(vanished[..., None], 0.0, step))
    end = smallest(q, free)
    value = end.values[..., -1]
    return Singular(q, value, value <= VANISHED * end.values[..., 0])
