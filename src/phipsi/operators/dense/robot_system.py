"""The system of a robot: its numbers at a configuration."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model import Robot
from phipsi.operators.algebra.system import System, skew
from phipsi.operators.checks import chosen
from phipsi.spatial import Motion, Transform
from phipsi.spatial import rotation as rot
from phipsi.typing import (
    Array,
    ConfigurationLike,
    ExternalForces,
    JointVectorLike,
    MaskLike,
)


def system(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike | None = None,
    *,
    active: MaskLike | None = None,
    external: ExternalForces | None = None,
) -> System:
    """The system of a robot at one configuration, of which dense matrices are made.

    Bodies are in the frames that users see (`Body.origin`). Accelerations are true: gravity is
    among the loads.

    Parameters
    ----------
    robot
        The robot.
    q : (nq,)
        Configuration.
    v : (nv,), optional
        Joint velocities [rad/s or m/s].
    active : (nv,) or names of hinges, optional
        Which joints are active, for operators of passive arms.
    external : (nb, 6) or {frame: (6,)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames.

    Returns
    -------
    System
        The numbers of the robot, with which `matrix` computes.

    Raises
    ------
    ValueError
        If q is not one configuration of the robot.

    Examples
    --------
    >>> import phipsi as pp
    >>> from phipsi.operators import T, mass
    >>> from phipsi.operators.dense import matrix, system
    >>> s = system(pp.robots.double_pendulum(), [0.3, -0.5])
    >>> matrix(mass.inv @ T, s, T=[1.0, 2.0]).shape
    (2,)
    """
    q = np.asarray(q, float)
    if q.shape != (robot.nq,):
        raise ValueError(f"q has shape {q.shape}, and needs ({robot.nq},)")
    origins, frames = [b.origin for b in robot.bodies], _frames(robot)
    phi: list[Array] = []
    rows: list[Array] = []
    M: list[Array] = []
    fall: list[Array] = []
    poses = {-1: Transform.identity()}
    for i, (body, h, p) in enumerate(zip(robot.bodies, robot.hinges, robot.parents, strict=True)):
        O, turned = body.origin, h.placement @ h.kind.pose(h, _part(q, h.q))
        inboard = turned if p < 0 else origins[p].inv @ turned
        poses[i] = poses[p] @ inboard @ O
        phi.append(_block(inboard @ O))
        M.append(np.array(O.inv.congruence(body.inertia).articulated.matrix, float))
        rows += [(O.T @ column).array for column in h.kind.columns(h, _part(q, h.q))]
        fall.append((poses[i].T @ Motion(rot.zero(), rot.scalars(robot.gravity))).array)

    def hinge_rate(beta: Array) -> Array:
        moving = ((h, _part(q, h.q), _part(beta, h.v)) for h in robot.hinges)
        rates = [h.kind.rate(h, x, rate, rate) for h, x, rate in moving]
        return _array([(O.T @ r).array for O, r in zip(origins, rates, strict=True)], 6)

    places: dict[bytes, System] = {}

    def displaced(dv: Array) -> System:
        key = dv.tobytes()
        if key not in places:
            places[key] = system(robot, robot.integrate(q, dv), active=active)
        return places[key]

    inertias, weight = _array(M, 6, 6), _array(fall, 6)[..., None]
    made = System(
        robot.parents, _array(phi, 6, 6), inertias,
        np.repeat(np.arange(robot.nb), [h.kind.nv for h in robot.hinges]), _array(rows, 6),
        np.diag(np.asarray(robot.joint_data("armature"), float)), _passive(robot, active),
        tuple(b.name for b in robot.bodies), {h.name: h.v for h in robot.hinges}, frames,
        _external(robot, frames, external) + (inertias @ weight)[..., 0], hinge_rate, displaced,
    )  # fmt: skip
    return made if v is None else made.giving(beta=v)


def _frames(robot: Robot) -> dict[str, tuple[int, Array]]:
    found = {WORLD: (-1, np.eye(6))}
    for name in (*(b.name for b in robot.bodies), *robot.frames):
        frame = robot.frame(name)
        i = robot.body_index(frame.body)
        seen = frame.placement if i < 0 else robot.bodies[i].origin.inv @ frame.placement
        found[name] = i, _block(seen)
    return found


def _external(
    robot: Robot, frames: Mapping[str, tuple[int, Array]], external: ExternalForces | None
) -> Array:
    """The external forces on the bodies, (nb, 6)."""
    if not isinstance(external, Mapping):
        forces = np.zeros((robot.nb, 6)) if external is None else np.array(external, float)
        return forces.reshape(robot.nb, 6)
    forces = np.zeros((robot.nb, 6))
    for name, wrench in external.items():
        i, block = frames[robot.frame(name).name]
        if i < 0:
            raise ValueError(f"external force on {name!r}: that frame is fixed to the world")
        forces[i] += block @ np.asarray(wrench)
    return forces


def _passive(robot: Robot, active: MaskLike | None) -> Array | None:
    mask = chosen(robot, active)
    return None if mask is None else ~np.array(mask, bool)


def _part(x: Array, place: slice) -> Array:
    return x[place].astype(object)


def _block(pose: Transform) -> Array:
    """φ = [[R, l~R], [0, R]] of a pose."""
    R, l = np.array(pose.rotation, float), np.array(pose.position, float)
    return np.block([[R, skew(l) @ R], [np.zeros((3, 3)), R]])


def _array(rows: list[Array], *shape: int) -> Array:
    return np.array(rows, float).reshape(-1, *shape)
