"""The builder: collects bodies, hinges and frames, checks them, and makes a frozen robot."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Generic, Self

import numpy as np
from numpy.typing import ArrayLike

from phipsi.conventions import WORLD
from phipsi.model import validate
from phipsi.model.description import R, RobotDescription
from phipsi.model.errors import ModelError, ModelWarning
from phipsi.model.hinges import KINDS
from phipsi.model.parts import Body, Frame, Hinge, Mimic
from phipsi.spatial import SpatialInertia, Transform
from phipsi.spatial import rotation as rot

PER_HINGE = (*validate.PER_V, *validate.PER_Q, "friction_speed")
"""The numbers of a hinge that a description may give."""


class RobotBuilder(Generic[R]):
    """Collects the parts of a robot; `build` checks them and makes an `R`, a kind of robot."""

    def __init__(self, make: type[R], name: str, gravity: Any) -> None:
        self._make = make
        self.name = name
        self.gravity = gravity
        self.bodies: list[Body] = []
        self.hinges: list[Hinge] = []
        self.frames: list[Frame] = []
        self._accepted: set[str] = set()  # bodies of built robots, checked before

    def body(
        self,
        name: str,
        mass: float = 0.0,
        com: ArrayLike = (0.0, 0.0, 0.0),
        inertia: Any = (0.0, 0.0, 0.0),
    ) -> Self:
        """Add a body: mass [kg], centre of mass [m] and inertia about it [kg·m²] (3 × 3, or the
        three diagonal entries), in the body frame at its inboard hinge."""
        validate.numbers(f"body {name!r}: mass", mass, ())
        validate.numbers(f"body {name!r}: centre of mass", com, (3,))
        tensor = validate.array(f"body {name!r}: inertia", inertia)
        tensor = np.diag(tensor) if tensor.shape == (3,) else tensor
        validate.numbers(f"body {name!r}: inertia", tensor, (3, 3))
        validate.symmetric(f"body {name!r}: inertia", tensor)
        inertia = SpatialInertia.of(float(mass), np.asarray(com, float), tensor)
        return self._body(Body(name, inertia))

    def hinge(
        self,
        name: str,
        kind: str,
        parent: str,
        child: str,
        *,
        placement: Transform | None = None,
        position: ArrayLike = (0.0, 0.0, 0.0),
        rpy: ArrayLike = (0.0, 0.0, 0.0),
        axis: Any = None,
        pitch: float = 0.0,
        mimic: Mimic | None = None,
        **numbers: Any,
    ) -> Self:
        """Add the hinge that moves `child` against `parent` (a body or "world").

        Its frame in the parent's is `placement`, or `position` [m] and `rpy` [rad]. `axis` is the
        axis (the normal of a planar hinge), a pair for a universal hinge. Further keywords, one
        number or one per freedom: lower, upper, velocity, effort, armature, damping, stiffness,
        friction, backlash (dead band of the spring), rest (nq numbers), friction_speed [rad/s or
        m/s] (where smooth Coulomb friction has reached 76 %).
        """
        where = f"hinge {name!r}"
        row = KINDS.get(kind)
        if row is None:
            raise ModelError(f"{where} has unknown kind {kind!r}; known are {', '.join(KINDS)}")
        values: dict[str, Any] = {}
        defaults = {**validate.NO_LIMIT, "rest": row.neutral}
        for keys, size in ((validate.PER_V, row.nv), (validate.PER_Q, row.nq)):
            for key in keys:
                given = numbers.pop(key, defaults.get(key, 0.0))
                values[key] = _filled(f"{where}: {key}", given, size)
        values["pitch"] = validate.number(f"{where}: pitch", pitch)
        speed = numbers.pop("friction_speed", 0.01)
        values["friction_speed"] = validate.number(f"{where}: friction_speed", speed)
        if numbers:
            raise ModelError(
                f"{where} does not know {', '.join(numbers)}; known are {', '.join(PER_HINGE)}"
            )
        pose = placement or _pose(where, position, rpy)
        axes = validate.axes(where, row, axis)
        hinge = Hinge(name, row, parent, child, pose, axes, mimic=mimic, **values)
        return self._hinge(hinge)

    def frame(
        self,
        name: str,
        body: str = WORLD,
        *,
        placement: Transform | None = None,
        position: ArrayLike = (0.0, 0.0, 0.0),
        rpy: ArrayLike = (0.0, 0.0, 0.0),
    ) -> Self:
        """Add a named frame to a body or to the world."""
        pose = placement or _pose(f"frame {name!r}", position, rpy)
        return self._frame(Frame(name, body, pose))

    def add(
        self,
        robot: RobotDescription,
        *,
        prefix: str = "",
        at: str = WORLD,
        placement: Transform | None = None,
    ) -> Self:
        """Add all of another robot, its world put at `placement` on the body `at`, every name with
        `prefix` before it."""
        mount = placement or Transform.identity()

        def named(name: str) -> str:
            return at if name == WORLD else prefix + name

        def placed(name: str, pose: Transform) -> Transform:
            return mount @ pose if name == WORLD else pose

        for body in robot.bodies:
            self._body(replace(body, name=prefix + body.name))
            self._accepted.add(prefix + body.name)
        for h in robot.hinges:
            mimic = h.mimic and replace(h.mimic, joint=prefix + h.mimic.joint)
            self._hinge(
                replace(h, name=prefix + h.name, parent=named(h.parent), child=prefix + h.child,
                        placement=placed(h.parent, h.placement), mimic=mimic)
            )  # fmt: skip
        for f in robot.frames.values():
            self._frame(
                replace(f, name=prefix + f.name, body=named(f.body),
                        placement=placed(f.body, f.placement))
            )  # fmt: skip
        return self

    def replace_hinge(self, name: str, **changes: Any) -> Self:
        """Change fields of a hinge already added."""
        if all(h.name != name for h in self.hinges):
            raise ModelError(f"robot {self.name!r} has no hinge {name!r} to change")
        self.hinges = [replace(h, **changes) if h.name == name else h for h in self.hinges]
        return self

    def build(self, *, strict: bool = False) -> R:
        """Check everything and return the robot.

        Welded bodies merge into what they are welded to and keep their frame by name. Doubtful
        inertias (not realisable by a real body) are a `ModelWarning`, or an error with
        `strict=True`.
        """
        validate.names(self.name, self.bodies, self.hinges, self.frames)
        validate.numbers("gravity", self.gravity, (3,))
        for h in self.hinges:
            validate.hinge(h)
        for f in self.frames:
            validate.placement(f"frame {f.name!r}", f.placement)
        hinge_of = validate.tree(self.bodies, self.hinges, self.frames)
        for body in self.bodies:
            for doubt in validate.inertia(body):
                if body.name in self._accepted and not strict:
                    continue
                if strict:
                    raise ModelError(doubt)
                warnings.warn(doubt, ModelWarning, stacklevel=2)
        robot = self._merged(hinge_of)
        validate.regular(robot)
        return robot

    def _body(self, body: Body) -> Self:
        self.bodies.append(body)
        return self

    def _hinge(self, hinge: Hinge) -> Self:
        self.hinges.append(hinge)
        return self

    def _frame(self, frame: Frame) -> Self:
        self.frames.append(frame)
        return self

    def _merged(self, hinge_of: Mapping[str, Hinge]) -> R:
        """Number the moving bodies depth first, fold welds away, lay out q and v."""
        body_of = {b.name: b for b in self.bodies}
        outboard: dict[str, list[Hinge]] = {}
        for body in self.bodies:
            h = hinge_of[body.name]
            outboard.setdefault(h.parent, []).append(h)
        bodies: list[Body] = []
        hinges: list[Hinge] = []
        carrier = {WORLD: (WORLD, Transform.identity())}  # name -> (moving body, pose in it)
        merged: dict[str, SpatialInertia] = {}
        frames: dict[str, Frame] = {}
        named = {f.name for f in self.frames if f.name == f.body}  # instead of the body's own
        nq = nv = 0
        stack = list(reversed(outboard.get(WORLD, [])))
        while stack:
            h = stack.pop()
            body, (holder, pose) = body_of[h.child], carrier[h.parent]
            pose = pose @ h.placement
            if h.kind.nv == 0:
                carrier[body.name] = holder, pose
                if body.name not in named:
                    frames[body.name] = Frame(body.name, holder, pose)
                if holder != WORLD:
                    merged[holder] = merged[holder] + pose.congruence(body.inertia)
            else:
                carrier[body.name] = body.name, Transform.identity()
                merged[body.name] = body.inertia
                bodies.append(body)
                hinges.append(
                    replace(h, parent=holder, placement=pose,
                            q=slice(nq, nq + h.kind.nq), v=slice(nv, nv + h.kind.nv))
                )  # fmt: skip
                nq, nv = nq + h.kind.nq, nv + h.kind.nv
            stack.extend(reversed(outboard.get(body.name, [])))
        for f in self.frames:
            holder, pose = carrier[f.body]
            if f.name in frames:
                raise ModelError(
                    f"frame {f.name!r} has the name of a welded body, which is a frame already; "
                    "rename one"
                )
            frames[f.name] = Frame(f.name, holder, pose @ f.placement)
        gravity = np.array(self.gravity, float)
        _freeze(gravity, *(a for inertia in merged.values() for a in (inertia.moment, inertia.J)))
        for part in (*hinges, *frames.values()):
            _freeze(part.placement.rotation, part.placement.position)
        for h in hinges:
            _freeze(*h.axes)
        bodies = [replace(b, inertia=merged[b.name]) for b in bodies]
        return self._make(self.name, tuple(bodies), tuple(hinges), frames, gravity)


def _filled(where: str, value: Any, size: int) -> np.ndarray:
    array = validate.array(where, value).copy()
    if array.ndim == 0:
        array = np.full(size, float(array))
    if array.shape != (size,):
        raise ModelError(f"{where} has shape {array.shape}, needs one number or {size}")
    if np.isnan(array).any():
        raise ModelError(f"{where} is not a number")
    _freeze(array)
    return array


def _freeze(*arrays: np.ndarray) -> None:
    for array in arrays:
        array.flags.writeable = False


def _pose(where: str, position: ArrayLike, rpy: ArrayLike) -> Transform:
    validate.numbers(f"{where}: position", position, (3,))
    validate.numbers(f"{where}: rpy", rpy, (3,))
    roll, pitch, yaw = np.asarray(rpy, float).tolist()
    return Transform(rot.from_rpy(roll, pitch, yaw), rot.scalars(np.asarray(position, float)))
