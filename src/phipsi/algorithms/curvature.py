"""Derivatives and curvature of the mass matrix, and coordinates in which it is the identity
([DL] 2, 6).

𝓜 is the metric that point masses in flat space induce on configurations, so its curvature is a
difference of products of second fundamental forms (Gauss). If t_i are the columns of a body's
Jacobian, N_ij = t̂_i t̂_j, inboard freedom first, is the field of second derivatives of its points.
The product of two such fields is Q_ij,hk = Σ tr(N_ij Π N_hk*), Π the moments of the body's mass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce
from itertools import combinations_with_replacement
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np

from phipsi.algorithms.mass_matrix import mass_matrix
from phipsi.arguments import as_count
from phipsi.compile import lift, linalg, repeat
from phipsi.model import ModelError, Robot
from phipsi.model.robot import needs_robot
from phipsi.operators.algebra.local_action import hinge_map_rate
from phipsi.programs import program
from phipsi.spatial import Motion, Pivot, SingularError
from phipsi.spatial import rotation as rot
from phipsi.sweeps import (
    Children,
    Forest,
    Record,
    blocks,
    forest,
    inward,
    local,
    looped,
    may_loop,
    outward,
)
from phipsi.typing import (
    Array,
    Configuration,
    ConfigurationLike,
    JointMatrix,
    JointVector,
    Real,
    Scalar,
)

Y = TypeVar("Y", bound=Array | tuple[Array, ...])

UNROLLED = {3: 20, 4: 8}
"""For arrays with three and four axes of length nv the largest nv that is traced without loops."""
MOST = {3: 64, 4: 20}
"""The largest nv that is traced at all: every entry has a place in the graph."""
FLAT, TINY = 1e-9, 1e-300
"""A curvature counts as zero if it is at most FLAT times the terms whose difference it is; TINY
prevents a division by zero."""
LOST = 1e-6
"""The largest relative difference of W*W and 𝓜 at which the quadrature counts as accurate."""
ChristoffelKind = Literal["first", "second"]
"""The kinds of Christoffel symbols."""
CHRISTOFFEL_KINDS: tuple[ChristoffelKind, ...] = get_args(ChristoffelKind)

# ---- sensitivities ------------------------------------------------------------------------------


def over(robot: Robot, axes: int, function: Callable[[Any], Y], rows: Array) -> Y:
    """function(row) of all rows, stacked: a loop if so many axes of length nv are long."""
    n = robot.nv
    if looped(robot) or not n or (n > UNROLLED[axes] and may_loop()):
        return repeat(len(rows), lambda none, row: (none, function(row)), np.zeros(0), rows)[1]
    found: list[Any] = [function(row) for row in rows]
    if isinstance(found[0], tuple):
        parts: Any = tuple(np.stack(part) for part in zip(*found, strict=True))
        return parts
    stacked: Any = np.stack(found)
    return stacked


def rigid(k: Record, parent: Record) -> dict[str, Any]:
    """t⁺ = φ*t_p,  t = t⁺ + H*e: the motions of a unit rate e"""
    plus = k.phi.T @ parent.t
    return {"t_plus": plus, "t": plus + k.H.T @ k.unit}


def hinge_force(k: Record, children: Children) -> dict[str, Any]:
    """F = Mt + Σ φF = φMφ*H*e"""
    return {"F": children.sum(lambda c: c.phi @ c.F, k.M @ k.t)}


def hinge_derivative(k: Record) -> dict[str, Any]:
    """W = ∂(H*)e − H̃t⁺, for each freedom of the hinge"""
    rates = (hinge_map_rate(k, unit) @ k.unit for unit in np.eye(len(k.A)))
    both = zip(rates, k.H.T.columns, strict=True)
    return {"W": [rate - h.cross(k.t_plus) for rate, h in both]}


def unit_motion(robot: Robot, q: ConfigurationLike, unit: Array) -> Forest:
    """The bodies with their motions t by the unit rate of one freedom."""
    return outward(rigid, forest(robot, q, unit=unit), t=Motion.zero())


@program(joint_space=True)
def mass_matrix_derivative(robot: Robot, q: ConfigurationLike) -> Annotated[Array, "nv nv nv"]:
    """The derivatives of 𝓜 by all freedoms: Z + Z*, Z = Hφ̃H̃φMφ*H* + (∂H)φMφ*H* ([DL] Identity 6.3).

    H̃ is crf(H*e) at the hinge that moves; the identity is extended to any hinge. With F = φMφ*H*
    and W = ∂(H*) − ad(H*e)φ̃*H* at that hinge, Z = W*F. Derivatives are along coordinates if the
    joint velocities are their rates, else along quasi-velocities. A robot may have at most 64
    freedoms. For any number of freedoms the derivative along one direction w is C + C* of
    `coriolis_matrix(robot, q, w)`. Cost O(N³).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.

    Returns
    -------
    (…, nv, nv, nv)
        ∂𝓜_ij along freedom k, axes i, j, k; symmetric in i and j.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> C = pp.coriolis_matrix(robot, [0.3, -0.5], [1.0, 2.0])
    >>> dM = pp.mass_matrix_derivative(robot, [0.3, -0.5])
    >>> np.allclose(dM @ [1.0, 2.0], C + C.T)
    True
    """
    _check_size("mass_matrix_derivative", robot, 3)
    n = robot.nv

    def forces(unit: Array) -> Array:
        """W and F of the hinge of each freedom, (nv, 12)"""
        x = local(hinge_derivative, inward(hinge_force, unit_motion(robot, q, unit)))
        out = np.full((n, 12), 0.0, object)
        for hinge, _, own in blocks(x, "W"):
            out[hinge.v, :6] = [w.array for w in own]
        for hinge, _, F in blocks(x, "F"):
            out[hinge.v, 6:] = F.array
        return out

    def along(both: Array) -> Array:
        """W*F + F*W for one freedom; W and F are (nv, 6)"""
        W, F = both[:, :6], both[:, 6:]
        return over(robot, 3, lambda row: F @ row[:6] + W @ row[6:], both)

    both = over(robot, 3, forces, np.eye(n)).swapaxes(0, 1)
    return np.moveaxis(over(robot, 3, along, both), 0, 2)


def _check_size(what: str, robot: Robot, axes: int) -> None:
    """Raise if the robot has too many freedoms for an array with so many axes."""
    if robot.nv > MOST[axes]:
        raise ValueError(
            f"{what} of robot {robot.name!r} has {robot.nv}^{axes} numbers, too many to be traced: "
            f"it takes at most {MOST[axes]} freedoms; along a direction w the mass matrix changes "
            "by C + C* of coriolis_matrix(robot, q, w)"
        )


def _check_armature(robot: Robot) -> None:
    """Raise if a quasi-velocity has armature, which no points carry."""
    armature = robot.joint_data("armature")
    for i in np.flatnonzero(robot.rates < 0).tolist():
        if not (isinstance(armature[i], float) and armature[i] == 0.0):
            h = robot.hinge_of(i)
            raise ModelError(
                f"curvature of robot {robot.name!r}: joint {h.name!r} ({h.kind.name}) has "
                "armature; replace it by joints with one freedom each"
            )


def _check_coordinates(what: str, robot: Robot) -> None:
    """Raise if joint velocities are not the rates of coordinates."""
    for i in np.flatnonzero(robot.rates < 0)[:1]:
        h = robot.hinge_of(int(i))
        raise ModelError(
            f"{what} needs rates of coordinates, but those of joint {h.name!r} ({h.kind.name}) are "
            "not: replace it by joints with one freedom each"
        )


def structure_constants(robot: Robot) -> Annotated[Array, "nv nv nv"]:
    """c_ij^s of the Lie brackets [e_i, e_j] = Σ c_ij^s e_s of the freedoms, axes i, j, s."""
    units = np.eye(robot.nv)
    return np.array([robot.bracket(unit, units) for unit in units]).reshape((robot.nv,) * 3)


@program(joint_space=True)
def christoffel(
    robot: Robot, q: ConfigurationLike, *, kind: ChristoffelKind = "first"
) -> Annotated[Array, "nv nv nv"]:
    """Christoffel symbols of the mass matrix, of the first or second kind ([DL] 2).

        [ij, l] = ½(∂_i𝓜_jl + ∂_j𝓜_il − ∂_l𝓜_ij),    {l, ij} = Σ 𝓜⁻¹_ls [ij, s]

    The velocity part of the bias force is C_l = Σ [ij, l] β_i β_j. Along quasi-velocities, those of
    spherical, planar and free joints, the symbols are the coefficients ⟨∇_i e_j, e_l⟩ of the same
    connection, which have the terms ½(c_ij^s 𝓜_sl − c_jl^s 𝓜_si + c_li^s 𝓜_sj) besides (Koszul);
    [e_i, e_j] = Σ c_ij^s e_s is the Lie bracket, and they are not symmetric in i and j. The bias
    force has no such terms of the armature of these joints. Cost O(N³), for the second kind O(N⁴).

    Parameters
    ----------
    robot
        The robot, with at most 64 freedoms.
    q : (…, nq)
        Configuration.
    kind : "first" or "second"
        [ij, l] or {l, ij}.

    Returns
    -------
    (…, nv, nv, nv)
        The symbols, axes i, j, l.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v = [0.3, -0.5], [1.0, 2.0]
    >>> C = np.einsum("ijl,i,j->l", pp.christoffel(robot, q), v, v)
    >>> np.allclose(C, pp.coriolis_product(robot, q, v, v))
    True
    """
    if kind not in CHRISTOFFEL_KINDS:
        raise ValueError(f"kind {kind!r} is not one of first, second")
    _check_size("christoffel", robot, 3)
    n = robot.nv
    dM, M = np.asarray(mass_matrix_derivative(robot, q)), np.asarray(mass_matrix(robot, q))
    c = structure_constants(robot)
    pivot = Pivot(M) if kind == "second" else None

    quasi = robot.rates.min(initial=0) < 0

    def along(given: Array) -> Array:
        """[ij, l] of one i, axes j, l"""
        d_i, dM_i, c_i, M_i = (given[:, k * n : (k + 1) * n] for k in range(4))

        def symbols(row: Array) -> Array:
            """[ij, l] of one j"""
            d_ij, dM_ij, dM_ji = np.split(row[: 3 * n], 3)
            first = d_ij + dM_ji - dM_ij
            if quasi:
                c_ij, M_j, c_j = row[3 * n : 4 * n], row[4 * n : 5 * n], row[5 * n :].reshape(n, n)
                first = first + c_ij @ M - c_i @ M_j - c_j @ M_i[:, 0]
            return 0.5 * first if pivot is None else pivot.solve(0.5 * first)

        parts = (d_i, dM_i, dM_i.T, *((c_i, M, c.reshape(n, -1)) if quasi else ()))
        return over(robot, 3, symbols, np.concatenate(parts, axis=1))

    parts = (dM.transpose(2, 0, 1), dM, *((c, M[:, :, None]) if quasi else ()))
    return over(robot, 3, along, np.concatenate(parts, axis=2))


# ---- curvature ----------------------------------------------------------------------------------


def _pairs(n: int) -> list[tuple[int, int]]:
    """All pairs i ≤ j of n freedoms."""
    return list(combinations_with_replacement(range(n), 2))


Tensor = Annotated[Array, "nv nv nv nv"]
"""An array with four axes of length nv."""


def moments(k: Record) -> dict[str, Any]:
    """Π, the moments of the mass of a body, (4, 4)"""
    return {"moments": np.block([[k.M.pseudo, k.M.moment[:, None]], [k.M.moment, k.M.mass]])}


def velocities(t: Array) -> Array:
    """t̂ = [ω~, v], (3, 4), of a motion (6,): the field of velocities of a body"""
    return np.concatenate([rot.skew(t[:3]), t[3:, None]], axis=1)


def second_derivatives(t: Array, other: Array) -> Array:
    """N = t̂ t̂', (3, 4), of motions (6,) of a body: ω~ [ω'~, v']"""
    return rot.skew(t[:3]) @ velocities(other)


def over_second_forms(
    robot: Robot, q: ConfigurationLike, function: Callable[[Array, Array, Array], Array]
) -> Array:
    """function(B_ik,hj, |N_ik|, |N_hj|) of all h and i, stacked; B (nv, nv) has axes k, j.

    B_ij,hk = Q_ij,hk − [ij, l] 𝓜⁻¹_lm [hk, m] are the products of the normal parts of second
    derivatives (the second fundamental forms), |N|² = Q_ij,ij, and [ij, l] = Σ tr(N_ij Π t̂_l*).
    """
    _check_size("curvature", robot, 4)
    _check_armature(robot)
    n, nb, pairs = robot.nv, robot.nb, _pairs(robot.nv)
    size = 12 * nb
    Pi = [x for _, _, x in blocks(local(moments, forest(robot, q)), "moments")]
    pivot = Pivot(np.asarray(mass_matrix(robot, q)))

    def motions(unit: Array) -> Array:
        """t of all bodies, by the unit rate of one freedom"""
        x = unit_motion(robot, q, unit)
        return np.array([t.array for _, _, t in blocks(x, "t")], object).reshape(-1)

    J = over(robot, 4, motions, np.eye(n)).reshape(n, nb, 6)
    t_hat = np.array([[velocities(t) for t in own] for own in J], object).reshape(n, size)

    def factors(row: Array) -> Array:
        """U and V, the products of which are B_ij,hk = U_ij V_hk; and |N|"""
        t, other = row.reshape(2, nb, 6)
        N = [second_derivatives(*both) for both in zip(t, other, strict=True)]
        U = np.array(N, object).reshape(-1)
        V = np.array([x @ Pi_k for x, Pi_k in zip(N, Pi, strict=True)], object).reshape(-1)
        symbols, norm = t_hat @ V, lift(np.sqrt(U @ V)).reshape(1)
        return np.concatenate([U, symbols, V, -pivot.solve(symbols), norm])

    rows = np.array([(J[i], J[j]) for i, j in pairs], object).reshape(len(pairs), size)
    UV = over(robot, 4, factors, rows)
    place = np.zeros((n, n), int)
    for number, (i, j) in enumerate(pairs):
        place[i, j] = place[j, i] = number
    U, V, norms = UV[:, : size + n], UV[:, size + n : -1], UV[:, -1]

    def form(row: Array) -> Array:
        """The function for one h and i"""
        U_i, V_h = row[:, : size + n], row[:, size + n : -2]
        B = over(robot, 4, lambda u: V_h @ u, U_i)
        return function(B, row[:, -2], row[:, -1])

    def given(h: int, i: int) -> Array:
        sizes = norms[place[i], None], norms[place[h], None]
        return np.concatenate([U[place[i]], V[place[h]], *sizes], axis=1)

    every = [given(h, i) for h, i in np.ndindex(n, n)]
    found = over(robot, 4, form, np.array(every, object).reshape(n * n, n, 2 * (size + n) + 2))
    return found.reshape(n, n, *found.shape[1:])


@program(joint_space=True)
def curvature(robot: Robot, q: ConfigurationLike) -> Tensor:
    """The curvature tensor of the mass matrix, R_hijk = B_ik,hj − B_ij,hk ([DL] Lemma 2.2).

    B are the products of second fundamental forms. Along coordinates the tensor is also

        ½(∂_i∂_j𝓜_hk + ∂_h∂_k𝓜_ij − ∂_i∂_k𝓜_hj − ∂_h∂_j𝓜_ik) + {l, ij}[hk, l] − {l, ik}[hj, l]

    It is zero where coordinates exist in which the mass matrix is the identity, and has
    nv²(nv² − 1)/12 independent entries. Cost O(N⁵).

    Parameters
    ----------
    robot
        The robot, with at most 20 freedoms.
    q : (…, nq)
        Configuration.

    Returns
    -------
    (…, nv, nv, nv, nv)
        The tensor, axes h, i, j, k, along coordinates or quasi-velocities as the joint velocities.

    Raises
    ------
    ModelError
        If a spherical, planar or free joint has armature.

    Raises
    ------
    ModelError
        If a spherical, planar or free joint has armature.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> R = pp.curvature(pp.robots.double_pendulum(), [0.3, -0.5])
    >>> np.allclose(R, -R.swapaxes(0, 1)), np.allclose(R, 0.0)  # skew; curved
    (True, False)
    """
    return over_second_forms(robot, q, lambda B, one, other: B.T - B)


@program
def relative_curvature(robot: Robot, q: ConfigurationLike) -> Scalar | float:
    """The largest entry of the curvature tensor, relative to the second derivatives in it."""

    def largest(B: Array, one: Array, other: Array) -> Array:
        """max |R_hijk| / (|N_ik||N_hj| + |N_ij||N_hk|) over j and k"""
        sizes = np.outer(one, other)
        relative = np.abs(lift(B - B.T)) / np.maximum(lift(sizes + sizes.T), TINY)
        return lift(reduce(np.maximum, relative.reshape(-1))).reshape(1)

    if robot.nv == 0:
        return 0.0
    return reduce(np.maximum, over_second_forms(robot, q, largest).reshape(-1))


class Diagonalizability(NamedTuple):
    """The result of `globally_diagonalizable`."""

    flat: bool
    """Whether coordinates exist in which the mass matrix is the identity everywhere."""
    curvature: float
    """The largest entry found of the curvature tensor, relative to the terms whose difference it
    is."""
    q: Configuration
    """(nq,): the configuration at which it was found."""


def globally_diagonalizable(
    robot: Robot, samples: int = 64, rng: np.random.Generator | int | None = 0
) -> Diagonalizability:
    """Whether the mass matrix is flat, judged by its curvature at random configurations.

    If it is flat, one change of coordinates diagonalizes the dynamics everywhere ([DL] Lemma 2.2).

    Parameters
    ----------
    robot
        The robot; as for `curvature`.
    samples
        The number of random configurations.
    rng
        A random number generator, or its seed.

    Returns
    -------
    Diagonalizability
        Whether it is `flat`, the largest relative `curvature` found, and the configuration `q`
        where it was found.

    Raises
    ------
    ModelError
        If a spherical, planar or free joint has armature.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.globally_diagonalizable(pp.robots.double_pendulum()).flat
    False
    """
    if not isinstance(samples, int | np.integer) or samples < 1:
        raise ValueError(f"globally_diagonalizable: samples is {samples!r}, needs at least one")
    needs_robot("globally_diagonalizable", robot)
    q, _ = robot.random_state(rng, (samples,))
    relative = np.asarray(relative_curvature(robot, q))
    worst = int(relative.argmax())
    return Diagonalizability(bool(relative[worst] <= FLAT), float(relative[worst]), q[worst])


class DiagonalizingCoordinates(NamedTuple):
    """The result of `diagonalizing_coordinates`."""

    coordinates: JointVector
    """(…, nv) [kg^½·m]: coordinates ϑ in which the mass matrix is the identity."""
    W: JointMatrix
    """(…, nv, nv): ∂ϑ/∂q, W*W = 𝓜."""


@program
def transported(
    robot: Robot, q: ConfigurationLike, start: ConfigurationLike, *, steps: int
) -> DiagonalizingCoordinates:
    """ϑ = ∫ W dq and dW = W {·, ·dq} along the straight line from start to q, by the classical
    Runge-Kutta method."""
    begin = np.asanyarray(start)
    way, h = np.asanyarray(q) - begin, 1.0 / steps

    def turn(s: Real) -> JointMatrix:
        """A_lj = {l, ij} dq_i"""
        symbols = christoffel(robot, begin + s * way, kind="second")
        return np.tensordot(way, symbols, (0, 0)).T

    def step(state: tuple[Array, Array], k: Real) -> tuple[tuple[Array, Array], Array]:
        W, x = state
        A_begin, A_middle, A_end = (turn(h * (k + c)) for c in (0.0, 0.5, 1.0))
        k1 = W @ A_begin
        k2 = (W + 0.5 * h * k1) @ A_middle
        k3 = (W + 0.5 * h * k2) @ A_middle
        k4 = (W + h * k3) @ A_end
        mean = W + (h / 6.0) * (k1 + k2 + k3)
        return (W + (h / 6.0) * (k1 + 2.0 * (k2 + k3) + k4), x + h * (mean @ way)), x

    frame = linalg.cholesky(mass_matrix(robot, begin)).T
    (W, x), _ = repeat(steps, step, (frame, np.zeros(robot.nv)))
    return DiagonalizingCoordinates(x, W)


transported.name = "diagonalizing_coordinates"  # the name in error messages


_verdict = lru_cache(maxsize=64)(globally_diagonalizable)


def diagonalizing_coordinates(
    robot: Robot, q: ConfigurationLike, start: ConfigurationLike, *, steps: int = 256
) -> DiagonalizingCoordinates:
    """Coordinates ϑ = ∫ W dq in which the mass matrix is the identity everywhere ([DL] Lemma 2.1).

    W with W*W = 𝓜 is transported in parallel, dW = W {·, ·dq}, along the straight line to q from
    `start`, where ϑ = 0. The motion is ϑ̈ = W⁻*(T − C_g), without a Coriolis term. The quadrature
    is of fourth order in 1/`steps`.

    Parameters
    ----------
    robot
        The robot, whose mass matrix must be flat (`globally_diagonalizable`).
    q : (…, nq)
        Configuration.
    start : (…, nq)
        The configuration where ϑ = 0.
    steps
        The number of steps of the quadrature.

    Returns
    -------
    DiagonalizingCoordinates
        The coordinates ϑ (…, nv) [kg^½·m] and W = ∂ϑ/∂q (…, nv, nv); rows of a batch are NaN where
        the line to q passes near a configuration with a singular mass matrix.

    Raises
    ------
    ModelError
        If the mass matrix of the robot is curved, or joint velocities are not rates of coordinates.
    SingularError
        If the line to a single q passes near a configuration with a singular mass matrix.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.chain(1)
    >>> x, W = pp.diagonalizing_coordinates(robot, [0.5], [0.0])
    >>> np.allclose(W.T @ W, pp.mass_matrix(robot, [0.5])), np.allclose(x, 0.5 * W[0])
    (True, True)
    """
    steps = as_count("diagonalizing_coordinates: steps", steps, 1)
    needs_robot("diagonalizing_coordinates", robot)
    _check_coordinates("diagonalizing_coordinates", robot)
    verdict = _verdict(robot)
    if not verdict.flat:
        raise ModelError(
            f"robot {robot.name!r} has a curved mass matrix ({verdict.curvature:.1e} relative, at "
            f"q = {np.round(verdict.q, 3).tolist()}): no coordinates make it one everywhere; use "
            "total_rates, which diagonalize it at every configuration"
        )
    x, W = transported(robot, q, start, steps=steps)
    M = np.asarray(mass_matrix(robot, q))
    error = np.abs(np.swapaxes(W, -1, -2) @ W - M).max(axis=(-2, -1), initial=0.0)
    lost = np.logical_not(error <= LOST * np.abs(M).max(axis=(-2, -1), initial=0.0))
    if np.ndim(lost) == 0 and lost and np.isfinite(M).all():
        raise SingularError(
            f"robot {robot.name!r}: the straight way from start to q passes near a configuration "
            "where the mass matrix is singular; choose another start, or more steps="
        )
    return DiagonalizingCoordinates(
        np.where(lost[..., None], np.nan, x), np.where(lost[..., None, None], np.nan, W)
    )
