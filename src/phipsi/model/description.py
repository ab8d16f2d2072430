"""The immutable data of a robot, with its sizes and lookups by name.

Functions of this folder take a `RobotDescription`; `Robot` adds the methods built on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar, get_args, overload

import numpy as np
from numpy.typing import NDArray

from phipsi.arguments import as_mapping
from phipsi.cached import cached_property
from phipsi.conventions import GRAVITY, WORLD
from phipsi.model.errors import ModelError
from phipsi.model.names import meant
from phipsi.model.parts import Body, Frame, Hinge, PerCoordinate, PerFreedom
from phipsi.model.untrusted import listed, quoted
from phipsi.typing import Array, Configuration, JointVector, Real, Vector3


@dataclass(frozen=True, eq=False, repr=False)
class RobotDescription:
    """The data of a robot: a forest of bodies with their hinges, frames and gravity.

    Bodies are numbered base to tip, and hinge i moves body i.
    """

    name: str
    bodies: tuple[Body, ...]
    hinges: tuple[Hinge, ...]
    frames: Mapping[str, Frame]
    gravity: Vector3 = field(default_factory=lambda: np.array(GRAVITY))

    def __post_init__(self) -> None:
        object.__setattr__(self, "frames", MappingProxyType(as_mapping("frames", self.frames)))

    @cached_property
    def nq(self) -> int:
        """The length of q."""
        return sum(h.kind.nq for h in self.hinges)

    @cached_property
    def nv(self) -> int:
        """The length of v, a and tau: the number of freedoms."""
        return sum(h.kind.nv for h in self.hinges)

    @property
    def nb(self) -> int:
        """The number of moving bodies."""
        return len(self.bodies)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """For each body the index of its parent, −1 for the world."""
        return tuple(self.moving.get(h.parent, -1) for h in self.hinges)

    @cached_property
    def moving(self) -> Mapping[str, int]:
        """The numbers of the moving bodies by name."""
        return {body.name: i for i, body in enumerate(self.bodies)}

    @cached_property
    def welded_places(self) -> Mapping[str, tuple[int, int]]:
        """For each welded body by name the numbers of its moving body, and among those welded to
        it."""
        return {w.name: (i, k) for i, b in enumerate(self.bodies) for k, w in enumerate(b.welded)}

    @cached_property
    def _hinges(self) -> dict[str, Hinge]:
        return {h.name: h for h in self.hinges}

    @cached_property
    def _owners(self) -> tuple[Hinge, ...]:
        """For each freedom the hinge that it belongs to."""
        return tuple(h for h in self.hinges for _ in range(h.kind.nv))

    @cached_property
    def _roots(self) -> tuple[int, ...]:
        """For each body the index of the root of its tree."""
        roots: list[int] = []
        for i, parent in enumerate(self.parents):
            roots.append(i if parent < 0 else roots[parent])
        return tuple(roots)

    def body_index(self, name: str) -> int:
        """The index of a body in `bodies`.

        Parameters
        ----------
        name
            The name of a body, or "world".

        Returns
        -------
        int
            The index, −1 for the world.

        Raises
        ------
        ModelError
            If the robot has no such body.
        """
        if name == WORLD:
            return -1
        if not isinstance(name, str) or name not in self.moving:
            raise self.unknown("body", name, list(self.moving))
        return self.moving[name]

    def hinge(self, name: str) -> Hinge:
        """The hinge of a given name.

        Parameters
        ----------
        name
            The name of the hinge.

        Returns
        -------
        Hinge
            The hinge.

        Raises
        ------
        ModelError
            If the robot has no such hinge.
        """
        if not isinstance(name, str) or name not in self._hinges:
            raise self.unknown("hinge", name, list(self._hinges))
        return self._hinges[name]

    def frame(self, name: str) -> Frame:
        """The frame of a given name.

        Parameters
        ----------
        name
            The name of a frame, else of a body, or "world".

        Returns
        -------
        Frame
            The named frame, else the body's own frame, else the world frame.

        Raises
        ------
        ModelError
            If there is no such frame.
        """
        if isinstance(name, str):
            if name in self.frames:
                return self.frames[name]
            if name in self.moving:
                return Frame(name, name, self.bodies[self.moving[name]].origin)
            if name == WORLD:
                return Frame(name, name)
        raise self.unknown("frame", name, [*self.frames, *self.moving, WORLD])

    def unknown(self, what: str, name: str, known: list[str]) -> ModelError:
        """The error about a part that the robot does not have.

        Parameters
        ----------
        what
            The kind of part.
        name
            The name that was given.
        known
            The names that the robot has.

        Returns
        -------
        ModelError
            The error.
        """
        shown = listed(known, 12) or "none"
        return ModelError(
            f"robot {quoted(self.name)} has no {what} {quoted(name)}; {meant(name, known)}it has "
            f"{shown}"
        )

    def root(self, body: str) -> str:
        """The root of the tree that a body belongs to.

        Parameters
        ----------
        body
            The name of a body, or "world".

        Returns
        -------
        str
            The name of the root body; "world" for the world.
        """
        i = self.body_index(body)
        return self.bodies[self._roots[i]].name if i >= 0 else WORLD

    def freedoms(self, root: str) -> Annotated[NDArray[np.int_], "n"]:
        """The indices in v of the freedoms of one tree.

        Parameters
        ----------
        root
            The name of the root body of the tree.

        Returns
        -------
        (n,)
            The indices, in increasing order.
        """
        i = self.body_index(root)
        own = (h.v for h, tree in zip(self.hinges, self._roots, strict=True) if tree == i)
        return np.array([i for v in own for i in range(v.start, v.stop)], int)

    def mask(self, *hinges: str) -> Annotated[NDArray[np.bool_], "nv"]:
        """Which freedoms belong to the named hinges.

        Parameters
        ----------
        *hinges
            Names of hinges.

        Returns
        -------
        (nv,)
            Truth values: whether each freedom belongs to one of the hinges.

        Examples
        --------
        >>> import phipsi as pp
        >>> ~pp.robots.space_arm().mask("base")[:8]
        array([False, False, False, False, False, False,  True,  True])
        """
        out = np.zeros(self.nv, bool)
        for name in hinges:
            out[self.hinge(name).v] = True
        return out

    @cached_property
    def driven(self) -> Annotated[NDArray[np.bool_], "nv"]:
        """Which freedoms have motors (nv,): the effort is not 0 and the hinge is not free."""
        out = np.asarray(self.joint_data("effort") != 0.0)
        return out & ~self.mask(*(h.name for h in self.hinges if h.kind.name == "free"))

    def hinge_of(self, freedom: int) -> Hinge:
        """The hinge that a freedom belongs to.

        Parameters
        ----------
        freedom
            The index of the freedom in v.

        Returns
        -------
        Hinge
            The hinge.

        Raises
        ------
        IndexError
            If there is no such freedom.
        """
        if isinstance(freedom, int | np.integer) and 0 <= freedom < self.nv:
            return self._owners[freedom]
        raise IndexError(
            f"robot {quoted(self.name)} has {self.nv} freedoms, and none of number "
            f"{quoted(freedom)}"
        )

    @cached_property
    def rates(self) -> Annotated[NDArray[np.int_], "nv"]:
        """For each freedom the index in q of the coordinate whose rate it is, else −1."""
        own = ((h.q.start, i) for h in self.hinges for i in h.kind.rates)
        return np.array([-1 if i < 0 else start + i for start, i in own], int)

    @overload
    def joint_data(self, field: PerFreedom | Literal["friction_speed"]) -> JointVector: ...
    @overload
    def joint_data(self, field: PerCoordinate) -> Configuration: ...
    def joint_data(self, field: PerFreedom | PerCoordinate | Literal["friction_speed"]) -> Array:
        """A property of all hinges, such as their limits, as one array.

        Parameters
        ----------
        field
            The name of a field of `Hinge`: velocity, effort, armature, damping, stiffness,
            friction, friction_speed or backlash; or lower, upper or rest.

        Returns
        -------
        (nv,) or (nq,)
            The numbers in the order of the hinges: one for each freedom, and of lower, upper and
            rest one for each coordinate.
        """
        if field not in (*get_args(PerFreedom), *get_args(PerCoordinate), "friction_speed"):
            raise ModelError(f"hinges have no numbers named {quoted(field)}")
        parts = [getattr(h, field) for h in self.hinges]
        sized = zip(parts, self.hinges, strict=True)
        return np.concatenate(
            [np.zeros(0), *(x if np.ndim(x) else np.full(h.kind.nv, x) for x, h in sized)]
        )

    @property
    def mass(self) -> Real:
        """The total mass of the moving bodies [kg]."""
        return sum((b.mass for b in self.bodies), 0.0)

    def neutral(self) -> Configuration:
        """The configuration with every hinge at zero.

        Returns
        -------
        (nq,)
            Zeros, and for quaternions the identity.
        """
        return np.array([x for h in self.hinges for x in h.kind.neutral], float)


R = TypeVar("R", bound=RobotDescription)
"""A class of robots, which functions take and return."""
