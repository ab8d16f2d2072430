"""The mass matrix as the papers write it, inverted by the identities of the papers.

HφMφ*H* + A belongs to no robot. Asked for its inverse, phipsi derives (I − HψK)*D⁻¹(I − HψK),
prints each step with its source, tells the recursion that this is, and runs it in O(N). The same
numbers come from the dense matrix.
"""

import numpy as np

import phipsi as pp
from phipsi.operators import A, C, H, J, M, T, phi

mass = H @ phi @ M @ phi.T @ H.T + A
inverse = mass.inv.simplify()
print(mass, "has the inverse", inverse)
print(mass.inv.simplify(trace=True))
assert str(inverse) == "(I − HψK)*D⁻¹(I − HψK)"

robot = pp.robots.space_arm()
acceleration = mass.inv @ (T - C)
print(acceleration.explain(robot))  # the articulated body algorithm, as pseudo-code

q, _ = robot.random_state(rng=0)
forces = np.ones(robot.nv)
solved = mass.inv.on(robot, q) @ forces  # by two sweeps; no matrix is formed
dense = np.linalg.solve(pp.mass_matrix(robot, q), forces)
print("sweeps and dense algebra differ by", f"{np.abs(solved - dense).max():.0e}")
assert np.allclose(solved, dense)

Y = (J("tool") @ mass.inv @ J("tool").T).on(robot, q)  # how the tool yields to forces
print("pushed by 1 N along its x axis the tool accelerates by", (Y @ np.eye(6)[3]).round(4))
assert np.allclose(Y.matrix(), pp.operational_inertia_inverse(robot, q, "tool"))
