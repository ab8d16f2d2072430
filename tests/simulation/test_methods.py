"""Every method converges with its order; what must be conserved is; MuJoCo and SciPy agree."""

import importlib
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import phipsi as pp
from phipsi.simulation import COORDINATES, METHODS, CoordinatesName, MethodName
from tests.zoo import MOVING, random_forest

DURATION = 0.4


def zoo(kinds: tuple[str, ...], roots: tuple[str, ...], armature: bool = True) -> pp.Robot:
    """A chain of such hinges without friction, whose motion is smooth."""
    robot = random_forest(
        3, 4, kinds=kinds, roots=roots, branching=False, massless=False, armature=armature
    )
    edit = robot.edit()
    for h in robot.hinges:
        none = np.zeros(h.kind.nv)
        edit.replace_hinge(
            h.name, friction=none, backlash=none, damping=none + 0.1, stiffness=none + 1.0
        )
    return edit.build()


ROBOTS = {
    "fixed": lambda: zoo(("revolute", "universal", "cylindrical", "prismatic"), ("revolute",)),
    "floating": lambda: zoo(("spherical", "planar", "revolute"), ("free",), armature=False),
    "floating, rotors": lambda: zoo(("spherical", "planar", "revolute"), ("free",)),
}


def start(robot: pp.Robot) -> tuple[np.ndarray, np.ndarray]:
    """A state near rest: the springs of balls are not smooth at half a turn."""
    way, v = np.random.default_rng(1).standard_normal((2, robot.nv))
    return robot.integrate(robot.neutral(), 0.4 * way), 0.5 * v


def reference(robot: pp.Robot, q: Any, v: Any, duration: float) -> tuple[Any, Any]:
    """The state at the end by SciPy's DOP853, in plain coordinates."""

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        q, v = y[: robot.nq], y[robot.nq :]
        tau = pp.passive_forces(robot, q, v)
        return np.concatenate([robot.flow(q, v), pp.forward_dynamics(robot, q, v, tau)])

    found = solve_ivp(
        rate, (0.0, duration), np.concatenate([q, v]), "DOP853", rtol=1e-13, atol=1e-13
    )
    end = found.y[:, -1]
    return robot.integrate(end[: robot.nq], np.zeros(robot.nv)), end[robot.nq :]


def distance(robot: pp.Robot, one: Any, other: Any) -> float:
    gaps = robot.difference(one[0], other[0]), np.asarray(one[1]) - np.asarray(other[1])
    return float(max(np.abs(gap).max() for gap in gaps))


@pytest.mark.parametrize(
    ("method", "name"),
    [(method, name) for method in METHODS for name in ROBOTS if "rotors" not in name]
    + [("preserving", "floating, rotors")],
)
def test_order_of_convergence(method: MethodName, name: str):
    robot = ROBOTS[name]()
    q, v = start(robot)
    exact = reference(robot, q, v, DURATION)
    counts = (40, 80) if METHODS[method].order == 4 else (80, 160)
    errors = []
    for count in counts:
        motion = pp.simulate(robot, q, v, duration=DURATION, dt=DURATION / count, method=method)
        errors.append(distance(robot, (motion.q[-1], motion.v[-1]), exact))
    order = np.log2(errors[0] / errors[1])
    assert order == pytest.approx(METHODS[method].order, abs=0.35), errors


@pytest.mark.parametrize("method", ["dop853", "lsoda"])
def test_scipys_integrators(method: MethodName):
    robot = ROBOTS["floating"]()
    q, v = start(robot)
    motion = pp.simulate(robot, q, v, duration=DURATION, dt=0.1, method=method)
    assert len(motion) == 5
    end = motion.q[-1], motion.v[-1]
    assert distance(robot, end, reference(robot, q, v, DURATION)) < 1e-7


@pytest.mark.parametrize("kind", MOVING)
def test_words_of_hinges(kind: str):
    """q̇, the bracket and momenta of every hinge kind, by differences."""
    robot = random_forest(5, 3, kinds=(kind,), branching=False, massless=False)
    rng = np.random.default_rng(0)
    q, v = robot.random_state(rng, (4,))
    u, x, p = rng.standard_normal((3, 4, robot.nv))
    e = 1e-6
    ahead, behind = robot.integrate(q, e * v), robot.integrate(q, -e * v)
    assert np.allclose(robot.flow(q, v), (ahead - behind) / (2 * e), atol=1e-7)
    assert np.allclose((robot.coadjoint(u, p) * x).sum(-1), (p * robot.bracket(u, x)).sum(-1))
    assert np.allclose(robot.outboard(q, robot.inboard(q, p)), p)
    there = robot.inboard(q, p)
    rate = (robot.outboard(ahead, there) - robot.outboard(behind, there)) / (2 * e)
    assert np.allclose(rate, robot.coadjoint(v, p), atol=1e-6)
    small = 1e-3
    moved = robot.integrate(robot.integrate(q, small * u), small * x)
    way = small * (u + x) + small**2 / 2 * robot.bracket(u, x)
    assert np.allclose(robot.difference(q, moved), way, atol=20 * small**3)


@pytest.mark.parametrize("coordinates", COORDINATES)
def test_coordinates_give_the_same_motion(coordinates: CoordinatesName):
    robot = ROBOTS["floating"]()
    q, v = start(robot)
    motion = pp.simulate(
        robot, q, v, duration=DURATION, dt=DURATION / 200, coordinates=coordinates, every=200
    )
    error = distance(robot, (motion.q[-1], motion.v[-1]), reference(robot, q, v, DURATION))
    assert error < 1e-7


def test_whole_turns_are_kept_in_non_minimal_coordinates():
    craft = pp.robots.space_arm(wheels=True)
    arm = [h.name for h in craft.hinges if h.name != "base" and "wheel" not in h.name]
    robot = craft.locked([*arm, "wheel_x", "wheel_y"])
    v = np.where(robot.mask("wheel_z"), 8.0, 0.0)
    motions = [
        pp.simulate(robot, robot.neutral(), v, duration=2.0, dt=0.01, every=200, coordinates=c)
        for c in ("minimal", "non-minimal")
    ]
    assert abs(motions[0].q[-1, -1]) > 2 * np.pi
    assert np.allclose(motions[0].q[-1], motions[1].q[-1], atol=1e-4)


@pytest.mark.parametrize("name", ["space_arm", "seven_axis_arm"])
def test_mujoco_agrees(name: str):
    mujoco: Any = importlib.import_module("mujoco")
    rollout: Any = importlib.import_module("mujoco.rollout")
    robot = pp.robots.ROBOTS[name]()
    spec = pp.interop.to_mujoco_spec(robot)
    spec.option.integrator, spec.option.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-3
    model = spec.compile()
    q, v = robot.random_state(2, (3,))
    v = 0.5 * v
    states = np.concatenate(pp.interop.to_mujoco(robot, q, v, joints=model), axis=1)
    states = np.concatenate([np.zeros((3, 1)), states], axis=1)
    theirs, _ = rollout.rollout(model, [mujoco.MjData(model)], states, nstep=1000)
    end = theirs[:, -1, 1:]
    expected = pp.interop.from_mujoco(robot, end[:, : robot.nq], end[:, robot.nq :], joints=model)
    ours = pp.rollout(robot, q, v, duration=1.0, dt=1e-3, passive=False, every=1000)
    assert distance(robot, (ours.q[:, -1], ours.v[:, -1]), expected) < 1e-9


# ---- what is conserved --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def adrift() -> dict[str, pp.Trajectory]:
    """A free-flyer whose arm swings, 1e5 steps of 10 ms, by each of three methods."""
    robot = pp.robots.space_arm()
    q, v = robot.random_state(1)
    v = v * np.where(robot.mask("base"), 0.05, 2.0)
    return {
        method: pp.simulate(robot, q, v, duration=1000.0, dt=0.01, every=20, method=method)
        for method in ("rk4", "preserving", "preserving4")
    }


def momentum_drift(motion: pp.Trajectory) -> float:
    """The largest change of angular and of linear momentum, relative."""
    h = motion.momentum.reshape(-1, 2, 3)
    return float((np.linalg.norm(h - h[0], axis=-1) / np.linalg.norm(h[0], axis=-1)).max())


def energy_errors(motion: pp.Trajectory) -> np.ndarray:
    """The largest relative error of the energy in each tenth of the time."""
    error = np.abs(motion.energy / motion.energy[0] - 1.0)
    return np.array([part.max() for part in np.array_split(error, 10)])


@pytest.mark.parametrize("method", ["preserving", "preserving4"])
def test_momentum_is_exact_and_energy_bounded(method: str, adrift: dict[str, pp.Trajectory]):
    motion = adrift[method]
    assert momentum_drift(motion) < 1e-12
    errors = energy_errors(motion)
    assert errors.max() < {"preserving": 3e-3, "preserving4": 3e-5}[method]
    assert errors[5:].max() < 2.0 * errors[:5].max()


def test_runge_kutta_drifts(adrift: dict[str, pp.Trajectory]):
    motion = adrift["rk4"]
    assert momentum_drift(motion) > 1e-4
    errors = energy_errors(motion)
    assert errors[-1] > 4.0 * errors[0]
    assert errors[-1] > 10.0 * energy_errors(adrift["preserving4"]).max()


def test_the_energy_of_a_pendulum_is_bounded():
    robot = pp.robots.double_pendulum()
    motion = pp.simulate(robot, [1.0, 0.5], duration=200.0, dt=0.01, method="preserving", every=5)
    error = np.abs(motion.energy - motion.energy[0])
    assert error[2000:].max() < 1.5 * error[:2000].max() < 0.1


def test_forces_from_outside_change_the_momentum_by_their_impulse():
    robot = pp.robots.space_arm()
    push = np.array([0.0, 0.0, 0.0, 3.0, -2.0, 1.0])
    q, _ = robot.random_state(4)
    q[:7] = robot.neutral()[:7]
    for method in ("preserving", "rk4"):
        motion = pp.simulate(
            robot, q, duration=1.0, dt=0.01, method=method, external={"mount": push}
        )
        turned = motion.frame("mount")[:, :3, :3] @ push[3:]
        impulse = 0.01 * (turned.sum(0) - 0.5 * (turned[0] + turned[-1]))
        assert np.allclose(motion.momentum[-1, 3:], impulse, atol=1e-3)


def test_quaternions_stay_unit():
    robot = ROBOTS["floating"]()
    q, v = start(robot)
    for method in ("euler", "rk4", "rk4-mk", "preserving"):
        end = pp.simulate(robot, q, 3.0 * v, duration=0.4, dt=0.005, method=method).q[-1]
        for h in robot.hinges:
            if h.kind.quaternion is not None:
                part = end[h.q][h.kind.quaternion :]
                assert np.linalg.norm(part) == pytest.approx(1.0, abs=1e-12), method
