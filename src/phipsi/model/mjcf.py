"""Robots from MJCF, through MuJoCo's own compiler."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from phipsi.model import untrusted
from phipsi.model.errors import ModelError, ModelWarning
from phipsi.model.hinges import KINDS
from phipsi.model.robot import Builder, Robot
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MAX_SIZE = 10_000_000
"""No array that an MJCF asks for by a number (a texture, a height field) may be larger."""

_KINDS = ("free", "spherical", "prismatic", "revolute")  # in the order of mujoco.mjtJoint
_SIZES = {"count", "width", "height", "nrow", "ncol", "dim", "nsample"}


def from_mjcf(source: str | bytes | os.PathLike[str], *, strict: bool = False) -> Robot:
    """The robot that an MJCF describes: its text, or the path of its file. Needs `mujoco`.

    q, in its order, equals MuJoCo's qpos (v differs for a free joint: `phipsi.interop`). Several
    joints of one body become massless bodies in between, named "body/joint". A body's own frame is
    at the anchor of its last joint; where that is not MuJoCo's frame of the body, a named frame of
    the body's name is. Sites become frames ("…_site" where a body has the name). Taken over: mass,
    armature, damping, springs, friction loss, ranges, force limits, gravity. Not taken over:
    geometry, contacts, actuators, and, with a `ModelWarning` (an error if `strict`), whatever else
    acts on the motion, such as equality constraints or tendons. The `rest` of a free joint is where
    MuJoCo starts it (qpos0).

    A text must not refer to files. A file may refer to others (meshes, includes), which MuJoCo
    reads without the limits that hold for the file itself: load only what you trust that far.
    """
    if untrusted.is_text(source):
        text, path = untrusted.decoded(source), None
    elif isinstance(source, str | os.PathLike):
        path = Path(source)
        text = untrusted.decoded(untrusted.read(path))
    else:
        raise ModelError(f"from_mjcf needs a path or XML, not a {type(source).__name__}")
    return from_tree(untrusted.xml(text), text, path, strict=strict)


def from_tree(root: Element, text: str, path: Path | None, *, strict: bool) -> Robot:
    """The robot of a parsed MJCF, which MuJoCo reads once more from its text or path."""
    if root.tag != "mujoco":
        raise ModelError(f"the root element is <{root.tag[:40]}>, but an MJCF has <mujoco>")
    _check(root, may_refer=path is not None)
    model = _compiled(text, path)
    left_out = ", ".join(_left_out(model))
    if left_out:
        message = f"phipsi does not take over from this MJCF: {left_out}"
        if strict:
            raise ModelError(message)
        warnings.warn(message, ModelWarning, stacklevel=3)
    return _Reader(model, root.get("model") or "robot").robot(strict)


def _check(root: Element, *, may_refer: bool) -> None:
    """Refuse what MuJoCo would not survive or should not read."""
    total = 0
    stack = [(root, 1)]
    while stack:
        element, copies = stack.pop()
        for key, value in element.attrib.items():
            if "nan" in value.lower().split():
                raise ModelError(f"<{element.tag} {key}> is not a number")
            if key.startswith("file") and not may_refer:
                raise ModelError(
                    f"<{element.tag}> refers to the file {untrusted.quoted(value)}, which an MJCF "
                    "given as text must not; load it from its path"
                )
        asked = _asked(element)
        if element.tag == "replicate":
            copies *= asked
        total += copies
        if asked * copies > MAX_SIZE or total > untrusted.MAX_ELEMENTS:
            raise ModelError(f"<{element.tag}> asks for more copies or memory than phipsi allows")
        stack.extend((child, copies) for child in element)


def _asked(element: Element) -> int:
    """How many items an element asks for by number."""
    keys = element.attrib if element.tag == "size" else _SIZES & element.attrib.keys()
    words = [word for key in keys for word in element.attrib[key].split()]
    return prod(max(1, int(word)) for word in words if word.isascii() and word.isdigit())


def _compiled(text: str, path: Path | None) -> Any:
    mujoco = _mujoco()
    try:
        if path is None:
            return mujoco.MjModel.from_xml_string(text)
        return mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, TypeError, RuntimeError, mujoco.FatalError) as error:
        said = " ".join(str(error).split())
        raise ModelError(f"MuJoCo refuses the MJCF: {said[:300]}") from None


def _mujoco() -> Any:
    try:
        return importlib.import_module("mujoco")
    except ImportError:
        raise ModelError("MJCF needs mujoco: pip install 'phipsi[mjcf]'") from None


def _left_out(m: Any) -> Iterator[str]:
    """What acts on the motion in MuJoCo and has no place in a `Robot`."""
    free = [m.jnt_type[m.dof_jntid[i]] == 0 for i in range(m.nv)]
    tendon = (m.tendon_stiffness, m.tendon_damping, m.tendon_frictionloss, m.tendon_limited)
    nonlinear = [
        getattr(m, name, np.zeros(0))
        for name in ("jnt_stiffnesspoly", "dof_dampingpoly", "jnt_springyield")
    ]
    motor = [getattr(m, name, np.zeros(0)) for name in ("actuator_armature", "actuator_damping")]
    for what, present in {
        "equality constraints": m.neq,
        "tendon forces": any(x.any() for x in tendon),
        "flexible bodies": m.nflex,
        "gravity compensation": m.body_gravcomp.any(),
        "fluid forces": m.opt.density or m.opt.viscosity,
        "nonlinear springs and dampers": any(x.any() for x in nonlinear),
        "armature and damping of actuators": any(x.any() for x in motor),
        "springs of free joints": m.jnt_stiffness[m.jnt_type == 0].any(),
        "armature of free joints": m.dof_armature[free].any(),
    }.items():
        if present:
            yield what


def body_names(m: Any) -> list[str]:
    """The names that the bodies of a compiled model have in phipsi."""
    return _unique([m.body(i).name or f"body{i}" for i in range(m.nbody)])


def joint_names(m: Any) -> list[str]:
    """The names that the joints of a compiled model have in phipsi."""
    bodies, names = body_names(m), []
    for j in range(m.njnt):
        body = m.jnt_bodyid[j]
        number = j - m.body_jntadr[body] if m.body_jntnum[body] > 1 else ""
        names.append(m.joint(j).name or f"{bodies[body]}_joint{number}")
    return _unique(names)


class _Reader:
    """Turns a compiled model into a robot, body by body."""

    def __init__(self, model: Any, name: str) -> None:
        self.m = model
        gravity = np.zeros(3) if _disabled(model, "GRAVITY") else model.opt.gravity
        self.builder = Builder(name, gravity=gravity)
        self.bodies, self.joints = body_names(model), joint_names(model)
        self.origin: dict[int, np.ndarray] = {0: np.zeros(3)}
        """Where the frame of our body lies in MuJoCo's frame of it."""

    def robot(self, strict: bool) -> Robot:
        """The robot."""
        for i in range(1, self.m.nbody):
            self._add_body(i)
        self._add_sites()
        return self.builder.build(strict=strict)

    def _add_body(self, i: int) -> None:
        m, name, parent = self.m, self.bodies[i], int(self.m.body_parentid[i])
        inboard, origin = self.bodies[parent], np.zeros(3)
        start = Transform.of(position=-self.origin[parent]) @ _pose(m.body_pos[i], m.body_quat[i])
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
        R = np.asarray(rot.from_quaternion(m.body_iquat[i]), float)
        central = R @ np.diag(m.body_inertia[i]) @ R.T
        self.builder.body(name, m.body_mass[i], m.body_ipos[i] - origin, central)
        if origin.any():
            self.builder.frame(name, name, position=-origin)
        self.origin[i] = origin

    def _add_joint(
        self, j: int, inboard: str, child: str, start: Transform, origin: np.ndarray
    ) -> np.ndarray:
        """Add a joint that follows the frame `start`, at `origin` of its body; returns where in the
        body its own frame is."""
        m, name = self.m, _KINDS[self.m.jnt_type[j]]
        kind, axis = KINDS[name], m.jnt_axis[j]
        q = slice(int(m.jnt_qposadr[j]), int(m.jnt_qposadr[j]) + kind.nq)
        v = slice(int(m.jnt_dofadr[j]), int(m.jnt_dofadr[j]) + kind.nv)
        limits: dict[str, Any] = {}
        anchor = m.jnt_pos[j].copy() if name in ("revolute", "spherical") else origin
        start = start @ Transform.of(position=anchor - origin)
        if name == "free":
            start = Transform.identity()
        elif kind.nq == 1:
            start = start @ _zeroed(name, axis, float(m.qpos0[q][0]))
            if m.jnt_limited[j]:
                limits["lower"], limits["upper"] = m.jnt_range[j]
            if m.jnt_actfrclimited[j]:
                limits["effort"] = np.abs(m.jnt_actfrcrange[j]).max()
        springs = name != "free" and not _disabled(m, "SPRING", "PASSIVE")
        self.builder.hinge(
            self.joints[j], name, inboard, child, placement=start, axis=axis,
            armature=m.dof_armature[v],
            damping=0.0 if _disabled(m, "DAMPER", "PASSIVE") else m.dof_damping[v],
            stiffness=m.jnt_stiffness[j] if springs else 0.0,
            rest=m.qpos_spring[q],
            friction=m.dof_frictionloss[v],
            **limits,
        )  # fmt: skip
        return anchor

    def _add_sites(self) -> None:
        m, taken = self.m, set(self.bodies)
        for i in range(m.nsite):
            name, body = m.site(i).name, int(m.site_bodyid[i])
            if not name:
                continue
            while name in taken:
                name += "_site"
            taken.add(name)
            pose = Transform.of(position=-self.origin[body]) @ _pose(m.site_pos[i], m.site_quat[i])
            self.builder.frame(name, self.bodies[body], placement=pose)


def _disabled(m: Any, *names: str) -> bool:
    """Whether an option turns one of these off (the names differ among MuJoCo's versions)."""
    bits = (int(getattr(_mujoco().mjtDisableBit, f"mjDSBL_{name}", 0)) for name in names)
    return any(m.opt.disableflags & bit for bit in bits)


def _unique(names: list[str]) -> list[str]:
    """The names, those already taken with an underscore more."""
    seen: set[str] = set()
    for i, name in enumerate(names):
        while name in seen:
            name += "_"
        seen.add(name)
        names[i] = name
    return names


def _pose(position: np.ndarray, quaternion: np.ndarray) -> Transform:
    return Transform.of(rot.from_quaternion(rot.scalars(quaternion)), position)


def _zeroed(kind: str, axis: np.ndarray, ref: float) -> Transform:
    """What brings a joint from its `ref`, where MuJoCo describes it, to zero."""
    if kind == "prismatic":
        return Transform.of(position=-ref * axis)
    return Transform.of(rot.about_axis(rot.scalars(axis), -ref))
