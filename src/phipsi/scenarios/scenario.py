"""Scenarios: files that describe simulations, which are read, checked and run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from phipsi.cached import cached_property
from phipsi.control.composition import composed, composed_name
from phipsi.model import Closure, ModelError, Robot, untrusted
from phipsi.model.untrusted import quoted
from phipsi.programs import Program
from phipsi.scenarios.controller_spec import ControllerSpec, controller_specs
from phipsi.scenarios.schema import (
    CaptureTable,
    ChangeTable,
    Document,
    EventTable,
    FailureTable,
    Output,
    ReleaseTable,
    Simulation,
    Start,
)
from phipsi.scenarios.toml_reader import (
    At,
    ScenarioError,
    ScenarioNotFoundError,
    TomlValue,
    hint,
    parse,
    read,
)
from phipsi.scenarios.world import (
    Built,
    build,
    closures,
    known_frame,
    known_hinge,
    start_state,
    wrong_at,
)
from phipsi.simulation import (
    Capture,
    Change,
    Event,
    Failure,
    Release,
    Trajectory,
)
from phipsi.simulation.simulator import Progress, Simulator
from phipsi.typing import Configuration, JointVector, Pose

MAX_STEPS, MAX_NUMBERS = 10**8, 10**8
"""The most steps of a simulation, and the most numbers that it records."""
FILES = resources.files("phipsi.scenarios") / "files"
SCENARIOS = (
    "reaction_mode",
    "reaction_thrusters_wheels",
    "actuator_failure",
    "two_arms_box",
    "two_arms_shears",
    "snake_passive",
    "puma_diagonal",
)
"""The scenarios that ship."""
UNITS = {
    "attitude_error": "rad",
    "position_error": "m",
    "base_attitude_error": "rad",
    "base_position_error": "m",
    "pressure": "N",
    "impulse": "N·m·s, N·s",
}
"""The units of signals of the controllers that ship."""


def load(
    source: str | os.PathLike[str], laws: Mapping[str, Program[..., Any]] | None = None
) -> Scenario:
    """The scenario of a TOML file, or the shipped one of that name, checked.

    Parameters
    ----------
    source
        The path of a file, or a name of `SCENARIOS`.
    laws : optional
        Controllers of your own (programs) by the names that the file calls them.

    Returns
    -------
    Scenario
        The scenario.

    Raises
    ------
    ScenarioError
        There is no such file, or it is wrong; the message names the line and the key.

    Examples
    --------
    >>> from phipsi import scenarios
    >>> scenarios.load("puma_diagonal")
    <Scenario 'puma_diagonal': puma560, 10 s>
    """
    path = Path(source)
    try:
        there = path.exists() and not (path.is_dir() and str(source) in SCENARIOS)
    except (OSError, ValueError):
        there = False
    if not there and str(source) in SCENARIOS:
        shipped = FILES / f"{source}.toml"
        return Scenario.of(shipped.read_bytes(), str(source), Path(), laws)
    if not there:
        shown = quoted(str(source), 200)
        raise ScenarioNotFoundError(
            f"there is no file and no scenario {shown}; {hint(str(source), SCENARIOS)}"
        )
    try:
        content = untrusted.read(path)
    except FileNotFoundError as error:
        raise ScenarioNotFoundError(str(error)) from None
    except (ModelError, OSError) as error:
        raise ScenarioError(str(error)) from None
    shown = path.name if path.name.isprintable() else quoted(path.name, 200)
    return Scenario.of(content, shown, path.parent, laws)


class Goal(NamedTuple):
    """The pose to which a controller leads a frame."""

    pose: Pose
    rows: str
    """The rows of the pose that the controller controls, such as "pose" or "linear"."""


@dataclass(frozen=True, eq=False, repr=False)
class Scenario:
    """A simulation that a file describes; made by `load`, run by `run`."""

    name: str
    content: bytes
    document: Document
    built: Built
    closures: tuple[Closure, ...]
    controllers: tuple[ControllerSpec, ...]

    @classmethod
    def of(
        cls,
        content: bytes,
        file: str,
        folder: Path,
        laws: Mapping[str, Program[..., Any]] | None = None,
    ) -> Scenario:
        """The scenario of a text.

        Parameters
        ----------
        content
            The text, TOML in UTF-8.
        file
            The name of the file, for errors; without ".toml" it is the name of the scenario.
        folder
            The folder to which the paths of files in the text are relative.
        laws : optional
            As in `load`.

        Returns
        -------
        Scenario
            The scenario.
        """
        tables, at = parse(content, file)
        return cls.made(read(Document, tables, at), content, folder, laws)

    @classmethod
    def made(
        cls,
        document: Document,
        content: bytes,
        folder: Path,
        laws: Mapping[str, Program[..., Any]] | None = None,
    ) -> Scenario:
        """The scenario of a document: its robot built, all names in it checked.

        Parameters
        ----------
        document
            The tables of the file.
        content
            The text of the file.
        folder
            The folder to which the paths of files in the text are relative.
        laws : optional
            As in `load`.

        Returns
        -------
        Scenario
            The scenario.
        """
        name = document.where.file.removesuffix(".toml")
        built = build(document.robot, folder, document.robot.name or name)
        held = closures(document.closures, built.robot)
        rate = document.simulation.stabilisation
        controllers = controller_specs(document.controller, built.robot, held, rate, laws)
        scenario = cls(name, content, document, built, held, controllers)
        scenario._check()
        return scenario

    @property
    def robot(self) -> Robot:
        """All robots and bodies of the scenario as one robot."""
        return self.built.robot

    @property
    def simulation(self) -> Simulation:
        """The table [simulation]."""
        return self.document.simulation

    @property
    def output(self) -> Output:
        """The table [output]."""
        return self.document.output or Output(self.document.where / "output")

    @cached_property
    def start(self) -> tuple[Configuration, JointVector]:
        """The state (q, v) at t = 0."""
        start = self.document.start or Start(self.document.where / "start")
        return start_state(self.built, start, self.closures)

    @property
    def frames(self) -> tuple[str, ...]:
        """The frames whose poses are recorded: those of [output] and of the controllers."""
        own = (m.frame for m in self.controllers if "frame" in m.controller.parameters)
        return tuple(dict.fromkeys([*self.output.frames, *own]))

    @property
    def goals(self) -> dict[str, Goal]:
        """The goals of the controllers, by frame."""
        found: dict[str, Goal] = {}
        for spec in self.controllers:
            given = spec.parameters(self.start[0])
            pose = given.get("path_goal" if spec.part.path == "pose" else "pose")
            if pose is not None:
                rows = dict(spec.part.options).get("rows", "pose")
                found[spec.frame] = Goal(pose, rows)
        return found

    def changed(self, **simulation: TomlValue) -> Scenario:
        """The scenario with other values in its table [simulation].

        Parameters
        ----------
        **simulation
            Keys of the table, such as `duration`, `dt` or `method`.

        Returns
        -------
        Scenario
            The changed scenario.
        """
        at = At(self.name, path=("simulation",))
        checked = read(Simulation, {"duration": self.simulation.duration, **simulation}, at)
        values = {name: getattr(checked, name) for name in simulation}
        document = replace(self.document, simulation=replace(self.simulation, **values))
        scenario = replace(self, document=document)
        scenario._check_size(at)
        return scenario

    def run(self, progress: Progress | None = None) -> Trajectory:
        """Simulate the scenario.

        Parameters
        ----------
        progress : optional
            Called with the fraction that is done.

        Returns
        -------
        Trajectory
            The motion, with the units of its signals.

        Raises
        ------
        ScenarioError
            The scenario cannot be simulated.
        """
        sim, (q, v) = self.simulation, self.start
        parts = tuple(m.part for m in self.controllers)
        given = [m.parameters(q) for m in self.controllers]
        alone = len(parts) == 1
        controller = composed(parts, tuple(tuple(own) for own in given)) if parts else None
        parameters = {
            composed_name(part, name, alone): value
            for part, own in zip(parts, given, strict=True)
            for name, value in own.items()
        }
        memory = sum(part.memory for part in parts)
        with wrong_at(self.document.where, "cannot be simulated"):
            simulator = Simulator(
                self.robot, controller, sim.options(self.closures),
                memory=np.zeros(memory) if memory else None, external=sim.external,
            )  # fmt: skip
            motion = simulator.simulate(q, v, parameters, self._events(q), self.frames, progress)
        units = {name: UNITS.get(name.rpartition(".")[2], "") for name in motion.signals}
        return replace(motion, units=units)

    def __repr__(self) -> str:
        return f"<Scenario {self.name!r}: {self.robot.name}, {self.simulation.duration:g} s>"

    # ---- checks --------------------------------------------------------------------------------

    def _check(self) -> None:
        """Refuse names that the robot does not have, and simulations that are too large."""
        for k, name in enumerate(self.output.frames):
            known_frame(self.robot, name, self.output.where / "frames" / k)
        for name in self.simulation.external or {}:
            known_frame(self.robot, name, self.simulation.where / "external" / name)
        for k, spring in enumerate(self.simulation.springs):
            for key, name in (("a", spring.a), ("b", spring.b)):
                known_frame(self.robot, name, self.simulation.where / "springs" / k / key)
        for event in self.document.events:
            self._check_event(event)
        start = self.document.start
        for each in start.reach if start else ():
            known_frame(self.robot, each.frame, each.where / "frame")
        self._check_size(self.simulation.where)

    def _check_size(self, at: At) -> None:
        """Refuse too many steps, or too many numbers to record."""
        sim = self.simulation
        steps, size = sim.duration / sim.dt, self.robot.nq + 2 * self.robot.nv
        if not steps <= MAX_STEPS:
            raise (at / "dt").wrong(
                f"takes {steps:.1e} steps for {sim.duration:g} s, but at most {MAX_STEPS:.0e} are "
                "allowed; take a larger one"
            )
        if steps / sim.every * size > MAX_NUMBERS:
            least = int(np.ceil(steps * size / MAX_NUMBERS))
            raise (at / "every").wrong(
                f"is {sim.every}, which records {steps / sim.every * size:.1e} numbers; "
                f"take at least {least}"
            )

    def _check_event(self, event: EventTable) -> None:
        if event.at > self.simulation.duration:
            raise (event.where / "at").wrong(
                f"is {event.at:g} s, after the end at {self.simulation.duration:g} s"
            )
        if isinstance(event, FailureTable):
            known_hinge(self.robot, event.hinge, event.where / "hinge")
        elif isinstance(event, CaptureTable):
            closures(event.closures, self.robot)
        elif isinstance(event, ChangeTable):
            spec = self._changing(event)
            for name in event.parameters:
                spec.check_change(name, event.where / "parameters" / name)
        elif isinstance(event, ReleaseTable):
            self._released(event)

    def _changing(self, event: ChangeTable) -> ControllerSpec:
        """The controller whose parameters an event changes."""
        known = {spec.part.name: spec for spec in self.controllers}
        if not known:
            raise event.where.wrong("changes a controller, and there is none")
        if event.controller is None and len(known) > 1:
            raise (event.where / "controller").wrong(f"is missing; {hint('', known)}")
        name = event.controller or next(iter(known))
        if name not in known:
            raise (event.where / "controller").wrong(f"is {quoted(name)}; {hint(name, known)}")
        return known[name]

    def _released(self, event: ReleaseTable) -> list[Closure]:
        """The closures that an event opens, found by their frames `a`."""
        caught = (e.closures for e in self.document.events if isinstance(e, CaptureTable))
        all_of_them = (c for tables in caught for c in closures(tables, self.robot))
        known = {c.a: c for c in (*self.closures, *all_of_them)}
        for k, name in enumerate(event.closures):
            if name not in known:
                at = event.where / "closures" / k
                raise at.wrong(f"is {quoted(name)}, where nothing is closed; {hint(name, known)}")
        return [known[name] for name in event.closures]

    # ---- events --------------------------------------------------------------------------------

    def _events(self, q: Configuration) -> list[Event]:
        """The events up to the end of the simulation; q is the start."""
        return [self._event(e, q) for e in self.document.events if e.at <= self.simulation.duration]

    def _event(self, event: EventTable, q: Configuration) -> Event:
        with wrong_at(event.where):
            if isinstance(event, FailureTable):
                return Failure(event.at, event.hinge, event.how)
            if isinstance(event, CaptureTable):
                return Capture(event.at, closures(event.closures, self.robot), event.restitution)
            if isinstance(event, ChangeTable):
                spec = self._changing(event)
                values = spec.values(q, event.parameters, event.where / "parameters")
                alone = len(self.controllers) == 1
                return Change(
                    event.at, {composed_name(spec.part, n, alone): x for n, x in values.items()}
                )
            assert isinstance(event, ReleaseTable)
            return Release(event.at, tuple(self._released(event)))
