"""Symbols of a robot: of its bodies and hinges, articulated ones, the dual set, vectors.

The meanings are those of [DL] Table 1 and theory section 3, the readings as an estimation problem
those of [SOA] 4.
"""

from __future__ import annotations

from phipsi.operators.expressions import IDENTITY, ZERO, Expression
from phipsi.operators.spaces import (
    BODY_FORCES,
    BODY_MOTIONS,
    JOINT_FORCES,
    JOINT_RATES,
    NORMAL,
    SCALARS,
    frame_forces,
)
from phipsi.operators.table import DEFINITIONS, framed, symbol

__all__ = [
    "ROOTS",
    "A",
    "B",
    "C",
    "C_s",
    "D",
    "D_half",
    "E_phi",
    "E_phi_s",
    "E_psi",
    "G",
    "G_s",
    "H",
    "I",
    "J",
    "K",
    "Lambda",
    "M",
    "Omega",
    "Omega_at",
    "P",
    "P_at",
    "P_plus",
    "S",
    "S_plus",
    "T",
    "Upsilon",
    "Upsilon_plus",
    "V",
    "a",
    "alpha",
    "b",
    "beta",
    "beta_dot",
    "eps",
    "f",
    "kappa",
    "l",
    "m",
    "mass",
    "mass_at",
    "nu",
    "phi",
    "phi_tilde",
    "psi",
    "psi_s",
    "psi_tilde",
    "rebase",
    "tau",
    "tau_bar",
    "tau_bar_s",
    "u",
    "xi",
    "zero",
]

I = IDENTITY
zero = ZERO
_AT = frame_forces()

# fmt: off
# ---- the robot -----------------------------------------------------------------------------------

H = symbol("H", "H", "H", JOINT_FORCES, BODY_FORCES,
    "hinge map: the joint force is H f, the relative velocity H* β", "1 or m",
    "measurement operator", diagonal=True)
E_phi = symbol("E_phi", "E_φ", r"E_{\phi}", BODY_FORCES, BODY_FORCES,
    "rigid transport of forces from each body to its parent", "1 and m",
    "transition from one station to the next")
phi = symbol("phi", "φ", r"\phi", BODY_FORCES, BODY_FORCES,
    "rigid transport of forces, hinges locked, from every body to all its ancestors", "1 and m",
    "propagation of the state without measurements")
phi_tilde = symbol("phi_tilde", "φ̃", r"\tilde{\phi}", BODY_FORCES, BODY_FORCES,
    "φ − I: rigid transport to proper ancestors", "1 and m", "propagation to later stations")
M = symbol("M", "M", "M", BODY_FORCES, BODY_MOTIONS,
    "spatial inertia of each body about its own origin", "kg, kg·m, kg·m²",
    "covariance of the process noise", symmetric=True, diagonal=True)
A = symbol("A", "A", "A", JOINT_FORCES, JOINT_RATES,
    "armature: inertia of the rotors, reflected at the joints", "kg·m² or kg",
    "covariance of the measurement noise", symmetric=True, diagonal=True)
mass = symbol("mass", "𝓜", r"\mathcal{M}", JOINT_FORCES, JOINT_RATES,
    "joint-space mass matrix", "kg·m² (kg for sliding joints)",
    "covariance of all measurements", symmetric=True)
B = framed("B", "B", "B", BODY_FORCES, _AT,
    "carries a force at frames to the bodies they are fixed to", "1 and m", "input at stations")
J = framed("J", "J", "J", _AT.dual, JOINT_RATES,
    "Jacobian: the motion of frames is J β", "1 or m", "smoothing at stations")

# ---- articulated bodies --------------------------------------------------------------------------

P = symbol("P", "P", "P", BODY_FORCES, BODY_MOTIONS,
    "articulated inertia: felt at a body with all hinges outboard of it free", "kg, kg·m, kg·m²",
    "predicted covariance", symmetric=True, diagonal=True)
P_plus = symbol("P_plus", "P⁺", "P^{+}", BODY_FORCES, BODY_MOTIONS,
    "articulated inertia felt across the free hinge", "kg, kg·m, kg·m²",
    "filtered covariance", symmetric=True, diagonal=True)
D = symbol("D", "D", "D", JOINT_FORCES, JOINT_RATES,
    "articulated inertia seen along the hinge, with armature", "kg·m² or kg",
    "covariance of the innovations", symmetric=True, diagonal=True)
D_half = symbol("D_half", "D½", r"D^{\frac{1}{2}}", JOINT_FORCES, NORMAL,
    "root of D: D = D½ D½*, lower triangular per hinge", "kg^½·m or kg^½",
    "root of the covariance of the innovations", diagonal=True)
G = symbol("G", "G", "G", BODY_FORCES, JOINT_FORCES,
    "gain: the force a unit of joint force sends through the hinge", "1 or 1/m",
    "Kalman gain", diagonal=True)
K = symbol("K", "K", "K", BODY_FORCES, JOINT_FORCES,
    "gain carried to the parent, E_φ G", "1 or 1/m", "gain, propagated to the next station")
tau = symbol("tau", "τ", r"\tau", BODY_FORCES, BODY_FORCES,
    "G H: the part of a force that the hinge takes out", "1", "correction by a measurement",
    diagonal=True)
tau_bar = symbol("tau_bar", "τ̄", r"\bar{\tau}", BODY_FORCES, BODY_FORCES,
    "I − τ: the part of a force that passes the free hinge", "1", "what a measurement leaves",
    diagonal=True)
E_psi = symbol("E_psi", "E_ψ", r"E_{\psi}", BODY_FORCES, BODY_FORCES,
    "transport of forces through the free hinge to the parent", "1 and m",
    "transition of the filter")
psi = symbol("psi", "ψ", r"\psi", BODY_FORCES, BODY_FORCES,
    "transport of forces through free hinges to all ancestors", "1 and m",
    "propagation of the filter")
psi_tilde = symbol("psi_tilde", "ψ̃", r"\tilde{\psi}", BODY_FORCES, BODY_FORCES,
    "ψ − I: transport through free hinges to proper ancestors", "1 and m",
    "propagation of the filter to later stations")
Omega = symbol("Omega", "Ω", r"\Omega", BODY_MOTIONS, BODY_FORCES,
    "accelerations of all bodies per unit forces on them", "1/kg, 1/(kg·m), 1/(kg·m²)",
    "covariance of the smoother's adjoint variable", symmetric=True)
Upsilon = symbol("Upsilon", "Υ", r"\Upsilon", BODY_MOTIONS, BODY_FORCES,
    "acceleration of a body per unit force on it, the diagonal blocks of Ω",
    "1/kg, 1/(kg·m), 1/(kg·m²)", "covariance of the adjoint variable at a station",
    symmetric=True, diagonal=True)
m = symbol("m", "m", "m", JOINT_FORCES, NORMAL,
    "root of the mass matrix, 𝓜 = m m*", "kg^½·m or kg^½", "colouring filter, normalised")
l = symbol("l", "ℓ", r"\ell", NORMAL, JOINT_FORCES,
    "inverse of m, 𝓜⁻¹ = ℓ*ℓ", "1/(kg^½·m) or 1/kg^½", "whitening filter, normalised")

# ---- the dual of a free-flyer [BI] ---------------------------------------------------------------

S = symbol("S", "S", "S", BODY_FORCES, BODY_MOTIONS,
    "dual articulated inertia: the rest of a free-flying system, felt at a body across its hinge",
    "kg, kg·m, kg·m²", "information of the backward filter", symmetric=True, diagonal=True)
S_plus = symbol("S_plus", "S⁺", "S^{+}", BODY_FORCES, BODY_MOTIONS,
    "the rest of a free-flying system, felt inboard of the hinge", "kg, kg·m, kg·m²",
    "predicted information of the backward filter", symmetric=True, diagonal=True)
G_s = symbol("G_s", "G_s", "G_{s}", BODY_FORCES, JOINT_FORCES,
    "gain of the dual recursion, −S⁺H*D_s⁻¹ (−I at a free root)", "1 or 1/m",
    "gain of the backward filter", diagonal=True)
tau_bar_s = symbol("tau_bar_s", "τ̄_s", r"\bar{\tau}_{s}", BODY_FORCES, BODY_FORCES,
    "I + G_s H: the part of a force that passes the hinge outward", "1",
    "what a backward measurement leaves", diagonal=True)
E_phi_s = symbol("E_phi_s", "E_φs", r"E_{\phi_{s}}", BODY_FORCES, BODY_FORCES,
    "rigid transport of forces from each parent to its children, φ⁻¹ block by block", "1 and m",
    "transition back")
psi_s = symbol("psi_s", "ψ_s", r"\psi_{s}", BODY_FORCES, BODY_FORCES,
    "transport of forces through free hinges from every body to all its descendants", "1 and m",
    "propagation of the backward filter")
C_s = symbol("C_s", "C_s", "C_{s}", JOINT_RATES, JOINT_FORCES,
    "inverse of D_s = H S⁺ H* + A, S⁺ seen along the hinge (zero at a free root)",
    "1/(kg·m²) or 1/kg", symmetric=True, diagonal=True)
Upsilon_plus = symbol("Upsilon_plus", "Υ⁺", r"\Upsilon^{+}", BODY_MOTIONS, BODY_FORCES,
    "acceleration of the parent, seen at the hinge, per unit force on it there",
    "1/kg, 1/(kg·m), 1/(kg·m²)", symmetric=True, diagonal=True)
Lambda = symbol("Lambda", "Λ", r"\Lambda", BODY_FORCES, BODY_MOTIONS,
    "operational inertia: P + S, the inertia of the whole system felt at a body",
    "kg, kg·m, kg·m²", "information of the two-filter smoother", symmetric=True, diagonal=True)

# ---- another base [BI] ---------------------------------------------------------------------------

rebase = framed("rebase", "R", r"\mathrm{R}", JOINT_RATES, JOINT_RATES,
    "joint rates with another body as the base, from those with the root", "1 and m")
mass_at = framed("mass_at", "𝓜′", r"\mathcal{M}'", JOINT_FORCES, JOINT_RATES,
    "mass matrix with another body as the base", "kg·m² or kg", symmetric=True)
Omega_at = framed("Omega_at", "Ω′", r"\Omega'", BODY_MOTIONS, BODY_FORCES,
    "Ω with another body as the base", "1/kg, 1/(kg·m), 1/(kg·m²)", symmetric=True)
P_at = framed("P_at", "P′", "P'", BODY_FORCES, BODY_MOTIONS,
    "articulated inertias with another body as the base", "kg, kg·m, kg·m²",
    symmetric=True, diagonal=True)

# ---- vectors -------------------------------------------------------------------------------------

T = symbol("T", "T", "T", JOINT_FORCES, SCALARS, "joint forces", "N·m or N", "measurements")
beta = symbol("beta", "β", r"\beta", JOINT_RATES, SCALARS, "joint rates", "rad/s or m/s")
beta_dot = symbol("beta_dot", "β̇", r"\dot{\beta}", JOINT_RATES, SCALARS,
    "joint accelerations", "rad/s² or m/s²", "weights of the smoother")
C = symbol("C", "C", "C", JOINT_FORCES, SCALARS,
    "bias force: joint forces at zero joint acceleration", "N·m or N", "mean of the measurements")
V = symbol("V", "V", "V", BODY_MOTIONS, SCALARS, "spatial velocities", "rad/s, m/s")
alpha = symbol("alpha", "α", r"\alpha", BODY_MOTIONS, SCALARS,
    "spatial accelerations", "rad/s², m/s²", "adjoint variable")
a = symbol("a", "a", "a", BODY_MOTIONS, SCALARS, "Coriolis accelerations", "rad/s², m/s²",
    "known input of the adjoint")
b = symbol("b", "b", "b", BODY_FORCES, SCALARS,
    "gyroscopic forces, less gravity and external forces", "N·m, N", "known input")
f = symbol("f", "f", "f", BODY_FORCES, SCALARS, "forces between bodies, at the inboard hinge",
    "N·m, N", "state")
u = symbol("u", "u", "u", BODY_FORCES, SCALARS,
    "bias load: forces that the bodies take at zero joint acceleration", "N·m, N", "known input")
xi = symbol("xi", "ξ", r"\xi", JOINT_RATES, SCALARS,
    "total rates: joint rates with what the motion of the inboard body adds", "rad/s or m/s")
nu = symbol("nu", "ν", r"\nu", NORMAL, SCALARS, "normalised total rates", "kg^½·m/s")
kappa = symbol("kappa", "κ", r"\kappa", JOINT_FORCES, SCALARS,
    "working moments: joint forces less what outboard ones deliver", "N·m or N", "innovations")
eps = symbol("eps", "ε", r"\varepsilon", NORMAL, SCALARS, "normalised working moments",
    "N·m or N per root of an inertia", "normalised innovations")
# fmt: on

DEFINITIONS.update(
    phi=lambda: (I - E_phi).inv,
    phi_tilde=lambda: phi - I,
    mass=lambda: H @ phi @ M @ phi.T @ H.T + A,
    J=lambda *frames: B(*frames).T @ phi.T @ H.T,
    P=lambda: M + E_phi @ P_plus @ E_phi.T,
    P_plus=lambda: tau_bar @ P,
    D=lambda: H @ P @ H.T + A,
    G=lambda: P @ H.T @ D.inv,
    K=lambda: E_phi @ G,
    tau=lambda: G @ H,
    tau_bar=lambda: I - tau,
    E_psi=lambda: E_phi @ tau_bar,
    psi=lambda: (I - E_psi).inv,
    psi_tilde=lambda: psi - I,
    Omega=lambda: psi.T @ H.T @ D.inv @ H @ psi,
    m=lambda: (I + H @ phi @ K) @ D_half,
    l=lambda: D_half.inv @ (I - H @ psi @ K),
    tau_bar_s=lambda: I + G_s @ H,
    psi_s=lambda: (I - tau_bar_s @ E_phi_s).inv,
    Lambda=lambda: P + S,
    C=lambda: H @ phi @ (M @ phi.T @ a + b),
    V=lambda: phi.T @ H.T @ beta,
    alpha=lambda: phi.T @ (H.T @ beta_dot + a),
    f=lambda: phi @ (M @ alpha + b),
    u=lambda: M @ phi.T @ a + b,
    xi=lambda: (I + H @ phi @ K).T @ beta,
    nu=lambda: m.T @ beta,
    kappa=lambda: (I - H @ psi @ K) @ T,
    eps=lambda: l @ T,
)

ROOTS: dict[Expression, Expression] = {D: D_half}
