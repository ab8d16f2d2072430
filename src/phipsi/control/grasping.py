"""Object-level control: several arms move one object, squeeze it, and share its load ([SOA] 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple, TypedDict

import numpy as np

from phipsi.algorithms import bias_force, inverse_dynamics, mass_matrix
from phipsi.algorithms.cut import Cut, check_closures, cut
from phipsi.control.gains import Gain, controller
from phipsi.control.joint_space import SPRING
from phipsi.control.tasks import arrays, clearance, damped, known_forces, length
from phipsi.conventions import WORLD
from phipsi.model import Grasp, ModelError, Robot
from phipsi.operators import J
from phipsi.operators.lowering.compute import compute
from phipsi.spatial import Pivot
from phipsi.typing import (
    Array,
    ArrayLike,
    ConfigurationLike,
    JointVector,
    JointVectorLike,
    Scalar,
    ScalarLike,
)

GAINS = {
    **SPRING,
    "squeeze": Gain("any", zero=True),
    "sharing": Gain("any"),
    "null_damping": Gain(zero=True),
    "singular": Gain(),
}
NORMAL = 5
"""The row of [moment; force] along the z of a tip."""


class ObjectControl(TypedDict):
    """Result of `object_control`."""

    tau: JointVector
    """(…, nv) [N·m or N], zero for the object."""
    pressure: Annotated[Array, "grasps"]
    """(…, grasps) [N]: the force of each tip on the object along its normal."""
    object_error: Scalar
    """The length of the object's error e."""
    clearance: Scalar
    """Distance of the arms from a singularity."""


@controller(gains=GAINS, static=("grasps",))
def object_control(
    robot: Robot,
    q: ConfigurationLike,
    v: JointVectorLike,
    target: ConfigurationLike,
    rate: JointVectorLike | None = None,
    acceleration: JointVectorLike | None = None,
    *,
    grasps: Sequence[Grasp],
    squeeze: ArrayLike = 0.0,
    sharing: ArrayLike | None = None,
    stiffness: ArrayLike = 25.0,
    damping: ArrayLike = 10.0,
    null_damping: ScalarLike = 2.0,
    singular: ScalarLike = 0.02,
    stabilisation: ScalarLike | None = None,
    passive: bool = True,
) -> ObjectControl:
    """Joint forces of arms by which an object that they hold follows its own path ([SOA] 6).

    With the rows A of the contacts, A_o for the object and A_a for the arms:

        β̇_o = β̇_d + B(β_d − β) + K e                  acceleration of the object
        A_o*λ = 𝓜_oβ̇_o + C_o,   λ = W A_o(A_o*WA_o)⁻¹(…) + (1 − A_oA_o⁺) λ_s     contact forces
        A_aβ̇_a = bias − A_oβ̇_o                        acceleration of the arms
        T_a = (𝓜β̇ + C)_a − A_a*λ

    Joints within the object (of shears) are freedoms of the object like others. A base under the
    arms may float: its equation of motion is added to the rows. Cost O(N) for each row, and
    O(rows³).

    Parameters
    ----------
    robot
        The robot, the object included.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities β [rad/s or m/s].
    target : (…, nq)
        Desired configuration; only the object's coordinates are read.
    rate : (…, nv), optional
        Desired velocities β_d [rad/s or m/s], read for the object; zero by default.
    acceleration : (…, nv), optional
        Desired accelerations β̇_d [rad/s² or m/s²], read for the object; zero by default.
    grasps
        List of `pp.Grasp`, as of `grasp_dynamics`, all on one object.
    squeeze : number or (grasps,)
        Pressure ≥ 0 of the tips along their z [N], as far as it does not move the object: λ_s.
    sharing : number or (grasps,), optional
        Weights W by which the grasps share the load, positive; equal by default.
    stiffness : number or (nv,)
        K of the object's freedoms, positive [1/s²].
    damping : number or (nv,)
        B of the object's freedoms, ≥ 0 [1/s].
    null_damping : ()
        Rate ≥ 0 at which motion of the arms that the object leaves free is slowed [1/s].
    singular : ()
        Clearance of the arms below which their least squares are damped, positive.
    stabilisation : (), optional
        Baumgarte's rate [1/s] of the simulation, if it has one.
    passive
        Whether springs, dampers and friction of the robot are cancelled.

    Returns
    -------
    ObjectControl
        Dictionary of `tau` (…, nv) [N·m or N], zero for the object, `pressure` (…, grasps) [N],
        `object_error` (…), the length of e, and `clearance` (…) of the arms.

    Raises
    ------
    ModelError
        If the grasps are not on one object that moves.

    Examples
    --------
    Two fingers push a part of 2 kg by 0.1 m, that is with 25 · 0.1 m/s², and squeeze it with 5 N:

    >>> import numpy as np, phipsi as pp
    >>> from phipsi.control import object_control
    >>> builder = pp.Builder("press", gravity=(0.0, 0.0, 0.0))
    >>> for name in ("left", "part", "right"):
    ...     _ = builder.body(name, mass=2.0)
    ...     _ = builder.hinge(name, "prismatic", "world", name, axis=(1, 0, 0))
    >>> for name, pitch in (("left", np.pi / 2), ("right", -np.pi / 2)):  # z towards the part
    ...     _ = builder.frame(f"{name}_tip", name, rpy=(0, pitch, 0))
    >>> robot, zero = builder.build(), np.zeros(3)
    >>> grasps = [pp.Grasp(f"{name}_tip", "part", "point") for name in ("left", "right")]
    >>> out = object_control(robot, zero, zero, [0.0, 0.1, 0.0], grasps=grasps, squeeze=5.0)
    >>> out["pressure"]
    array([7.5, 2.5])
    """
    check_closures(robot, grasps, Grasp)
    v, stiffness, damping = arrays(v, stiffness, damping)
    own = _freedoms(robot, grasps)
    rest = np.setdiff1d(np.arange(robot.nv), own)
    x = cut(robot, grasps, q, v)
    A = np.stack([compute(J(*x.frames).T, robot, q, x=column) for column in x.N.T])
    known = known_forces(robot, q, v, None, passive)

    error = robot.difference(q, target)
    wanted = stiffness * error - damping * (v if rate is None else v - rate)
    wanted = wanted if acceleration is None else wanted + acceleration
    wanted = np.where(np.isin(np.arange(robot.nv), own), wanted, 0.0)
    load = (inverse_dynamics(robot, q, v, wanted) - known)[own]
    lam = _forces(grasps, x, A[:, own], load, squeeze, sharing)

    rows, right = A[:, rest], x.wanted(stabilisation) - A[:, own] @ wanted[own]
    adrift = rest[~robot.driven[rest]]
    if len(adrift):
        M, felt = _yielding(robot, q, v, adrift, A.T @ lam + known)
        rows, right = np.concatenate([rows, M[:, rest]]), np.concatenate([right, felt])
    slow = -np.asanyarray(null_damping) * v[rest]
    gram, rho = clearance(rows, singular)
    qdd = wanted.copy()
    qdd[rest] = slow + rows.T @ damped(gram, rho, singular, right - rows @ slow)
    tau = inverse_dynamics(robot, q, v, qdd) - A.T @ lam - known
    driven = np.isin(np.arange(robot.nv), rest) & robot.driven
    return {
        "tau": np.where(driven, tau, 0.0),
        "pressure": _pressures(grasps, x, lam),
        "object_error": length(error[own]),
        "clearance": rho,
    }


def _freedoms(robot: Robot, grasps: Sequence[Grasp]) -> Array:
    """Indices of the freedoms of the object that is held."""
    roots = {robot.root(robot.frame(g.b).body) for g in grasps}
    if len(roots) != 1 or WORLD in roots:
        names = ", ".join(repr(g.b) for g in grasps)
        raise ModelError(
            f"object_control: frames {names} of robot {robot.name!r} are not of one object that "
            "moves"
        )
    return robot.freedoms(roots.pop())


class Rows(NamedTuple):
    """Linear equations for joint accelerations, matrix @ β̇ = right."""

    matrix: Array
    right: Array


def _yielding(
    robot: Robot, q: ConfigurationLike, v: JointVectorLike, which: Array, forces: JointVector
) -> Rows:
    """𝓜β̇ = T − C in the rows that no motor drives, each divided by its diagonal entry."""
    M = mass_matrix(robot, q)[which]
    scale = 1.0 / np.diag(M[:, which])
    return Rows(scale[:, None] * M, scale * (forces - bias_force(robot, q, v))[which])


def _forces(
    grasps: Sequence[Grasp],
    x: Cut,
    A: Array,
    load: Array,
    squeeze: ArrayLike,
    sharing: ArrayLike | None,
) -> Array:
    """λ: forces that carry the load, shared by the weights, and those that squeeze."""
    weights = _by_row(x, _by_grasp("sharing", grasps, 1.0 if sharing is None else sharing))
    pressed = np.zeros(len(A), object)
    for g, rows, force in zip(grasps, x.parts, _by_grasp("squeeze", grasps, squeeze), strict=True):
        if NORMAL in g.kind.transmits:
            at = rows.start + g.kind.transmits.index(NORMAL)
            pressed[at] = force if g.kind.rolls else -force
    carried = weights * (A @ Pivot(A.T @ (weights[:, None] * A)).solve(load))
    return carried + pressed - A @ Pivot(A.T @ A).solve(A.T @ pressed)


def _by_grasp(name: str, grasps: Sequence[Grasp], given: ArrayLike) -> Array:
    """One number for each grasp; `name` is the parameter in the error."""
    (values,) = arrays(given)
    if values.ndim and len(values) not in (1, len(grasps)):
        raise ValueError(
            f"object_control: {name} has {len(values)} numbers, needs one or {len(grasps)}"
        )
    return values * np.ones(len(grasps))


def _by_row(x: Cut, values: Array) -> Array:
    """One number for each row of the contacts, from one for each grasp."""
    pairs = zip(x.parts, values, strict=True)
    return np.array([value for rows, value in pairs for _ in range(rows.stop - rows.start)], object)


def _pressures(grasps: Sequence[Grasp], x: Cut, lam: Array) -> Array:
    """The force of each tip on the object along its normal."""
    forces = zip(grasps, x.across, x.forces(-lam), strict=True)
    return np.array([g.normal(X) @ f.linear for g, X, f in forces], object)
