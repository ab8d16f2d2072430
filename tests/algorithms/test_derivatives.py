"""Derivatives of dynamics beside Pinocchio's, central differences in long double, and what they
must obey."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

import phipsi as pp
from phipsi.algorithms import derivatives
from phipsi.compile import Kernel
from tests.agreement.pinocchio import Side, difference
from tests.golden import PACKAGED
from tests.model.urdf_files import URDFS
from tests.zoo import MOVING, ONE_DOF, State, close, random_forest, reversed_forest

pin: Any = pytest.importorskip("pinocchio")

WIDE = np.finfo(np.longdouble).eps < 1e-18
STEP, NEAR = (1e-4, 1e-11) if WIDE else (1e-3, 1e-7)
ROBOTS = {
    "tree": random_forest(176, 6),
    "forest": random_forest(16, 6),
    "bare": random_forest(39, 5, kinds=MOVING, armature=False),
    "reversed": reversed_forest(3, 6),
}
"""Together they have every hinge kind, branches, roots, massless bodies, armature and none."""
robots = pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)


pytestmark = pytest.mark.usefixtures("interpreted")


# ---- differences --------------------------------------------------------------------------------


def precise(program: Any, robot: pp.Robot, **arguments: Any) -> Kernel:
    """A kernel in long double."""
    return program.compile(robot, backend="numpy", dtype="longdouble", **arguments)


def slope(f: Callable[[np.ndarray], np.ndarray], n: int) -> np.ndarray:
    """∂f of a function of small displacements (n,), by differences of the fourth order."""
    units = STEP * np.eye(n, dtype=np.longdouble)
    far, near = (f(s * units) - f(-s * units) for s in (2, 1))
    return ((8 * near - far) / (12 * STEP)).T


class Differences:
    """∂/∂q, ∂/∂v and, for each of the other arguments, ∂ of a kernel at a state."""

    def __init__(self, kernel: Kernel, robot: pp.Robot, *state: Any, fixed: Any = ()) -> None:
        q, v, *others = (np.asarray(x, np.longdouble) for x in state)
        self.dq = slope(lambda d: kernel(robot.integrate(q, d), v, *others, *fixed), robot.nv)
        self.dv = slope(lambda d: kernel(q, v + d, *others, *fixed), robot.nv)
        self.others = []
        for i, x in enumerate(others):
            before, after = others[:i], others[i + 1 :]
            self.others.append(
                slope(lambda d, b=before, x=x, a=after: kernel(q, v, *b, x + d, *a, *fixed), len(v))
            )


def kinds(robots: Any) -> set[str]:
    return {h.kind.name for robot in robots for h in robot.hinges}


def test_the_zoo_is_complete() -> None:
    assert kinds(ROBOTS.values()) >= set(MOVING)
    assert any(robot.parents.count(-1) > 1 for robot in ROBOTS.values())


@robots
def test_inverse_dynamics(robot: pp.Robot) -> None:
    s = State(robot)
    how = {"external": s.external}
    found = precise(pp.inverse_dynamics_derivatives, robot, **how)(s.q, s.v, s.a, s.external)
    kernel = precise(pp.inverse_dynamics, robot, **how)
    d = Differences(kernel, robot, s.q, s.v, s.a, fixed=(s.external,))
    for x, y in zip(found, (d.dq, d.dv, *d.others), strict=True):
        close(x, y, NEAR)


@robots
def test_forward_dynamics(robot: pp.Robot) -> None:
    s = State(robot)
    how = {"external": s.external}
    found = precise(pp.forward_dynamics_derivatives, robot, **how)(s.q, s.v, s.tau, s.external)
    kernel = precise(pp.forward_dynamics, robot, **how)
    d = Differences(kernel, robot, s.q, s.v, s.tau, fixed=(s.external,))
    for x, y in zip(found, (d.dq, d.dv, *d.others), strict=True):
        close(x, y, NEAR)


@robots
def test_hybrid_dynamics(robot: pp.Robot) -> None:
    """Split within hinges too; what is given, and what is found, freedom by freedom."""
    s = State(robot)
    how = {"external": s.external, "active": s.active}
    state, fixed = (s.q, s.v, s.tau, s.a), (s.active, s.external)
    found = precise(pp.hybrid_dynamics_derivatives, robot, **how)(*state, *fixed)
    hybrid = precise(pp.hybrid_dynamics, robot, **how)

    def unknown(*arguments: Any) -> Any:
        tau, qdd = hybrid(*arguments)
        return np.where(s.active, tau, qdd)

    d = Differences(unknown, robot, *state, fixed=fixed)  # type: ignore[arg-type]
    by_tau, by_qdd = d.others
    assert not np.abs(by_tau[:, s.active]).any() and not np.abs(by_qdd[:, ~s.active]).any()
    for x, y in zip(found, (d.dq, d.dv, by_tau + by_qdd), strict=True):
        close(x, y, NEAR)


def test_hybrid_dynamics_by_name() -> None:
    robot = pp.robots.space_arm()
    s = State(robot)
    names = tuple(h.name for h in robot.hinges if h.name != "base")
    named = pp.hybrid_dynamics_derivatives(robot, s.q, s.v, s.tau, s.a, active=names)
    masked = pp.hybrid_dynamics_derivatives(robot, s.q, s.v, s.tau, s.a, active=robot.mask(*names))
    for x, y in zip(named, masked, strict=True):
        close(x, y, 1e-12)
    everything, nothing = np.ones(robot.nv, bool), np.zeros(robot.nv, bool)
    ends = {
        "active": (everything, pp.inverse_dynamics_derivatives(robot, s.q, s.v, s.a)),
        "passive": (nothing, pp.forward_dynamics_derivatives(robot, s.q, s.v, s.tau)),
    }
    for mask, expected in ends.values():
        found = pp.hybrid_dynamics_derivatives(robot, s.q, s.v, s.tau, s.a, mask)
        for x, y in zip(found, expected, strict=True):
            close(x, y, 1e-12)


@pytest.mark.parametrize("name", PACKAGED)
def test_at_rest_in_the_neutral_configuration(name: str) -> None:
    robot = getattr(pp.robots, name)()
    q, still = robot.neutral(), np.zeros(robot.nv)
    for program, of in (
        (pp.forward_dynamics, pp.forward_dynamics_derivatives),
        (pp.inverse_dynamics, pp.inverse_dynamics_derivatives),
    ):
        d = Differences(precise(program, robot), robot, q, still, still)
        found = precise(of, robot)(q, still, still)
        for x, y in zip(found, (d.dq, d.dv, *d.others), strict=True):
            close(x, y, NEAR)


# ---- Pinocchio ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "base"),
    [("ur5_robot", "fixed"), ("ur5_robot", "free"), ("panda", "fixed"), ("solo12", "free"),
     ("g1_29dof_rev_1_0", "free")],
)  # fmt: skip
def test_pinocchio(name: str, base: Literal["fixed", "free"]) -> None:
    side = Side(URDFS[name], base)
    robot, model, data = side.robot, side.model, side.data
    s, order = State(robot), np.ix_(side.order, side.order)
    q = pp.interop.to_pinocchio(robot, s.q, joints=model)
    v, a, tau = map(side.theirs, (s.v, s.a, s.tau))
    forward = pp.forward_dynamics_derivatives(robot, s.q, s.v, s.tau)
    inverse = pp.inverse_dynamics_derivatives(robot, s.q, s.v, s.a)
    pin.computeABADerivatives(model, data, q, v, tau)
    theirs = [np.array(x) for x in (data.ddq_dq, data.ddq_dv, data.Minv)]
    pin.computeRNEADerivatives(model, data, q, v, a)
    theirs += [np.array(x) for x in (data.dtau_dq, data.dtau_dv, data.M)]
    for ours, x in zip((*forward, *inverse), theirs, strict=True):
        whole = np.triu(x) + np.triu(x, 1).T if x is theirs[2] or x is theirs[5] else x
        assert difference(ours, whole[order]) < 1e-9


def test_pinocchio_with_external_forces() -> None:
    """Forces that stay in the frames of the bodies."""
    side = Side(URDFS["solo12"], "free")
    robot, model, data = side.robot, side.model, side.data
    s = State(robot)
    q = pp.interop.to_pinocchio(robot, s.q, joints=model)
    forces = pin.StdVec_Force()
    forces.extend([pin.Force.Zero() for _ in range(model.njoints)])
    for h, wrench in zip(robot.hinges, s.external, strict=True):
        forces[model.getJointId(h.name)] = pin.Force(wrench[3:], wrench[:3])
    found = pp.forward_dynamics_derivatives(robot, s.q, s.v, s.tau, external=s.external)
    pin.computeABADerivatives(model, data, q, side.theirs(s.v), side.theirs(s.tau), forces)
    order = np.ix_(side.order, side.order)
    assert difference(found.dq, data.ddq_dq[order]) < 1e-9
    assert difference(found.dv, data.ddq_dv[order]) < 1e-9


# ---- laws ---------------------------------------------------------------------------------------


@robots
def test_they_belong_together(robot: pp.Robot) -> None:
    s = State(robot)
    forward = pp.forward_dynamics_derivatives(robot, s.q, s.v, s.tau)
    a = pp.forward_dynamics(robot, s.q, s.v, s.tau)
    inverse = pp.inverse_dynamics_derivatives(robot, s.q, s.v, a)
    close(inverse.da, pp.mass_matrix(robot, s.q), 1e-12)
    close(forward.dtau @ inverse.da, np.eye(robot.nv), 1e-9)
    close(forward.dq, -forward.dtau @ inverse.dq, 1e-9)
    close(forward.dv, -forward.dtau @ inverse.dv, 1e-9)


@robots
def test_coriolis_forces_are_quadratic_in_the_rates(robot: pp.Robot) -> None:
    """Euler: ∂T/∂v v = 2 (T(v) − T(0))."""
    s = State(robot)
    moving, still = (pp.inverse_dynamics(robot, s.q, k * s.v, s.a) for k in (1.0, 0.0))
    dv = pp.inverse_dynamics_derivatives(robot, s.q, s.v, s.a).dv
    close(dv @ s.v, 2 * (moving - still), 1e-11)


def test_at_rest_forces_have_a_potential() -> None:
    """Without acceleration ∂T/∂q is the Hessian of the potential energy: symmetric."""
    robot = random_forest(5, 6, kinds=(*ONE_DOF, "universal", "cylindrical"))
    q, still = robot.random_state(1)[0], np.zeros(robot.nv)
    dq = pp.inverse_dynamics_derivatives(robot, q, still, still).dq
    assert np.abs(dq).max() > 1
    close(dq, dq.T, 1e-12)


def test_nothing_depends_on_where_a_free_flyer_is() -> None:
    robot = pp.robots.space_arm().with_gravity((0.0, 0.0, 0.0))
    s = State(robot)
    base = robot.hinge("base").v
    for found in (
        pp.forward_dynamics_derivatives(robot, s.q, s.v, s.tau),
        pp.inverse_dynamics_derivatives(robot, s.q, s.v, s.a),
    ):
        assert not found.dq[:, base].any()


# ---- linearization ------------------------------------------------------------------------------


@robots
def test_linearize_is_the_derivative_of_the_flow(robot: pp.Robot) -> None:
    """Two motions that begin near each other: how what is between them changes."""
    s = State(robot)
    n, h = robot.nv, np.longdouble(1e-3)
    q, v, tau = (x.astype(np.longdouble) for x in (s.q, s.v, s.tau))
    forward = precise(pp.forward_dynamics, robot)
    A, B = precise(pp.linearize, robot)(q, v, tau)

    def flow(x: np.ndarray, time: Any) -> np.ndarray:
        """Where motions get that begin apart by x = (δ, δv, δtau), seen from the one in the middle,
        by Heun's second order; both ways in time its errors cancel to the next order."""
        begin, rates = robot.integrate(q, x[:, :n]), v + x[:, n : 2 * n]
        u = tau + x[:, 2 * n :]
        half = rates + 0.5 * time * forward(begin, rates, u)
        middle = robot.integrate(begin, 0.5 * time * rates)
        return np.concatenate(
            [robot.integrate(begin, time * half), rates + time * forward(middle, half, u)], axis=1
        )

    def rate(h: Any) -> np.ndarray:
        """Of the derivative of the flow, by a central difference in the time."""
        ends = []
        for time in (h, -h):
            at = flow(np.zeros((1, 3 * n), np.longdouble), time)[0]

            def apart(x: np.ndarray, at: Any = at, time: Any = time) -> np.ndarray:
                x = flow(x, time)
                between = robot.difference(at[: robot.nq], x[:, : robot.nq])
                return np.concatenate([between, x[:, robot.nq :] - at[robot.nq :]], axis=1)

            ends.append(slope(apart, 3 * n))
        return (ends[0] - ends[1]) / (2 * h)

    moved = (4 * rate(h / 2) - rate(h)) / 3
    close(moved, np.concatenate([A, B], axis=1), 1e-8 if WIDE else 1e-4)


# ---- large robots, other ways -------------------------------------------------------------------


@pytest.mark.parametrize("unroll", [None, False])
def test_one_variation_after_the_other(unroll: bool | None, monkeypatch: Any) -> None:
    """What would be too long to write out is a loop over the freedoms."""
    robot = ROBOTS["tree"]
    s = State(robot)
    mask = s.active.astype(float)
    cases = {
        pp.inverse_dynamics_derivatives: (s.q, s.v, s.a),
        pp.forward_dynamics_derivatives: (s.q, s.v, s.tau),
        pp.hybrid_dynamics_derivatives: (s.q, s.v, s.tau, s.a, mask),
    }
    expected = [precise(program, robot)(*state) for program, state in cases.items()]
    monkeypatch.setattr(derivatives, "MOST", 0)
    for (program, state), known in zip(cases.items(), expected, strict=True):
        parameters = [program.robot_parameter, *program.parameters.values()]
        same = pp.Program(program.function, parameters)  # whose traces are not stored
        kernel = precise(same, robot, unroll=unroll)
        assert any(node.op == "loop" for node in kernel.graph.nodes)
        for x, y in zip(kernel(*state), known, strict=True):
            close(x, y, NEAR)


def test_a_robot_with_too_many_freedoms() -> None:
    robot = pp.robots.chain(301)
    q = np.zeros(301)
    with pytest.raises(ValueError, match="derivatives along 301 freedoms are too large"):
        pp.forward_dynamics_derivatives(robot, q, q, q)


@pytest.mark.parametrize("name", ["space_arm", "puma560"])
def test_derivatives_of_programs_are_the_same(name: str) -> None:
    robot = getattr(pp.robots, name)()
    s = State(robot)
    found = pp.forward_dynamics_derivatives(robot, s.q, s.v, s.tau)
    others = pp.forward_dynamics.derivative(("q", "v", "tau"))(robot, s.q, s.v, s.tau)
    for x, y in zip(found, others, strict=True):
        close(x, y, 1e-10)


def test_numbers_of_bodies() -> None:
    """The regressor is the derivative of forces by inertias; with −𝓜⁻¹, of accelerations."""
    robot = pp.robots.space_arm()
    s = State(robot)
    i, body = 4, robot.bodies[4].name
    a = pp.forward_dynamics(robot, s.q, s.v, s.tau)
    Y = pp.regressor(robot, s.q, s.v, a)[:, 10 * i : 10 * i + 10]
    by = pp.inverse_dynamics.derivative(f"inertia:{body}")(robot, s.q, s.v, a)
    close(by, Y, 1e-11)
    inverse = pp.forward_dynamics_derivatives(robot, s.q, s.v, s.tau).dtau
    by = pp.forward_dynamics.derivative(f"inertia:{body}")(robot, s.q, s.v, s.tau)
    close(by, -inverse @ Y, 1e-9)
