"""The symbols of the algebra: names, spaces, meaning, unit, and what each is in simpler ones.

The meanings are those of [DL] Table 1 and theory section 3, the readings as an estimation problem
those of [SOA] 4. The passive-arm set ([UA]) has the same relations with only the passive hinges
released; `PASSIVE` maps one set to the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from phipsi.operators.expressions import IDENTITY, ZERO, Expression, Leaf
from phipsi.operators.spaces import (
    ACTIVE_FORCES,
    ACTIVE_RATES,
    BODY_FORCES,
    BODY_MOTIONS,
    JOINT_FORCES,
    JOINT_RATES,
    NORMAL,
    PASSIVE_FORCES,
    PASSIVE_RATES,
    SCALARS,
    Space,
    frame_forces,
)

__all__ = [
    "DEFINITIONS",
    "PASSIVE",
    "ROOTS",
    "SYMBOLS",
    "A",
    "A_a",
    "A_p",
    "B",
    "C",
    "C_nu",
    "C_s",
    "C_xi",
    "D",
    "D_dot",
    "D_half",
    "D_p",
    "Delta_cross",
    "E_phi",
    "E_phi_dot",
    "E_phi_s",
    "E_psi",
    "E_psi_dot",
    "E_psi_p",
    "G",
    "G_dot",
    "G_p",
    "G_s",
    "H",
    "H_a",
    "H_cross",
    "H_p",
    "I",
    "J",
    "K",
    "K_p",
    "Lambda",
    "M",
    "Omega",
    "Omega_at",
    "Omega_p",
    "P",
    "P_at",
    "P_dot",
    "P_p",
    "P_p_plus",
    "P_plus",
    "S",
    "S_plus",
    "Symbol",
    "T",
    "Upsilon",
    "Upsilon_plus",
    "V",
    "V_cross",
    "a",
    "alpha",
    "b",
    "beta",
    "beta_dot",
    "eps",
    "f",
    "gamma",
    "kappa",
    "l",
    "lam",
    "m",
    "m_dot",
    "mass",
    "mass_aa",
    "mass_ap",
    "mass_at",
    "mass_by",
    "mass_dot",
    "mass_pp",
    "nu",
    "phi",
    "phi_dot",
    "phi_tilde",
    "psi",
    "psi_p",
    "psi_p_tilde",
    "psi_s",
    "psi_tilde",
    "rebase",
    "tau",
    "tau_bar",
    "tau_bar_dot",
    "tau_bar_p",
    "tau_bar_s",
    "u",
    "xi",
    "zero",
]


@dataclass(frozen=True, eq=False)
class Symbol:
    """A row of the table."""

    name: str
    """As Python and the parser write it."""
    unicode: str
    latex: str
    codomain: Space
    domain: Space
    meaning: str
    unit: str = ""
    estimation: str = ""
    symmetric: bool = False
    diagonal: bool = False
    """Block diagonal: each body by itself."""
    framed: bool = False
    """Needs frames, as B("tool")."""

    def spaces(self, frames: tuple[str, ...]) -> tuple[Space, Space]:
        """Codomain and domain at frames."""
        at = frame_forces(*frames)
        spaces = {"forces": at, "motions": at.dual}
        return spaces.get(self.codomain.name, self.codomain), spaces.get(
            self.domain.name, self.domain
        )

    def defined(self, frames: tuple[str, ...]) -> Expression:
        """Its definition, at frames."""
        if self.name not in DEFINITIONS:
            raise AttributeError(f"{self.unicode} is a given, {self.meaning}: it has no definition")
        return DEFINITIONS[self.name](*frames)


SYMBOLS: dict[str, Symbol] = {}
DEFINITIONS: dict[str, Callable[..., Expression]] = {}


def symbol(name: str, *row: object, **more: object) -> Leaf:
    """A new row of the table."""
    new = SYMBOLS[name] = Symbol(name, *row, **more)  # type: ignore[arg-type]
    return Leaf.of(new)


def framed(name: str, *row: object, **more: object) -> Callable[..., Leaf]:
    """A new row of the table that needs frames."""
    new = SYMBOLS[name] = Symbol(name, *row, framed=True, **more)  # type: ignore[arg-type]

    def at(*frames: str) -> Leaf:
        if not frames or not all(isinstance(frame, str) for frame in frames):
            raise TypeError(f"{name} needs the names of frames, {name}('tool')")
        if len(set(frames)) < len(frames):
            raise ValueError(f"{name}{frames}: a frame is named twice")
        return Leaf.of(new, frames)

    at.__name__ = at.__qualname__ = name
    at.__doc__ = f"{new.unicode}: {new.meaning}."
    return at


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

# ---- passive arms [UA] ---------------------------------------------------------------------------

H_a = symbol("H_a", "H_a", "H_{a}", ACTIVE_FORCES, BODY_FORCES,
    "rows of the hinge map that are active: their acceleration is prescribed", "1 or m",
    "states that are not measured", diagonal=True)
H_p = symbol("H_p", "H_p", "H_{p}", PASSIVE_FORCES, BODY_FORCES,
    "rows of the hinge map that are passive: their force is known", "1 or m",
    "measurement operator", diagonal=True)
A_a = symbol("A_a", "A_a", "A_{a}", ACTIVE_FORCES, ACTIVE_RATES,
    "armature of the active joints", "kg·m² or kg", symmetric=True, diagonal=True)
A_p = symbol("A_p", "A_p", "A_{p}", PASSIVE_FORCES, PASSIVE_RATES,
    "armature of the passive joints", "kg·m² or kg", "covariance of the measurement noise",
    symmetric=True, diagonal=True)
mass_aa = symbol("mass_aa", "𝓜_aa", r"\mathcal{M}_{aa}", ACTIVE_FORCES, ACTIVE_RATES,
    "active block of the mass matrix", "kg·m² or kg", symmetric=True)
mass_ap = symbol("mass_ap", "𝓜_ap", r"\mathcal{M}_{ap}", ACTIVE_FORCES, PASSIVE_RATES,
    "block of the mass matrix that couples active and passive joints", "kg·m² or kg")
mass_pp = symbol("mass_pp", "𝓜_pp", r"\mathcal{M}_{pp}", PASSIVE_FORCES, PASSIVE_RATES,
    "passive block of the mass matrix", "kg·m² or kg", symmetric=True)
P_p = symbol("P_p", "P_p", "P_{p}", BODY_FORCES, BODY_MOTIONS,
    "articulated inertia with only the passive hinges free", "kg, kg·m, kg·m²",
    "predicted covariance", symmetric=True, diagonal=True)
P_p_plus = symbol("P_p_plus", "P_p⁺", "P_{p}^{+}", BODY_FORCES, BODY_MOTIONS,
    "P_p felt across the hinge", "kg, kg·m, kg·m²", "filtered covariance",
    symmetric=True, diagonal=True)
D_p = symbol("D_p", "D_p", "D_{p}", PASSIVE_FORCES, PASSIVE_RATES,
    "P_p seen along the passive hinges, with armature", "kg·m² or kg",
    "covariance of the innovations", symmetric=True, diagonal=True)
G_p = symbol("G_p", "G_p", "G_{p}", BODY_FORCES, PASSIVE_FORCES,
    "gain of the passive hinges", "1 or 1/m", "Kalman gain", diagonal=True)
K_p = symbol("K_p", "K_p", "K_{p}", BODY_FORCES, PASSIVE_FORCES,
    "gain of the passive hinges, carried to the parent", "1 or 1/m",
    "gain, propagated to the next station")
tau_bar_p = symbol("tau_bar_p", "τ̄_p", r"\bar{\tau}_{p}", BODY_FORCES, BODY_FORCES,
    "the part of a force that passes the hinge, free if passive", "1",
    "what a measurement leaves", diagonal=True)
E_psi_p = symbol("E_psi_p", "E_ψp", r"E_{\psi_{p}}", BODY_FORCES, BODY_FORCES,
    "transport of forces to the parent, through the hinge if passive", "1 and m",
    "transition of the filter")
psi_p = symbol("psi_p", "ψ_p", r"\psi_{p}", BODY_FORCES, BODY_FORCES,
    "transport of forces to all ancestors, passive hinges free, active ones locked", "1 and m",
    "propagation of the filter")
psi_p_tilde = symbol("psi_p_tilde", "ψ̃_p", r"\tilde{\psi}_{p}", BODY_FORCES, BODY_FORCES,
    "ψ_p − I", "1 and m", "propagation of the filter to later stations")
Omega_p = symbol("Omega_p", "Ω_p", r"\Omega_{p}", BODY_MOTIONS, BODY_FORCES,
    "accelerations of bodies per unit forces, active hinges locked", "1/kg, 1/(kg·m), 1/(kg·m²)",
    "covariance of the smoother's adjoint variable", symmetric=True)

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

# ---- rates of change along a motion, in the axes of the bodies [DL] ------------------------------

Delta_cross = symbol("Delta_cross", "Δ̃", r"\tilde{\Delta}", BODY_FORCES, BODY_FORCES,
    "force cross product with the relative velocity H* β of each hinge", "rad/s, m/s",
    diagonal=True)
V_cross = symbol("V_cross", "Ṽ", r"\tilde{V}", BODY_MOTIONS, BODY_MOTIONS,
    "motion cross product with the velocity of each body", "rad/s, m/s", diagonal=True)
E_phi_dot = symbol("E_phi_dot", "Ė_φ", r"\dot{E}_{\phi}", BODY_FORCES, BODY_FORCES,
    "rate of E_φ", "1/s and m/s")
phi_dot = symbol("phi_dot", "φ̇", r"\dot{\phi}", BODY_FORCES, BODY_FORCES, "rate of φ",
    "1/s and m/s")
E_psi_dot = symbol("E_psi_dot", "Ė_ψ", r"\dot{E}_{\psi}", BODY_FORCES, BODY_FORCES,
    "rate of E_ψ", "1/s and m/s")
P_dot = symbol("P_dot", "Ṗ", r"\dot{P}", BODY_FORCES, BODY_MOTIONS,
    "rate of the articulated inertia", "kg/s, kg·m/s, kg·m²/s", symmetric=True, diagonal=True)
lam = symbol("lam", "λ", r"\lambda", BODY_FORCES, BODY_MOTIONS,
    "rate of the articulated inertia and its turning with the hinge", "kg/s, kg·m/s, kg·m²/s",
    symmetric=True, diagonal=True)
D_dot = symbol("D_dot", "Ḋ", r"\dot{D}", JOINT_FORCES, JOINT_RATES, "rate of D",
    "kg·m²/s or kg/s", symmetric=True, diagonal=True)
G_dot = symbol("G_dot", "Ġ", r"\dot{G}", BODY_FORCES, JOINT_FORCES, "rate of the gain",
    "1/s or 1/(m·s)", diagonal=True)
tau_bar_dot = symbol("tau_bar_dot", "τ̄˙", r"\dot{\bar{\tau}}", BODY_FORCES, BODY_FORCES,
    "rate of τ̄", "1/s", diagonal=True)
m_dot = symbol("m_dot", "ṁ", r"\dot{m}", JOINT_FORCES, NORMAL, "rate of the root of 𝓜",
    "kg^½·m/s or kg^½/s")
mass_dot = symbol("mass_dot", "𝓜̇", r"\dot{\mathcal{M}}", JOINT_FORCES, JOINT_RATES,
    "rate of the mass matrix", "kg·m²/s or kg/s", symmetric=True)
mass_by = framed("mass_by", "∂𝓜", r"\partial\mathcal{M}", JOINT_FORCES, JOINT_RATES,
    "derivative of the mass matrix by the coordinate of a hinge", "kg·m² or kg", symmetric=True)
H_cross = framed("H_cross", "H̃", r"\tilde{H}", BODY_FORCES, BODY_FORCES,
    "force cross product with the axis of one hinge, zero at other bodies", "1 or m",
    diagonal=True)

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
C_xi = symbol("C_xi", "C_ξ", r"C_{\xi}", JOINT_FORCES, SCALARS,
    "Coriolis term of the diagonal equations D ξ̇ + C_ξ = κ", "N·m or N")
C_nu = symbol("C_nu", "C_ν", r"C_{\nu}", NORMAL, SCALARS,
    "Coriolis term of the normalised diagonal equations ν̇ + C_ν = ε", "kg^½·m/s²")
gamma = symbol("gamma", "γ", r"\gamma", JOINT_FORCES, SCALARS,
    "β* ∂𝓜 β for each coordinate: twice the gradient of the kinetic energy", "N·m or N")
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
    mass_aa=lambda: H_a @ phi @ M @ phi.T @ H_a.T + A_a,
    mass_ap=lambda: H_a @ phi @ M @ phi.T @ H_p.T,
    tau_bar_s=lambda: I + G_s @ H,
    psi_s=lambda: (I - tau_bar_s @ E_phi_s).inv,
    Lambda=lambda: P + S,
    C=lambda: H @ phi @ (M @ phi.T @ a + b),
    V=lambda: phi.T @ H.T @ beta,
    alpha=lambda: phi.T @ (H.T @ beta_dot + a),
    f=lambda: phi @ (M @ alpha + b),
    u=lambda: M @ phi.T @ a + b,
    lam=lambda: P_dot + Delta_cross @ P + P @ Delta_cross.T,
    xi=lambda: (I + H @ phi @ K).T @ beta,
    nu=lambda: m.T @ beta,
    kappa=lambda: (I - H @ psi @ K) @ T,
    eps=lambda: l @ T,
)

PASSIVE: dict[Expression, Expression] = {
    H: H_p, A: A_p, mass: mass_pp, P: P_p, P_plus: P_p_plus, D: D_p, G: G_p, K: K_p,
    tau_bar: tau_bar_p, E_psi: E_psi_p, psi: psi_p, psi_tilde: psi_p_tilde, Omega: Omega_p,
}  # fmt: skip
"""The operators that depend on which hinges are free, and those with only the passive ones free."""


def _define_passive(own: Leaf, passive: Leaf) -> None:
    DEFINITIONS[passive.symbol.name] = lambda: own.definition.replaced({**PASSIVE, tau: G_p @ H_p})


for _own, _passive in PASSIVE.items():
    assert isinstance(_own, Leaf)
    assert isinstance(_passive, Leaf)
    if _own.symbol.name in DEFINITIONS:
        _define_passive(_own, _passive)

ROOTS: dict[Expression, Expression] = {D: D_half}
