"""Several controllers composed into one program.

The controllers act in turn, and their joint forces add. A controller that takes known forces,
`tau`, is given those of the controllers before it, and as `active` the freedoms that these do not
drive. The target of a controller may follow a path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

from phipsi.compile import where
from phipsi.control.paths import joint_path, pose_path
from phipsi.model import Robot
from phipsi.programs import ROBOT, Parameter, Program, identity
from phipsi.typing import Array, JointVector, Scalar, Shape

PathKind = Literal["pose", "joint"]
TARGETS: dict[PathKind, tuple[str, str, str]] = {
    "pose": ("pose", "velocity", "acceleration"),
    "joint": ("target", "rate", "acceleration"),
}
"""The parameters of a controller that a path of each kind gives values to."""
PATH_PARAMETERS = ("path_start", "path_goal", "path_times")
"""The parameters of a path in a composed program: both ends, and (begin, duration) [s]."""


def path_kind(controller: Program[..., Any]) -> PathKind | None:
    """The kind of path that the target of a controller can follow; None if it has no target."""
    return next((k for k, names in TARGETS.items() if names[0] in controller.parameters), None)


class PathInputs(NamedTuple):
    """The arguments of `pose_path` and `joint_path`, with the time since the path begins."""

    t: Scalar
    duration: Scalar
    start: Array
    goal: Array


@dataclass(frozen=True)
class Part:
    """One controller of a composition; hashable, a constant of the trace."""

    name: str
    controller: Program[..., Any] = field(repr=False)
    options: tuple[tuple[str, Any], ...] = ()
    """Values of parameters that are constants."""
    drives: tuple[bool, ...] | None = None
    """The freedoms it may drive, (nv,); None: all that are active."""
    path: PathKind | None = None
    """The kind of path that its target follows."""

    @property
    def memory(self) -> int:
        """The length of its memory, 0 if it has none."""
        return prod(map(int, self.controller.shape("memory") or (1,))) * self.takes("memory")

    def takes(self, name: str) -> bool:
        """Whether the controller has that parameter."""
        return name in self.controller.parameters

    @property
    def path_targets(self) -> tuple[str, ...]:
        """The parameters of the controller that its path gives values to."""
        return tuple(n for n in TARGETS[self.path] if self.takes(n)) if self.path else ()

    def targets(self, robot: Robot, path: PathInputs | None) -> dict[str, Array]:
        """The values of `path_targets`."""
        if self.path is None or path is None:
            return {}
        points = pose_path(*path) if self.path == "pose" else joint_path(robot, *path)
        found = dict(zip(TARGETS[self.path], points, strict=True))
        return {name: found[name] for name in self.path_targets}

    def act(
        self,
        robot: Robot,
        state: Mapping[str, Any],
        own: Mapping[str, Any],
        path: PathInputs | None,
    ) -> dict[str, Any]:
        """What it commands: "tau", and whatever else it returns.

        `state` has "active" and whatever else all parts share; the part is given what it takes of
        that and is not None. `own` are the arguments of this part alone.
        """
        targets = self.targets(robot, path)
        if self.drives is not None:
            state = {**state, "active": state["active"] * np.array(self.drives, float)}
        shared = {n: x for n, x in state.items() if self.takes(n) and x is not None}
        result: Array | Mapping[str, Any] = self.controller(
            robot, **shared, **own, **targets, **dict(self.options)
        )
        out: dict[str, Any] = dict(result) if isinstance(result, Mapping) else {"tau": result}
        if self.drives is not None:
            out["tau"] = np.where(self.drives, out["tau"], 0.0)
        return out


class Turn(NamedTuple):
    """A part with its own arguments."""

    part: Part
    own: Mapping[str, Any]
    path: PathInputs | None = None


def act_in_turn(
    robot: Robot, turns: Iterable[Turn], state: Mapping[str, Any], tau: JointVector | None = None
) -> tuple[JointVector | None, list[dict[str, Any]]]:
    """The sum of the joint forces of the parts, and what else each of them returns.

    `tau` are known joint forces from outside, not among the sum.
    """
    total: Array | None = None
    active: JointVector = state["active"]
    results: list[dict[str, Any]] = []
    for part, own, path in turns:
        known = tau if total is None else total if tau is None else total + tau
        out = part.act(robot, {**state, "active": active, "tau": known}, own, path)
        force: JointVector = out.pop("tau")
        total = force if total is None else total + force
        active = out.get("active", active)
        results.append(out)
    return total, results


@lru_cache(maxsize=32)
def composed(parts: tuple[Part, ...], names: tuple[tuple[str, ...], ...]) -> Program[..., Any]:
    """The program of all parts; `names` are the parameters of each that are given as numbers.

    Parameters and signals of several parts have the name of the part in front: `PART__NAME` and
    "PART.NAME". Their memories are one vector, in the order of the parts.
    """
    alone = len(parts) == 1
    shapes: dict[str, Shape | None] = {
        "t": (), "dt": (), "q": ("nq",), "v": ("nv",), "active": ("nv",), "locked": ("nv",),
    }  # fmt: skip
    if total := sum(part.memory for part in parts):
        shapes["memory"] = (total,)
    for part, own in zip(parts, names, strict=True):
        path = _path_shapes(part)
        for n in own:
            shapes[composed_name(part, n, alone)] = path.get(n, part.controller.shape(n))

    def turns(given: Mapping[str, Any]) -> Iterator[Turn]:
        start = 0
        for part, own in zip(parts, names, strict=True):
            values = {n: given[composed_name(part, n, alone)] for n in own}
            path = None
            if part.path is not None:
                begin, goal, times = (values.pop(name) for name in PATH_PARAMETERS)
                path = PathInputs(given["t"] - times[0], times[1], begin, goal)
            if part.memory:
                values["memory"] = given["memory"][start : start + part.memory]
                start += part.memory
            yield Turn(part, values, path)

    def control(robot: Robot, **given: Any) -> dict[str, Any]:
        state = {n: given[n] for n in ("t", "dt", "q", "v", "locked")}
        state["active"] = where(given["active"], 1.0, 0.0)
        tau, results = act_in_turn(robot, turns(given), state)
        kept: list[Array] = []
        signals: dict[str, Any] = {}
        for part, out in zip(parts, results, strict=True):
            out.pop("active", None)
            kept.extend([out.pop("memory")] if part.memory else [])
            signals |= {n if alone else f"{part.name}.{n}": x for n, x in out.items()}
        memory = {"memory": np.concatenate(kept)} if kept else {}
        return {"tau": tau, **memory, **signals}

    inputs = (Parameter(name, shape, keyword_only=True) for name, shape in shapes.items())
    return Program(
        control,
        [ROBOT, *inputs],
        content_key=identity((parts, names)),
        made_by=(composed, (parts, names)),
    )


def composed_name(part: Part, name: str, alone: bool) -> str:
    """The name in the composed program of a parameter of a part."""
    return name if alone else f"{part.name}__{name}"


def _path_shapes(part: Part) -> dict[str, Shape | None]:
    if part.path is None:
        return {}
    target = part.controller.shape(TARGETS[part.path][0])
    return dict(zip(PATH_PARAMETERS, (target, target, (2,)), strict=True))
