"""What is misprinted in the papers: the printed form fails, the corrected one holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import numpy as np

import phipsi as pp
from phipsi import operators as o
from phipsi.operators.dense import System, matrix
from tests.papers.base_invariant import branched, from_common_ancestors, times
from tests.papers.cases import Case, arms, bare, flyers, forests
from tests.papers.diagonalized import Reaching, curved
from tests.papers.oracles import Dual, ad, crf, curvatures, entries, exchanged, felt
from tests.papers.rows import error, impossible, misprint
from tests.papers.under_actuated import padded, reacting
from tests.zoo import ONE_DOF, random_forest

Pair = tuple[float, float]


@cache
def sliding() -> Case:
    """A tree that turns and slides."""
    kinds = ("revolute", "prismatic", "cylindrical")
    return Case(random_forest(8, 5, kinds=kinds, massless=False))


@cache
def flying() -> Case:
    """A free chain, its hinges of several freedoms, without armature."""
    options = {"roots": ("free",), "branching": False, "armature": False, "massless": False}
    return Case(random_forest(4, 4, **options))


@cache
def arm() -> Case:
    """A serial arm with hinges of one freedom, without armature and gravity."""
    options = {"kinds": ONE_DOF, "branching": False, "armature": False, "massless": False}
    return Case(random_forest(6, 4, **options).with_gravity((0, 0, 0)), loaded=False)


# ---- [BI] ---------------------------------------------------------------------------------------


def coriolis(c: Case) -> np.ndarray:
    """a of every body, by differences: d/dt(φ*H*)β = φ*a."""
    rate = c.rate(lambda q, v: c.but(q=q)(o.phi.T @ o.H.T)) @ c.v
    return ((np.eye(len(rate)) - c(o.E_phi)).T @ rate).reshape(-1, 6)


def of_kind(c: Case, kind: str) -> list[int]:
    """The bodies that hinges of a kind move."""
    return [i for i, h in enumerate(c.robot.hinges) if h.kind.name == kind]


@misprint("[BI]", "a(k) after (2), revolute", "a = [δω~ω; δω~v]", "a = −[δω~ω; δω~v]")
def coriolis_of_revolute_hinges() -> Pair:
    c = sliding()
    own, a, V, Delta = of_kind(c, "revolute"), coriolis(c), c.blocks(o.V), c.blocks(o.H.T @ o.beta)
    printed = np.array([ad(Delta[i]) @ V[i] for i in own])
    return error(printed, a[own]), error(-printed, a[own])


@misprint("[BI]", "a(k) after (2), prismatic", "a = [0; ω δv~]", "a = [0; ω~δv]")
def coriolis_of_prismatic_hinges() -> Pair:
    c = sliding()
    own, a = of_kind(c, "prismatic"), coriolis(c)
    spin, slide = c.blocks(o.V)[own, :3], c.blocks(o.H.T @ o.beta)[own, 3:]
    wrong = impossible(lambda: spin[0][:, None] @ np.cross(np.eye(3), slide[0]))
    return wrong, error(np.hstack((0 * spin, np.cross(spin, slide))), a[own])


@misprint(
    "[BI-c], [UA]",
    "a(k) of (2.2), classical",
    "a = [ω_p~δω; ω_p~(v − v_p)]",
    "a = [ω_p~δω; ω_p~(v − v_p) + ω~δv]",
)
def classical_coriolis() -> Pair:
    c = sliding()
    V, Delta = c.blocks(o.V), c.blocks(o.H.T @ o.beta)
    rate = c.rate(lambda q, v: c.but(q=q)(o.phi.T @ o.H.T) @ v, c.a).reshape(-1, 6)
    alpha = rate + np.hstack((0 * V[:, :3], np.cross(V[:, :3], V[:, 3:])))
    true = (alpha.ravel() - c(o.E_phi).T @ alpha.ravel() - c(o.H.T) @ c.a).reshape(-1, 6)
    printed, slides = 0 * true, np.cross(V[:, :3], Delta[:, 3:])
    for i, p in enumerate(c.robot.parents):
        R, above = c.system.phi[i][:3, :3], V[p] * (p >= 0)
        w, v = R.T @ above[:3], R.T @ above[3:]
        printed[i] = [*np.cross(w, Delta[i, :3]), *np.cross(w, V[i, 3:] - v)]
    return error(printed, true), error(printed + np.hstack((0 * slides, slides)), true)


@misprint("[BI]", "(11), (2.11) of [BI-c]", "… − K*ψ*H*a", "… − K*ψ*a")
def last_term_of_the_accelerations() -> Pair:
    c, whiten = forests()[0], o.I - o.H @ o.psi @ o.K
    first = whiten.T @ o.D.inv @ (o.T - o.H @ o.psi @ (o.K @ o.T + o.P @ o.a + o.b))
    right = c(first - o.K.T @ o.psi.T @ o.a)
    return impossible(lambda: first - o.K.T @ o.psi.T @ o.H.T @ o.a), error(right, c.qdd)


@misprint("[BI-c]", "(2.8)", "M = I − E_ψPE_ψ*", "M = P − E_φPE_ψ*")
def riccati_with_an_identity() -> Pair:
    c = bare()[0]
    E, P, M = c(o.E_psi), c(o.P), c(o.M)
    return error(np.eye(len(P)) - E @ P @ E.T, M), error(P - c(o.E_phi) @ P @ E.T, M)


@misprint("[BI]", "(18a), (3.5a) of [BI-c]: ε_s", "ε_s = T + H z_s", "ε_s = T + H z_s⁺")
def innovation_of_the_dual() -> Pair:
    c = flyers()[0]
    return error(Dual(c, implicit=True).alpha, c.alpha), error(Dual(c).alpha, c.alpha)


@misprint("[BI]", "(18a), (3.5a) of [BI-c]: ν_s", "ν_s = D⁻¹ε_s", "ν_s = D_s⁻¹ε_s")
def normalized_innovation_of_the_dual() -> Pair:
    c = flyers()[0]
    eps, moved = Dual(c).eps_s, c(o.G_s).T @ c.alpha.ravel()
    wrong, right = np.linalg.solve(c(o.D), eps) - moved, c(o.C_s) @ eps - moved
    return error(wrong[6:], c.qdd[6:]), error(right[6:], c.qdd[6:])


@misprint("[BI]", "(18a), (3.5a) of [BI-c]: z_s at the base", "z_s(n) = 0", "z_s(n) = −T(n)")
def force_on_the_base() -> Pair:
    c = flyers()[0]
    return error(Dual(c, heedless=True).alpha, c.alpha), error(Dual(c).alpha, c.alpha)


@misprint(
    "[BI]",
    "(19), (3.6) of [BI-c], in (18a)",
    "a_s(k) = −φ*(k+1, k)a(k+1)",
    "a_s(k+1) = −φ*(k, k+1)a(k)",
)
def coriolis_of_the_dual() -> Pair:
    c = flying()
    return error(Dual(c, shifted=True).alpha, c.alpha), error(Dual(c).alpha, c.alpha)


@misprint(
    "[BI]",
    "(19), (3.6) of [BI-c], in (18b), (24), (25)",
    "a_s(k) = −φ*(k+1, k)a(k+1)",
    "a_s(k) = −a(k)",
)
def coriolis_across_the_hinge() -> Pair:
    c = flyers()[0]
    dual, f = Dual(c), c(o.f, beta_dot=c.qdd).reshape(-1, 6)
    plus = (c(o.E_phi).T @ c.alpha.ravel()).reshape(-1, 6)
    above = -(c(o.E_phi).T @ dual.a.ravel()).reshape(-1, 6)
    wrong, right = (
        error(-(times(dual.S_plus, plus - a_s) + dual.z_s_plus)[1:], f[1:])
        for a_s in (above, -dual.a)
    )
    return wrong, right


@misprint("[BI]", "(33), (35)", "Ω = Υ + ψ*Υ + Υψ", "Ω = Υ + ψ̃*Υ + Υψ̃ (serial chains)")
def omega_without_tildes() -> Pair:
    c = flying()
    Omega, U = c(o.phi.T @ o.H.T @ o.mass.inv @ o.H @ o.phi), o.Upsilon
    wrong = c(U + o.psi.T @ U + U @ o.psi)
    return error(wrong, Omega), error(c(U + o.psi_tilde.T @ U + U @ o.psi_tilde), Omega)


@misprint(
    "[BI]",
    "(33) on trees",
    "Ω = Υ + ψ̃*Υ + Υψ̃",
    "Ω_ij = ψ(c, i)*Υ_cψ(c, j), c the nearest common ancestor",
)
def omega_on_trees() -> Pair:
    c = flyers()[0]
    Omega, U = c(o.phi.T @ o.H.T @ o.mass.inv @ o.H @ o.phi), o.Upsilon
    wrong = c(U + o.psi_tilde.T @ U + U @ o.psi_tilde)
    return error(wrong, Omega), error(from_common_ancestors(c, c(o.psi), c.blocks(U)), Omega)


def filtered(c: Case, inward: Iterable[int], outward: Iterable[int]) -> np.ndarray:
    """P + S, P swept in one order of bodies and S in another; what is not there yet is zero."""
    n, parents, phi, M = c.robot.nb, c.robot.parents, c.system.phi, c.system.M
    P, P_plus, S = np.zeros((3, n, 6, 6))

    def freed(X: np.ndarray, i: int) -> np.ndarray:
        own = c.robot.hinges[i].v
        H = c.system.H[own]
        D = H @ X @ H.T + c.system.A[own, own]
        return X - X @ H.T @ np.linalg.solve(D, H @ X)

    def sent(p: int, but: int = -1) -> np.ndarray:
        carried = (phi[k] @ P_plus[k] @ phi[k].T for k in range(n) if parents[k] == p and k != but)
        return sum(carried, np.zeros((6, 6)))

    for i in inward:
        P[i] = M[i] + sent(i)
        P_plus[i] = freed(P[i], i)
    for i in outward:
        if (p := parents[i]) >= 0:
            back = np.linalg.inv(phi[i])
            S[i] = freed(back @ (M[p] + S[p] + sent(p, but=i)) @ back.T, i)
    return P + S


@misprint(
    "[BI-c]",
    "Alg 6, step 2",
    "P from base to tips, S from tips to base",
    "P from tips to base, S from base to tips",
)
def directions_of_the_filters() -> Pair:
    c = flyers()[0]
    Lambda, out = np.linalg.inv(c.blocks(o.Upsilon)), range(c.robot.nb)
    return error(filtered(c, out, out[::-1]), Lambda), error(filtered(c, out[::-1], out), Lambda)


@misprint("[BI]", "Lemma 4.1, end of the proof", "τ_sτ = 0", "τ_sτ̄ = 0, τ_s = −G_sH")
def product_of_projections() -> Pair:
    c = flying()
    tau_s = -c(o.G_s @ o.H)
    zero = 0 * tau_s
    return error(tau_s @ c(o.tau), zero), error(tau_s @ c(o.tau_bar), zero)


class Rerooted:
    """A free tree with its last body as the base; `unsigned` keeps the sign of H as printed."""

    def __init__(self, c: Case) -> None:
        s, name = c.system, c.robot.bodies[-1].name
        self.system = s.rerooted(name)
        self.reversed = (self.system.moves != s.moves) & (s.moves != 0)
        H = np.where(self.reversed[:, None], -self.system.H, self.system.H)
        self.unsigned = replace(self.system, H=H)
        self.T = c(o.rebase(name))
        self.motions = c(o.phi.T @ o.H.T)


@misprint("[BI]", "(48)", "H_k = PHP*", "H_k = PHP* with the sign of reversed hinges flipped")
def hinges_turned_round() -> Pair:
    c = flyers()[0]
    new = Rerooted(c)
    wrong, right = (
        error(new.T.T @ matrix(o.mass, s) @ new.T, c(o.mass)) for s in (new.unsigned, new.system)
    )
    return wrong, right


@misprint("[BI]", "(53)", "β_k = Tβ with −I at reversed hinges, by (48)", "I at reversed hinges")
def blocks_of_the_change_of_base() -> Pair:
    c = flyers()[0]
    new, unit = Rerooted(c), np.eye(int(Rerooted(c).reversed.sum()))

    def of(s: System) -> np.ndarray:
        T = np.linalg.lstsq(matrix(o.phi.T @ o.H.T, s), new.motions, rcond=None)[0]
        return T[np.ix_(new.reversed, new.reversed)]

    assert error(of(new.unsigned), -unit) < 1e-10
    return error(of(new.unsigned), unit), error(of(new.system), unit)


@misprint(
    "[BI]",
    "(41)–(45): I_{n−1}",
    "T = [[J_root, J_h], [0, I of size n − 1]]",
    "I of size N − 6, a count of freedoms",
)
def size_of_the_identity() -> Pair:
    c = flyers()[0]
    J = c(o.phi.T @ o.H.T)[-6:]

    def change(n: int) -> np.ndarray:
        return np.block([[J[:, :6], J[:, 6:]], [np.zeros((n, 6)), np.eye(n)]])

    new, N = Rerooted(c), c.robot.nv - 6
    T = change(N)
    right = error(T.T @ matrix(o.mass, new.system) @ T, c(o.mass))
    return impossible(lambda: change(c.robot.nb - 1)), right


@misprint(
    "[BI]", "(41)–(45): I_{6(n−k−1)}", "6(n − k − 1)", "Σ r, the freedoms of hinges k … n − 1"
)
def size_of_the_path() -> Pair:
    c = flying()
    J = c(o.phi.T @ o.H.T)[-6:, 6:]  # of the tip, k = 1
    moved, n = int(np.abs(J).max(axis=0).astype(bool).sum()), c.robot.nb
    freedoms = sum(h.kind.nv for h in c.robot.hinges[1:])
    return float(abs(6 * (n - 2) - moved)), float(abs(freedoms - moved))


@misprint("[BI]", "(54)", "V = φ_kH_k*β_k", "V = φ_k*H_k*β_k")
def velocities_from_another_base() -> Pair:
    c = flyers()[0]
    new = Rerooted(c)
    phi, H = matrix(o.phi, new.system), matrix(o.H, new.system)
    return error(phi @ H.T @ new.T, new.motions), error(phi.T @ H.T @ new.T, new.motions)


# ---- [UA] ---------------------------------------------------------------------------------------


@misprint("[UA]", "(3.1)", "f(k) = φ(k+1, k)f(k−1) + …", "f(k) = φ(k, k−1)f(k−1) + …")
def forces_of_children() -> Pair:
    c = forests()[0]
    own = c.blocks(o.M @ o.alpha + o.b)
    wrong, right = own.copy(), own.copy()
    for i in reversed(range(c.robot.nb)):
        if (p := c.robot.parents[i]) >= 0:
            wrong[p] += c.system.phi[p] @ wrong[i]
            right[p] += c.system.phi[i] @ right[i]
    return error(wrong, c.blocks(o.f)), error(right, c.blocks(o.f))


@misprint("[UA]", "(3.5)", "V(0) = BV", "V(0) = B*V")
def velocity_of_the_tip() -> Pair:
    c = forests()[0]
    X = pp.frame_pose(c.robot, c.q, "tool")
    twist = np.linalg.inv(X) @ c.rate(lambda q, v: pp.frame_pose(c.robot, q, "tool"))
    true = [twist[2, 1], twist[0, 2], twist[1, 0], *twist[:3, 3]]
    return impossible(lambda: o.B("tool") @ o.V), error(c(o.B("tool").T @ o.V), true)


@misprint("[UA]", "(4.6)", "τ̄ = I for passive hinges", "τ̄ = I for active hinges")
def released_hinges() -> Pair:
    c = forests()[-1]
    true = [felt(c, i, ~c.active) for i in range(c.robot.nb)]
    return error(c.but(active=~c.active).blocks(o.P_p), true), error(c.blocks(o.P_p), true)


@misprint("[UA]", "(A.5)", "ψMψ* = ψ̃P + P", "ψMψ* = ψ̃P + Pψ*")
def congruence_with_psi() -> Pair:
    c = bare()[0]
    left, first = c(o.psi_p @ o.M @ o.psi_p.T), c(o.psi_p_tilde @ o.P_p)
    return error(first + c(o.P_p), left), error(first + c(o.P_p @ o.psi_p.T), left)


@misprint("[UA]", "(A.6)", "φMψ* = φ̃P + P", "φMψ* = φ̃P + Pψ*")
def congruence_with_phi_and_psi() -> Pair:
    c = bare()[0]
    left, first = c(o.phi @ o.M @ o.psi_p.T), c(o.phi_tilde @ o.P_p)
    return error(first + c(o.P_p), left), error(first + c(o.P_p @ o.psi_p.T), left)


@misprint("[UA]", "(A.10)", "(I − H_pψK_p)ν_p", "(I − H_pψK_p)*ν_p")
def passive_accelerations() -> Pair:
    c = forests()[0]
    _, qdd = exchanged(c)
    a, p, H, psi, K = c.active, ~c.active, c(o.H_p), c(o.psi_p), c(o.K_p)
    given = c(o.H_a).T @ c.a[a] + c(o.a)
    z = psi @ (K @ c.tau[p] + c(o.P_p) @ given + c(o.b))
    nu, W = np.linalg.solve(c(o.D_p), c.tau[p] - H @ z), np.eye(int(p.sum())) - H @ psi @ K
    wrong, right = (error(X @ nu - K.T @ psi.T @ given, qdd[p]) for X in (W, W.T))
    return wrong, right


@misprint("[UA]", "Lemma 6.1", "rank T̄ = N_a", "rank T̄ = 6n − N_p")
def rank_of_the_projection() -> Pair:
    c = bare()[0]
    T = c(o.I - o.Omega_p @ o.M)
    rank, N_a, N_p = np.linalg.matrix_rank(T, 1e-9), c.active.sum(), (~c.active).sum()
    return float(abs(rank - N_a)), float(abs(rank - (len(T) - N_p)))


@misprint("[UA]", "(6.8)", "S_aa = HφT̄*MT̄φ*H*", "diag(S_aa, 0) = HφT̄*MT̄φ*H*")
def size_of_the_active_inertia() -> Pair:
    c = bare()[0]
    a, p, mass = c.active, ~c.active, c(o.mass)
    own = mass[np.ix_(p, p)], mass[np.ix_(p, a)]
    S_aa = mass[np.ix_(a, a)] - own[1].T @ np.linalg.solve(*own)
    seen = c((o.I - o.Omega_p @ o.M) @ o.phi.T @ o.H.T)
    whole = seen.T @ c(o.M) @ seen
    return impossible(lambda: error(whole, S_aa)), error(whole, padded(c, a, a, S_aa))


@misprint("[UA]", "(6.11)", "J_G is 6 × n_a, the active hinges", "6 × N_a, their freedoms")
def size_of_the_generalized_jacobian() -> Pair:
    c = forests()[0].by_hinges()
    J = c(o.B("tool").T @ (o.psi_p.T - o.Omega_p @ o.P_p) @ o.H_a.T)
    hinges = sum(bool(c.active[h.v].all()) for h in c.robot.hinges)
    return float(abs(J.shape[1] - hinges)), float(abs(J.shape[1] - c.active.sum()))


@misprint("[UA]", "(7.1): sign", "[J_G; J_D]β̇_a = […] + drift", "[J_G; J_D]β̇_a = […] − drift")
def sign_of_the_drift() -> Pair:
    c, wanted = reacting(), np.arange(12.0)
    J, a = c(o.J("tool")), c.active
    J_D = -np.linalg.solve(c(o.mass)[:6, :6], c(o.mass)[:6, 6:])
    both = np.vstack((J[:, a] + J[:, :6] @ J_D, J_D))

    def reached(push: np.ndarray) -> np.ndarray:
        _, qdd = exchanged(c.but(a=np.concatenate((np.zeros(6), push))))
        return np.concatenate((c(o.B("tool").T @ o.alpha, beta_dot=qdd), qdd[:6]))

    drift = reached(np.zeros(int(a.sum())))
    wrong, right = (
        error(reached(np.linalg.lstsq(both, wanted + sign * drift, rcond=None)[0]), wanted)
        for sign in (1, -1)
    )
    return wrong, right


@misprint("[UA]", "(7.1): unknowns", "[J_G; J_D]β̇_p = …", "[J_G; J_D]β̇_a = …")
def unknowns_of_reaction_mode() -> Pair:
    c = reacting()
    mass, J, a = c(o.mass), c(o.J("tool")), c.active
    J_D = -np.linalg.solve(mass[:6, :6], mass[:6, 6:])
    J_G = J[:, a] + J[:, :6] @ J_D
    _, qdd = exchanged(c.but(v=0 * c.v, tau=0 * c.tau, loaded=False))
    right = error(J_G @ qdd[a], J @ qdd) + error(J_D @ qdd[a], qdd[~a])
    return impossible(lambda: J_G @ qdd[~a]), right


@misprint(
    "[UA]",
    "(7.2)–(7.3)",
    "dh/dt = T_p, h = [𝓜_pp, 𝓜_pa]β",
    "d(φ_root h)/dt = φ_root T_p",
    tolerance=1e-8,
)
def rate_of_momentum() -> Pair:
    c = flyers()[0].but(loaded=False)

    def h(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return (c.but(q=q)(o.mass) @ v)[:6]

    def seen(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return c.but(q=q).system.phi[0] @ h(q, v)

    wrong, right = c.rate(h, c.qdd), c.rate(seen, c.qdd)
    return error(wrong, c.tau[:6]), error(right, c.system.phi[0] @ c.tau[:6])


# ---- [DL] ---------------------------------------------------------------------------------------


@misprint("[DL]", "3: rates", "ν = mθ̇", "ν = m*θ̇")
def total_rates() -> Pair:
    c = arm()
    energy, m = c.v @ c(o.mass) @ c.v, c(o.m)
    wrong, right = (error((X @ c.v) @ (X @ c.v), energy) for X in (m, m.T))
    return wrong, right


@misprint("[DL]", "3: kinematics", "θ̇ = ℓν", "θ̇ = ℓ*ν")
def joint_rates() -> Pair:
    c = arm()
    nu, l = c(o.nu), c(o.l)
    return error(l @ nu, c.v), error(l.T @ nu, c.v)


@misprint("[DL]", "Lemma 2.2", "N(N + 1)/2 symbols", "N²(N² − 1)/12")
def number_of_curvatures() -> Pair:
    sizes = (2, 3, 4)
    true = [curvatures(n) for n in sizes]
    wrong, right = [entries(n) for n in sizes], [n * n * (n * n - 1) // 12 for n in sizes]
    return error(wrong, true), error(right, true)


@misprint("[DL]", "(4.4), text below", "𝓜 = HφMφH*", "𝓜 = HφMφ*H*")
def mass_matrix() -> Pair:
    c = arm()
    H, phi, M = c(o.H), c(o.phi), c(o.M)
    energy = 2 * np.asarray(pp.kinetic_energy(c.robot, c.q, c.v))
    wrong, right = (error(c.v @ (H @ phi @ M @ X @ H.T) @ c.v, energy) for X in (phi, phi.T))
    return wrong, right


@misprint(
    "[DL]", "after (5.5)", "X × (Z × Y) = −Z × (X × Y)", "X × (Z × Y) = (X × Z) × Y + Z × (X × Y)"
)
def double_cross_product() -> Pair:
    X, Y, Z = np.random.default_rng(0).normal(size=(3, 6))
    left, swapped = ad(X) @ ad(Z) @ Y, ad(Z) @ ad(X) @ Y
    return error(-swapped, left), error(ad(ad(X) @ Z) @ Y + swapped, left)


def inertia_rates(c: Case, form: str) -> np.ndarray:
    """Ṗ by a recursion: "printed" (ψλψ), "paper" (ψλψ*) or "general" (Alg DIAG)."""
    P_dot, Delta = np.zeros((c.robot.nb, 6, 6)), c.blocks(o.H.T @ o.beta)
    P, P_plus, tau_bar = (c.blocks(x) for x in (o.P, o.P_plus, o.tau_bar))
    H_dot = c.rate(lambda q, v: c.but(q=q).system.H)
    for i, (h, p) in reversed([*enumerate(zip(c.robot.hinges, c.robot.parents, strict=True))]):
        if p < 0:
            continue
        phi, t, G = c.system.phi[i], tau_bar[i], c(o.G)[6 * i : 6 * i + 6, h.v]
        X, X_plus = crf(Delta[i]) @ P[i], crf(Delta[i]) @ P_plus[i] - G @ H_dot[h.v] @ P_plus[i]
        lam = P_dot[i] + X + X.T
        P_dot[p] += {
            "printed": phi @ t @ lam @ phi @ t,
            "paper": phi @ t @ lam @ t.T @ phi.T,
            "general": phi @ (t @ P_dot[i] @ t.T + X_plus + X_plus.T) @ phi.T,
        }[form]
    return P_dot


@misprint("[DL]", "(6.5)", "Ṗ = ψλψ", "Ṗ = ψλψ*", tolerance=1e-8)
def rate_of_the_articulated_inertia() -> Pair:
    c = arms()[0]
    true = c.blocks(o.P_dot)
    return error(inertia_rates(c, "printed"), true), error(inertia_rates(c, "paper"), true)


@misprint(
    "[DL]",
    "“extension to multi-dof is easy”: universal hinges",
    "Ṗ = ψ(Ṗ + X + X*)ψ*",
    "Ṗ = φ(τ̄Ṗτ̄* + X⁺ + X⁺*)φ*, X⁺ = crf(Δ)P⁺ − GḢP⁺",
    tolerance=1e-8,
)
def rate_with_several_freedoms() -> Pair:
    c = bare(kinds=("universal",))[0]
    true = c.blocks(o.P_dot)
    return error(inertia_rates(c, "paper"), true), error(inertia_rates(c, "general"), true)


@misprint(
    "[DL]",
    "“extension to multi-dof is easy”: ball and planar hinges with armature",
    "Ṗ = ψ(Ṗ + X + X*)ψ*",
    "Ṗ = φ(τ̄Ṗτ̄* + X⁺ + X⁺*)φ*, X⁺ = crf(Δ)P⁺ − GḢP⁺",
    tolerance=1e-8,
)
def rate_with_armature() -> Pair:
    c = Case(random_forest(2, 4, kinds=("spherical", "planar"), massless=False))
    true = c.blocks(o.P_dot)
    return error(inertia_rates(c, "paper"), true), error(inertia_rates(c, "general"), true)


@misprint("[DL]", "(6.16c)", "2Hφ[Δ̃(I + φKH)P + Ṽ*]MV", "2Hφ[Δ̃(I + φKH)P + Ṽ*M]V", tolerance=1e-8)
def gradient_of_the_energy() -> Pair:
    c = arms()[0]
    first = c(o.Delta_cross @ (o.I + o.phi @ o.K @ o.H) @ o.P)
    M, V, turned = c(o.M), c(o.V), c(o.V_cross).T
    wrong, right = (
        error(2 * c(o.H @ o.phi) @ force, c(o.gamma))
        for force in ((first + turned) @ M @ V, (first + turned @ M) @ V)
    )
    return wrong, right


@misprint(
    "[DL]",
    "(7.3), “PΩ̃_δ”",
    "the cross product of forces, PΔ̃",
    "that of motions, P ad(Δ) = −(Δ̃P)*",
    tolerance=1e-8,
)
def cross_product_beside_an_inertia() -> Pair:
    c = arms()[0]
    W, P, E, lam = c(o.Delta_cross), c(o.P), c(o.E_psi), c(o.lam)
    rest = E @ lam - lam @ E.T - W @ P - 2 * c(o.V_cross.T @ o.M)
    wrong, right = (
        error(0.5 * c(o.D_half.inv @ o.H @ o.psi) @ (rest - X) @ c(o.V), c(o.C_nu))
        for X in (P @ W, -P @ W.T)
    )
    return wrong, right


@misprint("[DL]", "(8.1)", "ξ̇ = T − Hψχ", "ξ̇ = D⁻¹(T − Hψχ)", tolerance=1e-8)
def diagonal_accelerations() -> Pair:
    c = arms()[0]
    chi = o.K @ o.T + o.lam @ o.H.T @ o.xi - (o.Delta_cross @ o.P + o.V_cross.T @ o.M) @ o.V
    force = c(o.T - o.H @ o.psi @ chi)
    true = c.rate(lambda q, v: (c.but(q=q)((o.I + o.H @ o.phi @ o.K).T)) @ v, c.qdd)
    return error(force, true), error(np.linalg.solve(c(o.D), force), true)


def coloured(c: Case, order: Iterable[int], *, root: bool = True) -> np.ndarray:
    """T = mε by Table 3, ε = w; bodies in some order, with or without D½ in z⁺."""
    z, z_plus, T, half = *np.zeros((2, c.robot.nb, 6)), 0 * c.w, c(o.D_half)
    for i in order:
        h, p = c.robot.hinges[i], c.robot.parents
        z[i] = sum((c.system.phi[k] @ z_plus[k] for k in range(len(p)) if p[k] == i), z[i])
        kappa = half[h.v, h.v] @ c.w[h.v]
        G = c(o.G)[6 * i : 6 * i + 6, h.v]
        z_plus[i] = z[i] + G @ (kappa if root else c.w[h.v])
        T[h.v] = kappa + c.system.H[h.v] @ z[i]
    return T


@misprint("[DL]", "Table 3: z⁺", "z⁺ = z + Gε", "z⁺ = z + GD½ε")
def gain_of_normalized_moments() -> Pair:
    c = forests()[0]
    true, inward = c(o.m) @ c.w, range(c.robot.nb)[::-1]
    return error(coloured(c, inward, root=False), true), error(coloured(c, inward), true)


@misprint("[DL]", "Table 3: direction", "T = mε by an outward recursion", "by an inward one")
def direction_of_the_moments() -> Pair:
    c = forests()[0]
    true, outward = c(o.m) @ c.w, range(c.robot.nb)
    return error(coloured(c, outward), true), error(coloured(c, outward[::-1]), true)


@misprint("[DL]", "(8.6): size", "HψBe, e = Ŷ − Y has 12 numbers", "HψBL̃*We, Ẏ = L̃V")
def size_of_the_pose_error() -> Pair:
    c = curved()
    to = Reaching(c)
    e = to.target - to.pose(c.q)
    wrong = impossible(lambda: c(o.H @ o.psi @ o.B("tool")) @ e)
    V = c(o.B("tool").T @ o.V)
    return wrong, error(to.rate(c.q) @ V, c.rate(lambda q, v: to.pose(q)))


@misprint(
    "[DL]", "(8.6): sign and factor", "ε = −c₁ν − HψBL̃*We", "ε = −c₁ν + D⁻½HψBL̃*We", tolerance=1e-8
)
def sign_of_the_pose_error() -> Pair:
    c = curved()
    to = Reaching(c)
    nu, m = c(o.nu), c(o.m)
    push = c(o.H @ o.psi @ o.B("tool")) @ to.push(c.q)
    half = np.linalg.solve(c(o.D_half), push)

    def fall(eps: np.ndarray) -> float:
        qdd = np.linalg.solve(c(o.mass), m @ eps - c(o.C))
        return error(c.rate(to.lyapunov, qdd), -to.damping * nu @ nu)

    return fall(-to.damping * nu - push), fall(-to.damping * nu + half)


@misprint(
    "[DL]",
    "Control 8.2: “guarantees”",
    "e → 0 from everywhere",
    "L̃*We → 0: a target half a turn away is an equilibrium too",
)
def half_a_turn() -> Pair:
    c = curved()
    to, turn = Reaching(c), np.diag([-1.0, -1.0, 1.0])
    X = pp.frame_pose(c.robot, c.q, "tool")
    to.target = np.concatenate((X[:3, 3], (X[:3, :3] @ turn).T.ravel()))
    e = to.target - to.pose(c.q)
    return float(np.abs(e).max()), float(np.abs(to.rate(c.q).T @ e).max())


# ---- [SOA] --------------------------------------------------------------------------------------


@misprint(
    "[SOA]",
    "Alg FD, second loop",
    "θ̈(k) = ν(k) − K*(k+1)α(k+1; k)",
    "θ̈(k) = ν(k) − K*(k+1, k)α(k+1)",
)
def gain_of_the_second_loop() -> Pair:
    c = arm()
    true = np.linalg.solve(c(o.mass), c.tau)
    nu = c(o.D.inv @ (o.I - o.H @ o.psi @ o.K) @ o.T)
    lam = (c(o.phi.T @ o.H.T) @ true).reshape(-1, 6)
    wrong, right = nu.copy(), nu.copy()
    for i in range(1, c.robot.nb):
        own, inner = c(o.G)[6 * i : 6 * i + 6, i], c(o.G)[6 * i - 6 : 6 * i, i - 1]
        plus = c.system.phi[i].T @ lam[i - 1]
        wrong[i] -= (c.system.phi[i - 1] @ inner) @ plus
        right[i] -= own @ plus
    return error(wrong, true), error(right, true)


@misprint("[SOA]", "Alg FD, “α”", "α = φ*H*θ̈ of the second loop", "α = φ*(H*θ̈ + a)")
def accelerations_of_the_second_loop() -> Pair:
    c = arm()
    true = c.rate(lambda q, v: c.but(q=q)(o.phi.T @ o.H.T) @ v, c.qdd)
    lam = c(o.phi.T @ o.H.T) @ c.qdd
    return error(lam, true), error(lam + c(o.phi.T @ o.a), true)


@misprint(
    "[SOA]",
    "Application 1, first loop",
    "ẑ(k) = ψ(k, k−1)ẑ(k−1) from k = 1",
    "from k = 2, ẑ(1) = φ(1, 0)f",
)
def start_of_the_tip_force_loop() -> Pair:
    c, force = arm(), np.arange(1.0, 7.0)
    true = np.linalg.solve(c(o.mass), c(o.J("tool")).T @ force)
    n, W = c.robot.nb, c(o.I - o.H @ o.psi @ o.K)

    def loop(start: np.ndarray, *, again: bool) -> np.ndarray:
        z = np.zeros((n, 6))
        z[-1] = 0.0 if again else start  # as printed it is made anew, from ẑ(0), which is nothing
        for i in reversed(range(n - 1)):
            z[i] = c.system.phi[i + 1] @ c.blocks(o.tau_bar)[i + 1] @ z[i + 1]
        return W.T @ np.linalg.solve(c(o.D), c(o.H) @ z.ravel())

    start = c(o.B("tool"))[-6:] @ force
    return error(loop(start, again=True), true), error(loop(start, again=False), true)


@misprint(
    "[SOA]",
    "5, Application 3: “no loss of generality”",
    "L = Υ_A + Υ_B on a moving base",
    "L = Υ_A + Υ_B − Ω_AB − Ω_AB*",
)
def coupling_through_the_base() -> Pair:
    c = Case(branched(), loaded=False)
    c = c.but(v=0 * c.v)
    mass, free = c(o.mass), np.linalg.solve(c(o.mass), c.tau)
    A, B = (pp.jacobian(c.robot, c.q, name, reference="world") for name in ("b0", "b1"))
    Q = A - B
    kkt = np.block([[mass, -Q.T], [Q, np.zeros((6, 6))]])
    true = np.linalg.solve(kkt, np.concatenate((c.tau, np.zeros(6))))[: c.robot.nv]

    def closed(L: np.ndarray) -> np.ndarray:
        return free - np.linalg.solve(mass, Q.T) @ np.linalg.solve(L, Q @ free)

    own = [X @ np.linalg.solve(mass, X.T) for X in (A, B)]
    cross = A @ np.linalg.solve(mass, B.T)
    return error(closed(own[0] + own[1]), true), error(closed(sum(own) - cross - cross.T), true)


@misprint("[SOA]", "6: decoupled equations", "ν = D½(I + HφK)θ̇", "ν = D½(I + HφK)*θ̇")
def rates_of_the_decoupled_equations() -> Pair:
    c = arm()
    colour, half, energy = c(o.I + o.H @ o.phi @ o.K), c(o.D_half), c.v @ c(o.mass) @ c.v
    wrong, right = (error((half @ X @ c.v) @ (half @ X @ c.v), energy) for X in (colour, colour.T))
    return wrong, right


@misprint(
    "all papers", "Riccati equation, with armature", "M = P − E_ψPE_ψ*", "M = P − E_ψPE_ψ* − KAK*"
)
def riccati_with_armature() -> Pair:
    c = forests()[0]
    P, E, K, A, M = c(o.P), c(o.E_psi), c(o.K), c(o.A), c(o.M)
    return error(P - E @ P @ E.T, M), error(P - E @ P @ E.T - K @ A @ K.T, M)
