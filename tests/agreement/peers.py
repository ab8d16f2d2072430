"""Our robots in Pinocchio and in MuJoCo, with frames held together."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

import numpy as np

import phipsi as pp

SWAP = [3, 4, 5, 0, 1, 2]
"""Their [linear; angular] from our [angular; linear], and back."""
HARDEST, SOFTER = 0.9999, 0.9998
"""Impedances of MuJoCo's constraints: the hardest there is, and the next."""


# ---- Pinocchio ----------------------------------------------------------------------------------


def with_normal_z(robot: pp.Robot) -> pp.Robot:
    """The robot with planar hinges in the plane that Pinocchio's have, normal to z: frames of its
    joints are those of our bodies."""
    builder = robot.edit()
    for h in robot.hinges:
        if h.kind.name == "planar":
            builder.replace_hinge(h.name, axes=tuple(np.eye(3)[[2, 0, 1]].astype(object)))
    return builder.build()


class ConstrainedPinocchio:
    """`pin.constraintDynamics` of a robot whose frames are held together in pairs.

    `kind` is "3D" (their origins) or "6D" (the frames), `accuracy` that of the proximal iteration.
    """

    def __init__(
        self, robot: pp.Robot, pairs: Iterable[tuple[str, str]], kind: str, accuracy: float = 1e-14
    ) -> None:
        pin: Any = importlib.import_module("pinocchio")
        self.robot, self.model = robot, pp.interop.to_pinocchio_model(robot)
        self.data = self.model.createData()
        self.constraints = pin.StdVec_RigidConstraintModel()
        for pair in pairs:
            ends = [self.model.frames[self.model.getFrameId(name)] for name in pair]
            on = (x for frame in ends for x in (frame.parentJoint, frame.placement))
            self.constraints.append(pin.RigidConstraintModel(
                getattr(pin.ContactType, f"CONTACT_{kind}"), self.model, *on,
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


def constrained_mujoco_model(
    robot: pp.Robot, kind: str, pairs: Iterable[tuple[str, str]], impedance: float = HARDEST
) -> Any:
    """The robot with frames held together in pairs, "connect" (their origins) or "weld"."""
    mj: Any = importlib.import_module("mujoco")
    spec = pp.interop.to_mujoco_spec(robot)
    spec.option.tolerance = 1e-14
    for a, b in pairs:
        equality = spec.add_equality(name1=a, name2=b, objtype=mj.mjtObj.mjOBJ_SITE)
        equality.type = getattr(mj.mjtEq, f"mjEQ_{kind.upper()}")
        equality.solimp[:3] = impedance, impedance, 0.001
    return spec.compile()


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
            constrained_mujoco_model(robot, kind, pairs, d) for d in (HARDEST, SOFTER)
        )

    def __call__(self, q: Any, v: Any, tau: Any) -> np.ndarray:
        """Accelerations (nv,), in our layout."""
        hard, soft = (
            mujoco_accelerations(self.robot, model, q, v, tau) for model in (self.hard, self.soft)
        )
        R, more = ((1 - d) / d for d in (HARDEST, SOFTER))
        return hard + R / (more - R) * (hard - soft)
