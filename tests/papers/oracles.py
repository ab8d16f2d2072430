"""What the papers speak of, from first principles: conditioning, elimination, plain recursions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import phipsi as pp
from phipsi import operators as o
from phipsi.operators.algebra.system import skew
from tests.algorithms.closures import carry, transmitted
from tests.papers.cases import WEIGHTS, Case

# ---- spatial vectors ----------------------------------------------------------------------------


def ad(X: np.ndarray) -> np.ndarray:
    """ad(X) = [[a~, 0], [b~, a~]] of X = [a; b]."""
    a, b = skew(X[:3]), skew(X[3:])
    return np.block([[a, np.zeros((3, 3))], [b, a]])


def crf(X: np.ndarray) -> np.ndarray:
    """crf(X) = −ad(X)*."""
    return -ad(X).T


# ---- trees --------------------------------------------------------------------------------------


def below(c: Case, i: int) -> np.ndarray:
    """Which bodies hang on body i, itself among them."""
    found = np.arange(c.robot.nb) == i
    for k, p in enumerate(c.robot.parents):
        found[k] |= p >= 0 and found[p]
    return found


def felt(c: Case, i: int, free: Any = True) -> np.ndarray:
    """The inertia felt at body i if `free` freedoms outboard of it yield and others are locked:
    they are eliminated from the mass matrix of what hangs on the body."""
    phi, M, A = c(o.phi), c(o.M), c(o.A)
    outboard = below(c, i) & (np.arange(c.robot.nb) != i)
    rows = outboard[c.system.moves] & free
    X, Y = phi[6 * i : 6 * i + 6], (c(o.H) @ phi)[rows]
    XY, YY = X @ M @ Y.T, Y @ M @ Y.T + A[np.ix_(rows, rows)]
    return X @ M @ X.T - XY @ np.linalg.solve(YY, XY.T)


# ---- frames -------------------------------------------------------------------------------------


def place(c: Case, frame: str) -> np.ndarray:
    """The pose (4, 4) of a frame in the world, from the dense φ of the bodies on its path."""
    body, block = c.system.frames[frame]
    while body >= 0:
        block, body = c.system.phi[body] @ block, c.robot.parents[body]
    X, R, turned = np.eye(4), block[:3, :3], block[:3, 3:]
    X[:3, :3], cross = R, turned @ R.T
    X[:3, 3] = cross[2, 1], cross[0, 2], cross[1, 0]
    return X


def aligned(c: Case, frame: str) -> np.ndarray:
    """The dense Jacobian of a frame in world axes, at its origin."""
    return np.kron(np.eye(2), place(c, frame)[:3, :3]) @ c(o.J(frame))


def classical(c: Case, frame: str, qdd: np.ndarray) -> np.ndarray:
    """The classical acceleration of a frame in world axes: the rate of its velocity."""
    return c.rate(lambda q, v: aligned(c.but(q=q), frame) @ v, qdd)


class Aim:
    """A target of a frame, displaced by an error that is known, with velocity and acceleration."""

    def __init__(self, c: Case, frame: str, seed: int = 5) -> None:
        self.c, self.frame = c, frame
        self.error, self.velocity, self.acceleration = np.random.default_rng(seed).normal(
            0, 0.3, (3, 6)
        )
        self.pose = place(c, frame)
        self.pose[:3, :3] = Rotation.from_rotvec(self.error[:3]).as_matrix() @ self.pose[:3, :3]
        self.pose[:3, 3] += self.error[3:]

    def wanted(self, stiffness: float, damping: float, *, at_rest: bool = False) -> np.ndarray:
        """a_d + K_d(V_d − V) + K_p e; `at_rest` without V_d and a_d."""
        moved = 0.0 if at_rest else 1.0
        V = aligned(self.c, self.frame) @ self.c.v
        ahead = moved * self.acceleration + damping * (moved * self.velocity - V)
        return ahead + stiffness * self.error


# ---- closures -----------------------------------------------------------------------------------


class Closed:
    """A case with closures: the KKT system of dense matrices, with rows A and their rates."""

    def __init__(self, c: Case, closures: Sequence[pp.Loop | pp.Grasp]) -> None:
        self.c, self.closures = c, closures
        self.bases = [transmitted(x, self._across(c, x)) for x in closures]
        self.A = self.rows(c)

    def _across(self, c: Case, x: pp.Loop | pp.Grasp) -> np.ndarray:
        """The pose of frame a in frame b."""
        return np.linalg.inv(place(c, x.b)) @ place(c, x.a)

    def rows(self, c: Case) -> np.ndarray:
        """A = Q*(J_a − φ*J_b); Q is the basis at the case, moved with what is transmitted."""
        out = list[np.ndarray]()
        for x, Q in zip(self.closures, self.bases, strict=True):
            X = self._across(c, x)
            now = transmitted(x, X)
            out.append((now @ (now.T @ Q)).T @ (c(o.J(x.a)) - carry(X).T @ c(o.J(x.b))))
        return np.concatenate(out)

    def closing(self) -> np.ndarray:
        """The velocities of the case without what opens the closures."""
        back = np.linalg.solve(self.c(o.mass), self.A.T)
        return self.c.v - back @ np.linalg.solve(self.A @ back, self.A @ self.c.v)

    @property
    def kkt(self) -> np.ndarray:
        """[[𝓜, −A*], [A, 0]]."""
        m = len(self.A)
        return np.block([[self.c(o.mass), -self.A.T], [self.A, np.zeros((m, m))]])

    def motion(self, tau: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """β̇, and the force of each closure on its frame a."""
        drift = self.c.rate(lambda q, v: self.rows(self.c.but(q=q))) @ self.c.v
        found = np.linalg.solve(self.kkt, np.concatenate((tau - self.c(o.C), -drift)))
        ends = np.cumsum([Q.shape[1] for Q in self.bases])[:-1]
        parts = np.split(found[self.c.robot.nv :], ends)
        return found[: self.c.robot.nv], [Q @ x for Q, x in zip(self.bases, parts, strict=True)]


# ---- estimation ---------------------------------------------------------------------------------


class Estimation:
    """[SOA] 4: x = φw with covariance M of w, and measurements y = Hx + noise of covariance A."""

    def __init__(self, c: Case) -> None:
        self.c = c
        self.state = c(o.phi) @ c(o.M) @ c(o.phi).T
        self.cross = self.state @ c(o.H).T
        self.measured = c(o.H) @ self.cross + c(o.A)

    def gain(self, rows: Any, known: Any = slice(None)) -> np.ndarray:
        """Of the best estimate of x from y: E[x | y] = gain y."""
        inner = self.measured[known][:, known]
        return np.linalg.solve(inner, self.cross[rows][:, known].T).T

    def covariance(self, rows: Any, known: Any = slice(None)) -> np.ndarray:
        """Of x, given y."""
        return self.state[rows][:, rows] - self.gain(rows, known) @ self.cross[rows][:, known].T

    def outboard(self, i: int) -> np.ndarray:
        """The measurements outboard of body i."""
        return below(self.c, i)[self.c.system.moves] & (self.c.system.moves != i)


# ---- base-invariant dynamics --------------------------------------------------------------------


class Dual:
    """[BI] Alg 3.2 on a free tree, as corrected; its options put printed forms back.

    z, z⁺, z_s and z_s⁺ of bodies (nb, 6), ε_s of hinges (nv,), and α by Lemma 3.2 (nb, 6).
    """

    def __init__(
        self, c: Case, *, implicit: bool = False, heedless: bool = False, shifted: bool = False
    ) -> None:
        z = o.psi @ (o.K @ o.T + o.P @ o.a + o.b)
        self.z, self.z_plus = c.blocks(z), c.blocks(o.tau_bar @ z + o.G @ o.T)
        self.P, self.S, self.S_plus = (c.blocks(x) for x in (o.P, o.S, o.S_plus))
        self.a, b, n = c.blocks(o.a), c.blocks(o.b), c.robot.nb
        self.z_s, self.z_s_plus, self.eps_s = np.zeros((n, 6)), np.zeros((n, 6)), 0 * c.tau
        phi, parents, G_s = c.system.phi, c.robot.parents, c(o.G_s)
        for i, (h, p) in enumerate(zip(c.robot.hinges, parents, strict=True)):
            if p < 0:
                self.z_s[i] = 0.0 if heedless else -c.tau[h.v]
                continue
            H, G = c.system.H[h.v], G_s[6 * i : 6 * i + 6, h.v]
            others = [k for k in range(n) if parents[k] == p and k != i]
            y = b[p] + self.z_s[p] + sum((phi[k] @ self.z_plus[k] for k in others), np.zeros(6))
            a_s = -self.a[i]
            if shifted:  # one body further in
                a_s = 0 * a_s if parents[p] < 0 else -phi[i].T @ phi[p].T @ self.a[parents[p]]
            z_s_plus = np.linalg.solve(phi[i], y) + self.S_plus[i] @ a_s
            z_s = z_s_plus + G @ (c.tau[h.v] + H @ z_s_plus)
            if implicit:  # ε_s = T + H z_s
                z_s = np.linalg.solve(np.eye(6) - G @ H, z_s_plus + G @ c.tau[h.v])
            self.z_s[i], self.z_s_plus[i] = z_s, z_s_plus
            self.eps_s[h.v] = c.tau[h.v] + H @ z_s_plus

    @property
    def alpha(self) -> np.ndarray:
        """−(P + S)⁻¹(z + z_s − Pa)."""
        load = self.z + self.z_s - np.einsum("bij,bj->bi", self.P, self.a)
        return -np.linalg.solve(self.P + self.S, load[..., None])[..., 0]


# ---- under-actuated arms ------------------------------------------------------------------------


def exchanged(c: Case) -> tuple[np.ndarray, np.ndarray]:
    """All joint forces and accelerations, c.a of active joints and c.tau of passive ones given."""
    a, p, mass, C = c.active, ~c.active, c(o.mass), c(o.C)
    qdd = c.a.copy()
    qdd[p] = np.linalg.solve(mass[np.ix_(p, p)], (c.tau - C)[p] - mass[np.ix_(p, a)] @ c.a[a])
    return mass @ qdd + C, qdd


# ---- curvature ----------------------------------------------------------------------------------

Field = Callable[[np.ndarray], np.ndarray]
"""A function of points (…, n), for any batch."""


def gradient(f: Field, step: float = 2e-2) -> Field:
    """The derivatives of f by each coordinate, on the last axis, by differences."""

    def of(q: np.ndarray) -> np.ndarray:
        steps = step * np.eye(q.shape[-1])
        parts = [w / step * (f(q[..., None, :] + k * steps) - f(q[..., None, :] - k * steps))
                 for k, w in enumerate(WEIGHTS, 1)]  # fmt: skip
        return np.moveaxis(np.sum(parts, axis=0), q.ndim - 1, -1)

    return of


def derivative(c: Case, f: Callable[[Case], np.ndarray], name: str, along: Any) -> np.ndarray:
    """The derivative of f by q along a displacement in the tangent space, or by another vector of
    the case by name, by differences."""
    step, total = 5e-3, np.array(0.0)
    for k, w in enumerate(WEIGHTS, 1):
        for d in (k * step, -k * step):
            x = c.robot.integrate(c.q, d * along) if name == "q" else getattr(c, name) + d * along
            total = total + np.copysign(w / step, d * w) * f(c.but(**{name: x}))
    return total


def christoffel(metric: Field, q: np.ndarray) -> np.ndarray:
    """[ij, l] = ½(∂ᵢM_jl + ∂ⱼM_il − ∂ₗM_ij)."""
    d = gradient(metric)(q)
    by_first = np.einsum("jli->ijl", d)
    return 0.5 * (by_first + np.einsum("ilj->ijl", d) - d)


def riemann(metric: Field, q: np.ndarray) -> np.ndarray:
    """R_hijk, [DL] (2.3), of a metric (…, n, n), by differences."""
    dd = gradient(gradient(metric))(q)
    one = christoffel(metric, q)
    squares = np.einsum("ijs,sl,hkl->hijk", one, np.linalg.inv(metric(q)), one)
    second = (
        np.einsum("hkij->hijk", dd) + np.einsum("ijhk->hijk", dd)
        - np.einsum("hjik->hijk", dd) - np.einsum("ikhj->hijk", dd)
    )  # fmt: skip
    return 0.5 * second + squares - np.einsum("hikj->hijk", squares)


def sphere(q: np.ndarray) -> np.ndarray:
    """The metric of the unit sphere, of curvature sin²: diag(1, sin² q₀)."""
    first = q[..., 0]
    return np.eye(2) * np.stack((0 * first + 1, np.sin(first) ** 2), -1)[..., None, :]


def curvature_asymmetry(R: np.ndarray) -> np.ndarray:
    """What is zero of a curvature: its symmetries, and the first identity of Bianchi."""
    return np.array([
        R + np.einsum("ihjk->hijk", R), R + np.einsum("hikj->hijk", R),
        R - np.einsum("jkhi->hijk", R),
        R + np.einsum("hjki->hijk", R) + np.einsum("hkij->hijk", R),
    ])  # fmt: skip


@cache
def curvatures(n: int) -> int:
    """How many numbers a curvature in n dimensions has: the tensors with its symmetries."""
    shape = (n,) * 4
    rows = np.array([curvature_asymmetry(x.reshape(shape)).ravel() for x in np.eye(n**4)])
    return n**4 - int(np.linalg.matrix_rank(rows @ rows.T, hermitian=True))


def entries(n: int) -> int:
    """N(N + 1)/2, counted."""
    return sum(i <= j for i, j in product(range(n), repeat=2))
