"""How the mass matrix varies over configurations, and whether coordinates make it one ([DL] 2, 6).

𝓜 is the metric of point masses in flat space, so its curvature is a difference of products of
second fundamental forms (Gauss). With t the columns of a body's Jacobian, N_ij = t̂_i t̂_j, inboard
freedom first, is the field of the second derivatives of its points, and the product of two such is
Q_ij,hk = Σ tr(N_ij Π N_hk*), Π the moments of the body's mass.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms.mass_matrix import mass_matrix
from phipsi.compile import linalg, repeat
from phipsi.model import ModelError, Robot
from phipsi.operators.algebra.local_action import hinge_map_rate
from phipsi.programs import program
from phipsi.spatial import ForceBasis, HingeMap, Motion, MotionBasis, Pivot, SingularError
from phipsi.spatial import rotation as rot
from phipsi.sweeps import Children, Forest, blocks, forest, inward, local, outward, total

MOST = {3: 20, 4: 8}
"""Freedoms up to which arrays with so many axes of them are traced: they take some 20 s to
compile."""
FLAT, TINY = 1e-9, 1e-300
"""A curvature below so much of the terms that it is the difference of is rounding."""
LOST = 1e-6
"""Where W*W and 𝓜 differ by more, relatively, the quadrature has lost its way."""

# ---- sensitivities ------------------------------------------------------------------------------


def jacobians(robot: Robot, q: Any) -> Forest:
    """The bodies with J, how each moves by every unit rate, and J⁺, how the hinge's inboard side
    does, seen there: nv motions each, in the body's frame."""
    x = forest(robot, q)
    names = [f"t{i}" for i in range(robot.nv)]
    for name, unit in zip(names, np.eye(robot.nv), strict=True):

        def rigid(k: Any, parent: Any, name: str = name) -> dict[str, Any]:
            """t⁺ = φ*t_p,  t = t⁺ + H*e"""
            plus = k.phi.T @ getattr(parent, name)
            return {f"{name}_plus": plus, name: plus + k.H.T @ k.unit}

        x = outward(rigid, x.given(unit=unit), **{name: Motion.zero()})

    def together(k: Any) -> dict[str, Any]:
        """J = φ*H*,  J⁺ = φ̃*H*"""
        J = MotionBasis(tuple(getattr(k, name) for name in names))
        return {"J": J, "J_plus": MotionBasis(tuple(getattr(k, f"{name}_plus") for name in names))}

    return local(together, x)


def carried(k: Any, children: Children) -> dict[str, Any]:
    """F = MJ + Σ φF = φMφ*H*"""
    return {"F": children.sum(lambda c: c.phi @ c.F, k.M @ k.J)}


def sensitive(k: Any) -> dict[str, Any]:
    """J⁺*H̃F, and (∂H)F in the rows of the hinge, for every freedom of it"""
    turned = [ForceBasis(tuple(map(h.cross_force, k.F.columns))) for h in k.H.T.columns]
    rates = [hinge_map_rate(k, unit) for unit in np.eye(len(k.A))]
    return {
        "outer": [HingeMap(k.J_plus) @ F for F in turned],
        "own": [HingeMap(H_dot) @ k.F for H_dot in rates],
    }


@program(joint_space=True)
def mass_matrix_derivative(robot: Robot, q: Any) -> Any:
    """∂𝓜 along every freedom, the last axis: Z + Z*, Z = Hφ̃H̃φMφ*H* + (∂H)φMφ*H*, where H̃ is
    crf(H*e) at the hinge that moves ([DL] Identity 6.3, for any hinge).

    Along coordinates where rates are those of coordinates, else along quasi-velocities. Returns
    (…, nv, nv, nv), symmetric in the first two; at most 20 freedoms. Along one direction w it is
    C + C* of `coriolis_matrix(robot, q, w)`, for any number. Cost O(N² · depth).
    """
    _check_size("mass_matrix_derivative", robot, 3)
    x = local(sensitive, inward(carried, jacobians(robot, q)))
    Z = np.full((robot.nv,) * 3, 0.0, object)
    for hinge, _, outer in blocks(x, "outer"):
        Z[:, :, hinge.v] = np.stack(outer, axis=2)
    for hinge, _, own in blocks(x, "own"):
        Z[hinge.v, :, hinge.v] = Z[hinge.v, :, hinge.v] + np.stack(own, axis=2)
    return Z + Z.swapaxes(0, 1)


def _check_size(what: str, robot: Robot, axes: int) -> None:
    if robot.nv > MOST[axes]:
        raise ValueError(
            f"{what} of robot {robot.name!r} has {robot.nv}^{axes} numbers, too many to be traced: "
            f"it takes at most {MOST[axes]} freedoms; along a direction w the mass matrix changes "
            "by C + C* of coriolis_matrix(robot, q, w)"
        )


def _check_coordinates(what: str, robot: Robot) -> None:
    """Refuse joint rates that are no rates of coordinates."""
    for i in np.flatnonzero(robot.rates < 0)[:1]:
        h = robot.hinge_of(int(i))
        raise ModelError(
            f"{what} needs rates of coordinates, but those of joint {h.name!r} ({h.kind.name}) are "
            "not: replace it by joints with one freedom each"
        )


@program(joint_space=True)
def christoffel(robot: Robot, q: Any, *, kind: str = "first") -> Any:
    """Christoffel symbols of the mass matrix, [ij, l] = ½(∂_i𝓜_jl + ∂_j𝓜_il − ∂_l𝓜_ij), or of the
    second `kind` {l, ij} = Σ 𝓜⁻¹_ls [ij, s] ([DL] 2).

    The velocity part of the bias force is C_l = Σ [ij, l] β_i β_j. Needs rates of coordinates: no
    spherical, planar or free joints. Returns (…, nv, nv, nv), axes i, j, l. Cost O(N³).
    """
    _check_coordinates("christoffel", robot)
    if kind not in ("first", "second"):
        raise ValueError(f"kind {kind!r} is not one of first, second")
    by = np.asarray(mass_matrix_derivative(robot, q))
    first = 0.5 * (by.transpose(2, 0, 1) + by.transpose(0, 2, 1) - by)
    if kind == "first":
        return first
    pivot = Pivot(np.asarray(mass_matrix(robot, q)))
    for row in np.ndindex(first.shape[:2]):
        first[row] = pivot.solve(first[row])
    return first


# ---- curvature ----------------------------------------------------------------------------------


def _pairs(n: int) -> list[tuple[int, int]]:
    return list(combinations_with_replacement(range(n), 2))


def second_products(k: Any) -> dict[str, Any]:
    """Q = tr(NΠN*) for all pairs of fields N_ij = t̂_i t̂_j, i ≤ j: S = ω~_i ω~_j, a = ω_i × v_j"""
    t, M = k.J.columns, k.M
    moments = np.block([[M.pseudo, M.moment[:, None]], [M.moment, M.mass]])
    fields = []
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


def second_forms(robot: Robot, q: Any) -> tuple[Any, Any]:
    """B_ij,hk = Q_ij,hk − [ij, l] 𝓜⁻¹_lm [hk, m], the products of what is normal in the second
    derivatives, and Q; (nv, nv, nv, nv) each."""
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
def curvature(robot: Robot, q: Any) -> Any:
    """The curvature tensor of the mass matrix, zero where coordinates exist in which it is one
    ([DL] Lemma 2.2): R_hijk = B_ik,hj − B_ij,hk, B the products of second fundamental forms, which
    is ½(∂_i∂_j𝓜_hk + ∂_h∂_k𝓜_ij − ∂_i∂_k𝓜_hj − ∂_h∂_j𝓜_ik) + {l, ij}[hk, l] − {l, ik}[hj, l].

    It has nv²(nv² − 1)/12 independent entries. Needs rates of coordinates: no spherical, planar or
    free joints, and at most 8 freedoms. Returns (…, nv, nv, nv, nv), axes h, i, j, k. Cost O(N⁵).
    """
    return _curved(second_forms(robot, q)[0])


def _curved(B: Any) -> Any:
    """R_hijk = B_ik,hj − B_ij,hk"""
    return B.transpose(2, 0, 3, 1) - B.transpose(2, 0, 1, 3)


@program
def bending(robot: Robot, q: Any) -> Any:
    """The largest entry of the curvature over the lengths of the second derivatives in it."""
    B, Q = second_forms(robot, q)
    R, n = _curved(B), range(robot.nv)
    size = np.array([[np.sqrt(Q[i, j, i, j]) for j in n] for i in n], object).reshape(2 * (len(n),))
    parts = (
        np.abs(R[h, i, j, k]) / np.maximum(size[i, k] * size[h, j] + size[i, j] * size[h, k], TINY)
        for h, i, j, k in np.ndindex(R.shape)
        if h < i and j < k
    )
    return reduce(np.maximum, parts, 0.0)


class Flatness(NamedTuple):
    """Whether coordinates exist in which the mass matrix is one everywhere, and why not."""

    flat: bool
    curvature: float
    """The largest entry of the curvature tensor over the terms that it is the difference of."""
    q: np.ndarray
    """Where that is, (nq,)."""


def globally_diagonalizable(robot: Robot, samples: int = 64, rng: Any = 0) -> Flatness:
    """Is the mass matrix flat, so that one change of coordinates diagonalizes the dynamics
    everywhere ([DL] Lemma 2.2)? Asked of the curvature at random configurations.

    >>> import phipsi as pp
    >>> pp.globally_diagonalizable(pp.robots.double_pendulum()).flat
    False
    """
    if not isinstance(samples, int | np.integer) or samples < 1:
        raise ValueError(f"globally_diagonalizable: samples is {samples!r}, needs at least one")
    q, _ = robot.random_state(rng, (samples,))
    relative = np.asarray(bending(robot, q))
    worst = int(relative.argmax())
    return Flatness(bool(relative[worst] <= FLAT), float(relative[worst]), q[worst])


class Diagonalizing(NamedTuple):
    """Coordinates ϑ (…, nv) in which the mass matrix is one, and W = ∂ϑ/∂q (…, nv, nv), W*W = 𝓜."""

    coordinates: Any
    W: Any


@program(shapes={"start": ("nq",)})
def transported(robot: Robot, q: Any, start: Any, *, steps: int) -> Diagonalizing:
    """ϑ = ∫ W dq and dW = W {·, ·dq} along the straight way from start, by Runge's and Kutta's."""
    way, h = q - start, 1.0 / steps

    def turn(s: Any) -> Any:
        """A_lj = {l, ij} dq_i"""
        symbols = christoffel(robot, start + s * way, kind="second")
        return np.tensordot(way, symbols, (0, 0)).T

    def step(state: Any, k: Any) -> Any:
        W, x = state
        begin, middle, end = (turn(h * (k + c)) for c in (0.0, 0.5, 1.0))
        k1 = W @ begin
        k2 = (W + 0.5 * h * k1) @ middle
        k3 = (W + 0.5 * h * k2) @ middle
        k4 = (W + h * k3) @ end
        mean = W + (h / 6.0) * (k1 + k2 + k3)
        return (W + (h / 6.0) * (k1 + 2.0 * (k2 + k3) + k4), x + h * (mean @ way)), x

    frame = linalg.cholesky(mass_matrix(robot, start)).T
    (W, x), _ = repeat(steps, step, (frame, np.zeros(robot.nv)))
    return Diagonalizing(x, W)


transported.name = "diagonalizing_coordinates"  # what its errors say


_verdict = lru_cache(maxsize=64)(globally_diagonalizable)


def diagonalizing_coordinates(
    robot: Robot, q: Any, start: Any, *, steps: int = 256
) -> Diagonalizing:
    """Coordinates in which the mass matrix is one everywhere, where there are such: ϑ = ∫ W dq with
    W*W = 𝓜 carried parallel, dW = W {·, ·dq}, by quadrature from `start`, where ϑ = 0
    ([DL] Lemma 2.1).

    The motion is ϑ̈ = W⁻*(T − C_g) without a Coriolis term. Of fourth order in 1/`steps`. Refuses a
    robot whose mass matrix is curved, and a straight way to q that passes where it is singular (in
    a batch such rows are NaN). q and start are (…, nq); returns ϑ (…, nv) [kg^½·m] and W
    (…, nv, nv).
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
    return Diagonalizing(
        np.where(lost[..., None], np.nan, x), np.where(lost[..., None, None], np.nan, W)
    )
