"""Closed chains and grasps, against Pinocchio's and MuJoCo's constrained dynamics."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

import phipsi as pp
from benchmarks.measure import Contestant, Effort, difference, race, timed
from benchmarks.mujoco import STATES
from benchmarks.robots import BATCH, LOOPED, rows
from benchmarks.tables import Column, Section
from tests.agreement.peers import ConstrainedPinocchio, constrained_mujoco_model

ACCURACY = 1e-10
"""Of Pinocchio's proximal iteration: a loop in the plane is redundant for it."""


@dataclass(frozen=True)
class Constrained:
    """Nanoseconds per evaluation."""

    robot: Annotated[str, Column("robot")]
    function: Annotated[str, Column("function")]
    rows: Annotated[int, Column("rows")]
    phipsi: Annotated[float, Column("phipsi [ns]", "{:.1f}")]
    pinocchio: Annotated[float, Column("constraintDynamics [ns]", "{:.0f}")]
    mujoco: Annotated[float, Column("mj_forward [ns]", "{:.0f}")]
    to_pinocchio: Annotated[float, Column("ratio", "{:.1f}×")]
    to_mujoco: Annotated[float, Column("ratio to MuJoCo", "{:.1f}×")]
    difference: Annotated[float, Column("difference", "{:.0e}")]
    soft: Annotated[float, Column("from MuJoCo", "{:.0e}")]
    operations: Annotated[int, Column("operations")]
    compiled: Annotated[float, Column("compile [s]", "{:.2f}")]


@dataclass(frozen=True)
class Scene:
    """A robot whose frames are held together in pairs, and closed states."""

    name: str
    robot: pp.Robot
    pairs: Sequence[tuple[str, str]]
    kinds: tuple[str, str]
    """What Pinocchio and MuJoCo call it."""
    functions: dict[str, tuple[Any, dict[str, Any]]]
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray


def constraints(effort: Effort) -> Section:
    """A four-bar linkage, and a box in the hands of a spacecraft with two arms."""
    found = []
    for scene in (_linkage(), _holding()):
        state = scene.q, scene.v, scene.tau
        theirs, expected = _pinocchio(scene)
        mujoco, soft = _mujoco(scene)
        for name, (program, options) in scene.functions.items():
            effort.say(f"{scene.name}, {name}")
            kernel, compiled = timed(lambda s=scene, p=program, o=options: p.compile(
                s.robot, backend="llvm", threads=1, **o
            ))  # fmt: skip
            out = [np.empty((BATCH, *leaf.shape)) for leaf in kernel.results.leaves]
            times = race({
                "phipsi": Contestant(lambda k=kernel, x=state, y=out: k(*x, out=y), BATCH),
                "pinocchio": theirs,
                "mujoco": mujoco,
            }, effort)  # fmt: skip
            found.append(Constrained(
                scene.name, name, sum(c.rows for c in next(iter(options.values()))),
                times["phipsi"], times["pinocchio"], times["mujoco"],
                times["pinocchio"] / times["phipsi"], times["mujoco"] / times["phipsi"],
                difference(out[0][:LOOPED], expected), difference(out[0][:STATES], soft),
                kernel.graph.operations, compiled,
            ))  # fmt: skip
    text = (
        f"Closed states with velocities that keep them closed, batch {BATCH:,}, against "
        f"`pin.constraintDynamics` state by state (accuracy {ACCURACY:g}) and MuJoCo's "
        f"`mj_forward` with equality constraints as hard as they can be, the time of setting its "
        f"state left out. MuJoCo's constraints are soft: the last difference is theirs."
    )
    return Section("Closed chains and grasps", text, found)


def _linkage() -> Scene:
    robot = pp.robots.four_bar()
    pairs = [("coupler_tip", "rocker_tip")]
    loops = [pp.Loop(*pairs[0], free=np.eye(6)[:, [3, 5]])]
    functions = {"closed_chain_dynamics": (pp.closed_chain_dynamics, {"loops": loops})}
    q = robot.random_state(0, (BATCH,))[0]
    state = _closed(robot, loops, q)
    return Scene("four_bar", robot, pairs, ("3D", "connect"), functions, *state)


def _holding() -> Scene:
    """A box between the tools, each at a grip of it."""
    builder = pp.Builder("box").body("box", mass=20.0, inertia=(2.0, 3.0, 4.0))
    builder.hinge("box", "free", "world", "box")
    arms = pp.robots.dual_space_arm()
    robot = pp.combine([arms, builder.build()], name="holding")
    q, _ = robot.random_state(3)
    pairs = [(f"{side}/tool", f"{side}/grip") for side in ("left", "right")]
    edited = robot.edit()
    back = np.linalg.inv(pp.frame_pose(robot, q, "box"))
    for tool, grip in pairs:
        X = back @ pp.frame_pose(robot, q, tool)
        edited.frame(grip, "box", placement=pp.Transform.of(X[:3, :3], X[:3, 3]))
    robot = edited.build()
    grasps = [pp.Grasp(*pair) for pair in pairs]
    functions = {
        "grasp_dynamics": (pp.grasp_dynamics, {"grasps": grasps}),
        "closed_chain_dynamics": (
            pp.closed_chain_dynamics, {"loops": [pp.Loop(*pair) for pair in pairs]}),
    }  # fmt: skip
    near = 0.2 * np.random.default_rng(1).standard_normal((BATCH, robot.nv))
    state = _closed(robot, grasps, robot.integrate(q, near))
    name = "dual_space_arm* with a box"
    return Scene(name, robot, pairs, ("6D", "weld"), functions, *state)


def _closed(robot: pp.Robot, closures: Any, q: np.ndarray) -> tuple[np.ndarray, ...]:
    """States near q that are closed, with forces; those that cannot be are replaced."""
    v, tau = np.random.default_rng(2).standard_normal((2, BATCH, robot.nv))
    q, v, error = pp.close_loops(robot, closures, q, v)
    good = np.flatnonzero(error < 1e-10)
    chosen = np.resize(good, BATCH)
    return q[chosen], v[chosen], tau


def _pinocchio(scene: Scene) -> tuple[Contestant, np.ndarray]:
    theirs = ConstrainedPinocchio(scene.robot, scene.pairs, scene.kinds[0], ACCURACY)
    states = [x[:LOOPED] for x in (scene.q, scene.v, scene.tau)]
    expected = np.array([theirs(*state)[0] for state in rows(states)])
    return _one_by_one(theirs.run, rows(theirs.theirs(*states))), expected


def _one_by_one(run: Callable[..., Any], states: list[tuple[np.ndarray, ...]]) -> Contestant:
    def all_of_them() -> None:
        for state in states:
            run(*state)

    return Contestant(all_of_them, len(states))


def _mujoco(scene: Scene) -> tuple[Contestant, np.ndarray]:
    mj: Any = importlib.import_module("mujoco")
    model = constrained_mujoco_model(scene.robot, scene.kinds[1], scene.pairs)
    model.opt.tolerance = 1e-8  # its own default
    q, v, tau = (x[:STATES] for x in (scene.q, scene.v, scene.tau))
    q, v, tau = pp.interop.to_mujoco(scene.robot, q, v, tau=tau, joints=model)
    datas = [mj.MjData(model) for _ in range(STATES)]
    for data, *state in zip(datas, q, v, tau, strict=True):
        data.qpos, data.qvel, data.qfrc_applied = state
    contestant = _one_by_one(mj.mj_forward, [(model, data) for data in datas])
    contestant.call()
    a = np.array([data.qacc for data in datas])
    return contestant, pp.interop.from_mujoco(scene.robot, q, v, a, joints=model)[2]
