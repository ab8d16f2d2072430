"""One motion in three coordinates: joint rates, diagonal rates, and a pose of every body.

"diagonal" integrates ν = m*β, whose mass matrix is one ([DL]); "non-minimal" integrates every body
by itself from its neighbours' messages and puts it back onto its hinges after each step ([BI]). The
motion is the same, to the accuracy of the steps.
"""

import numpy as np

import phipsi as pp

robot = pp.robots.snake(4, base="free").with_gravity((0, 0, 0))
q, v = robot.random_state(rng=2)
v = 0.3 * v

motions = {
    name: pp.simulate(robot, q, v, duration=2.0, dt=0.01, every=20, coordinates=name, passive=False)
    for name in ("minimal", "diagonal", "non-minimal")
}
plain = motions["minimal"]
for name, motion in motions.items():
    away = np.abs(robot.difference(plain.q, motion.q)).max()
    kept = np.abs(motion.energy / motion.energy[0] - 1.0).max()
    print(f"{name:12} differs by {away:.0e} rad or m, energy changes by {kept:.0e}")
    assert away < 1e-5 and kept < 1e-5

nu = pp.total_rates(robot, plain.q, plain.v)  # what "diagonal" integrates
assert np.allclose(0.5 * (nu**2).sum(-1), plain.kinetic_energy)
