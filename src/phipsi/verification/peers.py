"""Checks against Pinocchio and MuJoCo, where they are installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from phipsi.interop import (
    from_mujoco,
    from_pinocchio,
    to_mujoco,
    to_mujoco_model,
    to_pinocchio,
    to_pinocchio_model,
)
from phipsi.model import ModelError, Robot
from phipsi.typing import Array
from phipsi.verification.states import EPS, SAFETY, WORST, States, relative
from phipsi.verification.table import LeftOut, Outcome, check, moves

MANY = 200
"""Freedoms from which on peers are left out: Pinocchio's data grow with their cube."""
SAME_AS_BODY = 1
"""mjSAMEFRAME_BODY of mujoco.mjtSameFrame."""


def _few(x: States) -> str:
    """Unfit: a robot of many freedoms."""
    return moves(x) or (f"{x.nv} freedoms" if x.nv > MANY else "")


def _imported(name: str) -> Any:
    """The module, if it is installed."""
    try:
        return import_module(name)
    except ImportError:
        raise LeftOut("not installed") from None


def _model(peers: Callable[[Robot], Any], x: States) -> Any:
    """The peer's model of the robot, if it has one."""
    try:
        return peers(x.robot)
    except ModelError as error:
        raise LeftOut(str(error)) from None


@check("Pinocchio", "forward dynamics against its aba", _few)
def pinocchio(x: States) -> Outcome:
    """Another implementation, by other people."""
    pin = _imported("pinocchio")
    model = _model(to_pinocchio_model, x)
    q, v, tau = to_pinocchio(x.robot, x.q, x.v, tau=x.tau, joints=model)
    data = model.createData()
    theirs = np.array([pin.aba(model, data, *state) for state in zip(q, v, tau, strict=True)])
    found = from_pinocchio(x.robot, q, a=theirs, joints=model)[1]
    return Outcome(relative(x.a, found, x.scale), x.solving)


@check("MuJoCo", "forward dynamics against mj_forward", _few)
def mujoco(x: States) -> Outcome:
    """A third one, which factors the mass matrix."""
    mj = _imported("mujoco")
    model = _model(to_mujoco_model, x)
    q, v, tau = to_mujoco(x.robot, x.q, x.v, tau=x.tau, joints=model)
    _unsnapped(model)
    data, rows, far = mj.MjData(model), list[Array](), 1.0
    for data.qpos, data.qvel, data.qfrc_applied in zip(q, v, tau, strict=True):
        mj.mj_forward(model, data)
        rows.append(np.array(data.qacc))
        far = max(far, _lever(model, data))
    found = from_mujoco(x.robot, q, v, np.array(rows), joints=model)[2]
    allowed = min(WORST, x.solving + SAFETY * EPS * x.condition * far)
    return Outcome(relative(x.a, found, x.scale), allowed)


def _unsnapped(m: Any) -> None:
    """Let MuJoCo use inertial frames as they are: it takes those within 1e-6 of the frames of their
    bodies for the same. Of single bodies that can no longer be told to the mass matrix."""
    off = m.body_ipos.any(axis=1) | m.body_iquat[:, 1:].any(axis=1)
    if (off & (m.body_sameframe == SAME_AS_BODY) & (m.body_simple > 0)).any():
        raise LeftOut("it takes inertial frames within 1e-6 of those of bodies for the same")
    m.body_sameframe[off & (m.body_sameframe == SAME_AS_BODY)] = 0


def _lever(m: Any, data: Any) -> float:
    """How much MuJoCo's rounding grows: it adds up inertias about the centre of mass of the whole
    tree, of which those about far joints are small differences."""
    return float((data.crb[m.dof_bodyid, :3].max(axis=1) * data.qLDiagInv).max())
