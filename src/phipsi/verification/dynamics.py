"""Checks of the dynamics: against dense matrices, each other, and differences."""

from __future__ import annotations

import numpy as np

from phipsi.algorithms import (
    center_of_mass,
    forward_dynamics,
    frame_pose,
    gravity_force,
    inverse_dynamics,
    jacobian,
    kinetic_energy,
    mass_matrix,
    mass_matrix_solve,
    momentum,
    potential_energy,
)
from phipsi.operators.algebra.identities import TABLE, Identity
from phipsi.operators.algebra.symbols import DOTTED
from phipsi.operators.algebra.system import STEP
from phipsi.operators.dense import System, matrix
from phipsi.typing import Array, Pose
from phipsi.verification.slope import slope
from phipsi.verification.states import USUAL, WORST, States, relative
from phipsi.verification.table import Outcome, check, moves, moves_dense

DUAL = {"S", "S_plus", "G_s", "C_s", "psi_s", "Lambda", "tau_bar_s"}
"""Symbols of free bases."""
ELSEWHERE = {"rebase", "mass_at", "Omega_at", "P_at", "mass_by", "H_cross"}
"""Symbols of other bases and of derivatives by one coordinate, which other checks cover."""
RATES = {
    "C_xi", "C_nu", "gamma", "lam", "Delta_cross", "V_cross", "spin",
    *(dot.symbol.name for dot in DOTTED.values()),
}  # fmt: skip
"""Symbols of motion, whose dense matrices are differences of many others."""
FEW = 12
"""Bodies up to which identities of rates are tried."""
DIFFERENCES = 4.0
"""How much more than its estimate the error of a difference may be."""


# ---- operators -----------------------------------------------------------------------------------


def _conditions(x: States) -> set[str]:
    """The conditions of identities that the robot meets."""
    robot = x.robot
    parents = robot.parents
    met = {
        "no armature": not robot.joint_data("armature").any(),
        "serial": len(set(parents)) == len(parents),
        "free base": all(
            h.kind.name == "free" and not np.any(h.armature)
            for h, p in zip(robot.hinges, parents, strict=True)
            if p < 0
        ),
        "one freedom": all(h.kind.nv == 1 for h in robot.hinges),
        "no loads": not np.any(robot.gravity),
    }
    return {name for name, holds in met.items() if holds}


@check(
    "identities",
    "the operator identities of the papers, as dense matrices",
    moves_dense,
)
def identities(x: States) -> Outcome:
    """Each row of the table whose conditions the robot meets."""
    met, worst, place = _conditions(x), 0.0, ""
    unused = ELSEWHERE if x.robot.nb <= FEW else ELSEWHERE | RATES
    frame = x.robot.bodies[-1].name
    s = x.systems[USUAL].giving(T=x.tau[USUAL], beta_dot=x.push[USUAL])
    count = 0
    for row in TABLE:
        names = {leaf.symbol.name for leaf in row.left.leaves | row.right.leaves}
        if names & unused or set(row.needs) - met or (names & DUAL and "free base" not in met):
            continue
        count += 1
        error = _difference(row.at(frame) if any(y.frames for y in row.left.leaves) else row, s)
        if not error <= worst:
            worst, place = error, row.name
    each = 1.0 if RATES <= unused else STEP  # the step of the differences that rates are
    allowed = min(WORST, 4.0 * x.solving / each)
    return Outcome(worst, allowed, f"{count} rows, the largest error in {place!r}")


def _difference(row: Identity, s: System) -> float:
    """The relative difference of the two sides; infinite if one is not finite."""
    left, right = matrix(row.left, s), matrix(row.right - 0 * row.left, s)
    size = max(1.0, np.abs(left).max(initial=0.0), np.abs(right).max(initial=0.0))
    gap = float(np.abs(left - right).max(initial=0.0) / size)
    return gap if np.isfinite(gap) else np.inf


@check(
    "mass matrix",
    "𝓜 against H φ M φ* H* + A",
    moves_dense,
)
def mass_matrices(x: States) -> Outcome:
    """The recursion against dense matrices."""
    both = x.scale[..., :, None] * x.scale[..., None, :]
    return Outcome(relative(mass_matrix(x.robot, x.q), x.mass, 1.0 / both), x.sums)


@check("inverse", "𝓜⁻¹(𝓜β) against β", moves)
def inverses(x: States) -> Outcome:
    """The factorised inverse, against the product with the dense matrix."""
    found = mass_matrix_solve(x.robot, x.q, x.times_mass(x.w))
    return Outcome(relative(np.asarray(found), x.w, x.scale), x.solving)


# ---- equations of motion -------------------------------------------------------------------------


@check("forward and inverse dynamics", "inverse dynamics of β̇ against tau", moves)
def there_and_back(x: States) -> Outcome:
    """Two algorithms that share nothing but the model."""
    found = np.asarray(inverse_dynamics(x.robot, x.q, x.v, x.a))
    return Outcome(relative(found, x.tau, 1.0 / x.scale), x.solving)


@check("equation of motion", "𝓜β̇ + C against tau", moves)
def motion(x: States) -> Outcome:
    """Forward dynamics against the definition; of many bodies against the recursions."""
    found = x.times_mass(x.a) + x.bias
    how = "𝓜 and C by dense matrices" if x.few else "𝓜 and C by recursions"
    return Outcome(relative(found, x.tau, 1.0 / x.scale), x.solving, how)


@check("power", "v*tau against the rate of the energy along the motion", moves)
def power(x: States) -> Outcome:
    """d/dt(½v*𝓜v + V), by differences of the energies along q exp(tv + ½t²β̇), v + tβ̇."""
    slow = _slow(x.v, x.a)

    def energy(t: Array) -> Array:
        s = slow * t[:, None, None]
        q = x.robot.integrate(x.q, s * x.v)
        kinetic = kinetic_energy(x.robot, q, x.v + s * x.a)
        return np.asarray(kinetic + potential_energy(x.robot, q))[..., None]

    size = np.asarray(kinetic_energy(x.robot, x.q, x.v)) + _lifted(x)
    found, error = slope(energy, size)
    expected = slow * (x.v * x.tau).sum(-1, keepdims=True)
    size = size + slow[:, 0] * np.abs(x.v * x.tau).sum(-1)
    return _compared(found, expected, error, size, x.solving)


@check("momentum", "its rate in free motion against the weight", lambda x: floats(x))
def momenta(x: States) -> Outcome:
    """Forces within the robot change no momentum about the origin: [c × mg; mg] is all there is."""
    roots = [h for h, p in zip(x.robot.hinges, x.robot.parents, strict=True) if p < 0]
    outer = x.robot.mask(*(h.name for h in roots))
    inner = np.where(outer, 0.0, x.tau)
    a = np.asarray(forward_dynamics(x.robot, x.q, x.v, inner))
    slow = _slow(x.v, a)

    def h(t: Array) -> Array:
        s = slow * t[:, None, None]
        return np.asarray(momentum(x.robot, x.robot.integrate(x.q, s * x.v), x.v + s * a))

    found, error = slope(h)
    weight = float(x.robot.mass) * np.asarray(x.robot.gravity, float)
    c = np.asarray(center_of_mass(x.robot, x.q))
    expected = np.concatenate([np.cross(c, weight), np.broadcast_to(weight, c.shape)], axis=-1)
    size = np.abs(h(np.zeros(1))[0]).max(-1)
    if x.few:  # the terms of 𝓜β̇ cancel where a light body accelerates much
        terms = np.einsum("...ij,...j->...i", np.abs(x.mass), np.abs(a))
        size = np.maximum(size, slow[:, 0] * terms[:, outer].max(-1))
    return _compared(found, slow * expected, error, size, x.solving)


def floats(x: States) -> str:
    """Unfit: a robot that is not free to float."""
    return moves(x) or ("" if "free base" in _conditions(x) else "no free base")


def _slow(v: Array, a: Array) -> Array:
    """The unit of time [s] in which little happens at velocities v and accelerations a."""
    fast = np.abs(v).max(-1, keepdims=True) + np.sqrt(np.abs(a).max(-1, keepdims=True))
    return 1.0 / (1.0 + fast)


def _compared(found: Array, expected: Array, error: Array, size: Array, rounding: float) -> Outcome:
    """A derivative by differences, which knows its error, against what it shall be: relative to the
    latter or to the `size` of what was differentiated, with which rounding grows."""
    gap = np.abs(found - expected).max(-1)
    whole = np.maximum(np.abs(expected).max(-1), size)
    whole = np.where(whole > 0, whole, 1.0)
    allowed = DIFFERENCES * error / whole + rounding
    worst = int(np.argmax(np.nan_to_num(gap / whole / allowed, nan=np.inf)))
    return Outcome(float(gap[worst] / whole[worst]), min(WORST, float(allowed[worst])))


@check("gravity", "w*(force of gravity) against the rate of the potential energy", moves)
def gravity(x: States) -> Outcome:
    """Along a random direction w of the joint space."""
    size = _lifted(x)
    found, error = slope(
        lambda t: np.asarray(potential_energy(x.robot, x.moved(t)))[..., None], size
    )
    work = x.w * np.asarray(gravity_force(x.robot, x.q))
    size = size + np.abs(work).sum(-1)
    return _compared(found, work.sum(-1, keepdims=True), error, size, x.sums)


def _lifted(x: States) -> Array:
    """The size of the terms of the potential energy, which may cancel: |m g| |c|."""
    weight = float(x.robot.mass) * float(np.linalg.norm(np.asarray(x.robot.gravity, float)))
    return weight * np.linalg.norm(np.asarray(center_of_mass(x.robot, x.q)), axis=-1)


# ---- kinematics ----------------------------------------------------------------------------------


@check("Jacobian", "J w of the last body against the rate of its pose", moves)
def jacobians(x: States) -> Outcome:
    """[ω; v] in the frame of the body, of the pose X along w: X⁻¹Ẋ."""
    body = x.robot.bodies[-1].name

    def pose(t: Array) -> Pose:
        return np.asarray(frame_pose(x.robot, x.moved(t), body))

    found, error = slope(lambda t: pose(t).reshape(len(t), len(x.q), 16))
    X = pose(np.zeros(1))[0]
    turn = np.swapaxes(X[:, :3, :3], -1, -2)
    rate = turn @ found.reshape(-1, 4, 4)[:, :3]
    omega = np.stack([rate[:, 2, 1], rate[:, 0, 2], rate[:, 1, 0]], axis=-1)
    J = np.asarray(jacobian(x.robot, x.q, body))
    expected = np.einsum("...ij,...j->...i", J, x.w)
    size = np.abs(X).max((-1, -2))
    return _compared(np.concatenate([omega, rate[:, :, 3]], axis=-1), expected, error, size, x.sums)


@check("derivatives", "the rate of inverse dynamics by automatic differentiation", moves)
def derivatives(x: States) -> Outcome:
    """Forward mode, in q, v and β̇ at once, against differences along a direction."""
    kernel = inverse_dynamics.compile(x.robot, backend="numpy")
    given = x.q, x.v, x.push
    tangents = np.asarray(x.robot.flow(x.q, x.w)), x.w, x.tau / x.scale**2
    slow = _slow(x.v, x.push)

    def force(t: Array) -> Array:
        s = slow * t[:, None, None]
        q = x.robot.integrate(x.q, s * x.w)
        v, a = x.v + s * x.w, x.push + s * tangents[2]
        return np.asarray(inverse_dynamics(x.robot, q, v, a)) / x.scale

    found, error = slope(force)
    expected = np.asarray(kernel.pushforward()(*given, *tangents))
    size = np.abs(force(np.zeros(1))[0]).max(-1)
    return _compared(found, slow * expected / x.scale, error, size, x.sums)
