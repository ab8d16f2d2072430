"""The same robot described from another base body ([BI] Appendix A).

On the way from the old base to the new one every hinge is turned round and every body's frame moves
to what is now its inboard hinge; the free hinge keeps its name and moves the new base.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from phipsi.conventions import WORLD
from phipsi.model.errors import ModelError
from phipsi.model.parts import Frame, Hinge
from phipsi.model.robot import Builder, Robot
from phipsi.model.validate import NO_LIMIT
from phipsi.spatial import Motion, Transform

SYMMETRIC = ("armature", "damping", "stiffness")
"""Numbers of a hinge that are a matrix on v: a multiple of the identity stays one when turned."""
COMPONENT = ("friction", "backlash")
"""Numbers that act on each component of v by itself."""
SAME = 1e-12
"""A frame this near to its body's own [m, rad] is that one."""


@lru_cache(maxsize=64)
def rerooted(robot: Robot, body: str) -> tuple[Robot, tuple[str, ...]]:
    """The robot with `body` as the base of its tree: same names, other frames of turned bodies.

    Bodies whose frame moves keep the old one as a frame of their name. What cannot be said of a
    hinge from its other side is refused, or dropped if it is a limit: one sentence for each hinge.
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
    builder.bodies = [
        replace(b, inertia=back[b.name].congruence(b.inertia)) if b.name in back else b
        for b in builder.bodies
    ]
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
    """The hinges from the free one to the body's inboard hinge."""
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
    return bool(np.abs(np.asarray(pose.matrix, float) - np.eye(4)).max() <= SAME)


# ---- the numbers of a hinge, from its other side -------------------------------------------------


def _free(h: Hinge) -> dict[str, Any]:
    """The free hinge, which moves another body now."""
    for name in (*SYMMETRIC, *COMPONENT):
        if np.any(np.asarray(getattr(h, name)) != 0.0):
            raise _unsayable(h, name, "would act on the new base, give zero or an external force")
    return {"rest": np.array(h.kind.neutral), **_limits(h)}


def _reversed(h: Hinge) -> dict[str, Any]:
    """The axes and numbers of a hinge that is turned round."""
    R = h.kind.reversal
    new: dict[str, Any] = {"axes": R.axes(h.axes), **_limits(h)}
    for name in (*SYMMETRIC, *COMPONENT):
        old = np.asarray(getattr(h, name), float)
        turned = [i for i in R.alike if name in SYMMETRIC]
        mixed = [i for i, source in enumerate(R.v) if source is None and i not in turned]
        if np.ptp(old[turned]) if turned else False:
            raise _unsayable(h, name, f"needs equal numbers for {_listed(turned)}")
        if np.any(old[mixed] != 0.0):
            raise _unsayable(h, name, f"needs zero for {_listed(mixed)}")
        new[name] = np.array([old[i if s is None else s] for i, s in enumerate(R.v)])
    return {**new, "rest": np.array(R.coordinates(np.asarray(h.rest, float)), float)}


def _sources(h: Hinge, limit: str) -> Sequence[int | None]:
    """For each number of a limit from the other side which one of this side it is, if it is one."""
    R = h.kind.reversal
    sources = R.q if limit in ("lower", "upper") else R.v
    return [None] * len(sources) if h.parent == WORLD else sources


def _limits(h: Hinge) -> dict[str, Any]:
    """The limits from the other side; none where coordinates mix."""
    return {
        name: np.array([none if s is None else getattr(h, name)[s] for s in _sources(h, name)])
        for name, none in NO_LIMIT.items()
    }


def _dropped(h: Hinge) -> str:
    """Which limits the other side cannot have, if any."""

    def lost(name: str, none: float) -> bool:
        both = zip(getattr(h, name), _sources(h, name), strict=True)
        return any(s is None and x != none for x, s in both)

    names = ", ".join(name for name, none in NO_LIMIT.items() if lost(name, none))
    return names and (
        f"hinge {h.name!r} is {h.kind.name}: its limits ({names}) cannot be said of another base "
        "and are dropped where coordinates mix"
    )


def _unsayable(h: Hinge, field: str, needs: str) -> ModelError:
    return ModelError(
        f"hinge {h.name!r} is {h.kind.name} with {field} {np.asarray(getattr(h, field)).tolist()}: "
        f"another base cannot have that; {field} {needs}"
    )


def _listed(freedoms: list[int]) -> str:
    return f"freedoms {', '.join(map(str, freedoms))}"


# ---- states and forces ---------------------------------------------------------------------------


def uprooted(robot: Robot, other: Robot) -> list[Hinge]:
    """The free hinges of `robot` that move another body in `other`: those of trees rooted anew."""
    return [h for h, back in _pairs(robot, other) if h.parent == WORLD and h.child != back.child]


def configuration(robot: Robot, other: Robot, q: Any, pose: Callable[[str], Transform]) -> Any:
    """q in the other description, a new base being at pose(body) in the world."""

    def at_base(back: Hinge) -> Any:
        return list(back.kind.coordinates(back, back.placement.inv @ pose(back.child)))

    return _seen(
        robot, other, "q", q, at_base, lambda h, _, x: list(h.kind.reversal.coordinates(x))
    )


def velocity(robot: Robot, other: Robot, q: Any, v: Any, V: Callable[[str], Motion]) -> Any:
    """v in the other description, V(body) the velocity of a new base."""
    return _seen(
        robot, other, "v", v, lambda back: V(back.child).array,
        lambda h, back, x: h.kind.reversal.velocity(h, back, q[h.q], x),
    )  # fmt: skip


def acceleration(
    robot: Robot, other: Robot, q: Any, v: Any, a: Any, alpha: Callable[[str], Motion]
) -> Any:
    """a in the other description, alpha(body) the acceleration of a new base."""
    return _seen(
        robot, other, "v", a, lambda back: alpha(back.child).array,
        lambda h, back, x: h.kind.reversal.acceleration(h, back, q[h.q], v[h.v], x),
    )  # fmt: skip


def force(robot: Robot, other: Robot, q: Any, tau: Any) -> Any:
    """tau in the other description, without the forces on old bases."""
    return _seen(
        robot, other, "v", tau, lambda back: np.full(6, 0.0, object),
        lambda h, back, x: h.kind.reversal.force(h, back, q[h.q], x),
    )  # fmt: skip


def _seen(
    robot: Robot,
    other: Robot,
    part: str,
    values: Any,
    at_base: Callable[[Hinge], Any],
    turned: Callable[[Hinge, Hinge, Any], Any],
) -> Any:
    out = np.full(other.nq if part == "q" else other.nv, 0.0, object)
    for h, back in _pairs(robot, other):
        own = np.asarray(values)[getattr(h, part)]
        if h.child != back.child:
            own = at_base(back) if h.parent == WORLD else turned(h, back, own)
        out[getattr(back, part)] = own
    return out


def _pairs(robot: Robot, other: Robot) -> Iterator[tuple[Hinge, Hinge]]:
    by_name = {h.name: h for h in other.hinges}
    return ((h, by_name[h.name]) for h in robot.hinges)
