"""The articulated body algorithm: 𝓜⁻¹ = (I − HψK)* D⁻¹ (I − HψK) as three sweeps."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from phipsi.model import Robot
from phipsi.operators import C, T, mass
from phipsi.operators.lowering.compute import compute
from phipsi.operators.lowering.steps import riccati
from phipsi.programs import program
from phipsi.sweeps import columns, diagonal, forest, inward, stack
from phipsi.typing import (
    Array,
    ConfigurationLike,
    ExternalForces,
    JointMatrix,
    JointVector,
    JointVectorLike,
    SpatialMatrices,
)

ACCELERATION = mass.inv @ (T - C)


@program(joint_space=True, equation=ACCELERATION)
def forward_dynamics(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    tau: JointVectorLike,
    *,
    external: ExternalForces | None = None,
) -> JointVector:
    """Joint accelerations from joint forces: β̇ = 𝓜⁻¹(T − C) ([SOA] Alg FD, [BI] Alg 2.3).

    The equation is computed in its cheapest form, (I−HψK)*D⁻¹(T − Hψ(KT + u)) with
    u = Mφ*a + b: the bias accelerations, gravity included, are part of the loads u. Armature and
    external forces are included; springs, dampers and friction are not. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities β [rad/s or m/s].
    tau : (…, nv)
        Total joint forces T [N·m or N]; add `passive_forces` to them if wanted.
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.

    Returns
    -------
    (…, nv)
        Joint accelerations β̇ [rad/s² or m/s²].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v, tau = [0.3, -0.5], [1.0, 2.0], [0.1, 0.2]
    >>> a = pp.forward_dynamics(robot, q, v, tau)
    >>> np.allclose(pp.mass_matrix(robot, q) @ a + pp.bias_force(robot, q, v), tau)
    True
    """
    return compute(ACCELERATION, robot, q, v, T=tau, external=external)


class ArticulatedInertias(NamedTuple):
    """Articulated inertias P, pivots D and gains G of the Riccati recursion."""

    P: SpatialMatrices
    """(…, nb, 6, 6): the articulated inertia of each body [kg, kg·m, kg·m²], in its own frame."""
    D: JointMatrix
    """(…, nv, nv): HPH* + A, the inertia that each hinge feels, block diagonal [kg·m² or kg]."""
    G: Annotated[Array, "6 nv"]
    """(…, 6, nv): PH*D⁻¹, the columns of a hinge in the frame of the body that it moves."""


@program
def articulated_inertias(robot: Robot, q: ConfigurationLike) -> ArticulatedInertias:
    """P, D and G of the Riccati recursion, P = M + E_ψ P E_φ* ([BI] Alg 2.2, [SOA] (4.1)).

    P of a body is the inertia that its inboard hinge feels while all outboard hinges are free to
    move. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.

    Returns
    -------
    ArticulatedInertias
        `P` (…, nb, 6, 6) [kg, kg·m, kg·m²], `D` (…, nv, nv) and `G` (…, 6, nv).

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> D = pp.articulated_inertias(robot, [0.3, -0.5]).D
    >>> np.allclose(np.log(np.diag(D)).sum(), pp.mass_matrix_logdet(robot, [0.3, -0.5]))
    True
    """
    x = inward(riccati, forest(robot, q))
    return ArticulatedInertias(stack(x, "P", (6, 6)), diagonal(x, "D"), columns(x, "G"))
