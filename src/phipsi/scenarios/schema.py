"""The format of scenario files: one class per table, one line per key.

Numbers are SI. Angles are radians; keys that end with `_deg` take degrees instead. A scenario has
the tables

    [robot]        a packaged robot (name, options), a file (file, base) or a body (body, mass,
                   sides, …); [[robot.add]] more of them in the same world
    [start]        q and v by hinge, frames to reach, closures to close
    [simulation]   duration, dt, method, … as in `pp.simulate`
    [[closures]]   loops and grasps
    [controller]   a control law of `phipsi.control` with its parameters, and a path for its target;
                   [[controller]] several of them, whose forces add
    [[events]]     failures, captures, releases, changes of parameters
    [output]       what is written, and where

`docs/scenarios.md` describes it at length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, TypeAlias, get_args

from phipsi.algorithms.inverse_kinematics.problem import ROWS, RowsName
from phipsi.control.composition import PathKind
from phipsi.model import KINDS, Closure, Spring, robots
from phipsi.model.constraints import CONTACTS, ContactName
from phipsi.model.hinges import HingeName
from phipsi.scenarios.pose_spec import HINGES, POSE, VECTOR, Coordinates, PoseSpec
from phipsi.scenarios.toml_reader import (
    REST,
    At,
    Table,
    TomlValue,
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
from phipsi.simulation.events import FailureMode
from phipsi.simulation.options import MethodName, SimulationOptions

POSITIVE, TIME = number(above=0), number(0, unit="s")
MAX_OPTION = 500
"""The largest whole number that options of robots may have, such as numbers of links."""
Vector: TypeAlias = tuple[float, ...]
"""Numbers of a list."""
Option: TypeAlias = str | bool | int | tuple[Any, ...]
"""An option of a packaged robot."""


def anything(value: TomlValue, at: At) -> TomlValue:
    """Any value: it is checked later, when its use is known."""
    return value


def option(value: TomlValue, at: At) -> Option:
    """An option of a packaged robot: a text, a truth value or a whole number, or a list of them."""
    if isinstance(value, list):
        return many(option)(value, at)
    if isinstance(value, (str, bool)):
        return value
    return whole(-MAX_OPTION, MAX_OPTION)(value, at)


def word(value: TomlValue, at: At) -> str:
    """A word: letters, digits and _."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z]\w{0,49}", value, re.ASCII):
        raise at.wrong("needs a word of letters, digits and _")
    return value


# ---- the robot ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Member(Table):
    """A robot or a body in the world. `prefix` "left" makes its names "left/…"; `place` is the pose
    of its own world in that of the scenario."""

    prefix: Annotated[str | None, text] = None
    place: Annotated[PoseSpec | None, POSE] = None


@dataclass(frozen=True, kw_only=True)
class Packaged(Member):
    """A robot of `pp.robots`, with its options."""

    name: Annotated[str, choice(*robots.ROBOTS)]
    options: Annotated[dict[str, Option] | None, named(option, 20)] = None


@dataclass(frozen=True, kw_only=True)
class FromFile(Member):
    """A robot of a URDF, MJCF or JSON file, whose path is relative to the scenario; `base` is that
    of a URDF."""

    file: Annotated[str, text]
    base: Annotated[Literal["fixed", "free"] | None, choice("fixed", "free")] = None


@dataclass(frozen=True, kw_only=True)
class BodyTable(Member):
    """A box of `mass` [kg] and `sides` [m] about `center`, with `frames` by name, on a `hinge` of
    that kind, named like the body, to `parent`; without a motor unless it has an effort."""

    body: Annotated[str, text]
    mass: Annotated[float, POSITIVE]
    sides: Annotated[Vector, numbers(3, each=POSITIVE)]
    center: Annotated[Vector, VECTOR] = (0.0, 0.0, 0.0)
    hinge: Annotated[HingeName, choice(*(kind for kind in KINDS if kind != "weld"))] = "free"
    parent: Annotated[str, text] = "world"
    axis: Annotated[Vector | None, VECTOR] = None
    lower: Annotated[float | None, number()] = None
    upper: Annotated[float | None, number()] = None
    effort: Annotated[float, number(0)] = 0.0
    stiffness: Annotated[float, number(0)] = 0.0
    damping: Annotated[float, number(0)] = 0.0
    friction: Annotated[float, number(0)] = 0.0
    frames: Annotated[dict[str, PoseSpec] | None, named(POSE, 100)] = None


MEMBERS: dict[str, type[Member]] = {"name": Packaged, "file": FromFile, "body": BodyTable}


def member(value: TomlValue, at: At) -> Member:
    """A member of the world, of the class whose key it has."""
    kinds = [kind for name, kind in MEMBERS.items() if isinstance(value, dict) and name in value]
    if len(kinds) != 1:
        raise at.wrong("needs one of name (a packaged robot), file and body")
    return read(kinds[0], value, at)


@dataclass(frozen=True, kw_only=True)
class World(Table):
    """All robots and bodies, and gravity [m/s²] (default: that of the first robot)."""

    members: tuple[Member, ...] = ()
    gravity: Vector | None = None

    @property
    def name(self) -> str | None:
        """The name of the packaged robot that is alone in it; else None."""
        alone = self.members[0] if len(self.members) == 1 else None
        return alone.name if isinstance(alone, Packaged) else None


def world(value: TomlValue, at: At) -> World:
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
    rows: Annotated[RowsName, choice(*ROWS)] = "pose"


@dataclass(frozen=True, kw_only=True)
class Start(Table):
    """The state at t = 0: hinges not named are at zero and at rest; then `reach`, then closures."""

    q: Annotated[dict[str, Coordinates] | None, HINGES] = None
    q_deg: Annotated[dict[str, Coordinates] | None, HINGES] = None
    v: Annotated[dict[str, Coordinates] | None, HINGES] = None
    v_deg: Annotated[dict[str, Coordinates] | None, HINGES] = None
    reach: Annotated[tuple[Reach, ...], one_or_many(table(Reach), 20)] = ()
    close: Annotated[bool, flag] = True


# ---- what happens -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Stops(Table):
    """Joint limits as springs, as in `pp.Limits`."""

    stiffness: Annotated[float, number(0)] = 1e4
    damping: Annotated[float, number(0)] = 1e2
    width: Annotated[float, POSITIVE] = 1e-2


def stops(value: TomlValue, at: At) -> bool | Limits:
    """true, false or a table."""
    if not isinstance(value, dict):
        return flag(value, at)
    given = read(Stops, value, at)
    return Limits(given.stiffness, given.damping, given.width)


@dataclass(frozen=True, kw_only=True)
class SpringTable(Table):
    """A spring between points, as `pp.Spring`."""

    a: Annotated[str, text]
    b: Annotated[str, text]
    stiffness: Annotated[float, number(0)] = 0.0
    damping: Annotated[float, number(0)] = 0.0
    rest_length: Annotated[float, number(0)] = 0.0


def spring(value: TomlValue, at: At) -> Spring:
    """A table."""
    given = read(SpringTable, value, at)
    return Spring(given.a, given.b, given.stiffness, given.damping, given.rest_length)


@dataclass(frozen=True, kw_only=True)
class Simulation(Table):
    """`SimulationOptions` as keys, but for closures, which have tables of their own; and forces on
    frames that are constant, as `external` of `pp.simulate`."""

    duration: Annotated[float, number(above=0, unit="s")]
    dt: Annotated[float, number(above=0, unit="s")] = float(SimulationOptions.dt)
    method: Annotated[MethodName, choice(*METHODS, *ADAPTIVE)] = SimulationOptions.method
    rtol: Annotated[float | None, number(above=0)] = None
    atol: Annotated[float | None, number(above=0)] = None
    every: Annotated[int, whole(1, 1_000_000)] = int(SimulationOptions.every)
    coordinates: Annotated[CoordinatesName, choice(*COORDINATES)] = SimulationOptions.coordinates
    passive: Annotated[bool, flag] = SimulationOptions.passive
    limits: Annotated[bool | Limits | None, stops] = SimulationOptions.limits
    actuators: Annotated[bool, flag] = SimulationOptions.actuators
    stabilisation: Annotated[float, number(0, unit="1/s")] = float(SimulationOptions.stabilisation)
    springs: Annotated[tuple[Spring, ...], many(spring)] = ()
    verify: Annotated[bool, flag] = SimulationOptions.verify
    external: Annotated[dict[str, Vector] | None, named(numbers(6), 100)] = None

    def options(self, closures: tuple[Closure, ...]) -> SimulationOptions:
        """The options that the table says, with these closures."""
        shared = {f.name for f in fields(SimulationOptions)} & {f.name for f in fields(self)}
        given: dict[str, Any] = {name: getattr(self, name) for name in shared}
        return SimulationOptions(closures=closures, **given)


@dataclass(frozen=True, kw_only=True)
class LoopTable(Table):
    """A loop, as `pp.Loop`."""

    a: Annotated[str, text]
    b: Annotated[str, text]
    free: Annotated[TomlValue, anything] = "weld"
    axis: Annotated[Vector | None, VECTOR] = None
    pitch: Annotated[float, number()] = 0.0


@dataclass(frozen=True, kw_only=True)
class GraspTable(Table):
    """A grasp, as `pp.Grasp`: the tip `a` holds the frame `b` of an object."""

    a: Annotated[str, text]
    b: Annotated[str, text]
    contact: Annotated[ContactName, choice(*CONTACTS)] = "rigid"
    friction: Annotated[float | None, number(0)] = None
    torsion: Annotated[float | None, number(0)] = None
    radius: Annotated[float | None, number(0)] = None


ClosureTable: TypeAlias = LoopTable | GraspTable
_CLOSURES: dict[str, type[ClosureTable]] = {"loop": LoopTable, "grasp": GraspTable}
CLOSURE = variants(_CLOSURES, by="kind")


@dataclass(frozen=True, kw_only=True)
class PathTable(Table):
    """The path of the target of a controller from its place at the start to `goal`, from rest to
    rest, within `duration` from the time `begin` on."""

    duration: Annotated[float, number(above=0, unit="s")]
    begin: Annotated[float, TIME] = 0.0
    kind: Annotated[PathKind | None, choice(*get_args(PathKind))] = None
    goal: Annotated[TomlValue, anything] = None
    goal_deg: Annotated[dict[str, Coordinates] | None, HINGES] = None


@dataclass(frozen=True, kw_only=True)
class ControllerTable(Table):
    """A control law by name, the hinges it `drives` (patterns like "left/*"; default all that it
    can), the `path` of its target, and its options and parameters by their own names."""

    law: Annotated[str, text]
    name: Annotated[str | None, word] = None
    drives: Annotated[tuple[str, ...] | None, many(text)] = None
    path: Annotated[PathTable | None, table(PathTable)] = None
    own: Annotated[dict[str, TomlValue], REST] = field(default_factory=dict[str, TomlValue])


@dataclass(frozen=True, kw_only=True)
class EventTable(Table):
    """An event at a time [s]."""

    at: Annotated[float, TIME]


@dataclass(frozen=True, kw_only=True)
class FailureTable(EventTable):
    """The motor of a hinge fails, as `pp.Failure`."""

    hinge: Annotated[str, text]
    how: Annotated[FailureMode, choice(*get_args(FailureMode))] = "free"


@dataclass(frozen=True, kw_only=True)
class CaptureTable(EventTable):
    """Frames catch each other, as `pp.Capture`."""

    closures: Annotated[tuple[ClosureTable, ...], one_or_many(CLOSURE, 20)]
    restitution: Annotated[float | None, number(0)] = None


@dataclass(frozen=True, kw_only=True)
class ReleaseTable(EventTable):
    """Closures open, named by their frames `a`, as `pp.Release`."""

    closures: Annotated[tuple[str, ...], many(text, 20)]


@dataclass(frozen=True, kw_only=True)
class ChangeTable(EventTable):
    """Parameters of a controller change, as `pp.Change`."""

    parameters: Annotated[dict[str, TomlValue], named(anything, 50)]
    controller: Annotated[str | None, text] = None


_EVENTS: dict[str, type[EventTable]] = {
    "failure": FailureTable,
    "capture": CaptureTable,
    "release": ReleaseTable,
    "change": ChangeTable,
}
EVENT = variants(_EVENTS, by="kind")


Format = Literal["npz", "csv"]


@dataclass(frozen=True, kw_only=True)
class Output(Table):
    """The files that are written: a trajectory in each of `formats` with poses of `frames`,
    `figures` of these quantities, a `report`; all in `folder`, below the current one."""

    folder: Annotated[str | None, text] = None
    formats: Annotated[tuple[Format, ...], many(choice(*get_args(Format)), 2)] = ("npz",)
    frames: Annotated[tuple[str, ...], many(text)] = ()
    figures: Annotated[tuple[str, ...], many(text, 20)] = ()
    report: Annotated[bool, flag] = False


@dataclass(frozen=True, kw_only=True)
class Document(Table):
    """A whole scenario file."""

    title: Annotated[str, text]
    robot: Annotated[World, world]
    simulation: Annotated[Simulation, table(Simulation)]
    about: Annotated[str, text] = ""
    start: Annotated[Start | None, table(Start)] = None
    closures: Annotated[tuple[ClosureTable, ...], one_or_many(CLOSURE, 20)] = ()
    controller: Annotated[tuple[ControllerTable, ...], one_or_many(table(ControllerTable), 10)] = ()
    events: Annotated[tuple[EventTable, ...], one_or_many(EVENT, 100)] = ()
    output: Annotated[Output | None, table(Output)] = None
