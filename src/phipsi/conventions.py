"""The conventions of phipsi, in one place. Nothing else restates them.

Spatial vectors
    [angular; linear], 6 numbers. Velocity V = [ω; v], force f = [moment; force]. SI units.
Hinge map
    H is r × 6 as in the papers: the relative velocity across a hinge is H* β (child frame), the
    joint force is H f. 𝓜 (`mass`) is the joint-space mass matrix H φ M φ* H* + A; M is the block
    diagonal of body inertias, A the armature.
Bodies
    The world is the root and not a body. Bodies are numbered base to tip, parent < child; body i is
    moved by hinge i. The frame of a body is the one of its description, at the inboard hinge. The
    papers number tip to base: their k+1 is our parent, their k−1 our child.
Transport
    phi of body i is the pose of its frame in its parent's, T = T_placement · T_hinge(q), and acts
    as φ = [[R, l~R], [0, R]]: `phi @ force` carries a force to the parent, `phi.T @ motion` carries
    a motion from the parent.
Coordinates
    q (nq numbers) and v (nv numbers). Revolute, continuous, prismatic, helical: one number.
    Cylindrical: (angle, length). Universal: (first angle, second angle). Planar: q = (x, y, angle),
    v = [ω_n, v_x, v_y] in the child frame. Spherical: q = unit quaternion, v = angular velocity in
    the child frame. Free: q = [position; quaternion], v = body-frame spatial velocity [ω; v].
    Quaternions are scalar-first (w, x, y, z), rotate child to parent, and are normalised on entry.
Forces
    tau is the total joint force. Springs, dampers, friction and backlash are `passive_forces`; no
    algorithm adds them in secret. External forces act on the robot: [moment; force] in the named
    frame, at its origin.
Accelerations
    are true (gravity not subtracted) and spatial: the time derivative of the body-frame components
    of V. `classical=True` adds [0; ω × v].
Gravity
    a 3-vector of the model in the world frame.
Inertia parameters
    of a body, 10 numbers: [m, h_x, h_y, h_z, J_xx, J_xy, J_xz, J_yy, J_yz, J_zz], h = m·(centre of
    mass), J about the origin of the body frame.
Sources
    [SOA] Rodriguez, Kreutz-Delgado & Jain, "A spatial operator algebra for manipulator modeling and
    control". [BI] Jain & Rodriguez, "Base-invariant symmetric dynamics of free-flying
    manipulators". [UA] Jain & Rodriguez, "An analysis of the kinematics and dynamics of
    under-actuated manipulators". [DL] Jain & Rodriguez, "Diagonalized Lagrangian robot dynamics".
"""

from __future__ import annotations

from typing import Literal, get_args

GRAVITY: tuple[float, float, float] = (0.0, 0.0, -9.81)
"""Default gravity [m/s²], world frame."""

WORLD = "world"
"""The reserved name of the root, which is not a body."""

Reference = Literal["local", "world", "aligned"]
"""Frames a spatial result can be asked for in: the body's own; the world's axes and origin; the
world's axes at the body's own origin."""
REFERENCES: tuple[Reference, ...] = get_args(Reference)
