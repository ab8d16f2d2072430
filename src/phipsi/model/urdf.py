"""Robots from URDF."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from phipsi.caller import warn
from phipsi.conventions import WORLD
from phipsi.model import untrusted, validate
from phipsi.model.builder import HingeNumbers
from phipsi.model.errors import ModelError, ModelWarning
from phipsi.model.hinges import HingeName
from phipsi.model.parts import INF, Mimic
from phipsi.model.robot import Builder, Robot
from phipsi.spatial import Transform
from phipsi.spatial import rotation as rot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

Base = Literal["fixed", "free"]
"""Whether the root link of a URDF is the world or a body on a free hinge."""

_KINDS: dict[str, HingeName] = {
    "fixed": "weld",
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "floating": "free",
    "planar": "planar",
}
"""The hinge kind of each type of joint."""
_RENAMED = f"{WORLD}_link"
"""The name of a link "world" that is not the world."""


def from_urdf(
    text: str | bytes,
    *,
    base: Base = "fixed",
    armature: float | Mapping[str, float] = 0.0,
    strict: bool = False,
) -> Robot:
    """The robot that a URDF text describes.

    A link without `<inertial>` is massless. Fixed joints are welds. Position limits, effort,
    velocity, damping and friction are kept as data; geometry, transmissions (which give a joint no
    force and no inertia) and plugins are not read. A `ModelWarning` names the joints with what has
    no effect: mimic relations, which are kept as data, safety controllers, and limits and dynamics
    of planar and floating joints. Mimic relations to joints that are not there, which real files
    have, are left out with a `ModelWarning`.

    Joints are ordered depth first, siblings as in the file (Pinocchio orders them by name; see
    `phipsi.interop`). In phipsi "world" is the name of the root; a link of that name that is not
    the fixed root is renamed "world_link".

    Parameters
    ----------
    text
        The text.
    base : optional
        With "fixed" the root link is the world: its frame becomes a named frame, and its inertia is
        ignored. With "free" it is a body on a free hinge named "root_joint".
    armature : optional
        The rotor inertia [kg·m² or kg], for which URDF has no element: of every joint with one
        freedom, or of joints by name.
    strict : optional
        Whether such relations or numbers, or an inertia that no real body has, are an error.

    Returns
    -------
    Robot
        The robot.
    """
    return from_tree(untrusted.xml(text), base=base, armature=armature, strict=strict)


def from_tree(
    root: Element, *, base: Base, armature: float | Mapping[str, float], strict: bool
) -> Robot:
    """The robot that a parsed URDF describes; options as in `from_urdf`."""
    if base not in get_args(Base):
        raise ModelError(f"base is {untrusted.quoted(base)}, needs 'fixed' or 'free'")
    if root.tag != "robot":
        raise ModelError(f"the root element is <{root.tag[:40]}>, but a URDF has <robot>")
    _refuse_xacro(root)
    links = {_name(link): link for link in root.findall("link")}
    joints = [(_name(joint), joint) for joint in root.findall("joint")]
    untrusted.bounded("joints", len(joints))
    _check_unique(root, joints)
    trunk = _root_link(links, joints)
    names = {name for name, _ in joints}
    for message in _left_out(joints, names):
        if strict:
            raise ModelError(message)
        warn(message, ModelWarning)
    builder = Builder(root.get("name") or "robot")
    called = {WORLD: _RENAMED}
    if base == "free":
        _add_link(builder, called.get(trunk, trunk), links[trunk])
        builder.hinge(_unused("root_joint", joints), "free", WORLD, called.get(trunk, trunk))
    else:
        called[trunk] = WORLD
        if trunk != WORLD:
            builder.frame(trunk)
    for name, joint in joints:
        child = _end(name, joint, "child", links)
        _add_link(builder, called.get(child, child), links[child])
        parent = _end(name, joint, "parent", links)
        ends = called.get(parent, parent), called.get(child, child)
        _add_joint(builder, name, joint, *ends, names)
    _add_armature(builder, armature)
    return builder.build(strict=strict)


def _left_out(joints: list[tuple[str, Element]], names: Set[str]) -> Iterator[str]:
    """Sentences about relations and numbers of joints that have no effect on a `Robot`."""
    several = [
        (name, joint) for name, joint in joints if joint.get("type") in ("planar", "floating")
    ]
    for what, found, tags in (
        ("mimic relations, which are data: these joints move by themselves", joints, ("mimic",)),
        ("safety controllers", joints, ("safety_controller",)),
        ("limits and dynamics of joints with several freedoms", several, ("limit", "dynamics")),
    ):
        those = [name for name, joint in found if any(joint.find(t) is not None for t in tags)]
        if those:
            shown = untrusted.listed(those)
            yield f"phipsi does not apply from this URDF: {what} ({len(those)}: {shown})"
    lost = [name for name, joint in joints if _leader(joint) not in {None, *names}]
    if lost:
        shown = untrusted.listed(lost)
        yield f"this URDF has no joints that its mimic relations name ({len(lost)}: {shown})"


def _leader(joint: Element) -> str | None:
    """The name of the joint that a joint mimics."""
    mimic = joint.find("mimic")
    return None if mimic is None else mimic.get("joint", "")


def _name(element: Element) -> str:
    return untrusted.name(f"a <{element.tag}> of the URDF", element.get("name"))


def _refuse_xacro(root: Element) -> None:
    """Raise an error if the file is a xacro template."""
    for element in root.iter():
        if "xacro}" in element.tag or any("${" in x for x in element.attrib.values()):
            raise ModelError("the file is a xacro template; expand it first (xacro in > out.urdf)")


def _check_unique(root: Element, joints: list[tuple[str, Element]]) -> None:
    links = [link.get("name") for link in root.findall("link")]
    for what, names in (("links", links), ("joints", [name for name, _ in joints])):
        seen: set[str | None] = set()
        for name in names:
            if name in seen:
                raise ModelError(f"two {what} are named {untrusted.quoted(name)}; rename one")
            seen.add(name)


def _end(name: str, joint: Element, role: str, links: dict[str, Element]) -> str:
    """The link at one end of a joint."""
    element = joint.find(role)
    link = None if element is None else element.get("link")
    if link is None:
        raise ModelError(f"joint {untrusted.quoted(name)} has no <{role} link=...>")
    if link not in links:
        raise ModelError(
            f"joint {untrusted.quoted(name)} has the {role} {untrusted.quoted(link)}, but no link "
            "has that name"
        )
    return link


def _root_link(links: dict[str, Element], joints: list[tuple[str, Element]]) -> str:
    """The name of the only link that is not the child of a joint."""
    inboard: dict[str, str] = {}
    for name, joint in joints:
        child = _end(name, joint, "child", links)
        if child in inboard:
            both = f"{untrusted.quoted(inboard[child])} and {untrusted.quoted(name)}"
            raise ModelError(f"link {untrusted.quoted(child)} is the child of two joints, {both}")
        inboard[child] = name
    roots = [name for name in links if name not in inboard]
    if not links:
        raise ModelError("the URDF has no <link>")
    if not roots:
        raise ModelError("every link is the child of a joint: the joints form a cycle; remove one")
    if len(roots) > 1:
        raise ModelError(
            f"{len(roots)} links have no parent joint ({untrusted.listed(roots)}), but a URDF has "
            "one root; join them"
        )
    return roots[0]


def _unused(name: str, joints: list[tuple[str, Element]]) -> str:
    """The name, with underscores appended until no joint has it."""
    taken = {other for other, _ in joints}
    while name in taken:
        name += "_"
    return name


def _add_link(builder: Builder, name: str, link: Element) -> None:
    inertial = link.find("inertial")
    if inertial is None:
        builder.body(name)
        return
    where = f"link {untrusted.quoted(name)}"
    mass = _number(where, _child(where, inertial, "mass"), "value")
    tensor = _child(where, inertial, "inertia")
    xx, yy, zz = (_number(where, tensor, key) for key in ("ixx", "iyy", "izz"))
    xy, xz, yz = (_number(where, tensor, key, 0.0) for key in ("ixy", "ixz", "iyz"))
    pose = _origin(where, inertial)
    R = np.array(pose.rotation, float)
    with np.errstate(all="ignore"):
        central = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
    builder.body(name, mass, pose.position, central)


def _add_joint(
    builder: Builder, name: str, joint: Element, parent: str, child: str, names: Set[str]
) -> None:
    where = f"joint {untrusted.quoted(name)}"
    kind = _KINDS.get(joint.get("type", ""))
    if kind is None:
        raise ModelError(
            f"{where} has the type {untrusted.quoted(joint.get('type'))}; known are "
            f"{', '.join(_KINDS)}"
        )
    axis = joint.find("axis")
    builder.hinge(
        name, kind, parent, child,
        placement=_origin(where, joint),
        axis=_triple(where, axis, "xyz", (1.0, 0.0, 0.0)),
        mimic=_mimic(where, joint, names),
        **_data(where, kind, joint),
    )  # fmt: skip


def _add_armature(builder: Builder, armature: float | Mapping[str, float]) -> None:
    if not isinstance(armature, Mapping):
        rotor = validate.number("armature", armature)
        armature = {h.name: rotor for h in builder.hinges if h.kind.nv == 1} if rotor else {}
    known = {h.name for h in builder.hinges}
    for name, value in armature.items():
        if not isinstance(name, str) or name not in known:
            raise ModelError(f"armature names {untrusted.quoted(name)}, but no joint has that name")
        rotor = validate.number(f"armature of joint {untrusted.quoted(name)}", value)
        builder.replace_hinge(name, armature=rotor)


def _data(where: str, kind: HingeName, joint: Element) -> HingeNumbers:
    """Limits, damping and friction of a hinge with one freedom."""
    data = HingeNumbers()
    if kind not in ("revolute", "continuous", "prismatic"):
        return data
    limit, dynamics = joint.find("limit"), joint.find("dynamics")
    if limit is not None:
        data["effort"] = _number(where, limit, "effort", INF)
        data["velocity"] = _number(where, limit, "velocity", INF)
        if kind != "continuous":
            data["lower"] = _number(where, limit, "lower", 0.0)
            data["upper"] = _number(where, limit, "upper", 0.0)
    if dynamics is not None:
        data["damping"] = _number(where, dynamics, "damping", 0.0)
        data["friction"] = _number(where, dynamics, "friction", 0.0)
    return data


def _mimic(where: str, joint: Element, names: Set[str]) -> Mimic | None:
    """The mimic relation of a joint, unless it names none of the joints."""
    mimic = joint.find("mimic")
    if mimic is None:
        return None
    leader = untrusted.name(f"<mimic joint=...> of {where}", mimic.get("joint"))
    if leader not in names:
        return None
    return Mimic(
        leader,
        _number(where, mimic, "multiplier", 1.0),
        _number(where, mimic, "offset", 0.0),
    )


def _child(where: str, element: Element, tag: str) -> Element:
    """The first child element with this tag, which is required."""
    found = element.find(tag)
    if found is None:
        raise ModelError(f"{where} has an <{element.tag}> without <{tag}>")
    return found


def _origin(where: str, element: Element) -> Transform:
    origin = element.find("origin")
    position = _triple(where, origin, "xyz", (0.0, 0.0, 0.0))
    angles = _triple(where, origin, "rpy", (0.0, 0.0, 0.0))
    R = rot.from_rpy(*angles) if any(angles) else rot.identity()
    return Transform(R, rot.scalars(position))


def _number(where: str, element: Element, key: str, default: float | None = None) -> float:
    """The number in an attribute, which is required if there is no default."""
    given = element.get(key)
    if given is not None:
        return untrusted.number(f"{where}: <{element.tag} {key}>", given)
    if default is None:
        raise ModelError(f"{where} has <{element.tag}> without {key!r}")
    return default


def _triple(
    where: str, element: Element | None, key: str, default: tuple[float, ...]
) -> tuple[float, ...]:
    """The three numbers in an attribute."""
    if element is None or (given := element.get(key)) is None:
        return default
    words = given.split()
    what = f"{where}: <{element.tag} {key}>"
    if len(words) != 3:
        raise ModelError(f"{what} is {untrusted.quoted(given)}, needs three numbers")
    return tuple(untrusted.number(what, word) for word in words)
