"""How forces and accelerations answer to variations of a motion, all freedoms at once.

Let a freedom of a hinge be displaced, or its rate change, by a unit: S = H*e. In axes that bodies
carry along, its body and all that hangs on it get the same δV, and the same γ besides ad(δV)V:

    displaced   δV = ad(V⁺)S + (∂H*)β    γ = ad(α⁺)S + ad(V⁺)δV + (∂H*)β̇ + ad(V)(∂H*)β + (∂Ḣ*)β
    faster      δV = S                   γ = 2 ad(V⁺)S + ad(Δ)S + (∂H*)β + Ḣ*e

Every body takes the force Mγ + BδV more, Bx = crf(V)Mx + crf(x)MV − M ad(V)x. B sees rotations
alone: of points with masses m at r that move with u it is [2 Σ m r × (ω × u); 2 ω × Σ m u].

With hinges held that is δT = Hφ(Mφ*γ + Bφ*δV) and, φ changing too, Hφ̃ crf(S)f. Hinges that are
free answer: (I − HψK)Hφ = Hψ and ψMφ* = ψP + Pφ̃* turn it into

    towards the root    ε = Hψ(Pγ + B_ψδV) + Hψ crf(S)f          B_ψ = B + Σ φτ̄B_ψφ*
    towards the tips    −K*ψ*γ − (…)δV
    δβ̇ = −(I − HψK)* D⁻¹ε + those

Every body is seen in the axes of the root of its tree: between bodies φ moves, and turns nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms.mass_matrix import scale, whiten, whiten_adjoint
from phipsi.algorithms.newton_euler import against_gravity
from phipsi.compile import where
from phipsi.model import Robot
from phipsi.operators.algebra.local_action import hinge_map_rate
from phipsi.operators.lowering.steps import passive_riccati, riccati
from phipsi.programs import program
from phipsi.spatial import Force, ForceBasis, HingeMap, Motion, MotionBasis, Transform
from phipsi.spatial import rotation as rot
from phipsi.sweeps import (
    Children,
    Forest,
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

# ---- a motion -----------------------------------------------------------------------------------


def align(k: Any, parent: Any) -> dict[str, Any]:
    """All in the axes of the tree's root: φ = [[I, l~], [0, I]]"""
    R, phi = parent.axes(k)
    h = k.hinge

    def turned(motion: Motion) -> Motion:
        return Motion(R @ motion.angular, R @ motion.linear)

    return {
        "axes": lambda c: (R @ c.phi.R, Transform(rot.identity(), R @ c.phi.position)),
        "phi": phi,
        "H": HingeMap(MotionBasis(tuple(map(turned, k.H.T.columns)))),
        "M": k.M.rotated(R),
        "f_ext": Force(R @ k.f_ext.angular, R @ k.f_ext.linear),
        "rate": lambda v, w: turned(h.kind.rate(h, k.q, v, w)),
        "bend": lambda u, v, w: turned(h.kind.bend(h, k.q, u, v, w)),
    }


def root_axes(k: Any) -> Any:
    """A root is seen in its own axes."""
    return Transform.identity().R, k.phi


def move(k: Any, parent: Any) -> dict[str, Any]:
    """V⁺ = φ*V_p,  V = V⁺ + H*β,  α⁺ = φ*α_p,  α = α⁺ + H*β̇ + a,  Mα + b   [BI] Alg 2.1"""
    V_plus, alpha_plus, Delta = k.phi.T @ parent.V, k.phi.T @ parent.alpha, k.H.T @ k.v
    V = V_plus + Delta
    alpha = alpha_plus + k.H.T @ k.qdd + V_plus.cross(Delta) + k.rate(k.v, k.v)
    p = k.M @ V
    load = k.M @ alpha + V.cross_force(p) - k.f_ext
    return {"V_plus": V_plus, "alpha_plus": alpha_plus, "Delta": Delta, "V": V, "alpha": alpha,
            "p": p, "load": load}  # fmt: skip


def aligned(robot: Robot, q: Any, *, external: Any = None, **vectors: Any) -> Forest:
    """The bodies, all in the axes of the roots of their trees."""
    return outward(align, forest(robot, q, external=external, **vectors), axes=root_axes)


def upwards(robot: Robot) -> Motion:
    """The pseudo-acceleration of the world, which makes gravity act."""
    return Motion(rot.zero(), against_gravity(robot))


def moved(x: Forest, qdd: Any) -> Forest:
    """The bodies in motion with the joint accelerations."""
    return outward(move, x.given(qdd=qdd), V=Motion.zero(), alpha=upwards(x.robot))


def net_forces(k: Any) -> dict[str, Any]:
    """x = T,  f = −(Mα + b) at β̇ = 0"""
    return {"x": k.tau, "f_ext": -k.load}


def accelerated(x: Forest) -> Any:
    """β̇ = (I − HψK)*D⁻¹(I − HψK)(T − Hφ(Mφ*a + b)) of bodies with `tau` and P."""
    x = local(net_forces, moved(x, np.zeros(x.robot.nv)))
    x = local(scale, inward(whiten, x))
    return gather(outward(whiten_adjoint, x, V=Motion.zero()), "y")


# ---- hinges -------------------------------------------------------------------------------------


def held(k: Any, children: Children) -> dict[str, Any]:
    """P = M + Σ φPφ*: no hinge gives way"""
    P = children.sum(lambda c: c.phi.congruence(c.P), k.M)
    U = P @ k.H.T
    return {
        "P": P, "yields": False, "sign": [-1.0] * len(k.A),
        "given": k.H.inner(U) + np.diag(k.A), "X": np.eye(len(k.A)).astype(object),
        "sent": ForceBasis(tuple(-u for u in U.columns)), "after": lambda f, e: f,
    }  # fmt: skip


def freed(k: Any, children: Children) -> dict[str, Any]:
    """P = M + Σ φP⁺φ*: all hinges give way   [BI] Alg 2.2"""
    new = riccati(k, children)
    D, G = new["D"], new["G"]
    units = np.eye(len(k.A)).astype(object)
    return {
        **new, "yields": True, "sign": [1.0] * len(k.A), "given": -units, "X": -_solved(D, units),
        "sent": ForceBasis(tuple(G @ e for e in units)), "after": lambda f, e: f - G @ e,
    }  # fmt: skip


def parted(k: Any, children: Children) -> dict[str, Any]:
    """P = M + Σ φP_p⁺φ*: passive hinges give way   [UA] (4.6)-(4.9)"""
    new = passive_riccati(k, children)
    D, G, p = new["D_p"], new["G_p"], k.passive
    units = np.eye(len(k.A)).astype(object)
    yielded = [-D.solve(e) for e in units]
    rows = [where(p, y, e + D.others(y)) for e, y in zip(units, yielded, strict=True)]
    X = np.stack(rows) if rows else units
    own = [where(s, -e, column) for s, e, column in zip(p, units, D.matrix.T, strict=True)]
    return {
        **new, "P": new["P_p"], "D": D, "yields": True, "sign": where(p, 1.0, -1.0),
        "given": _columns(own), "X": X, "sent": ForceBasis(tuple(G.U @ -row for row in X.T)),
        "after": lambda f, e: f - G @ e,
    }  # fmt: skip


def _columns(columns: list[Any]) -> Any:
    return np.stack(columns, axis=1) if columns else np.zeros((0, 0), object)


def _solved(D: Any, block: Any) -> Any:
    return _columns([D.solve(column) for column in block.T]).reshape(block.shape)


def coriolis(k: Any) -> ForceBasis:
    """B of unit rotations: 2[(tr N)I − N; −p~],  N = Σ m u r* = v h* + ω~Σ"""
    (w, v), p, h = (k.V.angular, k.V.linear), 2.0 * k.p.linear, 2.0 * k.M.moment
    N, trace = np.outer(v, h) + rot.skew(w) @ (2.0 * k.M.pseudo), v @ h
    units = rot.identity()
    moments = zip(units, N.T, strict=True)
    return ForceBasis(tuple(Force(trace * e - n, rot.cross(e, p)) for e, n in moments))


def composite_force(k: Any, children: Children) -> dict[str, Any]:
    """f = Mα + b + Σ φf,  B = B + Σ φτ̄Bφ*"""

    def passed(c: Any) -> ForceBasis:
        return c.phi @ ForceBasis(tuple(c.after(f, c.H @ f) for f in c.B.columns))

    return {
        "f": children.sum(lambda c: c.phi @ c.f, k.load),
        "B": children.sum(passed, coriolis(k)),
    }


# ---- variations ---------------------------------------------------------------------------------


def vary(k: Any) -> dict[str, Any]:
    """δV, γ of each freedom;  z = Pγ + BδV,  ε = Hz + (∂H)f,  z⁺ = z − Gε + crf(S)f"""
    S, units = k.H.T.columns, np.eye(len(k.A))
    each = list(zip(S, units, strict=True))
    bent = [k.rate(e, k.v) for e in units]
    dV = [k.V_plus.cross(s) + b for s, b in zip(S, bent, strict=True)]
    slow = [
        k.alpha_plus.cross(s) + k.V_plus.cross(d) + k.V.cross(b)
        + k.rate(e, k.qdd) + k.bend(e, k.v, k.v)
        for (s, e), d, b in zip(each, dV, bent, strict=True)
    ]  # fmt: skip
    group = k.hinge.kind.group  # else ad(Δ)S = (∂H*)β − Ḣ*e, which is zero but for universal hinges
    fast = [d * 2.0 + k.Delta.cross(s) if group else d * 2.0 for d, s in zip(dV, S, strict=True)]
    z_q = [k.P @ g + k.B @ d.angular for g, d in zip(slow, dV, strict=True)]
    z_v = [k.P @ g + k.B @ s.angular for g, s in zip(fast, S, strict=True)]
    own = _columns([[k.rate(e, d).dot(k.f) for d in units] for e in units])
    e_q, e_v = (_columns([k.H @ f for f in z]) for z in (z_q, z_v))
    e_q = e_q + own
    up_q = (k.after(z, e) + s.cross_force(k.f) for z, e, s in zip(z_q, e_q.T, S, strict=True))
    up_v = (k.after(z, e) for z, e in zip(z_v, e_v.T, strict=True))
    W = ForceBasis(tuple(Force(rot.vector(*map(s.dot, k.B.columns)), rot.zero()) for s in S))
    w = ForceBasis(tuple(W @ -column for column in k.X.T))
    return {"dV": dV, "slow": slow, "fast": fast, "e_q": e_q, "e_v": e_v, "W": W,
            "up": (k.sent, ForceBasis(tuple(up_q)), ForceBasis(tuple(up_v)), w)}  # fmt: skip


class Met(NamedTuple):
    """What a hinge finds of what comes from another outboard: the factor X of D⁻¹(I − HψK), what it
    multiplies, and what the other's own rows get."""

    X: Any
    given: Any
    q: Any
    v: Any
    low_q: Any
    low_v: Any


def meet(k: Any, parts: tuple[ForceBasis, ...]) -> tuple[Met, tuple[ForceBasis, ...]]:
    """ε = Hz,  z⁺ = z − Gε of each force;  −(γ*c + δV*w) for those who send c and w"""
    c, q, v, w = parts
    given, e_q, e_v = k.H @ c, k.H @ q, k.H @ v
    low_q, low_v = (
        np.array([
            [-(g.dot(f) + d.angular @ moment.angular) for g, d in zip(gamma, dV, strict=True)]
            for f, moment in zip(c.columns, w.columns, strict=True)
        ], object).reshape(given.T.shape)
        for gamma, dV in ((k.slow, k.dV), (k.fast, k.H.T.columns))
    )  # fmt: skip
    if not k.yields:
        return Met(np.zeros(given.shape), given, e_q, e_v, low_q, low_v), parts
    X = _solved(k.D, given)
    on = (
        ForceBasis(tuple(k.after(f, e) for f, e in zip(basis.columns, block.T, strict=True)))
        for basis, block in ((c, given), (q, e_q), (v, e_v))
    )
    felt = w - ForceBasis(tuple(k.W @ column for column in X.T))
    return Met(X, given, e_q, e_v, low_q, low_v), (*on, felt)


class Answers(NamedTuple):
    """Of the unknown of each freedom, by rows: its derivatives along q, v and what is given."""

    q: Any
    v: Any
    given: Any


def answered(x: Forest, qdd: Any) -> Answers:
    """X*ε and what goes towards the tips, of bodies that move with the accelerations and whose
    hinges are held, freed or parted."""
    x = local(vary, inward(composite_force, moved(x, qdd)))
    met = fold_to_root(lambda k: k.up, meet, x)

    def upper(own: str, name: str) -> Any:
        return matrix(x, [*blocks(x, own), *((a, i, getattr(m, name)) for a, i, m in met)])

    def lower(name: str) -> Any:
        return matrix(x, [(i, a, getattr(m, name)) for a, i, m in met])

    sign, X = gather(x, "sign"), upper("X", "X")
    own, others = matrix(x, blocks(x, "given")), matrix(x, [(a, i, m.given) for a, i, m in met])
    given = product(X, own + others * sign, np.full(X.shape, 0.0, object))
    return Answers(
        product(X, upper("e_q", "q"), lower("low_q")),
        product(X, upper("e_v", "v"), lower("low_v")),
        np.where(np.triu(np.ones(X.shape, bool)), given, given.T * np.outer(sign, sign)),
    )


# ---- one variation ------------------------------------------------------------------------------


def vary_motion(k: Any, parent: Any) -> dict[str, Any]:
    """δV = φ*δV_p + ad(V⁺)S + (∂H*)β + H*δβ,  γ = φ*γ_p + …,  Mα + b,  Mγ + BδV"""
    h, q, e, w = k.hinge, k.q, k.dq, k.dv
    V_plus, alpha_plus, Delta = k.phi.T @ parent.V, k.phi.T @ parent.alpha, k.H.T @ k.v
    V = V_plus + Delta
    alpha = alpha_plus + k.H.T @ k.qdd + V_plus.cross(Delta) + k.H_rate(k.v)
    S, faster = k.H.T @ e, k.H.T @ w
    bent = h.kind.rate(h, q, e, k.v)
    slower = V_plus.cross(S) + bent
    slow = (
        alpha_plus.cross(S) + V_plus.cross(slower) + V.cross(bent)
        + h.kind.rate(h, q, e, k.qdd) + h.kind.bend(h, q, e, k.v, k.v)
    )  # fmt: skip
    fast = (V_plus * 2.0 + Delta).cross(faster) + h.kind.rate(h, q, w, k.v) + k.H_rate(w)
    dV = k.phi.T @ parent.dV + slower + faster
    gamma = k.phi.T @ parent.gamma + slow + fast
    p = k.M @ V
    g = k.M @ (gamma - V.cross(dV)) + V.cross_force(k.M @ dV) + dV.cross_force(p)
    load = k.M @ alpha + V.cross_force(p) - k.f_ext
    return {"V": V, "alpha": alpha, "dV": dV, "gamma": gamma, "S": S, "load": load, "g": g}


def vary_force(k: Any, children: Children) -> dict[str, Any]:
    """f = Mα + b + Σ φf,  δf = Mγ + BδV + Σ φ(δf + crf(S)f),  δT = Hδf + (∂H)f"""
    f = children.sum(lambda c: c.phi @ c.f, k.load)
    df = children.sum(lambda c: c.phi @ (c.df + c.S.cross_force(c.f)), k.g)
    turned = hinge_map_rate(k, k.dq)
    return {"f": f, "df": df, "dT": k.H @ df + HingeMap(turned) @ f}


@program(shapes={"qdd": ("nv",), "dq": ("nv",), "dv": ("nv",)}, joint_space=True)
def tangent(
    robot: Robot, q: Any, v: Any, qdd: Any, dq: Any, dv: Any, *, external: Any = None
) -> Any:
    """δT of inverse dynamics along a displacement and a change of rates, (…, nv). Cost O(N)."""
    x = forest(robot, q, v=v, qdd=qdd, dq=dq, dv=dv, external=external)
    still = Motion.zero()
    x = outward(vary_motion, x, V=still, alpha=upwards(robot), dV=still, gamma=still)
    return gather(inward(vary_force, x), "dT")
