"""Robots with closures at random places, and an independent dense solution of their dynamics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import null_space

import phipsi as pp
from phipsi.model import CONTACTS
from phipsi.spatial import Transform
from tests.zoo import State

STEP = 2e-3


def skew(a: Any) -> np.ndarray:
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def carry(X: np.ndarray) -> np.ndarray:
    """φ of a homogeneous matrix."""
    R, p = X[:3, :3], X[:3, 3]
    return np.block([[R, skew(p) @ R], [np.zeros((3, 3)), R]])


def across(robot: pp.Robot, c: Any, q: np.ndarray) -> np.ndarray:
    """The pose of frame a in frame b."""
    return np.linalg.inv(pp.frame_pose(robot, q, c.b)) @ pp.frame_pose(robot, q, c.a)


def hinge_columns(loop: pp.Loop, X: np.ndarray) -> np.ndarray:
    """H* of the cut joint, in the axes of a, written out by hand."""
    axes = [np.array(u, float) for u in loop.axes]
    zero = np.zeros(3)
    columns: list[Any] = []  # a weld
    match loop.free:
        case "revolute" | "continuous":
            columns = [(axes[0], zero)]
        case "prismatic":
            columns = [(zero, axes[0])]
        case "helical":
            columns = [(axes[0], loop.pitch * axes[0])]
        case "cylindrical":
            columns = [(axes[0], zero), (zero, axes[0])]
        case "universal":
            columns = [(X[:3, :3].T @ axes[0], zero), (axes[1], zero)]
        case "planar":
            sides = null_space(axes[0][None])
            columns = [(axes[0], zero), *((zero, side) for side in sides.T)]
        case "spherical":
            columns = [(u, zero) for u in np.eye(3)]
    return np.array([np.concatenate(c) for c in columns]).reshape(-1, 6).T


def transmitted(c: Any, X: np.ndarray) -> np.ndarray:
    """Q (6, m): the forces on a that a closure transmits, in the axes of a."""
    if isinstance(c, pp.Grasp):
        unit = np.eye(6)[:, list(CONTACTS[c.contact].transmits)]
        if c.contact != "rolling":
            return unit
        R = X[:3, :3].T  # axes of the object at the point under the ball
        touching = np.eye(4)
        touching[:3, :3], touching[:3, 3] = R, -c.radius * R[:, 2]
        return carry(touching) @ unit
    if not isinstance(c.free, str):
        return np.array(c.free)
    H = hinge_columns(c, X)
    return null_space(H.T) if H.size else np.eye(6)


def rows(robot: pp.Robot, closures: Sequence[Any], q: np.ndarray, basis: list[Any]) -> np.ndarray:
    """A(q) with A(q) v = Q*Δ, Q as `basis` has it for each closure (fixed, or found at q)."""
    out = []
    for c, Q in zip(closures, basis, strict=True):
        X = across(robot, c, q)
        forces = np.asarray(Q(X) if callable(Q) else Q)
        out.append(
            forces.T @ (pp.jacobian(robot, q, c.a) - carry(X).T @ pp.jacobian(robot, q, c.b))
        )
    return np.concatenate(out)


def bases(robot: pp.Robot, closures: Sequence[Any], q: np.ndarray) -> list[Any]:
    """Q of each closure at q; where it moves against a, as a function of the pose that is smooth:
    the basis at q, projected on what is transmitted at the pose."""
    out: list[Any] = []
    for c in closures:
        Q = transmitted(c, across(robot, c, q))
        if isinstance(c, pp.Grasp) and c.contact == "rolling":
            out.append(lambda X, c=c: transmitted(c, X))
        elif isinstance(c, pp.Loop) and c.free == "universal":
            out.append(lambda X, c=c, Q=Q: _projected(transmitted(c, X), Q))
        else:
            out.append(Q)
    return out


def _projected(now: np.ndarray, Q: np.ndarray) -> np.ndarray:
    return now @ (now.T @ Q)


def _rates(robot: pp.Robot, closures: Sequence[Any], s: State, basis: list[Any]) -> np.ndarray:
    """d/dt of Q*(J_a − φ*J_b) for constant Q, with d/dt φ* = −ad(Δ)φ*."""
    out = []
    for c, Q in zip(closures, basis, strict=True):
        phi = carry(across(robot, c, s.q))
        one, other = (pp.jacobian(robot, s.q, name) for name in (c.a, c.b))
        rates = [pp.jacobian_derivative(robot, s.q, s.v, name) for name in (c.a, c.b)]
        w, v = np.split((one - phi.T @ other) @ s.v, 2)
        ad = np.block([[skew(w), np.zeros((3, 3))], [skew(v), skew(w)]])
        out.append(Q.T @ (rates[0] - phi.T @ rates[1] + ad @ phi.T @ other))
    return np.concatenate(out)


def _differences(
    robot: pp.Robot, closures: Sequence[Any], s: State, basis: list[Any]
) -> np.ndarray:
    at = [
        rows(robot, closures, robot.integrate(s.q, j * STEP * s.v), basis) for j in (-2, -1, 1, 2)
    ]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * STEP)


class Dense:
    """The KKT solution of closures by dense linear algebra.

    `exact` says that Ȧ is that of Jacobians; else, where Q moves against a, it is a five-point
    difference.
    """

    def __init__(self, robot: pp.Robot, closures: Sequence[Any], s: State) -> None:
        basis = bases(robot, closures, s.q)
        self.A = A = rows(robot, closures, s.q, basis)
        self.exact = not any(map(callable, basis))
        rate = (_rates if self.exact else _differences)(robot, closures, s, basis)
        M = pp.mass_matrix(robot, s.q)
        force = s.tau - pp.bias_force(robot, s.q, s.v, external=s.external)
        n, m = robot.nv, len(A)
        kkt = np.block([[M, -A.T], [A, np.zeros((m, m))]])
        right = np.concatenate((force, -rate @ s.v))
        solution, *_ = np.linalg.lstsq(kkt, right, rcond=1e-11)
        self.qdd, self.lam = solution[:n], solution[n:]
        self.residual = np.abs(kkt @ solution - right).max() / max(1.0, np.abs(right).max())
        self.L = A @ np.linalg.solve(M, A.T)
        scale = np.sqrt(np.maximum(np.diag(self.L), 1e-300))
        self.smallest = np.linalg.eigvalsh(self.L / np.outer(scale, scale))[0]
        ends = np.cumsum([Q.shape[1] if not callable(Q) else 0 for Q in basis])
        self.forces = [
            Q @ part
            for Q, part in zip(basis, np.split(self.lam, ends[:-1]), strict=True)
            if not callable(Q)
        ]


def closing(robot: pp.Robot, closures: Sequence[Any], s: State) -> None:
    """Take out of s.v what opens the closures."""
    A = rows(robot, closures, s.q, bases(robot, closures, s.q))
    M = pp.mass_matrix(robot, s.q)
    back = np.linalg.solve(M, A.T)
    s.v = s.v - back @ (np.linalg.pinv(A @ back, rcond=1e-11) @ (A @ s.v))


def with_frame(robot: pp.Robot, q: np.ndarray, name: str, body: str, pose: np.ndarray) -> pp.Robot:
    """The robot with a frame on a body that stands at a pose of the world in configuration q."""
    X = pose if body == "world" else np.linalg.inv(pp.frame_pose(robot, q, body)) @ pose
    return robot.edit().frame(name, body, placement=Transform.of(X[:3, :3], X[:3, 3])).build()
