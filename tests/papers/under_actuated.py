"""[UA]: active joints with prescribed accelerations, passive ones with given forces."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

import phipsi as pp
from phipsi import control
from phipsi import operators as o
from phipsi.control.tasks import Rows
from tests.papers.cases import FRAMES, Case, bare, flyers, forests, identities, peers, seen
from tests.papers.oracles import Aim, aligned, classical, exchanged, felt
from tests.papers.rows import Paper, error

UA = Paper(
    "[UA]",
    "Jain & Rodriguez, An analysis of the kinematics and dynamics of under-actuated manipulators",
)
Errors = Iterator[float]


def padded(c: Case, rows: np.ndarray, columns: np.ndarray, block: np.ndarray) -> np.ndarray:
    """A block in a matrix (nv, nv) that is zero elsewhere."""
    out = np.zeros((c.robot.nv, c.robot.nv))
    out[np.ix_(rows, columns)] = block
    return out


def splits() -> tuple[Case, ...]:
    """Forests with single freedoms active, and with whole hinges active, as in the paper."""
    return *forests(), *(c.by_hinges() for c in forests())


def driven(c: Case) -> Case:
    """The case with a passive base and active joints."""
    return c.but(active=np.arange(c.robot.nv) >= 6)


@cache
def reacting() -> Case:
    """A free base and five ball joints: fifteen active freedoms."""
    return driven(Case(seen(pp.robots.chain(5, "spherical", base="free"))))


@UA.item(
    "(3.1)–(3.6)",
    "Newton–Euler, 𝓜 = HφMφ*H*, C = Hφ(Mφ*a + b), V(0) = B*V",
    "inverse_dynamics mass_matrix bias_force frame_velocity",
)
def equations_of_motion() -> Errors:
    """Pinocchio (rnea, crba); dense products."""
    for peer in peers():
        c = peer.c
        T = pp.inverse_dynamics(c.robot, c.q, c.v, c.a, external=c.external)
        yield error(T, peer.inverse_dynamics())
        yield error(pp.mass_matrix(c.robot, c.q), peer.mass_matrix())
    for c in forests():
        yield error(pp.bias_force(c.robot, c.q, c.v, external=c.external), c(o.C))
        for frame in FRAMES:
            yield error(pp.frame_velocity(c.robot, c.q, c.v, frame), c(o.B(frame).T @ o.V))


# ---- 4: the passive arm -------------------------------------------------------------------------


@UA.item(
    "(4.1)–(4.5)",
    "[T_a; β̇_p] = [[S_aa, S_ap], [−S_ap*, S_pp]][β̇_a; T_p] + bias",
    "active_mass_matrix coupling passive_mass_inverse operators.mass_ap",
)
def partition() -> Errors:
    """Dense Schur complements of 𝓜."""
    yield from identities("[UA] (4.1)-(4.5)")
    for c in splits():
        a, p, at = c.active, ~c.active, (c.robot, c.q, c.active)
        mass = c(o.mass)
        S_pp = np.linalg.inv(mass[np.ix_(p, p)])
        S_ap = mass[np.ix_(a, p)] @ S_pp
        S_aa = mass[np.ix_(a, a)] - S_ap @ mass[np.ix_(p, a)]
        yield error(pp.active_mass_matrix(*at), padded(c, a, a, S_aa))
        yield error(pp.coupling(*at), padded(c, a, p, S_ap))
        yield error(pp.passive_mass_inverse(*at), padded(c, p, p, S_pp))


@UA.item(
    "(4.6)–(4.9)",
    "P_p, D_p, G_p, ψ_p: only the passive hinges are released",
    "operators.P_p operators.D_p operators.G_p operators.psi_p",
)
def passive_riccati() -> Errors:
    """The inertia felt at each body: passive freedoms outboard eliminated, active ones locked."""
    for c in splits():
        P = np.zeros((6 * c.robot.nb, 6 * c.robot.nb))
        for i in range(c.robot.nb):
            own = slice(6 * i, 6 * i + 6)
            P[own, own] = felt(c, i, ~c.active)
        yield error(c.lowered(o.P_p), P)
        H, A = c(o.H_p), c(o.A_p)
        D = H @ P @ H.T + A
        G = P @ H.T @ np.linalg.inv(D)
        psi = np.linalg.inv(np.eye(len(P)) - c(o.E_phi) @ (np.eye(len(P)) - G @ H))
        for x, expected in ((o.D_p, D), (o.G_p, G), (o.psi_p, psi)):
            yield error(c.lowered(x), expected)


@UA.item("Lemma 4.1", "𝓜_pp = (I + H_pφK_p)D_p(I + H_pφK_p)*", "operators.mass_pp")
def passive_factorization() -> Errors:
    """Dense H_pφMφ*H_p* + A_p."""
    yield from identities("[SOA] Lemma 4.1", passive=True)
    for c in splits():
        p = ~c.active
        yield error(c.lowered(o.mass_pp), c(o.mass)[np.ix_(p, p)])


@UA.item("Lemma 4.2", "(I + H_pφK_p)⁻¹ = I − H_pψK_p", "operators.K_p operators.psi_p")
def passive_inverse_factor() -> Errors:
    """Dense inverse."""
    yield from identities("[SOA] Lemma 4.2", passive=True)
    for c in splits():
        whiten, colour = o.I - o.H_p @ o.psi_p @ o.K_p, o.I + o.H_p @ o.phi @ o.K_p
        yield error(c.lowered(whiten), np.linalg.inv(c(colour)))


@UA.item(
    "Lemma 4.3",
    "𝓜_pp⁻¹ = (I − H_pψK_p)*D_p⁻¹(I − H_pψK_p)",
    "passive_mass_inverse operators.mass_pp.inv",
)
def passive_inverse() -> Errors:
    """Dense inverse."""
    yield from identities("[UA] Lemma 4.1-4.3")
    for c in splits():
        p = ~c.active
        expected = padded(c, p, p, np.linalg.inv(c(o.mass)[np.ix_(p, p)]))
        yield error(pp.passive_mass_inverse(c.robot, c.q, c.active), expected)
        yield error(c.lowered(o.mass_pp.inv), expected[np.ix_(p, p)])


# ---- 5: generalized dynamics --------------------------------------------------------------------


@UA.item(
    "Lemma 5.1",
    "S_aa = H_a((ψ − PΩ)P + Pψ̃*)H_a* + A_a, S_ap = H_a((ψ − PΩ)K_p + Pψ*H_p*D_p⁻¹)",
    "active_mass_matrix coupling operators.Omega_p",
)
def operator_blocks() -> Errors:
    """Dense Schur complements of 𝓜."""
    yield from identities("[UA] Lemma 5.1")
    for c in flyers():
        a, p, at = c.active, ~c.active, (c.robot, c.q, c.active)
        mass = c(o.mass)
        S_ap = np.linalg.solve(mass[np.ix_(p, p)], mass[np.ix_(p, a)]).T
        S_aa = mass[np.ix_(a, a)] - S_ap @ mass[np.ix_(p, a)]
        yield error(pp.active_mass_matrix(*at), padded(c, a, a, S_aa))
        yield error(pp.coupling(*at), padded(c, a, p, S_ap))


@UA.item(
    "Lemma 5.2",
    "α = ψ*(H_p*ν_p + H_a*β̇_a + a), β̇_p = ν_p − K_p*α, T_a = H_aP(α − H_a*β̇_a − a) + H_az",
    "hybrid_dynamics operators.psi_p",
)
def generalized_dynamics() -> Errors:
    """Dense elimination of the passive accelerations."""
    for c in forests():
        c = c.by_hinges()
        T, qdd = exchanged(c)
        a, p = c.active, ~c.active
        H_a, H_p, P, psi, K, D = (
            c.lowered(x) for x in (o.H_a, o.H_p, o.P_p, o.psi_p, o.K_p, o.D_p)
        )
        given = H_a.T @ c.a[a] + c(o.a)
        z = psi @ (K @ c.tau[p] + P @ given + c(o.b))
        nu = np.linalg.solve(D, c.tau[p] - H_p @ z)
        alpha = psi.T @ (H_p.T @ nu + given)
        yield error(alpha, c(o.alpha, beta_dot=qdd))
        yield error(nu - K.T @ alpha, qdd[p])
        yield error(H_a @ (P @ (alpha - given) + z) + c(o.A_a) @ c.a[a], T[a])
        found = pp.hybrid_dynamics(c.robot, c.q, c.v, c.tau, c.a, c.active, external=c.external)
        yield error(found.tau, T)
        yield error(found.qdd, qdd)


@UA.item(
    "(5.4)",
    "T_a and β̇_p by one sweep in and one out, any freedoms active",
    "hybrid_dynamics",
)
def hybrid_dynamics() -> Errors:
    """Pinocchio (rnea returns all forces); dense elimination; all active, all passive."""
    for peer in peers():
        c = peer.c
        at = c.robot, c.q, c.v, c.tau, c.a
        tau, qdd = pp.hybrid_dynamics(*at, c.active, external=c.external)
        yield error(tau, exchanged(c)[0])
        yield error(qdd, exchanged(c)[1])
        yield error(tau, peer.inverse_dynamics(qdd))
        every = np.ones(c.robot.nv, bool)
        yield error(
            pp.hybrid_dynamics(*at, every, external=c.external).tau, peer.inverse_dynamics()
        )
        yield error(
            pp.hybrid_dynamics(*at, ~every, external=c.external).qdd, peer.forward_dynamics()
        )


# ---- 6: Jacobians -------------------------------------------------------------------------------


@UA.item(
    "Lemma 6.1",
    "Ω_pM and I − Ω_pM are projections, of rank N_p and 6n − N_p",
    "operators.proj_p operators.proj_a",
)
def projections() -> Errors:
    """Dense products and ranks."""
    yield from identities("[UA] Lemma 6.1")
    for c in bare():
        T_p = c.lowered(o.proj_p)
        n, N_p = len(T_p), int((~c.active).sum())
        yield error(T_p @ T_p, T_p)
        yield error(T_p, np.eye(n) - c.lowered(o.proj_a))
        yield error(T_p, c(o.phi.T @ o.H_p.T @ o.mass_pp.inv @ o.H_p @ o.phi @ o.M))
        ranks = [np.linalg.matrix_rank(x, 1e-9) for x in (T_p, np.eye(n) - T_p)]
        yield error(ranks, [N_p, n - N_p])


@UA.item(
    "Lemma 6.2",
    "(I − Ω_pM)φ* = ψ_p* − Ω_pP_p, (I − Ω_pM)φ*H_p* = 0, S_aa = H_aφT̄*MT̄φ*H_a* (6.8)",
    "operators.proj_a active_mass_matrix",
)
def projected_inertia() -> Errors:
    """Dense motions of all bodies by active joints, the passive ones yielding."""
    yield from identities("[UA] Lemma 6.2", "[UA] (6.8)")
    for c in bare():
        p, mass, motions = ~c.active, c(o.mass), c(o.phi.T @ o.H.T)
        yielding = np.linalg.solve(mass[np.ix_(p, p)], mass[np.ix_(p, c.active)])
        seen = motions[:, c.active] - motions[:, p] @ yielding
        yield error(c.lowered(o.proj_a @ o.phi.T @ o.H_a.T), seen)
        yield error(c.lowered(o.proj_a @ o.phi.T @ o.H_p.T), 0 * motions[:, p])
        found = pp.active_mass_matrix(c.robot, c.q, c.active)[np.ix_(c.active, c.active)]
        yield error(found, seen.T @ c(o.M) @ seen)


@UA.item(
    "(6.9)",
    "α = (ψ* − ΩP)H_a*β̇_a + ψ*H_p*D_p⁻¹(I − H_pψK_p)T_p − Ω(b + Pa) + ψ*a: every body",
    "operators.psi_p operators.Omega_p hybrid_dynamics accelerations",
)
def accelerations_of_bodies() -> Errors:
    """Dense elimination of the passive accelerations."""
    whiten = o.I - o.H_p @ o.psi_p @ o.K_p
    for c in splits():
        alpha, a, p = c(o.alpha, beta_dot=exchanged(c)[1]), c.active, ~c.active
        found = c.lowered((o.psi_p.T - o.Omega_p @ o.P_p) @ o.H_a.T) @ c.a[a]
        found = found + c.lowered(o.psi_p.T @ o.H_p.T @ o.D_p.inv @ whiten) @ c.tau[p]
        yield error(found + c.lowered(o.psi_p.T @ o.a - o.Omega_p @ (o.b + o.P_p @ o.a)), alpha)
        at = c.robot, c.q, c.v
        qdd = pp.hybrid_dynamics(*at, c.tau, c.a, c.active, external=c.external).qdd
        yield error(pp.accelerations(*at, qdd).ravel(), alpha)


@UA.item(
    "(6.10)",
    "α(0) = B*α = J_Gβ̇_a + drift: the tip",
    "generalized_jacobian drift_accelerations frame_acceleration",
)
def acceleration_of_the_tip() -> Errors:
    """Dense elimination of the passive accelerations."""
    for c in splits():
        at = c.robot, c.q, c.v
        for frame in FRAMES:
            expected = c(o.B(frame).T @ o.alpha, beta_dot=exchanged(c)[1])
            J_G = pp.generalized_jacobian(c.robot, c.q, frame, c.active)
            drift = pp.drift_accelerations(*at, c.tau, frame, c.active, external=c.external)
            yield error(J_G @ np.where(c.active, c.a, 0.0) + drift.frame, expected)
            qdd = pp.hybrid_dynamics(*at, c.tau, c.a, c.active, external=c.external).qdd
            yield error(pp.frame_acceleration(*at, qdd, frame), expected)


@UA.item(
    "Lemma 6.3, (6.11)",
    "J_G = B*(ψ_p* − Ω_pP_p)H_a*: of size 6 × N_a",
    "generalized_jacobian operators.J_G",
)
def generalized_jacobian() -> Errors:
    """Dense J_a − J_p𝓜_pp⁻¹𝓜_pa."""
    yield from identities("[UA] Lemma 6.3")
    for c in splits():
        for frame in FRAMES:
            yield error(pp.generalized_jacobian(c.robot, c.q, frame, c.active), J_G_of(c, frame))


def J_G_of(c: Case, frame: str) -> np.ndarray:
    """J_a − J_p𝓜_pp⁻¹𝓜_pa in the columns of active joints, zero elsewhere."""
    a, p, mass, J = c.active, ~c.active, c(o.mass), c(o.J(frame))
    J_G = 0 * J
    J_G[:, a] = J[:, a] - J[:, p] @ np.linalg.solve(mass[np.ix_(p, p)], mass[np.ix_(p, a)])
    return J_G


@UA.item(
    "(6.12)",
    "J_G = J_a + J_pJ_D: the Jacobian of the active joints, and what the passive ones add",
    "generalized_jacobian jacobian disturbance_jacobian",
)
def sum_of_jacobians() -> Errors:
    """Dense J_a − J_p𝓜_pp⁻¹𝓜_pa."""
    for c in splits():
        J_D = pp.disturbance_jacobian(c.robot, c.q, c.active)
        for frame in FRAMES:
            J = pp.jacobian(c.robot, c.q, frame)
            yield error(J * c.active + J @ J_D, J_G_of(c, frame))
            yield error(pp.generalized_jacobian(c.robot, c.q, frame, c.active), J_G_of(c, frame))


@UA.item("Lemma 6.4", "J_D = −S_ap* = −𝓜_pp⁻¹𝓜_pa", "disturbance_jacobian operators.J_D")
def disturbance_jacobian() -> Errors:
    """Dense −𝓜_pp⁻¹𝓜_pa."""
    yield from identities("[UA] Lemma 6.4")
    for c in splits():
        a, p, mass = c.active, ~c.active, c(o.mass)
        J_D = -np.linalg.solve(mass[np.ix_(p, p)], mass[np.ix_(p, a)])
        yield error(pp.disturbance_jacobian(c.robot, c.q, c.active), padded(c, p, a, J_D))


@UA.item(
    "Lemma 6.3, 6.4: columns",
    "J_Gx and J_Dx by one hybrid sweep, O(N)",
    "generalized_jacobian_product disturbance_jacobian_product",
)
def columns() -> Errors:
    """Dense elimination of the passive accelerations, everything at rest."""
    for c in forests():
        _, qdd = exchanged(c.but(v=0 * c.v, tau=0 * c.tau, loaded=False))
        at = c.robot, c.q, c.a
        found = pp.disturbance_jacobian_product(*at, c.active)
        yield error(found[~c.active], qdd[~c.active])
        for frame in FRAMES:
            found = pp.generalized_jacobian_product(*at, frame, c.active)
            yield error(found, c(o.J(frame)) @ qdd)


@UA.item(
    "6.2: tracking",
    "β̇_a = J_G⁺(α − drift): the tip follows while the base floats",
    "control.resolved_acceleration",
    also="control/test_dense.py control/test_free_flyers.py",
    tolerance=1e-8,
)
def end_effector_tracking() -> Errors:
    """The dense equations of motion, controlled: the acceleration of the frame."""
    for c in (reacting(), *(driven(c) for c in flyers())):
        c = c.undisturbed()
        for frame in FRAMES:
            aim = Aim(c, frame)
            to = aim.pose, aim.velocity, aim.acceleration
            at = c.robot, c.q, c.v, c.active, *to
            known = np.where(c.active, 0.0, c.tau)
            tau = control.resolved_acceleration(*at, tau=known, frame=frame, **GAINS)["tau"]
            yield error(classical(c, frame, moved(c, tau)), aim.wanted(30.0, 7.0))
            yield error(tau[:6], np.zeros(6))


GAINS = {"stiffness": 30.0, "damping": 7.0, "singular": 1e-6, "passive": False}


def moved(c: Case, tau: np.ndarray) -> np.ndarray:
    """β̇ by a controller's forces, and by those of the case where it has no motor."""
    return np.linalg.solve(c(o.mass), np.where(c.active, tau, c.tau) - c(o.C))


# ---- 7: free-flying robots ----------------------------------------------------------------------


@UA.item(
    "(7.1)",
    "[J_G; J_D]β̇_a = [α − drift; β̇_p − drift]: the tip moves and the base does not",
    "control.reaction_mode",
    also="control/test_free_flyers.py",
    tolerance=1e-8,
)
def reaction_mode() -> Errors:
    """The dense equations of motion, controlled: accelerations of the tip and of the base."""
    cases: list[tuple[Case, Rows, slice, Rows, slice]] = [
        (reacting(), "pose", slice(0, 6), "all", slice(0, 6)),
        *((driven(c), "linear", slice(3, 6), "angular", slice(0, 3)) for c in flyers()),
    ]
    for c, rows, part, base_rows, held in cases:
        c, base = c.undisturbed(), c.robot.bodies[0].name
        aim, home = Aim(c, "tool"), Aim(c, base, 6)
        to = aim.pose, aim.velocity, aim.acceleration
        out = control.reaction_mode(
            c.robot, c.q, c.v, c.active, *to, tau=np.where(c.active, 0.0, c.tau),
            base_pose=home.pose, rows=rows, base_rows=base_rows, base_stiffness=20.0,
            base_damping=5.0, **GAINS,
        )  # fmt: skip
        qdd = moved(c, out["tau"])
        yield error(classical(c, "tool", qdd)[part], aim.wanted(30.0, 7.0)[part])
        expected = home.wanted(20.0, 5.0, at_rest=True)
        yield error(classical(c, base, qdd)[held], expected[held])
        yield error(out["tau"][:6], np.zeros(6))


@UA.item(
    "(7.2)–(7.3)",
    "h = [𝓜_pp, 𝓜_pa]β, d/dt φ_root h = φ_root T_base; at rest β_p = J_Dβ_a, V = J_Gβ_a",
    "momentum passive_rates generalized_jacobian_product control.resolved_rate",
    also="algorithms/test_laws.py",
    tolerance=1e-8,
)
def momentum() -> Errors:
    """Rows of the dense 𝓜; differences along the motion of the dense equations."""
    for c in flyers():
        c = driven(c)
        yield error(pp.momentum(c.robot, c.q, c.v, about="base"), (c(o.mass) @ c.v)[:6])
        free = c.but(loaded=False)
        rate = free.rate(lambda q, v, c=free: pp.momentum(c.robot, q, v), free.qdd)
        yield error(rate, free.system.phi[0] @ free.tau[:6])
        beta, at = pp.passive_rates(c.robot, c.q, c.v, c.active), (c.robot, c.q, c.v)
        yield error((c(o.mass) @ beta)[:6], np.zeros(6))
        for frame in FRAMES:
            found = pp.generalized_jacobian_product(*at, frame, c.active)
            yield error(found, c(o.J(frame)) @ beta)
            aim, gains = Aim(c, frame), {"frame": frame, "stiffness": 4.0, "singular": 1e-7}
            to = c.robot, c.q, c.active, aim.pose, aim.velocity
            rates = control.resolved_rate(*to, momentum=c.tau, **gains)
            yield error(aligned(c, frame) @ rates, aim.velocity + 4.0 * aim.error)
            yield error((c(o.mass) @ rates)[:6], c.tau[:6])


@UA.item(
    "Lemma A.1, (A.1)–(A.11)",
    "ψMψ* = ψ̃P + Pψ*, φMψ* = φ̃P + Pψ*, ΩMφ* = φ* − ψ* + ΩP, "
    "β̇_p = (I − H_pψK_p)*ν_p − K_p*ψ*(H_a*β̇_a + a)",
    "operators.psi_p operators.Omega_p",
)
def lemma_of_the_appendix() -> Errors:
    """Dense products."""
    sources = ("[UA] Lemma A.1", "[UA] (A.5)", "[UA] (A.6)")
    yield from identities(*sources)
    yield from identities(*sources, "[SOA] Lemma A.1", "[SOA] Lemma 5.1", passive=True)
    for c in forests():
        _, qdd = exchanged(c)
        a, p, H, psi, K = c.active, ~c.active, *map(c.lowered, (o.H_p, o.psi_p, o.K_p))
        given = c(o.H_a).T @ c.a[a] + c(o.a)
        z = psi @ (K @ c.tau[p] + c.lowered(o.P_p) @ given + c(o.b))
        nu = np.linalg.solve(c.lowered(o.D_p), c.tau[p] - H @ z)
        yield error((np.eye(len(nu)) - H @ psi @ K).T @ nu - K.T @ psi.T @ given, qdd[p])
