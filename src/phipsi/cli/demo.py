"""`phipsi demo`: the dynamics of a free-flying arm, every number checked against another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import phipsi as pp
from phipsi import operators as o

BATCH = 16
DURATION, STEPS = 1.0, 100  # of the drift [s]
EARTH = np.array((0.0, 0.0, -9.81))


class Row(NamedTuple):
    """One line of the table: a number, the law it must obey, and by how much it does not."""

    quantity: str
    value: str
    check: str
    error: float
    tolerance: float = 1e-10

    @property
    def passed(self) -> bool:
        """Whether the law holds (a NaN does not)."""
        return self.error <= self.tolerance


def run(seed: int) -> int:
    """Print the table; 0 when every check passes, else 1."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    start = time.perf_counter()
    robot = pp.robots.space_arm()
    found = list(rows(robot, np.random.default_rng(seed)))
    title = f"{robot.name}: {robot.nb} bodies, nq = {robot.nq}, nv = {robot.nv}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    table.padding = (0, 1, 0, 0)
    table.add_column("quantity")
    table.add_column("value", justify="right")
    table.add_column("check")
    table.add_column("error", justify="right")
    table.add_column("")
    for row in found:
        mark = "[green]✓[/]" if row.passed else "[bold red]✗[/]"
        table.add_row(
            row.quantity, row.value, row.check, f"{row.error:.0e}" if row.error else "0", mark
        )
    failed = sum(not row.passed for row in found)
    verdict = (
        f"[bold red]{failed} of {len(found)} checks failed[/]"
        if failed
        else f"[green]All {len(found)} checks passed[/]"
    )
    console = Console(highlight=False)
    console.print(table)
    console.print(
        f"{verdict} at {BATCH} random states in {time.perf_counter() - start:.1f} s.\n"
        "[dim]Values are of the first state; errors are the largest of all, relative.[/]"
    )
    derivation = o.mass.inv.simplify(trace=True)
    console.print(
        f"{o.mass.inv} = {derivation.result}, derived in {len(derivation.steps)} steps: "
        "[bold]phipsi explain mass.inv[/]",
        soft_wrap=True,
    )
    return 1 if failed else 0


def rows(robot: pp.Robot, rng: np.random.Generator) -> Iterator[Row]:
    """The lines of the table, for a robot whose first hinge is free and that has a frame "tool"."""
    q, v = robot.random_state(rng, (BATCH,))
    tau, x = rng.standard_normal((2, BATCH, robot.nv))
    M, m = pp.mass_matrix(robot, q), robot.mass
    h = pp.momentum(robot, q, v)

    yield _row("mass", [m], "kg", "m·1 is a block of 𝓜", M[:, 3:6, 3:6], m * np.eye(3))
    c = pp.center_of_mass(robot, q)
    c_rate = _rate(lambda q, v: pp.center_of_mass(robot, q), robot, q, v)
    yield _row("centre of mass c", c, "m", "m ċ = momentum", m * c_rate, h[:, 3:], 1e-7)
    p = pp.frame_pose(robot, q, "tool")[:, :3, 3]
    p_rate = _rate(lambda q, v: pp.frame_pose(robot, q, "tool")[:, :3, 3], robot, q, v)
    J = pp.jacobian(robot, q, "tool", reference="aligned")[:, 3:]
    yield _row("tool position p", p, "m", "ṗ = J v", p_rate, _apply(J, v), 1e-7)
    T = pp.kinetic_energy(robot, q, v)
    yield _row("kinetic energy", T, "J", "½ v*𝓜 v", T, _dot(v, _apply(M, v)) / 2)

    spectrum = np.linalg.eigvalsh(M)
    yield _row("least eigenvalue of 𝓜", spectrum[:, 0], "", "𝓜 = 𝓜*", M, M.swapaxes(-1, -2))
    inverse = pp.mass_matrix_inverse(robot, q)
    yield _row("largest", spectrum[:, -1], "", "𝓜⁻¹𝓜 = 1", inverse @ M, np.eye(robot.nv))
    logdet = pp.mass_matrix_logdet(robot, q)
    yield _row("log det 𝓜", logdet, "", "NumPy's slogdet", logdet, np.linalg.slogdet(M)[1])
    Mx = pp.mass_matrix_product(robot, q, x)
    yield _row("‖𝓜 x‖ in O(N)", _norm(Mx), "", "the dense product", Mx, _apply(M, x))
    y = pp.mass_matrix_solve(robot, q, x)
    yield _row("‖𝓜⁻¹x‖ in O(N)", _norm(y), "", "𝓜 (𝓜⁻¹x) = x", _apply(M, y), x)

    felt = pp.operational_inertia(robot, q, "tool")
    J = pp.jacobian(robot, q, "tool")
    dense = np.linalg.inv(J @ inverse @ J.swapaxes(-1, -2))
    yield _row("mass felt at the tool", felt[:, 3, 3], "kg", "(J𝓜⁻¹J*)⁻¹", felt, dense, 1e-8)
    S, one = o.S.on(robot, q).matrix(), np.eye(6 * robot.nb)
    whole = o.Lambda.on(robot, q).matrix() @ o.Upsilon.on(robot, q).matrix()
    yield _row("of the rest, S, there", S[:, -3, -3], "kg", "(P + S)Υ = 1", whole, one, 1e-8)

    heavy = robot.with_gravity(EARTH)
    V = pp.potential_energy(heavy, q)
    yield _row("potential on Earth", V, "J", "−m g·c", V, -m * c @ EARTH)
    weight = pp.gravity_force(heavy, q)
    V_rate = _rate(lambda q, v: pp.potential_energy(heavy, q), robot, q, v)
    power = _dot(v, weight)
    yield _row("‖weight‖ on Earth", _norm(weight), "", "rate of the potential", power, V_rate, 1e-7)

    bias = pp.bias_force(robot, q, v)
    a = pp.forward_dynamics(robot, q, v, tau)
    yield _row("‖bias force‖", _norm(bias), "", "τ − 𝓜 a", bias, tau - _apply(M, a))
    again = pp.inverse_dynamics(robot, q, v, a)
    yield _row("‖accelerations a‖", _norm(a), "", "inverse dynamics = τ", again, tau)
    links, base = pp.link_accelerations(robot, q, v, tau), pp.accelerations(robot, q, v, a)
    yield _row("that of the last link", _norm(links[:, -1]), "", "every link as base", links, base)
    hand = pp.rebase(robot, robot.bodies[-1].name)
    there = pp.forward_dynamics(hand.robot, *hand.state(q, v), hand.force(q, tau))
    mapped = hand.acceleration(q, v, a)
    yield _row("‖a‖ with it as base", _norm(there), "", "a, mapped", there, mapped, 1e-8)
    driven = ~robot.mask(robot.hinges[0].name)
    free, own = ~driven * tau, driven * x
    reacted = pp.hybrid_dynamics(robot, q, v, free, own, active=driven)
    needed = pp.inverse_dynamics(robot, q, v, reacted.qdd)
    torque = _norm(reacted.tau * driven)
    yield _row("torques to prescribe x", torque, "", "inverse dynamics", needed, reacted.tau)
    still = pp.passive_rates(robot, q, v, driven)
    reach, seen = pp.generalized_jacobian(robot, q, "tool", driven), _apply(J, still)
    tool = _norm(seen)
    yield _row("tool speed adrift", tool, "", "J_G v at momentum 0", _apply(reach, v), seen)
    nu = pp.total_rates(robot, q, v)
    C = pp.diagonal_coriolis(robot, q, nu)
    yield _row("‖total rates ν‖", _norm(nu), "", "½ν*ν = energy", _dot(nu, nu) / 2, T)
    workless = _dot(nu, C) / (_norm(nu) * _norm(C))
    yield _row("‖Coriolis term C_ν‖", _norm(C), "", "ν*C_ν = 0", workless, 0 * workless, 1e-12)
    goal = pp.frame_pose(robot, q, "tool")
    found = pp.inverse_kinematics(robot, q + 0.1 * _shape(robot), {"tool": goal})
    reached = pp.frame_pose(robot, found.q, "tool")
    steps = found.iterations
    yield _row("steps back to p", steps, "", "the pose of the tool", reached, goal, 1e-7)
    power, T_rate = _dot(v, tau), _rate(lambda q, v: pp.kinetic_energy(robot, q, v), robot, q, v, a)
    yield _row("power of τ", power, "W", "rate of the energy", power, T_rate, 1e-6)

    v = 0.3 * v
    q1, v1, work = _drift(robot, q, v, tau)
    before, after = pp.momentum(robot, q, v), pp.momentum(robot, q1, v1)
    gain = pp.kinetic_energy(robot, q1, v1) - pp.kinetic_energy(robot, q, v)
    kept = f"kept in {DURATION:g} s adrift"
    for name, unit, k in (("angular", "N·m·s", slice(0, 3)), ("linear", "N·s", slice(3, 6))):
        yield _row(f"{name} momentum", after[:, k], unit, kept, after[:, k], before[:, k], 1e-6)
    yield _row("energy gained adrift", gain, "J", "work of the motors", gain, work, 1e-6)


def _row(
    quantity: str,
    value: Any,
    unit: str,
    check: str,
    got: Any,
    wanted: Any,
    tolerance: float = 1e-10,
) -> Row:
    """A row with the value at the first state and the largest error, relative to the largest number
    compared (at least 1)."""
    first = np.atleast_1d(value[0])
    shown = ", ".join(f"{x:.{4 if len(first) == 1 else 3}g}" for x in first)
    error = float(np.abs(got - wanted).max() / max(1.0, np.abs(wanted).max()))
    return Row(quantity, f"{shown} {unit}".rstrip(), check, error, tolerance)


def _drift(robot: pp.Robot, q: Any, v: Any, tau: Any) -> tuple[Any, Any, Any]:
    """The state after a drift with the joints driven and the base left alone, and the work done.

    Fourth order and true to the group of the hinges: the commutator-free Runge-Kutta scheme of
    Celledoni, Marthinsen & Owren (Future Gener. Comput. Syst. 19, 2003).
    """
    tau = np.where(np.arange(robot.nv) < 6, 0.0, tau)
    dt, work, move = DURATION / STEPS, 0.0, robot.integrate

    def force(q: Any, v: Any) -> Any:
        return pp.forward_dynamics(robot, q, v, tau)

    for _ in range(STEPS):
        a1 = force(q, v)
        q2, v2 = move(q, dt / 2 * v), v + dt / 2 * a1
        a2 = force(q2, v2)
        q3, v3 = move(q, dt / 2 * v2), v + dt / 2 * a2
        a3 = force(q3, v3)
        q4, v4 = move(q2, dt * v3 - dt / 2 * v), v + dt * a3
        a4 = force(q4, v4)
        q = move(q, dt / 12 * (3 * v + 2 * v2 + 2 * v3 - v4))
        q = move(q, dt / 12 * (-v + 2 * v2 + 2 * v3 + 3 * v4))
        work = work + dt / 6 * _dot(tau, v + 2 * v2 + 2 * v3 + v4)
        v = v + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    return q, v, work


def _rate(f: Callable[[Any, Any], Any], robot: pp.Robot, q: Any, v: Any, a: Any = 0.0) -> Any:
    """d/dt f(q, v) along v and a, by central differences of fourth order."""
    dt = 1e-3
    at = [f(robot.integrate(q, s * dt * v), v + s * dt * a) for s in (-2, -1, 1, 2)]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * dt)


def _shape(robot: pp.Robot) -> Any:
    """One for each coordinate of a joint, zero for those of the base."""
    return np.where(np.arange(robot.nq) < 7, 0.0, 1.0)


def _apply(A: Any, x: Any) -> Any:
    return (A @ x[..., None])[..., 0]


def _dot(x: Any, y: Any) -> Any:
    return (x * y).sum(-1)


def _norm(x: Any) -> Any:
    return np.linalg.norm(x, axis=-1)
