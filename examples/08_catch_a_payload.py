"""A spacecraft catches a satellite that drifts by, turning; the arm gives way and comes to rest.

At the catch the velocities jump and energy is lost, as in every impact without rebound; momentum is
kept, by the jump and by all that follows. Afterwards the two fly on as one, joined by a closure
whose forces are recorded.
"""

import numpy as np

import phipsi as pp

CATCH, SPIN, DRIFT = 4.0, np.pi / 2, np.array([0.0, -0.15, 0.1])  # s, rad/s, m/s

satellite = pp.Builder("satellite").body("satellite", mass=80.0, inertia=(9, 10, 12))
satellite = satellite.hinge("satellite", "free", "world", "satellite").build()
robot = pp.combine([pp.robots.space_arm(), satellite])
q, v = robot.neutral(), np.zeros(robot.nv)
q[7:14] = 1.73, -0.04, -0.22, -0.4, -1.09, 0.85, 0.0

tool = pp.frame_pose(robot, q, "tool")
at, rates = robot.hinge("satellite").q, robot.hinge("satellite").v
q[at.start : at.start + 3] = tool[:3, 3] - CATCH * DRIFT  # it arrives at the tool in 4 s, and in
v[rates] = [0, 0, SPIN, *DRIFT]  # that time turns once about its own z axis


def give_way(robot, v, active):
    """Motors as dampers; the base and the satellite have none."""
    return -20.0 * active * v


joint = [pp.Loop("tool", "satellite", free="spherical")]  # a ball: it keeps turning
motion = pp.simulate(
    robot, q, v, give_way, duration=30.0, dt=0.01, every=10,
    events=[pp.Capture(CATCH, joint)],
)  # fmt: skip
before, after = motion[motion.t < CATCH], motion[motion.t >= CATCH]
print(motion.events[0][1])
print(f"energy {before.energy[-1]:.2f} J before, {after.energy[0]:.2f} J after the catch")
assert after.energy[0] < before.energy[-1]

change = np.abs(motion.momentum - motion.momentum[0]).max()
print(f"momentum changes by {change:.0e} of {np.linalg.norm(motion.momentum[0]):.0f}")
assert change < 1e-4

gap = np.linalg.norm(after.frame("tool")[:, :3, 3] - after.frame("satellite")[:, :3, 3], axis=1)
force = np.linalg.norm(after.signals["closure_force:tool"][:, 3:], axis=1)
print(f"they stay together within {1e3 * gap.max():.1g} mm; the joint carries {force.max():.1f} N")
arm = np.abs(motion.v[:, robot.driven]).max(axis=1)
print(f"the arm moves at up to {arm.max():.2f} rad/s, and at {arm[-1]:.3f} in the end")
assert gap.max() < 1e-3 and arm[-1] < arm.max() / 3
