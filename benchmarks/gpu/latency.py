"""One free chain of 100 links: how soon are its accelerations there, by one thread and by many?

`python -m benchmarks.gpu.latency`. Many threads, one for each link, take ⌈log₂ N⌉ levels: poses,
velocities and bias accelerations are prefix sums (along the world's axes, about the base, where
φ = I), and the dynamics is divide and conquer (Featherstone), the compliance form of
the associative scan: a segment answers forces f₁, f₂ on its two ends with accelerations
λ₁ = F₁₁f₁ + F₁₂f₂ + c₁, λ₂ = F₁₂*f₁ + F₂₂f₂ + c₂, and two segments joined by a hinge are one again.
The steps are programs, emitted as C; chain.cu drives them.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import phipsi as pp
from benchmarks.gpu.limits import found, median
from phipsi.compile import Dtype

LINKS = 100
SYMMETRIC = np.triu_indices(6)
ROW = 32
NODE = 90
"""Numbers that describe a link, and a segment: F₁₁, F₂₂ (21 each), F₁₂ (36), c₁, c₂."""


def cross(a: Any, b: Any) -> Any:
    """a × b."""
    return skew(a) @ b


def skew(a: Any) -> Any:
    """ã."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def full(x: Any) -> Any:
    """A symmetric 6 × 6 from its upper triangle."""
    out = np.empty((6, 6), object)
    for (i, j), value in zip(zip(*SYMMETRIC, strict=True), x, strict=True):
        out[i, j] = out[j, i] = value
    return out


def packed(*parts: Any) -> Any:
    """All numbers in a row."""
    return np.concatenate([np.asarray(x).reshape(-1) for x in parts])


@pp.program
def pose(robot: Any, row: Any, angle: Any) -> Any:
    """The pose (R, p) of a link in its parent, hinge angle included."""
    R, position, axis = row[:9].reshape(3, 3), row[9:12], row[12:15]
    K = skew(axis)
    turn = np.eye(3) + np.sin(angle[0]) * K + (1.0 - np.cos(angle[0])) * (K @ K)
    return packed(R @ turn, position)


@pp.program
def base_pose(robot: Any, x: Any) -> Any:
    """The pose of the base from its quaternion; where it is does not matter."""
    return packed(pp.linalg.rotation_matrix(x[3:]), np.zeros(3))


@pp.program
def compose(robot: Any, x: Any, y: Any) -> Any:
    """Two poses, one after the other."""
    R = x[:9].reshape(3, 3)
    return packed(R @ y[:9].reshape(3, 3), R @ y[9:] + x[9:])


@pp.program
def axis(robot: Any, row: Any, x: Any) -> Any:
    """H* of a hinge along the world's axes, about the base; its first half is that about itself."""
    a = x[:9].reshape(3, 3) @ row[12:15]
    return packed(a, cross(x[9:], a))


@pp.program
def base_turned(robot: Any, x: Any, own: Any) -> Any:
    """A motion of the base, or a force on it, along the world's axes."""
    R = x[:9].reshape(3, 3)
    return packed(R @ own[:3], R @ own[3:])


@pp.program
def base_result(robot: Any, x: Any, y: Any, gravity: Any) -> Any:
    """The acceleration of the base in its own frame."""
    R = x[:9].reshape(3, 3)
    return packed(R.T @ y[:3], R.T @ (y[3:] + gravity))


@pp.program
def drift(robot: Any, y: Any, h: Any, rate: Any) -> Any:
    """V × H*β̇: what a moving axis adds to the acceleration."""
    s = h * rate[0]
    return packed(cross(y[:3], s[:3]), cross(y[:3], s[3:]) + cross(y[3:], s[:3]))


@pp.program
def leaf(robot: Any, row: Any, x: Any, y: Any, bias: Any, following: Any) -> Any:
    """A link as a segment between its hinge and the next: F₁₁ = M⁻¹, c₁ = −M⁻¹u."""
    R, m = x[:9].reshape(3, 3), row[15]
    center = R @ row[17:20]
    J = R @ _matrix(row[20:26]) @ R.T
    inverse = R @ _matrix(row[26:32]) @ R.T
    tilde = skew(center)

    def here(w: Any) -> Any:
        return packed(w[:3], w[3:] + cross(w[:3], x[9:]))

    def momentum(w: Any) -> Any:
        linear = m * (w[3:] + cross(w[:3], center))
        return packed(J @ w[:3] + cross(center, linear), linear)

    w = here(y)
    h, u = momentum(w), momentum(here(bias))
    u = u + packed(cross(w[:3], h[:3]) + cross(w[3:], h[3:]), cross(w[:3], h[3:]))
    upper = -inverse @ tilde
    F = np.block([[inverse, upper], [upper.T, np.eye(3) * row[16] + tilde @ upper]])
    phi = np.block([[np.eye(3), skew(following - x[9:])], [np.zeros((3, 3)), np.eye(3)]])
    c = -(F @ u)
    return packed(F[SYMMETRIC], (phi.T @ F @ phi)[SYMMETRIC], F @ phi, c, phi.T @ c)


def _matrix(x: Any) -> Any:
    return np.array([[x[0], x[1], x[2]], [x[1], x[3], x[4]], [x[2], x[4], x[5]]])


def _parts(x: Any) -> tuple[Any, ...]:
    return full(x[:21]), full(x[21:42]), x[42:78].reshape(6, 6), x[78:84], x[84:]


@pp.program
def join(robot: Any, s: Any, t: Any, h: Any, force: Any) -> Any:
    """Two segments as one, then what the way back needs: W, 1/D."""
    F11a, F22a, F12a, c1a, c2a = _parts(s)
    F11b, F22b, F12b, c1b, c2b = _parts(t)
    W = pp.linalg.solve(F11b + F22a, np.eye(6))
    Wh = W[:, :3] @ h
    d = 1.0 / (h @ Wh[:3])
    V = W - d * np.outer(Wh, Wh)
    f = d * force[0] * Wh - V @ (c1b - c2a)
    left, right = F12a @ V, V @ F12b
    return packed(
        (F11a - left @ F12a.T)[SYMMETRIC], (F22b - F12b.T @ right)[SYMMETRIC], F12a @ right,
        c1a - F12a @ f, c2b + F12b.T @ f, W[SYMMETRIC], d,
    )  # fmt: skip


@pp.program
def part(robot: Any, s: Any, t: Any, h: Any, force: Any, kept: Any, f1: Any, f2: Any) -> Any:
    """The force between two segments, from those on the ends, and the acceleration of the hinge."""
    _, _, F12a, _, c2a = _parts(s)
    _, _, F12b, c1b, _ = _parts(t)
    W, d = full(kept[:21]), kept[21]
    apart = c1b + F12b @ f2 - c2a - F12a.T @ f1
    rate = d * (force[0] + h @ (W[:3] @ apart))
    return packed(W[:, :3] @ h * rate - W @ apart, rate)


@pp.program
def root(robot: Any, s: Any, f: Any) -> Any:
    """The acceleration of the base of the whole."""
    return full(s[:21]) @ f + s[78:84]


STEPS: dict[Any, dict[str, int]] = {
    pose: {"row": ROW, "angle": 1}, base_pose: {"x": 7}, compose: {"x": 12, "y": 12},
    axis: {"row": ROW, "x": 12}, base_turned: {"x": 12, "own": 6},
    base_result: {"x": 12, "y": 6, "gravity": 3}, drift: {"y": 6, "h": 6, "rate": 1},
    leaf: {"row": ROW, "x": 12, "y": 6, "bias": 6, "following": 3},
    join: {"s": NODE, "t": NODE, "h": 3, "force": 1},
    part: {"s": NODE, "t": NODE, "h": 3, "force": 1, "kept": 22, "f1": 6, "f2": 6},
    root: {"s": NODE, "f": 6},
}  # fmt: skip
"""The programs and the sizes of their arguments."""

DRIVER = Path(__file__).with_name("chain.cu")


def text(dtype: Dtype, links: int) -> str:
    """The CUDA text."""
    T, robot = {"float32": "float", "float64": "double"}[dtype], pp.robots.double_pendulum()
    parts = []
    for program, sizes in STEPS.items():
        example = {name: np.zeros(size) for name, size in sizes.items()}
        source = program.source(robot, language="c", dtype=dtype, name=program.name, **example)
        source = re.sub(r"#include.*\n", "", source)
        parts.append(re.sub(r"^void", "static __device__ void", source, flags=re.MULTILINE))
    head = f"typedef {T} T;\n#define N {links}\n#define restrict __restrict"
    return "\n".join([head, *parts, DRIVER.read_text()])


def table(robot: pp.Robot) -> np.ndarray:
    """The numbers of every link."""
    rows = np.zeros((len(robot.bodies), ROW))
    for row, hinge, body in zip(rows, robot.hinges, robot.bodies, strict=True):
        m, J = float(body.inertia.mass), np.array(body.inertia.J, float)
        center = np.array(body.inertia.moment, float) / m
        J = J - m * (center @ center * np.eye(3) - np.outer(center, center))
        upper = np.triu_indices(3)
        row[:9] = np.array(hinge.placement.R.matrix, float).reshape(-1)
        row[9:12] = np.array(hinge.placement.position, float)
        row[12:15] = np.array(hinge.axes[0], float) if hinge.axes else 0.0
        row[15:20] = m, 1 / m, *center
        row[20:26], row[26:32] = J[upper], np.linalg.inv(J)[upper]
    return rows


def main() -> None:
    """Time one free chain, by one thread and by many."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--links", type=int, default=LINKS)
    links = parser.parse_args().links
    cp = found(parser)

    print(f"| free chain of {links} links | dtype | µs | error |\n|---|---|---|---|")
    dtypes: tuple[Dtype, ...] = ("float32", "float64")
    for dtype in dtypes:
        for name, seconds, error in measured(cp, links, dtype):
            print(f"| {name} | {dtype} | {1e6 * seconds:.1f} | {error:.0e} |", flush=True)


def measured(cp: Any, links: int, dtype: Dtype) -> Iterator[tuple[str, float, float]]:
    """What was timed, its seconds on the device and its error."""

    def timed(robot: pp.Robot, call: Callable[..., Any]) -> tuple[float, float]:
        q, v = robot.random_state(np.random.default_rng(0))
        tau = np.random.default_rng(1).standard_normal(robot.nv)
        given = [cp.asarray(x, dtype) for x in (q, v, tau)]
        exact = pp.forward_dynamics.compile(robot, backend="numpy")(
            *(cp.asnumpy(x).astype(float) for x in given)
        )
        out = cp.full(robot.nv, cp.nan, dtype)
        seconds = median(cp, lambda: call(*given, out=out), 200)
        return seconds, float(np.abs(cp.asnumpy(out) - exact).max() / np.abs(exact).max())

    robot, half = (pp.robots.chain(n - 1, base="free") for n in (links, links // 2))
    for name, chain, unroll in (
        ("one thread, a loop over links", robot, False),
        ("one thread, unrolled", robot, True),
        ("one thread, half the chain: two directions at best", half, False),
    ):
        kernel = pp.forward_dynamics.compile(chain, backend="cuda", dtype=dtype, unroll=unroll)
        yield name, *timed(chain, kernel)
    module = cp.RawModule(code=text(dtype, links))
    function = module.get_function("chain")
    size = np.dtype(dtype).itemsize * links * (2 * (NODE + 22 + 12) + 30)
    function.max_dynamic_shared_size_bytes = size
    fixed = [cp.asarray(x, dtype) for x in (table(robot), robot.gravity)]

    def many(*given: Any, out: Any) -> None:
        function((1,), (128,), (*fixed, *given, out), shared_mem=size)

    yield "a thread for each link", *timed(robot, many)


if __name__ == "__main__":
    main()
