"""Grasps: several arms and one object, by the same cut as closed chains ([SOA] 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from phipsi.algorithms.constraints import SHAPES, answered, solved
from phipsi.algorithms.cut import Cut, W, Whitened, check_closures, cut, response, wrenches
from phipsi.algorithms.mass_matrix import mass_matrix
from phipsi.compile import lift
from phipsi.conventions import WORLD
from phipsi.model import Grasp, ModelError, Robot
from phipsi.model.parts import INF
from phipsi.operators import C, J, T
from phipsi.operators.lowering.compute import compute
from phipsi.programs import program
from phipsi.spatial import Force, Pivot, SemiPivot, Transform


class GraspSolution(NamedTuple):
    """What `grasp_dynamics` returns."""

    qdd: Any
    """(…, nv) [rad/s² or m/s²]; the object's acceleration is its part of it."""
    forces: Any
    """(…, grasps, 6) [N·m, N]: of each tip on the object, in the frame of the tip."""
    internal: Any
    """(…, grasps, 6): the part of them that squeezes the object and does not move it."""
    normal: Any
    """(…, grasps) [N]: the pressure of each tip."""
    slipping: Any
    """(…, grasps) bool: is the force outside the friction cone?"""
    separating: Any
    """(…, grasps) bool: would the tip have to pull, and cannot?"""
    residual: Any
    """(…, rows): as in `ClosedChainSolution`."""
    well_posed: Any
    """(…) bool: are the forces unique?"""
    pivot: Any
    """(…): the smallest scaled pivot, of arms by themselves or of all together."""


def _held(result: Any, args: Any, kwargs: Any) -> Any:
    """The flags as truth values; states in which an arm alone is singular are solved together."""
    flags = ("slipping", "separating", "well_posed")
    result = result._replace(**{name: np.asarray(getattr(result, name)) > 0 for name in flags})
    if result.well_posed.all() or kwargs.get("together"):
        return answered(result, args, kwargs)
    whole = grasp_dynamics(*args, **{**kwargs, "together": True})
    both = zip(result, whole, strict=True)
    return GraspSolution(*(_merged(result.well_posed, *pair) for pair in both))


def _merged(these: Any, one: Any, other: Any) -> Any:
    return np.where(these.reshape(these.shape + (1,) * (np.ndim(one) - these.ndim)), one, other)


@program(static=("grasps",), shapes=SHAPES, joint_space=True, verify=_held)
def grasp_dynamics(
    robot: Robot,
    grasps: Any,
    q: Any,
    v: Any,
    tau: Any,
    *,
    external: Any = None,
    stabilisation: Any = None,
    together: bool = False,
    strict: bool = True,
) -> GraspSolution:
    """Arms that hold one object, rigid or with joints of its own ([SOA] 6).

    `grasps` is a list of `pp.Grasp`: tip frame, object frame, kind of contact. Arms that share no
    moving body are solved one by one, λ_a = L_a⁻¹(bias − e*D⁻¹ε − G_a*β̇_o), and with the object,
    (𝓜_o + Σ G_a L_a⁻¹ G_a*) β̇_o = T − C + Σ G_a L_a⁻¹(bias − e*D⁻¹ε): O(n) + O(grasps). Others,
    and states in which an arm alone is singular, are solved all at once, O(rows³); but a kernel or
    a call inside a program only tells of such a state (`well_posed` 0), unless `together=True`.
    `stabilisation` and `strict` as in `closed_chain_dynamics`. A contact is held whatever its force
    is: `separating` and `slipping` say where it would not be.
    """
    check_closures(robot, grasps, Grasp)
    own = _object(robot, grasps)
    x = cut(robot, grasps, q, v)
    if together or not _apart(robot, grasps):
        qdd, lam, left, pivot = solved(robot, x, q, v, tau, external, stabilisation)
        regular, smallest = pivot.regular, pivot.smallest
    else:
        qdd, lam, left, pivots = _by_arms(robot, own, x, q, v, tau, external, stabilisation)
        smallest = np.min(lift([p.smallest for p in pivots]))
        regular = np.min(lift([p.regular for p in pivots]))
    forces = x.forces(-lam)
    inner = wrenches(x.forces(_internal(robot, own, x, q, -lam)))
    loads = [_load(*each) for each in zip(grasps, x.across, forces, strict=True)]
    normal, slipping, separating = (np.array(column) for column in zip(*loads, strict=True))
    wrench = wrenches(forces)
    return GraspSolution(qdd, wrench, inner, normal, slipping, separating, left, regular, smallest)


def _object(robot: Robot, grasps: Sequence[Grasp]) -> np.ndarray:
    """The freedoms of the object."""
    roots = {g.b: robot.root(robot.frame(g.b).body) for g in grasps}
    if WORLD in roots.values():
        fixed = next(b for b, root in roots.items() if root == WORLD)
        raise ModelError(f"robot {robot.name!r}: object frame {fixed!r} is fixed to the world")
    if len(set(roots.values())) > 1:
        raise ModelError(
            f"robot {robot.name!r}: frames {', '.join(map(repr, roots))} are not of one object; "
            "call grasp_dynamics with one object, or closed_chain_dynamics with loops"
        )
    return robot.freedoms(next(iter(roots.values())))


def _apart(robot: Robot, grasps: Sequence[Grasp]) -> bool:
    """Do arms and object share no moving body, and has each arm the freedoms for its rows?"""
    roots = [robot.root(robot.frame(g.a).body) for g in grasps]
    able = all(len(robot.freedoms(root)) >= g.rows for root, g in zip(roots, grasps, strict=True))
    return able and len({*roots, robot.root(robot.frame(grasps[0].b).body)}) == len(roots) + 1


def _by_arms(
    robot: Robot, own: Any, x: Cut, q: Any, v: Any, tau: Any, external: Any, stabilisation: Any
) -> tuple[Any, Any, Any, list[SemiPivot]]:
    """β̇, λ, the residual, and L factored arm by arm; `own` are the freedoms of the object."""
    epsilon = compute(W @ (T - C), robot, q, v, T=tau, external=external)
    e = Whitened(robot, q, x.frames, x.N)
    tips = np.repeat([frame in x.first for frame in x.frames], 6)[:, None]
    arms = Whitened(robot, q, x.frames, np.where(tips, x.N, 0.0))
    wanted, gram = x.wanted(stabilisation) - arms.against(epsilon), arms.gram
    G = _map(robot, own, x, q)
    inertia = mass_matrix(robot, q)[np.ix_(own, own)]
    force = compute(T - C, robot, q, v, T=tau, external=external)[own]
    parts = [(rows, SemiPivot(gram[rows, rows])) for rows in x.parts]
    for rows, L in parts:
        inertia = inertia + L.congruence(G[:, rows].T)
        force = force + G[:, rows] @ L.solve(wanted[rows])
    wanted = wanted - G.T @ Pivot(inertia).solve(force)
    lam = np.concatenate([L.solve(wanted[rows]) for rows, L in parts])
    left = np.concatenate([L.matrix @ lam[rows] - wanted[rows] for rows, L in parts])
    qdd = response(robot, q, epsilon + e.innovations(lam))
    return qdd, lam, left, [L for _, L in parts]


def _map(robot: Robot, own: Any, x: Cut, q: Any) -> Any:
    """G: the grasp map, what each row of the contacts does to the object's freedoms."""
    columns = [compute(J(*x.frames).T, robot, q, x=column)[own] for column in x.N.T]
    return np.stack(columns, axis=1)


def _internal(robot: Robot, own: Any, x: Cut, q: Any, lam: Any) -> Any:
    """λ − G⁺Gλ: of all forces that do to the object what λ does, λ less the least."""
    G = _map(robot, own, x, q)
    return lam - G.T @ SemiPivot(G @ G.T).solve(G @ lam)


def _load(grasp: Grasp, X: Transform, force: Force) -> tuple[Any, Any, Any]:
    """The pressure of a tip; does it slip, does it separate?"""
    n = grasp.normal(X)
    normal, twist = n @ force.linear, n @ force.angular
    aside, press = force.linear - n * normal, np.maximum(normal, 0.0)
    slips = 0.0
    if grasp.friction < INF:
        slips = np.maximum(slips, aside @ aside > (grasp.friction * press) ** 2)
    if grasp.torsion < INF:
        slips = np.maximum(slips, np.abs(twist) > grasp.torsion * press)
    return normal, slips, 0.0 if grasp.kind.pulls else normal < 0.0
