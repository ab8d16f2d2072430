"""Energies and spatial momentum."""

from __future__ import annotations

from typing import Any

import numpy as np

from phipsi.algorithms.kinematics import center_of_mass, first_moment, moving, posed
from phipsi.algorithms.mass_matrix import composite
from phipsi.model import ModelError, Robot
from phipsi.operators import A, M, V, beta
from phipsi.operators.lowering.compute import compute
from phipsi.programs import program
from phipsi.spatial import Force, Transform
from phipsi.spatial import rotation as rot
from phipsi.sweeps import Forest, columns, forest, inward, local, total

ABOUT = ("world", "com", "base")


ENERGY = 0.5 * (V.T @ M @ V + beta.T @ A @ beta)


@program(joint_space=True, equation=ENERGY)
def kinetic_energy(robot: Robot, q: Any, v: Any) -> Any:
    """½ V*MV + ½ β*Aβ = ½ β*𝓜β. Returns (…) [J]. Cost O(N)."""
    return compute(ENERGY, robot, q, v)


@program
def potential_energy(robot: Robot, q: Any) -> Any:
    """−g · Σ m c, zero at the world origin; springs are not counted. Returns (…) [J]. Cost O(N)."""
    return -(rot.scalars(robot.gravity) @ first_moment(robot, q))


def share(k: Any) -> dict[str, Any]:
    """h = X M V, about the world origin"""
    return {"h": k.pose @ (k.M @ k.V)}


@program
def momentum(robot: Robot, q: Any, v: Any, *, about: str = "world") -> Any:
    """The spatial momentum Σ X_i M_i V_i of all bodies, [angular; linear] ([UA] (7.2)).

    `about="world"`: the world origin, conserved without external forces; "com": the centre of mass,
    world axes; "base": the frame of the one root body, its axes. Returns (…, 6) [N·m·s, N·s].
    Cost O(N).
    """
    x = local(share, posed(moving(forest(robot, q, v=v))))
    return (_origin(x, q, about).inv @ total(x, "h", Force.zero())).array


@program
def momentum_matrix(robot: Robot, q: Any, *, about: str = "world") -> Any:
    """The matrix of `momentum`, h = A(q) v; column of hinge k: X_k R_k H_k*.

    Returns (…, 6, nv). Cost O(N).
    """
    x = posed(inward(composite, forest(robot, q)))
    to = _origin(x, q, about).inv

    def column(k: Any) -> dict[str, Any]:
        """A = X R H*"""
        return {"A": to @ (k.pose @ (k.R @ k.H.T))}

    return columns(local(column, x), "A")


def _origin(x: Forest, q: Any, about: str) -> Transform:
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
