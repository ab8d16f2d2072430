"""[BI]: free-flying robots, without a base."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import phipsi as pp
from phipsi import operators as o
from tests.algorithms.test_base_invariant import edges
from tests.papers.cases import Case, fleets, flyers, forests, identities, peers
from tests.papers.oracles import Dual, Estimation
from tests.papers.rows import Paper, error

BI = Paper(
    "[BI]",
    "Jain & Rodriguez, Base-invariant symmetric dynamics of free-flying manipulators",
)
Errors = Iterator[float]
DEEP = "algorithms/test_base_invariant.py"


def times(blocks: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Of each body its matrix times its vector."""
    return np.einsum("bij,bj->bi", blocks, vectors)


# ---- 2: fixed and free bases --------------------------------------------------------------------


@BI.item(
    "Alg 2.1", "V, α, f, T by one sweep out and one in", "inverse_dynamics velocities accelerations"
)
def newton_euler() -> Errors:
    """Pinocchio (rnea); differences of poses and velocities."""
    yield from identities("[BI] Alg 2.1")
    for peer in peers():
        c = peer.c
        T = pp.inverse_dynamics(c.robot, c.q, c.v, c.a, external=c.external)
        yield error(T, peer.inverse_dynamics())
    for c in flyers():
        X, rate = pp.poses(c.robot, c.q), c.rate(lambda q, v, c=c: pp.poses(c.robot, q))
        twist = np.linalg.inv(X) @ rate
        expected = [[t[2, 1], t[0, 2], t[1, 0], *t[:3, 3]] for t in twist]
        yield error(pp.velocities(c.robot, c.q, c.v), expected)
        rate = c.rate(lambda q, v, c=c: pp.velocities(c.robot, q, v), c.a)
        yield error(pp.accelerations(c.robot, c.q, c.v, c.a), rate)


@BI.item(
    "Alg 2.2",
    "P = M + ΣφP⁺φ*, D = HPH* + A, G = PH*D⁻¹, P⁺ = τ̄P",
    "articulated_inertias operators.P_plus",
)
def articulated_inertias() -> Errors:
    """Dense fixed point, armature included."""
    yield from identities("[BI] Alg 2.2")
    for c in (*forests(), *fleets()):
        found = pp.articulated_inertias(c.robot, c.q)
        yield error(found.P, c.blocks(o.P))
        yield error(found.D, c(o.D))
        yield error(found.G, c(o.G).reshape(-1, 6, c.robot.nv).sum(0))
        yield error(c.lowered_blocks(o.P_plus), c.blocks(o.P_plus))


@BI.item(
    "Lemma 2.1",
    "𝓜 = (I + HφK)D(I + HφK)*, (I + HφK)⁻¹ = I − HψK, 𝓜⁻¹ by both",
    "mass_matrix_sqrt_product mass_matrix_inverse operators.mass.inv",
)
def factors() -> Errors:
    """Dense 𝓜 and its inverse."""
    yield from identities("[SOA] Lemma 4.1", "[SOA] Lemma 4.2", "[SOA] Lemma 4.3")
    for c in fleets():
        m = pp.mass_matrix_sqrt_product(c.robot, c.q, np.eye(c.robot.nv), factor="m").T
        yield error(m @ m.T, c(o.mass))
        yield error(pp.mass_matrix_inverse(c.robot, c.q), np.linalg.inv(c(o.mass)))


@BI.item("(11)", "β̇ = (I − HψK)*D⁻¹(T − Hψ(KT + Pa + b)) − K*ψ*a", "forward_dynamics")
def acceleration_equation() -> Errors:
    """Dense 𝓜⁻¹(T − C)."""
    yield from identities("[BI] (11)")
    for c in fleets():
        found = pp.forward_dynamics(c.robot, c.q, c.v, c.tau, external=c.external)
        yield error(found, c.qdd)


@BI.item("(12)", "α = ψ*(H*ν + a), ν = D⁻¹(T − Hψ(KT + Pa + b))", "forward_dynamics accelerations")
def accelerations_of_bodies() -> Errors:
    """Dense φ*(H*β̇ + a)."""
    yield from identities("[BI] (12)")
    for c in (*forests(), *fleets()):
        qdd = pp.forward_dynamics(c.robot, c.q, c.v, c.tau, external=c.external)
        yield error(pp.accelerations(c.robot, c.q, c.v, qdd), c.alpha)


@BI.item(
    "Alg 2.3",
    "P, z, ε, ν inward, α, β̇ outward",
    "forward_dynamics",
    also="agreement/test_agreement.py",
)
def forward_dynamics() -> Errors:
    """Pinocchio (aba); dense bias load u = Mφ*a + b."""
    yield from identities("[BI] Alg 2.3")
    for peer in peers():
        c = peer.c
        found = pp.forward_dynamics(c.robot, c.q, c.v, c.tau, external=c.external)
        yield error(found, peer.forward_dynamics())


@BI.item(
    "(14)",
    "at a free root H = I: D = P, G = I, τ̄ = 0, P⁺ = 0",
    "articulated_inertias operators.tau_bar operators.P_plus",
)
def free_root() -> Errors:
    """Dense 𝓜⁻¹: its block at the root is P⁻¹."""
    for c in fleets():
        found, inverse = pp.articulated_inertias(c.robot, c.q), np.linalg.inv(c(o.mass))
        passed, across = c.lowered_blocks(o.tau_bar), c.lowered_blocks(o.P_plus)
        for i, own in roots(c):
            yield error(found.D[own, own], np.linalg.inv(inverse[own, own]))
            yield error(found.P[i], found.D[own, own])
            yield error(found.G[:, own], np.eye(6))
            yield error(passed[i], np.zeros((6, 6)))
            yield error(across[i], np.zeros((6, 6)))


def roots(c: Case) -> list[tuple[int, slice]]:
    """The free roots: their numbers and their freedoms."""
    every = zip(c.robot.hinges, c.robot.parents, strict=True)
    return [(i, h.v) for i, (h, p) in enumerate(every) if p < 0]


@BI.item("(15)", "α of a free root is P⁻¹(T − z)", "articulated_inertias link_accelerations")
def acceleration_of_the_root() -> Errors:
    """Dense φ*(H*β̇ + a)."""
    for c in fleets():
        P, z = pp.articulated_inertias(c.robot, c.q).P, Dual(c).z
        found = pp.link_accelerations(c.robot, c.q, c.v, c.tau, external=c.external)
        for i, own in roots(c):
            yield error(np.linalg.solve(P[i], c.tau[own] - z[i]), c.alpha[i])
            yield error(found[i], c.alpha[i])


# ---- 3: the dual, and where both meet -----------------------------------------------------------


@BI.item(
    "Alg 3.1",
    "S⁺ = φ⁻¹(M_p + S_p + ΣφP⁺φ*)φ⁻*, D_s, G_s, S = S⁺ + G_sHS⁺",
    "dual_articulated_inertias",
    also=DEEP,
)
def dual_inertias() -> Errors:
    """Dense Υ⁻¹ − P; dense fixed point."""
    yield from identities("[BI] Alg 3.1")
    for c in fleets():
        found, inner = pp.dual_articulated_inertias(c.robot, c.q), joints(c)
        yield error(found.S, np.linalg.inv(c.blocks(o.Upsilon)) - c.blocks(o.P))
        yield error(found.G_s, c(o.G_s).reshape(-1, 6, c.robot.nv).sum(0))
        own = np.ix_(inner, inner)
        yield error(found.D_s[own], np.linalg.inv(c(o.C_s)[own]))
        yield error(found.D_s[~inner], 0 * found.D_s[~inner])  # where it is infinite
        for x in (o.S, o.S_plus):
            yield error(c.lowered_blocks(x), c.blocks(x))


def joints(c: Case) -> np.ndarray:
    """Which freedoms are not those of free roots."""
    inner = np.ones(c.robot.nv, bool)
    for _, own in roots(c):
        inner[own] = False
    return inner


@BI.item(
    "Alg 3.2",
    "z_s⁺ = φ⁻¹(b_p + z_s + Σφz⁺) − S⁺a, ε_s = T + Hz_s⁺, z_s = z_s⁺ + G_sε_s",
    "link_accelerations base_invariant_forward_dynamics",
    also=DEEP,
)
def dual_forces() -> Errors:
    """Dense forces f = φ(Mα + b)."""
    for c in fleets():
        dual, f = Dual(c), c(o.f, beta_dot=c.qdd).reshape(-1, 6)
        found = pp.link_accelerations(c.robot, c.q, c.v, c.tau, external=c.external)
        S = pp.dual_articulated_inertias(c.robot, c.q).S
        yield error(-times(S, found) - dual.z_s, f)
        at = c.robot, c.q, c.v, c.tau
        qdd = pp.base_invariant_forward_dynamics(*at, external=c.external)
        yield error(c.lowered(o.f, beta_dot=qdd), f.ravel())


@BI.item(
    "Lemma 3.1",
    "f = P(α − a) + z = P⁺α⁺ + z⁺, −f = Sα + z_s = S⁺(α⁺ + a) + z_s⁺",
    "operators.f operators.P operators.P_plus operators.S operators.S_plus link_accelerations",
)
def forces_between_bodies() -> Errors:
    """Dense f = φ(Mα + b)."""
    for c in fleets():
        dual, f = Dual(c), c(o.f, beta_dot=c.qdd).reshape(-1, 6)
        alpha = pp.link_accelerations(c.robot, c.q, c.v, c.tau, external=c.external)
        plus = (c(o.E_phi).T @ alpha.ravel()).reshape(-1, 6)
        P, P_plus, S, S_plus = map(c.lowered_blocks, (o.P, o.P_plus, o.S, o.S_plus))
        yield error(times(P, alpha - dual.a) + dual.z, f)
        yield error(times(P_plus, plus) + dual.z_plus, f)
        yield error(-times(S, alpha) - dual.z_s, f)
        inner = np.array(c.robot.parents) >= 0
        outward = times(S_plus, plus + dual.a) + dual.z_s_plus
        yield error(-outward[inner], f[inner])
        yield error(c.lowered(o.f, beta_dot=c.qdd), f.ravel())


@BI.item(
    "Lemma 3.2",
    "α = −(P + S)⁻¹(z + z_s − Pa), of each body by itself",
    "link_accelerations operators.P operators.S",
    also=DEEP,
)
def each_body_by_itself() -> Errors:
    """Dense α = φ*(H*β̇ + a)."""
    for c in fleets():
        found = pp.link_accelerations(c.robot, c.q, c.v, c.tau, external=c.external)
        yield error(found, c.alpha)
        P, S, dual = c.lowered_blocks(o.P), c.lowered_blocks(o.S), Dual(c)
        load = dual.z + dual.z_s - times(P, dual.a)
        yield error(-np.linalg.solve(P + S, load[..., None])[..., 0], c.alpha)


@BI.item(
    "(26)",
    "β̇ = ν − G*α⁺ = ν_s − G_s*α: either side of a hinge tells its acceleration",
    "base_invariant_forward_dynamics articulated_inertias dual_articulated_inertias",
)
def either_side() -> Errors:
    """Dense 𝓜⁻¹(T − C)."""
    for c in fleets():
        dual, inner = Dual(c), joints(c)
        own, far = pp.articulated_inertias(c.robot, c.q), pp.dual_articulated_inertias(c.robot, c.q)
        alpha = pp.link_accelerations(c.robot, c.q, c.v, c.tau, external=c.external)
        plus = (c(o.E_phi).T @ alpha.ravel()).reshape(-1, 6)
        moves = c.system.moves
        eps = c.tau - c(o.H) @ dual.z.ravel()
        near = np.linalg.solve(own.D, eps) - np.einsum("iv,vi->v", own.G, plus[moves])
        yield error(near, c.qdd)
        nu_s = np.linalg.solve(far.D_s[np.ix_(inner, inner)], dual.eps_s[inner])
        yield error(nu_s - np.einsum("iv,vi->v", far.G_s, alpha[moves])[inner], c.qdd[inner])
        at = c.robot, c.q, c.v, c.tau
        yield error(pp.base_invariant_forward_dynamics(*at, external=c.external), c.qdd)


@BI.item(
    "Alg 3.3",
    "V, a, b; P, z and S, z_s; every body in parallel",
    "base_invariant_forward_dynamics",
    also=DEEP,
)
def base_invariant_dynamics() -> Errors:
    """Pinocchio (aba)."""
    for peer in peers()[-len(flyers()) :]:
        c = peer.c
        at = c.robot, c.q, c.v, c.tau
        found = pp.base_invariant_forward_dynamics(*at, external=c.external)
        yield error(found, peer.forward_dynamics())


@BI.item(
    "Alg 3.4",
    "poses and velocities of all bodies as state: Δ = V − φ*V_p, α by Lemma 3.2",
    "decoupled_forward_dynamics minimal_state",
    also=DEEP,
)
def bodies_apart() -> Errors:
    """Dense α; the joint state that the bodies have."""
    for c in fleets():
        X, V = pp.poses(c.robot, c.q), c.blocks(o.V)
        found = pp.decoupled_forward_dynamics(c.robot, X, V, c.tau, external=c.external)
        yield error(found, c.alpha)
        q, v = pp.minimal_state(c.robot, X, V)
        yield error(v, c.v)
        yield error(pp.poses(c.robot, q), X)


@BI.item(
    "3.4.2",
    "one node for each link: two messages for each hinge, in any order",
    "link_accelerations",
    also=DEEP,
)
def one_node_per_link() -> Errors:
    """Dense α, messages sent in random orders."""
    for seed, c in enumerate(fleets()):
        order = edges(c.robot)
        np.random.default_rng(seed).shuffle(order)
        at = c.robot, c.q, c.v, c.tau
        found = pp.link_accelerations(*at, external=c.external, order=[tuple(x) for x in order])
        yield error(found, c.alpha)


@BI.item(
    "3.4.3",
    "two filters smooth: f given T has covariance P − P(P + S)⁻¹P and mean Pλ + z",
    "articulated_inertias dual_articulated_inertias operational_inertia_inverse",
)
def smoothing() -> Errors:
    """Gaussian conditioning of forces on all joint forces."""
    for c in (*forests(), *fleets()):
        given, every = Estimation(c), np.arange(6 * c.robot.nb)
        smoothed = given.covariance(every).reshape(-1, 6, c.robot.nb, 6)
        blocks = np.array([smoothed[i, :, i] for i in range(c.robot.nb)])
        P = pp.articulated_inertias(c.robot, c.q).P
        yield error(P - P @ pp.operational_inertia_inverse(c.robot, c.q) @ P, blocks)
        mean = o.P @ o.phi.T @ o.H.T @ o.mass.inv @ o.T + o.psi @ o.K @ o.T
        yield error(c.lowered(mean), given.gain(every) @ c.tau)
        if c in fleets():
            S = pp.dual_articulated_inertias(c.robot, c.q).S
            yield error(P - P @ np.linalg.solve(P + S, P), blocks)


@BI.item(
    "3.5",
    "trees: a body hears all its neighbours but the one it speaks to",
    "link_accelerations base_invariant_forward_dynamics",
    also=DEEP,
)
def trees() -> Errors:
    """Differences of velocities along the motion of the dense equations; three arms on a hub."""
    robot = branched()
    c = Case(robot)
    found = pp.link_accelerations(robot, c.q, c.v, c.tau, external=c.external)
    yield error(found, c.rate(lambda q, v: pp.velocities(robot, q, v), c.qdd))
    at = robot, c.q, c.v, c.tau
    yield error(pp.base_invariant_forward_dynamics(*at, external=c.external), c.qdd)


def branched() -> pp.Robot:
    """A free hub with three arms of two joints."""
    builder = pp.Builder("branched").body("hub", mass=5, com=(0.1, 0, 0.2), inertia=(1, 1.2, 1.5))
    builder.hinge("hub", "free", "world", "hub")
    for i in range(3):
        for name, parent in ((f"a{i}", "hub"), (f"b{i}", f"a{i}")):
            builder.body(name, mass=1 + i, com=(0.1, 0.2, 0.05 * i), inertia=(0.3, 0.2, 0.25))
            axis, at = (1.0, i, 0.5), (0.3, 0.2 * i, -0.1)
            builder.hinge(
                name,
                ("revolute", "spherical", "prismatic")[i],
                parent,
                name,
                position=at,
                axis=axis if i != 1 else None,
                armature=0.1,
            )
    return builder.build()


# ---- 4: operational space -----------------------------------------------------------------------


@BI.item(
    "(27)–(33)",
    "Ω = ψ*H*D⁻¹Hψ = φ*H*𝓜⁻¹Hφ; serial: Υ + ψ̃*Υ + Υψ̃; trees: Ω_ij = ψ(c,i)*Υ_cψ(c,j)",
    "operational_inertia_inverse operators.Omega",
)
def omega() -> Errors:
    """Dense φ*H*𝓜⁻¹Hφ."""
    yield from identities("[BI] (27)-(33)", "[BI] (33)")
    for c in forests():
        Omega = c(o.phi.T @ o.H.T @ o.mass.inv @ o.H @ o.phi)
        names = [body.name for body in c.robot.bodies]
        yield error(pp.operational_inertia_inverse(c.robot, c.q, names), Omega)
        psi, Upsilon = c.lowered(o.psi), pp.operational_inertia_inverse(c.robot, c.q)
        yield error(from_common_ancestors(c, psi, Upsilon), Omega)


def from_common_ancestors(c: Case, psi: np.ndarray, Upsilon: np.ndarray) -> np.ndarray:
    """Ω(i, j) = ψ(c, i)*Υ_cψ(c, j) with c the nearest common ancestor, 0 where there is none."""
    n, parents = c.robot.nb, c.robot.parents
    out = np.zeros((n, 6, n, 6))

    def ancestors(i: int) -> list[int]:
        return [i, *ancestors(parents[i])] if i >= 0 else []

    for i in range(n):
        for j in range(n):
            common = [k for k in ancestors(i) if k in ancestors(j)]
            if common:
                row = psi[6 * common[0] : 6 * common[0] + 6].reshape(6, n, 6)
                out[i, :, j] = row[:, i].T @ Upsilon[common[0]] @ row[:, j]
    return out.reshape(6 * n, 6 * n)


@BI.item("(34)", "Υ = τ̄*Υ⁺τ̄ + H*D⁻¹H, outward", "operational_inertia_inverse operators.Upsilon")
def upsilon() -> Errors:
    """Dense J𝓜⁻¹J*."""
    yield from identities("[BI] (34)")
    for c in (*forests(), *fleets()):
        yield error(pp.operational_inertia_inverse(c.robot, c.q), c.blocks(o.Upsilon))
        yield error(c.lowered_blocks(o.Upsilon), c.blocks(o.Upsilon))


@BI.item(
    "(36)", "Υ⁺ = τ̄_s*Υτ̄_s + H*D_s⁻¹H, inward", "operators.Upsilon_plus dual_articulated_inertias"
)
def dual_upsilon() -> Errors:
    """Dense E_φ*J𝓜⁻¹J*E_φ."""
    yield from identities("[BI] (36)")
    for c in fleets():
        found = pp.dual_articulated_inertias(c.robot, c.q)
        Upsilon, expected = pp.operational_inertia_inverse(c.robot, c.q), c.blocks(o.Upsilon_plus)
        yield error(c.lowered_blocks(o.Upsilon_plus), expected)
        for i, (h, p) in enumerate(zip(c.robot.hinges, c.robot.parents, strict=True)):
            if p >= 0:
                H = c.system.H[h.v]
                passed = np.eye(6) + found.G_s[:, h.v] @ H
                new = passed.T @ Upsilon[i] @ passed
                yield error(new + H.T @ np.linalg.solve(found.D_s[h.v, h.v], H), expected[i])


@BI.item("Lemma 4.1", "Λ = Υ⁻¹ = P + S, (Υ⁺)⁻¹ = P⁺ + S⁺", "operational_inertia operators.Lambda")
def two_inertias() -> Errors:
    """Dense (J𝓜⁻¹J*)⁻¹."""
    yield from identities("[BI] Lemma 4.1")
    for c in fleets():
        found = pp.operational_inertia(c.robot, c.q)
        yield error(found, np.linalg.inv(c.blocks(o.Upsilon)))
        yield error(c.lowered_blocks(o.Lambda), found)
        inner = np.array(c.robot.parents) >= 0
        across = c.lowered_blocks(o.P_plus + o.S_plus)[inner]
        yield error(across, np.linalg.inv(c.blocks(o.Upsilon_plus)[inner]))


@BI.item("Alg 4.1", "P inward, S outward, Λ = P + S without an inversion", "operational_inertia")
def operational_inertias() -> Errors:
    """Dense (J𝓜⁻¹J*)⁻¹; P of the robot rooted at the body."""
    yield from identities("[BI] Alg 4.1")
    for c in flyers():
        found = pp.operational_inertia(c.robot, c.q)
        P, S = (
            pp.articulated_inertias(c.robot, c.q).P,
            pp.dual_articulated_inertias(c.robot, c.q).S,
        )
        yield error(P + S, np.linalg.inv(c.blocks(o.Upsilon)))
        yield error(found, P + S)
        for i, body in enumerate(c.robot.bodies):
            yield error(found[i], c.blocks(o.P_at(body.name))[i])


# ---- A: another base ----------------------------------------------------------------------------


def from_elsewhere(c: Case) -> Iterator[tuple[pp.RebasedRobot, np.ndarray, np.ndarray]]:
    """The robot with every body as its base, its configuration there, and T with β' = Tβ."""
    units = np.eye(c.robot.nv)
    for body in c.robot.bodies:
        there = pp.rebase(c.robot, body.name)
        q, v = there.state(c.q, units)
        yield there, q[0], v.T


@BI.item("Lemma A.1", "β' = Tβ, 𝓜' = T⁻*𝓜T⁻¹, T' = T⁻*T", "rebase", also="model/test_rebase.py")
def change_of_base() -> Errors:
    """Dense T⁻*𝓜T⁻¹, every body as the base."""
    yield from identities("[BI] Lemma A.1")
    for c in flyers():
        for there, q, T in from_elsewhere(c):
            back = np.linalg.inv(T)
            yield error(pp.mass_matrix(there.robot, q), back.T @ c(o.mass) @ back)
            yield error(there.force(c.q, c.tau), back.T @ c.tau)


@BI.item(
    "Lemma A.2",
    "φ', H' from a hinge turned round: the robot described from another base",
    "rebase",
    also="model/test_rebase.py",
)
def rerooted() -> Errors:
    """Dense 𝓜⁻¹(T − C) of the robot as it was, every body as the base."""
    for c in flyers():
        external = {b.name: f for b, f in zip(c.robot.bodies, c.external, strict=True)}
        for body in c.robot.bodies:
            there = pp.rebase(c.robot, body.name)
            (q, v), tau = there.state(c.q, c.v), there.force(c.q, c.tau)
            found = pp.forward_dynamics(there.robot, q, v, tau, external=external)
            yield error(there.inverse.acceleration(q, v, found), c.qdd)


@BI.item(
    "(56)",
    "φ'*H'*T = φ*H* and 𝓜'⁻¹ = T𝓜⁻¹T*: V and 𝓜⁻¹ from another base",
    "rebase jacobian mass_matrix_inverse",
)
def inverse_from_another_base() -> Errors:
    """Dense φ*H* and T𝓜⁻¹T* of the robot as it was, every body as the base."""
    for c in flyers():
        motions = c(o.phi.T @ o.H.T).reshape(-1, 6, c.robot.nv)
        for there, q, T in from_elsewhere(c):
            for body, J in zip(c.robot.bodies, motions, strict=True):
                yield error(pp.jacobian(there.robot, q, body.name) @ T, J)
            found = pp.mass_matrix_inverse(there.robot, q)
            yield error(found, T @ np.linalg.inv(c(o.mass)) @ T.T)


@BI.item(
    "Appendix A: Ω",
    "Ω' = φ'*H'*𝓜'⁻¹H'φ' = Ω: it does not depend on the base",
    "rebase operational_inertia_inverse",
)
def omega_is_base_invariant() -> Errors:
    """Dense φ*H*𝓜⁻¹Hφ of the robot as it was, every body as the base."""
    yield from identities("[BI] Appendix A")
    for c in flyers():
        names = [body.name for body in c.robot.bodies]
        Omega = c(o.phi.T @ o.H.T @ o.mass.inv @ o.H @ o.phi)
        for there, q, _ in from_elsewhere(c):
            yield error(pp.operational_inertia_inverse(there.robot, q, names), Omega)
