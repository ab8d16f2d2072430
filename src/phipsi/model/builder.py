"""The builder: collects bodies, hinges and frames, checks them, and makes an immutable robot."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Generic, Self, TypedDict, Unpack

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model import validate
from phipsi.model.description import R, RobotDescription
from phipsi.model.errors import ModelError, ModelWarning
from phipsi.model.hinges import KINDS, HingeName
from phipsi.model.parts import Body, Frame, Hinge, Mimic, WeldedBody
from phipsi.spatial import SpatialInertia, Transform
from phipsi.spatial import rotation as rot
from phipsi.typing import Array, ArrayLike

PER_HINGE = (*validate.PER_V, *validate.PER_Q, "friction_speed")
"""The numbers of a hinge that a description may give."""


class HingeNumbers(TypedDict, total=False):
    """The keywords PER_HINGE: one number, or one for each freedom or coordinate."""

    lower: ArrayLike
    upper: ArrayLike
    rest: ArrayLike
    velocity: ArrayLike
    effort: ArrayLike
    armature: ArrayLike
    damping: ArrayLike
    stiffness: ArrayLike
    friction: ArrayLike
    backlash: ArrayLike
    friction_speed: float


class RobotBuilder(Generic[R]):
    """Collects the parts of a robot; `build` checks them and makes a robot of the class `make`."""

    def __init__(self, make: type[R], name: str, gravity: Annotated[ArrayLike, "3"]) -> None:
        self._make = make
        self.name = name
        self.gravity = gravity
        self.bodies: list[Body] = []
        self.hinges: list[Hinge] = []
        self.frames: list[Frame] = []
        self._accepted: set[str] = set()  # bodies of built robots, whose inertias were checked

    def body(
        self,
        name: str,
        mass: float = 0.0,
        com: Annotated[ArrayLike, "3"] = (0.0, 0.0, 0.0),
        inertia: ArrayLike = (0.0, 0.0, 0.0),
    ) -> Self:
        """Add a body.

        Parameters
        ----------
        name
            Its name.
        mass : optional
            Its mass [kg].
        com : (3,), optional
            The centre of mass [m] in the body frame, which is at the inboard hinge.
        inertia : (3, 3) or (3,), optional
            The inertia about the centre of mass [kg·m²] in the axes of the body frame: a matrix, or
            its diagonal.

        Returns
        -------
        Builder
            The builder itself.

        Raises
        ------
        ModelError
            If a number is not finite or the inertia is not symmetric.
        """
        m = validate.number(f"body {name!r}: mass", mass)
        center = validate.numbers(f"body {name!r}: centre of mass", com, (3,))
        tensor = validate.array(f"body {name!r}: inertia", inertia)
        tensor = np.diag(tensor) if tensor.shape == (3,) else tensor
        validate.numbers(f"body {name!r}: inertia", tensor, (3, 3))
        validate.symmetric(f"body {name!r}: inertia", tensor)
        return self._body(Body(name, SpatialInertia.of(m, center, tensor)))

    def hinge(
        self,
        name: str,
        kind: HingeName,
        parent: str,
        child: str,
        *,
        placement: Transform | None = None,
        position: Annotated[ArrayLike, "3"] = (0.0, 0.0, 0.0),
        rpy: Annotated[ArrayLike, "3"] = (0.0, 0.0, 0.0),
        axis: ArrayLike | None = None,
        pitch: float = 0.0,
        mimic: Mimic | None = None,
        **numbers: Unpack[HingeNumbers],
    ) -> Self:
        """Add the hinge that moves the body `child` relative to `parent`.

        Parameters
        ----------
        name
            Its name.
        kind
            The name of a hinge kind: weld, revolute, continuous, prismatic, helical, cylindrical,
            universal, planar, spherical or free.
        parent
            The name of a body, or "world".
        child
            The name of the body that it moves.
        placement : optional
            The pose of the hinge frame in the frame of the parent.
        position : (3,), optional
            The origin of the hinge frame in the parent's frame [m], if there is no `placement`.
        rpy : (3,), optional
            Roll, pitch and yaw of the hinge frame [rad], if there is no `placement`.
        axis : (3,) or (2, 3), optional
            The axis in the hinge frame, of any length: the normal of a planar hinge, two axes of a
            universal hinge, none of weld, spherical and free hinges.
        pitch : optional
            The advance of a helical hinge [m/rad].
        mimic : optional
            The mimic relation of a URDF.
        **numbers
            One number, or one for each freedom: velocity and effort (limits), armature, damping,
            stiffness, friction, backlash (dead band of the spring). One number, or one for each
            coordinate: lower and upper (limits), rest (of the spring). One number: friction_speed
            [rad/s or m/s], at which smooth Coulomb friction has reached 76 %.

        Returns
        -------
        Builder
            The builder itself.

        Raises
        ------
        ModelError
            If the kind or a keyword is unknown, or a number or the axis is wrong.
        """
        given: dict[str, object] = {**numbers}
        where = f"hinge {name!r}"
        row = KINDS.get(kind)
        if row is None:
            raise ModelError(f"{where} has unknown kind {kind!r}; known are {', '.join(KINDS)}")
        values: dict[str, Any] = {}
        defaults = {**validate.NO_LIMIT, "rest": row.neutral}
        for keys, size in ((validate.PER_V, row.nv), (validate.PER_Q, row.nq)):
            for key in keys:
                value = given.pop(key, defaults.get(key, 0.0))
                values[key] = _filled(f"{where}: {key}", value, size)
        values["pitch"] = validate.number(f"{where}: pitch", pitch)
        speed = given.pop("friction_speed", 0.01)
        values["friction_speed"] = validate.number(f"{where}: friction_speed", speed)
        if given:
            raise ModelError(
                f"{where} does not know {', '.join(given)}; known are {', '.join(PER_HINGE)}"
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
        position: Annotated[ArrayLike, "3"] = (0.0, 0.0, 0.0),
        rpy: Annotated[ArrayLike, "3"] = (0.0, 0.0, 0.0),
    ) -> Self:
        """Add a named frame to a body or to the world.

        Parameters
        ----------
        name
            Its name.
        body : optional
            The name of the body, by default the world.
        placement : optional
            The pose of the frame in the frame of the body.
        position : (3,), optional
            Its origin in the frame of the body [m], if there is no `placement`.
        rpy : (3,), optional
            Its roll, pitch and yaw [rad], if there is no `placement`.

        Returns
        -------
        Builder
            The builder itself.
        """
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
        """Add all parts of another robot.

        Parameters
        ----------
        robot
            The other robot.
        prefix : optional
            A text that is put before all its names.
        at : optional
            The name of the body that takes the place of its world; by default the world.
        placement : optional
            The pose of its world in the frame of that body.

        Returns
        -------
        Builder
            The builder itself.
        """
        mount = placement or Transform.identity()

        def named(name: str) -> str:
            return at if name == WORLD else prefix + name

        def placed(name: str, pose: Transform) -> Transform:
            return mount @ pose if name == WORLD else pose

        for body in robot.bodies:
            welded = tuple(replace(w, name=prefix + w.name) for w in body.welded)
            self._body(replace(body, name=prefix + body.name, welded=welded))
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
        """Change fields of a hinge that was added before.

        Parameters
        ----------
        name
            The name of the hinge.
        **changes
            New values of fields of `Hinge`.

        Returns
        -------
        Builder
            The builder itself.

        Raises
        ------
        ModelError
            If there is no such hinge.
        """
        if all(h.name != name for h in self.hinges):
            raise ModelError(f"robot {self.name!r} has no hinge {name!r} to change")
        self.hinges = [replace(h, **changes) if h.name == name else h for h in self.hinges]
        return self

    def build(self, *, strict: bool = False) -> R:
        """Check all parts and make the robot.

        A welded body becomes part of the body that it is welded to (`Body.welded`), and its frame a
        named frame; its inertia stays a parameter of the robot. An inertia that no real body has is
        a `ModelWarning`.

        Parameters
        ----------
        strict : optional
            Whether such an inertia is an error.

        Returns
        -------
        Robot
            The robot.

        Raises
        ------
        ModelError
            If the description is wrong; the message says what is wrong, where, and what to do.
        """
        validate.names(self.name, self.bodies, self.hinges, self.frames)
        validate.numbers("gravity", self.gravity, (3,))
        for h in self.hinges:
            validate.hinge(h)
        for f in self.frames:
            validate.placement(f"frame {f.name!r}", f.placement)
        for w in (w for body in self.bodies for w in body.welded):
            validate.placement(f"body {w.name!r}", w.placement)
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
        """The robot: moving bodies are numbered depth first, welded bodies merged into others, and
        each hinge gets its slices of q and v."""
        body_of = {b.name: b for b in self.bodies}
        outboard: dict[str, list[Hinge]] = {}
        for body in self.bodies:
            h = hinge_of[body.name]
            outboard.setdefault(h.parent, []).append(h)
        bodies: list[Body] = []
        hinges: list[Hinge] = []
        carrier = {WORLD: (WORLD, Transform.identity())}  # name: (moving body or world, pose on it)
        merged: dict[str, SpatialInertia] = {}
        welded: dict[str, list[WeldedBody]] = {}
        frames: dict[str, Frame] = {}
        named = {
            f.name for f in self.frames if f.name == f.body
        }  # frames that replace a body's own
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
                    own = WeldedBody(body.name, body.bare, Transform.identity())
                    parts = replace(body, welded=(own, *body.welded)).seen_from(pose).welded
                    welded[holder].extend(parts)
            else:
                carrier[body.name] = body.name, Transform.identity()
                merged[body.name], welded[body.name] = body.inertia, list(body.welded)
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
        added = [w for parts in welded.values() for w in parts]
        _freeze(*(a for w in added for a in (w.inertia.moment, w.inertia.J)))
        for part in (*hinges, *frames.values(), *added):
            _freeze(part.placement.rotation, part.placement.position)
        for h in hinges:
            _freeze(*h.axes)
        bodies = [replace(b, inertia=merged[b.name], welded=tuple(welded[b.name])) for b in bodies]
        return self._make(self.name, tuple(bodies), tuple(hinges), frames, gravity)


def _filled(where: str, value: object, size: int) -> Array:
    """The value as an immutable array with one axis; one number is repeated."""
    array = validate.array(where, value).copy()
    if array.ndim == 0:
        array = np.full(size, float(array))
    if array.shape != (size,):
        raise ModelError(f"{where} has shape {array.shape}, needs one number or {size}")
    if np.isnan(array).any():
        raise ModelError(f"{where} is not a number")
    _freeze(array)
    return array


def _freeze(*arrays: Array) -> None:
    """Make the arrays immutable."""
    for array in arrays:
        array.flags.writeable = False


def _pose(where: str, position: ArrayLike, rpy: ArrayLike) -> Transform:
    origin = validate.numbers(f"{where}: position", position, (3,))
    roll, pitch, yaw = validate.numbers(f"{where}: rpy", rpy, (3,)).tolist()
    return Transform(rot.from_rpy(roll, pitch, yaw), rot.scalars(origin))
