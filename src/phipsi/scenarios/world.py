"""The robot of a scenario, its closures, and the state it starts from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from phipsi.algorithms import close_loops, frame_pose, inverse_kinematics
from phipsi.algorithms.inverse_kinematics.problem import RowsName
from phipsi.conventions import WORLD
from phipsi.model import Builder, Closure, Grasp, Hinge, Loop, Robot, robots
from phipsi.model.load import load
from phipsi.model.robots.shapes import box
from phipsi.model.untrusted import quoted
from phipsi.scenarios.pose_spec import Coordinates, PoseSpec
from phipsi.scenarios.schema import (
    BodyTable,
    ClosureTable,
    FromFile,
    GraspTable,
    Packaged,
    Start,
    World,
)
from phipsi.scenarios.toml_reader import At, ScenarioError, hint
from phipsi.simulation import Diverged
from phipsi.simulation.simulator import OPEN
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot
from phipsi.typing import Array, Configuration, JointVector, Pose

NUMBERS = ("lower", "upper", "effort", "stiffness", "damping", "friction")
"""The keys of a body that are numbers of its hinge."""


@contextmanager
def wrong_at(at: At, what: str = "is wrong") -> Generator[None]:
    """Turn errors of the library into a `ScenarioError` at this place."""
    try:
        yield
    except (ScenarioError, Diverged):
        raise
    except (ValueError, TypeError, OSError, ImportError, ArithmeticError) as error:
        said = str(error).partition("\n")[0]
        raise at.wrong(f"{what}: {said}") from error


# ---- the robot ----------------------------------------------------------------------------------


class Built(NamedTuple):
    """The robot of a scenario, and its configuration with free bodies at their places."""

    robot: Robot
    q: Configuration


def build(world: World, folder: Path, name: str) -> Built:
    """All members of the world as one robot; files are relative to `folder`."""
    first: Robot | None = None
    builder = Builder(name)
    free: dict[str, Pose] = {}
    for k, member in enumerate(world.members):
        pose = np.eye(4) if member.place is None else member.place.pose(np.eye(4))
        prefix = f"{member.prefix}/" if member.prefix else ""
        with wrong_at(member.where):
            if isinstance(member, BodyTable):
                _add_body(builder, member, prefix, pose, free)
                continue
            assert isinstance(member, (Packaged, FromFile))
            robot = _packaged(member) if isinstance(member, Packaged) else _loaded(member, folder)
            first = robot if k == 0 else first
            _add_robot(builder, robot, prefix, pose, free)
    gravity = world.gravity if first is None or world.gravity is not None else first.gravity
    builder.gravity = builder.gravity if gravity is None else gravity
    with wrong_at(world.where):
        robot = builder.build()
    q = robot.neutral()
    for hinge, pose in free.items():
        q[robot.hinge(hinge).q] = _coordinates(robot.hinge(hinge), pose)
    return Built(robot, q)


def _packaged(member: Packaged) -> Robot:
    options = member.options or {}
    if not options:
        return robots.ROBOTS[member.name]()
    make: Callable[..., Robot] = getattr(robots, member.name)
    known = inspect.signature(make).parameters
    for name in options:
        if name not in known:
            raise (member.where / "options" / name).wrong(f"is not known; {hint(name, known)}")
    with wrong_at(member.where / "options"):
        return make(**options)


def _loaded(member: FromFile, folder: Path) -> Robot:
    with wrong_at(member.where / "file"):
        path = folder / member.file
        return load(path) if member.base is None else load(path, base=member.base)


def _add_robot(
    builder: Builder, robot: Robot, prefix: str, pose: Pose, free: dict[str, Pose]
) -> None:
    """Add a robot with its world at a pose. Of a body that floats freely that is the pose at the
    start, which is added to `free` by hinge."""
    builder.add(robot, prefix=prefix, placement=_transform(pose))
    for h in robot.hinges:
        if h.kind.name == "free" and h.parent == WORLD:
            builder.replace_hinge(prefix + h.name, placement=h.placement)
            free[prefix + h.name] = pose


def _add_body(
    builder: Builder, member: BodyTable, prefix: str, pose: Pose, free: dict[str, Pose]
) -> None:
    """Add a body on its hinge; if it floats freely, its pose at the start is added to `free`."""
    name = prefix + member.body
    builder.body(name, **box(member.mass, member.sides, member.center))
    given: dict[str, Any] = {
        key: getattr(member, key) for key in NUMBERS if getattr(member, key) is not None
    }
    floating = member.hinge == "free" and member.parent == WORLD
    builder.hinge(
        name, member.hinge, member.parent, name, axis=member.axis,
        placement=_transform(np.eye(4) if floating else pose), **given,
    )  # fmt: skip
    for frame, spec in (member.frames or {}).items():
        builder.frame(prefix + frame, name, placement=_transform(spec.pose(np.eye(4))))
    if floating:
        free[name] = pose


def _transform(pose: Pose) -> Transform:
    return Transform(rot.scalars(pose[:3, :3]), rot.scalars(pose[:3, 3]))


# ---- closures -----------------------------------------------------------------------------------


def closures(tables: Iterable[ClosureTable], robot: Robot) -> tuple[Closure, ...]:
    """The loops and grasps of these tables, their frames checked."""
    joined: dict[frozenset[str], ClosureTable] = {}
    for each in tables:
        other = joined.setdefault(frozenset((each.a, each.b)), each)
        if other is not each:
            a, b, first = quoted(each.a), quoted(each.b), other.where.key
            raise each.where.wrong(f"joins {a} and {b}, which {first} joins already")
    return tuple(_closure(each, robot) for each in joined.values())


def _closure(given: ClosureTable, robot: Robot) -> Closure:
    for key in ("a", "b"):
        known_frame(robot, getattr(given, key), given.where / key)
    with wrong_at(given.where):
        if isinstance(given, GraspTable):
            bounds = {key: getattr(given, key) for key in ("friction", "torsion", "radius")}
            bounds = {key: value for key, value in bounds.items() if value is not None}
            return Grasp(given.a, given.b, contact=given.contact, **bounds)
        free: Any = given.free  # which `Loop` checks
        return Loop(given.a, given.b, free=free, axis=given.axis, pitch=given.pitch)


def known_frame(robot: Robot, name: str, at: At) -> str:
    """The name, if it is that of a frame of the robot."""
    known = [*robot.frames, *(b.name for b in robot.bodies), WORLD]
    if name not in known:
        raise at.wrong(f"is {quoted(name)}, which is no frame; {hint(name, known)}")
    return name


def known_hinge(robot: Robot, name: str, at: At) -> Hinge:
    """The hinge of that name."""
    for h in robot.hinges:
        if h.name == name:
            return h
    raise at.wrong(f"is no hinge of the robot; {hint(name, (h.name for h in robot.hinges))}")


# ---- hinges by name -----------------------------------------------------------------------------


DEGREE = np.pi / 180


def configuration(
    robot: Robot,
    q: Configuration,
    given: Mapping[str, Coordinates] | None,
    at: At,
    unit: float = 1.0,
) -> Configuration:
    """A copy of q with the coordinates of some hinges, given in that unit, in place of its own."""
    q = q.copy()
    for name, value in (given or {}).items():
        h = known_hinge(robot, name, at / name)
        if isinstance(value, PoseSpec):
            if h.kind.name != "free":
                raise (at / name).wrong(f"is a pose, but a {h.kind.name} hinge is not free")
            q[h.q] = _coordinates(h, value.pose(_pose(h, q[h.q])))
        else:
            q[h.q] = _filled(h, value, h.kind.nq, unit, at / name)
        if h.kind.quaternion is not None and not np.any(q[h.q][h.kind.quaternion :]):
            raise (at / name).wrong("has a quaternion of zeros, which is no rotation")
    return q


def velocity(
    robot: Robot,
    v: JointVector,
    given: Mapping[str, Coordinates] | None,
    at: At,
    unit: float = 1.0,
) -> JointVector:
    """A copy of v with the velocities of some hinges, given in that unit, in place of its own."""
    v = v.copy()
    for name, value in (given or {}).items():
        h = known_hinge(robot, name, at / name)
        if isinstance(value, PoseSpec):
            raise (at / name).wrong(f"is a table, needs {_count(h.kind.nv)}")
        v[h.v] = _filled(h, value, h.kind.nv, unit, at / name)
    return v


def _filled(h: Hinge, value: float | tuple[float, ...], size: int, unit: float, at: At) -> Array:
    """The `size` numbers of a hinge, which are given in that unit."""
    array = np.atleast_1d(np.asarray(value, float))
    if array.shape != (size,):
        raise at.wrong(f"has {_count(len(array))}, but a {h.kind.name} hinge needs {_count(size)}")
    if unit != 1.0 and not (h.kind.angles and all(h.kind.angles)):
        raise at.wrong(f"is in degrees, but a {h.kind.name} hinge has more than angles")
    return unit * array


def _count(size: int) -> str:
    return "1 number" if size == 1 else f"{size} numbers"


def _coordinates(h: Hinge, pose: Pose) -> Annotated[Array, "7"]:
    """The coordinates of a free hinge whose body is at a pose in the world."""
    inner = h.placement.inv.matrix @ pose
    return np.array([*inner[:3, 3], *rot.quaternion_of(rot.scalars(inner[:3, :3]))], float)


def _pose(h: Hinge, q: Annotated[Array, "7"]) -> Pose:
    """The pose in the world of the body of a free hinge."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = rot.from_quaternion(rot.scalars(q[3:])), q[:3]
    return np.asarray(h.placement.matrix @ out, float)


# ---- the start ----------------------------------------------------------------------------------


def start_state(
    built: Built, start: Start, held: tuple[Closure, ...]
) -> tuple[Configuration, JointVector]:
    """(q, v) at t = 0: what is given, then frames brought to their goals, then closures closed."""
    robot, at = built.robot, start.where
    for name, given, degrees in (("q", start.q, start.q_deg), ("v", start.v, start.v_deg)):
        for hinge in set(given or ()) & set(degrees or ()):
            raise (at / f"{name}_deg" / hinge).wrong(f"is given in {name} already")
    q = configuration(robot, built.q, start.q, at / "q")
    q = configuration(robot, q, start.q_deg, at / "q_deg", DEGREE)
    v = velocity(robot, np.zeros(robot.nv), start.v, at / "v")
    v = velocity(robot, v, start.v_deg, at / "v_deg", DEGREE)
    if start.reach:
        q = _reached(robot, q, start)
    if held and start.close:
        with wrong_at(at / "close"):
            q, v, error = close_loops(robot, held, q, v)
        if not error < OPEN:
            raise (at / "close").wrong(
                f"fails: the closures stay open by {float(error):.2g} rad or m; "
                "start nearer to where they are closed"
            )
    return np.asarray(q), np.asarray(v)


def _reached(robot: Robot, q: Configuration, start: Start) -> Configuration:
    """A configuration near q in which the frames of `start.reach` are at their goals."""
    targets: dict[str, Pose] = {}
    rows: dict[str, RowsName] = {each.frame: each.rows for each in start.reach}
    for each in start.reach:
        known_frame(robot, each.frame, each.where / "frame")
        if (each.to is None) == (each.goal is None):
            raise each.where.wrong("needs either to (a frame) or goal (a pose)")
        if each.to is not None:
            known_frame(robot, each.to, each.where / "to")
            targets[each.frame] = np.asarray(frame_pose(robot, q, each.to))
        elif each.goal is not None:
            targets[each.frame] = each.goal.pose(np.asarray(frame_pose(robot, q, each.frame)))
    at = start.where / "reach"
    with wrong_at(at):
        found = inverse_kinematics(robot, q, targets, rows=rows, tolerance=1e-9)
        if not found.reached:
            raise at.wrong(f"cannot be done: {found.report()}")
    return np.asarray(found.q)
