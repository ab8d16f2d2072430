"""[SOA]: the operator algebra."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

import phipsi as pp
from phipsi import operators as o
from phipsi.model.hinges import HingeName
from phipsi.operators.dense import matrix, system
from tests.algorithms.closures import Dense, closing, with_frame
from tests.algorithms.test_closed_chains import looped
from tests.papers.cases import Case, bare, flyers, forests, identities, peers
from tests.papers.oracles import Estimation
from tests.papers.rows import Paper, error
from tests.zoo import State, random_inertia

SOA = Paper(
    "[SOA]",
    "Rodriguez, Kreutz-Delgado & Jain, A spatial operator algebra for manipulator modeling and "
    "control",
)
Errors = Iterator[float]


# ---- kinematics ---------------------------------------------------------------------------------


@SOA.item("(2.1)", "V₀ = B*φ*H*β: the Jacobian", "jacobian frame_velocity operators.J")
def jacobian_operator() -> Errors:
    """Dense product; differences of poses."""
    yield from identities("[SOA] (2.1)")
    for c in forests():
        J = pp.jacobian(c.robot, c.q, "tool")
        yield error(J, c(o.J("tool")))
        X = pp.frame_pose(c.robot, c.q, "tool")
        twist = np.linalg.inv(X) @ c.rate(lambda q, v, c=c: pp.frame_pose(c.robot, q, "tool"))
        found = pp.frame_velocity(c.robot, c.q, c.v, "tool")
        yield error(found, [twist[2, 1], twist[0, 2], twist[1, 0], *twist[:3, 3]])


@SOA.item(
    "2: JJ*", "Y = φ*Yφ + H*H: JJ* at every body", "jacobian_gram", also="algorithms/test_gram.py"
)
def jacobian_times_transpose() -> Errors:
    """Dense product."""
    for c in forests():
        J = c(o.phi.T @ o.H.T).reshape(-1, 6, c.robot.nv)
        yield error(pp.jacobian_gram(c.robot, c.q), J @ np.swapaxes(J, 1, 2))


@SOA.item(
    "2: (J*J)⁻¹",
    "(ΣJ*WJ + μ²I)⁻¹x as of a mass matrix: J*J, its inverse, inverse kinematics",
    "gram_solve inverse_kinematics",
    also="algorithms/test_gram.py algorithms/test_inverse_kinematics.py",
)
def inverse_of_the_jacobian_squared() -> Errors:
    """Dense solve."""
    for c in forests():
        J, mu = c(o.J("tool")), np.linspace(0.3, 1.0, c.robot.nv)
        expected = np.linalg.solve(J.T @ J + np.diag(mu**2), c.w)
        yield error(pp.gram_solve(c.robot, c.q, c.w, frames="tool", damping=mu), expected)


# ---- dynamics -----------------------------------------------------------------------------------


@SOA.item(
    "(3.1)–(3.6)",
    "V = φ*H*β, α = φ*(H*β̇ + a), f = φ(Mα + b), T = Hf = 𝓜β̇ + C",
    "velocities accelerations mass_matrix mass_matrix_product bias_force inverse_dynamics",
)
def operator_equations() -> Errors:
    """Dense products."""
    yield from identities("[SOA] (3.1)-(3.6)")
    for c in forests():
        at = c.robot, c.q, c.v
        yield error(pp.velocities(*at), c.blocks(o.V))
        yield error(pp.accelerations(*at, c.a), c.blocks(o.alpha))
        yield error(pp.mass_matrix(c.robot, c.q), c(o.mass))
        yield error(pp.mass_matrix_product(c.robot, c.q, c.w), c(o.mass) @ c.w)
        yield error(pp.bias_force(*at, external=c.external), c(o.C))
        T = pp.inverse_dynamics(*at, c.a, external=c.external)
        yield error(T, c(o.H @ o.f + o.A @ o.beta_dot))


@SOA.item(
    "3: Newton–Euler",
    "the operator equations are the Newton–Euler recursions",
    "inverse_dynamics mass_matrix",
    also="agreement/test_agreement.py agreement/test_hinges.py",
)
def newton_euler() -> Errors:
    """Pinocchio (rnea, crba)."""
    for peer in peers():
        c = peer.c
        T = pp.inverse_dynamics(c.robot, c.q, c.v, c.a, external=c.external)
        yield error(T, peer.inverse_dynamics())
        yield error(pp.mass_matrix(c.robot, c.q), peer.mass_matrix())


@SOA.item(
    "(4.1)–(4.3)",
    "P = M + E_ψPE_φ*, D = HPH* + A, G = PH*D⁻¹, ψ = (I − E_φτ̄)⁻¹",
    "articulated_inertias operators.P operators.psi",
)
def riccati() -> Errors:
    """Dense fixed point; dense identities."""
    yield from identities("[SOA] (4.1)-(4.3)")
    for c in forests():
        found = pp.articulated_inertias(c.robot, c.q)
        yield error(found.P, c.blocks(o.P))
        yield error(found.D, c(o.D))
        yield error(found.G, c(o.G).reshape(-1, 6, c.robot.nv).sum(0))


@SOA.item(
    "Lemma 4.1",
    "𝓜 = (I + HφK)D(I + HφK)*, log det 𝓜 = Σ log det D",
    "mass_matrix_sqrt_product mass_matrix_logdet",
)
def innovations_factorization() -> Errors:
    """Dense 𝓜 = HφMφ*H* + A."""
    yield from identities("[SOA] Lemma 4.1")
    for c in forests():
        m = pp.mass_matrix_sqrt_product(c.robot, c.q, np.eye(c.robot.nv), factor="m").T
        yield error(m @ m.T, c(o.mass))
        yield error(pp.mass_matrix_logdet(c.robot, c.q), np.linalg.slogdet(c(o.mass))[1])


@SOA.item("Lemma 4.2", "(I + HφK)⁻¹ = I − HψK", "mass_matrix_sqrt_product operators.l")
def inverse_factor() -> Errors:
    """Dense inverse."""
    yield from identities("[SOA] Lemma 4.2")
    for c in forests():
        l = pp.mass_matrix_sqrt_product(c.robot, c.q, np.eye(c.robot.nv), factor="l").T
        yield error(l, np.linalg.inv(c(o.m)))


@SOA.item(
    "Lemma 4.3",
    "𝓜⁻¹ = (I − HψK)*D⁻¹(I − HψK)",
    "mass_matrix_inverse mass_matrix_solve operators.mass.inv",
)
def inverse_mass_matrix() -> Errors:
    """Dense inverse; Pinocchio (computeMinverse)."""
    yield from identities("[SOA] Lemma 4.3")
    for c in forests():
        yield error(pp.mass_matrix_inverse(c.robot, c.q), np.linalg.inv(c(o.mass)))
        yield error(pp.mass_matrix_solve(c.robot, c.q, c.w), np.linalg.solve(c(o.mass), c.w))
    for peer in peers():
        yield error(pp.mass_matrix_inverse(peer.c.robot, peer.c.q), peer.mass_matrix_inverse())


@SOA.item(
    "4: innovations",
    "y = (I + HφK)ε: P, D, G and I − HψK are a Kalman filter's",
    "articulated_inertias mass_matrix_sqrt_product",
)
def kalman_filter() -> Errors:
    """Gaussian conditioning of forces on the joint forces outboard."""
    for c in forests():
        given, n = Estimation(c), c.robot.nv
        found = pp.articulated_inertias(c.robot, c.q)
        l = pp.mass_matrix_sqrt_product(c.robot, c.q, np.eye(n), factor="l").T
        predictor = np.eye(n)
        for i, h in enumerate(c.robot.hinges):
            body, known = np.arange(6 * i, 6 * i + 6), given.outboard(i)
            yield error(found.P[i], given.covariance(body, known))
            predictor[h.v, known] -= c.system.H[h.v] @ given.gain(body, known)
        yield error(predictor @ given.measured @ predictor.T, found.D)
        yield error(np.linalg.cholesky(found.D) @ l, predictor)


@SOA.item(
    "Alg FD, (4.7)–(4.8)",
    "β̇ = (I − HψK)*D⁻¹(I − HψK)(T − C): three sweeps",
    "forward_dynamics",
    also="algorithms/test_laws.py agreement/test_agreement.py",
)
def forward_dynamics() -> Errors:
    """Pinocchio (aba); dense solve."""
    for c in forests():
        qdd = pp.forward_dynamics(c.robot, c.q, c.v, c.tau, external=c.external)
        yield error(qdd, c.qdd)
        back = pp.inverse_dynamics(c.robot, c.q, c.v, c.qdd, external=c.external)
        yield error(back, c.tau)
    for peer in peers():
        c = peer.c
        qdd = pp.forward_dynamics(c.robot, c.q, c.v, c.tau, external=c.external)
        yield error(qdd, peer.forward_dynamics())


# ---- applications -------------------------------------------------------------------------------


@SOA.item("Lemma 5.1", "(I − HψK)Hφ = Hψ", "operators.psi operators.K")
def psi_from_phi() -> Errors:
    """Dense products."""
    yield from identities("[SOA] Lemma 5.1")


@SOA.item(
    "5, Application 1",
    "−𝓜⁻¹J*f = −(I − HψK)*D⁻¹HψBf: what a tip force does (5.3)",
    "tip_force_accelerations impact",
    also="algorithms/test_operational_space.py",
)
def tip_forces() -> Errors:
    """Dense −𝓜⁻¹J*f."""
    yield from identities("[SOA] (5.3)")
    force = np.arange(1.0, 7.0)
    for c in forests():
        expected = -np.linalg.solve(c(o.mass), c(o.J("tool")).T @ force)
        yield error(pp.tip_force_accelerations(c.robot, c.q, {"tool": force}), expected)
        yield error(pp.impact(c.robot, c.q, {"tool": force}), -expected)


@SOA.item(
    "5, Application 2",
    "Υ = J𝓜⁻¹J*, Λ = Υ⁻¹: operational-space inertia",
    "operational_inertia_inverse operational_inertia",
    also="algorithms/test_operational_space.py",
)
def operational_inertia() -> Errors:
    """Dense J𝓜⁻¹J*; ranks 1, 2, … 6 along a chain."""
    for c in forests():
        J = c(o.phi.T @ o.H.T)
        whole = J @ np.linalg.solve(c(o.mass), J.T)
        names = [body.name for body in c.robot.bodies]
        yield error(pp.operational_inertia_inverse(c.robot, c.q), c.blocks(o.Upsilon))
        yield error(pp.operational_inertia_inverse(c.robot, c.q, names), whole)
    for c in flyers():
        J = c(o.J("tool"))
        Upsilon = J @ np.linalg.solve(c(o.mass), J.T)
        yield error(pp.operational_inertia(c.robot, c.q, "tool"), np.linalg.inv(Upsilon))
    chain = Case(pp.robots.seven_axis_arm())
    found = np.linalg.matrix_rank(pp.operational_inertia_inverse(chain.robot, chain.q), 1e-9)
    yield error(found, [1, 2, 3, 4, 5, 6, 6])


@SOA.item(
    "5, Application 3",
    "(Q*LQ)λ = bias − Q*(α_A − α_B), L with Ω_AB: loops by a cut (5.11)",
    "closed_chain_dynamics",
    also="algorithms/test_closed_chains.py algorithms/test_peers.py",
    tolerance=1e-9,
)
def closed_chains() -> Errors:
    """Dense KKT system."""
    cases: tuple[tuple[int, HingeName], ...] = ((1, "spherical"), (15, "weld"))
    for seed, kind in cases:
        robot, loop, s = looped(seed, kind)
        dense = Dense(robot, [loop], s)
        at = robot, [loop], s.q, s.v, s.tau
        found = pp.closed_chain_dynamics(*at, external=s.external)
        yield error(found.qdd, dense.qdd)
        yield error(found.forces[0], dense.forces[0])


@cache
def held() -> tuple[pp.Robot, list[pp.Grasp], State]:
    """Two arms of three joints that touch a box with their tips, in motion."""
    rng = np.random.default_rng(10)
    builder = pp.Builder("held", gravity=rng.normal(0, 5, 3))
    builder.body("box", **random_inertia(rng)).hinge("box", "free", "world", "box")
    for side in ("left", "right"):
        parent = "world"
        for i in range(3):
            name = f"{side}{i}"
            builder.body(name, **random_inertia(rng))
            builder.hinge(
                name,
                "revolute",
                parent,
                name,
                position=rng.normal(0, 0.5, 3),
                rpy=rng.uniform(-3, 3, 3),
                axis=rng.normal(size=3),
            )
            parent = name
        builder.frame(f"{side}/tip", parent, position=rng.normal(0, 0.3, 3))
    robot = builder.build()
    s = State(robot)
    for side in ("left", "right"):
        tip = pp.frame_pose(robot, s.q, f"{side}/tip")
        robot = with_frame(robot, s.q, f"{side}/face", "box", tip)
    grasps = [pp.Grasp(f"{side}/tip", f"{side}/face", "point") for side in ("left", "right")]
    closing(robot, grasps, s)
    return robot, grasps, s


@SOA.item(
    "6: grasps",
    "(M_o + ΣφΛφ*)α_o = f_o − b_o + ΣφΛα_f: arms that hold an object",
    "grasp_dynamics effective_inertia control.object_control",
    also="algorithms/test_grasps.py algorithms/test_peers.py control/test_holding.py",
    tolerance=1e-9,
)
def grasps() -> Errors:
    """Dense KKT system."""
    robot, contacts, s = held()
    dense = Dense(robot, contacts, s)
    found = pp.grasp_dynamics(robot, contacts, s.q, s.v, s.tau, external=s.external)
    yield error(found.qdd, dense.qdd)
    yield error(found.forces, [-f for f in dense.forces])
    mass, J = matrix(o.mass, system(robot, s.q)), pp.jacobian(robot, s.q, "box")
    n, m = robot.nv, len(dense.A)
    kkt = np.block([[mass, -dense.A.T], [dense.A, np.zeros((m, m))]])
    Upsilon = J @ np.linalg.solve(kkt, np.eye(n + m)[:, :n])[:n] @ J.T
    yield error(pp.effective_inertia(robot, contacts, s.q, "box"), np.linalg.inv(Upsilon))


@SOA.item(
    "6: decoupled equations",
    "ν = D½*(I + HφK)*β, ν̇ + C_ν = ε: a unit mass matrix",
    "mass_matrix_sqrt_product operators.nu",
    tolerance=1e-8,
)
def decoupled() -> Errors:
    """Kinetic energy; differences of ν along the motion."""
    for c in bare():

        def nu(q: np.ndarray, v: np.ndarray, c: Case = c) -> np.ndarray:
            return pp.mass_matrix_sqrt_product(c.robot, q, v, factor="m*")

        yield error(nu(c.q, c.v) @ nu(c.q, c.v), c.v @ c(o.mass) @ c.v)
        eps = pp.mass_matrix_sqrt_product(c.robot, c.q, c.tau, factor="l")
        yield error(c.rate(nu, c.qdd), eps - c(o.C_nu))


@SOA.item(
    "6: Lyapunov control",
    "𝓜̇ = C + C*: T = 𝓜β̇_r + C(q, β)β_r + g − Ke makes ½e*𝓜e fall as −e*Ke",
    "coriolis_product coriolis_matrix gravity_force control.passivity_based",
    also="control/test_closed_loops.py",
    tolerance=1e-8,
)
def bilinear_coriolis() -> Errors:
    """Differences of the dense 𝓜; the dense equations of motion, controlled."""
    for c in forests():
        C, rate = pp.coriolis_matrix(c.robot, c.q, c.v), c(o.mass_dot)
        yield error(C + C.T, rate)
        yield error(pp.coriolis_product(c.robot, c.q, c.v, c.w), C @ c.w)
        still = pp.gravity_force(c.robot, c.q)
        free = c.but(external=0 * c.external)
        yield error(C @ c.v + still, free(o.C))
        e, K = c.v - c.w, np.linspace(1.0, 2.0, c.robot.nv)  # β_r = w, β̇_r = a
        T = pp.mass_matrix_product(c.robot, c.q, c.a) + C @ c.w + still - K * e
        qdd = np.linalg.solve(c(o.mass), T - free(o.C))
        yield error(e @ c(o.mass) @ (qdd - c.a) + 0.5 * e @ rate @ e, -e @ (K * e))


@SOA.item(
    "6: operational space control",
    "F = Λα + μ, T = J*F gives the tip the acceleration α",
    "operational_inertia operational_bias jacobian",
)
def operational_control() -> Errors:
    """The dense equations of motion, controlled."""
    wanted = np.arange(1.0, 7.0)
    for c in flyers():
        mu = pp.operational_bias(c.robot, c.q, c.v, "tool", external=c.external)
        F = pp.operational_inertia(c.robot, c.q, "tool") @ wanted + mu
        T = pp.jacobian(c.robot, c.q, "tool").T @ F
        qdd = np.linalg.solve(c(o.mass), T - c(o.C))
        yield error(c(o.B("tool").T @ o.alpha, beta_dot=qdd), wanted)


@SOA.item(
    "6: hierarchical software",
    "one program for any arm, alone or as a part of a robot",
    "program combine Builder.add",
)
def arm_independent_software() -> Errors:
    """Dense solves of the arms by themselves."""
    parts = forests()[1:3]
    robot = pp.combine({str(i): c.robot.with_gravity((0, 0, -9.81)) for i, c in enumerate(parts)})
    alone = [Case(c.robot.with_gravity((0, 0, -9.81))) for c in parts]
    q, v, tau = (np.concatenate([getattr(c, name) for c in alone]) for name in ("q", "v", "tau"))
    external = np.concatenate([c.external for c in alone])
    found = pp.forward_dynamics(robot, q, v, tau, external=external)
    yield error(found, np.concatenate([c.qdd for c in alone]))


@SOA.item("Lemma A.1", "ψ⁻¹ = φ⁻¹ + KH, ψKHφ = φ − ψ = φKHψ", "operators.psi operators.phi")
def phi_and_psi() -> Errors:
    """Dense inverses and products."""
    yield from identities("[SOA] Lemma A.1")
