"""The frozen description of a robot: a forest of bodies and hinges, frames, gravity.

A `Robot` is data. It is made by `Builder` (or a loader, which uses one) and never changes; the
methods that "change" it return a new one. Its numbers may be traced scalars (`with_parameters`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from phipsi.conventions import GRAVITY, WORLD
from phipsi.model.hinges import HingeKind
from phipsi.model.names import meant
from phipsi.spatial import SpatialInertia, Transform
from phipsi.spatial import rotation as rot

if TYPE_CHECKING:
    from phipsi.model.builder import Builder

INF = float("inf")


class ModelError(ValueError):
    """A robot description is wrong; the message names what, where, and what to do."""


class ModelWarning(UserWarning):
    """A robot description is doubtful and is taken as it is."""


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body: its name and its inertia in its frame (at the inboard hinge). `origin` is the
    pose of the frame that people see; the two differ in equivalent robots alone."""

    name: str
    inertia: SpatialInertia
    origin: Transform = field(default_factory=Transform.identity)

    @property
    def mass(self) -> Any:
        """Mass [kg]."""
        return self.inertia.mass

    def __repr__(self) -> str:
        return f"Body({self.name!r}, mass={self.mass} kg)"


@dataclass(frozen=True)
class Mimic:
    """A URDF mimic relation, kept as data: q = multiplier · q(joint) + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Hinge:
    """The hinge between `parent` (a body or the world) and `child`.

    `lower`, `upper` and `rest` have nq numbers, the other arrays nv. Units: [rad] or [m] and their
    forces [N·m] or [N].
    """

    name: str
    kind: HingeKind
    parent: str
    child: str
    placement: Transform
    axes: tuple[Any, ...] = ()
    pitch: float = 0.0
    lower: Any = ()
    upper: Any = ()
    velocity: Any = ()
    effort: Any = ()
    armature: Any = ()
    damping: Any = ()
    stiffness: Any = ()
    rest: Any = ()
    friction: Any = ()
    friction_speed: float = 0.01
    backlash: Any = ()
    mimic: Mimic | None = None
    q: slice = field(default_factory=lambda: slice(0, 0))
    v: slice = field(default_factory=lambda: slice(0, 0))

    def __repr__(self) -> str:
        return f"Hinge({self.name!r}, {self.kind.name}, {self.parent!r} → {self.child!r})"


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame fixed to a body or to the world."""

    name: str
    body: str
    placement: Transform = field(default_factory=Transform.identity)

    def __repr__(self) -> str:
        return f"Frame({self.name!r} on {self.body!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Robot:
    """A forest of bodies (numbered base to tip; hinge i moves body i), frames and gravity.

    Build one with `phipsi.Builder`, `phipsi.load` or `phipsi.robots`. Two robots are equal when all
    their numbers and names are.
    """

    name: str
    bodies: tuple[Body, ...]
    hinges: tuple[Hinge, ...]
    frames: Mapping[str, Frame]
    gravity: Any = GRAVITY

    # ---- sizes and look-ups --------------------------------------------------------------------

    @cached_property
    def nq(self) -> int:
        """Length of q."""
        return sum(h.kind.nq for h in self.hinges)

    @cached_property
    def nv(self) -> int:
        """Length of v, a, tau."""
        return sum(h.kind.nv for h in self.hinges)

    @property
    def nb(self) -> int:
        """Number of moving bodies."""
        return len(self.bodies)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """For each body the number of its parent, −1 for the world."""
        return tuple(self._index.get(h.parent, -1) for h in self.hinges)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {body.name: i for i, body in enumerate(self.bodies)}

    def body_index(self, name: str) -> int:
        """The number of a body, −1 for the world."""
        if name == WORLD:
            return -1
        try:
            return self._index[name]
        except KeyError:
            raise self._unknown("body", name, list(self._index)) from None

    def hinge(self, name: str) -> Hinge:
        """The hinge of that name."""
        for h in self.hinges:
            if h.name == name:
                return h
        raise self._unknown("hinge", name, [h.name for h in self.hinges])

    def frame(self, name: str) -> Frame:
        """The frame of that name: a named frame, else a body's own, else the world."""
        if name in self.frames:
            return self.frames[name]
        if name in self._index:
            return Frame(name, name, self.bodies[self._index[name]].origin)
        if name == WORLD:
            return Frame(name, name)
        raise self._unknown("frame", name, [*self.frames, *self._index, WORLD])

    def _unknown(self, what: str, name: str, known: list[str]) -> ModelError:
        shown = ", ".join(repr(n) for n in known[:12])
        more = f" and {len(known) - 12} more" if len(known) > 12 else ""
        hint = meant(name, known)
        return ModelError(f"robot {self.name!r} has no {what} {name!r}; {hint}it has {shown}{more}")

    def root(self, body: str) -> str:
        """The root of the tree that a body belongs to; the world's is the world."""
        i = self.body_index(body)
        while i >= 0 and self.parents[i] >= 0:
            i = self.parents[i]
        return self.bodies[i].name if i >= 0 else WORLD

    def freedoms(self, root: str) -> np.ndarray:
        """Where in v the freedoms of the tree with that root are."""
        own = (h.v for h in self.hinges if self.root(h.child) == root)
        return np.array([i for v in own for i in range(v.start, v.stop)], int)

    def mask(self, *hinges: str) -> np.ndarray:
        """Which freedoms are those of the named hinges, truth values (nv,).

        >>> import phipsi as pp
        >>> ~pp.robots.space_arm().mask("base")[:8]
        array([False, False, False, False, False, False,  True,  True])
        """
        out = np.zeros(self.nv, bool)
        for name in hinges:
            out[self.hinge(name).v] = True
        return out

    @cached_property
    def driven(self) -> np.ndarray:
        """Which freedoms motors drive, truth values (nv,): effort not 0, and no free hinge."""
        out = np.asarray(self.joint_data("effort") != 0.0)
        return out & ~self.mask(*(h.name for h in self.hinges if h.kind.name == "free"))

    def hinge_of(self, freedom: int) -> Hinge:
        """The hinge that has the freedom of that number in v."""
        for h in self.hinges:
            if h.v.start <= freedom < h.v.stop:
                return h
        raise IndexError(
            f"robot {self.name!r} has {self.nv} freedoms, and none of number {freedom}"
        )

    @cached_property
    def rates(self) -> np.ndarray:
        """For each freedom the coordinate that it is the rate of, −1 where there is none, (nv,)."""
        own = ((h.q.start, i) for h in self.hinges for i in h.kind.rates)
        return np.array([-1 if i < 0 else start + i for start, i in own], int)

    def joint_data(self, field: str) -> Any:
        """A number of every hinge per freedom (nv,), or of `lower`, `upper`, `rest` per coordinate
        (nq,), in the order of the hinges."""
        parts = [getattr(h, field) for h in self.hinges]
        sized = zip(parts, self.hinges, strict=True)
        return np.concatenate(
            [np.zeros(0), *(x if np.ndim(x) else np.full(h.kind.nv, x) for x, h in sized)]
        )

    @property
    def mass(self) -> Any:
        """Total mass of the moving bodies [kg]."""
        return sum((b.mass for b in self.bodies), 0.0)

    # ---- configurations ------------------------------------------------------------------------

    def neutral(self) -> np.ndarray:
        """The configuration with every hinge at zero (quaternions at identity), (nq,)."""
        return np.array([x for h in self.hinges for x in h.kind.neutral], float)

    def random_state(
        self, rng: np.random.Generator | int | None = None, batch: tuple[int, ...] = ()
    ) -> tuple[np.ndarray, np.ndarray]:
        """Random (q, v): coordinates uniform within limits (±π rad, ±1 m where there are none),
        orientations uniform, velocities standard normal. Shapes (*batch, nq), (*batch, nv)."""
        rng = np.random.default_rng(rng)
        q = np.empty((*batch, self.nq))
        for h in self.hinges:
            part = q[..., h.q]
            angles = h.kind.angles or (False,) * h.kind.nq
            free = np.where(angles, np.pi, 1.0)
            low = np.where(h.upper > -free, -free, h.upper - 2 * free)
            low = np.where(np.isfinite(h.lower), h.lower, low)
            high = np.where(
                np.isfinite(h.upper), h.upper, np.where(low < free, free, low + 2 * free)
            )
            part[...] = rng.uniform(low, high, part.shape)
            if h.kind.quaternion is not None:
                x = rng.standard_normal((*batch, 4))
                part[..., h.kind.quaternion :] = x / np.linalg.norm(x, axis=-1, keepdims=True)
        return q, rng.standard_normal((*batch, self.nv))

    def integrate(self, q: Any, dv: Any) -> Any:
        """The configuration reached from q by the displacement dv = v·dt, (…, nq).

        Moves along the hinge's own group: quaternions stay unit, a free body follows its screw.
        Batched, and traceable inside programs.
        """
        return self._hinge_by_hinge(lambda h: h.kind.advance, "q", ("q", q, "q"), ("dv", dv, "v"))

    def difference(self, q0: Any, q1: Any) -> Any:
        """The displacement dv, (…, nv), with `integrate(q0, dv)` = q1 (rotations at most π)."""
        return self._hinge_by_hinge(
            lambda h: h.kind.difference, "v", ("q0", q0, "q"), ("q1", q1, "q")
        )

    def flow(self, q: Any, v: Any) -> Any:
        """The rate of q, (…, nq), where the robot moves with v."""
        return self._hinge_by_hinge(lambda h: h.kind.flow, "q", ("q", q, "q"), ("v", v, "v"))

    def bracket(self, u: Any, x: Any) -> Any:
        """[u, x] of velocities, hinge by hinge, (…, nv): zero where q moves by addition."""
        return self._hinge_by_hinge(_of_group("bracket"), "v", ("u", u, "v"), ("x", x, "v"))

    def coadjoint(self, u: Any, p: Any) -> Any:
        """ad*_u p of momenta, hinge by hinge, (…, nv): (ad*_u p)·x = p·[u, x]."""
        return self._hinge_by_hinge(_of_group("coadjoint"), "v", ("u", u, "v"), ("p", p, "v"))

    def inboard(self, q: Any, p: Any) -> Any:
        """Joint momenta, (…, nv), each in the frame that its hinge turns in: of a free base about
        the origin of the world."""
        return self._hinge_by_hinge(_of_group("inboard"), "v", ("q", q, "q"), ("p", p, "v"))

    def outboard(self, q: Any, p: Any) -> Any:
        """The inverse of `inboard`."""
        return self._hinge_by_hinge(_of_group("outboard"), "v", ("q", q, "q"), ("p", p, "v"))

    def _hinge_by_hinge(self, function: Any, space: str, *arguments: tuple[str, Any, str]) -> Any:
        """function(hinge)(hinge, part, part) of every hinge's parts of two arrays over "q" or "v",
        as an array over `space`."""
        sizes = {"q": self.nq, "v": self.nv}
        first, second = (self._coordinates(name, x, sizes[of]) for name, x, of in arguments)
        shape = np.broadcast_shapes(first.shape[:-1], second.shape[:-1])
        out = np.empty((*shape, sizes[space]), np.result_type(first, second))
        for h in self.hinges:
            x, y = first[..., getattr(h, arguments[0][2])], second[..., getattr(h, arguments[1][2])]
            where = getattr(h, space)
            result = function(h)(h, _split(x), _split(y))
            for k, value in zip(range(where.start, where.stop), result, strict=True):
                out[..., k] = value
        return out.view(type(second) if type(first) is np.ndarray else type(first))

    def _coordinates(self, name: str, values: Any, size: int) -> Any:
        array = np.asanyarray(values)
        if array.dtype != object:
            array = array.astype(np.promote_types(array.dtype, np.float32), copy=False)
        if array.ndim == 0 or array.shape[-1] != size:
            raise ValueError(
                f"{name} has shape {array.shape}, but robot {self.name!r} needs (..., {size})"
            )
        return array

    # ---- variants ------------------------------------------------------------------------------

    def with_gravity(self, gravity: Sequence[float] | np.ndarray) -> Robot:
        """The same robot under another gravity [m/s²], world frame."""
        return self.with_parameters({"gravity": gravity})

    def parameter(self, name: str) -> np.ndarray:
        """The present value of a number that can become an input of a kernel: "gravity",
        "inertia:BODY", "armature:HINGE", … (all names: `phipsi.model.parameters`)."""
        from phipsi.model import parameters

        return parameters.get(self, name)

    def with_parameters(self, values: Mapping[str, Any]) -> Robot:
        """The same robot with other numbers, by the names of `parameter`."""
        from phipsi.model import parameters

        robot = self
        for name, value in values.items():
            robot = parameters.put(robot, name, rot.scalars(value))
        return robot

    @cached_property
    def equivalent(self) -> Robot:
        """A robot with the same joint-space dynamics whose description has more zeros in it; its
        body frames and inertias are others (`phipsi.model.equivalent`)."""
        from phipsi.model.equivalent import equivalent

        robot = equivalent(self)
        robot.__dict__["equivalent"] = robot
        return robot

    def locked(self, joints: Iterable[str], q: Any = None) -> Robot:
        """The reduced robot with the named joints held at their part of q (default neutral)."""
        from phipsi.model.edit import locked

        return locked(self, joints, q)

    def attach(
        self, other: Robot, *, at: str, prefix: str = "", placement: Transform | None = None
    ) -> Robot:
        """This robot with `other` mounted on the frame `at`: an arm on a spacecraft, a payload in a
        hand. What floats freely in `other` is welded on; `prefix` keeps names apart."""
        from phipsi.model.edit import attach

        return attach(self, other, at=at, prefix=prefix, placement=placement)

    def edit(self, *, name: str | None = None) -> Builder:
        """A builder that holds this robot, to be changed (or renamed) and built anew."""
        from phipsi.model.builder import Builder

        return Builder(name or self.name, gravity=self.gravity).add(self)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frames", MappingProxyType(dict(self.frames)))

    # ---- identity ------------------------------------------------------------------------------

    @cached_property
    def key(self) -> str:
        """A digest of the whole content: equal robots have equal keys."""
        from phipsi.model.json import to_json

        return hashlib.sha256(to_json(self).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Robot) and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> Any:
        from phipsi.model.json import from_json, to_json

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


def _of_group(what: str) -> Any:
    from phipsi.model import group

    return lambda h: getattr(group, what)


def _split(x: Any) -> Any:
    """The last axis of x as an object array of scalars (each a batch array, a number or traced)."""
    if x.dtype == object and x.ndim == 1:
        return x.view(np.ndarray)
    out = np.empty(x.shape[-1], object)
    for k in range(x.shape[-1]):
        out[k] = x[..., k]
    return out
