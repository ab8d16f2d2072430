"""`phipsi demo`: a free-flying arm reaches with its thrusters off, by three controllers; and how
momentum and energy drift in a thousand seconds of free motion."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

import phipsi as pp
from phipsi.control import on_path, pose_path, reaction_mode, resolved_acceleration
from phipsi.scenarios.folder import check, filled
from phipsi.typing import (
    Array,
    ConfigurationLike,
    JointVector,
    JointVectorLike,
    Pose,
    PoseLike,
    ScalarLike,
)
from phipsi.view import Report, base_motion, conservation, picture, save_figure, tip_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

START = (1.73, -0.04, -0.22, -0.4, -1.09, 0.85, 0.0)
"""The joints of the arm at the start [rad]: elbow bent, far from singular."""
WAY = (-0.7, 0.6, -0.3)
"""The displacement of the tool from its start to the target [m]."""
REACH, HOLD, STEP = 8.0, 2.0, 0.01
ADRIFT, EVERY = 1000.0, 50
ORDINARY, GENERAL, REACTION = "ordinary Jacobian", "generalized Jacobian", "reaction mode"
Compared = Literal["rk4", "preserving", "preserving4"]
"""The methods of integration whose drift is compared."""
TITLE = "A free-flying arm reaches with its thrusters off"


@pp.program
def as_if_fixed(
    robot: pp.Robot,
    t: ScalarLike,
    q: ConfigurationLike,
    v: JointVectorLike,
    active: JointVectorLike,
    start: PoseLike,
    goal: PoseLike,
    duration: ScalarLike,
) -> JointVector:
    """Resolved acceleration by the ordinary Jacobian, as if the base stayed where it was, which it
    does not."""
    q, v, active = np.asanyarray(q), np.asanyarray(v), np.asanyarray(active)
    believed = np.concatenate([robot.neutral()[:7], q[7:]])
    seen = np.where(active, v, 0.0)
    pose, velocity, acceleration = pose_path(t, duration, start, goal)
    at = pp.frame_pose(robot, believed, "tool")[:3, 3]
    J = pp.jacobian(robot, believed, "tool", reference="aligned")[3:] * active
    moving = pp.frame_acceleration(
        robot, believed, seen, np.zeros(robot.nv), "tool", reference="aligned", classical=True
    )
    wanted = acceleration[3:] + 16.0 * (pose[:3, 3] - at) + 8.0 * (velocity[3:] - J @ v)
    y = -seen
    qdd = y + pp.linalg.least_squares(J, wanted - moving[3:] - J @ y, 1e-6)
    return pp.hybrid_dynamics(robot, q, v, np.zeros(robot.nv), qdd, active).tau


class Check(NamedTuple):
    """A claim of the demonstration, what was measured, and whether the claim holds."""

    claim: str
    measured: str
    holds: bool


def run(output: Path, force: bool) -> int:
    """Simulate, print, write figures and the report; return 0 when every claim holds, else 1."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    begin, console = time.perf_counter(), Console(highlight=False)
    errors = Console(stderr=True)
    check(output, force)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("reaching, three ways")
        motions, target = reach()
        bar.update(task, description="1 000 s adrift, three methods")
        adrift = {method: drift(method) for method in get_args(Compared)}
        bar.update(task, description="figures and report")
        rows = [[name, *compared(motion, target)] for name, motion in motions.items()]
        kept = [[name, *conserved(motion)] for name, motion in adrift.items()]
        checks = list(claims(motions, target, adrift))
        with filled(output, force) as draft:
            written = write(draft, motions, target, adrift, rows, kept, checks)
    _print(console, rows, kept, checks)
    spent = time.perf_counter() - begin
    console.print(f"{spent:.0f} s; written to {output}: {', '.join(written)}", markup=False)
    console.print(f"Open {output / 'report.html'} in a browser to see it move.", markup=False)
    return 0 if all(one.holds for one in checks) else 1


# ---- the motions --------------------------------------------------------------------------------


def reach() -> tuple[dict[str, pp.Trajectory], Pose]:
    """The motions of the tool along one path by three controllers, and the goal of the path."""
    robot = pp.robots.space_arm()
    q = robot.neutral()
    q[7:] = START
    start = pp.frame_pose(robot, q, "tool")
    goal = start.copy()
    goal[:3, 3] += WAY
    path = {"start": start, "goal": goal, "duration": REACH}
    position = {**path, "rows": "position"}
    laws: dict[str, tuple[pp.Program[..., Any], dict[str, Any]]] = {
        REACTION: (on_path(reaction_mode), position),
        GENERAL: (on_path(resolved_acceleration), position),
        ORDINARY: (as_if_fixed, path),
    }
    return {
        name: pp.simulate(
            robot, q, None, law, duration=REACH + HOLD, dt=STEP, parameters=parameters,
            frames=("tool", "base"),
        )
        for name, (law, parameters) in laws.items()
    }, goal  # fmt: skip


def drift(method: Compared) -> pp.Trajectory:
    """The free motion of the arm over a thousand seconds, in steps of 10 ms."""
    robot = pp.robots.space_arm()
    q, v = robot.random_state(1)
    v = v * np.where(robot.mask("base"), 0.05, 2.0)
    return pp.simulate(robot, q, v, duration=ADRIFT, dt=STEP, every=EVERY, method=method)


# ---- measures and claims ------------------------------------------------------------------------

REACHED = ("", "miss [mm]", "base turns [°]", "moves [mm]", "momentum [SI]", "energy − work [J]")
DRIFTED = "1 000 s adrift in steps of 10 ms: relative changes, of energy their median"
KEPT = ("", "angular momentum", "linear", "energy: 100 s", "500 s", "then")


def compared(motion: pp.Trajectory, target: Array) -> list[float]:
    """Miss [mm], largest turn [°] and shift [mm] of the base, largest momentum, and the difference
    between the motors' work and the change of energy [J]."""
    angle = np.linalg.norm(motion.robot.difference(motion.q[0], motion.q)[:, :3], axis=1)
    moved = np.linalg.norm(motion.q[:, :3] - motion.q[0, :3], axis=1)
    power = (motion.tau * motion.v).sum(1)
    work = STEP * (power.sum() - 0.5 * (power[0] + power[-1]))
    gained = motion.energy[-1] - motion.energy[0]
    return [
        1e3 * miss(motion, target), float(np.degrees(angle.max())), 1e3 * float(moved.max()),
        float(np.abs(motion.momentum).max()), float(abs(work - gained)),
    ]  # fmt: skip


def miss(motion: pp.Trajectory, target: Array) -> float:
    """The distance between the end of the tool's path and its target [m]."""
    return float(np.linalg.norm(motion.frame("tool")[-1, :3, 3] - target[:3, 3]))


def conserved(motion: pp.Trajectory) -> list[float]:
    """The largest relative changes of angular and linear momentum; the median relative changes of
    energy in the first tenth, the first half and the second half."""
    h = motion.momentum.reshape(-1, 2, 3)
    change = np.linalg.norm(h - h[0], axis=-1).max(0) / np.linalg.norm(h[0], axis=-1)
    error, n = np.abs(motion.energy / motion.energy[0] - 1.0), len(motion)
    parts = (error[: n // 10], error[: n // 2], error[n // 2 :])
    return [*map(float, change), *(float(np.median(part)) for part in parts)]


def claims(
    motions: Mapping[str, pp.Trajectory], target: Array, adrift: Mapping[str, pp.Trajectory]
) -> Iterator[Check]:
    """The claims of the demonstration, checked."""
    found = {name: compared(motion, target) for name, motion in motions.items()}
    short, turned = found[REACTION][0], found[REACTION][1]
    yield Check("reaction mode reaches within 1 mm", f"{short:.2g} mm", short < 1.0)
    ratio = found[GENERAL][1] / max(turned, 1e-12)
    told = f"{ratio:.0f} times" if ratio < 1e6 else "more than a million times"
    yield Check("and turns the base 10 times less", told, ratio > 10.0)
    wide = found[ORDINARY][0]
    yield Check("the ordinary Jacobian misses by decimetres", f"{wide:.0f} mm", wide > 100.0)
    spin = max(row[3] for row in found.values())
    yield Check("the momentum of all stays zero", f"{spin:.0e} N·m·s", spin < 1e-6)
    exact = {name: conserved(motion) for name, motion in adrift.items()}
    for name in ("preserving", "preserving4"):
        worst = max(exact[name][:2])
        yield Check(f"{name}: momentum exact in 1e5 steps", f"{worst:.0e}", worst < 1e-12)
        before, after = exact[name][3:]
        yield Check(f"{name}: energy bounded", f"{after:.0e}", after < 2.0 * before)
    first, last = exact["rk4"][2], exact["rk4"][4]
    yield Check("where Runge-Kutta's energy drifts", f"{last / first:.0f}-fold", last > 3.0 * first)


# ---- output -------------------------------------------------------------------------------------

TableRow = list[str | float]
"""A name and numbers."""


def _print(
    console: Console, rows: list[TableRow], kept: list[TableRow], checks: list[Check]
) -> None:
    """Print both tables and the checks."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    for title, header, lines in (
        (TITLE, REACHED, rows),
        (DRIFTED, KEPT, kept),
    ):
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
        for i, name in enumerate(header):
            table.add_column(escape(name), justify="right" if i else "left")
        for name, *numbers in lines:
            table.add_row(str(name), *(f"{x:.3g}" for x in numbers))
        console.print(table)
        console.print()
    for one in checks:
        mark = "[green]✓[/]" if one.holds else "[bold red]✗[/]"
        console.print(f"{mark} {one.claim}: {one.measured}")


def write(
    output: Path, motions: Mapping[str, pp.Trajectory], target: Array,
    adrift: Mapping[str, pp.Trajectory], rows: list[TableRow], kept: list[TableRow],
    checks: list[Check],
) -> list[str]:  # fmt: skip
    """Write figures, the report and the trajectory of reaction mode; return the names of files."""
    names = ["report.html", "reaction.npz"]
    page = Report(TITLE, "phipsi " + pp.__version__)
    page.paragraph(
        "A spacecraft of 300 kg with an arm of seven axes floats; no thruster fires. The tool is "
        f"to move by {np.linalg.norm(WAY):.2f} m in {REACH:g} s. The ordinary Jacobian takes the "
        "base for fixed: the base yields and the tool misses. The generalized Jacobian knows how "
        "the base yields, and the tool arrives. In reaction mode the axes that the tool does not "
        "need hold the attitude of the base as well."
    )
    page.animation(motions, frames=["tool"], targets={"target": target})
    page.table(REACHED, rows, caption="What each does")
    pictures = _pictures(motions, target, adrift)
    for name, (figure, words) in pictures.items():
        page.figure(figure, alt=words, caption=words)
        for suffix in ("png", "svg"):
            save_figure(figure, output / f"{name}.{suffix}")
            names.append(f"{name}.{suffix}")
    page.heading("A thousand seconds adrift")
    page.table(KEPT, kept, caption=DRIFTED)
    page.heading("What was checked")
    page.table(
        ("claim", "measured", ""),
        [(c.claim, c.measured, "holds" if c.holds else "DOES NOT HOLD") for c in checks],
    )
    page.save(output / "report.html")
    motions[REACTION].save(output / "reaction.npz")
    return names


def _pictures(
    motions: Mapping[str, pp.Trajectory], target: Array, adrift: Mapping[str, pp.Trajectory]
) -> dict[str, tuple[Figure, str]]:
    """Figures by name, each with its description; none without matplotlib."""
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        note = 'phipsi: no figures: they need matplotlib, pip install "phipsi[plot]"'
        print(note, file=sys.stderr)
        return {}
    two = {name: motions[name] for name in (REACTION, ORDINARY)}
    return {
        "reach": (
            picture(
                two,
                frames=["tool"],
                targets={"target": target[:3, 3]},
                count=3,
                azimuth=35.0,
                elevation=15.0,
            ),
            "The tool arrives in reaction mode; with the ordinary Jacobian the base yields and it "
            "misses.",
        ),
        "base": (base_motion(motions), "What the base does."),
        "tip": (tip_error(motions, "tool", target[:3, 3]), "The distance to the target."),
        "adrift": (
            conservation(adrift, relative=True),
            "Momentum and energy of an arm that swings freely: exact and bounded with the "
            "preserving methods, adrift with Runge-Kutta.",
        ),
    }
