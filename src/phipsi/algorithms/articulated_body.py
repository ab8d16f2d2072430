"""The articulated body algorithm: 𝓜⁻¹ = (I − HψK)* D⁻¹ (I − HψK) as three sweeps."""

from __future__ import annotations

from typing import Any, NamedTuple

from phipsi.model import Robot
from phipsi.operators import C, T, mass
from phipsi.operators.lowering.compute import compute
from phipsi.operators.lowering.steps import riccati
from phipsi.programs import program
from phipsi.sweeps import columns, diagonal, forest, inward, stack

ACCELERATION = mass.inv @ (T - C)


@program(joint_space=True, equation=ACCELERATION)
def forward_dynamics(robot: Robot, q: Any, v: Any, tau: Any, *, external: Any = None) -> Any:
    """Joint accelerations from joint forces: β̇ = 𝓜⁻¹(T − C) ([SOA] Alg FD, [BI] Alg 2.3).

    Its cheapest form is (I−HψK)*D⁻¹(T − Hψ(KT + u)), u = Mφ*a + b: bias accelerations, gravity
    included, in the loads. Armature and external forces included; `tau` is the total joint force
    (add `passive_forces` if wanted). Returns (…, nv) [rad/s² or m/s²]. Cost O(N).
    """
    return compute(ACCELERATION, robot, q, v, T=tau, external=external)


class Articulated(NamedTuple):
    """Articulated inertias: P of every body (…, nb, 6, 6); D (…, nv, nv), block diagonal; G
    (…, 6, nv), the columns of a hinge in the frame of the body that it moves."""

    P: Any
    D: Any
    G: Any


@program
def articulated_inertias(robot: Robot, q: Any) -> Articulated:
    """P, D and G of the Riccati recursion, P = M + E_ψ P E_φ* ([BI] Alg 2.2, [SOA] (4.1)).

    P [kg, kg·m, kg·m²] is what the body's inboard hinge feels with all outboard hinges free.
    Returns P (…, nb, 6, 6), D (…, nv, nv), G (…, 6, nv). Cost O(N).
    """
    x = inward(riccati, forest(robot, q))
    return Articulated(stack(x, "P", (6, 6)), diagonal(x, "D"), columns(x, "G"))
