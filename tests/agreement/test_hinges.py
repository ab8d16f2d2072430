"""Every hinge kind beside Pinocchio's joint of that kind, on random trees with armature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phipsi as pp
from tests.zoo import MOVING, State, close, random_forest

pin: Any = pytest.importorskip("pinocchio")


def joint(h: pp.Hinge) -> Any:
    """Pinocchio's joint for a hinge."""
    axes = [np.asarray(u, float) for u in h.axes]
    match h.kind.name:
        case "revolute" | "continuous":
            return pin.JointModelRevoluteUnaligned(axes[0])
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


def se3(pose: pp.Transform) -> Any:
    return pin.SE3(np.asarray(pose.rotation, float), np.asarray(pose.position, float))


def pinocchio_model(robot: pp.Robot) -> Any:
    model = pin.Model()
    model.gravity.linear = np.asarray(robot.gravity, float)
    for body, h, p in zip(robot.bodies, robot.hinges, robot.parents, strict=True):
        i = model.addJoint(p + 1, joint(h), se3(h.placement), h.name)
        m, com = float(body.mass), np.asarray(body.inertia.moment, float) / float(body.mass)
        skew = np.array([[0, -com[2], com[1]], [com[2], 0, -com[0]], [-com[1], com[0], 0]])
        central = np.asarray(body.inertia.J, float) + m * skew @ skew
        model.appendBodyToJoint(i, pin.Inertia(m, com, central), pin.SE3.Identity())
    order = pp.interop.to_pinocchio(robot, robot.neutral(), np.arange(robot.nv), joints=model)[1]
    armature = robot.joint_data("armature")
    model.armature = armature[order.astype(int)]
    return model


def with_normal_z(robot: pp.Robot) -> pp.Robot:
    """The robot with planar hinges in the plane that Pinocchio's have, normal to z."""
    builder = robot.edit()
    for h in robot.hinges:
        if h.kind.name == "planar":
            builder.replace_hinge(h.name, axes=tuple(np.eye(3)[[2, 0, 1]].astype(object)))
    return builder.build()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kinds", [*((kind,) for kind in MOVING), MOVING], ids="+".join)
def test_dynamics_of_each_hinge_kind(kinds: tuple[str, ...], seed: int) -> None:
    robot = with_normal_z(random_forest(seed, 5, kinds=kinds, massless=False))
    model = pinocchio_model(robot)
    data = model.createData()
    for k in range(3):
        s = State(robot, seed=k)
        q, v, a, tau = pp.interop.to_pinocchio(robot, s.q, s.v, s.a, s.tau, joints=model)
        qdd = pp.forward_dynamics(robot, s.q, s.v, s.tau)
        ours = pp.interop.to_pinocchio(robot, s.q, qdd, joints=model)[1]
        close(ours, pin.aba(model, data, q, v, tau))
        ours = pp.interop.to_pinocchio(
            robot, s.q, tau=pp.inverse_dynamics(robot, s.q, s.v, s.a), joints=model
        )[1]
        close(ours, pin.rnea(model, data, q, v, a))
