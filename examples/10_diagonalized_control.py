"""Decoupled rate feedback: the energy of a PUMA falls as exp(−2ct), whatever it does ([DL] 8.1).

In total rates ν = m*β the kinetic energy is ½ν·ν. Slowing each of them by itself, ε = −cν, takes
the energy away at one known rate. Under dampers at the joints it falls as it happens to.
"""

import numpy as np

import phipsi as pp
from phipsi.control import rate_feedback

robot, c = pp.robots.puma560(), 0.7
q = np.array([0.2, 0.6, -0.8, 0.3, 0.9, -0.2])
v = np.random.default_rng(0).normal(size=6)


def joint_dampers(robot, q, v):
    """T = −Bβ + g, B the diagonal of c𝓜 at a stretched-out PUMA."""
    return -c * np.diag(pp.mass_matrix(robot, robot.neutral())) * v + pp.gravity_force(robot, q)


quiet = {"passive": False, "actuators": False}  # without friction, and motors as strong as it takes
times = {"duration": 3.0, "dt": 0.005, "every": 60}
decoupled = pp.simulate(
    robot, q, v, rate_feedback, parameters={"damping": c, "passive": False}, **times, **quiet
)
damped = pp.simulate(robot, q, v, joint_dampers, **times, **quiet)

E0 = decoupled.kinetic_energy[0]
exact = E0 * np.exp(-2 * c * decoupled.t)
print("t [s]   E₀exp(−2ct)   decoupled   joint dampers [J]")
for row in zip(decoupled.t, exact, decoupled.kinetic_energy, damped.kinetic_energy, strict=True):
    print("{:5.2f} {:13.6f} {:11.6f} {:15.6f}".format(*row))
assert np.allclose(decoupled.kinetic_energy, exact, rtol=1e-6)
assert not np.allclose(damped.kinetic_energy, exact, rtol=0.05)
