"""The same robot described from another base body ([BI] Appendix A).

On the path from the old base to the new one every hinge is reversed, and the frame of every body is
moved to its new inboard hinge. The free hinge keeps its name and moves the new base.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model.errors import ModelError
from phipsi.model.parts import Frame, Hinge
from phipsi.model.robot import Builder, Robot
from phipsi.model.validate import NO_LIMIT
from phipsi.spatial import Motion, Transform
from phipsi.spatial.rotation import Scalars
from phipsi.typing import Array, Configuration, JointVector

SYMMETRIC = ("armature", "damping", "stiffness")
"""Numbers of a hinge that are the diagonal of a matrix on v. In rotated axes the matrix stays
diagonal if they are equal."""
COMPONENT = ("friction", "backlash")
"""Numbers of a hinge that act on each component of v separately."""
SAME = 1e-12
"""A frame is the frame of its body if it differs from it by less than this [m, rad]."""


@lru_cache(maxsize=64)
def rerooted(robot: Robot, body: str) -> tuple[Robot, tuple[str, ...]]:
    """The robot with `body` as the base of its tree, and warnings about limits that were dropped.

    All names are the same. A body whose frame moves has its old frame as a named frame of the same
    name. Limits that the reversed hinge cannot have are dropped, with one warning for each hinge;
    other numbers that it cannot have are an error.
    """
    way = _way(robot, body)
    if len(way) == 1:
        return robot, ()
    moved = {h.child: out.placement for h, out in pairwise(way)}
    moved[body] = robot.frame(body).placement
    back = {name: C.inv for name, C in moved.items()}

    def placed(name: str, pose: Transform) -> Transform:
        return back[name] @ pose if name in back else pose

    builder = Builder(robot.name, gravity=robot.gravity).add(robot)
    builder.bodies = [b.seen_from(back[b.name]) if b.name in back else b for b in builder.bodies]
    for h in robot.hinges:
        builder.replace_hinge(h.name, placement=placed(h.parent, h.placement))
    builder.replace_hinge(way[0].name, **_free(way[0]), child=body)
    for h in way[1:]:
        at = placed(h.child, Transform.identity())
        builder.replace_hinge(h.name, parent=h.child, child=h.parent, placement=at, **_reversed(h))
    frames = {name: Frame(name, name, pose) for name, pose in back.items()}
    frames |= {f.name: replace(f, placement=placed(f.body, f.placement)) for f in builder.frames}
    builder.frames = [f for f in frames.values() if f.name != f.body or not _own(f.placement)]
    return builder.build(), tuple(words for h in way if (words := _dropped(h)))


def _way(robot: Robot, body: str) -> list[Hinge]:
    """The hinges on the path from the free hinge to the inboard hinge of the body."""
    if body in robot.frames and all(b.name != body for b in robot.bodies):
        on = robot.frames[body].body
        where = "the world; name a body" if on == WORLD else f"body {on!r}; rebase to that body"
        raise ModelError(f"{body!r} is a frame of {where}")
    i = robot.body_index(body)
    if i < 0:
        raise ModelError(f"{WORLD!r} is no body that could be the base; name a body")
    way: list[Hinge] = []
    while i >= 0:
        way.append(robot.hinges[i])
        i = robot.parents[i]
    root = way[-1]
    if root.kind.name != "free":
        raise ModelError(
            f"body {body!r} cannot be the base: root joint {root.name!r} is not free (load with "
            "base='free', or give the root a free hinge)"
        )
    return way[::-1]


def _own(pose: Transform) -> bool:
    """Whether a pose is the identity to rounding."""
    return bool(np.abs(np.asarray(pose.matrix, float) - np.eye(4)).max() <= SAME)


# ---- the numbers of a reversed hinge -------------------------------------------------------------


def _free(h: Hinge) -> dict[str, Any]:
    """The fields of the free hinge that change when it moves another body."""
    for name in (*SYMMETRIC, *COMPONENT):
        if np.any(np.asarray(getattr(h, name)) != 0.0):
            raise _unsayable(h, name, "would act on the new base, give zero or an external force")
    return {"rest": np.array(h.kind.neutral), **_limits(h)}


def _reversed(h: Hinge) -> dict[str, Any]:
    """The axes and numbers of a hinge after reversal."""
    R = h.kind.reversal
    new: dict[str, Any] = {"axes": R.axes(h.axes), **_limits(h)}
    for name in (*SYMMETRIC, *COMPONENT):
        old = np.asarray(getattr(h, name), float)
        rotated = [i for i in R.alike if name in SYMMETRIC]
        mixed = [i for i, source in enumerate(R.v) if source is None and i not in rotated]
        if np.ptp(old[rotated]) if rotated else False:
            raise _unsayable(h, name, f"needs equal numbers for {_listed(rotated)}")
        if np.any(old[mixed] != 0.0):
            raise _unsayable(h, name, f"needs zero for {_listed(mixed)}")
        new[name] = np.array([old[i if s is None else s] for i, s in enumerate(R.v)])
    return {**new, "rest": np.array(R.coordinates(np.asarray(h.rest, float)), float)}


def _sources(h: Hinge, limit: str) -> Sequence[int | None]:
    """For each number of a limit of the reversed hinge the index of the equal number of this hinge,
    or None."""
    R = h.kind.reversal
    sources = R.q if limit in ("lower", "upper") else R.v
    return [None] * len(sources) if h.parent == WORLD else sources


def _limits(h: Hinge) -> dict[str, Any]:
    """The limits of the reversed hinge; none for coordinates that depend on several of the old."""
    return {
        name: np.array([none if s is None else getattr(h, name)[s] for s in _sources(h, name)])
        for name, none in NO_LIMIT.items()
    }


def _dropped(h: Hinge) -> str:
    """A sentence about the limits that the reversed hinge cannot have, or "" if there are none."""

    def lost(name: str, none: float) -> bool:
        both = zip(getattr(h, name), _sources(h, name), strict=True)
        return any(s is None and x != none for x, s in both)

    names = ", ".join(name for name, none in NO_LIMIT.items() if lost(name, none))
    return names and (
        f"hinge {h.name!r} is {h.kind.name}: its limits ({names}) cannot be said of another base "
        "and are dropped where coordinates mix"
    )


def _unsayable(h: Hinge, field: str, needs: str) -> ModelError:
    """The error about numbers of a hinge that the reversed hinge cannot have."""
    return ModelError(
        f"hinge {h.name!r} is {h.kind.name} with {field} {np.asarray(getattr(h, field)).tolist()}: "
        f"another base cannot have that; {field} {needs}"
    )


def _listed(freedoms: list[int]) -> str:
    return f"freedoms {', '.join(map(str, freedoms))}"


# ---- states and forces ---------------------------------------------------------------------------


def uprooted(robot: Robot, other: Robot) -> list[Hinge]:
    """The free hinges of `robot` that move another body in `other`, whose tree has another base."""
    return [h for h, back in _pairs(robot, other) if h.parent == WORLD and h.child != back.child]


def configuration(
    robot: Robot, other: Robot, q: Configuration, pose: Callable[[str], Transform]
) -> Configuration:
    """q of the other description; pose(body) is the pose of a new base in the world."""

    def at_base(back: Hinge) -> list[Any]:
        return list(back.kind.coordinates(back, back.placement.inv @ pose(back.child)))

    return _seen(
        robot, other, "q", q, at_base, lambda h, _, x: list(h.kind.reversal.coordinates(x))
    )


def velocity(
    robot: Robot, other: Robot, q: Configuration, v: JointVector, V: Callable[[str], Motion]
) -> JointVector:
    """v of the other description; V(body) is the velocity of a new base."""
    return _seen(
        robot, other, "v", v, lambda back: V(back.child).array,
        lambda h, back, x: h.kind.reversal.velocity(h, back, q[h.q], x),
    )  # fmt: skip


def acceleration(
    robot: Robot,
    other: Robot,
    q: Configuration,
    v: JointVector,
    a: JointVector,
    alpha: Callable[[str], Motion],
) -> JointVector:
    """a of the other description; alpha(body) is the acceleration of a new base."""
    return _seen(
        robot, other, "v", a, lambda back: alpha(back.child).array,
        lambda h, back, x: h.kind.reversal.acceleration(h, back, q[h.q], v[h.v], x),
    )  # fmt: skip


def force(robot: Robot, other: Robot, q: Configuration, tau: JointVector) -> JointVector:
    """tau of the other description, without the forces on old bases."""
    return _seen(
        robot, other, "v", tau, lambda back: np.full(6, 0.0, object),
        lambda h, back, x: h.kind.reversal.force(h, back, q[h.q], x),
    )  # fmt: skip


def _seen(
    robot: Robot,
    other: Robot,
    part: Literal["q", "v"],
    values: Array,
    at_base: Callable[[Hinge], Scalars],
    reversed: Callable[[Hinge, Hinge, Array], Scalars],
) -> Array:
    """The values, over q or v, of the other description.

    `at_base(back)` gives those of the free hinge of a new base, and `reversed(h, back, own)` those
    of a reversed hinge; the others are the same in both descriptions.
    """
    out = np.full(other.nq if part == "q" else other.nv, 0.0, object)
    for h, back in _pairs(robot, other):
        own = np.asarray(values)[getattr(h, part)]
        if h.child != back.child:
            own = at_base(back) if h.parent == WORLD else reversed(h, back, own)
        out[getattr(back, part)] = own
    return out


def _pairs(robot: Robot, other: Robot) -> Iterator[tuple[Hinge, Hinge]]:
    """Each hinge of `robot` and the hinge of the same name of `other`."""
    by_name = {h.name: h for h in other.hinges}
    return ((h, by_name[h.name]) for h in robot.hinges)
