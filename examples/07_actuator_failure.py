"""A motor fails on the way, and the joints that are left bring the tool to its target ([UA] 6.2).

Halfway the elbow of a free-flying arm is locked by its brake, or its wrist swings free. The
controller is told which joints are still `active`, and its generalized Jacobian becomes that of
those. A controller that is not told misses.
"""

import numpy as np

import phipsi as pp
from phipsi.control import on_path, pose_path, resolved_acceleration

robot = pp.robots.space_arm()
q = robot.neutral()
q[7:] = -0.6, 1.0, 1.2, 1.4, -0.4, -0.7, 0.0
start = pp.frame_pose(robot, q, "tool")
goal = start.copy()
goal[:3, 3] += -0.4, 0.1, -0.3  # [m]
way = {"start": start, "goal": goal, "duration": 6.0}


@pp.program(shapes={"t": (), "start": (4, 4), "goal": (4, 4), "duration": ()})
def unaware(robot, t, q, v, start, goal, duration):
    """The same controller, which takes all motors for working."""
    target = pose_path(t, duration, start, goal)
    return resolved_acceleration(robot, q, v, robot.driven, *target, rows="position")


aware = on_path(resolved_acceleration)
miss = {}
for hinge, how, controller, more in (
    ("elbow_pitch", "locked", aware, {"rows": "position"}),
    ("wrist_pitch", "free", aware, {"rows": "position"}),
    ("wrist_pitch", "free", unaware, {}),
):
    motion = pp.simulate(
        robot, q, None, controller, duration=7.0, dt=0.002, method="euler", every=25,
        parameters={**way, **more}, events=[pp.Failure(3.0, hinge, how)],
    )  # fmt: skip
    miss[controller.name, hinge] = motion.signals["position_error"][-1]
    print(motion.events[0][1])
    print(f"  {controller.name} ends {1e3 * miss[controller.name, hinge]:.2g} mm from its target")
    speed = np.abs(motion.v[motion.t >= 3.0, robot.hinge(hinge).v])
    assert (speed.max() == 0.0) == (how == "locked")  # a brake holds, a free joint swings

assert miss[aware.name, "elbow_pitch"] < 1e-3 and miss[aware.name, "wrist_pitch"] < 1e-3
assert miss["unaware", "wrist_pitch"] > 1e-2
