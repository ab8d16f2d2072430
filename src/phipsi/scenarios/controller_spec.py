"""The controllers of a scenario: their tables checked and turned into numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from phipsi.algorithms import frame_pose
from phipsi.arguments import as_mapping
from phipsi.cached import cached_property
from phipsi.control import check_gains
from phipsi.control.composition import PATH_PARAMETERS, Part, PathKind, path_kind
from phipsi.model import Closure, Grasp, Robot
from phipsi.model.untrusted import quoted
from phipsi.programs import Program
from phipsi.scenarios.laws import LAWS
from phipsi.scenarios.pose_spec import HINGES, RelativePoseSpec
from phipsi.scenarios.schema import ControllerTable, PathTable
from phipsi.scenarios.toml_reader import At, TomlValue, flag, hint, many, number, read, text, whole
from phipsi.scenarios.world import DEGREE, configuration, known_frame, velocity, wrong_at
from phipsi.simulation import controller as simulated
from phipsi.typing import Array, Configuration, Pose

SUPPLIED = (*simulated.SUPPLIED, "tau")
"""Parameters of controllers that scenarios give no values."""


@dataclass(frozen=True)
class ControllerSpec:
    """The table of a controller, checked as far as it can be before the start is known."""

    table: ControllerTable
    controller: Program[..., Any]
    robot: Robot
    filled: Mapping[str, Any]
    """Values that the simulation gives parameters which the table leaves out: its grasps and its
    stabilisation."""

    @property
    def at(self) -> At:
        """The place of the table."""
        return self.table.where

    @cached_property
    def part(self) -> Part:
        """The controller with its options, as a part of the composition."""
        table, controller = self.table, self.controller
        for name in table.own:
            self._known(name, self.at / name)
        options = {n: self._option(n) for n in controller.options if n in table.own}
        options |= {
            n: x for n, x in self.filled.items() if n in controller.options and n not in table.own
        }
        name = table.name or table.law.replace(".", "_")
        part = Part(name, controller, tuple(options.items()), self._drives(), self._path_kind())
        for n in part.path_targets:
            if n in table.own:
                raise (self.at / n).wrong("is given by the path; drop one of them")
        if "frame" in controller.parameters:
            known_frame(self.robot, self.frame, self.at / "frame")
        given = {*table.own, *part.path_targets, *SUPPLIED, *options}
        for n, parameter in controller.parameters.items():
            if parameter.required and n not in given:
                more = ", or a path" if n in ("pose", "target") else ""
                raise (self.at / n).wrong(f"is missing: {table.law} needs it{more}")
        return part

    @property
    def frame(self) -> str:
        """The frame that the controller controls."""
        own = self.table.own.get("frame")
        return own if isinstance(own, str) else str(self.controller.parameters["frame"].default)

    def _known(self, name: str, at: At) -> None:
        """Refuse a name that is no parameter of the controller."""
        own = [n for n in self.controller.parameters if n not in SUPPLIED]
        if name not in own:
            known = ["law", "name", "drives", "path", *own]
            raise at.wrong(f"is no parameter of {self.table.law}; {hint(name, known)}")

    def check_change(self, name: str, at: At) -> None:
        """Refuse a change of a parameter that does not exist or cannot change during the motion."""
        self._known(name, at)
        if self._fixed(name) or name in self.part.path_targets:
            raise at.wrong("cannot change on the way; only parameters that are numbers can")
        if name not in self.table.own:
            raise at.wrong("has no value before; give it one in the controller")

    def _option(self, name: str) -> str | bool | int | tuple[str, ...]:
        """The value of an option, which is of the type that the controller declares."""
        value, at = self.table.own[name], self.at / name
        kind = self.controller.options[name].value_type
        if kind is object:
            return many(text)(value, at)
        if kind is str:
            return text(value, at)
        return flag(value, at) if kind is bool else whole(-1000, 1000)(value, at)

    def _drives(self) -> tuple[bool, ...] | None:
        """The freedoms of the hinges that the patterns of `drives` fit, (nv,)."""
        if self.table.drives is None:
            return None
        mask = np.zeros(self.robot.nv, bool)
        hinges = [h.name for h in self.robot.hinges]
        for k, pattern in enumerate(self.table.drives):
            found = [name for name in hinges if fnmatchcase(name, pattern)]
            if not found:
                raise (self.at / "drives" / k).wrong(
                    f"is {quoted(pattern)}, which fits no hinge; {hint(pattern, hinges)}"
                )
            mask |= self.robot.mask(*found)
        return tuple(mask.tolist())

    def _path_kind(self) -> PathKind | None:
        """The kind of the path, whose table is checked; None if there is none."""
        path, controller = self.table.path, self.controller
        if path is None:
            return None
        kind = path_kind(controller)
        if kind is None:
            raise path.where.wrong(f"has no use: {self.table.law} has no target that could move")
        if path.kind not in (None, kind):
            raise (path.where / "kind").wrong(
                f"is {quoted(path.kind)}, but {self.table.law} needs {kind!r}"
            )
        if path.goal is None and path.goal_deg is None:
            raise (path.where / "goal").wrong("is missing")
        if kind == "pose":
            if path.goal_deg is not None:
                raise (path.where / "goal_deg").wrong("is for joints; a pose has goal")
            self.pose_spec(path.goal, path.where / "goal")
        else:
            self._goal(self.robot.neutral(), path)
        return kind

    def pose_spec(self, value: TomlValue, at: At) -> RelativePoseSpec:
        """The table of a pose, checked."""
        found = read(RelativePoseSpec, value, at)
        if found.frame is not None:
            known_frame(self.robot, found.frame, at / "frame")
        found.pose(np.eye(4))
        return found

    def _goal(self, q: Configuration, path: PathTable) -> Configuration:
        """The configuration at the end of a path that begins at q."""
        at = path.where
        plain = None if path.goal is None else HINGES(path.goal, at / "goal")
        q = configuration(self.robot, q, plain, at / "goal")
        return configuration(self.robot, q, path.goal_deg, at / "goal_deg", DEGREE)

    # ---- numbers, once the start is known -------------------------------------------------------

    def values(self, q: Configuration, given: Mapping[str, TomlValue], at: At) -> dict[str, Array]:
        """The parameters among `given` that are no options, as arrays. Poses and configurations
        that are given in part, or relative to the start, are completed by q."""
        found = {n: self._value(n, x, q, at / n) for n, x in given.items() if not self._fixed(n)}
        with wrong_at(at):
            check_gains(self.controller, found)
        return found

    def parameters(self, q: Configuration) -> dict[str, Array]:
        """All parameters that are numbers, those of the path among them; q is the start."""
        found = self.values(q, self.table.own, self.at)
        for name, value in self.filled.items():
            if name in self.controller.parameters and not self._fixed(name):
                found.setdefault(name, np.asarray(value, float))
        path = self.table.path
        if path is None:
            return found
        if self.part.path == "pose":
            spec = self.pose_spec(path.goal, path.where / "goal")
            start = self._start_of(self.frame, q)
            moved = start if spec.frame is None else self._start_of(spec.frame, q)
            goal = spec.pose(moved)
        else:
            start = q
            goal = self._goal(q, path)
        times = np.array([path.begin, path.duration])
        return found | dict(zip(PATH_PARAMETERS, (start, goal, times), strict=True))

    def _fixed(self, name: str) -> bool:
        """Whether a parameter is an option, a constant of the trace."""
        return name in self.controller.options

    def _start_of(self, frame: str, q: Configuration) -> Pose:
        return np.asarray(frame_pose(self.robot, q, frame))

    def _value(self, name: str, value: TomlValue, q: Configuration, at: At) -> Array:
        """The value of one parameter as an array of the shape that the controller declares."""
        self._known(name, at)
        shape = self.controller.shape(name)
        if shape == (4, 4):
            spec = self.pose_spec(value, at)
            frame = spec.frame or (self.frame if name == "pose" else None)
            return spec.pose(np.eye(4) if frame is None else self._start_of(frame, q))
        if isinstance(value, dict):
            if shape == ("nq",):
                return configuration(self.robot, q, HINGES(value, at), at)
            if shape == ("nv",):
                return velocity(self.robot, np.zeros(self.robot.nv), HINGES(value, at), at)
            raise at.wrong("is a table, needs a number or a list of numbers")
        array = _array(value, at)
        core = None if shape is None else self.controller.core(self.robot, name, ())
        if core is not None and array.shape != core:
            raise at.wrong(f"has shape {array.shape}, needs {core}")
        return array


def _array(value: TomlValue, at: At) -> Array:
    """A number, or nested lists of equal lengths, as an array; truth values are 1 and 0."""
    if isinstance(value, list):
        rows = [_array(x, at / k) for k, x in enumerate(value)]
        if len({row.shape for row in rows}) != 1:
            raise at.wrong("is a list that is empty or whose parts have different lengths")
        return np.array(rows)
    return np.array(float(value) if isinstance(value, bool) else number()(value, at))


def controller_specs(
    tables: tuple[ControllerTable, ...],
    robot: Robot,
    closures: tuple[Closure, ...],
    stabilisation: float,
    laws: Mapping[str, Program[..., Any]] | None,
) -> tuple[ControllerSpec, ...]:
    """The controllers of a scenario, checked; `laws` are further controllers by name."""
    known = {**LAWS, **as_mapping("laws", laws)}
    grasps = tuple(c for c in closures if isinstance(c, Grasp))
    filled = {"grasps": grasps, "stabilisation": stabilisation} if grasps else {}
    found: list[ControllerSpec] = []
    for table in tables:
        if table.law not in known:
            raise (table.where / "law").wrong(f"is {quoted(table.law)}; {hint(table.law, known)}")
        spec = ControllerSpec(table, known[table.law], robot, filled)
        if any(other.part.name == spec.part.name for other in found):
            raise (table.where / "name").wrong(
                f"is {quoted(spec.part.name)} again; give each controller its own name"
            )
        found.append(spec)
    return tuple(found)
