"""Every law at random states against its formula in dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi import control as c
from phipsi.control import pose_path
from phipsi.control.tasks import Rows
from tests.zoo import State, close

K, B = 30.0, 7.0


class Dense:
    """What formulas are made of."""

    def __init__(self, robot: pp.Robot, frame: str = "tool", seed: int = 3) -> None:
        self.robot, self.s = robot, State(robot, seed=seed)
        q, v = self.q, self.v = self.s.q, 0.5 * self.s.v
        self.M, self.C = pp.mass_matrix(robot, q), pp.bias_force(robot, q, v)
        self.rub = pp.passive_forces(robot, q, v)
        self.target, self.rate = robot.random_state(seed + 1)
        start, goal = (pp.frame_pose(robot, x, frame) for x in (q, self.target))
        goal = pose_path(0.4, 1.0, start, goal).pose  # not half a turn away
        self.path = pose_path(0.7, 1.5, start, goal)
        R = start[:3, :3]
        turn = pp.linalg.quaternion_log(_quaternion(self.path.pose[:3, :3] @ R.T))
        self.error = np.concatenate([turn, self.path.pose[:3, 3] - start[:3, 3]])
        self.J, self.drift = self.at(frame)
        self.wanted = self.path.acceleration + K * self.error
        self.wanted = self.wanted + B * (self.path.velocity - self.J @ v)

    def at(self, frame: str) -> tuple[np.ndarray, np.ndarray]:
        """J and J̇v of a frame, world axes at its origin."""
        J = pp.jacobian(self.robot, self.q, frame, reference="aligned")
        rate = pp.jacobian_derivative(self.robot, self.q, self.v, frame, reference="aligned")
        return J, rate @ self.v


def _quaternion(R: np.ndarray) -> Any:
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(R).as_quat()
    return np.array([w, x, y, z])


@pytest.fixture(scope="module")
def puma() -> Dense:
    return Dense(pp.robots.puma560())


def test_joint_space_laws(puma: Dense) -> None:
    robot, q, v, gain = puma.robot, puma.q, puma.v, np.linspace(1, 2, 6)
    e, g = puma.target - q, pp.gravity_force(robot, q)
    tau = c.pd_gravity(robot, q, v, puma.target, stiffness=K * gain, damping=B)
    close(tau, K * gain * e - B * v + g)
    aim = (puma.target, puma.rate, puma.s.a)
    tau = c.computed_torque(robot, q, v, *aim, stiffness=K, damping=B * gain)
    ahead = puma.s.a + B * gain * (puma.rate - v) + K * e
    close(tau, puma.M @ ahead + puma.C - puma.rub)
    tau = c.passivity_based(robot, q, v, *aim, stiffness=K, damping=B, passive=False)
    ref, ref_rate = puma.rate + K * e, puma.s.a + K * (puma.rate - v)
    cor = pp.coriolis_matrix(robot, q, v)
    close(tau, puma.M @ ref_rate + cor @ ref + g - B * (v - ref))


def test_computed_torque_of_driven_joints_while_others_yield() -> None:
    x = Dense(pp.robots.snake(5), "tail")
    robot, q, v, held = x.robot, x.q, x.v, x.robot.driven
    tau = c.computed_torque(
        robot, q, v, x.target, x.rate, x.s.a, active=held, stiffness=K, damping=B
    )
    done = pp.forward_dynamics(robot, q, v, tau + x.rub)
    ahead = x.s.a + B * (x.rate - v) + K * robot.difference(q, x.target)
    close(done[held], ahead[held], 1e-8)
    assert not held.all() and not tau[~held].any()


def test_rate_feedback(puma: Dense) -> None:
    robot, q, v = puma.robot, puma.q, puma.v
    g = pp.gravity_force(robot, q)
    close(c.rate_feedback(robot, q, v, damping=B), -B * puma.M @ v + g - puma.rub)
    root = np.stack([pp.mass_matrix_sqrt_product(robot, q, x) for x in np.eye(6)], axis=1)
    close(root @ root.T, puma.M)
    gain = np.linspace(1, 2, 6)
    coupled = np.diag(gain) + 0.1
    tau = c.rate_feedback(robot, q, v, damping=gain, passive=False)
    close(tau, -root @ np.diag(gain) @ root.T @ v + g)
    tau = c.rate_feedback(robot, q, v, damping_matrix=coupled, passive=False)
    close(tau, -root @ coupled @ root.T @ v + g)


@pytest.mark.parametrize("attitude", ["axes", "weight", "geodesic"])
def test_pose_feedback_is_the_gradient_of_its_lyapunov_function(puma: Dense, attitude: str) -> None:
    robot, q, v, step = puma.robot, puma.q, puma.v, 1e-5
    A = np.random.default_rng(0).normal(size=(12, 12))
    how: dict[str, Any] = {
        "axes": {"position_gain": [50.0, 60.0, 70.0], "attitude_gain": [20.0, 30.0, 40.0]},
        "weight": {"weight": A @ A.T + np.eye(12)},
        "geodesic": {"attitude": "geodesic", "attitude_gain": 20.0},
    }[attitude]
    goal = puma.path.pose
    tau = c.pose_feedback(robot, q, v, goal, damping=B, passive=False, **how)
    around = [robot.integrate(q, s * step * np.eye(6)) for s in (1, -1)]
    up, down = (c.pose_lyapunov(robot, x, np.zeros(6), goal, **how) for x in around)
    slow = -B * puma.M @ v + pp.gravity_force(robot, q)
    close(tau - slow, -(up - down) / (2 * step), 1e-7)
    power = pp.kinetic_energy(robot, q, v)
    at_rest = c.pose_lyapunov(robot, q, np.zeros(6), goal, **how)
    close(c.pose_lyapunov(robot, q, v, goal, **how), at_rest + power)


def test_operational_space() -> None:
    x = Dense(pp.robots.seven_axis_arm())
    J, inverse = x.J, np.linalg.inv(x.M)
    pull = x.M @ (10.0 * (x.target - x.q) - 5.0 * x.v)
    chosen: list[tuple[Rows, slice]] = [("pose", slice(0, 6)), ("linear", slice(3, 6))]
    for rows, part in chosen:
        law = c.operational_space(
            x.robot, x.q, x.v, *x.path, posture=x.target, rows=rows, stiffness=K, damping=B
        )
        A = J[part]
        inertia = np.linalg.inv(A @ inverse @ A.T)
        aside = np.eye(7) - A.T @ inertia @ A @ inverse
        tau = A.T @ inertia @ (x.wanted - x.drift)[part] + aside @ pull + x.C - x.rub
        close(law["tau"], tau, 1e-8)
        close(law["position_error"], np.linalg.norm(x.error[3:]))
        close(law["attitude_error"], np.linalg.norm(x.error[:3]))


def test_hybrid_force_and_position_give_the_exact_force_against_a_rigid_wall() -> None:
    x = Dense(pp.robots.seven_axis_arm())
    axes = pp.linalg.rotation_matrix([0.9, 0.1, -0.2, 0.3])
    n = np.concatenate([np.zeros(3), axes[:, 2]])
    v = x.v - np.linalg.pinv(x.J) @ n * (n @ x.J @ x.v)  # along the wall
    x.v = v
    J, drift = x.at("tool")
    C = pp.bias_force(x.robot, x.q, v)
    law = c.hybrid_force_position(
        x.robot, x.q, v, x.path.pose, [0, 0, 0, 0, 0, 25.0], [0, 0, 0, 0, 0, 1], *x.path[1:],
        task_axes=axes, stiffness=K, damping=B,
    )  # fmt: skip
    row = n @ J
    kkt = np.block([[x.M, -row[:, None]], [row[None], np.zeros((1, 1))]])
    solved = np.linalg.solve(kkt, np.concatenate([law["tau"] + x.rub - C, [-n @ drift]]))
    close(solved[-1], np.float64(-25.0), 1e-8)
    found, wanted = J @ solved[:-1] + drift, x.path.acceleration + K * x.error
    wanted = wanted + B * (x.path.velocity - J @ v)
    along = np.eye(6) - np.outer(n, n)
    close(along @ found, along @ wanted, 1e-8)


def freely(x: Dense, held: np.ndarray, frame: str) -> tuple[np.ndarray, np.ndarray]:
    """J_G and the drift of a frame by partition of the mass matrix."""
    p = ~held
    J, drift = x.at(frame)
    inverse = np.linalg.inv(x.M[np.ix_(p, p)])
    J_G = np.zeros_like(J)
    J_G[:, held] = J[:, held] - J[:, p] @ inverse @ x.M[np.ix_(p, held)]
    return J_G, drift + J[:, p] @ inverse @ (x.rub - x.C)[p]


def test_resolved_acceleration_for_any_active_set() -> None:
    x = Dense(pp.robots.space_arm(panels=True))
    robot, q, v = x.robot, x.q, x.v
    cases: list[tuple[list[str], list[str], Rows]] = [
        ([], [], "pose"), (["elbow_pitch"], [], "linear"), ([], ["wrist_yaw"], "linear"),
        (["shoulder_roll"], ["wrist_pitch"], "linear"),
    ]  # fmt: skip
    for lost, locked, rows in cases:
        driven = robot.driven & ~robot.mask(*lost, *locked)
        held = driven | robot.mask(*locked)
        part = slice(0, 6) if rows == "pose" else slice(3, 6)
        law = c.resolved_acceleration(
            robot, q, v, robot.driven & ~robot.mask(*lost), *x.path, locked=robot.mask(*locked),
            rows=rows, stiffness=K, damping=B, null_damping=2.0, singular=1e-4,
        )  # fmt: skip
        J, drift = freely(x, held, "tool")
        J = (J * driven)[part]
        slow = -2.0 * driven * v
        qdd = slow + np.linalg.pinv(J) @ ((x.wanted - drift)[part] - J @ slow)
        known = np.where(held, 0.0, x.rub)
        tau = pp.hybrid_dynamics(robot, q, v, known, qdd, held).tau
        close(law["tau"], driven * (tau - x.rub), 1e-8)
        low = np.linalg.svd(J, compute_uv=False)[-1]
        assert low / np.sqrt(len(J)) <= law["clearance"] * (1 + 1e-6)
        assert law["clearance"] <= low * (1 + 1e-4)
        total = np.where(driven, law["tau"], 0.0) + x.rub  # and the frame does as told
        still = robot.mask(*locked)
        done = pp.hybrid_dynamics(robot, q, v, total, np.zeros(robot.nv), still).qdd
        close((x.J @ done + x.drift)[part], x.wanted[part], 1e-7)


def test_resolved_rate_moves_the_frame_at_any_momentum() -> None:
    x = Dense(pp.robots.space_arm())
    robot, q = x.robot, x.q
    wanted = x.path.velocity + K * x.error
    active, p = robot.driven, x.M @ x.v
    J, _ = freely(x, active, "tool")
    for momentum in (0.0 * p, p):
        v = c.resolved_rate(
            robot, q, active, *x.path[:2], stiffness=K, singular=1e-4, momentum=momentum
        )
        close(x.J @ v, wanted, 1e-8)
        close((x.M @ v)[~active], momentum[~active], 1e-8)
        away = v - np.where(active, np.linalg.pinv(J) @ (J @ v), v)
        close(away, 0.0 * v, 1e-8)  # the least rates that do


def test_reaction_mode_is_the_stacked_solution() -> None:
    x = Dense(pp.robots.dual_space_arm(), "left/tool")
    robot, q, v, held = x.robot, x.q, x.v, x.robot.driven
    home = x.path.pose @ np.linalg.inv(pp.frame_pose(robot, q, "left/tool"))
    home = home @ pp.frame_pose(robot, q, "base")
    law = c.reaction_mode(
        robot, q, v, held, *x.path, base_pose=home, frame="left/tool", base_rows="all",
        stiffness=K, damping=B, base_stiffness=K, base_damping=B, null_damping=2.0, singular=1e-7,
    )  # fmt: skip
    J, drift = freely(x, held, "left/tool")
    own, own_drift = freely(x, held, "base")
    pose, rates = pp.frame_pose(robot, q, "base"), x.at("base")[0] @ v
    turn = pp.linalg.quaternion_log(_quaternion(home[:3, :3] @ pose[:3, :3].T))
    back = K * np.concatenate([turn, home[:3, 3] - pose[:3, 3]]) - B * rates
    A, right = np.concatenate([J, own]), np.concatenate([x.wanted - drift, back - own_drift])
    slow = -2.0 * held * v
    qdd = slow + np.linalg.pinv(A, rcond=1e-12) @ (right - A @ slow)
    tau = pp.hybrid_dynamics(robot, q, v, np.zeros(robot.nv), qdd, held).tau
    close(law["tau"], held * tau, 1e-6)
    done = pp.forward_dynamics(robot, q, v, law["tau"])
    close(x.at("base")[0] @ done + x.at("base")[1], back, 1e-6)
    close(x.J @ done + x.drift, x.wanted, 1e-6)
