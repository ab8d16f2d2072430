"""What an expression asks of a robot: frames, active joints, conditions; one sentence if not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from phipsi.model import Hinge, ModelError, Robot
from phipsi.operators.expressions import Expression
from phipsi.operators.symbols import G_s, Lambda, S, S_plus, psi_s, tau_bar_s

if TYPE_CHECKING:
    from phipsi.operators.simplify import Derivation

Mask = tuple[bool, ...]

DUAL = {S, S_plus, G_s, psi_s, Lambda, tau_bar_s}
"""Symbols that only free-flyers have."""


def check_conditions(x: Expression, derivation: Derivation, robot: Robot) -> None:
    """Refuse a robot for which the derivation does not hold."""
    from phipsi.operators.identities import CONDITIONS

    for name in derivation.needs:
        found = _against(name, robot)
        if found:
            raise ModelError(
                f"{x} on robot {robot.name!r}: its inverse is known only if {CONDITIONS[name]}, "
                f"but {found}; 𝓜 (mass) has the armature in it, so mass.inv always works, "
                "and dense=True inverts anything"
            )


def _against(condition: str, robot: Robot) -> str:
    """Why a condition does not hold, if so."""
    match condition:
        case "no armature":
            held = [h for h in robot.hinges if _armed(h)]
            return f"joint {held[0].name!r} has some" if held else ""
        case "free base":
            roots = [h for h, p in zip(robot.hinges, robot.parents, strict=True) if p < 0]
            held = [h for h in roots if h.kind.name != "free" or _armed(h)]
            return f"root joint {held[0].name!r} is not free" if held else ""
    return ""


def _armed(h: Hinge) -> bool:
    return not all(isinstance(a, float) and a == 0.0 for a in h.armature)


def check_frames(x: Expression, robot: Robot) -> None:
    """Refuse frames that the robot does not have, and the dual set without a free base."""
    dual = sorted((leaf for leaf in x.leaves if leaf in DUAL), key=str)
    found = _against("free base", robot) if dual else ""
    if found:
        raise ModelError(f"{x}: {dual[0]} is known only on a free base, but {found}")
    for frame in sorted({name for leaf in x.leaves for name in leaf.frames}):
        robot.frame(frame)


def as_mask(x: Expression, robot: Robot, active: Any) -> Mask | None:
    """Which joint rates are active, as constants."""
    if active is None:
        split = [leaf for leaf in x.leaves
                 if {leaf.domain.size, leaf.codomain.size} & {"active", "passive"}
                 or leaf.symbol.name.split("_")[-1] == "p"]  # fmt: skip
        if split:
            raise ValueError(
                f"{x}: {split[0]} needs to know which joints are active; "
                f"pass active=, {robot.nv} truth values or the names of hinges"
            )
        return None
    if all(isinstance(name, str) for name in active):
        chosen = np.zeros(robot.nv, bool)
        for name in active:
            chosen[robot.hinge(name).v] = True
        return tuple(chosen.tolist())
    mask = np.asarray(active)
    if mask.shape != (robot.nv,) or mask.dtype != bool:
        raise ValueError(
            f"active has shape {mask.shape} of {mask.dtype}, needs {robot.nv} truth values "
            "or the names of hinges"
        )
    return tuple(mask.tolist())
