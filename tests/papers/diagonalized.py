"""[DL]: rates and moments in which the mass matrix is the identity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

import phipsi as pp
from phipsi import control
from phipsi import operators as o
from phipsi.algorithms.diagonalized import RootKind
from phipsi.algorithms.mass_matrix import Factor
from phipsi.spatial import Force, Motion
from phipsi.spatial import rotation as rot
from tests.papers.cases import FRAMES, Case, arms, bare, fleets, flyers, forests, identities, seen
from tests.papers.oracles import (
    ad,
    below,
    christoffel,
    curvature_asymmetry,
    curvatures,
    felt,
    gradient,
    place,
    riemann,
    sphere,
)
from tests.papers.rows import Paper, error
from tests.zoo import ONE_DOF

DL = Paper("[DL]", "Jain & Rodriguez, Diagonalized Lagrangian robot dynamics")
Errors = Iterator[float]


def mass_of(robot: pp.Robot) -> Callable[[np.ndarray], np.ndarray]:
    """𝓜 as a function of points (…, n), for robots whose rates are those of coordinates."""
    return lambda q: pp.mass_matrix(robot, q)


def product(c: Case, x: np.ndarray, factor: Factor) -> np.ndarray:
    """m, m*, ℓ or ℓ* (of the lower triangular root) times x."""
    return pp.mass_matrix_sqrt_product(c.robot, c.q, x, factor=factor)


def unloaded() -> tuple[Case, ...]:
    """Every hinge kind, armature, massless bodies, a free base; no gravity, no external forces."""
    return tuple(c.but(loaded=False) for c in (*forests(), flyers()[-1]))


# ---- 1, 2: the equations, and coordinates that would diagonalize them ---------------------------


@DL.item(
    "(1.1)–(1.4)",
    "𝓜θ̈ + C = T, C = 𝓜̇θ̇ − ½θ̇*𝓜_θθ̇; ν̇ + C_ν = ε with ν = m*θ̇, ε = ℓT",
    "bias_force total_rates working_moments diagonal_coriolis",
    tolerance=1e-8,
)
def lagrange() -> Errors:
    """Differences of the dense 𝓜 and of ν along the motion."""
    yield from identities("[DL] (1.1)-(1.4)")
    for c in arms():
        lagrangian = c(o.mass_dot) @ c.v - 0.5 * c(o.gamma)
        yield error(pp.bias_force(c.robot, c.q, c.v), lagrangian)
        nu = pp.total_rates(c.robot, c.q, c.v)
        rate = c.rate(lambda q, v, c=c: pp.total_rates(c.robot, q, v), c.qdd)
        eps = pp.working_moments(c.robot, c.q, c.tau)
        yield error(rate + pp.diagonal_coriolis(c.robot, c.q, nu), eps)


@cache
def flat() -> tuple[pp.Robot, ...]:
    """Robots whose 𝓜 is flat: sliders, a polar arm, a planar arm whose outer link is balanced."""
    return sliders(), polar(), planar(0.0)


def sliders() -> pp.Robot:
    """Three prismatic joints at odd angles."""
    builder, parent = pp.Builder("sliders", gravity=(0, 0, 0)), "world"
    for i, axis in enumerate(((1, 0.2, 0), (0.3, 1, 0), (0.1, 0.4, 1))):
        builder.body(f"s{i}", mass=1 + i, com=(0.1, 0.2, 0.3), inertia=(0.1, 0.1, 0.1))
        builder.hinge(f"s{i}", "prismatic", parent, f"s{i}", axis=axis, rpy=(0.3, 0.2, i))
        parent = f"s{i}"
    return builder.frame("tool", parent).build()


def polar() -> pp.Robot:
    """A point mass on a turning slide: 𝓜 = diag(mr², m), the plane in polar coordinates."""
    builder = pp.Builder("polar", gravity=(0, 0, 0)).body("arm", mass=0)
    builder.hinge("turn", "revolute", "world", "arm", axis=(0, 0, 1))
    builder.body("mass", mass=2).hinge("slide", "prismatic", "arm", "mass", axis=(1, 0, 0))
    return builder.frame("tool", "mass").build()


def planar(offset: float) -> pp.Robot:
    """Two parallel revolute joints, the centre of the second link off its axis."""
    builder = pp.Builder("planar", gravity=(0, 0, 0)).body("inner", mass=2, com=(0.3, 0, 0))
    builder.hinge("inner", "revolute", "world", "inner", axis=(0, 0, 1), armature=0.1)
    builder.body("outer", mass=1, com=(offset, 0, 0), inertia=(0.1, 0.1, 0.2))
    builder.hinge("outer", "revolute", "inner", "outer", axis=(0, 0, 1), position=(0.7, 0, 0))
    return builder.frame("tool", "outer").build()


@DL.item(
    "Assumption 1",
    "m* is the gradient of coordinates: 𝓜 is flat, as of sliders and polar arms, not in general",
    "globally_diagonalizable curvature",
    tolerance=1e-8,
)
def flat_arms() -> Errors:
    """Zero; curvature by differences of 𝓜."""
    for robot in flat():
        yield error(pp.curvature(robot, np.full(robot.nv, 0.6)), np.zeros((robot.nv,) * 4))
        yield float(not pp.globally_diagonalizable(robot, 8).flat)
    for robot in (planar(0.3), curved().robot, forked()[0].robot):
        q = np.full(robot.nv, 0.6)
        yield error(pp.curvature(robot, q), riemann(mass_of(robot), q))
        yield float(pp.globally_diagonalizable(robot, 8).flat)


@cache
def curved() -> Case:
    """An arm of three revolute joints at odd angles, with a frame on its last link and on one
    between."""
    rng = np.random.default_rng(3)
    builder, parent = pp.Builder("curved", gravity=(0, 0, 0)), "world"
    for i in range(3):
        com = rng.normal(0, 0.2, 3)
        builder.body(f"b{i}", mass=1 + i, com=com, inertia=(0.2, 0.3, 0.25))
        builder.hinge(
            f"b{i}",
            "revolute",
            parent,
            f"b{i}",
            axis=rng.normal(size=3),
            position=rng.normal(0, 0.5, 3),
        )
        parent = f"b{i}"
    robot = builder.frame("tool", parent, position=(0.2, 0.1, 0.3)).build()
    return Case(seen(robot), loaded=False)


def forked() -> tuple[Case, ...]:
    """Forests of five bodies whose hinges have coordinates: one freedom each, or universal."""
    return bare((3, 7), 5, kinds=(*ONE_DOF, "universal"))


@DL.item(
    "Lemma 2.1",
    "if 𝓜 is flat, 𝓜 = W*W with W = ∂ϑ/∂θ and ϑ̈ = W⁻*T: no Coriolis forces",
    "diagonalizing_coordinates",
    tolerance=1e-8,
)
def no_coriolis_in_flat_coordinates() -> Errors:
    """Newton's law of a point mass on a polar arm; differences of ϑ; dense 𝓜."""
    c = Case(polar(), loaded=False).but(q=np.array([0.6, 0.8]))
    start = np.array([0.1, 0.5])

    def coordinates(q: np.ndarray) -> np.ndarray:
        return pp.diagonalizing_coordinates(c.robot, q, start, steps=200).coordinates

    W = pp.diagonalizing_coordinates(c.robot, c.q, start, steps=200).W
    yield error(W.T @ W, c(o.mass))
    yield error(gradient(coordinates, 5e-3)(c.q), W)
    places = np.sqrt(2.0) * np.array([[r * np.cos(x), r * np.sin(x)] for x, r in (c.q, start)])
    yield error(np.linalg.norm(coordinates(c.q)), np.linalg.norm(places[0] - places[1]))
    motion = pp.accelerations(c.robot, c.q, c.v, c.qdd, reference="aligned", classical=True)
    J = pp.jacobian(c.robot, c.q, "mass", reference="aligned")[3:5]
    yield error(motion[-1, 3:5], np.linalg.solve(J.T, c.tau) / 2.0)
    turn = W @ np.linalg.inv(np.sqrt(2.0) * J)  # from Cartesian coordinates to ϑ
    yield error(turn @ (np.sqrt(2.0) * motion[-1, 3:5]), np.linalg.solve(W.T, c.tau))


@DL.item(
    "Lemma 2.2",
    "𝓜 is flat where R_hijk = 0: N²(N² − 1)/12 numbers",
    "curvature christoffel",
    tolerance=1e-8,
)
def curvature() -> Errors:
    """Differences of 𝓜; the unit sphere; symmetries and Bianchi's identity; a count of them."""
    for c in (curved(), *forked()):
        robot, q, n = c.robot, c.q, c.robot.nv
        found = pp.curvature(robot, q)
        yield error(found, riemann(mass_of(robot), q))
        yield error(curvature_asymmetry(found), np.zeros((4, n, n, n, n)))
        yield error(pp.christoffel(robot, q), christoffel(mass_of(robot), q))
    yield error(riemann(sphere, np.array([0.7, 0.2]))[0, 1, 0, 1], np.sin(0.7) ** 2)
    yield error([curvatures(n) for n in (2, 3, 4)], [1, 6, 20])


@DL.item(
    "Assumption 2",
    "𝓜 = mm* with m a differentiable function of θ",
    "mass_matrix_sqrt_product articulated_inertia_rates operators.m_dot",
    tolerance=1e-8,
)
def differentiable_factor() -> Errors:
    """Dense 𝓜; differences of the dense m."""
    for c in unloaded():
        m = product(c, np.eye(c.robot.nv), "m").T
        yield error(m @ m.T, c(o.mass))
        D_dot = pp.articulated_inertia_rates(c.robot, c.q, c.v).D_dot
        half = np.linalg.cholesky(c(o.D))
        turned = np.linalg.solve(half, np.linalg.solve(half, D_dot).T)
        lower = np.tril(turned) - 0.5 * np.diag(np.diag(turned))
        colour = c(o.I + o.H @ o.phi @ o.K)
        rate = c.rate(lambda q, v, c=c: c.but(q=q)(o.I + o.H @ o.phi @ o.K))
        yield error(rate @ half + colour @ half @ lower, c(o.m_dot))
        yield error(c.lowered(o.m_dot), c(o.m_dot))


@DL.item(
    "Lemma 3.1",
    "ν̇ + C_ν = ε, C_ν = ℓ(ṁν − ½θ̇*𝓜_θθ̇) = ℓC − ṁ*θ̇",
    "total_rates working_moments diagonal_coriolis",
    tolerance=1e-8,
)
def diagonal_equations() -> Errors:
    """Differences of ν along the motion of the dense equations; differences of the dense m."""
    for c in unloaded():
        nu = pp.total_rates(c.robot, c.q, c.v)
        found = pp.diagonal_coriolis(c.robot, c.q, nu)
        yield error(found, c(o.C_nu))
        rate = c.rate(lambda q, v, c=c: pp.total_rates(c.robot, q, v), c.qdd)
        yield error(rate + found, pp.working_moments(c.robot, c.q, c.tau))


# ---- 4, 5: the factors --------------------------------------------------------------------------


@DL.item("Identity 4.1", "𝓜 = (I + HφK)D(I + HφK)*", "mass_matrix_sqrt_product")
def factorization() -> Errors:
    """Dense HφMφ*H* + A."""
    yield from identities("[SOA] Lemma 4.1")
    for c in forests():
        m = product(c, np.eye(c.robot.nv), "m").T
        yield error(m @ m.T, c(o.mass))


@DL.item(
    "Identity 4.2",
    "(I + HφK)⁻¹ = I − HψK",
    "mass_matrix_sqrt_product working_moments operators.psi",
)
def inverse_factor() -> Errors:
    """Dense inverse."""
    yield from identities("[SOA] Lemma 4.2")
    for c in (*forests(), *fleets()):
        inverse = np.linalg.inv(c(o.I + o.H @ o.phi @ o.K))
        yield error(c.lowered(o.I - o.H @ o.psi @ o.K), inverse)
        yield error(product(c, np.eye(c.robot.nv), "l").T, np.linalg.inv(c(o.m)))
        found = pp.working_moments(c.robot, c.q, np.eye(c.robot.nv), normalized=False).T
        yield error(found, inverse)


@DL.item(
    "(4.10)",
    "𝓜⁻¹ = (I − HψK)*D⁻¹(I − HψK)",
    "mass_matrix_inverse mass_matrix_solve operators.mass.inv",
)
def inverse_factorization() -> Errors:
    """Dense inverse."""
    yield from identities("[SOA] Lemma 4.3")
    for c in (*forests(), *fleets()):
        l, inverse = product(c, np.eye(c.robot.nv), "l").T, np.linalg.inv(c(o.mass))
        yield error(l.T @ l, inverse)
        yield error(pp.mass_matrix_inverse(c.robot, c.q), inverse)
        yield error(pp.mass_matrix_solve(c.robot, c.q, c.w), inverse @ c.w)
        yield error(c.lowered(o.mass.inv), inverse)


@DL.item("Alg 4.1", "P, D, G, P⁺ from tips to base", "articulated_inertias")
def articulated_inertias() -> Errors:
    """The inertia felt at each body, the freedoms outboard eliminated."""
    for c in (*forests(), *fleets()):
        found = pp.articulated_inertias(c.robot, c.q)
        P = np.array([felt(c, i) for i in range(c.robot.nb)])
        yield error(found.P, P)
        for i, h in enumerate(c.robot.hinges):
            H = c.system.H[h.v]
            D = H @ P[i] @ H.T + c(o.A)[h.v, h.v]
            yield error(found.D[h.v, h.v], D)
            yield error(found.G[:, h.v], P[i] @ H.T @ np.linalg.inv(D))


@DL.item(
    "Table 1",
    "what φ, P, P⁺, D, G, ψ mean: forces, hinges locked or free",
    "operators.phi operators.P operators.P_plus operators.D operators.G operators.psi",
)
def meanings() -> Errors:
    """Inertias felt with hinges locked and free; P⁺ ≤ P ≤ R; P⁺H* = 0 without armature."""
    for c in bare():
        phi, P_all, P_plus_all, psi, D, G = (
            c.lowered(x) for x in (o.phi, o.P, o.P_plus, o.psi, o.D, o.G)
        )
        for i, h in enumerate(c.robot.hinges):
            own = np.s_[6 * i : 6 * i + 6]
            H, R, P, P_plus = c.system.H[h.v], felt(c, i, False), felt(c, i), P_plus_all[own, own]
            yield error(P_all[own, own], P)
            yield error((phi @ c(o.M) @ phi.T)[own, own], R)
            yield error(P_plus, P - P @ H.T @ np.linalg.solve(H @ P @ H.T, H @ P))
            yield error(D[h.v, h.v], H @ P @ H.T)
            yield error(G[own, h.v], P @ H.T @ np.linalg.inv(H @ P @ H.T))
            yield error(P_plus @ H.T, np.zeros((6, len(H))))
            for larger, smaller in ((R, P), (P, P_plus), (P_plus, 0 * P)):
                yield max(0.0, -float(np.linalg.eigvalsh(larger - smaller)[0]))
            yield error(psi[own], arriving(c, i))


def arriving(c: Case, i: int) -> np.ndarray:
    """What of forces on all bodies arrives at body i, held, all freedoms outboard of it free."""
    phi, M = c(o.phi), c(o.M)
    rows = (below(c, i) & (np.arange(c.robot.nb) != i))[c.system.moves]
    X, Y = phi[6 * i : 6 * i + 6], (c(o.H) @ phi)[rows]
    return X - X @ M @ Y.T @ np.linalg.solve(Y @ M @ Y.T + c(o.A)[np.ix_(rows, rows)], Y)


@DL.item(
    "(5.1)–(5.4)",
    "m = (I + HφK)D½, ℓ = m⁻¹, ν = m*θ̇, ε = ℓT, θ̇ = ℓ*ν, T = mε",
    "total_rates joint_rates working_moments applied_moments",
)
def normalized() -> Errors:
    """Dense m and its inverse; the kinetic energy; both roots of D."""
    yield from identities("[DL] (5.1)-(5.4)")
    for c in forests():
        m, at = c(o.m), (c.robot, c.q)
        yield error(pp.total_rates(*at, c.v), m.T @ c.v)
        yield error(pp.joint_rates(*at, c.w), np.linalg.solve(m.T, c.w))
        yield error(pp.working_moments(*at, c.tau), np.linalg.solve(m, c.tau))
        yield error(pp.applied_moments(*at, c.w), m @ c.w)
    c = forests()[-1]
    at, root = (c.robot, c.q), "symmetric"
    nu = pp.total_rates(*at, c.v, root=root)
    eps = pp.working_moments(*at, c.tau, root=root)
    yield error(nu @ nu, c.v @ c(o.mass) @ c.v)
    yield error(nu @ eps, c.v @ c.tau)
    yield error(pp.joint_rates(*at, nu, root=root), c.v)
    yield error(pp.applied_moments(*at, eps, root=root), c.tau)


@DL.item("Table 2", "V⁺ = φ*V, ν = D½*(θ̇ + G*V⁺), and back, outward", "total_rates joint_rates")
def rates() -> Errors:
    """Dense (I + HφK)*β and β + G*V⁺; dense solve."""
    yield from identities("[DL] Table 2")
    for c in (*forests(), *fleets()):
        xi = c((o.I + o.H @ o.phi @ o.K).T) @ c.v
        at = c.robot, c.q
        yield error(pp.total_rates(*at, c.v, normalized=False), xi)
        yield error(c.v + c.lowered(o.G.T @ o.E_phi.T @ o.V), xi)
        yield error(c.lowered(o.xi), xi)
        yield error(pp.joint_rates(*at, xi, normalized=False), c.v)


@DL.item(
    "Table 3", "z⁺ = z + GD½ε, T = D½ε + Hz, and back, inward", "working_moments applied_moments"
)
def moments() -> Errors:
    """Dense (I + HφK)κ; dense solve."""
    for c in (*forests(), *fleets()):
        colour, at = c(o.I + o.H @ o.phi @ o.K), (c.robot, c.q)
        yield error(pp.applied_moments(*at, c.w, normalized=False), colour @ c.w)
        found = pp.working_moments(*at, c.tau, normalized=False)
        yield error(found, np.linalg.solve(colour, c.tau))


@DL.item(
    "(5.5)",
    "[a; b] × [c; d] = [a × c; a × d + b × c], and on forces −ad*",
    "spatial.Motion.cross spatial.Motion.cross_force",
)
def cross_product() -> Errors:
    """Commutators of 4 × 4 matrices; Jacobi's identity."""

    def hat(X: np.ndarray) -> np.ndarray:
        out = np.zeros((4, 4))
        out[:3, :3], out[:3, 3] = ad(X)[:3, :3], X[3:]
        return out

    X, Y, Z = np.random.default_rng(0).normal(size=(3, 6))

    def cross(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return Motion.of(rot.scalars(x)).cross(Motion.of(rot.scalars(y))).array.astype(float)

    yield error(hat(cross(X, Y)), hat(X) @ hat(Y) - hat(Y) @ hat(X))
    yield error(cross(X, cross(Z, Y)), cross(cross(X, Z), Y) + cross(Z, cross(X, Y)))
    force = Motion.of(rot.scalars(X)).cross_force(Force.of(rot.scalars(Y))).array.astype(float)
    yield error(force @ Z, -Y @ cross(X, Z))


# ---- 6: rates of change -------------------------------------------------------------------------


@DL.item(
    "Table 4",
    "rates of H, M, φ, P, D, G, τ̄, ψ in the bodies' axes and in inertial ones",
    "articulated_inertia_rates operators.P_dot operators.phi_dot",
    tolerance=1e-8,
)
def table_4() -> Errors:
    """Differences of the dense operators, in both axes."""
    yield from identities("[DL] Table 4")
    for c in unloaded():
        found = pp.articulated_inertia_rates(c.robot, c.q, c.v)
        yield error(found.P_dot, c.blocks(o.P_dot))
        yield error(found.D_dot, c(o.D_dot))
        yield error(found.G_dot, c(o.G_dot).reshape(-1, 6, c.robot.nv).sum(0))
    for c in arms():
        spin = spatial([ad(np.array([*V[:3], 0, 0, 0])) for V in c.blocks(o.V)])
        found = pp.articulated_inertia_rates(c.robot, c.q, c.v)
        P_dot, turn = spatial(found.P_dot), turned(c, c.q)
        for x, local in (
            (o.P, P_dot),
            (o.M, 0 * P_dot),
            (o.phi, c.lowered(o.phi_dot)),
            (o.psi, c.lowered(o.psi_dot)),
            (o.tau_bar, c.lowered(o.tau_bar_dot)),
        ):
            rate = c.rate(lambda q, v, c=c, x=x: turned(c, q) @ c.but(q=q)(x) @ turned(c, q).T)
            inertial = local + spin @ c(x) - c(x) @ spin
            yield error(turn.T @ rate @ turn, inertial)
        rate = c.rate(lambda q, v, c=c: c.but(q=q)(o.H) @ turned(c, q).T)
        yield error(rate @ turn, -c(o.H) @ spin)
        rate = c.rate(lambda q, v, c=c: turned(c, q) @ c.but(q=q)(o.G))
        yield error(turn.T @ rate, c.lowered(o.G_dot) + spin @ c(o.G))


def spatial(blocks: Any) -> np.ndarray:
    """Blocks on a diagonal."""
    n = len(blocks)
    out = np.zeros((n, 6, n, 6))
    out[range(n), :, range(n)] = blocks
    return out.reshape(6 * n, 6 * n)


def turned(c: Case, q: np.ndarray) -> np.ndarray:
    """The rotations of all bodies to the axes of the world."""
    return spatial([np.kron(np.eye(2), X[:3, :3]) for X in pp.poses(c.robot, q)])


@DL.item(
    "Alg 6.1",
    "λ = Ṗ + X + X*, Ṗ = E_ψλE_ψ*, X = crf(Δ)P; for any hinge τ̄Ṗτ̄* + X⁺ + X⁺*",
    "articulated_inertia_rates",
    tolerance=1e-8,
)
def inertia_rates() -> Errors:
    """Differences of the dense P."""
    yield from identities("[DL] Alg 6.1")
    for c in (*unloaded(), *arms()):
        found = pp.articulated_inertia_rates(c.robot, c.q, c.v)
        yield error(found.P_dot, c.blocks(o.P_dot))


@DL.item(
    "(6.6)",
    "ψ̇ = ψĖ_ψψ, Ė_ψ = E_ψ(Δ̃τ̄ − ṖH*D⁻¹H); Ḋ½ = ½ḊD⁻½, Ḋ = HṖH*",
    "operators.psi_dot operators.E_psi_dot operators.D_half_dot articulated_inertia_rates",
    tolerance=1e-8,
)
def rates_from_the_inertias() -> Errors:
    """Differences of the dense ψ, E_ψ and D½."""
    rate = o.E_psi @ (o.Delta_cross @ o.tau_bar - o.P_dot @ o.H.T @ o.D.inv @ o.H)
    for c in arms():
        for x, dot in ((o.psi, o.psi_dot), (o.E_psi, o.E_psi_dot), (o.D_half, o.D_half_dot)):
            yield error(c.lowered(dot), c.rate(lambda q, v, c=c, x=x: c.but(q=q)(x)))
        yield error(c.lowered(o.psi @ rate @ o.psi), c(o.psi_dot))
        found = pp.articulated_inertia_rates(c.robot, c.q, c.v)
        H, P_dot = c(o.H), spatial(found.P_dot)
        yield error(found.D_dot, H @ P_dot @ H.T)
        yield error(c(o.D_half_dot), 0.5 * np.linalg.solve(c(o.D_half), found.D_dot))


@DL.item(
    "Lemma 6.1",
    "φ̇ = Ṽ*φ − φṼ* and H(Ṽ*φ − φṼ*) = HφΔ̃φ",
    "operators.phi_dot operators.V_cross",
    tolerance=1e-8,
)
def rate_of_phi() -> Errors:
    """Differences of the dense φ."""
    yield from identities("[DL] Lemma 6.1")


@DL.item(
    "Lemma 6.2",
    "θ̇*𝓜_θθ̇ = 2HṼ*φMV = 2Hφ(Δ̃φ + Ṽ*)MV",
    "mass_matrix_derivative operators.gamma",
    tolerance=1e-8,
)
def gradient_of_energy() -> Errors:
    """Differences of the dense 𝓜."""
    yield from identities("[DL] Lemma 6.2")
    for c in arms():
        d = pp.mass_matrix_derivative(c.robot, c.q)
        yield error(np.einsum("i,ijk,j->k", c.v, d, c.v), c(o.gamma))


@DL.item("Identity 6.1", "ṁ = Hφ(Δ̃φ̃P + ½(I + τ̄)λ)H*D⁻½", "operators.m_dot", tolerance=1e-8)
def rate_of_the_root() -> Errors:
    """Differences of the dense m."""
    yield from identities("[DL] Identity 6.1")


@DL.item(
    "Identity 6.2", "ṁν = Hφ(Δ̃φKHP + ½(X + X* + E_ψλ − λE_ψ*))V", "operators.m_dot", tolerance=1e-8
)
def rate_of_the_root_times_rates() -> Errors:
    """Differences of the dense m."""
    yield from identities("[DL] Identity 6.2")


@DL.item(
    "Identity 6.3",
    "∂𝓜/∂θ_i = Z + Z*, Z = HφH̃_iφMφ*H*",
    "mass_matrix_derivative operators.mass_by",
    tolerance=1e-8,
)
def sensitivity_of_the_mass_matrix() -> Errors:
    """Differences of the dense 𝓜, any hinge."""
    yield from identities("[DL] Identity 6.3")
    for c in (*arms()[:1], *forests()[:2]):
        found = pp.mass_matrix_derivative(c.robot, c.q)

        def mass(x: np.ndarray, c: Case = c) -> np.ndarray:
            flat_x = x.reshape(-1, c.robot.nv)
            moved = [c.but(q=c.robot.integrate(c.q, dx))(o.mass) for dx in flat_x]
            return np.array(moved).reshape(*x.shape, c.robot.nv)

        yield error(found, gradient(mass)(np.zeros(c.robot.nv)))


# ---- 7, 8: equations of motion, control ---------------------------------------------------------


@DL.item(
    "Identity 7.1",
    "C_ν = ½D⁻½Hψ(E_ψλ − λE_ψ* − X + X* − 2Ṽ*M)V",
    "diagonal_coriolis operators.C_nu",
    tolerance=1e-8,
)
def coriolis_of_normalized_rates() -> Errors:
    """Dense ℓC − ṁ*θ̇, ṁ by differences."""
    yield from identities("[DL] Identity 7.1")
    for c in arms():
        nu = pp.total_rates(c.robot, c.q, c.v)
        yield error(pp.diagonal_coriolis(c.robot, c.q, nu), c(o.C_nu))
        yield error(c.lowered(o.C_nu), c(o.C_nu))


@DL.item("Alg 7.1", "C_ν by one sweep out and one in", "diagonal_coriolis", tolerance=1e-8)
def coriolis_recursion() -> Errors:
    """Dense ℓC − ṁ*θ̇, ṁ by differences, any hinge, armature; its three parts."""
    for c in unloaded():
        nu = pp.total_rates(c.robot, c.q, c.v)
        yield error(pp.diagonal_coriolis(c.robot, c.q, nu), c(o.C_nu))
        parts = pp.diagonal_coriolis(c.robot, c.q, nu, parts=True)
        yield error(sum(parts), c(o.C_nu))


@DL.item("Lemma 7.1", "ν*C_ν = 0: Coriolis forces do no work", "diagonal_coriolis")
def workless() -> Errors:
    """Zero, over |ν||C_ν|; both roots of D."""
    roots: dict[RootKind, list[Any]]
    roots = {"cholesky": [*unloaded(), *arms()], "symmetric": [forests()[-1]]}
    pairs: list[tuple[RootKind, Any]] = [(root, c) for root in roots for c in roots[root]]
    for root, c in pairs:
        nu = pp.total_rates(c.robot, c.q, c.v, root=root)
        C = np.asarray(pp.diagonal_coriolis(c.robot, c.q, nu, root=root))
        yield float(abs(nu @ C) / (np.linalg.norm(nu) * np.linalg.norm(C)))


@DL.item(
    "Lemma 7.2", "d/dt ½ν*ν = ν*ε", "total_rates working_moments kinetic_energy", tolerance=1e-8
)
def rate_of_energy() -> Errors:
    """Differences of the energy along the motion of the dense equations."""
    for c in unloaded():

        def energy(q: np.ndarray, v: np.ndarray, c: Case = c) -> Any:
            return 0.5 * v @ c.but(q=q)(o.mass) @ v

        nu, eps = pp.total_rates(c.robot, c.q, c.v), pp.working_moments(c.robot, c.q, c.tau)
        yield error(nu @ eps, c.rate(energy, c.qdd))
        yield error(pp.kinetic_energy(c.robot, c.q, c.v), 0.5 * nu @ nu)
        yield error(0.5 * nu @ nu, energy(c.q, c.v))


@DL.item(
    "Lemma 7.3",
    "Dξ̇ + C_ξ = κ, C_ξ = Hψ(λH*ξ − (X + Ṽ*M)V) = D½C_ν + ½Ḋξ",
    "diagonal_coriolis",
    tolerance=1e-8,
)
def coriolis_of_total_rates() -> Errors:
    """Differences of ξ along the motion of the dense equations; ξ*C_ξ = ½ξ*Ḋξ."""
    yield from identities("[DL] Lemma 7.3", "[DL] Lemma 7.1", "[DL] (7.8)")
    for c in unloaded():

        def xi(q: np.ndarray, v: np.ndarray, c: Case = c) -> np.ndarray:
            return pp.total_rates(c.robot, q, v, normalized=False)

        own = xi(c.q, c.v)
        C = pp.diagonal_coriolis(c.robot, c.q, own, normalized=False)
        kappa = pp.working_moments(c.robot, c.q, c.tau, normalized=False)
        yield error(C, c(o.C_xi))
        yield error(c(o.D) @ c.rate(xi, c.qdd) + C, kappa)
        yield error(own @ C, 0.5 * own @ c(o.D_dot) @ own)


@DL.item(
    "(7.10)",
    "y = ψ(λH*ξ − (X + Ṽ*M)V), C_ξ = Hy: C_ξ by one sweep out and one in",
    "diagonal_coriolis operators.C_xi",
    tolerance=1e-8,
)
def recursion_of_total_rates() -> Errors:
    """Dense (I − HψK)C − D d/dt(I + HφK)*β, by differences; any hinge, armature."""
    for c in (*unloaded(), *arms()):
        colour = c.rate(lambda q, v, c=c: c.but(q=q)(o.I + o.H @ o.phi @ o.K))
        expected = c(o.I - o.H @ o.psi @ o.K) @ c(o.C) - c(o.D) @ colour.T @ c.v
        xi = pp.total_rates(c.robot, c.q, c.v, normalized=False)
        yield error(pp.diagonal_coriolis(c.robot, c.q, xi, normalized=False), expected)
        yield error(c.lowered(o.C_xi), expected)


@DL.item(
    "7: past, present, future",
    "C_ξ = past (ṖH*ξ) + present (−Ṽ*MV) + future (−Δ̃P⁺V⁺), after Lemma 7.3",
    "diagonal_coriolis",
    tolerance=1e-8,
)
def past_present_future() -> Errors:
    """Dense products, Ṗ by differences, each part by itself."""
    for c in arms():
        xi = c(o.xi)
        found = pp.diagonal_coriolis(c.robot, c.q, xi, normalized=False, parts=True)
        assert isinstance(found, pp.CoriolisParts)
        through, plus = c(o.H @ o.psi), c(o.E_phi.T @ o.V)
        yield error(found.past, through @ c(o.P_dot @ o.H.T) @ xi)
        yield error(found.present, -through @ c(o.V_cross.T @ o.M @ o.V))
        yield error(found.future, -through @ c(o.Delta_cross @ o.P_plus) @ plus)
        yield error(sum(found), c(o.C_xi))


@DL.item(
    "Alg 8.1",
    "ξ̇ = D⁻¹(T − Hψχ), χ = KT + λH*ξ − (X + Ṽ*M)V: forward dynamics",
    "diagonal_forward_dynamics simulate",
    also="simulation/test_methods.py",
    tolerance=1e-8,
)
def diagonal_forward_dynamics() -> Errors:
    """Differences of ν and ξ along the motion of the dense equations, with gravity; the energy of
    a simulation in these coordinates."""
    for c in (*forests(), *fleets()):
        for normal in (True, False):

            def rates(q: np.ndarray, v: np.ndarray, c: Case = c, normal: bool = normal) -> Any:
                return pp.total_rates(c.robot, q, v, normalized=normal)

            found = pp.diagonal_forward_dynamics(
                c.robot, c.q, rates(c.q, c.v), c.tau, external=c.external, normalized=normal
            )
            yield error(found, c.rate(rates, c.qdd))
    for c in arms():
        chi = o.K @ o.T + o.lam @ o.H.T @ o.xi - (o.Delta_cross @ o.P + o.V_cross.T @ o.M) @ o.V
        expected = c(o.D.inv @ (o.T - o.H @ o.psi @ chi))
        found = pp.diagonal_forward_dynamics(c.robot, c.q, c(o.xi), c.tau, normalized=False)
        yield error(found, expected)
        energy = energies(c, coordinates="diagonal", duration=0.1, dt=0.002, every=10)
        yield error(energy, np.full_like(energy, energy[0]))


def energies(c: Case, controller: Any = None, **how: Any) -> np.ndarray:
    """The kinetic energy of a simulation without springs and dampers, from the dense 𝓜."""
    at = c.robot, c.q, c.v, controller
    motion = pp.simulate(*at, actuators=False, passive=False, **how)
    moved = zip(motion.q, motion.v, strict=True)
    return np.array([0.5 * v @ c.but(q=q)(o.mass) @ v for q, v in moved])


@DL.item(
    "Control 8.1",
    "ε = −cν: E(t) = E(0)exp(−2ct)",
    "control.rate_feedback simulate",
    also="control/test_closed_loops.py",
    tolerance=1e-7,
)
def rate_control() -> Errors:
    """Dense −mcm*β and weight, any hinge; the exponential, after a second of simulation."""
    for c in (*forests(), *flyers()):
        c, m = c.undisturbed(), c(o.m)
        weight = c.but(v=0 * c.v)(o.C)
        at, gains = (c.robot, c.q, c.v), np.linspace(1.0, 2.0, c.robot.nv)
        T = control.rate_feedback(*at, damping=gains, passive=False)
        yield error(T, weight - m @ (gains * (m.T @ c.v)))
        full = np.diag(gains) + 0.3
        T = control.rate_feedback(*at, damping_matrix=full, passive=False)
        yield error(T, weight - m @ full @ m.T @ c.v)
    how = {"damping": 1.5, "passive": False}
    steps = {"duration": 1.0, "dt": 0.01, "every": 10}
    energy = energies(curved(), control.rate_feedback, parameters=how, **steps)
    yield error(energy / energy[0], np.exp(-2 * 1.5 * np.linspace(0, 1, 11)))


class Reaching:
    """Control 8.2: a frame that reaches a pose Ŷ = (position, three axes), by dense matrices."""

    def __init__(self, c: Case, frame: str = "tool", W: Any = None) -> None:
        self.c, self.frame, self.damping = c, frame, 3.0
        self.W = 60.0 * np.eye(12) if W is None else W
        away = c.robot.integrate(c.q, 0.3 * np.ones(c.robot.nv))
        self.goal = place(c.but(q=away), frame)
        self.target = self.axes(self.goal)

    @staticmethod
    def axes(X: np.ndarray) -> np.ndarray:
        """Y (12,) of a pose."""
        return np.concatenate((X[:3, 3], X[:3, :3].T.ravel()))

    def pose(self, q: np.ndarray) -> np.ndarray:
        """Y (12,)."""
        return self.axes(place(self.c.but(q=q), self.frame))

    def rate(self, q: np.ndarray) -> np.ndarray:
        """L̃ (12, 6): Ẏ = L̃V."""
        R = place(self.c.but(q=q), self.frame)[:3, :3]
        zero = np.zeros((3, 3))
        axes = [np.hstack((-R @ ad(np.array([*e, 0, 0, 0]))[:3, :3], zero)) for e in np.eye(3)]
        return np.vstack((np.hstack((zero, R)), *axes))

    def lyapunov(self, q: np.ndarray, v: np.ndarray) -> Any:
        """U = ½ν*ν + ½e*We."""
        e = self.target - self.pose(q)
        return 0.5 * v @ self.c.but(q=q)(o.mass) @ v + 0.5 * e @ self.W @ e

    def push(self, q: np.ndarray) -> np.ndarray:
        """L̃*We, the force on the frame towards the target."""
        return self.rate(q).T @ self.W @ (self.target - self.pose(q))


@DL.item(
    "Control 8.2",
    "ε = −c₁ν + D⁻½HψBL̃*We: U = ½ν*ν + ½e*We falls as −ν*c₁ν",
    "control.pose_feedback control.pose_lyapunov simulate",
    also="control/test_closed_loops.py",
    tolerance=1e-7,
)
def pose_control() -> Errors:
    """Dense m(−c₁ν + D⁻½HψBL̃*We) and weight; differences of U; its fall in two seconds."""
    A = np.random.default_rng(1).normal(size=(12, 12))
    full = A @ A.T + np.eye(12)
    for c in (curved(), forests()[0].undisturbed(), flyers()[-1].undisturbed()):
        for frame, how, W in ((FRAMES[0], {}, None), (FRAMES[1], {"weight": full}, full)):
            to, weight, m = Reaching(c, frame, W), c.but(v=0 * c.v)(o.C), c(o.m)
            V = c(o.B(frame).T @ o.V)
            yield error(to.rate(c.q) @ V, c.rate(lambda q, v, to=to: to.pose(q)))
            drawn = c(o.H @ o.psi @ o.B(frame)) @ to.push(c.q)
            eps = np.linalg.solve(c(o.D_half), drawn) - to.damping * (m.T @ c.v)
            at = c.robot, c.q, c.v, to.goal
            how = {"frame": frame, **how}
            T = control.pose_feedback(*at, damping=to.damping, passive=False, **how)
            yield error(T, m @ eps + weight)
            yield error(control.pose_lyapunov(*at, **how), to.lyapunov(c.q, c.v))
            qdd, nu = np.linalg.solve(c(o.mass), T - c(o.C)), m.T @ c.v
            yield error(c.rate(to.lyapunov, qdd), -to.damping * nu @ nu)
    c = curved()
    to = Reaching(c)
    motion = pp.simulate(
        c.robot, c.q, c.v, control.pose_feedback, duration=2.0, dt=0.02, every=5,
        parameters={"pose": to.goal, "damping": to.damping, "passive": False},
        actuators=False, passive=False,
    )  # fmt: skip
    U = np.array([to.lyapunov(q, v) for q, v in zip(motion.q, motion.v, strict=True)])
    yield max(0.0, *np.diff(U) / U[0])
    yield float(U[-1] > 0.1 * U[0])
