"""The formulas of a double pendulum, as a textbook has them.

Any program gives its results as SymPy expressions; numbers of the robot can stay numbers or become
symbols. The mass matrix is compared with the textbook's, the equations of motion with those that
Lagrange's equation makes of the energies, and a linear model at rest is had by differentiating.
What is too long to be read (every robot of some size) comes with its common parts named.

Needs SymPy: pip install "phipsi[symbolic]".
"""

import sympy

import phipsi as pp

robot = pp.robots.double_pendulum()
rods = ("inertia:link1", "inertia:link2", "placement:joint2")

M = pp.mass_matrix.symbolic(robot, inputs=rods)  # m mass, c centre, I inertia about it, l length
print("M =", M)

m1, m2, l, c1, c2, I1, I2, q2 = sympy.symbols("m_1 m_2 l_2 c_1 c_2 I_yy1 I_yy2 q_2", real=True)
corner = I2 + m2 * (c2**2 + l * c2 * sympy.cos(q2))
textbook = sympy.Matrix([
    [I1 + I2 + m1 * c1**2 + m2 * (l**2 + c2**2 + 2 * l * c2 * sympy.cos(q2)), corner],
    [corner, I2 + m2 * c2**2],
])  # fmt: skip
assert sympy.simplify(M - textbook) == sympy.zeros(2, 2)

q, v, a = (sympy.symbols(f"{x}_1 {x}_2", real=True) for x in "qva")
T = pp.kinetic_energy.symbolic(robot, inputs="all")
U = pp.potential_energy.symbolic(robot, inputs="all")
tau = pp.inverse_dynamics.symbolic(robot, inputs="all")
print("\ntau_2 =", tau[1])
for i in range(2):  # d/dt ∂T/∂v − ∂T/∂q + ∂U/∂q
    p = T.diff(v[i])
    rate = sum(p.diff(q[j]) * v[j] + p.diff(v[j]) * a[j] for j in range(2))
    assert sympy.simplify(rate - T.diff(q[i]) + U.diff(q[i]) - tau[i]) == 0

hanging = dict.fromkeys((*q, *v, *sympy.symbols("tau_1 tau_2", real=True)), 0)
A = pp.forward_dynamics.symbolic(robot).jacobian(q).subs(hanging)
print("\nstiffness at rest, over inertia:", A, "frequencies [rad/s]:")
print(*(sympy.sqrt(-x).evalf(4) for x in A.eigenvals()))
assert all(x < 0 for x in A.eigenvals())

definitions, qdd = pp.forward_dynamics.symbolic(pp.robots.humanoid(), shared=True)
print(f"\na humanoid: {len(definitions)} named parts, of which the last is\n{definitions[-1]}")
assert qdd.shape == (pp.robots.humanoid().nv, 1)
