"""A controller of your own, compiled whole with the dynamics that it calls.

The program below is NumPy code: a virtual spring pulls the tool to a point, gravity is carried, the
joints are damped. Called with numbers it gives torques; handed to `simulate` it becomes a part of
one kernel with the robot and the integrator. The tool comes to rest at the point.
"""

import numpy as np

import phipsi as pp


@pp.program(shapes={"point": (3,), "stiffness": (), "damping": ()})
def pull(robot, q, v, point, stiffness=200.0, damping=40.0):
    """T = J*f − Bv + g(q), f = k (p_d − p): no inverse kinematics, no planning."""
    tool = pp.frame_pose(robot, q, "tool")
    away = point - tool[:3, 3]
    J = pp.jacobian(robot, q, "tool", reference="aligned")[3:]
    tau = J.T @ (stiffness * away) - damping * v + pp.gravity_force(robot, q)
    return {"tau": tau, "distance": np.linalg.norm(away)}  # all but tau is recorded


robot = pp.robots.seven_axis_arm()
q = np.array([0.3, 0.4, 0.6, 1.2, 0.3, 0.5, 0.0])
point = np.array([0.5, 0.6, 1.2])

now = pull(robot, q, np.zeros(7), point)  # compiled at the first call for a robot
print("torques at the start", now["tau"].round(1), "N·m")
kernel = pull.compile(robot, point=point)  # without the look-up, for loops of your own
assert np.allclose(kernel(q, np.zeros(7), point)["tau"], now["tau"])

motion = pp.simulate(
    robot, q, None, pull, duration=8.0, dt=0.005, every=8, parameters={"point": point}
)
distance = motion.signals["distance"]
print(f"{distance[0]:.2f} m away at first, {1e3 * distance[-1]:.2f} mm in the end")
assert distance[-1] < 1e-3 < 0.3 < distance[0]
assert np.abs(motion.v[-1]).max() < 1e-2
