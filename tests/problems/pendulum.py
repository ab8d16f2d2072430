"""IFToMM A01: a pendulum from the horizontal, against Jacobi's elliptic functions."""

from __future__ import annotations

import numpy as np
from scipy.special import ellipj

import phipsi as pp
from phipsi.typing import Array
from tests.problems.rows import Problem, Start, drift, largest

G = 9.81
AMPLITUDE = np.pi / 2

PENDULUM = Problem(
    "A01",
    "A pendulum",
    "pendulum.py",
    "A mass of 1 kg at the end of a massless bar of 1 m, let go from the horizontal, 10 s "
    "(IFToMM library of computational benchmark problems, A01). One body, one hinge. Reference: "
    "the exact solution sin(φ/2) = k cd(√(g/l) t, k), k = sin(φ₀/2), φ the angle from below. "
    "Errors are the largest of all samples.",
    ("position of P₁ [m]", "energy [J]"),
)


def start() -> Start:
    """P₁ at (−1, 0), at rest; gravity along −y."""
    builder = pp.Builder("pendulum", gravity=(0.0, -G, 0.0))
    builder.body("bar", mass=1.0, com=(1.0, 0.0, 0.0)).frame("P1", "bar", position=(1.0, 0.0, 0.0))
    builder.hinge("pivot", "revolute", "world", "bar", axis=(0.0, 0.0, 1.0))
    return Start(builder.build(), np.array([np.pi]))


def exact(t: Array) -> Array:
    """P₁ (…, 2) at the times t."""
    k = np.sin(AMPLITUDE / 2)
    _, cn, dn, _ = ellipj(np.sqrt(G) * t, k**2)
    phi = 2 * np.arcsin(k * cn / dn)
    return np.stack([-np.sin(phi), -np.cos(phi)], axis=-1)


def compare(motion: pp.Trajectory) -> tuple[float, ...]:
    """P₁ at every sample beside the exact one, and the energy."""
    found = motion.frame("P1")[:, :2, 3]
    return largest(found - exact(motion.t)), drift(motion)


for method, limits, tested in (
    ("rk4", (1e-10, 1e-10), 10.0),
    ("preserving4", (1e-11, 1e-11), 0.0),
    ("dop853", (1e-8, 1e-7), 0.0),
):
    PENDULUM.run(
        "from π/2", start, compare, limits, tested=tested, method=method, dt=1e-3, duration=10.0
    )
