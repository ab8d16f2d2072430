"""`phipsi simulate`: run a scenario, print a summary, and write the results."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, TypedDict

import numpy as np

import phipsi as pp
from phipsi.cli.errors import INTERRUPTED, BadUsage
from phipsi.scenarios import SCENARIOS, Scenario, ScenarioError, load
from phipsi.scenarios.folder import check, filled, inside
from phipsi.scenarios.scenario import Goal
from phipsi.scenarios.toml_reader import ScenarioNotFoundError
from phipsi.simulation import ADAPTIVE
from phipsi.typing import Array, Pose

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 3
"""The most numbers of a signal that the table shows; longer signals are left out."""


def list_scenarios(as_json: bool) -> None:
    """Print the shipped scenarios, one line each."""
    titles = {name: load(name).document.title for name in SCENARIOS}
    if as_json:
        print(json.dumps([{"name": name, "title": title} for name, title in titles.items()]))
        return
    width = max(map(len, SCENARIOS))
    for name, title in titles.items():
        print(f"{name:{width}}  {title}")


def run(
    name: str | None,
    output: str | None,
    changes: Mapping[str, float | str | None],
    *,
    as_json: bool,
    force: bool,
    quiet: bool,
) -> int:
    """Simulate, write, and print a summary; returns the exit code.

    `changes` are values of [simulation] in place of those in the file, where they are not None.
    """
    if name is None:
        raise BadUsage("name a scenario, or list them with --list")
    if output == "":
        raise BadUsage("--output needs the name of a folder")
    scenario = _changed(_found(name), changes)
    named = scenario.output.folder
    where = scenario.output.where / "folder"
    folder = Path(output) if output else inside(named, where) if named else None
    if folder is not None:
        check(folder, force)
    outcome = _simulated(scenario, quiet)
    motion = outcome.motion
    if motion is None:
        _say(outcome.early_end)
        sys.exit(INTERRUPTED)
    result = summary(scenario, motion)
    result["ended"] = outcome.early_end or "finished"
    notes = _late(scenario)
    if folder:
        try:
            notes += _written(scenario, motion, result, folder, force)
        except KeyboardInterrupt:  # the motion is there; pictures of it can be drawn again
            if not outcome.early_end:
                outcome = Outcome(motion, "stopped while figures were drawn", interrupted=True)
            result["ended"] = outcome.early_end
            _written(scenario, motion, result, folder, force, pictures=False)
    for note in notes if not quiet else []:
        _say(note)
    if as_json:
        print(json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False))
    elif not quiet:
        _show(result)
    if not outcome.early_end:
        return 0
    kept = f"what was computed is in {str(folder)!r}" if folder else "nothing was written"
    _say(f"{outcome.early_end}; {kept}")
    if outcome.interrupted:
        sys.exit(INTERRUPTED)
    return 1


def _found(name: str) -> Scenario:
    """The scenario of a file, or the shipped one of that name."""
    try:
        return load(name)
    except ScenarioNotFoundError as error:
        raise BadUsage(str(error)) from None


def _changed(scenario: Scenario, changes: Mapping[str, float | str | None]) -> Scenario:
    given = {name: value for name, value in changes.items() if value is not None}
    try:
        return scenario.changed(**given) if given else scenario
    except ScenarioError as error:
        raise BadUsage(f"--{error.path[-1]} {error.problem}") from None


class Outcome(NamedTuple):
    """How a simulation ended."""

    motion: pp.Trajectory | None
    """What was computed; None if that is nothing."""
    early_end: str = ""
    """Why it ended before its duration, one sentence; empty if it did not."""
    interrupted: bool = False
    """Whether Ctrl-C ended it."""


def _simulated(scenario: Scenario, quiet: bool) -> Outcome:
    """Simulate, with a progress bar unless `quiet`."""
    try:
        with _progress(scenario.name, quiet) as progress:
            return Outcome(scenario.run(progress))
    except pp.Interrupted as stop:
        return Outcome(stop.trajectory, str(stop), interrupted=True)
    except KeyboardInterrupt:
        sentence = "stopped before the first step; nothing was written"
        return Outcome(None, sentence, interrupted=True)
    except (pp.Diverged, pp.EventError) as error:
        return Outcome(error.trajectory, str(error))


@contextmanager
def _progress(name: str, quiet: bool) -> Generator[Callable[[float], None] | None]:
    """A progress bar on stderr, if that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), Left())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(f"{name}: compiling", total=None)

        def progress(done: float) -> None:
            bars.update(task, description=name, total=1.0, completed=done)

        yield progress


def _say(message: str) -> None:
    print("phipsi:", " ".join(message.split()), file=sys.stderr)


# ---- the summary --------------------------------------------------------------------------------


class EnergySummary(TypedDict):
    """[J]."""

    first: float | None
    change: float | None


class MomentumSummary(TypedDict):
    """The largest changes, [N·m·s] and [N·s]."""

    angular: float | None
    linear: float | None


class EventSummary(TypedDict):
    """The time [s] of an event, and one sentence that says what happened."""

    time: float
    what: str


class Summary(TypedDict):
    """The summary of a motion, as JSON: numbers in SI units, null where they are not finite."""

    scenario: str
    title: str
    robot: str
    duration: float
    samples: int
    method: str
    dt: float
    goals: dict[str, dict[str, float | None]]
    """By frame the distance from its goal: "position" [m], "attitude" [rad]."""
    signals: dict[str, float | list[float | None] | None]
    """The last values of signals."""
    units: dict[str, str]
    energy: EnergySummary
    momentum_change: MomentumSummary | None
    events: list[EventSummary]
    folder: str | None
    files: list[str]
    ended: NotRequired[str]
    """"finished", or why it ended early."""


def summary(scenario: Scenario, motion: pp.Trajectory) -> Summary:
    """The summary of a motion, before anything is written."""
    energy = motion[[0, -1]].energy
    return {
        "scenario": scenario.name,
        "title": scenario.document.title,
        "robot": scenario.robot.name,
        "duration": motion.duration,
        "samples": len(motion),
        "method": motion.method,
        "dt": motion.dt,
        "goals": {frame: _miss(motion.frame(frame)[-1], x) for frame, x in scenario.goals.items()},
        "signals": {name: _last(x) for name, x in motion.signals.items()},
        "units": dict(motion.units),
        "energy": {"first": _number(energy[0]), "change": _number(energy[1] - energy[0])},
        "momentum_change": _momentum_change(motion),
        "events": [{"time": time, "what": what} for time, what in motion.events],
        "folder": None,
        "files": [],
    }


def _miss(now: Pose, goal: Goal) -> dict[str, float | None]:
    """The distance of a frame from its goal [m, rad], in the rows that are controlled."""
    e = np.asarray(pp.control.pose_error(now, goal.pose), float)
    miss = {"position": e[3:], "attitude": e[:3]}
    for row, name in (("linear", "attitude"), ("position", "attitude"), ("angular", "position")):
        if goal.rows == row:
            del miss[name]
    return {name: _number(np.linalg.norm(x)) for name, x in miss.items()}


def _momentum_change(motion: pp.Trajectory) -> MomentumSummary | None:
    """The largest change of momentum of a robot that floats freely; None of others."""
    robot = motion.robot
    roots = [h for h in robot.hinges if h.parent == "world"]
    if any(h.kind.name != "free" for h in roots) or np.any(robot.gravity):
        return None
    change = np.abs(motion.momentum - motion.momentum[:1])
    return {"angular": _number(change[:, :3].max()), "linear": _number(change[:, 3:].max())}


def _last(x: Array) -> float | list[float | None] | None:
    """The last sample of a signal."""
    return [_number(y) for y in x[-1]] if x.ndim > 1 else _number(x[-1])


def _number(x: float | np.floating[Any] | Array) -> float | None:
    return float(x) if np.isfinite(x) else None


def rows(result: Summary) -> Iterator[tuple[str, str]]:
    """The rows of the table: quantity and value."""
    what = "sampled every" if result["method"] in ADAPTIVE else "in steps of"
    step = f" {what} {result['dt']:g} s ({result['method']})"
    yield "simulated", f"{result['duration']:g} s{step}, {result['samples']} samples"
    for frame, miss in result["goals"].items():
        units = {"position": "m", "attitude": "rad"}
        yield f"{frame} misses by", ", ".join(f"{_text(x)} {units[n]}" for n, x in miss.items())
    for name, value in result["signals"].items():
        values = value if isinstance(value, list) else [value]
        if len(values) <= SHOWN:
            yield name, f"{', '.join(map(_text, values))} {result['units'].get(name, '')}".rstrip()
    yield (
        "energy",
        f"{_text(result['energy']['first'])} J, change {_text(result['energy']['change'])} J",
    )
    if change := result["momentum_change"]:
        yield "momentum change", f"{_text(change['angular'])} N·m·s, {_text(change['linear'])} N·s"
    for event in result["events"]:
        yield f"at {event['time']:g} s", event["what"]
    if result["folder"]:
        yield f"in {result['folder']}", ", ".join(result["files"])


def _text(x: float | None) -> str:
    return "not finite" if x is None else f"{x:.3g}"


def _show(result: Summary) -> None:
    """Print the table of a summary."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(result["title"]), title_justify="left", box=box.SIMPLE_HEAD)
    table.show_header, table.show_edge, table.padding = False, False, (0, 2, 0, 0)
    for cells in rows(result):
        table.add_row(*map(escape, cells))
    console = Console(highlight=False)
    console.print(table)
    if not result["folder"]:
        console.print("[dim]Nothing was written: say --output DIR to keep it.[/]")


def _late(scenario: Scenario) -> list[str]:
    """One sentence for each event after the end."""
    end = scenario.simulation.duration
    return [
        f"events[{k}] at {event.at:g} s comes after the end and does not happen"
        for k, event in enumerate(scenario.document.events)
        if event.at > end
    ]


# ---- files --------------------------------------------------------------------------------------


def _written(
    scenario: Scenario, motion: pp.Trajectory, result: Summary, folder: Path, force: bool,
    *, pictures: bool = True,
) -> list[str]:  # fmt: skip
    """Write all files, whose names are added to the summary; returns one sentence for each that was
    left out, with the reason."""
    notes: list[str] = []
    result["folder"] = str(folder)
    with filled(folder, force) as draft:
        for form in scenario.output.formats:
            motion.save(draft / f"trajectory.{form}")
        (draft / "scenario.toml").write_bytes(scenario.content)
        figures = _figures(scenario, motion, draft, notes) if pictures else {}
        if scenario.output.report and pictures:
            _report(scenario, motion, result, figures, draft / "report.html")
        result["files"] = sorted([*(f.name for f in draft.iterdir()), "summary.json"])
        text = json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False)
        (draft / "summary.json").write_text(text, encoding="utf-8")
    return notes


def _figures(
    scenario: Scenario, motion: pp.Trajectory, draft: Path, notes: list[str]
) -> dict[str, Figure]:
    """Write the figures as PNG; returns them by quantity, and adds to `notes` those left out."""
    from phipsi.view.figures import save_figure

    made: dict[str, Figure] = {}
    for what in dict.fromkeys(scenario.output.figures):
        try:
            made[what] = motion.plot(what)
        except ImportError as error:
            notes.append(f"figures were left out: {error}")
            break
        except ValueError as error:
            notes.append(f"the figure of {what!r} was left out: {error}")
            continue
        name = "".join(c if c.isalnum() else "_" for c in what)[:80]
        save_figure(made[what], draft / f"{name}.png")
    return made


def _report(
    scenario: Scenario,
    motion: pp.Trajectory,
    result: Summary,
    figures: dict[str, Figure],
    path: Path,
) -> None:
    """Write the report as HTML."""
    from phipsi.view.report import Report

    page = Report(result["title"], f"Scenario {scenario.name}, robot {result['robot']}")
    for paragraph in scenario.document.about.strip().split("\n\n"):
        page.paragraph(paragraph)
    goals = {f"goal of {frame}": goal.pose for frame, goal in scenario.goals.items()}
    page.heading("The motion").animation(
        {scenario.name: motion}, frames=scenario.frames, targets=goals
    )
    lines = [row for row in rows(result) if not row[0].startswith("in ")]
    page.heading("How it ended").table(["quantity", "value"], lines)
    for what, figure in figures.items():
        page.figure(figure, alt=f"{what} over time", caption=what)
    page.save(path)
