"""The public `Robot` and `Builder`.

A `Robot` is data. It is made by a `Builder` (or a loader, which uses one) and never changes; the
methods that "change" it return a new one. Its numbers may be traced scalars (`with_parameters`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from phipsi.conventions import GRAVITY
from phipsi.model import configurations, edit, parameters
from phipsi.model.builder import RobotBuilder
from phipsi.model.description import RobotDescription
from phipsi.model.equivalent import equivalent
from phipsi.model.errors import ModelError
from phipsi.model.json import read_json, to_json
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot


@dataclass(frozen=True, eq=False, repr=False)
class Robot(RobotDescription):
    """A forest of bodies (numbered base to tip; hinge i moves body i), frames and gravity.

    Build one with `phipsi.Builder`, `phipsi.load` or `phipsi.robots`. Two robots are equal when all
    their numbers and names are.
    """

    # ---- configurations ------------------------------------------------------------------------

    def random_state(
        self, rng: np.random.Generator | int | None = None, batch: tuple[int, ...] = ()
    ) -> tuple[np.ndarray, np.ndarray]:
        """Random (q, v): coordinates uniform within limits (±π rad, ±1 m where there are none),
        orientations uniform, velocities standard normal. Shapes (*batch, nq), (*batch, nv)."""
        return configurations.random_state(self, rng, batch)

    def integrate(self, q: Any, dv: Any) -> Any:
        """The configuration reached from q by the displacement dv = v·dt, (…, nq).

        Moves along the hinge's own group: quaternions stay unit, a free body follows its screw.
        Batched, and traceable inside programs.
        """
        return configurations.integrate(self, q, dv)

    def difference(self, q0: Any, q1: Any) -> Any:
        """The displacement dv, (…, nv), with `integrate(q0, dv)` = q1 (rotations at most π)."""
        return configurations.difference(self, q0, q1)

    def flow(self, q: Any, v: Any) -> Any:
        """The rate of q, (…, nq), where the robot moves with v."""
        return configurations.flow(self, q, v)

    def bracket(self, u: Any, x: Any) -> Any:
        """[u, x] of velocities, hinge by hinge, (…, nv): zero where q moves by addition."""
        return configurations.bracket(self, u, x)

    def coadjoint(self, u: Any, p: Any) -> Any:
        """ad*_u p of momenta, hinge by hinge, (…, nv): (ad*_u p)·x = p·[u, x]."""
        return configurations.coadjoint(self, u, p)

    def inboard(self, q: Any, p: Any) -> Any:
        """Joint momenta, (…, nv), each in the frame that its hinge turns in: of a free base about
        the origin of the world."""
        return configurations.inboard(self, q, p)

    def outboard(self, q: Any, p: Any) -> Any:
        """The inverse of `inboard`."""
        return configurations.outboard(self, q, p)

    # ---- variants ------------------------------------------------------------------------------

    def with_gravity(self, gravity: Sequence[float] | np.ndarray) -> Robot:
        """The same robot under another gravity [m/s²], world frame."""
        return self.with_parameters({"gravity": gravity})

    def parameter(self, name: str) -> np.ndarray:
        """The present value of a number that can become an input of a kernel: "gravity",
        "inertia:BODY", "armature:HINGE", … (all names: `phipsi.model.parameters`)."""
        return parameters.get(self, name)

    def with_parameters(self, values: Mapping[str, Any]) -> Robot:
        """The same robot with other numbers, by the names of `parameter`."""
        robot = self
        for name, value in values.items():
            robot = parameters.put(robot, name, rot.scalars(value))
        return robot

    @cached_property
    def equivalent(self) -> Robot:
        """A robot with the same joint-space dynamics whose description has more zeros in it; its
        body frames and inertias are others (`phipsi.model.equivalent`)."""
        robot = equivalent(self)
        robot.__dict__["equivalent"] = robot
        return robot

    def locked(self, joints: Iterable[str], q: Any = None) -> Robot:
        """The reduced robot with the named joints held at their part of q (default neutral)."""
        return edit.locked(self, joints, q)

    def attach(
        self, other: Robot, *, at: str, prefix: str = "", placement: Transform | None = None
    ) -> Robot:
        """This robot with `other` mounted on the frame `at`: an arm on a spacecraft, a payload in a
        hand. What floats freely in `other` is welded on; `prefix` keeps names apart."""
        return edit.attach(self, other, at=at, prefix=prefix, placement=placement)

    def edit(self, *, name: str | None = None) -> Builder:
        """A builder that holds this robot, to be changed (or renamed) and built anew."""
        return Builder(name or self.name, gravity=self.gravity).add(self)

    # ---- identity ------------------------------------------------------------------------------

    @cached_property
    def key(self) -> str:
        """A digest of the whole content: equal robots have equal keys."""
        return hashlib.sha256(to_json(self).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Robot) and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> Any:
        return from_json, (to_json(self),)

    def __repr__(self) -> str:
        bodies = "body" if self.nb == 1 else "bodies"
        return f"<Robot {self.name!r}: {self.nb} {bodies}, nq={self.nq}, nv={self.nv}>"

    def __str__(self) -> str:
        from phipsi.model.display import tree

        return tree(self)

    def _repr_html_(self) -> str:
        from phipsi.model.display import html

        return html(self)


class Builder(RobotBuilder[Robot]):
    """Collects a robot piece by piece; `build` checks everything and freezes it.

    Bodies, hinges and frames may come in any order. Each call returns the builder.

    >>> robot = (
    ...     Builder("pendulum")
    ...     .body("bob", mass=1.0, com=(0, 0, -0.5), inertia=(0.02, 0.02, 0.001))
    ...     .hinge("pivot", "revolute", "world", "bob", axis=(0, 1, 0))
    ...     .frame("tip", "bob", position=(0, 0, -1))
    ...     .build()
    ... )
    >>> robot
    <Robot 'pendulum': 1 body, nq=1, nv=1>
    """

    def __init__(self, name: str = "robot", *, gravity: Any = GRAVITY) -> None:
        super().__init__(Robot, name, gravity)


def from_json(text: str | bytes, *, strict: bool = False) -> Robot:
    """The robot that a JSON text describes, checked; `strict` as in `Builder.build`."""
    return read_json(text, Robot, strict=strict)


def combine(robots: Mapping[str, Robot] | Sequence[Robot], *, name: str = "world") -> Robot:
    """Several robots in one world: the first one's gravity, names prefixed by the mapping's keys
    ("left" → "left/…"); a plain sequence needs names that do not clash."""
    if isinstance(robots, Mapping):
        members = [(f"{key}/", robot) for key, robot in robots.items()]
    else:
        members = [("", robot) for robot in robots]
    if not members:
        raise ModelError("combine needs at least one robot")
    builder = Builder(name, gravity=members[0][1].gravity)
    for prefix, robot in members:
        builder.add(robot, prefix=prefix)
    return builder.build()
