"""The frozen data of a robot, its sizes and look-ups: what functions on robots take.

`Robot` adds the methods that are built on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from phipsi.conventions import GRAVITY, WORLD
from phipsi.model.errors import ModelError
from phipsi.model.names import meant
from phipsi.model.parts import Body, Frame, Hinge


@dataclass(frozen=True, eq=False, repr=False)
class RobotDescription:
    """A forest of bodies (numbered base to tip; hinge i moves body i), frames and gravity."""

    name: str
    bodies: tuple[Body, ...]
    hinges: tuple[Hinge, ...]
    frames: Mapping[str, Frame]
    gravity: Any = GRAVITY

    def __post_init__(self) -> None:
        object.__setattr__(self, "frames", MappingProxyType(dict(self.frames)))

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

    def neutral(self) -> np.ndarray:
        """The configuration with every hinge at zero (quaternions at identity), (nq,)."""
        return np.array([x for h in self.hinges for x in h.kind.neutral], float)


R = TypeVar("R", bound=RobotDescription)
"""A class of robots: what is made from an `R` is an `R` again."""
