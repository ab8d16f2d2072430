"""Gains by trial: 4 096 closed loops, each with gains of its own, in one call.

A PUMA 560 with its friction and the limits of its motors moves to a target under springs and
dampers at its joints. Each row of the batch has another stiffness and damping; the best is the one
nearest to the target over the whole second. To its stiffness belongs its damping: with less the arm
overshoots, with more it is late.
"""

import time

import numpy as np

import phipsi as pp
from phipsi.control import pd_gravity

robot = pp.robots.puma560()
start = np.array([0.2, 0.6, -0.8, 0.3, 0.9, -0.2])
target = start + np.array([0.5, -0.4, 0.4, 0.6, -0.5, 0.4])

rng = np.random.default_rng(0)
scale = np.array([2.0, 4.0, 1.0, 0.2, 0.2, 0.2])  # heavy axes, light axes
stiffness = 10 ** rng.uniform(1, 3.5, (4096, 1)) * scale
damping = 10 ** rng.uniform(0, 3, (4096, 1)) * scale
gains = {"target": target, "stiffness": stiffness, "damping": damping}

begin = time.perf_counter()
motions = pp.rollout(
    robot, start, None, pd_gravity, duration=1.0, dt=0.002, every=10, parameters=gains
)
print(motions)
print(f"{4096 * 500} steps, compilation included: {time.perf_counter() - begin:.1f} s")

error = np.linalg.norm(motions.q - target, axis=-1).mean(axis=-1)  # (4096,); NaN: it diverged
best, median = int(np.nanargmin(error)), np.nanmedian(error)
print(f"mean error {error[best]:.3f} rad with the best gains, {median:.3f} with the median ones")
print("stiffness", stiffness[best].round(0), "damping", damping[best].round(1))
assert error[best] < 0.6 * median

alike = np.flatnonzero(np.abs(np.log(stiffness / stiffness[best])[:, 0]) < 0.3)
alike = alike[np.argsort(damping[alike, 0])]  # rows of about that stiffness, by damping
print("errors by damping:", *error[alike[:: len(alike) // 6]].round(2))
assert min(error[alike[0]], error[alike[-1]]) > 1.2 * error[best]

own = {"target": target, "stiffness": stiffness[best], "damping": damping[best]}
alone = pp.simulate(
    robot, start, None, pd_gravity, duration=1.0, dt=0.002, every=10, parameters=own
)
assert np.allclose(alone.q, motions.q[best], atol=1e-9)  # a row is that simulation
assert np.abs(alone.q[-1] - target).max() < 0.05
