"""Springs in the gears of an arm: stiff equations, and the method made for them.

The arm's gears swing faster than steps of 20 ms can follow. Explicit steps of that size blow up;
the linearly implicit method, which takes springs and dampers at the end of the step, goes on: of
first order on the way, and it comes to rest where a Runge-Kutta simulation with steps of 1 ms does.
"""

import numpy as np

import phipsi as pp
from phipsi.control import computed_torque

robot = pp.robots.flexible_joint_arm()
motors = robot.driven
print("driven:", [h.name for h in robot.hinges if robot.mask(h.name)[motors].any()])
target = np.where(motors, 0.6, 0.0)
task = {"target": target, "stiffness": 9.0, "damping": 6.0}


def run(dt, method):
    """The motion from the upright arm to the target, sampled every 0.1 s."""
    return pp.simulate(
        robot, robot.neutral(), None, computed_torque, duration=4.0, dt=dt, method=method,
        every=round(0.1 / dt), parameters=task, actuators=False,
    )  # fmt: skip


for method in ("euler", "rk4"):
    try:
        raise SystemExit(f"{method} should have failed: {run(0.02, method)}")
    except pp.Diverged as error:
        print(f"{method}: {error}")

exact = run(0.001, "rk4")
errors = [np.abs(run(dt, "implicit").q - exact.q).max(axis=1) for dt in (0.02, 0.005)]
for dt, error in zip((0.02, 0.005), errors, strict=True):
    print(f"implicit, steps of {1e3 * dt:g} ms: {error.max():.4f} rad off on the way", end=", ")
    print(f"{error[-1]:.0e} in the end")
print("the gears bend by", np.degrees(exact.q[-1][~motors]).round(2), "degrees under the load")
assert errors[1].max() < errors[0].max() / 3  # of first order
assert errors[0][-1] < 1e-3
