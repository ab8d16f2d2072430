"""First-order changes of joint forces and accelerations when a motion is varied, for all freedoms
at once: what `phipsi.algorithms.derivatives` is made of.

Let one freedom of a hinge be displaced by a unit, or its rate increase by a unit: S = H*e. In axes
that are fixed to the bodies, the velocity V of the body of this hinge, and of every body outboard
of it, changes by δV and its acceleration by γ + ad(δV)V, with the same δV and γ for all of them:

    displaced   δV = ad(V⁺)S + (∂H*)β    γ = ad(α⁺)S + ad(V⁺)δV + (∂H*)β̇ + ad(V)(∂H*)β + (∂Ḣ*)β
    faster      δV = S                   γ = 2 ad(V⁺)S + ad(Δ)S + (∂H*)β + Ḣ*e

The force on each of these bodies changes by Mγ + BδV, Bx = crf(V)Mx + crf(x)MV − M ad(V)x. Bx
depends on the angular part ω of x alone: for points of mass m at r that move with u it is
[2 Σ m r × (ω × u); 2 ω × Σ m u].

If hinges are held (inverse dynamics), this gives δT = Hφ(Mφ*γ + Bφ*δV) and, because φ changes too,
Hφ̃ crf(S)f. If hinges are free (forward dynamics), (I − HψK)Hφ = Hψ and ψMφ* = ψP + Pφ̃* turn it into

    towards the root    ε = Hψ(Pγ + B_ψδV) + Hψ crf(S)f          B_ψ = B + Σ φτ̄B_ψφ*
    towards the tips    −K*ψ*γ − (…)δV
    δβ̇ = −(I − HψK)* D⁻¹ε + the terms towards the tips

Everything is expressed in the axes of the root of the tree, so that φ from body to body is a
translation without rotation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from phipsi.algorithms.mass_matrix import scale, whiten, whiten_adjoint
from phipsi.algorithms.newton_euler import against_gravity
from phipsi.compile import where
from phipsi.model import Robot
from phipsi.operators.algebra.local_action import hinge_map_rate
from phipsi.operators.lowering.steps import passive_riccati, riccati
from phipsi.programs import program
from phipsi.spatial import (
    Force,
    ForceBasis,
    HingeMap,
    Motion,
    MotionBasis,
    Pivot,
    Rotation,
    Transform,
)
from phipsi.spatial import rotation as rot
from phipsi.sweeps import (
    Children,
    Forest,
    Record,
    blocks,
    fold_to_root,
    forest,
    gather,
    inward,
    local,
    matrix,
    outward,
    product,
)
from phipsi.typing import (
    Array,
    ConfigurationLike,
    ExternalForces,
    JointMatrix,
    JointVector,
    JointVectorLike,
)

# ---- a motion -----------------------------------------------------------------------------------


def align(k: Record, parent: Record) -> dict[str, Any]:
    """φ = [[I, l~], [0, I]]: all in the axes of the root of the tree"""
    R, phi = parent.axes(k)
    h = k.hinge

    def turned(motion: Motion) -> Motion:
        return Motion(R @ motion.angular, R @ motion.linear)

    def axes(c: Record) -> tuple[Rotation | Array, Transform]:
        """The rotation of a child to the axes of the root, and φ to the child in these axes."""
        return R @ c.phi.R, Transform(rot.identity(), R @ c.phi.position)

    def rate(v: Array, w: Array) -> Motion:
        """Ḣ*w at the rates v."""
        return turned(h.kind.rate(h, k.q, v, w))

    def bend(u: Array, v: Array, w: Array) -> Motion:
        """The derivative of Ḣ*w, at the rates v, along u."""
        return turned(h.kind.bend(h, k.q, u, v, w))

    return {
        "axes": axes,
        "phi": phi,
        "H": HingeMap(MotionBasis(tuple(map(turned, k.H.T.columns)))),
        "M": k.M.rotated(R),
        "f_ext": Force(R @ k.f_ext.angular, R @ k.f_ext.linear),
        "rate": rate,
        "bend": bend,
    }


def root_axes(k: Record) -> tuple[Rotation | Array, Transform]:
    """The field `axes` of the world: a root keeps its own axes."""
    return Transform.identity().R, k.phi


def move(k: Record, parent: Record) -> dict[str, Any]:
    """V⁺ = φ*V_p,  V = V⁺ + H*β,  α⁺ = φ*α_p,  α = α⁺ + H*β̇ + a,  Mα + b   [BI] Alg 2.1"""
    V_plus, alpha_plus, Delta = k.phi.T @ parent.V, k.phi.T @ parent.alpha, k.H.T @ k.v
    V = V_plus + Delta
    alpha = alpha_plus + k.H.T @ k.qdd + V_plus.cross(Delta) + k.rate(k.v, k.v)
    p = k.M @ V
    load = k.M @ alpha + V.cross_force(p) - k.f_ext
    return {"V_plus": V_plus, "alpha_plus": alpha_plus, "Delta": Delta, "V": V, "alpha": alpha,
            "p": p, "load": load}  # fmt: skip


def aligned(
    robot: Robot,
    q: ConfigurationLike,
    *,
    external: ExternalForces | None = None,
    **vectors: JointVectorLike,
) -> Forest:
    """The bodies, each in the axes of the root of its tree."""
    return outward(align, forest(robot, q, external=external, **vectors), axes=root_axes)


def world_acceleration(robot: Robot) -> Motion:
    """The pseudo-acceleration −g of the world, which makes gravity act on every body."""
    return Motion(rot.zero(), against_gravity(robot))


def moved(x: Forest, qdd: JointVectorLike) -> Forest:
    """The bodies with velocities, accelerations and forces for the joint accelerations β̇."""
    return outward(move, x.given(qdd=qdd), V=Motion.zero(), alpha=world_acceleration(x.robot))


def net_forces(k: Record) -> dict[str, Any]:
    """x = T,  f = −(Mα + b) at β̇ = 0"""
    return {"x": k.tau, "f_ext": -k.load}


def joint_accelerations(x: Forest) -> JointVector:
    """β̇ = (I − HψK)*D⁻¹(I − HψK)(T − Hφ(Mφ*a + b)) of bodies that have `tau`, P, D and G."""
    x = local(net_forces, moved(x, np.zeros(x.robot.nv)))
    x = local(scale, inward(whiten, x))
    return gather(outward(whiten_adjoint, x, V=Motion.zero()), "y")


# ---- hinges -------------------------------------------------------------------------------------
#
# The unknown of a freedom is its force if it is held and its acceleration if it is free; the other
# of the two is given. `hinges_held`, `hinges_free` and `hinges_mixed` give each body, whose hinge
# has r freedoms, the same fields:
#
#   P        the inertia of the body with all bodies outboard: composite where their hinges are
#            held, articulated where they are free
#   yields   whether freedoms may be free
#   sign     r numbers: −1 where held, 1 where free
#   given    (r, r): ε of unit given values
#   X        (r, r): the diagonal block of X; the derivatives of the unknowns are X*ε + …
#   sent     r forces c towards the root: γ of an inboard hinge changes the unknowns by −c*γ
#   after    after(z, ε) = z⁺: the force that the hinge passes on towards the root


def hinges_held(k: Record, children: Children) -> dict[str, Any]:
    """P = M + Σ φPφ*: every hinge is held"""
    P = children.sum(lambda c: c.phi.congruence(c.P), k.M)
    U = P @ k.H.T

    def after(f: Force, e: Array) -> Force:
        return f

    return {
        "P": P, "yields": False, "sign": [-1.0] * len(k.A),
        "given": k.H.inner(U) + np.diag(k.A), "X": np.eye(len(k.A)).astype(object),
        "sent": ForceBasis(tuple(-u for u in U.columns)), "after": after,
    }  # fmt: skip


def hinges_free(k: Record, children: Children) -> dict[str, Any]:
    """P = M + Σ φP⁺φ*: every hinge is free   [BI] Alg 2.2"""
    new = riccati(k, children)
    D, G = new["D"], new["G"]
    units = np.eye(len(k.A)).astype(object)

    def after(f: Force, e: Array) -> Force:
        return f - G @ e

    return {
        **new, "yields": True, "sign": [1.0] * len(k.A), "given": -units, "X": -_solve(D, units),
        "sent": ForceBasis(tuple(G @ e for e in units)), "after": after,
    }  # fmt: skip


def hinges_mixed(k: Record, children: Children) -> dict[str, Any]:
    """P = M + Σ φP_p⁺φ*: active freedoms are held, passive ones free   [UA] (4.6)-(4.9)"""
    new = passive_riccati(k, children)
    D, G, p = new["D_p"], new["G_p"], k.passive
    units = np.eye(len(k.A)).astype(object)
    yielded = [-D.solve(e) for e in units]
    rows = [where(p, y, e + D.others(y)) for e, y in zip(units, yielded, strict=True)]
    X = np.stack(rows) if rows else units
    given = [where(s, -e, column) for s, e, column in zip(p, units, D.matrix.T, strict=True)]

    def after(f: Force, e: Array) -> Force:
        return f - G @ e

    return {
        **new, "P": new["P_p"], "D": D, "yields": True, "sign": where(p, 1.0, -1.0),
        "given": _matrix_of(given), "X": X, "sent": ForceBasis(tuple(G.U @ -row for row in X.T)),
        "after": after,
    }  # fmt: skip


def _matrix_of(columns: Sequence[Array | list[Any]]) -> Array:
    """The matrix of the given columns; (0, 0) of none."""
    return np.stack(columns, axis=1) if columns else np.zeros((0, 0), object)


def _solve(D: Pivot, block: Array) -> Array:
    """D⁻¹ applied to each column of a block."""
    return _matrix_of([D.solve(column) for column in block.T]).reshape(block.shape)


def coriolis(k: Record) -> ForceBasis:
    """B of unit rotations: 2[(tr N)I − N; −p~],  N = Σ m u r* = v h* + ω~Σ"""
    (w, v), p, h = (k.V.angular, k.V.linear), 2.0 * k.p.linear, 2.0 * k.M.moment
    N, trace = np.outer(v, h) + rot.skew(w) @ (2.0 * k.M.pseudo), v @ h
    units = rot.identity()
    moments = zip(units, N.T, strict=True)
    return ForceBasis(tuple(Force(trace * e - n, rot.cross(e, p)) for e, n in moments))


def composite_force(k: Record, children: Children) -> dict[str, Any]:
    """f = Mα + b + Σ φf,  B = B + Σ φτ̄Bφ*"""

    def passed(c: Record) -> ForceBasis:
        return c.phi @ ForceBasis(tuple(c.after(f, c.H @ f) for f in c.B.columns))

    return {
        "f": children.sum(lambda c: c.phi @ c.f, k.load),
        "B": children.sum(passed, coriolis(k)),
    }


# ---- variations ---------------------------------------------------------------------------------


def vary(k: Record) -> dict[str, Any]:
    """δV, γ of each freedom;  z = Pγ + BδV,  ε = Hz + (∂H)f,  z⁺ = z − Gε + crf(S)f

    Names end with q for a freedom that is displaced, with v for one that is faster.
    """
    S, units = k.H.T.columns, np.eye(len(k.A))
    each = list(zip(S, units, strict=True))
    dH_v = [k.rate(e, k.v) for e in units]
    dV = [k.V_plus.cross(s) + b for s, b in zip(S, dH_v, strict=True)]
    gamma_q = [
        k.alpha_plus.cross(s) + k.V_plus.cross(d) + k.V.cross(b)
        + k.rate(e, k.qdd) + k.bend(e, k.v, k.v)
        for (s, e), d, b in zip(each, dV, dH_v, strict=True)
    ]  # fmt: skip
    # γ = 2δV + ad(Δ)S − (∂H*)β + Ḣ*e = 2δV + H*[β, e]. A hinge whose motions are no group has
    # [β, e] = 0; of the others H*[β, e] = ad(Δ)S, where H* is constant, or else Ḣ*e.
    kind = k.hinge.kind
    swirl = [k.rate(k.v, e) if kind.forward else k.Delta.cross(s) for s, e in each]
    gamma_v = [d * 2.0 + c if kind.group else d * 2.0 for d, c in zip(dV, swirl, strict=True)]
    z_q = [k.P @ g + k.B @ d.angular for g, d in zip(gamma_q, dV, strict=True)]
    z_v = [k.P @ g + k.B @ s.angular for g, s in zip(gamma_v, S, strict=True)]
    dH_f = _matrix_of([[k.rate(e, d).dot(k.f) for d in units] for e in units])
    e_q, e_v = (_matrix_of([k.H @ f for f in z]) for z in (z_q, z_v))
    e_q = e_q + dH_f
    up_q = (k.after(z, e) + s.cross_force(k.f) for z, e, s in zip(z_q, e_q.T, S, strict=True))
    up_v = (k.after(z, e) for z, e in zip(z_v, e_v.T, strict=True))
    W = ForceBasis(tuple(Force(rot.vector(*map(s.dot, k.B.columns)), rot.zero()) for s in S))
    w = ForceBasis(tuple(W @ -column for column in k.X.T))
    return {"dV": dV, "gamma_q": gamma_q, "gamma_v": gamma_v, "e_q": e_q, "e_v": e_v, "W": W,
            "up": (k.sent, ForceBasis(tuple(up_q)), ForceBasis(tuple(up_v)), w)}  # fmt: skip


Block = Annotated[Array, "inboard outboard"]
"""The block of a matrix in the rows of a hinge and the columns of one outboard of it."""


class PathBlocks(NamedTuple):
    """The blocks of a hinge and one outboard of it."""

    X: Block
    """Of the factor X = D⁻¹HψK."""
    given: Block
    """HψK, which X multiplies for the derivatives by given values."""
    q: Block
    """ε by displacements of the outboard hinge."""
    v: Block
    """ε by its rates."""
    low_q: Annotated[Array, "outboard inboard"]
    """The terms towards the tips: unknowns of the outboard hinge by displacements of this one."""
    low_v: Annotated[Array, "outboard inboard"]
    """The same by rates of this one."""


def path_blocks(
    k: Record, parts: tuple[ForceBasis, ...]
) -> tuple[PathBlocks, tuple[ForceBasis, ...]]:
    """ε = Hz,  z⁺ = z − Gε of each force;  −(γ*c + δV*w) for the hinge that sent c and w"""
    c, q, v, w = parts
    given, e_q, e_v = k.H @ c, k.H @ q, k.H @ v
    low_q, low_v = (
        np.array([
            [-(g.dot(f) + d.angular @ moment.angular) for g, d in zip(gamma, dV, strict=True)]
            for f, moment in zip(c.columns, w.columns, strict=True)
        ], object).reshape(given.T.shape)
        for gamma, dV in ((k.gamma_q, k.dV), (k.gamma_v, k.H.T.columns))
    )  # fmt: skip
    if not k.yields:
        return PathBlocks(np.zeros(given.shape), given, e_q, e_v, low_q, low_v), parts
    X = _solve(k.D, given)
    passed = (
        ForceBasis(tuple(k.after(f, e) for f, e in zip(basis.columns, block.T, strict=True)))
        for basis, block in ((c, given), (q, e_q), (v, e_v))
    )
    moments = w - ForceBasis(tuple(k.W @ column for column in X.T))
    return PathBlocks(X, given, e_q, e_v, low_q, low_v), (*passed, moments)


class Derivatives(NamedTuple):
    """Derivatives of the unknowns of all freedoms (rows): of the force of a freedom that is held,
    of the acceleration of one that is free."""

    q: JointMatrix
    """By displacements in the tangent space of configurations."""
    v: JointMatrix
    """By joint velocities."""
    given: JointMatrix
    """By the given accelerations of held freedoms and forces of free ones."""


def derivatives_at(x: Forest, qdd: JointVectorLike) -> Derivatives:
    """X*ε and the terms towards the tips, at the joint accelerations β̇, of bodies that are
    `aligned` and whose hinges are held, free or mixed."""
    x = local(vary, inward(composite_force, moved(x, qdd)))
    on_paths = fold_to_root(lambda k: k.up, path_blocks, x)

    def upper(own: str, name: str) -> JointMatrix:
        return matrix(x, [*blocks(x, own), *((a, i, getattr(m, name)) for a, i, m in on_paths)])

    def lower(name: str) -> JointMatrix:
        return matrix(x, [(i, a, getattr(m, name)) for a, i, m in on_paths])

    sign, X = gather(x, "sign"), upper("X", "X")
    own = matrix(x, blocks(x, "given"))
    others = matrix(x, [(a, i, m.given) for a, i, m in on_paths])
    given = product(X, own + others * sign, np.full(X.shape, 0.0, object))
    return Derivatives(
        product(X, upper("e_q", "q"), lower("low_q")),
        product(X, upper("e_v", "v"), lower("low_v")),
        np.where(np.triu(np.ones(X.shape, bool)), given, given.T * np.outer(sign, sign)),
    )


# ---- one variation ------------------------------------------------------------------------------


def vary_motion(k: Record, parent: Record) -> dict[str, Any]:
    """δV = φ*δV_p + ad(V⁺)S + (∂H*)β + H*δβ,  γ = φ*γ_p + …,  Mα + b,  Mγ + BδV"""
    h, q, e, w = k.hinge, k.q, k.dq, k.dv
    V_plus, alpha_plus, Delta = k.phi.T @ parent.V, k.phi.T @ parent.alpha, k.H.T @ k.v
    V = V_plus + Delta
    alpha = alpha_plus + k.H.T @ k.qdd + V_plus.cross(Delta) + k.H_rate(k.v)
    S, dV_v = k.H.T @ e, k.H.T @ w
    dH_v = h.kind.rate(h, q, e, k.v)
    dV_q = V_plus.cross(S) + dH_v
    gamma_q = (
        alpha_plus.cross(S) + V_plus.cross(dV_q) + V.cross(dH_v)
        + h.kind.rate(h, q, e, k.qdd) + h.kind.bend(h, q, e, k.v, k.v)
    )  # fmt: skip
    gamma_v = (V_plus * 2.0 + Delta).cross(dV_v) + h.kind.rate(h, q, w, k.v) + k.H_rate(w)
    dV = k.phi.T @ parent.dV + dV_q + dV_v
    gamma = k.phi.T @ parent.gamma + gamma_q + gamma_v
    p = k.M @ V
    g = k.M @ (gamma - V.cross(dV)) + V.cross_force(k.M @ dV) + dV.cross_force(p)
    load = k.M @ alpha + V.cross_force(p) - k.f_ext
    return {"V": V, "alpha": alpha, "dV": dV, "gamma": gamma, "S": S, "load": load, "g": g}


def vary_force(k: Record, children: Children) -> dict[str, Any]:
    """f = Mα + b + Σ φf,  δf = Mγ + BδV + Σ φ(δf + crf(S)f),  δT = Hδf + (∂H)f"""
    f = children.sum(lambda c: c.phi @ c.f, k.load)
    df = children.sum(lambda c: c.phi @ (c.df + c.S.cross_force(c.f)), k.g)
    dH = hinge_map_rate(k, k.dq)
    return {"f": f, "df": df, "dT": k.H @ df + HingeMap(dH) @ f}


@program(joint_space=True)
def tangent(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    qdd: JointVectorLike,
    dq: JointVectorLike,
    dv: JointVectorLike,
    *,
    external: ExternalForces | None = None,
) -> JointVector:
    """The change δT of inverse dynamics by a displacement dq and a change dv of the rates.

    Cost O(N).
    """
    x = forest(robot, q, v=v, qdd=qdd, dq=dq, dv=dv, external=external)
    still = Motion.zero()
    x = outward(vary_motion, x, V=still, alpha=world_acceleration(robot), dV=still, gamma=still)
    return gather(inward(vary_force, x), "dT")
