"""IFToMM A03: Andrews' squeezer mechanism, against the test set for initial value problems.

Symbols are those of Hairer & Wanner II, section VII.7: β, Θ, γ, Φ, δ, Ω, ε are the coordinates of
the hinges, K1 … K7 the bodies, E the point where K2, K3, K4 and K6 meet.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.integrate import solve_ivp

import phipsi as pp
from phipsi.typing import Array
from tests.problems.rows import Problem, Start, largest

MASS = np.array([0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498])
INERTIA = np.array([2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5])
A, B, C = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)
D_LENGTH, DA, E_LENGTH, EA = 0.028, 0.0115, 0.02, 0.01421
RR, RA, SS, SA, SB, SC, SD = 0.007, 0.00092, 0.035, 0.01874, 0.01043, 0.018, 0.02
TA, TB, U, UA, UB, ZF, ZT, FA = 0.02308, 0.00916, 0.04, 0.01228, 0.00449, 0.02, 0.04, 0.01421
STIFFNESS, REST, TORQUE = 4530.0, 0.07785, 0.033

HINGES = ("beta", "theta", "gamma", "phi", "delta", "omega", "epsilon")
FIRST = np.array([
    -0.0617138900142764496, 0.0, 0.455279819163070380, 0.222668390165885885,
    0.487364979543842550, -0.222668390165885885, 1.23054744454982119,
])  # fmt: skip
"""The angles at t = 0, at rest."""
LAST = np.array([
    15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948,
    0.5244099658805304, 0.5347301163226948, 1.048080741042263,
])  # fmt: skip
"""The angles at t = 0.03 s, as published (PSIDE, tolerances 1e-14, on a Cray C90)."""

SQUEEZER = Problem(
    "A03",
    "Andrews' squeezer mechanism",
    "squeezer.py",
    "Seven bodies in a plane, three loops, a spring of 4530 N/m and a motor of 0.033 N·m, from "
    "rest to t = 0.03 s, 2.5 turns of the crank (IFToMM A03; test set for IVP solvers of Bari; "
    "Hairer & Wanner, Solving ODEs II, VII.7). Seven revolute hinges, which are the coordinates of "
    "the publication, three cut joints of two rows each and a `pp.Spring`. References: the "
    "published angles at 0.03 s, and the textbook's equations integrated by SciPy (DOP853, "
    "tolerance 1e-12). The published angles are off by 1.4e-9 rad themselves: SciPy, Runge-Kutta "
    "steps of 1 µs and phipsi agree to 1e-12. The error of the energy (kinetic, and that of "
    "the spring, less the work of the motor) is the largest of all samples.",
    ("published angles [rad]", "angles [rad]", "rates [rad/s]", "energy [J]"),
)


def start() -> Start:
    """The mechanism cut open at E, and what closes it."""
    builder = pp.Builder("squeezer", gravity=(0.0, 0.0, 0.0))
    rows = (  # body, parent, hinge, its place, centre of mass, frame, its place
        ("K1", "world", "beta", (0, 0), (RA, 0), "crank", (RR, 0)),
        ("K2", "K1", "theta", (RR, 0), (-DA, 0), "E2", (-D_LENGTH, 0)),
        ("K3", "world", "gamma", B, (SB, -SA), "E3", (0, -SS)),
        ("K5", "world", "delta", A, (TA, TB), "end5", (ZT, 0)),
        ("K4", "K5", "phi", (ZT, 0), (0, EA - E_LENGTH), "E4", (0, -E_LENGTH)),
        ("K7", "world", "epsilon", A, (UA, -UB), "end7", (0, -U)),
        ("K6", "K7", "omega", (0, -U), (ZF - FA, 0), "E6", (ZF, 0)),
    )
    for body, parent, hinge, place, com, frame, point in rows:
        k = int(body[1]) - 1
        flat = np.array([0.5, 0.5, 1.0]) * INERTIA[k]
        builder.body(body, MASS[k], (*com, 0.0), flat)
        builder.hinge(hinge, "revolute", parent, body, position=(*place, 0.0), axis=(0.0, 0.0, 1.0))
        builder.frame(frame, body, position=(*point, 0.0))
    builder.frame("D", "K3", position=(SD, -SC, 0.0)).frame("C", position=(*C, 0.0))
    spring = pp.Spring("D", "C", STIFFNESS, rest_length=REST)
    robot = builder.build()
    in_plane = np.eye(6)[:, [3, 4]]
    loops = [pp.Loop("E2", frame, free=in_plane) for frame in ("E3", "E4", "E6")]
    q = np.zeros(7)
    q[_order(robot)] = FIRST
    return Start(robot, q, None, drive, {"closures": loops, "springs": [spring]})


@pp.program
def drive(robot: pp.Robot, q: Array):
    """The motor at β."""
    return np.concatenate([[TORQUE], np.zeros(6)])


def compare(motion: pp.Trajectory) -> tuple[float, ...]:
    """The last angles and rates beside the references, the energy at every sample."""
    order = _order(motion.robot)
    q, v = motion.q[:, order], motion.v[:, order]
    energy = motion.energy - TORQUE * q[:, 0]
    return (
        largest(q[-1] - LAST),
        largest(q[-1] - reference()[:7]),
        largest(v[-1] - reference()[7:]),
        largest(energy - energy[0]),
    )


def _order(robot: pp.Robot) -> list[int]:
    """The places of β, Θ, γ, Φ, δ, Ω, ε in q."""
    return [robot.hinge(name).q.start for name in HINGES]


# ---- the textbook's equations -------------------------------------------------------------------


@cache
def reference() -> Array:
    """Angles and rates at t = 0.03 s by SciPy. At tolerances below 1e-12 rounding decides: at 1e-13
    they are off by 1.5e-11 and 6e-9 on a machine without AVX-512."""
    y = np.concatenate([FIRST, np.zeros(7)])
    return solve_ivp(_rate, (0.0, 0.03), y, "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]


def _rate(_: float, y: Array) -> Array:
    """[M G*; G 0][q̈; λ] = [f; −Ġq̇], M, f and the positions g of E as in the textbook."""
    q, v = y[:7], y[7:]
    M, f = _inertia_and_force(q, v)
    G = _closure_rate(q, np.eye(7))
    step = 1e-200  # the derivative along v by a complex step is exact
    bias = np.imag(_closure_rate(q + 1j * step * v, v)) / step
    whole = np.block([[M, G.T], [G, np.zeros((6, 6))]])
    return np.concatenate([v, np.linalg.solve(whole, np.concatenate([f, -bias]))[:7]])


def _closure_rate(q: Array, v: Array) -> Array:
    """The rate of E as a point of K2 less its rate as a point of K3, K4 and K6, (6,); or (6, n) of
    rates v (7, n)."""
    beta, theta, gamma, phi, delta, omega, epsilon = q
    vb, vt, vg, vp, vd, vo, ve = v

    def turning(angle: complex, rate: Array) -> Array:
        return np.multiply.outer([-np.sin(angle), np.cos(angle)], rate)

    second = RR * turning(beta, vb) - D_LENGTH * turning(beta + theta, vb + vt)
    quarter = np.pi / 2  # (sin, −cos) of an angle is the direction a quarter turn before it
    third = SS * turning(gamma - quarter, vg)
    fourth = ZT * turning(delta, vd) + E_LENGTH * turning(phi + delta - quarter, vp + vd)
    sixth = U * turning(epsilon - quarter, ve) + ZF * turning(omega + epsilon, vo + ve)
    return np.concatenate([second - third, second - fourth, second - sixth])


def _inertia_and_force(q: Array, v: Array) -> tuple[Array, Array]:
    """M (7, 7) and f (7,)."""
    _, theta, gamma, phi, _, omega, _ = q
    vb, vt, _, vp, vd, vo, ve = v
    m, i = MASS, INERTIA
    e, z = E_LENGTH - EA, ZF - FA
    M, f = np.zeros((7, 7)), np.zeros(7)
    M[0, 0] = m[0] * RA**2 + m[1] * (RR**2 - 2 * DA * RR * np.cos(theta) + DA**2) + i[0] + i[1]
    M[0, 1] = M[1, 0] = m[1] * (DA**2 - DA * RR * np.cos(theta)) + i[1]
    M[1, 1] = m[1] * DA**2 + i[1]
    M[2, 2] = m[2] * (SA**2 + SB**2) + i[2]
    M[3, 3] = m[3] * e**2 + i[3]
    M[3, 4] = M[4, 3] = m[3] * (e**2 + ZT * e * np.sin(phi)) + i[3]
    M[4, 4] = m[3] * (ZT**2 + 2 * ZT * e * np.sin(phi) + e**2) + m[4] * (TA**2 + TB**2)
    M[4, 4] += i[3] + i[4]
    M[5, 5] = m[5] * z**2 + i[5]
    M[5, 6] = M[6, 5] = m[5] * (z**2 - U * z * np.sin(omega)) + i[5]
    M[6, 6] = m[5] * (z**2 - 2 * U * z * np.sin(omega) + U**2) + m[6] * (UA**2 + UB**2)
    M[6, 6] += i[5] + i[6]
    lever = np.array([
        SC * np.cos(gamma) - SD * np.sin(gamma), SC * np.sin(gamma) + SD * np.cos(gamma)
    ])  # fmt: skip
    x = B[0] + SD * np.cos(gamma) + SC * np.sin(gamma) - C[0]
    y = B[1] + SD * np.sin(gamma) - SC * np.cos(gamma) - C[1]
    length = np.hypot(x, y)
    f[0] = TORQUE - m[1] * DA * RR * vt * (vt + 2 * vb) * np.sin(theta)
    f[1] = m[1] * DA * RR * vb**2 * np.sin(theta)
    f[2] = -STIFFNESS * (length - REST) / length * (lever @ [x, y])
    f[3] = m[3] * ZT * e * vd**2 * np.cos(phi)
    f[4] = -m[3] * ZT * e * vp * (vp + 2 * vd) * np.cos(phi)
    f[5] = -m[5] * U * z * ve**2 * np.cos(omega)
    f[6] = m[5] * U * z * vo * (vo + 2 * ve) * np.cos(omega)
    return M, f


for method, dt, limits, tested in (
    ("rk4", 1e-6, (1e-8, 1e-11, 1e-8, 1e-12), 0.03),
    ("rk4", 1e-5, (1e-8, 1e-8, 1e-5, 1e-8), 0.0),
    ("dop853", 1e-4, (1e-8, 1e-9, 1e-6, 1e-9), 0.0),
):
    SQUEEZER.run(
        "to 0.03 s", start, compare, limits, tested=tested, method=method, dt=dt, duration=0.03
    )
