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
from phipsi.verification.states import States, relative
from phipsi.verification.table import LeftOut, Outcome, check, moves

MANY = 200
"""Freedoms from which on peers are left out: Pinocchio's data grow with their cube."""


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
    data, rows = mj.MjData(model), list[Array]()
    for data.qpos, data.qvel, data.qfrc_applied in zip(q, v, tau, strict=True):
        mj.mj_forward(model, data)
        rows.append(np.array(data.qacc))
    found = from_mujoco(x.robot, q, v, np.array(rows), joints=model)[2]
    return Outcome(relative(x.a, found, x.scale), x.solving)
