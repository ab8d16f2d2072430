"""The names of the parts of a compiled MJCF: of a `mujoco.MjModel`, or its fields."""

from __future__ import annotations

from typing import Any


def names(m: Any, kind: str) -> list[str]:
    """The names in MuJoCo of all parts of a kind ("body", "jnt", "geom", …); "" if a part has
    none."""
    text: bytes = m.names
    starts = getattr(m, f"name_{kind}adr").tolist()
    return [text[i : text.index(0, i)].decode(errors="replace") for i in starts]


def body_names(m: Any) -> list[str]:
    """The names of the bodies of a compiled model in phipsi."""
    return _unique([name or f"body{i}" for i, name in enumerate(names(m, "body"))])


def joint_names(m: Any) -> list[str]:
    """The names of the joints of a compiled model in phipsi."""
    bodies = body_names(m)
    found: list[str] = []
    for j, name in enumerate(names(m, "jnt")):
        body = m.jnt_bodyid[j]
        number = j - m.body_jntadr[body] if m.body_jntnum[body] > 1 else ""
        found.append(name or f"{bodies[body]}_joint{number}")
    return _unique(found)


def _unique(names: list[str]) -> list[str]:
    """The names, with underscores appended to repeated ones."""
    seen: set[str] = set()
    for i, name in enumerate(names):
        while name in seen:
            name += "_"
        seen.add(name)
        names[i] = name
    return names
