"""The same robots in MuJoCo, with nothing but the dynamics of the tree left on."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

import phipsi as pp
from benchmarks.measure import Contestant, difference
from benchmarks.robots import Case
from phipsi.cli.peers import tree_spec

STATES = 8
"""States, each in an MjData of its own, so that no time is spent on setting them."""


def mj_forward(case: Case, expected: np.ndarray) -> Contestant | None:
    """mj_forward at the first states of a case; None where the robot cannot be had in MuJoCo, or
    moves otherwise there than `expected` (nv numbers for each state, ours)."""
    mj: Any = importlib.import_module("mujoco")
    try:
        model = tree_spec(mj, case.robot).compile()
    except ValueError:
        return None
    datas = [mj.MjData(model) for _ in range(STATES)]
    q, v, tau = (x[:STATES] for x in (case.q, case.v, case.tau))
    q, v, tau = pp.interop.to_mujoco(case.robot, q, v, tau=tau, joints=model)
    for data, *state in zip(datas, q, v, tau, strict=True):
        data.qpos, data.qvel, data.qfrc_applied = state
        mj.mj_forward(model, data)
    a = np.array([data.qacc for data in datas])
    _, _, a = pp.interop.from_mujoco(case.robot, q, v, a, joints=model)
    if difference(a, expected[:STATES]) > 1e-6:
        return None
    forward = mj.mj_forward

    def run() -> None:
        for data in datas:
            forward(model, data)

    return Contestant(run, STATES)
