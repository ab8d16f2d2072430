"""[SOA]: the operator algebra."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

import phipsi as pp
from phipsi import control
from phipsi import operators as o
from phipsi.model.hinges import HingeName
from phipsi.spatial import Transform
from tests.algorithms.closures import with_frame
from tests.algorithms.test_closed_chains import chain_with_loops, looped
from tests.papers.cases import (
    FRAMES,
    WEIGHTS,
    Case,
    bare,
    flyers,
    forests,
    ghosts,
    identities,
    peers,
    solids,
)
from tests.papers.oracles import Aim, Closed, Estimation, aligned, classical, derivative, place
from tests.papers.rows import Paper, error
from tests.zoo import random_inertia

SOA = Paper(
    "[SOA]",
    "Rodriguez, Kreutz-Delgado & Jain, A spatial operator algebra for manipulator modeling and "
    "control",
)
Errors = Iterator[float]


# ---- kinematics ---------------------------------------------------------------------------------


@SOA.item("(2.1)", "V₀ = B*φ*H*β: the Jacobian", "jacobian frame_velocity operators.J")
def jacobian_operator() -> Errors:
    """Dense product, in the axes of the frame and of the world; differences of poses."""
    yield from identities("[SOA] (2.1)")
    for c in forests():
        for frame in FRAMES:
            at = c.robot, c.q
            J, X = c(o.J(frame)), pp.frame_pose(*at, frame)
            yield error(pp.jacobian(*at, frame), J)
            yield error(pp.jacobian(*at, frame, reference="aligned"), aligned(c, frame))
            rate = c.rate(lambda q, v, c=c, frame=frame: pp.frame_pose(c.robot, q, frame))
            twist = np.linalg.inv(X) @ rate
            found = pp.frame_velocity(*at, c.v, frame)
            yield error(found, [twist[2, 1], twist[0, 2], twist[1, 0], *twist[:3, 3]])
            twist = rate @ np.linalg.inv(X)  # about the origin of the world
            found = pp.jacobian(*at, frame, reference="world") @ c.v
            yield error(found, [twist[2, 1], twist[0, 2], twist[1, 0], *twist[:3, 3]])
            yield error(X, place(c, frame))


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
    """Dense solve; poses of a configuration that is known, found again from another one."""
    for c in forests():
        J, mu = c(o.J(*FRAMES)), np.linspace(0.3, 1.0, c.robot.nv)
        expected = np.linalg.solve(J.T @ J + np.diag(mu**2), c.w)
        yield error(pp.gram_solve(c.robot, c.q, c.w, frames=FRAMES, damping=mu), expected)
        targets = {frame: place(c, frame) for frame in FRAMES}
        start = c.robot.integrate(c.q, 0.2 * c.w)
        reached = c.but(q=pp.inverse_kinematics(c.robot, start, targets, tolerance=1e-11).q)
        for frame in FRAMES:
            yield error(place(reached, frame), targets[frame])


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
    """Dense fixed point."""
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
        l, inverse = np.eye(c.robot.nv), np.linalg.inv(c(o.m))
        l = pp.mass_matrix_sqrt_product(c.robot, c.q, l, factor="l").T
        yield error(l, inverse)
        yield error(c.lowered(o.l), inverse)


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
        both = np.concatenate((force, force[::-1]))
        at = c.robot, c.q, {"tool": force, "elbow": force[::-1]}
        expected = -np.linalg.solve(c(o.mass), c(o.J(*FRAMES)).T @ both)
        yield error(pp.tip_force_accelerations(*at), expected)
        yield error(pp.impact(*at), -expected)


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
        for frame in FRAMES:
            J = c(o.J(frame))
            Upsilon = J @ np.linalg.solve(c(o.mass), J.T)
            yield error(pp.operational_inertia(c.robot, c.q, frame), np.linalg.inv(Upsilon))
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
    """Dense KKT system, its rows and their rates by differences."""
    cases: tuple[tuple[int, HingeName], ...] = (
        (7, "spherical"), (0, "weld"), (15, "revolute"), (9, "universal"), (15, "cylindrical"),
        (6, "planar"), (15, "prismatic"), (7, "helical"),
    )  # fmt: skip
    for seed, kind in cases:
        robot, loop, s = looped(seed, kind, 6)
        yield from _closed(Case(robot).but(q=s.q), [loop])
    robot, loops = chain_with_loops()
    yield from _closed(Case(robot), loops)


def _closed(c: Case, loops: list[pp.Loop]) -> Errors:
    c = c.but(v=Closed(c, loops).closing())
    found = pp.closed_chain_dynamics(c.robot, loops, c.q, c.v, c.tau, external=c.external)
    qdd, forces = Closed(c, loops).motion(c.tau)
    yield error(found.qdd, qdd)
    yield error(found.forces, forces)


@cache
def held() -> tuple[Case, list[pp.Grasp]]:
    """Two arms of four joints that hold a box with soft fingers, in motion."""
    rng = np.random.default_rng(10)
    builder = pp.Builder("held", gravity=rng.normal(0, 5, 3))
    builder.body("box", **random_inertia(rng)).hinge("box", "free", "world", "box")
    for side in ("left", "right"):
        parent = "world"
        for i in range(4):
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
    c = Case(builder.build())
    robot = c.robot
    for side in ("left", "right"):
        robot = with_frame(robot, c.q, f"{side}/face", "box", place(c, f"{side}/tip"))
    grasps = [pp.Grasp(f"{side}/tip", f"{side}/face", "soft_finger") for side in ("left", "right")]
    c = c.but(robot=robot)
    return c.but(v=Closed(c, grasps).closing()), grasps


@SOA.item(
    "6: grasps",
    "(M_o + ΣφΛφ*)α_o = f_o − b_o + ΣφΛα_f: arms that hold an object",
    "grasp_dynamics effective_inertia",
    also="algorithms/test_grasps.py algorithms/test_peers.py",
    tolerance=1e-9,
)
def grasps() -> Errors:
    """Dense KKT system."""
    c, contacts = held()
    closed = Closed(c, contacts)
    found = pp.grasp_dynamics(c.robot, contacts, c.q, c.v, c.tau, external=c.external)
    qdd, forces = closed.motion(c.tau)
    yield error(found.qdd, qdd)
    yield error(found.forces, [-f for f in forces])
    J, n = c(o.J("box")), c.robot.nv
    Upsilon = J @ np.linalg.solve(closed.kkt, np.eye(len(closed.kkt))[:, :n])[:n] @ J.T
    yield error(pp.effective_inertia(c.robot, contacts, c.q, "box"), np.linalg.inv(Upsilon))


@SOA.item(
    "6: control of grasped objects",
    "T_a = (𝓜β̇ + C)_a − A_a*λ: the object follows its path, the tips squeeze it with λ_s",
    "control.object_control",
    also="control/test_holding.py",
    tolerance=1e-9,
)
def object_control() -> Errors:
    """The dense KKT system, controlled: acceleration of the box, forces of the tips."""
    c, contacts = held()
    c = c.undisturbed()
    target = c.robot.integrate(c.q, 0.3 * c.w)
    at = c.robot, c.q, c.v, target, c.w, c.a
    how = {"grasps": contacts, "stiffness": 30.0, "damping": 7.0, "singular": 1e-6}
    closed, forces, share = Closed(c, contacts), list[np.ndarray](), (1.0, 3.0)
    for squeeze in (0.0, 5.0):
        out = control.object_control(*at, squeeze=squeeze, sharing=share, passive=False, **how)
        qdd, own = closed.motion(out["tau"])
        wanted = c.a + 7.0 * (c.w - c.v) + 30.0 * c.robot.difference(c.q, target)
        yield error(qdd[:6], wanted[:6])
        yield error(out["tau"][:6], np.zeros(6))
        yield error(out["pressure"], [-f[5] for f in own])
        forces.append(np.concatenate([Q.T @ f for Q, f in zip(closed.bases, own, strict=True)]))
    push = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -5.0])  # on the tips, against their z
    pressed = np.concatenate([Q.T @ push for Q in closed.bases])
    inner = closed.A[:, :6]  # forces that A_o* takes to zero do not move the box
    yield error(forces[1] - forces[0], pressed - inner @ np.linalg.lstsq(inner, pressed)[0])
    weighted = np.repeat(share, 4)[:, None] * inner  # the load is carried as by springs W
    load = np.linalg.solve(inner.T @ weighted, inner.T @ forces[0])
    yield error(forces[0], weighted @ load)


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
        yield error(c.lowered(o.nu), nu(c.q, c.v))
        eps = pp.mass_matrix_sqrt_product(c.robot, c.q, c.tau, factor="l")
        yield error(c.rate(nu, c.qdd), eps - c.lowered(o.C_nu))


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
        c = c.undisturbed()
        still = c.but(v=0 * c.v)
        yield error(pp.gravity_force(c.robot, c.q), still(o.C))
        yield error(C @ c.v + still(o.C), c(o.C))
        target, K = c.robot.integrate(c.q, 0.2 * c.tau), np.linspace(1.0, 2.0, c.robot.nv)
        aim = {"rate": c.w, "acceleration": c.a, "stiffness": 3.0 * K, "damping": 5.0 * K}
        T = control.passivity_based(c.robot, c.q, c.v, target, passive=False, **aim)
        reference = c.w + 3.0 * K * c.robot.difference(c.q, target)
        e, ahead = c.v - reference, c.a + 3.0 * K * (c.w - c.v)
        qdd = np.linalg.solve(c(o.mass), T - c(o.C))
        yield error(e @ c(o.mass) @ (qdd - ahead) + 0.5 * e @ rate @ e, -e @ (5.0 * K * e))
        yield error(c(o.mass) @ (qdd - ahead) + (C + np.diag(5.0 * K)) @ e, 0 * e)


@SOA.item(
    "6: operational space control",
    "F = Λα + μ, T = J*F gives the tip the acceleration α",
    "operational_inertia operational_bias jacobian control.operational_space",
    also="control/test_dense.py",
    tolerance=1e-9,
)
def operational_control() -> Errors:
    """The dense equations of motion, controlled: the acceleration of the frame."""
    wanted = np.arange(1.0, 7.0)
    for c in flyers():
        mu = pp.operational_bias(c.robot, c.q, c.v, "tool", external=c.external)
        F = pp.operational_inertia(c.robot, c.q, "tool") @ wanted + mu
        T = pp.jacobian(c.robot, c.q, "tool").T @ F
        qdd = np.linalg.solve(c(o.mass), T - c(o.C))
        yield error(c(o.B("tool").T @ o.alpha, beta_dot=qdd), wanted)
        c = c.undisturbed()
        for frame in FRAMES:
            aim = Aim(c, frame)
            to = aim.pose, aim.velocity, aim.acceleration
            how = {"stiffness": 30.0, "damping": 7.0, "singular": 1e-6, "passive": False}
            posture = c.robot.integrate(c.q, c.w)
            at = c.robot, c.q, c.v, *to
            out = control.operational_space(*at, frame=frame, posture=posture, **how)
            qdd = np.linalg.solve(c(o.mass), out["tau"] - c(o.C))
            yield error(classical(c, frame, qdd), aim.wanted(30.0, 7.0))


@SOA.item(
    "6: linearized models",
    "δT = 𝓜δβ̇ + ∂T/∂q δ + ∂T/∂β δβ, and solved for δβ̇; ẋ = Ax + BδT",
    "linearize forward_dynamics_derivatives inverse_dynamics_derivatives",
    also="algorithms/test_derivatives.py",
    tolerance=1e-7,
)
def linearized_models() -> Errors:
    """Differences of the dense equations of motion along random directions."""
    for c in (*forests(), *flyers()):
        at, n = (c.robot, c.q, c.v), c.robot.nv
        inverse = pp.inverse_dynamics_derivatives(*at, c.a, external=c.external)
        forward = pp.forward_dynamics_derivatives(*at, c.tau, external=c.external)
        for given, dT, da in zip(("q", "v"), inverse, forward, strict=False):
            for d in np.random.default_rng(2).normal(0, 0.5, (2, n)):
                force = derivative(c, lambda x: x(o.mass) @ x.a + x(o.C), given, d)
                yield error(dT @ d, force)
                yield error(da @ d, derivative(c, lambda x: x.qdd, given, d))
        yield error(inverse.da, c(o.mass))
        yield error(forward.dtau, np.linalg.inv(c(o.mass)))
        A, B = pp.linearize(*at, c.tau, external=c.external)
        yield error(A[n:], np.hstack((forward.dq, forward.dv)))
        yield error(B, np.vstack((np.zeros((n, n)), np.linalg.inv(c(o.mass)))))
        yield error(A[:n] @ np.concatenate((c.w, c.a)), c.a + _drifting_apart(c))


def _drifting_apart(c: Case) -> np.ndarray:
    """The rate of the displacement w between two motions with the same v, to first order."""
    step, total = 0.03, np.zeros(c.robot.nv)
    for i, w in enumerate(WEIGHTS, 1):
        for k, x in enumerate(WEIGHTS, 1):
            for d, dt in ((i, k), (i, -k), (-i, k), (-i, -k)):
                near = c.robot.integrate(c.robot.integrate(c.q, d * step * c.w), dt * step * c.v)
                apart = c.robot.difference(c.robot.integrate(c.q, dt * step * c.v), near)
                total += np.sign(d * dt) * w * x / step**2 * apart
    return total


@SOA.item(
    "6: hierarchical software",
    "one program for any arm, alone or as a part of a robot",
    "forward_dynamics combine Builder.add",
)
def arm_independent_software() -> Errors:
    """Dense solves of the arms by themselves, side by side and one welded to a turned mount."""
    parts = [Case(c.robot.with_gravity((0, 0, -9.81))) for c in (*solids()[1:], *ghosts())]
    robot = pp.combine({str(i): c.robot for i, c in enumerate(parts)})
    q, v, tau = (np.concatenate([getattr(c, name) for c in parts]) for name in ("q", "v", "tau"))
    external = np.concatenate([c.external for c in parts])
    found = pp.forward_dynamics(robot, q, v, tau, external=external)
    yield error(found, np.concatenate([c.qdd for c in parts]))
    c, turn = parts[0], np.array([[0.0, -1.0, 0.0], [0.6, 0.0, -0.8], [0.8, 0.0, 0.6]])
    builder = pp.Builder("mounted", gravity=turn @ c.robot.gravity)
    robot = builder.add(c.robot, placement=Transform.of(turn, (0.3, 0.1, -0.2))).build()
    found = pp.forward_dynamics(robot, c.q, c.v, c.tau, external=c.external)
    yield error(found, c.qdd)


@SOA.item("Lemma A.1", "ψ⁻¹ = φ⁻¹ + KH, ψKHφ = φ − ψ = φKHψ", "operators.psi operators.phi")
def phi_and_psi() -> Errors:
    """Dense inverses and products."""
    yield from identities("[SOA] Lemma A.1")
