"""Our robots, built number by number in Pinocchio and in MuJoCo."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np

import phipsi as pp
from phipsi.spatial import rotation as rot

SWAP = [3, 4, 5, 0, 1, 2]
"""Their [linear; angular] from our [angular; linear], and back."""
MUJOCO = {
    "revolute": "hinge",
    "continuous": "hinge",
    "prismatic": "slide",
    "spherical": "ball",
    "free": "free",
}
HARDEST, SOFTER = 0.9999, 0.9998
"""Impedances of MuJoCo's constraints: the hardest there is, and the next."""


def central(body: pp.Body) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass, and inertia about it in the body's axes."""
    m = float(body.mass)
    if m <= 0:
        raise ValueError(f"body {body.name!r} has no mass; other libraries want one")
    com = np.asarray(body.inertia.moment, float) / m
    about = m * (com @ com * np.eye(3) - np.outer(com, com))
    return m, com, np.asarray(body.inertia.J, float) - about


# ---- Pinocchio ----------------------------------------------------------------------------------


def _pin() -> Any:
    return importlib.import_module("pinocchio")


def joint(h: pp.Hinge) -> Any:
    """Pinocchio's joint for a hinge; planar ones have the normal z there."""
    pin, axes = _pin(), [np.asarray(u, float) for u in h.axes]
    match h.kind.name:
        case "revolute" | "continuous":
            return _revolute(axes[0])
        case "prismatic":
            return pin.JointModelPrismaticUnaligned(axes[0])
        case "helical":
            return pin.JointModelHelicalUnaligned(axes[0], h.pitch)
        case "cylindrical":
            both = pin.JointModelComposite(pin.JointModelRevoluteUnaligned(axes[0]))
            both.addJoint(pin.JointModelPrismaticUnaligned(axes[0]), pin.SE3.Identity())
            return both
        case "universal":
            return pin.JointModelUniversal(*axes)
        case "planar":
            return pin.JointModelPlanar()
        case "spherical":
            return pin.JointModelSpherical()
        case "free":
            return pin.JointModelFreeFlyer()
    raise AssertionError(h.kind)


def _revolute(axis: np.ndarray) -> Any:
    """The quicker joint where the axis is x, y or z."""
    pin = _pin()
    aligned = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)
    which = np.flatnonzero((axis == np.eye(3)).all(axis=1))
    return aligned[which[0]]() if which.size else pin.JointModelRevoluteUnaligned(axis)


def se3(pose: pp.Transform) -> Any:
    """A placement, theirs."""
    return _pin().SE3(np.asarray(pose.rotation, float), np.asarray(pose.position, float))


def pinocchio_model(robot: pp.Robot) -> Any:
    """The robot as `pin.Model`; `pp.interop.to_pinocchio(…, joints=model)` gives its vectors."""
    pin = _pin()
    model = pin.Model()
    model.gravity.linear = np.asarray(robot.gravity, float)
    for body, h, p in zip(robot.bodies, robot.hinges, robot.parents, strict=True):
        i = model.addJoint(p + 1, joint(h), se3(h.placement), h.name)
        model.appendBodyToJoint(i, pin.Inertia(*central(body)), pin.SE3.Identity())
    order = pp.interop.to_pinocchio(robot, robot.neutral(), np.arange(robot.nv), joints=model)[1]
    model.armature = robot.joint_data("armature")[order.astype(int)]
    return model


class ConstrainedPinocchio:
    """`pin.constraintDynamics` of a robot whose frames are held together in pairs.

    `kind` is "3D" (their origins) or "6D" (the frames), `accuracy` that of the proximal iteration.
    """

    def __init__(
        self, robot: pp.Robot, pairs: Iterable[tuple[str, str]], kind: str, accuracy: float = 1e-14
    ) -> None:
        pin = _pin()
        self.robot, self.model = robot, pinocchio_model(robot)
        self.data = self.model.createData()
        self.constraints = pin.StdVec_RigidConstraintModel()
        for pair in pairs:
            ends = [robot.frame(name) for name in pair]
            places = (x for f in ends for x in (robot.body_index(f.body) + 1, se3(f.placement)))
            self.constraints.append(pin.RigidConstraintModel(
                getattr(pin.ContactType, f"CONTACT_{kind}"), self.model, *places,
                pin.ReferenceFrame.LOCAL,
            ))  # fmt: skip
        self.datas = pin.StdVec_RigidConstraintData()
        for constraint in self.constraints:
            self.datas.append(constraint.createData())
        self.settings = pin.ProximalSettings(accuracy, 1e-9, 50)
        pin.initConstraintDynamics(self.model, self.data, self.constraints, self.datas)
        self.solve = pin.constraintDynamics

    def theirs(self, q: Any, v: Any, tau: Any) -> tuple[np.ndarray, ...]:
        """A state in their layout."""
        return pp.interop.to_pinocchio(self.robot, q, v, tau=tau, joints=self.model)

    def run(self, q: Any, v: Any, tau: Any) -> Any:
        """Their accelerations at a state in their layout."""
        return self.solve(
            self.model, self.data, q, v, tau, self.constraints, self.datas, self.settings
        )

    def __call__(self, q: Any, v: Any, tau: Any) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations (nv,) and forces (pairs, 6) on the first frames, in our layout."""
        state = self.theirs(q, v, tau)
        a = self.run(*state)
        a = pp.interop.from_pinocchio(self.robot, state[0], a=a, joints=self.model)[1]
        return a, np.array([data.contact_force.vector[SWAP] for data in self.datas])


# ---- MuJoCo -------------------------------------------------------------------------------------


def mjcf(robot: pp.Robot, equalities: str = "") -> str:
    """The robot as MJCF: bodies, joints and, for each frame, a site; no contacts.

    `equalities` are elements such as `<weld site1="left" site2="right"/>`.
    """
    root = Element("mujoco", model=robot.name)
    SubElement(root, "compiler", angle="radian", inertiafromgeom="false")
    option = SubElement(root, "option", gravity=_text(robot.gravity), tolerance="1e-14")
    SubElement(option, "flag", contact="disable")
    nodes = {"world": SubElement(root, "worldbody")}
    for body, h in zip(robot.bodies, robot.hinges, strict=True):
        node = SubElement(nodes[h.parent], "body", _pose(h.placement), name=body.name)
        nodes[body.name] = node
        _joint(node, h)
        m, com, I = central(body)
        full = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
        SubElement(node, "inertial", pos=_text(com), mass=repr(m), fullinertia=_text(full))
    for frame in robot.frames.values():
        SubElement(nodes[frame.body], "site", _pose(frame.placement), name=frame.name)
    root.append(ElementTree.fromstring(f"<equality>{equalities}</equality>"))
    return ElementTree.tostring(root, encoding="unicode")


def equality(kind: str, pairs: Iterable[tuple[str, str]], impedance: float = HARDEST) -> str:
    """Frames held together in pairs, "connect" (their origins) or "weld"."""
    solimp = f"{impedance} {impedance} 0.001"
    elements = (Element(kind, site1=a, site2=b, solimp=solimp) for a, b in pairs)
    return "".join(ElementTree.tostring(e, encoding="unicode") for e in elements)


def mujoco_model(robot: pp.Robot, equalities: str = "") -> Any:
    """The robot as `mujoco.MjModel`; `pp.interop.to_mujoco(…, joints=model)` gives its vectors."""
    return importlib.import_module("mujoco").MjModel.from_xml_string(mjcf(robot, equalities))


def mujoco_accelerations(robot: pp.Robot, model: Any, q: Any, v: Any, tau: Any) -> np.ndarray:
    """What `mj_forward` makes of a state, in our layout."""
    mj: Any = importlib.import_module("mujoco")
    data = mj.MjData(model)
    qpos, qvel, force = pp.interop.to_mujoco(robot, q, v, tau=tau, joints=model)
    data.qpos, data.qvel, data.qfrc_applied = qpos, qvel, force
    mj.mj_forward(model, data)
    return pp.interop.from_mujoco(robot, qpos, qvel, data.qacc, joints=model)[2]


class ConstrainedMujoco:
    """`mj_forward` of a robot whose frames are held together in pairs by `kind`, made rigid.

    MuJoCo's constraints give way by R ∝ (1 − d)/d at the impedance d < 1; the accelerations at the
    two hardest are extrapolated to R = 0.
    """

    def __init__(self, robot: pp.Robot, pairs: Iterable[tuple[str, str]], kind: str) -> None:
        pairs = list(pairs)
        self.robot = robot
        self.hard, self.soft = (
            mujoco_model(robot, equality(kind, pairs, d)) for d in (HARDEST, SOFTER)
        )

    def __call__(self, q: Any, v: Any, tau: Any) -> np.ndarray:
        """Accelerations (nv,), in our layout."""
        hard, soft = (
            mujoco_accelerations(self.robot, model, q, v, tau) for model in (self.hard, self.soft)
        )
        R, more = ((1 - d) / d for d in (HARDEST, SOFTER))
        return hard + R / (more - R) * (hard - soft)


def _joint(node: Element, h: pp.Hinge) -> None:
    if h.kind.name not in MUJOCO:
        raise ValueError(f"hinge {h.name!r} is {h.kind.name}, which MuJoCo does not have")
    if h.kind.name == "free" and not np.array_equal(h.placement.matrix, np.eye(4)):
        raise ValueError(f"hinge {h.name!r}: MuJoCo's free joints start at the world's origin")
    if h.kind.name == "free" and np.any(h.armature):
        raise ValueError(f"hinge {h.name!r}: MuJoCo's armature of a free joint is of other rates")
    if len(set(map(float, h.armature))) > 1:
        raise ValueError(f"hinge {h.name!r}: MuJoCo has one armature for all its freedoms")
    axis = {"axis": _text(h.axes[0])} if h.axes else {}
    armature = repr(float(h.armature[0]))
    SubElement(node, "joint", axis, name=h.name, type=MUJOCO[h.kind.name], armature=armature)


def _pose(pose: pp.Transform) -> dict[str, str]:
    return {"pos": _text(pose.position), "quat": _text(rot.to_quaternion(pose.rotation))}


def _text(numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in numbers)
