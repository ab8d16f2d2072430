"""Object-level control: several arms move one object, squeeze it, and share its load ([SOA] 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phipsi.algorithms import bias_force, inverse_dynamics, mass_matrix
from phipsi.algorithms.cut import Cut, check_closures, cut
from phipsi.control.gains import Gain, controller
from phipsi.control.joint_space import COURSE, SPRING
from phipsi.control.tasks import clearance, damped, known_forces
from phipsi.conventions import WORLD
from phipsi.model import Grasp, ModelError, Robot
from phipsi.operators import J
from phipsi.operators.lowering.compute import compute
from phipsi.spatial import Pivot

GAINS = {
    **SPRING,
    "squeeze": Gain("any", zero=True),
    "sharing": Gain("any"),
    "null_damping": Gain(zero=True),
    "singular": Gain(),
}
NORMAL = 5
"""The row of [moment; force] along the z of a tip."""


@controller(gains=GAINS, shapes={**COURSE, "stabilisation": ()}, static=("grasps",))
def object_control(
    robot: Robot,
    q: Any,
    v: Any,
    target: Any,
    rate: Any = None,
    acceleration: Any = None,
    *,
    grasps: Any,
    squeeze: Any = 0.0,
    sharing: Any = None,
    stiffness: Any = 25.0,
    damping: Any = 10.0,
    null_damping: Any = 2.0,
    singular: Any = 0.02,
    stabilisation: Any = None,
    passive: bool = True,
) -> dict[str, Any]:
    """Joint forces of arms by which an object that they hold follows its own path ([SOA] 6).

    With the rows A of the contacts, A_o for the object and A_a for the arms:

        β̇_o = β̇_d + B(β_d − β) + K e                  what the object shall do
        A_o*λ = 𝓜_oβ̇_o + C_o,   λ = W A_o(A_o*WA_o)⁻¹(…) + (1 − A_oA_o⁺) λ_s     contact forces
        A_aβ̇_a = bias − A_oβ̇_o                        what the arms must do then
        T_a = (𝓜β̇ + C)_a − A_a*λ

    `target` (nq,), `rate` and `acceleration` (nv,) are read where they are the object's; its joints
    (of shears) are freedoms like others. `squeeze` [N] is the pressure of the tips along their z,
    a number or one per grasp, as far as it does not move the object: λ_s. `sharing` W are weights,
    one per grasp (default equal). A base under the arms may float: its own equation is one
    more row. `stiffness` [1/s²] and `damping` [1/s] are of the object's freedoms; `stabilisation`
    is that of the simulation, if any. Grasps as of `grasp_dynamics`.

    Returns tau (nv,) [N·m or N], zero for the object; `pressure` (grasps,) [N], object_error
    (the length of e), clearance of the arms. Cost O(N) for each row, and O(rows³).
    """
    check_closures(robot, grasps, Grasp)
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
    slow = -null_damping * v[rest]
    gram, rho = clearance(rows, singular)
    qdd = wanted.copy()
    qdd[rest] = slow + rows.T @ damped(gram, rho, singular, right - rows @ slow)
    tau = inverse_dynamics(robot, q, v, qdd) - A.T @ lam - known
    driven = np.isin(np.arange(robot.nv), rest) & robot.driven
    return {
        "tau": np.where(driven, tau, 0.0),
        "pressure": _pressures(grasps, x, lam),
        "object_error": np.linalg.norm(error[own]),
        "clearance": rho,
    }


def _freedoms(robot: Robot, grasps: Sequence[Grasp]) -> np.ndarray:
    """Those of the one object that is held."""
    roots = {robot.root(robot.frame(g.b).body) for g in grasps}
    if len(roots) != 1 or WORLD in roots:
        names = ", ".join(repr(g.b) for g in grasps)
        raise ModelError(
            f"object_control: frames {names} of robot {robot.name!r} are not of one object that "
            "moves"
        )
    return robot.freedoms(roots.pop())


def _yielding(robot: Robot, q: Any, v: Any, which: np.ndarray, forces: Any) -> tuple[Any, Any]:
    """𝓜β̇ = T − C in the rows that nobody drives, each divided by its diagonal entry."""
    M = mass_matrix(robot, q)[which]
    scale = 1.0 / np.diag(M[:, which])
    return scale[:, None] * M, scale * (forces - bias_force(robot, q, v))[which]


def _forces(grasps: Sequence[Grasp], x: Cut, A: Any, load: Any, squeeze: Any, sharing: Any) -> Any:
    """λ: what carries the load, shared by weights, and the squeeze."""
    weights = _spread(x, _each("sharing", grasps, 1.0 if sharing is None else sharing))
    pressed = np.zeros(len(A), object)
    for g, rows, force in zip(grasps, x.parts, _each("squeeze", grasps, squeeze), strict=True):
        if NORMAL in g.kind.transmits:
            at = rows.start + g.kind.transmits.index(NORMAL)
            pressed[at] = force if g.kind.rolls else -force
    carried = weights * (A @ Pivot(A.T @ (weights[:, None] * A)).solve(load))
    return carried + pressed - A @ Pivot(A.T @ A).solve(A.T @ pressed)


def _each(name: str, grasps: Sequence[Grasp], given: Any) -> Any:
    """A number per grasp."""
    if np.ndim(given) and len(given) not in (1, len(grasps)):
        raise ValueError(
            f"object_control: {name} has {len(given)} numbers, needs one or {len(grasps)}"
        )
    return given * np.ones(len(grasps))


def _spread(x: Cut, values: Any) -> Any:
    """A number per row from one per grasp."""
    pairs = zip(x.parts, values, strict=True)
    return np.array([value for rows, value in pairs for _ in range(rows.stop - rows.start)], object)


def _pressures(grasps: Sequence[Grasp], x: Cut, lam: Any) -> Any:
    """The force of each tip on the object along its normal."""
    forces = zip(grasps, x.across, x.forces(-lam), strict=True)
    return np.array([g.normal(X) @ f.linear for g, X, f in forces], object)
