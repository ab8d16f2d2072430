"""What does the arm hold? Ten numbers of a payload from a noisy motion, by Gauss and Newton.

A PUMA 560 waves an unknown load about. Its accelerations are measured with noise, and explained by
forward dynamics: `program.derivative` gives how they vary with the mass, the first moments and the
moments of inertia of what the hand is with its load, and least squares improve the guess until
nothing changes. How far off the numbers may be is known from the same derivative.
"""

import numpy as np

import phipsi as pp
from phipsi.spatial import SpatialInertia

robot, hand = pp.robots.puma560(), "inertia:link6"
load = SpatialInertia.of(2.0, com=(0.03, -0.02, 0.12), inertia=np.diag([0.02, 0.015, 0.008]))
truth = robot.parameter(hand) + np.array(load.parameters, float)
loaded = robot.with_parameters({hand: truth})


def wave(robot, q, v, t):
    """Follow six sines of different frequencies, with the weight of the arm held."""
    target = 0.8 * np.sin(t * np.array([1.1, 1.7, 2.3, 3.1, 4.3, 5.3]))
    stiffness = np.array([400.0, 600.0, 200.0, 30.0, 30.0, 10.0])
    return stiffness * (target - q) - 0.2 * stiffness * v + pp.gravity_force(robot, q)


quiet = {"passive": False, "actuators": False}
motion = pp.simulate(loaded, np.zeros(6), None, wave, duration=8.0, every=10, **quiet)
q, v, tau = motion.q, motion.v, motion.tau
noise = 0.2  # rad/s²
rng = np.random.default_rng(0)
measured = pp.forward_dynamics(loaded, q, v, tau) + noise * rng.normal(size=v.shape)

accelerations = pp.forward_dynamics.compile(robot, inputs=[hand])
sensitivity = pp.forward_dynamics.derivative(hand).compile(robot, inputs=[hand])
guess = robot.parameter(hand)  # nothing in the hand
for step in range(7):
    error = measured - accelerations(q, v, tau, guess)
    J = sensitivity(q, v, tau, guess).reshape(-1, 10)
    change = np.linalg.lstsq(J, error.ravel())[0]
    guess = guess + change
    print(f"step {step}: {np.sqrt(np.mean(error**2)):8.4f} rad/s² unexplained")
deviation = noise * np.sqrt(np.diag(np.linalg.inv(J.T @ J)))

names = ("m", "hx", "hy", "hz", "Jxx", "Jxy", "Jxz", "Jyy", "Jyz", "Jzz")
for row in zip(names, truth, guess, deviation, strict=True):
    print("{:4} true {:9.5f}  found {:9.5f} ± {:.5f}".format(*row))
assert np.abs(change).max() < 1e-8 and np.all(np.abs(guess - truth) < 4 * deviation)
assert abs(np.sqrt(np.mean(error**2)) / noise - 1.0) < 0.02  # what is left is the noise
