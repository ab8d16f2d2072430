"""How well active joints move a frame, and where they cannot: the generalized Jacobian's singular
values ([UA] 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms.under_actuated import generalized_jacobian
from phipsi.compile import current
from phipsi.model import Robot
from phipsi.programs.arguments import are_names, as_truths

ROWS = {"angular": (0, 1, 2), "linear": (3, 4, 5)}
STEP, LONGEST, ROUNDS = 1e-6, 0.3, 300
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
    """Rows: the joint rates that do it, of unit length, (…, m, nv); any that move nothing where the
    value is zero."""


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
    J = _jacobian("manipulability", robot, q, frame, active, rows, reference)
    m, n = J.shape[-2:]
    J = np.concatenate([J, np.zeros((*J.shape[:-1], max(0, m - n)))], axis=-1)
    bad = np.logical_not(np.isfinite(J).all(axis=(-2, -1), keepdims=True))
    directions, values, rates = np.linalg.svd(np.where(bad, 0.0, J), full_matrices=False)
    values = np.where(bad[..., 0], np.nan, values)
    directions, rates = (np.where(bad, np.nan, x) for x in (directions, rates[..., :n]))
    return Manipulability(values.prod(-1), values, directions, rates)


def _jacobian(
    what: str, robot: Robot, q: Any, frame: str, active: Any, rows: Any, reference: str
) -> np.ndarray:
    """The chosen rows of J_G, as numbers."""
    if current() is not None:
        raise TypeError(
            f"{what} takes singular values, which no program can: call it with numbers, or use "
            "generalized_jacobian inside"
        )
    J = np.asarray(generalized_jacobian(robot, q, frame, active, reference=reference))
    return J[..., _rows(what, rows), :]


def _rows(what: str, rows: Any) -> list[int]:
    chosen = ROWS.get(rows, ()) if isinstance(rows, str) else range(6) if rows is None else rows
    numbers = np.atleast_1d(np.asarray(chosen))
    if (
        numbers.size
        and numbers.dtype.kind in "iu"
        and len(set(numbers.flat)) == numbers.size
        and np.isin(numbers, range(6)).all()
    ):
        return numbers.ravel().tolist()
    raise ValueError(
        f"{what}: rows is {rows!r}, needs 'angular', 'linear' or different numbers below 6"
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
    w, ∂σ = u*(∂J_G)w by differences. Where `found` is False, none was met in 300 of them: start
    elsewhere. `rows` and `reference` as of `manipulability`. q is (…, nq).
    """
    what, nv = "dynamic_singularities", robot.nv
    mask = _mask(what, robot, active)
    q, mask = _together(what, robot, np.asarray(q, float), mask)
    fewest, most = int(mask.sum(-1).min(initial=nv)), len(_rows(what, rows))
    if fewest < most:
        raise ValueError(
            f"{what}: {fewest} active freedoms never move {most} rows of a frame independently: "
            "choose fewer rows="
        )

    def jacobian(at: Any, active: Any) -> np.ndarray:
        return _jacobian(what, robot, at, frame, active, rows, reference)

    shifts = STEP * np.concatenate([np.eye(nv), -np.eye(nv)])
    for _ in range(ROUNDS):
        now = manipulability(robot, q, frame, mask, rows=rows, reference=reference)
        u, w = now.directions[..., :, -1], now.rates[..., -1, :]
        around = jacobian(robot.integrate(q[..., None, :], shifts), mask[..., None, :])
        moved = np.einsum("...m,...kmn,...n->...k", u, around, w)
        slope = np.where(mask, (moved[..., :nv] - moved[..., nv:]) / (2.0 * STEP), 0.0)
        size = np.maximum((slope**2).sum(-1), np.finfo(float).tiny)
        step = -(now.values[..., -1] / size)[..., None] * slope
        length = np.linalg.norm(step, axis=-1, keepdims=True)
        step = step * np.minimum(1.0, LONGEST / np.maximum(length, np.finfo(float).tiny))
        going = now.values[..., -1] > VANISHED * now.values[..., 0]
        if not going.any():
            break
        q = robot.integrate(q, np.where(going[..., None], step, 0.0))
    end = manipulability(robot, q, frame, mask, rows=rows, reference=reference)
    value = end.values[..., -1]
    return Singular(q, value, value <= VANISHED * end.values[..., 0])


def _mask(what: str, robot: Robot, active: Any) -> np.ndarray:
    if are_names(active):
        return robot.mask(*((active,) if isinstance(active, str) else active))
    mask = as_truths(f"{what}: active", active) != 0
    if mask.shape[-1:] != (robot.nv,):
        raise ValueError(f"{what}: active has shape {mask.shape}, needs (..., {robot.nv})")
    return mask


def _together(what: str, robot: Robot, q: np.ndarray, mask: np.ndarray) -> tuple[Any, Any]:
    """Configurations and masks with one batch shape."""
    if q.shape[-1:] != (robot.nq,):
        raise ValueError(f"{what}: q has shape {q.shape}, needs (..., {robot.nq})")
    try:
        batch = np.broadcast_shapes(q.shape[:-1], mask.shape[:-1])
    except ValueError:
        raise ValueError(
            f"{what}: batch shapes do not go together: q {q.shape[:-1]}, active {mask.shape[:-1]}"
        ) from None
    return np.broadcast_to(q, (*batch, robot.nq)), np.broadcast_to(mask, (*batch, robot.nv))
