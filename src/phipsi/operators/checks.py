"""Checks that a robot and the arguments of a caller fit an expression; errors are one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from phipsi.arguments import a_class, as_list
from phipsi.model import Hinge, ModelError, Robot
from phipsi.operators.algebra.derivation import CONDITIONS, Condition
from phipsi.operators.algebra.expression import ANY, Expression, Leaf
from phipsi.typing import MaskLike

Mask = tuple[bool, ...]
"""For each freedom whether it is active."""


def check_robot(x: Expression, robot: Robot, needs: Iterable[Condition] = ()) -> None:
    """Raise an error if the robot lacks a frame, a free base that a symbol needs, or a condition
    that a derivation needs."""
    if not isinstance(robot, Robot):
        raise TypeError(f"{x} needs a Robot first, got {type(robot).__name__}")
    if ANY in (x.domain, x.codomain):
        raise TypeError(f"{x} alone fits any space: name the one, as in I[joint rates]")
    dual = sorted((leaf for leaf in x.leaves if leaf.symbol.free_base), key=str)
    if dual:
        check_free(f"{x}: {dual[0]}", robot)
    for leaf in sorted(x.leaves, key=str):
        if leaf.symbol.of_hinge:
            _check_hinge(leaf, robot)
        else:
            _ = [robot.frame(name) for name in leaf.frames]
    for name in needs:
        found = _against(name, robot)
        if found:
            raise ModelError(
                f"{x} on robot {robot.name!r}: its inverse is known only if {CONDITIONS[name]}, "
                f"but {found}; 𝓜 (mass) has the armature in it, so mass.inv always works, "
                "and dense=True inverts anything"
            )


def _check_hinge(x: Leaf, robot: Robot) -> None:
    """Raise an error unless the frame of a symbol is the name of one hinge with one freedom."""
    name, *others = x.frames
    if others:
        raise ValueError(f"{x}: {x.symbol.name} takes one name")
    hinge = robot.hinge(name)
    if hinge.kind.nv != 1:
        raise ModelError(f"{x}: hinge {hinge.name!r} has not one freedom, but {hinge.kind.nv}")


def check_free(what: str, robot: Robot) -> None:
    """Raise a `ModelError` if a root of the robot is not free or has armature, for then the inertia
    of the rest of the system, seen from a body, is infinite there."""
    found = _against("free base", robot)
    if found:
        raise ModelError(f"{what} is known only on a free base, but {found}")


def in_free_trees(
    robot: Robot, per: Literal["nb", "nv"] = "nb"
) -> Annotated[NDArray[np.bool_], "n"]:
    """For each body or freedom whether the base of its tree is free: six freedoms without
    armature."""
    found: list[bool] = []
    for h, p in zip(robot.hinges, robot.parents, strict=True):
        found.append(found[p] if p >= 0 else not _why_bound(h))
    free = np.array(found, bool)
    return free if per == "nb" else np.repeat(free, [h.kind.nv for h in robot.hinges])


def _why_bound(root: Hinge) -> str:
    """Why the base that a root hinge moves is not free; empty if it is."""
    if root.kind.name != "free":
        return "is not free"
    return "has armature" if _armed(root) else ""


def _against(condition: Condition, robot: Robot) -> str:
    """Why a condition does not hold on a robot; empty if it holds, or depends on no robot."""
    match condition:
        case "no armature":
            held = [h for h in robot.hinges if _armed(h)]
            return f"joint {held[0].name!r} has some" if held else ""
        case "free base":
            roots = [h for h, p in zip(robot.hinges, robot.parents, strict=True) if p < 0]
            return next(
                (f"root joint {h.name!r} {why}" for h in roots if (why := _why_bound(h))), ""
            )
        case _:
            return ""


def _armed(h: Hinge) -> bool:
    """Whether a hinge has armature."""
    return not all(isinstance(a, float) and a == 0.0 for a in h.armature)


def as_mask(x: Expression, robot: Robot, active: MaskLike | None) -> Mask | None:
    """Which freedoms are active, as truth values; an error if the expression needs to know it."""
    mask = chosen(robot, active)
    if mask is None:
        check_split(x, f"pass active=, {robot.nv} truth values or the names of hinges")
    return mask


def check_split(x: Expression, hint: str) -> None:
    """Raise a `ValueError` if the expression needs to know which joints are active."""
    split: list[Leaf] = sorted((leaf for leaf in x.leaves if leaf.symbol.split), key=str)
    if split:
        raise ValueError(f"{x}: {split[0]} needs to know which joints are active; {hint}")


def chosen(robot: Robot, active: MaskLike | None) -> Mask | None:
    """The freedoms that are named by their hinges, or marked by truth values (nv,)."""
    if active is None:
        return None
    needs = f"{robot.nv} truth values or names of hinges"
    values: list[object] = [active] if isinstance(active, str) else as_list("active", active, needs)
    names = [x for x in values if isinstance(x, str)]
    if names and len(names) == len(values):
        return tuple(robot.mask(*names).tolist())
    return truths(values, robot.nv)


def truths(active: Iterable[object], size: int | None = None) -> Mask:
    """Truth values as a tuple; a `ValueError` if they are none, or not as many as `size`."""
    values = as_list("active", active)
    strange = [x for x in values if not isinstance(x, (bool, np.bool_))]
    if strange or size not in (None, len(values)):
        found = a_class(strange[0]) if strange else f"{len(values)} values"
        needed = "truth values" if size is None else f"{size} truth values or the names of hinges"
        raise ValueError(f"active has {found}, needs {needed}")
    return tuple(map(bool, values))
