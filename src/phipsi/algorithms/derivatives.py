"""Derivatives of the dynamics by configurations, velocities, and given forces or accelerations.

Configurations vary in the tangent space, which has nv dimensions: q ⊕ δ is `robot.integrate(q, δ)`,
the hinge moved on by H*δ in the axes of its outboard body. External forces stay constant in the
frames in which they are given.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from phipsi.algorithms.articulated_body import forward_dynamics
from phipsi.algorithms.under_actuated import as_mask, exchange, hybrid_dynamics, passive
from phipsi.algorithms.variations import (
    Derivatives,
    aligned,
    derivatives_at,
    hinges_free,
    hinges_held,
    hinges_mixed,
    joint_accelerations,
    tangent,
)
from phipsi.compile import repeat, where
from phipsi.model import Robot
from phipsi.programs import program
from phipsi.sweeps import gather, inward, local, looped, may_loop, shared_paths
from phipsi.typing import (
    Array,
    ConfigurationLike,
    ExternalForces,
    JointMatrix,
    JointVectorLike,
    MaskLike,
)

PAIRS, TRIPLES, MOST = 130, 5, 300_000
"""Operations for each pair of freedoms on one path to the root and for each triple; programs of
more than MOST operations are traced as a loop over the freedoms."""


LONGEST = 300
"""The largest number of freedoms of a robot whose derivatives are traced as a loop."""


def needs_loop(robot: Robot, yields: bool = True) -> bool:
    """Whether derivatives are traced as a loop over the freedoms; `yields` unless all are held."""
    pairs, triples = shared_paths(robot)
    many = PAIRS * pairs + TRIPLES * triples * yields > MOST
    return looped(robot) or (many and may_loop())


def derivatives_by_loop(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    qdd: JointVectorLike,
    active: Array,
    external: ExternalForces | None,
) -> Derivatives:
    """The derivatives of forces where active and of accelerations elsewhere, column by column: each
    round of a loop over the freedoms takes sweeps of O(N).

    Inverse dynamics gives the δT of a variation; hybrid dynamics at rest turns −δT into the changes
    of active forces and passive accelerations.
    """
    n = robot.nv
    if n > LONGEST:
        raise ValueError(
            f"robot {robot.name!r}: derivatives along {n} freedoms are too large to be traced (at "
            f"most {LONGEST}); use what is O(N), such as finite differences along a direction"
        )

    def column(state: Array, unit: Array) -> tuple[Array, Array]:
        dq, dv, given = np.split(unit, 3)
        T = tangent(robot, q, v, qdd, dq, dv, external=external)
        x = exchange(robot, q, np.zeros(n), given - T, given, active)
        return state, where(active, gather(x, "all_tau") + T, gather(x, "all_qdd"))

    _, rows = repeat(3 * n, column, np.zeros(0), np.eye(3 * n))
    return Derivatives(*(part.T for part in np.split(rows, 3)))


class InverseDerivatives(NamedTuple):
    """Derivatives of joint forces T [N·m or N], row by row."""

    dq: JointMatrix
    """(…, nv, nv) [N·m/rad, N/m, …]: ∂T/∂q by displacements in the tangent space."""
    dv: JointMatrix
    """(…, nv, nv) [N·m·s/rad, N·s/m, …]: ∂T/∂v."""
    da: JointMatrix
    """(…, nv, nv) [kg·m², kg·m, kg]: ∂T/∂a = 𝓜."""


@program(joint_space=True)
def inverse_dynamics_derivatives(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    a: JointVectorLike,
    *,
    external: ExternalForces | None = None,
) -> InverseDerivatives:
    """The derivatives of `inverse_dynamics`: δT = Hφ(Mφ*γ + Bφ*δV) + Hφ̃ crf(S)f.

    All columns at once, by composite bodies ([SOA] 3, differentiated; columns as Carpentier and
    Mansard 2018). S = H*e is a unit displacement in the tangent space, or a unit change of a rate;
    δV and γ are what it adds to velocities and accelerations; Bx = crf(V)Mx + crf(x)MV − M ad(V)x.
    Cost O(N · depth).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    a : (…, nv)
        Joint accelerations [rad/s² or m/s²].
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.

    Returns
    -------
    InverseDerivatives
        The matrices `dq`, `dv` and `da`, the mass matrix: (…, nv, nv) each, rows of joint forces.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v, a = np.array([0.3, -0.5]), [1.0, 2.0], [3.0, 4.0]
    >>> dq, dv, da = pp.inverse_dynamics_derivatives(robot, q, v, a)
    >>> step = np.array([1e-6, 0.0])
    >>> ends = [pp.inverse_dynamics(robot, q + s, v, a) for s in (step, -step)]
    >>> np.allclose((ends[0] - ends[1]) / 2e-6, dq[:, 0]), np.allclose(da, pp.mass_matrix(robot, q))
    (True, True)
    """
    if needs_loop(robot, yields=False):
        all_active = np.ones(robot.nv)
        return InverseDerivatives(*derivatives_by_loop(robot, q, v, a, all_active, external))
    x = inward(hinges_held, aligned(robot, q, v=v, external=external))
    return InverseDerivatives(*derivatives_at(x, a))


class ForwardDerivatives(NamedTuple):
    """Derivatives of joint accelerations a [rad/s² or m/s²], row by row."""

    dq: JointMatrix
    """(…, nv, nv) [1/s², …]: ∂a/∂q by displacements in the tangent space."""
    dv: JointMatrix
    """(…, nv, nv) [1/s, …]: ∂a/∂v."""
    dtau: JointMatrix
    """(…, nv, nv) [1/(kg·m²), …]: ∂a/∂tau = 𝓜⁻¹."""


@program(joint_space=True)
def forward_dynamics_derivatives(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    tau: JointVectorLike,
    *,
    external: ExternalForces | None = None,
) -> ForwardDerivatives:
    """The derivatives of `forward_dynamics`: −𝓜⁻¹∂T at the accelerations it gives, and 𝓜⁻¹.

    By articulated bodies: (I − HψK)Hφ = Hψ whitens ∂T while it is computed, and 𝓜⁻¹∂T is the
    product (I − HψK)*D⁻¹ε of matrices that are zero except for freedoms on one path, plus a term of
    ψ*γ ([SOA] Lemma 4.3 and (4.1), differentiated). Cost O(N · depth) and the product of two
    matrices, O(N²) for a free base with limbs.

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    tau : (…, nv)
        Joint forces [N·m or N].
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.

    Returns
    -------
    ForwardDerivatives
        The matrices `dq` (by displacements in the tangent space), `dv` and `dtau`: (…, nv, nv)
        each, rows of joint accelerations.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v, tau, step = [0.3, -0.5], [1.0, 2.0], [3.0, 4.0], np.array([0.0, 1e-6])
    >>> dq, dv, dtau = pp.forward_dynamics_derivatives(robot, q, v, tau)
    >>> ends = [pp.forward_dynamics(robot, robot.integrate(q, s), v, tau) for s in (step, -step)]
    >>> np.allclose((ends[0] - ends[1]) / 2e-6, dq[:, 1], rtol=1e-6)
    True
    """
    if needs_loop(robot):
        qdd = forward_dynamics(robot, q, v, tau, external=external)
        none_active = np.zeros(robot.nv)
        return ForwardDerivatives(*derivatives_by_loop(robot, q, v, qdd, none_active, external))
    x = inward(hinges_free, aligned(robot, q, v=v, tau=tau, external=external))
    return ForwardDerivatives(*derivatives_at(x, joint_accelerations(x)))


class HybridDerivatives(NamedTuple):
    """Derivatives of the unknowns of `hybrid_dynamics`, row by row: of the force of an active
    freedom, of the acceleration of a passive one."""

    dq: JointMatrix
    """(…, nv, nv): by displacements in the tangent space."""
    dv: JointMatrix
    """(…, nv, nv): by joint velocities."""
    dgiven: JointMatrix
    """(…, nv, nv): by the given values, column by column: the acceleration of an active freedom,
    the force of a passive one."""


@program(joint_space=True)
def hybrid_dynamics_derivatives(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    tau: JointVectorLike,
    qdd: JointVectorLike,
    active: MaskLike,
    *,
    external: ExternalForces | None = None,
) -> HybridDerivatives:
    """The derivatives of `hybrid_dynamics`: ∂T_a − S_ap∂T_p and −S_pp∂T_p ([UA] Lemma 5.2).

    The lemma is differentiated; ∂T are the derivatives of inverse dynamics at the accelerations of
    all joints. Row i of each matrix belongs to the unknown of freedom i, its force if it is active
    and else its acceleration; the given value of that freedom is constant. Cost as that of
    `forward_dynamics_derivatives`.

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    tau : (…, nv)
        Joint forces T_p [N·m or N]; read where passive.
    qdd : (…, nv)
        Joint accelerations β̇_a [rad/s² or m/s²]; read where active.
    active : (…, nv), or names of hinges
        Which freedoms are active: truth values or names.
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.

    Returns
    -------
    HybridDerivatives
        The matrices `dq` (by displacements in the tangent space), `dv` and `dgiven`, which is
        [[S_aa, S_ap], [−S_ap*, S_pp]] in the order of the freedoms: (…, nv, nv) each.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v, tau, qdd = [0.3, -0.5], [1.0, 2.0], [0.0, 0.0], [3.0, 0.0]
    >>> x = pp.hybrid_dynamics_derivatives(robot, q, v, tau, qdd, active=[True, False])
    >>> S_aa = pp.active_mass_matrix(robot, q, active=[True, False])[0, 0]
    >>> np.allclose(x.dgiven[0, 0], S_aa)
    True
    """
    mask = as_mask(robot, active)
    every_qdd = hybrid_dynamics(robot, q, v, tau, qdd, active, external=external).qdd
    if needs_loop(robot):
        return HybridDerivatives(*derivatives_by_loop(robot, q, v, every_qdd, mask, external))
    x = local(passive, aligned(robot, q, v=v, active=mask, external=external))
    return HybridDerivatives(*derivatives_at(inward(hinges_mixed, x), every_qdd))


class Linearization(NamedTuple):
    """The linear system ẋ = A x + B δtau for small deviations x = (δ, δv) from a motion."""

    A: Annotated[Array, "states states"]
    """(…, 2 nv, 2 nv)."""
    B: Annotated[Array, "states nv"]
    """(…, 2 nv, nv)."""


@program(joint_space=True)
def linearize(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    tau: JointVectorLike,
    *,
    external: ExternalForces | None = None,
) -> Linearization:
    """The linear system of deviations from a motion: ẋ = A x + B δtau with x = (δ, δv).

        δ̇ = δv − [v, δ],    δv̇ = ∂a/∂q δ + ∂a/∂v δv + 𝓜⁻¹δtau

    δ is the displacement in the tangent space, q ⊕ δ; the bracket [v, ·] of the hinges is zero
    where q moves by addition. The state (q, v) need not be at rest. Cost as that of
    `forward_dynamics_derivatives`.

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    tau : (…, nv)
        Joint forces [N·m or N].
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.

    Returns
    -------
    Linearization
        The matrices A (…, 2 nv, 2 nv) and B (…, 2 nv, nv).

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> hanging = np.zeros(2)
    >>> A, B = pp.linearize(robot, hanging, np.zeros(2), np.zeros(2))
    >>> np.allclose(np.linalg.eigvals(A).real, 0.0)
    True
    """
    n = robot.nv
    dq, dv, dtau = forward_dynamics_derivatives(robot, q, v, tau, external=external)
    A = np.block([[-robot.bracket(v, np.eye(n)).T, np.eye(n)], [dq, dv]])
    return Linearization(A, np.concatenate([np.zeros((n, n)), dtau]))
