"""The controllers of a scenario composed into one program: control laws and the paths of targets.

The laws act in the order in which they are written, and their joint forces add. A law that takes
known forces, `tau`, is given those of the laws before it, and as `active` the freedoms that these
do not drive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from phipsi import control
from phipsi.compile import where
from phipsi.control import joint_path, pose_path
from phipsi.model import Robot
from phipsi.programs import ROBOT, Parameter, Program
from phipsi.simulation import controller
from phipsi.typing import Shape

Law = Program[..., Any]
LAWS: dict[str, Law] = {
    name: getattr(control, name)
    for name in (
        "pd_gravity",
        "computed_torque",
        "passivity_based",
        "rate_feedback",
        "pose_feedback",
        "operational_space",
        "hybrid_force_position",
        "resolved_acceleration",
        "reaction_mode",
        "object_control",
        "thrusters",
        "wheel_attitude_hold",
    )
}
"""The laws of `phipsi.control` that a scenario may name."""
SUPPLIED = (*controller.SUPPLIED, "tau")
TARGETS = {
    "pose": ("pose", "velocity", "acceleration"),
    "joint": ("target", "rate", "acceleration"),
}
"""What the two kinds of paths feed."""
COLUMNS = ("path_start", "path_goal", "path_times")


@dataclass(frozen=True)
class Part:
    """One control law, a constant of the trace: its options, the freedoms it drives, its path."""

    name: str
    law: Law = field(repr=False)
    options: tuple[tuple[str, Any], ...] = ()
    drives: tuple[bool, ...] | None = None
    path: str | None = None

    @property
    def memory(self) -> int:
        """How many numbers it remembers."""
        return prod(map(int, self.law.shape("memory") or (1,))) * self.asks("memory")

    def asks(self, name: str) -> bool:
        """Does it take that input?"""
        return name in self.law.parameters

    @property
    def fed(self) -> tuple[str, ...]:
        """The inputs that its path gives."""
        return tuple(n for n in TARGETS.get(self.path or "", ()) if self.asks(n))

    def act(self, robot: Robot, supplied: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
        """What it commands now."""
        if self.path is not None:
            start, goal, times = (own.pop(name) for name in COLUMNS)
            t = supplied["t"] - times[0]
            path: Any = (
                pose_path(t, times[1], start, goal)
                if self.path == "pose"
                else joint_path(robot, t, times[1], start, goal)
            )
            own |= {n: x for n, x in zip(TARGETS[self.path], path, strict=True) if n in self.fed}
        if self.drives is not None:
            supplied = {**supplied, "active": supplied["active"] * np.array(self.drives, float)}
        given = {n: x for n, x in supplied.items() if self.asks(n) and x is not None}
        out = self.law(robot, **given, **own, **dict(self.options))
        out = dict(out) if isinstance(out, Mapping) else {"tau": out}
        if self.drives is not None:
            out["tau"] = np.where(self.drives, out["tau"], 0.0)
        return out


@lru_cache(maxsize=32)
def composed(parts: tuple[Part, ...], names: tuple[tuple[str, ...], ...]) -> Law:
    """The program of all parts; `names` are the parameters of each that are given as numbers."""
    alone = len(parts) == 1
    shapes: dict[str, Shape | None] = {
        "t": (), "dt": (), "q": ("nq",), "v": ("nv",), "active": ("nv",), "locked": ("nv",),
    }  # fmt: skip
    if total := sum(part.memory for part in parts):
        shapes["memory"] = (total,)
    for part, own in zip(parts, names, strict=True):
        path = _path_shapes(part)
        for n in own:
            shapes[inner_name(part, n, alone)] = path.get(n, part.law.shape(n))

    def law(robot: Robot, **given: Any) -> dict[str, Any]:
        tau, active, told, kept, at = None, where(given["active"], 1.0, 0.0), {}, [], 0
        for part, own in zip(parts, names, strict=True):
            memory = given["memory"][at : at + part.memory] if part.memory else None
            at += part.memory
            state = {n: given[n] for n in ("t", "dt", "q", "v", "locked")}
            state |= {"active": active, "memory": memory, "tau": tau}
            out = part.act(robot, state, {n: given[inner_name(part, n, alone)] for n in own})
            tau = out.pop("tau") if tau is None else tau + out.pop("tau")
            active = out.pop("active", active)
            kept.extend([out.pop("memory")] if part.memory else [])
            told |= {n if alone else f"{part.name}.{n}": x for n, x in out.items()}
        memory = {"memory": np.concatenate(kept)} if kept else {}
        return {"tau": tau, **memory, **told}

    inputs = (Parameter(name, shape, keyword_only=True) for name, shape in shapes.items())
    return Program(law, [ROBOT, *inputs])


def inner_name(part: Part, name: str, alone: bool) -> str:
    """What a parameter is called in the program of all parts."""
    return name if alone else f"{part.name}__{name}"


def _path_shapes(part: Part) -> dict[str, Shape | None]:
    if part.path is None:
        return {}
    target = part.law.shape(TARGETS[part.path][0])
    return {"path_start": target, "path_goal": target, "path_times": (2,)}
