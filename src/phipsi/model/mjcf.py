"""Robots from MJCF, which is compiled by MuJoCo."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from phipsi.arguments import a_class
from phipsi.caller import warn
from phipsi.model import untrusted
from phipsi.model.builder import HingeNumbers
from phipsi.model.errors import ModelError, ModelWarning
from phipsi.model.hinges import KINDS, HingeName
from phipsi.model.mjcf_actuators import efforts
from phipsi.model.mjcf_left_out import disabled, left_out
from phipsi.model.mjcf_names import body_names, joint_names, names
from phipsi.model.mjcf_process import ALONE, WITH_FILES, compiled
from phipsi.model.robot import Builder, Robot
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot
from phipsi.typing import Array, Vector3

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MAX_PARTS = 10_000
"""The maximum number of bodies and sites, of which a robot takes seconds to build."""

_KINDS: tuple[HingeName, ...] = ("free", "spherical", "prismatic", "revolute")
"""Hinge kinds in the order of mujoco.mjtJoint."""


def from_mjcf(source: str | bytes | os.PathLike[str], *, strict: bool = False) -> Robot:
    """The robot that an MJCF describes. Needs `mujoco`.

    q equals MuJoCo's qpos, in the same order (v differs for a free joint: `phipsi.interop`). If a
    body has several joints, they are connected by massless bodies named "body/joint". The frame of
    a body is at the anchor of its last joint; if MuJoCo's frame of the body is elsewhere, it
    becomes a named frame with the name of the body. Sites become frames (named "…_site" if a body
    has the name).

    Mass, armature, damping, springs, friction loss, ranges, force limits and gravity are read. The
    `rest` of a free joint is its initial pose in MuJoCo (qpos0). The `effort` of a joint with one
    freedom is the largest force of its motors; it is 0, no motor, if every actuator of the model is
    on another joint. Each other kind of part that has an effect on the motion, such as contacts,
    servos, tendons or equality constraints, is ignored with a `ModelWarning` that names the parts.

    MuJoCo compiles it in a process of its own (about 0.3 s), which may use 5 s of processor time
    and 1 GB of memory; 60 s and 4 GB if the MJCF refers to files, such as meshes, as only one that
    is given by its path may. The process has the rights of its user, and reads the files that the
    MJCF names wherever they are. Windows and macOS limit its time alone.

    Parameters
    ----------
    source
        The text, or the path of a file.
    strict : optional
        Whether ignoring an effect, or an inertia that no real body has, is an error.

    Returns
    -------
    Robot
        The robot.
    """
    if untrusted.is_text(source):
        text, path = untrusted.decoded(source), None
    elif isinstance(source, str | os.PathLike):
        path = Path(source)
        text = untrusted.decoded(untrusted.read(path))
    else:
        raise ModelError(f"from_mjcf needs a path or XML, not {a_class(source)}")
    return from_tree(untrusted.xml(text), text, path, strict=strict)


def from_tree(root: Element, text: str, path: Path | None, *, strict: bool) -> Robot:
    """The robot that a parsed MJCF describes; MuJoCo parses its text again."""
    if root.tag != "mujoco":
        raise ModelError(
            f"the root element is {untrusted.quoted(root.tag)}, but an MJCF has <mujoco>"
        )
    reference = _file_in(root)
    if reference and path is None:
        raise ModelError(
            f"{reference}, which an MJCF given as text must not; load it from its path"
        )
    folder, limits = (path.parent, WITH_FILES) if path and reference else (None, ALONE)
    m = compiled(text, folder, limits)
    with np.errstate(all="ignore"):  # numbers that are not finite are refused by the builder
        doubts = [f"phipsi does not take over from this MJCF: {effect}" for effect in left_out(m)]
        doubts += [f"MuJoCo says of this MJCF: {untrusted.quoted(said, 300)}" for said in m.said]
        for doubt in doubts:
            if strict:
                raise ModelError(doubt)
            warn(doubt, ModelWarning)
        return _Reader(m, root.get("model") or "robot").robot(strict)


def _file_in(root: Element) -> str | None:
    """The first reference to another file. Raises an error if something is not a number."""
    found = None
    for element in root.iter():
        for key, value in element.attrib.items():
            if "nan" in value.lower().split():
                where = untrusted.quoted(f"<{element.tag} {key}>")
                raise ModelError(f"{where} is not a number")
            if key.startswith("file") and found is None:
                where = untrusted.quoted(f"<{element.tag}>")
                found = f"{where} refers to the file {untrusted.quoted(value)}"
    return found


class _Reader:
    """Converts a compiled model to a robot, body by body."""

    def __init__(self, model: Any, name: str) -> None:
        self.m = model
        gravity = np.zeros(3) if disabled(model, "GRAVITY") else model.gravity
        self.builder = Builder(name, gravity=gravity)
        self.bodies, self.joints = body_names(model), joint_names(model)
        self.sites = names(model, "site")
        for what, known in ("body", self.bodies), ("joint", self.joints), ("site", self.sites):
            for name in filter(None, known):
                untrusted.name(f"a {what} of the MJCF", name)
        self.efforts = efforts(model)
        self.origin: dict[int, Vector3] = {0: np.zeros(3)}
        """For each body the origin of its frame in phipsi, in its frame in MuJoCo."""

    def robot(self, strict: bool) -> Robot:
        """The robot."""
        parts = self.m.nbody - 1 + self.m.nsite
        if parts > MAX_PARTS:
            raise ModelError(
                f"the MJCF has {parts:,} bodies and sites; at most {MAX_PARTS:,} are read"
            )
        for i in range(1, self.m.nbody):
            self._add_body(i)
        self._add_sites()
        return self.builder.build(strict=strict)

    def _add_body(self, i: int) -> None:
        m, name, parent = self.m, self.bodies[i], int(self.m.body_parentid[i])
        inboard, origin = self.bodies[parent], np.zeros(3)
        start = Transform.of(position=-self.origin[parent]) @ _pose(
            f"body {name!r}", m.body_pos[i], m.body_quat[i]
        )
        first, count = int(m.body_jntadr[i]), int(m.body_jntnum[i])
        for j in range(first, first + count):
            last = j == first + count - 1
            child = name if last else f"{name}/{self.joints[j]}"
            if not last:
                self.builder.body(child)
            origin = self._add_joint(j, inboard, child, start, origin)
            inboard, start = child, Transform.identity()
        if not count:
            self.builder.hinge(f"{name}/weld", "weld", inboard, name, placement=start)
        R = np.asarray(_rotation(f"body {name!r}", m.body_iquat[i]), float)
        central = R @ np.diag(m.body_inertia[i]) @ R.T
        self.builder.body(name, m.body_mass[i], m.body_ipos[i] - origin, central)
        if origin.any():
            self.builder.frame(name, name, position=-origin)
        self.origin[i] = origin

    def _add_joint(
        self, j: int, inboard: str, child: str, start: Transform, origin: Vector3
    ) -> Vector3:
        """Add joint j between the bodies `inboard` and `child`.

        `start` is the pose on `inboard` of the preceding frame, whose origin is at `origin` in the
        frame of the MuJoCo body. Returns the origin of the new hinge frame in that frame.
        """
        m: Any = self.m
        name = _KINDS[int(m.jnt_type[j])]
        kind, axis = KINDS[name], m.jnt_axis[j]
        q = slice(int(m.jnt_qposadr[j]), int(m.jnt_qposadr[j]) + kind.nq)
        v = slice(int(m.jnt_dofadr[j]), int(m.jnt_dofadr[j]) + kind.nv)
        springs = name != "free" and not disabled(m, "SPRING", "PASSIVE")
        numbers = HingeNumbers(
            armature=m.dof_armature[v],
            damping=0.0 if disabled(m, "DAMPER", "PASSIVE") else m.dof_damping[v],
            stiffness=m.jnt_stiffness[j] if springs else 0.0,
            rest=m.qpos_spring[q],
            friction=m.dof_frictionloss[v],
        )
        anchor = m.jnt_pos[j].copy() if name in ("revolute", "spherical") else origin
        start = start @ Transform.of(position=anchor - origin)
        if name == "free":
            start = Transform.identity()
        elif kind.nq == 1:
            start = start @ _zeroed(name, axis, float(m.qpos0[q][0]))
            if m.jnt_limited[j]:
                numbers["lower"], numbers["upper"] = m.jnt_range[j]
            numbers["effort"] = self.efforts[j]
        self.builder.hinge(
            self.joints[j], name, inboard, child, placement=start, axis=axis, **numbers
        )
        return anchor

    def _add_sites(self) -> None:
        m, taken = self.m, set(self.bodies)
        for i in range(m.nsite):
            name, body = self.sites[i], int(m.site_bodyid[i])
            if not name:
                continue
            while name in taken:
                name += "_site"
            taken.add(name)
            pose = Transform.of(position=-self.origin[body]) @ _pose(
                f"site {name!r}", m.site_pos[i], m.site_quat[i]
            )
            self.builder.frame(name, self.bodies[body], placement=pose)


def _pose(where: str, position: Vector3, quaternion: Array) -> Transform:
    return Transform.of(_rotation(where, quaternion), position)


def _rotation(where: str, quaternion: Array) -> Array:
    """The rotation of a quaternion; MuJoCo normalizes those of an MJCF, if their length allows."""
    if not abs(np.linalg.norm(quaternion) - 1.0) < 1e-6:
        raise ModelError(
            f"{where} has no orientation: numbers of its quaternion or inertia are too large or "
            "too small"
        )
    return rot.from_quaternion(rot.scalars(quaternion))


def _zeroed(kind: HingeName, axis: Vector3, ref: float) -> Transform:
    """The motion of a joint from its coordinate `ref`, where MuJoCo describes it, to zero."""
    if kind == "prismatic":
        return Transform.of(position=-ref * axis)
    return Transform.of(rot.about_axis(rot.scalars(axis), -ref))
