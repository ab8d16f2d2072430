"""Closed loops: `pp.rollout` beside MuJoCo's own rollout of the same free-flyers."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

import phipsi as pp
from benchmarks.measure import Contestant, Effort, race, timed
from benchmarks.tables import Aim, Column, Section, at_least
from phipsi.cli.peers import tree_spec
from phipsi.simulation import MethodName

ROBOTS, STEPS, DT = 4096, 1000, 1e-3
THEIRS = 64
"""Of the robots, how many MuJoCo runs: it has no advantage from more, and takes 50 s for all."""
STIFFNESS, DAMPING = 50.0, 20.0


@dataclass(frozen=True)
class Rollout:
    """One method against MuJoCo's RK4."""

    robot: Annotated[str, Column("robot")]
    method: Annotated[str, Column("method")]
    phipsi: Annotated[float, Column("phipsi [steps/s]", "{:.3g}")]
    mujoco: Annotated[float, Column("MuJoCo [steps/s]", "{:.3g}")]
    ratio: Annotated[float, Column("ratio", "{:.0f}×")]
    aim: Annotated[Aim | None, Column("aim")]
    first: Annotated[float, Column("first call [s]", "{:.2f}")]
    error: Annotated[float, Column("difference", "{:.0e}")]


@pp.program(shapes={"stiffness": (), "damping": ()})
def servo(robot: pp.Robot, q: Any, v: Any, goal: Any, stiffness: Any, damping: Any) -> Any:
    """Every joint a spring and a damper towards its goal; the base is left alone."""
    return np.concatenate([np.zeros(6), stiffness * (goal - q[7:]) - damping * v[6:]])


def rollouts(effort: Effort) -> Section:
    """4 096 free-flyers, 1 000 steps, one thread."""
    mj: Any = importlib.import_module("mujoco")
    roll: Any = importlib.import_module("mujoco.rollout")
    robot, rng = pp.robots.space_arm(), np.random.default_rng(0)
    q, v = robot.random_state(rng, (ROBOTS,))
    v = v * np.where(robot.mask("base"), 0.05, 0.5)
    goal = q[:, 7:] + rng.uniform(-0.5, 0.5, (ROBOTS, robot.nq - 7))
    model = _servoed(mj, robot)
    start = np.concatenate(pp.interop.to_mujoco(robot, q, v, joints=model), axis=1)[:THEIRS]
    start = np.concatenate([np.zeros((THEIRS, 1)), start], axis=1)
    control, data = np.repeat(goal[:THEIRS, None], STEPS, axis=1), [mj.MjData(model)]
    theirs = Contestant(lambda: roll.rollout(model, data, start, control), THEIRS * STEPS)
    parameters = {"goal": goal, "stiffness": STIFFNESS, "damping": DAMPING}
    before = os.environ.get("PHIPSI_NUM_THREADS")
    os.environ["PHIPSI_NUM_THREADS"] = "1"
    try:
        found = []
        rows: list[tuple[MethodName, float | None]]
        rows = [("rk4", 15.0), ("rk4-mk", None), ("euler", None)]
        for method, bound in rows:
            effort.say(method)

            def run(method: MethodName = method) -> pp.Trajectory:
                return pp.rollout(
                    robot, q, v, servo, duration=STEPS * DT, dt=DT, method=method,
                    parameters=parameters, actuators=False,
                )  # fmt: skip

            ours, first = timed(run)
            few = Effort(max(3, effort.rounds // 10), effort.span)
            times = race({"ours": Contestant(run, ROBOTS * STEPS), "theirs": theirs}, few)
            ratio = times["theirs"] / times["ours"]
            error = _difference(robot, model, ours, roll.rollout(model, data, start, control)[0])
            fast, slow = 1e9 / times["ours"], 1e9 / times["theirs"]
            aim = at_least(ratio, bound)
            found.append(Rollout("space_arm*", method, fast, slow, ratio, aim, first, error))
    finally:
        os.environ.pop("PHIPSI_NUM_THREADS")
        if before is not None:
            os.environ["PHIPSI_NUM_THREADS"] = before
    text = (
        f"`pp.rollout` of {ROBOTS} robots, each with its own start and goal, {STEPS} steps of "
        f"{DT:g} s, controller and all, every state returned; `mujoco.rollout` of {THEIRS} of them "
        "with the same law in its actuators, RK4, constraints and contacts off. One thread each. "
        "The difference is that of all q and v along the way (euler: its error)."
    )
    return Section("Closed loops", text, found)


def _servoed(mj: Any, robot: pp.Robot) -> Any:
    """The robot in MuJoCo, integrated by RK4, an actuator −k(q − ctrl) − bv at every joint."""
    spec = tree_spec(mj, robot)
    spec.option.integrator, spec.option.timestep = mj.mjtIntegrator.mjINT_RK4, DT
    for hinge in robot.hinges[1:]:
        actuator = spec.add_actuator(target=hinge.name, trntype=mj.mjtTrn.mjTRN_JOINT)
        actuator.biastype = mj.mjtBias.mjBIAS_AFFINE
        actuator.gainprm[0] = STIFFNESS
        actuator.biasprm[:3] = (0.0, -STIFFNESS, -DAMPING)
    return spec.compile()


def _difference(robot: pp.Robot, model: Any, ours: pp.Trajectory, theirs: np.ndarray) -> float:
    q, v = pp.interop.from_mujoco(
        robot, theirs[..., 1 : 1 + robot.nq], theirs[..., 1 + robot.nq :], joints=model
    )
    gaps = robot.difference(q, ours.q[:THEIRS, 1:]), v - ours.v[:THEIRS, 1:]
    return float(max(np.abs(gap).max() for gap in gaps))
