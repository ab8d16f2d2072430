"""IFToMM A05: a flyball governor whose couplers are stiff springs with dampers."""

from __future__ import annotations

from functools import cache
from math import cos, hypot, pi, sin

import numpy as np
from scipy.integrate import solve_ivp

import phipsi as pp
from phipsi.typing import Array
from tests.problems.rows import Problem, Start, largest, rod

G, DENSITY, BALL = 9.81, 3000.0, 5.0
LENGTH, WIDTH, CUBE, OFFSET = 1.0, 0.01, 0.1, 0.05
ROD, SLIDER = DENSITY * LENGTH * WIDTH**2, DENSITY * CUBE**3
STIFFNESS, DAMPING, REST = 8e5, 4e4, 0.5
ALPHA, S, SPIN = pi / 6, 0.5, 2 * pi
"""Arms below the horizontal, height of the slider and speed of the shaft at the start."""

GOVERNOR = Problem(
    "A05",
    "A stiff flyball governor",
    "governor.py",
    "A shaft that spins freely, a slider on it, two arms hinged 0.05 m beside its top with masses "
    "of 5 kg at their ends, and from the middle of each arm to the slider a spring of 8·10⁵ N/m "
    "with a damper of 4·10⁴ N·s/m in place of a coupler; shaft and arms 1 × 0.01 × 0.01 m, slider "
    "0.1 m wide, 3000 kg/m³; s = 0.5 m, α = 30°, 2π rad/s at the start, 10 s (IFToMM A05). Four "
    "bodies, four hinges, two `pp.Spring`s, whose fastest rate is 8·10³ 1/s at the start. "
    "Reference: Lagrange's equations for α, s and the shaft, written by hand, by SciPy (DOP853, "
    "tolerance 1e-12). Errors are the largest of all samples. The dampers take energy, so that it "
    "is compared with the reference's. At 1 ms rk4 would diverge; the linearly implicit method, of "
    "first order, does not.",
    ("slider s [m]", "shaft [rad/s]", "energy [J]"),
)


def start() -> Start:
    """Springs at rest, the shaft at 2π rad/s."""
    builder = pp.Builder("governor", gravity=(0.0, 0.0, -G))
    z = (0.0, 0.0, 1.0)
    builder.body("shaft", **rod(ROD, LENGTH * np.array(z), WIDTH))
    builder.hinge("shaft", "revolute", "world", "shaft", axis=z)
    builder.body("slider", SLIDER, inertia=SLIDER * CUBE**2 / 6 * np.ones(3))
    builder.hinge("slider", "prismatic", "shaft", "slider", axis=z)
    springs: list[pp.Spring] = []
    for side, arm in ((1.0, "right"), (-1.0, "left")):
        x = np.array([1.0, 0.0, 0.0])
        builder.body(arm, **rod(ROD, LENGTH * x, WIDTH)).body(f"{arm}_ball", BALL)
        builder.hinge(
            arm, "revolute", "shaft", arm, position=(side * OFFSET, 0.0, LENGTH),
            rpy=(0.0, 0.0, 0.0 if side > 0 else pi), axis=(0.0, 1.0, 0.0),
        )  # fmt: skip
        builder.hinge(f"{arm}_ball", "weld", arm, f"{arm}_ball", position=LENGTH * x)
        builder.frame(f"{arm}_middle", arm, position=LENGTH / 2 * x)
        builder.frame(f"{arm}_eye", "slider", position=side * OFFSET * x)
        springs.append(pp.Spring(f"{arm}_middle", f"{arm}_eye", STIFFNESS, DAMPING, REST))
    robot = builder.build()
    first = {"shaft": 0.0, "slider": S, "right": ALPHA, "left": ALPHA}
    q = np.array([first[hinge.name] for hinge in robot.hinges])
    v = np.array([SPIN * (hinge.name == "shaft") for hinge in robot.hinges])
    return Start(robot, q, v, None, {"springs": springs})


def compare(motion: pp.Trajectory) -> tuple[float, ...]:
    """Slider, shaft and energy at every sample."""
    states = reference(float(motion.t[-1]), len(motion.t))
    height = motion.q[:, motion.robot.hinge("slider").q][:, 0]
    speed = motion.v[:, motion.robot.hinge("shaft").v][:, 0]
    return (
        largest(height - states[:, 1]),
        largest(speed - np.array([MOMENTUM / _inertia(a)[0] for a in states[:, 0]])),
        largest(motion.energy - np.array([_energy(y) for y in states])),
    )


# ---- Lagrange's equations for (α, s), with the angular momentum of the shaft --------------------

ARMS = 2 * (ROD * (LENGTH**2 / 3 + WIDTH**2 / 12) + BALL * LENGTH**2)
"""The inertia of both arms about their hinges."""


@cache
def reference(duration: float, samples: int) -> Array:
    """α, s and their rates, (samples, 4)."""
    t = np.linspace(0.0, duration, samples)
    y = [ALPHA, S, 0.0, 0.0]
    return solve_ivp(_rate, (0.0, duration), y, "DOP853", t, rtol=1e-12, atol=1e-12).y.T


def _rate(_: float, y: Array) -> tuple[float, float, float, float]:
    alpha, s, va, vs = y.tolist()
    length, x, z = _spring(alpha, s)
    across = LENGTH / 2 * sin(alpha), LENGTH / 2 * cos(alpha)  # −∂x/∂α, −∂z/∂α
    by_alpha = -(x * across[0] + z * across[1]) / length
    by_s = -z / length
    pull = STIFFNESS * (length - REST) + DAMPING * (by_alpha * va + by_s * vs)
    inertia, slope = _inertia(alpha)
    spin = MOMENTUM / inertia
    weight = G * LENGTH * cos(alpha) * (ROD + 2 * BALL)
    return (
        va,
        vs,
        (slope * spin**2 / 2 + weight - 2 * pull * by_alpha) / ARMS,
        -G - 2 * pull * by_s / SLIDER,
    )


def _spring(alpha: float, s: float) -> tuple[float, float, float]:
    """The length of a spring, and its legs from the slider to the middle of the arm."""
    x, z = LENGTH / 2 * cos(alpha), LENGTH - LENGTH / 2 * sin(alpha) - s
    return hypot(x, z), x, z


def _inertia(alpha: float) -> tuple[float, float]:
    """I(α) of all bodies about the shaft, and dI/dα."""
    c, s = cos(alpha), sin(alpha)
    along, across = ROD * WIDTH**2 / 6, ROD * (LENGTH**2 + WIDTH**2) / 12
    middle, end = OFFSET + LENGTH / 2 * c, OFFSET + LENGTH * c
    arm = ROD * middle**2 + along * s**2 + across * c**2 + BALL * end**2
    slope = -ROD * middle * LENGTH * s + 2 * (along - across) * s * c - 2 * BALL * end * LENGTH * s
    return along + SLIDER * CUBE**2 / 6 + 2 * arm, 2 * slope


MOMENTUM = _inertia(ALPHA)[0] * SPIN
"""The angular momentum about the shaft, which is conserved."""


def _energy(y: Array) -> float:
    alpha, s, va, vs = y.tolist()
    moving = (MOMENTUM**2 / _inertia(alpha)[0] + ARMS * va**2 + SLIDER * vs**2) / 2
    arm = ROD * (LENGTH - LENGTH / 2 * sin(alpha)) + BALL * (LENGTH - LENGTH * sin(alpha))
    lifted = G * (ROD * LENGTH / 2 + 2 * arm + SLIDER * s)
    return moving + lifted + STIFFNESS * (_spring(alpha, s)[0] - REST) ** 2


for method, dt, every, limits, tested in (
    ("rk4", 1e-4, 10, (1e-9, 1e-9, 1e-7), 1.0),
    ("dop853", 1e-3, 1, (1e-10, 1e-10, 1e-8), 0.0),
    ("radau", 1e-3, 1, (1e-10, 1e-9, 1e-7), 0.1),
    ("implicit", 1e-3, 1, (5e-2, 0.5, 10.0), 0.0),
    ("implicit", 1e-4, 10, (5e-3, 0.05, 1.0), 1.0),
):
    GOVERNOR.run(
        "10 s", start, compare, limits, tested=tested, method=method, dt=dt, every=every,
        duration=10.0,
    )  # fmt: skip
