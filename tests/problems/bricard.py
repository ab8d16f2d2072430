"""IFToMM A04: Bricard's mechanism, whose loop is redundant, from every cut.

Its configurations are a smooth closed curve (Arponen, Piipponen & Tuomela, Kinematic analysis of
Bricard's mechanism, Helsinki 2007): pins 0, 2, 4 turn by an angle a, pins 1, 3, 5 by an angle b,
both 0 at the start, and (1 + sin a)(1 + sin b) = 1.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
from scipy.integrate import solve_ivp

import phipsi as pp
from phipsi.typing import Array
from tests.problems.rows import Problem, Start, drift, largest, rod

G = 9.81
POINTS = np.array([
    (0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1),
], float)  # fmt: skip
"""Where the pins are at the start; rod k goes from pin k to pin k + 1, and pins 0 and 5 are fixed
to the world."""
AXES = np.array([
    (0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0),
], float)  # fmt: skip
MASS, WIDTH, PINS = 1.0, 0.1, 6
ENDS = POINTS[1:] - POINTS[:-1]
"""The rods, from pin to pin."""

BRICARD = Problem(
    "A04",
    "Bricard's mechanism",
    "bricard.py",
    "Five rods of 1 m, 1 kg and 0.1 m square, six pins along the edges of a cube, from rest, "
    "gravity along −y, 10 s (IFToMM A04). Five hinges and a cut pin of five rows: one of them "
    "depends on the others at every position, and the mechanism has one freedom instead of none. "
    "The tree is cut at each of the six pins in turn. Reference: the curve of its configurations "
    "(Arponen, Piipponen & Tuomela 2007), its one freedom integrated by SciPy (DOP853, tolerance "
    "1e-12). Errors are the largest of all samples.",
    ("pins [m]", "energy [J]"),
)


def start(cut: int) -> Start:
    """Rods before the cut pin hang from pin 0, those after it from pin 5."""
    builder = pp.Builder(f"bricard_{cut}", gravity=(0.0, -G, 0.0))

    def add(k: int, parent: str, inboard: int, before: Array) -> None:
        """Rod k from pin `inboard` on; `before` is the pin where its parent begins."""
        outboard = 2 * k + 1 - inboard
        end = POINTS[outboard] - POINTS[inboard]
        builder.body(f"rod{k}", **rod(MASS, end, WIDTH))
        builder.frame(f"P{outboard}_rod{k}", f"rod{k}", position=end)
        builder.hinge(
            f"pin{inboard}", "revolute", parent, f"rod{k}",
            position=POINTS[inboard] - before, axis=AXES[inboard],
        )  # fmt: skip

    for k in range(cut):
        add(k, f"rod{k - 1}" if k else "world", k, POINTS[max(k - 1, 0)])
    for k in range(4, cut - 1, -1):
        last = k == 4
        add(k, "world" if last else f"rod{k + 1}", k + 1, POINTS[0 if last else k + 2])
    builder.frame("P0_world", position=POINTS[0]).frame("P5_world", position=POINTS[5])
    robot = builder.build()
    sides = (f"P{cut}_{'world' if k in (-1, 5) else f'rod{k}'}" for k in (cut - 1, cut))
    loop = pp.Loop(*sides, free="revolute", axis=AXES[cut])
    return Start(robot, np.zeros(robot.nq), None, None, {"closures": [loop]})


def compare(motion: pp.Trajectory) -> tuple[float, ...]:
    """The moving pins beside the reference, and the energy."""
    expected = reference(float(motion.t[-1]), len(motion.t))
    errors = [
        largest(motion.frame(name)[:, :3, 3] - expected[:, int(name[1])])
        for name in motion.robot.frames if name[0] == "P" and name[1] in "1234"
    ]  # fmt: skip
    return max(errors), drift(motion)


# ---- one freedom --------------------------------------------------------------------------------

INERTIAS = [rod(MASS, end, WIDTH)["inertia"] for end in ENDS]


@cache
def reference(duration: float, samples: int) -> Array:
    """The pins (samples, 6, 3)."""
    t = np.linspace(0.0, duration, samples)
    found = solve_ivp(_rate, (0.0, duration), np.zeros(3), "DOP853", t, rtol=1e-12, atol=1e-12)
    return np.array([_inertia_and_weight(*y)[2] for y in found.y[:2].T])


def _rate(_: float, y: Array) -> Array:
    """Of y = (a, b, w), w the speed along the curve: m ẇ + m'w²/2 + V' = 0. The primes are
    derivatives along the curve, exact by a complex step."""
    a, b, w = y
    step, (along_a, along_b) = 1e-200, _tangent(a, b)
    m, V = _inertia_and_weight(a + 1j * step * along_a, b + 1j * step * along_b)[:2]
    speedup = -(m.imag * w**2 / 2 + V.imag) / step / m.real
    return np.array([along_a * w, along_b * w, speedup])


def _tangent(a: complex, b: complex) -> tuple[complex, complex]:
    """The rates of a and b at w = 1, which keep (1 + sin a)(1 + sin b)."""
    return np.cos(b) * (1 + np.sin(a)), -np.cos(a) * (1 + np.sin(b))


def _inertia_and_weight(a: complex, b: complex) -> tuple[complex, complex, Array]:
    """m and V at a configuration, and its pins: twice the kinetic energy at w = 1, the potential
    energy, (6, 3)."""
    turns, rates = (a, b) * 3, _tangent(a, b) * 3
    R, at = np.eye(3), POINTS[0]
    spin, swing = np.zeros(3), np.zeros(3)  # of the rod, and of its end
    m, V, pins = 0.0, 0.0, [POINTS[0]]
    for k in range(PINS - 1):
        spin = spin + rates[k] * (R @ AXES[k])
        R = R @ _rotation(AXES[k], turns[k])
        half = R @ ENDS[k] / 2
        around = _cross(spin) @ half
        local = R.T @ spin
        m = m + MASS * (swing + around) @ (swing + around) + INERTIAS[k] * local @ local
        V = V + MASS * G * (at + half)[1]
        at, swing = at + 2 * half, swing + 2 * around
        pins.append(at)
    return m, V, np.array(pins)


def _rotation(axis: Array, angle: complex) -> Array:
    """Rodrigues' formula."""
    K = _cross(axis)
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def _cross(a: Array) -> Array:
    """The matrix of the cross product with a."""
    x, y, z = a
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


for cut in range(PINS):
    BRICARD.run(
        f"cut at pin {cut}", partial(start, cut), compare, (1e-8, 1e-8),
        tested=2.0, method="rk4", dt=1e-3, duration=10.0,
    )  # fmt: skip
