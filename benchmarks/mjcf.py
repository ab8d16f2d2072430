"""A robot of free and one-axis hinges as MJCF, for the simulations of MuJoCo."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np

import phipsi as pp
from phipsi.spatial import rotation as rot

JOINTS = {"free": "free", "revolute": "hinge", "continuous": "hinge", "prismatic": "slide"}


def as_mjcf(robot: pp.Robot, stiffness: float = 0.0, damping: float = 0.0) -> str:
    """MJCF of the robot without contacts and constraints, RK4. With a stiffness [N·m/rad] every
    joint but free ones has an actuator −stiffness (q − ctrl) − damping v."""
    root = Element("mujoco", model=robot.name)
    SubElement(root, "compiler", angle="radian", inertiafromgeom="false", balanceinertia="false")
    option = SubElement(root, "option", gravity=_text(robot.gravity), integrator="RK4")
    SubElement(option, "flag", constraint="disable", contact="disable")
    bodies: dict[str, Any] = {"world": SubElement(root, "worldbody")}
    for body, hinge in zip(robot.bodies, robot.hinges, strict=True):
        place = hinge.placement
        bodies[body.name] = element = SubElement(
            bodies[hinge.parent], "body", name=body.name, pos=_text(place.position),
            quat=_text(rot.quaternion_of(place.rotation)),
        )  # fmt: skip
        mass, *rest = np.asarray(body.inertia.parameters, float)
        com, tensor = np.array(rest[:3]) / mass, np.zeros((3, 3))
        tensor[np.triu_indices(3)] = rest[3:]
        tensor = tensor + np.triu(tensor, 1).T
        tensor -= mass * (com @ com * np.eye(3) - np.outer(com, com))
        full = [tensor[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        SubElement(
            element, "inertial", mass=repr(float(mass)), pos=_text(com), fullinertia=_text(full)
        )
        joint = SubElement(element, "joint", name=hinge.name, type=JOINTS[hinge.kind.name])
        if hinge.kind.name != "free":
            joint.set("axis", _text(hinge.axes[0]))
            joint.set("armature", _text(hinge.armature))
    actuators = SubElement(root, "actuator")
    for hinge in robot.hinges:
        if stiffness and hinge.kind.name != "free":
            SubElement(
                actuators, "general", joint=hinge.name, biastype="affine",
                gainprm=repr(stiffness), biasprm=f"0 {-stiffness!r} {-damping!r}",
            )  # fmt: skip
    return ElementTree.tostring(root, encoding="unicode")


def _text(numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in numbers)
