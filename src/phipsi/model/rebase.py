"""The same robot described from another base body ([BI] Appendix A).

On the path from the old base to the new one every hinge is reversed, and the frame of every body is
moved to its new inboard hinge. The free hinge keeps its name and moves the new base.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model.errors import ModelError
from phipsi.model.hinge_checks import NO_LIMIT, PER_Q, PER_V
from phipsi.model.hinges import REVERSED
from phipsi.model.parts import Frame, Hinge
from phipsi.model.reversal import Reversal
from phipsi.model.robot import Builder, Robot
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
    name. Limits of the free hinge are dropped, with a warning; other numbers of it are an error.
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
    return builder.build(), tuple(filter(None, [_dropped(way[0])]))


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
            given = np.asarray(getattr(h, name)).tolist()
            raise ModelError(
                f"hinge {h.name!r} is free with {name} {given}, which would act on the new base; "
                "give zero or an external force"
            )
    none = {name: np.full(len(getattr(h, name)), x) for name, x in NO_LIMIT.items()}
    return {"rest": np.array(h.kind.neutral), **none}


def _dropped(h: Hinge) -> str:
    """A sentence about the limits of the free hinge, or "" if there are none."""
    names = ", ".join(name for name, x in NO_LIMIT.items() if np.any(getattr(h, name) != x))
    return names and (
        f"hinge {h.name!r} is free: its limits ({names}) cannot be said of another base and are "
        "dropped"
    )


def _reversed(h: Hinge) -> dict[str, Any]:
    """The kind, the axes and the numbers of a hinge after reversal.

    The kind stays if the numbers can be said of the reversed hinge, whose coordinates may be
    others. If not, it becomes the one of REVERSED, which has the same coordinates.
    """
    R = h.kind.reversal
    if h.kind.forward is not None:
        return {"kind": h.kind.forward}
    if not _sayable(h):
        return {"kind": REVERSED[f"reversed_{h.kind.name}"]}
    new: dict[str, Any] = {"axes": R.axes(h.axes)}
    for names, sources in ((PER_V, R.v), (PER_Q, R.q)):
        for name in names:
            old = np.asarray(getattr(h, name), float)
            new[name] = np.array([old[i if s is None else s] for i, s in enumerate(sources)])
    return {**new, "rest": np.array(R.coordinates(np.asarray(h.rest, float)), float)}


def _sayable(h: Hinge) -> bool:
    """Whether the numbers of a hinge can be said of a reversed hinge of the same kind: those of
    freedoms and coordinates that mix must be alike, or zero, or no limit."""
    R = h.kind.reversal
    for name in (*PER_V, *PER_Q):
        mixed = [i for i, s in enumerate(R.q if name in PER_Q else R.v) if s is None]
        values = np.asarray(getattr(h, name), float)
        if name in SYMMETRIC and R.alike:
            if np.ptp(values[list(R.alike)]):
                return False
            mixed = [i for i in mixed if i not in R.alike]
        if name != "rest" and np.any(values[mixed] != NO_LIMIT.get(name, 0.0)):
            return False
    return True


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
        robot, other, "q", q, at_base, lambda h, back, x: list(_reversal(h, back).coordinates(x))
    )


def velocity(
    robot: Robot, other: Robot, q: Configuration, v: JointVector, V: Callable[[str], Motion]
) -> JointVector:
    """v of the other description; V(body) is the velocity of a new base."""
    return _seen(
        robot, other, "v", v, lambda back: V(back.child).array,
        lambda h, back, x: _reversal(h, back).velocity(h, back, q[h.q], x),
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
        lambda h, back, x: _reversal(h, back).acceleration(h, back, q[h.q], v[h.v], x),
    )  # fmt: skip


def force(robot: Robot, other: Robot, q: Configuration, tau: JointVector) -> JointVector:
    """tau of the other description, without the forces on old bases."""
    return _seen(
        robot, other, "v", tau, lambda back: np.full(6, 0.0, object),
        lambda h, back, x: _reversal(h, back).force(h, back, q[h.q], x),
    )  # fmt: skip


def _reversal(h: Hinge, back: Hinge) -> Reversal:
    """The map from the coordinates of a hinge to those of the same hinge from its other side."""
    return (h.kind if back.kind.forward is None else back.kind).reversal


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
