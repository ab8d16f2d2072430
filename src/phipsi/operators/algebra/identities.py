"""The identities of the papers: one table, at once the input of `simplify` and its own test.

A row says left = right. Rows are written with all hinges free; a row whose operators all have a
passive-arm counterpart ([UA]: only the passive hinges released) holds for that set too. This and
the adjoint of a row are derived, not typed in. Rows with `rewrite` are used by `simplify`, from
left to right, the first that applies before the later ones.

Where the papers leave armature out, the row has it in: A is then a symbol, and "no armature" the
one condition A = 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from phipsi.operators.algebra.derivation import Condition
from phipsi.operators.algebra.expression import Expression, Leaf
from phipsi.operators.algebra.symbols import *


@dataclass(frozen=True)
class Identity:
    """An identity left = right, its source, and the conditions that it needs."""

    name: str
    left: Expression
    right: Expression
    source: str = ""
    needs: tuple[Condition, ...] = ()
    any_gain: bool = False
    """Whether it holds for any gain G, even one that does not solve the Riccati equation."""
    rewrite: bool = False
    """Whether `simplify` uses it, from left to right."""
    beside: Expression | None = None
    """A product that another term must contain: the identity is used only where it cancels."""
    several: bool = False
    """Whether it holds at several frames together, and not only at each alone."""

    @property
    def adjoint(self) -> Identity:
        """The identity of the adjoint sides."""
        beside = self.beside and self.beside.T
        return replace(self, left=self.left.T, right=self.right.T, beside=beside)

    @property
    def passive(self) -> Identity | None:
        """The identity for the passive arm; None if an operator has no counterpart there."""
        leaves = self.left.leaves | self.right.leaves
        if leaves - COMMON - PASSIVE.keys() or leaves <= COMMON:
            return None
        names = {f"definition of {x}": f"definition of {y}" for x, y in PASSIVE.items()}
        return replace(self.replaced(PASSIVE), name=names.get(self.name, self.name))

    def at(self, *frames: str) -> Identity:
        """The same identity at other frames."""
        framed = (x for x in self.left.leaves | self.right.leaves if x.frames)
        return self.replaced({x: Leaf.of(x.symbol, frames) for x in framed})

    def replaced(self, what: Mapping[Expression, Expression]) -> Identity:
        """The same identity with symbols replaced."""
        beside = self.beside and self.beside.replaced(what)
        left, right = self.left.replaced(what), self.right.replaced(what)
        return replace(self, left=left, right=right, beside=beside)

    @property
    def text(self) -> str:
        """The text of the identity, as in the papers."""
        return f"{self.left} = {self.right}"


COMMON: set[Leaf] = {phi, phi_tilde, E_phi, M}
"""Operators that do not depend on which hinges are free."""


def _rule(
    name: str,
    left: Expression,
    right: Expression,
    source: str = "",
    needs: tuple[Condition, ...] = (),
    *,
    any_gain: bool = False,
    beside: Expression | None = None,
) -> Identity:
    return Identity(name, left, right, source, needs, any_gain, True, beside)


def _defined(x: Expression, right: Expression, source: str = "", any_gain: bool = True) -> Identity:
    return _rule(f"definition of {x}", x, right, source, any_gain=any_gain)


whiten, colour = I - H @ psi @ K, I + H @ phi @ K
_p = "tool"
"""Any frame: rows hold for every one."""

# fmt: off
TABLE: tuple[Identity, ...] = (
    # ---- definitions ----------------------------------------------------------------------------
    replace(_defined(J(_p), B(_p).T @ phi.T @ H.T, "[SOA] (2.1)"), several=True),
    _defined(mass, H @ phi @ M @ phi.T @ H.T + A, "[SOA] (3.1)-(3.6)"),
    _defined(mass_aa, mass_aa.definition, "[UA] (4.1)-(4.5)"),
    _defined(mass_ap, mass_ap.definition, "[UA] (4.1)-(4.5)"),
    _defined(S_aa, S_aa.definition, "[UA] (4.1)-(4.5)"),
    _defined(S_ap, S_ap.definition, "[UA] (4.1)-(4.5)"),
    _defined(S_pp, S_pp.definition, "[UA] (4.1)-(4.5)"),
    _defined(J_D, J_D.definition, "[UA] Lemma 6.4"),
    replace(_defined(J_G(_p), J_G(_p).definition, "[UA] Lemma 6.3"), several=True),
    _defined(proj_p, proj_p.definition, "[UA] Lemma 6.1"),
    _defined(proj_a, proj_a.definition, "[UA] Lemma 6.1"),
    _defined(m, colour @ D_half, "[DL] (5.1)-(5.4)"),
    _rule("l = m⁻¹", l, D_half.inv @ whiten, "[DL] (5.1)-(5.4)", any_gain=True),
    _defined(Omega, psi.T @ H.T @ D.inv @ H @ psi, "[BI] (27)-(33)"),
    _defined(phi_tilde, phi - I),
    _defined(psi_tilde, psi - I),
    _defined(tau, G @ H, "[SOA] (4.1)-(4.3)"),
    _defined(tau_bar, I - G @ H, "[SOA] (4.1)-(4.3)"),
    _defined(E_psi, E_phi - K @ H, "[SOA] (4.1)-(4.3)"),
    _defined(P_plus, P - G @ D @ G.T, "[BI] Alg 2.2", any_gain=False),
    _defined(tau_bar_s, I + G_s @ H, "[BI] Alg 3.1"),
    _defined(mass_dot, mass_dot.definition, "[DL] Lemma 6.2", any_gain=False),
    _defined(C_nu, C_nu.definition, "[DL] (1.1)-(1.4)", any_gain=False),
    _defined(C_xi, C_xi.definition, "[DL] Lemma 7.3", any_gain=False),
    _defined(m_dot, m_dot.definition, "[DL] Identity 6.1", any_gain=False),
    _defined(psi_dot, psi @ E_psi_dot @ psi, "[DL] Table 4", any_gain=False),
    _defined(E_psi_dot, E_psi_dot.definition, "[DL] Table 4", any_gain=False),
    _defined(tau_bar_dot, tau_bar_dot.definition, "[DL] Table 4", any_gain=False),
    _defined(K_dot, K_dot.definition, "[DL] Table 4", any_gain=False),
    _defined(phi_dot, phi @ E_phi_dot @ phi, "[DL] Table 4", any_gain=False),
    _defined(E_phi_dot, E_phi @ Delta_cross, "[DL] Table 4", any_gain=False),
    _defined(lam, lam.definition, "[DL] Alg 6.1", any_gain=False),

    # ---- what removes inverses -------------------------------------------------------------------
    _rule("I4", psi.inv, phi.inv + K @ H, "[SOA] Lemma A.1", any_gain=True),
    _rule("resolvent", phi.inv, I - E_phi, "[SOA] (3.1)-(3.6)", any_gain=True),
    _rule("root", m.inv, l, "[DL] (5.1)-(5.4)", any_gain=True),
    _rule("root", l.inv, m, "[DL] (5.1)-(5.4)", any_gain=True),
    _rule("Lemma 4.1", Upsilon.inv, P + S, "[BI] Lemma 4.1", ("free base",)),
    _rule("Lemma 4.1", Lambda.inv, Upsilon, "[BI] Lemma 4.1", ("free base",)),
    _rule("definition of Λ", Lambda, P + S, "[BI] Lemma 4.1"),

    # ---- φ and ψ ---------------------------------------------------------------------------------
    _rule("I6", whiten @ H @ phi, H @ psi, "[SOA] Lemma 5.1", any_gain=True),
    _rule("I6", colour @ H @ psi, H @ phi, "[SOA] Lemma 5.1", any_gain=True),
    _rule("I7", phi @ K @ whiten, psi @ K, "[SOA] Lemma 5.1", any_gain=True),
    _rule("I7", psi @ K @ colour, phi @ K, "[SOA] Lemma 5.1", any_gain=True),
    _defined(C, H @ phi @ (M @ phi.T @ a + b), "[SOA] (3.1)-(3.6)"),
    _defined(u, M @ phi.T @ a + b, "[BI] Alg 2.3"),
    _rule("I5", psi @ K @ H @ phi, phi - psi, "[SOA] Lemma A.1", any_gain=True),
    _rule("I5", phi @ K @ H @ psi, phi - psi, "[SOA] Lemma A.1", any_gain=True),
    _rule("resolvent", E_phi @ phi, phi - I, "[SOA] (3.1)-(3.6)", any_gain=True),
    _rule("resolvent", phi @ E_phi, phi - I, "[SOA] (3.1)-(3.6)", any_gain=True),
    _rule("resolvent", E_phi @ psi, psi - I + K @ H @ psi, "[SOA] (4.1)-(4.3)", any_gain=True),
    _rule("resolvent", psi @ E_phi, psi - I + psi @ K @ H, "[SOA] (4.1)-(4.3)", any_gain=True),
    _rule("definition of K", E_phi @ G, K, "[SOA] (4.1)-(4.3)", any_gain=True),

    # ---- Riccati ---------------------------------------------------------------------------------
    _rule("I16", psi @ M @ phi.T, psi @ P + P @ phi_tilde.T, "[UA] (A.6)"),
    _rule("I15", psi @ M @ psi.T, psi @ P + P @ psi_tilde.T - psi @ K @ A @ K.T @ psi.T,
             "[UA] (A.5)"),
    _rule("I1", H @ phi @ M @ phi.T @ H.T,
             H @ phi @ (P - E_phi @ P @ E_phi.T + K @ D @ K.T) @ phi.T @ H.T, "[SOA] (4.1)-(4.3)"),
    _rule("I17", phi @ M @ phi.T, phi @ P + P @ phi_tilde.T + phi @ K @ D @ K.T @ phi.T,
             "[UA] Lemma A.1", beside=phi @ K @ D @ K.T @ phi.T),
    _rule("definition of G", P @ H.T, G @ D, "[SOA] (4.1)-(4.3)"),
    _rule("resolvent", phi @ G, G + phi @ K, "[SOA] (4.1)-(4.3)", any_gain=True),
    _rule("I20", psi @ G, G + psi @ K @ A @ D.inv, "[UA] Lemma A.1"),
    _rule("I20", H @ G, I - A @ D.inv, "[UA] Lemma A.1"),

    # ---- roots -----------------------------------------------------------------------------------
    _rule("root of D", D_half @ D_half.T, D, "[DL] (5.1)-(5.4)"),
    _rule("root of D", D_half.inv.T @ D_half.inv, D.inv, "[DL] (5.1)-(5.4)"),
    _rule("root of D", D_half.inv @ D, D_half.T, "[DL] (5.1)-(5.4)"),
    _rule("root of D", D.inv @ D_half, D_half.inv.T, "[DL] (5.1)-(5.4)"),

    # ---- conditions ------------------------------------------------------------------------------
    _rule("no armature", A, zero, "", ("no armature",)),
    _rule("no armature", A_a, zero, "", ("no armature",)),
    _rule("I23", Omega.definition, Upsilon + psi_tilde.T @ Upsilon + Upsilon @ psi_tilde,
             "[BI] (33)", ("serial",)),
    _rule("I24", B(_p).T @ Omega.definition @ B(_p), B(_p).T @ Upsilon @ B(_p), "[BI] (34)"),

    # ---- theory 3.1, as the papers have them -----------------------------------------------------
    Identity("I1", M, P - E_phi @ P_plus @ E_phi.T, "[SOA] (4.1)-(4.3)"),
    Identity("I1", M, P - E_psi @ P @ E_phi.T, "[SOA] (4.1)-(4.3)"),
    Identity("I2", M, P - E_psi @ P @ E_psi.T - K @ A @ K.T, "[BI] Alg 2.2"),
    Identity("I3", P_plus, tau_bar @ P, "[BI] Alg 2.2"),
    Identity("I3", P_plus, tau_bar @ P @ tau_bar.T + G @ A @ G.T, "[BI] Alg 2.2"),
    Identity("I8", colour.inv, whiten, "[SOA] Lemma 4.2", any_gain=True),
    Identity("I9", mass, colour @ D @ colour.T, "[SOA] Lemma 4.1"),
    Identity("I10", mass.inv, whiten.T @ D.inv @ whiten, "[SOA] Lemma 4.3"),
    Identity("I11", whiten @ mass, D @ colour.T, "[SOA] Lemma 4.3"),
    Identity("I12", mass.logdet, D.logdet, "[SOA] Lemma 4.1"),
    Identity("I13", phi.T @ H.T @ mass.inv @ H @ phi, Omega, "[BI] (27)-(33)"),
    Identity("I14", mass.inv, D.inv - D.inv @ H @ psi @ K - (D.inv @ H @ psi @ K).T
             + K.T @ Omega @ K, "[BI] (27)-(33)"),
    Identity("I15", psi @ M @ psi.T, psi_tilde @ P + P @ psi.T, "[UA] (A.5)", ("no armature",)),
    Identity("I16", phi @ M @ psi.T, phi_tilde @ P + P @ psi.T, "[UA] (A.6)"),
    Identity("I17", phi @ M @ phi.T, P + phi_tilde @ P + P @ phi_tilde.T
             + phi @ K @ D @ K.T @ phi.T, "[UA] Lemma A.1"),
    Identity("I18", phi @ M @ phi.T @ H.T, (I + phi @ K @ H) @ P @ phi.T @ H.T + phi @ K @ A,
             "[UA] Lemma A.1"),
    Identity("I19", H @ psi @ M @ psi.T @ H.T, D - whiten @ A @ whiten.T, "[UA] Lemma A.1"),
    Identity("I19", H @ psi @ M @ psi.T @ H.T, D, "[UA] Lemma A.1", ("no armature",)),
    Identity("I19", Omega @ M @ Omega, Omega, "[UA] Lemma A.1", ("no armature",)),
    Identity("I20", tau_bar @ G, G @ A @ D.inv, "[UA] Lemma A.1"),
    Identity("I20", H @ G, I, "[UA] Lemma A.1", ("no armature",)),
    Identity("I20", H @ tau_bar, A @ D.inv @ H, "[UA] Lemma A.1"),
    Identity("I20", tau @ tau, tau, "[UA] Lemma A.1", ("no armature",)),
    Identity("I20", psi @ P @ H.T, P @ H.T + psi @ K @ A, "[UA] Lemma A.1"),
    Identity("I21", H @ phi @ tau_bar, H @ phi @ E_psi, "[UA] Lemma A.1", ("no armature",)),
    Identity("I22", H @ phi @ G, colour - A @ D.inv, "[UA] Lemma A.1"),
    Identity("I24", B(_p).T @ Omega @ B(_p), J(_p) @ mass.inv @ J(_p).T, "[BI] (34)"),

    # ---- theory 4: the equations of motion -------------------------------------------------------
    Identity("FD", mass.inv @ (T - C), whiten.T @ D.inv @ (T - H @ psi @ (K @ T + P @ a + b))
             - K.T @ psi.T @ a, "[BI] (11)"),
    Identity("FD", phi.T @ (H.T @ mass.inv @ (T - C) + a),
             psi.T @ (H.T @ D.inv @ (T - H @ psi @ (K @ T + P @ a + b)) + a), "[BI] (12)"),

    # ---- theory 5: tip forces --------------------------------------------------------------------
    Identity("TIP", mass.inv @ J(_p).T, whiten.T @ D.inv @ H @ psi @ B(_p), "[SOA] (5.3)"),

    # ---- theory 7, 8: the dual, and other bases --------------------------------------------------
    Identity("Lemma 4.1", Upsilon.inv, Lambda, "[BI] Lemma 4.1", ("free base",)),
    Identity("Lemma 4.1", Upsilon_plus @ (P_plus + S_plus) @ Upsilon_plus, Upsilon_plus,
             "[BI] Lemma 4.1", ("free base",)),
    Identity("UPS", Upsilon, tau_bar.T @ Upsilon_plus @ tau_bar + H.T @ D.inv @ H, "[BI] (34)"),
    Identity("dual UPS", Upsilon_plus, tau_bar_s.T @ Upsilon @ tau_bar_s + H.T @ C_s @ H,
             "[BI] (36)", ("free base",)),
    Identity("dual", S, tau_bar_s @ S_plus, "[BI] Alg 3.1", ("free base",)),
    Identity("dual", S_plus @ H.T @ C_s @ H @ S_plus, S_plus - S, "[BI] Alg 3.1", ("free base",)),
    Identity("dual", G_s @ H @ tau_bar, tau_bar @ G_s @ H @ tau_bar, "[BI] Lemma 4.1",
             ("free base", "no armature")),
    Identity("dual", S_plus, E_phi_s @ (M + S) @ E_phi_s.T, "[BI] Alg 3.1",
             ("free base", "serial")),
    Identity("dual", psi_s.inv, I - tau_bar_s @ E_phi_s, "[BI] Alg 3.1", ("free base",)),
    Identity("Lemma A.1", rebase(_p).T @ mass_at(_p) @ rebase(_p), mass, "[BI] Lemma A.1",
             ("free base",)),
    Identity("Lemma A.2", Omega_at(_p), Omega, "[BI] Appendix A", ("free base",)),
    Identity("Lemma A.2", B(_p).T @ Upsilon @ P_at(_p), B(_p).T, "[BI] Alg 4.1", ("free base",)),

    # ---- theory 9, 10: under-actuated arms -------------------------------------------------------
    Identity("S_pp", S_pp, (I - H_p @ psi_p @ K_p).T @ D_p.inv @ (I - H_p @ psi_p @ K_p),
             "[UA] Lemma 4.1-4.3"),
    Identity("S_ap", S_ap, H_a @ (psi_p @ K_p + P_p @ psi_p.T @ H_p.T @ D_p.inv
             @ (I - H_p @ psi_p @ K_p)), "[UA] Lemma 5.1"),
    Identity("S_ap", S_ap, H_a @ ((psi_p - P_p @ Omega_p) @ K_p
             + P_p @ psi_p.T @ H_p.T @ D_p.inv), "[UA] Lemma 5.1"),
    Identity("S_aa", S_aa, mass_aa - S_ap @ mass_ap.T, "[UA] Lemma 5.1"),
    Identity("S_aa", S_aa, H_a @ ((psi_p - P_p @ Omega_p) @ P_p
             + P_p @ psi_p_tilde.T) @ H_a.T + A_a, "[UA] Lemma 5.1"),
    Identity("ΩMφ*", Omega @ M @ phi.T, phi.T - psi.T + Omega @ P, "[UA] Lemma A.1"),
    Identity("ΩMφ*", Omega @ M @ phi.T, phi.T @ H.T @ (K.T @ (psi.T - Omega @ P)
             + D.inv @ H @ psi @ P), "[UA] Lemma A.1"),
    Identity("projection", (psi - P @ Omega) @ M @ phi.T, (psi - P @ Omega) @ P + P @ psi_tilde.T,
             "[UA] Lemma A.1"),
    Identity("projection", (psi - P @ Omega) @ M @ phi.T, psi @ M @ psi.T - P @ Omega @ P,
             "[UA] Lemma A.1", ("no armature",)),
    Identity("projection", proj_p @ proj_p, proj_p, "[UA] Lemma 6.1", ("no armature",)),
    Identity("projection", proj_a @ proj_a, proj_a, "[UA] Lemma 6.1", ("no armature",)),
    Identity("projection", proj_a @ phi.T, psi_p.T - Omega_p @ P_p, "[UA] Lemma 6.2"),
    Identity("projection", proj_a @ psi_p.T, psi_p.T - Omega_p @ P_p, "[UA] Lemma 6.2",
             ("no armature",)),
    Identity("projection", proj_a @ phi.T @ H_p.T,
             psi_p.T @ H_p.T @ D_p.inv @ (I - H_p @ psi_p @ K_p) @ A_p, "[UA] Lemma 6.2"),
    Identity("projection", proj_a @ phi.T @ H_p.T, zero,
             "[UA] Lemma 6.2", ("no armature",)),
    Identity("projection", H_a @ phi @ proj_a.T @ M @ proj_a @ phi.T @ H_a.T, S_aa,
             "[UA] (6.8)", ("no armature",)),
    Identity("J_D", J_D, -S_ap.T, "[UA] Lemma 6.4"),
    Identity("J_D", J_D, -((I - H_p @ psi_p @ K_p).T @ D_p.inv @ H_p @ psi_p @ P_p
             + K_p.T @ psi_p.T) @ H_a.T, "[UA] Lemma 6.4"),
    Identity("J_G", J_G(_p), B(_p).T @ (psi_p.T - Omega_p @ P_p) @ H_a.T, "[UA] Lemma 6.3"),
    Identity("J_G", J_G(_p), B(_p).T @ phi.T @ (H_a.T + H_p.T @ J_D), "[UA] Lemma 6.3"),
    Identity("J_G", J_G(_p), B(_p).T @ proj_a @ phi.T @ H_a.T, "[UA] Lemma 6.3"),

    # ---- theory 11: diagonal equations -----------------------------------------------------------
    Identity("root", mass, m @ m.T, "[DL] (5.1)-(5.4)"),
    Identity("root", mass.inv, l.T @ l, "[DL] (5.1)-(5.4)"),
    Identity("total rates", xi, beta + G.T @ E_phi.T @ V, "[DL] Table 2"),
    Identity("total rates", nu, D_half.T @ xi, "[DL] (5.1)-(5.4)"),
    Identity("energy", beta.T @ mass @ beta, nu.T @ nu, "[DL] (7.8)"),
    Identity("energy", beta.T @ mass @ beta, xi.T @ D @ xi, "[DL] (7.8)"),
    Identity("workless", nu.T @ C_nu, zero, "[DL] Lemma 7.1", ("no loads",)),
    Identity("workless", xi.T @ C_xi, 0.5 * xi.T @ D_dot @ xi, "[DL] Lemma 7.3", ("no loads",)),
    Identity("any hinge", phi.T @ a, phi_dot.T @ H.T @ beta + phi.T @ H_dot.T @ beta,
             "[BI] Alg 2.1"),
    Identity("any hinge", P_dot, P_dot.definition, "[DL] Alg 6.1"),
    Identity("any hinge", D_dot, D_dot.definition, "[DL] Table 4"),
    Identity("any hinge", D_dot, D_half_dot @ D_half.T + D_half @ D_half_dot.T, "[DL] Table 4"),
    Identity("any hinge", G_dot, G_dot.definition, "[DL] Table 4"),
    Identity("any hinge", mass_dot, m_dot @ m.T + m @ m_dot.T, "[DL] Identity 6.1"),
    Identity("any hinge", C_xi, H @ psi @ ((P_dot @ H.T + P @ H_dot.T) @ xi - V_cross.T @ M @ V
             - E_phi @ (Delta_cross - G @ H_dot) @ P_plus @ E_phi.T @ V)
             - H_dot @ P_plus @ E_phi.T @ V, "[DL] Lemma 7.3", ("no loads",)),
    Identity("any hinge", C_xi, D_half @ (C_nu + D_half_dot.T @ xi), "[DL] Lemma 7.3"),
    Identity("6.1", P_dot, E_psi @ lam @ E_psi.T, "[DL] Alg 6.1", ("one freedom",)),
    Identity("Table 4", phi_dot, V_cross.T @ phi - phi @ V_cross.T, "[DL] Lemma 6.1"),
    Identity("Lemma 6.1", H @ (V_cross.T @ phi - phi @ V_cross.T), H @ phi @ Delta_cross @ phi,
             "[DL] Lemma 6.1", ("one freedom",)),
    Identity("Table 4", D_dot, H @ P_dot @ H.T, "[DL] Table 4", ("one freedom",)),
    Identity("Table 4", G_dot, tau_bar @ P_dot @ H.T @ D.inv, "[DL] Table 4", ("one freedom",)),
    Identity("Table 4", tau_bar_dot, -G_dot @ H, "[DL] Table 4", ("one freedom",)),
    Identity("Table 4", E_psi_dot, E_psi @ (Delta_cross @ tau_bar - P_dot @ H.T @ D.inv @ H),
             "[DL] Table 4", ("one freedom",)),
    Identity("6.1", m_dot, H @ phi @ (Delta_cross @ phi_tilde @ P + 0.5 * (I + tau_bar) @ lam)
             @ H.T @ D_half.inv.T - 0.5 * A @ D.inv @ D_dot @ D_half.inv.T, "[DL] Identity 6.1",
             ("one freedom",)),
    Identity("6.2", m_dot @ nu, H @ phi @ (Delta_cross @ phi @ K @ H @ P
             + 0.5 * (Delta_cross @ P + P @ Delta_cross.T + E_psi @ lam - lam @ E_psi.T)) @ V,
             "[DL] Identity 6.2", ("one freedom", "no armature")),
    Identity("7.1", C_nu, 0.5 * D_half.inv @ H @ psi @ (E_psi @ lam - lam @ E_psi.T
             - Delta_cross @ P + P @ Delta_cross.T - 2 * V_cross.T @ M) @ V,
             "[DL] Identity 7.1", ("one freedom", "no loads")),
    Identity("7.3", C_xi, H @ psi @ (lam @ H.T @ xi - (Delta_cross @ P + V_cross.T @ M) @ V),
             "[DL] Lemma 7.3", ("one freedom", "no loads")),
    Identity("7.3", C_xi, H @ psi @ (P_dot @ H.T @ xi - Delta_cross @ P_plus @ E_phi.T @ V
             - V_cross.T @ M @ V), "[DL] Lemma 7.3", ("one freedom", "no loads")),
    Identity("7.3", C_xi, D_half @ C_nu + 0.5 * D_dot @ xi, "[DL] Lemma 7.3", ("one freedom",)),
    Identity("6.3", mass_by(_p), H @ phi @ H_cross(_p) @ phi @ M @ phi.T @ H.T
             + (H @ phi @ H_cross(_p) @ phi @ M @ phi.T @ H.T).T, "[DL] Identity 6.3",
             ("one freedom",)),
    Identity("Lemma 6.2", gamma, 2 * H @ V_cross.T @ phi @ M @ V, "[DL] Lemma 6.2",
             ("one freedom",)),
    Identity("Lemma 6.2", gamma, 2 * H @ phi @ (Delta_cross @ phi + V_cross.T) @ M @ V,
             "[DL] Lemma 6.2", ("one freedom",)),
    Identity("Lagrange", C, mass_dot @ beta - 0.5 * gamma, "[DL] (1.1)-(1.4)",
             ("one freedom", "no loads")),
    Identity("Lagrange", C_nu, l @ (m_dot @ nu - 0.5 * gamma), "[DL] (1.1)-(1.4)",
             ("one freedom", "no loads")),
)
# fmt: on
