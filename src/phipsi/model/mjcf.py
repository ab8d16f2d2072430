"""Robots from MJCF, which is compiled by MuJoCo."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from phipsi.caller import warn
from phipsi.model import untrusted
from phipsi.model.builder import HingeNumbers
from phipsi.model.errors import ModelError, ModelWarning
from phipsi.model.hinges import KINDS, HingeName
from phipsi.model.robot import Builder, Robot
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot
from phipsi.typing import Array, Vector3

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MAX_SIZE = 10_000_000
"""The maximum size of an array whose size the MJCF gives (a texture, a height field)."""

_KINDS: tuple[HingeName, ...] = ("free", "spherical", "prismatic", "revolute")
"""Hinge kinds in the order of mujoco.mjtJoint."""
_SIZES = {"count", "width", "height", "nrow", "ncol", "dim", "nsample"}
"""Attributes of an MJCF that give sizes of arrays, or numbers of copies."""


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

    A text must not refer to files. A file may refer to others (meshes, includes), which MuJoCo
    reads without the limits on size that hold for the file itself: load only files that you trust.

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
        raise ModelError(f"from_mjcf needs a path or XML, not a {type(source).__name__}")
    return from_tree(untrusted.xml(text), text, path, strict=strict)


def from_tree(root: Element, text: str, path: Path | None, *, strict: bool) -> Robot:
    """The robot that a parsed MJCF describes; MuJoCo parses its text or file again."""
    if root.tag != "mujoco":
        raise ModelError(f"the root element is <{root.tag[:40]}>, but an MJCF has <mujoco>")
    _check(root, may_refer=path is not None)
    model = _compiled(text, path)
    for left_out in _left_out(model):
        message = f"phipsi does not take over from this MJCF: {left_out}"
        if strict:
            raise ModelError(message)
        warn(message, ModelWarning)
    return _Reader(model, root.get("model") or "robot").robot(strict)


def _check(root: Element, *, may_refer: bool) -> None:
    """Raise an error if MuJoCo would crash, need too much memory, or read other files."""
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
    """The number of items that the attributes of an element ask for."""
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
    """The effects on the motion that the model has and a `Robot` cannot have, with the names of the
    parts that have them."""
    free = set(np.flatnonzero(m.jnt_type == 0).tolist())
    dampers = {int(m.dof_jntid[i]) for i in _with(m, "dof_dampingpoly")}
    nonlinear = _with(m, "jnt_stiffnesspoly") | _with(m, "jnt_springyield") | dampers
    heavy = {int(m.dof_jntid[i]) for i in _with(m, "dof_armature")}
    rotors = _with(m, "actuator_armature") | _with(m, "actuator_damping")
    other = [i for i in range(m.nu) if not _is_motor(m, i)]
    servos = [i for i in other if _is_servo(m, i)]
    mocap = [i for i in range(m.nbody) if m.body_mocapid[i] >= 0]
    for what, kind, parts, remark in (
        ("equality constraints", "EQUALITY", range(m.neq), ""),
        ("tendons", "TENDON", range(m.ntendon), ""),
        ("servos", "ACTUATOR", servos, "; the forces of joints are inputs, see phipsi.control"),
        ("actuators that are no motors", "ACTUATOR", {*other} - {*servos}, ""),
        ("armature and damping of actuators", "ACTUATOR", rotors, ""),
        ("mocap bodies", "BODY", mocap, ", which stay at their pose"),
        ("contacts of geoms", "GEOM", _touching(m), ""),
        ("flexible bodies", "FLEX", range(m.nflex), ""),
        ("plugins", "PLUGIN", range(m.nplugin), ""),
        ("gravity compensation", "BODY", _with(m, "body_gravcomp"), ""),
        ("nonlinear springs and dampers", "JOINT", nonlinear, ""),
        ("springs of free joints", "JOINT", free & _with(m, "jnt_stiffness"), ""),
        ("armature of free joints", "JOINT", free & heavy, ""),
    ):
        if len(parts):
            yield f"{what} ({_named(m, kind, sorted(parts))}){remark}"
    if m.opt.density or m.opt.viscosity:
        yield f"fluid forces (density {m.opt.density:g}, viscosity {m.opt.viscosity:g})"


def _with(m: Any, field: str) -> set[int]:
    """The parts in which a field is not zero; older versions of MuJoCo lack some fields."""
    return set(np.nonzero(getattr(m, field, np.zeros(0)))[0].tolist())


def _named(m: Any, kind: str, parts: Sequence[int]) -> str:
    """The number of parts and the names of the first of them."""
    mujoco = _mujoco()
    names = [mujoco.mj_id2name(m, getattr(mujoco.mjtObj, f"mjOBJ_{kind}"), i) for i in parts[:3]]
    told = [untrusted.quoted(x) if x else f"number {i}" for x, i in zip(names, parts, strict=False)]
    more = f" and {len(parts) - 3} more" if len(parts) > 3 else ""
    return f"{len(parts)}: {', '.join(told)}{more}"


def _on_joint(m: Any, i: int) -> bool:
    """Whether an actuator acts on one joint."""
    kinds = _mujoco().mjtTrn
    return int(m.actuator_trntype[i]) in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT))


def _is_motor(m: Any, i: int) -> bool:
    """Whether the force of an actuator is its control, times a constant, on one joint."""
    law = m.actuator_dyntype[i], m.actuator_gaintype[i], m.actuator_biastype[i]
    return _on_joint(m, i) and not any(law)


def _is_servo(m: Any, i: int) -> bool:
    """Whether the force of an actuator is affine in the coordinate and the rate of one joint."""
    affine = int(_mujoco().mjtGain.mjGAIN_AFFINE)  # as of mjtBias; 0 is fixed or none
    return _on_joint(m, i) and max(m.actuator_gaintype[i], m.actuator_biastype[i]) == affine


def _touching(m: Any) -> set[int]:
    """The geoms that can touch those of other bodies, by the rules of MuJoCo."""
    if _disabled(m, "CONTACT", "CONSTRAINT"):
        return set()
    body = m.geom_bodyid
    weld = m.body_weldid[body]
    inboard = m.body_weldid[m.body_parentid[weld]]
    rows = np.stack([body, weld, inboard, m.geom_contype, m.geom_conaffinity], axis=1)
    kinds, which = np.unique(rows, axis=0, return_inverse=True)
    body, weld, inboard, own, others = kinds.T
    filtered = not _disabled(m, "FILTERPARENT")
    touches = np.zeros(len(kinds), bool)
    for k, (b, w, p, mine, theirs) in enumerate(kinds):
        near = ((p == weld) & (p != 0)) | ((inboard == w) & (w != 0))
        apart = np.isin((np.minimum(body, b) << 16) + np.maximum(body, b), m.exclude_signature)
        meets = ((own & theirs) | (others & mine)) != 0
        touches[k] = (meets & (weld != w) & ~(near & filtered) & ~apart).any()
    found = np.flatnonzero(touches[which.ravel()]).tolist()
    return {*found, *m.pair_geom1.tolist(), *m.pair_geom2.tolist()}


def body_names(m: Any) -> list[str]:
    """The names of the bodies of a compiled model in phipsi."""
    return _unique([m.body(i).name or f"body{i}" for i in range(m.nbody)])


def joint_names(m: Any) -> list[str]:
    """The names of the joints of a compiled model in phipsi."""
    bodies = body_names(m)
    names: list[str] = []
    for j in range(m.njnt):
        body = m.jnt_bodyid[j]
        number = j - m.body_jntadr[body] if m.body_jntnum[body] > 1 else ""
        names.append(m.joint(j).name or f"{bodies[body]}_joint{number}")
    return _unique(names)


class _Reader:
    """Converts a compiled model to a robot, body by body."""

    def __init__(self, model: Any, name: str) -> None:
        self.m = model
        gravity = np.zeros(3) if _disabled(model, "GRAVITY") else model.opt.gravity
        self.builder = Builder(name, gravity=gravity)
        self.bodies, self.joints = body_names(model), joint_names(model)
        self.efforts = _efforts(model)
        self.origin: dict[int, Vector3] = {0: np.zeros(3)}
        """For each body the origin of its frame in phipsi, in its frame in MuJoCo."""

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
        springs = name != "free" and not _disabled(m, "SPRING", "PASSIVE")
        numbers = HingeNumbers(
            armature=m.dof_armature[v],
            damping=0.0 if _disabled(m, "DAMPER", "PASSIVE") else m.dof_damping[v],
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
            name, body = m.site(i).name, int(m.site_bodyid[i])
            if not name:
                continue
            while name in taken:
                name += "_site"
            taken.add(name)
            pose = Transform.of(position=-self.origin[body]) @ _pose(m.site_pos[i], m.site_quat[i])
            self.builder.frame(name, self.bodies[body], placement=pose)


def _disabled(m: Any, *names: str) -> bool:
    """Whether one of these effects is disabled (their names differ between MuJoCo versions)."""
    bits = (int(getattr(_mujoco().mjtDisableBit, f"mjDSBL_{name}", 0)) for name in names)
    return any(m.opt.disableflags & bit for bit in bits)


def _efforts(m: Any) -> Array:
    """For each joint the largest force that actuators exert on it; infinite if there is no limit.

    Actuators of tendons and bodies may move any joint; without actuators every joint is driven."""
    some = range(m.nu)
    total = np.full(m.njnt, 0.0 if m.nu and all(_on_joint(m, i) for i in some) else np.inf)
    for i in some:
        if _on_joint(m, i) and m.actuator_gear[i, 0]:
            total[m.actuator_trnid[i, 0]] += abs(m.actuator_gear[i, 0]) * _strength(m, i)
    allowed = np.where(m.jnt_actfrclimited, np.abs(m.jnt_actfrcrange).max(axis=1), np.inf)
    return np.minimum(total, allowed)


def _strength(m: Any, i: int) -> float:
    """The largest force of an actuator; infinite if it has no limit."""
    limits = [np.inf]
    if m.actuator_forcelimited[i]:
        limits.append(np.abs(m.actuator_forcerange[i]).max())
    if _is_motor(m, i) and m.actuator_ctrllimited[i]:
        limits.append(np.abs(m.actuator_gainprm[i, 0] * m.actuator_ctrlrange[i]).max())
    return min(limits)


def _unique(names: list[str]) -> list[str]:
    """The names, with underscores appended to repeated ones."""
    seen: set[str] = set()
    for i, name in enumerate(names):
        while name in seen:
            name += "_"
        seen.add(name)
        names[i] = name
    return names


def _pose(position: Vector3, quaternion: Array) -> Transform:
    return Transform.of(rot.from_quaternion(rot.scalars(quaternion)), position)


def _zeroed(kind: HingeName, axis: Vector3, ref: float) -> Transform:
    """The motion of a joint from its coordinate `ref`, where MuJoCo describes it, to zero."""
    if kind == "prismatic":
        return Transform.of(position=-ref * axis)
    return Transform.of(rot.about_axis(rot.scalars(axis), -ref))
