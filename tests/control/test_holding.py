"""Two arms hold an object: it follows its path, and is squeezed as commanded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phipsi as pp
from phipsi import control as c
from tests.control.cases import holding
from tests.zoo import close

SQUEEZE = 40.0


def test_a_box_follows_its_path_under_the_commanded_squeeze() -> None:
    robot, q, grasps = holding()
    goal, at = q.copy(), robot.hinge("object").q.start
    goal[at : at + 3] += (0.1, 0.1, 0.2)
    goal[at + 3 : at + 7] = pp.linalg.quaternion_exp((0.0, 0.0, 0.4))
    motion = pp.simulate(
        robot, q, None, c.on_path(c.object_control), duration=4.0, dt=0.005, method="euler",
        closures=grasps, every=10,
        parameters={"start": q, "goal": goal, "duration": 3.0, "grasps": grasps,
                    "squeeze": SQUEEZE},
    )  # fmt: skip
    path = c.joint_path(robot, motion.t, 3.0, q, goal).q[:, at : at + 7]
    assert np.abs(motion.q[:, at : at + 7] - path).max() < 1e-3
    for tip in ("left/tool", "right/tool"):
        assert np.abs(motion.signals[f"internal_force:{tip}"][:, 5] / SQUEEZE - 1.0).max() < 1e-3
        assert motion.signals[f"contact_force:{tip}"][:, 5].min() > 0.0
    assert motion.signals["clearance"].min() > 0.1


@pytest.mark.parametrize("floating", [False, True])
def test_arms_do_to_shears_what_is_asked_and_share_the_load(floating: bool) -> None:
    robot, q, grasps = holding(floating=floating, shears=True)
    rng = np.random.default_rng(0)
    aim = robot.integrate(q, rng.normal(0, 0.1, robot.nv))
    rate, ahead = rng.normal(size=(2, robot.nv))
    v, own = np.zeros(robot.nv), robot.freedoms("object")
    own_rows = np.isin(np.arange(robot.nv), own)
    weights = (3.0, 1.0)
    law: Any = c.object_control(
        robot, q, v, aim, rate, ahead, grasps=grasps, squeeze=SQUEEZE, sharing=weights,
        stiffness=20.0, damping=9.0,
    )  # fmt: skip
    assert not law["tau"][own_rows | ~robot.driven].any()
    qdd, forces = closed(robot, grasps, q, law["tau"])
    wanted = ahead + 9.0 * rate + 20.0 * robot.difference(q, aim)
    close(qdd[own], wanted[own], 1e-7)
    close(forces[5::6], law["pressure"], 1e-7)
    # of all forces that do it, less the squeeze, those least by the weights
    quiet = c.object_control(
        robot, q, v, aim, rate, ahead, grasps=grasps, sharing=weights, stiffness=20.0, damping=9.0
    )
    _, load = closed(robot, grasps, q, quiet["tau"])
    G = np.concatenate([pp.jacobian(robot, q, g.b).T for g in grasps], axis=1)[own]
    W = np.repeat(weights, 6)
    close(load, W * (G.T @ np.linalg.solve(G * W @ G.T, G @ load)), 1e-7)
    squeezed = forces - load
    close(G @ squeezed, np.zeros(len(own)), 1e-7)
    command = np.tile((0, 0, 0, 0, 0, SQUEEZE), 2)
    close(squeezed, command - np.linalg.pinv(G) @ (G @ command), 1e-7)


def closed(robot: pp.Robot, grasps: list[pp.Grasp], q: Any, tau: Any) -> tuple[Any, Any]:
    """Accelerations from rest, and the forces of the tips on the object in their axes, by dense
    algebra; the faces are where the tips are."""
    A = np.concatenate([pp.jacobian(robot, q, g.a) - pp.jacobian(robot, q, g.b) for g in grasps])
    M, C = pp.mass_matrix(robot, q), pp.bias_force(robot, q, 0.0 * tau)
    kkt = np.block([[M, -A.T], [A, np.zeros((len(A), len(A)))]])
    solved = np.linalg.solve(kkt, np.concatenate([tau - C, np.zeros(len(A))]))
    return solved[: robot.nv], -solved[robot.nv :]
