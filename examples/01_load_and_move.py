"""A robot from a file or from the package, and the functions that move it.

A two-link arm is read from URDF text (a file name works the same) and a PUMA 560 is taken from the
package. Forces that inverse dynamics gives for an acceleration bring about that acceleration, for
one state and for a thousand at once.
"""

import numpy as np

import phipsi as pp

URDF = """
<robot name="elbow">
  <link name="ground"/>
  <link name="upper"><inertial><origin xyz="0 0 -0.2"/><mass value="2"/>
    <inertia ixx="0.03" iyy="0.03" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0 0 -0.15"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="continuous"><parent link="ground"/><child link="upper"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
    <origin xyz="0 0 -0.4"/><axis xyz="0 1 0"/>
    <limit lower="-2.5" upper="0" effort="20" velocity="5"/></joint>
</robot>
"""
arm = pp.load(URDF)  # or pp.load("arm.urdf", base="free")
print(arm)

q, v = np.array([0.3, -0.8]), np.array([1.0, 0.0])
hold = pp.gravity_force(arm, q)
print("to hold it there takes", hold.round(2), "N·m")
assert np.allclose(pp.forward_dynamics(arm, q, 0 * v, hold), 0.0)

puma = pp.robots.puma560()  # pp.robots.ROBOTS names them all
q, v = puma.random_state(rng=0, batch=(1000,))
a = np.ones(6)  # one value for all rows, or one per row
tau = pp.inverse_dynamics(puma, q, v, a)  # (1000, 6)
print("of 1 000 states of a PUMA the largest torque is", np.abs(tau).max().round(), "N·m")
assert np.allclose(pp.forward_dynamics(puma, q, v, tau), a)

power = (tau * v).sum(-1)  # all of it becomes kinetic and potential energy
dt = 1e-6
later, faster = puma.integrate(q, dt * v), v + dt * a
gain = pp.kinetic_energy(puma, later, faster) - pp.kinetic_energy(puma, q, v)
gain = gain + pp.potential_energy(puma, later) - pp.potential_energy(puma, q)
print("power and rate of energy differ by", f"{np.abs(gain / dt - power).max():.0e}", "W")
assert np.allclose(gain / dt, power, rtol=1e-3, atol=1e-2)
