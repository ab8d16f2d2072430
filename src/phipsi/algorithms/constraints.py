"""Closed chains by cut joints: 𝓜β̇ = T − C + J*Nλ, where N*Jβ̇ has the values that keep loops closed.

With the whitening operator W = I − HψK, 𝓜⁻¹ = W*D⁻¹W, everything follows from the innovations of
the open chain and of the unit forces of the closures ([SOA] 5.3):

    ε = W(T − C),  e = WJ*N,  Lλ = bias − e*D⁻¹ε,  L = e*D⁻¹e = N*JM⁻¹J*N,  β̇ = W*D⁻¹(ε + eλ)

A closure has a row for each unit force that it transmits; m is the number of rows of all closures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from phipsi.algorithms.cut import Cut, Rows, W, Whitened, check_closures, cut, response, wrenches
from phipsi.algorithms.operational_space import exists, frame_names, inverse_block
from phipsi.compile import lift, repeat, where
from phipsi.model import Closure, Loop, Robot
from phipsi.operators import C, T
from phipsi.operators.lowering.compute import compute
from phipsi.programs import program
from phipsi.spatial import Pivot, PseudoInverse, SingularError
from phipsi.typing import (
    Array,
    Configuration,
    ConfigurationLike,
    ExternalForces,
    JointVector,
    JointVectorLike,
    Real,
    Scalar,
    ScalarLike,
)

LOCKED = (
    "the effective inertia does not exist at this configuration: with the closures the frames "
    "cannot accelerate in every direction"
)


# ---- closed chains ------------------------------------------------------------------------------


class ClosedChainSolution(NamedTuple):
    """The result of `closed_chain_dynamics`."""

    qdd: JointVector
    """(…, nv) [rad/s² or m/s²]: joint accelerations."""
    forces: Annotated[Array, "loops 6"]
    """(…, loops, 6) [N·m, N]: the force on frame a of each loop, in the axes of a; the opposite
    force acts on frame b."""
    residual: Rows
    """(…, m) [rad/s², m/s²]: Lλ less its right-hand side, for each row of the loops; not zero only
    where the conditions of the loops contradict each other."""
    well_posed: Scalar
    """(…) bool (1 or 0 inside programs and from kernels): whether the forces are unique."""
    rcond: Scalar
    """(…): the reciprocal condition number of L with scaled rows, estimated; at most 1, 0 where
    rows depend on each other."""


class ClosureForces(Protocol):
    """A named tuple that says whether the forces of closures are unique."""

    @property
    def well_posed(self) -> Scalar:
        """Whether the forces are unique."""
        ...

    @property
    def rcond(self) -> Scalar:
        """The reciprocal condition number."""
        ...

    def _replace(self, **fields: Any) -> Any: ...


Forces = TypeVar("Forces", bound=ClosureForces)


def require_unique(
    result: Forces, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> Forces:
    """The result with a truth value as `well_posed`; raises if a single state has no unique forces
    and `strict` is not False."""
    well_posed = np.asarray(result.well_posed) > 0
    if well_posed.ndim == 0 and not well_posed and kwargs.get("strict", True):
        raise SingularError(
            "the closures are redundant or singular at this state (reciprocal condition number "
            f"{result.rcond:.1e}), so their forces are not unique; leave more free, or pass "
            "strict=False to have the smallest of the solutions and its residual"
        )
    return result._replace(well_posed=well_posed)  # pyright: ignore[reportPrivateUsage] named tuples


@program(static=("loops",), joint_space=True, verify=require_unique)
def closed_chain_dynamics(
    robot: Robot,
    loops: Sequence[Loop],
    q: ConfigurationLike,
    v: JointVectorLike,
    tau: JointVectorLike,
    *,
    external: ExternalForces | None = None,
    stabilisation: ScalarLike | None = None,
    strict: bool = True,
) -> ClosedChainSolution:
    """Accelerations and loop forces of closed chains, each loop a cut joint ([SOA] 5.3, (5.11)).

        (e*D⁻¹e) λ = bias − e*D⁻¹ε,    β̇ = W*D⁻¹(ε + eλ)

    The open tree is the robot. Loops may share bodies, and bases may be fixed or moving. Where rows
    depend on each other (`well_posed` is false) the forces are the smallest of many solutions, each
    row measured by its own entry of L; the accelerations are right if `residual` is zero, and do
    not depend on where the loops are cut. Cost O(N) for each of the m rows, and O(m³), or less
    where few loops share bodies.

    Parameters
    ----------
    robot
        The open tree.
    loops
        The loops that are closed.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    tau : (…, nv)
        Joint forces [N·m or N].
    external : (…, nb, 6) or {frame: (…, 6)}, optional
        Forces on the bodies, [moment; force] [N·m, N] in their own frames, at the origins of these.
    stabilisation : (…), optional
        Baumgarte's rate g [1/s], which corrects drift: bias − 2g Q*Δ − g² Q*e. Default none.
    strict
        Raise if a single state has no unique forces. Kernels and calls inside programs never
        raise; there `well_posed` alone tells.

    Returns
    -------
    ClosedChainSolution
        Accelerations `qdd` (…, nv), the `forces` (…, loops, 6) on frame a of each loop in its axes,
        and how well they are determined.

    Raises
    ------
    SingularError
        If the forces of a single state are not unique, unless `strict=False`.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.four_bar()
    >>> loops = [pp.Loop("coupler_tip", "rocker_tip", free=np.eye(6)[:, [3, 5]])]
    >>> q, v, _ = pp.close_loops(robot, loops, *robot.random_state(rng=0))
    >>> x = pp.closed_chain_dynamics(robot, loops, q, v, np.array([1.0, 0.0, 0.0]))
    >>> x.qdd.shape, x.forces.shape, bool(x.well_posed)
    ((3,), (1, 6), True)
    """
    check_closures(robot, loops, Loop)
    x = cut(robot, loops, q, v)
    qdd, lam, residual, L = solved(robot, x, q, v, tau, external, stabilisation)
    forces = wrenches(x.forces(lam))
    return ClosedChainSolution(qdd, forces, residual, lift(L.regular), lift(L.rcond))


def solved(
    robot: Robot,
    x: Cut,
    q: ConfigurationLike,
    v: JointVectorLike,
    tau: JointVectorLike,
    external: ExternalForces | None,
    stabilisation: ScalarLike | None,
    compliance: Rows | None = None,
) -> tuple[JointVector, Rows, Rows, PseudoInverse]:
    """β̇, λ, the residual of Lλ = bias − e*D⁻¹ε, and L⁺.

    A row of compliance c yields to its force: L + c in place of L.
    """
    epsilon = compute(W @ (T - C), robot, q, v, T=tau, external=external)
    e = Whitened(robot, q, x.frames, x.N)
    wanted = x.wanted(stabilisation) - e.against(epsilon)
    L = PseudoInverse(e.gram if compliance is None else e.gram + np.diag(compliance))
    lam = L.solve(wanted)
    qdd = response(robot, q, epsilon + e.innovations(lam))
    return qdd, lam, L.matrix @ lam - wanted, L


# ---- closing loops ------------------------------------------------------------------------------


class LoopOpening(NamedTuple):
    """The opening of loops, a number for each unit force that they transmit, loop after loop."""

    error: Rows
    """(…, m) [rad, m]: Q*e, the displacement across the loops."""
    rate: Rows
    """(…, m) [rad/s, m/s]: Q*Δ, the velocity across the loops."""


@program(static=("loops",), joint_space=True)
def loop_opening(
    robot: Robot, loops: Sequence[Closure], q: ConfigurationLike, v: JointVectorLike
) -> LoopOpening:
    """How far loops are open and how fast they open: Q*e and Q*Δ.

    All numbers are zero where the loops are closed. Cost O(N).

    Parameters
    ----------
    robot
        The open tree.
    loops
        Loops or grasps.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities [rad/s or m/s].

    Returns
    -------
    LoopOpening
        The `error` [rad, m] and its `rate` [rad/s, m/s], (…, m) each, in the axes of the frames a.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.four_bar()
    >>> loops = [pp.Loop("coupler_tip", "rocker_tip", free=np.eye(6)[:, [3, 5]])]
    >>> q, v, _ = pp.close_loops(robot, loops, *robot.random_state(rng=0))
    >>> error, rate = pp.loop_opening(robot, loops, q, v)
    >>> np.allclose(error, 0.0), np.allclose(rate, 0.0)
    (True, True)
    """
    check_closures(robot, loops, Closure)
    x = cut(robot, loops, q, v)
    return LoopOpening(x.error, x.rate)


class LoopClosure(NamedTuple):
    """The result of `close_loops`."""

    q: Configuration
    """(…, nq): the configuration with closed loops."""
    v: JointVector
    """(…, nv) [rad/s or m/s]: joint velocities that keep the loops closed."""
    error: Scalar
    """(…) [rad, m]: the largest opening that is left."""


@program(static=("loops",), joint_space=True)
def close_loops(
    robot: Robot,
    loops: Sequence[Closure],
    q: ConfigurationLike,
    v: JointVectorLike,
    *,
    iterations: int = 50,
) -> LoopClosure:
    """A state near (q, v) in which all loops are closed, by Newton steps −𝓜⁻¹J*N L⁻¹ Q*e.

    Steps are taken on the manifold of configurations, none longer than 1 rad or m; then the part of
    the velocity that opens the loops is removed. Both changes are the smallest in the sense of
    kinetic energy, so that light bodies move most, a floating object among them; lock joints that
    must not move (`Robot.locked`). Cost O(N m) and O(m³) for each iteration.

    Parameters
    ----------
    robot
        The open tree.
    loops
        Loops or grasps.
    q : (…, nq)
        Configuration from which the search starts.
    v : (…, nv)
        Joint velocities [rad/s or m/s].
    iterations
        The number of Newton steps, at least 1.

    Returns
    -------
    LoopClosure
        The closed state `q`, `v`, and the largest opening `error` [rad, m] that is left; it is not
        zero where the loops cannot be closed from this start.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.four_bar()
    >>> loops = [pp.Loop("coupler_tip", "rocker_tip", free=np.eye(6)[:, [3, 5]])]
    >>> q, v, error = pp.close_loops(robot, loops, *robot.random_state(rng=0))
    >>> bool(error < 1e-12)
    True
    """
    check_closures(robot, loops, Closure)
    if iterations < 1:
        raise ValueError(f"close_loops: iterations is {iterations}, needs at least 1")
    still = np.zeros(robot.nv)

    def newton(q: Array, _: Real) -> tuple[Array, Array]:
        x = cut(robot, loops, q, still)
        e = Whitened(robot, q, x.frames, x.N)
        step = response(robot, q, e.innovations(PseudoInverse(e.gram).solve(-x.error)))
        largest = np.max(np.abs(lift(step)))
        return robot.integrate(q, step / np.maximum(1.0, largest)), largest

    closed, _ = repeat(iterations, newton, np.asanyarray(q))
    error = np.max(np.abs(lift(cut(robot, loops, closed, still).error)))
    return LoopClosure(closed, capture(robot, loops, closed, v).v, error)


class CaptureSolution(NamedTuple):
    """The result of `capture`."""

    v: JointVector
    """(…, nv) [rad/s or m/s]: joint velocities after the impact."""
    impulses: Annotated[Array, "closures 6"]
    """(…, closures, 6) [N·m·s, N·s]: the impulse on frame a of each closure, in the axes of a."""
    well_posed: Scalar
    """(…) bool (1 or 0 inside programs and from kernels): whether the impulses are unique."""
    rcond: Scalar
    """(…): the reciprocal condition number of L with scaled rows, estimated; at most 1, 0 where
    rows depend on each other."""


@program(static=("closures",), joint_space=True, verify=require_unique)
def capture(
    robot: Robot,
    closures: Sequence[Closure],
    q: ConfigurationLike,
    v: JointVectorLike,
    *,
    restitution: ScalarLike | None = None,
    strict: bool = True,
) -> CaptureSolution:
    """The velocities after frames catch or hit each other: β⁺ = β − (1 + c) 𝓜⁻¹J*N L⁻¹ Q*Δ.

    A weld catches, a contact hits. Momentum is conserved, except by closures to the world. Cost
    O(N) for each of the m rows, and O(m³).

    Parameters
    ----------
    robot
        The robot.
    closures
        Loops or grasps that close at this instant.
    q : (…, nq)
        Configuration.
    v : (…, nv)
        Joint velocities before the impact [rad/s or m/s].
    restitution : (…), optional
        The coefficient c: 0 (default) if the frames stay together, 1 if no energy is lost.
    strict
        Raise if a single state has no unique impulses; kernels and calls inside programs never do.

    Returns
    -------
    CaptureSolution
        Joint velocities `v` (…, nv) after the impact, the `impulses` (…, closures, 6) on frame a of
        each closure in its axes, and how well they are determined.

    Raises
    ------
    SingularError
        If the impulses of a single state are not unique, unless `strict=False`.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> stop = [pp.Loop("tool", "world", free=np.eye(6)[:, [3, 5]])]
    >>> after = pp.capture(robot, stop, [0.3, -0.5], [1.0, 2.0])
    >>> after.v.round(9) + 0.0  # both joints stop where the tool is caught
    array([0., 0.])
    """
    check_closures(robot, closures, Closure)
    x = cut(robot, closures, q, v)
    e = Whitened(robot, q, x.frames, x.N)
    L = PseudoInverse(e.gram)
    if restitution is None:
        lam = L.solve(-x.rate)
    else:
        lam = L.solve(-(1.0 + np.asanyarray(restitution)) * x.rate)
    after = np.asanyarray(v) + response(robot, q, e.innovations(lam))
    return CaptureSolution(after, wrenches(x.forces(lam)), lift(L.regular), lift(L.rcond))


@program(static=("closures", "frames"), joint_space=True, verify=exists(2, LOCKED))
def effective_inertia(
    robot: Robot, closures: Sequence[Closure], q: ConfigurationLike, frames: str | Sequence[str]
) -> Annotated[Array, "n n"]:
    """The inertia (Υ − Υ_c* L⁻¹ Υ_c)⁻¹ felt at frames of a robot with closures ([SOA] 6).

    Υ = J𝓜⁻¹J* of the frames, Υ_c = N*J𝓜⁻¹J* their effect on the closures. At a frame of an object
    that separate arms hold it is M_o + Σ φΛ_aφ*. Cost O(N) for each row, and O(m³).

    Parameters
    ----------
    robot
        The robot.
    closures
        Loops or grasps that are closed.
    q : (…, nq)
        Configuration.
    frames
        The name of a frame, or the names of n frames.

    Returns
    -------
    (…, 6n, 6n)
        The inertia [kg, kg·m, kg·m²] in the axes of the frames; NaN where the frames cannot
        accelerate in every direction.

    Raises
    ------
    SingularError
        If the inertia of a single state does not exist.

    Examples
    --------
    >>> import numpy as np, phipsi as pp
    >>> boxes = pp.Builder("boxes").body("a", mass=1.0, inertia=(1, 1, 1))
    >>> boxes = boxes.body("b", mass=2.0, inertia=(1, 1, 1))
    >>> boxes = boxes.hinge("a", "free", "world", "a").hinge("b", "free", "world", "b").build()
    >>> inertia = pp.effective_inertia(boxes, [pp.Loop("a", "b")], boxes.neutral(), "a")
    >>> np.allclose(inertia, np.diag([2, 2, 2, 3, 3, 3]))  # that of both, welded together
    True
    """
    check_closures(robot, closures, Closure)
    names = frame_names(frames)
    x = cut(robot, closures, q, np.zeros(robot.nv))
    m, n = x.N.shape[1], 6 * len(names)
    rows = np.zeros((6 * len(x.frames) + n, m + n), object)
    rows[:-n, :m], rows[-n:, m:] = x.N, np.eye(n)
    gram = Whitened(robot, q, (*x.frames, *names), rows).gram
    Upsilon, L = gram[m:, m:], PseudoInverse(gram[:m, :m])
    held = np.stack([gram[m:, :m] @ L.solve(column) for column in gram[:m, m:].T], axis=1)
    left = np.where(np.tri(n) > 0, Upsilon - held, (Upsilon - held).T)
    free = PseudoInverse(left, np.diag(Upsilon)).regular
    return where(free, inverse_block(Pivot(left), n), np.nan)
