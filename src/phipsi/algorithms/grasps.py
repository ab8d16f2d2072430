"""Grasps: several arms and one object, by the same cut joints as closed chains ([SOA] 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from phipsi.algorithms.constraints import require_unique, solved
from phipsi.algorithms.cut import Cut, Rows, W, Whitened, check_closures, cut, response, wrenches
from phipsi.algorithms.mass_matrix import mass_matrix
from phipsi.compile import lift
from phipsi.conventions import WORLD
from phipsi.model import Grasp, ModelError, Robot
from phipsi.model.parts import INF
from phipsi.operators import C, J, T
from phipsi.operators.lowering.compute import compute
from phipsi.programs import program
from phipsi.spatial import Force, Pivot, PseudoInverse, SemiPivot, Transform
from phipsi.typing import (
    Array,
    ConfigurationLike,
    ExternalForces,
    JointVector,
    JointVectorLike,
    Real,
    Scalar,
    ScalarLike,
)

SINGULAR = 1e-6
"""Arms with a reciprocal condition number below this are solved all at once: one by one they would
lose more than six digits."""

Freedoms = NDArray[np.intp]
"""The numbers of freedoms of the object, as indices of joint vectors."""


class GraspSolution(NamedTuple):
    """The result of `grasp_dynamics`. Truth values are 1 or 0 inside programs and from kernels."""

    qdd: JointVector
    """(…, nv) [rad/s² or m/s²]: joint accelerations, those of the object among them."""
    forces: Annotated[Array, "grasps 6"]
    """(…, grasps, 6) [N·m, N]: the force of each tip on the object, in the frame of the tip."""
    internal: Annotated[Array, "grasps 6"]
    """(…, grasps, 6) [N·m, N]: the part of `forces` that squeezes the object and does not move
    it, in the frames of the tips."""
    normal: Annotated[Array, "grasps"]
    """(…, grasps) [N]: the normal force of each tip, positive where it presses."""
    slipping: Annotated[Array, "grasps"]
    """(…, grasps) bool: whether the force is outside the friction cone."""
    separating: Annotated[Array, "grasps"]
    """(…, grasps) bool: whether the tip would have to pull, but cannot."""
    residual: Rows
    """(…, m) [rad/s², m/s²]: as in `ClosedChainSolution`."""
    well_posed: Scalar
    """(…) bool: whether the forces are unique."""
    rcond: Scalar
    """(…): the reciprocal condition number of L with scaled rows, estimated, of the arms one by one
    or of all closures together; at most 1, 0 where rows depend on each other."""


def _resolve_singular_arms(
    result: GraspSolution, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> GraspSolution:
    """The result with flags as truth values; states in which a single arm is singular are solved
    again, all arms together."""
    flags = ("slipping", "separating", "well_posed")
    result = result._replace(**{name: np.asarray(getattr(result, name)) > 0 for name in flags})
    if result.well_posed.all() or kwargs.get("together"):
        return require_unique(result, args, kwargs)
    together = grasp_dynamics(*args, **{**kwargs, "together": True})
    both = zip(result, together, strict=True)
    return GraspSolution(*(_merged(result.well_posed, *pair) for pair in both))


def _merged(condition: Array, a: Array, b: Array) -> Array:
    """a where the condition holds, else b; the condition has the batch axes of both."""
    axes = condition.shape + (1,) * (np.ndim(a) - condition.ndim)
    return np.where(condition.reshape(axes), a, b)


@program(static=("grasps",), joint_space=True, verify=_resolve_singular_arms)
def grasp_dynamics(
    robot: Robot,
    grasps: Sequence[Grasp],
    q: ConfigurationLike,
    v: JointVectorLike,
    tau: JointVectorLike,
    *,
    external: ExternalForces | None = None,
    stabilisation: ScalarLike | None = None,
    together: bool = False,
    strict: bool = True,
) -> GraspSolution:
    """Accelerations and contact forces of arms that hold one object ([SOA] 6).

    The object is rigid or has joints of its own. Arms that share no moving body are solved one by
    one, and then with the object:

        λ_a = L_a⁻¹(bias − e*D⁻¹ε − G_a*β̇_o)
        (𝓜_o + Σ G_a L_a⁻¹ G_a*) β̇_o = T − C + Σ G_a L_a⁻¹(bias − e*D⁻¹ε)

    at a cost of O(N) + O(grasps). Other arms, and states in which an arm alone is singular or
    nearly so, are solved all at once, O(rows³). A kernel, or a call inside a program, cannot choose
    by the state: there `well_posed` is 0 in such a state, unless `together=True`. A contact holds
    whatever its force is: `separating` and `slipping` say where a real contact would not.

    Parameters
    ----------
    robot
        The arms and the object.
    grasps
        The contacts: a tip frame, an object frame and the kind of contact each.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    tau : (…, nv)
        Joint forces [N·m or N].
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.
    stabilisation : (…), optional
        Baumgarte's rate [1/s], as in `closed_chain_dynamics`.
    together
        Solve all arms at once.
    strict
        Raise if a single state has no unique forces, as in `closed_chain_dynamics`.

    Returns
    -------
    GraspSolution
        Accelerations `qdd` (…, nv), the `forces` (…, grasps, 6) of the tips on the object in the
        frames of the tips, their `internal` part, and the state of each contact.

    Raises
    ------
    SingularError
        If the forces of a single state are not unique, unless `strict=False`.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> box = pp.Builder("box").body("box", mass=5.0, inertia=(0.1, 0.2, 0.2))
    >>> box = box.hinge("box", "free", "world", "box").build()
    >>> robot = pp.combine([pp.robots.double_pendulum(), box])
    >>> q, v = robot.random_state(rng=0)
    >>> x = pp.grasp_dynamics(robot, [pp.Grasp("tool", "box")], q, v, np.zeros(robot.nv))
    >>> x.forces.shape, np.allclose(x.internal, 0.0)  # one arm cannot squeeze
    ((1, 6), True)
    """
    check_closures(robot, grasps, Grasp)
    own = _object_freedoms(robot, grasps)
    x = cut(robot, grasps, q, v)
    if together or not _separate(robot, grasps):
        qdd, lam, residual, L = solved(robot, x, q, v, tau, external, stabilisation)
        regular, rcond = lift(L.regular), lift(L.rcond)
    else:
        qdd, lam, residual, arms = _by_arms(robot, own, x, q, v, tau, external, stabilisation)
        rcond = np.min(lift(np.array([L.rcond for L in arms], object)))
        regular = lift(rcond > SINGULAR)
    forces = x.forces(-lam)
    internal = wrenches(x.forces(_internal(robot, own, x, q, -lam)))
    loads = [_load(*each) for each in zip(grasps, x.across, forces, strict=True)]
    normal, slipping, separating = (np.array(column) for column in zip(*loads, strict=True))
    return GraspSolution(
        qdd, wrenches(forces), internal, normal, slipping, separating, residual, regular, rcond
    )


def _object_freedoms(robot: Robot, grasps: Sequence[Grasp]) -> Freedoms:
    """The freedoms of the object; raises if the object frames are not of one moving object."""
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


def _separate(robot: Robot, grasps: Sequence[Grasp]) -> bool:
    """Whether arms and object share no moving body and every arm has enough freedoms for the rows
    of its grasp."""
    roots = [robot.root(robot.frame(g.a).body) for g in grasps]
    able = all(len(robot.freedoms(root)) >= g.rows for root, g in zip(roots, grasps, strict=True))
    return able and len({*roots, robot.root(robot.frame(grasps[0].b).body)}) == len(roots) + 1


def _by_arms(
    robot: Robot,
    own: Freedoms,
    x: Cut,
    q: ConfigurationLike,
    v: JointVectorLike,
    tau: JointVectorLike,
    external: ExternalForces | None,
    stabilisation: ScalarLike | None,
) -> tuple[JointVector, Rows, Rows, list[SemiPivot]]:
    """β̇, λ, the residual, and the factored L of each arm; `own` are the freedoms of the object."""
    epsilon = compute(W @ (T - C), robot, q, v, T=tau, external=external)
    e = Whitened(robot, q, x.frames, x.N)
    tips = np.repeat([frame in x.first for frame in x.frames], 6)[:, None]
    arms = Whitened(robot, q, x.frames, np.where(tips, x.N, 0.0))
    wanted, gram = x.wanted(stabilisation) - arms.against(epsilon), arms.gram
    G = _grasp_map(robot, own, x, q)
    inertia = mass_matrix(robot, q)[np.ix_(own, own)]
    force = compute(T - C, robot, q, v, T=tau, external=external)[own]
    parts = [(rows, SemiPivot(gram[rows, rows])) for rows in x.parts]
    for rows, L in parts:
        inertia = inertia + L.congruence(G[:, rows].T)
        force = force + G[:, rows] @ L.solve(wanted[rows])
    wanted = wanted - G.T @ Pivot(inertia).solve(force)
    lam = np.concatenate([L.solve(wanted[rows]) for rows, L in parts])
    residual = np.concatenate([L.matrix @ lam[rows] - wanted[rows] for rows, L in parts])
    qdd = response(robot, q, epsilon + e.innovations(lam))
    return qdd, lam, residual, [L for _, L in parts]


def _grasp_map(
    robot: Robot, own: Freedoms, x: Cut, q: ConfigurationLike
) -> Annotated[Array, "object m"]:
    """The grasp map G: the forces on the object's freedoms by each unit force of the contacts."""
    columns = [compute(J(*x.frames).T, robot, q, x=column)[own] for column in x.N.T]
    return np.stack(columns, axis=1)


def _internal(robot: Robot, own: Freedoms, x: Cut, q: ConfigurationLike, lam: Rows) -> Rows:
    """λ − G⁺Gλ: λ less the smallest λ that has the same effect on the object."""
    G = _grasp_map(robot, own, x, q)
    return lam - G.T @ PseudoInverse(G @ G.T).solve(G @ lam)


def _load(grasp: Grasp, X: Transform, force: Force) -> tuple[Array | Real, ...]:
    """The normal force of a tip, whether it slips and whether it separates (1 or 0)."""
    n = grasp.normal(X)
    normal, twist = n @ force.linear, n @ force.angular
    tangential, press = force.linear - n * normal, np.maximum(normal, 0.0)
    slips = 0.0
    if grasp.friction < INF:
        slips = np.maximum(slips, tangential @ tangential > (grasp.friction * press) ** 2)
    if grasp.torsion < INF:
        slips = np.maximum(slips, np.abs(twist) > grasp.torsion * press)
    return normal, slips, 0.0 if grasp.kind.pulls else normal < 0.0
