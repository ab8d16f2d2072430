"""A double pendulum swings: energies, what is between samples, files and a figure.

Without motors and friction the energy stays, to the fourth order of the step. What is saved is
loaded again bit for bit. Files go to the folder given as the first argument, else to a temporary
one; the figure needs matplotlib and is left out without it.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import phipsi as pp

robot = pp.robots.double_pendulum()
motions = [pp.simulate(robot, [1.0, 0.5], duration=5.0, dt=dt) for dt in (0.01, 0.005)]
errors = [np.abs(m.energy - m.energy[0]).max() for m in motions]
print(f"energy errors {errors[0]:.1e} J and, with half the step, {errors[1]:.1e} J")
assert errors[0] < 1e-2 and errors[1] < errors[0] / 12  # fourth order: 16 and more

motion = motions[1]
print(motion)
print(
    "the tool at t = 1.2345 s:", pp.frame_pose(robot, motion.at(1.2345).q, "tool")[:3, 3].round(3)
)
swings = np.count_nonzero(np.diff(np.sign(motion.v[:, 0])))
print("the upper rod turns back", swings, "times, in the last second", end=" ")
last = motion[motion.t >= 4.0]
print(np.count_nonzero(np.diff(np.sign(last.v[:, 0]))))

with tempfile.TemporaryDirectory() as temporary:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
    folder.mkdir(parents=True, exist_ok=True)
    motion.save(folder / "swing.npz")  # everything, the robot too
    motion.save(folder / "swing.csv")  # for other programs
    again = pp.Trajectory.load(folder / "swing.npz")
    assert np.array_equal(again.q, motion.q) and again.robot == robot
    try:
        motion.plot(("q", "energy", "tool")).savefig(folder / "swing.png")
    except ImportError as error:
        print(error)
    print("written:", *sorted(file.name for file in folder.iterdir()))
