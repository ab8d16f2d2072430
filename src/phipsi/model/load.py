"""Reading robots from files and texts of any known format, and writing them to files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from phipsi.arguments import a_class
from phipsi.model import mjcf, untrusted, urdf, validate
from phipsi.model.errors import ModelError
from phipsi.model.files import write
from phipsi.model.json import to_json
from phipsi.model.robot import Robot, from_json

Format = Literal["urdf", "mjcf", "json"]
"""A file format of robots."""
_ROOTS: dict[str, Format] = {"robot": "urdf", "mujoco": "mjcf"}
"""The format of an XML text by its root element."""


def load(
    source: str | bytes | os.PathLike[str],
    *,
    base: urdf.Base = "fixed",
    armature: float | Mapping[str, float] = 0.0,
    format: Format | None = None,
    strict: bool = False,
) -> Robot:
    """The robot that a file or a text describes.

    An inertia that no real body has is a `ModelWarning`, and so is each kind of part that has an
    effect in its format and none here, such as contacts, servos and tendons of an MJCF, or mimic
    relations of a URDF.

    Parameters
    ----------
    source
        The path of a file, or a text that starts with "<" or "{".
    base : optional
        Of a URDF: whether its root link is the world ("fixed") or a body on a free hinge ("free").
    armature : optional
        Of a URDF: the rotor inertia [kg·m² or kg] of every joint with one freedom, or of joints by
        name.
    format : optional
        "urdf", "mjcf" or "json" (the format of `save`); by default the content decides. Details:
        `phipsi.model.urdf.from_urdf`, `phipsi.model.mjcf.from_mjcf` and `phipsi.model.json`.
    strict : optional
        Whether what would be a `ModelWarning` is a `ModelError`.

    Returns
    -------
    Robot
        The robot.

    Raises
    ------
    ModelError
        If something is wrong with the source; the message is one sentence.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import phipsi as pp
    >>> text = '''<robot name="pendulum">
    ...   <link name="base"/>
    ...   <link name="bob"><inertial>
    ...     <origin xyz="0 0 -1"/><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/>
    ...   </inertial></link>
    ...   <joint name="pivot" type="continuous">
    ...     <parent link="base"/><child link="bob"/><axis xyz="0 1 0"/>
    ...   </joint>
    ... </robot>'''
    >>> pp.load(text)
    <Robot 'pendulum': 1 body, nq=1, nv=1>
    """
    if untrusted.is_text(source):
        return _robot(source, None, base, armature, format, strict)
    if not isinstance(source, str | os.PathLike):
        raise ModelError(f"load needs a path, XML or JSON, not {a_class(source)}")
    path = Path(source)
    content = untrusted.read(path)
    try:
        return _robot(content, path, base, armature, format, strict)
    except ModelError as error:
        raise ModelError(f"{untrusted.quoted(path.name)}: {error}") from None


def save(robot: Robot, path: str | os.PathLike[str]) -> None:
    """Write a robot to a file as JSON, which `load` reads without any loss.

    The file is written completely or not at all.

    Parameters
    ----------
    robot
        The robot.
    path
        The path of the file, which is replaced if it exists.

    Examples
    --------
    >>> import pathlib, tempfile, phipsi as pp
    >>> robot = pp.robots.double_pendulum()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "robot.json"
    ...     pp.save(robot, file)
    ...     pp.load(file) == robot
    True
    """
    validate.of_class("save: the robot", robot, Robot)
    text = to_json(robot).encode()
    for what, count in (("bodies", robot.nb), ("frames", len(robot.frames))):
        untrusted.bounded(what, count)
    untrusted.decoded(text)
    write(path, text)


def _robot(
    content: str | bytes,
    path: Path | None,
    base: urdf.Base,
    armature: float | Mapping[str, float],
    format: Format | None,
    strict: bool,
) -> Robot:
    """The robot that a text describes; `path` is the file that it was read from."""
    text = untrusted.decoded(content).lstrip("\ufeff \t\r\n")
    if format not in (None, *get_args(Format)):
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


def _only_urdf(base: urdf.Base, armature: float | Mapping[str, float], what: str) -> None:
    """Raise an error if an option that only URDF has is given for another format."""
    if base != "fixed":
        shown = untrusted.quoted(base)
        raise ModelError(f"base={shown} is for URDF; {what} says itself how its base moves")
    if isinstance(armature, Mapping) or validate.number("armature", armature):
        raise ModelError(f"armature= is for URDF; {what} says itself what its rotors weigh")
