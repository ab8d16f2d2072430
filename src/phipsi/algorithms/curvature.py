"""Derivatives and curvature of the mass matrix, and coordinates in which it is the identity
([DL] 2, 6).

𝓜 is the metric that point masses in flat space induce on configurations, so its curvature is a
difference of products of second fundamental forms (Gauss). If t_i are the columns of a body's
Jacobian, N_ij = t̂_i t̂_j, inboard freedom first, is the field of second derivatives of its points.
The product of two such fields is Q_ij,hk = Σ tr(N_ij Π N_hk*), Π the moments of the body's mass.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from itertools import combinations_with_replacement
from typing import Annotated, Any, Literal, NamedTuple, get_args

import numpy as np

from phipsi.algorithms.mass_matrix import mass_matrix
from phipsi.compile import linalg, repeat
from phipsi.model import ModelError, Robot
from phipsi.operators.algebra.local_action import hinge_map_rate
from phipsi.programs import program
from phipsi.spatial import ForceBasis, HingeMap, Motion, MotionBasis, Pivot, SingularError
from phipsi.spatial import rotation as rot
from phipsi.sweeps import Children, Forest, Record, blocks, forest, inward, local, outward, total
from phipsi.typing import (
    Array,
    Configuration,
    ConfigurationLike,
    JointMatrix,
    JointVector,
    Real,
    Scalar,
)

MOST = {3: 20, 4: 8}
"""For arrays with three and four axes of length nv the largest nv that is traced; compilation then
takes about 20 s."""
FLAT, TINY = 1e-9, 1e-300
"""A curvature counts as zero if it is at most FLAT times the terms whose difference it is; TINY
prevents a division by zero."""
LOST = 1e-6
"""The largest relative difference of W*W and 𝓜 at which the quadrature counts as accurate."""
ChristoffelKind = Literal["first", "second"]
"""The kinds of Christoffel symbols."""
CHRISTOFFEL_KINDS: tuple[ChristoffelKind, ...] = get_args(ChristoffelKind)

# ---- sensitivities ------------------------------------------------------------------------------


def jacobians(robot: Robot, q: ConfigurationLike) -> Forest:
    """The bodies with J, their motions by unit rates of all freedoms, and J⁺, those of the inboard
    side of their hinges: nv motions each, in the frame of the body."""
    x = forest(robot, q)
    names = [f"t{i}" for i in range(robot.nv)]
    for name, unit in zip(names, np.eye(robot.nv), strict=True):

        def rigid(k: Record, parent: Record, name: str = name) -> dict[str, Any]:
            """t⁺ = φ*t_p,  t = t⁺ + H*e"""
            plus = k.phi.T @ getattr(parent, name)
            return {f"{name}_plus": plus, name: plus + k.H.T @ k.unit}

        x = outward(rigid, x.given(unit=unit), **{name: Motion.zero()})

    def together(k: Record) -> dict[str, Any]:
        """J = φ*H*,  J⁺ = φ̃*H*"""
        J = MotionBasis(tuple(getattr(k, name) for name in names))
        return {"J": J, "J_plus": MotionBasis(tuple(getattr(k, f"{name}_plus") for name in names))}

    return local(together, x)


def hinge_forces(k: Record, children: Children) -> dict[str, Any]:
    """F = MJ + Σ φF = φMφ*H*"""
    return {"F": children.sum(lambda c: c.phi @ c.F, k.M @ k.J)}


def hinge_derivatives(k: Record) -> dict[str, Any]:
    """J⁺*H̃F, and (∂H)F in the rows of the hinge, for each of its freedoms"""
    turned = [ForceBasis(tuple(map(h.cross_force, k.F.columns))) for h in k.H.T.columns]
    rates = [hinge_map_rate(k, unit) for unit in np.eye(len(k.A))]
    return {
        "outer": [HingeMap(k.J_plus) @ F for F in turned],
        "own": [HingeMap(H_dot) @ k.F for H_dot in rates],
    }


@program(joint_space=True)
def mass_matrix_derivative(robot: Robot, q: ConfigurationLike) -> Annotated[Array, "nv nv nv"]:
    """The derivatives of 𝓜 by all freedoms: Z + Z*, Z = Hφ̃H̃φMφ*H* + (∂H)φMφ*H* ([DL] Identity 6.3).

    H̃ is crf(H*e) at the hinge that moves; the identity is extended to any hinge. Derivatives are
    along coordinates if the joint velocities are their rates, else along quasi-velocities. A robot
    may have at most 20 freedoms. For any number of freedoms the derivative along one direction w
    is C + C* of `coriolis_matrix(robot, q, w)`. Cost O(N² · depth).

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
    x = local(hinge_derivatives, inward(hinge_forces, jacobians(robot, q)))
    Z = np.full((robot.nv,) * 3, 0.0, object)
    for hinge, _, outer in blocks(x, "outer"):
        Z[:, :, hinge.v] = np.stack(outer, axis=2)
    for hinge, _, own in blocks(x, "own"):
        Z[hinge.v, :, hinge.v] = Z[hinge.v, :, hinge.v] + np.stack(own, axis=2)
    return Z + Z.swapaxes(0, 1)


def _check_size(what: str, robot: Robot, axes: int) -> None:
    """Raise if the robot has too many freedoms for an array with so many axes."""
    if robot.nv > MOST[axes]:
        raise ValueError(
            f"{what} of robot {robot.name!r} has {robot.nv}^{axes} numbers, too many to be traced: "
            f"it takes at most {MOST[axes]} freedoms; along a direction w the mass matrix changes "
            "by C + C* of coriolis_matrix(robot, q, w)"
        )


def _check_coordinates(what: str, robot: Robot) -> None:
    """Raise if joint velocities are not the rates of coordinates."""
    for i in np.flatnonzero(robot.rates < 0)[:1]:
        h = robot.hinge_of(int(i))
        raise ModelError(
            f"{what} needs rates of coordinates, but those of joint {h.name!r} ({h.kind.name}) are "
            "not: replace it by joints with one freedom each"
        )


@program(joint_space=True)
def christoffel(
    robot: Robot, q: ConfigurationLike, *, kind: ChristoffelKind = "first"
) -> Annotated[Array, "nv nv nv"]:
    """Christoffel symbols of the mass matrix, of the first or second kind ([DL] 2).

        [ij, l] = ½(∂_i𝓜_jl + ∂_j𝓜_il − ∂_l𝓜_ij),    {l, ij} = Σ 𝓜⁻¹_ls [ij, s]

    The velocity part of the bias force is C_l = Σ [ij, l] β_i β_j. Joint velocities must be rates
    of coordinates: no spherical, planar or free joints. Cost O(N³).

    Parameters
    ----------
    robot
        The robot, with at most 20 freedoms.
    q : (…, nq)
        Configuration.
    kind : "first" or "second"
        [ij, l] or {l, ij}.

    Returns
    -------
    (…, nv, nv, nv)
        The symbols, axes i, j, l.

    Raises
    ------
    ModelError
        If joint velocities are not rates of coordinates.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v = [0.3, -0.5], [1.0, 2.0]
    >>> C = np.einsum("ijl,i,j->l", pp.christoffel(robot, q), v, v)
    >>> np.allclose(C, pp.coriolis_product(robot, q, v, v))
    True
    """
    _check_coordinates("christoffel", robot)
    if kind not in CHRISTOFFEL_KINDS:
        raise ValueError(f"kind {kind!r} is not one of first, second")
    dM = np.asarray(mass_matrix_derivative(robot, q))
    first = 0.5 * (dM.transpose(2, 0, 1) + dM.transpose(0, 2, 1) - dM)
    if kind == "first":
        return first
    pivot = Pivot(np.asarray(mass_matrix(robot, q)))
    for row in np.ndindex(first.shape[:2]):
        first[row] = pivot.solve(first[row])
    return first


# ---- curvature ----------------------------------------------------------------------------------


def _pairs(n: int) -> list[tuple[int, int]]:
    """All pairs i ≤ j of n freedoms."""
    return list(combinations_with_replacement(range(n), 2))


Tensor = Annotated[Array, "nv nv nv nv"]
"""An array with four axes of length nv."""


def second_products(k: Record) -> dict[str, Any]:
    """Q = tr(NΠN*) for all pairs of fields N_ij = t̂_i t̂_j, i ≤ j: S = ω~_i ω~_j, a = ω_i × v_j"""
    t, M = k.J.columns, k.M
    moments = np.block([[M.pseudo, M.moment[:, None]], [M.moment, M.mass]])
    fields: list[Array] = []
    for i, j in _pairs(len(t)):
        spin = rot.skew(t[i].angular)
        S, a = spin @ rot.skew(t[j].angular), spin @ t[j].linear
        fields.append(np.concatenate([S, a[:, None]], axis=1))
    n = len(fields)
    Q = np.full((n, n), 0.0, object)
    for row in range(n):
        weighted = fields[row] @ moments
        for column in range(row + 1):
            Q[row, column] = Q[column, row] = (weighted * fields[column]).sum()
    return {"Q": Q}


def second_forms(robot: Robot, q: ConfigurationLike) -> tuple[Tensor, Tensor]:
    """B_ij,hk = Q_ij,hk − [ij, l] 𝓜⁻¹_lm [hk, m], the products of the normal parts of second
    derivatives (the second fundamental forms), and Q."""
    _check_coordinates("curvature", robot)
    _check_size("curvature", robot, 4)
    n, pairs = robot.nv, _pairs(robot.nv)
    zero = np.full((len(pairs), len(pairs)), 0.0, object)
    Q = total(local(second_products, jacobians(robot, q)), "Q", zero)
    first = np.asarray(christoffel(robot, q))
    place = np.zeros((n, n), int)
    symbols = np.full((n, len(pairs)), 0.0, object)
    for number, (i, j) in enumerate(pairs):
        place[i, j] = place[j, i] = number
        symbols[:, number] = first[i, j]
    tangential = Pivot(np.asarray(mass_matrix(robot, q))).congruence(symbols)
    every, shape = np.ix_(place.ravel(), place.ravel()), (n,) * 4
    return (Q - tangential)[every].reshape(shape), Q[every].reshape(shape)


@program(joint_space=True)
def curvature(robot: Robot, q: ConfigurationLike) -> Tensor:
    """The curvature tensor of the mass matrix, R_hijk = B_ik,hj − B_ij,hk ([DL] Lemma 2.2).

    B are the products of second fundamental forms. The tensor is also

        ½(∂_i∂_j𝓜_hk + ∂_h∂_k𝓜_ij − ∂_i∂_k𝓜_hj − ∂_h∂_j𝓜_ik) + {l, ij}[hk, l] − {l, ik}[hj, l]

    It is zero where coordinates exist in which the mass matrix is the identity, and has
    nv²(nv² − 1)/12 independent entries. Joint velocities must be rates of coordinates: no
    spherical, planar or free joints. Cost O(N⁵).

    Parameters
    ----------
    robot
        The robot, with at most 8 freedoms.
    q : (…, nq)
        Configuration.

    Returns
    -------
    (…, nv, nv, nv, nv)
        The tensor, axes h, i, j, k.

    Raises
    ------
    ModelError
        If joint velocities are not rates of coordinates.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> R = pp.curvature(pp.robots.double_pendulum(), [0.3, -0.5])
    >>> np.allclose(R, -R.swapaxes(0, 1)), np.allclose(R, 0.0)  # skew; curved
    (True, False)
    """
    return _curvature_tensor(second_forms(robot, q)[0])


def _curvature_tensor(B: Tensor) -> Tensor:
    """R_hijk = B_ik,hj − B_ij,hk"""
    return B.transpose(2, 0, 3, 1) - B.transpose(2, 0, 1, 3)


@program
def relative_curvature(robot: Robot, q: ConfigurationLike) -> Scalar | float:
    """The largest entry of the curvature tensor, relative to the second derivatives in it."""
    B, Q = second_forms(robot, q)
    R, n = _curvature_tensor(B), range(robot.nv)
    size = np.array([[np.sqrt(Q[i, j, i, j]) for j in n] for i in n], object).reshape(2 * (len(n),))
    parts = (
        np.abs(R[h, i, j, k]) / np.maximum(size[i, k] * size[h, j] + size[i, j] * size[h, k], TINY)
        for h, i, j, k in np.ndindex(R.shape)
        if h < i and j < k
    )
    return reduce(np.maximum, parts, 0.0)


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
        If joint velocities are not rates of coordinates.

    Examples
    --------
    >>> import phipsi as pp
    >>> pp.globally_diagonalizable(pp.robots.double_pendulum()).flat
    False
    """
    if not isinstance(samples, int | np.integer) or samples < 1:
        raise ValueError(f"globally_diagonalizable: samples is {samples!r}, needs at least one")
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
        If the mass matrix of the robot is curved.
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
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise ValueError(f"diagonalizing_coordinates: steps is {steps!r}, needs a whole number > 0")
    verdict = _verdict(robot)
    if not verdict.flat:
        raise ModelError(
            f"robot {robot.name!r} has a curved mass matrix ({verdict.curvature:.1e} relative, at "
            f"q = {np.round(verdict.q, 3).tolist()}): no coordinates make it one everywhere; use "
            "total_rates, which diagonalize it at every configuration"
        )
    x, W = transported(robot, q, start, steps=int(steps))
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
