"""Derivatives of the dynamics along configurations, velocities and what drives them.

Configurations vary in the tangent space, nv numbers: q ⊕ δ is `robot.integrate(q, δ)`, the hinge
moved on by H*δ in the axes of its outboard body. External forces stay as they are in the frames
that they are given in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms.articulated_body import forward_dynamics
from phipsi.algorithms.under_actuated import as_mask, exchange, hybrid_dynamics, passive
from phipsi.algorithms.variations import (
    Answers,
    accelerated,
    aligned,
    answered,
    freed,
    held,
    parted,
    tangent,
)
from phipsi.compile import repeat, where
from phipsi.model import Robot
from phipsi.programs import program
from phipsi.sweeps import gather, inward, local, looped, may_loop, shared_paths

PAIRS, TRIPLES, MOST = 130, 5, 300_000
"""Operations for each pair of freedoms on one path and for each triple, and how many are traced;
what takes more is a loop over the freedoms."""


LONGEST = 300
"""Most freedoms along which derivatives are taken."""


def one_by_one(robot: Robot, yields: bool = True) -> bool:
    """Is there a loop over the freedoms?"""
    pairs, triples = shared_paths(robot)
    many = PAIRS * pairs + TRIPLES * triples * yields > MOST
    return looped(robot) or (many and may_loop())


def in_turn(robot: Robot, q: Any, v: Any, qdd: Any, active: Any, external: Any) -> Answers:
    """The answers to one variation after the other: sweeps in a loop over the freedoms, O(N) each.

    δT is what inverse dynamics makes of a variation; hybrid dynamics at rest distributes −δT.
    """
    n = robot.nv
    if n > LONGEST:
        raise ValueError(
            f"robot {robot.name!r}: derivatives along {n} freedoms are too large to be traced (at "
            f"most {LONGEST}); use what is O(N), such as finite differences along a direction"
        )

    def turn(state: Any, unit: Any) -> Any:
        slow, fast, given = np.split(unit, 3)
        T = tangent(robot, q, v, qdd, slow, fast, external=external)
        x = exchange(robot, q, np.zeros(n), given - T, given, active)
        return state, where(active, gather(x, "all_tau") + T, gather(x, "all_qdd"))

    _, rows = repeat(3 * n, turn, np.zeros(0), np.eye(3 * n))
    return Answers(*(part.T for part in np.split(rows, 3)))


class InverseDerivatives(NamedTuple):
    """∂T/∂q, ∂T/∂v and ∂T/∂a = 𝓜 of joint forces T, (…, nv, nv) each."""

    dq: Any
    dv: Any
    da: Any


@program(joint_space=True)
def inverse_dynamics_derivatives(
    robot: Robot, q: Any, v: Any, a: Any, *, external: Any = None
) -> InverseDerivatives:
    """How `inverse_dynamics` varies: δT = Hφ(Mφ*γ + Bφ*δV) + Hφ̃ crf(S)f, all columns at once, by
    composite bodies ([SOA] 3, differentiated; columns as Carpentier and Mansard 2018).

    ∂T/∂q is along displacements in the tangent space, S = H*e: δV and γ are what a displacement, or
    a rate, adds to velocities and accelerations, Bx = crf(V)Mx + crf(x)MV − M ad(V)x. Returns
    (…, nv, nv) each, rows of T: `dq` [N·m/rad, N/m …], `dv` [N·m·s …] and `da`, the mass matrix.
    Cost O(N · depth).
    """
    if one_by_one(robot, yields=False):
        return InverseDerivatives(*in_turn(robot, q, v, a, np.ones(robot.nv), external))
    x = inward(held, aligned(robot, q, v=v, external=external))
    return InverseDerivatives(*answered(x, a))


class ForwardDerivatives(NamedTuple):
    """∂a/∂q, ∂a/∂v and ∂a/∂tau = 𝓜⁻¹ of joint accelerations a, (…, nv, nv) each."""

    dq: Any
    dv: Any
    dtau: Any


@program(joint_space=True)
def forward_dynamics_derivatives(
    robot: Robot, q: Any, v: Any, tau: Any, *, external: Any = None
) -> ForwardDerivatives:
    """How `forward_dynamics` varies: −𝓜⁻¹∂T at the accelerations that it gives, and 𝓜⁻¹.

    By articulated bodies: (I − HψK)Hφ = Hψ whitens ∂T as it is made, and 𝓜⁻¹∂T is the product
    (I − HψK)*D⁻¹ε of matrices that are zero but for freedoms on one path, and what ψ*γ adds
    ([SOA] Lemma 4.3 and (4.1), differentiated). Returns (…, nv, nv) each, rows of accelerations;
    `dq` along displacements in the tangent space. Cost O(N · depth) and a product, O(N²) for a free
    base with limbs.

    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.quadruped()
    >>> q, v = robot.random_state(0)
    >>> tau, step = np.ones(robot.nv), 1e-6 * np.eye(robot.nv)[7]
    >>> dq, dv, dtau = pp.forward_dynamics_derivatives(robot, q, v, tau)
    >>> ends = (pp.forward_dynamics(robot, robot.integrate(q, s), v, tau) for s in (-step, step))
    >>> bool(np.allclose(np.subtract(*ends) / -2e-6, dq[:, 7], rtol=1e-6, atol=1e-6))
    True
    """
    if one_by_one(robot):
        qdd = forward_dynamics(robot, q, v, tau, external=external)
        return ForwardDerivatives(*in_turn(robot, q, v, qdd, np.zeros(robot.nv), external))
    x = inward(freed, aligned(robot, q, v=v, tau=tau, external=external))
    return ForwardDerivatives(*answered(x, accelerated(x)))


class HybridDerivatives(NamedTuple):
    """Of what `hybrid_dynamics` finds, row by row (the force of an active freedom, the acceleration
    of a passive one): its derivatives along q, v and, column by column, what is given (the
    acceleration of an active freedom, the force of a passive one), (…, nv, nv) each."""

    dq: Any
    dv: Any
    dgiven: Any


@program(shapes={"qdd": ("nv",), "active": ("nv",)}, masks=("active",), joint_space=True)
def hybrid_dynamics_derivatives(
    robot: Robot, q: Any, v: Any, tau: Any, qdd: Any, active: Any, *, external: Any = None
) -> HybridDerivatives:
    """How what `hybrid_dynamics` finds varies: ∂T_a − S_ap∂T_p and −S_pp∂T_p, ∂T that of inverse
    dynamics at all accelerations ([UA] Lemma 5.2, differentiated).

    Arguments as there. Row i of each matrix is of what is found at freedom i: the force where it is
    active, else the acceleration; what is given there does not vary. `dgiven` is the matrix
    [[S_aa, S_ap], [−S_ap*, S_pp]] in the order of the freedoms. Returns (…, nv, nv) each; `dq`
    along displacements in the tangent space. Cost as of `forward_dynamics_derivatives`.
    """
    mask = as_mask(robot, active)
    qdd = hybrid_dynamics(robot, q, v, tau, qdd, active, external=external).qdd
    if one_by_one(robot):
        return HybridDerivatives(*in_turn(robot, q, v, qdd, mask, external))
    x = local(passive, aligned(robot, q, v=v, active=mask, external=external))
    return HybridDerivatives(*answered(inward(parted, x), qdd))


class Linearized(NamedTuple):
    """ẋ = A x + B δtau for small x = (δ, δv): A (…, 2 nv, 2 nv), B (…, 2 nv, nv)."""

    A: Any
    B: Any


@program(joint_space=True)
def linearize(robot: Robot, q: Any, v: Any, tau: Any, *, external: Any = None) -> Linearized:
    """The motion near a motion: δ̇ = δv − [v, δ], δv̇ = ∂a/∂q δ + ∂a/∂v δv + 𝓜⁻¹δtau.

    δ is the displacement in the tangent space, q ⊕ δ; [v, ·], the bracket of the hinges, is zero
    where q moves by addition. Returns A (…, 2 nv, 2 nv) and B (…, 2 nv, nv) for x = (δ, δv), of the
    state (q, v) as it is: no state of rest is assumed. Cost as of `forward_dynamics_derivatives`.

    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> hanging = np.zeros(2)
    >>> A, B = pp.linearize(robot, hanging, np.zeros(2), np.zeros(2))
    >>> bool(np.allclose(np.linalg.eigvals(A).real, 0.0))
    True
    """
    n = robot.nv
    dq, dv, dtau = forward_dynamics_derivatives(robot, q, v, tau, external=external)
    A = np.block([[-robot.bracket(v, np.eye(n)).T, np.eye(n)], [dq, dv]])
    return Linearized(A, np.concatenate([np.zeros((n, n)), dtau]))
