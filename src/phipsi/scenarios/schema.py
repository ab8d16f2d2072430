"""The format of scenario files: one class per table, one line per key.

Numbers are SI. Angles are radians; keys that end with `_deg` take degrees instead. A scenario has
the tables

    [robot]        a packaged robot (name, options), a file (file, base) or a body (body, mass,
                   sides, …); [[robot.add]] more of them in the same world
    [start]        q and v by hinge, frames to reach, closures to close
    [simulation]   duration, dt, method, … as in `pp.simulate`
    [[closures]]   loops and grasps
    [controller]   a law of `phipsi.control` with its parameters, and a path for its target;
                   [[controller]] several of them, whose forces add
    [[events]]     failures, captures, releases, changes of parameters
    [output]       what is written, and where

`docs/scenarios.md` tells it at length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

from phipsi.algorithms.inverse_kinematics.problem import ROWS
from phipsi.model import KINDS, Closure, robots
from phipsi.model.constraints import CONTACTS
from phipsi.scenarios.pose_spec import HINGES, POSE, VECTOR, PoseSpec
from phipsi.scenarios.toml_reader import (
    REST,
    At,
    Table,
    choice,
    flag,
    many,
    named,
    number,
    numbers,
    one_or_many,
    read,
    table,
    text,
    variants,
    whole,
)
from phipsi.simulation import ADAPTIVE, COORDINATES, METHODS, Limits
from phipsi.simulation.coordinates import CoordinatesName
from phipsi.simulation.options import MethodName, SimulationOptions

POSITIVE, TIME = number(above=0), number(0, unit="s")
MAX_OPTION = 500
"""No larger number of links and the like."""


def anything(value: Any, at: At) -> Any:
    """A value that is checked when it is known what it is for."""
    return value


def option(value: Any, at: At) -> Any:
    """An option of a packaged robot: a text, a truth value or a whole number, or some of these."""
    if isinstance(value, list):
        return many(option)(value, at)
    if isinstance(value, (str, bool)):
        return value
    return whole(-MAX_OPTION, MAX_OPTION)(value, at)


def word(value: Any, at: At) -> str:
    """A word: letters, digits and _."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z]\w{0,49}", value, re.ASCII):
        raise at.wrong("needs a word of letters, digits and _")
    return value


# ---- the robot ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Member(Table):
    """Something in the world. `prefix` "left" makes its names "left/…"; `place` is where its own
    world is put."""

    prefix: Annotated[str | None, text] = None
    place: Annotated[PoseSpec | None, POSE] = None


@dataclass(frozen=True, kw_only=True)
class Packaged(Member):
    """A robot of `pp.robots`, with its options."""

    name: Annotated[str, choice(*robots.ROBOTS)]
    options: Annotated[dict[str, Any] | None, named(option, 20)] = None


@dataclass(frozen=True, kw_only=True)
class FromFile(Member):
    """A robot of a URDF, MJCF or JSON file, relative to the scenario; `base` of a URDF."""

    file: Annotated[str, text]
    base: Annotated[Literal["fixed", "free"] | None, choice("fixed", "free")] = None


@dataclass(frozen=True, kw_only=True)
class BodyTable(Member):
    """A box of `mass` [kg] and `sides` [m] about `center`, with `frames` by name, on a `hinge` of
    that kind, named like the body, to `parent`; without a motor unless it has an effort."""

    body: Annotated[str, text]
    mass: Annotated[float, POSITIVE]
    sides: Annotated[Any, numbers(3, each=POSITIVE)]
    center: Annotated[Any, VECTOR] = (0.0, 0.0, 0.0)
    hinge: Annotated[str, choice(*(kind for kind in KINDS if kind != "weld"))] = "free"
    parent: Annotated[str, text] = "world"
    axis: Annotated[Any, VECTOR] = None
    lower: Annotated[float | None, number()] = None
    upper: Annotated[float | None, number()] = None
    effort: Annotated[float, number(0)] = 0.0
    stiffness: Annotated[float, number(0)] = 0.0
    damping: Annotated[float, number(0)] = 0.0
    friction: Annotated[float, number(0)] = 0.0
    frames: Annotated[dict[str, PoseSpec] | None, named(POSE, 100)] = None


MEMBERS: dict[str, type[Member]] = {"name": Packaged, "file": FromFile, "body": BodyTable}


def member(value: Any, at: At) -> Member:
    """One of these, as its keys say."""
    kinds = [kind for name, kind in MEMBERS.items() if isinstance(value, dict) and name in value]
    if len(kinds) != 1:
        raise at.wrong("needs one of name (a packaged robot), file and body")
    return read(kinds[0], value, at)


@dataclass(frozen=True, kw_only=True)
class World(Table):
    """All that is in the world, and its gravity [m/s²] (default: that of the first)."""

    members: tuple[Member, ...] = ()
    gravity: Any = None

    @property
    def name(self) -> str | None:
        """What it is called: as the packaged robot that is alone in it."""
        alone = self.members[0] if len(self.members) == 1 else None
        return alone.name if isinstance(alone, Packaged) else None


def world(value: Any, at: At) -> World:
    """The table [robot]: the first member, with `gravity` and those to `add`."""
    if not isinstance(value, dict):
        return read(World, value, at)
    first = {name: x for name, x in value.items() if name not in ("gravity", "add")}
    more = one_or_many(member, 20)(value.get("add", []), at / "add")
    gravity = VECTOR(value["gravity"], at / "gravity") if "gravity" in value else None
    return World(at, members=(member(first, at), *more), gravity=gravity)


@dataclass(frozen=True, kw_only=True)
class Reach(Table):
    """At the start `frame` is brought to the pose of the frame `to`, or to `goal`."""

    frame: Annotated[str, text]
    to: Annotated[str | None, text] = None
    goal: Annotated[PoseSpec | None, POSE] = None
    rows: Annotated[str, choice(*ROWS)] = "pose"


@dataclass(frozen=True, kw_only=True)
class Start(Table):
    """The state at t = 0: hinges not named are at zero and at rest; then `reach`, then closures."""

    q: Annotated[dict[str, Any] | None, HINGES] = None
    q_deg: Annotated[dict[str, Any] | None, HINGES] = None
    v: Annotated[dict[str, Any] | None, HINGES] = None
    v_deg: Annotated[dict[str, Any] | None, HINGES] = None
    reach: Annotated[tuple[Reach, ...], one_or_many(table(Reach), 20)] = ()
    close: Annotated[bool, flag] = True


# ---- what happens -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Stops(Table):
    """Joint limits as springs, as in `pp.Limits`."""

    stiffness: Annotated[float, number(0)] = 1e4
    damping: Annotated[float, number(0)] = 1e2
    width: Annotated[float, POSITIVE] = 1e-2


def stops(value: Any, at: At) -> bool | Limits:
    """true, false or a table."""
    if not isinstance(value, dict):
        return flag(value, at)
    given = read(Stops, value, at)
    return Limits(given.stiffness, given.damping, given.width)


@dataclass(frozen=True, kw_only=True)
class Simulation(Table):
    """`SimulationOptions` as keys, but for closures, which have tables of their own; and forces on
    frames that are constant, as `external` of `pp.simulate`."""

    duration: Annotated[float, number(above=0, unit="s")]
    dt: Annotated[float, number(above=0, unit="s")] = float(SimulationOptions.dt)
    method: Annotated[MethodName, choice(*METHODS, *ADAPTIVE)] = SimulationOptions.method
    every: Annotated[int, whole(1, 1_000_000)] = int(SimulationOptions.every)
    coordinates: Annotated[CoordinatesName, choice(*COORDINATES)] = SimulationOptions.coordinates
    passive: Annotated[bool, flag] = SimulationOptions.passive
    limits: Annotated[bool | Limits, stops] = SimulationOptions.limits
    actuators: Annotated[bool, flag] = SimulationOptions.actuators
    stabilisation: Annotated[float, number(0, unit="1/s")] = float(SimulationOptions.stabilisation)
    external: Annotated[dict[str, Any] | None, named(numbers(6), 100)] = None

    def options(self, closures: tuple[Closure, ...]) -> SimulationOptions:
        """The options that the table says, with these closures."""
        own = {f.name for f in fields(SimulationOptions)} & {f.name for f in fields(self)}
        return SimulationOptions(closures=closures, **{name: getattr(self, name) for name in own})


@dataclass(frozen=True, kw_only=True)
class LoopTable(Table):
    """A loop, as `pp.Loop`."""

    a: Annotated[str, text]
    b: Annotated[str, text]
    free: Annotated[Any, anything] = "weld"
    axis: Annotated[Any, VECTOR] = None
    pitch: Annotated[float, number()] = 0.0


@dataclass(frozen=True, kw_only=True)
class GraspTable(Table):
    """A grasp, as `pp.Grasp`: the tip `a` holds the frame `b` of an object."""

    a: Annotated[str, text]
    b: Annotated[str, text]
    contact: Annotated[str, choice(*CONTACTS)] = "rigid"
    friction: Annotated[float | None, number(0)] = None
    torsion: Annotated[float | None, number(0)] = None
    radius: Annotated[float | None, number(0)] = None


CLOSURE = variants({"loop": LoopTable, "grasp": GraspTable}, by="kind")


@dataclass(frozen=True, kw_only=True)
class PathTable(Table):
    """The target of a law moves from where it is at the start to `goal`, from rest to rest, within
    `duration`, from the time `begin` on."""

    duration: Annotated[float, number(above=0, unit="s")]
    begin: Annotated[float, TIME] = 0.0
    kind: Annotated[str | None, choice("pose", "joint")] = None
    goal: Annotated[Any, anything] = None
    goal_deg: Annotated[dict[str, Any] | None, HINGES] = None


@dataclass(frozen=True, kw_only=True)
class ControllerTable(Table):
    """A law by name, the hinges it `drives` (patterns like "left/*"; default all that it can), the
    `path` of its target, and its options and parameters by their own names."""

    law: Annotated[str, text]
    name: Annotated[str | None, word] = None
    drives: Annotated[tuple[str, ...] | None, many(text)] = None
    path: Annotated[PathTable | None, table(PathTable)] = None
    own: Annotated[dict[str, Any], REST] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EventTable(Table):
    """Something that happens at a time [s]."""

    at: Annotated[float, TIME]


@dataclass(frozen=True, kw_only=True)
class FailureTable(EventTable):
    """The motor of a hinge fails, as `pp.Failure`."""

    hinge: Annotated[str, text]
    how: Annotated[Literal["free", "locked"], choice("free", "locked")] = "free"


@dataclass(frozen=True, kw_only=True)
class CaptureTable(EventTable):
    """Frames catch each other, as `pp.Capture`."""

    closures: Annotated[tuple[Any, ...], one_or_many(CLOSURE, 20)]
    restitution: Annotated[float | None, number(0)] = None


@dataclass(frozen=True, kw_only=True)
class ReleaseTable(EventTable):
    """Closures open, named by their frames `a`, as `pp.Release`."""

    closures: Annotated[tuple[str, ...], many(text, 20)]


@dataclass(frozen=True, kw_only=True)
class ChangeTable(EventTable):
    """Parameters of a controller change, as `pp.Change`."""

    parameters: Annotated[dict[str, Any], named(anything, 50)]
    controller: Annotated[str | None, text] = None


EVENT = variants(
    {
        "failure": FailureTable,
        "capture": CaptureTable,
        "release": ReleaseTable,
        "change": ChangeTable,
    },
    by="kind",
)


@dataclass(frozen=True, kw_only=True)
class Output(Table):
    """What is written: a trajectory in each of `formats`, poses of `frames`, `figures` of these
    quantities, a `report`; all in `folder`, below where the command runs."""

    folder: Annotated[str | None, text] = None
    formats: Annotated[tuple[Literal["npz", "csv"], ...], many(choice("npz", "csv"), 2)] = ("npz",)
    frames: Annotated[tuple[str, ...], many(text)] = ()
    figures: Annotated[tuple[str, ...], many(text, 20)] = ()
    report: Annotated[bool, flag] = False


@dataclass(frozen=True, kw_only=True)
class Document(Table):
    """A scenario as it is written."""

    title: Annotated[str, text]
    robot: Annotated[World, world]
    simulation: Annotated[Simulation, table(Simulation)]
    about: Annotated[str, text] = ""
    start: Annotated[Start | None, table(Start)] = None
    closures: Annotated[tuple[Any, ...], one_or_many(CLOSURE, 20)] = ()
    controller: Annotated[tuple[ControllerTable, ...], one_or_many(table(ControllerTable), 10)] = ()
    events: Annotated[tuple[Any, ...], one_or_many(EVENT, 100)] = ()
    output: Annotated[Output | None, table(Output)] = None
