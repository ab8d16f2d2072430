"""IFToMM A02: N four-bars side by side, which pass flat, singular positions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import phipsi as pp
from phipsi.typing import Array
from tests.problems.rows import Problem, Start, drift, largest, rod

G = 9.81
IN_PLANE = np.eye(6)[:, [3, 4]]
"""The forces of a pin that are not redundant in a planar mechanism."""
X, UP = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])

FOUR_BARS = Problem(
    "A02",
    "N four-bars",
    "four_bars.py",
    "N + 1 upright cranks and N couplers between their tips, bars of 1 m and 1 kg, the tips moving "
    "at 1 m/s along x, gravity along −y, 10 s (IFToMM A02; N = 2 in Bayo & Avello 1994, N = 40 in "
    "the library). 2N + 1 bodies, N cut joints of two rows each, or of five, of which three are "
    "redundant. Where all bars lie flat, at every half turn, the loops leave N + 1 freedoms, not "
    "one, and each four-bar could fold from parallelogram to antiparallelogram. Reference: the "
    "one freedom of parallel cranks, ((N + 1)/3 + N) θ̈ = ((N + 1)/2 + N) g sin θ, θ from above, by "
    "SciPy (DOP853, tolerance 1e-13). Errors are the largest of all samples: of the first tip B₀, "
    "and of the other tips relative to it, which are large where a four-bar has left its branch. "
    "Near a flat position small errors of the closures become large errors of the rates; "
    "`stabilisation=100.0` removes them before the next one, the default of 10 does not always. "
    "Adaptive methods shorten their steps there until these errors decide the motion, and are "
    "wrong (dop853 by 0.4 J within 3 s): use fixed steps for singular positions.",
    ("B₀ [m]", "other tips [m]", "energy [J]"),
)


def start(n: int, pin: Any) -> Start:
    """Cranks upright, tips at 1 m/s; each coupler is cut from the crank after it. `pin` is what the
    cut joints leave free."""
    builder = pp.Builder(f"four_bars_{n}", gravity=(0.0, -G, 0.0))
    for k in range(n + 1):
        crank, coupler = f"crank{k}", f"coupler{k}"
        builder.body(crank, **rod(1.0, UP, 0.0)).frame(f"B{k}", crank, position=UP)
        builder.hinge(crank, "revolute", "world", crank, position=k * X, axis=(0.0, 0.0, 1.0))
        if k < n:
            builder.body(coupler, **rod(1.0, X, 0.0)).frame(f"end{k}", coupler, position=X)
            builder.hinge(coupler, "revolute", crank, coupler, position=UP, axis=(0.0, 0.0, 1.0))
    robot = builder.build()
    loops = [pp.Loop(f"end{k}", f"B{k + 1}", free=pin) for k in range(n)]
    v = np.array([-1.0 if h.name.startswith("crank") else 1.0 for h in robot.hinges])
    return Start(robot, np.zeros(robot.nq), v, None, {"closures": loops, "stabilisation": 100.0})


def reference(n: int, t: Array) -> Array:
    """B₀ (…, 2) at the times t."""
    ratio = ((n + 1) / 2 + n) / ((n + 1) / 3 + n) * G
    found = solve_ivp(
        lambda _, y: [y[1], ratio * np.sin(y[0])], (0.0, t[-1]), [0.0, 1.0], "DOP853", t,
        rtol=1e-13, atol=1e-13,
    )  # fmt: skip
    return np.stack([np.sin(found.y[0]), np.cos(found.y[0])], axis=-1)


def compare(n: int, motion: pp.Trajectory) -> tuple[float, ...]:
    """B₀ beside the reference, the other tips beside B₀, the energy."""
    tips = np.stack([motion.frame(f"B{k}")[:, :2, 3] for k in range(n + 1)], axis=1)
    others = tips - np.arange(n + 1)[:, None] * X[:2] - tips[:, :1]
    return largest(tips[:, 0] - reference(n, motion.t)), largest(others), drift(motion)


for n, pin, name, limit, tested in (
    (2, IN_PLANE, "N = 2", 1e-8, 10.0),
    (2, "revolute", "N = 2, five rows a pin", 1e-8, 0.0),
    (20, IN_PLANE, "N = 20", 1e-7, 0.0),
    (40, IN_PLANE, "N = 40", 1e-6, 0.0),
):
    FOUR_BARS.run(
        name, partial(start, n, pin), partial(compare, n), (limit, limit, limit),
        tested=tested, method="rk4", dt=1e-3, duration=10.0,
    )  # fmt: skip
