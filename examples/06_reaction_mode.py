"""A free-flying arm reaches with its thrusters off, and the base does not turn ([UA] 7).

The arm has seven joints and the position of the tool takes three: the others hold the attitude of
the base. With the generalized Jacobian alone the tool arrives as well, but the base turns by
degrees.
"""

import numpy as np

import phipsi as pp
from phipsi.control import on_path, reaction_mode, resolved_acceleration

robot = pp.robots.space_arm()
q = robot.neutral()
q[7:] = 1.73, -0.04, -0.22, -0.4, -1.09, 0.85, 0.0  # the elbow is bent

start = pp.frame_pose(robot, q, "tool")
goal = start.copy()
goal[:3, 3] += -0.7, 0.6, -0.3  # [m]
way = {"start": start, "goal": goal, "duration": 8.0, "rows": "position"}

turned = {}
for controller in (resolved_acceleration, reaction_mode):
    motion = pp.simulate(
        robot, q, None, on_path(controller), duration=10.0, dt=0.01, method="midpoint", every=5,
        parameters=way,
    )  # fmt: skip
    base = robot.difference(motion.q[0], motion.q)[:, :3]  # rotation vector of the base
    turned[controller.name] = np.degrees(np.linalg.norm(base, axis=1).max())
    miss = motion.signals["position_error"][-1]
    angle = turned[controller.name]
    print(f"{controller.name:22} misses by {1e3 * miss:.2g} mm, the base turns {angle:.2g}°")
    assert miss < 1e-3
    assert np.abs(motion.momentum).max() < 1e-3  # nothing acts from outside: zero but for the steps

assert turned["reaction_mode"] < turned["resolved_acceleration"] / 10
