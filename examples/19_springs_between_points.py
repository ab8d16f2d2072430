"""A satellite on a tether, and a stiff strut: springs and dampers between points of bodies.

The tether joins two free bodies, whose energy and momentum are conserved. The strut is so stiff
that explicit steps of 1 ms blow up; the linearly implicit method sees its stiffness and damping,
and is of first order.
"""

import numpy as np

import phipsi as pp

builder = pp.Builder("pair", gravity=(0.0, 0.0, 0.0))
for name, mass in (("station", 50.0), ("satellite", 5.0)):
    builder.body(name, mass=mass, inertia=(0.4 * mass, 0.5 * mass, 0.6 * mass))
    builder.hinge(name, "free", "world", name)
pair = builder.frame("dock", "station", position=(1.0, 0.0, 0.0)).build()
q, v = pair.neutral(), np.zeros(pair.nv)
q[pair.hinge("satellite").q][:3] = 3.0, 0.5, 0.0
v[pair.hinge("satellite").v] = 0.1, 0.2, 0.0, 0.0, 0.4, 0.1
tether = pp.Spring("satellite", "dock", stiffness=30.0, rest_length=1.5)
motion = pp.simulate(pair, q, v, duration=10.0, dt=1e-3, every=10, springs=[tether])
along = motion.frame("satellite")[:, :3, 3] - motion.frame("dock")[:, :3, 3]
length = np.linalg.norm(along, axis=1)
print(f"the tether is between {length.min():.2f} m and {length.max():.2f} m long")
assert np.abs(motion.energy - motion.energy[0]).max() < 1e-8
assert np.abs(motion.momentum - motion.momentum[0]).max() < 1e-8

robot = pp.robots.double_pendulum()
q, v = np.array([0.8, 0.6]), np.array([1.0, 0.0])
distance = float(np.linalg.norm(pp.frame_pose(robot, q, "tool")[:3, 3]))
strut = pp.Spring("tool", "world", stiffness=8e5, damping=4e4, rest_length=distance)
how = {"duration": 0.2, "springs": [strut]}
try:
    raise SystemExit(f"it should have failed: {pp.simulate(robot, q, v, dt=1e-3, **how)}")
except pp.Diverged as error:
    print(f"rk4: {error}")
exact = pp.simulate(robot, q, v, dt=4e-6, every=500, **how)
errors = [
    np.abs(pp.simulate(robot, q, v, dt=dt, method="implicit", **how).q[-1] - exact.q[-1]).max()
    for dt in (2e-3, 1e-3)
]
print(f"implicit: {errors[0]:.1e} rad off with steps of 2 ms, {errors[1]:.1e} with 1 ms")
assert errors[1] < 0.6 * errors[0]
