"""A robot built number by number in Pinocchio and in MuJoCo, to be timed beside phipsi."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import phipsi as pp
from phipsi.spatial import rotation as rot

LOOPED, DATAS = 64, 8
"""States that calls of one state go through; of MuJoCo each in an MjData of its own."""
AGREEMENT = 1e-6
"""The largest relative difference in forward dynamics of a peer."""

PINOCCHIO = {
    "forward_dynamics": ("aba", ("q", "v", "tau")),
    "inverse_dynamics": ("rnea", ("q", "v", "a")),
    "bias_force": ("nonLinearEffects", ("q", "v")),
    "gravity_force": ("computeGeneralizedGravity", ("q",)),
    "mass_matrix": ("crba", ("q",)),
    "mass_matrix_inverse": ("computeMinverse", ("q",)),
    "coriolis_matrix": ("computeCoriolisMatrix", ("q", "v")),
    "kinetic_energy": ("computeKineticEnergy", ("q", "v")),
    "potential_energy": ("computePotentialEnergy", ("q",)),
    "center_of_mass": ("centerOfMass", ("q",)),
    "regressor": ("computeJointTorqueRegressor", ("q", "v", "a")),
    "poses": ("forwardKinematics", ("q",)),
}
"""What computes the same there, and from which arrays."""
MUJOCO = {
    "revolute": "mjJNT_HINGE",
    "continuous": "mjJNT_HINGE",
    "prismatic": "mjJNT_SLIDE",
    "spherical": "mjJNT_BALL",
    "free": "mjJNT_FREE",
}


class Contestant(NamedTuple):
    """A call and how many evaluations it makes."""

    call: Callable[[], object]
    evaluations: int


class Peer(NamedTuple):
    """Another library: by function how it evaluates single states, and how batches, if it can; or
    why it is not there."""

    name: str
    single: Mapping[str, Contestant] = {}
    batch: Mapping[str, Contestant] = {}
    absent: str = ""


def peers(robot: pp.Robot, states: Mapping[str, np.ndarray]) -> list[Peer]:
    """Pinocchio and MuJoCo with this robot; states q, v, a, tau (n, …) in phipsi's layout."""
    found = []
    for name, module, make in (
        ("Pinocchio", "pinocchio", _pinocchio),
        ("MuJoCo", "mujoco", _mujoco),
    ):
        try:
            found.append(make(importlib.import_module(module), robot, states))
        except ImportError:
            found.append(Peer(name, absent="not installed"))
        except ValueError as error:
            found.append(Peer(name, absent=str(error).partition("\n")[0]))
    return found


def _central(body: pp.Body) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass, and inertia about it in the body's axes."""
    m = float(body.mass)
    moment = np.asarray(body.inertia.moment, float)
    com = moment / m if m else moment
    about = m * (com @ com * np.eye(3) - np.outer(com, com))
    return m, com, np.asarray(body.inertia.J, float) - about


def _check(
    name: str, robot: pp.Robot, states: Mapping[str, np.ndarray], theirs: np.ndarray
) -> None:
    """The peer has the same robot: its accelerations are ours."""
    q, v, tau = (states[x][: len(theirs)] for x in ("q", "v", "tau"))
    ours = pp.forward_dynamics(robot, q, v, tau)
    error = np.abs(ours - theirs).max(-1) / np.abs(ours).max(-1)
    if not error.max() < AGREEMENT:
        raise ValueError(f"{name} moves this robot otherwise")


# ---- Pinocchio ---------------------------------------------------------------------------------


def _pinocchio(pin: Any, robot: pp.Robot, states: Mapping[str, np.ndarray]) -> Peer:
    model = pin.Model()
    model.gravity.linear = np.asarray(robot.gravity, float)
    for body, h, parent in zip(robot.bodies, robot.hinges, robot.parents, strict=True):
        place = pin.SE3(
            np.asarray(h.placement.rotation, float), np.asarray(h.placement.position, float)
        )
        i = model.addJoint(parent + 1, _joint(pin, h), place, h.name)
        model.appendBodyToJoint(i, pin.Inertia(*_central(body)), pin.SE3.Identity())
    order = pp.interop.to_pinocchio(robot, robot.neutral(), np.arange(robot.nv), joints=model)[1]
    model.armature = robot.joint_data("armature")[order.astype(int)]
    names = ("q", "v", "a", "tau")
    layout = pp.interop.to_pinocchio(robot, *(states[x] for x in names), joints=model)
    theirs = dict(zip(names, layout, strict=True))
    data = model.createData()
    each = range(min(4, len(theirs["q"])))
    found = np.array(
        [pin.aba(model, data, *(theirs[x][i] for x in ("q", "v", "tau"))) for i in each]
    )
    q = theirs["q"][: len(found)]
    found = pp.interop.from_pinocchio(robot, q, a=found, joints=model)[1]
    _check("Pinocchio", robot, states, found)
    single = {
        name: _looped(getattr(pin, function), (model, data), [theirs[x] for x in wanted])
        for name, (function, wanted) in PINOCCHIO.items()
    }
    batch = {}
    for name, (function, wanted) in PINOCCHIO.items():
        many = getattr(pin, f"{function}InParallel", None)  # absent where built without OpenMP
        if many is not None:
            batch[name] = _parallel(pin, model, many, [theirs[x] for x in wanted])
    return Peer("Pinocchio", single, batch)


def _joint(pin: Any, h: pp.Hinge) -> Any:
    axis = np.asarray(h.axes[0], float) if h.axes else np.zeros(3)
    aligned = np.flatnonzero((axis == np.eye(3)).all(axis=1))
    match h.kind.name:
        case "revolute" | "continuous" if aligned.size:
            return getattr(pin, f"JointModelR{'XYZ'[aligned[0]]}")()
        case "revolute" | "continuous":
            return pin.JointModelRevoluteUnaligned(axis)
        case "prismatic" if aligned.size:
            return getattr(pin, f"JointModelP{'XYZ'[aligned[0]]}")()
        case "prismatic":
            return pin.JointModelPrismaticUnaligned(axis)
        case "spherical":
            return pin.JointModelSpherical()
        case "free":
            return pin.JointModelFreeFlyer()
    raise ValueError(f"hinge {h.name!r} is {h.kind.name}")


def _looped(function: Any, first: tuple[Any, ...], arrays: list[np.ndarray]) -> Contestant:
    states = list(zip(*(list(x[:LOOPED]) for x in arrays), strict=True))

    def call() -> None:
        for state in states:
            function(*first, *state)

    return Contestant(call, len(states))


def _parallel(pin: Any, model: Any, function: Any, arrays: list[np.ndarray]) -> Contestant:
    pool, columns = pin.ModelPool(model, 1), [np.asfortranarray(x.T) for x in arrays]
    out = np.empty((model.nv, len(arrays[0])), order="F")
    return Contestant(lambda: function(1, pool, *columns, out), len(arrays[0]))


# ---- MuJoCo ------------------------------------------------------------------------------------


def _mujoco(mj: Any, robot: pp.Robot, states: Mapping[str, np.ndarray]) -> Peer:
    model = mujoco_spec(mj, robot).compile()
    q, v, tau = (states[x][:DATAS] for x in ("q", "v", "tau"))
    q, v, tau = pp.interop.to_mujoco(robot, q, v, tau=tau, joints=model)
    datas = [mj.MjData(model) for _ in q]
    for data, *state in zip(datas, q, v, tau, strict=True):
        data.qpos, data.qvel, data.qfrc_applied = state
        mj.mj_forward(model, data)
    a = np.array([data.qacc for data in datas])
    _check("MuJoCo", robot, states, pp.interop.from_mujoco(robot, q, v, a, joints=model)[2])

    def call() -> None:
        for data in datas:
            mj.mj_forward(model, data)

    return Peer("MuJoCo", {"forward_dynamics": Contestant(call, len(datas))})


def mujoco_spec(mj: Any, robot: pp.Robot) -> Any:
    """The robot as an MjSpec, with nothing but the dynamics of the tree left on."""
    mj.set_mju_user_warning(lambda said: None)  # else it writes MUJOCO_LOG.TXT where one stands
    spec = mj.MjSpec()
    spec.option.gravity = np.asarray(robot.gravity, float)
    for flag in (mj.mjtDisableBit.mjDSBL_CONSTRAINT, mj.mjtDisableBit.mjDSBL_CONTACT):
        spec.option.disableflags |= int(flag)
    nodes = {"world": spec.worldbody}
    for body, h in zip(robot.bodies, robot.hinges, strict=True):
        m, com, J = _central(body)
        node = nodes[h.parent].add_body(
            name=body.name, pos=np.asarray(h.placement.position, float), mass=m, ipos=com,
            quat=np.asarray(rot.to_quaternion(h.placement.rotation), float), explicitinertial=True,
            fullinertia=[J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]],
        )  # fmt: skip
        nodes[body.name] = node
        if h.kind.name not in MUJOCO:
            raise ValueError(f"hinge {h.name!r} is {h.kind.name}")
        joint = node.add_joint(name=h.name, type=getattr(mj.mjtJoint, MUJOCO[h.kind.name]))
        joint.armature = float(h.armature[0])
        if h.axes:
            joint.axis = np.asarray(h.axes[0], float)
    return spec
