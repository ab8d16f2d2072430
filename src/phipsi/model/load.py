"""Robots from files and texts of any known format, and back to a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from phipsi.model import mjcf, untrusted, urdf
from phipsi.model.errors import ModelError
from phipsi.model.files import write
from phipsi.model.json import to_json
from phipsi.model.robot import Robot, from_json

Format = Literal["urdf", "mjcf", "json"]
_ROOTS = {"robot": "urdf", "mujoco": "mjcf"}


def load(
    source: str | bytes | os.PathLike[str],
    *,
    base: urdf.Base = "fixed",
    armature: float | Mapping[str, float] = 0.0,
    format: Format | None = None,
    strict: bool = False,
) -> Robot:
    """The robot in a file, or in a text that starts with "<" or "{".

    The content says whether it is URDF (`from_urdf`), MJCF (`from_mjcf`) or phipsi's own JSON
    (`from_json`); `format` insists on one of them. `base` ("fixed" or "free") and
    `armature` (rotor inertia of every joint, or of the named ones) are for URDF. Doubtful
    inertias are a `ModelWarning`, or with `strict=True` a `ModelError`. Whatever is wrong with the
    source is a `ModelError` that says so in one sentence; a missing file is a `FileNotFoundError`.
    """
    if untrusted.is_text(source):
        return _robot(source, None, base, armature, format, strict)
    if not isinstance(source, str | os.PathLike):
        raise ModelError(f"load needs a path, XML or JSON, not a {type(source).__name__}")
    path = Path(source)
    content = untrusted.read(path)
    try:
        return _robot(content, path, base, armature, format, strict)
    except ModelError as error:
        raise ModelError(f"{untrusted.quoted(path.name)}: {error}") from None


def save(robot: Robot, path: str | os.PathLike[str]) -> None:
    """Write the robot as JSON, which `load` reads back bit for bit. The file appears complete or
    not at all."""
    write(path, to_json(robot).encode())


def _robot(
    content: str | bytes,
    path: Path | None,
    base: urdf.Base,
    armature: float | Mapping[str, float],
    format: str | None,
    strict: bool,
) -> Robot:
    text = untrusted.decoded(content).lstrip("\ufeff \t\r\n")
    if format not in (None, "urdf", "mjcf", "json"):
        raise ModelError(f"format is {untrusted.quoted(format)}, needs 'urdf', 'mjcf' or 'json'")
    if format == "json" or (format is None and text.startswith("{")):
        _only_urdf(base, armature, "JSON")
        return from_json(text, strict=strict)
    if not text.startswith("<"):
        raise ModelError("the description is neither XML nor JSON: it must start with '<' or '{'")
    root = untrusted.xml(text)
    format = format or _ROOTS.get(root.tag)
    if format == "urdf":
        return urdf.from_tree(root, base=base, armature=armature, strict=strict)
    if format == "mjcf":
        _only_urdf(base, armature, "MJCF")
        return mjcf.from_tree(root, text, path, strict=strict)
    raise ModelError(
        f"the root element is {untrusted.quoted(root.tag)}, but a robot is <robot> (URDF) or "
        "<mujoco> (MJCF)"
    )


def _only_urdf(base: str, armature: float | Mapping[str, float], what: str) -> None:
    if base != "fixed":
        raise ModelError(f"base={base!r} is for URDF; {what} says itself how its base moves")
    if armature:
        raise ModelError(f"armature= is for URDF; {what} says itself what its rotors weigh")
