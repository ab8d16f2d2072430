"""The mass matrix 𝓜 = HφMφ*H* + A, its inverse, its square root and products with them."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from phipsi.model import Robot
from phipsi.operators import l, m, mass
from phipsi.operators.lowering.compute import compute
from phipsi.operators.lowering.steps import riccati
from phipsi.programs import program
from phipsi.spatial import ForceBasis, Motion
from phipsi.sweeps import (
    Children,
    Forest,
    Record,
    blocks_to_root,
    forest,
    inward,
    local,
    outward,
    reciprocal,
    symmetric,
)
from phipsi.typing import (
    ConfigurationLike,
    JointMatrix,
    JointVector,
    JointVectorLike,
    Real,
    Scalar,
)


def composite(k: Record, children: Children) -> dict[str, Any]:
    """R = M + Σ φRφ*   composite bodies, [UA] 5 with every hinge active"""
    return {"R": children.sum(lambda c: c.phi.congruence(c.R), k.M)}


@program(joint_space=True)
def mass_matrix(robot: Robot, q: ConfigurationLike) -> JointMatrix:
    """The joint-space mass matrix 𝓜 = HφMφ*H* + A by composite bodies ([SOA] (3.6), [UA] (5.4)).

    Cost O(N · depth).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.

    Returns
    -------
    (…, nv, nv)
        𝓜, symmetric [kg·m², kg·m or kg].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v = [0.3, -0.5], np.array([1.0, 2.0])
    >>> np.allclose(0.5 * v @ pp.mass_matrix(robot, q) @ v, pp.kinetic_energy(robot, q, v))
    True
    """

    def unit_force(k: Record) -> ForceBasis:
        """RH*: the force of a unit acceleration of the hinge with the outboard bodies locked"""
        return k.R @ k.H.T

    x = inward(composite, forest(robot, q))
    return symmetric(x, blocks_to_root(unit_force, x)) + np.diag(robot.joint_data("armature"))


@program(joint_space=True, equation=mass)
def mass_matrix_product(robot: Robot, q: ConfigurationLike, x: JointVectorLike) -> JointVector:
    """The product 𝓜x = Hφ M φ*H* x + Ax without forming 𝓜 ([SOA] (3.6)).

    Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    x : (…, nv)
        The vector that is multiplied.

    Returns
    -------
    (…, nv)
        𝓜x: joint forces [N·m or N] if x are joint accelerations, momenta if x are velocities.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, x = [0.3, -0.5], [1.0, 2.0]
    >>> np.allclose(pp.mass_matrix_product(robot, q, x), pp.mass_matrix(robot, q) @ x)
    True
    """
    return compute(mass, robot, q, x=x)


@program(joint_space=True, equation=mass.inv)
def mass_matrix_solve(robot: Robot, q: ConfigurationLike, x: JointVectorLike) -> JointVector:
    """The product 𝓜⁻¹x = (I − HψK)* D⁻¹ (I − HψK) x without forming 𝓜 ([SOA] Lemma 4.3).

    Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    x : (…, nv)
        The vector that is multiplied.

    Returns
    -------
    (…, nv)
        𝓜⁻¹x: joint accelerations [rad/s² or m/s²] if x are joint forces.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> y = pp.mass_matrix_solve(robot, [0.3, -0.5], [1.0, 2.0])
    >>> np.allclose(pp.mass_matrix_product(robot, [0.3, -0.5], y), [1.0, 2.0])
    True
    """
    return compute(mass.inv, robot, q, x=x)


def whiten(k: Record, children: Children) -> dict[str, Any]:
    """κ = (I − HψK)(x + Hφf):  z = Σ φz⁺ − f,  κ = x − Hz,  z⁺ = z + Gκ   [SOA] 4, (5.3)"""
    z = children.sum(lambda c: c.phi @ c.z_plus, -k.f_ext)
    kappa = k.x - k.H @ z
    return {"z": z, "kappa": kappa, "z_plus": z + k.G @ kappa}


def whiten_adjoint(k: Record, parent: Record) -> dict[str, Any]:
    """y = (I − HψK)*x:  V⁺ = φ*V_p,  y = x − G*V⁺,  V = V⁺ + H*y   [DL] Table 2"""
    V_plus = k.phi.T @ parent.V
    y = k.x - k.G.T @ V_plus
    return {"y": y, "V": V_plus + k.H.T @ y}


def scale(k: Record) -> dict[str, Any]:
    """x = D⁻¹κ"""
    return {"x": k.D.solve(k.kappa)}


def _solve(bodies: Forest) -> Forest:
    """y = (I − HψK)* D⁻¹ (I − HψK) x after the Riccati sweep."""
    bodies = inward(whiten, bodies)
    bodies = local(scale, bodies)
    return outward(whiten_adjoint, bodies, V=Motion.zero())


def common_ancestor_block(a: Record, b: Record) -> Real:
    """−z(i)*V(j): the power of the force that hinge i sends to a body on the motion j gives it"""
    return -b.V.dot(a.z)


@program(joint_space=True)
def mass_matrix_inverse(robot: Robot, q: ConfigurationLike) -> JointMatrix:
    """The inverse 𝓜⁻¹ = (I − HψK)* D⁻¹ (I − HψK) of the mass matrix ([SOA] Lemma 4.3).

    Each column is the response to a unit force at one hinge, which is whitened only along the path
    from that hinge to the root. The entry of two hinges i and j on different branches follows at
    the last body c that both paths share: (𝓜⁻¹)_ij = K_i* ψ(c,i)* Υ_c ψ(c,j) K_j ([BI] (34)).
    Cost O(N²).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.

    Returns
    -------
    (…, nv, nv)
        𝓜⁻¹, symmetric.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> inverse = pp.mass_matrix_inverse(robot, [0.3, -0.5])
    >>> np.allclose(inverse @ pp.mass_matrix(robot, [0.3, -0.5]), np.eye(2))
    True
    """
    return reciprocal(_solve, common_ancestor_block, inward(riccati, forest(robot, q)))


Factor = Literal["m", "m*", "l", "l*"]
"""The square root m of the mass matrix, its inverse l = m⁻¹, and their transposes."""
FACTORS = dict(zip(get_args(Factor), (m, m.T, l, l.T), strict=True))
"""The operator of each factor."""


@program(joint_space=True, equation=m)
def mass_matrix_sqrt_product(
    robot: Robot, q: ConfigurationLike, x: JointVectorLike, *, factor: Factor = "m"
) -> JointVector:
    """Products with the root of 𝓜 = m m*, m = (I + HφK)D½, ℓ = m⁻¹, D = D½D½* ([DL] (5.1)-(5.4)).

    Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    x : (…, nv)
        The vector that is multiplied.
    factor
        What multiplies x: "m", its transpose "m*", its inverse "l" or the transpose "l*" of that.

    Returns
    -------
    (…, nv)
        m x, m* x, ℓ x or ℓ* x.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, x = [0.3, -0.5], [1.0, 2.0]
    >>> y = pp.mass_matrix_sqrt_product(robot, q, x, factor="m*")
    >>> y = pp.mass_matrix_sqrt_product(robot, q, y, factor="m")
    >>> np.allclose(y, pp.mass_matrix_product(robot, q, x))
    True
    """
    if factor not in FACTORS:
        raise ValueError(f"factor {factor!r} is not one of {', '.join(FACTORS)}")
    return compute(FACTORS[factor], robot, q, x=x)


@program(joint_space=True, equation=mass.logdet)
def mass_matrix_logdet(robot: Robot, q: ConfigurationLike) -> Scalar:
    """The logarithm of the determinant, log det 𝓜 = Σ log det D ([SOA] Lemma 4.1).

    Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.

    Returns
    -------
    (…)
        log det 𝓜, with 𝓜 in SI units.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> det = np.linalg.det(pp.mass_matrix(robot, [0.3, -0.5]))
    >>> np.allclose(pp.mass_matrix_logdet(robot, [0.3, -0.5]), np.log(det))
    True
    """
    return compute(mass.logdet, robot, q)
