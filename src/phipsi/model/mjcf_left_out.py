"""What a compiled MJCF has and a `Robot` cannot have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from phipsi.model import untrusted
from phipsi.model.mjcf_actuators import is_motor, is_servo
from phipsi.model.mjcf_names import names


def left_out(m: Any) -> Iterator[str]:
    """The effects on the motion that the model has and a `Robot` cannot have, with the names of the
    parts that have them."""
    free = _true(m.jnt_type == 0)
    dampers = {int(m.dof_jntid[i]) for i in _with(m, "dof_dampingpoly")}
    nonlinear = _with(m, "jnt_stiffnesspoly") | _with(m, "jnt_springyield") | dampers
    ball = _true(m.jnt_type == 1)
    heavy = {int(m.dof_jntid[i]) for i in _with(m, "dof_armature")}
    rotors = _with(m, "actuator_armature") | _with(m, "actuator_damping")
    servos = is_servo(m)
    others = ~is_motor(m) & ~servos
    for what, kind, parts, remark in (
        ("equality constraints", "eq", range(m.neq), ""),
        ("tendons", "tendon", range(m.ntendon), ""),
        (
            "servos",
            "actuator",
            _true(servos),
            "; the forces of joints are inputs, see phipsi.control",
        ),
        ("actuators that are no motors", "actuator", _true(others), ""),
        ("armature and damping of actuators", "actuator", rotors, ""),
        ("mocap bodies", "body", _true(m.body_mocapid >= 0), ", which stay at their pose"),
        ("contacts of geoms", "geom", _touching(m), ""),
        ("flexible bodies", "flex", range(m.nflex), ""),
        ("plugins", "plugin", range(m.nplugin), ""),
        ("gravity compensation", "body", _with(m, "body_gravcomp"), ""),
        ("nonlinear springs and dampers", "jnt", nonlinear, ""),
        ("springs of free joints", "jnt", free & _with(m, "jnt_stiffness"), ""),
        ("armature of free joints", "jnt", free & heavy, ""),
        ("limits of ball joints", "jnt", ball & _with(m, "jnt_limited"), ""),
    ):
        if len(parts):
            yield f"{what} ({_named(m, kind, parts)}){remark}"
    if m.density or m.viscosity:
        yield f"fluid forces (density {m.density:g}, viscosity {m.viscosity:g})"


def _with(m: Any, field: str) -> set[int]:
    """The parts in which a field is not zero; older versions of MuJoCo lack some fields."""
    return set(np.nonzero(getattr(m, field, np.zeros(0)))[0].tolist())


def _true(which: Any) -> set[int]:
    return set(np.flatnonzero(which).tolist())


def _named(m: Any, kind: str, parts: Iterable[int]) -> str:
    """The number of parts and the names of the first of them."""
    known, numbers = names(m, kind), sorted(parts)
    told = [untrusted.quoted(known[i]) if known[i] else f"number {i}" for i in numbers[:3]]
    more = f" and {len(numbers) - 3} more" if len(numbers) > 3 else ""
    return f"{len(numbers)}: {', '.join(told)}{more}"


def _touching(m: Any) -> set[int]:
    """The geoms that can touch those of other bodies, by the rules of MuJoCo."""
    if disabled(m, "CONTACT", "CONSTRAINT"):
        return set()
    body = m.geom_bodyid
    weld = m.body_weldid[body]
    inboard = m.body_weldid[m.body_parentid[weld]]
    rows = np.stack([body, weld, inboard, m.geom_contype, m.geom_conaffinity], axis=1)
    kinds, which = np.unique(rows, axis=0, return_inverse=True)
    body, weld, inboard, own, others = kinds.T
    filtered, apart = not disabled(m, "FILTERPARENT"), _excluded(m)
    touches = np.zeros(len(kinds), bool)
    for k, (b, w, p, mine, theirs) in enumerate(kinds):
        meets = ((own & theirs | others & mine) != 0) & (weld != w)
        if filtered and p:
            meets &= weld != p
        if filtered and w:
            meets &= inboard != w
        if b in apart:
            never = np.zeros(m.nbody, bool)
            never[apart[b]] = True
            meets &= ~never[body]
        touches[k] = meets.any()
    found = np.flatnonzero(touches[which.ravel()]).tolist()
    return {*found, *m.pair_geom1.tolist(), *m.pair_geom2.tolist()}


def _excluded(m: Any) -> dict[int, list[int]]:
    """For each body those that never touch it."""
    apart: dict[int, list[int]] = {}
    for signature in m.exclude_signature.tolist():
        first, second = signature >> 16, signature & 0xFFFF
        apart.setdefault(first, []).append(second)
        apart.setdefault(second, []).append(first)
    return apart


def disabled(m: Any, *effects: str) -> bool:
    """Whether one of these effects is disabled (their names differ between MuJoCo versions)."""
    return any(f"mjDSBL_{effect}" in m.disabled for effect in effects)
