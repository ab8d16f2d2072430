"""Energies and spatial momentum."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import numpy as np

from phipsi.algorithms.kinematics import center_of_mass, first_moment, moving, posed
from phipsi.algorithms.mass_matrix import composite
from phipsi.algorithms.newton_euler import stretched
from phipsi.model import ModelError, Robot
from phipsi.operators import A, M, V, beta
from phipsi.operators.lowering.compute import compute
from phipsi.programs import program
from phipsi.spatial import Force, Transform
from phipsi.spatial import rotation as rot
from phipsi.sweeps import Forest, Record, columns, forest, inward, local, total
from phipsi.typing import Array, ConfigurationLike, JointVectorLike, Scalar, SpatialVector

About = Literal["world", "com", "base"]
"""Where momentum is taken: about the world origin; about the centre of mass, in the world's axes;
in the frame of the root body."""
ABOUT: tuple[About, ...] = get_args(About)

ENERGY = 0.5 * (V.T @ M @ V + beta.T @ A @ beta)


@program(joint_space=True, equation=ENERGY)
def kinetic_energy(robot: Robot, q: ConfigurationLike, v: JointVectorLike) -> Scalar:
    """The kinetic energy ½ V*MV + ½ β*Aβ = ½ β*𝓜β of bodies and armature.

    Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities β [rad/s or m/s].

    Returns
    -------
    (…)
        Energy [J].

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> q, v = [0.3, -0.5], [1.0, 2.0]
    >>> momenta = pp.mass_matrix_product(robot, q, v)
    >>> np.allclose(pp.kinetic_energy(robot, q, v), 0.5 * momenta @ v)
    True
    """
    return compute(ENERGY, robot, q, v)


@program
def potential_energy(robot: Robot, q: ConfigurationLike) -> Scalar:
    """The potential energy of gravity, −g · Σ m c, which is zero at the world origin.

    The energy of springs is not included: see `passive_energy`. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.

    Returns
    -------
    (…)
        Energy [J].

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.double_pendulum()  # 2 kg, the centre of mass 0.3 m below the origin
    >>> round(float(pp.potential_energy(robot, [0.0, 0.0])), 6)
    -5.886
    """
    return -(rot.scalars(robot.gravity) @ first_moment(robot, q))


@program
def passive_energy(robot: Robot, q: ConfigurationLike) -> Scalar:
    """The energy ½ δ*Kδ of the springs of hinges, whose forces are in `passive_forces`.

    δ is the displacement from rest in velocity coordinates, less the dead band of the backlash. At
    half a turn from rest the energy is continuous, except that of a free hinge with unequal
    stiffness of translation. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.

    Returns
    -------
    (…)
        Energy [J].

    Examples
    --------
    >>> import phipsi as pp
    >>> swing = pp.Builder("swing").body("bob", mass=1.0, com=(0, 0, -1))
    >>> swing = swing.hinge("pivot", "revolute", "world", "bob", axis=(0, 1, 0), stiffness=8.0)
    >>> float(pp.passive_energy(swing.build(), [0.5]))
    1.0
    """
    _, travel = stretched(robot, q)
    return 0.5 * np.sum(robot.joint_data("stiffness") * travel * travel)


def world_momentum(k: Record) -> dict[str, Any]:
    """h = X M V, about the world origin"""
    return {"h": k.pose @ (k.M @ k.V)}


@program
def momentum(
    robot: Robot, q: ConfigurationLike, v: JointVectorLike, *, about: About = "world"
) -> SpatialVector:
    """The spatial momentum Σ X_i M_i V_i of all bodies ([UA] (7.2)).

    About the world origin it is conserved in the absence of external forces. Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    about
        The frame of the result: "world" (the world's axes and origin), "com" (the world's axes, the
        centre of mass) or "base" (the frame of the root body, of which there must be one).

    Returns
    -------
    (…, 6)
        [angular; linear] momentum [N·m·s, N·s].

    Raises
    ------
    ModelError
        If `about="base"` and the robot has several root bodies.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> h = pp.momentum(robot, [0.3, -0.5], [1.0, 2.0])
    >>> np.allclose(pp.momentum_matrix(robot, [0.3, -0.5]) @ [1.0, 2.0], h)
    True
    """
    x = local(world_momentum, posed(moving(forest(robot, q, v=v))))
    return (_origin(x, q, about).inv @ total(x, "h", Force.zero())).array


@program
def momentum_matrix(
    robot: Robot, q: ConfigurationLike, *, about: About = "world"
) -> Annotated[Array, "6 nv"]:
    """The matrix A(q) of `momentum`, h = A(q) v; the column of hinge k is X_k R_k H_k*.

    Cost O(N).

    Parameters
    ----------
    robot
        The robot.
    q : (…, nq)
        Configuration.
    about
        The frame of the momentum: "world" (the world's axes and origin), "com" (the world's axes,
        the centre of mass) or "base" (the frame of the root body, of which there must be one).

    Returns
    -------
    (…, 6, nv)
        A(q), rows [angular; linear].

    Raises
    ------
    ModelError
        If `about="base"` and the robot has several root bodies.

    Examples
    --------
    >>> import phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> pp.momentum_matrix(robot, [0.0, 0.0])[3] + 0.0  # momentum along x by each joint
    array([-0.6 , -0.15])
    """
    x = posed(inward(composite, forest(robot, q)))
    to = _origin(x, q, about).inv

    def column(k: Record) -> dict[str, Any]:
        """A = X R H*"""
        return {"A": to @ (k.pose @ (k.R @ k.H.T))}

    return columns(local(column, x), "A")


def _origin(x: Forest, q: ConfigurationLike, about: About) -> Transform:
    """The pose in the world of the frame that momentum is expressed in."""
    match about:
        case "world":
            return Transform.identity()
        case "com":
            return Transform.of(position=np.asarray(center_of_mass(x.robot, q)))
        case "base":
            if len(x.roots) != 1:
                raise ModelError(
                    f"robot {x.robot.name!r} has {len(x.roots)} root bodies; about='base' needs one"
                )
            return x.roots[0].pose
    raise ValueError(f"about {about!r} is not one of {', '.join(ABOUT)}")
