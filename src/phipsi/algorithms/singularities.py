"""The singular values of the generalized Jacobian: how well active joints move a frame, and the
configurations where they cannot move it in some direction ([UA] 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from phipsi.algorithms.under_actuated import as_mask, generalized_jacobian
from phipsi.compile import as_numbers, current
from phipsi.conventions import Reference
from phipsi.model import Robot
from phipsi.model.robot import needs_robot
from phipsi.programs.arguments import are_names, as_truths
from phipsi.typing import Array, Configuration, ConfigurationLike, MaskLike, Scalar

RowNames = Literal["angular", "linear"]
"""Names of rows of a Jacobian."""
ROWS: Mapping[str, tuple[int, ...]] = dict(
    zip(get_args(RowNames), ((0, 1, 2), (3, 4, 5)), strict=True)
)
"""The numbers of the rows by name."""
STEP, LONGEST, ROUNDS = 1e-6, 0.3, 300
"""The displacement for finite differences [rad or m], the longest step of the search for a
singularity [rad or m], and the largest number of its steps."""
VANISHED = 1e-10
"""A singular value counts as zero if it is at most this fraction of the largest."""


class Manipulability(NamedTuple):
    """The singular value decomposition of m rows of J_G."""

    measure: Scalar
    """(…): the product of the singular values, √det J_G J_G*."""
    values: Annotated[Array, "m"]
    """(…, m): the singular values, the largest first."""
    directions: Annotated[Array, "m m"]
    """(…, m, m): in its columns the directions of the frame's motion that belong to the values; at
    a singularity the last direction is lost."""
    rates: Annotated[Array, "m nv"]
    """(…, m, nv): in its rows the joint rates, of unit length, that move the frame in these
    directions; where the value is zero, arbitrary rates that do not move the frame."""


def manipulability(
    robot: Robot,
    q: ConfigurationLike,
    frame: str,
    active: MaskLike,
    *,
    rows: RowNames | Sequence[int] | None = None,
    reference: Reference = "local",
) -> Manipulability:
    """The singular values of J_G: how active joints move a frame ([UA] Lemma 6.3).

    The passive joints move freely; with all joints active J_G is the ordinary Jacobian. Where a
    singular value vanishes there is a dynamic singularity, which depends on masses and not on
    geometry alone. No program can call this function.

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    frame
        The name of the frame.
    active : (…, nv), or names of hinges
        Which freedoms are active: truth values or names.
    rows
        The rows of [angular; linear] to take: "angular", "linear" or numbers from 0 to 5, such as
        (0, 1) of the local reference to point the z axis of the frame. Default all six, which mixes
        radians and metres.
    reference : "local", "world" or "aligned"
        The axes and origin of the frame's motion.

    Returns
    -------
    Manipulability
        The singular values (…, m) of the m rows, their product, and the directions and joint rates
        that belong to them; NaN where J_G is not finite.

    Examples
    --------
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
    what: str,
    robot: Robot,
    q: ConfigurationLike,
    frame: str,
    active: MaskLike,
    rows: RowNames | Sequence[int] | None,
    reference: Reference,
) -> Annotated[Array, "m nv"]:
    """The chosen rows of J_G, as numbers; raises inside programs."""
    if current() is not None:
        raise TypeError(
            f"{what} takes singular values, which no program can: call it with numbers, or use "
            "generalized_jacobian inside"
        )
    J = np.asarray(generalized_jacobian(robot, q, frame, active, reference=reference))
    return J[..., _row_numbers(what, rows), :]


def _row_numbers(what: str, rows: RowNames | Sequence[int] | None) -> list[int]:
    """The numbers of the chosen rows, all different."""
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


class DynamicSingularity(NamedTuple):
    """The result of `dynamic_singularities`: where the search for a singularity ended."""

    q: Configuration
    """(…, nq): the last configuration of the search."""
    value: Scalar
    """(…): the smallest singular value of J_G there."""
    found: Scalar
    """(…) bool: whether that value vanishes."""


def dynamic_singularities(
    robot: Robot,
    q: ConfigurationLike,
    frame: str,
    active: MaskLike,
    *,
    rows: RowNames | Sequence[int] | None = None,
    reference: Reference = "local",
) -> DynamicSingularity:
    """Configurations near q, reached by the active joints alone, where J_G loses rank ([UA] 6).

    Newton steps along the gradient of the smallest singular value σ = u*J_G w, u and w its singular
    vectors; ∂σ = u*(∂J_G)w by finite differences. The search ends after at most 300 steps.

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration from which the search starts.
    frame
        The name of the frame.
    active : (…, nv), or names of hinges
        Which freedoms are active: truth values or names.
    rows
        The rows of [angular; linear] to take, as in `manipulability`.
    reference : "local", "world" or "aligned"
        The axes and origin of the frame's motion.

    Returns
    -------
    DynamicSingularity
        The last configuration `q` (…, nq), the smallest singular value there, and whether it
        vanishes (`found`). Where it does not, start elsewhere.

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> at = pp.dynamic_singularities(robot, [0.3, 0.5], "tool", [True, True], rows=(3, 5))
    >>> bool(at.found), abs(float(at.q[1])) < 1e-6  # stretched out
    (True, True)
    """
    what = "dynamic_singularities"
    needs_robot(what, robot)
    nv = robot.nv
    mask = _truths(what, robot, active)
    at, mask = _broadcast(what, robot, as_numbers(f"{what}: q", q).astype(float), mask)
    fewest, most = int(mask.sum(-1).min(initial=nv)), len(_row_numbers(what, rows))
    if fewest < most:
        raise ValueError(
            f"{what}: {fewest} active freedoms never move {most} rows of a frame independently: "
            "choose fewer rows="
        )

    def jacobian(q: Array, active: NDArray[np.bool_]) -> Annotated[Array, "m nv"]:
        return _jacobian(what, robot, q, frame, active, rows, reference)

    shifts = STEP * np.concatenate([np.eye(nv), -np.eye(nv)])
    for _ in range(ROUNDS):
        now = manipulability(robot, at, frame, mask, rows=rows, reference=reference)
        u, w = now.directions[..., :, -1], now.rates[..., -1, :]
        around = jacobian(robot.integrate(at[..., None, :], shifts), mask[..., None, :])
        moved = np.einsum("...m,...kmn,...n->...k", u, around, w)
        slope = np.where(mask, (moved[..., :nv] - moved[..., nv:]) / (2.0 * STEP), 0.0)
        size = np.maximum((slope**2).sum(-1), np.finfo(float).tiny)
        step = -(now.values[..., -1] / size)[..., None] * slope
        length = np.linalg.norm(step, axis=-1, keepdims=True)
        step = step * np.minimum(1.0, LONGEST / np.maximum(length, np.finfo(float).tiny))
        going = now.values[..., -1] > VANISHED * now.values[..., 0]
        if not going.any():
            break
        at = robot.integrate(at, np.where(going[..., None], step, 0.0))
    end = manipulability(robot, at, frame, mask, rows=rows, reference=reference)
    value = end.values[..., -1]
    return DynamicSingularity(at, value, value <= VANISHED * end.values[..., 0])


def _truths(what: str, robot: Robot, active: MaskLike) -> NDArray[np.bool_]:
    """The mask as truth values (…, nv)."""
    if are_names(active):
        return as_mask(robot, active) != 0
    mask = as_truths(f"{what}: active", active) != 0
    if mask.shape[-1:] != (robot.nv,):
        raise ValueError(f"{what}: active has shape {mask.shape}, needs (..., {robot.nv})")
    return mask


def _broadcast(
    what: str, robot: Robot, q: Array, mask: NDArray[np.bool_]
) -> tuple[Array, NDArray[np.bool_]]:
    """Configurations and masks with the same batch shape."""
    if q.shape[-1:] != (robot.nq,):
        raise ValueError(f"{what}: q has shape {q.shape}, needs (..., {robot.nq})")
    try:
        batch = np.broadcast_shapes(q.shape[:-1], mask.shape[:-1])
    except ValueError:
        raise ValueError(
            f"{what}: batch shapes do not go together: q {q.shape[:-1]}, active {mask.shape[:-1]}"
        ) from None
    return np.broadcast_to(q, (*batch, robot.nq)), np.broadcast_to(mask, (*batch, robot.nv))
