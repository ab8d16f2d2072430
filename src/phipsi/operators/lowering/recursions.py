"""The table of the recursions behind symbols; `steps` has the functions of one body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from phipsi.model import Robot
from phipsi.operators.algebra import symbols as o
from phipsi.operators.algebra.expression import Leaf
from phipsi.operators.algebra.formula import IDENTITY as I
from phipsi.operators.algebra.formula import Formula, Name, Sigma, renamed
from phipsi.operators.algebra.symbols import SYMBOLS
from phipsi.operators.lowering.steps import (
    MASSLESS,
    WORLD_DUAL,
    dual,
    gyroscopic,
    passive_riccati,
    rates,
    riccati,
    sibling_message,
    upsilon,
    velocity,
)
from phipsi.spatial import Compliance, Motion
from phipsi.spatial import rotation as rot
from phipsi.sweeps.forest import InwardStep, LocalStep, OutwardStep

Direction = Literal["inward", "outward", "local"]
INWARD: Direction = "inward"
OUTWARD: Direction = "outward"
LOCAL: Direction = "local"

# ---- the table -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Recursion:
    """A row of the table: a recursion, and the symbols whose value it computes."""

    name: str
    direction: Direction
    step: InwardStep | OutwardStep
    gives: tuple[Leaf, ...]
    """The symbols whose action reads the fields that it adds to the records of bodies."""
    formulas: Mapping[Name, Formula]
    """The formula of each name, in order."""
    source: str
    cost: int
    """The approximate number of operations for a hinge with one freedom."""
    estimation: str = ""
    """What it computes if the bodies are the stations of a Kalman filter ([SOA] 4)."""
    note: str = ""
    """A remark, its formulas between braces."""
    zero_at_world: Name | None = None
    """The name that is 0 at the world."""
    needs: tuple[Recursion, ...] = ()
    """The recursions that must run before it."""
    world: Callable[[Robot], Mapping[str, object]] = lambda robot: {}
    """The fields of the world, which the step of a root reads if it runs outward."""
    sibling_message: LocalStep | None = None
    """The message of a body to its siblings before the sweep; the step reads the sum of these."""
    no_siblings: Mapping[str, object] = field(default_factory=dict[str, object])
    """The sum for a body without siblings."""
    moving: bool = False
    """Whether it reads the joint rates."""

    def __reduce__(self) -> tuple[Callable[[str], Recursion], tuple[str]]:
        return _named, (self.name,)


def _named(name: str) -> Recursion:
    """The row of the table; pickles call this."""
    return next(row for row in RECURSIONS if row.name == name)


# ---- formulas: of a body k with children c and parent p

c, p = "c", "p"

(
    A, D, D_dot, Delta_cross, G, G_s, G_dot, H, H_dot, Lambda, M, P, P_plus, P_dot, S, S_plus,
    Upsilon, Upsilon_plus, V, a, b, beta, phi, tau_bar,
) = (
    Name.of(SYMBOLS[name])
    for name in (
        "A", "D", "D_dot", "Delta_cross", "G", "G_s", "G_dot", "H", "H_dot", "Lambda", "M", "P",
        "P_plus", "P_dot", "S", "S_plus", "Upsilon", "Upsilon_plus", "V", "a", "b", "beta", "phi",
        "tau_bar",
    )
)  # fmt: skip
D_s = Name("D_s", "D_{s}")
P_plus_dot = P_dot.plussed
U_dot = Name("U̇", r"\dot{U}")
g = Name("g", "g")
f_ext = Name("f_ext", r"f_{\mathrm{ext}}")
ad = Name("ad", r"\operatorname{ad}")
crf = Name("crf", r"\operatorname{crf}")

RICCATI = Recursion(
    "riccati", INWARD, riccati,
    gives=(o.P, o.P_plus, o.D, o.D_half, o.G),
    formulas={
        P: M + Sigma(c, phi[c] @ P_plus[c] @ phi[c].T),
        D: H @ P @ H.T + A,
        G: P @ H.T @ D.inv,
        P_plus: P - G @ H @ P,
    },
    source="[BI] Alg 2.2, [SOA] (4.1)",
    estimation="predicted covariance, innovation covariance, Kalman gain, filtered covariance",
    cost=170,
)  # fmt: skip
_COUNTERPART = {
    Name.of(row.passive_of.symbol): Name.of(row)
    for row in SYMBOLS.values()
    if isinstance(row.passive_of, Leaf)
}


def _passive(name: Name) -> Name:
    """The name of the counterpart with only the passive hinges free."""
    return _COUNTERPART.get(name[""], name)[name.index]


PASSIVE_RICCATI = replace(
    RICCATI,
    name="passive",
    step=passive_riccati,
    gives=(o.H_p, o.P_p, o.P_p_plus, o.D_p, o.G_p),
    formulas={_passive(x): renamed(y, _passive) for x, y in RICCATI.formulas.items()},
    source="[UA] (4.6)-(4.9)",
)
MOTION = Recursion(
    "motion", OUTWARD, velocity,
    gives=(o.V, o.a, o.Delta_cross, o.V_cross, o.spin),
    formulas={
        V: phi.T @ V[p] + H.T @ beta,
        a: ad(V) @ H.T @ beta + H_dot.T @ beta,
    },
    source="[BI] Alg 2.1",
    zero_at_world=V,
    world=lambda robot: {"V": Motion.zero()},
    moving=True,
    cost=50,
)  # fmt: skip
GYROSCOPIC = Recursion(
    "gyroscopic", OUTWARD, gyroscopic,
    gives=(o.b,),
    formulas={
        g: phi.T @ g[p],
        b: crf(V) @ M @ V - M @ g - f_ext,
    },
    source="[BI] Alg 2.1",
    estimation="known input",
    needs=(MOTION,),
    world=lambda robot: {"gravity": Motion(rot.zero(), rot.scalars(robot.gravity))},
    cost=60,
)  # fmt: skip
UPSILON = Recursion(
    "upsilon", OUTWARD, upsilon,
    gives=(o.Upsilon, o.Upsilon_plus),
    formulas={
        tau_bar: I - G @ H,
        Upsilon_plus: phi.T @ Upsilon[p] @ phi,
        Upsilon: tau_bar.T @ Upsilon_plus @ tau_bar + H.T @ D.inv @ H,
    },
    source="[SOA] Application 2, [BI] (34)",
    estimation="covariance of the adjoint variable",
    needs=(RICCATI,),
    zero_at_world=Upsilon,
    world=lambda robot: {"Upsilon": Compliance.zero()},
    cost=80,
)  # fmt: skip
DUAL = Recursion(
    "dual", OUTWARD, dual,
    gives=(o.S, o.S_plus, o.G_s, o.Lambda),
    formulas={
        S_plus: phi.inv @ (M[p] + S[p] + Sigma(c, phi[c] @ P_plus[c] @ phi[c].T)) @ phi.inv.T,
        D_s: H @ S_plus @ H.T + A,
        G_s: -(S_plus @ H.T @ D_s.inv),
        S: S_plus + G_s @ H @ S_plus,
        Lambda: P + S,
    },
    source="[BI] Alg 3.1",
    note="{c} the other children of the parent; "
    "at a free root {S⁺} = {S} = 0, {G_s = −I}, {Λ = P}",
    estimation="backward information filter",
    needs=(RICCATI,),
    world=lambda robot: WORLD_DUAL,
    sibling_message=sibling_message,
    no_siblings={"siblings": MASSLESS},
    cost=250,
)  # fmt: skip
RATES = Recursion(
    "rates", INWARD, rates,
    gives=(o.P_dot, o.D_dot, o.D_half_dot, o.G_dot),
    formulas={
        P_dot: Sigma(c, phi[c] @ (P_plus_dot[c] + Delta_cross[c] @ P_plus[c]
                                  + P_plus[c] @ Delta_cross[c].T) @ phi[c].T),
        U_dot: P_dot @ H.T + P @ H_dot.T,
        D_dot: H @ U_dot + H_dot @ P @ H.T,
        G_dot: (U_dot - G @ D_dot) @ D.inv,
        P_plus_dot: P_dot - U_dot @ G.T - G @ U_dot.T + G @ D_dot @ G.T,
    },
    source="[DL] Alg 6.1, Table 4, for any hinge",
    estimation="rates of these covariances and of the gain",
    needs=(RICCATI, MOTION),
    cost=150,
)  # fmt: skip

RECURSIONS = (RICCATI, PASSIVE_RICCATI, MOTION, GYROSCOPIC, UPSILON, DUAL, RATES)
"""In the order in which they run within one sweep."""

RECURSION_OF: Mapping[str, Recursion] = {
    leaf.symbol.name: recursion for recursion in RECURSIONS for leaf in recursion.gives
}
"""The recursion that computes the value of a symbol, by the name of the symbol."""
