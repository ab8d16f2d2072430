"""A simulation as a TOML file: a shipped one, and one of your own with a law of your own.

Scenarios need no Python (`phipsi simulate two_arms_box`), and are loaded, changed and run from
Python all the same. The second one hands a controller over by name: it makes the arm's joints
springs.
"""

import tempfile
from pathlib import Path

import numpy as np

import phipsi as pp
from phipsi import scenarios

print("shipped:", *scenarios.SCENARIOS)
shipped = scenarios.load("puma_diagonal").changed(duration=3.0, dt=0.005)
motion = shipped.run()
print(shipped, "->", motion)
assert motion.duration == 3.0

TEXT = """
title = "A PUMA on springs"
[robot]
name = "puma560"
[start.q_deg]
joint2 = 40
joint5 = 50
[simulation]
duration = 4.0
dt = 0.005
every = 10
passive = false                    # without the friction of its gears
[controller]
law = "springs"
stiffness = 60.0
[output]
frames = ["tool"]
"""


@pp.program
def springs(robot, q, v, *, stiffness=10.0):
    """T = −kq − Bv + g."""
    return -stiffness * q - 12.0 * v + pp.gravity_force(robot, q)


with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "springs.toml"
    file.write_text(TEXT)
    motion = scenarios.load(file, laws={"springs": springs}).run()
print("joint 2:", np.degrees(motion.q[::20, 1]).round(1), "degrees")
assert np.isclose(motion.q[0, 1], np.radians(40))
assert np.abs(motion.q[-1]).max() < np.radians(5) and "tool" in motion.frames
