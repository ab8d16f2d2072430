"""A spacecraft adrift with a swinging arm, by two methods with the same step of 10 ms.

Nothing acts from outside, so momentum must stay. The preserving method keeps it to rounding, and
its energy error stays as it is. Runge-Kutta, of higher order, begins with smaller errors, and they
grow.
"""

import numpy as np

import phipsi as pp

robot = pp.robots.space_arm()
q, v = robot.random_state(rng=1)
v = v * np.where(robot.mask("base"), 0.05, 2.0)  # the arm swings fast

drift, energy = {}, {}
for method in ("rk4", "preserving"):
    motion = pp.simulate(  # without stops, which would take energy
        robot, q, v, duration=200.0, dt=0.01, every=20, method=method, limits=False
    )
    h = motion.momentum.reshape(-1, 2, 3)  # angular, linear
    change = np.linalg.norm(h - h[0], axis=-1) / np.linalg.norm(h[0], axis=-1)
    drift[method] = change.max()
    parts = np.array_split(np.abs(motion.energy / motion.energy[0] - 1.0), 4)
    energy[method] = np.array([np.median(part) for part in parts])
    print(f"{method:10}  momentum changes by {drift[method]:.0e}, energy by quarters", end=" ")
    print(*(f"{e:.0e}" for e in energy[method]))

assert drift["preserving"] < 1e-12 < 1e-5 < drift["rk4"]
assert energy["preserving"][-1] < 2 * energy["preserving"][0]
assert energy["rk4"][-1] > 3 * energy["rk4"][0]
