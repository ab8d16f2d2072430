"""The builder: collects bodies, hinges and frames, checks them, and makes an immutable robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Annotated, Any, Generic, Self, TypedDict, Unpack

import numpy as np

from phipsi.caller import warn
from phipsi.conventions import WORLD
from phipsi.model import hinge_checks, inertia_checks, validate
from phipsi.model.description import R, RobotDescription
from phipsi.model.errors import ModelError, ModelWarning
from phipsi.model.hinge_checks import NO_LIMIT, PER_Q, PER_V
from phipsi.model.hinges import KINDS, HingeKind, HingeName
from phipsi.model.parts import Body, Frame, Hinge, Mimic, WeldedBody
from phipsi.model.untrusted import listed, quoted
from phipsi.spatial import SpatialInertia, Transform
from phipsi.typing import Array, ArrayLike

PER_HINGE = (*PER_V, *PER_Q, "friction_speed")
"""The numbers of a hinge that a description may give."""
_FIELDS = {f.name for f in fields(Hinge)} - {"name", "q", "v"}
"""The fields of a hinge that can be changed before the robot is built."""


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
        self._numbers: dict[str, int] = {}  # the places of hinges in the list, by name

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
        where = f"body {quoted(name)}"
        m = validate.number(f"{where}: mass", mass)
        center = validate.numbers(f"{where}: centre of mass", com, (3,))
        tensor = validate.array(f"{where}: inertia", inertia)
        tensor = np.diag(tensor) if tensor.shape == (3,) else tensor
        tensor = validate.numbers(f"{where}: inertia", tensor, (3, 3))
        validate.symmetric(f"{where}: inertia", tensor)
        with np.errstate(all="ignore"):  # what overflows is refused by `build`
            self.bodies.append(Body(name, SpatialInertia.of(m, center, tensor)))
        return self

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
        where = f"hinge {quoted(name)}"
        row = KINDS.get(kind) if isinstance(kind, str) else None
        if row is None:
            raise ModelError(
                f"{where} has unknown kind {quoted(kind)}; known are {', '.join(KINDS)}"
            )
        unknown = numbers.keys() - PER_HINGE
        if unknown:
            raise ModelError(
                f"{where} does not know {listed(sorted(unknown))}; known are {', '.join(PER_HINGE)}"
            )
        values = _checked(where, row, {"pitch": pitch, **numbers})
        pose = validate.pose(where, position, rpy) if placement is None else placement
        axes = validate.axes(where, row, axis)
        self.hinges.append(
            Hinge(name, row, parent, child, pose, axes, mimic=mimic, **(defaults(row) | values))
        )
        return self

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
        where = f"frame {quoted(name)}"
        pose = validate.pose(where, position, rpy) if placement is None else placement
        self.frames.append(Frame(name, body, pose))
        return self

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
        validate.of_class("add: the robot", robot, RobotDescription)
        validate.of_class("add: prefix", prefix, str)
        mount = Transform.identity() if placement is None else placement
        validate.placements(lambda i: "add", [mount])

        def named(name: str) -> str:
            return at if name == WORLD else prefix + name

        def placed(name: str, pose: Transform) -> Transform:
            with np.errstate(all="ignore"):
                return mount @ pose if name == WORLD else pose

        for body in robot.bodies:
            welded = tuple(replace(w, name=prefix + w.name) for w in body.welded)
            self.bodies.append(replace(body, name=prefix + body.name, welded=welded))
            self._accepted.add(prefix + body.name)
        for h in robot.hinges:
            mimic = h.mimic and replace(h.mimic, joint=prefix + h.mimic.joint)
            self.hinges.append(
                replace(h, name=prefix + h.name, parent=named(h.parent), child=prefix + h.child,
                        placement=placed(h.parent, h.placement), mimic=mimic)
            )  # fmt: skip
        for f in robot.frames.values():
            self.frames.append(
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
            If there is no such hinge or field, or a number is wrong.
        """
        i, where = self._number(name), f"hinge {quoted(name)}"
        unknown = changes.keys() - _FIELDS
        if unknown:
            raise ModelError(f"{where} has no field {listed(sorted(unknown))} that can be changed")
        kind = changes.get("kind", self.hinges[i].kind)
        validate.of_class(f"{where}: kind", kind, HingeKind)
        self.hinges[i] = replace(self.hinges[i], **{**changes, **_checked(where, kind, changes)})
        return self

    def _number(self, name: str) -> int:
        """The place of a hinge in the list."""
        validate.of_class("the name of the hinge to change", name, str)
        i = self._numbers.get(name, -1)
        if not (0 <= i < len(self.hinges) and self.hinges[i].name == name):
            self._numbers = {h.name: i for i, h in enumerate(self.hinges)}
            i = self._numbers.get(name, -1)
        if i < 0:
            raise ModelError(f"robot {quoted(self.name)} has no hinge {quoted(name)} to change")
        return i

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
        with np.errstate(all="ignore"):
            gravity = validate.numbers("gravity", self.gravity, (3,))
            hinge_checks.check(self.hinges)
            self._check_placements(self.frames, "frame")
            self._check_placements([w for b in self.bodies for w in b.welded], "body")
            hinge_of = validate.tree(self.bodies, self.hinges, self.frames)
            validate.mimics(self.hinges)
            for name, doubt in inertia_checks.doubts(self.bodies):
                if strict:
                    raise ModelError(doubt)
                if name not in self._accepted:
                    warn(doubt, ModelWarning)
            robot = self._merged(hinge_of, gravity)
            inertia_checks.regular(robot)
        return robot

    def _check_placements(self, parts: Sequence[Frame | WeldedBody], what: str) -> None:
        validate.placements(
            lambda i: f"{what} {quoted(parts[i].name)}", [part.placement for part in parts]
        )

    def _merged(self, hinge_of: Mapping[str, Hinge], gravity: Array) -> R:
        """The robot: moving bodies are numbered depth first, welded bodies merged into others, and
        each hinge gets its slices of q and v."""
        body_of = {b.name: b for b in self.bodies}
        outboard: dict[str, list[Hinge]] = {}
        for body in reversed(self.bodies):
            h = hinge_of[body.name]
            outboard.setdefault(h.parent, []).append(h)
        hinges: list[Hinge] = []
        carrier: dict[str, tuple[str, Transform]] = {}
        """Of each welded body the moving body, or world, that it is part of, and its pose there."""
        merged: dict[str, SpatialInertia] = {}
        welded: dict[str, list[WeldedBody]] = {}
        frames: dict[str, Frame] = {}
        own = {f.name for f in self.frames if f.name == f.body}  # take the place of a body's frame
        nq = nv = 0
        stack = outboard.pop(WORLD, [])
        while stack:
            h = stack.pop()
            body, (holder, pose) = body_of[h.child], _carried(carrier, h.parent, h.placement)
            if h.kind.nv == 0:
                carrier[body.name] = holder, pose
                if body.name not in own:
                    frames[body.name] = Frame(body.name, holder, pose)
                if holder != WORLD:
                    merged[holder] = merged[holder] + pose.congruence(body.inertia)
                    bare = WeldedBody(body.name, body.bare, Transform.identity())
                    parts = replace(body, welded=(bare, *body.welded)).seen_from(pose).welded
                    welded[holder].extend(parts)
            else:
                merged[body.name], welded[body.name] = body.inertia, list(body.welded)
                hinges.append(
                    replace(h, parent=holder, placement=pose,
                            q=slice(nq, nq + h.kind.nq), v=slice(nv, nv + h.kind.nv))
                )  # fmt: skip
                nq, nv = nq + h.kind.nq, nv + h.kind.nv
            stack.extend(outboard.pop(body.name, ()))
        for f in self.frames:
            if f.name in frames:
                raise ModelError(
                    f"frame {quoted(f.name)} has the name of a welded body, which is a frame "
                    "already; rename one"
                )
            frames[f.name] = Frame(f.name, *_carried(carrier, f.body, f.placement))
        moving = {h.name for h in hinges}
        hinges = [
            replace(h, mimic=None) if h.mimic and h.mimic.joint not in moving else h for h in hinges
        ]
        bodies = [
            replace(body_of[h.child], inertia=merged[h.child], welded=tuple(welded[h.child]))
            for h in hinges
        ]
        _finish(gravity, bodies, hinges, frames)
        return self._make(self.name, tuple(bodies), tuple(hinges), frames, gravity)


def _carried(
    carrier: Mapping[str, tuple[str, Transform]], body: str, pose: Transform
) -> tuple[str, Transform]:
    """A pose on a body as one on the moving body, or the world, that this body is part of."""
    holder, base = carrier.get(body, (body, None))
    if base is not None:
        return holder, base @ pose
    return holder, Transform(pose.rotation + 0.0, pose.position + 0.0)  # a copy, with −0 as 0


def _finish(
    gravity: Array, bodies: Sequence[Body], hinges: Sequence[Hinge], frames: Mapping[str, Frame]
) -> None:
    """Check that sums over welded bodies are finite, and make all arrays immutable."""
    welded = [w for body in bodies for w in body.welded]
    placed: list[Hinge | Frame | WeldedBody] = [*hinges, *frames.values(), *welded]
    validate.stacked(
        lambda i: f"the position of {quoted(placed[i].name)}",
        [part.placement.position for part in placed], (3,),
    )  # fmt: skip
    _freeze(gravity)
    for part in (*bodies, *welded):
        _freeze(part.inertia.moment, part.inertia.J)
    for part in placed:
        _freeze(part.placement.rotation, part.placement.position)
    for h in hinges:
        _freeze(*h.axes)


@cache
def defaults(kind: HingeKind) -> dict[str, Any]:
    """The numbers of a hinge of this kind for which its description gives none."""
    sizes = {**dict.fromkeys(PER_V, kind.nv), **dict.fromkeys(PER_Q, kind.nq)}
    given = {**NO_LIMIT, "rest": kind.neutral}
    arrays = {key: np.full(n, given.get(key, 0.0)) for key, n in sizes.items()}
    _freeze(*arrays.values())
    return {**arrays, "pitch": 0.0, "friction_speed": 0.01}


def _checked(where: str, kind: HingeKind, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given numbers of a hinge; one number stands for all of its freedoms or coordinates."""
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key in PER_V or key in PER_Q:
            size = kind.nv if key in PER_V else kind.nq
            values[key] = _filled(f"{where}: {key}", value, size)
        elif key in ("pitch", "friction_speed"):
            values[key] = validate.number(f"{where}: {key}", value)
    return values


def _filled(where: str, value: object, size: int) -> Array:
    """The value as an immutable array with one axis; one number is repeated."""
    array = validate.array(where, value)
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
