"""A double pendulum balances upright by a motor at its elbow alone: LQR on its linearization.

`pp.linearize` gives A and B of ẋ = A x + B δtau at the upright state; the Riccati equation of
optimal control gives the feedback. Near upright the motion is what the linear model foretells;
farther off it is still caught, and without the motor the pendulum falls.

Needs SciPy: pip install scipy.
"""

import numpy as np
from scipy.linalg import expm, solve_continuous_are

import phipsi as pp

robot = pp.robots.double_pendulum()
upright, still = np.array([np.pi, 0.0]), np.zeros(2)
assert np.allclose(pp.gravity_force(robot, upright), 0.0)  # it stands there without any force

A, B = pp.linearize(robot, upright, still, still)
elbow = B[:, 1:]  # the shoulder has no motor
print("poles without feedback:", np.sort(np.linalg.eigvals(A).real).round(2))
cost = solve_continuous_are(A, elbow, np.eye(4), 100.0 * np.eye(1))
K = elbow.T @ cost / 100.0
closed = A - elbow @ K
print("poles with feedback:   ", np.sort(np.linalg.eigvals(closed).real).round(2))
assert np.linalg.eigvals(A).real.max() > 3 and np.linalg.eigvals(closed).real.max() < -1


def balance(robot, q, v):
    """tau = −K (q ⊖ upright, v) at the elbow."""
    x = np.concatenate([robot.difference(upright, q), v])
    return np.array([0.0, -(K @ x)[0]])


def state(motion):
    """x = (δ, v) at every sample."""
    return np.concatenate([robot.difference(upright, motion.q), motion.v], axis=1)


off = np.array([0.05, -0.1])
for size in (0.01, 1.0):
    motion = pp.simulate(robot, upright + size * off, None, balance, duration=4.0, every=50)
    x = state(motion)
    foretold = np.array([expm(t * closed) @ x[0] for t in motion.t])
    error = np.abs(x - foretold).max() / np.abs(x).max()
    print(f"{size * off[0]:.4f} rad off: caught; the linear model errs by {100 * error:.3f} %")
    assert np.abs(x[-1]).max() < 1e-3 * size and error < size

fallen = pp.simulate(robot, upright + off, duration=4.0, every=50)
print(f"without the motor it falls: {np.abs(state(fallen)[:, 0]).max():.1f} rad off")
assert np.abs(state(fallen)[:, 0]).max() > 1.0
