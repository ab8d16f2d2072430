"""Two arms carry a box along a path and squeeze it with a force that is commanded ([SOA] 6).

The box of 5 kg is lifted and turned; the forces that move it are shared by the arms, and 40 N of
squeeze act on top without moving it. The simulation says which internal forces act: those
commanded, within 1 %.
"""

import numpy as np

import phipsi as pp
from phipsi.control import joint_path, object_control, on_path

SQUEEZE = 40.0  # [N]

world = pp.Builder("carrying")
world.body("box", mass=5.0, inertia=(0.05, 0.06, 0.04)).hinge("box", "free", "world", "box")
for side, sign in (("left", 1.0), ("right", -1.0)):
    place = pp.Transform.of(position=(0.0, 0.7 * sign, 0.0))
    world.add(pp.robots.seven_axis_arm(), prefix=f"{side}/", placement=place)
    face = {"position": (0.0, 0.2 * sign, 0.0), "rpy": (np.pi / 2 * sign, 0.0, 0.0)}
    world.frame(f"{side}/face", "box", **face)  # its z points into the box, as that of the tips
robot = world.build()
grasps = [pp.Grasp(f"{side}/tool", f"{side}/face", "rigid") for side in ("left", "right")]

q = robot.neutral()
q[robot.hinge("box").q] = [0.9, 0.0, 0.9, 1, 0, 0, 0]
for side, sign in (("left", 1.0), ("right", -1.0)):
    first = robot.hinge(f"{side}/shoulder_roll").q.start
    q[first : first + 6] = 0.0, 0.3 * sign, 0.3, 1.2, 0.3, 0.5 * sign
q = pp.close_loops(robot, grasps, q, np.zeros(robot.nv)).q  # about there, and exactly

goal, box = q.copy(), robot.hinge("box").q
goal[box][:3] += -0.2, 0.1, 0.2
goal[box][3:] = pp.linalg.quaternion_product(
    pp.linalg.quaternion_exp((0.0, 0.0, 0.4)), goal[box][3:]
)
task = {"start": q, "goal": goal, "duration": 3.0, "grasps": grasps, "squeeze": SQUEEZE}
motion = pp.simulate(
    robot, q, None, on_path(object_control), duration=4.0, dt=0.005, method="euler", every=10,
    closures=grasps, parameters=task,
)  # fmt: skip

path = joint_path(robot, motion.t, 3.0, q, goal).q
away = np.abs(robot.difference(motion.q, path)[:, robot.hinge("box").v]).max()
print(f"the box leaves its path by {1e3 * away:.2g} mm or mrad")
assert away < 1e-3
for tip in ("left/tool", "right/tool"):
    squeeze = motion.signals[f"internal_force:{tip}"][:, 5]
    force = np.linalg.norm(motion.signals[f"contact_force:{tip}"][:, 3:], axis=1)
    print(f"{tip} squeezes with {squeeze.min():.2f} to {squeeze.max():.2f} N", end=", ")
    print(f"{force.min():.1f} to {force.max():.1f} N in all")
    assert np.abs(squeeze / SQUEEZE - 1.0).max() < 0.01
